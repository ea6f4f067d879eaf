"""
A ratio and a budget: one in ten is selected
============================================

With ``overall_rate=0.1``, exactly one in ten people is selected, averaged over the random draws. ``min_ratio``
limits how far apart the groups' rates are: 0.8 means that the lowest rate is at least 80% of the highest. The
scores ship with the package and predict who earns more than $50,000 a year.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

data = fairramp.datasets.load_adult_scores()
rule = fairramp.fit_rule(data.score, data.sex, min_ratio=0.8, overall_rate=0.1)
print(rule)

# %%
# A ratio of 0.8, or "four fifths," is a rule of thumb in some US employment cases. Meeting it is not the same as
# complying with the law. Fit rules for other ratios with the same budget, and see what share of the selected
# people earns more than $50,000.

ratios = np.linspace(0.1, 1, 19)
rates, precision = [], []
for ratio in ratios:
    rule = fairramp.fit_rule(
        data.score, data.sex, min_ratio=ratio, overall_rate=0.1
    )
    rates.append(rule.record.rates["selection"].after)
    chance = rule.probabilities(data.score, data.sex)
    precision.append(np.average(data.label, weights=chance))
for i in (0, 8, 14, 18):
    female, male = rates[i]
    print(
        f"min_ratio {ratios[i]:.1f}: Female {female:.1%}, Male {male:.1%}, {precision[i]:.1%} with label 1"
    )

# %%
# One in ten people is selected at every ratio. Up to a ratio of about 0.3, the limit changes nothing, because a
# single threshold already meets it.

fig, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
for color, group, line in zip(
    GROUPS[:2], rule.groups, np.transpose(rates), strict=True
):
    ax.plot(ratios, line, color=color, linewidth=2.5)
    ax.annotate(
        group,
        (ratios[3], line[3]),
        xytext=(0, 8),
        textcoords="offset points",
        fontweight="bold",
    )
ax.axhline(0.1, color="black", linestyle="--", linewidth=1)
ax.text(0.1, 0.102, "everybody together")
ax.set(xlabel="min_ratio", ylabel="selection rate", ylim=(0, 0.16))
ax.yaxis.set_major_formatter("{x:.0%}")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
