"""Gallery pictures: Altair charts as PNG, because live charts would fetch scripts from the network.

Like a matplotlib figure, a chart is shown below the block of the example that assigns it to a name.
"""

import warnings
from typing import Any

from sphinx_gallery.scrapers import figure_rst

#: Charts already shown, by example file; two variables may hold the same chart.
_shown: dict[str, list[Any]] = {}
#: PNG pixels per CSS pixel, for high-resolution screens.
SCALE = 2


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the charts that are new since the last block, and return the reST that shows them."""
    import altair

    seen = _shown.setdefault(block_vars["src_file"], [])
    paths, titles = [], []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, altair.TopLevelMixin) and not any(value is other for other in seen):
            seen.append(value)
            path = next(block_vars["image_path_iterator"])
            value.save(path, scale_factor=SCALE)
            paths.append(path)
            titles += title_of(value.to_dict())
    return figure_rst(paths, gallery_conf["src_dir"], ", ".join(titles)) if paths else ""


def title_of(spec: dict[str, Any]) -> list[str]:
    """Titles of a chart and its parts, for the alternative text."""
    own = spec.get("title")
    text = own["text"] if isinstance(own, dict) else own
    return [
        *([text] if text else []),
        *(t for part in spec.get("vconcat", []) for t in title_of(part)),
    ]


def style(gallery_conf: dict[str, Any], name: str) -> None:
    """Make matplotlib look like the library's own charts, before each example."""
    import matplotlib

    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # PySpark's own warning
    matplotlib.rcParams.update(
        {
            "figure.figsize": (6.4, 3.6),
            "figure.dpi": 100,
            "savefig.dpi": 200,
            "figure.constrained_layout.use": True,
            "font.size": 10,
            "axes.prop_cycle": matplotlib.cycler(color=["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00"]),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#d9dde2",
            "axes.edgecolor": "#5b6470",
            "axes.labelcolor": "#1b1f24",
            "legend.frameon": False,
        }
    )
