"""Rules as JSON files.

    {"format": "fairramp.rule", "version": 1,
     "ramp_width": …, "ramp": …, "scale": …, "cutoff": …, "max_gap": …, "target_rate": …,
     "unseen_group": …, "criterion": …, "pooled": null or {"threshold": …, "tie_chance": …},
     "groups": [{"label": …, "threshold": …, "tie_chance": …}, …],
     "record": null or what `FitRecord` holds,
     "columns": null or [names of the group columns, where there is no record],
     "sha256": "…"}

Numbers are written in the shortest form that reads back to the same float, so that a rule survives any
number of round trips byte for byte. Reading is strict: an unknown field, version or value is refused with
the reason, because a rule that is half understood decides wrongly. The checksum is that of the rule, so that a
damaged digit is found and another layout is not; it finds damage, not malice.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from fairramp.core.labels import Label
from fairramp.core.ramps import Ramp
from fairramp.data import strict_json as strict
from fairramp.data.columns import Columns
from fairramp.data.files import write_text
from fairramp.errors import InputError, RuleFormatError, shown
from fairramp.rule.record import FitRecord, Rates
from fairramp.rule.rule import TARGETS, Rule

__all__ = ["FORMAT", "fingerprint", "from_json", "load", "save", "to_dict", "to_json"]

FORMAT = "fairramp.rule"
VERSION = 2

_SETTINGS = ("ramp", "scale", "cutoff", "criterion", "stratified", "max_gap", "target_rate", "unseen_group")


def to_dict(rule: Rule) -> dict[str, Any]:
    """Return the rule as plain values."""
    content = _content(rule)
    return {**content, "sha256": _checksum(content)}


def _content(rule: Rule) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(rule, name) for name in _SETTINGS},
        "pooled": asdict(rule.pooled) if rule.pooled else None,
        "groups": [
            {"label": strict.plain(label), **asdict(ramp)}
            for label, ramp in zip(rule.groups, rule.ramps, strict=True)
        ],
        "columns": {k: strict.plain(v) for k, v in asdict(rule.columns).items() if k != "id"},
        "record": _plain_record(rule.record) if rule.record else None,
    }


def _plain_record(record: FitRecord) -> dict[str, Any]:
    content = {k: strict.plain(v) for k, v in asdict(record).items()}
    content["rates"] = {
        event: {k: strict.plain(v) for k, v in rates.items()} for event, rates in content["rates"].items()
    }
    return content


def to_json(rule: Rule) -> str:
    """Return the rule as JSON text."""
    return json.dumps(to_dict(rule), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def fingerprint(rule: Rule) -> str:
    """SHA-256 of all that decides."""
    return _checksum({k: v for k, v in _content(rule).items() if k not in ("record", "columns")})


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def save(rule: Rule, path: str | os.PathLike[str]) -> None:
    """Write the rule to a file, whole or not at all."""
    write_text(Path(path), to_json(rule), "the rule")


def load(path: str | os.PathLike[str]) -> Rule:
    """Read a rule from a file."""
    return strict.read_file(path, from_json, "a rule", RuleFormatError)


def from_json(text: str) -> Rule:
    """Read a rule from JSON text."""
    try:
        content = json.loads(text, object_pairs_hook=strict.unique_fields, parse_constant=_constant)
    except RuleFormatError:
        raise
    except ValueError as error:
        if _is_cut(text, error):
            why = error if text.strip() else "for it is empty"
            raise RuleFormatError(
                f"The rule is cut short, as by an interrupted copy: not valid JSON, {why}; copy it again, or "
                "fit it again."
            ) from None
        raise RuleFormatError(f"Not a rule, because not valid JSON: {error}.") from None
    except RecursionError:
        raise RuleFormatError("Not a rule, because nested too deeply.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RuleFormatError(f'Not a rule: the field "format" is not "{FORMAT}".')
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise RuleFormatError(
            f"Rule version {shown(version)} is not understood; this library reads version "
            f"{VERSION}. Update fairramp or fit the rule again."
        )
    fields_ = ("format", "version", *_SETTINGS, "pooled", "groups", "record", "columns", "sha256")
    strict.check_names(content, fields_, "the rule")
    record = content["record"]
    try:
        groups = [_entry(entry) for entry in strict.items(content["groups"], '"groups"')]
        rule = Rule(
            groups=tuple(label for label, _ in groups),
            ramps=tuple(ramp for _, ramp in groups),
            ramp=strict.text(content["ramp"], '"ramp"'),
            scale=strict.text(content["scale"], '"scale"'),
            cutoff=strict.number(content["cutoff"], '"cutoff"'),
            max_gap=strict.share(content["max_gap"], '"max_gap"'),
            target_rate=None
            if content["target_rate"] is None
            else strict.share(content["target_rate"], '"target_rate"'),
            unseen_group=strict.text(content["unseen_group"], '"unseen_group"'),
            criterion=strict.text(content["criterion"], '"criterion"'),
            pooled=None if content["pooled"] is None else _ramp(content["pooled"], '"pooled"'),
            record=None if record is None else _record(record),
            columns=_columns(content["columns"]),
            stratified=strict.truth(content["stratified"], '"stratified"'),
        )
    except InputError as error:
        raise RuleFormatError(str(error)) from None
    if content["sha256"] != _checksum(_content(rule)):
        raise RuleFormatError(
            "The checksum does not fit the content: the rule is damaged or was changed by hand; fit it again, or "
            "change it in Python, with dataclasses.replace, and save it."
        )
    return rule


def _is_cut(text: str, error: ValueError) -> bool:
    """Whether a text that is no JSON begins like a rule and has no end."""
    body = text.rstrip()
    if not isinstance(error, json.JSONDecodeError) or error.msg == "Extra data":
        return False
    return not body or (body.lstrip().startswith("{") and (not body.endswith("}") or error.pos >= len(body)))


def _constant(name: str) -> float:
    raise RuleFormatError(f"{name} is not a number that a rule can hold.")


def _columns(content: Any) -> Columns:
    strict.check_names(content, ("score", "groups", "strata"), '"columns"')
    several = strict.optional(strict.many(strict.text))
    return Columns(
        strict.optional(strict.text)(content["score"], '"score"'),
        several(content["groups"], '"groups"'),
        several(content["strata"], '"strata"'),
    )


def _ramp(content: Any, where: str) -> Ramp:
    strict.check_names(content, ("foot", "width", "tie"), where)
    return Ramp(*(strict.number(content[name], f'"{name}"') for name in ("foot", "width", "tie")))


def _entry(content: Any) -> tuple[Label, Ramp]:
    where = "a group"
    strict.check_names(content, ("label", "foot", "width", "tie"), where)
    label = strict.label(content["label"])
    return label, _ramp({k: v for k, v in content.items() if k != "label"}, where)


def _target(value: Any, where: str) -> str | float:
    if value in TARGETS and isinstance(value, str):
        return value
    return strict.share(value, where)


def _solver(value: Any, where: str) -> str:
    if value not in ("exact", "sgd"):
        raise RuleFormatError(f'{where} must be "exact" or "sgd", got {shown(value)}.')
    return str(value)


_RATES: dict[str, Callable[[Any, str], Any]] = {
    "rows": strict.many(strict.whole),
    "effective_rows": strict.many(strict.nonnegative),
    "rows_above": strict.many(strict.whole),
    "rows_inside": strict.many(strict.whole),
    "before": strict.many(strict.share),
    "after": strict.many(strict.share),
    "error": strict.many(strict.share),
}
_RECORD: dict[str, Callable[[Any, str], Any]] = {
    "strata": strict.optional(strict.many(strict.whole)),
    "target": _target,
    "ramp_width": strict.nonnegative,
    "weighted": strict.truth,
    "cross_fitted": strict.truth,
    "solver": _solver,
    "trace": strict.optional(strict.many(strict.many(strict.number))),
    "fingerprint": strict.text,
    "version": strict.text,
    "date": strict.optional(strict.text),
}


def _record(content: Any) -> FitRecord:
    strict.check_names(content, tuple(f.name for f in fields(FitRecord)), "the record")
    read = {name: kind(content[name], f'"{name}"') for name, kind in _RECORD.items()}
    strict.check_names(content["rates"], ("selection",), "the rates")
    strict.check_names(content["rates"]["selection"], tuple(_RATES), "the rates")
    rates = {name: kind(content["rates"]["selection"][name], f'"{name}"') for name, kind in _RATES.items()}
    lengths = {len(values) for values in rates.values()}
    if len(lengths) > 1:
        raise RuleFormatError("The lists of the record differ in length.")
    for name, found in (("strata", [read["strata"]]), ("trace", read["trace"] or [])):
        if any(values is not None and len(values) not in lengths for values in found):
            raise RuleFormatError(f'"{name}" of the record must have one entry per group.')
    if (read["trace"] is None) != (read["solver"] == "exact"):
        raise RuleFormatError('A record has a "trace" if and only if its "solver" is "sgd".')
    for n, above, inside in zip(rates["rows"], rates["rows_above"], rates["rows_inside"], strict=True):
        if above + inside > n:
            raise RuleFormatError(f'"rows_above" and "rows_inside" are {above + inside} of only {n} rows.')
    return FitRecord(rates={"selection": Rates(**rates)}, **read)
