"""
Certificates and sample size
============================

On the *fit rows*, the rows that it was fitted on, a rule limits the gap to ``max_gap`` exactly. In the
population, the gap is often larger, by chance, and a certificate states limits on it. In this simulation, with
250 to 8,000 fit rows, the estimated limit at 95% confidence held for 92 to 99 of the 100 samples of each size.
``rows_needed`` tells you in advance how many rows a limit requires.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

data = fairramp.datasets.load_adult_scores()
rng = np.random.default_rng(0)

# %%
# Treat all 24,421 people as the population. Draw samples of several sizes. For each sample, fit a rule that
# selects 10% of each group (``max_gap=0``), and measure its true gap in the whole population.

sizes = [250, 500, 1000, 2000, 4000, 8000]
male = data.sex == "Male"
true_gaps, estimated, proven = (np.empty((len(sizes), 100)) for _ in range(3))
for i, size in enumerate(sizes):
    for j in range(100):
        sample = rng.choice(len(data.score), size)
        rule = fairramp.fit_rule(
            data.score[sample], male[sample], target_rate=0.1
        )
        probability = rule.probabilities(data.score, male)
        true_gaps[i, j] = abs(
            probability[male].mean() - probability[~male].mean()
        )
        certificate = rule.certificate()
        estimated[i, j] = certificate.estimated
        proven[i, j] = certificate.proven
    held = (true_gaps[i] <= estimated[i]).mean()
    print(
        f"{size:5,} rows: estimated limit {100 * estimated[i].mean():.1f} points, "
        f"holds for {100 * held:.0f} of 100 samples"
    )

# %%
# Each dot is the true gap of the rule for one sample, in orange if this gap exceeds its estimated limit. The
# estimated limit follows the 95th percentile of the true gaps; the proven limit is about twice the estimated
# limit.

fig, ax = plt.subplots()
for size, gaps, limits in zip(sizes, true_gaps, estimated, strict=True):
    x = size * np.exp(rng.uniform(-0.12, 0.12, len(gaps)))
    for which, color, alpha in (
        (gaps <= limits, COLORS["after"], 0.4),
        (gaps > limits, COLORS["alarm"], 1.0),
    ):
        ax.scatter(
            x[which],
            100 * gaps[which],
            s=7,
            color=color,
            alpha=alpha,
            linewidth=0,
        )
ax.plot(
    sizes,
    100 * np.quantile(true_gaps, 0.95, axis=1),
    color=COLORS["after"],
    label="95th percentile of the true gaps",
)
for limits, marker, name in (
    (estimated, "o", "estimated limit"),
    (proven, "s", "proven limit"),
):
    ax.plot(sizes, 100 * limits.mean(axis=1), "k--", marker=marker, label=name)
ax.set_xscale("log")
ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
ax.minorticks_off()
ax.set(
    title="True gaps and their limits",
    xlabel="fit rows, both groups together",
    ylabel="gap in the population (points)",
    ylim=(0, 20),
    yticks=range(0, 21, 5),
)
ax.legend()
plt.show()

# %%
# A limit that holds in the population
# ------------------------------------
# On its own, ``max_gap`` applies only to the fit rows. With ``confidence=0.95``, the gap on the fit rows is
# limited to a smaller value, so that the gap in the population is at most ``max_gap`` with 95% confidence:

settings = {"max_gap": 0.05, "target_rate": 0.2}
for confidence in (None, 0.95):
    gaps = []
    for _ in range(100):
        sample = rng.choice(len(data.score), 3000)
        rule = fairramp.fit_rule(
            data.score[sample], male[sample], confidence=confidence, **settings
        )
        probability = rule.probabilities(data.score, male)
        gaps.append(abs(probability[male].mean() - probability[~male].mean()))
    held = np.mean(np.array(gaps) <= 0.05)
    print(
        f"confidence={confidence}: {100 * held:.0f} of 100 rules have a gap of at most 5 points in the population"
    )

# %%
# How many rows do I need?
# ------------------------
# The chart shows how many rows per group you need for a given estimated limit at 95% confidence, whatever
# the selection rates:

fig, ax = plt.subplots()
gaps = np.array([0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2])
for n_groups, marker in ((10, "s"), (4, "^"), (2, "o")):
    rows = [
        fairramp.rows_needed(max_gap=gap, n_groups=n_groups) for gap in gaps
    ]
    ax.loglog(
        100 * gaps,
        rows,
        marker=marker,
        color=COLORS["after"],
        label=f"{n_groups} groups",
    )
ax.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
ax.set_yticks([100, 1000, 10000], ["100", "1,000", "10,000"])
ax.minorticks_off()
ax.set(
    title="Rows needed for a limit on the gap",
    xlabel="estimated limit (points)",
    ylabel="fit rows per group",
)
ax.legend()
plt.show()
