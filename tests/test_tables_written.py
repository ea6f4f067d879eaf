"""Tables as CSV and Markdown: other programs read the same values, and no name acts as anything but text."""

import csv
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fairramp
from fairramp import Table
from fairramp.core.labels import show_label

#: What OWASP lists as the start of a formula in a spreadsheet.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
HOSTILE = [
    *("=1+1", "+1", "-1", "@SUM(A1)", "＝1", "＋1", "－1", "＠1", " =1", "\ufeff=1", "\0=1"),
    *("\t=1", "\r=1", "\n=1", "\tA", "\rA", "\nA", "'=1", "''=1", "'", "''"),
    *("A,B", 'say "yes"', '"', "two\nlines", "two\r\nlines", "\u2028", " padded "),
    *("a|b", "\\", "\\|", "`code`", "``", "*a*", "__b__", "~~c~~", "<b>", "<script>alert(1)</script>", "&amp;"),
    *("[a](https://b.example)", "![a](b)", "[a]", "[^1]", "<https://a.example>", "https://a.example", "$x$"),
    *("www.a.example", "a@b.example", "@mention", "#1", "owner/name#1", "{{x}}", "{% x %}", "# a", "- a", "---"),
    *(":---:", "> a", "1. a", "<!-- a", "&#35;", "é", "日本", "", "(blank)", "NULL", "nan"),
]
#: Text that labels may have: anything but halves of a surrogate pair.
anything = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.text("=+-@\t\r\n '\"|\\`<>[]()*_~#&{}$!:/w.a1,;", max_size=12),
)
labels = st.one_of(anything, st.integers(), st.booleans(), st.none(), st.tuples(anything, anything))
numbers = st.floats(allow_subnormal=True)
same_length = st.integers(1, 6).flatmap(
    lambda n: st.tuples(st.lists(anything, min_size=n, max_size=n), st.lists(numbers, min_size=n, max_size=n))
)


def read(text):
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def printed(label):
    """The text of a name: as it is, unless there is none."""
    return label or "(blank)"


def unmarked(cell):
    """A name without the apostrophe that keeps a spreadsheet from running it."""
    return cell[1:] if cell.startswith("'") and is_formula(cell[1:]) else cell


def is_formula(text):
    """Whether some spreadsheet might run a text: programs drop apostrophes, blanks and invisible characters."""
    text = text.lstrip("'")
    visible = "".join(c for c in text if c.isprintable()).lstrip()
    return text.startswith(FORMULA_STARTS) or visible.startswith(FORMULA_STARTS)


@given(same_length, anything, anything)
@example((HOSTILE, [-0.1] * len(HOSTILE)), "=first", "second,\n=")
def test_csv_reads_back_as_the_same_names_and_numbers(content, first, second):
    names, values = content
    if first == second:
        second += "2"
    header, *rows = read(Table({first: names, second: values}).to_csv())
    assert [unmarked(cell) for cell in header] == [first, second]
    assert [unmarked(name) for name, _ in rows] == [printed(name) for name in names]
    np.testing.assert_array_equal([float(value or "nan") for _, value in rows], values)


@given(st.lists(labels, min_size=1, max_size=6), anything)
@example(HOSTILE, "=heading")
def test_no_text_in_a_csv_starts_a_formula(names, heading):
    header, *rows = read(Table({heading: names}).to_csv())
    assert len(rows) == len(names)
    for cell, label in zip([*header, *(cell for (cell,) in rows)], [heading, *names], strict=True):
        if isinstance(label, int) and not isinstance(label, bool):
            assert cell == str(label)  # numbers stay numbers, even if they are negative
        else:
            assert not cell.startswith(FORMULA_STARTS)
            assert not cell.lstrip().startswith(FORMULA_STARTS)


@given(st.lists(numbers, min_size=1, max_size=6), st.data())
def test_floats_in_a_csv_keep_every_bit_and_need_no_quotes(values, data):
    counts = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=len(values), max_size=len(values)))
    text = Table({"x": values, "n": counts}).to_csv()
    lines = [line.split(",") for line in text.splitlines()]
    assert lines[0] == ["x", "n"]
    back = np.array([float(x) if x else np.nan for x, _ in lines[1:]])
    np.testing.assert_array_equal(back, values)
    np.testing.assert_array_equal(np.signbit(back)[~np.isnan(back)], np.signbit(values)[~np.isnan(back)])
    assert [int(n) for _, n in lines[1:]] == counts


@given(st.lists(anything, min_size=2, max_size=6, unique=True).filter(lambda names: not {""} & {*names}))
@example(["=1", "'=1", "''=1"])
def test_different_names_stay_different_in_a_csv(names):
    _, *rows = read(Table({"group": names}).to_csv())
    assert len({cell for (cell,) in rows}) == len(names)


def test_csv_has_all_columns_and_plain_lines():
    table = Table(
        {"a_from": [1.5], "a_to": [2.5], "rate": [0.1], "rate_low": [0.0], "rate_high": [np.nan], "n": [7]}
    )
    assert table.to_csv() == "a_from,a_to,rate,rate_low,rate_high,n\n1.5,2.5,0.1,0.0,,7\n"
    many = Table({"x": np.arange(1000)})
    assert many.is_cut
    assert many.to_csv() == "x\n" + "".join(f"{i}\n" for i in range(1000))
    assert Table({}).to_csv() == ""
    assert Table({"group": []}).to_csv() == "group\n"
    assert Table({"group": [None, "", ("a", None), True]}).to_csv() == (
        "group\n(missing)\n(blank)\na / (missing)\nTrue\n"
    )
    assert read(Table({"x": [np.nan, 1.0]}).to_csv()) == [
        ["x"],
        [""],
        ["1.0"],
    ]  # no blank line, which readers skip


@given(same_length)
@example((HOSTILE, [-0.1] * len(HOSTILE)))
def test_polars_reads_the_csv_as_python_does(content):
    polars = pytest.importorskip("polars")
    text = Table({"group": content[0], "x": content[1]}).to_csv()
    frame = polars.read_csv(text.encode(), schema={"group": polars.String, "x": polars.Float64})
    _, *rows = read(text)
    assert frame["group"].to_list() == [name for name, _ in rows]
    np.testing.assert_array_equal(frame["x"].fill_null(np.nan).to_numpy(), content[1])


@pytest.mark.parametrize("sniffed", [False, True])
def test_duckdb_reads_the_csv_as_python_does(sniffed, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    names = [name for name in HOSTILE if name]
    text = Table({"group": names, "x": [0.1 * i for i in range(len(names))]}).to_csv()
    (tmp_path / "table.csv").write_bytes(text.encode())
    options = "" if sniffed else ", auto_detect=false, columns={'group': 'VARCHAR', 'x': 'DOUBLE'}, escape='\"'"
    found = duckdb.connect().sql(
        f"FROM read_csv('{tmp_path}/table.csv', header=true, delim=',', quote='\"'{options})"
    )
    assert found.columns == ["group", "x"]
    assert [unmarked(name) for name, _ in found.fetchall()] == names
    assert [x for _, x in found.fetchall()] == [0.1 * i for i in range(len(names))]


class Cells(HTMLParser):
    """The cells of an HTML table by row, and the names of all elements with their attributes."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.elements = [], set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.add((tag, *attributes))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_data(self, text):
        if self.rows and self.rows[-1] and (text.strip() or self.rows[-1][-1]):
            self.rows[-1][-1] += text

    def handle_comment(self, text):
        raise AssertionError(text)

    def texts(self):
        return [[cell.replace("\u200b", "").strip() for cell in row] for row in self.rows]


def rendered(text):
    from markdown_it import MarkdownIt

    pages = [MarkdownIt("commonmark", {"html": raw}).enable(["table", "strikethrough"]) for raw in (True, False)]
    with_html, without = (page.render(text) for page in pages)
    assert with_html == without  # the text contains no HTML
    return Cells(with_html)


@given(same_length, anything)
@example((HOSTILE, [0.25] * len(HOSTILE)), "heading|=")
def test_markdown_shows_each_printed_cell_as_literal_text_and_nothing_else(content, heading):
    names, values = content
    table = Table({"group": names, "rate": values}, headings={"group": heading}, shares=["rate"])
    page = rendered(table.to_markdown())
    right = ("style", "text-align:right")
    assert page.elements == {
        *(("table",), ("thead",), ("tbody",), ("tr",)),
        *(("th",), ("th", right), ("td",), ("td", right)),
    }

    def one_line(text):
        return "".join(c if c.isprintable() else " " for c in text).strip()

    shown = [one_line(show_label(name)) for name in names]
    assert [row[0] for row in page.texts()] == [one_line(heading), *shown]
    assert [row[1:] for row in page.texts()[1:]] == [
        [Table({"rate": [value]}, shares=["rate"]).text().split("\n")[-1].strip()] for value in values
    ]


@given(st.lists(anything, min_size=1, max_size=6))
@example(HOSTILE)
def test_nothing_in_markdown_mentions_links_or_fills_a_template(names):
    text = Table({"group": names}).to_markdown()
    shown = "\n".join(cell for row in rendered(text).rows for cell in row)
    assert not re.search(r"@[a-z0-9]|#[0-9]|://|www\.", shown, re.IGNORECASE)
    assert not re.search(r"\{[{%#]|[}%#]\}", text)


def test_markdown_has_the_printed_columns_of_every_row():
    columns = {"group": ["A", "B"], "rate": [0.1, np.nan], "rate_low": [0.05, np.nan], "rate_high": [0.2, np.nan]}
    table = Table({**columns, "n": [1234, 5]}, headings={"n": "rows"}, shares=["rate"])
    assert table.to_markdown().splitlines() == [
        "| group | rate (95% CI) | rows |",
        "| --- | ---: | ---: |",
        r"| A | 10.0% \[5.0%, 20.0%\] | 1,234 |",
        "| B | – | 5 |",
    ]
    assert rendered(Table({"x": np.arange(1000)}).to_markdown()).texts() == [["x"]] + [
        [f"{i:,}"] for i in range(1000)
    ]
    assert Table({}).to_markdown() == ""
    assert Table({"two\nlines": []}).to_markdown() == "| two lines |\n| ---: |"


def test_tables_of_a_rule_and_an_audit_are_written():
    adult = fairramp.datasets.load_adult_scores()
    rule = fairramp.fit_rule(adult.score, adult.sex, max_gap=0.02)
    for table in (rule.table(), fairramp.audit(adult.score, adult.sex, rule=rule).table()):
        header, *rows = read(table.to_csv())
        assert tuple(header) == table.columns
        for name, cells in zip(header, zip(*rows, strict=True), strict=True):
            values = table[name]
            if values.dtype == object:
                assert list(cells) == values.tolist()
            else:
                np.testing.assert_array_equal([float(c or "nan") for c in cells], values)
        assert [row[0] for row in rendered(table.to_markdown()).texts()[1:]] == list(table["group"])
