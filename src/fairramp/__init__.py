"""fairramp: equal selection rates between groups, from any classifier's scores."""

from fairramp import datasets
from fairramp._version import __version__
from fairramp.decisions import draws
from fairramp.exceptions import (
    FairrampError,
    FairrampWarning,
    InputError,
    RuleFormatError,
    UnseenGroupError,
)
from fairramp.fitting import fit_rule
from fairramp.rule import FitRecord, Ramp, Rule
from fairramp.table import Table

__all__ = [
    "FairrampError",
    "FairrampWarning",
    "FitRecord",
    "InputError",
    "Ramp",
    "Rule",
    "RuleFormatError",
    "Table",
    "UnseenGroupError",
    "__version__",
    "datasets",
    "draws",
    "fit_rule",
]
