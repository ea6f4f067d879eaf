"""The points of Annex IV of the EU AI Act: facts that the library knows, and questions where it does not.

The headings are ours, not the wording of the regulation.
"""

from dataclasses import dataclass

from fairramp.core.headline import SMALL_GROUP
from fairramp.core.labels import show_label
from fairramp.core.table import Table
from fairramp.core.words import percent, percentage
from fairramp.show import describe
from fairramp.show.evidence.content import Decided, Pack
from fairramp.show.words import unmarked


@dataclass(frozen=True)
class Point:
    """A point of the annex.

    Attributes
    ----------
    number, heading : str
        Its number in the annex, and what it is about.
    facts : tuple of str
        What the library knows.
    questions : tuple of str
        What only the provider knows.
    tables : tuple of Table
        Tables that belong to the facts.
    """

    number: str
    heading: str
    facts: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


def annex(pack: Pack) -> list[Point]:
    """All points, in the order of the annex."""
    return [*_general(pack), *_development(pack), *_operation(pack), *_process(pack)]


def _kept(*texts: object) -> tuple[str, ...]:
    """The texts, without those that do not apply, which are None or empty."""
    return tuple(text for text in texts if text and isinstance(text, str))


def _said(pack: Pack, name: str) -> str | None:
    """A fact on the rule, by its name in `fairramp show`."""
    found = {} if pack.rule is None else dict(describe.facts(pack.rule))
    text = found.get(name)
    return text and f"{text[0].upper()}{text[1:]}."


def _general(pack: Pack) -> list[Point]:
    """Point 1."""
    about, rule = pack.about, pack.rule
    versions = ", ".join(f"{name} {version}" for name, version in pack.versions.items())
    inputs = (
        f"The rule reads a score ({_lower(_said(pack, 'score'))}) and groups ({_lower(_said(pack, 'groups'))})."
    )
    return [
        Point(
            "1 (a)",
            "Intended purpose, provider and version",
            _kept(
                about.decision and f"A yes means: {about.decision}.",
                about.owner and f"Responsible for the rule: {about.owner}.",
                rule
                and f"The rule has the fingerprint {rule.fingerprint}. Any change of its decisions changes it.",
            ),
            (
                "What is the system for, and for what is it not intended?",
                "Who provides it? Which version is this, and how does it differ from earlier versions?",
            ),
        ),
        Point(
            "1 (b)",
            "Interaction with other hardware and software",
            _kept(rule and inputs),
            ("Which systems supply the scores and the groups? Which ones use the decisions?",),
        ),
        Point(
            "1 (c)",
            "Versions of software",
            (
                f"Measured with {versions}.",
                *_kept(_said(pack, "fitted") and f"The rule was fitted {_fitted(pack)}"),
            ),
            ("Which versions does the deployed system use, and who updates them?",),
        ),
        Point(
            "1 (d)",
            "Forms in which the system is provided",
            _kept(rule and "The rule is one JSON file, rule.json in this folder."),
            ("Is the system a package, a service or part of another product?",),
        ),
        Point(
            "1 (e)",
            "Hardware",
            _kept(rule and "The rule is arithmetic on one score and needs no special hardware."),
            ("Which hardware does the classifier need?",),
        ),
        Point(
            "1 (f)", "The product that the system is part of", (), ("If there is one, what does it look like?",)
        ),
        Point(
            "1 (g), (h)",
            "User interface and instructions",
            (),
            ("What do users see, and what are they told to do?",),
        ),
    ]


def _fitted(pack: Pack) -> str:
    return _lower(_said(pack, "fitted")) + "."


def _lower(text: str | None) -> str:
    """A fact in the middle of a sentence."""
    return (text[0].lower() + text[1:]).removesuffix(".") if text else "unknown"


def _development(pack: Pack) -> list[Point]:
    """Point 2."""
    rule, report, about = pack.rule, pack.report, pack.about
    unknown = [
        (" or ".join(cut.columns), cut.unknown) for cut in (one.categories for one in pack.decided[0].impacts)
    ]
    limits = None if report is None else unmarked(report.chosen.guarantee.sentence)
    return [
        Point(
            "2 (a)",
            "How the system was developed",
            _kept(
                rule
                and "A classifier computes the scores. fairramp then fitted the rule to them, without changing "
                "the classifier.",
                "fairramp does not know how the classifier was developed.",
            ),
            ("How was the classifier developed? Does it contain models or tools of other providers?",),
        ),
        Point(
            "2 (b)",
            "Design: logic, choices and trade-offs",
            _kept(
                rule and f"Aim of the rule: {_lower(_said(pack, 'goal'))}.",
                _said(pack, "mixing"),
                rule and f"Decisions at random: {_lower(_said(pack, 'random'))}.",
                rule
                and "Among rules with this limit and ramp width, the fit looks for the best one for its target.",
            ),
            (
                "Why was this rate chosen to be equal, and why this limit?",
                "Whom do the decisions affect, and what were the alternatives?",
            ),
            (rule.table(),) if rule else (),
        ),
        Point(
            "2 (c)",
            "Architecture and computing resources",
            _kept(rule and "Score and group → threshold or ramp of the group → probability of yes → decision."),
            ("What is the architecture of the classifier, and what did it take to train and test it?",),
        ),
        Point(
            "2 (d)",
            "Data",
            _kept(
                f"People in the data of this folder: {pack.rows:,}"
                + (f" (file {about.source})." if about.source else "."),
                about.left_out,
                *(f"{name}: {text}." for name, text in pack.outcomes.items()),
                pack.doubt,
                *(f"SHA-256 of {name}: {digest}." for name, digest in pack.sources.items()),
                *(f"People whose {name} is unknown: {n:,}." for name, n in unknown),
                pack.fit_rows,
            ),
            (
                "Where do the data come from, when were they collected, and how were people selected?",
                "How were the labels made, and how were the data cleaned?",
                "Who stated the categories: the people themselves, or someone else?",
            ),
        ),
        Point(
            "2 (e)",
            "Human oversight: assessment",
            _kept(rule and "The command fairramp explain tells, for one person, what the rule answers and why."),
            ("What do the people who oversee the system need in order to understand its decisions?",),
        ),
        Point(
            "2 (f)",
            "Changes determined in advance",
            _kept(rule and "The rule does not change by itself: it is a fixed list of numbers."),
            ("Which changes are planned, and how will the system keep its performance?",),
        ),
        Point(
            "2 (g)",
            "Validation and testing",
            _kept(
                *(
                    f"Selection rates, {one.heading[0].lower()}{one.heading[1:]}: {_rates(one, pack)}."
                    for one in pack.decided
                ),
                limits and f"For new people. {limits}",
                limits and "The gap is the difference between the highest and the lowest rate of the groups.",
                "All categories are in impact-ratios.md, and confidence intervals by group are in audit.json.",
            ),
            (
                "Which other tests were made, such as of robustness? Where are their dated and signed reports?",
                "Are the people in these data like those whom the system will decide about?",
            ),
        ),
        Point(
            "2 (h)",
            "Cybersecurity",
            _kept(rule and "Decisions at random use a secret key, which is in no file of this folder."),
            ("How are the classifier, the rule file and the key protected, and who may change them?",),
        ),
    ]


def _rates(decided: Decided, pack: Pack) -> str:
    """The range of selection rates by each column, of the categories that are large enough to judge."""
    found = []
    for impact in decided.impacts:
        ends = impact.extremes(pack.audit.confidence)
        low, high = (percent(impact.rates[at[0]]) for at in (ends.low, ends.high))
        few = f" (not counting {ends.too_small:,} with fewer than {SMALL_GROUP} people)" if ends.too_small else ""
        if ends.by_chance:
            few = f" (fewer than two have at least {SMALL_GROUP} people)"
        found.append(f"{low} to {high} by {impact.categories.name}{few}")
    return ", ".join(found)


def _operation(pack: Pack) -> list[Point]:
    """Points 3 and 4."""
    rule, report, audit = pack.rule, pack.report, pack.audit
    labeled = pack.labeled
    few = [
        f"{show_label(label)} ({n:,})"
        for label, n in zip(audit.groups, audit.rows, strict=True)
        if n < SMALL_GROUP
    ]
    overall = audit.selection.overall_accuracy
    scored = labeled and "calibration_error" in audit.errors().to_dict()
    interval = f" Confidence intervals are at {percentage(audit.confidence)}."
    return [
        Point(
            "3",
            "Capabilities and limits, by group",
            _kept(
                None
                if overall is None
                else f"Accuracy for all people in the data: {percent(overall)}.{interval}",
                None if labeled else "The data have no outcomes, so accuracy and error rates are unknown.",
                scored
                and "Calibration error: the average distance of a score, read as the probability of the "
                "favorable outcome, from how often that outcome occurred at such scores.",
                few
                and f"Groups with fewer than {SMALL_GROUP} people, whose rates are unreliable: "
                f"{', '.join(few[:10])}.",
                *map(unmarked, report.limits if report else ()),
            ),
            (
                "What level of accuracy is expected, overall and for each group?",
                "Which unintended outcomes are foreseeable, for example for health, safety or discrimination?",
            ),
            (audit.table(), audit.errors()) if labeled else (audit.table(),),
        ),
        Point(
            "3",
            "Input data",
            _kept(
                rule and f"Score: {_lower(_said(pack, 'score'))}.",
                rule and f"Groups: {_lower(_said(pack, 'groups'))}.",
            ),
            ("Which input data must the deployer provide, and how good must they be?",),
        ),
        Point(
            "3",
            "Human oversight in use",
            _kept(
                None
                if audit.randomized is None
                else f"Share of people decided at random: {percent(audit.randomized)}. Staff who review "
                "decisions should know this."
            ),
            ("Who oversees the system, who may overrule a decision, and how can people object?",),
        ),
        Point(
            "4",
            "Why these measures are appropriate",
            (
                "Measured here: selection rates and impact ratios"
                + (", accuracy and error rates by group." if labeled else "."),
            ),
            ("Why do these measures suit the purpose? Which others matter, and are they measured?",),
        ),
    ]


def _process(pack: Pack) -> list[Point]:
    """Points 5 to 9."""
    rule = pack.rule
    return [
        Point(
            "5", "Risk management", (), ("How are risks found, judged and reduced? Where is this documented?",)
        ),
        Point(
            "6",
            "Changes over the lifecycle",
            _kept(
                rule and f"This rule was fitted {_fitted(pack)}",
                rule and "The command fairramp report --compare shows what differs from an earlier rule.",
            ),
            ("What has changed since the first version, when, and who approved it?",),
        ),
        Point(
            "7", "Standards applied", (), ("Which harmonized standards were applied, or which other solutions?",)
        ),
        Point("8", "EU declaration of conformity", (), ("Where is the declaration? This folder contains none.",)),
        Point(
            "9",
            "Monitoring after the system is in use",
            _kept(
                rule
                and "The commands fairramp check and fairramp monitor test, on new people, whether the gap "
                "exceeds its limit."
            ),
            ("What is the plan: which data, how often, and who acts on an alarm?",),
        ),
    ]
