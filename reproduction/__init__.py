"""The paper's tables and figures on tabular data, measured again through fairramp's public API.

    data  →  scores of four classifiers (`protocol`)  →  decisions of every method (`methods`, `reductions`)
          →  results, one small file per run (`store`)  →  tables, figures (`results`, `figures`)  →  `page`

`python -m reproduction run` computes what is missing, `python -m reproduction page` writes the page from it.

Reference: Alabdulmohsin and Lucic (2021), A Near-Optimal Algorithm for Debiasing Trained Machine Learning Models.
"""

import os

# One thread for each process, before NumPy is loaded: the tasks themselves run side by side.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
