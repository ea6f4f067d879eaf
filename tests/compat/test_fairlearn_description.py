"""Fairlearn's description of a rule is exact, and its plot shows what the rule does."""
# ruff: noqa: N806 -- scikit-learn's name is X

import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from fairramp import InputError, Ramp
from fairramp.compat.fairlearn import ThresholdOptimizer, plot_threshold_optimizer
from fairramp.compat.fairlearn.thresholder import RampOperation, ThresholdOperation, operations
from fairramp.core.scales import scale_of

pd = pytest.importorskip("pandas", reason="pandas is not installed")
peer = pytest.importorskip("fairlearn.postprocessing", reason="Fairlearn is not installed")

SIMPLE = (
    "demographic_parity",
    "true_positive_rate_parity",
    "false_negative_rate_parity",
    "false_positive_rate_parity",
    "true_negative_rate_parity",
)


def evaluated(entry, values):
    """Fairlearn's formula."""
    found = entry.p0 * entry.operation0(values) + entry.p1 * entry.operation1(values)
    if "p_ignore" in entry:
        found = entry.p_ignore * entry.prediction_constant + (1 - entry.p_ignore) * found
    return found


def around(rng, places, low=-np.inf, high=np.inf):
    """Values at, just beside and far from some places."""
    at = np.asarray(places, dtype=float)
    near = [at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf), at + rng.normal(size=len(at))]
    far = 10.0 ** rng.uniform(-9, 9, 50)
    return np.clip(np.concatenate([*near, far, -far]), low, high)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function", "predict"])
@pytest.mark.parametrize("constraints", [*SIMPLE, "equalized_odds"])
def test_the_description_gives_every_value_the_probability_of_the_rule(small, constraints, method, flip):
    X, y, sex = small
    model = LogisticRegression().fit(X[["logit"]], y)
    if flip:
        X = X.assign(logit=X["logit"] * np.where(sex == "Female", -1, 1))
    options = {"constraints": constraints, "predict_method": method, "flip": flip, "tol": 0.05}
    post = ThresholdOptimizer(estimator=model, prefit=True, **options)
    post.fit(X[["logit"]], y, sensitive_features=sex)
    assert len(post.flipped_groups_) == flip
    thresholder = post.interpolated_thresholder_
    values = getattr(post.estimator_, method)(X[["logit"]])
    values = values[:, 1] if method == "predict_proba" else values
    chances = post._pmf_predict(X[["logit"]], sensitive_features=sex)[:, 1]
    rng = np.random.default_rng(0)
    for group, entry in thresholder.interpolation_dict.items():
        rows = (sex == group).to_numpy()
        np.testing.assert_array_equal(evaluated(entry, values[rows]), chances[rows])
        places = [op.threshold for op in (entry.operation0, entry.operation1) if np.isfinite(op.threshold)]
        bounds = (0, 1) if method == "predict_proba" else (-np.inf, np.inf)
        anywhere = around(rng, places, *bounds)
        turned = 0.0 - anywhere if group in post.flipped_groups_ else anywhere
        expected = thresholder.rule.probabilities(turned, [group] * len(turned))
        np.testing.assert_array_equal(evaluated(entry, anywhere), expected)
        assert entry.p0 + entry.p1 == 1
        assert ("p_ignore" in entry) == (constraints == "equalized_odds")
        assert entry.operation0.operator == ("<" if group in post.flipped_groups_ else ">")
    json.dumps(thresholder.interpolation_dict, default=str)


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("scale", ["probability", "real"])
@pytest.mark.parametrize(
    "ramp", [Ramp(0.4, 0.0, 0.3), Ramp(0.0, 0.0, 1.0), Ramp(0.2, 0.3), Ramp(-0.1, 0.5), Ramp.constant(0.3)]
)
def test_every_ramp_is_two_operations(ramp, scale, falling):
    rng, scale = np.random.default_rng(1), scale_of(scale)
    (p0, strict), (p1, lenient) = operations(ramp, scale, falling=falling)
    low, high = (0.0, 1.0) if scale.name == "probability" else (-np.inf, np.inf)
    values = around(rng, [op.threshold for op in (strict, lenient) if np.isfinite(op.threshold)], -high, high)
    values = values if scale.name == "real" else np.clip(values, *((-1, 0) if falling else (low, high)))
    expected = ramp.chance(scale.position(0.0 - values if falling else values))
    np.testing.assert_array_equal(p0 * strict(values) + p1 * lenient(values), expected)
    assert (strict(values) <= lenient(values)).all()


@pytest.mark.parametrize("constraints", SIMPLE)
def test_the_operation_with_the_lower_rate_comes_first_as_in_fairlearn(small, constraints):
    X, y, sex = small
    options = {"estimator": LogisticRegression(), "constraints": constraints, "predict_method": "predict"}
    for kind in (ThresholdOptimizer, peer.ThresholdOptimizer):
        post = kind(**options).fit(X, y, sensitive_features=sex)
        for entry in post.interpolated_thresholder_.interpolation_dict.values():
            thresholds = entry.operation0.threshold, entry.operation1.threshold
            falls = constraints in ("false_negative_rate_parity", "true_negative_rate_parity")
            assert (thresholds[0] < thresholds[1]) == falls


def test_operations_look_like_those_of_fairlearn():
    from fairlearn.postprocessing._threshold_operation import ThresholdOperation as Theirs

    values = np.array([0.2, 0.5, 0.7])
    for operator in "<>":
        ours, theirs = (kind(operator, 0.5) for kind in (ThresholdOperation, Theirs))
        assert repr(ours) == repr(theirs) == f"[{operator}0.5]"
        assert (ours(values) == theirs(values)).all()
        assert (ours.operator, ours.threshold) == (theirs.operator, theirs.threshold)
        assert (ours._operator, ours._threshold) == (theirs._operator, theirs._threshold)
        assert ours(0.6) == theirs(0.6)
    for kind in (ThresholdOperation, Theirs):
        with pytest.raises(ValueError, match="Unrecognized operator: ="):
            kind("=", 0.5)
    ramp = RampOperation(">", 0.5, Ramp.centered(0.5, 0.25), scale_of("probability"))
    assert repr(ramp) == "[ramp from 0.375 to 0.625]"
    assert ramp([0.375, 0.5, 0.625]).tolist() == [0, 0.5, 1]


# The plot -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("constraints", [*SIMPLE, "equalized_odds"])
def test_curves_are_those_of_thresholds_and_never_above_the_hulls_of_fairlearn(small, constraints):
    X, y, sex = small
    y = np.asarray(y)
    options = {"estimator": LogisticRegression(), "constraints": constraints}
    ours, theirs = (
        kind(**options).fit(X, y, sensitive_features=sex)
        for kind in (ThresholdOptimizer, peer.ThresholdOptimizer)
    )
    assert (ours.x_metric_, ours.y_metric_) == (theirs.x_metric_, theirs.y_metric_)
    values = ours.estimator_.predict_proba(X)[:, 1]
    for group, curve in ours._tradeoff_curve.items():
        hull = theirs._tradeoff_curve[group]
        np.testing.assert_allclose(curve.x, hull["x"])
        assert (curve.y <= hull["y"] + 1e-9).all()
        assert curve.y[[0, -1]] == pytest.approx(hull["y"].to_numpy()[[0, -1]])
        # Every single threshold is on the curve or below, up to the steps of the grid.
        rows = (sex == group).to_numpy()
        for cut in np.quantile(values[rows], [0.3, 0.6, 0.9]):
            yes, truth = values[rows] >= cut, y[rows]
            rates = {
                "selection_rate": yes.mean(),
                "true_positive_rate": yes[truth == 1].mean(),
                "false_negative_rate": 1 - yes[truth == 1].mean(),
                "false_positive_rate": yes[truth == 0].mean(),
                "true_negative_rate": 1 - yes[truth == 0].mean(),
                "accuracy_score": (yes == truth).mean(),
            }
            drawn = np.interp(rates[ours.x_metric_], curve.x, curve.y)
            # Of several thresholds with the same rate, the best one is on the curve.
            assert drawn >= rates[ours.y_metric_] - 0.01
            assert drawn <= rates[ours.y_metric_] + (0.01 if constraints == "demographic_parity" else 1)


class Recorder:
    """Axes that keep what is drawn."""

    def __init__(self):
        self.drawn, self.labels = {}, []

    def plot(self, x, y, *_, label, **__):
        self.drawn[label] = np.asarray(x), np.asarray(y)

    def axvline(self, *, x, label, **_):
        self.drawn[label] = x

    def legend(self):
        self.labels.append("legend")

    def set_xlabel(self, text):
        self.labels.append(text)

    set_ylabel = set_xlabel


def drawn(small, **options):
    X, y, sex = small
    post = ThresholdOptimizer(estimator=LogisticRegression(), **options).fit(X, y, sensitive_features=sex)
    axes = Recorder()
    plot_threshold_optimizer(post, ax=axes, show_plot=False)
    return post, axes


def test_plot_shows_the_curves_and_the_solution(small):
    post, axes = drawn(small)
    groups = ["sensitive feature = Female", "sensitive feature = Male"]
    assert list(axes.drawn) == [*groups, "overall tradeoff curve", "solution"]
    assert axes.labels == ["legend", "selection_rate", "accuracy_score"]
    x, y = axes.drawn["overall tradeoff curve"]
    assert axes.drawn["solution"] == post._x_best
    assert np.interp(post._x_best, x, y) == pytest.approx(post._y_best, abs=1e-3)
    # Everyone's accuracy is that of the groups, by their sizes.
    share = (small[2] == "Male").mean()
    both = (1 - share) * axes.drawn[groups[0]][1] + share * axes.drawn[groups[1]][1]
    np.testing.assert_allclose(y, both)


def test_plot_with_tol_shows_the_rate_of_each_group(small):
    post, axes = drawn(small, tol=0.1)
    for group in ("Female", "Male"):
        rate = axes.drawn[f"constraint (sensitive feature = {group})"]
        assert rate == post._x_best_per_group[group]
    assert "solution" not in axes.drawn


def test_plot_of_equalized_odds_shows_the_overlap(small):
    post, axes = drawn(small, constraints="equalized_odds")
    curves = [axes.drawn[f"sensitive feature = {group}"][1] for group in ("Female", "Male")]
    np.testing.assert_array_equal(axes.drawn["overlap"][1], np.minimum(*curves))
    x, y = axes.drawn["solution"]
    assert (x, y) == (post._x_best, post._y_best)
    # No rule is above the hull of the overlap, which is what Fairlearn draws.
    theirs = peer.ThresholdOptimizer(estimator=LogisticRegression(), constraints="equalized_odds")
    theirs.fit(small[0], small[1], sensitive_features=small[2])
    assert np.interp(x, *axes.drawn["overlap"]) - 0.01 <= y <= np.interp(x, theirs._x_grid, theirs._y_min) + 1e-3


def test_plot_draws_with_matplotlib(small):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("agg")
    from matplotlib import pyplot

    X, y, sex = small
    post = ThresholdOptimizer(estimator=LogisticRegression()).fit(X, y, sensitive_features=sex)
    plot_threshold_optimizer(post, show_plot=False)
    axes = pyplot.gca()
    assert len(axes.get_lines()) == 4
    pyplot.close("all")


def test_plot_refuses_other_objects(small):
    for wrong in (LinearRegression(), None):
        with pytest.raises(InputError, match="must be a ThresholdOptimizer"):
            plot_threshold_optimizer(wrong)
    with pytest.raises(ValueError, match="not fitted"):
        plot_threshold_optimizer(ThresholdOptimizer(estimator=LogisticRegression()))
