"""Options that several commands have, each explained once."""

from typing import Annotated, Literal

from cyclopts import Parameter

Data = Annotated[
    str, Parameter(help="CSV, TSV, JSON lines or Parquet: a file, a folder, a quoted glob, or - for stdin.")
]
RuleFile = Annotated[str, Parameter(help="A rule that fit has written.")]
Names = Annotated[list[str] | None, Parameter(consume_multiple=False, negative="")]
_SCORE = Parameter(help="Column with the classifier's scores; a higher one means yes.")
_GROUP = Parameter(help="Column with the group; once for each column of an intersection.")
Score = Annotated[str | None, _SCORE]
Group = Annotated[Names, _GROUP]
NeededScore = Annotated[str, _SCORE]
NeededGroup = Annotated[list[str], Parameter(consume_multiple=False, negative=""), _GROUP]
Label = Annotated[
    str | None, Parameter(help="Column with the true outcomes: 0 or 1, yes or no; yes is the good one.")
]
Positive = Annotated[
    str | None, Parameter(help="The label that means yes, if it is not 1, true or yes; all others mean no.")
]
Weight = Annotated[str | None, Parameter(help="Column with the weights of the rows.")]
Strata = Annotated[Names, Parameter(help="Column within whose values groups are compared; may be repeated.")]
_Scale = Literal["probability", "percent", "signed", "logit"] | None
Scale = Annotated[
    _Scale, Parameter(help="What the scores are: from 0 to 1 (the default), 0 to 100, -1 to 1, or any number.")
]
RuleScale = Annotated[
    _Scale,
    Parameter(help="What the scores are: as in the fit of the rule, which takes no other; need not be given."),
]
Cutoff = Annotated[
    float | None,
    Parameter(help="The classifier itself says yes from this score on; 0.5, 50 percent, or 0 unless given."),
]
RampWidth = Annotated[
    float | None,
    Parameter(
        help="Width of the zone in which decisions are drawn, in units of the scores; 0.01, or 1 percent, unless "
        "given."
    ),
]
Confidence = Annotated[float, Parameter(help="Of all limits and of the certificate.")]
Delimiter = Annotated[
    str | None, Parameter(help="What separates the cells of CSV; found by itself if DATA is CSV.")
]
Decimal = Annotated[
    Literal[".", ","] | None, Parameter(help="Decimal mark of CSV; found by itself if DATA is CSV.")
]
Json = Annotated[bool, Parameter(help="Print one JSON object instead of text.", negative="", show_default=False)]
Quiet = Annotated[
    bool,
    Parameter(
        help="Say nothing but warnings and errors.", negative="", name=["--quiet", "-q"], show_default=False
    ),
]
All = Annotated[
    bool,
    Parameter(name="--all", help="Show all groups, also if they are many.", negative="", show_default=False),
]
OUTPUT = ["--output", "-o"]
