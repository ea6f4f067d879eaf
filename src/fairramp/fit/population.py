"""A gap that holds in the population: the largest gap on the fit rows whose limit is at most `max_gap`.

If the gap on the fit rows is ε, that of the population exceeds ε half the time for two groups, and more often for
more. So the fit uses a smaller gap g, the largest with limit(g) ≤ ε (see `rule.limits`). The limit increases with
g, except for the rounding of counts. g is found by bisection, on bins if there are many rows, and is then
checked, and lowered if necessary, on the rows themselves. It is accurate to within a thousandth of ε, or a few if
it was lowered.
"""

from dataclasses import replace
from math import ceil
from typing import Protocol

from fairramp.core.table import with_rows
from fairramp.core.words import exact_points, percentage, upward_points
from fairramp.errors import InputError
from fairramp.fit.cells import FitRows
from fairramp.fit.settings import Settings
from fairramp.rule.limits import FitSample, limit_kind, limits, limits_of
from fairramp.rule.record import Asked
from fairramp.rule.rule import Rule

#: Number of bisection steps on [0, ε].
_HALVINGS = 10
#: How often the gap is lowered on the rows before falling back to equal rates.
_LOWERED = 4


class Fit(Protocol):
    """A fit of rows with settings."""

    def __call__(self, rows: FitRows, settings: Settings, *, quiet: bool) -> Rule:
        """Return the rule; `quiet` suppresses warnings."""


def kept_in_population(fit: Fit, rows: FitRows, settings: Settings) -> Rule:
    """The rule with the largest gap whose limit is at most the requested gap."""
    most, confidence, which = settings.max_gap, settings.confidence, settings.confidence_limit
    assert confidence is not None
    assert most is not None

    def at(rows: FitRows, gap: float, *, quiet: bool = True) -> Rule:
        fitted = fit(
            rows, replace(settings, max_gap=gap, confidence=None, confidence_limit="estimated"), quiet=quiet
        )
        assert fitted.record is not None
        # Which bounds are theorems depends on this: the rows choose the gap.
        return replace(fitted, record=replace(fitted.record, asked=Asked(most, confidence, which)))

    def excess(rule: Rule) -> float:
        return float(getattr(limits(rule, confidence), which)) - most

    binned = rows.binned()
    low, high = 0.0, most
    if excess(at(binned, high)) <= 0:
        low = high
    for _ in range(_HALVINGS if low < high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(at(binned, middle)) <= 0 else (low, middle)
    rule = at(rows, low, quiet=False)
    for last in range(_LOWERED):
        if (over := excess(rule)) <= 0 or low == 0:
            break
        low = 0.0 if last == _LOWERED - 1 else max(low - 1.1 * over - most / 2**_HALVINGS, 0.0)
        rule = at(rows, low)
    found = limits(rule, confidence)
    if getattr(found, which) > most:
        raise _too_few_rows(rule, settings)
    asked = Asked(most, confidence, limit_kind(getattr(found, which), found.proven))
    return replace(rule, record=replace(rule.record, asked=asked))  # type: ignore[type-var]


def _too_few_rows(rule: Rule, settings: Settings) -> InputError:
    """The error that says which limit is possible with these rows, and how many rows each group needs."""
    most, confidence, which = settings.max_gap, settings.confidence, settings.confidence_limit
    assert confidence is not None
    assert most is not None
    sample = FitSample.of(rule)
    found = limits_of(sample, confidence)
    limit = float(getattr(found, which))
    low, high = 1, 2
    while (never := getattr(limits_of(sample.at_least(high), confidence), which) > most) and high < 2**40:
        low, high = high, 2 * high
    while high - low > max(low // 100, 1) and not never:
        middle = (low + high) // 2
        enough = getattr(limits_of(sample.at_least(middle), confidence), which) <= most
        low, high = (low, middle) if enough else (middle, high)
    named = sorted(zip(sample.fewest, rule.groups, strict=True), key=lambda pair: pair[0])
    few = [(label, round(rows)) for rows, label in named if rows < high]
    kind = limit_kind(limit, found.proven)
    return InputError(
        "of {most} cannot be guaranteed in the population with {confidence} confidence: even the smallest {gap} "
        "on these rows has {article} {kind} limit of {limit}",
        argument="max_gap",
        remedy="allow {allowed:g}"
        + ("" if never else ", or fit about {needed:,} {rows} per group; groups with fewer: {few}"),
        most=exact_points(most),
        confidence=percentage(confidence),
        article={"estimated": "an", "proven": "a"}[kind],
        kind=kind,
        limit=upward_points(limit),
        allowed=ceil(limit * 1000) / 1000,
        needed=high,
        few=with_rows(few, form="{} ({})"),
        gap=rule.event.gap,
        rows="rows of each label" if rule.event.parts else rule.event.rows,
    )
