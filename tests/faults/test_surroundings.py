"""Locale, time zone, clock, hash seed and umask change no file and no number."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shell import KEY, Shell, rows

pytestmark = pytest.mark.faults

#: Prints a hash of everything the library writes and prints.
SCRIPT = """
import hashlib, locale, sys, time
locale.setlocale(locale.LC_ALL, "")
if "--clock" in sys.argv:
    jumps = iter(range(10**9))
    time.time = lambda: float(sys.argv[-1]) * (-1) ** next(jumps)  # backward, too
import numpy as np
import fairramp
from fairramp.data.bins import to_text

rng = np.random.default_rng(0)
scores = rng.beta(2, 3, 3000).round(3)
groups = rng.choice(["Zürich", "zebra", "Ärger", "ærlig", "I", "ı", "1,5"], 3000)
labels = rng.random(3000) < scores
key = "0123456789abcdef" * 4
rule = fairramp.fit_rule(scores, groups, labels, max_gap=0.03, target_rate="accuracy")
audit = fairramp.audit(scores, groups, labels, rule=rule)
rule.save(sys.argv[1])
things = {
    "file": open(sys.argv[1], "rb").read().decode("utf-8"),
    "read again": fairramp.Rule.load(sys.argv[1]).to_json(),
    "summary": to_text(fairramp.summarize(scores, groups)),
    "printed": repr(rule),
    "certificate": repr(rule.certificate()),
    "audit": repr(audit),
    "html": rule.table()._repr_html_(),
    "decisions": rule.decide(scores, groups, ids=[f"ä{i}" for i in range(3000)], key=key).tobytes().hex(),
    "draws": fairramp.draws(range(1000), key).tobytes().hex(),
    "frontier": repr(fairramp.frontier(scores, groups, labels)),
    "report": rule.report(scores, groups, labels).to_json(),
}
for name, text in things.items():
    print(name, hashlib.sha256(text.encode()).hexdigest())
print("point", locale.localeconv()["decimal_point"], file=sys.stderr)
"""


def said(tmp_path, *arguments, **variables):
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py", tmp_path / "rule.json", *map(str, arguments)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 11
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    return said(tmp_path_factory.mktemp("usual"), LC_ALL="C.UTF-8", TZ="UTC")[0]


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """Environment of a system that writes 0.5 as 0,5."""
    if not Path("/usr/share/i18n/locales/de_DE").exists() or shutil.which("localedef") is None:
        pytest.skip("locale: neither localedef nor de_DE is installed (Debian: locales)")
    folder = tmp_path_factory.mktemp("locales")
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    return {"LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}


def test_decimal_comma_locale_changes_nothing(usual, german, tmp_path):
    out, err = said(tmp_path, **german)
    assert "point ," in err  # otherwise the locale was not set
    assert out == usual


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1"},
        {"TZ": "America/St_Johns", "PYTHONHASHSEED": "4294967295", "OMP_NUM_THREADS": "1"},
    ],
    ids=str,
)
def test_environment_changes_nothing(usual, tmp_path, variables):
    assert said(tmp_path, **variables)[0] == usual


@pytest.mark.parametrize("seconds", [0, 4e9])
def test_jumping_clock_changes_nothing(usual, tmp_path, seconds):
    assert said(tmp_path, "--clock", seconds)[0] == usual


def test_command_line_writes_decimal_points_in_any_locale(german, tmp_path):
    written = []
    for name, variables in (("c", {"LC_ALL": "C.UTF-8"}), ("de", german)):
        shell = Shell(tmp_path / name)
        shell.folder.mkdir()
        shell.write("scores.csv", rows(groups=("Ä", "b")))
        shell.write("key.txt", KEY + "\n")
        (shell.folder / "key.txt").chmod(0o600)
        out = [
            shell("fit", "scores.csv", "--score", "p", "--group", "g", "-o", "r.json", env=variables).stdout,
            shell(
                "apply",
                "r.json",
                "scores.csv",
                "-o",
                "o.csv",
                "--id",
                "id",
                "--key-file",
                "key.txt",
                env=variables,
            ).stdout,
            shell("audit", "scores.csv", "--rule", "r.json", env=variables).stdout,
        ]
        written.append((out, shell.read("r.json"), shell.read("o.csv")))
    assert written[0] == written[1]
