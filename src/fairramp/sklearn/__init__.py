"""The scikit-learn estimator, a thin shell over fit and rule, and rows as scikit-learn passes them.

May not know commands.
"""
