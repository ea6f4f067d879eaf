"""`fairramp demo`: the whole workflow on scores that come with the package."""

import gzip
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fairramp.cli.render import typed
from fairramp.errors import FairrampError, refuse

#: File that marks a folder as created by the demo.
_MARK = "about-this-folder.txt"
_ABOUT = """Created by `fairramp demo`. Running it again overwrites these files, except the key.

scores.csv      24,421 held-out scores of a logistic regression on UCI Adult (CC BY 4.0,
                https://doi.org/10.24432/C5XW20): does a person earn more than $50,000 a year?
rule.json       the rule: one threshold per group
key.txt         the secret key for random draws; in this demo it protects nothing
decisions.csv   scores.csv with two more columns: probability and decision
frontier.csv    accuracy for each allowed gap
report.html     the report for the people who must approve the rule; open it in a browser
"""


def demo(
    folder: Annotated[str, Parameter(help="Folder for the files of the demo.")] = "fairramp-demo",
    /,
) -> Callable[..., int]:
    """Run the whole workflow on real scores: audit, fit, keygen, apply, frontier and report.

    For example:

    fairramp demo
    """
    return partial(_demonstrate, folder)


def _demonstrate(folder: str, run: Callable[[Sequence[str]], int]) -> int:
    """Run the commands on the included scores; `run` runs one command and returns its exit code."""
    from fairramp.data.files import write_bytes

    place = Path(folder)
    refuse(
        {
            "Cannot use {folder}: it is not a folder": place.exists() and not place.is_dir(),
            "The folder {folder} contains other files; choose another one: fairramp demo FOLDER": place.is_dir()
            and any(place.iterdir())
            and not (place / _MARK).is_file(),
        },
        folder=folder,
    )
    place.mkdir(parents=True, exist_ok=True)
    packed = files("fairramp.datasets").joinpath("adult_scores.csv.gz").read_bytes()
    write_bytes(place / _MARK, _ABOUT.encode(), _MARK)
    write_bytes(place / "scores.csv", gzip.decompress(packed), "scores.csv")
    scores, rule, key = (str(place / name) for name in ("scores.csv", "rule.json", "key.txt"))
    columns = ["--score", "score", "--group", "sex"]
    again = ["--replace"] if Path(rule).exists() else []
    chapters = {
        "How unequal are the classifier's own decisions?": ["audit", scores, *columns, "--label", "label"],
        "Fit a rule that limits the gap between women and men to 2 points.": (
            ["fit", scores, *columns, "--label", "label", "--max-gap", "0.02", "-o", rule, *again]
        ),
        "Create a secret key, so the same person always gets the same decision.": ["keygen", key],
        "Make the decisions.": [
            "apply",
            rule,
            scores,
            "-o",
            str(place / "decisions.csv"),
            "--id",
            "id",
            "--key-file",
            key,
        ],
        "How much accuracy does each gap cost?": [
            *("frontier", scores, *columns, "--label", "label", "-o", str(place / "frontier.csv")),
            *(part for gap in ("0", "0.02", "0.05", "0.1", "0.15") for part in ("--max-gap", gap)),
        ],
        "Write the report for the people who must approve the rule.": (
            ["report", rule, scores, "--label", "label", "-o", str(place / "report.html")]
        ),
    }
    for title, arguments in chapters.items():
        print(f"{title}\n\n{typed(arguments, '$ ')}\n", flush=True)
        if arguments[0] == "keygen" and Path(key).exists():
            print("(The key from the last run is kept.)")
        elif arguments[0] == "report" and (missing := _missing_extra()):
            print(f"(Skipped: {missing})")
        elif code := run(arguments):
            return code
        print()
    print(f"All files are in {folder}. Next, your own data: fairramp audit --help")
    return 0


def _missing_extra() -> str:
    """Why a report cannot be written, and how to install what it needs; empty if nothing is missing."""
    try:
        import_module("fairramp.show.report.page")
    except FairrampError as error:
        return str(error)
    return ""
