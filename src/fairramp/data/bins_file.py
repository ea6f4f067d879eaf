"""Summaries as JSON files that know whether they are whole.

    {"format": "fairramp.summary", "version": 1,
     "scale": …, "resolution": …, "cutoff": …, "weighted": …, "stratified": …,
     "score_column": …, "group_columns": …, "strata_columns": …,
     "groups": [{"label": …, "bin": […], "rows": […], "weight": …, "weight_squares": …, "mean": […],
                 "one_score": […]}, …],
     "sha256": "…"}

A group's lists have one entry per bin that has rows; bins are counted from the lowest score on, and the one
that the cut-off divides counts as two. "one_score" names the bins of several rows that all have the mean as
their score. Without weights, "weight" and "weight_squares" are null. The checksum is that of all other fields,
written as here. It finds damage, not malice: who can change a file can compute it anew. Text, not bytes, so
that who must not let rows out can see what goes out. Reading is strict, as for rules.
"""

import hashlib
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fairramp.core.labels import Label, canonical_label, label_key
from fairramp.core.points import Points, Summary, concatenated
from fairramp.data import strict_json as strict
from fairramp.data.bins import GroupScores
from fairramp.data.columns import Columns
from fairramp.data.files import write_text
from fairramp.data.grid import Grid
from fairramp.data.sample import LARGEST_WEIGHT
from fairramp.errors import InputError, RuleFormatError, SummaryFormatError, shown

__all__ = ["from_text", "load", "save", "to_text"]

FORMAT = "fairramp.summary"
VERSION = 1

_FIELDS = (
    "format",
    "version",
    "scale",
    "resolution",
    "cutoff",
    "weighted",
    "stratified",
    "score_column",
    "group_columns",
    "strata_columns",
    "groups",
    "sha256",
)
_GROUP_FIELDS = ("label", "bin", "rows", "weight", "weight_squares", "mean", "one_score")


def to_text(scores: GroupScores) -> str:
    """Return the summary as the text of its file."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "scale": scores.scale,
        "resolution": scores.resolution,
        "cutoff": scores.cutoff,
        "weighted": scores.weighted,
        "stratified": scores.stratified,
        "score_column": scores.columns.score,
        "group_columns": strict.plain(scores.columns.groups),
        "strata_columns": strict.plain(scores.columns.strata),
        "groups": _groups(scores),
    }
    return _json({**content, "sha256": _checksum(content)}) + "\n"


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(_json(content).encode("utf-8", "surrogatepass")).hexdigest()


def _groups(scores: GroupScores) -> list[dict[str, Any]]:
    summary = scores.summary
    p, stop = summary.points, np.cumsum(summary.sizes)
    bins = scores.grid.bins(p.lower)
    entries = []
    for label, part in zip(summary.labels, map(slice, stop - summary.sizes, stop), strict=True):
        entries.append(
            {
                "label": strict.plain(label),
                "bin": bins[part].tolist(),
                "rows": p.rows[part].tolist(),
                "weight": p.weight[part].tolist() if scores.weighted else None,
                "weight_squares": p.weight_squares[part].tolist() if scores.weighted else None,
                "mean": p.place[part].tolist(),
                "one_score": bins[part][(p.exact & (p.rows > 1))[part]].tolist(),
            }
        )
    return entries


def save(scores: GroupScores, path: str | os.PathLike[str]) -> None:
    """Write the summary to a file, whole or not at all."""
    write_text(Path(path), to_text(scores), "the summary")


def load(path: str | os.PathLike[str]) -> GroupScores:
    """Read a summary from a file."""
    return strict.read_file(path, from_text, "a summary", SummaryFormatError)


def from_text(text: str) -> GroupScores:
    """Read a summary from the text of its file."""
    try:
        return _read(json.loads(text, object_pairs_hook=strict.unique_fields, parse_constant=_constant))
    except (RuleFormatError, InputError) as error:
        raise SummaryFormatError(str(error)) from None
    except SummaryFormatError:
        raise
    except ValueError as error:
        raise SummaryFormatError(f"Not a summary, or cut off: not valid JSON, {error}.") from None
    except RecursionError:
        raise SummaryFormatError("Not a summary, because nested too deeply.") from None


def _constant(name: str) -> float:
    raise SummaryFormatError(f"{name} is not a number that a summary can hold.")


def _read(content: Any) -> GroupScores:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise SummaryFormatError(f'Not a summary: the field "format" is not "{FORMAT}".')
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise SummaryFormatError(
            f"Summary version {shown(version)} is not understood; this library reads version {VERSION}. "
            "Update fairramp or summarise the rows again."
        )
    strict.check_names(content, _FIELDS, "the summary")
    found = content.pop("sha256")
    if found != _checksum(content):
        raise SummaryFormatError("The checksum does not fit the content: the file is damaged or was changed.")
    grid = Grid.checked(content["scale"], content["resolution"], strict.number(content["cutoff"], '"cutoff"'))
    weighted = strict.truth(content["weighted"], '"weighted"')
    stratified = strict.truth(content["stratified"], '"stratified"')
    names = Columns(
        strict.optional(strict.text)(content["score_column"], '"score_column"'),
        strict.optional(strict.many(strict.text))(content["group_columns"], '"group_columns"'),
        strict.optional(strict.many(strict.text))(content["strata_columns"], '"strata_columns"'),
    )
    entries = strict.items(content["groups"], '"groups"')
    if not entries:
        raise SummaryFormatError("A summary needs at least one group.")
    labels, parts = [], []
    for i, entry in enumerate(entries):
        strict.check_names(entry, _GROUP_FIELDS, "a group")
        label = canonical_label(strict.label(entry["label"]))
        if stratified and not (isinstance(label, tuple) and len(label) == 2):
            raise SummaryFormatError("The groups of a summary with strata must be pairs (stratum, group).")
        labels.append(label)
        parts.append(_points(entry, i, grid, weighted, label))
    keys = [label_key(label) for label in labels]
    if any(not a < b for a, b in pairwise(keys)):
        raise SummaryFormatError("The groups of a summary must differ and be in order.")
    return GroupScores(grid, Summary(tuple(labels), concatenated(parts)), weighted, stratified, names)


def _points(entry: dict[str, Any], group: int, grid: Grid, weighted: bool, label: Label) -> Points:
    where = f"group {shown(label)}"

    def numbers(name: str) -> Any:
        return np.array(strict.many(strict.number)(entry[name], f'"{name}" of {where}'), dtype=np.float64)

    bins, rows = (strict.many(strict.whole)(entry[name], f'"{name}" of {where}') for name in ("bin", "rows"))
    if not bins:
        raise SummaryFormatError(f"{where.capitalize()} has no rows.")
    if any(not a < b for a, b in pairwise(bins)) or bins[-1] >= len(grid.edges):
        raise SummaryFormatError(f'"bin" of {where} must be in order and below {len(grid.edges)}.')
    if min(rows, default=0) < 1 or sum(rows) >= 1 << 62:
        raise SummaryFormatError(f'"rows" of {where} must be counts from 1 on.')
    for name in ("weight", "weight_squares"):
        if (entry[name] is None) == weighted:
            raise SummaryFormatError(f'"{name}" of {where} must be null if and only if rows have no weights.')
    weight = numbers("weight") if weighted else np.array(rows, dtype=np.float64)
    squares = numbers("weight_squares") if weighted else weight
    mean = numbers("mean")
    if {len(bins)} != {len(values) for values in (rows, weight, squares, mean)}:
        raise SummaryFormatError(f"The lists of {where} differ in length.")
    if not ((weight > 0) & (weight < LARGEST_WEIGHT * np.array(rows)) & (squares >= 0)).all():
        raise SummaryFormatError(f"The weights of {where} must be positive and below {LARGEST_WEIGHT:g}.")
    if (squares > weight * weight * (1 + 1e-9)).any():
        raise SummaryFormatError(f'"weight_squares" of {where} must be at most the squares of "weight".')
    several = {bin_ for bin_, n in zip(bins, rows, strict=True) if n > 1}
    one = strict.many(strict.whole)(entry["one_score"], f'"one_score" of {where}')
    if any(not a < b for a, b in pairwise(one)) or not several.issuperset(one):
        raise SummaryFormatError(f'"one_score" of {where} must be in order and name bins of several rows.')
    index, counts = np.array(bins, dtype=np.intp), np.array(rows, dtype=np.intp)
    bounds = grid.scale.lowest, grid.scale.highest
    if not np.array_equal(grid.bins(np.clip(mean, *bounds)), index) or (np.clip(mean, *bounds) != mean).any():
        raise SummaryFormatError(f"A mean of {where} lies outside its bin.")
    one_score = (counts == 1) | np.isin(index, one)
    return grid.filled(np.full(len(bins), group), index, mean, one_score, counts, weight, squares)
