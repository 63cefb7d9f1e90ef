# SPDX-License-Identifier: Apache-2.0
"""The address of a client: trusted proxies, X-Forwarded-For, Forwarded and the PROXY protocol, and forged headers."""

import os
import re
import shutil
import signal
import socket
import struct

import pytest

from harness import build, frames
from harness.messages import request
from harness.server import run, section, write_config

pytestmark = build.needs_probe

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
V1 = b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n"  # the example of the specification
V2 = SIGNATURE + bytes.fromhex("2111000c" "c0a80001" "c0a8000b" "dc04" "01bb")
LOCAL = SIGNATURE + bytes.fromhex("20000000")
CLIENT = "192.168.0.1|56324"


def version2(family, addresses, *values, command=0x21):
    """A header of version 2; a value is (type, bytes)."""
    block = addresses + b"".join(struct.pack("!BH", kind, len(data)) + data for kind, data in values)
    return SIGNATURE + struct.pack("!BBH", command, family, len(block)) + block


@pytest.fixture
def probe(serve):
    def start(trusted=None, *, client_from=None, **settings):
        keys = {"TrustedProxies": trusted, "RealIPHeader": client_from, **settings}
        return serve({k: v for k, v in keys.items() if v}, program=build.probe())

    return start


def answer_of(client):
    """client, its port, peer, its port, scheme"""
    return client.response().body.decode()


def ask(client, *fields):
    client.send(request("/probe/client", *fields))
    return answer_of(client)


def who(client, *fields):
    """The client's address and the scheme."""
    address, _, _, _, scheme = ask(client, *fields).split("|")
    return f"{address} {scheme}"


# ── fields ──


def test_without_proxies_the_peer_is_the_client(probe):
    with probe().connect() as client:
        port = client.sock.getsockname()[1]
        lies = "X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1;proto=https", "X-Forwarded-Proto: https"
        assert ask(client, *lies) == f"127.0.0.1|{port}|127.0.0.1|{port}|http"


def test_a_stranger_is_not_believed(probe):
    server = probe("10.0.0.0/8 127.0.0.2 ::1")
    with server.connect() as client:
        assert who(client, "X-Forwarded-For: 10.0.0.7", "X-Forwarded-Proto: https") == "127.0.0.1 http"


@pytest.mark.parametrize(
    "fields, expected",
    [
        ([], "127.0.0.1 http"),
        (["X-Forwarded-For: 192.0.2.1"], "192.0.2.1 http"),
        (["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"], "192.0.2.1 https"),
        (["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: wss"], "192.0.2.1 https"),
        (["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: WSS"], "192.0.2.1 https"),
        (["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: ws"], "192.0.2.1 http"),
        (["X-Forwarded-For: 192.0.2.1, 10.0.0.3", "X-Forwarded-Proto: wss, http"], "192.0.2.1 https"),
        # a proxy that sends both headers, and a client that sends one of them
        (["X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1;proto=wss"], "192.0.2.1 https"),
        (["X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.2;proto=https"], "192.0.2.1 http"),
        (["X-Forwarded-For: 192.0.2.1", "Forwarded: proto=https"], "192.0.2.1 http"),
        (["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: http", "Forwarded: for=192.0.2.1;proto=https"],
         "192.0.2.1 http"),
        (["X-Forwarded-For: 203.0.113.66, 192.0.2.1, 10.0.0.3"], "192.0.2.1 http"),
        (
            ["X-Forwarded-For: 203.0.113.66", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 10.0.0.3"],
            "192.0.2.1 http",
        ),
        (["X-Forwarded-For: 10.66.66.66, 192.0.2.1"], "192.0.2.1 http"),
        (["X-Forwarded-For: 2001:DB8:0:0::9"], "2001:db8::9 http"),
        (["X-Forwarded-For: [2001:db8::9]:4711, 10.0.0.2:80"], "2001:db8::9 http"),
        (["X-Forwarded-For: ::ffff:192.0.2.1"], "192.0.2.1 http"),
        (["X-Forwarded-For: 192.0.2.1, unknown"], "127.0.0.1 http"),
        (["X-Forwarded-For: 192.0.2.1, unknown, 10.0.0.2"], "10.0.0.2 http"),
        (["X-Forwarded-For: 192.0.2.1, <script>"], "127.0.0.1 http"),
        (['X-Forwarded-For: "', "X-Forwarded-For: 192.0.2.1"], "192.0.2.1 http"),
        (["X-Forwarded-For: " + ", ".join(["10.0.0.1"] * 1000)], "10.0.0.1 http"),
        (["X-Forwarded-For: 203.0.113.66," + "," * 5000], "127.0.0.1 http"),
        (["X-Real-IP: 192.0.2.1", "Forwarded: for=192.0.2.1;proto=https"], "127.0.0.1 http"),
    ],
)
def test_x_forwarded_for(probe, fields, expected):
    with probe("127.0.0.0/8 10.0.0.0/8").connect() as client:
        assert who(client, *fields) == expected
        assert who(client) == "127.0.0.1 http"  # of each request anew


@pytest.mark.parametrize(
    "fields, expected",
    [
        (["Forwarded: for=192.0.2.60;proto=http;by=203.0.113.43"], "192.0.2.60 http"),  # RFC 7239 section 4
        (['Forwarded: For="[2001:db8:cafe::17]:4711"'], "2001:db8:cafe::17 http"),
        (["Forwarded: for=192.0.2.43, for=10.0.0.17;proto=https"], "192.0.2.43 https"),
        (['Forwarded: for="192.0.2.43:47011";PROTO="https"'], "192.0.2.43 https"),
        (["Forwarded: for=192.0.2.43;proto=wss"], "192.0.2.43 https"),
        (['Forwarded: for=192.0.2.43;proto="Ws", for=10.0.0.17;proto=https'], "192.0.2.43 http"),
        (['Forwarded: for="_gazonk"'], "127.0.0.1 http"),
        (["Forwarded: for=192.0.2.43, for=unknown;proto=https"], "127.0.0.1 https"),
        (['Forwarded: for="192.0.2.43:_x"'], "192.0.2.43 http"),
        (['Forwarded: for=192.0.2.43;ext="a,b;for=10.0.0.9;\\",for=10.0.0.8"'], "192.0.2.43 http"),
        (['Forwarded: for="', 'Forwarded: for=192.0.2.43;host="h"'], "192.0.2.43 http"),
        (['Forwarded: for="10.66.66.66, for=192.0.2.43'], "192.0.2.43 http"),
        (["Forwarded: for=10.66.66.66;proto=https", "Forwarded: for=192.0.2.43"], "192.0.2.43 http"),
        (["X-Forwarded-For: 192.0.2.43", "X-Forwarded-Proto: https"], "127.0.0.1 http"),
    ],
)
def test_forwarded(probe, fields, expected):
    with probe("127.0.0.1 10.0.0.0/8", client_from="Forwarded").connect() as client:
        assert who(client, *fields) == expected


def test_a_unix_socket_may_be_trusted(probe, tmp_path):
    for trusted, expected in (("unix", "192.0.2.1 http"), ("127.0.0.1", "unix http")):
        with probe(trusted, Listen=f"unix:{tmp_path}/{trusted}").connect() as client:
            assert who(client, "X-Forwarded-For: 192.0.2.1") == expected


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_both_families_at_one_socket(probe):
    server = probe("127.0.0.1", Listen="*:0")
    for host, expected in (("127.0.0.1", "192.0.2.1 http"), ("::1", "::1 http")):
        with socket.create_connection((host, server.port)) as sock:
            sock.sendall(request("/probe/client", "X-Forwarded-For: 192.0.2.1", "Connection: close"))
            answer = b"".join(iter(lambda s=sock: s.recv(65536), b"")).decode()
        address, _, _, _, scheme = answer.partition("\r\n\r\n")[2].split("|")
        assert f"{address} {scheme}" == expected


# ── the PROXY protocol ──


@pytest.fixture
def listener(probe):
    server = probe("127.0.0.1", Listen="127.0.0.1:0 proxy")
    return server.connect


@pytest.mark.parametrize(
    "header, expected",
    [
        (V1, CLIENT),
        (V2, CLIENT),
        (b"PROXY TCP6 2001:db8::1 2001:db8::2 4711 443\r\n", "2001:db8::1|4711"),
        (
            version2(0x21, socket.inet_pton(socket.AF_INET6, "2001:db8::1") * 2 + b"\x12\x67\x01\xbb"),
            "2001:db8::1|4711",
        ),
        (version2(0x11, V2[16:], (0x01, b"http/1.1"), (0x03, bytes(4)), (0x04, bytes(4000))), CLIENT),
        (version2(0x31, b"/run/a".ljust(108, b"\0") * 2), "unix|0"),
    ],
)
def test_headers_of_both_versions(listener, header, expected):
    with listener() as client:
        port = client.sock.getsockname()[1]
        client.send(header + request("/probe/client"))
        assert answer_of(client) == f"{expected}|127.0.0.1|{port}|http"
        assert ask(client) == f"{expected}|127.0.0.1|{port}|http"  # every request of the connection sees it


@pytest.mark.parametrize("header", [LOCAL, b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN ::1 ::1 1 1\r\n"])
def test_a_proxy_that_speaks_for_itself(listener, header):
    with listener() as client:
        client.send(header + request("/probe/client"))
        assert answer_of(client).startswith("127.0.0.1|")


@pytest.mark.parametrize("header", [V1, V2, version2(0x11, V2[16:], (0x04, bytes(100)))])
def test_headers_in_pieces(listener, header):
    with listener() as client:
        for byte in header:
            client.send(bytes([byte]))
        client.assert_quiet(0.05)
        assert ask(client).startswith(CLIENT)


def test_a_pipeline_behind_the_header(listener):
    with listener() as client:
        client.send(V2 + request("/probe/client") * 20)
        assert {answer_of(client).split("|")[0] for _ in range(20)} == {"192.168.0.1"}


@pytest.mark.parametrize(
    "start",
    [
        request("/probe/client"),
        b"\r\n" + V1,
        V1.replace(b"TCP4", b"TCP5"),
        V1.replace(b"443", b"65536"),
        V1.replace(b"\r\n", b"\n"),
        V1[:-2] + b" \r\n",
        b"PROXY UNKNOWN " + b"x" * 200,
        version2(0x11, V2[16:-1]),
        version2(0x21, V2[16:]),
        version2(0x11, V2[16:], command=0x22),
        version2(0x11, V2[16:], command=0x11),
        version2(0x51, V2[16:]),
        version2(0x11, V2[16:], (0x04, bytes(5000))),
        SIGNATURE + b"\x21\x11\xff\xff",
    ],
)
def test_what_is_no_header_ends_the_connection(listener, start):
    with listener() as client:
        client.send_all_you_can(start)
        client.assert_gone()
        assert client.buffer == b""


def test_a_second_header_is_no_request(listener):
    with listener() as client:
        client.send(V1 + V1 + request("/probe/client"))
        assert client.response().status == 400


def test_half_a_header_is_not_waited_for_long(probe):
    server = probe("127.0.0.1", Listen="127.0.0.1:0 proxy", Timeout="300ms")
    for start in (b"", V1[:20], V2[:14], V2[:-1], V1):
        with server.connect() as client:
            client.send(start)
            client.assert_closed()


def test_a_check_without_a_byte(listener):
    with listener() as client:
        client.shut()
        client.assert_closed()


@pytest.mark.single_protocol
def test_only_proxies_may_connect_there(probe):
    server = probe("10.0.0.0/8", Listen="127.0.0.1:0 proxy")
    for start in (b"", V1 + request()):
        with server.connect() as client:
            client.send_all_you_can(start)
            client.assert_gone()
    server.wait_log(r"the address is not in TrustedProxies, peer: 127\.0\.0\.1, listener: 127\.0\.0\.1:0$")


def test_other_listeners_know_no_header(probe):
    server = probe("127.0.0.1", Listen=["127.0.0.1:0", "127.0.0.2:0 proxy"])
    server.await_listeners(2)
    with server.connect() as client:
        client.send(V1 + request())
        assert client.response().status == 400
    with server.connect(1) as client:
        client.send(V1 + request("/probe/client"))
        assert answer_of(client).startswith(CLIENT)


def test_a_header_and_then_fields(probe):
    """HAProxy hands over connections of a proxy that writes fields."""
    server = probe("127.0.0.1 192.168.0.0/16", Listen="127.0.0.1:0 proxy")
    with server.connect() as client:
        client.send(V2)
        assert who(client, "X-Forwarded-For: 203.0.113.66, 192.0.2.1") == "192.0.2.1 http"
        assert who(client) == "192.168.0.1 http"


# ── the configuration ──


@pytest.mark.parametrize(
    "keys, sentence",
    [
        (
            {"Listen": "127.0.0.1:0 tsl"},
            r'monkey.conf:2:12: error: .*no option but proxy, and no loaded plugin "tsl" can',
        ),
        ({"Listen": "127.0.0.1:0 proxy"}, r"TrustedProxies is empty"),
        ({"TrustedProxies": "10.0.0.0/8 10.0.0.1/8"}, r'names more than 8 bits; did you mean "10\.0\.0\.0/8"'),
        ({"TrustedProxies": "localhost"}, r'"localhost" is not a network'),
        ({"RealIPHeader": "Forwarded-For"}, r"X-Forwarded-For"),
    ],
)
def test_mistakes(tmp_path, site_root, keys, sentence):
    result = run("-c", write_config(tmp_path / "conf", site_root, keys), "-t")
    assert result.returncode == 1
    assert re.search(sentence, result.stderr), result.stderr
    assert result.stderr.count("error:") == 1


def test_the_option_comes(probe):
    """A reload changes what a socket is for, and no connection is lost."""
    server = probe("127.0.0.1")
    port = server.port
    write_config(server.conf, server.root, {"Listen": "127.0.0.1:0 proxy", "TrustedProxies": "127.0.0.1"})
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    server.baseline += 2  # of the loop that waits for old generations
    with server.connect() as client:
        client.send(V1 + request("/probe/client"))
        assert answer_of(client).startswith(CLIENT)
    assert server.port == port


# ── hooks of connections ──


class Porter:
    def __init__(self, folder, root, settings):
        self.folder, self.root, self.settings = folder, root, settings
        self.module = build.MODULES / "porter.so"

    def write(self, refuse=None, name="first", load=True):
        plugins = ["liana", *([self.module] if load else []), "static"]
        files = {"plugins.load": section("PLUGINS", {"Load": plugins})}
        write_config(self.folder, self.root, self.settings, files=files)
        if load:
            keys = {"Name": name, **({"Refuse": refuse} if refuse else {})}
            (self.folder / "monkey.conf").open("a").write(section("PORTER", keys))


@pytest.fixture
def porter(serve):
    return start_porter(serve, {"Listen": "127.0.0.1:0"})


def start_porter(serve, settings):
    server = serve(settings)
    server.porter = Porter(server.conf, server.root, settings)
    server.reloads = 0

    def reload(**keys):
        server.porter.write(**keys)
        server.send_signal(signal.SIGHUP)
        server.reloads += 1
        server.wait_log("the new configuration is in use", server.reloads)
        server.baseline += 2 * (server.reloads == 1)  # of the loop that waits for old generations
        return server

    return reload


def test_connections_come_and_go(porter):
    server = porter()
    for n in (1, 2):
        with server.connect() as client:
            client.assert_open()
            client.assert_open()
        server.wait_log(r"porter: first closed", n)
    said = [m[1] for m in server.wait_log(r"porter: first (.*)$", 4)]
    assert said == [f"{moment} {n} 127.0.0.1 127.0.0.1:0" for n in (1, 2) for moment in ("accepted", "closed")]


@pytest.mark.single_protocol  # asks how a connection ends
def test_refused_clients_are_gone(porter):
    server = porter(refuse="127.0.0.0/8")
    with server.connect() as client:
        client.send_all_you_can(request())
        client.assert_gone()
    server.wait_log("porter: first refused 1 127.0.0.1")
    porter(name="second")
    with server.connect() as client:
        client.assert_open()
    server.wait_log("porter: second closed 2")
    assert "first closed" not in server.log


def test_a_connection_outlives_its_generation(porter):
    """It ends under the one that is in use then; a plugin that has gone hears nothing."""
    server = porter()
    kept, other = server.connect(), server.connect()
    kept.assert_open()
    other.assert_open()
    porter(name="second")
    kept.close()
    server.wait_log("porter: second closed 1")
    porter(load=False)
    other.assert_open()
    other.close()
    with server.connect() as client:
        client.assert_open()
    assert "closed 2" not in server.log
    early = server.connect()
    early.assert_open()
    porter(name="third")
    early.close()
    server.wait_log("porter: third closed 3")  # it has not seen that one come


def kept_of(client, n):
    """Asks how the porter calls the connection."""
    client.send(request())
    assert client.response()["Porter"] == str(n)


@pytest.mark.single_protocol  # HTTP/2 connections end after a reload
def test_what_is_kept_lasts_over_reloads(porter):
    """What a plugin keeps for a connection is given back with it, or once no configuration has the plugin."""
    server = porter()
    short, long = server.connect(), server.connect()
    kept_of(short, 1)
    kept_of(long, 2)
    porter(name="second")
    kept_of(long, 2)
    short.close()
    server.wait_log("porter forgets 1$")
    porter(load=False)
    server.wait_log("porter forgets 2$")  # the plugin has gone, its connection has not
    long.assert_open()
    porter(name="third")
    kept_of(long, 0)  # it has not seen that one come
    long.close()
    server.wait_log("porter: third closed 2")
    assert server.log.count("porter forgets") == 2


@pytest.mark.single_protocol  # HTTP/2 connections end after a reload
def test_what_is_kept_ends_with_its_module(serve, tmp_path):
    """A module whose file has changed is another plugin: it gets nothing that the former one has kept."""
    reload = start_porter(serve, {"Listen": "127.0.0.1:0"})
    own, new = tmp_path / "porter.so", tmp_path / "new.so"
    shutil.copy(build.MODULES / "porter.so", own)
    server = reload(load=False)
    server.porter.module = own
    reload()
    client = server.connect()
    kept_of(client, 1)
    new.write_bytes(own.read_bytes() + b"\n")
    os.replace(new, own)
    reload(name="second")
    server.wait_log("porter forgets 1$")
    kept_of(client, 0)
    with server.connect() as other:
        kept_of(other, 2)
    client.close()
    server.wait_log("porter forgets 2$")
    server.wait_log("porter: second closed 1")
    assert server.log.count("porter forgets") == 2


PROXIED = {"Listen": "127.0.0.1:0 proxy", "TrustedProxies": "127.0.0.1 192.168.0.9"}


@pytest.mark.parametrize(
    "header, known",
    [
        (V1, "192.168.0.1 client"),
        (V1.replace(b"192.168.0.1", b"192.168.0.9"), "192.168.0.9 proxy"),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1 proxy"),
    ],
    ids=["client", "proxy", "none"],
)
def test_the_client_is_known_behind_the_header(serve, header, known):
    server = start_porter(serve, PROXIED)()
    with server.connect() as client:
        client.send(header[:10])
        server.wait_log("porter: first accepted 1 127.0.0.1")
        assert "porter knows" not in server.log
        client.send(header[10:])
        server.wait_log(f"porter knows 1 {known}$")
        kept_of(client, 1)
    server.wait_log("porter forgets 1$")
    with server.connect() as client:
        client.send(header[:10])
    server.wait_log("porter: first closed 2")
    assert server.log.count("porter knows") == 1


def test_a_stop_tells_of_those_that_are_open(porter):
    server = porter()
    server.connect().assert_open()
    server.send_signal(signal.SIGTERM)
    server.wait_log("porter: first closed 1")
    assert server.wait() == 0


@pytest.mark.single_protocol
@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
def test_whose_connection_ends(serve):
    """The log names the client to block, and not the proxy that it came by."""
    settings = {"Listen": "127.0.0.1:0 proxy", "TrustedProxies": "127.0.0.1"}
    server = serve(settings, config={"plugins/static/static.conf": section("HTTP2", {"MaxPings": 1})})
    with socket.create_connection(server.addresses[0]) as sock:
        sock.sendall(V1 + frames.PREFACE + frames.settings() + frames.ping() * 2)
        names = r"peer: 192\.168\.0\.1, listener: 127\.0\.0\.1:0$"
        server.wait_log(rf"warn +HTTP/2 connection closed: more than 1 PING.*, {names}")
