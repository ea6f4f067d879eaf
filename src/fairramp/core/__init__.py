"""Numbers and their rules: labels, scales, ramps, points, rate curves, intervals, the small result table.

Functions of NumPy arrays and plain values. May know neither data frames, files and engines, nor a rule.
"""
