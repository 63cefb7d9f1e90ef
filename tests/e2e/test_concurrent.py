# SPDX-License-Identifier: Apache-2.0
"""Several workers and many clients at once. Under ThreadSanitizer this is the suite's main part."""

import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from harness.content import FILES, HELLO, LARGE, MEDIUM
from harness.messages import CLOSE, LAST, chunked, lines, request
from harness.protocol import Client

pytestmark = pytest.mark.concurrent
HOST = "Host: localhost"


def in_parallel(count, work):
    """Runs work(i) in `count` threads; the first failure fails the test."""
    failures = []

    def guarded(i):
        try:
            work(i)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    if failures:
        raise failures[0]


@pytest.fixture
def crowd(serve):
    return serve({"Workers": 4})


def mixed(client):
    """One of everything on one connection."""
    assert client.ask().body == HELLO
    assert client.ask("/medium.bin").body == MEDIUM
    assert client.ask("/large.bin").body == LARGE
    assert client.ask("/large.bin", "Range: bytes=1000000-1000999").body == LARGE[1_000_000:1_001_000]
    assert client.ask("/nowhere").status == 404
    assert client.ask("/dir").status == 301
    assert client.ask("/hello.txt", "If-None-Match: *").status == 304
    assert client.ask("/hello.txt", method="HEAD").length == 13
    assert client.ask("/hello.txt", method="POST", body=b"x" * 5000).status == 405
    client.send(lines("POST /hello.txt HTTP/1.1", HOST, "Transfer-Encoding: chunked") + chunked(b"hello", b"world"))
    assert client.response().status == 405
    client.send(request() * 32)
    assert all(client.response().body == HELLO for _ in range(32))


def test_mixed_requests(crowd):
    def work(_):
        for _ in range(5):
            with Client(crowd.addresses[0]) as client:
                for _ in range(3):
                    mixed(client)

    in_parallel(8, work)


def test_new_connections(crowd):
    def work(_):
        for _ in range(150):
            with Client(crowd.addresses[0]) as client:
                assert client.ask("/hello.txt", CLOSE).body == HELLO
                client.assert_closed()

    in_parallel(8, work)


@pytest.mark.single_protocol
def test_drops_on_all_workers(crowd):
    def work(i):
        for length in range(0, 120):
            client = Client(crowd.addresses[0], rcvbuf=4096)
            client.send((request("/large.bin") * 3)[:length])
            client.reset() if (i + length) % 2 else client.close()

    in_parallel(6, work)
    with crowd.connect() as client:
        mixed(client)


def test_bad_requests_on_all_workers(crowd):
    def work(_):
        for _ in range(60):
            for data, status in (
                (lines("GET / HTTP/1.1"), 400),
                (lines("GET / HTTP/3.0", HOST), 505),
                (request(method="FOO") + LAST, 501),
            ):
                assert crowd.talk(data)[0].status == status

    in_parallel(6, work)


def test_names_of_all_workers(crowd):
    """Every worker gives every name its own bytes."""
    names = [
        name
        for name in FILES
        if name.isascii() and re.fullmatch(r"[a-z0-9_./]+", name) and not name.startswith(".") and "/." not in name
    ]

    def work(i):
        with Client(crowd.addresses[0]) as client:
            for name in names[i:] + names[:i]:
                assert client.ask("/" + name).body == FILES[name]

    in_parallel(8, work)


@pytest.mark.parametrize("workers", [1, 4])
def test_stop_during_load(serve, workers):
    """A stop truncates no response: each connection ends between two."""
    server = serve({"Workers": workers, "ShutdownTimeout": "60s"})
    answered, ready = [0] * 8, threading.Barrier(9)

    def work(i):
        client = Client(server.addresses[0])
        client.assert_open()
        ready.wait(60)
        try:
            while True:
                client.send(request("/medium.bin"))
                first = client.sock.recv(1)
                if not first:
                    return
                client.buffer = first
                answer = client.response()
                assert answer.status == 200 and answer.body == MEDIUM
                answered[i] += 1
                if answer.closes:
                    client.assert_closed()
                    return
        except (ConnectionResetError, BrokenPipeError):
            return  # the request crossed the close on its way
        finally:
            client.close()

    stopper = threading.Thread(
        target=lambda: (ready.wait(60), wait_until(lambda: min(answered) >= 5), server.send_signal(signal.SIGTERM))
    )
    stopper.start()
    in_parallel(8, work)
    stopper.join()
    assert server.wait() == 0
    assert min(answered) >= 5


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)


def test_stop_at_any_moment(serve):
    """From the first connection on: start, a few clients, stop. Races of the end show here."""
    for round_ in range(8):
        server = serve({"Workers": 3, "ShutdownTimeout": "5s"})
        clients = [server.connect() for _ in range(12)]
        for client in clients[: round_ * 2]:
            client.send(request("/large.bin") if round_ % 2 else request())
        server.send_signal(signal.SIGTERM)
        server.drop_clients()
        assert server.wait() == 0, server.log
        server.names.clear()


def test_several_listeners_and_workers(serve, tmp_path):
    server = serve({"Workers": 3, "Listen": ["127.0.0.1:0", "127.0.0.1:0", f"unix:{tmp_path}/socket"]}, listeners=3)

    def work(i):
        for _ in range(20):
            with Client(server.addresses[i % 3]) as client:
                assert client.ask().body == HELLO
                assert client.ask("/large.bin", "Range: bytes=0-99999").body == LARGE[:100_000]

    in_parallel(9, work)


@pytest.mark.single_protocol
def test_out_of_descriptors_with_several_workers(serve):
    server = serve({"Workers": 3, "Timeout": "60s", "KeepAliveTimeout": "300ms"}, nofile=64)
    clients = [server.connect() for _ in range(150)]
    for client in clients:
        client.send(request())
    statuses = []
    for client in clients:
        statuses.append(client.response().status)
        client.close()
    assert set(statuses) <= {200, 503} and statuses.count(200) >= 50
    with server.connect() as client:
        client.assert_open()


@pytest.mark.skipif(not shutil.which("h2load"), reason="h2load is not installed")
@pytest.mark.parametrize("depth", [1, 16])
def test_h2load(crowd, depth):
    result = subprocess.run(
        ["h2load", "--h1", "-n", "6000", "-c", "24", "-m", str(depth), "-t", "1", f"{crowd.url}/hello.txt"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 0, result.stderr
    assert re.search(
        r"6000 total, 6000 started, 6000 done, 6000 succeeded, 0 failed, 0 errored, 0 timeout", result.stdout
    ), result.stdout
