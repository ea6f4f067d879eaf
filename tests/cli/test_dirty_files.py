"""Rows that cannot be used: one message with all of them, in the lines of the file, or left out on request."""

import csv
import gzip
import io
import json
import re

import duckdb
import pytest

from shell import Inside, rows

COLUMNS = ("--score", "p", "--group", "g")
DRAW = ("--id", "id", "--key-file", "key.txt")
LABELED = (*COLUMNS, "--label", "y")


@pytest.fixture
def shell(fitted):
    """Runs in this process, in a folder with a rule for the groups a and b, a key and scores.csv."""
    return Inside(fitted.folder)


def dirty(cells, n=400, groups=("a", "b")):
    """CSV in which some lines, counted from 1, which is the header, are others."""
    lines = rows(n, groups).splitlines()
    for line, text in cells.items():
        lines[line - 1] = text
    return "\n".join(lines) + "\n"


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("", "empty in line 8; correct it. To leave out this row, pass --skip-invalid."),
        ("n/a", "'n/a' in line 8; correct it. To leave"),
        ("  ", "blank in line 8; correct it. To leave"),
        ("high", "'high' in line 8; correct it. To leave"),
        ("inf", "'inf' in line 8; correct it. To leave"),
        ("1.7", "'1.7' in line 8; correct it. To leave"),
        ("-0.1", "'-0.1' in line 8; correct it. To leave"),
        ('"0,45"', "'0,45' in line 8; use one decimal mark in all rows, or pass --decimal ',' if it is a comma."),
        ("45%", "'45%' in line 8; if they are percentages, pass --scale percent. To leave"),
    ],
)
def test_a_bad_score_is_shown_as_it_is_with_its_line(shell, cell, said):
    shell.write("d.csv", dirty({8: f"00006,{cell},a,1"}))
    told = shell.error("audit", "d.csv", *COLUMNS)
    wrong = "is missing" if cell.strip() in ("", "n/a") else "is not a number between 0 and 1"
    assert told.startswith(f"--score 'p' in d.csv {wrong} in 1 row: ")
    assert said in told


@pytest.mark.parametrize(
    ("name", "cell", "said"),
    [
        (
            "y",
            "maybe",
            "--label 'y' in d.csv is neither yes nor no (1 or 0) in 1 row: 'maybe' in line 5; use 1 for",
        ),
        ("y", "2", "--label 'y' in d.csv is neither yes nor no (1 or 0) in 1 row: '2' in line 5; use 1 for"),
        ("y", "0.5", "is neither yes nor no (1 or 0) in 1 row: '0.5' in line 5"),
        ("y", "", "is missing in 1 row: empty in line 5; correct it. To leave out this row"),
        ("w", "-1", "--weight 'w' in d.csv is not a number of at least 0 in 1 row: '-1' in line 5; correct it."),
        (
            "w",
            "inf",
            "--weight 'w' in d.csv is not a number of at least 0 in 1 row: 'inf' in line 5; correct it.",
        ),
        ("w", "", "--weight 'w' in d.csv is missing in 1 row: empty in line 5; correct it."),
    ],
)
def test_bad_labels_and_weights_are_shown_with_their_lines(shell, name, cell, said):
    lines = [f"{line},w" if i == 0 else f"{line},1" for i, line in enumerate(rows(60).splitlines())]
    parts = lines[4].split(",")
    parts[3 if name == "y" else 4] = cell
    lines[4] = ",".join(parts)
    shell.write("d.csv", "\n".join(lines) + "\n")
    told = shell.error("fit", "d.csv", *LABELED, "--weight", "w", "-o", "r.json")
    assert said in told
    assert "r.json" not in shell.files()


BAD = {
    4: "00002,,a,1",
    8: "00006,n/a,a,1",
    10: '00008,"0,45",a,1',
    21: "00019,1.7,b,maybe",
    31: ",inf,b,",
    41: "00039,0.4,c,1",
    51: "00049,-0.2,c,0",
}


def test_all_bad_cells_are_in_one_message(shell):
    shell.write("d.csv", dirty(BAD))
    assert shell.error("audit", "d.csv", *LABELED) == (
        "--score 'p' in d.csv is missing in 2 rows and is not a number between 0 and 1 in 4 rows: empty in "
        "line 4, 'n/a' in line 8, '0,45' in line 10, …; --label 'y' is missing in 1 row and is neither yes nor "
        "no (1 or 0) in 1 row: 'maybe' in line 21, empty in line 31; use one decimal mark in all rows, or pass "
        "--decimal ',' if it is a comma; use 1 for yes and 0 for no, or pass --positive with the label that "
        "means yes. To leave out these 6 rows, pass "
        "--skip-invalid."
    )
    told = shell.error("apply", "rule.json", "d.csv", *DRAW, "-o", "o.csv")
    assert "--id 'id' in d.csv is missing in 1 row: empty in line 31; --score 'p' is missing in 2 rows" in told
    assert "; --group 'g' is a group not in the fit rows in 2 rows: 'c' in line 41, 'c' in line 51; " in told
    assert told.endswith("To leave out these 7 rows, pass --skip-invalid.")


def test_rows_of_unknown_groups_are_shown_with_the_remedies(shell):
    shell.write("d.csv", dirty({41: "00039,0.4,c,1", 51: "00049,0.2,,0"}))
    told = shell.error("apply", "rule.json", "d.csv", "-o", "o.csv")
    assert "(blank) (1 row), c (1 row)" in told
    assert told.endswith(
        "or fit again with --unseen-group pooled or --unseen-group original; or pass --unseen-group null to "
        "leave their decisions empty, or --skip-invalid to leave out their rows."
    )
    told = shell.error("check", "rule.json", "d.csv")
    assert ", first in line 41; fitted groups: a, b. " in told
    assert told.endswith("; or pass --skip-invalid to leave out their rows.")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_lines_are_right_after_quoted_line_breaks_and_blank_lines(shell, end, packed):
    text = '\n"i\nd",p,g\n1,0.5,a\n"2\n\n3",0.5,b\n\n4,x,a\n' + "5,0.5,b\n" * 20
    data = ("\ufeff" + text.replace("\n", end)).encode()
    name = "d.csv.gz" if packed else "d.csv"
    shell.write(name, gzip.compress(data) if packed else data)
    # Found by counting: the text split at line ends.
    line = next(i for i, one in enumerate(text.split("\n"), 1) if one.startswith("4,x"))
    assert f"'x' in line {line};" in shell.error("audit", name, *COLUMNS)


def test_rows_of_other_formats_are_numbered(shell):
    shell.write("d.csv", dirty({8: "00006,,a,1"}))
    for name, how in (("d.parquet", ""), ("d.jsonl", "(FORMAT json)")):
        duckdb.sql(
            f"COPY (SELECT id, TRY_CAST(p AS DOUBLE) AS p, g FROM read_csv('{shell.folder}/d.csv', "
            f"all_varchar=true)) TO '{shell.folder}/{name}' {how}"
        )
        assert f"in {name} is missing in 1 row: missing in row 7;" in shell.error("audit", name, *COLUMNS)


def test_the_file_of_a_folder_is_named(shell):
    (shell.folder / "csv").mkdir()
    (shell.folder / "parquet").mkdir()
    for i, cells in enumerate(({}, {8: "00006,,a,1"})):
        shell.write(f"csv/{i}.csv", dirty(cells, 60))
        duckdb.sql(
            f"COPY (SELECT id, TRY_CAST(p AS DOUBLE) AS p, g FROM read_csv('{shell.folder}/csv/{i}.csv', "
            f"all_varchar=true)) TO '{shell.folder}/parquet/{i}.parquet'"
        )
    assert "empty in line 8 of csv/1.csv;" in shell.error("audit", "csv", *COLUMNS)
    assert "missing in row 7 of parquet/1.parquet;" in shell.error("audit", "parquet", *COLUMNS)
    (shell.folder / "json").mkdir()
    for i, score in enumerate(("0.5", "null")):
        lines = [f'{{"p": {score if j == 6 else 0.5}, "g": "{"ab"[j % 2]}"}}\n' for j in range(60)]
        shell.write(f"json/{i}.jsonl", "".join(lines))
    assert "missing in row 7 of json/1.jsonl;" in shell.error("audit", "json", *COLUMNS)


@pytest.mark.parametrize("target", ["o.csv", "o.parquet", "o.jsonl", "o.csv.gz"])
def test_apply_leaves_rows_out_and_writes_them_with_reasons(shell, target):
    shell.write("d.csv", dirty(BAD))
    done = shell("apply", "rule.json", "d.csv", *DRAW, "-o", target, "--skip-invalid", "--json", code=4)
    rejects = target.replace("o.", "o-rejected.")
    assert json.loads(done.stdout)["rejected"] == [{"rows": 7, "undecided": 0, "of": 400, "file": rejects}]
    assert "warning: 7 of 400 rows were left out: --id 'id' is missing in 1 row; --score 'p'" in done.stderr
    assert done.stderr.count(f"See {rejects}.") == 1
    lines = dirty(BAD).splitlines()
    shell.write("clean.csv", "\n".join(line for i, line in enumerate(lines, 1) if i not in BAD) + "\n")
    shell("apply", "rule.json", "clean.csv", *DRAW, "-o", f"clean-{target}")
    read = (f"SELECT * FROM '{shell.folder}/{name}'" for name in (target, f"clean-{target}", rejects))
    found, expected, left = (duckdb.sql(query).fetchall() for query in read)
    assert found == expected
    assert len(found) == 393
    assert [row[-1] for row in left] == [
        "'p' is empty",
        "'p' is missing (n/a)",
        *(f"'p' is '{value}', not a number between 0 and 1" for value in ("0,45", "1.7")),
        "'id' is empty; 'p' is 'inf', not a number between 0 and 1",
        "'g' is 'c', a group not in the fit rows",
        "'p' is '-0.2', not a number between 0 and 1; 'g' is 'c', a group not in the fit rows",
    ]


def test_rejected_rows_keep_their_cells(shell):
    shell.write("d.csv", dirty(BAD))
    shell("apply", "rule.json", "d.csv", *DRAW, "-o", "o.csv", "--skip-invalid", code=4)
    header, *lines = shell.read("o-rejected.csv").splitlines()
    assert header == "id,p,g,y,reason"
    for line, original in zip(lines, BAD.values(), strict=True):
        assert line.startswith(f"{original},")


@pytest.mark.parametrize("target", ["o.csv", "o.parquet"])
@pytest.mark.parametrize("draw", [DRAW, ("--random-seed", "1"), ()])
def test_unseen_group_null_keeps_the_rows_without_a_decision(shell, target, draw):
    shell.write("d.csv", dirty({41: "00039,0.4,c,1", 51: "00049,0.2,,0"}))
    done = shell("apply", "rule.json", "d.csv", *draw, "-o", target, "--unseen-group", "null", "--json", code=4)
    said = json.loads(done.stdout)
    assert said["rows"] == 400
    assert [(row["group"], row["rows"]) for row in said["groups"]] == [("a", 200), ("b", 198)]
    wrong = "is missing in 1 row and is a group not in the fit rows in 1 row"
    assert f"2 of 400 rows are in the output without a decision: --group 'g' {wrong}." in done.stderr
    found = duckdb.sql(f"SELECT * FROM '{shell.folder}/{target}'").fetchall()
    assert len(found) == 400
    assert [i for i, row in enumerate(found, 2) if row[-1] is None] == [41, 51]
    assert [row[4] for row in found if row[-1] is None] == [None, None]
    assert len(duckdb.sql(f"SELECT * FROM '{shell.folder}/{target.replace('.', '-rejected.')}'").fetchall()) == 2


def test_unseen_group_null_does_not_hide_other_faults_or_the_policy_of_the_rule(shell):
    shell.write("d.csv", dirty(BAD))
    null = ("--unseen-group", "null")
    assert "--score 'p' in d.csv is missing in 2 rows and is not a number" in shell.error(
        "apply", "rule.json", "d.csv", "-o", "o.csv", *null
    )
    shell("apply", "rule.json", "d.csv", "-o", "o.csv", *null, "--skip-invalid", code=4)
    assert [row["g"] for row in table(shell.read("o.csv")) if row["probability"] == ""] == ["c"]
    assert len(table(shell.read("o.csv"))) == 394
    shell("fit", "scores.csv", *COLUMNS, "--unseen-group", "pooled", "-o", "pooled.json", "-q")
    told = shell.error("apply", "pooled.json", "d.csv", "-o", "o.csv", *null)
    assert "the rule decides groups that were not in the fit rows (--unseen-group pooled of its fit)" in told


@pytest.mark.parametrize("mixed", [True, False])
def test_unseen_values_of_several_columns(shell, mixed):
    lines = [f"{i},0.{i % 97:02},{'ab'[i % 2]},{'uv'[i // 2 % 2]}" for i in range(200)]
    shell.write("two.csv", "\n".join(["id,p,g,h", *lines]) + "\n")
    combine = ("--combine", "each") if mixed else ()
    names = ("--score", "p", "--group", "g", "--group", "h")
    shell("fit", "two.csv", *names, *combine, "-o", "two.json", "-q")
    lines[5], lines[9] = "5,0.5,b,w", "9,0.5,c,w"
    shell.write("new.csv", "\n".join(["id,p,g,h", *lines]) + "\n")
    shell("apply", "two.json", "new.csv", "-o", "o.csv", "--unseen-group", "null", code=4)
    assert [i for i, row in enumerate(table(shell.read("o.csv"))) if row["probability"] == ""] == [5, 9]
    shell("apply", "two.json", "new.csv", "-o", "o.csv", "--skip-invalid", code=4)
    assert len(table(shell.read("o.csv"))) == 198
    assert "first in line 7" in shell.error("apply", "two.json", "new.csv", "-o", "o.csv")


def test_a_missing_value_of_several_columns_is_in_the_reason(shell):
    people = [{"id": i, "p": i % 97 / 100, "g": "FM"[i % 2], "b": i % 3 == 0} for i in range(400)]
    shell.write("two.jsonl", "".join(f"{json.dumps(row)}\n" for row in people))
    shell("fit", "two.jsonl", *COLUMNS, "--group", "b", "-o", "two.json", "-q")
    people[7]["g"] = None
    shell.write("new.jsonl", "".join(f"{json.dumps(row)}\n" for row in people))
    shell("apply", "two.json", "new.jsonl", "-o", "o.csv", "--skip-invalid", "-q", code=4)
    [row] = table(shell.read("o-rejected.csv"))
    assert row["reason"] == "'g' and 'b' is 'missing / false', a group not in the fit rows"


COMMANDS = {
    "audit": (("audit", "d.csv", *LABELED), "d-rejected.csv"),
    "fit": (("fit", "d.csv", *LABELED, "-o", "new.json"), "new-rejected.csv"),
    "frontier": (("frontier", "d.csv", *LABELED, "-o", "f.svg"), "f-rejected.csv"),
    "check": (("check", "rule.json", "d.csv"), "d-rejected.csv"),
    "monitor": (("monitor", "rule.json", "d.csv", "--state", "s.json"), "d-rejected.csv"),
    "report": (("report", "rule.json", "d.csv", "-o", "report.html"), "report-rejected.csv"),
    "evidence": (("evidence", "d.csv", *COLUMNS, "--no-report", "-o", "folder"), "folder-rejected.csv"),
    "select": (("select", "d.csv", *COLUMNS, "--places", "20", "-o", "o.csv"), "o-rejected.csv"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_leave_rows_out(shell, command):
    arguments, rejects = COMMANDS[command]
    shell.write("d.csv", dirty({4: "00002,,a,1", 8: "00006,n/a,a,1"}))
    before = shell.files()
    assert shell.error(*arguments).endswith("To leave out these 2 rows, pass --skip-invalid.")
    assert shell.files() == before
    done = shell(*arguments, "--skip-invalid", "--json", code=4)
    assert json.loads(done.stdout)["rejected"] == [{"rows": 2, "undecided": 0, "of": 400, "file": rejects}]
    assert [row["id"] for row in table(shell.read(rejects))] == ["00002", "00006"]


def test_without_bad_rows_nothing_is_rejected(shell):
    before = shell.files()
    done = shell("audit", "scores.csv", *LABELED, "--skip-invalid", "--json")
    assert "rejected" not in json.loads(done.stdout)
    assert shell.files() == before


def test_a_failed_gate_outweighs_rows_left_out(shell):
    shell.write("d.csv", dirty({4: "00002,,a,1"}))
    shell("audit", "d.csv", *COLUMNS, "--skip-invalid", "--fail-above", "0.01", "-q", code=1)
    shell("audit", "d.csv", *COLUMNS, "--skip-invalid", "--fail-unless-below", "0.21", "-q", code=3)
    shell("audit", "d.csv", *COLUMNS, "--skip-invalid", "--fail-above", "0.9", "-q", code=4)


def test_both_tables_of_a_frontier_have_a_file_of_rejected_rows(shell):
    shell.write("d.csv", dirty({4: "00002,,a,1"}))
    shell.write("v.csv", dirty({6: "00004,,a,1"}))
    shell("frontier", "d.csv", *LABELED, "--validation", "v.csv", "-o", "f.csv", "--skip-invalid", code=4)
    assert [row["id"] for row in table(shell.read("f-rejected.csv"))] == ["00002"]
    assert [row["id"] for row in table(shell.read("f-rejected-2.csv"))] == ["00004"]


def test_wrong_values_in_many_rows_are_never_left_out(shell):
    """They point to a wrong option or column; missing values do not."""
    percent = {i: f"{i:05},{i % 100},a,1" for i in range(2, 60)}
    shell.write("d.csv", dirty(percent))
    before = shell.files()
    for more in ((), ("--skip-invalid",)):
        told = shell.error("fit", "d.csv", *COLUMNS, "-o", "new.json", *more)
        assert (
            "scores range from 0 to 59, but the scale 'probability' is 0 to 1; these look like percentages"
            in told
        )
        assert ("leaves out wrong values only if they are in at most one row in ten" in told) == bool(more)
    blank = {i: f"{i:05},,a,1" for i in range(2, 60)}
    shell.write("d.csv", dirty(blank))
    shell("fit", "d.csv", *COLUMNS, "-o", "new.json", "-q", "--skip-invalid", code=4)
    shell.write("d.csv", "id,p,g\n1,,a\n2,NA,b\n")
    assert "No row is left without them" in shell.error("audit", "d.csv", *COLUMNS, "--skip-invalid")
    assert sorted([*before, "new.json", "new-rejected.csv"]) == shell.files()


def test_wrong_values_in_several_columns_are_counted_by_row(shell):
    scores = {line: f"{line},high,a,maybe" for line in range(2, 32)}
    for n in (10, 11):
        shell.write("d.csv", dirty(scores | {line: f"{line},0.4,b,maybe" for line in range(100, 100 + n)}))
        if n == 10:
            shell("audit", "d.csv", *LABELED, "--skip-invalid", code=4)
    told = shell.error("audit", "d.csv", *LABELED, "--skip-invalid")
    assert told.endswith("--skip-invalid leaves out wrong values only if they are in at most one row in ten.")


def test_rejected_rows_never_overwrite_an_input(shell):
    shell.write("data-rejected.csv", dirty({4: "00002,,a,1"}))
    before = shell.read("data-rejected.csv")
    told = shell.error("audit", "data-*.csv", *COLUMNS, "--skip-invalid")
    assert told == "The file of rejected rows data-rejected.csv would overwrite DATA; give DATA another name."
    assert shell.read("data-rejected.csv") == before
    (shell.folder / "d-rejected.csv").mkdir()
    shell.write("d.csv", before)
    assert "Cannot write d-rejected.csv: it is a folder" in shell.error(
        "audit", "d.csv", *COLUMNS, "--skip-invalid"
    )


@pytest.mark.parametrize(
    "command",
    [
        ("select", "d.csv", *COLUMNS, "--places", "4000", "-o", "o.csv"),
        ("audit", "d.csv", *COLUMNS, "--criterion", "equal_opportunity"),
        ("report", "rule.json", "d.csv", "--confidence", "2", "-o", "r.html"),
    ],
)
def test_a_failed_command_leaves_no_rejected_rows(shell, command):
    shell.write("d.csv", dirty({4: "00002,,a,1"}))
    before = sorted(shell.folder.iterdir())
    shell.error(*command, "--skip-invalid")  # nor does it say that rows were left out
    assert sorted(shell.folder.iterdir()) == before


def test_a_column_called_reason_is_kept(shell):
    lines = dirty({4: "00002,,a,1"}).splitlines()
    shell.write("d.csv", "\n".join(f"{line},{'reason' if i == 0 else 'own'}" for i, line in enumerate(lines)))
    shell("audit", "d.csv", *COLUMNS, "--skip-invalid", code=4)
    [row] = table(shell.read("d-rejected.csv"))
    assert row["reason"] == "own"
    assert row["fairramp_reason"] == "'p' is empty"


def test_blank_lines_before_the_header_are_no_rows(shell):
    shell.write("d.csv", "\n\n" + rows(60))
    found = json.loads(shell("audit", "d.csv", *COLUMNS, "--json").stdout)
    assert found["rows"] == [30, 30]
    (shell.folder / "parts").mkdir()
    for i, before in enumerate(("", "\n", "\n\n")):
        shell.write(f"parts/{i}.csv", before + dirty({9 - i: f"{i},?,a,1"}, 60))
    told = shell.error("audit", "parts", *COLUMNS)
    assert "'?' in line 9 of parts/0.csv, '?' in line 9 of parts/1.csv, '?' in line 9 of parts/2.csv" in told


def test_repeated_ids_are_shown_where_they_matter(shell):
    shell.write("d.csv", dirty({8: "00000,0.5,a,1", 9: "00001,0.5,b,1", 10: "00000,0.6,a,0"}))
    select = ("select", "d.csv", *COLUMNS, "--places", "20", *DRAW, "-o", "o.csv")
    for more in ((), ("--skip-invalid",)):
        assert shell.error(*select, *more) == (
            "2 ids in --id 'id' of d.csv occur more than once: '00000' in line 2 and line 8, '00001' in line 3 "
            "and line 9; each person needs an id and a row of their own."
        )
    shell("apply", "rule.json", "d.csv", *DRAW, "-o", "o.csv")


def test_very_many_unknown_groups_are_left_out_in_order(shell):
    groups = [f"new{i // 10}" if i % 10 == 0 else "ab"[i % 2] for i in range(30_000)]
    shell.write("d.csv", rows(30_000, groups))
    shell("apply", "rule.json", "d.csv", "-o", "o.csv", "--skip-invalid", code=4)
    ids = [row["id"] for row in table(rows(30_000, groups)) if row["g"] in "ab"]
    assert [row["id"] for row in table(shell.read("o.csv"))] == ids
    assert len(table(shell.read("o-rejected.csv"))) == 3000


def test_groups_that_are_numbers_missing_or_odd_are_left_out(shell):
    """Whatever its type and its characters, a value is compared as a whole."""
    duckdb.sql(
        "COPY (SELECT i AS id, (i * 7 % 100) / 100 AS p, "
        "CASE WHEN i % 60 = 5 THEN 12 WHEN i % 60 = 7 THEN 11 ELSE nullif(i % 4, 3) END "
        f"AS g, i % 4 = 1 AND i % 20 = 1 AS h FROM range(400) AS t(i)) TO '{shell.folder}/n.parquet'"
    )
    duckdb.sql(
        f"COPY (FROM '{shell.folder}/n.parquet' WHERE g IN (0, 1, 2) AND NOT (g = 1 AND h)) "
        f"TO '{shell.folder}/some.parquet'"
    )
    names = ("--score", "p", "--group", "g", "--group", "h")
    shell("fit", "some.parquet", *names, "-o", "some.json", "-q")
    shell("apply", "some.json", "n.parquet", "-o", "o.parquet", "--skip-invalid", "-q", code=4)
    found = duckdb.sql(f"SELECT * EXCLUDE probability FROM '{shell.folder}/o.parquet'").fetchall()
    assert found == duckdb.sql(f"FROM '{shell.folder}/some.parquet'").fetchall()


@pytest.mark.parametrize(("kind", "groups"), [("BIGINT", ("0", "1")), ("BOOLEAN", ("false", "true"))])
@pytest.mark.parametrize("cell", ["NA", "", "01", "t"])
def test_a_cell_that_is_not_of_the_type_of_the_groups_is_one_bad_cell(shell, kind, groups, cell):
    shell.write("s.csv", rows(groups=groups))
    duckdb.sql(
        f"COPY (SELECT id, p, CAST(g AS {kind}) AS g FROM '{shell.folder}/s.csv') TO '{shell.folder}/s.parquet'"
    )
    shell("fit", "s.parquet", *COLUMNS, "-o", "typed.json", "-q")
    shell.write("d.csv", dirty({8: f"00006,0.4,{cell},1"}, groups=groups))
    for more, n in ((("--skip-invalid",), 399), (("--unseen-group", "null"), 400)):
        shell("apply", "typed.json", "d.csv", "-o", "o.csv", *more, "-q", code=4)
        found = table(shell.read("o.csv"))
        assert (len(found), sum(row["probability"] != "" for row in found)) == (n, 399)
        assert [row["id"] for row in table(shell.read("o-rejected.csv"))] == ["00006"]
    assert "first in line 8; fitted groups: " in shell.error("apply", "typed.json", "d.csv", "-o", "o.csv")
    shell.write("d.csv", rows(groups=("a", "b")))
    assert "is it the same column?" in shell.error("apply", "typed.json", "d.csv", "-o", "o.csv")


def test_unknown_groups_in_many_rows_are_never_left_out(shell):
    """A group that was spelled otherwise must not vanish; blank groups may be any number."""
    shell.write("d.csv", rows(groups=("A ", "b")))
    for command in (("apply", "rule.json", "d.csv", "-o", "o.csv"), ("check", "rule.json", "d.csv")):
        told = shell.error(*command, "--skip-invalid")
        assert told.startswith("Groups not in the fit rows: ")
        assert "(200 rows), first in line 2" in told
        assert "Did you mean 'a' (for 'A ')?" in told
        assert told.endswith("--skip-invalid leaves out wrong values only if they are in at most one row in ten.")
        assert "pass --skip-invalid" not in shell.error(*command)
    assert "o.csv" not in shell.files()
    shell("apply", "rule.json", "d.csv", "-o", "o.csv", "--unseen-group", "null", "--skip-invalid", code=4)
    assert [row["probability"] == "" for row in table(shell.read("o.csv"))] == [True, False] * 200
    shell.write("d.csv", rows(groups=("", "a", "b")))
    shell("check", "rule.json", "d.csv", "--skip-invalid", "-q", code=4)


def test_other_spellings_of_groups_are_named_in_reasons(shell):
    shell.write(
        "d.csv", dirty({5: "00003,0.4,B ,1", 9: "00007,0.4,c,1", 12: "00010,0.4,,1", 13: "00011,0.4,b ,1"})
    )
    done = shell("check", "rule.json", "d.csv", "--skip-invalid", code=4)
    assert (
        "4 of 400 rows were left out: --group 'g' differs from a group of the rule only in spaces or case "
        "('B ' from 'b', 'b ' from 'b') in 2 rows; --group 'g' is missing in 1 row and is a group not in the fit "
        "rows in 1 row."
    ) in done.stderr
    assert [row["reason"] for row in table(shell.read("d-rejected.csv"))] == [
        "'g' is 'B ', not a group of the rule: it differs from 'b' only in spaces or case",
        "'g' is 'c', a group not in the fit rows",
        "'g' is empty",
        "'g' is 'b ', not a group of the rule: it differs from 'b' only in spaces or case",
    ]


@pytest.mark.parametrize("policy", ["error", "original"])
def test_a_group_of_the_rule_that_vanished_makes_a_check_undecided(shell, policy):
    few = tuple("c" if i % 20 == 3 else "ab"[i % 2] for i in range(60))
    shell.write("d.csv", rows(1200, few))
    shell("fit", "d.csv", *COLUMNS, "-o", "three.json", "-q", "--unseen-group", policy)
    shell.write("d.csv", rows(1200, tuple(g.replace("c", "C") for g in few)))
    lost = "No row is in group c of the rule, but other rows are in groups that it does not know: C (60 rows)."
    done = shell("check", "three.json", "d.csv", "--skip-invalid", code=3)
    assert f"Check undecided. {lost} " in " ".join(done.stdout.split())
    found = json.loads(shell("check", "three.json", "d.csv", "--skip-invalid", "--json", code=3).stdout)
    assert (found["verdict"], found["missing"]) == ("undecided", ["c"])
    before = shell.files()
    told = shell("monitor", "three.json", "d.csv", "--skip-invalid", "--state", "s.json", code=2).stderr
    assert f"{lost} Nothing was added; correct these rows, or remove them from the file." in told
    assert shell.files() == before
    done = shell("audit", "d.csv", "--rule", "three.json", "--skip-invalid", code=4 if policy == "error" else 0)
    assert f"warning: {lost[0].lower()}{lost[1:]}" in done.stderr
    # A group may be missing, as long as no unknown group could be meant.
    shell.write("d.csv", "".join(line for line in rows(1200, few).splitlines(True) if ",c," not in line))
    shell("check", "three.json", "d.csv")
    shell("monitor", "three.json", "d.csv", "--state", "s.json")


def test_a_group_all_of_whose_rows_were_left_out_makes_a_check_undecided(shell):
    shell.write("d.csv", re.sub(r",[\d.]+,b,", ",,b,", rows()))
    lost = "Every row of group b of the rule was left out."
    done = shell("check", "rule.json", "d.csv", "--skip-invalid", code=3)
    assert f"Check undecided. {lost} " in " ".join(done.stdout.split())
    before = shell.files()
    told = shell("monitor", "rule.json", "d.csv", "--skip-invalid", "--state", "s.json", code=2).stderr
    assert f"{lost} Nothing was added; correct these rows, or remove them from the file." in told
    assert shell.files() == before
    done = shell("apply", "rule.json", "d.csv", "-o", "o.csv", "--skip-invalid", code=4)
    assert "warning: every row of group b of the rule was left out." in done.stderr


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        ({8: "6;k.A.;a;1", 9: "7;;b;1"}, False),
        ({8: "6;10.03.2024;a;1"}, False),
        ({8: "6;0.5;a;1"}, True),
    ],
)
def test_decimal_marks_are_mentioned_only_for_numbers(shell, cells, hint):
    lines = [f"{i};0,{i % 97:02};{'ab'[i % 2]};1" for i in range(200)]
    for line, text in cells.items():
        lines[line - 2] = text
    shell.write("d.csv", "\n".join(["id;p;g;y", *lines]) + "\n")
    assert ("decimal" in shell.error("audit", "d.csv", *COLUMNS)) == hint


def test_next_commands_repeat_skip_invalid(shell):
    shell.write("d.csv", dirty({4: "00002,,a,1", 8: "00006,0.4,a,"}))
    fit = ("fit", "d.csv", *LABELED, "--max-gap", "0.05", "-o", "new.json", "--skip-invalid")
    text = shell(*fit, code=4).stdout.replace(" \\\n", "")
    report, apply = (
        re.search(rf"^  fairramp ({name} .+)$", text, re.MULTILINE)[1].split() for name in ("report", "apply")
    )
    shell(*report, code=4)
    shell(*(word.replace("ID", "id") for word in apply), code=4)
    page = shell.read("report.html")
    again = (
        "fairramp fit d.csv --score p --group g --label y --max-gap 0.05 --skip-invalid -o rule-max-gap-0.05.json"
    )
    assert again in page
    shell(*again.split()[1:], code=4)
    assert json.loads(shell.read("rule-max-gap-0.05.json")) == json.loads(shell.read("new.json"))


@pytest.mark.parametrize("kind", ["key", "rule", "own table", "own reasons"])
def test_rejected_rows_never_replace_a_file_of_another_kind(shell, kind):
    shell.write("d.csv", dirty({4: "00002,,a,1"}))
    own = {"own table": "id,why\n1,late\n", "own reasons": "customer,amount,reason\n1,200,late\n"}
    content = {"key": shell.read("key.txt"), "rule": shell.read("rule.json"), **own}[kind]
    name = shell.write("o-rejected.csv", content)
    key, rule = (name if kind == "key" else "key.txt"), (name if kind == "rule" else "rule.json")
    (shell.folder / name).chmod(0o600)
    draw = ("--id", "id", "--key-file", key)
    assert shell.error("apply", rule, "d.csv", *draw, "--skip-invalid", "-o", "o.csv") == (
        "o-rejected.csv would hold the rows that are left out, but it exists and is not such a file of an "
        "earlier run; rename that file, or choose another -o."
    )
    assert shell.read(name) == content
    assert "o.csv" not in shell.files()
    shell.write("d-rejected.csv", content)
    assert shell.error("audit", "d.csv", *COLUMNS, "--skip-invalid").endswith("; rename that file.")
    assert shell.read("d-rejected.csv") == content


def test_rejected_rows_never_replace_the_validation_rows(shell):
    shell.write("d.csv", dirty({4: "00002,,a,1"}))
    held = shell.write("d-rejected.csv", rows(header="id,p,g,y,reason", line="{id},{p},{g},{y},none"))
    before = shell.read(held)
    told = shell.error("frontier", "d.csv", *LABELED, "--validation", held, "--skip-invalid")
    told_what = "The file of rejected rows d-rejected.csv would overwrite --validation; give"
    assert told == f"{told_what} --validation another name."
    assert shell.read(held) == before


@pytest.mark.parametrize(
    ("option", "command"),
    [
        ("--summary", ("audit", "d.csv", *COLUMNS)),
        ("--summary", ("check", "rule.json", "d.csv")),
        ("--state", ("monitor", "rule.json", "d.csv")),
    ],
)
def test_rejected_rows_never_replace_another_output(shell, option, command):
    shell.write("d.csv", dirty({4: "00002,,a,1"}))
    before = shell.files()
    told = shell.error(*command, option, "d-rejected.csv", "--skip-invalid")
    assert told.endswith(f"d-rejected.csv would overwrite {option}; give {option} another name.")
    assert shell.files() == before


@pytest.mark.parametrize("target", ["o.csv", "o.parquet", "o.jsonl", "o.csv.gz"])
def test_rejected_rows_of_an_earlier_run_are_replaced_or_named(shell, target):
    apply = ("apply", "rule.json", "d.csv", "-o", target, "--skip-invalid")
    rejects = target.replace("o.", "o-rejected.")
    shell.write("d.csv", dirty({4: "00002,,a,1", 8: "00006,,a,1"}))
    shell(*apply, code=4)
    shell.write("d.csv", dirty({4: "00002,,a,1"}))
    shell(*apply, code=4)
    assert len(duckdb.sql(f"FROM '{shell.folder}/{rejects}'").fetchall()) == 1
    shell.write("d.csv", rows())
    stays = f"warning: all rows were used; {rejects} is from an earlier run.\n"
    assert shell(*apply).stderr == stays
    assert len(duckdb.sql(f"FROM '{shell.folder}/{rejects}'").fetchall()) == 1
    assert shell(*apply[:-1]).stderr == ""


@pytest.mark.posix("/dev/full")
def test_the_output_that_fails_is_named(shell):
    shell.write("d.csv", dirty({4: "00002,,a,1"}))
    told = shell.error("apply", "rule.json", "d.csv", "-o", "/dev/full", "--skip-invalid")
    assert told == "Cannot write /dev/full: No space left on device."
    assert "d-rejected.csv" not in shell.files()


def cells_of(p, between=","):
    quoted = [f'"{cell}"' for cell in p]
    return "\n".join(between.join(row) for row in [("p", "g"), *zip(quoted, "ab" * (len(p) // 2), strict=True)])


@pytest.mark.parametrize(
    ("cells", "between", "told"),
    [
        (["1,200", "1,337"], ",", "'1,200' is 1.2 with a decimal comma and 1200 without; pass --decimal ',' or"),
        (["200", "1,022", "7", "-1,022"], ";", "'-1,022' is -1.022 with a decimal comma and -1022 without;"),
        (["1.200", "1.337"], ";", "'1.200' is 1.2 with a decimal point and 1200 without; pass --decimal '.' or"),
    ],
)
@pytest.mark.parametrize("scale", [("--scale", "real", "--cutoff", "3000"), ()])
def test_numbers_that_may_have_thousands_separators_are_refused(shell, cells, between, told, scale):
    shell.write("d.csv", cells_of(cells * 20, between))
    said = shell.error("audit", "d.csv", *COLUMNS, *scale)
    assert said.startswith(f"--score 'p' in d.csv may have thousands separators: {told}")
    real = ("--scale", "real", "--cutoff", "3000")
    shell("audit", "d.csv", *COLUMNS, *real, "--decimal", said.partition("--decimal '")[2][0])


@pytest.mark.parametrize(
    ("cells", "between", "scale"),
    [
        (["0,123", "0,950", "1,000", "0,456"], ";", ()),
        (["0.123", "0.950", "1.000", "0"], ",", ()),
        (["0.123", "0.950", "1.000", "0"], ";", ()),
        (["1,000", "0"], ",", ()),
        (["45,123", "12,456"], ";", ("--scale", "percent")),
        (["45,123%", "12,456%"], ",", ("--scale", "percent")),
        (["1,022", "-0,950"], ";", ("--scale", "logit")),
        (["1,022", "1,5"], ",", ("--scale", "logit")),
        (["1.022", "2.511"], ",", ("--scale", "logit")),
        (["1022", "2511"], ";", ("--scale", "real", "--cutoff", "3000")),
    ],
)
def test_numbers_with_three_decimals_are_numbers(shell, cells, between, scale):
    shell.write("d.csv", cells_of(cells * 20, between))
    shell("audit", "d.csv", *COLUMNS, *scale)


@pytest.mark.parametrize("name", ["d.jsonl", "d.json", "d.jsonl.gz"])
def test_a_byte_order_mark_in_json_is_named_with_the_remedy(shell, name):
    content = b'\xef\xbb\xbf{"p": 0.5, "g": "a"}\n{"p": 0.7, "g": "b"}\n'
    (shell.folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert shell.error("audit", name, *COLUMNS) == (
        f"{name} starts with a byte-order mark, which JSON does not allow; save it as UTF-8 without one."
    )


def test_rows_without_a_group_are_left_out_of_fits_and_audits_on_request(shell):
    cells = {5: "00003,0.4,,1", 9: "00007,0.4, ,1", 12: "00010,,a,1"}
    shell.write("d.csv", dirty(cells))
    why = "--score 'p' is missing in 1 row; --group 'g' is missing in 2 rows"
    shell.write(
        "clean.csv", "".join(line for i, line in enumerate(dirty({}).splitlines(True), 1) if i not in cells)
    )
    for command in (("audit",), ("fit", "-o", "new.json")):
        done = shell(command[0], "d.csv", *COLUMNS, *command[1:], "--skip-invalid", code=4)
        assert f"3 of 400 rows were left out: {why}." in done.stderr
        clean = shell(command[0], "clean.csv", *COLUMNS, *command[1:], *(["--replace"] if command[1:] else []))
        assert clean.stdout.replace("clean.csv", "d.csv").split("Next")[0] == done.stdout.split("Next")[0]
    assert [row["reason"] for row in table(shell.read("new-rejected.csv"))] == [
        "'g' is empty",
        "'g' is empty",
        "'p' is empty",
    ]


def test_a_rule_with_a_group_for_blank_cells_keeps_it(shell):
    shell.write("d.csv", rows(400, ("a", "b", "", "a")))
    shell("fit", "d.csv", *COLUMNS, "-o", "blank.json", "-q")
    for command in (("check", "blank.json", "d.csv"), ("apply", "blank.json", "d.csv", *DRAW, "-o", "o.csv")):
        assert "left out" not in shell(*command, "--skip-invalid").stderr
    done = shell("evidence", "d.csv", "--rule", "blank.json", "-o", "pack", "--skip-invalid", "--no-report")
    assert "left out" not in done.stderr


def test_evidence_leaves_out_groups_that_its_rule_does_not_know_if_they_are_blank(shell):
    shell.write("d.csv", dirty({5: "00003,0.4,,1"}))
    done = shell(
        "evidence", "d.csv", "--rule", "rule.json", "-o", "pack", "--skip-invalid", "--no-report", code=4
    )
    assert "1 of 400 rows was left out: --group 'g' is missing in 1 row." in done.stderr
    done = shell("evidence", "d.csv", *COLUMNS, "-o", "own", "--skip-invalid", "--no-report")
    assert "left out" not in done.stderr  # people whose category is unknown are counted


def test_apply_says_how_many_rows_got_no_decision(shell):
    shell.write("d.csv", dirty({41: "00039,0.4,c,1", 51: "00049,,b,0"}))
    null = ("--unseen-group", "null")
    told = shell.error("apply", "rule.json", "d.csv", "-o", "o.csv", *null)
    assert told.endswith("To leave out this row, pass --skip-invalid.")
    done = shell("apply", "rule.json", "d.csv", "-o", "o.csv", *null, "--skip-invalid", code=4)
    said = " ".join(done.stdout.split())
    assert "probability to 398 of 399 rows, and left it empty for groups not in the fit rows." in said
    assert "1 of 400 rows was left out and 1 is in the output without a decision: --score" in done.stderr
    assert "fewer than 30 rows" not in done.stderr
    done = shell("apply", "rule.json", "d.csv", "-o", "o.csv", *null, "--skip-invalid", "--json", code=4)
    assert json.loads(done.stdout)["rejected"] == [
        {"rows": 2, "undecided": 1, "of": 400, "file": "o-rejected.csv"}
    ]


@pytest.mark.parametrize("cell", ["NA", "<NA>", "nil", "#REF!", "\u200b"])
def test_a_value_that_is_missing_may_be_so_in_any_number_of_rows(shell, cell):
    shell.write("d.csv", dirty({i: f"{i},{cell},a,1" for i in range(2, 82)}))
    done = shell("audit", "d.csv", *COLUMNS, "--skip-invalid", code=4)
    assert "80 of 400 rows were left out: --score 'p' is missing in 80 rows." in done.stderr


@pytest.mark.parametrize(("cell", "why"), [("\u200b", "empty"), ("#REF!", "missing (#REF!)")])
def test_a_group_that_names_none_is_left_out(shell, cell, why):
    shell.write("d.csv", dirty({i: f"{i},0.4,{cell},1" for i in range(2, 82)}))
    assert "80 rows have a blank or missing group" in shell("audit", "d.csv", *COLUMNS).stderr
    done = shell("audit", "d.csv", *COLUMNS, "--skip-invalid", code=4)
    assert "80 of 400 rows were left out: --group 'g' is missing in 80 rows." in done.stderr
    assert {row["reason"] for row in table(shell.read("d-rejected.csv"))} == {f"'g' is {why}"}


def test_a_word_for_a_missing_value_is_missing_in_the_reason_too(shell):
    shell.write("d.csv", dirty({8: "00006,n/a,a,1"}))
    done = shell("audit", "d.csv", *COLUMNS, "--skip-invalid", code=4)
    assert "--score 'p' is missing in 1 row" in done.stderr
    assert [row["reason"] for row in table(shell.read("d-rejected.csv"))] == ["'p' is missing (n/a)"]
