"""Numbers printed in the paper for CelebA's attractiveness: rows of Tables 1 and 2.

Reference: Alabdulmohsin and Lucic (2021), Tables 1 and 2.
"""

#: The gap in the labels, printed next to Table 1.
DATA_BIAS = 0.33

NETWORKS = ("R50/S", "R50/I", "MN/S", "MN/I")
#: Table 1: bias on test data, by method and network.
BIAS = {
    "original": (0.43, 0.40, 0.35, 0.38),
    "rto": (0.01, 0.02, 0.01, 0.002),
    "hardt_labels": (0.01, 0.01, 0.01, 0.002),
    "shift": (0.38, 0.35, 0.24, 0.34),
    "roc": (0.08, 0.15, 0.01, 0.10),
}
#: Table 2: test accuracy in percent.
ACCURACY = {
    "original": (77.8, 79.7, 76.9, 79.3),
    "rto": (71.3, 71.7, 71.8, 72.8),
    "hardt_labels": (65.9, 67.5, 66.4, 67.5),
}
