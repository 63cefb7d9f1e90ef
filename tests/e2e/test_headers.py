# SPDX-License-Identifier: Apache-2.0
"""Fields of responses, changed by rules of a host."""

import re
from email.utils import parsedate_to_datetime

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


# ── Expires ──

CACHING = """
[HEADERS]
    Match       *.css
    Remove      Expires
    Set         Cache-Control no-cache
    Expires     90

[HEADERS]
    Match       =/missing
    Expires     10s
    OnErrors    On

[HEADERS]
    Match       *.html
    Set         Cache-Control no-store

[HEADERS]
    Match       /assets
    Expires     1h

[HEADERS]
    Expires     365d
"""


@pytest.mark.parametrize(
    "path, seconds, control",
    [
        ("/a.txt", 365 * 86400, "max-age=31536000"),
        ("/assets/deep/u.js", 3600, "max-age=3600"),  # of the first rule that matches
        ("/assets/s.css", 90, "no-cache"),  # Set comes after Expires
        ("/a.html", 365 * 86400, "no-store"),  # only Expires is left to later rules
        ("/missing", 10, "max-age=10"),
        ("/else", None, None),
    ],
)
def test_expires(host_conf, path, seconds, control):
    server = Server("-c", host_conf(CACHING, {**FILES, "assets/deep/u.js": b"u\n", "a.html": b"h\n"}))
    with server.connect() as client:
        answer = client.ask(path)
    names = [name.lower() for name, _ in answer.fields]
    assert answer["Cache-Control"] == control and names.count("cache-control") == (1 if control else 0)
    assert names.count("expires") == (1 if seconds else 0)
    if seconds:
        date, expires = (parsedate_to_datetime(answer[name]) for name in ("Date", "Expires"))
        assert abs((expires - date).total_seconds() - seconds) <= 1
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", answer["Expires"])
    server.stop()


# ── several rules, and those for all hosts ──

ORDER = """
[HEADERS]
    Match       /assets
    Set         X-Set 1
    Remove      Vary
    Remove      ETag
    Add         Link  1
    Set         X-Then-Add 1

[HEADERS]
    Set         x-set 2
    Set         Vary 2
    Add         Link  2
    Add         X-Then-Add 2
    Set         X-New 2
    Remove      Last-Modified
    OnErrors    On
"""

SHARED = """
[HEADERS]
    Set         X-Set 3
    Set         Link  3
    Set         X-New 3
    Set         Vary 3
    Set         X-Shared 3
"""

SECOND = {"x-set": ["2"], "link": ["2"], "x-then-add": ["2"], "x-new": ["2"], "vary": ["2"]}

# the headers of a path, without those that are the same everywhere
DECIDED = {
    ("localhost", "/assets/s.css"): {"x-set": ["1"], "link": ["1", "2"], "x-then-add": ["1"], "x-new": ["2"]},
    ("localhost", "/a.txt"): SECOND,
    ("localhost", "/assets/missing"): SECOND,
    ("other", "/a.txt"): {"x-set": ["3"], "link": ["3"], "x-new": ["3"], "vary": ["3"]},
    ("other", "/missing"): {},
}


@pytest.fixture
def order(conf):
    folder = conf(ORDER)
    with open(folder / "monkey.conf", "a") as file:
        file.write(SHARED)
    root = folder.parent / "root"
    (folder / "sites" / "other").write_text(f"[HOST]\n    ServerName other\n    DocumentRoot {root}\n")
    return folder


def test_earlier_rules_decide(order):
    result = run("-c", order, "-t")
    assert result.returncode == 0 and "warning" not in result.stderr
    server = Server("-c", order)
    names = {"x-set", "link", "x-then-add", "x-new", "vary"}
    for (host, path), expected in DECIDED.items():
        with server.connect() as client:
            answer = client.ask(path, host=host)
        found = {}
        for name, value in answer.fields:
            if name.lower() in names:
                found.setdefault(name.lower(), []).append(value)
        assert found == expected, (host, path)
        assert answer["X-Shared"] == (None if answer.status == 404 else "3")
        if (host, path) == ("localhost", "/assets/s.css"):
            assert answer["ETag"] is None and answer["Last-Modified"] is None
    server.stop()


def test_lines_without_effect(conf):
    """The order of former versions, where the last rule won."""
    rule = "[HEADERS]\n    Match {}\n    Set X-A 1\n    Add X-A 2\n    Set X-B 3\n"
    folder = conf(rule.format("/") + rule.format("/b"))
    with open(folder / "monkey.conf", "a") as file:
        file.write(rule.format("/") + rule.format("*.txt").replace("X-B", "X-C"))
    (folder / "sites" / "other").write_text("[HOST]\n    ServerName other\n    DocumentRoot /\n")
    result = run("-c", folder, "-t")
    found = re.findall(r"(\w+(?:\.conf)?):(\d+):\d+: warning: this line has no effect: .* about (\S+)", result.stderr)
    assert result.returncode == 0
    assert sorted(found) == [
        ("default", "11", "X-A"),
        ("default", "12", "X-A"),
        ("default", "13", "X-B"),
        ("monkey.conf", "11", "X-A"),
        ("monkey.conf", "12", "X-A"),
    ]


def test_long_durations_are_shown(conf):
    result = run("-c", conf("[HEADERS]\n    Expires 365d\n"), "--show-config")
    assert re.search(r"Expires\s+365d", result.stdout), result.stdout


def test_errors(client):
    answer = client.ask("/assets/missing.css")
    assert answer.status == 404 and answer["X-Frame-Options"] == "DENY" and answer["Cache-Control"] is None


def test_malformed_request(client):
    client.send(b"nonsense\r\n\r\n")
    assert client.response().status == 400


@pytest.mark.parametrize(
    "line, message",
    [
        ("Set Content-Length 3", "only the server sets"),
        ("Add connection close", "only the server sets"),
        ("Add Upgrade h2c", "only the server sets"),
        ("Set te trailers", "only the server sets"),
        ("Set X-Only-A-Name", "a name and a value"),
        ("Remove X-A value", "takes a name only"),
        ('Set "X A" b', "letters, digits and dashes"),
        ("Match a/b", "starts with one"),
        ("Expires 0", "from 1s to 3650d"),
        ("Expires 3651d", "from 1s to 3650d"),
        ("Expires never", "a duration"),
    ],
)
def test_mistakes(conf, line, message):
    result = run("-c", conf(f"[HEADERS]\n    {line}\n"), "-t")
    assert result.returncode == 1 and message in result.stderr and "sites/default:" in result.stderr
