"""
Spark: the same rule on a cluster
=================================

A Spark table goes in and a Spark table comes out; passes are ordinary jobs, and a lost executor costs time,
not correctness. Here Spark runs on this machine, which needs Java 17 or 21. `Many rows <../scale.html>`__ has
what a fit costs from 10⁷ to 10¹² rows.
"""

import matplotlib.pyplot as plt
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import fairramp

spark = (
    SparkSession.builder.master("local[2]")
    .appName("fairramp")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.log.level", "ERROR")
    .config("spark.ui.showConsoleProgress", "false")
    .getOrCreate()
)

data = fairramp.datasets.load_adult_scores()
rows = list(
    zip(data.id.tolist(), data.score.tolist(), data.sex.tolist(), strict=True)
)
people = spark.createDataFrame(rows, ["person", "p", "sex"])

# %%
# Fit where the data are, and compare with a fit in memory: the same thresholds.

rule = fairramp.fit_frame(people, score="p", group="sex", max_gap=0.02)
print(rule)
in_memory = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
print()
print(
    [
        abs(a - b) < 1e-12
        for a, b in zip(rule.thresholds, in_memory.thresholds, strict=True)
    ]
)

# %%
# Apply: a lazy table with two more columns. Draws are hashes of id and key, computed by Spark, and equal to
# those of every other engine.

key = "0123456789abcdef" * 4  # for show: yours is secret
decided = rule.apply(people, id="person", key=key)
rates = (
    decided.groupBy("sex")
    .agg(
        sf.avg((sf.col("p") >= 0.5).cast("double")),
        sf.avg("probability"),
        sf.avg("decision"),
    )
    .orderBy("sex")
    .collect()
)
for sex, before, expected, drawn in rates:
    print(
        f"{sex:6} {before:.4f} before, {expected:.4f} expected, {drawn:.4f} as drawn"
    )

# %%

fig, ax = plt.subplots(figsize=(6.4, 2.8))
for shift, at, name in ((-0.2, 1, "before"), (0.2, 2, "with the rule")):
    ax.bar(
        [i + shift for i in range(len(rates))],
        [row[at] for row in rates],
        0.4,
        label=name,
    )
ax.set_xticks(range(len(rates)), [row[0] for row in rates])
ax.yaxis.set_major_formatter("{x:.0%}")
ax.grid(axis="x", visible=False)
ax.set_title("Selection rates before and with the rule")
ax.legend(loc="upper left")
plt.show()

spark.stop()
