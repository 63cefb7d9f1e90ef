# SPDX-License-Identifier: Apache-2.0
"""Nothing that a client does may stop a worker, leak a descriptor or grow the memory without limit."""

import random
import signal
import time

import pytest

from harness import build
from harness.content import HELLO, LARGE
from harness.messages import LAST, chunked, lines, request
from harness.queues import queues
from harness.server import await_true, write_config

HOST = "Host: localhost"
WHOLE = {
    "get": request("/hello.txt"),
    "pipeline": request("/hello.txt") * 2,
    "body": request("/hello.txt", method="POST", body=b"0123456789"),
    "chunked": lines("POST /hello.txt HTTP/1.1", HOST, "Transfer-Encoding: chunked")
    + chunked(b"hello", trailer=b"X: y\r\n"),
    "expect": lines("POST /hello.txt HTTP/1.1", HOST, "Expect: 100-continue", "Content-Length: 3") + b"abc",
    "bad": lines("GET /hello.txt HTTP/1.1", HOST, "Bad Name: x"),
}


@pytest.mark.parametrize("manner", ["close", "reset", "half-close"])
@pytest.mark.parametrize("case", WHOLE)
def test_dropped_at_every_byte_of_a_request(site, case, manner):
    data = WHOLE[case]
    for length in range(len(data) + 1):
        client = site.connect()
        client.send(data[:length])
        if manner == "close":
            client.close()
        elif manner == "reset":
            client.reset()
        else:
            client.shut()
            client.rest()
            client.close()
    with site.connect() as client:
        client.assert_open()


@pytest.mark.parametrize("manner", ["close", "reset"])
def test_dropped_at_every_byte_of_a_response(site, manner):
    with site.connect() as client:
        client.send(request("/hello.txt"))
        client.head()
    for length in range(0, 320):
        client = site.connect(rcvbuf=1)
        client.send(request("/medium.bin"))
        while length and (got := len(client.sock.recv(length))):
            length -= got
        client.reset() if manner == "reset" else client.close()
    with site.connect() as client:
        client.assert_open()


@pytest.mark.parametrize("manner", ["close", "reset"])
def test_dropped_within_a_large_response(site, manner):
    for length in [*range(0, 3_000_000, 100_000), 262_143, 262_144, 262_145]:
        client = site.connect(rcvbuf=4096)
        client.send(request("/large.bin") * 3)
        assert client.exactly(length + 300)
        client.reset() if manner == "reset" else client.close()
    with site.connect() as client:
        client.assert_open()


def test_connect_and_leave(site):
    for i in range(300):
        client = site.connect()
        client.reset() if i % 2 else client.close()
    with site.connect() as client:
        client.assert_open()


def assert_answers(client, data):
    """Whatever was sent: HTTP comes back, or nothing, and then an end."""
    client.send_all_you_can(data)
    try:
        client.shut()
        got = client.rest()
    except (ConnectionResetError, OSError):
        return
    assert got == b"" or got.startswith(b"HTTP/1.1 "), (data, got[:200])


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes(site, seed):
    source = random.Random(seed)
    for _ in range(100):
        with site.connect() as client:
            assert_answers(client, source.randbytes(source.choice([1, 10, 100, 1000, 5000])))
    site.assert_healthy()


SEEDS = [
    *WHOLE.values(),
    request("/hundred.bin", "Range: bytes=0-9", 'If-Range: "x"', "If-None-Match: *"),
    request("/dir/../dir?%41#", "Connection: a, b"),
    lines(
        "GET http://[::1]:80/hello.txt?q HTTP/1.1",
        "Host: [::1]:80",
        "If-Modified-Since: Sun, 13 Sep 2020 12:26:40 GMT",
    ),
    lines("OPTIONS * HTTP/1.1", HOST),
    request() + chunked(b"x") + request("/x", method="POST", body=b"yy"),
]
PIECES = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b":",
    b",",
    b"/",
    b"%",
    b"%00",
    b"\xff",
    b"0",
    b"9" * 30,
    b"A" * 5000,
    b"..",
    b"HTTP/1.1",
    b"chunked",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"\r\n\r\n",
    b"bytes=-",
    b"Host: x\r\n",
]


def mutate(source, data):
    data = bytearray(data)
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(data) + 1)
        kind = source.randrange(5)
        if kind == 0 and data:
            data[at % len(data)] = source.randrange(256)
        elif kind == 1:
            data[at:at] = source.choice(PIECES)
        elif kind == 2:
            del data[at : at + source.randint(1, 20)]
        elif kind == 3:
            data[at:at] = data[source.randrange(len(data) + 1) :][: source.randint(1, 50)]
        elif data:
            data[at % len(data)] ^= 1 << source.randrange(8)
    return bytes(data)


@pytest.mark.parametrize("seed", range(8))
def test_mutated_requests(site, seed):
    source = random.Random(1000 + seed)
    for _ in range(150):
        data = b"".join(
            mutate(source, source.choice(SEEDS)) if source.random() < 0.7 else source.choice(SEEDS)
            for _ in range(source.randint(1, 4))
        )
        with site.connect() as client:
            assert_answers(client, data)
    site.assert_healthy()
    with site.connect() as client:
        client.assert_open()


# ── many, slow, greedy ──


def test_many_connections(site):
    clients = [site.connect() for _ in range(800)]
    for client in clients:
        client.send(request())
    assert all(client.response().body == HELLO for client in clients)
    for client in clients[::2]:
        client.close()
    for client in clients[1::2]:
        client.assert_open()


def test_slow_readers_do_not_starve_others(site):
    readers = [site.connect(rcvbuf=4096) for _ in range(100)]
    for reader in readers:
        reader.send(request("/large.bin"))
    with site.connect() as quick:
        for _ in range(50):
            quick.assert_open()
    assert readers[-1].response().body == LARGE


def test_slow_readers_cost_little(site):
    """Two hundred stuck downloads, each with a pipeline behind it, live in the kernel's buffers and not in ours."""
    with site.connect() as client:
        client.ask("/large.bin")
    before = site.memory_kb()
    readers = [site.connect(rcvbuf=4096) for _ in range(200)]
    for reader in readers:
        reader.send(request("/large.bin") * 20)
        reader.head()
    grown = site.memory_kb() - before
    assert grown < (40_000 if build.SANITIZED else 4_000), f"{grown} KB for 200 slow readers"


def test_slow_heads_cost_little(site):
    """Heads that stop short of their end hold their own bytes, not a buffer of the largest size."""
    before = site.memory_kb()
    slow = [site.connect() for _ in range(300)]
    for client in slow:
        client.send("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nX: " + "y" * 500)
    with site.connect() as quick:
        quick.assert_open()
    grown = site.memory_kb() - before
    assert grown < (40_000 if build.SANITIZED else 2_000), f"{grown} KB for 300 slow heads"


def test_memory_does_not_grow_with_connections(serve):
    """After a first round the second costs nothing."""
    server = serve()

    def round_of_everything():
        for data in [*WHOLE.values(), request("/large.bin"), request("/medium.bin")] * 30:
            with server.connect() as client:
                client.send(data)
                client.head()
        await_true(lambda: server.descriptors() <= server.baseline, 30)
        return server.memory_kb()

    round_of_everything()
    first = round_of_everything()
    later = [round_of_everything() for _ in range(3)]
    assert min(later) - first < (20_000 if build.SANITIZED else 300), f"{first} -> {later} KB"


def test_upload_is_not_buffered(serve):
    """An unwanted body of 40 MB passes through without being kept."""
    server = serve({"MaxDiscardSize": "100M", "MaxBodySize": "100M"})
    with server.connect() as client:
        client.assert_open()
        before = server.memory_kb()
        client.send(lines("POST /hello.txt HTTP/1.1", HOST, "Content-Length: 40000000"))
        for _ in range(400):
            client.send(bytes(100_000))
        assert client.response().status in (405, 413)
        client.send(LAST)
        assert client.response().status == 200
        assert server.memory_kb() - before < (20_000 if build.SANITIZED else 2_000)


def test_interleaved_files_never_mix(serve):
    """Sixty files under way at once on slow connections: every byte belongs to its own name."""
    files = {f"f{i}.bin": bytes([i]) * (200_000 + i) for i in range(60)}
    server = serve(files=files)
    clients = {}
    for name in files:
        clients[name] = server.connect(rcvbuf=4096)
        clients[name].send(request(f"/{name}"))
    for name, client in clients.items():
        assert client.response().body == files[name]


def test_stuck_clients_do_not_make_it_spin(serve):
    """Half-closed in the middle of everything: an event that stays pending must not be served again and again."""
    server = serve(
        {
            "Timeout": "10m",
            "SendTimeout": "10m",
            "BodyTimeout": "10m",
            "LingerTimeout": "1m",
            "KeepAliveTimeout": "10m",
        }
    )
    for data in (
        b"",
        b"GET / HT",
        request("/large.bin") * 5,
        request("/large.bin") * 400,
        lines("POST /hello.txt HTTP/1.1", HOST, "Content-Length: 60000") + b"x" * 100,
        lines("POST /hello.txt HTTP/1.1", HOST, "Content-Length: 600000") + b"x" * 100,
        lines("GET / HTTP/1.1"),
        request(),
    ):
        for shut in (False, True):
            client = server.connect(rcvbuf=4096)
            client.send(data)
            if shut:
                client.shut()
    with server.connect() as quick:
        quick.assert_open()
        server.await_idle()
        quick.assert_open()


def test_memory_limit(serve):
    """Over the limit connections are refused, not the whole server; when they are gone everything is as before."""
    server = serve({"MemoryLimit": "1M", "Timeout": "5m"})
    before = server.memory_kb()
    greedy = [server.connect() for _ in range(1500)]
    for client in greedy:
        client.send_all_you_can("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nX: " + "y" * 3000)
    most = (1 << 20) // 3000
    await_true(lambda: server.descriptors() <= server.baseline + most, 60, "the end of the others")
    assert server.memory_kb() - before < (40_000 if build.SANITIZED else 3_000)
    assert len(server.lines) < 50, "the log is flooded"
    for client in greedy:
        client.close()
    await_true(lambda: server.descriptors() <= server.baseline, 30)
    with server.connect() as client:
        client.assert_open()


def test_reloads_where_the_memory_limit_is_reached(serve):
    """What plugins need to start is not taken from what clients may hold."""
    server = serve({"MemoryLimit": "1M", "Timeout": "60s"})
    greedy = [server.connect() for _ in range(600)]
    for client in greedy:
        client.send_all_you_can("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nX: ")
    for size in (3000, 300):  # until not even the smaller of them fits
        for client in greedy:
            client.send_all_you_can("y" * size)
    server.baseline += 2  # of the loop that waits for old generations
    for n, limit in enumerate(["1M", "1100K", "64M", "1M", "2M"], 1):  # the same, raised, lowered
        write_config(server.conf, server.root, {"MemoryLimit": limit, "Timeout": "60s"})
        server.send_signal(signal.SIGHUP)
        server.wait_log("the new configuration is in use|the new configuration cannot be used", n)
        assert "cannot be used" not in server.log
    for client in greedy:
        client.close()
    await_true(lambda: server.descriptors() <= server.baseline, 30)
    with server.connect() as client:
        client.assert_open()


# ── what clients that do not read cost the system ──


def stall(server, at_least=1):
    """A client that asks for a large file and takes none of it; how much the kernel holds for it in the end."""
    with server.connect(rcvbuf=4096) as client:
        client.send(request("/big.bin"))
        sizes = []
        while len(sizes) < 10 or sizes[-1] < at_least or len(set(sizes[-10:])) > 1:
            assert len(sizes) < 300, f"{sizes}"
            time.sleep(0.1)
            sizes.append(queues(client)[0])
        return sizes[-1]


def test_a_client_that_does_not_read_is_cheap(serve):
    server = serve(files={"big.bin": b"x" * 20_000_000})
    assert stall(server) < 400_000  # the default of NotSentLowat, what was sent, and a segment


@pytest.mark.slow
def test_send_buffers_are_limited(serve):
    files = {"big.bin": b"x" * 20_000_000}
    system, small = {"NotSentLowat": "1G"}, {"NotSentLowat": "1G", "SendBuffer": "64K"}
    server = serve(system, files=files)
    stall(server, at_least=800_000)
    write_config(server.conf, server.root, small)
    server.baseline += 2  # of the loop that waits for old generations
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    assert stall(server) < 200_000
    write_config(server.conf, server.root, {**system, "ErrorLog": "/nowhere/error.log"})
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration cannot be used")
    assert stall(server) < 200_000  # a refused configuration changes nothing
    write_config(server.conf, server.root, system)
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use", 2)
    stall(server, at_least=800_000)
