"""Which rule, columns and groups the options of a command name."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairramp.core.labels import Label, label_parts, label_text, show_label
from fairramp.data.columns import Columns, class_score_columns, probability_columns
from fairramp.data.inputs import format_of
from fairramp.errors import FairrampError, RuleFormatError, UnsupportedError, refuse_if
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.either import load_either
from fairramp.rule.rule import Rule


def load_rule(path: str, command: str | None = None) -> Rule:
    """Load a rule for two classes; see `load_any_rule`."""
    found = load_any_rule(path, command)
    if isinstance(found, ClassRule):
        raise UnsupportedError(
            "{path} is a rule for several classes, which this command does not support",
            remedy="fit, apply, audit, check, frontier, report, show, export and serve do",
            path=path,
        )
    return found


def load_any_rule(path: str, command: str | None = None) -> Rule | ClassRule:
    """Load a rule; `command` is the command if it takes DATA after the rule."""
    refuse_if(not path.strip(), "The name of the rule is empty", remedy="pass a file written by fairramp fit")
    try:
        return load_either(path)
    except RuleFormatError:
        if format_of(path) in ("json", None) and not path.lower().endswith(".xls"):
            raise
        first = f"the rule comes first, as in: fairramp {command} RULE DATA"
        raise FairrampError(
            "{path} is not a rule; {usage}",
            path=path,
            usage=first if command else "pass a file written by fairramp fit",
        ) from None
    except FileNotFoundError:
        raise FairrampError("The rule {path} does not exist; create it with fairramp fit", path=path) from None
    except OSError as error:
        raise FairrampError("Cannot read the rule {path}: {why}", path=path, why=error.strerror) from None


def refuse_classes(class_score: Sequence[str] | None) -> None:
    """Reject scores of classes for a rule that has one score."""
    refuse_if(class_score, "This rule decides between yes and no by one score; remove --class-score")


def refuse_unused(group_probability: Sequence[str] | None, rule: Rule | ClassRule | None) -> None:
    """Reject group probabilities without a rule, which would use them."""
    refuse_if(
        group_probability and rule is None,
        "--group-probability needs --rule, a rule that uses group probabilities",
    )


def columns_of(
    rule: Rule | None,
    score: str | None,
    group: Sequence[str] | None,
    strata: Sequence[str] | None = None,
    id: str | None = None,
    *,
    probabilities: dict[Label, str] | None = None,
    deciding: bool = False,
) -> Columns:
    """Return the columns to use: those given, or else those stored in the rule.

    If the rule uses group probabilities, `group` has the true groups, which are needed except for `deciding`.
    """
    known = rule.columns if rule else Columns()
    probable = rule is not None and rule.membership == "probabilities"
    score, group = score or known.score, group or known.groups
    refuse_if(not score, "--score is missing: pass the column with the scores")
    refuse_if(
        not group and not (probable and deciding),
        "--group is missing: pass the column with the {which}groups{why}",
        which="true " if probable else "",
        why=", which the rates are measured by; the rule itself uses group probabilities" if probable else "",
    )
    named = list(group) if group else None
    within = list(strata) if strata else None
    if rule is None:
        return Columns().given(score, named, within, id)
    own = None if probable and not deciding else named
    columns = rule.reading(score, own, within, id, probabilities)
    return replace(columns, groups=tuple(named)) if named and probable else columns


def fit_columns(
    score: str | None,
    group: Sequence[str] | None,
    strata: Sequence[str] | None,
    probabilities: dict[Label, str] | None,
) -> Columns:
    """Return the columns of a fit: either groups or group probabilities."""
    refuse_if(
        not group and not probabilities,
        "--group is missing: pass the column with the groups, or --group-probability for each group",
    )
    refuse_if(
        group and probabilities,
        "Pass either --group or --group-probability to fit; audit, check and report take both",
    )
    columns = Columns().given(score, list(group) if group else None, list(strata) if strata else None)
    return replace(columns, probabilities=tuple(probabilities.values())) if probabilities else columns


def probabilities_of(
    texts: Sequence[str] | None, known: Sequence[Label] | None = None
) -> dict[Label, str] | None:
    """Read columns of group probabilities, such as F=p_f; groups have the types of `known` ones, a rule's.

    >>> probabilities_of(["1=p", "2=q"]), probabilities_of(["1=p", "2=q"], known=[1, 2])
    ({'1': 'p', '2': 'q'}, {1: 'p', 2: 'q'})
    """
    pairs = _pairs(texts or (), "GROUP=COLUMN, such as F=p_f", known or ())
    return probability_columns(pairs, known) if pairs else None


def classes_of(texts: Sequence[str] | None, known: Sequence[Label] | None = None) -> dict[Label, str] | None:
    """Read columns of the scores of classes, such as low=p_low; classes have the types of `known` ones, a rule's.

    >>> classes_of(["low=p_low", "high=p_high"])
    {'low': 'p_low', 'high': 'p_high'}
    """
    pairs = _pairs(texts or (), "CLASS=COLUMN, such as low=p_low", known or (), "class_score", "class")
    return class_score_columns(pairs, known) if pairs else None


def chances_of(texts: Sequence[str] | None, known: Sequence[Label]) -> dict[Label, float] | None:
    """Read one person's group probabilities, such as F=0.7.

    >>> chances_of(["F=0.75", "M=0.25"], ["F", "M"])
    {'F': 0.75, 'M': 0.25}
    """
    form = "GROUP=PROBABILITY, such as F=0.7"
    pairs = _pairs(texts or (), form, known)
    try:
        return {label: float(text) for label, text in pairs.items()} or None
    except ValueError:
        raise FairrampError(
            "must be {form}", argument="group_probability", got=list(texts or ()), form=form
        ) from None


def _pairs(
    texts: Sequence[str],
    form: str,
    known: Sequence[Label],
    option: str = "group_probability",
    what: str = "group",
) -> dict[Label, str]:
    """Split texts at the first equals sign."""
    found: dict[Label, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        refuse_if(not sign or not value, "must be {form}", argument=option, got=text, form=form)
        label = typed_label(name, known)
        refuse_if(label in found, "names the {what} {name!r} twice", argument=option, name=name, what=what)
        found[label] = value
    return found


def typed_label(text: str, known: Sequence[Label]) -> Label:
    """The known label that a text means; the text itself if there is none."""
    if text in known:
        return text
    spellings: dict[str, Label] = {str(value).lower(): value for value in known if isinstance(value, bool)}
    spellings |= {"": None} if None in known else {}
    for spelled in (label_text, show_label):
        spellings |= {spelled(value): value for value in known}
    return spellings.get(text, text)


def attributes_of(rule: Rule) -> list[tuple[Any, list[Any]]]:
    """The attributes of a rule by each attribute, with their values."""
    found: dict[Any, list[Any]] = {}
    for attribute, value in map(label_parts, rule.groups):
        found.setdefault(attribute, []).append(value)
    return list(found.items())


def values_of(rule: Rule | ClassRule, columns: Columns) -> list[tuple[str, list[Any]]]:
    """The rule's values in each column of strata and groups; none in columns that it does not know."""
    if isinstance(rule, Rule) and rule.membership == "each":
        known = [values for _, values in attributes_of(rule)]
        return [(name, known[i] if i < len(known) else []) for i, name in enumerate(columns.grouped)]
    if rule.membership == "probabilities" and len(columns.grouped) != 1:
        return [(name, []) for name in columns.grouped]
    return columns.labels(rule.groups)
