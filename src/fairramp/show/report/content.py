"""The content of a report: every number and sentence, for a grid of limits, as plain frozen data.

`to_json` has everything the page shows, and the same input gives the same bytes.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from fairramp.core.events import EVENT_OF, Event
from fairramp.core.words import plain
from fairramp.errors import InputError
from fairramp.measure.rates import GroupRates, Selection
from fairramp.show.answers import AnswerForm
from fairramp.show.labels import LABELS, LabelNames
from fairramp.show.report.compare import Compared
from fairramp.show.report.verdicts import Judgment
from fairramp.show.sentences import Guarantee
from fairramp.show.words import plain_name


@dataclass(frozen=True)
class Group:
    """A group in the rows of the report.

    Attributes
    ----------
    name : str
        Its label as text.
    rows : int
        Number of rows.
    small : bool
        Whether the rows that count toward a compared rate are too few for it to be reliable.
    histogram : tuple of float
        Share of its weight in each of equally wide bins of the score range; empty for several classes.
    """

    name: str
    rows: int
    small: bool
    histogram: tuple[float, ...] = ()


@dataclass(frozen=True)
class People:
    """Expected numbers of people, that is, of rows, whatever their weights.

    Attributes
    ----------
    to_yes, to_no : tuple of float
        People in each group whose decision changes to yes, or to no.
    changed, drawn, selected : float
        People whose decision changes, who are decided at random, and who are selected.
    wrong : float or None
        People whose decision disagrees with their label; None without labels.
    """

    to_yes: tuple[float, ...]
    to_no: tuple[float, ...]
    changed: float
    drawn: float
    selected: float
    wrong: float | None


@dataclass(frozen=True)
class About:
    """What the caller says about a report; None if not said.

    Attributes
    ----------
    decision : str or None
        What yes means, such as "loan granted".
    owner, source, date, review_date : str or None
        Who is responsible for the rule, the name of the file with the rows, the date of the report, and the date
        by which the rule is to be reviewed.
    left_out : str or None
        Which rows of the file are missing, and why.
    """

    decision: str | None = None
    owner: str | None = None
    source: str | None = None
    date: str | None = None
    review_date: str | None = None
    left_out: str | None = None


def about_of(title: str | None, **said: str | None) -> About:
    """What the caller says, checked, without control characters."""
    for name, text in {"title": title, **said}.items():
        if not isinstance(text, str | None):
            raise InputError("must be a string", argument=name, got=text)
    return About(**{name: plain_name(text).strip() or None if text else None for name, text in said.items()})


def title_of(title: str | None, about: About, compared: str, group_name: str) -> str:
    """The title as given, or what is compared."""
    if title:
        return plain_name(title)
    text = f"{about.decision}: {compared} by {group_name}" if about.decision else f"{compared} by {group_name}"
    return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class Outcome:
    """The effect of the rule for one limit; tuples have one entry per group.

    Attributes
    ----------
    max_gap, min_ratio : float or None
        Largest allowed gap, or lowest allowed ratio; the other is None.
    is_own : bool
        Whether this is the reported rule itself.
    stands : bool
        Whether it changes no decision.
    target_rate : float or None
        Center of the band that holds every group's compared rate, or, for a ratio, its upper end; None with
        strata, and for equalized odds.
    ramp_width : float
        Largest width of its ramps, in the units of the thresholds.
    thresholds, ramp_from, ramp_to : tuple of float
        Its ramps, in the units of the scores; for logits, as probabilities. NaN for constant ramps.
    tie_chances : tuple of float
        The probability at the threshold of a group without a ramp; NaN if there is a ramp.
    constant_chances : tuple of float
        The probability of everyone in a group; NaN if it depends on the score.
    after : Selection
        Its compared rates, gap, ratio and errors, as in an audit.
    selected : GroupRates or None
        Its selection rates, gap and ratio, if other rates are compared.
    overall_rate : float
        Overall selection rate.
    accuracy_interval : pair of float, or None
        Confidence limits of the accuracy; None without labels.
    changed_to_yes, changed_to_no : tuple of float
        Share of each group whose decision changes to yes, or to no.
    changed, drawn : float
        Share of all decisions that change, and share decided at random.
    people : People
        The same and more as expected numbers of people.
    guarantee : Guarantee
        The limits on the gap in the population, in words and in numbers.
    judgment : Judgment
        The verdicts on these rows and for new people, against the limit that was asked for.
    command : str
        The command that fits this rule to the same rows.
    sentence, selected_sentence : str
        The compared rates in words, and the selection rates if they are others.
    shifts : tuple of float, or None
        What each value adds to the threshold, for a rule by each of several attributes.
    """

    max_gap: float | None
    min_ratio: float | None
    is_own: bool
    stands: bool
    target_rate: float | None
    ramp_width: float
    thresholds: tuple[float, ...]
    ramp_from: tuple[float, ...]
    ramp_to: tuple[float, ...]
    tie_chances: tuple[float, ...]
    constant_chances: tuple[float, ...]
    after: Selection
    selected: GroupRates | None
    overall_rate: float
    accuracy_interval: tuple[float, float] | None
    changed_to_yes: tuple[float, ...]
    changed_to_no: tuple[float, ...]
    changed: float
    drawn: float
    people: People
    guarantee: Guarantee
    judgment: Judgment
    command: str
    sentence: str
    selected_sentence: str
    shifts: tuple[float, ...] | None = None


@dataclass(frozen=True)
class PageContent:
    """What reports of all rules contain.

    Attributes
    ----------
    title : str
        As given, or a default.
    about : About
        The decision, its owner, the file and dates, as given.
    group_name : str
        Names of the group columns.
    rows : int
        Number of rows measured.
    weighted, labeled : bool
        Whether the rows have weights, and labels.
    confidence : float
        Confidence level of all intervals.
    settings : dict
        The rule's settings, with the ramp width in the units of the thresholds and the cutoff as a score.
    groups : tuple of Group
        In the rule's order.
    notes, limits : tuple of str
        Notes on these rows, and limitations of any such report.
    data_fingerprint, fit_fingerprint, rule_fingerprint : str or None
        Fingerprints of these rows, of the fit rows and of the rule.
    in_sample : bool or None
        Whether these appear to be the fit rows; None if unknown.
    versions : dict
        Versions of the software used.
    """

    title: str
    about: About
    group_name: str
    rows: int
    weighted: bool
    labeled: bool
    confidence: float
    settings: dict[str, Any]
    groups: tuple[Group, ...]
    notes: tuple[str, ...]
    limits: tuple[str, ...]
    data_fingerprint: str
    fit_fingerprint: str | None
    rule_fingerprint: str
    in_sample: bool | None
    versions: dict[str, str]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of rows of each group."""
        return tuple(group.rows for group in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return plain(asdict(self))

    def to_json(self) -> str:
        """Return everything as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


@dataclass(frozen=True)
class Content(PageContent):
    """All numbers and sentences of the report of a rule for yes or no.

    Attributes
    ----------
    score_range : pair of float
        Ends of the histograms, in the units of the thresholds; for real scores, in positions.
    cutoff : float
        The classifier's own cutoff, in the units of the thresholds.
    before : Selection
        Compared rates, gap, ratio and errors of the classifier's own decisions, as in an audit.
    selected_before : GroupRates or None
        Selection rates, gap and ratio of the same decisions, if other rates are compared.
    overall_rate_before : float
        Overall selection rate under the same decisions.
    people_before : People
        Expected numbers of people under the same decisions.
    sentence, selected_sentence : str
        The compared rates in words, and the selection rates if they are others.
    outcomes : tuple of Outcome
        From the strictest limit to the loosest.
    own : int
        Index of the reported rule in `outcomes`.
    is_kept : bool or None
        False if `Rule.check` finds that the gap on these rows exceeds its estimated limit; None if the rule has
        no certificate.
    drift : str or None
        The same in words; None on the fit rows, where the check does not apply.
    answers : tuple of AnswerForm
        What the reported rule answers a person of each group, by score.
    compared : Compared or None
        The other rule that the reported one is compared with, if any.
    mixing : str
        How a person's threshold follows from those of the groups; empty if every person belongs to one group.
    parts : tuple of int, or None
        Index of each group's stratum or attribute; None if all groups are compared.
    label_names : LabelNames
        What the labels stand for.
    """

    score_range: tuple[float, float]
    cutoff: float
    before: Selection
    selected_before: GroupRates | None
    overall_rate_before: float
    people_before: People
    sentence: str
    selected_sentence: str
    outcomes: tuple[Outcome, ...]
    own: int
    is_kept: bool | None
    drift: str | None
    answers: tuple[AnswerForm, ...]
    compared: Compared | None
    mixing: str = ""
    parts: tuple[int, ...] | None = None
    label_names: LabelNames = LABELS

    @property
    def has_parts(self) -> bool:
        """Whether groups are compared in several parts: within strata, or by each attribute."""
        return bool(self.settings["stratified"]) or self.settings["membership"] == "each"

    @property
    def chosen(self) -> Outcome:
        """The reported rule."""
        return self.outcomes[self.own]

    @property
    def event(self) -> Event:
        """The event whose rates are compared."""
        return EVENT_OF[self.settings["criterion"]]
