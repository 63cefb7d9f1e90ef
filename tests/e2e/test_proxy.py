# SPDX-License-Identifier: Apache-2.0
"""The plugin proxy: requests on their way to a backend, responses on their way back, and connections between them."""

import re
import socket
import ssl
import threading
import time

import pytest

from harness import build
from harness.backend import Backend, answer, echo, replay, stay_silent
from harness.groups import GROUPS, group
from harness.messages import CLOSE, chunked, lines, request, sized
from harness.metrics import needs_status, scrape, status_section, total
from harness.proxies import TEXT, proxy_section
from harness.server import await_true, free_port, run, write_config
from harness.services import CONTROL_THREAD, reload
from harness.ways import WAYS
from test_config import problems

pytestmark = pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins")

OK = lines("HTTP/1.1 200 OK", TEXT, sized(b"hello")) + b"hello"


@pytest.fixture
def proxy(serve, tmp_path):
    """A server whose default host passes requests to a backend."""

    def start(backend, keys=None, settings=None, **rest):
        return serve({"Workers": 1, **(settings or {})}, text=proxy_section(backend, keys), **rest)

    return start


def ask(proxy, script, target="/", *fields, keys=None, **rest):
    """What the client gets of one script."""
    with Backend(script) as backend:
        with proxy(backend, keys).connect() as client:
            return client.ask(target, *fields, **rest)


# ── there and back ──


def test_request_and_response(proxy):
    with Backend(answer(b"hello", TEXT, "X-Own: 1", "Set-Cookie: a=b", "Set-Cookie: c=d")) as backend:
        server = proxy(backend)
        with server.connect() as client:
            got = client.ask("/a/b%20c?x=%2F1", "X-Mine: 2")
        assert (got.status, got.body, got["X-Own"]) == (200, b"hello", "1")
        assert [value for name, value in got.fields if name.lower() == "set-cookie"] == ["a=b", "c=d"]
        sent = backend.requests[0]
        assert (sent.method, sent.target, sent["X-Mine"], sent.length) == ("GET", "/a/b%20c?x=%2F1", "2", 0)
        assert sent["Connection"] is None


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "BREW"])
def test_body(proxy, method):
    body = bytes(range(256)) * 2000
    with Backend(echo) as backend:
        with proxy(backend).connect() as client:
            for size in (0, 1, 1000, len(body)):
                got = client.ask("/up", method=method, body=body[:size])
                assert (got.status, got.body == body[:size], got["Echo"]) == (200, True, f"{method} /up")


@pytest.mark.parametrize("method, length", [("POST", "0"), ("PUT", "0"), ("PATCH", "0"), ("GET", None)])
def test_a_request_without_content(proxy, method, length):
    """Methods that usually have some say that there is none: RFC 9110 section 8.6."""
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/", method=method).body == b"hello"
            assert client.ask("/", method=method).body == b"hello"
        assert [each["Content-Length"] for each in backend.requests] == [length, length]


@pytest.mark.single_protocol
def test_body_in_chunks(proxy):
    with Backend(echo) as backend:
        with proxy(backend).connect() as client:
            head = lines("POST /up HTTP/1.1", "Host: a", "Transfer-Encoding: chunked")
            client.send(head + chunked(b"x" * 70000, b"y", b"z" * 5))
            assert client.response("POST").body == b"x" * 70000 + b"yzzzzz"
        assert backend.requests[0].length == "chunked"


@pytest.mark.parametrize("size", [None, 1, 7])
def test_response_in_pieces(proxy, size):
    data = lines("HTTP/1.1 200 OK", TEXT, "Transfer-Encoding: chunked") + chunked(b"one", b"two", b"three" * 20)
    assert ask(proxy, replay(data, size=size, end="wait")).body == b"onetwo" + b"three" * 20


@pytest.mark.parametrize("framing", ["length", "chunks", "end"])
def test_long_response(proxy, framing):
    body = bytes(range(256)) * 8000

    def respond(peer):
        peer.request()
        if framing == "chunks":
            peer.respond(TEXT, TEXT, chunks=[body[at : at + 10000] for at in range(0, len(body), 10000)])
        else:
            peer.send(lines("HTTP/1.1 200 OK", TEXT, *([sized(body)] if framing == "length" else [])) + body)

    got = ask(proxy, respond)
    assert got.body == body
    assert (got.length is not None) == (framing == "length")


def test_head_has_no_body(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            for _ in range(3):
                got = client.ask("/", method="HEAD")
                assert (got.status, got.body, got.length) == (200, b"", 5)
            assert client.ask("/").body == b"hello"
        assert len(backend.peers) == 4  # a body may come late: see test_backend_responses.py


@pytest.mark.parametrize("framing", ["Transfer-Encoding: chunked", "X-Framing: none"])
def test_head_of_an_unknown_length(proxy, framing):
    """A length would have to be that of GET (RFC 9110 section 8.6)."""

    def respond(peer):
        while True:
            peer.request()
            peer.send(lines("HTTP/1.1 200 OK", TEXT, framing))

    with Backend(respond) as backend:
        with proxy(backend).connect() as client:
            for _ in range(3):
                got = client.ask("/", method="HEAD")
                assert (got.status, got.body, got.length) == (200, b"", None)
        assert len(backend.peers) == (1 if framing == "X-Framing: none" else 3)


@pytest.mark.single_protocol
@pytest.mark.parametrize("way", ["h1", "h1-tls"])
@pytest.mark.parametrize("ends", ["closes", "resets"])
def test_a_part_of_a_response_is_not_whole(serve, tmp_path, way, ends):
    """With HTTP/1.0 the end of the connection is that of the body: a client gets an error instead."""

    def respond(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, "Transfer-Encoding: chunked") + chunked(b"hello")[:-5])
        peer.wait("received")
        if ends == "resets":
            peer.reset()

    with Backend(respond) as backend:
        begin = lambda _, settings, **rest: serve(settings, **rest)
        server = WAYS[way].start(begin, tmp_path, None, text=proxy_section(backend))
        with WAYS[way].connect(server) as client:
            client.send(lines("GET / HTTP/1.0", "Host: localhost"))
            head = client.head()
            assert (head.status, head.length, head["Connection"]) == (200, None, "close")
            assert client.exactly(5) == b"hello"
            backend.events("received").set()
            with pytest.raises((ConnectionResetError, ssl.SSLError)):
                client.rest()


@pytest.mark.parametrize("field", ["Content-Length: 5", "Transfer-Encoding: chunked"])
def test_an_interim_response_has_no_content(proxy, field):
    """Whatever it says (RFC 9112 section 6.3)."""

    def respond(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 103 Early Hints", field) + lines("HTTP/1.1 200 OK", TEXT, sized(b"hello")) + b"hello")
        peer.wait_end()

    assert ask(proxy, respond).body == b"hello"


@pytest.mark.single_protocol
@pytest.mark.parametrize("fields", [[], ["Host:"]])
def test_a_request_without_a_host(proxy, fields):
    """HTTP/1.0 needs none: the backend, which is asked by HTTP/1.1, gets its own."""
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            client.send(lines("GET / HTTP/1.0", *fields))
            assert client.response().body == b"hello"
        assert backend.requests[0]["Host"] == backend.address


@pytest.mark.parametrize("status", [204, 304, 404, 500, 599])
def test_statuses(proxy, status):
    def respond(peer):
        peer.request()
        peer.send(lines(f"HTTP/1.1 {status} Some", TEXT, *([] if status in (204, 304) else [sized(b"no")])))
        peer.send(b"" if status in (204, 304) else b"no")
        peer.wait_end()

    got = ask(proxy, respond)
    assert (got.status, got.body) == (status, b"" if status in (204, 304) else b"no")


def test_trailers(proxy):
    trailer = b"Checksum: 1\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\nHost: x\r\n"
    got = ask(proxy, answer(b"", TEXT, "Trailer: Checksum", chunks=[b"hello"], trailer=trailer))
    assert got["Trailer"] == "Checksum"
    assert (got.body, [name.lower() for name, _ in got.trailers]) == (b"hello", ["checksum"])


def test_unix_socket(proxy, tmp_path):
    with Backend(answer(b"hello", TEXT), path=tmp_path / "app.sock") as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/").body == b"hello"


# ── what the backend gets ──


@pytest.mark.single_protocol
def test_headers_of_a_connection_stay(proxy):
    fields = ["Connection: keep-alive, X-Private, te", "X-Private: 1", "Keep-Alive: timeout=5", "TE: gzip",
              "Proxy-Connection: x", "Upgrade: h2c", "HTTP2-Settings: AAA", "Proxy-Authorization: Basic x",
              "Proxy: http://x", "Trailer: A", "X-Public: 2"]  # fmt: skip
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/", *fields).status == 200
        names = {name.lower() for name, _ in backend.requests[0].fields}
    ours = {"x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-real-ip"}
    assert names == {"host", "x-public", "x-request-id", "via"} | ours


@pytest.mark.single_protocol
@pytest.mark.parametrize(
    "option",
    ["Host", "content-length", "Transfer-Encoding", "X-Forwarded-For", "Via", "x_real_ip", "X-Request-ID"],
)
def test_connection_must_not_name(proxy, option):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/", f"Connection: {option}").status == 400
        assert not backend.requests


def test_what_the_client_says_is_replaced(proxy):
    lies = ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "X-Real-IP: 192.0.2.2", "Forwarded: for=x",
            "X_Forwarded_For: 192.0.2.3", "X-Forwarded_Host: evil", "X-Forwarded-Port: 1"]  # fmt: skip
    with Backend(answer(b"hello", TEXT)) as backend:
        server = proxy(backend)
        with server.connect() as client:
            client.ask("/", *lies, host="site.example:81")
        sent = backend.requests[0]
    assert sent["X-Forwarded-For"] == sent["X-Real-IP"] == "127.0.0.1"
    assert (sent["X-Forwarded-Host"], sent["X-Forwarded-Port"]) == ("site.example:81", "81")
    assert sent["X-Forwarded-Proto"] in ("http", "https")
    assert not [name for name, value in sent.fields if "_" in name or name == "Forwarded" or "192.0.2" in value]


def test_a_trusted_proxy_is_extended(proxy):
    said = ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: site.example"]
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend, settings={"TrustedProxies": "127.0.0.1"}).connect() as client:
            client.ask("/", *said)
        sent = backend.requests[0]
    assert (sent["X-Forwarded-For"], sent["X-Real-IP"]) == ("192.0.2.1, 127.0.0.1", "192.0.2.1")
    assert (sent["X-Forwarded-Proto"], sent["X-Forwarded-Host"]) == ("https", "site.example")


SCHEMES = [
    # what a trusted proxy says, and the scheme and the port that the backend gets
    ("https", "https", "443"),
    ("HTTPS", "https", "443"),
    ("wss", "https", "443"),
    ("WsS", "https", "443"),
    ("http", "http", "80"),
    ("ws", "http", "80"),
    ("wss, http", "https", "443"),
    ("http, https", "http", "80"),
]


def test_the_scheme_that_a_trusted_proxy_names(proxy):
    """One of two words, since applications compare it with them."""
    with Backend(echo) as backend:
        with proxy(backend, settings={"TrustedProxies": "127.0.0.1"}).connect() as client:
            for said, scheme, port in SCHEMES:
                addresses = ["192.0.2.1"] + ["127.0.0.1"] * said.count(",")
                fields = [f"X-Forwarded-For: {', '.join(addresses)}", f"X-Forwarded-Proto: {said}"]
                assert client.ask("/", *fields, host="site.example").status == 200
                sent = backend.requests[-1]
                assert (sent["X-Forwarded-Proto"], sent["X-Forwarded-Port"]) == (scheme, port), said


@pytest.mark.parametrize("is_trusted", [True, False])
def test_the_address_that_another_proxy_names(proxy, is_trusted):
    with Backend(answer(b"hello", TEXT)) as backend:
        settings = {"TrustedProxies": "127.0.0.1"} if is_trusted else {}
        with proxy(backend, settings=settings).connect() as client:
            client.ask("/", "X-Real-IP: 192.0.2.1")
    assert backend.requests[0]["X-Real-IP"] == ("192.0.2.1" if is_trusted else "127.0.0.1")


@pytest.mark.parametrize("how", ["Rfc7239", "Both", "Off"])
def test_forwarded(proxy, how):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend, {"Forwarded": how}).connect() as client:
            client.ask("/", "Forwarded: for=192.0.2.1", host="site.example:81")
        sent = backend.requests[0]
    scheme = "https" if sent["Forwarded"] and "https" in sent["Forwarded"] else "http"
    wanted = f'for=127.0.0.1;proto={scheme};host="site.example:81"'
    assert sent["Forwarded"] == (None if how == "Off" else wanted)
    assert (sent["X-Forwarded-For"] is not None) == (how == "Both")


@pytest.mark.parametrize("is_trusted", [True, False])
@pytest.mark.parametrize("how", ["Rfc7239", "Both"])
def test_forwarded_of_another_proxy(proxy, how, is_trusted):
    """It is extended if the other proxy is trusted, else replaced; the first element is the client then."""
    said = ["Forwarded: for=192.0.2.1;proto=https;host=site.example", "X-Forwarded-For: 192.0.2.1"]
    settings = {"TrustedProxies": "127.0.0.1" if is_trusted else "192.0.2.7"}
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend, {"Forwarded": how}, settings).connect() as client:
            client.ask("/", *said, host="other.example")
        sent = backend.requests[0]
    elements = [each.strip() for each in sent["Forwarded"].split(",")]
    assert elements[:-1] == (["for=192.0.2.1;proto=https;host=site.example"] if is_trusted else [])
    assert elements[-1].startswith("for=127.0.0.1;proto=") and elements[-1].endswith('host="other.example"')
    wanted = "192.0.2.1, 127.0.0.1" if is_trusted else "127.0.0.1"
    assert sent["X-Forwarded-For"] == (wanted if how == "Both" else None)


HOSTS = [("Client", "site.example"), ("Backend", None), ("app.example", "app.example")]


@pytest.mark.parametrize("header, wanted", HOSTS)
def test_host(proxy, header, wanted):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend, {"HostHeader": header}).connect() as client:
            client.ask("/", host="site.example")
        assert backend.requests[0]["Host"] == (wanted or backend.url.removeprefix("http://"))


def test_ids(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            client.ask("/")
            client.ask("/", "X-Request-Id: mine")
        first, second = backend.requests
    assert re.fullmatch(r"[0-9a-f]{32}", first["X-Request-Id"])
    assert second["X-Request-Id"] == "mine"


@pytest.mark.single_protocol
@pytest.mark.parametrize("minor, said", [(0, None), (1, None), (1, "1.1 other, 1.0 more")])
def test_via(proxy, minor, said):
    """The version of the request that came (RFC 9110 section 7.6.3), behind those of the proxies before."""
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            client.send(lines(f"GET / HTTP/1.{minor}", "Host: a", *([f"Via: {said}"] if said else [])))
            assert client.response().status == 200
        (sent,) = backend.requests
    *former, own = sent["Via"].split(", ")
    assert former == (said.split(", ") if said else [])
    assert re.fullmatch(rf"1\.{minor} monkey-[0-9a-f]{{16}}", own)


@needs_status
@pytest.mark.single_protocol
@pytest.mark.parametrize("kind", ["server", "group"])
def test_loop(serve, kind):
    """A backend that is the server itself: the request ends when it comes back, and says why."""
    address = f"127.0.0.1:{free_port()}"
    to = f"http://{address}" if kind == "server" else "http://itself"
    config = {"plugins/status/status.conf": status_section()}
    if kind == "group":
        config[GROUPS] = group([address], "itself")
    server = serve({"Workers": 2, "Listen": address}, text=proxy_section(None, {"To": to}), config=config)
    with server.connect() as client:
        got = client.ask("/x")
        assert (got.status, got["Proxy-Status"]) == (508, "monkey; error=proxy_loop_detected")
        assert client.ask("/x", f"Via: {', '.join(['1.1 monkeys, 1.1 a-monkey'] * 20)}").status == 508
    assert count_passed(server) == 2
    server.wait_log("a loop: as Via says, the request has passed this server before", 2)


@needs_status
@pytest.mark.single_protocol
@pytest.mark.parametrize("path, servers, passed", [("", 1, 1), ("", 2, 2), ("", 3, 3), ("/x/y", 2, 10)])
def test_a_loop_is_not_retried(serve, path, servers, passed):
    """A group of three addresses of the server itself, or of another one with such a group: the request goes one way,
    until it comes back, whatever the group says of retries. One whose path grows ends after ten servers."""
    ports = [free_port() for _ in range(servers)]
    hosts = [f"127.0.0.{n}" for n in (1, 2, 3)]
    keys = {"Retry": "Idempotent 500-599", "RetryMost": 5, "RetryBudget": 100, "EjectAfter": 0}
    started = []
    for own, other in zip(ports, ports[1:] + ports[:1]):
        config = {GROUPS: group([f"{host}:{other}" for host in hosts], "itself", **keys),
                  "plugins/status/status.conf": status_section()}  # fmt: skip
        text = proxy_section(None, {"To": f"http://itself{path}", "Match": "/x", "KeepAlive": 0})
        started.append(serve({"Workers": 2, "Listen": [f"{host}:{own}" for host in hosts]}, text=text, config=config))
    with started[0].connect() as client:
        got = client.ask("/x")
        assert (got.status, got["Proxy-Status"]) == (508, "monkey; error=proxy_loop_detected")
    assert sum(count_passed(server) for server in started) == passed


@needs_status
@pytest.mark.single_protocol
@pytest.mark.parametrize("host, path", [("a.example", "/data"), ("b.example", "/page")])
def test_a_request_for_another_path_is_no_loop(serve, host, path):
    """An application asks the server that has asked it, with the headers that it has got: another path, or another
    host, is no loop, and comes to its end."""
    asked = []

    def ask_back(peer):
        got = peer.request()
        asked.append((got["Host"], got.target))
        if len(asked) == 1:
            with server.connect() as client:
                inner = client.ask(path, f"Via: {got['Via']}", host=host)
            peer.respond(inner.body, TEXT, f"X-Inner: {inner.status}")
        else:
            peer.respond(b"data", TEXT)

    with Backend(ask_back) as backend:
        server = serve({"Workers": 2}, text=proxy_section(backend))
        with server.connect() as client:
            got = client.ask("/page", host="a.example")
    assert (got.status, got.body, got["X-Inner"]) == (200, b"data", "200")
    assert asked == [("a.example", "/page"), (host, path)]


def count_passed(server):
    with server.connect() as client:
        return total(scrape(client), "monkey_proxy_requests_total")


@pytest.mark.parametrize("is_trusted", [True, False])
def test_the_port_of_a_trusted_proxy(proxy, is_trusted):
    settings = {"TrustedProxies": "127.0.0.1"} if is_trusted else {}
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend, settings=settings).connect() as client:
            client.ask("/", "X-Forwarded-Port: 4443", host="site.example:81")
        (sent,) = backend.requests
    assert sent["X-Forwarded-Port"] == ("4443" if is_trusted else "81")


PATHS = [
    ({}, "/a/../b//c%41?q=%20", "/b/c%41".replace("%41", "A") + "?q=%20"),
    ({"Path": "Raw"}, "/a/../b//c%41?q", "/a/../b//c%41?q"),
    ({"Match": "/api"}, "/api/x", "/api/x"),
    ({"Match": "/api", "StripPrefix": "On"}, "/api/x?y", "/x?y"),
    ({"Match": "/api", "StripPrefix": "On"}, "/api", "/"),
    ({"Match": "/api/", "StripPrefix": "On"}, "/api/", "/"),
    ({"Match": "/api", "To": "{}/v2"}, "/api/x", "/v2/x"),
    ({"Match": "/api", "To": "{}/v2/"}, "/api", "/v2"),
    ({"Match": "/api", "To": "{}/"}, "/api/a%20b", "/a%20b"),
    ({"EncodedSlash": "Keep"}, "/a%2Fb/c%2fd?x", "/a%2Fb/c%2Fd?x"),
]


@pytest.mark.parametrize("keys, asked, wanted", PATHS)
def test_paths(proxy, keys, asked, wanted):
    with Backend(answer(b"hello", TEXT)) as backend:
        keys = {key: value.format(backend.url) for key, value in keys.items()}
        with proxy(backend, keys).connect() as client:
            assert client.ask(asked).status == 200
        assert backend.requests[0].target == wanted


def test_encoded_slash_is_refused(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/a%2Fb").status == 404
        assert not backend.requests


def test_other_paths_are_files(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend, {"Match": "/api"}, files={"a.txt": b"file", "api/b.txt": b"hidden"}).connect() as client:
            assert client.ask("/a.txt").body == b"file"
            assert client.ask("/api/b.txt").body == b"hello"


# ── what the client gets ──


LOCATIONS = [
    ({}, "http://{}/x?y#z", "/x?y#z"),
    ({}, "http://{}", "/"),
    ({}, "http://site.example/x", "/x"),
    ({}, "https://other.example/x", "https://other.example/x"),
    ({}, "http://{}.evil.example/x", "http://{}.evil.example/x"),
    ({}, "//other.example/x", "//other.example/x"),
    ({}, "x/y", "x/y"),
    ({"Match": "/api", "StripPrefix": "On"}, "/x", "/api/x"),
    ({"Match": "/api", "StripPrefix": "On"}, "http://{}/x", "/api/x"),
    ({"Match": "/api", "To": "{url}/v2"}, "/v2/x", "/api/x"),
    ({"Match": "/api", "To": "{url}/v2"}, "/v2x", "/v2x"),
    ({"RewriteLocation": "Off"}, "http://{}/x", "http://{}/x"),
]


@pytest.mark.parametrize("keys, sent, wanted", LOCATIONS)
def test_location(proxy, keys, sent, wanted):
    def respond(peer):
        where = peer.backend.url.removeprefix("http://")
        peer.request()
        peer.respond(b"moved", TEXT, "Location: " + sent.format(where), status=302)

    with Backend(respond) as backend:
        where = backend.url.removeprefix("http://")
        keys = {key: value.format(url=backend.url) for key, value in keys.items()}
        with proxy(backend, keys).connect() as client:
            assert client.ask("/api/a", host="site.example")["Location"] == wanted.format(where)


def test_headers_of_the_backend_stay(proxy):
    fields = ["Server: x", "X-Accel-Redirect: /secret", "X-Sendfile: /etc/passwd", "Keep-Alive: timeout=1",
              "Connection: X-Private", "X-Private: 1", "Proxy-Authenticate: Basic", "Upgrade: h2c",
              "X-Public: 2"]  # fmt: skip
    got = ask(proxy, answer(b"hello", TEXT, *fields))
    assert (got.status, got["X-Public"], got["Server"].startswith("Monkey")) == (200, "2", True)
    for name in ("X-Accel-Redirect", "X-Sendfile", "Keep-Alive", "X-Private", "Proxy-Authenticate", "Upgrade"):
        assert got[name] is None


def test_date_of_the_backend(proxy):
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() - 20))
    assert ask(proxy, answer(b"hello", TEXT, f"Date: {date}"))["Date"] == date


# ── connections ──


def test_connections_are_kept(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            for n in range(20):
                assert client.ask(f"/{n}").body == b"hello"
        assert len(backend.peers) == 1


def test_connections_outlive_reloads(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        server = proxy(backend)
        with server.connect() as client:
            for n in range(4):
                assert client.ask(f"/{n}").body == b"hello"
                reload(server)
        assert len(backend.peers) == 1
    server.baseline += CONTROL_THREAD


@pytest.mark.parametrize("why", ["close", "http10", "excess", "keepalive off"])
def test_connections_that_are_not_kept(proxy, why):
    def respond(peer):
        peer.request()
        head = lines("HTTP/1.0 200 OK" if why == "http10" else "HTTP/1.1 200 OK", TEXT, sized(b"hello"),
                     *(["Connection: close"] if why == "close" else []))  # fmt: skip
        peer.send(head + b"hello" + (b"HTTP/1.1 200 OK\r\n\r\n" if why == "excess" else b""))
        assert peer.wait_end() or why == "excess"

    with Backend(respond) as backend:
        with proxy(backend, {"KeepAlive": 0} if why == "keepalive off" else None).connect() as client:
            for _ in range(3):
                assert client.ask("/").body == b"hello"
        assert len(backend.peers) == 3
        wants_close = backend.requests[0]["Connection"]
        assert wants_close == ("close" if why == "keepalive off" else None)


def test_more_connections_than_are_kept(proxy):
    """Requests at the same time use those of the requests before them; the number is that of KeepAlive soon after."""
    together = threading.Barrier(6)

    def respond(peer):
        while True:
            peer.request()
            together.wait(30)
            peer.respond(b"hello", TEXT)

    with Backend(respond) as backend:
        server = proxy(backend, {"KeepAlive": 2})
        clients = [server.connect() for _ in range(6)]
        begun, late = time.monotonic(), 0
        for _ in range(5):
            before, begun = begun, time.monotonic()
            for client in clients:
                client.send(request("/"))
            for client in clients:
                assert client.response().body == b"hello"
            late += time.monotonic() - before > 0.9  # after a second those above KeepAlive are closed
        assert 6 <= len(backend.peers) <= 6 + 4 * late
        backend.wait_open(2)
        for client in clients:
            client.close()


def test_idle_connections_end(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend, {"KeepAliveTimeout": "50ms"}).connect() as client:
            assert client.ask("/").status == 200
            backend.wait_open(0)
            assert client.ask("/").status == 200
        assert len(backend.peers) == 2


def test_bytes_on_an_idle_connection(proxy):
    """A response without a request must not become that of the next request."""

    def respond(peer):
        peer.request()
        peer.respond(b"first" if peer.number == 0 else b"second", TEXT)
        if peer.number == 0:
            peer.wait("now")
            peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(b"wrong")) + b"wrong")
        peer.wait_end()

    with Backend(respond) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/").body == b"first"
            backend.tell("now")
            backend.wait_open(0)
            assert client.ask("/").body == b"second"


def end_after_first(peer):
    """Answers one request, and resets the connection at the moment of the second."""
    peer.request()
    peer.respond(b"hello", TEXT)
    if peer.number % 2 == 0:
        peer.head()
        peer.reset()
    else:
        peer.wait_end()


HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
BEGUN = [
    b"",
    b"H",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r",
    HINTS,
    HINTS + b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 102 Processing\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
]


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("begun", BEGUN)
def test_retry_of_a_kept_connection(proxy, begun, end):
    """The backend ends it with the second request, before the end of the head of its response."""

    def end_in_head(peer):
        peer.request()
        peer.respond(b"hello", TEXT)
        if peer.number == 0:
            peer.request()
            peer.send(begun)
            getattr(peer, end)()
        else:
            peer.wait_end()

    with Backend(end_in_head) as backend:
        with proxy(backend, {"EarlyHints": "All"}).connect() as client:
            assert client.ask("/1").body == b"hello"
            assert client.ask("/2", method="DELETE").body == b"hello"
        assert [(peer.number, each.target) for peer in backend.peers for each in peer.requests] == (
            [(0, "/1"), (0, "/2"), (1, "/2")]
        )


def test_one_retry_of_a_kept_connection(proxy):
    """The second connection ends in the same way, and there is no third one."""

    def end_in_head(peer):
        if peer.number == 0:
            peer.request()
            peer.respond(b"hello", TEXT)
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\n")

    with Backend(end_in_head) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/1").body == b"hello"
            assert client.ask("/2").status == 502
            assert client.ask("/3").status == 502
        assert [each.target for each in backend.requests] == ["/1", "/2", "/2", "/3"]


def test_no_retry_of_what_cannot_be_repeated(proxy):
    with Backend(end_after_first) as backend, proxy(backend).connect() as client:

        def ask_twice():
            """Whether the POST went where the GET did: not if a second has passed between them."""
            assert client.ask("/1").body == b"hello"
            before = len(backend.requests)
            status = client.ask("/2", method="POST", body=b"x").status
            assert status == 200 or len(backend.requests) == before
            return status == 502

        await_true(ask_twice, what="a POST at a connection that was kept")


def test_client_leaves(proxy):
    with Backend(stay_silent) as backend:
        server = proxy(backend)
        with server.connect() as client:
            client.send(request("/"))
            backend.wait_accepted(1)
        backend.wait_open(0)


# ── failures ──


FAILURES = {
    "close before": (b"", "close", 502, "http_response_incomplete"),
    "close in the head": (b"HTTP/1.1 200 OK\r\nContent-Le", "close", 502, "http_response_incomplete"),
    "reset in the head": (b"HTTP/1.1 200 OK\r\n", "reset", 502, "connection_terminated"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", "wait", 502, "http_protocol_error"),
    "two lengths": (lines("HTTP/1.1 200 OK", sized(b"a"), sized(b"ab")) + b"ab", "wait", 502, "http_protocol_error"),
    "length and chunks": (
        lines("HTTP/1.1 200 OK", sized(b"a"), "Transfer-Encoding: chunked") + chunked(b"a"),
        "wait",
        502,
        "http_protocol_error",
    ),
    "bare CR": (b"HTTP/1.1 200 OK\rContent-Length: 0\r\r\n", "wait", 502, "http_protocol_error"),
    "NUL": (b"HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", "wait", 502, "http_protocol_error"),
    "status 099": (b"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n", "wait", 502, "http_protocol_error"),
    "folded": (b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n", "wait", 502, "http_protocol_error"),
    "long head": (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 40000, "wait", 502, "http_response_header_section_size"),
    "many headers": (
        lines("HTTP/1.1 200 OK", *[f"A{n}: b" for n in range(140)], sized(b"")),
        "wait",
        502,
        "http_response_header_section_size",
    ),
    "unasked 101": (
        lines("HTTP/1.1 101 Switching", "Upgrade: x", "Connection: upgrade"),
        "wait",
        502,
        "http_upgrade_failed",
    ),
    "interim without end": (lines("HTTP/1.1 102 Processing") * 17, "wait", 502, "http_protocol_error"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(proxy, name):
    data, end, status, kind = FAILURES[name]
    with Backend(replay(data, end=end)) as backend:
        server = proxy(backend)
        with server.connect() as client:
            got = client.ask("/")
        assert (got.status, got["Proxy-Status"]) == (status, f"monkey; error={kind}")
        server.wait_log(f"proxy: {re.escape(backend.url)}: .*, host: localhost|proxy: {re.escape(backend.url)}: ")


def test_refused(proxy):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with proxy(None, {"To": f"http://127.0.0.1:{taken.getsockname()[1]}"}).connect() as client:
            got = client.ask("/")
    assert (got.status, got["Proxy-Status"]) == (502, "monkey; error=connection_refused")


CUTS = {
    "length": lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 10") + b"hello",
    "chunk": lines("HTTP/1.1 200 OK", TEXT, "Transfer-Encoding: chunked") + b"5\r\nhello\r\n",
    "malformed chunk": lines("HTTP/1.1 200 OK", TEXT, "Transfer-Encoding: chunked") + b"5\r\nhello\r\nx\r\n",
}


@pytest.mark.single_protocol
@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("name", CUTS)
def test_a_short_body_is_a_visible_end(proxy, name, end):
    with Backend(replay(CUTS[name], end=end)) as backend:
        server = proxy(backend)
        with server.connect() as client:
            client.send(request("/", CLOSE))
            got = client.rest()
        assert got.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 502 ")) or got == b""
        assert not got.endswith(b"0\r\n\r\n") and b"Content-Length: 5\r\n" not in got


TIMEOUTS = {
    "response": ({"ResponseTimeout": "100ms"}, b""),
    "in the head": ({"ResponseTimeout": "100ms"}, b"HTTP/1.1 200 OK\r\n"),
    "deadline": ({"Deadline": "100ms"}, b""),
}


@pytest.mark.parametrize("name", TIMEOUTS)
def test_timeouts(proxy, name):
    keys, data = TIMEOUTS[name]
    got = ask(proxy, replay(data, end="wait"), keys=keys)
    assert (got.status, got["Proxy-Status"]) == (504, "monkey; error=http_response_timeout")


@pytest.mark.single_protocol
def test_deadline_of_a_body(proxy):
    """It is cut, although the backend sends."""
    data = lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 10") + b"hello"
    with Backend(replay(data, end="wait")) as backend:
        with proxy(backend, {"Deadline": "100ms", "ReadTimeout": "60s"}).connect() as client:
            client.send(request("/"))
            assert client.rest().endswith(b"hello")


def test_a_backend_takes_longer_than_handlers(proxy):
    """HandlerTimeout is for handlers of this server: a backend has the limits of its section."""

    def respond_slowly(peer):
        peer.request()
        peer.wait("head")
        peer.send(lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 10") + b"hello")
        peer.wait("body")
        peer.send(b"world")

    with Backend(respond_slowly) as backend:
        with proxy(backend, settings={"HandlerTimeout": "100ms"}).connect() as client:
            for seconds, event in ((0.3, "head"), (0.6, "body")):
                threading.Timer(seconds, backend.tell, [event]).start()
            got = client.ask("/")
            assert (got.status, got.body) == (200, b"helloworld")


def test_connect_timeout(proxy):
    with Backend(answer(), accepts=False) as backend:
        backend.fill_backlog()
        with proxy(backend, {"ConnectTimeout": "100ms"}).connect() as client:
            got = client.ask("/")
    assert (got.status, got["Proxy-Status"]) == (504, "monkey; error=connection_timeout")


@pytest.mark.single_protocol
def test_read_timeout(proxy):
    data = lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 10") + b"hello"
    with Backend(replay(data, end="wait")) as backend:
        with proxy(backend, {"ReadTimeout": "100ms"}).connect() as client:
            client.send(request("/"))
            assert client.rest().endswith(b"hello")


def test_send_timeout(proxy):
    def ignore(peer):
        peer.wait("end")

    with Backend(ignore, rcvbuf=4096) as backend:
        with proxy(backend, {"SendTimeout": "300ms"}).connect() as client:
            body = b"x" * 8_000_000
            client.send_in_background(lines("POST / HTTP/1.1", "Host: a", f"Content-Length: {len(body)}") + body)
            assert client.response("POST").status == 504
        backend.tell("end")


# ── both ways at once ──


@pytest.mark.single_protocol
def test_early_response(proxy):
    """A response before the end of the upload reaches the client; the connection is not used again."""

    def refuse(peer):
        peer.head()
        peer.send(lines("HTTP/1.1 413 Too Large", TEXT, sized(b"no")) + b"no")
        peer.wait_end()

    with Backend(refuse) as backend:
        with proxy(backend).connect() as client:
            client.send(lines("POST / HTTP/1.1", "Host: a", "Content-Length: 1000000") + b"x" * 1000)
            got = client.response("POST")
            assert (got.status, got.body) == (413, b"no")
        backend.wait_open(0)


@pytest.mark.single_protocol
def test_the_backend_invites(proxy):
    """100 (Continue) comes from the backend, not from us; the other interim responses go to HTTP/2 only."""

    def invite(peer):
        got = peer.head()
        assert got["Expect"] == "100-continue"
        peer.wait("now")
        peer.interim(103, "Link: </a.css>")
        peer.interim(100)
        peer.body()
        peer.respond(got.body, TEXT)
        peer.wait_end()

    with Backend(invite) as backend:
        with proxy(backend).connect() as client:
            client.send(lines("POST / HTTP/1.1", "Host: a", "Expect: 100-continue", "Content-Length: 5"))
            backend.wait_accepted(1)
            client.assert_quiet()
            backend.tell("now")
            assert client.interim().status == 100
            client.send(b"hello")
            assert client.response("POST").body == b"hello"


@pytest.mark.single_protocol
def test_the_backend_does_not_invite(proxy):
    def refuse(peer):
        peer.head()
        peer.send(lines("HTTP/1.1 417 No", TEXT, sized(b"no")) + b"no")
        peer.wait_end()

    with Backend(refuse) as backend:
        with proxy(backend).connect() as client:
            client.send(lines("POST / HTTP/1.1", "Host: a", "Expect: 100-continue", "Content-Length: 5"))
            assert client.response("POST").status == 417


def respond_after_hint(peer):
    peer.request()
    peer.interim(103, "Link: </a.css>", "Connection: x")
    peer.respond(b"hello", TEXT)
    peer.wait_end()


@pytest.mark.parametrize("hints", ["All", "Http2", "Off"])
@pytest.mark.single_protocol
def test_early_hints(proxy, hints):
    with Backend(respond_after_hint) as backend:
        with proxy(backend, {"EarlyHints": hints}).connect() as client:
            client.send(request("/"))
            if hints == "All":
                got = client.interim()
                assert (got.status, got["Link"], got["Connection"]) == (103, "</a.css>", None)
            assert client.head().status == 200


@pytest.mark.skipif(not build.speaks("h2"), reason=f"the preset {build.PRESET} has no HTTP/2")
@pytest.mark.parametrize("hints", ["All", "Http2", "Off"])
def test_early_hints_over_http2(proxy, hints):
    with Backend(respond_after_hint) as backend:
        with proxy(backend, {"EarlyHints": hints}).connect_h2() as client:
            number = client.begin("/")
            assert client.response(number).status == 200
            found = [(hint.status, hint.fields) for hint in client.streams[number].interims]
            assert found == ([] if hints == "Off" else [(103, [("link", "</a.css>")])])


@pytest.mark.single_protocol
def test_a_slow_client_stops_the_backend(proxy):
    """Without a buffer the backend is read when the client takes bytes: memory does not grow."""
    body = b"x" * 30_000_000

    def respond(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(body)))
        peer.sock.settimeout(None)
        peer.sock.sendall(body)
        peer.backend.tell("sent")

    with Backend(respond) as backend:
        server = proxy(backend, {"BufferResponse": "Off"}, {"SendBuffer": "64K"})
        before = server.memory_kb()
        with server.connect(rcvbuf=65536) as client:
            client.send(request("/"))
            assert not backend.events("sent").wait(0.5)
            assert server.memory_kb() - before < 4000
            assert client.response().body == body


# ── the configuration ──


# Lines are counted from that of the section.
MISTAKES = {
    "To http://a\n    StripPrefix On\n    Match *.php": (3, "StripPrefix removes the prefix of Match, which is none"),
    "To http://a\n    StripPrefix On": (
        3, "StripPrefix removes the prefix of Match, which is none: write `Match /prefix`"
    ),
    "To http://a\n    StripPrefix On\n    Match /": (3, "StripPrefix removes the prefix of Match, which is none"),
    "To http://127.0.0.1:80/x\n    Match ~^/a": (
        2, "a path behind the host replaces the prefix of Match, which is none"
    ),
    "To ftp://a": (2, "a backend is http://HOST:PORT, https://HOST:PORT or unix:/PATH"),
    "To http://": (2, "the URL has no host"),
    "To http://u:p@a/": (2, "a URL with a user cannot be used"),
    "To http://a:99999": (2, "address of a backend"),
    "To http://a/b?c": (2, "without a query"),
    "To http://a b": (2, "it takes one URL"),
    "Match /": (1, "To"),
    "To http://a\n    HostHeader a/b": (3, "a host name"),
    "To http://a\n    Match /x\n    StripPrefix On\n    Path Raw": (5, "a raw path has no prefix"),
    "To http://a\n    MaxResponseHead 1M": (3, "MaxResponseHead"),
    "To http://a\n[PROXY]\n    To http://b": (3, "can never match"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(tmp_path, site_root, text):
    line, sentence = MISTAKES[text]
    write_config(tmp_path / "conf", site_root, text=f"[PROXY]\n    {text}\n")
    before = (tmp_path / "conf" / "sites" / "default").read_text().split("[PROXY]")[0].count("\n")
    got = run("-c", tmp_path / "conf", "--test")
    assert got.returncode == 1
    (problem,) = [row for row in problems(got) if row[3].startswith("error: ")]
    assert problem[:2] == ("default", before + line) and sentence in problem[3]


def test_a_name_without_address_loads(proxy):
    with proxy(None, {"To": "http://no-such-name.invalid"}).connect() as client:
        got = client.ask("/")
    assert got.status == 502 and got["Proxy-Status"].startswith("monkey; error=dns_")
