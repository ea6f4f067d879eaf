"""Train a whole network on images: the paper's protocol for Tables 1 and 2.

Images have 224 × 224 pixels, and the learning rate is 0.001 until the validation error converges. The paper
does not specify the rest: Adam and batches of 32, which are Keras's defaults, as is 0.001; the validation rows
are those on which the rule's settings are chosen, never the fit or test rows; training has converged if the
validation error has not improved for `patience` epochs, and the network of the last epoch is used; a linear
layer initialized to 0 replaces the network's last layer.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reproduction.protocol import Floats, Integers
from reproduction.vision.backbones import Body, Pixels
from reproduction.vision.head import sigmoid


@dataclass(frozen=True)
class Training:
    """How a network is trained."""

    pixels: int = 224
    rate: float = 0.001
    batch: int = 32
    patience: int = 5
    most_epochs: int = 100


PAPER_TRAINING = Training()


@dataclass(frozen=True, eq=False)
class Trained:
    """Scores of the requested rows, the number of epochs, and the epoch with the smallest error."""

    scores: dict[str, Floats]
    epochs: int
    best_epoch: int


def train_network(
    body: Body,
    images: Pixels,
    label: npt.NDArray[np.integer],  # type: ignore[type-arg]
    rows: dict[str, Integers],
    seed: int,
    training: Training = PAPER_TRAINING,
) -> Trained:
    """Train a network on the rows "train" until the error on the rows "validation" converges.

    Parameters
    ----------
    body : Body
        The network, trained in place.
    images : ndarray of shape (n, height, width, 3)
        All images, in memory or memory-mapped.
    label : ndarray of shape (n,)
        0 or 1 for every row that is used.
    rows : dict of ndarray
        "train", "validation", and any others to score.
    seed : int
        Seed for the order of rows.
    training : Training
        Defaults to the paper's.
    """
    import torch

    rng = np.random.default_rng([seed, 224])
    last = torch.nn.Linear(body.dimension, 1)
    torch.nn.init.zeros_(last.weight)
    torch.nn.init.zeros_(last.bias)
    trained = [part for part in body.module.parameters() if part.requires_grad]
    optimizer = torch.optim.Adam([*trained, *last.parameters()], lr=training.rate)

    def logits(chosen: Integers, is_training: bool) -> "torch.Tensor":
        found: torch.Tensor = last(body.pooled(body.normalized(images[chosen]), is_training))[:, 0]
        return found

    def scores(chosen: Integers) -> Floats:
        parts = [np.zeros(0)]
        with torch.no_grad():
            for start in range(0, len(chosen), training.batch):
                parts.append(logits(chosen[start : start + training.batch], False).double().numpy())
        return sigmoid(np.concatenate(parts))

    validation, target = rows["validation"], torch.from_numpy(label.astype(np.float32))
    best_error, best_epoch, epoch = np.inf, 0, 0
    while epoch < training.most_epochs and epoch - best_epoch < training.patience:
        epoch += 1
        order = rng.permutation(rows["train"])
        for start in range(0, len(order), training.batch):
            chosen = order[start : start + training.batch]
            if len(chosen) == 1 and start:
                continue  # batch norm needs two rows
            optimizer.zero_grad()
            wanted = target[torch.from_numpy(chosen)]
            torch.nn.functional.binary_cross_entropy_with_logits(logits(chosen, True), wanted).backward()
            optimizer.step()
        error = float(((scores(validation) > 0.5) != label[validation]).mean())
        if error < best_error:
            best_error, best_epoch = error, epoch
    return Trained({name: scores(part) for name, part in rows.items()}, epoch, best_epoch)
