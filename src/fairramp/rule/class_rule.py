"""ClassRule: offsets of the classes' scores for every group, which is all that is needed to decide.

For a person of group k with scores p of C classes, the chances of the classes are

    h = projection onto the simplex of (p − offset_k) / ramp_width        (see `core.simplex`)

If the group is not known, the offsets are the mean of all groups', weighted by the probabilities q_k of the
groups. With a ramp width of 0, everyone gets the class of the largest score: the classifier's own decisions.

The decision of an id and a key: u is the person's draw (see `rule.draws`), and the classes are sorted by label.
The first class whose cumulative chance exceeds u is the decision.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairramp.core.blocks import map_blocks
from fairramp.core.cells import stratum_index
from fairramp.core.checks import check_number, check_option, checked_width
from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.labels import Label, canonical_label, label_key
from fairramp.core.public import public
from fairramp.core.simplex import class_chances, drawn_classes
from fairramp.data.aligned import check_aligned
from fairramp.data.classes import ClassSample, checked_classes
from fairramp.data.columns import Columns, class_score_columns
from fairramp.data.groups import Codes
from fairramp.data.probable import GroupProbabilities
from fairramp.errors import InputError
from fairramp.rule.class_file import MAX_OFFSET, UNSEEN, ClassRuleFile
from fairramp.rule.class_record import ClassRecord
from fairramp.rule.class_shown import ClassShown
from fairramp.rule.class_verbs import ClassVerbs
from fairramp.rule.draws import uncertain_draws
from fairramp.rule.mixing import Deciding
from fairramp.rule.reading import Reading, missing_column
from fairramp.rule.stored import Stored
from fairramp.rule.unseen import unseen_groups

#: Rows decided at once, which stay in cache.
_PIECE = 1 << 14


@public
@dataclass(frozen=True, repr=False, eq=False)
class ClassRule(Deciding, Reading, ClassShown, Stored, ClassVerbs):
    """Fair decisions between several classes, from their scores and groups.

    Made by `fit_class_rule`, which documents the settings.

    Attributes
    ----------
    groups : tuple
        Labels of the fitted groups; (stratum, group) if rates are equal within strata.
    classes : tuple
        Labels of the classes, in the order of the columns of scores.
    offsets : tuple of tuple of float
        For each group, what is subtracted from the score of every class. A positive offset makes the class less
        likely. They sum to 0, because only their differences matter.
    ramp_width : float
        How close two scores must be, after subtracting the offsets, for the decision to be random. If it is 0,
        these are the classifier's own decisions, which already met the limit, and offsets are 0.
    max_gap : float
        Largest difference between the rates of two groups, for every class, on the fit rows.
    stratified : bool
        Whether rates are made equal within strata instead of over all rows.
    unseen_group : {"error", "original"}
        What happens to a group that was not in the fit rows.
    columns : Columns
        Names of the columns of the fit, if any.
    record : ClassRecord or None
        Description of the fit; None for a rule written by hand.
    membership : {"known", "probabilities"}
        Whether each person belongs to one group, or has a probability for each group.

    Examples
    --------
    >>> from fairramp import ClassRule
    >>> rule = ClassRule(("A", "B"), ("low", "mid", "high"), ((0.0, 0.0, 0.0), (0.05, 0.05, -0.1)), 0.1)
    >>> ClassRule.from_json(rule.to_json()) == rule
    True
    """

    _kind: ClassVar = ClassRuleFile

    groups: tuple[Label, ...]
    classes: tuple[Label, ...]
    offsets: tuple[tuple[float, ...], ...]
    ramp_width: float = 0.01
    max_gap: float = 0.0
    stratified: bool = False
    unseen_group: str = "error"
    columns: Columns = field(default_factory=Columns)
    record: ClassRecord | None = None
    membership: str = "known"

    def __post_init__(self) -> None:
        for name, kind in (("columns", Columns), ("record", ClassRecord)):
            value = getattr(self, name)
            if not isinstance(value, kind) and not (name == "record" and value is None):
                raise InputError("must be a fairramp.{kind}", argument=name, got=value, kind=kind.__name__)
        check_option("unseen_group", self.unseen_group, UNSEEN)
        check_option("membership", self.membership, ("known", "probabilities"))
        checked = {
            "groups": tuple(canonical_label(label) for label in self.groups),
            "classes": checked_classes(self.classes),
            "offsets": tuple(
                tuple(check_number("offsets", offset, -MAX_OFFSET, MAX_OFFSET) for offset in offsets)
                for offsets in self.offsets
            ),
            "ramp_width": checked_width(self.ramp_width),
            "max_gap": check_number("max_gap", self.max_gap, 0.0, 1.0),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for holds, sentence in self._conditions():
            if not holds:
                raise InputError(sentence)

    def _conditions(self) -> Iterator[tuple[bool, str]]:
        """Conditions on its parts in combination, each with the message if it fails."""
        n_groups, record = len(self.groups), self.record
        yield from self._group_conditions()
        yield (
            len(self.offsets) == n_groups and all(len(o) == len(self.classes) for o in self.offsets),
            "A rule needs one offset per class for every group",
        )
        yield (
            self.ramp_width > 0 or not any(any(offsets) for offsets in self.offsets),
            "The offsets of a rule with {ramp_width} 0 must be 0",
        )
        names = self.columns.class_scores
        yield (
            self.columns.score is None and (names is None or len(names) == len(self.classes)),
            "The columns of a rule for several classes must have one score per class",
        )
        if self.mixes:
            yield not self.stratified, "A rule that uses group probabilities does not support strata"
            yield self.unseen_group == "error", "A rule that uses group probabilities has no unseen group"
        yield from self._record_conditions()
        if record is not None:
            yield (
                len(record.rows) == n_groups and len(record.after[0]) == len(self.classes),
                "The record of a rule must have one entry per group, with one rate per class",
            )

    def __eq__(self, other: object) -> bool:
        # Compare text, because Python treats a group labeled True as equal to one labeled 1.
        return self.to_json() == other.to_json() if isinstance(other, ClassRule) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def parts(self) -> npt.NDArray[np.intp] | None:
        """Index of the stratum of each group; None without strata."""
        return stratum_index(self.groups) if self.stratified else None

    @property
    def order(self) -> Integers:
        """The classes sorted by label, as indices: the order of their cumulative chances in a draw."""
        keys = [label_key(label) for label in self.classes]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)

    @property
    def common_offsets(self) -> tuple[Floats, Floats]:
        """The offset of each class that all groups share, otherwise 0, and what remains, of shape (K, C).

        Exports mix only what remains, so that a common offset is exact even if group probabilities are rounded.
        """
        offsets = np.array(self.offsets)
        common: Floats = np.where((offsets == offsets[0]).all(axis=0), offsets[0], 0.0)
        return common, offsets - common

    # Deciding ---------------------------------------------------------------------------------

    def sample(
        self,
        probabilities: Any,
        groups: Any,
        labels: Any = None,
        *,
        strata: Any = None,
        sample_weight: Any = None,
        group_probabilities: Any = None,
        drop_empty: bool = False,
    ) -> ClassSample:
        """Check new rows, read as this rule requires; see `data.classes.ClassSample`.

        If the rule uses group probabilities, `groups` are the true groups, unless they are group probabilities
        themselves.
        """
        self.check_strata(strata)
        if isinstance(groups, GroupProbabilities) and group_probabilities is None and self.mixes:
            membership, groups = None, self.probable(groups)
        else:
            membership = self.deciding(group_probabilities)
        sample = ClassSample.of_arrays(
            probabilities,
            groups,
            labels,
            fitted=self.classes,
            strata=strata,
            sample_weight=sample_weight,
            columns=self.columns,
            membership=membership,
            drop_empty=drop_empty,
        )
        return sample if membership is None else self.with_truth(sample)

    def probabilities(self, probabilities: Any, groups: Any, strata: Any = None) -> npt.NDArray[np.float64]:
        """Compute the chance of every class for each row; deterministic.

        Parameters
        ----------
        probabilities : numbers of shape (n, C), or a mapping or table with one column per class
            The classifier's scores. The columns of an array are in the order of `classes`; named columns may have
            any order.
        groups : labels of shape (n,), or several columns, or GroupProbabilities
            As in the fit.
        strata : labels of shape (n,), or several columns
            As in the fit; required if the rule equalizes within strata.

        Returns
        -------
        numpy.ndarray of float64, shape (n, C)
            With columns in the order of `classes`.

        Raises
        ------
        UnseenGroupError
            If a row's group was not in the fit rows and `unseen_group` is "error". A subclass of `InputError`.
        InputError
            If scores are missing, out of range or do not sum to 1, or columns have different lengths.

        Examples
        --------
        >>> from fairramp import ClassRule
        >>> rule = ClassRule(("A", "B"), ("low", "mid", "high"), ((0.0, 0.0, 0.0), (0.05, 0.05, -0.1)), 0.1)
        >>> rule.probabilities([[0.2, 0.45, 0.35], [0.2, 0.45, 0.35]], ["A", "B"]).round(3)
        array([[0.  , 1.  , 0.  ],
               [0.  , 0.25, 0.75]])
        """
        if self.mixes:
            groups = self.probable(groups)
        return self.chances(self.sample(probabilities, groups, strata=strata))

    def chances(self, sample: ClassSample) -> npt.NDArray[np.float64]:
        """Chances of checked rows; see `probabilities`."""
        return self.chances_of(sample.values, sample.decided_by)

    def chances_of(self, values: Floats, decided_by: Codes | GroupProbabilities) -> Floats:
        """Chances for checked scores of shape (n, C), and cells or group probabilities."""
        found = np.empty((len(values), len(self.classes)))
        if isinstance(decided_by, Codes):
            offsets, own = self.offsets_of(decided_by)
        else:
            offsets, own = np.array(self.offsets).T, None

        def fill(start: int, stop: int) -> None:
            for a in range(start, stop, _PIECE):
                b = min(a + _PIECE, stop)
                if isinstance(decided_by, Codes):
                    codes = decided_by.block(a, b)
                    moved = values[a:b].T - offsets[:, codes]
                else:
                    codes = None
                    moved = values[a:b].T - mixed_offsets(offsets, decided_by, a, b)
                chances = class_chances(moved, self.ramp_width, out=moved)
                if own is not None and codes is not None and (keeps := own[codes]).any():
                    chances[:, keeps] = class_chances(values[a:b][keeps].T, 0.0)
                found[a:b] = chances.T

        map_blocks(fill, len(values))
        return found

    def offsets_of(self, codes: Codes) -> tuple[Floats, Booleans | None]:
        """The offsets of each code, of shape (C, K), and which codes keep own decisions, if any."""
        known = dict(zip(map(label_key, self.groups), self.offsets, strict=True))
        found = [known.get(label_key(label)) for label in codes.labels]
        unseen = np.array([offsets is None for offsets in found], dtype=bool)
        if unseen.any():
            unseen &= codes.occurring()
        if unseen.any() and self.unseen_group == "error":
            raise unseen_groups(
                [codes.labels[i] for i in np.flatnonzero(unseen)],
                self.groups,
                policies=("original",),
                all_unseen=all(offsets is None for offsets in compress(found, codes.occurring())),
            )
        none = (0.0,) * len(self.classes)
        return np.array([offsets or none for offsets in found]).T, unseen if unseen.any() else None

    def decide(
        self,
        probabilities: Any,
        groups: Any,
        *,
        strata: Any = None,
        ids: Any = None,
        key: str | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> npt.NDArray[Any]:
        """Decide for one class per row, with draws that are repeatable (by id and key) or random.

        Parameters
        ----------
        probabilities, groups, strata
            As in `probabilities`.
        ids : sequence of str or int
            The id of each row. The same id and key always give the same draw, in any order, batch or subset.
        key : str
            64 lowercase hexadecimal characters; keep it secret.
        random_state : int or numpy.random.Generator
            For ordinary random draws, instead of `ids` and `key`.

        Returns
        -------
        numpy.ndarray of shape (n,)
            Labels of classes.

        Examples
        --------
        >>> from fairramp import ClassRule
        >>> rule = ClassRule(("A", "B"), ("low", "mid", "high"), ((0.0, 0.0, 0.0), (0.05, 0.05, -0.1)), 0.1)
        >>> rule.decide([[0.2, 0.45, 0.35]] * 2, ["A", "B"], ids=["anna", "ben"], key="0" * 64)
        array(['mid', 'mid'], dtype='<U4')
        """
        check_aligned(probabilities=probabilities, groups=groups, strata=strata, ids=ids)
        chances = self.probabilities(probabilities, groups, strata)
        return self.labels_of(self.drawn(chances, ids=ids, key=key, random_state=random_state))

    def drawn(
        self, chances: Floats, *, ids: Any = None, key: str | None = None, random_state: Any = None
    ) -> Integers:
        """Index of the class that is decided for each row of chances."""
        unsure = chances.max(axis=1) < 1
        draws = uncertain_draws(unsure, ids=ids, key=key, random_state=random_state)
        found: Integers = np.argmax(chances, axis=1)
        found[unsure] = drawn_classes(chances[unsure].T, draws, self.order)
        return found

    def labels_of(self, indices: Integers) -> npt.NDArray[Any]:
        """The labels of classes, as an array of one type if there is one that holds them all."""
        labels = np.array(self.classes)
        # NumPy makes text or floats of labels of several types, floats of large integers, and cuts text at NUL.
        kept = ((type(a), a) == (type(b), b) for a, b in zip(labels.tolist(), self.classes, strict=True))
        if not all(kept):
            labels = np.array(self.classes, dtype=object)
        found: npt.NDArray[Any] = labels[indices]
        return found

    def reading(
        self,
        class_score: Any = None,
        group: Any = None,
        strata: Any = None,
        id: Any = None,
        group_probability: Any = None,
    ) -> Columns:
        """Return the names of the columns to read: as given, otherwise those of the fit.

        Examples
        --------
        >>> from fairramp import ClassRule
        >>> rule = ClassRule(("A", "B"), ("low", "high"), ((0.0, 0.0), (0.05, -0.05)))
        >>> rule.reading({"low": "p_low", "high": "p_high"}, "unit").class_scores
        ('p_low', 'p_high')
        """
        columns = self.columns.given(None, group, strata, id)
        if class_score is not None:
            columns = columns.with_classes(class_score_columns(class_score, self.classes))
        if columns.class_scores is None:
            raise missing_column("class_score")
        return self.reading_groups(columns, group, group_probability)


def mixed_offsets(offsets: Floats, groups: GroupProbabilities, start: int, stop: int) -> Floats:
    """Σ_k q_k offset_k for the rows start … stop − 1, of shape (C, rows)."""
    return np.stack([groups.mix(per_group, start, stop) for per_group in offsets])
