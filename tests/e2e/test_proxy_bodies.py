# SPDX-License-Identifier: Apache-2.0
"""The plugin proxy with bodies that wait: clients that are slow, and clients that leave."""

import os

import pytest

from harness import build
from harness.backend import Backend
from harness.client import ProtocolError
from harness.h2 import H2Client
from harness.messages import lines, request
from harness.proxies import TEXT, proxy_section
from harness.server import section
from harness.services import reload

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]
needs_h2 = pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can mount a disk")
KILOBYTE, MEGABYTE = 1 << 10, 1 << 20
PIECE = bytes(range(251)) * 41  # a length that no buffer has
SPOOL = "plugins/proxy/proxy.conf"
SMALL_DISK = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'


def make_body(size):
    return (PIECE * (size // len(PIECE) + 1))[:size]


@pytest.fixture
def proxy(serve, tmp_path):
    """A server whose default host passes requests to a backend, with a folder for bodies that wait."""
    folder = tmp_path / "spool"
    folder.mkdir()

    def start(backend, keys=None, spool=None, **rest):
        config = {SPOOL: section("SPOOL", {"Folder": folder, **(spool or {})})}
        settings = {"Workers": 1, "SendBuffer": "64K", "Timeout": "60s"}
        return serve(settings, text=proxy_section(backend, keys), config=config, **rest)

    start.folder = folder
    return start


@pytest.fixture(params=[pytest.param("http/1.1"), pytest.param("h2", marks=needs_h2)])
def slow_client(request):  # noqa: F811
    """Connects a client that takes nothing but what its buffers hold, until it reads."""

    def connect(server):
        if request.param == "h2":
            return server.connect(kind=H2Client, window=65535, credit=False)
        return server.connect(rcvbuf=65536)

    connect.is_h2 = request.param == "h2"
    return connect


def begin(client, target="/"):
    """Asks, and takes the head only."""
    if isinstance(client, H2Client):
        number = client.begin(target)
        return client.head(number)
    client.send(request(target))
    return client.head()


def take(client, size):
    """The rest of the body that begin() has left."""
    if isinstance(client, H2Client):
        client.grant(1 << 30)
        client.grant(1 << 30, 1)
        return client.response(1).body
    return client.exactly(size)


def send_large(body, fields=(), framing="length"):
    """A script that answers all requests: with `body`, or with "hello"; and tells when the server has read it all."""

    def script(peer):
        while True:
            if peer.request().target != "/":
                peer.respond(b"hello", TEXT)
                continue
            if framing == "chunks":
                peer.respond(b"", *(fields or [TEXT]), chunks=[body[:99_999], body[99_999:]], trailer=b"Last: 1\r\n")
            else:
                peer.respond(body, *(fields or [TEXT]))
            peer.flush()
            peer.backend.tell("sent")

    return script


# ── responses ──


@pytest.mark.parametrize("framing", ["length", "chunks"])
@pytest.mark.parametrize("size", [200 * KILOBYTE, 700 * KILOBYTE, 10 * MEGABYTE])
def test_a_slow_client_holds_no_backend(proxy, tmp_path, slow_client, size, framing):
    """Its connection serves the next request while the client still reads."""
    body = make_body(size)
    with Backend(send_large(body, framing=framing), path=tmp_path / "app.sock") as backend:
        server = proxy(backend)
        with slow_client(server) as slow, server.connect() as other:
            assert begin(slow).status == 200
            assert backend.events("sent").wait(30)
            for _ in range(3):
                assert other.ask("/other").body == b"hello"
            if framing == "length" or slow_client.is_h2:
                assert take(slow, size) == body
            else:
                got, trailers = slow.chunks()
                assert got == body and trailers == [("Last", "1")]
        assert len(backend.peers) == 1


SIZES = [("128K", 127), ("128K", 129), ("128K", 600), ("128K 256K", 128), ("128K 256K", 383), ("128K 256K", 384),
         ("128K 256K", 385), ("128K 256K", 2000), ("256K 64M", 257), ("Off", 10), ("Off", 600)]  # fmt: skip


@pytest.mark.parametrize("limits, size", SIZES)
def test_sizes_around_the_limits(proxy, tmp_path, slow_client, limits, size):
    """Whatever is kept, the client gets it all, in order."""
    for more in (-1, 0, 1):
        body = make_body(size * KILOBYTE + more)
        with Backend(send_large(body), path=tmp_path / f"app{more}.sock") as backend:
            with slow_client(proxy(backend, {"BufferResponse": limits})) as slow:
                assert begin(slow).status == 200
                backend.events("sent").wait(0.1)
                assert take(slow, len(body)) == body


HELD = {
    "Off": ({"BufferResponse": "Off"}, None, []),
    "128K": ({"BufferResponse": "128K"}, None, []),
    "128K 1M": ({"BufferResponse": "128K 1M"}, None, []),
    "an event stream": (None, None, ["Content-Type: Text/Event-Stream; charset=utf-8"]),
    "a stream of images": (None, None, ["Content-Type: multipart/x-mixed-replace; boundary=a"]),
    "X-Accel-Buffering": (None, None, [TEXT, "X-Accel-Buffering: no"]),
    "MaxMemory": (None, {"MaxMemory": "0"}, []),
    "MaxDisk": (None, {"MaxDisk": "0"}, []),
    "MaxFiles": (None, {"MaxFiles": "0"}, []),
}


@pytest.mark.parametrize("why", HELD)
def test_what_is_not_kept_stops_the_backend(proxy, tmp_path, why):
    """Limits, a budget that is used up, and streams that must not wait are no errors."""
    keys, spool, fields = HELD[why]
    body = make_body(8 * MEGABYTE)
    with Backend(send_large(body, fields), path=tmp_path / "app.sock") as backend:
        server = proxy(backend, keys, spool)
        with server.connect(rcvbuf=65536) as slow, server.connect() as other:
            assert begin(slow).status == 200
            assert not backend.events("sent").wait(0.5)
            assert other.ask("/other").body == b"hello"
            assert take(slow, len(body)) == body
        assert len(backend.peers) == 2


@needs_root
def test_a_full_disk_stops_the_backend(proxy, tmp_path, slow_client):
    body = make_body(8 * MEGABYTE)
    wrapper = ["unshare", "-m", "sh", "-c", SMALL_DISK, proxy.folder]
    with Backend(send_large(body), path=tmp_path / "app.sock") as backend:
        server = proxy(backend, wrapper=wrapper)
        with slow_client(server) as slow:
            assert begin(slow).status == 200
            assert not backend.events("sent").wait(0.5)
            assert take(slow, len(body)) == body


def test_a_client_that_leaves_what_was_kept(proxy, tmp_path, slow_client):
    """Its files are closed, and its backend serves others."""
    body = make_body(4 * MEGABYTE)
    with Backend(send_large(body), path=tmp_path / "app.sock") as backend:
        server = proxy(backend)
        for _ in range(5):
            with slow_client(server) as slow:
                begin(slow)
                assert backend.events("sent").wait(30)
        with server.connect() as client:
            assert client.ask("/other").body == b"hello"


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_backend_that_ends_amid_what_is_kept(proxy, tmp_path, end):
    """The client sees that the response is cut."""

    def cut(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 9000000") + b"x" * 3_000_000)
        peer.flush()
        if end == "reset":
            peer.reset()

    with Backend(cut, path=tmp_path / "app.sock") as backend:
        with proxy(backend).connect(rcvbuf=65536) as slow:
            assert begin(slow).status == 200
            backend.wait_open(0)
            with pytest.raises((ProtocolError, ConnectionError)):
                take(slow, 9_000_000)


def test_a_backend_that_stalls_amid_what_is_kept(proxy, tmp_path):
    """ReadTimeout counts while the backend is waited for, though the client has not taken all."""

    def stall(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 9000000") + b"x" * 3_000_000)
        peer.wait_end()

    with Backend(stall, path=tmp_path / "app.sock") as backend:
        with proxy(backend, {"ReadTimeout": "300ms"}).connect(rcvbuf=65536) as slow:
            assert begin(slow).status == 200
            backend.wait_open(0)
            with pytest.raises((ProtocolError, ConnectionError)):
                take(slow, 9_000_000)


def test_reloads_amid_what_is_kept(proxy, tmp_path):
    """Sections, limits and folders that change: what is kept arrives, and nothing is left of configurations."""
    body = make_body(3 * MEGABYTE)
    other = tmp_path / "other"
    other.mkdir()
    spools = [{"Folder": other}, {"Folder": proxy.folder, "MaxDisk": "1M"}, {"Folder": other, "MaxMemory": "0"},
              {"Folder": proxy.folder}]  # fmt: skip
    with Backend(send_large(body), path=tmp_path / "app.sock") as backend:
        server = proxy(backend)
        for turn in range(12):
            with server.connect(rcvbuf=65536) as slow:
                assert begin(slow).status == 200
                (server.conf / SPOOL).write_text(section("SPOOL", {"Folder": tmp_path / "none"}))
                reload(server, accepted=False)
                (server.conf / SPOOL).write_text(section("SPOOL", spools[turn % 4]))
                reload(server)
                assert take(slow, len(body)) == body


# ── memory ──


@pytest.mark.budget
def test_memory_of_large_responses(proxy, tmp_path):
    """A gigabyte that clients take slowly, with what waits in memory and on the disk: each of them."""
    piece, pieces, count = make_body(MEGABYTE), 128, 8

    def send(peer):
        while peer.request().target == "/once":
            peer.respond(b"hello", TEXT)
        peer.send(lines("HTTP/1.1 200 OK", TEXT, f"Content-Length: {pieces * len(piece)}"))
        for _ in range(pieces):
            peer.send(piece)
        peer.wait_end()

    with Backend(send, path=tmp_path / "app.sock") as backend:
        server = proxy(backend)
        with server.connect() as client:
            assert client.ask("/once").body == b"hello"
        before, most = server.memory_kb("Private_Dirty"), 0
        clients = [server.connect(rcvbuf=65536) for _ in range(count)]
        assert {begin(slow).status for slow in clients} == {200}
        for _ in range(pieces):
            for slow in clients:
                assert slow.exactly(len(piece)) == piece
            most = max(most, server.memory_kb("Private_Dirty") - before)
        print(f"{most / count:.0f} KB for each slow client")
        assert most / count <= 256
