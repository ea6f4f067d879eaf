"""Batches of new rows: a fingerprint by which the same rows are recognized when they come again."""

import hashlib
from typing import Any

import numpy as np

from fairramp.core.labels import label_text
from fairramp.measure.means import check_labels
from fairramp.rule.rule import Rule


def rows_fingerprint(rule: Rule, scores: Any, groups: Any, labels: Any = None, *, strata: Any = None) -> str:
    """A hash of the rows' content that does not depend on their order.

    Labels are part of it if the rule makes error rates equal.
    """
    check_labels(rule, labels)
    sample = rule.sample(scores, groups, labels if rule.event.needs_labels else None, strata=strata)
    codes = sample.cells.block(0, len(sample))
    outcomes = () if sample.outcomes is None else (sample.outcomes,)
    order = np.lexsort((*outcomes, sample.scores, codes))
    digest = hashlib.sha256(repr(list(map(label_text, sample.cells.labels))).encode())
    digest.update(np.bincount(codes, minlength=len(sample.cells.labels)).astype("<i8").tobytes())
    for column in (sample.scores, *outcomes):
        digest.update(np.ascontiguousarray(column[order], dtype="<f8").tobytes())
    return digest.hexdigest()[:16]
