"""
Certificates and sample size
============================

On its fit rows a rule meets its gap exactly. On everybody else the gap is larger, by chance. How much larger
it can be has an estimated and a proven limit, and how many rows are needed can be asked beforehand.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

data = fairramp.datasets.load_adult_scores()
rng = np.random.default_rng(0)

# %%
# Simulation: all 24,421 people are the population. Samples of them, of several sizes, each learn a rule with
# equal rates (``max_gap=0``, ten percent selected); its gap is measured on the whole population.

sizes = [250, 500, 1000, 2000, 4000, 8000]
male = data.sex == "Male"
true_gaps, limits = [], []
for size in sizes:
    gaps = []
    for _ in range(100):
        sample = rng.choice(len(data.score), size)
        rule = fairramp.fit_rule(
            data.score[sample], male[sample], target_rate=0.1
        )
        chance = rule.probabilities(data.score, male)
        gaps.append(abs(chance[male].mean() - chance[~male].mean()))
    certificate = (
        rule.certificate()
    )  # that of the last sample; the others' are nearly the same
    true_gaps.append(gaps)
    limits.append((certificate.estimated, certificate.proven))
    kept = np.mean(np.array(gaps) <= certificate.estimated)
    print(
        f"{size:5,} rows: estimated limit {certificate.estimated:.4f}, and {kept:.1%} of the true gaps are below"
    )

# %%
# Each dot is one sample's true gap. The estimated limit follows the 95th percentile closely; the proven limit is
# wider.

fig, ax = plt.subplots()
for size, gaps in zip(sizes, true_gaps, strict=True):
    spread = size * np.exp(rng.uniform(-0.12, 0.12, len(gaps)))
    ax.scatter(spread, gaps, s=4, color="#5b6470", alpha=0.35, linewidth=0)
ax.plot(
    sizes,
    [np.quantile(gaps, 0.95) for gaps in true_gaps],
    "k:",
    label="95th percentile of the true gaps",
)
ax.plot(sizes, [p[0] for p in limits], "o-", label="estimated limit")
ax.plot(sizes, [p[1] for p in limits], "s-", label="proven limit")
ax.set_xscale("log")
ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
ax.minorticks_off()
ax.set(
    title="True gaps and their limits",
    xlabel="fit rows, both groups together",
    ylabel="gap in the population",
    ylim=(0, 0.2),
)
ax.legend()
plt.show()

# %%
# A gap that holds in the population
# ----------------------------------
# ``max_gap`` alone is about the fit rows. With ``confidence=0.95`` they are held to a smaller gap, so that the
# population keeps ``max_gap``:

asked = {"max_gap": 0.05, "target_rate": 0.2}
for confidence in (None, 0.95):
    gaps = []
    for _ in range(100):
        sample = rng.choice(len(data.score), 3000)
        rule = fairramp.fit_rule(
            data.score[sample], male[sample], confidence=confidence, **asked
        )
        chance = rule.probabilities(data.score, male)
        gaps.append(abs(chance[male].mean() - chance[~male].mean()))
    kept = np.mean(np.array(gaps) <= 0.05)
    print(
        f"confidence={confidence}: {kept:.0%} of 100 rules keep 0.05 in the population"
    )

# %%
# How many rows do I need?
# ------------------------
# Per group, to keep a gap in the population with 95% confidence (estimated limit), whatever the selection rates:

fig, ax = plt.subplots()
gaps = np.array([0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2])
for n_groups in (2, 4, 10):
    rows = [
        fairramp.rows_needed(max_gap=gap, n_groups=n_groups) for gap in gaps
    ]
    ax.loglog(gaps, rows, "o-", label=f"{n_groups} groups")
ax.set_xticks(
    [0.01, 0.02, 0.05, 0.1, 0.2], ["0.01", "0.02", "0.05", "0.1", "0.2"]
)
ax.set_yticks([100, 1000, 10000], ["100", "1,000", "10,000"])
ax.minorticks_off()
ax.set(
    title="Rows that a gap in the population takes",
    xlabel="gap in the population",
    ylabel="fit rows per group",
)
ax.legend()
plt.show()
