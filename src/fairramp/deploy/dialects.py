"""Differences between databases, and how to write names and values for each of them.

    name      in quotes, as given; quotes inside are doubled
    text      in quotes; as bytes or escaped if a setting of the session could change its meaning
    number    always a double that is read back to the same bit
    comment   ends at the end of its line, whatever names it contains

Names and values are quoted here and nowhere else. Names that a database cannot hold raise an error.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from fairramp.core.checks import check_option
from fairramp.errors import InputError


class Dialect(NamedTuple):
    """The SQL dialect of a database.

    Attributes
    ----------
    name, title : str
        The name in sqlglot, and the name for people.
    quote : str
        The quote around names.
    text, double, small : str
        The types of texts, doubles and decisions.
    number : callable
        Writes a finite number as a double.
    string : callable
        Writes a text in quotes.
    exactly : str
        Expression that compares {text} exactly, whatever the collation of its column.
    is_nan : str or None
        Whether the double {x} is NaN; None if the database has no NaN.
    draw : str or None
        The first 13 hexadecimal digits of SHA-256 of {message} as an integer; None if there is no SHA-256.
    message : str
        The text that is hashed, from the texts {key} and {id}.
    is_key : str
        Whether the text {key} consists of 64 hexadecimal digits.
    range_fails : bool
        Whether overflow or underflow may be an error instead of infinity or 0.
    constants : str
        A table {name} of constant {rows}, {structs} or {selects}, with {columns}, or {numbered} ones.
    whole : str
        The type of integers that a truth value can be cast to.
    is_number : str or None
        Whether the column {x} holds a number, if the database would read other values as numbers.
    replaces_views : bool
        Whether there is CREATE OR REPLACE VIEW.
    is_run : bool
        Whether the tests run the SQL on the database itself.
    """

    name: str
    title: str
    quote: str
    text: str
    double: str
    small: str
    number: Callable[[float], str]
    string: Callable[[str], str]
    exactly: str
    is_nan: str | None
    draw: str | None
    message: str = "{key}\n  || ':' || {id}"
    is_key: str = "length({key}) = 64 AND translate({key}, '0123456789abcdef', '') = ''"
    range_fails: bool = False
    constants: str = "(VALUES\n  {rows}\n) AS {name} ({columns})"
    whole: str = "INTEGER"
    is_number: str | None = None
    replaces_views: bool = True
    is_run: bool = True

    @property
    def untested(self) -> list[str]:
        """What to do before relying on SQL that was never run on its database, in a sentence."""
        advice = "compare a few thousand rows with fairramp apply first."
        return [] if self.is_run else [f"Not tested on {self.title} itself: {advice}"]


def _with_exponent(value: float) -> str:
    """A number with an exponent; without one it would be a decimal and lose digits."""
    text = repr(value).removesuffix(".0")
    return text if "e" in text else f"{text}e0"


def _cast_from_text(type_name: str) -> Callable[[float], str]:
    return lambda value: f"'{repr(value).removesuffix('.0')}'::{type_name}"


def _ratio(value: float) -> str:
    """A quotient that SQLite reads exactly; it reads one decimal in 100,000 as the neighboring float."""
    whole, power = value.as_integer_ratio()
    if power <= 2**10:  # has few digits or is larger than any score
        return _with_exponent(value)
    fifties, rest = divmod(power.bit_length() - 1, 50)
    parts = (whole, *[2**50] * fifties, *[2**rest] * (rest > 0))
    return f"({' / '.join(f'{part}.0' for part in parts)})"


def _doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _postgres_text(text: str) -> str:
    """An escape string if there is a backslash, which standard_conforming_strings would otherwise affect."""
    return f"E{_doubled(text)}".replace("\\", "\\\\") if "\\" in text else _doubled(text)


def _spark_text(text: str) -> str:
    """Bytes, which no setting affects, if there is a quote, a backslash or a dollar sign."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)" if set(text) & set("'\\$") else f"'{text}'"


def _mysql_text(text: str) -> str:
    """Bytes, which no collation affects; in hexadecimal unless all settings read a text in quotes alike."""
    is_plain = text and text.isascii() and text.isprintable() and not set(text) & set("'\\")
    return f"_binary '{text}'" if is_plain else f"X'{text.encode().hex()}'"


def _escaped(text: str) -> str:
    escapes = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"})
    return f"'{text.translate(escapes)}'"


#: A regular expression for how MySQL writes numbers.
NUMBER = "^[-+]?[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?$"

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "duckdb",
            "DuckDB",
            '"',
            "VARCHAR",
            "DOUBLE",
            "TINYINT",
            _with_exponent,
            _doubled,
            "{text} COLLATE C",
            "isnan({x})",
            "CAST('0x' || substr(sha256({message}), 1, 13) AS BIGINT)",
        ),
        Dialect(
            "postgres",
            "PostgreSQL",
            '"',
            "TEXT",
            "DOUBLE PRECISION",
            "SMALLINT",
            _cast_from_text("float8"),
            _postgres_text,
            '{text} COLLATE "C"',
            "({x} = 'NaN'::float8)",
            "CAST(CAST('x000' || substr(encode(sha256(convert_to({message}, 'UTF8')), 'hex'), 1, 13) AS BIT(64)) "
            "AS BIGINT)",
            range_fails=True,
        ),
        Dialect(
            "spark",
            "Spark",
            "`",
            "STRING",
            "DOUBLE",
            "TINYINT",
            _with_exponent,
            _spark_text,
            "{text}",
            "isnan({x})",
            "CAST(conv(substr(sha2({message}, 256), 1, 13), 16, 10) AS BIGINT)",
        ),
        Dialect(
            "snowflake",
            "Snowflake",
            '"',
            "VARCHAR",
            "DOUBLE",
            "SMALLINT",
            _cast_from_text("DOUBLE"),
            _escaped,
            "COLLATE({text}, 'utf8')",
            "({x} = 'NaN'::DOUBLE)",
            "CAST(to_number(substr(sha2({message}, 256), 1, 13), 'XXXXXXXXXXXXX') AS DOUBLE)",
            range_fails=True,
            is_run=False,
        ),
        Dialect(
            "bigquery",
            "BigQuery",
            "`",
            "STRING",
            "FLOAT64",
            "INT64",
            _with_exponent,
            _escaped,
            "{text}",
            "is_nan({x})",
            "CAST('0x' || substr(to_hex(sha256({message})), 1, 13) AS INT64)",
            range_fails=True,
            constants="UNNEST([\n  {structs}\n]) AS {name}",
            is_run=False,
        ),
        Dialect(
            "sqlite",
            "SQLite",
            '"',
            "TEXT",
            "REAL",
            "INTEGER",
            _ratio,
            _doubled,
            "{text} COLLATE BINARY",
            None,
            None,
            constants="(SELECT {numbered} FROM (VALUES\n  {rows}\n)) AS {name}",
            is_number="typeof({x}) IN ('integer', 'real')",  # text would be cast to 0
            replaces_views=False,
        ),
        Dialect(
            "mysql",
            "MySQL",
            "`",
            "CHAR CHARACTER SET utf8mb4",
            "DOUBLE",
            "SIGNED",
            _with_exponent,
            _mysql_text,
            "CAST({text} AS BINARY)",
            None,
            "CAST(conv(substr(sha2({message}, 256), 1, 13), 16, 10) AS SIGNED)",
            # With sql_mode=ORACLE, MariaDB skips NULL in concat.
            message="CASE WHEN {key} IS NOT NULL AND {id} IS NOT NULL THEN\n"
            "concat(CAST({key} AS BINARY), _binary ':', CAST({id} AS BINARY)) END",
            is_key="length({key}) = 64 AND CAST(lower(hex(unhex({key}))) AS BINARY) = CAST({key} AS BINARY)",
            range_fails=True,
            constants="(\n  {selects}\n) AS {name}",  # MariaDB cannot name the columns of VALUES
            whole="SIGNED",
            is_number=f"CAST({{x}} AS CHAR CHARACTER SET utf8mb4) REGEXP '{NUMBER}'",  # text would be read as 0
            is_run=False,
        ),
    )
}
# The same text. The tests run it on MariaDB; it uses only what MySQL 8 has as well.
DIALECTS["mariadb"] = DIALECTS["mysql"]._replace(title="MariaDB", is_run=True)
DUCKDB = DIALECTS["duckdb"]
SPARK = DIALECTS["spark"]
#: Other names for some of them.
ALSO_CALLED = {
    "postgresql": "postgres",
    "pg": "postgres",
    "psql": "postgres",
    "pgsql": "postgres",
    "sparksql": "spark",
    "pyspark": "spark",
    "databricks": "spark",
    "googlesql": "bigquery",
    "bq": "bigquery",
    "sqlite3": "sqlite",
}
#: Databases without a dialect here, which must not be taken for a near name such as MySQL.
_OTHERS = {
    "mssql": "SQL Server",
    "sqlserver": "SQL Server",
    "tsql": "SQL Server",
    "azuresql": "SQL Server",
    "synapse": "Azure Synapse",
    "fabric": "Microsoft Fabric",
    "oracle": "Oracle",
    "plsql": "Oracle",
    "db2": "Db2",
    "redshift": "Redshift",
    "athena": "Athena",
    "trino": "Trino",
    "presto": "Presto",
    "hive": "Hive",
    "clickhouse": "ClickHouse",
    "teradata": "Teradata",
}


def dialect_of(name: Any) -> Dialect:
    """The dialect with this name, or with another name of its database, such as PostgreSQL."""
    return DIALECTS[dialect_name(name)]


def dialect_name(name: Any) -> str:
    """The name of the dialect with this name, or with another name of its database.

    >>> dialect_name("PostgreSQL"), dialect_name("mariadb")
    ('postgres', 'mariadb')
    """
    word = re.sub(r"[\s_-]", "", name).lower() if isinstance(name, str) else ""
    if word in _OTHERS:
        raise InputError(
            "There is no SQL for {database}: {dialect} must be one of {allowed}",
            remedy="apply the rule where one of these runs, or in Python, and load the decisions",
            database=_OTHERS[word],
            allowed=", ".join(map(repr, DIALECTS)),
        )
    known = ALSO_CALLED.get(word, word)
    return known if known in DIALECTS else check_option("dialect", name, DIALECTS)


def identifier(name: str, dialect: Dialect = DUCKDB) -> str:
    """A name, quoted."""
    return dialect.quote + name.replace(dialect.quote, dialect.quote * 2) + dialect.quote


def literal(value: str | int | float | bool, dialect: Dialect = DUCKDB) -> str:
    """A value, quoted."""
    write: dict[type, Callable[[Any], str]] = {
        str: dialect.string,
        float: dialect.number,
        int: str,
        bool: lambda truth: str(truth).upper(),
    }
    text = write[type(value)](value)
    return f"({text})" if text.startswith("-") else text


def only_numbers(column: str, dialect: Dialect) -> str:
    """A column of integers or truth values, with NULL for text that the database would compare as a number."""
    is_number = dialect.is_number and dialect.is_number.format(x=column)
    return f"CASE WHEN {is_number} THEN {column} END" if is_number else column


def without_nan(column: str, dialect: Dialect) -> str:
    """A column of numbers, with NULL for NaN, which some libraries write for a missing label."""
    is_nan = dialect.is_nan and dialect.is_nan.format(x=f"CAST({column} AS {dialect.double})")
    return f"CASE WHEN NOT {is_nan} THEN {column} END" if is_nan else column


#: Rejected texts: dialect (None: all, in names and labels; otherwise in names only), test, reason and remedy.
_REFUSED: tuple[tuple[str | None, Callable[[str], bool], str, str], ...] = (
    (
        None,
        lambda text: "\0" in text,
        "contains a NUL character, which SQL cannot hold",
        "rename it",
    ),
    (
        None,
        lambda text: any("\ud800" <= mark <= "\udfff" for mark in text),
        "is not valid Unicode text",
        "rename it",
    ),
    (
        "postgres",
        lambda name: len(name.encode()) > 63,
        "has {bytes} bytes, and PostgreSQL truncates names to 63",
        "use a shorter one",
    ),
    (
        "mysql",
        lambda name: len(name) > 64,
        "is longer than 64 characters, which {title} does not allow",
        "use a shorter one",
    ),
    (
        "mysql",
        lambda name: name[-1:].isspace() or any(mark > "\uffff" for mark in name),
        "ends with white space or contains a character beyond U+FFFF, which {title} does not allow",
        "rename it",
    ),
    (
        "spark",
        lambda name: "${" in name,
        "contains '${{', which Spark reads as a variable",
        "rename it",
    ),
    (
        "bigquery",
        lambda name: any(mark in "`\\" or not mark.isprintable() for mark in name),
        "contains a backtick, a backslash or a control character, which BigQuery does not allow",
        "rename it",
    ),
)


def check_text(role: str, text: str, dialect: Dialect | None = None) -> str:
    """Reject a label that a database might not hold or, given a dialect, a name; the error starts with `role`."""
    for only, is_refused, why, remedy in _REFUSED:
        if (only is None or (dialect and only == dialect.name)) and is_refused(text):
            raise InputError(
                role + " {text!r} " + why,
                remedy=remedy,
                text=text,
                bytes=len(text.encode(errors="replace")),
                title=dialect and dialect.title,
            )
    return text


def check_name(role: str, name: str, dialect: Dialect) -> str:
    """Reject a name that a database would truncate, substitute or not accept; the error starts with `role`."""
    if not name:
        raise InputError(role + " has an empty name, which SQL does not allow", remedy="name it")
    return check_text(role, name, dialect)


def looks_like_key(name: Any) -> bool:
    """Whether a name, or a part of it, has the form of a key."""
    texts = [text for text in (name if isinstance(name, list | tuple) else [name]) if isinstance(text, str)]
    return any(re.fullmatch(r"\s*[0-9a-fA-F]{64}\s*", part) for text in texts for part in text.split("."))


def commented(line: str) -> str:
    """A one-line comment, with unusual characters as code points so that none can end it."""
    shown = "".join(c if c.isalnum() or c in " _.,;:()[]=+<>!" else f"<U+{ord(c):04X}>" for c in line)
    return f"-- {shown}"
