# SPDX-License-Identifier: Apache-2.0
"""The plugin proxy with backends behind https://: verification, connections that are kept, ends, settings."""

import os
import re
import socket
import ssl
import subprocess

import pytest

from harness import build
from harness.backend import Backend, answer, echo, echo_websocket, stay_silent
from harness.certificates import Authority
from harness.messages import chunked, lines, request, sized
from harness.proxies import TEXT, proxy_section
from harness.server import await_true, run, write_config
from harness.services import CONTROL_THREAD, reload
from harness.ways import WAYS
from harness.websocket import BINARY, WebSocket

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} lacks tls"),
]
VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def pair(ca):
    return ca.make("localhost", "localhost", "IP:127.0.0.1")


def context_of(pair, **rest):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    context.sni_callback = lambda sock, name, _: setattr(sock, "asked_name", name)
    for key, value in rest.items():
        setattr(context, key, value)
    return context


@pytest.fixture
def proxy(serve, ca):
    """A server whose default host passes requests to a backend with TLS."""

    def start(backend, keys=None, settings=None, **rest):
        text = proxy_section(backend, {"TlsCA": ca.cert, **(keys or {})})
        return serve({"Workers": 1, **(settings or {})}, text=text, **rest)

    return start


def truncate(peer):
    """Ends the connection without close_notify."""
    peer.half_close()


def cork(peer, on):
    """What is sent meanwhile leaves in one segment."""
    peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, on)


# ── there and back ──


@VERSIONS
@pytest.mark.parametrize("way", ["h1", "h2-tls"])
def test_websocket(serve, tmp_path, ca, pair, version, way):
    """A tunnel goes through the transport, too."""
    with Backend(echo_websocket, tls=context_of(pair, maximum_version=version)) as backend:

        def start(_, settings, text="", **rest):
            return serve(settings, text=text + proxy_section(backend, {"TlsCA": ca.cert}), **rest)

        server = WAYS[way].start(start, tmp_path, None, {"Workers": 1})
        server.way = WAYS[way]
        ws = WebSocket(server, "/chat")
        ws.assert_echo("hello")
        ws.assert_echo(os.urandom(400_000), opcode=BINARY)
        for n in range(50):
            ws.assert_echo(f"message {n}")
        ws.close()


@VERSIONS
def test_request_and_response(proxy, pair, version):
    with Backend(echo, tls=context_of(pair, maximum_version=version)) as backend:
        with proxy(backend).connect() as client:
            got = client.ask("/a%20b?c")
            assert (got.status, got["Echo"]) == (200, "GET /a%20b?c")
            assert client.ask("/up", method="POST", body=b"x" * 1000).body == b"x" * 1000
        assert backend.requests[0]["Host"] == backend.address
        assert backend.requests[0]["X-Forwarded-Proto"] == "http"
        assert [peer.server_name for peer in backend.peers] == [None]  # an address is not sent


@pytest.mark.parametrize("host, sent", [("Client", "example.org"), ("Backend", None), ("app.example", "app.example")])
def test_name_and_host(proxy, pair, host, sent):
    with Backend(echo, tls=pair) as backend:
        with proxy(backend, {"TlsName": "localhost", "HostHeader": host}).connect() as client:
            client.send(lines("GET / HTTP/1.1", "Host: example.org"))
            assert client.response().status == 200
        assert backend.requests[0]["Host"] == (sent or backend.address)
        assert backend.peers[0].server_name == "localhost"


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_large_bodies_both_ways(proxy, pair, framing):
    body = bytes(range(256)) * 20000

    def respond(peer):
        while True:
            got = peer.request()
            if framing == "chunks":
                peer.respond(TEXT, TEXT, chunks=[got.body[at : at + 99999] for at in range(0, len(got.body), 99999)])
            else:
                peer.respond(got.body, TEXT)

    with Backend(respond, tls=pair) as backend:
        with proxy(backend).connect() as client:
            for _ in range(2):
                head = ["Transfer-Encoding: chunked"] if framing == "chunks" else [sized(body)]
                client.send(lines("POST / HTTP/1.1", "Host: a", *head))
                client.send(chunked(*[body[at : at + 70001] for at in range(0, len(body), 70001)])
                            if framing == "chunks" else body)  # fmt: skip
                assert client.response("POST").body == body
        assert len(backend.peers) == 1


def test_a_slow_client_stops_the_backend(proxy, pair):
    body = b"x" * 20_000_000

    def respond(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(body)))
        peer.sock.settimeout(None)
        peer.sock.sendall(body)
        peer.backend.tell("sent")

    with Backend(respond, tls=pair) as backend:
        server = proxy(backend, {"BufferResponse": "Off"}, settings={"SendBuffer": "64K"})
        with server.connect(rcvbuf=65536) as client:
            client.send(request("/"))
            assert not backend.events("sent").wait(0.5)
            assert client.response().body == body


def test_a_slow_client_holds_no_backend(proxy, pair):
    """What it does not take is kept, and the connection serves others."""
    body = b"x" * 20_000_000

    def respond(peer):
        while True:
            if peer.request().target == "/":
                peer.respond(body, TEXT)
                peer.backend.tell("taken")
            else:
                peer.respond(b"hello", TEXT, "Connection: close")

    with Backend(respond, tls=pair) as backend:
        server = proxy(backend, settings={"SendBuffer": "64K"})
        with server.connect(rcvbuf=65536) as client, server.connect() as other:
            client.send(request("/"))
            assert client.head().status == 200
            first = backend.wait_accepted(1)[0]
            assert backend.events("taken").wait(90)
            await_true(lambda: other.ask("/other").status == 200 and len(first.requests) > 1, 60, "the connection")
            assert client.exactly(len(body)) == body


def test_a_slow_backend_stops_the_client(proxy, pair):
    """What the transport holds is sent when the socket takes it."""
    body = bytes(range(256)) * 16000

    def respond(peer):
        peer.head()
        peer.wait("now")
        peer.respond(b"%d" % len(peer.body()), TEXT)

    with Backend(respond, tls=pair, rcvbuf=4096) as backend:
        server = proxy(backend)
        with server.connect() as client:
            client.send(lines("POST / HTTP/1.1", "Host: a", sized(body)) + body[:1_000_000])
            backend.wait_accepted(1)
            backend.tell("now")
            client.send(body[1_000_000:])
            assert client.response("POST").body == b"%d" % len(body)


# ── certificates ──


def assert_refused(server, got, kind, details):
    assert got.status == 502
    value = got["Proxy-Status"].replace('\\"', '"')
    assert re.fullmatch(f'monkey; error={kind}; details="{details}"', value), value
    server.wait_log(f"proxy: https://127.0.0.1:[0-9]+: {details}")


@pytest.mark.parametrize("why", ["name", "authority", "the system's authorities"])
def test_certificates_that_are_refused(proxy, pair, tmp_path, why):
    keys = {"TlsName": "example.org"} if why == "name" else {"TlsCA": Authority(tmp_path / "other").cert}
    reason = "does not cover example.org" if why == "name" else "is of an authority that is not trusted"
    with Backend(echo, tls=pair) as backend:
        server = proxy(backend, {"TlsCA": '""'} if why == "the system's authorities" else keys)
        with server.connect() as client:
            got = client.ask("/")
        assert_refused(server, got, "tls_certificate_error", f"the certificate of the server {reason}")
        assert not backend.requests


def test_without_verification(proxy, ca, tmp_path):
    with Backend(answer(b"hello", TEXT), tls=ca.make("any", "example.net", end="20210101000000Z")) as backend:
        server = proxy(backend, {"TlsCA": Authority(tmp_path / "other").cert, "TlsVerify": "Off"})
        with server.connect() as client:
            assert client.ask("/").body == b"hello"
    result = run("-c", server.conf, "-t")
    assert result.returncode == 0
    assert re.search(r"sites/default:\d+:.* warning: the certificate of the backend is not verified", result.stderr)


@VERSIONS
@pytest.mark.parametrize("given", [True, False])
def test_own_certificate(proxy, ca, pair, version, given):
    context = context_of(pair, maximum_version=version, verify_mode=ssl.CERT_REQUIRED)
    context.load_verify_locations(ca.cert)
    own = ca.make(f"own-{version.name}-{given}", "proxy.example.org", subject="/CN=proxy")
    subjects = []

    def respond(peer):
        subjects.append(peer.sock.getpeercert()["subject"])
        answer(b"hello", TEXT)(peer)

    with Backend(respond, tls=context) as backend:
        server = proxy(backend, {"TlsCertificate": own.cert, "TlsKey": own.key} if given else None)
        with server.connect() as client:
            got = client.ask("/")
        if given:
            assert (got.body, subjects) == (b"hello", [((("commonName", "proxy"),),)])
        else:  # with TLS 1.3 the request is on its way by then, and its reset may overtake the alert
            assert got.status == 502
            assert re.match("monkey; error=(tls_alert_received|connection_terminated); details=", got["Proxy-Status"])
            backend.failed_handshakes.clear()


# ── connections ──


@VERSIONS
def test_connections_are_kept(proxy, pair, version):
    with Backend(answer(b"hello", TEXT), tls=context_of(pair, maximum_version=version)) as backend:
        with proxy(backend).connect() as client:
            for n in range(20):
                assert client.ask(f"/{n}").body == b"hello"
        assert len(backend.peers) == 1


@VERSIONS
def test_sessions_are_resumed(proxy, pair, version):
    resumed = []

    def respond(peer):
        resumed.append(peer.sock.session_reused)
        answer(b"hello", TEXT)(peer)

    with Backend(respond, tls=context_of(pair, maximum_version=version)) as backend:
        with proxy(backend, {"KeepAliveTimeout": "50ms"}).connect() as client:
            for _ in range(3):
                assert client.ask("/").body == b"hello"
                backend.wait_open(0)
    assert resumed == [False, True, True]


@pytest.mark.parametrize("how", ["close_notify", "close", "bytes", "close_notify with the response"])
def test_ends_of_idle_connections(proxy, pair, how):
    """None of them is used again: each POST gets through."""

    def respond(peer):
        peer.request()
        cork(peer, how == "close_notify with the response")
        peer.respond(b"%d" % peer.number, TEXT)
        if how == "close_notify with the response":
            peer.notify_close()
            cork(peer, False)
            peer.sock.settimeout(60)  # the end of the connection does not follow
        else:
            peer.wait(str(peer.number))
        if how == "bytes":
            peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(b"wrong")) + b"wrong")
        elif how == "close_notify":
            peer.notify_close()
        elif how == "close":
            truncate(peer)
        peer.wait_end()

    with Backend(respond, tls=pair) as backend:
        with proxy(backend, {"KeepAliveTimeout": "60s"}).connect() as client:
            for n in range(3):
                assert client.ask("/", method="POST", body=b"x").body == b"%d" % n
                backend.tell(str(n))
                backend.wait_open(0)


def test_excess_in_a_record_of_its_own(proxy, pair):
    def respond(peer):
        peer.request()
        cork(peer, True)
        peer.respond(b"%d" % peer.number, TEXT)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
        cork(peer, False)
        peer.wait_end()

    with Backend(respond, tls=pair) as backend:
        with proxy(backend, {"KeepAliveTimeout": "60s"}).connect() as client:
            for n in range(3):
                assert client.ask("/").body == b"%d" % n
                backend.wait_open(0)


def test_messages_of_tls_on_an_idle_connection(proxy, pair):
    """A KeyUpdate is no reason to close it. `openssl s_server` sends one for a line that begins with K."""
    args = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", pair.cert, "-key", pair.key, "-msg"]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as backend:
        output = b""

        def read_until(pattern):
            nonlocal output
            while not (found := re.search(pattern, output)):
                data = os.read(backend.stdout.fileno(), 65536)
                assert data, output
                output += data
            skipped, output = output[: found.start()], output[found.end() :]
            return found, skipped

        def write(data):
            backend.stdin.write(data)
            backend.stdin.flush()

        try:
            port = read_until(rb"ACCEPT 127.0.0.1:(\d+)")[0][1].decode()
            with proxy(None, {"To": f"https://127.0.0.1:{port}"}).connect() as client:
                client.send(request("/first"))
                read_until(rb"GET /first HTTP/1.1")
                write(lines("HTTP/1.1 200 OK", TEXT, sized(b"hello")) + b"hello")
                assert client.response().body == b"hello"
                write(b"K\n")
                read_until(rb">>> TLS 1.3, Handshake \[length 0005\], KeyUpdate")
                client.send(request("/second"))
                assert b"ClientHello" not in read_until(rb"GET /second HTTP/1.1")[1]
                write(lines("HTTP/1.1 200 OK", TEXT, sized(b"again")) + b"again")
                assert client.response().body == b"again"
        finally:
            backend.kill()


# ── ends ──


def test_a_body_until_the_end(proxy, pair):
    def respond(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, "Connection: close") + b"hello")
        peer.notify_close()

    with Backend(respond, tls=pair) as backend:
        with proxy(backend).connect() as client:
            for _ in range(2):
                assert client.ask("/").body == b"hello"


BODIES = {
    "until the end": lines("HTTP/1.1 200 OK", TEXT, "Connection: close") + b"hello",
    "length": lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 10") + b"hello",
    "chunks": lines("HTTP/1.1 200 OK", TEXT, "Transfer-Encoding: chunked") + b"5\r\nhello\r\n",
}


@pytest.mark.parametrize("name", BODIES)
def test_truncation(proxy, pair, name):
    """An end without close_notify cuts the response."""

    def respond(peer):
        peer.request()
        peer.send(BODIES[name])
        peer.wait("now")
        truncate(peer)

    with Backend(respond, tls=pair) as backend:
        server = proxy(backend)
        with server.connect() as client:
            client.send(request("/"))
            backend.wait_requests(1)
            assert client.head().status == 200
            backend.tell("now")
            assert not client.rest().endswith(b"0\r\n\r\n")
        server.wait_log("proxy: https://127.0.0.1:[0-9]+: the server has closed the connection")


def test_end_before_a_response(proxy, pair):
    def respond(peer):
        peer.request()
        truncate(peer)

    with Backend(respond, tls=pair) as backend:
        server = proxy(backend)
        with server.connect() as client:
            got = client.ask("/")
        assert_refused(server, got, "connection_terminated", "the server has closed the connection")


def test_handshake_without_end(proxy):
    with Backend(stay_silent) as backend:
        with proxy(None, {"To": f"https://{backend.address}", "ConnectTimeout": "100ms"}).connect() as client:
            got = client.ask("/")
            assert (got.status, got["Proxy-Status"]) == (504, "monkey; error=connection_timeout")
            backend.wait_open(0)


def test_client_leaves_in_the_handshake(proxy):
    with Backend(stay_silent) as backend:
        server = proxy(None, {"To": f"https://{backend.address}"})
        with server.connect() as client:
            client.send(request("/"))
            backend.wait_accepted(1)
        backend.wait_open(0)


@pytest.mark.parametrize("data", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_backend_without_tls(proxy, data):
    def respond(peer):
        peer.fill()
        peer.take(len(peer.buffer))
        peer.send(data)

    with Backend(respond) as backend:
        server = proxy(None, {"To": f"https://{backend.address}"})
        with server.connect() as client:
            got = client.ask("/")
        if data:
            assert_refused(server, got, "tls_protocol_error", "the server does not speak TLS at this port")
        else:
            details = "the server has closed the connection in the TLS handshake"
            assert_refused(server, got, "connection_terminated", details)


# ── reloads ──


def test_reload_with_other_authorities(proxy, pair, site_root, tmp_path):
    """A connection that is idle serves no section with other authorities; a response that has begun continues."""
    other = Authority(tmp_path / "other").cert

    def respond(peer):
        peer.request()
        peer.respond(b"hello", TEXT)
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", TEXT, sized(b"hello")) + b"he")
        peer.wait("now")
        peer.send(b"llo")
        peer.wait_end()

    with Backend(respond, tls=pair) as backend:
        server = proxy(backend)
        with server.connect() as client, server.connect() as second:
            assert client.ask("/").body == b"hello"
            client.send(request("/"))
            backend.wait_requests(2)
            text = proxy_section(backend, {"TlsCA": other})
            write_config(server.conf, site_root, {"Workers": 1}, text=text)
            reload(server)
            assert second.ask("/").status == 502
            backend.tell("now")
            assert client.response().body == b"hello"
            assert second.ask("/").status == 502
        backend.failed_handshakes.clear()
    server.baseline += CONTROL_THREAD


# ── the configuration ──


MISTAKES = {
    "TlsCA /none": "the file of authorities /none cannot be read: No such file or directory",
    "TlsCA {ca}\n    TlsCertificate /none\n    TlsKey {key}": "the certificate /none cannot be read",
    "TlsCA {ca}\n    TlsCertificate {ca}\n    TlsKey /none": "the private key /none cannot be read",
    "TlsCA {ca}\n    TlsCertificate {ca}": "there is no key for this certificate",
    "TlsCA {ca}\n    TlsKey {key}": "there is no certificate for this key",
    'TlsCA {ca}\n    TlsName "a b"': "the name of the server must be a DNS name or an IP address",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(tmp_path, site_root, ca, pair, text):
    keys = text.format(ca=ca.cert, key=pair.key)
    conf = write_config(tmp_path / "conf", site_root, text=f"[PROXY]\n    To https://localhost\n    {keys}\n")
    got = run("-c", conf, "-t")
    file = (conf / "sites" / "default").read_text().splitlines()
    part = "/none" if "/none" in text else keys.rpartition("\n")[2].strip()
    line = 1 + next(n for n, each in enumerate(file) if part in each)
    assert got.returncode == 1
    assert re.search(rf"sites/default:{line}:\d+: error: {MISTAKES[text]}", got.stderr), got.stderr
    assert got.stderr.count("error:") == 1


def test_tls_keys_without_tls(tmp_path, site_root, ca):
    text = f"[PROXY]\n    To http://localhost\n    TlsCA {ca.cert}\n"
    got = run("-c", write_config(tmp_path / "conf", site_root, text=text), "-t")
    assert got.returncode == 1
    assert "error: connections to this backend have no TLS: To must begin with https://" in got.stderr


LOAD = {"plugins.load": "[PLUGINS]\n    Load liana\n    Load proxy\n    Load static\n"}


def test_tls_is_loaded_when_it_is_needed(proxy, pair):
    with Backend(answer(b"hello", TEXT), tls=pair) as backend:
        with proxy(backend, config=LOAD).connect() as client:
            assert client.ask("/").body == b"hello"


def test_tls_is_missing(tmp_path, site_root):
    program = build.install(tmp_path, "proxy.so")
    conf = write_config(tmp_path / "conf", site_root, text="[PROXY]\n    To https://localhost\n", files=LOAD)
    got = run("-c", conf, "-t", program=program)
    assert got.returncode == 1
    sentence = r"sites/default:\d+:\d+: error: the plugin tls is missing: it takes the file \S+/tls\.so"
    assert re.search(sentence, got.stderr), got.stderr
