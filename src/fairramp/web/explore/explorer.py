"""The rows in memory, and the rule at each move.

Nothing is remembered about a browser: each request says which columns and settings it means, so two browsers at
once cannot mix.
"""

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairramp.data.inputs import input_files
from fairramp.errors import FairrampError, FairrampWarning, refuse_if
from fairramp.fit.direction import warn_direction
from fairramp.fit.settings import Settings
from fairramp.rule.rule import Rule
from fairramp.show.report.content import Content
from fairramp.show.report.live import LiveRows, live_charts, live_parts
from fairramp.web.explore.asked import Choice, told

#: Reads the columns of a choice from the file: scores, groups and labels.
Reader = Callable[[Choice], dict[str, Any]]
#: Most choices of columns whose rows are kept.
_KEPT = 2
#: Most groups of a column in which most rows have a value of their own.
_GROUPS = 50
_CHANGED = "{data} has changed since it was read; reload the page to read it again"


@dataclass
class Kept:
    """The rows of a choice of columns, by direction, and their charts, by what these depend on."""

    stamp: list[tuple[Any, ...]]
    rows: dict[bool, LiveRows]
    charts: dict[str, dict[str, Any]] = field(default_factory=dict)


class Explorer:
    """The rules that can be found for one file."""

    def __init__(self, data: str, read: Reader) -> None:
        self.data = data
        self._read = read
        self._kept: dict[Choice, Kept] = {}
        self._reading = threading.Lock()

    @property
    def source(self) -> str:
        """The name of the file without its folder."""
        return os.path.basename(self.data.rstrip("/"))

    def move(self, choice: Choice, settings: Settings, drawn: str, decision: str | None) -> dict[str, Any]:
        """The rule at a move, as parts of the page; charts are left out if the page has `drawn` them."""
        kept = self._rows(choice, settings)
        content = self._content(kept, settings, decision)
        key = f"{settings.criterion} {settings.higher_is_better} {choice}"
        found = live_parts(content) | {"charts": None, "key": key}
        if drawn != key:
            if key not in kept.charts:
                kept.charts[key] = live_charts(content)
            found["charts"] = kept.charts[key]
        largest = content.before.gap if content.before.gap == content.before.gap else 1.0
        lowest, highest = settings.meaning.score_range
        return found | {
            "reach": largest,
            "cutoff": content.settings["cutoff"],
            "range": [lowest, highest] if max(-lowest, highest) < float("inf") else None,
            "rows": content.rows,
            "warnings": self._warnings(kept, settings),
        }

    def _warnings(self, kept: Kept, settings: Settings) -> list[str]:
        """What the rows say about the choice of columns, such as that the direction is probably the other one."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FairrampWarning)
            warn_direction(kept.rows[settings.higher_is_better].sample)
        return [told(one.message) for one in caught if isinstance(one.message, FairrampWarning)]

    def rule(self, choice: Choice, settings: Settings) -> Rule:
        """The rule at a move."""
        return self._rows(choice, settings).rows[settings.higher_is_better].fit(settings)

    def _content(self, kept: Kept, settings: Settings, decision: str | None) -> Content:
        rows = kept.rows[settings.higher_is_better]
        return rows.content(settings, decision=decision, source=self.source)

    def _rows(self, choice: Choice, settings: Settings) -> Kept:
        """The rows of a choice, read once; refused if the file has changed since then."""
        stamp, meaning = self.stamp(), settings.meaning
        with self._reading:
            kept = self._kept.get(choice)
            if kept is not None and kept.stamp != stamp:
                del self._kept[choice]
                raise FairrampError(_CHANGED, data=self.data)
            if kept is None:
                found = self._read(choice)
                refuse_if(self.stamp() != stamp, _CHANGED, data=self.data)
                rows = LiveRows.of(found["scores"], found["groups"], found["labels"], meaning, choice.score)
                _check_groups(rows, choice.group)
                while len(self._kept) >= _KEPT:
                    del self._kept[next(iter(self._kept))]
                kept = self._kept[choice] = Kept(stamp, {meaning.higher_is_better: rows})
            if meaning.higher_is_better not in kept.rows:
                kept.rows[meaning.higher_is_better] = kept.rows[not meaning.higher_is_better].turned(meaning)
        return kept

    def stamp(self) -> list[tuple[Any, ...]]:
        """What changes with the file: sizes and times."""
        try:
            found = [(path, os.stat(path)) for path in input_files(self.data)]
        except OSError as error:
            raise FairrampError("{data} cannot be read: {why}", data=self.data, why=error.strerror) from None
        return [(path, s.st_size, s.st_mtime_ns, s.st_ino) for path, s in found]


def _check_groups(rows: LiveRows, column: str) -> None:
    """Refuse a column that identifies people: it would take long and compare nothing."""
    n, people = len(rows.sample.groups.labels), len(rows.sample)
    refuse_if(
        n > max(_GROUPS, people / 2),
        "{group} {column!r} has {n:,} different values in {people:,} rows, which looks like an id; choose a "
        "column in which many rows have the same value",
        column=column,
        n=n,
        people=people,
    )
