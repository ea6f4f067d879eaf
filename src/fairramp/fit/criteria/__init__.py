"""Criteria: which rate is made equal, and between which cells; one module each, see `fit.problem.Criterion`.

Each computes ramps from a summary of the rows. Must not depend on settings, samples or rules.
"""
