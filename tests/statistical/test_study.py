"""The coverage study: a dozen cells of every kind always, all of them with `make nightly`."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit
from scripts import coverage_page as page
from scripts import coverage_study as study
from scripts.coverage_study import Cell

CELLS = study.cells()
#: Cells of every kind that are quick to simulate.
SMALL = [i for i, cell in enumerate(CELLS) if sum(cell.sizes) <= 1_500 and len(cell.sizes) <= 6]
PARITY = [i for i in SMALL if not CELLS[i].by_label]
#: Cells that compare true or false positive rates, and those that compare both.
ERROR_RATES, ODDS = ([i for i in SMALL if CELLS[i].by_label and len(CELLS[i].events) == n] for n in (1, 2))
QUICK = [*PARITY[:: len(PARITY) // 12][:12], *ERROR_RATES[::3], *ODDS]


# The study itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("foot", "width"),
    [(0.2, 0.3), (-0.1, 0.5), (0.9, 0.5), (0.01, 0.001), (0.5, 0.0), (-0.3, 0.2), (1.0, 0.1), (0.0, 1.0)],
)
@pytest.mark.parametrize(("mu", "sigma"), [(-1.0, 1.2), (-4.0, 0.5), (2.0, 2.5)])
@pytest.mark.parametrize("heavier", [1.0, 5.0])
def test_true_rates_match_numerical_integration(foot, width, mu, sigma, heavier):
    def chance(z):
        x = expit(mu + sigma * z)
        return float(x > foot) if width == 0 else float(np.clip((x - foot) / width, 0, 1))

    def weight(z):
        return heavier if mu + sigma * z >= 0 else 1.0

    # Integrate over scores, splitting at kinks and jumps.
    kinks = [(math.log(t / (1 - t)) - mu) / sigma for t in (foot, 0.5, foot + width) if 0 < t < 1]
    ends = [-12.0, *sorted(z for z in kinks if -12 < z < 12), 12.0]
    selected, everybody = (
        sum(
            integrate.quad(lambda z, f=f: f(z) * weight(z) * stats.norm.pdf(z), a, b, limit=200)[0]
            for a, b in itertools.pairwise(ends)
        )
        for f in (chance, lambda _: 1.0)
    )
    found = study.weighted_rate(foot, width, mu, sigma, heavier)
    assert found == pytest.approx(selected / everybody, abs=1e-8)


def test_cells_cover_the_stated_ranges():
    assert len(CELLS) == len(set(CELLS)) > study.DRAWN
    drawn = study.drawn_cells()
    assert {cell.weights for cell in drawn} == set(study.WEIGHTS)
    assert {cell.target for cell in drawn} == {"number", "optimal", "accuracy", "base_rate"}
    assert {cell.max_gap for cell in drawn} == {0.0, 0.02, 0.05}
    for values, low, high in (
        ([cell.rate for cell in drawn], 0.01, 0.5),
        ([len(cell.sizes) for cell in drawn], 2, 20),
        ([max(cell.sizes) for cell in drawn], 30, 20_000),
        ([cell.ramp_width for cell in drawn], 0.0, 0.5),
    ):
        assert low <= min(values) <= 1.1 * low + 1e-9
        assert 0.9 * high <= max(values) <= high
    # The middle group's selection rate, and its base rate.
    assert stats.norm.cdf(Cell((50,) * 3, 0.2, "optimal").middles[1] / 1.2) == pytest.approx(0.2)
    middle = Cell((50,) * 3, 0.2, "base_rate").middles[1]
    mean = integrate.quad(lambda z: expit(middle + 1.2 * z) * stats.norm.pdf(z), -12, 12)[0]
    assert mean == pytest.approx(0.2, abs=1e-6)


def test_error_rate_cells_draw_the_rows_they_describe():
    chosen = [cell for cell in CELLS if cell.by_label and len(cell.events) == 1]
    assert {cell.criterion for cell in chosen} == {"equal_opportunity", "predictive_equality"}
    assert {cell.target for cell in chosen} == {"number", "accuracy", "balanced_accuracy"}
    assert {cell.ramp_width for cell in chosen} == {0.0, 0.01}
    assert (min(min(c.sizes) for c in chosen), max(max(c.sizes) for c in chosen)) == (200, 20_000)
    rng = np.random.default_rng(0)
    for label, criterion in ((1, "equal_opportunity"), (0, "predictive_equality")):
        cell = Cell((40_000, 40_000), 0.6, "accuracy", criterion=criterion)
        groups = np.repeat([0, 1], 40_000)
        scores, labels = study._rows(cell, groups, rng)
        for k, mu in enumerate(cell.middles):
            mine = groups == k
            assert labels[mine].mean() == pytest.approx(cell.bases[k], abs=0.01)
            rows = mine & (labels == label)
            # The fit equalizes the mean chance over exactly these rows.
            for foot, width in ((0.5, 0.0), (0.3, 0.2)):
                h = (scores > foot) if width == 0 else np.clip((scores - foot) / width, 0, 1)
                assert h[rows].mean() == pytest.approx(study.true_rate(foot, width, mu, cell.sigma), abs=0.015)


def test_odds_cells_rank_some_groups_better_and_have_the_stated_rates():
    cell = Cell((40_000, 40_000), 0.6, "accuracy", criterion="equalized_odds")
    groups = np.repeat([0, 1], 40_000)
    scores, labels = study._rows(cell, groups, np.random.default_rng(0))
    for label in (0, 1):
        for k, mu in enumerate(cell.means(label)):
            rows = (groups == k) & (labels == label)
            assert (scores[rows] > 0.5).mean() == pytest.approx(
                study.true_rate(0.5, 0.0, mu, cell.sigma), abs=0.015
            )
    apart = (cell.means(1) - cell.means(0)) / cell.sigma
    assert apart == pytest.approx([0.8 * study.APART, 1.2 * study.APART])


def test_limits_that_are_too_short_fail(monkeypatch):
    # In the exact case the limit is the 95% quantile of the gap, so the study must fail at 60% of it.
    cell, real = Cell((300, 300), 0.2), study.limits
    for one in (cell, Cell((900, 900), 0.6, criterion="equal_opportunity")):
        monkeypatch.setattr(study, "limits", real)
        assert study.failures(one, study.run_cell(one, 150, 0)) == []
        monkeypatch.setattr(study, "limits", lambda rule: (0.6 * real(rule)[0], 0.6 * real(rule)[1]))
        assert study.failures(one, study.run_cell(one, 150, 0)) == ["estimated", "proven"]
    # The limits of equalized odds hold for every ramp, so they are about twice the gap.
    odds = Cell((400, 300), 0.6, "accuracy", 0.01, criterion="equalized_odds")
    monkeypatch.setattr(study, "limits", lambda rule: (0.2 * real(rule)[0], 0.2 * real(rule)[1]))
    assert study.failures(odds, study.run_cell(odds, 60, 0)) == ["estimated", "proven"]
    monkeypatch.setattr(study, "limits", lambda rule: (1.0, real(rule)[1]))
    assert study.failures(cell, study.run_cell(cell, 20, 0)) == ["withheld"]
    assert study.failures(replace(cell, rate=0.01), study.run_cell(cell, 20, 0)) == []


# Results ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("i", QUICK)
def test_limits_hold_in_a_dozen_cells(i):
    found = study.run_cell(CELLS[i], 40, i)
    assert study.failures(CELLS[i], found) == [], (CELLS[i], found)


def test_page_shows_a_run_in_which_every_limit_held():
    stored = page.load(CELLS)
    assert page.PAGE.read_text(encoding="utf-8") == page.page_text(CELLS, stored)
    assert [c for c, r in zip(CELLS, stored, strict=True) if study.failures(c, r)] == []


@pytest.mark.nightly
def test_limits_hold_in_every_cell():
    results = study.run(list(enumerate(CELLS)), study.REPLICATES)
    failed = {i: (why, CELLS[i], r) for i, r in enumerate(results) if (why := study.failures(CELLS[i], r))}
    print(f"{len(CELLS)} cells, {study.REPLICATES} fits each: {len(failed)} fail")
    assert failed == {}
