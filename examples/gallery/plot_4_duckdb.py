"""
DuckDB: fit and decide inside the database
==========================================

A table that is larger than memory stays where it is. DuckDB computes sums per group and score bin; only those
and a few scores near the ramps come to Python. The rule becomes an expression of the database.
"""

import tempfile
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt

import fairramp

# %%
# Two million applications in a Parquet file. The scores are made up by DuckDB itself, from a hash of the row
# number.

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "applications.parquet"
database = duckdb.connect()
database.execute(
    f"""
    COPY (
        SELECT i AS applicant,
               ['north', 'south', 'west'][1 + i % 3] AS region,
               power((hash(i) % 1000000) / 1000000.0, [1.0, 1.4, 0.8][1 + i % 3]) AS p
        FROM range(2000000) AS t(i)
    ) TO '{path}' (FORMAT parquet)
    """
)
applications = database.read_parquet(str(path))

# %%
# The fit reads the file in a few passes and is exact: the same rule as of all rows in memory.

rule = fairramp.fit_frame(applications, score="p", group="region", max_gap=0.01)
print(rule)

# %%
# ``apply`` returns a relation: nothing is computed until it is asked for, and then by DuckDB.

key = "0123456789abcdef" * 4  # for show: yours is secret
decided = rule.apply(applications, id="applicant", key=key)
print(type(decided).__name__, decided.columns)

rates = database.sql(
    """
    SELECT region, avg(CAST(p >= 0.5 AS DOUBLE)) AS before, avg(probability) AS expected, avg(decision) AS drawn
    FROM decided GROUP BY region ORDER BY region
    """
).fetchall()
for region, before, expected, drawn in rates:
    print(
        f"{region:6} {before:.4f} before, {expected:.4f} expected, {drawn:.4f} as drawn"
    )

# %%

fig, ax = plt.subplots(figsize=(6.4, 2.6))
for i, (_, before, expected, _) in enumerate(rates):
    ax.plot([before, expected], [i, i], color="#d9dde2", zorder=1)
    ax.scatter(
        before,
        i,
        facecolor="white",
        edgecolor="#5b6470",
        zorder=2,
        label="before" if i == 0 else None,
    )
    ax.scatter(
        expected,
        i,
        color="#0072B2",
        zorder=3,
        label="with the rule" if i == 0 else None,
    )
ax.set_yticks(range(len(rates)), [row[0] for row in rates])
ax.invert_yaxis()
ax.margins(y=0.25)
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set_title("Selection rates before and with the rule")
ax.set_xlabel("selection rate")
ax.set_xticks([0.4, 0.45, 0.5, 0.55, 0.6])
ax.legend(loc="upper right")
plt.show()

# %%
# Decisions can be written without passing through Python:

decided.write_parquet(str(Path(folder.name) / "decisions.parquet"))
written = database.read_parquet(str(Path(folder.name) / "decisions.parquet"))
print(f"{len(written):,} rows written")
database.close()
folder.cleanup()
