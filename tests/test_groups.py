"""The same partition of the rows gives the same probabilities, however it is expressed."""

import enum
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairramp import FairrampError, Rule, fit_rule
from samples import quiet_fit, sample

SCORES, CODES = sample(600, n_groups=3)
N = len(SCORES)
REFERENCE = fit_rule(SCORES, CODES, max_gap=0.01).probabilities(SCORES, CODES)


def labeled(labels):
    """A list with the label of each row's code."""
    return [labels[code] for code in CODES]


def check(column, labels, plain):
    """The column gives the reference probabilities and these labels, and its rule accepts plain lists."""
    rule = fit_rule(SCORES, column, max_gap=0.01)
    assert rule.groups == tuple(labels)
    assert list(map(type, rule.groups)) == list(map(type, labels))
    np.testing.assert_allclose(rule.probabilities(SCORES, column), REFERENCE, rtol=0, atol=1e-12)
    # A rule fitted on one type of column accepts any other type with the same labels.
    assert np.array_equal(rule.probabilities(SCORES, plain), rule.probabilities(SCORES, column))
    other = fit_rule(SCORES, plain, max_gap=0.01)
    assert np.array_equal(other.probabilities(SCORES, column), rule.probabilities(SCORES, column))
    assert Rule.from_json(rule.to_json()) == rule
    return rule


def subcases(cases):
    return [pytest.param(column, id=name) for name, column in cases.items()]


# Integers -----------------------------------------------------------------------------------------

INTEGER_KINDS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4", ">u8"]


@pytest.mark.parametrize("kind", INTEGER_KINDS)
def test_integers_of_every_type_are_the_same_groups(kind):
    check(CODES.astype(kind), [0, 1, 2], CODES.tolist())


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([-128, 0, 127], "int8"),
        ([0, 200, 255], "uint8"),
        ([-300, -200, -100], "int16"),
        ([-7, 5, 10**9], "int64"),
        ([5, 10**9, 10**9 + 1], "int32"),
        ([0, 15, 16], "int64"),
        ([0, 65_535, 65_536], "int64"),
        ([-(2**63), 0, 2**63 - 1], "int64"),
        ([2**63 - 3, 2**63 - 2, 2**63 - 1], "int64"),
        ([0, 1, 2**64 - 1], "uint64"),
        ([2**64 - 3, 2**64 - 2, 2**64 - 1], "uint64"),
        ([2**53, 2**53 + 1, 2**53 + 2], "int64"),
    ],
)
def test_integers_may_be_negative_sparse_and_huge(values, kind):
    check(np.array(values, dtype=kind)[CODES], values, labeled(values))


@pytest.mark.parametrize("values", [[-(2**70), 0, 2**70], [10**40, 10**40 + 1, 10**40 + 2]])
def test_integers_may_exceed_64_bits(values):
    check(np.array(labeled(values), dtype=object), values, labeled(values))


@pytest.mark.parametrize(
    "column",
    subcases(
        {
            "numpy integers in a list": list(CODES),
            "tuple": tuple(CODES.tolist()),
            "object": CODES.astype(object),
            "float": CODES.astype(float),
            "float16": CODES.astype(np.float16),
            "floats in a list": CODES.astype(float).tolist(),
            "pandas": pd.Series(CODES),
            "pandas shuffled index": pd.Series(CODES, index=np.arange(N)[::-1]),
            "pandas nullable": pd.Series(CODES, dtype="Int64"),
            "pandas nullable small": pd.Series(CODES, dtype="UInt8"),
            "pandas arrow": pd.Series(CODES, dtype="int32[pyarrow]"),
            "pandas category": pd.Series(CODES, dtype="category"),
            "pandas index": pd.Index(CODES),
            "polars": pl.Series(CODES),
            "polars small": pl.Series(CODES, dtype=pl.UInt8),
            "arrow": pa.array(CODES),
            "arrow chunked": pa.chunked_array([CODES[:100], CODES[100:]]),
            "int enum": [list(enum.IntEnum("Code", ["A", "B", "C"], start=0))[code] for code in CODES],
        }
    ),
)
def test_integers_in_every_container_are_the_same_groups(column):
    check(column, [0, 1, 2], CODES.tolist())


# Texts --------------------------------------------------------------------------------------------

WORDS = ["", "Zoë <b>", "日本\n語"]
TEXTS = labeled(WORDS)


@pytest.mark.parametrize(
    "column",
    subcases(
        {
            "numpy": np.array(TEXTS),
            "numpy strings": np.array(TEXTS, dtype=np.dtypes.StringDType()),
            "numpy object": np.array(TEXTS, dtype=object),
            "numpy texts in a list": list(np.array(TEXTS)),
            "tuple": tuple(TEXTS),
            "pandas": pd.Series(TEXTS),
            "pandas object": pd.Series(TEXTS, dtype=object),
            "pandas string": pd.Series(TEXTS, dtype="string"),
            "pandas arrow": pd.Series(TEXTS, dtype="string[pyarrow]"),
            "pandas category": pd.Series(TEXTS, dtype="category"),
            "pandas categorical": pd.Categorical(TEXTS),
            "pandas categorical index": pd.CategoricalIndex(TEXTS),
            "pandas unused categories": pd.Series(pd.Categorical(TEXTS, [*WORDS[::-1], "unused", "also"])),
            "pandas ordered": pd.Series(pd.Categorical(TEXTS, WORDS[::-1], ordered=True)),
            "polars": pl.Series(TEXTS),
            "polars categorical": pl.Series(TEXTS, dtype=pl.Categorical),
            "polars enum": pl.Series(TEXTS, dtype=pl.Enum([*WORDS[::-1], "unused"])),
            "arrow": pa.array(TEXTS),
            "arrow large": pa.array(TEXTS, pa.large_string()),
            "arrow view": pa.array(TEXTS, pa.string_view()),
            "arrow chunked": pa.chunked_array([TEXTS[:1], TEXTS[1:300], TEXTS[300:]]),
            "arrow dictionary": pa.array(TEXTS).dictionary_encode(),
            "arrow dictionary chunked": pa.chunked_array([TEXTS[:7], TEXTS[7:]]).dictionary_encode(),
        }
    ),
)
def test_texts_in_every_container_are_the_same_groups(column):
    check(column, WORDS, TEXTS)


def test_arrow_columns_with_nulls_and_dictionaries_of_their_own_are_the_same_groups():
    texts = labeled(["b", None, "a"])
    parts = [pa.array(part).dictionary_encode() for part in (texts[:5], texts[5:200], texts[200:])]
    odd = pa.DictionaryArray.from_arrays(
        pa.array(
            [{"b": 3, "a": 0, None: 1}[t] if i % 2 else {"b": 2, "a": 0}.get(t) for i, t in enumerate(texts)]
        ),
        pa.array(["a", None, "b", "b"]),
    )
    columns = [
        pa.array(texts),
        pa.array([None, *texts])[1:],
        pa.chunked_array(parts),
        odd,
        pl.Series(texts),
        pl.Series(texts, dtype=pl.Categorical),
        pd.Series(texts, dtype="string[pyarrow]"),
    ]
    for column in columns:
        check(column, ["a", "b", None], texts)


class Sex(str, enum.Enum):  # noqa: UP042 - the older idiom, whose str() is 'Sex.F'
    F = "f"
    M = "m"
    X = "x"


def test_a_text_enum_equals_its_text():
    check([list(Sex)[code] for code in CODES], ["f", "m", "x"], labeled(["f", "m", "x"]))


def test_a_text_enum_and_its_text_are_one_group():
    mixed = [list(Sex)[code] if i % 2 else "fmx"[code] for i, code in enumerate(CODES)]
    check(mixed, ["f", "m", "x"], labeled(["f", "m", "x"]))


# Booleans -----------------------------------------------------------------------------------------

HALVES = np.random.default_rng(5).random(N) < 0.4


@pytest.mark.parametrize(
    "column",
    subcases(
        {
            "list": HALVES.tolist(),
            "numpy": HALVES,
            "numpy strided": np.repeat(HALVES, 2)[::2],
            "numpy object": HALVES.astype(object),
            "numpy booleans in a list": list(HALVES),
            "pandas": pd.Series(HALVES),
            "pandas nullable": pd.Series(HALVES, dtype="boolean"),
            "pandas arrow": pd.Series(HALVES, dtype="bool[pyarrow]"),
            "pandas category": pd.Series(HALVES, dtype="category"),
            "polars": pl.Series(HALVES),
            "arrow": pa.array(HALVES),
        }
    ),
)
def test_booleans_in_every_container_are_the_same_groups_and_stay_booleans(column):
    rule = fit_rule(SCORES, column)
    assert rule.groups[0] is False
    assert rule.groups[1] is True
    expected = fit_rule(SCORES, HALVES.astype(int)).probabilities(SCORES, HALVES.astype(int))
    np.testing.assert_allclose(rule.probabilities(SCORES, column), expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Some group labels differ only in type")
def test_similar_booleans_integers_and_texts_are_different_groups():
    for fitted, asked in [(HALVES, HALVES.astype(int)), (HALVES.astype(int), HALVES)]:
        with pytest.raises(FairrampError, match="not in the fit rows"):
            fit_rule(SCORES, fitted).probabilities(SCORES, asked)
    check(labeled([1, "1", "True"]), [1, "1", "True"], labeled([1, "1", "True"]))
    check(labeled([True, "1", "True"]), [True, "1", "True"], labeled([True, "1", "True"]))


# Missing values -----------------------------------------------------------------------------------

SOME_TEXTS = labeled(["x", "y", None])
SOME_INTEGERS = labeled([0, 7, None])
SOME_BOOLEANS = labeled([False, True, None])


def instead(column, missing):
    return [missing if value is None else value for value in column]


@pytest.mark.parametrize(
    "column",
    subcases(
        {
            "list": SOME_TEXTS,
            "object": np.array(SOME_TEXTS, dtype=object),
            "nan": instead(SOME_TEXTS, np.nan),
            "many nans": [float("nan") if value is None else value for value in SOME_TEXTS],
            "NA": instead(SOME_TEXTS, pd.NA),
            "NaT": instead(SOME_TEXTS, pd.NaT),
            "all of them": [
                [None, np.nan, pd.NA][i % 3] if value is None else value for i, value in enumerate(SOME_TEXTS)
            ],
            "pandas": pd.Series(SOME_TEXTS),
            "pandas object": pd.Series(SOME_TEXTS, dtype=object),
            "pandas string": pd.Series(SOME_TEXTS, dtype="string"),
            "pandas category": pd.Series(SOME_TEXTS, dtype="category"),
            "pandas categorical": pd.Categorical(SOME_TEXTS),
            "pandas unused category": pd.Series(pd.Categorical(SOME_TEXTS, ["unused", "y", "x"])),
            "polars": pl.Series(SOME_TEXTS),
            "polars categorical": pl.Series(SOME_TEXTS, dtype=pl.Categorical),
            "arrow": pa.array(SOME_TEXTS),
            "arrow chunked": pa.chunked_array([SOME_TEXTS[:9], SOME_TEXTS[9:]]),
            "arrow dictionary": pa.array(SOME_TEXTS).dictionary_encode(),
        }
    ),
)
def test_missing_texts_form_one_group(column):
    check(column, ["x", "y", None], SOME_TEXTS)


@pytest.mark.parametrize(
    "column",
    subcases(
        {
            "list": SOME_INTEGERS,
            "object": np.array(SOME_INTEGERS, dtype=object),
            "float with nan": np.array(instead(SOME_INTEGERS, np.nan)),
            "float32 with nan": np.array(instead(SOME_INTEGERS, np.nan), dtype=np.float32),
            "list with nan": instead(SOME_INTEGERS, np.nan),
            "pandas float": pd.Series(SOME_INTEGERS, dtype=float),
            "pandas nullable": pd.Series(SOME_INTEGERS, dtype="Int64"),
            "pandas arrow": pd.Series(SOME_INTEGERS, dtype="int64[pyarrow]"),
            "pandas category": pd.Series(SOME_INTEGERS, dtype="category"),
            "polars": pl.Series(SOME_INTEGERS),
            "polars float": pl.Series(SOME_INTEGERS, dtype=pl.Float64),
            "arrow": pa.array(SOME_INTEGERS),
        }
    ),
)
def test_integral_floats_with_nan_equal_integers_with_none(column):
    check(column, [0, 7, None], SOME_INTEGERS)


@pytest.mark.parametrize(
    "column",
    subcases(
        {
            "list": SOME_BOOLEANS,
            "list with NA": instead(SOME_BOOLEANS, pd.NA),
            "list with nan": instead(SOME_BOOLEANS, np.nan),
            "pandas": pd.Series(SOME_BOOLEANS),
            "pandas with nan": pd.Series(instead(SOME_BOOLEANS, np.nan)),
            "pandas nullable": pd.Series(SOME_BOOLEANS, dtype="boolean"),
            "polars": pl.Series(SOME_BOOLEANS),
            "arrow": pa.array(SOME_BOOLEANS),
        }
    ),
)
def test_missing_booleans_form_one_group(column):
    check(column, [False, True, None], SOME_BOOLEANS)


HUGE = labeled([2**53, 2**53 + 1, None])


@pytest.mark.parametrize(
    "column",
    subcases(
        {
            "list": HUGE,
            "pandas nullable": pd.Series(HUGE, dtype="Int64"),
            "pandas arrow": pd.Series(HUGE, dtype="int64[pyarrow]"),
            "polars": pl.Series(HUGE),
            "arrow": pa.array(HUGE),
            "arrow chunked": pa.chunked_array([HUGE[:9], HUGE[9:]]),
        }
    ),
)
def test_huge_integers_stay_distinct_beside_missing_values(column):
    check(column, [2**53, 2**53 + 1, None], HUGE)


def test_masked_values_are_missing():
    column = np.ma.array(CODES, mask=CODES == 2)
    check(column, [0, 1, None], labeled([0, 1, None]))


def test_minus_zero_is_zero():
    check(np.where(CODES == 0, -0.0, CODES.astype(float)), [0, 1, 2], CODES.tolist())


# Intersections ------------------------------------------------------------------------------------

# Two columns with three distinct pairs, which are the three groups.
SEX = labeled(["f", "m", "f"])
AGE = labeled([30, 30, 60])
PAIRS = [("f", 30), ("f", 60), ("m", 30)]
ROWS = list(zip(SEX, AGE, strict=True))


@pytest.mark.parametrize(
    "columns",
    subcases(
        {
            "pandas": pd.DataFrame({"sex": SEX, "age": AGE}),
            "pandas categories": pd.DataFrame({"sex": pd.Categorical(SEX, ["m", "u", "f"]), "age": AGE}),
            "polars": pl.DataFrame({"sex": SEX, "age": AGE}),
            "arrow": pa.table({"sex": SEX, "age": AGE}),
            "mapping": {"sex": SEX, "age": AGE},
            "mapping of series": {"sex": pl.Series(SEX), "age": pd.Series(AGE)},
            "list of lists": [SEX, AGE],
            "tuple of arrays": (np.array(SEX), np.array(AGE)),
            "list of pandas": [pd.Series(SEX), pd.Series(AGE)],
            "list of polars": [pl.Series(SEX), pl.Series(AGE)],
            "list of arrow": [pa.array(SEX), pa.array(AGE)],
            "list of mixed": [SEX, pd.Series(AGE, dtype="category")],
            "2-d object": np.array(ROWS, dtype=object),
            "rows as tuples": ROWS,
            "pandas without names": pd.DataFrame(ROWS),
        }
    ),
)
def test_several_columns_make_intersections_labeled_by_tuples(columns):
    rule = check(columns, PAIRS, ROWS)
    assert [tuple(map(type, label)) for label in rule.groups] == [(str, int)] * 3


@pytest.mark.parametrize("kind", ["int8", "int64", "uint16", "U5"])
def test_a_2_d_array_makes_intersections_of_its_columns(kind):
    array = np.stack([CODES // 2, CODES % 2], axis=1).astype(kind)
    rows = list(zip(*array.T.tolist(), strict=True))
    check(array, sorted(set(rows)), rows)
    check(np.asfortranarray(array), sorted(set(rows)), rows)


def test_three_columns_make_intersections():
    columns = {"a": CODES // 2, "b": CODES % 2 == 1, "c": labeled(["x", None, "x"])}
    rule = check(
        columns,
        [(0, False, "x"), (0, True, None), (1, False, "x")],
        list(zip(*columns.values(), strict=True)),
    )
    assert [type(part) for part in rule.groups[0]] == [int, bool, str]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_value_counts_as_a_value_in_intersections(missing):
    columns = [instead(labeled(["f", None, "f"]), missing), AGE]
    check(columns, [("f", 30), ("f", 60), (None, 30)], list(zip(labeled(["f", None, "f"]), AGE, strict=True)))


def test_only_intersections_that_occur_become_groups():
    # 300 × 300 pairs are possible, 300 occur.
    codes = np.arange(3_000) % 300
    scores = np.random.default_rng(2).random(3_000)
    rule = quiet_fit(scores, [codes, codes[::-1].copy()])
    assert rule.groups == tuple((i, 299 - i) for i in range(300))


@pytest.mark.parametrize(
    "column",
    subcases(
        {
            "pandas": pd.DataFrame({"g": CODES}),
            "polars": pl.DataFrame({"g": CODES}),
            "arrow": pa.table({"g": CODES}),
            "mapping": {"g": CODES},
            "list of one list": [CODES.tolist()],
            "list of one array": [CODES],
            "2-d": CODES[:, None],
            "pandas without a name": pd.DataFrame(CODES),
        }
    ),
)
def test_a_table_with_one_column_equals_the_column(column):
    check(column, [0, 1, 2], CODES.tolist())


def test_reordered_named_columns_are_never_confused():
    # Swapping two yes/no columns by position would give valid labels and wrong decisions.
    first, second = HALVES, np.random.default_rng(6).random(N) < 0.3
    rule = fit_rule(SCORES, pd.DataFrame({"first": first, "second": second}), target_rate=0.4)
    expected = rule.probabilities(SCORES, pd.DataFrame({"first": first, "second": second}))
    try:
        found = rule.probabilities(SCORES, pd.DataFrame({"second": second, "first": first}))
    except FairrampError:
        return
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param([pd.Series(SEX, name="x"), pd.Series(AGE, name="x")], id="pandas"),
        pytest.param([pl.Series("x", SEX), pl.Series("x", AGE)], id="polars"),
        pytest.param({1: SEX, "1": AGE}, id="mapping"),
    ],
)
def test_duplicate_column_names_are_not_confused(columns):
    try:
        rule = fit_rule(SCORES, columns, max_gap=0.01)
    except FairrampError:
        return
    assert rule.groups == tuple(PAIRS)
    np.testing.assert_allclose(rule.probabilities(SCORES, columns), REFERENCE, rtol=0, atol=1e-12)


def test_an_arrow_record_batch_is_a_table_or_raises():
    batch = pa.record_batch({"sex": SEX, "age": AGE})
    try:
        rule = fit_rule(SCORES, batch, max_gap=0.01)
    except FairrampError:
        return
    np.testing.assert_allclose(rule.probabilities(SCORES, batch), REFERENCE, rtol=0, atol=1e-12)


# Names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        pytest.param(pd.DataFrame({"sex": SEX, "age": AGE}), ("sex", "age"), id="pandas"),
        pytest.param(pl.DataFrame({"sex": SEX, "age": AGE}), ("sex", "age"), id="polars"),
        pytest.param(pa.table({"sex": SEX, "age": AGE}), ("sex", "age"), id="arrow"),
        pytest.param({"sex": SEX, "age": AGE}, ("sex", "age"), id="mapping"),
        pytest.param([pd.Series(SEX, name="sex"), pl.Series("age", AGE)], ("sex", "age"), id="list of series"),
        pytest.param(pd.Series(SEX, name="sex"), ("sex",), id="pandas series"),
        pytest.param(pl.Series("sex", SEX), ("sex",), id="polars series"),
        pytest.param(pd.DataFrame({"sex": SEX}), ("sex",), id="one column"),
        pytest.param(pd.Series(SEX), None, id="pandas series without a name"),
        pytest.param(pl.Series(SEX), None, id="polars series without a name"),
        pytest.param(SEX, None, id="list"),
        pytest.param([SEX, AGE], None, id="list of lists"),
        pytest.param([np.array(SEX), np.array(AGE)], None, id="list of arrays"),
        pytest.param(np.array(ROWS), None, id="2-d"),
    ],
)
def test_the_record_keeps_the_names_of_group_columns(columns, names):
    assert fit_rule(SCORES, columns).columns.groups == names


@pytest.mark.parametrize("columns", [pd.DataFrame(ROWS), pd.DataFrame(CODES)], ids=["two", "one"])
def test_column_names_that_are_not_text_can_be_saved(columns):
    rule = fit_rule(SCORES, columns)
    names = json.loads(rule.to_json())["columns"]["groups"]
    assert names is None or all(isinstance(name, str) for name in names)
    assert Rule.from_json(rule.to_json()) == rule


@pytest.mark.parametrize(
    ("scores", "name"),
    [
        (pd.Series(SCORES, name="p"), "p"),
        (pl.Series("p", SCORES), "p"),
        (pd.Series(SCORES, name=7), None),
        (pl.Series(SCORES), None),
        (SCORES, None),
    ],
    ids=["pandas", "polars", "number", "polars without a name", "numpy"],
)
def test_the_record_keeps_the_name_of_the_score_column(scores, name):
    assert fit_rule(scores, CODES).columns.score == name


# Order --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["b", "a", "c"], ["a", "b", "c"]),
        ([10, 9, -1], [-1, 9, 10]),
        (["10", 9, None], [9, "10", None]),
        ([None, "a", True], [True, "a", None]),
        ([("b", 1), ("a", None), ("a", 2)], [("a", 2), ("a", None), ("b", 1)]),
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_label_order_does_not_depend_on_row_order(labels, order, seed):
    shuffle = np.random.default_rng(seed).permutation(N)
    column = labeled(labels)
    rule = fit_rule(SCORES[shuffle], [column[i] for i in shuffle])
    assert rule.groups == tuple(order)


@pytest.mark.parametrize("categories", [["z", "a", "m"], ["m", "z", "a"]])
def test_label_order_does_not_depend_on_category_order(categories):
    column = pd.Series(pd.Categorical(labeled(["z", "a", "m"]), categories))
    assert fit_rule(SCORES, column).groups == ("a", "m", "z")


def test_row_order_does_not_change_the_file():
    shuffle = np.random.default_rng(3).permutation(N)
    first = fit_rule(SCORES, TEXTS, ramp_width=0)
    second = fit_rule(SCORES[shuffle], [TEXTS[i] for i in shuffle], ramp_width=0)
    assert first.record.fingerprint == second.record.fingerprint
    assert first.to_json() == second.to_json()


def test_unused_categories_are_not_groups_at_decision_time():
    rule = fit_rule(SCORES, labeled(["x", "y", "z"]))
    column = pd.Series(pd.Categorical(labeled(["x", "y", "z"]), ["unseen", "z", "y", "x"]))
    assert np.array_equal(
        rule.probabilities(SCORES, column), rule.probabilities(SCORES, labeled(["x", "y", "z"]))
    )


def test_columns_not_named_as_in_the_fit_raise():
    rule = quiet_fit([0.2, 0.8], {"sex": ["f", "m"], "unit": [1, 2]})
    assert rule.probabilities([0.2], {"unit": [1], "more": ["x"], "sex": ["f"]}).shape == (1,)
    with pytest.raises(FairrampError, match=r"has the columns \['sex', 'team'\], but the rule was fitted on"):
        rule.probabilities([0.2], {"sex": ["f"], "team": [1]})


def test_a_list_as_label_raises():
    with pytest.raises(FairrampError, match=r"got \['b'\] \(list\); convert the labels to strings"):
        fit_rule([0.2, 0.4, 0.6], ["a", ["b"], "c"])
