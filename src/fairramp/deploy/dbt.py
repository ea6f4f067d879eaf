r"""A rule as a dbt macro: its SQL expressions, with arguments in place of the columns.

    {% macro fair(score='"p"', group='"sex"') %}      arguments are SQL expressions; the defaults are columns
    CASE WHEN CAST(({{ score }}) AS DOUBLE) >= …      `sql`, written for columns with stand-in names
    {% endmacro %}

Labels and names must reach the database as they are. So an opening brace, which could start an expression, and a
carriage return, which Jinja would replace, are written as expressions: {{ '\U0000007b' }} and {{ '\U0000000d' }}.
dbt writes compiled queries to files and logs. The key is in none of them: the query reads it from a table.
"""

import re
from keyword import iskeyword
from typing import Any

from fairramp.core.checks import check_keywords
from fairramp.data.columns import prefixed
from fairramp.deploy.dialects import check_name, identifier
from fairramp.deploy.sql import NAMES, Order
from fairramp.errors import InputError
from fairramp.rule.rule import Rule

__all__ = ["to_macro"]


def to_macro(rule: Rule, name: str, dialect: str = "duckdb", *, prefix: str = "", **names: Any) -> str:
    """Return a rule as a dbt macro that computes its new columns, to use in the SELECT of a model.

    The macro has one argument per column that the rule reads: `score`, `group`, `stratum`, `probability` (a group
    probability) and `id`, with numbers if there are several, as in `group_1`; and `key_table`. Arguments are SQL
    expressions; by default, the columns of the fit. Requires the extra `export`.

    Parameters
    ----------
    rule : Rule
        The rule to export, with at most 256 groups.
    name : str
        The name of the macro: ASCII letters, digits and underscores.
    dialect : str, default "duckdb"
        The SQL dialect of the database, as in `Rule.to_sql`.
    prefix : str, default ""
        Prefix of the names of the new columns.
    **names
        `score`, `group`, `strata`, `group_probability`, `id`, `key_table` and `key_column`, as in `Rule.to_sql`.

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> from fairramp.deploy.dbt import to_macro
    >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    >>> print(to_macro(rule, "fair", score="p", group="unit").splitlines()[-1])
    {% endmacro %}
    """
    if not is_macro_name(name):
        raise InputError(
            "must consist of letters, digits and underscores and not be a keyword, because it names a dbt macro",
            argument="name",
            got=name,
        )
    check_keywords("to_macro", names, NAMES)
    order = Order(rule, dialect, **names)
    columns, d = order.columns, order.dialect
    new = [check_name("The new column", column, d) for column in prefixed(prefix, order.results)]
    stand_in = "argument_"
    while any(stand_in in text for text in order.names | order.texts | {*new}):
        stand_in += "_"
    arguments: dict[str, str] = {}
    stands: dict[str, Any] = {}
    for role, word, found in (
        ("score", "score", (columns.score,)),
        ("group", "group", columns.groups),
        ("strata", "stratum", columns.strata),
        ("group_probability", "probability", columns.probabilities),
        ("id", "id", columns.id and (columns.id,)),
    ):
        own = [word] if len(found or ()) == 1 else [f"{word}_{i}" for i in range(1, len(found or ()) + 1)]
        arguments |= {argument: identifier(str(name), d) for argument, name in zip(own, found or (), strict=True)}
        stands |= {role: [stand_in + argument for argument in own]} if own else {}
    if order.key is not None:
        arguments["key_table"] = order.key[0]
        stands |= {"key_table": [f"{stand_in}key_table"], "key_column": names.get("key_column", "key")}
    stands |= {role: stands[role][0] for role in ("score", "id") if role in stands}
    if columns.probabilities:
        stands["group_probability"] = dict(zip(rule.groups, stands["group_probability"], strict=True))
    places = {identifier(stand_in + argument, d): _place(argument) for argument in arguments}
    pieces = re.split(f"({'|'.join(map(re.escape, places))})", Order(rule, dialect, **stands).named(new))
    body = "".join(places.get(piece) or _inert(piece) for piece in pieces)
    signature = ", ".join(f"{argument}={_literal(default)}" for argument, default in arguments.items())
    header = "\n".join(line.removeprefix("-- ") for line in order.header(new).splitlines())
    return f"{{# {header} #}}\n{{% macro {name}({signature}) %}}\n{body}\n{{% endmacro %}}\n"


def is_macro_name(name: Any) -> bool:
    """Whether a macro can have this name; Jinja also has true, false and none."""
    is_name = isinstance(name, str) and name.isascii() and name.isidentifier()
    return is_name and not iskeyword(name) and not iskeyword(name.capitalize())


def _place(argument: str) -> str:
    """Where an argument goes: a table as it is, and in parentheses an expression, which may have operators."""
    return f"{{{{ {argument} }}}}" if argument == "key_table" else f"({{{{ {argument} }}}})"


def _inert(text: str) -> str:
    """Text that Jinja writes as it is."""
    return re.sub(r"[{\r]", lambda found: f"{{{{ {_literal(found[0])} }}}}", text)


def _literal(text: str) -> str:
    """A text in Jinja, in quotes; unusual characters as code points."""
    plain = re.compile(r"[\w .,()\"`-]", re.ASCII)
    return "'" + "".join(c if plain.match(c) else f"\\U{ord(c):08x}" for c in text) + "'"
