"""A pytest plugin that puts fairramp into the tests of Fairlearn or error-parity; see `scripts.fairlearn_tests`.

    pytest -p scripts.peer_plugin     with the environment variable FAIRRAMP_PEER=fairlearn, error_parity or,
                                      to test Fairlearn's own class with a grid of 630 steps, fine_grid

It replaces the peer's class, and for each test records as properties in the JUnit report: whether the test uses
the class and, for Fairlearn, how the last solution compares with Fairlearn's own on the same rows.
"""

import functools
import importlib.util
import os
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

import fairramp
from fairramp.compat import fairlearn as ours

PEER = os.environ["FAIRRAMP_PEER"]
#: A grid that contains the rates 4/7, 1/3, 2/3 and 8/9, which 1,000 steps do not.
FINE_GRID = 630
#: Properties of the running test.
_found: dict[str, Any] = {}


# Fairlearn ------------------------------------------------------------------------------------


def _refine_fairlearn() -> None:
    """Change the default grid of Fairlearn's own class."""
    import fairlearn.postprocessing as peer

    defaults = peer.ThresholdOptimizer.__init__.__kwdefaults__
    assert defaults["grid_size"] == 1000
    defaults["grid_size"] = FINE_GRID
    _stand_in_for_lightgbm()


def _stand_in_for_lightgbm() -> None:
    """Let scikit-learn's gradient boosting be LightGBM's if that is not installed."""
    if importlib.util.find_spec("lightgbm") is None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        stand_in: Any = types.ModuleType("lightgbm")
        stand_in.LGBMClassifier = HistGradientBoostingClassifier
        sys.modules["lightgbm"] = stand_in


def _replace_fairlearn() -> None:
    """Put our class and our plot wherever Fairlearn's can be imported from."""
    import fairlearn.postprocessing as peer

    theirs = peer.ThresholdOptimizer
    _observe(ours.ThresholdOptimizer, lambda post, given: _compared(theirs, post, *given))
    for name, module in list(sys.modules.items()):
        for replaced in ours.__all__ if name.startswith("fairlearn.postprocessing") else ():
            if hasattr(module, replaced):
                setattr(module, replaced, getattr(ours, replaced))
    _stand_in_for_lightgbm()


def _observe(kind: Any, look: Any) -> None:
    """Note every use of a class, and look at every fitted object."""
    init, fit = kind.__init__, kind.fit

    @functools.wraps(init)
    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        _found["uses"] = "yes"
        init(self, *args, **kwargs)

    @functools.wraps(fit)
    def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
        fitted = fit(self, *args, **kwargs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            look(self, (args, kwargs))
        return fitted

    kind.__init__, kind.fit = noted, seen


def _compared(theirs: Any, post: Any, args: Any, kwargs: Any) -> None:
    """Compare a solution with Fairlearn's on the fit rows, with the given grid and with one of 630 steps."""
    X = args[0] if args else kwargs["X"]  # noqa: N806
    groups = kwargs["sensitive_features"]
    labels = np.ravel(np.asarray(args[1] if len(args) > 1 else kwargs["y"], dtype=float))
    try:
        chances = {"ours": post._pmf_predict(X, sensitive_features=groups)[:, 1]}
        for name, grid in (("theirs", post.grid_size), ("fine", FINE_GRID)):
            other = theirs(**post.get_params(deep=False) | {"grid_size": grid}).fit(*args, **kwargs)
            chances[name] = other._pmf_predict(X, sensitive_features=groups)[:, 1]
    except Exception:  # a test double that works only once
        return
    _found["same decisions"] = float(np.abs(chances["ours"] - chances["theirs"]).max()) < 1e-9
    rates = {name: _rates(p, labels, groups, post.constraints) for name, p in chances.items()}
    _found["gap"] = float(np.ptp(rates["ours"], axis=0).max())
    _found["rates apart"] = float(np.abs(rates["ours"] - rates["theirs"]).max())
    _found["rates apart on the fine grid"] = float(np.abs(rates["ours"] - rates["fine"]).max())
    for name in ("ours", "theirs"):
        _found[f"accuracy {name}"] = _objective("accuracy_score", chances[name], labels)
        _found[f"objective {name}"] = _objective(post.objective, chances[name], labels)


def _objective(name: str, chances: Any, labels: Any) -> float:
    """An expected objective over all rows."""
    right = np.where(labels == 1, chances, 1 - chances)
    negative, positive = (float(right[labels == label].mean()) for label in (0, 1))
    return {
        "accuracy_score": float(right.mean()),
        "balanced_accuracy_score": (negative + positive) / 2,
        "selection_rate": float(chances.mean()),
        "true_positive_rate": positive,
        "true_negative_rate": negative,
    }[name]


def _rates(chances: Any, labels: Any, groups: Any, constraints: str) -> Any:
    """The rates that are made equal, of shape (groups, 1 or 2)."""
    table = np.asarray(groups)
    keys = table if table.ndim == 1 else np.array(["/".join(map(str, row)) for row in table])
    wanted = {
        "equalized_odds": (0, 1),
        "true_positive_rate_parity": (1,),
        "false_negative_rate_parity": (1,),
        "false_positive_rate_parity": (0,),
        "true_negative_rate_parity": (0,),
    }.get(constraints, (None,))
    rows = [[(keys == key) & (label is None or labels == label) for label in wanted] for key in np.unique(keys)]
    return np.array([[chances[cell].mean() for cell in cells] for cells in rows])


# error-parity ---------------------------------------------------------------------------------

_CRITERIA = {
    "equalized_odds": "equalized_odds",
    "true_positive_rate_parity": "equal_opportunity",
    "false_negative_rate_parity": "equal_opportunity",
    "false_positive_rate_parity": "predictive_equality",
    "true_negative_rate_parity": "predictive_equality",
    "demographic_parity": "parity",
}


def _replace_error_parity() -> None:
    """Put a class with error-parity's interface and a rule of fairramp wherever its own can be imported from.

    Violations and costs are still computed by error-parity, from the ROC points of the rule.
    """
    import error_parity
    from error_parity import threshold_optimizer

    class RelaxedThresholdOptimizer(threshold_optimizer.RelaxedThresholdOptimizer):  # type: ignore[misc]
        """error-parity's class with a rule of fairramp."""

        def fit(self, X: Any, y: Any, *, group: Any, **_: Any) -> Any:  # noqa: N803
            """Fit a rule to the predictor's scores."""
            if self.l_p_norm != np.inf:
                raise NotImplementedError("fairramp limits the largest gap, not an l1 or l2 norm")
            scores, labels = self.predictor(X), np.asarray(y)
            self._rule = fairramp.fit_rule(
                scores,
                group,
                labels,
                criterion=_CRITERIA[self.constraint],
                max_gap=self.tolerance,
                target_rate="accuracy",
                costs=(self.false_pos_cost, self.false_neg_cost),
                ramp_width=0.0,
            )
            chances = self._rule.probabilities(scores, group)
            each = [group == g for g in np.unique(group)]
            self._groupwise_roc_points = np.array(
                [[chances[rows & (labels == label)].mean() for label in (0, 1)] for rows in each]
            )
            self._groupwise_prevalence = np.array([labels[rows].mean() for rows in each])
            self._global_roc_point = np.array([chances[labels == label].mean() for label in (0, 1)])
            self._global_prevalence = labels.mean()
            self._realized_classifier = self._rule  # marks it as fitted
            return self

        def __call__(self, X: Any, *, group: Any) -> Any:  # noqa: N803
            """Draw decisions."""
            source = np.random.default_rng([self.seed, 1])  # the tests draw the scores from the seed itself
            return self._rule.decide(self.predictor(X), group, random_state=source).astype(int)

    reshape = np.reshape

    @functools.wraps(reshape)
    def accepting_newshape(a: Any, shape: Any = None, *, newshape: Any = None, **more: Any) -> Any:
        return reshape(a, shape if newshape is None else newshape, **more)

    np.reshape = accepting_newshape  # error-parity uses an argument that NumPy 2.4 no longer has
    _observe(RelaxedThresholdOptimizer, lambda *_: None)
    for module in (error_parity, threshold_optimizer):
        module.RelaxedThresholdOptimizer = RelaxedThresholdOptimizer


{"fairlearn": _replace_fairlearn, "fine_grid": _refine_fairlearn, "error_parity": _replace_error_parity}[PEER]()


# pytest ---------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of a plugin that Fairlearn's tests use."""
    config.addinivalue_line("markers", "uncollect_if(func): leave out combinations for which func is true")


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Leave out the combinations of parameters that Fairlearn's tests exclude."""
    excluded = [
        item
        for item in items
        if (mark := item.get_closest_marker("uncollect_if")) and mark.kwargs["func"](**item.callspec.params)
    ]
    config.hook.pytest_deselected(items=excluded)
    items[:] = [item for item in items if item not in set(excluded)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Any:
    """Add what was found to the report."""
    _found.clear()
    try:
        return (yield)
    finally:
        item.user_properties += [(name, str(value)) for name, value in _found.items()]
