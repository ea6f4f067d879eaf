"""What the estimator does around a fit: settings, rows, group models, and scikit-learn's interface.

`estimator` has the arguments and the public methods.
"""
# ruff: noqa: N803 -- scikit-learn calls it X, and so do its callers, by keyword

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import _num_samples, check_is_fitted

from fairramp.core.checks import check_flag, check_length, check_option
from fairramp.data.aligned import check_aligned, check_passed_with
from fairramp.data.arrays import as_weights
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes, encode_groups
from fairramp.data.probable import GroupProbabilities
from fairramp.data.sample import encode_strata
from fairramp.errors import InputError
from fairramp.sklearn.columns import Sources, check_given_once
from fairramp.sklearn.group_model import GroupModel, frozen_group_model, trained_group_model
from fairramp.sklearn.rows import Splits, fit_params
from fairramp.sklearn.several_classes import SeveralClasses, needing_two
from fairramp.sklearn.two_classes import SCALE_OF, TwoClasses

#: How the classes are scored, fitted and decided.
Task = TwoClasses | SeveralClasses
#: Methods that need no groups if there is a group model.
_DECIDING = ("predict", "predict_proba", "decision_function", "score")


class Wrapper(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier around another one and, perhaps, a group model."""

    rule_: Any  # a Rule, or a ClassRule for more than two classes
    _task: Task
    _sources: Sources
    _group_model: GroupModel | None

    # Fitting ----------------------------------------------------------------------------------

    def _group_model_of(
        self, features: Any, codes: Codes | None, splits: Splits | None, weights: npt.NDArray[np.float64] | None
    ) -> tuple[GroupModel | None, Codes | GroupProbabilities]:
        """The group model, if there is one, and the groups or their probabilities."""
        if isinstance(self.group_estimator, FrozenEstimator):
            return frozen_group_model(self.group_estimator, features, codes)
        assert codes is not None  # only a frozen model needs no groups
        if self.group_estimator is None:
            return None, codes
        params = fit_params(self, weights, "group_estimator")
        return trained_group_model(self.group_estimator, features, codes, splits, self.cv, params)

    def _task_of(self, classes: npt.NDArray[Any], *, weighted: bool, method: str | None = None) -> Task:
        """How these classes are scored, fitted and decided; checks the settings before anything is trained."""
        check_option("predict_method", self.predict_method, ("auto", *SCALE_OF))
        check_flag("drop_sensitive", self.drop_sensitive)
        kind = TwoClasses if len(classes) == 2 else SeveralClasses
        return kind.of(self, classes, weighted=weighted, method=method)

    # Rows -------------------------------------------------------------------------------------

    def _choices(self) -> dict[str, Any]:
        """Settings that say where groups and strata come from."""
        return {
            "sensitive_columns": self.sensitive_columns,
            "strata": self.strata,
            "drop": bool(self.drop_sensitive),
            "hidden": self.group_estimator is not None,
        }

    def _checked_rows(
        self, X: Any, groups: Any, strata: Any, sample_weight: Any, rule: Any = None
    ) -> tuple[Codes | None, Codes | None, npt.NDArray[np.float64] | None]:
        """Groups (unless missing), strata and weights of the rows, checked before anything is trained."""
        n_rows, known = _num_samples(X), rule.columns if rule else Columns()
        are_passed = self.sensitive_columns is None  # and not made of X, like strata
        source = "sensitive_features" if are_passed else "sensitive_columns"
        check_aligned(X=X, **({} if are_passed else {source: groups}), strata=strata)
        check_passed_with(X, **({source: groups} if are_passed else {}), sample_weight=sample_weight)
        if isinstance(groups, str) and are_passed:
            raise InputError(
                "must be a column with one label per row",
                argument=source,
                got=groups,
                remedy="to take the groups from a column of X, pass {code} to the estimator",
                code=f"sensitive_columns={groups!r}",
            )
        codes = None if groups is None else encode_groups(groups, known.groups)
        if codes is not None:
            check_length(source, len(codes), n_rows, "X")
        cells = None if strata is None else encode_strata(strata, known.strata)
        return codes, cells, None if sample_weight is None else as_weights(sample_weight, n_rows)

    def _scored(
        self, X: Any, sensitive_features: Any, sample_weight: Any = None
    ) -> tuple[npt.NDArray[Any], Any, Codes | None, npt.NDArray[np.float64] | None]:
        """Scores, groups (or their probabilities), strata and weights of new rows.

        The classifier reads X first and checks it.
        """
        check_is_fitted(self)
        if self._group_model is None:
            check_given_once(sensitive_features, self._sources.groups)
        elif sensitive_features is not None:
            raise InputError(
                "is used only in `fit` if there is a {group_estimator}",
                argument="sensitive_features",
                remedy="leave it out",
            )
        features = self._sources.features(X)
        scores = self._task.scores(self.estimator_, features)
        labels = self._sources.labels(X, sensitive_features)
        codes, strata, weights = self._checked_rows(X, *labels, sample_weight, self.rule_)
        groups = codes if self._group_model is None else self._group_model.probabilities(features)
        return scores, groups, strata, weights

    # scikit-learn interface ------------------------------------------------------------------

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X in `fit`."""
        dropping = self._sources.dropped
        return dropping.n_features if dropping else int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns of X in `fit`."""
        dropping = self._sources.dropped
        names = dropping.names if dropping else None
        return self.estimator_.feature_names_in_ if names is None else np.array(names, dtype=object)

    def get_metadata_routing(self) -> Any:
        """Route `sample_weight` to the `fit` of the inner classifier and the group model if they request it.

        With a group model, methods that decide do not request `sensitive_features`.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        request, models = self._get_metadata_request(), {"estimator": self.estimator}
        if self.group_estimator is not None:
            models["group_estimator"] = self.group_estimator
            for method in _DECIDING:
                getattr(request, method).add_request(param="sensitive_features", alias=False)
        router = MetadataRouter(owner=type(self).__name__).add_self_request(request)
        return router.add(**models, method_mapping=MethodMapping().add(caller="fit", callee="fit"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        if self.group_estimator is not None:
            others = get_tags(self.group_estimator).input_tags
            for name in ("sparse", "allow_nan"):
                setattr(tags.input_tags, name, getattr(tags.input_tags, name) and getattr(others, name))
        inner = get_tags(self.estimator).classifier_tags
        tags.classifier_tags.multi_class = bool(inner and inner.multi_class) and not needing_two(self)
        return tags
