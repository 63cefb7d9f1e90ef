# SPDX-License-Identifier: Apache-2.0
"""Clients that end their side of an encrypted connection before they have got everything: by close_notify, by FIN, or
by both. What is the same in the clear is in test_connection.py and test_proxy_websocket.py."""

import contextlib
import hashlib
import os
import ssl

import pytest

from harness import build
from harness.backend import Backend
from harness.client import Client
from harness.content import LARGE
from harness.messages import lines, request
from harness.proxies import PATIENT, TEXT
from harness.secure import serve_secure
from harness.server import section

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
SWITCH = lines("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: raw")
DATA = os.urandom(1_000_000)
ENDS = {"close_notify": (True, False), "fin": (False, True), "both": (True, True)}

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no tls"),
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="the preset has no plugin proxy"),
]


class HalfClient(Client):
    """A client that can end its side: ssl.SSLSocket would wait for the other one, or read what it does not expect."""

    def __init__(self, address, version):
        super().__init__(address)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)  # an end without close_notify is an error
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.wait(self.tls.do_handshake)

    def flush(self):
        if self.outgoing.pending:
            self.sock.sendall(self.outgoing.read())

    def wait(self, call, *args):
        """Calls it until it has what it needs."""
        while True:
            try:
                done = call(*args)
                self.flush()
                return done
            except ssl.SSLWantReadError:
                self.flush()
                data = self.sock.recv(65536)
                self.incoming.write(data) if data else self.incoming.write_eof()

    def send(self, data):
        self.wait(self.tls.write, data)

    def receive(self, most):
        try:
            return self.wait(self.tls.read, most)
        except ssl.SSLZeroReturnError:
            return b""

    def end(self, how, last=b""):
        """Ends its side, with bytes that come in one segment with close_notify."""
        notifies, shuts = ENDS[how]
        if last:
            self.tls.write(last)
        if notifies:
            with contextlib.suppress(ssl.SSLWantReadError):
                self.tls.unwrap()
        self.flush()
        if shuts:
            self.shut()


@pytest.fixture
def connect(serve, tmp_path, site_root):
    def start(version, backend=None):
        keys = {"Upgrade": "raw", "OnClientLeave": "Finish", **PATIENT}
        text = section("PROXY", {"To": backend.url, **keys}) if backend else ""
        server = serve_secure(serve, tmp_path, site_root, text=text)
        client = HalfClient(server.addresses[0], version)
        server.clients.append(client)
        return client

    return start


@pytest.mark.parametrize("version", [V12, V13])
@pytest.mark.parametrize("end", ENDS)
def test_files(connect, end, version):
    client = connect(version)
    client.end(end, request("/large.bin") + request() * 5)
    answers = [client.response() for _ in range(6)]
    assert [each.status for each in answers] == [200] * 6 and answers[0].body == LARGE


@pytest.mark.parametrize("version", [V12, V13])
@pytest.mark.parametrize("end", ENDS)
def test_late_responses(connect, end, version):
    """With `OnClientLeave Finish`: by default an end means that the client does not want the response."""

    def respond(peer):
        peer.request()
        peer.wait("go")
        peer.respond(DATA, TEXT)

    with Backend(respond) as backend:
        client = connect(version, backend)
        client.end(end, request("/"))
        backend.wait_requests(1)
        backend.tell("go")
        assert client.response().body == DATA


@pytest.mark.parametrize("version", [V12, V13])
@pytest.mark.parametrize("end", ENDS)
def test_tunnels(connect, end, version):
    def switch(peer):
        peer.request()
        peer.send(SWITCH)
        got = peer.rest()
        peer.send(hashlib.sha256(got).digest() + DATA)

    with Backend(switch) as backend:
        client = connect(version, backend)
        client.send(request("/", "Connection: Upgrade", "Upgrade: raw"))
        assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        client.send(DATA)
        client.end(end, b"last")
        wanted = hashlib.sha256(DATA + b"last").digest() + DATA
        assert client.exactly(len(wanted)) == wanted
