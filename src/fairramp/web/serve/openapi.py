"""The description of a service in OpenAPI 3.1, made from its rule.

What the description allows is decided, with two exceptions: JSON Schema cannot say that probabilities sum to 1,
and on a scale without ends, a score must still fit into a double.
"""

import math
from typing import Any

from fairramp._version import __version__
from fairramp.core.labels import UNSEEN, label_parts
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule
from fairramp.web.serve.people import ID, People

#: A text with a character that can be seen.
_NOT_BLANK = "[^" + "".join(rf"\u{ord(blank):04x}" for blank in UNSEEN) + "]"

_FINGERPRINT = {
    "type": "string",
    "pattern": "^[0-9a-f]{64}$",
    "description": "Names the rule: equal for rules that decide alike.",
}
_LABEL = {"type": ["string", "integer", "boolean", "null"]}
_REFUSALS = {
    "400": "The body is not valid JSON, or the request is not valid HTTP.",
    "401": "The token is missing or wrong.",
    "403": "The request was not addressed to this machine.",
    "408": "The request was not complete within the time limit.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "Someone cannot be decided: the sentence says who and why. Nobody was decided.",
    "503": "The service is busy.",
}


def described(
    people: People, fingerprint: str, *, max_people: int = 10_000, has_token: bool = False
) -> dict[str, Any]:
    """The description of the service of a rule."""
    person, answer = person_schema(people), answer_schema(people)
    example = example_person(people)
    what = "Decide" if people.has_ids else "Compute the probability of"
    access = ["401"] if has_token else ["403"]
    posted = ["400", *access, "408", "413", "415", "422", "503"]
    secured: dict[str, Any] = {"security": [{"token": []}]} if has_token else {}
    paths = {
        "/decide": {
            "post": {
                "operationId": "decide",
                "summary": f"{what} one person",
                **secured,
                "requestBody": _body("Person", example),
                "responses": {"200": _answered("OneAnswer"), **_refused(posted)},
            }
        },
        "/decide/batch": {
            "post": {
                "operationId": "decide_batch",
                "summary": f"{what} many people; answers are in the order of the people",
                **secured,
                "requestBody": _body("People", {"people": [example]}),
                "responses": {"200": _answered("Answers"), **_refused(posted)},
            }
        },
        "/health": _get(
            "health", "Tell whether the service is ready", _answered("Health"), [] if has_token else access, {}
        ),
        "/metrics": _get("metrics", "Counts for Prometheus", _text("text/plain"), access, secured),
        "/openapi.json": _get("openapi", "This description", _json({"type": "object"}), access, secured),
        "/docs": _get("docs", "This description, for people", _text("text/html"), access, secured),
    }
    mark = {"fingerprint": _FINGERPRINT}
    schemas = {
        "Person": person,
        "People": _object(
            {"people": {"type": "array", "minItems": 1, "maxItems": max_people, "items": _ref("Person")}}
        ),
        "Answer": _object(answer),
        "OneAnswer": _object(answer | mark),
        "Answers": _object({"answers": {"type": "array", "minItems": 1, "items": _ref("Answer")}} | mark),
        "Health": _object(
            {
                "status": {"const": "ok"},
                "decides": {"type": "boolean", "description": "Whether the service has a key."},
                "version": {"type": "string", "description": "The version of fairramp."},
            }
            | mark
        ),
        "Refusal": _object({"error": {"type": "string", "description": "One sentence."}} | mark),
    }
    security = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}} if has_token else {}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fairramp",
            "version": __version__,
            "description": f"Decisions of the rule {fingerprint}.",
        },
        "paths": paths,
        "components": {"schemas": schemas, **security},
    }


def person_schema(people: People) -> dict[str, Any]:
    """The schema of one person."""
    low, high = people.score_range
    rule, number = people.rule, {"type": "number"}
    ends = {} if isinstance(rule, Rule) and rule.meaning.is_unbounded else {"minimum": low, "maximum": high}
    fields: dict[str, Any] = {}
    for name in people.scores:
        what = "The score of this class"
        if isinstance(rule, Rule):
            what = f"The score, on the scale {rule.scale}{'' if rule.higher_is_better else '; lower is better'}"
        fields[name] = number | ends | {"description": f"{what}."}
    for name, values in zip(people.cell_fields, people.values, strict=True):
        what = "The stratum" if name in people.strata else "The group"
        fields[name] = ({"enum": values} if people.is_strict else _LABEL) | {"description": f"{what}."}
    for name, label in zip(people.chances, people.rule.groups, strict=False):
        fields[name] = number | {
            "minimum": 0,
            "maximum": 1,
            "description": f"The probability of group {label}; all of them sum to 1.",
        }
    if people.has_ids:
        fields[ID] = {
            "type": ["string", "integer"],
            "pattern": _NOT_BLANK,
            "description": "The same id always gets the same decision from the same key.",
        }
    found = _object(fields)
    cells = _cells(people)
    return found | ({"anyOf": cells} if cells else {})


def _cells(people: People) -> list[dict[str, Any]]:
    """The combinations of values that the rule knows, if these are not all."""
    rule, names = people.rule, people.cell_fields
    n_all = math.prod(map(len, people.values))
    if not people.is_strict or len(names) < 2 or rule.membership != "known" or n_all == len(rule.groups):
        return []
    rows = [label_parts(label, rule.stratified) for label in rule.groups]
    return [
        {"properties": {name: {"const": value} for name, value in zip(names, row, strict=True)}} for row in rows
    ]


def answer_schema(people: People) -> dict[str, Any]:
    """The fields of one person's answer."""
    several = isinstance(people.rule, ClassRule)
    found: dict[str, Any] = {
        name: {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "The probability of this class." if several else "The probability of yes.",
        }
        for name in people.probability_fields
    }
    if people.has_ids:
        found["decision"] = (
            {"enum": list(people.rule.classes), "description": "The class."}
            if isinstance(people.rule, ClassRule)
            else {"enum": [0, 1], "description": "1 is yes, 0 is no."}
        )
    return found


def example_person(people: People) -> dict[str, Any]:
    """A person whom the rule decides."""
    rule = people.rule
    found: dict[str, Any] = {}
    if isinstance(rule, ClassRule):
        found |= {name: float(i == 0) for i, name in enumerate(people.scores)}
    else:
        found[people.scores[0]] = rule.cutoff
    first = rule.groups[0]
    parts = (
        [values[0] for values in people.values]
        if rule.membership == "each"
        else label_parts(first, rule.stratified)
    )
    found |= dict(zip(people.cell_fields, parts, strict=False))
    found |= {name: float(i == 0) for i, name in enumerate(people.chances)}
    return found | ({ID: "anna"} if people.has_ids else {})


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(fields),
        "properties": fields,
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": "The answer.", "content": {"application/json": {"schema": schema}}}


def _answered(name: str) -> dict[str, Any]:
    return _json(_ref(name))


def _text(kind: str) -> dict[str, Any]:
    return {"description": "The page.", "content": {kind: {"schema": {"type": "string"}}}}


def _body(name: str, example: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": _ref(name), "example": example}}}


def _refused(statuses: list[str]) -> dict[str, Any]:
    return {status: _answered("Refusal") | {"description": _REFUSALS[status]} for status in statuses}


def _get(
    name: str, summary: str, answered: dict[str, Any], statuses: list[str], secured: dict[str, Any]
) -> dict[str, Any]:
    operation = {"operationId": name, "summary": summary, **secured}
    return {"get": operation | {"responses": {"200": answered, **_refused(statuses)}}}
