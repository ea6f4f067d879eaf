"""`fairramp keygen`: a key for decisions that repeat."""

from typing import Annotated

from cyclopts import Parameter

from fairramp.cli.options import Quiet
from fairramp.cli.render import Screen


def keygen(
    file: Annotated[str, Parameter(help="Where the key goes; it must not exist.")],
    /,
    *,
    quiet: Quiet = False,
) -> None:
    """Make a secret key for decisions that repeat, readable by you alone.

    For example:

    fairramp keygen key.txt
    """
    from fairramp.cli.secret import make_key

    make_key(file)
    Screen(quiet=quiet).say(
        f"A new key is in {file}, which only you can read. Keep it secret and keep it: with another key the same "
        "people get other answers."
    )
