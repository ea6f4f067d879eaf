"""Arbitrary bytes as input files: valid files with mutations, and files made from scratch."""

import io
import json

import pytest
from harness import SEEDS, read_class_rule, read_key_file, read_rule, read_summary, read_table
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.fuzz

#: The command line is slower than the library, so its tests get a tenth of a profile's examples.
tenth = settings(max_examples=max(settings.default.max_examples // 10, 10))
#: Fragments that often break JSON and CSV readers.
PIECES = [
    *(
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'""',
        b"-0",
        b"0.0",
        b"1",
        b"-1",
        b"1e400",
        b"NaN",
        b"Infinity",
        b"1e-320",
    ),
    *(
        b"9" * 400,
        b"[" * 2000,
        b'"\\ud800"',
        b"\xff",
        b"\x00",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\n\n",
        b'"',
        b",",
        b";",
    ),
    *(
        "ä\u2028😀".encode(),
        b'"p"',
        b'"g"',
        b"0,5",
        b"1.0000000000000002",
        b"18446744073709551616",
        b"\t",
        b"nan",
    ),
]


@st.composite
def mutated(draw, kinds):
    """A valid file with a few bytes changed, deleted or inserted, or parts copied from elsewhere."""
    data = bytearray(draw(st.sampled_from([seed for kind in kinds for seed in SEEDS[kind]])))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, min(40, len(data) - at)))
        how = draw(st.sampled_from(["bytes", "piece", "copy", "digit", "cut"]))
        new = {
            "bytes": st.binary(max_size=4),
            "piece": st.sampled_from(PIECES),
            "digit": st.sampled_from([b"0", b"7", b".", b"-", b"e9"]),
            "cut": st.just(b""),
            "copy": st.integers(0, len(data)).map(lambda start: bytes(data[start : start + 30])),
        }[how]
        data[at : at + (1 if how == "digit" else length)] = draw(new)
    return bytes(data)


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["parity", "selection", "probability", "logit", "percent", "centered", "sgd", "x", "error"]),
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
)


@st.composite
def rewritten(draw, kind):
    """A valid JSON file with one to three values replaced."""
    content = json.loads(draw(st.sampled_from(SEEDS[kind])))
    for _ in range(draw(st.integers(1, 3))):
        place, path = content, []
        while isinstance(place, dict | list) and place and (not path or draw(st.booleans())):
            step = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            path.append((place, step))
            place = place[step]
        if path:
            inside, step = path[-1]
            inside[step] = draw(values)
    return json.dumps(content).encode()


@given(mutated(["rule"]) | rewritten("rule"), st.booleans())
def test_rules(data, unsigned):
    read_rule(data, unsigned)


@given(mutated(["class rule"]) | rewritten("class rule"), st.booleans())
def test_class_rules(data, unsigned):
    read_class_rule(data, unsigned)


def test_valid_files_are_accepted():
    assert all(read_class_rule(seed) for seed in SEEDS["class rule"])
    assert all(read_rule(seed) for seed in SEEDS["rule"])


@given(mutated(["summary"]) | rewritten("summary"), st.booleans())
def test_summaries(data, unsigned):
    read_summary(data, unsigned)


@given(st.binary(max_size=200) | mutated(["key"]))
def test_keys(data):
    read_key_file(data)


@tenth
@given(mutated(["csv"]), st.sampled_from([".csv", ".tsv", ".txt", ""]))
def test_text_tables(data, ending):
    read_table(data, ending)


@tenth
@given(mutated(["jsonl", "json"]), st.sampled_from([".jsonl", ".json", ".ndjson", ""]))
def test_json_tables(data, ending):
    read_table(data, ending)


cells = st.one_of(
    st.sampled_from(
        ["0.5", "0", "1", "0,25", "a", "b", "", " ", "NA", "null", "-0.0", "1e-3", '"', "a\nb", "ä", "1.0001"]
    ),
    st.text(max_size=5),
    st.floats(0, 1).map(repr),
)


@tenth
@given(
    st.lists(st.lists(cells, min_size=1, max_size=4), max_size=8),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["p,g", "g,p", "id,p,g", "p,g,p", "P,g", '"p","g"', "p,g,"]),
)
def test_generated_csv_tables(rows, between, end, header):
    lines = [header.replace(",", between)] + [between.join(row) for row in rows]
    read_table(end.join(lines).encode("utf-8", "replace") + end.encode(), ".csv")


@pytest.fixture(scope="module")
def packed():
    """A Parquet file and a compressed CSV."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import gzip

    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"p": [0.25, 0.5, 0.75, 1.0], "g": ["a", "b", "a", "b"]}), file)
    return {".parquet": file.getvalue(), ".csv.gz": gzip.compress(SEEDS["csv"][0], mtime=0)}


@pytest.mark.parametrize("ending", [".parquet", ".csv.gz"])
def test_compressed_tables(packed, ending):
    sound = packed[ending]
    assert read_table(sound, ending)

    @tenth
    @given(
        st.lists(st.tuples(st.integers(0, len(sound) - 1), st.integers(0, 255)), max_size=4), st.integers(0, 40)
    )
    @example([(252, 129)], 0)  # on Parquet: an internal error in DuckDB
    def check(changes, lost):
        data = bytearray(sound)
        for at, byte in changes:
            data[at % len(data)] = byte
        read_table(bytes(data[: len(data) - lost]), ending)

    check()
