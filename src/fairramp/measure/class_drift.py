"""Drift of a rule for several classes: compare the gap of every class on new rows with the rule's `max_gap`.

The parts of `measure.drift` are the classes, and with strata the strata of each class; they share δ. While the
gap of every class in the population is at most `max_gap`, the probability of an alarm is at most δ.
"""

from typing import Any

import numpy as np

from fairramp.core.cells import kinds_of, strata_slices
from fairramp.core.checks import check_number
from fairramp.core.events import class_event
from fairramp.errors import FairrampError, warn
from fairramp.measure.class_means import fresh_sample, mean_class_chances
from fairramp.measure.drift import Check, checked
from fairramp.measure.parts import Part
from fairramp.rule.class_rule import ClassRule


def check_classes(
    rule: ClassRule, probabilities: Any, groups: Any, *, confidence: float = 0.95, **more: Any
) -> Check:
    """Compare a rule's gaps on new rows with the limit that it was fitted with.

    `more` are `strata`, `sample_weight` and `group_probabilities`.
    """
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    record, n_groups, event = rule.record, len(rule.groups), class_event(rule.classes)
    if record is None:
        raise FairrampError(
            "No check: the rule has no record of its fit rows, because it was written by hand",
            remedy="measure its gap with fairramp.audit_classes",
        )
    if record.weighted and more.get("sample_weight") is None:
        warn("The rule was fitted with weights; pass {sample_weight}, or the new rates are not comparable")
    seen = mean_class_chances(rule, fresh_sample(rule, probabilities, groups, "A check", **more), warn_poor=True)
    every = np.arange(n_groups * len(event.parts))
    parts = [
        Part(every[part], rule.max_gap, kind="requested", event=event.parts[part.start // n_groups])
        for part in strata_slices(kinds_of(n_groups, len(event.parts), rule.parts), len(every))
    ]
    then = np.array(record.after).T.ravel()[seen.seats]
    fit_rows = np.tile(record.rows, len(event.parts)).astype(np.float64)[seen.seats]
    return checked(rule, seen, parts, event, confidence, then, fit_rows)
