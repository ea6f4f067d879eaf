"""The README is short, and every number in it is measured.

`tests/test_pages.py` runs its code. `make test-readme` follows it in a fresh clone and an empty environment.
"""

import json
import os
import re
import shutil
import subprocess
import time

import numpy as np
import pytest

import fairramp
from fairramp.core.words import percent, points
from pages import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
#: The README has fewer words, as `wc -w` counts them.
MOST_WORDS = 900


def test_readme_is_short():
    assert len(README.split()) < MOST_WORDS


def test_setup_and_code_come_early():
    assert len(README[: README.index("make demo")].split()) <= 120
    assert len(README[: README.index("```python")].split()) <= 200


def test_linked_files_exist():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def row(name):
    """Fairlearn's cell and ours in the comparison."""
    ((theirs, ours),) = re.findall(rf"^\| {re.escape(name)} \| (.+?) \| (.+?) \|$", README, re.MULTILINE)
    return theirs, ours


def test_comparison_with_fairlearn_is_measured():
    peer = pytest.importorskip("fairlearn.postprocessing", reason="Fairlearn is not installed")
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Scores(ClassifierMixin, BaseEstimator):
        """A trained classifier whose only feature is its score."""

        classes_ = np.array([0, 1])

        def fit(self, rows, y):
            return self

        def __sklearn_is_fitted__(self):
            return True

        def predict_proba(self, rows):
            return np.column_stack([1 - rows[:, 0], rows[:, 0]])

    data = fairramp.datasets.load_adult_scores()
    rows = data.score[:, None]
    optimizer = peer.ThresholdOptimizer(
        estimator=Scores(),
        constraints="demographic_parity",
        prefit=True,
        predict_method="predict_proba",
        tol=0.02,
    )
    optimizer.fit(rows, data.label, sensitive_features=data.sex)
    probability = optimizer._pmf_predict(rows, sensitive_features=data.sex)[:, 1]
    rules = [
        fairramp.fit_rule(
            data.score, data.sex, data.label, max_gap=0.02, target_rate="accuracy", ramp_width=width
        )
        for width in (0.01, 0.0)
    ]
    ours, hard = (rule.probabilities(data.score, data.sex) for rule in rules)

    def gap(h):
        rates = [h[data.sex == sex].mean() for sex in ("Female", "Male")]
        return points(abs(rates[0] - rates[1]))

    def accuracy(h):
        return percent(1 - abs(h - data.label).mean())

    def random(h):
        return ((h >= 0.01) & (h <= 0.99)).sum()

    assert row("gap on the fit rows") == (gap(probability), gap(ours))
    assert row("accuracy on the fit rows") == (accuracy(probability), accuracy(ours))
    assert row("people selected with a probability of 1% to 99%") == (
        f"{random(probability)}",
        f"{random(ours)}, or {random(hard)} with `ramp_width=0`",
    )
    unseen = optimizer._pmf_predict(np.array([[0.99]]), sensitive_features=np.array(["other"]))
    assert unseen[0, 1] == 0  # silently not selected


def test_costs_of_the_example_are_measured():
    data = fairramp.datasets.load_adult_scores()
    after = fairramp.fit_rule(data.score, data.sex, max_gap=0.02).probabilities(data.score, data.sex)
    before = (data.score >= 0.5).astype(float)

    def accuracy(h):
        return percent(1 - abs(h - data.label).mean())

    def behind(h):
        men, women = (h[(data.sex == sex) & (data.label == 1)].mean() for sex in ("Male", "Female"))
        return men - women

    text = " ".join(README.split())
    assert f"Accuracy falls from {accuracy(before)} to {accuracy(after)}" in text
    assert f"selections from {before.sum():,.0f} to {after.sum():,.0f}" in text
    assert f"{points(behind(before))} below men's to {100 * -behind(after):.1f} above" in text


def test_speed_is_that_of_the_benchmarks():
    stored = json.loads((ROOT / "benchmarks/results/core.json").read_text(encoding="utf-8"))
    (case,) = [c for c in stored["cases"] if c["case"] == "peers" and c["rows"] == 1_000_000]
    theirs, ours = row("time to fit 1,000,000 simulated rows")
    assert theirs == f"{case['times']['fairlearn']['wall']:.1f} s"
    times = {name: spent["wall"] for name, spent in case["times"].items()}
    assert ours == f"{times['fit_labels']:.3f} s"


@pytest.mark.clone
def test_a_fresh_clone_follows_the_readme(tmp_path):
    """The first command in an empty environment, its size, and then the README's code with what it made."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("needs git and a repository")
    clone = tmp_path / "fairramp"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", clone], check=True)
    bare = {"PATH": os.defpath + os.pathsep + os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    bare |= {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "http", "HTTP"))}
    start = time.monotonic()
    done = subprocess.run(["make", "demo"], cwd=clone, env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "selection rates from 15.3% to 17.3%" in done.stdout
    size = sum(path.lstat().st_size for path in (clone / ".venv").rglob("*") if path.is_file()) / 1e9
    minutes, gigabytes = re.findall(r"make demo .*?: (\d+) minutes?, ([\d.]+) GB", README)[0]
    print(f"\nmake demo: {(time.monotonic() - start) / 60:.1f} minutes ({minutes} in the README), {size:.2f} GB")
    assert size == pytest.approx(float(gigabytes), rel=0.3)
    check = "import sys; sys.path.insert(0, 'tests'); import pages; pages.rewrite(pages.ROOT / 'README.md')"
    subprocess.run([clone / ".venv/bin/python", "-c", check], cwd=clone, env=bare, check=True)
    status = subprocess.run(["git", "diff", "--stat", "README.md"], cwd=clone, capture_output=True, text=True)
    assert status.stdout == ""
