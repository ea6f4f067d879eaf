"""Common mistakes of new users are answered by a sentence that names the cause and the remedy."""

import inspect
import pickle
import re
import subprocess
import sys
import warnings

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fairramp
from fairramp import FairrampWarning, GroupProbabilities, InputError, RandomizedThresholdOptimizer
from fairramp.compat.fairlearn import ThresholdOptimizer
from fairramp.core.labels import SEEN, UNSEEN, show_label, show_labels
from fairramp.deploy.dbt import to_macro
from fairramp.deploy.sql import to_sql
from fairramp.fit.direction import DirectionWarning
from samples import KEY, sample

SCORES, CODES = sample(4000, n_groups=2)
GROUPS = np.array(["a", "b"])[CODES]
LABELS = (np.random.default_rng(1).random(4000) < SCORES).astype(int)
DECISIONS = (SCORES > 0.5).astype(int)
X = np.random.default_rng(3).random((4000, 2))
TREE = DecisionTreeClassifier(random_state=0).fit(X, LABELS)  # fully grown, so each leaf is 0 or 1
RULE = fairramp.fit_rule(SCORES, GROUPS)
PREDICTED = "Did you pass predict() instead of predict_proba()?"

OPTIMIZER = "RandomizedThresholdOptimizer"


def optimizer(**settings):
    return RandomizedThresholdOptimizer(LogisticRegression(), **settings)


def told(action):
    """The result of an action, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = action()
    return result, [str(one.message) for one in caught if isinstance(one.message, FairrampWarning)]


def frame(score):
    return {"p": score, "g": GROUPS, "y": LABELS}


# predict() instead of predict_proba() ---------------------------------------------------------------

FITS = {
    "arrays": lambda x: fairramp.fit_rule(x, GROUPS),
    "with labels": lambda x: fairramp.fit_rule(x, GROUPS, LABELS, criterion="equal_opportunity"),
    "equalized odds": lambda x: fairramp.fit_rule(x, GROUPS, LABELS, criterion="equalized_odds"),
    "strata": lambda x: fairramp.fit_rule(x, GROUPS, strata=GROUPS[::-1]),
    "each attribute": lambda x: fairramp.fit_rule(x, [GROUPS, GROUPS[::-1]], combine="each"),
    "group probabilities": lambda x: fairramp.fit_rule(
        x, GroupProbabilities({"a": SCORES, "b": 1 - SCORES}), ramp_width=0.5
    ),
    "pandas": lambda x: fairramp.fit_frame(pd.DataFrame(frame(x)), score="p", group="g"),
    "polars": lambda x: fairramp.fit_frame(pl.DataFrame(frame(x)).lazy(), score="p", group="g"),
    "DuckDB": lambda x: fairramp.fit_frame(
        duckdb.from_arrow(pl.DataFrame(frame(x)).to_arrow()), score="p", group="g"
    ),
    "summary": lambda x: fairramp.fit_summary(fairramp.summarize(x, GROUPS)),
    "summary, labels": lambda x: fairramp.fit_summary(
        fairramp.summarize(x, GROUPS, labels=LABELS), criterion="equal_opportunity"
    ),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_a_fit_to_two_scores_asks_for_probabilities_and_says_how_much_is_a_lottery(fit):
    rule, warned = told(lambda: fit(DECISIONS.astype(float)))
    (sentence,) = [text for text in warned if "two distinct scores" in text]
    assert sentence.startswith("There are only two distinct scores, 0 and 1")
    assert sentence.endswith(PREDICTED)
    if rule.membership == "known" and not rule.stratified:
        chances = rule.probabilities(DECISIONS, GROUPS)
        share = ((chances > 0) & (chances < 1)).mean()
        assert f", so {100 * share:.1f}% of the decisions are made at random. " in sentence


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_a_fit_to_equal_scores_says_so(fit):
    _, warned = told(lambda: fit(np.full(len(GROUPS), 0.75)))
    (sentence,) = [text for text in warned if text.startswith("All scores are 0.75")]
    assert sentence.endswith(". Pass scores that tell people apart.")


def test_equal_scores_with_a_target_rate_are_a_lottery():
    assert told(lambda: fairramp.fit_rule(np.full(1000, 0.3), GROUPS[:1000], target_rate=0.5))[1] == [
        "All scores are 0.3, so 100.0% of the decisions are made at random. Pass scores that tell people apart."
    ]


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_a_fit_to_three_scores_asks_nothing(fit):
    score = DECISIONS.astype(float)
    score[-1] = 0.5
    _, warned = told(lambda: fit(score))
    assert not [text for text in warned if "two distinct scores" in text]


def test_two_scores_among_many_rows_of_an_engine_are_found_exactly():
    n = 40_000  # binned, not read one by one
    group = np.resize(["a", "b", "b"], n)
    for scores, expected in (([0.25, 0.75], 1), ([0.25, 0.75, 0.75 + 1e-9], 0)):
        table = pl.LazyFrame({"p": np.resize(scores, n), "g": group})
        _, warned = told(lambda table=table: fairramp.fit_frame(table, score="p", group="g"))
        assert len([text for text in warned if "two distinct scores, 0.25 and 0.75" in text]) == expected


def test_two_scores_of_a_rule_that_keeps_all_decisions_are_no_lottery():
    _, warned = told(lambda: fairramp.fit_rule(DECISIONS, GROUPS, max_gap=1))
    assert warned == [f"There are only two distinct scores, 0 and 1. {PREDICTED}"]


def test_measurements_of_decisions_ask_nothing():
    for use in (
        lambda: fairramp.audit(DECISIONS, GROUPS, LABELS),
        lambda: fairramp.evidence(DECISIONS, GROUPS, report=False),
    ):
        assert told(use)[1] == []


def test_a_frontier_of_two_scores_asks_for_probabilities():
    assert told(lambda: fairramp.frontier(DECISIONS, GROUPS, LABELS))[1] == [
        f"There are only two distinct scores, 0 and 1. {PREDICTED}"
    ]
    assert told(lambda: fairramp.frontier(SCORES, GROUPS, LABELS))[1] == []


def test_a_stream_of_two_scores_asks_for_probabilities():
    stream = fairramp.StreamingFit(target_rate=0.3)
    for part in np.array_split(np.arange(len(DECISIONS)), 9):
        stream.partial_fit(DECISIONS[part], GROUPS[part])
    assert told(stream.rule)[1] == [f"There are only two distinct scores, 0 and 1. {PREDICTED}"]
    assert told(stream.partial_fit([0.5], ["a"]).rule)[1] == []


def test_a_stream_of_a_few_rows_asks_nothing():
    few = fairramp.StreamingFit(target_rate=0.3).partial_fit([0, 1], ["a", "b"])
    assert told(few.rule)[1] == []


def test_a_stream_of_equal_scores_says_so():
    stream = fairramp.StreamingFit(target_rate=0.3).partial_fit([0.5] * 60, ["a", "b"] * 30)
    assert told(stream.rule)[1] == ["All scores are 0.5. Pass scores that tell people apart."]


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("predict", "decide"),
        ("predict_proba", "probabilities"),
        ("dump", "save"),
        ("transform", "apply"),
        ("iloc", None),
        ("certificates", "certificate"),
        ("__array__", None),
    ],
)
def test_names_of_other_libraries_are_answered_with_those_of_a_rule(name, ours):
    for rule in (
        fairramp.Rule(("a",), (fairramp.Ramp(0.5, 0.0),)),
        fairramp.fit_class_rule(np.random.default_rng(0).dirichlet([1, 1, 1], 80), ["a", "b"] * 40),
    ):
        hint = f"; did you mean {ours!r}?" if ours else ""
        with pytest.raises(AttributeError) as raised:
            getattr(rule, name)
        assert str(raised.value) == f"{type(rule).__name__!r} object has no attribute {name!r}{hint}"


def test_a_summary_with_two_coarse_bins_asks_nothing():
    coarse = fairramp.summarize(SCORES, GROUPS, resolution=2)
    _, warned = told(lambda: fairramp.fit_summary(coarse, ramp_width=0.5))
    assert not [text for text in warned if "two distinct scores" in text]


ONE_HOT = np.eye(3)[np.where(GROUPS == "a", np.resize([0, 1, 2], 4000), np.resize([0, 0, 1, 2], 4000))]


def class_table(scores):
    return pl.DataFrame({"g": GROUPS, **{f"p{c}": scores[:, c] for c in range(3)}})


NAMES = {"class_score": {c: f"p{c}" for c in "012"}, "group": "g"}
CLASS_FITS = {
    "arrays": lambda x: fairramp.fit_class_rule(x, GROUPS, max_gap=0.01),
    "polars": lambda x: fairramp.fit_frame(class_table(x), **NAMES, max_gap=0.01),
    "DuckDB": lambda x: fairramp.fit_frame(duckdb.from_arrow(class_table(x).to_arrow()), **NAMES, max_gap=0.01),
}


@pytest.mark.parametrize("fit", CLASS_FITS.values(), ids=CLASS_FITS)
def test_a_fit_to_decided_classes_asks_for_probabilities_and_says_how_much_is_a_lottery(fit):
    rule, warned = told(lambda: fit(ONE_HOT))
    share = (rule.probabilities(ONE_HOT, GROUPS).max(axis=1) < 1).mean()
    assert share > 0.01
    assert warned == [
        f"All scores of the classes are 0 or 1, so {100 * share:.1f}% of the decisions are made at random. Did "
        "you pass predicted classes instead of predict_proba()?"
    ]
    soft = ONE_HOT.copy()
    soft[-1] = 0.5, 0.3, 0.2
    assert told(lambda: fit(soft))[1] == []


def in_table(x, library=pd):
    return library.DataFrame({"p": x, "g": GROUPS, "id": np.arange(4000)})


#: By name: a use of a rule with new scores.
USES = {
    "decide": lambda rule, x: rule.decide(x, GROUPS, random_state=0),
    "probabilities": lambda rule, x: rule.probabilities(x, GROUPS),
    "apply to pandas": lambda rule, x: rule.apply(in_table(x), score="p", group="g"),
    "apply to polars": lambda rule, x: rule.apply(in_table(x, pl), score="p", group="g", id="id", key=KEY),
    "check": lambda rule, x: rule.check(x, GROUPS),
    "monitor": lambda rule, x: rule.monitor().update(x, GROUPS),
    "audit": lambda rule, x: fairramp.audit(x, GROUPS, rule=rule),
}
APPLIED = (
    "All scores are 0 or 1, but this rule was fitted on more than two values, so it cannot make rates equal. Did "
    "you pass predict() instead of predict_proba()?"
)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_rule_for_probabilities_that_is_given_decisions_asks_for_probabilities(use):
    for decisions in (DECISIONS, DECISIONS.astype(float), DECISIONS > 0, np.zeros(4000)):
        assert told(lambda decisions=decisions: use(RULE, decisions))[1] == [APPLIED]
    assert told(lambda: use(RULE, SCORES))[1] == told(lambda: use(RULE, SCORES.round(1)))[1] == []
    assert APPLIED not in told(lambda: use(RULE, np.append(DECISIONS[1:], 0.5)))[1]


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_rules_own_probabilities_are_not_taken_for_scores(use):
    _, warned = told(lambda: use(RULE, RULE.probabilities(SCORES, GROUPS)))
    (sentence,) = warned
    assert sentence.startswith("98.5% of the scores")
    assert "are exactly 0 or 1: these look like a rule's probabilities" in sentence
    assert "the favorable class's column of model.estimator_.predict_proba(X)" in sentence


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_rule_that_was_fitted_to_such_scores_asks_nothing(use):
    rule, _ = told(lambda: fairramp.fit_rule(DECISIONS, GROUPS))
    assert told(lambda: use(rule, DECISIONS))[1] == []
    # A classifier that is nearly always certain.
    certain = np.where(np.arange(4000) % 12 > 0, DECISIONS, SCORES.round(1))
    rule, _ = told(lambda: fairramp.fit_rule(certain, GROUPS))
    assert told(lambda: use(rule, certain))[1] == []


def test_few_rows_and_rules_of_which_nothing_is_known_ask_nothing():
    assert told(lambda: RULE.decide(DECISIONS[:29], GROUPS[:29], random_state=0))[1] == []
    by_hand = fairramp.Rule(RULE.groups, RULE.ramps)
    assert told(lambda: by_hand.probabilities(DECISIONS, GROUPS))[1] == []


def test_an_estimator_with_two_scores_is_told_to_use_a_finer_one():
    model = RandomizedThresholdOptimizer(FrozenEstimator(TREE))
    _, warned = told(lambda: model.fit(X, LABELS, sensitive_features=GROUPS))
    (sentence,) = [text for text in warned if "two distinct scores" in text]
    assert sentence.endswith("Use a classifier with finer scores, or calibrate this one.")
    classes = (X[:, 0] * 3).astype(int)
    tree = DecisionTreeClassifier(random_state=0).fit(X, classes)
    model = RandomizedThresholdOptimizer(FrozenEstimator(tree))
    _, warned = told(lambda: model.fit(X, classes, sensitive_features=GROUPS))
    (sentence,) = [text for text in warned if "All scores of the classes are 0 or 1" in text]
    assert sentence.endswith("Use a classifier with finer scores, or calibrate this one.")


def test_under_fairlearns_name_predictions_are_welcome_if_asked_for():
    for method, expected in (("predict_proba", 1), ("auto", 1), ("predict", 0)):
        model = ThresholdOptimizer(estimator=TREE, prefit=True, predict_method=method)
        _, warned = told(lambda model=model: model.fit(X, LABELS, sensitive_features=GROUPS))
        asked = [text for text in warned if "two distinct scores" in text]
        assert len(asked) == expected
        assert all(text.endswith("or pass `predict_method='predict'` if decisions are meant.") for text in asked)


# Scores in the other direction ----------------------------------------------------------------------


@pytest.mark.parametrize("target_rate", ["accuracy", "optimal"])
def test_reversed_scores_are_named_before_their_consequences(target_rate):
    rare = (np.random.default_rng(2).random(4000) < 0.4 * (1 - SCORES)).astype(int)
    rule, warned = told(lambda: fairramp.fit_rule(SCORES, GROUPS, rare, target_rate=target_rate))
    assert warned[0].startswith("Scores are lower for the favorable outcome (label 1)")
    assert "If lower scores are better (a risk), pass `higher_is_better=False`." in warned[0]
    if target_rate == "accuracy":
        assert rule.probabilities(SCORES, GROUPS).max() == 0
        assert warned[1] == (
            "The best equal rate is 0: no one is selected. If lower scores are better (a risk), pass "
            "`higher_is_better=False`; otherwise set `target_rate` to a number."
        )
    _, warned = told(
        lambda: fairramp.fit_rule(SCORES, GROUPS, rare, target_rate=target_rate, higher_is_better=False)
    )
    assert not [text for text in warned if "lower scores" in text]


def test_the_direction_is_told_for_tables_of_engines():
    table = pl.LazyFrame({"p": SCORES, "g": GROUPS, "y": 1 - LABELS})
    _, warned = told(lambda: fairramp.fit_frame(table, score="p", group="g", label="y", target_rate="accuracy"))
    assert warned[0].startswith("Scores are lower for the favorable outcome (label 1)")


def test_a_probability_of_default_that_selects_no_one_is_explained_without_labels():
    _, warned = told(lambda: fairramp.fit_rule(SCORES * 0.3, GROUPS))
    assert warned == [
        "The best equal rate is 0: no one is selected. If lower scores are better (a risk), pass "
        "`higher_is_better=False`; otherwise set `cutoff` to the score at which the classifier selects, or set "
        "`target_rate` to a number."
    ]
    _, warned = told(lambda: fairramp.fit_rule(SCORES * 0.3, GROUPS, higher_is_better=False))
    assert "1: everyone is selected. If higher scores are better, remove `higher_is_better=False`;" in warned[0]


def test_a_trained_classifier_that_contradicts_the_labels_is_named():
    model = LogisticRegression().fit(SCORES[:, None], LABELS)
    wrapped = RandomizedThresholdOptimizer(FrozenEstimator(model), target_rate="optimal")
    with pytest.warns(DirectionWarning, match=r"Check that `classes_\[1\]` of the trained classifier, or"):
        wrapped.fit(SCORES[:, None], 1 - LABELS, sensitive_features=GROUPS)


# Labels of groups that look alike -------------------------------------------------------------------


def dirty(*labels, n=1200):
    return np.resize(np.array(labels, dtype=object), n)


ALIKE = {
    "fit": lambda g: fairramp.fit_rule(SCORES[:1200], g),
    "fit to a table": lambda g: fairramp.fit_frame(
        pl.LazyFrame({"p": SCORES[:1200], "g": g.tolist()}), score="p", group="g"
    ),
    "fit by each": lambda g: fairramp.fit_rule(SCORES[:1200], [g, GROUPS[:1200]], combine="each"),
    "fit within strata": lambda g: fairramp.fit_rule(SCORES[:1200], GROUPS[:1200], strata=g),
    "fit of classes": lambda g: fairramp.fit_class_rule(
        np.column_stack([SCORES, (1 - SCORES) / 2, (1 - SCORES) / 2])[:1200], g
    ),
    "audit": lambda g: fairramp.audit(SCORES[:1200], g),
    "audit of several columns": lambda g: fairramp.audit(SCORES[:1200], [g, GROUPS[:1200]]),
    "audit of classes": lambda g: fairramp.audit_classes(
        np.column_stack([SCORES, (1 - SCORES) / 2, (1 - SCORES) / 2])[:1200], g
    ),
}


@pytest.mark.parametrize("use", ALIKE.values(), ids=ALIKE)
def test_labels_that_differ_only_in_spaces_or_case_are_named(use):
    _, warned = told(lambda: use(dirty("F", "M", " F", "f")))
    assert [text for text in warned if "differ only" in text] == [
        "Some group labels differ only in spaces or case: ' F', 'F' and 'f'. Each is a group of its own; if they "
        "mean the same, clean the column first."
    ]


@pytest.mark.parametrize(
    ("labels", "how", "some"),
    [
        (("a", "a\u200b"), "invisible characters", r"'a' and 'a\u200b'"),
        (("a", "\ufeffa", "a\xad"), "invisible characters", r"'a', 'a\xad' and '\ufeffa'"),
        (("a", "a\u2800"), "invisible characters", r"'a' and 'a\u2800'"),
        ((1, "1", 2), "type", "1 and '1'"),
        ((True, "True", False), "type", "True and 'True'"),
        (("Caf\xe9", "Cafe\u0301"), "how the letters are encoded", r"'Cafe\u0301' and 'Caf\xe9'"),
        (
            ("a", "A", "b", "b\u2060"),
            "spaces or case or in invisible characters",
            r"'A' and 'a'; 'b' and 'b\u2060'",
        ),
    ],
)
@pytest.mark.parametrize("use", ["fit", "fit by each", "audit"])
def test_labels_that_look_alike_are_named_with_what_they_differ_in(use, labels, how, some):
    _, warned = told(lambda: ALIKE[use](dirty(*labels)))
    assert [text for text in warned if "differ only" in text] == [
        f"Some group labels differ only in {how}: {some}. Each is a group of its own; if they mean the same, "
        "clean the column first."
    ]


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (("a", "a\u200b"), ["a", r'"a\u200b"']),
        ((1, "1", "2"), ["1", '"1" (text)', "2"]),
        ((True, "True"), ["True", '"True" (text)']),
        (("Caf\xe9", "Cafe\u0301"), [r'"Cafe\u0301"', r'"Caf\xe9"']),
        (("\u200b", "\ufeff\u2060"), [r'"\u200b" (a zero-width space)', r'"\ufeff\u2060" (2 blanks)']),
        (("\u2800", "\xad"), [r'"\xad" (a soft hyphen)', r'"\u2800" (a blank Braille cell)']),
    ],
)
def test_different_groups_never_print_the_same(labels, shown):
    (found, rule), _ = told(lambda: (fairramp.audit(SCORES[:1200], dirty(*labels)), ALIKE["fit"](dirty(*labels))))
    assert [line.split("  ")[0] for line in str(found.table()).splitlines()[2:]] == shown
    for text in shown[:2]:
        assert text in str(rule.table())
        assert text in found.table().to_markdown().replace("\\\\", "\\")
        assert text in " ".join(found.sentences()) or len(labels) > 2


def test_labels_of_every_script_are_shown_as_they_are():
    for label in (
        "F",
        "Caf\xe9",
        "Cafe\u0301",
        "\u5973",
        "\u0645\u06cc\u200c\u062e",
        "\U0001f468\u200d\U0001f469",
        "1",
    ):
        assert show_label(label) == label
    assert show_labels(["1", "2", "1"]) == ["1", "2", "1"]


def test_different_labels_are_not_called_alike():
    for labels in (["F", "M", "FM"], ["a", "á"], [1, 11], ["x", None]):
        assert not [
            text for text in told(lambda labels=labels: ALIKE["fit"](dirty(*labels)))[1] if "alike" in text
        ]
    # Values of different columns may be equal.
    assert not told(lambda: fairramp.audit(SCORES[:1200], [dirty("yes", "no"), dirty("Yes", "No", "No")]))[1]


BLANK = re.compile("blank or missing group")


@pytest.mark.parametrize("label", ["", None, " ", "\u200b", "#REF!", float("nan")])
@pytest.mark.parametrize("use", ["fit", "fit of classes", "audit", "audit of classes"])
def test_rows_without_a_group_are_counted(use, label):
    groups, nobody = (
        np.array(["F", "M"] * 585 + [label] * 30, dtype=object),
        np.array([label] * 1200, dtype=object),
    )

    def counted(groups):
        return [text for text in told(lambda: ALIKE[use](groups))[1] if BLANK.search(text)]

    assert counted(groups) == [
        "30 rows have a blank or missing group, which is treated as a group of its own; if it is not one, remove "
        "these rows first."
    ]
    assert counted(nobody) == []
    rule = told(lambda: fairramp.fit_rule(SCORES[:1200], groups))[0]  # says what a group is
    assert not told(lambda: fairramp.audit(SCORES[:1200], groups, rule=rule))[1]


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("", "(blank)"),
        (None, "(missing)"),
        (" ", '" " (a space)'),
        ("   ", '"   " (3 spaces)'),
        ("\xa0", '"\\xa0" (a no-break space)'),
        ("\t", '"\\t" (a tab)'),
        (" \t", '" \\t" (2 blanks)'),
        (" F", '" F"'),
        ("F\xa0", '"F\\xa0"'),
        ("nan", '"nan" (text)'),
        ("None", '"None" (text)'),
        ("(missing)", '"(missing)" (text)'),
        ("New York", "New York"),
        ("F", "F"),
    ],
)
def test_labels_that_cannot_be_seen_are_described_in_tables_and_messages(label, shown):
    assert show_label(label) == shown
    groups = dirty("other", label)
    (rule, warned), text = told(lambda: fairramp.fit_rule(SCORES[:1200], groups)), shown
    assert [text for text in warned if not BLANK.search(text)] == []
    assert text in str(rule.table())
    assert text in str(told(lambda: fairramp.audit(SCORES[:1200], groups))[0])
    with pytest.warns(FairrampWarning) as caught:
        fairramp.fit_rule(SCORES[:100], ["other"] * 90 + [label] * 10)
    assert f"{text} (10 rows)" in str(caught[-1].message)
    assert rule.table().to_dict()["group"] == sorted(["other", label], key=lambda v: (v is None, v))


# Ids, labels and scores of the wrong kind -------------------------------------------------------------


@pytest.mark.parametrize(
    "ids",
    [
        ["p1", "", "p3"],
        ("p1", "", "p3"),
        np.array(["p1", "", "p3"]),
        np.array(["p1", "", "p3"], dtype=object),
        pd.Series(["p1", "", "p3"]),
        pl.Series(["p1", "", "p3"]),
    ],
    ids=["list", "tuple", "text", "objects", "pandas", "polars"],
)
def test_an_empty_id_is_refused_with_its_row_even_if_nothing_is_drawn(ids):
    for use in (
        lambda: RULE.decide([0.0, 1.0, 0.0], ["a", "b", "a"], ids=ids, key=KEY),
        lambda: fairramp.draws(ids, KEY),
        lambda: fairramp.select([0.1, 0.2, 0.3], ["a", "b", "a"], places=1, max_gap=1, ids=ids, key=KEY),
    ):
        with pytest.raises(InputError) as error:
            use()
        assert str(error.value) == (
            "`ids` must not be empty or blank, got '' in row 1; give every row a unique id."
        )


#: Ids that are not empty, and print as nothing.
BLANK_IDS = [" ", " \t", "\xa0", "\u200b", "\ufeff\u2060", "\xad", "\u2800", "\u2029\u3000"]


@pytest.mark.parametrize("blank", BLANK_IDS)
@pytest.mark.parametrize("form", [list, np.array, pd.Series, pl.Series])
def test_an_id_that_cannot_be_seen_is_refused_and_written_so_that_it_can(form, blank):
    with pytest.raises(InputError, match=r"^`ids` must not be empty or blank, got '") as error:
        RULE.decide([0.0, 1.0], ["a", "b"], ids=form(["p1", blank]), key=KEY)
    assert "in row 1; give every row a unique id." in str(error.value)
    assert str(error.value).isascii()


def test_ids_with_anything_to_see_are_ids():
    ids = ["-", " a", "\u200b7", "\u5973", "\x00", "_", "'", 0]
    assert len(fairramp.draws(ids, KEY)) == len(ids)
    table = duckdb.from_arrow(pl.DataFrame({"p": [0.4] * 7, "g": ["a"] * 7, "who": ids[:-1]}).to_arrow())
    assert len(RULE.apply(table, score="p", group="g", id="who", key=KEY).fetchall()) == 7


def test_no_blank_id_begins_like_one_that_can_be_seen():
    """Only the others are stripped, which is slow."""
    first, beyond = SEEN
    assert not [character for character in ("", *UNSEEN) if first <= character < beyond]


@pytest.mark.parametrize("empty", ["", *BLANK_IDS])
@pytest.mark.parametrize("library", ["pandas", "polars", "polars, lazy", "DuckDB", "Dask"])
def test_an_empty_id_in_a_table_is_refused(library, empty):
    columns = {"p": [0.4, 0.5], "g": ["a", "b"], "who": ["p1", empty]}
    table = {
        "Dask": lambda: dask.dataframe.from_pandas(pd.DataFrame(columns), npartitions=1),
        "pandas": lambda: pd.DataFrame(columns),
        "polars": lambda: pl.DataFrame(columns),
        "polars, lazy": lambda: pl.LazyFrame(columns),
        "DuckDB": lambda: duckdb.from_arrow(pl.DataFrame(columns).to_arrow()),
    }[library]()
    with pytest.raises(InputError, match=r"`ids` must .*empty.*; give every row a unique id\.$"):
        RULE.apply(table, score="p", group="g", id="who", key=KEY)


@pytest.mark.parametrize(
    ("scores", "labels", "words"),
    [
        (SCORES, LABELS + 1, "`labels` must be 0 or 1, got 2.0 in row"),
        (
            SCORES,
            np.resize([0, 1, 2], 4000),
            "`labels` must be 0 or 1, got 2.0 in row 2; pass 1 for the favorable",
        ),
        (SCORES, np.resize(["low", "mid", "high"], 4000), "`labels` must be numbers, got text; pass 1 for the"),
        (
            SCORES,
            np.eye(3)[np.resize([0, 1, 2], 4000)],
            r"`labels` must be one column, got shape \(4000, 3\); pass 1 for",
        ),
        (np.column_stack([SCORES] * 3) / 3, LABELS, r"`scores` must be one column, got shape \(4000, 3\); pass"),
    ],
)
def test_several_classes_name_the_function_for_them(scores, labels, words):
    with pytest.raises(InputError, match=words) as error:
        fairramp.fit_rule(scores, GROUPS, labels)
    assert "fairramp.fit_class_rule" in str(error.value)


def test_both_columns_of_predict_proba_and_predicted_text_name_the_column_to_pass():
    for scores in (np.column_stack([1 - SCORES, SCORES]), pd.DataFrame({"no": 1 - SCORES, "yes": SCORES})):
        with pytest.raises(
            InputError, match=r"got shape \(4000, 2\); .* predict_proba\(X\)\[:, i\], where .* class\.$"
        ):
            fairramp.fit_rule(scores, GROUPS)
    with pytest.raises(
        InputError, match=r"got text; pass predict_proba\(X\)\[:, i\], .*, instead of predict\(X\)"
    ):
        fairramp.audit(np.where(DECISIONS, "yes", "no"), GROUPS)
    with pytest.raises(
        InputError, match=r"got shape \(4000, 1\); pass the column alone: numpy.ravel\(scores\)\.$"
    ):
        fairramp.fit_rule(SCORES[:, None], GROUPS)


@pytest.mark.parametrize(
    "table", [pd.DataFrame({"p": SCORES}), pl.DataFrame({"p": SCORES}), pl.DataFrame({"p": SCORES}).to_arrow()]
)
def test_a_table_of_one_column_is_told_to_pass_the_column_with_its_index(table):
    with pytest.raises(InputError, match=r"pass the column alone: scores\['p'\]\.$"):
        fairramp.fit_rule(table, GROUPS)
    fairramp.fit_rule(table["p"], GROUPS)


def test_labels_of_minus_one_and_one_are_told_how_to_become_0_and_1():
    for labels in (2 * LABELS - 1, (2 * LABELS - 1).astype(float)):
        with pytest.raises(InputError, match=r"favorable class, pass \(labels > 0\)\.astype\(int\)\.$"):
            fairramp.fit_rule(SCORES, GROUPS, labels)


def test_an_estimator_whose_best_rate_is_0_or_1_names_the_classes_instead_of_a_setting_it_does_not_have():
    rare = (np.arange(4000) % 50 == 0).astype(int)
    model = RandomizedThresholdOptimizer(FrozenEstimator(LogisticRegression().fit(X, rare)))
    _, warned = told(lambda: model.fit(X, rare, sensitive_features=GROUPS))
    (sentence,) = [text for text in warned if "best equal rate" in text]
    assert sentence == (
        "The best equal rate is 0: no one is selected. If the other class is the favorable one, pass it as "
        "`pos_label`; otherwise set `target_rate` to a number."
    )


# Misspelled names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "near"),
    [
        ({"criterion": "equalised_odds"}, "equalized_odds"),
        ({"target_rate": "optimall"}, "optimal"),
        ({"target_rate": "Accuracy"}, "accuracy"),
        ({"solver": "exat"}, "exact"),
        ({"scale": "probabilty"}, "probability"),
        ({"ramp": "centerd"}, "centered"),
        ({"unseen_group": "pool"}, "pooled"),
        ({"small_groups": "borow"}, "borrow"),
        ({"combine": "intersection"}, "intersections"),
        ({"confidence_limit": "estimate", "confidence": 0.9, "max_gap": 0.1}, "estimated"),
    ],
)
def test_a_misspelled_word_is_answered_with_the_nearest_one(setting, near):
    with pytest.raises(InputError, match=f"; did you mean '{near}'\\?$"):
        fairramp.fit_rule(SCORES, GROUPS, LABELS, **setting)


@pytest.mark.parametrize(
    ("use", "function", "near"),
    [
        (lambda: fairramp.fit_rule(SCORES, GROUPS, maxgap=0.1), "fit_rule", "max_gap"),
        (lambda: fairramp.fit_frame(pd.DataFrame(), score="p", targetrate=1), "fit_frame", "target_rate"),
        (
            lambda: fairramp.tune(SCORES, GROUPS, LABELS, validation=(SCORES, GROUPS, LABELS), unseen="error"),
            "tune",
            "unseen_group",
        ),
        (lambda: RULE.to_onnx(decision=True), "Rule.to_onnx", "decisions"),
        (lambda: fairramp.audit(SCORES, GROUPS, labls=LABELS), "audit", "labels"),
        (lambda: fairramp.frontier(SCORES, GROUPS, labl=LABELS), "frontier", "labels"),
        (lambda: fairramp.Rule.load(pth="rule.json"), "Rule.load", "path"),
        (lambda: RULE.decide(SCORES, GROUPS, random_sate=0), "Rule.decide", "random_state"),
        (lambda: RULE.decide(SCORES, GROUPS, id=GROUPS), "Rule.decide", "ids"),
        (lambda: RULE.decide(SCORES, GROUPS, seed=0), "Rule.decide", "random_state"),
        (lambda: RULE.probabilities(SCORES, group=GROUPS), "Rule.probabilities", "groups"),
        (lambda: RULE.apply(pd.DataFrame(), ids="id"), "Rule.apply", "id"),
        (lambda: RandomizedThresholdOptimizer(TREE, maxgap=0), "RandomizedThresholdOptimizer", "max_gap"),
        (lambda: optimizer().fit(X, LABELS, groups=GROUPS), f"{OPTIMIZER}.fit", "sensitive_features"),
        # Names that Fairlearn and scikit-learn use
        (lambda: fairramp.fit_rule(SCORES, GROUPS, constraints="x"), "fit_rule", "criterion"),
        (lambda: fairramp.fit_rule(SCORES, GROUPS, tol=0.1), "fit_rule", "max_gap"),
        (lambda: fairramp.fit_rule(SCORES, GROUPS, weights=SCORES), "fit_rule", "sample_weight"),
        (lambda: fairramp.fit_frame(pd.DataFrame(), score="p", sample_weight="w"), "fit_frame", "weight"),
        (lambda: fairramp.fit_frame(pd.DataFrame(), score="p", sensitive_features="g"), "fit_frame", "group"),
        (lambda: fairramp.audit(SCORES, sensitive_features=GROUPS), "audit", "groups"),
        (lambda: fairramp.audit(SCORES, GROUPS, y_true=LABELS), "audit", "labels"),
        (lambda: ThresholdOptimizer(estimator=TREE, max_gap=0.1), "ThresholdOptimizer", "tol"),
        (lambda: to_sql(RULE, "duckdb", groups="g"), "to_sql", "group"),
        (lambda: to_macro(RULE, "fair", scores="p"), "to_macro", "score"),
    ],
)
def test_a_misspelled_keyword_is_answered_with_the_nearest_one(use, function, near):
    words = rf"^{re.escape(function)}\(\) got an unexpected keyword argument '\w+'; did you mean '{near}'\?$"
    with pytest.raises(TypeError, match=words):
        use()


def answering():
    """Public functions, and methods of the classes whose methods take options, with the names users call."""
    for name, function in inspect.getmembers(fairramp, inspect.isfunction):
        yield name, function
    for kind in (fairramp.Rule, fairramp.ClassRule, fairramp.Monitor, RandomizedThresholdOptimizer):
        yield kind.__name__, kind.__init__
        for name, function in inspect.getmembers(kind, inspect.isfunction):
            if name in dir(kind) and not name.startswith(("_", "set_", "get_")):
                yield f"{kind.__name__}.{name}", function


@pytest.mark.parametrize(("name", "function"), [pytest.param(*one, id=one[0]) for one in answering()])
def test_every_public_callable_knows_the_name_of_a_misspelled_option(name, function):
    arguments = inspect.signature(function).parameters.values()
    needed = [p for p in arguments if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    needed_options = {p.name: None for p in arguments if p.default is p.empty and p.kind is p.KEYWORD_ONLY}
    for option in [p.name for p in arguments if p.kind is p.KEYWORD_ONLY and len(p.name) > 3]:
        words = rf"^{re.escape(name)}\(\) got an unexpected keyword argument '{option}_'; did you mean '\w+'\?$"
        with pytest.raises(TypeError, match=words):
            function(*[None] * len(needed), **needed_options, **{f"{option}_": None})


def test_every_public_method_is_named_as_users_call_it():
    for name, method in answering():
        passes_on = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(method).parameters.values())
        if "." in name and not passes_on:
            with pytest.raises(TypeError, match=rf"^{re.escape(name)}\(\) got an unexpected keyword argument"):
                method(unknown_=None)


def test_functions_keep_their_signature_their_documentation_and_can_be_pickled():
    assert list(inspect.signature(fairramp.audit).parameters)[:4] == ["scores", "groups", "labels", "rule"]
    assert list(inspect.signature(fairramp.Rule.decide).parameters)[-1] == "random_state"
    assert "scores : numbers of shape (n,)" in inspect.getdoc(fairramp.audit)
    for function in (fairramp.audit, fairramp.fit_rule, fairramp.Rule.apply, fairramp.Rule.load):
        assert pickle.loads(pickle.dumps(function)) == function


def test_a_trained_classifier_is_passed_as_scikit_learn_does():
    with pytest.raises(TypeError, match=r"'prefit'; for a trained classifier, pass sklearn\.frozen\.FrozenEst"):
        RandomizedThresholdOptimizer(TREE, prefit=True)


def test_a_misspelled_group_column_is_answered_with_the_nearest_one():
    people = pd.DataFrame(X, columns=["a", "b"]).assign(race=GROUPS)
    model = optimizer(sensitive_columns="Race", drop_sensitive=True)
    with pytest.raises(InputError, match=r"names 'Race', but X has the columns .*; did you mean 'race'\?$"):
        model.fit(people, LABELS)


# Rows in messages ---------------------------------------------------------------------------------------

SHUFFLED = pd.DataFrame({"p": SCORES, "g": GROUPS, "y": LABELS}).sample(frac=1, random_state=0)
FAULTY = SHUFFLED.assign(p=SHUFFLED.p.where(np.arange(4000) != 278))


@pytest.mark.parametrize(
    "use",
    [
        lambda x: fairramp.fit_rule(x.p, x.g),
        lambda x: fairramp.fit_rule(x.p, x[["g", "y"]]),
        lambda x: fairramp.fit_frame(x, score="p", group="g"),
        lambda x: fairramp.audit(x.p, x.g, x.y),
        lambda x: RULE.probabilities(x.p, x.g.to_numpy()),
        lambda x: RULE.apply(x, score="p", group="g"),
    ],
)
def test_a_row_is_named_by_its_position_and_its_pandas_index(use):
    start, end = "`scores` must be finite numbers, got nan ", "; drop or fill rows without a score."
    index = FAULTY.index[278]
    assert index != 278
    for table, where in (
        (FAULTY, f"at position 278 (index {index})"),
        (FAULTY.set_axis([f"p{i}" for i in range(4000)]), "at position 278 (index 'p278')"),
        (FAULTY.reset_index(drop=True), "in row 278"),
    ):
        with pytest.raises(InputError) as error:
            use(table)
        assert str(error.value) == start + where + end


def test_other_rows_than_scores_are_named_by_their_index_too():
    labels = SHUFFLED.y.where(np.arange(4000) != 7, 3)
    with pytest.raises(InputError, match=rf"got 3\.0 at position 7 \(index {labels.index[7]}\); pass 1 for"):
        fairramp.audit(SHUFFLED.p, SHUFFLED.g, labels)
    # Of two indexes, nothing tells which one is meant.
    validation = (FAULTY.p[1000:], FAULTY.g[1000:], FAULTY.y[1000:])
    with pytest.raises(InputError, match=r"`labels` must be 0 or 1, got 3\.0 in row 7"):
        fairramp.frontier(SHUFFLED.p, SHUFFLED.g, labels, validation=validation)
    series, arrays = (SHUFFLED.p, SHUFFLED.g, SHUFFLED.y), (FAULTY.p.to_numpy(), GROUPS, LABELS)
    for rows, others in ((arrays, series), (series, arrays)):
        with pytest.raises(InputError, match="got nan in row 278"):
            fairramp.frontier(*rows, validation=others)


def test_a_row_whose_index_is_missing_is_named_by_both():
    scores = pd.Series([np.nan, 0.5, 0.2], index=pd.Index([pd.NA, 1, 2], dtype="Int64"))
    with pytest.raises(InputError, match=r"got nan at position 0 \(index <NA>\)"):
        fairramp.fit_rule(scores, ["a", "b", "a"])


def test_a_missing_score_of_a_list_has_the_remedy_too():
    with pytest.raises(InputError, match=r"got None in row 1; drop or fill rows without a score\.$"):
        fairramp.fit_rule([0.5, None], ["a", "b"])


def test_misspelled_settings_of_fairlearn_are_answered_with_the_nearest_one():
    for setting, near in (
        ({"constraints": "equalised_odds"}, "equalized_odds"),
        ({"objective": "accuracy"}, "accuracy_score"),
        ({"predict_method": "predict_probab"}, "predict_proba"),
    ):
        model = ThresholdOptimizer(estimator=LogisticRegression(), **setting)
        with pytest.raises(InputError, match=f"did you mean '{near}'"):
            model.fit(SCORES[:, None], LABELS, sensitive_features=GROUPS)


def test_a_misspelled_name_of_the_module_is_answered_with_the_nearest_one():
    with pytest.raises(
        AttributeError, match=r"^module 'fairramp' has no attribute 'fit_rul'; did you mean 'fit_rule'\?$"
    ):
        fairramp.fit_rul  # noqa: B018
    assert not hasattr(fairramp, "__wrapped__")


def test_a_fit_by_group_probabilities_needs_no_score_near_a_ramp():
    n = 60_000  # of this many rows, only those near a ramp are looked at again
    chance = np.random.default_rng(4).random(n)
    rule, _ = told(
        lambda: fairramp.fit_rule(
            (chance > 0.5).astype(float), GroupProbabilities({"a": chance, "b": 1 - chance}), max_gap=0.1
        )
    )
    assert rule.record.gap_after <= 0.1 + 1e-9


# The wrong column -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda: fairramp.fit_rule(SCORES, LABELS, GROUPS),
        lambda: fairramp.fit_rule(LABELS, SCORES, GROUPS),
        lambda: fairramp.fit_rule(GROUPS, SCORES),
        lambda: fairramp.audit(LABELS, SCORES, GROUPS),
        lambda: fairramp.audit(LABELS, GROUPS, SCORES),
        lambda: fairramp.audit(GROUPS, SCORES, LABELS),
    ],
)
def test_arguments_in_the_wrong_order_are_answered_with_the_right_one(use):
    with pytest.raises(InputError, match=r"; the order is scores, groups, labels\.$"):
        use()


def test_columns_that_are_wrong_in_any_order_are_not_said_to_be_in_the_wrong_one():
    for use in (
        lambda: fairramp.fit_rule(SCORES, GROUPS, LABELS + 1),
        lambda: fairramp.fit_rule(np.where(SCORES > 0.5, np.nan, SCORES), GROUPS, LABELS),
        lambda: fairramp.audit(GROUPS, GROUPS, LABELS),
        lambda: fairramp.fit_rule(SCORES, GROUPS[:-1], LABELS),
    ):
        with pytest.raises(InputError) as error:
            use()
        assert "the order is" not in str(error.value)


@pytest.mark.parametrize(
    ("labels", "remedy"),
    [
        (LABELS + 1, "pass 1 for the favorable class"),
        (2 * LABELS - 1, "pass (labels > 0).astype(int)"),
        (pd.Series(LABELS, dtype="Int64").where(LABELS == 1), "must be 0 or 1, got nan"),
        (LABELS[:-1], "the lengths must match"),
        (LABELS[:-1].astype(str), "is the favorable class"),
    ],
)
def test_wrong_labels_next_to_groups_of_0_and_1_are_not_said_to_be_in_the_wrong_order(labels, remedy):
    with pytest.raises(InputError) as error:
        fairramp.fit_rule(SCORES, (GROUPS == "a").astype(int), labels)
    assert remedy in str(error.value)
    assert "the order is" not in str(error.value)


def test_a_hint_at_the_order_keeps_the_remedy():
    groups = np.where(LABELS == 1, "a", "b")
    with pytest.raises(InputError, match=r"pass \(labels == '[ab]'\).astype\(int\); the order is scores,"):
        fairramp.fit_rule(SCORES, LABELS, groups)


def test_a_rule_in_the_place_of_labels_is_named():
    with pytest.raises(InputError, match=r"`labels` must be 0 or 1, got a rule; pass the rule by name: rule="):
        fairramp.audit(SCORES, GROUPS, RULE)


def test_the_wrong_column_of_predict_proba_is_a_cause_of_the_wrong_direction():
    cause = "Did you pass the other class's column of predict_proba(X)?"
    _, warned = told(lambda: fairramp.fit_rule(1 - SCORES, GROUPS, LABELS))
    assert warned[0].endswith(cause)
    _, warned = told(lambda: fairramp.fit_rule(SCORES, GROUPS, LABELS, higher_is_better=False))
    assert cause not in warned[0]


def test_a_column_that_is_the_index_is_named_as_such():
    people = pd.DataFrame({"p": SCORES, "g": GROUPS}, index=pd.Index(np.arange(4000), name="person"))
    with pytest.raises(
        InputError, match=r"^'person' is the index of the table, not a column; pass df\.reset_ind"
    ):
        RULE.apply(people, score="p", group="g", id="person", key=KEY)
    assert len(RULE.apply(people.reset_index(), score="p", group="g", id="person", key=KEY)) == 4000


def test_a_single_unknown_group_is_answered_with_the_policies_and_shown_as_in_tables():
    policies = r"fit again with `unseen_group='pooled'` or `unseen_group='original'`\.$"
    for group, shown in (("Other", "'Other'"), (None, r"\(missing\)"), (np.nan, r"\(missing\)")):
        with pytest.raises(
            fairramp.UnseenGroupError, match=rf"^Groups not in the fit rows: \[{shown}\]; .*{policies}"
        ):
            RULE.probabilities([0.4], [group])


@pytest.mark.parametrize(
    "ids", [GROUPS, np.zeros(4000, dtype=int), GROUPS.tolist(), np.repeat(np.arange(1000), 4)]
)
def test_ids_that_hardly_differ_are_named(ids):
    words = (
        "rows with the same id share one random draw. If they are different people, pass an id for each person."
    )
    for use in (
        lambda: RULE.decide(SCORES, GROUPS, ids=ids, key=KEY),
        lambda: RULE.apply(
            pd.DataFrame({"p": SCORES, "g": GROUPS, "id": ids}), score="p", group="g", id="id", key=KEY
        ),
    ):
        (sentence,) = told(use)[1]
        assert sentence.startswith("Only ")
        assert sentence.endswith(f"of the first 1,000 `ids` are different, and {words}")


def test_ids_of_several_decisions_of_a_person_and_of_few_rows_are_not_questioned():
    for n, ids in ((4000, np.repeat(np.arange(2000), 2)), (99, np.zeros(99, dtype=int))):
        assert told(lambda n=n, ids=ids: RULE.decide(SCORES[:n], GROUPS[:n], ids=ids, key=KEY))[1] == []


def test_small_slips_have_a_remedy():
    with pytest.raises(InputError, match=r"`random_state` .*; pass numpy\.random\.default_rng\(0\)\.$"):
        RULE.decide(SCORES, GROUPS, random_state=np.random.RandomState(0))
    with pytest.raises(InputError, match=r"and 1, got 50; for scores from 0 to 100, pass `scale='percent'`\.$"):
        fairramp.fit_rule(SCORES, GROUPS, cutoff=50)
    with pytest.raises(AttributeError, match=r"did you mean 'Rule\.load'\?$"):
        fairramp.load  # noqa: B018


# Columns of X ---------------------------------------------------------------------------------------

TEXTS = pd.DataFrame({"p": SCORES, "g": GROUPS})


def test_a_classifier_that_fails_on_the_sensitive_columns_has_a_note():
    with pytest.raises(ValueError, match="could not convert") as error:
        optimizer(sensitive_columns="g").fit(TEXTS, LABELS)
    note = "The classifier also gets 'g'; drop_sensitive=True hides the sensitive columns."
    assert error.value.__notes__ == [note]
    optimizer(sensitive_columns="g", drop_sensitive=True).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="NaN") as error:
        optimizer(sensitive_columns="g", drop_sensitive=True).fit(TEXTS.assign(p=np.nan), LABELS)
    assert not hasattr(error.value, "__notes__")


def test_a_name_for_an_array_has_the_pipeline_as_its_remedy():
    with pytest.raises(InputError, match=r"or put the pipeline inside: Randomized.*\(make_pipeline"):
        optimizer(sensitive_columns="g").fit(TEXTS.to_numpy(), LABELS)


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (
            lambda: fairramp.fit_rule(SCORES, sensitive_features=GROUPS),
            "fit_rule() needs groups; sensitive_features=… is called groups here",
        ),
        (lambda: fairramp.audit(SCORES), "audit() needs groups"),
        (
            lambda: fairramp.fit_rule(SCORES, GROUPS, LABELS, 0.02),
            "fit_rule() takes scores, groups, labels by position, got 4 arguments; pass others by name: strata=…",
        ),
        (lambda: fairramp.fit_rule(SCORES, GROUPS).report("report.html"), "Rule.report() needs groups"),
        (
            lambda: fairramp.fit_rule(SCORES, GROUPS).certificate(SCORES, GROUPS),
            "Rule.certificate() takes confidence by position, got 2 arguments; pass others by name: scores=…",
        ),
    ],
)
def test_a_call_that_python_refuses_names_the_arguments_as_users_know_them(use, told):
    with pytest.raises(TypeError) as caught:
        use()
    assert str(caught.value).startswith(told)


def test_an_error_of_a_type_inside_a_function_is_not_taken_for_a_wrong_call():
    class Odd:
        def __array__(self, *_, **__):
            raise TypeError("of its own")

    with pytest.raises(TypeError, match=r"^of its own$"):
        fairramp.fit_rule(Odd(), GROUPS)


@pytest.mark.parametrize("name", ["thresholds_", "threshold"])
def test_a_name_that_the_rule_has_wins_over_names_of_other_libraries(name):
    rule = fairramp.fit_rule(SCORES, GROUPS)
    with pytest.raises(AttributeError, match="did you mean 'thresholds'"):
        getattr(rule, name)


def test_a_table_in_the_place_of_scores_is_told_of_fit_frame():
    frame = pd.DataFrame({"p": SCORES, "unit": GROUPS})
    with pytest.raises(InputError, match=r"^`scores` must be one column, got a table of 2 columns; .*fit_frame"):
        fairramp.fit_rule(frame, GROUPS)


def test_two_labels_that_are_text_are_compared_with_the_favorable_one():
    text = np.where(LABELS == 1, "hired", "rejected")
    first, second = dict.fromkeys(text.tolist())
    for labels in (text, text.astype(object), pd.Series(text)):
        with pytest.raises(InputError) as caught:
            fairramp.fit_rule(SCORES, GROUPS, labels)
        told = f"if {first!r} is the favorable class and not {second!r}, pass (labels == {first!r}).astype(int)."
        assert str(caught.value).endswith(told)
    assert fairramp.fit_rule(SCORES, GROUPS, (text == "hired").astype(int)).record is not None


def test_a_column_that_the_rule_remembers_can_be_named_anew():
    frame = pd.DataFrame({"p": SCORES, "unit": GROUPS})
    rule = fairramp.fit_frame(frame, score="p", group="unit")
    other = frame.rename(columns={"p": "chance"})
    with pytest.raises(InputError, match=r"no column 'p'; its columns are .* another name here, pass `score`\.$"):
        rule.apply(other)
    assert "probability" in rule.apply(other, score="chance")
    with pytest.raises(InputError, match=r"no column 'q'; its columns are 'p', 'unit'\.$"):
        rule.apply(frame, score="q")


def test_an_estimator_that_cross_fits_says_what_a_certificate_needs():

    features = SCORES[:, None]
    model = fairramp.RandomizedThresholdOptimizer(LogisticRegression(), random_state=0)
    rule = model.fit(features, LABELS, sensitive_features=GROUPS).rule_
    with pytest.raises(fairramp.FairrampError, match=r"rule\.certificate\(scores=…, groups=…\)"):
        rule.certificate()
    fresh = model.estimator_.predict_proba(features)[:, 1]
    assert rule.certificate(scores=fresh, groups=GROUPS).proven > 0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("compat", "import it first: import fairramp.compat.fairlearn"),
        ("mlflow", "import it first: import fairramp.mlflow"),
        ("MetricFrame", "did you mean 'audit'?"),
    ],
)
def test_modules_and_names_of_other_libraries_are_answered(name, told):
    code = f"import fairramp\ntry: fairramp.{name}\nexcept AttributeError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"module 'fairramp' has no attribute {name!r}; {told}"


def test_a_name_in_the_place_of_groups_is_answered_with_the_setting_for_columns():

    frame = pd.DataFrame({"p": SCORES, "unit": GROUPS})
    with pytest.raises(InputError) as caught:
        fairramp.RandomizedThresholdOptimizer(LogisticRegression()).fit(
            frame[["p"]], LABELS, sensitive_features="{unit}"
        )
    assert str(caught.value).endswith("pass sensitive_columns='{unit}' to the estimator.")
