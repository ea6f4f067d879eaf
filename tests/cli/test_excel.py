"""Excel files are read like the CSV files that Excel would write, and messages count lines as Excel does."""

import csv
import datetime
import io
import json
import sys

import duckdb
import pytest

from fairramp.data.inputs import input_files
from shell import Inside, rows

openpyxl = pytest.importorskip("openpyxl")

COLUMNS = ("--score", "p", "--group", "g")


@pytest.fixture
def shell(fitted):
    return Inside(fitted.folder)


def book(shell, name="s.xlsx", first=1, change=None, **sheets):
    """Write the rows of scores.csv to a workbook, from line `first`; `change` maps cells to values."""
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "Scores"
    header, *lines = csv.reader(io.StringIO(rows()))
    for line, cells in enumerate([header, *([i, float(p), g, int(y)] for i, p, g, y in lines)], first):
        for column, value in enumerate(cells, 1):
            sheet.cell(line, column, value)
    for cell, value in (change or {}).items():
        sheet[cell] = value
    for title, content in sheets.items():
        other = made.create_sheet(title)
        for cells in content:
            other.append(cells)
    made.save(shell.folder / name)
    return name


def audited(shell, data, *more):
    found = json.loads(shell("audit", data, *COLUMNS, "--label", "y", "--json", *more).stdout)
    return {key: value for key, value in found.items() if key != "data"}


@pytest.mark.parametrize("name", ["s.xlsx", "s.xlsm", "no-ending"])
@pytest.mark.parametrize("first", [1, 4])
def test_a_workbook_is_read_like_csv(shell, name, first):
    book(shell, "s.xlsx", first)
    (shell.folder / "s.xlsx").rename(shell.folder / name)
    assert audited(shell, name) == audited(shell, "scores.csv")
    shell("fit", name, *COLUMNS, "-o", "new.json", "-q")
    shell("apply", "new.json", name, "-o", "o.csv", "--random-seed", "1")
    shell("apply", "new.json", "scores.csv", "-o", "o2.csv", "--random-seed", "1")
    found, expected = (
        duckdb.sql(
            f"SELECT id, CAST(p AS DOUBLE), g, probability, decision FROM '{shell.folder}/{out}'"
        ).fetchall()
        for out in ("o.csv", "o2.csv")
    )
    assert found == expected


def test_stdin_and_folders_may_be_workbooks(shell):
    (shell.folder / "parts").mkdir()
    book(shell, "parts/1.xlsx")
    book(shell, "parts/2.xlsx", change={"B7": "?"})
    shell.write("parts/~$1.xlsx", "a lock of Excel")
    assert [name[-6:] for name in input_files(str(shell.folder / "parts"))] == ["1.xlsx", "2.xlsx"]
    assert "'?' in line 7 of parts/2.xlsx" in shell.error("audit", "parts", *COLUMNS)
    content = (shell.folder / "parts" / "1.xlsx").read_bytes()
    done = shell("audit", "-", *COLUMNS, "--json", stdin=content)
    assert json.loads(done.stdout)["rows"] == [200, 200]


def test_cells_become_the_text_that_csv_would_have(shell):
    book(
        shell,
        change={
            "A2": 7.0,
            "A3": 12345678901234570,
            "A4": 0.1234567890123,
            "A5": True,
            "A6": datetime.date(2024, 1, 31),
            "A7": datetime.datetime(2024, 1, 31, 8, 30),
            "A8": datetime.time(8, 30),
            "A9": "two\nlines",
            "A10": '=1+1"',
            "A11": None,
            "A12": "007",
            "A13": " x ",
        },
    )
    shell("apply", "rule.json", "s.xlsx", "-o", "o.csv")
    found = [row["id"] for row in csv.DictReader(io.StringIO(shell.read("o.csv").removeprefix("\ufeff")))][:12]
    texts = ["7", "12345678901234570", "0.1234567890123", "TRUE", "2024-01-31", "2024-01-31 08:30:00", "08:30:00"]
    assert found == [*texts, "two\nlines", "", "", "007", " x "]  # a formula has the value that Excel stored


def test_messages_have_the_lines_of_the_sheet(shell):
    """Blank lines are no rows but count as lines; cells with line breaks are one line."""
    change = {f"{column}6": None for column in "ABCD"} | {
        "A7": "two\nlines",
        "B9": "n/a",
        "B12": None,
        "C20": "c",
    }
    book(shell, first=3, change=change)
    told = shell.error("audit", "s.xlsx", *COLUMNS)
    assert "in s.xlsx is missing in 2 rows: 'n/a' in line 9, empty in line 12;" in told
    shell("apply", "rule.json", "s.xlsx", "-o", "o.csv", "--skip-invalid", code=4)
    header, *left = csv.reader(io.StringIO(shell.read("o-rejected.csv").removeprefix("\ufeff")))
    assert header == ["id", "p", "g", "y", "reason"]
    assert [row[1] for row in left][:2] == ["n/a", ""]
    assert left[2][2] == "c"


def test_columns_without_cells_are_left_out(shell):
    name = book(shell)
    made = openpyxl.load_workbook(shell.folder / name)
    made.active.cell(1, 9).fill = openpyxl.styles.PatternFill("solid", fgColor="FF0000")
    made.active.cell(500, 9).value = " "
    made.active.cell(500, 9).value = None
    made.save(shell.folder / name)
    assert audited(shell, name) == audited(shell, "scores.csv")


def test_the_first_sheet_is_read_or_the_one_asked_for(shell):
    book(shell, Notes=[["only", "text"]], More=[["p", "g", "y"], [0.2, "a", 1], [0.7, "b", 0]])
    assert audited(shell, "s.xlsx") == audited(shell, "scores.csv")
    assert audited(shell, "s.xlsx", "--sheet", "More")["rows"] == [1, 1]
    told = shell.error("audit", "s.xlsx", *COLUMNS, "--sheet", "Notes")
    assert told == "s.xlsx (sheet 'Notes') has no column 'p' (--score). It has: 'only', 'text'."
    told = shell.error("audit", "s.xlsx", *COLUMNS, "--sheet", "more")
    assert told == (
        "s.xlsx has no sheet 'more' (--sheet). Did you mean 'More'? It has: 'Scores', 'Notes', 'More'."
    )
    told = shell.error("audit", "scores.csv", *COLUMNS, "--sheet", "More")
    assert told == "--sheet is for Excel files, and scores.csv is none."
    said = shell("fit", "s.xlsx", *COLUMNS, "--sheet", "Scores", "-o", "new.json").stdout
    assert "--sheet Scores" in said


def test_the_sheet_that_was_read_is_named_and_visible(shell):
    book(shell, First=[["p", "g"], [0.2, "a"], [0.7, "b"]], Second=[["p"]])
    made = openpyxl.load_workbook(shell.folder / "s.xlsx")
    note = "Read s.xlsx (sheet 'Scores'); for another sheet, pass --sheet 'First' or 'Second'.\n"
    assert note in shell("audit", "s.xlsx", *COLUMNS).stderr
    assert "--sheet" not in shell("audit", "s.xlsx", *COLUMNS, "--sheet", "Scores").stderr
    made["Scores"].sheet_state = "hidden"
    made.active = 1
    made.save(shell.folder / "s.xlsx")
    done = shell("audit", "s.xlsx", *COLUMNS, "--json")
    assert json.loads(done.stdout)["rows"] == [1, 1]
    assert "Read s.xlsx (sheet 'First'); for another sheet, pass --sheet 'Second'.\n" in done.stderr
    made["Second"].sheet_state = "veryHidden"
    made.save(shell.folder / "s.xlsx")
    assert "--sheet" not in shell("audit", "s.xlsx", *COLUMNS).stderr
    assert audited(shell, "s.xlsx", "--sheet", "Scores") == audited(shell, "scores.csv")


def test_cells_merged_over_several_rows_are_refused(shell):
    """Otherwise all but the first of these rows would be in a blank group."""
    made = openpyxl.load_workbook(shell.folder / book(shell, first=3))
    for cells in ("A1:C2", "B5:D5", "C6:C9", "D7:D8"):  # a title, one row, and two that matter
        made.active.merge_cells(cells)
    made.save(shell.folder / "s.xlsx")
    assert shell.error("audit", "s.xlsx", "--score", "p", "--group", "g") == (
        "s.xlsx has merged cells, such as C6:C9; unmerge them and fill in the value of every row."
    )
    for cells in ("C6:C9", "D7:D8", "B5:D5"):
        made.active.unmerge_cells(cells)
    made.active["B5"], made.active["C5"], made.active["C7"], made.active["C8"], made.active["C9"] = 0.5, *"abab"
    made.save(shell.folder / "s.xlsx")
    assert json.loads(shell("audit", "s.xlsx", *COLUMNS, "--json").stdout)["groups"] == ["a", "b"]


def test_the_header_may_have_no_rows_or_be_missing(shell):
    book(shell, Empty=[], Header=[["id", "p", "g"]])
    assert "is empty; its first line must contain the column names" in shell.error(
        "audit", "s.xlsx", *COLUMNS, "--sheet", "Empty"
    )
    assert "has a header but no rows" in shell.error("audit", "s.xlsx", *COLUMNS, "--sheet", "Header")
    shell("apply", "rule.json", "s.xlsx", "--sheet", "Header", "-o", "o.csv")
    assert shell.read("o.csv") == "\ufeffid,p,g,probability\n"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "s.xls",
            b"\xd0\xcf\x11\xe0" + bytes(600),
            "s.xls is a spreadsheet of a kind that is not read; save it as",
        ),
        (
            "s.ods",
            b"PK\x03\x04",
            "s.ods is a spreadsheet of a kind that is not read; save it as .xlsx, or as CSV.",
        ),
        ("s.xlsb", b"PK\x03\x04", "s.xlsb is a spreadsheet of a kind that is not read"),
        (
            "s.xlsx",
            b"\xd0\xcf\x11\xe0" + bytes(600),
            "is protected by a password, or is an old .xls file; save it",
        ),
        ("s.xlsx", b"PK\x03\x04 and no more", "s.xlsx cannot be read as an Excel file: "),
        ("s.xlsx", b"", "s.xlsx cannot be read as an Excel file: "),
        (
            "s.csv",
            b"PK\x03\x04",
            "s.csv is not CSV but a spreadsheet or an archive; rename an Excel file to .xlsx",
        ),
    ],
)
def test_files_that_cannot_be_read(shell, name, content, said):
    shell.write(name, content)
    assert said in shell.error("audit", name, *COLUMNS)


def test_half_a_workbook_is_damaged(shell):
    content = (shell.folder / book(shell)).read_bytes()
    shell.write("half.xlsx", content[: len(content) // 2])
    told = shell.error("audit", "half.xlsx", *COLUMNS)
    assert told.endswith("; it may be damaged; save it again, or as CSV.")


def test_the_missing_reader_is_named_with_its_extra(shell, monkeypatch):
    book(shell)
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    told = shell.error("audit", "s.xlsx", *COLUMNS)
    assert told.startswith("python_calamine is not installed; install it with: ")
    assert told.endswith(" -m pip install 'fairramp[cli]'.")


def test_outputs_are_csv_that_excel_opens(shell):
    book(shell)
    done = shell("apply", "rule.json", "s.xlsx")
    said = " ".join(done.stdout.split())
    assert (
        "Saved to s-probabilities.csv. Excel files are read but not written; this CSV file opens in Excel."
        in said
    )
    assert shell.read("s-probabilities.csv").startswith("\ufeffid,p,g,y,probability\n")
    told = shell.error("apply", "rule.json", "s.xlsx", "-o", "o.xlsx")
    assert told == "Cannot write o.xlsx: Excel files are read but not written; write .csv, which opens in Excel."


def test_errors_are_read_as_their_text(shell):
    """Otherwise they would be blank: a group of their own, or gone from the output."""
    change = {"A2": "#REF!", "A3": "#DIV/0!", "C4": "#N/A", "C8": "#N/A"}
    book(shell, change=change, Other=[["p", "g"], ["#NAME?", "a"], [0.7, "b"]])
    assert openpyxl.load_workbook(shell.folder / "s.xlsx")["Scores"]["A2"].data_type == "e"
    found = json.loads(shell("audit", "s.xlsx", *COLUMNS, "--json").stdout)
    assert dict(zip(found["groups"], found["rows"], strict=True)) == {"#N/A": 2, "a": 198, "b": 200}
    assert "'#NAME?' in line 2;" in shell.error("audit", "s.xlsx", *COLUMNS, "--sheet", "Other")
    shell("apply", "rule.json", "s.xlsx", "-o", "o.csv", "--skip-invalid", code=4)
    assert [row[0] for row in csv.reader(io.StringIO(shell.read("o.csv")))][1:4] == ["#REF!", "#DIV/0!", "00003"]


def test_errors_are_found_where_they_are(shell):
    """In rows below empty ones, beyond column Z, and in a column with nothing else."""
    made = openpyxl.Workbook()
    made.active["C3"], made.active["AB3"], made.active["AD3"] = "p", "g", "x"
    for line in range(5, 25):
        made.active.cell(line, 3, 0.5)
        made.active.cell(line, 28, "ab"[line % 2])
    made.active["AD24"] = "#NUM!"
    made.save(shell.folder / "far.xlsx")
    shell("fit", "far.xlsx", *COLUMNS, "-o", "far.json", "-q")
    shell("apply", "far.json", "far.xlsx", "-o", "o.csv")
    assert list(csv.reader(io.StringIO(shell.read("o.csv"))))[-1][:3] == ["0.5", "a", "#NUM!"]


def test_a_column_that_the_first_sheet_lacks_may_be_in_another(shell):
    book(shell, Rows=[["score", "g"], [0.2, "a"], [0.7, "b"]])
    told = shell.error("audit", "s.xlsx", "--score", "score", "--group", "g")
    assert told == (
        "s.xlsx (sheet 'Scores') has no column 'score' (--score). It has: 'id', 'p', 'g', 'y'; for another "
        "sheet, pass --sheet 'Rows'."
    )
