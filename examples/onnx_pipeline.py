"""Put a scikit-learn pipeline and a rule in one ONNX file: features and groups in, fair decisions out.

    python examples/onnx_pipeline.py [FOLDER]

Needs: pip install 'fairramp[export]' skl2onnx onnxruntime
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairramp
from fairramp.deploy.onnx import append_to

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
KEY = "0123456789abcdef" * 4  # example only: keep a real key secret, in a file


def applicants(n, seed):
    """Simulate credit applicants: features, region, and whether they paid back."""
    rng = np.random.default_rng(seed)
    region = rng.choice(np.array(["Nord", "Süd"], dtype=object), n, p=[0.6, 0.4])
    south = region == "Süd"
    income = rng.lognormal(3.4 - 0.25 * south, 0.4)
    debts = rng.gamma(2.0, 4.0 + 1.0 * south)
    years = rng.integers(0, 30, n)
    paid = rng.random(n) < 1 / (1 + np.exp(-(0.06 * income - 0.12 * debts + 0.05 * years - 1.2)))
    return np.column_stack([income, debts, years]).astype(np.float32), region, paid


# 1. Your classifier, converted to ONNX.
features, _, paid = applicants(20_000, seed=1)
pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(features, paid)
own = to_onnx(pipeline, features[:1], options={"zipmap": False}, target_opset=17)

# 2. A rule, fitted on scores as the server computes them: in float32, by onnxruntime. No labels are needed.
features, region, _ = applicants(20_000, seed=2)
server = onnxruntime.InferenceSession(own.SerializeToString(), providers=["CPUExecutionProvider"])
scores = server.run(["probabilities"], {"X": features})[0][:, 1]
rule = fairramp.fit_rule(scores, {"region": region}, max_gap=0.02)

# 3. One file for both.
append_to(own, rule, FOLDER / "fair.onnx", decisions=True)

# 4. Serving. The server does not need fairramp; the random draws `u` come from wherever the key is kept.
server = onnxruntime.InferenceSession(FOLDER / "fair.onnx", providers=["CPUExecutionProvider"])
features, region, _ = applicants(20_000, seed=3)
ids = [f"applicant {i}" for i in range(len(region))]
feed = {"X": features, "region": region, "u": fairramp.draws(ids, KEY)}
label, own_scores, probability, decision = server.run(None, feed)

print("inputs: ", ", ".join(f"{i.name} {i.type}" for i in server.get_inputs()))
print("outputs:", ", ".join(f"{o.name} {o.type}" for o in server.get_outputs()))
fingerprint = server.get_modelmeta().custom_metadata_map["fairramp.rule"]
print("fingerprint of the rule in the file:", "matches" if fingerprint == rule.fingerprint else "differs")
print()
print("new applicants   selected by the classifier   by the fair model")
for name in ("Nord", "Süd"):
    here = region == name
    print(f"{name:<14}{label[here].mean():>29.1%}{decision[here].mean():>20.1%}")
in_python = rule.decide(own_scores[:, 1], region, ids=ids, key=KEY)
print()
print("same decisions as in Python:", "yes" if (decision == in_python).all() else "no")
unseen = server.run(["probability", "decision"], {"X": features[:1], "region": ["West"], "u": feed["u"][:1]})
print("probability and decision for an unseen region:", *(float(out[0]) for out in unseen))
