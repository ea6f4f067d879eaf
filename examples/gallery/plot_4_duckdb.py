"""
DuckDB: fit and decide inside the database
==========================================

This example fits a rule to two million rows in a Parquet file and applies it, without loading the rows into
Python. The gap between three regions falls from 18.9 to 1.0 percentage points. DuckDB computes sums for each
group and bin of scores; only these sums and a few scores near the thresholds reach Python. The same code works
for files larger than memory.
"""

import tempfile
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

# %%
# Simulate two million applications. DuckDB derives each score from a hash of the row number.

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
# The fit reads the file in a few passes. The result is exact: the rule is the same as one fitted in
# memory.

rule = fairramp.fit_frame(applications, score="p", group="region", max_gap=0.01)
print(rule)

# %%
# ``apply`` returns a lazy relation. DuckDB computes the decisions when a query needs them.

key = "0123456789abcdef" * 4  # example only: keep yours secret
decided = rule.apply(applications, id="applicant", key=key)
print(type(decided).__name__, decided.columns)

rates = database.sql(
    """
    SELECT region, avg(CAST(p >= 0.5 AS DOUBLE)) AS before, avg(probability) AS expected, avg(decision) AS decided
    FROM decided GROUP BY region ORDER BY region
    """
).fetchall()
for region, before, expected, decided_rate in rates:
    print(
        f"{region:6} {before:.1%} before, {expected:.1%} expected, {decided_rate:.1%} after the random draws"
    )

# %%

fig, ax = plt.subplots(figsize=(6.4, 2.6))
for i, (_, before, expected, _) in enumerate(rates):
    ax.plot([before, expected], [i, i], color="#d9dde2", zorder=1)
    for name, rate, color in (
        ("before", before, COLORS["before"]),
        ("after", expected, GROUPS[i]),
    ):
        ax.scatter(rate, i, color=color, zorder=2)
        on_left = rate == min(before, expected)
        ax.annotate(
            f"{name} {rate:.1%}",
            (rate, i),
            xytext=(-8 if on_left else 8, 0),
            textcoords="offset points",
            ha="right" if on_left else "left",
            va="center",
        )
ax.set_yticks(range(len(rates)), [row[0] for row in rates])
ax.invert_yaxis()
ax.margins(y=0.25)
ax.xaxis.set_major_formatter("{x:.0%}")
ax.grid(axis="y", visible=False)
ax.set(
    title="Selection rates before and after",
    xlabel="selection rate",
    xlim=(0.3, 0.7),
)
plt.show()

# %%
# Write the decisions to a file, again without loading them into Python:

decided.write_parquet(str(Path(folder.name) / "decisions.parquet"))
written = database.read_parquet(str(Path(folder.name) / "decisions.parquet"))
print(f"{len(written):,} rows written")
database.close()
folder.cleanup()
