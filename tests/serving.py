"""Start `fairramp serve` in a process, and talk to it."""

import contextlib
import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from shell import KEY

#: Seconds to wait for something that takes much less; it only ends tests that hang.
PATIENCE = 30


class Served:
    """A running service."""

    def __init__(self, process, address, folder, token=None):
        self.process, self.address, self.folder, self.token = process, address, folder, token
        host, _, port = address.removeprefix("http://").rpartition(":")
        self.host, self.port = host.strip("[]"), int(port)

    def connected(self):
        return contextlib.closing(http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE))

    def ask(self, method, path, body=None, *, to=None, **headers):
        """Send one request; return the status, the headers and the content (parsed if it is JSON)."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if body is not None else {}
        given |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.nullcontext(to) if to else self.connected() as connection:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            content = answer.read()
        kind = answer.headers.get("content-type", "")
        return answer.status, answer.headers, json.loads(content) if "json" in kind else content.decode()

    def refusal(self, *arguments, **options):
        """The status and the sentence of a refusal, which always names the rule."""
        status, _, content = self.ask(*arguments, **options)
        assert set(content) == {"error", "fingerprint"}
        assert re.fullmatch("[0-9a-f]{64}", content["fingerprint"])
        return status, content["error"]

    def log(self):
        return (self.folder / "log.txt").read_text()

    def metric(self, name):
        """The value of a metric, summed over its labels."""
        text = self.ask("GET", "/metrics")[2]
        found = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, found))

    def workers(self):
        """The process ids of the workers of a service that has several."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        return [
            int(pid) for pid in children.split() if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]

    def stop(self):
        """Stop the service as a supervisor does; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextlib.contextmanager
def served(rule, folder, *options, key=KEY, token=None, code=0):
    """A service of a rule; when it is stopped, its exit code must be as expected."""
    folder.mkdir(exist_ok=True, parents=True)
    rule.save(folder / "rule.json")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FAIRRAMP")} | {"COLUMNS": "500"}
    environment |= {"FAIRRAMP_KEY": key} if key else {}
    command = [sys.executable, "-m", "fairramp.cli", "serve", "rule.json", "--port", "0", *map(str, options)]
    if token:
        (folder / "token.txt").write_text(token)
        os.chmod(folder / "token.txt", 0o600)
        command += ["--token-file", "token.txt"]
    with open(folder / "log.txt", "wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log)
    try:
        assert select.select([process.stdout], [], [], PATIENCE)[0], "the service did not start"
        said = process.stdout.readline().decode()
        address = re.search(r"http://\S+:\d+", said)
        assert address, (said, (folder / "log.txt").read_text())
        service = Served(process, address[0], folder, token)
        yield service
        assert service.stop() == code, service.log()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def until(holds):
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)
