"""A rule in dbt decides like NumPy, whatever its labels contain; the tests of the package never pass wrongly."""

import json
import re
import subprocess
from pathlib import Path

import duckdb
import jinja2
import numpy as np
import pyarrow as pa
import pytest
from cases import KEY, ODDS, case
from hypothesis import given
from hypothesis import strategies as st
from mixed import each, soft
from test_sql_safety import MARKS

import pages
from fairramp import InputError, Ramp, Rule, fit_rule
from fairramp.datasets import load_adult_scores
from fairramp.deploy.dbt import to_macro

ROOT = Path(__file__).parents[2]
DBT = ROOT / ".venv-dbt" / "bin" / "dbt"
in_dbt = pytest.mark.dbt
installed = pytest.mark.skipif(not DBT.exists(), reason="dbt is not installed: make test-dbt")
FEW = slice(0, 10_000)
NAMES = {"score": "p", "group": "g", "id": "who", "key_table": "draw_key"}
HOSTILE = (
    *(
        "=cmd()",
        "{{ x }}",
        "{{ '",
        "}}",
        "{% raw %}",
        "{% endraw %}",
        "{% endmacro %}",
        "{# ",
        "#}",
        "{",
        "{{",
        "|",
    ),
    *(
        "'",
        '"',
        "\\",
        "\\n",
        "a\nb",
        "a\rb",
        "a\r\nb",
        "\r",
        "# x",
        "-- ",
        "/*",
        "%s",
        "${x}",
        "🙂",
        "é",
        " ",
        "",
    ),
)
marks = st.lists(st.sampled_from((*MARKS, *HOSTILE, "%}", "{{{", "-%}", "{%-")), max_size=6).map("".join)


def _rule(groups):
    n = len(groups)
    return Rule(tuple(groups), tuple(Ramp.centered(0.2 + 0.6 * k / n, 0.9) for k in range(n)))


# The text of the macro ------------------------------------------------------------------------


@given(st.lists(marks, min_size=1, max_size=4, unique=True), marks, marks)
def test_labels_and_names_are_inert_in_jinja(labels, score, group):
    named = {"score": score, "group": group}
    try:
        text = to_macro(_rule(labels), "fair", **named)
        plain = _rule(labels).to_sql("duckdb", **named)
    except InputError as error:
        assert re.search(r"NUL|Unicode|empty name", str(error))  # noqa: PT017
        return
    made = str(jinja2.Environment().from_string(text).module.fair())
    rows = pa.table(
        {"n": range(len(labels) + 1), "a": [0.45] * (len(labels) + 1), "b": [*labels, "none of them"]}
    )
    connection = duckdb.connect()
    connection.register("given", rows)
    quoted = [name.replace('"', '""') for name in (score, group)]
    source = f'(SELECT n, a AS "{quoted[0]}", b AS "{quoted[1]}" FROM given)' if score != group else None
    if score.casefold() != group.casefold():
        found = [
            connection.execute(f"SELECT {text} FROM {source} ORDER BY n").fetchall() for text in (made, plain)
        ]
        assert found[0] == found[1]
        assert [row[0] is None for row in found[0]] == [False] * len(labels) + [True]
    connection.close()


def test_arguments_are_expressions():
    text = to_macro(_rule((1, 2, -3)), "fair", score="p", group="g")
    module = jinja2.Environment().from_string(text).module
    made = module.fair(score="x / 2 + x / 2", group="CASE WHEN y THEN 1 ELSE 2 END")
    found = duckdb.sql(f"SELECT {made} FROM (VALUES (0.5, true), (0.5, false)) AS t(x, y)").fetchall()
    expected = _rule((1, 2, -3)).probabilities([0.5, 0.5], [1, 2])
    np.testing.assert_allclose([row[0] for row in found], expected, atol=1e-12)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark", "snowflake", "bigquery", "mariadb"])
def test_without_arguments_the_macro_is_the_exported_sql(dialect):
    for made in (case(), soft(), each()):
        names = made.names if hasattr(made, "names") else {"score": "p", "group": "g"}
        more = {"id": "who", "key_table": "vault.draw_key", "prefix": "fair_"}
        text = to_macro(made.rule, "fair", dialect, **names, **more)
        rendered = str(jinja2.Environment(keep_trailing_newline=True).from_string(text).module.fair())
        plain = made.rule.to_sql(dialect, **names, **more)
        lines = [line for line in plain.splitlines() if not line.startswith("-- ")]
        assert re.sub(r"[()]", "", rendered).strip() == re.sub(r"[()]", "", "\n".join(lines)).strip()


def test_the_signature_names_the_columns():
    data = {"sex": ["f", "m"] * 80, "age": [1, 2, 2, 1] * 40}
    rule = fit_rule(np.linspace(0, 1, 160), data, strata={"dept": ["x"] * 160})
    text = to_macro(rule, "fair", score="p", id="who", key_table="vault.k")
    assert (
        "{% macro fair(score='\"p\"', group_1='\"sex\"', group_2='\"age\"', stratum='\"dept\"', id='\"who\"', "
        'key_table=\'"vault"."k"\') %}'
    ) in text.splitlines()
    assert text.startswith("{# A fairramp rule in the SQL of DuckDB")


@pytest.mark.parametrize("name", ["", "my-rule", "1a", "a b", "if", "none", "größe", None, "x') %}"])
def test_names_that_no_macro_can_have_raise(name):
    with pytest.raises(InputError, match="`name` must consist of letters, digits and underscores"):
        to_macro(_rule(("a",)), name, score="p", group="g")


def test_too_many_groups_and_keys_in_place_of_names_raise():
    with pytest.raises(InputError, match="at most 256 groups, and the rule has 300"):
        to_macro(_rule(range(300)), "fair", score="p", group="g")
    with pytest.raises(InputError, match="looks like a key"):
        to_macro(_rule(("a",)), "fair", **NAMES | {"key_table": KEY})


# In dbt ---------------------------------------------------------------------------------------


def _run(folder, *arguments, succeeds=True):
    command = [str(DBT), "--no-use-colors", *arguments, "--profiles-dir", ".", "--project-dir", "."]
    done = subprocess.run(
        command,
        cwd=folder,
        env={"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode == 0) == succeeds, done.stdout + done.stderr
    return done.stdout


def _project(folder, **tables):
    """A project with the package, and a database with tables and the key."""
    (folder / "models").mkdir(exist_ok=True)
    (folder / "macros").mkdir(exist_ok=True)
    (folder / "fairramp").symlink_to(ROOT)
    (folder / "dbt_project.yml").write_text("name: own\nversion: '1.0'\nprofile: own\n")
    output = {"type": "duckdb", "path": "own.duckdb", "threads": 2}
    (folder / "profiles.yml").write_text(json.dumps({"own": {"target": "dev", "outputs": {"dev": output}}}))
    (folder / "packages.yml").write_text("packages:\n  - local: fairramp/dbt\n")
    with duckdb.connect(folder / "own.duckdb") as connection:
        connection.execute("CREATE SCHEMA vault; CREATE TABLE vault.draw_key (key VARCHAR)")
        connection.execute("INSERT INTO vault.draw_key VALUES (?)", [KEY])
        for name, table in tables.items():
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            connection.unregister("given")


def _columns(folder, model):
    with duckdb.connect(folder / "own.duckdb", read_only=True) as connection:
        return connection.sql(f"SELECT probability, decision FROM {model} ORDER BY n").fetchnumpy()


def _same(found, probability, decision):
    np.testing.assert_allclose(np.ma.filled(found["probability"].astype(float), np.nan), probability, atol=1e-9)
    np.testing.assert_array_equal(np.ma.filled(found["decision"], -1), decision)


def _files_of(page):
    """Blocks of a page that start with the name of a file."""
    for language, code in re.findall(r"^```(sql|yaml)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        name = re.match(r"(?:--|#) (\S+)\n", code)
        assert name, f"a {language} block on the page names no file"
        yield name[1], code


@pytest.fixture
def page_project(tmp_path):
    """The project that the page of the documentation builds."""
    data = load_adult_scores()
    ids = [f"№{i} {'ÄÖ日本語🙂'[i % 7 :]}" for i in range(len(data.score))]
    rows = pa.table({"n": range(len(ids)), "p": data.score, "sex": data.sex.tolist(), "person": ids})
    _project(tmp_path, applicants=rows)
    text = (ROOT / "docs" / "integrations" / "dbt.md").read_text(encoding="utf-8")
    names = {}
    for block in pages.blocks(text):
        pages.run(block, names, tmp_path)
    for name, code in _files_of(text):
        (tmp_path / name).write_text(code, encoding="utf-8")
    return tmp_path, names["rule"], data, ids


@in_dbt
@installed
def test_the_page_builds_and_decides_like_python(page_project):
    folder, rule, data, ids = page_project
    _run(folder, "deps")
    said = _run(folder, "--log-level", "debug", "--log-level-file", "debug", "build")
    assert re.search(r"PASS=\d+ WARN=0 ERROR=0 SKIP=0", said)
    results = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    assert sorted(r["unique_id"].split(".")[2].split("_")[0] for r in results) == [
        "decisions",
        "fairramp",
        "fairramp",
        "not",
    ]
    given = data.score, data.sex
    _same(_columns(folder, "decisions"), rule.probabilities(*given), rule.decide(*given, ids=ids, key=KEY))
    written = [path for part in ("target", "logs") for path in (folder / part).rglob("*") if path.is_file()]
    assert len(written) > 5
    assert any(b"secret" in path.read_bytes() for path in written)  # the query, with the alias of the key's table
    assert KEY not in said
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []


@in_dbt
@installed
def test_every_kind_of_rule_decides_like_python(tmp_path):
    rng = np.random.default_rng(4)
    labels = (*HOSTILE, None)
    n = 3000
    hostile = _rule(labels)
    score, group = rng.random(n), [labels[i] for i in rng.integers(0, len(labels), n)]
    ids = [f"{label}{i}" for i, label in zip(range(n), group, strict=True)]
    tables = {
        "hostile": pa.table({"n": range(n), "{{ p }}'\n": score, '"{% raw %}|': group, "{#who#}": ids}),
    }
    named = {"score": "{{ p }}'\n", "group": '"{% raw %}|', "id": "{#who#}", "key_table": "vault.draw_key"}
    macros = {"hostile": to_macro(hostile, "hostile", **named)}
    expected = {"hostile": (hostile.probabilities(score, group), hostile.decide(score, group, ids=ids, key=KEY))}
    drawn = {"id": "who", "key_table": "vault.draw_key"}
    for name, settings in {
        "parity": {},
        "odds": ODDS,
        "steps": {"ramp_width": 0.0, "scale": "logit", "unseen_group": "original"},
    }.items():
        made = case(**settings)
        missing = np.isnan(made.score[FEW])
        columns = {"p": pa.array(made.score[FEW], mask=missing), "g": list(made.group[FEW]), "who": made.id[FEW]}
        tables[name] = pa.table({"n": range(len(missing)), **columns})
        macros[name] = to_macro(made.rule, name, score="p", group="g", **drawn)
        expected[name] = made.probability[FEW], made.decision[FEW]
    for name, made in {"by_chance": soft(), "by_each": each()}.items():
        rows = made.decidable[FEW]
        given = made.table(rows)
        tables[name] = pa.table(
            {"n": range(len(rows)), **{k: list(v) for k, v in given.items() if k != "number"}}
        )
        macros[name] = to_macro(made.rule, name, **made.names, **drawn)
        expected[name] = made.probability[rows], made.decision[rows]
    _project(tmp_path, **tables)
    for name, text in macros.items():
        (tmp_path / "macros" / f"{name}.sql").write_text(text, encoding="utf-8", newline="")
        model = f"select n, {{{{ {name}() }}}} from main.{name}\n"
        (tmp_path / "models" / f"of_{name}.sql").write_text(model)
    _run(tmp_path, "deps")
    _run(tmp_path, "run")
    for name, (probability, decision) in expected.items():
        _same(_columns(tmp_path, f"of_{name}"), probability, decision)


#: Rows of a model (group, value), and whether each test passes with a limit of 0.25 and 0.5.
SAMPLES = {
    "equal": ([("a", 1), ("a", 0), ("b", 0), ("b", 1)], "pass", "pass"),
    "at_the_limit": ([("a", 1), ("a", 0), ("b", 1), ("b", 0), ("b", 0), ("b", 0)], "pass", "pass"),
    "small_rates": ([("a", 0.1), ("b", 0.01)], "pass", "exceeded"),
    "far_apart": ([("a", 1), ("b", 0.6)], "exceeded", "pass"),
    "far": ([("a", 1), ("b", 0)], "exceeded", "exceeded"),
    "missing_group": ([("a", 1), (None, 0)], "exceeded", "exceeded"),
    "nan": ([("a", 0.5), ("b", float("nan")), ("c", 0.5)], *["undecided: a rate is not between 0 and 1"] * 2),
    "counts": ([("a", 100), ("b", 100)], *["undecided: a rate is not between 0 and 1"] * 2),
    "negative": ([("a", -1), ("b", -1)], *["undecided: a rate is not between 0 and 1"] * 2),
    "no_rows": ([], *["undecided: no rows"] * 2),
    "one_group": ([("a", 1), ("a", 0)], *["undecided: only one group"] * 2),
    "only_nulls": ([("a", 1), ("b", None)], *["undecided: a group has only NULLs"] * 2),
    "all_zero": ([("a", 0), ("b", 0)], "pass", "undecided: all rates are 0"),
}
LIMITS = {"null": "null", "nan": ".nan", "text": "'0.1'", "true": "true", "infinite": ".inf", "above": "1.1"}


@in_dbt
@installed
def test_gap_and_ratio_pass_only_within_the_limit(tmp_path):
    tables = {
        name: pa.table(
            {"g": pa.array([g for g, _ in rows], pa.string()), "d": pa.array([d for _, d in rows], pa.float64())}
        )
        for name, (rows, *_) in SAMPLES.items()
    }
    _project(tmp_path, **tables)
    models = []
    for name in SAMPLES:
        (tmp_path / "models" / f"of_{name}.sql").write_text(f"select * from main.{name}\n")
        tests = [
            {
                f"fairramp.fairramp_{test}": {
                    "name": f"{test}_{name}",
                    "arguments": {"group_column": "g", limit: value},
                }
            }
            for test, limit, value in (("gap", "max_gap", 0.25), ("ratio", "min_ratio", 0.5))
        ]
        models.append({"name": f"of_{name}", "columns": [{"name": "d", "data_tests": tests}]})
    (tmp_path / "models" / "models.yml").write_text(json.dumps({"models": models}))
    _run(tmp_path, "deps")
    _run(tmp_path, "build", "--store-failures", succeeds=False)
    results = json.loads((tmp_path / "target" / "run_results.json").read_text())["results"]
    status = {r["unique_id"].split(".")[2]: r["status"] for r in results}
    with duckdb.connect(tmp_path / "own.duckdb", read_only=True) as connection:
        for name, (_, *verdicts) in SAMPLES.items():
            for test, verdict in zip(("gap", "ratio"), verdicts, strict=True):
                assert status[f"{test}_{name}"] == ("pass" if verdict == "pass" else "fail"), (test, name)
                stored = connection.sql(f"SELECT verdict FROM main_dbt_test__audit.{test}_{name}").fetchall()
                assert stored == ([] if verdict == "pass" else [(verdict,)])


@in_dbt
@installed
@pytest.mark.parametrize(("test", "limit"), [("gap", "max_gap"), ("ratio", "min_ratio")])
def test_limits_that_are_no_numbers_never_pass(tmp_path, test, limit):
    _project(tmp_path)
    (tmp_path / "models" / "rows.sql").write_text("select 'a' as g, 1 as d union all select 'b', 1\n")
    text = "models:\n  - name: rows\n    columns:\n      - name: d\n        data_tests:\n"
    for name, value in (LIMITS | {"absent": None}).items():
        text += (
            f"          - fairramp.fairramp_{test}:\n              name: with_{name}\n              arguments:\n"
        )
        text += "                group_column: g\n" + (f"                {limit}: {value}\n" if value else "")
    (tmp_path / "models" / "models.yml").write_text(text)
    _run(tmp_path, "deps")
    said = _run(tmp_path, "build", succeeds=False)
    assert said.count(f"{limit} must be a number between 0 and 1, got") >= len(LIMITS) + 1
    results = json.loads((tmp_path / "target" / "run_results.json").read_text())["results"]
    assert {r["status"] for r in results if r["unique_id"].startswith("test.")} == {"error"}
