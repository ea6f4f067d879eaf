"""The files of a folder of evidence, as text by name."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from fairramp.core.headline import SMALL_GROUP
from fairramp.core.table import Table, one_line
from fairramp.core.words import number, percentage
from fairramp.core.written import inert
from fairramp.measure.impact import SMALL_SHARE, Impact
from fairramp.show.evidence.annex import annex
from fairramp.show.evidence.content import FEWER_THAN_TWO, NO_CLAIM, Pack, finding
from fairramp.show.report import Report

#: What each file is, in the order of the index.
_ABOUT = {
    "impact-ratios.md": "Selection rates and impact ratios by category and by intersection. Start here.",
    "impact-ratios.csv": "The same numbers with all digits, for a spreadsheet.",
    "scoring-rates.csv": "How often each category has a score beyond the median, with all digits.",
    "report.html": "The effect of the rule, with charts and limits for new people. It works offline.",
    "annex-iv.md": "The technical facts that Annex IV of the EU AI Act lists, and questions for the provider.",
    "audit.json": "Rates, gaps, errors and their confidence intervals.",
    "rule.json": "The rule itself. It decides without any other file.",
    "certificate.json": "Limits on the gap for new people, with their assumptions.",
    "provenance.json": "Versions of the software, and fingerprints of the rule and the data.",
    "SHA256SUMS": "Checksums of all files above and of this page.",
}
_MANIFEST, _INDEX = "SHA256SUMS", "README.md"


def documents(pack: Pack, *, report: bool = True) -> dict[str, str]:
    """All files; with a rule, `report` adds the HTML page."""
    found = {
        "impact-ratios.md": _impact_page(pack),
        "impact-ratios.csv": pack.impact_ratios.to_csv(),
        "annex-iv.md": _annex_page(pack),
        "audit.json": _json({"note": NO_CLAIM, **pack.audit.to_dict()}),
        "provenance.json": _json(pack.provenance()),
    }
    if pack.scoring_rates is not None:
        found["scoring-rates.csv"] = pack.scoring_rates.to_csv()
    if pack.rule is not None:
        found["rule.json"] = pack.rule.to_json()
        limits = pack.certificate
        known = {"why_none": limits} if isinstance(limits, str) or limits is None else limits.to_dict()
        found["certificate.json"] = _json({"note": NO_CLAIM, **known})
    if pack.report is not None and report:
        content = replace(pack.report, notes=(*pack.report.notes, NO_CLAIM))
        found["report.html"] = Report(content).html
    found[_INDEX] = _index(pack, [*found, _MANIFEST])
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in found.items()}
    found[_MANIFEST] = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return found


# Pages --------------------------------------------------------------------------------------------


def _index(pack: Pack, names: Sequence[str]) -> str:
    """README.md."""
    about, rows = pack.about, [(name, text) for name, text in _ABOUT.items() if name in names]
    facts = {
        "People in the data": f"{pack.rows:,}",
        "File": about.source,
        **pack.outcomes,
        "A yes means": about.decision,
        "Responsible": about.owner,
        "Date": about.date,
        "Rule": pack.rule and f"fingerprint {pack.rule.fingerprint}",
        "Rows": pack.fit_rows,
        "Made with": f"fairramp {pack.versions['fairramp']}",
    }
    return _page(
        pack.title,
        _list([*(f"{name}: {text}" for name, text in facts.items() if text), *filter(None, [about.left_out])]),
        *([f"**Please note:** {_text(pack.doubt)}"] if pack.doubt else []),
        "## Main findings",
        pack.findings.to_markdown(),
        _whom(pack),
        "## Files",
        Table({"file": [name for name, _ in rows], "content": [text for _, text in rows]}).to_markdown(),
        "## Is this folder unchanged?",
        "On Linux or macOS, in this folder: `sha256sum --check SHA256SUMS`. Someone who changes a file can "
        "change SHA256SUMS, too, so keep a copy of it elsewhere. The same rows, settings and software versions "
        "give the same files, so anyone who has the data can repeat the measurement.",
    )


def _whom(pack: Pack) -> str:
    """Which categories the main findings compare."""
    small, all_of_them = pack.by_chance, len(pack.by_chance) == len(pack.decided[0].impacts)
    found = []
    if not all_of_them:
        found.append(
            f"The main findings compare categories with at least {SMALL_GROUP} people, because the ratio of a "
            "smaller category can be far from 1 by chance alone."
        )
    if small:
        by = "" if all_of_them else f" by {', '.join(map(inert, small))}"
        found.append(
            f"{FEWER_THAN_TWO.replace(' have', f'{by} have')}, so the main findings compare all of them, and "
            "their ratios can be far from 1 by chance alone."
        )
    return " ".join([*found, "All categories are in impact-ratios.md."])


def _impact_page(pack: Pack) -> str:
    """impact-ratios.md."""
    parts = [
        f"{pack.rows:,} people{f' in {inert(pack.about.source)}' if pack.about.source else ''}.",
        "## How to read the tables",
        _list(
            [
                "Selection rate: the share of the people in a category who are selected.",
                "Impact ratio: the selection rate of a category, divided by that of the category with the "
                "highest rate. It is 1 for that category and at most 1 for the others.",
                "The ratio of a category with few people can be far from 1 by chance alone. The sentences above "
                f"the tables compare only categories with at least {SMALL_GROUP} people if there are two, and "
                f"have confidence intervals ({percentage(pack.audit.confidence)}) in brackets.",
                "Local Law 144 of New York City asks for these rates and ratios. It sets no threshold for the "
                "ratio, and neither do these tables.",
                "The rules of this law let an independent auditor leave out a category with less than "
                f"{percentage(SMALL_SHARE)} of the people, with a reason. Such categories are marked, and the "
                "last column has the ratios without them.",
                "People whose category is unknown are in no row of that table; their number is below it.",
                *(
                    [f"Values that count as unknown, besides missing ones: {', '.join(pack.unknown)}."]
                    if pack.unknown
                    else []
                ),
                "Intersections without people have no row.",
            ]
        ),
    ]
    for one in pack.decided:
        parts += [f"## {one.heading}", inert(one.how)]
        for impact in one.impacts:
            parts += _section(impact, impact.table(), pack.audit.confidence)
    if (scored := pack.scored) is not None:
        parts += [
            "## Scores",
            f"Scoring rate: the share of the people in a category whose score is {scored.side} the median score "
            f"of all people, {inert(number(scored.median, 4))}. The rule does not change scores.",
        ]
        for impact in scored.impacts:
            parts += _section(impact, scored.table(impact), pack.audit.confidence, f"{scored.side} the median")
    return _page("Impact ratios", *parts)


def _section(impact: Impact, table: Table, confidence: float, verb: str = "selected") -> list[str]:
    """A table with its finding above and the unknown people below."""
    found = impact.categories
    people = "person" if found.unknown == 1 else "people"
    unknown = f"Not in this table: {found.unknown:,} {people} whose {' or '.join(found.columns)} is unknown."
    small = [label for label, is_small in zip(found.labels, found.small, strict=True) if is_small]
    share = percentage(SMALL_SHARE)
    note = f" Below {share} of all people: {len(small):,} of {len(found.labels):,} categories." if small else ""
    return [
        f"### By {_text(found.name)}",
        _text(finding(impact, confidence, verb)),
        table.to_markdown(),
        _text(f"{unknown}{note}"),
    ]


def _annex_page(pack: Pack) -> str:
    """annex-iv.md."""
    parts = [
        "Annex IV of Regulation (EU) 2024/1689 lists what the technical documentation of a high-risk AI system "
        "contains. The headings below summarize it; only the regulation itself is binding. Facts that fairramp "
        "knows are filled in. Boxes are questions that only the provider can answer.",
    ]
    for point in annex(pack):
        parts += [f"## {point.number} {point.heading}"]
        parts += [_list(point.facts)] if point.facts else []
        parts += [table.to_markdown() for table in point.tables]
        parts += ["Questions for the provider:", _list(point.questions, "- [ ] ")]
    return _page("Technical facts for Annex IV", *parts)


# Markdown and JSON --------------------------------------------------------------------------------


def _page(title: str, *parts: str) -> str:
    """A page whose first paragraph claims nothing."""
    return "\n\n".join([f"# {_text(title)}", f"> **{NO_CLAIM}**", *parts]) + "\n"


def _text(text: str) -> str:
    return inert(one_line(text))


def _list(items: Iterable[str], mark: str = "- ") -> str:
    """A list; an item has no markup."""
    return "\n".join(f"{mark}{_text(item)}" for item in items)


def _json(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
