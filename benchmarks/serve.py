"""How many people a service decides per second, and how long an answer takes.

    python benchmarks/serve.py [--requests 100000] [--workers 2] [--clients 8] [--people 10000]

Client processes send one person per request over kept connections, then batches. Every answer must be the
decision that Python makes; any other answer, and any error, ends the run with exit code 1.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fairramp

KEY = "0123456789abcdef" * 4
HEADERS = {"Content-Type": "application/json"}


def ask(connection: http.client.HTTPConnection, path: str, body: bytes) -> dict:
    """One request; anything but an answer raises."""
    connection.request("POST", path, body, HEADERS)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status} {content.decode()}")
    return json.loads(content)


def client(port: int, jobs: list[tuple[str, bytes]], results) -> None:
    """Send requests one after the other; report times and answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    times, answers, errors = [], [], []
    for path, body in jobs:
        started = time.perf_counter()
        try:
            answers.append(ask(connection, path, body))
        except Exception as error:
            errors.append(repr(error))
            answers.append(None)
            connection.close()
        times.append(time.perf_counter() - started)
    results.put((times, answers, errors))


def load(port: int, jobs: list[tuple[str, bytes]], clients: int):
    """Send jobs from several processes; return seconds, times, answers in order, and errors."""
    context = multiprocessing.get_context("fork")
    parts = [jobs[i::clients] for i in range(clients)]
    queues = [context.SimpleQueue() for _ in parts]
    started = time.perf_counter()
    processes = [
        context.Process(target=client, args=(port, part, queue))
        for part, queue in zip(parts, queues, strict=True)
    ]
    for process in processes:
        process.start()
    found = [queue.get() for queue in queues]
    seconds = time.perf_counter() - started
    for process in processes:
        process.join()
    answers = [None] * len(jobs)
    for i, (_, part, _) in enumerate(found):
        answers[i::clients] = part
    return seconds, np.concatenate([f[0] for f in found]), answers, [e for f in found for e in f[2]]


def told(name: str, seconds: float, times, n_people: int) -> None:
    """Print one line of results."""
    p50, p99 = (1000 * float(np.quantile(times, q)) for q in (0.5, 0.99))
    print(
        f"{name}: {len(times):,} requests in {seconds:.1f} s, {len(times) / seconds:,.0f} requests/s, "
        f"{n_people / seconds:,.0f} people/s; median {p50:.2f} ms, 99th percentile {p99:.2f} ms",
        flush=True,
    )


def main() -> int:
    """Run the load; return the exit code."""
    parser = argparse.ArgumentParser()
    for name, default in (("requests", 100_000), ("workers", 2), ("clients", 8), ("people", 10_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    data = fairramp.datasets.load_adult_scores()
    rule = fairramp.fit_rule(data.score, {"sex": data.sex}, max_gap=0.02, ramp_width=0.1)
    rows = rng.integers(0, len(data.score), chosen.requests)
    scores, groups = np.asarray(data.score)[rows], np.asarray(data.sex)[rows]
    people = [
        {"score": s, "sex": str(g), "id": i}
        for i, (s, g) in enumerate(zip(scores.tolist(), groups.tolist(), strict=True))
    ]
    expected = rule.decide(scores, {"sex": groups}, ids=range(len(people)), key=KEY).tolist()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        rule.save(Path(folder) / "rule.json")
        service = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "fairramp.cli",
                "serve",
                "rule.json",
                "--port=0",
                f"--workers={chosen.workers}",
            ],
            cwd=folder,
            env=os.environ | {"FAIRRAMP_KEY": KEY, "COLUMNS": "500"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            port = int(re.search(r"http://127.0.0.1:(\d+)", service.stdout.readline())[1])
            health = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            health.request("GET", "/health")
            assert health.getresponse().status == 200
            print(f"{chosen.workers} workers, {chosen.clients} clients, {os.cpu_count()} cores", flush=True)
            jobs = [("/decide", json.dumps(person).encode()) for person in people]
            seconds, times, answers, errors = load(port, jobs, chosen.clients)
            told("one person", seconds, times, len(people))
            wrong += len(errors) + sum(
                a is None or a["decision"] != d for a, d in zip(answers, expected, strict=True)
            )
            n = chosen.people
            parts = [people[i : i + n] for i in range(0, len(people), n)]
            jobs = [("/decide/batch", json.dumps({"people": part}).encode()) for part in parts]
            seconds, times, answers, more = load(port, jobs, min(chosen.clients, len(jobs)))
            told(f"{n:,} people", seconds, times, len(people))
            decided = [answer["decision"] for found in answers if found for answer in found["answers"]]
            wrong += len(more) + (decided != expected)
            errors += more
        finally:
            service.terminate()
            service.wait()
    print(f"errors: {len(errors)}; decisions that differ from Python: {wrong - len(errors)}", *errors[:3])
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
