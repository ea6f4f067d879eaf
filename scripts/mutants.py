"""Check that the tests bite: change one operator of the library at a time, and see whether a test fails.

    python -m scripts.mutants cover     run `make tests` once, and note which test runs which line
    python -m scripts.mutants run       change 200 operators, one at a time; run the tests that cover the line
    python -m scripts.mutants quick     run the tests that killed 40 of them again

A *mutant* is the library with one comparison, arithmetic or boolean operator replaced: `<` by `<=`, `+` by `-`,
`and` by `or`. It is *killed* if one of the tests of `make test` that cover its line fails, and survives
otherwise. `tests/mutants.json` lists all mutants of the sample, each with the test that killed it or with the
reason why no test can. The check fails if fewer than 90% are killed, or if a survivor has no reason.

Tests run in copies of the repository, so the working tree does not change. Operators in messages and type
annotations, which change no result, are not part of the sample.

pytest loads this module as a plugin (`-p scripts.mutants`), which notes durations or selects tests.
"""

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).parents[1]
KNOWN = ROOT / "tests" / "mutants.json"
#: Which test covers which line, and how long it takes; made by `cover`.
CACHE = ROOT / ".cache" / "mutants"
COVERAGE, DURATIONS = CACHE / "coverage", CACHE / "durations.json"

SAMPLE, SEED, QUICK = 200, 29, 40
ENOUGH = 0.9
#: Modules of the sample, by what they do.
PARTS = {
    "solver": ("fit/criteria/*", "fit/affine.py", "fit/budget.py", "fit/dual.py", "fit/roc.py", "fit/squares.py"),
    "ramps": ("core/ramps.py", "core/curve.py", "core/scales.py"),
    "draws": ("rule/draws.py", "rule/mixing.py"),
    "certificates": (
        "core/beta.py",
        "core/intervals.py",
        "core/pairs.py",
        "measure/certificate.py",
        "rule/limits.py",
    ),
    "audits": (
        "measure/audit.py",
        "measure/audited.py",
        "measure/gate.py",
        "measure/means.py",
        "measure/verdict.py",
    ),
    "SQL": ("deploy/dialects.py", "deploy/formula.py", "deploy/plan.py", "deploy/sql.py"),
}
#: The first tests of a mutant: the fastest of each file that covers its line, up to this many seconds and files.
FIRST_SECONDS, FIRST_FILES = 20.0, 6
#: Seconds after which a mutant hangs, in addition to ten times what its tests need.
PATIENCE = 60.0

Changed = dict[type[ast.AST], tuple[type[ast.AST], ...]]
COMPARISONS: Changed = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: Changed = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
}
BOOLEAN: Changed = {
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}


@dataclass(frozen=True)
class Mutant:
    """One changed operator.

    Attributes
    ----------
    part, file, function : str
        Where it is; the function is named with its class.
    before, after : str
        The expression.
    count : int
        How many equal expressions of the function come before it.
    """

    part: str
    file: str
    function: str
    before: str
    after: str
    count: int

    def __str__(self) -> str:
        return f"{self.file}, {self.function}: {self.before}  →  {self.after}"


@dataclass(frozen=True)
class Site:
    """The source of a mutant: text, the lines that it stands on, and the first line of its statement."""

    mutant: Mutant
    text: str
    lines: tuple[int, ...]


# Mutants --------------------------------------------------------------------------------------------------


def modules() -> Iterator[tuple[str, Path]]:
    """Yield each part and module of the sample."""
    for part, patterns in PARTS.items():
        for pattern in patterns:
            yield from (
                (part, path) for path in sorted((ROOT / "src/fairramp").glob(pattern)) if path.suffix == ".py"
            )


def sites() -> list[Site]:
    """Return one mutant for each operator; which one, if there are several, is chosen by the seed."""
    found = []
    for part, path in modules():
        source = path.read_text(encoding="utf-8")
        finder = _Finder(part, path.relative_to(ROOT).as_posix(), source)
        finder.visit(ast.parse(source))
        found += finder.found
    return found


def sample(size: int = SAMPLE) -> list[Site]:
    """Return random sites in the order of the source; a change of the source replaces few of them."""
    everything = sites()
    chosen = set(sorted((site.mutant for site in everything), key=_rank)[:size])
    return [site for site in everything if site.mutant in chosen]


def _rank(mutant: Mutant) -> bytes:
    """A random number that depends on the seed and the mutant only."""
    return sha256(f"{SEED} {mutant.file} {mutant.function} {mutant.before} {mutant.count}".encode()).digest()


class _Finder(ast.NodeVisitor):
    """Collect the sites of a module."""

    def __init__(self, part: str, file: str, source: str) -> None:
        self.part, self.file, self.source = part, file, source.encode()
        sizes = [len(line) for line in self.source.split(b"\n")]
        self.offsets = [0, *accumulate(size + 1 for size in sizes)]  # of lines, in bytes as in `ast`
        self.found: list[Site] = []
        self.function: list[str] = []
        self.statement = 1
        self.seen: dict[tuple[str, str, str], int] = {}

    def visit(self, node: ast.AST) -> None:
        """Visit what is executed: no annotations, and no messages."""
        if isinstance(node, ast.JoinedStr):
            return
        if isinstance(node, ast.stmt):
            self.statement = node.lineno
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.function.append(node.name)
        for change in _changes(node):
            self._add(node, change)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.function.pop()

    def _add(self, node: Any, change: ast.expr) -> None:
        before, after = ast.unparse(node), ast.unparse(change)
        place = ".".join(self.function) or "module"
        key = place, before, after
        count = self.seen[key] = self.seen.get(key, -1) + 1
        start = self.offsets[node.lineno - 1] + node.col_offset
        end = self.offsets[node.end_lineno - 1] + node.end_col_offset
        text = self.source[:start] + f"({after})".encode() + self.source[end:]
        spanned = (self.statement, *range(node.lineno, node.end_lineno + 1))
        mutant = Mutant(self.part, self.file, place, before, after, count)
        self.found.append(Site(mutant, text.decode(), spanned))


def _changes(node: ast.AST) -> list[ast.expr]:
    """Return one change of each operator of a node."""
    if isinstance(node, ast.Compare):
        return [
            ast.Compare(
                node.left, [*node.ops[:i], _other(COMPARISONS, op, node), *node.ops[i + 1 :]], node.comparators
            )
            for i, op in enumerate(node.ops)
        ]
    if isinstance(node, ast.BinOp) and not (_is_text(node.left) or _is_text(node.right)):
        other = _other(ARITHMETIC | BOOLEAN, node.op, node)
        return [] if other is None else [ast.BinOp(node.left, other, node.right)]
    if isinstance(node, ast.BoolOp):
        return [ast.BoolOp(_other(BOOLEAN, node.op, node), node.values)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        return [node.operand]
    return []


def _is_text(node: ast.AST) -> bool:
    texts = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    return texts or (isinstance(node, ast.BinOp) and (_is_text(node.left) or _is_text(node.right)))


def _other(table: Changed, operator: ast.AST, node: ast.AST) -> Any:
    choices = table.get(type(operator))
    return None if choices is None else random.Random(f"{SEED} {ast.unparse(node)}").choice(choices)()


# Which tests cover a line ------------------------------------------------------------------------------------


def cover() -> int:
    """Run the tests once, and store which test runs which line, and how long it takes."""
    CACHE.mkdir(parents=True, exist_ok=True)
    COVERAGE.unlink(missing_ok=True)
    settings = CACHE / "coveragerc"
    included = "\n    ".join(str(path) for _, path in modules())
    settings.write_text(f"[run]\ndata_file = {COVERAGE}\ninclude =\n    {included}\n", encoding="utf-8")
    options = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="]
    pytest = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "scripts.mutants",
        "-q",
        "--part=quick",
        "--numprocesses=auto",
    ]
    command = [*pytest, *options]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {"MUTANTS_DURATIONS": str(DURATIONS), "CI": "true"}
    ).returncode


@cache
def durations() -> dict[str, float]:
    """Return the seconds of each test."""
    found: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8"))
    return found


@cache
def contexts(file: str) -> dict[int, list[str]]:
    """Return the tests that run each line of a file."""
    from coverage import CoverageData

    data = CoverageData(str(COVERAGE))
    data.read()
    return data.contexts_by_lineno(str(ROOT / file))


def covering(site: Site) -> list[str]:
    """Return the tests that run a mutant's line, the fastest first; if the import runs it, all of the module."""
    by_line = contexts(site.mutant.file)

    def tests(lines: Any) -> set[str]:
        names = {name.partition("|")[0] for line in lines for name in by_line.get(line, ())}
        return {name for name in names if name in durations()}

    found = tests(site.lines[1:]) or tests(site.lines[:1]) or (tests(by_line) if _imported(site) else set())
    return sorted(found, key=lambda name: (durations()[name], name))


def _imported(site: Site) -> bool:
    return any("" in contexts(site.mutant.file).get(line, ()) for line in site.lines)


def first_of(tests: list[str]) -> list[str]:
    """Return fast tests from the files that have most of them."""
    by_file: dict[str, list[str]] = {}
    for name in tests:
        by_file.setdefault(name.partition("::")[0], []).append(name)
    files = sorted(by_file, key=lambda file: -len(by_file[file]))[:FIRST_FILES]
    chosen, spent = [], 0.0
    for name in tests:
        if name.partition("::")[0] in files and spent < FIRST_SECONDS:
            chosen.append(name)
            spent += durations()[name]
    return chosen


# Running ------------------------------------------------------------------------------------------------------


class Workspace:
    """A copy of the repository in which one operator at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in listed.decode().split("\0"):
            if name and (ROOT / name).is_file():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)

    def fails(self, site: Site, tests: list[str]) -> str | None:
        """Return the first of some tests that fails with a mutant, or None."""
        path = self.folder / site.mutant.file
        original = path.read_bytes()
        path.write_text(site.text, encoding="utf-8")
        try:
            return self._run(tests)
        finally:
            path.write_bytes(original)

    def _run(self, tests: list[str]) -> str | None:
        wanted, failed = self.folder / "wanted.txt", self.folder / "failed.txt"
        wanted.write_text("\n".join(tests), encoding="utf-8")
        failed.unlink(missing_ok=True)
        files = list(dict.fromkeys(name.partition("::")[0] for name in tests))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "scripts.mutants",
            "-p",
            "no:cacheprovider",
            "-x",
            "-q",
            *files,
        ]
        places = {"PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}", "PYTHONDONTWRITEBYTECODE": "1"}
        places |= {"MUTANTS_WANTED": str(wanted), "MUTANTS_FAILED": str(failed), "CI": "true"}  # the same cases
        known = sum(durations().get(name, 1.0) for name in tests) if DURATIONS.exists() else 5.0 * len(tests)
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | places,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                code = process.wait(PATIENCE + 10 * known)
            except subprocess.TimeoutExpired:
                return "a test that did not end"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if failed.exists():
            return failed.read_text(encoding="utf-8")
        return None if code == 0 else "a test file that could not be imported"


def run(jobs: int, only: str | None, left: bool) -> int:
    """Run the tests of all mutants, or of those left over by the last run, and store the result."""
    known = {one.mutant: one for one in stored()}
    done = {mutant for mutant, one in known.items() if one.killed_by} if left else set()
    chosen = sample()
    todo = [site for site in chosen if site.mutant not in done and (only is None or only in str(site.mutant))]
    workspaces: SimpleQueue[Workspace] = SimpleQueue()
    results = dict(known)
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        for number in range(jobs):
            workspaces.put(Workspace(Path(scratch) / str(number)))

        def judge(site: Site, tests: list[str]) -> Judged:
            workspace = workspaces.get()
            try:
                found = workspace.fails(site, tests) if tests else None
            finally:
                workspaces.put(workspace)
            reason = known[site.mutant].reason if site.mutant in known and not found else None
            return Judged(site.mutant, len(covering(site)), found, reason)

        def tests_of(site: Site) -> tuple[list[str], list[str]]:
            tests = covering(site)
            killer = known[site.mutant].killed_by if site.mutant in known else None
            first = list(dict.fromkeys([*([killer] if killer in tests else []), *first_of(tests)]))
            return first, [name for name in tests if name not in set(first)]

        with ThreadPoolExecutor(jobs) as pool:
            for turn in (0, 1):  # first the fast tests of every mutant, then all others of those that survive
                judged = [pool.submit(judge, site, tests_of(site)[turn]) for site in todo]
                for number, one in enumerate((future.result() for future in judged), start=1):
                    results[one.mutant] = one
                    print(
                        f"{number:>3}/{len(judged)} {'killed' if one.killed_by else 'SURVIVED'}: {one}",
                        flush=True,
                    )
                    _store([results[site.mutant] for site in chosen if site.mutant in results])
                todo = [site for site in todo if not results[site.mutant].killed_by]
    return report([results[site.mutant] for site in chosen if site.mutant in results])


def quick(jobs: int) -> int:
    """Run only the tests that killed some of the mutants; fail if one survives."""
    by_mutant = {site.mutant: site for site in sites()}
    killed = [one for one in stored() if one.killed_by and "::" in one.killed_by and one.mutant in by_mutant]
    chosen = random.Random(SEED).sample(killed, min(QUICK, len(killed)))
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        workspaces = [Workspace(Path(scratch) / str(number)) for number in range(jobs)]

        def part(number: int) -> list[Judged]:
            return [
                one
                for one in chosen[number::jobs]
                if not workspaces[number].fails(by_mutant[one.mutant], [str(one.killed_by)])
            ]

        with ThreadPoolExecutor(jobs) as pool:
            survivors = [one for found in pool.map(part, range(jobs)) for one in found]
    for one in survivors:
        print(f"survived: {one.mutant}; {one.killed_by} killed it before")
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants killed")
    return int(bool(survivors) or not chosen)


# Results ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """A mutant, the number of tests that cover it, and the test that killed it, or why none can."""

    mutant: Mutant
    tests: int
    killed_by: str | None
    reason: str | None

    def __str__(self) -> str:
        return f"{self.mutant}  [{self.killed_by or self.reason or 'no reason given'}; {self.tests:,} tests]"


def stored() -> list[Judged]:
    """Return the stored results."""
    if not KNOWN.exists():
        return []
    return [
        Judged(Mutant(**one["mutant"]), one["tests"], one["killed_by"], one["reason"])
        for one in json.loads(KNOWN.read_text(encoding="utf-8"))
    ]


def _store(results: list[Judged]) -> None:
    text = json.dumps([asdict(one) for one in results], indent=1, ensure_ascii=False)
    KNOWN.write_text(text + "\n", encoding="utf-8")


def report(results: list[Judged]) -> int:
    """Print how many mutants of each part are killed, and the survivors; return 1 if they are too many."""
    for part in PARTS:
        of = [one for one in results if one.mutant.part == part]
        print(f"{part:>13}: {sum(bool(one.killed_by) for one in of)} of {len(of)} killed")
    survivors = [one for one in results if not one.killed_by]
    killed = len(results) - len(survivors)
    print(f"{killed} of {len(results)} mutants killed ({killed / max(len(results), 1):.1%})")
    for one in survivors:
        print(f"survivor: {one}")
    unexplained = sum(one.reason is None for one in survivors)
    if unexplained:
        print(f"{unexplained} survivors have no reason in {KNOWN.relative_to(ROOT)}")
    return int(bool(unexplained) or killed < ENOUGH * len(results))


# The plugin -----------------------------------------------------------------------------------------------------

_seconds: dict[str, float] = {}


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep the wanted tests, in the wanted order."""
    if path := os.environ.get("MUTANTS_WANTED"):
        places = {name: place for place, name in enumerate(Path(path).read_text(encoding="utf-8").split("\n"))}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in places])
        items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])


def pytest_runtest_logreport(report: Any) -> None:
    """Note durations, and the first failure."""
    _seconds[report.nodeid] = round(_seconds.get(report.nodeid, 0.0) + report.duration, 3)
    path = os.environ.get("MUTANTS_FAILED")
    if path and report.failed and not Path(path).exists():
        Path(path).write_text(report.nodeid, encoding="utf-8")


def pytest_sessionfinish() -> None:
    """Store durations."""
    path = os.environ.get("MUTANTS_DURATIONS")
    if path and "PYTEST_XDIST_WORKER" not in os.environ:
        Path(path).write_text(json.dumps(_seconds, indent=0), encoding="utf-8")


# Command line ---------------------------------------------------------------------------------------------


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m scripts.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("list", "cover", "run", "report", "quick"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of parallel processes")
    parser.add_argument("--only", help="run only mutants whose description contains this text")
    parser.add_argument("--left", action="store_true", help="run only mutants that no stored test has killed")
    options = parser.parse_args()
    if options.command == "list":
        for site in sample():
            print(site.mutant)
        return 0
    if options.command == "cover":
        return cover()
    if options.command == "report":
        return report(stored())
    if options.command == "quick":
        return quick(options.jobs)
    return run(options.jobs, options.only, options.left)


if __name__ == "__main__":
    sys.exit(main())
