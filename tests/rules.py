"""Strategies for rules of every kind."""

import numpy as np
from hypothesis import strategies as st

from fairramp import Ramp, Rule
from fairramp.core.labels import label_key, label_parts
from fairramp.core.scales import SCALES, scale_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
WHOLES = st.integers(-(2**63), 2**63 - 1)
KINDS = {"texts": TEXTS, "whole numbers": WHOLES, "booleans": st.booleans()}


@st.composite
def columns(draw, most=3):
    """Strategy for labels of one or several columns, each of one type, some with missing values."""
    kinds = draw(st.lists(st.sampled_from(list(KINDS.values())), min_size=1, max_size=most))
    parts = [st.one_of(kind, st.none()) if draw(st.booleans()) else kind for kind in kinds]
    return parts[0] if len(parts) == 1 else st.tuples(*parts)


@st.composite
def rules(draw, scales=tuple(SCALES), **settings):
    """Hand-written rules: all scales and directions, ramps and steps, policies, several columns, strata."""
    scale = scale_of(draw(st.sampled_from(scales)), draw(st.booleans()))
    stratified = draw(st.booleans())
    groups = draw(columns())
    labels = st.tuples(draw(columns(2)), groups) if stratified else groups
    found = draw(st.lists(labels, min_size=1, max_size=6, unique_by=label_key))
    if stratified:
        found = sorted(found, key=label_key)
    low, high = scale.score_range
    widths = st.one_of(st.just(0.0), st.floats(1e-6, 2.0))
    width = widths if draw(st.booleans()) else st.just(draw(widths))  # one width per group, or one for all
    threshold = st.floats(scale.lowest - 0.5, scale.highest + 0.5)
    share = st.floats(0.0, 1.0)
    ramp = st.one_of(st.builds(Ramp.centered, threshold, width, share), st.builds(Ramp.constant, share))
    policies = ["error", "original"] if stratified else ["error", "pooled", "original"]
    policy = draw(st.sampled_from(policies))
    return Rule(
        tuple(found),
        tuple(draw(ramp) for _ in found),
        ramp=draw(st.sampled_from(["centered", "paper"])),
        scale=scale.name,
        cutoff=draw(st.floats(max(low, -30.0), min(high, 30.0))),
        max_gap=draw(st.floats(0.0, 1.0)),
        target_rate=None if stratified else draw(st.floats(0.0, 1.0)),
        unseen_group=policy,
        pooled=draw(ramp) if policy == "pooled" else None,
        stratified=stratified,
        higher_is_better=scale.higher_is_better,
        **settings,
    )


def labels_of(rule):
    """Each group's value in each column, strata first, and the number of strata columns."""
    within = len(label_parts(rule.groups[0][0])) if rule.stratified else 0
    return [label_parts(label, rule.stratified) for label in rule.groups], within


def real_scores(higher_is_better, unseen_group):
    """A rule on real scores with all kinds of ramps, and rows at, next to and far from their ends."""
    scale = scale_of("real", higher_is_better)
    sizes = [0.0, 5e-324, 1e-300, 0.25, 0.5, 0.75, 3.7, 1e3, 1e15, 2.0**52, 1e16, 1e300, 1.7976931348623157e308]
    near = np.array([v for v in sizes for v in (v, -v)])
    near = np.concatenate([near, np.nextafter(near, np.copysign(1.0, -near)), np.nextafter(near[:-2], -np.inf)])
    steps = [Ramp(scale.position_of(v), 0.0, 0.25) for v in (0.0, 3.7, -0.75, 1e15, 1e300, -1e300)]
    others = [Ramp(-0.6, 0.25), Ramp(0.4, 0.125), Ramp(0.999999, 1e-6), Ramp(-1.5, 0.0, 0.5), Ramp(1.5, 0.0, 0.5)]
    ramps = (*steps, *others, Ramp.constant(0.3))
    rule = Rule(
        tuple(f"g{i}" for i in range(len(ramps))),
        ramps,
        scale="real",
        cutoff=3.7,
        higher_is_better=higher_is_better,
        unseen_group=unseen_group,
        pooled=Ramp(0.0, 0.0, 0.5) if unseen_group == "pooled" else None,
    )
    groups = [*rule.groups, "new"]
    return rule, np.tile(near, len(groups)), np.repeat(groups, len(near)).tolist()
