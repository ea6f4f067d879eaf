"""
Drift: is the gap still within its limit?
=========================================

A rule's estimated limit is about the population its fit rows came from. Later the world changes. ``rule.check``
compares the gap on new rows with the limit, and raises the alarm only if it is shown to be above. Twelve checks
have twelve chances of a false alarm; ``rule.monitor`` has one for the whole year, and looks at all rows so far.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

data = fairramp.datasets.load_adult_scores()
rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], max_gap=0.02)
print(rule.certificate())

# %%
# Twelve months of new people. From month seven on the scores of women fall, month by month: one of the features
# changed its meaning, say.

rng = np.random.default_rng(0)
later = np.arange(12000, len(data.score))
checks, monitor = [], rule.monitor()
for month in range(1, 13):
    rows = rng.choice(later, 8000)
    score, sex = data.score[rows].copy(), data.sex[rows]
    score[sex == "Female"] *= 1 - 0.11 * max(0, month - 6)
    checks.append(rule.check(score, sex))
    monitor.update(score, sex, batch=f"month {month}")
    print(
        f"month {month:2}: gap {checks[-1].gap:.3f}, {'ALARM' if checks[-1].has_drifted else checks[-1].verdict}"
    )

# %%

fig, ax = plt.subplots()
months = np.arange(1, 13)
gap = np.array([check.gap for check in checks])
low, high = np.array([check.gap_interval for check in checks]).T
alarm = np.array([check.has_drifted for check in checks])
for which, color, name in (
    (~alarm, "#0072B2", "no alarm"),
    (alarm, "#D55E00", "alarm"),
):
    ax.errorbar(
        months[which],
        gap[which],
        yerr=[(gap - low)[which], (high - gap)[which]],
        fmt="o",
        color=color,
        capsize=3,
        label=name,
    )
ax.axhline(checks[0].limit, color="#1b1f24", linestyle="--", linewidth=1)
ax.text(12.5, checks[0].limit - 0.008, "limit", color="#1b1f24", ha="right")
ax.set(title="Gap by month, and its estimated limit")
ax.set(
    xlabel="month",
    ylabel="gap on new rows",
    xticks=months,
    xlim=(0.4, 12.6),
    ylim=(0, None),
)
ax.legend(loc="upper left", bbox_to_anchor=(0, 0.9))
plt.show()

# %%
# How small a drift can be seen depends on the rows. The check says so itself:

print(checks[-1])
print()
print(monitor)
