"""ClassAudit: the result of an audit of several classes. `measure.class_audit` measures it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairramp.core.cells import cell_columns, largest_gap, stratum_index
from fairramp.core.checks import check_option
from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.events import ClassEvent, Event, class_event
from fairramp.core.headline import joined, judged, too_small, with_small
from fairramp.core.labels import Label
from fairramp.core.table import Table, name_column, named, printed
from fairramp.core.words import NOTHING, percent, plain, points, with_interval
from fairramp.errors import InputError
from fairramp.measure.comparison import comparison, without_rows
from fairramp.measure.group_model import GroupModel
from fairramp.measure.means import Tally
from fairramp.measure.rates import GroupRates, group_rates
from fairramp.rule.verbs import Drawn


@dataclass(frozen=True)
class ClassSelection(GroupRates):
    """Rates and errors of one set of decisions between several classes.

    `rate`, `lower`, `upper` and `rows` have the rates of the first class in all groups, followed by those of the
    second class, and so on. `gap` is the largest gap of a class, and `ratio` the smallest ratio of a class; their
    intervals hold for all classes together. See `GroupRates`.

    Attributes
    ----------
    rates : dict of str to GroupRates
        The same for each class, by its name; the intervals of each hold for that class alone.
    accuracy : tuple of float, or None
        Accuracy in each group; None without labels.
    overall_accuracy : float or None
        Accuracy over all rows; None without labels.
    confusion : tuple, or None
        For each group and each true class, the share of its rows that get each class. None without labels, and
        NaN where a group has no row of that true class.

    Examples
    --------
    >>> import fairramp
    >>> found = fairramp.audit_classes(["a", "b", "b", "b"], ["F", "F", "M", "M"])
    >>> found.before.rates["a"].rate
    (0.5, 0.0)
    """

    rates: dict[str, GroupRates]
    accuracy: tuple[float, ...] | None = None
    overall_accuracy: float | None = None
    confusion: tuple[tuple[tuple[float, ...], ...], ...] | None = None


def class_selection(
    tallies: Sequence[Tally],
    confusion: Floats | None,
    event: Event,
    confidence: float,
    strata: Integers | None,
) -> ClassSelection:
    """Rates and gaps of the classes and, with labels, the errors of the decisions."""
    errors: dict[str, Any] = {}
    if confusion is not None:
        right, total = np.trace(confusion, axis1=1, axis2=2), confusion.sum(axis=(1, 2))
        with np.errstate(invalid="ignore"):
            shares = np.clip(confusion / confusion.sum(axis=2, keepdims=True), 0.0, 1.0)
        errors = {
            "accuracy": tuple((right / total).tolist()),
            "overall_accuracy": float(right.sum() / total.sum()),
            "confusion": tuple(tuple(map(tuple, group)) for group in shares.tolist()),
        }
    each = {
        part.name: group_rates([tally], confidence, strata)
        for part, tally in zip(event.parts, tallies, strict=True)
    }
    return ClassSelection(**vars(group_rates(tallies, confidence, strata)), rates=each, **errors)


@dataclass(frozen=True, repr=False)
class ClassAudit(Drawn):
    """Result of `audit_classes`.

    Attributes
    ----------
    groups, classes : tuple
        Labels of the groups, and of the classes.
    rows : tuple of int
        Number of rows in each group.
    before : ClassSelection
        The classifier's own decisions.
    after : ClassSelection or None
        The rule's decisions; None without a rule.
    rows_by_label : tuple of tuple of int, or None
        For each group, the number of rows of each true class; None without labels.
    changed : tuple of float, or None
        Expected share of each group whose decision the rule changes; None without a rule.
    overall_changed, randomized : float or None
        Expected share of all rows whose decision the rule changes, and share decided at random; None without a
        rule.
    confidence : float
        Confidence level of all intervals.
    within_strata : bool
        Whether groups were compared within strata. If so, `groups` holds (stratum, group) pairs.
    weighted : bool
        Whether rows had weights. If so, intervals use effective rows and are less accurate.
    of_decisions : bool
        Whether these are decisions, not probabilities, and no rule was given.
    group_model : GroupModel or None
        How well group probabilities agree with the true groups, for a rule that uses them.
    names : dict of str to str
        Headings of the columns of strata and groups, if the data had names.
    missing : tuple of label
        Groups of the rule without a row, which are not measured; empty without a rule.

    Examples
    --------
    >>> import numpy as np
    >>> import fairramp
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["F", "M"], 5000)
    >>> p = rng.dirichlet([2, 2, 2], 5000)
    >>> p[sex == "M"] = rng.dirichlet([1, 2, 3], (sex == "M").sum())
    >>> rule = fairramp.fit_class_rule(p, sex, classes=["low", "mid", "high"], max_gap=0.02)
    >>> found = fairramp.audit_classes(p, sex, rule=rule)
    >>> round(found.gap_before, 3), round(found.gap_after, 3)
    (0.306, 0.02)
    """

    groups: tuple[Label, ...]
    classes: tuple[Label, ...]
    rows: tuple[int, ...]
    before: ClassSelection
    after: ClassSelection | None = None
    rows_by_label: tuple[tuple[int, ...], ...] | None = None
    changed: tuple[float, ...] | None = None
    overall_changed: float | None = None
    randomized: float | None = None
    confidence: float = 0.95
    within_strata: bool = False
    weighted: bool = False
    of_decisions: bool = False
    group_model: GroupModel | None = None
    names: dict[str, str] | None = None
    missing: tuple[Label, ...] = ()

    @property
    def event(self) -> ClassEvent:
        """The classes, as the rates that are compared."""
        return class_event(self.classes)

    @property
    def selection(self) -> ClassSelection:
        """The rule's decisions if there is a rule, otherwise the classifier's own."""
        return self.after or self.before

    @property
    def gap(self) -> float:
        """Largest gap of a class: after the rule if there is one, otherwise before."""
        return self.selection.gap

    @property
    def gap_before(self) -> float:
        """Largest gap of a class under the classifier's own decisions."""
        return self.before.gap

    @property
    def gap_after(self) -> float | None:
        """Largest gap of a class under the rule; None without a rule."""
        return None if self.after is None else self.after.gap

    @property
    def accuracy_before(self) -> float | None:
        """Accuracy of the classifier's own decisions; None without labels."""
        return self.before.overall_accuracy

    @property
    def accuracy_after(self) -> float | None:
        """Accuracy of the rule; None without a rule or labels."""
        return None if self.after is None else self.after.overall_accuracy

    def worst_class(self, decisions: ClassSelection) -> int:
        """Index of the class with the largest gap.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit_classes(["a", "b", "c", "b"], ["F", "F", "M", "M"])
        >>> found.worst_class(found.before)
        0
        """
        return (self._worst(decisions) or [0])[0]

    def _worst(self, decisions: ClassSelection, keep: Booleans | None = None) -> list[int]:
        """The classes with the largest gap: several may be at the allowed gap, up to rounding."""
        gaps = self._gaps(decisions, keep)
        return [c for c, gap in enumerate(gaps) if gap >= max(gaps) - NOTHING]

    def _gaps(self, decisions: ClassSelection, keep: Booleans | None = None) -> list[float]:
        """The gap of each class, between all groups or those to keep."""
        if keep is None:
            return [one.gap for one in decisions.rates.values()]
        strata = np.array(stratum_index(self.groups))[keep] if self.within_strata else None
        return [largest_gap(np.array(one.rate)[keep], strata) for one in decisions.rates.values()]

    def _largest(self, decisions: ClassSelection, keep: Booleans | None = None) -> str:
        """The largest gap and its classes; only the gap between all groups has confidence limits."""
        worst = self._worst(decisions, keep)
        if not worst:
            return ""
        shown = points(self._gaps(decisions, keep)[worst[0]])
        if keep is None:
            shown = with_interval(shown, *map(points, decisions.gap_interval))
        return f"{shown}, class{'es' * (len(worst) > 1)} {joined([self.event.parts[c].short for c in worst])}"

    def sentences(self) -> list[str]:
        """Sentences on the largest gap, before and after, on changed decisions, accuracy and weights.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit_classes(["a", "b", "b", "b"] * 50, ["F", "F", "M", "M"] * 50)
        >>> for sentence in found.sentences():
        ...     print(sentence)
        Largest gap: 50.0 points [37.8, 59.6], classes a and b.
        Rate of class a: F 50.0% of 100 rows; 0 of 100 rows in group M.
        """
        found, sides = [], [(self.before, " before"), (self.after, " after")]
        known = [(one, when if self.after else "") for one, when in sides if one is not None]
        strata = stratum_index(self.groups) if self.within_strata else None
        enough = judged(self.rows, strata)
        keep = None if enough.all() else enough
        for one, when in known:
            if one.gap == one.gap:
                found.append(f"Largest gap{when}: {self._largest(one, keep)}.")
            if one.gap == one.gap and keep is not None:
                found.append(f"{with_small(enough)}: {self._largest(one)}.")
        names = named(self.groups)
        for one, when in known:
            event = self.event.parts[(self._worst(one, keep) or [0])[0]]
            rates = one.rates[event.name]
            found.append(comparison(rates.rate, names, strata, rates.rows, f"Rate of class {event.short}{when}"))
        if keep is None:
            found.append(too_small(self.rows, strata=strata) or "")
        found.append(without_rows(self.missing) or "")
        if self.randomized is not None and self.overall_changed is not None:
            found.append(
                f"Decisions changed: {percent(self.overall_changed)} of the rows; decided at random: "
                f"{percent(self.randomized)}."
            )
        right = [one.overall_accuracy for one, _ in known if one.overall_accuracy is not None]
        if right:
            each = [f"{percent(a)}{when}" for a, (_, when) in zip(right, known, strict=True)]
            found.append(f"Accuracy: {', '.join(each)}.")
        if self.weighted:
            found.append("Rows are weighted, so the confidence intervals are approximate.")
        if self.group_model is not None:
            found += self.group_model.sentences()
        return [sentence for sentence in found if sentence]

    def table(self) -> Table:
        """One row per class and group: number of rows, and the rate of the class with its confidence limits.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit_classes(["a", "b", "b", "b"] * 50, ["F", "F", "M", "M"] * 50)
        >>> print(found.table())
        class  group    n           rate (95% CI)
        -----  -----  ---  ----------------------
        a      F      100    50.0% [40.4%, 59.6%]
        a      M      100       0.0% [0.0%, 3.7%]
        b      F      100    50.0% [40.4%, 59.6%]
        b      M      100  100.0% [96.3%, 100.0%]
        """
        s, n_classes = self.selection, len(self.classes)
        columns: dict[str, Any] = {
            "class": name_column([label for label in self.classes for _ in self.groups]),
            **cell_columns(self.groups * n_classes, stratified=self.within_strata),
            "n": self.rows * n_classes,
        }
        if self.after:
            columns["rate_before"] = self.before.rate
        columns |= {"rate": s.rate, "rate_low": s.lower, "rate_high": s.upper}
        headings = {**(self.names or {}), "rate": "rate after" if self.after else "rate"}
        shares = ("rate_before", "rate")
        return Table(columns, headings=headings, shares=shares, confidence=self.confidence)

    def gaps(self) -> Table:
        """One row per class: its gap, before and after, with confidence limits for this class alone.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit_classes(["a", "b", "b", "b"] * 50, ["F", "F", "M", "M"] * 50)
        >>> found.gaps()["gap"].tolist()
        [0.5, 0.5]
        """
        columns: dict[str, Any] = {"class": name_column(self.classes)}
        sides = {"gap_before": self.before, "gap_after": self.after} if self.after else {"gap": self.before}
        for name, one in sides.items():
            each = list(one.rates.values()) if one else []
            columns[name] = [rates.gap for rates in each]
            columns[f"{name}_low"], columns[f"{name}_high"] = zip(
                *(rates.gap_interval for rates in each), strict=True
            )
        return Table(columns, gaps=tuple(sides), confidence=self.confidence)

    def errors(self) -> Table:
        """Accuracy of each group, before and after; needs labels.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit_classes(["a", "b", "b", "b"], ["F", "F", "M", "M"], ["a", "a", "b", "b"])
        >>> found.errors()["accuracy"].tolist()
        [0.5, 1.0]
        """
        self._labeled()
        columns: dict[str, Any] = {**cell_columns(self.groups, stratified=self.within_strata), "n": self.rows}
        if self.after:
            columns |= {"accuracy_before": self.before.accuracy, "accuracy_after": self.after.accuracy}
            columns["changed"] = self.changed
        else:
            columns["accuracy"] = self.before.accuracy
        shares = ("accuracy", "accuracy_before", "accuracy_after", "changed")
        return Table(columns, headings=self.names, shares=shares)

    def confusion(self, decisions: str | None = None) -> Table:
        """One row per group and true class: the share of its rows that get each class; needs labels.

        Parameters
        ----------
        decisions : {"before", "after"}, optional
            Whose decisions; by default the rule's if there is a rule, otherwise the classifier's own.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit_classes(["a", "b", "b", "b"], ["F", "F", "M", "M"], ["a", "a", "b", "b"])
        >>> print(found.confusion())
        group  true class  n  gets a  gets b
        -----  ----------  -  ------  ------
        F      a           2   50.0%   50.0%
        F      b           0       –       –
        M      a           0       –       –
        M      b           2    0.0%  100.0%
        """
        chosen = self.selection
        if decisions is not None:
            known = ("before", "after") if self.after else ("before",)
            chosen = getattr(self, check_option("decisions", decisions, known))
        self._labeled()
        assert chosen.confusion is not None
        assert self.rows_by_label is not None
        shares = np.array(chosen.confusion).reshape(-1, len(self.classes))
        gets = {f"gets_{part.name}": shares[:, c] for c, part in enumerate(self.event.parts)}
        headings = {f"gets_{part.name}": f"gets {part.short}" for part in self.event.parts}
        every = [label for label in self.groups for _ in self.classes]
        return Table(
            {
                **cell_columns(every, stratified=self.within_strata),
                "true_class": name_column(self.classes * len(self.groups)),
                "n": np.array(self.rows_by_label).ravel(),
                **gets,
            },
            headings={**(self.names or {}), **headings},
            shares=tuple(gets),
        )

    def _labeled(self) -> None:
        if self.before.confusion is None:
            raise InputError("Errors need {labels}, the true classes of the rows")

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values, ready for JSON, with None for unknown values and NaN.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit_classes(["a", "b", "b", "b"], ["F", "F", "M", "M"])
        >>> found.to_dict()["before"]["gap"]
        0.5
        """
        return plain(asdict(self))

    def __repr__(self) -> str:
        return printed(*self._parts())

    def _parts(self) -> list[Table | str]:
        """The parts of its text."""
        parts: list[Table | str] = [
            "\n".join(self.sentences()),
            self.table(),
            "Gap of each class; each interval is for that class alone:",
            self.gaps(),
        ]
        if self.before.confusion is not None:
            whose = "the rule" if self.after else "these decisions" if self.of_decisions else "the classifier"
            parts += ["Accuracy:", self.errors(), f"Confusion of {whose}:", self.confusion()]
        if self.group_model is not None:
            parts += ["Group probabilities:", self.group_model.table()]
        return parts
