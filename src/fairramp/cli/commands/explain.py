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
        list[str],
        Parameter(
            help="The person's group; repeat the option if several columns make a group.",
            consume_multiple=False,
            negative="",
            allow_leading_hyphen=True,
        ),
    ],
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
    from fairramp.cli import library
    from fairramp.core.cells import cell_columns

    screen = Screen(json=json)
    known = library.load_rule(rule)
    fitted = cell_columns(known.groups, stratified=known.stratified)
    names = {"group": known.columns.groups, "stratum": known.columns.strata}
    labels = {"group": group, "stratum": stratum}
    typed = {role: _label(role, labels[role] or (), fitted[role], names[role]) for role in fitted if labels[role]}
    found = known.explain(score, typed["group"], stratum=typed.get("stratum", stratum))
    screen.say(found.why)
    screen.result("explain", rule=rule, **found.to_dict())


def _label(
    role: str, texts: "Sequence[str]", fitted: "Sequence[Label]", names: "Sequence[str] | None"
) -> "Label":
    """The label with these texts as values, in the types of the rule's labels."""
    from fairramp.core.labels import label_of, label_parts
    from fairramp.errors import InputError

    columns = list(zip(*map(label_parts, fitted), strict=False))
    if len(texts) != len(columns):
        raise InputError(
            "must be given once{each}{names}",
            argument=role,
            got=list(texts),
            each=f" for each of {len(columns)} columns" if len(columns) > 1 else "",
            names=f" ({', '.join(names)})" if names else "",
        )
    return label_of(tuple(map(_value, texts, columns)))


def _value(text: str, known: "Sequence[Label]") -> "Label":
    """The known value that a text means; the text itself if there is none."""
    from fairramp.core.labels import show_label

    if text in known:
        return text
    spellings: dict[str, Label] = {str(value).lower(): value for value in known if isinstance(value, bool)}
    spellings |= {"": None} if None in known else {}
    return (spellings | {show_label(value): value for value in known}).get(text, text)
