"""What comes in: `Sample` for arrays, `LazyTable` for tables, binned summaries, names of columns, files.

Turns whatever users have into checked columns or sums. May not know what a rule is, or how one is fitted.
"""
