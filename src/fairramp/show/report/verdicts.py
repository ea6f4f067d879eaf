"""The two verdicts of a report: on these rows, and for new people; the worse one counts.

    on these rows     within if the gap is at most the limit that was asked for, otherwise exceeded
    for new people    within if the estimated limit (or the proven one, if that was asked for) is at most it
                      exceeded if new rows show it: their lower confidence limit is above it
                      undecided otherwise

A minimum ratio is compared the other way round. A certificate limits the gap and not the ratio, so only new rows
can decide about the ratio for new people. All groups count, those with few rows too, but the headline names the
gap between the others first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairramp.core.bands import smallest_ratio
from fairramp.core.cells import largest_gap
from fairramp.core.curve import Booleans, Integers
from fairramp.core.events import SELECTION, ClassEvent, Event
from fairramp.core.headline import SMALL_GROUP, judged
from fairramp.core.labels import show_label
from fairramp.core.words import (
    NOTHING,
    decimals_apart,
    exact_points,
    number,
    percentage,
    points,
    upward_points,
    with_interval,
)
from fairramp.measure.certificate import Certificate, certify
from fairramp.measure.class_audited import ClassSelection
from fairramp.measure.rates import Selection
from fairramp.measure.verdict import Verdict, verdict_on, verdict_on_ratio, worst
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule
from fairramp.show.words import marked

#: Most small groups that are named.
_NAMED = 5


@dataclass(frozen=True)
class Limit:
    """The limit that was asked for.

    Attributes
    ----------
    value : float
        The largest allowed gap, or the lowest allowed ratio.
    is_ratio : bool
        Which of the two.
    confidence : float
        Confidence level of the limits for new people.
    kind : {"estimated", "proven"}
        The limit for new people that decides.
    """

    value: float
    is_ratio: bool
    confidence: float
    kind: str = "estimated"

    @classmethod
    def of(cls, rule: Rule, confidence: float, *, is_own: bool = True) -> "Limit":
        """The limit of a rule; if a gap was asked for the population, that one."""
        if rule.min_ratio is not None:
            return cls(rule.min_ratio, True, confidence)
        asked = rule.record.asked if rule.record and is_own else None
        if asked is not None:
            return cls(asked.max_gap, False, asked.confidence, asked.limit)
        return cls(rule.max_gap or 0.0, False, confidence)

    @property
    def words(self) -> str:
        """What it is called, in the middle of a sentence."""
        if self.is_ratio:
            return f"the minimum ratio of {ratio_words(self.value)}"
        return f"the limit of {exact_points(self.value)}"

    def is_met(self, value: float) -> bool:
        """Whether a gap or a ratio meets it, but for rounding; a ratio is NaN if nobody is selected anywhere."""
        if self.is_ratio:
            return not value < self.value - NOTHING
        return value <= self.value + NOTHING


@dataclass(frozen=True)
class Judgment:
    """Both verdicts, in words.

    Attributes
    ----------
    rows, people : Verdict
        On these rows, and for new people.
    headline : str
        The same in words.
    on_rows, on_people : str
        The numbers behind them.
    small : str
        The groups with too few rows to judge; empty if there are none.
    advice : str
        What the verdicts mean for an approval.
    """

    rows: Verdict
    people: Verdict
    headline: str
    on_rows: str
    on_people: str
    small: str
    advice: str

    @property
    def summary(self) -> str:
        """The headline and the numbers behind it."""
        return f"{self.headline}. {self.on_rows} {self.on_people} {self.small}".rstrip()

    @property
    def worse(self) -> Verdict:
        """The worse verdict."""
        return worst([self.rows, self.people])


@dataclass(frozen=True)
class Evidence:
    """What is known about a rule on these rows.

    `small` marks groups with few rows; `is_new` says whether these are known not to be the fit rows, and
    `has_drifted` whether they show that the rule exceeds its estimated limit.
    """

    event: Event
    before: Selection | ClassSelection
    after: Selection | ClassSelection
    names: Sequence[str]
    sizes: Sequence[int]
    small: Booleans
    strata: Integers | None
    is_new: bool
    has_drifted: bool

    @property
    def judged(self) -> Booleans:
        """The groups that lead the headline."""
        return judged(self.sizes, self.strata)

    def apart(
        self, found: Selection | ClassSelection, event: Event, limit: Limit, keep: Booleans | None = None
    ) -> float:
        """The gap between rates of an event, or their ratio; between all groups, or those to keep."""
        rates = np.array(found.rates[event.name].rate)
        chosen = np.ones(len(rates), dtype=bool) if keep is None else keep
        strata = None if self.strata is None else self.strata[chosen]
        return (smallest_ratio if limit.is_ratio else largest_gap)(rates[chosen], strata)

    def furthest(self, limit: Limit, keep: Booleans | None = None, *, before: bool = False) -> float:
        """The largest gap, or the smallest ratio, of all rates that are compared; after, unless `before`."""
        shown = self.before if before else self.after
        found = [self.apart(shown, event, limit, keep) for event in self.event.simple]
        return min(found) if limit.is_ratio else max(found)


def judge(rule: Rule | ClassRule, limit: Limit, found: Evidence, known: Certificate | str) -> Judgment:
    """Both verdicts on a rule; `known` is its certificate, or the reason it has none."""
    if len(found.names) == 1:
        text = "Cannot be decided: there is one group, so there is nothing to compare"
        return Judgment(Verdict.UNDECIDED, Verdict.UNDECIDED, text, "", "", "", "There is no gap to approve.")
    rows = Verdict.WITHIN if limit.is_met(found.furthest(limit)) else Verdict.EXCEEDED
    people, why = _for_new_people(rule, limit, found, known)
    return Judgment(
        rows,
        people,
        _headline(rows, people, limit),
        _on_rows(rows, limit, found),
        f"For new people: {why}",
        _small(limit, found, known),
        _advice(rows, people, limit, known),
    )


def _advice(rows: Verdict, people: Verdict, limit: Limit, known: Certificate | str) -> str:
    """What the verdicts mean for an approval."""
    match worst([rows, people]):
        case Verdict.WITHIN:
            return "As far as this limit is concerned, the rule may be approved."
        case Verdict.EXCEEDED:
            return f"Do not approve this rule for {limit.words}."
    if isinstance(known, str) or limit.is_ratio:
        what = "ratio for new people may be below" if limit.is_ratio else "gap for new people may be above"
        return f"Approve only if you accept that the {what} the limit; these rows cannot show by how much."
    bound = known.proven if limit.kind == "proven" else known.estimated
    if bound is None or bound >= 1:
        return "Approve only if any gap is acceptable for new people: these rows set no limit."
    return f"Approve only if a gap of up to {upward_points(bound)} ({limit.kind}) is acceptable for new people."


def _headline(rows: Verdict, people: Verdict, limit: Limit) -> str:
    """Both verdicts in words; a rule that misses its limit on these rows needs no second one."""
    missed = "below" if limit.is_ratio else "above"
    if rows is Verdict.EXCEEDED:
        return f"{missed.capitalize()} {limit.words} on these rows"
    found = {
        Verdict.WITHIN: ", and for new people",
        Verdict.EXCEEDED: f", but {missed} it for new people",
        Verdict.UNDECIDED: "; undecided for new people",
    }
    return f"Meets {limit.words} on these rows{found[people]}"


def _on_rows(verdict: Verdict, limit: Limit, found: Evidence) -> str:
    """The gaps or ratios between groups that can be judged, on these rows."""
    keep, said = found.judged, []
    if isinstance(found.event, ClassEvent):  # there may be many classes
        now, was = (found.furthest(limit, keep, before=before) for before in (False, True))
        said.append(f"largest gap of a class {_value(now, limit)}, was {_value(was, limit)}")
    for event in () if said else found.event.simple:
        now, was = (found.apart(one, event, limit, keep) for one in (found.after, found.before))
        name = "ratio" if limit.is_ratio else event.gap
        if limit.is_ratio and event is not SELECTION:
            name = f"ratio of {event.rate}s"
        said.append(f"{name} {_value(now, limit)}, was {_value(was, limit)}")
    text = f"On these rows: {'; '.join(said)}"
    only_small = verdict is Verdict.EXCEEDED and limit.is_met(found.furthest(limit, keep))
    return f"{text}, without groups too small to judge." if only_small else f"{text}."


def _small(limit: Limit, found: Evidence, known: Certificate | str) -> str:
    """Names the groups with few rows, what they change, and the limits for new people without them."""
    names = [
        f"{marked(name)} ({size:,})"
        for name, size, small in zip(found.names, found.sizes, found.small, strict=True)
        if small
    ]
    if not names:
        return ""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    of = "people who count toward the rate" if found.event.needs_labels else "people"
    text = f"Too few to judge (fewer than {SMALL_GROUP} {of}): {', '.join(names[:_NAMED])}{more}."
    what = "smallest ratio" if limit.is_ratio and found.event.parts else "ratio" if limit.is_ratio else "gap"
    (now, was), without = (
        [found.furthest(limit, keep, before=before) for before in (False, True)] for keep in (None, found.judged)
    )
    text += " The verdicts count them, too"
    if abs(now - without[0]) > NOTHING or abs(was - without[1]) > NOTHING:
        text += f": with them, the {what} on these rows is {_value(now, limit)}, was {_value(was, limit)}"
    if not isinstance(known, str) and known.rest is not None and not limit.is_ratio:
        text += f". Without the smallest groups, for new people: {known.rest.limits()}"
    return f"{text}."


def _for_new_people(
    rule: Rule | ClassRule, limit: Limit, found: Evidence, known: Certificate | str
) -> tuple[Verdict, str]:
    """The verdict for new people, and the evidence in a sentence."""
    after, sure = found.after, f"{percentage(limit.confidence)} confidence"
    fresh, shown = Verdict.UNDECIDED, ""
    if found.is_new:
        value, interval = (
            (after.ratio, after.ratio_interval) if limit.is_ratio else (after.gap, after.gap_interval)
        )
        fresh = (verdict_on_ratio if limit.is_ratio else verdict_on)(value, interval, limit.value)
        low, high = (_value(end, limit) for end in interval)
        what = "ratio" if limit.is_ratio else "gap"
        if not found.judged.all():
            what += " of all groups, with those too small to judge,"
        shown = f" These rows are new, and there the {what} is {with_interval(_value(value, limit), low, high)}."
    if isinstance(known, str):
        return fresh, f"no limit is known. {known.removesuffix('.')}.{shown}"
    certificate = known
    if known.confidence != limit.confidence and isinstance(rule, Rule):
        certificate = certify(rule, limit.confidence)
    if limit.is_ratio:
        return fresh, f"fairramp limits the gap for new people, not the ratio.{shown}"
    proven = certificate.proven
    limits = f"{certificate.limits()} ({sure})."
    if proven is not None and proven != certificate.estimated:
        both = "both with " if proven < 1 else ""
        limits = f"{certificate.limits()} ({both}{sure}). The verdict uses the {limit.kind} limit."
    if certificate.widest_for is not None:
        (label, n), rows = certificate.widest_for, "fresh rows" if certificate.fresh else "fit rows"
        limits += f" The uncertainty is largest for group {marked(show_label(label))} ({n:,} {rows})."
    decides = certificate.proven if limit.kind == "proven" else certificate.estimated
    is_within = decides is not None and limit.is_met(decides)
    if found.has_drifted:
        return fresh, f"{limits} These rows show that the rule exceeds its estimated limit.{shown}"
    if fresh is Verdict.EXCEEDED:
        return fresh, f"{limits}{shown}"
    return Verdict.WITHIN if is_within else Verdict.UNDECIDED, f"{limits}{shown}"


def _value(value: float, limit: Limit) -> str:
    """A gap or a ratio, with enough decimals to tell it from the limit."""
    if limit.is_ratio:
        if value != value:
            return "undefined"
        missed = 0 if limit.is_met(value) else decimals_apart(limit.value / 100, value / 100)
        return number(value, max(missed, 2))
    return points(value, decimals_apart(limit.value, value) if not limit.is_met(value) else 1)


def ratio_words(ratio: float) -> str:
    """A ratio that was asked for, with all its digits and at least two decimals."""
    return f"{ratio:.2f}" if round(ratio, 2) == ratio else f"{ratio:.12g}"
