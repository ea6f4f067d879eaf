"""Evidence: a folder for an auditor, with impact ratios and the technical facts that the EU AI Act lists.

content.py     every number and fact, as plain data
make.py        computes it
annex.py       the points of Annex IV: facts, and questions where the library knows none
documents.py   the files as text
"""

import os
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairramp.core.checks import check_flag
from fairramp.core.table import Table
from fairramp.data.files import write_folder
from fairramp.rule.rule import Rule
from fairramp.show.evidence.content import Pack
from fairramp.show.evidence.documents import documents
from fairramp.show.evidence.make import make_pack

__all__ = ["Evidence", "evidence", "make_pack"]


@dataclass(frozen=True, repr=False)
class Evidence:
    """A folder for an auditor, as returned by `evidence`. It claims no compliance with any law.

    Attributes
    ----------
    content : Pack
        Every number and fact in the folder.
    report : bool
        Whether the folder has the HTML page, if there is a rule.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> found = fairramp.evidence(data.score, {"sex": data.sex})
    >>> sorted(found.files)[:4]
    ['README.md', 'SHA256SUMS', 'annex-iv.md', 'audit.json']
    """

    content: Pack
    report: bool = True

    @cached_property
    def files(self) -> dict[str, str]:
        """The text of each file, by name."""
        return documents(self.content, report=self.report)

    @property
    def impact_ratios(self) -> Table:
        """The impact ratios of all decisions by each column and by intersection, as in impact-ratios.csv.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> found = fairramp.evidence(data.score, {"sex": data.sex})
        >>> found.impact_ratios["impact_ratio"].round(2).tolist()
        [0.31, 1.0]
        """
        return self.content.impact_ratios

    @property
    def scoring_rates(self) -> Table | None:
        """How often scores are above the median of all people, as in scoring-rates.csv; None for decisions.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> fairramp.evidence(data.score, {"sex": data.sex}).scoring_rates["scoring_rate"].round(2).tolist()
        [0.27, 0.62]
        """
        return self.content.scoring_rates

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the folder, whole or not at all; it must not exist.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> fairramp.evidence(data.score, {"sex": data.sex}).save("evidence")  # doctest: +SKIP
        """
        write_folder(Path(folder), self.files, "the evidence")

    def __repr__(self) -> str:
        return f"fairramp evidence on {self.content.rows:,} people; save it with .save('evidence')"


def evidence(
    scores: Any,
    groups: Any,
    labels: Any = None,
    *,
    rule: Rule | None = None,
    categories: Any = None,
    unknown: Collection[Any] = (),
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
    return Evidence(
        make_pack(
            scores,
            groups,
            labels,
            rule=rule,
            categories=categories,
            unknown=unknown,
            strata=strata,
            group_probabilities=group_probabilities,
            ids=ids,
            key=key,
            scale=scale,
            cutoff=cutoff,
            higher_is_better=higher_is_better,
            confidence=confidence,
            title=title,
            decision=decision,
            owner=owner,
            source=source,
            date=date,
        ),
        check_flag("report", report),
    )
