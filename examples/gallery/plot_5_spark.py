"""
Spark: the same rule on a cluster
=================================

A rule fitted by Spark has the same thresholds as one fitted in memory. A Spark dataframe goes in, and a Spark
dataframe comes out. Each pass over the data is an ordinary Spark job, so a lost executor costs time but does not
change the result.

In this example, Spark runs on one machine, which needs Java 17 or 21. `Large tables <../scale.html>`__ shows what
a fit costs for 10⁷ to 10¹² rows.
"""

import matplotlib.pyplot as plt
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

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
# Fit a rule in Spark and compare its thresholds with those of a rule fitted in memory:

rule = fairramp.fit_frame(people, score="p", group="sex", max_gap=0.02)
print(rule)
in_memory = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
difference = max(
    abs(a - b)
    for a, b in zip(rule.thresholds, in_memory.thresholds, strict=True)
)
print()
print(
    f"thresholds equal to within 1e-12: {'yes' if difference < 1e-12 else 'no'}"
)

# %%
# ``apply`` adds two columns to the lazy dataframe. Random draws are hashes of the id and the key, so Spark makes
# the same decisions as every other engine.

key = "0123456789abcdef" * 4  # example only: keep yours secret
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
for sex, before, expected, decided_rate in rates:
    print(
        f"{sex:6} {before:5.1%} before, {expected:5.1%} expected, {decided_rate:.1%} after the random draws"
    )

# %%

fig, ax = plt.subplots(figsize=(6.4, 2.8))
for i, (_, before, expected, _) in enumerate(rates):
    bars = ax.bar(
        [i - 0.2, i + 0.2],
        [before, expected],
        0.38,
        color=[COLORS["before"], GROUPS[i]],
    )
    ax.bar_label(
        bars, [f"before {before:.1%}", f"after {expected:.1%}"], padding=2
    )
ax.set_xticks(range(len(rates)), [row[0] for row in rates])
ax.yaxis.set_major_formatter("{x:.0%}")
ax.set_axisbelow(True)
ax.grid(axis="x", visible=False)
ax.set(
    title="Selection rates before and after",
    ylabel="selection rate",
    ylim=(0, 0.3),
)
plt.show()

spark.stop()
