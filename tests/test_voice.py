"""One spelling, and no phrase that readers have to read twice.

`python tests/test_voice.py PATH …` lists what it finds in some files.
"""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: What people write. Results, licenses and what programs make from these are not.
FOLDERS = ("src", "docs", "examples", "tests", "scripts", "benchmarks", "reproduction")
ENDINGS = {".py", ".md", ".rst", ".txt", ".html", ".css", ".js", ".toml", ".cff"}
MADE = {"_build", "api", "gallery", "__pycache__", "results", "node_modules"}

#: British stems; the American spelling has z, or, er or one l.
BRITISH = (
    r"(?:random|equal|minim|maxim|optim|normal|summar|standard|real|author|general|recogn|organ|initial|serial"
    r"|penal|categor|character|visual|util|stabil|discret|regular|factor|vector|emphas|final|formal|memor|priorit"
    r"|special|synchron|material|local|parametr|linear|quant|token|capital|critic)is(?:e[drs]?|ing|ation|ations)\b"
    r"|analys(?:e[ds]?|ing)\b|colour|favour|behaviour|neighbour|honour|\blabour|\bcentre[ds]?\b|\blicence"
    r"|\bgrey|\blabell(?:ed\b|ing\b)|cancelled|modelled|signalled|travelled|\bfulfil\b|artefact|\bprogramme\b"
    r"|whilst|\blearnt\b|\bspelt\b|misspelt|\b(?:to|back|for|after|up|down)wards\b|catalogue|judgement|\bmetres?\b"
)
#: One spelling of a word that has several.
MIXED = r"cut-off|\bdata (?:base|set|frame)s?\b|\be-mail|\bset-up\b|\bper cent\b|time stamp"
#: Phrases that sound translated, and metaphors.
PHRASES = (
    r"\bfrom (?!scratch|those|that)\S+ on\b(?! both)|\bhardly any|\bby lot\b|\bturn(?:s|ed)? round\b"
    r"|\bturned to (?:no|yes)\b"
    r"|\bright decisions?\b"
    r"|\bone single\b|\balso if\b|\bso many\b|\bwhole number from\b|\bwhat came\b|\bwho is killed\b"
    r"|coming.from|what goes wrong|what is where|\bpromis\w*|\bforet[eo]l[ld]\w*|\bat the door\b|\bof the house\b"
    r"|times as often as|\bwhoever\b|\bthe rows do not tell\b|\b(?:is|are) warned of\b|\b(?:is|are) told\b"
)
#: A percent sign belongs to its number: 95%.
SPACED = r"[0-9}][ \u00a0]%(?=$|[ .,;:)\"'<](?![0-9(]))"
BANNED = {"British spelling": BRITISH, "spelling": MIXED, "phrase": PHRASES, "space before %": SPACED}
#: Text that others chose: an attribute of HTML, a word of JavaScript, cells of a spreadsheet.
ALLOWED = re.compile(r"labelledby|Promise\.|new Promise|tests/test_voice|70 %,b|f\} %,\{")


def written() -> list[Path]:
    """Files that people write."""
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    kept = (p for p in found if p.suffix in ENDINGS and MADE.isdisjoint(p.relative_to(ROOT).parts[:-1]))
    here = [p for p in ROOT.iterdir() if p.suffix in ENDINGS or p.name == "Makefile"]
    return sorted({*here, *kept, *(ROOT / "examples/gallery").rglob("*")} - {Path(__file__)})


def findings(path: Path) -> list[str]:
    """Lines of a file that say something in a way that we do not."""
    if path.suffix not in ENDINGS and path.name != "Makefile":
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        f"{path.relative_to(ROOT)}:{i}: {kind}: {match[0]!r} in {line.strip()[:100]!r}"
        for i, line in enumerate(lines, 1)
        for kind, pattern in BANNED.items()
        for match in re.finditer(pattern, ALLOWED.sub("", line), re.IGNORECASE)
    ]


@pytest.mark.parametrize("folder", [".", *FOLDERS])
def test_everything_is_written_in_one_voice(folder):
    place = ROOT / folder
    mine = [p for p in written() if (p.parent == ROOT if folder == "." else place in p.parents)]
    assert mine
    assert [line for path in mine for line in findings(path)] == []


@pytest.mark.parametrize(
    "line",
    [
        "we equalise rates",
        "a colour",
        "yes from 0.5 on",
        "95 % confidence",
        "drawn by lot",
        "a data base",
        "one single group",
        "labelled rows",
    ],
)
def test_the_banned_are_found(line, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(line, encoding="utf-8")
    assert len(findings(tmp_path / "page.md")) == 1


@pytest.mark.parametrize(
    "line", ["we equalize rates", 'aria-labelledby="x"', "i * 37 % 101", "95% of rows", "from top to bottom on"]
)
def test_what_is_meant_otherwise_is_left_alone(line, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(line, encoding="utf-8")
    assert findings(tmp_path / "page.md") == []


if __name__ == "__main__":
    print("\n".join(line for name in sys.argv[1:] for line in findings(Path(name).resolve())))
