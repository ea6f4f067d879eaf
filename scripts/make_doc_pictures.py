"""Draw the pictures of the documentation from the Adult scores: `make docs-pictures`.

`front.svg` is on docs/index.md, `criterion-*.svg` on docs/guide/criteria.md, `classes.svg` on
docs/guide/classes.md, and `how-*.svg` on docs/how-it-works.md.
"""

from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("agg")
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "fairramp",  # without it, every run writes other ids and so another file
        "figure.constrained_layout.use": True,
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#5b6470",
        "axes.labelcolor": "#1b1f24",
        "text.color": "#1b1f24",
        "xtick.color": "#5b6470",
        "ytick.color": "#5b6470",
        "legend.frameon": False,
    }
)

import matplotlib.pyplot as plt  # noqa: E402

import fairramp  # noqa: E402

IMAGES = Path(__file__).parents[1] / "docs" / "images"
# The meaning of each color is the same in examples/gallery. Dashed lines are thresholds and limits.
COLORS = {"Female": "#0072B2", "Male": "#E69F00"}
BEFORE = "#8a8f98"
AFTER = "#1f3a5f"  # where there is no group
ALARM = "#D55E00"
LIGHT = "#d9dde2"
NAMES = {"Female": "women", "Male": "men"}
WIDTH = 0.1  # of the ramps in how-it-works.md: ten times the default, wide enough to see

data = fairramp.datasets.load_adult_scores()
scores = {sex: np.sort(data.score[data.sex == sex]) for sex in COLORS}
share = {sex: len(scores[sex]) / len(data.score) for sex in COLORS}


def save(figure, name):
    """Write a picture without its date, so that drawing it again does not change the file."""
    figure.savefig(IMAGES / name, metadata={"Date": None})
    plt.close(figure)


def ramp(x, threshold, width=WIDTH):
    """Probability of selection."""
    return np.clip(0.5 + (x - threshold) / width, 0, 1)


def rate(sex, threshold):
    """Selection rate of a group at a threshold."""
    return ramp(scores[sex], threshold).mean()


def threshold_at(sex, wanted):
    """Threshold at which a group has a given rate, by bisection: slow, but independent of the library."""
    low, high = -1.0, 2.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if rate(sex, middle) > wanted else (low, middle)
    return (low + high) / 2


def beside(ax, text, at, offset, **more):
    """Write a label next to a point."""
    side = {"ha": "left" if offset[0] >= 0 else "right", "va": "center"}
    ax.annotate(text, at, xytext=offset, textcoords="offset points", **(side | more))


def draw_front():
    """A row per group: its ramp, and its selection rate before and after."""
    rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
    selection = rule.record.rates["selection"]
    fig, axes = plt.subplots(2, 2, figsize=(7.3, 3.1), sharex="col", width_ratios=(1.3, 1))
    for i, (sex, one) in enumerate(zip(rule.groups, rule.ramps, strict=True)):
        color, top = COLORS[sex], one.foot + one.width
        left, right = axes[i]
        left.axvline(rule.cutoff, color=BEFORE, linestyle="--", linewidth=1)
        left.plot([0, one.foot, top, 1], [0, 0, 1, 1], color=color, linewidth=2.5)
        left.set(ylim=(-0.06, 1.12), xlim=(0, 1), yticks=[0, 0.5, 1])
        left.yaxis.set_major_formatter("{x:.0%}")
        left.set_ylabel("probability\nof selection")
        left.text(0.015, 0.84, NAMES[sex], fontsize=11, fontweight="bold")
        ramp_text = f"ramp\n{one.foot:.4f} to {top:.4f}"
        blank = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # the cutoff's line must not cross the text
        beside(left, ramp_text, (top, 0.5), (5, 0), bbox=blank)
        before, after = selection.before[i], selection.after[i]
        right.plot([before, after], [0, 0], color=LIGHT, linewidth=2, zorder=1)
        for name, value, dot in (("before", before, BEFORE), ("after", after, color)):
            right.scatter(value, 0, s=70, color=dot, zorder=2)
            beside(right, f"{name}\n{value:.1%}", (value, 0), (0, 20), ha="center")
        right.set(yticks=[], xlim=(0, 0.3), ylim=(-0.6, 1))
        right.spines["left"].set_visible(False)
        right.xaxis.set_major_formatter("{x:.0%}")
    beside(axes[1, 0], f"cutoff {rule.cutoff}", (rule.cutoff, 0.5), (-6, 0), color="#5b6470")
    axes[1, 0].set_xlabel("score")
    axes[1, 1].set_xlabel("selection rate")
    save(fig, "front.svg")


def draw_criterion(criterion):
    """Three rates of both groups before and after; the panel of the rate that is made equal is tinted."""
    rule = fairramp.fit_rule(data.score, data.sex, data.label, criterion=criterion, target_rate="accuracy")
    chances = {
        "before": (data.score >= rule.cutoff).astype(float),
        "after": rule.probabilities(data.score, data.sex),
    }
    panels = {
        "parity": ("selection rate", "all people", data.label >= 0, 0.32),
        "equal_opportunity": ("true positive rate", "people with label 1", data.label == 1, 0.95),
        "predictive_equality": ("false positive rate", "people with label 0", data.label == 0, 0.12),
    }
    fig, axes = plt.subplots(1, 3, figsize=(7.3, 2.3), sharey=True)
    for ax, (name, (rate_name, whose, counted, most)) in zip(axes, panels.items(), strict=True):
        equal = name == criterion
        weight, back = ("bold", "#eef2f7") if equal else ("normal", "white")
        blank = {"facecolor": back, "edgecolor": "none", "pad": 0.5}  # the dashed line must not cross numbers
        for y, sex in enumerate(NAMES):
            rows = counted & (data.sex == sex)
            before, after = (chance[rows].mean() for chance in chances.values())
            ax.plot([before, after], [-y, -y], color=BEFORE if equal else LIGHT, linewidth=2, zorder=1)
            ax.scatter(before, -y, s=45, color=BEFORE, zorder=2)
            ax.scatter(after, -y, s=70, color=COLORS[sex], zorder=3)
            beside(ax, f"{after:.1%}", (after, -y), (0, 14), ha="center", fontweight=weight, bbox=blank)
            gray = {"color": "#5b6470", "fontsize": 9, "bbox": blank}
            beside(ax, f"{before:.1%}", (before, -y), (0, -14), ha="center", **gray)
        if equal:
            ax.axvline(after, color="black", linestyle="--", linewidth=1, zorder=0)
            ax.set_facecolor(back)
        ax.set_title(f"{rate_name}{': equal' if equal else ''}", fontsize=10, fontweight=weight)
        ax.set(xlim=(0, most), ylim=(-1.6, 0.6), xlabel=whose, yticks=[0, -1], yticklabels=NAMES.values())
        ax.xaxis.set_major_locator(plt.MaxNLocator(3))
        ax.xaxis.set_major_formatter("{x:.0%}")
        ax.tick_params(axis="y", length=0, labelcolor="#1b1f24")
        ax.spines["left"].set_visible(False)
    keys = [plt.Line2D([], [], marker="o", linestyle="", color=BEFORE, label="before")]
    keys += [
        plt.Line2D([], [], marker="o", linestyle="", color=COLORS[sex], label=f"after, {NAMES[sex]}")
        for sex in NAMES
    ]
    fig.legend(handles=keys, loc="outside lower center", ncols=3, fontsize=9, handletextpad=0.1)
    save(fig, f"criterion-{criterion.replace('_', '-')}.svg")


def draw_odds():
    """ROC curves with the point that both groups must share, and the ramps that lead there."""
    rule = fairramp.fit_rule(data.score, data.sex, data.label, criterion="equalized_odds")
    fpr, tpr = (rule.record.rates[name].after[0] for name in ("false_positive", "true_positive"))
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.3, 3.5))
    for sex, one in zip(rule.groups, rule.ramps, strict=True):
        color, mine = COLORS[sex], data.sex == sex
        no, yes = (np.sort(data.score[mine & (data.label == label)]) for label in (0, 1))
        cuts = np.append(np.linspace(0, 1, 2001), 0.5)
        roc = {part: 1 - np.searchsorted(values, cuts) / len(values) for part, values in (("x", no), ("y", yes))}
        left.plot(roc["x"][:-1], roc["y"][:-1], color=color, linewidth=2)
        left.plot(roc["x"][-1], roc["y"][-1], "o", color=BEFORE, zorder=3)
        top = one.foot + one.width
        right.plot([0, one.foot, top, 1], [0, 0, 1, 1], color=color, linewidth=2.5)
        if sex == "Female":
            # The mixture at the same point: with this probability, the score is ignored.
            own = np.quantile(no, 1 - fpr)
            at = (yes >= own).mean()
            ignored = (at - tpr) / (at - fpr)
            levels = (ignored * fpr, 1 - ignored + ignored * fpr)
            right.plot([0, own, own, 1], np.repeat(levels, 2), color=BEFORE, linestyle="--", linewidth=1.2)
            beside(right, "mixture,\nwomen", (own, 0.72), (0, 15), ha="center", color="#5b6470", fontsize=9)
            left.annotate(
                "",
                (fpr, tpr + 0.012),
                (fpr, at),
                arrowprops={"arrowstyle": "->", "color": color, "linewidth": 1.5},
            )
            beside(left, "wider\nramp", (fpr, (at + tpr) / 2), (6, 8), fontsize=9)
            chance = one.chance([0.8])[0]
            right.plot([0.8], [chance], "o", color=color)
            beside(right, f"{chance:.0%}", (0.8, chance), (6, -8), fontweight="bold")
    left.plot(fpr, tpr, "o", color=AFTER, markersize=9, zorder=4)
    beside(left, "after,\nboth groups", (fpr, tpr), (10, -16), fontweight="bold")
    beside(left, "women", (0.1, 0.81), (0, 14), ha="right", fontweight="bold", color=COLORS["Female"])
    beside(left, "men", (0.16, 0.72), (4, -10), fontweight="bold", color="#9a6a00")
    before = plt.Line2D([], [], marker="o", linestyle="", color=BEFORE, label="before, at the cutoff 0.5")
    left.legend(handles=[before], loc="lower right", fontsize=9, handletextpad=0.1)
    left.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 0.2), ylim=(0.3, 0.95))
    left.xaxis.set_major_locator(plt.MultipleLocator(0.05))
    for axis in (left.xaxis, left.yaxis, right.yaxis):
        axis.set_major_formatter("{x:.0%}")
    beside(right, "women", (0.45, 0.43), (-4, 10), ha="right", fontweight="bold", color=COLORS["Female"])
    beside(right, "men", (0.6, 0.9), (-6, 0), fontweight="bold", color="#9a6a00")
    right.plot([0.8], [1], "o", color=COLORS["Male"])
    right.axvline(0.8, color=LIGHT, linewidth=1, zorder=0)
    right.set(xlabel="score", ylabel="probability of selection", xlim=(0, 1), ylim=(-0.03, 1.08))
    save(fig, "criterion-equalized-odds.svg")


def draw_ramps():
    """Scores of both groups, and the ramps that decide."""
    rule = fairramp.fit_rule(data.score, data.sex, ramp_width=WIDTH)
    fig, axes = plt.subplots(2, 1, figsize=(6.6, 3.8), sharex=True)
    x = np.linspace(0, 1, 500)
    for ax, sex, place in zip(axes, rule.groups, rule.thresholds, strict=True):
        size = len(scores[sex])
        ax.hist(scores[sex], 60, weights=np.full(size, 1 / size), color=COLORS[sex], alpha=0.35)
        ax.set(ylim=(0, 0.11), yticks=[0, 0.05, 0.1], xlim=(0, 1))
        ax.yaxis.set_major_formatter("{x:.0%}")
        ax.set_ylabel(NAMES[sex], fontweight="bold")
        line = ax.twinx()
        line.axvline(0.5, color=BEFORE, linestyle="--", linewidth=1)
        line.plot(x, ramp(x, place), color=COLORS[sex], linewidth=2)
        line.plot([place], [0.5], "o", color=COLORS[sex])
        line.set(yticks=[0, 0.5, 1], ylim=(0, 1.1))
        line.yaxis.set_major_formatter("{x:.0%}")
        beside(line, f"threshold {place:.3f}", (place, 0.5), (10, -3))
    beside(line, "cutoff 0.5", (0.5, 0.85), (-6, 0), color="#5b6470")
    fig.supylabel("share of the group (bars)", fontsize=10)
    axes[1].set_xlabel("score")
    fig.text(0.995, 0.55, "probability of selection (line)", rotation=270, va="center", ha="right")
    fig.get_layout_engine().set(rect=(0, 0, 0.965, 1))
    save(fig, "how-ramps.svg")


def draw_rates():
    """Selection rate by threshold, and where it enters the band."""
    fig, ax = plt.subplots(figsize=(6.6, 3.4))
    t = np.linspace(0, 1, 300)
    rule = fairramp.fit_rule(data.score, data.sex, ramp_width=WIDTH, max_gap=0.04)
    low, high = rule.target_rate - 0.02, rule.target_rate + 0.02
    for limit in (low, high):
        ax.axhline(limit, color="black", linestyle="--", linewidth=1)
    ax.text(0.99, high + 0.008, "target rate ± max_gap/2", ha="right")
    ax.axvline(0.5, color=BEFORE, linestyle="--", linewidth=1)
    beside(ax, "cutoff", (0.5, 0.57), (5, 0), color="#5b6470")
    names_at, after_at = (0.09, 0.27), ((-7, -10), (6, 16))
    for sex, place, label_at, offset in zip(rule.groups, rule.thresholds, names_at, after_at, strict=True):
        ax.plot(t, [rate(sex, at) for at in t], color=COLORS[sex], linewidth=2)
        beside(ax, NAMES[sex], (label_at, rate(sex, label_at)), (8, 8), fontweight="bold")
        before, after = rate(sex, 0.5), rate(sex, place)
        ax.plot([place] * 2, [0, after], color="black", linestyle="--", linewidth=1)
        ax.plot([0.5], [before], "o", color=BEFORE)
        ax.plot([place], [after], "o", color=COLORS[sex])
        beside(ax, "before", (0.5, before), (7, 8))
        beside(ax, "after", (place, after), offset)
    ax.set(xlabel="threshold", ylabel="selection rate", ylim=(0, 0.6), xlim=(0, 1))
    ax.yaxis.set_major_formatter("{x:.0%}")
    save(fig, "how-rates.svg")


def draw_target():
    """The best common rate: where the mean threshold is the cutoff."""
    fig, axes = plt.subplots(2, 1, figsize=(6.6, 4.2), sharex=True)
    rates = np.linspace(0.05, 0.4, 71)
    places = {sex: np.array([threshold_at(sex, r) for r in rates]) for sex in COLORS}
    mean = sum(share[sex] * places[sex] for sex in COLORS)
    axes[0].axhline(0.5, color=BEFORE, linestyle="--", linewidth=1)
    beside(axes[0], "cutoff", (0.4, 0.5), (0, -8), ha="right", color="#5b6470")
    drawn = [
        ("men's threshold", places["Male"], COLORS["Male"]),
        ("mean threshold, weighted by group size", mean, AFTER),
        ("women's threshold", places["Female"], COLORS["Female"]),
    ]
    for name, values, color in drawn:
        axes[0].plot(rates, values, color=color, linewidth=2, label=name)
    axes[0].legend(loc="upper right")
    axes[0].set(ylabel="threshold", ylim=(0, 1))
    cost = np.zeros(len(rates))
    for sex in COLORS:
        x = scores[sex]
        own = np.maximum(x - 0.5, 0).sum()
        for i, at in enumerate(places[sex]):
            h = ramp(x, at)
            cost[i] += (own - ((x - 0.5) * h - WIDTH / 2 * (h - 0.5) ** 2).sum()) / len(data.score)
    axes[1].plot(rates, cost, color=AFTER, linewidth=2)
    best = fairramp.fit_rule(data.score, data.sex, ramp_width=WIDTH).target_rate
    for ax in axes:
        ax.axvline(best, color=LIGHT, linewidth=2, zorder=0)
    axes[0].plot([best], [np.interp(best, rates, mean)], "o", color=AFTER)
    axes[1].plot([best], [np.interp(best, rates, cost)], "o", color=AFTER)
    beside(axes[1], f"best rate {best:.1%}", (best, cost.max() * 0.8), (6, 0))
    axes[1].set(xlabel="common selection rate", ylabel="cost per person\n(score units)", ylim=(0, None))
    axes[1].xaxis.set_major_formatter("{x:.0%}")
    save(fig, "how-target.svg")


def draw_bins():
    """Only the bins that contain an end of the ramp have to be opened."""
    rng = np.random.default_rng(3)
    fig, ax = plt.subplots(figsize=(6.6, 2.6))
    edges = np.linspace(0, 1, 17)
    counts = np.histogram(rng.beta(2, 2.6, 3000), edges)[0]
    ends = (0.40, 0.58)
    opened = [any(low <= end < high for end in ends) for low, high in pairwise(edges)]
    known = {"facecolor": LIGHT, "edgecolor": "white", "label": "known by count and mean"}
    looked = {"facecolor": "white", "edgecolor": AFTER, "hatch": "////", "label": "opened"}
    for which, look in ((False, known), (True, looked)):
        kept = [i for i, hit in enumerate(opened) if hit == which]
        ax.bar(edges[kept], counts[kept], 1 / 16, align="edge", **look)
    ax.set(xlabel="score, in bins", ylabel="people", xlim=(0, 1))
    line = ax.twinx()
    line.plot([0, *ends, 1], [0, 0, 1, 1], color=AFTER, linewidth=2)
    line.plot(ends, [0, 1], "o", color=AFTER, clip_on=False)
    line.set(yticks=[0, 0.5, 1], ylim=(0, 1.15), ylabel="probability of selection")
    line.yaxis.set_major_formatter("{x:.0%}")
    fig.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    save(fig, "how-bins.svg")


def draw_monotone():
    """Why a deviation at the fitted threshold implies one at a fixed threshold."""
    rng = np.random.default_rng(1)
    fig, ax = plt.subplots(figsize=(6.6, 3.4))
    t = np.linspace(0, 1, 400)
    truth = 1 / (1 + np.exp(9 * (t - 0.45)))
    sample = np.sort(0.45 + rng.logistic(scale=1 / 9, size=25) - 0.035)
    seen = 1 - np.searchsorted(sample, t) / len(sample)
    far = 0.40 + 0.13
    fixed = 0.45 - np.log(far / (1 - far)) / 9
    for height, text in ((0.4, "r"), (far, "r + a")):
        ax.axhline(height, color="black", linestyle="--", linewidth=0.8)
        ax.text(0.995, height + 0.01, text, ha="right")
    ax.plot(t, truth, color=AFTER, linewidth=2.5, label="true rate")
    ax.step(t, seen, color=AFTER, linewidth=1, where="post", label="rate on the fit rows")
    fitted = t[np.argmax(seen <= 0.4)]
    true_there = 1 / (1 + np.exp(9 * (fitted - 0.45)))
    ax.plot([fitted] * 2, [0.4, true_there], "o-", color=ALARM)
    ax.axvline(fixed, color="black", linestyle="--", linewidth=1.2)
    ax.text(fixed + 0.015, 0.66, "$t_a$ does not depend on the sample")
    leader = {"arrowstyle": "-", "color": "#5b6470"}
    ax.annotate(
        "true rate above r + a", (fitted, true_there), xytext=(0.03, 0.56), va="center", arrowprops=leader
    )
    ax.annotate("fitted threshold", (fitted, 0.4), xytext=(0.03, 0.16), va="center", arrowprops=leader)
    ax.set(xlabel="threshold", ylabel="selection rate", ylim=(0, 1), xlim=(0, 1))
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(loc="upper right")
    save(fig, "how-certificates.svg")


def draw_classes():
    """Offsets of both groups, what they do to the scores of one person, and to the rate of every class."""
    hours = fairramp.datasets.load_adult_hours()
    fit, _ = np.array_split(np.random.default_rng(0).permutation(len(hours.sex)), 2)  # as on the page
    rows = {"probabilities": hours.probabilities[fit], "groups": hours.sex[fit], "classes": hours.classes}
    rule = fairramp.fit_class_rule(**rows, max_gap=0.02)
    fig, axes = plt.subplots(1, 3, figsize=(7.3, 3.6), sharey=True, width_ratios=(1, 1, 1.25))
    small, gray = {"fontsize": 9}, {"fontsize": 9, "color": "#5b6470"}
    one = np.array([0.45, 0.40, 0.15])
    results = one - rule.offsets[rule.groups.index("Female")]
    for c in range(len(rule.classes)):
        for sex, lift in (("Female", 0.2), ("Male", -0.2)):
            k, y, color = rule.groups.index(sex), lift - c, COLORS[sex]
            offset, before, after = rule.offsets[k][c], rule.record.before[k][c], rule.record.after[k][c]
            axes[0].barh(y, offset, height=0.3, color=color)
            axes[0].text(
                0.01 if offset < 0 else -0.01,
                y,
                f"{offset:+.2f}".replace("-", "−"),
                va="center",
                ha="left" if offset < 0 else "right",
                **small,
            )
            axes[2].plot([before, after], [y, y], color=LIGHT, linewidth=2, zorder=1)
            axes[2].scatter(before, y, s=45, color=BEFORE, zorder=2)
            axes[2].scatter(after, y, s=70, color=color, zorder=3)
            side = (9, 0) if after > before else (-9, 0)
            beside(axes[2], f"{after:.0%}", (after, y), side, **small)
            beside(axes[2], f"{before:.0%}", (before, y), (-side[0], 0), **gray)
        best = {"fontweight": "bold"} if c == results.argmax() else {}
        axes[1].annotate("", (results[c], -c), (one[c], -c), arrowprops={"arrowstyle": "-", "color": LIGHT})
        axes[1].scatter(one[c], -c, s=45, color=BEFORE, zorder=2)
        axes[1].scatter(results[c], -c, s=70, color=COLORS["Female"], zorder=3)
        beside(axes[1], f"{results[c]:.2f}", (results[c], -c), (0, 14), ha="center", **(small | best))
        beside(axes[1], f"{one[c]:.2f}", (one[c], -c), (0, -14), ha="center", **gray)
    axes[0].axvline(0, color=BEFORE, linewidth=1)
    axes[0].set(title="offset of each class", xlabel="subtracted from score", xlim=(-0.24, 0.24))
    axes[1].set(title="scores of one woman", xlabel="score minus offset", xlim=(0, 0.56))
    axes[2].set(title="share of people who get the class", xlabel="rate", xlim=(-0.06, 0.78))
    axes[2].xaxis.set_major_formatter("{x:.0%}")
    names = [f"{label} hours" for label in rule.classes]
    axes[0].set(yticks=[-c for c in range(len(names))], yticklabels=names, ylim=(-2.55, 0.55))
    for ax in axes:
        ax.set_title(ax.get_title(), fontsize=10)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0, labelcolor="#1b1f24")
        ax.xaxis.set_major_locator(plt.MaxNLocator(3))
    keys = [plt.Line2D([], [], marker="o", linestyle="", color=BEFORE, label="before")]
    keys += [plt.Line2D([], [], marker="o", linestyle="", color=COLORS[sex], label=NAMES[sex]) for sex in NAMES]
    fig.legend(handles=keys, loc="outside lower center", ncols=3, fontsize=9, handletextpad=0.1)
    save(fig, "classes.svg")


if __name__ == "__main__":
    for draw in (draw_front, draw_ramps, draw_rates, draw_target, draw_bins, draw_monotone):
        draw()
    for criterion in ("parity", "equal_opportunity", "predictive_equality"):
        draw_criterion(criterion)
    draw_odds()
    draw_classes()
