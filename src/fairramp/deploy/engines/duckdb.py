"""Add a rule to a DuckDB relation, as projections."""

from collections.abc import Sequence
from typing import Any

from fairramp.core.labels import Label
from fairramp.data.columns import Columns
from fairramp.data.engines import engine_of
from fairramp.deploy.dialects import DUCKDB, identifier, literal
from fairramp.deploy.formula import FEW_GROUPS, Lookup, decision, formula_of, lookups_of
from fairramp.rule.rule import Rule


def apply(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """Project the group, the numbers of its ramp, the probability and the decision."""
    relation, schema = table.to_native(), table.collect_schema()
    own = [identifier(name) for name in relation.columns]
    formula = formula_of(rule, columns, schema, DUCKDB)
    hidden = hidden_prefix(relation)
    secret, place, chance = (f"{hidden}{word}" for word in ("key", "place", "chance"))
    kept = own if key is None else [*own, secret]
    if key is not None:
        relation = relation.cross(engine_of(table).small_table(relation, {secret: [key]}))
    found: list[list[str] | None] = []
    looked_up: list[str] = []
    for i, (given, lookup) in enumerate(zip(lookups_of(rule, columns), formula.lookups, strict=True)):
        if len(lookup.labels) <= FEW_GROUPS:
            found.append(None)
            continue
        code = place_of(given.columns, schema, lookup)
        relation = relation.project(", ".join([*kept, *looked_up, f"{code} AS {place}"]))
        numbers = {f"{hidden}{name}{i}": values for name, values in lookup.numbers.items()}
        picked = [
            f"list_extract([{', '.join(map(literal, values))}], {place}) AS {name}"
            for name, values in numbers.items()
        ]
        relation = relation.project(", ".join([*kept, *looked_up, *picked]))
        looked_up += numbers
        found.append([*numbers])
    body = formula.body(found)
    relation = relation.project(", ".join([*kept, f"{formula.guarded(body)} AS {chance}"]))
    drawn = (
        []
        if columns.id is None
        else [decision(chance, secret, f"CAST({identifier(columns.id)} AS VARCHAR)", DUCKDB)]
    )
    made = [f"{text} AS {identifier(name)}" for text, name in zip([chance, *drawn], new, strict=True)]
    return relation.project(", ".join([*own, *made]))


def hidden_prefix(relation: Any) -> str:
    """A prefix of no column, ignoring case."""
    hidden = "fairramp_"
    while any(name.casefold().startswith(hidden) for name in relation.columns):
        hidden += "_"
    return hidden


def place_of(columns: Sequence[str], schema: Any, lookup: Lookup) -> str:
    """The position of a row's labels among many, counted from 1; NULL for others.

    Labels become the values of an ENUM type, which is looked up by hashing. A CASE would compare them one by one,
    and a join might not keep the order of the rows.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    schema : narwhals.Schema
        Types of the columns.
    lookup : Lookup
        The labels that these columns can hold.
    """
    texts = [_text(identifier(name), schema[name]) for name in columns]
    labels = [tuple(map(_label_text, label)) for label in lookup.labels]
    if len(texts) == 1 and all(label[0] is not None for label in labels):
        key, values = texts[0], [label[0] or "" for label in labels]
    else:  # with their lengths, so that ("a", "bc") is not ("ab", "c")
        key = " || ".join(f"CASE WHEN {t} IS NULL THEN '-' ELSE strlen({t}) || ':' || {t} END" for t in texts)
        values = [
            "".join("-" if part is None else f"{len(part.encode())}:{part}" for part in label) for label in labels
        ]
    return f"(enum_code(TRY_CAST({key} AS ENUM({', '.join(map(literal, values))}))) + 1)"


def _text(column: str, dtype: Any) -> str:
    """A group column as the text of its labels."""
    if dtype.is_float() or dtype.is_decimal():
        return (
            f"CASE WHEN {column} = trunc({column}) THEN CAST(TRY_CAST({column} AS HUGEINT) AS VARCHAR) "
            f"WHEN NOT isnan(CAST({column} AS DOUBLE)) THEN 'part of a number' END"
        )
    return f"CAST({column} AS VARCHAR)"


def _label_text(part: Label) -> str | None:
    return None if part is None else str(part).lower() if isinstance(part, bool) else str(part)
