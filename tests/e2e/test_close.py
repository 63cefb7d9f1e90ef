# SPDX-License-Identifier: Apache-2.0
"""How a connection ends. Whatever the reason, an answer that the kernel has taken reaches its client, even if the
client sends its next request into the end."""

import signal
import time

import pytest

from harness.messages import request
from harness.queues import await_full

BIG = {"big.bin": b"b" * 400_000, "small.txt": b"small\n"}
LINGERS = {"LingerTimeout": "60s"}  # until the client has sent its request, on a loaded machine, too


def read_late(client, size):
    """The client sends one request more, into the closing connection, before it reads."""
    await_full(client)
    client.send_all_you_can(request("/small.txt"))
    answer = client.response()
    assert len(answer.body) == size
    return answer


@pytest.mark.parametrize("times", range(5))
def test_last_request_of_a_connection(serve, times):
    client = serve({"MaxKeepAliveRequest": 1, **LINGERS}, files=BIG).connect(rcvbuf=4096)
    client.send(request("/big.bin"))
    assert read_late(client, 400_000).closes


def test_keep_alive_off(serve):
    client = serve({"KeepAlive": "Off", **LINGERS}, files=BIG).connect(rcvbuf=4096)
    client.send(request("/big.bin"))
    read_late(client, 400_000)


@pytest.mark.parametrize("times", range(5))
def test_stop_while_an_answer_is_on_its_way(serve, times):
    """The answer promised to keep the connection; the stop came behind it."""
    server = serve({"ShutdownTimeout": "60s", **LINGERS}, files=BIG)
    client = server.connect(rcvbuf=4096)
    client.send(request("/big.bin"))
    client.sock.recv(1, 2)  # MSG_PEEK: it has begun
    server.send_signal(signal.SIGTERM)
    server.wait_log("stopping")
    read_late(client, 400_000)
    client.close()
    assert server.wait() == 0


def test_idle_connection_ends_with_a_fin(serve):
    server = serve({"KeepAliveTimeout": "300ms"}, files=BIG)
    client = server.connect()
    assert client.ask("/small.txt").status == 200
    client.assert_closed()


def test_cold_name_and_hot_name_are_answered_alike(serve):
    """The first look at a name may have to ask the disk; the answer must not depend on it."""
    client = serve(files=BIG).connect()
    assert [client.ask(f"/never-seen-before-{time.monotonic_ns()}").status for _ in range(3)] == [404] * 3


def test_head_larger_than_any_buffer(serve):
    """A redirect repeats the query; it is answered, however long."""
    client = serve({"MaxRequestLine": "32K", "MaxHeadSize": "60K"}, files={"dir/index.html": b"i"}).connect()
    answer = client.ask("/dir?" + "q" * 32_000)
    assert answer.status in (301, 414, 500)
    assert client.ask("/dir/").status == 200


def test_empty_lines_behind_a_request(serve):
    """Some clients end a body with a CRLF too many: no beginning of a request, and no 408."""
    client = serve({"KeepAliveTimeout": "400ms", "Timeout": "400ms"}, files=BIG).connect()
    client.send(request("/small.txt") + b"\r\n")
    assert client.response().status == 200
    client.assert_closed()
