"""
Equal opportunity: the same chance for people who would repay
=============================================================

A bank grants loans at a score of at least 0.5. Among applicants who would repay, 77.8% of those from the city get
a loan, but only 50.0% of those from the country do, because the model underrates applicants from the country.
With ``criterion="equal_opportunity"``, both shares are 77.3%. The applications are simulated.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

rng = np.random.default_rng(0)
n = 20_000
home = rng.choice(["city", "country"], n)
talent = rng.normal(size=n)
repaid = (rng.random(n) < 1 / (1 + np.exp(-2 * talent))).astype(int)
# The model underrates people from the country.
bias = np.where(home == "country", 0.6, 0.0)
score = 1 / (1 + np.exp(-2 * (talent - bias)))

# %%
# The fit needs labels; here, they record whether loans were repaid. Decisions need only the score and the group.

rule = fairramp.fit_rule(score, home, repaid, criterion="equal_opportunity")
print(rule)

# %%
# Accuracy rises here, because one threshold per group corrects the model's error. On other data, it can fall.

found = fairramp.audit(score, home, repaid, rule=rule)
print(
    f"accuracy {found.before.overall_accuracy:.1%} before, {found.after.overall_accuracy:.1%} after"
)

# %%
# The chart shows the scores of people who repaid. The colored part of each histogram is selected; it is the same
# share in both groups.

edges = np.linspace(0, 1, 51)
fig, axes = plt.subplots(
    2, 1, figsize=(7.2, 3.8), sharex=True, sharey=True, layout="constrained"
)
rates = rule.record.rates["true_positive"]
for i, (ax, group) in enumerate(zip(axes, rule.groups, strict=True)):
    threshold = rule.thresholds[i]
    own = score[(home == group) & (repaid == 1)]
    for part, color in (
        (own < threshold, "#d9dde2"),
        (own >= threshold, GROUPS[i]),
    ):
        share = np.full(part.sum(), 1 / len(own))
        ax.hist(own[part], edges, weights=share, color=color)
    ax.axvline(0.5, color=COLORS["before"], linestyle="--", linewidth=1.5)
    ax.axvline(threshold, color="black", linestyle="--", linewidth=1.5)
    ax.set_title(
        f"{group}: {rates.before[i]:.1%} selected before, {rates.after[i]:.1%} after",
        fontsize=10,
        loc="left",
    )
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set_xlabel(
    "score (gray line: the bank's cutoff, black line: the rule's threshold)"
)
fig.supylabel("share of those who repaid", fontsize=10)
plt.show()

# %%
# One caution: a bank sees repayment only for loans that it granted. If labels are missing for people who were
# refused in the past, error rates measured on the other people can be misleading.
