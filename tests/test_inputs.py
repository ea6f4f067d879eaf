"""Bad input always raises, with a message for each mistake.

Every message names the argument, the requirement and the value, and ends with a remedy if there is one.
"""

import datetime
import decimal
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairramp
from fairramp import FairrampError, FairrampWarning, InputError, Ramp, Rule, fit_rule
from samples import KEY, quiet_fit, sample

SCORES, CODES = sample(400)
GROUPS = np.where(CODES == 0, "A", "B")
N = len(SCORES)
RULE = fit_rule(SCORES, GROUPS)


def with_row(value, row=3, kind=np.float64, base=SCORES):
    """Scores with one value replaced."""
    column = np.array(base, dtype=kind)
    column[row] = value
    return column


def plain(value):
    """A value as a plain Python object, even if it is a NumPy scalar."""
    return value.item() if isinstance(value, np.generic) else value


def refused(call, *words):
    """Check that a call raises InputError with one line that contains all the words; return the message."""
    with pytest.raises(InputError) as caught:
        call()
    sentence = str(caught.value)
    for word in words:
        assert word in sentence, f"{word!r} is not in: {sentence}"
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    return sentence


def test_input_error_is_a_value_error_and_a_fairramp_error():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, FairrampError)
    assert issubclass(fairramp.UnseenGroupError, InputError)
    assert issubclass(fairramp.RuleFormatError, ValueError)
    assert issubclass(fairramp.RuleFormatError, FairrampError)
    assert issubclass(FairrampWarning, UserWarning)


def test_arguments_after_the_data_are_keyword_only():
    with pytest.raises(TypeError):
        fit_rule(SCORES, GROUPS, None, 0.1)


# Scores -------------------------------------------------------------------------------------------


@pytest.fixture(params=["fit_rule", "probabilities", "decide"])
def door(request):
    """Each function that takes scores, for a scale."""
    name = request.param

    def enter(scores, groups=GROUPS, scale="probability"):
        if name == "fit_rule":
            return fit_rule(scores, groups, scale=scale, cutoff=0.0 if scale == "real" else None)
        rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)), scale=scale)
        if name == "probabilities":
            return rule.probabilities(scores, groups)
        return rule.decide(scores, groups, random_state=0)

    return enter


@pytest.mark.parametrize("scale", ["probability", "percent", "signed", "logit", "real"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_non_finite_scores_raise_on_every_scale(door, scale, value, kind):
    refused(lambda: door(with_row(value, 7, kind), scale=scale), "`scores`", "finite", str(value), "row 7")


@pytest.mark.parametrize("value", [-0.001, 1.001, -3, 2])
def test_probabilities_outside_0_to_1_raise(door, value):
    refused(
        lambda: door(with_row(value)), "`scores`", "between 0 and 1", "'probability'", f"got {value}", "row 3"
    )


@pytest.mark.parametrize("value", [-1.001, 1.001, 5])
def test_signed_scores_outside_minus_1_to_1_raise(door, value):
    refused(
        lambda: door(with_row(value), scale="signed"),
        "`scores`",
        "between -1 and 1",
        "'signed'",
        f"got {value}",
        "row 3",
    )


@pytest.mark.parametrize(
    ("scale", "value"),
    [
        ("probability", 1 + 1e-9),
        ("probability", np.nextafter(1, 2)),
        ("signed", -1 - 1e-9),
        ("probability", np.nextafter(np.float32(1), np.float32(2), dtype=np.float32)),
    ],
)
def test_scores_just_out_of_range_are_shown_with_enough_digits(door, scale, value):
    sentence = refused(lambda: door(with_row(value, kind=type(value)), scale=scale), "row 3")
    shown = float(sentence.split("got ")[1].split(" in row")[0])
    assert abs(shown) > 1


def test_percentages_as_probabilities_raise_with_a_remedy(door):
    refused(lambda: door(SCORES * 100), "between 0 and 1", "scale='percent' for percentages")


def test_logits_as_probabilities_raise_with_a_remedy(door):
    refused(lambda: door(np.log(SCORES / (1 - SCORES))), "between 0 and 1", "scale='logit'")


def test_signed_scores_as_probabilities_raise_with_a_remedy(door):
    refused(lambda: door(2 * SCORES - 1), "between 0 and 1", "scale='signed'")


def test_logits_as_signed_scores_raise_with_a_remedy(door):
    refused(lambda: door(np.log(SCORES / (1 - SCORES)), scale="signed"), "between -1 and 1", "scale='logit'")


@pytest.mark.parametrize("row", [0, 131_071, 131_072, 299_999])
def test_bad_score_is_found_in_any_block_and_its_row_named(row):
    scores = np.full(300_000, 0.5)
    scores[row] = np.nan
    groups = np.arange(300_000) % 2
    refused(lambda: fit_rule(scores, groups), f"row {row};")
    rule = Rule((0, 1), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    refused(lambda: rule.probabilities(scores, groups), f"row {row};")


def test_first_of_several_bad_scores_is_named():
    scores = np.full(300_000, 0.5)
    scores[[299_999, 140_000, 131_080]] = -1
    refused(lambda: fit_rule(scores, np.arange(300_000) % 2), "row 131080;")


def test_both_columns_of_predict_proba_raise_with_a_remedy(door):
    refused(
        lambda: door(np.stack([1 - SCORES, SCORES], axis=1)),
        "`scores`",
        "one column",
        "(400, 2)",
        "model.classes_[i]",
    )


@pytest.mark.parametrize("shape", [(400, 1), (1, 400), (20, 20), (400, 1, 1)])
def test_two_dimensional_scores_raise(door, shape):
    refused(lambda: door(SCORES.reshape(shape)), "`scores`", "one column", str(shape))


def test_single_number_as_scores_raises(door):
    refused(lambda: door(0.5, ["A"]), "`scores`", "one column", "list of one")


def test_ragged_scores_raise(door):
    refused(lambda: door([[0.1], [0.2, 0.3]], ["A", "B"]), "`scores`", "different length")


TEXTS = [f"{score:.3f}" for score in SCORES]


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(TEXTS, id="list"),
        pytest.param(np.array(TEXTS), id="numpy"),
        pytest.param(np.array(TEXTS, dtype=object), id="numpy object"),
        pytest.param(pd.Series(TEXTS), id="pandas"),
        pytest.param(pd.Series(TEXTS, dtype=object), id="pandas object"),
        pytest.param(pl.Series(TEXTS), id="polars"),
        pytest.param(pa.array(TEXTS), id="arrow"),
        pytest.param([0.5] * (N - 1) + ["0.5"], id="one text among numbers"),
        pytest.param(np.array([0.5] * (N - 1) + ["0.5"], dtype=object), id="one text among objects"),
    ],
)
def test_text_scores_raise_even_if_numeric(door, column):
    refused(lambda: door(column), "`scores`", "numbers")


def test_text_among_numbers_raises_with_its_row(door):
    refused(lambda: door(with_row("high", 5, object)), "`scores`", "numbers", "'high'", "row 5")


def test_message_calls_text_text_rather_than_a_dtype():
    sentence = refused(lambda: fit_rule(TEXTS, GROUPS), "`scores`", "numbers")
    assert not re.search(r"str\d", sentence), sentence


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(SCORES + 0j, id="complex"),
        pytest.param(np.full(N, "2020-01-01", dtype="datetime64[D]"), id="dates"),
        pytest.param(np.ones(N, dtype="timedelta64[D]"), id="durations"),
        pytest.param([b"0.5"] * N, id="bytes"),
        pytest.param([datetime.date(2020, 1, 1)] * N, id="date objects"),
        pytest.param([{}] * N, id="dicts"),
    ],
)
def test_scores_of_other_types_raise(door, column):
    refused(lambda: door(column), "`scores`", "numbers")


MISSING = [None, *SCORES.tolist()[1:]]


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(MISSING, id="list"),
        pytest.param(np.array(MISSING, dtype=object), id="numpy object"),
        pytest.param(pd.Series(MISSING), id="pandas"),
        pytest.param(pd.Series(MISSING, dtype="Float64"), id="pandas nullable"),
        pytest.param(pd.Series(MISSING, dtype="double[pyarrow]"), id="pandas arrow"),
        pytest.param([pd.NA, *MISSING[1:]], id="list with NA"),
        pytest.param(pl.Series(MISSING), id="polars"),
        pytest.param(pa.array(MISSING), id="arrow"),
        pytest.param(pa.chunked_array([MISSING]), id="arrow chunked"),
    ],
)
def test_missing_score_raises(door, column):
    refused(lambda: door(column), "`scores`", "row 0")


def test_masked_array_without_masked_values_is_accepted():
    rule = quiet_fit(np.ma.array(SCORES, mask=False), GROUPS)
    assert rule == quiet_fit(SCORES, GROUPS)


def test_masked_score_raises(door):
    refused(lambda: door(np.ma.array(SCORES, mask=np.arange(N) == 3)), "`scores`")


@pytest.mark.parametrize(
    ("kind", "value"),
    [(np.float16, 60_000), (np.float32, 3e38), (np.float64, 1.7e308), (np.float64, -1.7e308)],
)
def test_any_finite_logit_is_accepted(kind, value):
    logits = np.full(N, value, dtype=kind)
    rule = quiet_fit(logits, GROUPS, scale="logit")
    assert (rule.probabilities(logits, GROUPS) == (value > 0)).all()


# Lengths and empty input --------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 1, N - 1])
def test_groups_of_another_length_raise(door, keep):
    refused(lambda: door(SCORES, GROUPS[:keep]), "`groups`", "`scores`", str(keep), str(N))


def test_group_columns_of_different_length_raise(door):
    refused(lambda: door(SCORES, [GROUPS, GROUPS[1:]]), "`groups`", "have different lengths", str(N), str(N - 1))


def test_weights_of_another_length_raise():
    refused(
        lambda: fit_rule(SCORES, GROUPS, sample_weight=np.ones(7)), "`sample_weight`", "`scores`", "7", str(N)
    )


def test_labels_of_another_length_raise():
    refused(lambda: fit_rule(SCORES, GROUPS, [0, 1, 1]), "`labels`", "`scores`", "3", str(N))


def test_ids_of_another_length_raise():
    refused(lambda: RULE.decide(SCORES, GROUPS, ids=["a", "b"], key=KEY), "`ids`", "`scores`", "2", str(N))


@pytest.mark.parametrize("nothing", [[], np.array([]), pd.Series([], dtype=float), pl.Series([], dtype=float)])
def test_fit_without_rows_raises(nothing):
    refused(lambda: fit_rule(nothing, []), "`scores`", "empty", "at least one row")


# Weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1, -1e-300, np.nan, np.inf, -np.inf])
def test_negative_or_non_finite_weight_raises(value):
    refused(
        lambda: fit_rule(SCORES, GROUPS, sample_weight=with_row(value, 9)),
        "`sample_weight`",
        "finite",
        "not negative",
        f"got {value}",
        "row 9",
    )


def test_missing_weight_raises():
    refused(lambda: fit_rule(SCORES, GROUPS, sample_weight=[1] * (N - 1) + [None]), "`sample_weight`", "row 399")


def test_masked_weight_raises():
    weights = np.ma.array(np.ones(N), mask=np.arange(N) == 3)
    refused(lambda: fit_rule(SCORES, GROUPS, sample_weight=weights), "`sample_weight`")


def test_weights_all_0_raise():
    refused(lambda: fit_rule(SCORES, GROUPS, sample_weight=np.zeros(N)), "`sample_weight`", "zero in every row")


def test_group_with_weights_all_0_raises_and_is_named():
    weights = (GROUPS == "A").astype(float)
    refused(
        lambda: fit_rule(SCORES, GROUPS, sample_weight=weights),
        "`sample_weight`",
        "zero in every row",
        "'B'",
        "remove",
    )


@pytest.mark.parametrize("shape", [(N, 1), (1, N), ()])
def test_two_dimensional_weights_raise(shape):
    refused(
        lambda: fit_rule(SCORES, GROUPS, sample_weight=np.ones(shape)),
        "`sample_weight`",
        "one column",
        str(shape),
    )


@pytest.mark.parametrize("column", [["heavy"] * N, np.array(["1"] * N, dtype=object), [1j] * N])
def test_non_numeric_weights_raise(column):
    refused(lambda: fit_rule(SCORES, GROUPS, sample_weight=column), "`sample_weight`", "numbers")


# Labels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1, 2, 0.5, np.nan, np.inf])
def test_labels_other_than_0_and_1_raise_even_if_unused(value):
    labels = with_row(value, 11, base=SCORES > 0.5)
    for target_rate in ("optimal", "base_rate"):
        refused(
            lambda target_rate=target_rate: fit_rule(SCORES, GROUPS, labels, target_rate=target_rate),
            "`labels`",
            "0 or 1",
            f"got {value}",
            "row 11",
        )


def test_label_close_to_1_is_shown_with_enough_digits():
    sentence = refused(lambda: fit_rule(SCORES, GROUPS, with_row(1 + 1e-9, base=SCORES > 0.5)), "row 3")
    assert float(sentence.split("got ")[1].split(" in row")[0]) > 1


@pytest.mark.parametrize("column", [["yes", "no"] * (N // 2), np.array(["1", "0"] * (N // 2), dtype=object)])
def test_text_labels_raise(column):
    refused(lambda: fit_rule(SCORES, GROUPS, column, target_rate="base_rate"), "`labels`", "numbers")


def test_two_label_columns_raise():
    refused(lambda: fit_rule(SCORES, GROUPS, np.ones((N, 2))), "`labels`", "one column", "(400, 2)")


def test_base_rate_without_labels_raises():
    refused(lambda: fit_rule(SCORES, GROUPS, target_rate="base_rate"), "target_rate", "'base_rate'", "`labels`")


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.float32, "boolean", "Int64"])
def test_labels_can_be_booleans_or_numbers_of_any_type(kind):
    labels = pd.Series(SCORES > 0.5).astype(kind)
    rule = fit_rule(SCORES, GROUPS, labels, target_rate="base_rate")
    assert rule.target_rate == pytest.approx(np.mean(SCORES > 0.5), abs=1e-15)


def test_base_rate_is_weighted():
    labels, weights = SCORES > 0.4, np.random.default_rng(1).random(N)
    rule = fit_rule(SCORES, GROUPS, labels, target_rate="base_rate", sample_weight=weights)
    assert rule.target_rate == pytest.approx((labels * weights).sum() / weights.sum(), abs=1e-12)


# Settings -----------------------------------------------------------------------------------------

NOT_NUMBERS = [True, False, np.True_, "0.1", None, [0.1], np.array([0.1]), 1j, decimal.Decimal("0.1")]


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan, np.inf, *NOT_NUMBERS[:4], *NOT_NUMBERS[5:]], ids=repr)
def test_max_gap_must_be_a_number_in_0_to_1(value):
    refused(
        lambda: fit_rule(SCORES, GROUPS, max_gap=value), "`max_gap`", "between 0 and 1", f"got {plain(value)!r}"
    )


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, *NOT_NUMBERS], ids=repr)
def test_ramp_width_must_be_a_number_of_at_least_0(value):
    refused(lambda: fit_rule(SCORES, GROUPS, ramp_width=value), "`ramp_width`", f"got {plain(value)!r}")


@pytest.mark.parametrize("value", [9.99e-7, 1e-9, 5e-324])
def test_ramp_width_too_narrow_to_be_exact_raises_with_a_remedy(value):
    refused(
        lambda: fit_rule(SCORES, GROUPS, ramp_width=value),
        "`ramp_width`",
        "0 or between 1e-6 and 1e6",
        f"{value!r}",
        "with 0",
    )


@pytest.mark.parametrize("value", [0, 0.0, 1e-6, np.float32(0.25), np.int64(1), 1])
def test_ramp_width_can_be_0_or_at_least_1e_6(value):
    assert all(ramp.width == value for ramp in fit_rule(SCORES, GROUPS, ramp_width=value).ramps)


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan, *NOT_NUMBERS[:3], *NOT_NUMBERS[5:]], ids=repr)
def test_target_rate_must_be_a_number_in_0_to_1(value):
    refused(
        lambda: fit_rule(SCORES, GROUPS, target_rate=value),
        "`target_rate`",
        "between 0 and 1",
        f"got {plain(value)!r}",
    )


@pytest.mark.parametrize("value", ["", "best", "Optimal", "0.3"])
def test_unknown_target_rate_raises_and_lists_the_known_ones(value):
    refused(
        lambda: fit_rule(SCORES, GROUPS, target_rate=value),
        "`target_rate`",
        "'optimal'",
        "'base_rate'",
        "number",
        f"got {plain(value)!r}",
    )


@pytest.mark.parametrize(
    ("scale", "value", "limits"),
    [
        ("probability", -0.1, "between 0 and 1"),
        ("probability", 1.1, "between 0 and 1"),
        ("probability", np.nan, "between 0 and 1"),
        ("signed", -1.1, "between -1 and 1"),
        ("signed", 1.1, "between -1 and 1"),
        ("logit", np.inf, "between -700 and 700"),
        ("logit", np.nan, "between -700 and 700"),
        ("logit", -1e300, "between -700 and 700"),
        ("real", np.inf, "must be a finite number, got inf."),
        ("real", np.nan, "must be a finite number, got nan."),
        *(("probability", value, "between 0 and 1") for value in NOT_NUMBERS if value is not None),
    ],
    ids=repr,
)
def test_cutoff_must_be_in_the_range_of_the_scale(scale, value, limits):
    refused(
        lambda: fit_rule(SCORES, GROUPS, scale=scale, cutoff=value),
        "`cutoff`",
        limits,
        f"got {plain(value)!r}",
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ramp", ["'centered'", "'paper'"]),
        ("scale", ["'probability'", "'percent'", "'signed'", "'logit'"]),
        ("unseen_group", ["'error'", "'pooled'", "'original'"]),
    ],
)
@pytest.mark.parametrize("value", ["other", "", "Centered", "PROBABILITY", None, 1, True, ["error"], b"error"])
def test_unknown_option_raises_and_lists_the_known_ones(name, words, value):
    refused(lambda: fit_rule(SCORES, GROUPS, **{name: value}), f"`{name}`", *words, f"got {plain(value)!r}")


@pytest.mark.parametrize("value", [20240131, True, b"2024-01-31", datetime.date(2024, 1, 31)])
def test_date_that_is_not_text_raises_with_a_remedy(value):
    refused(
        lambda: fit_rule(SCORES, GROUPS, date=value), "`date`", "string", f"got {plain(value)!r}", "isoformat()"
    )


def test_date_is_stored_as_given():
    assert fit_rule(SCORES, GROUPS, date="31 January").record.date == "31 January"
    assert fit_rule(SCORES, GROUPS).record.date is None


# Groups -------------------------------------------------------------------------------------------


@pytest.fixture(params=["fit_rule", "probabilities"])
def group_door(request):
    """Each function that takes groups."""
    return {"fit_rule": fit_rule, "probabilities": RULE.probabilities}[request.param]


@pytest.mark.parametrize(
    "column",
    [
        SCORES,
        SCORES.astype(np.float32),
        SCORES.tolist(),
        pd.Series(SCORES),
        pl.Series(SCORES),
        pa.array(SCORES),
    ],
    ids=["numpy", "float32", "list", "pandas", "polars", "arrow"],
)
def test_continuous_groups_raise_with_a_remedy(group_door, column):
    refused(lambda: group_door(SCORES, column), "group label", "an integer", "(float", "bin a")


@pytest.mark.parametrize(
    "label",
    [
        b"A",
        np.bytes_(b"A"),
        datetime.date(2020, 1, 31),
        datetime.datetime(2020, 1, 31),
        np.datetime64("2020-01-31"),
        pd.Timestamp("2020-01-31"),
        decimal.Decimal(1),
        frozenset("A"),
        1j,
        pd.Interval(0, 1),
    ],
    ids=repr,
)
def test_labels_of_other_types_raise_with_a_remedy(group_door, label):
    refused(
        lambda: group_door(SCORES, [label] * N),
        "group label",
        "string",
        type(label).__name__,
        "convert",
        "strings",
    )


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(np.full(N, b"A"), id="numpy bytes"),
        pytest.param(np.full(N, "2020-01-31", dtype="datetime64[D]"), id="numpy dates"),
        pytest.param(pd.Series(pd.date_range("2020-01-31", periods=N)), id="pandas dates"),
        pytest.param(pl.Series([datetime.date(2020, 1, 31)] * N), id="polars dates"),
        pytest.param(pa.array([datetime.date(2020, 1, 31)] * N), id="arrow dates"),
        pytest.param(pa.array([b"A"] * N), id="arrow bytes"),
        pytest.param(np.full(N, 3, dtype="timedelta64[D]"), id="numpy durations"),
        pytest.param(np.full(N, 3, dtype="timedelta64[Y]"), id="numpy years"),
        pytest.param(pd.Series(pd.to_timedelta(np.full(N, 3), unit="D")), id="pandas durations"),
        pytest.param(np.full(N, 1j), id="complex"),
    ],
)
def test_group_columns_of_other_types_raise(group_door, column):
    refused(lambda: group_door(SCORES, column), "group label", "string", "convert")


@pytest.mark.parametrize(
    "label", [{}, {1}, bytearray(b"A"), np.ones(2)], ids=["dict", "set", "bytearray", "array"]
)
def test_unhashable_labels_raise(group_door, label):
    column = np.empty(N, dtype=object)
    column[:] = [label] * N
    refused(lambda: group_door(SCORES, column), "group label", type(label).__name__, "convert")


def test_long_label_is_shortened_in_the_message():
    assert len(refused(lambda: fit_rule(SCORES, [b"A" * 1000] * N), "...")) < 200


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.str_("half"), "got 'half'"), (np.array("half"), "got 'half'"), (10**5000, "got a very long int")],
    ids=["scalar", "array", "int"],  # pytest cannot print the last one
)
def test_message_quotes_the_value_as_python_prints_it(value, words):
    refused(lambda: fit_rule(SCORES, GROUPS, max_gap=value), "`max_gap`", words)


@pytest.mark.parametrize(
    "pair",
    [(True, 1), (False, 0), (True, 0), (True, 1.0), (np.True_, np.int64(1)), (True, np.int8(1)), (True, 2)],
    ids=repr,
)
def test_booleans_among_numeric_groups_raise(group_door, pair):
    refused(lambda: group_door(SCORES, list(pair) * (N // 2)), "`groups`", "booleans and numbers", "one type")


@pytest.mark.parametrize(
    "labels",
    [
        [(True, "a"), (1, "a")],
        [("a", False), ("a", 0)],
        [(True, "a"), (1, "a"), 1, 5],
        [("x", (True,)), ("x", (1,))],
    ],
    ids=repr,
)
def test_booleans_among_numbers_raise_in_intersections(group_door, labels):
    refused(lambda: group_door(SCORES, labels * (N // len(labels))), "booleans and numbers")


@pytest.mark.parametrize("value", [None, "A", b"A", 5, {1, 2}, pytest.param(iter("AB"), id="iterator")], ids=repr)
def test_groups_that_are_not_a_column_raise(group_door, value):
    refused(lambda: group_door(SCORES, value), "`groups`", "one label per row")


@pytest.mark.parametrize(
    "nothing",
    [{}, pd.DataFrame(index=range(N)), pl.DataFrame(), np.empty((N, 0))],
    ids=["mapping", "pandas", "polars", "numpy"],
)
def test_groups_without_a_column_raise(group_door, nothing):
    refused(lambda: group_door(SCORES, nothing), "`groups`", "no column")


def test_three_dimensional_groups_raise(group_door):
    refused(lambda: group_door(SCORES, np.zeros((N, 1, 1))), "`groups`", "one label per row", "(400, 1, 1)")


def test_lazy_table_raises_with_a_remedy(group_door):
    refused(lambda: group_door(SCORES, pl.LazyFrame({"a": GROUPS})), "`groups`", "lazy", "collect")


def test_duplicate_group_columns_raise(group_door):
    frame = pd.DataFrame(np.stack([GROUPS, GROUPS], axis=1), columns=["sex", "sex"])
    refused(lambda: group_door(SCORES, frame), "`groups`", "'sex'")


# Warnings -----------------------------------------------------------------------------------------


def warned(call, *words):
    """Check that a call warns once, with a message that contains all the words; return its result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    assert [w.category for w in caught] == [FairrampWarning], [str(w.message) for w in caught]
    sentence = str(caught[0].message)
    for word in words:
        assert word in sentence, f"{word!r} is not in: {sentence}"
    assert caught[0].filename == __file__, "the warning does not point at the caller"
    return result


def test_ordinary_data_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_rule(SCORES, GROUPS, SCORES > 0.5, sample_weight=SCORES)


def test_one_group_warns_and_is_named():
    rule = warned(
        lambda: fit_rule(SCORES, ["only"] * N), "only one group", "group, only: ", "nothing to equalize"
    )
    assert rule.groups == ("only",)


def test_one_group_keeps_the_classifiers_own_decisions():
    rule = quiet_fit(SCORES, ["only"] * N)
    assert np.array_equal(rule.probabilities(SCORES, ["only"] * N), SCORES >= 0.5)


def test_group_below_30_rows_warns_with_its_size():
    groups = np.where(np.arange(N) < 29, "few", "many")
    warned(lambda: fit_rule(SCORES, groups, max_gap=1), "fewer than 30 rows", "few (29 rows)")


def test_group_of_30_rows_does_not_warn():
    groups = np.where(np.arange(N) < 30, "enough", "many")
    assert fit_rule(SCORES, groups, max_gap=1).record.rows == (30, N - 30)


def test_zero_weight_rows_do_not_count_toward_30():
    groups = np.where(np.arange(N) < 40, "few", "many")
    weights = (np.arange(N) >= 30).astype(float)
    warned(lambda: fit_rule(SCORES, groups, max_gap=1, sample_weight=weights), "few (10 rows)")


def test_many_small_groups_warn_once_and_are_counted():
    groups = np.arange(N) // 4
    warned(lambda: fit_rule(SCORES, groups, max_gap=1), "fewer than 30 rows", "0 (4 rows)", "95 more")


@pytest.mark.parametrize(
    ("scores", "rate", "who"), [(SCORES * 0.4, 0, "no one"), (SCORES * 0.4 + 0.6, 1, "everyone")]
)
def test_optimal_rate_of_0_or_1_warns_with_remedies(scores, rate, who):
    rule = warned(lambda: fit_rule(scores, GROUPS), f"rate is {rate}", who, "`cutoff`", "`target_rate`")
    assert rule.target_rate == rate
    assert (rule.probabilities(scores, GROUPS) == rate).all()


@pytest.mark.parametrize("rate", [0, 1])
def test_requested_rate_of_0_or_1_does_not_warn(rate):
    rule = fit_rule(SCORES, GROUPS, target_rate=rate)
    assert rule.probabilities(SCORES, GROUPS) == pytest.approx(rate, abs=1e-9)


def test_logits_tied_at_probability_1_warn_and_are_counted():
    logits = np.log(SCORES / (1 - SCORES))
    logits[:7] = [36.8, 37, 40, 50, 100, 700, 1e300]
    warned(lambda: fit_rule(logits, GROUPS, scale="logit"), "7 logits", "probability 1", "tied")


def test_logits_below_saturation_do_not_warn():
    logits = np.log(SCORES / (1 - SCORES))
    logits[:4] = [36.7, -40, -700, 36]
    assert fit_rule(logits, GROUPS, scale="logit").scale == "logit"


@pytest.mark.parametrize(
    "value", [list(range(10**5)), np.arange(10**5).reshape(-1, 10), "x" * 10**5, {"a": "b" * 999}]
)
@pytest.mark.parametrize(
    "name", ["max_gap", "ramp_width", "target_rate", "scale", "unseen_group", "date", "solver"]
)
def test_message_stays_one_short_line_for_long_values(name, value):
    if name == "date" and isinstance(value, str):
        return
    with pytest.raises(fairramp.InputError) as caught:
        fairramp.fit_rule([0.1, 0.9] * 50, [0, 1] * 50, **{name: value})
    text = str(caught.value)
    assert name in text
    assert len(text) < 300
    assert "\n" not in text
