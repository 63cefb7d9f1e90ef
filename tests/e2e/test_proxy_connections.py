# SPDX-License-Identifier: Apache-2.0
"""Connections to backends: the PROXY protocol in their first bytes, and the address that they come from."""

import ipaddress
import socket
import struct

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.certificates import Authority
from harness.few_descriptors import no_descriptor_left
from harness.messages import request
from harness.proxies import TEXT, proxy_section
from harness.server import run, write_config

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


@pytest.fixture
def proxy(serve):
    """A server whose default host passes requests to a backend."""

    def start(backend, keys=None, settings=None, **rest):
        return serve({"Workers": 1, **(settings or {})}, text=proxy_section(backend, keys), **rest)

    return start


def receive(peer, count):
    """Not more, since a handshake of TLS may follow."""
    data = b""
    while len(data) < count:
        data += peer.sock.recv(count - len(data)) or pytest.fail("the header of the PROXY protocol is cut")
    return data


def read_v1(peer):
    """(source, destination), pairs of address and port; or None: unknown."""
    line = b""
    while not line.endswith(b"\r\n"):
        line += receive(peer, 1)
        assert len(line) <= 107
    words = line[:-2].decode().split(" ")
    if words == ["PROXY", "UNKNOWN"]:
        return None
    protocol, source, destination, source_port, destination_port = words[1:]
    assert words[0] == "PROXY" and protocol == f"TCP{ipaddress.ip_address(source).version}"
    return (source, int(source_port)), (destination, int(destination_port))


def read_v2(peer):
    head = receive(peer, 16)
    assert head[:12] == SIGNATURE and head[12] == 0x21
    family, size = head[13], struct.unpack("!H", head[14:])[0]
    assert size == {0x11: 12, 0x21: 36, 0x00: 0}[family]
    body, each = receive(peer, size), (size - 4) // 2
    if not size:
        return None
    addresses = [str(ipaddress.ip_address(body[at : at + each])) for at in (0, each)]
    ports = struct.unpack("!HH", body[-4:])
    return (addresses[0], ports[0]), (addresses[1], ports[1])


READERS = {"v1": read_v1, "v2": read_v2}


def serve_behind(version, headers, secure=False):
    """A script that notes the header, and answers requests."""

    def script(peer):
        headers.append(READERS[version](peer))
        if secure:
            peer.secure()
        answer(b"hello", TEXT)(peer)

    return script


def names_of(client):
    return client.sock.getsockname()[:2], client.sock.getpeername()[:2]


@pytest.mark.parametrize("version", READERS)
def test_header(proxy, version):
    headers = []
    with Backend(serve_behind(version, headers)) as backend:
        with proxy(backend, {"SendProxy": version}).connect() as client:
            for _ in range(3):
                assert client.ask("/").body == b"hello"
            assert headers == [names_of(client)]


@pytest.mark.parametrize("version", READERS)
def test_clients_share_no_connection(proxy, version):
    headers = []
    with Backend(serve_behind(version, headers)) as backend:
        server = proxy(backend, {"SendProxy": version})
        with server.connect() as one, server.connect() as two:
            for _ in range(3):
                for client in (one, two):
                    assert client.ask("/").body == b"hello"
            assert headers == [names_of(one), names_of(two)]
        with server.connect() as one:
            assert one.ask("/").body == b"hello"
            assert headers[2:] == [names_of(one)]


def test_clients_share_connections_without_a_header(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        server = proxy(backend)
        for _ in range(2):
            with server.connect() as client:
                assert client.ask("/").body == b"hello"
        assert len(backend.peers) == 1


@pytest.mark.parametrize("version", READERS)
def test_header_before_tls(proxy, tmp_path, version):
    if not build.speaks("tls"):
        pytest.skip(f"the preset {build.PRESET} has no TLS")
    ca, headers = Authority(tmp_path / "ca"), []
    pair = ca.make("localhost", "localhost", "IP:127.0.0.1")
    with Backend(serve_behind(version, headers, secure=True), tls=pair, handshakes=False) as backend:
        with proxy(backend, {"SendProxy": version, "TlsCA": ca.cert}).connect() as client:
            assert client.ask("/").body == b"hello"
            assert headers == [names_of(client)]


@pytest.mark.parametrize("version", READERS)
def test_header_on_a_unix_socket(proxy, tmp_path, version):
    headers = []
    with Backend(serve_behind(version, headers), path=tmp_path / "b.sock") as backend:
        with proxy(backend, {"SendProxy": version}).connect() as client:
            assert client.ask("/").body == b"hello"
            assert headers == [names_of(client)]


@pytest.mark.parametrize("version", READERS)
def test_client_of_a_unix_socket_is_unknown(proxy, tmp_path, version):
    path, headers = tmp_path / "s.sock", []
    with Backend(serve_behind(version, headers)) as backend:
        server = proxy(backend, {"SendProxy": version}, {"Listen": f"unix:{path}"})
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(request("/", "Connection: close"))
            data = b""
            while piece := client.recv(4096):
                data += piece
        assert data.endswith(b"hello") and headers == [None]


@pytest.mark.parametrize("version", READERS)
def test_ipv6(proxy, version):
    headers = []
    with Backend(serve_behind(version, headers)) as backend:
        server = proxy(backend, {"SendProxy": version}, {"Listen": "[::1]:0"})
        with server.connect() as client:
            assert client.ask("/").body == b"hello"
            assert headers == [names_of(client)]


def test_connections_end_with_their_clients(proxy):
    """No other client could use them."""
    with Backend(serve_behind("v2", [])) as backend:
        server = proxy(backend, {"SendProxy": "v2", "KeepAliveTimeout": "1h"})
        for _ in range(3):
            with server.connect() as client:
                for _ in range(2):
                    assert client.ask("/").body == b"hello"
        backend.wait_open(0)
        assert len(backend.peers) == 3


@pytest.mark.parametrize("keys", [{"KeepAlive": 0}, {"KeepAliveTimeout": "50ms"}], ids=["none", "timeout"])
def test_idle_connections_of_a_client(proxy, keys):
    """They are kept as those of all clients are, while the client stays."""
    with Backend(serve_behind("v2", [])) as backend:
        with proxy(backend, {"SendProxy": "v2", **keys}).connect() as client:
            for count in (1, 2):
                assert client.ask("/").body == b"hello"
                backend.wait_open(0)
                assert len(backend.peers) == count


def test_what_may_be_done_twice_uses_any_idle_connection(proxy, clock):
    """A POST, with a body or without, uses one that was idle for less than a second, else a new one."""
    with Backend(serve_behind("v1", [])) as backend:
        server = proxy(backend, {"SendProxy": "v1", "KeepAliveTimeout": "1h"})
        clients = {body: server.connect() for body in (b"", b"x")}  # a connection for each client
        for method in ("GET", "POST"):
            for client in clients.values():
                assert client.ask("/", method=method).body == b"hello"
            assert len(backend.peers) == 2
        clock.advance(1.1)
        for client in clients.values():
            assert client.ask("/").body == b"hello" and len(backend.peers) == 2
        clock.advance(1.1)
        for expected, (body, client) in enumerate(clients.items(), 3):
            assert client.ask("/", method="POST", body=body).body == b"hello"
            assert len(backend.peers) == expected


def test_idle_connections_end_before_others_fail(serve):
    """A dial without a descriptor gets that of an idle connection of a client."""
    with Backend(serve_behind("v2", [])) as one, Backend(answer(b"two", TEXT)) as two:
        keys = {"Match": "/one", "KeepAliveTimeout": "1h", "SendProxy": "v2"}
        server = serve({"Workers": 1}, text=proxy_section(one, keys) + proxy_section(two, {"Match": "/two"}))
        with server.connect() as client:
            assert client.ask("/one").body == b"hello"
            with no_descriptor_left(server):
                assert client.ask("/two").body == b"two"
            one.wait_open(0)


@pytest.mark.parametrize("version", READERS)
def test_client_that_a_trusted_proxy_names(proxy, version):
    """It has no port, and its address may be of another family than that of this server."""
    headers = []
    with Backend(serve_behind(version, headers)) as backend:
        server = proxy(backend, {"SendProxy": version}, {"TrustedProxies": "127.0.0.1"})
        with server.connect() as client:
            for address in ("192.0.2.1", "2001:db8::1", "192.0.2.1"):
                assert client.ask("/", f"X-Forwarded-For: {address}").body == b"hello"
            _, (own, port) = names_of(client)
        first, second, third = headers  # a connection for each request
        assert first == third == (("192.0.2.1", 0), (own, port))
        assert second[0] == ("2001:db8::1", 0) and second[1][1] == port
        assert ipaddress.ip_address(second[1][0]).ipv4_mapped == ipaddress.ip_address(own)


# ── SourceAddress ──


def test_source_address(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        server = proxy(backend, {"SourceAddress": "127.0.0.9"})
        with server.connect() as client:
            for _ in range(2):
                assert client.ask("/").body == b"hello"
        assert [peer.sock.getpeername()[0] for peer in backend.peers] == ["127.0.0.9"]


def test_sections_with_other_addresses_share_no_connection(serve):
    with Backend(answer(b"hello", TEXT)) as backend:
        sections = [proxy_section(backend, {"Match": f"/{n}", "SourceAddress": f"127.0.0.{n}"}) for n in (5, 6)]
        server = serve({"Workers": 1}, text="".join([*sections, proxy_section(backend)]))
        with server.connect() as client:
            for path in ("/5", "/6", "/", "/6", "/5"):
                assert client.ask(path).body == b"hello"
        assert [peer.sock.getpeername()[0] for peer in backend.peers] == ["127.0.0.5", "127.0.0.6", "127.0.0.1"]


def test_source_address_that_this_machine_does_not_have(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        server = proxy(backend, {"SourceAddress": "192.0.2.77"})
        with server.connect() as client:
            assert client.ask("/").status == 503
        server.wait_log("Cannot assign requested address")
        assert not backend.peers


@pytest.mark.parametrize("keys, expected", [
    ({"SourceAddress": "example.org"}, "an address of this machine without a port"),
    ({"SourceAddress": "127.0.0.1:80"}, "an address of this machine without a port"),
    ({"SourceAddress": "unix:/x"}, "an address of this machine without a port"),
    ({"SourceAddress": "::1"}, "one is IPv4, the other IPv6"),
    ({"SourceAddress": "127.0.0.1", "To": "unix:/run/app.sock"}, "a Unix socket have no source address"),
    ({"SendProxy": "v3"}, "one of Off, v1, v2"),
])  # fmt: skip
def test_mistakes(tmp_path, site_root, keys, expected):
    text = proxy_section(None, {"To": "http://127.0.0.1:8080", **keys})
    write_config(tmp_path / "conf", site_root, text=text)
    done = run("-t", "-c", tmp_path / "conf")
    assert done.returncode == 1 and expected in done.stderr, done.stderr
    assert "sites/default:" in done.stderr
