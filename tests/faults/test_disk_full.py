"""On a full disk the old output stays, nothing else is left behind, and the error names the file."""

import errno
import shutil

import numpy as np
import pytest

import fairramp
from samples import quiet_fit
from shell import KEY, Inside, rows

pytestmark = pytest.mark.faults

OLD = "the old output\n"


@pytest.fixture(scope="module")
def things():
    """Everything that can be saved from Python, each larger than the pages left free."""
    rng = np.random.default_rng(0)
    scores, groups = rng.random(5000), rng.integers(0, 1000, 5000).astype(str)
    return {
        "rule": quiet_fit(scores, groups),
        "summary": fairramp.summarize(scores, groups),
        "report": quiet_fit(scores, groups == "1").report(scores, groups == "1"),
    }


@pytest.mark.parametrize("pages", [0, 1, 2, 8])
@pytest.mark.parametrize("existing", [True, False], ids=["over a file", "anew"])
@pytest.mark.parametrize("name", ["rule", "summary", "report"])
def test_save_names_the_file_and_keeps_the_old_one(disk, things, name, existing, pages):
    path = disk.folder / "out.json"
    if existing:
        path.write_text(OLD)
    disk.leave(pages)
    with pytest.raises(OSError, match=r"No space left on device: '.*out\.json'") as caught:
        things[name].save(path)
    assert caught.value.errno == errno.ENOSPC
    assert disk.files() == (["out.json"] if existing else [])
    assert not existing or path.read_text() == OLD
    disk.leave(50)  # works once there is space
    if name == "rule":
        things[name].save(path)
        assert fairramp.Rule.load(path) == things[name]


def small_shell(disk, tmp_path):
    shell = Inside(tmp_path)
    shell.write("scores.csv", rows(4000))
    shell.write("key.txt", KEY + "\n")
    (tmp_path / "key.txt").chmod(0o600)
    shell("fit", "scores.csv", "--score", "p", "--group", "g", "-o", "rule.json", "-q")
    return shell


@pytest.mark.parametrize("pages", [0, 2])
@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("apply", "rule.json", "scores.csv", "--id", "id", "--key-file", "key.txt"), "o.csv"),
        (("apply", "rule.json", "scores.csv"), "o.parquet"),
        (("apply", "rule.json", "scores.csv"), "o.jsonl"),
        (("apply", "rule.json", "scores.csv"), "o.csv.gz"),
        (("fit", "scores.csv", "--score", "p", "--group", "id", "--replace"), "o.json"),
        (("report", "rule.json", "scores.csv"), "o.html"),
        (("frontier", "scores.csv", "--score", "p", "--group", "g", "--label", "y"), "o.svg"),
        (("frontier", "scores.csv", "--score", "p", "--group", "g", "--label", "y"), "o.png"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
def test_commands_fail_in_one_line(disk, tmp_path, command, name, pages):
    shell = small_shell(disk, tmp_path)
    path = disk.folder / name
    old = shell.read("rule.json") if name == "o.json" else OLD  # only a rule can be overwritten by a rule
    path.write_text(old)
    disk.leave(pages)
    done = shell(*command, "-o", path, code=2)
    [line] = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert line.startswith("fairramp: Cannot ")
    assert name in line
    assert "no space left" in line.lower()
    assert path.read_text() == old
    assert disk.files() == [name]


def test_keygen_leaves_no_partial_key(disk, tmp_path):
    disk.leave(0)
    message = Inside(tmp_path).error("keygen", disk.folder / "key.txt")
    assert "no space left" in message.lower()
    assert disk.files() == []


def test_no_space_for_temporary_files_fails(disk, tmp_path, monkeypatch):
    shell = small_shell(disk, tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(disk.folder))
    disk.leave(4)
    text = (tmp_path / "scores.csv").read_bytes()
    done = shell("audit", "-", "--score", "p", "--group", "g", code=2, stdin=text)
    assert "no space left" in done.stderr.lower()
    assert done.stdout == ""
    assert disk.files() == []


def test_demo_without_space_fails(disk):
    disk.leave(8)
    message = Inside(disk.folder).error("demo")
    assert "no space left" in message.lower()
    found = disk.folder / "fairramp-demo"
    assert not found.exists() or not [p for p in found.iterdir() if p.name.startswith(".")]


def test_longest_file_name_can_be_saved(tmp_path, things):
    path = tmp_path / ("😀" * 60 + ".json")  # 245 of at most 255 bytes
    things["rule"].save(path)
    things["rule"].save(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    shutil.copy(path, tmp_path / "copy.json")
    assert fairramp.Rule.load(tmp_path / "copy.json") == things["rule"]
