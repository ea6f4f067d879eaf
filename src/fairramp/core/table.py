"""A small table that needs no dataframe library.

Columns are NumPy arrays. A table prints as text or HTML, and converts with `to_pandas`, `to_polars`, `to_arrow`,
`to_csv` and `to_markdown`.
"""

import html
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import library
from fairramp.core.labels import label_text, show_labels
from fairramp.core.notebook import framed
from fairramp.core.public import public
from fairramp.core.words import (
    MISSING,
    PAGE,
    exact_points,
    number,
    percent,
    percentage,
    points,
    upward_points,
    with_interval,
    wrapped,
)
from fairramp.core.written import csv_text, markdown

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


#: Number of rows shown at the top and at the bottom of a long table.
_SHOWN = 8
#: Longer names are shortened.
_LONGEST = 32
#: Names are never cut below this length.
_SHORTEST = 12


@public
class Table:
    """Named columns of equal length, read-only.

    When printed, columns that belong together are merged: `rate`, `rate_low` and `rate_high` become 7.7% [7.2%,
    8.3%] under the heading "rate (95% CI)"; `ramp_from` and `ramp_to` become 0.2285 to 0.2385 under "ramp".

    Parameters
    ----------
    columns : mapping of str to sequence
        The data.
    decimals : int, default 4
        Decimals of plain numbers when printed; the data are not rounded.
    headings : mapping of str to str, optional
        Headings to use instead of the column names.
    shares : collection of str, optional
        Columns shown as percentages.
    gaps : collection of str, optional
        Columns shown in percentage points.
    limits : collection of str, optional
        Columns shown in percentage points, rounded up.
    settings : collection of str, optional
        Columns shown in percentage points with all their digits.
    confidence : float, default 0.95
        Confidence level of the intervals, for the headings.

    Examples
    --------
    >>> from fairramp import Table
    >>> table = Table({"group": ["A", "B"], "rate": [0.25, 0.5]}, shares=["rate"])
    >>> table["rate"].max()
    np.float64(0.5)
    >>> print(table)
    group   rate
    -----  -----
    A      25.0%
    B      50.0%
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        decimals: int = 4,
        headings: Mapping[str, str] | None = None,
        *,
        shares: Collection[str] = (),
        gaps: Collection[str] = (),
        limits: Collection[str] = (),
        settings: Collection[str] = (),
        confidence: float = 0.95,
    ) -> None:
        self._columns = {name: _column(values) for name, values in columns.items()}
        if len(set(map(len, self._columns.values()))) > 1:
            raise ValueError("The columns of a table must have the same length.")
        self._decimals = decimals
        forms: list[tuple[Callable[[float], str], Collection[str]]]
        forms = [(percent, shares), (points, gaps), (upward_points, limits), (exact_points, settings)]
        self._forms = {name: form for form, names in forms for name in names}
        self._level = percentage(confidence)
        self._headings = {name: one_line(text) for name, text in (headings or {}).items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))) if self._columns else 0

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows as dictionaries of plain Python values.

        Examples
        --------
        >>> from fairramp import Table
        >>> table = Table({"group": ["A", "B"], "rate": [0.25, 0.5]})
        >>> next(table.rows())
        {'group': 'A', 'rate': 0.25}
        """
        columns = self.to_dict().values()
        return (dict(zip(self._columns, values, strict=True)) for values in zip(*columns, strict=True))

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists of plain Python values.

        Examples
        --------
        >>> from fairramp import Table
        >>> table = Table({"group": ["A", "B"], "rate": [0.25, 0.5]})
        >>> table.to_dict()
        {'group': ['A', 'B'], 'rate': [0.25, 0.5]}
        """
        return {name: values.tolist() for name, values in self._columns.items()}

    def to_pandas(self) -> "pandas.DataFrame":
        """Convert to a pandas dataframe.

        Examples
        --------
        >>> from fairramp import Table
        >>> table = Table({"group": ["A", "B"], "rate": [0.25, 0.5]})
        >>> table.to_pandas()
          group  rate
        0     A  0.25
        1     B  0.50
        """
        return cast("pandas.DataFrame", library("pandas").DataFrame(self._exported()))

    def to_polars(self) -> "polars.DataFrame":
        """Convert to a polars dataframe.

        Examples
        --------
        >>> from fairramp import Table
        >>> table = Table({"group": ["A", "B"], "rate": [0.25, 0.5]})
        >>> table.to_polars().shape
        (2, 2)
        """
        return cast("polars.DataFrame", library("polars").DataFrame(self._exported()))

    def to_arrow(self) -> "pyarrow.Table":
        """Convert to an Arrow table.

        Examples
        --------
        >>> from fairramp import Table
        >>> table = Table({"group": ["A", "B"], "rate": [0.25, 0.5]})
        >>> table.to_arrow().column_names
        ['group', 'rate']
        """
        return cast("pyarrow.Table", library("pyarrow").table(self._exported()))

    def to_csv(self) -> str:
        """Convert to CSV, with all columns and all digits.

        Numbers read back exactly, and NaN is an empty field. Group names are written as they are printed, with
        "(missing)" and "(blank)" for names that have no text, but keep their line breaks.

        Spreadsheets run a cell that starts with =, +, - or @ as a formula. A name that starts like this, with or
        without blanks before it, or with a tab or a line break, therefore gets a leading apostrophe. Numbers
        never do, even if they are negative.

        Returns
        -------
        str
            Text for a file in UTF-8, with a line of column names and then one line for each row.

        Examples
        --------
        >>> from fairramp import Table
        >>> table = Table({"group": ["A", "=B"], "rate": [0.1, 1 / 3]}, shares=["rate"])
        >>> print(table.to_csv())
        group,rate
        A,0.1
        '=B,0.3333333333333333
        <BLANKLINE>
        """
        return csv_text(self.to_dict())

    def to_markdown(self, *, every: bool = True) -> str:
        r"""Convert to a Markdown table as GitHub and many other programs show it, with the printed columns.

        Every row is included, unless `every` is false: a long table then has its first and last rows, as when it
        is printed. Names appear as they are printed, whatever markup they contain. In names that GitHub would
        turn into a mention, a link or an emoji, such as @team, #1, www.example.com or :tada:, an invisible
        character prevents that.

        Returns
        -------
        str
            The lines of the table.

        Examples
        --------
        >>> from fairramp import Table
        >>> table = Table({"group": ["A", "<b>"], "rate": [0.1, 1 / 3]}, shares=["rate"])
        >>> print(table.to_markdown())
        | group | rate |
        | --- | ---: |
        | A | 10.0% |
        | \<b\> | 33.3% |
        """
        rows, numeric = self._cells(every=every)
        return markdown([heading for heading, _ in self._shown()], rows, numeric)

    def _exported(self) -> dict[str, Any]:
        """Columns that every library accepts: mixed, very large and compound labels become text."""

        def exported(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            labels = [v for v in values if v is not None] if values.dtype == object else []
            kinds = set(map(type, labels))
            large = kinds == {int} and any(not -(2**63) <= v < 2**63 for v in labels)
            as_text = len(kinds) > 1 or tuple in kinds or large
            return np.array([label_text(v) for v in values]) if as_text else values.copy()

        return {name: exported(values) for name, values in self._columns.items()}

    @property
    def is_cut(self) -> bool:
        """Whether the middle rows are left out when printed."""
        return len(self) > 2 * _SHOWN + 1

    def _shown(self) -> list[tuple[str, list[str]]]:
        """Headings of the printed columns, and the names of the columns merged under each."""
        known = self._columns.keys()
        values = {name: [f"{name}_low", f"{name}_high"] for name in known}
        values = {name: ends for name, ends in values.items() if known >= {*ends}}
        starts = {name: name.removesuffix("_from") for name in known if name.endswith("_from")}
        starts = {name: stem for name, stem in starts.items() if f"{stem}_to" in known}
        merged = {end for ends in values.values() for end in ends} | {f"{stem}_to" for stem in starts.values()}

        def shown(name: str) -> tuple[str, list[str]]:
            stem = starts.get(name, name)
            heading = self._headings.get(stem, one_line(stem.replace("_", " ")))
            if name in values:
                return f"{heading} ({self._level} CI)", [name, *values[name]]
            return heading, [name, f"{stem}_to"] if name in starts else [name]

        return [shown(name) for name in known if name not in merged]

    def _cells(self, every: bool = False) -> tuple[list[list[str]], list[bool]]:
        """Cell texts by row, without the middle of a long table, and which columns are numeric."""
        merges, n, cut = [names for _, names in self._shown()], len(self), self.is_cut and not every
        seats = [*range(_SHOWN), *range(n - _SHOWN, n)] if cut else range(n)
        texts = {
            name: dict(zip(seats, named([column[i] for i in seats]), strict=True))
            for name, column in self._columns.items()
            if column.dtype.kind not in "iuf"
        }
        rows = [[self._merged(names, i, texts) for names in merges] for i in seats]
        if cut:
            rows.insert(_SHOWN, ["…"] * len(merges))
        return rows, [self._columns[names[0]].dtype != object for names in merges]

    def _merged(self, names: Sequence[str], i: int, known: Mapping[str, Mapping[int, str]]) -> str:
        """The text of one cell; `known` has the cells of the columns of names."""
        texts = [self._text(names[0], self._columns[name][i]) or known[name][i] for name in names]
        match texts:
            case [value, low, high]:
                return with_interval(value, low, high)
            case [start, end]:
                return start if start == end == MISSING else f"{start} to {end}"
        return texts[0]

    def _text(self, column: str, value: Any) -> str:
        """A number as text; empty for a name."""
        if isinstance(value, np.floating):
            form = self._forms.get(column, partial(number, decimals=self._decimals))
            return form(float(value))
        # Object columns hold names, even if those are numbers.
        return f"{value:,}" if isinstance(value, np.integer) else ""

    def text(self, width: int | None = None, *, every: bool = False) -> str:
        """Format the table as text.

        Headings wrap if the table would otherwise be wider than 80 characters. With `width`, names are shortened
        as needed; numbers never are. A long table shows only its first and last rows, unless `every` is true.

        Examples
        --------
        >>> from fairramp import Table
        >>> print(Table({"group": ["a very long name indeed"], "rate": [0.25]}).text(width=22))
        group             rate
        --------------  ------
        a very long n…  0.2500
        """
        cells = self._cells(every)  # formatted once, however often the layout is tried
        text = self._lines(*cells, _LONGEST, stacked=False)
        if _width(text) > (width or PAGE):
            text = self._lines(*cells, _LONGEST, stacked=True)
        if width is not None:
            for longest in range(_LONGEST - 1, _SHORTEST, -1):
                if _width(text) <= width:
                    break
                text = self._lines(*cells, longest, stacked=True)
        return text

    def _lines(self, rows: list[list[str]], numeric: list[bool], longest: int, *, stacked: bool) -> str:
        def cut(cells: Sequence[str]) -> list[str]:
            return [c if right else _shortened(c, longest) for c, right in zip(cells, numeric, strict=True)]

        shown = [heading for heading, _ in self._shown()]
        columns = zip(shown, zip(*rows, strict=True), strict=True) if rows else ((name, ()) for name in shown)
        headings = [_stack(name, cells) if stacked else [name] for name, cells in columns]
        tallest = max(map(len, headings), default=0)
        lines = [[""] * (tallest - len(heading)) + heading for heading in headings]
        header, rows = list(map(cut, zip(*lines, strict=True))), list(map(cut, rows))
        widths = [max(map(len, column)) for column in zip(*header, *rows, strict=True)]

        def line(cells: Sequence[str]) -> str:
            aligned = zip(cells, widths, numeric, strict=True)
            return "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in aligned).rstrip()

        return "\n".join(map(line, [*header, ["-" * w for w in widths], *rows]))

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return framed(self._html())

    def _html(self) -> str:
        rows, numeric = self._cells()
        styles = ["text-align:right;white-space:nowrap" if right else "text-align:left" for right in numeric]

        def cells(tag: str, texts: list[str]) -> str:
            return "".join(
                f'<{tag} style="{style}">{html.escape(text)}</{tag}>'
                for text, style in zip(texts, styles, strict=True)
            )

        header = cells("th", [heading for heading, _ in self._shown()])
        body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
        return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def printed(*parts: "Table | str") -> str:
    """Tables and texts as text, separated by blank lines. The lines of a text are wrapped one by one."""
    return "\n\n".join(wrapped(part) if isinstance(part, str) else part.text() for part in parts)


def notebook_html(*parts: "Table | str", chart: str = "") -> str:
    """HTML of tables and texts for a notebook, one below the other; the first line stands out.

    The chart, if there is one, is HTML. It stands above the first table.
    """
    found, above = [], chart
    for i, part in enumerate(parts):
        if isinstance(part, Table):
            found.append(above + part._html())
            above = ""
            continue
        lines = [html.escape(line) for line in part.split("\n")]
        if i == 0:
            lines[0] = f"<strong>{lines[0]}</strong>"
        found.append(f"<p>{'<br>'.join(lines)}</p>")
    return framed("".join(found) + above)


def name_column(names: Sequence[Any]) -> npt.NDArray[Any]:
    """An object column, so that names print as names even if they are numbers or tuples."""
    column = np.empty(len(names), dtype=object)
    column[:] = names
    return column


def one_line(text: str) -> str:
    """Replace line breaks and other control characters, which a terminal might interpret, by spaces."""
    return "".join(c if c.isprintable() else " " for c in text)


def named(labels: Sequence[Any]) -> list[str]:
    """Labels as in tables and sentences, each on one line."""
    return list(map(one_line, show_labels(labels)))


def with_rows(
    groups: Sequence[tuple[Any, int]],
    most: int = 5,
    form: str = "{} ({})",
    spelled: Callable[[Any], str] | None = None,
    what: str = "row",
) -> str:
    """List groups with their numbers of rows.

    >>> with_rows([("A", 1), ("B", 2500)], what="fit row with label 1")
    'A (1 fit row with label 1), B (2,500 fit rows with label 1)'
    """
    many = what.replace("row", "rows", 1)
    labels = [label for label, _ in groups[:most]]
    names = named(labels) if spelled is None else map(spelled, labels)
    shown = ", ".join(
        form.format(name, f"{n:,} {what if n == 1 else many}")
        for name, (_, n) in zip(names, groups, strict=False)
    )
    return shown + (f" and {len(groups) - most:,} more" if len(groups) > most else "")


def _stack(heading: str, cells: Sequence[str]) -> list[str]:
    """Wrap a heading to the width of its column, keeping "(95% CI)" on one line."""
    whole = heading.replace("% CI)", "%\u00a0CI)")
    widest = max(map(len, [*cells, *whole.split(" ")]))
    return [line.replace("\u00a0", " ") for line in textwrap.wrap(whole, widest)]


def _width(text: str) -> int:
    return max(map(len, text.split("\n")))


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _column(values: Any) -> npt.NDArray[Any]:
    values = values if isinstance(values, np.ndarray) else list(values)
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    column = np.array(values) if numbers or isinstance(values, np.ndarray) else name_column(values)
    column.flags.writeable = False
    return column
