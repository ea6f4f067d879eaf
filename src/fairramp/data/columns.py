"""The names of the columns that a rule or a summary reads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairramp.core.labels import Label, canonical_label, label_key, label_parts
from fairramp.errors import InputError


@dataclass(frozen=True)
class Columns:
    """Column names; None for columns without a name.

    Attributes
    ----------
    score : str or None
        Column of the scores.
    groups, strata : tuple of str, or None
        Columns that make a group and a stratum; `strata` is None without strata.
    id : str or None
        Column of the row ids.
    probabilities : tuple of str, or None
        Columns of the group probabilities, in the order of the rule's groups; `groups` is then None.
    class_scores : tuple of str, or None
        Columns of the classes' scores, in the order of the rule's classes; `score` is then None.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> fairramp.fit_rule(data.score, {"sex": data.sex}).columns
    Columns(score=None, groups=('sex',), strata=None, id=None, probabilities=None, class_scores=None)
    """

    score: str | None = None
    groups: tuple[str, ...] | None = None
    strata: tuple[str, ...] | None = None
    id: str | None = None
    probabilities: tuple[str, ...] | None = None
    class_scores: tuple[str, ...] | None = None

    def given(self, score: Any = None, group: Any = None, strata: Any = None, id: Any = None) -> "Columns":
        """A copy with the given names replaced, after checking them."""
        return Columns(
            self.score if score is None else column_name("score", score),
            self.groups if group is None else column_names("group", group),
            self.strata if strata is None else column_names("strata", strata),
            None if id is None else column_name("id", id),  # a rule stores no id column
            self.probabilities,
            self.class_scores,
        )

    def with_classes(self, names: Mapping[Label, str]) -> "Columns":
        """A copy with the columns of the classes' scores."""
        return replace(self, class_scores=tuple(names.values()))

    @property
    def all(self) -> tuple[str, ...]:
        """All names that are set."""
        scores = self.class_scores or (self.score,)
        ends = (scores, self.groups or (), self.strata or (), (self.id,), self.probabilities or ())
        return tuple(name for names in ends for name in names if name is not None)

    @property
    def grouped(self) -> tuple[str, ...]:
        """Columns that make a cell, strata first."""
        return (*(self.strata or ()), *(self.groups or ()))

    def labels(self, groups: Iterable[Label]) -> list[tuple[str, list[Any]]]:
        """The groups' values in each column that makes a cell; none in further columns."""
        values = list(
            map(list, zip(*(label_parts(label, self.strata is not None) for label in groups), strict=True))
        )
        return [(name, values[i] if i < len(values) else []) for i, name in enumerate(self.grouped)]

    def renamed(self, names: dict[str, str]) -> "Columns":
        """A copy with columns renamed."""
        return replace(
            self,
            score=None if self.score is None else names[self.score],
            groups=self.groups and tuple(names[name] for name in self.groups),
            strata=self.strata and tuple(names[name] for name in self.strata),
            id=None if self.id is None else names[self.id],
            probabilities=self.probabilities and tuple(names[name] for name in self.probabilities),
            class_scores=self.class_scores and tuple(names[name] for name in self.class_scores),
        )


def blank_columns(labels: Iterable[tuple[str, list[Any]]]) -> list[str]:
    """Columns where a label is the empty string and none is missing; files often confuse the two."""
    return [name for name, known in labels if "" in known and None not in known]


def column_name(role: str, name: Any) -> str:
    """Check one column name."""
    if not isinstance(name, str):
        raise InputError("must be a column name", argument=role, got=name)
    return name


def column_names(role: str, names: Any) -> tuple[str, ...]:
    """Check one or several column names."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise InputError("must be a column name or a list of column names", argument=role, got=names)
    if len(set(names)) < len(names):
        raise InputError("names the same column twice: {names}", argument=role, names=list(names))
    return tuple(names)


def probability_columns(given: Any, groups: Sequence[Label] | None = None) -> dict[Label, str]:
    """Check the columns of group probabilities, by group; all groups of a rule, in its order, if it is known."""
    found = _columns_by_label(given, "group_probability", "groups", {"F": "p_f", "M": "p_m"}, groups)
    return {label: found[label] for label in (sorted(found, key=label_key) if groups is None else groups)}


def class_score_columns(given: Any, classes: Sequence[Label] | None = None) -> dict[Label, str]:
    """Check the columns of the classes' scores, by class; all classes of a rule, in its order, if it is known."""
    found = _columns_by_label(given, "class_score", "classes", {"low": "p_low", "high": "p_high"}, classes)
    return {label: found[label] for label in (found if classes is None else classes)}


def _columns_by_label(
    given: Any, role: str, what: str, example: Mapping[str, str], wanted: Sequence[Label] | None
) -> dict[Label, str]:
    """Check column names by label; all labels of a rule, if they are known."""
    if not isinstance(given, Mapping) or not given:
        raise InputError(
            "must be a dict of {what} and the columns of their probabilities, such as {example}",
            argument=role,
            got=given,
            what=what,
            example=dict(example),
        )
    found = {canonical_label(label): column_name(role, name) for label, name in given.items()}
    column_names(role, list(found.values()))
    if wanted is not None and set(map(label_key, found)) != set(map(label_key, wanted)):
        raise InputError(
            "must name the columns of the rule's {what} {wanted}, got {found}",
            argument=role,
            what=what,
            wanted=list(wanted),
            found=list(found),
        )
    return found


def check_new(names: Iterable[str], present: Iterable[str], fold: Callable[[str], str] = str.casefold) -> None:
    """Raise if a new column has the name of an existing one."""
    taken = {fold(column): column for column in present}
    for name in names:
        if fold(name) in taken:
            raise InputError(
                "The table already has a column {name!r}",
                remedy="pass a prefix for the new ones: {prefix:fair_}",
                name=taken[fold(name)],
            )


def prefixed(prefix: Any, names: Iterable[str]) -> list[str]:
    """The names of new columns, after checking the prefix."""
    if not isinstance(prefix, str):
        raise InputError("must be a string", argument="prefix", got=prefix)
    return [f"{prefix}{name}" for name in names]
