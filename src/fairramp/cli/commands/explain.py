"""`fairramp explain`: the answer to one person, and the reason."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fairramp.cli.options import Json, Names, RuleFile
from fairramp.cli.render import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairramp.core.labels import Label


def explain(
    rule: RuleFile,
    /,
    *,
    score: Annotated[float, Parameter(help="The person's score.", allow_leading_hyphen=True)],
    group: Annotated[
        Names,
        Parameter(
            help="The person's group; repeat the option if there are several group columns.",
            allow_leading_hyphen=True,
        ),
    ] = None,
    group_probability: Annotated[
        Names,
        Parameter(
            help="The probability of one group, as GROUP=PROBABILITY, for a rule that uses group probabilities; "
            "repeat the option for every group.",
            allow_leading_hyphen=True,
        ),
    ] = None,
    stratum: Annotated[
        Names,
        Parameter(
            help="The person's stratum, if the rule has strata; may be repeated.", allow_leading_hyphen=True
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Tell what a rule answers one person, and why.

    For example:

    fairramp explain rule.json --score 0.41 --group Female
    """
    from fairramp.cli import naming
    from fairramp.core.cells import cell_columns
    from fairramp.errors import InputError, refuse

    screen = Screen(json=json)
    known = naming.load_rule(rule)
    probable = known.membership == "probabilities"
    needed, other = ("--group-probability", "--group") if probable else ("--group", "--group-probability")
    given = {"--group": group, "--group-probability": group_probability}
    refuse(
        {
            "The rule uses {needed}: pass it instead of {other}": given[other],
            "{needed} is missing": not given[needed],
        },
        needed=needed,
        other=other,
    )
    if probable:
        try:
            found = known.explain(score, naming.chances_of(group_probability, known.groups), stratum=stratum)
        except InputError as error:
            raise error.renamed(group="group_probability") from None
    elif known.membership == "each":
        values = [values for _, values in naming.attributes_of(known)]
        found = known.explain(score, _label("group", group or (), values, known.columns.groups), stratum=stratum)
    else:
        fitted = cell_columns(known.groups, stratified=known.stratified)
        names = {"group": known.columns.groups, "stratum": known.columns.strata}
        labels = {"group": group, "stratum": stratum}
        typed = {
            role: _label(role, labels[role] or (), _columns(fitted[role]), names[role])
            for role in fitted
            if labels[role]
        }
        found = known.explain(score, typed["group"], stratum=typed.get("stratum", stratum))
    screen.say(found.why)
    screen.result("explain", rule=rule, **found.to_dict())


def _columns(fitted: "Sequence[Label]") -> "list[Sequence[Label]]":
    """The values of the rule's labels, column by column."""
    from fairramp.core.labels import label_parts

    return list(zip(*map(label_parts, fitted), strict=False))


def _label(
    role: str, texts: "Sequence[str]", columns: "Sequence[Sequence[Label]]", names: "Sequence[str] | None"
) -> "Label":
    """The label with these texts as values, in the types of the rule's values in each column."""
    from fairramp.cli.naming import typed_label
    from fairramp.core.labels import label_of
    from fairramp.errors import InputError

    if len(texts) != len(columns):
        raise InputError(
            "must be given once{each}{names}",
            argument=role,
            got=list(texts),
            each=f" for each of {len(columns)} columns" if len(columns) > 1 else "",
            names=f" ({', '.join(names)})" if names else "",
        )
    return label_of(tuple(map(typed_label, texts, columns)))
