"""What a rule, an audit and a frontier can be asked for beyond their own data: the one module that looks upwards.

The layers above do the work. They are imported when a method is called, so that a rule can be read and applied
without them.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairramp.errors import FairrampError

if TYPE_CHECKING:
    import altair
    from onnx import ModelProto

    from fairramp.deploy.torch import DecidingModule, RampModule
    from fairramp.measure.certificate import Certificate
    from fairramp.measure.drift import Check
    from fairramp.measure.monitor import Monitor
    from fairramp.show.report import Report


class Drawn:
    """Draws itself."""

    def plot(self) -> "altair.LayerChart | altair.VConcatChart":
        """Draw a chart; needs the extra `report`. Save it with ``.save("chart.svg")``, or .png or .html.

        Of a rule: the ramps and, from the record, selection rates before and after. Of an audit: selection rates
        before and after, with their limits. Of a frontier: accuracy against the gap. The 12 largest groups are
        drawn.

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
        from fairramp.show.charts import drawn

        return drawn(self)


class Verbs(Drawn):
    """What a rule does with the help of the layers above."""

    def apply(
        self: Any,
        frame: Any,
        *,
        score: str | None = None,
        group: str | Sequence[str] | None = None,
        strata: str | Sequence[str] | None = None,
        id: str | None = None,
        key: str | None = None,
        prefix: str = "",
    ) -> Any:
        """Return a table of the same kind with the column `probability` and, with `id` and `key`, `decision`.

        Rows keep their order, if their engine has one (Spark has none), and pandas its index. A lazy table stays
        lazy; one pass is made over it beforehand, so that missing or impossible scores and unseen groups are
        refused now and not decided later.
        A row that appears only after that pass and could not be decided gets NULL.

        Parameters
        ----------
        frame : table
            As for `fairramp.fit_frame`.
        score, group, strata : str or list of str, optional
            Names of the columns; those of the fit unless given.
        id : str, optional
            Name of the column that says who each row is: strings or integers.
        key : str, optional
            64 lowercase hexadecimal characters, kept secret; it appears in no query and in no plan.
        prefix : str, default ""
            What the names of the new columns start with.

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

        return apply(self, frame, score=score, group=group, strata=strata, id=id, key=key, prefix=prefix)

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
        id: str | None = None,
        key_table: str | Sequence[str] | None = None,
        key_column: str = "key",
        prefix: str = "",
    ) -> str:
        """Return the rule as SQL that gives the same probabilities and decisions in a database.

        With `table`, a whole SELECT of that table's columns and the new ones; with `view` also, CREATE VIEW.
        Without either, the new columns as expressions, to be pasted into a SELECT. A comment on top says which
        rule it is and what it expects. A score that is missing, NaN or out of range gives NULL, and so does a
        group that the rule does not know, unless `unseen_group` says otherwise. Needs the extra `export`.

        Parameters
        ----------
        dialect : {"duckdb", "postgres", "spark", "snowflake", "bigquery", "sqlite"}
            Which SQL.
        table, view : str or list of str, optional
            Names, quoted as they are given; dots take them apart, as in "schema.table", unless it is a list.
        replace : bool, default False
            Whether an earlier view of that name is replaced: CREATE OR REPLACE VIEW; for SQLite, which has none,
            DROP VIEW IF EXISTS as a statement before it.
        score, group, strata : str or list of str, optional
            Names of the columns; those of the fit unless given.
        id : str, optional
            Name of the column that says who each row is: texts or whole numbers.
        key_table, key_column : str
            Where the key is: a table of one row, which only the owner of the query should be able to read. The
            text holds its name, and neither it nor a query plan the key.
        prefix : str, default ""
            What the names of the new columns start with. A name of the columns above is refused; other columns
            of the table are not known here.

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
            id=id,
            key_table=key_table,
            key_column=key_column,
            prefix=prefix,
        )

    def certificate(self: Any, confidence: float = 0.95) -> "Certificate":
        """Bound the gap in the population that the fit rows came from; see `fairramp.Certificate`.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, target_rate=0.2, ramp_width=0)
        >>> rule.certificate().estimated < 0.02
        True
        """
        from fairramp.measure.certificate import certify

        return certify(self, confidence)

    def check(
        self: Any,
        scores: Any,
        groups: Any,
        *,
        strata: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
    ) -> "Check":
        """Ask new rows, once, whether the gap exceeds its estimated limit; see `fairramp.Check`.

        To ask again and again as rows come in, use `monitor`.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, target_rate=0.2)
        >>> rule.check(data.score, data.sex).limit == rule.certificate().estimated
        True
        """
        from fairramp.measure.drift import check

        return check(self, scores, groups, strata=strata, sample_weight=sample_weight, confidence=confidence)

    def monitor(self: Any, confidence: float = 0.95) -> "Monitor":
        """Watch rows that come in batches, or one by one, and look as often as you like; see `fairramp.Monitor`.

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

    def report(
        self: Any,
        scores: Any,
        groups: Any,
        labels: Any = None,
        *,
        strata: Any = None,
        sample_weight: Any = None,
        title: str | None = None,
        confidence: float = 0.95,
        path: str | os.PathLike[str] | None = None,
    ) -> "Report":
        """Make a page about what the rule does to given rows, which a non-programmer can explore and sign.

        One HTML file that needs no network. Its slider shows what rules with other values of `max_gap` and
        otherwise the same settings, fitted to the same rows, would do.

        Parameters
        ----------
        scores, groups, strata
            As for `probabilities`.
        labels : 0 or 1 of shape (n,), optional
            True outcomes; adds accuracy and what a smaller gap costs.
        sample_weight : numbers of shape (n,), optional
            Weights of the rows.
        title : str, optional
            Heading of the page.
        confidence : float, default 0.95
            Of every interval and of the certificate.
        path : str or path, optional
            Where to save the page.

        Returns
        -------
        Report
            With `content`, every number as plain data, `html`, `to_json()` and `save(path)`.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
        >>> report = rule.report(data.score, data.sex, data.label)
        >>> report.save("report.html")  # doctest: +SKIP
        >>> round(report.content.before.gap, 3), round(report.content.chosen.after.gap, 3)
        (0.168, 0.02)
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
                confidence=confidence,
            )
        )
        if path is not None:
            made.save(path)
        return made

    def to_onnx(self: Any, path: str | os.PathLike[str] | None = None, **options: Any) -> "ModelProto":
        """Make an ONNX model that takes scores and groups; see `fairramp.deploy.onnx.to_onnx` for the options.

        `fairramp.deploy.onnx.append_to` joins the rule behind a classifier's own model. Needs the extra `export`.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
        >>> model = rule.to_onnx()
        >>> [tensor.name for tensor in model.graph.input], [tensor.name for tensor in model.graph.output]
        (['score', 'group'], ['probability'])
        """
        from fairramp.deploy.onnx import to_onnx

        return to_onnx(self, path, **options)

    def to_torch(self: Any, *, decisions: bool = False) -> "RampModule | DecidingModule":
        """Make a torch module that takes scores and codes of groups; see `fairramp.deploy.torch.to_torch`.

        Needs the extra `torch`.

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
