"""Simulate how often limits hold, in more than 300 cells; `scripts.coverage_page` runs them and writes the page.

A replicate draws fit rows from a known distribution, fits a rule and computes its true rates from the
distribution, without drawing new rows. Scores are logit-normal: x = 1 / (1 + exp(−(μ_k + σ Z))), with one μ_k
per group. Labels are 1 with probability x. Weights are independent of both, unless `Cell.heavier` is above 1.

For error rates, labels are drawn first, so the number of rows with a label varies. The μ_k are those of the rows
whose rates are compared; the logits of the rows with the other label have a mean `APART` σ away from it. For
equalized odds, the μ_k are those of label 1, and the distance to label 0 differs between groups: scores rank some
groups better than others.

A ramp with foot s and width γ has the true rate

    1/γ ∫ P(x > t) dt from s to s + γ,    P(x > t) = Φ((μ_k − logit t) / σ),

computed by Gauss-Legendre quadrature over logit t.
"""

import math
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

import fairramp
from fairramp.core.events import EVENT_OF, Event
from fairramp.rule import limits as rule_limits

CONFIDENCE = 0.95
#: Required coverage of the estimated and the proven limit, each less three standard errors.
BARS = {"estimated": 0.93, "proven": CONFIDENCE}
#: A limit that covers more than this is wider than necessary, which is reported but is not a failure.
WIDE = 0.99
#: Seed and size of the Latin hypercube, and the fits per cell.
SEED, DRAWN, REPLICATES = 2021, 300, 400
#: Distance between the mean logits of rows with label 1 and rows with label 0, in sigmas, for error rates.
APART = 1.5
#: Maximum rows of a replicate, which keeps a run to minutes.
MOST_ROWS = 60_000

WEIGHTS = {
    "none": None,
    "lognormal 1.5": lambda rng, n: rng.lognormal(0.0, 1.5, n),
    "lognormal 2": lambda rng, n: rng.lognormal(0.0, 2.0, n),
    "Pareto 1.5": lambda rng, n: 1 + rng.pareto(1.5, n),
    "a tenth at 20": lambda rng, n: np.where(rng.random(n) < 0.1, 20.0, 1.0),
}


# Cells ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One setup to simulate. All fields are part of the fingerprint of stored results.

    Attributes
    ----------
    sizes : tuple of int
        Number of rows of each group.
    rate : float
        Selection rate of the middle group, or its share of positive labels for the target "base_rate"; for error
        rates, the rate that is compared.
    target : str
        "number" (a target rate of `rate`), "optimal", "accuracy", "balanced_accuracy" or "base_rate".
    ramp_width, max_gap : float
        Settings of the fit.
    weights : str
        One of `WEIGHTS`.
    sigma : float
        Standard deviation of the logits.
    apart : float
        Difference between the highest and the lowest group's mean logit, in sigmas.
    heavier : float
        Factor on the weights of scores of at least 0.5.
    name : str
        Why the cell was added; empty if it was drawn.
    criterion : str
        Which rates are compared.
    positives : float
        For error rates, the share of label 1 in the middle group; it differs between groups.
    """

    sizes: tuple[int, ...]
    rate: float
    target: str = "number"
    ramp_width: float = 0.0
    max_gap: float = 0.0
    weights: str = "none"
    sigma: float = 1.2
    apart: float = 0.8
    heavier: float = 1.0
    name: str = ""
    criterion: str = "parity"
    positives: float = 0.3

    @property
    def events(self) -> tuple[Event, ...]:
        """Which rates are compared: one, or two for equalized odds."""
        return EVENT_OF[self.criterion].simple

    @property
    def by_label(self) -> bool:
        """Whether error rates are compared."""
        return self.events[0].label is not None

    def means(self, label: int | None) -> np.ndarray:
        """Mean logit of the rows of each group, or of those with a label."""
        if label is None:
            return self.middles
        apart = APART * (np.linspace(0.8, 1.2, len(self.sizes)) if len(self.events) > 1 else 1.0)
        return self.middles + self.sigma * (label - self.events[0].label) * apart

    @property
    def bases(self) -> np.ndarray:
        """For error rates, each group's share of label 1."""
        return self.positives * np.linspace(0.7, 1.3, len(self.sizes))

    @property
    def middles(self) -> np.ndarray:
        """μ of each group."""
        middle = (
            _mean_logit(self.rate, self.sigma) if self.target == "base_rate" else self.sigma * ndtri(self.rate)
        )
        return middle + self.sigma * self.apart * np.linspace(-0.5, 0.5, len(self.sizes))

    @property
    def fewest(self) -> float:
        """Expected number of selected or of not selected rows in the smallest group, whichever is smaller."""
        shares = {None: 1.0, 0: 1 - self.bases.max(), 1: self.bases.min()}
        share = min(shares[event.label] for event in self.events)
        return float(min(self.sizes) * share * min(self.rate, 1 - self.rate))

    @property
    def may_be_withheld(self) -> bool:
        """Whether the estimated limit may be withheld."""
        return self.fewest < 5 or self.weights.startswith("Pareto")


def _mean_logit(share: float, sigma: float) -> float:
    """The μ at which the mean score is `share`."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(60)
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = float(masses @ expit(middle + sigma * nodes) / masses.sum())
        low, high = (middle, high) if mean < share else (low, middle)
    return high


def _log_uniform(u: float, low: float, high: float) -> float:
    return low * (high / low) ** u


def drawn_cells(n_cells: int = DRAWN) -> list[Cell]:
    """Cells drawn from a Latin hypercube over all settings."""
    rng = np.random.default_rng(SEED)
    places = rng.permuted(np.tile(np.arange(n_cells), (10, 1)), axis=1).T
    points = (places + rng.random(places.shape)) / n_cells
    weights = ("none", "none", "none", *list(WEIGHTS)[1:])
    targets = ("number", "number", "optimal", "accuracy", "base_rate")
    gaps = (0.0, 0.0, 0.0, 0.0, 0.02, 0.05)
    found = []
    for u in points.tolist():
        rows = _log_uniform(u[2], 30, 20_000)
        most = max(2, min(20, int(MOST_ROWS / rows)))
        n_groups = min(int(_log_uniform(u[3], 2, 21)), most)
        fewest = max(30.0, rows * _log_uniform(max(0.0, 2 * u[8] - 1), 1, 0.05))  # half have equal sizes
        sizes = np.geomspace(rows, min(fewest, rows), n_groups).round().astype(int)
        found.append(
            Cell(
                sizes=tuple(sizes.tolist()),
                rate=round(_log_uniform(u[1], 0.01, 0.5), 4),
                target=targets[int(u[5] * len(targets))],
                ramp_width=0.0 if u[4] < 0.25 else round(_log_uniform((u[4] - 0.25) / 0.75, 0.001, 0.5), 4),
                max_gap=gaps[int(u[6] * len(gaps))],
                weights=weights[int(u[0] * len(weights))],
                sigma=round(0.5 + 2 * u[7], 2),
                apart=round(1.5 * u[9], 2),
            )
        )
    return found


def named_cells() -> list[Cell]:
    """Cells in which an earlier version failed, or whose sizes the documentation gives numbers for."""
    heavy = [
        Cell((200, 200), 0.05, weights="a tenth at 20", name="heavy rows on one side"),
        Cell((200, 200), 0.05, weights="lognormal 1.5", name="heavy rows on one side"),
        Cell((1000, 300), 0.1, "optimal", 0.01, weights="lognormal 1.5", name="heavy rows on one side"),
    ]
    wide = [
        Cell((1000, 1000), rate, "number", width, weights=weights, name="wide ramp near 0 or 1")
        for rate in (0.03, 0.97)
        for width in (0.3, 0.5)
        for weights in ("none", "lognormal 1.5")
    ]
    few = [
        Cell((100,) * n_groups, rate, "number", width, name="few rows selected")
        for rate, width, n_groups in ((0.01, 0.01, 2), (0.01, 0.0, 2), (0.01, 0.1, 5), (0.07, 0.01, 2))
    ]
    sizes = [
        Cell(rows, 0.2, target, 0.01, name="sizes of the proven limit's figures")
        for rows in ((8094, 16327), (1000, 1000), (5000, 2500, 1000, 500, 200), (200,) * 20)
        for target in ("number", "optimal")
    ]
    gaps = [
        Cell((1800, 200), 0.2, "optimal", 0.01, 0.05, name="allowed gap"),
        Cell((1000,) * 7, 0.2, "optimal", 0.01, 0.05, name="allowed gap"),
        Cell((1500, 1500), 0.2, "accuracy", 0.01, 0.05, name="allowed gap"),
    ]
    return [*heavy, *wide, *few, *sizes, *gaps]


def dependent_cells() -> list[Cell]:
    """Cells whose weights depend on the scores."""
    return [
        Cell(
            (rows, rows), rate, "number", 0.01, weights=weights, heavier=heavier, name="weights depend on scores"
        )
        for heavier in (2.0, 5.0)
        for weights in ("lognormal 1.5", "a tenth at 20")
        for rows, rate in ((200, 0.05), (1000, 0.05), (1000, 0.2), (5000, 0.2))
    ]


def error_rate_cells() -> list[Cell]:
    """Cells that compare true or false positive rates."""
    targets = ("number", "accuracy", "balanced_accuracy")
    opportunity, equality = (
        {"name": f"{sign} positive rates", "criterion": criterion}
        for sign, criterion in (("true", "equal_opportunity"), ("false", "predictive_equality"))
    )
    sizes = ((200, 200), (1000, 200), (1000, 1000, 500), (5000, 2000), (20_000, 20_000))
    return [
        *(Cell(rows, 0.6, t, w, **opportunity) for rows in sizes for t in targets for w in (0.0, 0.01)),
        *(Cell((1000, 200), 0.6, t, 0.01, positives=0.1, **opportunity) for t in targets[:2]),
        *(Cell((2000, 500), 0.6, t, 0.01, 0.05, **opportunity) for t in targets[:2]),
        *(Cell((1000, 400), 0.2, t, w, **equality) for t in targets[:2] for w in (0.0, 0.01)),
    ]


def odds_cells() -> list[Cell]:
    """Cells with equalized odds."""
    odds = {"name": "equalized odds", "criterion": "equalized_odds"}
    return [
        Cell((200, 200), 0.6, "accuracy", 0.01, **odds),
        Cell((1000, 200), 0.6, "accuracy", 0.01, **odds),
        Cell((1000, 1000, 500), 0.6, "accuracy", 0.0, **odds),
        Cell((1000, 400), 0.6, "balanced_accuracy", 0.01, **odds),
        Cell((2000, 500), 0.6, "accuracy", 0.01, 0.05, **odds),
        Cell((1000, 200), 0.6, "accuracy", 0.01, positives=0.1, **odds),
    ]


def cells() -> list[Cell]:
    """Every cell. New ones go last, because the index of a cell is its seed."""
    rows, name = (771, 42), "a group selects nobody"
    nobody = Cell(rows, 0.0121, "optimal", 0.0438, 0.05, sigma=1.82, apart=0.45, name=name)
    return [*named_cells(), *drawn_cells(), *dependent_cells(), nobody, *error_rate_cells(), *odds_cells()]


# Replicates -----------------------------------------------------------------------------------

_NODES, _MASSES = np.polynomial.legendre.leggauss(80)


def true_rate(foot: float, width: float, mu: float, sigma: float) -> float:
    """Selection rate of a ramp in a group with logits N(μ, σ²).

    >>> round(true_rate(0.5, 0.0, 0.0, 1.0), 6)
    0.5
    """
    with np.errstate(divide="ignore"):
        start, end = logit(np.clip([foot, foot + width], 0.0, 1.0))
    if width == 0:
        return float(ndtr((mu - start) / sigma))
    # Thresholds more than nine sigmas below μ are below all scores; those as far above μ are above all.
    start, end = np.clip([start, end], mu - 9 * sigma, mu + 9 * sigma)
    t = (end + start) / 2 + (end - start) / 2 * _NODES
    between = (end - start) / 2 * float(_MASSES @ (ndtr((mu - t) / sigma) * expit(t) * expit(-t)))
    everybody = max(min(float(expit(start)), foot + width) - foot, 0.0)
    return (everybody + between) / width


def weighted_rate(foot: float, width: float, mu: float, sigma: float, heavier: float) -> float:
    """Weighted selection rate E[w h] / E[w], with weight `heavier` for scores of at least 0.5 and 1 otherwise."""
    if heavier == 1:
        return true_rate(foot, width, mu, sigma)
    above = true_rate(0.5, 0.0, mu, sigma)
    # Among scores above 0.5: the ramp's probability at 0.5, plus its rise above 0.5.
    cut = min(max(foot, 0.5), foot + width)
    at = float(foot < 0.5) if width == 0 else (cut - foot) / width
    rest = true_rate(cut, foot + width - cut, mu, sigma)
    selected_above = at * above + (1 - at) * rest
    return (true_rate(foot, width, mu, sigma) + (heavier - 1) * selected_above) / (1 + (heavier - 1) * above)


def limits(rule: fairramp.Rule) -> tuple[float, float | None]:
    """Estimated and proven limit of a rule; the estimated one is 1 if it is withheld."""
    sample = rule_limits.FitSample.of(rule)
    if not sample.plain:  # there is no proven limit, and computing its bounds is slow
        return rule_limits.beta(sample, CONFIDENCE).limit, None
    found = rule_limits.limits_of(sample, CONFIDENCE)
    return found.estimated, found.proven


def _rows(cell: Cell, groups: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels of a replicate."""
    if not cell.by_label:
        scores = expit(cell.middles[groups] + cell.sigma * rng.standard_normal(len(groups)))
        return scores, rng.random(len(groups)) < scores
    labels = rng.random(len(groups)) < cell.bases[groups]
    mu = np.where(labels, cell.means(1)[groups], cell.means(0)[groups])
    return expit(mu + cell.sigma * rng.standard_normal(len(groups))), labels


def run_cell(cell: Cell, replicates: int, seed: int) -> dict[str, Any]:
    """Simulate a cell and return the coverage of every limit.

    Returns
    -------
    dict
        `estimated`, `proven` and `audit`: share of replicates in which the limit held, among those that had one
        (`audit` is None for error rates);
        `withheld`: share without an estimated limit; `gap`: 95th percentile of the true gap; `limit` and
        `proven_limit`: mean limits.
    """
    rng = np.random.default_rng([SEED, seed])
    n_groups = len(cell.sizes)
    groups = np.repeat(np.arange(n_groups), cell.sizes)
    mu, sigma = cell.middles, cell.sigma
    own = np.array([weighted_rate(0.5, 0.0, m, sigma, cell.heavier) for m in mu.tolist()])
    own_gap = float(own.max() - own.min())
    draw_weights = WEIGHTS[cell.weights]
    known: dict[Any, tuple[float, float | None]] = {}
    gaps, estimated, proven, audited = [], [], [], []
    for _ in range(replicates):
        scores, labels = _rows(cell, groups, rng)
        weights = None if draw_weights is None else draw_weights(rng, len(groups))
        if weights is not None and cell.heavier != 1:
            weights *= np.where(scores >= 0.5, cell.heavier, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fairramp.FairrampWarning)
            rule = fairramp.fit_rule(
                scores,
                groups,
                labels if cell.by_label or cell.target in ("accuracy", "base_rate") else None,
                criterion=cell.criterion,
                target_rate=cell.rate if cell.target == "number" else cell.target,
                ramp_width=cell.ramp_width,
                max_gap=cell.max_gap,
                sample_weight=weights,
            )
        rates = [
            [
                r.tie if r.is_constant else weighted_rate(r.foot, r.width, m, sigma, cell.heavier)
                for r, m in zip(rule.ramps, cell.means(event.label).tolist(), strict=True)
            ]
            for event in cell.events
        ]
        # Without weights, limits depend only on these numbers, which often repeat.
        rows, after, inside = map(rule.record.column, ("rows", "after", "rows_inside"))
        key = (
            None
            if weights is not None
            else (tuple(rows), tuple(np.round(after, 9)), tuple(np.minimum(inside, 2)))
        )
        if key is None or key not in known:
            known[key] = limits(rule)
        gaps.append(max(max(each) - min(each) for each in rates))
        estimated.append(known[key][0])
        proven.append(known[key][1])
        if not cell.by_label:
            low, high = fairramp.audit(scores, groups, sample_weight=weights).before.gap_interval
            audited.append(low - 1e-12 <= own_gap <= high + 1e-12)
    true, limit = np.array(gaps), np.array(estimated)
    given = limit < 1
    bound = None if proven[0] is None else np.array(proven, dtype=np.float64)
    return {
        "replicates": replicates,
        "estimated": float(np.mean(true[given] <= limit[given])) if given.any() else None,
        "proven": None if bound is None else float(np.mean(true <= bound)),
        "audit": float(np.mean(audited)) if audited else None,
        "withheld": float(np.mean(~given)),
        "gap": float(np.quantile(true, CONFIDENCE)),
        "limit": float(limit[given].mean()) if given.any() else None,
        "proven_limit": None if bound is None else float(bound.mean()),
    }


# Runs -----------------------------------------------------------------------------------------


def run(every: Sequence[tuple[int, Cell]], replicates: int, processes: int = 2) -> list[dict[str, Any]]:
    """Results of (seed, cell) pairs, in the same order."""
    if processes == 1:
        return [run_cell(cell, replicates, seed) for seed, cell in every]
    # Longest first, so that no process ends with a long one.
    order = sorted(range(len(every)), key=lambda i: -sum(every[i][1].sizes) - 500 * len(every[i][1].sizes))
    found: list[dict[str, Any]] = [{}] * len(every)
    with ProcessPoolExecutor(processes) as pool:
        futures = {i: pool.submit(run_cell, every[i][1], replicates, every[i][0]) for i in order}
        for i, future in futures.items():
            found[i] = future.result()
    return found


def standard_error(bar: float, result: dict[str, Any], limit: str) -> float:
    """Standard error of a coverage equal to `bar`."""
    given = result["replicates"] * (1 - result["withheld"] if limit == "estimated" else 1)
    return math.sqrt(bar * (1 - bar) / max(given, 1))


def failures(cell: Cell, result: dict[str, Any]) -> list[str]:
    """Limits that hold too rarely in a cell, and "withheld" if the estimated one is withheld without need."""
    found = [
        limit
        for limit, bar in BARS.items()
        if result[limit] is not None and result[limit] < bar - 3 * standard_error(bar, result, limit)
    ]
    if result["withheld"] > 0 and not cell.may_be_withheld:
        found.append("withheld")
    return found
