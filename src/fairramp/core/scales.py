"""Score scales: stated by the user, checked, never guessed.

    probability   x in [0, 1]      yes at 0.5 or above
    percent       x in [0, 100]    yes at 50 or above; divided by 100 first
    signed        x in [−1, 1]     yes at 0 or above
    logit         any finite x     yes at 0 or above; converted to 1/(1 + e^−x) first

A *position* is the number that the solver and the rule work with: the score itself, or its probability for logits
and percentages. If lower scores are better, positions are the negatives of these numbers, so a higher position is
always better, no digit is lost and equal scores stay equal. Ramps are in positions. Thresholds for people are in
the direction of the scores; tables show them in percent on the percent scale.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import check_flag, check_number, check_option

#: 1/(1 + e^−x) is exactly 1.0 in float64 at this x and above.
SATURATION = 36.7368005696771
#: A classifier's probabilities may be outside [0, 1] by this much: rounding, even in float32.
ROUNDING = 1e-6
#: Probabilities are kept this far from 0 and 1 before taking logits, which would be infinite there.
NEAREST = 1e-4
_LARGEST = float(np.finfo(np.float64).max)

_LOWER_NOTE = "Lower scores are better: the probability of selection rises as the score falls along the ramp."
_NOTES = {
    "logit": ["Thresholds and ramps are probabilities, 1/(1 + exp(-logit))."],
    "percent": ["Thresholds and ramps are percentages, like the scores."],
}
_Numbers = TypeVar("_Numbers", float, npt.NDArray[np.float64])


@dataclass(frozen=True)
class Scale:
    """A scale of scores.

    Attributes
    ----------
    name : str
        The name that users pass.
    lowest, highest : float
        Range of the positions.
    score_range : tuple of float
        Range of the scores as passed.
    default_cutoff : float
        Score at which a classifier selects unless the user says otherwise.
    higher_is_better : bool
        Whether high scores lead to the favorable decision; otherwise positions are negated.
    """

    name: str
    lowest: float
    highest: float
    score_range: tuple[float, float]
    default_cutoff: float
    higher_is_better: bool = True

    @property
    def shown_per_unit(self) -> float:
        """Factor from positions to the numbers in tables, which readers compare with scores."""
        return 100.0 if self.name == "percent" else 1.0

    @property
    def finite_range(self) -> tuple[float, float]:
        """The lowest and the highest valid score; always finite."""
        return max(self.score_range[0], -_LARGEST), min(self.score_range[1], _LARGEST)

    def checked_cutoff(self, cutoff: Any) -> float:
        """Check a cutoff on this scale; None gives the default."""
        if cutoff is None:
            return self.default_cutoff
        low, high = self.score_range
        return check_number("cutoff", cutoff, max(low, -700.0), min(high, 700.0)) + 0.0  # −0.0 is 0.0

    def position(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Convert scores to positions, in float64."""
        x = scores.astype(np.float64, copy=False)
        if self.name == "logit":
            with np.errstate(over="ignore"):
                return self.turned(1.0 / (1.0 + np.exp(-x)))
        return self.turned(x / 100.0 if self.name == "percent" else x)

    def turned(self, numbers: _Numbers) -> _Numbers:
        """Numbers with higher ones better, from those in the direction of the scores; and the way back."""
        return numbers if self.higher_is_better else 0.0 - numbers  # never −0.0

    def shown(self, positions: _Numbers) -> _Numbers:
        """Positions as the numbers in tables, which readers compare with scores."""
        return self.turned(positions) * self.shown_per_unit

    @property
    def shown_range(self) -> tuple[float, float]:
        """The lowest and the highest number in tables and charts."""
        low, high = sorted((self.shown(self.lowest), self.shown(self.highest)))
        return low, high

    @property
    def side(self) -> str:
        """On which side of a threshold people are selected: above or below."""
        return "above" if self.higher_is_better else "below"

    @property
    def notes(self) -> list[str]:
        """Sentences that explain thresholds and ramps in tables."""
        return [*([] if self.higher_is_better else [_LOWER_NOTE]), *_NOTES.get(self.name, [])]

    def position_of(self, score: float) -> float:
        """Convert one score to a position."""
        return float(self.position(np.array([score]))[0])


SCALES = {
    s.name: s
    for s in (
        Scale("probability", 0.0, 1.0, (0.0, 1.0), 0.5),
        Scale("percent", 0.0, 1.0, (0.0, 100.0), 50.0),
        Scale("signed", -1.0, 1.0, (-1.0, 1.0), 0.0),
        Scale("logit", 0.0, 1.0, (-float("inf"), float("inf")), 0.0),
    )
}


_LOWER_IS_BETTER = {
    name: replace(s, lowest=0.0 - s.highest, highest=0.0 - s.lowest, higher_is_better=False)
    for name, s in SCALES.items()
}


def scale_of(name: Any, higher_is_better: Any = True) -> Scale:
    """The scale of a name and a direction given by the user."""
    check_option("scale", name, SCALES)
    return (SCALES if check_flag("higher_is_better", higher_is_better) else _LOWER_IS_BETTER)[name]


def logits_at(threshold: float) -> tuple[float, float]:
    """The lowest and the highest logit that NumPy maps to exactly this threshold in [0, 1].

    Another engine may compute the exponential with a different last digit, so it cannot test for equality. If no
    logit has that probability, low is just above high.
    """

    def first(reached: Callable[[float], bool]) -> float:
        low, high = -1e4, 1e4
        while np.nextafter(low, high) < high:
            middle = (low + high) / 2
            low, high = (low, middle) if reached(SCALES["logit"].position_of(middle)) else (middle, high)
        return high

    low = first(lambda p: p >= threshold) if threshold > 0 else -_LARGEST
    high = float(np.nextafter(first(lambda p: p > threshold), -np.inf)) if threshold < 1 else _LARGEST
    return low, high


def finite_logit(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Logits of probabilities, which are first clipped to [1e-4, 1 − 1e-4]."""
    x = np.clip(probabilities, NEAREST, 1 - NEAREST)
    logits: npt.NDArray[np.float64] = np.log(x) - np.log1p(-x)
    return logits
