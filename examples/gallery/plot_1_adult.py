"""
Adult census data, end to end
=============================

For people the rule has not seen, the gap between men's and women's selection rates falls from 17.3 to 3.2
percentage points, and accuracy falls from 85.7% to 84.3%. This example audits a classifier, chooses a gap, fits a
rule, checks it on new rows and makes decisions.

The scores are real: a logistic regression predicts who earns more than $50,000 a year. The scores ship with the
package, so nothing is downloaded.
"""

import fairramp

data = fairramp.datasets.load_adult_scores()
print(
    f"{len(data.score):,} people; the first is {data.id[0]}, {data.sex[0]}, with a score of {data.score[0]}"
)

# %%
# Audit the classifier
# --------------------
# The classifier never saw anyone's sex. Even so, its selection rate is three times as high for men as for women.

print(fairramp.audit(data.score, data.sex, data.label))

# %%
# See what each gap costs
# -----------------------
# A smaller gap costs accuracy. To see how much, fit rules for many values of ``max_gap`` on one half of the rows
# and measure them on the other half.

fit, rest = slice(0, 12000), slice(12000, None)
frontier = fairramp.frontier(
    data.score[fit],
    data.sex[fit],
    data.label[fit],
    validation=(data.score[rest], data.sex[rest], data.label[rest]),
)
cost = frontier.plot()

# %%
# Fit a rule
# ----------
# Allow a gap of 2 points. Fitting needs no labels.

rule = fairramp.fit_rule(data.score[fit], data.sex[fit], max_gap=0.02)
print(rule)
ramps = rule.plot()

# %%
# Check the rule on new rows
# --------------------------
# The gap is usually somewhat larger on new rows than on the *fit rows*, the rows that the rule was fitted on. The
# certificate states limits on the gap in the population.

found = fairramp.audit(
    data.score[rest], data.sex[rest], data.label[rest], rule=rule
)
print(rule.certificate())
print()
print(
    f"gap on new rows: {100 * found.before.gap:.1f} points before, {100 * found.after.gap:.1f} points after"
)
print(
    f"accuracy:        {found.before.overall_accuracy:.1%} before, {found.after.overall_accuracy:.1%} after"
)
rates = found.plot()

# %%
# Decide
# ------
# Decisions depend only on the score, the group, the id and the secret key, so the same person gets the same
# decision every time.

key = "0123456789abcdef" * 4  # example only: make yours with `fairramp keygen`
decisions = rule.decide(
    data.score[rest], data.sex[rest], ids=data.id[rest], key=key
)
for sex in rule.groups:
    print(f"{sex:6} {decisions[data.sex[rest] == sex].mean():.1%} selected")
