"""A report that is open in a browser."""

import io
import re
import unicodedata
from itertools import combinations

import pypdf
import pytest

from fairramp.show.words import unmarked

READ = """() => ({
  said: [...document.querySelectorAll('[data-say]')].map(
    e => [e.dataset.say, e.textContent, e.getAttribute('title')]),
  tables: Object.fromEntries([...document.querySelectorAll('table[id^=table-]')].map(t => [
    t.id.slice('table-'.length),
    [...t.tBodies[0].rows].map(r => [...r.cells].map(c => [c.textContent, c.title])),
  ])),
  labels: Object.fromEntries([...document.querySelectorAll('[data-label]')].map(
    e => [e.dataset.label, e.getAttribute('aria-label')])),
  limit: document.getElementById('limit')?.getAttribute('aria-valuetext') ?? null,
})"""

#: Texts of each chart with their boxes; Vega makes labels of an axis that would overlap transparent.
TEXTS = """() => Object.fromEntries([...document.querySelectorAll('.chart svg')].map(svg => {
  const box = e => { const b = e.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; };
  const shown = [...svg.querySelectorAll('text')].filter(
    t => t.textContent.trim() && Number(getComputedStyle(t).opacity) > 0 && !t.getAttribute('stroke'));
  return [svg.closest('.chart').id.slice('chart-'.length), {
    box: box(svg),
    page: document.documentElement.clientWidth,
    texts: shown.map(t => ({
      text: t.textContent,
      axis: t.parentNode.classList.contains('role-axis-label'),
      box: box(t),
    })),
  }];
}))"""

COLORS = """() => {
  const found = {};
  for (const svg of document.querySelectorAll('.chart svg')) for (const e of svg.querySelectorAll('*')) {
    const style = getComputedStyle(e);
    if (e instanceof SVGGraphicsElement && !(e instanceof SVGGElement) && e.getBoundingClientRect().height + \
e.getBoundingClientRect().width > 0)
      for (const kind of ['fill', 'stroke']) found[style[kind]] = svg.closest('.chart').id;
  }
  return found;
}"""

VARIABLES = """names => {
  const probe = document.body.appendChild(document.createElement('i'));
  const found = names.map(name => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  return found;
}"""


class Opened:
    """An open page with its console messages and requests."""

    def __init__(self, page, report):
        self.page, self.report, self.content = page, report, report.content
        self.complaints, self.requests = [], []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.complaints.append("a dialog opened") or dialog.dismiss())

    def move_to(self, at):
        self.page.evaluate(
            "at => { const s = document.getElementById('limit'); if (!s) return; s.value = at; "
            "s.dispatchEvent(new Event('input')); }",
            at,
        )

    def reset(self):
        self.emulate("light")
        self.move_to(getattr(self.content, "own", 0))
        if self.page.viewport_size["width"] != 1200:
            self.resize(1200)
        self.settle()

    def assert_clean(self):
        """The page logged nothing, opened no dialog and requested nothing but itself."""
        complaints, self.complaints[:] = list(self.complaints), []
        assert complaints == []
        assert all(url.startswith(("file:", "data:")) for url in self.requests)

    def until(self, condition):
        """Wait for a condition; Playwright's own waiting would evaluate text, which the page forbids."""
        for _ in range(100):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        pytest.fail(f"never true: {condition}")

    def what_if(self):
        """Leave the position of the reported rule; returns the new one."""
        at = 0 if self.content.own else len(self.content.outcomes) - 1
        self.move_to(at)
        return at

    def emulate(self, scheme):
        media, scheme = ("print", "dark") if scheme == "print" else ("null", scheme)
        self.page.emulate_media(media=media, color_scheme=scheme)

    def read(self):
        return self.page.evaluate(READ)

    def text(self, selector):
        return self.page.locator(selector).first.text_content()

    def is_shown(self, selector):
        return self.page.locator(selector).first.is_visible()

    def shown(self):
        """All visible texts but those of charts, whose order changes."""
        return self.page.evaluate(
            "[...document.querySelectorAll('body *:not(.chart *)')]"
            ".filter(e => e.children.length === 0 && e.checkVisibility()).map(e => e.textContent)"
        )

    def wait_for_texts(self, chart, wanted):
        """Wait until the chart has texts that are, or start with, the wanted ones."""
        has_all = """([id, wanted]) => {
          const texts = [...document.querySelectorAll(`#chart-${id} text`)].map(t => t.textContent);
          return wanted.filter(w => !texts.some(t => t === w || t.startsWith(`${w} `)));
        }"""
        for _ in range(20):
            missing = self.page.evaluate(has_all, [chart, wanted])
            if not missing:
                return
            self.page.wait_for_timeout(50)
        pytest.fail(
            f"chart {chart} does not show {missing}, but {[t['text'] for t in self.texts()[chart]['texts']]}"
        )

    def settle(self):
        """Wait until the charts are drawn for the slider's position."""
        self.page.evaluate("new Promise(r => requestAnimationFrame(() => setTimeout(r, 60)))")

    def texts(self):
        return self.page.evaluate(TEXTS)

    def colors(self):
        """The colors of all charts that are not gray, as (r, g, b)."""
        found = {}
        for color, chart in self.page.evaluate(COLORS).items():
            parts = rgb(color)
            if parts and max(parts) - min(parts) > 40:
                found[parts] = chart
        return found

    def variables(self, *names):
        return [rgb(color) for color in self.page.evaluate(VARIABLES, list(names))]

    def resize(self, width):
        """Resize the window, and wait until the charts are drawn for it."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.until(
            "() => [...document.querySelectorAll('.chart')].every(c => { const svg = c.querySelector('svg'); "
            "return svg && Math.abs(svg.viewBox.baseVal.width - c.clientWidth) < 3; })"
        )
        self.settle()

    def pdf(self):
        """The texts of the printed pages, without blanks and ligatures."""
        reader = pypdf.PdfReader(io.BytesIO(self.page.pdf(prefer_css_page_size=True)))
        return [squeezed(page.extract_text()) for page in reader.pages]

    def tab_to(self, selector, backward=False, most=40):
        """Press Tab until the element has the focus, and check that this is visible."""
        for _ in range(most):
            self.page.keyboard.press("Shift+Tab" if backward else "Tab")
            if self.page.evaluate("s => document.activeElement.matches(s)", selector):
                outline = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", selector
                return
        pytest.fail(f"Tab does not reach {selector}")


def rgb(color):
    """Parts of an opaque color; None for none and transparent."""
    found = re.fullmatch(r"rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)", color)
    return tuple(map(int, found.groups()[:3])) if found and float(found[4] or 1) > 0 else None


def squeezed(text):
    return "".join(unicodedata.normalize("NFKC", unmarked(text)).split())


def assert_texts_fit(page):
    """No text of a chart is cut or covers another one; boxes of texts are a little larger than their letters."""
    for name, chart in page.texts().items():
        left, right, top, bottom = chart["box"]
        assert left >= 0
        assert right <= chart["page"]
        for text in chart["texts"]:
            a, b, c, d = text["box"]
            inside = a >= left - 3 and b <= right + 3 and c >= top - 3 and d <= bottom + 3
            assert inside, (name, text, chart["box"])
        for one, two in combinations(chart["texts"], 2):
            (a, b, c, d), (e, f, g, h) = one["box"], two["box"]
            covers = min(b, f) - max(a, e) > 1 and min(d, h) - max(c, g) > 4
            assert not covers, (name, one, two)


def assert_accessible(page, scheme):
    """Axe, which the page must have evaluated, finds no serious violation."""
    # Schemes differ in nothing but colors.
    rules = {} if scheme == "light" else {"runOnly": ["color-contrast"]}
    found = page.page.evaluate("rules => axe.run({resultTypes: ['violations'], ...rules})", rules)
    bad = [
        (v["id"], v["nodes"][0]["html"]) for v in found["violations"] if v["impact"] in ("serious", "critical")
    ]
    assert bad == []
    assert len(found["passes"]) > (20 if scheme == "light" else 0)  # axe did run
