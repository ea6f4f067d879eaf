"""A rule for several classes as a torch module, in double precision.

    scores, group codes      →  probability       projection onto the simplex of (p − offset_k) / width
    scores, group codes, u   →  probability, decision

Scores and probabilities have one column per class, in the order of the rule's classes, and a decision is the
position of a class. Groups are codes or probabilities, and rejected rows get NaN and −1, as in
`fairramp.deploy.torch`. The projection is that of `core.simplex`, in the same order of operations.
"""

from typing import Any

import numpy as np

from fairramp.data.probable import SUM_TOLERANCE
from fairramp.deploy.plan import codes_of
from fairramp.errors import installing
from fairramp.rule.class_rule import ClassRule

try:
    import torch
    from torch import Tensor
except ImportError:
    raise ImportError(f"torch is not installed; install it with: {installing('torch')}") from None

from fairramp.deploy.torch import (
    CODES,
    DRAWS,
    SHARES,
    bits_of,
    checked_shares,
    known_codes,
    shares_of,
    sums_to_one,
)


class Offsets(torch.nn.Module):
    """What the modules of all rules for several classes have in common: the chances from scores and offsets.

    Parameters
    ----------
    rule : ClassRule
        The rule to export.
    """

    bits: Tensor

    def __init__(self, rule: ClassRule) -> None:
        super().__init__()
        self.rule = rule
        self.n_groups, self.n_classes = len(rule.groups), len(rule.classes)
        self.width, self.tolerance = rule.ramp_width, SUM_TOLERANCE

    def inputs(self) -> dict[str, Tensor]:
        """What the module takes, each with an example of two rows."""
        described, example = self.example()
        scores = torch.full((2, self.n_classes), 1.0 / self.n_classes, dtype=torch.float64)
        return {"scores: float64, one column per class": scores, described: example}

    def example(self) -> tuple[str, Tensor]:
        """What the module takes for groups, and an example of two rows."""
        return CODES, torch.zeros(2, dtype=torch.int64)

    def about(self) -> dict[str, Any]:
        """What to know about the scores and the decisions."""
        return {"classes": list(self.rule.classes)}

    def codes(self, groups: Any, strata: Any = None) -> Tensor:
        """Code group labels of any kind that `ClassRule.probabilities` accepts."""
        return torch.from_numpy(codes_of(self.rule, groups, strata))

    def checked(self, scores: Tensor) -> Tensor:
        """Scores in double precision, if they have one column per class."""
        if scores.dim() != 2 or scores.size(1) != self.n_classes:
            raise ValueError("scores must have one column per class of the rule")
        return scores.to(torch.float64)

    def chances(self, score: Tensor, offset: Tensor, rejected: Tensor, keeps_own: Tensor) -> Tensor:
        """Chances of rows with these offsets; NaN if they are rejected."""
        places = torch.arange(self.n_classes, device=score.device)
        chance = (places == score.argmax(dim=1, keepdim=True)).to(torch.float64)
        if self.width > 0.0:
            moved = score - offset
            z = (moved - moved.amax(dim=1, keepdim=True)) / self.width
            ordered = z.sort(dim=1, descending=True)[0]
            total = (ordered - (places == 0).to(torch.float64)).cumsum(dim=1)
            level = (total / (places + 1).to(torch.float64)).amax(dim=1, keepdim=True)
            ramped = torch.clamp(z - level, min=0.0)
            chance = torch.where(keeps_own.unsqueeze(1), chance, ramped)
        rejected = rejected | torch.logical_not(sums_to_one(score, self.tolerance))
        return torch.where(rejected.unsqueeze(1), torch.full_like(chance, float("nan")), chance)


class ClassModule(Offsets):
    """Chance of every class from scores and group codes.

    Parameters
    ----------
    rule : ClassRule
        The rule to export.
    """

    def __init__(self, rule: ClassRule) -> None:
        super().__init__(rule)
        self.unseen_keep_own = rule.unseen_group == "original"
        self.register_buffer("bits", bits_of(np.array([*rule.offsets, (0.0,) * len(rule.classes)])))

    def forward(self, scores: Tensor, groups: Tensor) -> Tensor:
        """Return the chance of every class in double precision, NaN for rejected rows."""
        score = self.checked(scores)
        if groups.dim() != 1 or groups.size(0) != scores.size(0):
            raise ValueError("groups must have one code per row of scores")
        code = known_codes(groups, self.n_groups)
        unseen = code == self.n_groups
        seen = torch.zeros_like(unseen)
        offset = torch.view_copy(self.bits, dtype=torch.float64)[code]
        if self.unseen_keep_own:
            return self.chances(score, offset, seen, unseen)
        return self.chances(score, offset, unseen, seen)


class ClassMixingModule(Offsets):
    """Chance of every class from scores and group probabilities, one column per group.

    Parameters
    ----------
    rule : ClassRule
        The rule to export, by group probabilities.
    """

    common: Tensor

    def __init__(self, rule: ClassRule) -> None:
        super().__init__(rule)
        common, shifts = rule.common_offsets
        self.register_buffer("common", bits_of(common))
        self.register_buffer("bits", bits_of(shifts))

    def example(self) -> tuple[str, Tensor]:
        """What the module takes for groups, and an example of two rows."""
        return SHARES, torch.full((2, self.n_groups), 1.0 / self.n_groups, dtype=torch.float64)

    def codes(self, groups: Any, strata: Any = None) -> Tensor:
        """The probabilities of `GroupProbabilities`, in the order of the rule's groups."""
        return shares_of(self.rule, groups, strata)

    def forward(self, scores: Tensor, groups: Tensor) -> Tensor:
        """Return the chance of every class in double precision, NaN for rejected rows."""
        score = self.checked(scores)
        share = checked_shares(groups, score.size(0), self.n_groups)
        shifts = torch.view_copy(self.bits, dtype=torch.float64)
        offset = share @ shifts + torch.view_copy(self.common, dtype=torch.float64)
        sound = sums_to_one(share, self.tolerance)
        return self.chances(score, offset, torch.logical_not(sound), torch.zeros_like(sound))


#: The module of a rule, by its membership.
_MODULES = {"known": ClassModule, "probabilities": ClassMixingModule}


class ClassDecidingModule(torch.nn.Module):
    """Chances and decision from scores, group codes or probabilities, and draws u.

    Parameters
    ----------
    rule : ClassRule
        The rule to export.
    """

    order: Tensor

    def __init__(self, rule: ClassRule) -> None:
        super().__init__()
        self.offsets = _MODULES[rule.membership](rule)
        self.register_buffer("order", torch.from_numpy(rule.order.astype(np.int64)))

    def codes(self, groups: Any, strata: Any = None) -> Tensor:
        """Code group labels; see the `codes` of the module without decisions."""
        return self.offsets.codes(groups, strata)

    def inputs(self) -> dict[str, Tensor]:
        """What the module takes, each with an example of two rows."""
        return self.offsets.inputs() | {DRAWS: torch.zeros(2, dtype=torch.float64)}

    def about(self) -> dict[str, Any]:
        """What to know about the scores and the decisions."""
        return self.offsets.about()

    def forward(self, scores: Tensor, groups: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return chances, and decisions in int64: the position of a class, or −1 for undecided rows.

        `u` comes from `fairramp.draws`, in double precision.
        """
        if u.dim() != 1 or u.size(0) != scores.size(0):
            raise ValueError("u must have one number per row of scores")
        if u.dtype != torch.float64:
            raise ValueError("u must be float64, as returned by fairramp.draws")
        chance = self.offsets(scores, groups)
        ordered = chance[:, self.order]
        cumulative = ordered.cumsum(dim=1)
        reached = (cumulative > u.unsqueeze(1)).to(torch.int64).argmax(dim=1)
        # Rounding can leave a sum slightly below 1; a draw above it gets the last possible class.
        last = ordered.size(1) - 1 - (ordered > 0.0).to(torch.int64).flip(1).argmax(dim=1)
        drawn = self.order[torch.where(u >= cumulative[:, -1], last, reached)]
        undecided = torch.full_like(drawn, -1)
        drawn = torch.where((u >= 0.0) & (u < 1.0), drawn, undecided)
        decision = torch.where(chance.amax(dim=1) >= 1.0, chance.argmax(dim=1), drawn)
        return chance, torch.where(torch.isnan(chance[:, 0]), undecided, decision)


def to_torch(rule: ClassRule, *, decisions: bool = False) -> Offsets | ClassDecidingModule:
    """Make a torch module from a rule for several classes; `fairramp.deploy.torch.save` saves it as a program.

    Parameters
    ----------
    rule : ClassRule
        The rule to export.
    decisions : bool, default False
        Whether the module also takes `u` and returns decisions: positions of classes.

    Examples
    --------
    >>> import torch
    >>> from fairramp import ClassRule
    >>> rule = ClassRule(("A", "B"), ("low", "mid", "high"), ((0.0, 0.0, 0.0), (0.05, 0.05, -0.1)), 0.1)
    >>> module = to_torch(rule)
    >>> module(torch.tensor([[0.2, 0.45, 0.35]] * 2, dtype=torch.float64), module.codes(["A", "B"]))
    tensor([[0.0000, 1.0000, 0.0000],
            [0.0000, 0.2500, 0.7500]], dtype=torch.float64)
    """
    module = ClassDecidingModule(rule) if decisions else _MODULES[rule.membership](rule)
    module.eval()
    return module
