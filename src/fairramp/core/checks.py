"""Validation of single arguments."""

import sys
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from fairramp.errors import FairrampError, InputError, UnsupportedError

#: In narrower ramps, rounding of a threshold could change the selection rate by more than 1e-9.
MIN_RAMP_WIDTH = 1e-6
#: Wider ramps are typing errors.
MAX_RAMP_WIDTH = 1e6
#: Shares that users may give in percent.
_SHARES = ("confidence", "target_rate", "overall_rate")
#: Differences of rates, which users may give in percentage points.
_GAPS = ("max_gap", "max_gaps", "fail_above", "fail_unless_below")

#: Names in Fairlearn and scikit-learn, and names of other functions of ours: what they may be called here.
_ELSEWHERE = {
    **dict.fromkeys(("constraint", "constraints"), ("criterion",)),
    "criterion": ("constraints",),
    "objective": ("target_rate",),
    **dict.fromkeys(("tol", "tolerance", "difference_bound"), ("max_gap",)),
    **dict.fromkeys(("max_gap", "ratio_bound"), ("tol", "min_ratio")),
    **dict.fromkeys(
        ("sensitive_features", "sensitive_feature", "protected_attribute"),
        ("groups", "group", "sensitive_columns"),
    ),
    **dict.fromkeys(("groups", "group"), ("groups", "group", "sensitive_features", "sensitive_columns")),
    "control_features": ("strata",),
    **dict.fromkeys(("y", "y_true"), ("labels", "label")),
    **dict.fromkeys(("y_pred", "y_prob", "y_score"), ("scores", "score", "probabilities")),
    **dict.fromkeys(("weight", "weights", "sample_weight"), ("sample_weight", "weight")),
    "rng": ("random_state",),
    "threshold": ("cutoff",),
    "key": ("key_file",),
    "seed": ("random_state", "random_seed"),
    "batch_name": ("batch",),
    "format": ("to",),
    "target": ("to", "label"),
    "database": ("dialect",),
    **dict.fromkeys(("sensitive", "protected"), ("group",)),
}


def check_length(name: str, length: int, n_rows: int, of: str = "scores") -> None:
    """Raise if a column's length differs from that of another, usually the scores."""
    if length != n_rows:
        raise InputError(
            "has {length} rows but {" + of + "} has {n_rows}; the lengths must match",
            argument=name,
            length=length,
            n_rows=n_rows,
        )


def check_number(name: str, value: Any, low: float, high: float) -> float:
    """Return `value` as a float if it is in [low, high]; booleans are rejected."""
    if not is_real(value) or not low <= value <= high:
        raise InputError(
            "must be {number}between {low:.10g} and {high:.10g}"
            if high < sys.float_info.max
            else "must be a finite number",
            number="" if is_real(value) else "a number ",
            argument=name,
            got=value,
            remedy=_slip(name, value),
            low=low,
            high=high,
        )
    return float(value)


def check_ratio(name: str, value: Any) -> float:
    """Return `value` as a float if it is in (0, 1]; booleans are rejected."""
    if not is_real(value) or not 0 < value <= 1:
        remedy = "0.8 means that the lowest rate is at least 80% of the highest"
        if is_real(value) and 1 < value <= 100:
            remedy = f"for {value:g}%, pass {value / 100:g}"
        raise InputError("must be a number above 0 and at most 1", argument=name, got=value, remedy=remedy)
    return float(value)


def _slip(name: str, value: Any) -> str | None:
    """Suggest a correction for a value given as a percentage."""
    percent = float(value) if is_real(value) and 1 < value <= 100 else None
    if name in _GAPS:
        return f"{percent or 2:g} percentage points are {(percent or 2) / 100:g}"
    return f"for {percent:g}%, pass {percent / 100:g}" if name in _SHARES and percent else None


def checked_whole(name: str, value: Any, lowest: int = 1) -> int:
    """Return `value` as an int of at least `lowest`; booleans are rejected."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < lowest:
        rule = "must be a positive integer" if lowest == 1 else "must be an integer of at least {lowest}"
        raise InputError(rule, argument=name, got=value, lowest=lowest)
    return int(value)


def check_date(value: Any) -> None:
    """Raise if a date is not text."""
    if value is not None and not isinstance(value, str):
        raise InputError(
            "must be a string",
            argument="date",
            got=value,
            remedy="pass, for example, date.today().isoformat()",
        )


def check_flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError("must be True or False", argument=name, got=value)
    return bool(value)


def is_real(value: Any) -> bool:
    """Whether a value is a real number; a boolean is not."""
    return type(value) is float or (  # fast path: a rule may have ten thousand ramps
        isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    )


def checked_band(max_gap: Any, min_ratio: Any) -> dict[str, float | None]:
    """Return the maximum gap and the minimum ratio, of which one is given; without either, the gap is 0."""
    if max_gap is not None and min_ratio is not None:
        raise UnsupportedError(
            "{max_gap} and {min_ratio} exclude each other: both limit how far rates may be apart",
            remedy="remove one of the two",
        )
    if min_ratio is None:
        return {
            "max_gap": check_number("max_gap", 0.0 if max_gap is None else max_gap, 0.0, 1.0),
            "min_ratio": None,
        }
    return {"max_gap": None, "min_ratio": check_ratio("min_ratio", min_ratio)}


def checked_width(value: Any, name: str = "ramp_width") -> float:
    """Return a ramp width: 0, or wide enough for rounding not to matter."""
    if is_real(value) and (value == 0 or MIN_RAMP_WIDTH <= value <= MAX_RAMP_WIDTH):
        return float(value)
    raise InputError(
        "must be 0 or between 1e-6 and 1e6",
        argument=name,
        got=value,
        remedy="with 0, only tied scores are decided at random",
    )


def check_option(name: str, value: Any, allowed: Collection[str], also: Mapping[str, str] | None = None) -> str:
    """Return `value` if it is one of the allowed words; `also` maps common synonyms to allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(
            "must be one of {allowed}" if len(allowed) > 1 else "must be {allowed}",
            argument=name,
            got=value,
            remedy=nearest(value, allowed, also),
            allowed=", ".join(map(repr, allowed)),
        )
    return value


def nearest(value: Any, allowed: Collection[str], also: Mapping[str, str] | None = None) -> str | None:
    """A question about the allowed word that the user probably meant, for a word of the library."""
    near = meant(value, allowed, also)
    return None if near is None else f"did you mean {near!r}?"


def elsewhere(name: str, known: Collection[str]) -> str | None:
    """The known keyword for what other libraries call `name`."""
    return next((word for word in _ELSEWHERE.get(name, ()) if word in known), None)


def check_keywords(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise, as Python does, if a function is called with an unknown keyword; name the one that was meant."""
    for name in [name for name in given if name not in known]:
        word = elsewhere(name, known)
        hint = f"did you mean {word!r}?" if word else nearest(name, known)
        if name == "prefit" and "sensitive_columns" in known:
            hint = "for a trained classifier, pass sklearn.frozen.FrozenEstimator(model)"
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{f'; {hint}' if hint else ''}")


def meant(value: Any, allowed: Collection[str], also: Mapping[str, str] | None = None) -> str | None:
    """The allowed word that the user probably meant."""
    from difflib import get_close_matches

    word = value.strip().lower() if isinstance(value, str) else ""
    known = dict(also or {}) | {allowed_word.lower(): allowed_word for allowed_word in allowed}
    return next((known[near] for near in get_close_matches(word, known, n=1)), None)


def library(name: str, *parts: str, install: str | None = None) -> Any:
    """Import an optional library and the given submodules; `install` is the command that installs it."""
    try:
        module, *_ = (import_module(path) for path in (name, *(f"{name}.{part}" for part in parts)))
        return module
    except ImportError:
        raise FairrampError(
            "{name} is not installed",
            remedy="install it with: {command}",
            name=name,
            command=install or f"pip install {name}",
        ) from None
