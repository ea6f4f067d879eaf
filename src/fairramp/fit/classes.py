"""Fit a rule for several classes: equal rates of every class across groups, at the least cost.

    checked rows  →  parts by group  →  own decisions if they meet the limit, otherwise the solver  →  ClassRule

Every stratum is a problem of its own. See `fit.class_moments` for the problem, and `fit.dual` for the solver.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np

from fairramp._version import __version__
from fairramp.core.bands import Gap
from fairramp.core.blocks import map_all
from fairramp.core.cells import strata_slices, stratum_index
from fairramp.core.checks import MAX_RAMP_WIDTH, MIN_RAMP_WIDTH, check_date, check_number, check_option, is_real
from fairramp.core.curve import Floats
from fairramp.core.labels import Label, show_label
from fairramp.core.public import public
from fairramp.core.simplex import class_chances, largest_two
from fairramp.core.words import NOTHING
from fairramp.data.classes import ClassSample
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes, warn_alike, warn_blank
from fairramp.data.probable import GroupProbabilities
from fairramp.errors import InputError, UnsupportedError, warn
from fairramp.fit.affine import null_space
from fairramp.fit.class_moments import ClassMoments, Part, pieces, rounded
from fairramp.fit.dual import minimum
from fairramp.fit.few_scores import all_certain, warn_certain
from fairramp.fit.keywords import DEFAULTS
from fairramp.fit.mixed import LARGEST_MISS, warn_few
from fairramp.fit.problem import Optimal, Problem
from fairramp.rule.class_file import UNSEEN
from fairramp.rule.class_record import ClassRecord
from fairramp.rule.class_rule import ClassRule

#: Rows copied at once.
_PIECE = 1 << 14
#: Largest change of rates when offsets that move no decision are removed.
_SAME = 1e-10


@dataclass(frozen=True, kw_only=True)
class ClassSettings:
    """Checked settings of a fit; see `fit_class_rule`."""

    max_gap: float = 0.0
    ramp_width: float = 0.01
    unseen_group: str = "error"
    date: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_gap", check_number("max_gap", self.max_gap, 0.0, 1.0))
        width = self.ramp_width
        if not is_real(width) or not MIN_RAMP_WIDTH <= width <= MAX_RAMP_WIDTH:
            raise InputError(
                "must be between 1e-6 and 1e6 if there are several classes",
                argument="ramp_width",
                got=width,
                remedy="for almost no random decisions, pass 1e-6",
            )
        object.__setattr__(self, "ramp_width", float(width))
        check_option("unseen_group", self.unseen_group, UNSEEN)
        check_date(self.date)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "ClassSettings":
        """From settings of any fit; those that several classes do not have must have their default."""
        own = {field.name for field in fields(cls)}
        for name, value in given.items():
            if name not in own and not np.array_equal(value, DEFAULTS[name]):
                asked = f"{name}:{value}" if isinstance(value, str | bool) else name
                raise UnsupportedError(
                    "A rule for several classes does not support {" + asked + "}", remedy="remove it"
                )
        return cls(**{name: given[name] for name in own & given.keys() if given[name] is not None})


def check_policy(settings: ClassSettings, *, soft: bool) -> None:
    """Raise if group probabilities come with a policy for unseen groups."""
    if soft and settings.unseen_group != "error":
        raise UnsupportedError(
            "Group probabilities do not support {unseen_group:" + settings.unseen_group + "}: no group is unseen",
            remedy="remove one of the two",
        )


@public
def fit_class_rule(
    probabilities: Any,
    groups: Any,
    *,
    classes: Sequence[Any] | None = None,
    max_gap: float = 0.0,
    strata: Any = None,
    ramp_width: float = 0.01,
    sample_weight: Any = None,
    unseen_group: str = "error",
    date: str | None = None,
) -> ClassRule:
    """Fit a rule for a classifier with several classes: equal rates of every class in all groups.

    The rate of a class in a group is the share of the group's people who get that class. The rule subtracts
    offsets from the scores of the classes, one set of offsets for each group, and then chooses the class with the
    largest result. Of all rules that meet the limit, it is the one that keeps most of the classifier's scores. No
    labels are needed.

    Parameters
    ----------
    probabilities : numbers of shape (n, C), or a mapping or dataframe with one column per class
        The classifier's scores, such as ``model.predict_proba(X)``: between 0 and 1, and 1 in sum in every row,
        up to 1e-6. They should come from rows that the classifier was not trained on.
    groups : labels of shape (n,), or several columns, or GroupProbabilities
        The group of each row. Several columns make intersections. If groups are not known, their probabilities.
    classes : labels of shape (C,), optional
        The class of each column of an array, such as ``model.classes_``; by default 0, 1, … The names of the
        columns of a mapping or a dataframe are the classes.
    max_gap : float, default 0
        Largest allowed difference between the rates of two groups, for every class.
    strata : labels of shape (n,), or several columns, optional
        Rates are made equal within each stratum. Not with group probabilities.
    ramp_width : float, default 0.01
        If the two best results of a person differ by less than this, the class is decided at random; at least
        1e-6.
    sample_weight : numbers of shape (n,), optional
        Row weights.
    unseen_group : {"error", "original"}, default "error"
        What happens to a group that was not in the fit rows: an error, or the classifier's own decision.
    date : str, optional
        Stored in the rule's record.

    Returns
    -------
    ClassRule
        If the classifier's own decisions already meet the limit, the rule keeps them.

    Examples
    --------
    >>> import numpy as np
    >>> import fairramp
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["F", "M"], 5000)
    >>> p = rng.dirichlet([2, 2, 2], 5000)
    >>> p[sex == "M"] = rng.dirichlet([1, 2, 3], (sex == "M").sum())
    >>> rule = fairramp.fit_class_rule(p, sex, classes=["low", "mid", "high"], max_gap=0.02)
    >>> round(rule.record.gap_before, 3), round(rule.record.gap_after, 3)
    (0.306, 0.02)
    >>> rule.probabilities(p[:2], sex[:2]).shape
    (2, 3)
    """
    settings = ClassSettings(max_gap=max_gap, ramp_width=ramp_width, unseen_group=unseen_group, date=date)
    sample = ClassSample.of_arrays(
        probabilities, groups, classes=classes, strata=strata, sample_weight=sample_weight
    )
    return fit_class_sample(sample, settings)


def fit_class_sample(
    sample: ClassSample, settings: ClassSettings, *, cross_fitted: bool = False, **coarse: str
) -> ClassRule:
    """Fit a rule to checked rows in memory; `coarse` is the `remedy` for scores that are all 0 or 1."""
    rule = fit_class_rows(
        ClassRows.of(sample),
        sample.classes,
        sample.columns,
        settings,
        weighted=sample.weights is not None,
        cross_fitted=cross_fitted,
    )
    if all_certain(sample.values):
        warn_certain(rule, **coarse)
    return rule


class Rows(Protocol):
    """Checked rows, of any engine, as a fit reads them: see `ClassRows`."""

    @property
    def groups(self) -> tuple[Label, ...]:
        """The groups, or the cells of groups and strata."""

    @property
    def sizes(self) -> Any:
        """Number of rows of each; expected ones, rounded, for group probabilities."""

    @property
    def stratified(self) -> bool:
        """Whether groups are cells of strata."""

    @property
    def soft(self) -> bool:
        """Whether rows have group probabilities."""

    def within(self, part: slice) -> Self:
        """The rows of some adjacent groups, numbered anew."""

    def outcome(self, offsets: Floats, width: float) -> "Outcome":
        """The rates at offsets of shape (C, K)."""

    def score_sums(self) -> Floats:
        """Σ w q_k p_c, of shape (C, K)."""

    def moments(self) -> Any:
        """The sums of the solver: `fit.moments.Moments` with `gram` and `masses`."""


def fit_class_rows(
    rows: Rows,
    classes: tuple[Label, ...],
    columns: Columns,
    settings: ClassSettings,
    *,
    weighted: bool,
    cross_fitted: bool = False,
) -> ClassRule:
    """Fit a rule to checked rows of any engine."""
    check_policy(settings, soft=rows.soft)
    n_classes, n_groups = len(classes), len(rows.groups)
    strata = stratum_index(rows.groups) if rows.stratified else None
    slices = strata_slices(strata, n_groups)
    none = np.zeros((n_classes, n_groups))
    own = rows.outcome(none, 0.0)
    offsets, width, solved = none, 0.0, None
    if any(np.ptp(own.rates[:, part], axis=1).max() > settings.max_gap + NOTHING for part in slices):
        width = settings.ramp_width
        problem = Problem(Gap(settings.max_gap), Optimal(), cutoff=0.0, ramp_width=width, offset=0.0)
        solved = np.zeros((n_classes, n_groups))
        offsets = np.zeros((n_classes, n_groups))
        for part in slices:
            offsets[:, part], solved[:, part] = _solve(rows.within(part), n_classes, problem)
    after = own if width == 0 else rows.outcome(offsets, width)
    rule = ClassRule(
        groups=rows.groups,
        classes=classes,
        offsets=tuple(map(tuple, offsets.T.tolist())),
        ramp_width=width,
        max_gap=settings.max_gap,
        stratified=rows.stratified,
        unseen_group=settings.unseen_group,
        columns=columns,
        membership="probabilities" if rows.soft else "known",
        record=ClassRecord(
            rows=tuple(rows.sizes.tolist()),
            before=_nested(own.rates),
            after=_nested(after.rates),
            at_random=tuple(np.clip(after.at_random, 0.0, 1.0).tolist()),
            strata=None if strata is None else tuple(strata.tolist()),
            ramp_width=settings.ramp_width,
            weighted=weighted,
            cross_fitted=cross_fitted,
            fingerprint=fingerprint_of(rows, classes, own),
            version=__version__,
            date=settings.date,
        ),
    )
    _warn(rule, solved, after.rates, soft=rows.soft)
    return rule


def _nested(rates: Floats) -> tuple[tuple[float, ...], ...]:
    """Rates of shape (C, K) as they are stored: group by group."""
    return tuple(map(tuple, np.clip(rates, 0.0, 1.0).T.tolist()))


def _solve(rows: Rows, n_classes: int, problem: Problem) -> tuple[Floats, Floats]:
    """Offsets of shape (C, K) of the smallest size, and the rates that the solver found."""
    n_groups = len(rows.groups)
    moments = rows.moments()
    empty = np.flatnonzero(moments.masses <= 0)
    for k in empty:
        raise InputError(
            "Group {group} has probability 0 in every row",
            remedy="leave its column out",
            group=show_label(rows.groups[k]),
        )
    blocks = [slice(c * n_groups, (c + 1) * n_groups) for c in range(n_classes)]
    _, best = minimum(moments, blocks, problem)
    offsets = best.shifts[:-1].reshape(n_classes, n_groups)
    offsets = offsets - offsets.mean(axis=0)
    if rows.soft:
        offsets = _determined(offsets, moments, problem, best.rates)
    return offsets, best.rates.reshape(n_classes, n_groups)


def _determined(offsets: Floats, moments: Any, problem: Problem, rates: Floats) -> Floats:
    """The smallest offsets with the same decisions, if group probabilities are not independent; warns then."""
    null = null_space(moments.gram, moments.masses)
    if not null.shape[1]:
        return offsets
    root = np.sqrt(moments.masses)
    smaller: Floats = offsets - (offsets * root) @ null @ null.T / root
    selected = moments.at(smaller.ravel(), problem.ramp_width).selected
    if np.abs(selected / moments.shares - rates).max() > _SAME:
        return offsets  # columns that are almost the same still move decisions a little
    warn(
        "The columns of group probabilities are not independent, so several offsets lead to the same decisions "
        "on the fit rows; the smallest are used"
    )
    return smaller


@dataclass(frozen=True)
class Outcome:
    """Rates of shape (C, K), and the share of each group that is decided at random."""

    rates: Floats
    at_random: Floats


@dataclass(frozen=True)
class ClassRows:
    """Rows in memory, group by group.

    Attributes
    ----------
    parts : list of Part
        The rows, in pieces that stay in cache.
    groups : tuple of labels
        The groups, or the cells of groups and strata.
    sizes : integers of shape (K,)
        Number of rows; expected ones, rounded, for group probabilities.
    masses : floats of shape (K,)
        Sum of weights.
    stratified, soft : bool
        Whether groups are cells of strata, and whether rows have group probabilities.
    """

    parts: list[Part]
    groups: tuple[Label, ...]
    sizes: Any
    masses: Floats
    stratified: bool = False
    soft: bool = False

    @classmethod
    def of(cls, sample: ClassSample) -> "ClassRows":
        """The rows of a sample; groups without rows are left out."""
        members = sample.decided_by
        if isinstance(members, GroupProbabilities):
            part = Part(np.ascontiguousarray(sample.values.T), sample.weights, members.values)
            return cls._made(pieces([part]), members.labels, soft=True)
        return cls._known(sample, members)

    @classmethod
    def _known(cls, sample: ClassSample, codes: Codes) -> "ClassRows":
        small = codes.block(0, len(codes)).astype(np.min_scalar_type(len(codes.labels)))
        order = np.argsort(small, kind="stable")
        counts = np.bincount(small, minlength=len(codes.labels))
        there = np.flatnonzero(counts)
        todo, start = [], 0
        for group, count in enumerate(counts[there].tolist()):
            stop = start + count
            todo += [(group, order[i : min(i + _PIECE, stop)]) for i in range(start, stop, _PIECE)]
            start = stop

        def copied(one: tuple[int, Any]) -> Part:
            group, rows = one
            weights = None if sample.weights is None else sample.weights[rows]
            return Part(np.ascontiguousarray(sample.values[rows].T), weights, group)

        groups = tuple(codes.labels[i] for i in there.tolist())
        return cls._made(map_all(copied, todo), groups, stratified=sample.cells is not sample.groups)

    @classmethod
    def _made(cls, parts: list[Part], groups: tuple[Label, ...], **more: bool) -> "ClassRows":
        def sums(part: Part) -> tuple[Floats, Floats]:
            ones = np.ones((1, len(part)))
            plain = Part(part.values, None, part.member)
            return plain.spread(ones, len(groups))[0], part.spread(ones, len(groups))[0]

        sizes, masses = (np.sum(found, axis=0) for found in zip(*map(sums, parts), strict=True))
        return cls(parts, groups, rounded(sizes), masses, **more)

    def within(self, part: slice) -> "ClassRows":
        """The rows of some adjacent groups, numbered anew."""
        if self.soft or part == slice(0, len(self.groups)):
            return self
        kept = range(len(self.groups))[part]
        parts = [
            Part(p.values, p.weights, p.member - kept.start)
            for p in self.parts
            if isinstance(p.member, int) and p.member in kept
        ]
        return ClassRows(parts, self.groups[part], self.sizes[part], self.masses[part])

    def outcome(self, offsets: Floats, width: float) -> Outcome:
        """The rates at offsets of shape (C, K)."""
        return outcome_of(self.parts, offsets, width, self.masses)

    def score_sums(self) -> Floats:
        """Σ w q_k p_c, of shape (C, K)."""
        found: Floats = np.sum([part.spread(part.values, len(self.groups)) for part in self.parts], axis=0)
        return found

    def moments(self) -> ClassMoments:
        """The sums of the solver."""
        return ClassMoments(self.parts, len(self.groups))


def outcome_of(
    parts: Sequence[Part], offsets: Floats, width: float, masses: Floats, others: Floats | None = None
) -> Outcome:
    """The rates at offsets of shape (C, K); `others` are sums over more rows: C classes, and those in doubt."""

    def work(part: Part) -> Floats:
        moved = part.moved(offsets) if offsets.any() else part.values
        largest, second, index = largest_two(moved)
        chances = (np.arange(len(moved))[:, None] == index).astype(np.float64)
        unsure = largest - second < width
        if unsure.any():
            chances[:, unsure] = class_chances(moved[:, unsure], width)
        return part.spread(np.vstack([chances, unsure]), len(masses))

    found = np.sum([*map_all(work, parts), *([] if others is None else [others])], axis=0)
    masses = np.where(masses > 0, masses, 1.0)
    return Outcome(found[:-1] / masses, found[-1] / masses)


def fingerprint_of(rows: Rows, classes: Sequence[Label], own: Outcome) -> str:
    """SHA-256 of the numbers of rows and of rounded sums, which do not depend on the order of the rows."""
    # Sums in another order differ after about 12 digits.
    sums = [[f"{x:.8g}" for x in row] for row in (*rows.score_sums().tolist(), *own.rates.tolist())]
    content = [list(rows.groups), list(classes), rows.sizes.tolist(), sums]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _warn(rule: ClassRule, solved: Floats | None, rates: Floats, *, soft: bool) -> None:
    """Warn about too few groups or rows, classes that nobody gets, and rates beyond the limit."""
    record = rule.record
    assert record is not None
    warn_few(rule.groups, record.rows, "rates", expected=soft)
    warn_alike(rule.groups, stratified=rule.stratified)
    if not soft:
        warn_blank(rule.groups, record.rows, paired=rule.stratified)
    if solved is None:
        return
    before = np.array(record.before).T
    for c in np.flatnonzero(~(rates > 0).any(axis=1) & (before > 0).any(axis=1)):
        warn(
            "The best equal rate of class {label} is 0: no one gets it. To avoid this, allow a larger {max_gap}",
            label=show_label(rule.classes[c]),
        )
    miss = float(np.abs(rates - solved).max())
    if miss > LARGEST_MISS:
        warn(
            "Rounding moved rates by up to {miss:.1g} from the solution, so they may exceed the limit by as "
            "much. To avoid this, use a wider ramp",
            miss=miss,
        )
