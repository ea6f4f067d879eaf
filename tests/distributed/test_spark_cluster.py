"""PySpark on several processes: losing one during the fit changes no threshold and no decision."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engines import DISTRIBUTED

SCRIPT = Path(__file__).with_name("spark_cluster.py")
ROWS = 6_000_000
SECONDS = 300


@pytest.fixture
def spark_home(tmp_path):
    """Links to PySpark's files, so that its executors create their `work` folder here."""
    pyspark = pytest.importorskip("pyspark", reason="spark: pyspark is not installed")
    home = tmp_path / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name not in ("work", "logs"):
            (home / entry.name).symlink_to(entry)
    return home


def run(home):
    """Run the script and return its report; no process outlives it."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", SCRIPT, str(ROWS)],
        env=os.environ | {"SPARK_HOME": str(home)},
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, err[-2000:]
    return json.loads(out.splitlines()[-1])


@pytest.mark.cluster
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds executors in /proc")
@pytest.mark.parametrize("engine", DISTRIBUTED[1:])
def test_losing_an_executor_does_not_change_the_fit(engine, spark_home):
    report = run(spark_home)
    killed = report["killed"]
    assert killed is not None
    assert 0 < killed["done"] < killed["tasks"]  # in the middle of a pass
    assert killed["before"][0] not in report["executors_after"]

    calm, disturbed, in_memory = report["thresholds"]
    np.testing.assert_allclose(disturbed, calm, rtol=0, atol=1e-12)
    np.testing.assert_allclose(calm, in_memory, rtol=0, atol=1e-9)
    assert len(set(report["fingerprints"])) == 1
    assert report["on_the_ramp"] > 100
    assert report["worst_probability"] <= 1e-12
    assert report["rows_decided"] == [20_000] * 3
    assert report["other_decisions"] == [0, 0]
    assert (spark_home / "work").is_dir()  # rather than where PySpark is installed
