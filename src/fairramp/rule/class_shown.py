"""How a rule for several classes is printed: sentences, a table of its classes and groups, and notes."""

import math
from typing import Any

import numpy as np

from fairramp.core.cells import cell_columns
from fairramp.core.curve import Booleans
from fairramp.core.headline import ends, joined, judged, with_small
from fairramp.core.labels import show_label
from fairramp.core.table import Table, name_column, printed
from fairramp.core.words import exact_points, percent, points


class ClassShown:
    """The methods of a rule for several classes that show it."""

    def table(self: Any) -> Table:
        """One row per class and group: fit rows, offset, and the rate of the class before and after.

        For a rule that uses group probabilities, `n` is the expected number of people.

        Examples
        --------
        >>> from fairramp import ClassRule
        >>> print(ClassRule(("A", "B"), ("low", "high"), ((0.0, 0.0), (0.05, -0.05))).table())
        class  group   offset
        -----  -----  -------
        low    A       0.0000
        low    B       0.0500
        high   A       0.0000
        high   B      -0.0500
        """
        n_classes, n_groups, record = len(self.classes), len(self.groups), self.record
        headings = {
            "stratum": " / ".join(self.columns.strata or ["stratum"]),
            "group": " / ".join(self.columns.groups or ["group"]),
        }
        columns: dict[str, Any] = {
            "class": name_column([label for label in self.classes for _ in self.groups]),
            **cell_columns(self.groups * n_classes, stratified=self.stratified),
        }
        if record:
            columns["n"] = np.tile(record.rows, n_classes)
        columns["offset"] = np.array(self.offsets).T.ravel()
        if record:
            columns["rate_before"] = np.array(record.before).T.ravel()
            columns["rate_after"] = np.array(record.after).T.ravel()
        assert len(columns["offset"]) == n_classes * n_groups
        return Table(columns, self.decimals, headings, shares=("rate_before", "rate_after"))

    @property
    def decimals(self: Any) -> int:
        """Decimals of offsets: at least 4, and more if the ramp is narrow."""
        return max(4, 2 - math.floor(math.log10(self.ramp_width))) if self.ramp_width else 4

    @property
    def heading(self: Any) -> str:
        """The numbers of classes and groups, and the limit, in one line."""
        n = len(self.groups)
        first = f"fairramp rule for {len(self.classes):,} classes and {n:,} group{'s' if n > 1 else ''}"
        if self.keeps_own:
            return f"{first}: the classifier's decisions already meet the limit."
        goal = (
            f"rates at most {exact_points(self.max_gap)} apart" if self.max_gap else "equal rates of every class"
        )
        return f"{first}: {goal}{' within each stratum' if self.stratified else ''}."

    @property
    def keeps_own(self: Any) -> bool:
        """Whether these are the classifier's own decisions."""
        return bool(self.ramp_width == 0)

    @property
    def reached(self: Any) -> list[str]:
        """What the rule reached on its fit rows, in sentences."""
        record = self.record
        if record is None:
            return []
        rows = np.array(record.rows)
        keep = judged(rows, record.strata)

        def said(chosen: Booleans | None) -> str:
            before, after = record.gaps("before", chosen), record.gaps("after", chosen)
            worst, _ = ends(before)  # with two classes, both have the same gap
            names = f"class{'es' * (len(worst) > 1)} {joined([show_label(self.classes[c]) for c in worst])}"
            return f"{points(before.max())} before ({names}), {points(after.max())} after"

        first, both = said(keep), said(None)
        found = [f"Largest gap on the fit rows: {first}."]
        if first != both:
            found.append(f"{with_small(keep)}: {both}.")
        if not self.keeps_own:
            drawn = float(np.array(record.at_random) @ rows / max(rows.sum(), 1))
            found.append(f"Decided at random: {percent(drawn)}.")
        return found

    @property
    def notes(self: Any) -> list[str]:
        """Sentences that explain the offsets in the table."""
        if self.keeps_own:
            return []
        found = [
            "An offset is subtracted from the score of its class; the class with the largest result is chosen, "
            f"at random if results are closer than {self.ramp_width:.10g}."
        ]
        if self.mixes:
            found.append(
                "Each person's offsets are the mean of these offsets, weighted by the person's group "
                "probabilities. Rates are expected rates: measure them with the true groups, on other rows."
            )
        return found

    def _parts(self: Any) -> list[Table | str]:
        """The parts of its text: heading, table and notes."""
        return ["\n".join([self.heading, *self.reached]), self.table(), *self.notes]

    def __repr__(self) -> str:
        return printed(*self._parts())
