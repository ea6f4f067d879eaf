"""fairramp: equal selection rates or error rates across groups, from any classifier's scores.

Names are loaded on first use, which keeps the command line fast to start.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairramp._version import __version__

if TYPE_CHECKING:
    from fairramp import baselines, datasets
    from fairramp.core.ramps import Ramp
    from fairramp.core.table import Table
    from fairramp.data.bins import GroupScores
    from fairramp.data.columns import Columns
    from fairramp.data.probable import GroupProbabilities
    from fairramp.data.summarize import summarize, summarize_frame
    from fairramp.errors import (
        FairrampError,
        FairrampWarning,
        InputError,
        MonitorFormatError,
        RuleFormatError,
        SummaryFormatError,
        UnseenGroupError,
        UnsupportedError,
    )
    from fairramp.fit.classes import fit_class_rule
    from fairramp.fit.fit import fit_rule
    from fairramp.fit.frames import fit_frame
    from fairramp.fit.sgd import SGD
    from fairramp.fit.shortlist import Shortlist, select
    from fairramp.fit.stream import StreamingFit
    from fairramp.fit.summary import fit_summary
    from fairramp.measure import bounds
    from fairramp.measure.audit import audit
    from fairramp.measure.audited import Audit
    from fairramp.measure.certificate import Certificate, rows_needed
    from fairramp.measure.class_audit import audit_classes
    from fairramp.measure.class_audited import ClassAudit, ClassSelection
    from fairramp.measure.class_frontier import ClassFrontier, class_frontier
    from fairramp.measure.drift import Check
    from fairramp.measure.frontier import Frontier, frontier
    from fairramp.measure.group_model import GroupModel
    from fairramp.measure.hidden import HiddenSplit, hidden_split
    from fairramp.measure.monitor import Monitor
    from fairramp.measure.rates import GroupRates, Selection
    from fairramp.measure.tune import Tuned, tune
    from fairramp.rule.class_record import ClassRecord
    from fairramp.rule.class_rule import ClassRule
    from fairramp.rule.draws import draws
    from fairramp.rule.limits import Bound
    from fairramp.rule.record import Asked, FitRecord, Rates
    from fairramp.rule.rule import Rule
    from fairramp.show.answers import Answer
    from fairramp.show.evidence import Evidence, evidence
    from fairramp.show.report import Report
    from fairramp.sklearn.estimator import RandomizedThresholdOptimizer

__all__ = [
    "SGD",
    "Answer",
    "Asked",
    "Audit",
    "Bound",
    "Certificate",
    "Check",
    "ClassAudit",
    "ClassFrontier",
    "ClassRecord",
    "ClassRule",
    "ClassSelection",
    "Columns",
    "Evidence",
    "FairrampError",
    "FairrampWarning",
    "FitRecord",
    "Frontier",
    "GroupModel",
    "GroupProbabilities",
    "GroupRates",
    "GroupScores",
    "HiddenSplit",
    "InputError",
    "Monitor",
    "MonitorFormatError",
    "Ramp",
    "RandomizedThresholdOptimizer",
    "Rates",
    "Report",
    "Rule",
    "RuleFormatError",
    "Selection",
    "Shortlist",
    "StreamingFit",
    "SummaryFormatError",
    "Table",
    "Tuned",
    "UnseenGroupError",
    "UnsupportedError",
    "__version__",
    "audit",
    "audit_classes",
    "baselines",
    "bounds",
    "class_frontier",
    "datasets",
    "draws",
    "evidence",
    "fit_class_rule",
    "fit_frame",
    "fit_rule",
    "fit_summary",
    "frontier",
    "hidden_split",
    "rows_needed",
    "select",
    "summarize",
    "summarize_frame",
    "tune",
]

#: Module that defines each public name.
_HOMES = {
    name: home
    for home, names in {
        "baselines": ("baselines",),
        "core.ramps": ("Ramp",),
        "core.table": ("Table",),
        "data.columns": ("Columns",),
        "data.bins": ("GroupScores",),
        "data.probable": ("GroupProbabilities",),
        "data.summarize": ("summarize", "summarize_frame"),
        "datasets": ("datasets",),
        "errors": (
            "FairrampError",
            "FairrampWarning",
            "InputError",
            "MonitorFormatError",
            "RuleFormatError",
            "SummaryFormatError",
            "UnseenGroupError",
            "UnsupportedError",
        ),
        "fit.summary": ("fit_summary",),
        "fit.classes": ("fit_class_rule",),
        "fit.fit": ("fit_rule",),
        "fit.frames": ("fit_frame",),
        "fit.sgd": ("SGD",),
        "fit.shortlist": ("Shortlist", "select"),
        "fit.stream": ("StreamingFit",),
        "measure.audit": ("audit",),
        "measure.audited": ("Audit",),
        "measure.bounds": ("bounds",),
        "measure.certificate": ("Certificate", "rows_needed"),
        "measure.class_audit": ("audit_classes",),
        "measure.class_audited": ("ClassAudit", "ClassSelection"),
        "measure.class_frontier": ("ClassFrontier", "class_frontier"),
        "measure.drift": ("Check",),
        "measure.frontier": ("Frontier", "frontier"),
        "measure.group_model": ("GroupModel",),
        "measure.hidden": ("HiddenSplit", "hidden_split"),
        "measure.monitor": ("Monitor",),
        "measure.rates": ("GroupRates", "Selection"),
        "measure.tune": ("Tuned", "tune"),
        "rule.class_record": ("ClassRecord",),
        "rule.class_rule": ("ClassRule",),
        "rule.draws": ("draws",),
        "rule.limits": ("Bound",),
        "rule.record": ("Asked", "FitRecord", "Rates"),
        "rule.rule": ("Rule",),
        "show.answers": ("Answer",),
        "show.evidence": ("Evidence",),
        "show.evidence.make": ("evidence",),
        "show.report": ("Report",),
        "sklearn.estimator": ("RandomizedThresholdOptimizer",),
    }.items()
    for name in names
}


#: Packages that are imported by their own names.
_IMPORTED = {
    "compat": "fairramp.compat.fairlearn",
    "deploy": "fairramp.deploy.sql",
    "mlflow": "fairramp.mlflow",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _HOMES:
        from fairramp.core.checks import nearest

        also = {"load": "Rule.load", "fit": "fit_rule", "metricframe": "audit", "selection_rate": "audit"}
        near = None if name.startswith("_") else nearest(name, __all__, also)
        if name in _IMPORTED:
            near = f"import it first: import {_IMPORTED[name]}"
        raise AttributeError(f"module 'fairramp' has no attribute {name!r}{f'; {near}' if near else ''}")
    home = import_module(f"fairramp.{_HOMES[name]}")
    globals()[name] = value = getattr(home, name, home)  # some public names are modules
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
