"""`fairramp demo`."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from cyclopts import Parameter

__all__ = ["demo"]


def demo(
    folder: Annotated[str, Parameter(help="Where its files go.")] = "fairramp-demo",
    /,
) -> Callable[..., int]:
    """Tell the whole story on real scores: audit, fit, decisions, frontier.

    For example:

    fairramp demo
    """
    from fairramp.cli.story import tell

    return partial(tell, folder)
