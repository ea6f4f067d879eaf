"""GroupScores: a summary of rows that travels.

Per group and bin of the score range (see `grid`): rows n, Σw, Σw², the mean score Σw·x / Σw, and whether all rows
have that score. Sums add up, so summaries of days, chunks or sites merge to the summary of all rows; a finer one
is coarsened first, as two bins of a pair make one of the coarser grid.
"""

import os
from dataclasses import dataclass, replace
from typing import Any

from fairramp.core.labels import Label, refuse_mixed
from fairramp.core.points import Summary
from fairramp.core.scales import SCALES
from fairramp.core.table import Table, name_column
from fairramp.data.columns import Columns
from fairramp.data.grid import Grid, checked_resolution
from fairramp.errors import InputError

__all__ = [
    "GroupScores",
]


@dataclass(frozen=True, repr=False, eq=False)
class GroupScores:
    """The scores of each group, in bins: small, mergeable, and enough to fit a rule.

    Made by `summarize` and `summarize_frame`. It holds no rows, but is not anonymous: a bin with one row gives
    away that row's score and weight, a bin of equal scores the score, and counts in a small group may tell who is
    in it. See `smallest_count`, and `coarsened` for wider bins.

    Attributes
    ----------
    grid : Grid
        The bins: scale, resolution and cut-off.
    summary : Summary
        Their contents.
    weighted : bool
        Whether rows had weights.
    stratified : bool
        Whether groups are cells (stratum, group).
    columns : Columns
        Names of the columns, where they have any.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> monday = fairramp.summarize(data.score[:12000], data.sex[:12000])
    >>> tuesday = fairramp.summarize(data.score[12000:], data.sex[12000:])
    >>> monday.merge(tuesday)
    24,421 rows of 2 groups in 4,096 bins of the scale 'probability'
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
        """The groups, in order; (stratum, group) with strata."""
        return self.summary.labels

    @property
    def rows(self) -> tuple[int, ...]:
        """Number of rows of each group."""
        return tuple(self.summary.rows.tolist())

    @property
    def scale(self) -> str:
        """What the scores mean."""
        return self.grid.scale.name

    @property
    def resolution(self) -> int:
        """Number of equal bins of the score range."""
        return self.grid.resolution

    @property
    def cutoff(self) -> float:
        """Where the classifier itself says yes, as a score; an edge of the bins."""
        return self.grid.cutoff

    @property
    def smallest_count(self) -> int:
        """Rows in the bin that has fewest: what a review of disclosure asks for."""
        return int(self.summary.points.rows.min())

    def merge(self, other: "GroupScores") -> "GroupScores":
        """Summary of the rows of both, at the coarser of the two resolutions.

        Merging is associative and commutative up to the last digits of sums, and gives what one pass over all
        rows gives. Names of score columns are kept where they agree; an unweighted row counts like one of
        weight 1.

        Parameters
        ----------
        other : GroupScores
            With the same scale, cut-off and group columns. Its groups may be others.

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
            kind = type(other).__name__
            raise InputError("must be a fairramp.GroupScores, got {kind}", argument="other", kind=kind)
        columns = self._columns_with(other)
        size = min(self.resolution, other.resolution)
        grid = replace(self.grid, resolution=size)
        labels, points = self.summary.beside(other.summary)
        return GroupScores(
            grid=grid,
            summary=Summary(labels, grid.joined(points)),
            weighted=self.weighted or other.weighted,
            stratified=self.stratified,
            columns=columns,
        )

    def _columns_with(self, other: "GroupScores") -> Columns:
        """Names of the columns of both; refuse what cannot be added up."""
        for what, mine, theirs in (
            ("scales", self.scale, other.scale),
            ("cut-offs", self.cutoff, other.cutoff),
            ("kinds of groups", *(_kind(part) for part in (self, other))),
            ("group columns", *_known(self.columns.groups, other.columns.groups)),
            ("strata columns", *_known(self.columns.strata, other.columns.strata)),
        ):
            if mine != theirs:
                raise InputError(
                    "Summaries with different {what} do not merge, got {mine} and {theirs}",
                    remedy="summarise the rows of both alike",
                    what=what,
                    mine=_shown(mine),
                    theirs=_shown(theirs),
                )
        refuse_mixed((*self.labels, *other.labels))
        score = self.columns.score if self.columns.score == other.columns.score else None
        mine, theirs = self.columns, other.columns
        return Columns(score, mine.groups or theirs.groups, mine.strata or theirs.strata)

    def coarsened(self, resolution: int) -> "GroupScores":
        """The same rows in fewer bins: a smaller file that says less about single rows, and larger errors.

        Parameters
        ----------
        resolution : int
            A power of two, at most the present one.

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
                f"`resolution` must be at most that of the summary, {self.resolution}, got {resolution}; "
                "finer bins need the rows."
            )
        return replace(self, grid=grid, summary=Summary(self.labels, grid.joined(self.summary.points)))

    def __eq__(self, other: object) -> bool:
        from fairramp.data import bins_file as binned_format

        if not isinstance(other, GroupScores):
            return NotImplemented
        return binned_format.to_text(self) == binned_format.to_text(other)

    def __hash__(self) -> int:
        return hash((self.grid, self.labels, self.rows))

    def table(self) -> Table:
        """One row per group: rows, mean score, bins that have rows.

        Examples
        --------
        >>> import fairramp
        >>> print(fairramp.summarize([0.25, 0.75, 0.5], ["A", "A", "B"]).table())
        group  n  mean score  bins used
        -----  -  ----------  ---------
        A      2      0.5000          2
        B      1      0.5000          1
        """
        p = self.summary.points
        share = p.weight / self.summary.weights[p.group]
        return Table(
            {
                "group": name_column(self.labels),
                "n": self.rows,
                "mean_score": self.summary.total(share * p.place) * SCALES[self.scale].shown_per_unit,
                "bins_used": self.summary.sizes,
            },
            headings={
                "group": " / ".join(self.columns.groups or ["group"]),
                "mean_score": "mean score",
                "bins_used": "bins used",
            },
        )

    def __repr__(self) -> str:
        n = len(self.labels)
        what = (
            f"{sum(self.rows):,} {'weighted ' if self.weighted else ''}rows of {n:,} "
            f"group{'s' if n > 1 else ''} in {self.resolution:,} bins of the scale {self.scale!r}"
        )
        return f"{what}\n\n{self.table()}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the summary to a JSON file with a checksum, which appears whole or not at all.

        About 30 bytes for each bin of each group that has rows. What it discloses is what `GroupScores` holds.

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
        from fairramp.data import bins_file as binned_format

        binned_format.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "GroupScores":
        """Read a summary from its file.

        Raises
        ------
        SummaryFormatError
            If the file is not a summary that this version understands, or not as it was written; the message
            says why.

        Examples
        --------
        >>> import fairramp
        >>> monday = fairramp.GroupScores.load("monday.json")  # doctest: +SKIP
        """
        from fairramp.data import bins_file as binned_format

        return binned_format.load(path)


def _kind(part: GroupScores) -> str:
    """Of how many columns a group consists, in words."""

    def width(label: Label) -> int:
        return len(label) if isinstance(label, tuple) else 1

    first = part.labels[0]
    if part.stratified and isinstance(first, tuple):
        return f"groups of {width(first[1])} in strata of {width(first[0])} columns"
    return f"groups of {width(first)} columns"


def _known(mine: Any, theirs: Any) -> tuple[Any, Any]:
    """Two names, where one that is not known is like the other."""
    return (mine or theirs, theirs or mine)


def _shown(value: Any) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)
