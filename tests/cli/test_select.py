"""`fairramp select`: the library's choice, written beside the columns of the file."""

import csv
import gzip
import io
import json
import os

import duckdb
import numpy as np
import pytest

import fairramp
from shell import KEY, Inside, rows

SELECT = ("select", "s.csv", "--score", "p", "--group", "g")
DECIDE = ("--id", "id", "--key-file", "key.txt")


@pytest.fixture
def inside(tmp_path):
    shell = Inside(tmp_path)
    shell.write("s.csv", rows())
    shell.write("key.txt", KEY + "\n")
    os.chmod(tmp_path / "key.txt", 0o600)
    return shell


def table(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def chosen(text, **options):
    """What the library selects from the rows of a file."""
    data = table(text)
    return fairramp.select(
        [float(r["p"]) for r in data], [r["g"] for r in data], ids=[r["id"] for r in data], key=KEY, **options
    )


@pytest.mark.parametrize(
    "options", [{}, {"max_gap": 0.05}, {"min_ratio": 0.8}, {"higher_is_better": False}], ids=str
)
def test_select_matches_the_library(inside, options):
    words = {"max_gap": "--max-gap", "min_ratio": "--min-ratio"}
    given = [part for name in words if name in options for part in (words[name], options[name])]
    given += ["--lower-is-better"] if "higher_is_better" in options else []
    inside(*SELECT, "--places", 90, *given, "-o", "o.csv", *DECIDE)
    data, out = table(rows()), table(inside.read("o.csv"))
    assert list(out[0]) == ["id", "p", "g", "y", "decision"]
    assert [{name: r[name] for name in ("id", "p", "g", "y")} for r in out] == data
    found = chosen(rows(), places=90, **options)
    assert [int(r["decision"]) for r in out] == found.decisions.tolist()
    assert sum(int(r["decision"]) for r in out) == 90


def test_json_and_text(inside):
    done = inside(*SELECT, "--places", 90, "--max-gap", "0.05", "-o", "o.csv", *DECIDE)
    found = chosen(rows(), places=90, max_gap=0.05)
    said = " ".join(done.stdout.split())
    assert said.startswith(f"400 rows in s.csv, by g {' '.join(found.sentences())}")
    assert said.endswith("Added decision to 400 rows. Saved to o.csv.")
    assert max(map(len, done.stdout.splitlines())) <= 80
    content = json.loads(
        inside(*SELECT, "--places", 90, "--max-gap", "0.05", "-o", "o.csv", *DECIDE, "--json").stdout
    )
    assert found.to_dict().items() <= content.items()
    assert (content["command"], content["output"], content["columns"]) == ("select", "o.csv", ["decision"])
    assert inside(*SELECT, "--places", 90, "-o", "o.csv", *DECIDE, "-q").stdout == ""


def test_order_of_the_file_does_not_matter(inside):
    header, *lines = rows().splitlines()
    backward = "\n".join([header, *lines[::-1]]) + "\n"
    inside(*SELECT, "--places", 33, "-o", "a.csv", *DECIDE)
    inside.write("s.csv", backward)
    inside(*SELECT, "--places", 33, "-o", "b.csv", *DECIDE)
    first, second = ({r["id"]: r["decision"] for r in table(inside.read(name))} for name in ("a.csv", "b.csv"))
    assert first == second


def test_many_rows_stay_in_order(inside):
    rng = np.random.default_rng(0)
    n = 300_000
    scores, groups = rng.permutation(n) / n, rng.integers(0, 7, n)
    lines = (f"{i},{p!r},{g}" for i, (p, g) in enumerate(zip(scores.tolist(), groups.tolist(), strict=True)))
    inside.write("s.csv", "\n".join(["id,p,g", *lines]) + "\n")
    inside(*SELECT, "--places", 5000, "--max-gap", "0.001", "-o", "o.parquet", "-q")
    file = str(inside.folder / "o.parquet")
    out = duckdb.read_parquet(file).fetchnumpy()
    assert (out["id"].astype(int) == np.arange(n)).all()
    found = fairramp.select(scores, groups, places=5000, max_gap=0.001)
    assert (out["decision"] == found.decisions).all()
    assert out["decision"].dtype == np.int8


@pytest.mark.parametrize("name", ["o.tsv", "o.jsonl", "o.csv.gz", "o.parquet"])
def test_formats(inside, name):
    inside(*SELECT, "--places", 50, "-o", name, *DECIDE)
    path = inside.folder / name
    if name.endswith(".gz"):
        out = [int(r["decision"]) for r in table(gzip.decompress(path.read_bytes()).decode())]
    elif name.endswith("tsv"):
        out = [int(r["decision"]) for r in table(inside.read(name), "\t")]
    else:
        reader = duckdb.read_json if name.endswith("jsonl") else duckdb.read_parquet
        out = reader(str(path)).fetchnumpy()["decision"].tolist()
    assert out == chosen(rows(), places=50).decisions.tolist()


def test_typed_files_intersections_and_missing_groups(inside):
    query = (
        "SELECT i AS id, CAST(i * 37 % 1009 AS DOUBLE) / 1009 AS p, CASE WHEN i % 5 > 0 THEN i % 2 END AS g, "
        "i % 3 = 0 AS h FROM range(200) AS t(i)"
    )
    duckdb.sql(query).write_parquet(str(inside.folder / "s.parquet"))
    inside(
        *("select", "s.parquet", "--score", "p", "--group", "g", "--group", "h", "--places", 60, "--id", "id"),
        *("--key-file", "key.txt", "-o", "o.parquet"),
    )
    data = duckdb.sql(query).fetchall()
    ids, scores, first, second = (list(column) for column in zip(*data, strict=True))
    found = fairramp.select(scores, {"g": first, "h": second}, places=60, ids=ids, key=KEY)
    out = duckdb.read_parquet(str(inside.folder / "o.parquet"))
    assert out.columns == ["id", "p", "g", "h", "decision"]
    assert out.fetchnumpy()["decision"].tolist() == found.decisions.tolist()
    assert len(found.groups) == 6


def test_decimal_commas_and_delimiters_stay(inside):
    inside.write("s.csv", "id;p;g\n1;0,9;a\n2;0,8;a\n3;0,3;b\n4;0,2;b\n")
    inside(*SELECT, "--places", 2, "-o", "o.csv")
    assert inside.read("o.csv") == "id;p;g;decision\n1;0,9;a;1\n2;0,8;a;0\n3;0,3;b;1\n4;0,2;b;0\n"


def test_scales_stdin_and_stdout(inside):
    text = b"p,g\n90,a\n80,a\n30,b\n20,b\n"
    done = inside(
        *("select", "-", "--score", "p", "--group", "g", "--scale", "percent", "--places", 2, "-o", "-"),
        stdin=text,
    )
    assert done.stdout == "p,g,decision\n90,a,1\n80,a,0\n30,b,1\n20,b,0\n"
    assert "2 places for 4 people." in done.stderr


def test_prefix(inside):
    inside(*SELECT, "--places", 50, "-o", "o.csv", *DECIDE)
    again = ("select", "o.csv", *SELECT[2:], "--places", 60, *DECIDE, "-o", "o2.csv")
    assert "already has a column 'decision'; pass --prefix new_" in inside.error(*again)
    inside(*again, "--prefix", "new_")
    out = table(inside.read("o2.csv"))
    assert sum(int(r["decision"]) for r in out) == 50
    assert sum(int(r["new_decision"]) for r in out) == 60


def test_no_and_all_places(inside):
    assert "Nobody is admitted" in inside(*SELECT, "--places", 0, "-o", "o.csv").stdout
    assert {r["decision"] for r in table(inside.read("o.csv"))} == {"0"}
    inside(*SELECT, "--places", 400, "-o", "o.csv")
    assert {r["decision"] for r in table(inside.read("o.csv"))} == {"1"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--places", 401), "--places must be at most 400, the number of people, got 401."),
        (("--places", "many"), "--places must be a number, got 'many'. See: fairramp select --help"),
        (("--places", "0.1"), "--places must be an integer of at least 0, got 0.1."),
        (("--places", "50.7"), "--places must be an integer of at least 0, got 50.7."),
        (("--places", "-1"), "--places must be an integer of at least 0, got -1."),
        ((), "--places is missing. See: fairramp select --help"),
        (
            ("--places", 9, "--max-gap", "0.1", "--min-ratio", "0.8"),
            "--max-gap and --min-ratio exclude each other: both limit how far rates may be apart",
        ),
        (
            ("--places", 9, "--min-ratio", "80"),
            "--min-ratio must be a number above 0 and at most 1, got 80.0; for 80%, pass 0.8",
        ),
        (
            ("--places", 9, "--id", "g", "--key-file", "key.txt"),
            "2 ids in --id 'g' of s.csv occur more than once: 'a' in line 2",
        ),
        (
            ("--places", 9, "--key-file", "key.txt"),
            "--key-file needs --id, the column that identifies each person.",
        ),
        (("--places", 9, "--id", "id"), "--id needs a secret key"),
        (("--places", 9, "--scale", "odds"), "--scale must be one of"),
    ],
    ids=str,
)
def test_mistakes_are_explained_and_nothing_is_written(inside, options, message):
    before = inside.files()
    assert inside.error(*SELECT, *options, "-o", "o.csv").startswith(message)
    assert inside.files() == before


def test_a_limit_that_no_division_meets_is_warned_of_even_quietly(inside):
    done = inside(*SELECT, "--places", 1, "--min-ratio", 1, "--quiet", "-o", "o.csv", *DECIDE)
    assert "no division of the places meets the limit" in done.stderr
    assert not done.stdout


def test_ties_need_ids_and_a_key(inside):
    inside.write("s.csv", "id,p,g\n" + "".join(f"{i},0.5,a\n" for i in range(4)))
    assert inside.error(*SELECT, "--places", 1, "-o", "o.csv") == (
        "4 people in group a have the score 0.5, but only 1 of them can be admitted; pass --id and --key-file, "
        "which decide such ties."
    )
    inside(*SELECT, "--places", 1, "-o", "o.csv", *DECIDE)
    u = fairramp.draws(["0", "1", "2", "3"], KEY)
    assert [int(r["decision"]) for r in table(inside.read("o.csv"))] == (u == u.min()).astype(int).tolist()


def test_inputs_are_never_overwritten(inside):
    assert "would overwrite DATA" in inside.error(*SELECT, "--places", 5, "-o", "s.csv")
    inside.write("key.csv", KEY)
    os.chmod(inside.folder / "key.csv", 0o600)
    options = ("--id", "id", "--key-file", "key.csv")
    assert "would overwrite the key file" in inside.error(*SELECT, "--places", 5, "-o", "key.csv", *options)
