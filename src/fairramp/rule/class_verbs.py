"""Methods of rules for several classes that use the layers above, imported when a method is called."""

from typing import TYPE_CHECKING, Any

from fairramp.errors import InputError
from fairramp.rule.verbs import Drawn

if TYPE_CHECKING:
    from fairramp.measure.certificate import Certificate
    from fairramp.measure.drift import Check


class ClassVerbs(Drawn):
    """Methods of a rule for several classes that use the upper layers."""

    def certificate(
        self: Any,
        confidence: float = 0.95,
        *,
        probabilities: Any = None,
        groups: Any = None,
        strata: Any = None,
        group_probabilities: Any = None,
        sample_weight: Any = None,
    ) -> "Certificate":
        """Bound the gap of every class in the population that fresh rows came from; see `fairramp.Certificate`.

        The limits need fresh rows: offsets depend on all fit rows at once, so these say too little about new
        people.

        Parameters
        ----------
        confidence : float, default 0.95
            Confidence level of the limits.
        probabilities, groups, strata, sample_weight
            Fresh rows, which the rule was not fitted on, with their true groups.
        group_probabilities : GroupProbabilities, optional
            What the rule decides by, if it uses group probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> import fairramp
        >>> rng = np.random.default_rng(0)
        >>> sex, p = rng.choice(["F", "M"], 8000), rng.dirichlet([2, 2, 2], 8000)
        >>> p[sex == "M"] = rng.dirichlet([1, 2, 3], (sex == "M").sum())
        >>> rule = fairramp.fit_class_rule(p[:4000], sex[:4000], max_gap=0.02)
        >>> found = rule.certificate(probabilities=p[4000:], groups=sex[4000:])
        >>> print(found.limits())
        estimated limit 7.8 points, proven limit 13.1 points
        """
        for name, given in (("probabilities", probabilities), ("groups", groups)):
            if given is None:
                raise InputError(
                    "The certificate of a rule for several classes needs fresh rows",
                    remedy="pass {" + name + "} of rows that the rule was not fitted on",
                )
        from fairramp.measure.class_fresh import certify_classes_on

        return certify_classes_on(
            self,
            confidence,
            probabilities,
            groups,
            strata=strata,
            group_probabilities=group_probabilities,
            sample_weight=sample_weight,
        )

    def check(
        self: Any,
        probabilities: Any,
        groups: Any,
        *,
        strata: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
        group_probabilities: Any = None,
    ) -> "Check":
        """Check once, on new rows, whether the gap of a class exceeds the rule's `max_gap`; see `fairramp.Check`.

        Parameters
        ----------
        probabilities, groups, strata, sample_weight
            New rows, with their true groups.
        confidence : float, default 0.95
            Confidence level of the intervals.
        group_probabilities : GroupProbabilities, optional
            What the rule decides by, if it uses group probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> import fairramp
        >>> rng = np.random.default_rng(0)
        >>> sex, p = rng.choice(["F", "M"], 8000), rng.dirichlet([2, 2, 2], 8000)
        >>> p[sex == "M"] = rng.dirichlet([1, 2, 3], (sex == "M").sum())
        >>> rule = fairramp.fit_class_rule(p[:4000], sex[:4000], max_gap=0.02)
        >>> rule.check(p[4000:], sex[4000:]).has_drifted
        False
        """
        from fairramp.measure.class_drift import check_classes

        return check_classes(
            self,
            probabilities,
            groups,
            strata=strata,
            sample_weight=sample_weight,
            confidence=confidence,
            group_probabilities=group_probabilities,
        )
