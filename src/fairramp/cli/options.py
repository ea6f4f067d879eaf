"""Options shared by several commands, and those of a fit's settings."""

import re
from typing import Annotated, Literal

from cyclopts import Parameter

from fairramp.fit.keywords import first_sentence

Data = Annotated[
    str,
    Parameter(
        help="Rows in CSV, TSV, JSON Lines, Parquet or Excel (.xlsx): a file, a folder, a glob in quotes, or - "
        "for stdin."
    ),
]
RuleFile = Annotated[str, Parameter(help="Rule file written by fairramp fit.")]
Names = Annotated[list[str] | None, Parameter(consume_multiple=False, negative="")]
_SCORE = "Column with the classifier's scores"
_GROUP = "Column with the group; repeat the option to compare combinations of columns"
_TRUTH = "; for a rule that uses group probabilities, the column with the true group"
_PROBABILITY = "Column with the probability of one group, as GROUP=COLUMN; repeat the option for every group"
_AS_IN_RULE = " (by default, as in the rule)."
Score = Annotated[str | None, Parameter(help=_SCORE + _AS_IN_RULE)]
Group = Annotated[Names, Parameter(help=_GROUP + _AS_IN_RULE)]
TrueGroup = Annotated[Names, Parameter(help=_GROUP + _AS_IN_RULE[:-1] + _TRUTH + ".")]
GroupProbability = Annotated[Names, Parameter(help=_PROBABILITY + _AS_IN_RULE)]
NeededScore = Annotated[str, Parameter(help=f"{_SCORE}; higher scores are better.")]
FitScore = Annotated[
    str | None,
    Parameter(
        help=f"{_SCORE}; higher scores mean yes, unless --lower-is-better is given. Required without "
        "--class-score."
    ),
]
_CLASS = "Column with the scores of one class, as CLASS=COLUMN; repeat the option for every class"
FitClassScore = Annotated[Names, Parameter(help=f"{_CLASS}. For a classifier with several classes.")]
ClassScore = Annotated[Names, Parameter(help=f"{_CLASS}. For a rule for several classes{_AS_IN_RULE}")]
NeededGroup = Annotated[list[str], Parameter(consume_multiple=False, negative="", help=f"{_GROUP}.")]
FitGroup = Annotated[Names, Parameter(help=f"{_GROUP} (see --combine). Required without --group-probability.")]
FitGroupProbability = Annotated[
    Names, Parameter(help=f"{_PROBABILITY}. For a rule that decides without the group, instead of --group.")
]
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


def _setting(name: str, more: str = "") -> Parameter:
    """An option for a setting of a fit, with the first sentence of its documentation as help."""
    text = re.sub("`(.+?)`", lambda found: f"--{found[1].replace('_', '-')}", first_sentence(name))
    return Parameter(help=text.replace('"', "").replace("with labels", "with --label") + more)


Criterion = Annotated[str, _setting("criterion")]


def _below_all(_: object, value: float) -> None:
    """Reject a limit that everything meets, which is probably a typing error for one point."""
    if value == 1:
        raise ValueError("1 means 100 points, which is no limit; 1 point is 0.01")


#: For a limit of a gap.
LIMIT = Parameter(validator=_below_all)
MaxGap = Annotated[float | None, _setting("max_gap"), LIMIT]
MinRatio = Annotated[float | None, _setting("min_ratio")]
TargetRate = Annotated[float | str | None, _setting("target_rate")]
OverallRate = Annotated[float | None, _setting("overall_rate")]
FrontierTarget = Annotated[str, Parameter(help="What each rule is best at: accuracy or balanced_accuracy.")]
Costs = Annotated[str | None, _setting("costs", " Such as 5,1.")]
Combine = Annotated[str, _setting("combine")]
Ramp = Annotated[str, _setting("ramp")]
UnseenGroup = Annotated[str, _setting("unseen_group")]
SmallGroups = Annotated[str, _setting("small_groups")]
ConfidenceLimit = Annotated[str, _setting("confidence_limit")]
Date = Annotated[str | None, _setting("date")]
FitConfidence = Annotated[float | None, _setting("confidence")]
Scale = Annotated[str | None, _setting("scale", " The default is probability.")]
AuditScale = Annotated[str | None, _setting("scale", " With --rule, the rule's scale is used.")]
RuleScale = Annotated[
    str | None, Parameter(help="Not needed: the rule stores the scale of its scores and rejects any other.")
]
LowerIsBetter = Annotated[
    bool,
    Parameter(
        help="Low scores lead to the favorable decision, as with risk scores: the classifier says yes at the "
        "cutoff or below.",
        negative="",
        show_default=False,
    ),
]
Cutoff = Annotated[
    float | None,
    _setting(
        "cutoff",
        " The cutoff itself counts as yes. For a strict limit, pass a value beyond it that no score equals: for "
        '"below 30" with --lower-is-better and scores with one decimal place, 29.95.',
    ),
]
RampWidth = Annotated[
    float | None,
    _setting(
        "ramp_width", " Default 0.01 (1 for percent; for logit, in units of probability; for real, in positions)."
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
Sheet = Annotated[str | None, Parameter(help="Sheet of an Excel file; by default, the first one.")]
SkipInvalid = Annotated[
    bool,
    Parameter(
        help="Leave out rows that cannot be used, and write them with reasons to a file named like the output or "
        "DATA, with -rejected; the exit code is then 4.",
        negative="",
        show_default=False,
    ),
]
Json = Annotated[bool, Parameter(help="Print one JSON object instead of text.", negative="", show_default=False)]
Summary = Annotated[
    str | None,
    Parameter(help="File for the printed text in Markdown, for example for a pull request; it is replaced."),
]
Quiet = Annotated[
    bool,
    Parameter(help="Print only warnings and errors.", negative="", name=["--quiet", "-q"], show_default=False),
]
All = Annotated[
    bool,
    Parameter(name="--all", help="Show all groups, however many there are.", negative="", show_default=False),
]
OUTPUT = ["--output", "-o"]
