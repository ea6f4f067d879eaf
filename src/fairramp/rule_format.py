"""Rules as JSON files.

    {"format": "fairramp.rule", "version": 1,
     "ramp_width": …, "ramp": …, "scale": …, "cutoff": …, "max_gap": …, "target_rate": …,
     "unseen_group": …, "criterion": …, "pooled": null or {"threshold": …, "tie_chance": …},
     "groups": [{"label": …, "threshold": …, "tie_chance": …}, …],
     "record": null or what `FitRecord` holds,
     "columns": null or [names of the group columns, where there is no record]}

Numbers are written in the shortest form that reads back to the same float, so that a rule survives any
number of round trips byte for byte. Reading is strict: an unknown field, version or value is refused with
the reason, because a rule that is half understood decides wrongly.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from fairramp.exceptions import InputError, RuleFormatError
from fairramp.files import write_text
from fairramp.groups import Label
from fairramp.rule import TARGETS, FitRecord, Ramp, Rule

__all__ = ["fingerprint", "from_json", "load", "save", "to_dict", "to_json"]

FORMAT = "fairramp.rule"
VERSION = 1

_SETTINGS = ("ramp_width", "ramp", "scale", "cutoff", "max_gap", "target_rate", "unseen_group", "criterion")


def to_dict(rule: Rule) -> dict[str, Any]:
    """Return the rule as plain values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(rule, name) for name in _SETTINGS},
        "pooled": asdict(rule.pooled) if rule.pooled else None,
        "groups": [
            {"label": _plain(label), **asdict(ramp)} for label, ramp in zip(rule.groups, rule.ramps, strict=True)
        ],
        "record": {k: _plain(v) for k, v in asdict(rule.record).items()} if rule.record else None,
        "columns": _plain(rule.columns),
    }


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def to_json(rule: Rule) -> str:
    """Return the rule as JSON text."""
    return json.dumps(to_dict(rule), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def fingerprint(rule: Rule) -> str:
    """SHA-256 of all that decides."""
    decisive = {name: value for name, value in to_dict(rule).items() if name not in ("record", "columns")}
    text = json.dumps(decisive, ensure_ascii=True, allow_nan=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def save(rule: Rule, path: str | os.PathLike[str]) -> None:
    """Write the rule to a file, whole or not at all."""
    write_text(Path(path), to_json(rule), "the rule")


def load(path: str | os.PathLike[str]) -> Rule:
    """Read a rule from a file."""
    try:
        return from_json(Path(path).read_bytes().decode("utf-8"))
    except UnicodeDecodeError:
        raise RuleFormatError(f"{os.fspath(path)}: not a rule, because not UTF-8 text.") from None
    except RuleFormatError as error:
        raise RuleFormatError(f"{os.fspath(path)}: {error}") from None


def from_json(text: str) -> Rule:
    """Read a rule from JSON text."""
    try:
        content = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except RuleFormatError:
        raise
    except ValueError as error:
        raise RuleFormatError(f"Not a rule, because not valid JSON: {error}.") from None
    except RecursionError:
        raise RuleFormatError("Not a rule, because nested too deeply.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RuleFormatError(f'Not a rule: the field "format" is not "{FORMAT}".')
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise RuleFormatError(
            f"Rule version {_shown(version)} is not understood; this library reads version "
            f"{VERSION}. Update fairramp or fit the rule again."
        )
    fields_ = ("format", "version", *_SETTINGS, "pooled", "groups", "record", "columns")
    _check_names(content, fields_, "the rule")
    record = content["record"]
    try:
        groups = [_entry(entry) for entry in _list(content["groups"], '"groups"')]
        return Rule(
            groups=tuple(label for label, _ in groups),
            ramps=tuple(ramp for _, ramp in groups),
            ramp_width=_number(content["ramp_width"], '"ramp_width"'),
            ramp=_text(content["ramp"], '"ramp"'),
            scale=_text(content["scale"], '"scale"'),
            cutoff=_number(content["cutoff"], '"cutoff"'),
            max_gap=_share(content["max_gap"], '"max_gap"'),
            target_rate=None
            if content["target_rate"] is None
            else _share(content["target_rate"], '"target_rate"'),
            unseen_group=_text(content["unseen_group"], '"unseen_group"'),
            criterion=_text(content["criterion"], '"criterion"'),
            pooled=None if content["pooled"] is None else _ramp(content["pooled"], '"pooled"'),
            record=None if record is None else _record(record),
            columns=_optional(_many(_text))(content["columns"], '"columns"'),
        )
    except InputError as error:
        raise RuleFormatError(str(error)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RuleFormatError(f"The field {twice!r} appears twice.")
    return content


def _constant(name: str) -> float:
    raise RuleFormatError(f"{name} is not a number that a rule can hold.")


def _shown(value: Any) -> str:
    """A value as it came, cut where it gets long; nesting may be too deep to be shown at all."""
    try:
        text = repr(value)
    except RecursionError:
        text = f"a deeply nested {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check_names(content: Any, names: tuple[str, ...], where: str) -> None:
    if not isinstance(content, dict):
        raise RuleFormatError(f"{where[0].upper()}{where[1:]} must be an object, got {_shown(content)}.")
    for name in names:
        if name not in content:
            raise RuleFormatError(f'The field "{name}" of {where} is missing.')
    for name in content:
        if name not in names:
            raise RuleFormatError(f"The field {name!r:.60} of {where} is not understood.")


def _number(value: Any, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RuleFormatError(f"{where} must be a number, got {_shown(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RuleFormatError(f"{where} must be a finite number.")
    return number


def _share(value: Any, where: str) -> float:
    number = _number(value, where)
    if not 0 <= number <= 1:
        raise RuleFormatError(f"{where} must be in [0, 1], got {number!r}.")
    return number


def _nonnegative(value: Any, where: str) -> float:
    number = _number(value, where)
    if number < 0:
        raise RuleFormatError(f"{where} must not be negative, got {number!r}.")
    return number


def _whole(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RuleFormatError(f"{where} must be a whole number from 0 on, got {_shown(value)}.")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise RuleFormatError(f"{where} must be text, got {_shown(value)}.")
    return value


def _truth(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise RuleFormatError(f"{where} must be true or false, got {_shown(value)}.")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise RuleFormatError(f"{where} must be a list, got {_shown(value)}.")
    return value


def _ramp(content: Any, where: str) -> Ramp:
    _check_names(content, ("threshold", "tie_chance"), where)
    return Ramp(
        _number(content["threshold"], '"threshold"'),
        _number(content["tie_chance"], '"tie_chance"'),
    )


def _entry(content: Any) -> tuple[Label, Ramp]:
    where = "a group"
    _check_names(content, ("label", "threshold", "tie_chance"), where)
    label = _label(content["label"])
    return label, _ramp({k: v for k, v in content.items() if k != "label"}, where)


def _label(value: Any, depth: int = 0) -> Label:
    if isinstance(value, list) and depth < 2:
        return tuple(_label(part, depth + 1) for part in value)
    if value is None or isinstance(value, str | int):
        return value
    raise RuleFormatError(
        "A group's label must be text, a whole number, true, false, null or a list of those, "
        f"got {_shown(value)}."
    )


def _many(kind: Callable[[Any, str], Any]) -> Callable[[Any, str], tuple[Any, ...]]:
    def read(value: Any, where: str) -> tuple[Any, ...]:
        return tuple(kind(part, f"An entry of {where}") for part in _list(value, where))

    return read


def _target(value: Any, where: str) -> str | float:
    if value in TARGETS and isinstance(value, str):
        return value
    return _share(value, where)


def _optional(kind: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, where: None if value is None else kind(value, where)


def _solver(value: Any, where: str) -> str:
    if value not in ("exact", "sgd"):
        raise RuleFormatError(f'{where} must be "exact" or "sgd", got {_shown(value)}.')
    return str(value)


_RECORD: dict[str, Callable[[Any, str], Any]] = {
    "rows": _many(_whole),
    "effective_rows": _many(_nonnegative),
    "rows_above": _many(_whole),
    "rows_inside": _many(_whole),
    "rate_before": _many(_share),
    "rate_after": _many(_share),
    "rate_error": _many(_share),
    "strata": _optional(_many(_whole)),
    "target": _target,
    "ramp_width": _nonnegative,
    "weighted": _truth,
    "cross_fitted": _truth,
    "solver": _solver,
    "trace": _optional(_many(_many(_number))),
    "score_column": _optional(_text),
    "group_columns": _optional(_many(_text)),
    "strata_columns": _optional(_many(_text)),
    "fingerprint": _text,
    "version": _text,
    "date": _optional(_text),
}


def _record(content: Any) -> FitRecord:
    _check_names(content, tuple(f.name for f in fields(FitRecord)), "the record")
    read = {name: kind(content[name], f'"{name}"') for name, kind in _RECORD.items()}
    lengths = {len(read[name]) for name in list(_RECORD)[:7]}
    if len(lengths) > 1:
        raise RuleFormatError("The lists of the record differ in length.")
    for name, found in (("strata", [read["strata"]]), ("trace", read["trace"] or [])):
        if any(values is not None and len(values) not in lengths for values in found):
            raise RuleFormatError(f'"{name}" of the record must have one entry per group.')
    if (read["trace"] is None) != (read["solver"] == "exact"):
        raise RuleFormatError('A record has a "trace" if and only if its "solver" is "sgd".')
    for n, above, inside in zip(read["rows"], read["rows_above"], read["rows_inside"], strict=True):
        if above + inside > n:
            raise RuleFormatError(f'"rows_above" and "rows_inside" are {above + inside} of only {n} rows.')
    return FitRecord(**read)
