"""A common interface to databases that run exported SQL; a missing one is skipped by name."""

import math
import sqlite3

import duckdb
import pyarrow as pa
import pytest
import servers

from engines import _engine, spark
from fairramp.deploy.dialects import DIALECTS, identifier

TYPES = {
    "sqlite": {"double": "REAL", "float": "REAL", "string": "TEXT", "int64": "INTEGER", "bool": "INTEGER"},
    "postgres": {
        "double": "double precision",
        "float": "real",
        "string": "text",
        "int64": "bigint",
        "bool": "boolean",
    },
    "mariadb": {
        "double": "double",
        "float": "float",
        "string": "varchar(255)",
        "int64": "bigint",
        "bool": "boolean",
    },
}


class Database:
    """A connection that can `create` a table from Arrow, return the `rows` of a query, and show its `plan`."""

    dialect = ""
    decides = True

    def quoted(self, name):
        return identifier(name, DIALECTS[self.dialect])

    def columns(self, text, order="n"):
        """Columns of a SELECT, sorted by one of them."""
        body = text.rstrip().removesuffix(";")
        rows = self.rows(f"SELECT * FROM (\n{body}\n) AS found ORDER BY found.{self.quoted(order)}")
        return [list(column) for column in zip(*rows, strict=True)]


class DuckDB(Database):
    dialect = "duckdb"

    def __init__(self):
        self.connection = duckdb.connect()

    def create(self, name, table):
        self.connection.register("given_rows", table)
        self.rows(f"CREATE TABLE {self.quoted(name)} AS SELECT * FROM given_rows")
        self.connection.unregister("given_rows")

    def rows(self, text):
        return self.connection.execute(text).fetchall()

    def plan(self, text):
        return str(self.rows(f"EXPLAIN {text}")) + str(self.rows(f"EXPLAIN ANALYZE {text}"))

    def clear(self):
        self.connection = duckdb.connect()


class SQLite(Database):
    dialect = "sqlite"
    decides = False

    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def create(self, name, table):
        columns = ", ".join(f"{self.quoted(f.name)} {TYPES[self.dialect][str(f.type)]}" for f in table.schema)
        self.rows(f"CREATE TABLE {self.quoted(name)} ({columns})")
        marks = ", ".join("?" * table.num_columns)
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        self.connection.executemany(f"INSERT INTO {self.quoted(name)} VALUES ({marks})", rows)

    def rows(self, text):
        return self.connection.execute(text).fetchall()

    def clear(self):
        self.connection.close()  # Python 3.13 warns about unclosed connections
        self.connection = sqlite3.connect(":memory:")


class Postgres(Database):
    dialect = "postgres"

    def __init__(self):
        self.connection = servers.postgres().connect()
        self.log = servers.postgres().log
        self.clear()

    def create(self, name, table):
        columns = ", ".join(f"{self.quoted(f.name)} {TYPES[self.dialect][str(f.type)]}" for f in table.schema)
        self.rows(f"CREATE TABLE {self.quoted(name)} ({columns})")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        with self.connection.cursor().copy(f"COPY {self.quoted(name)} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def rows(self, text):
        cursor = self.connection.execute(text)
        return cursor.fetchall() if cursor.description else []

    def plan(self, text):
        return str(self.rows(f"EXPLAIN VERBOSE {text}")) + str(self.rows(f"EXPLAIN (ANALYZE, VERBOSE) {text}"))

    def clear(self):
        self.connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


class MariaDB(Database):
    dialect = "mariadb"

    def __init__(self):
        self.connection = self.open("root")
        self.logs = [f"{servers.mariadb().log}-{kind}" for kind in ("queries", "plans")]
        self.clear()

    def create(self, name, table):
        columns = ", ".join(f"{self.quoted(f.name)} {TYPES[self.dialect][str(f.type)]}" for f in table.schema)
        self.rows(f"CREATE TABLE {self.quoted(name)} ({columns})")
        marks = ", ".join(["%s"] * table.num_columns)
        given = (map(self._held, column.to_pylist()) for column in table.columns)
        self.rows("SET sql_log_off = 1, slow_query_log = 0")  # INSERT would put the key into the logs
        with self.connection.cursor() as cursor:
            name = self.quoted(name).replace("%", "%%")
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", list(zip(*given, strict=True)))
        self.rows("SET sql_log_off = 0, slow_query_log = 1")

    @staticmethod
    def open(user):
        return servers.mariadb().connect(user)

    @staticmethod
    def _held(value):
        """NULL for NaN and infinity, which no column can hold."""
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def rows(self, text):
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return list(cursor.fetchall())

    def plan(self, text):
        ways = ("EXPLAIN EXTENDED", "SHOW WARNINGS", "EXPLAIN FORMAT=JSON", "ANALYZE", "ANALYZE FORMAT=JSON")
        self.rows("SET optimizer_trace = 'enabled=on'")
        found = [self.rows(way if way == "SHOW WARNINGS" else f"{way} {text}") for way in ways]
        found += [self.rows("SELECT * FROM information_schema.optimizer_trace")]
        self.rows("SET optimizer_trace = 'enabled=off'")
        return str(found)

    def clear(self):
        self.rows("DROP DATABASE IF EXISTS tests")
        self.rows("CREATE DATABASE tests CHARACTER SET utf8mb4")
        self.rows("USE tests")


class Spark(Database):
    dialect = "spark"

    def __init__(self):
        self.session = spark()
        self.created = []

    def create(self, name, table):
        self.session.createDataFrame(table).createTempView(self.quoted(name))
        self.created.append(name)

    def rows(self, text):
        return [tuple(row) for row in self.session.sql(text).collect()]

    def columns(self, text, order="n"):
        found = self.session.sql(text).toArrow().sort_by(order)
        return [found[name].to_pylist() for name in found.column_names]

    def plan(self, text):
        frame = self.session.sql(text)
        before = frame._jdf.queryExecution().toString()
        frame.collect()
        return before + frame._jdf.queryExecution().toString()

    def clear(self):
        for name in self.created:
            self.rows(f"DROP VIEW {self.quoted(name)}")
        self.created.clear()


def close():
    """Leave no connection and no server running."""
    for found in _OPEN.values():
        if hasattr(found, "connection"):
            found.connection.close()
    _OPEN.clear()
    servers.stop()


def _served(name, *marks):
    """The name of a database that needs a server, as a parameter; skipped if the server is absent."""
    why = servers.absent(name)
    skipped = pytest.mark.skipif(why is not None, reason=f"{name}: {why}")
    return pytest.param(name, marks=[skipped, *marks])


CLASSES = {"duckdb": DuckDB, "mariadb": MariaDB, "postgres": Postgres, "spark": Spark, "sqlite": SQLite}
POSTGRES, MARIADB = _served("postgres"), _served("mariadb", pytest.mark.mariadb)
SPARK = _engine("spark")
DRAWING = ("duckdb", POSTGRES, MARIADB, SPARK)
ALL = (*DRAWING, "sqlite")


_OPEN = {}


def database(name):
    """One connection for all tests, cleared of tables."""
    if name not in _OPEN:
        _OPEN[name] = CLASSES[name]()
    return _OPEN[name]


def arrow(**columns):
    """Arrow table from lists and arrays."""
    return pa.table({name: v if isinstance(v, pa.Array) else pa.array(v) for name, v in columns.items()})
