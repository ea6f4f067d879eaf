"""
Conditional parity: equal within departments
============================================

More women than men apply to the department that takes few people. Overall rates would differ even if
every department treated both alike, and making the overall rates equal would favor one sex in each department.
``strata=`` makes rates equal *within* each department. The applications are made up.
"""

import matplotlib.pyplot as plt
import numpy as np

import fairramp

rng = np.random.default_rng(0)
n = 12_000
sex = rng.choice(["f", "m"], n)
to_arts = rng.random(n) < np.where(sex == "f", 0.7, 0.3)
department = np.where(to_arts, "arts", "engineering")
talent = rng.normal(size=n) - np.where(to_arts, 1.1, 0.0)  # arts has few places
bias = 0.35 * (
    (sex == "f") & ~to_arts
)  # and engineering's model underrates women
score = 1 / (1 + np.exp(-1.5 * (talent - bias)))

# %%
# The classifier, a rule for equal overall rates, and one for equal rates within departments:

overall = fairramp.fit_rule(score, sex)
within = fairramp.fit_rule(score, sex, strata=department)
print(within)

chances = {
    "the classifier": (score >= 0.5).astype(float),
    "equal overall": overall.probabilities(score, sex),
    "equal within departments": within.probabilities(
        score, sex, strata=department
    ),
}


def rate(chance, who, where):
    """Selection rate of a sex in a department, or overall."""
    return chance[
        (sex == who)
        & (np.full(n, True) if where == "overall" else department == where)
    ].mean()


# %%

places = ["arts", "engineering", "overall"]
fig, axes = plt.subplots(1, 3, figsize=(8.4, 3.2), sharey=True)
for ax, (title, chance) in zip(axes, chances.items(), strict=True):
    for shift, who, name in ((-0.2, "f", "women"), (0.2, "m", "men")):
        ax.bar(
            np.arange(3) + shift,
            [rate(chance, who, place) for place in places],
            0.4,
            label=name,
        )
    ax.set_title(title, fontsize=10)
    ax.set_xticks(range(3), places)
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.grid(axis="x", visible=False)
axes[0].set_ylabel("selection rate")
axes[0].legend(loc="upper left")
plt.show()

# %%
# Equal overall rates favor women in both departments. Equal rates within departments leave the overall
# difference, which comes from who applies where. Which of the two is right is not a question that numbers
# answer.

for title, chance in chances.items():
    gaps = [
        round(rate(chance, "m", place) - rate(chance, "f", place), 3) + 0.0
        for place in places
    ]
    print(
        f"{title:25}",
        ", ".join(
            f"{place} {gap:+.3f}"
            for place, gap in zip(places, gaps, strict=True)
        ),
    )
