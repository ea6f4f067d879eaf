"""Typical first-time mistakes, and files in the form a German spreadsheet exports them."""

import json
import os
import re

import duckdb
import pytest

import fairramp
from shell import Inside, rows

COLUMNS = ("--score", "p", "--group", "g")
EXPORT = ("--score", "Score", "--group", "Geschlecht", "--scale", "percent")


@pytest.fixture
def shell(tmp_path):
    return Inside(tmp_path)


@pytest.fixture
def inside(fitted):
    return Inside(fitted.folder)


def export(n=200, blank=None):
    """CSV with byte-order mark, semicolons, decimal commas, percentages, ja and nein, blank groups."""
    lines = ["\ufeffNr;Score;Geschlecht;Zusage"]
    for i in range(n):
        group = ("w", "m", "")[i % 3]
        score = i * 37 % 101 * (0.7 if group == "w" else 0.95)
        cell = "" if i == blank else f"{score:.2f}".replace(".", ",")
        lines.append(f"{i};{cell};{group};{'Ja' if score > 45 else 'nein'}")
    return "\r\n".join(lines) + "\r\n"


# Inputs are never overwritten ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (("apply", "rule.json", "scores.csv", "-o", "scores.csv"), "DATA"),
        (("apply", "rule.json", "scores.csv", "-o", "./link.csv"), "DATA"),
        (("apply", "rule.json", "*.csv", "-o", "scores.csv"), "DATA"),
        (("apply", "rule.json", "scores.csv", "-o", "rule.json"), "the rule"),
        (
            ("apply", "rule.json", "scores.csv", "-o", "key.csv", "--id", "id", "--key-file", "key.csv"),
            "the key file",
        ),
        (("fit", "scores.csv", *COLUMNS, "-o", "scores.csv"), "DATA"),
        (("frontier", "scores.csv", *COLUMNS, "--label", "y", "-o", "scores.csv"), "DATA"),
        (
            ("frontier", "scores.csv", *COLUMNS, "--label", "y", "--validation", "v.tsv", "-o", "v.tsv"),
            "--validation",
        ),
    ],
)
def test_output_never_overwrites_an_input(inside, arguments, kept):
    os.link(inside.folder / "scores.csv", inside.folder / "link.csv")
    os.rename(inside.folder / "key.txt", inside.folder / "key.csv")
    inside.write("v.tsv", rows().replace(",", "\t"))
    before = {name: inside.read(name) for name in inside.files()}
    assert f"would overwrite {kept};" in inside.error(*arguments)
    assert {name: inside.read(name) for name in inside.files()} == before


def test_fit_replaces_only_rules_and_only_on_request(inside):
    key, rule = inside.read("key.txt"), inside.read("rule.json")
    for more in ((), ("--replace",)):
        assert "not a rule" in inside.error("fit", "scores.csv", *COLUMNS, "-o", "key.txt", *more)
    assert inside.read("key.txt") == key
    fit = ("fit", "scores.csv", *COLUMNS, "--max-gap", "0.1", "-o", "rule.json", "-q")
    assert "already holds a rule (fingerprint " in inside.error(*fit)
    assert inside.read("rule.json") == rule
    inside(*fit, "--replace")
    assert fairramp.Rule.load(inside.folder / "rule.json").max_gap == 0.1
    inside.write("empty.json", "")
    inside("fit", "scores.csv", *COLUMNS, "-o", "empty.json", "-q")


def test_apply_writes_only_documented_formats(inside):
    assert ".csv" in inside.error("apply", "rule.json", "scores.csv", "-o", "key.txt", "--probability-only")


# Percent ------------------------------------------------------------------------------------------


def test_rule_stores_the_percent_scale(shell):
    shell.write("s.csv", export())
    done = shell("fit", "s.csv", *EXPORT, "--max-gap", "0.02", "-o", "rule.json")
    rule = fairramp.Rule.load(shell.folder / "rule.json")
    assert (rule.scale, rule.cutoff, rule.ramps[0].width) == ("percent", 50, 0.01)
    assert "are percentages" in done.stdout
    assert f"{rule.thresholds[0]:.4f}" in done.stdout
    shell("apply", "rule.json", "s.csv", "-o", "o.csv", "-q")
    shell.write("small.csv", "Nr;Score;Geschlecht\r\n1;0,60;w\r\n2;0,90;m\r\n")
    done = shell("apply", "rule.json", "small.csv", "-o", "small-out.csv")
    assert [line.split(";")[-1] for line in shell.read("small-out.csv").split()[1:]] == ["0,0", "0,0"]
    assert "above 1%" in done.stderr
    shell("audit", "s.csv", "--rule", "rule.json", "-q")


def test_cutoff_and_ramp_width_are_in_percent(shell):
    shell.write("s.csv", export())
    shell("fit", "s.csv", *EXPORT, "--cutoff", "40", "--ramp-width", "5", "-o", "rule.json", "-q")
    rule = fairramp.Rule.load(shell.folder / "rule.json")
    assert (rule.cutoff, rule.ramps[0].width) == (40, 0.05)
    found = [
        json.loads(shell("audit", "s.csv", *EXPORT, *more, "--json").stdout)["before"]["rate"]
        for more in ((), ("--cutoff", "50"), ("--cutoff", "40"))
    ]
    assert found[0] == found[1] < found[2]
    done = shell("fit", "s.csv", *EXPORT, "--label", "Zusage", "--json", "-o", "rule.json", "--replace")
    assert json.loads(done.stdout)["accuracy_before"] > 0.9


# Spreadsheet cells --------------------------------------------------------------------------------


def test_blank_score_does_not_hide_the_decimal_comma(shell):
    shell.write("s.csv", export(blank=150))
    assert "empty in line 152" in shell.error("audit", "s.csv", *EXPORT)
    shell.write("mixed.csv", export().replace(",1", ".1", 1))
    assert "have a decimal comma" in shell.error("audit", "mixed.csv", *EXPORT)


@pytest.mark.parametrize("words", [("Ja", "nein"), ("YES", "no"), ("WAHR", "FALSCH"), ("True", "false")])
def test_labels_in_words(shell, words):
    text = export().replace(";Ja\r", f";{words[0]}\r").replace(";nein\r", f";{words[1]}\r")
    shell.write("words.csv", text)
    shell.write("numbers.csv", text.replace(f";{words[0]}\r", ";1\r").replace(f";{words[1]}\r", ";0\r"))
    found = [
        json.loads(shell("audit", name, *EXPORT, "--label", "Zusage", "--json").stdout)["before"]
        for name in ("words.csv", "numbers.csv")
    ]
    assert found[0] == found[1]


def test_positive_names_any_label(shell):
    label = ("--label", "Zusage")
    shell.write("s.csv", export().replace(";Ja\r", ";bewilligt\r").replace(";nein\r", ";abgelehnt\r"))
    shell.write("plain.csv", export())
    assert "--positive" in shell.error("audit", "s.csv", *EXPORT, *label)
    found, plain = (
        json.loads(shell("audit", *more, *EXPORT, *label, "--json").stdout)["before"]
        for more in (("s.csv", "--positive", "Bewilligt"), ("plain.csv",))
    )
    assert found == plain
    assert "'abgelehnt'" in shell.error("audit", "s.csv", *EXPORT, *label, "--positive", "ja")
    assert "--label" in shell.error("audit", "s.csv", *EXPORT, "--positive", "ja")
    shell.write("blank.csv", shell.read("s.csv").replace(";bewilligt\r", ";\r", 1))
    assert "is missing in 1 row: empty in line 4" in shell.error(
        "audit", "blank.csv", *EXPORT, *label, "--positive", "bewilligt"
    )


def test_typed_formats_hold_numbers(shell):
    shell.write("s.csv", export())
    shell("fit", "s.csv", *EXPORT, "-o", "rule.json", "-q")
    shell("apply", "rule.json", "s.csv", "-o", "o.parquet", "-q")
    shell("apply", "rule.json", "s.csv", "-o", "o.jsonl", "-q")
    types = duckdb.sql(f"DESCRIBE SELECT * FROM '{shell.folder / 'o.parquet'}'").fetchall()
    assert [row[1] for row in types] == ["VARCHAR", "DOUBLE", "VARCHAR", "VARCHAR", "DOUBLE"]
    assert json.loads(shell.read("o.jsonl").split("\n")[1])["Score"] == 35.15


def test_csv_from_parquet_follows_the_options(shell):
    shell.write("s.csv", export())
    shell("fit", "s.csv", *EXPORT, "-o", "rule.json", "-q")
    shell("apply", "rule.json", "s.csv", "-o", "o.parquet", "-q")
    new = ("apply", "rule.json", "o.parquet", "--prefix", "new_")
    shell(*new, "-o", "o.csv", "--decimal", ",", "-q")
    assert shell.read("o.csv").split("\n")[2].startswith("1;35,15;m;nein;0,0;0,0")
    shell(*new, "-o", "bar.csv", "--delimiter", "|", "-q")
    assert shell.read("bar.csv").split("\n")[2].startswith("1|35.15|m|nein|0.0|0.0")
    shell(*new, "-o", "plain.csv", "-q")
    assert shell.read("plain.csv").split("\n")[2].startswith("1,35.15,m,nein,0.0,0.0")


# Meaning of the numbers ---------------------------------------------------------------------------


def test_scores_that_contradict_the_labels_warn_once(shell):
    shell.write("s.csv", rows())
    flipped = [line.split(",") for line in rows().splitlines()[1:]]
    lines = [f"{id},{1 - float(p):.4f},{g},{y}" for id, p, g, y in flipped]
    shell.write("risk.csv", "id,p,g,y\n" + "\n".join(lines) + "\n")
    commands = (
        ("audit",),
        ("fit", "-o", "r.json", "--replace"),
        ("fit", "-o", "r.json", "--replace", "--target-rate", "accuracy"),
        ("frontier", "--max-gap", "0.1"),
    )
    for command, *options in commands:
        columns = (*COLUMNS, "--label", "y", *options)
        warned = shell(command, "risk.csv", *columns).stderr
        assert warned.startswith(
            "warning: Scores are lower for the favorable outcome (label 1): their mean is 0."
        )
        assert "If lower scores are better (a risk), pass --lower-is-better. If" in warned
        assert "is the unfavorable outcome (a default), pass --positive 0.\n" in warned
        assert warned.count("for the favorable outcome") == 1
        warned = shell(command, "s.csv", *columns, "--lower-is-better").stderr
        assert "If higher scores are better, remove --lower-is-better." in warned
        for quiet in ("risk.csv", "--positive", "0"), ("risk.csv", "--lower-is-better"), ("s.csv",):
            assert "warning" not in shell(command, *quiet, *columns).stderr
    assert "pass --lower-is-better" in shell("fit", "--help").stdout
    assert "fit again with --lower-is-better" in " ".join(
        shell("fit", "s.csv", *COLUMNS, "-o", "s.json").stdout.split()
    )


@pytest.mark.parametrize(
    "command",
    [
        ("apply", "rule.json"),
        ("audit", "--rule", "rule.json"),
        ("evidence", "--rule", "rule.json", "--no-report"),
    ],
    ids=lambda command: command[0],
)
def test_decisions_in_place_of_scores_warn_once(inside, command):
    header, *lines = rows(6000).splitlines()
    cells = [line.split(",") for line in lines]
    decided = [f"{i},{round(float(p))},{g},{y}" for i, p, g, y in cells]
    few = [decided[0], "7,0.5,b,1", *decided[2:]]  # as a rule's own probabilities
    for name, content, n in (("scores", lines, 0), ("decided", decided, 1), ("few", few, 1)):
        data = inside.write(f"{name}.csv", "\n".join([header, *content]) + "\n")
        output = {"apply": ("-o", "o.csv"), "evidence": ("-o", name)}.get(command[0], ())
        told = inside(*command, data, *output).stderr
        assert told.count("Did you pass predict() instead of predict_proba()?") == n * (name == "decided")
        assert told.count("are exactly 0 or 1: these look like a rule's probabilities") == n * (name == "few")


def test_rules_of_risks_keep_their_direction(shell):
    """Every command gives the same numbers for a rule of risks as for the rule of 1 - risk."""
    lines = [line.split(",") for line in rows(4000).splitlines()[1:]]
    exact = [(id, round(float(p) * 1024) / 1024, g, y) for id, p, g, y in lines]
    shell.write("s.csv", "id,p,g,y\n" + "".join(f"{id},{p!r},{g},{y}\n" for id, p, g, y in exact))
    shell.write("risk.csv", "id,p,g,y\n" + "".join(f"{id},{1 - p!r},{g},{y}\n" for id, p, g, y in exact))
    shell("keygen", "key.txt")
    columns, draws = (*COLUMNS, "--label", "y"), ("--id", "id", "--key-file", "key.txt", "-q")
    found = {}
    for data, direction in (("s.csv", ()), ("risk.csv", ("--lower-is-better",))):
        fitted = shell("fit", data, *columns, *direction, "-o", "r.json", "--replace", "--json")
        shell("apply", "r.json", data, "-o", "out.csv", *draws)
        found[data] = [
            json.loads(fitted.stdout)["accuracy_before"],
            json.loads(fitted.stdout)["gap_after"],
            json.loads(shell("audit", data, *columns, *direction, "--json").stdout)["before"],
            json.loads(shell("audit", data, *columns, "--rule", "r.json", "--json").stdout)["after"]["rate"],
            json.loads(shell("frontier", data, *columns, *direction, "--json").stdout)["points"],
            json.loads(shell("check", "r.json", data, "--json").stdout)["gap"],
            [line.rsplit(",", 1)[-1] for line in shell.read("out.csv").splitlines()],
        ]
    for mine, theirs in zip(found["s.csv"], found["risk.csv"], strict=True):
        assert json.loads(json.dumps(mine), parse_float=lambda t: round(float(t), 9)) == json.loads(
            json.dumps(theirs), parse_float=lambda t: round(float(t), 9)
        )
    assert "yes at 0.5 or below" in " ".join(shell("show", "r.json").stdout.split())
    shown = shell("audit", "risk.csv", *COLUMNS, "--lower-is-better").stdout
    assert "(yes at 0.5 or below)" in " ".join(shown.split())
    assert (
        "Higher scores are better for this rule"
        not in shell("audit", "risk.csv", *COLUMNS, "--rule", "r.json", "--lower-is-better").stderr
    )
    shell("fit", "s.csv", *COLUMNS, "-o", "up.json", "-q")
    refused = shell.error("audit", "s.csv", *COLUMNS, "--rule", "up.json", "--lower-is-better")
    assert refused.startswith("Higher scores are better for this rule; leave out --lower-is-better")


def test_gate_claims_no_more_than_the_data_show(inside):
    inside.write("two.csv", "p,g\n0.9,a\n0.1,b\n")
    done = inside("audit", "two.csv", *COLUMNS, "--fail-above", "0.02")
    said = " ".join(done.stdout.split())
    assert "Gate undecided: these rows cannot show whether the gap in the classifier's own decisions is" in said
    assert "is above 2.0 points: 100.0 points [" in said
    assert "a (1 row), b (1 row)" in done.stderr
    gate = ("audit", "scores.csv", *COLUMNS, "--rule", "rule.json", "--json")
    limit = json.loads(inside(*gate).stdout)["after"]["gap_interval"][1]
    passed = json.loads(inside(*gate, "--fail-unless-below", repr(limit)).stdout)["gate"]
    assert (passed["decisions"], passed["gap_interval"][1], passed["failed"]) == ("after", limit, False)
    assert passed["verdict"] == "within"
    open_ = json.loads(inside(*gate, "--fail-unless-below", repr(limit - 1e-9), code=3).stdout)["gate"]
    assert (open_["verdict"], open_["failed"]) == ("undecided", True)
    assert "--fail-unless-below" in inside.error(*gate, "--fail-unless-below", "2")


def test_undecided_gate_names_the_group_with_the_widest_limits(inside):
    gate = ("audit", "s.csv", *COLUMNS, "--fail-above", "0.3")
    inside.write("s.csv", rows(4000))
    assert "widest" not in inside(*gate).stdout
    inside.write("s.csv", rows(4000) + "".join(f"x{i},0.{i},,1\n" for i in range(30, 70)))
    text = " ".join(inside(*gate).stdout.split())
    assert "Gate undecided: these rows cannot show whether the gap" in text
    assert text.endswith("; the interval is widest for group (blank) (40 rows).")


def test_one_group_warns(shell):
    shell.write("s.csv", rows(groups=("a",)))
    assert "there is one group, a" in shell("audit", "s.csv", *COLUMNS).stderr


def test_decisions_are_audited_as_given(inside):
    inside("apply", "rule.json", "scores.csv", "-o", "o.csv", "--id", "id", "--key-file", "key.txt")
    text = inside("audit", "o.csv", "--score", "decision", "--group", "g").stdout
    assert "as given" in text
    assert "before" not in text


def test_both_fingerprints_are_in_the_json(inside):
    content = json.loads(inside("fit", "scores.csv", *COLUMNS, "-o", "r.json", "--json").stdout)
    rule = fairramp.Rule.load(inside.folder / "r.json")
    assert content["rule_fingerprint"] == rule.fingerprint
    assert content["data_fingerprint"] == rule.record.fingerprint


def test_frontier_names_its_target_rate(inside):
    columns = ("scores.csv", *COLUMNS, "--label", "y", "--max-gap", "0.1")
    assert "--target-rate accuracy" in " ".join(inside("frontier", *columns).stdout.split())


def test_wide_certificate_names_the_smallest_group(shell):
    shell.write("s.csv", rows() + "".join(f"x{i},0.{i},,1\n" for i in range(10, 50)))
    text = shell("fit", "s.csv", *COLUMNS, "-o", "r.json").stdout
    assert "The uncertainty is largest for group (blank) (40 fit rows)." in text


# Groups the rule does not know --------------------------------------------------------------------


def test_unseen_groups_are_listed_as_in_tables(inside):
    inside.write("new.csv", rows(groups=("A", "b", "")))
    said = inside.error("apply", "rule.json", "new.csv", "-o", "o.csv")
    assert "A (134 rows)" in said
    assert "(blank) (133 rows)" in said
    assert "'a' (for 'A')" in said
    assert "--unseen-group pooled or --unseen-group original" in said
    assert "o.csv" not in inside.files()


@pytest.mark.parametrize("policy", ["pooled", "original"])
def test_pooled_and_original_warn_about_unseen_groups(inside, policy):
    inside("fit", "scores.csv", *COLUMNS, "--unseen-group", policy, "-o", "rule.json", "--replace", "-q")
    inside.write("new.csv", rows(groups=("a", "b", "c")))
    done = inside("apply", "rule.json", "new.csv", "-o", "o.csv")
    assert "133 rows of groups not in the fit rows" in done.stderr
    assert "c (133 rows)" in done.stderr


def test_small_groups_warn(inside):
    inside.write("few.csv", rows(n=40))
    for command in (("audit", "few.csv", *COLUMNS), ("apply", "rule.json", "few.csv", "-o", "o.csv")):
        assert "fewer than 30 rows" in inside(*command).stderr


# Arguments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fit", "scores.csv", *COLUMNS), "--output is missing."),
        (
            ("fit", "scores.csv", *COLUMNS, "-o"),
            "-o has no value|--output is missing",
        ),  # second message: the oldest supported cyclopts
        (("audit", "scores.csv", "--score", "my", "score", "--group", "g"), "in quotes"),
        (("fit", "scores.csv", "--score", "p", "--gruop", "g"), "--gruop. Did you mean --group"),
        (("select", "scores.csv", "--score", "p", "--group", "g", "--place=9"), "--place. Did you mean --places"),
        (("adit", "scores.csv"), "Did you mean .audit"),
        (("audit", "scores.csv", *COLUMNS, "--gate", "0.02"), r"Unknown option: --gate\. See"),
        (("check", "rule.json", "scores.csv", "--gate"), r"Unknown option: --gate\. See"),
        (("audit", "scores.csv", *COLUMNS, "--fail-above", "0,02"), "use a decimal point: 0.02"),
        (("audit", "scores.csv", "--score", "p", "--group", "g,y"), "--group g --group y"),
        (("apply", "scores.csv", "rule.json", "-o", "o.csv"), "fairramp apply RULE DATA"),
        (("audit", "book.xlsx", *COLUMNS), "cannot be read as an Excel file"),
        (("audit", "short.csv", *COLUMNS), "line 3: it has 2 cells, but the header has 3"),
        (
            ("fit", "scores.csv", *COLUMNS, "--strata", "y", "--target-rate", "0.3", "-o", "r.json"),
            "With --strata, each",
        ),
    ],
)
def test_mistakes_are_named_with_a_remedy(inside, arguments, said):
    inside.write("book.xlsx", b"PK\x03\x04")
    inside.write("short.csv", "id,p,g\n1,0.5,a\n2,0.7\n")
    inside.write("three.csv", rows(groups=("a", "b", "c")))
    assert re.search(said, inside.error(*arguments))


@pytest.mark.parametrize("option", ["--fail", "--fail-below", "--fail-unless", "--fail-ratio=0.8", "--fail-abov"])
def test_an_unknown_gate_is_answered_with_all_gates(inside, option):
    """0.02 is a gap, and a ratio that every audit passes: a guess could turn a gate off."""
    said = inside.error("audit", "scores.csv", *COLUMNS, option, "0.02")
    assert said.startswith(
        f"Unknown option: {option.partition('=')[0]}. For the gap: --fail-above X, --fail-unless-below X. "
        "For the ratio: --fail-below-ratio X, --fail-unless-ratio X. See: "
    )


@pytest.mark.parametrize("option", ["--fail-above", "--fail-unless-below=0.02", "--max-gap"])
@pytest.mark.parametrize("command", ["check", "monitor"])
def test_a_check_with_a_limit_is_answered_with_the_audit_that_has_one(inside, command, option):
    said = inside.error(command, "rule.json", "my scores.csv", option, "0.02")
    assert f"{command} uses the rule's own limit. For a limit of yours: fairramp audit 'my scores.csv' " in said
    assert "--rule rule.json --fail-above 0.02. See: " in said
    assert "fairramp audit DATA --rule RULE --fail-above" in inside.error(command, option, "0.02")


def test_an_audit_of_a_rule_is_answered_with_the_order_of_its_arguments(inside):
    for files in (("rule.json", "scores.csv"), ("scores.csv", "rule.json")):
        assert inside.error("audit", *files, "--fail-above", "0.02").startswith(
            "audit takes DATA alone; pass the rule with --rule: fairramp audit scores.csv --rule rule.json. See: "
        )
    assert "in quotes" in inside.error("audit", "scores.csv", "scores.csv", *COLUMNS)


@pytest.mark.parametrize("limit", ["1", "1.0"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "scores.csv", *COLUMNS, "-o", "r.json", "--max-gap"),
        ("select", "scores.csv", *COLUMNS, "--places", "10", "--max-gap"),
        ("rows-needed", "--groups", "2", "--max-gap"),
        ("audit", "scores.csv", *COLUMNS, "--fail-above"),
        ("audit", "scores.csv", *COLUMNS, "--fail-unless-below"),
    ],
)
def test_one_point_is_not_taken_for_a_hundred(inside, arguments, limit):
    said = inside.error(*arguments, limit)
    assert said.startswith(f"{arguments[-1]} 1 means 100 points, which is no limit; 1 point is 0.01. See: ")


def test_file_without_rows_warns(inside):
    inside.write("none.csv", "id,p,g\n")
    assert "no rows" in inside("apply", "rule.json", "none.csv", "-o", "o.csv").stderr


def test_standard_streams_are_shown_as_a_dash(inside):
    done = inside("fit", "-", *COLUMNS, "-o", "-", stdin=rows().encode())
    assert "/dev/std" not in done.stderr
    content = json.loads(inside("audit", "-", *COLUMNS, "--json", stdin=rows().encode()).stdout)
    assert content["data"] == "-"


def test_messages_wrap_in_a_terminal(monkeypatch):
    from fairramp.cli.render import for_stderr

    text = "fairramp: " + "word " * 40 + "end."
    assert for_stderr(text) == text
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert max(map(len, for_stderr(text).split("\n"))) <= 80
    assert for_stderr(text).split() == text.split()


# Groups stored as floats --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "labels"), [("'nan'::DOUBLE", [0, 1, None]), ("NULL", [0, 1, None]), ("7.0", [0, 1, 7])]
)
def test_integers_stored_as_floats_are_groups(shell, group, labels):
    query = f"SELECT CASE i % 3 WHEN 2 THEN {group} ELSE (i % 3)::DOUBLE END AS g, (i * 37 % 101) / 101 AS p"
    duckdb.sql(f"COPY ({query} FROM range(600) t(i)) TO '{shell.folder / 'floats.parquet'}'")
    shell("fit", "floats.parquet", *COLUMNS, "-o", "rule.json")
    rule = fairramp.Rule.load(shell.folder / "rule.json")
    assert list(rule.groups) == labels
    table = duckdb.read_parquet(str(shell.folder / "floats.parquet")).arrow().read_all()
    expected = fairramp.fit_rule(table["p"].to_numpy(), table["g"].to_pandas())
    assert list(expected.groups) == labels
    assert rule.ramps == expected.ramps


@pytest.mark.parametrize("group", ["0.5", "'inf'::DOUBLE"])
def test_fractional_numbers_are_not_groups(shell, group):
    query = f"SELECT CASE i % 3 WHEN 2 THEN {group} ELSE (i % 3)::DOUBLE END AS g, (i * 37 % 101) / 101 AS p"
    duckdb.sql(f"COPY ({query} FROM range(600) t(i)) TO '{shell.folder / 'floats.parquet'}'")
    assert "numbers with decimals" in shell.error("fit", "floats.parquet", *COLUMNS, "-o", "rule.json")


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (("paid", "default"), "paid"),
        (("no default", "default"), "'no default'"),
        (("paid", "default", "late"), "the good one"),
    ],
)
def test_labels_for_the_bad_outcome_get_a_remedy(shell, words, remedy):
    lines = [
        f"{i / 300},{'ab'[i % 2]},{words[1] if i < 150 else words[::2][i % len(words[::2])]}" for i in range(300)
    ]
    shell.write("s.csv", "p,g,y\n" + "\n".join(lines) + "\n")
    columns = (*COLUMNS, "--label", "y", "--positive")
    assert f"pass --positive {remedy}." in shell("audit", "s.csv", *columns, "default").stderr
    assert "against" not in shell("audit", "s.csv", *columns, words[0]).stderr


# Mistakes users made ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fitted_on", "given", "line", "said"),
    [
        ("probability", "percent", "{}", "divide the scores by 100, or fit again with --scale percent"),
        ("probability", "logit", "-{}", "pass 1/(1 + exp(-score)), or fit again with --scale logit"),
        ("probability", "signed", "-0.{}", "pass scores of that scale, or fit again with --scale signed"),
        ("percent", "logit", "-{}", "pass 100/(1 + exp(-score)), or fit again with --scale logit"),
        ("percent", "probability", None, "multiply the scores by 100, or fit again with --scale probability"),
    ],
)
def test_scores_on_another_scale_get_a_conversion_hint(shell, fitted_on, given, line, said):
    shell.write("s.csv", rows())
    shell("fit", "s.csv", *COLUMNS, "--scale", fitted_on, "-o", "r.json", "-q")
    if line is not None:
        shell.write("new.csv", "p,g\n" + "".join(f"{line.format(10 + i)},{'ab'[i % 2]}\n" for i in range(60)))
        assert said in shell.error("apply", "r.json", "new.csv", "-o", "o.csv")
    assert said in shell.error("apply", "r.json", "s.csv", "-o", "o.csv", "--scale", given)


def test_commands_with_a_rule_take_its_scale(inside):
    for command in ("apply", "check", "monitor", "report"):
        told = " ".join(inside(command, "--help").stdout.replace("│", " ").split())
        assert "the rule stores the scale of its scores" in told
        assert "the default" not in told


def test_missing_scores_are_counted(shell):
    lines = rows().splitlines()
    for at, cell in ((66, ""), (70, " "), (90, "NA")):
        lines[at] = re.sub(r"^(\d+),[^,]*", rf"\1,{cell}", lines[at])
    shell.write("s.csv", "\n".join(lines) + "\n")
    said = shell.error("audit", "s.csv", *COLUMNS)
    assert "in 3 rows: empty in line 67, blank in line 71, 'NA' in line 91; correct them." in said


def test_audit_shows_the_cutoff_and_compares_the_extreme_groups(inside):
    for given, cutoff in (((), 0.5), (("--cutoff", "0.6"), 0.6)):
        found = json.loads(inside("audit", "scores.csv", *COLUMNS, *given, "--json").stdout)
        assert found["cutoff"] == cutoff
        said = " ".join(inside("audit", "scores.csv", *COLUMNS, *given).stdout.split())
        low, high = (100 * rate for rate in found["before"]["rate"])
        what = f"Selection rate (yes at {cutoff:g} or above)"
        assert f"{what}: b {high:.1f}% of 200 rows, a {low:.1f}% of 200 rows (" in said
    both = inside("audit", "scores.csv", "--rule", "rule.json", "--label", "y").stdout
    assert "Selection rate before (yes at 0.5 or above): b" in both
    assert "\nSelection rate after: " in both
    assert both.count("\nErrors of the rule:\n") == 1
    assert "Errors of" not in inside("audit", "scores.csv", *COLUMNS, "--label", "y").stdout


def test_columns_that_are_not_groups_fail_or_warn(shell):
    shell.write("s.csv", rows())
    for command in (("audit",), ("fit", "-o", "r.json", "--replace")):
        said = shell.error(command[0], "s.csv", "--score", "p", "--group", "p", *command[1:])
        assert said == "--group 'p' is the score column; pass a column with groups."
        doubted = shell(command[0], "s.csv", "--score", "p", "--group", "id", *command[1:]).stderr
        assert "400 groups in 400 rows: is this a group column?" in doubted
        assert "00000 (1 row), 00001 (1 row)" in doubted
        assert "is this" not in shell(command[0], "s.csv", *COLUMNS, *command[1:]).stderr


def test_fit_names_the_rule_it_replaced(shell):
    shell.write("s.csv", rows())
    fit = ("fit", "s.csv", *COLUMNS, "-o", "r.json", "--replace")
    assert shell(*fit).stderr == ""
    earlier = fairramp.Rule.load(shell.folder / "r.json").fingerprint
    assert shell(*fit).stderr == ""
    said = f"Replaced an earlier rule in r.json, fingerprint {earlier}\n"
    assert shell(*fit, "--max-gap", "0.1").stderr == said
    assert shell(*fit, "-q").stderr == ""


def test_shortened_tables_say_how_to_see_all(shell):
    shell.write("s.csv", rows(800, tuple(f"g{i:02}" for i in range(20))))
    assert "see all with: fairramp show r.json --all\n" in shell("fit", "s.csv", *COLUMNS, "-o", "r.json").stdout
    for command in (("audit", "s.csv", *COLUMNS), ("apply", "r.json", "s.csv", "-o", "o.csv")):
        cut, whole = shell(*command).stdout, shell(*command, "--all").stdout
        assert "of 20 lines; see all with --all\n" in cut
        assert "\ng10 " not in cut
        assert "…" not in whole
        assert "\ng10 " in whole


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("fit", "scores.csv", *COLUMNS, "-o", "r.json", "--max-gap", "2"),
            "got 2.0; 2 percentage points are 0.02.",
        ),
        (("fit", "scores.csv", *COLUMNS, "-o", "r.json", "--max-gap", "2%"), "2% is not a number; write 0.02."),
        (("audit", "scores.csv", *COLUMNS, "--fail-above", "5"), "5 percentage points are 0.05"),
        (("show", "scores.csv"), "not a rule; pass a file written by fairramp fit."),
        (("report", "scores.csv", "rule.json", "-o", "r.html"), "as in: fairramp report RULE DATA"),
        (
            ("show", "empty.json"),
            "truncated, perhaps by an interrupted copy: not valid JSON (the file is empty); copy it again",
        ),
        (
            ("fit", "scores.csv", *COLUMNS, "-o", "r.json", "--max-gap", "x"),
            "--max-gap must be a number, got 'x'.",
        ),
        (
            ("apply", "rule.json", "scores.csv", "-o", "o.csv", "--random-seed", "x"),
            "--random-seed must be an integer, got 'x'.",
        ),
        (
            ("apply", "rule.json", "scores.csv", "-o", "o.csv", "--random-seed=-1"),
            "--random-seed must be an integer of at least 0, got -1.",
        ),
        (("nonsense", "--help"), "See: fairramp --help"),
        (("audit", "sheet.csv", *COLUMNS), "sheet.csv is not CSV but a spreadsheet"),
        (
            ("export", "rule.json", "--to", "sql", "--dialect", "duckdb", "--id", "id", "--key-table", "key.txt"),
            "pass the name of a one-row table there that holds the key.",
        ),
    ],
)
def test_slips_are_named_with_a_remedy(inside, arguments, said):
    inside.write("empty.json", "")
    inside.write("sheet.csv", b"PK\x03\x04\x14\x00\xff\xfe")
    told = inside.error(*arguments)
    assert said in told
    assert not told.endswith("--help --help")


# Columns of the wrong kind ------------------------------------------------------------------------


def test_a_fit_to_decisions_asks_for_scores_and_an_audit_does_not(inside):
    lines = ["p,g", *(f"{i % 3 // 2},{'ab'[i % 2]}" for i in range(120))]
    inside.write("decisions.csv", "\n".join(lines))
    done = inside("fit", "decisions.csv", *COLUMNS, "-o", "r.json", "-q")
    assert (
        "warning: There are only two distinct scores, 0 and 1. Did you pass predict() instead of" in done.stderr
    )
    assert inside("audit", "decisions.csv", *COLUMNS, "-q").stderr == ""


def test_labels_that_cannot_be_seen_are_described(inside):
    lines = ["p,g", *(f"0.{i * 37 % 100:02},{('F', ' ', ' F', 'nan')[i % 4]}" for i in range(200))]
    inside.write("dirty.csv", "\n".join(lines))
    for command in (("fit", "-o", "d.json"), ("audit",)):
        done = inside(command[0], "dirty.csv", *COLUMNS, *command[1:])
        assert "warning: Some group labels differ only in spaces or case: ' F' and 'F'. Each is a" in done.stderr
        for shown in ('" " (a space)', '" F"', '"nan" (text)'):
            assert shown in done.stdout
    # Labels can be typed as they are and as they are shown.
    for typed in (" F", '" F"'):
        assert "group" in inside("explain", "d.json", "--score", "0.1", "--group", typed).stdout


@pytest.mark.parametrize("word", ["accurcy", "optmal"])
def test_a_misspelled_target_rate_is_answered_with_the_nearest_word(inside, word):
    near = {"accurcy": "accuracy", "optmal": "optimal"}[word]
    done = inside("fit", "scores.csv", *COLUMNS, "--target-rate", word, "-o", "r.json", code=2)
    assert done.stderr.endswith(f"got '{word}'; did you mean '{near}'?\n")
