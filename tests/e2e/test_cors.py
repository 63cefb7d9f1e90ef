# SPDX-License-Identifier: Apache-2.0
"""Cross-origin requests: the preflight, the fields on every answer, and what browsers would refuse."""

import pytest

from harness.backend import Backend, answer
from harness.proxies import TEXT, proxy_section
from harness.server import Server, run

FILES = {"api/a.json": b"{}\n", "open/b.json": b"{}\n", "other.txt": b"o\n"}
RULES = """
[CORS]
    Match       /api
    Origins     https://app.example.org https://admin.example.org
    Methods     GET POST DELETE
    Headers     Content-Type X-Token
    Expose      X-Total
    MaxAge      1h
    Credentials On

[CORS]
    Match       /open
    Origins     *
    Expose      X-All
"""
APP = "Origin: https://app.example.org"
PREFLIGHT = "Access-Control-Request-Method: DELETE"


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


def allowed(answer):
    return {k[21:].lower(): v for k, v in answer.fields if k.lower().startswith("access-control-allow-")}


def vary(answer):
    return {word.strip().lower() for k, v in answer.fields if k.lower() == "vary" for word in v.split(",")}


def test_preflight(client):
    answer = client.ask("/api/a.json", APP, PREFLIGHT, "Access-Control-Request-Headers: x-token", method="OPTIONS")
    assert answer.status == 204 and answer["Access-Control-Max-Age"] == "3600"
    assert allowed(answer) == {
        "origin": "https://app.example.org",
        "methods": "GET, POST, DELETE",
        "headers": "Content-Type, X-Token",
        "credentials": "true",
    }
    assert vary(answer) == {"origin", "access-control-request-method", "access-control-request-headers"}


def test_preflight_of_a_stranger(client):
    answer = client.ask("/api/a.json", "Origin: https://evil.example", PREFLIGHT, method="OPTIONS")
    assert answer.status == 403 and not allowed(answer)


def test_plain_options_is_no_preflight(client):
    assert client.ask("/api/a.json", method="OPTIONS")["Allow"]
    assert client.ask("/api/a.json", APP, method="OPTIONS")["Allow"]


@pytest.mark.parametrize("path, status", [("/api/a.json", 200), ("/api/missing", 404)])
def test_answers(client, path, status):
    answer = client.ask(path, APP)
    assert answer.status == status
    assert allowed(answer) == {"origin": "https://app.example.org", "credentials": "true"}
    assert answer["Access-Control-Expose-Headers"] == "X-Total" and vary(answer) == {"origin"}


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "https://app.example.org.evil.example",
        "https://APP.example.org",
        "https://app.example.org/",
        "http://app.example.org",
        "null",
        "",
    ],
)
def test_strangers(client, origin):
    answer = client.ask("/api/a.json", f"Origin: {origin}")
    assert answer.status == 200 and not allowed(answer) and vary(answer) == {"origin"}


def test_without_an_origin(client):
    """A cache must not give this answer to the pages of an origin."""
    answer = client.ask("/api/a.json")
    assert not allowed(answer) and vary(answer) == {"origin"}


@pytest.mark.parametrize("origin", [(), ("Origin: https://any.example",), ("Origin: null",)], ids=len)
@pytest.mark.parametrize(
    "method, path, fields, status",
    [
        ("GET", "/open/b.json", (), 200),
        ("HEAD", "/open/b.json", (), 200),
        ("GET", "/open/b.json", ("If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT",), 304),
        ("GET", "/open/b.json", ("Range: bytes=0-0",), 206),
        ("GET", "/open/missing", (), 404),
        ("OPTIONS", "/open/b.json", (), 204),
    ],
)
def test_all_origins(client, method, path, fields, status, origin):
    """A browser may keep the response to <img>, which sends no Origin, and use it for fetch()."""
    answer = client.ask(path, *fields, *origin, method=method)
    assert answer.status == status and allowed(answer) == {"origin": "*"} and not vary(answer)
    assert answer["Access-Control-Expose-Headers"] == (None if method == "OPTIONS" else "X-All")


def test_elsewhere(client):
    assert not allowed(client.ask("/other.txt", APP))


@pytest.mark.parametrize("origin", ["https://app.example.org", "https://other.example.org", None])
def test_fields_of_a_backend(serve, origin):
    """The rule decides in its place, and each field has one value."""
    own = [f"Access-Control-{name}" for name in ("Allow-Origin: *", "Allow-Credentials: true", "Expose-Headers: X")]
    with Backend(answer(b"{}", TEXT, *own)) as backend:
        with serve(text=proxy_section(backend) + RULES).connect() as client:
            got = client.ask("/api/a.json", *([f"Origin: {origin}"] if origin else []))
            given = [(name.lower(), value) for name, value in got.fields if name.lower().startswith("access-control-")]
            assert given == ([] if not origin or "other" in origin else [
                ("access-control-allow-origin", origin),
                ("access-control-allow-credentials", "true"),
                ("access-control-expose-headers", "X-Total"),
            ])  # fmt: skip


@pytest.mark.parametrize(
    "text, message",
    [
        ("[CORS]\n    Origins *\n    Credentials On\n", "name the origins"),
        ("[CORS]\n    Origins example.org\n", 'the origin "example.org": it has no scheme'),
        ("[CORS]\n    Origins https://example.org/\n", 'browsers send "https://example.org", so write that'),
        ("[CORS]\n    Match /a\n", "Origins"),
        ("[CORS]\n    Origins *\n    Headers " + "X-Long-Name " * 100 + "\n", "1,000 bytes"),
    ],
)
def test_mistakes(conf, text, message):
    result = run("-c", conf(text), "-t")
    assert result.returncode == 1 and message in result.stderr and "sites/default:" in result.stderr


def test_place_of_a_mistake(conf):
    """At the word itself, also in a second line."""
    text = "[CORS]\n    Origins https://a.example b.example\n    Origins https://c.example https://d.example/\n"
    result = run("-c", conf(text), "-t")
    for line in 5, 6:
        assert f"default:{line}:31: error: no page has the origin" in result.stderr


def test_others_beside_all(conf):
    result = run("-c", conf("[CORS]\n    Origins * https://a.example\n"), "-t")
    assert result.returncode == 0 and "warning: * allows all origins: the others have no effect" in result.stderr


def test_section_that_never_has_its_turn(conf):
    text = "[CORS]\n    Origins *\n[CORS]\n    Match /api\n    Origins *\n"
    result = run("-c", conf(text), "-t")
    assert result.returncode == 1 and "can never match: the one of" in result.stderr
