# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests that move to the backend without copies, from socket to socket."""

import pytest

from harness import build
from harness.backend import Backend, echo
from harness.client import Client
from harness.messages import lines, request, sized
from harness.preload import preload
from harness.proxies import TEXT, proxy_section
from harness.queues import queues
from harness.server import await_true
from harness.services import reload
from test_proxy_speed import count_calls, make_body, proxy  # noqa: F401  # pylint: disable=unused-import

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]

LEAST = 65536  # a body of this length moves without copies, but for what came with its head
MEGABYTE = 1 << 20
SIZES = (13, LEAST - 1, LEAST, LEAST + 1, 200_003, MEGABYTE, 5_000_000)

# A system that moves bytes in one direction only, few at a time, or later.
SPLICE = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t size, unsigned flags)
{
    struct stat st;
    int is_socket = fstat(in, &st) == 0 && S_ISSOCK(st.st_mode);
    const char *how = getenv("SPLICE");
    if ((!strcmp(how, "no fill") && is_socket) || (!strcmp(how, "no drain") && !is_socket)) {
        errno = EINVAL;
        return -1;
    }
    if (!strcmp(how, "hold") && !is_socket && access(getenv("HOLD"), F_OK) == 0) {
        errno = EAGAIN;
        return -1;
    }
    if (!strcmp(how, "short") && size > 4097)
        size = 4097;
    return syscall(SYS_splice, in, in_at, out, out_at, size, flags);
}
"""


def post(body, target="/"):
    return lines(f"POST {target} HTTP/1.1", "Host: a", TEXT, sized(body))


def give(client, body, cuts=()):
    """Sends a request in pieces, which the server has read before the next one; returns the body of the response."""
    client.send(post(body))
    for start, end in zip([0, *cuts], cuts):
        client.send(body[start:end])
        await_true(lambda: queues(client)[1] == 0, what="the server to read")
    client.send_in_background(body[cuts[-1] if cuts else 0 :])
    return client.response("POST").body


@pytest.mark.budget
def test_calls_of_a_large_request(count_calls):  # noqa: F811
    """What came with the head is written once; the rest moves into a pipe and out of it."""
    body, rounds = make_body(MEGABYTE), 20

    def ask(client):
        client.send_in_background(post(body) + body)
        assert client.response("POST").status == 204

    def take(peer):
        while True:
            assert peer.request().body == body
            peer.send(lines("HTTP/1.1 204 No Content"))

    with Backend(take) as backend:
        calls = count_calls(backend, rounds, ask)
    assert calls["splice"] >= 2 * rounds, calls
    assert calls["sendmsg"] <= 3 * rounds, calls  # the head, what came with it, and the response
    assert calls["pipe2"] == 0, calls  # it is kept
    assert not {"openat", "pwrite64", "mmap", "brk"} & set(calls), calls


@pytest.mark.parametrize("how", [None, "no fill", "no drain", "short"])
@pytest.mark.parametrize("way", ["tcp", "unix"])
def test_bodies_are_exact(serve, tmp_path, way, how):
    with Backend(echo, path=tmp_path / "app.sock" if way == "unix" else None) as backend:
        env = {**preload(tmp_path, SPLICE), "SPLICE": how} if how else {}
        text = proxy_section(backend, {"KeepAliveTimeout": "600s"})  # longer than a loaded machine takes for a body
        server = serve({"Workers": 1}, text=text, env=env)
        with server.connect() as client:
            for size in SIZES * 2:
                body = make_body(size, size)
                assert give(client, body) == body, size
        assert len(backend.peers) == 1


@pytest.mark.parametrize("pieces", [[1], [1000], [LEAST - 1], [60_000, 60_001], [100_000, 250_000], [299_999]])
def test_client_that_sends_pieces(proxy, pieces):  # noqa: F811
    body = make_body(300_000)
    with Backend(echo) as backend:
        with proxy(backend).connect() as client:
            for _ in range(2):
                assert give(client, body, pieces) == body
        assert len(backend.peers) == 1


def test_pipelined_requests(proxy):  # noqa: F811
    """The bytes of one do not get into another."""
    bodies = [make_body(size, size) for size in (300_000, 13, 100_000, LEAST, 70_000)]
    with Backend(echo) as backend:
        with proxy(backend).connect() as client:
            client.send_in_background(b"".join(post(body) + body for body in bodies) + bytes(request("/last")))
            for body in bodies:
                assert client.response("POST").body == body
            assert client.response().status == 200


def test_backend_that_reads_slowly(proxy):  # noqa: F811
    """What waits for it stands in its own pipe; others are served meanwhile, and then all of it arrives."""
    count, body = 40, make_body(1_000_000)

    def turn(number):
        return body[8 * number :] + body[: 8 * number]

    def read_late(peer):
        number = int(peer.head().target[1:])
        if number < count:
            peer.wait("go")
        assert peer.body() == turn(number)
        peer.respond(b"hello", TEXT)
        peer.wait_end()

    def send(client, number):
        client.send_in_background(post(body, f"/{number}") + turn(number))

    with Backend(read_late, rcvbuf=4096) as backend:
        server = proxy(backend)
        clients = [server.connect() for _ in range(count)]
        for number, client in enumerate(clients):
            send(client, number)
        backend.wait_accepted(count)
        with server.connect() as other:
            send(other, count)
            assert other.response("POST").body == b"hello"
        backend.tell("go")
        for client in clients:
            assert client.response("POST").body == b"hello"
            client.close()


@pytest.mark.parametrize("where", [1, 30_000, LEAST, 200_000, 299_999])
@pytest.mark.parametrize("end", [Client.reset, Client.close, Client.shut])
def test_client_that_leaves(proxy, where, end):  # noqa: F811
    """The backend gets what has come, unless the client has reset its connection, and sees that the rest is missing."""
    body, got = make_body(300_000), []

    def read(peer):
        peer.head()
        peer.backend.tell("head")
        got.append(peer.rest())

    with Backend(read) as backend:
        server = proxy(backend)
        client = Client(server.addresses[0])
        client.send(post(body) + body[:where])
        await_true(lambda: queues(client)[1] == 0, what="the server to read")
        assert backend.events("head").wait(60)  # before it, nothing of the request is sent any more
        end(client)
        backend.wait_open(0)
        client.close()
        assert len(got) == 1 and body.startswith(got[0])
        assert end is Client.reset or len(got[0]) == where


@pytest.mark.parametrize("end", ["wait", "close", "reset", "half_close"])
@pytest.mark.parametrize("where", [0, 1000, 100_000, 400_000])
def test_response_amid_a_body(proxy, where, end):  # noqa: F811
    """It reaches the client. Unless all of the body was sent by then, that connection is not used again."""
    body = make_body(3_000_000)

    def refuse(peer):
        if peer.head().target == "/next":
            peer.respond(b"next", TEXT)
            return
        peer.exactly(where)
        peer.respond(b"no", TEXT, status=413, reason="Too Large")
        peer.flush()
        if end == "reset":
            peer.reset()
        elif end == "half_close":
            peer.half_close()
        if end in ("half_close", "wait"):
            peer.wait_end()

    with Backend(refuse, rcvbuf=65536) as backend:
        server = proxy(backend, {"KeepAliveTimeout": "100ms"})
        with server.connect() as client:
            client.send_in_background(post(body) + body)
            got = client.response("POST")
            assert got.status in ((413, 502) if end in ("close", "reset") else (413,))  # a RST can overtake it
        backend.wait_open(0)
        with server.connect() as client:
            assert client.ask("/next").body == b"next"


def test_send_timeout_amid_a_body(proxy):  # noqa: F811
    """A backend that takes no more."""
    body = make_body(8_000_000)

    def ignore(peer):
        peer.head()
        peer.exactly(500_000)
        peer.wait("end")

    with Backend(ignore, rcvbuf=4096) as backend:
        with proxy(backend, {"SendTimeout": "300ms"}).connect() as client:
            client.send_in_background(post(body) + body)
            assert client.response("POST").status == 504
        backend.tell("end")


def test_a_request_in_a_pipe_is_finished(serve, tmp_path):
    """OnClientLeave Finish: the last bytes of a body, which the backend has not taken when the client leaves."""
    body = make_body(200_000)

    def read_late(peer):
        peer.head()
        peer.wait("left")
        assert peer.body() == body
        peer.respond(b"hello", TEXT)
        peer.flush()
        peer.backend.tell("sent")

    hold = tmp_path / "hold"
    env = {**preload(tmp_path, SPLICE), "SPLICE": "hold", "HOLD": str(hold)}
    with Backend(read_late) as backend:
        server = serve({"Workers": 1}, text=proxy_section(backend, {"OnClientLeave": "Finish"}), env=env)
        client = server.connect()
        client.send(post(body) + body[:-1000])
        await_true(lambda: queues(client)[1] == 0, what="the server to read")
        hold.touch()
        client.send(body[-1000:])
        await_true(lambda: queues(client)[1] == 0, what="the server to read")
        hold.unlink()
        opened = server.descriptors()
        client.reset()
        await_true(lambda: server.descriptors() < opened, what="the close")
        backend.tell("left")
        assert backend.events("sent").wait(30)
        assert backend.requests[0].body == body


def test_reloads_amid_bodies(proxy):  # noqa: F811
    """They continue under the configuration with which they began."""
    body = make_body(2 * MEGABYTE)
    with Backend(echo) as backend:
        server = proxy(backend)
        clients = [server.connect() for _ in range(10)]
        for client in clients:
            client.send(post(body) + body[:200_000])
        backend.wait_accepted(10)
        site = server.conf / "sites" / "default"
        text = site.read_text()
        other = text.replace("[PROXY]", "[PROXY]\n    KeepAlive 1")
        for each in (other, text.replace(proxy_section(backend), ""), text):
            site.write_text(each)
            reload(server)
        for client in clients:
            client.send_in_background(body[200_000:])
        for client in clients:
            assert client.response("POST").body == body
            client.close()
