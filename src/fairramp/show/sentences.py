"""What a report says in words: who is selected how often, what is certified, and what to mind."""

from dataclasses import dataclass

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Integers
from fairramp.core.labels import Label, show_label
from fairramp.core.table import with_rows
from fairramp.errors import FairrampError
from fairramp.fit.fit import SMALL_GROUP
from fairramp.measure.audit import Selection
from fairramp.measure.certificate import Certificate, certify
from fairramp.measure.drift import Check
from fairramp.rule.rule import Rule
from fairramp.show.words import isolated, level, percent, plain_name, points, times

__all__ = [
    "LIMITS",
    "Promise",
    "also",
    "comparison",
    "drift",
    "is_in_sample",
    "notes",
    "promise",
    "refusal",
    "verdict",
]

LIMITS = (
    "Equal selection rates are one narrow notion of fairness. Equal error rates, or equal treatment of people "
    "who are alike, are others, and in general they cannot all hold together.",
    "The rule takes the scores as they are. It cannot tell whether they measure the right thing, or measure it "
    "equally well in every group.",
    "Labels, where given, are records of past outcomes and may carry past bias; accuracy measured against them "
    "inherits it.",
    "Some decisions near a threshold are drawn by lot, and every rate here is an expectation over such draws.",
    "Groups that are not in the data, and splits within the groups shown, are not covered.",
    "Using a protected attribute to decide, even in order to equalise, is restricted or unlawful in some places "
    "and for some decisions. This page is no legal advice: ask before you deploy.",
)


@dataclass(frozen=True)
class Promise:
    """A certificate in numbers and in one sentence.

    Attributes
    ----------
    gap : float or None
        The gap that is certified; None if nothing is.
    kind : str or None
        Which bound.
    is_theorem : bool
        Whether it is proven in this case.
    proven_gap : float or None
        The smallest proven bound.
    sentence : str
        The same in words.
    assumptions : str
        What it rests on.
    """

    gap: float | None
    kind: str | None
    is_theorem: bool
    proven_gap: float | None
    sentence: str
    assumptions: str


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
        where = "group" if strata is None else "group of a stratum"
        return f"every {where} was selected at the same rate" + (
            f", {percent(rates[high])}." if strata is None else "."
        )
    one, other = isolated(names[high]), isolated(names[low])
    of = "" if rows is None else f", of {rows[high]:,} and {rows[low]:,} rows"
    if percent(rates[low]) == percent(0.0) or rates[high] / rates[low] >= 1000:
        return f"{percent(rates[high])} of {one} were selected, and hardly anybody or nobody of {other}{of}."
    return (
        f"{one} were selected {times(rates[high], rates[low])} times as often as {other}: "
        f"{percent(rates[high])} against {percent(rates[low])}{of}."
    )


def verdict(
    before: Selection, after: Selection, names: tuple[str, ...], strata: Integers | None, stands: bool
) -> str:
    """What a rule does, in words."""
    if stands:
        return "nothing changes. The classifier's own decisions stand, for everybody."
    return comparison(after.rate, names, strata)


def refusal(rule: Rule, confidence: float) -> str | None:
    """Why a rule cannot be certified; None if it can."""
    if rule.record is not None and not rule.record.cross_fitted:
        return None
    try:
        certify(rule, confidence)
    except FairrampError as error:
        return str(error)
    return None


def also(refused: str | None) -> str | None:
    """Why the other positions are not certified where the rule is not: they would be taken for its."""
    if refused is None:
        return None
    return "The reported rule has no certificate, and so the rules at the other positions are given none either."


def promise(rule: Rule, confidence: float, may_certify: bool, n_groups: int, refused: str | None) -> Promise:
    """What is certified of a rule."""
    if refused is not None:
        return Promise(None, None, False, None, refused, "")
    if not may_certify:
        text = f"With {n_groups:,} groups only the reported rule itself is certified; fit this one to see more."
        return Promise(None, None, False, None, text, "")
    found: Certificate = certify(rule, confidence)
    proven = found.proven
    where = "in any stratum " if found.within_strata else ""
    sure = f"With {level(confidence)} confidence"
    text = (
        f"{sure}, no two groups’ selection rates {where}differ by more than {points(found.gap)} in the "
        "population that the fit rows were drawn from"
    )
    if n_groups == 1:
        text = "There is one single group, so there is no gap to bound"
    elif found.gap >= 1:
        text = f"{sure}, nothing can be said about the population: the fit rows are too few"
    elif found.is_theorem:
        text += ". This is a theorem"
    elif proven is None:
        text += ". This is an approximation; nothing is proven for weighted rows"
    elif proven.gap >= 1:
        text += ". This is an approximation; for a proof the fit rows are too few"
    else:
        text += f". This is an approximation; proven, with the same confidence, are {points(proven.gap)}"
    text += _width(found)
    return Promise(
        found.gap, found.kind, found.is_theorem, proven.gap if proven else None, f"{text}.", found.assumptions
    )


def _width(found: Certificate) -> str:
    """Which group makes a promise wide, and what is promised without it."""
    if found.widest_for is None:
        return ""
    text = f". Widest for {_with_rows((found.widest_for,))} in the fit"
    if found.rest is None:
        return text
    which = "that group" if len(found.left_out) == 1 else _with_rows(found.left_out)
    return f"{text}; without {which}, at most {points(found.rest.gap)} between the others"


def _with_rows(groups: tuple[tuple[Label, int], ...]) -> str:
    return with_rows(groups, form="{} ({})", spelled=lambda label: isolated(plain_name(show_label(label))))


def drift(found: Check, in_sample: bool | None, confidence: float) -> str | None:
    """Whether these rows keep the promise; None where that is no question, on the rows of the fit."""
    judged, which = found, "between groups"
    if not found.has_drifted and found.rest is not None and found.rest.has_drifted:
        judged, which = found.rest, f"between groups other than {_with_rows(found.left_out)}"
    if found.is_kept and (in_sample or len(found.groups) == 1):
        return None
    measured = (
        f"the gap {which} is {points(judged.gap)}, at least {points(judged.gap_interval[0])} with "
        f"{level(confidence)} confidence, and promised were at most {points(judged.promised)}"
    )
    if found.is_kept:
        return f"These rows do not show that the reported rule breaks its promise: {measured}."
    return f"On these rows the reported rule does not keep its promise: {measured}."


def is_in_sample(
    rule: Rule, fingerprint: str, rows: Integers, before: tuple[float, ...], after: tuple[float, ...]
) -> bool | None:
    """Whether these are the rows of the fit, as far as the record can tell.

    A fit to bins that are coarser than the parts that a fingerprint counts has another one than its rows.
    """
    record = rule.record
    if record is None:
        return None
    if record.fingerprint == fingerprint:
        return True
    if any(record.rate_error):
        return None
    # Bins may also have been exact for the rule; then all that is on record is the same.
    alike = record.rows == tuple(rows.tolist()) and np.allclose(
        [record.rate_before, record.rate_after], [before, after], rtol=0, atol=1e-9
    )
    return None if alike else False


def notes(rule: Rule, names: tuple[str, ...], rows: Integers, in_sample: bool | None) -> list[str]:
    """What to mind about these rows."""
    found = []
    small = np.flatnonzero(rows < SMALL_GROUP).tolist()
    if small:
        shown = ", ".join(f"{isolated(names[k])} ({rows[k]:,} rows)" for k in small[:5])
        more = f" and {len(small) - 5:,} more" if len(small) > 5 else ""
        found.append(
            f"Groups below {SMALL_GROUP} rows: {shown}{more}. Their rates on new people can be far from those "
            "shown here."
        )
    if len(names) == 1:
        found.append("There is one single group: nothing to equalise.")
    elif in_sample:
        found.append(
            "These look like the rows the rule was fitted on. On new people the gap will be larger, by chance; "
            "the certificate says by how much."
        )
    elif in_sample is None and rule.record is not None:
        found.append("It cannot be told whether these are the rows the rule was fitted on.")
    elif in_sample is False:
        found.append(
            "These are not the rows the rule was fitted on: at its own position the slider shows how the rule "
            "does on new rows, at every other one a rule fitted to these rows, which looks a little better than "
            "it is."
        )
    if rule.record and any(rule.record.rate_error):
        found.append(
            "The rule was fitted to scores in bins, without the rows: a group's selection rate on the fit rows "
            f"can be off by up to {100 * max(rule.record.rate_error):.2g} percentage points, which the "
            "certificate counts in."
        )
    if rule.record and rule.record.cross_fitted:
        found.append("The rule was fitted on cross-fitted scores; nothing is certified.")
    return found
