"""Database servers with their own data folder, reachable only from this machine and stopped by process id."""

import contextlib
import functools
import glob
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time


class _Server:
    """A running server; both kinds refuse to run as root, so they get the user of their Debian package."""

    user = ""
    stopping = signal.SIGTERM

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix=f"fairramp-{self.user}-")
        self.data, self.log = f"{self.folder}/data", f"{self.folder}/log"
        self.run = []
        if os.geteuid() == 0:
            user = pwd.getpwnam(self.user)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.run = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        with open(self.log, "wb") as log:
            said = {"cwd": self.folder, "stdout": log, "stderr": log}
            subprocess.run([*self.run, *self.installing()], check=True, timeout=60, **said)
            self.process = subprocess.Popen([*self.run, *self.serving()], **said)
        self._wait()

    def installing(self):
        """The command that makes an empty data folder."""
        raise NotImplementedError

    def serving(self):
        """The command that runs the server."""
        raise NotImplementedError

    def connect(self):
        """A new connection."""
        raise NotImplementedError

    def _wait(self):
        end = time.monotonic() + 30
        while True:
            try:
                self.connect().close()
                return
            except Exception:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    raise
                time.sleep(0.05)

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(self.stopping)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)


class _Postgres(_Server):
    user = "postgres"
    stopping = signal.SIGINT  # does not wait for connections

    def installing(self):
        options = ["-U", "tests", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"]
        return [f"{postgres_programs()}/initdb", "-D", self.data, *options]

    def serving(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "off",
            "log_statement": "all",
            "log_parameter_max_length": -1,
            "session_preload_libraries": "auto_explain",
            "auto_explain.log_min_duration": 0,
            "auto_explain.log_analyze": "on",
            "auto_explain.log_verbose": "on",
        }
        options = itertools.chain.from_iterable(("-c", f"{name}={value}") for name, value in settings.items())
        return [f"{postgres_programs()}/postgres", "-D", self.data, *options]

    def connect(self):
        import psycopg

        address = f"host=127.0.0.1 port={self.port} user=tests dbname=postgres"
        return psycopg.connect(address, connect_timeout=2, autocommit=True)


class _MariaDB(_Server):
    user = "mysql"

    def installing(self):
        options = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        return ["mariadb-install-db", "--no-defaults", f"--datadir={self.data}", *options]

    def serving(self):
        return [
            _mariadbd(),
            "--no-defaults",
            f"--datadir={self.data}",
            f"--socket={self.folder}/socket",
            "--skip-networking",
            "--innodb-flush-log-at-trx-commit=0",
            "--general-log",
            f"--general-log-file={self.log}-queries",
            "--slow-query-log",
            f"--slow-query-log-file={self.log}-plans",
            "--long-query-time=0",
            "--log-slow-verbosity=query_plan,explain",
        ]

    def connect(self, user="root"):
        import pymysql

        os.stat(f"{self.folder}/socket")  # PyMySQL would leave its own socket open
        return pymysql.connect(
            unix_socket=f"{self.folder}/socket", user=user, charset="utf8mb4", autocommit=True, connect_timeout=2
        )


def postgres_programs():
    """Folder of PostgreSQL's programs, which Debian leaves off the path; None if not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found and shutil.which("initdb"):
        found = [os.path.realpath(shutil.which("initdb"))]
    return os.path.dirname(found[-1]) if found else None


def _mariadbd():
    """The server's program, which is not on the path of users other than root; None if not installed."""
    return shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")


@functools.cache
def postgres():
    return _Postgres()


@functools.cache
def mariadb():
    return _MariaDB()


def stop():
    """Leave no server running."""
    for server in (postgres, mariadb):
        if server.cache_info().currsize:
            server().stop()
            server.cache_clear()


def absent(name):
    """Why a server cannot be started, or None."""
    library, package, found = {
        "postgres": ("psycopg", "postgresql", postgres_programs()),
        "mariadb": ("pymysql", "mariadb-server", _mariadbd()),
    }[name]
    if importlib.util.find_spec(library) is None:
        return f"{library} is not installed"
    return None if found else f"Debian's package {package} is not installed"
