"""Cases of the benchmark page: fit and apply by rows and groups, string groups, other libraries, all criteria.

All subjects of a case take turns in one process, and the best time of each counts.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from core import scores_of

#: The largest number of rows for each peer; beyond that a fit takes minutes.
PEER_ROWS = {"fairlearn": 1_000_000, "holisticai": 1_000_000}
#: The same for holisticai's linear program, which counts all rows again for each distinct score.
PROGRAM_ROWS = 10_000
#: fairramp's criteria, and what Fairlearn and error-parity call them.
CRITERIA = {
    "parity": "demographic_parity",
    "equal_opportunity": "true_positive_rate_parity",
    "predictive_equality": "false_positive_rate_parity",
    "equalized_odds": "equalized_odds",
}
#: holisticai's linear program calls them so, and has no others.
OF_HOLISTICAI = {"equal_opportunity": "EqualizedOpportunity", "equalized_odds": "EqualizedOdds"}

Run = Callable[[], object]


def best_of(subjects: dict[str, Callable[[], object]], seconds: float) -> dict[str, dict[str, float]]:
    """Best wall and CPU seconds of each subject, all taking turns at least three times."""
    best = {name: {"wall": np.inf, "cpu": np.inf} for name in subjects}
    until, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < until or rounds < 3:
        rounds += 1
        for name, run in subjects.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
            best[name] = {clock: min(best[name][clock], spent[clock]) for clock in spent}
    return best


def peak_of(run: Callable[[], object]) -> int | None:
    """Peak growth of this process's memory during a call, in bytes, without the result; Linux only."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # reset the peak
        before = _status("VmRSS")
        result = run()
        peak = _status("VmHWM") - before
    except OSError:
        return None
    return max(peak - getattr(result, "nbytes", 0), 0)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def rows_case(n_rows: int, n_groups: int, seconds: float) -> dict[str, Any]:
    """Time and memory of fit and apply."""
    import fairramp

    scores, groups = scores_of(n_rows, n_groups)
    fairramp.fit_rule(*scores_of(100_000, n_groups))  # load imports and fill caches first
    memory = {"fit": peak_of(lambda: fairramp.fit_rule(scores, groups))}
    rule = fairramp.fit_rule(scores, groups)
    memory["apply"] = peak_of(lambda: rule.probabilities(scores, groups))
    out = np.zeros(n_rows)
    times = best_of(
        {
            "floor": lambda: (scores.sum(), groups.sum()),
            "fit": lambda: fairramp.fit_rule(scores, groups),
            "apply": lambda: rule.probabilities(scores, groups),
            "apply_out": lambda: rule.probabilities(scores, groups, out=out),
        },
        seconds,
    )
    return {"times": times, "memory": memory, "input": scores.nbytes + groups.nbytes}


def groups_case(n_rows: int, n_groups: int, seconds: float) -> dict[str, Any]:
    """Fit and apply with many groups, and fit with four."""
    import fairramp

    few, many = scores_of(n_rows, 4), scores_of(n_rows, n_groups)
    rule = fairramp.fit_rule(*many)
    subjects = {
        "floor": lambda: (many[0].sum(), many[1].sum()),
        "fit of 4 groups": lambda: fairramp.fit_rule(*few),
        "fit": lambda: fairramp.fit_rule(*many),
        "apply": lambda: rule.probabilities(*many),
    }
    return {"times": best_of(subjects, seconds)}


def strings_case(n_rows: int, n_groups: int, seconds: float) -> dict[str, Any]:
    """Fit with string groups, with integer groups, and Arrow's dictionary encoding of the same column."""
    import pyarrow

    import fairramp

    scores, groups = scores_of(n_rows, n_groups)
    objects = np.array([f"group {k}" for k in range(n_groups)], dtype=object)[groups]
    arrow = pyarrow.array(objects)
    subjects = {
        "integers": lambda: fairramp.fit_rule(scores, groups),
        "Arrow strings": lambda: fairramp.fit_rule(scores, arrow),
        "Arrow strings, encoding": lambda: arrow.dictionary_encode(),
        "Python strings": lambda: fairramp.fit_rule(scores, objects),
        "Python strings, encoding": lambda: pyarrow.array(objects).dictionary_encode(),
    }
    return {"times": best_of(subjects, seconds)}


def peers_case(n_rows: int, n_groups: int, seconds: float) -> dict[str, Any]:
    """Fits by other libraries and by fairramp; slow ones run once."""
    import fairramp

    scores, groups = scores_of(n_rows, n_groups)
    labels = (np.random.default_rng(1).random(n_rows) < scores).astype(int)
    subjects: dict[str, Run] = {
        "floor": lambda: (scores.sum(), groups.sum()),
        "fit": lambda: fairramp.fit_rule(scores, groups),
        "fit_labels": lambda: fairramp.fit_rule(scores, groups, labels, target_rate="accuracy"),
    }
    peers = {
        name: partial(make, scores, groups, labels)
        for name, make in (("fairlearn", _fairlearn), ("holisticai", _holisticai))
        if n_rows <= PEER_ROWS[name]
    }
    return _beside(subjects, peers, seconds)


def criteria_case(n_rows: int, n_groups: int, seconds: float) -> dict[str, Any]:
    """Every criterion of fairramp and, where they have it, of other libraries; and fairramp's other settings."""
    import fairramp

    scores, groups = scores_of(n_rows, n_groups)
    rng = np.random.default_rng(1)
    labels = (rng.random(n_rows) < scores).astype(int)
    other = rng.integers(0, 3, n_rows)
    shares = rng.dirichlet(np.ones(n_groups), n_rows)
    guessed = fairramp.GroupProbabilities({str(k): shares[:, k].copy() for k in range(n_groups)})
    fit = fairramp.fit_rule
    subjects: dict[str, Run] = {
        "floor": lambda: (scores.sum(), groups.sum()),
        "fit": lambda: fit(scores, groups),
        "parity": lambda: fit(scores, groups, labels, target_rate="accuracy"),
        **{name: partial(fit, scores, groups, labels, criterion=name) for name in CRITERIA if name != "parity"},
        "max_gap": lambda: fit(scores, groups, max_gap=0.02),
        "min_ratio": lambda: fit(scores, groups, min_ratio=0.8),
        "overall_rate": lambda: fit(scores, groups, overall_rate=0.2),
        "odds, max_gap": lambda: fit(scores, groups, labels, criterion="equalized_odds", max_gap=0.02),
        "strata": lambda: fit(scores, groups, strata=other),
        "each": lambda: fit(scores, [groups, other], combine="each"),
        "guessed": lambda: fit(scores, guessed),
    }
    peers = {
        f"{peer}, {name}": partial(make, scores, groups, labels, constraint)
        for name, constraint in CRITERIA.items()
        for peer, make in (("fairlearn", _fairlearn), ("error_parity", _error_parity))
    }
    peers["holisticai, parity"] = partial(_holisticai, scores, groups, labels)
    if n_groups == 2 and n_rows <= PROGRAM_ROWS:
        peers |= {
            f"holisticai, {name}": partial(_holisticai_program, scores, groups, labels, constraint)
            for name, constraint in OF_HOLISTICAI.items()
        }
    return _beside(subjects, peers, seconds, least=3)


def _beside(
    subjects: dict[str, Run], peers: dict[str, Callable[[], tuple[Run, str]]], seconds: float, least: int = 1
) -> dict[str, Any]:
    """Times of all subjects, and those of other libraries, which run `least` to five times."""
    times = best_of(subjects, seconds)
    versions = {}
    for name, make in peers.items():
        try:
            run, versions[name.split(", ")[0]] = make()
        except ImportError:
            continue
        taken = []
        while len(taken) < least or (sum(wall for wall, _ in taken) < seconds and len(taken) < 5):
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            taken.append((time.perf_counter() - wall, time.process_time() - cpu))
            again = best_of(subjects, 0.2)  # fairramp keeps taking turns
            times = {s: {c: min(times[s][c], again[s][c]) for c in again[s]} for s in again} | {
                s: t for s, t in times.items() if s not in again
            }
        times[name] = {"wall": min(wall for wall, _ in taken), "cpu": min(cpu for _, cpu in taken)}
    return {"times": times, "versions": versions}


def _fairlearn(scores: Any, groups: Any, labels: Any, constraints: str = "demographic_parity") -> tuple[Run, str]:
    import fairlearn
    from fairlearn.postprocessing import ThresholdOptimizer
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Scores(ClassifierMixin, BaseEstimator):
        """A classifier whose only feature is its score."""

        def fit(self, x: Any, y: Any) -> "Scores":
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, x: Any) -> Any:
            return np.column_stack([1 - np.asarray(x)[:, 0], np.asarray(x)[:, 0]])

    column = scores[:, None]

    def run() -> object:
        peer = ThresholdOptimizer(
            estimator=Scores().fit(column[:2], [0, 1]),
            constraints=constraints,
            objective="accuracy_score",
            prefit=True,
            predict_method="predict_proba",
        )
        return peer.fit(column, labels, sensitive_features=groups)

    return run, fairlearn.__version__


def _error_parity(scores: Any, groups: Any, labels: Any, constraint: str) -> tuple[Run, str]:
    from importlib.metadata import version

    from error_parity import RelaxedThresholdOptimizer

    column = scores[:, None]

    def run() -> object:
        peer = RelaxedThresholdOptimizer(predictor=lambda x: x[:, 0], constraint=constraint, tolerance=0.0)
        return peer.fit(column, labels, group=groups)

    return run, version("error-parity")


def _holisticai(scores: Any, groups: Any, labels: Any) -> tuple[Run, str]:
    from importlib.metadata import version

    from holisticai.bias.mitigation.postprocessing.ml_debiaser.randomized_threshold.algorithm import (
        RandomizedThresholdAlgorithm,
    )

    signed, rate = 2 * scores - 1, float((scores >= 0.5).mean())

    def run() -> object:
        np.random.seed(0)  # noqa: NPY002 - the peer draws from the global state
        return RandomizedThresholdAlgorithm(gamma=0.02, eps=0.0, rho=rate).fit(signed, groups)

    return run, version("holisticai")


def _holisticai_program(scores: Any, groups: Any, labels: Any, constraint: str) -> tuple[Run, str]:
    from importlib.metadata import version

    from holisticai.bias.mitigation import LPDebiaserBinary

    first, second = groups == 0, groups == 1
    probabilities = np.column_stack([1 - scores, scores])

    def run() -> object:
        peer = LPDebiaserBinary(constraint=constraint)
        # It replaces the probabilities by decisions.
        return peer.fit(y=labels, y_proba=probabilities.copy(), group_a=first, group_b=second)

    return run, version("holisticai")


def busy() -> Any:
    """CPU seconds that all processes on this machine have used; None where the system does not report them."""
    try:
        user, nice, system, _, _, irq, soft, steal = Path("/proc/stat").read_text(encoding="utf-8").split()[1:9]
    except (OSError, ValueError):
        return None
    return sum(map(int, (user, nice, system, irq, soft, steal))) / os.sysconf("SC_CLK_TCK")


CASES = {
    "rows": rows_case,
    "groups": groups_case,
    "strings": strings_case,
    "peers": peers_case,
    "criteria": criteria_case,
}
