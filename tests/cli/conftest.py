import os
import shutil

import pytest
from shell import KEY, Shell, rows


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def _fitted(tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp("fitted"))
    shell.write("scores.csv", rows())
    shell.write("key.txt", KEY + "\n")
    os.chmod(shell.folder / "key.txt", 0o600)
    shell("fit", "scores.csv", "--score", "p", "--group", "g", "--max-gap", "0.02", "-o", "rule.json", "-q")
    return shell.folder


@pytest.fixture
def fitted(_fitted, shell):
    """A folder with scores, a rule and a key."""
    shutil.copytree(_fitted, shell.folder, dirs_exist_ok=True)
    return shell


@pytest.fixture(scope="session")
def _demo(tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp("demo"))
    return shell.folder, shell("demo").stdout


@pytest.fixture
def demo(_demo, shell):
    """A folder in which the demo ran, and what it said."""
    shutil.copytree(_demo[0], shell.folder, dirs_exist_ok=True)
    return shell, _demo[1]
