"""Rule: one ramp per group, which is all that is needed to decide.

For a score x (a probability, a signed score, or the probability of a logit or percentage; negated if lower scores
are better) of group k,

    P(yes) = clip((x − foot_k) / width_k, 0, 1)       1 above the foot, tie_k at it, 0 below if width_k is 0;
                                                      tie_k for every score if width_k is infinite

If the group is not known, the foot is the mean of all feet, weighted by the probabilities q_k of the groups,
center + Σ q_k (foot_k − center), where the center is the foot of a ramp at the classifier's own cutoff. For equal
rates by each of several attributes, it is base + Σ (foot_v − base) over the person's values v.

A rule is frozen data. It can be printed, written to JSON and read back unchanged to the last bit. Its `FitRecord`
describes the fit in per-group numbers, without any row.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import compress
from math import inf, nan
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairramp.core.bands import Band, band_of
from fairramp.core.blocks import map_blocks
from fairramp.core.checks import check_length, check_number, check_option, checked_band
from fairramp.core.events import EVENT_OF, Event
from fairramp.core.labels import Label, canonical_label
from fairramp.core.public import public
from fairramp.core.ramps import OFFSETS, Array, Floats, Ramp, Ramps, chances
from fairramp.core.scales import Scale, scale_of
from fairramp.data.aligned import check_aligned
from fairramp.data.arrays import as_scores, checked_out
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes
from fairramp.data.probable import GroupProbabilities
from fairramp.data.rows import ArrayRows
from fairramp.data.sample import Sample
from fairramp.errors import InputError
from fairramp.rule.decided import warn_decided
from fairramp.rule.draws import decide
from fairramp.rule.file import OPTIONS, RuleFile
from fairramp.rule.mixing import Mixing
from fairramp.rule.reading import Reading
from fairramp.rule.record import FitRecord
from fairramp.rule.shown import Shown
from fairramp.rule.stored import Stored
from fairramp.rule.unseen import POLICIES, unseen_groups
from fairramp.rule.verbs import Verbs


@public
@dataclass(frozen=True, repr=False, eq=False)
class Rule(Mixing, Reading, Shown, Stored, Verbs):
    """Fair decisions from scores and groups.

    Made by `fit_rule`, which documents the settings.

    Attributes
    ----------
    groups : tuple
        Labels of the fitted groups; (stratum, group) if rates are equal within strata.
    ramps : tuple of Ramp
        One for each group. If lower scores are better, ramps are on the negated scores, where higher is better.
    ramp : {"centered", "paper"}
        Where on the ramp the threshold is.
    scale : {"probability", "percent", "signed", "logit", "real"}
        Scale of the scores.
    cutoff : float
        Score at which the classifier itself selects.
    higher_is_better : bool
        Whether high scores lead to the favorable decision, or low ones, as with risk scores.
    criterion : {"parity", "equal_opportunity", "predictive_equality", "equalized_odds"}
        Which rate is made equal: selection rates, true positive rates, false positive rates, or both of these.
    stratified : bool
        Whether rates are made equal within strata instead of over all rows.
    max_gap, min_ratio, target_rate : float or None
        The band that contains every group's rate on the fit rows: target_rate ± max_gap/2 or, if there is a
        `min_ratio`, from min_ratio · target_rate to target_rate. One of `max_gap` and `min_ratio` is None. With
        strata, each stratum has its own band, and `target_rate` is None; as it is for equalized odds, where two
        rates are within `max_gap`.
    unseen_group : {"error", "pooled", "original"}
        What happens to a group that was not in the fit rows.
    pooled : Ramp or None
        The ramp for unseen groups if `unseen_group` is "pooled".
    columns : Columns
        Names of the columns of the fit, if any.
    record : FitRecord or None
        Description of the fit; None for a rule written by hand or fitted to a stream.
    membership : {"known", "probabilities", "each"}
        Whether each person belongs to one group ("known"), has a probability for each group ("probabilities"), or
        has a value in each of several attributes ("each"). For "each", a group is a pair (attribute, value).
    base : Ramp or None
        For "each", the ramp of a person all of whose values have a shift of 0.

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    >>> Rule.from_json(rule.to_json()) == rule
    True

    For a risk, on negated scores:

    >>> risk = Rule(("A",), (Ramp.centered(-0.3, 0.1),), higher_is_better=False)
    >>> risk.thresholds, risk.probabilities([0.2, 0.3, 0.4], ["A"] * 3)
    ((0.3,), array([1. , 0.5, 0. ]))
    """

    _kind: ClassVar = RuleFile

    groups: tuple[Label, ...]
    ramps: tuple[Ramp, ...]
    ramp: str = "centered"
    scale: str = "probability"
    cutoff: float = 0.5
    criterion: str = "parity"
    stratified: bool = False
    max_gap: float | None = None
    target_rate: float | None = 0.5
    unseen_group: str = "error"
    pooled: Ramp | None = None
    columns: Columns = field(default_factory=Columns)
    record: FitRecord | None = None
    higher_is_better: bool = True
    min_ratio: float | None = None
    membership: str = "known"
    base: Ramp | None = None

    def __post_init__(self) -> None:
        groups, ramps = tuple(canonical_label(label) for label in self.groups), tuple(self.ramps)
        pooled, record, base = (
            [part] if part is not None else [] for part in (self.pooled, self.record, self.base)
        )
        for name, kind, values in (
            ("ramps", Ramp, ramps),
            ("pooled", Ramp, pooled),
            ("base", Ramp, base),
            ("record", FitRecord, record),
            ("columns", Columns, [self.columns]),
        ):
            for wrong in [value for value in values if not isinstance(value, kind)]:
                raise InputError("must be a fairramp.{kind}", argument=name, got=wrong, kind=kind.__name__)
        for name, allowed in OPTIONS.items():
            check_option(name, getattr(self, name), allowed)
        checked = {
            "groups": groups,
            "ramps": ramps,
            "cutoff": self.meaning.checked_cutoff(self.cutoff),
            "higher_is_better": self.meaning.higher_is_better,
            **checked_band(self.max_gap, self.min_ratio),
            "target_rate": self.target_rate
            if self.has_several_levels
            else check_number("target_rate", self.target_rate, 0.0, 1.0),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for holds, sentence in self._conditions():
            if not holds:
                raise InputError(sentence, n_ramps=len(ramps), n_groups=len(groups))

    def _conditions(self) -> Iterator[tuple[bool, str]]:
        """Conditions on its parts in combination, each with the message if it fails."""
        record = self.record
        yield from self._group_conditions()
        yield len(self.groups) == len(self.ramps), "A rule needs one ramp per group, got {n_ramps} for {n_groups}"
        if self.event.parts:
            yield self.target_rate is None, "A rule with equalized odds has two rates: {target_rate} must be None"
            yield self.min_ratio is None, "A rule with equalized odds does not support {min_ratio}"
        if self.stratified:
            yield self.target_rate is None, "A rule with strata has no common {target_rate}; it must be None"
            yield (
                self.unseen_group != "pooled",
                "A rule with strata cannot have {unseen_group:pooled}: there is no common band",
            )
        if self.membership != "known":
            yield from self._mixing_conditions()
        yield (
            (self.base is None) == (self.membership != "each"),
            "A rule must have a base if and only if its membership is 'each'",
        )
        yield (
            (self.pooled is None) == (self.unseen_group != "pooled"),
            "A rule must have a pooled ramp if and only if {unseen_group} is 'pooled'",
        )
        yield from self._record_conditions()
        if record is not None:
            yield len(record.rows) == len(self.groups), "The record of a rule must have one entry per group"
            yield (
                record.event == self.event.name,
                "The {event} of a rule's record must be that of its {criterion}",
            )

    def __eq__(self, other: object) -> bool:
        # Compare text, because Python treats a group labeled True as equal to one labeled 1.
        return self.to_json() == other.to_json() if isinstance(other, Rule) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def meaning(self) -> Scale:
        """The scale of the scores, with its direction."""
        return scale_of(self.scale, self.higher_is_better)

    @property
    def event(self) -> Event:
        """The event whose rates are made equal."""
        return EVENT_OF[self.criterion]

    @property
    def band(self) -> Band:
        """Which rates are allowed together."""
        return band_of(self.max_gap, self.min_ratio)

    def threshold_of(self, ramp: Ramp) -> float:
        """Return the threshold of a ramp of this rule: its middle or, as in the paper, its foot.

        In the units of the scores, except that logits have probabilities. NaN for a constant ramp.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A",), (Ramp(0.25, 0.5),))
        >>> rule.threshold_of(rule.ramps[0])
        0.5
        """
        return nan if ramp.is_constant else self.meaning.shown(ramp.foot + OFFSETS[self.ramp] * ramp.width)

    def ends_of(self, ramp: Ramp) -> tuple[float, float]:
        """Return where a ramp starts and ends, in the units of thresholds; NaN for a constant ramp.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A",), (Ramp(0.25, 0.5),))
        >>> rule.ends_of(rule.ramps[0])
        (0.25, 0.75)
        """
        shown = self.meaning.shown
        return (nan, nan) if ramp.is_constant else (shown(ramp.foot), shown(ramp.foot + ramp.width))

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The threshold of each group, as in `table`: see `threshold_of`."""
        return tuple(self.threshold_of(ramp) for ramp in self.ramps)

    @property
    def is_hard(self) -> bool:
        """Whether every ramp has width 0, so only tied scores are decided at random."""
        return not any(ramp.width for ramp in self.ramps)

    # Deciding ---------------------------------------------------------------------------------

    def knows(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Which labels the rule was fitted on; raises if no row has one of them."""
        known = np.array([ramp is not None for ramp in self._known_ramps(codes.labels)])
        if not (known & codes.occurring()).any():
            raise InputError("None of the rows belongs to a group that the rule was fitted on")
        return known

    def sample(
        self,
        scores: Any,
        groups: Any,
        labels: Any = None,
        *,
        strata: Any = None,
        sample_weight: Any = None,
        drop_empty: bool = False,
        group_probabilities: Any = None,
    ) -> Sample:
        """Check new rows, read as this rule requires; see `data.sample.Sample`.

        If the rule uses group probabilities, `groups` are the true groups.
        """
        self.check_strata(strata)
        sample = Sample.of_arrays(
            scores,
            groups,
            labels,
            scale=self.meaning,
            strata=strata,
            sample_weight=sample_weight,
            columns=self.columns,
            drop_empty=drop_empty,
            membership=self.deciding(group_probabilities),
        )
        if self.membership == "each":
            self.check_attributes(sample.groups.labels)
        return sample if sample.membership is None else self.with_truth(sample)

    def probabilities(
        self, scores: Any, groups: Any, strata: Any = None, *, out: npt.NDArray[np.float64] | None = None
    ) -> npt.NDArray[np.float64]:
        """Compute the selection probability of each row; deterministic.

        Parameters
        ----------
        scores : numbers of shape (n,)
            On the scale that the rule was fitted with.
        groups : labels of shape (n,), or several columns, or GroupProbabilities
            As in the fit.
        strata : labels of shape (n,), or several columns
            As in the fit; required if the rule equalizes within strata.
        out : numpy.ndarray of float64, shape (n,), optional
            Output array. Reusing one for several batches saves the time to allocate memory, about a quarter of
            the total for millions of rows. It is overwritten even if a row raises an error.

        Returns
        -------
        numpy.ndarray of float64, shape (n,)
            `out` if given.

        Raises
        ------
        UnseenGroupError
            If a row's group was not in the fit rows and `unseen_group` is "error". A subclass of `InputError`.
        InputError
            If a score is missing or outside the range of the rule's scale, or columns have different lengths.

        Warns
        -----
        FairrampWarning
            If at least 30 scores are all 0 or 1, or nearly all, but the scores of the fit rows were not.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
        >>> rule.probabilities([0.48, 0.48], ["A", "B"]).round(3)
        array([0.3, 1. ])
        """
        if self.membership == "probabilities":
            self.check_strata(strata)
            check_aligned(scores=scores, groups=groups)
            column, mixture = as_scores(scores), self.probable(groups)
            check_length("groups", len(mixture), len(column))
            return self.chances(column, mixture, out)
        sample = self.sample(scores, groups, strata=strata)
        warn_decided(sample.scores, None if self.mixes else self.record)
        return self.chances(sample.scores, sample.cells, out)

    def chances(
        self,
        column: npt.NDArray[Any],
        codes: Codes | GroupProbabilities,
        out: npt.NDArray[np.float64] | None = None,
    ) -> npt.NDArray[np.float64]:
        """Probabilities of checked scores and encoded cells; see `probabilities`."""
        fill, rows = self.filling(column, codes), ArrayRows(column, codes, None, self.meaning)
        found = np.empty(len(column)) if out is None else checked_out(out, column, codes.values)
        map_blocks(lambda a, b: fill(rows.positions(a, b), a, b, found[a:b]), len(column))
        return found

    def filling(
        self, column: Array, codes: Codes | GroupProbabilities
    ) -> Callable[[Floats, int, int, Floats], None]:
        """A function (positions, start, stop, out) that writes the probabilities of rows start … stop − 1."""
        ramps, original = (
            (list(self.ramps), None) if isinstance(codes, GroupProbabilities) else self.ramps_of(codes)
        )
        feet, width, ties = Ramps.of(ramps)
        center = 0.0
        if isinstance(codes, GroupProbabilities) and (feet != feet[0]).any():
            # Differences from a common foot are mixed, so that rounded probabilities matter little.
            center, feet = self.center, feet - self.center
        sloping = all(0 < ramp.width < inf for ramp in ramps)
        scale, own_cutoff = self.meaning, self.own_cutoff

        def fill(x: Floats, start: int, stop: int, out: Floats) -> None:
            codes.mix(feet, start, stop, out=out)
            if center:
                out += center
            widths = width if isinstance(width, float) else codes.mix(width, start, stop)
            chances(x, out, widths, 0.0 if sloping else codes.mix(ties, start, stop), out=out)
            if original is not None and isinstance(codes, Codes):
                own = np.flatnonzero(original[codes.block(start, stop)])
                own_scores = scale.compared(column[start:stop][own].astype(np.float64))
                out[own] = own_scores >= own_cutoff

        return fill

    def decide(
        self,
        scores: Any,
        groups: Any,
        *,
        strata: Any = None,
        ids: Any = None,
        key: str | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> npt.NDArray[np.int8]:
        """Make 0/1 decisions, with draws that are repeatable (by id and key) or random.

        Parameters
        ----------
        scores, groups, strata
            As in `probabilities`.
        ids : sequence of str or int
            The id of each row. The same id and key always give the same draw, in any order, batch or subset.
        key : str
            64 lowercase hexadecimal characters; keep it secret.
        random_state : int or numpy.random.Generator
            For ordinary random draws, instead of `ids` and `key`.

        Raises
        ------
        UnseenGroupError, InputError
            As in `probabilities`, or if `ids` or `key` is missing and `random_state` is not given.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
        >>> rule.decide([0.48, 0.48], ["A", "B"], ids=["anna", "ben"], key="0" * 64)
        array([0, 1], dtype=int8)
        """
        check_aligned(scores=scores, groups=groups, strata=strata, ids=ids)
        return decide(self.probabilities(scores, groups, strata), ids=ids, key=key, random_state=random_state)

    @property
    def own_cutoff(self) -> float:
        """What own decisions are compared with: see `Scale.compared`."""
        return float(self.meaning.compared(np.array([self.cutoff]))[0])

    def ramps_of(self, codes: Codes) -> tuple[list[Ramp], npt.NDArray[np.bool_] | None]:
        """The ramp of each code, and which codes keep the classifier's own decisions, if any."""
        ramps = self._known_ramps(codes.labels)
        unseen = np.array([ramp is None for ramp in ramps], dtype=bool)
        if unseen.any():
            unseen &= codes.occurring()
        if unseen.any() and self.unseen_group == "error":
            raise unseen_groups(
                self._unseen([codes.labels[i] for i in np.flatnonzero(unseen)]),
                self.groups,
                policies=POLICIES[self.stratified or self.mixes],
                all_unseen=all(ramp is None for ramp in compress(ramps, codes.occurring())),
            )
        other = self.pooled or self.ramps[0]
        own = unseen if unseen.any() and self.unseen_group == "original" else None
        return [ramp or other for ramp in ramps], own
