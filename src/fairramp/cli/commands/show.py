"""`fairramp show`."""

from typing import Annotated

from cyclopts import Parameter

from fairramp.cli import steps
from fairramp.cli.options import Confidence, Json, Quiet, RuleFile

__all__ = ["show"]


def show(
    rule: RuleFile,
    /,
    *,
    every: Annotated[
        bool,
        Parameter(name="--all", help="Show all groups, also if they are many.", negative="", show_default=False),
    ] = False,
    confidence: Confidence = 0.95,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show a saved rule: columns, thresholds, rates before and after, and what is certified.

    For example:

    fairramp show rule.json
    """
    from fairramp.cli import showing
    from fairramp.cli.render import Screen

    screen = Screen(json=json, quiet=quiet)
    known = steps.load_rule(rule)
    found = showing.certificate_of(known, confidence)
    showing.show(screen, known, found, every=every)
    screen.result(steps.stamp("show") | {"rule": steps.dash(rule), **showing.content(known, found)})
