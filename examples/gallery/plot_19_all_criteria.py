"""
All criteria at once: whom each one helps and whom it harms
===========================================================

This example applies every criterion to the same people. The rules are fitted on some rows and measured on other
rows. The scores in the package predict who earns more than $50,000 a year (label 1). Think of a yes as a benefit,
such as a loan, and of label 1 as a loan that would be repaid. No criterion is best for every decision.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
GROUPS = {"Female": "#0072B2", "Male": "#E69F00"}

data = fairramp.datasets.load_adult_scores()
columns = (data.score, data.sex, data.label)
fit_rows = [column[:12000] for column in columns]
score, sex, label = (column[12000:] for column in columns)

# %%
# Settings that make selection rates equal come first, then those that make error rates equal.

settings = {
    "parity": {},
    "parity, base rate": {"target_rate": "base_rate"},
    "parity, gap of 5 points": {"max_gap": 0.05},
    "parity, ratio 0.8": {"min_ratio": 0.8},
    "equal opportunity": {"criterion": "equal_opportunity"},
    "predictive equality": {"criterion": "predictive_equality"},
    "equalized odds": {"criterion": "equalized_odds"},
}
rules = {
    name: fairramp.fit_rule(*fit_rows, **setting)
    for name, setting in settings.items()
}

# %%
# Each criterion makes some rates equal and leaves others apart. None makes *precision* equal, the share of label
# 1 among the selected people. In each pair of rates, the first one is for women and the second one for men, in
# percent.

own = (score >= 0.5).astype(float)
chances = {"classifier itself": own} | {
    name: rule.probabilities(score, sex) for name, rule in rules.items()
}


def share(chance, rows):
    """Selection rate among these rows, in percent."""
    return 100 * chance[rows].mean()


print(
    f"{'':24} {'selected':>11} {'TPR':>11} {'FPR':>11} {'precision':>11}  accuracy"
)
for name, chance in chances.items():
    women, men = (sex == group for group in GROUPS)
    shown = [
        [share(chance, mine & rows) for mine in (women, men)]
        for rows in (label >= 0, label == 1, label == 0)
    ]
    precision = [
        100 * chance[mine & (label == 1)].sum() / chance[mine].sum()
        for mine in (women, men)
    ]
    accuracy = np.where(label == 1, chance, 1 - chance).mean()
    pairs = " ".join(f"{a:5.1f} {b:5.1f}" for a, b in (*shown, precision))
    print(f"{name:24} {pairs}  {accuracy:.1%}")

# %%
# The numbers are estimates. An audit shows their confidence intervals.

audit = fairramp.audit(score, sex, label, rule=rules["equal opportunity"])
print(audit.table(), audit.gaps(), sep="\n\n")

# %%
# Whose decision changes? Among people with label 1, a new yes corrects an error, and a new no is an error. Among
# people with label 0, it is the other way around.

panels = [(group, y) for y in (1, 0) for group in GROUPS]
fig, axes = plt.subplots(
    1, 4, figsize=(8.4, 3.2), sharey=True, sharex=True, layout="constrained"
)
for ax, (group, y) in zip(axes, panels, strict=True):
    rows = (sex == group) & (label == y)
    for place, chance in enumerate(list(chances.values())[1:]):
        to_yes = chance[rows & (own == 0)].sum()
        to_no = (1 - chance)[rows & (own == 1)].sum()
        ax.barh(-place, to_yes, color=GROUPS[group])
        ax.barh(-place, -to_no, color=GROUPS[group], alpha=0.35)
    ax.axvline(0, color="#8a8f98", linewidth=1)
    ax.set_title(f"{group}, label {y}", fontsize=10, loc="left")
    ax.set_xlabel("to no  ←   → to yes", fontsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)
axes[0].set_yticks([-place for place in range(len(rules))], list(rules))
plt.show()

# %%
# On other data, the results can differ. Each criterion is one narrow notion of fairness. The criteria generally
# cannot all be met at once, and using the group in decisions may be unlawful.
