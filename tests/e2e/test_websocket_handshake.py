# SPDX-License-Identifier: Apache-2.0
"""The opening handshake of WebSockets: RFC 6455 section 4.2, RFC 8441 section 5 and RFC 7692 section 7.1."""

import base64
import os

import pytest

from harness import frames as f
from harness.h2 import StreamReset
from harness.messages import request
from harness.ways import WAYS
from harness.websocket import WebSocket, frame, needs_wsprobe, run_wsprobe

pytestmark = [needs_wsprobe, pytest.mark.single_protocol]
UPGRADE = ("Connection: Upgrade", "Upgrade: websocket")
VERSION, KEY = "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
RIGHT = (*UPGRADE, VERSION, KEY)
over_h1 = pytest.mark.parametrize("ws_server", [way for way in WAYS if not WAYS[way].h2], indirect=True)
over_h2 = pytest.mark.parametrize("ws_server", [way for way in WAYS if WAYS[way].h2], indirect=True)


def ask(server, *fields, path="/ws/echo", **rest):
    """The response to these fields; the connection, or the stream, must serve another request after a refusal."""
    client = server.open()
    client.send(request(path, *fields, **rest))
    ws = WebSocket(server, do_handshake=False, client=client)
    head = ws.read_head()
    if head.status == 101:
        ws.send_frame(1, b"hello")
        assert ws.message() == (1, b"hello")
    elif not head.closes:
        client.assert_open()
    client.close()
    return head


# ── HTTP/1.1 ──


ACCEPTED = {
    "right": RIGHT,
    "what browsers send": (*UPGRADE, VERSION, KEY, "Pragma: no-cache", "Cache-Control: no-cache"),
    "options and their case": ("Connection: keep-alive, UPGRADE", "Upgrade: WebSocket", VERSION, KEY),
    "two lines of Connection": ("Connection: keep-alive", "Connection: upgrade", "Upgrade: websocket", VERSION, KEY),
    "several protocols to upgrade to": ("Connection: Upgrade", "Upgrade: h2c, websocket", VERSION, KEY),
    "names in other cases": (*UPGRADE, VERSION.upper(), "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="),
    "an empty list of protocols": (*RIGHT, "Sec-WebSocket-Protocol: "),
    "an empty list of extensions": (*RIGHT, "Sec-WebSocket-Extensions: "),
    "unused bits of the key": (*UPGRADE, VERSION, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR=="),
    "unknown extensions": (*RIGHT, "Sec-WebSocket-Extensions: x-one; a=1, x-two"),
    "a malformed extension": (*RIGHT, "Sec-WebSocket-Extensions: permessage-deflate; ;"),
}


@over_h1
@pytest.mark.parametrize("fields", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(ws_server, fields):
    head = ask(ws_server, *fields)
    assert head.status == 101 and head["Upgrade"] == "websocket" and head["Connection"] == "Upgrade"
    assert head["Sec-WebSocket-Protocol"] is None and head["Sec-WebSocket-Extensions"] is None
    if KEY in fields:
        assert head["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def without(name):
    return tuple(field for field in RIGHT if not field.startswith(name))


REFUSED = {
    "no handshake": ((), 400),
    "no Upgrade": (without("Upgrade"), 400),
    "another protocol": ((*without("Upgrade"), "Upgrade: h2c"), 400),
    "no Connection": (without("Connection"), 400),
    "Connection without upgrade": ((*without("Connection"), "Connection: keep-alive"), 400),
    "no key": (without("Sec-WebSocket-Key"), 400),
    "an empty key": ((*without("Sec-WebSocket-Key"), "Sec-WebSocket-Key: "), 400),
    "a key of 15 bytes": ((*without("Sec-WebSocket-Key"), "Sec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1"), 400),
    "a key of 17 bytes": ((*without("Sec-WebSocket-Key"), "Sec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Njc="), 400),
    "a key that is no base64": ((*without("Sec-WebSocket-Key"), "Sec-WebSocket-Key: dGhlIHNhbXBs*SBub25jZQ=="), 400),
    "a key without padding": ((*without("Sec-WebSocket-Key"), "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ"), 400),
    "two keys": ((*RIGHT, KEY), 400),
    "no version": (without("Sec-WebSocket-Version"), 400),
    "two versions": ((*RIGHT, VERSION), 426),
    **{
        f"version {version!r}": ((*without("Sec-WebSocket-Version"), f"Sec-WebSocket-Version: {version}"), 426)
        for version in ("0", "7", "8", "12", "14", "013", "13.0", "", "x", "13, 8")
    },
}


@over_h1
@pytest.mark.parametrize("fields, status", REFUSED.values(), ids=REFUSED)
def test_refused(ws_server, fields, status):
    head = ask(ws_server, *fields)
    assert head.status == status
    assert head["Sec-WebSocket-Accept"] is None
    if status == 426:
        assert head["Sec-WebSocket-Version"] == "13" and head["Upgrade"] == "websocket"
        assert head["Connection"].split(", ")[0] == "Upgrade"
    else:
        assert head["Sec-WebSocket-Version"] is None and head["Upgrade"] is None


@over_h1
@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_methods(ws_server, method):
    client = ws_server.open()
    client.send(request("/ws/echo", *RIGHT, method=method))
    assert client.response(method).status == 400


@over_h1
@pytest.mark.parametrize("rest", [{"body": b"hello"}, {"body": b"hello", "method": "POST"}, {"version": "HTTP/1.0"}])
def test_requests_that_cannot_be_upgraded(ws_server, rest):
    client = ws_server.open()
    client.send(request("/ws/echo", *RIGHT, **rest))
    assert client.response().status == 400


@over_h1
def test_a_body_of_unknown_length(ws_server):
    client = ws_server.open()
    client.send(request("/ws/echo", *RIGHT, "Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n")
    assert client.response().status == 400


@over_h1
def test_connect(ws_server):
    client = ws_server.open()
    client.send(request("localhost:80", *RIGHT, method="CONNECT"))
    assert client.response("CONNECT").status in (400, 405, 501)


@over_h1
def test_the_second_request_of_a_connection(ws_server):
    client = ws_server.open()
    client.assert_open()
    client.send(request("/ws/echo", *without("Sec-WebSocket-Key")))
    assert client.response().status == 400
    WebSocket(ws_server, client=client).assert_echo()


@over_h1
def test_a_pipelined_handshake(ws_server):
    client = ws_server.open()
    client.send(request("/hello.txt") + request("/ws/echo", *RIGHT) + frame(1, b"early"))
    assert client.response().status == 200
    ws = WebSocket(ws_server, client=client, do_handshake=False)
    assert ws.read_head().status == 101
    assert ws.message() == (1, b"early")


# ── HTTP/2 ──


@over_h2
@pytest.mark.parametrize(
    "fields, pseudo, status",
    [
        ((), {}, 400),
        (("Sec-WebSocket-Version: 12",), {}, 426),
        ((VERSION,), {"protocol": "webtransport"}, 400),
        ((VERSION,), {"protocol": "WebSockets"}, 400),
        ((VERSION, "Origin: http://elsewhere"), {}, 403),
    ],
)
def test_refused_over_http_2(ws_server, fields, pseudo, status):
    ws = WebSocket(ws_server, do_handshake=False)
    ws.begin(*fields, **pseudo)
    head = ws.read_head()
    assert head.status == status
    assert head["Sec-WebSocket-Version"] == ("13" if status == 426 else None)
    ws.client.assert_open()


@over_h2
def test_a_key_does_not_matter_over_http_2(ws_server):
    ws = WebSocket(ws_server, fields=("Sec-WebSocket-Key: wrong",))
    ws.assert_echo()
    ws.close()


@over_h2
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_method_with_protocol(ws_server, method):
    """RFC 8441: malformed."""
    ws = WebSocket(ws_server, do_handshake=False)
    ws.begin(VERSION, method=method)
    with pytest.raises(StreamReset) as reset:
        ws.read_head()
    assert reset.value.code == f.PROTOCOL_ERROR


@over_h2
def test_requests_without_protocol(ws_server):
    client = ws_server.open()
    assert client.ask("/ws/echo", VERSION).status == 400
    number = client.begin(None, VERSION, method="CONNECT", scheme=None, end=False)
    assert client.head(number).status in (400, 405, 501)


@over_h2
def test_the_stream_of_the_handshake_ends_at_once(ws_server):
    """A client that sends nothing more than the handshake."""
    client = ws_server.open()
    client.ping()
    number = client.begin("/ws/echo", VERSION, method="CONNECT", protocol="websocket")
    assert client.head(number).status in (200, 400)
    client.settle(lambda: client.streams[number].over, "the end of the stream")
    client.assert_open()


@over_h2
def test_many_on_one_connection(ws_server):
    client = ws_server.open()
    sockets = [WebSocket(ws_server, client=client) for _ in range(50)]
    for at, ws in enumerate(sockets):
        ws.send_message(f"number {at}")
    for at, ws in enumerate(sockets):
        assert ws.message()[1] == b"number %d" % at
    for ws in sockets[::2]:
        ws.close()
    for ws in sockets[1::2]:
        ws.assert_echo()
    client.assert_open()


# ── subprotocols ──


@pytest.mark.parametrize(
    "fields, chosen",
    [
        ((), None),
        (("Sec-WebSocket-Protocol: chat",), "chat"),
        (("Sec-WebSocket-Protocol: superchat",), "superchat"),
        (("Sec-WebSocket-Protocol: superchat, chat",), "superchat"),
        (("Sec-WebSocket-Protocol: soap,chat,superchat",), "chat"),
        (("Sec-WebSocket-Protocol: soap", "Sec-WebSocket-Protocol: superchat"), "superchat"),
        (("Sec-WebSocket-Protocol: soap, wamp",), None),
        (("Sec-WebSocket-Protocol: Chat",), None),
        (("Sec-WebSocket-Protocol: cha, chat2",), None),
    ],
)
def test_subprotocols(ws_server, fields, chosen):
    ws = WebSocket(ws_server, "/ws/protocols", fields=fields)
    assert ws.protocol == chosen
    ws_server.wait_log(f'wsprobe: open, protocol "{chosen or ""}"')
    ws.close()


def test_no_subprotocol_is_chosen_where_none_is_set(ws_server):
    ws = WebSocket(ws_server, fields=("Sec-WebSocket-Protocol: chat",))
    assert ws.protocol is None
    ws.close()


# ── origins ──


def own(server, host="localhost"):
    return ("https" if server.way.tls else "http") + "://" + host


@pytest.mark.parametrize(
    "path, origin, status",
    [
        ("/ws/echo", None, 0),
        ("/ws/echo", "{own}", 0),
        ("/ws/echo", "{own}:{default}", 0),
        ("/ws/echo", "{other}", 403),
        ("/ws/echo", "{own}:81", 403),
        ("/ws/echo", "{own}.example", 403),
        ("/ws/echo", "http://elsewhere", 403),
        ("/ws/echo", "null", 403),
        ("/ws/echo", "localhost", 403),
        ("/ws/echo", "file://", 403),
        ("/ws/origins", "https://a.example", 0),
        ("/ws/origins", "HTTPS://A.EXAMPLE:443", 0),
        ("/ws/origins", "http://b.example:81", 0),
        ("/ws/origins", "{own}", 0),
        ("/ws/origins", "http://a.example", 403),
        ("/ws/origins", "http://b.example", 403),
        ("/ws/origins", "https://a.example.org", 403),
        ("/ws/origins", "https://a.example@b.example", 403),
        ("/ws/origins", "null", 403),
        ("/ws/any", "null", 0),
        ("/ws/any", "http://elsewhere", 0),
        ("/ws/any", "no origin at all", 0),
        ("/ws/null", "null", 0),
        ("/ws/null", "http://elsewhere", 403),
    ],
)
def test_origins(ws_server, path, origin, status):
    names = {"own": own(ws_server), "default": 443 if ws_server.way.tls else 80}
    names["other"] = "http://localhost" if ws_server.way.tls else "https://localhost"
    ws = WebSocket(ws_server, path, do_handshake=False)
    ws.begin(*ws.handshake(), *([] if origin is None else [f"Origin: {origin.format(**names)}"]))
    if status:
        assert ws.read_head().status == status
    else:
        ws.accept()
        ws.assert_echo()
        ws.close()


@pytest.mark.parametrize("scheme, own", [("wss", "https"), ("WSS", "https"), ("https", "https"), ("ws", "http")])
def test_origins_behind_a_proxy(tmp_path, site_root, scheme, own):
    """The scheme that a trusted proxy names is that of the origin, also where it calls it the one of WebSocket."""
    with run_wsprobe("h1", tmp_path, site_root, {"TrustedProxies": "127.0.0.1"}) as server:
        for origin, status in ((own, 101), ("http" if own == "https" else "https", 403)):
            fields = ["X-Forwarded-For: 192.0.2.1", f"X-Forwarded-Proto: {scheme}", f"Origin: {origin}://localhost"]
            assert ask(server, *RIGHT, *fields).status == status


def test_two_origins(ws_server):
    ws = WebSocket(ws_server, do_handshake=False)
    ws.begin(*ws.handshake(), f"Origin: {own(ws_server)}", "Origin: http://elsewhere")
    assert ws.read_head().status == 403


# ── what comes with the handshake ──


def test_frames_right_behind_the_handshake(ws_server):
    ws = WebSocket(ws_server, early=frame(1, b"early") + frame(9, b"ping") + frame(1, b"and late")[:5])
    assert ws.message() == (1, b"early")
    ws.send(frame(1, b"and late", key=b"\x37\xfa\x21\x3d")[5:])
    assert ws.message() == (1, b"and late") and ws.controls == [(10, b"ping")]
    ws.close()


def test_handshakes_with_long_keys_and_many_fields(ws_server):
    """A head that does not come in one piece, with fields that mean nothing."""
    fields = [f"X-{n}: {'x' * 40}" for n in range(40)] + ["Sec-WebSocket-Extensions: " + ", ".join(["x-one"] * 100)]
    ws = WebSocket(ws_server, extensions="permessage-deflate", fields=fields)
    assert ws.deflate
    ws.assert_echo("x" * 1000)
    ws.close()


def test_each_key_has_its_own_accept(ws_server):
    for _ in range(20):
        WebSocket(ws_server, do_handshake=True).close()
    if not ws_server.way.h2:
        ws = WebSocket(ws_server, do_handshake=False)
        ws.begin(*ws.handshake(base64.b64encode(os.urandom(16)).decode()))
        ws.accept()
