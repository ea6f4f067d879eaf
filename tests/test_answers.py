"""The answer to one person: the library's probability, and sentences that are true, in Python and on the page."""

import json
import math
import re
import shutil
import subprocess
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairramp
from fairramp import Columns, InputError, Ramp, Rule, UnseenGroupError
from fairramp.core.labels import show_label
from fairramp.core.scales import SCALES
from fairramp.show import report
from fairramp.show.answers import answer_forms
from fairramp.show.words import unmarked
from rules import rules

HERE = Path(report.__file__).parent
ENDS = {"above": ">", "at or above": ">=", "below": "<", "at or below": "<="}
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?"
BOUND = re.compile(rf"(?<=a score of )({NUMBER})(?: \(probability ({NUMBER})\))? is ((?:at or )?\w+) ({NUMBER}),")
BETWEEN = re.compile(rf"scores between ({NUMBER}) and ({NUMBER}) are on the ramp")
BESIDE = re.compile(rf"scores (above|below) ({NUMBER}) are on the ramp")


def asked(rule, cell):
    """How to ask about a cell of a rule."""
    return {"group": cell[1], "stratum": cell[0]} if rule.stratified else {"group": cell}


@st.composite
def people(draw):
    """A rule with simple names, and a score that is often at, or next to, the ends of a ramp."""
    rule = draw(rules())
    names = tuple(f"g{i:02}" for i in range(len(rule.groups)))
    rule = replace(rule, groups=tuple(("s", n) for n in names) if rule.stratified else names)
    i = draw(st.integers(0, len(names) - 1))
    low, high = rule.meaning.finite_range
    near = [end for ramp in rule.ramps for end in rule.ends_of(ramp) if math.isfinite(end)]
    if rule.scale == "logit":
        near = [math.log(p / (1 - p)) for p in near if 0 < p < 1]
    near = [
        score for end in [*near, rule.cutoff] for score in (end, *(np.nextafter(end, to) for to in (low, high)))
    ]
    rounded = [round(score, 4) for score in near]
    score = draw(
        st.one_of(st.sampled_from([*near, *rounded]), st.floats(low, high), st.floats(max(low, -5), min(high, 5)))
    )
    return rule, rule.groups[i], float(min(max(score, low), high))


@given(people())
def test_probability_and_decision_are_the_librarys(person):
    rule, cell, score = person
    found = rule.explain(score, **asked(rule, cell))
    strata = [cell[0]] if rule.stratified else None
    assert found.probability == rule.probabilities([score], [found.group], strata)[0]
    original = replace(rule, unseen_group="original", pooled=None)
    new = original.probabilities([score], ["new"], strata)[0]
    assert found.before == new == original.explain(score, "new", stratum=found.stratum).probability
    assert (found.answer == "yes") == (found.probability == 1)
    assert (found.answer == "no") == (found.probability == 0)
    first = {"yes": "Yes. ", "no": "No. ", "random": "Decided at random: yes with probability "}
    assert found.why.startswith(first[found.answer])
    assert found.why.count("The classifier alone") == 1
    same, other = ("yes", "no") if found.before else ("no", "yes")
    assert f"alone says {other}" not in found.why
    assert f"alone would say {other}" not in found.why
    assert ("as well" in found.why) == (found.answer == same)


@given(people())
def test_every_printed_bound_is_true_of_the_printed_score(person):
    rule, cell, score = person
    found = rule.explain(score, **asked(rule, cell))
    for text, shown, relation, bound in BOUND.findall(found.why):
        assert float(text) == score
        assert bool(shown) == (rule.scale == "logit")
        own, edge = Decimal(shown or text), Decimal(bound)
        assert {">": own > edge, ">=": own >= edge, "<": own < edge, "<=": own <= edge}[ENDS[relation]]
        better = relation.endswith("above") == rule.higher_is_better
        assert better == (found.answer == "yes")
    own = rule.meaning.shown_score(score)
    for low, high in BETWEEN.findall(found.why):
        assert float(low) - 5e-5 <= own <= float(high) + 5e-5
        if rule.scale != "logit":
            assert Decimal(low) <= Decimal(repr(score)) <= Decimal(high)
    assert ("between" in found.why) == bool(BETWEEN.search(found.why))
    if "is selected" in found.why or found.answer != "random":
        assert bool(BOUND.search(found.why)) != ("whatever the score" in found.why)


@given(people())
def test_printed_bounds_are_those_of_the_table(person):
    rule, cell, score = person
    ramp = rule.ramps[rule.groups.index(cell)]
    found, ends = rule.explain(score, **asked(rule, cell)), rule.ends_of(ramp)
    printed = [bound for *_, bound in BOUND.findall(found.why)] + [b for _, b in BESIDE.findall(found.why)]
    printed += [bound for pair in BETWEEN.findall(found.why) for bound in pair]
    for bound in map(float, printed):
        near = [end for end in ends if abs(end - bound) <= 6e-5 + 1e-9 * abs(bound)]
        # If rounding errors of the conversion would make a sentence false, the score itself is printed.
        assert near or math.isclose(bound, rule.meaning.shown_score(score), rel_tol=1e-15)


@given(people())
def test_whatever_the_score_is_said_only_if_scores_do_not_matter(person):
    rule, cell, score = person
    found = rule.explain(score, **asked(rule, cell))
    ends = [rule.explain(end, **asked(rule, cell)).probability for end in rule.meaning.finite_range]
    assert ("whatever the score" in found.why) == (ends[0] == ends[1])
    if "all scores are on the ramp" in found.why:
        assert all(0 < end < 1 for end in ends) or rule.scale == "real"


SIMPLE = Rule(
    ("ramp", "step", "flat", "all", "nobody"),
    (Ramp(0.2285, 0.01), Ramp(0.41, 0.0, 0.37), Ramp.constant(0.3), Ramp(-0.5, 0.1), Ramp(1.5, 0.0)),
)


@pytest.mark.parametrize(
    ("score", "group", "sentences"),
    [
        (0.41, "ramp", "Yes. In group ramp, a score of 0.41 is at or above 0.2385, where everyone is selected. "),
        (0.1, "ramp", "No. In group ramp, a score of 0.1 is at or below 0.2285, where no one is selected. "),
        (
            0.2285 + 1e-9,
            "ramp",
            "Decided at random: yes with probability <0.1%. In group ramp, scores between 0.2285 ",
        ),
        (
            0.232,
            "ramp",
            "Decided at random: yes with probability 35.0%. In group ramp, scores between 0.2285 and ",
        ),
        (
            0.41,
            "step",
            "Decided at random: yes with probability 37.0%. In group step, a score of 0.41 is exactly ",
        ),
        (0.42, "step", "Yes. In group step, a score of 0.42 is above 0.4100, where everyone is selected. "),
        (0.41000001, "step", "Yes. In group step, a score of 0.41000001 is above 0.4100, where everyone is "),
        (0.4, "step", "No. In group step, a score of 0.4 is below 0.4100, where no one is selected. "),
        (0.4, "flat", "Decided at random: yes with probability 30.0%. In group flat, everyone has this "),
        (0.4, "all", "Yes. In group all, everyone is selected, whatever the score. The classifier alone would"),
        (
            0.4,
            "nobody",
            "No. In group nobody, no one is selected, whatever the score. The classifier alone says no ",
        ),
    ],
)
def test_sentences(score, group, sentences):
    assert SIMPLE.explain(score, group).why.startswith(sentences)


def test_more_digits_where_rounding_would_make_a_sentence_false():
    rule = Rule(("a",), (Ramp(0.22846, 0.01),))
    assert "a score of 0.23846 is at or above 0.2385," not in rule.explain(0.238461, "a").why
    assert "a score of 0.238461 is at or above 0.23846," in rule.explain(0.238461, "a").why
    assert "a score of 0.2386 is at or above 0.2385," in rule.explain(0.2386, "a").why
    assert "between 0.22846 and 0.23846 are" in rule.explain(0.228465, "a").why
    logit = Rule(("a",), (Ramp(0.5, 0.0, 0.5),), scale="logit", cutoff=0.0)
    assert "a score of 1e-9 (probability 0.50000000025) is above 0.5," in logit.explain(1e-9, "a").why
    assert "a score of 2 (probability 0.8808) is above 0.5000," in logit.explain(2, "a").why


@pytest.mark.parametrize(
    ("ramp", "sentence"),
    [
        (
            Ramp(-0.5, 1.0),
            "scores below 0.5000 are on the ramp, where the probability of yes rises from 50.0% to 100%.",
        ),
        (
            Ramp(0.2, 2.0),
            "scores above 0.2000 are on the ramp, where the probability of yes rises from 0% to 40.0%.",
        ),
        (Ramp(-0.5, 2.0), "all scores are on the ramp, where the probability of yes rises from 25.0% to 75.0%."),
    ],
)
def test_ramp_that_ends_outside_of_the_scale(ramp, sentence):
    assert sentence in Rule(("a",), (ramp,)).explain(0.3, "a").why


def test_lower_is_better():
    rule = Rule(("a",), (Ramp.centered(-0.3, 0.1),), higher_is_better=False, cutoff=0.28)
    assert "a score of 0.2 is at or below 0.2500, where everyone is selected." in rule.explain(0.2, "a").why
    no = rule.explain(0.4, "a")
    assert "a score of 0.4 is at or above 0.3500, where no one is selected." in no.why
    ramp = "between 0.2500 and 0.3500 are on the ramp, where the probability of yes rises from 0% to 100% as the"
    assert f"{ramp} score falls." in rule.explain(0.3, "a").why
    assert (no.before, rule.explain(0.28, "a").before) == (False, True)


def test_unseen_groups_follow_the_policy():
    with pytest.raises(UnseenGroupError, match=r"Did you mean 'ramp' \(for 'RAMP'\)"):
        SIMPLE.explain(0.4, "RAMP")
    pooled = replace(SIMPLE, unseen_group="pooled", pooled=Ramp(0.3, 0.05))
    assert pooled.explain(0.4, "x").why.startswith(
        "Yes. In group x, which was not in the fit rows, a score of 0.4 is"
    )
    original = replace(SIMPLE, unseen_group="original").explain(0.4, "x")
    assert original.why == (
        "No. The rule keeps the classifier's own decisions in group x, which was not in the fit rows. "
        "The classifier says yes at 0.5 or above."
    )
    assert (original.probability, original.before, original.answer) == (0.0, False, "no")


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (float("nan"), "`score` must be between 0 and 1, got nan."),
        (41, "`score` must be between 0 and 1, got 41."),
        ([0.4], r"`score` must be a number between 0 and 1, got \[0.4\]."),
        ("0.4", "`score` must be a number between 0 and 1, got '0.4'."),
        (True, "`score` must be a number between 0 and 1, got True."),
        (None, "`score` must be a number between 0 and 1, got None."),
    ],
)
def test_bad_score(score, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        SIMPLE.explain(score, "ramp")


def test_bad_group():
    with pytest.raises(InputError, match=r"must be a string, an integer, a boolean or missing, got 0\.5"):
        SIMPLE.explain(0.5, 0.5)
    with pytest.raises(
        InputError, match=r"^This rule equalizes over all rows and does not use `stratum`; remove it.$"
    ):
        SIMPLE.explain(0.5, "ramp", stratum="s")


def test_strata_and_several_columns():
    cells = (("x", ("F", 1)), ("x", ("M", 1)), (None, ("F", 1)))
    ramps = (Ramp(0.2, 0.1), Ramp(0.4, 0.1), Ramp(0.6, 0.1))
    rule = Rule(cells, ramps, stratified=True, target_rate=None)
    found = rule.explain(0.35, ["F", 1], stratum="x")
    assert found == rule.explain(0.35, ("F", 1), stratum="x")
    assert "In group F / 1 in stratum x, a score of 0.35 is at or above 0.3000" in found.why
    assert found.to_dict()["group"] == ["F", 1]
    assert "in stratum (missing)" in rule.explain(0.35, ("F", 1)).why
    named = Rule(cells[:2], ramps[:2], stratified=True, target_rate=None, columns=Columns(strata=("dept",)))
    with pytest.raises(InputError, match=r"^This rule equalizes within strata: pass `stratum` \(dept\).$"):
        named.explain(0.35, ("F", 1))


@pytest.mark.parametrize("label", ["a", 3, True, None, ("a", 3)], ids=repr)
def test_labels_of_every_type(label):
    rule = Rule((label, "other"), (Ramp(0.2, 0.1), Ramp(0.7, 0.1)))
    found = rule.explain(0.5, label)
    assert (found.answer, found.group) == ("yes", label)
    assert f"In group {show_label(label)}, " in found.why
    assert rule.explain(np.float64(0.5), label) == found
    assert json.loads(json.dumps(found.to_dict()))["why"] == found.why


HOSTILE = (
    "{score}",
    "{{x}}",
    "<img src=x onerror=alert(1)>",
    "</script>",
    "\x1b[31mred\u202e\u2069",
    "%s",
    "$&",
    "above",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_inert(name):
    rule = Rule((name,), (Ramp(0.2, 0.1),))
    found = rule.explain(0.25, name)
    assert f"In group {show_label(name)}, scores between" in found.why
    assert "\x1b" not in repr(found)
    assert "\u202e" not in repr(found)
    for raw in ("<img", "</script"):
        assert raw not in found._repr_html_()
    assert found._repr_html_().startswith("<p>Decided")


def test_printed_lines_are_short():
    found = SIMPLE.explain(0.232, "ramp")
    assert max(map(len, repr(found).split("\n"))) <= 80
    assert repr(found).replace("\n", " ") == found.why


# The page ------------------------------------------------------------------------------------------------------


def payload(rule):
    return {
        "forms": [asdict(form) for form in answer_forms(rule)],
        "scale": rule.scale,
        "higher_is_better": rule.higher_is_better,
        "cutoff": rule.cutoff,
    }


def in_browser(cases, folder):
    """Run the page's script on (payload, index of the form, text) and return its answers."""
    runner = """
import { readFileSync } from "node:fs";
const found = JSON.parse(readFileSync("cases.json", "utf8")).map(([rule, rows]) => rows.map(([i, text]) =>
  answer(rule.forms[i], rule.scale, rule.higher_is_better, rule.cutoff, text)));
console.log(JSON.stringify(found));
"""
    script = (HERE / "answer.js").read_text(encoding="utf-8")
    (folder / "run.mjs").write_text(script + runner, encoding="utf-8")
    (folder / "cases.json").write_text(json.dumps(cases, allow_nan=False), encoding="utf-8")
    done = subprocess.run(
        ["node", "run.mjs"], cwd=folder, capture_output=True, text=True, encoding="utf-8", check=True, timeout=60
    )
    return json.loads(done.stdout)


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def variety(scale, higher_is_better, rng):
    """A rule with ramps of every kind, and scores everywhere and at the ends of its ramps."""
    meaning = fairramp.core.scales.scale_of(scale, higher_is_better)
    low, high = meaning.lowest, meaning.highest
    widths = [0.0, 1e-6, 0.01, 0.3, 5.0]
    centers = [*rng.uniform(low, high, 4), low - 0.1, high + 0.1]
    ramps = [Ramp.centered(c, w, t) for c in centers for w in widths for t in (0.0, 0.37, 1.0)]
    ramps += [Ramp.constant(p) for p in (0.0, 0.3, 1e-12, 1.0)]
    rule = Rule(
        tuple(f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(len(ramps))),
        tuple(ramps),
        scale=scale,
        cutoff=(meaning.default_cutoff or 0.0) + 0.25,
        higher_is_better=higher_is_better,
    )
    a, b = max(meaning.score_range[0], -8.0), min(meaning.score_range[1], 8.0)
    rows = []
    for i, ramp in enumerate(ramps):
        ends = [e for e in rule.ends_of(ramp) if a <= e <= b]
        if scale == "logit":
            ends = [math.log(e / (1 - e)) for e in ends if 0 < e < 1]
        scores = [*rng.uniform(a, b, 12), *ends, *(round(e, 4) for e in ends), a, b, rule.cutoff, 0.0]
        scores += [e + d for e in ends for d in (1e-5, -1e-5, 1e-7, -1e-7) if a <= e + d <= b]
        if meaning.is_unbounded:
            scores += [1e-7, -3e-9, 1e21, -1e300, 1.2345678901234567e20, 40.0]
        rows += [(i, float(score)) for score in scores]
    return rule, rows


@needs_node
@pytest.mark.parametrize("higher_is_better", [True, False])
@pytest.mark.parametrize("scale", SCALES)
def test_script_gives_the_librarys_answers(scale, higher_is_better, tmp_path):
    rule, rows = variety(scale, higher_is_better, np.random.default_rng(len(scale)))
    ((*found,),) = in_browser([[payload(rule), [(i, repr(score)) for i, score in rows]]], tmp_path)
    expected = [rule.explain(score, rule.groups[i]) for i, score in rows]
    assert len(rows) > 1500
    assert {answer.answer for answer in expected} == {"yes", "no", "random"}
    differ = []
    for answer, page in zip(expected, found, strict=True):
        assert page["probability"] == pytest.approx(answer.probability, abs=1e-12 if scale != "logit" else 1e-9)
        if unmarked(page["sentences"]) != answer.why:
            differ.append((answer, page))
    # Exponentials may differ in the last bit, which matters only at the very end of a ramp.
    assert len(differ) <= (len(rows) // 500 if scale == "logit" else 0), differ[:3]
    for answer, page in differ:
        assert page["probability"] != answer.probability


@needs_node
def test_script_reads_numbers_as_people_write_them(tmp_path):
    rule = Rule(("a",), (Ramp(0.2, 0.5),))
    signed = Rule(("a",), (Ramp(-0.5, 0.0),), scale="signed", cutoff=0.0)
    real = Rule(("a",), (Ramp(-0.5, 0.5),), scale="real", cutoff=0.0)
    same = ["0.41", "0,41", " .41 ", ",41", "+0.41", "41e-2", "0.410"]
    bad = ["abc", "0.4.1", "1,234.5", "1.5", "-0.1", "41%", "Infinity", "NaN", "0x1", "1e", "--1", "1 2"]
    cases = [
        [payload(rule), [(0, text) for text in ["", *same, *bad]]],
        [payload(signed), [(0, "\u22120.6"), (0, "-0,4"), (0, "-0"), (0, "2")]],
        [payload(real), [(0, "1e999"), (0, "x"), (0, "-1e300")]],
    ]
    (empty, *first), second, third = in_browser(cases, tmp_path)
    assert empty == {"sentences": "", "probability": None}
    good, wrong = first[: len(same)], first[len(same) :]
    why = rule.explain(0.41, "a")
    assert {(unmarked(g["sentences"]), g["probability"]) for g in good} == {(why.why, why.probability)}
    assert [unmarked(w["sentences"]) for w in wrong] == [
        f"The score must be a number from 0 to 1, not {text}." for text in bad
    ]
    assert {w["probability"] for w in wrong} == {None}
    assert [f["probability"] for f in second] == [0, 1, 1, None]
    assert "a score of 0 is" in second[2]["sentences"]
    assert "a number from -1 to 1, not" in second[3]["sentences"]
    assert [f["probability"] for f in third] == [None, None, 0]
    assert unmarked(third[0]["sentences"]) == "The score must be a number, such as 0.41, not 1e999."


@needs_node
def test_script_keeps_the_classifiers_decisions_of_unseen_groups(tmp_path):
    rule = replace(SIMPLE, unseen_group="original")
    forms = {**payload(rule), "forms": [asdict(form) for form in answer_forms(rule, ["new"])]}
    texts = ["0.4", "0.5", "0.6"]
    (found,) = in_browser([[forms, [(0, text) for text in texts]]], tmp_path)
    expected = [rule.explain(float(text), "new") for text in texts]
    assert [(unmarked(f["sentences"]), f["probability"]) for f in found] == [
        (e.why, e.probability) for e in expected
    ]


def test_fragment_has_labeled_fields_for_many_hostile_groups():
    jinja2 = pytest.importorskip("jinja2", reason="jinja2 is not installed")
    names = tuple(f"<b>{i}" for i in range(600))
    rule = Rule(names, tuple(Ramp.centered(0.2 + i / 1000, 0.01) for i in range(600)))
    forms = answer_forms(rule)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string((HERE / "answer.html").read_text(encoding="utf-8"))
    text = template.render(
        answers=[form.group for form in forms],
        c={"settings": {"scale": "probability"}},
        slides=True,
        live=False,
    )
    assert "<b>" not in text
    assert text.count("<option ") == 600
    assert '<option value="599" dir="auto">&lt;b&gt;599</option>' in text
    for field in ("answer-group", "answer-score"):
        assert f'<label for="{field}">' in text
        assert f'id="{field}"' in text
    assert not re.search(r"\bon\w+=|style=", text)
    size = len(json.dumps([asdict(form) for form in forms], ensure_ascii=False, separators=(",", ":")).encode())
    assert size < 700_000


@needs_node
def test_fields_show_the_answer_as_they_change(tmp_path):
    """Run the wiring on a stand-in for the page: two fields and an output that takes only text."""
    rule = Rule(("a", "b"), (Ramp(0.2, 0.5), Ramp(0.6, 0.1)))
    runner = """
const field = (value) => ({ value, heard: {}, set: {}, textContent: "",
  addEventListener(name, act) { this.heard[name] = act; }, setAttribute(name, to) { this.set[name] = to; } });
const fields = { "answer-group": field("0"), "answer-score": field("") };
fields.answer = Object.seal({ textContent: "?" });
globalThis.document = { getElementById: (id) => fields[id] };
wireAnswers(PAYLOAD);
const [group, score, output] = Object.values(fields);
const seen = [[output.textContent, score.set["aria-invalid"]]];
for (const text of ["0,9", "9"]) {
  score.value = text;
  score.heard.input();
  seen.push([output.textContent, score.set["aria-invalid"]]);
}
score.value = "0.3";
group.value = "1";
group.heard.change();
seen.push([output.textContent, score.set["aria-invalid"]]);
console.log(JSON.stringify(seen));
"""
    script = (HERE / "answer.js").read_text(encoding="utf-8")
    code = script + runner.replace("PAYLOAD", json.dumps(payload(rule)))
    (tmp_path / "wire.mjs").write_text(code, encoding="utf-8")
    done = subprocess.run(
        ["node", "wire.mjs"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=60,
    )
    assert [[unmarked(text), invalid] for text, invalid in json.loads(done.stdout)] == [
        ["", "false"],
        [rule.explain(0.9, "a").why, "false"],
        ["The score must be a number from 0 to 1, not 9.", "true"],
        [rule.explain(0.3, "b").why, "false"],
    ]


def test_script_changes_text_only():
    script = (HERE / "answer.js").read_text(encoding="utf-8")
    assert "output.textContent = found.sentences;" in script
    for word in ("innerHTML", "insertAdjacent", "eval", "import ", "document.write", "</"):
        assert word not in script
