# SPDX-License-Identifier: Apache-2.0
"""WebSockets over reloads, stops and upgrades of the server: none is cut, no message is lost or comes twice."""

import signal

import pytest

from harness.messages import request
from harness.services import reload
from harness.ways import WAYS
from harness.websocket import LOAD, TEXT, Closed, WebSocket, close_frame, frame, needs_wsprobe, start_wsprobe

pytestmark = [needs_wsprobe, pytest.mark.single_protocol, pytest.mark.concurrent]


@pytest.fixture
def start(serve, tmp_path, site_root):
    def begin(way="h1", settings=None):
        return start_wsprobe(serve, WAYS[way], tmp_path, site_root, settings)

    return begin


def open_many(server, way, count, path, per_connection=50):
    """WebSockets, over HTTP/2 several on a connection."""
    sockets, client = [], None
    for n in range(count):
        if way.h2 and n % per_connection == 0:
            client = server.open()
        sockets.append(WebSocket(server, path, client=client))
        sockets[-1].answers_pings = True
    return sockets


def exchange_over_reloads(server, way, count, reloads):
    """Each WebSocket has numbered messages under way during each reload, broadcasts among them."""
    sockets = open_many(server, way, count, "/ws/shout")
    speaker = sockets[0]
    for turn in range(reloads):
        for at in range(5):
            speaker.send_frame(TEXT, b"turn %d, %d" % (turn, at))
        newcomer = WebSocket(server)  # it may hear what is on its way to all
        reload(server)
        newcomer.send_message("new")
        while newcomer.message()[1] != b"new":
            pass
        newcomer.drop()
        sockets[turn % count].send_frame(TEXT, b"turn %d, last" % turn)
        for ws in sockets:
            got = [ws.message()[1] for _ in range(6)]
            wanted = [b"turn %d, %d" % (turn, at) for at in range(5)] + [b"turn %d, last" % turn]
            assert sorted(got) == sorted(wanted)
            assert [text for text in got if text in wanted[:5]] == wanted[:5]
    speaker.send_frame(TEXT, b"the end")
    for ws in sockets:
        assert ws.message()[1] == b"the end"
    for ws in sockets:  # each of them ends the connection that it shares with others
        ws.drop()


@pytest.mark.parametrize("way", WAYS)
def test_reloads(start, way):
    exchange_over_reloads(start(way, {"Workers": 2}), WAYS[way], 40, 8)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["h1", "h2-tls"])
def test_thousand_over_hundred_reloads(start, way):
    exchange_over_reloads(start(way, {"Workers": 2}), WAYS[way], 1000, 100)


@pytest.mark.parametrize("way", WAYS)
def test_echoes_over_reloads(start, way):
    """Messages and fragments of many clients that are under way while the configuration is read."""
    server = start(way, {"Workers": 2})
    sockets = open_many(server, WAYS[way], 30, "/ws/context")
    for turn in range(10):
        for ws in sockets:
            ws.send(frame(TEXT, b"turn %d, " % turn, fin=False))
        reload(server)
        for n, ws in enumerate(sockets):
            ws.send(frame(0, b"%d" % n))
        for n, ws in enumerate(sockets):
            assert ws.message() == (TEXT, b"turn %d, %d" % (turn, n))
    for ws in sockets:
        ws.close()


def test_a_reload_that_removes_the_plugin(start):
    """Open WebSockets continue; handshakes find nothing. The group ends with the last of them."""
    server = start("h1", {"Workers": 2})
    one, two = WebSocket(server, "/ws/shout"), WebSocket(server, "/ws/shout")
    (server.conf / "plugins.load").write_text("[PLUGINS]\n    Load liana\n    Load static\n")
    reload(server)
    client = server.open()
    client.send(request("/ws/shout", *one.handshake()))
    assert client.response().status == 404
    for n in range(20):
        one.send_message(f"message {n}")
        assert one.message() == two.message() == (TEXT, b"message %d" % n)
    one.close()
    two.assert_echo("alone")
    two.drop()
    server.wait_log("wsprobe: closed", 2)
    (server.conf / "plugins.load").write_text(LOAD.format(""))
    reload(server)
    WebSocket(server).assert_echo()


# ── the end of the server ──


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop(start, way, number):
    """Clients get 1001, answer, and the server ends without waiting for ShutdownTimeout."""
    server = start(way, {"Workers": 2, "ShutdownTimeout": "60s"})
    sockets = open_many(server, WAYS[way], 12, "/ws/shout", per_connection=3)
    for ws in sockets:
        ws.send_message("hello")
    for ws in sockets:
        for _ in sockets:
            ws.message()
    server.stopping = True
    server.send_signal(number)
    for ws in sockets:
        with pytest.raises(Closed) as closed:
            ws.message()
        assert closed.value.code == 1001
        ws.send(close_frame(1001))
    for ws in sockets:
        ws.assert_end()
    for ws in sockets:
        ws.client.close()
    assert server.wait() == 0
    assert server.log.count("wsprobe: closed 1001") == len(sockets)


@pytest.mark.parametrize("way", WAYS)
def test_a_stop_that_is_not_answered(start, way):
    """... after close_ms."""
    server = start(way, {"ShutdownTimeout": "60s"})
    sockets = [WebSocket(server, "/ws/obey") for _ in range(3)]
    server.send_signal(signal.SIGTERM)
    for ws in sockets:
        assert ws.closing()[0] == 1001
    assert server.wait() == 0
    assert server.log.count("wsprobe: closed 1001") == 3


def test_a_stop_with_messages_under_way(start):
    """What was received before is answered, and what is queued is sent before the close frame."""
    server = start("h1", {"ShutdownTimeout": "60s"})
    ws = WebSocket(server, "/ws/plain", rcvbuf=4096)
    data = b"x" * 50_000
    for _ in range(100):
        ws.send_frame(2, data)
    assert ws.message()[1] == data
    server.send_signal(signal.SIGTERM)
    count = 1
    with pytest.raises(Closed) as closed:
        while True:
            assert ws.message()[1] == data
            count += 1
    assert closed.value.code == 1001 and 1 <= count <= 100
    ws.send(close_frame(1001))
    assert server.wait() == 0


def test_an_upgrade(chain):
    """The old process tells its clients 1001 and ends; they come back to the new one."""
    one = chain(files={"plugins.load": LOAD.format("")}, settings={"Workers": 2})
    server = one.server
    server.way, server.open = WAYS["h1"], lambda **rest: server.connect(**rest)
    for _ in range(2):
        sockets = [WebSocket(server) for _ in range(10)]
        for ws in sockets:
            ws.assert_echo()
        one.upgrade()
        for ws in sockets:
            assert ws.closing()[0] == 1001
            ws.send(close_frame(1001))
            ws.assert_end()
            ws.drop()
        again = WebSocket(server)
        again.assert_echo("back again")
        again.close()
    one.await_old()
