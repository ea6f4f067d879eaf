"""How each engine adds a rule to a table: one module and one function each; nothing lazy is computed here.

memory          columns to the NumPy core and back, row order and index kept
polars, dask    the NumPy core on each batch or partition, when the user asks
duckdb, spark   the rule as SQL (`fairramp.deploy.formula`); the key is in a table that no plan shows
"""
