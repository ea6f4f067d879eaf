"""What commands do alike: find the columns, open the data, read it, find the key."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fairramp.cli.engine import conversion, prepare
from fairramp.cli.render import Screen, refuse_if
from fairramp.cli.scan import Job
from fairramp.cli.secret import ENVIRONMENT, read_key
from fairramp.cli.tables import connect, format_of, open_table
from fairramp.data.columns import Columns
from fairramp.errors import FairrampError, RuleFormatError
from fairramp.rule.rule import Rule


def width_of(ramp_width: float | None, scale: str | None) -> float:
    """A ramp width as the library has it: for percentages, points are hundredths of a probability."""
    if ramp_width is None:
        return 0.01
    return ramp_width / 100 if scale == "percent" else ramp_width


def _plain_delimiter(delimiter: str) -> str:
    return {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)


def output_delimiter(job: Job, delimiter: str | None, decimal: str | None) -> str:
    """Of CSV outputs: as in DATA if that is CSV, or else as asked for."""
    if job.source.format == "csv" and job.source.delimiter != "\t":
        return job.source.delimiter
    if job.source.format != "csv" and delimiter is not None:
        return _plain_delimiter(delimiter)
    return ";" if decimal == "," or job.score.comma else ","


def load_rule(path: str, command: str | None = None) -> Rule:
    """A rule from its file; `command` is one that takes data behind it."""
    try:
        return Rule.load(path)
    except RuleFormatError:
        if format_of(path) in ("json", None) and not path.lower().endswith((".xlsx", ".xls")):
            raise
        usage = f"the rule comes first, as in: fairramp {command} RULE DATA"
        raise FairrampError(
            "{path} is not a rule; {usage}",
            path=path,
            usage=usage if command else "name a file that fairramp fit has written",
        ) from None
    except FileNotFoundError:
        raise FairrampError("There is no rule {path}; make one with: fairramp fit", path=path) from None
    except OSError as error:
        raise FairrampError("Cannot read the rule {path}: {why}", path=path, why=error.strerror) from None


def columns_of(
    rule: Rule | None,
    score: str | None,
    group: Sequence[str] | None,
    strata: Sequence[str] | None = None,
    id: str | None = None,
) -> Columns:
    """The columns to use: as named, or else as the rule remembers them."""
    known = rule.columns if rule else Columns()
    score, group = score or known.score, group or known.groups
    if not score or not group:
        raise FairrampError(
            "--{role} is missing: name the column that holds the {role}s", role="group" if score else "score"
        )
    if rule:
        return rule.reading(score, list(group), list(strata) if strata else None, id)
    return Columns().given(score, list(group), list(strata) if strata else None, id)


@contextlib.contextmanager
def opened(
    screen: Screen,
    data: str,
    columns: Columns,
    *,
    scale: str | None,
    decimal: str | None,
    delimiter: str | None,
    rule: Rule | None = None,
    label: str | None = None,
    positive: str | None = None,
    weight: str | None = None,
    may_be_empty: bool = False,
) -> Iterator[Job]:
    """DATA, read through once and found sound."""
    if delimiter is not None:
        delimiter = _plain_delimiter(delimiter)
        refuse_if(
            len(delimiter) != 1 or delimiter in '"\r\n',
            "must be one character, or the word tab",
            argument="delimiter",
            got=delimiter,
        )
    own = rule.scale if rule else scale or "probability"
    refuse_if(
        scale not in (None, own),
        "--scale {given} does not fit the rule, which was fitted on the scale {fitted!r}; leave it out and "
        "{conversion}, or fit again with --scale {given}",
        given=scale,
        fitted=own,
        conversion=conversion(str(scale), own),
    )
    refuse_if(
        positive is not None and label is None, "--positive needs --label, the column with the true outcomes"
    )
    numbers = {"--label": label, "--weight": weight}
    with connect() as connection, open_table(connection, data, delimiter=delimiter) as source:
        with screen.progress(connection, "Looking at the rows"):
            job = prepare(source, columns, numbers, scale=own, decimal=decimal, positive=positive, rule=rule)
        if own == "percent" and job.rows and job.score.highest <= 1:
            screen.warn(
                f"no score of {job.source.shown} is above 1 percent; are they probabilities, where 0.6 means 60 "
                "percent?"
            )
        refuse_if(not job.rows and not may_be_empty, "{where} has a header and no rows", where=source.shown)
        yield job


def read(
    screen: Screen,
    data: str,
    columns: Columns,
    *checks: Callable[[Job], None],
    ordered: bool = False,
    **how: Any,
) -> tuple[Job, dict[str, Any]]:
    """DATA, opened and checked, and its rows in memory, as `Job.arrays` has them."""
    with opened(screen, data, columns, **how) as job:
        for check in checks:
            check(job)
        with screen.progress(job.source.connection, "Reading"):
            return job, job.arrays(ordered=ordered)


def drawing(
    screen: Screen, id: str | None, key_file: str | None, seed: int | None, probability_only: bool
) -> tuple[str | None, bool]:
    """The key to draw with, if decisions are wanted, and whether rows are drawn by number."""
    if probability_only:
        refuse_if(
            seed is not None or key_file is not None,
            "--probability-only draws nothing; leave out --key-file and --random-seed",
        )
        return None, False
    if seed is not None:
        refuse_if(
            id is not None or key_file is not None, "Pass either --id and --key-file, or --random-seed, not both"
        )
        refuse_if(seed < 0, "must be a whole number from 0 on", argument="random_seed", got=seed)
        # A key for people without ids, whose rows are drawn by their number.
        return hashlib.sha256(f"fairramp random seed {seed}".encode()).hexdigest(), True
    if id is None:
        refuse_if(key_file is not None, "--key-file needs --id, the column that says who each row is")
        return None, False
    key, warning = read_key(key_file)
    refuse_if(
        key is None,
        "--id needs the secret key: pass --key-file FILE (fairramp keygen makes one) or set {variable}",
        variable=ENVIRONMENT,
    )
    if warning:
        screen.warn(warning)
    return key, False


def named(columns: Columns) -> dict[str, Any]:
    """The names of the columns, for JSON."""
    return {
        "score_column": columns.score,
        "group_columns": columns.groups,
        "strata_columns": columns.strata,
    }
