"""Fit every criterion on the same rows, measure it on others, and write docs/guide/side-by-side.md.

python -m scripts.criteria_page           write the page
python -m scripts.criteria_page draw      write the page and draw its two pictures (needs matplotlib)

Rates and people are counted here with NumPy; only the rules and the intervals come from the library.
"""

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

import fairramp
from fairramp.core.intervals import gap_interval, wilson_interval
from fairramp.core.words import percent, points, with_interval

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "side-by-side.md"
FITTED = 12_000  # rows; the others measure
CONFIDENCE = 0.95
Z = 1.959964
GROUPS = {"Female": "women", "Male": "men"}
#: Rates of a group: the name, and the label of the rows that count; None for all rows.
RATES = {"selection": None, "TPR": 1, "FPR": 0}

data = fairramp.datasets.load_adult_scores()


@dataclass(frozen=True)
class Setting:
    """What is passed to `fit_rule`, and which rates it makes equal."""

    code: str
    short: str
    equal: tuple[str, ...] = ("selection",)
    settings: dict[str, Any] = field(default_factory=dict)
    strata: bool = False

    @property
    def needs_labels(self) -> bool:
        """Whether the fit needs labels."""
        return bool({"criterion", "target_rate"} & self.settings.keys())


_ODDS = {"criterion": "equalized_odds"}
SETTINGS = [
    Setting('`"parity"` (the default)', "parity"),
    Setting(
        '`"parity"`, `target_rate="accuracy"`', "parity, target: accuracy", settings={"target_rate": "accuracy"}
    ),
    Setting(
        '`"parity"`, `target_rate="base_rate"`',
        "parity, target: base rate",
        settings={"target_rate": "base_rate"},
    ),
    Setting('`"parity"`, `overall_rate=0.19`', "parity, overall rate 19%", settings={"overall_rate": 0.19}),
    Setting('`"parity"`, `max_gap=0.05`', "parity, gap of 5 points", settings={"max_gap": 0.05}),
    Setting('`"parity"`, `min_ratio=0.8`', "parity, ratio 0.8", settings={"min_ratio": 0.8}),
    Setting('`"parity"`, `strata=` race', "parity within each race", strata=True),
    Setting(
        '`"parity"`, `combine="each"`, sex and race', "parity by sex and by race", settings={"combine": "each"}
    ),
    Setting('`"equal_opportunity"`', "equal opportunity", ("TPR",), {"criterion": "equal_opportunity"}),
    Setting('`"predictive_equality"`', "predictive equality", ("FPR",), {"criterion": "predictive_equality"}),
    Setting('`"equalized_odds"`', "equalized odds", ("TPR", "FPR"), _ODDS),
    Setting(
        '`"equalized_odds"`, `max_gap=0.05`',
        "equalized odds, gap of 5 points",
        ("TPR", "FPR"),
        _ODDS | {"max_gap": 0.05},
    ),
]
ITSELF = Setting("the classifier itself", "classifier itself", ())


@dataclass(frozen=True)
class Measured:
    """The probabilities of selection of the new people under one setting."""

    setting: Setting
    chances: Any

    def of(self, group: str, label: int | None = None) -> Any:
        """Which of the new people are of a group and, if it is given, have a label."""
        found = new("sex") == group
        return found if label is None else found & (new("label") == label)

    def rate(self, name: str, group: str) -> tuple[float, int]:
        """A rate of a group, and the number of rows it is computed from."""
        if name == "precision":
            mine, h = self.of(group), self.chances
            return float(h[self.of(group, 1)].sum() / h[mine].sum()), round(float(h[mine].sum()))
        rows = self.of(group, RATES[name])
        return float(self.chances[rows].mean()), int(rows.sum())

    def limits(self, name: str, group: str) -> tuple[float, float]:
        """Confidence limits of a rate."""
        rate, n = self.rate(name, group)
        lower, upper = wilson_interval(np.array([rate]), np.array([n]), CONFIDENCE)
        return float(lower[0]), float(upper[0])

    def gap(self, name: str) -> str:
        """The gap between women and men; within races, the largest gap, if that is what is made equal."""
        cells = [self.of(group, RATES[name]) for group in GROUPS]
        strata = None
        if self.setting.strata:
            races = sorted(set(new("race")))
            cells = [(new("race") == race) & cell for race in races for cell in cells]
            strata = np.repeat(np.arange(len(races)), 2)
        rates = np.array([self.chances[cell].mean() for cell in cells])
        rows = np.array([cell.sum() for cell in cells], dtype=float)
        gap = max(abs(np.diff(rates[i : i + 2])[0]) for i in range(0, len(rates), 2))
        return with_interval(*map(points, (gap, *gap_interval(rates, rows, CONFIDENCE, strata))))

    @cached_property
    def right(self) -> Any:
        """The probability that each person's decision agrees with the label."""
        return np.where(new("label") == 1, self.chances, 1 - self.chances)

    @property
    def accuracy(self) -> float:
        """The share of decisions that agree with the label."""
        return float(self.right.mean())

    @property
    def change(self) -> tuple[float, float]:
        """How much the accuracy changes, and the half width of its interval; the same people decide both."""
        difference = self.right - itself().right
        return float(difference.mean()), Z * float(difference.std() / np.sqrt(len(difference)))

    def moved(self, group: str, label: int) -> tuple[float, float]:
        """Expected numbers of people whose decision changes from no to yes, and from yes to no."""
        rows, own = self.of(group, label), itself().chances == 1
        return float(self.chances[rows & ~own].sum()), float((1 - self.chances[rows & own]).sum())

    @property
    def changed(self) -> float:
        """Expected number of people whose decision changes."""
        return sum(sum(self.moved(group, label)) for group in GROUPS for label in (0, 1))

    @property
    def drawn(self) -> float:
        """Share of people who are decided at random."""
        return float(((self.chances > 0) & (self.chances < 1)).mean())


def old(name: str) -> Any:
    """A column of the rows that rules are fitted on."""
    return getattr(data, name)[:FITTED]


def new(name: str) -> Any:
    """The same column of the rows that measure."""
    return getattr(data, name)[FITTED:]


@cache
def itself() -> Measured:
    """The classifier's own decisions."""
    return Measured(ITSELF, (new("score") >= 0.5).astype(float))


@cache
def everything() -> tuple[Measured, ...]:
    """The classifier itself and all settings."""
    found = [itself()]
    for one in SETTINGS:
        each = "combine" in one.settings
        groups, mine = ({"sex": of("sex"), "race": of("race")} if each else of("sex") for of in (old, new))
        strata, where = ({"strata": old("race")}, {"strata": new("race")}) if one.strata else ({}, {})
        labels = old("label") if one.needs_labels else None
        rule = fairramp.fit_rule(old("score"), groups, labels, **one.settings, **strata)
        found.append(Measured(one, rule.probabilities(new("score"), mine, **where)))
    return tuple(found)


# The page ----------------------------------------------------------------------------------------


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; columns after the first are numbers."""
    marks = ["---", *["---:"] * (len(headings) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, marks, *rows))


def rates_table() -> str:
    """All rates of women and men; those that are made equal in bold."""
    rows = []
    for one in everything():
        cells = []
        for name in (*RATES, "precision"):
            shown = [percent(one.rate(name, group)[0]) for group in GROUPS]
            cells += [f"**{text}**" if name in one.setting.equal else text for text in shown]
        rows.append([one.setting.code, *cells])
    names = ("selected", "TPR", "FPR", "precision")
    return table(["setting", *(f"{name}, {who}" for name in names for who in GROUPS.values())], rows)


def cost_table() -> str:
    """The gap that is left, and what it costs."""
    rows = []
    for one in everything():
        names = one.setting.equal or ("selection",)
        gaps = "; ".join(f"{name.replace('selection', 'selected')} {one.gap(name)}" for name in names)
        more = (
            ", within a race" if one.setting.strata else ", by sex" if "combine" in one.setting.settings else ""
        )
        mean, half = one.change
        change = "–" if one is itself() else with_interval(*map(signed, (mean, mean - half, mean + half)))
        rows.append([one.setting.code, gaps + more, percent(one.accuracy), change, f"{one.changed:,.0f}"])
        rows[-1].append(percent(one.drawn))
    headings = ("setting", "gap on new rows (95% CI)", "accuracy", "change, in points (95% CI)")
    return table([*headings, "decisions changed", "at random"], rows)


def signed(share: float) -> str:
    """A difference in points, with its sign."""
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def people_table() -> str:
    """Who gets another decision: from no to yes, and from yes to no."""
    rows = []
    for one in everything()[1:]:
        cells = []
        for label in (1, 0):
            for group in GROUPS:
                to_yes, to_no = one.moved(group, label)
                cells.append(f"+{to_yes:,.0f} −{to_no:,.0f}")
        rows.append([one.setting.code, *cells])
    return table(["setting", *(f"{who}, label {label}" for label in (1, 0) for who in GROUPS.values())], rows)


def words() -> dict[str, str]:
    """The numbers in the text, by name."""
    named = {one.setting.short: one for one in everything()}
    found = {"rates_table": rates_table(), "cost_table": cost_table(), "people_table": people_table()}
    found |= {"fitted": f"{FITTED:,}", "measured": f"{len(new('sex')):,}"}
    for group, who in GROUPS.items():
        n, positive = (int(itself().of(group, label).sum()) for label in (None, 1))
        found |= {f"n_{who}": f"{n:,}", f"positive_{who}": f"{positive:,}", f"base_{who}": percent(positive / n)}
        for name in ("selection", "TPR"):
            halves = [(high - low) / 2 for low, high in (one.limits(name, group) for one in everything())]
            found[f"{name}_half_{who}"] = f"{100 * max(halves):.1f}"
    # Such as parity_women_1_yes: how many women with label 1 change to yes.
    keys = {
        "own": "classifier itself",
        "parity": "parity",
        "base": "parity, target: base rate",
        "gap": "parity, gap of 5 points",
        "opportunity": "equal opportunity",
        "predictive": "predictive equality",
        "odds": "equalized odds",
        "odds_gap": "equalized odds, gap of 5 points",
    }
    for key, short in keys.items():
        one = named[short]
        found[f"{key}_random"] = percent(one.drawn)
        for group, who in GROUPS.items():
            found |= {
                f"{key}_{who}_{name}": percent(one.rate(name, group)[0]) for name in ("selection", "precision")
            }
            for label in (0, 1):
                both = zip(("yes", "no"), one.moved(group, label), strict=True)
                found |= {f"{key}_{who}_{label}_{to}": f"{n:,.0f}" if round(n) else "no" for to, n in both}
    return found


TEXT = """
# Criteria side by side

This page applies every criterion to the same {measured} people and shows what each one makes equal, what it
costs, whom it helps and whom it harms. No criterion is best for every decision. [Which criterion?](criteria.md)
explains what each one is for.

The scores that come with the package predict who earns more than $50,000 (label 1). Think of a yes as a
benefit, such as a loan, and of label 1 as a loan that would be repaid. All rules are fitted on {fitted} rows
and measured on the other {measured}: {n_women} women, of whom {base_women} have label 1, and {n_men} men, of
whom {base_men} do. Because these shares differ, selection rates and error rates can all be equal only if people
with label 1 and people with label 0 are selected at the same rate. Numbers of people are averages over the
random draws.

## What each one makes equal

![Four panels with the selection rate, the true positive rate, the false positive rate and the precision of
women and men, one row per setting. Two dots one above the other mean equal rates. Each criterion brings the
dots together in its own panel and leaves them apart in others. No setting is designed to equalize
precision.](../images/side-by-side-rates.svg)

*Selected* is the selection rate: the share of a group that gets a yes. *TPR*, the true positive rate, is this
share among people with label 1, and *FPR*, the false positive rate, is this share among people with label 0.
*Precision* is the share with label 1 among those who get a yes. Rates in bold are those that a setting makes
equal or keeps within a gap or a ratio. This holds exactly on the fit rows and approximately on these new rows.

{rates_table}

The bars in the picture show 95% confidence intervals. The widest intervals for selection rates are
±{selection_half_women} points for women and ±{selection_half_men} for men; those for true positive rates are
±{TPR_half_women} and ±{TPR_half_men}, because only {positive_women} women and {positive_men} men have label 1.

## What each one costs

{cost_table}

*Change* is the accuracy minus the accuracy of the classifier itself, for the same people. No setting is more
accurate than the classifier itself, because the classifier's decisions are already close to the most accurate
ones possible. Equal opportunity costs little here because it changes few decisions. Accuracy counts all errors
equally. If a wrong yes costs more than a wrong no, pass [`costs`](choosing.md#the-target-rate).

## Whom each one helps and whom it harms

![One row per setting and four panels: women and men with label 1, women and men with label 0. Bars to the right
are people whose decision changes from no to yes, bars to the left from yes to no. Under parity, many men with
label 1 lose a yes, and fewer women with label 1 gain one. Under equal opportunity, few decisions
change.](../images/side-by-side-people.svg)

*+* is the number of people whose decision changes from no to yes, and *−* the number whose decision changes
from yes to no, compared with the classifier itself. Among people with label 1, a new yes corrects an error, and
a new no is an error. Among people with label 0, it is the other way around. Whether a wrong yes helps or harms
the person depends on the decision: a loan that cannot be repaid may do harm; an invitation to an interview may
not.

{people_table}

- **Parity** gives a yes to {parity_women_1_yes} women with label 1 whom the classifier rejects, and to
  {parity_women_0_yes} women with label 0. It rejects {parity_men_1_no} men with label 1 whom the classifier
  selects, and {parity_men_0_no} men with label 0. Precision among women falls from {own_women_precision} to
  {parity_women_precision}.
- **The target rate determines who loses.** With the default target, {parity_men_1_no} men with label 1 lose a
  yes. With `target_rate="base_rate"`, {base_men_1_no} do, because {base_men_selection} of all men are selected
  instead of {parity_men_selection}. In return, {base_women_0_yes} women with label 0 gain a yes, instead of
  {parity_women_0_yes}.
- **Limiting the gap or the ratio** changes fewer decisions than making the rates equal does. With
  `max_gap=0.05`, {gap_women_1_yes} women with label 1 gain a yes, and {gap_men_1_no} men with label 1 lose one.
- **Equal opportunity** changes little here, because the true positive rates are only a few points apart to begin
  with: {opportunity_women_1_yes} women with label 1 gain a yes, and {opportunity_men_1_no} men with label 1
  lose one. Selection rates remain far apart.
- **Predictive equality** takes a wrong yes from {predictive_men_0_no} men and gives one to
  {predictive_women_0_yes} women. At the same time, {predictive_women_1_yes} women with label 1 gain a yes, and
  {predictive_men_1_no} men with label 1 lose one.
- **Equalized odds** takes a yes from people in both groups: {odds_women_1_no} women and {odds_men_1_no} men
  with label 1 lose one, and {odds_women_1_yes} women with label 1 gain one. The scores predict women's labels
  better than men's, so decisions about women become less accurate on purpose, and {odds_random} of all
  decisions are random. With `max_gap=0.05`, this share is {odds_gap_random}; {odds_gap_men_1_no} men with label
  1 lose a yes, and {odds_gap_women_1_yes} women with label 1 gain one.

## Notes on some settings

- **Strata:** with `strata`, parity becomes *conditional parity*: it compares women and men within each stratum,
  such as a department, and accepts differences between strata. The example data has no departments, so race
  stands in for them, for illustration only. Some races have few people in the data, so the interval for the
  largest gap within a race is wide. Every criterion works [within strata](strata.md).
- **Several attributes:** `combine="each"` makes rates equal by sex and by race, one at a time. Rates of
  intersections can still differ. See [several attributes](several-attributes.md).
- **Without the group:** with [group probabilities](without-groups.md), a rule makes expected selection rates
  equal. How close the rates by true group get depends on the probabilities, so the tables have no row for this
  setting.
- **More than two classes:** [`fit_class_rule`](classes.md) makes the rate of every class equal across
  groups. It has no criterion for error rates.

## Limits

- **Each criterion is one narrow notion of fairness.** Meeting one does not make a decision fair, and the
  criteria generally cannot all be met at once. None of them is a legal standard.
- **This is one dataset and one classifier.** On other data, the costs can rank differently, and different
  people can gain and lose. The example shows what to look at, not what to choose.
- **Labels are taken as given.** If they are biased, so are the error rates and accuracies on this page, and the
  rules that were fitted with labels. See [where labels come from](labels.md#where-labels-come-from).
- **Every criterion uses the group, or its probability, in decisions.** In some places and for some decisions,
  this is restricted or unlawful: see [when not to use it](when-not.md).

## Do the same with your data

Fit on some rows, and audit each rule on the others. This code prints rates, errors, gaps and changed decisions:

```python
import fairramp

data = fairramp.datasets.load_adult_scores()
columns = (data.score, data.sex, data.label)  # yours go here
fit_rows = [column[:12000] for column in columns]
new_rows = [column[12000:] for column in columns]
for criterion in ("parity", "equal_opportunity", "equalized_odds"):
    rule = fairramp.fit_rule(*fit_rows, criterion=criterion)
    print(criterion, fairramp.audit(*new_rows, rule=rule), sep="\\n")
```

The program [All criteria at once](../../examples/gallery/plot_19_all_criteria.py) also charts whose decisions
change. To change the settings by hand and see the effect, open the [explorer](explore.md).
"""


def page() -> str:
    """The text of the page, with lines of at most 120 characters."""
    text = TEXT.strip().format(**words())
    code = text[text.index("```") : text.rindex("```") + 3]
    parts = [part if part in code else laid_out(part) for part in text.split("\n\n")]
    return "\n\n".join(parts) + "\n"


def laid_out(part: str) -> str:
    """Wrap a paragraph or the items of a list; other parts, such as tables, stay as they are."""
    if part.startswith(("#", "|", "```")):
        return part
    if part.startswith("!["):
        return part.replace("\n", " ")
    if part.startswith("- "):
        return "\n".join(filled(item, "- ", "  ") for item in part[2:].split("\n- "))
    return filled(part)


def filled(text: str, first: str = "", others: str = "") -> str:
    """Wrap a paragraph."""
    wrap = textwrap.TextWrapper(120, first, others, break_long_words=False, break_on_hyphens=False)
    return wrap.fill(" ".join(text.split()))


# Pictures ----------------------------------------------------------------------------------------


def draw() -> None:
    """Draw the rates of all settings, and the people whose decision changes."""
    # Sets the style of all pictures.
    from scripts.make_doc_pictures import BEFORE, COLORS, LIGHT, plt, save

    every, tinted = everything(), "#eef2f7"
    ys = -np.arange(len(every))

    panels = {"selection": "selected", "TPR": "TPR", "FPR": "FPR", "precision": "precision"}
    fig, axes = plt.subplots(1, 4, figsize=(9.2, 4.6), sharey=True)
    for ax, (name, title) in zip(axes, panels.items(), strict=True):
        for y, one in zip(ys, every, strict=True):
            if name in one.setting.equal:
                ax.axhspan(y - 0.45, y + 0.45, color=tinted, zorder=0)
            for group, lift in (("Female", 0.12), ("Male", -0.12)):
                ax.plot(one.limits(name, group), [y + lift] * 2, color=COLORS[group], linewidth=1.5, zorder=2)
                ax.plot(one.rate(name, group)[0], y + lift, "o", color=COLORS[group], markersize=5, zorder=3)
        ax.set_title(title, fontsize=10)
        ax.set(
            xlim=(0, None), ylim=(ys[-1] - 0.6, 0.6), yticks=ys, yticklabels=[one.setting.short for one in every]
        )
        ax.xaxis.set_major_locator(plt.MaxNLocator(4))
        ax.xaxis.set_major_formatter("{x:.0%}")
        ax.tick_params(axis="y", length=0, labelcolor="#1b1f24")
        ax.grid(axis="x", color=LIGHT, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.spines["left"].set_visible(False)
    keys = [plt.Line2D([], [], marker="o", color=COLORS[group], label=who) for group, who in GROUPS.items()]
    keys.append(plt.Rectangle((0, 0), 1, 1, color=tinted, label="made equal, or limited"))
    fig.legend(handles=keys, loc="outside lower center", ncols=3, fontsize=9)
    save(fig, "side-by-side-rates.svg")

    fig, axes = plt.subplots(1, 4, figsize=(9.2, 4.4), sharey=True, sharex=True)
    panel = [(group, label) for label in (1, 0) for group in GROUPS]
    most = max(max(one.moved(*where)) for one in every for where in panel)
    for ax, (group, label) in zip(axes, panel, strict=True):
        ax.axvline(0, color=BEFORE, linewidth=1)
        for y, one in zip(ys[:-1], every[1:], strict=True):
            for n, sign in zip(one.moved(group, label), (1, -1), strict=True):
                if round(n):
                    ax.barh(y, sign * n, height=0.62, color=COLORS[group], alpha=1 if sign > 0 else 0.35)
                    side = {"ha": "left" if sign > 0 else "right", "va": "center", "fontsize": 8}
                    ax.text(sign * (n + 12), y, f"{n:,.0f}", **side)
        ax.set_title(f"{GROUPS[group]}, label {label}", fontsize=10)
        ax.set(xlim=(-1.35 * most, 1.35 * most), ylim=(ys[-2] - 0.6, 0.6), xticks=[])
        ax.set(yticks=ys[:-1], yticklabels=[one.setting.short for one in every[1:]])
        ax.set_xlabel("to no  ←    → to yes", fontsize=9)
        ax.tick_params(axis="y", length=0, labelcolor="#1b1f24")
        ax.spines[["left", "bottom"]].set_visible(False)
    save(fig, "side-by-side-people.svg")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    if sys.argv[1:] == ["draw"]:
        draw()
