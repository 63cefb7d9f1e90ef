# SPDX-License-Identifier: Apache-2.0
"""What a WebSocket and its messages may cost: the example plugin echo. Judged on the optimised builds."""

import collections
import os
import subprocess

import pytest

from harness import build
from harness.server import section
from test_budgets import Trace, allocation_counter

pytestmark = [
    pytest.mark.budget,
    pytest.mark.skipif(not (build.LIB / "libmonkey-kit.a").exists(), reason="no WebSocket library is built"),
]
SOURCE = build.TOP / "docs/examples/plugins/echo.c"
KEY = [0x11, 0x22, 0x33, 0x44]
TEXT = b"x" * 125
FRAME = bytes([0x81, 0xFD, *KEY]) + bytes(byte ^ KEY[i % 4] for i, byte in enumerate(TEXT))
ECHO = bytes([0x81, 125]) + TEXT
# As Firefox sends it.
HANDSHAKE = b"""GET %s HTTP/1.1\r
Host: localhost:2001\r
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r
Accept: */*\r
Accept-Language: en-US,en;q=0.5\r
Accept-Encoding: gzip, deflate, br, zstd\r
Sec-WebSocket-Version: 13\r
Origin: http://localhost:2001\r
Sec-WebSocket-Extensions: permessage-deflate\r
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
Connection: keep-alive, Upgrade\r
Pragma: no-cache\r
Cache-Control: no-cache\r
Upgrade: websocket\r
\r
"""
PLAIN = HANDSHAKE.replace(b"Sec-WebSocket-Extensions: permessage-deflate\r\n", b"")


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "echo.so"
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{build.TOP / 'include'}", SOURCE, "-o", path]
    subprocess.run([*map(str, command), f"-L{build.LIB}", "-lmonkey-kit", "-lz"], check=True)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    return path


@pytest.fixture
def start(serve, plugin, tmp_path):
    def start(**rest):
        root = tmp_path / "root"
        root.mkdir(exist_ok=True)
        texts = {
            "plugins.load": section("PLUGINS", {"Load": ["liana", plugin, "static"]}),
            "sites/default": section("HOST", {"DocumentRoot": root}),
        }
        return serve({"Workers": 1}, root=root, config=texts, **rest)

    return start


def connect(server, path=b"/echo", handshake=PLAIN):
    client = server.connect()
    client.send(handshake % path)
    assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    return client


def echo(client, number=1):
    client.send(FRAME * number)
    assert client.exactly(len(ECHO) * number) == ECHO * number


@pytest.mark.parametrize("number", [1, 16])
def test_calls_of_an_echo(start, tmp_path, number):
    """One turn: epoll_wait, recv, send; whatever the number of messages that came together."""
    server, rounds = start(), 100
    client = connect(server)
    echo(client, number)
    trace = Trace(server, tmp_path / "trace")
    for _ in range(rounds):
        echo(client, number)
    counts = collections.Counter(name for name, _ in trace.end())
    assert sum(counts.values()) <= 3.1 * rounds, counts


def test_calls_of_a_broadcast(start, tmp_path):
    """A send for each receiver, also of 16 messages; besides it the turn of the sender, and the eventfd."""
    server, rounds, receivers, number = start(), 20, 20, 16
    clients = [connect(server, b"/all") for _ in range(receivers)]

    def say():
        clients[0].send(FRAME * number)
        for client in clients:
            assert client.exactly(len(ECHO) * number) == ECHO * number

    say()
    trace = Trace(server, tmp_path / "trace")
    for _ in range(rounds):
        say()
    counts = collections.Counter(name for name, _ in trace.end())
    assert sum(counts.values()) <= (receivers + 6) * rounds * 1.05, counts


def test_no_allocation_per_echo(start, tmp_path):
    with allocation_counter(tmp_path) as (env, count):
        server = start(env=env)
        client = connect(server)
        for number in (1, 16):
            echo(client, number)
        before = count()
        for _ in range(20):
            echo(client)
            echo(client, 16)
        assert before > 0 and count() == before


@pytest.mark.parametrize("handshake", [PLAIN, HANDSHAKE], ids=["plain", "deflate"])
def test_memory_of_an_idle_websocket(start, handshake):
    server, number = start(), 2000

    def open_many(count):
        for _ in range(count):
            connect(server, handshake=handshake)

    open_many(50)
    before = server.memory_kb("Private_Dirty")
    open_many(number)
    each = (server.memory_kb("Private_Dirty") - before) * 1024 / number
    assert each <= 2048, f"{each:.0f} bytes"
