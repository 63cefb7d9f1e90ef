# SPDX-License-Identifier: Apache-2.0
"""What changes under encrypted connections: a reload that meets garbage in files, and another program in the middle of
handshakes, requests and streams."""

import contextlib
import os
import re
import signal
import socket
import ssl

import pytest

from harness import build
from harness import frames as f
from harness.certificates import Authority, Bytes, TlsClient
from harness.chain import LARGE, SMALL
from harness.content import populate
from harness.h2 import GoneAway, H2Client
from harness.load import Load
from harness.messages import CLOSE, request
from harness.server import await_true, is_alive, section

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
    pytest.mark.skipif(
        not (build.speaks("tls") and build.speaks("h2")), reason=f"the preset {build.PRESET} lacks tls or HTTP/2"
    ),
]
LIMITS = {name: "60s" for name in ("KeepAliveTimeout", "HandshakeTimeout", "ShutdownTimeout")}
TLS = {"Listen": "127.0.0.1:0 tls", "Workers": 2, **LIMITS}
REFUSED, DONE = "the new configuration cannot be used", "the new configuration is in use"


def own(path, content):
    path.write_bytes(content)
    path.chmod(0o600)
    return path


# ── a reload that meets garbage ──


class Reloaded:
    """A server, the files that it reads at each reload, and clients that are there meanwhile."""

    def __init__(self, serve, ca, certificate, folder):
        self.context = ca.context()
        self.fingerprint = certificate.fingerprint
        self.files = {
            "Certificate": own(folder / "cert", certificate.cert.read_bytes()),
            "CertificateKey": own(folder / "key", certificate.key.read_bytes()),
            "TicketKeys": own(folder / "tickets", os.urandom(80)),
        }
        root = populate(folder / "root", {"hello.txt": b"Hello, world\n"})
        tls = {key: self.files[key] for key in ("Certificate", "CertificateKey")}
        site = section("HOST", {"ServerName": "localhost", "DocumentRoot": root}) + section("TLS", tls)
        keys = section("TLS", {"TicketKeys": self.files["TicketKeys"]})
        self.server = serve(TLS, config={"sites/default": site, "plugins/tls/tls.conf": keys})

    def reload(self, outcome):
        before = self.server.log.count(outcome)
        self.server.baseline += 2  # of the loop that waits for old generations
        self.server.send_signal(signal.SIGHUP)
        self.server.wait_log(outcome, before + 1)

    def connect(self, session=None):
        return TlsClient(self.server.addresses[0], self.context, session=session)

    def resumes(self, session):
        """In every worker, and with the certificate that was there before."""
        with self.connect(session) as client:
            client.assert_open()
            assert client.fingerprint == self.fingerprint
            return client.sock.session_reused


@pytest.fixture
def reloaded(serve, ca, certificate, tmp_path):
    return Reloaded(serve, ca, certificate, tmp_path)


MESSAGES = {
    "TicketKeys": r"tls\.conf:2:\d+: error: the file of ticket keys \S+/tickets ",
    "Certificate": r"sites/default:\d+:\d+: error: host localhost: the certificate \S+/cert ",
    "CertificateKey": r"sites/default:\d+:\d+: error: host localhost: the private key \S+/key ",
}
GARBAGE = [
    ("TicketKeys", b"x" * 81, "has 81 bytes, but each key has 80"),
    ("TicketKeys", b"", "is empty"),
    ("TicketKeys", bytes(160), "has two keys of the same name"),
    ("Certificate", b"nonsense\n", "holds no certificate in PEM"),
    ("Certificate", bytes(range(256)) * 20, "holds no certificate in PEM"),
    ("Certificate", b"", "is empty"),
    ("CertificateKey", b"nonsense\n", "holds no private key in PEM"),
    ("CertificateKey", bytes(range(256)) * 20, "holds no private key in PEM"),
]


@pytest.mark.parametrize("key, content, fault", GARBAGE, ids=[f"{key}-{fault}" for key, _, fault in GARBAGE])
def test_garbage_at_a_reload(reloaded, key, content, fault):
    """It is logged; connections continue, others begin and resume as before, and so after the repair."""
    path = reloaded.files[key]
    right = path.read_bytes()
    with reloaded.connect() as client:
        client.assert_open()
        session = client.sock.session
        own(path, content)
        reloaded.reload(REFUSED)
        assert re.search(MESSAGES[key] + fault, reloaded.server.log), reloaded.server.log
        assert all(reloaded.resumes(session) for _ in range(8))
        client.assert_open()
        own(path, right)
        reloaded.reload(DONE)
        assert all(reloaded.resumes(session) for _ in range(8))
        client.assert_open()


# ── sessions that a new policy ends ──

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
POLICIES = {  # [TLS] before and after a reload, whether the client has a certificate, and whether its session continues
    "the same": ("Optional ca", "Optional ca", True, True),
    "another authority": ("Optional ca", "Optional other", True, None),
    "one authority more": ("Required ca", "Required both", True, False),
    "one authority less": ("Required both", "Required ca", True, False),
    "required of those who have one": ("Off", "Required ca", True, False),
    "required of those who have none": ("Off", "Required ca", False, None),
    "required, no longer optional": ("Optional ca", "Required ca", False, None),
    "not asked for any more": ("Optional ca", "Off", True, False),
}


@pytest.mark.parametrize("version", [V12, V13])
@pytest.mark.parametrize("before, after, has_one, continues", POLICIES.values(), ids=POLICIES)
def test_a_session_ends_with_its_policy(serve, ca, certificate, tmp_path, before, after, has_one, continues, version):
    """Continues, does a full handshake (False), or is refused (None); the file of the authorities keeps its name."""
    authorities = tmp_path / "authorities"
    other = Authority(tmp_path / "other", "other")
    content = {"ca": ca.cert.read_text(), "other": other.cert.read_text()}
    content["both"] = content["ca"] + content["other"]
    root = populate(tmp_path / "root", {"hello.txt": b"Hello, world\n"})

    def prepare(policy):
        mode, _, who = policy.partition(" ")
        authorities.write_text(content[who or "ca"])
        keys = certificate.keys(ClientCertificate=mode, ClientCA=authorities)
        return section("HOST", {"ServerName": "localhost", "DocumentRoot": root}) + section("TLS", keys)

    server = serve(TLS, config={"sites/default": prepare(before)})
    server.baseline += 2  # of the loop that waits for old generations
    pair = ca.make("client") if has_one else None
    context = ca.context(pair=pair, minimum_version=version, maximum_version=version)
    with TlsClient(server.addresses[0], context) as client:
        client.assert_open()
        session = client.sock.session
    (server.conf / "sites" / "default").write_text(prepare(after))
    server.send_signal(signal.SIGHUP)
    server.wait_log("is not in use any more")
    for _ in range(4):  # in both workers
        if continues is None:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                with TlsClient(server.addresses[0], context, session=session) as client:
                    client.assert_open()
            continue
        with TlsClient(server.addresses[0], context, session=session) as client:
            client.assert_open()
            assert client.sock.session_reused == continues


def test_an_old_connection_meets_the_new_policy(serve, ca, certificate, tmp_path):
    """It was never asked for a certificate, and the name of its handshake is no way round."""
    root = populate(tmp_path / "root", {"hello.txt": b"Hello, world\n"})
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
    server = serve(TLS, config={"sites/default": text + section("TLS", certificate.keys())})
    server.baseline += 2  # of the loop that waits for old generations
    clients = [TlsClient(server.addresses[0], ca.context()) for _ in range(4)]
    for client in clients:
        client.assert_open()
    (server.conf / "sites" / "default").write_text(
        text + section("TLS", certificate.keys(ClientCertificate="Required", ClientCA=ca.cert))
    )
    server.send_signal(signal.SIGHUP)
    server.wait_log("is not in use any more")
    for client in clients:
        assert client.ask("/hello.txt", host="localhost").status == 421
        client.close()


# ── another program ──


@pytest.fixture
def secure(chain, certificate):
    """A chain of servers that speak HTTP/1 and HTTP/2 over TLS."""

    def start(tls=None):
        site = section("HOST", {"ServerName": "localhost", "DocumentRoot": "../../root"}) + section(
            "TLS", certificate.keys()
        )
        files = {"sites/default": site, "plugins/tls/tls.conf": section("TLS", tls or {})}
        return chain(TLS, ["tls.so"], files)

    return start


class Handshake:
    """One that the test carries in both directions, and that stops where the test wants it to."""

    def __init__(self, address, context):
        self.bytes = Bytes(context)
        self.sock = socket.create_connection(address, 30)
        self.hello = self.bytes.step()[1]

    def send(self, data):
        self.sock.sendall(data)

    def take_flight(self):
        self.bytes.incoming.write(self.sock.recv(65536))
        done, self.last = self.bytes.step()
        assert done

    def ask(self, data):
        """The whole answer to a request that ends the connection."""
        self.send(self.last + self.bytes.write(data))
        while piece := self.sock.recv(65536):
            self.bytes.incoming.write(piece)
        self.sock.close()
        answer = b""
        with contextlib.suppress(ssl.SSLZeroReturnError):
            while piece := self.bytes.object.read(65536):
                answer += piece
        return answer


def test_an_upgrade_amid_everything(secure, ca):
    """Requests that have begun end in the old process, which then exits; new connections reach the next one."""
    one = secure()
    address, context = one.server.addresses[0], ca.context()
    part, flight = Handshake(address, context), Handshake(address, context)
    part.send(part.hello[:40])
    flight.send(flight.hello)
    flight.take_flight()
    with (
        TlsClient(address, context, rcvbuf=4096) as down,
        TlsClient(address, context) as up,
        TlsClient(address, context) as idle,
        H2Client(address, context=ca.context(), window=20_000, credit=False) as streams,
    ):
        down.send(request("/large", CLOSE))
        head = down.head()
        up.send(request("/small", "Content-Length: 30000", CLOSE) + b"x" * 15000)
        assert idle.ask("/small").body == SMALL
        number = streams.begin("/large")
        streams.exactly(20_000)
        one.upgrade()
        assert streams.await_goaway() == f.NO_ERROR
        await_true(lambda: idle.ask("/small")["Connection"] == "close", 30, "the last answer")
        assert idle.sock.recv(10) == b"", "an end, with close_notify"
        for _ in range(8):
            with TlsClient(address, context) as client, H2Client(address, context=ca.context()) as other:
                assert client.ask("/small").body == other.ask("/small").body == SMALL
        assert is_alive(one.pids[0])
        assert flight.ask(request("/small", CLOSE)).endswith(SMALL)
        part.send(part.hello[40:])
        part.take_flight()
        assert part.ask(request("/small", CLOSE)).endswith(SMALL)
        assert down.exactly(head.length) == LARGE
        up.send(b"x" * 15000)
        assert up.response().body == SMALL
        assert is_alive(one.pids[0])
        streams.grant(len(LARGE))
        streams.grant(len(LARGE), number)
        assert streams.response(number).body == LARGE
        streams.assert_closed()
    one.await_old()


@pytest.mark.parametrize("shared", [False, True])
def test_sessions_after_an_upgrade(secure, ca, tmp_path, shared):
    """Keys of a file open tickets in the next program too; those of a process end with it."""
    one = secure({"TicketKeys": own(tmp_path / "tickets", os.urandom(80))} if shared else None)
    address, context = one.server.addresses[0], ca.context()
    with TlsClient(address, context) as client:
        assert client.ask("/small").body == SMALL
        session = client.sock.session
    one.upgrade()
    one.await_old()
    with TlsClient(address, context, session=session) as client:
        assert client.ask("/small").body == SMALL
        assert client.sock.session_reused == shared


class SecureLoad(Load):
    """The same, encrypted, and streams."""

    def __init__(self, address, context, *bodies):
        self.context = context
        super().__init__(address, *bodies)

    def kinds(self):
        return [*super().kinds(), self.streams, self.renew_streams]

    def connect(self, **rest):
        return TlsClient(self.address, self.context(), timeout=30, **rest)

    def connect_h2(self):
        return H2Client(self.address, timeout=30, context=self.context())

    def streams(self):
        """The streams above that of the GOAWAY are requested again, but the first is answered."""
        with self.connect_h2() as client:
            while not self.ending.is_set() and not client.goaway:
                number = client.begin(self.small)
                try:
                    self.seen(self.small, client.response(number))
                except (GoneAway, ConnectionError):
                    if number == 1 or client.goaway and (client.goaway[1] or client.goaway[0] >= number):
                        raise
                    return

    def renew_streams(self):
        with self.connect_h2() as client:
            numbers = [client.begin(self.small) for _ in range(5)] + [client.begin(self.large)]
            for number in numbers:
                self.seen(self.large if number == numbers[-1] else self.small, client.response(number))


def test_three_upgrades_under_load(secure, ca):
    one = secure()
    with SecureLoad(one.server.addresses[0], ca.context, SMALL, LARGE) as load:
        for _ in range(3):
            before = load.answers
            await_true(lambda: load.answers > before, 60, "an answer")
            one.upgrade()
        await_true(lambda: load.answers > before + 10, 60, "an answer of the last")
    assert not load.errors and not load.refused, load.errors
    one.await_old()
