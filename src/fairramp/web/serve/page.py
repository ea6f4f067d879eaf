"""The description of a service as a page for people.

The page loads nothing from elsewhere, and its content security policy allows exactly its own style and script.
"""

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from string import Template
from typing import Any

from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule


def page(description: dict[str, Any], rule: Rule | ClassRule) -> str:
    """The page of a description."""
    schemas, paths = description["components"]["schemas"], description["paths"]
    posted = paths["/decide"]["post"]
    example = json.dumps(posted["requestBody"]["content"]["application/json"]["example"], ensure_ascii=False)
    decides = "decision" in schemas["Answer"]["properties"]
    token = " -H 'Authorization: Bearer TOKEN'" if "securitySchemes" in description["components"] else ""
    command = (
        f"curl http://HOST:PORT/decide{token} -H 'Content-Type: application/json' \\\n  -d {_quoted(example)}"
    )
    what = (
        "Send a person, and get the probability of selection and the decision."
        if decides
        else "Send a person, and get the probability of selection. The service has no key and makes no decisions."
    )
    refused = {status: answer["description"] for status, answer in posted["responses"].items() if status != "200"}
    return Template(_file("page.html")).substitute(
        style=_file("page.css"),
        script=_file("page.js"),
        version=description["info"]["version"],
        fingerprint=rule.fingerprint,
        what=what,
        paths=_rows(
            (f"<code>{method.upper()} {path}</code>", html.escape(operation["summary"]))
            for path, operations in paths.items()
            for method, operation in operations.items()
        ),
        fields=_fields(schemas["Person"]),
        answers=_fields(schemas["OneAnswer"]),
        example=html.escape(example),
        curl=html.escape(command),
        refusals=_rows((status, html.escape(reason)) for status, reason in refused.items()),
        rule=html.escape(repr(rule)),
    )


def policy(text: str) -> str:
    """The content security policy of a page: its own style and script, and requests to the service itself."""
    (style,), (script,) = (re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("style", "script"))
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src {_digest(style)}",
            f"script-src {_digest(script)}",
            "img-src data:",
            "connect-src 'self'",
            *(f"{what} 'none'" for what in ("base-uri", "form-action", "frame-ancestors")),
        ]
    )


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _rows(cells: Any) -> str:
    return "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)


def _fields(schema: dict[str, Any]) -> str:
    return _rows(
        (f"<code>{html.escape(name)}</code>", _values(field), html.escape(field["description"]))
        for name, field in schema["properties"].items()
    )


def _values(field: dict[str, Any]) -> str:
    """The values of a field, in words."""
    if "enum" in field:
        return ", ".join(f"<code>{html.escape(json.dumps(v, ensure_ascii=False))}</code>" for v in field["enum"])
    if field["type"] == "number":
        return f"{field['minimum']:g} to {field['maximum']:g}" if "minimum" in field else "any number"
    kinds = [field["type"]] if isinstance(field["type"], str) else field["type"]
    return ", ".join({"string": "text", "boolean": "true, false"}.get(kind, kind) for kind in kinds)


def _quoted(text: str) -> str:
    """Text as one word for a shell."""
    return "'" + text.replace("'", "'\\''") + "'"
