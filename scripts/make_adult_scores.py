"""Compute the demo's scores, `fairramp/datasets/adult_scores.csv.gz`, from UCI Adult.

A seeded random half of the 48,842 rows trains a logistic regression. The other half, which the
classifier never saw, is scored and written: id, score, sex, race, label. The choices:

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

OUTPUT = Path(__file__).resolve().parents[1] / "src/fairramp/datasets/adult_scores.csv.gz"

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


def classifier() -> Pipeline:
    """Return the unfitted logistic regression."""
    numbers = list(range(len(NUMBERS)))
    categories = list(range(len(NUMBERS), len(NUMBERS) + len(CATEGORIES)))
    return make_pipeline(
        make_column_transformer(
            (StandardScaler(), numbers),
            # A country that occurs only in the scored half is encoded as all zeros.
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), categories),
        ),
        LogisticRegression(solver="newton-cholesky", tol=1e-10),
    )


def compress(held_out: NDArray[np.int64], score: NDArray[np.float64], adult: Adult) -> bytes:
    """Return the gzipped table of the held-out rows and their scores."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["id", "score", "sex", "race", "label"])
    for row, value in zip(held_out, score, strict=True):
        written = f"{value:.{DECIMALS}f}"
        writer.writerow([f"A{row + 1:05d}", written, adult.sex[row], adult.race[row], adult.label[row]])
    compressed = io.BytesIO()
    # Not gzip.compress: in some Python versions its header names the operating system.
    with gzip.GzipFile(filename="", mode="wb", fileobj=compressed, mtime=0) as file:
        file.write(table.getvalue().encode("ascii"))
    return compressed.getvalue()


def print_rates(name: str, group: NDArray[np.str_], selected: NDArray[np.bool_]) -> None:
    """Print the selection rate of each group."""
    print(f"selection rate by {name}, cutoff {CUTOFF}:")
    for value in np.unique(group):
        member = group == value
        print(f"  {value:<20}{selected[member].mean():.6f}  of {member.sum():,}")


def main() -> None:
    """Download, train, score, write, and print a summary."""
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

    content = compress(held_out, score, adult)
    OUTPUT.write_bytes(content)

    selected = score >= CUTOFF
    print(f"rows: {len(score):,} scored, {len(train):,} used for training")
    print(f"accuracy: {np.mean(selected == adult.label[held_out]):.6f}")
    print(f"selection rate: {selected.mean():.6f}")
    print_rates("sex", adult.sex[held_out], selected)
    print_rates("race", adult.race[held_out], selected)
    print(f"decisions changed by rounding: {np.sum(selected != (unrounded >= CUTOFF))}")
    print(f"{OUTPUT.name}: {len(content):,} bytes")


if __name__ == "__main__":
    main()
