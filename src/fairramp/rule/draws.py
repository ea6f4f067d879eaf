"""From probabilities to decisions, such that the same person always gets the same draw.

    u(id, key) = int(first 13 hexadecimal digits of SHA-256(key ‖ ":" ‖ id), 16) / 2^52     in [0, 1)
    decision   = 1 if u < probability else 0

The draw depends only on the id and the key, not on the order of the rows, the batch or the machine. Only rows
with a probability strictly between 0 and 1 are hashed.

A key is a string of 64 lowercase hexadecimal characters. Anyone who has it can predict every draw, so keep it
like a password. Ids are strings or integers (written in decimal). Floats, booleans and missing ids are rejected:
12 and 12.0 look alike but have different hashes. So are empty and blank ids, which would share one draw.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import check_length
from fairramp.core.labels import UNSEEN, written
from fairramp.core.public import public
from fairramp.errors import InputError, shown, warn

#: Environment variable that may hold the key.
ENVIRONMENT = "FAIRRAMP_KEY"
#: In fewer ids, repeated ones show nothing; and how many are looked at.
_FEWEST, _LOOKED_AT = 100, 1000
_KEY = re.compile(r"[0-9a-f]{64}")


@public
def draws(ids: Any, key: str) -> npt.NDArray[np.float64]:
    """Compute the repeatable draw u in [0, 1) of each id.

    Parameters
    ----------
    ids : sequence of str or int
        One per row; an array, list or column of any dataframe library.
    key : str
        64 lowercase hexadecimal characters; a trailing newline is ignored.

    Returns
    -------
    numpy.ndarray of float64

    Examples
    --------
    >>> import fairramp
    >>> fairramp.draws(["anna", "ben"], "0" * 64).round(6)
    array([0.940843, 0.812909])
    """
    seed = hashlib.sha256(f"{checked_key(key)}:".encode())

    def draw(identifier: str) -> float:
        state = seed.copy()
        try:
            state.update(identifier.encode())
        except UnicodeEncodeError:
            raise InputError("An id must be valid Unicode text", got=identifier) from None
        return int(state.hexdigest()[:13], 16) / 2**52

    values = _checked_ids(ids)
    return np.array([draw(v if isinstance(v, str) else str(int(v))) for v in values], dtype=np.float64)


def decide(
    probabilities: npt.NDArray[np.float64],
    *,
    ids: Any = None,
    key: str | None = None,
    random_state: Any = None,
) -> npt.NDArray[np.int8]:
    """Make 0/1 decisions with the given probabilities, by id and key or at random.

    Parameters
    ----------
    probabilities : floats of shape (n,)
        In [0, 1].
    ids, key
        For repeatable decisions; see `draws`.
    random_state : int or numpy.random.Generator
        For ordinary random draws, one per row.
    """
    decisions = (probabilities >= 1).astype(np.int8)
    unsure = (probabilities > 0) & (probabilities < 1)
    u = uncertain_draws(unsure, ids=ids, key=key, random_state=random_state)
    decisions[unsure] = u < probabilities[unsure]
    return decisions


def uncertain_draws(
    unsure: npt.NDArray[np.bool_], *, ids: Any = None, key: str | None = None, random_state: Any = None
) -> npt.NDArray[np.float64]:
    """The draws of the rows that are not certain, by id and key or at random; see `decide`."""
    by_id = ids is not None or key is not None
    if by_id == (random_state is not None):
        raise InputError(
            "Pass either {ids} and {key}, for repeatable decisions, or {random_state}, for ordinary random "
            "draws; got {came}",
            came="both" if by_id else "neither",
        )
    if not by_id:
        whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
        if not isinstance(random_state, np.random.Generator) and not (whole and int(random_state) >= 0):
            raise InputError(
                "must be a non-negative integer or a numpy.random.Generator",
                argument="random_state",
                got=random_state,
                remedy="pass numpy.random.default_rng(0)"
                if isinstance(random_state, np.random.RandomState)
                else None,
            )
        return np.random.default_rng(random_state).random(len(unsure))[unsure]
    if ids is None or key is None:
        absent = "{key}" if key is None else "{ids}"
        raise InputError("Repeatable decisions require both {ids} and {key}; " + absent + " is missing")
    checked_key(key)
    column = _checked_ids(ids)
    check_length("ids", len(column), len(unsure))
    _warn_repeated(column)
    which = np.flatnonzero(unsure)
    chosen = column[which] if isinstance(column, np.ndarray) else [column[i] for i in which.tolist()]
    return draws(chosen, key)


def checked_key(key: Any) -> str:
    """The key without its trailing newline; error messages never show it."""
    text = re.sub(r"\r?\n\Z", "", key) if isinstance(key, str) else ""
    if _KEY.fullmatch(text):
        return text
    count = f"{len(text)} characters" + (", not all of them 0-9 or a-f" if len(text) == 64 else "")
    raise InputError(
        "must be 64 lowercase hexadecimal characters, got {what}",
        argument="key",
        remedy="create one with fairramp keygen or secrets.token_hex(32)",
        what=count if isinstance(key, str) else type(key).__name__,
    )


def key_in_environment() -> str | None:
    """The key in the environment, checked; None if the variable is not set."""
    text = os.environ.get(ENVIRONMENT)
    try:
        return None if text is None else checked_key(text)
    except InputError as error:
        raise error.renamed(key=ENVIRONMENT) from None


def _checked_ids(ids: Any) -> Sequence[Any] | npt.NDArray[Any]:
    """Check a column of ids; those that other engines would write differently are always rejected."""
    if isinstance(ids, str | bytes):
        raise InputError("must be a column with one id per row, got a single string", argument="ids")
    column: Sequence[Any] | npt.NDArray[Any] = ids if isinstance(ids, list | tuple) else np.asanyarray(ids)
    if isinstance(column, np.ma.MaskedArray):
        column = np.array(column.tolist(), dtype=object)  # a masked id becomes None
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputError(
            "must be one id per row, got an array of shape {shape}", argument="ids", shape=column.shape
        )
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        return column
    if isinstance(column, np.ndarray) and column.dtype.kind in "UT":
        starts = set(column.astype("U1").tolist())
    else:
        for kind in set(map(type, column)):
            if not issubclass(kind, str | int | np.integer) or issubclass(kind, bool | np.bool_ | np.timedelta64):
                such = [value for value in column if type(value) is kind]
                raise _bad_id(next(filter(_is_missing, such), such[0]))
        starts = {value[:1] for value in column if isinstance(value, str)}
    if not starts.isdisjoint(["", *UNSEEN]):  # rarely, so that few columns are read id by id
        _refuse_blank(column)
    return column


def _warn_repeated(ids: Sequence[Any] | npt.NDArray[Any]) -> None:
    """Warn if few of the first ids are different; a person may have several decisions, so this is no error."""
    first = ids[:_LOOKED_AT]
    distinct = len(set(first.tolist() if isinstance(first, np.ndarray) else first))
    if len(first) >= _FEWEST and 2 * distinct < len(first):
        warn(
            "Only {distinct:,} of the {first}{n:,} {ids} are different, and rows with the same id share one "
            "random draw. If they are different people, pass an id for each person",
            distinct=distinct,
            first="first " if len(ids) > len(first) else "",
            n=len(first),
        )


def is_blank_id(value: Any) -> bool:
    """Whether an id is empty, or has only characters that cannot be seen.

    >>> [is_blank_id(one) for one in ("", " \u200b", "\u3164", "7", 7)]
    [True, True, True, False, False]
    """
    return isinstance(value, str) and not value.strip(UNSEEN)


def _refuse_blank(ids: Sequence[Any] | npt.NDArray[Any]) -> None:
    """Raise if some ids are blank: all these people would get the same draw."""
    for row, value in enumerate(ids):
        if is_blank_id(value):
            raise InputError(
                "must not be empty or blank, got {value} in row {row}",
                argument="ids",
                remedy="give every row a unique id",
                value=shown(value) if value.isascii() else written(str(value[:20])),
                row=row,
            )


def _is_missing(value: Any) -> bool:
    """Whether a value is the missing value of some library."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _bad_id(value: Any) -> InputError:
    remedy = "convert them to strings"
    if _is_missing(value):
        remedy = "give every row a unique id"
    elif isinstance(value, float | np.floating):
        remedy = "12 and 12.0 would get different draws, so convert them to integers"
    return InputError(
        "must be strings or integers, got {value} ({type})",
        argument="ids",
        remedy=remedy,
        value=shown(value),
        type=type(value).__name__,
    )
