"""The names of the columns that a rule reads: as given, or as the rule remembers them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fairramp.core.labels import Label
from fairramp.data.columns import column_name, column_names
from fairramp.errors import InputError
from fairramp.rule.rule import Rule

__all__ = [
    "Columns",
    "label_type",
]


class Columns(NamedTuple):
    """Names of the columns that a rule reads."""

    score: str
    groups: tuple[str, ...]
    strata: tuple[str, ...]
    id: str | None

    @classmethod
    def of(cls, rule: Rule, score: Any, group: Any, strata: Any, id: Any) -> "Columns":
        """As given, or as in the rule's record."""
        record = rule.record
        if score is None:
            score = record.score_column if record else None
        groups = rule.group_columns if group is None else column_names("group", group)
        outer = rule.strata_columns if strata is None else column_names("strata", strata)
        for role, name in (("score", score), ("group", groups)):
            if name is None:
                raise InputError(f"Pass `{role}`: the rule does not know the name of that column.")
        assert groups is not None
        stratified = rule.criterion == "covariance"
        if stratified and outer is None:
            raise InputError("Pass `strata`: the rule equalises within strata and does not know their columns.")
        if not stratified and outer is not None:
            raise InputError(
                "`strata` are not known to this rule, which equalises over all rows; leave them out."
            )
        for label in rule.groups:
            stratum, inner = label if stratified and isinstance(label, tuple) else (None, label)
            _check_width("group", groups, inner)
            if outer is not None:
                _check_width("strata", outer, stratum)
        return cls(
            column_name("score", score), groups, outer or (), None if id is None else column_name("id", id)
        )

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (self.score, *self.groups, *self.strata, *([] if self.id is None else [self.id]))

    @property
    def grouped(self) -> tuple[str, ...]:
        """Those that make a group, strata first."""
        return (*self.strata, *self.groups)

    def labels(self, groups: Iterable[Label]) -> list[tuple[str, list[Any]]]:
        """The groups' values in each of those."""
        values = map(list, zip(*map(self.parts, groups), strict=True))
        return list(zip(self.grouped, values, strict=True))

    def blank(self, groups: Iterable[Label]) -> list[str]:
        """Those in which groups have the empty text and no missing label, which files often confuse."""
        return [name for name, known in self.labels(groups) if "" in known and None not in known]

    def renamed(self, names: dict[str, str]) -> "Columns":
        """Under other names."""
        score, groups, strata, id_ = self
        return Columns(
            names[score],
            tuple(names[name] for name in groups),
            tuple(names[name] for name in strata),
            None if id_ is None else names[id_],
        )

    def parts(self, label: Label) -> tuple[Label, ...]:
        """A group's value in each column, strata first."""
        if not self.strata:
            return _flat(label)
        assert isinstance(label, tuple)
        return (*_flat(label[0]), *_flat(label[1]))


def label_type(name: str, labels: Sequence[Label]) -> type:
    """The one type of the labels of a column, for exports: text, whole numbers of 64 bits, or booleans."""
    examples = {type(label): label for label in labels if label is not None}
    if len(examples) > 1:
        several = ", ".join(map(repr, examples.values()))
        raise InputError(
            f"Groups of column {name!r} are of several types ({several}), and an exported column has one; fit "
            "with labels of one type."
        )
    outside = [label for label in labels if isinstance(label, int) and not -(2**63) <= label < 2**63]
    if outside:
        raise InputError(
            f"The group {outside[0]} of column {name!r} does not fit into 64 bits, as exported whole numbers do; "
            "use text."
        )
    return next(iter(examples), str)


def _flat(label: Label) -> tuple[Label, ...]:
    return label if isinstance(label, tuple) else (label,)


def _check_width(role: str, names: tuple[str, ...], label: Label) -> None:
    n = len(_flat(label))
    if n != len(names):
        raise InputError(
            f"`{role}` must name {n} column{'s' if n > 1 else ''}, as in the fit, got {list(names)}."
        )
