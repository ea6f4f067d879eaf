"""Properties for arbitrary bytes: readers of rules, summaries, tables and keys accept them or say why not.

Each function takes bytes and returns whether they were accepted. It fails if rejection is anything but a clear
error, if accepted content does not survive a round trip, or if it takes too long. Hypothesis and atheris
drive the same functions.
"""

import contextlib
import csv
import io
import json
import os
import signal
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np

import fairramp
from fairramp.data import bins, documents

__all__ = ["SEEDS", "read_class_rule", "read_key_file", "read_rule", "read_summary", "read_table", "within"]

#: Anything longer counts as a hang, even on a busy machine.
SECONDS = 30
_SENTENCE = 2000


@contextlib.contextmanager
def within(seconds=SECONDS):
    """Fail instead of hanging."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_):
        raise AssertionError(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _unsigned(wanted):
    """Give all content the same checksum, so that the checks after it are reached."""
    kept = documents.checksum
    if wanted:
        documents.checksum = lambda document, without=(): "0" * 64
    try:
        yield
    finally:
        documents.checksum = kept


def _check_sentence(error):
    text = str(error)
    assert text.strip()
    assert len(text) < _SENTENCE


def read_rule(data, unsigned=True):
    """Read a rule from JSON and write it back."""
    with within(), _unsigned(unsigned):
        try:
            rule = fairramp.Rule.from_json(data.decode("utf-8", "surrogateescape"))
        except fairramp.RuleFormatError as error:
            _check_sentence(error)
            return False
        text = rule.to_json()
        again = fairramp.Rule.from_json(text)
        assert again == rule
        assert again.to_json() == text
        assert again.fingerprint == rule.fingerprint
        assert repr(rule)
        scores = np.linspace(*{"signed": (-1, 1), "percent": (0, 100)}.get(rule.scale, (0, 1)), 7)
        if rule.columns.strata is None and not rule.stratified and rule.groups:
            label = rule.groups[0]
            groups = [[part] * 7 for part in label] if isinstance(label, tuple) else [label] * 7
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    chances = rule.probabilities(scores, groups)
                except fairramp.InputError as error:
                    _check_sentence(error)
                else:
                    assert ((chances >= 0) & (chances <= 1)).all()
                    assert (np.diff(chances) >= 0).all()
        if rule.record is not None and len(data) % 50 == 0:  # slow, so only sometimes
            with contextlib.suppress(fairramp.FairrampError):
                assert rule.certificate().estimated >= 0
        return True


def read_class_rule(data, unsigned=True):
    """Read a rule for several classes from JSON, write it back and decide."""
    with within(), _unsigned(unsigned):
        try:
            rule = fairramp.ClassRule.from_json(data.decode("utf-8", "surrogateescape"))
        except fairramp.RuleFormatError as error:
            _check_sentence(error)
            return False
        text = rule.to_json()
        again = fairramp.ClassRule.from_json(text)
        assert again == rule
        assert again.to_json() == text
        assert again.fingerprint == rule.fingerprint
        assert repr(rule)
        n_classes, n_groups = len(rule.classes), len(rule.groups)
        scores = np.vstack([np.eye(n_classes), np.full((1, n_classes), 1 / n_classes)])
        if rule.mixes:
            shares = np.full((len(scores), n_groups), 1 / n_groups)
            groups, strata = fairramp.GroupProbabilities(shares, rule.groups), None
        else:
            label, strata = rule.groups[0], None
            if rule.stratified:
                strata, label = (_repeated(part, len(scores)) for part in label)
            groups = label if rule.stratified else _repeated(label, len(scores))
        try:
            chances = rule.probabilities(scores, groups, strata)
        except fairramp.InputError as error:
            _check_sentence(error)
        else:
            assert (chances >= 0).all()
            np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-9)
        return True


def _repeated(label, n):
    return [[part] * n for part in label] if isinstance(label, tuple) else [label] * n


def read_summary(data, unsigned=True):
    """Read a summary, write it back and fit a rule to it."""
    with within(), _unsigned(unsigned):
        try:
            summary = bins.from_text(data.decode("utf-8", "surrogateescape"))
        except fairramp.SummaryFormatError as error:
            _check_sentence(error)
            return False
        text = bins.to_text(summary)
        assert bins.to_text(bins.from_text(text)) == text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                target = "accuracy" if summary.labeled else "optimal"
                rule = fairramp.fit_summary(summary, max_gap=0.1, target_rate=target)
                assert fairramp.Rule.from_json(rule.to_json()) == rule
                both = summary.merge(summary)
                assert bins.from_text(bins.to_text(both)).smallest_count >= 1
            except fairramp.FairrampError as error:
                _check_sentence(error)
        return True


def _run(*arguments):
    """Run the command line in this process; return exit code, stdout and stderr."""
    from fairramp.cli.run import run

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    kept = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("default")
        code = run([str(a) for a in arguments])
        out.flush()
        err.flush()
    for number, handler in kept:
        signal.signal(number, handler)
    return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


_RULE = fairramp.Rule(
    groups=("a", "b"),
    ramps=(fairramp.Ramp.centered(0.4, 0.1), fairramp.Ramp.centered(0.6, 0.1)),
    unseen_group="original",
)


def read_table(data, ending=".csv"):
    """Audit and decide a table on the command line; a rejection takes one line and exit code 2."""
    with within(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{ending}"
        path.write_bytes(data)
        rule = Path(folder) / "rule.json"
        _RULE.save(rule)
        out = Path(folder) / "out.csv"
        names = ("--score", "p", "--group", "g")
        before = sorted(os.listdir(folder))
        code, text, said = _run("audit", path, *names, "--json")
        _check_run(code, text, said)
        applied, printed, complained = _run("apply", rule, path, *names, "-o", out, "--random-seed", 1)
        _check_run(applied, printed, complained)
        if applied != 0:
            assert sorted(os.listdir(folder)) == before  # nothing half-written
        if code != 0 or applied != 0:
            return False
        # Accepted rows are all there: every counted row comes out with a probability.
        counted = sum(json.loads(text)["rows"])
        with out.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, delimiter=_delimiter(out)))
        width = len(lines[0])
        chance = lines[0].index("probability")
        found = [line for line in lines[1:] if line]
        assert len(found) == counted, (len(found), counted)
        assert all(len(line) == width for line in found)
        assert all(0 <= float(line[chance].replace(",", ".")) <= 1 for line in found)
        return True


def _delimiter(path):
    first = path.read_text(encoding="utf-8").split("probability")[0]
    return first[-1] if first and first[-1] in ",;\t|" else ","


def _check_run(code, text, said):
    assert code in (0, 2), (code, said)
    if code:
        lines = [line for line in said.splitlines() if not line.startswith("warning: ")]
        assert len(lines) == 1, said
        assert lines[0].startswith("fairramp: ")
        assert len(lines[0]) < _SENTENCE
        assert text == ""
        assert "Traceback" not in said


def read_key_file(data):
    """Read a key: 64 hexadecimal digits and a newline, or an error that does not quote them."""
    from fairramp.cli.secret import read_key

    with within(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key"
        path.write_bytes(data)
        path.chmod(0o600)
        try:
            key, _ = read_key(str(path))
        except fairramp.FairrampError as error:
            _check_sentence(error)
            return False
        assert data.strip(b"\r\n").decode("ascii") == key
        assert 0 <= fairramp.draws(["a"], key)[0] < 1
        return True


def _seeds():
    """Small valid files of each kind."""
    rng = np.random.default_rng(0)
    scores, groups, weights = rng.random(60).round(2), rng.choice(["a", "b"], 60), rng.integers(1, 4, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rules = [
            _RULE,
            fairramp.Rule(("a", 1), (fairramp.Ramp(0.4, 0.0, 0.5), fairramp.Ramp(0.1, 0.3)), ramp="paper"),
            fairramp.fit_rule(scores, groups, max_gap=0.05, unseen_group="pooled"),
            fairramp.fit_rule(scores, {"g": groups, "w": weights}, sample_weight=weights, ramp_width=0),
            fairramp.fit_rule(scores, groups, strata=weights),
            fairramp.fit_rule(scores, groups, solver=fairramp.SGD(epochs=1), target_rate=0.3),
        ]
        p = np.stack([scores / 2, scores / 2, 1 - scores], axis=1)
        soft = fairramp.GroupProbabilities({"a": scores, "b": 1 - scores})
        class_rules = [
            fairramp.ClassRule(("a", 1), ("x", 2, True), ((0.1, 0.0, -0.1), (0.0, 0.0, 0.0)), 0.1),
            fairramp.fit_class_rule(p, groups, max_gap=0.05, unseen_group="original"),
            fairramp.fit_class_rule(p, {"g": groups}, strata=weights, sample_weight=weights),
            fairramp.fit_class_rule(p, soft, max_gap=0.1),
            fairramp.fit_class_rule(p, groups, max_gap=1),
        ]
    summaries = [
        fairramp.summarize(scores, groups, resolution=8),
        fairramp.summarize(scores, {"g": groups}, sample_weight=weights, resolution=4),
        fairramp.summarize(scores, groups, labels=weights % 2, sample_weight=weights, resolution=4),
    ]
    table = "".join(f"{i},{p},{g}\n" for i, (p, g) in enumerate(zip(scores[:6], groups[:6], strict=True)))
    lines = [json.dumps({"p": float(p), "g": str(g)}) for p, g in zip(scores[:6], groups[:6], strict=True)]
    with _unsigned(True):
        return {
            "rule": [rule.to_json().encode() for rule in rules],
            "class rule": [rule.to_json().encode() for rule in class_rules],
            "summary": [bins.to_text(summary).encode() for summary in summaries],
            "csv": [b"id,p,g\n" + table.encode(), b'id;"p";g\r\n1;"0,5";a\r\n2;0,25;"b ""c"""\r\n'],
            "jsonl": ["\n".join(lines).encode() + b"\n"],
            "json": [("[" + ",".join(lines) + "]").encode()],
            "key": [b"0123456789abcdef" * 4 + b"\n"],
        }


SEEDS = _seeds()
