"""Equal selection rates on real scores: the whole job in one page.

Held-out scores of a logistic regression on UCI Adult (does a person earn more than $50,000 a year?),
selected at 0.5. The rule lets men's and women's selection rates differ by at most 0.02.
"""

import numpy as np

import fairramp

MAX_GAP = 0.02

data = fairramp.datasets.load_adult_scores()
rule = fairramp.fit_rule(data.score, data.sex, max_gap=MAX_GAP)
chance = rule.probabilities(data.score, data.sex)
before = (data.score >= rule.cutoff).astype(float)

# Expected values over the rule's draws; no random number is needed to compute them.
accuracy_before = 1 - abs(before - data.label).mean()
accuracy_after = 1 - abs(chance - data.label).mean()
drawn = ((chance > 0) & (chance < 1)).mean()
changed = abs(chance - before).mean()

# A real key is secret and kept in a file; this one is for show.
decisions = rule.decide(data.score, data.sex, ids=data.id, key="0123456789abcdef" * 4)

print(f"{len(data.score):,} people, selected when their score is at least {rule.cutoff}.")
print()
print(rule)
print()
realized = [decisions[data.sex == sex].mean() for sex in rule.groups]
print("On these same rows:")
print()
print(f"gap of the answers  {max(realized) - min(realized):8.4f} as drawn with one key")
print(f"accuracy            {accuracy_before:8.2%} before  {accuracy_after:8.2%} after")
print(f"decisions changed   {changed:8.2%}")
print(f"decisions drawn     {drawn:8.2%}")
print()
shown = np.concatenate([np.flatnonzero(abs(chance - before) == 1)[:3], np.flatnonzero(chance % 1)[:3]])
print("Some whose decision was changed, and some whose decision was drawn:")
print()
print(
    fairramp.Table(
        {
            "id": data.id[shown].astype(object),
            "sex": data.sex[shown].astype(object),
            "score": data.score[shown],
            "before": before[shown].astype(int),
            "probability": chance[shown],
            "decision": decisions[shown].astype(int),
        }
    )
)
