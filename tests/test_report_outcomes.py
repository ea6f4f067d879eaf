"""What a report says about the outcomes and the rows: reversed labels, their names, rows left out, one person."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

import fairramp
from fairramp import Ramp, Rule
from fairramp.fit.direction import DirectionWarning
from fairramp.show.report.say import cost_texts, say
from fairramp.show.words import unmarked
from samples import quiet_fit
from shell import Inside

N = 1_200
NAMES = ("Ausfall = 0", "Ausfall = 1")
CRITERIA = ("parity", "equal_opportunity", "predictive_equality", "equalized_odds")


def loans(n=N, seed=0):
    """Risks, groups of ages, and 1 for a default, which is likelier with a higher risk."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    risk = np.clip(rng.random(n) * 0.8 + 0.06 * group, 0, 1).round(3)
    return risk, np.array(["18-29", "30-59", "60+"])[group], (rng.random(n) < risk).astype(int)


def fitted(criterion="parity", **settings):
    risk, group, default = loans()
    return quiet_fit(
        risk, group, 1 - default, criterion=criterion, higher_is_better=False, max_gap=0.05, **settings
    )


@pytest.fixture
def inside(tmp_path):
    """A folder with a file of loans, of which five rows have no usable risk, and a rule."""
    run = Inside(tmp_path)
    risk, group, default = loans()
    cells = [f"{100 * x:.1f}".replace(".", ",") for x in risk]
    cells[3], cells[50], cells[60], cells[70], cells[80] = "", "k.A.", "n/a", "", "?"
    lines = [f"{x};{g};{y}" for x, g, y in zip(cells, group, default, strict=True)]
    run.write("loans.csv", "\n".join(["Risikowert;Alter;Ausfall", *lines]) + "\n")
    by = ("--score", "Risikowert", "--scale", "percent", "--lower-is-better", "--group", "Alter")
    labeled = ("--label", "Ausfall", "--positive", "0", "--skip-invalid")
    run("fit", "loans.csv", *by, *labeled, "--max-gap", "0.05", "-o", "rule.json", "-q", code=4)
    return run


def shown(page):
    """The page without its script for charts, and without marks around names."""
    return unmarked(re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL))


def plain(text):
    return unmarked(" ".join(text.split()))


# Reversed labels ---------------------------------------------------------------------------------


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    return found, [one for one in caught if issubclass(one.category, DirectionWarning)]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_reports_say_once_that_labels_contradict_scores(criterion):
    risk, group, default = loans()
    rule = fitted(criterion)
    made, (warning,) = warned(lambda: rule.report(risk, group, default))
    assert str(warning.message).startswith("Scores are higher for the favorable outcome (label 1): their mean is")
    assert warning.filename == __file__
    (note,) = (note for note in made.content.notes if "seem to be reversed" in note)
    assert note.startswith("Scores are higher for the favorable outcome (label 1): their mean is")
    assert note in made.html
    made, found = warned(lambda: rule.report(risk, group, 1 - default))
    assert not found
    assert "seem to be reversed" not in made.html


def test_checks_and_monitors_that_read_labels_warn_of_reversed_ones():
    risk, group, default = loans()
    rule = fitted("equal_opportunity")
    for measure in (rule.check, rule.monitor().update):
        assert len(warned(lambda measure=measure: measure(risk, group, default))[1]) == 1
        assert not warned(lambda measure=measure: measure(risk, group, 1 - default))[1]


def test_command_warns_of_reversed_labels_on_the_terminal_and_on_the_page(inside):
    arguments = ("report", "rule.json", "loans.csv", "--label", "Ausfall", "--skip-invalid", "-o", "r.html")
    wrong = inside(*arguments, "-q", code=4)
    assert wrong.stderr.count("Scores are higher for the favorable outcome (label 1)") == 1
    assert "If label 1 is the unfavorable outcome (a default), pass --positive 0." in wrong.stderr
    page = shown(inside.read("r.html"))
    assert "<li>Scores are higher for the favorable outcome (Ausfall = 1): their mean is" in page
    right = inside(*arguments, "--positive", "0", "-q", code=4)
    assert "favorable outcome" not in right.stderr
    assert "seem to be reversed" not in inside.read("r.html")


@pytest.mark.parametrize("command", ["check", "monitor"])
def test_commands_that_check_error_rates_warn_of_reversed_labels(inside, command):
    by = ("--score", "Risikowert", "--scale", "percent", "--lower-is-better", "--group", "Alter", "-q")
    label = ("--label", "Ausfall", "--skip-invalid")
    given = ("--positive", "0", "--criterion", "equal_opportunity", "--max-gap", "0.1", "-o", "tpr.json")
    inside("fit", "loans.csv", *by, *label, *given, code=4)
    state = ("--state", "state.json") if command == "monitor" else ()
    done = inside(command, "tpr.json", "loans.csv", *label, *state, "-q", code=4)
    assert done.stderr.count("Scores are higher for the favorable outcome") == 1
    assert "pass --positive 0." in done.stderr


def test_evidence_says_that_labels_contradict_scores_and_which_rows_are_missing(inside):
    arguments = ("evidence", "loans.csv", "--rule", "rule.json", "--label", "Ausfall", "--skip-invalid")
    inside(*arguments, "-o", "wrong", "-q", code=4)
    inside(*arguments, "--positive", "0", "-o", "right", "-q", code=4)
    gone = "5 of 1,200 rows were left out: 'Risikowert' is missing or not a number between 0 and 100."
    for name in ("README.md", "annex-iv.md", "report.html"):
        wrong, right = (shown(inside.read(f"{folder}/{name}")) for folder in ("wrong", "right"))
        assert "seem to be reversed" in wrong
        assert "seem to be reversed" not in right
        assert gone in right.replace("&#39;", "'")
        assert "Ausfall = 0" in right
    assert gone in inside.read("right/provenance.json")


# What labels stand for ---------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_named_outcomes_have_their_names_everywhere(criterion):
    risk, group, default = loans()
    rule = fitted(criterion)
    report = rule.report(risk, group, 1 - default, compare=rule, label_names=NAMES)
    page, told = shown(report.html), plain(report.to_json())
    assert "Ausfall = 0" in page
    for text in (page, told, *report.tables["errors"].columns):
        assert not re.search(r"(?<!aria-)\blabels? ?_?[01]\b", text)
    assert "people with the favorable outcome (Ausfall = 0)" in page
    assert "people with the other outcome (Ausfall = 1)" in page
    for name, value in (("Favorable", 0), ("Other", 1)):
        assert f"<dt>{name} outcome</dt><dd><bdi>Ausfall = {value}</bdi></dd>" in page
    assert {"favorable_outcome", "other_outcome"} <= {*report.tables["errors"].columns}
    unnamed = shown(rule.report(risk, group, 1 - default).html)
    assert "people with the favorable outcome (label 1)" in unnamed


def test_small_and_missing_groups_are_named_by_outcome():
    risk, group, default = loans()
    rule = fitted("equal_opportunity")
    few = np.where((group == "60+") & (np.cumsum(group == "60+") > 20), 1, default)
    notes = plain(" ".join(rule.report(risk, group, 1 - few, label_names=NAMES).content.notes))
    assert "Groups with fewer than 30 rows with the favorable outcome (Ausfall = 0): group 60+" in notes
    none = np.where(group == "60+", 1, default)
    notes = plain(" ".join(rule.report(risk, group, 1 - none, label_names=NAMES).content.notes))
    assert "Groups without rows with the favorable outcome (Ausfall = 0), which are left out" in notes


def test_the_assumptions_of_limits_name_the_outcome():
    risk, group, default = loans()
    rule = fitted("equal_opportunity")
    content = rule.report(risk, group, 1 - default, label_names=NAMES).content
    assumptions = unmarked(content.chosen.guarantee.assumptions)
    assert "shares of rows with the favorable outcome (Ausfall = 0) may change" in assumptions


def test_names_of_outcomes_are_inert():
    risk, group, default = loans()
    odd = ("<b>1</b>\u202e{0}", '</script>"')
    page = fitted("equalized_odds").report(risk, group, 1 - default, label_names=odd).html
    assert "<b>" not in page
    assert "\u202e" not in page
    assert page.count("</script>") == 3


@pytest.mark.parametrize("wrong", ["yes", ("yes",), ("yes", ""), ("yes", 0), ("a", "b", "c")])
def test_names_of_outcomes_are_a_pair_of_texts(wrong):
    risk, group, default = loans()
    with pytest.raises(fairramp.InputError, match="`label_names` must be two names, for label 1 and for label 0"):
        fitted().report(risk, group, 1 - default, label_names=wrong)


def test_command_names_the_column_and_the_values(inside):
    arguments = ("report", "rule.json", "loans.csv", "--skip-invalid", "-o", "r.html", "-q")
    inside(*arguments, "--label", "Ausfall", "--positive", "0", code=4)
    page = shown(inside.read("r.html"))
    assert "People with the favorable outcome (Ausfall = 0): gap" in page
    assert "People with the other outcome (Ausfall = 1): gap" in page
    words = {"0": "paid", "1": "late"}
    head, *lines = inside.read("loans.csv").splitlines()
    named = [line[:-1] + words[line[-1]] for line in lines]
    inside.write("loans.csv", "\n".join([head, *named[:-1], named[-1].replace(";late", ";lost")]) + "\n")
    assert "lost" not in named[-2]
    inside.write("loans.csv", inside.read("loans.csv") + "10,0;60+;lost\n10,0;60+;late\n")
    inside(*arguments, "--label", "Ausfall", "--positive", "paid", code=4)
    page = shown(inside.read("r.html"))
    assert "the favorable outcome (Ausfall = paid)" in page
    assert "the other outcome (Ausfall is not paid)" in page


# Rows left out, and one person -------------------------------------------------------------------


def test_rows_left_out_are_in_the_subtitle_the_approval_and_the_origin(inside):
    inside("report", "rule.json", "loans.csv", "--skip-invalid", "-o", "r.html", "-q", code=4)
    page = inside.read("r.html").replace("&#39;", "'")
    gone = "5 of 1,200 rows were left out: 'Risikowert' is missing or not a number between 0 and 100"
    assert f"<bdi>{gone}</bdi> · " in page
    assert page.count(f"<dt>Rows left out</dt><dd><bdi>{gone}.</bdi></dd>") == 2


def test_each_column_with_bad_cells_is_named(inside):
    head, *lines = inside.read("loans.csv").splitlines()
    lines[7] = lines[7][:-1]
    inside.write("loans.csv", "\n".join([head, *lines]) + "\n")
    how = ("--label", "Ausfall", "--positive", "0", "--skip-invalid")
    inside("report", "rule.json", "loans.csv", *how, "-o", "r.html", "-q", code=4)
    assert (
        "6 of 1,200 rows were left out: 'Risikowert' is missing or not a number between 0 and 100 in 5 rows; "
        "'Ausfall' is missing in 1 row."
    ) in inside.read("r.html").replace("&#39;", "'")


def test_reports_of_all_rows_do_not_speak_of_rows_left_out():
    risk, group, default = loans()
    assert "left out" not in fitted().report(risk, group, 1 - default).html
    text = "12 of 1,212 rows were left out: no risk."
    assert fitted().report(risk, group, left_out=text).html.count("12 of 1,212 rows were left out: no risk") == 3


def test_one_person_is_singular():
    scores = np.append(np.full(20, 0.9), [0.45] + [0.2] * 19)
    groups, labels = ["A"] * 20 + ["B"] * 20, np.array([1] * 20 + [0] * 20)
    rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.0), Ramp.centered(0.4, 0.0)), max_gap=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content = rule.report(scores, groups, labels).content
    said = {key: text for key, (text, _) in say(content, content.chosen).items()}
    assert said["selected_number"] == "1 more person"
    assert said["wrong_number"] == "1 more error"
    assert (said["changed_number"], said["changed_rest"]) == ("1 person", "gets a different answer (2.5%)")
    turned = say(content, replace(content.chosen, people=replace(content.chosen.people, selected=19.0)))
    assert turned["selected_number"][0] == "1 fewer person"
    several = cost_texts((2.0, 0.1), (1.0, 0.05), 2.0, (0.5, 0.4))
    assert several["changed_rest"][0].startswith("get a")
    assert several["drawn_rest"][0].startswith("is decided at random")
    assert several["wrong_number"][0] == "2 more errors"
