"""Fit on a Spark cluster of several processes, kill one of them during the fit, and print a JSON report.

`test_spark_cluster.py` runs this as a separate process, because a Spark session cannot change its master.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

TEST_ROWS = 20_000
KEY = "0123456789abcdef" * 4
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}

#: Scores that NumPy reproduces exactly: integers, products and square roots.
SPREAD = "pmod(id * 2654435761, 1000003) / 1000003e0"
SCORE = f"CASE pmod(id, 3) WHEN 0 THEN {SPREAD} WHEN 1 THEN {SPREAD} * {SPREAD} ELSE sqrt({SPREAD}) END AS p"


def executors(ancestor):
    """Ids of the executor processes started by a process or its children."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue

    def descends(pid):
        while pid in parents and pid != ancestor:
            pid = parents[pid]
        return pid == ancestor

    return [pid for pid in found if descends(pid)]


class Killer(threading.Thread):
    """Kills one executor, once, in the middle of a stage."""

    def __init__(self, tracker, group):
        super().__init__(daemon=True)
        self.tracker, self.group, self.report = tracker, group, None

    def run(self):
        """Wait until some tasks of a pass are done and some are running, then kill."""
        while self.report is None:
            jobs = sorted(self.tracker.getJobIdsForGroup(self.group))
            for stage_id in [s for job in jobs[1:] for s in self.tracker.getJobInfo(job).stageIds]:
                stage = self.tracker.getStageInfo(stage_id)
                if stage and stage.numActiveTasks and 0 < stage.numCompletedTasks < stage.numTasks - 2:
                    victims = executors(os.getpid())
                    os.kill(victims[0], signal.SIGKILL)
                    self.report = {
                        "before": victims,
                        "job": len(jobs),
                        "active": stage.numActiveTasks,
                        "done": stage.numCompletedTasks,
                        "tasks": stage.numTasks,
                    }
                    break
            time.sleep(0.01)


def main(n_rows):
    """Fit twice, the second time with a kill, and decide with both rules."""
    os.environ |= LOOPBACK
    import numpy as np
    from pyspark.sql import SparkSession

    import fairramp

    started = time.perf_counter()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.adaptive.enabled": "false",  # one job per pass, for the killer to count
        "spark.executor.memory": "512m",
    }
    spark = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=settings).getOrCreate()
    context = spark.sparkContext
    context.setLogLevel("OFF")
    rows = spark.range(0, n_rows, numPartitions=16).selectExpr("id", SCORE, "pmod(id, 3) AS g")
    people = rows.where(f"id >= {n_rows - TEST_ROWS}")

    def fit(job_group):
        context.setJobGroup(job_group, "the passes of a fit")
        rule = fairramp.fit_frame(rows, score="p", group="g", max_gap=0.01, ramp_width=0.05)
        context.setJobGroup("apply", "decisions")
        decided = rule.apply(people, id="id", key=KEY).select("id", "probability", "decision").toArrow()
        decided = decided.sort_by("id")
        return rule, decided["probability"].to_numpy(), decided["decision"].to_numpy()

    while len(executors(os.getpid())) < 2:
        time.sleep(0.1)
    ready = time.perf_counter()
    rule, chances, decisions = fit("calm")
    calm = time.perf_counter()
    killer = Killer(context.statusTracker(), "killed")
    killer.start()
    again, chances_again, decisions_again = fit("killed")
    done = time.perf_counter()

    ids = np.arange(n_rows)
    spread = ids * 2654435761 % 1000003 / 1000003
    scores = np.where(ids % 3 == 0, spread, np.where(ids % 3 == 1, spread * spread, np.sqrt(spread)))
    reference = fairramp.fit_rule(scores, ids % 3, max_gap=0.01, ramp_width=0.05)
    last = ids[-TEST_ROWS:]
    expected = reference.decide(scores[-TEST_ROWS:], last % 3, ids=last, key=KEY)
    thresholds = [list(r.thresholds) for r in (rule, again, reference)]
    print(
        json.dumps(
            {
                "killed": killer.report,
                "passes": [len(context.statusTracker().getJobIdsForGroup(g)) for g in ("calm", "killed")],
                "executors_after": executors(os.getpid()),
                "thresholds": thresholds,
                "fingerprints": [r.record.fingerprint for r in (rule, again, reference)],
                "on_the_ramp": int(((chances > 0) & (chances < 1)).sum()),
                "worst_probability": float(np.abs(chances - chances_again).max()),
                "rows_decided": [len(decisions), len(decisions_again), len(expected)],
                "other_decisions": [int((d != expected).sum()) for d in (decisions, decisions_again)],
                "seconds": [round(ready - started, 1), round(calm - ready, 1), round(done - calm, 1)],
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
