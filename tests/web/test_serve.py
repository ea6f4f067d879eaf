"""A running service: decisions of Python, clear refusals, limits, workers, logs without ids, keys or tokens."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

import fairramp
from fairramp import Columns, Ramp, Rule
from fairramp.web.serve.page import policy
from serving import PATIENCE, served, until
from shell import KEY, Shell

RULE = Rule(("Female", "Male"), (Ramp(0.25, 0.5), Ramp(0.5, 0.25)), columns=Columns("p", ("sex",)))
PERSON = {"p": 0.41, "sex": "Female", "id": "anna"}
TOKEN = "correct-horse-battery-staple-0123456789"
JSON = {"Content_Type": "application/json"}
LATE = "The request was not complete within the time limit."


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with served(RULE, tmp_path_factory.mktemp("served"), "--max-body", 200_000, "--timeout", 1) as found:
        yield found


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    columns = (rng.random(n).tolist(), rng.choice(["Female", "Male"], n).tolist(), range(n))
    return [dict(zip(PERSON, row, strict=True)) for row in zip(*columns, strict=True)]


def decided_in_python(rule, sent):
    scores, groups, ids = ([person[name] for person in sent] for name in PERSON)
    probabilities = rule.probabilities(scores, groups).tolist()
    return list(zip(probabilities, rule.decide(scores, groups, ids=ids, key=KEY).tolist(), strict=True))


def answers(found):
    return [(answer["probability"], answer["decision"]) for answer in found]


def test_decisions_are_those_of_python(service):
    sent = people(2_000)
    expected = decided_in_python(RULE, sent)
    status, _, content = service.ask("POST", "/decide/batch", {"people": sent})
    assert (status, content["fingerprint"]) == (200, RULE.fingerprint)
    assert answers(content["answers"]) == expected
    with service.connected() as connection:
        single = [service.ask("POST", "/decide", person, to=connection)[2] for person in sent[:200]]
    assert answers(single) == expected[:200]
    assert {answer["fingerprint"] for answer in single} == {RULE.fingerprint}


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "sentence"),
    [
        ("POST", "/decide", b"", JSON, 400, "The body is not valid JSON: it is empty."),
        ("POST", "/decide", b'{"p": 0.4', JSON, 400, "The body is not valid JSON: Expecting ',' delimiter: "),
        (
            "POST",
            "/decide",
            b'{"p": 1, "p": 2}',
            JSON,
            400,
            "The field 'p' appears twice.",
        ),
        ("POST", "/decide", b'{"p": NaN}', JSON, 400, "NaN is not allowed as a number."),
        ("POST", "/decide", b"\xff", JSON, 400, "The body is not valid JSON: it is not UTF-8 text."),
        ("POST", "/decide", b"[" * 50_000, JSON, 400, "The body is not valid JSON: it is nested too deeply."),
        ("POST", "/decide", b"1" * 5_000, JSON, 400, "The body is not valid JSON: a number has too many digits."),
        ("POST", "/decide", b"3", JSON, 422, "A person must be an object, got an integer."),
        ("POST", "/decide", PERSON | {"sex": "X"}, {}, 422, '"sex" must be one of the rule\'s values "Female"'),
        ("POST", "/decide/batch", [PERSON], {}, 422, 'The body must be an object with the field "people" '),
        (
            "POST",
            "/decide/batch",
            {"people": []},
            {},
            422,
            '"people" must be a list of 1 to 10,000 people, got 0',
        ),
        ("POST", "/decide/batch", {"people": [PERSON, {}]}, {}, 422, "1 of 2 people cannot be decided, so "),
        ("POST", "/decide", b"{}", {"Content_Type": "text/plain"}, 415, "The body must be JSON, with "),
        ("GET", "/decide", None, {}, 405, "/decide takes POST only."),
        ("POST", "/health", PERSON, {}, 405, "/health takes GET only."),
        ("GET", "/", None, {}, 404, "There is nothing at this path; the paths are /decide, /decide/batch"),
        ("GET", "/health", None, {"Host": "example.org"}, 403, "The host of the request must be 127.0.0.1 or "),
        ("GET", "/health", None, {"Host": "127.0.0.1.example.org:80"}, 403, "The host of the request must be "),
        (
            "POST",
            "/decide",
            b" " * 10_000_000,
            JSON,
            413,
            "The body must have at most 200,000 bytes; send fewer people at once.",
        ),
    ],
)
def test_a_refusal_is_one_sentence(service, method, path, body, headers, status, sentence):
    found, said = service.refusal(method, path, body, **headers)
    assert (found, said[: len(sentence)]) == (status, sentence)
    assert said.count("\n") == 0
    assert service.ask("POST", "/decide", PERSON)[0] == 200


def chunked(service, pieces):
    """Send a body in chunks, without stating its length."""
    with service.connected() as connection:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/decide", iter(pieces), headers, encode_chunked=True)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_chunked_bodies_are_read_and_limited(service):
    assert chunked(service, [b'{"p": 0.41, "sex": ', b'"Female", "id": 3}'])[0] == 200
    assert chunked(service, [b" " * 10_000] * 1_000)[0] == 413


def exchange(service, data):
    """Send bytes and read until the service closes the connection."""
    with socket.create_connection((service.host, service.port), PATIENCE) as connection:
        connection.sendall(data)
        found = b""
        while more := connection.recv(65_536):
            found += more
    return found.decode()


HEAD = b"POST /decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("data", "status", "sentence"),
    [
        (b"POST /deci", 408, LATE),
        (HEAD, 408, LATE),
        (HEAD + b"Content-Length: 50\r\n\r\n{", 408, LATE),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", 408, LATE),
        (HEAD + b"Content-Length: 999999\r\nExpect: 100-continue\r\n\r\n", 413, "The body must have at most"),
        (b"This is not HTTP\r\n\r\n", 400, "The request is not valid HTTP."),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400, "The request is not valid HTTP."),
        (
            HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            400,
            "The request has two lengths",
        ),
    ],
)
def test_slow_and_strange_clients_get_an_answer(service, data, status, sentence):
    found = exchange(service, data)
    assert found.startswith(f"HTTP/1.1 {status} ")
    content = json.loads(found.partition("\r\n\r\n")[2])
    assert content["error"].startswith(sentence)
    assert content["fingerprint"] == RULE.fingerprint


def test_a_silent_connection_is_closed(service):
    assert exchange(service, b"") == ""


def test_a_slow_client_does_not_keep_others_waiting(service):
    slow = [socket.create_connection((service.host, service.port)) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(HEAD + b"Content-Length: 50\r\n\r\n{")
        assert service.ask("POST", "/decide", PERSON)[0] == 200
    finally:
        for connection in slow:
            connection.close()


def test_more_requests_at_once_than_allowed_are_refused(tmp_path):
    with served(RULE, tmp_path, "--concurrency", 1) as service:
        with socket.create_connection((service.host, service.port)) as slow:
            slow.sendall(HEAD + b"Content-Length: 50\r\n\r\n{")
            until(lambda: service.ask("POST", "/decide", PERSON)[0] == 503)
            status, headers, content = service.ask("POST", "/decide", PERSON)
            assert (status, headers["retry-after"]) == (503, "1")
            assert content["error"] == "The service is busy; try again in a second."
            assert service.ask("GET", "/health")[0] == 200
        until(lambda: service.ask("POST", "/decide", PERSON)[0] == 200)


def test_idle_connections_stay_usable(service):
    with service.connected() as connection:
        for _ in range(3):
            assert service.ask("POST", "/decide", PERSON, to=connection)[0] == 200
            assert service.refusal("POST", "/decide", b"{", to=connection)[0] == 400
            time.sleep(0.5)  # longer, in total, than the time limit of a request


def test_health_metrics_and_description(service):
    status, _, health = service.ask("GET", "/health")
    assert (status, health["status"], health["decides"]) == (200, "ok", True)
    assert health["fingerprint"] == RULE.fingerprint
    before = {
        name: service.metric(f"fairramp_people{name}_total") for name in ("", "_at_random", "_unseen_group")
    }
    sent = people(500)
    service.ask("POST", "/decide/batch", {"people": sent})
    service.ask("POST", "/decide", PERSON | {"sex": "new"})
    random = sum(0 < probability < 1 for probability, _ in decided_in_python(RULE, sent))
    for name, more in {"": 500, "_at_random": random, "_unseen_group": 1}.items():
        assert service.metric(f"fairramp_people{name}_total") == before[name] + more
    description = service.ask("GET", "/openapi.json")[2]
    assert set(description["paths"]) == {
        *("/decide", "/decide/batch", "/health", "/metrics", "/openapi.json", "/docs"),
    }


def test_the_page_loads_nothing_from_elsewhere(service):
    _, headers, text = service.ask("GET", "/docs")
    assert headers["content-security-policy"] == policy(text)
    assert "unsafe" not in headers["content-security-policy"]
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", text)
    assert RULE.fingerprint in text


def test_names_in_the_rule_are_text_on_the_page(tmp_path):
    label = "<script>alert(1)</script>"
    rule = Rule((label, "$b'\""), (Ramp(0.25, 0.5), Ramp(0.5, 0.25)), columns=Columns("<i>", ("</script>",)))
    with served(rule, tmp_path) as service:
        text = service.ask("GET", "/docs")[2]
    assert label not in text
    assert text.count("</script>") == 1
    assert "<i>" not in text


def test_without_a_key_there_are_probabilities_only(tmp_path):
    with served(RULE, tmp_path, key=None) as service:
        answer = service.ask("POST", "/decide", {"p": 0.41, "sex": "Female"})[2]
        assert set(answer) == {"probability", "fingerprint"}
        assert answer["probability"] == RULE.probabilities([0.41], ["Female"])[0]
        assert service.refusal("POST", "/decide", PERSON)[0] == 422
        assert service.ask("GET", "/health")[2]["decides"] is False


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with served(RULE, tmp_path_factory.mktemp("guarded"), token=TOKEN) as found:
        yield found


@pytest.mark.parametrize("given", ["", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer", "Bearer ä"])
@pytest.mark.parametrize("path", ["/decide", "/metrics", "/docs", "/openapi.json", "/nothing"])
def test_a_wrong_token_opens_nothing(guarded, path, given):
    status, sentence = guarded.refusal("GET", path, Authorization=given.encode("latin-1"))
    assert status == 401
    assert sentence == "The request needs the header Authorization: Bearer TOKEN, with the token of the service."


def test_the_right_token_opens_everything_under_any_name(guarded):
    assert guarded.ask("POST", "/decide", PERSON, Host="rules.example.org")[0] == 200
    assert guarded.ask("GET", "/docs")[0] == 200
    assert guarded.ask("GET", "/health", Authorization="")[0] == 200


def test_nothing_about_a_request_is_logged_but_what_is_ours(tmp_path):
    secret = "very-secret-name"
    with served(RULE, tmp_path, token=TOKEN) as service:
        service.ask("POST", "/decide", PERSON | {"id": secret})
        service.ask("POST", f"/decide?id={secret}", PERSON)
        service.ask("POST", "/decide", PERSON | {"sex": secret})
        service.ask("POST", "/decide", {"p": secret, "sex": secret, "id": [secret], secret: secret})
        service.ask("POST", "/decide/batch", {"people": [PERSON | {"id": secret}, PERSON | {"id": {secret: 1}}]})
        service.ask("POST", "/decide", b'{"' + secret.encode())
        service.ask("GET", f"/{secret}")
        service.ask("GET", "/health", Authorization=f"Bearer {secret}")
        exchange(service, f"{secret}\r\n\r\n".encode())
        service.ask(secret.upper().replace("-", ""), "/health")
    log = service.log()
    assert len(log.splitlines()) == 10
    for line in log.splitlines():
        assert re.fullmatch(
            r"\S+Z (GET|POST|\(other\)) (/decide(/batch)?|/health|\(other\)) \d{3} \d+\.\d ms", line
        )
    for word in (secret, secret.upper().replace("-", ""), KEY, TOKEN, "anna", "Female", "0.41"):
        assert word not in log


def test_quiet_logs_no_requests(tmp_path):
    RULE.save(tmp_path / "rule.json")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "fairramp.cli", "serve", "rule.json", "--port", str(port), "-q"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:

        def answers():
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request("GET", "/health")
                return connection.getresponse().status == 200
            except ConnectionError:
                return False
            finally:
                connection.close()

        until(answers)
        process.terminate()
        assert process.communicate(timeout=PATIENCE)[0] == b""
        assert process.returncode == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_requests_in_flight_finish_before_the_service_stops(tmp_path, workers):
    with served(RULE, tmp_path, "--workers", workers) as service:
        body = json.dumps(PERSON).encode()
        with socket.create_connection((service.host, service.port), PATIENCE) as connection:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
            service.ask("GET", "/health")
            time.sleep(0.5)  # the head has been read
            service.process.send_signal(signal.SIGTERM)
            time.sleep(1)
            connection.sendall(body[5:])
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        assert service.stop() == 0


def test_a_killed_worker_is_replaced_and_counts_do_not_fall(tmp_path):
    with served(RULE, tmp_path, "--workers", 2) as service:
        until(lambda: service.metric("fairramp_workers_started_total") == 2)
        for _ in range(20):
            assert service.ask("POST", "/decide", PERSON)[0] == 200
        first = service.workers()
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        until(lambda: len(set(service.workers()) - set(first)) == 1)
        until(lambda: service.metric("fairramp_workers_started_total") == 3)
        for person in people(20):
            assert answers([service.ask("POST", "/decide", person)[2]]) == decided_in_python(RULE, [person])
        assert service.metric("fairramp_people_total") == 40
        assert "ended with exit code -9 and is replaced" in service.log()


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    with served(RULE, tmp_path, "--workers", 2, code=-signal.SIGKILL) as service:
        until(lambda: service.metric("fairramp_workers_started_total") == 2)
        workers = service.workers()
        service.process.kill()
        service.process.wait()
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))


def test_a_rule_for_several_classes(tmp_path):
    classes, offsets = ("low", "mid", "high"), ((0.0, 0.0, 0.0), (0.05, 0.05, -0.1))
    rule = fairramp.ClassRule(("A", "B"), classes, offsets, 0.1)
    person = {"score_low": 0.2, "score_mid": 0.45, "score_high": 0.35, "group": "B", "id": "anna"}
    with served(rule, tmp_path) as service:
        answer = service.ask("POST", "/decide", person)[2]
    scores = [[person["score_low"], person["score_mid"], person["score_high"]]]
    assert answer["decision"] == rule.decide(scores, ["B"], ids=["anna"], key=KEY)[0]
    assert list(answer.values())[:3] == rule.probabilities(scores, ["B"])[0].tolist()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0 is not this machine's own address: pass --token-file FILE"),
        (["--token-file", "short"], "The token file short must hold 32 to 4,000 printable"),
        (["--token-file", "long"], "The token file long must hold 32 to 4,000 printable"),
        (["--token-file", "none"], "Cannot read the token file none: No such file"),
        (["--key-file", "key", "--token-file", "key"], "The token file key holds the key"),
        (["--workers", "0"], "--workers must be a positive integer, got 0."),
        (["--port", "70000"], "--port must be between 0 and 65535, got 70000."),
        (["--timeout", "0"], "--timeout must be between 0.1 and 3600, got 0.0."),
    ],
)
def test_options_are_checked_before_anything_starts(tmp_path, options, sentence):
    shell = Shell(tmp_path)
    RULE.save(tmp_path / "rule.json")
    shell.write("short", "a" * 31)
    shell.write("long", "a" * 5000)
    shell.write("key", KEY)
    for name in ("short", "long", "key"):
        os.chmod(tmp_path / name, 0o600)
    assert shell.error("serve", "rule.json", *options).startswith(sentence)


def test_a_port_in_use_is_named(tmp_path):
    shell = Shell(tmp_path)
    RULE.save(tmp_path / "rule.json")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = shell.error("serve", "rule.json", "--port", port)
    assert said == f"Cannot listen on 127.0.0.1, port {port}: Address already in use; pass another --port."


@pytest.mark.parametrize("name", ["uvicorn", "starlette"])
def test_a_missing_extra_is_named(tmp_path, name):
    RULE.save(tmp_path / "rule.json")
    code = f"import sys; sys.modules['{name}'] = None; sys.argv = ['fairramp', 'serve', 'rule.json']; "
    command = [sys.executable, "-c", code + "from fairramp.cli import main; main()"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert (
        f"{name} is not installed; install it with: {sys.executable} -m pip install 'fairramp[web]'"
        in done.stderr
    )
