"""Write src/fairramp/rule/rule.schema.json, the JSON Schema of rule files, from the types that read them.

python scripts/make_rule_schema.py
"""

import json
from pathlib import Path

import msgspec

from fairramp.core.scales import SCALES
from fairramp.rule.class_file import ClassRuleFile
from fairramp.rule.file import GroupEntry, RampEntry, RuleFile
from fairramp.rule.record import FitRecord

STRATIFIED = {"properties": {"stratified": {"const": True}}}
EACH, PROBABILITIES = (
    {"properties": {"membership": {"const": name}}, "required": ["membership"]}
    for name in ("each", "probabilities")
)
PAIRS = {"items": {"properties": {"label": {"type": "array", "minItems": 2, "maxItems": 2}}}}
#: Constraints across fields, which types cannot express.
RULES = [
    *(
        {
            "if": {"properties": {"scale": {"const": name}}},
            "then": {"properties": {"cutoff": {"minimum": low, "maximum": high}}},
        }
        for name, (low, high) in ((name, scale.cutoff_range) for name, scale in SCALES.items())
    ),
    {
        "if": {"properties": {"unseen_group": {"const": "pooled"}}},
        "then": {"properties": {"pooled": {"type": "object"}}},
        "else": {"properties": {"pooled": {"type": "null"}}},
    },
    {
        "if": {"anyOf": [STRATIFIED, EACH]},
        "then": {
            "properties": {
                "unseen_group": {"enum": ["error", "original"]},
                "groups": PAIRS,
                "record": {"properties": {"strata": {"type": "array"}}},
            }
        },
        "else": {"properties": {"record": {"properties": {"strata": {"type": "null"}}}}},
    },
    {
        "if": {"anyOf": [STRATIFIED, EACH, {"properties": {"criterion": {"const": "equalized_odds"}}}]},
        "then": {"properties": {"target_rate": {"type": "null"}}},
        "else": {"properties": {"target_rate": {"type": "number"}}},
    },
    {
        "if": {"anyOf": [EACH, PROBABILITIES]},
        "then": {
            "properties": {
                "unseen_group": {"enum": ["error", "original"]},
                "stratified": {"const": False},
                "criterion": {"const": "parity"},
            }
        },
    },
    {
        "if": EACH,
        "then": {"properties": {"base": {"type": "object"}}, "required": ["base"]},
        "else": {"properties": {"base": {"type": "null"}}},
    },
]
CLASS_RULES = [
    {
        "if": STRATIFIED,
        "then": {"properties": {"groups": PAIRS, "record": {"properties": {"strata": {"type": "array"}}}}},
        "else": {"properties": {"record": {"properties": {"strata": {"type": "null"}}}}},
    },
    {
        "if": PROBABILITIES,
        "then": {"properties": {"unseen_group": {"const": "error"}, "stratified": {"const": False}}},
    },
    {
        "if": {"properties": {"ramp_width": {"const": 0.0}}},
        "then": {"properties": {"groups": {"items": {"properties": {"offsets": {"items": {"const": 0.0}}}}}}},
    },
    {"properties": {"columns": {"properties": {"score": {"type": "null"}}}}},
]
RAMPS = {
    "if": {"properties": {"width": {"type": "null"}}},
    "then": {"properties": {"foot": {"const": 0.0}}},
}
RECORDS = {
    "if": {"properties": {"solver": {"const": "sgd"}}},
    "then": {"properties": {"trace": {"type": "array"}}},
    "else": {"properties": {"trace": {"type": "null"}}},
}


def schema():
    """The schema of the types, with the constraints across fields."""
    kinds, parts = msgspec.json.schema_components([RuleFile, ClassRuleFile], ref_template="#/$defs/{name}")
    for part in parts.values():
        part.pop("description", None)  # class docstrings are for readers of the code
    for entry in (RampEntry, GroupEntry):
        parts[entry.__name__] |= RAMPS
    parts[FitRecord.__name__] |= RECORDS
    parts[RuleFile.__name__]["allOf"] = RULES
    parts[ClassRuleFile.__name__]["allOf"] = CLASS_RULES
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:fairramp:rule:2",
        "title": "fairramp rule, version 2",
        "description": "docs/rule-format.md explains every field, and what else a reader must check.",
        "oneOf": list(kinds),
        "$defs": parts,
    }


def text():
    """The content of the file."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    path = Path(__file__).parents[1] / "src" / "fairramp" / "rule" / "rule.schema.json"
    path.write_text(text(), encoding="utf-8", newline="\n")
    print(f"{path}: {path.stat().st_size:,} bytes")
