"""Between tables and the library: rows as the library wants them, in memory or where they are.

`Job` is DATA with the columns that play a part: scanned once, checked, ready to be fitted, applied or read.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import fairramp
from fairramp.cli.columns import Number, Scan, scan
from fairramp.cli.tables import Source, TableError, format_of
from fairramp.core.cells import cell_columns
from fairramp.core.labels import Label, label_key
from fairramp.core.scales import SCALES
from fairramp.data.groups import Codes

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

__all__ = ["Columns", "Job", "prepare"]


@dataclass(frozen=True)
class Columns:
    """The columns that play a part, by the names people gave them."""

    score: str
    group: tuple[str, ...]
    strata: tuple[str, ...] = ()
    label: str | None = None
    weight: str | None = None
    id: str | None = None


@dataclass(frozen=True)
class Job:
    """Rows that were looked at and found sound."""

    source: Source
    columns: Columns
    found: Scan

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.found.rows

    @property
    def score(self) -> Number:
        """The score column."""
        return self.found.numbers["--score"]

    def arrays(self) -> dict[str, Any]:
        """Arguments for the functions that work in memory: scores, groups, labels, sample_weight, strata."""
        found = self.found.arrays()
        n = len(self.columns.group)
        groups = _codes(found["code"], [label[:n] for label in self.found.labels], self.columns.group)
        strata = None
        if self.columns.strata:
            strata = _codes(found["code"], [label[n:] for label in self.found.labels], self.columns.strata)
        return {
            "scores": found["--score"],
            "groups": groups,
            "labels": found.get("--label"),
            "sample_weight": found.get("--weight"),
            "strata": strata,
        }

    def relation(self, *, extra: bool = False) -> "DuckDBPyRelation":
        """The columns that play a part, under names of our own: score, g0, …, s0, …, label, weight, id.

        With `extra`, all columns of the file stand before them.
        """
        n = len(self.columns.group)
        parts = [f"({number.expression}) AS {option[2:]}" for option, number in self.found.numbers.items()]
        parts += [
            f"{key} AS {f'g{i}' if i < n else f's{i - n}'}" for i, key in enumerate(self.found.typed_groups)
        ]
        if self.columns.id is not None:
            parts.append(f"CAST({self.source.find(self.columns.id, '--id')} AS VARCHAR) AS id")
        if extra:
            parts = [*(f"c{i}" for i in range(len(self.source.names))), *parts]
        return self.source.connection.sql(f"SELECT {', '.join(parts)} FROM ({self.source.query})")

    def kept(self) -> "DuckDBPyRelation":
        """The same for many passes: text files are parsed once."""
        relation = self.relation()
        if self.source.format == "parquet":
            return relation
        relation.create_view("parsed", replace=True)
        self.source.connection.execute("CREATE OR REPLACE TEMP TABLE kept AS SELECT * FROM parsed")
        return self.source.connection.table("kept")

    @property
    def group_names(self) -> list[str]:
        """Internal names of the group columns."""
        return [f"g{i}" for i in range(len(self.columns.group))]

    @property
    def strata_names(self) -> list[str]:
        """Internal names of the strata's columns."""
        return [f"s{i}" for i in range(len(self.columns.strata))]


def prepare(
    source: Source,
    columns: Columns,
    *,
    scale: str = "probability",
    decimal: str | None = None,
    positive: str | None = None,
    rule: "fairramp.Rule | None" = None,
) -> Job:
    """Look at all rows once and refuse what cannot be decided, in one sentence."""
    numbers = {"--score": columns.score}
    if columns.label is not None:
        numbers["--label"] = columns.label
    if columns.weight is not None:
        numbers["--weight"] = columns.weight
    groups = [*(("--group", name) for name in columns.group), *(("--strata", name) for name in columns.strata)]
    if len(set(groups)) < len(groups):
        raise TableError("A column is named twice by --group or --strata; name each once.")
    for option, name in groups:
        if name == columns.score:
            raise TableError(f"{option} {name!r} is the column of the scores; name one that holds groups.")
    found = scan(
        source, numbers, groups, id=columns.id, decimal=decimal, percent=scale == "percent", positive=positive
    )
    job = Job(source, columns, found)
    if found.rows:
        _check_range(job, scale, fitted=rule is not None)
    return adapted(job, rule) if rule is not None else job


def conversion(found: str, wanted: str) -> str:
    """How scores become those of a rule on another scale."""
    return {
        ("percent", "probability"): "divide the scores by 100",
        ("probability", "percent"): "multiply the scores by 100",
        ("logit", "probability"): "pass 1/(1 + exp(-score))",
        ("logit", "percent"): "pass 100/(1 + exp(-score))",
    }.get((found, wanted), "pass scores of that scale")


def _check_range(job: Job, scale: str, *, fitted: bool) -> None:
    """Refuse scores on another scale than they are said to be, or than the rule's, and name the likely one."""
    number = job.score
    low, high = number.lowest, number.highest
    assert low is not None
    assert high is not None
    bottom, top = SCALES[scale].score_range
    if low >= bottom and high <= top:
        return
    if low >= 0 and high <= 100:
        likely, looks = "percent", "percent"
    elif low >= -1 and high <= 1:
        likely, looks = "signed", "signed scores from −1 to 1"
    else:
        likely, looks = "logit", "logits"
    if fitted:
        advice = f"if that is {looks}, {conversion(likely, scale)}, or fit again with --scale {likely}"
    elif likely == "logit" or scale == "signed":
        advice = f"if that is {looks}, pass --scale {likely}"
    else:
        advice = f"that looks like {looks}: pass --scale {likely}"
    whose = "the rule's scale" if fitted else "the scale"
    raise TableError(
        f"--score {number.name!r} of {job.source.shown} goes from {low:g} to {high:g}, but scores of {whose} "
        f"{scale!r} lie from {bottom:g} to {top:g}; {advice}."
    )


def _codes(code: Any, parts: Sequence[tuple[Any, ...]], names: tuple[str, ...]) -> Codes:
    """Codes of some of the columns, from codes of all of them."""
    labels: list[Label] = [part[0] if len(names) == 1 else part for part in parts]
    ordered = sorted({label_key(label): label for label in labels}.items())
    place = {key: i for i, (key, _) in enumerate(ordered)}
    seats = np.array([place[label_key(label)] for label in labels], dtype=np.int32)
    return Codes(seats[np.asarray(code)], 0, tuple(label for _, label in ordered), names)


def adapted(job: Job, rule: "fairramp.Rule") -> Job:
    """Groups in the types of the rule: 1 is text in CSV and a number in Parquet, and it is the same group."""
    known: list[set[Any]] = [set() for _ in job.found.groups]
    for label in rule.groups:
        stratum, group = label if job.columns.strata and isinstance(label, tuple) else (None, label)
        parts: list[Any] = list(group) if isinstance(group, tuple) else [group]
        if job.columns.strata:
            parts += list(stratum) if isinstance(stratum, tuple) else [stratum]
        if len(parts) != len(known):
            raise TableError(
                f"The rule was fitted on {len(parts)} group column{'' if len(parts) == 1 else 's'}; name as many "
                "with --group, in that order."
            )
        for seen, value in zip(known, parts, strict=True):
            seen.add((type(value), value))
    keys: list[str] = list(job.found.groups)
    labels: list[list[Any]] = [list(found) for found in job.found.labels]
    for i, seen in enumerate(known):
        kinds = {kind for kind, value in seen if value is not None}
        values: list[Any] = [row[i] for row in labels]
        types = {type(value) for value in values if value is not None}
        if (type(None), None) in seen and (str, "") not in seen and "" in values:
            keys[i] = f"nullif({keys[i]}, '')"
            values = [None if value == "" else value for value in values]
            types = {type(value) for value in values if value is not None}
        if kinds == {str} and types and str not in types:
            keys[i] = f"CAST({keys[i]} AS VARCHAR)"
            values = [v if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in values]
        elif kinds == {int} and types == {str} and all(v is None or _is_whole(v) for v in values):
            keys[i] = f"CAST({keys[i]} AS BIGINT)"
            values = [v if v is None else int(v) for v in values]
        elif (
            kinds == {bool}
            and types == {str}
            and all(v is None or v.lower() in ("true", "false") for v in values)
        ):
            keys[i] = f"CAST({keys[i]} AS BOOLEAN)"
            values = [v if v is None else v.lower() == "true" for v in values]
        if (str, "") in seen and (
            type(None),
            None,
        ) not in seen:  # an empty cell is how CSV writes a missing value
            keys[i] = f"coalesce(CAST({keys[i]} AS VARCHAR), '')"
            values = ["" if value is None else value for value in values]
        types = {type(value) for value in values if value is not None}
        if kinds and types and not kinds & types:  # or else all would be unseen, and pooled without a word
            name = (*job.columns.group, *job.columns.strata)[i]
            here, there = (next(iter(v for v in vs if v is not None)) for vs in (values, (v for _, v in seen)))
            raise TableError(
                f"{name!r} of {job.source.shown} holds values like {here!r}, and the rule knows values like "
                f"{there!r}; is it the same column?"
            )
        for row, value in zip(labels, values, strict=True):
            row[i] = value
    # Codes were given to the values as they stand in the file: only their names change.
    return replace(job, found=replace(job.found, labels=tuple(map(tuple, labels)), typed_groups=tuple(keys)))


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and str(int(text)) == text


# Fitting and applying ---------------------------------------------------------------------------


def fit(job: Job, **settings: Any) -> fairramp.Rule:
    """Fit a rule to a job's rows; it remembers what the file calls its columns."""
    columns = job.columns
    if settings["target_rate"] in ("accuracy", "base_rate"):  # needs labels, and those need all rows at once
        arrays = job.arrays()
        strata = arrays.pop("strata")
        criterion = fairramp.Covariance(strata=strata) if columns.strata else None
        rule = fairramp.fit_rule(**arrays, criterion=criterion, **settings)
    else:
        rule = fairramp.fit_frame(
            job.kept(),
            score="score",
            group=job.group_names,
            weight="weight" if columns.weight is not None else None,
            label="label" if columns.label is not None else None,
            criterion=fairramp.Covariance(strata=job.strata_names) if columns.strata else None,
            **settings,
        )
    assert rule.record is not None
    record = replace(
        rule.record,
        score_column=columns.score,
        group_columns=columns.group,
        strata_columns=columns.strata or None,
    )
    return replace(rule, record=record)


def seed_key(seed: int) -> str:
    """A key for people without ids: rows are drawn by their number."""
    return hashlib.sha256(f"fairramp random seed {seed}".encode()).hexdigest()


def apply(job: Job, rule: fairramp.Rule, key: str | None, *, seeded: bool = False) -> "DuckDBPyRelation":
    """The job's rows with `probability` and, with a key, `decision` behind all other columns.

    The columns of the file are c0, c1, …; with `seeded`, rows are drawn by their number instead of by id.
    """
    relation = job.relation(extra=True)
    if seeded:
        relation = relation.project("*, row_number() OVER () AS id")
    drawn = {"id": "id", "key": key} if key is not None else {}
    strata = job.strata_names or None
    applied: DuckDBPyRelation = rule.apply(relation, score="score", group=job.group_names, strata=strata, **drawn)
    return applied


@dataclass(frozen=True)
class Summary:
    """What applying a rule did to each group, counted while it was done."""

    labels: tuple[Label, ...]
    rows: tuple[int, ...]
    expected: tuple[float, ...]
    drawn: tuple[int, ...]
    selected: tuple[int, ...] | None

    def table(self, rule: fairramp.Rule) -> fairramp.Table:
        """One row per group."""
        columns = cell_columns(self.labels, stratified=rule.criterion == "covariance") | {"n": self.rows}
        columns["expected_rate"] = [e / n for e, n in zip(self.expected, self.rows, strict=True)]
        if self.selected is not None:
            columns["selected"] = self.selected
            columns["selected_rate"] = [s / n for s, n in zip(self.selected, self.rows, strict=True)]
        columns["in_the_ramp"] = self.drawn
        headings = {
            "stratum": " / ".join(rule.strata_columns or ["stratum"]),
            "group": " / ".join(rule.group_columns or ["group"]),
        }
        return fairramp.Table(columns, headings={name: headings[name] for name in columns if name in headings})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        selected: Sequence[int | None] = self.selected or [None] * len(self.rows)
        rows = zip(self.labels, self.rows, self.expected, selected, self.drawn, strict=True)
        return {
            "groups": [
                {
                    "group": list(label) if isinstance(label, tuple) else label,
                    "rows": n,
                    "expected_rate": e / n,
                    "selected": s,
                    "in_ramp": d,
                }
                for label, n, e, s, d in rows
            ]
        }


def decide_all(job: Job, rule: fairramp.Rule, key: str | None, *, seeded: bool) -> Summary:
    """Apply the rule, as the view `applied`, and count what it does."""
    if not job.rows:
        nothing = "*, CAST(NULL AS DOUBLE) AS probability, CAST(NULL AS TINYINT) AS decision"
        job.relation(extra=True).project(nothing).create_view("applied", replace=True)
        return Summary((), (), (), (), None if key is None else ())
    apply(job, rule, key, seeded=seeded).create_view("applied", replace=True)
    keys = [*job.strata_names, *job.group_names]
    selected = "sum(decision)" if key is not None else "0"
    rows = job.source.connection.execute(
        f"SELECT {', '.join(keys)}, count(*), sum(probability), "
        f"count(*) FILTER (probability > 0 AND probability < 1), {selected} FROM applied "
        f"GROUP BY {', '.join(keys)}"
    ).fetchall()
    k, n = len(keys), len(job.strata_names)

    def label(values: tuple[Any, ...]) -> Label:
        group = values[n] if k - n == 1 else tuple(values[n:k])
        if not n:
            return group
        return (values[0] if n == 1 else tuple(values[:n]), group)

    found = sorted(((label(row), *row[k:]) for row in rows), key=lambda row: label_key(row[0]))
    return Summary(
        tuple(row[0] for row in found),
        tuple(row[1] for row in found),
        tuple(row[2] for row in found),
        tuple(row[3] for row in found),
        None if key is None else tuple(int(row[4]) for row in found),
    )


def _with_comma(column: str) -> str:
    return f"replace(CAST({column} AS VARCHAR), '.', ',')"


def output_query(job: Job, *, decided: bool, target: str, comma: bool = False) -> str:
    """What the output holds, as SQL over the view `applied`; with `comma` in decimals of text where asked for."""
    columns = [f"c{i}" for i in range(len(job.source.names))]
    probability = "probability"
    from_text, to_text = job.source.format == "csv", (format_of(target) or "csv") in ("csv", "tsv")
    if from_text and to_text:
        columns = [f"nullif({column}, '')" for column in columns]  # an empty cell stays empty, without quotes
    elif from_text:
        columns[int(job.score.column[1:])] = "score"  # formats that know numbers get one
    elif to_text and comma:
        types = zip(columns, job.source.types, strict=True)
        columns = [_with_comma(c) if t.startswith(("DECIMAL", "FLOAT", "DOUBLE")) else c for c, t in types]
    if to_text and (comma or (from_text and job.score.comma)):
        probability = _with_comma(probability)
    return f"SELECT {', '.join([*columns, probability, *(['decision'] if decided else [])])} FROM applied"


def duplicate_ids(job: Job) -> int:
    """Rows whose id another row has already."""
    assert job.columns.id is not None
    column = job.source.find(job.columns.id, "--id")
    found = job.source.connection.execute(
        f"SELECT count(*) - count(DISTINCT {column}) FROM ({job.source.query})"
    ).fetchall()
    return int(found[0][0])


def mean_scores(job: Job) -> tuple[float | None, float | None]:
    """Mean score of the rows with label 1 and of those with label 0."""
    score, label = (job.found.numbers[option].expression for option in ("--score", "--label"))
    found = job.source.connection.execute(
        f"SELECT avg(x) FILTER (y = 1), avg(x) FILTER (y = 0) "
        f"FROM (SELECT ({score}) AS x, ({label}) AS y FROM ({job.source.query}))"
    ).fetchall()
    return found[0][0], found[0][1]


def label_of_no(job: Job) -> str | None:
    """The one label that means no, as the file has it; None if there are several."""
    number = job.found.numbers["--label"]
    found = job.source.connection.execute(
        f"SELECT DISTINCT trim(CAST({number.column} AS VARCHAR)) FROM ({job.source.query}) "
        f"WHERE ({number.expression}) = 0 LIMIT 2"
    ).fetchall()
    return str(found[0][0]) if len(found) == 1 else None


def group_label(job: Job, values: tuple[Any, ...]) -> Label:
    """The values of a job's group and strata columns as the label that a rule has."""
    n = len(job.columns.group)
    group: Label = values[0] if n == 1 else tuple(values[:n])
    if not job.columns.strata:
        return group
    return (values[n] if len(values) == n + 1 else tuple(values[n:]), group)


def unseen(job: Job, rule: fairramp.Rule) -> list[tuple[Label, int]]:
    """Groups that a rule was not fitted on, and their rows."""
    known = set(map(label_key, rule.groups))
    labels = [group_label(job, values) for values in job.found.labels]
    return [pair for pair in zip(labels, job.found.counts, strict=True) if label_key(pair[0]) not in known]


def accuracy(job: Job, rule: fairramp.Rule) -> tuple[float, float]:
    """Share of right decisions before and after the rule, in expectation, measured where the rows are."""
    apply(job, rule, None).create_view("measured", replace=True)
    weight = "weight" if job.columns.weight is not None else "1"
    own = f"CAST(score >= {rule.cutoff!r} AS DOUBLE)"
    right = [
        f"sum({weight} * ({h} * label + (1 - {h}) * (1 - label))) / sum({weight})" for h in (own, "probability")
    ]
    found = job.source.connection.execute(f"SELECT {', '.join(right)} FROM measured").fetchall()
    return float(found[0][0]), float(found[0][1])
