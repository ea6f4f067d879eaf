"""`fairramp demo`."""

from typing import Annotated

from cyclopts import Parameter

__all__ = ["demo"]


def demo(
    folder: Annotated[str, Parameter(help="Where its files go.")] = "fairramp-demo",
    /,
) -> None:
    """Tell the whole story on real scores: audit, fit, decisions, frontier.

    For example:

    fairramp demo
    """
    from fairramp.cli.story import tell

    tell(folder)
