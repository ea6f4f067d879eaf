"""A table without rows gets the columns of decisions, in every engine, and stays a table of its kind."""

import itertools

import narwhals as nw
import numpy as np
import pytest

import fairramp
from shell import KEY

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(29)
N = 120
ROWS = pandas.DataFrame(
    {
        "p": RNG.random(N),
        "g": np.tile(["a", "b"], N // 2),
        "h": np.repeat(["u", "v"], N // 2),
        "qa": 0.25,
        "qb": 0.75,
        "id": np.arange(N),
    }
)
RULES = {
    "groups": {"score": "p", "group": "g"},
    "strata": {"score": "p", "group": "g", "strata": "h"},
    "each": {"score": "p", "group": ["g", "h"], "combine": "each"},
    "probabilities": {"score": "p", "group_probability": {"a": "qa", "b": "qb"}},
    "classes": {"class_score": {"no": "qa", "yes": "qb"}, "group": "g"},
}
#: Engines that read several classes.
CLASSES = ("pandas", "polars", "pyarrow", "duckdb")


def frame(engine, rows):
    """The rows as a table of an engine."""
    if engine == "pandas":
        return rows
    if engine == "polars":
        return pytest.importorskip("polars").from_pandas(rows)
    if engine == "lazy polars":
        return frame("polars", rows).lazy()
    if engine == "dask":
        return pytest.importorskip("dask.dataframe").from_pandas(rows, npartitions=1)
    table = pytest.importorskip("pyarrow").Table.from_pandas(rows, preserve_index=False)
    return table if engine == "pyarrow" else pytest.importorskip("duckdb").connect().from_arrow(table)


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        pair
        for pair in itertools.product(("pandas", "polars", "lazy polars", "dask", "pyarrow", "duckdb"), RULES)
        if pair[1] != "classes" or pair[0] in CLASSES
    ],
)
@pytest.mark.parametrize("draw", [{}, {"id": "id", "key": KEY}])
def test_an_empty_table_gets_empty_columns_of_the_same_types(engine, kind, draw):
    rule = fairramp.fit_frame(ROWS, **RULES[kind])
    empty, full = (frame(engine, ROWS.iloc[:n]) for n in (0, 10))
    found, expected = (rule.apply(some, **draw) for some in (empty, full))
    assert type(found) is type(expected)
    schemas = [nw.from_native(made).collect_schema() for made in (found, expected)]
    assert schemas[0].names() == schemas[1].names()
    new = [name for name in schemas[0].names() if name not in ROWS.columns]
    assert len(new) == (2 if kind == "classes" else 1) + bool(draw)
    # pandas and Dask have no text type for an empty column of objects.
    same = new if kind != "classes" or engine != "pandas" else new[:2]
    assert [schemas[0][name] for name in same] == [schemas[1][name] for name in same]
    made = nw.from_native(found)
    made = made.collect() if isinstance(made, nw.LazyFrame) else made
    assert made.shape == (0, len(schemas[0].names()))
