# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 over TLS: where the transport has a part in what becomes of streams. What is the same in the clear is tried
there (test_h2.py, test_h2_ends.py)."""

import signal

import pytest

from harness import build
from harness import frames as f
from harness.content import FILES, HELLO, LARGE, populate
from harness.h2 import H2Client
from harness.server import section

pytestmark = [
    pytest.mark.wire,
    pytest.mark.skipif(
        not (build.speaks("tls") and build.speaks("h2")), reason=f"the preset {build.PRESET} lacks tls or HTTP/2"
    ),
]
NEVER = "60s"
PATIENT = {"Timeout": NEVER, "KeepAliveTimeout": NEVER, "SendTimeout": NEVER, "Listen": "127.0.0.1:0 tls"}


@pytest.fixture(scope="module")
def sites(ca, tmp_path_factory):
    """Two hosts; `shared.example` belongs to the second, and the certificate of the first covers it."""
    root = populate(tmp_path_factory.mktemp("root"), FILES)
    own = {
        "default": ("localhost", ca.make("localhost", "localhost", "shared.example")),
        "other": ("other.example shared.example", ca.make("other", "other.example", "shared.example")),
    }
    return {
        f"sites/{file}": section("HOST", {"ServerName": names, "DocumentRoot": root}) + section("TLS", pair.keys())
        for file, (names, pair) in own.items()
    }


@pytest.fixture
def server(serve, sites):
    return serve(PATIENT, config=sites)


@pytest.fixture
def connect(server, ca):
    def open_one(**rest):
        client = H2Client(server.addresses[0], context=ca.context(), **rest)
        server.clients.append(client)
        return client

    return open_one


def test_421_is_of_one_stream(connect):
    client = connect()
    rows = {"localhost": 200, "other.example": 421, "shared.example": 200}
    numbers = [(client.begin(authority=name), status) for name, status in [*rows.items()] * 3]
    for number, status in numbers:
        assert client.response(number).status == status
    client.assert_open()


@pytest.mark.concurrent
def test_slow_reader_on_many_streams(connect):
    client, other = connect(rcvbuf=4096), connect()
    numbers = [client.begin("/large.bin" if i % 5 == 0 else "/hello.txt") for i in range(20)]
    client.head(numbers[0])
    assert other.ask("/large.bin").body == LARGE
    for i, number in enumerate(numbers):
        assert client.response(number).body == (LARGE if i % 5 == 0 else HELLO)


def finish(client, number):
    """Takes the rest of it; the goodbye came before, the end of the connection comes behind."""
    assert client.await_goaway() == f.NO_ERROR
    client.grant(len(LARGE))
    client.grant(len(LARGE), number)
    assert client.response(number).body == LARGE
    client.assert_closed()


@pytest.mark.concurrent
def test_reload_lets_streams_finish(server, connect):
    client = connect(window=20_000, credit=False)
    number = client.begin("/large.bin")
    client.exactly(20_000)
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    assert connect().ask().body == HELLO
    finish(client, number)
    server.baseline = 1 << 20  # what a first reload opens stays open


def test_stop_lets_streams_finish(server, connect):
    client = connect(window=20_000, credit=False)
    number = client.begin("/large.bin")
    client.exactly(20_000)
    server.send_signal(signal.SIGTERM)
    finish(client, number)
    assert server.wait() == 0
