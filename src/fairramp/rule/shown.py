"""How a rule is printed: a sentence on its rates, a table of its groups, and notes."""

import math
from typing import Any

import numpy as np

from fairramp.core.bands import holds
from fairramp.core.cells import cell_columns, stratum_index
from fairramp.core.events import SELECTION
from fairramp.core.ramps import OFFSETS, Ramp
from fairramp.core.table import Table, printed
from fairramp.core.words import NOTHING, number, percent


def placed(rule: Any, ramp: Ramp) -> str:
    """Where a ramp of a rule selects, in a few words."""
    if ramp.is_constant:
        return f"probability {percent(ramp.tie)} for everyone"
    return f"threshold {number(rule.threshold_of(ramp), 4)}"


class Shown:
    """The methods of a rule that show it."""

    def table(self: Any) -> Table:
        """One row per group: fit rows that count toward the rate, threshold, ramp, and rate before and after.

        The rate is the one that the rule makes equal; beside true or false positive rates, there are selection
        rates, and with equalized odds there are both kinds of error rates. If scores are percentages, so are
        thresholds and ramps. A ramp starts at the score where the probability of selection is 0 and ends where it
        is 1. A group whose members are all selected with the same probability has neither; the column
        `constant_probability` has that probability. If small groups borrowed from others, the column `borrowed`
        has the share of each group's weight that was borrowed.

        For a rule by each of several attributes, the column `shift` has what a value adds to the threshold. For a
        rule that uses group probabilities, `n` is the expected number of people.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> print(Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1))).table())
        group  threshold              ramp
        -----  ---------  ----------------
        A         0.5000  0.4500 to 0.5500
        B         0.4000  0.3500 to 0.4500
        """
        event, record = self.event, self.record
        ties = np.array([ramp.tie for ramp in self.ramps])
        headings = {
            "stratum": " / ".join(self.columns.strata or ["stratum"]),
            "group": "group" if self.mixes else " / ".join(self.columns.groups or ["group"]),
        }
        widths = np.array([ramp.width for ramp in self.ramps])
        hard, constant = widths == 0, np.isinf(widths)
        at_threshold = np.where(hard, ties, np.where(constant, np.nan, OFFSETS[self.ramp]))
        starts, ends = np.array([self.ends_of(ramp) for ramp in self.ramps]).T
        others = record.rates[SELECTION.name] if record and event.label is not None else None
        if others:
            headings["n"] = f"label {event.label}"
        rate_columns: dict[str, Any] = {}
        for part, found in record.compared if record else ():
            name = f"{part.name}_rate" if event.parts else "rate"
            rate_columns |= {f"{name}_before": found.before, f"{name}_after": found.after}
            rate_columns |= {} if found.is_exact else {f"{name}_error": found.error}
            for when in ("before", "after", "error"):
                headings |= {f"{name}_{when}": f"{part.short} {when}", f"selection_rate_{when}": f"rate {when}"}
        by_each = self.membership == "each"
        columns = {
            "n": record and (record.rows if event.parts else record.main.rows),
            "shift": np.array(self.thresholds) - self.threshold_of(self.base) if by_each else None,
            "threshold": None if by_each else np.array(self.thresholds),
            # For a ramp of positive width, the probability at the threshold depends on the kind of ramp.
            "probability_at_threshold": at_threshold if hard.any() else None,
            "ramp_from": None if by_each or (hard | constant).all() else starts,
            "ramp_to": None if by_each or (hard | constant).all() else ends,
            "constant_probability": np.where(constant, ties, np.nan) if constant.any() else None,
            **rate_columns,
            "selection_rate_before": others and others.before,
            "selection_rate_after": others and others.after,
            "borrowed": record and record.borrowed,
        }
        known = {name: values for name, values in columns.items() if values is not None}
        return Table(
            cell_columns(
                self.groups,
                stratified=self.parts is not None,
                outer="attribute" if by_each else "stratum",
            )
            | known,
            self.decimals,
            headings,
            shares=[name for name in known if "rate" in name or "probability" in name or name == "borrowed"],
        )

    @property
    def decimals(self: Any) -> int:
        """Decimals of thresholds and ramps: at least 4, and enough for both ends of any ramp to differ."""
        narrowest = min((ramp.width for ramp in self.ramps if 0 < ramp.width < math.inf), default=1.0)
        return max(4, 2 - math.floor(math.log10(narrowest)))

    @property
    def heading(self: Any) -> str:
        """The number of groups and their rates, in one line; without a record, the rates that are allowed."""
        n, record, event = len(self.groups), self.record, self.event
        rate = event.rate
        first = f"fairramp rule for {n:,} group{'s' if n > 1 else ''}"
        if record and self.is_hard and record.ramp_width > 0:
            return f"{first}: the classifier's decisions already meet the limit."
        if self.membership == "each":
            goal = f"{rate}s {self.band.words}" if self.band.is_open else f"equal {rate}s"
            names = ", ".join(name for name, _ in self.attributes)
            return f"{first}: {goal} by each of {names}, one by one."
        if self.stratified:
            goal = f"{rate}s {self.band.words}" if self.band.is_open else f"equal {rate}s"
            return f"{first}: {goal} within each of {int(stratum_index(self.groups)[-1]) + 1:,} strata."
        if event.parts:
            return f"{first}: {self._odds}."
        about = "about " if record and record.borrowed else ""
        low, high = (min(record.main.after), max(record.main.after)) if record else self._allowed
        if high - low <= NOTHING or (about and not self.band.is_open):
            level = high if record is None or not about else self.target_rate
            return f"{first}: a {rate} of {about}{percent(level)} in each."
        short = "" if event is SELECTION else f" ({event.short})"
        short = " (expected)" if self.membership == "probabilities" else short
        return f"{first}: {rate}s{short} from {about}{percent(low)} to {percent(high)}."

    @property
    def _odds(self: Any) -> str:
        """The true and the false positive rates of the groups, in a few words."""
        if self.record is None:
            return f"error rates {self.band.words}" if self.band.is_open else "equal error rates"
        found = []
        for event, rates in self.record.compared:
            low, high = min(rates.after), max(rates.after)
            reached = percent(high) if high - low <= NOTHING else f"from {percent(low)} to {percent(high)}"
            found.append(f"{event.rate}s {reached}")
        return ", ".join(found)

    @property
    def _allowed(self: Any) -> tuple[float, float]:
        """The lowest and the highest rate that the band allows."""
        low, high = self.band.edges(self.target_rate)
        return max(low, 0.0), min(high, 1.0)

    @property
    def reached(self: Any) -> list[str]:
        """What the rule reached on its fit rows, in sentences."""
        record = self.record
        if record is None:
            return []
        found = [record.gaps]
        if self.min_ratio is not None:
            found = [record.ratios, *found]
        if record.target in ("accuracy", "balanced_accuracy") and all(
            holds(self.band, np.array(rates.before), record.strata) for _, rates in record.compared
        ):
            what = str(record.target).replace("_", " ")
            found.append(
                f"The classifier's own decisions already meet the limit; the rule changes them for {what}."
            )
        if record.overall_rate is not None:
            found.append(f"Overall selection rate: {percent(record.overall_rate)}.")
        elif not isinstance(record.target, str) and self.band.is_open and not self.has_several_levels:
            low, high = map(percent, self._allowed)
            where = "the highest" if self.min_ratio is not None else "the middle"
            found.append(
                f"Allowed rates: {low} to {high}, because the target rate of {percent(record.target)} is {where}."
                " To choose the overall selection rate, set the overall rate instead."
            )
        return found

    @property
    def notes(self: Any) -> list[str]:
        """Sentences that explain the thresholds in the table."""
        unseen = [f"Groups not in the fit rows: {placed(self, self.pooled)}."] if self.pooled else []
        asked = self.record.notes(self.max_gap) if self.record else []
        return [*asked, *unseen, *self.mixing, *self.meaning.notes]

    @property
    def mixing(self: Any) -> list[str]:
        """How a person's threshold follows from those of the groups."""
        if self.membership == "probabilities":
            return [
                "Each person's threshold is the mean of these thresholds, weighted by the person's group "
                "probabilities. Rates are expected rates: measure them with the true groups, on other rows."
            ]
        if self.membership == "each":
            base = number(self.threshold_of(self.base), self.decimals)
            return [
                f"A person's threshold is {base} plus the shifts of the person's groups, one of each attribute. "
                "Intersections of attributes can still have different rates."
            ]
        return []

    def _parts(self: Any) -> list[Table | str]:
        """The parts of its text: heading, table and notes."""
        return ["\n".join([self.heading, *self.reached]), self.table(), *self.notes]

    def __repr__(self) -> str:
        return printed(*self._parts())
