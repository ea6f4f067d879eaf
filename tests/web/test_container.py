"""The commands of the container recipe run, and are those that the page about the service explains."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from fairramp import Ramp, Rule
from serving import served
from shell import KEY

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "examples" / "serve" / "Dockerfile").read_text(encoding="utf-8")
RULE = Rule(("A", "B"), (Ramp(0.25, 0.5), Ramp(0.5, 0.25)))
TOKEN = "correct-horse-battery-staple-0123456789"


def words(instruction):
    """The words of an instruction in its JSON form, which needs no shell."""
    (found,) = re.findall(rf"^{instruction}\b[^\[\n]*(\[.*\])$", RECIPE, re.MULTILINE)
    return json.loads(found)


def test_the_entry_point_serves_and_its_health_check_passes(tmp_path):
    program, command, rule, *options = [*words("ENTRYPOINT"), *words("CMD")]
    assert (Path(program).name, command, rule) == ("fairramp", "serve", "/run/rule.json")
    assert options[options.index("--host") + 1] == "0.0.0.0"
    for name, text in (("key", KEY), ("token", TOKEN)):
        path = tmp_path / name
        path.write_text(text)
        os.chmod(path, 0o600)
        options = [str(path) if option == f"/run/secrets/{name}" else option for option in options]
    options = ["127.0.0.1" if option == "0.0.0.0" else option for option in options]
    with served(RULE, tmp_path, *options, key=None) as service:
        service.token = TOKEN
        assert service.ask("POST", "/decide", {"score": 0.4, "group": "A", "id": 1})[0] == 200
        python, *check = words("HEALTHCHECK")
        assert Path(python).name == "python"
        check = [word.replace("127.0.0.1:8000", f"127.0.0.1:{service.port}") for word in check]
        assert subprocess.run([sys.executable, *check]).returncode == 0
    assert subprocess.run([sys.executable, *check], capture_output=True).returncode != 0
