"""Options shared by several commands."""

from typing import Annotated, Literal

from cyclopts import Parameter

Data = Annotated[
    str,
    Parameter(
        help="Rows in CSV, TSV, JSON Lines or Parquet: a file, a folder, a glob in quotes, or - for stdin."
    ),
]
RuleFile = Annotated[str, Parameter(help="Rule file written by fairramp fit.")]
Names = Annotated[list[str] | None, Parameter(consume_multiple=False, negative="")]
_SCORE = "Column with the classifier's scores; higher scores mean yes"
_GROUP = "Column with the group; repeat the option to compare combinations of columns"
_AS_IN_RULE = " (by default, as in the rule)."
Score = Annotated[str | None, Parameter(help=_SCORE + _AS_IN_RULE)]
Group = Annotated[Names, Parameter(help=_GROUP + _AS_IN_RULE)]
NeededScore = Annotated[str, Parameter(help=f"{_SCORE}.")]
NeededGroup = Annotated[list[str], Parameter(consume_multiple=False, negative="", help=f"{_GROUP}.")]
LABEL = "Column with the true outcomes (0 or 1, yes or no); yes must be the favorable outcome."
Label = Annotated[str | None, Parameter(help=LABEL)]
Positive = Annotated[
    str | None,
    Parameter(help="Label that means yes, if not 1, true or yes; all other labels then mean no."),
]
Weight = Annotated[str | None, Parameter(help="Column with row weights.")]
Strata = Annotated[
    Names,
    Parameter(help="Compare groups only within each value of this column; may be repeated for combinations."),
]
SCALE = (
    "Scale of the scores: probability (0 to 1, the default), percent (0 to 100), signed (-1 to 1) or logit "
    "(any number)"
)
_Scale = Literal["probability", "percent", "signed", "logit"] | None
Scale = Annotated[_Scale, Parameter(help=f"{SCALE}.", show_choices=False)]
RuleScale = Annotated[
    _Scale, Parameter(help="Not needed: the rule stores the scale of its scores and rejects any other.")
]
Cutoff = Annotated[
    float | None,
    Parameter(
        help="The classifier itself says yes at this score or above; default 0.5 (50 for percent, 0 for signed "
        "and logit)."
    ),
]
RampWidth = Annotated[
    float | None,
    Parameter(
        help="Width of the score range in which decisions are made at random; default 0.01 (1 for percent; for "
        "logit, in units of probability)."
    ),
]
Confidence = Annotated[float, Parameter(help="Confidence level of all intervals and limits.")]
Delimiter = Annotated[
    str | None, Parameter(help="Delimiter of CSV files: one character or the word tab; detected if DATA is CSV.")
]
Decimal = Annotated[
    Literal[".", ","] | None,
    Parameter(help='Decimal mark of CSV files, "." or ","; detected if DATA is CSV.', show_choices=False),
]
Json = Annotated[bool, Parameter(help="Print one JSON object instead of text.", negative="", show_default=False)]
Quiet = Annotated[
    bool,
    Parameter(help="Print only warnings and errors.", negative="", name=["--quiet", "-q"], show_default=False),
]
All = Annotated[
    bool,
    Parameter(name="--all", help="Show all groups, however many there are.", negative="", show_default=False),
]
OUTPUT = ["--output", "-o"]
