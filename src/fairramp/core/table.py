"""A small table that forces no data-frame library on anyone.

Columns are arrays; text and HTML for people, `to_pandas`, `to_polars` and `to_arrow` for programs.
"""

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import library
from fairramp.core.labels import show_label

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


#: Rows shown at the top and at the bottom of a long table.
_SHOWN = 8
#: Longest name shown in full.
_LONGEST = 32
#: Shortest that a name is cut to; longer than any number.
_SHORTEST = 12
#: Numbers up to this are rounding, and shown as 0.
_NOTHING = 1e-9


class Table:
    """Named columns of equal length, read-only.

    Parameters
    ----------
    columns : mapping of str to sequence
        What the table holds.
    decimals : int, default 4
        Digits after the point in its text; the numbers themselves are not rounded.
    headings : mapping of str to str, optional
        What its text calls some columns.

    Examples
    --------
    >>> from fairramp import Table
    >>> table = Table({"group": ["A", "B"], "rate": [0.25, 0.5]})
    >>> table["rate"].max()
    np.float64(0.5)
    >>> print(table)
    group    rate
    -----  ------
    A      0.2500
    B      0.5000
    """

    def __init__(
        self, columns: Mapping[str, Any], decimals: int = 4, headings: Mapping[str, str] | None = None
    ) -> None:
        self._columns = {name: _column(values) for name, values in columns.items()}
        if len(set(map(len, self._columns.values()))) > 1:
            raise ValueError("The columns of a table must have one length.")
        self._decimals = decimals
        words = {name: name.split("_") for name in self._columns}
        self._headings = words | {name: [one_line(text)] for name, text in (headings or {}).items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
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
        """Table as a pandas dataframe.

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
        """Table as a polars dataframe.

        Examples
        --------
        >>> from fairramp import Table
        >>> table = Table({"group": ["A", "B"], "rate": [0.25, 0.5]})
        >>> table.to_polars().shape
        (2, 2)
        """
        return cast("polars.DataFrame", library("polars").DataFrame(self._exported()))

    def to_arrow(self) -> "pyarrow.Table":
        """Table as an Arrow table.

        Examples
        --------
        >>> from fairramp import Table
        >>> table = Table({"group": ["A", "B"], "rate": [0.25, 0.5]})
        >>> table.to_arrow().column_names
        ['group', 'rate']
        """
        return cast("pyarrow.Table", library("pyarrow").table(self._exported()))

    def _exported(self) -> dict[str, Any]:
        """Columns that every library takes: mixed, very large and compound labels as text."""

        def exported(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            labels = [v for v in values if v is not None] if values.dtype == object else []
            kinds = set(map(type, labels))
            large = kinds == {int} and any(not -(2**63) <= v < 2**63 for v in labels)
            as_text = len(kinds) > 1 or tuple in kinds or large
            return np.array([show_label(v) for v in values]) if as_text else values.copy()

        return {name: exported(values) for name, values in self._columns.items()}

    @property
    def is_cut(self) -> bool:
        """Whether its text leaves the middle out."""
        return len(self) > 2 * _SHOWN + 1

    def _cells(self, every: bool = False) -> tuple[list[list[str]], list[bool]]:
        """Texts row by row, the middle of a long table left out, and which columns are numbers."""
        columns, text, cut = self._columns.values(), self._text, self.is_cut and not every
        texts = [
            [*map(text, v[:_SHOWN]), "…", *map(text, v[-_SHOWN:])] if cut else list(map(text, v)) for v in columns
        ]
        return [list(row) for row in zip(*texts, strict=True)], [values.dtype != object for values in columns]

    def _text(self, value: Any) -> str:
        if isinstance(value, np.floating):
            if np.isnan(value):  # nothing to tell
                return "–"
            rounded = f"{value:,.{self._decimals}f}"
            if float(rounded.replace(",", "")) != 0:
                return rounded
            if abs(value) <= _NOTHING:
                return rounded.lstrip("-")
            least = f"{10.0**-self._decimals:.{self._decimals}f}"
            return f"<{least}" if value > 0 else f">-{least}"
        # What stands in a column of objects is a name, also if it is a number.
        return f"{value:,}" if isinstance(value, np.integer) else _spelled(value)

    def text(self, width: int | None = None, *, every: bool = False) -> str:
        """Text of the table; names are cut as far as a `width` asks for, and numbers never.

        Of a long table it has the first and last rows, or `every` row.

        Examples
        --------
        >>> from fairramp import Table
        >>> print(Table({"group": ["a very long name indeed"], "rate": [0.25]}).text(width=22))
        group             rate
        --------------  ------
        a very long n…  0.2500
        """
        for longest in range(_LONGEST, _SHORTEST, -1):
            text = self._lines(longest, every)
            if width is None or max(map(len, text.split("\n"))) <= width:
                break
        return text

    def _lines(self, longest: int, every: bool) -> str:
        rows, numeric = self._cells(every)
        rows = [[_shortened(cell, longest) for cell in row] for row in rows]
        words = ([_shortened(word, longest) for word in self._headings[name]] for name in self._columns)
        header = list(zip_longest(*words, fillvalue=""))
        widths = [max(map(len, column)) for column in zip(*header, *rows, strict=True)]

        def line(cells: Sequence[str]) -> str:
            aligned = zip(cells, widths, numeric, strict=True)
            return "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in aligned).rstrip()

        return "\n".join(map(line, [*header, ["-" * w for w in widths], *rows]))

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        rows, numeric = self._cells()
        align = ["right" if right else "left" for right in numeric]

        def cells(tag: str, texts: list[str]) -> str:
            return "".join(
                f'<{tag} style="text-align:{a}">{html.escape(t)}</{tag}>'
                for t, a in zip(texts, align, strict=True)
            )

        header = cells("th", [" ".join(self._headings[name]) for name in self._columns])
        body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
        return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def notebook_html(*parts: "Table | str") -> str:
    """Tables and sentences for a notebook, one under the other."""
    return "".join(
        part._repr_html_() if isinstance(part, Table) else f"<p>{html.escape(part)}</p>" for part in parts
    )


def percentage(share: float) -> str:
    """A share in percent with all its digits: 99.9% confidence is not 100%."""
    return f"{100 * share:.10g}%"


def name_column(names: Sequence[Any]) -> npt.NDArray[Any]:
    """A column of names, which stay names in text also if they are numbers or tuples."""
    column = np.empty(len(names), dtype=object)
    column[:] = names
    return column


def one_line(text: str) -> str:
    """A text without line ends and other controls, which a terminal might obey."""
    return "".join(c if c.isprintable() else " " for c in text)


def _spelled(label: Any) -> str:
    return one_line(show_label(label))


def with_rows(
    groups: Sequence[tuple[Any, int]],
    most: int = 5,
    form: str = "{} with {}",
    spelled: Callable[[Any], str] = _spelled,
) -> str:
    """Groups and their rows, for a sentence."""
    shown = ", ".join(
        form.format(spelled(label), f"{n:,} row{'' if n == 1 else 's'}") for label, n in groups[:most]
    )
    return shown + (f" and {len(groups) - most:,} more" if len(groups) > most else "")


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _column(values: Any) -> npt.NDArray[Any]:
    values = values if isinstance(values, np.ndarray) else list(values)
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    column = np.array(values) if numbers or isinstance(values, np.ndarray) else name_column(values)
    column.flags.writeable = False
    return column
