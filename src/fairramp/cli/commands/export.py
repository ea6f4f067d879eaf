"""`fairramp export`: a rule as SQL, ONNX, torch or JSON."""

from typing import Annotated, Literal

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    Json,
    Names,
    Quiet,
    RuleFile,
)
from fairramp.cli.render import STDOUT, Screen, count, spoken


def export(
    rule: RuleFile,
    /,
    *,
    to: Annotated[str, Parameter(help="The form: sql, onnx, torch, or json, the rule without its record.")],
    dialect: Annotated[
        str | None,
        Parameter(help="Which SQL: duckdb, postgres, spark, snowflake, bigquery or sqlite."),
    ] = None,
    output: Annotated[
        str | None,
        Parameter(
            name=OUTPUT, help="Where it goes; sql and json go to stdout unless given, and what is said to stderr."
        ),
    ] = None,
    table: Annotated[str | None, Parameter(help="SQL: a whole SELECT from this table.")] = None,
    view: Annotated[str | None, Parameter(help="SQL: CREATE VIEW with this name, over --table.")] = None,
    replace: Annotated[
        bool, Parameter(help="SQL: let it replace an earlier view.", negative="", show_default=False)
    ] = False,
    id: Annotated[str | None, Parameter(help="SQL: column that says who a row is, for decisions.")] = None,
    key_table: Annotated[
        str | None, Parameter(help="SQL: table of one row that holds the secret key; never the key itself.")
    ] = None,
    key_column: Annotated[str | None, Parameter(help="SQL: column of that table; key unless given.")] = None,
    decisions: Annotated[
        bool, Parameter(help="ONNX and torch: take draws and give decisions.", negative="", show_default=False)
    ] = False,
    model: Annotated[
        str | None, Parameter(help="ONNX: the classifier's own model, which the rule is joined to.")
    ] = None,
    column: Annotated[
        int | None, Parameter(help="ONNX: which column of the classifier's output; the second of two.")
    ] = None,
    score_type: Annotated[
        Literal["float64", "float32"] | None, Parameter(help="ONNX: type of the scores; float64 unless given.")
    ] = None,
    missing: Annotated[
        str | None, Parameter(help="ONNX: what stands for a missing group, which tensors cannot hold.")
    ] = None,
    prefix: Annotated[str | None, Parameter(help="Put before the names of new columns.")] = None,
    score: Annotated[
        str | None, Parameter(help="Column or input with the scores; with --model, its output. As in the fit.")
    ] = None,
    group: Annotated[Names, Parameter(help="Column or input with the group; as in the fit.")] = None,
    strata: Annotated[Names, Parameter(help="Column or input with the stratum; as in the fit.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a rule as SQL, as an ONNX model or as a torch program, with the same answers.

    For example:

    fairramp export rule.json --to sql --dialect duckdb --table scores -o rule.sql
    """
    from fairramp.cli import exports, library

    target = output or STDOUT
    screen = Screen(json=json, quiet=quiet, to_stderr=target == STDOUT)
    options = {
        "dialect": dialect,
        "table": table,
        "view": view,
        "replace": replace or None,
        "id": id,
        "key_table": key_table,
        "key_column": key_column,
        "decisions": decisions or None,
        "model": model,
        "column": column,
        "score_type": score_type,
        "missing": missing,
        "prefix": prefix,
        "score": score,
        "group": group or None,
        "strata": strata or None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    known = library.load_rule(rule)
    exports.check(to, output, rule, given)
    notes = exports.export(known, to, output, given)
    form = {"sql": f"SQL for {dialect}", "onnx": "an ONNX model", "torch": "a torch program", "json": "JSON"}[to]
    screen.say(
        f"The rule for {count(len(known.groups), 'group')} as {form}, written to {spoken(target)}.\n",
        f"fingerprint {known.fingerprint}",
        *notes,
    )
    screen.result("export", rule=rule, to=to, dialect=dialect, output=target, rule_fingerprint=known.fingerprint)
