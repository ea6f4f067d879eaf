"""The command line: turns a file of scores into a file of decisions.

Commands parse arguments, call the library and print; the mathematics is in the library. Heavy packages are
imported only when needed, to keep `fairramp --help` instant.
"""

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with its exit code."""
    missing = [name for name in ("cyclopts", "duckdb", "rich") if find_spec(name) is None]
    if missing:
        from fairramp.errors import installing

        sys.stderr.write(f"The command line needs {', '.join(missing)}; install with: {installing('cli')}\n")
        sys.exit(2)
    from fairramp.cli.run import run

    sys.exit(run(sys.argv[1:]))
