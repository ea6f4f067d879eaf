"""Folders of evidence: impact ratios against pandas, and what an auditor finds in the files."""

import csv
import hashlib
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairramp
from fairramp.errors import FairrampError, InputError
from shell import KEY
from test_tables_written import HOSTILE, rendered

CLAIM = "does not claim that any law is complied with"


def people(n=3000, seed=5):
    """Applicants of whom some are few, and some of unknown sex or race."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"a{i}" for i in range(n)],
            "sex": rng.choice(["Female", "Male", "Not stated"], n, p=[0.45, 0.52, 0.03]),
            "race": rng.choice(["A", "B", "C", "D", ""], n, p=[0.5, 0.3, 0.17, 0.01, 0.02]),
        }
    )
    frame["p"] = np.round(rng.beta(2, 3 - (frame.sex == "Male") - 0.5 * (frame.race == "A"), n), 3)
    frame["y"] = (rng.random(n) < frame.p).astype(int)
    return frame


def expected(frame, h, columns, unknown=("Not stated", "")):
    """The table by pandas: people, selected, rate, ratio, and the ratio without small categories."""
    known = frame.assign(h=h)[~frame[columns].isin(unknown).any(axis=1)]
    found = known.groupby(columns).h.agg(["size", "sum", "mean"])
    small = found["size"] < 0.02 * len(frame)
    found["ratio"] = found["mean"] / found["mean"].max()
    found["without"] = (found["mean"] / found["mean"][~small].max()).where(~small)
    found["small"] = np.where(small, "yes", "no")
    return found.reset_index()


def assert_same(table, frame, h, columns, rate="selection_rate", selected="selected", **more):
    want = expected(frame, np.asarray(h, dtype=float), columns, **more)
    names = (
        want[columns[0]].str.cat([want[c] for c in columns[1:]], sep=" / ") if columns[1:] else want[columns[0]]
    )
    assert list(table["category"]) == list(names)
    np.testing.assert_array_equal(table["people"], want["size"])
    np.testing.assert_allclose(table["share_of_people"], want["size"] / len(frame), rtol=1e-12)
    np.testing.assert_allclose(table[selected], want["sum"], rtol=1e-12)
    np.testing.assert_allclose(table[rate], want["mean"], rtol=1e-12)
    np.testing.assert_allclose(table["impact_ratio"], want["ratio"], rtol=1e-12)
    np.testing.assert_allclose(table["impact_ratio_without_small"].astype(float), want["without"], rtol=1e-12)
    assert list(table["below_2_percent"]) == list(want["small"])


def part(table, **where):
    frame = table.to_pandas()
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return frame.reset_index(drop=True)


@pytest.fixture(scope="module")
def adult():
    frame = people()
    rule = fairramp.fit_rule(frame.p, frame[["sex"]], max_gap=0.02, ramp_width=0.05)
    return frame, rule


def made(adult, **more):
    frame, rule = adult
    given = {
        "rule": rule,
        "categories": frame[["sex", "race"]],
        "unknown": ["Not stated"],
        "report": False,
        **more,
    }
    return fairramp.evidence(frame.p, frame[["sex"]], frame.y, **given)


# Numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [["sex"], ["race"], ["sex", "race"]])
def test_impact_ratios_are_those_of_pandas(adult, columns):
    frame, rule = adult
    found = made(adult, ids=frame.id, key=KEY)
    chances = rule.probabilities(frame.p, frame[["sex"]])
    assert ((chances > 0) & (chances < 1)).sum() > 0
    for name, h in {
        "classifier": frame.p >= 0.5,
        "rule": chances,
        "rule, as drawn": rule.decide(frame.p, frame[["sex"]], ids=frame.id, key=KEY),
    }.items():
        assert_same(part(found.impact_ratios, decisions=name, by=" / ".join(columns)), frame, h, columns)
    above = frame.p > frame.p.median()
    scored = part(found.scoring_rates, by=" / ".join(columns))
    assert_same(scored, frame, above, columns, rate="scoring_rate", selected="above_median")


@pytest.mark.parametrize(
    "settings",
    [
        {"min_ratio": 0.9},
        {"criterion": "equal_opportunity", "max_gap": 0.05},
        {"criterion": "equalized_odds", "max_gap": 0.05},
        {"combine": "each", "max_gap": 0.05},
        {"higher_is_better": False, "cutoff": 0.4},
        {"scale": "percent"},
        {"scale": "logit"},
        {"scale": "real", "cutoff": 0.1},
        {"strata": "h"},
        {"probabilities": True},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The group probabilities are poor")
def test_every_kind_of_rule_has_evidence(settings):
    frame = people(6000)
    frame["h"] = np.where(np.arange(len(frame)) % 3, "x", "y")
    settings = dict(settings)
    scale, scores = settings.get("scale"), frame.p.clip(0.001, 0.999)
    scores = {"percent": 100 * scores, "logit": np.log(scores / (1 - scores))}.get(scale, scores)
    groups = frame[["sex", "h"]] if settings.get("combine") else frame[["sex"]]
    strata = frame.h if settings.pop("strata", None) else None
    more, chances = {}, groups
    if settings.pop("probabilities", False):
        q = {name: 0.1 + 0.7 * (frame.sex == name).to_numpy() for name in ("Female", "Male", "Not stated")}
        more["group_probabilities"] = chances = fairramp.GroupProbabilities(q)
    y = frame.y if settings.get("higher_is_better", True) else 1 - frame.y
    labels = y if "criterion" in settings else None
    rule = fairramp.fit_rule(scores, chances, labels, strata=strata, **settings)
    found = fairramp.evidence(
        scores,
        groups,
        y,
        rule=rule,
        strata=strata,
        categories=frame[["sex", "race"]],
        unknown=["Not stated"],
        report=False,
        **more,
    )
    h = rule.probabilities(scores, chances, strata)
    assert_same(part(found.impact_ratios, decisions="rule", by="race"), frame, h, ["race"])
    own = scores <= rule.cutoff if not rule.higher_is_better else scores >= rule.cutoff
    assert_same(part(found.impact_ratios, decisions="classifier", by="sex"), frame, own, ["sex"])
    assert "None" not in found.files["annex-iv.md"].replace("None of", "")
    assert "nan" not in found.files["annex-iv.md"]


def test_lower_scores_can_be_better(adult):
    frame, _ = adult
    found = fairramp.evidence(frame.p, frame[["sex"]], higher_is_better=False, cutoff=0.3, unknown=["Not stated"])
    assert_same(part(found.impact_ratios, decisions="classifier"), frame, frame.p <= 0.3, ["sex"])
    scored = found.scoring_rates.to_pandas()
    assert_same(scored, frame, frame.p < frame.p.median(), ["sex"], rate="scoring_rate", selected="below_median")


def test_decisions_may_be_given_and_have_no_scoring_rates(adult):
    frame, _ = adult
    decisions = (frame.p >= 0.6).astype(int)
    found = fairramp.evidence(decisions, frame[["sex", "race"]], unknown=["Not stated"])
    assert_same(part(found.impact_ratios, by="sex / race"), frame, decisions, ["sex", "race"])
    assert found.scoring_rates is None
    assert "scoring-rates.csv" not in found.files
    assert "## Decisions as given" in found.files["impact-ratios.md"]


@given(
    st.lists(st.tuples(st.sampled_from("ab?"), st.sampled_from("xyz"), st.booleans()), min_size=1, max_size=60)
)
def test_people_are_counted_once_or_are_unknown(rows):
    sex, race, yes = (list(column) for column in zip(*rows, strict=True))
    if not set(sex) - {"?"}:
        return
    unknown = ["?"] if "?" in sex else []
    found = fairramp.evidence(list(map(int, yes)), {"sex": sex, "race": race}, unknown=unknown)
    table = found.impact_ratios.to_pandas()
    unknown = json.loads(found.files["provenance.json"])["people_of_unknown_category"]
    for by, n in unknown.items():
        own = table[table.by == by]
        assert own.people.sum() + n == len(rows)
        ratios = own.impact_ratio.to_numpy(dtype=float)
        assert np.isnan(ratios).all() or (ratios.max() == 1 and ratios.min() >= 0)
    assert unknown["sex"] == sex.count("?") == unknown["sex / race"]
    assert unknown["race"] == 0


def test_small_categories_are_below_two_percent_of_all_people():
    groups = ["a"] * 980 + ["b"] * 20 + ["c"] * 19
    decisions = [1, 0] * 490 + [1] * 39
    table = fairramp.evidence(decisions, {"g": groups}).impact_ratios
    assert list(table["below_2_percent"]) == ["no", "yes", "yes"]
    table = fairramp.evidence(decisions[:1000], {"g": groups[:1000]}).impact_ratios
    assert list(table["below_2_percent"]) == ["no", "no"]  # 20 of 1,000 are 2%
    np.testing.assert_allclose(table["impact_ratio"], [0.5, 1.0])


# The folder --------------------------------------------------------------------------------------


def test_findings_about_categories_too_small_to_judge_say_so():
    few, scores = ["a"] * 25 + ["b"] * 28 + ["zz"], np.resize([0.2, 0.8], 54)
    why = "Fewer than two categories have at least 30 people, so these rates can be far apart by chance alone."
    only = fairramp.evidence(scores, few, report=False)
    index, page = only.files["README.md"], only.files["impact-ratios.md"]
    assert "Fewer than two categories have at least 30 people, so the main findings compare all of them" in index
    assert "compare categories with at least 30" not in index
    assert why in page
    assert "fewer than two have at least 30 people" in only.files["annex-iv.md"]
    columns = {"few": few + ["a"] * 6, "many": ["x"] * 30 + ["y"] * 30}
    both = fairramp.evidence(
        np.resize([0.2, 0.8, 0.9], 60), columns["many"], categories=columns, unknown=["b"], report=False
    )
    index = both.files["README.md"]
    assert "The main findings compare categories with at least 30 people" in index
    assert "Fewer than two categories by few, few / many have at least 30 people" in index


def test_the_same_input_gives_the_same_files_and_their_checksums_hold(adult, tmp_path):
    first, second = made(adult, report=True), made(adult, report=True)
    assert first.files == second.files
    first.save(tmp_path / "pack")
    names = sorted(path.name for path in (tmp_path / "pack").iterdir())
    assert names == sorted(first.files)
    sums = dict(reversed(line.split("  ")) for line in first.files["SHA256SUMS"].splitlines())
    assert set(sums) == set(names) - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((tmp_path / "pack" / name).read_bytes()).hexdigest() == digest
    assert fairramp.Rule.load(tmp_path / "pack" / "rule.json") == adult[1]


def test_every_page_claims_nothing_and_the_index_names_every_file(adult):
    files = made(adult, report=True).files
    for name, text in files.items():
        if name.endswith((".md", ".html")) or name in ("audit.json", "certificate.json", "provenance.json"):
            assert CLAIM in text, name
    for name in files.keys() - {"README.md"}:
        assert f"| {name} |" in files["README.md"]
    text = " ".join(files[name] for name in ("README.md", "impact-ratios.md", "annex-iv.md"))
    assert not re.search(
        r"\b(is|are|was) compliant|complies with|in compliance|meets the (law|requirements)", text
    )


def test_json_files_hold_the_audit_and_the_certificate(adult):
    frame, rule = adult
    files = made(adult).files
    found = json.loads(files["audit.json"])
    found.pop("note")
    assert found == fairramp.audit(frame.p, frame[["sex"]], frame.y, rule=rule).to_dict() | {
        "groups": found["groups"],
        "rows": found["rows"],
    }
    limits = json.loads(files["certificate.json"])
    assert limits["estimated"] == rule.certificate().estimated
    assert json.loads(files["provenance.json"])["is_fit_data"] is True


def test_annex_has_all_points_and_a_question_for_each(adult):
    text = made(adult).files["annex-iv.md"]
    points = text.split("\n## ")[1:]
    numbers = [point.split(" ")[0] for point in points]
    assert sorted(set(numbers)) == [str(i) for i in range(1, 10)]
    letters = re.findall(r"^## (\d) \((\w)\)", text, re.MULTILINE)
    assert {b for a, b in letters if a == "2"} == set("abcdefgh")
    assert all("- [ ] " in point for point in points)
    assert "fitted to 3,000 rows" in text
    none = fairramp.evidence([0, 1], ["a", "b"]).files["annex-iv.md"]
    assert none.count("\n## ") == len(points)
    assert "None" not in text + none
    assert "The rule" not in none


def test_a_date_is_written_only_if_it_is_given(adult):
    with_date, without = made(adult, date="2026-11-18"), made(adult)
    assert "Date: 2026-11-18" in with_date.files["README.md"]
    assert json.loads(without.files["provenance.json"])["date"] is None
    assert not re.search(r"20\d\d-\d\d-\d\d", "".join(without.files.values()))


@pytest.mark.filterwarnings("ignore:Some group labels differ only")
def test_nothing_in_the_data_is_markup_or_a_formula():
    names = [*HOSTILE, "=cmd()", "{{ x }}", "a|b", "`x`", ":tada:", "<img src=x>"] * 2
    found = fairramp.evidence(
        [i % 2 for i in range(len(names))],
        {"=g|<b>": names, "h": ["x"] * len(names)},
        title="<b>t</b>\n# x",
        owner="@me|`",
    )
    for name in ("impact-ratios.md", "annex-iv.md", "README.md"):
        tags = {tag for tag, *_ in rendered(found.files[name]).elements}
        assert tags <= {"h1", "h2", "h3", "p", "ul", "li", "strong", "blockquote", "code", "table", "thead"} | {
            *("tbody", "tr", "th", "td")
        }
        assert not re.search(r"\{[{%#]|[}%#]\}|:tada:|@me", found.files[name])
    for row in csv.reader(io.StringIO(found.files["impact-ratios.csv"], newline="")):
        for cell in row:
            assert not re.match(r"\s*[=+@＝＋＠]", cell.lstrip("\0\ufeff")), cell
            assert not (cell.startswith("-") and not re.fullmatch(r"-?[\d.e-]+", cell))


def test_an_existing_folder_is_never_touched(adult, tmp_path):
    found = made(adult)
    (tmp_path / "pack").mkdir()
    (tmp_path / "file").write_text("x")
    for name in ("pack", "file"):
        with pytest.raises(FairrampError, match="already exists"):
            found.save(tmp_path / name)
    with pytest.raises(FairrampError, match="does not exist"):
        found.save(tmp_path / "no" / "pack")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pack"]
    assert not list((tmp_path / "pack").iterdir())


def test_a_folder_that_cannot_be_written_whole_is_not_written(tmp_path):
    from fairramp.data.files import write_folder

    with pytest.raises(OSError, match="Errno"):
        write_folder(tmp_path / "pack", {"a.md": "x", "b" * 300: "y"}, "the evidence")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"ids": ["x"]}, "`ids` and `key`"),
        ({"unknown": "Not stated"}, "`unknown` must be a list"),
        ({"categories": {"g": ["", None, ""]}}, "no known value in 'g'"),
        ({"categories": {"g": [True, 1, 0]}}, "`categories` mixes booleans and numbers"),
        ({"categories": {"g": ["a"]}}, "`categories` has 1 rows but `scores` has 3"),
    ],
)
def test_bad_input_is_refused(more, why):
    with pytest.raises(InputError, match=re.escape(why)):
        fairramp.evidence([0, 1, 1], ["a", "b", "b"], **more)


# The command -------------------------------------------------------------------------------------


def test_the_command_writes_what_the_function_makes(adult, shell):
    frame, _ = adult
    shell.write("s.csv", frame.to_csv(index=False))
    shell.write("key.txt", KEY)
    (shell.folder / "key.txt").chmod(0o600)
    shell("fit", "s.csv", "--score", "p", "--group", "sex", "--max-gap", "0.02", "-o", "rule.json", "-q")
    columns = ("--category", "sex", "--category", "race", "--unknown", "Not stated", "--label", "y")
    asked = ("evidence", "s.csv", "--rule", "rule.json", *columns, "--id", "id", "--key-file", "key.txt")
    content = json.loads(shell(*asked, "-o", "pack", "--json").stdout)
    shell(*asked, "-o", "again", "-q")
    files = {path.name: path.read_bytes() for path in (shell.folder / "pack").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (shell.folder / "again").iterdir()}
    assert sorted(files) == content["files"]
    assert files["rule.json"] == (shell.folder / "rule.json").read_bytes()
    assert all(KEY.encode() not in text for text in files.values())
    rule = fairramp.Rule.load(shell.folder / "rule.json")
    found = made((frame, rule), ids=frame.id, key=KEY)
    written = pd.read_csv(io.BytesIO(files["impact-ratios.csv"]))
    pd.testing.assert_frame_equal(written, found.impact_ratios.to_pandas(), check_dtype=False)
    digest = hashlib.sha256((shell.folder / "s.csv").read_bytes()).hexdigest()
    assert json.loads(files["provenance.json"])["source_sha256"] == {"s.csv": digest}
    assert "already exists" in shell.error(*asked, "-o", "pack")


def test_the_command_needs_no_rule(adult, shell):
    frame, _ = adult
    shell.write("s.csv", frame.to_csv(index=False))
    done = shell("evidence", "s.csv", "--score", "p", "--group", "sex", "--group", "race", "-o", "pack")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Saved 8 files to pack. Start with README.md." in done.stdout
    shell("evidence", "s.csv", "--score", "p", "--category", "sex", "--category", "race", "-o", "same", "-q")
    names = [path.name for path in (shell.folder / "pack").iterdir()]
    assert [shell.read(f"pack/{name}") for name in names] == [shell.read(f"same/{name}") for name in names]


def test_an_error_about_a_category_names_its_option(adult, shell):
    frame, _ = adult
    shell.write("s.csv", frame.to_csv(index=False))
    asked = ("evidence", "s.csv", "--score", "p", "--group", "sex", "-o", "pack")
    assert "no column 'gender' (--category)" in shell.error(*asked, "--category", "gender")
    assert "pass --category sex --category race" in shell.error(*asked, "--category", "sex,race")
    assert "no column 'gender' (--group)" in shell.error(*asked, "--group", "gender")


def test_numbers_in_csv_are_the_groups_of_a_rule_that_has_numbers(shell):
    scores, groups = [0.2, 0.7, 0.4, 0.9] * 50, [1, 1, 2, 2] * 50
    rule = fairramp.fit_frame(pd.DataFrame({"p": scores, "g": groups}), score="p", group="g", max_gap=0.1)
    rule.save(shell.folder / "rule.json")
    lines = [f"{p},{g},{'xy'[i % 2]}" for i, (p, g) in enumerate(zip(scores, groups, strict=True))]
    shell.write("s.csv", "p,g,h\n" + "\n".join(lines) + "\n")
    shell("evidence", "s.csv", "--rule", "rule.json", "--category", "g", "--category", "h", "-o", "pack", "-q")
    table = pd.read_csv(shell.folder / "pack" / "impact-ratios.csv")
    assert list(table[table.by == "g"].category) == ["1", "2", "1", "2"]


def test_unknown_values_of_a_column_of_numbers_are_given_as_text(shell):
    frame = pd.DataFrame({"p": [0.2, 0.7, 0.9] * 50, "g": [1, 2, 9] * 50})
    frame.to_parquet(shell.folder / "s.parquet")
    shell("evidence", "s.parquet", "--score", "p", "--group", "g", "--unknown", "9", "-o", "pack", "-q")
    assert list(pd.read_csv(shell.folder / "pack" / "impact-ratios.csv").category) == [1, 2]
    assert json.loads(shell.read("pack/provenance.json"))["people_of_unknown_category"] == {"g": 50}


def test_an_unknown_value_that_nobody_has_warns():
    with pytest.warns(
        fairramp.FairrampWarning, match="No category has the value 'not stated', which `unknown` lists"
    ):
        found = fairramp.evidence([0, 1, 1], ["Not stated", "b", "b"], unknown=["not stated", "b"])
    assert list(found.impact_ratios["category"]) == ["Not stated"]


@pytest.mark.parametrize("data", ["s", "s/**/*.csv"])
def test_files_of_one_name_in_several_folders_have_a_checksum_each(shell, data):
    digests = {}
    for year, text in {"2025": "p,g\n0.2,a\n0.7,b\n", "2026": "p,g\n0.9,a\n0.1,b\n"}.items():
        (shell.folder / "s" / year).mkdir(parents=True)
        shell.write(f"s/{year}/part.csv", text)
        digests[f"{year}/part.csv"] = hashlib.sha256(text.encode()).hexdigest()
    shell("evidence", data, "--score", "p", "--group", "g", "-o", "pack", "-q")
    assert json.loads(shell.read("pack/provenance.json"))["source_sha256"] == digests


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--id", "id"), "--id needs --rule"),
        (("--category", "nope"), "'nope'"),
        (("-o", "s.csv"), "already exists"),
        (("-o", "no/pack"), "does not exist"),
    ],
)
def test_the_command_says_what_is_wrong_and_writes_nothing(adult, shell, options, why):
    frame, _ = adult
    shell.write("s.csv", frame.head(100).to_csv(index=False))
    output = () if "-o" in options else ("-o", "pack")
    assert why in shell.error("evidence", "s.csv", "--score", "p", "--group", "sex", *output, *options)
    assert shell.files() == ["s.csv"]
