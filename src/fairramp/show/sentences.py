"""What a report says in words: who is selected how often, what is certified, and what to mind."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Integers
from fairramp.core.labels import Label, show_label
from fairramp.core.table import with_rows
from fairramp.errors import FairrampError
from fairramp.fit.fit import SMALL_GROUP
from fairramp.measure.certificate import Spelling, certify, upward_points
from fairramp.measure.drift import Check
from fairramp.rule.limits import certifiable
from fairramp.rule.rule import Rule
from fairramp.show.words import isolated, level, percent, plain_name, points, times

LIMITS = (
    "Equal selection rates are one narrow notion of fairness. Equal error rates, or equal treatment of people "
    "who are alike, are others, and in general they cannot all hold together.",
    "The rule takes the scores as they are. It cannot tell whether they measure the right thing, or measure it "
    "equally well in every group.",
    "Labels, where given, are records of past outcomes and may carry past bias; accuracy measured against them "
    "inherits it.",
    "Some decisions near a threshold are drawn by lot, and every rate here is an expectation over such draws.",
    "Groups that are not in the data, and splits within the groups shown, are not covered.",
    "Using a protected attribute to decide, even in order to equalize, is restricted or unlawful in some places "
    "and for some decisions. This page is no legal advice: ask before you deploy.",
)


#: What a rule does that changes no decision.
STANDS = "nothing changes. The classifier's own decisions stand, for everybody."
#: With more groups only the rule itself is certified: a certificate takes a second for 200.
MOST_CERTIFIED = 60


_with_rows = partial(with_rows, form="{} ({})", spelled=lambda label: isolated(plain_name(show_label(label))))

#: How a page spells what certificates and checks say.
_PAGE = Spelling(level, points, upward_points, groups=_with_rows, group="")


@dataclass(frozen=True)
class Guarantee:
    """A certificate in words and in numbers.

    Attributes
    ----------
    sentence : str
        What is certified, or why nothing is.
    assumptions : str
        What it rests on.
    estimated, proven : float or None
        The estimated and the proven limit; None where there is none.
    """

    sentence: str
    assumptions: str = ""
    estimated: float | None = None
    proven: float | None = None


def comparison(
    rates: tuple[float, ...], names: tuple[str, ...], strata: Integers | None, rows: tuple[int, ...] | None = None
) -> str:
    """The two groups furthest apart, in words; with their `rows` if given."""
    r = np.array(rates)
    if len(r) == 1:
        return f"{percent(rates[0])} of {isolated(names[0])} were selected; there is no other group."
    parts = strata_slices(strata, len(r))
    gaps = [float(r[part].max() - r[part].min()) for part in parts]
    # Of strata with the same gap, such as the largest allowed, the one that the ratio is about.
    tied = [part for part, gap in zip(parts, gaps, strict=True) if gap >= max(gaps) - 1e-9]
    worst = min(tied, key=lambda part: float(r[part].min() / r[part].max()) if r[part].max() > 0 else 1.0)
    high, low = worst.start + int(r[worst].argmax()), worst.start + int(r[worst].argmin())
    if rates[high] - rates[low] <= 1e-9:
        return (
            f"every group was selected at the same rate, {percent(rates[high])}."
            if strata is None
            else "every group of a stratum was selected at the same rate."
        )
    one, other = isolated(names[high]), isolated(names[low])
    of = "" if rows is None else f", of {rows[high]:,} and {rows[low]:,} rows"
    if percent(rates[low]) == percent(0.0) or rates[high] / rates[low] >= 1000:
        return f"{percent(rates[high])} of {one} were selected, and hardly anybody or nobody of {other}{of}."
    return (
        f"{one} were selected {times(rates[high], rates[low])} times as often as {other}: "
        f"{percent(rates[high])} against {percent(rates[low])}{of}."
    )


def refusal(rule: Rule) -> str | None:
    """Why a rule cannot be certified; None if it can."""
    try:
        certifiable(rule)
    except FairrampError as error:
        return str(error)
    return None


def elsewhere(refused: str | None, n_groups: int) -> str | None:
    """Why the rules at other positions are not certified; None if they are.

    Where the rule is not, theirs would be taken for its.
    """
    reasons = {
        "The reported rule has no certificate, and so the rules at the other positions are given none either.": (
            refused is not None
        ),
        f"With {n_groups:,} groups only the reported rule itself is certified; fit this one to see more.": (
            n_groups > MOST_CERTIFIED
        ),
    }
    return next((text for text, holds in reasons.items() if holds), None)


def guarantee(rule: Rule, confidence: float) -> Guarantee:
    """What is certified of a rule."""
    found = certify(rule, confidence)
    several = len(rule.groups) > 1
    said = found.sentences(_PAGE) if several else ["There is one group, so there is no gap to bound."]
    return Guarantee(" ".join(said), found.assumptions, found.estimated, found.proven)


def drift(found: Check, in_sample: bool | None) -> str | None:
    """Whether these rows exceed the estimated limit; None where that is no question, on the rows of the fit."""
    no_question = not found.has_drifted and (in_sample or len(found.groups) == 1)
    return None if no_question else found.sentence(_PAGE)


def notes(rule: Rule, labels: Sequence[Label], rows: Integers, in_sample: bool | None) -> list[str]:
    """What to mind about these rows."""
    record, alone = rule.record, len(labels) == 1
    error = max(record.rates["selection"].error) if record else 0.0
    small = [pair for pair in zip(labels, rows.tolist(), strict=True) if pair[1] < SMALL_GROUP]
    found = {
        f"Groups below {SMALL_GROUP} rows: {_with_rows(small)}. Their rates on new people can be far from those "
        "shown here.": small,
        "There is one single group: nothing to equalize.": alone,
        "These look like the rows the rule was fitted on. On new people the gap will be larger, by chance; "
        "the certificate says by how much.": in_sample and not alone,
        "It cannot be told whether these are the rows the rule was fitted on.": in_sample is None
        and record
        and not alone,
        "These are not the rows the rule was fitted on: at its own position the slider shows how the rule "
        "does on new rows, at every other one a rule fitted to these rows, which looks a little better than "
        "it is.": in_sample is False and not alone,
        "The rule was fitted to scores in bins, without the rows: a group's selection rate on the fit rows "
        f"can be off by up to {100 * error:.2g} percentage points, which the certificate counts in.": error,
        "The rule was fitted on cross-fitted scores; nothing is certified.": record and record.cross_fitted,
    }
    return [text for text, holds in found.items() if holds]
