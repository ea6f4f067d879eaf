"""The fixed texts of the page, by what the rule makes equal and what it limits."""

from fairramp.core.events import SELECTION, Event
from fairramp.show.report.content import Content

#: What the rule does, by the event whose rates it makes equal; at the end of a sentence.
AIMS = {
    "selection": "all groups are selected at similar rates",
    "true_positive": "all groups have similar true positive rates, the rates at which people with label 1 "
    "are selected",
    "false_positive": "all groups have similar false positive rates, the rates at which people with label 0 "
    "are selected",
    "odds": "all groups have similar true positive rates and similar false positive rates, the rates at which "
    "people with label 1 and people with label 0 are selected",
}
#: The short names of rates in the table.
SHORT = {
    "true_positive": "TPR is the true positive rate: the share of people with label 1 who are selected.",
    "false_positive": "FPR is the false positive rate: the share of people with label 0 who are selected.",
}


def is_ratio(content: Content) -> bool:
    """Whether the rule limits a ratio instead of a gap."""
    return content.settings["min_ratio"] is not None


def limit_name(content: Content) -> str:
    """What the slider sets."""
    if is_ratio(content):
        return f"Lowest allowed ratio of {content.event.rate}s"
    return f"Largest allowed gap{'' if content.event is SELECTION else f' between {content.event.rate}s'}"


def chart_texts(content: Content) -> list[tuple[str, str, str]]:
    """Name, heading and caption of each chart."""
    dots = "Open dots: the classifier’s own decisions. Filled dots: the rule. Lines: confidence intervals."
    rates = f"{content.event.rate}s"
    compressed = (
        " Beyond −0.5 and 0.5, the axis is compressed so that all scores fit."
        if content.settings["scale"] == "real"
        else ""
    )
    less, apart = "smaller gap", f"{'larger' if content.event.parts else 'remaining'} gap between"
    if is_ratio(content):
        less, apart = "higher ratio", "ratio of"
    return [
        (
            "scores",
            "Scores and thresholds",
            "The score distribution of each group, on a square-root scale so that rare scores are visible. "
            "The darker part is selected. The line is the probability of being selected, from 0 to 1; "
            "the number is the threshold, or the probability if it is the same for everyone. The dashed line is "
            "the classifier’s own cutoff." + compressed,
        ),
        *(
            (
                rates_key(content, part),
                f"{part.rate.capitalize()}s",
                ("" if part.label is None else f"Among people with label {part.label}. ") + dots,
            )
            for part in content.event.simple
        ),
        (
            "selected",
            "Selection rates",
            f"Among all people. {dots} The rule does not make these rates equal.",
        ),
        (
            "changes",
            "Decisions that change",
            "The share of each group whose decision the rule changes, on average over its random draws.",
        ),
        (
            "frontier",
            f"What a {less} costs",
            f"Accuracy against the {apart} {rates}, with a confidence band, for rules with the same settings "
            "fitted to these rows and measured on them. The orange dot follows the slider.",
        ),
    ]


def rates_key(content: Content, event: Event) -> str:
    """The name of the chart with the rates of a compared event."""
    return event.name if content.event.parts else "rates"


def abbreviations(content: Content) -> str:
    """The short names of rates in the table, spelled out."""
    return " ".join(SHORT[part.name] for part in content.event.simple if part.name in SHORT)


def reading(content: Content) -> str:
    """How to read the table."""
    ramps = has_ramps(content)
    return " ".join(
        text
        for text, holds in {
            READING[ramps, content.settings["higher_is_better"]]: True,
            _STEP: ramps and has_steps(content),
            _CONSTANT: has_constants(content),
            _WIDE: content.event.parts != (),
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
    """Whether some group has a threshold without a ramp."""
    return any(chance == chance for outcome in content.outcomes for chance in outcome.tie_chances)


def has_constants(content: Content) -> bool:
    """Whether everyone of some group is selected with the same probability."""
    return any(chance == chance for outcome in content.outcomes for chance in outcome.constant_chances)


#: How to read groups without a ramp beside others with one, constant probabilities, and wide ramps.
_STEP = (
    "If both are equal, there is no ramp, and people at the threshold are selected with the probability in the "
    "table."
)
_CONSTANT = "In a group with a constant probability, everyone is selected with it, whatever the score."
_WIDE = (
    "Groups in which the scores predict the label better usually have wider ramps. If a ramp ends beyond the "
    "possible scores, even the best score is not selected for certain."
)
#: How to read the table: whether there are ramps, and whether higher scores are better.
READING = {
    (True, True): "People with a score below “ramp from” are not selected; people with a score of at least “ramp "
    "to” are. In between, the probability of being selected rises evenly from 0 to 1.",
    (True, False): "Lower scores are better. People with a score above “ramp from” are not selected; people with "
    "a score of at most “ramp to” are. In between, the probability of being selected rises evenly from 0 to 1 as "
    "the score falls.",
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
