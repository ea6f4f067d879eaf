"""Exports of a rule: SQL, a dbt macro and JSON as text, ONNX and torch as files for a model server.

Files are written whole or not at all, and only replace earlier exports of the same kind. No key is read here: SQL
names the table that holds it, and models take random draws as input.
"""

import mmap
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairramp.cli.naming import probabilities_of
from fairramp.cli.outputs import check_output, is_stream, keep_others, write_text
from fairramp.cli.prepare import is_whole
from fairramp.cli.render import STDIN
from fairramp.core.checks import check_option, meant
from fairramp.core.labels import show_label
from fairramp.data.columns import blank_columns, prefixed
from fairramp.data.inputs import format_of
from fairramp.deploy.dbt import is_macro_name, to_macro
from fairramp.deploy.dialects import ALSO_CALLED, DIALECTS, dialect_of, identifier, literal, looks_like_key
from fairramp.deploy.plan import labels_by_column
from fairramp.errors import FairrampError, refuse, refuse_if
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule

_BLANK = "Empty strings are a group of this rule, but NULL is not: load empty cells as empty strings."
#: How decisions are made in SQL.
_DECIDE = "For decisions, pass --id COLUMN and --key-table TABLE"
_NAMES = ("score", "group", "group_probability", "strata", "prefix")
#: Options of each format.
_OPTIONS = {
    "sql": ("dialect", "table", "view", "replace", "id", "key_table", "key_column", *_NAMES),
    "dbt": ("dialect", "id", "key_table", "key_column", *_NAMES),
    "onnx": ("decisions", "model", "column", "score_type", "missing", *_NAMES),
    "torch": ("decisions",),
    "json": (),
}
#: What a torch program takes in place of groups, by membership, and what it means.
_TORCH = {
    "known": (
        "groups (int64 codes)",
        "Group codes: 0 to {last}, in the order of the rule's groups; any other code is an unseen group.",
    ),
    "probabilities": (
        "groups (float64, one column per group)",
        "Group probabilities: {n} columns, in the order of the rule's groups.",
    ),
    "each": (
        "groups (int64 codes, one column per attribute)",
        "Codes: from 0, in the order of each attribute's values; any other code is an unseen value.",
    ),
}
_ENDINGS = {"onnx": ".onnx", "torch": ".pt2"}
#: Bytes that identify an earlier export: at the start of texts, anywhere in the others.
_MARKS = {
    "sql": b"-- A fairramp rule",
    "dbt": b"{# A fairramp rule",
    "onnx": b"fairramp.rule",
    "torch": b"fairramp.rule.json",
}


def check(known: Rule | ClassRule, to: str, output: str | None, rule: str, given: dict[str, Any]) -> None:
    """Reject formats and options that do not fit the rule, and outputs that must not be overwritten."""
    if to in ("sql", "dbt") and isinstance(known, ClassRule):
        known.to_sql()
    if to not in _OPTIONS:
        dialect = ALSO_CALLED.get(to.lower(), to if to in DIALECTS else None)
        dialect = dialect or (None if meant(to, _OPTIONS) else meant(to, DIALECTS))
        refuse_if(dialect, "{to} is an SQL dialect: write --to sql --dialect {dialect}", to=to, dialect=dialect)
        check_option("to", to, _OPTIONS)
    for name in given:
        refuse(
            {
                f"works with --to {{forms}}, not with --to {{to}}. {_DECIDE}": name == "decisions"
                and to in ("sql", "dbt"),
                "works with --to {forms}, not with --to {to}; leave it out": name not in _OPTIONS[to],
                "must be a name, and this looks like a key: store the key in a one-row table and pass the name "
                "of the table. The key may now be in the history of your shell": name
                in ("key_table", "key_column")
                and looks_like_key(given[name]),
            },
            argument=name,
            forms=" or ".join(", ".join(form for form in _OPTIONS if name in _OPTIONS[form]).rsplit(", ", 1)),
            to=to,
        )
    _check_table(given)
    table, ending = str(given.get("key_table", "")), _ENDINGS.get(to, "")
    reasons = {
        "--to sql needs --dialect, one of {dialects}": to == "sql" and "dialect" not in given,
        "--key-table {table} is a file, but the key is read in the database: pass the name of a one-row table "
        "there that holds the key": Path(table).is_file() or table.lower().endswith(".txt"),
        "--score-type cannot be combined with --model, which has its own type of scores": {"model", "score_type"}
        <= set(given),
        "--column needs --model, the classifier whose output it selects from": "column" in given
        and "model" not in given,
        "--to dbt names the macro after its file: pass -o macros/NAME.sql, where NAME consists of letters, "
        "digits and underscores": to == "dbt"
        and not ((output or "").endswith(".sql") and is_macro_name(Path(str(output)).stem)),
        "--to {to} writes a binary file: pass -o FILE{ending}": ending
        and not (output or "").lower().endswith(ending),
    }
    refuse(reasons, dialects=", ".join(DIALECTS), table=table, to=to, ending=ending)
    if output is None or is_stream(output):
        return
    check_output(output, STDIN, {"the rule": rule, "--model": given.get("model")})
    path, mark = Path(output), _MARKS.get(to, b"")
    if to == "json":
        keep_others(output, replace=True)
    elif path.is_file() and path.stat().st_size:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            earlier = content[: len(mark)] == mark if to in ("sql", "dbt") else content.find(mark) >= 0
        refuse_if(
            not earlier,
            "{path} exists and is not an earlier export, so it is not overwritten; choose another file or delete "
            "it",
            path=path,
        )


def _check_table(given: dict[str, Any]) -> None:
    """Reject a file in place of the table that SQL reads."""
    table = given.get("table", "")
    view = identifier(re.sub(r"\W", "_", Path(table).name.partition(".")[0]).strip("_") or "scores")
    refuse_if(
        format_of(table),
        "must be the name of a table or view, and {file} is a file; load it first, in DuckDB with: {how}",
        argument="table",
        file=table,
        how=f"CREATE VIEW {view} AS FROM {literal(table)}",
    )


def export(rule: Rule | ClassRule, to: str, output: str | None, given: dict[str, Any]) -> list[str]:
    """Write the export; return sentences about its inputs and outputs."""
    if "group_probability" in given:
        given = given | {"group_probability": _probable(rule, to, given["group_probability"])}
    match to:
        case "sql" | "dbt" if isinstance(rule, Rule):
            text = rule.to_sql(**given) if to == "sql" else to_macro(rule, Path(str(output)).stem, **given)
            write_text(output, text, "the rule")
            names = ("score", "group", "strata", "id", "group_probability")
            blank = blank_columns(labels_by_column(rule, rule.reading(*map(given.get, names))))
            return [
                *([f"Macro: {Path(str(output)).stem}."] if to == "dbt" else []),
                _columns(given),
                *([_BLANK] if blank else []),
                *dialect_of(given.get("dialect", "duckdb")).untested,
            ]
        case "json":
            write_text(output, replace(rule, record=None).to_json(), "the rule")
            return ["The record of the fit (row counts and rates of the groups) is left out."]
        case "onnx":
            return _onnx(rule, output, given)
    try:
        from fairramp.deploy.torch import save
    except ImportError as error:
        raise FairrampError("{error}", error=error) from None
    save(rule, str(output), **given)
    drawn = given.get("decisions")
    several = ", one column per class" if isinstance(rule, ClassRule) else ""
    return [
        f"Inputs: scores (float64{several}), {_TORCH[rule.membership][0]}{', u (float64)' if drawn else ''}.",
        _TORCH[rule.membership][1].format(n=len(rule.groups), last=len(rule.groups) - 1),
        *_gives(rule, "", drawn),
    ]


def _columns(given: dict[str, Any]) -> str:
    """Which columns the SQL gives."""
    chance, decision = prefixed(given.get("prefix", ""), ("probability", "decision"))
    if "id" in given:
        return f"Columns: {chance} and {decision}."
    can_draw = dialect_of(given.get("dialect", "duckdb")).draw is not None
    return f"Column: {chance}.{f' {_DECIDE}.' if can_draw else ''}"


def _probable(rule: Rule | ClassRule, to: str, texts: list[str]) -> Any:
    """The columns of group probabilities by group, or for ONNX the one input that holds all of them."""
    if to in ("sql", "dbt"):
        return probabilities_of(texts, rule.groups)
    refuse_if(
        len(texts) > 1 or "=" in texts[0],
        "must be one name with --to onnx: the input holds the probabilities of all groups",
        argument="group_probability",
        got=texts,
    )
    return texts[0]


def _onnx(rule: Rule | ClassRule, output: str | None, given: dict[str, Any]) -> list[str]:
    from fairramp.deploy.onnx import append_to, labels_by_input, to_onnx

    if "missing" in given:
        labels = labels_by_input(rule, given.get("group"), given.get("strata"))
        refuse_if(
            not any(None in column for column in labels.values()),
            "--missing represents missing groups, and the rule has none; leave it out",
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
    return [f"Inputs: {', '.join(takes)}.", *_gives(rule, given.get("prefix") or "", given.get("decisions"))]


def _gives(rule: Rule | ClassRule, prefix: str, drawn: Any) -> list[str]:
    """Sentences about the outputs."""
    columns, values = "", "1 or 0"
    if isinstance(rule, ClassRule):
        columns = f" (one column per class: {', '.join(map(show_label, rule.classes))})"
        values = f"0 to {len(rule.classes) - 1}, the position of a class"
    if not drawn:
        return [f"Output: {prefix}probability{columns}, NaN for rows that cannot be decided."]
    return [
        f"Outputs: {prefix}probability{columns} and {prefix}decision ({values}); NaN and -1 for rows that cannot "
        "be decided.",
        f"Compute {prefix}u with fairramp.draws(ids, key) where the key is stored; the file holds no key.",
    ]
