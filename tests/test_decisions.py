"""The same id and key always get the same answer, and no other draw has a say in it.

u = int(first 13 hexadecimal digits of SHA-256(key ":" id), 16) / 2^52        yes if u < probability
"""

import decimal
import enum
import hashlib
import random
import uuid
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairramp import FairrampError, InputError, Ramp, Rule, draws
from samples import KEY

OTHER_KEY = hashlib.sha256(b"another").hexdigest()
N = 500
SCORES = np.random.default_rng(0).random(N)
GROUPS = np.where(np.arange(N) % 3 == 0, "A", "B")
IDS = [f"applicant-{i}" for i in range(N)]
# Ramps wide enough that about half of the rows are decided at random.
RULE = Rule(("A", "B"), (Ramp.centered(0.5, 0.5), Ramp.centered(0.4, 0.5)))
CHANCES = RULE.probabilities(SCORES, GROUPS)
INSIDE = (CHANCES > 0) & (CHANCES < 1)


def expected_draw(identifier, key=KEY):
    return int(hashlib.sha256(f"{key}:{identifier}".encode()).hexdigest()[:13], 16) / 2**52


# The draw -----------------------------------------------------------------------------------------

TEXT_IDS = [
    "anna",
    "Zoë",
    "日本",
    "🙂",
    "a:b",
    ":",
    " anna",
    "anna\n",
    "12",
    "\x00",
    "x" * 10_000,
    "é",
    "e\u0301",
]
INTEGER_IDS = [0, 1, 12, -12, 2**31, -(2**63), 2**64 - 1, 2**200, -(10**60)]


@pytest.mark.parametrize("identifier", [*TEXT_IDS, *INTEGER_IDS], ids=lambda i: ascii(i)[:20])
@pytest.mark.parametrize("key", [KEY, OTHER_KEY, "0" * 64])
def test_a_draw_is_the_published_hash(identifier, key):
    assert draws([identifier], key).tolist() == [expected_draw(identifier, key)]


def test_draws_of_many_ids_are_the_published_hashes_in_their_order():
    found = draws([*TEXT_IDS, *INTEGER_IDS], KEY)
    assert found.dtype == np.float64
    assert found.tolist() == [expected_draw(identifier) for identifier in [*TEXT_IDS, *INTEGER_IDS]]


def test_known_draws_never_change():
    # Anyone can check these with sha256sum; they hold for every version and engine.
    assert draws(["anna", "ben"], "0" * 64).tolist() == [
        int("f0db13b1f7aff", 16) / 2**52,
        int("d01acc4b5b2ae", 16) / 2**52,
    ]


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint64", ">i4"])
def test_numpy_integers_hash_as_decimal_text(kind):
    values = np.array([0, 1, 12, 127], dtype=kind)
    assert draws(values, KEY).tolist() == [expected_draw(i) for i in (0, 1, 12, 127)]
    assert draws(list(values), KEY).tolist() == draws(values, KEY).tolist()


def test_extreme_numpy_integers_hash_as_decimal_text():
    assert draws(np.array([-(2**63), -1], dtype=np.int64), KEY).tolist() == [
        expected_draw(-(2**63)),
        expected_draw(-1),
    ]
    assert draws(np.array([2**64 - 1], dtype=np.uint64), KEY).tolist() == [expected_draw(2**64 - 1)]


def test_an_integer_and_its_decimal_text_are_the_same_id():
    assert np.array_equal(draws([12, -3, 2**70], KEY), draws(["12", "-3", str(2**70)], KEY))


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(tuple(IDS), id="tuple"),
        pytest.param(np.array(IDS), id="numpy"),
        pytest.param(np.array(IDS, dtype=object), id="object"),
        pytest.param(np.array(IDS, dtype=np.dtypes.StringDType()), id="numpy strings"),
        pytest.param(list(np.array(IDS)), id="numpy texts in a list"),
        pytest.param(pd.Series(IDS), id="pandas"),
        pytest.param(pd.Series(IDS, index=range(N, 0, -1)), id="pandas with an index"),
        pytest.param(pd.Series(IDS, dtype="string"), id="pandas string"),
        pytest.param(pd.Series(IDS, dtype="category"), id="pandas category"),
        pytest.param(pd.Index(IDS), id="pandas index"),
        pytest.param(pl.Series(IDS), id="polars"),
        pytest.param(pl.Series(IDS, dtype=pl.Categorical), id="polars categorical"),
        pytest.param(pa.array(IDS), id="arrow"),
        pytest.param(pa.chunked_array([IDS[:5], IDS[5:]]), id="arrow chunked"),
    ],
)
def test_ids_in_every_container_are_the_same_ids(column):
    expected = [expected_draw(identifier) for identifier in IDS]
    assert draws(column, KEY).tolist() == expected
    answer = RULE.decide(SCORES, GROUPS, ids=column, key=KEY)
    assert np.array_equal(answer, RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY))


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(range(N), id="range"),
        pytest.param(np.arange(N, dtype=np.uint16), id="numpy"),
        pytest.param(pd.Series(range(N)), id="pandas"),
        pytest.param(pd.Series(range(N), dtype="Int64"), id="pandas nullable"),
        pytest.param(pd.RangeIndex(N), id="pandas index"),
        pytest.param(pl.Series(range(N)), id="polars"),
        pytest.param(pa.array(range(N)), id="arrow"),
        pytest.param([str(i) for i in range(N)], id="texts"),
    ],
)
def test_integer_ids_in_every_container_are_the_same_ids(column):
    assert draws(column, KEY).tolist() == [expected_draw(i) for i in range(N)]


class Name(str, enum.Enum):  # noqa: UP042 - the older idiom, whose str() is 'Name.ANNA'
    ANNA = "anna"


def test_an_enum_id_equals_its_value():
    number = enum.IntEnum("number", {"TWELVE": 12})
    assert draws([Name.ANNA, number.TWELVE], KEY).tolist() == [expected_draw("anna"), expected_draw(12)]


def test_empty_ids_give_no_draws():
    assert draws([], KEY).shape == (0,)
    assert draws(np.array([], dtype=np.int64), KEY).dtype == np.float64


def test_draws_are_uniform():
    u = draws(range(20_000), KEY)
    assert u.min() >= 0
    assert u.max() < 1
    # Kolmogorov distance to the uniform distribution; above 0.0163 for one key in 20,000.
    distance = np.abs(np.sort(u) - np.arange(20_000) / 20_000).max()
    assert distance < 0.0163
    assert len(np.unique(u)) == 20_000


def test_different_keys_give_different_draws():
    assert not np.isclose(draws(IDS, KEY), draws(IDS, OTHER_KEY)).any()


# Decisions by id and key --------------------------------------------------------------------------


def test_a_draw_below_the_probability_selects():
    found = RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    assert found.dtype == np.int8
    assert 100 < INSIDE.sum() < N
    assert found.tolist() == [int(expected_draw(i) < chance) for i, chance in zip(IDS, CHANCES, strict=True)]


def test_a_draw_equal_to_the_probability_does_not_select():
    draw = expected_draw("anna")
    for chance, answer in [(draw, 0), (np.nextafter(draw, 1), 1)]:
        rule = Rule(("A",), (Ramp.centered(0.5, 0, chance),))
        assert rule.decide([0.5], ["A"], ids=["anna"], key=KEY) == answer


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_id_and_key_get_the_same_decision_in_any_order_batch_or_subset(seed):
    expected = RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    rng = np.random.default_rng(seed)
    ids = np.array(IDS)
    order = rng.permutation(N)
    found = RULE.decide(SCORES[order], GROUPS[order], ids=ids[order], key=KEY)
    assert np.array_equal(found, expected[order])
    some = rng.choice(N, 37, replace=False)
    assert np.array_equal(RULE.decide(SCORES[some], GROUPS[some], ids=ids[some], key=KEY), expected[some])
    batches = np.array_split(np.arange(N), 7)
    found = [RULE.decide(SCORES[b], GROUPS[b], ids=ids[b], key=KEY) for b in batches]
    assert np.array_equal(np.concatenate(found), expected)
    for row in some[:5]:
        assert RULE.decide(SCORES[[row]], GROUPS[[row]], ids=[IDS[row]], key=KEY) == expected[row]


def test_different_keys_give_different_decisions():
    first = RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    second = RULE.decide(SCORES, GROUPS, ids=IDS, key=OTHER_KEY)
    assert (first[INSIDE] != second[INSIDE]).sum() > 20
    assert np.array_equal(first[~INSIDE], second[~INSIDE])


def test_the_selected_share_matches_the_probability():
    # With 40,000 draws at 0.3, a deviation of 0.01 is four standard deviations.
    rule = Rule(("A",), (Ramp.centered(0.5, 0, 0.3),))
    n = 40_000
    found = rule.decide(np.full(n, 0.5), ["A"] * n, ids=range(n), key=KEY)
    assert found.mean() == pytest.approx(0.3, abs=0.01)
    found = rule.decide(np.full(n, 0.5), ["A"] * n, random_state=0)
    assert found.mean() == pytest.approx(0.3, abs=0.01)


def test_a_higher_probability_never_deselects_anyone():
    answers = [RULE.decide(np.full(N, s), GROUPS, ids=IDS, key=KEY) for s in np.linspace(0, 1, 21)]
    for lower, higher in pairwise(answers):
        assert (lower <= higher).all()


class Recorder:
    """SHA-256 that records its inputs."""

    texts: list[bytes]
    original = staticmethod(hashlib.sha256)

    def __init__(self, data=b""):
        self.data = bytes(data)

    def update(self, data):
        self.data += bytes(data)

    def copy(self):
        return Recorder(self.data)

    def digest(self):
        Recorder.texts.append(self.data)
        return Recorder.original(self.data).digest()

    def hexdigest(self):
        return self.digest().hex()


def test_only_rows_inside_the_ramp_are_hashed(monkeypatch):
    expected = RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    monkeypatch.setattr(Recorder, "texts", [], raising=False)
    monkeypatch.setattr(hashlib, "sha256", Recorder)
    found = RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    assert np.array_equal(found, expected)
    assert Recorder.texts == [f"{KEY}:{IDS[i]}".encode() for i in np.flatnonzero(INSIDE)]


def test_nothing_is_hashed_without_rows_inside_the_ramp(monkeypatch):
    monkeypatch.setattr(Recorder, "texts", [], raising=False)
    monkeypatch.setattr(hashlib, "sha256", Recorder)
    rule = Rule(("A", "B"), (Ramp.centered(0.5, 0, 1), Ramp.centered(0.4, 0, 1)))
    found = rule.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    assert np.array_equal(found, np.where(GROUPS == "A", 0.5, 0.4) <= SCORES)
    assert Recorder.texts == []


# Keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_trailing_newline_in_the_key_is_ignored(ending):
    assert np.array_equal(draws(IDS, KEY + ending), draws(IDS, KEY))
    expected = RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    assert np.array_equal(RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY + ending), expected)


SECRET = "deadbeef" * 8
BAD_KEYS = {
    "empty": "",
    "short": SECRET[1:],
    "long": SECRET + "0",
    "twice": SECRET * 2,
    "uppercase": SECRET.upper(),
    "one uppercase": SECRET[:-1] + "F",
    "no hexadecimal": SECRET[:-1] + "g",
    "two newlines": SECRET + "\n\n",
    "newline first": "\n" + SECRET,
    "space first": " " + SECRET,
    "space last": SECRET + " ",
    "prefix": "0x" + SECRET[2:],
    "wide digits": SECRET[:-1] + "０",
    "arabic digits": SECRET[:-1] + "٠",
    "bytes": SECRET.encode(),
    "number": int(SECRET, 16),
    "list": [SECRET],
    "numpy": np.array(SECRET),
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS.keys())
@pytest.mark.parametrize("door", ["draws", "decide", "decide without draws"])
def test_an_invalid_key_raises_and_is_never_shown(key, door):
    ask = {
        "draws": lambda: draws(["anna"], key),
        "decide": lambda: RULE.decide(SCORES, GROUPS, ids=IDS, key=key),
        "decide without draws": lambda: RULE.decide([0.0], ["A"], ids=["anna"], key=key),
    }[door]
    with pytest.raises(InputError, match="`key` must be 64 lowercase hexadecimal characters") as caught:
        ask()
    shown = f"{caught.value!r} {caught.value} {caught.value.__context__!r} {caught.value.__cause__!r}".lower()
    assert "dead" not in shown
    assert str(int(SECRET, 16)) not in shown


def test_a_key_of_the_wrong_type_raises():
    with pytest.raises(InputError, match="`key` must be 64 lowercase hexadecimal characters"):
        draws(["anna"], None)


def test_a_key_of_the_right_length_gets_a_specific_error():
    with pytest.raises(InputError) as caught:
        draws(["anna"], SECRET.upper())
    # "must be 64 characters, got 64 characters" would not help.
    assert "got text of 64 characters." not in str(caught.value)


# Ids ----------------------------------------------------------------------------------------------

BAD_IDS = {
    "float": 12.0,
    "numpy float": np.float32(12),
    "nan": float("nan"),
    "None": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "True": True,
    "numpy True": np.True_,
    "bytes": b"anna",
    "numpy bytes": np.bytes_(b"anna"),
    "decimal": decimal.Decimal(12),
    "uuid": uuid.UUID(int=12),
    "list": ["anna"],
    "tuple": ("anna",),
    "date": np.datetime64("2020-01-31"),
    "duration": np.timedelta64(3, "D"),
    "years": np.timedelta64(3, "Y"),
}


@pytest.mark.parametrize("value", BAD_IDS.values(), ids=BAD_IDS.keys())
@pytest.mark.parametrize("inside", [True, False], ids=["drawn", "certain"])
def test_ids_must_be_text_or_integers_even_outside_the_ramp(value, inside):
    row = int(np.flatnonzero(inside == INSIDE)[0])
    ids = list(IDS)
    ids[row] = value
    for ask in (lambda: RULE.decide(SCORES, GROUPS, ids=ids, key=KEY), lambda: draws(ids, KEY)):
        with pytest.raises(InputError, match="`ids` must be strings or integers") as caught:
            ask()
        assert type(value).__name__ in str(caught.value)


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(np.arange(N, dtype=float), id="floats"),
        pytest.param(np.ones(N, dtype=bool), id="booleans"),
        pytest.param(np.array([b"a"] * N), id="bytes"),
        pytest.param(np.zeros(N, dtype="datetime64[s]"), id="dates"),
        pytest.param(np.zeros(N, dtype="timedelta64[s]"), id="durations"),
        pytest.param(np.full(N, 1j), id="complex"),
        pytest.param(pd.Series(np.arange(N, dtype=float)), id="pandas floats"),
        pytest.param(pd.Series([None, *IDS[1:]]), id="pandas missing"),
        pytest.param(pd.Series([None, *range(1, N)]), id="pandas missing integer"),
        pytest.param(pd.Series([None, *range(1, N)], dtype="Int64"), id="pandas nullable"),
        pytest.param(pd.Series([None, *IDS[1:]], dtype="category"), id="pandas category"),
        pytest.param(pl.Series([None, *IDS[1:]]), id="polars missing"),
        pytest.param(pl.Series([None, *range(1, N)]), id="polars missing integer"),
        pytest.param(pa.array([None, *IDS[1:]]), id="arrow missing"),
        pytest.param(pa.array([None, *range(1, N)]), id="arrow missing integer"),
    ],
)
def test_id_columns_of_other_types_or_with_missing_values_raise(column):
    for ask in (lambda: RULE.decide(SCORES, GROUPS, ids=column, key=KEY), lambda: draws(column, KEY)):
        with pytest.raises(InputError, match="`ids` must be strings or integers"):
            ask()


def test_masked_ids_raise():
    with pytest.raises(InputError, match="`ids`"):
        draws(np.ma.array(np.arange(N), mask=np.arange(N) == 3), KEY)


@pytest.mark.parametrize("value", [None, float("nan"), pd.NA])
def test_a_missing_id_is_called_missing(value):
    with pytest.raises(InputError) as caught:
        draws([value], KEY)
    # The error is about the missing value, not about 12 and 12.0.
    assert "12.0" not in str(caught.value)


def test_a_missing_id_is_called_missing_even_in_a_float_column():
    # Integers with one null arrive as floats; the error must be about the null.
    for column in (pd.Series([1, None, 3]), pd.Series([1, None, 3], dtype="Int64"), pl.Series([1, None, 3])):
        with pytest.raises(InputError) as caught:
            draws(column, KEY)
        assert "12.0" not in str(caught.value)


@pytest.mark.parametrize("value", [b"anna", uuid.UUID(int=12), decimal.Decimal(12)])
def test_the_error_suggests_converting_ids_to_text(value):
    with pytest.raises(InputError, match="string"):
        draws([value], KEY)
    with pytest.raises(InputError, match="convert"):
        draws([value], KEY)


@pytest.mark.parametrize("value", ["anna", b"anna", "x" * N])
def test_a_single_string_as_ids_raises(value):
    for ask in (lambda: RULE.decide(SCORES, GROUPS, ids=value, key=KEY), lambda: draws(value, KEY)):
        with pytest.raises(InputError, match="`ids` must be a column with one id per row"):
            ask()


@pytest.mark.parametrize("value", [12, np.array(IDS)[:, None], np.array(IDS).reshape(20, 25), iter(IDS)])
def test_ids_that_are_not_a_column_raise(value):
    for ask in (lambda: RULE.decide(SCORES, GROUPS, ids=value, key=KEY), lambda: draws(value, KEY)):
        with pytest.raises(InputError, match="`ids` must be one id per row"):
            ask()


@pytest.mark.parametrize("column", [IDS[1:], [*IDS, "one more"], [], np.arange(N - 1)], ids=len)
def test_ids_of_the_wrong_length_raise(column):
    with pytest.raises(InputError, match=f"`ids` has {len(column)} rows but `scores` has {N}"):
        RULE.decide(SCORES, GROUPS, ids=column, key=KEY)


@pytest.mark.parametrize("text", ["\ud800", "anna\udfff"])
@pytest.mark.parametrize("kind", [None, "U", object])
def test_a_lone_surrogate_in_an_id_raises(text, kind):
    ids = ["anna", text]
    with pytest.raises(InputError, match="valid Unicode"):
        draws(np.array(ids, dtype=kind) if kind else ids, KEY)


# Random draws -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({}, "neither"),
        ({"ids": None, "key": None, "random_state": None}, "neither"),
        ({"ids": IDS, "key": KEY, "random_state": 0}, "both"),
        ({"ids": IDS, "random_state": 0}, "both"),
        ({"key": KEY, "random_state": 0}, "both"),
    ],
)
def test_exactly_one_of_ids_with_key_and_random_state_is_required(options, what):
    with pytest.raises(InputError, match=f"either `ids` and `key`.* or `random_state`.*got {what}"):
        RULE.decide(SCORES, GROUPS, **options)


@pytest.mark.parametrize(("options", "absent"), [({"ids": IDS}, "key"), ({"key": KEY}, "ids")])
def test_ids_and_key_require_each_other_and_the_error_names_the_missing_one(options, absent):
    with pytest.raises(InputError, match=f"`{absent}` is missing") as caught:
        RULE.decide(SCORES, GROUPS, **options)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("seed", [0, 7, 2**40, np.int64(7)])
def test_the_same_random_state_gives_the_same_decisions(seed):
    first = RULE.decide(SCORES, GROUPS, random_state=seed)
    assert first.dtype == np.int8
    assert np.array_equal(RULE.decide(SCORES, GROUPS, random_state=seed), first)
    assert np.array_equal(first[~INSIDE], CHANCES[~INSIDE])
    assert set(first[INSIDE].tolist()) == {0, 1}


def test_different_random_states_give_different_decisions():
    first, second = (RULE.decide(SCORES, GROUPS, random_state=seed) for seed in (0, 1))
    assert (first[INSIDE] != second[INSIDE]).sum() > 20


def test_a_generator_advances_and_is_reproducible():
    generator = np.random.default_rng(7)
    first, second = (RULE.decide(SCORES, GROUPS, random_state=generator) for _ in range(2))
    assert (first != second).any()
    again = np.random.default_rng(7)
    assert np.array_equal(RULE.decide(SCORES, GROUPS, random_state=again), first)
    assert np.array_equal(RULE.decide(SCORES, GROUPS, random_state=again), second)


def test_a_seed_equals_a_generator_with_that_seed():
    generator = np.random.default_rng(7)
    expected = RULE.decide(SCORES, GROUPS, random_state=generator)
    assert np.array_equal(RULE.decide(SCORES, GROUPS, random_state=7), expected)


@pytest.mark.parametrize(
    "state",
    [True, -1, 1.0, "0", [0], np.random.RandomState(0), random.Random(0), random],
    ids=["true", "negative", "float", "text", "list", "RandomState", "Random", "module"],
)
def test_an_invalid_random_state_raises(state):
    with pytest.raises(InputError, match="`random_state` must be a non-negative integer or a numpy"):
        RULE.decide(SCORES, GROUPS, random_state=state)


def test_global_random_states_are_not_changed():
    numpy_before, python_before = np.random.get_state(), random.getstate()  # noqa: NPY002
    RULE.decide(SCORES, GROUPS, random_state=0)
    RULE.decide(SCORES, GROUPS, random_state=np.random.default_rng(0))
    RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    numpy_after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(numpy_before, numpy_after, strict=True))
    assert random.getstate() == python_before


def test_global_random_states_have_no_effect():
    answers = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        answers.append(RULE.decide(SCORES, GROUPS, random_state=3))
    assert np.array_equal(*answers)


def test_bad_scores_and_unseen_groups_raise_before_any_draw():
    generator = np.random.default_rng(0)
    before = generator.bit_generator.state
    for scores, groups in [([0.4, 2.0], ["A", "B"]), ([0.4, 0.4], ["A", "C"])]:
        with pytest.raises(FairrampError):
            RULE.decide(scores, groups, random_state=generator)
    assert generator.bit_generator.state == before


@pytest.mark.parametrize("ids", [[], np.array([]), np.array([], dtype=object)], ids=["list", "floats", "objects"])
def test_empty_id_containers_give_no_draws(ids):
    assert draws(ids, KEY).shape == (0,)
