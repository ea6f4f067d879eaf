"""Coverage-guided fuzzing of the readers: rules, summaries and keys, or tables.

    python tests/fuzz/atheris_run.py files|tables [libFuzzer options, such as -max_total_time=300]

Needs atheris; `make fuzz` creates an environment for it. The first byte of an input selects the reader that
gets the rest; the readers are in `harness`. libFuzzer stops at the first crash or hang and saves the input.
"""

import sys
import tempfile
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

with atheris.instrument_imports(include=["fairramp"]):
    import harness

    from fairramp.cli import app, library, run, scan, secret  # noqa: F401

READERS = {
    "files": [
        (harness.read_rule, "rule"),
        (harness.read_summary, "summary"),
        (lambda data: harness.read_rule(data, unsigned=False), "rule"),
        (lambda data: harness.read_summary(data, unsigned=False), "summary"),
        (harness.read_key_file, "key"),
        (harness.read_class_rule, "class rule"),
        (lambda data: harness.read_class_rule(data, unsigned=False), "class rule"),
    ],
    "tables": [
        (lambda data: harness.read_table(data, ".csv"), "csv"),
        (lambda data: harness.read_table(data, ".jsonl"), "jsonl"),
        (lambda data: harness.read_table(data, ".json"), "json"),
    ],
}


def main(which, *options):
    """Fuzz, starting from valid files."""
    readers = READERS[which]

    def one(data):
        if data:
            readers[data[0] % len(readers)][0](data[1:])

    with tempfile.TemporaryDirectory() as folder:
        for number, (_, kind) in enumerate(readers):
            for i, seed in enumerate(harness.SEEDS[kind]):
                (Path(folder) / f"{number}-{i}").write_bytes(bytes([number]) + seed)
        usual = ["-timeout=60", "-rss_limit_mb=4096", "-max_len=8192", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *usual, *options, folder], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
