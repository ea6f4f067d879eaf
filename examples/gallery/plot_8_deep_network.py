"""
Scores of a neural network
==========================

A network's probabilities pile up at 0 and 1, where thousands of people seem to share a score. Its *logits*
still tell them apart: pass them with ``scale="logit"``. Here a small network on images of digits answers "is
it a 5 or more?"; two in five images were taken by a camera that leaves them dark.
"""
# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import fairramp

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

fig, axes = plt.subplots(1, 6, figsize=(6.4, 1.5))
for ax, i in zip(axes, [0, 1, 2, 3, 4, 5], strict=True):
    ax.imshow(images[i], cmap="gray", vmin=0, vmax=1)
    ax.set_title(camera[i], fontsize=9)
    ax.axis("off")
plt.show()

# %%
# A network with two hidden layers, trained on bright images only: the dark camera came later. Fit rows for the
# rule are images that the network has not seen, with both cameras and without labels.

digit_of_row = np.tile(
    np.arange(len(images) // 4), 4
)  # shifted copies stay together
part = np.random.default_rng(1).choice(
    ["train", "rule", "test"], digit_of_row.max() + 1
)[digit_of_row]
flat = images.reshape(len(images), -1)
seen = (part == "train") & (camera == "bright")
network = MLPClassifier((64, 32), max_iter=400, random_state=0)
network.fit(flat[seen], wanted[seen])


def logits(x):
    """The network's last layer before it is squeezed into (0, 1)."""
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
# Scores by camera, and the two thresholds:

fig, ax = plt.subplots()
bins = np.linspace(-25, 25, 51)
for name, color, threshold in zip(
    rule.groups, ["#0072B2", "#E69F00"], rule.thresholds, strict=True
):
    ax.hist(
        np.clip(score[test & (camera == name)], -25, 25),
        bins,
        density=True,
        alpha=0.5,
        color=color,
        label=name,
    )
    at = np.log(threshold / (1 - threshold))
    ax.axvline(at, color=color, linestyle="--")
ax.set(
    title="Logits by camera, and thresholds",
    xlabel="logit of the network",
    ylabel="density of test images",
)
ax.legend(title="camera, with its threshold")
plt.show()

# %%
# On test images:

found = fairramp.audit(
    score[test], {"camera": camera[test]}, wanted[test], rule=rule
)
print(found)
