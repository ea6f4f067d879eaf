"""Basic data types and formulas: labels, scales, ramps, points, rate curves, intervals, the result table.

Works on NumPy arrays and plain values. Must not import dataframes, files, engines or rules.
"""
