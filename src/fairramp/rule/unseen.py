"""The error message about groups that were not in the fit rows."""

from collections.abc import Sequence

from fairramp.core.labels import Label, label_key, label_parts
from fairramp.errors import UnseenGroupError

_KNOWS_BLANK = (
    "The rule has a group '' (the empty string), but None (a missing value) is another group: in pandas, use "
    "fillna(''), or read with keep_default_na=False. "
)
_KNOWS_MISSING = (
    "The rule has a group None (a missing value), but '' (the empty string) is another group: in pandas, use "
    "replace({'': None}). "
)


def unseen_groups(
    unseen: Sequence[Label], fitted: Sequence[Label], *, policies: str, all_unseen: bool
) -> UnseenGroupError:
    """The error for groups that a rule does not know and has no policy for."""
    remedy = (
        "None of them is in the rule: check the column, the spelling and the type"
        if all_unseen
        else "Fit again on rows that include them, or with unseen_group={policies}"
    )
    return UnseenGroupError(
        "Groups not in the fit rows: {unseen}; fitted groups: {fitted}. {blank}" + remedy,
        unseen=_some(unseen),
        fitted=_some(fitted),
        blank=_blank(unseen, fitted),
        policies=policies,
    )


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
    shown = ", ".join(map(repr, labels[:10]))
    return f"[{shown}{f', … {len(labels) - 10:,} more' if len(labels) > 10 else ''}]"
