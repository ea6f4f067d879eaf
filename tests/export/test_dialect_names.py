"""Databases are found under the names that people use for them."""

import pytest

import fairramp
from fairramp.deploy.dialects import ALSO_CALLED, DIALECTS

pytest.importorskip("sqlglot")

RULE = fairramp.Rule(
    ("a", "b"), (fairramp.Ramp.centered(0.4, 0.1), fairramp.Ramp.centered(0.6, 0.1)), unseen_group="original"
)
COLUMNS = {"score": "p", "group": "g"}


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        *ALSO_CALLED.items(),
        *((name.upper(), name) for name in DIALECTS),
        ("Spark SQL", "spark"),
        ("spark-sql", "spark"),
    ],
)
def test_other_names_give_the_same_sql(name, dialect):
    assert RULE.to_sql(name, **COLUMNS) == RULE.to_sql(dialect, **COLUMNS)


@pytest.mark.parametrize(
    ("name", "database"),
    [("mssql", "SQL Server"), ("SQL Server", "SQL Server"), ("sql-server", "SQL Server"), ("oracle", "Oracle")],
)
def test_databases_without_a_dialect_are_not_taken_for_a_near_name(name, database):
    with pytest.raises(fairramp.InputError) as caught:
        RULE.to_sql(name, **COLUMNS)
    assert str(caught.value) == (
        f"There is no SQL for {database}: `dialect` must be one of 'duckdb', 'postgres', 'spark', 'snowflake', "
        "'bigquery', 'sqlite', 'mysql', 'mariadb'; apply the rule where one of these runs, or in Python, and "
        "load the decisions."
    )


@pytest.mark.parametrize("name", ["postgrse", "duck", "", None, 3])
def test_other_words_are_refused(name):
    with pytest.raises(fairramp.InputError, match="`dialect` must be one of 'duckdb', 'postgres'"):
        RULE.to_sql(name, **COLUMNS)
