"""The command line: a file of scores in, a file of decisions out; parse, call the library, print.

No mathematics lives here. Nothing heavy is imported before it is needed: `fairramp --help` has to feel instant.
"""

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line and leave with its exit code."""
    missing = [name for name in ("cyclopts", "duckdb", "rich") if find_spec(name) is None]
    if missing:
        from fairramp.errors import installing

        sys.stderr.write(f"The command line needs {', '.join(missing)}; install with: {installing('cli')}\n")
        sys.exit(2)
    from fairramp.cli.run import run

    sys.exit(run(sys.argv[1:]))
