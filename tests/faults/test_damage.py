"""A damaged rule or summary either raises or keeps its meaning; it is never read as another rule."""

import numpy as np
import pytest

import fairramp
from fairramp.data.bins import to_text
from samples import quiet_fit
from shell import Inside

pytestmark = pytest.mark.faults

RNG = np.random.default_rng(0)
SCORES, GROUPS = RNG.random(200).round(2), RNG.choice(["Ä", "b", "c d"], 200)
WEIGHTS = RNG.integers(1, 4, 200)
RULES = {
    "plain": quiet_fit(SCORES, GROUPS, max_gap=0.05, unseen_group="pooled", date="2026-01-31"),
    "two columns": quiet_fit(SCORES, {"g": GROUPS, "h": GROUPS == "b"}, sample_weight=WEIGHTS, ramp_width=0),
    "strata": quiet_fit(SCORES, GROUPS == "b", strata=WEIGHTS),
    "sgd": quiet_fit(SCORES, GROUPS, solver=fairramp.SGD(epochs=1), target_rate=0.3),
    "by hand": fairramp.Rule(
        groups=("a", None), ramps=(fairramp.Ramp.centered(0.25, 0.01), fairramp.Ramp(1e-7, 0.0, 0.5))
    ),
}
SUMMARIES = {
    "plain": fairramp.summarize(SCORES[:40], GROUPS[:40], resolution=8),
    "weights": fairramp.summarize(SCORES[:40], {"g": GROUPS[:40]}, sample_weight=WEIGHTS[:40], resolution=8),
    "labels": fairramp.summarize(
        SCORES[:40], GROUPS[:40], labels=WEIGHTS[:40] % 2, sample_weight=WEIGHTS[:40], resolution=8
    ),
}
FILES = [("rule", name) for name in RULES] + [("summary", name) for name in SUMMARIES]


@pytest.fixture(params=FILES, ids=lambda pair: " ".join(pair))
def saved(request, tmp_path):
    """Bytes of a file, and a reader that returns "refused" or "same", or fails."""
    kind, name = request.param
    thing = (RULES if kind == "rule" else SUMMARIES)[name]
    path = tmp_path / "file.json"
    thing.save(path)
    content = path.read_bytes()
    text_of = fairramp.Rule.to_json if kind == "rule" else to_text
    written = text_of(thing)

    def read(changed):
        path.write_bytes(changed)
        try:
            found = (fairramp.Rule if kind == "rule" else fairramp.GroupScores).load(path)
        except (fairramp.RuleFormatError, fairramp.SummaryFormatError) as error:
            sentence = str(error)
            assert sentence.startswith(f"{path}: ")
            assert sentence.endswith((".", "?"))
            assert len(sentence.splitlines()) == 1
            return "refused"
        assert text_of(found) == written
        return "same"

    assert read(content) == "same"
    return content, read


def test_truncation_raises(saved):
    content, read = saved
    answers = {read(content[:length]) for length in range(len(content) - 1)}  # the last byte is the newline
    assert answers == {"refused"}


@pytest.mark.parametrize("bits", [1, pytest.param(8, marks=pytest.mark.nightly)])
def test_flipped_bits_raise_or_keep_the_meaning(saved, bits):
    content, read = saved
    refused = 0
    for place in range(len(content)):
        for bit in range(bits):
            changed = bytearray(content)
            changed[place] ^= 1 << (place + bit) % 8
            refused += read(bytes(changed)) == "refused"
    assert refused >= 0.99 * bits * len(content)  # E instead of e gives the same number


@pytest.mark.parametrize("change", ["lost", "doubled", "swapped", "a 9"])
def test_changed_bytes_raise_or_keep_the_meaning(saved, change):
    content, read = saved
    for i in range(0, len(content) - 1, 2):
        a, b = content[:i], content[i + 1 :]
        read(
            {
                "lost": a + b,
                "doubled": a + content[i : i + 1] * 2 + b,
                "swapped": a + content[i + 1 : i + 2] + content[i : i + 1] + content[i + 2 :],
                "a 9": a + b"9" + b,
            }[change]
        )


def test_trailing_zeros_raise(saved):
    content, read = saved
    for block in (1, 16, 512, len(content)):
        assert read(content[:-block] + bytes(block)) == "refused"
        assert read(content + bytes(block)) == "refused"
    assert read(content + content) == "refused"
    assert read(b"") == "refused"


def test_windows_line_endings_are_accepted(saved):
    content, read = saved
    assert read(content.replace(b"\n", b"\r\n")) == "same"


@pytest.mark.parametrize("name", RULES)
def test_edited_number_raises(name, tmp_path):
    text = RULES[name].to_json()
    foot = f'"foot": {RULES[name].ramps[0].foot!r}'
    assert foot in text
    with pytest.raises(fairramp.RuleFormatError, match=r"edited by hand.*dataclasses\.replace"):
        fairramp.Rule.from_json(text.replace(foot, '"foot": 0.125', 1))


@pytest.mark.parametrize("command", ["audit", "apply", "check", "report"])
def test_commands_reject_a_damaged_rule_in_one_line(fitted, command):
    shell = Inside(fitted.folder)
    shell.write("rule.json", shell.read("rule.json").replace('"foot": 0.', '"foot": 0.1', 1))
    rule, data = ("rule.json", "scores.csv")
    more = {
        "audit": ("audit", data, "--rule", rule),
        "apply": ("apply", rule, data, "-o", "out.csv"),
        "check": ("check", rule, data),
        "report": ("report", rule, data, "-o", "out.html"),
    }[command]
    before = shell.files()
    assert "rule.json: The checksum does not match" in shell.error(*more)
    assert shell.files() == before
