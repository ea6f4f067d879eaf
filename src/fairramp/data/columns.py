"""Columns: the names of the columns that a rule or a summary reads, in one place."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from fairramp.core.labels import Label, label_parts
from fairramp.errors import InputError


@dataclass(frozen=True)
class Columns:
    """Names of columns, None where they have none.

    Attributes
    ----------
    score : str or None
        Of the scores.
    groups, strata : tuple of str, or None
        Of what makes a group, and a stratum; `strata` is None also where there are no strata.
    id : str or None
        Of who each row is.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> fairramp.fit_rule(data.score, {"sex": data.sex}).columns
    Columns(score=None, groups=('sex',), strata=None, id=None)
    """

    score: str | None = None
    groups: tuple[str, ...] | None = None
    strata: tuple[str, ...] | None = None
    id: str | None = None

    def given(self, score: Any = None, group: Any = None, strata: Any = None, id: Any = None) -> "Columns":
        """These, with those that are given in their place, after checking that they are names."""
        return Columns(
            self.score if score is None else column_name("score", score),
            self.groups if group is None else column_names("group", group),
            self.strata if strata is None else column_names("strata", strata),
            None if id is None else column_name("id", id),  # a rule remembers no id
        )

    @property
    def all(self) -> tuple[str, ...]:
        """All that there are."""
        ends = ((self.score,), self.groups or (), self.strata or (), (self.id,))
        return tuple(name for names in ends for name in names if name is not None)

    @property
    def grouped(self) -> tuple[str, ...]:
        """Those that make a cell, strata first."""
        return (*(self.strata or ()), *(self.groups or ()))

    def labels(self, groups: Iterable[Label]) -> list[tuple[str, list[Any]]]:
        """The groups' values in each of those that make a cell."""
        values = map(list, zip(*(label_parts(label, self.strata is not None) for label in groups), strict=True))
        return list(zip(self.grouped, values, strict=True))

    def blank(self, groups: Iterable[Label]) -> list[str]:
        """Those in which groups have the empty text and no missing label, which files often confuse."""
        return [name for name, known in self.labels(groups) if "" in known and None not in known]

    def renamed(self, names: dict[str, str]) -> "Columns":
        """Under other names."""
        return replace(
            self,
            score=None if self.score is None else names[self.score],
            groups=self.groups and tuple(names[name] for name in self.groups),
            strata=self.strata and tuple(names[name] for name in self.strata),
            id=None if self.id is None else names[self.id],
        )


def column_name(role: str, name: Any) -> str:
    """One name, after checking that it is one."""
    if not isinstance(name, str):
        raise InputError("must be the name of a column", argument=role, got=name)
    return name


def column_names(role: str, names: Any) -> tuple[str, ...]:
    """One name or several, after checking that they are."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise InputError("must be the name of a column or a list of names", argument=role, got=names)
    if len(set(names)) < len(names):
        raise InputError("names a column twice: {names}", argument=role, names=list(names))
    return tuple(names)


def check_new(names: Iterable[str], present: Iterable[str], fold: Callable[[str], str] = str.casefold) -> None:
    """Refuse new columns of a name that a table has already."""
    taken = {fold(column): column for column in present}
    for name in names:
        if fold(name) in taken:
            raise InputError(
                "The table has a column {name!r} already",
                remedy="pass {prefix}, like prefix='fair_'",
                name=taken[fold(name)],
            )


def prefixed(prefix: Any, names: Iterable[str]) -> list[str]:
    """The names of new columns, after checking what they start with."""
    if not isinstance(prefix, str):
        raise InputError("must be text", argument="prefix", got=prefix)
    return [f"{prefix}{name}" for name in names]
