"""Evidence: the folder, before it is written."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fairramp.core.table import Table
from fairramp.data.files import write_folder
from fairramp.show.evidence.content import Pack
from fairramp.show.evidence.documents import documents


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
        [0.28, 0.61]
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
