"""The scikit-learn estimator, a thin wrapper around fit and rule.

Does not import commands.
"""
