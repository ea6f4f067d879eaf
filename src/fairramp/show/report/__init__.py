"""The report: the effect of a rule on the user's own rows, as one self-contained page.

content.py        every number, for a grid of limits, as plain data
make.py           computes it
measured.py       the rows behind these numbers
slider.py         the rules at the positions of the slider
verdicts.py       the verdicts on these rows and for new people
compare.py        another rule on the same rows, and whose decisions differ
tables.py         the tables of the page, also as CSV
compare_page.py   the tables of the comparison
charts.py         the charts of the page
say.py            its texts that depend on the slider
texts.py          its fixed texts, by criterion
page.py           the page, from templates, a style sheet and scripts
class_content.py  every number of a report on several classes
class_tables.py   its tables
class_page.py     its texts and charts, for the same page
"""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from fairramp.core.table import Table
from fairramp.data.files import write_text
from fairramp.show.report.class_content import ClassContent, make_class_content
from fairramp.show.report.class_tables import csv_class_tables
from fairramp.show.report.content import Content
from fairramp.show.report.make import make_content
from fairramp.show.report.tables import csv_tables

__all__ = ["ClassContent", "Content", "Report", "make_class_content", "make_content"]

_C = TypeVar("_C", Content, ClassContent)


@dataclass(frozen=True, repr=False)
class Report(Generic[_C]):
    """A report, as returned by `Rule.report` and `ClassRule.report`.

    Attributes
    ----------
    content : Content or ClassContent
        Every number and sentence on the page.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> report = fairramp.fit_rule(data.score, data.sex, max_gap=0.02).report(data.score, data.sex)
    >>> round(report.content.chosen.after.gap, 3)
    0.02
    """

    content: _C

    @cached_property
    def html(self) -> str:
        """The page as one self-contained HTML document."""
        if isinstance(self.content, ClassContent):
            from fairramp.show.report.class_page import render_classes

            return render_classes(self.content)
        from fairramp.show.report.page import render

        return render(self.content)

    def to_json(self) -> str:
        """Every number on the page as JSON text."""
        return self.content.to_json()

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables of the page with all groups and all digits, by name: "rule", "people" and "limits".

        With labels there is also "errors", and with another rule "compared". They show the reported rule;
        "limits" has one row for each position of the slider. For several classes, the tables are "rates", "gaps"
        and "rule", and with labels "errors" and "confusion".

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> report = fairramp.fit_rule(data.score, data.sex, max_gap=0.02).report(data.score, data.sex)
        >>> list(report.tables), report.tables["people"].to_csv().split(",")[0]
        (['rule', 'people', 'limits'], 'group')
        """
        if isinstance(self.content, ClassContent):
            return csv_class_tables(self.content)
        return csv_tables(self.content)

    def save_tables(self, folder: str | os.PathLike[str]) -> None:
        """Write each table to a CSV file in a folder, such as people.csv; the folder is created if needed.

        Names that a spreadsheet might take for a formula are written with an apostrophe before them.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for name, table in self.tables.items():
            write_text(place / f"{name}.csv", table.to_csv(), "a table of the report")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file. If writing fails, no partial file is left."""
        write_text(Path(path), self.html, "the report")

    def __repr__(self) -> str:
        return (
            f"fairramp report on {self.content.rows:,} rows in {len(self.content.groups):,} groups; save it with "
            ".save('report.html')"
        )
