"""Run the code on documentation pages, in page order, and compare its output with the page.

    ```python     runs; a ```text block right below it is its output
    ```console    lines starting with $ run in a shell; the lines below each are its output

A console block below `<!-- output not shown -->` only has to succeed. A block below `<!-- not run: … -->` is
skipped. Each page has its own folder and its own Python names.

`python tests/pages.py PAGE …` runs the pages and updates the output blocks in them. Numbers below a
`keygen` are kept, because they depend on the new key.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[1]
#: Pages whose code has its own tests, next to the databases and runtimes it needs.
TESTED_ELSEWHERE = {"integrations/mlflow.md", "production.md", "rule-format.md", "sql.md"}
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_SHOWN = re.compile(r"<!-- output not shown -->\s*$")
_NOT_RUN = re.compile(r"<!-- not run: [^>]+ -->\s*$")


@dataclass(frozen=True)
class Block:
    """Code and its output on the page (None if the page shows none)."""

    language: str
    code: str
    says: str | None
    line: int


def pages() -> list[Path]:
    """README and all hand-written pages."""
    docs = ROOT / "docs"
    made = {docs / name for name in ("_build", "api", "gallery")}
    found = sorted(path for path in docs.rglob("*.md") if made.isdisjoint(path.parents))
    return [ROOT / "README.md", *(path for path in found if str(path.relative_to(docs)) not in TESTED_ELSEWHERE)]


def blocks(text: str) -> Iterator[Block]:
    """Blocks of a page that run."""
    fences = list(_FENCE.finditer(text))
    for i, fence in enumerate(fences):
        language, code = fence.groups()
        line = text.count("\n", 0, fence.start()) + 1
        if _NOT_RUN.search(text, 0, fence.start()):
            continue
        if language == "python":
            below = fences[i + 1] if i + 1 < len(fences) else None
            told = below is not None and below[1] == "text" and not text[fence.end() : below.start()].strip()
            yield Block(language, code, below[2] if below is not None and told else None, line)
        elif language == "console" and code.startswith("$ "):
            for command in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
                typed, printed = _typed(command)
                yield Block(language, typed, None if _NOT_SHOWN.search(text, 0, fence.start()) else printed, line)


def digits_hidden(text: str) -> str:
    """Text with its numbers masked, and without the sentence of `apply` that depends on the draws."""
    drawn = "The limit of N points applies to the expected rates; the random draws made the gap N points here."
    words = (r"[\d.]+" if word == "N" else re.escape(word) for word in drawn.split())
    text = re.sub(r"\n\n" + r"\s+".join(words), "", text)
    return re.sub(r"\d", "0", text)


def rewrite(page: Path) -> None:
    """Update the output blocks of a page."""
    text, names, keyed = page.read_text(encoding="utf-8"), {}, False
    with tempfile.TemporaryDirectory() as folder:
        place = 0
        for block in blocks(text):
            printed, keyed = run(block, names, Path(folder)), keyed or "keygen" in block.code
            place = text.index(block.code, place) + len(block.code)
            if block.says is None or (keyed and digits_hidden(printed) == digits_hidden(block.says)):
                continue
            if printed != block.says:
                printed += "" if block.says else "\n"  # nothing was said, not even a line end
                place = text.index(block.says, place)
                text = text[:place] + printed + text[place + len(block.says) :]
                place += len(printed)
    page.write_text(text, encoding="utf-8")


def _typed(text: str) -> tuple[str, str]:
    """A command, continued after a backslash, and its output."""
    lines = text.splitlines(keepends=True)
    last = next(i for i, line in enumerate(lines) if not line.endswith("\\\n"))
    return "".join(lines[: last + 1]), "".join(lines[last + 1 :]).rstrip("\n")


def run(block: Block, names: dict[str, object], folder: Path) -> str:
    """Run a block in a folder and return its output."""
    # As in an activated environment.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if block.language == "console":
        done = subprocess.run(
            ["bash", "-c", block.code],
            cwd=folder,
            env=os.environ | {"PATH": path, "COLUMNS": "80"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        if block.says is None and done.returncode != 0:
            raise RuntimeError(f"line {block.line}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout.rstrip("\n")
    printed = io.StringIO()
    with mock.patch.dict(os.environ, PATH=path), contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(compile(block.code, f"line {block.line}", "exec"), names)
    return printed.getvalue()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rewrite(Path(name))
        print(name, flush=True)
