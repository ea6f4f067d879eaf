"""What must hold on Windows and macOS as well, as far as another system can show it."""

import ast
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import fairramp
from shell import KEY, Inside, rows

SOURCES = sorted(Path(fairramp.__file__).parent.rglob("*.py"))
#: Modules and functions that Windows does not have.
POSIX_MODULES = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_NAMES = {
    "os": {
        "chown",
        "fork",
        "geteuid",
        "getuid",
        "killpg",
        "mkfifo",
        "sched_getaffinity",
        "setsid",
        "sysconf",
        "uname",
    },
    "signal": {"SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGUSR2", "alarm", "pause"},
    "time": {"tzset"},
    "asyncio": {"add_signal_handler"},
}
#: Neither Western Windows nor ASCII has all of these characters.
GROUPS = ("Zoë", "東京 −")


@pytest.fixture
def inside(tmp_path):
    return Inside(tmp_path)


@pytest.fixture
def foreign(shell):
    """Files whose names and contents are not ASCII."""
    shell.write("größe.csv", rows(groups=GROUPS, header="id,p ≤ 1,“g”,y"))
    shell.write("key.txt", KEY)
    (shell.folder / "key.txt").chmod(0o600)
    return shell


def told(shell, encoding, *arguments):
    """What a command prints if the streams have an encoding, in bytes."""
    done = subprocess.run(
        [sys.executable, "-m", "fairramp.cli", *arguments],
        cwd=shell.folder,
        env=os.environ | {"PYTHONUTF8": "0", "PYTHONIOENCODING": encoding, "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


FIT = ("fit", "größe.csv", "--score", "p ≤ 1", "--group", "“g”", "--max-gap", "0.02")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_text_is_printed_in_every_encoding(foreign, encoding):
    said, _ = told(foreign, encoding, *FIT, "-o", "rule.json")
    text = said.decode(encoding)
    assert r"\u6771\u4eac -" in text
    assert ("Zoë" if encoding == "cp1252" else r"Zo\xeb") in text
    assert "?" not in text
    # Help has borders and quotes, and an audit has intervals.
    told(foreign, encoding, "fit", "--help")
    told(foreign, encoding, "audit", "größe.csv", "--score", "p ≤ 1", "--group", "“g”", "--label", "y")


def test_documents_are_the_same_bytes_in_every_encoding(foreign):
    told(foreign, "utf-8", *FIT, "-o", "rule.json")
    names = ("--score", "p ≤ 1", "--group", "“g”")
    for command in (
        ("export", "rule.json", "--to", "sql", "--dialect", "duckdb"),
        ("export", "rule.json", "--to", "json"),
        ("audit", "größe.csv", *names, "--json"),
        ("apply", "rule.json", "größe.csv", "-o", "-", "--id", "id", "--key-file", "key.txt"),
    ):
        expected = told(foreign, "utf-8", *command)[0]
        assert told(foreign, "cp1252", *command)[0] == expected
        assert "東京 −" in expected.decode()
        assert b"\r" not in expected


def test_signs_keep_their_meaning_without_unicode():
    from fairramp.cli import streams

    assert streams is not None  # registers the handler
    assert "−3.2 ≤ x ≥ ±1 …".encode("ascii", "fairramp") == b"-3.2 <= x >= +/-1 ..."
    assert "\udcff東".encode("cp1252", "fairramp") == rb"\udcff\u6771"


def test_no_temporary_file_is_opened_twice(inside, monkeypatch):
    # Windows does not let DuckDB open a NamedTemporaryFile.
    def refuse(*_, **__):
        raise AssertionError("another program cannot open this file on Windows")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    fitted = inside("fit", "-", "--score", "p", "--group", "g", "-o", "rule.json", stdin=rows().encode())
    assert "fairramp rule" in fitted.stdout
    given = ("apply", "rule.json", "-", "-o", "-", "--random-seed", "0")
    assert inside(*given, stdin=rows().encode()).stdout.count("\n") == 401


def test_a_file_that_another_program_has_open_is_kept(inside, monkeypatch):
    # Windows refuses to replace it.
    inside.write("rows.csv", rows())
    inside("fit", "rows.csv", "--score", "p", "--group", "g", "-o", "rule.json")
    before, names = inside.read("rule.json"), inside.files()

    def denied(self, target):
        raise PermissionError(13, "Access is denied", str(self), 5, str(target))

    monkeypatch.setattr(Path, "replace", denied)
    arguments = ("rows.csv", "--score", "p", "--group", "g", "--max-gap", "0.05", "-o", "rule.json", "--replace")
    assert "rule.json: Access is denied" in inside("fit", *arguments, code=2).stderr
    assert (inside.read("rule.json"), inside.files()) == (before, names)


def test_a_key_is_the_same_bytes_everywhere_and_its_readers_are_told(inside, monkeypatch):
    assert "only you can read" in inside("keygen", "one.txt").stdout
    assert len((inside.folder / "one.txt").read_bytes()) == 65  # a line feed after 64 characters
    monkeypatch.setattr("fairramp.cli.secret.OWNERS_ONLY", False)
    assert "only you" not in inside("keygen", "two.txt").stdout


def test_a_port_is_reserved_where_sharing_is_the_default(monkeypatch):
    listen = pytest.importorskip(
        "fairramp.web.listen", exc_type=Exception, reason="the extra web is not installed"
    )
    # An option that Windows alone has; here, another one stands for it.
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_KEEPALIVE, raising=False)
    with listen.listening("127.0.0.1", 0) as bound:
        assert bound.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert not bound.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)


@pytest.mark.parametrize(
    "name",
    [
        "a[1].csv",
        "it's.csv",
        "100%.csv",
        "Ж 東.csv",
        "a;b.csv",
        pytest.param("a\\b.csv", marks=pytest.mark.posix("a backslash separates folders on Windows")),
    ],
)
def test_file_names_are_names_and_not_patterns(inside, name):
    inside.write(name, rows())
    inside.write("a1.csv", rows(n=40))
    said = inside("fit", name, "--score", "p", "--group", "g", "-o", "rule.json").stdout
    assert "200" in said
    output = f"out {name}"
    inside("apply", "rule.json", name, "-o", output, "--random-seed", "0")
    assert inside.read(output).count("\n") == 401


def imported(tree):
    """Names of the modules that a module imports, anywhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


class WithoutPosix(ast.NodeTransformer):
    """Leave out what does not run on Windows."""

    def visit_If(self, node):
        return None if ast.unparse(node.test) == "sys.platform != 'win32'" else self.generic_visit(node)


def test_the_library_uses_nothing_that_windows_lacks():
    assert len(SOURCES) > 200
    for path in SOURCES:
        tree = WithoutPosix().visit(ast.parse(path.read_text(encoding="utf-8")))
        assert POSIX_MODULES.isdisjoint(imported(tree)), path
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert node.attr not in POSIX_NAMES.get(node.value.id, ()), (path, node.lineno)


#: What a test that runs everywhere must not use without the mark `posix`.
NEEDS = (
    "os.mkfifo",
    "os.symlink",
    "symlink_to",
    "os.umask",
    "os.fork",
    "os.killpg",
    "send_signal",
    "/dev/",
    "SIGKILL",
)


def test_portable_tests_that_need_posix_say_so():
    noxfile = ast.parse((Path(__file__).parents[2] / "noxfile.py").read_text(encoding="utf-8"))
    listed = {
        node.value
        for assigned in noxfile.body
        if isinstance(assigned, ast.Assign) and ast.unparse(assigned.targets[0]) in ("CORE", "PORTABLE")
        for node in ast.walk(assigned.value)
        if isinstance(node, ast.Constant)
    }
    assert "tests/cli/test_failures.py" in listed
    found = 0
    for name in sorted(listed - {"tests/cli/test_platforms.py"}):
        tree = ast.parse((Path(__file__).parents[2] / name).read_text(encoding="utf-8"))
        assert {"fcntl", "grp", "pwd", "resource"}.isdisjoint(imported(tree)), name
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marked = any(".posix(" in ast.unparse(d) for d in node.decorator_list)
                found += marked
                assert marked or not any(need in ast.unparse(node) for need in NEEDS), (name, node.name)
    assert found > 5
