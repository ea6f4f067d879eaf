"""The same under the names of other libraries; each module a thin shell over the estimator.

May not know commands.
"""
