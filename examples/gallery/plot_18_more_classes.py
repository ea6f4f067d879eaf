"""
More than two classes
=====================

A classifier predicts how many hours a week people work: under 40, 40 or over 40. Its rate of "over 40" is 31% for
men and 8% for women. A rule with one offset per class and group makes the rate of every class nearly equal across
groups. Labels are used only to measure accuracy.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

data = fairramp.datasets.load_adult_hours()
fit, new = np.array_split(
    np.random.default_rng(0).permutation(len(data.sex)), 2
)

# %%
# Offsets
# -------
# The rule subtracts the offsets of a person's group from the scores of the classes and chooses the class with the
# largest result. A positive offset makes a class less frequent in the group; a negative offset makes it more
# frequent.

rule = fairramp.fit_class_rule(
    data.probabilities[fit], data.sex[fit], classes=data.classes, max_gap=0.02
)
print(rule)

# %%
# Rates on new people
# -------------------
# The chart shows the other half of the people, on whom the rule was not fitted, with 95% confidence intervals.
# Gray points are rates of the classifier's own decisions.

found = fairramp.audit_classes(
    data.probabilities[new], data.sex[new], data.label[new], rule=rule
)
fig, axes = plt.subplots(
    1, 3, figsize=(8.4, 2.6), sharey=True, layout="constrained"
)
for ax, name in zip(axes, data.classes, strict=True):
    before, after = found.before.rates[name], found.after.rates[name]
    for y, color in enumerate(GROUPS[: len(found.groups)]):
        low, high = after.lower[y], after.upper[y]
        ax.plot(before.rate[y], y, "o", color=COLORS["before"])
        error = [[after.rate[y] - low], [high - after.rate[y]]]
        ax.errorbar(after.rate[y], y, xerr=error, fmt="o", color=color)
    ax.set_title(f"{name} hours", fontsize=10)
    ax.set_xlim(min(before.rate) - 0.05, max(before.rate) + 0.05)
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.grid(axis="y", visible=False)
axes[0].set_yticks(range(len(found.groups)), found.groups)
axes[0].set_ylim(1.5, -0.5)
fig.supxlabel("rate of the class", fontsize=10)
plt.show()

print(*found.sentences(), sep="\n")

# %%
# Who changes class
# -----------------
# The rule changes about one decision in six. The tables count the new people by the classifier's class (rows) and
# by the rule's class (columns), in expectation over the random draws. Some people move from the lowest class to
# the highest, or the other way around, because the rule does not know that classes have an order.

own = data.probabilities[new].argmax(axis=1)
chances = rule.probabilities(data.probabilities[new], data.sex[new])
for sex in rule.groups:
    print(f"{sex:>18}" + "".join(f"{name:>10}" for name in data.classes))
    for c, name in enumerate(data.classes):
        moved = chances[(own == c) & (data.sex[new] == sex)].sum(axis=0)
        print(f"{name:>18}" + "".join(f"{count:10,.0f}" for count in moved))

# %%
# What a smaller gap costs
# ------------------------
# The rules are fitted on one half of the people. Accuracy and gaps are measured on the other half.

frontier = fairramp.class_frontier(
    data.probabilities[fit],
    data.sex[fit],
    data.label[fit],
    classes=data.classes,
    validation=(data.probabilities[new], data.sex[new], data.label[new]),
)
curve = frontier.table()
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(
    curve["gap"], curve["accuracy"], "o-", color=COLORS["after"], label="rules"
)
ax.plot(
    found.before.gap,
    found.before.overall_accuracy,
    "o",
    color=COLORS["before"],
    label="classifier",
)
ax.set(xlabel="largest gap of a class", ylabel="accuracy")
ax.xaxis.set_major_formatter("{x:.0%}")
ax.yaxis.set_major_formatter("{x:.1%}")
ax.legend()
plt.show()

# %%
# Limits for everybody
# --------------------
# The new people also provide limits on the gap in the population that they come from.

print(
    rule.certificate(
        probabilities=data.probabilities[new], groups=data.sex[new]
    )
)
