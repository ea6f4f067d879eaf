"""Rows for rules that mix ramps, with probabilities and decisions in plain NumPy.

The 100,000 rows have the scores of Adult, repeated with a little noise, and include

    rows exactly at the ends and in the middle of their own ramp, and one float to either side
    missing scores; group probabilities that are missing, out of range or do not sum to 1, or are rounded
    values that the rule does not know, missing values that are a value of the rule, and others that are not
    columns and labels that SQL must quote

`soft(...)` and `each(...)` are cached and deterministic. Nothing here calls the library to decide.
"""

import functools
import hashlib
from dataclasses import dataclass

import numpy as np
from cases import KEY, ROWS

import fairramp
from fairramp import GroupProbabilities, Ramp, Rule

IDS = [f"№{i} — {'ÄÖÜßñ日本語🙂'[i % 9 :]}" if i % 3 else f"A{i:06}" for i in range(ROWS)]
SCORE = 'score "p"'
#: The column of each group's probability.
SHARES = {"F'": "p-f", "μαύρος": "select", None: "it's ☺", 3: "q3"}
#: The values of each attribute; enough units that they are looked up instead of compared.
VALUES = {
    "sex's": ["Weiß", "太平洋諸島 '", None],
    "unit no": [*range(-3, 20), 2**40],
    "group": [False, True],
}


@dataclass(frozen=True, eq=False)
class Mixed:
    """A rule and its rows; `probability` is NaN and `decision` −1 for a row that cannot be decided."""

    rule: Rule
    score: np.ndarray
    columns: dict[str, list]
    probability: np.ndarray

    @property
    def names(self):
        """The columns, as `Rule.apply` and `Rule.to_sql` take them."""
        own = {"group_probability": SHARES} if self.rule.base is None else {"group": [*VALUES]}
        return {"score": SCORE} | own

    @functools.cached_property
    def u(self):
        """The draws, by their definition."""
        digests = (hashlib.sha256(f"{KEY}:{id}".encode()).hexdigest() for id in IDS)
        return np.array([int(digest[:13], 16) / 2**52 for digest in digests])

    @functools.cached_property
    def decision(self):
        """1, 0 or −1."""
        return np.where(np.isnan(self.probability), -1, self.u < self.probability).astype(np.int8)

    @property
    def decidable(self):
        """Rows that raise no error."""
        return np.flatnonzero(~np.isnan(self.probability))

    def groups(self, rows):
        """What `Rule.probabilities` takes for these rows."""
        if self.rule.base is None:
            table = {label: np.array(self.columns[name])[rows] for label, name in SHARES.items()}
            return GroupProbabilities(table)
        return {name: [self.columns[name][i] for i in rows] for name in VALUES}

    def table(self, rows):
        """The columns of these rows, with numbers and ids."""
        given = {"number": rows, SCORE: self.score[rows]}
        given |= {name: [column[i] for i in rows] for name, column in self.columns.items()}
        return given | {"who": [IDS[i] for i in rows]}


@functools.cache
def soft(scale="probability", width=0.05, up=True, ramp="centered"):
    """A rule that uses group probabilities."""
    rng = np.random.default_rng(3)
    q = rng.dirichlet(np.full(len(SHARES), 0.4), ROWS).T
    q[:, :2000] = np.eye(len(SHARES))[rng.integers(0, len(SHARES), 2000)].T
    q[:, 2000:4000] = q[:, 2000:4000].round(7)
    cutoff, center = _center(scale, width, up, ramp)
    feet = center + (np.array([0.03, -0.05, 0.011, 0.0]) if width else np.full(4, 0.0773))
    foot = center + (q * (feet - center)[:, None]).sum(axis=0) if width else np.full(ROWS, feet[0])
    score = _scores(scale, up, foot, width)
    chance = _chances(scale, up, score, foot, width)

    bad = np.zeros(ROWS, dtype=bool)
    for i, change in enumerate((np.nan, -1e-9, 1.1)):
        q[i, i + 5000 :: 211], bad[i + 5000 :: 211] = change, True
    q[0, 5003::211] += 3e-6
    bad[5003::211] = True
    chance[bad] = np.nan
    rule = Rule(
        tuple(SHARES),
        tuple(Ramp(float(foot), width, 0.25) for foot in feet),
        scale=scale,
        cutoff=cutoff,
        ramp=ramp,
        higher_is_better=up,
        membership="probabilities",
    )
    return Mixed(rule, score, dict(zip(SHARES.values(), q.tolist(), strict=True)), chance)


@functools.cache
def each(scale="probability", width=0.05, up=True, ramp="centered", unseen_group="error"):
    """A rule by each of three attributes."""
    rng = np.random.default_rng(4)
    cutoff, base = _center(scale, width, up, ramp)
    shifts = [
        rng.uniform(-0.04, 0.04, len(values)) if width else np.zeros(len(values)) for values in VALUES.values()
    ]
    codes = [rng.integers(0, len(values), ROWS) for values in VALUES.values()]
    foot = base + sum(shift[code] for shift, code in zip(shifts, codes, strict=True))
    score = _scores(scale, up, foot, width)
    chance = _chances(scale, up, score, foot, width)

    values = [[*own] for own in VALUES.values()]
    columns = [[own[code] for code in by] for own, by in zip(values, codes, strict=True)]
    unseen = np.zeros(ROWS, dtype=bool)
    for column, start, value in (
        (0, 5000, "unbekannt"),
        (0, 5001, ""),
        (1, 5002, 77),
        (1, 5003, None),
        (2, 5004, None),
    ):
        columns[column][start::211] = [value] * len(range(start, ROWS, 211))
        unseen[start::211] = True
    own = np.where(score >= cutoff if up else score <= cutoff, 1.0, 0.0)
    own[np.isnan(score)] = np.nan
    chance[unseen] = own[unseen] if unseen_group == "original" else np.nan
    pairs = [(name, value) for name, own in VALUES.items() for value in own]
    rule = Rule(
        tuple(pairs),
        tuple(Ramp(float(base + shift), width, 0.25) for shift in np.concatenate(shifts)),
        scale=scale,
        cutoff=cutoff,
        ramp=ramp,
        higher_is_better=up,
        target_rate=None,
        unseen_group=unseen_group,
        membership="each",
        base=Ramp(float(base), width, 0.25),
    )
    return Mixed(rule, score, dict(zip(VALUES, columns, strict=True)), chance)


def _center(scale, width, up, ramp):
    """A cutoff, and the foot of a ramp at it."""
    cutoff = {"probability": 0.5, "percent": 40.0, "signed": 0.1, "logit": -0.25, "real": 0.2}[scale]
    at = _position(scale, np.array([cutoff]))[0]
    return cutoff, (at if up else -at) - (0.5 * width if ramp == "centered" else 0.0)


def _position(scale, score):
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.sign(score) - 0.25 / score
    real = np.where(np.abs(score) > 0.5, far, score)
    return {"percent": score / 100, "logit": 1 / (1 + np.exp(-score)), "real": real}.get(scale, score)


def _scores(scale, up, foot, width):
    """Scores of Adult, with some rows at the ends and in the middle of their own ramp."""
    adult = fairramp.datasets.load_adult_scores().score
    rng = np.random.default_rng(5)
    chance = np.clip(np.resize(adult, ROWS) + rng.uniform(-1e-4, 1e-4, ROWS), 0.001, 0.999)
    chance[::2] = (foot if up else -foot)[::2] + width * rng.uniform(-2, 3, ROWS)[::2]  # mostly on their ramps
    for i, part in enumerate((0.0, 0.5, 1.0)):
        end = foot + part * width
        for j, toward in enumerate((-9.0, None, 9.0)):
            rows = slice(3 * i + j, None, 37)
            moved = end if toward is None else np.nextafter(end, toward)
            chance[rows] = (moved if up else -moved)[rows]
    if scale in ("logit", "probability", "percent"):
        chance = np.clip(chance, 0.001, 0.999)
    score = {"percent": chance * 100, "logit": np.log(chance) - np.log1p(-chance) if scale == "logit" else 0}.get(
        scale, chance
    )
    score = np.clip(score, -1, 1) if scale == "signed" else score
    score[::97] = np.nan
    return score


def _chances(scale, up, score, foot, width):
    x = _position(scale, score) * (1.0 if up else -1.0)
    if width:
        return np.clip((x - foot) / width, 0.0, 1.0)
    return np.where(np.isnan(x), np.nan, np.where(x == foot, 0.25, x > foot))


_SETTINGS = [
    {},
    {"scale": "percent", "ramp": "paper"},
    {"scale": "logit", "up": False},
    {"scale": "signed", "up": False, "width": 1e-6},
    {"scale": "real"},
    {"width": 0.0},
]
#: Rules of every kind, and their names.
CASES = [
    *((make, settings) for make in (soft, each) for settings in _SETTINGS),
    (each, {"unseen_group": "original"}),
    (each, {"unseen_group": "original", "scale": "logit", "up": False}),
    (each, {"unseen_group": "original", "width": 0.0}),
]
NAMED = [f"{make.__name__} {settings}" for make, settings in CASES]
