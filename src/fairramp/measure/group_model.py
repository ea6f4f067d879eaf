"""GroupModel: how well group probabilities agree with the true groups.

A rule that uses group probabilities keeps its limit on expected rates. By true group, it does so as far as the
model of the groups is calibrated: among people with probability 0.7 for a group, 70% belong to it. For each
group k with probabilities q_k,

    calibration error   of q_k against the indicator of the true group (see `measure.calibration`)
    expected rows       Σ q_k, beside the number of rows that belong to the group
    highest             max q_k

The model is poor for a group if the calibration error is above 0.05; if Σ q_k differs from the true number by
more than 20% of it and by more than chance explains, 3 √(Σ q_k (1 − q_k)); if Σ q_k is below 30; or if no q_k
reaches 0.5, so that nobody is more likely in the group than not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairramp.core.headline import SMALL_GROUP
from fairramp.core.labels import Label, label_key, show_label
from fairramp.core.scales import scale_of
from fairramp.core.table import Table, name_column, one_line, with_rows
from fairramp.core.words import fixed
from fairramp.data.classes import ClassSample
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes
from fairramp.data.probable import GroupProbabilities
from fairramp.data.sample import Sample
from fairramp.errors import warn
from fairramp.measure.calibration import calibration_errors

#: Calibration errors above this are poor.
POOR_CALIBRATION = 0.05
#: The expected number of rows may differ from the true one by this share, and by this many standard deviations.
POOR_SHARE, CHANCE = 0.2, 3.0
#: A group that no row has with at least this probability is rarer than the model can see.
SEEN = 0.5
#: Most groups that a sentence names.
_NAMED = 5


@dataclass(frozen=True)
class GroupModel:
    """How well group probabilities agree with the true groups; tuples have one entry per group of the rule.

    Attributes
    ----------
    groups : tuple
        The groups of the rule.
    calibration_error : tuple of float
        Average error of each group's probability, as far as held-out rows confirm it.
    expected : tuple of float
        Expected number of rows in each group: the sum of its probabilities, without weights.
    rows : tuple of int
        Number of rows that belong to the group.
    highest : tuple of float
        The largest probability of the group.
    deviation : tuple of float
        How much the number of rows varies by chance around the expected one: a standard deviation.
    unknown : tuple of tuples of label and int
        True groups that the rule does not know, with their numbers of rows.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> certain = {group: (data.sex == group).astype(float) for group in ("Female", "Male")}
    >>> probabilities = fairramp.GroupProbabilities(certain)
    >>> rule = fairramp.fit_rule(data.score, probabilities)
    >>> found = fairramp.audit(data.score, data.sex, rule=rule, group_probabilities=probabilities)
    >>> found.group_model.calibration_error, found.group_model.rows
    ((0.0, 0.0), (8094, 16327))
    """

    groups: tuple[Label, ...]
    calibration_error: tuple[float, ...]
    expected: tuple[float, ...]
    rows: tuple[int, ...]
    highest: tuple[float, ...]
    deviation: tuple[float, ...]
    unknown: tuple[tuple[Label, int], ...] = ()

    def table(self) -> Table:
        """One row per group: its rows, its expected rows, its calibration error and its largest probability.

        Examples
        --------
        >>> from fairramp import GroupModel
        >>> print(GroupModel(("A", "B"), (0.01, 0.01), (61.2, 38.8), (60, 40), (0.98, 0.9), (4.0, 4.0)).table())
        group   n  expected n  calibration error  highest probability
        -----  --  ----------  -----------------  -------------------
        A      60        61.2               1.0%                98.0%
        B      40        38.8               1.0%                90.0%
        """
        return Table(
            {
                "group": name_column(self.groups),
                "n": self.rows,
                "expected_n": np.round(self.expected, 1),
                "calibration_error": self.calibration_error,
                "highest_probability": self.highest,
            },
            decimals=1,
            shares=("calibration_error", "highest_probability"),
        )

    def poor(self) -> list[str]:
        """What is poor about the probabilities, each with its numbers; empty if nothing is.

        Examples
        --------
        >>> from fairramp import GroupModel
        >>> model = GroupModel(("A", "B"), (0.01, 0.01), (91.5, 8.5), (92, 8), (0.98, 0.3), (2.0, 2.0))
        >>> for text in model.poor():
        ...     print(text)
        fewer than 30 expected rows: B 8.5
        no probability of 50% or more: B (highest 30.0%)
        """
        n, expected = np.array(self.rows), np.array(self.expected)
        off = np.abs(expected - n)
        found = {
            f"calibration error above {POOR_CALIBRATION:g}": (
                np.array(self.calibration_error) > POOR_CALIBRATION,
                [f"{error:.3f}" for error in self.calibration_error],
            ),
            "expected rows far from the true number": (
                (off > POOR_SHARE * n) & (off > CHANCE * np.array(self.deviation)),
                [f"{fixed(e, 1)} instead of {k:,}" for e, k in zip(self.expected, self.rows, strict=True)],
            ),
            f"fewer than {SMALL_GROUP} expected rows": (
                expected < SMALL_GROUP,
                [fixed(e, 1) for e in self.expected],
            ),
            f"no probability of {100 * SEEN:.0f}% or more": (
                np.array(self.highest) < SEEN,
                [f"(highest {fixed(100 * q, 1)}%)" for q in self.highest],
            ),
        }
        return [
            f"{what}: {self._listed(poor.tolist(), said)}" for what, (poor, said) in found.items() if poor.any()
        ]

    def _listed(self, which: Sequence[bool], said: Sequence[str]) -> str:
        names = [
            f"{one_line(show_label(label))} {text}"
            for label, text, holds in zip(self.groups, said, which, strict=True)
            if holds
        ]
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        return f"{', '.join(names[:_NAMED])}{more}"

    def sentences(self) -> list[str]:
        """How well the probabilities agree with the true groups, and which true groups the rule does not know.

        Examples
        --------
        >>> from fairramp import GroupModel
        >>> model = GroupModel(("A", "B"), (0.01, 0.02), (61.2, 38.8), (60, 40), (0.98, 0.9), (4.0, 4.0))
        >>> model.sentences()
        ['Group probabilities: calibration error at most 0.020 in every group.']
        """
        worst = max(self.calibration_error)
        found = [f"Group probabilities: calibration error at most {worst:.3f} in every group."]
        if poor := self.poor():
            found = [f"Group probabilities are poor: {'; '.join(poor)}."]
        if self.unknown:
            found.append(f"True groups without a probability: {with_rows(self.unknown)}.")
        return found

    def warn(self) -> None:
        """Warn if the probabilities are poor.

        Examples
        --------
        >>> import fairramp
        >>> fairramp.GroupModel(("A", "B"), (0.01, 0.02), (61.2, 38.8), (60, 40), (0.98, 0.9), (4.0, 4.0)).warn()
        """
        if poor := self.poor():
            warn(
                "The group probabilities are poor: {poor}. A rule that uses group probabilities makes the rates "
                "of true groups equal only as far as its probabilities are calibrated",
                poor="; ".join(poor),
            )


def group_model(sample: Sample | ClassSample, probabilities: GroupProbabilities) -> GroupModel:
    """Compare group probabilities with the true groups of the same rows."""
    assert sample.groups is not None
    codes = sample.groups.block(0, len(sample))
    keys = {label_key(label): code for code, label in enumerate(sample.groups.labels)}
    counts = np.bincount(codes, minlength=len(sample.groups.labels))
    one = Codes(np.zeros(len(sample), dtype=np.intp), 0, ("everyone",))
    errors, rows = [], []
    for label, q in zip(probabilities.labels, probabilities.values, strict=True):
        code = keys.get(label_key(label), -1)
        rows.append(int(counts[code]) if code >= 0 else 0)
        model = Sample(
            scores=np.minimum(q, 1.0),
            groups=one,
            cells=one,
            weights=sample.weights,
            labels=(codes == code).astype(np.int8),
            scale=scale_of("probability", True),
            columns=Columns(),
        )
        errors.append(float(calibration_errors(model, np.array([len(sample)]))[0]))
    known = {label_key(label) for label in probabilities.labels}
    q = np.minimum(probabilities.values, 1.0)
    return GroupModel(
        groups=probabilities.labels,
        calibration_error=tuple(errors),
        expected=tuple(probabilities.values.sum(axis=1).tolist()),
        rows=tuple(rows),
        highest=tuple(q.max(axis=1).tolist()),
        deviation=tuple(np.sqrt((q * (1 - q)).sum(axis=1)).tolist()),
        unknown=tuple(
            (label, int(n))
            for label, n in zip(sample.groups.labels, counts, strict=True)
            if n and label_key(label) not in known
        ),
    )
