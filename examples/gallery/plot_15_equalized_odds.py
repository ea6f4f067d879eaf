"""
Equalized odds: both error rates, and who pays for them
=======================================================

The scores in the package predict who earns more than $50,000 a year (label 1), and they rank women more
accurately than men. With ``criterion="equalized_odds"``, both groups get the same true positive rate and the same
false positive rate. So that their rates match those of men, women get a wider *ramp*, the range of scores in
which people are decided at random.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

data = fairramp.datasets.load_adult_scores()
columns = (data.score, data.sex, data.label)
fit_rows = [column[:12000] for column in columns]
score, sex, label = (column[12000:] for column in columns)

# %%
# On the fit rows, both rates are equal to the last digit. Only the women's ramp is wide.

rule = fairramp.fit_rule(*fit_rows, criterion="equalized_odds")
print(rule)

# %%
# Allowing a gap of a few points restores most of the accuracy, which is measured here on rows that were not used
# in the fit. With a gap of 5 points, both ramps are narrow again.

rules = {
    max_gap: fairramp.fit_rule(
        *fit_rows, criterion="equalized_odds", max_gap=max_gap
    )
    for max_gap in (0, 0.02, 0.05)
}


def accuracy(chance):
    """Accuracy of decisions with these probabilities."""
    return np.where(label == 1, chance, 1 - chance).mean()


def gap(chance, counted):
    """Gap between the groups' rates, in points."""
    first, second = (
        chance[counted & (sex == group)].mean() for group in rule.groups
    )
    return 100 * abs(first - second)


own = (score >= 0.5).astype(float)
decided = {"classifier itself": own} | {
    f"max_gap={max_gap}": one.probabilities(score, sex)
    for max_gap, one in rules.items()
}
for name, chance in decided.items():
    print(
        f"{name:17}  accuracy {accuracy(chance):.1%}  gap between true positive rates"
        f" {gap(chance, label == 1):.1f}, false {gap(chance, label == 0):.1f} points"
    )
for max_gap, one in rules.items():
    female, male = (ramp.width for ramp in one.ramps)
    print(f"max_gap={max_gap}: ramp width Female {female:.2f}, Male {male:.2f}")

# %%
# What does this mean for people with a high score? The classifier selects everyone with a score of 0.8. The rule
# still selects all men with this score, but not all women, although the scores are more accurate for women. This
# is the price of equal error rates.

for max_gap, one in rules.items():
    chances = one.probabilities([0.3, 0.8] * 2, np.repeat(one.groups, 2))
    women, men = chances.reshape(2, 2)
    print(
        f"max_gap={max_gap}: score 0.3: women {women[0]:.0%}, men {men[0]:.0%};"
        f" score 0.8: women {women[1]:.0%}, men {men[1]:.0%}"
    )

# %%
# In every group, the probability of selection rises with the score.

fig, axes = plt.subplots(
    1, 3, figsize=(7.2, 2.8), sharey=True, layout="constrained"
)
x = np.linspace(0, 1, 1001)
for ax, (max_gap, one) in zip(axes, rules.items(), strict=True):
    ax.axvline(0.5, color=COLORS["before"], linestyle="--", linewidth=1.5)
    for color, group, ramp in zip(
        GROUPS[:2], one.groups, one.ramps, strict=True
    ):
        ax.plot(x, ramp.chance(x), color=color, linewidth=2.5, label=group)
    ax.set_title(f"max_gap={max_gap}", fontsize=10, loc="left")
    ax.set(xlabel="score", xlim=(0, 1))
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("probability of selection")
axes[0].legend(frameon=False, loc="upper left", fontsize=9)
plt.show()

# %%
# Use equalized odds only if you can justify making decisions about one group less accurate on purpose. It is
# better to improve the scores of the other group.
