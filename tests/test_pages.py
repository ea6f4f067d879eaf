"""Code in the documentation does what the pages show."""

import inspect
import re

import pytest

import fairramp
from pages import ROOT, blocks, digits_hidden, pages, run


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page_code_runs_and_prints_what_the_page_shows(page, tmp_path):
    names = {}
    drawn = False
    for block in blocks(page.read_text(encoding="utf-8")):
        printed = run(block, names, tmp_path)
        if block.says is None:
            continue
        drawn = drawn or "keygen" in block.code
        if drawn:  # a new key changes only the numbers
            printed, says = digits_hidden(printed), digits_hidden(block.says)
        else:
            says = block.says
        assert printed == says, f"{page.name}, line {block.line}"


def test_blocks_are_found():
    text = (
        "```python\nprint(1)\n```\n\n```text\n1\n```\n"
        "<!-- not run: needs more -->\n```python\nnonsense()\n```\n"
        "```python\nx = 2\n```\nwords\n```text\n1\n```\n"
        "```console\n$ echo a \\\n  b\na b\n$ echo c\nc\n```\n```console\nmake demo\n```\n"
    )
    found = [(b.code, b.says) for b in blocks(text)]
    assert found == [
        ("print(1)\n", "1\n"),
        ("x = 2\n", None),
        ("echo a \\\n  b\n", "a b"),
        ("echo c\n", "c"),
    ]
    assert len(pages()) > 5


def test_commands_whose_output_is_not_shown_must_succeed(tmp_path):
    good, bad = blocks("<!-- output not shown -->\n```console\n$ echo a\n$ exit 3\n```\n")
    assert good.says is None
    assert run(good, {}, tmp_path) == "a"
    with pytest.raises(RuntimeError, match="exit code 3"):
        run(bad, {}, tmp_path)


def test_cheat_sheet_has_every_argument_of_fit_rule_with_its_default():
    text = (ROOT / "docs" / "cheat-sheet.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?`) \| (.+?) \|", text, re.MULTILINE)
    listed = {name: default.strip('`"') for names, default in rows for name in re.findall(r"`(\w+)`", names)}
    for name, parameter in inspect.signature(fairramp.fit_rule).parameters.items():
        if parameter.default is inspect.Parameter.empty:
            assert listed[name] == "required"
        elif name == "cutoff":  # it depends on the scale
            assert listed[name] == "0.5"
        elif isinstance(parameter.default, float):
            assert float(listed[name]) == parameter.default, name
        else:
            assert listed[name].lower() == str(parameter.default).lower(), name
