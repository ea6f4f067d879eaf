"""GroupScores: a summary of rows that travels, and rules from such summaries alone.

Per group and bin of the score range: rows n, Σw, Σw², the mean score Σw·x / Σw, and whether all rows have that
score. The range is cut into a power of two of equal bins, so that their edges are exact floats; the cut-off is
one more edge wherever it lies, and the highest score has a bin of its own. Sums add up, so summaries of days,
chunks or sites merge to the summary of all rows; a finer one is coarsened first, as two bins of a pair make one
of the coarser grid.

What bins cost. A ramp h is linear between its ends and constant outside, so that a bin of mean m and weight
share p contributes p·h(m) exactly unless an end of the ramp lies inside it. If one does, rows anywhere in the
bin with that mean contribute between p·(convex envelope of h over the bin at m) and p·(concave envelope at m).
So

    error of a rate ≤ Σ over bins p · max(concave − h, h − convex)(m) ≤ Σ over bins with an end p · d/(4γ)

for bins of width d ≤ γ, and the sum of p otherwise. For γ = 0 a bin that holds the threshold contributes its
largest difference to the chance at its mean. A bin of one score costs nothing. The classifier's own rates are
exact: the cut-off is an edge.
"""

import os
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from fairramp.blocks import map_blocks
from fairramp.distribution import Floats, Integers
from fairramp.exceptions import InputError
from fairramp.fitting import (
    LARGEST_WEIGHT,
    SMALLEST_WEIGHT,
    Names,
    Request,
    counting_rows,
    fit_rows,
    warn_saturated,
)
from fairramp.groups import Label, column_name, refuse_mixed
from fairramp.inputs import as_scores, as_weights, check_length, check_option
from fairramp.rows import ArrayRows
from fairramp.rule import OFFSETS, Rule
from fairramp.scales import SATURATION, SCALES, Scale
from fairramp.strata import encode_cells
from fairramp.summary import Booleans, Points, Summary, concatenated
from fairramp.table import Table, name_column

__all__ = ["Grid", "GroupScores", "check_weights", "fit_summary", "rate_errors", "summarize"]

#: Bins of the score range, at most: more would hardly be a summary.
MOST_BINS = 1 << 20


@dataclass(frozen=True)
class Grid:
    """Edges of bins: a power of two of equal ones, and the cut-off.

    Attributes
    ----------
    scale : Scale
        What the scores mean.
    resolution : int
        Equal bins of its range.
    cutoff : float
        Where the classifier itself says yes, as a score.
    """

    scale: Scale
    resolution: int
    cutoff: float

    @classmethod
    def checked(cls, scale: Any, resolution: Any, cutoff: Any) -> "Grid":
        """A grid from what a user wrote."""
        meaning = SCALES[check_option("scale", scale, SCALES)]
        return cls(meaning, _checked_resolution(resolution), meaning.checked_cutoff(cutoff))

    @property
    def per_unit(self) -> float:
        """Equal bins per unit of the positions; a power of two, so that no product is rounded."""
        return self.resolution / (self.scale.highest - self.scale.lowest)

    @property
    def cut(self) -> float:
        """The cut-off as a position."""
        return self.scale.position_of(self.cutoff)

    def has_edge(self, position: float) -> bool:
        """Whether rows at or above a position can be told from those below."""
        scaled = position * self.per_unit
        return position == self.cut or scaled == np.floor(scaled)

    @property
    def is_cut_inside(self) -> bool:
        """Whether the cut-off divides one of the equal bins."""
        scaled = self.cut * self.per_unit
        return bool(scaled != np.floor(scaled))

    @cached_property
    def edges(self) -> Floats:
        """Where each bin starts."""
        equal = self.scale.lowest + np.arange(self.resolution + 1) / self.per_unit
        if not self.is_cut_inside:
            return equal
        return np.insert(equal, np.searchsorted(equal, self.cut), self.cut)

    def bins(self, positions: Floats) -> Integers:
        """The bin in which each position lies."""
        index: Integers = np.floor(positions * self.per_unit).astype(np.intp)
        index -= int(self.scale.lowest * self.per_unit)
        if self.is_cut_inside:
            index += positions >= self.cut
        return index

    def filled(
        self,
        group: Integers,
        bins: Integers,
        means: Floats,
        one_score: Booleans,
        rows: Integers,
        weight: Floats,
        squares: Floats,
    ) -> Points:
        """Contents of bins as points; where there is one score only, the mean is that and the point exact."""
        lower = self.edges[bins]
        upper = self.edges[np.minimum(bins + 1, len(self.edges) - 1)]
        inside = np.clip(means, lower, np.maximum(np.nextafter(upper, -np.inf), lower))  # not out by rounding
        place = np.where(one_score, means, inside)
        lower, upper = np.where(one_score, place, lower), np.where(one_score, place, upper)
        return Points(group, place, lower, upper, rows, weight, squares, np.ones(len(bins), dtype=bool))

    def joined(self, p: Points) -> Points:
        """Points in their bins: those of one group and bin become one, exact if all are of one score."""
        bins = self.bins(p.lower)
        order = np.lexsort((p.place, bins, p.group))
        p, bins = p.take(order), bins[order]
        new = np.ones(len(p), dtype=bool)
        new[1:] = (p.group[1:] != p.group[:-1]) | (bins[1:] != bins[:-1])
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(p)) - 1
        weight = np.add.reduceat(p.weight, first)
        lower = self.edges[bins[first]]
        upper = self.edges[np.minimum(bins[first] + 1, len(self.edges) - 1)]
        mean = lower + np.add.reduceat(p.weight * (p.place - lower.repeat(last - first + 1)), first) / weight
        one_place = p.place[first] == p.place[last]
        place = np.where(one_place, p.place[first], np.clip(mean, p.place[first], p.place[last]))
        exact = one_place & np.logical_and.reduceat(p.exact, first)
        return Points(
            group=p.group[first],
            place=place,
            lower=np.where(exact, place, lower),
            upper=np.where(exact, place, upper),
            rows=np.add.reduceat(p.rows, first),
            weight=weight,
            weight_squares=np.add.reduceat(p.weight_squares, first),
            averaged=np.ones(len(first), dtype=bool),
        )


def _checked_resolution(resolution: Any) -> int:
    whole = isinstance(resolution, int | np.integer) and not isinstance(resolution, bool)
    if not whole or not 2 <= resolution <= MOST_BINS or resolution & (resolution - 1):
        raise InputError(
            f"`resolution` must be a power of two from 2 to {MOST_BINS:,}, such as 4096, got {resolution!r}."
        )
    return int(resolution)


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
    names : Names
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
    names: Names

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
    def score_column(self) -> str | None:
        """Name of the score column, where it has one and all parts agree."""
        return self.names.score

    @property
    def group_columns(self) -> tuple[str, ...] | None:
        """Names of the group columns, where they have any."""
        return self.names.groups

    @property
    def strata_columns(self) -> tuple[str, ...] | None:
        """Names of the strata's columns, where they have any."""
        return self.names.strata

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
            raise InputError(f"`other` must be a fairramp.GroupScores, got {type(other).__name__}.")
        names = self._names_with(other)
        size = min(self.resolution, other.resolution)
        grid = replace(self.grid, resolution=size)
        labels, points = self.summary.beside(other.summary)
        return GroupScores(
            grid=grid,
            summary=Summary(labels, grid.joined(points)),
            weighted=self.weighted or other.weighted,
            stratified=self.stratified,
            names=names,
        )

    def _names_with(self, other: "GroupScores") -> Names:
        """Names of the columns of both; refuse what cannot be added up."""
        for what, mine, theirs in (
            ("scales", self.scale, other.scale),
            ("cut-offs", self.cutoff, other.cutoff),
            ("kinds of groups", *(_kind(part) for part in (self, other))),
            ("group columns", *_known(self.names.groups, other.names.groups)),
            ("strata columns", *_known(self.names.strata, other.names.strata)),
        ):
            if mine != theirs:
                raise InputError(
                    f"Summaries with different {what} do not merge, got {_shown(mine)} and {_shown(theirs)}; "
                    "summarise the rows of both alike."
                )
        refuse_mixed((*self.labels, *other.labels))
        score = self.names.score if self.names.score == other.names.score else None
        return Names(score, self.names.groups or other.names.groups, self.names.strata or other.names.strata)

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
        grid = replace(self.grid, resolution=_checked_resolution(resolution))
        if grid.resolution == self.resolution:
            return self
        if grid.resolution > self.resolution:
            raise InputError(
                f"`resolution` must be at most that of the summary, {self.resolution}, got {resolution}; "
                "finer bins need the rows."
            )
        return replace(self, grid=grid, summary=Summary(self.labels, grid.joined(self.summary.points)))

    def __eq__(self, other: object) -> bool:
        from fairramp import binned_format

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
                "group": " / ".join(self.names.groups or ["group"]),
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
        """
        from fairramp import binned_format

        binned_format.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "GroupScores":
        """Read a summary from its file.

        Raises
        ------
        SummaryFormatError
            If the file is not a summary that this version understands, or not as it was written; the message
            says why.
        """
        from fairramp import binned_format

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


def summarize(
    scores: Any,
    groups: Any,
    *,
    sample_weight: Any = None,
    strata: Any = None,
    scale: str = "probability",
    cutoff: float | None = None,
    resolution: int = 4096,
) -> GroupScores:
    """Summarise rows so that rules can be fitted without them: here, elsewhere, or together with others.

    One pass. The result can be saved, merged with summaries of other rows, and given to `fit_summary`.

    Parameters
    ----------
    scores, groups, sample_weight, scale
        As in `fit_rule`. Weights of summaries that are to be merged must be in the same unit.
    strata : labels of shape (n,), or several columns, optional
        For rules that equalise within strata; as in `fairramp.Covariance`.
    cutoff : float, optional
        Where the classifier itself says yes, as in `fit_rule`. It becomes an edge of the bins, so that the
        classifier's own selection rates are known exactly.
    resolution : int, default 4096
        Into how many bins the range of the scores is cut: a power of two. Twice as many halve the error of a
        rule with a ramp, or better, and double the file.

    Returns
    -------
    GroupScores

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> summary = fairramp.summarize(data.score, data.sex)
    >>> rule = fairramp.fit_summary(summary, max_gap=0.02)
    >>> max(rule.record.rate_error) < 1e-4
    True
    """
    grid = Grid.checked(scale, resolution, cutoff)
    column = as_scores(scores)
    codes, strata_columns = encode_cells(groups, strata)
    check_length("groups", len(codes), len(column))
    weights = None if sample_weight is None else as_weights(sample_weight, len(column))
    if weights is not None:
        check_weights(float(weights.max()))
        if not weights.all():
            ArrayRows(column, codes, None, grid.scale).positions(
                0, len(column)
            )  # those of weight 0 must be sound
    column, codes, weights, _ = counting_rows(column, codes, weights, None)
    rows = ArrayRows(column, codes, weights, grid.scale)
    summary = Summary.of_occurring(codes.labels, _binned(rows, grid))
    if scale == "logit":
        warn_saturated(int((column > SATURATION).sum()))
    names = Names(column_name(scores), codes.names, strata_columns)
    return GroupScores(grid, summary, weights is not None, strata is not None, names)


def check_weights(largest: float) -> None:
    """Refuse weights that a fit would have to scale: summaries of other rows would not be scaled alike."""
    if largest > 0 and not SMALLEST_WEIGHT < largest < LARGEST_WEIGHT:
        raise InputError(
            f"`sample_weight` of a summary must be between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}, got "
            f"{largest!r}; use another unit, the same for all summaries that are to be merged."
        )


def _binned(rows: ArrayRows, grid: Grid) -> Points:
    """All rows in bins, with their means."""
    n_bins = len(grid.edges)
    n_cells = len(rows.codes.labels) * n_bins

    def count(start: int, stop: int) -> Points:
        x = rows.positions(start, stop)
        bin_ = grid.bins(x)
        cells = rows.codes.block(start, stop).astype(np.intp) * n_bins + bin_
        # Distances from the start of the bin, because sums of full scores would lose digits of the mean.
        distance = x - grid.edges[bin_]
        w = None if rows.weights is None else rows.weights[start:stop]
        values = [distance] if w is None else [w * distance, w, w * w]
        sparse = n_cells > 4 * (stop - start)
        used, size = np.arange(0), n_cells
        if sparse:
            used, cells = np.unique(cells, return_inverse=True)
            size = len(used)
        n = np.bincount(cells, minlength=size)
        sums = [np.bincount(cells, v, minlength=size) for v in values]
        some = np.zeros(size)
        some[cells] = x + 0.0  # the score of any one row of the bin (−0.0 is 0.0), and where others differ
        mixed = np.zeros(size, dtype=bool)
        mixed[cells[some[cells] != x]] = True
        if not sparse:
            used = np.flatnonzero(n)
            n, some, mixed, sums = n[used], some[used], mixed[used], [v[used] for v in sums]
        group, bin_ = np.divmod(used, n_bins)
        weight: Floats = n.astype(np.float64) if w is None else sums[1].astype(np.float64)
        squares: Floats = weight if w is None else sums[2].astype(np.float64)
        means = np.where(mixed, grid.edges[bin_] + sums[0] / weight, some)
        return grid.filled(group, bin_, means, ~mixed, n, weight, squares)

    # Blocks many times as long as their result keep all results small beside the rows.
    return grid.joined(concatenated(map_blocks(count, len(rows.scores), 16 * n_cells)))


class _NoRows:
    """Bins in the place of rows: each is taken for rows at its mean, and cannot be looked into."""

    def __init__(self, summary: Summary) -> None:
        p = summary.points
        self._summary = Summary(summary.labels, replace(p, lower=p.place, upper=p.place))

    def summarize(self) -> Summary:
        return self._summary

    def refine(self, summary: Summary, split: Booleans, average: Booleans) -> Points:
        raise AssertionError("exact points need no refinement")


def fit_summary(
    summary: GroupScores,
    *,
    max_gap: float = 0.0,
    ramp_width: float = 0.01,
    ramp: str = "centered",
    target_rate: str | float = "optimal",
    cutoff: float | None = None,
    unseen_group: str = "error",
    date: str | None = None,
) -> Rule:
    """Learn a rule from a summary alone; the rows are not needed.

    The rule is the optimum for rows that lie at the means of their bins. How far each group's selection rate on
    the rows themselves can be from that is computed and kept as ``rule.record.rate_error``; the certificate
    counts it in. Within it, the rule is that of `fit_rule`. A summary with strata gives a rule that equalises
    within strata.

    Parameters
    ----------
    summary : GroupScores
        From `summarize`, `summarize_frame` or `GroupScores.load`, perhaps merged.
    max_gap, ramp_width, ramp, unseen_group, date
        As in `fit_rule`. A ``ramp_width`` well above the width of the bins keeps the error small; with 0 the rows
        of a whole bin are uncertain.
    target_rate : "optimal" or a number in [0, 1], default "optimal"
        As in `fit_rule`; the other targets need labels, which a summary does not have.
    cutoff : float, optional
        As in `fit_rule`; that of the summary unless given. It must be an edge of the bins.

    Returns
    -------
    Rule

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> north = fairramp.summarize(data.score[::2], data.sex[::2])
    >>> south = fairramp.summarize(data.score[1::2], data.sex[1::2])
    >>> rule = fairramp.fit_summary(north.merge(south), max_gap=0.02)
    >>> round(rule.record.gap_before, 3), round(rule.record.gap_after, 3)
    (0.168, 0.02)
    """
    if not isinstance(summary, GroupScores):
        raise InputError(
            f"`summary` must be a fairramp.GroupScores, got {type(summary).__name__}; "
            "fairramp.summarize makes one of scores and groups."
        )
    if isinstance(target_rate, str) and target_rate in ("accuracy", "base_rate"):
        raise InputError(
            f"`target_rate={target_rate!r}` needs labels, which a summary does not have; use 'optimal' or a "
            "number, or fit the rows."
        )
    request = Request.checked(
        max_gap=max_gap,
        ramp_width=ramp_width,
        ramp=ramp,
        target_rate=target_rate,
        cutoff=summary.cutoff if cutoff is None else cutoff,
        scale=summary.scale,
        unseen_group=unseen_group,
        stratified=summary.stratified,
        date=date,
    )
    if not summary.grid.has_edge(request.problem.cutoff):
        raise InputError(
            f"`cutoff` must be an edge of the summary's bins, got {cutoff!r}; summarise with cutoff={cutoff!r} "
            "to make it one."
        )
    rule = fit_rows(_NoRows(summary.summary), request, summary.names, weighted=summary.weighted)
    assert rule.record is not None
    errors = tuple(rate_errors(summary.summary, rule).tolist())
    return replace(rule, record=replace(rule.record, rate_error=errors))


def rate_errors(summary: Summary, rule: Rule) -> Floats:
    """How far each group's selection rate on the rows can be from that on the means of their bins."""
    p = summary.points
    thresholds = np.array([ramp.threshold for ramp in rule.ramps])
    if rule.ramp_width > 0:
        feet = thresholds - OFFSETS[rule.ramp] * rule.ramp_width
        off = _off_ramp(p, feet[p.group], rule.ramp_width)
    else:
        ties = np.array([ramp.tie_chance for ramp in rule.ramps])
        off = _off_step(p, thresholds[p.group], ties[p.group])
    return np.minimum(summary.total(p.weight / summary.weights[p.group] * off), 1.0)


def _off_ramp(p: Points, foot: Floats, width: float) -> Floats:
    """Largest distance between a bin's mean chance and the chance at its mean, for ramps of positive width.

    Envelopes of a function with two kinks run along chords between the ends of the bin and the kinks in it.
    """
    off = np.zeros(len(p))
    kinks = [(p.lower < end) & (end < p.upper) for end in (foot, foot + width)]
    which = np.flatnonzero(kinks[0] | kinks[1])
    lower, upper, place, foot = p.lower[which], p.upper[which], p.place[which], foot[which]

    def chance(x: Floats) -> Floats:
        return np.clip((x - foot) / width, 0.0, 1.0)

    at_mean = chance(place)
    corners = [lower, np.clip(foot, lower, upper), np.clip(foot + width, lower, upper), upper]
    for start, stop in combinations(corners, 2):
        spans = (start <= place) & (place <= stop) & (start < stop)
        up = (place - start) / np.where(spans, stop - start, 1.0)
        chord = chance(start) + up * (chance(stop) - chance(start))
        off[which] = np.maximum(off[which], np.where(spans, np.abs(chord - at_mean), 0.0))
    return off


def _off_step(p: Points, threshold: Floats, tie: Floats) -> Floats:
    """The same for ramps of width 0: rows of a bin may be below, at or above a threshold inside it."""
    at_mean = np.where(p.place == threshold, tie, p.place > threshold)
    holds = (p.lower <= threshold) & (threshold < p.upper)
    off = np.maximum(np.abs(tie - at_mean), 1.0 - at_mean)
    off = np.maximum(off, np.where(p.lower < threshold, at_mean, 0.0))
    return np.where(holds, off, 0.0)
