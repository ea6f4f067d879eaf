"""Drop-in replacements for classes of other libraries, as thin wrappers around the estimator.

Must not import commands.
"""
