# SPDX-License-Identifier: Apache-2.0
"""Answers that come from other threads, in time or not; and connections that a handler takes over."""

import signal
import threading

import pytest

from harness import build
from harness.messages import request
from harness.server import await_true

pytestmark = [
    pytest.mark.concurrent,
    build.needs_probe,
]


# ── threads ──


def test_from_a_thread(probe):
    client = probe().connect()
    for _ in range(3):
        assert client.ask("/probe/thread?1").body == b"from afar\n"
    client.assert_open()


def test_many_at_once(probe):
    server, answers = probe({"Workers": 2}), []

    def ask():
        with server.connect() as client:
            for n in range(20):
                answers.append(client.ask(f"/probe/thread?{n % 4}").body)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [b"from afar\n"] * 320


def test_pipelined(probe):
    answers = probe().talk(request("/probe/thread?5") * 3 + request("/hello.txt", "Connection: close"))
    assert [answer.status for answer in answers] == [200] * 4


def test_twice_is_once(probe):
    client = probe().connect()
    for _ in range(5):
        assert client.ask("/probe/threads?5").body == b"from afar\n"
    client.assert_open()


def test_after_the_client_left(probe):
    server = probe()
    client, before = server.connect(), len(server.threads())
    client.send(request("/probe/thread?3000"))
    await_true(lambda: len(server.threads()) > before, what="the thread")  # a reset discards unread bytes
    client.reset()
    server.wait_log("probe: the client has left")
    assert server.connect().ask("/probe/thread?1").status == 200


def test_after_the_time_limit(probe):
    server = probe({"HandlerTimeout": "100ms"})
    assert server.connect().ask("/probe/thread?2000").status == 503
    server.wait_log("probe: the client has left")


def test_after_a_reload(probe):
    """The exchange and its generation stay until the thread calls back, or the thread finds no request."""
    server = probe({"Workers": 3})
    client = server.connect()
    before = len(server.threads())
    client.send(request("/probe/thread?4000"))
    gone = server.connect()
    gone.send(request("/probe/thread?4000"))
    conf = server.conf / "monkey.conf"
    conf.write_text(conf.read_text().replace("Workers 3", "Workers 1"))
    await_true(lambda: len(server.threads()) > before + 1, what="both threads")
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    gone.reset()
    assert client.response().body == b"from afar\n"
    server.wait_log("probe: (the client has left|the worker has gone)")
    server.wait_log("is not in use any more")


def test_after_the_stop(probe):
    """The worker is gone when the thread comes back: it hears so."""
    server = probe({"ShutdownTimeout": "0"})
    client = server.connect()
    client.send(request("/probe/thread?200"))
    client.send(request("/probe/thread?200"))
    server.stop()


# ── taking over ──

UPGRADE = request("/probe/upgrade", "Connection: Upgrade", "Upgrade: echo")


def take_over(server, early=b""):
    client = server.connect()
    client.send(UPGRADE + early)
    head = client.until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ") and b"\r\nUpgrade: echo" in head and b"\r\nConnection: Upgrade" in head
    assert b"Content-Length" not in head and b"Transfer-Encoding" not in head
    return client


def test_bytes_go_both_ways(probe):
    client = take_over(probe(), b"early ")
    assert client.exactly(6) == b"early "
    client.send(b"late")
    assert client.exactly(4) == b"late"
    client.shut()
    client.assert_closed()


def test_behind_other_requests(probe):
    client = probe().connect()
    client.send(request("/hello.txt") + UPGRADE + b"x")
    assert client.response().status == 200
    client.until(b"\r\n\r\n")
    assert client.exactly(1) == b"x"


def test_much_more_than_any_buffer(probe):
    client, data = take_over(probe()), bytes(range(256)) * 40_000
    client.send_in_background(data)
    assert client.exactly(len(data)) == data


def test_it_must_be_asked_for(probe):
    client = probe().connect()
    assert client.ask("/probe/upgrade").status == 426
    client.assert_open()


def test_silence(probe):
    client = take_over(probe({"TunnelTimeout": "200ms"}), b"a")
    assert client.exactly(1) == b"a"
    client.assert_closed()


def test_a_stop_is_notified(probe):
    server = probe()
    client = take_over(server)
    server.send_signal(signal.SIGTERM)
    assert client.exactly(4) == b"bye\n"
    client.assert_closed()
    assert server.wait() == 0


def test_a_reload_is_not(probe):
    server = probe()
    server.baseline += 2  # of the thread that clears away after a reload
    client = take_over(server)
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    client.send(b"still here")
    assert client.exactly(10) == b"still here"
    client.close()
    server.wait_log("is not in use any more")
