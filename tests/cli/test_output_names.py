"""Without -o, an output is a new file named like DATA and in its format."""

import gzip
import shutil

import duckdb
import pytest

from fairramp.cli.outputs import named_like
from shell import Inside, rows

COLUMNS = ("--score", "p", "--group", "g")


@pytest.fixture
def shell(fitted):
    return Inside(fitted.folder)


@pytest.fixture
def people(shell):
    """The same rows in all formats."""
    (shell.folder / "in").mkdir()
    shell.write("in/people.csv", rows())
    for ending in ("txt", "noending"):
        shell.write(f"in/people.{ending}", rows())
    for ending in ("tsv", "tab"):
        shell.write(f"in/people.{ending}", rows().replace(",", "\t"))
    shell.write("in/people.csv.gz", gzip.compress(rows().encode()))
    for ending, how in (("parquet", ""), ("jsonl", "(FORMAT json)"), ("json", "(FORMAT json, ARRAY true)")):
        duckdb.sql(f"COPY (FROM '{shell.folder}/in/people.csv') TO '{shell.folder}/in/people.{ending}' {how}")
    for same, ending in (("parquet", "pq"), ("jsonl", "ndjson")):
        shutil.copy(shell.folder / f"in/people.{same}", shell.folder / f"in/people.{ending}")
    return shell


@pytest.mark.parametrize(
    ("data", "output"),
    [
        ("people.csv", "people-decisions.csv"),
        ("people.txt", "people-decisions.csv"),
        ("people.tsv", "people-decisions.tsv"),
        ("people.tab", "people-decisions.tsv"),
        ("people.csv.gz", "people-decisions.csv.gz"),
        ("people.parquet", "people-decisions.parquet"),
        ("people.pq", "people-decisions.parquet"),
        ("people.jsonl", "people-decisions.jsonl"),
        ("people.ndjson", "people-decisions.jsonl"),
        ("people.json", "people-decisions.json"),
        ("people.noending", "people.noending-decisions.csv"),
    ],
)
def test_apply_names_its_output_like_the_data(people, data, output):
    before = people.files()
    done = people("apply", "rule.json", f"in/{data}", "--id", "id", "--key-file", "key.txt")
    assert f"Saved to {output}." in " ".join(done.stdout.split())
    assert people.files() == sorted([*before, output])
    people("apply", "rule.json", f"in/{data}", "--id", "id", "--key-file", "key.txt", "-o", f"same-{output}")
    assert (people.folder / output).read_bytes() == (people.folder / f"same-{output}").read_bytes()


def test_folders_and_globs_give_their_names(people):
    (people.folder / "parts").mkdir()
    for i in (1, 2):
        people.write(f"parts/{i}.csv", rows())
    people("apply", "rule.json", "parts", "-q")
    people("apply", "rule.json", "parts/", "--random-seed", "1", "-q")
    assert {"parts-probabilities.csv", "parts-decisions.csv"} <= set(people.files())
    told = people.error("apply", "rule.json", "parts/*.csv")
    name = "parts-probabilities.csv"
    assert told == f"{name} already exists; pass -o {name} to replace it, or another file."


def test_select_names_its_output_like_the_data(people):
    people("select", "in/people.parquet", *COLUMNS, "--places", "41", "--id", "id", "--key-file", "key.txt", "-q")
    assert "people-shortlist.parquet" in people.files()


def test_stdin_needs_a_name(people):
    told = people.error("apply", "rule.json", "-", stdin=rows().encode())
    assert told == "-o is missing: pass a file, or - for stdout."


def test_fit_suggests_decisions_in_the_format_of_the_data(people):
    for ending in ("csv", "parquet", "jsonl"):
        said = people("fit", f"in/people.{ending}", *COLUMNS, "-o", f"{ending}.json").stdout
        assert f"-o decisions.{ending} " in " ".join(said.split())


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("out/o.parquet", "out/o-rejected.parquet"),
        ("o.csv.gz", "o-rejected.csv.gz"),
        ("rule.json", "rule-rejected.tsv"),
        ("report.html", "report-rejected.tsv"),
        ("folder.2", "folder.2-rejected.tsv"),
        (None, "people-rejected.tsv"),
    ],
)
def test_rejected_rows_are_named_like_the_output(people, output, name):
    assert named_like(str(people.folder / "in/people.tsv"), "rejected", output) == name
