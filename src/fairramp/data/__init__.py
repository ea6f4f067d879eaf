"""Input: `Sample` for arrays, `LazyTable` for tables, binned summaries, column names, files.

Turns user data into checked columns or sums. Must not import rules or fits.
"""
