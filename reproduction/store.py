"""Results on disk: one small JSON file per task with one line per method, and scores next to them.

    results/adult-rf-0.json          results, in the repository
    results/scores/adult-rf-0.npz    scores, to run methods again without training; not in the repository

A result carries a fingerprint of all settings that it depends on. A result with another fingerprint counts as
missing, so numbers from different settings are never mixed. Files are replaced atomically: an interrupted run
leaves complete files and continues where it stopped.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from reproduction.protocol import Scored, Settings, Split, Task

Result = dict[str, Any]

#: Field names of `Settings` as spelled when the results were stored: fingerprints contain them.
STORED_NAMES = {"neighbors": "neighbo\u0075rs"}


def fingerprint(*parts: Any) -> str:
    """Return a short hash of settings."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`, and move it to `path` at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-", suffix=path.suffix)
    os.close(handle)
    fresh = Path(name)
    try:
        yield fresh
        fresh.chmod(0o644)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


class Store:
    """The results and scores in one folder, for one protocol.

    Parameters
    ----------
    folder : Path
        Folder of the files; created when needed.
    settings : Settings
        Settings of the protocol, which are part of every fingerprint.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings

    def key(self, method_settings: Any) -> str:
        """Return the fingerprint of a method under this protocol."""
        settings = {STORED_NAMES.get(name, name): value for name, value in asdict(self.settings).items()}
        return fingerprint(settings, method_settings)

    def tasks(self) -> list[Task]:
        """Return the tasks that have results, sorted by seed."""
        found = [path.stem.split("-") for path in self.folder.glob("[!.]*-*-*.json")]
        return sorted((Task(a, b, int(seed)) for a, b, seed in found), key=lambda task: task.seed)

    def results(self, task: Task) -> dict[str, Result]:
        """Return all results of a task by method, with any fingerprint."""
        path = self._path(task, "json")
        if not path.exists():
            return {}
        return dict(json.loads(path.read_text(encoding="utf-8")))

    def add(self, task: Task, method: str, key: str, result: Result) -> None:
        """Write one method's result and keep the others."""
        results = self.results(task) | {method: {"key": key, **result}}
        lines = [f"{json.dumps(name)}: {json.dumps(results[name])}" for name in sorted(results)]
        with replaced(self._path(task, "json")) as path:
            path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    def scores(self, task: Task) -> Scored | None:
        """Return the scores of a task, or None if they are missing, damaged or from other settings."""
        path = self._path(task, "npz")
        if not path.exists():
            return None
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                if str(stored["key"]) != self.key("scores"):
                    return None
                splits = {
                    name: Split(stored[f"{name}_scores"], stored[f"{name}_sex"], stored[f"{name}_label"])
                    for name in ("fit", "validation", "test")
                }
                return Scored(
                    task,
                    **splits,
                    train_sex=stored["train_sex"],
                    train_label=stored["train_label"],
                    train_seconds=float(stored["train_seconds"]),
                    chosen=json.loads(str(stored["chosen"])),
                )
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None

    def add_scores(self, scored: Scored) -> None:
        """Write the scores of a task."""
        arrays: dict[str, Any] = {
            "key": self.key("scores"),
            "train_sex": scored.train_sex,
            "train_label": scored.train_label,
            "train_seconds": scored.train_seconds,
            "chosen": json.dumps(scored.chosen),
        }
        for name in ("fit", "validation", "test"):
            split: Split = getattr(scored, name)
            arrays |= {
                f"{name}_scores": split.scores,
                f"{name}_sex": split.sex,
                f"{name}_label": split.label.astype(np.int8),
            }
        with replaced(self._path(scored.task, "npz")) as path:
            np.savez_compressed(path, **arrays)

    def _path(self, task: Task, kind: str) -> Path:
        folder = self.folder / "scores" if kind == "npz" else self.folder
        return folder / f"{task.data}-{task.classifier}-{task.seed}.{kind}"
