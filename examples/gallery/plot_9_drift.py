"""
Drift: is the gap still within its limit?
=========================================

Women's scores start to fall in month 7; the monthly check raises an alarm in month 8. A rule's estimated limit on
the gap is valid only for the population that its fit rows came from. ``rule.check`` compares the gap on new rows
with that limit and raises an alarm only if the gap is shown to be above the limit. Each check can raise a false
alarm, so twelve checks take that risk twelve times. ``rule.monitor`` takes this risk only once for the whole year
and uses all rows so far.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

data = fairramp.datasets.load_adult_scores()
rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], max_gap=0.02)
print(rule.certificate())

# %%
# Simulate twelve months of new people. In month 7, a feature changes meaning, and the scores of women fall a
# little further each month.

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
        f"month {month:2}: gap {100 * checks[-1].gap:4.1f} points, "
        f"{'ALARM' if checks[-1].has_drifted else checks[-1].verdict}"
    )

# %%

fig, ax = plt.subplots()
months = np.arange(1, 13)
gap = 100 * np.array([check.gap for check in checks])
low, high = 100 * np.array([check.gap_interval for check in checks]).T
alarm = np.array([check.has_drifted for check in checks])
for which, color, name in (
    (~alarm, COLORS["after"], "no alarm"),
    (alarm, COLORS["alarm"], "alarm"),
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
limit = 100 * checks[0].limit
ax.axhline(limit, color="black", linestyle="--", linewidth=1)
ax.text(12.5, limit - 0.2, "estimated limit", ha="right", va="top")
ax.set(
    title="Gap by month, with 95% confidence intervals",
    xlabel="month",
    ylabel="gap on new rows (points)",
    xticks=months,
    xlim=(0.4, 12.6),
    ylim=(0, None),
)
ax.legend(loc="upper left")
plt.show()

# %%
# The check and the monitor report what they found and how reliable the result is. The check also says how large
# a gap must be for this many rows to reveal it.

print(checks[-1])
print()
print(monitor)
