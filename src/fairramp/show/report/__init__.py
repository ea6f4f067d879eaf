"""The report: the effect of a rule on the user's own rows, as one self-contained page.

content.py    every number, for a grid of limits, as plain data
measured.py   the rows behind these numbers
page.py       the page with its charts, from a template, a style sheet and a script
texts.py      its fixed texts, by criterion
"""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fairramp.data.files import write_text
from fairramp.show.report.content import Content, make_content

__all__ = ["Content", "Report", "make_content"]


@dataclass(frozen=True, repr=False)
class Report:
    """A report, as returned by `Rule.report`.

    Attributes
    ----------
    content : Content
        Every number and sentence on the page.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> report = fairramp.fit_rule(data.score, data.sex, max_gap=0.02).report(data.score, data.sex)
    >>> round(report.content.chosen.after.gap, 3)
    0.02
    """

    content: Content

    @cached_property
    def html(self) -> str:
        """The page as one self-contained HTML document."""
        from fairramp.show.report.page import render

        return render(self.content)

    def to_json(self) -> str:
        """Every number on the page as JSON text."""
        return self.content.to_json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file. If writing fails, no partial file is left."""
        write_text(Path(path), self.html, "the report")

    def __repr__(self) -> str:
        return (
            f"fairramp report on {self.content.rows:,} rows in {len(self.content.groups):,} groups; save it with "
            ".save('report.html')"
        )
