"""A rule as a torch module, in double precision.

    scores, group codes      →  probability       clip((x − foot_k) / width_k, 0, 1)
    scores, group codes, u   →  probability, decision

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
from fairramp.data.files import write_bytes
from fairramp.deploy.plan import Plan, codes_of
from fairramp.errors import InputError, installing
from fairramp.rule.rule import Rule

try:
    import torch
    from torch import Tensor
except ImportError:
    raise ImportError(f"torch is not installed; install it with: {installing('torch')}") from None


#: Names of the extra files in a saved program.
_RULE, _ABOUT = "fairramp.rule.json", "fairramp.json"


class RampModule(torch.nn.Module):
    """Probability of a positive decision from scores and group codes.

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
        self.n_groups = len(rule.groups)
        self.slopes, self.steps, self.on_scores = plan.slopes, plan.steps, plan.on_scores
        self.register_buffer("bits", torch.from_numpy(np.ascontiguousarray(plan.numbers).view(np.int64)))

    def codes(self, groups: Any, strata: Any = None) -> Tensor:
        """Code group labels of any kind that `Rule.probabilities` accepts."""
        return torch.from_numpy(codes_of(self.rule, groups, strata))

    def forward(self, scores: Tensor, groups: Tensor) -> Tensor:
        """Return probabilities of a positive decision in double precision, NaN for rejected rows."""
        if scores.shape != groups.shape:
            raise ValueError("scores and groups must have the same shape")
        if groups.is_floating_point() or groups.is_complex():
            raise ValueError("groups must be integers, as returned by codes")
        groups = groups.to(torch.int64)
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
        known = (groups >= 0) & (groups < self.n_groups)
        code = torch.where(known, groups, torch.full_like(groups, self.n_groups))
        numbers = torch.view_copy(self.bits, dtype=torch.float64)  # TorchScript has no `view` with another dtype
        chance, width = nan, numbers[1][code]
        if self.steps:
            compared = score if self.on_scores else x
            low, high, tie = numbers[2][code], numbers[3][code], numbers[4][code]
            below = torch.where(compared < low, zero, nan)
            chance = torch.where(compared > high, one, torch.where(compared >= low, tie, below))
        if self.slopes:
            height = (x - numbers[0][code]) / width
            slope = torch.where(height <= 0.0, zero, torch.where(height >= 1.0, one, height))
            chance = torch.where(width > 0.0, slope, chance)
        return chance


class DecidingModule(torch.nn.Module):
    """Probability and decision from scores, group codes and draws u.

    Parameters
    ----------
    rule : Rule
        The rule to export.
    """

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.ramps = RampModule(rule)

    def codes(self, groups: Any, strata: Any = None) -> Tensor:
        """Code group labels; see `RampModule.codes`."""
        return self.ramps.codes(groups, strata)

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


def to_torch(rule: Rule, *, decisions: bool = False) -> RampModule | DecidingModule:
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
    module = DecidingModule(rule) if decisions else RampModule(rule)
    module.eval()
    return module


def save(rule: Rule, path: str | os.PathLike[str], *, decisions: bool = False) -> None:
    """Save a rule as a `torch.export` program, a .pt2 file that runs without fairramp.

    The file also contains fairramp.json, which identifies the rule and describes the inputs, and
    fairramp.rule.json, the rule itself, whose order of groups defines the codes.
    """
    if not os.fspath(path).lower().endswith(".pt2"):
        raise InputError("must end in .pt2", argument="path", got=os.fspath(path))
    inputs = {
        "scores: float64, one per row": torch.float64,
        "groups: int64 codes": torch.int64,
        **({"u: float64, from fairramp.draws": torch.float64} if decisions else {}),
    }
    example = tuple(torch.zeros(2, dtype=dtype) for dtype in inputs.values())
    program = torch.export.export(
        to_torch(rule, decisions=decisions),
        example,
        dynamic_shapes=({0: torch.export.Dim("rows")},) * len(example),
    )
    about = {
        "rule": rule.fingerprint,
        "version": __version__,
        "scale": rule.scale,
        "higher_is_better": rule.higher_is_better,
        "inputs": list(inputs),
        "undecided": "probability NaN, decision -1",
    }
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about its own format
        torch.export.save(program, buffer, extra_files={_RULE: rule.to_json(), _ABOUT: json.dumps(about)})
    write_bytes(Path(path), buffer.getvalue(), "the program")
