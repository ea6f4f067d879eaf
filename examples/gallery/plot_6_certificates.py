"""
Certificates and sample size
============================

On its fit rows a rule meets its gap exactly. On everybody else the gap is larger, by chance. How much larger
is certified, and how many rows are needed can be asked beforehand.
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
true_gaps, promised = [], []
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
    promised.append((certificate.gap, certificate.proven.gap))
    kept = np.mean(np.array(gaps) <= certificate.gap)
    print(
        f"{size:5,} rows: certified {certificate.gap:.4f}, and {kept:.1%} of the true gaps are below"
    )

# %%
# Each dot is one sample's true gap. The certificate follows the 95th percentile closely; the proven bound is
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
ax.plot(sizes, [p[0] for p in promised], "o-", label="certificate")
ax.plot(sizes, [p[1] for p in promised], "s-", label="proven")
ax.set_xscale("log")
ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
ax.minorticks_off()
ax.set(
    title="True gaps and what was certified",
    xlabel="fit rows, both groups together",
    ylabel="gap in the population",
    ylim=(0, 0.2),
)
ax.legend()
plt.show()

# %%
# How many rows do I need?
# ------------------------
# Per group, for a certified gap with 95 % confidence, whatever the selection rates:

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
    title="Rows that a certificate takes",
    xlabel="certified gap",
    ylabel="fit rows per group",
)
ax.legend()
plt.show()
