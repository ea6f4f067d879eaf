"""Compute the datasets of the package, in `fairramp/datasets`, from UCI Adult.

- `adult_scores.csv.gz`: a seeded random half of the 48,842 rows trains a logistic regression of the
  income. The other half, which the classifier never saw, is scored and written: id, score, sex, race,
  label.
- `adult_hours.csv.gz`: the same half trains a logistic regression of the hours worked per week in three
  classes, without the hours as a feature. Every second row of the other half is written: id, the
  probability of each class in units of 0.0001 that sum to 10,000, sex, race, label.

The choices:

- Sex and race are not features, because many laws forbid decisions based on them. They are written
  next to the score because fairness is measured with them. `relationship` is a feature and
  distinguishes husbands from wives: dropping sex does not hide it, as the selection rates show.
- `fnlwgt` is not a feature: it is the number of people that a survey row represents.
- A missing value ("?") is a category of its own, so all rows are used.
- An id is "A" and the row number, zero-padded and starting at 1, in `adult.data` followed by
  `adult.test`. Rows keep this order.
- Newton's method runs until the gradient is rounding noise, so the six decimals of a score do not
  depend on the machine. The gzip header has no time and no name, so two runs give the same bytes
  (a different zlib may compress the same table to different bytes).

Needs fairramp, scikit-learn and pip. Run it as `make data`.

References
----------
B. Becker and R. Kohavi (1996). Adult. UCI Machine Learning Repository, doi 10.24432/C5XW20,
CC BY 4.0.
"""

import csv
import gzip
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from reproduction.uci import Adult, load_adult
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairramp.errors import FairrampError

DATASETS = Path(__file__).resolve().parents[1] / "src/fairramp/datasets"

NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
CATEGORIES = [
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "native-country",
]

SEED = 0
DECIMALS = 6
CUTOFF = 0.5
#: The column that is cut into classes, and the lowest number of hours of each class but the first.
HOURS, CUTS = "hours-per-week", (40.0, 41.0)
#: Sum of the probabilities of a row, in their units.
UNITS = 10_000


def classifier(n_numbers: int = len(NUMBERS)) -> Pipeline:
    """Return the unfitted logistic regression of this many numeric columns and the categories."""
    numbers = list(range(n_numbers))
    categories = list(range(n_numbers, n_numbers + len(CATEGORIES)))
    return make_pipeline(
        make_column_transformer(
            (StandardScaler(), numbers),
            # A country that occurs only in the scored half is encoded as all zeros.
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), categories),
        ),
        LogisticRegression(solver="newton-cholesky", tol=1e-10),
    )


def compress(header: list[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return a gzipped table."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    compressed = io.BytesIO()
    # Not gzip.compress: in some Python versions its header names the operating system.
    with gzip.GzipFile(filename="", mode="wb", fileobj=compressed, mtime=0) as file:
        file.write(table.getvalue().encode("ascii"))
    return compressed.getvalue()


def in_units(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round the probabilities of each row so that they sum to UNITS: the largest remainders are rounded up."""
    exact = probabilities * UNITS
    whole = np.floor(exact).astype(np.int64)
    missing = UNITS - whole.sum(axis=1)
    rank = np.argsort(np.argsort(whole - exact, axis=1, kind="stable"), axis=1)
    return whole + (rank < missing[:, None])


def hours(adult: Adult, train: NDArray[np.int64], held_out: NDArray[np.int64]) -> bytes:
    """Train the classifier of hours, print its rates, and return the table."""
    features = adult.select([name for name in NUMBERS if name != HOURS] + CATEGORIES)
    label = np.digitize(adult.select([HOURS])[:, 0].astype(np.float64), CUTS)
    model = classifier(len(NUMBERS) - 1).fit(features[train], label[train])
    units = in_units(model.predict_proba(features[held_out]))
    own = units.argmax(axis=1)
    print(f"hours: {len(held_out):,} rows, accuracy {np.mean(own == label[held_out]):.6f}")
    for c in range(units.shape[1]):
        rates = [f"{sex} {np.mean(own[adult.sex[held_out] == sex] == c):.6f}" for sex in ("Female", "Male")]
        print(f"  class {c}: {', '.join(rates)}")
    rows = zip(held_out.tolist(), units.tolist(), strict=True)
    return compress(
        ["id", *(f"class_{c}" for c in range(units.shape[1])), "sex", "race", "label"],
        ([f"A{row + 1:05d}", *one, adult.sex[row], adult.race[row], label[row]] for row, one in rows),
    )


def print_rates(name: str, group: NDArray[np.str_], selected: NDArray[np.bool_]) -> None:
    """Print the selection rate of each group."""
    print(f"selection rate by {name}, cutoff {CUTOFF}:")
    for value in np.unique(group):
        member = group == value
        print(f"  {value:<20}{selected[member].mean():.6f}  of {member.sum():,}")


def main() -> None:
    """Download, train, score, write both tables, and print a summary."""
    try:
        adult = load_adult()
    except FairrampError as error:
        sys.exit(f"{error} Nothing was written.")
    features = adult.select(NUMBERS + CATEGORIES)
    rows = np.arange(len(adult.label))
    halves = train_test_split(rows, train_size=0.5, random_state=SEED)
    train, held_out = (np.sort(half) for half in halves)
    model = classifier().fit(features[train], adult.label[train])
    unrounded = model.predict_proba(features[held_out])[:, 1]
    score = np.round(unrounded, DECIMALS)

    people = zip(held_out.tolist(), score.tolist(), strict=True)
    content = compress(
        ["id", "score", "sex", "race", "label"],
        ([f"A{i + 1:05d}", f"{x:.{DECIMALS}f}", adult.sex[i], adult.race[i], adult.label[i]] for i, x in people),
    )
    more = hours(adult, train, held_out[::2])
    for name, written in (("adult_scores.csv.gz", content), ("adult_hours.csv.gz", more)):
        (DATASETS / name).write_bytes(written)
        print(f"{name}: {len(written):,} bytes")

    selected = score >= CUTOFF
    print(f"rows: {len(score):,} scored, {len(train):,} used for training")
    print(f"accuracy: {np.mean(selected == adult.label[held_out]):.6f}")
    print(f"selection rate: {selected.mean():.6f}")
    print_rates("sex", adult.sex[held_out], selected)
    print_rates("race", adult.race[held_out], selected)
    print(f"decisions changed by rounding: {np.sum(selected != (unrounded >= CUTOFF))}")


if __name__ == "__main__":
    main()
