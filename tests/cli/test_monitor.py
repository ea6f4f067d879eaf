"""`fairramp monitor`: a state file that grows batch by batch, and a matching exit code."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fairramp import Monitor
from samples import quiet_fit
from shell import Inside, Shell

RNG = np.random.default_rng(0)
GROUPS = np.repeat(["men", "women"], 2000)
SCORES = RNG.random(4000).round(4)
MONITOR = ("monitor", "rule.json", "new.csv", "--score", "p", "--state", "state.json")


@pytest.fixture
def inside(tmp_path):
    shell = Inside(tmp_path)
    rule = quiet_fit(SCORES, {"unit": GROUPS})
    rule.save(tmp_path / "rule.json")
    shell.rule = rule
    return shell


def batch(shell, seed, by=0.0, n=300):
    """New rows with the women's scores lowered by `by`, as a file and as arrays."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(["men", "women"], n)
    scores = np.clip(rng.random(n) - by * (groups == "women"), 0, 1).round(4)
    lines = [f"{p},{g}" for p, g in zip(scores, groups, strict=True)]
    shell.write("new.csv", "\n".join(["p,unit", *lines]) + "\n")
    return scores, groups


def test_every_batch_matches_the_library(inside):
    monitor, codes = inside.rule.monitor(), []
    for seed in range(8):
        monitor.update(*batch(inside, seed, by=0.2 if seed > 1 else 0.0))
        done = inside(*MONITOR, code=int(monitor.has_drifted))
        codes.append(int(monitor.has_drifted))
        word = "failed" if monitor.has_drifted else "undecided"
        said = " ".join(done.stdout.split())
        # Rows are summed in another order, so the last digit of the evidence can differ.
        assert f"Monitor {word}. {monitor.sentence()} Evidence of a larger gap: " in said
    assert codes[0] == 0
    assert codes[-1] == 1
    assert codes == sorted(codes)  # an alarm is permanent
    saved = Monitor.load(inside.folder / "state.json", inside.rule)
    assert (saved.rows, saved.alarm, saved.looks) == (monitor.rows, monitor.alarm, 8)
    assert saved.evidence == pytest.approx(monitor.evidence, rel=1e-9)  # rows are summed in another order


def test_json_and_quiet(inside):
    batch(inside, 0, by=0.5, n=1000)
    content = json.loads(inside(*MONITOR, "--json", code=1).stdout)
    assert (content["command"], content["verdict"], content["alarm"]) == ("monitor", "exceeded", 1)
    assert (content["looks"], content["confidence"]) == (1, 0.95)
    assert [row["group"] for row in content["groups"]] == ["men", "women"]
    batch(inside, 1)
    done = inside(*MONITOR, "-q", code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("warning: monitor failed. Above the estimated limit of ")


def test_repeated_rows_are_not_counted_twice(inside):
    scores, groups = batch(inside, 0)
    inside(*MONITOR)
    before = (inside.folder / "state.json").read_bytes()
    again = "warning: these rows are already in state.json and were not counted again.\n"
    assert inside(*MONITOR).stderr == again
    lines = [f"{p},{g}" for p, g in zip(scores[::-1], groups[::-1], strict=True)]  # in another order
    inside.write("new.csv", "\n".join(["p,unit", *lines]) + "\n")
    assert inside(*MONITOR, "--batch", "tuesday").stderr == again  # a batch name makes no difference
    assert (inside.folder / "state.json").read_bytes() == before
    batch(inside, 1)
    content = json.loads(inside(*MONITOR, "--batch", "tuesday", "--json").stdout)
    assert (content["looks"], content["added"]) == (2, True)
    assert content["batch"].startswith("tuesday · ")
    content = json.loads(inside(*MONITOR, "--batch", "tuesday", "--json").stdout)  # the same job run again
    assert (content["looks"], content["added"]) == (2, False)
    batch(inside, 2)
    assert "already has a batch named 'tuesday' with different rows" in inside.error(
        *MONITOR, "--batch", "tuesday"
    )


def test_repeated_batch_keeps_the_exit_code_of_the_alarm(inside):
    batch(inside, 0, by=0.5, n=1000)
    inside(*MONITOR, code=1)
    inside(*MONITOR, code=1)


def test_mismatched_state_fails(inside):
    batch(inside, 0)
    inside(*MONITOR)
    batch(inside, 1)
    assert "was started with confidence 0.95, not 0.9" in inside.error(*MONITOR, "--confidence", "0.9")
    quiet_fit(SCORES, {"unit": GROUPS}, max_gap=0.1).save(inside.folder / "other.json")
    assert "belongs to another rule" in inside.error("monitor", "other.json", *MONITOR[2:])
    assert "Not a monitor" in inside.error(*MONITOR[:-1], "rule.json")
    path = inside.folder / "state.json"
    path.write_text(path.read_text().replace('"looks": 1', '"looks": 2'))
    assert "The checksum does not match the content" in inside.error(*MONITOR)


def test_unseen_groups_are_left_out_and_counted(inside):
    quiet_fit(SCORES, {"unit": GROUPS}, unseen_group="pooled").save(inside.folder / "rule.json")
    batch(inside, 0)
    with (inside.folder / "new.csv").open("a") as file:
        file.write("0.5,others\n" * 40)
    done = inside(*MONITOR)
    assert done.stdout.startswith("300 rows counted in state.json so far, by unit\n")
    assert "40 rows left out: groups not in the fit rows." in done.stdout


def test_a_group_without_rows_in_a_batch_is_named(inside):
    batch(inside, 1)
    done = inside(*MONITOR, "--quiet")
    assert "no row is in group" not in done.stderr
    lines = inside.read("new.csv").splitlines(True)
    inside.write("new.csv", "".join(line for line in lines if "women" not in line))
    done = inside(*MONITOR, "--quiet")
    assert "warning: no row is in group women of the rule." in done.stderr


@pytest.mark.posix
def test_batches_that_are_added_at_the_same_time_are_all_counted(inside, tmp_path):
    shell = Shell(tmp_path)
    names = [f"batch{i}.csv" for i in range(4)]
    for i, name in enumerate(names):
        batch(inside, i)
        (tmp_path / "new.csv").rename(tmp_path / name)
    with ThreadPoolExecutor(4) as pool:
        command = ("--score", "p", "--state", "state.json", "--quiet")
        list(pool.map(lambda name: shell("monitor", "rule.json", name, *command), names))
    saved = Monitor.load(tmp_path / "state.json", inside.rule)
    assert (len(saved.batches), sum(saved.rows)) == (4, 1200)
