"""Criteria: which rate is made equal, and between whom; one module each, see `fit.problem.Criterion`.

Each solves for ramps from a summary of the rows. May not know settings, samples or rules.
"""
