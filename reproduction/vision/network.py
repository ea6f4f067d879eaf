"""A whole network, trained on images: the paper's protocol for Tables 1 and 2.

Images of 224 × 224 pixels, a fixed learning rate of 0.001, until the validation error converges. What the paper
does not say, and what is done here: Adam and batches of 32, which are Keras's defaults as 0.001 is; the
validation rows are those on which the rule's settings are chosen, never the rule's fit rows nor the test rows;
converged means no smaller validation error in `patience` epochs, and the network is taken as it then is; a
linear layer that starts at 0 takes the place of the network's last one.
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
    """Scores of all the rows asked for, and how many epochs training took, and which had the smallest error."""

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
    """Train a network on the rows "train", until the error on the rows "validation" converges.

    Parameters
    ----------
    body : Body
        The network, which is changed.
    images : ndarray of shape (n, height, width, 3)
        All images, in memory or not.
    label : ndarray of shape (n,)
        0 or 1 for all rows used.
    rows : dict of ndarray
        "train", "validation", and any others to score.
    seed : int
        Of the order of rows.
    training : Training
        The paper's, unless given.
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
