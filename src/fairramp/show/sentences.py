"""The sentences of a report: rates, certificate and caveats."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from fairramp.core.curve import Integers
from fairramp.core.events import SELECTION, ClassEvent, Event
from fairramp.core.headline import SMALL_GROUP
from fairramp.core.labels import Label, show_label
from fairramp.core.table import with_rows
from fairramp.errors import FairrampError
from fairramp.measure.certificate import Certificate, Spelling
from fairramp.measure.comparison import comparison as compare
from fairramp.measure.drift import Check
from fairramp.measure.rates import Selection
from fairramp.rule.limits import certifiable
from fairramp.rule.rule import Rule
from fairramp.show.labels import LABELS, LabelNames
from fairramp.show.words import isolated, marked, plain_name

#: What equal rates of an event do not mean.
_NARROW = {
    "selection": "Equal selection rates are one narrow notion of fairness. Others, such as equal error rates or "
    "equal treatment of similar people, generally cannot hold at the same time.",
    "true_positive": "Equal true positive rates are one narrow notion of fairness: people with {favorable} are "
    "selected about equally often in every group, but people with {other} may not be, and selection rates may "
    "differ.",
    "false_positive": "Equal false positive rates are one narrow notion of fairness: people with {other} are "
    "selected about equally often in every group, but people with {favorable} may not be, and selection rates "
    "may differ.",
    "odds": "Equal true and false positive rates are one narrow notion of fairness: selection rates may differ. "
    "To make both rates equal, the rule decides more people at random in groups where the scores predict the "
    "label better. Among them are people with high scores.",
    "classes": "Equal rates of every class are one narrow notion of fairness. Others, such as equal error rates "
    "or equal treatment of similar people, generally cannot hold at the same time.",
}
_LABELS = "Past outcomes, if given, may carry past bias. Accuracy measured against them inherits it."
_ERROR_RATES = (
    "Past outcomes may carry past bias. True and false positive rates and accuracy are measured against them and "
    "inherit it."
)
_ALWAYS = (
    "The rule takes the scores as given. It cannot know whether they measure the right thing, or whether they "
    "measure it equally well in every group.",
    "Some people {where} are decided at random; all rates shown here are expected rates.",
    "The rule does not cover groups that are not in the data, or subgroups of the groups shown.",
    "Using a protected attribute in a decision, even to equalize rates, is restricted or unlawful in some places "
    "and for some decisions. This page is not legal advice; seek legal advice before you deploy.",
)


_PROXY = (
    "The rule does not see a person's group, but the probability of each group. Rates by true group are similar "
    "only as far as these probabilities are calibrated. They are still information about the group."
)
#: Why there are no limits for new people, by whether these are the fit rows, if thresholds or offsets depend on
#: all rows.
FRESH_ONLY = {
    True: "These are the rows the rule was fitted on, and each of its {parts} depends on all of them at once. "
    "Only a report on other rows can limit the gap for new people.",
    None: "It is not known whether the rule was fitted on these rows, and only other rows can limit its gap for "
    "new people.",
}

_ALONE = "There is one group on this page: nothing to compare."
_FIT_ROWS = "These are the rows the rule was fitted on. On new people the gap is usually larger."
#: For a rule that changes no decision.
STANDS = "Nothing changes: the classifier's own decisions stand for everyone."
#: With more groups, only the reported rule is certified: a certificate for 200 groups takes a second.
MOST_CERTIFIED = 60


_with_rows = partial(with_rows, spelled=lambda label: isolated(plain_name(show_label(label))))


def _page(names: LabelNames) -> Spelling:
    """How the page spells names in sentences of certificates and checks."""
    return Spelling(partial(_with_rows, what="fit row"), "", names.event)


@dataclass(frozen=True)
class Guarantee:
    """A certificate in words and in numbers.

    Attributes
    ----------
    sentence : str
        The limits, or the reason there are none.
    assumptions : str
        The assumptions of the limits.
    estimated, proven : float or None
        The estimated and the proven limit; None if there is none.
    """

    sentence: str
    assumptions: str = ""
    estimated: float | None = None
    proven: float | None = None


def limits(event: Event, membership: str = "known", names: LabelNames = LABELS) -> tuple[str, ...]:
    """Limitations of any report on rates of an event."""
    several = isinstance(event, ClassEvent)
    where = "whose scores of two classes are close" if several else "near a threshold or on a wide ramp"
    first, *others = (text.format(where=where) for text in _ALWAYS)
    if membership == "probabilities":
        others = [_PROXY, *others]
    narrow = _NARROW[event.name].format(favorable=names.outcome(1), other=names.outcome(0))
    return (narrow, first, _ERROR_RATES if event.needs_labels else _LABELS, *others)


def comparison(
    found: Selection,
    names: Sequence[str],
    strata: Integers | None,
    event: Event = SELECTION,
    within: str = "stratum",
    names_of_labels: LabelNames = LABELS,
) -> str:
    """The groups whose rates of an event are furthest apart; a sentence for each of its parts.

    Groups that are too small to judge are left out; the verdict of the report names them.
    """
    return " ".join(
        compare(
            found.rates[part.name].rate,
            names,
            strata,
            found.rates[part.name].rows,
            count=False,
            what=part.rate.capitalize(),
            spelled=marked,
            event=names_of_labels.event(part),
            within=within,
        )
        for part in event.simple
    )


def refusal(rule: Rule) -> str | None:
    """The reason a rule cannot be certified; None if it can."""
    try:
        certifiable(rule)
    except FairrampError as error:
        return str(error)
    return None


def elsewhere(refused: str | None, n_groups: int) -> str | None:
    """The reason rules at other slider positions are not certified; None if they are.

    If the reported rule is not certified, readers might mistake another rule's limits for its own.
    """
    reasons = {
        "The reported rule has no certificate, so rules at other slider positions have none either.": (
            refused is not None
        ),
        f"With {n_groups:,} groups, only the reported rule is certified. Fit this rule to see its certificate.": (
            n_groups > MOST_CERTIFIED
        ),
    }
    return next((text for text, holds in reasons.items() if holds), None)


def guarantee(found: Certificate, several: bool, names: LabelNames = LABELS) -> Guarantee:
    """The limits of a certificate, in words and numbers; `several` says whether there are groups to compare."""
    said = found.sentences(_page(names)) if several else ["There is one group, so there is no gap to limit."]
    return Guarantee(" ".join(said), names.said(found.assumptions), found.estimated, found.proven)


def drift(found: Check, in_sample: bool | None, names: LabelNames = LABELS) -> str | None:
    """Compare the gap with its estimated limit, in words; None on the fit rows, where it cannot exceed it."""
    no_question = not found.has_drifted and (in_sample or len(found.groups) == 1)
    return None if no_question else found.sentence(_page(names))


def coverage(gone: int, others: int, absent: int, n_groups: int) -> list[str]:
    """Rows left out because the rule does not know their group, and groups of the rule without rows."""
    found = {
        f"{gone:,} row{'s' if gone > 1 else ''} in {others:,} group{'s' if others > 1 else ''} that the rule "
        f"was not fitted on {'are' if gone > 1 else 'is'} left out of this page.": gone > 0,
        f"{absent:,} of the rule's {n_groups:,} groups {'has' if absent == 1 else 'have'} no rows here.": absent
        > 0,
    }
    return [text for text, holds in found.items() if holds]


def few_rows(pairs: Sequence[tuple[Label, int]], rows: str) -> str:
    """That groups have few rows; `pairs` are their labels and rows."""
    return (
        f"Groups with fewer than {SMALL_GROUP} {rows}: {_with_rows(pairs)}. Their rates on new people can be far "
        "from those shown here."
    )


def notes(
    rule: Rule, labels: Sequence[Label], before: Selection, in_sample: bool | None, names: LabelNames = LABELS
) -> list[str]:
    """Caveats about these rows."""
    record, event, alone = rule.record, rule.event, len(labels) == 1
    error = max(max(rates.error) for _, rates in record.compared) if record else 0.0
    small = {
        part: [pair for pair in zip(labels, before.rates[part.name].rows, strict=True) if pair[1] < SMALL_GROUP]
        for part in event.simple
    }
    found = {
        **{few_rows(pairs, names.event(part).rows): pairs for part, pairs in small.items() if pairs},
        _ALONE: alone,
        "These appear to be the rows the rule was fitted on. On new people the gap is usually larger; "
        "the limits above say how much.": in_sample and not alone and not rule.mixes,
        _FIT_ROWS: in_sample and not alone and rule.mixes,
        "It is not known whether these are the rows the rule was fitted on.": in_sample is None
        and record
        and not alone,
        "These are not the rows the rule was fitted on. At its initial position, the slider shows the reported "
        "rule on new rows. At every other position, it shows a rule fitted to these rows, which looks slightly "
        "better than it is.": in_sample is False and not alone and not rule.mixes,
        f"The rule was fitted to binned scores: a group's {event.rate} on the fit rows can be off by up to "
        f"{100 * error:.2g} percentage points, which the certificate takes into account.": error,
        "The rule was fitted on cross-fitted scores, so it has no certificate.": record
        and record.cross_fitted
        and not rule.mixes,
    }
    return [text for text, holds in found.items() if holds]


def class_notes(labels: Sequence[Label], rows: Sequence[int], in_sample: bool | None) -> list[str]:
    """Caveats about the rows of a report on several classes."""
    small = [pair for pair in zip(labels, rows, strict=True) if pair[1] < SMALL_GROUP]
    alone = len(labels) == 1
    return [
        *([few_rows(small, "rows")] if small else []),
        *([_ALONE] if alone else [_FIT_ROWS] if in_sample else []),
    ]
