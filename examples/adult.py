"""Cut the gap between women and men from 16.8 to 2.0 points: the whole job on one page.

The scores come from a logistic regression on UCI Adult (does a person earn more than $50,000 a year?), for people
it was not trained on. The classifier selects people with a score of at least 0.5; the rule limits the gap between
the two selection rates to 2 points.
"""

import numpy as np

import fairramp

MAX_GAP = 0.02

data = fairramp.datasets.load_adult_scores()
rule = fairramp.fit_rule(data.score, data.sex, max_gap=MAX_GAP)
probability = rule.probabilities(data.score, data.sex)
before = (data.score >= rule.cutoff).astype(float)

# Probabilities give the expected values directly; no random draw is needed.
accuracy_before = 1 - abs(before - data.label).mean()
accuracy_after = 1 - abs(probability - data.label).mean()
random_share = ((probability > 0) & (probability < 1)).mean()
changed_share = abs(probability - before).mean()

# Example key only: keep a real key secret, in a file.
decisions = rule.decide(data.score, data.sex, ids=data.id, key="0123456789abcdef" * 4)

print(f"{len(data.score):,} people, selected if their score is at least {rule.cutoff}.")
print()
print(rule)
print()
realized = [decisions[data.sex == sex].mean() for sex in rule.groups]
print("On the same rows:")
print()
print(f"gap in the decisions  {100 * (max(realized) - min(realized)):.1f} points, as drawn with this key")
print(f"accuracy              {accuracy_before:.1%} before, {accuracy_after:.1%} after")
print(f"decisions changed     {changed_share:.1%}")
print(f"decided at random     {random_share:.1%}")
print()
shown = np.concatenate([np.flatnonzero(abs(probability - before) == 1)[:3], np.flatnonzero(probability % 1)[:3]])
print("Three people whose decision changed, and three decided at random:")
print()
print(
    fairramp.Table(
        {
            "id": data.id[shown].astype(object),
            "sex": data.sex[shown].astype(object),
            "score": data.score[shown],
            "before": before[shown].astype(int),
            "probability": probability[shown],
            "decision": decisions[shown].astype(int),
        },
        shares=["probability"],
    )
)
