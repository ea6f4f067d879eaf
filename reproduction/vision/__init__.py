"""The paper's vision half: debiasing deep networks, on CelebA and COCO.

    images, attributes (`data`, `celeba`, `coco`)
      →  whole networks (`network`), or linear heads (`head`) on frozen features (`features`) of `backbones`
      →  scores  →  every method of the tabular half (`reproduction.methods`)
      →  one line per run, appended (`store`)  →  soft ranks, curves, claims (`aggregate`, `claims`)  →  `page`

`python -m reproduction.vision plan` prints every run, `run` computes what is missing and can be had, `page`
writes docs/reproduction-vision.md from the store. Only `backbones`, `features` and `network` need torch, where
they use it.

As the paper says, such experiments are no endorsement of predicting attributes of people from their pictures.

Reference: Alabdulmohsin and Lucic (2021), A Near-Optimal Algorithm for Debiasing Trained Machine Learning Models,
Section 5 and Appendix E.
"""

import os

# Before torch is loaded: threads that wait for each other must not keep other processes from their cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
