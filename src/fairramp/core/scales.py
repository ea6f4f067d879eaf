"""Score scales: stated by the user, checked, never guessed.

    probability   x in [0, 1]      yes at 0.5 or above
    percent       x in [0, 100]    yes at 50 or above; divided by 100 first
    signed        x in [−1, 1]     yes at 0 or above
    logit         any finite x     yes at 0 or above; converted to 1/(1 + e^−x) first
    real          any finite x     no default; x itself from −½ to ½, beyond that ±(1 − 1/(4|x|))

A *position* is the number that the solver and the rule work with: the score itself, or what it is converted to.
If lower scores are better, positions are the negatives of these numbers, so a higher position is always better,
no digit is lost and equal scores stay equal. Ramps are in positions. Thresholds for people are in the direction
and the units of the scores, except that those of logits are probabilities.

The conversion of real scores is smooth and, near 0, the identity. As each of its operations is monotone, even
with rounding, a better score never gets a worse position; x/(1 + |x|) would put one in 30 neighbors into the
wrong order. Every machine computes the same bits.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import check_flag, check_number, check_option, is_real
from fairramp.errors import InputError

#: 1/(1 + e^−x) is exactly 1.0 in float64 at this x and above.
SATURATION = 36.7368005696771
#: Real scores beyond this differ by less than 0.0025 in position, which is less than most ramps.
FAR = 100.0
#: A classifier's probabilities may be outside [0, 1] by this much: rounding, even in float32.
ROUNDING = 1e-6
#: Probabilities are kept this far from 0 and 1 before taking logits, which would be infinite there.
NEAREST = 1e-4
_UNBOUNDED = (-math.inf, math.inf)
_LARGEST = float(np.finfo(np.float64).max)

_LOWER_NOTE = "Lower scores are better: the probability of selection rises as the score falls along the ramp."
_NOTES = {
    "logit": ["Thresholds and ramps are probabilities, 1/(1 + exp(-logit))."],
    "percent": ["Thresholds and ramps are percentages, like the scores."],
}
Floats = npt.NDArray[np.float64]
_Numbers = TypeVar("_Numbers", float, Floats)


def _same(x: Floats) -> Floats:
    return x


def _share(x: Floats) -> Floats:
    return x / 100.0


def _logistic(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))


def _squeezed(x: Floats) -> Floats:
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(np.abs(x) > 0.5, np.copysign(1.0, x) - 0.25 / x, x)


def _percent(x: Floats) -> Floats:
    return x * 100.0


def _unsqueezed(x: Floats) -> Floats:
    left = np.maximum(1.0 - np.abs(x), 0.0)  # to the end of the range
    with np.errstate(divide="ignore"):
        return np.where(np.abs(x) > 0.5, np.copysign(0.25 / left, x), x)


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
    default_cutoff : float or None
        Score at which a classifier selects unless the user says otherwise; None if the user must say it.
    forward : function
        From scores to positions, if higher scores are better.
    backward : function
        From positions to the numbers in tables, if higher scores are better.
    shown_per_unit : float
        Factor from widths of ramps to the numbers that users pass on the command line and see.
    only_ordered : bool
        Whether nothing but the order of the scores has a meaning; otherwise they stand for probabilities.
    crowded_beyond : float or None
        Scores beyond this have equal, or nearly equal, positions; None if there are none.
    higher_is_better : bool
        Whether high scores lead to the favorable decision; otherwise positions are negated.
    """

    name: str
    lowest: float
    highest: float
    score_range: tuple[float, float]
    default_cutoff: float | None
    forward: Callable[[Floats], Floats] = _same
    backward: Callable[[Floats], Floats] = _same
    shown_per_unit: float = 1.0
    only_ordered: bool = False
    crowded_beyond: float | None = None
    higher_is_better: bool = True

    @property
    def is_own(self) -> bool:
        """Whether a score is its own position, perhaps negated."""
        return self.forward is _same

    @property
    def is_unbounded(self) -> bool:
        """Whether any finite score is valid.

        Then extreme scores share a position, so cutoffs and the steps of exports are compared with scores.
        """
        return math.isinf(self.score_range[1])

    @property
    def finite_range(self) -> tuple[float, float]:
        """The lowest and the highest valid score; always finite."""
        return max(self.score_range[0], -_LARGEST), min(self.score_range[1], _LARGEST)

    @property
    def cutoff_range(self) -> tuple[float, float]:
        """The lowest and the highest cutoff: exponentials of logits must not overflow."""
        return (-700.0, 700.0) if self.name == "logit" else self.finite_range

    def checked_cutoff(self, cutoff: Any) -> float:
        """Check a cutoff on this scale; None gives the default."""
        if self.name == "probability" and is_real(cutoff) and 1 < cutoff <= 100:
            raise InputError(
                "must be between 0 and 1",
                argument="cutoff",
                got=cutoff,
                remedy="for scores from 0 to 100, pass {scale:percent}",
            )
        if cutoff is not None:
            return check_number("cutoff", cutoff, *self.cutoff_range) + 0.0  # −0.0 is 0.0
        if self.default_cutoff is None:
            raise InputError(
                "Pass {cutoff}, the score at which the classifier says yes: {scale:"
                + self.name
                + "} has no default"
            )
        return self.default_cutoff

    def position(self, scores: npt.NDArray[Any]) -> Floats:
        """Convert scores to positions, in float64."""
        return self.turned(self.forward(scores.astype(np.float64, copy=False)))

    def position_of(self, score: float) -> float:
        """Convert one score to a position."""
        return float(self.position(np.array([score]))[0])

    def turned(self, numbers: _Numbers) -> _Numbers:
        """Numbers with higher ones better, from those in the direction of the scores; and the way back."""
        return numbers if self.higher_is_better else 0.0 - numbers  # never −0.0

    def crowded(self, scores: Any) -> Any:
        """Which scores, in an array or an expression, are beyond `crowded_beyond`."""
        limit = math.inf if self.crowded_beyond is None else self.crowded_beyond
        return (scores > limit) | (scores < -limit) if self.only_ordered else scores > limit

    def compared(self, scores: Floats) -> Floats:
        """What cutoffs and the steps of exports are compared with: positions, or unbounded scores themselves."""
        return self.turned(scores) if self.is_unbounded else self.position(scores)

    def compared_at(self, position: float) -> tuple[float, float]:
        """The lowest and the highest `compared` number whose position is exactly this one.

        Another engine may compute an exponential with a different last digit, so it cannot test positions for
        equality. If no score has that position, low is just above high.
        """
        if not self.is_unbounded:
            return position, position

        def first(reached: Callable[[float], bool]) -> float:
            low, high = -_ORDINALS - 1, _ORDINALS
            while low + 1 < high:
                middle = (low + high) // 2
                low, high = (
                    (low, middle) if reached(self.position_of(self.turned(_float_at(middle)))) else (middle, high)
                )
            return _float_at(high)

        low = first(lambda p: p >= position) if position > self.lowest else -_LARGEST
        high = first(lambda p: p > position) if position < self.highest else math.inf
        return low, math.nextafter(high, -math.inf)

    def shown(self, positions: _Numbers) -> _Numbers:
        """Positions as the numbers in tables, which readers compare with scores; infinite beyond the range."""
        found = self.backward(np.asarray(self.turned(positions)))
        return found if isinstance(positions, np.ndarray) else float(found)

    def shown_score(self, score: float) -> float:
        """A score as the number in tables: itself, or the probability of a logit."""
        return self.shown(self.position_of(score)) if self.name == "logit" else score

    def on_axis(self, shown: _Numbers) -> _Numbers:
        """Numbers in tables as coordinates in charts, which have room for all real scores."""
        if not self.only_ordered:
            return shown
        found = self.forward(np.asarray(shown))
        return found if isinstance(shown, np.ndarray) else float(found)

    @property
    def axis_range(self) -> tuple[float, float]:
        """The lowest and the highest coordinate in charts."""
        low, high = sorted(self.shown_per_unit * self.turned(end) for end in (self.lowest, self.highest))
        return low, high

    @property
    def side(self) -> str:
        """On which side of a threshold people are selected: above or below."""
        return "above" if self.higher_is_better else "below"

    @property
    def notes(self) -> list[str]:
        """Sentences that explain thresholds and ramps in tables."""
        return [*([] if self.higher_is_better else [_LOWER_NOTE]), *_NOTES.get(self.name, [])]


SCALES = {
    s.name: s
    for s in (
        Scale("probability", 0.0, 1.0, (0.0, 1.0), 0.5),
        Scale("percent", 0.0, 1.0, (0.0, 100.0), 50.0, _share, _percent, shown_per_unit=100.0),
        Scale("signed", -1.0, 1.0, (-1.0, 1.0), 0.0),
        Scale("logit", 0.0, 1.0, _UNBOUNDED, 0.0, _logistic, crowded_beyond=SATURATION),
        Scale("real", -1.0, 1.0, _UNBOUNDED, None, _squeezed, _unsqueezed, only_ordered=True, crowded_beyond=FAR),
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


#: Index of the largest float among all floats, 0 being that of 0.
_ORDINALS = 0x7FEF_FFFF_FFFF_FFFF


def _float_at(ordinal: int) -> float:
    """The float with an index among all floats: its bits are the index, mirrored below 0."""
    bits = ordinal if ordinal >= 0 else -(2**63) - ordinal
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def finite_logit(probabilities: Floats) -> Floats:
    """Logits of probabilities, which are first clipped to [1e-4, 1 − 1e-4]."""
    x = np.clip(probabilities, NEAREST, 1 - NEAREST)
    logits: Floats = np.log(x) - np.log1p(-x)
    return logits
