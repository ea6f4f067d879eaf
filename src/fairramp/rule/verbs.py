"""Methods of rules and results that use the layers above: the only module of its layer that imports them.

Imports happen when a method is called, so a rule can be read and applied without the upper layers.
"""

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from fairramp.core.checks import check_keywords
from fairramp.core.table import notebook_html
from fairramp.data.groups import name_of
from fairramp.errors import FairrampError, InputError

if TYPE_CHECKING:
    import altair
    from onnx import ModelProto

    from fairramp.deploy.torch import DecidingModule, Ramps
    from fairramp.measure.certificate import Certificate
    from fairramp.measure.drift import Check
    from fairramp.measure.monitor import Monitor
    from fairramp.rule.rule import Rule
    from fairramp.show.answers import Answer
    from fairramp.show.report import Content, Report


class Drawn:
    """Adds the method `plot`, and the view in a notebook: sentences, the chart, and tables.

    A subclass has `_parts()`, its sentences and tables.
    """

    def plot(self) -> "altair.LayerChart | altair.VConcatChart":
        """Draw a chart; requires the extra `report`. Save it with ``.save("chart.svg")``, or as .png or .html.

        Every chart has a key below its title, and titled axes.

        - Rule, ClassRule: ramps or offsets and, if it has a record, the rates it makes equal, before and after
        - Audit, ClassAudit: rates before and after, with confidence limits
        - Certificate: the gap on the fit rows, the limits for new people and the limit that was requested
        - Check: rates on the fit rows and on the new rows, and the gap with its limit
        - Frontier, ClassFrontier: accuracy, or what else was measured, against the gap
        - Shortlist: selection rates by score alone and as admitted, and the places that each group gains or loses

        Only the 40 largest groups are drawn, and only 12 of the ramps. Notebooks show the same chart, with at
        most 12 groups, above the table of the result.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> chart = fairramp.fit_rule(data.score, data.sex).plot()  # doctest: +SKIP
        >>> found = fairramp.audit([0, 1, 1, 1], ["A", "A", "B", "B"], labels=[0, 1, 0, 1])
        >>> found.plot().save("audit.svg")  # doctest: +SKIP
        >>> curve = fairramp.frontier(data.score, data.sex, data.label)
        >>> curve.plot().save("frontier.svg")  # doctest: +SKIP
        """
        from fairramp.show.charts.plots import drawn

        return drawn(self)

    def _repr_html_(self: Any) -> str:
        try:
            from fairramp.show.charts.notebook import chart_html
        except FairrampError:  # without the extra, there is no chart
            return notebook_html(*self._parts())
        return notebook_html(*self._parts(), chart=chart_html(self))


class Verbs(Drawn):
    """Methods of a rule that use the upper layers."""

    def apply(
        self: Any,
        frame: Any,
        *,
        score: str | None = None,
        group: str | Sequence[str] | None = None,
        strata: str | Sequence[str] | None = None,
        group_probability: Mapping[Any, str] | None = None,
        id: str | None = None,
        key: str | None = None,
        prefix: str = "",
    ) -> Any:
        """Return a table of the same type with a column `probability` and, given `id` and `key`, `decision`.

        Rows keep their order if the engine has one (Spark does not), and pandas tables keep their index. A lazy
        table stays lazy; one pass checks it first, so missing or invalid scores, unseen groups and invalid group
        probabilities raise an error immediately. If such a row appears only after that pass, its new columns are
        NULL. A table without rows gets the columns, too.

        Parameters
        ----------
        frame : table
            As in `fairramp.fit_frame`.
        score, group, strata : str or list of str, optional
            Column names; default to those of the fit.
        group_probability : dict of str, optional
            Instead of `group`, for a rule that uses group probabilities: the column of each group's probability,
            such as ``{"F": "p_f", "M": "p_m"}``; defaults to the columns of the fit.
        id : str, optional
            Name of the column of row ids: strings or integers.
        key : str, optional
            64 lowercase hexadecimal characters; keep it secret. The key appears in no query and no query plan.
        prefix : str, default ""
            Prefix of the names of the new columns.

        Examples
        --------
        >>> import pandas
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
        >>> frame = pandas.DataFrame({"p": [0.48, 0.48], "unit": ["A", "B"], "who": ["anna", "ben"]})
        >>> print(rule.apply(frame, score="p", group="unit", id="who", key="0" * 64).round(3))
              p unit   who  probability  decision
        0  0.48    A  anna          0.3         0
        1  0.48    B   ben          1.0         1
        """
        from fairramp.deploy.apply import apply

        names = {"score": score, "group": group, "strata": strata, "group_probability": group_probability}
        return apply(self, frame, id=id, key=key, prefix=prefix, **names)

    def to_sql(
        self: Any,
        dialect: str,
        *,
        table: str | Sequence[str] | None = None,
        view: str | Sequence[str] | None = None,
        replace: bool = False,
        score: str | None = None,
        group: str | Sequence[str] | None = None,
        strata: str | Sequence[str] | None = None,
        group_probability: Mapping[Any, str] | None = None,
        id: str | None = None,
        key_table: str | Sequence[str] | None = None,
        key_column: str = "key",
        prefix: str = "",
    ) -> str:
        """Return the rule as SQL that computes the same probabilities and decisions in a database.

        With `table`, the result is a SELECT of that table's columns and the new ones; with `view` as well, a
        CREATE VIEW. Without either, it is the new columns as expressions, to paste into a SELECT. A comment at
        the top identifies the rule and states what it expects. A score that is missing, NaN or out of range gives
        NULL, and so do invalid group probabilities and a group that is not in the rule, unless `unseen_group` is
        "pooled" or "original".
        Requires the extra `export`.

        Parameters
        ----------
        dialect : {"duckdb", "postgres", "spark", "snowflake", "bigquery", "sqlite", "mysql", "mariadb"}
            The SQL dialect.
        table, view : str or list of str, optional
            Names, quoted as given; a string is split at dots, as in "schema.table", a list is not.
        replace : bool, default False
            Whether to replace an existing view of that name: CREATE OR REPLACE VIEW or, for SQLite, DROP VIEW IF
            EXISTS as a separate statement.
        score, group, strata : str or list of str, optional
            Column names; default to those of the fit.
        group_probability : dict of str, optional
            As in `apply`.
        id : str, optional
            Name of the column of row ids: strings or integers.
        key_table, key_column : str
            Where the key is: a table with one row, which only the owner of the query should be able to read. The
            SQL contains only these names; neither the SQL nor a query plan contains the key.
        prefix : str, default ""
            Prefix of the names of the new columns. The resulting names must differ from the column names above;
            conflicts with other columns of the table are not detected.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.5), Ramp.centered(0.25, 0.5)))
        >>> text = rule.to_sql("duckdb", table="applicants", score="p", group="unit")
        >>> import duckdb
        >>> con = duckdb.connect()
        >>> _ = con.execute("CREATE TABLE applicants AS SELECT 0.125::DOUBLE AS p, 'B' AS unit")
        >>> con.execute(text).fetchall()
        [(0.125, 'B', 0.25)]
        """
        from fairramp.deploy.sql import to_sql

        return to_sql(
            self,
            dialect,
            table=table,
            view=view,
            replace=replace,
            score=score,
            group=group,
            strata=strata,
            group_probability=group_probability,
            id=id,
            key_table=key_table,
            key_column=key_column,
            prefix=prefix,
        )

    def certificate(
        self: Any,
        confidence: float = 0.95,
        *,
        scores: Any = None,
        groups: Any = None,
        group_probabilities: Any = None,
        sample_weight: Any = None,
    ) -> "Certificate":
        """Bound the gap in the population that the fit rows or fresh rows came from; see `fairramp.Certificate`.

        A rule that uses group probabilities, or one for each of several attributes, needs fresh rows: its
        thresholds depend on all fit rows at once, so these rows say too little about new people.

        Parameters
        ----------
        confidence : float, default 0.95
            Confidence level of the limits.
        scores, groups, sample_weight
            Fresh rows, which the rule was not fitted on, with their true groups; by default, the limits come from
            the fit rows. Only for rules that make selection rates equal, without strata.
        group_probabilities : GroupProbabilities, optional
            What the rule decides by, if it uses group probabilities.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, target_rate=0.2, ramp_width=0)
        >>> rule.certificate().estimated < 0.02
        True
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> found = rule.certificate(scores=data.score[12000:], groups=data.sex[12000:])
        >>> print(found.limits())
        estimated limit 1.8 points, proven limit 3.4 points
        """
        fresh = {
            "scores": scores,
            "groups": groups,
            "group_probabilities": group_probabilities,
            "sample_weight": sample_weight,
        }
        if all(given is None for given in fresh.values()):
            from fairramp.measure.certificate import certify

            return certify(self, confidence)
        for name in ("scores", "groups"):
            if fresh[name] is None:
                raise InputError("A certificate on fresh rows requires {" + name + "}")
        from fairramp.measure.fresh import certify_on

        return certify_on(self, confidence, **fresh)

    def check(
        self: Any,
        scores: Any,
        groups: Any,
        labels: Any = None,
        *,
        strata: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
        group_probabilities: Any = None,
    ) -> "Check":
        """Check once, on new rows, whether the gap exceeds the estimated limit; see `fairramp.Check`.

        To check repeatedly as rows arrive, use `monitor`. `labels`, the true outcomes of the new rows, are
        required if the rule makes error rates equal, and otherwise not used.

        A rule that uses group probabilities, or one for each of several attributes, has no estimated limit: the
        gap is compared with the rule's `max_gap`. `groups` are then the true groups, or the attributes, and
        `group_probabilities` what a rule that uses group probabilities decides by.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, target_rate=0.2)
        >>> rule.check(data.score, data.sex).limit == rule.certificate().estimated
        True
        """
        from fairramp.measure.drift import check

        return check(
            self,
            scores,
            groups,
            labels,
            strata=strata,
            sample_weight=sample_weight,
            confidence=confidence,
            group_probabilities=group_probabilities,
        )

    def monitor(self: Any, confidence: float = 0.95) -> "Monitor":
        """Monitor rows that arrive in batches or one by one; you may look at any time. See `fairramp.Monitor`.

        If the rule makes error rates equal, updates need the labels of the rows.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, target_rate=0.2)
        >>> rule.monitor().update(data.score, data.sex).has_drifted
        False
        """
        from fairramp.measure.monitor import Monitor

        return Monitor(self, confidence)

    def explain(self: Any, score: float, group: Any, *, stratum: Any = None) -> "Answer":
        """Answer one person, and give the reason in sentences; see `fairramp.Answer`.

        Parameters
        ----------
        score : float
            On the scale that the rule was fitted with.
        group : label
            A tuple if several columns make a group, or for a rule by each of several attributes, a value of each;
            a list works as well. For a rule that uses group probabilities, a dict of the groups and the person's
            probabilities.
        stratum : label, optional
            Required if the rule equalizes within strata.

        Raises
        ------
        UnseenGroupError, InputError
            As in `probabilities`.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
        >>> rule.explain(0.41, "Female")
        Yes. In group Female, a score of 0.41 is at or above 0.2385, where everyone is
        selected. The classifier alone would say no: its cutoff is 0.5.
        >>> certain = {group: (data.sex == group).astype(float) for group in ("Female", "Male")}
        >>> rule = fairramp.fit_rule(data.score, fairramp.GroupProbabilities(certain), max_gap=0.02)
        >>> rule.explain(0.41, {"Female": 0.7, "Male": 0.3})
        Yes. With group probabilities Female 70.0%, Male 30.0%, a score of 0.41 is at or
        above 0.3581, where everyone is selected. The classifier alone would say no: its
        cutoff is 0.5.
        """
        from fairramp.show.answers import explain

        return explain(self, score, group, stratum)

    def report(
        self: Any,
        scores: Any,
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
        compare: "Rule | None" = None,
        compare_name: str | None = None,
        label_names: Sequence[str] | None = None,
        left_out: str | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> "Report[Content]":
        """Make a page that shows the effect of the rule on given rows, for those who must approve the rule.

        The page is one HTML file that needs no network. It starts with the verdict: whether the rule meets its
        limit on these rows, and whether it does for new people. It compares the rates that the rule makes equal
        and, if these are true or false positive rates, shows selection rates beside them. Its slider shows rules
        fitted to the same rows with other values of `max_gap`, or of `min_ratio` if the rule has one, and
        otherwise the same settings.

        Parameters
        ----------
        scores, groups, strata
            As in `probabilities`.
        labels : 0 or 1 of shape (n,), optional
            True outcomes; adds accuracy and the cost of a smaller gap. Required if the rule makes true or false
            positive rates equal.
        sample_weight : numbers of shape (n,), optional
            Row weights.
        title, owner, source : str, optional
            Title of the page, who is responsible for the rule, and the name of the file with the rows.
        decision : str, optional
            What yes means, such as "loan granted".
        label_names, left_out : pair of str, and str, optional
            What label 1, the favorable outcome, and label 0 stand for, such as ``("repaid", "default")``; and
            which rows of the file are not here and why, in a sentence.
        date, review_date : str, optional
            Date of the report, and the date by which the rule is to be reviewed, as text. There is no default, so
            the same input gives the same page.
        confidence : float, default 0.95
            Confidence level of all intervals and of the certificate.
        group_probabilities : GroupProbabilities, optional
            What the rule decides by, if it uses group probabilities; `groups` are then the true groups. The
            report of such a rule, and of a rule by each of several attributes, has no slider, and limits for new
            people only if these are not the fit rows.
        compare : Rule, optional
            Another rule for the same scores and groups, such as the one in force. The report then says which of
            its settings differ, and for how many people in each group the two rules decide differently. Its
            criterion, limit, cutoff and ramps may be others.
        compare_name : str, optional
            What the page calls the other rule, for example the name of its file.
        path : str or path, optional
            Where to save the page.

        Returns
        -------
        Report
            With `content` (every number as plain data), `html`, `to_json()` and `save(path)`.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
        >>> report = rule.report(data.score, data.sex, data.label, label_names=("over $50,000", "up to $50,000"))
        >>> round(report.content.before.gap, 3), round(report.content.chosen.after.gap, 3)
        (0.168, 0.02)
        >>> earlier = fairramp.fit_rule(data.score, data.sex, max_gap=0.05)
        >>> report = rule.report(data.score, data.sex, compare=earlier, compare_name="rule-2025.json")
        >>> round(report.content.compared.differing, 3)
        0.013
        """
        from fairramp.show.report import Report, make_content

        made = Report(
            make_content(
                self,
                scores,
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
                label_column=name_of(labels),
                weight_column=name_of(sample_weight),
                compare=compare,
                compare_name=compare_name,
                label_names=label_names,
                left_out=left_out,
            )
        )
        if path is not None:
            made.save(path)
        return made

    def to_onnx(self: Any, path: str | os.PathLike[str] | None = None, **options: Any) -> "ModelProto":
        """Make an ONNX model that takes scores and groups; see `fairramp.deploy.onnx.to_onnx` for the options.

        `fairramp.deploy.onnx.append_to` appends the rule to a classifier's own model. Requires the extra
        `export`.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
        >>> model = rule.to_onnx()
        >>> [tensor.name for tensor in model.graph.input], [tensor.name for tensor in model.graph.output]
        (['score', 'group'], ['probability'])
        """
        from fairramp.deploy.onnx import to_onnx

        check_keywords("Rule.to_onnx", options, signature(to_onnx).parameters)
        return to_onnx(self, path, **options)

    def to_torch(self: Any, *, decisions: bool = False) -> "Ramps | DecidingModule":
        """Make a torch module that takes scores and group codes; see `fairramp.deploy.torch.to_torch`.

        Requires the extra `torch`.

        Examples
        --------
        >>> import torch  # doctest: +SKIP
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
        >>> module = rule.to_torch()  # doctest: +SKIP
        >>> module(torch.tensor([0.48, 0.48]), module.codes(["A", "B"]))  # doctest: +SKIP
        tensor([0.3000, 1.0000], dtype=torch.float64)
        """
        try:
            from fairramp.deploy.torch import to_torch
        except ImportError as error:
            raise FairrampError("{why}", why=error) from None
        return to_torch(self, decisions=decisions)
