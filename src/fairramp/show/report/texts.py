"""The fixed texts of the page, by what the rule makes equal and what it limits."""

from fairramp.core.events import EVENTS, SELECTION, Event
from fairramp.show.report.content import Content

#: What the rule does, by the event whose rates it makes equal; at the end of a sentence.
_AIMS = {
    "selection": "all groups are selected at similar rates",
    "true_positive": "all groups have similar true positive rates, the rates at which {favorable} are selected",
    "false_positive": "all groups have similar false positive rates, the rates at which {other} are selected",
    "odds": "all groups have similar true positive rates and similar false positive rates, the rates at which "
    "{favorable} and {other} are selected",
}


def aim(content: Content) -> str:
    """What the rule does, at the end of a sentence."""
    favorable, other = map(content.label_names.people, (1, 0))
    return _AIMS[content.event.name].format(favorable=favorable, other=other)


def other_events(content: Content) -> list[Event]:
    """The other events whose rates are known here."""
    return [
        event
        for name, event in EVENTS.items()
        if name in content.before.rates and event not in content.event.simple
    ]


def is_ratio(content: Content) -> bool:
    """Whether the rule limits a ratio instead of a gap."""
    return content.settings["min_ratio"] is not None


def term(content: Content) -> str:
    """What the verdict is about, where it first appears; empty if there is nothing to compare."""
    rate = "rate" if content.event.parts else content.event.rate
    if len(content.groups) == 1:
        return ""
    if is_ratio(content):
        return f"The ratio is the lowest {rate} of the groups divided by the highest."
    return f"The gap is the highest {rate} of the groups minus the lowest, in percentage points."


def limit_name(content: Content) -> str:
    """What the slider sets."""
    if is_ratio(content):
        return f"lowest allowed ratio of {content.event.rate}s"
    return f"largest allowed gap{'' if content.event is SELECTION else f' between {content.event.rate}s'}"


def counted(content: Content, event: Event) -> str:
    """The people that a rate of this event counts."""
    return content.label_names.people(event.label)


#: Whose threshold the chart of scores shows, if thresholds are mixed.
_WHOSE = {
    "probabilities": "of people who surely belong to the group; everyone else has a mean of these thresholds",
    "each": "of people whose other attributes do not shift the threshold",
}


def scores_caption(content: Content) -> str:
    """How to read the chart of scores."""
    compressed = (
        " Beyond −0.5 and 0.5, the axis is compressed so that all scores fit."
        if content.settings["scale"] == "real"
        else ""
    )
    if content.mixing:
        return (
            "The line is the probability of being selected, from 0 to 1, and the number is the threshold "
            f"{_WHOSE[content.settings['membership']]}. The dashed line is the classifier’s own cutoff."
            f"{compressed}"
        )
    return (
        "The score distribution of each group, on a square-root scale so that rare scores are visible. The blue "
        "part is selected. The line is the probability of being selected, from 0 to 1; the number is the "
        "threshold, or the probability if it is the same for everyone. The dashed line is the classifier’s own "
        "cutoff."
        f"{compressed}"
    )


def frontier_heading(content: Content) -> str:
    """The heading of the frontier."""
    return f"What a {'higher ratio' if is_ratio(content) else 'smaller gap'} costs"


def frontier_caption(content: Content) -> str:
    """How to read the frontier."""
    apart = "ratio of" if is_ratio(content) else f"{'larger' if content.event.parts else 'remaining'} gap between"
    return (
        f"Accuracy against the {apart} {content.event.rate}s, with a confidence band, for rules with the same "
        "settings fitted to these rows and measured on them. Hollow: the classifier alone. Filled: this rule."
    )


def abbreviations(content: Content) -> str:
    """The short names of rates in the tables, spelled out."""
    favorable, other = map(content.label_names.people, (1, 0))
    return (
        f"TPR, the true positive rate, is the share of {favorable} who are selected. FPR, the false positive "
        f"rate, is the same for {other}."
    )


def reading(content: Content) -> str:
    """How to read the table."""
    ramps = has_ramps(content)
    return " ".join(
        text
        for text, holds in {
            content.mixing: content.mixing != "",
            READING[ramps, content.settings["higher_is_better"]]: True,
            _STEP: ramps and has_steps(content),
            _CONSTANT: has_constants(content),
            _WIDE: content.event.parts != (),
            UNITS.get(content.settings["scale"], ""): content.settings["scale"] in UNITS,
        }.items()
        if holds
    )


def has_ramps(content: Content) -> bool:
    """Whether some probability rises over a range of scores."""
    return any(
        start == start and start != end
        for outcome in content.outcomes
        for start, end in zip(outcome.ramp_from, outcome.ramp_to, strict=True)
    )


def has_steps(content: Content) -> bool:
    """Whether some group has a threshold without a ramp; a what-if that changes nothing need not say so."""
    shown = [outcome for outcome in content.outcomes if outcome.is_own or not outcome.stands]
    return any(chance == chance for outcome in shown for chance in outcome.tie_chances)


def has_constants(content: Content) -> bool:
    """Whether everyone of some group is selected with the same probability."""
    return any(chance == chance for outcome in content.outcomes for chance in outcome.constant_chances)


#: How to read groups without a ramp beside others with one, constant probabilities, and wide ramps.
_STEP = (
    "If it starts where it ends, there is no ramp, and people at the threshold are selected with the probability "
    "in the table."
)
_CONSTANT = "In a group with a constant probability, everyone is selected with it, whatever the score."
_WIDE = (
    "Groups in which the scores predict the outcome better usually have wider ramps. If a ramp ends beyond the "
    "possible scores, even the best score is not selected for certain."
)
#: How to read the table: whether there are ramps, and whether higher scores are better.
READING = {
    (
        True,
        True,
    ): "People whose score is below the ramp are not selected; people whose score is above it are. On the "
    "ramp, the probability of being selected rises evenly from 0 to 1.",
    (True, False): "Lower scores are better. People whose score is above the ramp are not selected; people whose "
    "score is below it are. On the ramp, the probability of being selected rises evenly from 0 to 1 as the score "
    "falls.",
    (False, True): "People with a score above the threshold are selected; people with a score below it are not. "
    "At the threshold, people are selected with the probability in the table.",
    (False, False): "Lower scores are better. People with a score below the threshold are selected; people with "
    "a score above it are not. At the threshold, people are selected with the probability in the table.",
}

#: Units of the table where they are not those of scores from 0 to 1 or from −1 to 1.
UNITS = {
    "logit": "Here thresholds and ramps are probabilities, 1/(1 + exp(−logit)).",
    "percent": "Here thresholds and ramps are in percent, like the scores.",
    "real": "Beyond scores of −0.5 and 0.5, it rises more and more slowly: evenly in positions, "
    "±(1 − 1/(4·|score|)).",
}
