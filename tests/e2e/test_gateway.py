# SPDX-License-Identifier: Apache-2.0
"""What a plugin that forwards requests needs of an exchange, over HTTP/1.1 and HTTP/2: interim responses, the date of
an origin, a separate timeout, trailers, notes for the log, paths with an encoded slash. The plugin is `gateway`."""

import json
import time

import pytest

from harness import build
from harness.client import parse_date
from harness.content import HELLO
from harness.messages import lines, request
from harness.server import section

pytestmark = [
    pytest.mark.single_protocol,
    build.needs_modules,
    pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2"),
]

HINT = ("Link", "</style.css>; rel=preload")


@pytest.fixture
def gateway(serve):
    def start(settings=None, *, plugins=("liana", "{}", "static"), **rest):
        names = [name.format(build.MODULES / "gateway.so") for name in plugins]
        config = {"plugins.load": section("PLUGINS", {"Load": names})}
        return serve(settings, config=config, **rest)

    return start


def post(target, *fields, trailers=(), body=b"body"):
    """An HTTP/1.1 request in chunks."""
    chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
    head = lines(f"POST {target} HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked", *fields)
    return head + chunk + b"0\r\n" + lines(*trailers)


# ── interim responses ──


@pytest.mark.parametrize("count", [1, 3, 100])
def test_early_hints(gateway, count):
    server = gateway()
    with server.connect() as client:
        for _ in range(2):
            client.send(request(f"/gateway/hints?{count}"))
            for _ in range(count):
                hint = client.interim()
                assert (hint.status, hint.reason, hint.fields) == (103, "Early Hints", [HINT])
            assert client.response().body == b"later\n"
        client.assert_open()
    with server.connect_h2() as client:
        for _ in range(2):
            number = client.begin(f"/gateway/hints?{count}")
            assert client.response(number).body == b"later\n"
            interims = client.streams[number].interims
            assert [(hint.status, hint.fields) for hint in interims] == [(103, [("link", HINT[1])])] * count
        client.assert_open()


def test_early_hints_come_before_the_response(gateway):
    """Not with it: the plugin answers when it has the body, which is sent then."""
    with gateway().connect() as client:
        client.send(lines("POST /gateway/hint_and_echo HTTP/1.1", "Host: h", "Content-Length: 4"))
        assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 103 ") and client.buffer == b""
        client.send("body")
        answer = client.response("POST")
        assert (answer.status, answer.body) == (200, b"body")


def test_no_interim_response_for_http_1_0(gateway):
    with gateway().connect() as client:
        client.send(request("/gateway/hints?3", version="HTTP/1.0"))
        assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_more_interim_responses_than_may_wait(gateway):
    """They are an error of the plugin's call; here a 500, behind those that were accepted."""
    server = gateway()
    with server.connect() as client:
        assert client.ask("/gateway/hints?10000").status == 500
        client.assert_open()
    with server.connect_h2() as client:
        assert client.ask("/gateway/hints?10000").status == 500
        client.assert_open()


def test_an_invitation_that_waits_for_the_backend(gateway):
    """One 100, when the plugin passes it on, although it does so twice."""
    server = gateway()
    with server.connect() as client:
        for _ in range(2):
            client.send(lines("POST /gateway/hold HTTP/1.1", "Host: h", "Content-Length: 4", "Expect: 100-continue"))
            assert client.interim().status == 100
            client.send("body")
            assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")  # no second 100
            assert client.exactly(4) == b"body"
    with server.connect_h2() as client:
        number = client.begin("/gateway/hold", ("expect", "100-continue"), method="POST", end=False)
        client.settle(lambda: client.streams[number].interims, "an interim response")
        client.more(number, b"body", end=True)
        assert client.response(number).body == b"body"
        assert [hint.status for hint in client.streams[number].interims] == [100]
        client.assert_open()


def test_a_body_that_does_not_wait_for_its_invitation(gateway):
    server = gateway()
    with server.connect() as client:
        client.send(
            lines("POST /gateway/hold HTTP/1.1", "Host: h", "Content-Length: 4", "Expect: 100-continue") + b"body"
        )
        assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        assert client.exactly(4) == b"body"
        client.assert_open()


# ── the response ──


def test_date_of_the_origin(gateway):
    server = gateway()
    for connect in (server.connect, server.connect_h2):
        with connect() as client:
            then = int(time.time()) - 20
            answer = client.ask(f"/gateway/date?{then}")
            assert (answer.body, parse_date(answer["Date"])) == (b"dated\n", then)
            assert sum(name.lower() == "date" for name, _ in answer.fields) == 1
            assert answer["Server"].startswith("Monkey")
            assert parse_date(client.ask("/hello.txt")["Date"]) > then + 10


def test_many_headers(gateway):
    server = gateway()
    for connect in (server.connect, server.connect_h2):
        with connect() as client:
            for count, status in ((128, 200), (129, 500)):
                answer = client.ask(f"/gateway/headers?{count}")
                assert answer.status == status
                sent = sum(name.lower().startswith("x-") for name, _ in answer.fields)
                assert sent == (count if status == 200 else 0)
            client.assert_open()


# ── a wait of its own ──


def test_wait(gateway):
    """Longer, and shorter, than HandlerTimeout."""
    server = gateway({"HandlerTimeout": "500ms"})
    for connect in (server.connect, server.connect_h2):
        with connect() as client:
            assert client.ask("/gateway/long?1200").body == b"later\n"
        with connect() as client:
            assert client.ask("/gateway/vain?100").status == 503
    server.wait_log("plugin gateway: no answer within the time that it has set", 2)


def test_wait_with_limits_of_a_path(gateway):
    text = section("LIMITS", {"Match": "/gateway", "HandlerTimeout": "200ms"})
    with gateway(text=text).connect() as client:
        assert client.ask("/gateway/long?1200").body == b"later\n"


# ── the request ──


def test_request_trailers_in_chunks(gateway):
    with gateway().connect() as client:
        for body in (b"", b"body"):
            client.send(post("/gateway/trailers", body=body, trailers=["X-A: 1", "X-B:two words ", "Date: now"]))
            assert client.response().body == b"|X-A=1|X-B=two words"
        client.send(post("/gateway/ignore", trailers=["X-A: 1"]))
        assert client.response().body == b""
        client.assert_open()
        client.send(post("/gateway/trailers", trailers=[f"X-{n}: 1" for n in range(65)]))
        assert client.response().status == 413


def test_request_trailers_over_http_2(gateway):
    with gateway().connect_h2() as client:
        for body, seen in ((b"", b"0"), (b"body", b"4")):
            number = client.begin(
                "/gateway/trailers", method="POST", body=body, trailers=["X-A: 1", "X-B: two words", "Date: now"]
            )
            assert client.response(number).body == (seen if body else b"") + b"|x-a=1|x-b=two words"
        number = client.begin("/gateway/ignore", method="POST", body=b"body", trailers=["X-A: 1"])
        assert client.response(number).body == b"4"
        many = [f"X-{n}: 1" for n in range(65)]
        number = client.begin("/gateway/trailers", method="POST", body=b"body", trailers=many)
        assert client.response(number).status == 413
        assert client.response(client.begin("/gateway/ignore", method="POST", body=b"b", trailers=many)).body == b"1"
        client.assert_open()


def test_body_length(gateway):
    server = gateway()
    with server.connect() as client:
        assert client.ask("/gateway/ignore", method="POST", body=b"body").body == b"4"
        assert client.ask("/gateway/ignore").body == b"0"
        client.send(post("/gateway/ignore", trailers=["X-A: 1"]))
        assert client.response().body == b""
        client.assert_open()


# ── notes for the log ──


@pytest.mark.skipif(not (build.PLUGINS / "logger.so").exists(), reason=f"the preset {build.PRESET} has no logger")
def test_notes(gateway, tmp_path):
    names = "$upstream $upstream_us $upstream_connect_us $retries"
    formats = {"text": f'"{names} $note_a_note \\"$note_a_note\\" $note_none"', "json": f'"json {names} $note_a_note"'}
    text = "".join(section("LOGGER", {"AccessLog": tmp_path / name, "Format": f}) for name, f in formats.items())
    server = gateway(plugins=("liana", "logger", "{}", "static"), text=text)
    for connect in (server.connect, server.connect_h2):
        with connect() as client:
            assert client.ask("/gateway/notes").body == b"noted\n"
            assert client.ask("/hello.txt").body == HELLO
    server.stop()
    noted = r'192.0.2.8:80 1234 - - two\x20\x22words\x22 "two \x22words\x22" -'
    assert (tmp_path / "text").read_text().splitlines() == [noted, '- - - - - "-" -'] * 2
    first, second = [json.loads(line) for line in (tmp_path / "json").read_text().splitlines()][:2]
    assert first == {
        "upstream": "192.0.2.8:80",
        "upstream_us": 1234,
        "upstream_connect_us": None,
        "retries": None,
        "note_a_note": 'two "words"',
    }
    assert set(second.values()) == {None}


# ── paths with an encoded slash ──

SLASHES = {
    "/slash/a%2Fb": (200, b"/slash/a%2Fb /slash/a%2Fb encoded\n"),
    "/slash/a%2fb%2F?q": (200, b"/slash/a%2Fb%2F /slash/a%2fb%2F encoded\n"),
    "/slash/%61%2Fb//c": (200, b"/slash/a%2Fb/c /slash/%61%2Fb//c encoded\n"),
    "/slash/a%252Fb": (200, b"/slash/a%2Fb /slash/a%252Fb\n"),
    "/slash/..%2Fa": (404, None),
    "/slash/a%2F..%2Fb": (404, None),
    "/slash/a%2Fb%252Fc": (404, None),
    "/other/a%2Fb": (404, None),
    "/hello.txt%2F": (404, None),
    "/a%2Fhello.txt": (404, None),
}


def test_encoded_slashes(gateway):
    server = gateway()
    for connect in (server.connect, server.connect_h2):
        with connect() as client:
            for path, (status, body) in SLASHES.items():
                answer = client.ask(path)
                assert answer.status == status, path
                assert body is None or answer.body == body
            client.assert_open()


def test_a_file_with_the_text_of_an_encoded_slash(gateway, tmp_path):
    """It has that name, and is sent for the path that says so; never for a path with an encoded slash."""
    root = tmp_path / "root"
    (root / "slash").mkdir(parents=True)
    (root / "hello.txt").write_bytes(HELLO)
    (root / "a%2Fb").write_bytes(b"a file\n")
    (root / "slash" / "a%2Fb").write_bytes(b"another\n")
    server = gateway(root=root, plugins=("liana", "static", "{}"))
    with server.connect() as client:
        assert client.ask("/a%252Fb").body == b"a file\n"
        assert client.ask("/a%2Fb").status == 404
        assert client.ask("/slash/a%252Fb").body == b"another\n"  # static comes first
        assert client.ask("/slash/a%2Fb").body == b"/slash/a%2Fb /slash/a%2Fb encoded\n"


def test_rules_see_encoded_slashes(gateway):
    text = section("HANDLERS", {"Match": "=/slash/only%2Fstatic static"}) + section(
        "REDIRECT", {"Match": "=/slash/old%2Fname", "To": "/slash/new"}
    )
    with gateway(plugins=("liana", "redirect", "{}", "static"), text=text).connect() as client:
        assert client.ask("/slash/only%2Fstatic").status == 404
        assert client.ask("/slash/old%2Fname")["Location"] == "/slash/new"
        assert client.ask("/slash/old%2Fother").status == 200


def test_encoded_slashes_without_the_plugin(serve):
    with serve().connect() as client:
        assert client.ask("/slash/a%2Fb").status == 404
        client.assert_open()
