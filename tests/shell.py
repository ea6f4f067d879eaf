"""Run the command line as users do: as a process, in its own folder."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

KEY = "0123456789abcdef" * 4


class Shell:
    """Run `fairramp` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments, code=0, stdin=None, env=None, **options):
        """Run, check the exit code, and return the process with text outputs."""
        variables = {k: v for k, v in os.environ.items() if not k.startswith("FAIRRAMP")}
        done = subprocess.run(
            [sys.executable, "-m", "fairramp.cli", *map(str, arguments)],
            cwd=self.folder,
            env=variables | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"} | (env or {}),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=60,
            **options,
        )
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr or "--debug" in arguments
        return done

    def error(self, *arguments, **options):
        """Run a command that must fail; return its one-line message."""
        done = self(*arguments, code=2, **options)
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("fairramp: ")
        assert done.stdout == ""
        return done.stderr.removeprefix("fairramp: ").strip()

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    def read(self, name):
        return (self.folder / name).read_bytes().decode()

    def files(self):
        return sorted(p.name for p in self.folder.iterdir())


class Inside(Shell):
    """Run `fairramp` in this process."""

    def __call__(self, *arguments, code=0, stdin=b""):
        from fairramp.cli.run import run

        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.chdir(self.folder))
            stack.enter_context(contextlib.redirect_stdout(out))
            stack.enter_context(contextlib.redirect_stderr(err))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("default")
            stack.callback(setattr, sys, "stdin", sys.stdin)
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.callback(signal.signal, number, signal.getsignal(number))
            sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
            left = run(list(map(str, arguments)))
            out.flush()
            err.flush()
        done = SimpleNamespace(stdout=out.buffer.getvalue().decode(), stderr=err.buffer.getvalue().decode())
        assert left == code, (left, done)
        return done


def rows(n=400, groups=("a", "b"), header="id,p,g,y", line="{id},{p},{g},{y}", end="\n"):
    """CSV with two groups, of which the second has higher scores."""
    lines = [header]
    for i in range(n):
        g = i % len(groups)
        p = ((i * 37) % 101) / 101 * (0.7 + 0.3 * (g > 0))
        lines.append(line.format(id=f"{i:05d}", p=f"{p:.4f}", g=groups[g], y=int(p > 0.45 + 0.1 * (i % 3))))
    return end.join(lines) + end
