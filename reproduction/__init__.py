"""Reproduce the paper's tables and figures on tabular data through fairramp's public API.

    data  →  scores of four classifiers (`protocol`)
          →  decisions of every method (`methods`, `objectives`, `error_rates`, `reductions`, `without`)
          →  results, one small file per task (`store`)  →  tables, figures (`results`, `figures`)  →  `page`

`python -m reproduction run` computes missing results, and `python -m reproduction page` writes the page.

Reference: Alabdulmohsin and Lucic (2021), A Near-Optimal Algorithm for Debiasing Trained Machine Learning Models.
"""

import os

# One thread per process, set before NumPy is loaded: the tasks themselves run in parallel.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
