"""
Gradient boosting, a pipeline and a grid search
===============================================

``RandomizedThresholdOptimizer`` is a scikit-learn classifier around your own. Here gradient boosting on made-up
loan applications, with the group as a column of the table: ``sensitive_columns`` then works everywhere in
scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fairramp

rng = np.random.default_rng(0)
n = 8000
sex = rng.choice(["f", "m"], n)
income = rng.lognormal(3.3 + 0.25 * (sex == "m"), 0.4)
debt = rng.gamma(2.0, 6.0, n)
years = rng.integers(0, 25, n)
paid_back = (
    0.05 * income
    - 0.06 * debt
    + 0.05 * years
    - 1.2
    + rng.logistic(scale=0.6, size=n)
    > 0
).astype(int)
people = pd.DataFrame(
    {"income": income, "debt": debt, "years": years, "sex": sex}
)
train, test, y_train, y_test = train_test_split(
    people, paid_back, test_size=0.5, random_state=0
)

# %%
# The model is a pipeline: a ratio is added, the group is left out of what gradient boosting sees.


def features(table):
    """What the model may look at."""
    return table[["income", "debt", "years"]].assign(
        ratio=table.debt / table.income
    )


model = make_pipeline(
    FunctionTransformer(features),
    GradientBoostingClassifier(n_estimators=40, subsample=0.5, random_state=0),
)
fair = fairramp.RandomizedThresholdOptimizer(
    model, max_gap=0.02, sensitive_columns="sex", cv=3, random_state=0
)

# %%
# The grid search sets parameters of the model inside. Each candidate is scored by the accuracy of its *fair*
# decisions.

search = GridSearchCV(
    fair,
    {
        "estimator__gradientboostingclassifier__learning_rate": [0.1, 0.2, 0.4],
        "estimator__gradientboostingclassifier__max_depth": [2, 4],
    },
    cv=3,
)
search.fit(train, y_train)
print(search.best_params_)
print(search.best_estimator_.rule_)

# %%
# On test rows
# ------------

chance = search.predict_proba(test)[:, 1]
own = search.best_estimator_.estimator_.predict(test)
for title, values in (("without a rule", own), ("with the rule", chance)):
    gap = abs(values[test.sex == "f"].mean() - values[test.sex == "m"].mean())
    print(
        f"{title:15} gap {gap:.3f}, accuracy {1 - abs(values - y_test).mean():.3f}"
    )

# %%
# Every candidate of the search, with its accuracy under a gap of at most 0.02:

table = pd.DataFrame(search.cv_results_)
fig, ax = plt.subplots(figsize=(6.4, 3.2))
prefix = "param_estimator__gradientboostingclassifier__"
for depth, part in table.groupby(prefix + "max_depth"):
    ax.errorbar(
        part[prefix + "learning_rate"].astype(float),
        part.mean_test_score,
        yerr=part.std_test_score,
        marker="o",
        capsize=3,
        label=f"trees of depth {depth}",
    )
ax.set_xscale("log")
ax.set_xticks([0.1, 0.2, 0.4], ["0.1", "0.2", "0.4"])
ax.minorticks_off()
ax.set(
    title="Candidates of the search",
    xlabel="learning rate",
    ylabel="accuracy of fair decisions",
)
ax.legend()
plt.show()
