"""People read from JSON are decided as in Python, one by one or together, and wrong ones are all named."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairramp
from class_samples import class_people, quiet_class_fit
from fairramp import Columns, GroupProbabilities, Ramp, Rule
from fairramp.core.labels import UNSEEN, label_parts
from fairramp.web.serve.openapi import described, example_person, person_schema
from fairramp.web.serve.people import People, Unfit
from rules import labels_of, rules
from shell import KEY

VISIBLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=5).filter(lambda text: text.strip(UNSEEN))
IDS = st.one_of(VISIBLE, st.integers())
TWO = Rule(("Female", "Male"), (Ramp(0.25, 0.5), Ramp(0.5, 0.25)), columns=Columns("p", ("sex",)))


def through_json(people):
    return json.loads(json.dumps(people))


def made(rule, rows, scores, ids):
    """People with these values in each column of groups, and the columns as Python takes them."""
    people = People(rule, KEY)
    found = [
        {people.scores[0]: score, **dict(zip(people.cell_fields, row, strict=True)), "id": identifier}
        for score, row, identifier in zip(scores, rows, ids, strict=True)
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    n = len(people.strata)
    groups = columns[n:] if len(columns) - n > 1 else columns[n]
    strata = None if not n else columns[:n] if n > 1 else columns[0]
    return people, through_json(found), groups, strata


@given(st.data())
def test_decisions_are_those_of_the_rule(data):
    rule = data.draw(rules())
    rows, _ = labels_of(rule)
    n = data.draw(st.integers(1, 8))
    chosen = [data.draw(st.sampled_from(rows)) for _ in range(n)]
    low, high = rule.meaning.score_range if not rule.meaning.is_unbounded else (-40.0, 40.0)
    scores = [data.draw(st.floats(low, high)) for _ in range(n)]
    ids = [data.draw(IDS) for _ in range(n)]
    people, sent, groups, strata = made(rule, chosen, scores, ids)
    found = people.decide(sent, "people")
    assert [a["probability"] for a in found.answers] == rule.probabilities(scores, groups, strata).tolist()
    expected = rule.decide(scores, groups, strata=strata, ids=ids, key=KEY).tolist()
    assert [a["decision"] for a in found.answers] == expected
    assert [people.decide([person]).answers[0] for person in sent] == found.answers
    assert found.random == sum(0 < a["probability"] < 1 for a in found.answers)
    assert found.unseen == 0


@given(rules(), st.data())
def test_the_schema_allows_exactly_who_is_decided(rule, data):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    people = People(rule, KEY)
    schema = jsonschema.Draft202012Validator(person_schema(people))
    person = example_person(people)
    people.decide([through_json(person)])
    field = data.draw(st.sampled_from(people.fields))
    values = [*(v for column in people.values for v in column), -1, 0, 0.5, 1, 2, 101, True, "x", None, [], {}]
    person[field] = data.draw(st.sampled_from(values))
    if field == "id" and isinstance(person["id"], float):
        return
    try:
        people.decide([through_json(person)])
        decided = True
    except Unfit:
        decided = False
    assert schema.is_valid(person) == decided


def test_group_probabilities():
    rng = np.random.default_rng(0)
    q = rng.dirichlet([1, 1, 1], 400)
    scores = rng.random(400)
    rule = fairramp.fit_rule(scores, GroupProbabilities(q, ["a", "b", "c"]), max_gap=0.1)
    people = People(rule, KEY)
    assert people.chances == ("group_probability_a", "group_probability_b", "group_probability_c")
    sent = [
        dict(zip(people.fields, [s, *row, i], strict=True))
        for i, (s, row) in enumerate(zip(scores.tolist(), q.tolist(), strict=True))
    ]
    found = people.decide(through_json(sent), "people").answers
    expected = rule.probabilities(scores, GroupProbabilities(q, ["a", "b", "c"]))
    assert [a["probability"] for a in found] == expected.tolist()
    sent[3] |= dict.fromkeys(people.chances, 0.5)
    with pytest.raises(Unfit, match=r'people\[3\]: "group_probability_a", .* must sum to 1, got 1.5'):
        people.decide(sent, "people")


def test_each_attribute():
    rng = np.random.default_rng(0)
    sex, race, scores = rng.choice(["f", "m"], 600), rng.choice(["a", "b", "c"], 600), rng.random(600)
    rule = fairramp.fit_rule(scores, {"sex": sex, "race": race}, max_gap=0.05, combine="each")
    people = People(rule, KEY)
    assert people.cell_fields == ("sex", "race")
    sent = [
        {"score": s, "sex": g, "race": r, "id": i}
        for i, (s, g, r) in enumerate(zip(scores.tolist(), sex.tolist(), race.tolist(), strict=True))
    ]
    found = people.decide(through_json(sent), "people").answers
    decided = rule.decide(scores, {"sex": sex, "race": race}, ids=range(600), key=KEY)
    assert [a["decision"] for a in found] == decided.tolist()
    with pytest.raises(Unfit, match=r'"race" must be one of the rule\'s values "a", "b", "c", got "m"'):
        people.decide([sent[0] | {"race": "m"}])


@pytest.mark.parametrize("kind", ["groups", "strata", "probabilities"])
def test_several_classes(kind):
    scores, groups, _ = class_people(500, n_classes=3)
    rng = np.random.default_rng(1)
    q, strata = rng.dirichlet([1, 1], 500), rng.choice([1, 2], 500)
    by = GroupProbabilities(q, ["g0", "g1"]) if kind == "probabilities" else groups
    within = {"strata": strata} if kind == "strata" else {}
    rule = quiet_class_fit(scores, by, max_gap=0.05, classes=["low", "mid", "high"], **within)
    people = People(rule, KEY)
    assert people.scores == ("score_low", "score_mid", "score_high")
    parts = {"groups": [groups], "strata": [strata, groups], "probabilities": list(q.T)}[kind]
    columns = [*scores.T.tolist(), *(part.tolist() for part in parts), list(range(500))]
    sent = [dict(zip(people.fields, row, strict=True)) for row in zip(*columns, strict=True)]
    found = people.decide(through_json(sent), "people").answers
    names = ["probability_low", "probability_mid", "probability_high"]
    assert [[a[name] for name in names] for a in found] == rule.probabilities(scores, by, **within).tolist()
    decided = rule.decide(scores, by, **within, ids=range(500), key=KEY)
    assert [a["decision"] for a in found] == decided.tolist()
    with pytest.raises(Unfit, match=r'"score_low", "score_mid" and "score_high" must sum to 1, got 1\.5'):
        people.decide([sent[0] | dict(zip(people.scores, [0.5, 0.5, 0.5], strict=True))])


def test_without_a_key_there_are_no_ids_and_no_decisions():
    people = People(TWO, None)
    assert people.decide([{"p": 0.5, "sex": "Female"}]).answers == [{"probability": 0.5}]
    with pytest.raises(Unfit, match=r'"id" is unknown \(the service has no key and makes no decisions\)'):
        people.decide([{"p": 0.5, "sex": "Female", "id": "anna"}])


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"p": 41}, '"p" must be a number between 0 and 1, got 41.'),
        ({"p": "0.41"}, '"p" must be a number between 0 and 1, got "0.41".'),
        ({"p": True}, '"p" must be a number between 0 and 1, got true.'),
        ({"p": None}, '"p" must be a number between 0 and 1, got null.'),
        ({"p": 10**400}, '"p" must be a number between 0 and 1, got 1000'),
        ({"p": float("inf")}, '"p" must be a number between 0 and 1, got Infinity.'),
        ({"sex": "female"}, '"sex" must be one of the rule\'s values "Female", "Male", got "female".'),
        ({"sex": 1}, '"sex" must be one of the rule\'s values "Female", "Male", got 1.'),
        ({"sex": ["Male"]}, '"sex" must be text, an integer, true, false or null, got a list.'),
        ({"sex": 0.5}, '"sex" must be text, an integer, true, false or null, got a number with decimals.'),
        ({"sex": "\ud800"}, '"sex" must be text, an integer, true, false or null, got text.'),
        ({"id": None}, '"id" must be text or an integer, got null.'),
        ({"id": 12.0}, '"id" must be text or an integer, got a number with decimals.'),
        ({"id": False}, '"id" must be text or an integer, got true or false.'),
        ({"id": "\ud800"}, '"id" must be valid Unicode text.'),
        ({"id": ""}, '"id" must not be empty or blank.'),
        ({"id": "\u200b "}, '"id" must not be empty or blank.'),
        ({"age": 3}, 'The field "age" is unknown; the fields are "p", "sex" and "id".'),
    ],
)
def test_a_wrong_person_is_refused_in_one_sentence(changed, sentence):
    with pytest.raises(Unfit) as refused:
        People(TWO, KEY).decide([{"p": 0.41, "sex": "Male", "id": "anna"} | changed])
    assert str(refused.value).startswith(sentence)
    assert "anna" not in str(refused.value)


def test_a_field_by_another_name_is_missing_and_unknown():
    with pytest.raises(Unfit) as refused:
        People(TWO, KEY).decide([{"p": 0.41, "sex": "Male", "person": "anna"}])
    assert str(refused.value) == (
        '"id" is missing, and the field "person" is unknown; the fields are "p", "sex" and "id".'
    )


def test_all_wrong_people_are_counted_and_the_first_are_named():
    people = [{"p": 0.41 + (i % 2), "sex": "Male", "id": i} for i in range(30)] + [{"p": 0.1}, 3]
    with pytest.raises(Unfit) as refused:
        People(TWO, KEY).decide(people, "people")
    text = str(refused.value)
    assert text.startswith("17 of 32 people cannot be decided, so nobody was. people[1]: ")
    assert text.endswith('people[9]: "p" must be a number between 0 and 1, got 1.41; and 12 more.')


def test_values_that_occur_apart_but_not_together_are_refused():
    rule = Rule((("f", "a"), ("m", "b")), (Ramp(0.25, 0.5), Ramp(0.5, 0.25)))
    people = People(rule, KEY)
    assert people.cell_fields == ("group_1", "group_2")
    with pytest.raises(Unfit, match='fitted on nobody with "group_1" "f" and "group_2" "b"') as refused:
        people.decide([{"score": 0.5, "group_1": "f", "group_2": "b", "id": 1}])
    assert refused.value.unseen == 1


def test_refusing_many_people_takes_no_look_at_all_groups_for_each():
    names = [f"g{i}" for i in range(200)]
    people = People(Rule(tuple(names), (Ramp(0.25, 0.5),) * 200), None)
    asked = [{"score": 0.5, "group": "new"}] * 500
    sentence, calls = r"500 of 500 .* one of the rule's values \"g0\", .* and 190 more, got \"new\"", [0]

    def count(frame, event, argument):
        calls[0] += event == "call"

    with pytest.raises(Unfit, match=sentence):
        people.decide(asked, "people")
    sys.setprofile(count)
    try:
        with pytest.raises(Unfit, match=sentence):
            people.decide(asked, "people")
    finally:
        sys.setprofile(None)
    assert calls[0] < 100 * len(asked)


@pytest.mark.parametrize("policy", ["pooled", "original"])
def test_unseen_groups_follow_the_policy_whoever_else_is_asked_about(policy):
    rule = replace(TWO, unseen_group=policy, pooled=Ramp(0.4, 0.2) if policy == "pooled" else None)
    people = People(rule, None)
    labels = ["Female", "new", None, 1, True]
    found = people.decide([{"p": 0.5, "sex": label} for label in labels], "people")
    expected = [rule.probabilities([0.5], [label])[0] for label in labels]
    assert [a["probability"] for a in found.answers] == expected
    assert found.unseen == 4


def test_two_fields_of_one_name_are_refused():
    with pytest.raises(fairramp.InputError, match="Two fields of a person would be named 'id'"):
        People(replace(TWO, columns=Columns("p", ("id",))), KEY)


def test_the_description_is_valid_and_has_the_labels():
    description = described(People(TWO, KEY), TWO.fingerprint)
    person = description["components"]["schemas"]["Person"]
    assert person["properties"]["sex"]["enum"] == [label_parts(label)[0] for label in TWO.groups]
    assert json.loads(json.dumps(description)) == description
