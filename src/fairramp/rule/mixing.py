"""Rules that mix ramps: by group probabilities, or by each of several attributes.

    probabilities    foot = center + Σ_k q_k (foot_k − center)        over groups k with probabilities q_k
    each             foot = base + Σ_v (foot_v − base)                over the person's values v

The center is the foot of a ramp at the classifier's own cutoff.
"""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fairramp.core.cells import strata_slices, stratum_index
from fairramp.core.labels import Label, label_key, label_parts
from fairramp.core.ramps import OFFSETS, Ramp, total
from fairramp.data.classes import ClassSample
from fairramp.data.groups import Codes
from fairramp.data.probable import GroupProbabilities
from fairramp.data.sample import Sample, encode_cells
from fairramp.errors import InputError, UnsupportedError, warn

#: Rows with true groups and what a rule decides by.
_Rows = TypeVar("_Rows", Sample, ClassSample)


class Deciding:
    """The methods of a rule of any kind that check what it decides by: groups, strata or group probabilities."""

    @property
    def mixes(self: Any) -> bool:
        """Whether a person's ramp is a mixture of several."""
        return bool(self.membership != "known")

    def _group_conditions(self: Any) -> Iterator[tuple[bool, str]]:
        """Conditions on its groups and strata, each with the message if it fails."""
        keys = [label_key(label) for label in self.groups]
        yield bool(keys), "A rule needs at least one group"
        yield len(set(keys)) == len(keys), "The groups of a rule must be distinct"
        if self.stratified:
            yield (
                all(isinstance(label, tuple) and len(label) == 2 for label in self.groups),
                "The groups of a rule with strata must be pairs (stratum, group)",
            )
            yield sorted(keys) == keys, "The groups of a rule with strata must be in order, stratum by stratum"

    def _record_conditions(self: Any) -> Iterator[tuple[bool, str]]:
        """Conditions on its record, once its groups are known to be sound."""
        if self.record is not None:
            parts = None if self.parts is None else tuple(self.parts.tolist())
            yield self.record.strata == parts, "The strata of a rule's record must match those of its groups"

    def probable(self: Any, groups: Any) -> GroupProbabilities:
        """The group probabilities of new rows, in the order of the rule's groups; raises if these are missing."""
        if not isinstance(groups, GroupProbabilities):
            raise InputError(
                "This rule uses group probabilities: pass fairramp.GroupProbabilities with the groups {labels}",
                labels=list(self.groups),
            )
        return groups.ordered(self.groups)

    def deciding(self: Any, group_probabilities: Any) -> GroupProbabilities | None:
        """What the rule decides by beside the true groups; raises if it is missing, or not used."""
        if self.membership != "probabilities":
            if group_probabilities is not None:
                raise InputError("This rule uses {groups} and no {group_probabilities}; remove them")
            return None
        if group_probabilities is None:
            raise InputError(
                "This rule uses group probabilities: pass them as {group_probabilities}, and the true groups as "
                "{groups}"
            )
        found: GroupProbabilities = self.probable(group_probabilities)
        return found

    def with_truth(self: Any, sample: _Rows) -> _Rows:
        """The rows whose true group is known, for a rule that does not use it; warns about the others."""
        known = set(map(label_key, self.groups))
        assert sample.groups is not None
        labels = sample.groups.labels
        blank = np.array([label in (None, "") and label_key(label) not in known for label in labels])
        left_out = blank[sample.groups.block(0, len(sample))]
        if sample.membership is None or not left_out.any():
            return sample
        if left_out.all():
            raise InputError(
                "has no true group in any row", argument="groups", remedy="pass rows whose true group is known"
            )
        warn("{n:,} rows without a true group are left out", n=int(left_out.sum()))
        return sample.take(~left_out)

    def encode(self: Any, groups: Any, strata: Any = None) -> Codes:
        """Encode the groups of new rows; strata are required if and only if the rule has them."""
        self.check_strata(strata)
        if self.membership == "probabilities":
            raise UnsupportedError("A rule that uses group probabilities has no groups to encode")
        return encode_cells(groups, strata, self.columns)[1]

    def check_strata(self: Any, strata: Any) -> None:
        """Raise if strata are given but the rule has none, or missing but required.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> Rule(("A",), (Ramp(0.25, 0.5),)).check_strata(None)
        """
        if not self.stratified and strata is not None:
            raise InputError("This rule equalizes over all rows and does not use {strata}; remove them")
        if self.stratified and strata is None:
            names = self.columns.strata
            raise InputError(
                "This rule equalizes within strata: pass {strata}{names}, one label per row",
                names=f" ({', '.join(names)})" if names else "",
            )


class Mixing(Deciding):
    """The methods of a rule that mix its ramps."""

    @property
    def has_several_levels(self: Any) -> bool:
        """Whether there is no single target rate."""
        return self.stratified or bool(self.event.parts) or self.membership == "each"

    @property
    def parts(self: Any) -> npt.NDArray[np.intp] | None:
        """Index of the groups that each group is compared with: its stratum or attribute; None for all."""
        return stratum_index(self.groups) if self.stratified or self.membership == "each" else None

    @property
    def attributes(self: Any) -> list[tuple[str, dict[Any, Ramp]]]:
        """For "each", the name of every attribute and the ramps of its values, by their keys."""
        found: list[tuple[str, dict[Any, Ramp]]] = []
        for part in strata_slices(self.parts, len(self.groups)):
            pairs = zip(self.groups[part], self.ramps[part], strict=True)
            found.append((str(self.groups[part][0][0]), {label_key(label[1]): ramp for label, ramp in pairs}))
        return found

    @property
    def center(self: Any) -> float:
        """The foot around which ramps are mixed: that of a ramp at the classifier's own cutoff, or the base's."""
        if self.base is not None:
            return float(self.base.foot)
        return float(self.meaning.position_of(self.cutoff) - OFFSETS[self.ramp] * self.ramps[0].width)

    def check_attributes(self: Any, labels: Sequence[Label]) -> None:
        """Raise if labels do not have one value of each attribute."""
        for found in {len(label_parts(label)) for label in labels} - {len(self.attributes)}:
            raise InputError(
                "must have {n} columns ({names}), got {found}",
                argument="groups",
                n=len(self.attributes),
                names=", ".join(name for name, _ in self.attributes),
                found=found,
            )

    def _known_ramps(self: Any, labels: Sequence[Label]) -> list[Ramp | None]:
        """The ramp of each label; None for a label that the fit did not see."""
        if self.membership != "each":
            known = dict(zip(map(label_key, self.groups), self.ramps, strict=True))
            return [known.get(label_key(label)) for label in labels]
        assert self.base is not None
        base, found = self.base, list[Ramp | None]()
        by_value = [ramps for _, ramps in self.attributes]
        for label in labels:
            parts = label_parts(label)
            ramps = [known.get(label_key(part)) for part, known in zip(parts, by_value, strict=False)]
            if len(parts) != len(by_value) or None in ramps:
                found.append(None)
                continue
            foot = base.foot + total(ramp.foot - base.foot for ramp in ramps if ramp)
            found.append(Ramp(foot, base.width, base.tie))
        return found

    def _unseen(self: Any, labels: Sequence[Label]) -> list[Label]:
        """The labels that the fit did not see; for "each", the values."""
        if self.membership != "each":
            return list(labels)
        found: dict[Any, Label] = {}
        for label in labels:
            for part, (name, known) in zip(label_parts(label), self.attributes, strict=False):
                if label_key(part) not in known:
                    found.setdefault(label_key((name, part)), (name, part))
        return list(found.values())

    def _mixing_conditions(self: Any) -> Iterator[tuple[bool, str]]:
        """Conditions on a rule that mixes ramps."""
        widths = {ramp.width for ramp in (*self.ramps, *([self.base] if self.base else []))}
        yield (
            not self.stratified and self.criterion == "parity",
            "A rule that mixes ramps equalizes selection rates",
        )
        yield self.unseen_group != "pooled", "A rule that mixes ramps cannot have {unseen_group:pooled}"
        yield (
            len(widths) == 1 and (0 < max(widths) < inf or len(set(self.ramps)) == 1),
            "The ramps of a rule that mixes them must have the same positive width, or all be the same",
        )
        if self.membership == "each":
            yield (
                all(isinstance(label, tuple) and len(label) == 2 for label in self.groups),
                "The groups of a rule by each attribute must be pairs (attribute, value)",
            )
            yield (
                self.target_rate is None,
                "A rule by each attribute has several levels: {target_rate} must be None",
            )
