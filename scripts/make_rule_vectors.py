"""Write docs/rule-vectors.json: rules, rows, and the results that every implementation must give.

python scripts/make_rule_vectors.py
"""

import json
from pathlib import Path

import numpy as np

import fairramp
from fairramp import ClassRule, FairrampError, GroupProbabilities, Ramp, Rule
from fairramp.core.ramps import OFFSETS
from fairramp.data.columns import Columns

KEY = "00112233445566778899aabbccddeeff" * 2
IDS = [
    "anna",
    "№7 — Ä",
    "e\u0301",
    "é",
    "a\u00a0b",
    " b ",
    "a:b",
    "12",
    12,
    -7,
    10**19,
    "👩🏽‍🚀",
    "O'Brien",
    'quote " \\',
    "line\nbreak",
]


def rule(groups, thresholds, width=0.01, ties=None, **settings):
    """A rule with the given thresholds and one width for all ramps."""
    ties = ties or [0.0] * len(groups)
    return Rule(
        tuple(groups),
        tuple(Ramp.centered(t, width, tie) for t, tie in zip(thresholds, ties, strict=True)),
        **settings,
    )


def rules():
    """Rules that cover every way to decide."""
    two, t = ("a", "b"), (0.5, 0.3217)
    yield rule(two, t)
    yield Rule(two, (Ramp(0.5, 0.1), Ramp(0.3217, 0.1)), ramp="paper")
    yield rule(two, t, width=1e-6)
    yield rule(two, t, width=0, ties=[0.25, 0.75])
    yield rule(two, t, unseen_group="pooled", pooled=Ramp.centered(0.4, 0.3), width=0.3)
    yield rule(two, t, unseen_group="original", cutoff=0.6)
    yield rule(two, t, width=0, ties=[0.5, 1.0], unseen_group="pooled", pooled=Ramp(0.4, 0.0, 0.125))
    widths = (Ramp(0.5, 0.0, 0.75), Ramp(0.25, 0.125), Ramp(0.3217, 1e-6), Ramp(0.9, 0.0, 0.5), Ramp(-0.2, 1.5))
    yield Rule(tuple("abcde"), widths, unseen_group="pooled", pooled=Ramp(0.4, 0.2))
    yield Rule(two, (Ramp(0.1, 0.8), Ramp(0.6, 0.0, 1.0)), unseen_group="pooled", pooled=Ramp(0.5, 0.0, 0.25))
    yield Rule(("a", "b", "c"), (Ramp.constant(0.3217), Ramp(0.4, 0.2), Ramp(0.5, 0.0, 0.25)))
    yield Rule(two, (Ramp.constant(0.0), Ramp.constant(1.0)), unseen_group="pooled", pooled=Ramp.constant(0.5))
    yield rule(two, t, scale="percent", cutoff=55.5, unseen_group="original")
    yield rule(two, (0.0, -0.31), scale="signed", cutoff=0.0, width=0.05)
    yield rule(two, (0.5, 0.731), scale="logit", cutoff=0.25, unseen_group="original", width=0.02)
    yield rule(two, (0.5, 2.0), scale="logit", cutoff=0.0, width=0, ties=[0.375, 0.0])
    yield rule(two, (0.2, 0.875), scale="real", cutoff=2.0, unseen_group="original", width=0.02)
    yield rule(two, (-0.75, 0.3217), scale="real", cutoff=0.0, width=0, ties=[0.375, 0.0])
    yield Rule(two, (Ramp(0.75, 0.125), Ramp.constant(0.125)), scale="real", cutoff=-3.5, ramp="paper")
    yield rule((1, "1", True, None, "", "Ünï 👩🏽‍🚀", "it's; --"), np.linspace(0.2, 0.8, 7).tolist())
    yield rule(
        (("f", 1), ("f", None), ("m", 1)), (0.2, 0.5, 0.7), columns=Columns(groups=("sex", "unit")), width=0.05
    )
    risk, lower = (-0.5, -0.3217), {"higher_is_better": False}
    yield rule(two, risk, **lower)
    yield rule(two, risk, width=0, ties=[0.25, 0.75], unseen_group="original", cutoff=0.6, **lower)
    yield Rule(two, (Ramp.constant(0.25), Ramp(-0.5, 0.1)), scale="logit", cutoff=0.0, **lower)
    yield rule(two, risk, scale="percent", unseen_group="pooled", pooled=Ramp.centered(-0.4, 0.3), **lower)
    yield rule(two, (-0.5, -0.731), scale="logit", cutoff=0.25, unseen_group="original", width=0.02, **lower)
    yield rule(two, (-0.875, 0.5), scale="real", cutoff=3.0, unseen_group="original", width=0, **lower)
    cells = (("north", "f"), ("north", "m"), ("south", "f"), ("south", "m"))
    yield rule(cells, (0.2, 0.4, 0.6, 0.8), stratified=True, target_rate=None, unseen_group="original")
    soft, each = {"membership": "probabilities"}, {"membership": "each", "target_rate": None}
    three = ("a", "b", None)
    yield rule(three, (0.52, 0.4, 0.3217), width=0.05, cutoff=0.45, **soft)
    yield Rule(two, (Ramp(0.6, 0.1), Ramp(0.3217, 0.1)), ramp="paper", scale="percent", cutoff=30.0, **soft)
    yield rule(two, (-0.55, -0.3217), width=0.1, unseen_group="original", **lower, **soft)
    yield rule(two, (0.5, 0.31), scale="logit", cutoff=0.25, width=0.02, **soft)
    yield rule(two, (0.3217, 0.3217), width=0, ties=[0.25, 0.25], **soft)
    pairs = (("sex", "f"), ("sex", "m"), ("unit", 1), ("unit", "1"), ("unit", None), ("level", True))
    feet = (0.52, 0.4, 0.3217, 0.47, 0.41, 0.44)
    yield rule(pairs, feet, width=0.05, base=Ramp.centered(0.45, 0.05), **each)
    yield rule(
        pairs, feet, width=0.1, base=Ramp.centered(0.43, 0.1), unseen_group="original", scale="percent", **each
    )
    risks = [-foot for foot in feet]
    yield rule(pairs, risks, width=0.1, base=Ramp.centered(-0.5, 0.1), scale="real", cutoff=0.7, **lower, **each)
    step = Ramp(0.5, 0.0, 0.25)
    yield Rule(pairs, (step,) * 6, base=step, unseen_group="original", cutoff=0.6, **each)


def people(one):
    """What a row has for a group, and its ramp: for every group, and for one that the rule does not know."""
    if one.membership == "known":
        other = tuple("zz" for _ in one.groups[0]) if isinstance(one.groups[0], tuple) else "zz"
        return [*zip(one.groups, one.ramps, strict=True), (other, one.pooled or one.ramps[0])]
    if one.membership == "each":
        known = [("f", 1, True), ("f", "1", True), ("m", None, True), ("m", 1, True)]
        unknown = [("zz", 1, True), ("f", True, True), ("m", 1, None)]
        shifts = {label: ramp.foot - one.base.foot for label, ramp in zip(one.groups, one.ramps, strict=True)}
        names = ("sex", "unit", "level")
        feet = [one.base.foot + sum(shifts[pair] for pair in zip(names, row, strict=True)) for row in known]
        return [*((row, Ramp(foot, one.base.width)) for row, foot in zip(known, feet, strict=True))] + [
            (row, one.base) for row in unknown
        ]
    rest = (0.0,) * (len(one.groups) - 2)
    known = [
        (1.0, 0.0),
        (0.0, 1.0),
        (0.5, 0.5),
        (0.3, 0.7),
        (0.1, 0.2) if rest else (0.9, 0.1),
        (0.3333333, 0.6666667),
    ]
    known = [(*row, *(rest if sum(row) > 0.5 else (0.7,))) for row in known] + [(1.0000005, 0.0, *rest)]
    unknown = [(0.5, 0.4, *rest), (1.2, -0.2, *rest), (0.5, None, *rest), (0.5, 0.500002, *rest)]
    feet = np.array([ramp.foot for ramp in one.ramps])
    mixed = [(row, Ramp(float(feet @ row), one.ramps[0].width)) for row in known]
    return mixed + [(row, one.ramps[0]) for row in unknown]


def scores_for(one, ramp, rng):
    """Scores at the ends of a ramp, next to them, inside, far away, and invalid ones."""
    turned, width = one.meaning.turned, 0.0 if ramp.is_constant else ramp.width
    edges = np.array([turned(ramp.foot + part * width) for part in (0.0, OFFSETS[one.ramp], 1.0)])
    inside = turned(ramp.foot + width * rng.random(4))
    x = np.concatenate([edges, np.nextafter(edges, -1.0), np.nextafter(edges, 2.0), inside])
    if one.scale == "logit":
        x = x[(x > 0) & (x < 1)]
        x = np.round(np.log(x / (1 - x)), 12)
        x = x[(ramp.width > 0) | (np.abs(x) > 1e-9) | (x == 0)]
        return [*x.tolist(), 0.0, -800.0, 800.0, -36.9, 5.0]
    scale = fairramp.core.scales.SCALES[one.scale]
    if one.scale == "real":
        x = x[np.abs(x) < 1]
        sizes = [0.0, -0.0, 0.5, 1e-300, 5e-324, 3.0, 1e15, 4503599627370496.0, 1e300]
        return [*scale.shown(x).tolist(), one.cutoff, *sizes, *(-size for size in sizes)]
    shown = (x * (100.0 if one.scale == "percent" else 1.0)).tolist()
    return [*shown, *scale.score_range, one.cutoff, float(np.float32(0.3217)), -1.5, 100.5]


def decided(one, score, group, identifier):
    """One row with the library's probability and decision, or None for a row that it rejects."""
    strata = None
    columns = [group]
    if one.membership == "probabilities":
        columns = None  # made below, where they may be rejected
    elif one.stratified:
        strata, columns = [group[0]], [group[1]]
    elif isinstance(group, tuple):
        columns = [[part] for part in group]
    row = {"score": score, "group": list(group) if isinstance(group, tuple) else group, "id": identifier}
    try:
        if columns is None:
            columns = GroupProbabilities(dict(enumerate([part] for part in group)), one.groups)
        p = one.probabilities([score], columns, strata)
        yes = one.decide([score], columns, strata=strata, ids=[identifier], key=KEY)
    except FairrampError:
        return row | {"probability": None, "decision": None}
    return row | {"probability": float(p[0]), "decision": int(yes[0])}


def class_rules():
    """Rules for several classes that cover every way to decide."""
    two, three = ("a", "b"), ("mid", "low", "high")
    offsets = ((0.0, 0.0, 0.0), (0.0625, 0.03217, -0.09467))
    yield ClassRule(two, three, offsets, 0.1)
    yield ClassRule(two, three, offsets, 1e-6, unseen_group="original")
    yield ClassRule(two, three, ((0.0,) * 3,) * 2, 0.0, unseen_group="original")
    yield ClassRule(two, ("no", "yes"), ((0.05, -0.05), (-0.1, 0.1)), 0.5)
    labels = ("\U0001f469", "\uffee", True, 2, "1", 1, False, "")  # code points and code units sort differently
    yield ClassRule(two, labels, (tuple(np.linspace(-0.035, 0.035, 8).tolist()), (0.0,) * 8), 2.0)
    cells = (("north", "f"), ("north", "m"), ("south", "f"), ("south", "m"))
    yield ClassRule(cells, (1, 2, 3), offsets * 2, 0.05, stratified=True, unseen_group="original")
    mixed = ((0.1, -0.3, 0.2), (0.1, 0.0, -0.1), (0.1, 0.1, -0.2))
    yield ClassRule(("a", "b", None), three, mixed, 0.3, membership="probabilities")
    yield ClassRule(two, three, ((0.0,) * 3,) * 2, 0.0, membership="probabilities")


def class_scores(one, rng):
    """Scores with ties, near each other, certain and spread ones, and invalid ones."""
    n = len(one.classes)
    rest = [0.0] * (n - 2)
    even = [1 / n] * n
    yield from ([0.5, 0.5, *rest], [0.5, 0.4999997, *rest], [1.0, 0.0, *rest], [0.0, 1.0, *rest], even)
    for power in (0.5, 2.0, 20.0):
        yield from rng.dirichlet(np.full(n, power), 3).round(6).tolist()
    yield from ([0.5, 0.50000099, *rest], [0.6, 0.5, *rest], [-0.1, 1.1, *rest], [0.5, None, *rest])


def class_decided(one, scores, group, identifier):
    """One row with the library's chances and decision, or None for a row that it rejects."""
    row = {"scores": scores, "group": list(group) if isinstance(group, tuple) else group, "id": identifier}
    try:
        if one.membership == "probabilities":
            known = (GroupProbabilities(dict(enumerate([part] for part in group)), one.groups),)
        else:
            known = ([group[1]], [group[0]]) if one.stratified else ([group],)
        h = one.probabilities([scores], *known)
        (place,) = one.drawn(h, ids=[identifier], key=KEY)
    except FairrampError:
        return row | {"chances": None, "decision": None}
    return row | {"chances": h[0].tolist(), "decision": one.classes[place]}


def class_cases():
    """Cases of rules for several classes."""
    rng = np.random.default_rng(1)
    for one in class_rules():
        if one.membership == "probabilities":
            rest = (0.0,) * (len(one.groups) - 2)
            groups = [(1.0, 0.0), (0.25, 0.75), (0.3333333, 0.6666667), (0.5, 0.4), (1.2, -0.2), (0.5, None)]
            groups = [(*group, *rest) for group in groups]
        else:
            groups = [*one.groups, ("north", "zz") if one.stratified else "zz"]
        people = ((scores, group) for group in groups for scores in class_scores(one, rng))
        rows = [
            class_decided(one, scores, group, IDS[i] if i < len(IDS) else f"id {i}")
            for i, (scores, group) in enumerate(people)
        ]
        yield {"rule": one.to_dict(), "fingerprint": one.fingerprint, "key": KEY, "rows": rows}


def vectors():
    """All draws and cases."""
    rng = np.random.default_rng(0)
    cases = []
    for one in rules():
        rows = []
        for label, ramp in people(one):
            for score in scores_for(one, ramp, rng):
                identifier = IDS[len(rows)] if len(rows) < len(IDS) else f"id {len(rows)}"
                rows.append(decided(one, score, label, identifier))
        cases.append({"rule": one.to_dict(), "fingerprint": one.fingerprint, "key": KEY, "rows": rows})
    found = [
        {"key": key, "id": one, "u": float(fairramp.draws([one], key)[0])}
        for key in (KEY, "0" * 64)
        for one in IDS
    ]
    return {"format": "fairramp.rule-vectors", "version": 2, "draws": found, "cases": cases} | {
        "class_cases": list(class_cases())
    }


def text():
    """The content of the file, one row per line."""
    content = vectors()
    lines = ['{"format": "fairramp.rule-vectors", "version": 2,', '"draws": [']
    lines.append(",\n".join(json.dumps(one, ensure_ascii=False) for one in content["draws"]) + "],")
    for name in ("cases", "class_cases"):
        cases = ",\n".join(map(_written, content[name]))
        lines.append(f'"{name}": [\n{cases}]' + (",") * (name == "cases"))
    return "\n".join(lines) + "}\n"


def _written(case):
    """A case, one row per line."""
    head = json.dumps({name: case[name] for name in ("rule", "fingerprint", "key")}, ensure_ascii=False)
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in case["rows"])
    return f'{head[:-1]}, "rows": [\n{rows}]}}'


if __name__ == "__main__":
    path = Path(__file__).parents[1] / "docs" / "rule-vectors.json"
    path.write_text(text(), encoding="utf-8", newline="\n")
    print(f"{path}: {path.stat().st_size:,} bytes")
