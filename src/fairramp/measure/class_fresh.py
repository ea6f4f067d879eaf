"""Certificates of rules for several classes, from fresh rows.

The offsets of such a rule depend on all fit rows at once, so the fit rows say too little about new people. On
fresh rows, the rate of each class in a group is a mean of independent values in [0, 1], as in `measure.fresh`.
"""

from typing import Any

import numpy as np

from fairramp.core.checks import check_number
from fairramp.core.events import class_event
from fairramp.data.classes import ClassSample
from fairramp.fit.classes import ClassRows, fingerprint_of
from fairramp.measure.certificate import Certificate
from fairramp.measure.class_means import fresh_sample, mean_class_chances
from fairramp.measure.fresh import are_fit_rows, certified
from fairramp.rule.class_rule import ClassRule


def certify_classes_on(
    rule: ClassRule, confidence: float, probabilities: Any, groups: Any, **more: Any
) -> Certificate:
    """Bound the gap of every class in the population that fresh rows with true groups were drawn from.

    `more` are `strata`, `group_probabilities` and `sample_weight`.
    """
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    sample = fresh_sample(rule, probabilities, groups, "A certificate", **more)
    if is_fitted_on(rule, sample):
        raise are_fit_rows("certify the rule on fresh rows")
    return certify_class_sample(rule, confidence, sample)


def certify_class_sample(rule: ClassRule, confidence: float, sample: ClassSample) -> Certificate:
    """Bound the gap of every class from checked rows that the rule was not fitted on."""
    seen, event = mean_class_chances(rule, sample), class_event(rule.classes)
    return certified(rule, seen, event, confidence, plain=sample.weights is None)


def is_fitted_on(rule: ClassRule, sample: ClassSample) -> bool:
    """Whether these are the rows that the rule was fitted on, as far as its record can tell."""
    return rule.record is not None and class_fingerprint(rule, sample) == rule.record.fingerprint


def class_fingerprint(rule: ClassRule, sample: ClassSample) -> str:
    """The fingerprint of checked rows, as in the record of a fit."""
    rows = ClassRows.of(sample)
    own = rows.outcome(np.zeros((len(rule.classes), len(rows.groups))), 0.0)
    return fingerprint_of(rows, rule.classes, own)
