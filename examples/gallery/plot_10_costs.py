"""
Loans: a risk score, and what errors cost
=========================================

A bank scores the risk that a loan is not repaid, so low scores are good: ``higher_is_better=False``. A loan that
is not repaid costs five times as much as a good loan that is refused: ``costs=(5, 1)``. At these costs, a rule
with a gap of 2 percentage points between two regions costs less than the bank's own cutoff, which has a gap of 29
points. The applications are simulated.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}

rng = np.random.default_rng(0)
n = 20_000
region = rng.choice(["north", "south"], n)
true_risk = rng.beta(1.6, np.where(region == "north", 4.0, 6.0))
# The model overstates the risk in the north.
risk = np.clip(true_risk * np.where(region == "north", 1.3, 1.0), 0, 1)
repaid = (rng.random(n) > true_risk).astype(int)  # label 1: the good outcome

# %%
# The bank itself grants loans at a risk of 0.2 or below.

bank = {"cutoff": 0.2, "higher_is_better": False}
rule = fairramp.fit_rule(
    risk,
    region,
    repaid,
    max_gap=0.02,
    target_rate="accuracy",
    costs=(5, 1),
    **bank,
)
print(rule)

# %%
# An audit of the rule uses the costs that the rule was fitted with.

print(fairramp.audit(risk, region, repaid, rule=rule).gaps())

# %%
# The chart shows what each allowed gap costs. The unit is the cost of one good loan that is refused.

curve = fairramp.frontier(risk, region, repaid, costs=(5, 1), **bank)
gaps = 100 * np.array(curve.gaps)

fig, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
ax.fill_between(
    gaps, curve.lower, curve.upper, color=COLORS["after"], alpha=0.15
)
ax.plot(gaps, curve.values, color=COLORS["after"], label="rules")
ax.plot(
    100 * curve.own_gap,
    curve.own_value,
    "o",
    color=COLORS["before"],
    label="the bank's own cutoff",
)
ax.set(xlabel="gap between regions, in points", ylabel="cost per application")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
