"""Fit and apply against rows and groups, beside peers: measured, stored, and written as docs/benchmarks.md.

    python benchmarks/page.py measure [--quick]   run every case in a process of its own, store the numbers
    python benchmarks/page.py write               write the page and its plots from the stored numbers

Times are ratios to the floor, ``scores.sum(); groups.sum()``; all subjects of a case take turns in one process
and the best of each counts. Peers take part where they are installed (`make bench-page` sees to that).
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from core import scores_of

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "core.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
PLOTS = HERE.parent / "docs" / "benchmarks"

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 50_000_000)
GROUPS = (2, 4, 10, 100, 1_000, 10_000)
#: Rows at which groups and strings are compared.
ROWS = 1_000_000
#: The largest number of rows for each peer: minutes beyond.
PEER_ROWS = {"fairlearn": 1_000_000, "holisticai": 1_000_000}
NAMES = {"fit": "fairramp", "fairlearn": "Fairlearn ThresholdOptimizer", "holisticai": "holisticai RTO"}


# Measuring ------------------------------------------------------------------------------------


def best_of(subjects: dict[str, Callable[[], object]], seconds: float) -> dict[str, dict[str, float]]:
    """Best wall and processor seconds of each, all taking turns at least three times."""
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
    """Bytes by which the memory of this process grows at most while something runs; Linux only."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        before = _status("VmRSS")
        result = run()
        peak = _status("VmHWM") - before
    except OSError:
        return None
    return max(peak - getattr(result, "nbytes", 0), 0)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def rows_case(n_rows: int, n_groups: int, seconds: float) -> dict[str, Any]:
    """Fit and apply, in time and memory."""
    import fairramp

    scores, groups = scores_of(n_rows, n_groups)
    fairramp.fit_rule(*scores_of(100_000, n_groups))  # what is loaded and kept once is not the rows' cost
    memory = {"fit": peak_of(lambda: fairramp.fit_rule(scores, groups))}
    rule = fairramp.fit_rule(scores, groups)
    memory["apply"] = peak_of(lambda: rule.probabilities(scores, groups))
    room = np.zeros(n_rows)
    times = best_of(
        {
            "floor": lambda: (scores.sum(), groups.sum()),
            "fit": lambda: fairramp.fit_rule(scores, groups),
            "apply": lambda: rule.probabilities(scores, groups),
            "apply_out": lambda: rule.probabilities(scores, groups, out=room),
        },
        seconds,
    )
    return {"times": times, "memory": memory, "input": scores.nbytes + groups.nbytes}


def groups_case(n_rows: int, n_groups: int, seconds: float) -> dict[str, Any]:
    """Many groups beside four."""
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
    """String groups beside integers and Arrow's dictionary encoding of the same column."""
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
    """The peers' fits beside ours; those that take seconds run once."""
    import fairramp

    scores, groups = scores_of(n_rows, n_groups)
    labels = (np.random.default_rng(1).random(n_rows) < scores).astype(int)
    subjects: dict[str, Callable[[], object]] = {
        "floor": lambda: (scores.sum(), groups.sum()),
        "fit": lambda: fairramp.fit_rule(scores, groups),
    }
    times = best_of(subjects, seconds)
    versions = {}
    for name, make in (("fairlearn", _fairlearn), ("holisticai", _holisticai)):
        try:
            run, versions[name] = make(scores, groups, labels)
        except ImportError:
            continue
        if n_rows > PEER_ROWS[name]:
            continue
        taken = []
        while not taken or (sum(wall for wall, _ in taken) < seconds and len(taken) < 5):
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            taken.append((time.perf_counter() - wall, time.process_time() - cpu))
            again = best_of(subjects, 0.2)  # ours goes on taking turns
            times = {s: {c: min(times[s][c], again[s][c]) for c in again[s]} for s in again} | {
                s: t for s, t in times.items() if s not in again
            }
        times[name] = {"wall": min(wall for wall, _ in taken), "cpu": min(cpu for _, cpu in taken)}
    return {"times": times, "versions": versions}


def _fairlearn(scores: Any, groups: Any, labels: Any) -> tuple[Callable[[], object], str]:
    import fairlearn
    from fairlearn.postprocessing import ThresholdOptimizer
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Scores(ClassifierMixin, BaseEstimator):
        """A classifier whose one feature is its score."""

        def fit(self, x: Any, y: Any) -> "Scores":
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, x: Any) -> Any:
            return np.column_stack([1 - np.asarray(x)[:, 0], np.asarray(x)[:, 0]])

    column = scores[:, None]

    def run() -> object:
        peer = ThresholdOptimizer(
            estimator=Scores().fit(column[:2], [0, 1]),
            constraints="demographic_parity",
            objective="accuracy_score",
            prefit=True,
            predict_method="predict_proba",
        )
        return peer.fit(column, labels, sensitive_features=groups)

    return run, fairlearn.__version__


def _holisticai(scores: Any, groups: Any, labels: Any) -> tuple[Callable[[], object], str]:
    from importlib.metadata import version

    from holisticai.bias.mitigation.postprocessing.ml_debiaser.randomized_threshold.algorithm import (
        RandomizedThresholdAlgorithm,
    )

    signed, rate = 2 * scores - 1, float((scores >= 0.5).mean())

    def run() -> object:
        np.random.seed(0)  # noqa: NPY002 - it draws from the global state
        return RandomizedThresholdAlgorithm(gamma=0.02, eps=0.0, rho=rate).fit(signed, groups)

    return run, version("holisticai")


def _busy() -> Any:
    """Processor seconds that this machine has spent on anything; None where it does not say."""
    try:
        user, nice, system, _, _, irq, soft, steal = Path("/proc/stat").read_text().split()[1:9]
    except (OSError, ValueError):
        return None
    return sum(map(int, (user, nice, system, irq, soft, steal))) / os.sysconf("SC_CLK_TCK")


CASES = {"rows": rows_case, "groups": groups_case, "strings": strings_case, "peers": peers_case}


def measure(quick: bool) -> None:
    """Run all cases, each in a new process, and store what they say."""
    largest = 1_000_000 if quick else max(SIZES)
    wanted = [("rows", n, 4) for n in SIZES if n <= largest]
    wanted += [("groups", ROWS, k) for k in GROUPS]
    wanted += [("strings", ROWS, 4)] if find_spec("pyarrow") else []
    wanted += [("peers", n, 4) for n in SIZES if n <= (10_000 if quick else max(PEER_ROWS.values()))]
    results = []
    for kind, n_rows, n_groups in wanted:
        seconds = 1.0 if quick else 20.0 if n_rows > 10**7 else 5.0
        started, others, own = time.perf_counter(), _busy(), sum(os.times()[2:4])
        command = [sys.executable, __file__, "case", kind, str(n_rows), str(n_groups), str(seconds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        busy = None
        if others is not None:
            spent = _busy() - others - (sum(os.times()[2:4]) - own)
            busy = round(max(spent / (time.perf_counter() - started), 0.0), 2)
        results.append({"case": kind, "rows": n_rows, "groups": n_groups, "others": busy, **found})
        times = found["times"]
        print(f"{kind:>8} {n_rows:>11,} rows {n_groups:>6,} groups, others on {busy} cores ", end="")
        print({name: f"{1e3 * t['wall']:.2f} ms" for name, t in times.items()}, flush=True)
    stored = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "quick": quick,
        "date": time.strftime("%Y-%m-%d"),
        "cases": results,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n")


# Writing --------------------------------------------------------------------------------------


class Results:
    """Stored numbers, by case."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.about = stored
        self._cases = {(c["case"], c["rows"], c["groups"]): c for c in stored["cases"]}

    def of(self, kind: str) -> list[dict[str, Any]]:
        """All cases of a kind."""
        return [case for key, case in self._cases.items() if key[0] == kind]

    def get(self, kind: str, rows: int, groups: int) -> dict[str, Any] | None:
        """One case, if it ran."""
        return self._cases.get((kind, rows, groups))


def ratio(case: dict[str, Any], subject: str, to: str = "floor", clock: str = "wall") -> float:
    """How many times as long as another subject of the same case."""
    return float(case["times"][subject][clock] / case["times"][to][clock])


def on_top(case: dict[str, Any], kind: str) -> float:
    """What a string column adds to the fit, in times of Arrow's encoding of it."""
    t = {name: spent["wall"] for name, spent in case["times"].items()}
    return (t[kind] - t["integers"]) / t[f"{kind}, encoding"]


def bars(results: Results) -> list[tuple[str, float, float, str]]:
    """What was asked for: words, limit, measured, unit."""
    found = []
    large, million = results.get("rows", 50_000_000, 4), results.get("rows", 1_000_000, 4)
    small, many = results.get("rows", 1_000, 4), results.get("groups", ROWS, 10_000)
    if large:
        found.append(("fit, 50 M rows, against the floor", 8.0, ratio(large, "fit"), "×"))
        found.append(("apply, 50 M rows, against the floor", 2.5, ratio(large, "apply"), "×"))
        found.append(("apply to an array of one's own (`out=`), the same", 2.5, ratio(large, "apply_out"), "×"))
        for name, words in (("fit", "fit"), ("apply", "apply, beside its result")):
            if large["memory"][name] is not None:
                share = 100 * large["memory"][name] / large["input"]
                found.append((f"extra memory of {words}, 50 M rows, of the input", 25.0, share, " %"))
    if million:
        found.append(("fit, 1 M rows, against the floor", 15.0, ratio(million, "fit"), "×"))
    if small:
        found.append(("fit, 1,000 rows", 2.0, 1e3 * small["times"]["fit"]["wall"], " ms"))
    if many:
        found.append(("10,000 groups against 4, 1 M rows", 4.0, ratio(many, "fit", "fit of 4 groups"), "×"))
    if large and million:
        growth = large["times"]["fit"]["wall"] / million["times"]["fit"]["wall"]
        found.append(("fit, from 1 M to 50 M rows", 55.0, growth, "×"))
    for case in results.of("strings"):
        for kind in ("Arrow strings", "Python strings"):
            words = f"{kind} on top of integers, against Arrow's encoding"
            found.append((words, 2.0, on_top(case, kind), "×"))
    return found


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown, numbers to the right."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def shown(seconds: float) -> str:
    """A time in three digits."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def write() -> None:
    """Write the page and its plots."""
    results = Results(json.loads(RESULTS.read_text()))
    about = results.about
    asked = bars(results)
    kept = [words for words, limit, measured, _ in asked if measured <= limit]
    text = [
        "# Benchmarks",
        "Written by `make bench-page` from `benchmarks/results/core.json`; never change this page by hand.",
        f"{about['cores']} cores ({about['machine']}), Python {about['python']}, NumPy {about['numpy']}, "
        f"{about['date']}. {_company(about)} The best of many runs counts, floor and subjects taking turns in "
        "one process; ratios are meant, seconds are shown. The floor is `scores.sum(); groups.sum()`: each array "
        "read once, on one core.",
        "## What was asked for",
        f"{len(kept)} of {len(asked)} hold in this run.",
        table(
            ("", "at most", "measured", "holds"),
            [
                (
                    words,
                    f"{limit:g}{unit}",
                    f"{round(measured, 2):.3g}{unit}",
                    "yes" if measured <= limit else "**no**",
                )
                for words, limit, measured, unit in asked
            ],
        ),
        "## Rows",
        "Four integer-coded groups, default settings. Memory is what the process grows by at its peak beside the "
        "input and the result, as a share of the input.",
        table(
            ("rows", "floor", "fit", "÷ floor", "processor", "apply", "÷ floor", "processor", "fit memory"),
            [_rows_line(case) for case in results.of("rows")],
        ),
        "![Time against rows](benchmarks/rows.svg)",
        "*Processor* is the ratio of processor times, which load by others moves least; it counts all threads.",
        "## Groups",
        f"{ROWS:,} rows.",
        table(
            ("groups", "fit", "÷ floor", "÷ 4 groups", "apply", "÷ floor"),
            [
                (
                    f"{case['groups']:,}",
                    shown(case["times"]["fit"]["wall"]),
                    f"{ratio(case, 'fit'):.1f}",
                    f"{ratio(case, 'fit', 'fit of 4 groups'):.1f}",
                    shown(case["times"]["apply"]["wall"]),
                    f"{ratio(case, 'apply'):.1f}",
                )
                for case in results.of("groups")
            ],
        ),
        "![Time against groups](benchmarks/groups.svg)",
        "## Peers",
        _peers_words(results),
        table(
            ("rows", *(NAMES[s] for s in NAMES), "Fairlearn ÷ fairramp", "holisticai ÷ fairramp"),
            [_peers_line(case) for case in results.of("peers")],
        ),
        "![Peers](benchmarks/peers.svg)",
        "## Strings",
        f"{ROWS:,} rows, four groups.",
        table(
            ("groups", "fit", "Arrow's encoding", "on top of integers ÷ encoding"),
            [line for case in results.of("strings") for line in _strings_lines(case)],
        ),
    ]
    PAGE.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    plot(results)


def _company(about: dict[str, Any]) -> str:
    others = [case["others"] for case in about["cases"] if case["others"] is not None]
    if not others or max(others) < 0.1:
        return ""
    return (
        f"**The machine was not idle**: other programs kept {min(others):.1f} to {max(others):.1f} cores busy "
        f"during the cases, {np.median(others):.1f} in the middle. Threads gain little then; idle cores would "
        "do better."
    )


def _rows_line(case: dict[str, Any]) -> tuple[str, ...]:
    t, memory = case["times"], case["memory"]["fit"]
    cells = [f"{case['rows']:,}", shown(t["floor"]["wall"])]
    for subject in ("fit", "apply"):
        cells += [shown(t[subject]["wall"]), f"{ratio(case, subject):.1f}"]
        cells += [f"{ratio(case, subject, clock='cpu'):.1f}"]
    return (*cells, "–" if memory is None else f"{100 * memory / case['input']:.0f}%")


def _peers_words(results: Results) -> str:
    versions = {name: v for case in results.of("peers") for name, v in case["versions"].items()}
    absent = [NAMES[name] for name in PEER_ROWS if name not in versions]
    words = (
        "Fit time in the same process, same scores, four groups. Fairlearn's optimizer is given probabilities "
        "and labels, which it needs; holisticai's algorithm its default steps and the rate to reach. Peers ran "
        "one to five times, ours many times more, and the best counts, which favors ours somewhat. "
    )
    words += "Versions: " + ", ".join(f"{name} {v}" for name, v in versions.items()) + "." if versions else ""
    return words + (f" Not installed in this run: {', '.join(absent)}." if absent else "")


def _peers_line(case: dict[str, Any]) -> tuple[str, ...]:
    t = case["times"]
    cells = [shown(t[name]["wall"]) if name in t else "–" for name in NAMES]
    cells += [f"{ratio(case, name, 'fit'):,.0f}" if name in t else "–" for name in PEER_ROWS]
    return (f"{case['rows']:,}", *cells)


def _strings_lines(case: dict[str, Any]) -> list[tuple[str, ...]]:
    t = case["times"]
    lines = [("integers", shown(t["integers"]["wall"]), "–", "–")]
    for kind in ("Arrow strings", "Python strings"):
        encoding = shown(t[f"{kind}, encoding"]["wall"])
        lines.append((kind, shown(t[kind]["wall"]), encoding, f"{on_top(case, kind):.1f}"))
    return lines


def plot(results: Results) -> None:
    """Three plots, on logarithmic axes."""
    rows = [
        {"x": c["rows"], "y": c["times"][s]["wall"], "subject": s}
        for c in results.of("rows")
        for s in ("floor", "apply", "fit")
    ]
    groups = [
        {"x": c["groups"], "y": c["times"][s]["wall"], "subject": s}
        for c in results.of("groups")
        for s in ("floor", "apply", "fit")
    ]
    peers = [
        {"x": c["rows"], "y": c["times"][s]["wall"], "subject": NAMES[s]}
        for c in results.of("peers")
        for s in NAMES
        if s in c["times"]
    ]
    PLOTS.mkdir(exist_ok=True)
    for name, values, title in (("rows", rows, "rows"), ("groups", groups, "groups"), ("peers", peers, "rows")):
        _chart(values, title).save(str(PLOTS / f"{name}.svg"), format="svg")


def _chart(values: list[dict[str, Any]], title: str) -> Any:
    import altair as alt

    order = list(dict.fromkeys(v["subject"] for v in values))
    colors = alt.Scale(
        domain=order,
        range=["#8a8a8a", "#e8a200", "#1f77b4"]
        if "floor" in order
        else ["#1f77b4", "#b3541e", "#e8a200"][: len(order)],
    )
    return (
        alt.Chart(alt.Data(values=values), width=460, height=260)
        .mark_line(point=True)
        .encode(
            x=alt.X("x:Q", title=title, scale=alt.Scale(type="log"), axis=alt.Axis(format="~s")),
            y=alt.Y("y:Q", title="seconds", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g")),
            color=alt.Color("subject:N", title=None, scale=colors, sort=order),
        )
        .configure(background="white", padding=10)
        .configure_axis(labelFontSize=11, titleFontSize=12, gridColor="#e6e6e6")
        .configure_legend(labelFontSize=12, labelLimit=300)
    )


def main() -> None:
    """Measure, write, or run one case of the measuring."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("measure").add_argument("--quick", action="store_true", help="a minute, up to 1 M rows")
    commands.add_parser("write")
    one = commands.add_parser("case")
    one.add_argument("kind", choices=CASES)
    one.add_argument("rows", type=int)
    one.add_argument("groups", type=int)
    one.add_argument("seconds", type=float)
    asked = parser.parse_args()
    if asked.command == "case":
        warnings.simplefilter("ignore")
        print(json.dumps(CASES[asked.kind](asked.rows, asked.groups, asked.seconds)))
    elif asked.command == "measure":
        measure(asked.quick)
    else:
        write()


if __name__ == "__main__":
    main()
