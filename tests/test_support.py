"""The page *What works with what*: all combinations of settings, engines and exports are tried."""

import itertools

import numpy as np
import pytest

import fairramp
from engines import ENGINES
from support import (
    ASPECTS,
    CLASS_ENGINES,
    CLASS_SCORES,
    EXPORTS,
    PAGE,
    Choice,
    class_columns,
    class_refusals,
    class_settings,
    combinations,
    core,
    defaults,
    each_once,
    exported,
    fitted,
    fitted_classes,
    fitted_table,
    groups_of,
    incompatible,
    keywords,
    members,
    names_both,
    page,
    pairs_of,
    refused,
    rows,
)

pytestmark = pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")


def name_of(combination):
    return ", ".join(c.name for c, d in zip(combination, defaults().values(), strict=True) if c is not d)


def works(combination):
    return pairs_of(combination).isdisjoint(incompatible())


def test_every_combination_works_or_is_refused_by_the_pairs_on_the_page():
    for combination in combinations():
        assert (refused(combination) is None) == works(combination), name_of(combination)


def test_every_refusal_names_what_cannot_be_combined():
    for pair, told in incompatible().items():
        assert names_both(told, pair), (pair, told)


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "python tests/support.py writes it"


@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("criterion", ASPECTS["criterion"], ids=lambda choice: choice.name)
def test_fits_work_or_raise_as_the_page_says(criterion, strata):
    for combination in [*core(), *each_once()]:
        given = keywords(combination)
        if given["criterion"] != criterion.settings["criterion"] or given.get("strata", False) != strata:
            continue
        if not works(combination):
            with pytest.raises(fairramp.UnsupportedError):
                fitted(combination)
            continue
        rule = fitted(combination)
        data = rows(given["scale"], up=given["higher_is_better"])
        labels = {"strata": data["stratum"]} if strata else {}
        h = rule.probabilities(data["score"], groups_of(combination, data), **labels)
        assert rule.criterion == given["criterion"]
        if given["solver"] == "sgd" or given["small_groups"] == "borrow":
            continue  # rates are only about equal
        w = data["weight"] if given.get("sample_weight") else np.ones(len(h))
        for shares, event in itertools.product(members(combination, data), rule.event.simple):
            of = np.ones(len(h), dtype=bool) if event.label is None else data["label"] == event.label
            rates = [np.average(h, weights=w * of * share) for share in shares]
            low, high = min(rates), max(rates)
            most = given.get("max_gap")
            assert (high - low <= most + 1e-9) if most is not None else (0.8 * high - low <= 1e-9)
        if "overall_rate" in given:
            assert np.average(h, weights=w) == pytest.approx(given["overall_rate"], abs=1e-9)


@pytest.mark.parametrize("source", [*ENGINES, "summary"])
def test_tables_and_summaries_work_like_arrays(source):
    tried = [c for c in core() if keywords(c)["small_groups"] == "alone"]
    if source not in ("pandas", "polars-lazy", "summary"):  # others read tables in the same way
        tried = tried[:: 7 if source in ("duckdb", "polars", "arrow") else 31]
    for combination in tried:
        given = keywords(combination)
        is_lazy = source not in ("pandas", "polars", "arrow")
        mixes = combination[0] is not defaults()["groups"]
        unsupported = (is_lazy and given["solver"] == "sgd") or (source == "summary" and mixes)
        if not works(combination) or unsupported:
            with pytest.raises(fairramp.UnsupportedError):
                fitted_table(source, combination)
            continue
        found, expected = fitted_table(source, combination), fitted(combination)
        close = 1e-9 if source != "summary" else 0.05
        np.testing.assert_allclose(found.record.column("after"), expected.record.column("after"), atol=close)
        if source != "summary":
            np.testing.assert_allclose(found.thresholds, expected.thresholds, atol=1e-6)


@pytest.mark.parametrize("kind", EXPORTS)
def test_every_rule_can_be_exported(kind):
    aspects = ("groups", "criterion", "limit", "strata", "ramp", "scale", "direction")
    for choices in itertools.product(*(ASPECTS[aspect] for aspect in aspects)):
        chosen = dict(zip(aspects, choices, strict=True))
        level = ASPECTS["level"][choices[1].name != 'criterion="parity"']
        combination = tuple((defaults() | {"level": level} | chosen).values())
        if works(combination):
            exported(fitted(combination), kind)


@pytest.mark.parametrize("choice", [c for choices in ASPECTS.values() for c in choices[1:]], ids=lambda c: c.name)
def test_settings_of_several_classes_work_or_are_refused_by_name(choice):
    told = class_settings()[choice.name]
    if told is not None:
        named = {"costs": "target_rate", "confidence_limit": "confidence"}
        name = choice.name.partition("=")[0]
        assert named.get(name, name) in told
        return
    rule, data = fitted_classes(choice), class_columns()
    combination = (Choice("default", {"combine": "intersections"}), choice)
    strata = {"strata": data["stratum"]} if choice.name == "strata" else {}
    scores = np.column_stack([data[name] for name in CLASS_SCORES.values()])
    h = rule.probabilities(scores, groups_of(combination, data), **strata)
    w = data["weight"] if choice.name == "sample_weight" else np.ones(len(h))
    for shares in members(combination, data):
        rates = [np.average(h, weights=w * share, axis=0) for share in shares]
        assert np.ptp(rates, axis=0).max() <= 1e-8


@pytest.mark.parametrize("engine", ENGINES)
def test_tables_of_several_classes_work_or_are_refused(engine):
    if engine in CLASS_ENGINES:
        expected = fitted_classes(Choice("max_gap")).offsets
        np.testing.assert_allclose(fitted_classes(Choice("max_gap"), engine).offsets, expected, atol=1e-6)
    else:
        with pytest.raises(fairramp.UnsupportedError, match="several classes do not support lazy tables of"):
            fitted_classes(Choice("max_gap"), engine)


def test_everything_else_that_several_classes_lack_is_refused():
    assert all(class_refusals().values())


@pytest.mark.parametrize(
    ("scores", "remedy"),
    [
        (np.full((6, 3), 1 / 3), r"predict_proba\(X\)\[:, i\], where .*, or use fairramp\.fit_class_rule"),
        (np.full((6, 2), 0.5), r"predict_proba\(X\)\[:, i\], where .* favorable class\.$"),
    ],
    ids=["three", "two"],
)
def test_scores_of_several_classes_are_named(scores, remedy):
    with pytest.raises(fairramp.InputError, match=r"pass the scores of the favorable class, such as " + remedy):
        fairramp.fit_rule(scores, ["A", "B"] * 3)


def test_labels_of_several_classes_are_named():
    told = (
        r"must be 0 or 1, got 2\.0 in row 2; pass 1 for the favorable class and 0 for all other classes, or use "
        r"fairramp\.fit_class_rule"
    )
    with pytest.raises(fairramp.InputError, match=told):
        fairramp.fit_rule([0.1, 0.2, 0.3], ["A", "B", "A"], [0, 1, 2], target_rate="accuracy")
