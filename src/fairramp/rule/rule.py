"""Rule: one ramp per group, and nothing else is needed to decide.

For a score x (a probability, a signed score, or the probability of a logit or percentage) of group k,

    P(yes) = clip(c + (x − threshold_k) / ramp_width, 0, 1)       c = ½ (centered) or 0 (paper)
    P(yes) = 1 above threshold_k, tie_chance_k at it, 0 below     if ramp_width is 0

A rule is frozen data. It can be printed, written to JSON and read back without changing a bit, and it
carries a `FitRecord`: what the fit saw, in per-group numbers, without any row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.core.blocks import map_blocks
from fairramp.core.cells import cell_columns, stratum_index
from fairramp.core.checks import check_length, check_number, check_option, checked_width, is_real
from fairramp.core.labels import Label, canonical_label, label_key
from fairramp.core.scales import SCALES
from fairramp.core.table import Table, notebook_html
from fairramp.data.arrays import as_scores
from fairramp.data.groups import Codes
from fairramp.data.rows import ArrayRows
from fairramp.data.sample import encode_cells
from fairramp.errors import InputError, UnseenGroupError, shown
from fairramp.rule.draws import decide
from fairramp.rule.record import FitRecord
from fairramp.rule.verbs import Verbs

__all__ = ["CRITERIA", "OFFSETS", "TARGETS", "UNSEEN_POLICIES", "Ramp", "Rule"]

#: c, the chance at the threshold, for each kind of ramp.
OFFSETS = {"centered": 0.5, "paper": 0.0}
#: Targets that a word asks for.
TARGETS = ("optimal", "accuracy", "base_rate")
CRITERIA = ("parity", "covariance")
UNSEEN_POLICIES = ("error", "pooled", "original")


@dataclass(frozen=True)
class Ramp:
    """Where one group's ramp stands.

    Attributes
    ----------
    threshold : float
        In the units of the scores (probabilities for logits and percentages).
    tie_chance : float
        For a ramp of width 0, the chance of a score equal to the threshold; otherwise unused.

    Examples
    --------
    >>> import fairramp
    >>> fairramp.Ramp(0.25)
    Ramp(threshold=0.25, tie_chance=0.0)
    """

    threshold: float
    tie_chance: float = 0.0

    def __post_init__(self) -> None:
        if not is_real(self.threshold) or not math.isfinite(self.threshold):
            raise InputError(f"A threshold must be finite, got {shown(self.threshold)}.")
        object.__setattr__(self, "threshold", float(self.threshold))
        object.__setattr__(self, "tie_chance", check_number("tie chance", self.tie_chance, 0.0, 1.0))


@dataclass(frozen=True, repr=False, eq=False)
class Rule(Verbs):
    """Fair decisions from scores and groups.

    Made by `fit_rule`; see there for the meaning of the settings.

    Attributes
    ----------
    groups : tuple
        Labels of the fitted groups; (stratum, group) for the criterion "covariance".
    ramps : tuple of Ramp
        One for each group.
    ramp_width : float
        Width of every ramp.
    ramp : {"centered", "paper"}
        Where on the ramp the threshold stands.
    scale : {"probability", "percent", "signed", "logit"}
        What the scores are.
    cutoff : float
        Where the classifier itself says yes, as a score.
    max_gap, target_rate : float
        The band that holds every group's selection rate: target_rate ± max_gap/2. For the criterion
        "covariance" each stratum has a band of its own and `target_rate` is None.
    unseen_group : {"error", "pooled", "original"}
        What happens to a group that the fit did not see.
    pooled : Ramp or None
        The ramp for unseen groups under the policy "pooled".
    criterion : {"parity", "covariance"}
        Whether rates are equal over all rows or within strata.
    record : FitRecord or None
        What the fit saw; None for a rule written by hand or learned from a stream.
    columns : tuple of str, or None
        Names of the group columns of a rule without a record, which otherwise has them.

    Examples
    --------
    >>> import fairramp
    >>> rule = fairramp.Rule(("A", "B"), (fairramp.Ramp(0.5), fairramp.Ramp(0.4)), ramp_width=0.1)
    >>> fairramp.Rule.from_json(rule.to_json()) == rule
    True
    """

    groups: tuple[Label, ...]
    ramps: tuple[Ramp, ...]
    ramp_width: float
    ramp: str = "centered"
    scale: str = "probability"
    cutoff: float = 0.5
    max_gap: float = 0.0
    target_rate: float | None = 0.5
    unseen_group: str = "error"
    pooled: Ramp | None = None
    criterion: str = "parity"
    record: FitRecord | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(canonical_label(label) for label in self.groups))
        object.__setattr__(self, "ramps", tuple(self.ramps))
        if not self.groups:
            raise InputError("A rule needs at least one group.")
        if len(self.groups) != len(self.ramps):
            raise InputError(f"A rule needs one ramp per group, got {len(self.ramps)} for {len(self.groups)}.")
        if len({label_key(label) for label in self.groups}) < len(self.groups):
            raise InputError("The groups of a rule must differ.")
        for ramp in (*self.ramps, *([] if self.pooled is None else [self.pooled])):
            if not isinstance(ramp, Ramp):
                raise InputError(f"A ramp must be a fairramp.Ramp, got {shown(ramp)}.")
        if not isinstance(self.record, FitRecord | None):
            raise InputError(f"A record must be a fairramp.FitRecord, got {shown(self.record)}.")
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(map(str, self.columns)))
            if self.record is not None:
                raise InputError("`columns` are for a rule without a record; the record has their names.")
        if self.record is not None and (self.record.strata is None) != (self.criterion == "parity"):
            raise InputError("The record of a rule has strata if and only if `criterion` is 'covariance'.")
        check_option("ramp", self.ramp, OFFSETS)
        check_option("scale", self.scale, SCALES)
        check_option("unseen_group", self.unseen_group, UNSEEN_POLICIES)
        numbers = {
            "ramp_width": checked_width(self.ramp_width),
            "cutoff": SCALES[self.scale].checked_cutoff(self.cutoff),
            "max_gap": check_number("max_gap", self.max_gap, 0.0, 1.0),
        }
        if check_option("criterion", self.criterion, CRITERIA) == "parity":
            numbers["target_rate"] = check_number("target_rate", self.target_rate, 0.0, 1.0)
        else:
            self._check_cells()
        for name, number in numbers.items():
            object.__setattr__(self, name, number)
        if (self.pooled is None) == (self.unseen_group == "pooled"):
            raise InputError("A rule has a pooled ramp if and only if `unseen_group` is 'pooled'.")
        if self.record is not None and len(self.record.rows) != len(self.groups):
            raise InputError("The record of a rule must have one entry per group.")

    def _check_cells(self) -> None:
        """What must hold of a rule that equalises within strata."""
        if self.target_rate is not None:
            raise InputError("A rule with strata has no `target_rate` in common; it must be None.")
        if self.unseen_group == "pooled":
            raise InputError("A rule with strata cannot have `unseen_group='pooled'`: there is no common band.")
        if not all(isinstance(label, tuple) and len(label) == 2 for label in self.groups):
            raise InputError("The groups of a rule with strata must be pairs (stratum, group).")
        keys = [label_key(label) for label in self.groups]
        if sorted(keys) != keys:
            raise InputError("The groups of a rule with strata must be in order, stratum by stratum.")
        if self.record is not None and self.record.strata != tuple(stratum_index(self.groups).tolist()):
            raise InputError("The strata of a rule's record must be those of its groups.")

    def __eq__(self, other: object) -> bool:
        # As text, because Python holds a group labelled True equal to one labelled 1.
        return self.to_json() == other.to_json() if isinstance(other, Rule) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def group_columns(self) -> tuple[str, ...] | None:
        """Names of the group columns of the fit, where they had any."""
        return self.record.group_columns if self.record else self.columns

    @property
    def strata_columns(self) -> tuple[str, ...] | None:
        """Names of the strata's columns of the fit, where they had any."""
        return self.record.strata_columns if self.record else None

    # Deciding ---------------------------------------------------------------------------------

    def encode(self, groups: Any, strata: Any = None) -> Codes:
        """Groups of new rows as integer codes; with strata for the criterion "covariance", and only then."""
        if self.criterion == "parity" and strata is not None:
            raise InputError(
                "`strata` are not known to this rule, which equalises over all rows; leave them out."
            )
        if self.criterion == "covariance" and strata is None:
            columns = f" ({', '.join(self.strata_columns)})" if self.strata_columns else ""
            raise InputError(f"This rule equalises within strata: pass `strata`{columns}, one label per row.")
        return encode_cells(groups, strata, self.group_columns, self.strata_columns)[0]

    def probabilities(
        self, scores: Any, groups: Any, strata: Any = None, *, out: npt.NDArray[np.float64] | None = None
    ) -> npt.NDArray[np.float64]:
        """Probability of the positive decision for each row; the same every time.

        Parameters
        ----------
        scores : numbers of shape (n,)
            On the scale the rule was fitted with.
        groups : labels of shape (n,), or several columns
            As in the fit.
        strata : labels of shape (n,), or several columns
            As in the fit, for a rule that equalises within strata.
        out : numpy.ndarray of float64, shape (n,), optional
            Where to write them. Batches that share one array are spared the time that fresh memory takes, about a
            quarter of the whole for millions of rows. What was in it is lost, also if a row is refused.

        Returns
        -------
        numpy.ndarray of float64, shape (n,)
            `out` if it was given.

        Raises
        ------
        UnseenGroupError
            If a row's group was not in the fit and `unseen_group` is "error".
        InputError
            If a score is missing or out of the range of the rule's scale, or if columns do not fit together; an
            `UnseenGroupError` is one, too.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp(0.5), Ramp(0.4)), ramp_width=0.1)
        >>> rule.probabilities([0.48, 0.48], ["A", "B"]).round(3)
        array([0.3, 1. ])
        """
        column = as_scores(scores)
        codes = self.encode(groups, strata)
        check_length("groups", len(codes), len(column))
        ramps, original = self.ramps_of(codes)
        thresholds = np.array([ramp.threshold for ramp in ramps])
        tie_chances = np.array([ramp.tie_chance for ramp in ramps])
        feet = thresholds - OFFSETS[self.ramp] * self.ramp_width
        rows = ArrayRows(column, codes, None, SCALES[self.scale])
        logit = self.scale == "logit"
        own_cutoff = self.own_cutoff

        def own_scores(start: int, stop: int, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            return column[start:stop].astype(np.float64) if logit else x

        chances = np.empty(len(column)) if out is None else _checked_out(out, column, codes)

        def work(start: int, stop: int) -> None:
            x, code, chance = rows.positions(start, stop), codes.block(start, stop), chances[start:stop]
            if self.ramp_width > 0:
                np.take(feet, code, out=chance, mode="wrap")  # codes are in range; this mode is fastest
                np.subtract(x, chance, out=chance)
                with np.errstate(over="ignore"):  # from a threshold far away
                    np.divide(chance, self.ramp_width, out=chance)
                np.clip(chance, 0.0, 1.0, out=chance)
            else:
                threshold = thresholds[code]
                np.greater(x, threshold, out=chance)
                at = np.flatnonzero(x == threshold)
                chance[at] = tie_chances[code[at]]
            if original is not None:
                own = np.flatnonzero(original[code])
                chance[own] = own_scores(start, stop, x)[own] >= own_cutoff

        map_blocks(work, len(column))
        return chances

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
        """Draw 0/1 decisions: by id and key, then they repeat, or at random.

        Parameters
        ----------
        scores, groups, strata
            As for `probabilities`.
        ids : sequence of str or int
            Who each row is. The same id and key get the same answer in any order, batch or subset.
        key : str
            64 lowercase hexadecimal characters, kept secret.
        random_state : int or numpy.random.Generator
            Instead of ids and key: ordinary random draws.

        Raises
        ------
        UnseenGroupError, InputError
            As for `probabilities`; also without ids and key, or one of them, unless `random_state` is given.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp(0.5), Ramp(0.4)), ramp_width=0.1)
        >>> rule.decide([0.48, 0.48], ["A", "B"], ids=["anna", "ben"], key="0" * 64)
        array([0, 1], dtype=int8)
        """
        chances = self.probabilities(scores, groups, strata)
        return decide(chances, ids=ids, key=key, random_state=random_state)

    @property
    def own_cutoff(self) -> float:
        """What own decisions compare with: the cut-off's position, or the logit, since positions tie at 1."""
        return self.cutoff if self.scale == "logit" else SCALES[self.scale].position_of(self.cutoff)

    def ramps_of(self, codes: Codes) -> tuple[list[Ramp], npt.NDArray[np.bool_] | None]:
        """The ramp of each code, and which codes keep the classifier's own decision, if any do."""
        known = dict(zip(map(label_key, self.groups), self.ramps, strict=True))
        ramps = [known.get(label_key(label)) for label in codes.labels]
        unseen = np.array([ramp is None for ramp in ramps], dtype=bool)
        if unseen.any():
            unseen &= codes.occurring()
        if unseen.any() and self.unseen_group == "error":
            labels = [codes.labels[i] for i in np.flatnonzero(unseen)]
            policies = "'pooled' or 'original'" if self.criterion == "parity" else "'original'"
            remedy = (
                f"Fit again on rows that have them, or with unseen_group={policies} to decide them too"
                if any(ramps)
                else "None of them is known: check the column, the spelling and the type"
            )
            raise UnseenGroupError(
                f"Groups not seen in fit: {_some(labels)}; fitted groups: {_some(self.groups)}. "
                f"{_blank(labels, self.groups)}{remedy}."
            )
        other = self.pooled or Ramp(0.0)
        own = unseen if unseen.any() and self.unseen_group == "original" else None
        return [ramp or other for ramp in ramps], own

    # Showing ----------------------------------------------------------------------------------

    def table(self) -> Table:
        """One row per group: rows, threshold, ramp from–to, selection rate before and after.

        Thresholds and ramps of percentages are shown in percent, like the scores.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> print(Rule(("A", "B"), (Ramp(0.5), Ramp(0.4)), ramp_width=0.1).table())
        group  threshold    ramp    ramp
                            from      to
        -----  ---------  ------  ------
        A         0.5000  0.4500  0.5500
        B         0.4000  0.3500  0.4500
        """
        thresholds = np.array([ramp.threshold for ramp in self.ramps])
        feet = thresholds - OFFSETS[self.ramp] * self.ramp_width
        columns = cell_columns(self.groups, stratified=self.criterion == "covariance")
        headings = {"group": " / ".join(self.group_columns or ["group"])}
        if self.criterion == "covariance":
            headings["stratum"] = " / ".join(self.strata_columns or ["stratum"])
        if self.record:
            columns["n"] = self.record.rows
        shown = SCALES[self.scale].shown_per_unit
        columns["threshold"] = thresholds * shown
        if self.ramp_width > 0:
            columns |= {"ramp_from": feet * shown, "ramp_to": (feet + self.ramp_width) * shown}
        else:
            columns["chance_at_threshold"] = [ramp.tie_chance for ramp in self.ramps]
        if self.record:
            columns["rate_before"] = self.record.rate_before
            columns["rate_after"] = self.record.rate_after
            if any(self.record.rate_error):
                columns["rate_error"] = self.record.rate_error
        decimals = 4 if self.ramp_width == 0 else max(4, 2 - math.floor(math.log10(self.ramp_width)))
        return Table(columns, decimals, headings)

    @property
    def heading(self) -> str:
        """How many groups it has and what it aims at, in a line."""
        n = len(self.groups)
        if self.target_rate is None:
            goal = "equal rates" if self.max_gap == 0 else f"rates at most {self.max_gap:.4f} apart"
            goal += f" within each of {int(stratum_index(self.groups)[-1]) + 1:,} strata"
        elif self.max_gap == 0:
            goal = f"a selection rate of {self.target_rate:.4f} in each"
        else:
            low, high = self.target_rate - self.max_gap / 2, self.target_rate + self.max_gap / 2
            goal = f"selection rates from {max(low, 0):.4f} to {min(high, 1):.4f}"
        if self.record and self.ramp_width == 0 < self.record.ramp_width:
            goal = "the classifier's own decisions already comply"
        return f"fairramp rule for {n:,} group{'s' if n > 1 else ''}: {goal}"

    @property
    def notes(self) -> list[str]:
        """What to know about the thresholds in its table, in lines."""
        notes = []
        if self.pooled:
            threshold = self.pooled.threshold * SCALES[self.scale].shown_per_unit
            notes.append(f"groups not seen in the fit: threshold {threshold:.4f}")
        if self.scale == "logit":
            notes.append("thresholds and ramps are probabilities, 1/(1 + exp(-logit))")
        if self.scale == "percent":
            notes.append("thresholds and ramps are in percent, like the scores")
        return notes

    def __repr__(self) -> str:
        lines = [self.heading, str(self.table()), *self.notes]
        if self.record:
            before, after = self.record.gap_before, self.record.gap_after
            binned = any(self.record.rate_error)
            after_text = f"at most {after:.4f}" if binned else f"{after:.4f}"
            lines.append(f"gap on the fit rows, in expectation: {before:.4f} before, {after_text} after")
            if binned:
                lines.append(
                    f"fitted to bins: a selection rate after is right to {max(self.record.rate_error):.1e}"
                )
        return "\n\n".join(lines)

    def _repr_html_(self) -> str:
        first, *rest = repr(self).split("\n\n")
        return notebook_html(first, self.table(), *rest[1:])


def _blank(unseen: Sequence[Label], known: Sequence[Label]) -> str:
    """A sentence about missing values where the fit had empty texts, or the other way round."""
    new, fitted = (set(map(label_key, _flat(labels))) for labels in (unseen, known))
    text, missing = label_key(""), label_key(None)
    if missing in new and text in fitted and missing not in fitted:
        return (
            "The rule knows the blank text '', and None (a missing value) is another group: in pandas pass "
            "fillna(''), or read with keep_default_na=False. "
        )
    if text in new and missing in fitted and text not in fitted:
        return (
            "The rule knows None (a missing value), and the blank text '' is another group: in pandas pass "
            "replace({'': None}). "
        )
    return ""


def _flat(labels: Sequence[Label]) -> list[Label]:
    return [part for label in labels for part in (_flat(label) if isinstance(label, tuple) else [label])]


def _some(labels: Any) -> str:
    """The first few labels, as a list."""
    shown = ", ".join(repr(label) for label in list(labels)[:10])
    return f"[{shown}{f', … {len(labels) - 10:,} more' if len(labels) > 10 else ''}]"


def _checked_out(out: Any, column: npt.NDArray[Any], codes: Codes) -> npt.NDArray[np.float64]:
    """An array that probabilities can be written to while the rows are still being read."""
    if not isinstance(out, np.ndarray) or out.dtype != np.float64 or out.shape != column.shape:
        came = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else shown(out)
        raise InputError(f"`out` must be a NumPy array of float64 and shape {column.shape}, got {came}.")
    if not out.flags.writeable:
        raise InputError("`out` must be writable, got a read-only array.")
    if np.shares_memory(out, column) or np.shares_memory(out, codes.values):
        raise InputError("`out` must not share memory with `scores` or `groups`, which are read meanwhile.")
    return out
