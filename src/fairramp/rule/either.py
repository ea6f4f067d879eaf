"""Reading a rule file of either kind: for two classes, or for several."""

import contextlib
import json
import os
from pathlib import Path

from fairramp.rule.class_file import CLASS_FORMAT
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule


def load_either(path: str | os.PathLike[str]) -> Rule | ClassRule:
    """Read a rule of either kind; see `Stored.load`."""
    return (ClassRule if rule_format(path) == CLASS_FORMAT else Rule).load(path)


def rule_format(path: str | os.PathLike[str]) -> str | None:
    """The format that a file states, if it is JSON; readers check the rest."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        content = json.loads(Path(path).read_bytes())
        if isinstance(content, dict) and isinstance(content.get("format"), str):
            return str(content["format"])
    return None
