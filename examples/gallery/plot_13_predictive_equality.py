"""
Predictive equality: inspections without cause
==============================================

An office inspects firms whose score is at least 0.5. Here, a yes is a burden: a false positive is the inspection
of a firm that did nothing wrong. With ``criterion="predictive_equality"``, small and large firms that did nothing
wrong are inspected equally often. The firms are simulated.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

rng = np.random.default_rng(0)
n = 20_000
size = np.where(rng.random(n) < 0.7, "small", "large")
risk = rng.normal(size=n) - 1.2
violated = (rng.random(n) < 1 / (1 + np.exp(-2 * risk))).astype(int)
# The model sees fewer records of small firms and treats missing records as a sign of risk.
noise = np.where(size == "small", rng.normal(0.4, 0.6, n), 0.0)
score = 1 / (1 + np.exp(-2 * (risk + noise)))

# %%
# The labels come from inspections of firms that were drawn at random. If only suspicious firms had been
# inspected, the labels would repeat the suspicion.

rule = fairramp.fit_rule(score, size, violated, criterion="predictive_equality")
print(rule)

# %%
# The chart shows three rates of each group, before and after. The rule makes only the first one equal.

before = (score >= 0.5).astype(float)
after = rule.probabilities(score, size)
panels = {
    "inspected without cause\n(false positive rate)": violated == 0,
    "violations found\n(true positive rate)": violated == 1,
    "inspected\n(selection rate)": violated >= 0,
}
fig, axes = plt.subplots(1, 3, figsize=(7.2, 3.4), layout="constrained")
for ax, (title, counted) in zip(axes, panels.items(), strict=True):
    for i, group in enumerate(rule.groups):
        rows = counted & (size == group)
        rate = after[rows].mean()
        ax.bar(i, rate, 0.7, color=GROUPS[i])
        text = {"ha": "center", "va": "center", "color": ("white", "black")[i]}
        ax.text(i, rate / 2, f"{rate:.1%}", fontweight="bold", **text)
        ax.hlines(
            before[rows].mean(),
            i - 0.35,
            i + 0.35,
            color=COLORS["before"],
            linewidth=3,
            label="before",
        )
    ax.set_title(title, fontsize=10)
    ax.set_xticks([0, 1], [f"{group} firms" for group in rule.groups])
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(plt.MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.spines[["top", "right"]].set_visible(False)
handles, names = axes[0].get_legend_handles_labels()
fig.legend(handles[:1], names[:1], loc="outside lower center", frameon=False)
plt.show()

# %%
# The price: fewer small firms are inspected, so fewer of their violations are found. Better data on small firms
# could improve both rates.

for name, chance in {"before": before, "after": after}.items():
    found = chance[(size == "small") & (violated == 1)].mean()
    print(f"{name:6} {found:.1%} of the violations at small firms are found")
