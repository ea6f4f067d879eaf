"""How results look in notebooks: a frame with its own padding, ink and background, in light and in dark.

Notebooks mark their dark themes in different ways. Where none of these is found, the frame is light. Ink and
background always change together, so the frame can be read wherever it is shown. It needs no script and loads
nothing.
"""

#: Colors by name, as in charts: blue is yes, brown is no, purple is a what-if.
LIGHT = {
    "ink": "#1b1f24",
    "muted": "#5b6470",
    "line": "#d9dde2",
    "paper": "#ffffff",
    "yes": "#0072B2",
    "no": "#8a5a00",
    "what_if": "#7b3fb5",
}
DARK = {
    "ink": "#e8eaed",
    "muted": "#a3acb6",
    "line": "#343a42",
    "paper": "#14171b",
    "yes": "#4ba3dc",
    "no": "#d9a441",
    "what_if": "#c193ec",
}
#: Dark themes of JupyterLab, VS Code, Colab, pages made with Sphinx, and marimo.
_DARK_THEMES = ('[data-jp-theme-light="false"]', ".vscode-dark", "[theme=dark]", "[data-theme=dark]", ".dark")


#: A class twice outranks what notebooks say about tables.
_STYLE = """
.fairramp.fairramp { box-sizing: border-box; width: fit-content; min-width: min(100%, 44rem);
  max-width: 100%; padding: .8rem 1.1rem 1rem; overflow-x: auto;
  border: 1px solid var(--fairramp-line); border-radius: 6px; line-height: 1.5;
  color: var(--fairramp-ink); background: var(--fairramp-paper); }
.fairramp.fairramp p { margin: 0 0 .5rem; max-width: 42rem; color: inherit; overflow-wrap: anywhere; }
.fairramp.fairramp div { max-width: 42rem; }
.fairramp.fairramp svg { display: block; max-width: 100%; height: auto; margin: .9rem 0; }
.fairramp.fairramp table { margin: .9rem 0; border: 0; border-collapse: collapse; color: inherit;
  font-size: .93em; font-variant-numeric: tabular-nums; }
.fairramp.fairramp :is(thead, tbody, tr):nth-child(n) { background: none; border: 0; }
.fairramp.fairramp :is(th, td) { padding: .3rem 0 .3rem 1.4rem; border: 0; vertical-align: bottom;
  border-bottom: 1px solid var(--fairramp-line); color: inherit; }
.fairramp.fairramp :is(th, td):first-child { padding-left: 0; }
.fairramp.fairramp th { color: var(--fairramp-muted); font-weight: 600; max-width: 9rem; white-space: normal; }
.fairramp.fairramp td { max-width: 24rem; overflow-wrap: break-word; }
.fairramp.fairramp > :last-child { margin-bottom: 0; }
"""


def variable(name: str) -> str:
    """A color of the frame as CSS; outside of a frame, the light one.

    >>> variable("ink")
    'var(--fairramp-ink, #1b1f24)'
    """
    return f"var(--fairramp-{name}, {LIGHT[name]})"


def framed(body: str) -> str:
    """HTML in a frame."""
    dark = ",".join(f"{theme} .fairramp" for theme in _DARK_THEMES)
    style = f".fairramp{_colors(LIGHT)}{dark}{_colors(DARK)}{' '.join(_STYLE.split())}"
    return f'<style>{style}</style><div class="fairramp">{body}</div>'


def _colors(colors: dict[str, str]) -> str:
    return f"{{{''.join(f'--fairramp-{name}:{color};' for name, color in colors.items())}}}"
