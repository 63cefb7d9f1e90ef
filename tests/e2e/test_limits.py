# SPDX-License-Identifier: Apache-2.0
"""Limits of requests by path ([LIMITS]): in each protocol, behind a host's own limits, and across a reload."""

import pytest

from harness import build
from harness.messages import lines
from harness.server import run, section, write_config
from harness.services import reload
from harness.ways import WAYS
from test_config import problems

pytestmark = build.needs_probe
NEVER = "60s"
SETTINGS = {"Workers": 1, "MaxBodySize": "1000B", "BodyTimeout": NEVER, "HandlerTimeout": NEVER, "MinBodyRate": 0,
            "LingerTimeout": "60s"}

LIMITS = """
[LIMITS]
    Match           /probe/echo
    MaxBodySize     2K

[LIMITS]
    Match           /probe/all
    MaxBodySize     100B

[LIMITS]
    Match           /probe/never
    HandlerTimeout  200ms

[LIMITS]
    Match           ~^/probe/(slow|late)$
    BodyTimeout     200ms

[LIMITS]
    Match           /probe/collect
    MaxRequestSize  2
    MaxBodySize     10K
"""

FOR_ALL = """
[LIMITS]
    Match           /probe/echo
    MaxBodySize     9K

[LIMITS]
    Match           /probe/now
    MaxBodySize     3K
"""


@pytest.fixture(params=WAYS)
def connect(request, probe, tmp_path):
    """Starts a server with these limits; returns a function that connects to it in one of the ways."""
    way = WAYS[request.param]

    def begin(_sources, settings, text=""):
        folder = write_config(tmp_path / "made", tmp_path, {**SETTINGS, **settings})
        monkey, site = (folder / name for name in ("monkey.conf", "sites/default"))
        config = {"monkey.conf": monkey.read_text() + FOR_ALL, "sites/default": site.read_text() + LIMITS + text}
        return probe(config=config)

    server = way.start(begin, tmp_path, None, {})
    return server.open


# the first section that matches, else the server's limit; those of the host before those of monkey.conf
SIZES = [("/probe/echo", 2048), ("/probe/all", 100), ("/probe/now", 3072), ("/probe/claim", 1000)]


@pytest.mark.parametrize("path, most", SIZES)
def test_size_of_a_body(connect, path, most):
    client = connect()
    assert client.ask(path, body=b"x" * most, method="POST").status != 413
    assert client.ask(path, body=b"x" * (most + 1), method="POST").status == 413


def test_collected_bodies(connect):
    client = connect()
    assert client.ask("/probe/collect", body=b"x" * 2048, method="POST").status == 200
    assert client.ask("/probe/collect", body=b"x" * 2049, method="POST").status == 413


def test_other_spellings_of_a_path(connect):
    client = connect()
    for path in ("/probe/../probe/%61ll", "//probe/./all", "/probe/all?x"):
        assert client.ask(path, body=b"x" * 101, method="POST").status == 413


def test_handler_timeout(connect):
    assert connect().ask("/probe/never").status == 503


def begin_body(client, path, length, body):
    """Sends the head and, once the server has read it, a part of the body. Returns the stream's number, or None."""
    if hasattr(client, "begin"):
        number = client.begin(path, f"Content-Length: {length}", method="POST", body=body, end=False)
        assert client.ask("/probe/now").status == 200
        return number
    client.send(lines(f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}", "Expect: 100-continue"))
    assert client.interim().status == 100
    client.send(body)
    return None


def end_body(client, number, body):
    if number is None:
        client.send(body)
        return client.response("POST")
    client.more(number, body, end=True)
    return client.response(number)


def test_body_timeout(connect):
    client = connect()
    number = begin_body(client, "/probe/slow", 500, b"x" * 10)
    assert (client.response() if number is None else client.response(number)).status == 408


# ── mistakes ──


def check(folder, text, server=""):
    conf = write_config(folder / "conf", folder)
    with open(conf / "sites" / "default", "a") as file:
        file.write(text)
    with open(conf / "monkey.conf", "a") as file:
        file.write(server)
    return run("-c", conf, "-t")


@pytest.mark.parametrize(
    "line, message",
    [
        ("MaxBodySize 0", "MaxBodySize"),
        ("BodyTimeout 5ms", "from 100ms to 1h"),
        ("MaxDrainSize 5", "unknown key"),
        ("KeepAliveTimeout 5", "it belongs in [SERVER]"),
        ("Match x/y", "Match"),
    ],
)
def test_mistakes(tmp_path, line, message):
    for where in ("text", "server"):
        result = check(tmp_path, **{"text": "", where: f"[LIMITS]\n    {line}\n"})
        (problem,) = problems(result)
        assert result.returncode == 1 and message in problem[3]


def test_sections_that_never_match(tmp_path):
    rule = section("LIMITS", {"Match": "/a", "MaxBodySize": 1})
    assert check(tmp_path, rule, server=rule).returncode == 0
    result = check(tmp_path, rule + rule, server=rule + rule)
    names = [(name, "can never match" in text) for name, _, _, text in problems(result)]
    assert names == [("default", True), ("monkey.conf", True)]


def test_a_pattern_that_fails_on_a_path(probe, tmp_path):
    site = section("HOST", {"DocumentRoot": tmp_path}) + "[LIMITS]\n    Match ~^/(a+)+$\n    MaxBodySize 10\n"
    client = probe(config={"sites/default": site}).connect()
    assert client.ask("/" + 3000 * "a" + "!").status == 500
    assert client.ask("/probe/now").status == 200


# ── reload ──


@pytest.mark.parametrize("h2", [False, True], ids=["h1", "h2"])
@pytest.mark.single_protocol  # has a row for each
def test_a_reload_amid_a_body(probe, tmp_path, h2):
    """An exchange keeps the limits with which it began; the next one has the new ones."""
    host = section("HOST", {"DocumentRoot": tmp_path})
    limits = "[LIMITS]\n    Match /probe/echo\n    MaxBodySize {}\n    HandlerTimeout 60s\n"
    server = probe({"Workers": 1}, config={"sites/default": host + limits.format(4000)})
    client = server.connect_h2() if h2 else server.connect()
    number = begin_body(client, "/probe/echo", 3000, b"x" * 1000)
    for most in (100, 200):
        (server.conf / "sites" / "default").write_text(host + limits.format(most))
        reload(server)
    answer = end_body(client, number, b"x" * 2000)
    assert answer.status == 200 and len(answer.body) == 3000
    client = server.connect_h2() if h2 else client  # a reload retires connections of HTTP/2
    assert client.ask("/probe/echo", body=b"x" * 200, method="POST").status == 200
    assert client.ask("/probe/echo", body=b"x" * 201, method="POST").status == 413
