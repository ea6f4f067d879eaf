"""`fairramp demo`: the whole story on scores that come with the package."""

import gzip
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fairramp.cli.render import refuse, typed

#: The file that marks a folder as ours.
_MARK = "about-this-folder.txt"
_ABOUT = """Made by `fairramp demo`, which may be run again and then overwrites the files here.

scores.csv      24,421 held-out scores of a logistic regression on UCI Adult (CC BY 4.0,
                https://doi.org/10.24432/C5XW20): does a person earn more than $50,000 a year?
rule.json       one threshold per group
key.txt         the secret key of the draws; here it guards nothing
decisions.csv   scores.csv with two more columns: probability and decision
frontier.csv    what accuracy each gap costs
"""


def demo(
    folder: Annotated[str, Parameter(help="Where its files go.")] = "fairramp-demo",
    /,
) -> Callable[..., int]:
    """Tell the whole story on real scores: audit, fit, decisions, frontier.

    For example:

    fairramp demo
    """
    return partial(_tell, folder)


def _tell(folder: str, run: Callable[[Sequence[str]], int]) -> int:
    """Run every command on the shipped scores, in a folder of its own; `run` gives the exit code of one."""
    from fairramp.data.files import write_bytes

    place = Path(folder)
    refuse(
        {
            "Cannot use {folder}: it is not a folder": place.exists() and not place.is_dir(),
            "The folder {folder} holds files of yours; pass another name: fairramp demo NAME": place.is_dir()
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
    chapters = {
        "How unequal are the classifier's own decisions?": ["audit", scores, *columns, "--label", "label"],
        "Let the rates of women and men differ by at most 0.02.": (
            ["fit", scores, *columns, "--label", "label", "--max-gap", "0.02", "-o", rule]
        ),
        "A secret key, so that the same person always gets the same answer.": ["keygen", key],
        "Decide.": ["apply", rule, scores, "-o", str(place / "decisions.csv"), "--id", "id", "--key-file", key],
        "What does each gap cost?": [
            *("frontier", scores, *columns, "--label", "label", "-o", str(place / "frontier.csv")),
            *(part for gap in ("0", "0.02", "0.05", "0.1", "0.15") for part in ("--max-gap", gap)),
        ],
    }
    for title, arguments in chapters.items():
        print(f"{title}\n\n{typed(arguments, '$ ')}\n", flush=True)
        if arguments[0] == "keygen" and Path(key).exists():
            print("(the key of the last time is kept)")
        elif code := run(arguments):
            return code
        print()
    print(f"All files are in {folder}. Your own come next: fairramp audit --help")
    return 0
