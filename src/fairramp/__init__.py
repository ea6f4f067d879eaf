"""fairramp: equal selection rates between groups, from any classifier's scores."""

from typing import TYPE_CHECKING, Any

from fairramp import baselines, bounds, datasets
from fairramp._version import __version__
from fairramp.audit import Audit, Selection, audit
from fairramp.binned import GroupScores, fit_summary, summarize
from fairramp.certificate import Certificate, rows_needed
from fairramp.checking import Check
from fairramp.criteria.covariance import Covariance
from fairramp.criteria.sgd import SGD
from fairramp.decisions import draws
from fairramp.exceptions import (
    FairrampError,
    FairrampWarning,
    InputError,
    RuleFormatError,
    SummaryFormatError,
    UnseenGroupError,
)
from fairramp.fitting import fit_rule
from fairramp.frames import fit_frame, summarize_frame
from fairramp.frontier import Frontier, frontier
from fairramp.hidden import HiddenSplit, hidden_split
from fairramp.rule import FitRecord, Ramp, Rule
from fairramp.streaming import StreamingFit
from fairramp.table import Table
from fairramp.tuning import Tuned, tune

if TYPE_CHECKING:
    from fairramp.estimator import RandomizedThresholdOptimizer

__all__ = [
    "SGD",
    "Audit",
    "Certificate",
    "Check",
    "Covariance",
    "FairrampError",
    "FairrampWarning",
    "FitRecord",
    "Frontier",
    "GroupScores",
    "HiddenSplit",
    "InputError",
    "Ramp",
    "RandomizedThresholdOptimizer",
    "Rule",
    "RuleFormatError",
    "Selection",
    "StreamingFit",
    "SummaryFormatError",
    "Table",
    "Tuned",
    "UnseenGroupError",
    "__version__",
    "audit",
    "baselines",
    "bounds",
    "datasets",
    "draws",
    "fit_frame",
    "fit_rule",
    "fit_summary",
    "frontier",
    "hidden_split",
    "rows_needed",
    "summarize",
    "summarize_frame",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Import scikit-learn, which takes a second, only for those who use it."""
    if name == "RandomizedThresholdOptimizer":
        from fairramp.estimator import RandomizedThresholdOptimizer

        return RandomizedThresholdOptimizer
    raise AttributeError(f"module 'fairramp' has no attribute {name!r}")
