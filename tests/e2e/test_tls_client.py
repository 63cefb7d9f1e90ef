# SPDX-License-Identifier: Apache-2.0
"""Connections that a plugin opens with TLS: the module dialer of tests/plugins, and servers of the tests' own."""

import contextlib
import pathlib
import re
import signal
import socket
import ssl
import threading

import pytest

from harness import build
from harness.certificates import Authority, openssl
from harness.protocol import Client
from harness.server import Server, run, section, write_config

pytestmark = [
    pytest.mark.single_protocol,
    build.needs_modules,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} lacks tls"),
]
BODY = b"hello from behind\n"


class Backend:
    """A server with TLS in a thread. `answer` gets each connection and the number of its handshake, from 1; `greeting`
    is sent in the clear before the handshake."""

    def __init__(self, context, answer=None, greeting=b""):
        self.context, self.greeting = context, greeting
        self.answer = answer or reply
        self.resumed, self.names, self.peers, self.errors = [], [], [], []
        self.context.sni_callback = lambda _sock, name, _context: self.names.append(name)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=[plain], daemon=True).start()

    def serve(self, plain):
        plain.settimeout(60)
        try:
            plain.sendall(self.greeting)
            with self.context.wrap_socket(plain, server_side=True, suppress_ragged_eofs=False) as sock:
                self.resumed.append(sock.session_reused)
                self.peers.append(sock.getpeercert())
                self.answer(sock)
        except OSError as error:
            self.errors.append(error)
        finally:
            plain.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def reply(sock):
    sock.recv(65536)
    sock.sendall(BODY)
    sock.unwrap()


def truncate(sock):
    sock.recv(65536)
    sock.sendall(BODY)  # and no close_notify


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def pair(ca):
    return ca.make("localhost", "localhost", "IP:127.0.0.1")


def context_of(pair, **versions):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    for key, value in versions.items():
        setattr(context, key, value)
    return context


class Fixture:
    """A server with the module, and a backend; `keys` are those of [DIALER]."""

    def __init__(self, stack, folder, site_root):
        self.stack, self.folder, self.site_root = stack, folder, site_root
        self.server, self.reloads = None, 0

    def backend(self, *args, **keys):
        backend = Backend(*args, **keys)
        self.stack.callback(backend.close)
        return backend

    def write(self, site="", plugins=("liana", build.MODULES / "dialer.so", "static"), workers=1):
        load = "[PLUGINS]\n" + "".join(f"    Load {name}\n" for name in plugins)
        conf = write_config(self.folder / "conf", self.site_root, {"Workers": workers}, files={"plugins.load": load})
        with open(conf / "sites" / "default", "a") as file:
            file.write(site)
        return conf

    def start(self, to, workers=1, **keys):
        conf = self.write(section("DIALER", {"To": to, **keys}), workers=workers)
        self.server = Server("-c", conf)
        self.stack.callback(self.server.stop)
        return self

    def reload(self):
        self.reloads += 1
        self.server.send_signal(signal.SIGHUP)
        self.server.wait_log("the new configuration is in use", self.reloads)

    def ask(self, path="/dial"):
        with Client(self.server.addresses[0]) as client:
            return client.ask(path)


@pytest.fixture
def fixture(tmp_path, site_root):
    with contextlib.ExitStack() as stack:
        yield Fixture(stack, tmp_path, site_root)


def assert_refused(response, kind, sentence):
    assert (response.status, response["x-error"], response.body.decode()) == (502, kind, sentence)


# ── verification ──


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_good(fixture, ca, pair, version):
    backend = fixture.backend(context_of(pair, maximum_version=version))
    response = fixture.start(backend.address, CA=ca.cert).ask()
    assert (response.status, response.body, response["x-end"]) == (200, BODY, "whole")
    assert response["x-version"] == version.name.replace("_", ".")
    assert backend.names == ["localhost"]


@pytest.mark.parametrize("name, sni", [("localhost.", "localhost"), ("127.0.0.1", None), ("LOCALHOST", "LOCALHOST")])
def test_spellings_of_the_name(fixture, ca, pair, name, sni):
    """An address is verified as such, and never sent as SNI."""
    backend = fixture.backend(context_of(pair))
    assert fixture.start(backend.address, CA=ca.cert, Name=name).ask().body == BODY
    assert [n and n.lower() for n in backend.names] == [sni and sni.lower()]


@pytest.mark.parametrize("names, name", [(["*.example.org"], "a.example.org"), (["IP:::1"], "[::1]")])
def test_names_that_are_covered(fixture, ca, names, name):
    backend = fixture.backend(context_of(ca.make("covered", *names)))
    assert fixture.start(backend.address, CA=ca.cert, Name=f'"{name}"').ask().body == BODY


@pytest.mark.parametrize(
    "names, name",
    [
        (["localhost"], "example.org"),
        (["localhost"], "127.0.0.1"),
        (["*.example.org"], "a.b.example.org"),
        (["f*.example.org"], "foo.example.org"),
        ([], "localhost"),  # the name of the subject does not count
    ],
)
def test_wrong_name(fixture, ca, names, name):
    backend = fixture.backend(context_of(ca.make("other", *names, subject="/CN=localhost")))
    response = fixture.start(backend.address, CA=ca.cert, Name=name).ask()
    assert_refused(response, "tls_certificate_error", f"the certificate of the server does not cover {name}")


def test_expired(fixture, ca):
    backend = fixture.backend(context_of(ca.make("old", "localhost", end="20210101000000Z")))
    response = fixture.start(backend.address, CA=ca.cert).ask()
    assert_refused(response, "tls_certificate_error", "the certificate of the server has expired")


def test_not_valid_yet(fixture, ca):
    backend = fixture.backend(context_of(ca.make("new", "localhost", start="20480101000000Z")))
    response = fixture.start(backend.address, CA=ca.cert).ask()
    assert_refused(response, "tls_certificate_error", "the certificate of the server is not valid yet")


def test_for_clients_only(fixture, ca):
    backend = fixture.backend(context_of(ca.make("client", "localhost", use="clientAuth")))
    response = fixture.start(backend.address, CA=ca.cert).ask()
    assert_refused(response, "tls_certificate_error", "the certificate of the server is not for servers")


def test_self_signed(fixture, ca, tmp_path):
    cert, key = tmp_path / "self.pem", tmp_path / "self.key"
    openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
        "-days", 30, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    backend = fixture.backend(context)
    response = fixture.start(backend.address, CA=ca.cert).ask()
    sentence = "the certificate of the server is self-signed, and is not in the file of authorities"
    assert_refused(response, "tls_certificate_error", sentence)
    other = Fixture(fixture.stack, tmp_path / "trusted", fixture.site_root)
    assert other.start(backend.address, CA=cert).ask().body == BODY


@pytest.mark.parametrize("own", [True, False])
def test_unknown_authority(fixture, pair, tmp_path, own):
    """Of a file, and of the system."""
    keys = {"CA": Authority(tmp_path / "other").cert} if own else {}
    backend = fixture.backend(context_of(pair))
    response = fixture.start(backend.address, **keys).ask()
    sentence = "the certificate of the server is of an authority that is not trusted"
    assert_refused(response, "tls_certificate_error", sentence)


def test_without_verification(fixture, ca):
    backend = fixture.backend(context_of(ca.make("any", "example.net", end="20210101000000Z")))
    assert fixture.start(backend.address, Verify="Off").ask().body == BODY
    assert backend.names == ["localhost"]


# ── own certificate, ALPN, versions ──


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("given", [True, False])
def test_own_certificate(fixture, ca, pair, given, version):
    context = context_of(pair, maximum_version=version, verify_mode=ssl.CERT_REQUIRED)
    context.load_verify_locations(ca.cert)
    own = ca.make("proxy", "proxy.example.org", subject="/CN=proxy")
    backend = fixture.backend(context)
    keys = {"Certificate": own.cert, "Key": own.key} if given else {}
    response = fixture.start(backend.address, CA=ca.cert, **keys).ask()
    if given:
        assert response.body == BODY
        assert backend.peers[0]["subject"] == ((("commonName", "proxy"),),)
        return
    assert (response.status, response["x-error"]) == (502, "tls_alert_received")
    assert response.body.startswith(b'the server has refused with the TLS alert "')


@pytest.mark.parametrize("offered, chosen", [("http/1.1 http/1.0", "http/1.1"), ("http/1.0", ""), (None, "")])
def test_alpn(fixture, ca, pair, offered, chosen):
    context = context_of(pair)
    context.set_alpn_protocols(["h2", "http/1.1"])
    backend = fixture.backend(context)
    response = fixture.start(backend.address, CA=ca.cert, **({"Protocols": offered} if offered else {})).ask()
    assert (response.status, response["x-protocol"] or "") == (200, chosen)


def test_old_version(fixture, ca, pair):
    context = context_of(pair, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
    context.set_ciphers("ALL:@SECLEVEL=0")
    response = fixture.start(fixture.backend(context).address, CA=ca.cert).ask()
    assert_refused(response, "tls_alert_received", 'the server has refused with the TLS alert "protocol version"')


# ── sessions ──


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed(fixture, ca, pair, version):
    backend = fixture.backend(context_of(pair, maximum_version=version))
    fixture.start(backend.address, CA=ca.cert)
    for _ in range(4):
        assert fixture.ask().body == BODY
    assert backend.resumed == [False, True, True, True]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_threads_share_the_sessions(fixture, ca, pair, tmp_path, version):
    """While the files change, too."""
    file = tmp_path / "trusted.pem"
    file.write_bytes(ca.cert.read_bytes())
    backend = fixture.backend(context_of(pair, maximum_version=version))
    fixture.start(backend.address, workers=2, CA=file)
    bodies = []

    def ask():
        bodies.extend(fixture.ask().body for _ in range(10))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    file.write_bytes(ca.cert.read_bytes() * 2)
    for thread in threads:
        thread.join()
    assert bodies == [BODY] * 80
    assert backend.resumed.count(True) > 20


# ── streams ──


def test_truncation(fixture, ca, pair):
    backend = fixture.backend(context_of(pair), truncate)
    response = fixture.start(backend.address, CA=ca.cert).ask()
    assert (response.body, response["x-end"]) == (BODY, "truncated")


def test_end_before_an_answer(fixture, ca, pair):
    backend = fixture.backend(context_of(pair), lambda sock: sock.recv(65536))
    response = fixture.start(backend.address, CA=ca.cert).ask()
    assert_refused(response, "connection_terminated", "the server has closed the connection")


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", b"\x00", b"evil"])
def test_bytes_in_the_clear(fixture, ca, pair, greeting):
    """Before the handshake: they are never taken for what comes in it."""
    backend = fixture.backend(context_of(pair), greeting=greeting)
    response = fixture.start(backend.address, CA=ca.cert).ask()
    assert (response.status, response["x-error"]) == (502, "tls_protocol_error")
    assert b"evil" not in response.body


def test_server_without_tls(fixture, ca):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fixture.start(f"https://127.0.0.1:{listener.getsockname()[1]}", CA=ca.cert)

        def answer():
            sock, _ = listener.accept()
            with sock:
                sock.recv(65536)
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        response = fixture.ask()
        thread.join()
    assert_refused(response, "tls_protocol_error", "the server does not speak TLS at this port")


def test_server_that_closes_at_once(fixture, ca):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fixture.start(f"https://127.0.0.1:{listener.getsockname()[1]}", CA=ca.cert)

        def answer():
            sock, _ = listener.accept()
            sock.recv(65536)
            sock.close()

        thread = threading.Thread(target=answer)
        thread.start()
        response = fixture.ask()
        thread.join()
    sentence = "the server has closed the connection in the TLS handshake"
    assert_refused(response, "connection_terminated", sentence)


def test_server_that_never_answers(fixture, ca):
    """The caller's timeout closes the connection while the handshake is under way."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fixture.start(f"https://127.0.0.1:{listener.getsockname()[1]}", CA=ca.cert, Wait="100ms")
        response = fixture.ask()
    sentence = "the connection has failed in the TLS handshake: Connection timed out"
    assert_refused(response, "proxy_internal_error", sentence)


def test_large_answer(fixture, ca, pair):
    def answer(sock):
        sock.recv(65536)
        sock.sendall(b"x" * 60000)
        sock.unwrap()

    response = fixture.start(fixture.backend(context_of(pair), answer).address, CA=ca.cert).ask()
    assert (response.body, response["x-end"]) == (b"x" * 60000, "whole")


# ── files and reloads ──


def test_authorities_that_change(fixture, ca, pair, tmp_path):
    """Without a reload; a file that cannot be used is logged, and the former state stays."""
    file = tmp_path / "trusted.pem"
    other = Authority(tmp_path / "other")
    file.write_bytes(other.cert.read_bytes())
    backend = fixture.backend(context_of(pair))
    fixture.start(backend.address, CA=file)
    assert fixture.ask().status == 502
    file.write_bytes(ca.cert.read_bytes())
    fixture.server.wait_log("tls: the files for connections to localhost: loaded again")
    assert fixture.ask().body == BODY
    file.write_text("nothing")
    fixture.server.wait_log(
        r"tls: the files for connections to localhost: the files have changed, but cannot be used, and the former "
        r"state stays: the file of authorities \S+ holds no certificate in PEM"
    )
    assert fixture.ask().body == BODY


def test_own_certificate_that_changes(fixture, ca, pair, tmp_path):
    context = context_of(pair, verify_mode=ssl.CERT_REQUIRED)
    context.load_verify_locations(ca.cert)
    backend = fixture.backend(context)
    own = [ca.make(f"own{i}", "proxy", subject=f"/CN=own{i}") for i in range(2)]
    cert, key = tmp_path / "own.pem", tmp_path / "own.key"
    cert.write_bytes(own[0].cert.read_bytes() + own[0].key.read_bytes())
    cert.chmod(0o600)
    fixture.start(backend.address, CA=ca.cert, Certificate=cert, Key=cert)
    assert fixture.ask().body == BODY
    new = cert.with_suffix(".new")
    new.write_bytes(own[1].cert.read_bytes() + own[1].key.read_bytes())
    new.chmod(0o600)
    new.rename(cert)
    fixture.server.wait_log("loaded again")
    assert fixture.ask().body == BODY
    assert [peer["subject"][0][0][1] for peer in backend.peers] == ["own0", "own1"]
    assert backend.resumed == [False, False]  # a session is of the files that it began with
    assert not key.exists()


def lines(sock):
    """Answers each piece with a line, until the client ends."""
    while data := sock.recv(65536):
        sock.sendall(b"%d bytes\n" % len(data))


def test_connections_outlive_their_settings(fixture, ca, pair):
    """A reload with other settings, then without any: the connection that is kept works as long as its owner."""
    backend = fixture.backend(context_of(pair), lines)
    fixture.start(backend.address, CA=ca.cert)
    assert fixture.ask("/keep")["x-end"] == "kept"
    for name in ("127.0.0.1", "localhost"):
        fixture.write(section("DIALER", {"To": backend.address, "CA": ca.cert, "Name": name}))
        fixture.reload()
        assert fixture.ask("/kept")["x-end"] == "kept"
    assert fixture.ask("/keep")["x-end"] == "kept"  # a second one, which is closed
    assert backend.resumed == [False, False]
    fixture.write(plugins=("liana", "static"))
    fixture.reload()
    fixture.server.wait_log("dialer: the connection that was kept is closed")
    assert fixture.ask("/dial").status == 404


def test_reload_amid_handshakes(fixture, ca, pair):
    """A handshake that began under the former settings ends under them."""
    started, go = threading.Event(), threading.Event()
    context = context_of(pair)
    backend = fixture.backend(context)

    def wait(_sock, _name, _context):
        started.set()
        go.wait(60)

    context.sni_callback = wait
    fixture.start(backend.address, CA=ca.cert)
    found = []
    thread = threading.Thread(target=lambda: found.append(fixture.ask()))
    thread.start()
    assert started.wait(60)
    fixture.write(plugins=("liana", "static"))
    fixture.reload()
    go.set()
    thread.join()
    assert found[0].body == BODY


# ── configurations ──


@pytest.mark.parametrize(
    "keys, key, sentence",
    [
        ({"CA": "/none"}, "CA", "the file of authorities /none cannot be read: No such file or directory"),
        ({"Certificate": "/none"}, "Certificate", "there is no key for this certificate"),
        ({"Key": "/none"}, "Key", "there is no certificate for this key"),
        ({"CA": "{ca}", "Certificate": "{ca}", "Key": "/none"}, "Key", "the private key /none cannot be read: .*"),
        ({"CA": "{ca}", "Certificate": "/none", "Key": "{key}"}, "Certificate", "the certificate /none cannot be read"),
        ({"CA": "{ca}", "Certificate": "{ca}", "Key": "{key}"}, "Key", "the private key .* does not belong to the"),
        ({"CA": "{ca}", "Name": '"a b"'}, "Name", "the name of the server must be a DNS name or an IP address"),
        ({"CA": "{ca}", "Protocols": "a" * 256}, "Protocols", "a protocol must have 1 to 255 bytes"),
        ({"CA": "{ca}", "Name": '""'}, "Name", "the name that the certificate of the server must have is missing"),
    ],
)
def test_errors_have_a_place(fixture, ca, pair, keys, key, sentence):
    keys = {k: v.format(ca=ca.cert, key=pair.key) for k, v in keys.items()}
    conf = fixture.write(section("DIALER", {"To": "https://127.0.0.1:1", **keys}))
    text = (conf / "sites" / "default").read_text().splitlines()
    line = 1 + max(n for n, t in enumerate(text) if t.split()[:1] == [key])
    result = run("-c", conf, "-t")
    assert result.returncode == 1
    assert f"sites/default:{line}:" in result.stderr
    assert result.stderr.count("error:") == 1
    assert re.search(f"error: {sentence}", result.stderr), result.stderr


def test_tls_is_loaded_when_it_is_needed(fixture, ca, pair):
    """Only then: the server has no libssl otherwise."""

    def maps():
        return "libssl" in pathlib.Path(f"/proc/{fixture.server.pid}/maps").read_text()

    backend = fixture.backend(context_of(pair))
    conf = fixture.write()
    fixture.server = Server("-c", conf)
    fixture.stack.callback(fixture.server.stop)
    assert not maps()
    fixture.write(section("DIALER", {"To": backend.address, "CA": ca.cert}))
    fixture.reload()
    assert fixture.ask().body == BODY
    assert maps()


def test_tls_may_be_named_as_well(fixture, ca, pair):
    backend = fixture.backend(context_of(pair))
    site = section("DIALER", {"To": backend.address, "CA": ca.cert})
    conf = fixture.write(site, plugins=("liana", "tls", build.MODULES / "dialer.so", "static"))
    fixture.server = Server("-c", conf)
    fixture.stack.callback(fixture.server.stop)
    assert fixture.ask().body == BODY


def test_tls_is_missing(fixture, tmp_path, ca):
    """The plugin says so, at the line that needs it."""
    (tmp_path / "lib" / "monkey").mkdir(parents=True)
    program = build.install(tmp_path)
    conf = fixture.write(section("DIALER", {"To": "https://127.0.0.1:1", "CA": ca.cert}))
    result = run("-c", conf, "-t", program=program)
    assert result.returncode == 1
    sentence = r"sites/default:\d+:\d+: error: the plugin tls is missing: it takes the file \S+/tls\.so"
    assert re.search(sentence, result.stderr)
