"""Measure the benchmarks, and write docs/benchmarks.md from the stored numbers.

    python benchmarks/page.py measure [--quick]   run every case in its own process and store the numbers
    python benchmarks/page.py write               write the page and its plots, then print the targets
    python benchmarks/page.py targets             compare the stored numbers with the performance targets

The baseline is ``scores.sum(); groups.sum()``, called "floor" in the stored results. Peers that are not installed
are left out; `make bench-page` installs them.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import textwrap
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, PEER_ROWS, busy

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "core.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
PLOTS = HERE.parent / "docs" / "benchmarks"

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 50_000_000)
GROUPS = (2, 4, 10, 100, 1_000, 10_000)
#: Rows at which groups and strings are compared.
ROWS = 1_000_000
NAMES = {
    "fit": "fairramp",
    "fit_labels": "fairramp with labels",
    "fairlearn": "Fairlearn ThresholdOptimizer",
    "holisticai": "holisticai RTO",
}
#: Other libraries, and the fit of fairramp that uses the same data: Fairlearn requires labels.
SHORT = {"fairlearn": ("Fairlearn", "fit_labels"), "holisticai": ("holisticai", "fit")}
#: Criteria, and what they make equal.
EQUAL = {
    "parity": "selection rates",
    "equal_opportunity": "true positive rates",
    "predictive_equality": "false positive rates",
    "equalized_odds": "true and false positive rates",
}
#: Other libraries that are compared by these criteria.
PEERS = {"fairlearn": "Fairlearn", "error_parity": "error-parity", "holisticai": "holisticai"}
#: Other settings of fairramp.
SETTINGS = {
    "max_gap": "`max_gap=0.02`",
    "min_ratio": "`min_ratio=0.8`",
    "overall_rate": "`overall_rate=0.2`",
    "odds, max_gap": '`criterion="equalized_odds"`, `max_gap=0.02`',
    "strata": "`strata=`, three strata",
    "each": '`combine="each"`, a second attribute with three values',
    "guessed": "`GroupProbabilities`",
}
#: What the page calls the subjects of a plot.
SHOWN = {"floor": "baseline", "apply": "apply", "fit": "fit"}


def measure(quick: bool, only: str | None = None) -> None:
    """Run every case, or those of one kind, in a new process and store the numbers; others stay as stored."""
    largest = 1_000_000 if quick else max(SIZES)
    wanted = [("rows", n, 4) for n in SIZES if n <= largest]
    wanted += [("groups", ROWS, k) for k in GROUPS]
    wanted += [("strings", ROWS, 4)] if find_spec("pyarrow") else []
    wanted += [("peers", n, 4) for n in SIZES if n <= (10_000 if quick else max(PEER_ROWS.values()))]
    wanted += [("criteria", n, 2) for n in SIZES if n <= (10_000 if quick else max(PEER_ROWS.values()))]
    before = stored().about if only else {"cases": [], "date": ""}
    results = [case for case in before["cases"] if case["case"] != only]
    for kind, n_rows, n_groups in wanted:
        if only not in (None, kind):
            continue
        seconds = 1.0 if quick else 20.0 if n_rows > 10**7 else 5.0
        started, others, own = time.perf_counter(), busy(), sum(os.times()[2:4])
        command = [sys.executable, __file__, "case", kind, str(n_rows), str(n_groups), str(seconds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        load = None
        if others is not None:
            spent = busy() - others - (sum(os.times()[2:4]) - own)
            load = round(max(spent / (time.perf_counter() - started), 0.0), 2)
        results.append({"case": kind, "rows": n_rows, "groups": n_groups, "others": load, **found})
        times = found["times"]
        print(f"{kind:>8} {n_rows:>11,} rows {n_groups:>6,} groups, others on {load} cores ", end="")
        print({name: f"{1e3 * t['wall']:.2f} ms" for name, t in times.items()}, flush=True)
        _store(results, quick, before["date"])


def _store(results: list[dict[str, Any]], quick: bool, days: str) -> None:
    """Store what has been measured so far; `days` are those of cases that stay as stored."""
    today = time.strftime("%Y-%m-%d")
    content = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "quick": quick,
        "date": " and ".join(dict.fromkeys(day for day in (*days.split(" and "), today) if day)),
        "cases": results,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")


# Reading --------------------------------------------------------------------------------------


class Results:
    """Stored numbers, by case."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.about = stored
        self._cases = {(c["case"], c["rows"], c["groups"]): c for c in stored["cases"]}

    def of(self, kind: str) -> list[dict[str, Any]]:
        """All cases of a kind."""
        return [case for key, case in self._cases.items() if key[0] == kind]

    def get(self, kind: str, rows: int, groups: int) -> dict[str, Any] | None:
        """One case, or None if it did not run."""
        return self._cases.get((kind, rows, groups))


def stored() -> Results:
    """The stored results."""
    return Results(json.loads(RESULTS.read_text()))


def ratio(case: dict[str, Any], subject: str, to: str = "floor", clock: str = "wall") -> float:
    """Time of a subject divided by that of another subject of the same case."""
    return float(case["times"][subject][clock] / case["times"][to][clock])


def extra(case: dict[str, Any], kind: str) -> float:
    """Time that string groups add to a fit, divided by the time of Arrow's encoding."""
    t = {name: spent["wall"] for name, spent in case["times"].items()}
    return (t[kind] - t["integers"]) / t[f"{kind}, encoding"]


# Targets --------------------------------------------------------------------------------------


def targets(results: Results) -> list[tuple[str, float, float, str]]:
    """The performance targets of CONTRIBUTING.md: name, target, measured value and unit."""
    found = []
    large, million = results.get("rows", 50_000_000, 4), results.get("rows", 1_000_000, 4)
    small, many = results.get("rows", 1_000, 4), results.get("groups", ROWS, 10_000)
    if large:
        found.append(("fit, 50 M rows ÷ baseline", 8.0, ratio(large, "fit"), "×"))
        found.append(("apply, 50 M rows ÷ baseline", 2.5, ratio(large, "apply"), "×"))
        found.append(("apply with `out=`, 50 M rows ÷ baseline", 2.5, ratio(large, "apply_out"), "×"))
        for name in ("fit", "apply"):
            if large["memory"][name] is not None:
                share = 100 * large["memory"][name] / large["input"]
                found.append((f"extra memory of {name}, 50 M rows, share of the input", 25.0, share, "%"))
    if million:
        found.append(("fit, 1 M rows ÷ baseline", 15.0, ratio(million, "fit"), "×"))
    if small:
        found.append(("fit, 1,000 rows", 2.0, 1e3 * small["times"]["fit"]["wall"], " ms"))
    if many:
        found.append(("fit, 1 M rows, 10,000 groups ÷ 4 groups", 4.0, ratio(many, "fit", "fit of 4 groups"), "×"))
    if large and million:
        growth = large["times"]["fit"]["wall"] / million["times"]["fit"]["wall"]
        found.append(("fit, 50 M rows ÷ 1 M rows", 55.0, growth, "×"))
    for case in results.of("strings"):
        for kind in ("Arrow strings", "Python strings"):
            found.append((f"fit, extra time for {kind} ÷ Arrow's encoding", 2.0, extra(case, kind), "×"))
    return found


def print_targets(results: Results) -> None:
    """Print whether each target is met."""
    found = targets(results)
    for name, target, measured, unit in found:
        verdict = "met" if measured <= target else "MISSED"
        shown_value = f"{measured:.1f}" if unit == "%" else f"{measured:.3g}"
        print(f"{verdict:<7} {name}: {shown_value}{unit}, target {target:g}{unit}")
    print(f"{sum(measured <= target for _, target, measured, _ in found)} of {len(found)} targets met")


# Writing --------------------------------------------------------------------------------------


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table; all columns but the first are right-aligned."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def shown(seconds: float) -> str:
    """A time with three significant digits.

    >>> shown(0.0012), shown(0.181), shown(14.5)
    ('1.20 ms', '181 ms', '14.5 s')
    """
    value, unit = (seconds, "s") if seconds >= 0.9995 else (1e3 * seconds, "ms")
    return f"{value:#.3g}".rstrip(".") + f" {unit}"


def write() -> None:
    """Write the page and its plots."""
    results = stored()
    text = [
        "<!-- Written by `make bench-page` from benchmarks/results/core.json: do not edit. -->",
        "# Benchmarks",
        _opening(results),
        "The table gives each library's time to fit, measured in one process on the same scores, with four "
        "groups:",
        table(
            ("rows", *NAMES.values(), *(f"{name} ÷ {NAMES[ours]}" for name, ours in SHORT.values())),
            [_peers_line(case) for case in results.of("peers")],
        ),
        "![Time to fit by number of rows, for each library](benchmarks/peers.svg)",
        *_criteria(results),
        "## How it was measured",
        _method(results),
        "## Rows",
        "There are four integer-coded groups, and all settings are at their defaults. *Apply* computes "
        "everyone's selection probability. The columns *fit CPU ÷ baseline* and *apply CPU ÷ baseline* give "
        "ratios of CPU times, summed over all threads. *Fit memory* is the peak growth of the process's memory "
        "during a fit, as a share of the size of the input arrays.",
        table(
            (
                *("rows", "baseline", "fit", "fit ÷ baseline", "fit CPU ÷ baseline"),
                *("apply", "apply ÷ baseline", "apply CPU ÷ baseline", "fit memory"),
            ),
            [_rows_line(case) for case in results.of("rows")],
        ),
        "![Time by number of rows](benchmarks/rows.svg)",
        "## Groups",
        f"There are {_count(ROWS)} rows. *Fit ÷ 4 groups* is the time of the fit divided by that of a fit with "
        "four groups, measured in the same process.",
        table(
            ("groups", "fit", "fit ÷ baseline", "fit ÷ 4 groups", "apply", "apply ÷ baseline"),
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
        "![Time by number of groups](benchmarks/groups.svg)",
        "## String groups",
        f"There are {_count(ROWS)} rows and four groups. The last column is the time that strings add to a fit, "
        "divided by the time that Arrow takes to dictionary-encode the same column. For Python strings, the "
        "encoding includes the conversion to Arrow.",
        table(
            ("groups", "fit", "Arrow's encoding", "extra time ÷ encoding"),
            [line for case in results.of("strings") for line in _strings_lines(case)],
        ),
    ]
    PAGE.write_text("\n\n".join(map(_wrapped, text)) + "\n", encoding="utf-8")
    plot(results)
    print_targets(results)


def _wrapped(part: str) -> str:
    """Prose and list items in lines of at most 118 characters."""
    if part.startswith(("|", "#", "<!--", "![")):
        return part
    lines = part.split("\n")
    return "\n".join(
        textwrap.fill(
            line,
            118,
            subsequent_indent="  " if line.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    )


def _opening(results: Results) -> str:
    """The result in three sentences."""
    peers, rows = results.of("peers"), results.of("rows")
    last, largest = peers[-1], rows[-1]
    same = next(case for case in rows if case["rows"] == last["rows"])
    words = (
        f"On {_word(results.about['cores'])} cores, fitting a rule to {_count(last['rows'])} rows takes "
        f"{shown(last['times']['fit']['wall'])}, and computing everyone's selection probability takes "
        f"{shown(same['times']['apply']['wall'])}."
    )
    for name, who, ours in (
        (
            "fairlearn",
            "Depending on the number of rows, Fairlearn's `ThresholdOptimizer`, which requires labels,",
            "fairramp with labels",
        ),
        (
            "holisticai",
            "holisticai's Randomized Threshold Optimizer (RTO), a copy of the code from [the "
            "paper](https://arxiv.org/abs/2106.12887) that introduced fairramp's method,",
            "fairramp without labels",
        ),
    ):
        times = [ratio(case, name, SHORT[name][1]) for case in peers if name in case["times"]]
        if times:
            words += f" {who} takes **{min(times):,.0f} to {max(times):,.0f} times** as long as {ours}."
    words += (
        f" With {_count(largest['rows'])} rows, a fit takes {shown(largest['times']['fit']['wall'])}, "
        f"{ratio(largest, 'fit'):.1f} times as long as summing the two input arrays"
    )
    memory = largest["memory"]["fit"]
    return words + (
        "." if memory is None else f", and needs extra memory of {_share(memory, largest)} of their size."
    )


def _word(count: int) -> str:
    return {1: "one", 2: "two", 4: "four", 8: "eight"}.get(count, f"{count}")


def _count(rows: int) -> str:
    return f"{rows / 1e6:g} million" if rows >= 1_000_000 else f"{rows:,}"


def _share(memory: int, case: dict[str, Any]) -> str:
    return f"{100 * memory / case['input']:.1f}%"


def _method(results: Results) -> str:
    about = results.about
    cases = [*results.of("peers"), *results.of("criteria")]
    versions = {name: v for case in cases for name, v in case["versions"].items()}
    absent = [NAMES[name] for name in PEER_ROWS if name not in versions]
    software = ", ".join(f"{PEERS[name]} {v}" for name, v in versions.items())
    lines = [
        f"- **Machine.** {_word(about['cores']).capitalize()} cores ({about['machine']}), Python "
        f"{about['python']}, NumPy {about['numpy']}{', ' if software else ''}{software}; measured on "
        f"{_dates(about)}."
        f"{_company(about)}",
        "- **Baseline.** `scores.sum(); groups.sum()` reads each array once, on one core. Absolute times depend "
        "on the machine, so compare the columns *÷ baseline* rather than the times.",
        "- **Times.** Each combination of row count and group count is measured in a new process, in which the "
        "baseline, fit and apply take turns. The tables give the best time of each. The same fit of 1 million "
        "rows takes slightly different times in different tables because it was measured in separate "
        f"processes{_days(about)}.",
        "- **Other libraries.** Fairlearn requires labels, so it is compared with fairramp's "
        '`target_rate="accuracy"`, which uses them. holisticai runs its default number of steps and is given the '
        "target rate: the overall selection rate at a cutoff of 0.5. For each number of rows, each of these "
        "libraries ran one to five times, and fairramp ran many more times, so taking the best time slightly "
        "favors fairramp. In the comparison of criteria, Fairlearn and error-parity use their constraints "
        "`demographic_parity`, `true_positive_rate_parity`, `false_positive_rate_parity` and `equalized_odds` "
        "and allow no gap. holisticai uses its RTO for selection rates and, for the other criteria, its linear "
        "program (`LPDebiaserBinary`), which takes two groups. Each library ran three to five times."
        + (f" Not installed in this run: {', '.join(absent)}." if absent else ""),
    ]
    return "\n".join(lines)


def _dates(about: dict[str, Any]) -> str:
    days = about["date"].split(" and ")
    return about["date"] if len(days) < 3 else f"{days[0]} to {days[-1]}"


def _days(about: dict[str, Any]) -> str:
    return " and on different days" if " and " in about["date"] else ""


def _company(about: dict[str, Any]) -> str:
    busy_cases = [case for case in about["cases"] if (case["others"] or 0.0) >= 0.1]
    if not busy_cases:
        return ""
    others = [case["others"] for case in busy_cases]
    kinds = sorted({case["case"].replace("_", " ") for case in busy_cases})
    return (
        f" **The machine was not idle** in {len(busy_cases)} of {len(about['cases'])} measurements "
        f"({', '.join(kinds)}): other processes kept {_between(others, 1)} cores busy (median "
        f"{np.median(others):.1f}), which slows down multithreaded code."
    )


def _rows_line(case: dict[str, Any]) -> tuple[str, ...]:
    t, memory = case["times"], case["memory"]["fit"]
    cells = [f"{case['rows']:,}", shown(t["floor"]["wall"])]
    for subject in ("fit", "apply"):
        cells += [shown(t[subject]["wall"]), f"{ratio(case, subject):.1f}"]
        cells += [f"{ratio(case, subject, clock='cpu'):.1f}"]
    return (*cells, "–" if memory is None else _share(memory, case))


def _peers_line(case: dict[str, Any]) -> tuple[str, ...]:
    t = case["times"]
    cells = [shown(t[name]["wall"]) if name in t else "–" for name in NAMES]
    cells += [f"{ratio(case, name, ours):,.0f}" if name in t else "–" for name, (_, ours) in SHORT.items()]
    return (f"{case['rows']:,}", *cells)


def _criteria(results: Results) -> list[str]:
    """The section on all criteria and settings."""
    cases = results.of("criteria")
    if not cases:
        return []
    last = cases[-1]
    return [
        "## Every criterion",
        "All criteria and libraries are measured in one process, on the same scores and labels, with two groups. "
        f"With {_count(last['rows'])} rows, "
        + "; ".join(_needed(last, peer) for peer in PEERS if _has(last, peer))
        + ". "
        "The table gives fairramp's CPU time, summed over all threads, and the CPU times of the other libraries "
        "as multiples of it; a dash (–) means that a library does not support the criterion, or that its fit "
        "would take minutes with this many rows. Other processes affect CPU times less than elapsed times. "
        "[Reproduction](reproduction.md) compares accuracies and gaps.",
        table(
            ("rows", "equal", "fairramp", *(f"{title} ÷ fairramp" for title in PEERS.values())),
            [_criteria_line(case, criterion) for criterion in EQUAL for case in cases],
        ),
        f"The next table gives fairramp's CPU time with other settings, for {_count(last['rows'])} rows. The "
        "last column divides it by the time of the default, a fit that makes selection rates equal without "
        "labels, in the same process:",
        table(
            ("setting", "CPU time", "÷ default"),
            [
                (title, shown(last["times"][name]["cpu"]), f"{ratio(last, name, 'fit', 'cpu'):.1f}")
                for name, title in ({"fit": "the default"} | SETTINGS).items()
            ],
        ),
    ]


def _has(case: dict[str, Any], peer: str) -> list[str]:
    """The criteria by which a library was measured."""
    return [name for name in EQUAL if f"{peer}, {name}" in case["times"]]


def _needed(case: dict[str, Any], peer: str) -> str:
    """How many times fairramp's CPU time a library needs."""
    times = [cpu_ratio(case, peer, name) for name in _has(case, peer)]
    return f"{PEERS[peer]} needs **{_between(times)} times** the CPU time of fairramp"


def cpu_ratio(case: dict[str, Any], peer: str, criterion: str) -> float:
    """CPU time of another library's fit divided by that of fairramp's."""
    return ratio(case, f"{peer}, {criterion}", criterion, "cpu")


def _between(values: list[float], digits: int = 0) -> str:
    """The smallest and the largest value."""
    ends = dict.fromkeys(f"{value:,.{digits}f}" for value in (min(values), max(values)))
    return " to ".join(ends)


def _criteria_line(case: dict[str, Any], criterion: str) -> tuple[str, ...]:
    ratios = [
        f"{cpu_ratio(case, peer, criterion):,.1f}" if criterion in _has(case, peer) else "–" for peer in PEERS
    ]
    return (f"{case['rows']:,}", EQUAL[criterion], shown(case["times"][criterion]["cpu"]), *ratios)


def _strings_lines(case: dict[str, Any]) -> list[tuple[str, ...]]:
    t = case["times"]
    lines = [("integers", shown(t["integers"]["wall"]), "–", "–")]
    for kind in ("Arrow strings", "Python strings"):
        encoding = shown(t[f"{kind}, encoding"]["wall"])
        lines.append((kind, shown(t[kind]["wall"]), encoding, f"{extra(case, kind):.1f}"))
    return lines


def plot(results: Results) -> None:
    """Draw three plots on logarithmic axes."""
    rows = [
        {"x": c["rows"], "y": c["times"][s]["wall"], "subject": SHOWN[s]}
        for c in results.of("rows")
        for s in SHOWN
    ]
    groups = [
        {"x": c["groups"], "y": c["times"][s]["wall"], "subject": SHOWN[s]}
        for c in results.of("groups")
        for s in SHOWN
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
        if SHOWN["floor"] in order
        else ["#1f77b4", "#0b2f4f", "#e8a200", "#b3541e"][: len(order)],
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
    """Measure, write the page, print the targets, or run one case."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measured = commands.add_parser("measure")
    measured.add_argument("--quick", action="store_true", help="up to 1 million rows, in one minute")
    measured.add_argument("--only", choices=CASES, help="measure cases of one kind again")
    commands.add_parser("write")
    commands.add_parser("targets")
    one = commands.add_parser("case")
    one.add_argument("kind", choices=CASES)
    one.add_argument("rows", type=int)
    one.add_argument("groups", type=int)
    one.add_argument("seconds", type=float)
    options = parser.parse_args()
    if options.command == "case":
        warnings.simplefilter("ignore")
        print(json.dumps(CASES[options.kind](options.rows, options.groups, options.seconds)))
    elif options.command == "measure":
        measure(options.quick, options.only)
    elif options.command == "targets":
        print_targets(stored())
    else:
        write()


if __name__ == "__main__":
    main()
