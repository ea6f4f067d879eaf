"""Criteria: which rate is made equal, and between which cells; one module each, see `fit.problem.Criterion`.

Each computes ramps from a summary of the rows. Must not import settings, samples or rules.
"""
