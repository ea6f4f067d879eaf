"""A classifier with more than two classes: C scores per row, a `ClassRule`, and the chance of every class.

`two_classes` has the same methods for two classes.
"""
# ruff: noqa: N803 -- scikit-learn calls it X

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import is_real
from fairramp.data.classes import ClassSample, checked_classes
from fairramp.data.groups import Codes
from fairramp.errors import InputError, UnsupportedError, shown
from fairramp.fit.classes import ClassSettings, fit_class_sample
from fairramp.fit.few_scores import COARSE
from fairramp.fit.settings import check_words
from fairramp.measure.class_audit import audit_classes
from fairramp.measure.class_audited import ClassAudit
from fairramp.rule.class_rule import ClassRule, mixed_offsets
from fairramp.sklearn.group_model import check_group_estimator
from fairramp.sklearn.rows import KeptRows, kind_of, without_rounding


def _other_than(*allowed: Any) -> Callable[[Any], bool]:
    """Whether a value is none of the allowed ones."""
    return lambda value: not any(isinstance(value, type(one)) and value == one for one in allowed)


#: By setting: which of its values need two classes, and what to do instead.
_BINARY: dict[str, tuple[Callable[[Any], bool], str]] = {
    "criterion": (_other_than("parity"), "leave it out: the rates of every class are made equal"),
    "min_ratio": (_other_than(None), "pass {max_gap} instead"),
    "target_rate": (_other_than(None), "leave it out: the rates of the classes follow from their scores"),
    "costs": (_other_than(None), "leave it out: every error costs the same"),
    "overall_rate": (_other_than(None), "leave it out: the rates of the classes follow from their scores"),
    "combine": (_other_than("intersections"), "leave it out: several group columns make intersections"),
    "ramp_width": (lambda width: is_real(width) and width == 0, "for almost no random decisions, pass 1e-6"),
    "ramp": (_other_than("centered"), "leave it out"),
    "cutoff": (_other_than(0.5), "leave it out: the classifier itself chooses the most probable class"),
    "solver": (_other_than("exact"), "leave it out for the exact solver"),
    "small_groups": (_other_than("alone"), "leave it out, and merge small groups"),
    "confidence": (_other_than(None), "leave it out, and measure the gap on fresh rows"),
    "confidence_limit": (_other_than("estimated"), "leave it out, and measure the gap on fresh rows"),
    "predict_method": (
        _other_than("auto", "predict_proba"),
        "leave it out: decision functions of several classes are not probabilities",
    ),
    "pos_label": (_other_than(None), "leave it out: the rates of every class are made equal"),
    "unseen_group": (_other_than("error", "original"), "pass 'original' to keep the classifier's own decisions"),
}
#: What to do with a classifier without probabilities.
_CALIBRATE = "it has no predict_proba, so wrap it in sklearn.calibration.CalibratedClassifierCV"


def needing_two(owner: Any) -> list[str]:
    """The settings of an estimator that need two classes."""
    found = [name for name, (needs, _) in _BINARY.items() if needs(getattr(owner, name))]
    return found if hasattr(owner.estimator, "predict_proba") else [*found, "estimator"]


@dataclass(frozen=True)
class SeveralClasses:
    """How more than two classes are scored, fitted and decided.

    Attributes
    ----------
    classes : array of shape (C,)
        In the order of the columns of scores.
    settings : ClassSettings
        Settings of the fit.
    """

    classes: npt.NDArray[Any] = field(compare=False)
    settings: ClassSettings

    #: The classifier's method that returns the scores.
    method = "predict_proba"
    #: No class is the favorable one.
    positive = None

    @classmethod
    def of(cls, owner: Any, classes: npt.NDArray[Any], *, weighted: bool, method: str | None = None) -> Self:
        """Check the settings of an estimator before anything is trained."""
        check_words(owner)
        for name in needing_two(owner):
            raise UnsupportedError(
                "Only binary classification is supported with {" + name + "} {value}, got {n} classes",
                remedy=_BINARY[name][1] if name in _BINARY else _CALIBRATE,
                value=shown(getattr(owner, name)) if name in _BINARY else kind_of(owner.estimator),
                n=len(classes),
            )
        checked_classes(classes.tolist())
        settings = ClassSettings(
            max_gap=0.0 if owner.max_gap is None else owner.max_gap,
            ramp_width=owner.ramp_width,
            unseen_group=owner.unseen_group,
        )
        if owner.group_estimator is not None:
            check_group_estimator(owner)
        return cls(classes, settings)

    def warn_classes(self) -> None:
        """Nothing to warn of: no class is the favorable one."""

    def trained(self, model: Any) -> Self:
        """The same: `scores` puts the columns of any classifier in order."""
        return self

    def scores(self, model: Any, X: Any) -> npt.NDArray[np.float64]:
        """The scores of all classes, of shape (n, C) and in the order of `classes`."""
        values = np.asarray(model.predict_proba(X), dtype=np.float64)
        found, known = np.asarray(model.classes_).tolist(), self.classes.tolist()
        if set(found) != set(known) or values.ndim != 2 or values.shape[1] != len(known):
            raise InputError(
                "must have one column of predict_proba for each of the classes {known}, but {kind} returns an "
                "array of shape {shape} for {found}",
                argument="estimator",
                known=known,
                kind=kind_of(model),
                shape=values.shape,
                found=found,
            )
        values = without_rounding(values)
        return values if found == known else values[:, [found.index(label) for label in known]]

    def learned(self, rows: KeptRows, cross_fitted: bool) -> ClassRule:
        """The rule for these rows."""
        try:
            sample = ClassSample.of_arrays(
                rows.scores,
                rows.groups,
                classes=self.classes.tolist(),
                strata=rows.strata,
                sample_weight=rows.weights,
            )
        except InputError as error:
            raise error.renamed(probabilities="predict_proba") from None
        return fit_class_sample(sample, self.settings, cross_fitted=cross_fitted, remedy=COARSE)

    def seen(self, rows: KeptRows, rule: ClassRule) -> KeptRows:
        """What `partial_fit` continues with."""
        return rows

    def chances(self, rule: ClassRule, scores: Any, groups: Any, strata: Any) -> npt.NDArray[np.float64]:
        """The probability of every decision, of shape (n, C)."""
        try:
            return rule.probabilities(scores, groups, strata)
        except InputError as error:
            raise error.renamed(probabilities="predict_proba") from None

    def drawn(self, rule: ClassRule, chances: npt.NDArray[np.float64], **source: Any) -> npt.NDArray[Any]:
        """Index of the class that is decided for each row; see `ClassRule.drawn`."""
        return rule.drawn(chances, **source)

    def audited(self, rule: ClassRule, scores: Any, groups: Any, labels: Any, **more: Any) -> ClassAudit:
        """The audit of rows; `labels` are indexes of classes."""
        truth = None if labels is None else self.classes[labels]
        return audit_classes(scores, groups, truth, rule=rule, **more)

    def heights(self, rule: ClassRule, scores: Any, groups: Any, strata: Any) -> npt.NDArray[np.float64]:
        """The score of every class minus its offset, or its expected offset, of shape (n, C)."""
        sample = rule.sample(scores, groups, strata=strata)
        members = sample.decided_by
        if isinstance(members, Codes):
            offsets, _ = rule.offsets_of(members)  # 0 in groups that keep their own decisions
            return sample.values - offsets.T[members.block(0, len(sample))]
        return sample.values - mixed_offsets(np.array(rule.offsets).T, members, 0, len(sample)).T
