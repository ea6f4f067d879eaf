"""A rule as a torch module, in double precision.

    scores, group codes      →  probability       clip((x − foot_k) / width_k, 0, 1)
    scores, group codes, u   →  probability, decision

A rule that uses group probabilities takes a table of these instead of codes. A rule by each attribute takes a
table of codes, one column per attribute.

Tensors cannot hold text, so groups are codes: 0 … K−1 in the order of the rule; any other number is an unseen
group. The module's `codes` method makes them from labels. Rows that `Rule.probabilities` rejects get the
probability NaN and the decision −1, as in `fairramp.deploy.onnx`.

``model.half()`` and ``model.float()`` round every floating-point buffer of a model, even of a scripted one. The
numbers of a rule are therefore stored as the bits of their doubles, in int64.
"""

import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from fairramp._version import __version__
from fairramp.core.ramps import Floats
from fairramp.data.files import write_bytes
from fairramp.data.probable import SUM_TOLERANCE
from fairramp.deploy.plan import Mixture, Plan, codes_of
from fairramp.errors import InputError, installing
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule

try:
    import torch
    from torch import Tensor
except ImportError:
    raise ImportError(f"torch is not installed; install it with: {installing('torch')}") from None


#: Names of the extra files in a saved program.
_RULE, _ABOUT = "fairramp.rule.json", "fairramp.json"
#: What modules take for groups, and for draws.
CODES, SHARES = "groups: int64 codes", "groups: float64 probabilities, one column per group"
DRAWS = "u: float64, from fairramp.draws"


def bits_of(numbers: Floats) -> Tensor:
    """The bits of doubles, as integers."""
    return torch.from_numpy(np.ascontiguousarray(numbers).view(np.int64))


def known_codes(groups: Tensor, n_groups: int) -> Tensor:
    """The codes of groups, with the number of groups for all others."""
    if groups.is_floating_point() or groups.is_complex():
        raise ValueError("groups must be integers, as returned by codes")
    groups = groups.to(torch.int64)
    known = (groups >= 0) & (groups < n_groups)
    return torch.where(known, groups, torch.full_like(groups, n_groups))


def checked_shares(groups: Tensor, n_rows: int, n_groups: int) -> Tensor:
    """Group probabilities in double precision, if their shape and type are as required."""
    if groups.dim() != 2 or groups.size(0) != n_rows:
        raise ValueError("groups must have one row per score")
    if groups.size(1) != n_groups:
        raise ValueError("groups must have one column per group of the rule")
    if not groups.is_floating_point():
        raise ValueError("groups must be probabilities")
    return groups.to(torch.float64)


def sums_to_one(share: Tensor, tolerance: float) -> Tensor:
    """Which rows are probabilities that sum to 1."""
    likely = ((share >= 0.0) & (share <= 1.0 + tolerance)).all(dim=1)
    return likely & (torch.abs(share.sum(dim=1) - 1.0) <= tolerance)


def shares_of(rule: Rule | ClassRule, groups: Any, strata: Any) -> Tensor:
    """The probabilities of `GroupProbabilities`, in the order of the rule's groups."""
    rule.check_strata(strata)
    return torch.from_numpy(np.ascontiguousarray(rule.probable(groups).values.T))


class Ramps(torch.nn.Module):
    """What the modules of all rules have in common: the probability from a position and the numbers of a code.

    Parameters
    ----------
    rule : Rule
        The rule to export.
    """

    bits: Tensor

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        plan = Plan.of(rule)
        self.rule = rule
        self.low, self.high = rule.meaning.finite_range
        self.scale = rule.scale
        self.higher_is_better = rule.higher_is_better
        self.slopes, self.steps, self.on_scores = plan.slopes, plan.steps, plan.on_scores
        self.register_buffer("bits", bits_of(plan.numbers))

    def codes(self, groups: Any, strata: Any = None) -> Tensor:
        """Code group labels of any kind that `Rule.probabilities` accepts."""
        return torch.from_numpy(codes_of(self.rule, groups, strata))

    def inputs(self) -> dict[str, Tensor]:
        """What the module takes, each with an example of two rows."""
        described, example = self.example()
        return {"scores: float64, one per row": torch.zeros(2, dtype=torch.float64), described: example}

    def example(self) -> tuple[str, Tensor]:
        """What the module takes for groups, and an example of two rows."""
        return CODES, torch.zeros(2, dtype=torch.int64)

    def about(self) -> dict[str, Any]:
        """What to know about the scores."""
        return {"scale": self.rule.scale, "higher_is_better": self.rule.higher_is_better}

    def chances(self, scores: Tensor, code: Tensor, shift: Tensor) -> Tensor:
        """Probabilities of rows with these numbers, on ramps whose foot is shifted."""
        score = scores.to(torch.float64)
        nan = torch.full_like(score, float("nan"))
        zero, one = torch.zeros_like(score), torch.ones_like(score)
        score = torch.where((score >= self.low) & (score <= self.high), score, nan)
        x = score
        if self.scale == "logit":
            x = 1.0 / (1.0 + torch.exp(-score))
        if self.scale == "percent":
            x = score / 100.0
        if self.scale == "real":
            x = torch.where(torch.abs(score) > 0.5, torch.sign(score) - 0.25 / score, score)
        if not self.higher_is_better:
            x, score = -x, -score
        numbers = torch.view_copy(self.bits, dtype=torch.float64)  # TorchScript has no `view` with another dtype
        chance, width = nan, numbers[1][code]
        if self.steps:
            compared = score if self.on_scores else x
            low, high, tie = numbers[2][code], numbers[3][code], numbers[4][code]
            below = torch.where(compared < low, zero, nan)
            chance = torch.where(compared > high, one, torch.where(compared >= low, tie, below))
        if self.slopes:
            height = (x - (numbers[0][code] + shift)) / width
            slope = torch.where(height <= 0.0, zero, torch.where(height >= 1.0, one, height))
            chance = torch.where(width > 0.0, slope, chance)
        return chance


class RampModule(Ramps):
    """Probability of a positive decision from scores and group codes.

    Parameters
    ----------
    rule : Rule
        The rule to export.
    """

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self.n_groups = len(rule.groups)

    def forward(self, scores: Tensor, groups: Tensor) -> Tensor:
        """Return probabilities of a positive decision in double precision, NaN for rejected rows."""
        if scores.shape != groups.shape:
            raise ValueError("scores and groups must have the same shape")
        return self.chances(
            scores, known_codes(groups, self.n_groups), torch.zeros_like(scores, dtype=torch.float64)
        )


class EachModule(Ramps):
    """Probability of a positive decision from scores and the codes of several attributes, one column each.

    Parameters
    ----------
    rule : Rule
        The rule to export, by each attribute.
    """

    shift_bits: Tensor
    sizes: Tensor
    starts: Tensor

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        shifts = Mixture.of(rule).shifts
        sizes = np.array([len(part) for part in shifts])
        self.n_attributes = len(shifts)
        self.register_buffer("sizes", torch.from_numpy(sizes))
        self.register_buffer("starts", torch.from_numpy(np.cumsum(sizes) - sizes))
        self.register_buffer("shift_bits", bits_of(np.concatenate(shifts)))

    def example(self) -> tuple[str, Tensor]:
        """What the module takes for groups, and an example of two rows."""
        codes = torch.zeros((2, self.n_attributes), dtype=torch.int64)
        return "groups: int64 codes, one column per attribute", codes

    def forward(self, scores: Tensor, groups: Tensor) -> Tensor:
        """Return probabilities of a positive decision in double precision, NaN for rejected rows."""
        if groups.dim() != 2 or scores.dim() != 1 or groups.size(0) != scores.size(0):
            raise ValueError("groups must have one row per score")
        if groups.size(1) != self.n_attributes:
            raise ValueError("groups must have one column per attribute")
        if groups.is_floating_point() or groups.is_complex():
            raise ValueError("groups must be integers, as returned by codes")
        groups = groups.to(torch.int64)
        known = (groups >= 0) & (groups < self.sizes)
        place = torch.where(known, groups, torch.zeros_like(groups)) + self.starts
        shifts = torch.view_copy(self.shift_bits, dtype=torch.float64)[place]
        unseen = torch.logical_not(known.all(dim=1)).to(torch.int64)
        return self.chances(scores, unseen, shifts.sum(dim=1))


class MixingModule(Ramps):
    """Probability of a positive decision from scores and group probabilities, one column per group.

    Parameters
    ----------
    rule : Rule
        The rule to export, by group probabilities.
    """

    shift_bits: Tensor

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        (shifts,) = Mixture.of(rule).shifts
        self.n_groups, self.tolerance = len(shifts), SUM_TOLERANCE
        self.register_buffer("shift_bits", bits_of(np.array(shifts)))

    def example(self) -> tuple[str, Tensor]:
        """What the module takes for groups, and an example of two rows."""
        return SHARES, torch.full((2, self.n_groups), 1.0 / self.n_groups, dtype=torch.float64)

    def codes(self, groups: Any, strata: Any = None) -> Tensor:
        """The probabilities of `GroupProbabilities`, in the order of the rule's groups."""
        return shares_of(self.rule, groups, strata)

    def forward(self, scores: Tensor, groups: Tensor) -> Tensor:
        """Return probabilities of a positive decision in double precision, NaN for rejected rows."""
        if scores.dim() != 1:
            raise ValueError("scores must have one number per row")
        share = checked_shares(groups, scores.size(0), self.n_groups)
        shift = (share * torch.view_copy(self.shift_bits, dtype=torch.float64)).sum(dim=1)
        sound = sums_to_one(share, self.tolerance)
        return self.chances(scores, torch.logical_not(sound).to(torch.int64), shift)


#: The module of a rule, by its membership.
_MODULES = {"known": RampModule, "each": EachModule, "probabilities": MixingModule}


class DecidingModule(torch.nn.Module):
    """Probability and decision from scores, group codes or probabilities, and draws u.

    Parameters
    ----------
    rule : Rule
        The rule to export.
    """

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.ramps = _MODULES[rule.membership](rule)

    def codes(self, groups: Any, strata: Any = None) -> Tensor:
        """Code group labels; see the `codes` of the module without decisions."""
        return self.ramps.codes(groups, strata)

    def inputs(self) -> dict[str, Tensor]:
        """What the module takes, each with an example of two rows."""
        return self.ramps.inputs() | {DRAWS: torch.zeros(2, dtype=torch.float64)}

    def about(self) -> dict[str, Any]:
        """What to know about the scores."""
        return self.ramps.about()

    def forward(self, scores: Tensor, groups: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return probabilities, and decisions in int8: 1, 0, or −1 for undecided rows.

        `u` comes from `fairramp.draws`, in double precision.
        """
        if scores.shape != u.shape:
            raise ValueError("scores and u must have the same shape")
        if u.dtype != torch.float64:
            raise ValueError("u must be float64, as returned by fairramp.draws")
        chance = self.ramps(scores, groups)
        yes, no = torch.ones_like(chance), torch.zeros_like(chance)
        undecided = torch.full_like(chance, -1.0)
        drawn = torch.where((u >= 0.0) & (u < 1.0), torch.where(u < chance, yes, no), undecided)
        decision = torch.where(chance <= 0.0, no, torch.where(chance >= 1.0, yes, drawn))
        return chance, torch.where(torch.isnan(chance), undecided, decision).to(torch.int8)


def to_torch(rule: Rule, *, decisions: bool = False) -> Ramps | DecidingModule:
    """Make a torch module from a rule.

    Parameters
    ----------
    rule : Rule
        The rule to export.
    decisions : bool, default False
        Whether the module also takes `u` and returns decisions.

    Examples
    --------
    >>> import torch
    >>> from fairramp import Ramp, Rule
    >>> module = to_torch(Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1))))
    >>> module(torch.tensor([0.48, 0.48]), module.codes(["A", "B"]))
    tensor([0.3000, 1.0000], dtype=torch.float64)
    """
    module = DecidingModule(rule) if decisions else _MODULES[rule.membership](rule)
    module.eval()
    return module


def save(rule: Rule | ClassRule, path: str | os.PathLike[str], *, decisions: bool = False) -> None:
    """Save a rule as a `torch.export` program, a .pt2 file that runs without fairramp.

    The file also contains fairramp.json, which identifies the rule and describes the inputs, and
    fairramp.rule.json, the rule itself, whose order of groups defines the codes.
    """
    if not os.fspath(path).lower().endswith(".pt2"):
        raise InputError("must end in .pt2", argument="path", got=os.fspath(path))
    module = rule.to_torch(decisions=decisions)
    inputs = module.inputs()
    program = torch.export.export(
        module,
        tuple(inputs.values()),
        dynamic_shapes=({0: torch.export.Dim("rows")},) * len(inputs),
    )
    about = {
        "rule": rule.fingerprint,
        "version": __version__,
        **module.about(),
        "inputs": list(inputs),
        "undecided": "probability NaN, decision -1",
    }
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about its own format
        torch.export.save(program, buffer, extra_files={_RULE: rule.to_json(), _ABOUT: json.dumps(about)})
    write_bytes(Path(path), buffer.getvalue(), "the program")
