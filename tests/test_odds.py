"""Equalized odds: exact on the fit rows, and as good as an exhaustive search and a linear program allow."""

import itertools
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import fairramp
from fairramp import InputError, UnsupportedError
from fairramp.fit.criteria.odds import _wider
from fairramp.fit.roc import Envelope, Path, Rates, Roc
from samples import quiet_fit

#: Cases of the quick test, and of the slow one.
QUICK, ALL = 40, 1_000


# Cases -------------------------------------------------------------------------------------------


@dataclass
class Case:
    """Rows and settings of a fit; `position` is the score on the axis of the ramps, higher ones better."""

    scores: Any
    groups: Any
    labels: Any
    weights: Any
    position: Any
    strata: Any
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def max_gap(self):
        return self.settings["max_gap"]

    @property
    def costs(self):
        """Of a false positive and a false negative, the larger of them 1; as stated for balanced accuracy."""
        if self.settings.get("target_rate") == "balanced_accuracy":
            share = np.average(self.labels, weights=self.weights)
            return share, 1 - share
        costs = np.array(self.settings.get("costs", (1, 1)), dtype=float)
        return tuple(costs / costs.max())

    @property
    def parts(self):
        """Rows of each group: one list for all of them, or one for each stratum."""
        strata = np.zeros(len(self.scores)) if self.strata is None else self.strata
        return [
            [np.flatnonzero((strata == s) & (self.groups == g)) for g in np.unique(self.groups[strata == s])]
            for s in np.unique(strata)
        ]

    def fit(self):
        return quiet_fit(
            self.scores,
            self.groups,
            self.labels,
            sample_weight=self.weights,
            criterion="equalized_odds",
            **({} if self.strata is None else {"strata": self.strata}),
            **self.settings,
        )

    def probabilities(self, rule):
        return rule.probabilities(self.scores, self.groups, *([] if self.strata is None else [self.strata]))

    def rates(self, h, rows, label):
        which = rows[self.labels[rows] == label]
        return np.average(h[which], weights=self.weights[which])

    def gaps(self, h):
        """The largest gap within a part, for label 0 and for label 1."""
        return [
            max(np.ptp([self.rates(h, rows, label) for rows in part]) for part in self.parts) for label in (0, 1)
        ]

    def value(self, h):
        """Gain over selecting nobody, per unit of weight."""
        fp, fn = self.costs
        return np.average(h * np.where(self.labels == 1, fn, -fp), weights=self.weights)


def drawn_group(rng):
    """Positions in [0, 1], and labels that the score predicts well, badly, wrongly or not at all."""
    n = int(rng.choice([2, 3, rng.integers(4, 26)], p=[0.1, 0.1, 0.8]))
    z = rng.random(n)
    kind = rng.choice(["plain", "ties", "few", "constant"], p=[0.45, 0.3, 0.15, 0.1])
    z = {"plain": z, "ties": z.round(1), "few": rng.choice([0.0, 0.2, 0.25, 1.0], n), "constant": z[:1] + 0 * z}[
        kind
    ]
    shares = [z, 1 - z, np.full(n, 0.5), z > 0.5, np.abs(2 * z - 1), 1 - np.abs(2 * z - 1)]
    labels = (rng.random(n) < shares[rng.integers(len(shares))]).astype(int)
    labels[:2] = rng.permutation(2)  # both occur
    return z, labels


def drawn(seed):
    rng = np.random.default_rng(seed)
    with_strata = rng.random() < 0.15
    groups = [drawn_group(rng) for _ in range(4 if with_strata else rng.integers(2, 6))]
    z, labels = (np.concatenate(part) for part in zip(*groups, strict=True))
    code = np.repeat(np.arange(len(groups)), [len(part) for part, _ in groups])
    n = len(z)
    weights = [np.ones(n), rng.integers(1, 6, n).astype(float), rng.lognormal(0, 1, n)][rng.integers(3)]
    scale, up = str(rng.choice(["probability", "percent", "signed", "logit"])), bool(rng.random() < 0.7)
    order = rng.permutation(n)
    z, labels, code, weights = z[order], labels[order], code[order], weights[order]
    p = np.clip(z if up else 1 - z, 1e-9, 1 - 1e-9)
    scores = {"probability": p, "percent": 100 * p, "signed": 2 * p - 1, "logit": np.log(p / (1 - p))}[scale]
    position = {"percent": scores / 100, "logit": 1 / (1 + np.exp(-scores))}.get(scale, scores)
    settings = {
        "max_gap": 0.0 if rng.random() < 0.5 else float(rng.choice([0.02, 0.05, 0.1, 0.3])),
        "ramp_width": float(rng.choice([0.0, 0.01, 0.1])),
        "ramp": str(rng.choice(["centered", "paper"])),
        "scale": scale,
        "higher_is_better": up,
        **[{}, {}, {"costs": (5, 1)}, {"costs": (1, 3)}, {"target_rate": "balanced_accuracy"}][rng.integers(5)],
        **({} if with_strata or rng.random() < 0.7 else {"unseen_group": "pooled"}),
    }
    return Case(
        scores,
        code % 2 if with_strata else code,
        labels,
        weights,
        position if up else -position,
        code // 2 if with_strata else None,
        settings,
    )


# An exhaustive search ------------------------------------------------------------------------------


class Group:
    """The rates of one group under many ramps."""

    def __init__(self, case, rows):
        y, self.z, w = case.labels[rows], case.position[rows], case.weights[rows]
        self.shares = [w * (y == label) / w[y == label].sum() for label in (0, 1)]
        self.weights = [w[y == label].sum() for label in (0, 1)]
        width, z = case.settings["ramp_width"], np.unique(self.z)
        apart = np.abs(z[:, None] - z).ravel()
        least = max(width, 1e-6)
        widths = np.unique(np.concatenate([[least], apart[apart > least], np.geomspace(least, 60, 90)]))
        #: For each width, the rates at all of the feet where one of them bends; false positive rates ascend.
        self.curves = [self._ramps(np.unique(np.concatenate([z, z - width]))[::-1], width) for width in widths]
        if width == 0:
            thresholds = np.append(np.inf, z[::-1])
            steps = self.z >= thresholds[:, None]
            self.curves.append(tuple(steps @ share for share in self.shares))

    def _ramps(self, feet, width):
        h = np.clip((self.z - feet[:, None]) / width, 0, 1)
        return tuple(h @ share for share in self.shares)

    @property
    def places(self):
        """False positive rates that may be best: bends of the narrowest ramp, and of the steps."""
        return np.concatenate([self.curves[0][0], self.curves[-1][0], self.curves[len(self.curves) // 2][0]])

    def reach(self, x):
        """The highest true positive rate at each false positive rate; a constant probability has both alike."""
        best = x.copy()
        for fpr, tpr in self.curves:
            i = np.clip(np.searchsorted(fpr, x, side="right") - 1, 0, len(fpr) - 1)
            j = np.minimum(i + 1, len(fpr) - 1)
            run = fpr[j] - fpr[i]
            part = np.clip((x - fpr[i]) / np.where(run > 0, run, 1), 0, 1)
            best = np.maximum(best, np.where(fpr[i] <= x, tpr[i] + part * (tpr[j] - tpr[i]), 0))
        return np.minimum(best, 1)


def best_found(case):
    """The largest value among very many rules within the gap, in the units of `Case.value`."""
    fp, fn = case.costs
    total = 0.0
    for part in case.parts:
        groups = [Group(case, rows) for rows in part]
        gains, losses = (np.array([cost * g.weights[y] for g in groups]) for cost, y in ((fn, 1), (fp, 0)))
        search = _best_common if case.max_gap == 0 else _best_within
        total += search(groups, gains, losses, case.max_gap)
    return total / case.weights.sum()


def _best_common(groups, gains, losses, _):
    x = np.unique(np.concatenate([np.linspace(0, 1, 201), *(group.places for group in groups)]))
    x, best = x[(x >= 0) & (x <= 1)], 0.0
    for _ in range(8):
        height = np.min([group.reach(x) for group in groups], axis=0)
        # No ramp has rates this close to the diagonal.
        values = np.where(
            (height - x > 1e-5) | (x == 0) | (x == 1), gains.sum() * height - losses.sum() * x, -np.inf
        )
        i = int(np.argmax(values))
        best = max(best, values[i])
        x = np.linspace(x[max(i - 1, 0)], x[min(i + 1, len(x) - 1)], 41)
    return best


def _best_within(groups, gains, losses, gap):
    x = np.unique(np.clip(np.concatenate([np.linspace(0, 1, 61), *(group.places for group in groups)]), 0, 1))
    corners = np.concatenate([group.reach(x)[:: max(1, len(x) // 40)] for group in groups])
    lefts, bottoms = (np.concatenate([places, places - gap]) for places in (x, np.append(x[::4], corners)))
    best, left, bottom = _best_square(groups, gains, losses, gap, x, lefts, bottoms)
    for near in (0.02, 0.002, 0.0002, 0.00002):
        around = np.linspace(-near, near, 41)
        more = np.concatenate([x, left + around, left + gap + around])
        found = _best_square(groups, gains, losses, gap, more, left + around, bottom + around)
        best, left, bottom = max(found, (best, left, bottom))
    return best


def _best_square(groups, gains, losses, gap, x, lefts, bottoms):
    """The best of many squares, with points at some false positive rates: its value, left and lower edge."""
    x, lefts, bottoms = (np.unique(np.clip(part, 0, 1)) for part in (x, lefts, bottoms))
    heights = [group.reach(x) for group in groups]
    inside = (x >= lefts[:, None]) & (x <= lefts[:, None] + gap)
    best = -np.inf, 0.0, 0.0
    for bottom in bottoms:
        total = np.zeros(len(lefts))
        for gain, loss, height in zip(gains, losses, heights, strict=True):
            allowed = (height >= bottom) & (x <= bottom + gap)
            value = np.where(allowed, gain * np.minimum(height, bottom + gap) - loss * x, -np.inf)
            total += np.where(inside, value, -np.inf).max(axis=1)
        i = int(np.argmax(total))
        best = max(best, (total[i], lefts[i], bottom))
    return best


# A linear program ----------------------------------------------------------------------------------


def bound(case):
    """The largest value of decisions within the gap that never fall as the score rises, ramps or not."""
    fp, fn = case.costs
    return -sum(_program(case, part, fp, fn) for part in case.parts) / case.weights.sum()


def _program(case, part, fp, fn):
    """Variables: how much the probability rises at each score of each group, and the corner of the square."""
    cost, upper, limits, pieces = [], [], [], []
    for rows in part:
        y, w, z = case.labels[rows], case.weights[rows], case.position[rows]
        selects = z[:, None] >= np.unique(z)
        cost.append((w * np.where(y == 1, -fn, fp)) @ selects)
        pieces.append([(w * (y == label)) @ selects / w[y == label].sum() for label in (0, 1)])
    sizes = [len(part) for part in cost]
    starts = np.cumsum([0, *sizes])
    for k, rates in enumerate(pieces):
        line = np.zeros(starts[-1] + 2)
        line[starts[k] : starts[k + 1]] = 1
        upper.append(line)
        limits.append(1.0)
        for label, rate in enumerate(rates):
            for sign, limit in ((1, case.max_gap), (-1, 0.0)):
                line = np.zeros(starts[-1] + 2)
                line[starts[k] : starts[k + 1]], line[starts[-1] + label] = sign * rate, -sign
                upper.append(line)
                limits.append(limit)
    tolerances = dict.fromkeys(["primal_feasibility_tolerance", "dual_feasibility_tolerance"], 1e-10)
    found = linprog(
        np.concatenate([*cost, [0, 0]]),
        np.array(upper),
        np.array(limits),
        bounds=(0, 1),
        method="highs-ds",
        options=tolerances,
    )
    assert found.status == 0
    return found.fun


# On random cases -----------------------------------------------------------------------------------


def tried(seed, **changes):
    """Fit a case and check its rule; returns the excess of the gap, and what was lost and is left to gain."""
    case = drawn(seed)
    case.settings |= changes
    rule = case.fit()
    h = case.probabilities(rule)
    excess = max(case.gaps(h)) - case.max_gap
    loss, slack = best_found(case) - case.value(h), bound(case) - case.value(h)
    assert excess <= 1e-9, seed
    assert loss <= 1e-6, seed
    assert slack >= -1e-8, seed
    cells = [rows for part in case.parts for rows in part]
    for label, name in enumerate(("false_positive", "true_positive")):
        found = [case.rates(h, rows, label) for rows in cells]
        np.testing.assert_allclose(rule.record.rates[name].after, found, atol=1e-9, err_msg=str(seed))
    if rule.unseen_group == "pooled":
        _check_pooled(case, rule, h, seed)
    return excess, loss


def _check_pooled(case, rule, h, seed):
    """The ramp for unseen groups is in the middle of the groups' rates, or below it."""
    everyone = rule.probabilities(case.scores, np.full(len(case.scores), 99))
    rates = np.array([[case.rates(h, rows, label) for rows in case.parts[0]] for label in (0, 1)])
    middle = (rates.min(axis=1) + rates.max(axis=1)) / 2
    fpr, tpr = (case.rates(everyone, np.arange(len(h)), label) for label in (0, 1))
    assert fpr == pytest.approx(middle[0], abs=1e-9), seed
    assert fpr - 1e-9 <= tpr <= middle[1] + 1e-9, seed


@pytest.mark.parametrize("batch", range(4))
def test_rules_are_exact_and_the_best_found(batch):
    for seed in range(batch, QUICK, 4):
        tried(seed)


@pytest.mark.parametrize("max_gap", [0.0, 0.1])
def test_wide_ramps_are_exact_and_the_best_found(max_gap):
    for seed in range(6):
        tried(seed, ramp_width=0.6, max_gap=max_gap)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(20))
def test_many_more_rules_are_exact_and_the_best_found(batch):
    for seed in range(QUICK + batch, ALL, 20):
        tried(seed)


# Laws ----------------------------------------------------------------------------------------------


def concave(seed, n_groups=None, size=None):
    """Groups whose share of positives rises with the score, so that no curve has a dent."""
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(n_groups or rng.integers(2, 5)):
        z = np.sort(rng.choice(np.arange(1, 40) / 40, size or rng.integers(2, 12), replace=False))
        shares = np.sort(rng.uniform(0.02, 0.98, len(z)))
        weights = rng.uniform(0.5, 3, len(z))
        for label, part in ((1, shares), (0, 1 - shares)):
            parts.append((z, np.full(len(z), k), np.full(len(z), label), weights * part))
    scores, groups, labels, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Case(scores, groups, labels, weights, scores, None, {"max_gap": 0.0, "ramp_width": 0.0})


@pytest.mark.parametrize("seed", range(24))
def test_ramps_lose_nothing_on_concave_curves(seed):
    case = concave(seed)
    case.settings |= [{}, {"costs": (4, 1)}, {"target_rate": "balanced_accuracy"}][seed % 3]
    h = case.probabilities(case.fit())
    assert max(case.gaps(h)) <= 1e-9
    assert case.value(h) == pytest.approx(bound(case), abs=1e-8)


@pytest.mark.parametrize("max_gap", [0.1, 0.2])
@pytest.mark.parametrize("seed", range(4, 10))
def test_with_many_groups_and_a_gap_the_best_square_is_found(seed, max_gap):
    case = concave(seed, n_groups=6, size=39)
    case.settings["max_gap"] = max_gap
    h = case.probabilities(case.fit())
    assert max(case.gaps(h)) <= max_gap + 1e-9
    assert case.value(h) == pytest.approx(bound(case), abs=1e-8)


def with_corners(curves, **settings):
    """Groups whose curves, from (0, 0) to (1, 1), have the given corners, one or two each."""
    parts = []
    for k, corners in enumerate(curves):
        weights = np.diff([(0, 0), *corners, (1, 1)], axis=0)
        z = np.array([0.9, 0.8, 0.1])[: len(weights)]
        for label in (0, 1):
            parts.append((z, np.full(len(z), k), np.full(len(z), label), weights[:, label]))
    scores, groups, labels, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Case(scores, groups, labels, weights, scores, None, settings)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_three_curves_without_a_common_crossing_meet_where_it_costs_least(order):
    # Between corners: the first curve is steep, the last is below the crossing of the other two.
    curves = [[(0.7, 0.91)], [(0.15, 0.285), (0.9, 0.96)], [(0.1, 0.1675), (0.8, 0.9375)]]
    case = with_corners([curves[k] for k in order], max_gap=0.0, ramp_width=0.0, costs=(12, 10))
    h = case.probabilities(case.fit())
    assert max(case.gaps(h)) <= 1e-9
    assert case.value(h) == pytest.approx(bound(case), abs=1e-8)


def rate(scores, weights, foot, width):
    return float(weights @ np.clip((scores - foot) / width, 0, 1) / weights.sum())


@pytest.mark.parametrize("seed", [2236, 2760, 3011, 3567, 4247])  # several widths have the same rates
def test_the_first_ramp_with_the_wanted_rates_is_found(seed):
    rng = np.random.default_rng(seed)
    scores = [np.sort(rng.random(n)) for n in rng.integers(2, 8, 2)]
    if rng.random() < 0.3:
        scores = [np.unique(z.round(1)) for z in scores]
    rows = [(z, rng.uniform(0.1, 3, len(z))) for z in scores]
    narrowest = float(rng.choice([0.01, 0.1, 0.5, 2, 5]))
    roc = Roc(*itertools.starmap(Rates, rows), narrowest)
    x = float(rng.uniform(0.05, 0.9))
    top, best = roc.reached(x)
    y = float(rng.uniform(x, top))
    foot, width, reached = _wider(roc, x, y, max(best, narrowest))
    assert [rate(*part, foot, width) for part in rows] == pytest.approx([x, y], abs=1e-11)
    assert reached == pytest.approx(y, abs=1e-11)
    for narrower in np.geomspace(max(best, narrowest), width, 100)[:-1]:
        low, high = -narrower, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if rate(*rows[0], middle, narrower) > x else (low, middle)
        assert rate(*rows[1], high, narrower) > y


@pytest.mark.parametrize("seed", range(12))
def test_a_larger_gap_is_never_worse(seed):
    case, values = drawn(seed), []
    for gap in (0.0, 0.001, 0.03, 0.1, 0.3, 1.0):
        case.settings["max_gap"] = gap
        values.append(case.value(case.probabilities(case.fit())))
    assert np.all(np.diff(values) >= -1e-8)


@pytest.mark.parametrize(
    ("seed", "n"), [*((seed, 60) for seed in (36, 169, 194, 220, 291, 314, 494)), (1, 300), (3, 300)]
)
def test_a_larger_gap_is_never_worse_if_a_few_rows_have_most_of_the_weight(seed, n):
    rng = np.random.default_rng(seed)
    z, groups, weights = np.sort(rng.random((3, n)), axis=1).ravel(), np.repeat(range(3), n), np.ones(3 * n)
    labels = (rng.random(3 * n) < z ** (1 + groups)).astype(int)
    few = rng.choice(3 * n, 12, replace=False)
    labels[few], weights[few] = 1, rng.uniform(5, 30, 12)
    case, values = Case(z, groups, labels, weights, z, None, {"ramp_width": 0.0, "costs": (5, 1)}), []
    for gap in (0.0, 0.001, 0.003, 0.01, 0.03):
        case.settings["max_gap"] = gap
        h = case.probabilities(case.fit())
        assert max(case.gaps(h)) <= gap + 1e-9
        values.append(case.value(h))
    assert np.all(np.diff(values) >= -1e-8)


def test_a_gap_of_one_takes_the_best_ramp_of_each_group():
    for seed in range(12):
        case = drawn(seed)
        case.settings["max_gap"] = 1.0
        value = case.value(case.probabilities(case.fit()))
        assert value == pytest.approx(best_found(case), abs=1e-6), seed


def permuted(case, rng):
    """The same rows in another order, with groups of other names."""
    order = rng.permutation(len(case.scores))
    names = rng.permutation(10)
    return Case(
        case.scores[order],
        names[case.groups[order]],
        case.labels[order],
        case.weights[order],
        case.position[order],
        None if case.strata is None else case.strata[order],
        case.settings,
    ), order


@pytest.mark.parametrize("seed", range(12))
def test_the_order_of_rows_and_groups_does_not_matter(seed):
    case = drawn(seed)
    other, order = permuted(case, np.random.default_rng(seed))
    h, found = (one.probabilities(one.fit()) for one in (case, other))
    assert other.value(found) == pytest.approx(case.value(h), abs=1e-8)
    assert max(other.gaps(found)) <= case.max_gap + 1e-9
    if case.max_gap == 0:
        # With a gap, several rules can be best.
        np.testing.assert_allclose(found, h[order], atol=1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_a_weight_is_a_number_of_rows(seed):
    case = drawn(seed)
    times = np.random.default_rng(seed).integers(1, 5, len(case.scores))
    case.weights = times.astype(float)
    strata = case.strata
    again = Case(
        *(np.repeat(part, times) for part in (case.scores, case.groups, case.labels)),
        np.ones(times.sum()),
        np.repeat(case.position, times),
        None if strata is None else np.repeat(strata, times),
        case.settings,
    )
    h, found = (one.probabilities(one.fit()) for one in (case, again))
    assert again.value(found) == pytest.approx(case.value(h), abs=1e-8)
    np.testing.assert_allclose(found, np.repeat(h, times), atol=1e-7)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
@pytest.mark.parametrize("seed", range(6))
def test_the_unit_of_the_weights_does_not_matter(seed, unit):
    case = drawn(seed)
    case.settings["max_gap"] = 0.1
    other = replace(case, weights=case.weights * unit)
    h, found = (one.probabilities(one.fit()) for one in (case, other))
    assert case.value(found) == pytest.approx(case.value(h), abs=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_an_envelope_is_the_highest_of_its_paths(seed):
    rng = np.random.default_rng(seed)
    paths = [Path(np.array([0, rng.random(), 1]), np.sort(rng.random(3)), np.ones(3)) for _ in range(9)]
    at = rng.random(1_000)
    highest = np.max([np.interp(at, path.x, path.y) for path in paths], axis=0)
    np.testing.assert_allclose(Envelope.of(paths).at(at), highest, atol=1e-12)


# Sources -------------------------------------------------------------------------------------------


def many(seed=3, n=40_000):
    rng = np.random.default_rng(seed)
    groups = rng.choice(["A", "B", "C"], n, p=[0.6, 0.3, 0.1])
    scores = np.clip(rng.beta(2, 3, n) + 0.1 * (groups == "B"), 0, 1)
    return scores, groups, (rng.random(n) < scores ** (1 + 0.6 * (groups == "C"))).astype(int)


def rates_of(rule, scores, groups, labels, label):
    h = rule.probabilities(scores, groups)
    return np.array([h[(groups == group) & (labels == label)].mean() for group in rule.groups])


@pytest.mark.parametrize(
    "settings",
    [{}, {"max_gap": 0.03}, {"ramp_width": 0.0}, {"unseen_group": "pooled", "target_rate": "balanced_accuracy"}],
    ids=["equal", "gap", "steps", "pooled"],
)
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_lazy_tables_and_arrays_give_the_same_rule(settings, engine):
    duckdb = pytest.importorskip("duckdb")
    scores, groups, labels = many()
    frame = pl.DataFrame({"p": scores, "g": groups, "y": labels})
    settings = {"criterion": "equalized_odds", **settings}
    expected = fairramp.fit_rule(scores, groups, labels, **settings)
    table = frame.lazy() if engine == "polars" else duckdb.from_arrow(frame.to_arrow())
    found = fairramp.fit_frame(table, score="p", group="g", label="y", **settings)
    np.testing.assert_allclose(
        found.probabilities(scores, groups), expected.probabilities(scores, groups), atol=1e-9
    )
    for label, name in enumerate(("false_positive", "true_positive")):
        rates = rates_of(found, scores, groups, labels, label)
        assert np.ptp(rates) <= settings.get("max_gap", 0) + 1e-9
        np.testing.assert_allclose(found.record.rates[name].after, rates, atol=1e-9)
    if "unseen_group" in settings:
        unseen = np.full(len(scores), "new")
        np.testing.assert_allclose(
            found.probabilities(scores, unseen), expected.probabilities(scores, unseen), atol=1e-9
        )


def test_summaries_know_the_error_of_their_rates():
    scores, groups, labels = many()
    for (width, bins), gap in itertools.product(((0.01, 4096), (0.1, 256), (0.0, 1024)), (0.0, 0.02)):
        summary = fairramp.summarize(scores, groups, labels=labels, resolution=bins)
        rule = fairramp.fit_summary(summary, criterion="equalized_odds", ramp_width=width, max_gap=gap)
        for label, name in enumerate(("false_positive", "true_positive")):
            rates = rule.record.rates[name]
            found = rates_of(rule, scores, groups, labels, label)
            assert np.all(np.abs(found - rates.after) <= np.array(rates.error) + 1e-12), (name, width, gap)
            assert 0 < max(rates.error) < 0.05
            assert np.ptp(found) <= rule.record.gap_after + 1e-12


# Bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_group_with_one_label_is_named(label, lazy):
    scores, groups, labels = many(n=2_000)
    labels[groups == "C"] = 1 - label
    frame = pl.DataFrame({"p": scores, "g": groups, "y": labels})
    with pytest.raises(InputError) as raised:
        fairramp.fit_frame(
            frame.lazy() if lazy else frame, score="p", group="g", label="y", criterion="equalized_odds"
        )
    text = str(raised.value)
    assert f"`criterion='equalized_odds'` requires rows with label {label} in every group" in text
    assert "there is none in C" in text


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"min_ratio": 0.8}, "`criterion='equalized_odds'` does not support `min_ratio`"),
        ({"overall_rate": 0.3}, "`criterion='equalized_odds'` does not support `overall_rate`"),
        ({"target_rate": 0.3}, "`target_rate` must be 'accuracy' or 'balanced_accuracy'"),
        ({"target_rate": "optimal"}, "`target_rate` must be 'accuracy' or 'balanced_accuracy'"),
        ({"target_rate": "base_rate"}, "`target_rate` must be 'accuracy' or 'balanced_accuracy'"),
        ({"solver": "sgd"}, "`solver='sgd'` does not support `criterion='equalized_odds'`"),
        ({"small_groups": "borrow"}, "`small_groups='borrow'` does not support `criterion='equalized_odds'`"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_of_one_rate_get_their_sentence(settings, sentence):
    with pytest.raises(UnsupportedError) as raised:
        fairramp.fit_rule(*many(n=500), criterion="equalized_odds", **settings)
    assert sentence in str(raised.value)


def test_labels_are_required():
    with pytest.raises(InputError, match="`criterion='equalized_odds'` requires `labels`"):
        fairramp.fit_rule(*many(n=500)[:2], criterion="equalized_odds")


def told_about(scores, groups, labels, **settings):
    """A rule, and what its fit warned about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rule = fairramp.fit_rule(scores, groups, labels, criterion="equalized_odds", max_gap=0.1, **settings)
    return rule, " ".join(str(warning.message) for warning in caught)


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_constant_probabilities_are_not_reported_as_no_one(higher_is_better):
    wrong_way = np.tile([0.2, 0.8, 0.8, 0.2], 100)
    groups, place = np.repeat(["A", "B"], 200), np.arange(400) % 8 < 2
    labels = np.where(place, groups == "B", wrong_way < 0.5).astype(int)
    scores = wrong_way if higher_is_better else 1 - wrong_way
    rule, told = told_about(scores, groups, labels, higher_is_better=higher_is_better)
    assert all(ramp.is_constant and ramp.tie > 0.5 for ramp in rule.ramps)
    assert "is selected" not in told


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_ties_at_an_end_of_the_scale_are_not_reported_as_alike(share):
    # Decisions as scores: one group is at an end, the other near it, both by ties at the same score.
    groups = np.repeat(["A", "B"], 400)
    labels = (np.arange(800) % 20 < np.where(groups == "A", 20 * share, 10)).astype(int)
    scores = np.where(np.arange(800) // 20 % 5 < 3, labels, 1 - labels).astype(float)
    rule, told = told_about(scores, groups, labels, ramp_width=0)
    rates = rule.record.rates["selection"].after
    assert 0 < np.mean(rates) < 1
    assert {ramp.foot for ramp in rule.ramps} == {float(share < 0.5)}
    assert "is selected" not in told


@pytest.mark.parametrize(
    ("max_gap", "remedy"), [(0, "allow a larger `max_gap` or change `costs`"), (1, "change `costs`")]
)
def test_no_one_is_selected_and_the_remedy_can_help(max_gap, remedy):
    groups, labels = np.repeat(["A", "B"], 400), np.tile([0, 0, 0, 1], 200)
    scores = np.tile([0.2, 0.5, 0.8, 0.5], 200)  # no score has more label 1 than label 0
    fit = {"criterion": "equalized_odds", "max_gap": max_gap}
    with pytest.warns(fairramp.FairrampWarning, match=f"no one is selected. If .*; otherwise {remedy}"):
        fairramp.fit_rule(scores, groups, labels, **fit)
    rule = quiet_fit(scores, groups, labels, costs=(1, 9), **fit)
    assert max(rule.record.rates["selection"].after) > 0
