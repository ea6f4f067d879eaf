"""Methods of rules for several classes that use the layers above, imported when a method is called."""

from fairramp.rule.verbs import Drawn


class ClassVerbs(Drawn):
    """Methods of a rule for several classes that use the upper layers."""
