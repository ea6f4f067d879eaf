"""
Admissions: exactly 100 places
==============================

A school has 100 places and 1,200 applicants from three districts. By score alone, it would admit 10% of the
applicants from one district and 2% of those from another. ``fairramp.select`` fills exactly 100 places with the
best total score that a limit on the ratio of admission rates allows. The applications are simulated.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}

rng = np.random.default_rng(0)
n = 1_200
district = rng.choice(["east", "north", "west"], n, p=[0.5, 0.35, 0.15])
ahead = np.select([district == "east", district == "north"], [1.5, 0.5], 0.0)
score = rng.beta(4.0 + ahead, 4.0).round(3)
ids = np.arange(n)
key = "0123456789abcdef" * 4  # an example; keep yours secret

# %%
# The lowest rate must be at least 80% of the highest. Some scores are equal, so ids and a key decide ties.

found = fairramp.select(
    score, district, places=100, min_ratio=0.8, ids=ids, key=key
)
print(found)

# %%
# The same list in another order gives the same result.

order = rng.permutation(n)
again = fairramp.select(
    score[order],
    district[order],
    places=100,
    min_ratio=0.8,
    ids=ids[order],
    key=key,
)
assert (again.decisions == found.decisions[order]).all()

# %%
# With 99 places, equal rates are impossible, so the gap is the smallest possible one.

nearly = fairramp.select(score, district, places=99, ids=ids, key=key)
print(nearly)

# %%
# The chart shows admission rates by score alone and with the limit. With the limit, all rates are in the shaded
# band, which extends from 80% of the highest rate to the highest rate.

sizes = np.array(found.rows)
by_score = 100 * np.array(found.places_by_score) / sizes
limited = 100 * np.array(found.rates)
where = np.arange(len(sizes))

fig, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
highest = limited.max()
ax.axhspan(0.8 * highest, highest, color=COLORS["after"], alpha=0.15)
bars = ax.bar(
    where - 0.2, by_score, 0.36, color=COLORS["before"], label="by score alone"
)
ax.bar_label(bars, fmt="%.1f%%")
bars = ax.bar(
    where + 0.2, limited, 0.36, color=COLORS["after"], label="ratio ≥ 0.8"
)
ax.bar_label(bars, fmt="%.1f%%")
ax.set_xticks(where, found.groups)
ax.set(xlabel="district", ylabel="admitted, in %", ylim=(0, 13))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
