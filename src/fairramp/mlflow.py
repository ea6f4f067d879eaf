"""Rules as MLflow models: logged, registered, loaded and served like any other model.

The model is a folder with the rule file and its evidence. MLflow calls this module to load it
(``loader_module``), so nothing is pickled and no code is copied:

    rule.json           the state of the model
    model.json          the column of ids that rows may have
    certificate.json    limits on the gap in the population, if there are any
    audit.json          rates, gaps and errors on the rows of an audit, if one is given
    report.html         the page for those who approve the rule, if it is given

The signature names the columns of the rule and leaves their values alone (type ``Any``), because MLflow's typed
columns change values before the rule sees them: a missing group becomes ``False``, and 12.7 becomes 12.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from fairramp._version import __version__
from fairramp.core.checks import library
from fairramp.data.columns import Columns, column_name
from fairramp.deploy.class_apply import check_types, probability_columns
from fairramp.errors import FairrampError, InputError, installing, refuse_if
from fairramp.measure.audited import Audit
from fairramp.measure.certificate import Certificate
from fairramp.measure.class_audited import ClassAudit
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.draws import ENVIRONMENT, key_in_environment
from fairramp.rule.either import load_either
from fairramp.rule.rule import Rule
from fairramp.show.report import Report

__all__ = ["load_rule", "log_rule"]

_RULE, _MODEL = "rule.json", "model.json"
#: Keeps new columns apart from those of the rows until these are removed.
_PREFIX = "fairramp:"


def log_rule(
    rule: Rule | ClassRule,
    *,
    name: str = "rule",
    score: str | None = None,
    class_score: Mapping[Any, str] | None = None,
    group: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    group_probability: Mapping[Any, str] | None = None,
    id: str | None = None,
    certificate: Certificate | None = None,
    audit: Audit | ClassAudit | None = None,
    report: Report[Any] | None = None,
    tags: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Log a rule as an MLflow model, in the active run or, if there is none, in a new one.

    The rule, its certificate, the audit and the report become files of the model. The settings of the rule become
    parameters of the model, not of the run, so that one run can have several rules. Gaps, ratios, limits and
    accuracies become metrics of both, with names that start with ``fairramp_``. The fingerprint of the rule and
    the version of fairramp become tags.

    The model takes a table with the columns of the rule and returns a table with `probability` or, for several
    classes, the chance of each. With `id`, it also returns `decision` for rows that have this column; the key
    comes from the environment variable ``FAIRRAMP_KEY`` of the process that decides, and is never logged.

    Requires the extra `mlflow`.

    Parameters
    ----------
    rule : Rule or ClassRule
        The rule.
    name : str, default "rule"
        Name of the model.
    score, class_score, group, strata, group_probability : optional
        Columns that the model reads, as in `Rule.apply` and `ClassRule.apply`; default to those of the fit. The
        logged rule stores them.
    id : str, optional
        Column of row ids, which requests may leave out.
    certificate : Certificate, optional
        The certificate, for example on fresh rows; by default that of the fit rows, if the rule has one.
    audit : Audit or ClassAudit, optional
        An audit of the rule, on any rows.
    report : Report, optional
        The rule's report.
    tags : dict, optional
        Further tags of the model.
    **options
        Other arguments of ``mlflow.pyfunc.log_model``, such as `registered_model_name`, `pip_requirements` or
        `code_paths`. By default, the model requires this version of fairramp.

    Returns
    -------
    mlflow.models.model.ModelInfo
        With `model_uri`, among others.

    Examples
    --------
    >>> import tempfile
    >>> import mlflow
    >>> import fairramp
    >>> from fairramp.mlflow import load_rule, log_rule
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score, {"sex": data.sex}, max_gap=0.02)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    ...     _ = mlflow.set_experiment(experiment_id=mlflow.create_experiment("loans", f"file:{folder}"))
    ...     model = log_rule(rule, score="p", id="applicant")
    ...     load_rule(model.model_uri).fingerprint == rule.fingerprint
    True
    """
    mlflow = _mlflow()
    if not isinstance(rule, Rule | ClassRule):
        raise InputError("must be a fairramp.Rule or fairramp.ClassRule", argument="rule", got=rule)
    given = {"score": score, "class_score": class_score, "group": group, "strata": strata}
    rule = _named(rule, given | {"group_probability": group_probability})
    if certificate is None:
        with suppress(FairrampError):  # not every rule has one
            certificate = rule.certificate()
    for argument, value, kind in (
        ("certificate", certificate, Certificate),
        ("audit", audit, ClassAudit if isinstance(rule, ClassRule) else Audit),
        ("report", report, Report),
    ):
        if not isinstance(value, kind | None):
            raise InputError("must be a fairramp.{kind}", argument=argument, got=value, kind=kind.__name__)
    if audit is not None and audit.after is None:
        raise InputError("must be made with the rule", argument="audit", remedy="pass rule=rule to the audit")
    if report is not None and report.content.rule_fingerprint != rule.fingerprint:
        raise InputError("is about another rule", argument="report", remedy="make it with rule.report")
    identity = {"fairramp_rule": rule.fingerprint, "fairramp_version": __version__}
    signature, example = _signature(rule, id), library("pandas").DataFrame(_example(rule))
    if "conda_env" not in options:
        options.setdefault("pip_requirements", [f"fairramp=={__version__}"])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "rule"
        place.mkdir()
        rule.save(place / _RULE)
        for file, content in (
            (_MODEL, {"id": id}),
            ("certificate.json", certificate and certificate.to_dict()),
            ("audit.json", audit and audit.to_dict()),
        ):
            if content is not None:
                text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
                (place / file).write_text(f"{text}\n", encoding="utf-8")
        if report is not None:
            report.save(place / "report.html")
        with nullcontext() if mlflow.active_run() else mlflow.start_run():
            model = mlflow.pyfunc.log_model(
                name=name,
                loader_module=__name__,
                data_path=str(place),
                signature=signature,
                input_example=example,
                params=_settings(rule),
                tags={**(tags or {}), **identity},
                metadata=identity,
                **options,
            )
            mlflow.log_metrics(_measured(rule, certificate, audit), model_id=model.model_id)
    return model


def load_rule(model_uri: str) -> Rule | ClassRule:
    """Read the rule of a model that `log_rule` logged.

    Parameters
    ----------
    model_uri : str
        As for any MLflow model, such as "models:/loans@champion".

    Examples
    --------
    >>> from fairramp.mlflow import load_rule
    >>> rule = load_rule("models:/loans@champion")  # doctest: +SKIP
    """
    mlflow = _mlflow()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri, dst_path=folder))
        python = mlflow.models.Model.load(str(place)).flavors.get("python_function", {})
        if python.get("loader_module") != __name__:
            raise InputError(
                "is not a model that fairramp logged", argument="model_uri", got=model_uri, remedy="use log_rule"
            )
        return load_either(place / python["data"] / _RULE)


def _mlflow() -> Any:
    return library("mlflow", "pyfunc", "models", "artifacts", install=installing("mlflow"))


def _load_pyfunc(path: str) -> "_RuleModel":
    """Load a logged model; MLflow calls this."""
    place = Path(path)
    return _RuleModel(load_either(place / _RULE), json.loads((place / _MODEL).read_text(encoding="utf-8"))["id"])


class _RuleModel:
    """What MLflow calls to predict.

    The key is checked here, so that a server with a wrong one does not start, but it is not kept.
    """

    def __init__(self, rule: Rule | ClassRule, id: str | None) -> None:
        self._rule, self._id = rule, id
        key_in_environment()

    def get_raw_model(self) -> Rule | ClassRule:
        """The rule."""
        return self._rule

    def predict(self, model_input: Any) -> Any:
        """Probabilities and, for rows with ids, decisions."""
        names = list(_columns(self._rule).all)
        drawn = self._id is not None and self._id in model_input.columns
        key = key_in_environment() if drawn else None
        refuse_if(
            drawn and key is None,
            "Rows with ids are decided with a key, and {variable} is not set",
            remedy="set it, or leave out the column {column!r} to get probabilities alone",
            variable=ENVIRONMENT,
            column=self._id,
        )
        rows = model_input[[*dict.fromkeys([*names, *([self._id] if drawn else [])])]]
        found = self._rule.apply(rows, id=self._id if drawn else None, key=key, prefix=_PREFIX)
        return found.drop(columns=rows.columns).rename(columns=lambda new: new.removeprefix(_PREFIX))


def _named(rule: Rule | ClassRule, given: Mapping[str, Any]) -> Rule | ClassRule:
    """The rule with the names of all columns that the model reads."""
    several = isinstance(rule, ClassRule)
    other, own = ("score", "class_score") if several else ("class_score", "score")
    if given[other] is not None:
        raise InputError("This rule uses {" + own + "} and no {" + other + "}; remove it")
    names = {name: value for name, value in given.items() if value is not None}
    return replace(rule, columns=rule.reading(**names))


def _columns(rule: Rule | ClassRule) -> Columns:
    """The columns that a rule with names reads."""
    columns: Columns = rule.reading()
    return columns


def _signature(rule: Rule | ClassRule, id: str | None) -> Any:
    """The columns that the model takes and returns."""
    schema = library("mlflow.types.schema")

    def columns(names: Sequence[str], kind: Any, required: bool = True) -> list[Any]:
        return [schema.ColSpec(kind, name, required=required) for name in names]

    anything, number = schema.AnyType(), schema.DataType.double
    read, new, decision = _columns(rule).all, ["probability"], schema.DataType.long
    if isinstance(rule, ClassRule):
        new, decision = probability_columns(rule), anything
        if id is not None:
            check_types(rule)
    ids = [] if id is None else [column_name("id", id)]
    if id in read:
        raise InputError("is already read as another column: {id}", argument="id", id=id)
    takes = columns(read, anything) + columns(ids, anything, required=False)
    returns = columns(new, number) + columns(["decision"] if ids else [], decision, required=False)
    return _mlflow().models.ModelSignature(schema.Schema(takes), schema.Schema(returns))


def _example(rule: Rule | ClassRule) -> dict[str, list[Any]]:
    """A row of a made-up person, without an id."""
    columns, k = _columns(rule), len(rule.groups)
    if isinstance(rule, ClassRule):
        found: dict[str, Any] = dict.fromkeys(columns.class_scores or (), 1 / len(rule.classes))
    else:
        found = {str(columns.score): rule.cutoff}
    found |= dict.fromkeys(columns.probabilities or (), 1 / k)
    if isinstance(rule, Rule) and rule.membership == "each":
        firsts = (next(iter(ramps))[1] for _, ramps in rule.attributes)  # values by their keys (kind, value)
        found |= zip(columns.groups or (), firsts, strict=True)
    elif columns.grouped:
        found |= {name: values[0] for name, values in columns.labels(rule.groups)}
    return {name: [value] for name, value in found.items()}


def _settings(rule: Rule | ClassRule) -> dict[str, Any]:
    """The settings of a rule: the fields of its file that are one value, and the width of the ramps."""
    fields = {"groups": len(rule.groups)} | {
        name: value
        for name, value in rule.to_dict().items()
        if isinstance(value, str | int | float) and name not in ("format", "version", "sha256")
    }
    return fields if rule.record is None else fields | {"ramp_width": rule.record.ramp_width}


def _measured(
    rule: Rule | ClassRule, certificate: Certificate | None, audit: Audit | ClassAudit | None
) -> dict[str, float]:
    """Everything that is known about the rule in numbers, as metrics."""
    found: dict[str, float | None] = {}
    if isinstance(rule, ClassRule) and rule.record is not None:
        found |= {f"fit_gap_{when}": rule.record.gaps(when).max() for when in ("before", "after")}
    elif isinstance(rule, Rule) and rule.record is not None:
        names = [f"{what}_{when}" for what in ("gap", "ratio") for when in ("before", "after")]
        found |= {f"fit_{name}": getattr(rule.record, name) for name in names}
    if certificate is not None:
        found |= {
            "estimated_limit": certificate.estimated,
            "proven_limit": certificate.proven,
            "confidence": certificate.confidence,
        }
    if audit is not None and audit.after is not None:
        for when, one in (("before", audit.before), ("after", audit.after)):
            found |= {
                f"gap_{when}": one.gap,
                f"ratio_{when}": one.ratio,
                f"accuracy_{when}": one.overall_accuracy,
            }
        found["decided_at_random"] = audit.randomized
    return {f"fairramp_{name}": float(v) for name, v in found.items() if v is not None and isfinite(v)}
