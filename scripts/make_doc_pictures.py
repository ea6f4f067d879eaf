"""Draw the pictures of docs/index.md and docs/how-it-works.md from the demo's scores: `make docs-pictures`."""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("agg")
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "fairramp",  # the same picture is the same file
        "figure.constrained_layout.use": True,
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#5b6470",
        "axes.labelcolor": "#1b1f24",
        "xtick.color": "#5b6470",
        "ytick.color": "#5b6470",
        "legend.frameon": False,
    }
)

import matplotlib.pyplot as plt  # noqa: E402

import fairramp  # noqa: E402

IMAGES = Path(__file__).parents[1] / "docs" / "images"
COLORS = {"Female": "#0072B2", "Male": "#E69F00"}
NAMES = {"Female": "women", "Male": "men"}
GRAY = "#5b6470"
WIDTH = 0.1  # of the ramps drawn here: ten times the default, to be seen

data = fairramp.datasets.load_adult_scores()
scores = {sex: np.sort(data.score[data.sex == sex]) for sex in COLORS}
share = {sex: len(scores[sex]) / len(data.score) for sex in COLORS}


def save(figure, name):
    """Write a picture without the date, so that drawing again changes nothing."""
    figure.savefig(IMAGES / name, metadata={"Date": None})
    plt.close(figure)


def ramp(x, threshold):
    """Chance of a yes."""
    return np.clip(0.5 + (x - threshold) / WIDTH, 0, 1)


def rate(sex, threshold):
    """Selection rate of a group at a threshold."""
    return ramp(scores[sex], threshold).mean()


def threshold_at(sex, wanted):
    """Where a group reaches a rate, by bisection: an independent way, if a slow one."""
    low, high = -1.0, 2.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if rate(sex, middle) > wanted else (low, middle)
    return (low + high) / 2


def draw_ramps():
    """Scores of both groups, and the ramps that decide."""
    rule = fairramp.fit_rule(data.score, data.sex, ramp_width=WIDTH)
    fig, axes = plt.subplots(2, 1, figsize=(6.6, 3.6), sharex=True)
    x = np.linspace(0, 1, 500)
    for ax, sex, place in zip(axes, rule.groups, rule.thresholds, strict=True):
        ax.hist(scores[sex], 60, density=True, color=COLORS[sex], alpha=0.3)
        ax.set_ylim(0, 5)
        ax.set_yticks([])
        ax.set_ylabel(NAMES[sex])
        chance = ax.twinx()
        chance.plot(x, ramp(x, place), color=COLORS[sex], linewidth=2)
        chance.axvline(0.5, color=GRAY, linestyle=":", linewidth=1)
        chance.set_yticks([0, 0.5, 1])
        chance.set_ylim(0, 1.1)
        chance.plot([place], [0.5], "o", color=COLORS[sex])
        chance.annotate(
            f"threshold {place:.3f}",
            (place, 0.5),
            xytext=(10, -3),
            textcoords="offset points",
            color="#1b1f24",
        )
    fig.supylabel("how many people have the score", fontsize=10)
    axes[1].set_xlabel("score; the classifier's own cutoff is dotted")
    fig.text(0.995, 0.55, "chance of a yes", rotation=270, va="center", ha="right", color="#1b1f24")
    fig.get_layout_engine().set(rect=(0, 0, 0.97, 1))
    save(fig, "how-ramps.svg")


def draw_rates():
    """Selection rate against threshold, and where a band cuts it."""
    fig, ax = plt.subplots(figsize=(6.6, 3.4))
    t = np.linspace(0, 1, 300)
    rule = fairramp.fit_rule(data.score, data.sex, ramp_width=WIDTH, max_gap=0.04)
    low, high = rule.target_rate - 0.02, rule.target_rate + 0.02
    ax.axhspan(low, high, color="#009E73", alpha=0.2, linewidth=0)
    ax.text(0.99, high + 0.008, "target rate ± max_gap/2", ha="right", color="#00634a")
    for sex, place in zip(rule.groups, rule.thresholds, strict=True):
        ax.plot(t, [rate(sex, at) for at in t], color=COLORS[sex], linewidth=2, label=NAMES[sex])
        own, new = rate(sex, 0.5), rate(sex, place)
        ax.plot([0.5], [own], "o", markerfacecolor="white", color=COLORS[sex])
        ax.plot([place], [new], "o", color=COLORS[sex])
        ax.plot([place] * 2, [0, new], color=COLORS[sex], linestyle="--", linewidth=1)
    ax.axvline(0.5, color=GRAY, linestyle=":", linewidth=1)
    ax.set(xlabel="threshold", ylabel="selection rate", ylim=(0, 0.6), xlim=(0, 1))
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend()
    save(fig, "how-rates.svg")


def draw_target():
    """The best common rate: where the thresholds' mean is the cutoff."""
    fig, axes = plt.subplots(2, 1, figsize=(6.6, 4.2), sharex=True)
    rates = np.linspace(0.05, 0.4, 71)
    places = {sex: np.array([threshold_at(sex, r) for r in rates]) for sex in COLORS}
    mean = sum(share[sex] * places[sex] for sex in COLORS)
    for sex in COLORS:
        axes[0].plot(rates, places[sex], color=COLORS[sex], label=f"threshold of {NAMES[sex]}")
    axes[0].plot(rates, mean, "k", linewidth=2, label="their mean, by group size")
    axes[0].axhline(0.5, color=GRAY, linestyle=":", linewidth=1)
    axes[0].legend(loc="upper right")
    axes[0].set(ylabel="threshold", ylim=(0, 1))
    cost = np.zeros(len(rates))
    for sex in COLORS:
        x = scores[sex]
        own = np.maximum(x - 0.5, 0).sum()
        for i, at in enumerate(places[sex]):
            h = ramp(x, at)
            cost[i] += (own - ((x - 0.5) * h - WIDTH / 2 * (h - 0.5) ** 2).sum()) / len(data.score)
    axes[1].plot(rates, cost, "k", linewidth=2)
    best = fairramp.fit_rule(data.score, data.sex, ramp_width=WIDTH).target_rate
    for ax in axes:
        ax.axvline(best, color="#009E73", linewidth=1.5)
    axes[1].annotate(f"best rate {best:.3f}", (best, cost.max() * 0.8), xytext=(6, 0), textcoords="offset points")
    axes[1].set(xlabel="common selection rate", ylabel="cost per person", ylim=(0, None))
    axes[1].xaxis.set_major_formatter("{x:.0%}")
    save(fig, "how-target.svg")


def draw_bins():
    """Only the bins that hold an end of a ramp have to be looked into."""
    rng = np.random.default_rng(3)
    fig, ax = plt.subplots(figsize=(6.6, 2.4))
    edges = np.linspace(0, 1, 17)
    counts = np.histogram(rng.beta(2, 2.6, 3000), edges)[0]
    ends = (0.40, 0.58)
    for i, count in enumerate(counts):
        hit = any(edges[i] <= end < edges[i + 1] for end in ends)
        color = "#D55E00" if hit else "#d9dde2"
        ax.bar(edges[i], count, 1 / 16, align="edge", color=color, edgecolor="white")
    ax.set(yticks=[], xlabel="score, in bins", xlim=(0, 1))
    line = ax.twinx()
    line.plot([0, *ends, 1], [0, 0, 1, 1], "k", linewidth=2)
    line.set(yticks=[0, 1], ylim=(0, 1.15), ylabel="chance of a yes")
    save(fig, "how-bins.svg")


def draw_monotone():
    """Why a deviation at the fitted threshold is one at a fixed threshold."""
    rng = np.random.default_rng(1)
    fig, ax = plt.subplots(figsize=(6.6, 3.2))
    t = np.linspace(0, 1, 400)
    truth = 1 / (1 + np.exp(9 * (t - 0.45)))
    sample = np.sort(0.45 + rng.logistic(scale=1 / 9, size=25) - 0.035)
    seen = 1 - np.searchsorted(sample, t) / len(sample)
    ax.plot(t, truth, color="#0072B2", linewidth=2, label="true rate")
    ax.step(t, seen, color="#E69F00", linewidth=1.5, where="post", label="rate on the fit rows")
    fitted = t[np.argmax(seen <= 0.4)]
    true_there = 1 / (1 + np.exp(9 * (fitted - 0.45)))
    far = 0.40 + 0.13
    fixed = 0.45 - np.log(far / (1 - far)) / 9
    ax.axhline(0.4, color=GRAY, linestyle=":", linewidth=1)
    ax.axhline(far, color=GRAY, linestyle=":", linewidth=1)
    ax.text(0.995, 0.41, "r, the rate on the fit rows", ha="right", color=GRAY)
    ax.text(0.995, far + 0.01, "r + a", ha="right", color=GRAY)
    ax.plot([fitted] * 2, [0.4, true_there], "o-", color="#D55E00")
    ax.axvline(fixed, color="#009E73", linewidth=1.2)
    ax.text(fixed + 0.015, 0.63, "$t_a$: does not depend on the sample", color="#00634a")
    ax.annotate(
        "fitted threshold", (fitted, 0.4), xytext=(0.05, 0.16), arrowprops={"arrowstyle": "-", "color": GRAY}
    )
    ax.set(xlabel="threshold", ylabel="selection rate", ylim=(0, 1), xlim=(0, 1))
    ax.legend(loc="upper right")
    save(fig, "how-certificates.svg")


if __name__ == "__main__":
    rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
    rule.plot().save(IMAGES / "front.svg")
    for draw in (draw_ramps, draw_rates, draw_target, draw_bins, draw_monotone):
        draw()
