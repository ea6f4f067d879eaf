"""A gap that holds in the population: the largest gap on the fit rows whose limit is still at most `max_gap`.

With a gap of ε on the fit rows the population's exceeds ε half the time for two groups, and more often for more.
So the rows are held to a smaller gap g, the largest with limit(g) ≤ ε (see `rule.limits`). The limit rises with
g, but for the rounding of counts; g is searched for by halving, on bins where there are many rows, and is then
checked, and lowered if need be, on the rows themselves. It is right to a thousandth of ε.
"""

from dataclasses import replace
from math import ceil
from typing import Protocol

from fairramp.core.labels import show_label
from fairramp.data.rows import BinnedRows, Rows
from fairramp.errors import InputError
from fairramp.fit.settings import Settings
from fairramp.rule.limits import FitSample, limits, limits_of
from fairramp.rule.record import Asked
from fairramp.rule.rule import Rule

#: Halvings of [0, ε].
_HALVINGS = 10
#: How often the gap is lowered on the rows before equal rates are taken.
_LOWERED = 4


class Fit(Protocol):
    """A fit of rows with settings."""

    def __call__(self, rows: Rows, settings: Settings, *, quiet: bool) -> Rule:
        """The rule; `quiet` warns of nothing."""


def kept_in_population(fit: Fit, rows: Rows, settings: Settings) -> Rule:
    """The rule of the largest gap whose limit is at most the one that was asked for."""
    most, confidence, which = settings.max_gap, settings.confidence, settings.confidence_limit
    assert confidence is not None

    def at(rows: Rows, gap: float, *, quiet: bool = True) -> Rule:
        return fit(
            rows, replace(settings, max_gap=gap, confidence=None, confidence_limit="estimated"), quiet=quiet
        )

    def excess(rule: Rule) -> float:
        return float(getattr(limits(rule, confidence), which)) - most

    binned = BinnedRows(rows.summarize())
    low, high = 0.0, most
    if excess(at(binned, high)) <= 0:
        low = high
    for _ in range(_HALVINGS if low < high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(at(binned, middle)) <= 0 else (low, middle)
    for _ in range(_LOWERED):
        if low == 0 or (over := excess(at(rows, low))) <= 0:
            break
        low = max(low - 1.1 * over - most / 2**_HALVINGS, 0.0)
    else:
        low = 0.0
    rule = at(rows, low, quiet=False)
    if excess(rule) > 0:
        raise _too_few_rows(rule, settings)
    assert rule.record is not None
    return replace(rule, record=replace(rule.record, asked=Asked(most, confidence, which)))


def _too_few_rows(rule: Rule, settings: Settings) -> InputError:
    """What can be had from these rows, and how many more it takes."""
    most, confidence, which = settings.max_gap, settings.confidence, settings.confidence_limit
    assert confidence is not None
    sample = FitSample.of(rule)
    found = getattr(limits_of(sample, confidence), which)
    low, high = 1.0, 2.0
    while getattr(limits_of(sample.scaled(high), confidence), which) > most and high < 1e6:
        low, high = high, 2 * high
    for _ in range(8):
        middle = (low + high) / 2
        enough = getattr(limits_of(sample.scaled(middle), confidence), which) <= most
        low, high = (low, middle) if enough else (middle, high)
    smallest = int(sample.rows.argmin())
    return InputError(
        "cannot be kept at {most:g} in the population with {confidence:.10g}% confidence: even equal rates on "
        "these rows have {article} {which} limit of {found:.4f}",
        argument="max_gap",
        remedy="allow {allowed:g}, or fit about {factor:.2g} times as many rows (group {group}: {needed:,} "
        "instead of {has:,})",
        most=most,
        confidence=100 * confidence,
        which=which,
        article={"estimated": "an", "proven": "a"}[which],
        found=found,
        allowed=ceil(found * 1000) / 1000,
        factor=high,
        group=show_label(rule.groups[smallest]),
        needed=round(sample.rows[smallest] * high),
        has=round(sample.rows[smallest]),
    )
