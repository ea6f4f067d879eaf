"""Without MLflow, the module can be imported, and its functions say what to install."""

from importlib.util import find_spec

import pytest

from fairramp import FairrampError, Ramp, Rule
from fairramp.mlflow import load_rule, log_rule

pytestmark = pytest.mark.skipif(find_spec("mlflow") is not None, reason="mlflow is installed")
RULE = Rule(("A", "B"), (Ramp(0.5, 0.0), Ramp(0.4, 0.0)))


@pytest.mark.parametrize("call", [lambda: log_rule(RULE), lambda: load_rule("models:/loans/1")])
def test_a_call_says_what_to_install(call):
    with pytest.raises(
        FairrampError, match=r"^mlflow is not installed; install it with: .* -m pip install 'fairramp\["
    ):
        call()
