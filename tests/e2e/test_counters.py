# SPDX-License-Identifier: Apache-2.0
"""The counters of the server: each refusal, timeout, flood and failure is counted under its own name, exactly, and no
count is lost when configurations, workers, processes and programs change."""

import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from harness import build
from harness import frames as f
from harness.certificates import Authority, Bytes, TlsClient
from harness.client import ProtocolError
from harness.content import populate
from harness.full_file import make_full
from harness.h2 import GoneAway
from harness.load import Pausing
from harness.messages import request
from harness.metrics import needs_status, scrape, status_section, total
from harness.protocol import Client
from harness.server import UNCACHED, Server, await_true, section, thread_states, write_config
from harness.ways import WAYS
from test_h2_attacks import FLOODS, PATIENT, limits

pytestmark = [needs_status, pytest.mark.single_protocol]

CONF = "plugins/status/status.conf"
SMALL = b"small" * 100
needs_h2 = pytest.mark.skipif(not build.speaks("h2"), reason=f"the preset {build.PRESET} has no HTTP/2")
needs_tls = pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no TLS")


@pytest.fixture
def count(serve):
    """A server with metrics. server.count(name, **labels) is a counter's value; `listener` is the one that is asked."""

    def start(settings=None, config=None, listener=0, **rest):
        server = serve(settings, config={CONF: status_section(), **(config or {})}, **rest)

        def read(name, **labels):
            with server.connect(listener) as client:
                return total(scrape(client), f"monkey_{name}_total", **labels)

        server.count = read
        return server

    return start


def await_count(server, wanted, name, **labels):
    """Waits for the value: the end of a connection may be counted a little later."""
    await_true(lambda: server.count(name, **labels) == wanted, 30, f"{name} {labels} {wanted}")


def secure(folder, root):
    """The authority, and the file of a host that it has given a certificate."""
    ca = Authority(folder / "ca")
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
    return ca, text + section("TLS", ca.make("localhost", "localhost").keys())


# ── refused requests ──

LIMITS = {"MaxRequestLine": 500, "MaxHeadSize": 4096, "MaxBodySize": 1000}


def ask_what_is_refused(client, kind):
    answers = {
        "target_too_long": (414, ("/" + "x" * 600,), {}),
        "head_too_large": (431, ("/hello.txt", "X-Large: " + "y" * 6000), {}),
        "body_too_large": (413, ("/hello.txt",), {"method": "POST", "body": b"z" * 1001}),
    }
    status, words, rest = answers[kind]
    assert client.ask(*words, **rest).status == status


def start_way(count, folder, root, way, settings=None):
    """A server whose first listener is asked this way, and its metrics in the clear."""
    config, one = {}, WAYS[way]
    if one.h2 and not build.speaks("h2") or one.tls and not build.speaks("tls"):
        pytest.skip(f"the preset {build.PRESET} has no {way}")
    if one.tls:
        one.ca, config["sites/default"] = secure(folder, root)
        settings = {**(settings or {}), "Listen": ["127.0.0.1:0 tls", "127.0.0.2:0"]}
    return count(settings, config, listener=int(one.tls), listeners=1 + one.tls, root=root), one


@pytest.mark.parametrize("way", WAYS)
def test_refused_requests(count, tmp_path, site_root, way):
    """By reason, in each protocol."""
    server, one = start_way(count, tmp_path, site_root, way, LIMITS)
    wanted = {"target_too_long": 1, "head_too_large": 2, "body_too_large": 3}
    for kind, n in wanted.items():
        for _ in range(n):
            with one.connect(server) as client:
                ask_what_is_refused(client, kind)
    for kind, n in wanted.items():
        await_count(server, n, "rejected_requests", reason=kind)
    assert server.count("rejected_requests") == sum(wanted.values())
    assert server.count("requests", status="4xx") == sum(wanted.values())


MALFORMED = {
    "malformed": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "other": b"GET / HTTP/3.0\r\nHost: a\r\n\r\n",
}


@pytest.mark.parametrize("reason", MALFORMED)
def test_malformed_requests(count, reason):
    server = count()
    for _ in range(3):
        assert server.statuses(MALFORMED[reason])[0] in (400, 505)
    assert server.count("rejected_requests", reason=reason) == server.count("rejected_requests") == 3


@build.needs_probe
def test_slow_bodies(count):
    """They are one refusal, not two: the 408 has no reason of its own."""
    server = count({"MinBodyRate": 1000, "BodyTimeout": "60s"}, program=build.probe())
    with server.connect() as client:
        client.send(request("/probe/collect", "Content-Length: 10000", method="POST"))
        client.sock.settimeout(0.1)
        while client.send_all_you_can(b"x"):
            with contextlib.suppress(TimeoutError):
                if client.fill():
                    break
        client.sock.settimeout(30)
        assert client.response().status == 408
    assert server.count("rejected_requests", reason="min_body_rate") == server.count("rejected_requests") == 1


# ── responses that are not complete ──


@pytest.mark.parametrize("way", WAYS)
def test_responses_aborted(count, tmp_path, way):
    """Those that were begun. They stand among the requests with their status, and in the log with `$aborted`."""
    root = populate(tmp_path / "root", {"hello.txt": SMALL, "big.bin": b"x" * (16 << 20)})
    server, one = start_way(count, tmp_path, root, way)
    for n in (1, 2):
        with one.connect(server, rcvbuf=4096) as client:
            client.send(request("/big.bin")) if not one.h2 else client.begin("/big.bin")
            assert client.head().status == 200
        await_count(server, n, "responses_aborted", host="localhost")
    with one.connect(server) as client:
        for method, path, *fields in (
            ("GET", "/hello.txt"),
            ("HEAD", "/big.bin"),
            ("GET", "/nowhere"),
            ("GET", "/big.bin", "Range: bytes=0-9"),
        ):
            client.ask(path, *fields, method=method)
    await_count(server, 1, "requests", status="4xx")
    assert server.count("responses_aborted") == 2
    assert server.count("requests", status="none") == 0


@needs_h2
def test_streams_aborted(count, tmp_path):
    """The connection continues."""
    server = count(root=populate(tmp_path / "root", {"hello.txt": SMALL, "big.bin": b"x" * (1 << 20)}))
    with server.connect_h2(credit=False) as client:
        client.begin("/big.bin")
        assert client.head().status == 200
        client.cancel(1)
        await_count(server, 1, "responses_aborted", host="localhost")
        assert client.ask("/hello.txt", method="HEAD").status == 200
    assert server.count("responses_aborted") == 1


@build.needs_probe
def test_tunnels_are_complete(count):
    """However they end."""
    server = count(program=build.probe())
    for _ in range(2):
        with server.connect() as client:
            client.send(request("/probe/upgrade", "Upgrade: echo", "Connection: Upgrade"))
            assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    await_count(server, 2, "requests", status="1xx")
    assert server.count("responses_aborted") == 0


def test_heads_that_take_too_long_have_a_duration(count):
    """From their first byte to the end of the 408."""
    server = count({"Timeout": "300ms"})
    with server.connect() as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a")
        assert client.response().status == 408
    await_count(server, 1, "requests", status="4xx")
    with server.connect() as client:
        assert total(scrape(client), "monkey_request_duration_seconds_sum") >= 0.25


# ── refused connections ──


def test_wrong_proxy_headers(count):
    server = count(
        {"Listen": ["127.0.0.1:0", "127.0.0.2:0 proxy"], "TrustedProxies": "127.0.0.1"}, listeners=2
    )
    for n in range(1, 4):
        with server.connect(1) as client:
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            client.assert_gone()
        await_count(server, n, "refused_connections", reason="proxy_header")
    assert server.count("refused_connections") == 3


@pytest.mark.skipif(not (build.PLUGINS / "mandril.so").exists(), reason="the preset has no plugin mandril")
def test_connections_that_a_plugin_drops(count, tmp_path):
    rules = section("CONNECTIONS", {"Network": "127.0.0.0/8", "Action": "drop"})
    settings = {"Listen": ["127.0.0.1:0", f"unix:{tmp_path}/socket"], "DeferAccept": 0}
    server = count(settings, {"plugins/mandril/mandril.conf": rules}, listener=1, listeners=2)
    for n in range(1, 4):
        with server.connect(0) as client:
            client.assert_gone()
        await_count(server, n, "refused_connections", reason="plugin")
    assert server.count("refused_connections") == 3


@needs_tls
def test_handshakes_that_give_way(count, tmp_path, site_root):
    _, text = secure(tmp_path, site_root)
    settings = {"Listen": ["127.0.0.1:0 tls", "127.0.0.2:0"], "MaxHandshakes": 2, "DeferAccept": 0, "Workers": 1}
    server = count(settings, {"sites/default": text}, listener=1, listeners=2)
    waiting = []
    for _ in range(5):
        waiting.append(server.connect(0))
        waiting[-1].send(b"\x16\x03\x01")
    await_count(server, 3, "refused_connections", reason="max_handshakes")
    for client in waiting[:3]:
        client.assert_gone()
    assert server.count("refused_connections") == 3


def test_connections_above_the_limit(count):
    server = count({"OverCapacity": "TooBusy", "MaxConnections": 2, "KeepAliveTimeout": "60s"})
    with server.connect() as kept:
        assert kept.ask("/hello.txt").status == 200
        with server.connect() as other:
            assert other.ask("/hello.txt").status == 200
            for _ in range(3):
                with server.connect() as client:
                    assert client.response().status == 503
            assert total(scrape(kept), "monkey_refused_connections_total", reason="over_capacity") == 3


def test_connections_that_make_room(count):
    server = count({"OverCapacity": "Resist", "MaxConnections": 2, "Workers": 1, "KeepAliveTimeout": "60s"})
    with server.connect() as first, server.connect() as second:
        for client in (first, second):
            assert client.ask("/hello.txt").status == 200
        with server.connect() as third:
            evicted = total(scrape(third), "monkey_refused_connections_total", reason="evicted")
            assert evicted >= 1
            first.assert_gone()
            assert total(scrape(third), "monkey_connections") <= 2


# ── timeouts ──


def test_timeouts(count):
    """By the state in which the client was waited for."""
    short = dict.fromkeys(("Timeout", "KeepAliveTimeout", "BodyTimeout", "SendTimeout"), "300ms")
    server = count({**short, "DeferAccept": 0, "MinBodyRate": 0})
    cases = {
        "new": b"",
        "read_head": b"GET / HTTP/1.1\r\n",
        "idle": request("/hello.txt"),
        "write": request("/large.bin") * 4,
    }
    wanted = {}
    for n, (state, data) in enumerate(cases.items(), 1):
        for _ in range(n):
            with server.connect(rcvbuf=4096) as client:
                client.send(data)
                await_count(server, wanted.get(state, 0) + 1, "timeouts", state=state)
            wanted[state] = wanted.get(state, 0) + 1
    for state, n in wanted.items():
        assert server.count("timeouts", state=state) == n
    assert server.count("rejected_requests") == 0, "timeouts have their own counters"


@needs_tls
def test_handshakes_that_take_too_long(count, tmp_path, site_root):
    _, text = secure(tmp_path, site_root)
    settings = {"Listen": ["127.0.0.1:0 tls", "127.0.0.2:0"], "HandshakeTimeout": "300ms", "DeferAccept": 0}
    server = count(settings, {"sites/default": text}, listener=1, listeners=2)
    for n in (1, 2):
        with server.connect(0) as client:
            client.send(b"\x16\x03\x01")
            client.assert_gone()
        await_count(server, n, "timeouts", state="handshake")


@build.needs_probe
def test_handlers_that_take_too_long(count):
    """Of HTTP/1 by the state of the connection, of HTTP/2 by the stream."""
    server = count({"HandlerTimeout": "300ms"}, program=build.probe())
    for n in (1, 2):
        with server.connect() as client:
            assert client.ask("/probe/never").status == 503
        await_count(server, n, "timeouts", state="handler")
    if build.speaks("h2"):
        with server.connect_h2() as client:
            assert client.ask("/probe/never").status == 503
        await_count(server, 1, "timeouts", state="stream")


@build.needs_probe
def test_bodies_that_take_too_long(count):
    server = count({"BodyTimeout": "300ms", "MinBodyRate": 0}, program=build.probe())
    for n in (1, 2):
        with server.connect() as client:
            client.send(request("/probe/collect", "Content-Length: 100", method="POST") + b"x")
            assert client.response().status == 408
        await_count(server, n, "timeouts", state="read_body")
    assert server.count("timeouts") == 2


@build.needs_probe
def test_tunnels_that_are_silent(count):
    server = count({"TunnelTimeout": "300ms"}, program=build.probe())
    for n in (1, 2):
        with server.connect() as client:
            client.send(request("/probe/upgrade", "Upgrade: echo", "Connection: Upgrade"))
            assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
            client.assert_closed()
        await_count(server, n, "timeouts", state="tunnel")
    assert server.count("timeouts") == 2


@contextlib.contextmanager
def slow_disk(server):
    """No file is in the page cache, and each read of the disk takes a minute: strace changes the system calls."""
    calls = ["-e", "inject=preadv2:error=EAGAIN", "-e", "inject=pread64:delay_enter=60s"]
    command = ["strace", "-f", "-o", os.devnull, "-e", "trace=preadv2,pread64", *calls, "-p", str(server.pid)]
    strace = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        assert b"attached" in strace.stderr.readline()
        yield
    finally:
        strace.send_signal(signal.SIGINT)
        strace.communicate(timeout=120)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_disks_that_take_too_long(count):
    """The head has been sent: the connection is closed. The disk thread continues meanwhile."""
    server = count({"HandlerTimeout": "300ms"})
    with slow_disk(server), server.connect() as client, pytest.raises(ProtocolError):
        client.ask("/large.bin")
    await_count(server, 1, "timeouts", state="disk")
    assert server.count("timeouts") == 1


@needs_h2
def test_clients_of_http2_that_read_nothing(count):
    """The windows are open: the connection waits, and it ends by another timeout."""
    server = count({**PATIENT, "SendTimeout": "300ms"})
    for n in (1, 2):
        with f.FrameConnection(server.addresses[0], rcvbuf=4096, values={f.INITIAL_WINDOW_SIZE: f.WINDOW_MAX}) as conn:
            conn.send(f.window_update(0, f.WINDOW_MAX - f.WINDOW), f.headers(1, f.get("/large.bin")))
            await_count(server, n, "timeouts", state="streams_write")


# ── abuse of HTTP/2 ──

FLOOD_INTERVAL_SECONDS = 10
KINDS = {
    "MaxResets": "reset",
    "MaxStreamErrors": "stream_error",
    "MaxSettings": "settings",
    "MaxPings": "ping",
    "MaxEmptyFrames": "empty_frame",
    "MaxPriorities": "priority",
    "MaxWindowUpdates": "window_update",
}


@needs_h2
@pytest.mark.parametrize("key", FLOODS)
def test_floods(count, key):
    """Each kind is counted as itself, once for a connection."""
    first, flood = FLOODS[key]
    name = key.split(",")[0]
    server = count({**PATIENT, "MaxBodySize": "1G"}, **limits({name: 4}))
    for _ in range(2):
        with f.FrameConnection(server.addresses[0], values={f.INITIAL_WINDOW_SIZE: 100}) as conn:
            conn.send(f.settings(ack=True), first, *[flood(i) for i in range(5 - (name == "MaxSettings"))])
            assert conn.goaway_code() == f.ENHANCE_YOUR_CALM
    await_count(server, 2, "http2_floods", kind=KINDS[name])
    assert server.count("http2_floods") == 2


def send_bomb(conn):
    field = b"\x40" + f.integer(6, 7) + b"x-bomb" + f.integer(900, 7) + b"b" * 900
    conn.send(f.headers(1, f.get() + field), f.headers(3, f.get() + b"\xbe" * 110))


def send_continuations(conn):
    conn.send(f.headers(1, f.get(), whole=False), *[f.continuation(1, b"x") for _ in range(3)])


def send_settings_entries(conn):
    conn.send(f.settings([(0x40 + i, 1) for i in range(40)]))


ATTACKS = {
    "hpack_bomb": (send_bomb, {"MaxHeadSize": 1024, "MaxRequestLine": 512}, {}),
    "settings_entries": (send_settings_entries, {}, {}),
    "continuation": (send_continuations, {}, {"MaxContinuations": 1}),
}


@needs_h2
@pytest.mark.parametrize("kind", ATTACKS)
def test_attacks_in_one_head(count, kind):
    attack, settings, keys = ATTACKS[kind]
    server = count({**PATIENT, **settings}, **(limits(keys) if keys else {}))
    for _ in range(2):
        with f.FrameConnection(server.addresses[0], timeout=60) as conn:
            attack(conn)
            assert conn.goaway_code() == f.ENHANCE_YOUR_CALM
    await_count(server, 2, "http2_floods", kind=kind)
    assert server.count("http2_floods") == 2


@needs_h2
@build.needs_probe
def test_streams_above_the_limit(count):
    """Refused until the client has acknowledged the limit; above it then, the connection ends."""
    server = count(PATIENT, program=build.probe(), **limits({"MaxConcurrentStreams": 3}))
    head = f.get("/probe/never")
    with f.FrameConnection(server.addresses[0]) as conn:
        conn.until(f.SETTINGS)
        conn.send(*[f.headers(2 * i + 1, head) for i in range(5)])
        for _ in range(2):
            conn.until(f.RST_STREAM)
        await_count(server, 2, "http2_floods", kind="refused_stream")
        conn.send(f.settings(ack=True), f.headers(101, head))
        assert conn.goaway_code() == f.PROTOCOL_ERROR
    await_count(server, 1, "http2_floods", kind="too_many_streams")
    assert server.count("http2_floods") == 3


@needs_h2
def test_acknowledgements_that_are_not_read(count, clock, tmp_path):
    """More than a client may ask for in one interval; so there are two. The buffers of a Unix socket hold few."""
    most, path = 20_000, tmp_path / "socket"
    keys = limits({"MaxPings": most, "MaxSettings": most})
    server = count({**PATIENT, "Listen": ["127.0.0.1:0", f"unix:{path}"]}, listeners=2, **keys)
    burst = (f.ping() + f.settings()) * (most - 1)  # the preface has one SETTINGS
    with f.FrameConnection(str(path), timeout=60) as conn:
        conn.send(burst)
        await_true(lambda: set(thread_states(server.pid).values()) == {"S"}, 60, "a worker that takes no more")
        clock.advance(FLOOD_INTERVAL_SECONDS + 1)
        rest = threading.Thread(target=conn.send_all_you_can, args=(burst,))  # the server does not take all of it
        rest.start()
        try:
            await_true(lambda: server.count("http2_floods", kind="queued_acks") == 1, 60, "the end of the connection")
        finally:
            conn.sock.shutdown(socket.SHUT_RDWR)
            rest.join()
    assert server.count("http2_floods") == 1


@needs_h2
def test_closed_windows(count):
    """Each stream whose client gives it no window."""
    server = count({**PATIENT, "SendTimeout": "300ms"})
    with f.FrameConnection(server.addresses[0], values={f.INITIAL_WINDOW_SIZE: 0}) as conn:
        conn.send(*[f.headers(2 * i + 1, f.get("/large.bin")) for i in range(5)])
        assert {conn.until(f.RST_STREAM).stream for _ in range(5)} == {1, 3, 5, 7, 9}
        await_count(server, 5, "http2_floods", kind="send_timeout")
    assert server.count("http2_floods") == server.count("timeouts", state="stream") == 5


@needs_h2
def test_stalled_streams(count):
    """Connections whose streams hold all descriptors give way to new ones."""
    server, slow = count(PATIENT, UNCACHED, nofile=160), []
    for _ in range(2):
        slow.append(f.FrameConnection(server.addresses[0], timeout=60, values={f.INITIAL_WINDOW_SIZE: 0}))
        slow[-1].send(*[f.headers(2 * i + 1, f.get("/large.bin")) for i in range(100)])
        slow[-1].sync()
    await_true(lambda: server.count("http2_floods", kind="stalled_streams") >= 1, 60, "room")
    for conn in slow:
        conn.close()


# ── TLS ──


@pytest.fixture
def over_tls(count, tmp_path, site_root):
    ca, text = secure(tmp_path, site_root)
    settings = {"Listen": ["127.0.0.1:0 tls", "127.0.0.2:0"], "DeferAccept": 0}
    server = count(settings, {"sites/default": text}, listener=1, listeners=2)
    server.ca = ca
    return server


@needs_tls
def test_handshakes(over_tls):
    """By version, and whether the session was resumed."""
    address = over_tls.addresses[0]
    for version, name in ((ssl.TLSVersion.TLSv1_2, "1.2"), (ssl.TLSVersion.TLSv1_3, "1.3")):
        context = over_tls.ca.context()
        context.minimum_version = context.maximum_version = version
        with TlsClient(address, context) as client:
            assert client.ask("/hello.txt").status == 200
            session = client.sock.session
        for n in (1, 2):
            with TlsClient(address, context, session=session) as client:
                assert client.ask("/hello.txt").status == 200
                assert client.sock.session_reused
            await_count(over_tls, n, "tls_handshakes", version=name, resumed="yes")
        assert over_tls.count("tls_handshakes", version=name, resumed="no") == 1
    assert over_tls.count("tls_failures") == 0


@needs_tls
def test_failed_handshakes(over_tls):
    def plaintext(client):
        assert client.ask("/hello.txt").status == 400

    def garbage(client):
        client.send(b"\x16\x03\x01\x00\x05hello")
        client.assert_gone()

    def leave(client):
        client.send(Bytes(over_tls.ca.context()).step()[1][:20])

    wanted = {}
    acts = {"plaintext": plaintext, "handshake": garbage, "client_closed": leave}
    for n, (reason, act) in enumerate(acts.items(), 1):
        for _ in range(n):
            with over_tls.connect(0) as client:
                act(client)
        await_count(over_tls, n, "tls_failures", reason=reason)
        wanted[reason] = n
    assert over_tls.count("tls_failures") == sum(wanted.values())
    assert over_tls.count("tls_handshakes") == 0


class Updating:
    """A TLS 1.3 client that sends nothing but KeyUpdates: `openssl s_client`, which takes a command from each read."""

    def __init__(self, address, ca, *options):
        self.commands, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connect = ["-connect", "%s:%d" % address, "-tls1_3", "-CAfile", str(ca.cert)]
        self.process = subprocess.Popen(
            ["openssl", "s_client", *connect, *options],
            stdin=other, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        other.close()
        self.commands.settimeout(60)

    def update(self, count):
        """As often as the server takes it."""
        for _ in range(count):
            try:
                self.commands.send(b"k\n")
            except OSError:
                break

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.commands.close()
        self.process.kill()
        self.process.wait()


@needs_tls
@pytest.mark.parametrize(
    "reason, count_updates, options",
    [("key_updates", 200, ()), ("no_data", 40, ("-record_padding", "16384"))],
    ids=["key_updates", "no_data"],
)
def test_clients_that_send_no_data(over_tls, reason, count_updates, options):
    """KeyUpdates are limited by their number, and by their bytes: 16 KB each, with padding."""
    for n in (1, 2):
        with Updating(over_tls.addresses[0], over_tls.ca, *options) as client:
            client.update(count_updates)
            await_count(over_tls, n, "tls_failures", reason=reason)
    assert over_tls.count("tls_failures") == 2


# ── logs and reloads ──


@pytest.mark.skipif(not (build.PLUGINS / "logger.so").exists(), reason="the preset has no plugin logger")
def test_lost_lines(count, tmp_path, site_root):
    log = tmp_path / "access.log"
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": site_root})
    server = count(config={"sites/default": text + section("LOGGER", {"AccessLog": log})}, wrapper=make_full(log))
    with server.connect() as client:
        for _ in range(50):
            assert client.ask("/hello.txt").status == 200
    server.wait_log(f"cannot write {log}: File too large")
    with server.connect() as client:
        samples = scrape(client)
    assert [labels for name, labels in samples if name == "monkey_logger_lost_lines_total"], samples


def test_lost_log_lines(count, tmp_path):
    """Of the error log."""
    path, log = tmp_path / "socket", tmp_path / "error.log"

    def is_open():
        with contextlib.suppress(OSError):
            Client(str(path)).close()
            return True

    settings = {"LogLevel": "debug", "ErrorLog": log, "Listen": f"unix:{path}"}
    server = count(settings, wait=False, wrapper=make_full(log))
    await_true(is_open, 60, "the socket")
    server.names = [f"unix:{path}"]
    lost = server.count("lost_log_lines")
    assert lost > 0
    assert server.statuses(b"GARBAGE\r\n\r\n") == [400]
    await_true(lambda: server.count("lost_log_lines") > lost, 60, "a lost line")
    server.baseline = server.descriptors()


def test_reloads(count):
    """By result."""
    server = count()
    good = (server.conf / "sites" / "default").read_text()
    for n, result in enumerate(("ok", "failed", "ok"), 1):
        (server.conf / "sites" / "default").write_text(good + "[NONSENSE" * (result == "failed"))
        server.send_signal(signal.SIGHUP)
        if result == "failed":
            server.wait_log("the new configuration cannot be used")
            await_count(server, 1, "reloads", result="failed")
        else:
            server.wait_log("the new configuration is in use", (n + 1) // 2)
            await_count(server, (n + 1) // 2, "reloads", result="ok")
    server.baseline += 2  # descriptors of the thread that ends a generation


def test_hosts_without_a_name(count, site_root):
    """Each has the name of its file, so that their requests are counted apart."""
    hosts = {f"sites/{name}": section("HOST", {"DocumentRoot": site_root, **keys})
             for name, keys in [("default", {}), ("intranet", {"Listener": "127.0.0.2:0"})]}
    server = count({"Listen": ["127.0.0.1:0", "127.0.0.2:0"]}, hosts, listeners=2)
    with server.connect(1) as client:
        assert client.ask("/none").status == 404
    assert server.count("requests", host="intranet", status="4xx") == 1
    assert server.count("requests", host="default", status="4xx") == 0


# ── processes ──


class Site:
    """A supervised server that is asked in one way, and what its clients have counted."""

    def __init__(self, folder, way):
        self.folder, self.way, self.done, self.config = folder, way, 0, {CONF: status_section()}
        self.root = populate(folder / "root", {"small": SMALL})
        self.settings = {"Workers": 2, "ShutdownTimeout": "30s"}
        if way.tls:
            way.ca, self.config["sites/default"] = secure(folder, self.root)
            self.settings["Listen"] = "127.0.0.1:0 tls"
        self.write()
        self.server = Server("-c", folder / "conf", "--supervise")
        self.served = 1

    def write(self, **more):
        write_config(self.folder / "conf", self.root, {**self.settings, **more}, files=self.config)

    def ask(self, times):
        with self.way.connect(self.server) as client:
            for _ in range(times):
                assert client.ask("/small").body == SMALL
        self.done += times

    def read(self):
        """The samples, when all requests that were asked have been counted; the scrape counts as a request."""
        seen = []

        def is_counted():
            with self.way.connect(self.server) as client:
                seen[:] = [scrape(client)]
            self.done += 1
            return total(seen[0], "monkey_requests_total") == self.done - 1

        await_true(is_counted, 30, "the count of all requests")
        return seen[0]

    def pid(self):
        found = self.server.wait_log(r"supervisor: process (\d+) serves", self.served)
        return int(found[self.served - 1][1])

    def replace(self, act):
        """Another process serves when this returns, and the former one has ended."""
        old = self.pid()
        act(old)
        self.served += 1
        self.pid()
        await_true(lambda: not os.path.exists(f"/proc/{old}"), 30, "the end of the former process")


@pytest.mark.concurrent
@pytest.mark.parametrize("way", WAYS)
def test_exact_over_every_change(tmp_path, way):
    """Reloads, other numbers of workers, an upgrade, a crash, an upgrade after that: sums continue, levels do not."""
    if WAYS[way].h2 and not build.speaks("h2") or WAYS[way].tls and not build.speaks("tls"):
        pytest.skip(f"the preset {build.PRESET} has no {way}")
    site = Site(tmp_path, WAYS[way])
    try:
        site.ask(5)
        assert total(site.read(), "monkey_starts_total") == 1
        for n, workers in enumerate((4, 1, 3), 1):
            site.write(Workers=workers)
            site.server.send_signal(signal.SIGHUP)
            site.server.wait_log("the new configuration is in use", n)
            site.ask(5)
            assert total(site.read(), "monkey_reloads_total", result="ok") == n
        changes = (
            lambda pid: site.server.send_signal(signal.SIGUSR2),
            lambda pid: os.kill(pid, signal.SIGKILL),
            lambda pid: os.kill(pid, signal.SIGKILL),
            lambda pid: site.server.send_signal(signal.SIGUSR2),
        )
        for n, change in enumerate(changes, 2):
            with site.way.connect(site.server) as kept:  # a crash takes it along: it must not be counted for ever
                assert kept.ask("/small").status == 200
                site.done += 1
                site.read()
                site.replace(change)
            site.ask(5)
            samples = site.read()
            assert total(samples, "monkey_starts_total") == n
            await_true(lambda: total(site.read(), "monkey_connections") == 1, 30, "one connection")
        assert total(samples, "monkey_reloads_total", result="ok") == 3
        site.server.stop()
    finally:
        site.server.kill()


class Asking(Pausing):
    """Clients that may learn from GOAWAY that their last request was not processed."""

    def keep(self):
        with self.connect(self.address, timeout=30) as client:
            while not self.ending.wait(self.pause):
                try:
                    answer = client.ask("/small")
                except (GoneAway, ConnectionError):
                    last, code = getattr(client, "goaway", None) or (None, None)
                    if code != 0 or last >= client.last:
                        raise
                    return
                assert answer.status == 200 and answer.body == self.body
                with self.lock:
                    self.answers += 1
                if answer["Connection"] == "close":
                    return


@pytest.mark.concurrent
@pytest.mark.parametrize("way", WAYS)
def test_exact_while_clients_ask(serve, tmp_path, way):
    """Clients ask all the time while reloads change the number of workers: no request is lost or counted twice."""
    one = WAYS[way]
    if one.h2 and not build.speaks("h2") or one.tls and not build.speaks("tls"):
        pytest.skip(f"the preset {build.PRESET} has no {way}")
    root, settings, config = populate(tmp_path / "root", {"small": SMALL}), {"Workers": 2}, {CONF: status_section()}
    if one.tls:
        one.ca, config["sites/default"] = secure(tmp_path, root)
        settings["Listen"] = "127.0.0.1:0 tls"
    server = serve(settings, root=root, config=config)
    load = Asking(server, SMALL, count=6, pause=0.002, connect=lambda server, timeout: one.connect(server))
    with load:
        for n, workers in enumerate((3, 1, 4, 2), 1):
            load.await_answers(100)
            write_config(server.conf, root, {**settings, "Workers": workers}, files=config)
            server.send_signal(signal.SIGHUP)
            server.wait_log("the new configuration is in use", n)
        load.await_answers(100)
    assert not load.errors
    asked = load.answers

    def is_exact():
        nonlocal asked
        with one.connect(server) as client:
            samples = scrape(client)
        asked += 1
        return total(samples, "monkey_requests_total", status="2xx") == asked - 1 == total(
            samples, "monkey_request_duration_seconds_count"
        )

    await_true(is_exact, 30, "the number of all requests")
    server.baseline += 2 + 3 * 4  # of the thread that ends a generation, and of more workers
