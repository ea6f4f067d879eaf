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
rows = list(zip(data.id.tolist(), data.score.tolist(), data.sex.tolist(), strict=True))
people = spark.createDataFrame(rows, ["person", "p", "sex"])

# %%
# Fit where the data are, and compare with a fit in memory: the same thresholds.

rule = fairramp.fit_frame(people, score="p", group="sex", max_gap=0.02)
print(rule)
in_memory = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
print()
print([abs(a.threshold - b.threshold) < 1e-12 for a, b in zip(rule.ramps, in_memory.ramps, strict=True)])

# %%
# Apply: a lazy table with two more columns. Draws are hashes of id and key, computed by Spark, and equal to
# those of every other engine.

key = "0123456789abcdef" * 4  # for show: yours is secret
decided = rule.apply(people, id="person", key=key)
rates = (
    decided.groupBy("sex")
    .agg(sf.avg((sf.col("p") >= 0.5).cast("double")), sf.avg("probability"), sf.avg("decision"))
    .orderBy("sex")
    .collect()
)
for sex, before, expected, drawn in rates:
    print(f"{sex:6} {before:.4f} before, {expected:.4f} expected, {drawn:.4f} as drawn")

# %%

fig, ax = plt.subplots(figsize=(6.4, 2.4))
for i, (_, before, expected, _) in enumerate(rates):
    ax.plot([before, expected], [i, i], color="#d9dde2", zorder=1)
    ax.scatter(before, i, facecolor="white", edgecolor="#5b6470", zorder=2, label="before" if i == 0 else None)
    ax.scatter(expected, i, color="#0072B2", zorder=3, label="with the rule" if i == 0 else None)
ax.set_yticks(range(len(rates)), [row[0] for row in rates])
ax.invert_yaxis()
ax.margins(y=0.3)
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set_title("Selection rates before and with the rule")
ax.set(xlabel="selection rate", xlim=(0, None))
ax.legend(loc="lower left")
plt.show()

spark.stop()
