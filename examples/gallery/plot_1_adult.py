"""
Adult, end to end
=================

From a classifier's scores to fair decisions and the evidence for them, on real held-out scores: who earns
more than $50,000 a year? The scores come with the package, so nothing is downloaded.
"""

import fairramp

data = fairramp.datasets.load_adult_scores()
print(
    f"{len(data.score):,} people; the first: {data.id[0]}, score {data.score[0]}, {data.sex[0]}"
)

# %%
# How unequal is it?
# ------------------
# The classifier never saw anyone's sex, and still selects men three times as often as women.

print(fairramp.audit(data.score, data.sex, data.label))

# %%
# What does each gap cost?
# ------------------------
# One half of the rows learns the rules, the other half measures them.

fit, rest = slice(0, 12000), slice(12000, None)
frontier = fairramp.frontier(
    data.score[fit],
    data.sex[fit],
    data.label[fit],
    validation=(data.score[rest], data.sex[rest], data.label[rest]),
)
cost = frontier.plot()

# %%
# Learn a rule
# ------------
# A gap of two percentage points. No labels are needed for it.

rule = fairramp.fit_rule(data.score[fit], data.sex[fit], max_gap=0.02)
print(rule)
ramps = rule.plot()

# %%
# Look at it on rows it has not seen
# ----------------------------------
# The gap is a little larger there than on the fit rows, as was to be expected: the certificate bounds it.

found = fairramp.audit(
    data.score[rest], data.sex[rest], data.label[rest], rule=rule
)
print(rule.certificate())
print()
print(
    f"gap on new rows: {found.before.gap:.4f} before, {found.after.gap:.4f} after"
)
print(
    f"accuracy:        {found.before.overall_accuracy:.4f} before, {found.after.overall_accuracy:.4f} after"
)
rates = found.plot()

# %%
# Decide
# ------
# With an id and a secret key the same person gets the same answer every time.

key = "0123456789abcdef" * 4  # for show: yours comes from `fairramp keygen`
answers = rule.decide(
    data.score[rest], data.sex[rest], ids=data.id[rest], key=key
)
for sex in rule.groups:
    print(f"{sex:6} {answers[data.sex[rest] == sex].mean():.4f}")
