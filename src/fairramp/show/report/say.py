"""Every text of the page that depends on the slider, with rounded numbers and with all digits."""

from collections.abc import Callable
from functools import partial
from math import nan

import numpy as np

from fairramp.core.cells import largest_gap
from fairramp.core.curve import Booleans
from fairramp.core.events import SELECTION, Event
from fairramp.core.headline import ends, joined, judged
from fairramp.core.words import exact_points, number, percent, points, with_interval
from fairramp.show.report.content import Content, Outcome, PageContent
from fairramp.show.report.tables import Number
from fairramp.show.report.texts import counted, is_ratio, other_events
from fairramp.show.report.verdicts import Judgment, ratio_words
from fairramp.show.sentences import Guarantee
from fairramp.show.words import full, isolated, people

_two = partial(number, decimals=2)
#: By how much a gap between other rates must grow to be named beside the verdict.
WORTH_TELLING = 0.01
#: The costs that are shown, in order.
COSTS = ("changed", "wrong", "selected", "drawn")


def limit_of(o: Outcome) -> Number:
    """The limit at a position of the slider."""
    if o.min_ratio is None:
        return spelled_out(o.max_gap, exact_points)
    return spelled_out(o.min_ratio, ratio_words)


def say(content: Content, o: Outcome) -> dict[str, Number]:
    """All texts at a position of the slider."""
    drawn = "probability of selection" if content.mixing else "score distribution"
    texts = {
        "where": "This is the reported rule."
        if o.is_own
        else "A what-if: a rule with the same settings, fitted to these rows with another limit.",
        **verdict_texts(o.judgment, o.guarantee),
        **({} if o.is_own else {"headline": f"What-if, not for approval. {o.judgment.headline}", "advice": ""}),
        "harm": _harm(content, o),
        "command": o.command,
        "label_scores": f"Chart: {drawn} of each group. {_thresholds(o)}; see the tables below.",
    }
    for name, rates in o.after.rates.items():
        texts[f"label_{name}"] = rates_label(content, f"{name.replace('_', ' ')} rates", rates.rate)
    for event in content.event.simple:
        texts[f"lead_{event.name}"] = _lead(content, o, event)
    for event in other_events(content):
        was, now = map(points, _gaps(content, o, event))
        texts[f"lead_{event.name}"] = f"{_capital(counted(content, event))}: gap {now}, was {was}"
    said = {name: (text, "") for name, text in texts.items()}
    said |= {"limit": limit_of(o), "guarantee": (o.guarantee.sentence, full(o.guarantee.estimated))}
    return said | _figures(content, o) | _costs(content, o)


def verdict_texts(judgment: Judgment, guarantee: Guarantee) -> dict[str, str]:
    """The verdicts, and the assumptions of the limits for new people."""
    return {
        "headline": judgment.headline,
        "on_rows": judgment.on_rows,
        "on_people": judgment.on_people,
        "small": judgment.small,
        "advice": judgment.advice,
        "assumptions": guarantee.assumptions,
    }


def spelled_out(value: float | None, spelled: Callable[[float], str]) -> Number:
    """A number as text, and with all its digits."""
    return "" if value is None else spelled(value), full(value)


def _lead(content: Content, o: Outcome, event: Event) -> str:
    """The rates of the groups with the lowest and the highest rate before, before and after.

    Groups that are too small to judge do not lead. Of several attributes, the one with the largest gap before
    leads.
    """
    before, after = content.before.rates[event.name].rate, o.after.rates[event.name].rate
    seats = np.flatnonzero(_large(content, event)).tolist()
    if content.settings["membership"] == "each" and content.parts is not None:
        each = [[i for i in seats if content.parts[i] == part] for part in sorted(set(content.parts))]
        seats = max(filter(None, each), key=lambda some: largest_gap([before[i] for i in some]))
    chosen = [[i] for i in seats]
    if len(seats) > 2:
        high, low = ends([before[i] for i in seats])
        chosen = [[seats[k] for k in found] for found in (low, high)]
    said = []
    for tied in chosen:
        names = joined([isolated(content.groups[i].name) for i in tied])
        now = " to ".join(dict.fromkeys(percent(end([after[i] for i in tied])) for end in (min, max)))
        said.append(f"{names} {percent(before[tied[0]])} → {now}")
    text = ", ".join(said) if len(seats) <= 2 else f"lowest before: {said[0]}; highest before: {said[1]}"
    return _capital(text if event is SELECTION else f"{event.rate}s: {text}")


def _capital(text: str) -> str:
    """A text at the start of a sentence."""
    return text[:1].upper() + text[1:]


def _large(content: Content, event: Event) -> Booleans:
    """The groups that are large enough to judge."""
    return judged(content.before.rates[event.name].rows, content.parts)


def _gaps(content: Content, o: Outcome, event: Event) -> tuple[float, float]:
    """The gap before and after, between the groups that are large enough to judge."""
    keep = _large(content, event)
    strata = None if content.parts is None else np.array(content.parts)[keep]
    was, now = (np.array(found.rates[event.name].rate)[keep] for found in (content.before, o.after))
    return (largest_gap(was, strata), largest_gap(now, strata)) if keep.any() else (np.nan, np.nan)


def _harm(content: Content, o: Outcome) -> str:
    """Names the other rates that the rule drives apart, by a point or more, between groups that can be judged."""
    grown = []
    for event in other_events(content):
        was, now = _gaps(content, o, event)
        if now - was >= WORTH_TELLING:
            among, grows = counted(content, event), f"grows from {points(was)} to {points(now)}"
            grown.append(f"among {among}, the gap between groups {grows}")
    return f"Side effect: {'; '.join(grown)}." if grown else ""


def _thresholds(o: Outcome) -> str:
    """The range of the thresholds; a group in which everyone has the same probability has none."""
    known = [threshold for threshold in o.thresholds if threshold == threshold]
    return f"Thresholds from {number(min(known), 3)} to {number(max(known), 3)}" if known else "No thresholds"


def rates_label(content: PageContent, rate: str, rates: tuple[float, ...]) -> str:
    """The rates under the rule, for people who do not see the chart; `rate` is what they are called."""
    names = [isolated(group.name) for group in content.groups]
    there = [i for i in range(len(names)) if rates[i] == rates[i]]
    large = [i for i in there if not content.groups[i].small]
    known = large if len(large) > 1 else there
    if not known:
        return f"Chart: {rate} before and after."
    high, low = ([known[k] for k in found] for found in ends([rates[i] for i in known]))
    lowest, highest = (f"{percent(rates[at[0]])} for {joined([names[i] for i in at])}" for at in (low, high))
    return f"Chart: {rate} before and after. After: from {lowest} to {highest}; see the tables below."


def figures_before(content: Content) -> list[tuple[str, str, Number]]:
    """Key, name and value before the rule of each number about everybody."""
    before, simple = content.before, content.event.simple
    found = [
        *(
            (f"gap_{event.name}", f"Gap between {event.rate}s", spelled_out(before.rates[event.name].gap, points))
            for event in simple
        ),
        *(
            (
                f"ratio_{event.name}",
                f"Ratio of {event.rate}s, lowest to highest",
                spelled_out(before.rates[event.name].ratio, _two),
            )
            for event in simple
        ),
        ("overall_rate", "Selected overall", spelled_out(content.overall_rate_before, percent)),
    ]
    if content.labeled:
        found.append(("accuracy", "Accuracy", spelled_out(before.overall_accuracy, percent)))
    return found


def _figures(content: Content, o: Outcome) -> dict[str, Number]:
    """The numbers about everybody after the rule, with their confidence intervals."""
    said = {"overall_rate": spelled_out(o.overall_rate, percent)}
    for event in content.event.simple:
        rates = o.after.rates[event.name]
        said[f"gap_{event.name}"] = with_limits(rates.gap, rates.gap_interval, points)
        said[f"ratio_{event.name}"] = with_limits(rates.ratio, rates.ratio_interval, _two)
    if o.after.overall_accuracy is not None and o.accuracy_interval is not None:
        said["accuracy"] = with_limits(o.after.overall_accuracy, o.accuracy_interval, percent)
        apart, now, alone = "gap", points(o.after.gap), points(content.before.gap)
        if is_ratio(content):
            apart, now, alone = "ratio", _two(o.after.ratio), _two(content.before.ratio)
        apart = f"larger {apart}" if content.event.parts else apart
        said["label_frontier"] = (
            f"Chart: accuracy against {apart}. This rule: {percent(o.after.overall_accuracy)} at a {apart} of "
            f"{now}. Classifier alone: {percent(content.before.overall_accuracy or 0.0)} at {alone}.",
            "",
        )
    return said


def with_limits(value: float, limits: tuple[float, float], spelled: Callable[[float], str]) -> Number:
    """A number with its confidence limits."""
    text = with_interval(*map(spelled, (value, *limits)))
    return text, " – ".join(map(full, (value, *limits)))


def _costs(content: Content, o: Outcome) -> dict[str, Number]:
    """Costs in people: a number to begin with, and the rest of the sentence."""
    now, was = o.people, content.people_before
    more = None if now.wrong is None or was.wrong is None else now.wrong - was.wrong
    accuracies = (content.before.overall_accuracy, o.after.overall_accuracy)
    selected = (
        _difference(now.selected - was.selected),
        f"selected: {percent(content.overall_rate_before)} → {percent(o.overall_rate)} of all people",
        now.selected - was.selected,
    )
    return cost_texts((now.changed, o.changed), (now.drawn, o.drawn), more, accuracies, selected=selected)


def cost_texts(
    changed: tuple[float, float],
    drawn: tuple[float, float],
    more_wrong: float | None,
    accuracies: tuple[float | None, float | None],
    **more: tuple[str, str, float],
) -> dict[str, Number]:
    """Costs in people: a number to begin with, and the rest of the sentence.

    `changed` and `drawn` are numbers of people and shares; `accuracies` are those before and after.
    """
    said = {
        "changed": _people(*changed, "gets a different answer", "get a different answer"),
        "drawn": _people(*drawn, "is decided at random", "are decided at random"),
        "wrong": ("Errors unknown", "these rows have no outcomes", nan),
        **more,
    }
    if more_wrong is not None:
        accuracy = " → ".join(percent(accuracy or 0.0) for accuracy in accuracies)
        said["wrong"] = (
            _difference(more_wrong, "error", "errors"),
            f"answers that disagree with the outcome; accuracy {accuracy}",
            more_wrong,
        )
    return {
        **{f"{key}_number": (first, full(exact)) for key, (first, _, exact) in said.items()},
        **{f"{key}_rest": (rest, "") for key, (_, rest, _) in said.items()},
    }


def _people(n: float, share: float, one: str, several: str) -> tuple[str, str, float]:
    """A number of people, what happens to them, by number, and the number itself."""
    text = people(n) or "0"
    noun, verb = ("person", one) if text in ("1", "<1") else ("people", several)
    return f"{text} {noun}", f"{verb} ({percent(share)})", n


def _difference(n: float, one: str = "person", several: str = "people") -> str:
    """How many more or fewer people there are, in whole people."""
    text = people(abs(n))
    if text in ("", "<1"):
        return f"As many {several}"
    return f"{text} {'more' if n > 0 else 'fewer'} {one if text == '1' else several}"
