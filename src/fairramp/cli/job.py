"""The table of a command after its checks: its rows under internal names, or in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from fairramp.core.labels import Label, label_key, label_of
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes
from fairramp.data.probable import GroupProbabilities
from fairramp.data.stored import Source
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule

#: Options that are given once for each column.
PROBABILITY, CLASS = "--group-probability", "--class-score"


@dataclass(frozen=True)
class Number:
    """A column that must hold numbers.

    Attributes
    ----------
    option : str
        The option that named it, for messages.
    name, column : str
        Its name in the file and in the query.
    expression : str
        SQL that converts it to a double; NULL if that fails.
    comma : bool
        Whether it is written with decimal commas.
    lowest, highest : float
        Range of all finite numbers; None without any.
    """

    option: str
    name: str
    column: str
    expression: str
    comma: bool
    lowest: float
    highest: float


@dataclass(frozen=True)
class Job:
    """A table whose rows have been validated.

    Attributes
    ----------
    source : Source
        The opened table.
    columns : Columns
        The columns in use, by their names in the file.
    table : str
        Temporary table with the distinct values of strata and group columns, k0, k1, …, and their `code`.
    rows : int
        Number of rows.
    numbers : dict of str to Number
        Number columns by option; those of group probabilities and of classes by the option and their index.
    raw_cells : tuple of tuple
        Distinct values of strata and group columns, by code, as in the file.
    cells : tuple of tuple
        The same in the types of the rule's labels, if there is a rule.
    counts : tuple of int
        Number of rows of each.
    keys : tuple of str
        SQL of these columns.
    typed_keys : tuple of str
        The same in the types of the rule's labels, if there is a rule.
    labels : tuple
        The groups of the columns with group probabilities.
    classes : tuple
        The classes of the columns with their scores.
    truth : str or None
        SQL of the true class as text, if there are classes and labels.
    unknown : tuple of (label, int)
        Groups that the rule does not know, with their numbers of rows, which may have been left out.
    emptied : tuple of label
        Groups of the rule all of whose rows were left out.
    left_out : str or None
        Which rows were left out and why, in a sentence; None if all are here.
    """

    source: Source
    columns: Columns
    table: str
    rows: int
    numbers: dict[str, Number]
    raw_cells: tuple[tuple[Any, ...], ...]
    cells: tuple[tuple[Any, ...], ...]
    counts: tuple[int, ...]
    keys: tuple[str, ...]
    typed_keys: tuple[str, ...]
    labels: tuple[Label, ...] = ()
    classes: tuple[Label, ...] = ()
    truth: str | None = None
    unknown: tuple[tuple[Label, int], ...] = ()
    emptied: tuple[Label, ...] = ()
    left_out: str | None = None

    @property
    def score(self) -> Number:
        """The score column, or that of the first class."""
        return self.numbers["--score"] if "--score" in self.numbers else self.class_scores[0]

    @property
    def probabilities(self) -> list[Number]:
        """The columns with group probabilities."""
        return [number for key, number in self.numbers.items() if key.startswith(PROBABILITY)]

    @property
    def class_scores(self) -> list[Number]:
        """The columns with the scores of classes."""
        return [number for key, number in self.numbers.items() if key.startswith(CLASS)]

    @property
    def inner(self) -> Columns:
        """The column names of `relation`."""
        n, names = len(self.columns.strata or ()), tuple(f"g{i}" for i in range(len(self.keys)))
        probable = tuple(f"q{i}" for i in range(len(self.probabilities)))
        scores = tuple(f"p{i}" for i in range(len(self.class_scores)))
        score = None if scores else "score"
        return Columns(score, names[n:] or None, names[:n] or None, "id", probable or None, scores or None)

    @property
    def groups(self) -> list[tuple[Label, int]]:
        """The groups (or cells) in order, with their numbers of rows."""
        labels = (label_of(parts, len(self.columns.strata or ())) for parts in self.cells)
        return sorted(zip(labels, self.counts, strict=True), key=lambda pair: label_key(pair[0]))

    def relation(self, *, extra: bool = False) -> duckdb.DuckDBPyRelation:
        """Return the columns in use under internal names: score or p0, p1, …, label, weight, q0, …, g0, …, id.

        With `extra`, all columns of the file come first.
        """
        parts = [f"c{i}" for i in range(len(self.source.names))] if extra else []
        parts += [f"({number.expression}) AS {inner_name(option)}" for option, number in self.numbers.items()]
        parts += [f"{key} AS g{i}" for i, key in enumerate(self.typed_keys)]
        if self.columns.id is not None:
            parts.append(f"{self._id} AS id")
        return self.source.connection.sql(f"SELECT {', '.join(parts)} FROM ({self.source.query})")

    def arrays(self, *, ordered: bool = False) -> dict[str, Any]:
        """Return arguments for in-memory functions: scores, groups, labels, sample_weight, strata.

        If there are classes, the scores are `probabilities`, by class, and labels are text. `ordered` sorts the
        rows, so the result does not depend on the order in which threads read them. With columns of group
        probabilities, they are among the arguments, as `group_probabilities`; with a column of ids, `ids`.
        """
        expressions = [number.expression for number in self.numbers.values()]
        expressions += [self.truth] if self.truth else []
        expressions += [self._id] if self.columns.id else []
        inner = [f"{key} AS k{i}" for i, key in enumerate(self.keys)]
        inner += [f"({expression}) AS x{i}" for i, expression in enumerate(expressions)]
        match = " AND ".join(f"d.k{i} IS NOT DISTINCT FROM s.k{i}" for i in range(len(self.keys)))
        outer = ", ".join(["CAST(s.code AS INTEGER) AS code", *(f"d.x{i}" for i in range(len(expressions)))])
        columns = self.source.connection.sql(
            f"SELECT {outer} FROM (SELECT {', '.join(inner)} FROM ({self.source.query})) AS d "
            f"JOIN {self.table} AS s ON {match}{' ORDER BY ALL' if ordered else ''}"
        ).fetchnumpy()
        options = [*self.numbers, *(["--label"] if self.truth else []), *(["--id"] if self.columns.id else [])]
        found = {option: columns[f"x{i}"] for i, option in enumerate(options)}
        scores: dict[str, Any] = {"scores": found.get("--score")}
        if self.classes:
            by_class = (values for option, values in found.items() if option.startswith(CLASS))
            scores = {"probabilities": dict(zip(self.classes, by_class, strict=True))}
        n = len(self.columns.strata or ())
        return {
            **scores,
            "groups": _codes(columns["code"], [parts[n:] for parts in self.cells], self.columns.groups),
            "labels": found.get("--label"),
            "sample_weight": found.get("--weight"),
            "strata": (
                _codes(columns["code"], [parts[:n] for parts in self.cells], self.columns.strata) if n else None
            ),
            **({"group_probabilities": self._probable(found)} if self.probabilities else {}),
            **({"ids": found["--id"].tolist()} if self.columns.id else {}),
        }

    @property
    def _id(self) -> str:
        """SQL of the ids as text."""
        return f"CAST({self.source.find(self.columns.id or '', '--id')} AS VARCHAR)"

    def _probable(self, found: dict[str, Any]) -> GroupProbabilities:
        """The group probabilities of rows in memory."""
        columns = [values for key, values in found.items() if key.startswith(PROBABILITY)]
        return GroupProbabilities(dict(zip(self.labels, columns, strict=True)))

    def in_order(self) -> dict[str, Any]:
        """Keep all rows in the table `kept`, and return scores, groups and ids (or None) in their order."""
        self.relation(extra=True).project("*, row_number() OVER () AS position").create("kept")
        match = " AND ".join(f"r.g{i} IS NOT DISTINCT FROM s.k{i}" for i in range(len(self.keys)))
        id = ", r.id" if self.columns.id is not None else ""
        columns = self.source.connection.sql(
            f"SELECT CAST(s.code AS INTEGER) AS code, r.score{id} FROM kept AS r "
            f"JOIN {self.table} AS s ON {match} ORDER BY r.position"
        ).fetchnumpy()
        return {
            "scores": columns["score"],
            "groups": _codes(columns["code"], self.cells, self.columns.groups),
            "ids": columns["id"].tolist() if id else None,
        }

    def decide(self, decisions: Any) -> None:
        """Create the view `decided`: the table of `in_order` with the column `decision`."""
        chosen = (np.flatnonzero(decisions) + 1).tolist()
        self.source.connection.execute("CREATE TEMP TABLE chosen AS SELECT unnest(?::BIGINT[]) AS i", [chosen])
        self.source.connection.execute(
            "CREATE TEMP VIEW decided AS SELECT kept.*, CAST(i IS NOT NULL AS TINYINT) AS decision "
            "FROM kept LEFT JOIN chosen ON position = i"
        )


def inner_name(option: str) -> str:
    """The internal name of a number column."""
    name, _, index = option.partition(" ")
    return f"{'q' if name == PROBABILITY else 'p'}{index}" if index else name[2:]


def _codes(code: Any, parts: Sequence[tuple[Any, ...]], names: tuple[str, ...] | None) -> Codes:
    """Return the codes of some columns, given the codes of all of them."""
    labels = list(map(label_of, parts))
    ordered = dict(sorted({label_key(label): label for label in labels}.items()))
    place = {key: i for i, key in enumerate(ordered)}
    seats = np.array([place[label_key(label)] for label in labels], dtype=np.int32)
    return Codes(seats[np.asarray(code)], 0, tuple(ordered.values()), names)


def met(job: Job, rule: Rule | ClassRule | None) -> list[tuple[Label, int]]:
    """The groups of a job, with their numbers of rows; for a rule by each attribute, the values of each."""
    if not isinstance(rule, Rule) or rule.membership != "each":
        return job.groups
    found: dict[Any, tuple[Label, int]] = {}
    for i, (attribute, _) in enumerate(rule.attributes):
        for parts, n in zip(job.cells, job.counts, strict=True):
            label: Label = (attribute, parts[i])
            _, so_far = found.get(label_key(label), (label, 0))
            found[label_key(label)] = label, so_far + n
    return list(found.values())
