"""Add a rule for several classes to a DuckDB relation, as projections.

    moved      p − offset of the row's group, or of the mean of all groups by their probabilities
    z          (moved − largest) / width                     as in `core.simplex`, with the same rounding
    level      max over m of (sum of the m largest z − 1) / m
    chance     max(z − level, 0)

    decision   the class with chance 1, or else the first one, sorted by label, whose cumulative chance exceeds
               the draw

All new columns are NULL if scores or group probabilities are invalid, or the group is unseen and raises an error.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from fairramp.core.labels import Label, label_parts
from fairramp.data.columns import Columns
from fairramp.data.engines import engine_of
from fairramp.data.probable import SUM_TOLERANCE
from fairramp.deploy.dialects import DUCKDB, identifier, literal
from fairramp.deploy.engines.duckdb import hidden_prefix, place_of
from fairramp.deploy.formula import FEW_GROUPS, Lookup, draw, typed_lookup
from fairramp.rule.class_rule import ClassRule


def apply(rule: ClassRule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """Project the group's place, then z, its sorted values, the chances, the draw and the decision."""
    relation, hidden = table.to_native(), hidden_prefix(table.to_native())
    own, n = [identifier(name) for name in relation.columns], len(rule.classes)
    secret, place, sorted_, u = (f"{hidden}{word}" for word in ("key", "place", "sorted", "u"))
    moved, z, chance = ([f"{hidden}{word}{c}" for c in range(n)] for word in ("moved", "z", "chance"))
    kept = own if key is None else [*own, secret]
    if key is not None:
        relation = relation.cross(engine_of(table).small_table(relation, {secret: [key]}))

    scores, shares = (
        [f"CAST({identifier(name)} AS DOUBLE)" for name in names or ()]
        for names in (columns.class_scores, columns.probabilities)
    )
    valid = [*_valid(scores), *(_valid(shares) if shares else [])]
    place_sql = "1"
    if not shares:
        place_sql = _place(rule, columns, table.collect_schema())
        if rule.unseen_group == "error":
            valid.append(f"{place} IS NOT NULL")
    relation = relation.project(", ".join([*kept, f"{place_sql} AS {place}"]))

    ok = " AND ".join(valid)
    shifted = (f"{p} - {shift}" for p, shift in zip(scores, _shifts(rule, shares, place), strict=True))
    made = (f"CASE WHEN {ok} THEN {v} END AS {name}" for v, name in zip(shifted, moved, strict=True))
    relation = relation.project(", ".join([*kept, place, *made]))
    if rule.ramp_width == 0:
        chances = _own(scores, moved[0])
    else:
        width = literal(rule.ramp_width)
        made = (
            f"({v} - greatest({', '.join(moved)})) / {width} AS {name}" for v, name in zip(moved, z, strict=True)
        )
        relation = relation.project(", ".join([*kept, place, *made]))
        relation = relation.project(
            ", ".join([*kept, place, *z, f"list_reverse_sort([{', '.join(z)}]) AS {sorted_}"])
        )
        level = f"{hidden}level"
        relation = relation.project(", ".join([*kept, place, *z, f"{_level(sorted_, n)} AS {level}"]))
        chances = [
            f"CASE WHEN {one} - {level} > 0e0 THEN {one} - {level} WHEN {one} IS NOT NULL THEN 0e0 END"
            for one in z
        ]
        if rule.unseen_group == "original":
            keeps = zip(_own(scores, z[0]), chances, strict=True)
            chances = [f"CASE WHEN {place} IS NULL THEN {mine} ELSE {other} END" for mine, other in keeps]
    relation = relation.project(
        ", ".join([*kept, *(f"{x} AS {name}" for x, name in zip(chances, chance, strict=True))])
    )
    if columns.id is not None:
        drawn = draw(secret, f"CAST({identifier(columns.id)} AS VARCHAR)", DUCKDB)
        unsure = f"CASE WHEN greatest({', '.join(chance)}) < 1e0 THEN {drawn} END AS {u}"
        relation = relation.project(", ".join([*own, *chance, unsure]))
        chance = [*chance, _decision(rule, chance, u)]
    return relation.project(
        ", ".join([*own, *(f"{x} AS {identifier(name)}" for x, name in zip(chance, new, strict=True))])
    )


def _valid(shares: Sequence[str]) -> list[str]:
    """Conditions that hold for numbers between 0 and 1 that sum to 1; not for NULL and NaN."""
    most, off, total = literal(1 + SUM_TOLERANCE), literal(SUM_TOLERANCE), " + ".join(shares)
    return [*(f"{q} >= 0e0 AND {q} <= {most}" for q in shares), f"abs({total} - 1e0) <= {off}"]


def _place(rule: ClassRule, columns: Columns, schema: Any) -> str:
    """The position of a row's group in the rule, counted from 1; NULL for unseen groups."""
    labels = [label_parts(label, rule.stratified) for label in rule.groups]
    numbers = {"place": list(range(1, len(labels) + 1))}
    held = typed_lookup(Lookup(columns.grouped, labels, numbers), schema, DUCKDB)
    places = [str(int(place)) for place in held.numbers["place"]]
    if not places:
        return "NULL"
    if len(places) > FEW_GROUPS:
        return f"list_extract([{', '.join(places)}], {place_of(columns.grouped, schema, held)})"
    cases = (f"WHEN {which} THEN {place}" for which, place in zip(held.conditions(DUCKDB), places, strict=True))
    return f"CASE {' '.join(cases)} END"


def _shifts(rule: ClassRule, shares: Sequence[str], place: str) -> list[str]:
    """The offset of each class: of the row's group, 0 if it is unseen, or the mean by group probabilities."""
    found = []
    for offsets in zip(*rule.offsets, strict=True):
        values = [literal(float(offset)) for offset in offsets]
        if len(set(offsets)) == 1:
            found.append(values[0])
        elif shares:
            found.append(f"({' + '.join(f'{q} * {value}' for q, value in zip(shares, values, strict=True))})")
        else:
            found.append(f"coalesce(list_extract([{', '.join(values)}], {place}), 0e0)")
    return found


def _own(scores: Sequence[str], valid: str) -> list[str]:
    """1 for the class with the largest score, the first one in a tie, and 0 for others; NULL if `valid` is."""
    listed = f"[{', '.join(scores)}]"
    first = f"list_position({listed}, list_max({listed}))"
    return [
        f"CASE WHEN {valid} IS NOT NULL THEN CAST({first} = {c + 1} AS DOUBLE) END" for c in range(len(scores))
    ]


def _level(values: str, n: int) -> str:
    """θ from values in descending order."""
    sums = accumulate((f"{values}[{m}]" for m in range(2, n + 1)), "{} + {}".format, initial=f"{values}[1] - 1e0")
    return f"greatest({', '.join(f'({total}) / {m}e0' if m > 1 else total for m, total in enumerate(sums, 1))})"


def _literal(label: Label) -> str:
    """A class label in SQL; integers have 64 bits, as in other engines."""
    found = literal(label)  # type: ignore[arg-type]  # classes are plain labels
    return f"CAST({found} AS BIGINT)" if type(label) is int and abs(label) < 2**63 else found


def _decision(rule: ClassRule, chance: Sequence[str], u: str) -> str:
    """The label of the decided class."""
    labels = [_literal(label) for label in rule.classes]
    order = rule.order.tolist()
    sure = [f"WHEN {chance[c]} >= 1e0 THEN {labels[c]}" for c in order]
    sums = accumulate((chance[c] for c in order), "{} + {}".format)
    below = [f"WHEN {total} > {u} THEN {labels[c]}" for total, c in zip(sums, order, strict=True)]
    # Rounding can leave a sum slightly below 1: the last class with a positive chance.
    last = [f"WHEN {u} IS NOT NULL AND {chance[c]} > 0e0 THEN {labels[c]}" for c in reversed(order)]
    return f"CASE {' '.join([*sure, *below, *last])} END"
