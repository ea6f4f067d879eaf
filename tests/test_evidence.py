"""Monitors: evidence from counts, valid at every look, and the files that store it."""

import itertools
import json

import numpy as np
import pytest
from scipy import stats

import fairramp
from fairramp import Monitor, MonitorFormatError
from fairramp.measure.evidence import log_evidence, rate_limits
from samples import quiet_fit

RNG = np.random.default_rng(1)
GROUPS = np.repeat(["a", "b"], 1000)
SCORES = RNG.random(2000)
RULE = quiet_fit(SCORES, GROUPS)


def rows(n, seed=0, by=0.0):
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b"], n)
    return np.clip(rng.random(n) + by * (groups == "b"), 0, 1), groups


# The evidence -------------------------------------------------------------------------------------


def log_wealth(n, s, center, m):
    """log E_k(m), from Beta-binomial probabilities, for integer s; a mixture of two priors."""
    mixed = np.mean([stats.betabinom.pmf(s, n, c * center, c * (1 - center)) for c in (10, 300)])
    return np.log(mixed) - stats.binom.logpmf(s, n, m)


@pytest.mark.parametrize(
    ("counts", "limit"),
    [
        (((40, 10), (30, 20)), 0.05),
        (((40, 0), (30, 30)), 0.1),  # rates of 0 and 1
        (((40, 12), (30, 9)), 0.02),
        (((5, 5), (200, 3)), 0.6),
        (((50, 10), (60, 30), (20, 1)), 0.1),
        (((50, 10), (60, 30)), 1.0),
    ],
)
def test_evidence_is_the_smallest_wealth_over_rates_within_the_limit(counts, limit):
    """Oracle: the minimum over a fine grid of pairs of rates, with SciPy's probabilities."""
    centers, grid = np.array([0.2, 0.4, 0.3])[: len(counts)], np.linspace(0, 1, 1001)
    found = []
    for pair in itertools.permutations(range(len(counts)), 2):
        one, other = (log_wealth(*counts[i], centers[i], grid) for i in pair)
        allowed = grid[:, None] - grid <= limit + 1e-12
        found.append(np.exp(np.min(np.where(allowed, one[:, None] + other, np.inf))))
    n, s = np.array(counts).T
    every = [(np.arange(len(counts)), limit)]
    assert log_evidence(n, s.astype(float), centers, every) == pytest.approx(np.log(np.mean(found)), abs=0.02)


def test_a_bet_on_one_row_has_no_expected_gain():
    """E[E_k(m)] ≤ 1 for h in [0, 1] with mean m: two values, four values, all the mass inside."""
    for values, masses in (([0, 1], [0.7, 0.3]), ([0.1, 0.2, 0.5, 0.6], [0.4, 0.3, 0.2, 0.1]), ([0.3], [1])):
        m = float(np.dot(values, masses))
        gains = [_bet(np.array([1]), np.array([h]), np.array([0.2]), m) for h in values]
        assert np.dot(gains, masses) <= 1 + 1e-12


def _bet(n, s, center, m):
    """E_k(m) of one group, compared with a group without rows whose rate is fixed at m."""
    from fairramp.measure.evidence import _log_likelihood, _numerators

    return float(np.exp(_numerators(n, s, center) - _log_likelihood(s, n, np.array([m])))[0])


def test_before_any_row_the_evidence_is_1():
    monitor = RULE.monitor()
    assert (monitor.evidence, monitor.looks, monitor.gap, monitor.verdict) == (1.0, 0, 0.0, "undecided")
    assert monitor.sentence().startswith("Nothing to compare yet. ")
    assert np.isnan(monitor.rates).all()
    assert list(monitor.table()["new_rate_high"]) == [1.0, 1.0]


def test_rate_limits_are_where_the_wealth_reaches_its_bound():
    n, s, center = np.array([50, 200, 7, 9]), np.array([10.0, 90.5, 0.0, 9.0]), np.array([0.3, 0.4, 0.01, 0.0])
    lower, upper = rate_limits(n, s, center, 0.05)
    for k in range(4):
        for end, open_end in ((lower[k], 0.0), (upper[k], 1.0)):
            if end not in (0.0, 1.0) and abs(end - open_end) > 1e-9:
                assert _bet(n[[k]], s[[k]], center[[k]], end) == pytest.approx(4 / 0.05, rel=1e-6)
    assert (lower[2], upper[3]) == pytest.approx((0.0, 1.0), abs=1e-12)
    assert list(rate_limits(np.zeros(1, int), np.zeros(1), center[:1], 0.05)) == [[0.0], [1.0]]


def test_evidence_of_many_groups_does_not_depend_on_their_order():
    rng, n = np.random.default_rng(0), 1200
    counts, centers = rng.integers(0, 50, n), np.full(n, 0.3)
    selected = rng.binomial(counts, 0.3).astype(float)
    whole = log_evidence(counts, selected, centers, [(np.arange(n), 0.05)])
    few = log_evidence(counts[:3], selected[:3], centers[:3], [(np.arange(3), 0.05)])
    again = log_evidence(counts, selected, centers, [(np.arange(n)[::-1], 0.05)])
    assert whole == pytest.approx(again, abs=1e-9)
    assert np.isfinite([whole, few]).all()


# False alarms and delay ---------------------------------------------------------------------------


def streams(rates, shares, looks, n, *, limit, center, seed=0, per_look=100):
    """Rows until the alarm in each of n streams (infinite without one), simulated as counts."""
    rng, places = np.random.default_rng(seed), np.arange(len(rates))
    each = np.maximum(np.round(np.array(shares) * per_look), 1).astype(int)
    selected = np.cumsum(rng.binomial(each, rates, (looks, n, len(rates))), axis=0).astype(float)
    first = np.full(n, np.inf)
    for look in range(looks):
        for i in np.flatnonzero(np.isinf(first)):
            found = log_evidence(
                each * (look + 1), selected[look, i], np.full(len(rates), center), [(places, limit)]
            )
            if found >= np.log(20):
                first[i] = each.sum() * (look + 1)
    return first


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.3, 0.345)])
def test_false_alarms_are_rare_even_with_the_gap_at_its_limit(rates):
    found = streams(rates, (0.5, 0.5), 40, 200, limit=0.045, center=0.3)
    assert np.isfinite(found).sum() <= stats.binom.ppf(1 - 1e-6, 200, 0.05)


def test_drift_raises_an_alarm_that_stays():
    monitor, raised = RULE.monitor(), []
    for seed in range(20):
        raised.append(monitor.update(*rows(200, seed, by=0.2)).has_drifted)
    assert raised[-1]
    assert monitor.alarm == raised.index(True) + 1
    for seed in range(100):
        monitor.update(*rows(1000, 100 + seed, by=0.0))
    assert monitor.evidence < 20
    assert (monitor.has_drifted, monitor.verdict) == (True, "exceeded")
    assert monitor.sentence().startswith("Above the estimated limit of ")


def test_many_rows_show_that_the_gap_is_within_the_limit():
    rule = quiet_fit(SCORES[::10], GROUPS[::10], max_gap=0.1)
    monitor = rule.monitor().update(*rows(300_000))
    assert monitor.gap_interval[1] <= monitor.limit
    assert monitor.verdict == "within"
    assert monitor.sentence().startswith("The gap is within the estimated limit of ")


# Rows in ------------------------------------------------------------------------------------------


def test_only_counts_matter_not_batches_or_order():
    scores, groups = rows(600)
    whole = RULE.monitor().update(scores, groups)
    parts = RULE.monitor()
    for part in np.split(np.random.default_rng(1).permutation(600), 6):
        parts.update(scores[part], groups[part])
    assert (parts.rows, parts.looks) == (whole.rows, 6)
    assert parts.evidence == pytest.approx(whole.evidence, rel=1e-9)
    expected = RULE.check(scores, groups)
    assert whole.rates == pytest.approx(expected.rates)
    assert (whole.pair, whole.gap) == (expected.pair, pytest.approx(expected.gap))


def test_a_bad_batch_leaves_the_monitor_as_it_was():
    monitor = RULE.monitor().update(*rows(100), batch="monday")
    for bad in (([2.0], ["a"]), ([0.5], ["c"]), ([0.5, 0.5], ["a"])):
        with pytest.raises(fairramp.InputError):
            monitor.update(*bad, batch="tuesday")
    for name in ("monday", "", 7):
        with pytest.raises(fairramp.InputError, match="`batch`"):
            monitor.update(*rows(100), batch=name)
    assert (monitor.looks, sum(monitor.rows), monitor.batches) == (1, 100, ("monday",))
    with pytest.raises(TypeError):
        monitor.update(*rows(100), sample_weight=np.ones(100))


def test_each_stratum_has_its_own_limit():
    strata = np.arange(2000) % 20 == 0  # a small stratum with a wide limit
    rule = quiet_fit(SCORES, GROUPS, strata=strata)
    monitor = rule.monitor()
    small, large = (part.limit for part in sorted(monitor._parts, key=lambda part: -part.limit))
    assert small > 2 * large
    scores, groups = rows(3000, by=0.2)
    found = monitor.update(scores, groups, strata=np.arange(3000) % 20 == 0)
    assert found.has_drifted
    assert found.limit == large
    assert found.table().columns[0] == "stratum"


def test_small_groups_do_not_hide_drift_in_the_others():
    groups = np.where(np.arange(2000) % 100 == 0, "c", GROUPS)
    rule = quiet_fit(SCORES, groups)
    monitor = rule.monitor()
    assert [len(part.places) for part in monitor._parts] == [3, 2]
    found = monitor.update(*rows(3000, by=0.15))
    assert found.has_drifted
    assert found.limit == rule.certificate().rest.estimated < rule.certificate().estimated


def test_invalid_monitors_raise():
    with pytest.raises(fairramp.InputError, match="`confidence`"):
        RULE.monitor(confidence=2)
    with pytest.raises(fairramp.InputError, match="`rule`"):
        Monitor("rule.json")
    by_hand = fairramp.Rule(("a", "b"), (fairramp.Ramp.centered(0.5, 0.1),) * 2)
    with pytest.raises(fairramp.FairrampError, match="No certificate: the rule has no record"):
        by_hand.monitor()


def test_one_group_gives_no_evidence():
    rule = quiet_fit(SCORES, np.zeros(2000, int))
    found = rule.monitor().update(SCORES, np.zeros(2000, int))
    assert (found.evidence, found.pair, found.verdict) == (1.0, None, "undecided")


@pytest.mark.parametrize("new", [0, 1, 3000])
def test_fields_of_a_monitor_are_its_attributes(new):
    monitor = RULE.monitor()
    found = monitor.update(*rows(new, by=0.2)) if new else monitor
    fields = found.to_dict()
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    for name in fields.keys() - {"groups", "comparisons", "gap_interval", "pair"}:
        assert fields[name] == getattr(found, name), name
    assert tuple(fields["gap_interval"]) == found.gap_interval
    assert [group["n"] for group in fields["groups"]] == list(found.rows)
    assert [group["new_rate"] is None for group in fields["groups"]] == [n == 0 for n in found.rows]
    assert [one["verdict"] for one in fields["comparisons"]] == [one.verdict for one in found.comparisons]


# Files --------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    monitor = RULE.monitor(confidence=0.9)
    for seed in range(3):
        monitor.update(*rows(300, seed, by=0.3), batch=f"night {seed}")
    monitor.save(tmp_path / "state.json")
    return monitor, tmp_path / "state.json"


def test_a_loaded_monitor_continues_where_it_stopped(saved):
    monitor, path = saved
    again = Monitor.load(path, RULE)
    assert repr(again) == repr(monitor)
    more = rows(300, 9)
    for one in (monitor, again):
        one.update(*more)
    assert (again.evidence, again.alarm, again.rows) == (monitor.evidence, monitor.alarm, monitor.rows)
    with pytest.raises(fairramp.InputError, match="must be a name not used before"):
        again.update(*more, batch="night 2")


def test_a_loaded_monitor_keeps_its_limits_and_priors(saved, monkeypatch):
    monitor, path = saved
    from fairramp.measure import monitor as module

    real = module.parts_of
    monkeypatch.setattr(
        module, "parts_of", lambda *given: [module.replace(part, limit=0.5) for part in real(*given)]
    )
    assert Monitor.load(path, RULE).limit == monitor.limit


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"looks": 2}, '"batches" must be unique, and at most as many as "looks"'),
        ({"alarm": 9}, '"alarm" must be between 1 and "looks"'),
        ({"batches": ["x", "x"]}, '"batches" must be unique'),
        ({"parts": []}, '"parts" must match the rule'),
        ({"confidence": 2.0}, '"confidence" must be'),
        ({"more": 1}, "is unknown"),
        ({"version": 1}, "is not supported"),
        ({"rule": "0" * 64}, "belongs to another rule"),
    ],
)
def test_invalid_content_raises_before_the_checksum_is_tested(saved, change, text):
    _, path = saved
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(MonitorFormatError, match=text):
        Monitor.load(path, RULE)


def test_a_changed_digit_raises(saved):
    _, path = saved
    content = json.loads(path.read_text())
    content["groups"][0]["rows"] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(MonitorFormatError, match="checksum"):
        Monitor.load(path, RULE)
    content["groups"][0]["selected"] = 1e9
    path.write_text(json.dumps(content))
    with pytest.raises(MonitorFormatError, match='"selected" must be at most'):
        Monitor.load(path, RULE)


def test_another_rule_or_confidence_raises(saved):
    _, path = saved
    assert Monitor.load(path, RULE, confidence=0.9).confidence == 0.9
    with pytest.raises(MonitorFormatError, match=r"0\.9, not 0\.95"):
        Monitor.load(path, RULE, confidence=0.95)
    with pytest.raises(MonitorFormatError, match="belongs to another rule"):
        Monitor.load(path, quiet_fit(SCORES, GROUPS, max_gap=0.2))
