"""A classifier with two classes: one score per row, a `Rule`, and the chance of the favorable class.

`several_classes` has the same methods for more classes.
"""
# ruff: noqa: N803 -- scikit-learn calls it X

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logit
from sklearn.frozen import FrozenEstimator

from fairramp.core.checks import check_number, nearest
from fairramp.core.ramps import OFFSETS
from fairramp.data.arrays import as_scores
from fairramp.data.probable import GroupProbabilities
from fairramp.data.rows import ArrayRows
from fairramp.data.sample import Sample
from fairramp.errors import InputError, shown, warn
from fairramp.fit.direction import warn_direction
from fairramp.fit.few_scores import COARSE, warn_few_scores
from fairramp.fit.fit import fit_sample
from fairramp.fit.probable import fit_probabilities
from fairramp.fit.settings import Settings
from fairramp.fit.stream import StreamingFit
from fairramp.measure.audit import audit
from fairramp.measure.audited import Audit
from fairramp.rule.decided import unquestioned
from fairramp.rule.draws import decide
from fairramp.rule.rule import Rule
from fairramp.sklearn.group_model import check_group_estimator
from fairramp.sklearn.rows import KeptRows, classes_of, method_of, scores_of

#: The scale of each method's scores.
SCALE_OF = {"predict_proba": "probability", "decision_function": "logit"}
#: Settings passed to the fit unchanged.
_SETTINGS = (
    "criterion",
    "max_gap",
    "min_ratio",
    "costs",
    "overall_rate",
    "combine",
    "ramp_width",
    "ramp",
    "unseen_group",
    "small_groups",
    "solver",
    "confidence",
    "confidence_limit",
)


#: What to do about a trained classifier whose scores contradict the labels.
_OTHER_CLASSES = (
    "Check that `classes_[1]` of the trained classifier, or {pos_label}, is the favorable class, and that y "
    "means the same as in its training"
)
#: Classes of which the second is known to be the favorable one; True is 1.
_KNOWN = ({0, 1}, {-1, 1})


class _Settings(Settings):
    """Settings without `higher_is_better`: the classes say which scores are better."""

    @property
    def turning(self) -> str:
        """As in `Settings`."""
        return "If the other class is the favorable one, pass it as `pos_label`"


@dataclass(frozen=True)
class TwoClasses:
    """How two classes are scored, fitted and decided.

    Attributes
    ----------
    classes : array of shape (2,)
        In the order of the classifier.
    pos_label : label or None
        The favorable class; None means the second.
    method : str
        The classifier's method that returns the scores.
    settings : Settings
        Settings of the fit.
    """

    classes: npt.NDArray[Any] = field(compare=False)
    pos_label: Any = field(compare=False)
    method: str
    settings: Settings

    @classmethod
    def of(cls, owner: Any, classes: npt.NDArray[Any], *, weighted: bool, method: str | None = None) -> Self:
        """Check the settings of an estimator before anything is trained."""
        if owner.pos_label is not None and owner.pos_label not in (known := classes.tolist()):
            raise InputError(
                "must be one of the classes {known}",
                argument="pos_label",
                got=owner.pos_label,
                remedy=nearest(owner.pos_label, [label for label in known if isinstance(label, str)]),
                known=known,
            )
        cutoff = check_number("cutoff", owner.cutoff, 0.0, 1.0)
        method = method or method_of(owner.estimator, owner.predict_method, SCALE_OF)
        target, grouped = owner.target_rate, owner.group_estimator is not None
        if target is None and owner.overall_rate is None and not grouped:
            target = None if owner.combine == "each" else "accuracy"
        settings = _Settings(
            target_rate=target,
            scale=SCALE_OF[method],
            cutoff=cutoff if method == "predict_proba" else float(np.clip(logit(cutoff), -700, 700)),
            **{name: getattr(owner, name) for name in _SETTINGS},
        )
        if grouped:
            check_group_estimator(owner)
            settings.check_mixed("{group_estimator}")
        settings.check_rows(labeled=True, stratified=owner.strata is not None, weighted=weighted)
        if settings.confidence is not None and not isinstance(owner.estimator, FrozenEstimator):
            raise InputError(
                "{confidence} needs a trained classifier, because cross-fitted scores give no guarantee",
                remedy="pass FrozenEstimator(model), and fit on rows that the model was not trained on",
            )
        return cls(classes, owner.pos_label, method, settings)

    @property
    def positive(self) -> int:
        """Index of the favorable class."""
        return self._positive_of(self.classes)

    def _positive_of(self, classes: npt.NDArray[Any]) -> int:
        return 1 if self.pos_label is None else classes.tolist().index(self.pos_label)

    def warn_classes(self) -> None:
        """Warn if only the order of the labels says which class is the favorable one."""
        other, favorable = self.classes.tolist()
        if self.pos_label is None and {other, favorable} not in _KNOWN:
            warn(
                "The favorable class is {favorable}, the second in sorted order; pass pos_label={other} if it is "
                "the other, or pos_label={favorable} to confirm it",
                favorable=shown(favorable),
                other=shown(other),
            )

    def trained(self, model: Any) -> Self:
        """The same with the classes of the trained classifier, in its order."""
        return replace(self, classes=classes_of(model))

    def scores(self, model: Any, X: Any) -> npt.NDArray[Any]:
        """One score per row for the favorable class."""
        return scores_of(model, X, self.method, self._positive_of(classes_of(model)))

    def outcomes(self, labels: npt.NDArray[np.intp] | None) -> npt.NDArray[np.bool_] | None:
        """Whether each label, the index of a class, is that of the favorable one."""
        return None if labels is None else labels == self.positive

    def learned(self, rows: KeptRows, cross_fitted: bool) -> Rule:
        """The rule for these rows."""
        settings = self.settings
        settings.check_rows(
            labeled=rows.labels is not None,
            stratified=rows.strata is not None,
            weighted=rows.weights is not None,
            needed="{y}, the true outcomes of all rows",
        )
        if isinstance(rows.groups, GroupProbabilities):
            rule = fit_probabilities(rows.scores, rows.groups, settings, sample_weight=rows.weights)
        else:
            sample = Sample.of_arrays(
                rows.scores,
                rows.groups,
                self.outcomes(rows.labels),
                scale=settings.meaning,
                strata=rows.strata,
                sample_weight=rows.weights,
            )
            if not cross_fitted:  # cross-fitted scores of a useless classifier are slightly worse for label 1
                warn_direction(sample, remedy=_OTHER_CLASSES)
            rule = fit_sample(sample, settings)
        assert rule.record is not None  # every fitted rule has one
        warn_few_scores(rows.scores, rule, COARSE)
        return replace(rule, record=replace(rule.record, cross_fitted=cross_fitted))

    def seen(self, rows: KeptRows, rule: Rule) -> KeptRows | StreamingFit:
        """What `partial_fit` continues with: the rows, or a descent."""
        sgd = self.settings.sgd
        if sgd is None:
            return rows
        return StreamingFit.from_rule(rule, learning_rate=sgd.learning_rate, iterate=sgd.iterate)

    def chances(self, rule: Rule, scores: Any, groups: Any, strata: Any) -> npt.NDArray[np.float64]:
        """The probabilities of both decisions, of shape (n, 2)."""
        with unquestioned():
            found = rule.probabilities(scores, groups, strata)
        return np.column_stack([1.0 - found, found] if self.positive else [found, 1.0 - found])

    def drawn(self, rule: Rule, chances: npt.NDArray[np.float64], **source: Any) -> npt.NDArray[Any]:
        """Index of the class that is decided for each row; see `rule.draws.decide`."""
        decided = decide(chances[:, self.positive], **source)
        return decided if self.positive else 1 - decided

    def audited(self, rule: Rule, scores: Any, groups: Any, labels: Any, **more: Any) -> Audit:
        """The audit of rows; `labels` are indexes of classes."""
        with unquestioned():
            return audit(scores, groups, self.outcomes(labels), rule=rule, **more)

    def heights(self, rule: Rule, scores: Any, groups: Any, strata: Any) -> npt.NDArray[np.float64]:
        """How far each row is on the side of the second class, from the threshold of its group."""
        above = self._above(rule, scores, groups, strata)
        return above if self.positive else 0.0 - above

    def _above(self, rule: Rule, scores: Any, groups: Any, strata: Any) -> npt.NDArray[np.float64]:
        """How far each score's position is above the threshold of its group, or the expected threshold."""
        if isinstance(groups, GroupProbabilities):
            found, n_rows = rule.probable(groups), len(groups)
            positions = ArrayRows(as_scores(scores), found, None, rule.meaning).positions(0, n_rows)
            shifts = np.array([ramp.foot for ramp in rule.ramps]) - rule.center
            middle = rule.center + OFFSETS[rule.ramp] * rule.ramps[0].width
            return np.asarray(positions - middle - found.mix(shifts, 0, n_rows), dtype=np.float64)
        rows = rule.sample(scores, groups, strata=strata)
        ramps, own = rule.ramps_of(rows.cells)
        constant = np.array([ramp.is_constant for ramp in ramps])
        thresholds = np.array([0.0 if r.is_constant else r.foot + OFFSETS[rule.ramp] * r.width for r in ramps])
        if own is not None:
            thresholds[own], constant[own] = rule.meaning.position_of(rule.cutoff), False
        above = rows.positions - rows.cells.mix(thresholds, 0, len(rows))
        chances = rows.cells.mix(np.array([ramp.tie for ramp in ramps]), 0, len(rows))
        return np.where(constant[rows.cells.block(0, len(rows))], chances - 0.5, above)
