"""
Decisions without the group
===========================

A rule can use *group probabilities*: for each person, how likely they are to belong to each group. Such a rule
never reads anybody's group. How close to each other it brings the selection rates of the true groups depends on
how well the probabilities predict the groups. Here, a synthetic proxy for the group ranges from useless to nearly
certain.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

data = fairramp.datasets.load_adult_scores()
rng = np.random.default_rng(0)
woman = data.sex == "Female"
survey, fit, new = np.array_split(rng.permutation(len(woman)), 3)

# %%
# A group model
# -------------
# The demo data has no feature that reveals a person's sex, so we draw one: a normally distributed number whose
# mean is higher for women. In practice, it could be the share of women among people with the same first name. A
# model of the group is trained on the survey rows, whose groups are known. For all other rows, only the features
# are known.


def group_probabilities(strength, rows):
    """Probabilities of both groups, from a proxy of this strength and the score."""
    noise = np.random.default_rng(1).normal(size=len(woman))
    features = np.column_stack([strength * woman + noise, data.score])
    model = LogisticRegression().fit(features[survey], data.sex[survey])
    return fairramp.GroupProbabilities(
        model.predict_proba(features[rows]), model.classes_
    )


probabilities = group_probabilities(3, fit)
rule = fairramp.fit_rule(data.score[fit], probabilities, max_gap=0.02)
print(probabilities)
print(rule)

# %%
# Measured by the true groups
# ---------------------------
# An audit takes the true groups and, separately, the probabilities that the rule uses. Compare weak and strong
# proxies on rows that neither the model nor the rule has seen. Where the proxy is weak, the rule has to select
# very few people to make expected rates equal.

strengths = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
audits = []
with warnings.catch_warnings():
    # Weak proxies give warnings.
    warnings.simplefilter("ignore", fairramp.FairrampWarning)
    for strength in strengths:
        rule = fairramp.fit_rule(
            data.score[fit], group_probabilities(strength, fit), max_gap=0.02
        )
        audits.append(
            fairramp.audit(
                data.score[new],
                data.sex[new],
                data.label[new],
                rule=rule,
                group_probabilities=group_probabilities(strength, new),
            )
        )
known = fairramp.audit(
    data.score[new],
    data.sex[new],
    data.label[new],
    rule=fairramp.fit_rule(data.score[fit], data.sex[fit], max_gap=0.02),
)

fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), layout="constrained")
for group, color in zip((0, 1), GROUPS, strict=False):
    name = known.groups[group]
    axes[0].plot(
        strengths,
        [found.after.rate[group] for found in audits],
        "o-",
        color=color,
        label=name,
    )
    axes[0].axhline(known.after.rate[group], color=color, linestyle=":")
axes[0].set_title("selection rate by true group", fontsize=10)
axes[0].legend(frameon=False)
axes[1].plot(
    strengths,
    [found.after.overall_accuracy for found in audits],
    "o-",
    color=COLORS["after"],
    label="group probabilities",
)
axes[1].axhline(
    known.after.overall_accuracy,
    color=COLORS["after"],
    linestyle=":",
    label="known groups",
)
axes[1].axhline(
    known.before.overall_accuracy, color=COLORS["before"], label="no rule"
)
axes[1].set_title("accuracy", fontsize=10)
axes[1].legend(frameon=False)
for ax in axes:
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set_xlabel("strength of the proxy")
axes[0].set_ylim(0, None)
plt.show()

# %%
# The dotted lines show a rule that knows the groups. With a strong proxy, the results are close to those of this
# rule; a weak proxy costs accuracy. The gap alone does not show this, because two very low rates are close to
# each other as well.

for strength, found in zip(strengths, audits, strict=True):
    print(
        f"strength {strength:3}  gap {100 * found.after.gap:4.1f} points, "
        f"accuracy {found.after.overall_accuracy:.1%}, "
        f"worst calibration error {max(found.group_model.calibration_error):.3f}"
    )
