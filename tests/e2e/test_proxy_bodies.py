# SPDX-License-Identifier: Apache-2.0
"""The plugin proxy with bodies that wait: clients that are slow, and clients that leave."""

import os
import signal

import pytest

from harness import build
from harness.backend import Backend
from harness.client import Client, ProtocolError
from harness.h2 import H2Client
from harness.messages import chunked, lines, request, sized
from harness.preload import preload
from harness.proxies import TEXT, proxy_section
from harness.server import await_true, run, section, write_config
from harness.services import CONTROL_THREAD, reload

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]
needs_h2 = pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
needs_mounts = pytest.mark.skipif(not build.can_mount(), reason="NOT TESTED: processes have no mounts of their own")
KILOBYTE, MEGABYTE = 1 << 10, 1 << 20
PIECE = bytes(range(251)) * 41  # a length that no buffer has
SPOOL = "plugins/proxy/proxy.conf"
SMALL_DISK = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'

FAILING_WRITES = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t pwrite64(int fd, const void *from, size_t size, off_t at)
{
    static _Atomic long calls;
    if (++calls % atol(getenv("FAIL_EACH")) == 0) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, from, size, at);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
    return pwrite64(fd, from, size, at);
}
"""


def make_body(size):
    return (PIECE * (size // len(PIECE) + 1))[:size]


@pytest.fixture
def proxy(serve, tmp_path):
    """A server whose default host passes requests to a backend, with a folder for bodies that wait."""
    folder = tmp_path / "spool"
    folder.mkdir()

    def start(backend, keys=None, spool=None, settings=None, **rest):
        config = {SPOOL: section("SPOOL", {"Folder": folder, **(spool or {})})}
        common = {"Workers": 1, "SendBuffer": "64K", "Timeout": "60s"}
        return serve({**common, **(settings or {})}, text=proxy_section(backend, keys), config=config, **rest)

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
            assert backend.events("sent").wait(90)
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


@needs_mounts
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
                assert backend.events("sent").wait(90)
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

    path = None if end == "reset" else tmp_path / "app.sock"  # Unix sockets have no RST
    with Backend(cut, path=path) as backend:
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


def test_a_folder_that_is_made_again(proxy):
    """The former one is gone with its files: a reload says so, or finds the new one."""
    body = make_body(MEGABYTE)
    with Backend(echo_length) as backend:
        server = proxy(backend, {"SpoolRequest": "On"})

        def put():
            with server.connect() as client:
                upload(client, body)
                return client.response("PUT")

        assert put().body == body
        proxy.folder.rmdir()
        assert put().status == 503
        server.wait_log(f"the body of a request cannot be kept in {proxy.folder}")
        said = reload(server, accepted=False)
        assert any(f'{SPOOL}:2' in line and f'no file can be made in "{proxy.folder}"' in line for line in said)
        proxy.folder.mkdir()
        reload(server)
        assert put().body == body


# ── requests ──


def echo_length(peer):
    """Answers each request with its body."""
    while True:
        peer.respond(peer.request().body, TEXT)


def upload(client, body, length=True, end=True):
    """Sends the head, and a part of the body, or all of it."""
    if isinstance(client, H2Client):
        fields = [f"Content-Length: {len(body)}"] if length else []
        return client.begin("/up", *fields, method="PUT", body=body if end else body[:1000], end=end)
    framing = sized(body) if length else "Transfer-Encoding: chunked"
    client.send(lines("PUT /up HTTP/1.1", "Host: a", framing))
    client.send((body if length else chunked(body)) if end else body[:1000] if length else chunked(body[:1000])[:-5])
    return None


@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("size", [1, 65536, 65537, 127 * KILOBYTE, 129 * KILOBYTE, 3 * MEGABYTE])
def test_a_request_is_received_whole(proxy, slow_client, size, length):
    """The backend is dialed behind its last byte, and gets a length."""
    body = make_body(size)
    with Backend(echo_length) as backend:
        server = proxy(backend, {"SpoolRequest": "On"})
        with server.connect(kind=H2Client if slow_client.is_h2 else Client) as client:
            number = upload(client, body, length)
            got = client.response(number) if slow_client.is_h2 else client.response("PUT")
            assert got.status == 200 and got.body == body
        assert backend.requests[0].length == size


def test_a_slow_request_holds_no_backend(proxy, slow_client):
    body = make_body(300 * KILOBYTE)
    with Backend(echo_length) as backend:
        server = proxy(backend, {"SpoolRequest": "1M"})
        with server.connect(kind=H2Client if slow_client.is_h2 else Client) as slow, server.connect() as other:
            number = upload(slow, body, end=False)
            assert other.ask("/").status == 200 and len(backend.peers) == 1
            assert [each.target for each in backend.requests] == ["/"]
            if slow_client.is_h2:
                slow.more(number, body[1000:], end=True)
                assert slow.response(number).body == body
            else:
                slow.send(body[1000:])
                assert slow.response("PUT").body == body
        assert len(backend.peers) == 1


@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("limit", [1000, 100_000, 400_000])
def test_a_request_above_the_limit(proxy, slow_client, limit, length):
    """413, and the backend has seen nothing."""
    with Backend(echo_length) as backend:
        server = proxy(backend, {"SpoolRequest": f"{limit}B"})
        for size, status in ((limit, 200), (limit + 1, 413)):
            with server.connect(kind=H2Client if slow_client.is_h2 else Client) as client:
                number = upload(client, make_body(size), length)
                got = client.response(number) if slow_client.is_h2 else client.response("PUT")
                assert got.status == status
        assert len(backend.requests) == 1


def test_an_expected_request_is_invited(proxy):
    """By the proxy, which then says nothing of it to the backend."""
    with Backend(echo_length) as backend:
        with proxy(backend, {"SpoolRequest": "On"}).connect() as client:
            client.send(lines("POST / HTTP/1.1", "Host: a", "Content-Length: 5", "Expect: 100-continue"))
            assert client.interim().status == 100 and not backend.peers
            client.send(b"hello")
            assert client.response("POST").body == b"hello"
        assert backend.requests[0]["Expect"] is None


@pytest.mark.parametrize("spool", [{"MaxMemory": "0"}, {"MaxDisk": "0"}, {"MaxFiles": "0"}, {"MaxDisk": "256K"}])
def test_a_request_above_the_budget(proxy, slow_client, spool):
    with Backend(echo_length) as backend:
        server = proxy(backend, {"SpoolRequest": "On"}, spool)
        with server.connect(kind=H2Client if slow_client.is_h2 else Client) as client:
            number = upload(client, make_body(2 * MEGABYTE))
            got = client.response(number) if slow_client.is_h2 else client.response("PUT")
            assert (got.status, got["Proxy-Status"]) == (503, "monkey; error=proxy_internal_error")
        assert not backend.peers


@needs_mounts
def test_a_request_above_a_full_disk(proxy):
    wrapper = ["unshare", "-m", "sh", "-c", SMALL_DISK, proxy.folder]
    with Backend(echo_length) as backend:
        server = proxy(backend, {"SpoolRequest": "On"}, wrapper=wrapper)
        for size, status in ((900 * KILOBYTE, 200), (2 * MEGABYTE, 503), (900 * KILOBYTE, 200)):
            body = make_body(size)
            with server.connect() as client:
                client.send_in_background(lines("PUT /up HTTP/1.1", "Host: a", sized(body)) + body)
                assert client.response("PUT").status == status


@pytest.mark.parametrize("size", [10, 100 * KILOBYTE, 2 * MEGABYTE])
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_received_request_is_sent_again(proxy, tmp_path, size, method):
    """A kept connection that ends is no loss for a method that may be repeated, nor is any other repeated."""

    def end_at_the_second(peer):
        peer.request()
        peer.respond(b"hello", TEXT)
        peer.head()
        if size > 1000:
            peer.exactly(1000)
        peer.reset()

    body = make_body(size)
    with Backend([end_at_the_second, echo_length], path=tmp_path / "app.sock") as backend:
        with proxy(backend, {"SpoolRequest": "On"}).connect() as client:
            assert client.ask("/1").body == b"hello"
            got = client.ask("/2", method=method, body=body)
            assert (got.status, got.body) == (200, body) if method == "PUT" else got.status == 502
        assert [each.target for each in backend.requests] == (["/1", "/2"] if method == "PUT" else ["/1"])


def test_clients_that_leave_amid_a_request(proxy, slow_client):
    """Nothing is left of what was received, and nothing was sent."""
    body = make_body(2 * MEGABYTE)
    with Backend(echo_length) as backend:
        server = proxy(backend, {"SpoolRequest": "On"})
        for _ in range(5):
            with server.connect(kind=H2Client if slow_client.is_h2 else Client) as client:
                upload(client, body, end=False)
        with server.connect() as client:
            assert client.ask("/").status == 200
        assert len(backend.requests) == 1


def test_reloads_amid_requests_that_are_received(proxy):
    """Limits that change, and sections without: the request is passed on as it began."""
    body = make_body(600 * KILOBYTE)
    with Backend(echo_length) as backend:
        server = proxy(backend, {"SpoolRequest": "On"})
        site = server.conf / "sites" / "default"
        text = site.read_text()
        for turn in range(8):
            with server.connect() as client:
                upload(client, body, end=False)
                site.write_text(text.replace("SpoolRequest On", ["SpoolRequest 1K", "SpoolRequest Off"][turn % 2]))
                reload(server)
                client.send(body[1000:])
                assert client.response("PUT").body == body
            site.write_text(text)
            reload(server)


def test_a_former_backend_is_not_kept(proxy):
    """Its connection is opened behind the reload that leaves it out, for a request that began before."""
    body = make_body(2000)
    with Backend(echo_length) as former, Backend(echo_length) as backend:
        server = proxy(former, {"SpoolRequest": "On", "KeepAliveTimeout": "1h"})
        site = server.conf / "sites" / "default"
        with server.connect() as client:
            upload(client, body, end=False)
            site.write_text(site.read_text().replace(former.url, backend.url))
            reload(server)
            client.send(body[1000:])
            assert client.response("PUT").body == body
            former.wait_open(0)
            assert len(former.peers) == 1 and not backend.peers
    server.baseline += CONTROL_THREAD


@pytest.mark.parametrize("folder", ["/proc", "/no/such/folder", "/etc/passwd"])
def test_a_folder_that_cannot_be_written(tmp_path, site_root, folder):
    text = proxy_section(None, {"To": "http://127.0.0.1:1", "SpoolRequest": "On"})
    write_config(tmp_path / "conf", site_root, text=text, files={SPOOL: section("SPOOL", {"Folder": folder})})
    got = run("-c", tmp_path / "conf", "--test")
    assert got.returncode == 1
    assert f'no file can be made in "{folder}"' in got.stderr and f"{SPOOL}:2" in got.stderr


@needs_mounts
@needs_mounts
def test_a_default_folder_that_cannot_be_written(tmp_path, site_root):
    """SpoolRequest needs one; BufferResponse does without."""
    wrapper = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o ro none /var/tmp && exec "$0" "$@"']
    for keys, returned in (({"SpoolRequest": "1M"}, 1), ({}, 0)):
        text = proxy_section(None, {"To": "http://127.0.0.1:1", **keys})
        write_config(tmp_path / "conf", site_root, text=text)
        got = run(*wrapper[1:], build.binary(), "-c", tmp_path / "conf", "--test", program=wrapper[0])
        assert got.returncode == returned, got.stderr
        if returned:
            assert 'SpoolRequest needs a folder that can be written, and "/var/tmp" cannot' in got.stderr
            assert "sites/default:" in got.stderr


MISTAKES = {
    "BufferResponse On": "a size in memory and one in a file",
    "BufferResponse 1K": "the size in memory is from 128K to 64M",
    "BufferResponse 256K 64M 1G": "a size in memory and one in a file",
    "BufferResponse 256K 64X": "a size in memory and one in a file",
    "SpoolRequest 0": "the length of the longest body",
    "SpoolRequest 1M 2M": "the length of the longest body",
    "SpoolRequest yes": "the length of the longest body",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes(tmp_path, site_root, line):
    write_config(tmp_path / "conf", site_root, text=f"[PROXY]\n    To http://a\n    {line}\n")
    got = run("-c", tmp_path / "conf", "--test")
    assert got.returncode == 1
    assert MISTAKES[line] in got.stderr and "sites/default:" in got.stderr


@pytest.fixture(scope="module")
def failing_writes(tmp_path_factory):
    """Returns the environment of a server whose n-th write to a file fails."""
    environment = preload(tmp_path_factory.mktemp("library"), FAILING_WRITES)
    return lambda n: {**environment, "FAIL_EACH": str(n)}


@pytest.mark.parametrize("each", [1, 2, 3, 7, 20])
def test_each_nth_write_fails(proxy, tmp_path, failing_writes, each):
    """A response is complete in any case; a request is passed on whole, or is 503."""
    body, statuses = make_body(4 * MEGABYTE), set()
    sent = body[:MEGABYTE]

    def script(peer):
        while True:
            got = peer.request()
            if got.method == "GET":
                peer.respond(body, TEXT)
            else:
                assert got.body == sent
                peer.respond(b"hello", TEXT)

    with Backend(script, path=tmp_path / "app.sock") as backend:
        server = proxy(backend, {"SpoolRequest": "On"}, env=failing_writes(each))
        for _ in range(4):
            with server.connect(rcvbuf=65536) as slow:
                assert begin(slow).status == 200
                backend.events("never").wait(0.1)
                assert take(slow, len(body)) == body
            with server.connect() as client:
                client.send_in_background(lines("PUT / HTTP/1.1", "Host: a", sized(sent)) + sent)
                statuses.add(client.response("PUT").status)
    assert 503 in statuses or each > 7
    assert statuses <= {200, 503}


# ── clients that leave ──


def answer_later(body):
    """A script that answers what is not /check when the test says so, and tells when the server has read it all."""

    def script(peer):
        while True:
            if peer.head().target == "/check":
                peer.body()
                peer.respond(b"hello", TEXT)
                continue
            peer.body()
            peer.backend.tell("has request")
            peer.wait("answer")
            peer.interim(103)
            peer.respond(b"", TEXT, chunks=[body[:5000], body[5000:]], trailer=b"Last: 1\r\n")
            peer.flush()
            peer.backend.tell("sent")

    return script


LEAVE = {"OnClientLeave": "Finish"}


def leave(server, client, number):
    """Returns when the server knows of it."""
    if isinstance(client, H2Client):
        client.cancel(number)
        client.ping()
    else:
        opened = server.descriptors()
        client.reset()
        await_true(lambda: server.descriptors() < opened, what="the close")


@pytest.mark.parametrize("size", [6000, 3 * MEGABYTE])
@pytest.mark.parametrize("keys", [{}, {"SpoolRequest": "On"}])
def test_a_request_is_finished(proxy, tmp_path, slow_client, keys, size):
    """The backend serves it to its end; its connection, on which the client may have logged in, is closed then."""
    body = make_body(50 * KILOBYTE)
    with Backend(answer_later(make_body(size)), path=tmp_path / "app.sock") as backend:
        server = proxy(backend, {**LEAVE, **keys})
        client = server.connect(kind=H2Client if slow_client.is_h2 else Client)
        number = upload(client, body)
        assert backend.events("has request").wait(90)
        leave(server, client, number)
        backend.tell("answer")
        assert backend.events("sent").wait(90)
        with server.connect() as other:
            assert other.ask("/check").body == b"hello"
        assert len(backend.peers) == 2 and backend.requests[0].body == body


def test_a_response_is_finished(proxy, tmp_path, slow_client):
    """A client that leaves amid the body, of which a part is kept and a part has not come."""
    body = make_body(8 * MEGABYTE)
    with Backend(send_large(body), path=tmp_path / "app.sock") as backend:
        server = proxy(backend, {**LEAVE, "BufferResponse": "128K 1M"})
        with slow_client(server) as slow:
            assert begin(slow).status == 200
            assert not backend.events("sent").wait(0.3)
        assert backend.events("sent").wait(90)
        with server.connect() as other:
            assert other.ask("/check").body == b"hello"
        assert len(backend.peers) == 2


def test_a_request_is_finished_over_reloads(proxy, tmp_path):
    """Under the configuration with which it began, which ends with it."""
    with Backend(answer_later(make_body(MEGABYTE)), path=tmp_path / "app.sock") as backend:
        server = proxy(backend, LEAVE)
        site = server.conf / "sites" / "default"
        text = site.read_text()
        client = server.connect()
        upload(client, b"hello")
        assert backend.events("has request").wait(90)
        client.reset()
        for each in (text.replace("Finish", "Cancel"), text.replace(proxy_section(backend, LEAVE), ""), text):
            site.write_text(each)
            reload(server)
        backend.tell("answer")
        assert backend.events("sent").wait(90)
        with server.connect() as other:
            assert other.ask("/check").body == b"hello"
        assert len(backend.peers) == 2


@pytest.mark.parametrize("reloads", [0, 1])
@pytest.mark.parametrize("has_left", [True, False], ids=["left", "leaves"])
def test_a_stop_waits_for_it(proxy, reloads, has_left):
    """Within ShutdownTimeout, as for a request whose client waits; also if the client leaves when the server stops."""
    with Backend(answer_later(b"hello")) as backend:
        server = proxy(backend, {**LEAVE, "SpoolRequest": "On"}, settings={"ShutdownTimeout": "90s"})
        client = server.connect()
        upload(client, make_body(300 * KILOBYTE))
        assert backend.events("has request").wait(90)
        if has_left:
            leave(server, client, None)
        for _ in range(reloads):
            reload(server)
        server.send_signal(signal.SIGTERM)
        server.wait_log("signal 15: stopping")
        if not has_left:
            client.reset()
        backend.tell("answer")
        assert backend.events("sent").wait(90)
        assert server.wait() == 0
        assert "ShutdownTimeout is over" not in server.log


@pytest.mark.parametrize("reloads", [0, 1])
def test_a_stop_ends_it(proxy, reloads):
    """Once ShutdownTimeout is over."""
    with Backend(answer_later(b"hello")) as backend:
        server = proxy(backend, {**LEAVE, "SpoolRequest": "On"}, settings={"ShutdownTimeout": "100ms"})
        client = server.connect()
        upload(client, make_body(300 * KILOBYTE))
        assert backend.events("has request").wait(90)
        leave(server, client, None)
        for _ in range(reloads):
            reload(server)
        server.stop()
        assert "ShutdownTimeout is over" in server.log
        backend.tell("answer")


def test_what_is_finished_has_limits(proxy):
    """ResponseTimeout, ReadTimeout and Deadline count, and there are only so many."""

    def stall(peer):
        if peer.request().target == "/body":
            peer.send(lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 1000") + b"x" * 10)
        peer.wait_end()

    for keys in ({"ResponseTimeout": "400ms", "ReadTimeout": "400ms"}, {"Deadline": "400ms"}):
        with Backend(stall) as backend:
            server = proxy(backend, {**LEAVE, **keys})
            for target in ("/head", "/body"):
                client = server.connect()
                client.send(request(target))
                backend.wait_until(lambda: backend.requests and backend.open, "a request")
                client.reset()
                backend.wait_open(0)
    with Backend(stall) as backend:
        server = proxy(backend, {**LEAVE, "ResponseTimeout": "10m"})
        for count in range(260):
            client = server.connect()
            client.send(request("/head"))
            backend.wait_requests(count + 1)
            client.reset()
        backend.wait_open(256)


def test_an_event_stream_is_not_finished(proxy, tmp_path):
    """Also if its client has left before it has begun."""

    def stream(peer):
        peer.request()
        peer.wait("left")
        peer.send(lines("HTTP/1.1 200 OK", "Content-Type: text/event-stream") + b"data: 1\n\n")
        peer.wait_end()

    with Backend(stream, path=tmp_path / "app.sock") as backend:
        client = proxy(backend, LEAVE).connect()
        client.send(request("/"))
        backend.wait_requests(1)
        client.reset()
        backend.tell("left")
        backend.wait_open(0)


@pytest.mark.parametrize("what", ["amid its body", "an event stream", "Cancel"])
def test_what_is_not_finished(proxy, what):
    """The connection to the backend ends with the client."""

    def begin_stream(peer):
        peer.head()
        if what != "an event stream":
            peer.exactly(5)
        else:
            peer.body()
            peer.send(lines("HTTP/1.1 200 OK", "Content-Type: text/event-stream") + b"data: 1\n\n")
        peer.backend.tell("has request")
        peer.wait_end()

    with Backend(begin_stream) as backend:
        client = proxy(backend, {} if what == "Cancel" else LEAVE).connect()
        if what == "an event stream":
            client.send(request("/"))
            assert client.head().status == 200
        else:
            client.send(lines("POST / HTTP/1.1", "Host: a", f"Content-Length: {5 if what == 'Cancel' else 10}"))
            client.send(b"hello")
        assert backend.events("has request").wait(90)
        client.reset()
        backend.wait_open(0)


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


@pytest.mark.budget
@pytest.mark.parametrize("spool", ["On", "Off"])
def test_memory_of_large_requests(proxy, spool):
    """A gigabyte that clients send slowly, and that a backend takes slowly: each of them, kept or streamed."""
    piece, pieces, count = make_body(MEGABYTE), 128, 8

    def take(peer):
        while peer.head().method == "GET":
            peer.body()
            peer.respond(b"hello", TEXT)
        for _ in range(pieces):
            assert peer.exactly(len(piece)) == piece
            peer.raw.clear()
        peer.respond(b"done", TEXT)

    with Backend(take, rcvbuf=65536) as backend:
        server = proxy(backend, {"SpoolRequest": spool})
        with server.connect() as client:
            assert client.ask("/once").body == b"hello"
        before, most = server.memory_kb("Private_Dirty"), 0
        clients = [server.connect() for _ in range(count)]
        for client in clients:
            client.send(lines("POST / HTTP/1.1", "Host: a", f"Content-Length: {pieces * len(piece)}"))
        for _ in range(pieces):
            for client in clients:
                client.send(piece)
            most = max(most, server.memory_kb("Private_Dirty") - before)
        for client in clients:
            assert client.response("POST").body == b"done"
            most = max(most, server.memory_kb("Private_Dirty") - before)
        print(f"{most / count:.0f} KB for each slow client")
        assert most / count <= 256
