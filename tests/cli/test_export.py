"""`fairramp export`: every format decides as `fairramp apply` does, and no file is lost or half-written."""

import contextlib
import csv
import json
import re
import shlex
import sqlite3
from dataclasses import replace
from pathlib import Path

import duckdb
import jinja2
import numpy as np
import onnx
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairramp
from class_samples import class_people, quiet_class_fit
from fairramp import ClassRule, Columns, Ramp, Rule
from samples import quiet_fit
from shell import KEY, Inside


@pytest.fixture
def inside(fitted):
    """Runs in the same folder without starting a process for each command."""
    return Inside(fitted.folder)


@pytest.fixture
def applied(inside):
    """Id, probability and decision of each row according to `apply`."""
    inside("apply", "rule.json", "scores.csv", "-o", "done.csv", "--id", "id", "--key-file", "key.txt", "-q")
    with open(inside.folder / "done.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [(row["id"], float(row["probability"]), int(row["decision"])) for row in rows]


def in_duckdb(folder, text):
    with duckdb.connect() as connection:
        path = str(folder / "scores.csv")
        columns = "{'id': 'VARCHAR', 'p': 'DOUBLE', 'g': 'VARCHAR', 'y': 'INTEGER'}"
        connection.execute(f"CREATE TABLE scores AS SELECT * FROM read_csv('{path}', columns = {columns})")
        connection.execute("CREATE TABLE secrets (key VARCHAR)")
        connection.execute("INSERT INTO secrets VALUES (?)", [KEY])
        return connection.execute(text).fetchall()


def test_sql_matches_apply(inside, applied):
    inside("export", "rule.json", "--to", "sql", "--dialect", "duckdb", "--table", "scores", "--id", "id",
           "--key-table", "secrets", "-o", "rule.sql")  # fmt: skip
    text = inside.read("rule.sql")
    assert Rule.load(inside.folder / "rule.json").fingerprint in text.split("\n")[1]
    assert text.startswith("-- A fairramp rule")
    found = in_duckdb(inside.folder, text)
    assert [(row[0], row[-2], row[-1]) for row in found] == applied


def test_macro_has_the_name_of_its_file(inside, applied):
    done = inside("export", "rule.json", "--to", "dbt", "--id", "id", "--key-table", "secrets", "-o", "fair.sql")
    assert "Macro: fair." in done.stdout
    template = jinja2.Environment().from_string(inside.read("fair.sql"))
    found = in_duckdb(inside.folder, f"SELECT *, {template.module.fair()} FROM scores")
    assert [(row[0], row[-2], row[-1]) for row in found] == applied


def test_page_shows_the_way_in_duckdb(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
    typed, queries = re.findall(r"```\w+\n(.*?)```", page.split("\n## DuckDB\n")[1].split("\n## ")[0], re.DOTALL)
    data, shell = fairramp.datasets.load_adult_scores(), Inside(tmp_path)
    columns = {"person": data.id[:500], "p": data.score[:500], "sex": data.sex[:500]}
    pq.write_table(pa.table(columns), tmp_path / "applicants.parquet")
    rule = fairramp.fit_rule(data.score, {"sex": data.sex}, max_gap=0.02, ramp_width=0.5)
    replace(rule, columns=Columns(score="p", groups=("sex",))).save(tmp_path / "rule.json")
    *commands, last = typed.replace("\\\n", "").splitlines()
    assert last.startswith("duckdb ")
    for command in commands:
        shell(*shlex.split(command)[1:])
    with contextlib.chdir(tmp_path), duckdb.connect() as connection:
        connection.execute(queries.replace(".read fair.sql", shell.read("fair.sql")))
        found = connection.execute("SELECT decision FROM 'decisions.parquet' ORDER BY person").fetchall()
        connection.execute("DROP TABLE draw_key")
        connection.execute("CREATE TABLE draw_key AS SELECT content AS key FROM read_text('key.txt')")
        unread = connection.execute("SELECT count(*) FROM fair_applicants WHERE decision IS NULL").fetchall()
    key = shell.read("key.txt").strip()
    decided = rule.decide(columns["p"], columns["sex"], ids=columns["person"], key=key)
    order = np.argsort(columns["person"])
    assert [decision for (decision,) in found] == decided[order].tolist()
    assert unread[0][0] > 0  # as the page warns


def test_sql_says_which_columns_it_gives(inside):
    def said(*arguments):
        done = inside("export", "rule.json", "--to", "SQL", "--dialect", *arguments, "-o", "rule.sql")
        return " ".join(done.stdout.split())

    decide = "For decisions, pass --id COLUMN and --key-table TABLE."
    assert said("DuckDB", "--prefix", "new_").endswith(f" Column: new_probability. {decide}")
    assert said("sqlite").endswith(" Column: probability.")  # it cannot make decisions
    assert said("duckdb", "--id", "id", "--key-table", "k").endswith(" Columns: probability and decision.")


@pytest.mark.parametrize(
    ("given", "name", "title", "is_run"),
    [
        ("pg", "postgres", "PostgreSQL", True),
        ("Databricks", "spark", "Spark", True),
        ("MariaDB", "mariadb", "MariaDB", True),
        ("mysql", "mysql", "MySQL", False),
        ("bq", "bigquery", "BigQuery", False),
        ("snowflake", "snowflake", "Snowflake", False),
    ],
)
def test_messages_have_the_name_of_the_database_and_whether_it_was_tested(inside, given, name, title, is_run):
    """Only databases on which the tests run the SQL are tested."""
    warning = f"Not tested on {title} itself: compare a few thousand rows with fairramp apply first."
    for to, output in (("sql", "rule.sql"), ("dbt", "fair.sql")):
        done = inside("export", "rule.json", "--to", to, "--dialect", given, "-o", output)
        said = " ".join(done.stdout.split())
        assert f"as {'SQL' if to == 'sql' else 'a dbt macro'} for {title}. " in said
        assert (warning in said) == (warning in inside.read(output)) == (not is_run)
    asked = ("export", "rule.json", "--to", "sql", "--dialect", given, "-o", "rule.sql", "--json")
    assert json.loads(inside(*asked).stdout)["dialect"] == name


def test_sql_goes_to_stdout_and_messages_to_stderr(inside, applied):
    done = inside("export", "rule.json", "--to", "sql", "--dialect", "sqlite")
    assert done.stdout.startswith("-- A fairramp rule")
    assert "Saved to stdout" in done.stderr
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE scores (id TEXT, p REAL, g TEXT, y INTEGER)")
        with open(inside.folder / "scores.csv", encoding="utf-8") as file:
            rows = [tuple(row.values()) for row in csv.DictReader(file)]
        connection.executemany("INSERT INTO scores VALUES (?, ?, ?, ?)", rows)
        found = connection.execute(f"SELECT id, {done.stdout} FROM scores").fetchall()
    assert found == [(who, probability) for who, probability, _ in applied]
    again = inside("export", "rule.json", "--to", "sql", "--dialect", "sqlite", "-o", "-", "-q")
    assert (again.stdout, again.stderr) == (done.stdout, "")


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark", "snowflake", "bigquery", "mysql", "mariadb"])
def test_every_dialect_has_a_header(inside, dialect):
    inside("export", "rule.json", "--to", "sql", "--dialect", dialect, "--table", "a.b", "--view", "c",
           "--score", "s", "--group", "my group", "--id", "who", "--key-table", "k", "--key-column", "x",
           "--prefix", "fair_", "-o", "r.sql")  # fmt: skip
    text = inside.read("r.sql")
    assert "CREATE VIEW" in text
    for name in ("my group", "who", "fair_probability", "fair_decision"):
        assert name in text


@pytest.mark.parametrize(("groups", "is_told"), [(("", "A"), True), (("", None), False), (("A", "B"), False)])
def test_sql_warns_that_empty_cells_must_not_become_null(inside, groups, is_told):
    rule = Rule(groups, (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)), columns=Columns(groups=("g",)))
    rule.save(inside.folder / "rule.json")
    done = inside("export", "rule.json", "--to", "sql", "--dialect", "duckdb", "--score", "p", "-o", "rule.sql")
    header = (inside.folder / "rule.sql").read_text()
    assert ("load empty cells as empty text" in header) == is_told
    assert ("load empty cells as empty strings" in " ".join(done.stdout.split())) == is_told


def test_onnx_matches_apply(inside, applied):
    said = inside("export", "rule.json", "--to", "onnx", "--decisions", "-o", "rule.onnx").stdout
    assert "Inputs: p (float64), g (text), u (float64)." in said
    assert all(len(line) <= 80 for line in said.splitlines())
    session = onnxruntime.InferenceSession(inside.folder / "rule.onnx", providers=["CPUExecutionProvider"])
    with open(inside.folder / "scores.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    feed = {
        "p": np.array([float(row["p"]) for row in rows]),
        "g": np.array([row["g"] for row in rows], dtype=object),
        "u": fairramp.draws([row["id"] for row in rows], KEY),
    }
    probability, decision = session.run(None, feed)
    assert list(zip([r["id"] for r in rows], probability.tolist(), decision.tolist(), strict=True)) == applied


def test_onnx_joins_a_user_model(inside):
    chances = onnx.helper.make_tensor_value_info("chances", onnx.TensorProto.FLOAT, ["rows", 2])
    features = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", 2])
    node = onnx.helper.make_node("Identity", ["x"], ["chances"])
    own = onnx.helper.make_model(
        onnx.helper.make_graph([node], "own", [features], [chances]),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
    )
    (inside.folder / "own.onnx").write_bytes(own.SerializeToString())
    inside("export", "rule.json", "--to", "onnx", "--model", "own.onnx", "--column", "1", "-o", "fair.onnx")
    model = onnx.load(inside.folder / "fair.onnx")
    assert [tensor.name for tensor in model.graph.input] == ["x", "g"]
    assert "would overwrite --model" in inside.error(
        "export", "rule.json", "--to", "onnx", "--model", "own.onnx", "-o", "own.onnx"
    )


@pytest.mark.parametrize(("labels", "missing"), [(("a", None), "nobody"), ((1, None), "-1")])
def test_onnx_with_a_missing_group(inside, labels, missing):
    Rule(labels, (Ramp.centered(0.2, 0.1), Ramp.centered(0.4, 0.1))).save(inside.folder / "r.json")
    assert "pass --missing" in inside.error("export", "r.json", "--to", "onnx", "-o", "r.onnx")
    inside("export", "r.json", "--to", "onnx", "-o", "r.onnx", "--missing", missing)
    session = onnxruntime.InferenceSession(inside.folder / "r.onnx", providers=["CPUExecutionProvider"])
    group = np.array([missing], dtype=object) if labels[0] == "a" else np.array([int(missing)])
    (found,) = session.run(None, {"score": np.array([0.5]), "group": group})
    assert found == [1.0]


def test_json_is_the_rule_without_its_record(inside):
    done = inside("export", "rule.json", "--to", "json")
    rule, again = Rule.load(inside.folder / "rule.json"), Rule.from_json(done.stdout)
    assert again.record is None
    assert (again.fingerprint, again.columns.groups) == (rule.fingerprint, ("g",))
    inside.write("bare.json", done.stdout)
    inside("apply", "bare.json", "scores.csv", "-o", "out.csv")


def test_column_names_survive_without_the_record(inside):
    rule = quiet_fit(np.linspace(0, 1, 300), {"g": list("ab") * 150}, strata={"my unit": [1, 2, 2] * 100})
    rule.save(inside.folder / "strata.json")
    again = Rule.from_json(inside("export", "strata.json", "--to", "json").stdout)
    assert again.columns == rule.columns == Columns(groups=("g",), strata=("my unit",))


@pytest.mark.parametrize("to", [("sql", "--dialect", "duckdb"), ("json",)])
def test_in_a_pipe_json_goes_to_stderr(inside, to):
    plain = inside("export", "rule.json", "--to", *to, "-q").stdout
    done = inside("export", "rule.json", "--to", *to, "--json")
    assert done.stdout == plain
    assert json.loads(done.stderr)["output"] == "-"


def test_json_output(inside):
    done = inside("export", "rule.json", "--to", "onnx", "-o", "rule.onnx", "--json")
    found = json.loads(done.stdout)
    assert found["rule_fingerprint"] == Rule.load(inside.folder / "rule.json").fingerprint
    assert (found["command"], found["to"], found["output"]) == ("export", "onnx", "rule.onnx")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "duckdb"), "--to sql --dialect duckdb"),
        (("--to", "excel"), "--to must be one of 'sql', 'dbt', 'onnx', 'torch', 'json', got 'excel'."),
        (("--to", "onxx"), "did you mean 'onnx'?"),
        (("--to", "postgresql"), "--to sql --dialect postgres."),
        (("--to", "sql", "--dialect", "sparc"), "got 'sparc'; did you mean 'spark'?"),
        (
            ("--to", "sql", "--dialect", "duckdb", "--table", "../new scores.parquet"),
            "--table must be the name of a table or view, and ../new scores.parquet is a file; load it first, in "
            "DuckDB with: CREATE VIEW \"new_scores\" AS FROM '../new scores.parquet'.",
        ),
        (("--to", "sql", "--dialect", "duckdb", "--table", "t", "--replace"), "--replace needs --view"),
        (("--to", "onnx", "-o", "r.onnx", "--replace"), "--replace works with --to sql"),
        (("--to", "sql"), "--dialect"),
        (("--to", "sql", "--dialect", "oracle"), "--dialect"),
        (
            ("--to", "sql", "--dialect", "duckdb", "--decisions"),
            "to sql. For decisions, pass --id COLUMN and --key-",
        ),
        (("--to", "sql", "--dialect", "duckdb", "--id", "id"), "--key-table"),
        (("--to", "sql", "--dialect", "sqlite", "--id", "id", "--key-table", "k"), "SHA-256"),
        (("--to", "sql", "--dialect", "duckdb", "--view", "v"), "--table"),
        (("--to", "onnx"), "-o FILE.onnx"),
        (("--to", "onnx", "-o", "-"), "-o FILE.onnx"),
        (("--to", "onnx", "-o", "r.onnx", "--table", "t"), "--table works with --to sql"),
        (("--to", "onnx", "-o", "r.onnx", "--column", "1"), "--model"),
        (("--to", "onnx", "-o", "r.onnx", "--model", "scores.csv"), "not an ONNX model"),
        (("--to", "onnx", "-o", "r.onnx", "--model", "none.onnx"), "none.onnx"),
        (("--to", "onnx", "-o", "no/r.onnx"), "no"),
        (("--to", "torch"), "-o FILE.pt2"),
        (("--to", "torch", "-o", "r.pt2", "--prefix", "x"), "--prefix works with --to sql, dbt or onnx"),
        (("--to", "dbt"), "pass -o macros/NAME.sql"),
        (("--to", "dbt", "-o", "-"), "pass -o macros/NAME.sql"),
        (("--to", "dbt", "-o", "my-rule.sql"), "where NAME consists of letters, digits and underscores"),
        (("--to", "dbt", "-o", "fair.sql", "--table", "t"), "--table works with --to sql, not with --to dbt"),
        (("--to", "dbt", "-o", "fair.sql", "--id", "id"), "--key-table"),
        (("--to", "dbt", "-o", "fair.sql", "--dialect", "oracle"), "--dialect"),
        (("--to", "dbt", "-o", "fair.sql", "--id", "id", "--key-table", KEY), "looks like a key"),
        (("--to", "sql", "--dialect", "duckdb", "-o", "rule.json"), "would overwrite the rule"),
        (("--to", "json", "-o", "rule.json"), "would overwrite the rule"),
        (("--to", "sql", "--dialect", "duckdb", "-o", "scores.csv"), "not overwritten"),
        (("--to", "json", "-o", "key.txt"), "not overwritten"),
    ],
    ids=" ".join,
)
def test_mistakes_give_one_line_and_change_nothing(inside, arguments, said):
    before = {name: inside.read(name) for name in inside.files()}
    assert said in inside.error("export", "rule.json", *arguments)
    assert {name: inside.read(name) for name in inside.files()} == before


def test_earlier_export_is_replaced(inside):
    for arguments in (
        ("sql", "-o", "r.sql", "--dialect", "duckdb"),
        ("dbt", "-o", "fair.sql"),
        ("onnx", "-o", "r.onnx"),
        ("json", "-o", "j.json"),
    ):
        first = [inside("export", "rule.json", "--to", *arguments) for _ in range(2)]
        assert first[0].stdout == first[1].stdout


def test_edited_export_is_not_replaced(inside):
    order = ("export", "rule.json", "--to", "sql", "--dialect", "duckdb", "-o", "mine.sql")
    inside(*order)
    mine = f"-- my own work\n{inside.read('mine.sql')}"
    (inside.folder / "mine.sql").write_text(mine, encoding="utf-8")
    assert "not overwritten" in inside.error(*order)
    assert inside.read("mine.sql") == mine


def test_onnx_with_missing_values_in_columns_of_different_types(inside):
    groups = (("f", 1), (None, 2), ("m", None))
    ramps = tuple(Ramp.centered(threshold, 0.1) for threshold in (0.2, 0.4, 0.6))
    Rule(groups, ramps, columns=Columns(groups=("sex", "unit"))).save(inside.folder / "r.json")
    order = ("export", "r.json", "--to", "onnx", "-o", "r.onnx", "--missing")
    assert "an integer that is not a group of 'unit'" in inside.error(*order, "x")
    inside(*order, "-1")
    session = onnxruntime.InferenceSession(inside.folder / "r.onnx", providers=["CPUExecutionProvider"])
    sex, unit = np.array(["-1", "m", "f"], dtype=object), np.array([2, -1, -1])
    (found,) = session.run(None, {"score": np.full(3, 0.5), "sex": sex, "unit": unit})
    np.testing.assert_array_equal(found, [1.0, 0.0, np.nan])


# Several classes ------------------------------------------------------------------------------

LABELS = ("low", "mid", "high", 4)


@pytest.fixture
def classes(tmp_path):
    """A folder with class.json, a rule for four classes; the fixture has the rule and its rows, too."""
    p, g, _ = class_people()
    inside = Inside(tmp_path)
    inside.rule = quiet_class_fit(p, {"g": g}, classes=LABELS, max_gap=0.02, ramp_width=0.1)
    inside.rule.save(tmp_path / "class.json")
    inside.scores, inside.groups = p, g
    ids = [f"id {i}" for i in range(len(p))]
    inside.u = fairramp.draws(ids, KEY)
    inside.chances = inside.rule.probabilities(p, g)
    inside.decided = inside.rule.drawn(inside.chances, ids=ids, key=KEY)
    return inside


def test_onnx_of_several_classes_decides_as_the_rule(classes):
    said = classes("export", "class.json", "--to", "onnx", "--decisions", "-o", "r.onnx").stdout
    said = " ".join(said.split())
    assert "Inputs: score (float64), g (text), u (float64)." in said
    assert "probability (one column per class: low, mid, high, 4) and decision (0 to 3, the position of" in said
    session = onnxruntime.InferenceSession(classes.folder / "r.onnx", providers=["CPUExecutionProvider"])
    feed = {"score": classes.scores, "g": np.array(classes.groups, dtype=object), "u": classes.u}
    probability, decision = session.run(None, feed)
    np.testing.assert_array_equal(probability, classes.chances)
    np.testing.assert_array_equal(decision, classes.decided)


def test_onnx_of_several_classes_joins_a_user_model(classes):
    put, out = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, ["rows", 4])
        for name in ("x", "chances")
    )
    node = onnx.helper.make_node("Identity", ["x"], ["chances"])
    graph = onnx.helper.make_graph([node], "own", [put], [out])
    own = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (classes.folder / "own.onnx").write_bytes(own.SerializeToString())
    order = ("export", "class.json", "--to", "onnx", "--model", "own.onnx", "-o", "fair.onnx")
    assert "uses all columns and no --column; remove it" in classes.error(*order, "--column", "1")
    classes(*order)
    session = onnxruntime.InferenceSession(classes.folder / "fair.onnx", providers=["CPUExecutionProvider"])
    feed = {"x": classes.scores, "g": np.array(classes.groups, dtype=object)}
    np.testing.assert_array_equal(session.run(["probability"], feed)[0], classes.chances)


def test_json_of_several_classes_is_the_rule_without_its_record(classes):
    again = ClassRule.from_json(classes("export", "class.json", "--to", "json").stdout)
    assert again.record is None
    assert (again.fingerprint, again.columns) == (classes.rule.fingerprint, classes.rule.columns)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "sql"), "SQL does not support several classes; apply in DuckDB, or export ONNX."),
        (("--to", "sql", "--dialect", "duckdb", "-o", "r.sql"), "SQL does not support several classes"),
        (("--to", "excel"), "--to must be one of 'sql', 'dbt', 'onnx', 'torch', 'json', got 'excel'."),
        (("--to", "onnx"), "-o FILE.onnx"),
        (("--to", "onnx", "-o", "r.onnx", "--strata", "s"), "--strata"),
        (("--to", "onnx", "-o", "r.onnx", "--group-probability", "q"), "--group-probability"),
        (("--to", "json", "-o", "class.json"), "would overwrite the rule"),
    ],
    ids=" ".join,
)
def test_formats_that_classes_do_not_have_give_one_line_and_write_nothing(classes, arguments, said):
    before = classes.read("class.json")
    assert said in classes.error("export", "class.json", *arguments)
    assert (classes.files(), classes.read("class.json")) == (["class.json"], before)


@pytest.mark.torch
def test_torch_of_several_classes_decides_as_the_rule(classes):
    torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")
    said = classes("export", "class.json", "--to", "torch", "--decisions", "-o", "rule.pt2").stdout
    assert "scores (float64, one column per class)" in " ".join(said.split())
    program = torch.export.load(classes.folder / "rule.pt2").module()
    codes = [classes.rule.groups.index(label) for label in classes.groups]
    inputs = torch.from_numpy(classes.scores), torch.tensor(codes), torch.from_numpy(classes.u)
    probability, decision = program(*inputs)
    np.testing.assert_array_equal(probability, classes.chances)
    np.testing.assert_array_equal(decision, classes.decided)


def test_key_appears_in_no_file_and_no_message(fitted):
    secret = {"FAIRRAMP_KEY": KEY}
    for form in (("sql", "--dialect", "duckdb", "--id", "id", "--key-table", "k", "-o", "r.sql"),
                 ("onnx", "--decisions", "-o", "r.onnx")):  # fmt: skip
        done = fitted("export", "rule.json", "--to", *form, env=secret)
        assert KEY not in done.stdout + done.stderr
        assert KEY.encode() not in (fitted.folder / form[-1]).read_bytes()
    for option, name in (("--key-table", KEY), ("--key-column", KEY), ("--key-table", f"main.{KEY}")):
        said = fitted.error("export", "rule.json", "--to", "sql", "--dialect", "duckdb", option, name)
        assert "looks like a key" in said
        assert "history of your shell" in said
        assert KEY not in said


def test_missing_torch_gives_install_command(inside, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "fairramp.deploy.torch", raising=False)
    assert "pip install 'fairramp[torch]'" in inside.error("export", "rule.json", "--to", "torch", "-o", "r.pt2")


@pytest.mark.torch
def test_torch_matches_apply(inside, applied):
    torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")
    inside("export", "rule.json", "--to", "torch", "--decisions", "-o", "rule.pt2")
    program = torch.export.load(inside.folder / "rule.pt2").module()
    with open(inside.folder / "scores.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    codes = {label: place for place, label in enumerate(Rule.load(inside.folder / "rule.json").groups)}
    probability, decision = program(
        torch.tensor([float(row["p"]) for row in rows], dtype=torch.float64),
        torch.tensor([codes[row["g"]] for row in rows]),
        torch.from_numpy(fairramp.draws([row["id"] for row in rows], KEY)),
    )
    assert list(zip([r["id"] for r in rows], probability.tolist(), decision.tolist(), strict=True)) == applied
