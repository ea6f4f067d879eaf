"""Sphinx settings: `make docs` builds the site into docs/_build/html, offline; a warning is an error."""

import os
import re
import shutil
import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "fairramp"
author = "The fairramp developers"
copyright = f"{author}, Apache-2.0"
version = release = installed("fairramp")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = [
    "_build",
    "gallery/*.py",
    "gallery/*.ipynb",
    "gallery/*.json",
    "gallery/*.zip",
]
suppress_warnings = ["misc.highlighting_failure"]  # a block may mix SQL with shell commands

# Pages must also read well as plain Markdown in the repository, so few extensions are used.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
html_math_renderer = "mathml"

# Every public name has a page, with its members in source order.
autosummary_generate = True
autodoc_member_order = "bysource"
# scikit-learn generates these methods, with links into its own site.
autodoc_default_options = {
    "exclude-members": ", ".join(
        f"set_{method}_request"
        for method in (
            "decision_function",
            "fit",
            "partial_fit",
            "predict",
            "predict_proba",
            "score",
        )
    )
}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
templates_path = ["_templates"]
default_role = "autolink"

# Spark needs Java; without it, that example is shown but not run.
java = shutil.which("java") or os.environ.get("JAVA_HOME")
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_" if java else r"plot_\d+_(?!spark)",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib", "altair_pictures.scrape"),
    "reset_modules": ("matplotlib", "altair_pictures.style"),
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # times describe the build machine, not the example
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "parallel": 2,
    "plot_gallery": True,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("fairramp",),
    "reference_url": {"fairramp": None},
}

html_theme = "pydata_sphinx_theme"
html_title = "fairramp"
html_logo = "_static/ramp.svg"
html_favicon = "_static/ramp.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_sidebars = {"[!a]*": []}  # among top-level pages, only the API has subpages
html_theme_options = {
    "logo": {"text": "fairramp"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    # The front page, the cheat sheet and the examples need the whole width.
    "secondary_sidebar_items": {p: ["page-toc"] for p in ("*", "api/*", "switching-from/*", "guide/*")}
    | {"index": [], "cheat-sheet": []},
    "show_toc_level": 2,
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def link_to_gallery(app, docname, source):
    """Point links to example sources, which work in the repository, at their pages on the site."""
    source[0] = re.sub(
        r"\(([./]*)\.\./examples/gallery/(\w+)\.py\)",
        r"(\1gallery/\2.rst)",
        source[0],
    )
    source[0] = re.sub(
        r"\(([./]*)\.\./examples/gallery/README\.txt\)",
        r"(\1gallery/index.rst)",
        source[0],
    )


def keep_formulas(app, what, name, obj, options, lines):
    """Turn the indented formulas of module docstrings into literal blocks, to keep their line breaks."""
    if what != "module":
        return
    for i in range(len(lines) - 1, 0, -1):
        if lines[i].startswith("    ") and not lines[i - 1] and not lines[i - 2].startswith("    "):
            lines[i:i] = ["::", ""]


def write_live_report(app, exception):
    """Write the report that the front page opens, from the scores in the package."""
    if exception is not None or app.builder.format != "html":
        return
    import fairramp

    data = fairramp.datasets.load_adult_scores()
    rule = fairramp.fit_rule(data.score, {"sex": data.sex}, max_gap=0.02)
    report = rule.report(
        data.score,
        {"sex": data.sex},
        data.label,
        decision="income above $50,000",
        source="scores.csv",
    )
    report.save(Path(app.outdir) / "_static" / "live-report.html")


def setup(app):
    """Register the functions above."""
    app.connect("source-read", link_to_gallery)
    app.connect("autodoc-process-docstring", keep_formulas)
    app.connect("build-finished", write_live_report)
