"""The gate of the GitHub Action (action.yml): run `fairramp audit` or `fairramp check`, and report the result.

    INPUT_… variables  →  one command  →  verdict, exit code and summary in GITHUB_OUTPUT
                                          the summary on the page of the run (GITHUB_STEP_SUMMARY)

Inputs are passed as arguments, never through a shell. Python imports nothing from the folder that it runs in
(-P), which belongs to the audited repository: a numpy.py there could end the gate as passed.
"""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

#: Inputs that become options of both commands; those in `_LISTS` may have several lines.
_OPTIONS = ("score", "group", "label", "positive", "weight", "strata", "scale", "confidence")
_LISTS = ("group", "strata")
_GATES = ("fail-above", "fail-unless-below", "fail-below-ratio", "fail-unless-ratio")
_ERROR = 2


def arguments(given: Mapping[str, str]) -> list[str]:
    """Return the arguments of `fairramp`; raise ValueError if the inputs do not fit together."""
    command, data, rule = given["command"], given["data"], given["rule"]
    audit_only = [name for name in ("criterion", *_GATES) if given[name]]
    errors = {
        f"The input command must be audit or check, got {command!r}.": command not in ("audit", "check"),
        "The input data is missing: name the file with the rows.": not data,
        "The command check needs the input rule.": command == "check" and not rule,
        f"The command check does not use {', '.join(audit_only)}: remove it, or use the command audit.": (
            command == "check" and bool(audit_only)
        ),
        f"The command audit needs a gate: one of the inputs {', '.join(_GATES)}.": (
            command == "audit" and not any(given[name] for name in _GATES)
        ),
    }
    if wrong := next((text for text, holds in errors.items() if holds), None):
        raise ValueError(wrong)
    files = [data] if command == "audit" else [rule, data]
    names = (*_OPTIONS, *(("rule", "criterion", *_GATES) if command == "audit" else ()))
    options = [
        f"--{name}={value}"
        for name in names
        for value in (given[name].splitlines() if name in _LISTS else [given[name]])
        if value
    ]
    # A file whose name starts with a dash is not an option.
    return [command, *(f"./{file}" if file.startswith("-") else file for file in files), *options]


def verdict(command: str, printed: str) -> str:
    """Return the verdict in the JSON that a command printed; "error" if it printed none."""
    try:
        found = json.loads(printed)
    except ValueError:
        return "error"
    return str((found["gate"] if command == "audit" else found)["verdict"])


def main() -> int:
    """Run the gate."""
    names = ("data", "rule", "command", "criterion", *_OPTIONS, *_GATES)
    given = {name: os.environ.get(f"INPUT_{name.upper().replace('-', '_')}", "").strip() for name in names}
    summary = Path(os.environ["RUNNER_TEMP"], f"fairramp-{secrets.token_hex(8)}.md")
    found, code = "error", _ERROR
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}")  # nothing that a file contains is a command to GitHub
    try:
        asked = arguments(given)
    except ValueError as wrong:
        print(wrong)
    else:
        run = [sys.executable, "-P", "-m", "fairramp.cli", *asked, "--json", f"--summary={summary}"]
        done = subprocess.run(run, capture_output=True, text=True, encoding="utf-8")
        code, found = done.returncode, verdict(given["command"], done.stdout)
        print(done.stderr + (summary.read_text(encoding="utf-8") if summary.exists() else ""))
    print(f"::{token}::")
    if found == "undecided":
        print("::warning title=fairramp::Undecided: these rows cannot show it. See the summary of this run.")
    told = f"verdict={found}\nexit-code={code}\nsummary={summary if summary.exists() else ''}\n"
    _append("GITHUB_OUTPUT", told)
    text = "**fairramp: error, nothing was measured.** The log of the step says why."
    _append("GITHUB_STEP_SUMMARY", (summary.read_text(encoding="utf-8") if summary.exists() else text) + "\n")
    return code


def _append(variable: str, text: str) -> None:
    """Append text to a file of the runner."""
    with open(os.environ[variable], "a", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())
