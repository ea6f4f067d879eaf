"""`fairramp show`: describe a rule in words."""

from fairramp.cli.options import (
    All,
    Confidence,
    Json,
    Quiet,
    RuleFile,
)
from fairramp.cli.render import Screen


def show(
    rule: RuleFile,
    /,
    *,
    every: All = False,
    confidence: Confidence = 0.95,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show a saved rule: columns, thresholds, rates before and after, and limits on the gap.

    For example:

    fairramp show rule.json
    """
    from fairramp.cli import naming, texts
    from fairramp.rule.class_rule import ClassRule
    from fairramp.show.describe import certificate_of, description

    screen = Screen(json=json, quiet=quiet)
    known = naming.load_any_rule(rule)
    if isinstance(known, ClassRule):
        from fairramp.cli import class_measures

        return class_measures.show(screen, known, rule, every=every)
    found = certificate_of(known, confidence)
    texts.show(screen, known, found, every=every)
    screen.result("show", rule=rule, **description(known, found))
    return None
