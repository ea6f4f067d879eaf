"""Threads and forks that share a rule get the results of a single thread, and nothing hangs."""

import multiprocessing
import os
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import joblib
import numpy as np
import pytest

import fairramp
from samples import KEY, sample

pytestmark = pytest.mark.faults

SCORES, CODES = sample(60_000, 3)
IDS = np.arange(len(SCORES))
RULE = fairramp.fit_rule(SCORES, CODES, max_gap=0.01)
PARTS = np.array_split(IDS, 16)


def everything(rule, part):
    """All outputs of a rule, as bytes and text."""
    scores, codes = SCORES[part], CODES[part]
    return (
        rule.probabilities(scores, codes).tobytes(),
        rule.decide(scores, codes, ids=part, key=KEY).tobytes(),
        rule.decide(scores, codes, random_state=int(part[0])).tobytes(),
        rule.to_json(),
        repr(rule.table()),
        repr(rule.check(scores, codes)),
        repr(fairramp.audit(scores, codes, rule=rule)),
    )


@pytest.fixture(scope="module")
def alone():
    return [everything(RULE, part) for part in PARTS]


def test_eight_threads(alone):
    meet = threading.Barrier(8)

    def work(part):
        if part[0] in {p[0] for p in PARTS[:8]}:
            meet.wait(timeout=60)
        return everything(RULE, part)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, PARTS, timeout=120)) == alone


def test_threads_load_fit_and_save_one_file(tmp_path):
    path = tmp_path / "rule.json"
    RULE.save(path)

    def work(i):
        rule = fairramp.Rule.load(path)
        again = fairramp.fit_rule(SCORES, CODES, max_gap=0.01)
        assert rule == again == RULE
        again.save(path)
        return rule.fingerprint

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(32), timeout=120)) == {RULE.fingerprint}
    assert os.listdir(tmp_path) == ["rule.json"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # forking is what this tests
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib(alone, backend):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        run = joblib.Parallel(n_jobs=2, backend=backend, timeout=120)
        assert run(joblib.delayed(everything)(RULE, part) for part in PARTS) == alone


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forking_while_threads_run(alone):
    stop = threading.Event()
    # Enough rows for several blocks, so that the library starts threads.
    big_scores, big_codes = np.tile(SCORES, 20), np.tile(CODES, 20)

    def busy():
        while not stop.is_set():
            RULE.probabilities(big_scores, big_codes)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
            parts = [everything, *PARTS]
            assert list(pool.map(parts[0], [RULE] * 16, parts[1:], timeout=120)) == alone
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=60)


def test_threads_share_an_estimator():
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    X = SCORES[:3000, None]  # noqa: N806
    model = LogisticRegression().fit(X, CODES[:3000] > 0)
    fair = fairramp.RandomizedThresholdOptimizer(FrozenEstimator(model), target_rate=0.4, random_state=0)
    fair.fit(X, CODES[:3000] > 0, sensitive_features=CODES[:3000])
    expected = fair.predict(X, sensitive_features=CODES[:3000]).tolist()
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(
            lambda _: fair.predict(X, sensitive_features=CODES[:3000]).tolist(), range(16), timeout=120
        )
        assert all(answers == expected for answers in found)


def test_threads_decide_tables_of_every_engine(alone):
    engines = pytest.importorskip("engines", reason="the engines are not installed")
    columns = {"p": SCORES[:2000].tolist(), "g": CODES[:2000].tolist(), "id": IDS[:2000].tolist()}
    expected = RULE.decide(SCORES[:2000], CODES[:2000], ids=IDS[:2000], key=KEY).tolist()

    def work(engine):
        frame = RULE.apply(engines.table(engine, columns), score="p", group="g", id="id", key=KEY)
        return engines.columns_of(frame)["decision"]

    with ThreadPoolExecutor(8) as pool:
        names = [*engines.IN_MEMORY, *engines.QUICK_LAZY] * 3
        assert all(found == expected for found in pool.map(work, names, timeout=120))
