"""
Conditional parity: equal rates within departments
==================================================

With ``strata=``, women and men have the same selection rate *within* each department. An overall gap of 12.7
percentage points remains, because more women than men apply to the department that accepts few people. Equalizing
the overall rates instead would favor women in both departments. The applications are simulated.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

rng = np.random.default_rng(0)
n = 12_000
sex = rng.choice(["f", "m"], n)
to_arts = rng.random(n) < np.where(sex == "f", 0.7, 0.3)
department = np.where(to_arts, "arts", "engineering")
# Arts accepts few people, and the model underrates women in engineering.
talent = rng.normal(size=n) - np.where(to_arts, 1.1, 0.0)
bias = 0.35 * ((sex == "f") & ~to_arts)
score = 1 / (1 + np.exp(-1.5 * (talent - bias)))

# %%
# Compare the classifier with two rules: equal rates overall, and equal rates within departments.

overall = fairramp.fit_rule(score, sex)
within = fairramp.fit_rule(score, sex, strata=department)
print(within)

before = (score >= 0.5).astype(float)
after = {
    "equal overall": overall.probabilities(score, sex),
    "equal within departments": within.probabilities(
        score, sex, strata=department
    ),
}


def rate(probability, who, where):
    """Selection rate of a sex in a department, or overall."""
    there = where == "overall" or department == where
    return probability[(sex == who) & there].mean()


# %%

places = ["arts", "engineering", "overall"]
fig, axes = plt.subplots(
    1, 2, figsize=(7.2, 3.4), sharey=True, layout="constrained"
)
for ax, (title, probability) in zip(axes, after.items(), strict=True):
    for shift, who, name, color in (
        (-0.2, "f", "women", GROUPS[0]),
        (0.2, "m", "men", GROUPS[1]),
    ):
        x = np.arange(3) + shift
        ax.bar(
            x,
            [rate(probability, who, place) for place in places],
            0.38,
            color=color,
            label=f"{name}, after",
        )
        ax.hlines(
            [rate(before, who, place) for place in places],
            x - 0.19,
            x + 0.19,
            color=COLORS["before"],
            linewidth=3,
            label="before" if who == "m" else None,
        )
    ax.set_title(title, fontsize=10)
    ax.set_xticks(range(3), places)
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set_axisbelow(True)
    ax.grid(axis="x", visible=False)
axes[0].set_ylabel("selection rate")
fig.legend(
    *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3
)
plt.show()

# %%
# Equal overall rates favor women in both departments. Equal rates within departments leave an overall gap,
# because women and men apply to different departments. Numbers alone cannot decide which of the two rules is
# fair.

print("men's rate minus women's, in points")
for title, probability in {"before": before, **after}.items():
    print(f"{title:24}", end="")
    for place in places:
        gap = rate(probability, "m", place) - rate(probability, "f", place)
        print(f"  {place} {round(100 * gap, 1) + 0.0:+5.1f}", end="")
    print()
