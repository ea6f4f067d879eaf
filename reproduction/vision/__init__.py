"""Reproduce the paper's vision experiments: debiasing deep networks on CelebA and COCO.

    images, attributes (`data`, `celeba`, `coco`)
      →  whole networks (`network`), or linear heads (`head`) on frozen features (`features`) of `backbones`
      →  scores  →  every method of the tabular experiments (`reproduction.methods`)
      →  one line per run, appended (`store`)  →  soft ranks, curves, claims (`aggregate`, `claims`)  →  `page`

`python -m reproduction.vision plan` prints every run, `run` computes the missing runs whose data and weights are
available, and `page` writes docs/reproduction-vision.md. Only `backbones`, `features` and `network` need torch.

As the paper says, such experiments do not endorse predicting people's attributes from pictures.

Reference: Alabdulmohsin and Lucic (2021), A Near-Optimal Algorithm for Debiasing Trained Machine Learning Models,
Section 5 and Appendix E.
"""

import os

# Set before torch is loaded: waiting threads must not keep cores busy that other processes need.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
