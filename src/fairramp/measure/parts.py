"""Parts of a rule's groups whose gaps have estimated limits of their own.

all groups        without strata
each stratum      with strata; their limits hold together
the other groups  where a few small ones make the limit of all groups wide: those that `Certificate.rest` is about
"""

from dataclasses import dataclass

import numpy as np

from fairramp.core.cells import strata_slices, stratum_index
from fairramp.core.curve import Integers
from fairramp.core.labels import Label, label_key
from fairramp.measure.certificate import certify
from fairramp.rule.limits import stratum_limits
from fairramp.rule.rule import Rule


@dataclass(frozen=True)
class Part:
    """Groups that are compared, by their places in the rule, and the estimated limit of their gap."""

    places: Integers
    limit: float
    left_out: tuple[tuple[Label, int], ...] = ()


def parts_of(rule: Rule, confidence: float) -> list[Part]:
    """The parts whose gaps are held to a limit each."""
    strata = stratum_index(rule.groups) if rule.stratified else None
    every = np.arange(len(rule.groups))
    slices, limits = strata_slices(strata, len(every)), stratum_limits(rule, confidence)
    found = [Part(every[part], limit) for part, limit in zip(slices, limits, strict=True)]
    certificate = certify(rule, confidence)
    if certificate.rest is not None:
        small = {label_key(label) for label, _ in certificate.left_out}
        others = np.array([k for k, label in enumerate(rule.groups) if label_key(label) not in small])
        found.append(Part(others, certificate.rest.estimated, certificate.left_out))
    return found
