"""The explorer: its numbers are the library's, its files are its commands', and nobody else can use it."""

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import numpy as np
import pytest

import fairramp
from explored import COLUMNS, SETTINGS, exploring
from fairramp.errors import FairrampError
from fairramp.fit.settings import Settings
from fairramp.show.report.live import LiveRows
from fairramp.web.explore.asked import Choice, settings_of, told
from fairramp.web.explore.columns import columns_of, suggested
from fairramp.web.explore.save import Folder
from samples import quiet_fit

ROWS = 3_000
#: The page computes in NumPy and the command in DuckDB: sums of at most 3,000 rows in another order.
ROUNDING = 1e-9
MOVES = [
    {},
    {"limit": "min_ratio", "value": 0.8},
    {"cutoff": 0.4, "target": "accuracy"},
    {"target": "number", "rate": 0.3},
    {"target": "budget", "rate": 0.25},
    {"criterion": "equal_opportunity", "value": 0.05},
    {"criterion": "predictive_equality", "value": 0.01, "target": "balanced_accuracy"},
    {"criterion": "equalized_odds", "value": 0.1},
    {"target": "base_rate", "value": 0.0},
    {"lower_is_better": True, "cutoff": 0.35},
]


def name(move):
    return " ".join(map(str, move.values())) or "defaults"


def write_rows(path, n=ROWS):
    rng = np.random.default_rng(5)
    groups = np.array(["Female", "Male", "other"])[rng.choice(3, n, p=[0.4, 0.594, 0.006])]
    scores = np.clip(rng.beta(2, 4, n) + 0.15 * (groups == "Male"), 0, 1).round(4)
    labels = (rng.random(n) < scores).astype(int)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "score", "sex", "earns", "note"])
        for i in range(n):
            writer.writerow([i, scores[i], groups[i], labels[i], f"text {i}"])
    return scores, groups, labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    write_rows(folder / "scores.csv")
    return folder


@pytest.fixture(scope="module")
def explorer(folder):
    with exploring(folder, "scores.csv") as found:
        yield found


@pytest.fixture
def own(tmp_path):
    """A folder whose files a test may change, with its explorer."""
    write_rows(tmp_path / "scores.csv")
    with exploring(tmp_path, "scores.csv", "--out", "out") as found:
        yield tmp_path, found


# Numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("move", MOVES, ids=name)
def test_the_rule_of_a_move_is_the_one_that_fit_rule_fits(tmp_path, move):
    scores, groups, labels = write_rows(tmp_path / "scores.csv")
    settings = settings_of(SETTINGS | move, Choice.of(COLUMNS))
    rows = LiveRows.of(scores, {"sex": groups}, labels, settings.meaning, "score")
    names = ("criterion", "max_gap", "min_ratio", "cutoff", "target_rate", "overall_rate", "higher_is_better")
    given = {name: getattr(settings, name) for name in names}
    given["target_rate"] = None if settings.overall_rate is not None else given["target_rate"]
    expected = quiet_fit(scores, {"sex": groups}, labels, **given)
    for _ in range(2):  # what is kept between moves changes nothing
        found = rows.fit(settings)
        assert found.ramps == expected.ramps
    if move not in MOVES[:9:4]:  # reports take longer, because they are about many rules
        return
    content = rows.content(settings)
    report = expected.report(scores, {"sex": groups}, labels).content
    assert content.before == report.before
    assert content.chosen.after.gap == pytest.approx(report.chosen.after.gap, abs=ROUNDING)
    assert content.chosen.after.overall_accuracy == pytest.approx(
        report.chosen.after.overall_accuracy, abs=ROUNDING
    )
    assert content.chosen.judgment.headline == report.chosen.judgment.headline
    assert content.answers == report.answers


def test_moves_in_any_order_give_the_same_page(explorer):
    def said(move):
        found = explorer.post("move", settings=move, drawn="")
        return {key: found[key] for key in ("audit", "report", "tables", "figures", "headline", "charts")}

    first = [said(move) for move in MOVES[:3]]
    assert [said(move) for move in reversed(MOVES[:3])] == first[::-1]


def test_charts_are_sent_only_if_the_page_has_others(explorer):
    first = explorer.post("move", drawn="")
    assert set(first["charts"]) == set(first["tables"])
    again = explorer.post("move", settings={"value": 0.07}, drawn=first["key"])
    assert again["charts"] is None
    assert again["key"] == first["key"]
    assert again["tables"] != first["tables"]
    for drawn, tables in zip(first["charts"].values(), first["tables"].values(), strict=True):
        assert set(tables) <= {param["name"] for param in drawn["params"]}


def test_small_groups_are_flagged_before_any_rule(explorer):
    audit = explorer.post("move", drawn="", first=True)["audit"]
    assert audit.count("few rows") == 1
    assert "other" in audit[audit.index("few rows") - 60 : audit.index("few rows")]


def test_the_note_on_the_direction_is_that_of_the_move(explorer):
    for low in (True, False, True):
        notes = explorer.post("move", settings={"lower_is_better": low}, drawn="")["warnings"]
        assert ["favorable outcome" in note for note in notes] == [True] * low
        assert all("type the other value as “Value that means yes”" in note for note in notes)


def test_two_browsers_at_once_do_not_mix(explorer):
    moves = [{"value": 0.02}, {"criterion": "equal_opportunity", "value": 0.1}]
    alone = [explorer.post("move", settings=move, drawn="")["report"] for move in moves]
    found = [[], []]

    def browse(i):
        for _ in range(5):
            found[i].append(explorer.post("move", settings=moves[i], drawn="")["report"])

    threads = [threading.Thread(target=browse, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[alone[0]] * 5, [alone[1]] * 5]


# Files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("move", MOVES[1:2] + MOVES[5:6] + MOVES[-1:], ids=name)
def test_the_saved_rule_is_what_the_saved_command_writes(folder, explorer, move):
    saved = explorer.post("save", settings=move, decision="a $100 loan; `x`", owner="-o")
    rule, report, commands = (folder / path for path in saved["files"])
    assert rule.parent == report.parent == commands.parent
    lines = [line for line in commands.read_text().splitlines() if line.startswith("fairramp ")]
    assert lines == saved["commands"]
    before = rule.read_bytes()
    rule.unlink()
    fit = shlex.split(lines[0])[1:]
    subprocess.run([sys.executable, "-m", "fairramp.cli", *fit], cwd=folder, check=True, capture_output=True)
    assert rule.read_bytes() == before
    assert "a $100 loan; `x`" in report.read_text()
    found = fairramp.Rule.load(rule)
    assert found.fingerprint == saved["fingerprint"]
    page = explorer.post("move", settings=move, drawn="")["answers"]["forms"]
    assert [form["foot"] for form in page] == pytest.approx([ramp.foot for ramp in found.ramps], abs=ROUNDING)


def test_nothing_is_overwritten(own):
    folder, explorer = own
    (folder / "out").mkdir()
    (folder / "out" / "report.html").write_text("mine")
    (folder / "out" / "2").write_text("mine, too")
    assert explorer.post("save")["files"][0] == os.path.join("out", "3", "rule.json")
    assert explorer.post("save")["files"][0] == os.path.join("out", "4", "rule.json")
    assert (folder / "out" / "report.html").read_text() == "mine"
    assert (folder / "out" / "2").read_text() == "mine, too"


def test_links_lead_nowhere(own):
    folder, explorer = own
    outside = folder / "outside"
    outside.mkdir()
    (folder / "out").mkdir()
    (folder / "out" / "rule.json").symlink_to(outside / "rule.json")
    (folder / "out" / "2").symlink_to(outside)
    assert explorer.post("save")["files"][0] == os.path.join("out", "3", "rule.json")
    assert list(outside.iterdir()) == []
    for file in (folder / "out").rglob("*"):
        if file.is_file() or file.is_symlink():
            file.unlink()
    for place in sorted((folder / "out").rglob("*"), reverse=True):
        place.rmdir()
    (folder / "out").rmdir()
    (folder / "out").symlink_to(outside)
    assert "no longer the folder" in explorer.post("save")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    ("data", "sentence"),
    [("none.csv", "none.csv does not exist"), ("fewer.csv", "has changed since it was read")],
)
def test_a_failed_save_leaves_nothing(tmp_path, monkeypatch, data, sentence):
    monkeypatch.chdir(tmp_path)
    scores, groups, labels = write_rows("scores.csv")
    write_rows("fewer.csv", ROWS - 100)
    choice = Choice.of(COLUMNS)
    settings = settings_of(SETTINGS, choice)
    rule = LiveRows.of(scores, {"sex": groups}, labels, settings.meaning, "score").fit(settings)
    with pytest.raises(FairrampError, match=sentence):
        Folder("out").save(data, rule, settings, choice, None, None)
    assert not Path("out").exists()


def test_an_output_that_cannot_be_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FairrampError, match="is not a folder"):
        Folder(str(tmp_path / "file"))
    with pytest.raises(FairrampError, match="does not exist"):
        Folder(str(tmp_path / "none" / "out"))


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "settings", "sentence"),
    [
        ({"score": "note"}, {}, "'text 0' in line 2"),
        ({"score": "nothing"}, {}, "has no column 'nothing'"),
        ({"score": ""}, {}, "Choose the column with the score"),
        ({"group": "score"}, {}, "is the score column; choose a column with groups"),
        ({"label": "sex"}, {}, "neither yes nor no"),
        ({"label": "sex", "positive": "X"}, {}, "“Value that means yes” 'X' does not occur"),
        ({"scale": "centimeters"}, {}, "“Scale” must be one of"),
        ({}, {"value": 1.5}, "“Largest gap” must be between 0 and 100 points, got 150."),
        ({}, {"value": -0.03}, "“Largest gap” must be between 0 and 100 points, got -3."),
        ({}, {"limit": "min_ratio", "value": 80}, "for 80%, type 0.8"),
        (
            {},
            {"target": "number", "rate": 1.3},
            "“How many are selected” must be between 0 and 100 percent, got 130.",
        ),
        ({}, {"target": "budget", "rate": -0.01}, "must be between 0 and 100 percent, got -1."),
        ({}, {"criterion": "equalized_odds", "target": "optimal"}, "“Make equal: both error rates”"),
        ({}, {"value": None}, "Type a number for the limit"),
        ({}, {"value": "0.1"}, "value must be a number"),
        ({}, {"criterion": "fair"}, "“Make equal” must be"),
        ({}, {"cutoff": 7}, "“Cutoff” must be between 0 and 1"),
        ({}, {"target": "budget"}, "Type the share of people to select"),
        ({}, {"target": "budget", "rate": 0.2, "criterion": "equalized_odds"}, "does not support"),
        ({}, {"target": "optimal", "criterion": "equal_opportunity"}, "the scores alone cannot choose"),
        ({}, {"criterion": "equalized_odds", "limit": "min_ratio", "value": 0.8}, "does not support"),
        ({"label": ""}, {"target": "accuracy"}, "requires “Outcome”"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_what_the_library_refuses_is_a_sentence(explorer, columns, settings, sentence):
    said = explorer.post("move", columns=columns, settings=settings, drawn="")
    assert isinstance(said, str)
    assert sentence in said
    assert said.endswith((".", "?"))
    assert "--" not in said
    assert not set(said.replace(".", " ").split()) & {"pass", "equalized_odds:", "equalized_odds”"}
    assert explorer.post("move", drawn="")["headline"]  # and the explorer goes on


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"nonsense", b'{"columns": 3}', b"[" * 50_000])
def test_damaged_requests_are_refused(explorer, body):
    status, _, text = explorer.ask("POST", explorer.path + "move", body)
    assert status in (400, 422)
    assert json.loads(text)["error"].endswith(".")


def test_a_file_that_changes_or_disappears_is_a_sentence(own):
    folder, explorer = own
    assert explorer.post("move", drawn="")["rows"] == ROWS
    write_rows(folder / "scores.csv", ROWS - 100)
    assert "has changed since it was read" in explorer.post("save")
    assert explorer.post("move", drawn="")["rows"] == ROWS - 100  # the page was loaded again
    (folder / "scores.csv").unlink()
    assert "scores.csv does not exist" in explorer.post("move", drawn="")
    assert "scores.csv does not exist" in explorer.post("save")
    status, _, text = explorer.ask("GET", explorer.path)
    assert status == 422
    assert "scores.csv does not exist" in text
    assert not (folder / "out").exists()


def test_a_missing_file_and_a_used_port_end_in_a_sentence(folder, explorer):
    def run(*words):
        command = [sys.executable, "-m", "fairramp.cli", "explore", *words, "--no-browser"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)

    for words, sentence in (
        (["none.csv"], "none.csv does not exist"),
        (["-"], "pass a file instead of -"),
        (["scores.csv", "--port", str(explorer.port)], f"Cannot listen on 127.0.0.1, port {explorer.port}"),
        (["scores.csv", "--port", "99999"], "--port must be between 0 and 65535, got 99999"),
        (["scores.csv", "--out", "scores.csv"], "--out scores.csv is not a folder"),
    ):
        done = run(*words)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["uvicorn", "starlette"])
def test_a_missing_extra_is_a_sentence(folder, name):
    script = f"import sys; sys.modules['{name}'] = None; sys.argv = ['fairramp', 'explore', 'scores.csv']; "
    command = [sys.executable, "-c", script + "from fairramp.cli import main; main()"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2
    assert (
        f"{name} is not installed; install it with: {sys.executable} -m pip install 'fairramp[web]'"
        in done.stderr
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_quietly_when_it_is_stopped(folder, number):
    with exploring(folder, "scores.csv") as found:
        found.process.send_signal(number)
        out, err = found.process.communicate(timeout=30)
        assert found.process.returncode == 0
        assert out.endswith("Stopped.\n")
        assert err == ""


# Who may ask -------------------------------------------------------------------------------------


def refused(answer, status, sentence):
    found, headers, text = answer
    assert found == status
    assert sentence in text
    assert "content-security-policy" in headers


def test_only_the_address_with_the_token_works(explorer):
    assert explorer.ask("GET", explorer.path)[0] == 200
    token = explorer.path.strip("/")
    found, headers, _ = explorer.ask("GET", f"/{token}")  # without the last slash, names of files would be others
    assert (found, headers["location"]) == (307, explorer.path)
    assert len(token) >= 32
    other = "x" * len(token)
    for path in (
        "/",
        f"/{other}/",
        f"/{token[:-1]}/",
        f"/{token}x/",
        f"//{token}/",
        "/%ff/",
        f"/{token.upper()}/",
    ):
        refused(explorer.ask("GET", path), 403, "lacks the right token")
    for action in ("move", "save", "explore.js", "style.css"):
        refused(explorer.ask("GET", f"/{other}/{action}"), 403, "lacks the right token")
    assert explorer.ask("GET", f"{explorer.path}nothing")[0] == 404
    assert explorer.ask("GET", f"{explorer.path}../../scores.csv")[0] == 404


def test_tokens_differ(folder, explorer):
    with exploring(folder, "scores.csv") as other:
        assert other.path != explorer.path


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "0.0.0.0:{port}", "", None])
def test_no_other_host_can_stand_for_this_machine(explorer, host):
    found = explorer.ask("GET", explorer.path, Host=host and host.format(port=explorer.port))
    assert found[0] in (400, 403)
    assert "Look for a rule" not in found[2]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
    ids=str,
)
def test_requests_from_other_pages_are_refused(explorer, headers):
    given = {name: value.format(port=explorer.port) for name, value in headers.items()}
    body = json.dumps({"columns": COLUMNS, "settings": SETTINGS}).encode()
    refused(explorer.ask("GET", explorer.path, **given), 403, "Requests from other pages are refused")
    for action in ("move", "save"):
        answer = explorer.ask("POST", explorer.path + action, body, **given)
        refused(answer, 403, "Requests from other pages are refused")


def test_own_requests_pass(explorer):
    given = {"Origin": f"http://{explorer.host}", "Sec_Fetch_Site": "same-origin"}
    body = json.dumps({"columns": COLUMNS, "settings": SETTINGS}).encode()
    assert explorer.ask("POST", explorer.path + "move", body, **given)[0] == 200


def test_forms_and_large_requests_are_refused(explorer):
    body = json.dumps({"columns": COLUMNS, "settings": SETTINGS}).encode()
    path = explorer.path + "save"
    refused(explorer.ask("POST", path, body, Content_Type="text/plain"), 415, "must be JSON")
    refused(explorer.ask("POST", path, body, Content_Length=str(10**8)), 413, "longer than 64,000 bytes")
    refused(
        explorer.ask("POST", path, b"0\r\n\r\n", Content_Length=None, Transfer_Encoding="chunked"), 411, "length"
    )
    assert explorer.ask("GET", path)[0] == 405


def test_every_answer_has_the_headers(explorer):
    for path in (explorer.path, explorer.path + "explore.js", "/", explorer.path + "nothing"):
        headers = {name.lower(): value for name, value in explorer.ask("GET", path)[1].items()}
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "set-cookie" not in headers
        assert not [name for name in headers if name.startswith("access-control")]
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "http" not in policy


def test_it_listens_on_this_machine_only(explorer):
    listening = Path("/proc/net/tcp")
    if not listening.exists():
        pytest.skip("/proc/net/tcp is not on this system")
    ports = [
        line.split()[1].split(":")
        for line in listening.read_text(encoding="utf-8").splitlines()[1:]
        if " 0A " in line
    ]
    assert [address for address, port in ports if int(port, 16) == explorer.port] == ["0100007F"]


# Columns -----------------------------------------------------------------------------------------


def write(path, header, rows):
    path.write_text("\n".join([header, *rows]) + "\n")
    return columns_of(str(path))


def test_columns_are_guessed_from_names_and_values(tmp_path):
    columns = write(
        tmp_path / "a.csv",
        "id,income,p_default,gender,repaid",
        [f"{i},{i * 7},0.{i % 90 + 10},{'fm'[i % 2]},{'yes' if i % 3 else 'no'}" for i in range(200)],
    )
    found = suggested(columns)
    assert (found.score, found.group, found.label) == ("p_default", "gender", "repaid")
    assert found.scale == "probability"
    assert found.lower_is_better
    assert columns[3].values == ("f", "m")


def test_blanks_do_not_hide_a_column(tmp_path):
    columns = write(
        tmp_path / "a.csv",
        "id,risk_pct,region,repaid",
        [f"C{i},{'' if i == 1 else i % 90 + 0.5},{'NS'[i % 2]},{i % 3 % 2}" for i in range(200)],
    )
    found = suggested(columns)
    assert (found.score, found.group, found.label) == ("risk_pct", "region", "repaid")
    assert (found.scale, found.lower_is_better) == ("percent", True)
    assert [column.kind.endswith(", some blank") for column in columns] == [False, True, False, False]
    assert "" not in columns[1].values


def test_a_column_of_ids_is_no_group(explorer):
    said = explorer.post("move", columns={"group": "id"}, drawn="")
    assert said == (
        "“Group” 'id' has 3,000 different values in 3,000 rows, which looks like an id; choose a column in which "
        "many rows have the same value."
    )


def test_a_file_without_candidates_suggests_nothing(tmp_path):
    found = suggested(write(tmp_path / "a.csv", "a,b", ["x,y", "x,y"]))
    assert (found.score, found.group, found.label) == ("", "", "")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("a\n1\n", "has one column"), ("a,b\n", "has a header but no rows"), ("", "is empty")],
)
def test_files_without_a_choice_are_refused(tmp_path, text, sentence):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(FairrampError, match=sentence):
        columns_of(str(tmp_path / "a.csv"))


def test_names_of_columns_are_text_on_the_page(tmp_path):
    bad = "<script>alert(1)</script>"
    with open(tmp_path / "a.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["--score", bad, "y"])
        for i in range(300):
            writer.writerow([round(0.001 * i, 3), [bad, "-o"][i % 2], i % 3 % 2])
    with exploring(tmp_path, "a.csv", "--out", "out") as found:
        assert bad not in found.ask("GET", found.path)[2]
        columns = {"score": "--score", "group": bad, "label": "y"}
        settings = {"target": "accuracy"}
        moved = found.post("move", columns=columns, settings=settings, drawn="")
        assert bad not in moved["report"] + moved["audit"]
        saved = found.post("save", columns=columns, settings=settings)
        rule = fairramp.Rule.load(tmp_path / saved["files"][0])
        assert rule.columns.score == "--score"


def test_messages_name_controls():
    with pytest.raises(FairrampError) as caught:
        Settings(target_rate=0.2, overall_rate=0.1)
    assert told(caught.value) == (
        "“How many are selected: a budget” and “How many are selected” exclude each other: both say how many are "
        "selected; remove one of the two."
    )


@pytest.mark.slow
def test_a_file_of_300_mb_works(tmp_path):
    columns = "printf('%.6f', random()) AS score, CASE WHEN random() < 0.4 THEN 'Female' ELSE 'Male' END AS sex"
    label = "CAST(random() < 0.3 AS TINYINT) AS earns, 'text ' || i AS note"
    path = tmp_path / "scores.csv"
    duckdb.sql(f"COPY (SELECT i AS id, {columns}, {label} FROM range(8_300_000) AS t(i)) TO '{path}'")
    assert path.stat().st_size > 300e6
    with exploring(tmp_path, "scores.csv") as found:
        assert found.post("move", drawn="")["rows"] == 8_300_000
        moved = found.post("move", settings={"value": 0.01}, drawn="")
        saved = found.post("save", settings={"value": 0.01})
        rule = fairramp.Rule.load(tmp_path / saved["files"][0])
        feet = [form["foot"] for form in moved["answers"]["forms"]]
        assert feet == pytest.approx([ramp.foot for ramp in rule.ramps], abs=ROUNDING)
