# SPDX-License-Identifier: Apache-2.0
"""The package websocket: services of all levels over HTTP/1.1 and HTTP/2, in the clear and by TLS."""

import base64
import contextlib
import errno
import hashlib
import re
import shutil
import signal
import socket

import pytest

from harness import build
from harness.client import ProtocolError
from harness.duda_websocket import BINARY, CLOSE, PING, PONG, TEXT, WebSocket, build_frame, handshake_fields
from harness.h2 import StreamReset
from harness.server import await_true
from harness.services import build_service, duda_section, function_of, needs_duda, reload, web_service
from harness.ways import WAYS
from test_concurrent import in_parallel
from test_duda_old import LEVELS, build_old
from test_duda_services import NO_HANDLERS

pytestmark = [
    needs_duda,
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "packages/websocket.dpkg").exists(), reason="no package websocket"),
]

SOURCE = (build.TOP / "tests/duda/services/sockets.c").read_text()
CLIENT_PARTS = 2  # descriptors of connect(): one in each worker that has called it
WARNINGS = ("-std=gnu17", "-Wall", "-Wextra", "-Werror", "-fno-common")


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    return build_service(tmp_path_factory.mktemp("sockets"), "web", SOURCE, warnings=WARNINGS)


def begin(serve_services, folder, built, way, settings, **rest):
    services = folder / "services"
    services.mkdir()
    shutil.copy(built, services)
    files = {"plugins/duda/duda.conf": duda_section(services)}
    text = web_service("web")
    server = way.start(serve_services, folder, {}, {"Workers": 2, **(settings or {})}, text=text, files=files, **rest)
    server.socket = lambda path, *fields, **more: WebSocket(server, way, f"/web{path}", *fields, **more)
    server.services = services
    return server


@pytest.fixture
def start(serve_services, tmp_path, built, way):
    return lambda settings=None, **rest: begin(serve_services, tmp_path, built, way, settings, **rest)


@pytest.fixture
def plain(serve_services, tmp_path, built):
    return lambda settings=None, **rest: begin(serve_services, tmp_path, built, WAYS["h1"], settings, **rest)


def get(server, target):
    client = server.open()
    body = client.ask(f"/web{target}").body.decode()
    client.close()
    return body


def await_count(server, number, channel=-1):
    await_true(lambda: get(server, f"/count?channel={channel}") == str(number), 30, f"{number} WebSockets")


def ends(server):
    """What the callbacks have logged, without the openings."""
    found = (re.search("service web: ((error|close|timeout) .*)", row) for row in server.lines)
    return [match[1] for match in found if match]


# ── the original's levels ──


@pytest.fixture
def serve_old(serve_services, tmp_path):
    def begin_old(name, number, way):
        services = tmp_path / "services"
        build_old(services, name, number=number, any_level=number is None)
        files = {"plugins/duda/duda.conf": duda_section(services)}
        server = way.start(serve_services, tmp_path, {}, {"Workers": 2}, text=web_service(name), files=files)
        server.socket = lambda path: WebSocket(server, way, f"/{name}{path}")
        return server

    return begin_old


@pytest.mark.parametrize("number", [0, None])
def test_the_chat_of_the_articles(serve_old, way, number):
    """A message reaches the others, and not the sender."""
    server = serve_old("chat", number, way)
    sockets = [server.socket("/handshake/") for _ in range(3)]
    for socket in sockets:
        socket.send("x", PING)
        assert socket.frame() == (PONG, b"x")
    texts = ["hello", "", "x" * 300, "y" * 2000, "ü" * 10_000]
    for sender in sockets:
        for text in texts:
            sender.send(text)
        for socket in sockets:
            assert socket is sender or [socket.text() for _ in texts] == texts
    sockets[0].write(build_frame(TEXT, "frag", fin=False) + build_frame(PING, "") + build_frame(0, "ments"))
    assert sockets[0].frame() == (PONG, b"") and sockets[1].text() == "fragments"
    sockets[0].send(b"binary is text")  # because the service says so
    assert sockets[1].text() == "binary is text"
    sockets[0].send(b"\xff\xfe")  # browsers would leave
    server.wait_log(r"service chat: websocket->broadcast\(\): the text is not UTF-8")
    sockets[0].send("after")
    assert sockets[1].text() == "after"
    assert [socket.close() for socket in sockets] == [1000] * 3


@pytest.mark.parametrize("number", LEVELS)
def test_channels_of_old_services(serve_old, number):
    server = serve_old("channels", number if number else 1 if number == 0 else None, WAYS["h1"])
    one, two, other, none = (server.socket(f"/{name}/") for name in ("first", "first", "second", "none"))
    server.wait_log(r"service channels: open -?\d", 4)
    one.send("to the first")
    assert one.text() == two.text() == "to the first"
    one.send(b"\0\1")
    server.wait_log("the payload has no end")
    assert one.frame() == two.frame() == (BINARY, b"\0\1")
    other.send("all")
    for socket in (one, two, other, none):
        assert socket.text() == "all 2"
    with server.connect() as client:
        assert client.ask("/channels/thread/", host="localhost").status == 200
    assert other.text() == "from a thread"
    one.send("close")
    assert one.closed() == (4000, "bye")
    server.wait_log("service channels: close 1")
    two.write(build_frame(TEXT, "a", rsv1=True))
    assert two.closed()[0] == 1002
    other.reset()
    server.wait_log("service channels: error 1")
    server.wait_log("service channels: error 2")
    server.wait_log("service channels: close 1", 2)
    assert none.close() == 1000
    server.wait_log("service channels: close -1")
    assert "timeout" not in server.log


@pytest.mark.parametrize("number", [0, None])
def test_callbacks_of_each_handshake(serve_old, way, number):
    """As in July 2012."""
    server = serve_old("july", number, way)
    echo, shout, other = (server.socket(f"/sockets/{name}") for name in ("echo", "shout", "echo"))
    for text in ("one", "two"):
        echo.send(text)
        shout.send(text)
        assert (echo.text(), shout.text()) == (text, text.upper())
    assert echo.close() == shout.close() == 1000
    server.wait_log("service july: close")
    other.reset()
    server.wait_log("service july: error")
    server.wait_log("service july: close", 2)


@pytest.mark.parametrize(
    "fields, status",
    [
        ((), 400),
        (handshake_fields()[1:], 400),
        (handshake_fields()[:2], 400),
        ((*handshake_fields()[:3], "Sec-WebSocket-Version: 8"), 426),
        (handshake_fields("Origin: https://other.example"), 403),
        (handshake_fields("Content-Length: 2"), 400),
    ],
)
def test_what_is_no_handshake(serve_old, fields, status):
    server = serve_old("chat", 0, WAYS["h1"])
    client = server.open()
    answer = client.ask("/chat/handshake/", *fields, **({"body": b"xy"} if len(fields) == 5 and status == 400 else {}))
    assert answer.status == status
    expected = ("13", "websocket") if status == 426 else (None, None)
    assert (answer["Sec-WebSocket-Version"], answer["Upgrade"]) == expected
    assert answer["Sec-WebSocket-Accept"] is None


# ── level 3 ──


def test_echo(start):
    server = start()
    socket = server.socket("/default")
    for text in ("a", "", "ü" * 5000, "z" * 500_000):
        assert socket.echo(text) == text
    socket.send(b"\xff\0")
    assert socket.frame() == (BINARY, b"\xff\0")
    assert socket.close(4001) == 4001
    server.wait_log('service web: close 4001 "" 0')
    await_count(server, 0)


def test_it_is_opened_late(start):
    server = start()
    socket, other = server.socket("/late"), server.socket("/plain")
    assert socket.head["X-Version"] == "1"
    socket.send("hello")
    assert other.text() == "hello"


def test_channels(start):
    server = start()
    members = [server.socket("/plain?channel=1") for _ in range(3)]
    other, default = server.socket("/plain?channel=2"), server.socket("/default")
    assert [get(server, f"/count?channel={n}") for n in (1, 2, 3, 9, -1)] == ["3", "1", "1", "0", "5"]
    members[0].send("hello")
    assert members[1].text() == members[2].text() == "hello"
    assert members[2].echo("/join 2") == "0" and members[2].echo("/count 2") == "2"
    assert other.echo("/count 1") == "2"
    other.send("to the second")
    assert members[2].text() == "to the second"
    members[0].send("/all everyone")
    for socket in (*members, other, default):
        assert socket.text() == "everyone"
    assert get(server, "/publish?channel=3&text=three") == "0"
    assert default.text() == "three"
    assert members[0].echo("/join -1") == "0" and members[0].echo("/count 1") == "1"
    for socket in members:
        socket.reset()
    await_count(server, 2)
    assert [get(server, f"/count?channel={n}") for n in (1, 2)] == ["0", "1"]


def test_channels_with_names(start):
    server = start()
    members = [server.socket("/plain?channel=1") for _ in range(4)]
    other = server.socket("/plain?channel=2")
    assert [member.echo("/enter news") for member in members] == ["0"] * 4 and other.echo("/in news") == "4"
    assert [get(server, f"/count?{row}") for row in ("name=news", "name=new", "channel=1")] == ["4", "0", "0"]
    assert get(server, "/publish?name=news&text=one") == get(server, "/publish?name=new&text=x") == "0"
    assert [member.text() for member in members] == ["one"] * 4
    members[0].send("/to news")  # not to itself
    assert [member.text() for member in members[1:]] == ["news"] * 3
    assert members[0].echo("/enter news") == "0" and members[0].echo("/enter other") == "0"
    assert members[1].echo("/join 2") == "0" and other.echo("/in news") == "2"
    assert get(server, "/publish?name=news&text=two") == get(server, "/publish?name=other&text=three") == "0"
    assert get(server, "/publish?channel=2&text=four") == get(server, "/publish?channel=-1&text=all") == "0"
    for socket, texts in zip((*members, other), (["three"], ["four"], ["two"], ["two"], ["four"])):
        assert [socket.text() for _ in (*texts, "all")] == [*texts, "all"]
    for member in members:
        member.reset()
    await_true(lambda: [get(server, f"/count?name={name}") for name in ("news", "other")] == ["0", "0"])


def test_the_end_of_a_channel_with_a_name(start):
    """Behind what was published before; the others stay."""
    server = start()
    members, other = [server.socket("/plain") for _ in range(6)], server.socket("/plain")
    assert [member.echo("/enter news") for member in members] == ["0"] * 6 and other.echo("/enter other") == "0"
    wrong = ("name=", "name=news&code=999", "name=news&code=1000&reason=%ff")
    assert [get(server, f"/close-channel?{row}") for row in wrong] == ["-22"] * 3
    assert get(server, "/publish?name=news&text=last") == "0"
    assert get(server, "/close-channel?name=news&code=4000&reason=over") == "0"
    assert get(server, "/close-channel?name=new") == "0"
    assert [(member.text(), *member.closed()) for member in members] == [("last", 4000, "over")] * 6
    assert get(server, "/count?name=other") == "1"
    await_true(lambda: other.echo("/in news") == "0")  # members leave when their connections have ended
    assert get(server, "/close-channel?name=other") == "0"
    other.closed()


def test_names_of_channels(start):
    """Many of them, and those that are refused."""
    server = start()
    sockets = [server.socket("/plain") for _ in range(3)]
    for n in range(200):
        assert sockets[n % 3].echo(f"/enter n{n}") == "0"
    assert [sockets[0].echo(f"/in n{n}") for n in (0, 100, 197, 198, 199)] == ["0", "0", "1", "1", "1"]
    assert sockets[0].echo("/enter " + "n" * 128) == "0" and sockets[0].echo("/enter " + "n" * 129) == "-22"
    assert get(server, f"/publish?name={'n' * 129}&text=x") == "-22" and sockets[1].echo("/in " + "n" * 129) == "0"
    assert get(server, f"/publish?name={'n' * 128}&text=x") == "0" and sockets[0].text() == "x"
    server.wait_log(r"websocket->join\(\): the name of the channel is NULL, empty or too long")


def test_limits_and_origins(start):
    server = start()
    socket = server.socket("/small", "Origin: https://a.example")
    socket.send("x" * 101)
    assert socket.closed()[0] == 1009
    server.wait_log('service web: error 1009 ".+" ')
    server.wait_log("service web: close 1009")
    with pytest.raises(AssertionError, match="403"):
        server.socket("/small", "Origin: https://b.example")
    assert len(ends(server)) == 2


def test_protocols(start):
    server = start()
    rows = {"superchat": "superchat", "other, superchat, chat": "superchat", "x, chat": "chat", "other": "", None: ""}
    for asked, chosen in rows.items():
        socket = server.socket("/protocols", *([f"Sec-WebSocket-Protocol: {asked}"] if asked else []))
        assert socket.text() == chosen
        if chosen:
            assert socket.head["Sec-WebSocket-Protocol"] == chosen


@pytest.mark.parametrize("code, reason", [(1000, ""), (4999, "ü" * 61), (3000, "bye bye")])
def test_close(start, code, reason):
    server = start()
    socket = server.socket("/plain")
    socket.send(f"/close {code} {reason}")
    assert socket.closed() == (code, reason)
    server.wait_log(f'service web: close {code} ".*" {len(reason.encode())}')
    assert len(ends(server)) == 1


def test_a_client_that_does_not_answer_the_close(start):
    server = start()
    socket = server.socket("/plain")
    socket.send("/close 4000")
    assert socket.frame()[0] == CLOSE
    server.wait_log("service web: close 4000")


def test_the_service_aborts(start):
    server = start()
    socket = server.socket("/plain")
    socket.send("/abort")
    with pytest.raises((OSError, ProtocolError, StreamReset)):
        socket.exactly(1)
    server.wait_log("service web: close 1006")


def test_pings(start):
    """A ping that is not answered is TIMEOUT, then CLOSE."""
    server = start()
    socket = server.socket("/alive")
    for _ in range(3):
        assert socket.frame() == (PING, b"")
        socket.send(b"", PONG)
    server.wait_log("service web: timeout 1006")
    server.wait_log("service web: close 1006")
    assert [row.split()[0] for row in ends(server)] == ["timeout", "close"]


def test_the_client_vanishes(start):
    server = start()
    socket = server.socket("/plain")
    socket.reset()
    server.wait_log("service web: error 1006")
    server.wait_log("service web: close 1006")
    assert len(ends(server)) == 2


def test_data(start):
    server = start()
    sockets = [server.socket("/tagged") for _ in range(3)]
    for n in range(3):
        for socket in sockets[: n + 1]:
            assert socket.echo("x") == str(n + 1 - sockets.index(socket))
    sockets[0].reset()
    assert sockets[1].close() == 1000
    server.wait_log("service web: close", 2)


def test_back_pressure(start, way):
    server = start()
    rest = {"window": 4000} if way.h2 else {"rcvbuf": 4096}
    socket = server.socket("/flood", **rest)
    for n in range(2000):
        assert int(socket.text()) == n
    socket.reset()
    await_count(server, 0)
    assert not re.search(rf"the producer got (?!-{errno.EPIPE}\b)", server.log), "it waits while the client is slow"


def test_a_slow_reader_loses_messages(start, way):
    server = start()
    rest = {"window": 1000, "credit": False} if way.h2 else {"rcvbuf": 4096}
    server.socket("/drop", **rest)
    server.wait_log("service web: overflow: was full")
    assert get(server, "/count") == "1"


def test_a_slow_reader_is_closed(start, way):
    server = start()
    rest = {"window": 1000, "credit": False} if way.h2 else {"rcvbuf": 4096}
    slow, quick = server.socket("/shut", **rest), server.socket("/plain")
    slow.send("go")
    server.wait_log('service web: close 1008 "reads too slowly"')
    assert quick.echo("/count -1") in "12"


def test_pause(start):
    server = start()
    socket, other = server.socket("/plain"), server.socket("/plain")
    socket.write(build_frame(TEXT, "/pause") + build_frame(TEXT, "later"))
    assert other.text() == "later"


def test_mistakes(plain):
    server = plain()
    server.baseline += CLIENT_PARTS
    socket = server.socket("/mistakes")
    results = list(map(int, socket.echo("x" * 200).split()))
    invalid, too_long = -22, -90
    wanted = [invalid] * 5 + [too_long] * 2 + [invalid] * 3 + [-1] * 4 + [invalid] + [-1, -1, 0, 0, -1, 0, 0]
    assert results == wanted
    server.wait_log(r"service web: websocket->send\(\): the WebSocket is NULL")


def test_a_websocket_that_has_ended(plain):
    server = plain({"Workers": 1})
    socket = server.socket("/leaving")
    assert socket.echo("x") == "x"
    assert socket.close() == 1000
    await_count(server, 0)
    assert get(server, "/gone") == "-116 -116 ."
    server.wait_log(r"service web: websocket->\w+\(\): the WebSocket has ended")


# ── clients of other servers ──


def test_connect(plain):
    """A service talks to itself; what its clients receive goes to channel 7."""
    server = plain()
    server.baseline += CLIENT_PARTS
    watcher = server.socket("/plain?channel=7")
    host, port = server.addresses[0]
    assert get(server, f"/connect?to={host}:{port}/web/default") == "1"
    assert watcher.text() == "hello from 2"
    assert get(server, f"/connect?to={host}:{port}/web/protocols") == "1"
    assert watcher.text() == "superchat"
    server.baseline += 4  # two WebSockets, both ends of which are the server's


def test_connect_fails(plain):
    server = plain()
    server.baseline += CLIENT_PARTS
    host, port = server.addresses[0]
    assert get(server, f"/connect?to={host}:{port}/web/count") == "1"
    server.wait_log('service web: error 1006 ".+" ')
    server.wait_log("service web: close 1006")
    assert get(server, "/connect?to=") == "0"
    server.wait_log(r'service web: websocket->connect\(\): "ws://": ')


@contextlib.contextmanager
def other_server():
    """A server that accepts one WebSocket: yields its port, and a function that returns its socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        made = []

        def accept():
            conn, _ = listener.accept()
            made.append(conn)
            conn.settimeout(60)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += conn.recv(4096)
            key = re.search(rb"Sec-WebSocket-Key: (\S+)", head)[1]
            proof = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
            conn.sendall(b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ")
            conn.sendall(base64.b64encode(proof) + b"\r\n\r\n")
            return conn

        yield listener.getsockname()[1], accept
        for conn in made:
            conn.close()


@pytest.mark.parametrize("workers", [1, 3])
def test_another_server(plain, workers):
    """What it sends is published; it is notified when the service ends."""
    server = plain({"Workers": workers, "ShutdownTimeout": "100ms"})
    server.baseline += CLIENT_PARTS + 1
    with other_server() as (port, accept):
        watcher = server.socket("/plain?channel=7")
        assert get(server, f"/connect?to=127.0.0.1:{port}/") == "1"
        conn = accept()
        conn.sendall(b"\x81\x05hello")
        assert watcher.text() == "hello"
        replace(server, 2)
        server.wait_log("service web: exit")
        server.wait_log("service web: close 1001")
        assert conn.recv(1000)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_server_stops_with_only_a_client(plain, workers):
    server = plain({"Workers": workers})
    server.baseline += CLIENT_PARTS + 1
    with other_server() as (port, accept):
        assert get(server, f"/connect?to=127.0.0.1:{port}/") == "1"
        conn = accept()
        conn.sendall(b"\x81\x05hello")
        assert conn.recv(1000)
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        server.wait_log("service web: close 1001")


def test_the_server_stops_while_a_client_connects(plain):
    server = plain({"Workers": 1})
    server.baseline += CLIENT_PARTS + 1
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as stack:
        for _ in range(3):  # they are not accepted, and further ones have to wait
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        assert get(server, f"/connect?to=127.0.0.1:{listener.getsockname()[1]}/") == "1"
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        server.wait_log("service web: close 1001")


# ── reloads ──


def replace(server, version):
    build_service(server.services, "web", SOURCE, warnings=WARNINGS, flags=[f'-DVERSION="{version}"'])
    return reload(server)


def test_it_survives_reloads(start):
    server = start({"ShutdownTimeout": "100ms"})
    one, two = server.socket("/plain"), server.socket("/plain")
    for n in range(5):
        reload(server)
        one.send(f"turn {n}")
        assert two.text() == f"turn {n}"
    assert one.close() == 1000


def test_a_changed_service(start):
    """Those of the old one are closed with 1012; the new one serves at once, and does not hear the old one."""
    server = start({"ShutdownTimeout": "5s"})
    old = server.socket("/plain")
    replace(server, 2)
    new = server.socket("/plain")
    assert old.echo("/version") == "1" and new.echo("/version") == "2"
    old.send("from the old one")
    assert old.closed() == (1012, "")
    server.wait_log('service web: close 1012 "" 0')
    server.wait_log("service web: exit")
    assert new.echo("/count -1") == "1"


def test_a_removed_service(plain):
    server = plain({"ShutdownTimeout": "200ms"})
    socket = server.socket("/plain")
    site = server.conf / "sites" / "default"
    site.write_text(site.read_text().replace(web_service("web"), ""))
    reload(server)
    assert socket.closed() == (1012, "")
    server.wait_log("service web: exit")


def test_a_changed_service_whose_client_does_not_read(start, way):
    rest = {"window": 1000, "credit": False} if way.h2 else {"rcvbuf": 4096}
    server = start({"ShutdownTimeout": "200ms"})
    server.socket("/flood", **rest)
    replace(server, 2)
    server.wait_log("service web: exit")


def test_the_server_stops(start):
    server = start()
    socket = server.socket("/plain")
    server.send_signal(signal.SIGTERM)
    assert socket.closed()[0] == 1001
    server.wait_log("service web: close 1001")
    assert server.wait() == 0


def test_the_server_stops_with_a_client(plain):
    server = plain()
    server.baseline += CLIENT_PARTS
    watcher = server.socket("/plain?channel=7")
    host, port = server.addresses[0]
    assert get(server, f"/connect?to={host}:{port}/web/default") == "1"
    assert watcher.text().startswith("hello")
    watcher.close()
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0


# ── threads ──


@pytest.mark.concurrent
def test_broadcasts_from_threads(plain):
    """Messages of each thread come in order, and each exactly once, while others come from callbacks of workers."""
    server = plain({"Workers": 4})
    sockets = [server.socket("/plain?channel=5") for _ in range(16)]
    get(server, "/threads?n=200")

    def talk(i):
        for _ in range(20):
            sockets[i].send("said")
        seen = {"said": 0, "a": 0, "b": 0, "c": 0}
        while sum(seen.values()) < 600 + 15 * 20:
            name, *number = sockets[i].text().split()
            assert not number or int(number[0]) == seen[name]
            seen[name] += 1
        assert seen == {"said": 300, "a": 200, "b": 200, "c": 200}
        assert sockets[i].echo("/count 5") == "16"

    in_parallel(len(sockets), talk)


@pytest.mark.concurrent
def test_websockets_over_reloads(plain, tmp_path):
    """Threads send while versions change and clients come and go."""
    server = plain({"Workers": 2, "ShutdownTimeout": "100ms"})
    for turn in range(20):
        sockets = [server.socket("/plain?channel=5") for _ in range(10)]
        get(server, "/threads?n=5")
        for socket in sockets[::3]:
            socket.reset()
        if turn % 4 == 3:
            replace(server, 2 + turn // 4 % 2)
        else:
            reload(server)
        for socket in sockets[1::3]:
            socket.client.close()
    replace(server, 3)
    server.wait_log("service web: exit", 6)
    await_count(server, 0)


@pytest.mark.concurrent
def test_no_message_is_lost_by_a_reload(plain):
    """Threads send while the configuration is read again; each WebSocket gets each message once, in order."""
    server = plain({"Workers": 3, "ShutdownTimeout": "100ms"})
    sockets = [server.socket("/plain?channel=5") for _ in range(60)]
    for _ in range(20):
        get(server, "/threads?n=10")
        reload(server)
    for socket in sockets:
        seen = {"a": 0, "b": 0, "c": 0}
        for _ in range(600):
            name, number = socket.text().split()[:2]
            assert int(number) == seen[name]
            seen[name] += 1
        assert socket.echo("/count 5") == "60"


# ── what goes wrong in services ──


@pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")
def test_a_crash_in_a_callback(plain):
    server = plain(env=NO_HANDLERS)
    server.stopping = True
    server.socket("/plain").send("/crash")
    assert server.wait() == -signal.SIGSEGV
    assert re.search(r'error the service "web" has crashed: SIGSEGV.* in worker \d$', server.log, re.M), server.log
    assert re.search(r"error     #\d " + function_of("web", "(crash|obey)") + "$", server.log, re.M), server.log
    assert re.search(r"error     #\d+ websocket\.dpkg\+0x[0-9a-f]+", server.log), server.log


def test_a_blocked_worker(plain):
    server = plain({"Workers": 1})
    socket = server.socket("/plain")
    socket.send("/block 4000")
    server.wait_log('the service "web" blocks worker 0 for more than 1 s in web.duda')
    assert socket.echo("/count -1") == "1"
