"""plot_threshold_optimizer: Fairlearn's picture of a solution, drawn with matplotlib."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from fairramp.compat.fairlearn.optimizer import ThresholdOptimizer
from fairramp.core.checks import library
from fairramp.errors import InputError


def plot_threshold_optimizer(threshold_optimizer: Any, ax: Any = None, show_plot: bool = True) -> None:
    """Draw what each group's thresholds achieve on the fit rows, and the solution.

    The curves show the objective over the rate that is made equal, for each group and for everyone; with
    equalized odds, they are ROC curves, with their overlap. Needs matplotlib.

    Parameters
    ----------
    threshold_optimizer : ThresholdOptimizer
        A fitted one.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default, new axes.
    show_plot : bool, default True
        Whether to call ``matplotlib.pyplot.show()``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairramp.compat.fairlearn import ThresholdOptimizer, plot_threshold_optimizer
    >>> rng = np.random.default_rng(0)
    >>> sex, X = rng.choice(["f", "m"], 200), rng.normal(size=(200, 1))
    >>> y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    >>> model = ThresholdOptimizer(estimator=LogisticRegression()).fit(X, y, sensitive_features=sex)
    >>> plot_threshold_optimizer(model)  # doctest: +SKIP
    """
    fitted = threshold_optimizer
    if not isinstance(fitted, ThresholdOptimizer):
        raise InputError("must be a ThresholdOptimizer", argument="threshold_optimizer", got=fitted)
    check_is_fitted(fitted)
    if ax is None or show_plot:
        pyplot = library("matplotlib", "pyplot", install="pip install matplotlib").pyplot
    axes = pyplot.axes() if ax is None else ax
    colors = {key: f"C{i % 10}" for i, key in enumerate(fitted._tradeoff_curve)}
    for key, curve in fitted._tradeoff_curve.items():
        axes.plot(curve.x, curve.y, color=colors[key], linewidth=2, label=f"sensitive feature = {key}")
    labels = fitted.x_metric_, fitted.y_metric_
    if fitted.constraints == "equalized_odds":
        overlap = {"color": (0.95, 0.90, 0.40), "linewidth": 8, "zorder": 1}
        axes.plot(fitted._x_grid, fitted._y_min, label="overlap", **overlap)
        axes.plot(fitted._x_best, fitted._y_best, "m*", markersize=10, label="solution")
        labels = r"$P[\hat{Y}=1|Y=0]$", r"$P[\hat{Y}=1|Y=1]$"
    elif fitted.tol:
        for key, rate in fitted._x_best_per_group.items():
            name = f"constraint (sensitive feature = {key})"
            axes.axvline(x=rate, label=name, linestyle="--", color=colors[key])
    else:
        everyone = fitted._overall_tradeoff_curve
        name = "overall tradeoff curve"
        axes.plot(everyone.x, everyone.y, color="black", linestyle="--", linewidth=2, label=name)
        axes.axvline(x=fitted._x_best, label="solution", linestyle=":", color="black")
    axes.legend()
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    if show_plot:
        pyplot.show()
