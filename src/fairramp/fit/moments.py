"""Sums over rows with soft or overlapping groups, or several classes: all that the solver (`fit.dual`) sees.

Any engine can compute them: NumPy (`fit.affine_arrays`), a summary of cells (`fit.each`), a database
(`fit.probable_lazy`).
"""

from typing import NamedTuple, Protocol

from fairramp.core.curve import Floats


class Sums(NamedTuple):
    """What one pass over the rows computes, with z = (x − foot)/γ.

    Attributes
    ----------
    cost : float
        Σ w ξ, where ξ = γ · (0 if z ≤ 0, z²/2 if z < 1, z − ½ otherwise).
    selected : floats of shape (J,)
        Σ w Z_k h.
    curvature : floats of shape (J, J)
        Σ w Z_k Z_l / γ over the rows with 0 < z < 1.
    """

    cost: float
    selected: Floats
    curvature: Floats


class Moments(Protocol):
    """Sums over rows of known positions, memberships and weights.

    Used if present: an attribute `gram`, Σ w Z_k Z_l, which otherwise costs a pass; a method `coarser()` that
    returns the moments of a sample for a good start, or None; and a method `around()`, see `ArrayMoments`.
    """

    shares: Floats

    def at(self, shifts: Floats, width: float) -> Sums:
        """The sums at foot = cutoff − offset · width + Z @ shifts."""
