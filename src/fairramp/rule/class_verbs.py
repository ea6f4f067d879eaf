"""Methods of rules for several classes that use the layers above, imported when a method is called."""

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, NoReturn

from fairramp.core.checks import check_keywords
from fairramp.errors import FairrampError, InputError, UnsupportedError
from fairramp.rule.verbs import Drawn

if TYPE_CHECKING:
    from onnx import ModelProto

    from fairramp.deploy.class_torch import ClassDecidingModule, Offsets
    from fairramp.measure.certificate import Certificate
    from fairramp.measure.drift import Check
    from fairramp.show.report import ClassContent, Report


class ClassVerbs(Drawn):
    """Methods of a rule for several classes that use the upper layers."""

    def apply(
        self: Any,
        frame: Any,
        *,
        class_score: Mapping[Any, str] | None = None,
        group: str | Sequence[str] | None = None,
        strata: str | Sequence[str] | None = None,
        group_probability: Mapping[Any, str] | None = None,
        id: str | None = None,
        key: str | None = None,
        prefix: str = "",
    ) -> Any:
        """Return a table of the same type with the chance of every class and, given `id` and `key`, `decision`.

        The new columns are `probability_<class>`, in the order of `classes`, and the class that is decided. Rows
        keep their order, and pandas tables keep their index. A DuckDB relation stays lazy; one pass checks it
        first, so that invalid scores, unseen groups and invalid group probabilities raise an error immediately.
        If such a row appears only after that pass, its new columns are NULL.

        Parameters
        ----------
        frame : table
            A pandas, polars or Arrow table, or a DuckDB relation.
        class_score : dict of str, optional
            The column of each class's scores, such as ``{"low": "p_low", "high": "p_high"}``; defaults to the
            columns of the fit.
        group, strata : str or list of str, optional
            Column names; default to those of the fit.
        group_probability : dict of str, optional
            Instead of `group`, for a rule that uses group probabilities: the column of each group's probability.
        id : str, optional
            Name of the column of row ids: strings or integers.
        key : str, optional
            64 lowercase hexadecimal characters; keep it secret. The key appears in no query and no query plan.
        prefix : str, default ""
            Prefix of the names of the new columns.

        Examples
        --------
        >>> import pandas
        >>> from fairramp import ClassRule
        >>> rule = ClassRule(("A", "B"), ("no", "yes"), ((0.0, 0.0), (0.05, -0.05)), 0.1)
        >>> frame = pandas.DataFrame({"n": [0.53, 0.53], "y": [0.47, 0.47], "unit": ["A", "B"], "id": [5, 6]})
        >>> columns = {"no": "n", "yes": "y"}
        >>> rule.apply(frame, class_score=columns, group="unit", id="id", key="0" * 64).round(2)
              n     y unit  id  probability_no  probability_yes decision
        0  0.53  0.47    A   5             0.8              0.2       no
        1  0.53  0.47    B   6             0.3              0.7      yes
        """
        from fairramp.deploy.class_apply import apply

        names = {"group": group, "strata": strata, "group_probability": group_probability}
        return apply(self, frame, id=id, key=key, prefix=prefix, class_score=class_score, **names)

    def to_sql(self, *_: Any, **__: Any) -> NoReturn:
        """Raise `UnsupportedError`: there is no SQL for rules for several classes.

        Use `apply` on a DuckDB relation, or export the rule as ONNX.

        Examples
        --------
        >>> from fairramp import ClassRule
        >>> ClassRule(("A", "B"), ("no", "yes"), ((0.0, 0.0), (0.05, -0.05))).to_sql("postgres")
        Traceback (most recent call last):
        fairramp.errors.UnsupportedError: SQL does not support several classes; apply in DuckDB, or export ONNX.
        """
        raise UnsupportedError("SQL does not support several classes", remedy="apply in DuckDB, or export ONNX")

    def to_onnx(self: Any, path: str | os.PathLike[str] | None = None, **options: Any) -> "ModelProto":
        """Make an ONNX model that takes scores and groups; see `fairramp.deploy.onnx.to_onnx` for the options.

        Scores and probabilities have one column per class, in the order of `classes`, and a decision is the
        position of a class. `fairramp.deploy.onnx.append_to` appends the rule to a classifier's own model.
        Requires the extra `export`.

        Examples
        --------
        >>> from fairramp import ClassRule
        >>> rule = ClassRule(("A", "B"), ("low", "mid", "high"), ((0.0, 0.0, 0.0), (0.05, 0.05, -0.1)), 0.1)
        >>> model = rule.to_onnx(decisions=True)
        >>> [tensor.name for tensor in model.graph.input], [tensor.name for tensor in model.graph.output]
        (['score', 'group', 'u'], ['probability', 'decision'])
        """
        from fairramp.deploy.onnx import to_onnx

        check_keywords("ClassRule.to_onnx", options, signature(to_onnx).parameters)
        return to_onnx(self, path, **options)

    def to_torch(self: Any, *, decisions: bool = False) -> "Offsets | ClassDecidingModule":
        """Make a torch module that takes scores and group codes; see `fairramp.deploy.class_torch.to_torch`.

        Requires the extra `torch`.

        Examples
        --------
        >>> import torch  # doctest: +SKIP
        >>> from fairramp import ClassRule
        >>> rule = ClassRule(("A", "B"), ("low", "mid", "high"), ((0.0, 0.0, 0.0), (0.05, 0.05, -0.1)), 0.1)
        >>> module = rule.to_torch()  # doctest: +SKIP
        >>> module(torch.tensor([[0.2, 0.45, 0.35]] * 2).double(), module.codes(["A", "B"]))  # doctest: +SKIP
        tensor([[0.0000, 1.0000, 0.0000],
                [0.0000, 0.2500, 0.7500]], dtype=torch.float64)
        """
        try:
            from fairramp.deploy.class_torch import to_torch
        except ImportError as error:
            raise FairrampError("{why}", why=error) from None
        return to_torch(self, decisions=decisions)

    def certificate(
        self: Any,
        confidence: float = 0.95,
        *,
        probabilities: Any = None,
        groups: Any = None,
        strata: Any = None,
        group_probabilities: Any = None,
        sample_weight: Any = None,
    ) -> "Certificate":
        """Bound the gap of every class in the population that fresh rows came from; see `fairramp.Certificate`.

        The limits need fresh rows: offsets depend on all fit rows at once, so these say too little about new
        people.

        Parameters
        ----------
        confidence : float, default 0.95
            Confidence level of the limits.
        probabilities, groups, strata, sample_weight
            Fresh rows, which the rule was not fitted on, with their true groups.
        group_probabilities : GroupProbabilities, optional
            What the rule decides by, if it uses group probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> import fairramp
        >>> rng = np.random.default_rng(0)
        >>> sex, p = rng.choice(["F", "M"], 8000), rng.dirichlet([2, 2, 2], 8000)
        >>> p[sex == "M"] = rng.dirichlet([1, 2, 3], (sex == "M").sum())
        >>> rule = fairramp.fit_class_rule(p[:4000], sex[:4000], max_gap=0.02)
        >>> found = rule.certificate(probabilities=p[4000:], groups=sex[4000:])
        >>> print(found.limits())
        estimated limit 3.6 points, proven limit 7.9 points
        """
        for name, given in (("probabilities", probabilities), ("groups", groups)):
            if given is None:
                raise InputError(
                    "The certificate of a rule for several classes needs fresh rows",
                    remedy="pass {" + name + "} of rows that the rule was not fitted on",
                )
        from fairramp.measure.class_fresh import certify_classes_on

        return certify_classes_on(
            self,
            confidence,
            probabilities,
            groups,
            strata=strata,
            group_probabilities=group_probabilities,
            sample_weight=sample_weight,
        )

    def check(
        self: Any,
        probabilities: Any,
        groups: Any,
        *,
        strata: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
        group_probabilities: Any = None,
    ) -> "Check":
        """Check once, on new rows, whether the gap of a class exceeds the rule's `max_gap`; see `fairramp.Check`.

        Parameters
        ----------
        probabilities, groups, strata, sample_weight
            New rows, with their true groups.
        confidence : float, default 0.95
            Confidence level of the intervals.
        group_probabilities : GroupProbabilities, optional
            What the rule decides by, if it uses group probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> import fairramp
        >>> rng = np.random.default_rng(0)
        >>> sex, p = rng.choice(["F", "M"], 8000), rng.dirichlet([2, 2, 2], 8000)
        >>> p[sex == "M"] = rng.dirichlet([1, 2, 3], (sex == "M").sum())
        >>> rule = fairramp.fit_class_rule(p[:4000], sex[:4000], max_gap=0.02)
        >>> rule.check(p[4000:], sex[4000:]).has_drifted
        False
        """
        from fairramp.measure.class_drift import check_classes

        return check_classes(
            self,
            probabilities,
            groups,
            strata=strata,
            sample_weight=sample_weight,
            confidence=confidence,
            group_probabilities=group_probabilities,
        )

    def report(
        self: Any,
        probabilities: Any,
        groups: Any,
        labels: Any = None,
        *,
        strata: Any = None,
        sample_weight: Any = None,
        title: str | None = None,
        decision: str | None = None,
        owner: str | None = None,
        source: str | None = None,
        date: str | None = None,
        review_date: str | None = None,
        confidence: float = 0.95,
        group_probabilities: Any = None,
        left_out: str | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> "Report[ClassContent]":
        """Make a page that shows the effect of the rule on given rows, for those who must approve the rule.

        The page is one HTML file that needs no network. It starts with the verdict: whether the rule meets its
        limit on these rows, and whether it does for new people. Then come the rates of each class in every group,
        before and after, and the offsets. Limits for new people need rows that the rule was not fitted on.

        Parameters
        ----------
        probabilities, groups, strata
            As in `probabilities`; groups are the true groups.
        labels : labels of shape (n,), optional
            True classes; adds accuracy and confusion.
        sample_weight : numbers of shape (n,), optional
            Row weights.
        title : str, optional
            Title of the page.
        decision : str, optional
            What is decided, such as "weekly hours".
        owner : str, optional
            Who is responsible for the rule.
        source : str, optional
            Name of the file with the rows.
        left_out : str, optional
            Which rows of the file are not here and why, in a sentence.
        date, review_date : str, optional
            Date of the report, and the date by which the rule is to be reviewed, as text. There is no default, so
            the same input gives the same page.
        confidence : float, default 0.95
            Confidence level of all intervals and of the certificate.
        group_probabilities : GroupProbabilities, optional
            What the rule decides by, if it uses group probabilities.
        path : str or path, optional
            Where to save the page.

        Returns
        -------
        Report
            With `content` (every number as plain data), `html`, `to_json()` and `save(path)`.

        Examples
        --------
        >>> import fairramp
        >>> hours = fairramp.datasets.load_adult_hours()
        >>> rule = fairramp.fit_class_rule(hours.probabilities, hours.sex, classes=hours.classes, max_gap=0.02)
        >>> report = rule.report(hours.probabilities, hours.sex, hours.label)
        >>> report.save("report.html")  # doctest: +SKIP
        >>> round(report.content.before.gap, 3), round(report.content.after.gap, 3)
        (0.229, 0.02)
        >>> print(report.content.judgment.headline)
        Meets the limit of 2.0 points on these rows; undecided for new people
        """
        from fairramp.show.report import Report, make_class_content

        made = Report(
            make_class_content(
                self,
                probabilities,
                groups,
                labels,
                strata=strata,
                sample_weight=sample_weight,
                title=title,
                decision=decision,
                owner=owner,
                source=source,
                date=date,
                review_date=review_date,
                confidence=confidence,
                group_probabilities=group_probabilities,
                left_out=left_out,
            )
        )
        if path is not None:
            made.save(path)
        return made
