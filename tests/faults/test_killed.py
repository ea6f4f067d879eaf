"""After a kill during a write, or with several writers, a file is complete; readers never see half of one."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
]

#: Forks its own writers, so only one process has to import the library.
SCRIPT = """
import json, os, random, signal, sys, time
import numpy as np
import fairramp
from fairramp.data.bins import to_text

path, what, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(0)
scores, groups = rng.random(4000), np.arange(4000) % 80


def thing(i):
    if what == "rule":
        return fairramp.fit_rule(scores, groups, max_gap=i / 100)
    return fairramp.summarize(scores[i:], groups[i:], resolution=16)


things = [thing(i) for i in range(4)]
texts = [t.to_json() if what == "rule" else to_text(t) for t in things]
load = fairramp.Rule.load if what == "rule" else fairramp.GroupScores.load


def writer(numbers):
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                for i in numbers:
                    things[i].save(path)
        finally:
            os._exit(1)
    return pid


def end(pid):
    os.kill(pid, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def read():
    text = open(path, encoding="utf-8").read()
    assert text in texts, len(text)
    return texts.index(text)


things[0].save(path)
random.seed(0)
seen = set()
litter = []
while sum(litter) < times:  # killed at any time, often during a write
    pid = writer([1, 2])
    time.sleep(random.random() * 0.02)
    end(pid)
    seen.add(read())
    load(path)
    hidden = [name for name in os.listdir(os.path.dirname(path)) if name.startswith(".")]
    litter.append(len(hidden))
    for name in hidden:
        os.unlink(os.path.join(os.path.dirname(path), name))
pids = [writer([i]) for i in range(4)]  # several at once
together = set()
reads = 0
while len(together) < 4 or reads < 300:
    together.add(read())
    reads += 1
for pid in pids:
    end(pid)
load(path)
print(json.dumps({"seen": sorted(seen), "litter": litter, "together": sorted(together)}))
"""


@pytest.mark.parametrize("what", ["rule", "summary"])
def test_file_is_always_one_that_was_saved(tmp_path, what):
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path / "out.json"), what, "40"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["seen"]) & {1, 2}  # not just the file from before
    assert max(found["litter"]) <= 1  # at most the temporary file of the killed process
    assert found["together"] == [0, 1, 2, 3]
