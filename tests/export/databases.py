"""A common interface to databases that run exported SQL; a missing one is skipped by name."""

import contextlib
import functools
import glob
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time

import duckdb
import pyarrow as pa
import pytest

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
        import psycopg

        self.connection = psycopg.connect(_postgres().address, autocommit=True)
        self.log = _postgres().log
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


class _Server:
    """PostgreSQL on loopback with its own data folder, stopped by process id."""

    def __init__(self, programs):
        self.folder = tempfile.mkdtemp(prefix="fairramp-postgres-")
        run = []
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            run = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        data, self.log = f"{self.folder}/data", f"{self.folder}/log"
        with open(self.log, "wb") as log:
            initdb = [
                f"{programs}/initdb",
                "-D",
                data,
                "-U",
                "tests",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-locale",
                "-N",
            ]
            subprocess.run([*run, *initdb], check=True, cwd=self.folder, stdout=log, stderr=log, timeout=60)
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            settings = {
                "listen_addresses": "127.0.0.1",
                "port": port,
                "unix_socket_directories": "",
                "fsync": "off",
                "log_statement": "all",
                "log_parameter_max_length": -1,
                "session_preload_libraries": "auto_explain",
                "auto_explain.log_min_duration": 0,
                "auto_explain.log_analyze": "on",
                "auto_explain.log_verbose": "on",
            }
            options = itertools.chain.from_iterable(("-c", f"{name}={value}") for name, value in settings.items())
            self.process = subprocess.Popen(
                [*run, f"{programs}/postgres", "-D", data, *options], cwd=self.folder, stdout=log, stderr=log
            )
        self.address = f"host=127.0.0.1 port={port} user=tests dbname=postgres"
        self._wait()

    def _wait(self):
        import psycopg

        end = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.address, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    raise
                time.sleep(0.05)

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)


def _programs():
    """Folder of PostgreSQL's programs, which Debian leaves off the path; None if not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found and shutil.which("initdb"):
        found = [os.path.realpath(shutil.which("initdb"))]
    return os.path.dirname(found[-1]) if found else None


@functools.cache
def _postgres():
    return _Server(_programs())


def close():
    """Leave no connection and no server running."""
    for found in _OPEN.values():
        if hasattr(found, "connection"):
            found.connection.close()
    _OPEN.clear()
    if _postgres.cache_info().currsize:
        _postgres().stop()
        _postgres.cache_clear()


def _postgres_absent():
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed"
    return None if _programs() else "Debian's package postgresql is not installed"


CLASSES = {"duckdb": DuckDB, "postgres": Postgres, "spark": Spark, "sqlite": SQLite}
POSTGRES = pytest.param(
    "postgres",
    marks=pytest.mark.skipif(_postgres_absent() is not None, reason=f"postgres: {_postgres_absent()}"),
)
SPARK = _engine("spark")
DRAWING = ("duckdb", POSTGRES, SPARK)
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
