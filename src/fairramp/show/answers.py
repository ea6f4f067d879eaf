"""What a rule answers one person, and why, in sentences.

Each group has an `AnswerForm`: its ramp, and a template for each answer. Python and the report page fill the same
templates, so both give the same sentences. A template is a tuple of parts: strings are text, tuples are filled:

    ("score",)                       the score
    ("chance",)                      the probability of yes
    ("before", if_no, if_yes)        a sentence, by the classifier's own decision
    (relation, rounded, full)        a relation of `RELATIONS` and a number, rounded and with all its digits

Names of groups are text that is never parsed. Rounded numbers are used if all relations of the sentence hold for
the numbers as printed, otherwise those with all digits. Conversions of scores may round the last digit, so even
these may fail; then the score itself replaces the number, and "above" becomes "at or above".
"""

import html
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

import numpy as np

from fairramp.core.checks import check_number
from fairramp.core.labels import Label, canonical_label, label_key, label_of, label_parts, label_text, show_label
from fairramp.core.ramps import Ramp
from fairramp.core.scales import Scale
from fairramp.core.words import fixed, plain, wrapped
from fairramp.data.groups import Codes
from fairramp.data.probable import GroupProbabilities
from fairramp.errors import InputError
from fairramp.rule.rule import Rule
from fairramp.show.words import marked, plain_name, unmarked

Template = tuple[str | tuple[str, ...], ...]

#: What each relation means for a score and a number.
RELATIONS = {
    "above": operator.gt,
    "at or above": operator.ge,
    "below": operator.lt,
    "at or below": operator.le,
    "between": operator.ge,
    "and": operator.le,
}
#: Numbers with more digits than this are printed in full: rounded ones might have digits that a float has not.
_DIGITS = 15
#: Most groups of a mixture that are named, the most likely ones.
_NAMED = 5
_SCORE, _CHANCE = ("score",), ("chance",)
_RANDOM: Template = ("Decided at random: yes with probability ", _CHANCE, ". ")
_REPEATABLE = " The same person always gets the same decision if an id and a key are used."


@dataclass(frozen=True)
class Answer:
    """What a rule answers one person, and why. Made by `Rule.explain`.

    Attributes
    ----------
    score : float
        The person's score.
    group, stratum : label
        The person's group and, if the rule has strata, the stratum. For a rule that uses group probabilities, the
        group is a dict of the groups' names and probabilities.
    probability : float
        The probability of yes, as in `Rule.probabilities`.
    before : bool
        The classifier's own decision.
    answer : {"yes", "no", "random"}
        Yes if the probability is 1, no if it is 0.
    why : str
        The answer and its reason, in sentences.

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    >>> rule.explain(0.48, "B")
    Yes. In group B, a score of 0.48 is at or above 0.4500, where everyone is
    selected. The classifier alone would say no: its cutoff is 0.5.
    >>> rule.explain(0.48, "A").answer
    'random'
    """

    score: float
    group: Label | dict[str, float]
    stratum: Label
    probability: float
    before: bool
    answer: str
    why: str

    def to_dict(self) -> dict[str, Any]:
        """The attributes as plain values, ready for JSON.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
        >>> rule.explain(0.48, "B").to_dict()["probability"]
        1.0
        """
        return plain(asdict(self))

    def __repr__(self) -> str:
        return wrapped(self.why)

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.why)}</p>"


@dataclass(frozen=True)
class AnswerForm:
    """What is needed to answer any person of one group: plain data, ready for JSON.

    Attributes
    ----------
    group : str
        The group's name.
    kind : {"ramp", "step", "constant", "own"}
        Which numbers decide: foot and width; foot and tie; tie alone; or none, because the group was not in the
        fit rows and keeps the classifier's own decisions.
    foot, width, tie : float
        As in `Ramp`; 0 if they do not decide.
    decimals : int
        Decimals of rounded numbers.
    yes, no, random : tuple
        A template for each answer; empty if no score gets that answer.
    """

    group: str
    kind: str
    foot: float
    width: float
    tie: float
    decimals: int
    yes: Template
    no: Template
    random: Template

    def why(self, scale: Scale, score: float, probability: float, before: bool) -> str:
        """The answer and its reason, with names marked as on the page."""
        template = {1.0: self.yes, 0.0: self.no}.get(probability, self.random)
        own = _own_texts(scale, score, self.decimals)
        bounds = [part for part in template if isinstance(part, tuple) and part[0] in RELATIONS]
        holds = (i for i in (0, 1) if all(_holds(own[i], kind, texts[i:]) for kind, *texts in bounds))
        level = next(holds, None)

        def filled(part: str | tuple[str, ...]) -> str:
            match part:
                case str():
                    return part
                case ("score",):
                    return _score_text(scale, score, own[1 if level is None else level])
                case ("chance",):
                    return chance_text(probability)
                case ("before", if_no, if_yes):
                    return if_yes if before else if_no
                case (kind, *texts) if level is not None:
                    return f"{kind} {texts[level]}"
            return f"{'at or ' if part[0] in ('above', 'below') else ''}{part[0]} {own[1]}"

        return "".join(map(filled, template))


def digits(value: float) -> str:
    """A number with all its digits, as JavaScript writes it.

    >>> digits(0.41), digits(41.0), digits(1e-7), digits(1e20)
    ('0.41', '41', '1e-7', '100000000000000000000')
    """
    text = repr(float(value) + 0.0)  # −0.0 is 0.0
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return f"{Decimal(text):f}".removesuffix(".0")
    mantissa, _, power = text.partition("e")
    return f"{mantissa}e{int(power):+d}"


def chance_text(probability: float) -> str:
    """A probability between 0 and 1 as a percentage; never 0 or 100.

    >>> chance_text(0.37), chance_text(1e-12), chance_text(1 - 1e-12)
    ('37.0%', '<0.1%', '>99.9%')
    """
    text = fixed(100 * probability, 1)
    return {"0.0": "<0.1", "100.0": ">99.9"}.get(text, text) + "%"


def _own_texts(scale: Scale, score: float, decimals: int) -> tuple[str, str]:
    """What is compared with bounds, rounded and in full: the score, never rounded, or a logit's probability."""
    full = digits(scale.shown_score(score))
    return (fixed(scale.shown_score(score), decimals) if scale.name == "logit" else full), full


def _score_text(scale: Scale, score: float, own: str) -> str:
    return digits(score) + (f" (probability {own})" if scale.name == "logit" else "")


def _holds(own: str, kind: str, texts: Sequence[str]) -> bool:
    """Whether a relation holds for the numbers as printed."""
    return bool(texts) and RELATIONS[kind](float(own), float(texts[0]))


def explain(rule: Rule, score: Any, group: Any, stratum: Any = None) -> Answer:
    """Answer one person; see `Rule.explain`."""
    scale = rule.meaning
    score = check_number("score", score, *scale.finite_range) + 0.0  # −0.0 is 0.0
    before = bool(scale.compared(np.array([score]))[0] >= rule.own_cutoff)
    if rule.membership == "probabilities":
        _check_stratum(rule, _label(stratum))
        mixture = _mixture(rule, group)
        probability = float(rule.probabilities([score], mixture)[0])
        named = {label_text(k): float(q) for k, (q,) in zip(mixture.labels, mixture.values.tolist(), strict=True)}
        return _answer(rule, score, named, None, probability, before, _mixed_form(rule, mixture))
    own_group, own_stratum = (_label(part) for part in (group, stratum))
    _check_stratum(rule, own_stratum)
    names = [name for name, _ in rule.attributes] if rule.membership == "each" else []
    if names and len(label_parts(own_group)) != len(names):
        raise InputError(
            "must have a value of each of {names}", argument="group", got=group, names=", ".join(names)
        )
    strata = [own_stratum] if rule.stratified else None
    try:
        probability = float(rule.probabilities([score], [own_group], strata)[0])
    except InputError as error:
        raise error.renamed(groups="group", strata="stratum") from None
    (form,) = answer_forms(rule, [(own_stratum, own_group) if rule.stratified else own_group])
    return _answer(rule, score, own_group, own_stratum, probability, before, form)


def _answer(
    rule: Rule,
    score: float,
    group: Label | dict[str, float],
    stratum: Label,
    probability: float,
    before: bool,
    form: "AnswerForm",
) -> Answer:
    return Answer(
        score,
        group,
        stratum,
        probability,
        before,
        {1.0: "yes", 0.0: "no"}.get(probability, "random"),
        unmarked(form.why(rule.meaning, score, probability, before)),
    )


def _mixture(rule: Rule, group: Any) -> GroupProbabilities:
    """The group probabilities of one person."""
    try:
        if isinstance(group, Mapping):
            group = GroupProbabilities({label: [q] for label, q in group.items()})
        if not isinstance(group, GroupProbabilities) or len(group) != 1:
            raise InputError(
                "must be the person's probability for each group, such as {example}",
                argument="group",
                got=group,
                example=dict.fromkeys(map(label_text, rule.groups), round(1 / len(rule.groups), 3)),
            )
        return rule.probable(group)
    except InputError as error:
        raise error.renamed(groups="group", group_probabilities="group") from None


def _mixed_form(rule: Rule, mixture: GroupProbabilities) -> "AnswerForm":
    """The form of a person with these group probabilities."""
    feet, first = np.array([ramp.foot for ramp in rule.ramps]), rule.ramps[0]
    foot = float(mixture.mix(feet - rule.center, 0, 1)[0]) + rule.center
    ramp = Ramp(foot, first.width, first.tie)
    order = np.argsort(-mixture.values[:, 0], kind="stable").tolist()
    named = [f"{_name(mixture.labels[k])} {chance_text(mixture.values[k, 0])}" for k in order[:_NAMED]]
    more = f" and {len(order) - _NAMED:,} more" if len(order) > _NAMED else ""
    templates = _Writer(rule).ruled(f"With group probabilities {', '.join(named)}{more}, ", ramp)
    return _form(rule, "group probabilities", ramp, templates)


def _form(rule: Rule, name: str, ramp: Ramp, templates: "_Templates") -> "AnswerForm":
    kind = "constant" if ramp.is_constant else "ramp" if ramp.width else "step"
    width = ramp.width if kind == "ramp" else 0.0
    return AnswerForm(plain_name(name), kind, ramp.foot, width, ramp.tie, rule.decimals, *templates)


def _label(value: Any) -> Label:
    """One label; a list has a value for each of several columns."""
    return canonical_label(value) if not isinstance(value, list) else canonical_label(label_of(tuple(value)))


def _check_stratum(rule: Rule, stratum: Label) -> None:
    """Raise if a stratum is given but the rule has none, or missing; None may be the label of missing values."""
    if not rule.stratified and stratum is not None:
        raise InputError("This rule equalizes over all rows and does not use {stratum}; remove it")
    strata = [label[0] for label in rule.groups if isinstance(label, tuple)]
    if rule.stratified and stratum is None and None not in strata:
        names = rule.columns.strata
        raise InputError(
            "This rule equalizes within strata: pass {stratum}{names}",
            names=f" ({', '.join(names)})" if names else "",
        )


def answer_forms(rule: Rule, cells: Sequence[Label] | None = None) -> tuple[AnswerForm, ...]:
    """The form of each group of a rule, or of each of some labels; with strata, labels are (stratum, group).

    >>> from fairramp import Ramp
    >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.constant(0.3)))
    >>> [(form.group, form.kind) for form in answer_forms(rule)]
    [('A', 'ramp'), ('B', 'constant')]
    """
    labels = rule.groups if cells is None else tuple(cells)
    ramps, own = rule.ramps_of(Codes(np.arange(len(labels)), 0, labels))
    fitted = set(map(label_key, rule.groups))
    writer = _Writer(rule)
    found = []
    for i, (label, ramp) in enumerate(zip(labels, ramps, strict=True)):
        name = show_label(label)
        if own is not None and own[i]:
            numbers = (0.0, 0.0, 0.0, rule.decimals)
            found.append(AnswerForm(plain_name(name), "own", *numbers, *writer.own(label)))
        else:
            start = writer.start(label, known=rule.mixes or label_key(label) in fitted)
            found.append(_form(rule, name, ramp, writer.ruled(start, ramp)))
    return tuple(found)


#: Templates for yes, no and random.
_Templates = tuple[Template, Template, Template]


class _Writer:
    """Writes the templates of groups of a rule."""

    def __init__(self, rule: Rule) -> None:
        self._rule, self._scale = rule, rule.meaning
        own, _ = _own_texts(self._scale, rule.cutoff, rule.decimals)
        self._cutoff = _score_text(self._scale, rule.cutoff, own)
        self._better, self._worse = ("above", "below") if rule.higher_is_better else ("below", "above")

    def _named(self, label: Label) -> str:
        if self._rule.stratified and isinstance(label, tuple):
            stratum, group = map(_name, label)
            return f"group {group} in stratum {stratum}"
        return f"group {_name(label)}"

    def own(self, label: Label) -> _Templates:
        """Templates of a group that keeps the classifier's own decisions."""
        why = (
            f"The rule keeps the classifier's own decisions in {self._named(label)}, which was not in the fit "
            f"rows. The classifier says yes at {self._cutoff} or {self._better}."
        )
        return (f"Yes. {why}",), (f"No. {why}",), ()

    def start(self, label: Label, *, known: bool) -> str:
        """How the reason starts: whose ramp it is, and what its threshold is made of if it is a sum."""
        rule, base = self._rule, self._rule.base
        if base is not None and base.width > 0 and not self._scale.only_ordered:
            parts = [fixed(rule.threshold_of(base), rule.decimals)]
            for part, (attribute, ramps) in zip(label_parts(label), rule.attributes, strict=True):
                shift = rule.threshold_of(ramps[label_key(part)]) - rule.threshold_of(base)
                sign = "−" if shift < 0 else "+"
                parts.append(f"{sign} {fixed(abs(shift), rule.decimals)} ({_name(attribute)} {_name(part)})")
            (ramp,) = rule.ramps_of(Codes(np.zeros(1, dtype=np.intp), 0, (label,)))[0]
            total = fixed(rule.threshold_of(ramp), rule.decimals)
            return f"In {self._named(label)}, whose threshold is {' '.join(parts)} = {total}, "
        return f"In {self._named(label)}, {'' if known else 'which was not in the fit rows, '}"

    def ruled(self, start: str, ramp: Ramp) -> _Templates:
        """Templates of a ramp; the reason starts with the given words."""
        worst, best = sorted(map(self._scale.position_of, self._scale.finite_range))
        low, high = ramp.chance([worst, best]).tolist()
        if low == high:
            yes, no, random = self._constant(low)
        elif ramp.width == 0:
            yes, no, random = self._step(ramp)
        else:
            yes, no, random = self._ramp(ramp, low, high)
        before = [
            f"The classifier alone would say {word}: its cutoff is {self._cutoff}." for word in ("no", "yes")
        ]
        as_well = [f"The classifier alone says {word} as well." for word in ("no", "yes")]
        return (
            _joined(f"Yes. {start}", *yes, " ", ("before", before[0], as_well[1])) if high == 1 else (),
            _joined(f"No. {start}", *no, " ", ("before", as_well[0], before[1])) if low == 0 else (),
            _joined(*_RANDOM, start, *random, " ", ("before", *before), _REPEATABLE) if random else (),
        )

    def _constant(self, chance: float) -> _Templates:
        random: Template = ("everyone has this probability, whatever the score.",)
        return (
            ("everyone is selected, whatever the score.",),
            ("no one is selected, whatever the score.",),
            random if 0 < chance < 1 else (),
        )

    def _step(self, ramp: Ramp) -> _Templates:
        (threshold, _), tie = self._rule.ends_of(ramp), ramp.tie
        higher, lower = ("yes", "no") if self._rule.higher_is_better else ("no", "yes")
        random: Template = (
            *("a score of ", _SCORE, " is exactly at the threshold: "),
            f"higher scores get {higher}, and lower scores get {lower}.",
        )
        return (
            self._beyond(self._better if tie < 1 else f"at or {self._better}", threshold, "everyone"),
            self._beyond(self._worse if tie > 0 else f"at or {self._worse}", threshold, "no one"),
            random if 0 < tie < 1 else (),
        )

    def _ramp(self, ramp: Ramp, low: float, high: float) -> _Templates:
        start, end = self._rule.ends_of(ramp)
        has_start, has_end = low == 0 and math.isfinite(start), high == 1 and math.isfinite(end)
        random: Template
        if has_start and has_end:
            first, last = sorted((start, end))
            random = ("scores ", self._bound("between", first), " ", self._bound("and", last), " are")
        elif has_start or has_end:
            bound = self._bound(self._better, start) if has_start else self._bound(self._worse, end)
            random = ("scores ", bound, " are")
        else:
            random = ("all scores are",)
        ends = " to ".join({0.0: "0%", 1.0: "100%"}.get(p) or chance_text(p) for p in (low, high))
        falls = "" if self._rule.higher_is_better else " as the score falls"
        return (
            self._beyond(f"at or {self._better}", end, "everyone"),
            self._beyond(f"at or {self._worse}", start, "no one"),
            (*random, f" on the ramp, where the probability of yes rises from {ends}{falls}."),
        )

    def _beyond(self, kind: str, value: float, who: str) -> Template:
        return ("a score of ", _SCORE, " is ", self._bound(kind, value), f", where {who} is selected.")

    def _bound(self, kind: str, value: float) -> tuple[str, ...]:
        """A relation to a number; without the number if it is infinite."""
        if math.isinf(value):
            return (kind,)
        full, decimals = digits(value), self._rule.decimals
        is_long = abs(value) * 10.0**decimals >= 10.0**_DIGITS
        return kind, full if is_long else fixed(value, decimals).replace(",", ""), full


def _joined(*parts: str | tuple[str, ...]) -> Template:
    """A template without adjacent texts."""
    runs = groupby(parts, lambda part: isinstance(part, str))
    return tuple(
        part for is_text, run in runs for part in ((("".join(map(str, run)),)) if is_text else tuple(run))
    )


def _name(label: Label) -> str:
    return marked(plain_name(show_label(label)))
