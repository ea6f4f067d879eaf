"""fairramp: equal selection rates between groups, from any classifier's scores.

Names are loaded when they are first used, so that the command line answers at once.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fairramp._version import __version__

if TYPE_CHECKING:
    from fairramp import baselines, bounds, datasets
    from fairramp.audit import Audit, Selection, audit
    from fairramp.binned import GroupScores, summarize
    from fairramp.binned_fit import fit_summary
    from fairramp.certificate import Certificate, rows_needed
    from fairramp.checking import Check
    from fairramp.criteria.covariance import Covariance
    from fairramp.criteria.sgd import SGD
    from fairramp.decisions import draws
    from fairramp.estimator import RandomizedThresholdOptimizer
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
    from fairramp.record import FitRecord
    from fairramp.rule import Ramp, Rule
    from fairramp.streaming import StreamingFit
    from fairramp.table import Table
    from fairramp.tuning import Tuned, tune

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
    "Report",
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

_MODULES = ("baselines", "bounds", "datasets")
_NAMES = {
    "audit": (
        "Audit",
        "Selection",
        "audit",
    ),
    "binned": ("GroupScores", "summarize"),
    "binned_fit": ("fit_summary",),
    "certificate": (
        "Certificate",
        "rows_needed",
    ),
    "checking": ("Check",),
    "criteria.covariance": ("Covariance",),
    "criteria.sgd": ("SGD",),
    "decisions": ("draws",),
    "estimator": ("RandomizedThresholdOptimizer",),
    "exceptions": (
        "FairrampError",
        "FairrampWarning",
        "InputError",
        "RuleFormatError",
        "SummaryFormatError",
        "UnseenGroupError",
    ),
    "fitting": ("fit_rule",),
    "frames": ("fit_frame", "summarize_frame"),
    "frontier": (
        "Frontier",
        "frontier",
    ),
    "hidden": (
        "HiddenSplit",
        "hidden_split",
    ),
    "report": ("Report",),
    "record": ("FitRecord",),
    "rule": (
        "FitRecord",
        "Ramp",
        "Rule",
    ),
    "streaming": ("StreamingFit",),
    "table": ("Table",),
    "tuning": (
        "Tuned",
        "tune",
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


class _Package(ModuleType):
    """Keeps fairramp.audit the function when the module fairramp.audit is imported; frontier likewise."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOMES.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Load a public name."""
    if name in _MODULES:
        return import_module(f"fairramp.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'fairramp' has no attribute {name!r}")
    value = getattr(import_module(f"fairramp.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
