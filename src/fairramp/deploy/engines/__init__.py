"""How each engine adds a rule to a table: one module and one function each; nothing lazy is computed here.

memory          columns to the NumPy core and back, row order and index kept
polars, dask    the NumPy core on each batch or partition, when the user asks
duckdb, spark   the rule as SQL (`sql_groups`); the key comes from a table of one row, which no plan shows
"""
