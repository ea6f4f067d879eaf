"""The rule and its classifier as one scikit-learn estimator: a thin shell over `fit` and `rule`.

`rows` brings what scikit-learn passes to scores, groups and labels; `estimator` is what users import. Nothing
here knows a formula, a table on disk or the command line.
"""
