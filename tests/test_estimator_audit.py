"""The estimator names its favorable class, and audits itself with the scores of its classifier."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fairramp import FairrampWarning, GroupProbabilities, InputError, audit, audit_classes
from fairramp.fit.direction import DirectionWarning
from people import FROZEN, NEW_RACE, NEW_SEX, NEW_X, NEW_Y, RACE, SEX, X, Y, frame, on_frames, optimizer

NEW = {"sensitive_features": NEW_SEX}
#: In sorted order, the favorable class is the first.
TEXT, NEW_TEXT = (np.where(y, "hired", "rejected") for y in (Y, NEW_Y))

# The favorable class --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), LinearSVC()], ids=["probabilities", "decision values"]
)
def test_the_favorable_class_may_be_the_first(estimator):
    numbers = optimizer(estimator, random_state=0).fit(X, Y, sensitive_features=SEX)
    model = optimizer(estimator, random_state=0, pos_label="hired").fit(X, TEXT, sensitive_features=SEX)
    assert model.classes_.tolist() == ["hired", "rejected"]
    assert model.rule_.thresholds == pytest.approx(numbers.rule_.thresholds, abs=1e-9)
    chances = model.predict_proba(NEW_X, **NEW)
    np.testing.assert_allclose(chances[:, ::-1], numbers.predict_proba(NEW_X, **NEW), atol=1e-9)
    heights = numbers.decision_function(NEW_X, **NEW)
    np.testing.assert_allclose(model.decision_function(NEW_X, **NEW), -heights, atol=1e-9)
    expected = np.where(numbers.predict(NEW_X, **NEW), "hired", "rejected")
    np.testing.assert_array_equal(model.predict(NEW_X, **NEW), expected)
    assert model.score(NEW_X, NEW_TEXT, **NEW) == pytest.approx(numbers.score(NEW_X, NEW_Y, **NEW), abs=1e-9)
    found = model.audit(NEW_X, NEW_TEXT, **NEW)
    assert found.gap == pytest.approx(numbers.audit(NEW_X, NEW_Y, **NEW).gap, abs=1e-9)
    more, numbers = (
        m.partial_fit(NEW_X, y, **NEW)
        for m, y in ((pickle.loads(pickle.dumps(model)), NEW_TEXT), (numbers, NEW_Y))
    )
    assert more.rule_.thresholds == pytest.approx(numbers.rule_.thresholds, abs=1e-9)


@pytest.mark.parametrize("labels", [TEXT, Y + 1, np.where(Y, "yes", "no")])
def test_labels_whose_meaning_is_not_known_are_named_in_the_fit(labels):
    other, favorable = np.unique(labels).tolist()
    words = (
        f"^The favorable class is {favorable!r}, the second in sorted order; pass pos_label={other!r} if it is"
    )
    model = optimizer()
    with pytest.warns(FairrampWarning, match=words) as caught:
        model.fit(X, labels, sensitive_features=SEX)
    assert len(caught) == 1
    model.partial_fit(NEW_X, labels[:900], **NEW).predict(NEW_X, **NEW)
    optimizer(pos_label=favorable).fit(X, labels, sensitive_features=SEX)


@pytest.mark.parametrize("labels", [Y, 2 * Y - 1, Y == 1, Y.astype(float)])
def test_labels_whose_meaning_is_known_need_no_name(labels):
    optimizer().fit(X, labels, sensitive_features=SEX)


def test_a_favorable_class_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match=r"`pos_label` must be one of the classes .*; did you mean 'hired'\?$"):
        optimizer(pos_label="Hired").fit(X, TEXT, sensitive_features=SEX)
    several = np.where(X[:, 0] > 1, 2, Y)
    with pytest.raises(
        InputError, match=r"Only binary classification is supported with `pos_label` 1, got 3 clas"
    ):
        optimizer(pos_label=1).fit(X, several, sensitive_features=SEX)


def test_the_favorable_class_is_a_setting_of_the_fit():
    model = clone(optimizer(pos_label=0)).fit(X, Y, sensitive_features=SEX)
    assert model.get_params()["pos_label"] == 0
    with pytest.raises(InputError, match=r"`pos_label` has changed since `fit`; call `fit` again"):
        model.set_params(pos_label=1).partial_fit(NEW_X, NEW_Y, **NEW)


@pytest.mark.filterwarnings("ignore:The best equal rate is 1")
def test_a_favorable_class_that_contradicts_a_trained_classifier_is_named():
    with pytest.warns(DirectionWarning, match=r"or `pos_label`, is the favorable class"):
        optimizer(FROZEN, pos_label=0).fit(X, 1 - Y, sensitive_features=SEX)


# Audits ---------------------------------------------------------------------------------------------


def expected(model, groups, labels=NEW_Y, x=NEW_X, **more):
    return audit(model.estimator_.predict_proba(x)[:, 1], groups, labels, rule=model.rule_, **more)


def test_an_audit_measures_the_classifier_and_the_rule():
    model = optimizer(max_gap=0.02).fit(X, Y, sensitive_features=SEX)
    assert str(model.audit(NEW_X, NEW_Y, **NEW)) == str(expected(model, NEW_SEX))
    assert str(model.audit(NEW_X, **NEW)) == str(expected(model, NEW_SEX, None))
    weights = np.random.default_rng(0).random(len(NEW_Y))
    found = model.audit(NEW_X, NEW_Y, sample_weight=weights, confidence=0.8, **NEW)
    assert str(found) == str(expected(model, NEW_SEX, sample_weight=weights, confidence=0.8))


@pytest.mark.parametrize("combine", ["intersections", "each"])
def test_an_audit_takes_several_attributes(combine):
    groups, new = np.column_stack([SEX, RACE]), np.column_stack([NEW_SEX, NEW_RACE])
    model = optimizer(combine=combine).fit(X, Y, sensitive_features=groups)
    assert str(model.audit(NEW_X, NEW_Y, sensitive_features=new)) == str(expected(model, new))


@pytest.mark.parametrize("drop", [False, True])
def test_an_audit_takes_columns_of_x(drop):
    model = optimizer(
        LogisticRegression() if drop else on_frames(),
        sensitive_columns=["sex", "race"],
        drop_sensitive=drop,
    ).fit(frame("pandas"), Y)
    new = frame("pandas", NEW_X, NEW_SEX, NEW_RACE)
    seen = new.drop(columns=["sex", "race"]) if drop else new
    assert str(model.audit(new, NEW_Y)) == str(expected(model, new[["sex", "race"]], x=seen))


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
def test_an_audit_with_a_group_model_takes_the_true_groups():
    model = optimizer(group_estimator=LogisticRegression())
    groups = model.fit(X, Y, sensitive_features=SEX).group_estimator_
    chances = GroupProbabilities(groups.predict_proba(NEW_X), list(groups.classes_))
    found = model.audit(NEW_X, NEW_Y, **NEW)
    assert str(found) == str(expected(model, NEW_SEX, group_probabilities=chances))
    with pytest.raises(InputError, match="The groups are missing: pass `sensitive_features`"):
        model.audit(NEW_X, NEW_Y)


def test_an_audit_takes_strata_and_several_classes():
    within = optimizer(strata=["race"]).set_params(estimator=on_frames(), sensitive_columns="sex")
    new = frame("pandas", NEW_X, NEW_SEX, NEW_RACE)
    within.fit(frame("pandas"), Y)
    found = within.audit(new, NEW_Y)
    assert str(found) == str(expected(within, NEW_SEX, x=new, strata=NEW_RACE))
    grades, new_grades = (
        np.where(x[:, 0] > 1, "high", np.where(y, "middle", "low")) for x, y in ((X, Y), (NEW_X, NEW_Y))
    )
    several = optimizer(max_gap=0.05).fit(X, grades, sensitive_features=SEX)
    scores = several.estimator_.predict_proba(NEW_X)
    assert str(several.audit(NEW_X, new_grades, **NEW)) == str(
        audit_classes(scores, NEW_SEX, new_grades, rule=several.rule_)
    )


def test_an_audit_needs_a_fit_and_works_behind_a_pipeline():
    with pytest.raises(NotFittedError):
        optimizer().audit(NEW_X, NEW_Y, **NEW)
    with sklearn.config_context(enable_metadata_routing=True):
        steps = make_pipeline(StandardScaler(), optimizer()).fit(X, Y, sensitive_features=SEX)
        found = steps[-1].audit(steps[:-1].transform(NEW_X), NEW_Y, **NEW)
    inside = optimizer(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, Y, sensitive_features=SEX)
    assert found.gap == pytest.approx(inside.audit(NEW_X, NEW_Y, **NEW).gap, abs=0.02)


def test_an_estimator_instead_of_its_rule_and_its_own_probabilities_have_a_remedy():
    model = optimizer().fit(X, Y, sensitive_features=SEX)
    decided = model.predict_proba(NEW_X, **NEW)[:, 1]
    with pytest.raises(
        InputError, match=r"got RandomizedThresholdOptimizer; call model\.audit\(X, y, .*model\.rule_"
    ):
        audit(decided, NEW_SEX, NEW_Y, rule=model)
    with pytest.warns(FairrampWarning, match=r"look like a rule's probabilities.*model\.audit"):
        audit(decided, NEW_SEX, NEW_Y, rule=model.rule_)
