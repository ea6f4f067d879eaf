"""Charts, made with Altair, for notebooks, files and the report page; one module for each kind of chart.

    pieces.py      colors, axes and rows of groups
    dumbbell.py    rates before and after, joined, with numbers of people
    ramps.py       scores and thresholds
    frontier.py    accuracy against gap
    gaps.py        gaps and limits on one axis
    plots.py       what `.plot()` draws
    notebook.py    the same in a notebook

Numbers that depend on the slider are tables (position × group) in parameters of the chart, and the position is
the parameter `at`, so moving the slider redraws everything from data that is already there. The data refers to
groups by number, and names are used only as text, so Vega never interprets a name.

One color has one meaning: blue is yes, brown is no, purple is a what-if, and everything else is black or gray.
"""
