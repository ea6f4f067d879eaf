"""Rows that every engine must decide alike, with NumPy's decisions.

The 100,000 rows are the 24,421 scores of Adult, repeated with a little noise, including

    rows exactly at the ends of each group's ramp, and one float to either side
    missing scores (NaN here), groups the rule does not know, missing groups (None)
    group names and ids outside ASCII

`case(...)` is cached and deterministic. Engines without nulls use only the `decidable` rows, those with a score;
of these, rows in unknown groups have NaN and −1 if the policy is "error".
"""

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

import fairramp
from fairramp import Ramp
from fairramp.core.labels import label_key
from fairramp.core.ramps import OFFSETS
from fairramp.core.scales import SCALES
from samples import quiet_fit

ROWS = 100_000
KEY = "5eb63bbbe01eeed093cb22bb8f5acdc35eb63bbbe01eeed093cb22bb8f5acdc3"

#: Stand-ins for Adult's races: German, Greek, Japanese, Arabic and emoji, and text that SQL must quote.
TEXTS = {
    "White": "Weiß",
    "Black": "μαύρος",
    "Asian-Pac-Islander": "太平洋諸島 '",
    "Amer-Indian-Eskimo": "عربي\\",
    "Other": "👩🏽‍🚀",
}
WHOLE = {"White": 1, "Black": 2, "Asian-Pac-Islander": -3, "Amer-Indian-Eskimo": 0, "Other": 2**40}
UNSEEN = {"text": "unbekannt", "whole": 77}

#: Ramp widths of the five groups, then of the ramp for unseen groups.
SOME_STEPS = (0.0, 0.05, 0.01, 0.0, 1e-6, 0.03)
NO_STEPS = (0.2, 0.05, 0.01, 0.05, 1e-6, 0.0)
ALL_STEPS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.03)
#: An infinite width is a constant ramp.
SOME_CONSTANT = (math.inf, 0.05, 0.0, math.inf, 0.05, math.inf)
ALL_CONSTANT = (math.inf,) * 6
#: Settings with ramps of different widths, for every engine.
OWN_WIDTHS = [
    {"ramp_width": SOME_STEPS},
    {"ramp_width": SOME_STEPS, "scale": "logit", "unseen_group": "pooled"},
    {"ramp_width": SOME_STEPS, "scale": "percent", "unseen_group": "original", "labels": "whole"},
    {"ramp_width": SOME_STEPS, "scale": "logit", "unseen_group": "original", "dtype": "float32"},
    {"ramp_width": NO_STEPS, "unseen_group": "pooled", "missing_seen": True},
    {"ramp_width": NO_STEPS, "scale": "signed", "ramp": "paper", "unseen_group": "original"},
    {"ramp_width": ALL_STEPS, "unseen_group": "pooled"},
    {"ramp_width": ALL_STEPS, "scale": "logit", "unseen_group": "pooled"},
    {"scale": "real", "unseen_group": "pooled"},
    {"ramp_width": SOME_STEPS, "scale": "real", "unseen_group": "original", "dtype": "float32"},
    {"ramp_width": ALL_STEPS, "scale": "real", "unseen_group": "pooled"},
    {"ramp_width": SOME_CONSTANT, "unseen_group": "pooled"},
    {"ramp_width": SOME_CONSTANT, "scale": "percent", "unseen_group": "original"},
    {"ramp_width": ALL_CONSTANT, "scale": "logit", "unseen_group": "pooled"},
]
#: A rule with fitted widths, a constant ramp and a step, for every engine.
ODDS = {"criterion": "equalized_odds", "unseen_group": "pooled"}
#: Settings of rules for which lower scores are better, for every engine.
REVERSED = [
    {"higher_is_better": False, **settings}
    for settings in (
        {},
        {"scale": "percent", "unseen_group": "original"},
        {"scale": "signed", "unseen_group": "pooled"},
        {"ramp_width": SOME_STEPS, "unseen_group": "original", "dtype": "float32"},
        {"ramp_width": SOME_STEPS, "scale": "logit", "unseen_group": "original"},
        {"ramp_width": ALL_STEPS, "scale": "logit", "unseen_group": "pooled"},
        {"ramp_width": SOME_STEPS, "scale": "real", "unseen_group": "original"},
        {"ramp_width": SOME_CONSTANT, "scale": "real", "unseen_group": "pooled"},
    )
]


@dataclass(frozen=True, eq=False)
class Case:
    """A rule and its rows.

    Attributes
    ----------
    rule : fairramp.Rule
        Has one group column, "race".
    score : floats of shape (n,)
        On the rule's scale, as float64 or float32; NaN if missing.
    group : objects of shape (n,)
        Labels, all text or all integers; None if missing.
    id : list of str
        Unique; most are not ASCII.
    probability : float64 of shape (n,)
        From `Rule.probabilities`; NaN without a score, or for a group the rule rejects.
    decision : int8 of shape (n,)
        From `Rule.decide` with KEY; −1 where `probability` is NaN.
    """

    rule: fairramp.Rule
    score: np.ndarray
    group: np.ndarray
    id: list[str]
    probability: np.ndarray
    decision: np.ndarray

    @property
    def decidable(self):
        """Rows with a score."""
        return ~np.isnan(self.score)

    @property
    def u(self):
        """`fairramp.draws` for the ids."""
        return fairramp.draws(self.id, KEY)


@functools.cache
def case(
    scale="probability",
    ramp_width=0.01,
    unseen_group="error",
    labels="text",
    dtype="float64",
    ramp="centered",
    missing_seen=False,
    higher_is_better=True,
    criterion="parity",
):
    """Fit a rule to the Adult scores and return it with 100,000 rows; `missing_seen` makes None a known group.

    A tuple of widths has one for each group, then one for the ramp for unseen groups. For equalized odds, every
    group keeps its fitted width, except that the first ramp is constant and the last one is a step.
    """
    adult = fairramp.datasets.load_adult_scores()
    names = dict({"text": TEXTS, "whole": WHOLE}[labels])
    if missing_seen:
        names["Other"] = None
    rng = np.random.default_rng(8)
    place = np.resize(np.arange(len(adult.score)), ROWS)
    noise = np.where(np.arange(ROWS) < len(adult.score), 0.0, rng.uniform(-1e-4, 1e-4, ROWS))
    chance = np.clip(adult.score[place] + noise, 0.0, 1.0)
    race = adult.race[place]

    rule = quiet_fit(
        _on_scale(adult.score, scale),
        {"race": [names[r] for r in adult.race]},
        adult.label if criterion == "equalized_odds" else None,
        criterion=criterion,
        ramp_width=0.01 if isinstance(ramp_width, tuple) else ramp_width,
        ramp=ramp,
        max_gap=0.02,
        scale=scale,
        cutoff=0.0 if scale == "real" else None,
        higher_is_better=higher_is_better,
        unseen_group=unseen_group,
    )
    if isinstance(ramp_width, tuple):
        *ramps, pooled = (
            r and (Ramp.constant(0.3) if math.isinf(width) else _with_width(r, width))
            for r, width in zip((*rule.ramps, rule.pooled), ramp_width, strict=True)
        )
        rule = replace(rule, ramps=tuple(ramps), pooled=pooled)
    if criterion == "equalized_odds":
        _, *others, last = rule.ramps
        rule = replace(rule, ramps=(Ramp.constant(0.3), *others, _with_width(last, 0.0)))
    # Make ties matter: probabilities strictly between 0 and 1 at thresholds that are real scores.
    ramps = (r if r.width else replace(r, tie=0.25 + 0.1 * k) for k, r in enumerate(rule.ramps))
    rule = replace(rule, ramps=tuple(ramps))
    score = _on_scale(chance, scale).astype(dtype)
    group = np.array([names[r] for r in race], dtype=object)

    at = 1000  # among the first rows, which have no noise
    for label, ends in _ends(rule).items():
        for end in np.array(ends, dtype=dtype):
            for value in (np.nextafter(end, end - 1), end, np.nextafter(end, end + 1)):
                inside = SCALES[scale].score_range
                score[at : at + 8], group[at : at + 8] = np.clip(value, *np.array(inside, dtype=dtype)), label
                at += 8
    score[::97] = np.nan
    group[::101] = UNSEEN[labels]
    group[::103] = None
    ids = [f"№{i} — {'ÄÖÜßñ日本語🙂'[i % 9 :]}" if i % 3 else f"A{i:06}" for i in range(ROWS)]
    return Case(rule, score, group, ids, *expected(rule, score, group, ids))


def expected(rule, score, group, ids, key=KEY):
    """NumPy's probabilities (NaN if undecided) and decisions (−1 if undecided)."""
    known = {label_key(label) for label in rule.groups}
    keys = {label: label_key(label) in known for label in set(group.tolist())}
    seen = np.array([keys[label] for label in group.tolist()])
    rows = np.flatnonzero(~np.isnan(score) & (seen | (rule.unseen_group != "error")))
    probability, decision = np.full(len(score), np.nan), np.full(len(score), -1, dtype=np.int8)
    given = score[rows], {"race": group[rows].tolist()}
    probability[rows] = rule.probabilities(*given)
    decision[rows] = rule.decide(*given, ids=[ids[i] for i in rows], key=key)
    return probability, decision


def _on_scale(chance, scale):
    if scale == "logit":
        inside = np.clip(chance, 1e-9, 1 - 1e-9)
        return np.log(inside / (1 - inside))
    if scale == "real":  # in both parts of the scale
        return np.sinh(6.0 * chance - 3.0)
    return {"probability": chance, "percent": chance * 100.0, "signed": chance * 2.0 - 1.0}[scale]


def _ends(rule):
    """Scores at the foot, the threshold and the head of each group's ramp."""
    found = {}
    for label, ramp in zip(rule.groups, rule.ramps, strict=True):
        parts = () if ramp.is_constant else (0.0, OFFSETS[rule.ramp], 1.0)
        ends = (rule.meaning.turned(ramp.foot + part * ramp.width) for part in parts)
        found[label] = [_score_at(p, rule.scale) for p in ends]
    return found


def _with_width(ramp, width):
    return replace(ramp, foot=ramp.foot + (ramp.width - width) / 2, width=width)


def _score_at(position, scale):
    if scale == "percent":
        return position * 100.0
    if scale == "logit":
        inside = min(max(position, 1e-9), 1 - 1e-9)
        return float(np.log(inside / (1 - inside)))
    if scale == "real":
        return SCALES["real"].shown(min(max(position, -0.99), 0.99))
    return position
