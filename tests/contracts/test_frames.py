"""Every table engine gives the rule, the decisions and the row order of NumPy."""

import subprocess
import sys

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import fairramp
from engines import DISTRIBUTED, ENGINES, LAZY, QUICK_LAZY, columns_of, spark, table
from fairramp import InputError, Ramp, Rule, UnseenGroupError
from fairramp.core.scales import SCALES
from fairramp.data import engines
from fairramp.deploy.dialects import literal
from fairramp.deploy.plan import Numbers
from fairramp.fit import frames
from rules import real_scores
from samples import KEY, sample

pytestmark = pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")

HOSTILE = [
    "select",
    "a.b",
    "a`b",
    'a"b',
    "back\\slash",
    "x'; DROP TABLE t; --",
    "two\nlines",
    "🙂",
    "with space",
    "G0",
    "w",
]


@pytest.fixture
def binned(monkeypatch):
    """Send even a few rows through bins, and crowded bins through finer ones."""
    monkeypatch.setattr("fairramp.data.lazy_rows.SORTED_ROWS", 0)
    monkeypatch.setattr("fairramp.data.lazy_rows.MAX_BINS", 8)
    monkeypatch.setattr("fairramp.data.lazy_rows.LOOKED_AT", 8)
    monkeypatch.setattr("fairramp.data.rows.FINER_BINS", 32)


@pytest.fixture(params=[0, 16], ids=["looked up", "compared"])
def either_way(request, monkeypatch):
    """Find groups both ways: by lookup, as for many groups, and by comparison, as for few."""
    for engine in ("duckdb", "spark"):
        monkeypatch.setattr(f"fairramp.deploy.engines.{engine}.FEW_GROUPS", request.param)


def some_rows(n=600, seed=0, labels=("f", "m", None)):
    scores, codes = sample(n, len(labels), seed)
    rng = np.random.default_rng(seed)
    return {
        "p": scores.round(2).tolist(),
        "sex": [labels[c] for c in codes.tolist()],
        "race": rng.integers(0, 3, n).tolist(),
        "n": rng.choice([0.5, 1.0, 3.0], n).tolist(),
        "y": rng.integers(0, 2, n).tolist(),
        "who": [f"é{i}" for i in range(n)],
        "number": list(range(n)),
    }


def same_rule(found, expected, scores, groups, strata=None):
    assert found.groups == expected.groups
    assert found.record.fingerprint == expected.record.fingerprint
    rates, expected_rates = (rule.record.rates["selection"] for rule in (found, expected))
    assert rates.rows == expected_rates.rows
    assert rates.rows_above == expected_rates.rows_above
    assert rates.rows_inside == expected_rates.rows_inside
    np.testing.assert_allclose(rates.before, expected_rates.before, atol=1e-9)
    np.testing.assert_allclose(
        found.probabilities(scores, groups, strata),
        expected.probabilities(scores, groups, strata),
        atol=1e-9,
        rtol=0,
    )


# Fitting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("settings", [{}, {"ramp_width": 0}, {"target_rate": 0.3}, {"unseen_group": "pooled"}])
@pytest.mark.parametrize("weight", [None, "n"])
def test_every_engine_fits_the_rule_of_fit_rule(engine, settings, weight, binned):
    rows = some_rows()
    expected = fairramp.fit_rule(
        rows["p"], {"sex": rows["sex"]}, sample_weight=rows[weight] if weight else None, max_gap=0.01, **settings
    )
    found = fairramp.fit_frame(
        table(engine, rows), score="p", group="sex", weight=weight, max_gap=0.01, **settings
    )
    same_rule(found, expected, rows["p"], rows["sex"])
    assert (found.columns.score, found.columns.groups) == ("p", ("sex",))


@pytest.mark.parametrize("engine", ENGINES)
def test_several_columns_make_intersections(engine, either_way, binned):
    rows = some_rows()
    groups = {"sex": rows["sex"], "race": rows["race"]}
    frame = table(engine, rows)
    found = fairramp.fit_frame(frame, score="p", group=["sex", "race"], max_gap=0.01)
    same_rule(found, fairramp.fit_rule(rows["p"], groups, max_gap=0.01), rows["p"], groups)
    assert found.columns.groups == ("sex", "race")
    chances = columns_of(found.apply(frame))["probability"]
    np.testing.assert_allclose(chances, found.probabilities(rows["p"], groups), atol=1e-12)


@pytest.mark.parametrize("engine", LAZY)
def test_values_that_concatenate_alike_are_different_groups(engine, either_way):
    left, right = ["a", "ab", "", None, "-", "1:a"], ["bc", "c", "abc", "-", None, ""]
    rows = {"p": [0.1, 0.3, 0.5, 0.6, 0.7, 0.9], "l": left, "r": right}
    labels = tuple(zip(left, right, strict=True))
    rule = Rule(labels, tuple(Ramp.centered(0.1 + i / 10, 0.5) for i in range(6)))
    found = columns_of(rule.apply(table(engine, rows), score="p", group=["l", "r"]))["probability"]
    np.testing.assert_array_equal(found, rule.probabilities(rows["p"], {"l": left, "r": right}))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strata", ["race", ["race", "y"]])
def test_strata_columns(engine, strata, either_way, binned):
    rows = some_rows(labels=("f", "m"))
    names = [strata] if isinstance(strata, str) else strata
    outer = {name: rows[name] for name in names}
    expected = fairramp.fit_rule(rows["p"], {"sex": rows["sex"]}, strata=outer)
    frame = table(engine, rows)
    found = fairramp.fit_frame(frame, score="p", group="sex", strata=strata)
    same_rule(found, expected, rows["p"], rows["sex"], outer)
    assert found.columns.strata == tuple(names)
    chances = columns_of(found.apply(frame))["probability"]
    np.testing.assert_allclose(chances, found.probabilities(rows["p"], rows["sex"], outer), atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale", ["probability", "percent", "signed", "logit"])
@pytest.mark.parametrize("width", [0, 0.05])
def test_every_scale_fits_alike(engine, scale, width, either_way, binned):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=500) * 3
    scores = {"probability": scores % 1, "percent": scores % 1 * 100, "signed": np.tanh(scores), "logit": scores}[
        scale
    ]
    sex = rng.choice(["f", "m"], 500).tolist()
    frame = table(engine, {"p": scores.tolist(), "sex": sex})
    found = fairramp.fit_frame(frame, score="p", group="sex", scale=scale, ramp_width=width)
    same_rule(found, fairramp.fit_rule(scores, {"sex": sex}, scale=scale, ramp_width=width), scores, sex)
    chances = columns_of(found.apply(frame))["probability"]
    np.testing.assert_allclose(chances, found.probabilities(scores, sex), atol=1e-12, rtol=0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("labels", [(True, False), (3, -1, 12), ("1", "2"), (1.0, 2.0, None), ("", None)])
def test_every_label_type(engine, labels, either_way, binned):
    rows = some_rows(labels=labels)
    frame = table(engine, rows)
    found = fairramp.fit_frame(frame, score="p", group="sex")
    same_rule(found, fairramp.fit_rule(rows["p"], rows["sex"]), rows["p"], rows["sex"])
    chances = columns_of(found.apply(frame))["probability"]
    np.testing.assert_allclose(chances, found.probabilities(rows["p"], rows["sex"]), atol=1e-12)


@pytest.mark.parametrize("engine", LAZY[:-1])  # Spark has no categories
def test_categories_are_matched_by_label(engine, binned):
    rows = some_rows(labels=("f", "m"))
    if engine == "duckdb":
        frame = table(engine, rows).project("p, CAST(sex AS ENUM('m', 'f', 'x')) AS sex")
    elif engine == "dask":
        frame = table(engine, rows).astype({"sex": "category"})
    else:
        frame = table(engine, rows).with_columns(pl.col("sex").cast(pl.Categorical))
    found = fairramp.fit_frame(frame, score="p", group="sex")
    same_rule(found, fairramp.fit_rule(rows["p"], rows["sex"]), rows["p"], rows["sex"])
    assert len(columns_of(found.apply(frame))["probability"]) == 600


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("UBIGINT", [2**63 + 1, 2**63 + 2]),
        ("BIGINT", [2**62 + 1, 2**62 + 2, None]),
        ("HUGEINT", [2**62 + 1, 2**62 + 2, None]),
        ("HUGEINT", [-(2**62) - 1, 5]),
    ],
)
def test_large_integers_are_not_rounded(kind, labels, either_way, binned):
    scores = np.linspace(0.1, 0.9, 100)
    groups = [labels[i % len(labels)] for i in range(100)]
    rows = ", ".join(f"({p}, {'NULL' if g is None else g}::HUGEINT)" for p, g in zip(scores, groups, strict=True))
    frame = duckdb.connect().sql(f"SELECT p::DOUBLE AS p, g::{kind} AS g FROM (VALUES {rows}) r(p, g)")
    rule = fairramp.fit_frame(frame, score="p", group="g")
    assert set(rule.groups) == set(labels)
    np.testing.assert_array_equal(
        columns_of(rule.apply(frame))["probability"], rule.probabilities(scores, groups)
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_labels_beyond_every_integer_type(engine, either_way):
    rows = {"p": [0.1, 0.4, 0.6, 0.9], "g": [1.0, 2.0**70, None, -(2.0**64)]}
    rule = Rule(
        (1, 2**70, -(2**64), None),
        (Ramp.centered(0.2, 0.5), Ramp.centered(0.5, 0.5), Ramp.centered(0.7, 0.5), Ramp.centered(0.5, 0.5)),
    )
    found = columns_of(rule.apply(table(engine, rows), score="p", group="g"))["probability"]
    np.testing.assert_array_equal(found, rule.probabilities(rows["p"], rows["g"]))
    whole = rule.apply(table(engine, {"p": [0.3, 0.3], "g": [1, 1]}), score="p", group="g")
    np.testing.assert_array_equal(columns_of(whole)["probability"], rule.probabilities([0.3] * 2, [1] * 2))


@pytest.mark.parametrize("engine", LAZY)
def test_nan_and_null_are_one_missing_group(engine, either_way):
    rows = {"p": [0.1, 0.4, 0.6, 0.9] * 10, "g": [1.0, float("nan"), None, 2.0] * 10}
    frame = table(engine, rows)
    rule = fairramp.fit_frame(frame, score="p", group="g")
    assert rule.groups == (1, 2, None)
    np.testing.assert_allclose(
        columns_of(rule.apply(frame))["probability"], rule.probabilities(rows["p"], rows["g"])
    )


@pytest.mark.parametrize("engine", LAZY)
def test_a_thousand_groups(engine):
    scores, codes = sample(40_000, 1000)
    groups = [f"group {c}" for c in codes.tolist()]
    frame = table(engine, {"p": scores, "g": groups, "number": np.arange(40_000)})
    rule = fairramp.fit_frame(frame, score="p", group="g", max_gap=0.01)
    same_rule(rule, fairramp.fit_rule(scores, groups, max_gap=0.01), scores, groups)
    found = columns_of(rule.apply(frame, id="number", key=KEY))
    assert found["number"] == list(range(40_000))
    np.testing.assert_array_equal(found["probability"], rule.probabilities(scores, groups))
    np.testing.assert_array_equal(found["decision"], rule.decide(scores, groups, ids=np.arange(40_000), key=KEY))


@pytest.mark.parametrize("engine", LAZY)
@pytest.mark.parametrize("target", ["accuracy", "base_rate"])
def test_targets_that_need_labels(engine, target):
    rows = some_rows()
    expected = fairramp.fit_rule(rows["p"], rows["sex"], rows["y"], sample_weight=rows["n"], target_rate=target)
    found = fairramp.fit_frame(
        table(engine, rows), score="p", group="sex", label="y", weight="n", target_rate=target
    )
    same_rule(found, expected, rows["p"], rows["sex"])


@pytest.mark.parametrize("engine", LAZY)
def test_zero_weights_are_ignored_and_huge_weights_do_not_overflow(engine, binned):
    rows = some_rows()
    rng = np.random.default_rng(5)
    rows["n"] = (rng.choice([0.0, 1.0, 2.0], 600) * 1e250).tolist()
    expected = fairramp.fit_rule(rows["p"], rows["sex"], sample_weight=rows["n"])
    found = fairramp.fit_frame(table(engine, rows), score="p", group="sex", weight="n")
    same_rule(found, expected, rows["p"], rows["sex"])


any_score = st.one_of(st.floats(0, 1, allow_subnormal=True), st.sampled_from([0.0, 0.25, 0.49, 0.5, 0.51, 1.0]))
rows_of_a_sample = st.lists(
    st.tuples(any_score, st.sampled_from(["a", "b", None]), st.sampled_from([0.5, 1.0, 3.0])),
    min_size=1,
    max_size=60,
)


@given(
    rows=rows_of_a_sample,
    settings_=st.fixed_dictionaries(
        {
            "ramp_width": st.sampled_from([0.0, 1e-6, 0.01, 0.5]),
            "max_gap": st.sampled_from([0.0, 0.1, 1.0]),
            "target_rate": st.sampled_from(["optimal", 0.0, 0.3, 1.0]),
            "unseen_group": st.sampled_from(["error", "pooled"]),
            "scale": st.sampled_from(["probability", "percent", "signed", "logit"]),
        }
    ),
    weighted=st.booleans(),
    crowd=st.booleans(),
)
@example(rows=[(0.5, "a", 1.0)] * 3, settings_={"ramp_width": 0.0}, weighted=True, crowd=False)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("engine", QUICK_LAZY)
def test_lazy_fit_is_exact(engine, rows, settings_, weighted, crowd, binned):
    exact_rule(engine, rows, settings_, weighted, crowd)


@pytest.mark.parametrize("engine", DISTRIBUTED)
@pytest.mark.parametrize("crowd", [False, True])
@pytest.mark.parametrize("width", [0.0, 0.01])
@pytest.mark.parametrize("scale", ["probability", "signed", "logit"])
def test_distributed_fit_is_exact(engine, scale, width, crowd, binned):
    rng = np.random.default_rng([len(scale), crowd])
    scores = rng.choice([0.0, 0.25, 0.49, 0.5, 0.51, 1.0, *rng.random(20)], 60).tolist()
    groups, weights = (rng.choice(values, 60).tolist() for values in (["a", "b", None], [0.5, 1.0, 3.0]))
    settings_ = {"ramp_width": width, "scale": scale, "max_gap": 0.1 * crowd, "unseen_group": "pooled"}
    exact_rule(engine, list(zip(scores, groups, weights, strict=True)), settings_, True, crowd)


def exact_rule(engine, rows, settings_, weighted, crowd):
    scores, groups, weights = (list(column) for column in zip(*rows, strict=True))
    if crowd:  # all in one bin
        scores = [0.3 + 1e-3 * score for score in scores]
    if settings_.get("scale") == "logit":
        scores = [8 * score - 4 for score in scores]
    frame = table(engine, {"p": scores, "g": pa.array(groups, pa.string()), "w": weights})
    expected = fairramp.fit_rule(scores, groups, sample_weight=weights if weighted else None, **settings_)
    found = fairramp.fit_frame(frame, score="p", group="g", weight="w" if weighted else None, **settings_)
    same_rule(found, expected, scores, groups)


@pytest.mark.parametrize("engine", LAZY)
def test_fit_fetches_only_sums_and_a_few_scores(engine, monkeypatch):
    scores, codes = sample(200_000, 4)
    fetched = []
    fetch = engines.fetch

    def counting(frame):
        found = fetch(frame)
        fetched.append(len(next(iter(found.values()))))
        return found

    monkeypatch.setattr(engines, "fetch", counting)
    rule = fairramp.fit_frame(table(engine, {"p": scores, "g": codes}), score="p", group="g", max_gap=0.02)
    expected = fairramp.fit_rule(scores, codes, max_gap=0.02)
    same_rule(rule, expected, scores, codes)
    # Unweighted rows keep their count, including those in bins inside a ramp.
    for found in (rule, expected):
        np.testing.assert_allclose(found.record.rates["selection"].effective_rows, np.bincount(codes), rtol=1e-9)
    assert fetched[0] == 4
    assert sum(fetched) < 10_000


@pytest.mark.parametrize("engine", LAZY)
def test_crowded_bins_are_split_further(engine, monkeypatch):
    monkeypatch.setattr("fairramp.data.lazy_rows.LOOKED_AT", 1000)
    rng = np.random.default_rng(0)
    scores, codes = 0.3 + 1e-5 * rng.random(40_000), rng.integers(0, 2, 40_000)
    frame = table(engine, {"p": scores, "g": codes})
    for width in (0, 1e-6, 0.01):
        settings = {"ramp_width": width, "cutoff": 0.300004, "target_rate": 0.37}
        found = fairramp.fit_frame(frame, score="p", group="g", **settings)
        same_rule(found, fairramp.fit_rule(scores, codes, **settings), scores, codes)


@pytest.mark.parametrize("engine", LAZY)
def test_scores_across_many_orders_of_magnitude(engine, monkeypatch):
    monkeypatch.setattr("fairramp.data.lazy_rows.LOOKED_AT", 100)
    rng = np.random.default_rng(0)
    scores, codes = 10 ** -rng.uniform(0, 40, 40_000), rng.integers(0, 2, 40_000)
    settings = {"ramp_width": 0, "target_rate": 0.5}
    found = fairramp.fit_frame(table(engine, {"p": scores, "g": codes}), score="p", group="g", **settings)
    same_rule(found, fairramp.fit_rule(scores, codes, **settings), scores, codes)


def test_table_that_changes_while_read_raises():
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT random() AS p, i % 2 AS g FROM range(100000) r(i)")
    rows = con.sql("SELECT random() AS p, g FROM t")
    with pytest.raises(fairramp.FairrampError, match="changed while it was read"):
        fairramp.fit_frame(rows, score="p", group="g")


# Applying -------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("who", ["who", "number"])
@pytest.mark.parametrize("width", [0, 0.2])
def test_every_engine_decides_like_numpy(engine, who, width, either_way):
    rows = some_rows()
    rule = fairramp.fit_rule(rows["p"], rows["sex"], ramp_width=width)
    frame = table(engine, rows)
    found = columns_of(rule.apply(frame, score="p", group="sex", id=who, key=KEY + "\n"))
    assert list(found) == [*rows, "probability", "decision"]
    assert found["number"] == rows["number"]
    np.testing.assert_array_equal(found["probability"], rule.probabilities(rows["p"], rows["sex"]))
    np.testing.assert_array_equal(found["decision"], rule.decide(rows["p"], rows["sex"], ids=rows[who], key=KEY))


#: Five groups and the ramp for unseen ones: some steps, no steps, and steps for all but unseen groups.
WIDTHS = [(0.0, 0.2, 0.05, 0.0, 1e-6, 0.3), (0.3, 0.2, 0.05, 0.2, 1e-6, 0.0), (0.0,) * 5 + (0.3,)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("widths", WIDTHS, ids=["some steps", "no steps", "all steps"])
@pytest.mark.parametrize("scale", ["probability", "percent", "signed", "logit"])
@pytest.mark.parametrize("policy", ["pooled", "original"])
def test_ramps_of_different_widths(engine, widths, scale, policy, either_way):
    thresholds, ties = (0.5, 0.4, 0.6, 0.5, 0.25, 0.3), (0.3, 0.0, 0.5, 0.7, 0.0, 0.25)
    *ramps, pooled = map(Ramp.centered, thresholds, widths, ties)
    rule = Rule(
        ("a", "b", "c", None, "é"),
        tuple(ramps),
        scale=scale,
        cutoff=0.4,
        unseen_group=policy,
        pooled=pooled if policy == "pooled" else None,
    )
    ends = [e for r in (*ramps, pooled) for e in (r.foot, r.foot + r.width / 3, r.foot + r.width)]
    positions = np.array([0.01, 0.2, 0.4, 0.5, 0.9, *ends])
    scores = {"percent": 100 * positions, "logit": np.log(positions / (1 - positions))}.get(scale, positions)
    labels = ["a", "b", "c", None, "é", "new"]
    rows = {"p": np.repeat(scores, 6).tolist(), "g": labels * len(scores), "number": list(range(6 * len(scores)))}
    found = columns_of(rule.apply(table(engine, rows), score="p", group="g", id="number", key=KEY))
    np.testing.assert_allclose(
        found["probability"],
        rule.probabilities(rows["p"], rows["g"]),
        rtol=0,
        atol=0 if scale != "logit" else 1e-9,
    )
    decisions = rule.decide(rows["p"], rows["g"], ids=rows["number"], key=KEY)
    np.testing.assert_array_equal(found["decision"], decisions)


@pytest.mark.parametrize("engine", ENGINES)
def test_table_type_is_kept(engine):
    rows = some_rows()
    frame = table(engine, rows)
    rule = fairramp.fit_frame(frame, score="p", group="sex")
    done = rule.apply(frame, id="who", key=KEY, prefix="fair_")
    assert type(done) is type(frame)
    schema = nw.from_native(done).collect_schema()
    assert (schema["fair_probability"], schema["fair_decision"]) == (nw.Float64(), nw.Int8())
    assert list(schema)[: len(rows)] == list(rows)
    assert isinstance(rule.apply(nw.from_native(frame)), nw.DataFrame | nw.LazyFrame)


def test_pandas_index_is_kept():
    rows = some_rows()
    index = [7] * 300 + list(range(300))
    frame = table("pandas", rows).set_axis(index)
    rule = fairramp.fit_frame(frame, score="p", group="sex")
    done = rule.apply(frame)
    assert done.index.tolist() == index
    np.testing.assert_array_equal(done["probability"], rule.probabilities(rows["p"], rows["sex"]))
    assert "probability" not in frame


@pytest.mark.parametrize("engine", LAZY)
@pytest.mark.parametrize("n_groups", [3, 100])
@pytest.mark.parametrize("policy", ["error", "pooled", "original"])
def test_unseen_groups(engine, policy, n_groups, either_way):
    rows = some_rows(labels=tuple(f"g{i}" for i in range(n_groups)))
    rule = fairramp.fit_rule(rows["p"], rows["sex"], unseen_group=policy, cutoff=0.4)
    new = {"p": [0.3, 0.4, 0.45, 0.9, 0.62], "sex": ["g0", "new", None, "g1", "g"]}
    frame = table(engine, new)
    if policy == "error":
        with pytest.raises(UnseenGroupError, match=r"Groups not in the fit rows: \['g', 'new', \(missing\)\]"):
            rule.apply(frame, score="p", group="sex")
    else:
        found = columns_of(rule.apply(frame, score="p", group="sex"))["probability"]
        np.testing.assert_array_equal(found, rule.probabilities(new["p"], new["sex"]))


@pytest.mark.parametrize("engine", ["duckdb", DISTRIBUTED[1]])
@pytest.mark.parametrize("width", [0, 0.2])
def test_scores_that_become_missing_are_not_selected(engine, width, either_way, monkeypatch):
    rows = {"p": [0.1, float("nan"), None, 0.9], "g": ["a"] * 4, "number": [0, 1, 2, 3]}
    monkeypatch.setattr(
        frames.Profile, "of", lambda *_, **__: frames.Profile([("a",)], ("a",), np.array([4]), 1.0, 1.0, False, 0)
    )
    rule = Rule(("a",), (Ramp.centered(0.5, width),))
    found = columns_of(rule.apply(table(engine, rows), score="p", group="g", id="number", key=KEY))
    assert found["probability"] == [0.0, None, None, 1.0]
    assert found["decision"] == [0, None, None, 1]


@pytest.mark.parametrize("engine", DISTRIBUTED)
def test_duplicate_column_names_raise(engine):
    frame = table(engine, {"p": [0.1, 0.9], "g": ["a", "b"]})
    double = frame.selectExpr("p", "g", "g") if engine == "spark" else frame[["p", "g", "g"]]
    with pytest.raises(InputError, match="Two columns of the table have the same name"):
        fairramp.fit_frame(double, score="p", group="g")


def test_duplicate_column_names_raise_in_pandas():
    frame = table("pandas", {"p": [0.1, 0.9], "g": ["a", "b"]})[["p", "g", "g"]]
    with pytest.raises(InputError, match="Two columns of the table have the same name"):
        fairramp.fit_frame(frame, score="p", group="g")


def test_duckdb_without_replacement_scans_names_the_setting():
    with duckdb.connect(config={"python_enable_replacements": False}) as connection:
        rows = connection.sql("SELECT 0.5::DOUBLE AS p, 'a' AS g, 1 AS who")
        rule = Rule(("a",), (Ramp.centered(0.5, 0.1),))
        with pytest.raises(InputError, match="SET python_enable_replacements = true"):
            rule.apply(rows, score="p", group="g", id="who", key=KEY)


@pytest.mark.parametrize("n_groups", [2, 40])
def test_internal_column_names_can_be_used(n_groups):
    rule = Rule(tuple(range(n_groups)), tuple(Ramp.centered(k / 50, 0.5) for k in range(n_groups)))
    words = ("place", "chance", "key", "n0", "new0")
    given = {"p": [0.2, 0.5], "g": [0, 1], "who": [7, 8], **{f"FairRamp_{word}": [1, 2] for word in words}}
    found = columns_of(rule.apply(table("duckdb", given), score="p", group="g", id="who", key=KEY))
    np.testing.assert_allclose(found["probability"], rule.probabilities(given["p"], given["g"]), atol=1e-12)
    np.testing.assert_array_equal(found["decision"], rule.decide(given["p"], given["g"], ids=[7, 8], key=KEY))
    assert [found[name] for name in given] == [*given.values()]


@pytest.mark.parametrize("engine", QUICK_LAZY)
def test_column_of_another_type_holds_only_unseen_groups(engine):
    rule = Rule(
        ("a", "b"),
        (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)),
        unseen_group="pooled",
        pooled=Ramp.centered(0.3, 0.1),
    )
    given = {"p": [0.28, 0.3, 0.9], "g": [1, 2, 1]}
    found = columns_of(rule.apply(table(engine, given), score="p", group="g"))["probability"]
    np.testing.assert_allclose(found, rule.probabilities(given["p"], given["g"]), atol=1e-12)


def test_group_that_appears_between_passes_raises(binned):
    passes = []

    def growing(frame):
        passes.append(len(frame))
        return frame.with_columns(g=pl.lit("a" if len(passes) == 1 else "new"))

    rows = pl.LazyFrame({"p": np.linspace(0, 1, 50), "g": ["a"] * 50})
    with pytest.raises(fairramp.FairrampError, match="changed while it was read"):
        fairramp.fit_frame(rows.map_batches(growing), score="p", group="g")


@pytest.mark.parametrize("engine", DISTRIBUTED[1:])
def test_stream_raises(engine):
    stream = spark().readStream.format("rate").load().selectExpr("0.5e0 AS p", "'a' AS g")
    with pytest.raises(InputError, match="A streaming table cannot be read more than once"):
        fairramp.fit_frame(stream, score="p", group="g")


@pytest.mark.parametrize("engine", ENGINES)
def test_label_of_another_type_is_another_group(engine, either_way):
    rule = Rule(("1", "0", 5), (Ramp.centered(0.5, 0.1),) * 3)
    for values in ([1, 0], [True, False]):
        with pytest.raises(UnseenGroupError):
            rule.apply(table(engine, {"p": [0.1, 0.9], "g": values}), score="p", group="g")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_labels_that_look_like_sql(engine, name, either_way):
    if engine == "duckdb" and duckdb.__version__ < "2" and set(name) & set('."'):
        pytest.skip("DuckDB before 2.0 takes a dot or a quote in a column's name for SQL")
    rows = some_rows(300, labels=(name, f"{name}'", f'{name}"'))
    named = {name: rows["p"], f"{name}2": rows["sex"], f"{name}3": rows["number"], "other": rows["y"]}
    frame = table(engine, named)
    rule = fairramp.fit_frame(frame, score=name, group=f"{name}2")
    found = columns_of(rule.apply(frame, id=f"{name}3", key=KEY))
    np.testing.assert_array_equal(found["probability"], rule.probabilities(rows["p"], rows["sex"]))
    np.testing.assert_array_equal(
        found["decision"], rule.decide(rows["p"], rows["sex"], ids=rows["number"], key=KEY)
    )
    assert list(found) == [*named, "probability", "decision"]


def test_key_appears_in_no_query_and_no_plan():
    rows = some_rows()
    frame = table("duckdb", rows)
    rule = fairramp.fit_frame(frame, score="p", group="sex")
    one, two = (rule.apply(frame, id="who", key=key) for key in (KEY, KEY[::-1]))
    assert KEY not in one.explain() + one.sql_query()
    for done, key in ((one, KEY), (two, KEY[::-1])):  # two keys in use at once do not mix
        expected = rule.decide(rows["p"], rows["sex"], ids=rows["who"], key=key)
        np.testing.assert_array_equal(columns_of(done)["decision"], expected)
    lazy = rule.apply(table("polars-lazy", rows), id="who", key=KEY)
    assert KEY not in lazy.explain()


@pytest.mark.parametrize("engine", DISTRIBUTED)
def test_key_appears_in_no_distributed_plan(engine, either_way, capsys):
    rows = some_rows()
    frame = table(engine, rows)
    rule = fairramp.fit_rule(rows["p"], rows["sex"])
    one, two = (rule.apply(frame, score="p", group="sex", id="who", key=key) for key in (KEY, KEY[::-1]))
    if engine == "spark":
        one.explain(True)
        shown = capsys.readouterr().out
        assert "sha2(" in shown
    else:
        shown = f"{one!r} {one.expr!r} {one.expr.tree_repr()} {dict(one.optimize().dask)!r}"
        assert "fairramp" in shown
    assert KEY not in shown
    for done, key in ((one, KEY), (two, KEY[::-1])):
        expected = rule.decide(rows["p"], rows["sex"], ids=rows["who"], key=key)
        np.testing.assert_array_equal(columns_of(done)["decision"], expected)


def test_duckdb_keeps_a_million_rows_in_order():
    rows = duckdb.connect().sql(
        "SELECT i, hash(i) % 1000 / 1000 AS p, 'g' || i % 700 AS g FROM range(1000000) r(i)"
    )
    rule = fairramp.fit_frame(rows, score="p", group="g")
    done = rule.apply(rows, id="i", key=KEY).fetchnumpy()
    np.testing.assert_array_equal(done["i"], np.arange(1_000_000))


@pytest.mark.parametrize("threshold", [0.5, 0.3, 0.999999, 0.0, 1.0])
def test_logits_at_a_threshold_match_numpy(threshold):
    low, high = SCALES["logit"].compared_at(threshold)
    position = SCALES["logit"].position
    with np.errstate(over="ignore"):  # beyond the largest float
        edges = np.array([np.nextafter(low, -np.inf), low, high, np.nextafter(high, np.inf)])
    below, first, last, above = position(edges)
    assert first >= threshold >= last
    assert below < threshold or threshold == 0
    assert above > threshold or threshold == 1


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("policy", ["original", "pooled"])
@pytest.mark.parametrize("engine", ENGINES)
def test_extreme_real_scores_are_decided_alike(engine, up, policy):
    rule, score, group = real_scores(up, policy)
    ids = [f"id {i}" for i in range(len(score))]
    rows = {"number": np.arange(len(score)), "s": score, "g": group, "who": ids}
    done = columns_of(rule.apply(table(engine, rows), score="s", group="g", id="who", key=KEY))
    np.testing.assert_array_equal(done["probability"], rule.probabilities(score, group))
    np.testing.assert_array_equal(done["decision"], rule.decide(score, group, ids=ids, key=KEY))


@pytest.mark.parametrize("engine", ENGINES)
def test_fits_to_real_scores_are_those_of_arrays(engine):
    rng = np.random.default_rng(4)
    score, group = rng.standard_cauchy(60_000), rng.integers(0, 3, 60_000)
    settings = {"scale": "real", "cutoff": 0.75, "max_gap": 0.02}
    rows = {"number": np.arange(60_000), "s": score + 0.2 * group, "g": group}
    for width in (0.0, 0.05):
        found = fairramp.fit_frame(table(engine, rows), score="s", group="g", ramp_width=width, **settings)
        expected = fairramp.fit_rule(rows["s"], {"g": group}, ramp_width=width, **settings)
        assert found.record.fingerprint == expected.record.fingerprint
        np.testing.assert_allclose(found.thresholds, expected.thresholds, rtol=1e-9)


@pytest.mark.parametrize(("threshold", "chance"), [(-0.5, 1.0), (1.5, 0.0)])
def test_unreachable_threshold_decides_all_logits_alike(threshold, chance):
    rule = Rule(("a",), (Ramp.centered(threshold, 0, 0.5),), scale="logit", cutoff=0.0)
    largest = np.finfo(np.float64).max
    logits = [-largest, -1e300, -1e5, 0.0, 1e5, 1e300, largest]
    np.testing.assert_array_equal(rule.probabilities(logits, ["a"] * 7), chance)
    _, _, low, high, at = Numbers.of(rule, rule.ramps[0])
    assert [1.0 if logit > high else at if logit >= low else 0.0 for logit in logits] == [chance] * 7


# Rejected input -------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", LAZY)
@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        ({"p": [0.1, None, 0.3]}, {}, "`scores` must be finite numbers, got null in 1 row."),
        ({"p": [0.1, float("nan"), 0.3]}, {}, "must be finite numbers, got (nan|null) in 1 row."),
        ({"p": [0.1, float("inf"), 0.3]}, {"scale": "logit"}, "must be finite numbers, got inf in 1 row."),
        ({"p": [1.5, 2.0, 0.3]}, {}, r"must be between 0 and 1 for scale='probability', got 2.0 in 2 rows; fit"),
        (
            {"p": [-1.5, 1.0, 0.3]},
            {"scale": "signed"},
            r"must be between -1 and 1 for scale='signed', got -1.5 in 1 row",
        ),
        ({"p": ["a", "b", "c"]}, {}, "`scores` must be numbers, got text."),
        (
            {"w": [1.0, -1.0, 1.0]},
            {},
            "`sample_weight` must be finite and not negative, got other values in 1 row.",
        ),
        ({"w": [1.0, None, 1.0]}, {}, "`sample_weight` must be finite and not negative"),
        ({"w": [0.0, 0.0, 0.0]}, {}, "`sample_weight` is zero in every row; at least"),
        ({"w": [1.0, 1.0, 0.0]}, {}, "`sample_weight` is zero in every row of group 'b'"),
        ({"w": [1e200, 1e-200, 1.0]}, {}, "must not differ by more than a factor of 1e300"),
        ({"y": [0, 2, 1]}, {}, "`labels` must be 0 or 1, got other values in 1 row."),
        ({"g": [1.5, 2.0, 1.0]}, {}, "A group label must be a string, an integer"),
        ({"g": [[1], [2], [1]]}, {}, "A group label must be .* got values of type List"),
        ({}, {"solver": "sgd", "target_rate": 0.5}, "requires rows in memory; collect the table first"),
        ({}, {"score": "pp"}, "The table has no column 'pp'; did you mean 'p'?"),
        ({}, {"group": "nothing"}, "The table has no column 'nothing'; its columns are 'p', 'g', 'w', 'y'."),
        ({}, {"group": ["g", "g"]}, "`group` names the same column twice"),
        ({}, {"group": []}, "`group` must be a column name or a list of column names"),
        ({}, {"score": 3}, "`score` must be a column name, got 3."),
        ({}, {"target_rate": "accuracy", "label": None}, "requires `label`"),
        ({}, {"max_gap": 2}, "`max_gap` must be between"),
    ],
)
def test_bad_input_raises(engine, change, settings, message):
    rows = {"p": [0.1, 0.2, 0.3], "g": ["a", "a", "b"], "w": [1.0, 1.0, 1.0], "y": [0, 1, 1]} | change
    arguments = {"score": "p", "group": "g", "weight": "w", "label": "y"} | settings
    with pytest.raises(InputError, match=message):
        fairramp.fit_frame(table(engine, rows), **arguments)


@pytest.mark.parametrize("engine", ENGINES)
def test_fit_to_an_empty_table_raises(engine):
    rows = {"p": pa.array([], pa.float64()), "g": pa.array([], pa.string())}
    with pytest.raises(InputError, match="`scores` is empty; pass at least one row"):
        fairramp.fit_frame(table(engine, rows), score="p", group="g")


@pytest.mark.parametrize("frame", [[1, 2], {"p": [0.1]}, None, np.zeros((2, 2))])
def test_non_table_raises(frame):
    with pytest.raises(InputError, match="`frame` must be a pandas, polars, Arrow, Spark or Dask table"):
        fairramp.fit_frame(frame, score="p", group="g")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"id": "who"}, "need both `id` and `key`; `key` is missing"),
        ({"key": KEY}, "need both `id` and `key`; `id` is missing"),
        ({"id": "who", "key": "short"}, "`key` must be 64 lowercase hexadecimal characters, got 5 characters"),
        (
            {"id": "p", "key": KEY},
            "`ids` must be strings or integers, .* convert them to integers",
        ),
        ({"id": "yes", "key": KEY}, "`ids` must be strings or integers.*convert them to strings"),
        ({"id": "gone", "key": KEY}, "`ids` must be strings or integers.*give every row a unique id"),
        ({"id": "gone_number", "key": KEY}, "`ids` must be strings or integers.*give every row a unique id"),
        ({"score": "q"}, "The table has no column 'q'; did you mean 'p'|its columns are"),
        ({"score": None}, "Pass `score`: the rule does not store"),
        ({"group": ["g", "who"]}, r"`group` must name 1 column, as in the fit, got \['g', 'who'\]"),
        ({"strata": "who"}, "does not use `strata`"),
        ({"prefix": 3}, "`prefix` must be a string"),
        ({"prefix": "my_"}, "already has a column 'my_probability'; pass a prefix"),
    ],
)
def test_bad_apply_arguments_raise(engine, settings, message):
    rows = {
        "p": [0.1, 0.9],
        "g": ["a", "a"],
        "who": ["x", "y"],
        "yes": [True, False],
        "gone": ["x", None],
        "gone_number": [1, None],
        "my_probability": [1, 2],
    }
    rule = Rule(("a",), (Ramp.centered(0.5, 0.1),))
    with pytest.raises(InputError, match=message):
        rule.apply(table(engine, rows), **({"score": "p", "group": "g"} | settings))


def test_sql_numbers_are_exact_doubles():
    for number in (0.1, 1 / 3, -5e-324, 1e308, 0.49999999999999994, 2.0**52):
        text = literal(number)
        [(value, kind)] = duckdb.sql(f"SELECT {text}, typeof({text})").fetchall()
        assert (value, kind) == (number, "DOUBLE")


def test_duckdb_needs_no_other_library():
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "pyarrow", "polars"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import duckdb, fairramp
rows = duckdb.connect().sql("SELECT i, hash(i) % 1000 / 1000 AS p, 'g' || i % 3 AS g FROM range(100000) r(i)")
rule = fairramp.fit_frame(rows, score="p", group="g")
print(len(rule.apply(rows, id="i", key="0" * 64).fetchall()))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "100000"
