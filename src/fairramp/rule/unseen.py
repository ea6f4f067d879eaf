"""The error message about groups that were not in the fit rows, with the groups that were probably meant."""

import unicodedata
from collections.abc import Sequence

from fairramp.core.labels import Label, label_key, label_parts, label_text, show_label, spelling
from fairramp.core.table import named, with_rows
from fairramp.errors import UnseenGroupError

_KNOWS_BLANK = (
    "The rule has a group '' (the empty string), but None (a missing value) is another group: in pandas, use "
    "fillna(''), or read with keep_default_na=False. "
)
_KNOWS_MISSING = (
    "The rule has a group None (a missing value), but '' (the empty string) is another group: in pandas, use "
    "replace({'': None}). "
)
#: Policies that allow unseen groups, by whether the rule has strata.
POLICIES = {False: ("pooled", "original"), True: ("original",)}
#: Number of groups listed.
_MOST = 10


def unseen_groups(
    unseen: Sequence[Label],
    fitted: Sequence[Label],
    *,
    policies: Sequence[str] = (),
    all_unseen: bool = False,
    rows: Sequence[int] | None = None,
    first: str | None = None,
    also: str | None = None,
) -> UnseenGroupError:
    """The error for groups that were not in the fit rows and have no policy.

    Parameters
    ----------
    unseen, fitted : sequence of labels
        The groups that were not in the fit rows, and those that were.
    policies : sequence of str, optional
        Values of `unseen_group` that would allow them.
    all_unseen : bool, default False
        Whether no row is known to belong to a fitted group, so that the column or its type is probably wrong.
    rows : sequence of int, optional
        Number of rows of each unseen group, if known. Labels are then written as in tables.
    first : str, optional
        Where the first of these rows is.
    also : str, optional
        Another remedy.
    """
    again = "fit again on rows that include them"
    allowed = " or ".join(f"{{unseen_group:{policy}}}" for policy in policies)
    remedy = f"Correct them, {again}" if allowed else f"Correct them, or {again}"
    if all_unseen:
        remedy = "None of them is in the rule: check the column, the spelling and the type"
    remedy += f", or fit again with {allowed}" if allowed else ""
    return UnseenGroupError(
        "Groups not in the fit rows: {unseen}{first}; fitted groups: {fitted}. {blank}{guess}" + remedy,
        remedy="{also}" if also else None,
        first=f", first in {first}" if first else "",
        also=also,
        unseen=_some(unseen) if rows is None else with_rows(list(zip(unseen, rows, strict=True)), _MOST),
        fitted=_some(fitted) if rows is None else _named(fitted),
        blank=_blank(unseen, fitted) if rows is None else "",  # the hint is for pandas
        guess=_guess(unseen[:_MOST], fitted, as_text=rows is not None),
    )


def near_groups(unseen: Sequence[Label], fitted: Sequence[Label]) -> list[tuple[Label, Label]]:
    """Groups that differ from fitted ones only in case, spaces, accents or type, each with the fitted one.

    >>> near_groups(["FRAU", "Mann ", "X"], ["Frau", "Mann"])
    [('FRAU', 'Frau'), ('Mann ', 'Mann')]
    """
    spellings = {spelling(label): label for label in fitted}
    return [(label, spellings[spelling(label)]) for label in unseen if spelling(label) in spellings]


def _guess(unseen: Sequence[Label], fitted: Sequence[Label], *, as_text: bool) -> str:
    """Name the fitted groups that differ from unseen ones only in case, spaces, accents or type."""
    near = near_groups(unseen, fitted)
    if not near:
        return ""
    pairs = [(label_text(label), label_text(meant)) for label, meant in near]
    names = ", ".join(f"{meant!r} (for {label!r})" for label, meant in (pairs if as_text else near))
    accents = any(label != meant == unicodedata.normalize("NFC", label) for label, meant in pairs)
    normalize = "Their accents are separate characters: normalize them to NFC. " if accents else ""
    return f"Did you mean {names}? {normalize}"


def _blank(unseen: Sequence[Label], known: Sequence[Label]) -> str:
    """A hint if missing values occur where the fit had empty strings, or vice versa."""
    new, fitted = (
        {label_key(part) for label in labels for part in label_parts(label, stratified=True)}
        for labels in (unseen, known)
    )
    text, missing = label_key(""), label_key(None)
    either_way = ((text, missing, _KNOWS_BLANK), (missing, text, _KNOWS_MISSING))
    fits = (sentence for own, other, sentence in either_way if own in fitted and other in new - fitted)
    return next(fits, "")


def _some(labels: Sequence[Label]) -> str:
    """The first few labels, as a list."""
    shown = ", ".join(show_label(label) if label is None else repr(label) for label in labels[:_MOST])
    return f"[{shown}{f', … {len(labels) - _MOST:,} more' if len(labels) > _MOST else ''}]"


def _named(labels: Sequence[Label]) -> str:
    """The first few labels, as in tables."""
    return ", ".join(named(labels[:_MOST])) + (
        f" and {len(labels) - _MOST:,} more" if len(labels) > _MOST else ""
    )
