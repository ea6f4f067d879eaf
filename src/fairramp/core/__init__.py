"""Numbers and their rules: labels, scales, ramps, points, rate curves, intervals, the small result table.

Functions of NumPy arrays and plain values. May not know dataframes, files, engines or rules.
"""
