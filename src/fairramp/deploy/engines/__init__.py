"""One module per engine, each with one function that adds a rule to a table without computing lazy tables.

memory          the NumPy core on columns in memory; row order and index are kept
polars, dask    the NumPy core on each batch or partition, when the table is computed
duckdb, spark   the rule as SQL (`fairramp.deploy.formula`); the key is in a table, so no query plan shows it
"""
