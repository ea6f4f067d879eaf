"""What commands do alike: find the columns, open the data, check and write outputs.

Imports of anything heavy stand inside the functions.
"""

import contextlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairramp._version import __version__

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from fairramp.cli.engine import Columns, Job
    from fairramp.measure.audit import Audit
    from fairramp.rule.rule import Rule

__all__ = [
    "PICTURES",
    "check_output",
    "columns_of",
    "dash",
    "drawing",
    "in_order",
    "load_rule",
    "named",
    "need_rows",
    "number_or_word",
    "opened",
    "output_delimiter",
    "plain",
    "rows_of",
    "show_audit",
    "show_heading",
    "stamp",
    "width_of",
    "write_picture",
    "write_stream",
    "write_table",
]

#: Pictures that a frontier can be written as.
PICTURES = (".svg", ".png", ".html")
#: Version of what --json prints.
_JSON = 1


def stamp(command: str) -> dict[str, Any]:
    """What every JSON object begins with."""
    return {"command": command, "format": _JSON, "fairramp": __version__}


def dash(path: str) -> str:
    """A path as the user typed it."""
    from fairramp.cli.tables import STDIN, STDOUT

    return "-" if path in (STDIN, STDOUT) else path


def width_of(ramp_width: float | None, scale: str | None) -> float:
    """A ramp width as the library has it: for percentages, points are hundredths of a probability."""
    if scale != "percent":
        return 0.01 if ramp_width is None else ramp_width
    return 0.01 if ramp_width is None else ramp_width / 100


def _plain_delimiter(delimiter: str) -> str:
    return {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)


def output_delimiter(job: "Job", delimiter: str | None, decimal: str | None) -> str:
    """Of CSV outputs: as in DATA if that is CSV, or else as asked for."""
    if job.source.format == "csv" and job.source.delimiter != "\t":
        return job.source.delimiter
    if job.source.format != "csv" and delimiter is not None:
        return _plain_delimiter(delimiter)
    return ";" if decimal == "," or job.score.comma else ","


def number_or_word(text: str) -> str | float:
    """A number if it is one, or else the word."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def load_rule(path: str, command: str | None = None) -> "Rule":
    """A rule from its file; `command` is one that takes data behind it."""
    from fairramp.cli.tables import TableError, format_of
    from fairramp.errors import RuleFormatError
    from fairramp.rule.rule import Rule

    try:
        return Rule.load(path)
    except RuleFormatError:
        if format_of(path) in ("json", None) and not path.lower().endswith((".xlsx", ".xls")):
            raise
        usage = f"the rule comes first, as in: fairramp {command} RULE DATA"
        raise TableError(
            f"{path} is not a rule; {usage if command else 'name a file that fairramp fit has written.'}"
        ) from None
    except FileNotFoundError:
        raise TableError(f"There is no rule {path}; make one with: fairramp fit") from None
    except OSError as error:
        raise TableError(f"Cannot read the rule {path}: {error.strerror}.") from None


def columns_of(
    rule: "Rule | None",
    score: str | None,
    group: list[str] | None,
    *,
    label: str | None = None,
    weight: str | None = None,
    strata: list[str] | None = None,
    id: str | None = None,
) -> "Columns":
    """The columns to use: as named, or else as the rule remembers them."""
    from fairramp.cli.engine import Columns
    from fairramp.cli.tables import TableError

    record = rule.record if rule else None
    score = score or (record.score_column if record else None)
    names = tuple(group or ()) or (rule.group_columns if rule else None)
    within = tuple(strata or ()) or (rule.strata_columns if rule else None) or ()
    if score is None or not names:
        option = "--score" if score is None else "--group"
        raise TableError(f"{option} is missing: name the column that holds the {option[2:]}s.")
    if rule and within and rule.criterion == "parity":
        raise TableError("--strata are not known to this rule, which equalises over all rows; leave them out.")
    return Columns(score, names, within, label, weight, id)


@contextlib.contextmanager
def opened(
    screen: Any,
    data: str,
    columns: "Columns",
    scale: str | None,
    decimal: str | None,
    delimiter: str | None,
    rule: "Rule | None" = None,
    positive: str | None = None,
) -> "Iterator[tuple[DuckDBPyConnection, Job]]":
    """DATA, read through once and found sound."""
    from fairramp.cli.engine import conversion, prepare
    from fairramp.cli.tables import TableError, connect, open_table

    if delimiter is not None:
        delimiter = _plain_delimiter(delimiter)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise TableError(f"--delimiter must be one character, or the word tab, got {delimiter!r}.")
    if rule is not None and scale not in (None, rule.scale):
        raise TableError(
            f"--scale {scale} does not fit the rule, which was fitted on the scale {rule.scale!r}; leave it out "
            f"and {conversion(str(scale), rule.scale)}, or fit again with --scale {scale}."
        )
    if positive is not None and columns.label is None:
        raise TableError("--positive needs --label, the column with the true outcomes.")
    scale = scale or (rule.scale if rule else "probability")
    with connect() as connection, open_table(connection, data, delimiter=delimiter) as source:
        with screen.progress(connection, "Looking at the rows"):
            job = prepare(
                source,
                columns,
                scale=scale,
                decimal=decimal,
                positive=positive,
                rule=rule,
            )
        if scale == "percent" and job.rows and (job.score.highest or 0.0) <= 1:
            screen.warn(
                f"no score of {job.source.shown} is above 1 percent; are they probabilities, where 0.6 means 60 "
                "percent?"
            )
        yield connection, job


def need_rows(job: "Job") -> None:
    """Refuse data without rows."""
    from fairramp.cli.tables import TableError

    if not job.rows:
        raise TableError(f"{job.source.shown} has a header and no rows.")


def check_output(path: str, *, pictures: bool = False) -> None:
    """Refuse an output that cannot be written, before the work."""
    from fairramp.cli.tables import check_target, is_stream, writable_format

    if is_stream(path):
        return
    if not (pictures and path.lower().endswith(PICTURES)):
        writable_format(path)
    check_target(path)


def drawing(
    screen: Any, id: str | None, key_file: str | None, seed: int | None, probability_only: bool
) -> tuple[str | None, bool]:
    """The key to draw with, if decisions are wanted, and whether rows are drawn by number."""
    from fairramp.cli.engine import seed_key
    from fairramp.cli.secret import ENVIRONMENT, read_key
    from fairramp.cli.tables import TableError

    if probability_only:
        if seed is not None or key_file is not None:
            raise TableError("--probability-only draws nothing; leave out --key-file and --random-seed.")
        return None, False
    if seed is not None:
        if id is not None or key_file is not None:
            raise TableError("Pass either --id and --key-file, or --random-seed, not both.")
        if seed < 0:
            raise TableError(f"--random-seed must be a whole number from 0 on, got {seed}.")
        return seed_key(seed), True
    if id is None:
        if key_file is not None:
            raise TableError("--key-file needs --id, the column that says who each row is.")
        return None, False
    key, warning = read_key(key_file)
    if key is None:
        raise TableError(
            f"--id needs the secret key: pass --key-file FILE (fairramp keygen makes one) or set {ENVIRONMENT}."
        )
    if warning:
        screen.warn(warning)
    return key, False


def named(columns: "Columns") -> dict[str, Any]:
    """The names of the columns, for JSON."""
    return {
        "score_column": columns.score,
        "group_columns": list(columns.group),
        "strata_columns": list(columns.strata) or None,
    }


def rows_of(rule: "Rule") -> list[dict[str, Any]]:
    """A rule's table with labels as JSON has them."""
    rows = list(rule.table().rows())
    return [{k: list(v) if isinstance(v, tuple) else v for k, v in row.items()} for row in rows]


def show_heading(screen: Any, rows: tuple[int, ...], columns: "Columns", data: str) -> None:
    """Say which rows a table is about."""
    from fairramp.cli.render import count
    from fairramp.cli.tables import STDIN

    by = " / ".join([*columns.strata, *columns.group])
    screen.heading(f"{count(sum(rows), 'row')} of {'stdin' if data == STDIN else data}, by {by}")
    screen.text()


def show_audit(
    screen: Any, found: "Audit", columns: "Columns", data: str, *, decided: bool, every: bool = False
) -> None:
    """Show what was measured."""
    from fairramp.cli.render import wrapped
    from fairramp.core.cells import stratum_index
    from fairramp.core.labels import show_label
    from fairramp.core.table import Table, percentage
    from fairramp.show.sentences import comparison
    from fairramp.show.words import plain_name

    show_heading(screen, found.rows, columns, data)
    screen.table(found.table(), every=every, more="with --all")
    if found.selection.accuracy is not None:
        screen.text()
        if found.after:
            screen.text("errors after the rule:")
        screen.table(found.errors(), every=every)
    screen.text()
    gaps = found.gaps()
    screen.table(Table(gaps.to_dict() | {"decisions": ["as given"]}) if decided else gaps)
    screen.text()
    names = tuple(plain_name(show_label(label)) for label in found.groups)
    strata = stratum_index(found.groups) if found.within_strata else None
    own = f"before, yes from {found.cutoff:g} on ({'as in the rule' if found.after else '--cutoff'})"
    for word, chosen in (("as given" if decided else own, found.before), ("after", found.after)):
        if chosen:
            screen.text(plain(wrapped(f"{word}: {comparison(chosen.rate, names, strata, found.rows)}")))
    screen.text()
    last = f"limits at {percentage(found.confidence)} confidence"
    if found.randomised is not None:
        last += f"; {found.randomised:.2%} of the decisions are drawn"
    screen.text(last)


def in_order(arrays: dict[str, Any]) -> dict[str, Any]:
    """Rows sorted, so that the same file gives the same bytes whatever order the threads read it in."""
    import numpy as np

    within = arrays["strata"]
    keys = [arrays["sample_weight"], arrays["labels"], arrays["scores"]]
    keys += [None if within is None else within.values, arrays["groups"].values]
    order = np.lexsort([key for key in keys if key is not None])
    return {name: _taken(values, order) for name, values in arrays.items()}


def _taken(values: Any, order: Any) -> Any:
    from dataclasses import replace

    from fairramp.data.groups import Codes

    if isinstance(values, Codes):
        return replace(values, values=values.values[order])
    return None if values is None else values[order]


def plain(text: str) -> str:
    """Without the marks that keep names apart from the words around them."""
    return "".join(c for c in text if c not in "\u2068\u2069").replace("\u00a0", " ")


def write_stream(path: str, text: str) -> None:
    """Write text to a file or to standard output."""
    from fairramp.cli.tables import STDOUT

    if path == STDOUT:
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


def write_picture(chart: Any, path: str) -> None:
    """Write a chart to a file."""
    from fairramp.cli.tables import replacing
    from fairramp.show.pieces import missing_extra

    kind = path.lower().rpartition(".")[2]
    if find_spec("vl_convert") is None:
        raise missing_extra("vl-convert-python")
    with replacing(path) as temporary:
        chart.save(temporary, format=kind, **({"inline": True} if kind == "html" else {}))


def write_table(table: Any, path: str) -> None:
    """A small table as a file, through the same door as the large ones."""
    from fairramp.cli.tables import connect, write

    names = table.columns
    with connect() as connection:
        values = ", ".join(
            "(" + ", ".join(f"CAST('{value!r}' AS DOUBLE)" for value in row.values()) + ")"
            for row in table.rows()
        )
        aliases = ", ".join(f"c{i}" for i in range(len(names)))
        write(connection, f"SELECT * FROM (VALUES {values}) AS t({aliases})", names, path)
