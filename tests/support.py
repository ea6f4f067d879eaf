"""What works with what: combinations are tried, and docs/support.md is written from the results.

`python tests/support.py` writes the page. A *choice* is a value of an argument, such as ``min_ratio=0.8``;
choices of one aspect, such as the criterion, exclude each other. Two choices are compatible if some fit has both.
The test tries all combinations and expects that one works if and only if its choices are compatible in pairs.
"""

import functools
import itertools
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import fairramp
from engines import table
from fairramp.cli import naming
from fairramp.fit.probable import check_probable
from fairramp.fit.settings import Settings

PAGE = Path(__file__).parents[1] / "docs" / "support.md"
#: How rows with group probabilities are named; not a setting, but what is passed as groups.
PROBABLE = "GroupProbabilities"


@dataclass(frozen=True)
class Choice:
    """A value of an argument; the first choice of an aspect is its default."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)


def _choices(name: str, *values: Any) -> list[Choice]:
    return [Choice(f'{name}="{v}"' if isinstance(v, str) else f"{name}={v}", {name: v}) for v in values]


ASPECTS: dict[str, list[Choice]] = {
    "groups": [
        *_choices("combine", "intersections", "each"),
        Choice(PROBABLE, {"combine": "intersections", PROBABLE: True}),
    ],
    "criterion": _choices("criterion", "parity", "equal_opportunity", "predictive_equality", "equalized_odds"),
    "limit": [Choice("max_gap", {"max_gap": 0.2}), Choice("min_ratio", {"min_ratio": 0.8})],
    "level": [
        *_choices("target_rate", "optimal", "accuracy"),
        Choice("costs", {"target_rate": "accuracy", "costs": (2, 1)}),
        *_choices("target_rate", "balanced_accuracy", "base_rate"),
        Choice("target_rate=0.3", {"target_rate": 0.3}),
        Choice("overall_rate=0.3", {"overall_rate": 0.3}),
    ],
    "strata": [Choice("no strata"), Choice("strata", {"strata": True})],
    "solver": _choices("solver", "exact", "sgd"),
    "small groups": _choices("small_groups", "alone", "borrow"),
    "population": [
        Choice("no confidence"),
        Choice("confidence", {"confidence": 0.9}),
        Choice('confidence_limit="proven"', {"confidence": 0.9, "confidence_limit": "proven"}),
    ],
    "unseen groups": _choices("unseen_group", "error", "original", "pooled"),
    "weights": [Choice("no weights"), Choice("sample_weight", {"sample_weight": True})],
    "ramp": [Choice("ramp_width=0.01", {"ramp_width": 0.01}), Choice("ramp_width=0", {"ramp_width": 0.0})],
    "scale": [
        *_choices("scale", "probability", "percent", "signed", "logit"),
        Choice('scale="real"', {"scale": "real", "cutoff": 0.0}),
    ],
    "direction": _choices("higher_is_better", True, False),
}
Combination = tuple[Choice, ...]


def defaults() -> dict[str, Choice]:
    """The default of each aspect."""
    return {aspect: choices[0] for aspect, choices in ASPECTS.items()}


def keywords(combination: Combination) -> dict[str, Any]:
    """The settings of a combination."""
    found: dict[str, Any] = {}
    for choice in combination:
        found |= choice.settings
    return found


def refused(combination: Combination) -> str | None:
    """The error of a combination, found before any row is read; None if it is accepted."""
    given = keywords(combination)
    strata, weights = given.pop("strata", False), given.pop("sample_weight", False)
    probable = given.pop(PROBABLE, False)
    try:
        settings = Settings(**given)
        if probable:
            check_probable(settings, stratified=strata)
        else:
            settings.check_rows(labeled=True, stratified=strata, weighted=weights)
    except fairramp.UnsupportedError as error:
        return str(error)
    return None


def combinations() -> list[Combination]:
    """All of them."""
    return list(itertools.product(*ASPECTS.values()))


@functools.cache
def incompatible() -> dict[frozenset[str], str]:
    """Pairs of choices that no fit has both of, with the error of a combination where only they are to blame."""
    together = set().union(*(pairs_of(c) for c in combinations() if refused(c) is None))
    found = {}
    for (a, first), (b, second) in itertools.combinations(ASPECTS.items(), 2):
        for one, other in itertools.product(first, second):
            if frozenset({one.name, other.name}) not in together:
                found[frozenset({one.name, other.name})] = {a: one, b: other}
    return {pair: _reason(chosen, set(found)) for pair, chosen in found.items()}


def pairs_of(combination: Combination) -> set[frozenset[str]]:
    """The pairs of choices in a combination."""
    return {frozenset(pair) for pair in itertools.combinations([choice.name for choice in combination], 2)}


def names_both(told: str, pair: frozenset[str]) -> bool:
    """Whether an error names both choices."""
    words = {"sample_weight": "weights", "confidence_limit": "confidence", "costs": "target_rate"}
    words[PROBABLE] = "roup probabilities"
    return all(words.get(name, name) in told for name in (choice.partition("=")[0] for choice in pair))


def _reason(chosen: dict[str, Choice], pairs: set[frozenset[str]]) -> str:
    """The error about two choices, at a level that adds as little as possible to what is wrong."""
    pair = frozenset(choice.name for choice in chosen.values())
    tried = [tuple((defaults() | {"level": level} | chosen).values()) for level in ASPECTS["level"]]
    told = [refused(c) or "" for c in sorted(tried, key=lambda c: len(pairs_of(c) & pairs))]
    return next(text for text in told if names_both(text, pair))


# Fits --------------------------------------------------------------------------------------------


def rows(scale: str = "probability", *, up: bool = True, n: int = 2_400) -> dict[str, Any]:
    """Rows of four cells with both labels."""
    rng = np.random.default_rng(7)
    group, stratum = rng.integers(0, 2, n), rng.integers(0, 2, n)
    p = np.clip(rng.beta(3, 3, n) + 0.05 * group, 0.001, 0.999)
    label = (rng.random(n) < p).astype(int)
    chance = np.clip(0.2 + 0.6 * group + rng.uniform(-0.2, 0.2, n), 0, 1)
    p = p if up else 1 - p
    logit = np.log(p / (1 - p))
    score = {"probability": p, "percent": 100 * p, "signed": 2 * p - 1, "logit": logit, "real": logit}[scale]
    return {
        "score": score,
        "group": np.array(["A", "B"])[group],
        "stratum": np.array(["north", "south"])[stratum],
        "label": label,
        "weight": rng.uniform(0.5, 2, n),
        "chance_a": 1 - chance,
        "chance_b": chance,
    }


def groups_of(combination: Combination, data: dict[str, Any]) -> Any:
    """What a combination decides by: groups, two attributes, or group probabilities."""
    given = keywords(combination)
    if given.get(PROBABLE):
        return fairramp.GroupProbabilities({"A": data["chance_a"], "B": data["chance_b"]})
    return {name: data[name] for name in ("group", "stratum")} if given["combine"] == "each" else data["group"]


def members(combination: Combination, data: dict[str, Any]) -> list[list[Any]]:
    """How much each row belongs to each group, for all sets of groups whose rates are compared."""
    given = keywords(combination)
    if given.get(PROBABLE):
        return [[data["chance_a"], data["chance_b"]]]
    groups = [data["group"] == name for name in "AB"]
    strata = [data["stratum"] == name for name in ("north", "south")]
    if given.get("strata"):
        return [[stratum & group for group in groups] for stratum in strata]
    return [groups, strata] if given["combine"] == "each" else [groups]


def columns_of(given: dict[str, Any]) -> dict[str, Any]:
    """The names of the group columns, for a table."""
    if given.pop(PROBABLE, False):
        return {"group_probability": {"A": "chance_a", "B": "chance_b"}}
    return {"group": ["group", "stratum"] if given["combine"] == "each" else "group"}


def fitted(combination: Combination) -> fairramp.Rule:
    """The rule of a combination, from arrays."""
    given = keywords(combination)
    data = rows(given["scale"], up=given["higher_is_better"])
    strata = {"strata": data["stratum"]} if given.pop("strata", False) else {}
    weights = {"sample_weight": data["weight"]} if given.pop("sample_weight", False) else {}
    given.pop(PROBABLE, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        groups = groups_of(combination, data)
        return fairramp.fit_rule(data["score"], groups, data["label"], **strata, **weights, **given)


def fitted_table(engine: str, combination: Combination) -> fairramp.Rule:
    """The rule of a combination, from a table of an engine or from a summary."""
    given = keywords(combination)
    data = rows(given["scale"], up=given["higher_is_better"])
    names: dict[str, Any] = {"score": "score", "label": "label", **columns_of(given)}
    names |= {"strata": "stratum"} if given.pop("strata", False) else {}
    names |= {"weight": "weight"} if given.pop("sample_weight", False) else {}
    columns = {name: values.tolist() for name, values in data.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        if engine != "summary":
            return fairramp.fit_frame(table(engine, columns), **names, **given)
        if "group_probability" in names or given.pop("combine") == "each":
            raise fairramp.UnsupportedError("A summary has groups, which are not mixed")
        of = {name: given.pop(name) for name in ("scale", "higher_is_better", "cutoff") if name in given}
        summary = fairramp.summarize_frame(table("polars", columns), **names, **of)
        if given.pop("solver") == "sgd":
            raise fairramp.UnsupportedError("A summary has no rows, which {solver:sgd} needs")
        return fairramp.fit_summary(summary, **given)


#: What decides which problem is solved.
_MAIN = ("groups", "criterion", "limit", "level", "strata", "solver", "small groups")


def core() -> list[Combination]:
    """Combinations of what decides which problem is solved, with the defaults of everything else."""
    return list(itertools.product(*(c if a in _MAIN else c[:1] for a, c in ASPECTS.items())))


def each_once() -> list[Combination]:
    """For each aspect that `core` leaves at its default, each of its choices with each criterion and limit."""
    found = []
    for aspect in [aspect for aspect in ASPECTS if aspect not in _MAIN]:
        for choice, groups, criterion, limit in itertools.product(
            ASPECTS[aspect][1:], ASPECTS["groups"], ASPECTS["criterion"], ASPECTS["limit"]
        ):
            level = ASPECTS["level"][criterion.name != 'criterion="parity"']
            chosen = {"groups": groups, "criterion": criterion, "limit": limit, "level": level, aspect: choice}
            found.append(tuple((defaults() | chosen).values()))
    return found


# Exports -----------------------------------------------------------------------------------------

EXPORTS = ("duckdb", "postgres", "spark", "snowflake", "bigquery", "sqlite", "onnx", "json")


def exported(rule: fairramp.Rule, kind: str) -> None:
    """Export a rule."""
    if kind == "json":
        assert fairramp.Rule.from_json(rule.to_json()) == rule
    elif kind == "onnx":
        with tempfile.TemporaryDirectory() as folder:
            rule.to_onnx(Path(folder) / "rule.onnx")
    else:
        given = {"combine": rule.membership, PROBABLE: rule.membership == "probabilities"}
        names = columns_of(given) | ({"strata": "stratum"} if rule.stratified else {})
        rule.to_sql(kind, table="people", score="score", **names)


# Several classes ---------------------------------------------------------------------------------

#: Tables that class rules support; the others of `engines.ENGINES` are refused.
CLASS_ENGINES = ("pandas", "polars", "arrow", "duckdb")
CLASS_SCORES = {"low": "p_low", "mid": "p_mid", "high": "p_high"}


def class_columns() -> dict[str, Any]:
    """Rows of three classes, whose scores differ between groups, as columns of a table."""
    data = rows()
    rng = np.random.default_rng(8)
    scores = rng.gamma(np.where((data["group"] == "A")[:, None], [1.0, 2.0, 3.0], [2.0, 2.0, 1.5]))
    scores /= scores.sum(axis=1, keepdims=True)
    return data | dict(zip(CLASS_SCORES.values(), scores.T, strict=True))


def fitted_classes(choice: Choice, engine: str = "pandas") -> fairramp.ClassRule:
    """The class rule with one choice, and the defaults of everything else."""
    given = {"combine": "intersections"} | choice.settings
    names: dict[str, Any] = columns_of(given)
    names |= {"strata": "stratum"} if given.pop("strata", False) else {}
    names |= {"weight": "weight"} if given.pop("sample_weight", False) else {}
    columns = {name: values.tolist() for name, values in class_columns().items()}
    found = fairramp.fit_frame(table(engine, columns), class_score=CLASS_SCORES, **names, **given)
    assert isinstance(found, fairramp.ClassRule)
    return found


def _error(work: Callable[[], Any]) -> str | None:
    """The message of an error of the library; None if there is none."""
    try:
        work()
    except fairramp.FairrampError as error:
        return str(error)
    return None


@functools.cache
def class_settings() -> dict[str, str | None]:
    """Each choice that is no default, with the error of a class rule; None if it works."""
    return {c.name: _error(lambda c=c: fitted_classes(c)) for _, *more in ASPECTS.values() for c in more}


@functools.cache
def class_refusals() -> dict[str, str]:
    """What else class rules do not support, with the error."""
    rule, data = fitted_classes(Choice("max_gap")), class_columns()
    scores = np.column_stack([data[name] for name in CLASS_SCORES.values()])
    with tempfile.TemporaryDirectory() as folder:
        rule.save(Path(folder) / "rule.json")
        command = _error(lambda: naming.load_rule(str(Path(folder) / "rule.json")))
        command = (command or "").replace(folder + "/", "")
    found = {
        "labels in the fit": _error(lambda: fitted_classes(Choice("label", {"label": "label"}))),
        "polars LazyFrame (the same for Dask and Spark)": _error(
            lambda: fitted_classes(Choice("max_gap"), "polars-lazy")
        ),
        "SQL": _error(lambda: rule.to_sql("duckdb")),
        "`fairramp.select`, `fairramp.summarize`": _error(lambda: fairramp.summarize(scores, data["group"])),
        "`fairramp.evidence`": _error(lambda: fairramp.evidence(scores, data["group"], rule=rule)),
        "`fairramp explain`, `fairramp monitor`": command,
    }
    return {name: told or "" for name, told in found.items()}


def class_part() -> list[str]:
    """The lines of the page about several classes."""
    usual = "A rule for several classes does not support "
    told = class_settings()
    works = ", ".join(_shown(name) for name, error in told.items() if error is None)
    plain = ", ".join(_shown(name) for name, error in told.items() if error and error.startswith(usual))
    others = {_shown(name): error for name, error in told.items() if error and not error.startswith(usual)}
    parts = {
        "Settings": (f"`max_gap`, `ramp_width` of at least 1e-6, {works}", "all others"),
        "Tables": (
            "NumPy, lists, pandas, polars, Arrow, DuckDB",
            "polars LazyFrame, Dask, Spark, summaries, streams",
        ),
        "Exports": ("ONNX, torch, MLflow, JSON", "SQL, dbt"),
        "Functions": (
            "`audit_classes`, `class_frontier`, the estimator",
            "`evidence`, `select`, `tune`, `hidden_split`",
        ),
        "Methods": (
            "`probabilities`, `decide`, `apply`, `check`, `certificate` on fresh rows, `report`, `plot`",
            "`explain`, `monitor`",
        ),
        "Commands": (
            "`fit`, `apply`, `audit`, `check`, `frontier`, `report`, `show`, `export`, `serve`",
            "`evidence`, `explain`, `explore`, `monitor`, `select`",
        ),
    }
    return [
        "## More than two classes",
        "",
        "[Rules for several classes](guide/classes.md) support fewer settings and features:",
        "",
        "| | supported | not supported |",
        "| --- | --- | --- |",
        *(f"| {name} | {' | '.join(both)} |" for name, both in parts.items()),
        "",
        "The error messages are:",
        "",
        f"- {plain}: “{usual}…; remove it.”",
        *(f"- {name}: “{error}”" for name, error in (others | class_refusals()).items()),
        "",
    ]


# The page ----------------------------------------------------------------------------------------


def _shown(name: str) -> str:
    return f"`{name}`" if name not in ("no strata", "no weights", "no confidence") else name


def page() -> str:
    """The text of docs/support.md."""
    pairs = incompatible()
    lines = [
        "# What works with what",
        "",
        "Every setting works with every other setting, except for the pairs below. A combination of settings",
        "works if and only if it contains none of these pairs; otherwise, `fairramp.UnsupportedError` names one",
        f"of them. A test tries all {len(combinations()):,} combinations, and the table and the error messages",
        "below are generated from its results.",
        "",
        "## Settings",
        "",
        "| Setting | does not work with |",
        "| --- | --- |",
    ]
    order = [choice.name for choices in ASPECTS.values() for choice in choices]
    aspect_of = {choice.name: aspect for aspect, choices in ASPECTS.items() for choice in choices}
    for name in order:
        against = [other for other in order if frozenset({name, other}) in pairs]
        if against:
            lines.append(f"| {_shown(name)} | {', '.join(map(_shown, against))} |")
    free = [name for name in order if not any(name in pair for pair in pairs)]
    lines += ["", "These settings work with every other setting: " + ", ".join(map(_shown, free)) + ".", ""]
    lines += ["The error messages give these reasons:", ""]
    told: dict[str, list[frozenset[str]]] = {}
    for pair, reason in pairs.items():
        told.setdefault(reason, []).append(pair)
    for reason, found in told.items():
        names = sorted({name for pair in found for name in pair}, key=order.index)
        by_aspect = {aspect: [n for n in names if aspect_of[n] == aspect] for aspect in ASPECTS}
        sides = [", ".join(map(_shown, part)) for part in by_aspect.values() if part]
        lines.append(f"- {' with '.join(sides)}: “{reason}”")
    lines += [
        "",
        "A fit has either `max_gap` or `min_ratio`, and `confidence` needs a `max_gap` above 0. A fit sets",
        "the *level* of the rates with either `target_rate` or `overall_rate`, and `costs` needs",
        '`target_rate="accuracy"`. All criteria except `"parity"`, and the targets `"accuracy"`,',
        '`"balanced_accuracy"` and `"base_rate"`, need labels in the fit. Decisions never need labels.',
        "`GroupProbabilities` are passed in place of groups ([without the group](guide/without-groups.md)),",
        "and `combine` determines how several group columns are used",
        "([several attributes](guide/several-attributes.md)).",
        "",
        "## Tables and exports",
        "",
        "A dash (–) means “not applicable”.",
        "",
        "| | Fit without labels | Fit with labels, including equal error rates | Decisions |",
        "| --- | --- | --- | --- |",
        "| NumPy, lists, pandas, polars, Arrow | yes | yes | yes |",
        '| DuckDB, polars LazyFrame, Dask, Spark | yes, except `solver="sgd"` | yes | yes |',
        '| Summaries (`fairramp.summarize`) | yes, except `solver="sgd"`; '
        "the largest error of each rate is known | yes | – |",
        '| Summaries with `GroupProbabilities` or `combine="each"` | no; use an engine listed above | no | – |',
        "| Streams (`fairramp.StreamingFit`) | only equal selection rates and `max_gap`; approximate | no | – |",
        "| SQL: DuckDB, PostgreSQL, Spark, Snowflake, BigQuery, SQLite, MySQL, MariaDB; dbt "
        "| – | – | yes; SQLite: probabilities only |",
        "| ONNX, torch, JSON | – | – | yes |",
        "| HTTP (`fairramp serve`), MLflow | – | – | yes |",
        "",
        "A rule is one ramp per group, whatever the criterion, limit or level, so every export works with every",
        "criterion, with strata, with ramps of width 0 and with ramps of constant probability. With",
        '`GroupProbabilities` or `combine="each"`, a person\'s threshold is a sum, which every export also',
        "computes.",
        "",
        'Rules with `GroupProbabilities` or `combine="each"` have no certificate from their fit rows and no',
        "monitor. For a certificate on fresh rows, that is, rows that the rule was not fitted on, use",
        "`rule.certificate(scores=…, groups=…)`; `rule.check` also works.",
        "",
        *class_part(),
        "## Not supported yet",
        "",
        "- `fairramp.frontier` with equalized odds, which has two gaps.",
        '- `GroupProbabilities` and `combine="each"` with criteria other than equal selection rates.',
        "- More than two classes with criteria other than equal rates for every class.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.name}: {len(incompatible())} pairs\n")
