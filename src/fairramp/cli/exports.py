"""A rule in another form: text to paste, or a file that a model server runs.

Files appear whole or not at all, and replace nothing but an earlier file of the same kind. No key is read here:
SQL names the table that holds it, and graphs and modules take draws.
"""

import mmap
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairramp.cli.library import is_whole
from fairramp.cli.outputs import check_output, is_stream, keep_others, write_text
from fairramp.cli.render import STDIN, refuse, refuse_if
from fairramp.core.checks import check_option, meant
from fairramp.deploy.dialects import ALSO_CALLED, DIALECTS, looks_like_key
from fairramp.errors import FairrampError
from fairramp.rule.rule import Rule

_NAMES = ("score", "group", "strata", "prefix")
#: The options of each form.
_OPTIONS = {
    "sql": ("dialect", "table", "view", "replace", "id", "key_table", "key_column", *_NAMES),
    "onnx": ("decisions", "model", "column", "score_type", "missing", *_NAMES),
    "torch": ("decisions",),
    "json": (),
}
_ENDINGS = {"onnx": ".onnx", "torch": ".pt2"}
#: What a file of each form has inside, and SQL at its start.
_MARKS = {"sql": b"-- A fairramp rule", "onnx": b"fairramp.rule", "torch": b"fairramp.rule.json"}


def check(to: str, output: str | None, rule: str, given: dict[str, Any]) -> None:
    """Refuse options of another form, and outputs that must not be written."""
    if to not in _OPTIONS:
        dialect = to if to in DIALECTS else None if meant(to, _OPTIONS) else meant(to, DIALECTS, ALSO_CALLED)
        refuse_if(dialect, "--to {to} is written --to sql --dialect {dialect}", to=to, dialect=dialect)
        check_option("to", to, _OPTIONS)
    for name in given:
        refuse(
            {
                "is for --to {forms}, not for --to {to}; leave it out": name not in _OPTIONS[to],
                "is a name, and this looks like a key: put it into a one-row table. It may now stand in the "
                "history of your shell": name in ("key_table", "key_column") and looks_like_key(given[name]),
            },
            argument=name,
            forms=" or ".join(form for form, names in _OPTIONS.items() if name in names),
            to=to,
        )
    table, ending = str(given.get("key_table", "")), _ENDINGS.get(to, "")
    reasons = {
        "--to sql needs --dialect: {dialects}": to == "sql" and "dialect" not in given,
        "--key-table {table} is a file, and the key is read in the database: name a table there, with one row "
        "that holds the key": Path(table).is_file() or table.lower().endswith(".txt"),
        "--score-type is for a rule alone; with --model the scores are the model's own": {"model", "score_type"}
        <= set(given),
        "--column needs --model, the classifier whose scores have several columns": "column" in given
        and "model" not in given,
        "--to {to} writes a file that is no text: name it with -o FILE{ending}": ending
        and not (output or "").lower().endswith(ending),
    }
    refuse(reasons, dialects=", ".join(DIALECTS), table=table, to=to, ending=ending)
    if output is None or is_stream(output):
        return
    check_output(output, STDIN, {"the rule": rule, "--model": given.get("model")})
    path, mark = Path(output), _MARKS.get(to, b"")
    if to == "json":
        keep_others(output)
    elif path.is_file() and path.stat().st_size:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            earlier = content[: len(mark)] == mark if to == "sql" else content.find(mark) >= 0
        refuse_if(
            not earlier,
            "{path} exists and is no earlier export, so it is not overwritten; name another file or delete it",
            path=path,
        )


def export(rule: Rule, to: str, output: str | None, given: dict[str, Any]) -> list[str]:
    """Write; sentences that say what it takes and gives."""
    match to:
        case "sql":
            write_text(output, rule.to_sql(**given), "the rule")
            blank = rule.reading(*map(given.get, ("score", "group", "strata", "id"))).blank(rule.groups)
            return (
                ["empty cells are a group of this rule, NULL is none: load them as empty texts"] if blank else []
            )
        case "json":
            write_text(output, replace(rule, record=None).to_json(), "the rule")
            return ["without the record of the fit: rows and rates of groups"]
        case "onnx":
            return _onnx(rule, output, given)
    try:
        from fairramp.deploy.torch import save
    except ImportError as error:
        raise FairrampError("{error}", error=error) from None
    save(rule, str(output), **given)
    drawn = given.get("decisions")
    return [
        f"takes: scores (float64), groups (int64 codes){', u (float64)' if drawn else ''}",
        f"codes: 0 to {len(rule.groups) - 1}, in the order of the rule's groups; any other is an unseen group",
        *_gives(drawn),
    ]


def _onnx(rule: Rule, output: str | None, given: dict[str, Any]) -> list[str]:
    from fairramp.deploy.onnx import append_to, labels_by_input, to_onnx

    if "missing" in given:
        labels = labels_by_input(rule, given.get("group"), given.get("strata"))
        refuse_if(
            not any(None in column for column in labels.values()),
            "--missing stands for a group of missing values, and the rule has none; leave it out",
        )
        text = given["missing"]
        given["missing"] = {
            name: int(text) if is_whole(text) and not any(isinstance(label, str) for label in column) else text
            for name, column in labels.items()
        }
    own = given.pop("model", None)
    model = to_onnx(rule, output, **given) if own is None else append_to(own, rule, output, **given)
    names = {1: "float32", 11: "float64", 8: "text", 7: "int64", 9: "bool", 6: "int32", 2: "uint8", 3: "int8"}
    takes = (f"{put.name} ({names.get(put.type.tensor_type.elem_type, 'other')})" for put in model.graph.input)
    return [f"takes: {', '.join(takes)}", *_gives(given.get("decisions"))]


def _gives(drawn: Any) -> list[str]:
    if not drawn:
        return ["gives: probability, NaN where there is none"]
    return [
        "gives: probability, NaN where there is none; decision, 1 or 0, -1 where there is none",
        "u: fairramp.draws(ids, key), made where the key is; the file holds no key",
    ]
