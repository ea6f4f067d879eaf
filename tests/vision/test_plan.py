"""The plan, the store and the aggregation, which need no torch."""

import itertools
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reproduction.vision import aggregate, backbones, claims, page, plan
from reproduction.vision.__main__ import planned, quick_runs, quick_settings
from reproduction.vision.backbones import FIGURE_5, FROZEN, ILSVRC, LITE, NEVER, PAPER, REGISTRY, TABLE
from reproduction.vision.data import SPLITS
from reproduction.vision.head import Schedule, sigmoid, train_head
from reproduction.vision.runner import FULL, METHODS, PEERS, methods_of
from reproduction.vision.store import Store
from sklearn.linear_model import LogisticRegression

from fairramp.errors import FairrampError

RUN = plan.Run("head", "EfficientNet-Lite0", "celeba6000", "Young", 0.5, 3)


# The plan


def test_paper_has_768_heads():
    runs = [run for run in plan.paper() if run.backbone in {b.name for b in PAPER}]
    assert len(runs) == len(set(runs)) == 768
    assert {run.fraction for run in runs} == {0.1, 0.2, 0.5, 1.0}
    assert len({(run.data, run.task) for run in runs}) == 12
    assert len({run.backbone for run in runs}) == 16


def test_plan_prints_without_torch():
    code = (
        "import sys; sys.argv = ['x', 'plan', '--plan', 'paper']; from reproduction.vision.__main__ import main; "
        "main(); assert not {'torch', 'keras', 'PIL', 'timm'} & set(sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len([line for line in lines if line.startswith(("head", "whole"))]) == len(plan.paper())
    assert max(len(line) for line in lines) <= 80
    assert "768  heads" in done.stdout


def test_every_run_names_a_known_network_and_task():
    for run in planned(["paper", "subset"], 2):
        assert run.network is REGISTRY[run.backbone]
        assert run.task in plan.TASKS[run.data]
    assert len(plan.subset(10)) == (len(FROZEN) * 10 + plan.WHOLE_SEEDS) * 7 * 4 + plan.WHOLE_SEEDS


def test_registry_matches_the_paper():
    assert [b.name for b in PAPER[:4]] == ["S-R50x1/1", "M-R50x1/1", "L-R50x1/1", "S-R50x3/1"]
    assert sum(b.pretraining == ILSVRC for b in PAPER) == 8
    assert {b.name for b in PAPER if b.weights == NEVER} == {
        f"L-R{kind}/1" for kind in ("50x1", "50x3", "101x1", "101x3")
    }
    assert [b.name for b in TABLE] == ["R50/S", "R50/I", "MN/S", "MN/I"]
    assert all(b.fraction < 1 and not b.published for b in FIGURE_5)
    assert len(REGISTRY) == 16 + 3 + 4 + 6 + 9 + 1  # MobileNetV2 is one of the 16


def test_unpublished_weights_raise_and_say_so(tmp_path):
    with pytest.raises(
        backbones.UnavailableError, match=r"never published, and there is no file BiT-L-R50x1\.npz"
    ):
        backbones.load(REGISTRY["L-R50x1/1"], tmp_path)
    with pytest.raises(
        backbones.UnavailableError, match=r"no file BiT-S-R50x1.npz .* get it from github.com/google"
    ):
        backbones.load(REGISTRY["S-R50x1/1"], tmp_path, download=True)
    with pytest.raises(backbones.UnavailableError, match="pass --download"):
        backbones.load(REGISTRY["MobileNetV2"])


# The store


def result(accuracy=0.8, gap=0.01, **others):
    counts = {"Female": 60, "Male": 40}
    numbers = {"gap": gap, "accuracy": accuracy, "rates": {}, "rate_gap": gap}
    methods = {name: dict(numbers) for name in (*METHODS, *PEERS)}
    methods["rto"]["target_rate"] = 0.4
    methods["original"]["test_bias"] = 0.3
    facts = {"images": 600, "missing": 0, "matched": 500, "first_disagreement": 480, "matched_behind": 20}
    rows = {name: counts for name in ("train", *SPLITS)}
    return {"rows": rows, "near_the_ends": 0.1, "methods": methods, "facts": facts, **others}


def filled(path, runs, results):
    store = Store(path)
    for run, one in zip(runs, results, strict=True):
        store.append(FULL.key(run), run, one)
    return store


RUNS = [
    plan.Run(RUN.protocol, RUN.backbone, RUN.data, task, 1.0, seed)
    for seed in (0, 1)
    for task in plan.TASKS["celeba"]
]


def test_runs_survive_storage(tmp_path):
    store = filled(tmp_path / "results.jsonl", RUNS, [result(i / 20) for i in range(14)])
    entries = store.entries()
    assert [entry.run for entry in entries] == RUNS
    assert [entry.result for entry in entries] == [result(i / 20) for i in range(14)]
    assert store.keys() == {FULL.key(run) for run in RUNS}


def test_truncated_last_line_is_computed_again(tmp_path):
    path = tmp_path / "results.jsonl"
    store = filled(path, RUNS[:3], [result()] * 3)
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(ends[1] + 1, ends[2]):
        path.write_bytes(whole[:length])
        assert [entry.run for entry in store.entries()] == RUNS[:2]
    store.append(FULL.key(RUNS[2]), RUNS[2], result())
    assert path.read_bytes() == whole


def test_damaged_line_raises_and_is_numbered(tmp_path):
    path = tmp_path / "results.jsonl"
    store = filled(path, RUNS[:3], [result()] * 3)
    lines = path.read_text().splitlines(keepends=True)
    for broken in (
        lines[1].replace("0.8", "0.9", 1),
        lines[1].replace("Smiling", "Young", 1).replace("Young", "Bald", 1),
        "\n",
        "{}\n",
    ):
        path.write_text(lines[0] + broken + lines[2])
        with pytest.raises(FairrampError, match=r"Line 2 of .*results.jsonl` is damaged"):
            store.entries()


def test_runs_with_other_settings_do_not_count(tmp_path):
    store = filled(tmp_path / "results.jsonl", RUNS, [result()] * 14)
    assert len(aggregate.Table(store, FULL, ("celeba6000",)).results) == 14
    assert not aggregate.Table(store, replace(FULL, views=4), ("celeba6000",))
    assert not aggregate.Table(store, FULL, ("coco",))


def test_key_depends_on_what_the_protocol_uses():
    whole = plan.Run("whole", "MN/S", "celeba", "Attractive", 1.0, 0)
    small = plan.Run("whole", "Small/S", "celeba6000", "Attractive", 1.0, 0)
    other = replace(quick_settings(), views=4)
    assert FULL.key(RUN) != other.key(RUN)
    assert FULL.key(small) != other.key(small)
    assert FULL.key(whole) == other.key(whole)


# Aggregation


def test_soft_ranks_do_not_depend_on_the_scale_of_a_task():
    rng = np.random.default_rng(0)
    errors = {name: dict(zip("xyz", rng.random(3), strict=True)) for name in "abcd"}
    stretched = {name: {"x": 10 * of["x"] + 3, "y": of["y"], "z": 0.5 * of["z"]} for name, of in errors.items()}
    found, again = aggregate.soft_ranks(errors), aggregate.soft_ranks(stretched)
    for name in errors:
        assert found[name] == pytest.approx(again[name])
        assert 0 <= found[name] <= 1


def test_best_network_has_rank_0_and_1():
    errors = {"good": {"x": 0.1, "y": 0.2}, "bad": {"x": 0.3, "y": 0.4}, "worse": {"x": 0.5, "y": 0.6}}
    assert aggregate.soft_ranks(errors) == {"good": 0.0, "bad": 0.5, "worse": 1.0}
    assert aggregate.average_ranks(errors) == {"good": 1.0, "bad": 2.0, "worse": 3.0}


def test_only_shared_tasks_count_and_ties_are_neutral():
    errors = {"a": {"x": 0.1, "y": 0.9, "only": 0.0}, "b": {"x": 0.1, "y": 0.1}}
    assert aggregate.soft_ranks(errors) == {"a": 0.5, "b": 0.0}
    assert aggregate.average_ranks(errors) == {"a": 1.75, "b": 1.25}


def test_expected_gap_matches_simulated_hard_decisions():
    # Independent check: uniform scores, with a threshold fitted to a rate on each group's fit rows.
    rng = np.random.default_rng(1)
    rate, fit, test = 0.3, {"A": 150, "B": 90}, {"A": 120, "B": 100}
    gaps = []
    for _ in range(4000):
        rates = []
        for name in fit:
            threshold = np.quantile(rng.random(fit[name]), 1 - rate)
            rates.append((rng.random(test[name]) > threshold).mean())
        gaps.append(abs(rates[0] - rates[1]))
    assert np.mean(gaps) == pytest.approx(aggregate.expected_gap(rate, fit, test), rel=0.04)


def test_interval_is_wider_than_for_independent_seeds():
    values = [0.1, 0.3, 0.2, 0.4]
    found = aggregate.interval(values, 1 / 6)
    deviation = np.std(values, ddof=1)
    assert found.value == pytest.approx(0.25)
    assert found.high - found.value == pytest.approx(3.182446 * deviation * math.sqrt(1 / 4 + 1 / 5))
    assert math.isnan(aggregate.interval([0.5], 1 / 6).low)


def test_differences_are_paired_by_task_fraction_and_seed(tmp_path):
    names = ("EfficientNet-Lite0", "EfficientNet-Lite0/random")
    runs, results = [], []
    for name, task, seed in itertools.product(names, ("Young", "Smiling"), (0, 1)):
        runs.append(plan.Run("head", name, "celeba6000", task, 1.0, seed))
        hard = 0.3 if task == "Smiling" else 0.0
        results.append(result(0.9 - hard - (0.05 if "random" in name else 0.0) - 0.01 * seed))
    # A run without a partner must not count.
    runs.append(plan.Run("head", names[1], "celeba6000", "Attractive", 1.0, 0))
    results.append(result(0.1))
    table = aggregate.Table(filled(tmp_path / "r.jsonl", runs, results), FULL, ("celeba6000",))
    found = claims.pretraining(table, claims.error_after)
    assert found.value == pytest.approx(0.05)
    assert claims.verdict(found) == claims.HOLDS


@pytest.mark.parametrize(
    ("ends", "verdict"), [((0.1, 0.3), "holds"), ((-0.3, -0.1), "does not hold"), ((-0.1, 0.3), "cannot be told")]
)
def test_claim_holds_if_its_interval_is_above_0(ends, verdict):
    assert claims.verdict(aggregate.Interval(sum(ends) / 2, *ends, 5)) == verdict


def test_size_effect_is_the_slope_per_doubling(tmp_path):
    runs = [
        plan.Run("head", name, "celeba6000", "Young", 1.0, seed) for name in claims.PRETRAINED for seed in (0, 1)
    ]
    results = [
        result(0.6 + 0.03 * math.log2(REGISTRY[run.backbone].parameters) - 0.01 * run.seed) for run in runs
    ]
    table = aggregate.Table(filled(tmp_path / "r.jsonl", runs, results), FULL, ("celeba6000",))
    found = claims.size_effect(table)
    assert found.value == pytest.approx(-0.03)
    assert claims.verdict(claims.minus(found)) == claims.HOLDS
    # Without one of the networks there is no slope, rather than another one.
    some = [(run, one) for run, one in zip(runs, results, strict=True) if run.backbone != "ResNet50"]
    fewer = aggregate.Table(filled(tmp_path / "f.jsonl", *zip(*some, strict=True)), FULL, ("celeba6000",))
    assert claims.size_effect(fewer) is None


def test_other_libraries_run_on_heads_of_packaged_networks_only():
    by_network = {run.backbone: methods_of(run) for run in plan.subset(1)}
    assert by_network["ResNet50"] == (*METHODS, *PEERS)
    for other in ("ResNet50/random", "EfficientNet-Lite0", "Small/S", "MN/I"):
        assert by_network[other] == METHODS


def test_gap_larger_than_chance_fails(tmp_path):
    chance = aggregate.expected_gap(0.4, {"Female": 60, "Male": 40}, {"Female": 60, "Male": 40})
    for factor, verdict in ((1.2, claims.HOLDS), (1.3, claims.FAILS)):
        results = [result(gap=factor * chance)] * 14
        table = aggregate.Table(filled(tmp_path / f"{factor}.jsonl", RUNS, results), FULL, ("celeba6000",))
        assert claims.gap_claim(table, "gap")[0].verdict == verdict


def test_failed_method_is_left_out_of_its_means(tmp_path):
    results = [result(0.8) for _ in RUNS]
    results[0]["methods"]["shift"] = {"failed": "no positive label"}
    results[1]["methods"]["shift"]["accuracy"] = 0.2
    table = aggregate.Table(filled(tmp_path / "r.jsonl", RUNS, results), FULL, ("celeba6000",))
    seed_0 = table.select(seed=0)
    assert len(seed_0) == 7
    assert table.mean(aggregate.accuracy_of("shift"), seed=0).value == pytest.approx((0.2 + 5 * 0.8) / 6)


def test_page_is_written_from_a_store_with_its_disclosures(tmp_path):
    rng = np.random.default_rng(0)
    runs = [run for run in plan.subset(2) if run.fraction in (0.1, 1.0)]
    densities = {
        "bars": {"Female": [1] * 40, "Male": [2] * 40},
        "thresholds": {"Female": 0.4, "Male": 0.6},
        "ramp_width": 0.05,
        "target_rate": 0.5,
        "hardt": {"Female": [0.0, 0.7], "Male": [0.2, 1.0]},
    }
    results = [
        result(0.7 + 0.1 * rng.random(), **({"densities": densities} if run.protocol == "whole" else {}))
        for run in runs
    ]
    store = filled(tmp_path / "r.jsonl", runs, results)
    text = page.write(store, tmp_path).read_text()
    for needed in ("endorsement", "Attribute noise", "768", "never published", "cannot be told", "6,000"):
        assert needed in text
    for name in ("densities", "size", "size-error", "ranks", "fractions", "pretraining-fraction"):
        assert f"reproduction-vision/{name}.svg" in text
        assert (tmp_path / "reproduction-vision" / f"{name}.svg").stat().st_size > 1000
    with pytest.raises(FairrampError, match="has no runs yet"):
        page.write(Store(tmp_path / "none.jsonl"), tmp_path)


# The head


def test_head_matches_logistic_regression():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(2000, 5)) * [1, 5, 0.2, 1e-9, 3] + [0, 9, 1, 1e-8, 0]).astype(np.float32)
    z = (x - x.mean(0)) / x.std(0)
    label = (rng.random(2000) < sigmoid((z @ [1.0, -2, 0.5, 1, 0]).astype(np.float64))).astype(np.int64)
    head = train_head([x], label, seed=0, schedule=Schedule(epochs=120, rate=0.01, drops=(80, 110)))
    oracle = LogisticRegression(C=np.inf).fit(z, label)
    np.testing.assert_allclose(head.weights, oracle.coef_[0], atol=0.05)
    np.testing.assert_allclose(head.scores(x), oracle.predict_proba(z)[:, 1], atol=0.02)


def test_heads_repeat_and_use_every_view():
    rng = np.random.default_rng(1)
    views = [rng.normal(size=(60, 4)).astype(np.float32) for _ in range(3)]
    label = rng.integers(0, 2, 60)
    short = Schedule(epochs=3, drops=(1, 2))
    first, again = (train_head(views, label, 0, short) for _ in range(2))
    np.testing.assert_array_equal(first.weights, again.weights)
    assert (train_head(views, label, 1, short).weights != first.weights).any()
    views[2][:, 0] += label  # a signal in only one view
    assert (train_head(views, label, 0, short).weights != first.weights).any()


def test_constant_features_are_harmless():
    views = [np.column_stack([np.ones(40), np.arange(40.0)]).astype(np.float32)]
    head = train_head(views, (np.arange(40) >= 20).astype(np.int64), 0)
    assert np.isfinite(head.scores(views[0])).all()
    assert (np.diff(head.scores(views[0])) >= 0).all()


# The quick run


def test_quick_run_is_part_of_the_full_one():
    runs = quick_runs()
    assert set(runs) <= set(plan.subset(10))
    assert {run.network.library for run in runs} == {"lite", "keras", "small"}
    assert len({b.name for b in LITE} & {run.backbone for run in runs}) == 2


def test_quick_run_without_images_skips_by_name(tmp_path):
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "reproduction.vision", "quick", "--subset", str(tmp_path / "nowhere")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("skipped: reproduce-vision-quick: no images.tar in")
