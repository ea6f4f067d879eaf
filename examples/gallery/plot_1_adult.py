"""
Adult, end to end
=================

Scores.
"""

import fairramp

data = fairramp.datasets.load_adult_scores()
rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
print(rule)
chart = rule.plot()
