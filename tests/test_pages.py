"""Code in the documentation does what the pages show."""

import pytest

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
