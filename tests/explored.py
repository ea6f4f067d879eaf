"""A running `fairramp explore`, and requests to it."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from urllib.parse import urlsplit

COLUMNS = {"score": "score", "group": "sex", "label": "earns", "positive": "", "scale": "probability"}
SETTINGS = {
    "criterion": "parity",
    "limit": "max_gap",
    "value": 0.02,
    "cutoff": None,
    "target": "",
    "rate": None,
    "lower_is_better": False,
}


class Explored:
    """The process and its address."""

    def __init__(self, process, address):
        self.process, self.address = process, address
        parts = urlsplit(address)
        self.port, self.path = parts.port, parts.path
        self.host = f"127.0.0.1:{parts.port}"

    def ask(self, method, path, body=None, **headers):
        """Status, headers and text of an answer to a request with exactly these headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"Host": self.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
            if body is not None:
                given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **given}
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def post(self, action, columns=None, settings=None, **more):
        """The answer to a question of the page, or the sentence of its refusal."""
        body = {"columns": COLUMNS | (columns or {}), "settings": SETTINGS | (settings or {}), **more}
        status, _, text = self.ask("POST", self.path + action, json.dumps(body).encode())
        assert status in (200, 422), text
        found = json.loads(text)
        return found if status == 200 else found["error"]


@contextlib.contextmanager
def exploring(folder, data, *options):
    """Start the explorer in a folder, and stop it with Ctrl+C at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fairramp.cli", "explore", data, "--no-browser", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        lines = []
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", "".join(lines))):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            lines.append(line)
        yield Explored(process, found[0])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        process.stdout.close()
        process.stderr.close()
