"""The public API in any order: equivalent calls give equal results.

A Hypothesis state machine collects rows in batches and uses rules, files, summaries, tables, audits, checks,
streams and estimators in any order. Each step checks its own laws.
"""

import warnings

import numpy as np
import pytest
from harness import within
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

import fairramp
from engines import IN_MEMORY, QUICK_LAZY, columns_of, table
from fairramp.data.bins import from_text, to_text
from oracles import selection_rates
from samples import KEY, gap

pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")]

score = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.5, 0.75, 1.0]))
LABELS = {
    "text": ("a", "b", "ä ö"),
    "numbers": (0, 7, -3),
    "booleans": (False, True, True),
    "missing": ("a", "b", None),
}
rows = st.lists(st.tuples(score, st.integers(0, 2), st.integers(1, 3), st.booleans()), min_size=1, max_size=12)
options = st.fixed_dictionaries(
    {
        "max_gap": st.sampled_from([0.0, 0.01, 0.2, 1.0]),
        "ramp_width": st.sampled_from([0.0, 1e-6, 0.01, 0.3]),
        "ramp": st.sampled_from(["centered", "paper"]),
        "target_rate": st.sampled_from(["optimal", 0.0, 0.3, 1.0, "accuracy", "base_rate"]),
        "unseen_group": st.sampled_from(["error", "pooled", "original"]),
    }
)


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose only feature is the score."""

    def fit(self, X, y):  # noqa: N803
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):  # noqa: N803
        return np.column_stack([1 - X[:, 0], X[:, 0]])


class Surface(RuleBasedStateMachine):
    """The rows so far and the last rule."""

    @initialize(kind=st.sampled_from(sorted(LABELS)), weighted=st.booleans(), first=rows)
    def start(self, kind, weighted, first):
        self.kind, self.weighted = kind, weighted
        self.scores, self.groups, self.labels = np.empty(0), [], np.empty(0)
        self.weights = np.empty(0)
        self.parts = []
        self.rule = None
        self.more(first)

    @rule(batch=rows)
    def more(self, batch):
        p, g, w, y = zip(*batch, strict=True)
        groups = [LABELS[self.kind][code] for code in g]
        part = fairramp.summarize(
            np.array(p),
            groups,
            labels=y,
            resolution=64,
            sample_weight=np.array(w, float) if self.weighted else None,
        )
        self.parts.append(part)
        self.scores = np.append(self.scores, p)
        self.groups += groups
        self.weights = np.append(self.weights, np.array(w, float))
        self.labels = np.append(self.labels, np.array(y, float))

    @property
    def weight(self):
        return self.weights if self.weighted else None

    def known(self):
        """Indices of rows in groups the rule knows."""
        return [i for i, g in enumerate(self.groups) if g in self.rule.groups]

    def chosen(self):
        keep = self.known()
        return self.scores[keep], [self.groups[i] for i in keep], keep

    @rule(settings_=options)
    def fit(self, settings_):
        with within():
            self.rule = fairramp.fit_rule(
                self.scores, self.groups, self.labels, sample_weight=self.weight, **settings_
            )
        chances = self.rule.probabilities(self.scores, self.groups)
        codes = np.array([str(g) for g in self.groups])
        assert gap(chances, codes, self.weight) <= settings_["max_gap"] + 1e-9
        assert set(self.rule.groups) == set(self.groups)

    @precondition(lambda self: self.rule is not None)
    @rule()
    def file(self):
        again = fairramp.Rule.from_json(self.rule.to_json())
        assert again == self.rule
        assert again.fingerprint == self.rule.fingerprint
        scores, groups, keep = self.chosen()
        if keep:
            np.testing.assert_array_equal(
                again.probabilities(scores, groups), self.rule.probabilities(scores, groups)
            )
        self.rule = again

    @precondition(lambda self: self.rule is not None and self.known())
    @rule(engine=st.sampled_from(IN_MEMORY + QUICK_LAZY))
    def apply(self, engine):
        scores, groups, keep = self.chosen()
        frame = table(engine, {"p": scores.tolist(), "g": groups, "id": [f"i{i}" for i in keep]})
        with within():
            done = columns_of(self.rule.apply(frame, score="p", group="g", id="id", key=KEY))
        chances = self.rule.probabilities(scores, groups)
        np.testing.assert_allclose(done["probability"], chances, atol=1e-12 if engine in IN_MEMORY else 1e-9)
        ids = [f"i{i}" for i in keep]
        decisions = self.rule.decide(scores, groups, ids=ids, key=KEY)
        sure = np.abs(np.asarray(done["probability"]) - fairramp.draws(ids, KEY)) > 1e-9
        np.testing.assert_array_equal(np.array(done["decision"])[sure], decisions[sure])
        again = self.rule.decide(scores[::-1], groups[::-1], ids=ids[::-1], key=KEY)
        np.testing.assert_array_equal(again[::-1], decisions)

    @precondition(lambda self: self.rule is not None and self.known())
    @rule()
    def audit(self):
        scores, groups, keep = self.chosen()
        weights = self.weights[keep] if self.weighted else None
        with within():
            found = fairramp.audit(scores, groups, self.labels[keep], rule=self.rule, sample_weight=weights)
        names = list(dict.fromkeys(groups))
        codes = np.array([names.index(g) for g in groups])
        ones = np.ones(len(keep)) if weights is None else weights
        rates = selection_rates(self.rule.probabilities(scores, groups), codes, ones)
        assert abs(found.gap - (rates.max() - rates.min())) < 1e-9
        assert repr(found)

    @precondition(lambda self: self.rule is not None and self.known())
    @rule()
    def check(self):
        scores, groups, _ = self.chosen()
        with within():
            try:
                found = self.rule.check(scores, groups)
            except fairramp.InputError as error:
                assert str(error)  # noqa: PT017 -- too few rows to say anything is a fine answer
                return
        assert repr(found)
        chances = self.rule.probabilities(scores, groups)
        assert found.left_out or abs(found.gap - gap(chances, np.array([str(g) for g in groups]))) < 1e-9

    @rule(
        max_gap=st.sampled_from([0.0, 0.1]),
        width=st.sampled_from([0.0, 0.05]),
        rate=st.sampled_from(["optimal", "accuracy", "base_rate"]),
    )
    def summaries(self, max_gap, width, rate):
        merged = self.parts[0]
        for part in self.parts[1:]:
            merged = from_text(to_text(part)).merge(merged)
        whole = fairramp.summarize(
            self.scores, self.groups, labels=self.labels, resolution=64, sample_weight=self.weight
        )
        shares = [found.table()["positive_share"].tolist() for found in (merged, whole)]
        assert shares[0] == pytest.approx(shares[1])
        assert merged.smallest_count == whole.smallest_count
        assert set(merged.summary.labels) == set(whole.summary.labels) == set(self.groups)
        with within():
            fitted = fairramp.fit_summary(merged, max_gap=max_gap, ramp_width=width, target_rate=rate)
        chances = fitted.probabilities(self.scores, self.groups)
        error = 2 * max(fitted.record.rates["selection"].error)
        codes = np.array([str(g) for g in self.groups])
        assert gap(chances, codes, self.weight) <= max_gap + error + 1e-9

    @rule(cut=st.floats(0, 1), rate=st.sampled_from([0.2, 0.5]))
    def stream(self, cut, rate):
        at = int(cut * len(self.scores))
        whole = fairramp.StreamingFit(target_rate=rate).partial_fit(self.scores, self.groups)
        parts = fairramp.StreamingFit(target_rate=rate)
        for piece in (slice(0, at), slice(at, None)):
            if len(self.scores[piece]):
                parts.partial_fit(self.scores[piece], self.groups[piece])
        a, b = whole.rule(), parts.rule()
        assert set(a.groups) == set(b.groups) == set(self.groups)
        chances = a.probabilities(self.scores, self.groups)
        assert ((chances >= 0) & (chances <= 1)).all()

    @precondition(lambda self: 0 < self.labels.sum() < len(self.labels))
    @rule(max_gap=st.sampled_from([0.0, 0.1]))
    def estimator(self, max_gap):
        X = self.scores[:, None]  # noqa: N806
        model = fairramp.RandomizedThresholdOptimizer(FrozenEstimator(Given().fit(X, None)), max_gap=max_gap)
        model.fit(X, self.labels.astype(int), sensitive_features=self.groups, sample_weight=self.weight)
        direct = fairramp.fit_rule(
            self.scores,
            self.groups,
            self.labels,
            max_gap=max_gap,
            target_rate="accuracy",
            sample_weight=self.weight,
        )
        np.testing.assert_array_equal(
            model.predict_proba(X, sensitive_features=self.groups)[:, 1],
            direct.probabilities(self.scores, self.groups),
        )

    @invariant()
    def rule_prints(self):
        if getattr(self, "rule", None) is not None:
            assert all(len(line) < 200 for line in repr(self.rule).splitlines())


#: Each example takes up to thirty steps, so this machine gets a tenth of a profile's examples.
Surface.TestCase.settings = settings(
    max_examples=max(settings.default.max_examples // 10, 3), stateful_step_count=30, deadline=None
)


class TestSurface(Surface.TestCase):
    pytestmark = pytestmark

    def runTest(self):  # noqa: N802
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fairramp.FairrampWarning)
            super().runTest()
