"""Real-world files: every format, dialect and oddity, and names that try to break a query."""

import csv
import gzip
import io
import json
import shutil

import duckdb
import numpy as np
import pytest

import fairramp
from shell import Inside, rows

COLUMNS = ("--score", "p", "--group", "g")
NASTY = (
    "select",
    'a"b',
    "a'b",
    "a;b -- drop",
    "line\nbreak",
    "carriage\rreturn",
    "🦆 quack",
    "c0",
    "score",
    "*",
    "COLUMNS(*)",
    "$1",
    " padded ",
    "comma, inside",
    "x" * 300,
    "{brace}",
    "%s",
)


@pytest.fixture
def shell(tmp_path):
    """Runs in this process, because processes take minutes; `test_commands` and `test_failures` start them."""
    return Inside(tmp_path)


def table(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def groups(shell, data, *more):
    """Rows per group and the gap, according to audit."""
    found = json.loads(shell("audit", data, *COLUMNS, "--json", *more).stdout)
    return dict(zip(map(str, found["groups"]), found["rows"], strict=True)), round(found["before"]["gap"], 9)


def convert(shell, source, target, how=""):
    """Convert a CSV file to another format, with typed numbers."""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT id, CAST(p AS DOUBLE) AS p, g, CAST(y AS INTEGER) AS y "
            f"FROM read_csv('{shell.folder / source}', all_varchar=true, nullstr='none')) "
            f"TO '{shell.folder / target}' {how}"
        )


@pytest.fixture
def formats(shell):
    shell.write("s.csv", rows())
    for name in ("s.parquet", "s.jsonl", "s.ndjson"):
        convert(shell, "s.csv", name, "(FORMAT json)" if name[-1] in "ln" else "")
    convert(shell, "s.csv", "s.json", "(FORMAT json, ARRAY true)")
    shell.write("s.tsv", rows().replace(",", "\t"))
    shell.write("s.csv.gz", gzip.compress(rows().encode()))
    shell.write("noname", rows())
    return shell


def test_all_formats_are_read_alike(formats):
    expected = groups(formats, "s.csv")
    assert expected[0] == {"a": 200, "b": 200}
    for name in ("s.parquet", "s.jsonl", "s.ndjson", "s.json", "s.tsv", "s.csv.gz", "noname"):
        assert groups(formats, name) == expected, name
    for name in ("s.csv", "s.parquet", "s.jsonl", "s.csv.gz"):
        found = formats("audit", "-", *COLUMNS, "--json", stdin=(formats.folder / name).read_bytes())
        assert json.loads(found.stdout)["rows"] == [200, 200]


def test_apply_picks_the_format_by_file_name(formats):
    formats("fit", "s.csv", *COLUMNS, "-o", "r.json", "-q")
    expected = None
    for source in ("s.csv", "s.parquet", "s.jsonl"):
        for target in ("o.csv", "o.tsv", "o.jsonl", "o.json", "o.parquet", "o.csv.gz"):
            formats("apply", "r.json", source, "-o", target, "-q")
            path = formats.folder / target
            if target.endswith("parquet"):
                found = duckdb.sql(f"SELECT id, probability FROM '{path}'").fetchall()
            elif target.endswith("jsonl"):
                found = [(r["id"], r["probability"]) for r in map(json.loads, path.read_text().splitlines())]
            elif target.endswith("json"):
                found = [(r["id"], r["probability"]) for r in json.loads(path.read_text())]
            else:
                raw = path.read_bytes()
                text = (gzip.decompress(raw) if target.endswith("gz") else raw).decode()
                lines = table(text, "\t" if target.endswith("tsv") else ",")
                found = [(r["id"], float(r["probability"])) for r in lines]
            expected = expected or found
            assert found == expected, (source, target)
    assert expected[7][0] == "00007"
    assert formats.read("o.csv").startswith(formats.read("s.csv").split("\n")[0] + ",probability\n")


def test_folders_and_globs_are_one_table(shell):
    lines = rows().splitlines(keepends=True)
    (shell.folder / "parts").mkdir()
    shell.write("parts/1.csv", "".join(lines[:101]))
    shell.write("parts/2.csv", lines[0] + "".join(lines[101:]))
    shell.write("parts/.3.csv.tmp", "left by a crash")
    shell.write("parts/_SUCCESS", "")
    shell.write("all.csv", rows())
    assert groups(shell, "parts") == groups(shell, "parts/*.csv") == groups(shell, "all.csv")
    shell("fit", "all.csv", *COLUMNS, "-o", "r.json", "-q")
    for data, out in (("parts", "a.csv"), ("all.csv", "b.csv")):
        shell("apply", "r.json", data, "-o", out, "-q")
    assert shell.read("a.csv") == shell.read("b.csv")
    shell.write("parts/3.csv", "id,p,y,g\n1,0.5,1,a\n")
    assert "have different columns" in shell.error("audit", "parts", *COLUMNS)
    shell.write("parts/3.csv", "")
    assert "empty" in shell.error("audit", "parts", *COLUMNS)
    shutil.move(shell.folder / "parts/3.csv", shell.folder / "parts/3.jsonl")
    assert "mixes formats" in shell.error("audit", "parts", *COLUMNS)
    (shell.folder / "none").mkdir()
    assert "no CSV" in shell.error("audit", "none", *COLUMNS)
    assert "does not exist" in shell.error("audit", "none/*.csv", *COLUMNS)


@pytest.mark.parametrize("name", ["a[1].csv", "a*b?.csv", "it's.csv", "ünï 🦆.csv", "-dash.csv", "{a,b}.csv"])
def test_odd_file_names(shell, name):
    shell.write(name, rows())
    path = f"./{name}"
    assert groups(shell, path)[0] == {"a": 200, "b": 200}
    shell("fit", path, *COLUMNS, "-o", f"./{name}.json", "-q")
    shell("apply", f"./{name}.json", path, "-o", f"./out {name}", "-q")
    assert len(table(shell.read(f"out {name}"))) == 400


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_byte_order_marks_line_endings_and_semicolons(shell, bom, end):
    shell.write("s.csv", rows())
    shell.write("odd.csv", bom + rows(header="id;p;g;y", line="{id};{p};{g};{y}", end=end))
    assert groups(shell, "odd.csv") == groups(shell, "s.csv")
    assert groups(shell, "odd.csv", "--delimiter", ";") == groups(shell, "s.csv")
    shell("fit", "odd.csv", *COLUMNS, "-o", "r.json", "-q")
    shell("apply", "r.json", "odd.csv", "-o", "o.csv", "-q")
    assert shell.read("o.csv").startswith(
        f"{bom}id;p;g;y;probability\n00000;"
    )  # spreadsheets recognize UTF-8 by this mark


def test_decimal_commas_are_kept(shell):
    shell.write("s.csv", rows())
    shell.write("de.csv", rows(header="id;p;g;y", line="{id};{p};{g};{y}").replace(".", ","))
    assert groups(shell, "de.csv") == groups(shell, "de.csv", "--decimal", ",") == groups(shell, "s.csv")
    assert "not a number" in shell.error("audit", "de.csv", *COLUMNS, "--decimal", ".")
    shell("fit", "de.csv", *COLUMNS, "-o", "r.json", "-q")
    shell("apply", "r.json", "de.csv", "-o", "o.csv", "-q")
    out = table(shell.read("o.csv"), ";")
    shell("apply", "r.json", "s.csv", "-o", "o2.csv", "-q")
    plain = table(shell.read("o2.csv"))
    assert [r["probability"].replace(",", ".") for r in out] == [r["probability"] for r in plain]
    assert "." not in "".join(r["probability"] for r in out)


def test_untouched_cells_are_byte_identical(shell):
    odd = ["007", "NA", "null", "NULL", "", " padded ", "1e3", "0x1F", "1.50", "TRUE", "2024-01-01T00:00:00Z"]
    odd += ['"quo""ted"', '"new\nline"', '"cr\r\nlf"', '"a,b"', "ünï🦆", "#hash", "-", "\\N", "1_000", "'", "\\"]
    lines = ["id,p,g,note"] + [
        f"{i:03d},0.{i % 10},{'ab'[i % 2]},{odd[i % len(odd)]}" for i in range(2 * len(odd))
    ]
    shell.write("s.csv", "\n".join(lines) + "\n")
    shell("fit", "s.csv", *COLUMNS, "-o", "r.json", "-q")
    shell("apply", "r.json", "s.csv", "-o", "o.csv", "-q")
    before, after = (list(csv.reader(io.StringIO(shell.read(n), newline=""))) for n in ("s.csv", "o.csv"))
    assert [row[:4] for row in after] == before
    assert '"",' not in shell.read("o.csv")
    shell("apply", "r.json", "s.csv", "-o", "o.parquet", "-q")
    stored = duckdb.sql(f"SELECT note FROM '{shell.folder / 'o.parquet'}'").fetchall()
    assert [row[0] for row in stored] == [row[3] for row in before[1:]]


def test_quoted_newline_in_the_header_loses_no_row(shell):
    for end in ("\n", "\r\n"):
        shell.write("s.csv", rows(header='"i\nd",p,g,y', end=end))
        assert groups(shell, "s.csv")[0] == {"a": 200, "b": 200}


def test_group_values_are_compared_literally(shell):
    odd = ("NA", "null", "None", '""', "nan", "0", "00", " a", "a")
    shell.write("s.csv", rows(n=900, groups=odd))
    found, _ = groups(shell, "s.csv")
    assert found == dict.fromkeys((g.strip('"') for g in odd), 100)
    shell("fit", "s.csv", *COLUMNS, "-o", "r.json", "-q")
    assert "(blank)" in shell("apply", "r.json", "s.csv", "-o", "o.csv").stdout
    shell("apply", "r.json", "s.csv", "-o", "o.parquet", "-q")
    shell("apply", "r.json", "o.parquet", "-o", "o2.csv", "--prefix", "x", "-q")
    assert all(r["probability"] == r["xprobability"] for r in table(shell.read("o2.csv")))


def test_groups_match_across_formats(shell):
    """A rule fitted on CSV, where 1 is text, matches the number 1 in Parquet, and vice versa."""
    shell.write("s.csv", rows(groups=("1", "2", "")))
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT id, p, g, y FROM read_csv('{shell.folder / 's.csv'}', types={{'id': 'VARCHAR'}})) "
            f"TO '{shell.folder / 's.parquet'}'"
        )
    shell("fit", "s.parquet", *COLUMNS, "-o", "numbers.json", "-q")
    assert fairramp.Rule.load(shell.folder / "numbers.json").groups == (1, 2, None)
    shell("apply", "numbers.json", "s.csv", "-o", "a.csv", "-q")
    shell("apply", "numbers.json", "s.parquet", "-o", "b.csv", "-q")
    probability = [[r["probability"] for r in table(shell.read(name))] for name in ("a.csv", "b.csv")]
    assert probability[0] == probability[1]
    shell.write("t.csv", rows(groups=("1", "2")))
    shell("fit", "t.csv", *COLUMNS, "-o", "text.json", "-q")
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (FROM '{shell.folder / 's.parquet'}' WHERE g = 1) TO '{shell.folder / 't.parquet'}'"
        )
    shell("apply", "text.json", "t.parquet", "-o", "c.csv", "-q")
    shell("fit", "s.csv", *COLUMNS, "-o", "blank.json", "-q")
    shell("apply", "blank.json", "s.parquet", "-o", "d.csv", "-q")
    shell("apply", "blank.json", "s.csv", "-o", "e.csv", "-q")
    probability = [[r["probability"] for r in table(shell.read(name))] for name in ("d.csv", "e.csv")]
    assert probability[0] == probability[1]


def test_groups_of_another_type_are_not_silently_pooled(shell):
    connection = duckdb.connect()
    connection.execute(
        f"COPY (SELECT i / 100 AS p, i % 2 AS g FROM range(100) AS t(i)) TO '{shell.folder}/n.parquet'"
    )
    connection.close()
    shell("fit", "n.parquet", *COLUMNS, "--unseen-group", "pooled", "-o", "r.json", "-q")
    shell.write("n.csv", "p,g\n0.5,0\n0.6,1\n0.7,2\n")
    shell("apply", "r.json", "n.csv", "-o", "o.csv", "-q")
    shell.write("some.csv", "p,g\n0.5,0\n0.6,x\n")
    done = shell("apply", "r.json", "some.csv", "-o", "o.csv", "--json")
    assert "1 row of groups not in the fit rows get the common threshold: x (1 row)." in done.stderr
    assert [row["group"] for row in json.loads(done.stdout)["groups"]] == [0, "x"]
    shell.write("words.csv", "p,g\n0.5,y\n0.6,x\n")
    assert "is it the same column?" in shell.error("apply", "r.json", "words.csv", "-o", "o.csv")


def test_unseen_groups_fail_and_are_named(fitted):
    fitted.write("new.csv", rows(groups=("a", "c")))
    said = fitted.error("apply", "rule.json", "new.csv", "-o", "o.csv")
    assert "c (200 rows)" in said
    assert "--unseen-group pooled" in said
    assert "o.csv" not in fitted.files()


def test_column_names_cannot_break_a_query(shell):
    header = io.StringIO()
    csv.writer(header).writerow([*NASTY, "id", "p", "y"])
    line = ",".join([*(f"v{i}" for i in range(len(NASTY))), "{id}", "{p}", "{y}"])
    for i, name in enumerate(NASTY):
        with_group = line.replace(f"v{i},", "{g},", 1)
        nasty = ['"x\'; DROP"', '"🦆\nb"']
        shell.write("s.csv", rows(n=60, groups=nasty, header=header.getvalue().strip(), line=with_group))
        shell("fit", "s.csv", "--score", "p", f"--group={name}", "-o", "r.json", "--replace", "-q")
        shell("apply", "r.json", "s.csv", "-o", "o.csv", "-q")
        before, after = (list(csv.reader(io.StringIO(shell.read(n), newline=""))) for n in ("s.csv", "o.csv"))
        assert [row[:-1] for row in after] == before
        assert set(fairramp.Rule.load(shell.folder / "r.json").groups) == {"x'; DROP", "🦆\nb"}
    shell("apply", "r.json", "s.csv", "-o", "o.parquet", "-q")
    assert duckdb.sql(f"SELECT * FROM '{shell.folder / 'o.parquet'}'").columns[:-1] == before[0]
    shell("apply", "r.json", "o.parquet", "-o", "o.jsonl", "--prefix", "n", "-q")
    assert list(json.loads(shell.read("o.jsonl").splitlines()[0])) == [*before[0], "probability", "nprobability"]
    shell("apply", "r.json", "o.jsonl", "-o", "o2.csv", "--prefix", "m", "-q")


def test_duplicate_names_and_names_that_differ_in_case(shell):
    shell.write("s.csv", rows(header="G,p,g,G"))
    shell("fit", "s.csv", *COLUMNS, "-o", "r.json", "-q")
    shell("apply", "r.json", "s.csv", "-o", "o.csv", "-q")
    assert shell.read("o.csv").startswith("G,p,g,G,probability\n")
    assert "2 columns called 'G'" in shell.error("audit", "s.csv", "--score", "p", "--group", "G")
    assert "write CSV" in shell.error("apply", "r.json", "s.csv", "-o", "o.parquet")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("id,p,g,y\n", "no rows"),
        ("id,p,g,y", "no rows"),
        ("id,p,g\n1,0.5,a\n2,0.5\n", "line 3"),
        ("id,p,g\n1,0.5,a\n2,0.5,a,9\n", "line 3"),
        ("id,p,g\n1,0.5,a\r\n2,0.5,a\n", "line ends"),
        ('id,p,g\n1,0.5,"a\n2,0.5,a\n', "line 2"),
        ("id,p,g\n1,0.5,\xe9\n".encode("latin-1"), "UTF-8"),
        ("id,p,g\n1,0.5,a\n".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04\x00\x00\x00", "is not CSV but a spreadsheet"),
        (b"p,g\x00\x00\x00", "not a text file"),
        ("id,p,g\n1,,a\n", "in 1 row: empty in line 2; correct it."),
        ("id,p,g\n1,0.5,a\n2,NA,a\n", "'NA' in line 3"),
        ("id,p,g\n1,0.5,a\n2,inf,a\n", "'inf' in line 3; correct it, or choose another column."),
        ("id,p,g\n1,0.5,a\n2,high,a\n", "'high' in line 3"),
        ("id,p,g\n1,50%,a\n2,70 %,b\n", "--scale percent"),
        ("id,p,g\n1,50,a\n2,70,b\n", "--scale percent"),
        ("id,p,g\n1,-0.5,a\n2,0.7,b\n", "--scale signed"),
        ("id,p,g\n1,-5.5,a\n2,3.7,b\n", "--scale logit"),
        ("id,p,g\n1,1.000.5,a\n2,0.7,b\n", "not a number"),
        ("id,score,g\n1,0.5,a\n", "It has: 'id', 'score', 'g'"),
        ("id,P,g\n1,0.5,a\n", "Did you mean 'P'?"),
        ("id,p,grp\n1,0.5,a\n", "no column 'g' (--group)"),
    ],
)
def test_bad_files_give_one_line(shell, text, said):
    shell.write("s.csv", text)
    assert said in shell.error("audit", "s.csv", *COLUMNS)


def test_misspelled_column_or_file_gets_a_hint(shell):
    shell.write("scores.csv", rows(header="id,score,gender,y"))
    assert "Did you mean 'gender'?" in shell.error("audit", "scores.csv", "--score", "score", "--group", "gendre")
    assert "Did you mean 'gender'?" in shell.error("audit", "scores.csv", "--score", "score", "--group", "end")
    assert "Did you mean 'score'?" in shell.error("audit", "scores.csv", "--score", "scores", "--group", "gender")
    assert "Did you mean scores.csv?" in shell.error(
        "audit", "score.csv", "--score", "score", "--group", "gender"
    )


def test_percent_and_logit_scales(shell):
    shell.write("s.csv", rows())
    data = table(rows())
    shell.write(
        "pct.csv", "id,p,g,y\n" + "".join(f"{r['id']},{float(r['p']) * 100:.2f} %,{r['g']},1\n" for r in data)
    )
    assert groups(shell, "pct.csv", "--scale", "percent") == groups(shell, "s.csv")
    shell("fit", "pct.csv", *COLUMNS, "--scale", "percent", "-o", "r.json", "-q")
    shell("apply", "r.json", "pct.csv", "-o", "o.csv", "-q")
    shell("fit", "s.csv", *COLUMNS, "-o", "s.json", "-q")
    shell("apply", "s.json", "s.csv", "-o", "o2.csv", "-q")
    chances = [[float(r["probability"]) for r in table(shell.read(n))] for n in ("o.csv", "o2.csv")]
    assert chances[0] == pytest.approx(chances[1], abs=1e-9)
    assert "--scale percent" in shell.error("apply", "s.json", "pct.csv", "-o", "o3.csv")
    shell.write("logit.csv", "id,p,g\n" + "".join(f"{i},{i - 50},{'ab'[i % 2]}\n" for i in range(100)))
    shell("fit", "logit.csv", *COLUMNS, "--scale", "logit", "-o", "l.json", "-q")
    assert "probabilities" in shell("fit", "logit.csv", *COLUMNS, "--scale", "logit", "-o", "m.json").stdout
    shell("apply", "l.json", "logit.csv", "-o", "l.csv", "-q")


def test_real_scores(shell):
    numbers = np.linspace(-6, 9, 100)
    shell.write(
        "s.csv", "id,p,g\n" + "".join(f"{i},{x!r},{'ab'[i % 2]}\n" for i, x in enumerate(numbers.tolist()))
    )
    said = shell.error("fit", "s.csv", *COLUMNS, "--scale", "real", "-o", "r.json")
    assert "Pass --cutoff, the score at which the classifier says yes" in said
    assert "otherwise --scale real and --cutoff" in shell.error("fit", "s.csv", *COLUMNS, "-o", "r.json")
    shell("fit", "s.csv", *COLUMNS, "--scale", "real", "--cutoff", "1.5", "--target-rate", "0.4", "-o", "r.json")
    rule = fairramp.Rule.load(shell.folder / "r.json")
    assert (rule.scale, rule.cutoff, rule.ramps[0].width) == ("real", 1.5, 0.01)
    for group, threshold in zip("ab", rule.thresholds, strict=True):
        own = numbers["ab".index(group) :: 2]
        assert (own >= threshold).mean() == pytest.approx(0.4, abs=0.03)
    shell("apply", "r.json", "s.csv", "-o", "o.csv", "-q")
    found = [float(r["probability"]) for r in table(shell.read("o.csv"))]
    assert found == pytest.approx(rule.probabilities(numbers, list("ab" * 50)), abs=1e-12)
    assert "any number; the classifier says yes at 1.5 or above" in shell("show", "r.json").stdout
    shell("audit", "s.csv", *COLUMNS, "--rule", "r.json")


def test_missing_and_repeated_ids(fitted):
    draw = ("--id", "id", "--key-file", "key.txt")
    fitted.write("gap.csv", rows().replace("\n00003,", "\n,").replace("\n00009,", "\n,"))
    said = fitted.error("apply", "rule.json", "gap.csv", "-o", "o.csv", *draw)
    assert "2 rows" in said
    assert "empty in line 5" in said
    # Only draws are shared, so an id that is repeated off the ramps does not matter.
    fitted("apply", "rule.json", "scores.csv", "-o", "o.csv", *draw)
    drawn = [row["id"] for row in table(fitted.read("o.csv")) if 0 < float(row["probability"]) < 1]
    others = [row["id"] for row in table(fitted.read("o.csv")) if row["id"] not in drawn]
    for name in ("o.csv", "o.parquet", "o.jsonl", "o.csv.gz"):
        for (first, second), warned in (((drawn[0], drawn[1]), True), ((drawn[0], others[0]), False)):
            fitted.write("twice.csv", rows().replace(f"\n{second},", f"\n{first},"))
            done = fitted("apply", "rule.json", "twice.csv", "-o", name, *draw)
            assert ("warning: 1 row on a ramp repeats the id of another row in 'id'" in done.stderr) == warned
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1.5 AS id, 0.5 AS p, 'a' AS g) TO '{fitted.folder / 'f.parquet'}'")
    assert "12.0" in fitted.error("apply", "rule.json", "f.parquet", "-o", "o.csv", *draw)


@pytest.mark.parametrize("target", ["o.csv", "o.tsv", "o.csv.gz", "o.parquet", "o.jsonl", "-"])
@pytest.mark.parametrize(
    "source", ["s.csv", "s.parquet", "s.jsonl", "comma.csv", "floats.parquet", "missing.csv"]
)
@pytest.mark.parametrize("draw", [("--id", "id", "--key-file", "key.txt"), ("--random-seed", "1"), ()])
def test_counts_are_those_of_the_written_file(fitted, source, target, draw):
    groups, commas = {
        "floats.parquet": (("1", "2"), False),
        "missing.csv": (("", "b,b", 'q"'), False),
        "comma.csv": (("a", "b"), True),
    }.get(source, (("a", "b"), False))
    text = rows(n=240, groups=tuple(f'"{g.replace(chr(34), 2 * chr(34))}"' if g else g for g in groups))
    if commas:
        text = text.replace(",", ";").replace(".", ",")
    fitted.write("s.csv" if not source.endswith(".csv") else source, text)
    if not source.endswith(".csv"):
        convert(fitted, "s.csv", source)
    if source == "floats.parquet":
        with duckdb.connect(str(fitted.folder / "x.db")) as connection:
            connection.execute(
                f"COPY (SELECT id, p, CAST(g AS DOUBLE) AS g, y FROM '{fitted.folder / source}') "
                f"TO '{fitted.folder / 'f2.parquet'}'"
            )
        shutil.move(fitted.folder / "f2.parquet", fitted.folder / source)
    fitted("fit", source, *COLUMNS, "--ramp-width", "0.2", "-o", "own.json", "-q")
    rule = fairramp.Rule.load(fitted.folder / "own.json")
    done = fitted("apply", "own.json", source, "-o", target, *draw, "--json")
    said = json.loads(done.stderr if target == "-" else done.stdout)
    scores = [float(row["p"].replace(",", ".")) for row in table(text, ";" if commas else ",")]
    labels = [row["g"] for row in table(text, ";" if commas else ",")]
    if source == "floats.parquet":
        labels = list(map(int, labels))
    chances = rule.probabilities(scores, labels)
    for found in said["groups"]:
        own = [p for p, label in zip(chances, labels, strict=True) if label == found["group"]]
        assert found["rows"] == len(own)
        assert found["expected_rate"] == pytest.approx(sum(own) / len(own), abs=1e-9)
        assert found["in_ramp"] == sum(0 < p < 1 for p in own)
        assert (found["selected"] is None) == (draw == ())
    assert sum(found["rows"] for found in said["groups"]) == len(labels)
    if draw[:1] == ("--id",):
        ids = [row["id"] for row in table(text, ";" if commas else ",")]
        decisions = rule.decide(scores, labels, ids=ids, key=fitted.read("key.txt"))
        assert sum(found["selected"] for found in said["groups"]) == decisions.sum()


def test_file_without_rows_gives_a_file_without_rows(fitted):
    fitted.write("none.csv", "id,p,g\n")
    for name in ("o.csv", "o.parquet", "o.csv.gz"):
        fitted("apply", "rule.json", "none.csv", "-o", name, "--id", "id", "--key-file", "key.txt")
    assert fitted.read("o.csv") == "id,p,g,probability,decision\n"
    assert duckdb.sql(f"SELECT * FROM '{fitted.folder / 'o.parquet'}'").fetchall() == []


def test_labels_can_be_words_for_yes_and_no_only(shell):
    shell.write("s.csv", rows())
    shell.write(
        "words.csv",
        "".join(
            line.replace(",1\n", ",True\n").replace(",0\n", ",false\n")
            for line in rows().splitlines(keepends=True)
        ),
    )
    found = [
        json.loads(shell("audit", n, *COLUMNS, "--label", "y", "--json").stdout)["before"]
        for n in ("s.csv", "words.csv")
    ]
    assert found[0] == found[1]
    shell.write("bad.csv", rows().replace(",1\n", ",2\n"))
    assert "'2' in line 7" in shell.error("audit", "bad.csv", *COLUMNS, "--label", "y")
    assert "'2' in line 7" in shell.error("fit", "bad.csv", *COLUMNS, "--label", "y", "-o", "r.json")
    shell.write("bad.csv", rows().replace(",1\n", ",maybe\n"))
    assert "use 1 for yes" in shell.error("audit", "bad.csv", *COLUMNS, "--label", "y")


def test_json_dates_stay_text(shell):
    lines = [{"id": f"{i:03d}", "p": i / 100, "g": "ab"[i % 2], "t": "2024-01-01T00:00:00Z"} for i in range(100)]
    shell.write("s.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    shell("fit", "s.jsonl", *COLUMNS, "-o", "r.json", "-q")
    shell("apply", "r.json", "s.jsonl", "-o", "o.jsonl", "-q")
    out = [json.loads(line) for line in shell.read("o.jsonl").splitlines()]
    assert [{k: v for k, v in row.items() if k != "probability"} for row in out] == lines


def test_damaged_files_fail(shell):
    shell.write("bad.parquet", b"PAR1 and then nothing")
    assert "cannot be read as parquet" in shell.error("audit", "bad.parquet", *COLUMNS)
    shell.write("bad.csv.gz", b"\x1f\x8b broken")
    assert "gz" in shell.error("audit", "bad.csv.gz", *COLUMNS)
    shell.write("bad.jsonl", '{"id": 1, "p": 0.5, "g": "a"}\n{"id": 2, "p"\n')
    assert "jsonl" in shell.error("audit", "bad.jsonl", *COLUMNS)
    assert "local" in shell.error("audit", "https://example.com/x.csv", *COLUMNS)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("packed.csv.gz", gzip.compress(b"p,g\n0.5,a\n", mtime=0)[:10] + b"\xff" * 30, "not a valid gzip file"),
        ("long.csv", b"[" * 5000 + b",g\n0.5,a\n", "has no column 'p'"),
        ("line.csv", b"id;p;g\n1;0,5;a\n" + b"[" * 5000 + b";b\n", "it has 2 cells, but the header has 3"),
    ],
)
def test_damage_found_by_fuzzing_gives_a_short_line(shell, name, content, said):
    shell.write(name, content)
    message = shell.error("audit", name, "--score", "p", "--group", "g")
    assert said in message
    assert len(message) < 500


@pytest.mark.parametrize("empty", ["e.json", "e.jsonl", "e.jsonl.gz", "e.csv", "e.parquet"])
@pytest.mark.parametrize("target", ["o.json", "o.jsonl", "o.csv", "o.parquet"])
def test_an_empty_table_gives_an_empty_table(fitted, empty, target):
    shell = Inside(fitted.folder)
    shell.write("header.csv", "id,p,g\n")
    shell("apply", "rule.json", "header.csv", "-o", empty)
    done = shell("apply", "rule.json", empty, "-o", target, "--prefix", "new_")
    assert f"{empty} has " in done.stderr
    assert "no rows, so the output has none either." in done.stderr
    if target in ("o.csv", "o.parquet"):
        found = duckdb.sql(f"FROM '{shell.folder}/{target}'")
        assert ({"p", "g", "new_probability"} <= set(found.columns), found.fetchall()) == (True, [])
    shell("apply", "rule.json", target, "-o", "again.csv", "--prefix", "again_")
    assert " no rows." in shell.error("audit", target, "--score", "p", "--group", "g")


def test_empty_files_of_a_folder_have_no_rows(fitted):
    shell = Inside(fitted.folder)
    (shell.folder / "days").mkdir()
    shell.write("days/1.jsonl", "")
    shell.write("days/2.jsonl", '{"p": 0.2, "g": "a"}\n{"p": 0.7, "g": "b"}\n')
    shell.write("days/3.jsonl", "")
    assert json.loads(shell("audit", "days", "--rule", "rule.json", "--json").stdout)["rows"] == [1, 1]


@pytest.mark.parametrize("start", ["[{", "[\n  {", " [ \n {"])
def test_a_json_array_is_found_by_its_content(fitted, start):
    shell = Inside(fitted.folder)
    text = start + '"p": 0.2, "g": "a"}, {"p": 0.7, "g": "b"}]'
    shell.write("found", text)
    for data in ("found", "-"):
        done = shell("audit", data, "--rule", "rule.json", "--json", stdin=text.encode())
        assert json.loads(done.stdout)["rows"] == [1, 1]


LINES = ["id,p,g", *(f"{i},0.{i % 97:02},{'ab'[i % 2]}" for i in range(60))]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('9,0.5,"b', "a quote is not closed; close it, or remove it."),
        (
            "9,0.5,b,x",
            "it has 4 cells, but the header has 3; put each cell that contains the delimiter in quotes.",
        ),
        ("9,0.5", "it has 2 cells, but the header has 3; add the cells that are missing."),
    ],
)
def test_a_broken_line_is_told_with_its_file_and_a_remedy(fitted, line, said):
    shell = Inside(fitted.folder)
    text = "\n".join([*LINES[:20], line, *LINES[20:]]) + "\n"
    shell.write("d.csv", text)
    (shell.folder / "parts").mkdir()
    shell.write("parts/1.csv", "\n".join(LINES))
    shell.write("parts/2.csv", text)
    for data, where in (("d.csv", "d.csv"), ("parts", "parts/2.csv"), ("-", "stdin")):
        told = shell.error("audit", data, "--rule", "rule.json", stdin=text.encode())
        assert told == f"{where} cannot be read: line 21: {said}"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("audit", "", "--rule", "rule.json"),
            "DATA is empty; pass a file, a folder, a glob in quotes, or - for stdin.",
        ),
        (("show", ""), "The name of the rule is empty; pass a file written by fairramp fit."),
        (("--verison",), "Unknown option: --verison. Did you mean --version? See: fairramp --help"),
        (
            ("fit", "d.csv", "--threshold", "0.6"),
            "Unknown option: --threshold. Did you mean --cutoff? See: fairramp fit --help",
        ),
        (
            ("apply", "r.json", "d.csv", "--key", "k"),
            "Unknown option: --key. Did you mean --key-file? See: fairramp apply --help",
        ),
        (
            ("apply", "r.json", "d.csv", "--seed", "1"),
            "Unknown option: --seed. Did you mean --random-seed? See: fairramp apply --help",
        ),
        (
            ("export", "r.json", "--format", "sql"),
            "Unknown option: --format. Did you mean --to? See: fairramp export --help",
        ),
        (("--jsno",), "Unknown option: --jsno. See: fairramp --help"),
        (
            ("frontier", "scores.csv", "--score", "p", "--group", "g", "--label", "y", "-o", "f.svgg"),
            "Unknown format of f.svgg: use a name that ends in .csv, .tsv, .jsonl, .parquet, .svg, .png or "
            ".html.",
        ),
        (
            ("apply", "rule.json", "scores.csv", "-o", "f.svg"),
            "Unknown format of f.svg: use a name that ends in .csv, .tsv, .jsonl or .parquet.",
        ),
    ],
)
def test_mistakes_are_told_with_what_is_possible(fitted, arguments, told):
    assert Inside(fitted.folder).error(*arguments) == told
