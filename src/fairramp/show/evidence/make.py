"""Compute the content of a folder of evidence.

rows  →  audit, impact ratios  →  Pack          with a rule, also its certificate and its report
"""

import platform
import warnings
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from fairramp._version import __version__
from fairramp.core.checks import check_flag, check_length
from fairramp.core.curve import Floats
from fairramp.core.labels import Label, canonical_label, show_label
from fairramp.core.public import public
from fairramp.core.words import percent
from fairramp.data.aligned import check_aligned
from fairramp.data.arrays import as_scores
from fairramp.data.groups import encode_groups
from fairramp.data.sample import Sample
from fairramp.errors import FairrampWarning, InputError, UnsupportedError
from fairramp.fit.direction import direction_doubt
from fairramp.fit.settings import Settings
from fairramp.measure.audit import audit
from fairramp.measure.audited import Audit
from fairramp.measure.impact import Categories, Impact, above_median, categories_of
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.decided import unquestioned
from fairramp.rule.draws import decide
from fairramp.rule.rule import Rule
from fairramp.show.describe import certificate_of
from fairramp.show.evidence.content import Decided, Pack, Scored
from fairramp.show.evidence.folder import Evidence
from fairramp.show.labels import LabelNames
from fairramp.show.report.content import about_of
from fairramp.show.report.make import make_content
from fairramp.show.words import plain_name, unmarked

#: Packages that the numbers depend on.
_PACKAGES = ("numpy", "scipy", "scikit-learn", "narwhals")


@public
def evidence(
    scores: Any,
    groups: Any,
    labels: Any = None,
    *,
    rule: Rule | None = None,
    categories: Any = None,
    unknown: Collection[Label] = (),
    strata: Any = None,
    group_probabilities: Any = None,
    ids: Any = None,
    key: str | None = None,
    scale: str | None = None,
    cutoff: float | None = None,
    higher_is_better: bool | None = None,
    confidence: float = 0.95,
    title: str | None = None,
    decision: str | None = None,
    owner: str | None = None,
    source: str | None = None,
    date: str | None = None,
    sources: Mapping[str, str] | None = None,
    label_names: Sequence[str] | None = None,
    left_out: str | None = None,
    report: bool = True,
) -> Evidence:
    """Make a folder for an auditor: impact ratios, the audit, the rule, and facts that the EU AI Act lists.

    The impact ratios are those that Local Law 144 of New York City asks for: the selection rate of a category,
    divided by that of the category selected most often, by each column and by intersection. Facts that Annex IV
    of the EU AI Act lists are filled in where they are known; the others are questions. Every page says that the
    folder claims no compliance. The same input gives the same files.

    Parameters
    ----------
    scores : numbers of shape (n,)
        Scores, or 0/1 decisions.
    groups : labels of shape (n,), or several columns
        As in `fit_rule`; those that the rule uses, if there is one.
    labels : 0 or 1 of shape (n,), optional
        True outcomes; adds accuracy and error rates by group.
    rule : Rule, optional
        Adds its decisions, its file, its certificate and its report.
    categories : labels of shape (n,), or several columns, optional
        Columns of the impact ratios, such as sex and race; by default, the groups.
    unknown : collection of labels, optional
        Values that mean that a category is unknown, such as "Not stated". Missing and empty values always do.
    strata, group_probabilities
        As in `audit`.
    ids, key : optional
        Ids and the secret key, as in `Rule.decide`; adds the decisions that the rule makes with them.
    scale, cutoff, higher_is_better, confidence : optional
        As in `audit`.
    title, decision, owner, source, date : str, optional
        Title of the folder, what yes means, who is responsible, the name of the file with the rows, and a date.
        There is no default date, so the same input gives the same files.
    sources : mapping of str to str, optional
        SHA-256 of the files that the rows came from, by name.
    label_names, left_out : optional
        What the labels stand for and which rows are not here, as in `Rule.report`.
    report : bool, default True
        Whether to add the rule's report as an HTML page; requires the extra `report`.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score, {"sex": data.sex}, max_gap=0.02)
    >>> columns = {"sex": data.sex, "race": data.race}
    >>> found = fairramp.evidence(data.score, {"sex": data.sex}, data.label, rule=rule, categories=columns)
    >>> found.save("evidence")  # doctest: +SKIP
    >>> len(found.impact_ratios)
    34
    """
    if isinstance(rule, ClassRule):
        raise UnsupportedError("Evidence does not support a rule for several classes")
    if (ids is None) != (key is None) or (ids is not None and rule is None):
        raise InputError(
            "Decisions as drawn need {rule}, {ids} and {key}", remedy="pass all three, or only {rule}"
        )
    if isinstance(unknown, str) or not isinstance(unknown, Collection):
        raise InputError("must be a list of values", argument="unknown", got=unknown)
    check_flag("report", report)
    about = about_of(title, decision=decision, owner=owner, source=source, date=date, left_out=left_out)
    names = LabelNames.of(label_names)
    given: dict[str, Any] = {
        "strata": strata,
        "group_probabilities": group_probabilities,
        "confidence": confidence,
    }
    own: dict[str, Any] = {"scale": scale, "cutoff": cutoff, "higher_is_better": higher_is_better}
    found = audit(scores, groups, labels, rule=rule, **given, **own)
    settings = Settings(
        scale=rule.scale if rule else scale or "probability",
        cutoff=found.cutoff,
        higher_is_better=found.higher_is_better,
    )
    check_aligned(scores=scores, groups=groups, categories=categories, ids=ids)
    sample = Sample.of_arrays(scores, groups, labels, scale=settings.meaning)
    try:
        codes = encode_groups(groups if categories is None else categories)
    except InputError as error:
        raise error.renamed(groups="categories", label="category") from None
    check_length("categories", len(codes), len(sample))
    cuts = categories_of(codes, [canonical_label(value) for value in unknown])
    content = None
    if rule is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairrampWarning)  # the audit has warned
            content = make_content(
                rule,
                scores,
                groups,
                labels,
                **given,
                title=title,
                decision=decision,
                owner=owner,
                source=source,
                date=date,
                label_names=label_names,
                left_out=left_out,
            )
    chances = None
    if rule is not None:
        with unquestioned():  # the audit has warned
            chances = rule.probabilities(
                scores, groups if group_probabilities is None else group_probabilities, strata
            )
    drawn = None if ids is None or chances is None else decide(chances, ids=ids, key=key).astype(np.float64)
    own_decisions = (sample.positions >= settings.problem.cutoff).astype(np.float64)
    pack = Pack(
        about=about,
        title=plain_name(title) if title else "Evidence for an audit",
        rows=len(sample),
        decided=tuple(_decided(found, own_decisions, chances, drawn, cuts, settings)),
        scored=None if found.of_decisions else _scored(scores, cuts, higher_is_better=found.higher_is_better),
        unknown=tuple(plain_name(show_label(canonical_label(value))) for value in unknown),
        audit=found,
        rule=rule,
        certificate=None if rule is None else certificate_of(rule, confidence),
        report=content,
        versions={
            "fairramp": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _PACKAGES},
        },
        sources=dict(sources or {}),
        label_names=names,
        doubt=unmarked(direction_doubt(sample, names.favorable)),
    )
    return Evidence(pack, report)


def _decided(
    found: Audit,
    own: Floats,
    chances: Floats | None,
    drawn: Floats | None,
    cuts: list[Categories],
    settings: Settings,
) -> list[Decided]:
    """The classifier's own decisions and those of the rule."""
    how = (
        f"A person is selected if the score is {settings.cutoff:g} or {settings.meaning.side}. Check that the "
        "classifier in use has this cutoff."
    )
    if found.of_decisions:
        how = "These decisions were in the data, as 0 and 1."
    kinds = [("classifier", "Decisions as given" if found.of_decisions else "The classifier alone", how, own)]
    if chances is not None:
        share = float(((chances > 0) & (chances < 1)).mean())
        expected = (
            f"The rule decides {percent(share)} of all people at random, with known probabilities. For them, the "
            "numbers are expected ones: the sum of the probabilities."
        )
        if share == 0:
            expected = "No decision about these people is made at random."
        kinds.append(("rule", "The classifier with the rule", expected, chances))
    if drawn is not None:
        text = "The decisions that the rule makes with the ids in the data and the secret key."
        kinds.append(("rule, as drawn", "The classifier with the rule, as drawn", text, drawn))
    return [
        Decided(name, heading, how, tuple(Impact.of(cut, h) for cut in cuts)) for name, heading, how, h in kinds
    ]


def _scored(scores: Any, cuts: list[Categories], *, higher_is_better: bool) -> Scored:
    """Scores against their median."""
    values = as_scores(scores).astype(np.float64)
    median, beyond = above_median(values, higher_is_better=higher_is_better)
    side = "above" if higher_is_better else "below"
    return Scored(median, side, tuple(Impact.of(cut, beyond) for cut in cuts))
