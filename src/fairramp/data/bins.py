"""GroupScores: a portable summary of rows.

For each group and bin of the score range (see `grid`): rows n, Σw, Σw², the mean score Σw·x / Σw, and whether all
rows have that score; with labels, also n, Σw and Σw² of the rows with label 1. Sums add up, so summaries of days,
chunks or sites merge into the summary of all rows. A finer summary is coarsened first: two adjacent bins make one
of the coarser grid.

As a JSON file it is a `fairramp.data.documents.Document` with these fields:

    {"format": "fairramp.summary", "version": 2,
     "scale": …, "resolution": …, "cutoff": …, "weighted": …, "labeled": …, "stratified": …,
     "columns": {"score": …, "groups": …, "strata": …},
     "groups": [{"label": …, "bin": […], "rows": […], "mean": […], "one_score": […],
                 "weight": […], "weight_squares": […],
                 "positive_rows": […], "positive_weight": […], "positive_weight_squares": […]}, …],
     "higher_is_better": false, if lower scores are better; otherwise omitted,
     "sha256": "…"}

A group's lists have one entry per nonempty bin. Bins are numbered from the worst score; a bin that the cutoff
splits counts as two. Means are positions (see `core.scales`). "one_score" lists the bins with several rows that
all have the mean as their score. Without weights, the lists whose names contain "weight" are omitted; without
labels, those whose names start with "positive" are. The file is text, so people can see what it discloses before
they share it.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta, convert

from fairramp.core.labels import Label, canonical_label, label_parts, refuse_mixed
from fairramp.core.points import LabeledPoints, Points, Summary, concatenated
from fairramp.core.public import public
from fairramp.core.table import Table, name_column
from fairramp.data import documents
from fairramp.data.bin_laws import GROUP_LAWS, LABEL_LAWS, LABEL_WEIGHT_LAWS, LAWS, MOST_ROWS, check, floats
from fairramp.data.columns import Columns
from fairramp.data.files import write_text
from fairramp.data.grid import Grid, checked_resolution
from fairramp.data.sample import LARGEST_WEIGHT
from fairramp.errors import InputError, SummaryFormatError, shown


class GroupBins(documents.Shape, frozen=True):
    """The contents of a group's bins."""

    label: documents.PlainLabel
    bin: tuple[documents.Count, ...]
    rows: tuple[Annotated[int, Meta(ge=0, le=MOST_ROWS)], ...]
    mean: tuple[documents.Finite, ...]
    one_score: tuple[documents.Count, ...]
    weight: tuple[documents.Finite, ...] | None = None
    weight_squares: tuple[documents.Finite, ...] | None = None
    positive_rows: tuple[documents.Count, ...] | None = None
    positive_weight: tuple[documents.Finite, ...] | None = None
    positive_weight_squares: tuple[documents.Finite, ...] | None = None


class SummaryFile(documents.Document, frozen=True, tag="fairramp.summary"):
    """A summary file."""

    words: ClassVar = {
        "noun": "summary",
        "again": "summarize the rows again",
        "mend": "summarize the rows again",
    }
    refused = SummaryFormatError

    scale: str
    resolution: int
    cutoff: documents.Finite
    weighted: bool
    labeled: bool
    stratified: bool
    columns: documents.ColumnNames
    groups: tuple[GroupBins, ...]
    higher_is_better: bool = True


@public
@dataclass(frozen=True, repr=False, eq=False)
class GroupScores:
    """The binned scores of each group: small, mergeable, and enough to fit a rule.

    Made by `summarize` and `summarize_frame`. It contains no rows but is not anonymous: a bin with one row
    reveals that row's score, weight and label, a bin of equal scores reveals the score, a bin of equal labels
    reveals the label, and counts in a small group may reveal who is in it. See `smallest_count`, and `coarsened`
    for wider bins.

    Attributes
    ----------
    grid : Grid
        The bins: scale, resolution and cutoff.
    summary : Summary
        Their contents; its points are `LabeledPoints` if rows have labels.
    weighted : bool
        Whether rows have weights.
    stratified : bool
        Whether groups are cells (stratum, group).
    columns : Columns
        Names of the columns, if any.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> monday = fairramp.summarize(data.score[:12000], data.sex[:12000])
    >>> tuesday = fairramp.summarize(data.score[12000:], data.sex[12000:])
    >>> monday.merge(tuesday)
    24,421 rows, 2 groups, 4,096 bins, scale 'probability'
    <BLANKLINE>
    group        n  mean score  bins used
    ------  ------  ----------  ---------
    Female   8,094      0.1211      1,814
    Male    16,327      0.2921      3,605
    """

    grid: Grid
    summary: Summary
    weighted: bool
    stratified: bool
    columns: Columns

    @property
    def labels(self) -> tuple[Label, ...]:
        """The groups, in order; with strata, pairs (stratum, group)."""
        return self.summary.labels

    @property
    def rows(self) -> tuple[int, ...]:
        """Number of rows of each group."""
        return tuple(self.summary.rows.tolist())

    @property
    def scale(self) -> str:
        """Scale of the scores."""
        return self.grid.scale.name

    @property
    def higher_is_better(self) -> bool:
        """Whether high scores lead to the favorable decision."""
        return self.grid.scale.higher_is_better

    @property
    def resolution(self) -> int:
        """Number of equal bins of the score range."""
        return self.grid.resolution

    @property
    def cutoff(self) -> float:
        """Score at which the classifier itself selects; a bin edge."""
        return self.grid.cutoff

    @property
    def labeled(self) -> bool:
        """Whether rows have labels, the true outcomes."""
        return isinstance(self.summary.points, LabeledPoints)

    @property
    def smallest_count(self) -> int:
        """Number of rows in the smallest nonempty bin, for disclosure reviews."""
        return int(self.summary.points.rows.min())

    def merge(self, other: "GroupScores") -> "GroupScores":
        """Merge with another summary, at the coarser of the two resolutions.

        Merging is associative and commutative up to the last digits of sums, and equals one pass over all rows.
        Names of score columns are kept if they agree; an unweighted row counts as weight 1.

        Parameters
        ----------
        other : GroupScores
            Must have the same scale, direction, cutoff and group columns, and labels if this one has. Its groups
            may differ.

        Examples
        --------
        >>> import fairramp
        >>> north = fairramp.summarize([0.2, 0.7], ["A", "B"])
        >>> south = fairramp.summarize([0.7, 0.9], ["B", "C"], resolution=256)
        >>> both = north.merge(south)
        >>> both.labels, both.rows, both.resolution
        (('A', 'B', 'C'), (1, 2, 1), 256)
        """
        if not isinstance(other, GroupScores):
            raise InputError(
                "must be a fairramp.GroupScores, got {kind}", argument="other", kind=type(other).__name__
            )
        columns = self._columns_with(other)
        grid = replace(self.grid, resolution=min(self.resolution, other.resolution))
        labels, points = self.summary.beside(other.summary)
        return replace(
            self,
            grid=grid,
            summary=Summary(labels, grid.joined(points)),
            weighted=self.weighted or other.weighted,
            columns=columns,
        )

    def _columns_with(self, other: "GroupScores") -> Columns:
        """Column names of both, filled in from each other; raises if the summaries are incompatible."""
        mine, theirs = self.columns, other.columns
        groups, strata = mine.groups or theirs.groups, mine.strata or theirs.strata
        for what, a, b in (
            ("scales", self.scale, other.scale),
            ("directions", _direction(self), _direction(other)),
            ("cutoffs", self.cutoff, other.cutoff),
            ("kinds of groups", _kind(self), _kind(other)),
            ("group columns", list(mine.groups or groups or ()), list(theirs.groups or groups or ())),
            ("strata columns", list(mine.strata or strata or ()), list(theirs.strata or strata or ())),
        ):
            if a != b:
                raise InputError(
                    "Summaries with different {what} cannot be merged, got {mine!r} and {theirs!r}",
                    remedy="summarize both in the same way",
                    what=what,
                    mine=a,
                    theirs=b,
                )
        if self.labeled != other.labeled:
            raise InputError(
                "Only one of the two summaries has labels",
                remedy="to merge them, summarize both with labels or both without",
            )
        refuse_mixed((*self.labels, *other.labels))
        return Columns(mine.score if mine.score == theirs.score else None, groups, strata)

    def coarsened(self, resolution: int) -> "GroupScores":
        """Reduce the number of bins, for a smaller file that reveals less about single rows, with larger errors.

        Parameters
        ----------
        resolution : int
            A power of two, at most the current resolution.

        Examples
        --------
        >>> import fairramp
        >>> fine = fairramp.summarize([0.2, 0.201, 0.7], ["A", "A", "B"])
        >>> fine.smallest_count, fine.coarsened(2).resolution
        (1, 2)
        """
        grid = replace(self.grid, resolution=checked_resolution(resolution))
        if grid.resolution == self.resolution:
            return self
        if grid.resolution > self.resolution:
            raise InputError(
                "must be at most the resolution of the summary, {most}",
                argument="resolution",
                got=resolution,
                remedy="finer bins require the rows",
                most=self.resolution,
            )
        return replace(self, grid=grid, summary=Summary(self.labels, grid.joined(self.summary.points)))

    def __eq__(self, other: object) -> bool:
        return to_text(self) == to_text(other) if isinstance(other, GroupScores) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.grid, self.labels, self.rows))

    def table(self) -> Table:
        """Return one row per group: rows, mean score, nonempty bins and, with labels, the share of label 1.

        For real scores, the mean position instead of the mean score.

        Examples
        --------
        >>> import fairramp
        >>> print(fairramp.summarize([0.25, 0.75, 0.5], ["A", "A", "B"]).table())
        group  n  mean score  bins used
        -----  -  ----------  ---------
        A      2      0.5000          2
        B      1      0.5000          1
        """
        p, scale = self.summary.points, self.grid.scale
        share = p.weight / self.summary.weights[p.group]
        mean = self.summary.total(share * p.place)
        columns = {
            "group": name_column(self.labels),
            "n": self.rows,
            # Bins hold mean positions, which are not those of the mean real scores.
            **(
                {"mean_position": scale.turned(mean)} if scale.only_ordered else {"mean_score": scale.shown(mean)}
            ),
            "bins_used": self.summary.sizes,
        }
        if isinstance(p, LabeledPoints):
            columns["positive_share"] = self.summary.total(p.positives) / self.summary.weights
        return Table(
            columns,
            headings={
                "group": " / ".join(self.columns.groups or ["group"]),
                "positive_share": "label 1",
            },
        )

    def __repr__(self) -> str:
        n = len(self.labels)
        direction = "" if self.higher_is_better else ", lower is better"
        return (
            f"{sum(self.rows):,} {'weighted ' if self.weighted else ''}rows"
            f"{' with labels' if self.labeled else ''}, {n:,} group{'s' if n > 1 else ''}, "
            f"{self.resolution:,} bins, scale {self.scale!r}{direction}\n\n{self.table()}"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the summary to a JSON file with a checksum. The write is atomic.

        The file takes about 30 bytes per nonempty bin of each group. It discloses all that `GroupScores`
        contains.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import fairramp
        >>> summary = fairramp.summarize([0.2, 0.7], ["A", "B"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     summary.save(Path(folder) / "monday.json")
        ...     fairramp.GroupScores.load(Path(folder) / "monday.json") == summary
        True
        """
        write_text(Path(path), to_text(self), "the summary")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "GroupScores":
        """Read a summary from its file.

        Raises
        ------
        SummaryFormatError
            If the file is not a summary, is damaged, or has an unsupported version.

        Examples
        --------
        >>> import fairramp
        >>> monday = fairramp.GroupScores.load("monday.json")  # doctest: +SKIP
        """
        return documents.load(path, SummaryFile, _scores)


def to_text(scores: GroupScores) -> str:
    """Return the summary as the text of its file."""
    return documents.written(
        SummaryFile(
            version=documents.VERSION,
            sha256="",
            scale=scores.scale,
            resolution=scores.resolution,
            cutoff=scores.cutoff,
            weighted=scores.weighted,
            labeled=scores.labeled,
            stratified=scores.stratified,
            columns=convert(scores.columns, documents.ColumnNames, from_attributes=True),
            groups=_bins_of(scores.grid, scores.summary, scores.weighted),
            higher_is_better=scores.higher_is_better,
        ),
        indent=-1,
    )


def from_text(text: str) -> GroupScores:
    """Read a summary from the text of its file."""
    return documents.read(text, SummaryFile, _scores)


def _scores(document: SummaryFile) -> GroupScores:
    """Build the summary of a file, after checking it."""
    grid = Grid.checked(document.scale, document.resolution, document.cutoff, document.higher_is_better)
    columns = convert(document.columns, Columns, from_attributes=True)
    check(LAWS, document)
    labels = tuple(canonical_label(entry.label) for entry in document.groups)
    parts = [_points(entry, i, grid, document) for i, entry in enumerate(document.groups)]
    return GroupScores(
        grid, Summary(labels, concatenated(parts)), document.weighted, document.stratified, columns
    )


def _direction(scores: GroupScores) -> str:
    return "higher is better" if scores.higher_is_better else "lower is better"


def _kind(scores: GroupScores) -> str:
    """The number of columns of a group, in words."""
    cell: Any = scores.labels[0] if scores.stratified else (scores.labels[0],)
    *strata, group = (len(label_parts(part)) for part in cell)
    return f"groups of {group}{f' in strata of {strata[0]}' if strata else ''} columns"


def _bins_of(grid: Grid, summary: Summary, weighted: bool) -> tuple[GroupBins, ...]:
    """The groups' entries in the file."""
    p, stop = summary.points, np.cumsum(summary.sizes)
    bins, several = grid.bins(p.lower), p.exact & (p.rows > 1)
    lists: dict[str, Any] = {"bin": bins, "rows": p.rows, "mean": p.place}
    if weighted:
        lists |= {"weight": p.weight, "weight_squares": p.weight_squares}
    if isinstance(p, LabeledPoints):
        lists["positive_rows"] = p.positive_rows
        if weighted:
            lists |= {"positive_weight": p.positives, "positive_weight_squares": p.square_positives}
    labels: tuple[Any, ...] = summary.labels
    return tuple(
        GroupBins(
            label=label,
            one_score=tuple(bins[part][several[part]].tolist()),
            **{name: tuple(values[part].tolist()) for name, values in lists.items()},
        )
        for label, part in zip(labels, map(slice, stop - summary.sizes, stop), strict=True)
    )


def _points(entry: GroupBins, group: int, grid: Grid, document: SummaryFile) -> Points:
    by_label = LABEL_LAWS | (LABEL_WEIGHT_LAWS if document.weighted else {})
    check(
        GROUP_LAWS | (by_label if document.labeled else {}),
        entry,
        grid,
        document,
        label=shown(entry.label),
        edges=len(grid.edges),
        largest=LARGEST_WEIGHT,
    )
    index, rows = np.array(entry.bin, dtype=np.intp), np.array(entry.rows, dtype=np.intp)
    one_score = (rows == 1) | np.isin(index, entry.one_score)
    weights = floats(entry.weight or entry.rows), floats(entry.weight_squares or entry.rows)
    points = grid.filled(np.full(len(index), group), index, floats(entry.mean), one_score, rows, *weights)
    if entry.positive_rows is None:
        return points
    positives = entry.positive_weight or entry.positive_rows, entry.positive_weight_squares or entry.positive_rows
    return LabeledPoints.of(points, np.array(entry.positive_rows, dtype=np.intp), *map(floats, positives))
