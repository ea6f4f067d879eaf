"""
Several attributes, one by one
==============================

With ``combine="each"``, rates are equal by sex and equal by race, but not in every intersection of both. The rule
has one shift per value instead of one threshold per intersection, and it can make decisions for intersections
that it never saw. On new people, its gaps are not smaller than those of a rule for intersections.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

data = fairramp.datasets.load_adult_scores()


def columns(rows=slice(None)):
    """The attributes of some rows."""
    return {"sex": data.sex[rows], "race": data.race[rows]}


# %%
# Shifts instead of thresholds
# ----------------------------

each = fairramp.fit_rule(data.score, columns(), combine="each", max_gap=0.02)
intersections = fairramp.fit_rule(data.score, columns(), max_gap=0.02)
print(each)

# %%
# What remains between intersections
# ----------------------------------
# The chart shows the selection rates of all intersections with approximate 95% confidence intervals. The first
# rule makes rates nearly equal by sex and by race; the second rule makes the rates of all intersections nearly
# equal.

cells = intersections.groups
members = [(data.sex == sex) & (data.race == race) for sex, race in cells]
cases = {
    "before": (data.score >= 0.5).astype(float),
    "each attribute": each.probabilities(data.score, columns()),
    "intersections": intersections.probabilities(data.score, columns()),
}
color_of = dict(zip(("Female", "Male"), GROUPS, strict=False))
fig, axes = plt.subplots(
    1, 3, figsize=(8.4, 4.2), sharex=True, sharey=True, layout="constrained"
)
for ax, (title, probability) in zip(axes, cases.items(), strict=True):
    rates = np.array([probability[m].mean() for m in members])
    for y, (rate, m) in enumerate(zip(rates, members, strict=True)):
        error = 1.96 * np.sqrt(rate * (1 - rate) / m.sum())
        color = COLORS["before"] if title == "before" else color_of[cells[y][0]]
        ax.errorbar(rate, y, xerr=error, fmt="o", color=color, elinewidth=1)
    ax.set_title(title, fontsize=10)
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.grid(axis="y", visible=False)
axes[0].set_yticks(range(len(cells)), [" / ".join(cell) for cell in cells])
axes[0].invert_yaxis()
axes[0].set_xlim(0, None)
fig.supxlabel("selection rate", fontsize=10)
plt.show()

# %%
# New people
# ----------
# On its fit rows, a rule for intersections leaves no gap anywhere. With few fit rows, this does not hold for new
# people. Fit both rules to 4,000 random rows, measure the gaps on the other 20,421, and repeat this twenty times.
# By sex or race, both rules have about the same gap. Between intersections, ``"each"`` has the larger gap,
# because it does not try to make their rates equal.

gaps: dict[str, list[tuple[float, float]]] = {"each": [], "intersections": []}
with warnings.catch_warnings():
    # Groups with fewer than 30 rows trigger a warning.
    warnings.simplefilter("ignore", fairramp.FairrampWarning)
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(data.score))
        fit, new = order[:4000], order[4000:]
        for combine, found in gaps.items():
            rule = fairramp.fit_rule(
                data.score[fit],
                columns(fit),
                combine=combine,
                unseen_group="original",
            )
            audit = fairramp.audit(
                data.score[new], columns(new), rule=rule, combine="each"
            )
            found.append((audit.gap, audit.intersections.gap))
for combine, found in gaps.items():
    by_one, by_both = 100 * np.mean(found, axis=0)
    print(
        f"{combine:13} mean gap on new rows: by sex or race {by_one:4.1f} points, "
        f"between intersections {by_both:4.1f} points"
    )
