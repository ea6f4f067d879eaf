"""A rule as SQL for DuckDB, PostgreSQL, Spark, Snowflake, BigQuery, SQLite, MySQL and MariaDB.

    expressions over the columns of any table             groups are compared one by one
    SELECT …, or CREATE VIEW … AS SELECT …                groups are looked up in a table of constants

Comments at the top identify the rule and describe its inputs. `formula` writes the arithmetic. The key is read
from a table and never appears in the SQL. Before any SQL is returned, an independent parser (sqlglot) must find
exactly one statement in it, with no unexpected name or text.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from fairramp._version import __version__
from fairramp.core.checks import check_keywords, library
from fairramp.core.labels import show_label
from fairramp.data.columns import blank_columns, check_new, column_name, prefixed
from fairramp.deploy.dialects import (
    NUMBER,
    Dialect,
    check_name,
    check_text,
    commented,
    dialect_of,
    identifier,
    literal,
    looks_like_key,
    only_numbers,
    without_nan,
)
from fairramp.deploy.formula import Formula, Lookup, decision, lookups_of
from fairramp.deploy.plan import check_both, label_type, labels_by_column
from fairramp.errors import FairrampError, InputError, installing
from fairramp.rule.rule import Rule

__all__ = ["expressions", "to_sql"]


#: Aliases of the tables in a statement.
_ROWS, _RAMPS, _KEY = "scored", "ramps", "secret"
#: Most groups in an expression; with more, databases become slow and finally reject it.
MOST_COMPARED = 256
#: Keywords that say what to read: of `rule.reading`, and where the key is.
NAMES = ("score", "group", "strata", "group_probability", "id", "key_table", "key_column")


def expressions(
    rule: Rule,
    dialect: str,
    *,
    score: str | None = None,
    group: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    group_probability: Mapping[Any, str] | None = None,
    id: str | None = None,
    key_table: str | Sequence[str] | None = None,
    key_column: str = "key",
) -> dict[str, str]:
    """Return a rule as SQL expressions over the columns of any table: `probability` and, with an id, `decision`.

    Groups are compared one by one, at most 256; `Rule.to_sql` with a table looks them up instead.

    Parameters
    ----------
    rule : Rule
        The rule to export.
    dialect, score, group, strata, group_probability, id, key_table, key_column
        As in `Rule.to_sql`.

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> from fairramp.deploy.sql import expressions
    >>> rule = Rule(("A",), (Ramp(0.45, 0.1),))
    >>> print(expressions(rule, "duckdb", score="p", group="unit")["probability"])
    CASE WHEN CAST("p" AS DOUBLE) >= 0e0
      AND CAST("p" AS DOUBLE) <= 1e0 THEN
      CASE
        WHEN CAST("unit" AS VARCHAR) COLLATE C = 'A' THEN CASE
          WHEN CAST("p" AS DOUBLE) <= 0.45e0 THEN 0e0
          WHEN CAST("p" AS DOUBLE) - 0.45e0 >= 0.1e0 THEN 1e0
          ELSE (CAST("p" AS DOUBLE) - 0.45e0) / 0.1e0
        END
        ELSE NULL
      END
    END
    """
    names = {"score": score, "group": group, "strata": strata, "group_probability": group_probability, "id": id}
    order = Order(rule, dialect, **names, key_table=key_table, key_column=key_column)
    found = order.expressions()
    order.read_back(f"SELECT {', '.join(found.values())}")
    return found


def to_sql(
    rule: Rule,
    dialect: str,
    *,
    table: str | Sequence[str] | None = None,
    view: str | Sequence[str] | None = None,
    replace: bool = False,
    prefix: str = "",
    **names: Any,
) -> str:
    """Return a rule as SQL, with comments that describe its inputs; see `Rule.to_sql`.

    `names` holds the names of the columns and of the key table, as in `expressions`.

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> from fairramp.deploy.sql import to_sql
    >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    >>> print(to_sql(rule, "duckdb", score="p", group="unit").splitlines()[0][:39])
    -- A fairramp rule in the SQL of DuckDB
    """
    check_keywords("to_sql", names, NAMES)
    order = Order(rule, dialect, **names)
    new = [check_name("The new column", name, order.dialect) for name in prefixed(prefix, order.results)]
    if replace and view is None:
        raise InputError("needs {view}, the name of the view to replace", argument="replace")
    if view is not None and table is None:
        raise InputError("needs {table}, the name of the table that the view reads from", argument="view")
    if table is None:
        return f"{order.header(new)}\n{order.named(new)}\n"
    check_new(new, order.columns.all)
    statements = [order.select(order.path("table", table), new)]
    if view is not None:
        name, replaces = order.path("view", view), order.dialect.replaces_views
        dropped = [f"DROP VIEW IF EXISTS {name}"] if replace and not replaces else []
        or_replace = " OR REPLACE" if replace and replaces else ""
        statements = [*dropped, f"CREATE{or_replace} VIEW {name} AS\n{statements[0]}"]
    for statement in statements:
        order.read_back(statement, *new)
    return "\n".join([order.header(new), *(f"{statement};" for statement in statements), ""])


class Order:
    """A checked request, and the SQL for it."""

    def __init__(
        self,
        rule: Rule,
        dialect: Any,
        *,
        id: Any = None,
        key_table: Any = None,
        key_column: Any = "key",
        **names: Any,
    ) -> None:
        self.dialect = dialect_of(dialect)
        self.rule, self.columns = rule, rule.reading(id=id, **names)
        self.names = {check_name("The column", name, self.dialect) for name in self.columns.all}
        self.by_column = labels_by_column(rule, self.columns)
        self.kinds = [label_type(name, parts) for name, parts in self.by_column]
        self.texts = {
            check_text("The group", part) for _, parts in self.by_column for part in parts if type(part) is str
        }
        check_both(id=id, key_table=key_table)
        self.key = None if id is None else self._key(key_table, key_column)
        self.results = ("probability",) if id is None else ("probability", "decision")

    def _key(self, table: Any, column: Any) -> tuple[str, str, str]:
        """The table and the column of the key, quoted, and their description for comments."""
        if self.dialect.draw is None:
            raise InputError(
                "{title} has no SHA-256, so it cannot make draws",
                remedy="leave out {id} and {key_table}, and compare the probabilities with "
                "fairramp.draws(ids, key)",
                title=self.dialect.title,
            )
        for role, given in (("key_table", table), ("key_column", column)):
            if looks_like_key(given):
                raise InputError(
                    "must be a name, and this looks like a key",
                    argument=role,
                    remedy="put the key into a one-row table and pass the table's name",
                )
        name = check_name("The column", column_name("key_column", column), self.dialect)
        self.names.add(name)
        return (
            self.path("key_table", table),
            f"{_KEY}.{identifier(name, self.dialect)}",
            f"table {table if isinstance(table, str) else '.'.join(table)}, column {name}",
        )

    def expressions(self) -> dict[str, str]:
        formula = self._formula("")
        n = sum(len(lookup.labels) for lookup in formula.lookups)
        if n > MOST_COMPARED:
            raise InputError(
                "Expressions support at most {most} groups, and the rule has {n:,}",
                remedy="write a SELECT or a view, which looks them up: pass {table}",
                most=MOST_COMPARED,
                n=n,
            )
        return self._finished(formula, formula.body([None] * len(formula.lookups)), "")

    def named(self, new: Sequence[str]) -> str:
        """The expressions as the items of a SELECT, with the names of the new columns."""
        items = zip(self.expressions().values(), new, strict=True)
        body = ",\n".join(f"{text} AS {identifier(name, self.dialect)}" for text, name in items)
        self.read_back(f"SELECT {body}", *new)
        return body

    def select(self, source: str, new: Sequence[str]) -> str:
        """A complete SELECT, with the ramps as a table of constants."""
        of = f"{_ROWS}."
        formula, d = self._formula(of), self.dialect
        aliases = [f"{_RAMPS}{i if self.rule.mixes else ''}" for i in range(len(formula.lookups))]
        found = [
            [f"{alias}.{name}" for name in lookup.numbers]
            for alias, lookup in zip(aliases, formula.lookups, strict=True)
        ]
        made = zip(self._finished(formula, formula.body(found), of).values(), new, strict=True)
        chosen = ",\n".join([f"{_ROWS}.*", *(f"{text} AS {identifier(name, d)}" for text, name in made)])
        joins = map(self._join, aliases, formula.lookups)
        return "\n".join([f"SELECT\n{chosen}\nFROM {source} AS {_ROWS}", *joins])

    def _join(self, alias: str, lookup: Lookup) -> str:
        """The join with a table of ramps or shifts.

        Nothing equals NULL, so a missing label is written as an empty one with a flag.
        """
        conditions: list[str] = []
        table: dict[str, list[str]] = {}
        for i, (text, parts) in enumerate(zip(lookup.columns, zip(*lookup.labels, strict=True), strict=True)):
            kind = next((type(part) for part in parts if part is not None), str)
            empty = literal(kind(), self.dialect)
            if None in parts:
                conditions.append(f"CASE WHEN {text} IS NULL THEN 1 ELSE 0 END = {alias}.missing{i}")
                table[f"missing{i}"] = ["1" if part is None else "0" for part in parts]
                text = f"coalesce({text}, {empty})"
            conditions.append(f"{text} = {alias}.label{i}")
            table[f"label{i}"] = [empty if part is None else literal(part, self.dialect) for part in parts]
        table |= {name: [literal(n, self.dialect) for n in numbers] for name, numbers in lookup.numbers.items()}
        return f"LEFT JOIN {_inline(alias, table, self.dialect)}\nON {' AND '.join(conditions)}"

    def _finished(self, formula: Formula, body: str, of: str) -> dict[str, str]:
        """The guarded probability and, with a key, the decision."""
        numbers = (self.columns.score, *(self.columns.probabilities or ()))
        is_number = self.dialect.is_number
        also = [is_number.format(x=self._column(of, name)) + " AND " for name in numbers if is_number]
        found = {"probability": formula.guarded(body, "".join(also))}
        if self.key is not None:
            table, column, _ = self.key
            # A malformed key would silently give other draws, so it counts as missing.
            valid = self.dialect.is_key.format(key=column)
            key = f"(\n  SELECT {column} FROM {table} AS {_KEY}\n  WHERE {valid})"
            id_text = self._column(of, self.columns.id, self.dialect.text)
            found["decision"] = decision(found["probability"], key, id_text, self.dialect)
        return found

    def _formula(self, of: str) -> Formula:
        d = self.dialect

        def compared(kind: type, name: str, parts: list[Any]) -> str:
            if kind is str:
                return d.exactly.format(text=self._column(of, name, d.text))
            # Integers with missing values are often stored as floats, with NaN for NULL.
            column = only_numbers(self._column(of, name), d)
            return without_nan(column, d) if kind is int and None in parts else column

        columns = {
            name: compared(kind, name, parts)
            for kind, (name, parts) in zip(self.kinds, self.by_column, strict=True)
        }
        lookups = [
            lookup.holding([columns[name] for name in lookup.columns], lookup.labels)
            for lookup in lookups_of(self.rule, self.columns)
        ]
        numbers = (self.columns.score, *(self.columns.probabilities or ()))
        score, *chances = (self._column(of, name, d.double) for name in numbers)
        return Formula(self.rule, score, d, lookups, chances)

    def _column(self, of: str, name: str | None, as_type: str = "") -> str:
        column = of + identifier(name or "", self.dialect)
        return f"CAST({column} AS {as_type})" if as_type else column

    def path(self, role: str, name: Any) -> str:
        """A table's name, quoted; a string is split at its dots, and a list holds the parts."""
        parts = name.split(".") if isinstance(name, str) else name
        if not isinstance(parts, list | tuple) or not parts or not all(isinstance(part, str) for part in parts):
            raise InputError(
                "must be a name like 'scores' or 'schema.scores', or a list of its parts", argument=role, got=name
            )
        self.names.update(check_name("{" + role + "}: the part", part, self.dialect) for part in parts)
        return ".".join(identifier(part, self.dialect) for part in parts)

    def read_back(self, text: str, *new: str) -> None:
        """Check with an independent parser that this is one statement without unexpected names or texts."""
        sqlglot, is_safe = library("sqlglot", install=installing("export")), False
        exp = sqlglot.exp
        with suppress(sqlglot.errors.SqlglotError, AttributeError):
            statements = sqlglot.parse(text, dialect=self.dialect.name)
            nodes = [node for statement in statements for node in statement.walk()]
            found = {node.this for node in nodes if isinstance(node, exp.Identifier)}
            said = [node for node in nodes if isinstance(node, exp.Literal | exp.ByteString | exp.HexString)]
            is_safe = (
                len(statements) == 1
                and not any(isinstance(node, exp.Command) or node.comments for node in nodes)
                and _meant(found, self.names | {*new}, _OWN_NAMES)
                and _meant({_said(node, exp) for node in said}, self.texts, _OWN_TEXTS)
            )
        if not is_safe:
            raise FairrampError(
                "This rule could not be written safely for {title}: sqlglot {version} reads some of its names "
                "differently",
                remedy="use simpler column and group names",
                title=self.dialect.title,
                version=sqlglot.__version__,
            )

    def header(self, new: Sequence[str]) -> str:
        """Comments that identify the rule and describe its inputs."""
        rule, columns = self.rule, self.columns
        low, high = rule.meaning.score_range
        span = "any finite number" if rule.meaning.is_unbounded else f"from {low:g} to {high:g}"
        span += "" if rule.higher_is_better else "; lower is better"
        blank, strata = blank_columns(self.by_column), columns.strata or ()
        soft = zip(rule.groups, columns.probabilities or (), strict=False)
        policies = {
            "error": "NULL",
            "pooled": "the pooled threshold",
            "original": f"yes at a score of {rule.cutoff!r} or {rule.meaning.side}",
        }
        lines = [
            f"A fairramp rule in the SQL of {self.dialect.title}, written by fairramp {__version__}",
            f"rule: fingerprint {rule.fingerprint}",
            f"score: column {columns.score}, {rule.scale}, {span}",
            *(
                line
                for name, kind in zip(columns.grouped, self.kinds, strict=True)
                for line in (
                    f"{'stratum' if name in strata else 'group'}: column {name}, {_KINDS[kind]}",
                    *([_BLANK] if name in blank else []),
                )
            ),
            *(f"probability of group {show_label(label)}: column {name}, from 0 to 1" for label, name in soft),
            f"{new[0]}: probability of a positive decision; NULL if the score is missing, NaN or out of range",
            _SOFT if columns.probabilities else f"groups not in the fit rows: {policies[rule.unseen_group]}",
        ]
        if self.key is not None:
            lines += [
                f"{new[1]}: 1 or 0, the same for the same id and key; NULL without a probability, id or key",
                f"id: column {columns.id}, text or integers, never floats",
                f"key: {self.key[2]}: one row, 64 characters 0 to 9 and a to f",
                "  made by fairramp keygen; only the owner of this query should be able to read it",
            ]
        return "\n".join(map(commented, [*lines, *self.dialect.untested]))


#: Types of labels, for the header.
_KINDS = {str: "text", int: "integers", bool: "true or false"}
_SOFT = "  also NULL if a group probability is missing or out of range, or if they do not sum to 1"
_BLANK = "  empty text is a group of the rule and NULL is not: load empty cells as empty text"
_OWN_NAMES = re.compile(
    r"scored|ramps\d*|secret|foot|width|low|high|tie|shift|(label|missing|column)\d+|C|BINARY"
)
_OWN_TEXTS = re.compile(
    r"|[-+.e0-9]+|:|0x|x000|UTF8|hex|X{13}|utf8|integer|real|NaN|0123456789abcdef"
    rf"|{re.escape(NUMBER)}"
)


def _meant(found: set[str], given: set[str], own: re.Pattern[str]) -> bool:
    """Whether all texts come from the user or from this module."""
    return all(text in given or own.fullmatch(text) for text in found)


def _said(node: Any, exp: Any) -> str:
    """The text of a literal that the parser found, in quotes or as bytes."""
    if isinstance(node, exp.HexString):
        return bytes.fromhex(node.this).decode()
    return str(node.this) if not isinstance(node, exp.Literal) or node.is_string else ""


def _inline(alias: str, columns: dict[str, list[str]], dialect: Dialect) -> str:
    values = list(zip(*columns.values(), strict=True))
    rows = [f"({', '.join(row)})" for row in values]
    first = ", ".join(f"{value} AS {name}" for name, value in zip(columns, values[0], strict=True))
    return dialect.constants.format(
        name=alias,
        rows=",\n  ".join(rows),
        structs=",\n  ".join([f"STRUCT({first})", *rows[1:]]),
        selects="\n  UNION ALL ".join([f"SELECT {first}", *(f"SELECT {', '.join(row)}" for row in values[1:])]),
        columns=", ".join(columns),
        numbered=", ".join(f"column{i} AS {name}" for i, name in enumerate(columns, 1)),
    )
