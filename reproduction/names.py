"""Display names of datasets, classifiers and methods."""

NAMES = {"adult": "Adult", "dccc": "DCCC", "rf": "RF", "knn": "k-NN", "mlp": "MLP", "lr": "LR"}

TITLES = {
    "original": "Original",
    "rto": "RTO, as published",
    "rto_sgd": "RTO by SGD",
    "rto_optimal": "RTO, optimal rate",
    "rto_accuracy": "RTO, label-aware",
    "hardt_labels": "Hardt, hard labels",
    "hardt_scores": "Hardt, probabilities",
    "shift": "Shift inference",
    "roc": "ROC",
    "reduction": "Reduction",
    "error_parity": "error-parity",
    "holisticai": "holisticai",
}
