"""Drift: whether a rule still keeps its promise on new rows.

The rule was certified: with confidence 1 − δ the population's gap is at most g. On new rows, whose mean chance
in group k is r_k from n_k rows, KL–Chernoff limits l_k and u_k miss the true rate with probability δ/(2K) per
side. So the true gap is, with probability 1 − δ, at least

    lower = max_{k ≠ l} (l_k − u_l)

and if lower > g, the gap has left what was promised. While nothing has changed, that happens with probability
2δ at most: the certificate may be wrong (δ), or the new limits (δ). Within strata each gap is compared with its
own stratum's promise, at the same δ for all together. Rows of groups that the rule does not know are left out.
"""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.audit import mean_chances
from fairramp.certificate import promised_gaps
from fairramp.distribution import Floats
from fairramp.groups import Label, label_key, show_label
from fairramp.intervals import kl_interval
from fairramp.rule import Rule
from fairramp.strata import largest_gap, strata_slices, stratum_index, widest
from fairramp.table import percentage

__all__ = ["Check", "check"]


@dataclass(frozen=True, repr=False)
class Check:
    """What new rows say about a rule's promise.

    Attributes
    ----------
    has_drifted : bool
        Whether the gap has left what was promised.
    gap : float
        Gap on the new rows, in expectation over draws.
    gap_interval : tuple of float
        Its limits at the given confidence.
    promised : float
        The certified gap: the smallest proven one, or the approximate one where weights leave nothing proven.
    groups, rows, rates : tuple
        What the new rows show, group by group.
    stratum : label or None
        For rules that equalise within strata, the one that is furthest from its promise: `gap`, `gap_interval`,
        `promised` and `detectable_gap` are those of it.
    false_alarm_rate : float
        Probability at most of `has_drifted` while nothing has changed.
    detectable_gap : float
        True gap from which rows as many as these raise the alarm nine times in ten.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
    >>> rule.check(data.score[12000:], data.sex[12000:]).has_drifted
    False
    """

    has_drifted: bool
    gap: float
    gap_interval: tuple[float, float]
    promised: float
    groups: tuple[Label, ...]
    rows: tuple[int, ...]
    rates: tuple[float, ...]
    false_alarm_rate: float
    detectable_gap: float
    stratum: Label = None

    def __repr__(self) -> str:
        low, high = self.gap_interval
        verdict = "has left" if self.has_drifted else "is within"
        found = (
            f"The gap {verdict} what was promised: {self.gap:.4f} ({low:.4f} to {high:.4f}) on the new rows, "
            f"promised {self.promised:.4f}."
            + (f" It is that of stratum {show_label(self.stratum)}." if isinstance(self.groups[0], tuple) else "")
        )
        power = (
            f"False alarms: at most {percentage(self.false_alarm_rate)}. Rows as many as these find a gap of "
            f"{self.detectable_gap:.3f} nine times in ten."
        )
        return "\n".join(textwrap.fill(part, 80) for part in (found, power))


def check(
    rule: Rule,
    scores: Any,
    groups: Any,
    *,
    strata: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Check:
    """Compare a rule's gap on new rows with its certificate."""
    promises = promised_gaps(rule, confidence)
    seen = mean_chances(rule, scores, groups, strata, sample_weight)
    delta = 1 - confidence
    lower, upper = kl_interval(seen.rates, seen.effective_rows, delta / (2 * len(seen.rates)))
    worst: tuple[float, slice, float] | None = None
    for part, promised in _parts(rule, seen.groups, promises):
        excess = max(narrowest(lower[part], upper[part]), 0.0) - promised
        if worst is None or excess > worst[0]:
            worst = excess, part, promised
    assert worst is not None
    _, part, promised = worst
    low = max(narrowest(lower[part], upper[part]), 0.0)
    cell = seen.groups[part.start]
    return Check(
        has_drifted=low > promised,
        gap=largest_gap(seen.rates[part]),
        gap_interval=(low, widest(lower[part], upper[part])),
        promised=promised,
        groups=seen.groups,
        rows=seen.rows,
        rates=tuple(seen.rates.tolist()),
        false_alarm_rate=2 * delta,
        detectable_gap=_detectable(seen.effective_rows[part], promised, delta / len(seen.rates)),
        stratum=cell[0] if rule.criterion == "covariance" and isinstance(cell, tuple) else None,
    )


def _parts(rule: Rule, seen: tuple[Label, ...], promises: list[float]) -> Iterator[tuple[slice, float]]:
    """The cells of each stratum that was seen, with its promise; all groups at once for parity."""
    if rule.criterion == "parity":
        yield slice(0, len(seen)), promises[0]
        return
    of_cell = dict(zip(map(label_key, rule.groups), stratum_index(rule.groups).tolist(), strict=True))
    for part in strata_slices(stratum_index(seen), len(seen)):
        yield part, promises[of_cell[label_key(seen[part.start])]]


def narrowest(lower: Floats, upper: Floats) -> float:
    """Largest difference between one group's lower and another's upper limit."""
    if len(lower) == 1:
        return 0.0
    return float(max(np.max(np.delete(lower, k)) - upper[k] for k in range(len(lower))))


def _detectable(rows: Floats, promised: float, delta: float) -> float:
    """Gap between the two largest groups, around a rate of ½, that is found nine times in ten.

    Limits miss on either side with probability δ/2.
    """
    if len(rows) == 1:
        return 1.0
    n = np.sort(rows)[-2:]
    # Limits are about √(ln(1/δ') r (1 − r) 2/n) wide; nine times in ten the gap is seen 1.28 s.e. lower.
    limits = np.sqrt(np.log(2 / delta) / (2 * n)).sum()
    return float(min(promised + limits + 1.2816 * np.sqrt((0.25 / n).sum()), 1.0))
