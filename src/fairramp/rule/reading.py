"""Which columns a rule reads, whether they fit it, and what names of other libraries are called here."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairramp.core.cells import cell_columns
from fairramp.core.checks import nearest
from fairramp.core.labels import label_parts
from fairramp.data.columns import Columns, probability_columns
from fairramp.errors import InputError


def missing_column(role: str) -> InputError:
    """The error for a column that is neither given nor stored."""
    return InputError("Pass {" + role + "}: the rule does not store the name of that column")


#: What methods of scikit-learn and other libraries are called here.
_ELSEWHERE = {
    **dict.fromkeys(("predict", "pmf_predict"), "decide"),
    **dict.fromkeys(("predict_proba", "decision_function"), "probabilities"),
    **dict.fromkeys(("to_file", "dump", "write"), "save"),
    **dict.fromkeys(("from_file", "read"), "load"),
    "transform": "apply",
    **dict.fromkeys(("score", "evaluate"), "check"),
    **dict.fromkeys(("thresholds", "summary"), "table"),
    **dict.fromkeys(("rates", "gap", "accuracy", "selection_rates"), "record"),
    "plot": "report",
}


class Reading:
    """What a rule answers about columns that are not given, and about methods that it does not have."""

    if not TYPE_CHECKING:  # a type checker reports unknown names itself

        def __getattr__(self, name: str) -> Any:
            known = () if name.startswith("_") else [known for known in dir(self) if not known.startswith("_")]
            near = nearest(name, known, {word: ours for word, ours in _ELSEWHERE.items() if ours in known})
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{f'; {near}' if near else ''}"
            )

    def reading(
        self: Any,
        score: Any = None,
        group: Any = None,
        strata: Any = None,
        id: Any = None,
        group_probability: Any = None,
    ) -> Columns:
        """Return the names of the columns to read: as given, otherwise those of the fit.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp(0.5, 0.0), Ramp(0.4, 0.0)))
        >>> rule.reading(score="p", group="unit")
        Columns(score='p', groups=('unit',), strata=None, id=None, probabilities=None, class_scores=None)
        """
        columns: Columns = self.columns.given(score, group, strata, id)
        if columns.score is None:
            raise missing_column("score")
        found: Columns = self.reading_groups(columns, group, group_probability)
        return found

    def reading_groups(self: Any, columns: Columns, group: Any, group_probability: Any) -> Columns:
        """The same for the columns of groups, strata and group probabilities."""
        grouped = ("group", columns.groups)
        if self.membership == "probabilities":
            if group is not None:
                raise InputError(
                    "This rule does not use {group} but group probabilities; pass {group_probability}"
                )
            if group_probability is not None:
                chosen = probability_columns(group_probability, self.groups)
                columns = replace(columns, probabilities=tuple(chosen.values()))
            grouped = ("group_probability", columns.probabilities)
        elif group_probability is not None:
            raise InputError("This rule uses {group} and no {group_probability}; remove it")
        if grouped[1] is None:
            raise missing_column(grouped[0])
        if self.stratified and columns.strata is None:
            raise InputError(
                "Pass {strata}: the rule equalizes within strata but does not store their column names"
            )
        self.check_strata(columns.strata)
        if self.mixes:
            n = len(self.attributes) if self.membership == "each" else 0
            if len(columns.groups or ()) != n:
                raise InputError(
                    "must name {n} columns, as in the fit, got {names}",
                    argument="group",
                    n=n,
                    names=list(columns.groups or ()),
                )
            return columns
        named = {"stratum": ("strata", columns.strata), "group": ("group", columns.groups)}
        for half, labels in cell_columns(self.groups, stratified=self.stratified).items():
            role, names = named[half]
            for n in {len(label_parts(label)) for label in labels} - {len(names or ())}:
                raise InputError(
                    "must name {n} column{s}, as in the fit, got {names}",
                    argument=role,
                    n=n,
                    s="s" if n > 1 else "",
                    names=list(names or ()),
                )
        return columns
