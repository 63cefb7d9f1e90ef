# SPDX-License-Identifier: Apache-2.0
"""Connections and streams that a handler takes over, where they are encrypted. What is the same in the clear is tried
there (test_late.py, test_h2_ends.py)."""

import os
import select
import ssl

import pytest

from harness import build
from harness.certificates import TlsClient
from harness.h2 import H2Client
from harness.messages import request
from harness.secure import serve_secure

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
    build.needs_probe,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no tls"),
]
UPGRADE = request("/probe/upgrade", "Connection: Upgrade", "Upgrade: echo")
DATA = os.urandom(512 * 1024 + 7)
PATIENCE = 30.0
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.fixture
def server(probe, tmp_path, site_root):
    return serve_secure(probe, tmp_path, site_root)


@pytest.fixture
def context():
    made = ssl.create_default_context()
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)  # an end without close_notify is an error
    return made


def take_over(server, context, early=b"", **rest):
    client = TlsClient(server.addresses[0], context, **rest)
    server.clients.append(client)
    client.send(UPGRADE + early)
    assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    return client


def exchange(client, data, most=1 << 16):
    """Sends it, and reads as much; one thread, because libssl wants it so."""
    sock, sent, got = client.sock, 0, bytearray(client.buffer)
    client.buffer = b""
    sock.setblocking(False)
    while sent < len(data) or len(got) < len(data):
        writes = [sock] if sent < len(data) else []
        ready = sock.pending() or any(select.select([sock], writes, [], PATIENCE)[:2])
        assert ready, f"{sent} bytes out and {len(got)} in, then nothing"
        try:
            sent += sock.send(data[sent : sent + most]) if writes else 0
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        try:
            got += sock.recv(most)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
    sock.settimeout(PATIENCE)
    return bytes(got)


@pytest.mark.parametrize("version", [V12, V13])
def test_an_upgrade(server, context, version):
    context.minimum_version = context.maximum_version = version
    client = take_over(server, context, b"early ")
    assert client.exactly(6) == b"early "
    assert exchange(client, DATA) == DATA
    assert exchange(client, DATA[:99], 1) == DATA[:99]
    client.sock.unwrap()  # our end, and theirs with close_notify


def test_an_upgrade_whose_client_reads_little(server, context):
    client = take_over(server, context, rcvbuf=4096)
    assert exchange(client, DATA) == DATA


@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
def test_an_extended_connect(server, context):
    client = H2Client(server.addresses[0], context=context)
    server.clients.append(client)
    client.settle(lambda: client.theirs, "SETTINGS")
    tunnels = [client.begin("/probe/upgrade", method="CONNECT", protocol="echo", end=False) for _ in range(2)]
    for number in tunnels:
        assert client.head(number).status == 200
        client.more(number, DATA)
    assert client.ask("/hello.txt").status == 200
    for number in tunnels:
        assert client.exactly(len(DATA), number) == DATA
        client.more(number, end=True)
        assert client.response(number).body == DATA
