"""The demo's scores are those of `scripts/make_adult_scores.py` and load without heavy imports."""

import dataclasses
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

from fairramp.datasets import AdultScores, load_adult_hours, load_adult_scores

FIELDS = ["id", "score", "sex", "race", "label"]

# People, and people selected at cutoff 0.5, as the script reported them.
SEX = {"Female": (8_094, 625), "Male": (16_327, 4_008)}
RACE = {
    "Amer-Indian-Eskimo": (239, 28),
    "Asian-Pac-Islander": (762, 176),
    "Black": (2_348, 215),
    "Other": (187, 14),
    "White": (20_885, 4_200),
}


@pytest.fixture(scope="module")
def adult() -> AdultScores:
    return load_adult_scores()


def test_fields_are_one_dimensional_arrays_of_equal_length(adult: AdultScores) -> None:
    assert [field.name for field in dataclasses.fields(adult)] == FIELDS
    assert {getattr(adult, name).shape for name in FIELDS} == {(24_421,)}
    assert [getattr(adult, name).dtype.kind for name in FIELDS] == ["U", "f", "U", "U", "i"]
    assert adult.score.dtype == np.float64
    assert adult.label.dtype == np.int64


def test_ids_are_distinct_and_in_the_order_of_adult(adult: AdultScores) -> None:
    place = np.array([int(name.removeprefix("A")) for name in adult.id])
    assert all(name == f"A{number:05d}" for name, number in zip(adult.id, place, strict=True))
    assert np.all(np.diff(place) > 0)
    assert place[0] >= 1
    assert place[-1] <= 48_842


def test_scores_are_probabilities_with_six_decimals(adult: AdultScores) -> None:
    assert adult.score.min() >= 0
    assert adult.score.max() <= 1
    np.testing.assert_array_equal(adult.score, np.round(adult.score, 6))
    assert len(np.unique(adult.score)) == 19_825


def test_ids_match_the_original_rows(adult: AdultScores) -> None:
    # Copied by hand from adult.data (the first two) and adult.test.
    known = [
        ("A00005", "Female", "Black", 0),
        ("A00008", "Male", "White", 1),
        ("A32568", "Male", "Black", 0),
        ("A48842", "Male", "White", 1),
    ]
    for name, sex, race, label in known:
        (row,) = np.flatnonzero(adult.id == name)
        assert (adult.sex[row], adult.race[row], adult.label[row]) == (sex, race, label)


def test_labels_are_zero_or_one_with_the_recorded_counts(adult: AdultScores) -> None:
    assert np.unique(adult.label).tolist() == [0, 1]
    assert adult.label.sum() == 5_781


def test_accuracy_at_one_half_matches_the_record(adult: AdultScores) -> None:
    correct = (adult.score >= 0.5) == adult.label
    assert correct.sum() == 20_843
    assert correct.mean() == pytest.approx(0.853487, abs=5e-7)


@pytest.mark.parametrize(("name", "recorded"), [("sex", SEX), ("race", RACE)])
def test_selection_by_group_at_one_half_matches_the_record(
    adult: AdultScores, name: str, recorded: dict[str, tuple[int, int]]
) -> None:
    group = getattr(adult, name)
    selected = adult.score >= 0.5
    measured = {
        str(value): (int(np.sum(group == value)), int(np.sum(selected[group == value])))
        for value in np.unique(group)
    }
    assert measured == recorded


@pytest.mark.parametrize("name", FIELDS)
def test_arrays_are_read_only(adult: AdultScores, name: str) -> None:
    values = getattr(adult, name)
    with pytest.raises(ValueError, match="read-only"):
        values[0] = values[1]


def test_fields_cannot_be_replaced(adult: AdultScores) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        adult.score = adult.score  # type: ignore[misc]


@pytest.mark.parametrize("name", ["adult_scores.csv.gz", "adult_hours.csv.gz"])
def test_the_packaged_files_are_small_and_have_no_timestamp_or_file_name(name: str) -> None:
    content = files("fairramp.datasets").joinpath(name).read_bytes()
    assert len(content) < 400_000
    flags, time = content[3], content[4:8]
    assert flags == 0
    assert time == bytes(4)


def test_hours_are_probabilities_of_three_classes_of_people_in_the_scores(adult: AdultScores) -> None:
    hours = load_adult_hours()
    assert hours.probabilities.shape == (12_211, 3)
    assert hours.probabilities.min() >= 0
    assert np.abs(hours.probabilities.sum(axis=1) - 1).max() < 1e-12
    rows = np.searchsorted(adult.id, hours.id)
    for name in ("id", "sex", "race"):
        assert (getattr(adult, name)[rows] == getattr(hours, name)).all()
    own = np.array(hours.classes)[hours.probabilities.argmax(axis=1)]
    # As the script reported them.
    assert np.mean(own == hours.label) == pytest.approx(0.565965, abs=5e-7)
    assert np.mean(own[hours.sex == "Female"] == "over 40") == pytest.approx(0.081552, abs=5e-7)
    assert np.mean(own[hours.sex == "Male"] == "over 40") == pytest.approx(0.310565, abs=5e-7)
    for values in (hours.probabilities, hours.label):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = values[1]


def test_the_license_file_names_the_source() -> None:
    license = files("fairramp.datasets").joinpath("LICENSE-adult.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in license
    assert "10.24432/C5XW20" in license


def test_loading_imports_neither_scikit_learn_nor_pandas() -> None:
    program = (
        "import sys\n"
        "from fairramp.datasets import load_adult_scores\n"
        "load_adult_scores()\n"
        "print(sorted({'sklearn', 'pandas'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
