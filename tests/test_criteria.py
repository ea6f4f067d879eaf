"""True and false positive rates, ratios and budgets, compared with a convex solver and with brute force."""

import itertools
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import fairramp
from fairramp.core.bands import Gap, Ratio
from fairramp.core.events import EVENTS
from fairramp.data.labeled import LabeledBins
from fairramp.data.sample import Sample
from fairramp.fit.gains import Costs, GainCurves
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.settings import Settings
from oracles import objective, solve_convex

CRITERIA = ("equal_opportunity", "predictive_equality")
LABEL = {"parity": None, "equal_opportunity": 1, "predictive_equality": 0}
WIDTHS = (0.0, 1e-6, 0.01, 0.3)


def quiet(*args, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        return fairramp.fit_rule(*args, **settings)


def rows(seed, n_groups=None, labeled=True):
    """Random rows with ties, weights and tiny groups; each group has both labels, unless there are no labels."""
    rng = np.random.default_rng(seed)
    k = n_groups or int(rng.integers(1, 5))
    sizes = rng.integers(2, rng.choice([4, 12, 60]), k)
    groups = np.repeat(np.arange(k), sizes)
    scores = np.clip(rng.beta(rng.uniform(0.5, 3), rng.uniform(0.5, 3), len(groups)) + 0.2 * (groups % 2), 0, 1)
    if rng.random() < 0.5:
        scores = np.round(scores, int(rng.integers(1, 3)))
    labels = (rng.random(len(groups)) < scores**0.7).astype(int)
    if labeled:
        starts = np.cumsum(sizes) - sizes
        labels[starts], labels[starts + 1] = 0, 1
    weights = rng.choice([None, 0]) if rng.random() < 0.5 else rng.uniform(0.2, 3, len(groups))
    return rng, scores, groups, labels, None if weights is None or np.ndim(weights) == 0 else weights


def rates_of(rule, scores, groups, labels, weights, label, strata=None):
    """The rate of each group over the rows with a label, or over all rows."""
    h = rule.probabilities(scores, groups, strata)
    w = np.ones(len(h)) if weights is None else weights
    which = np.ones(len(h), dtype=bool) if label is None else labels == label
    cells = groups if strata is None else np.asarray(strata) * 100 + groups
    return np.array(
        [np.average(h[which & (cells == k)], weights=w[which & (cells == k)]) for k in np.unique(cells)]
    )


def excess(rates, max_gap=None, min_ratio=None):
    if min_ratio is not None:
        return min_ratio * rates.max() - rates.min()
    return np.ptp(rates) - (max_gap or 0.0)


# By the scores -----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", range(12))
def test_ratios_and_budgets_are_optimal(batch):
    for seed in range(batch * 25, batch * 25 + 25):
        rng, scores, groups, _, weights = rows(seed, labeled=False)
        w = np.ones(len(scores)) if weights is None else weights
        band = {"min_ratio": float(rng.choice([0.5, 0.8, 0.95, 1.0]))}
        if rng.random() < 0.4:
            band = {"max_gap": float(rng.choice([0.0, 0.05, 0.3]))}
        budget = float(rng.choice([0.0, 0.05, 0.3, 0.62, 1.0])) if rng.random() < 0.6 else None
        level = {"overall_rate": budget}
        if budget is None and rng.random() < 0.4:
            level = {"target_rate": float(rng.uniform(0, 1))}
        how = {
            "cutoff": float(rng.choice([0.5, 0.3, 0.8])),
            "ramp_width": float(rng.choice(WIDTHS)),
        }
        ramp = str(rng.choice(["centered", "paper"]))
        rule = quiet(scores, groups, sample_weight=weights, ramp=ramp, **band, **level, **how)
        h = rule.probabilities(scores, groups)
        rates = rates_of(rule, scores, groups, None, weights, None)
        assert excess(rates, **band) <= 1e-9, seed
        if budget is not None:
            assert np.average(h, weights=w) == pytest.approx(budget, abs=1e-9), seed
        np.testing.assert_allclose(rule.record.rates["selection"].after, rates, atol=1e-9)
        if rule.is_hard and how["ramp_width"] > 0:
            continue  # the classifier's own decisions already meet the limit
        offset = 0.5 if ramp == "centered" else 0.0
        best = solve_convex(
            scores,
            groups,
            w,
            max_gap=band.get("max_gap", 0.0),
            min_ratio=band.get("min_ratio"),
            target_rate=level.get("target_rate"),
            overall_rate=budget,
            offset=offset,
            **how,
        )
        ours = objective(h, scores, w, offset=offset, **how)
        assert ours - best.objective <= 1e-8 * w.sum(), seed


@pytest.mark.parametrize("seed", range(30))
def test_budgets_within_strata_are_optimal(seed):
    rng, scores, groups, _, weights = rows(seed + 5_000, n_groups=4, labeled=False)
    strata, groups = groups // 2, groups % 2
    w = np.ones(len(scores)) if weights is None else weights
    band = {"min_ratio": 0.8} if seed % 2 else {"max_gap": float(rng.choice([0.0, 0.1]))}
    how = {"cutoff": 0.5, "ramp_width": float(rng.choice(WIDTHS))}
    budget = float(rng.uniform(0, 1))
    rule = quiet(scores, groups, strata=strata, sample_weight=weights, overall_rate=budget, **band, **how)
    h = rule.probabilities(scores, groups, strata)
    assert np.average(h, weights=w) == pytest.approx(budget, abs=1e-9)
    best = solve_convex(
        scores,
        2 * strata + groups,
        w,
        max_gap=band.get("max_gap", 0.0),
        min_ratio=band.get("min_ratio"),
        target_rate=None,
        overall_rate=budget,
        strata=np.array([0, 0, 1, 1]),
        offset=0.5,
        **how,
    )
    assert objective(h, scores, w, offset=0.5, **how) - best.objective <= 1e-8 * w.sum()
    rates = rates_of(rule, scores, groups, None, weights, None, strata)
    assert all(excess(part, **band) <= 1e-9 for part in (rates[:2], rates[2:]))


def test_a_budget_with_equal_rates_is_a_target_rate():
    data = fairramp.datasets.load_adult_scores()
    budget, target = (quiet(data.score, data.sex, **{name: 0.2}) for name in ("overall_rate", "target_rate"))
    np.testing.assert_allclose(budget.thresholds, target.thresholds, atol=1e-9)


def test_a_ratio_of_one_is_a_gap_of_zero():
    data = fairramp.datasets.load_adult_scores()
    for target in ("optimal", "accuracy", 0.2):
        ratio, gap = (
            quiet(data.score, data.race, data.label, target_rate=target, **band)
            for band in ({"min_ratio": 1.0}, {"max_gap": 0.0})
        )
        np.testing.assert_allclose(ratio.thresholds, gap.thresholds, atol=1e-12)


def test_nobody_is_selected_meets_every_ratio():
    scores, groups = np.tile([0.05, 0.1, 0.15, 0.2], 20), np.repeat(["A", "B"], 40)
    scores[:40] /= 2
    with pytest.warns(fairramp.FairrampWarning, match="The best equal rate is 0: no one is selected"):
        rule = fairramp.fit_rule(scores, groups, min_ratio=0.8, ramp="paper")
    assert rule.record.rates["selection"].after == (0.0, 0.0)
    assert np.isnan(rule.record.ratio_after)
    assert "undefined before, undefined after" in " ".join(repr(rule).split())


# By the labels -----------------------------------------------------------------------------------


def best_by_brute_force(calibrated, costs, event, band, n_levels=4_001):
    """The largest gain over levels on a fine grid and at the breakpoints; gains are interpolated plainly."""
    p = calibrated.points
    curves = []
    for k in range(len(calibrated.labels)):
        own = p.group == k
        order = np.argsort(-p.place[own], kind="stable")
        w, eta = p.weight[own][order], p.place[own][order]
        step = {None: w, 1: w * eta, 0: w * (1 - eta)}[event.label]
        gain = np.concatenate([[0.0], np.cumsum(w * (costs[1] * eta - costs[0] * (1 - eta)))])
        x = np.concatenate([[0.0], np.cumsum(step)])
        x /= x[-1]
        # At repeated rates, the largest gain.
        levels = np.unique(x)
        curves.append((levels, np.array([gain[np.abs(x - at) < 1e-15].max() for at in levels])))
    tried = np.concatenate([np.linspace(0, 1, n_levels), *(np.concatenate(band.levels(x)) for x, _ in curves)])
    best = -np.inf
    for level in tried[(tried >= 0) & (tried <= 1)]:
        low, high = (min(max(edge, 0.0), 1.0) for edge in band.edges(level))
        total = 0.0
        for x, gain in curves:
            inside = np.concatenate([[low, high], x[(x >= low) & (x <= high)]])
            total += np.interp(inside, x, gain).max()
        best = max(best, total)
    return best, curves


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("name", EVENTS)
def test_gain_curves_find_the_best_rates(seed, name):
    rng, scores, groups, labels, weights = rows(seed + 10_000)
    event, costs = EVENTS[name], [(1, 1), (5, 1), (1, 3), (0, 1), (1, 0)][seed % 5]
    band = Gap(float(rng.choice([0, 0.05, 0.4]))) if seed % 2 else Ratio(float(rng.choice([0.3, 0.8, 1.0])))
    sample = Sample.of_arrays(scores, groups, labels, scale=Settings().meaning, sample_weight=weights)
    bins = LabeledBins.of_arrays(sample.rows, sample.labels)
    labeled = LabeledScores.of_bins(bins, sample.scale, ordered_only=True)
    found = GainCurves(labeled.calibrated, Costs(*costs), event).best_rates(band)
    best, curves = best_by_brute_force(labeled.calibrated, costs, event, band)
    ours = sum(np.interp(x, *curve) for x, curve in zip(found, curves, strict=True))
    assert band.excess(found) <= 1e-9
    assert ours == pytest.approx(best, abs=1e-9 * (1 + np.abs(best)))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("batch", range(8))
def test_error_rates_on_the_fit_rows_are_in_the_band(criterion, batch):
    label = LABEL[criterion]
    for seed in range(batch * 40, batch * 40 + 40):
        rng, scores, groups, labels, weights = rows(seed + 20_000)
        band = {"min_ratio": float(rng.choice([0.5, 0.8, 1.0]))}
        if seed % 2:
            band = {"max_gap": float(rng.choice([0.0, 0.03, 0.2]))}
        level = [
            {},
            {"target_rate": "balanced_accuracy"},
            {"costs": (4, 1)},
            {"target_rate": float(rng.uniform(0, 1))},
            {"overall_rate": float(rng.choice([0, 0.1, 0.5, 0.77, 1]))},
        ][seed % 5]
        width = float(rng.choice(WIDTHS))
        rule = quiet(
            scores, groups, labels, criterion=criterion, sample_weight=weights, ramp_width=width, **band, **level
        )
        rates = rates_of(rule, scores, groups, labels, weights, label)
        assert excess(rates, **band) <= 1e-9, seed
        for name, event in EVENTS.items():
            found = rates_of(rule, scores, groups, labels, weights, event.label)
            np.testing.assert_allclose(rule.record.rates[name].after, found, atol=1e-9, err_msg=str(seed))
        if "overall_rate" in level:
            h = rule.probabilities(scores, groups)
            assert np.average(h, weights=weights) == pytest.approx(level["overall_rate"], abs=1e-9), seed


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(60))
def test_thresholds_are_the_best_of_all_with_equal_rates(criterion, seed):
    """Exhaustive search: all pairs of thresholds between scores, on rows that are calibrated up to order."""
    rng = np.random.default_rng(seed)
    times = 12  # groups of 1,080 rows are calibrated by isotonic regression
    scores = np.tile(np.arange(1, 10) / 10, 20 * times)
    groups = np.repeat([0, 1], 90 * times)
    # The share of positives rises with the score in either group.
    shares = np.sort(rng.integers(0, 11, (2, 9)), axis=1)
    shares[:, 0], shares[:, -1] = np.minimum(shares[:, 0], 9), np.maximum(shares[:, -1], 1)
    labels = np.zeros(len(scores), dtype=int)
    for k, level in itertools.product(range(2), range(9)):
        of = np.flatnonzero((groups == k) & (np.arange(len(scores)) % 9 == level))
        labels[of[: times * shares[k, level]]] = 1
    cuts, event = np.arange(0, 11) / 10 + 0.05, LABEL[criterion]
    max_gap = float(rng.choice([0.1, 0.3]))
    accuracy = {}
    for pair in itertools.product(cuts, cuts):
        h = scores >= np.array(pair)[groups]
        rates = [h[(groups == k) & (labels == event)].mean() for k in range(2)]
        if abs(rates[0] - rates[1]) <= max_gap:
            accuracy[pair] = np.mean(h == labels)
    rule = quiet(scores, groups, labels, criterion=criterion, max_gap=max_gap, ramp_width=0)
    h = rule.probabilities(scores, groups)
    # Splitting ties at random can do better than any pair of plain thresholds, never worse.
    assert np.mean(np.where(labels == 1, h, 1 - h)) >= max(accuracy.values()) - 1e-9


@pytest.mark.parametrize("criterion", CRITERIA)
def test_flat_pieces_take_the_end_that_helps_the_other_rows(criterion):
    label = LABEL[criterion]
    # The rows of the event are at 0.2 and 0.8; the others are between.
    scores = np.concatenate([np.repeat([0.2, 0.8], 20), np.full(40, 0.5)])
    scores, groups = np.tile(scores, 2), np.repeat(["A", "B"], 80)
    labels = np.tile(np.repeat([label, 1 - label], 40), 2)
    for width in (0.0, 0.01):
        rule = quiet(scores, groups, labels, criterion=criterion, target_rate=0.5, cutoff=0.9, ramp_width=width)
        other = rule.probabilities([0.5], ["A"])
        assert other == (0.0 if criterion == "equal_opportunity" else 1.0)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_separable_scores_are_decided_without_error(criterion):
    scores = np.tile(np.linspace(0.05, 0.95, 40), 2)
    groups, labels = np.repeat(["A", "B"], 40), (scores > np.repeat([0.3, 0.6], 40)).astype(int)
    rule = quiet(scores, groups, labels, criterion=criterion, ramp_width=0)
    np.testing.assert_array_equal(rule.probabilities(scores, groups), labels)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_strata_equalize_error_rates_within_each(criterion):
    for seed in range(40):
        _, scores, groups, labels, weights = rows(seed + 30_000, n_groups=4)
        strata, groups = groups // 2, groups % 2
        level = {"overall_rate": 0.4} if seed % 3 == 0 else {}
        rule = quiet(
            scores,
            groups,
            labels,
            criterion=criterion,
            strata=strata,
            sample_weight=weights,
            max_gap=0.05,
            **level,
        )
        rates = rates_of(rule, scores, groups, labels, weights, LABEL[criterion], strata)
        assert max(np.ptp(rates[:2]), np.ptp(rates[2:])) <= 0.05 + 1e-9, seed
        if level:
            h = rule.probabilities(scores, groups, strata)
            assert np.average(h, weights=weights) == pytest.approx(0.4, abs=1e-9)


# Sources -----------------------------------------------------------------------------------------


def many(seed=3, n=60_000):
    rng = np.random.default_rng(seed)
    groups = rng.choice(["A", "B", "C"], n, p=[0.6, 0.3, 0.1])
    scores = np.clip(rng.beta(2, 3, n) + 0.1 * (groups == "B"), 0, 1)
    return scores, groups, (rng.random(n) < scores**1.3).astype(int)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "settings",
    [
        {"max_gap": 0.02},
        {"min_ratio": 0.8, "ramp_width": 0.0},
        {"overall_rate": 0.2, "max_gap": 0.01},
        {"target_rate": 0.4, "unseen_group": "pooled"},
        {"max_gap": 0.06, "confidence": 0.95},
    ],
    ids=["gap", "ratio", "budget", "number", "confidence"],
)
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_lazy_tables_and_arrays_give_the_same_rule(criterion, settings, engine):
    duckdb = pytest.importorskip("duckdb")
    scores, groups, labels = many()
    frame = pl.DataFrame({"p": scores, "g": groups, "y": labels})
    expected = quiet(scores, groups, labels, criterion=criterion, **settings)
    table = frame.lazy() if engine == "polars" else duckdb.from_arrow(frame.to_arrow())
    found = fairramp.fit_frame(table, score="p", group="g", label="y", criterion=criterion, **settings)
    np.testing.assert_allclose(
        found.probabilities(scores, groups), expected.probabilities(scores, groups), atol=1e-9
    )
    assert found.record.fingerprint == expected.record.fingerprint
    for name, rates in expected.record.rates.items():
        np.testing.assert_allclose(found.record.rates[name].after, rates.after, atol=1e-12)
        assert found.record.rates[name].rows == rates.rows


@pytest.mark.parametrize("criterion", CRITERIA)
def test_summaries_know_the_error_of_their_rates(criterion):
    scores, groups, labels = many()
    for width, bins in ((0.01, 4096), (0.1, 256), (0.0, 1024)):
        summary = fairramp.summarize(scores, groups, labels=labels, resolution=bins)
        rule = fairramp.fit_summary(summary, criterion=criterion, ramp_width=width, max_gap=0.02)
        for name, event in EVENTS.items():
            rates = rule.record.rates[name]
            found = rates_of(rule, scores, groups, labels, None, event.label)
            assert np.all(np.abs(found - rates.after) <= np.array(rates.error) + 1e-12), (name, width)
        assert 0 < max(rule.record.main.error) < 0.05


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("scale", ["probability", "percent", "signed", "logit", "real"])
@pytest.mark.parametrize("up", [True, False])
def test_every_scale_and_direction(criterion, scale, up):
    p, groups, labels = many(n=5_000)
    p = np.clip(p, 1e-6, 1 - 1e-6)
    p = p if up else 1 - p
    logits, cutoff = np.log(p / (1 - p)), {"cutoff": 0.0} if scale == "real" else {}
    scores = {"percent": 100 * p, "signed": 2 * p - 1, "logit": logits, "real": logits}.get(scale, p)
    told = {"criterion": criterion, "scale": scale, "higher_is_better": up, "max_gap": 0.01, **cutoff}
    rule = quiet(scores, groups, labels, **told)
    assert np.ptp(rates_of(rule, scores, groups, labels, None, LABEL[criterion])) <= 0.01 + 1e-9
    assert fairramp.Rule.from_json(rule.to_json()) == rule


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_gap": 0.1, "min_ratio": 0.8}, "`max_gap` and `min_ratio` exclude each other"),
        ({"min_ratio": 0}, "`min_ratio` must be a number above 0 and at most 1, got 0"),
        ({"min_ratio": 1.2}, "`min_ratio` must be a number above 0 and at most 1, got 1.2"),
        ({"min_ratio": float("nan")}, "`min_ratio` must be a number above 0 and at most 1, got nan"),
        ({"min_ratio": True}, "`min_ratio` must be a number above 0 and at most 1, got True"),
        ({"costs": (-1, 1)}, "`costs` must be two numbers"),
        ({"overall_rate": 0.1, "target_rate": 0.1}, "`overall_rate` and `target_rate` exclude each other"),
        ({"overall_rate": 1.1}, "`overall_rate` must be between 0 and 1, got 1.1"),
        ({"overall_rate": 0.1, "costs": (1, 2)}, "`costs` does not support `overall_rate`"),
        ({"criterion": "equal_opportunity", "labels": None}, "`criterion='equal_opportunity'` requires `labels`"),
        ({"criterion": "tpr"}, "did you mean 'equal_opportunity'?"),
        ({"criterion": "demographic_parity"}, "did you mean 'parity'?"),
        ({"criterion": "false_positive_rate_parity"}, "did you mean 'predictive_equality'?"),
        ({"criterion": "equal_opportunity", "target_rate": "optimal"}, "`target_rate` must be 'accuracy'"),
        ({"criterion": "predictive_equality", "target_rate": "base_rate"}, "`target_rate` must be 'accuracy'"),
        (
            {"criterion": "equal_opportunity", "solver": "sgd", "target_rate": 0.2},
            "`solver='sgd'` does not support `criterion='equal_opportunity'`",
        ),
        ({"min_ratio": 0.8, "solver": "sgd", "target_rate": 0.2}, "does not support `min_ratio`"),
        ({"min_ratio": 0.8, "small_groups": "borrow"}, "does not support `min_ratio`"),
        ({"overall_rate": 0.2, "small_groups": "borrow"}, "does not support `overall_rate`"),
        ({"min_ratio": 0.8, "confidence": 0.95}, "`confidence` does not support `min_ratio`"),
    ],
)
def test_bad_settings_get_their_sentence(settings, sentence):
    scores, groups, labels = np.tile([0.2, 0.4, 0.6, 0.8], 20), np.repeat([0, 1], 40), np.tile([0, 1], 40)
    labels = settings.pop("labels", labels)
    with pytest.raises(fairramp.InputError) as raised:
        fairramp.fit_rule(scores, groups, labels, **settings)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(("criterion", "label"), [("equal_opportunity", 1), ("predictive_equality", 0)])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_group_without_the_event_is_named(criterion, label, lazy):
    scores, groups = np.tile([0.2, 0.4, 0.6, 0.8], 20), np.repeat(["A", "B"], 40)
    labels = np.where(groups == "B", 1 - label, np.tile([0, 1], 40))
    frame = pl.DataFrame({"p": scores, "g": groups, "y": labels})
    with pytest.raises(fairramp.InputError) as raised:
        fairramp.fit_frame(frame.lazy() if lazy else frame, score="p", group="g", label="y", criterion=criterion)
    assert f"requires rows with label {label} in every group; there is none in B" in str(raised.value)
    assert "merge the group" in str(raised.value)


@pytest.mark.parametrize(("criterion", "label"), [("equal_opportunity", 1), ("predictive_equality", 0)])
def test_a_group_with_only_the_event_is_fitted(criterion, label):
    scores, groups = np.tile([0.2, 0.4, 0.6, 0.8], 20), np.repeat(["A", "B"], 40)
    labels = np.where(groups == "B", label, np.tile([0, 1], 40))
    rule = quiet(scores, groups, labels, criterion=criterion)
    assert np.ptp(rates_of(rule, scores, groups, labels, None, label)) <= 1e-9
    assert set(rule.record.rates) == {"selection", rule.event.name}  # the other rate is undefined in B


def test_a_numeric_target_is_the_middle_and_the_text_says_what_was_reached():
    data = fairramp.datasets.load_adult_scores()
    text = repr(fairramp.fit_rule(data.score, data.sex, max_gap=0.05, target_rate=0.01))
    assert "a selection rate of 3.5% in each" in text
    assert "Allowed rates: 0.0% to 3.5%, because the target rate of 1.0% is the middle." in text
    assert "overall rate" in text
    text = repr(fairramp.fit_rule(data.score, data.sex, min_ratio=0.8, target_rate=0.2))
    assert "selection rates from 16.0% to 20.0%" in text
    assert "because the target rate of 20.0% is the highest" in text


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"criterion": "equal_opportunity"}, "a stream does not support `criterion='equal_opportunity'`"),
        ({"criterion": "equalized_odds"}, "a stream does not support `criterion='equalized_odds'`"),
        ({"min_ratio": 0.8}, "a stream does not support `min_ratio`"),
    ],
)
def test_streams_refuse_rules_that_they_cannot_continue(settings, told):
    data = fairramp.datasets.load_adult_scores()
    rule = quiet(data.score, data.sex, data.label, **settings)
    with pytest.raises(fairramp.UnsupportedError, match=told):
        fairramp.StreamingFit.from_rule(rule)


@pytest.mark.parametrize(
    "settings",
    [
        {"criterion": "equal_opportunity"},
        {"criterion": "predictive_equality", "overall_rate": 0.2},
        {"min_ratio": 0.8},
        {"overall_rate": 0.2, "max_gap": 0.05},
    ],
)
def test_the_estimator_takes_the_same_settings(settings):
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 2_000)
    x = rng.normal(size=(2_000, 3)) + (sex == "m")[:, None]
    y = (x.sum(axis=1) + rng.normal(size=2_000) > 1.5).astype(int)
    model = LogisticRegression().fit(x[:1_000], y[:1_000])
    fair = fairramp.RandomizedThresholdOptimizer(FrozenEstimator(model), **settings)
    rest = slice(1_000, None)
    rule = fair.fit(x[rest], y[rest], sensitive_features=sex[rest]).rule_
    target = {} if "overall_rate" in settings else {"target_rate": "accuracy"}
    expected = quiet(model.predict_proba(x[rest])[:, 1], sex[rest], y[rest], **settings, **target)
    assert rule.thresholds == expected.thresholds
    assert rule.criterion == settings.get("criterion", "parity")


@pytest.mark.parametrize("n_rows", [50, 4_000, 200_000])
@pytest.mark.parametrize("digits", [2, 17])
def test_fingerprints_of_the_rows_do_not_depend_on_the_criterion(n_rows, digits):
    rng = np.random.default_rng(n_rows)
    groups = rng.integers(0, 3, n_rows)
    scores = np.round(rng.beta(2 + groups, 3), digits)
    labels = (rng.random(n_rows) < scores).astype(int)
    rules = [
        quiet(scores, groups, labels, target_rate="accuracy", criterion=name) for name in ("parity", *CRITERIA)
    ]
    assert len({rule.record.fingerprint for rule in rules}) == 1


def test_own_decisions_that_meet_the_limit_are_mentioned():
    data = fairramp.datasets.load_adult_scores()
    told = "The classifier's own decisions already meet the limit; the rule changes them for accuracy."
    rule = fairramp.fit_rule(data.score, data.sex, data.label, criterion="equal_opportunity", max_gap=0.1)
    assert told in " ".join(repr(rule).split())
    rule = fairramp.fit_rule(data.score, data.sex, data.label, criterion="equal_opportunity", max_gap=0.01)
    assert told not in " ".join(repr(rule).split())


@pytest.mark.parametrize(("name", "value"), [("overall_rate", 10), ("target_rate", 20)])
def test_percentages_are_suggested_as_shares(name, value):
    with pytest.raises(fairramp.InputError, match=f"for {value}%, pass {value / 100:g}"):
        fairramp.fit_rule([0.1, 0.9], ["A", "B"], **{name: value})


def test_checks_of_ratio_rules_mention_the_ratio():
    data = fairramp.datasets.load_adult_scores()
    rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], min_ratio=0.8)
    found = rule.check(data.score[12000:], data.sex[12000:])
    h = rule.probabilities(data.score[12000:], data.sex[12000:])
    rates = [h[data.sex[12000:] == sex].mean() for sex in ("Female", "Male")]
    assert f"the ratio of the lowest rate to the highest is {min(rates) / max(rates):.2f}" in str(found).replace(
        "\n", " "
    )


def test_a_budget_is_not_called_a_learned_target():
    data = fairramp.datasets.load_adult_scores()
    found = fairramp.fit_rule(data.score, data.sex, overall_rate=0.2).certificate()
    reasons = next(bound.why_not for bound in found.bounds if bound.name == "beta")
    assert "thresholds that depend on all groups together" in reasons
    assert "a target rate learned from the rows" not in reasons


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("light", [1e-6, 1e-10])
def test_budgets_keep_the_limit_if_the_rows_of_the_event_weigh_almost_nothing(criterion, light):
    label = LABEL[criterion]
    for seed in range(30):
        rng, scores, groups, labels, _ = rows(seed + 40_000, n_groups=2)
        weights = np.where((labels == label) & (groups == 0), light, 1.0)
        budget, width = float(rng.random()), float(rng.choice(WIDTHS))
        rule = quiet(
            scores,
            groups,
            labels,
            criterion=criterion,
            sample_weight=weights,
            overall_rate=budget,
            ramp_width=width,
        )
        assert np.ptp(rates_of(rule, scores, groups, labels, weights, label)) <= 1e-9, seed
        h = rule.probabilities(scores, groups)
        assert np.average(h, weights=weights) == pytest.approx(budget, abs=1e-9), seed


def told(*args, **settings):
    """The warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fairramp.fit_rule(*args, **settings)
    return [str(one.message) for one in caught]


def test_levels_that_someone_chose_are_not_warned_of():
    scores, groups = np.linspace(0, 1, 1_000), np.arange(1_000) % 2
    labels = ((scores > 0.5) & (scores < 0.95)).astype(int)
    assert told(scores, groups, labels, criterion="equal_opportunity", overall_rate=0.02) == []
    assert told(scores, groups, overall_rate=0.0) == []


def test_strata_where_everyone_gets_the_same_decision_are_counted():
    scores, groups, strata = np.linspace(0, 1, 1_000), np.arange(1_000) % 2, np.arange(1_000) // 2 % 2
    rare = (np.arange(1_000) % 50 < 2).astype(int)
    (by_labels,) = told(scores, groups, rare, target_rate="accuracy", strata=strata)
    assert by_labels.startswith("In 2 of 2 strata the best equal rate is 0 or 1")
    assert "cutoff" not in by_labels
    (by_scores,) = told(scores * 0.4, groups, min_ratio=0.8, strata=strata)
    assert "set `cutoff` to the score at which the classifier selects" in by_scores
