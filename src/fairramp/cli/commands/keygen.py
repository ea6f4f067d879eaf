"""`fairramp keygen`: create a key for reproducible decisions."""

from typing import Annotated

from cyclopts import Parameter

from fairramp.cli.options import Quiet
from fairramp.cli.render import Screen


def keygen(
    file: Annotated[str, Parameter(help="File for the key; it must not exist yet.")],
    /,
    *,
    quiet: Quiet = False,
) -> None:
    """Create a secret key, so that the same person always gets the same random draw.

    For example:

    fairramp keygen key.txt
    """
    from fairramp.cli.secret import OWNERS_ONLY, make_key

    make_key(file)
    readers = "which only you can read" if OWNERS_ONLY else "which all users of its folder can read"
    Screen(quiet=quiet).say(
        f"Saved a new key to {file}, {readers}. Keep it secret, and do not lose it: with a "
        "different key, the same people could get different decisions."
    )
