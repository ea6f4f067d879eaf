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
# Ramps so wide that about half of the rows are drawn.
RULE = Rule(("A", "B"), (Ramp.centered(0.5, 0.5), Ramp.centered(0.4, 0.5)))
CHANCES = RULE.probabilities(SCORES, GROUPS)
INSIDE = (CHANCES > 0) & (CHANCES < 1)


def expected_draw(identifier, key=KEY):
    return int(hashlib.sha256(f"{key}:{identifier}".encode()).hexdigest()[:13], 16) / 2**52


# The draw -----------------------------------------------------------------------------------------

TEXT_IDS = [
    "",
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


def test_a_known_draw_stays_what_it_was():
    # Anyone can check these with sha256sum; they hold for every version and engine.
    assert draws(["anna", "ben"], "0" * 64).tolist() == [
        int("f0db13b1f7aff", 16) / 2**52,
        int("d01acc4b5b2ae", 16) / 2**52,
    ]


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint64", ">i4"])
def test_numpy_integers_are_their_decimals(kind):
    values = np.array([0, 1, 12, 127], dtype=kind)
    assert draws(values, KEY).tolist() == [expected_draw(i) for i in (0, 1, 12, 127)]
    assert draws(list(values), KEY).tolist() == draws(values, KEY).tolist()


def test_extreme_numpy_integers_are_their_decimals():
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


def test_an_enum_is_its_value():
    number = enum.IntEnum("number", {"TWELVE": 12})
    assert draws([Name.ANNA, number.TWELVE], KEY).tolist() == [expected_draw("anna"), expected_draw(12)]


def test_no_ids_have_no_draws():
    assert draws([], KEY).shape == (0,)
    assert draws(np.array([], dtype=np.int64), KEY).dtype == np.float64


def test_draws_are_spread_over_0_to_1():
    u = draws(range(20_000), KEY)
    assert u.min() >= 0
    assert u.max() < 1
    # The largest distance from the uniform distribution; beyond 0.0163 once in 20,000 keys.
    distance = np.abs(np.sort(u) - np.arange(20_000) / 20_000).max()
    assert distance < 0.0163
    assert len(np.unique(u)) == 20_000


def test_another_key_gives_other_draws():
    assert not np.isclose(draws(IDS, KEY), draws(IDS, OTHER_KEY)).any()


# Decisions by id and key --------------------------------------------------------------------------


def test_a_decision_is_yes_if_the_draw_is_below_the_chance():
    found = RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    assert found.dtype == np.int8
    assert 100 < INSIDE.sum() < N
    assert found.tolist() == [int(expected_draw(i) < chance) for i, chance in zip(IDS, CHANCES, strict=True)]


def test_a_draw_equal_to_the_chance_is_a_no():
    draw = expected_draw("anna")
    for chance, answer in [(draw, 0), (np.nextafter(draw, 1), 1)]:
        rule = Rule(("A",), (Ramp.centered(0.5, 0, chance),))
        assert rule.decide([0.5], ["A"], ids=["anna"], key=KEY) == answer


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_id_and_key_get_the_same_answer_in_any_order_batch_and_subset(seed):
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


def test_another_key_gives_other_decisions():
    first = RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    second = RULE.decide(SCORES, GROUPS, ids=IDS, key=OTHER_KEY)
    assert (first[INSIDE] != second[INSIDE]).sum() > 20
    assert np.array_equal(first[~INSIDE], second[~INSIDE])


def test_the_share_of_yes_is_the_chance():
    # 40,000 draws at 0.3: a share 0.01 away is four standard deviations out.
    rule = Rule(("A",), (Ramp.centered(0.5, 0, 0.3),))
    n = 40_000
    found = rule.decide(np.full(n, 0.5), ["A"] * n, ids=range(n), key=KEY)
    assert found.mean() == pytest.approx(0.3, abs=0.01)
    found = rule.decide(np.full(n, 0.5), ["A"] * n, random_state=0)
    assert found.mean() == pytest.approx(0.3, abs=0.01)


def test_a_higher_chance_never_turns_a_yes_into_a_no():
    answers = [RULE.decide(np.full(N, s), GROUPS, ids=IDS, key=KEY) for s in np.linspace(0, 1, 21)]
    for lower, higher in pairwise(answers):
        assert (lower <= higher).all()


class Recorder:
    """SHA-256 that writes down what it is asked to hash."""

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


def test_no_row_inside_the_ramp_means_no_hash(monkeypatch):
    monkeypatch.setattr(Recorder, "texts", [], raising=False)
    monkeypatch.setattr(hashlib, "sha256", Recorder)
    rule = Rule(("A", "B"), (Ramp.centered(0.5, 0, 1), Ramp.centered(0.4, 0, 1)))
    found = rule.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    assert np.array_equal(found, np.where(GROUPS == "A", 0.5, 0.4) <= SCORES)
    assert Recorder.texts == []


# Keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_trailing_newline_of_the_key_is_ignored(ending):
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
def test_any_other_key_is_refused_and_never_shown(key, door):
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


def test_a_key_of_no_kind_is_refused():
    with pytest.raises(InputError, match="`key` must be 64 lowercase hexadecimal characters"):
        draws(["anna"], None)


def test_a_key_of_the_right_length_is_told_what_else_is_wrong():
    with pytest.raises(InputError) as caught:
        draws(["anna"], SECRET.upper())
    # "must be 64 characters, got 64 characters" helps nobody.
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
def test_an_id_that_is_no_text_and_no_integer_is_refused_whether_drawn_or_not(value, inside):
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
def test_columns_of_other_kinds_or_with_missing_values_are_refused_as_ids(column):
    for ask in (lambda: RULE.decide(SCORES, GROUPS, ids=column, key=KEY), lambda: draws(column, KEY)):
        with pytest.raises(InputError, match="`ids` must be strings or integers"):
            ask()


def test_masked_ids_are_refused():
    with pytest.raises(InputError, match="`ids`"):
        draws(np.ma.array(np.arange(N), mask=np.arange(N) == 3), KEY)


@pytest.mark.parametrize("value", [None, float("nan"), pd.NA])
def test_a_missing_id_is_called_missing(value):
    with pytest.raises(InputError) as caught:
        draws([value], KEY)
    # 12 and 12.0 are not what is wrong with it.
    assert "12.0" not in str(caught.value)


def test_a_missing_id_is_called_missing_also_where_the_library_made_a_float_column_of_it():
    # Integers with one null arrive as floats; the null is the mistake to name.
    for column in (pd.Series([1, None, 3]), pd.Series([1, None, 3], dtype="Int64"), pl.Series([1, None, 3])):
        with pytest.raises(InputError) as caught:
            draws(column, KEY)
        assert "12.0" not in str(caught.value)


@pytest.mark.parametrize("value", [b"anna", uuid.UUID(int=12), decimal.Decimal(12)])
def test_an_id_that_only_needs_to_be_written_as_text_is_refused_with_that_remedy(value):
    with pytest.raises(InputError, match="string"):
        draws([value], KEY)
    with pytest.raises(InputError, match="convert"):
        draws([value], KEY)


@pytest.mark.parametrize("value", ["anna", b"anna", "x" * N])
def test_a_single_text_is_refused_as_ids(value):
    for ask in (lambda: RULE.decide(SCORES, GROUPS, ids=value, key=KEY), lambda: draws(value, KEY)):
        with pytest.raises(InputError, match="`ids` must be a column with one id per row"):
            ask()


@pytest.mark.parametrize("value", [12, np.array(IDS)[:, None], np.array(IDS).reshape(20, 25), iter(IDS)])
def test_ids_that_are_no_column_are_refused(value):
    for ask in (lambda: RULE.decide(SCORES, GROUPS, ids=value, key=KEY), lambda: draws(value, KEY)):
        with pytest.raises(InputError, match="`ids` must be one id per row"):
            ask()


@pytest.mark.parametrize("column", [IDS[1:], [*IDS, "one more"], [], np.arange(N - 1)], ids=len)
def test_ids_of_another_length_are_refused(column):
    with pytest.raises(InputError, match=f"`ids` has {len(column)} rows but `scores` has {N}"):
        RULE.decide(SCORES, GROUPS, ids=column, key=KEY)


@pytest.mark.parametrize("text", ["\ud800", "anna\udfff"])
@pytest.mark.parametrize("kind", [None, "U", object])
def test_half_a_character_is_refused_as_an_id(text, kind):
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
def test_ids_and_key_or_a_random_state_but_neither_both_nor_none(options, what):
    with pytest.raises(InputError, match=f"either `ids` and `key`.* or `random_state`.*got {what}"):
        RULE.decide(SCORES, GROUPS, **options)


@pytest.mark.parametrize(("options", "absent"), [({"ids": IDS}, "key"), ({"key": KEY}, "ids")])
def test_ids_without_a_key_or_a_key_without_ids_is_refused_and_the_absent_one_named(options, absent):
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


def test_another_random_state_gives_other_decisions():
    first, second = (RULE.decide(SCORES, GROUPS, random_state=seed) for seed in (0, 1))
    assert (first[INSIDE] != second[INSIDE]).sum() > 20


def test_a_generator_advances_and_repeats_from_the_same_seed():
    generator = np.random.default_rng(7)
    first, second = (RULE.decide(SCORES, GROUPS, random_state=generator) for _ in range(2))
    assert (first != second).any()
    again = np.random.default_rng(7)
    assert np.array_equal(RULE.decide(SCORES, GROUPS, random_state=again), first)
    assert np.array_equal(RULE.decide(SCORES, GROUPS, random_state=again), second)


def test_a_seed_is_the_generator_made_from_it():
    generator = np.random.default_rng(7)
    expected = RULE.decide(SCORES, GROUPS, random_state=generator)
    assert np.array_equal(RULE.decide(SCORES, GROUPS, random_state=7), expected)


@pytest.mark.parametrize(
    "state",
    [True, -1, 1.0, "0", [0], np.random.RandomState(0), random.Random(0), random],
    ids=["true", "negative", "float", "text", "list", "RandomState", "Random", "module"],
)
def test_any_other_random_state_is_refused(state):
    with pytest.raises(InputError, match="`random_state` must be a non-negative integer or a numpy"):
        RULE.decide(SCORES, GROUPS, random_state=state)


def test_global_random_states_are_left_alone():
    numpy_before, python_before = np.random.get_state(), random.getstate()  # noqa: NPY002
    RULE.decide(SCORES, GROUPS, random_state=0)
    RULE.decide(SCORES, GROUPS, random_state=np.random.default_rng(0))
    RULE.decide(SCORES, GROUPS, ids=IDS, key=KEY)
    numpy_after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(numpy_before, numpy_after, strict=True))
    assert random.getstate() == python_before


def test_global_random_states_have_no_say():
    answers = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        answers.append(RULE.decide(SCORES, GROUPS, random_state=3))
    assert np.array_equal(*answers)


def test_bad_scores_and_unseen_groups_are_refused_before_any_draw():
    generator = np.random.default_rng(0)
    before = generator.bit_generator.state
    for scores, groups in [([0.4, 2.0], ["A", "B"]), ([0.4, 0.4], ["A", "C"])]:
        with pytest.raises(FairrampError):
            RULE.decide(scores, groups, random_state=generator)
    assert generator.bit_generator.state == before


@pytest.mark.parametrize("ids", [[], np.array([]), np.array([], dtype=object)], ids=["list", "floats", "objects"])
def test_nobody_gets_no_draw(ids):
    assert draws(ids, KEY).shape == (0,)
