"""Rows of groups that a rule does not know: as faults, as an error, and the groups that they may hide.

Like missing values, blank groups may be left out in any number of rows, all others in at most one row in ten: a
group of the rule that is spelled otherwise must not disappear.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fairramp.cli.faults import TOO_MANY, Fault, Found, is_missing
from fairramp.cli.job import Job, met
from fairramp.cli.naming import values_of
from fairramp.core.headline import joined
from fairramp.core.labels import SHEET_ERRORS, Label, label_key, label_of, label_text, show_label
from fairramp.core.table import with_rows
from fairramp.data.database import literal
from fairramp.errors import FairrampError
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule
from fairramp.rule.unseen import POLICIES, near_groups, unseen_groups

#: Groups that a message names.
_MOST = 3


def unknown_groups(job: Job, rule: Rule | ClassRule | None) -> tuple[tuple[Label, int], ...]:
    """The groups of a job that the rule does not know, with their numbers of rows."""
    known = set(map(label_key, rule.groups if rule else ()))
    return tuple(pair for pair in _judged(job, rule) if label_key(pair[0]) not in known)


def emptied_groups(before: Job, after: Job, rule: Rule | ClassRule | None) -> tuple[Label, ...]:
    """The groups of the rule all of whose rows were left out."""
    there, known = ({label_key(label) for label, _ in _judged(job, rule)} for job in (after, before))
    return tuple(label for label in (rule.groups if rule else ()) if label_key(label) in known - there)


def _judged(job: Job, rule: Rule | ClassRule | None) -> list[tuple[Label, int]]:
    """The groups of a job with their numbers of rows, if the rule decides by them."""
    if rule is None or job.columns.groups is None or rule.membership == "probabilities":
        return []
    return met(job, rule)


def faults(job: Job, rule: Rule | ClassRule, *, slips: bool) -> list[Fault]:
    """The rows of groups that the rule rejects; those with another spelling are a fault of their own.

    With `slips`, any number of rows may have such groups.
    """
    unknown = [label for label, _ in unknown_groups(job, rule)]
    if not unknown or rule.unseen_group != "error":
        return []
    keys, n = set(map(label_key, unknown)), len(job.columns.strata or ())
    meant = {label_key(label): known for label, known in near_groups(unknown, rule.groups)}
    others: list[str] = []
    respelled: dict[str, tuple[Label, Label]] = {}
    for raw, parts in zip(job.raw_cells, job.cells, strict=True):
        labels = [label_of(parts, n)]
        if isinstance(rule, Rule) and rule.membership == "each":
            labels = [(name, part) for (name, _), part in zip(rule.attributes, parts, strict=True)]
        strange, key = [label for label in labels if label_key(label) in keys], "".join(map(_key_text, raw))
        if strange and all(label_key(label) in meant for label in strange):
            respelled[key] = strange[0], meant[label_key(strange[0])]
        elif strange:
            others.append(key)
    # Values of an ENUM type are looked up by hashing; a join might change the order of the rows. With lengths,
    # ("a", "bc") is not ("ab", "c").
    texts = [f"CAST({key} AS VARCHAR)" for key in job.keys]
    key = " || ".join(f"CASE WHEN {t} IS NULL THEN '-' ELSE strlen({t}) || ':' || {t} END" for t in texts)
    fault = Fault(
        "--group",
        " and ".join(map(repr, job.columns.grouped)),
        "is a group not in the fit rows",
        _is_one_of(key, others),
        job.source.find(job.columns.grouped[-1], "--group"),
        job.keys[0] if len(texts) == 1 else " || ' / ' || ".join(f"coalesce({t}, 'missing')" for t in texts),
        {},
        missing=" OR ".join(map(is_missing, job.keys)),
        slips=slips,
    )
    found = [fault] if others else []
    if respelled:
        pairs = [f"{label_text(label)!r} from {label_text(known)!r}" for label, known in respelled.values()]
        named = f"{', '.join(pairs[:_MOST])}{', …' if len(pairs) > _MOST else ''}"
        cases = " ".join(f"WHEN {literal(k)} THEN {literal(_reason(fault, *p))}" for k, p in respelled.items())
        found.insert(
            0,
            replace(
                fault,
                wrong=f"differs from a group of the rule only in {_how(respelled.values())} ({named})",
                condition=_is_one_of(key, respelled),
                reason=f"CASE {key} {cases} END",
                missing="false",
            ),
        )
    return found


def blanks(job: Job, rule: Rule | ClassRule | None) -> list[Fault]:
    """The rows without a group or stratum, unless the rule decides them; other columns may be blank."""
    if rule is not None and rule.unseen_group != "error":
        return []
    known = None if rule is None else dict(values_of(rule, job.columns))
    found = []
    for i, (name, key) in enumerate(zip(job.columns.grouped, job.keys, strict=True)):
        if known is not None and (not known[name] or {None, ""} & set(known[name])):
            continue
        option = "--strata" if i < len(job.columns.strata or ()) else "--group"
        column = job.source.find(name, option)
        blank = is_missing(key, SHEET_ERRORS)  # NA may be a group
        found.append(Fault(option, repr(name), "is missing", blank, column, key, {}, missing=blank))
    return found


def _is_one_of(key: str, values: Iterable[str]) -> str:
    named = ", ".join(map(literal, values))
    return f"TRY_CAST({key} AS ENUM({named})) IS NOT NULL" if named else "false"


def _key_text(part: Label) -> str:
    """A value of a group column with its length."""
    if part is None:
        return "-"
    text = str(part).lower() if isinstance(part, bool) else str(part)
    return f"{len(text.encode())}:{text}"


def _reason(fault: Fault, label: Label, known: Label) -> str:
    """Why a row with another spelling cannot be used."""
    how = _how([(label, known)])
    text, meant = label_text(label), label_text(known)
    return f"{fault.name} is {text!r}, not a group of the rule: it differs from {meant!r} only in {how}"


def _how(pairs: Iterable[tuple[Label, Label]]) -> str:
    """In what labels differ from those that were probably meant."""
    texts = [(label_text(label), label_text(known)) for label, known in pairs]
    same = all(unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b) for a, b in texts)
    return "how accents are stored" if same else "spaces or case"


def error(
    rule: Rule | ClassRule,
    found: Found,
    unknown: Sequence[tuple[Label, int]],
    *,
    skipping: bool | None,
    can_null: bool,
) -> FairrampError:
    """The error about groups that the rule rejects, with the first row of one.

    `skipping` says whether rows may be left out, None if never, and `can_null` whether they may stay undecided.
    """
    labels, rows = zip(*unknown, strict=True)
    policies = POLICIES[rule.stratified or rule.mixes or isinstance(rule, ClassRule)]
    ((_, place), *_) = found.places(replace(found.faults[0], condition=found.condition))
    ways = ["--unseen-group null to leave their decisions empty"] if can_null else []
    ways += ["--skip-invalid to leave out their rows"] if skipping is False and found.can_skip else []
    also = [f"or pass {', or '.join(ways)}"] if ways else []
    also += [TOO_MANY] if skipping and not found.are_slips else []
    return unseen_groups(
        labels, rule.groups, policies=policies, rows=rows, first=place, also="; ".join(also) or None
    )


def absent_groups(job: Job, rule: Rule | ClassRule) -> str:
    """The groups of the rule without rows, as "group A" or "groups A and B"; empty if there are none."""
    return _named(_absent(job, rule))


def _absent(job: Job, rule: Rule | ClassRule) -> list[Label]:
    there = {label_key(label) for label, _ in met(job, rule)}
    return [label for label in rule.groups if label_key(label) not in there]


def _named(labels: Sequence[Label]) -> str:
    return f"group{'' if len(labels) == 1 else 's'} {joined(list(map(show_label, labels)))}" if labels else ""


def lost_groups(job: Job, rule: Rule | ClassRule | None) -> str:
    """Sentences on groups of the rule without rows, if these were left out or may have another spelling."""
    found = [f"Every row of {_named(job.emptied)} of the rule was left out."] if job.emptied else []
    emptied = set(map(label_key, job.emptied))
    if rule is not None and job.unknown:
        respelled = [label for label in _absent(job, rule) if label_key(label) not in emptied]
        unknown = with_rows(list(job.unknown), _MOST)
        other = f"other rows are in groups that it does not know: {unknown}"
        found += [f"No row is in {_named(respelled)} of the rule, but {other}."] if respelled else []
    return " ".join(found)
