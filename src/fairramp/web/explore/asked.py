"""What the page asks for: columns of the file and settings of a fit, checked before anything is done."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairramp.core.scales import SCALES
from fairramp.errors import FairrampError, FairrampWarning, InputError
from fairramp.fit.settings import Settings

#: What the controls of the page are called, by argument or option.
_CONTROLS = {
    "criterion": "Make equal",
    "max_gap": "Largest gap",
    "min_ratio": "Lowest ratio",
    "cutoff": "Cutoff",
    "target_rate": "How many are selected",
    "overall_rate": "How many are selected: a budget",
    "labels": "Outcome",
    "label": "Outcome",
    "positive": "Value that means yes",
    "score": "Score",
    "scores": "Score",
    "group": "Group",
    "groups": "Group",
    "scale": "Scale",
    "higher_is_better": "Low scores are good",
    "lower_is_better": "Low scores are good",
}
#: What the choices of a control are called.
CRITERIA = {
    "parity": "selection rates",
    "equal_opportunity": "true positive rates",
    "predictive_equality": "false positive rates",
    "equalized_odds": "both error rates",
}
TARGETS = {
    "": "automatic",
    "optimal": "optimal by the scores",
    "accuracy": "most accurate",
    "balanced_accuracy": "best balanced accuracy",
    "base_rate": "share of positive outcomes",
    "number": "a rate of my own",
    "budget": "a budget: share of all people",
}
_CHOICES = CRITERIA | TARGETS
#: Texts that the page may send, and how long they may be.
_LONGEST = 1_000


@dataclass(frozen=True)
class Choice:
    """Columns of the file, and what their values mean.

    Attributes
    ----------
    score, group : str
        Names of columns.
    label, positive : str or None
        Name of the column with outcomes, and the value that means yes.
    scale : str
        Scale of the scores.
    """

    score: str
    group: str
    label: str | None
    positive: str | None
    scale: str

    @classmethod
    def of(cls, asked: Any) -> "Choice":
        """Check what the page sent; columns are looked up when the file is read."""
        words = _Words(asked, "columns")
        scale = words.text("scale")
        if scale not in SCALES:
            raise InputError("must be one of {known}", argument="scale", got=scale, known=", ".join(SCALES))
        score, group = words.needed("score"), words.needed("group")
        label = words.text("label") or None
        return cls(score, group, label, (words.text("positive") or None) if label else None, scale)


def settings_of(asked: Any, choice: Choice) -> Settings:
    """The settings of a fit, checked by the library."""
    words = _Words(asked, "settings")
    limit, target = words.text("limit"), words.text("target")
    if limit not in ("max_gap", "min_ratio"):
        raise InputError("The limit must be max_gap or min_ratio", got=limit)
    given: dict[str, Any] = {limit: words.number("value"), "cutoff": words.number("cutoff")}
    if target == "budget":
        given["overall_rate"] = words.number("rate", "Type the share of people to select, in percent")
    elif target == "number":
        given["target_rate"] = words.number("rate", "Type the rate, in percent")
    elif target:
        given["target_rate"] = target
    if given[limit] is None:
        raise InputError("Type a number for the limit")
    if limit == "max_gap":
        _check_percent("max_gap", given[limit], "points")
    if target in ("number", "budget"):
        name = "overall_rate" if target == "budget" else "target_rate"
        _check_percent(name, given[name], "percent")
    return Settings(
        criterion=words.text("criterion"),
        scale=choice.scale,
        higher_is_better=not words.yes("lower_is_better"),
        **given,
    )


def _check_percent(argument: str, share: float, unit: str) -> None:
    """Refuse a share that is not one in the unit in which it is typed."""
    if not 0 <= share <= 1:
        rule = "must be between 0 and 100 {unit}, got {typed:.12g}"
        raise InputError(rule, argument=argument, unit=unit, typed=100 * share)


class _Words:
    """An object that the page sent."""

    def __init__(self, asked: Any, what: str) -> None:
        if not isinstance(asked, Mapping):
            raise InputError("The request has no {what}", what=what)
        self._asked = asked

    def text(self, name: str) -> str:
        """A text; "" if it is missing."""
        value = self._asked.get(name)
        if value is not None and (not isinstance(value, str) or len(value) > _LONGEST or "\0" in value):
            raise InputError("{name} must be a text of at most {most:,} characters", name=name, most=_LONGEST)
        return value or ""

    def needed(self, name: str) -> str:
        """A text that must be there."""
        text = self.text(name)
        if not text:
            raise InputError("Choose the column with the {name}", name=name)
        return text

    def yes(self, name: str) -> bool:
        """Whether something holds."""
        return self._asked.get(name) is True

    def number(self, name: str, missing: str = "") -> float | None:
        """A number with the digits that a command shows; None if it is missing."""
        value = self._asked.get(name)
        if value is None:
            if missing:
                raise InputError(missing)
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError("{name} must be a number", name=name, got=value)
        return float(f"{value:.12g}")


def told(error: FairrampError | FairrampWarning) -> str:
    """A message of the library in the words of the page."""
    return named(error.told(lambda name, value: f"--{name} {value}".rstrip()))


def named(text: str) -> str:
    """A message with the names of the page's controls in place of options."""

    def control(found: re.Match[str]) -> str:
        name = _CONTROLS.get(found[1].replace("-", "_"))
        return (
            found[0] if name is None else f"“{name}{f': {_CHOICES.get(found[2], found[2])}' if found[2] else ''}”"
        )

    words = "|".join([*filter(None, _CHOICES), *SCALES, "False"])
    text = re.sub(rf"--([a-z][a-z_-]*[a-z])(?: ({words})\b)?", control, text)
    text = text.replace("Low scores are good: False", "Low scores are good")
    text = text.replace("swap 0 and 1 in “Outcome”", "type the other value as “Value that means yes”")
    return re.sub(r"\bpass\b(?= [\d.])", "type", re.sub(r"\bpass\b(?! [\d.])", "choose", text))
