"""What is said of groups that a fit did not see: which they are, which it knows, and what to do."""

from collections.abc import Sequence

from fairramp.core.labels import Label, label_key, label_parts
from fairramp.errors import UnseenGroupError

_KNOWS_BLANK = (
    "The rule knows the blank text '', and None (a missing value) is another group: in pandas pass fillna(''), "
    "or read with keep_default_na=False. "
)
_KNOWS_MISSING = (
    "The rule knows None (a missing value), and the blank text '' is another group: in pandas pass "
    "replace({'': None}). "
)


def unseen_groups(
    unseen: Sequence[Label], fitted: Sequence[Label], *, policies: str, all_unseen: bool
) -> UnseenGroupError:
    """The error about groups that a rule does not know, where it has no policy for them."""
    remedy = (
        "None of them is known: check the column, the spelling and the type"
        if all_unseen
        else "Fit again on rows that have them, or with unseen_group={policies} to decide them too"
    )
    return UnseenGroupError(
        "Groups not seen in fit: {unseen}; fitted groups: {fitted}. {blank}" + remedy,
        unseen=_some(unseen),
        fitted=_some(fitted),
        blank=_blank(unseen, fitted),
        policies=policies,
    )


def _blank(unseen: Sequence[Label], known: Sequence[Label]) -> str:
    """A sentence about missing values where the fit had empty texts, or the other way round."""
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
