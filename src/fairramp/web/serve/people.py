"""Read people from JSON: every field is checked, and every wrong person is named.

    {"p": 0.41, "sex": "Female", "id": "anna"}   →   score, cell or group probabilities, id

Fields have the names of the rule's columns. People are independent of each other: what one of them gets never
depends on who else is in the same request.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairramp.core.cells import cell_columns
from fairramp.core.labels import Label, canonical_label, label_key, label_of, label_parts, label_text
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes
from fairramp.data.probable import SUM_TOLERANCE, GroupProbabilities
from fairramp.errors import InputError, shown
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.draws import decide, is_blank_id
from fairramp.rule.rule import Rule

#: The field of ids.
ID = "id"
#: Most wrong people that a message describes, and most groups that it lists.
_MOST = 5
_MOST_GROUPS = 10


class Unfit(Exception):  # noqa: N818
    """People who cannot be decided; the message says who and why.

    Attributes
    ----------
    unseen : int
        How many of them belong to a group that the rule does not know.
    """

    def __init__(self, sentence: str, unseen: int = 0) -> None:
        super().__init__(sentence)
        self.unseen = unseen


@dataclass(frozen=True)
class Decided:
    """The answers for the people of a request.

    Attributes
    ----------
    answers : list of dict
        One for each person: probabilities and, with a key, the decision.
    random : int
        How many were decided at random, or would be.
    unseen : int
        How many belong to a group that the rule was not fitted on.
    """

    answers: list[dict[str, Any]]
    random: int
    unseen: int


class People:
    """Reads and decides people.

    Parameters
    ----------
    rule : Rule or ClassRule
        The rule.
    key : str or None
        The key of decisions; without one, people have no ids and get probabilities only.
    """

    def __init__(self, rule: Rule | ClassRule, key: str | None) -> None:
        self.rule, self._key, self.has_ids = rule, key, key is not None
        columns = _columns(rule)
        self.scores = columns.class_scores or (str(columns.score),)
        self.chances = columns.probabilities or ()
        self.strata, self.groups = columns.strata or (), columns.groups or ()
        self.fields = (*self.scores, *self.strata, *self.groups, *self.chances, *([ID] if self.has_ids else []))
        twice = {name for name in self.fields if self.fields.count(name) > 1}
        if twice:
            raise InputError(
                "Two fields of a person would be named {name!r}",
                remedy="store other column names in the rule: dataclasses.replace(rule, columns=...)",
                name=min(twice),
            )
        self._names = frozenset(self.fields)
        self._known = frozenset(map(label_key, rule.groups))

    @property
    def cell_fields(self) -> tuple[str, ...]:
        """The fields that make a cell, strata first."""
        return (*self.strata, *self.groups)

    @property
    def probability_fields(self) -> tuple[str, ...]:
        """The fields of an answer that are probabilities."""
        if isinstance(self.rule, ClassRule):
            return tuple(f"probability_{label_text(label)}" for label in self.rule.classes)
        return ("probability",)

    @property
    def is_strict(self) -> bool:
        """Whether a group must be one that the rule was fitted on."""
        return self.rule.unseen_group == "error"

    @cached_property
    def score_range(self) -> tuple[float, float]:
        """The lowest and the highest valid score."""
        return (0.0, 1.0 + SUM_TOLERANCE) if isinstance(self.rule, ClassRule) else self.rule.meaning.finite_range

    @cached_property
    def values(self) -> list[list[Label]]:
        """The values of each of `cell_fields` that the rule was fitted on, in order."""
        if self._attributes:
            pairs = [label_parts(label) for label in self.rule.groups]
            parts = [[value for of, value in pairs if of == name] for name in self._attributes]
        else:
            rows = [label_parts(label, self.rule.stratified) for label in self.rule.groups]
            parts = [list(column) for column in zip(*rows, strict=True)] if self.cell_fields else []
        return [list({label_key(value): value for value in column}.values()) for column in parts]

    @cached_property
    def _attributes(self) -> list[str]:
        """The names of the attributes that a rule equalizes by each; none for other rules."""
        if isinstance(self.rule, Rule) and self.rule.membership == "each":
            return [name for name, _ in self.rule.attributes]
        return []

    @cached_property
    def _known_values(self) -> list[set[Any]]:
        return [set(map(label_key, values)) for values in self.values]

    def decide(self, people: Sequence[Any], place: str | None = None) -> Decided:
        """Decide people; `place` is the name of their list in messages, None for a single person.

        Raises
        ------
        Unfit
            If anyone cannot be decided; then nobody is.
        """
        scores, labels, mixtures, ids = [], [], [], []
        wrong, refused = list[tuple[int, str]](), 0
        for i, person in enumerate(people):
            try:
                self._check_fields(person)
                scores.append([self._score(name, person[name]) for name in self.scores])
                if len(self.scores) > 1:
                    _check_sum(self.scores, scores[-1])
                if self.chances:
                    mixtures.append([_chance(name, person[name]) for name in self.chances])
                    _check_sum(self.chances, mixtures[-1])
                else:
                    labels.append(self._cell(person))
                if self.has_ids:
                    ids.append(_checked_id(person[ID]))
            except Unfit as error:
                refused += error.unseen
                if len(wrong) < _MOST:
                    wrong.append((i, str(error)))
                else:
                    wrong.append((i, ""))
        if wrong:
            raise Unfit(_summary(wrong, len(people), place), refused)
        unseen = sum(not self._knows(label) for label in labels) if not self.is_strict else 0
        by = self._mixed(mixtures) if self.chances else _codes(labels)
        try:
            return self._decided(np.array(scores, dtype=np.float64), by, ids if self.has_ids else None, unseen)
        except InputError as error:
            raise Unfit(str(error)) from None

    def _decided(self, scores: Any, by: Codes | GroupProbabilities, ids: Any, unseen: int) -> Decided:
        if isinstance(self.rule, ClassRule):
            chances = self.rule.chances_of(scores, by)
            random = int((chances.max(axis=1) < 1).sum())
        else:
            chances = self.rule.chances(scores[:, 0], by)
            random = int(((chances > 0) & (chances < 1)).sum())
        rows = chances.reshape(len(scores), -1).tolist()
        answers = [dict(zip(self.probability_fields, row, strict=True)) for row in rows]
        if ids is not None:
            for answer, decision in zip(answers, self._drawn(chances, ids), strict=True):
                answer["decision"] = decision
        return Decided(answers, random, unseen)

    def _drawn(self, chances: Any, ids: Any) -> list[Any]:
        if isinstance(self.rule, ClassRule):
            drawn = self.rule.drawn(chances, ids=ids, key=self._key).tolist()
            return [self.rule.classes[i] for i in drawn]
        return list(decide(chances, ids=ids, key=self._key).tolist())

    def _mixed(self, rows: list[list[float]]) -> GroupProbabilities:
        return self.rule.probable(GroupProbabilities(np.array(rows), self.rule.groups))

    def _check_fields(self, person: Any) -> None:
        if not isinstance(person, dict):
            raise Unfit(f"A person must be an object, got {_kind(person)}")
        if person.keys() == self._names:
            return
        missing = [name for name in self.fields if name not in person]
        unknown = [name for name in person if name not in self._names]
        lacks = f"{_quoted(missing)} {'is' if len(missing) == 1 else 'are'} missing" if missing else ""
        if not unknown:
            raise Unfit(lacks)
        why = " (the service has no key and makes no decisions)" if unknown[0] == ID else ""
        which = f"{lacks}, and the field" if missing else "The field"
        raise Unfit(f"{which} {as_json(unknown[0])} is unknown{why}; the fields are {_quoted(self.fields)}")

    def _score(self, name: str, value: Any) -> float:
        low, high = self.score_range
        if type(value) not in (float, int) or not low <= value <= high:
            what = f"a number between {low:.10g} and {high:.6g}" if high < 1e300 else "a finite number"
            raise Unfit(f'"{name}" must be {what}, got {as_json(value)}')
        return float(value)

    def _cell(self, person: dict[str, Any]) -> Label:
        """The label of a person's group, with the stratum if there is one."""
        parts = tuple(_label(name, person[name]) for name in self.cell_fields)
        found = label_of(parts, len(self.strata))
        if self.is_strict and not self._knows(found):
            raise Unfit(self._unknown(parts), unseen=1)
        return found

    def _knows(self, label: Label) -> bool:
        if self._attributes:
            pairs = zip(label_parts(label), self._known_values, strict=True)
            return all(label_key(part) in known for part, known in pairs)
        return label_key(label) in self._known

    def _unknown(self, parts: tuple[Label, ...]) -> str:
        """Which value the rule does not know; or that it knows all of them, but not together."""
        found = zip(self.cell_fields, parts, self.values, self._known_values, strict=True)
        for name, part, values, known in found:
            if label_key(part) not in known:
                some = ", ".join(map(as_json, values[:_MOST_GROUPS]))
                more = f" and {len(values) - _MOST_GROUPS:,} more" if len(values) > _MOST_GROUPS else ""
                of = "the rule's values " if len(values) > 1 else ""
                return f'"{name}" must be {"one of " if of else ""}{of}{some}{more}, got {as_json(part)}'
        pairs = zip(self.cell_fields, parts, strict=True)
        together = " and ".join(f'"{name}" {as_json(part)}' for name, part in pairs)
        return f"The rule was fitted on nobody with {together}"


def _columns(rule: Rule | ClassRule) -> Columns:
    """The rule's column names, with a default for each one that it does not store; raises if they do not fit."""
    known = rule.columns
    missing: dict[str, Any] = {}
    if isinstance(rule, ClassRule):
        if known.class_scores is None:
            missing["class_score"] = {label: f"score_{label_text(label)}" for label in rule.classes}
    elif known.score is None:
        missing["score"] = "score"
    if rule.membership == "probabilities":
        if known.probabilities is None:
            missing["group_probability"] = {g: f"group_probability_{label_text(g)}" for g in rule.groups}
    elif isinstance(rule, Rule) and rule.membership == "each":
        if known.groups is None:
            missing["group"] = [name for name, _ in rule.attributes]
    else:
        halves = cell_columns(rule.groups, stratified=rule.stratified)
        for role, (half, names) in {
            "group": ("group", known.groups),
            "strata": ("stratum", known.strata),
        }.items():
            if half in halves and names is None:
                n = len(label_parts(halves[half][0]))
                missing[role] = [half] if n == 1 else [f"{half}_{i + 1}" for i in range(n)]
    return rule.reading(**missing)


def _codes(labels: list[Label]) -> Codes:
    """Encode labels, of which True and 1 are two."""
    place: dict[Any, int] = {}
    distinct: list[Label] = []
    values = []
    for label in labels:
        key = label_key(label)
        if key not in place:
            place[key] = len(distinct)
            distinct.append(label)
        values.append(place[key])
    return Codes(np.array(values, dtype=np.intp), 0, tuple(distinct))


def _label(name: str, value: Any) -> Label:
    if not isinstance(value, dict | list):
        try:
            return canonical_label(value)
        except InputError:  # a number with decimals, or text that is not Unicode
            pass
    raise Unfit(f'"{name}" must be text, an integer, true, false or null, got {_kind(value)}')


def _chance(name: str, value: Any) -> float:
    if type(value) not in (float, int) or not 0 <= value <= 1 + SUM_TOLERANCE:
        raise Unfit(f'"{name}" must be a number between 0 and 1, got {as_json(value)}')
    return float(value)


def _check_sum(names: Sequence[str], values: Sequence[float]) -> None:
    total = float(np.sum(values))
    if abs(total - 1) > SUM_TOLERANCE:
        raise Unfit(f"{_quoted(names)} must sum to 1, got {total:.9g}")


def _checked_id(value: Any) -> str | int:
    """An id; messages never show it."""
    if type(value) is int:
        return value
    if not isinstance(value, str):
        raise Unfit(f'"{ID}" must be text or an integer, got {_kind(value)}')
    if is_blank_id(value):
        raise Unfit(f'"{ID}" must not be empty or blank')
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unfit(f'"{ID}" must be valid Unicode text') from None
    return value


def _summary(wrong: list[tuple[int, str]], n: int, place: str | None) -> str:
    """One message about everyone who cannot be decided."""
    if place is None:
        return f"{wrong[0][1]}."
    said = "; ".join(f"{place}[{i}]: {sentence}" for i, sentence in wrong[:_MOST])
    more = f"; and {len(wrong) - _MOST:,} more" if len(wrong) > _MOST else ""
    return f"{len(wrong):,} of {n:,} people cannot be decided, so nobody was. {said}{more}."


def _quoted(names: Sequence[str]) -> str:
    """Names of fields, in a sentence."""
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def as_json(value: Any) -> str:
    """A value as it is written in JSON, shortened if it is long; or what kind of value it is.

    >>> print(as_json("Süd"), as_json(None), as_json(0.5), as_json([1, 2]))
    "Süd" null 0.5 a list
    """
    if isinstance(value, dict | list):
        return _kind(value)
    text = shown(value) if type(value) is int else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _kind(value: Any) -> str:
    """What kind of JSON value this is."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "an integer" if isinstance(value, int) else "a number with decimals")
