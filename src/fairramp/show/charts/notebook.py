"""The chart of a result as part of its view in a notebook: SVG in the colors of the frame, without scripts."""

import html
from typing import Any

from fairramp.show.charts.pieces import FRAMED, MOST_DRAWN, alt, missing_extra
from fairramp.show.charts.plots import drawn

try:
    import vl_convert
except ImportError as error:
    raise missing_extra(error.name or "vl_convert") from None


def chart_html(result: Any) -> str:
    """The chart of a result, with at most 12 groups. The SVG has no ids, which would clash with other charts'."""
    with alt.theme.enable("none"):  # the view must not depend on a notebook's theme
        spec = drawn(result, FRAMED, MOST_DRAWN).to_dict(validate=False)  # the same charts are tested
    titles = [part["title"] for part in spec.get("vconcat", [spec])]
    said = "; ".join(title["text"] for title in titles)
    svg = vl_convert.vegalite_to_svg(spec)
    return f'<div role="img" aria-label="{html.escape(said)}">{svg}</div>'
