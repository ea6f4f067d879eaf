"""Schemathesis finds nothing: the service does what its OpenAPI description says, and refuses everything else."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import fairramp
from fairramp import Columns, Ramp, Rule
from serving import served

TOKEN = "correct-horse-battery-staple-0123456789"
RAMPS = (Ramp(0.25, 0.5), Ramp(0.5, 0.25), Ramp.constant(0.3))
RULES = {
    "two groups": Rule(("Female", "Male"), RAMPS[:2], columns=Columns("p", ("sex",))),
    "intersections": Rule((("f", 1), ("f", None), ("m", 1)), RAMPS, columns=Columns("p", ("sex", "unit"))),
    "unseen groups": Rule((0, 1, 2), RAMPS, unseen_group="original", scale="logit", cutoff=0.0),
    "several classes": fairramp.ClassRule(("A", "B"), ("low", "high"), ((0.0, 0.0), (0.05, -0.05)), 0.1),
}

pytestmark = [
    pytest.mark.described,
    pytest.mark.skipif(find_spec("schemathesis") is None, reason="schemathesis is not installed"),
]


@pytest.mark.parametrize("token", [None, TOKEN], ids=["open", "token"])
@pytest.mark.parametrize("name", RULES)
def test_schemathesis_finds_nothing(tmp_path, name, token):
    # 413: many people with long ids are refused for their size, before they are counted.
    rejected = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429]
    (tmp_path / "schemathesis.toml").write_text(
        f"[checks]\nnegative_data_rejection.expected-statuses = {rejected}\n"
    )
    with served(RULES[name], tmp_path, token=token) as service:
        tool = Path(sys.executable).parent / "schemathesis"
        command = [tool, "run", f"{service.address}/openapi.json", "--checks", "all", "--mode", "all"]
        command += ["--max-examples", "100", "--no-color"]
        if token:
            command += ["--header", f"Authorization: Bearer {token}"]
        if name == "several classes":  # JSON Schema cannot say that scores sum to 1
            command += ["--exclude-checks", "positive_data_acceptance"]
            command += ["--warnings", "off"]  # that nearly all generated people are refused
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | {"COLUMNS": "120"}, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout, done.stdout[-3000:]
