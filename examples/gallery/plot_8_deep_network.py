"""
Scores of a neural network
==========================

A rule fitted on a network's logits cuts the gap between two cameras from 18.8 to 1.4 percentage points. A
network's probabilities pile up at 0 and 1, where many images appear to share a score. The network's *logits*, its
outputs before the sigmoid, still differ for these images: pass the logits with ``scale="logit"``. Here, a small
network decides whether a digit is 5 or more, and two in five images come from a camera that makes them dark.
"""
# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import fairramp

# One meaning per color in all examples.
COLORS = {"before": "#8a8f98", "after": "#1f3a5f", "alarm": "#D55E00"}
GROUPS = ["#0072B2", "#E69F00", "#009E73"]

rng = np.random.default_rng(0)
images, digits = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8) / 16
shifted = [
    np.roll(images, shift, axis=(1, 2))
    for shift in [(0, 0), (1, 0), (0, 1), (1, 1)]
]
images, digits = np.concatenate(shifted), np.tile(digits, 4)
camera = rng.choice(["bright", "dark"], len(images), p=[0.6, 0.4])
light = np.where(camera == "dark", 0.45, 1.0)[:, None, None]
images = np.clip(
    images * light + rng.normal(scale=0.12, size=images.shape), 0, 1
)
wanted = (digits >= 5).astype(int)

fig, axes = plt.subplots(1, 6, figsize=(6.4, 1.3))
for ax, i in zip(axes, [0, 1, 2, 3, 4, 5], strict=True):
    ax.imshow(images[i], cmap="gray", vmin=0, vmax=1)
    ax.set_title(camera[i], fontsize=9)
    ax.axis("off")
plt.show()

# %%
# Train a network with two hidden layers on bright images only, as if the dark camera had been added later. Fit
# the rule on images that the network has not seen, from both cameras. The fit needs no labels.

# Shifted copies of a digit stay in the same part.
digit_of_row = np.tile(np.arange(len(images) // 4), 4)
part = np.random.default_rng(1).choice(
    ["train", "rule", "test"], digit_of_row.max() + 1
)[digit_of_row]
flat = images.reshape(len(images), -1)
seen = (part == "train") & (camera == "bright")
network = MLPClassifier((64, 32), max_iter=400, random_state=0)
network.fit(flat[seen], wanted[seen])


def logits(x):
    """Output of the last layer, before the sigmoid."""
    for weights, bias in zip(
        network.coefs_[:-1], network.intercepts_[:-1], strict=True
    ):
        x = np.maximum(x @ weights + bias, 0)
    return (x @ network.coefs_[-1] + network.intercepts_[-1]).ravel()


score = logits(flat)

# %%

rows, test = part == "rule", part == "test"
rule = fairramp.fit_rule(
    score[rows], {"camera": camera[rows]}, scale="logit", max_gap=0.02
)
print(rule)

# %%
# The chart shows the logits of the test images by camera. The rule replaces the common cutoff with one threshold
# per camera:

fig, axes = plt.subplots(
    2, 1, figsize=(6.4, 3.8), sharex=True, sharey=True, layout="constrained"
)
bins = np.linspace(-25, 25, 51)
for ax, name, color, threshold in zip(
    axes, rule.groups, GROUPS, rule.thresholds, strict=False
):
    shown = np.clip(score[test & (camera == name)], -25, 25)
    ax.hist(
        shown, bins, weights=np.full(len(shown), 1 / len(shown)), color=color
    )
    at = np.log(threshold / (1 - threshold))
    ax.axvline(0, color=COLORS["before"], linestyle="--")
    ax.axvline(at, color="black", linestyle="--")
    side = -1 if at < 0 else 1
    for x, text, toward in (
        (at, f"threshold {at:.2f}", side),
        (0, "cutoff 0", -side),
    ):
        ax.annotate(
            text,
            (x, 0.115),
            xytext=(6 * toward, 0),
            textcoords="offset points",
            ha="left" if toward > 0 else "right",
        )
    ax.set(ylabel=name, ylim=(0, 0.13))
    ax.set_axisbelow(True)
    ax.yaxis.set_major_formatter("{x:.0%}")
axes[0].set_title("Logits by camera")
axes[1].set_xlabel("logit")
fig.supylabel("share of the camera's test images", fontsize=10)
plt.show()

# %%
# The audit shows the effect on the test images:

found = fairramp.audit(
    score[test], {"camera": camera[test]}, wanted[test], rule=rule
)
print(found)
