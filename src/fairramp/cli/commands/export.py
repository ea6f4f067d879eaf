"""`fairramp export`: a rule as SQL, a dbt macro, ONNX, torch or JSON."""

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
    to: Annotated[
        str, Parameter(help="Format: sql, dbt, onnx, torch or json (the rule without the record of its fit).")
    ],
    dialect: Annotated[
        str | None,
        Parameter(
            help="SQL, dbt: duckdb (the default for dbt), postgres, spark, snowflake, bigquery, sqlite, mysql or "
            "mariadb; also common names such as postgresql and databricks."
        ),
    ] = None,
    output: Annotated[
        str | None,
        Parameter(
            name=OUTPUT,
            help="Output file; sql and json default to stdout, and a dbt macro has the name of its file.",
        ),
    ] = None,
    table: Annotated[str | None, Parameter(help="SQL: write a complete SELECT from this table.")] = None,
    view: Annotated[str | None, Parameter(help="SQL: write a CREATE VIEW with this name over --table.")] = None,
    replace: Annotated[
        bool, Parameter(help="SQL: replace an existing view with that name.", negative="", show_default=False)
    ] = False,
    id: Annotated[
        str | None, Parameter(help="SQL, dbt: column that identifies each person; needed for decisions.")
    ] = None,
    key_table: Annotated[
        str | None,
        Parameter(
            help="SQL, dbt: name of the one-row table that holds the secret key; do not pass the key itself."
        ),
    ] = None,
    key_column: Annotated[
        str | None, Parameter(help="SQL, dbt: column of --key-table with the key; default 'key'.")
    ] = None,
    decisions: Annotated[
        bool,
        Parameter(
            help="ONNX, torch: take random draws as input and also return decisions.",
            negative="",
            show_default=False,
        ),
    ] = False,
    model: Annotated[
        str | None, Parameter(help="ONNX: model file of the classifier to which the rule is appended.")
    ] = None,
    column: Annotated[
        int | None,
        Parameter(help="ONNX: index of the score column in the output of --model; default 1 if there are two."),
    ] = None,
    score_type: Annotated[
        Literal["float64", "float32"] | None, Parameter(help="ONNX: type of the scores; default float64.")
    ] = None,
    missing: Annotated[str | None, Parameter(help="ONNX: value that represents a missing group.")] = None,
    prefix: Annotated[
        str | None, Parameter(help="SQL, dbt, ONNX: prefix for the names of new columns or outputs.")
    ] = None,
    score: Annotated[
        str | None,
        Parameter(
            help="SQL, dbt, ONNX: column or input with the scores (with --model, the model's output); by "
            "default, as in the fit."
        ),
    ] = None,
    group: Annotated[
        Names, Parameter(help="SQL, dbt, ONNX: column or input with the group; by default, as in the fit.")
    ] = None,
    group_probability: Annotated[
        Names,
        Parameter(
            help="SQL, dbt: column with the probability of one group, as GROUP=COLUMN; repeat the option for "
            "every group. ONNX: name of the input with all of them. By default, as in the fit."
        ),
    ] = None,
    strata: Annotated[
        Names, Parameter(help="SQL, dbt, ONNX: column or input with the stratum; by default, as in the fit.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Export a rule as SQL, a dbt macro, ONNX, torch or JSON; all formats make the same decisions.

    For example:

    fairramp export rule.json --to sql --dialect duckdb --table scores -o rule.sql
    """
    from fairramp.cli import exports, naming
    from fairramp.deploy.dialects import DIALECTS, dialect_name

    to = to.lower()
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
        "group_probability": group_probability or None,
        "strata": strata or None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    known = naming.load_any_rule(rule)
    exports.check(known, to, output, rule, given)
    notes = exports.export(known, to, output, given)
    dialect = dialect and dialect_name(dialect)
    title = DIALECTS[dialect or "duckdb"].title
    texts = {"sql": f"SQL for {title}", "dbt": f"a dbt macro for {title}"}
    form = texts | {"onnx": "an ONNX model", "torch": "a torch program", "json": "JSON"}
    screen.say(
        f"Exported the rule for {count(len(known.groups), 'group')} as {form[to]}. Saved to {spoken(target)}.\n",
        f"Fingerprint: {known.fingerprint}",
        *notes,
    )
    screen.result("export", rule=rule, to=to, dialect=dialect, output=target, rule_fingerprint=known.fingerprint)
