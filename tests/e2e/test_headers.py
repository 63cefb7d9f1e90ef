# SPDX-License-Identifier: Apache-2.0
"""Fields of responses, changed by rules of a host."""

import pytest

from harness.server import Server, run

FILES = {"a.txt": b"a\n", "assets/s.css": b"s{}\n", "assets/deep/t.css": b"t{}\n"}

RULES = r"""
[HEADERS]
    Set         X-Frame-Options DENY
    OnErrors    On

[HEADERS]
    Match       /assets/**.css
    Set         Cache-Control "public, max-age=31536000, immutable"
    Remove      Last-Modified
    Add         Link "</a>; rel=preload"
    Add         Link "</b>; rel=preload"

[HEADERS]
    Match       =/a.txt
    Set         content-type text/x-a
    Set         X-Empty ""

[HEADERS]
    Match       ~/[a-z]\.(css|js)$
    Set         X-Short yes
"""


@pytest.fixture
def conf(host_conf):
    return lambda text: host_conf(text, FILES)


@pytest.fixture
def client(conf):
    server = Server("-c", conf(RULES))
    client = server.connect()
    yield client
    client.close()
    server.stop()


def test_all_rules_that_match_apply(client):
    answer = client.ask("/assets/deep/t.css")
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer["Last-Modified"] is None and answer["ETag"]
    assert [v for k, v in answer.fields if k == "Link"] == ["</a>; rel=preload", "</b>; rel=preload"]


def test_only_where_they_match(client):
    answer = client.ask("/a.txt")
    assert answer["Cache-Control"] is None and answer["Link"] is None
    assert answer["Content-Type"] == "text/x-a" and answer["X-Empty"] == ""
    assert answer["X-Short"] is None and client.ask("/assets/s.css")["X-Short"] == "yes"


def test_not_modified_and_head(client):
    etag = client.ask("/assets/s.css")["ETag"]
    answer = client.ask("/assets/s.css", f"If-None-Match: {etag}")
    assert answer.status == 304 and "immutable" in answer["Cache-Control"]
    assert "immutable" in client.ask("/assets/s.css", method="HEAD")["Cache-Control"]


def test_errors(client):
    answer = client.ask("/assets/missing.css")
    assert answer.status == 404 and answer["X-Frame-Options"] == "DENY" and answer["Cache-Control"] is None


def test_malformed_request(client):
    client.send(b"nonsense\r\n\r\n")
    assert client.response().status == 400


@pytest.mark.parametrize(
    "line, message",
    [
        ("Set Content-Length 3", "own business"),
        ("Add connection close", "own business"),
        ("Set X-Only-A-Name", "a name and a value"),
        ("Remove X-A value", "only a name"),
        ('Set "X A" b', "letters, digits and dashes"),
        ("Match a/b", "starts with one"),
    ],
)
def test_mistakes(conf, line, message):
    result = run("-c", conf(f"[HEADERS]\n    {line}\n"), "-t")
    assert result.returncode == 1 and message in result.stderr and "sites/default:" in result.stderr
