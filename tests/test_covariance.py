"""Covariance within strata matches a convex solver on Appendix D.1, and parity in each stratum."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import fairramp
import oracles
from fairramp import FairrampWarning, InputError, Rule, RuleFormatError, UnseenGroupError
from samples import KEY, gap, quiet_fit


def departments(n_rows=600, n_strata=3, seed=0, decimals=None):
    """Scores of two groups that differ by another amount in each stratum."""
    rng = np.random.default_rng(seed)
    stratum, sex = rng.integers(n_strata, size=n_rows), rng.integers(2, size=n_rows)
    scores = rng.beta(2.0 + sex * (1 + stratum), 2.5, n_rows)
    return (scores if decimals is None else scores.round(decimals)), sex, stratum


def fit(scores, sex, stratum, **settings):
    return quiet_fit(scores, sex, strata=stratum, **settings)


SETTINGS = [
    {"max_gap": max_gap, "ramp": ramp, "ramp_width": width}
    for max_gap in (0.0, 0.03, 0.1)
    for ramp in ("centered", "paper")
    for width in (0.0, 0.01, 0.2)
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("decimals", [None, 2])
def test_covariance_is_parity_at_the_best_target_of_each_stratum(settings, decimals):
    scores, sex, stratum = departments(decimals=decimals)
    found = fit(scores, sex, stratum, **settings).probabilities(scores, sex, stratum)
    for part in (stratum == k for k in range(3)):
        alone = quiet_fit(scores[part], sex[part], **settings)
        assert alone.record.gap_before > settings["max_gap"]  # every stratum needs a correction
        np.testing.assert_allclose(found[part], alone.probabilities(scores[part], sex[part]), atol=1e-9)


@pytest.mark.parametrize("settings", [s for s in SETTINGS if s["ramp_width"] > 0])
@pytest.mark.parametrize("weighted", [False, True])
def test_covariance_matches_the_appendix_problem(settings, weighted):
    scores, sex, stratum = departments(240, 3, seed=1)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 240) if weighted else np.ones(240)
    rule = fit(scores, sex, stratum, sample_weight=weights, **settings)
    ramp = {
        "cutoff": 0.5,
        "ramp_width": settings["ramp_width"],
        "offset": 0.5 if settings["ramp"] == "centered" else 0.0,
    }
    expected = oracles.solve_covariance_convex(scores, sex, stratum, weights, max_gap=settings["max_gap"], **ramp)
    found = rule.probabilities(scores, sex, stratum)
    cost, best = (oracles.objective(h, scores, weights, **ramp) for h in (found, expected))
    assert cost <= best + 1e-7 * weights.sum()
    assert rule.record.gap_after <= settings["max_gap"] + 1e-9
    np.testing.assert_allclose(found, expected, atol=2e-4)  # the convex solver's tolerance


@pytest.mark.parametrize("max_gap", [0.0, 0.05])
def test_the_two_thresholds_of_a_stratum_balance(max_gap):
    """t (1 − r) and −t r: weighted by r and 1 − r, the multipliers add up to 0."""
    scores, sex, stratum = departments(3000, 3, seed=3)
    rule = fit(scores, sex, stratum, max_gap=max_gap)
    shift = (np.array(rule.thresholds) - 0.5).reshape(3, 2)
    rows = np.array(rule.record.rows).reshape(3, 2)
    np.testing.assert_allclose((shift * rows).sum(axis=1) / rows.sum(axis=1), 0, atol=1e-9)
    assert (shift[:, 1] > shift[:, 0]).all()


@pytest.mark.parametrize("max_gap", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("n_rows", [600, 200_000])
def test_gaps_within_strata_never_exceed_max_gap(max_gap, n_rows):
    scores, sex, stratum = departments(n_rows, 5, seed=4)
    rule = fit(scores, sex, stratum, max_gap=max_gap)
    chances = rule.probabilities(scores, sex, strata=stratum)
    found = max(gap(chances[stratum == k], sex[stratum == k]) for k in range(5))
    assert found <= max_gap + 1e-9
    assert rule.record.gap_after == pytest.approx(found, abs=1e-9)


def test_rates_of_different_strata_may_differ():
    scores, sex, stratum = departments(3000)
    rates = np.array(fit(scores, sex, stratum).record.rates["selection"].after).reshape(3, 2)
    np.testing.assert_allclose(rates[:, 0], rates[:, 1], atol=1e-9)
    assert np.ptp(rates[:, 0]) > 0.05


def test_label_aware_rates_are_those_of_each_stratum_alone():
    scores, sex, stratum = departments(3000, 3, seed=5)
    labels = (np.random.default_rng(6).random(3000) < scores**2).astype(int)
    rule = fit(scores, sex, stratum, labels=labels, target_rate="accuracy", max_gap=0.02)
    found = rule.probabilities(scores, sex, stratum)
    for part in (stratum == k for k in range(3)):
        alone = quiet_fit(scores[part], sex[part], labels[part], target_rate="accuracy", max_gap=0.02)
        np.testing.assert_allclose(found[part], alone.probabilities(scores[part], sex[part]), atol=1e-9)


def test_decisions_within_the_gap_in_every_stratum_are_unchanged():
    scores, sex, stratum = departments()
    own_gap = fit(scores, sex, stratum).record.gap_before
    rule = fit(scores, sex, stratum, max_gap=own_gap)
    np.testing.assert_array_equal(rule.probabilities(scores, sex, stratum), scores >= 0.5)
    assert "decisions already meet the limit" in repr(rule)


def test_a_stratum_with_one_group_keeps_its_cutoff_and_warns():
    scores, sex, stratum = departments(900)
    sex[stratum == 1] = 0
    with pytest.warns(FairrampWarning, match=r"^Strata with only one group, where nothing is equalized: 1\.$"):
        rule = fairramp.fit_rule(scores, sex, strata=stratum)
    assert dict(zip(rule.groups, rule.thresholds, strict=True))[1, 0] == 0.5


@pytest.mark.parametrize("target_rate", ["optimal", "accuracy"])
@pytest.mark.parametrize("width", [0.0, 0.05])
def test_any_number_of_groups_is_parity_stratum_by_stratum(width, target_rate):
    scores, _, stratum = departments(3000, seed=7)
    five = np.arange(len(scores)) % 5
    labels = (np.random.default_rng(8).random(3000) < scores).astype(int)
    settings = {"ramp_width": width, "max_gap": 0.02, "target_rate": target_rate}
    rule = quiet_fit(scores, five, labels, strata=stratum, **settings)
    assert rule.record.gap_after <= 0.02 + 1e-9
    found = rule.probabilities(scores, five, stratum)
    for part in (stratum == k for k in range(3)):
        alone = quiet_fit(scores[part], five[part], labels[part], **settings)
        np.testing.assert_allclose(found[part], alone.probabilities(scores[part], five[part]), atol=1e-9)


def test_json_round_trips_a_rule_with_strata_exactly():
    scores, sex, stratum = departments()
    rule = fit(scores, sex, stratum, max_gap=0.02)
    again = Rule.from_json(rule.to_json())
    assert again == rule
    assert again.stratified
    assert again.target_rate is None
    np.testing.assert_array_equal(
        again.probabilities(scores, sex, stratum), rule.probabilities(scores, sex, stratum)
    )


def test_invalid_json_with_strata_raises():
    text = fit(*departments()).to_json()
    broken = {
        text.replace('"stratified": true', '"stratified": false'): "target_rate",
        text.replace('"criterion": "parity"', '"criterion": "odds"'): "criterion",
        text.replace('"target_rate": null', '"target_rate": 0.5'): "no common `target_rate`",
        text.replace('"unseen_group": "error"', '"unseen_group": "pooled"'): "pooled",
    }
    for changed, reason in broken.items():
        assert changed != text
        with pytest.raises(RuleFormatError, match=reason):
            Rule.from_json(changed)


def test_strata_are_required_exactly_when_the_rule_has_them():
    scores, sex, stratum = departments()
    rule = quiet_fit(scores, sex, strata=pd.Series(stratum, name="department"))
    with pytest.raises(InputError, match=r"equalizes within strata: pass `strata` \(department\)"):
        rule.probabilities(scores, sex)
    with pytest.raises(InputError, match="does not use `strata`"):
        quiet_fit(scores, sex).probabilities(scores, sex, stratum)
    with pytest.raises(InputError, match=r"`strata` has 599 rows but `groups` has 600"):
        rule.probabilities(scores, sex, stratum[1:])
    with pytest.raises(
        UnseenGroupError, match=r"Groups not in the fit rows: .* fit again with `unseen_group='original'`"
    ):
        rule.probabilities(scores, sex, stratum + 1)


def test_an_unseen_stratum_may_keep_the_original_decision():
    scores, sex, stratum = departments()
    rule = fit(scores, sex, stratum, unseen_group="original")
    np.testing.assert_array_equal(rule.probabilities(scores, sex, stratum + 7), scores >= 0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_rate": 0.3}, "`target_rate` must be 'optimal', 'accuracy' or 'balanced_accuracy', got 0.3"),
        (
            {"target_rate": "base_rate", "labels": np.arange(600) % 2},
            "'accuracy' or 'balanced_accuracy', got 'base_rate'",
        ),
        ({"unseen_group": "pooled"}, "`unseen_group` must be 'error' or 'original', got 'pooled'"),
        ({"solver": "sgd", "target_rate": 0.3}, "`solver='sgd'` does not support strata"),
    ],
)
def test_settings_that_conflict_with_strata_raise(settings, message):
    with pytest.raises(InputError, match=message):
        fit(*departments(), **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"criterion": "covariance"},
            "`criterion` must be one of 'parity', 'equal_opportunity', 'predictive_equality', 'equalized_odds', "
            "got 'covariance'",
        ),
        ({"criterion": "demographic_parity"}, "did you mean 'parity'?"),
        ({"strata": "department"}, "`strata` must be a column with one label per row"),
        ({"strata": np.arange(600) + 0.5}, "stratum must be"),
        ({"strata": [["a"] * 600, ["b"] * 599]}, "The columns of `strata` have different lengths"),
    ],
)
def test_bad_criteria_and_strata_raise(settings, message):
    scores, sex, _ = departments()
    with pytest.raises(InputError, match=re.escape(message)):
        fairramp.fit_rule(scores, sex, **settings)


def test_strata_accept_several_columns_from_any_library():
    scores, sex, stratum = departments()
    region = np.array(["n", "s"])[np.arange(600) % 2]
    arrays = fit(scores, sex, [stratum, region]).probabilities(scores, sex, [stratum, region])
    for frame in (pd.DataFrame({"d": stratum, "r": region}), pl.DataFrame({"d": stratum, "r": region})):
        rule = fit(scores, sex, frame)
        assert rule.columns.strata == ("d", "r")
        np.testing.assert_array_equal(rule.probabilities(scores, sex, frame), arrays)


def test_an_audit_within_strata_measures_what_the_rule_equalizes():
    scores, sex, stratum = departments(3000)
    rule = fit(scores, sex, stratum)
    found = fairramp.audit(scores, sex, rule=rule, strata=stratum)
    assert found.after.gap < 1e-9
    assert found.before.gap == pytest.approx(rule.record.gap_before, abs=1e-12)
    low, high = found.before.gap_interval
    assert low < found.before.gap < high
    alone = [fairramp.audit(scores[stratum == k], sex[stratum == k]) for k in range(3)]
    assert found.before.gap == max(a.gap for a in alone)
    assert found.before.ratio == min(a.ratio for a in alone)
    # Any of three strata can have the largest gap; this widens the lower limit but not the upper.
    assert high == max(a.before.gap_interval[1] for a in alone)
    assert low < max(a.before.gap_interval[0] for a in alone)


def test_certificates_within_strata_are_those_of_the_worst_stratum():
    scores, sex, stratum = departments(30_000)
    rule = fit(scores, sex, stratum)
    kinds = {bound.name: bound for bound in rule.certificate(0.95).bounds}
    assert set(kinds) == {"beta", "kl", "pairs", "dkw"}
    assert [kind for kind, bound in kinds.items() if bound.is_theorem] == ["pairs", "dkw"]
    alone = [quiet_fit(scores[stratum == k], sex[stratum == k]).certificate(0.95 ** (1 / 3)) for k in range(3)]
    assert kinds["beta"].limit == pytest.approx(max(c.estimated for c in alone), rel=1e-3)
    assert rule.certificate().proven == kinds["pairs"].limit
    assert str(rule.certificate()).startswith("Largest gap within a stratum in the population: estimated limit")


@pytest.mark.parametrize("seed", range(3))
def test_certificates_within_strata_hold(seed):
    """95% of 60 certificates cover the worst stratum of a population with known rates."""
    from scipy.stats import beta

    rng = np.random.default_rng(seed)
    covered = 0
    for _ in range(60):
        stratum, sex = rng.integers(3, size=1200), rng.integers(2, size=1200)
        scores = rng.beta(2.0 + sex * (1 + stratum), 2.5)
        rule = fit(scores, sex, stratum, ramp_width=0)
        true = [
            1 - beta.cdf(threshold, 2.0 + s * (1 + k), 2.5)
            for (k, s), threshold in zip(rule.groups, rule.thresholds, strict=True)
        ]
        worst = max(abs(a - b) for a, b in zip(true[::2], true[1::2], strict=True))
        covered += worst <= rule.certificate(0.95).estimated
    assert covered >= 52


def test_a_check_within_strata_checks_each_stratum():
    scores, sex, stratum = departments(30_000)
    rule = fit(scores, sex, stratum)
    assert not rule.check(scores, sex, strata=stratum).has_drifted
    drifted = np.where((stratum == 1) & (sex == 1), scores * 0.6, scores)
    assert rule.check(drifted, sex, strata=stratum).has_drifted


def test_each_stratum_is_checked_against_its_own_limit():
    """A small stratum with a wide limit does not hide drift in a large one."""
    scores, sex, stratum = departments(60_000, 2, seed=8)
    stratum[:] = 0
    stratum[:60] = 1
    rule = fit(scores, sex, stratum)
    found = rule.check(np.clip(scores + 0.2 * sex * (stratum == 0), 0, 1), sex, strata=stratum)
    assert found.has_drifted
    assert found.stratum == 0
    assert found.limit < 0.05
    assert "Stratum: 0." in repr(found).replace("\n", " ")


def test_a_check_ignores_rows_of_unseen_strata():
    scores, sex, stratum = departments(6000)
    rule = fit(scores, sex, stratum, unseen_group="original")
    found = rule.check(scores, sex, strata=np.where(np.arange(6000) < 3000, stratum, 9))
    assert sum(found.rows) == 3000
    with pytest.raises(InputError, match="None of the rows belongs to a group that the rule was fitted on"):
        rule.check(scores, sex, strata=stratum + 10)


def test_a_rule_for_all_rows_can_be_measured_within_strata():
    scores, sex, stratum = departments(3000)
    rule = quiet_fit(scores, sex)
    within = fairramp.audit(scores, sex, rule=rule, strata=stratum)
    assert within.after.gap > 0.05 > 1e-9 > fairramp.audit(scores, sex, rule=rule).after.gap


def test_one_group_in_every_stratum_warns():
    scores, _, stratum = departments()
    with pytest.warns(FairrampWarning, match=r"^Every stratum has only one group: nothing to equalize\.$"):
        fairramp.fit_rule(scores, np.zeros(600, int), strata=stratum)


def test_labels_do_not_move_a_stratum_with_one_group():
    scores, sex, stratum = departments(3000)
    sex[stratum == 1] = 0
    labels = (np.random.default_rng(9).random(3000) < scores**2).astype(int)
    rule = fit(scores, sex, stratum, labels=labels, target_rate="accuracy")
    assert dict(zip(rule.groups, rule.thresholds, strict=True))[1, 0] == 0.5


def test_the_shortcut_for_many_strata_finds_the_worst_one():
    """Leaving most strata out of the exact quantile does not change the worst one."""
    scores, sex, stratum = departments(6000, 12, seed=10)
    rule = fit(scores, sex, stratum)
    alone = [
        quiet_fit(scores[stratum == k], sex[stratum == k]).certificate(0.95 ** (1 / 12)).estimated
        for k in range(12)
    ]
    assert rule.certificate(0.95).estimated == pytest.approx(max(alone), rel=1e-3)


def test_decisions_and_table_use_strata():
    scores, sex, stratum = departments()
    rule = quiet_fit(scores, sex, strata=pd.Series(stratum, name="department"))
    ids = np.arange(600)
    drawn = rule.decide(scores, sex, strata=stratum, ids=ids, key=KEY)
    expected = fairramp.draws(ids, KEY) < rule.probabilities(scores, sex, stratum)
    np.testing.assert_array_equal(drawn, expected)
    assert list(rule.table().columns)[:2] == ["stratum", "group"]
    assert "department" in str(rule.table())
    assert "equal selection rates within each of 3 strata" in repr(rule)


def test_integer_weights_equal_repeated_rows_within_strata():
    scores, sex, stratum = departments(300)
    weights = np.random.default_rng(7).integers(1, 4, 300)
    weighted = fit(scores, sex, stratum, sample_weight=weights)
    repeated = fit(*(np.repeat(column, weights) for column in (scores, sex, stratum)))
    np.testing.assert_allclose(
        weighted.probabilities(scores, sex, stratum), repeated.probabilities(scores, sex, stratum), atol=1e-9
    )


def people(n_rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    sex, department = rng.choice(["f", "m"], n_rows), rng.choice(["a", "b", "c"], n_rows)
    skill = rng.normal(size=n_rows) + 0.8 * (sex == "m")
    y = (skill + rng.logistic(size=n_rows) > 0.5).astype(int)
    return pd.DataFrame({"skill": skill, "department": department}), y, sex


def test_the_estimator_takes_strata_from_columns_of_x():
    frame, y, sex = people()
    inner = LogisticRegression().fit(frame[["skill"]].to_numpy(), y)

    class BySkill(LogisticRegression):
        def predict_proba(self, x):
            return inner.predict_proba(x[["skill"]].to_numpy())

    model = FrozenEstimator(BySkill().fit(frame[["skill"]].to_numpy(), y))
    settings = {"strata": "department", "target_rate": "optimal"}
    fair = fairramp.RandomizedThresholdOptimizer(model, **settings).fit(frame, y, sensitive_features=sex)
    scores = inner.predict_proba(frame[["skill"]].to_numpy())[:, 1]
    direct = fairramp.fit_rule(scores, sex, strata=frame["department"])
    np.testing.assert_allclose(
        fair.predict_proba(frame, sensitive_features=sex)[:, 1],
        direct.probabilities(scores, sex, frame["department"]),
        atol=1e-12,
    )
    assert fair.rule_.columns.strata == ("department",)
    more, more_y, more_sex = people(seed=1)
    fair.partial_fit(more, more_y, sensitive_features=more_sex)
    assert sum(fair.rule_.record.rows) == 4000
    kept = people(seed=2)[0]
    kept["department"] = np.arange(2000) % 3
    fresh = fairramp.RandomizedThresholdOptimizer(model, **settings).fit(kept, y, sensitive_features=sex)
    kept.loc[:, "department"] = (kept["department"] + 1) % 3
    before = np.bincount(np.arange(2000) % 3).tolist()
    fresh.partial_fit(kept, y, sensitive_features=sex)
    assert [sum(fresh.rule_.record.rows[i : i + 2]) for i in (0, 2, 4)] == [
        a + b for a, b in zip(before, np.bincount(kept["department"]).tolist(), strict=True)
    ]
    with pytest.raises(InputError, match="`strata` has changed since `fit`"):
        fair.set_params(strata=None).partial_fit(more, more_y, sensitive_features=more_sex)
    with pytest.raises(InputError, match=r"`strata` names 'division', but X has the columns"):
        fair.set_params(strata="division").fit(frame, y, sensitive_features=sex)
