"""
Intersectional groups
=====================

Rates that are equal by sex can be unequal by sex and race together. Two columns make ten groups here, some of
them small: the certificate says what that costs.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import fairramp

data = fairramp.datasets.load_adult_scores()
both = {"sex": data.sex, "race": data.race}

# %%
# Equal by sex is not equal by sex and race
# -----------------------------------------

by_sex = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
chance = by_sex.probabilities(data.score, data.sex)
by_both = fairramp.fit_rule(data.score, both, max_gap=0.02)
print(by_both)

# %%
# Rates of the ten groups under the classifier, the rule by sex, and the rule by both. Bars are the range in
# which 95 of 100 samples of that size would lie.

names = [" / ".join(group) for group in by_both.groups]
members = [
    (data.sex == sex) & (data.race == race) for sex, race in by_both.groups
]
kinds = {
    "the classifier": (data.score >= 0.5).astype(float),
    "equal by sex": chance,
    "equal by sex and race": by_both.probabilities(data.score, both),
}
fig, axes = plt.subplots(1, 3, figsize=(8.4, 4.2), sharex=True, sharey=True)
for ax, (title, values), color in zip(
    axes, kinds.items(), ["#5b6470", "#E69F00", "#0072B2"], strict=True
):
    rate = np.array([values[m].mean() for m in members])
    error = np.array(
        [
            1.96 * np.sqrt(r * (1 - r) / m.sum())
            for r, m in zip(rate, members, strict=True)
        ]
    )
    ax.errorbar(
        rate, range(len(names)), xerr=error, fmt="o", color=color, elinewidth=1
    )
    ax.set_title(title, fontsize=10)
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.grid(axis="y", visible=False)
axes[0].set_yticks(range(len(names)), names)
axes[0].invert_yaxis()
axes[0].set_xlim(0, None)
fig.supxlabel("selection rate", fontsize=10)
plt.show()

# %%
# What ten groups cost
# --------------------
# On the fit rows the gap is 0.02 for both rules. The limits for new people are decided by the smallest
# group, of 68 rows.

for title, rule in (("by sex", by_sex), ("by sex and race", by_both)):
    print(
        f"{title:16} smallest group {min(rule.record.rows):5,}, "
        f"estimated limit {rule.certificate().estimated:.3f}"
    )

needed = fairramp.rows_needed(max_gap=0.05, n_groups=10)
print(
    f"\nTo keep a gap of 0.05 in the population each of ten groups needs {needed:,} rows; "
    "no labels are needed for them."
)

# %%
# Small groups can borrow
# -----------------------
# With few fit rows, groups can also go by what the other groups' scores suggest. Rates on the fit rows are then
# no longer exactly equal. What counts are new people: twenty times, a rule is fitted to 4,000 rows and measured
# on the 20,421 others.

gaps: dict[str, list[float]] = {"alone": [], "borrow": []}
with warnings.catch_warnings():
    # Groups below 30 rows are warned of.
    warnings.simplefilter("ignore", fairramp.FairrampWarning)
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(data.score))
        fit, new = order[:4000], order[4000:]
        few, others = (
            {"sex": data.sex[rows], "race": data.race[rows]}
            for rows in (fit, new)
        )
        for small_groups, found in gaps.items():
            rule = fairramp.fit_rule(
                data.score[fit], few, small_groups=small_groups
            )
            after = fairramp.audit(data.score[new], others, rule=rule).after
            found.append(after.gap)
for small_groups, found in gaps.items():
    print(f"{small_groups:6} mean gap on new rows {np.mean(found):.3f}")
