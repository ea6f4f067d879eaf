"""Real datasets of scores, shipped with the package: no download, no training.

`load_adult_scores` returns a classifier's scores for 24,421 people it was not trained on, with their sex, race
and true label. `load_adult_hours` returns the scores of three classes for 12,211 of them.
`scripts/make_adult_scores.py` made the files; their license is in `LICENSE-adult.md`.
"""

import csv
import gzip
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["AdultHours", "AdultScores", "load_adult_hours", "load_adult_scores"]

#: Hours worked per week: the classes of `load_adult_hours`.
_HOURS = ("under 40", "40", "over 40")
_Dataset = TypeVar("_Dataset")


@dataclass(frozen=True, eq=False)
class AdultScores:
    """A classifier's scores for people in UCI Adult, with their groups and labels.

    All arrays are read-only and have shape (24421,); entry `i` of each belongs to the same person.

    Attributes
    ----------
    id : ndarray of str
        The person, such as ``"A00017"``; unique and increasing. The number is the row's position, counted
        from 1, in UCI's `adult.data` followed by `adult.test`.
    score : ndarray of float64
        Estimated probability of an income above 50,000 dollars a year, in [0, 1], rounded to six decimals.
    sex : ndarray of str
        ``"Female"`` or ``"Male"``.
    race : ndarray of str
        ``"Amer-Indian-Eskimo"``, ``"Asian-Pac-Islander"``, ``"Black"``, ``"Other"`` or ``"White"``.
    label : ndarray of int64
        1 if the income was above 50,000 dollars a year, else 0.

    Examples
    --------
    >>> from fairramp.datasets import load_adult_scores
    >>> adult = load_adult_scores()
    >>> adult.id[0].item(), adult.score[0].item(), adult.sex[0].item(), adult.label[0].item()
    ('A00004', 0.077442, 'Male', 0)
    """

    id: NDArray[np.str_]
    score: NDArray[np.float64]
    sex: NDArray[np.str_]
    race: NDArray[np.str_]
    label: NDArray[np.int64]


def load_adult_scores() -> AdultScores:
    """Load a classifier's held-out scores for 24,421 people in UCI Adult.

    A logistic regression was trained on a random half of the 48,842 rows; these are its scores for the other
    half. Its features exclude sex, race and the survey weight `fnlwgt`. They include `relationship`, which
    distinguishes husbands from wives.

    Returns
    -------
    AdultScores
        The arrays `id`, `score`, `sex`, `race` and `label`.

    Notes
    -----
    The file is derived from UCI Adult [1]_, licensed under CC BY 4.0
    (https://creativecommons.org/licenses/by/4.0/): cite it where you show these data. The data come from a 1994
    census survey, so use them to try out methods, not to draw conclusions about the present.

    References
    ----------
    .. [1] B. Becker and R. Kohavi (1996). Adult. UCI Machine Learning Repository.
       https://doi.org/10.24432/C5XW20

    Examples
    --------
    The classifier never saw anyone's sex, yet its selection rate for men is three times as high as for women:

    >>> from fairramp.datasets import load_adult_scores
    >>> adult = load_adult_scores()
    >>> selected = adult.score >= 0.5
    >>> for sex in ["Female", "Male"]:
    ...     print(f"{sex:<6} {selected[adult.sex == sex].mean():.3f}")
    Female 0.077
    Male   0.245
    """
    column = _columns("adult_scores.csv.gz")
    return _read_only(
        AdultScores(
            id=np.array(column["id"]),
            score=np.array(column["score"], dtype=np.float64),
            sex=np.array(column["sex"]),
            race=np.array(column["race"]),
            label=np.array(column["label"], dtype=np.int64),
        )
    )


@dataclass(frozen=True, eq=False)
class AdultHours:
    """A classifier's probabilities of three classes for people in UCI Adult, with their groups and labels.

    All arrays are read-only and have 12,211 rows; row `i` of each belongs to the same person.

    Attributes
    ----------
    id : ndarray of str
        The person, as in `AdultScores`.
    probabilities : ndarray of float64, shape (12211, 3)
        Estimated probability of each class: how many hours a week the person works.
    classes : tuple of str
        ``"under 40"``, ``"40"`` and ``"over 40"``, in the order of the columns of `probabilities`.
    sex, race : ndarray of str
        As in `AdultScores`.
    label : ndarray of str
        The true class.

    Examples
    --------
    >>> from fairramp.datasets import load_adult_hours
    >>> hours = load_adult_hours()
    >>> hours.probabilities[0].tolist(), hours.sex[0].item(), hours.label[0].item()
    ([0.2908, 0.5575, 0.1517], 'Male', '40')
    """

    id: NDArray[np.str_]
    probabilities: NDArray[np.float64]
    classes: tuple[str, ...]
    sex: NDArray[np.str_]
    race: NDArray[np.str_]
    label: NDArray[np.str_]


def load_adult_hours() -> AdultHours:
    """Load a classifier's held-out probabilities of three classes for 12,211 people in UCI Adult.

    A logistic regression of the hours worked per week was trained on the same rows as that of
    `load_adult_scores`, and with the same features, except for the hours. These are its probabilities for half of
    the people in `load_adult_scores`, rounded to four decimals.

    Returns
    -------
    AdultHours
        The arrays `id`, `probabilities`, `sex`, `race` and `label`, and the `classes`.

    Notes
    -----
    See `load_adult_scores` for the license and the source.

    Examples
    --------
    The classifier never saw anyone's sex, yet it predicts long hours for men far more often than for women:

    >>> from fairramp.datasets import load_adult_hours
    >>> hours = load_adult_hours()
    >>> long = hours.probabilities.argmax(axis=1) == hours.classes.index("over 40")
    >>> for sex in ["Female", "Male"]:
    ...     print(f"{sex:<6} {long[hours.sex == sex].mean():.3f}")
    Female 0.082
    Male   0.311
    """
    column = _columns("adult_hours.csv.gz")
    units = np.array([column[f"class_{c}"] for c in range(len(_HOURS))], dtype=np.float64)
    return _read_only(
        AdultHours(
            id=np.array(column["id"]),
            probabilities=np.ascontiguousarray(units.T / 10_000),
            classes=_HOURS,
            sex=np.array(column["sex"]),
            race=np.array(column["race"]),
            label=np.array(_HOURS)[np.array(column["label"], dtype=np.int64)],
        )
    )


def _columns(name: str) -> dict[str, tuple[str, ...]]:
    """The columns of a packaged table, as text."""
    packaged = files(__name__).joinpath(name)
    with packaged.open("rb") as file, gzip.open(file, "rt", encoding="ascii", newline="") as table:
        header, *rows = csv.reader(table)
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def _read_only(dataset: _Dataset) -> _Dataset:
    """The dataset, whose arrays cannot be changed any more."""
    for values in vars(dataset).values():
        if isinstance(values, np.ndarray):
            values.setflags(write=False)
    return dataset
