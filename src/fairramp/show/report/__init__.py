"""The report: what a rule does to the reader's own rows, as one page that needs nothing else.

content.py    every number, for a grid of tolerances, as plain data
measured.py   the rows behind them
page.py       the page with its charts, from a template, a style sheet and a script
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
    """A report; made by `Rule.report`.

    Attributes
    ----------
    content : Content
        Every number and sentence of the page.

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
        """The page, one self-contained HTML file."""
        from fairramp.show.report.page import render

        return render(self.content)

    def to_json(self) -> str:
        """Every number on the page as JSON text."""
        return self.content.to_json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, which appears whole or not at all."""
        write_text(Path(path), self.html, "the report")

    def __repr__(self) -> str:
        return (
            f"fairramp report on {self.content.rows:,} rows in {len(self.content.groups):,} groups; save it with "
            ".save('report.html')"
        )
