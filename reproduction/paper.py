"""Numbers printed in the paper: Tables 1 and 2 for tabular data, and the curve of Figure 1(b).

Reference: Alabdulmohsin and Lucic (2021), Tables 1 and 2, Figure 1.
"""

#: The gap in the labels, printed next to Table 1.
DATA_BIAS = {"adult": 0.19, "dccc": 0.21}

#: Table 1: bias on test data, by data, method and classifier (RF, k-NN, MLP, LR).
BIAS = {
    "adult": {
        "original": (0.38, 0.24, 0.29, 0.39),
        "rto": (0.01, 0.02, 0.01, 0.01),
        "hardt_labels": (0.01, 0.01, 0.02, 0.02),
        "shift": (0.16, 0.08, 0.10, 0.10),
        "roc": (0.02, 0.08, 0.02, 0.01),
        "reduction": (0.01, 0.01, 0.01, 0.01),
    },
    "dccc": {
        "original": (0.07, 0.10, 0.13, 0.12),
        "rto": (0.01, 0.01, 0.01, 0.01),
        "hardt_labels": (0.01, 0.01, 0.01, 0.01),
        "shift": (0.09, 0.18, 0.12, 0.13),
        "roc": (0.02, 0.02, 0.02, 0.01),
        "reduction": (0.01, 0.01, 0.01, 0.01),
    },
}

#: Table 2: test accuracy and its standard error, in percent.
ACCURACY = {
    "adult": {
        "original": ((85.7, 0.1), (86.8, 0.1), (85.5, 0.2), (84.9, 0.2)),
        "rto": ((84.4, 0.1), (81.3, 0.2), (83.5, 0.3), (83.0, 0.1)),
        "hardt_labels": ((81.0, 0.2), (78.7, 0.2), (79.7, 0.2), (79.4, 0.2)),
        "reduction": ((83.9, 0.1), (80.2, 0.1), (83.5, 0.1), (83.3, 0.2)),
    },
    "dccc": {
        "original": ((81.2, 0.2), (79.6, 0.2), (80.5, 0.1), (80.6, 0.2)),
        "rto": ((81.8, 0.1), (80.4, 0.2), (81.3, 0.2), (81.7, 0.1)),
        "hardt_labels": ((80.6, 0.2), (78.7, 0.1), (78.8, 0.2), (78.3, 0.1)),
        "reduction": ((81.4, 0.3), (79.5, 0.1), (81.3, 0.2), (80.5, 0.3)),
    },
}

# The source of Figure 1(b) gives points in centimeters, with epoch 0 at x = 6, 5 epochs per centimeter, and
# λ₀ − μ₀ = ½ at y = 2.
_DRAWN = (
    *((6.0, 0.00), (6.2, 1.10), (6.4, 0.97), (6.6, 0.92), (6.8, 0.9), (7.0, 0.88), (7.2, 0.87), (7.4, 0.87)),
    *((7.6, 0.86), (7.8, 0.86), (8.0, 0.86), (8.2, 0.85), (8.4, 0.85), (8.6, 0.85), (8.8, 0.85), (9.0, 0.85)),
    *((9.2, 0.87), (9.46, 0.845), (9.6, 0.843), (9.8, 0.842), (10.0, 0.841), (10.2, 0.841), (10.4, 0.841)),
    *((10.6, 0.84), (10.8, 0.84), (11.0, 0.84)),
)
#: Figure 1(b): epoch and λ₀ − μ₀, in units of signed scores.
CONVERGENCE = tuple((round((x - 6) * 5, 6), y / 4) for x, y in _DRAWN)
