"""100,000 rows under ramps of different widths: every engine, and a saved rule, decide like NumPy."""

import math

import numpy as np
import pytest
from cases import KEY, ODDS, case

from engines import ENGINES, columns_of, table
from fairramp import Rule


def test_widths_are_a_constant_a_step_and_fitted_ones():
    rule = case(**ODDS).rule
    first, *others, last = (ramp.width for ramp in rule.ramps)
    assert (first, last) == (math.inf, 0)
    assert len(set(others)) == len(others) == 3
    assert max(others) > 0.1


@pytest.mark.parametrize("engine", ENGINES)
def test_100000_rows_match_numpy(engine):
    made = case(**ODDS)
    rows = np.flatnonzero(made.decidable)
    given = {"number": rows, "p": made.score[rows], "race": made.group[rows].tolist()}
    frame = table(engine, given | {"who": [made.id[i] for i in rows]})
    found = columns_of(made.rule.apply(frame, score="p", group="race", id="who", key=KEY))
    np.testing.assert_array_equal(found["number"], rows)
    np.testing.assert_allclose(found["probability"], made.probability[rows], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found["decision"], made.decision[rows])


def test_saved_rule_decides_100000_rows_alike(tmp_path):
    made = case(**ODDS)
    rows = np.flatnonzero(made.decidable)
    made.rule.save(tmp_path / "rule.json")
    loaded = Rule.load(tmp_path / "rule.json")
    assert loaded == made.rule
    given = made.score[rows], {"race": made.group[rows].tolist()}
    np.testing.assert_array_equal(loaded.probabilities(*given), made.probability[rows])
    ids = [made.id[i] for i in rows]
    np.testing.assert_array_equal(loaded.decide(*given, ids=ids, key=KEY), made.decision[rows])
