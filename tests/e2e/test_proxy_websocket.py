# SPDX-License-Identifier: Apache-2.0
"""Upgrades that the plugin proxy passes on, and the tunnels that follow: over HTTP/1.1 and as extended CONNECT."""

import contextlib
import hashlib
import os
import signal
import threading

import pytest

from harness import build
from harness.backend import Backend, answer, echo_websocket
from harness.client import ProtocolError
from harness.h2 import StreamReset
from harness.messages import chunked, lines, request
from harness.proxies import PATIENT
from harness.server import run, section, write_config
from harness.services import reload
from harness.ways import WAYS
from harness.websocket import BINARY, PING, PONG, TEXT, WebSocket

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
]
CLEAR = ["h1", "h2"]
PLAIN = "Content-Type: text/plain"
RAW = {"Upgrade": "raw websocket"}
SWITCH = lines("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: raw")
DATA = os.urandom(3_000_000)


@pytest.fixture
def start(serve, tmp_path):
    """A server that passes everything to a backend, and how its clients ask."""

    def begin(backend, way="h1", keys=None, settings=None):
        def run_server(_, settings, text="", **rest):
            return serve(settings, text=text + section("PROXY", {"To": backend.url, **PATIENT, **(keys or {})}), **rest)

        server = WAYS[way].start(run_server, tmp_path, None, {"Workers": 1, **(settings or {})})
        server.way = WAYS[way]
        return server

    return begin


class Raw:
    """A tunnel of a client, of bytes that are no WebSocket."""

    def __init__(self, server, early=b"", token="raw", **rest):
        self.client, self.number = server.open(**rest), None
        if server.way.h2:
            self.client.ping()
            self.number = self.client.begin("/", method="CONNECT", protocol=token, end=False)
            self.send(early)
            head = self.client.head(self.number)
            assert head.status == 200
            head.type_is_owed = False  # what follows is no content
        else:
            self.client.send(request("/", "Connection: Upgrade", f"Upgrade: {token}") + early)
            head = self.client.until(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 101 ") and b"\r\nUpgrade: raw\r\n" in head

    def send(self, data):
        if self.number is None:
            self.client.send(data)
        else:
            self.client.more(self.number, data)

    def shut(self):
        if self.number is None:
            self.client.shut()
        else:
            self.client.more(self.number, end=True)

    def exactly(self, count):
        return self.client.exactly(count) if self.number is None else self.client.exactly(count, self.number)

    def rest(self):
        """Everything up to an orderly end."""
        if self.number is None:
            return self.client.rest()
        taken = self.client.streams[self.number].taken
        return self.client.response(self.number).body[taken:]

    def reset(self):
        if self.number is None:
            self.client.reset()
        else:
            self.client.cancel(self.number)


def switch(peer):
    """Accepts an upgrade to `raw`."""
    peer.request()
    peer.send(SWITCH)


def echo_raw(peer):
    switch(peer)
    while peer.buffer or peer.fill():
        peer.send(peer.take(len(peer.buffer)))


def assert_failure(head, status=502, error="http_upgrade_failed"):
    assert head.status == status and head["Proxy-Status"] == f"monkey; error={error}", f"{head}"


# ── WebSockets ──


@pytest.mark.parametrize("way", WAYS)
def test_echo(start, way):
    with Backend(echo_websocket) as backend:
        server = start(backend, way)
        ws = WebSocket(server, "/chat?room=1", fields=["Origin: http://localhost", "Sec-WebSocket-Protocol: x, y"])
        ws.assert_echo("hello")
        ws.assert_echo(b"fragments" * 1000, size=777)
        ws.send_frame(PING, b"ping")
        assert ws.control(PONG) == b"ping"
        ws.assert_echo(os.urandom(400_000), opcode=BINARY)
        ws.close()
        sent = backend.requests[0]
        assert (sent.method, sent.target, sent["Connection"], sent["Upgrade"]) == (
            "GET",
            "/chat?room=1",
            "Upgrade",
            "websocket",
        )
        assert (sent["Sec-WebSocket-Version"], sent["Sec-WebSocket-Protocol"]) == ("13", "x, y")
        assert sent["X-Forwarded-For"] == "127.0.0.1" and sent.length == 0
        if server.way.h2:
            assert len(sent["Sec-WebSocket-Key"]) == 24
        else:
            assert sent["Sec-WebSocket-Key"] == ws.key


def test_key_of_each_stream(start):
    """An HTTP/2 client needs no key; what it sends as one is not passed on."""
    with Backend(echo_websocket) as backend:
        server = start(backend, "h2")
        client = server.open()
        sockets = [WebSocket(server, client=client, fields=["Sec-WebSocket-Key: AAAA"]) for _ in range(5)]
        for ws in sockets:
            ws.assert_echo()
        assert len({each["Sec-WebSocket-Key"] for each in backend.requests}) == 5


@pytest.mark.parametrize("way", CLEAR)
def test_connections_are_not_kept(start, way):
    def script(peer):
        peer.request()
        peer.respond(b"hello", PLAIN)
        echo_websocket(peer)

    with Backend([script, answer(b"hello", PLAIN)]) as backend:
        server = start(backend, way)
        assert server.open().ask("/").body == b"hello"
        ws = WebSocket(server)  # on the connection of the request before
        ws.assert_echo()
        assert len(backend.peers) == 1
        ws.close()
        backend.wait_open(0)
        assert server.open().ask("/").body == b"hello"
        assert len(backend.peers) == 2


# ── bytes ──


@pytest.mark.parametrize("way", CLEAR)
def test_bytes_behind_both_heads(start, way):
    def script(peer):
        peer.request()
        peer.send(SWITCH + DATA[:50_000])
        assert peer.exactly(5) == b"early"

    with Backend(script) as backend:
        raw = Raw(start(backend, way, RAW), b"early")
        assert raw.exactly(50_000) == DATA[:50_000]
        raw.shut()
        assert raw.rest() == b""


@pytest.mark.parametrize("way", CLEAR)
@pytest.mark.parametrize("size", [0, 1, 40_000, 3_000_000])
def test_end_behind_the_head(start, way, size):
    """The backend ends its side at once: all bytes and the end reach the client, which still can send."""

    def script(peer):
        peer.head()
        peer.body()
        peer.send(SWITCH + DATA[:size])
        peer.half_close()
        assert peer.rest() == b"later"

    with Backend(script) as backend:
        raw = Raw(start(backend, way, RAW))
        assert raw.exactly(size) == DATA[:size]
        if way == "h1":
            assert raw.client.sock.recv(1) == b""
        raw.send(b"later")
        raw.shut()
        assert raw.rest() == b""
        backend.wait_open(0)


@pytest.mark.parametrize("way", CLEAR)
def test_half_close_of_a_client(start, way):
    def script(peer):
        switch(peer)
        peer.send(hashlib.sha256(peer.rest()).digest())

    with Backend(script) as backend:
        raw = Raw(start(backend, way, RAW))
        raw.send(DATA)
        raw.shut()
        assert raw.rest() == hashlib.sha256(DATA).digest()


@pytest.mark.slow
@pytest.mark.parametrize("way", CLEAR)
def test_slow_sides(start, way):
    """Both sides send without reading, then read: nothing is lost, and no more than a piece waits in memory."""
    count, size = 8, len(DATA)

    def script(peer):
        switch(peer)
        sender = threading.Thread(target=lambda: [peer.send(DATA) for _ in range(count)], daemon=True)
        sender.start()
        peer.wait("read")
        for _ in range(count):
            assert peer.exactly(size) == DATA
        sender.join()

    with Backend(script) as backend:
        server = start(backend, way, RAW)
        raw = Raw(server)
        before = server.memory_kb()
        if way == "h1":
            raw.client.send_in_background(DATA * count)
        else:
            for _ in range(count):
                raw.send(DATA)
        assert raw.exactly(size) == DATA
        backend.tell("read")
        for _ in range(count - 1):
            assert raw.exactly(size) == DATA
        raw.shut()
        assert raw.rest() == b""
        if not build.SANITIZED:
            assert server.memory_kb() - before < 2048


# ── ends ──


@pytest.mark.parametrize("way", CLEAR)
def test_last_bytes_of_a_backend_that_takes_no_more(start, way):
    """The backend closes, unread bytes of the client or not: what it has sent before reaches the client."""

    def script(peer):
        switch(peer)
        peer.exactly(3)
        peer.send(DATA[:80_000])

    with Backend(script) as backend:
        raw = Raw(start(backend, way, RAW))
        raw.send(b"now")
        assert raw.exactly(40_000) == DATA[:40_000]
        backend.wait_open(0)
        raw.send(b"more")  # which the backend's system refuses
        assert raw.exactly(40_000) == DATA[40_000:80_000]


@pytest.mark.parametrize("way", CLEAR)
def test_backend_that_resets(start, way):
    def script(peer):
        switch(peer)
        peer.exactly(3)
        peer.reset()

    with Backend(script) as backend:
        raw = Raw(start(backend, way, RAW))
        raw.send(b"now")
        if way == "h2":
            with pytest.raises(StreamReset):
                raw.rest()
        else:
            with contextlib.suppress(ConnectionError):
                assert raw.rest() == b""


def test_backend_that_resets_behind_its_end(start):
    """No read would find that. The client gets RST_STREAM behind the end."""

    def script(peer):
        switch(peer)
        peer.half_close()
        peer.wait("reset")
        peer.reset()

    with Backend(script) as backend:
        raw = Raw(start(backend, "h2", RAW))
        stream = raw.client.streams[raw.number]
        raw.client.settle(lambda: stream.ended, "the end of the backend's side")
        backend.tell("reset")
        raw.client.settle(lambda: stream.sent, "the reset of the stream")


@pytest.mark.parametrize("way", WAYS)
def test_client_that_resets(start, way):
    with Backend(echo_websocket) as backend:
        server = start(backend, way)
        ws = WebSocket(server)
        ws.assert_echo()
        ws.reset()
        backend.wait_open(0)


@pytest.mark.parametrize("way", CLEAR)
def test_tunnel_timeout(start, way):
    with Backend(echo_websocket) as backend:
        ws = WebSocket(start(backend, way, settings={"TunnelTimeout": "5s"}))
        ws.assert_echo()
        ws.assert_cut()
        backend.wait_open(0)


# ── what is not an upgrade ──


def refuse_with(status, *fields):
    def script(peer):
        while True:
            peer.request()
            peer.respond(b"no", PLAIN, *fields, status=status, reason="No")

    return script


@pytest.mark.parametrize("way", CLEAR)
@pytest.mark.parametrize("status", [200, 403, 426, 503])
def test_refused_upgrade(start, way, status):
    """It is a response as any other, and the connection is kept. A 200 would open a tunnel over HTTP/2."""
    needs = ["Upgrade: websocket", "Connection: Upgrade"] if status == 426 else []
    with Backend(refuse_with(status, "X-Why: because", *needs)) as backend:
        server = start(backend, way)
        for _ in range(2):
            ws = WebSocket(server, do_handshake=False)
            ws.begin(*ws.handshake())
            head = ws.read_head()
            if way == "h2" and status == 200:
                assert_failure(head)
            else:
                assert (head.status, head.body, head["X-Why"]) == (status, b"no", "because")
                assert head["Upgrade"] == ("websocket" if needs and way == "h1" else None)
        backend.wait_requests(2)
        assert len(backend.peers) == (2 if way == "h2" and status == 200 else 1)


@pytest.mark.parametrize("fields", [[], ["Connection: Upgrade", "Upgrade: other"], ["Upgrade: websocket"]])
def test_unasked_upgrade(start, fields):
    def script(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket") + b"bytes")
        peer.wait_end()

    with Backend(script) as backend:
        server = start(backend)
        assert_failure(server.open().ask("/", *fields))
        backend.wait_open(0)


@pytest.mark.parametrize("way", CLEAR)
@pytest.mark.parametrize(
    "rows", [["Upgrade: other"], [], ["Upgrade: raw", "Upgrade: raw"], ["Upgrade: raw, websocket"]]
)
def test_wrong_protocol(start, way, rows):
    def script(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", *rows) + b"bytes")
        peer.wait_end()

    with Backend(script) as backend:
        server = start(backend, way, RAW)
        client = server.open()
        if way == "h2":
            client.ping()
            head = client.ask("/", method="CONNECT", protocol="raw", end=False)
        else:
            head = client.ask("/", "Connection: Upgrade", "Upgrade: raw")
        assert_failure(head)
        backend.wait_open(0)


@pytest.mark.parametrize("accept", [None, "", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="])
def test_wrong_accept(start, accept):
    """The HTTP/2 client has no key with which it could check."""

    def script(peer):
        peer.request()
        rows = [] if accept is None else [f"Sec-WebSocket-Accept: {accept}"]
        peer.send(lines("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket", *rows))
        peer.wait_end()

    with Backend(script) as backend:
        ws = WebSocket(start(backend, "h2"), do_handshake=False)
        ws.begin(*ws.handshake())
        assert_failure(ws.read_head())
        backend.wait_open(0)


UPGRADE = ["Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"]


@pytest.mark.parametrize(
    "fields, keys",
    [
        ([*UPGRADE, "Upgrade: h2c"], {}),
        ([*UPGRADE, "Upgrade: H2C, TLS/1.0"], {}),
        (["Connection: Upgrade", "Upgrade: websocket"], {"Upgrade": "Off"}),
        (["Connection: Upgrade", "Upgrade: websocket"], {"Upgrade": "raw"}),
        (["Connection: keep-alive", "Upgrade: websocket"], {}),
        (["Connection: Upgrade"], {}),
    ],
)
def test_upgrades_that_are_not_passed_on(start, fields, keys):
    with Backend(answer(b"hello", PLAIN)) as backend:
        with start(backend, keys=keys).open() as client:
            assert client.ask("/", *fields).body == b"hello"
        for name in ("Upgrade", "Connection", "HTTP2-Settings"):
            assert backend.requests[0][name] is None


def test_requests_that_cannot_be_upgraded(start):
    """Of HTTP/1.0."""
    with Backend(answer(b"hello", PLAIN)) as backend:
        with start(backend).open() as client:
            client.send(lines("GET / HTTP/1.0", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket"))
            assert client.response().body == b"hello"
        assert backend.requests[0]["Upgrade"] is None


# ── upgrades with a body, as `docker exec` sends them ──

ASKS = ("Connection: Upgrade", "Upgrade: raw")
JSON = b'{"Detach":false,"Tty":false}'
BODIES = {
    "json": ([f"Content-Length: {len(JSON)}"], JSON, JSON),
    "chunked": (["Transfer-Encoding: chunked"], chunked(JSON[:5], JSON[5:]), JSON),
    "trailers": (["Transfer-Encoding: chunked", "Trailer: X-End"], chunked(JSON, trailer=b"X-End: 1\r\n"), JSON),
    "empty": (["Content-Length: 0"], b"", b""),
    "empty chunks": (["Transfer-Encoding: chunked"], chunked(), b""),
    "long": ([f"Content-Length: {len(DATA)}"], DATA, DATA),
}


def head_of_upgrade(*fields, method="POST"):
    return lines(f"{method} /exec HTTP/1.1", "Host: localhost", *ASKS, *fields)


@pytest.mark.parametrize("way", ["h1", "h1-tls"])
@pytest.mark.parametrize("keys", [{}, {"SpoolRequest": "On"}], ids=["streamed", "spooled"])
@pytest.mark.parametrize("fields, body, wanted", BODIES.values(), ids=BODIES)
def test_a_body_comes_before_the_tunnel(start, way, keys, fields, body, wanted):
    """What follows it is the tunnel's, also when it comes with the body."""
    with Backend(echo_raw) as backend:
        with start(backend, way, {**RAW, **keys}).open() as client:
            client.send_in_background(head_of_upgrade(*fields) + body + b"early")
            head = client.until(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 101 ") and b"\r\nUpgrade: raw\r\n" in head, head
            assert client.exactly(5) == b"early"
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            assert client.exactly(18) == b"GET / HTTP/1.1\r\n\r\n"
        (sent,) = backend.requests
        assert (sent.method, sent.body, sent["Upgrade"], sent["Connection"]) == ("POST", wanted, "raw", "Upgrade")


def test_a_body_that_waits_for_100(start):
    """The backend invites it, before it switches (RFC 9110 section 7.8)."""

    def invite(peer):
        peer.head()
        peer.interim(100)
        peer.body()
        peer.send(SWITCH + peer.last.body)

    with Backend(invite) as backend:
        with start(backend, keys=RAW).open() as client:
            client.send(head_of_upgrade(f"Content-Length: {len(JSON)}", "Expect: 100-continue"))
            assert client.interim().status == 100
            client.send(JSON)
            assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
            assert client.exactly(len(JSON)) == JSON


@pytest.mark.parametrize("fields, first, rest", [
    (["Content-Length: 9"], b"half", b"-rest"),
    (["Transfer-Encoding: chunked"], b"4\r\nhalf\r\n", b"5\r\n-rest\r\n0\r\n\r\n"),
    (["Content-Length: 9", "Expect: 100-continue"], b"", b"half-rest"),
])  # fmt: skip
def test_a_backend_that_switches_before_the_body_has_come(start, fields, first, rest):
    """It would take the rest of the body for the other protocol."""

    def switch_early(peer):
        peer.head()
        peer.send(SWITCH)
        peer.wait_end()

    with Backend(switch_early) as backend:
        with start(backend, keys=RAW).open() as client:
            client.send(head_of_upgrade(*fields) + first)
            assert_failure(client.response("POST"))
            client.send_all_you_can(rest)
        (peer,) = backend.peers
    assert peer.raw.count(b"HTTP/1.1") == 1 and b"rest" not in peer.raw


REFUSALS = {
    "another status": (lines("HTTP/1.1 409 Conflict", PLAIN, "Content-Length: 2") + b"no", 409, b"no"),
    "ignored": (lines("HTTP/1.1 200 OK", PLAIN, "Content-Length: 2") + b"ok", 200, b"ok"),
    "required": (lines("HTTP/1.1 426 Required", PLAIN, "Upgrade: raw", "Content-Length: 2") + b"no", 426, b"no"),
}


@pytest.mark.parametrize("response, status, body", REFUSALS.values(), ids=REFUSALS)
def test_a_refused_upgrade_with_a_body(start, response, status, body):
    """The client's next request is one. The backend's connection is not used again: it may have left the body unread,
    and would take that for a request."""

    def refuse(peer):
        peer.request()
        peer.send(response)
        peer.wait_end()

    with Backend([refuse, answer(b"next", PLAIN)]) as backend:
        with start(backend, keys=RAW).open() as client:
            smuggled = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
            client.send(head_of_upgrade(f"Content-Length: {len(smuggled)}") + smuggled)
            got = client.response("POST")
            assert (got.status, got.body) == (status, body)
            assert client.ask("/next").body == b"next"
        assert [each.target for each in backend.requests] == ["/exec", "/next"]
        assert backend.requests[0].body == smuggled


def test_a_body_over_h2_has_no_upgrade(start):
    """HTTP/2 knows none but an extended CONNECT, whose bytes are the tunnel's."""
    with Backend(answer(b"hello", PLAIN)) as backend:
        client = start(backend, "h2", RAW).open()
        assert client.ask("/", method="POST", body=JSON).body == b"hello"
        assert (backend.requests[0]["Upgrade"], backend.requests[0].body) == (None, JSON)


def test_choice_of_several(start):
    """The first one of the client that is allowed, in any case of letters; h2c, which is offered too, is dropped."""
    with Backend(echo_raw) as backend:
        raw = Raw(start(backend, keys=RAW), token="h2c, RAW, websocket")
        raw.send(b"hello")
        assert raw.exactly(5) == b"hello"
        assert backend.requests[0]["Upgrade"] == "raw"


def test_empty_body(start):
    """A length of 0, as clients of Kubernetes send it."""
    with Backend(echo_raw) as backend:
        with start(backend, keys=RAW).open() as client:
            fields = ["Connection: Upgrade", "Upgrade: raw", "Content-Length: 0"]
            client.send(lines("POST / HTTP/1.1", "Host: localhost", *fields) + b"hello")
            assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
            assert client.exactly(5) == b"hello"


def test_other_protocols_over_h2(start):
    """A 200 would open a tunnel, so the backend is not asked."""
    with Backend(answer(b"hello", PLAIN)) as backend:
        client = start(backend, "h2").open()
        client.ping()
        assert client.ask("/", method="CONNECT", protocol="other", end=False).status == 501
        assert not backend.peers


@pytest.mark.parametrize("value", ["h2c", "websocket H2C", "a/b,c", "web\\socket"])
def test_bad_configuration(tmp_path, site_root, value):
    text = section("PROXY", {"To": "http://127.0.0.1:1", "Upgrade": value})
    got = run("-t", "-c", write_config(tmp_path / "conf", site_root, text=text))
    assert got.returncode == 1
    assert "sites/default:" in got.stderr and ("h2c cannot" if "2" in value else "names of protocols") in got.stderr


# ── reloads and the end of the server ──


def exchange_over_reloads(server, way, count, reloads):
    sockets, client = [], None
    for n in range(count):
        if WAYS[way].h2 and n % 50 == 0:
            client = server.open()
        sockets.append(WebSocket(server, client=client))
    memory = []
    for turn in range(reloads):
        for ws in sockets:
            ws.send_frame(TEXT, b"before %d" % turn)
        reload(server)
        for ws in sockets:
            ws.send_frame(TEXT, b"behind %d" % turn)
        for ws in sockets:
            assert ws.message() == (TEXT, b"before %d" % turn)
            assert ws.message() == (TEXT, b"behind %d" % turn)
        memory.append(server.memory_kb())
    if not build.SANITIZED:
        early, late = memory[reloads // 4 : reloads // 2], memory[reloads * 3 // 4 :]
        assert min(late) - min(early) < 1024, f"{memory}"  # a former generation may be there for a moment
    for ws in sockets:
        ws.drop()


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_reloads(start, way):
    """That no descriptor is left is seen at the end of the test."""
    with Backend(echo_websocket) as backend:
        exchange_over_reloads(start(backend, way, settings={"Workers": 2}), way, 200, 20)
        backend.wait_open(0)


@pytest.mark.load
@pytest.mark.concurrent
@pytest.mark.parametrize("way", ["h1", "h2-tls"])
def test_thousand_over_hundred_reloads(start, way):
    with Backend(echo_websocket, seconds=300) as backend:  # a turn of all tunnels may take long
        exchange_over_reloads(start(backend, way, settings={"Workers": 2}), way, 1000, 100)
        backend.wait_open(0)


@pytest.mark.parametrize("way", CLEAR)
@pytest.mark.parametrize("what", ["section", "plugin"])
def test_reload_that_removes(start, way, what):
    with Backend(echo_websocket) as backend:
        server = start(backend, way, settings={"Workers": 2})
        one, two = WebSocket(server), WebSocket(server)
        site = server.conf / "sites/default"
        site.write_text(site.read_text().partition("[PROXY]")[0])
        if what == "plugin":
            (server.conf / "plugins.load").write_text("[PLUGINS]\n    Load liana\n    Load static\n")
        reload(server)
        assert server.open().ask("/").status != 502
        for n in range(20):
            one.assert_echo(f"message {n}")
            two.assert_echo(os.urandom(70_000), opcode=BINARY)
        one.close()
        two.assert_echo("alone")
        two.reset()
        backend.wait_open(0)


@pytest.mark.budget
def test_memory_of_an_idle_tunnel(start):
    """All that the server holds of both connections and the exchange, after a message each: of 2.0 KB 1.3 KB are those
    of any request with its connection."""
    count = 1000
    with Backend(echo_websocket) as backend:
        server = start(backend)

        def open_many(count):
            for _ in range(count):
                WebSocket(server).assert_echo()

        open_many(50)
        before = server.memory_kb("Private_Dirty")
        open_many(count)
        each = (server.memory_kb("Private_Dirty") - before) * 1024 / count
        assert each <= 2048, f"{each:.0f} bytes"


@pytest.mark.parametrize("way", CLEAR)
def test_stop(start, way):
    """Tunnels continue while the server stops, which ends with the last of them."""
    with Backend(echo_websocket) as backend:
        server = start(backend, way, settings={"ShutdownTimeout": "60s"})
        ws = WebSocket(server)
        server.send_signal(signal.SIGTERM)
        server.wait_log("shutdown|shutting down|stopping")
        ws.assert_echo("still there")
        ws.close()
        ws.client.close()
        assert server.wait() == 0


@pytest.mark.parametrize("way", CLEAR)
def test_stop_that_is_not_awaited(start, way):
    """... up to ShutdownTimeout."""
    with Backend(echo_websocket) as backend:
        server = start(backend, way, settings={"ShutdownTimeout": "300ms"})
        ws = WebSocket(server)
        ws.assert_echo()
        server.send_signal(signal.SIGTERM)
        with contextlib.suppress(ProtocolError, OSError):
            ws.assert_cut()
        assert server.wait() == 0
        backend.wait_open(0)
