# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 over TLS: where the transport has a part in what becomes of streams. What is the same in the clear is tried
there (test_h2.py, test_h2_ends.py)."""

import signal

import pytest

from harness import build
from harness import frames as f
from harness.content import FILES, HELLO, LARGE, populate
from harness.h2 import H2Client
from harness.certificates import TlsClient
from harness.server import await_true, section

pytestmark = [
    pytest.mark.single_protocol,
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
        "default": ("localhost", ca.make("localhost", "localhost", "shared.example", "asks.example")),
        "other": ("other.example shared.example", ca.make("other", "other.example", "shared.example")),
    }
    texts = {
        f"sites/{file}": section("HOST", {"ServerName": names, "DocumentRoot": root}) + section("TLS", pair.keys())
        for file, (names, pair) in own.items()
    }
    asks = own["default"][1].keys(ClientCertificate="Required", ClientCA=ca.cert)
    texts["sites/asks"] = section("HOST", {"ServerName": "asks.example", "DocumentRoot": root}) + section("TLS", asks)
    return texts


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
    rows = {"localhost": 200, "other.example": 421, "shared.example": 200, "asks.example": 421}
    numbers = [(client.begin(authority=name), status) for name, status in [*rows.items()] * 3]
    for number, status in numbers:
        assert client.response(number).status == status
    client.assert_open()


KNOWN = r"TLSv1.3|TLS_AES_256_GCM_SHA384|localhost|CN=alice,O=Clients\, Inc."


@build.needs_probe
@pytest.mark.parametrize("protocol", ["h2", "http/1.1"])
def test_what_a_handler_knows(probe, sites, ca, protocol):
    """The same of a stream as of a connection; nothing of one in the clear."""
    keys = {"ServerName": "localhost asks.example", "DocumentRoot": "."}
    pair = ca.make("both", "localhost", "asks.example")
    text = section("HOST", keys) + section("TLS", pair.keys(ClientCertificate="Optional", ClientCA=ca.cert))
    server = probe({"Listen": ["127.0.0.1:0 tls", "127.0.0.1:0"]}, config={"sites/default": text}, listeners=2)
    alice = ca.make("alice", subject="/O=Clients, Inc./CN=alice")
    for client_pair, known in ((alice, KNOWN), (None, KNOWN.rpartition("|")[0] + "|")):
        context = ca.context(pair=client_pair, alpn=[protocol])
        if protocol == "h2":
            server.clients.append(client := H2Client(server.addresses[0], context=context))
        else:
            server.clients.append(client := TlsClient(server.addresses[0], context))
        assert client.ask("/probe/secured").body.decode() == known
    assert server.connect(1).ask("/probe/secured").body == b"ENOENT"


def test_what_the_log_knows(serve, ca, tmp_path):
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": "."})
    text += section("TLS", ca.make("l", "localhost").keys(ClientCertificate="Optional", ClientCA=ca.cert))
    text += section("LOGGER", {"AccessLog": tmp_path / "log", "Format":
                               '"$protocol $tls_version $tls_cipher $tls_server_name $tls_client"'})  # fmt: skip
    server = serve({"Listen": "127.0.0.1:0 tls"}, config={"sites/default": text})
    context = ca.context(pair=ca.make("bob", subject="/CN=bob"))
    server.clients.append(client := H2Client(server.addresses[0], context=context))
    for number in [client.begin("/") for _ in range(3)]:
        client.response(number)
    lines = await_true(lambda: (tmp_path / "log").exists() and len(rows := (tmp_path / "log").read_text().splitlines())
                       == 3 and rows)  # fmt: skip
    assert set(lines) == {"HTTP/2.0 TLSv1.3 TLS_AES_256_GCM_SHA384 localhost CN=bob"}


@pytest.mark.concurrent
def test_slow_reader_on_many_streams(connect):
    client, other = connect(rcvbuf=4096), connect()
    numbers = [client.begin("/large.bin" if i % 5 == 0 else "/hello.txt") for i in range(20)]
    client.head(numbers[0])
    assert other.ask("/large.bin").body == LARGE
    for i, number in enumerate(numbers):
        assert client.response(number).body == (LARGE if i % 5 == 0 else HELLO)


def finish(client, number):
    """Reads the rest; GOAWAY came before, the end of the connection follows."""
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
