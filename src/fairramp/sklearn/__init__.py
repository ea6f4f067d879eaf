"""The scikit-learn estimator, a thin wrapper around fit and rule.

Must not import commands.
"""
