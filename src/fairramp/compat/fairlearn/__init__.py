"""A drop-in replacement for Fairlearn's ThresholdOptimizer and its plot. Fairlearn itself is not needed.

    constraints="demographic_parity", …       →   criterion = "parity", …
    objective="accuracy_score", …             →   target_rate = "accuracy", …
    tol                                       →   max_gap
    a mixture of two thresholds per group     →   one ramp per group: of width 0, except for equalized odds
    predict_proba, decision_function, predict →   the rule's scores, on the scale "probability" or "real"

To switch a script that uses ``from fairlearn.postprocessing import ThresholdOptimizer``, change the import. The
Notes of the class list the differences.
"""

from fairramp.compat.fairlearn.optimizer import ThresholdOptimizer
from fairramp.compat.fairlearn.plot import plot_threshold_optimizer

__all__ = ["ThresholdOptimizer", "plot_threshold_optimizer"]
