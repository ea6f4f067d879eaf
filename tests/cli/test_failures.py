"""After an interruption or a failed write, an output file is either the old one or the new one."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import duckdb
import pytest

OLD = "the old output\n"


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """Enough rows for a signal to arrive during the write."""
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    duckdb.sql(f"""
        COPY (SELECT i AS id, (i * 7919 % 10007) / 10007.0 AS p, CASE WHEN i % 3 = 0 THEN 'a' ELSE 'b' END AS g
              FROM range(3000000) AS t(i)) TO '{path}'
    """)
    return path


def start(shell, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "fairramp.cli", *map(str, arguments)],
        cwd=shell.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def writing(shell, process):
    """Wait until the temporary file has grown; return its name."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        assert process.poll() is None, process.communicate()
        for path in shell.folder.glob(".*.tmp"):
            if path.stat().st_size:
                return path.name
        time.sleep(0.005)
    raise AssertionError("apply never wrote")


@pytest.mark.posix("symbolic links need rights")
def test_kill_leaves_the_old_output_intact(fitted, large):
    (fitted.folder / "out").mkdir()
    os.symlink("out/o.csv", fitted.folder / "link.csv")  # the target is replaced, not the link
    fitted.write("o.csv", OLD)
    process = start(fitted, "apply", "rule.json", large, "-o", "o.csv")
    left = writing(fitted, process)
    process.kill()
    process.communicate()
    assert fitted.read("o.csv") == OLD
    # The temporary file is hidden and is not read as data.
    (fitted.folder / "parts").mkdir()
    os.rename(fitted.folder / left, fitted.folder / "parts" / left)
    assert "no CSV" in fitted.error("audit", "parts", "--score", "p", "--group", "g")
    fitted("apply", "rule.json", "scores.csv", "-o", "o.csv")
    assert fitted.read("o.csv").startswith("id,p,g,y,probability\n")
    fitted("apply", "rule.json", "scores.csv", "-o", "link.csv", "-q")
    assert (fitted.folder / "link.csv").is_symlink()
    assert fitted.read("out/o.csv") == fitted.read("o.csv")


@pytest.mark.posix("a process cannot get a signal from another one")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_clean_up(fitted, large, sent, code):
    fitted.write("o.csv", OLD)
    before = fitted.files()
    process = start(fitted, "apply", "rule.json", large, "-o", "o.csv")
    writing(fitted, process)
    process.send_signal(sent)
    _, error = process.communicate(timeout=30)
    assert process.returncode == code, error
    assert error == b"fairramp: Stopped; no output is half-written.\n"
    assert fitted.files() == before
    assert fitted.read("o.csv") == OLD


def test_two_concurrent_runs_both_succeed(fitted, large):
    runs = [
        start(fitted, "apply", "rule.json", large, "-o", "o.parquet", "--random-seed", seed) for seed in (1, 2)
    ]
    assert [(run.communicate()[1], run.returncode) for run in runs] == [(b"", 0)] * 2
    found = duckdb.sql(f"SELECT count(*), count(decision) FROM '{fitted.folder / 'o.parquet'}'").fetchall()
    assert found == [(3000000, 3000000)]
    assert not list(fitted.folder.glob(".*"))


def test_large_files_keep_their_order(fitted, large):
    for name in ("o.parquet", "o.csv"):
        done = fitted("apply", "rule.json", large, "-o", name, "--random-seed", "1")
        assert done.stdout.startswith("Added probability and decision to 3,000,000 rows.")  # no progress bar
        assert done.stderr == ""
        with duckdb.connect() as connection:
            found = connection.sql(
                f"SELECT count(*) FROM (SELECT id, row_number() OVER () - 1 AS n FROM '{fitted.folder / name}') "
                "WHERE id <> n"
            ).fetchall()
        assert found == [(0,)], name


@pytest.mark.posix("a closed pipe is another error")
def test_broken_pipe_ends_quietly(fitted):
    for arguments in (
        ("audit", "scores.csv", "--rule", "rule.json"),
        ("apply", "rule.json", "scores.csv", "-o", "-", "-q"),
        ("apply", "--help"),
        ("--version",),
    ):
        process = start(fitted, *arguments)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait() == 141


@pytest.mark.posix("/dev does not exist")
def test_devices_are_written_not_replaced(fitted):
    fitted("apply", "rule.json", "scores.csv", "-o", "/dev/null")
    if os.path.exists("/dev/full"):
        assert "No space" in fitted.error("apply", "rule.json", "scores.csv", "-o", "/dev/full")
    assert not os.path.isfile("/dev/null")


@pytest.mark.posix("a small disk is mounted")
def test_full_disk_fails_and_leaves_nothing(fitted, large, tmp_path_factory):
    disk = tmp_path_factory.mktemp("disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        for name in ("o.csv", "o.parquet", "o.jsonl"):
            (disk / name).write_text(OLD)
            said = fitted.error("apply", "rule.json", large, "-o", disk / name)
            assert "no space left" in said
            assert (disk / name).read_text() == OLD
        with contextlib.suppress(OSError), open(disk / "fill", "wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
        assert "No space" in fitted.error("keygen", disk / "key")
        fit = ("fit", "scores.csv", "--score", "p", "--group", "g", "-o", disk / "r.json")
        assert "No space" in fitted.error(*fit)
        assert sorted(p.name for p in disk.iterdir()) == ["fill", "o.csv", "o.jsonl", "o.parquet"]
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.posix("folders have access lists instead of permissions")
def test_write_protected_folder_fails(fitted, tmp_path_factory):
    place = tmp_path_factory.mktemp("protected")
    (place / "o.csv").write_text(OLD)
    mounted = False
    os.chmod(place, 0o555)
    if os.access(place, os.W_OK):  # root can write anywhere except on a read-only mount
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", place], capture_output=True).returncode:
            pytest.skip("needs a user other than root, or the right to mount")
        mounted = True
    try:
        for arguments in (
            ("apply", "rule.json", "scores.csv", "-o", place / "o.csv"),
            ("fit", "scores.csv", "--score", "p", "--group", "g", "-o", place / "r.json"),
            ("frontier", "scores.csv", "--score", "p", "--group", "g", "--label", "y", "-o", place / "f.csv"),
            ("keygen", place / "k"),
            ("demo", place / "demo"),
        ):
            said = fitted.error(*arguments)
            assert "write-protected" in said or "Read-only" in said or "ermission" in said, said
    finally:
        if mounted:
            subprocess.run(["umount", place], check=True)
        os.chmod(place, 0o755)
    assert (place / "o.csv").read_text() == OLD


def test_unexpected_errors_are_short_without_debug(fitted):
    env = {"FAIRRAMP_MEMORY": "lots"}
    assert "FAIRRAMP_MEMORY" in fitted.error("audit", "scores.csv", "--rule", "rule.json", env=env)
    broken = (
        "import sys, fairramp.data.database as t\n"
        "def connect(): raise RuntimeError('a bug')\n"
        "t.connect = connect\n"
        "from fairramp.cli.run import run\n"
        "sys.exit(run(['audit', 'scores.csv', '--rule', 'rule.json', *sys.argv[1:]]))\n"
    )
    for more, traced in (([], False), (["--debug"], True)):
        done = subprocess.run(
            [sys.executable, "-c", broken, *more], cwd=fitted.folder, capture_output=True, text=True
        )
        assert done.returncode == 70
        assert "RuntimeError: a bug; please report it" in done.stderr
        assert ("Traceback" in done.stderr) is traced


def test_duckdb_internal_error_means_a_damaged_file(capsys):
    from fairramp.cli.run import _explain

    error = duckdb.InternalException(
        "INTERNAL Error: Information loss on integer cast: value -65\nStack Trace: …"
    )
    assert _explain(error) == 2
    said = capsys.readouterr().err
    assert "a file is damaged" in said
    assert "Stack" not in said
