# SPDX-License-Identifier: Apache-2.0
"""How many bytes of the error log clients and their requests can cause: 1 KB a second for each kind of line. The lines
of backends, scripts and logins are in test_log_flood.py."""

import contextlib
import os
import re
import ssl

import pytest

from harness import build
from harness import frames as f
from harness.backend import Backend, answer
from harness.certificates import TlsClient
from harness.log_growth import limited_growth
from harness.messages import lines, request
from harness.proxies import proxy_section
from harness.server import section
from harness.services import HEAD, duda_section, needs_duda, reload
from test_h2_attacks import CALM, FLOODS, MALFORMED, FrameFlood, number

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
]
COUNT = 200
LONG = "x" * 400


# ── files ──


def make_entries(root):
    (root / "link").symlink_to("a.txt")
    (root / "out").symlink_to("/etc/passwd")
    (root / "circle").symlink_to("circle")
    os.mkfifo(root / "pipe")


FILES = {"a.txt": b"a\n", "empty/a.txt": b"a\n", ".env": b"secret\n", "run.php": b"<?php\n", "indexed/index.html": b""}
FASTCGI = section("FASTCGI", {"Match": "/none/*.php", "To": "unix:/nowhere"})
REFUSED = {  # the target, the status, and the rest of the request
    "missing": ("/missing", 404, {}),
    "a long name": ("/" + "n" * 300, 404, {}),
    "hidden": ("/.env", 404, {}),
    "a link": ("/link", 404, {}),
    "a circle": ("/circle", 404, {}),
    "a pipe": ("/pipe", 404, {}),
    "no index": ("/empty/", 404, {}),
    "a method": ("/a.txt", 405, {"method": "DELETE"}),
    "a body": ("/a.txt", 413, {"method": "POST", "body": b"b" * 2000}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_are_not_sent(serve, clock, case):
    target, status, rest = REFUSED[case]
    server = serve({"Workers": 2, "MaxBodySize": "1K"}, files=FILES)
    make_entries(server.root)
    with limited_growth(server):
        for _ in range(COUNT):
            with server.connect() as client:
                client.send_all_you_can(request(f"{target}?{LONG}", **rest))
                assert client.response(rest.get("method", "GET")).status == status


# ── plugins that refuse ──

ADMIN = section("CACHE", {"Match": "/", "Files": "Revalidate", "Admin": "/cache"})
SELDOM = {"Match": "/", "Rate": "1/h", "Burst": 1}
PLUGINS = {  # the host's sections, the target, the status, fields
    "a rule": (section("RULES", {"Match": "/", "Action": "deny"}), "/a.txt", 403, ()),
    "a rate": (section("CLIENT_LIMITS", SELDOM), "/a.txt", 429, ()),
    "the page of the cache": (ADMIN, "/cache/", 404, ("X-Forwarded-For: 192.0.2.1",)),
}


@pytest.mark.parametrize("case", PLUGINS)
def test_plugins_that_refuse(serve, clock, case):
    text, target, status, fields = PLUGINS[case]
    server = serve({"Workers": 2, "TrustedProxies": "127.0.0.1"}, files=FILES, text=text)
    with server.connect() as client:
        client.ask(target)
    with limited_growth(server):
        for _ in range(COUNT):
            with server.connect() as client:
                assert client.ask(f"{target}?{LONG}", *fields).status == status


@build.needs_probe
def test_handlers_that_take_too_long(probe, clock):
    limits = section("LIMITS", {"Match": "/probe/never", "HandlerTimeout": "200ms"})
    server = probe({"Workers": 2}, text=limits)
    with limited_growth(server), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(COUNT)]
        for client in clients:
            client.send(request(f"/probe/never?{LONG}"))
        for client in clients:
            assert client.response().status == 503


def test_names_with_an_underline(serve, clock):
    """Each request has 20 that are not passed on."""
    fields = [f"X_{n}{'y' * 100}: z" for n in range(20)]
    with Backend(answer(b"good", "Content-Type: text/plain")) as backend:
        server = serve({"Workers": 2}, text=proxy_section(backend))
        with limited_growth(server):
            for _ in range(COUNT // 10):
                with server.connect() as client:
                    assert client.ask("/", *fields).status == 200


# ── requests that are refused before a host has them ──

MALFORMED_TEXTS = {
    "no request": b"\x16\x03garbage" + b"\xff" * 400 + b"\r\n\r\n",
    "a version": b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "two lengths": lines("POST / HTTP/1.1", "Host: localhost", "Content-Length: 1", "Content-Length: 2"),
    "both lengths": lines("POST / HTTP/1.1", "Host: localhost", "Content-Length: 1", "Transfer-Encoding: chunked"),
    "no host": lines("GET / HTTP/1.1"),
    "a long line": b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "too many fields": lines("GET / HTTP/1.1", "Host: localhost", *(f"A{n}: b" for n in range(2000))),
    "a chunk": lines("POST / HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked") + b"x\r\n",
    "a path": lines("GET /../../../etc/passwd HTTP/1.1", "Host: localhost"),
}


@pytest.mark.parametrize("case", MALFORMED_TEXTS)
def test_malformed_requests(serve, clock, case):
    server = serve({"Workers": 2})
    with limited_growth(server):
        for _ in range(COUNT):
            with server.connect() as client:
                client.send_all_you_can(MALFORMED_TEXTS[case])
                client.shut()
                client.assert_gone()


H2_ATTACKS = {
    **{name: (first, flood) for name, (first, flood) in FLOODS.items()},
    **{name: (b"", lambda i, head=head: f.headers(number(i), head)) for name, head in MALFORMED.items()},
    "a head without an end": (
        f.headers(1, f.get(), whole=False),
        lambda i: f.continuation(1, f.literal(b"x-flood", b"y" * 100)),
    ),
}


@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
@pytest.mark.parametrize("case", H2_ATTACKS)
def test_floods_of_http2(serve, clock, case):
    """Each connection is ended for it."""
    first, flood = H2_ATTACKS[case]
    limits = {key: 4 for key in ("MaxResets", "MaxStreamErrors", "MaxSettings", "MaxPings", "MaxEmptyFrames",
                                 "MaxPriorities", "MaxWindowUpdates")}  # fmt: skip
    server = serve({"Workers": 2}, config={"plugins/static/static.conf": section("HTTP2", limits)})
    with limited_growth(server):
        for _ in range(COUNT // 2):
            assert FrameFlood(server, first).send(flood) == CALM


@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
def test_windows_of_nothing(serve, clock):
    """The connections end by a timeout, each with streams that are not taken."""
    server = serve({"Workers": 2, "SendTimeout": "1s"})
    with contextlib.ExitStack() as stack, limited_growth(server):
        held = []
        for _ in range(COUNT // 2):
            conn = stack.enter_context(f.FrameConnection(server.addresses[0], values={f.INITIAL_WINDOW_SIZE: 0}))
            conn.send(f.settings(ack=True), *[f.headers(number(i), f.get("/large.bin")) for i in range(4)])
            conn.until(f.HEADERS)
            held.append(conn)
        clock.advance(5)
        for conn in held:
            conn.sock.settimeout(60)
            conn.frames()


# ── TLS ──


def fail_handshake(server, *, garbage=b"", context=None, name=None):
    if garbage:
        with server.connect() as client:
            client.send_all_you_can(garbage)
            client.assert_gone()
        return
    with contextlib.suppress(OSError), TlsClient(server.addresses[0], context, name) as client:
        client.ask()


def hello(name, **rest):
    """What a client offers: sent by itself, without the end of the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if rest:
        context.set_alpn_protocols(rest["alpn"])
    end, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(end, sent, server_hostname=name).do_handshake()
    return sent.read()


HANDSHAKES = {
    "unknown names": ("bare", lambda n, _: {"garbage": hello(f"{n}.{'x' * 60}.{'y' * 60}.test")}),
    "a protocol": ("plain", lambda n, _: {"garbage": hello("localhost", alpn=["ftp"])}),
    "garbage": ("plain", lambda n, _: {"garbage": b"\x16\x03\x01\x00\x20" + bytes([n]) * 200}),
    "records": ("plain", lambda n, _: {"garbage": bytes([n % 32 + 20]) + b"\x03\x03\x00\x20" + bytes([n]) * 200}),
    "no client certificate": ("asks", lambda n, ca: {"context": ca.context(), "name": "localhost"}),
    "a client certificate": ("asks", lambda n, ca: {"context": ca.context(pair=ca.stranger), "name": "localhost"}),
}


@pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no tls")
@pytest.mark.parametrize("case", HANDSHAKES)
def test_handshakes_that_fail(serve, clock, ca, tmp_path, case):
    kind, make = HANDSHAKES[case]
    pair = ca.make("site", "localhost", "other.test")
    asks = {"ClientCertificate": "Required", "ClientCA": ca.cert} if kind == "asks" else {}
    ca.stranger = ca.make("expired", end="20210101000000Z")
    tls = section("TLS", {**pair.keys(), **asks})
    other = section("HOST", {"ServerName": "other.test", "DocumentRoot": tmp_path}) + section("TLS", pair.keys())
    config = {"sites/other": other} if kind == "bare" else {}
    server = serve({"Workers": 2, "Listen": "127.0.0.1:0 tls"}, text="" if kind == "bare" else tls, config=config)
    with limited_growth(server):
        for n in range(COUNT):
            fail_handshake(server, **make(n, ca))


# ── a service ──

CONF = "plugins/duda/duda.conf"

SERVICE = (
    HEAD
    + """
DUDA_REGISTER("talks", "Talks");

static void talk(duda_request_t *dr)
{
    msg->info("about %0200d", 1);
    msg->warn("about %0200d", 2);
    msg->err("about %0200d", 3);
    console->debug(dr, "about %0200d", 4);
    response->printf(dr, "good");
    response->end(dr, NULL);
}

static void err(duda_request_t *dr)
{
    event->loop_delete(NULL, 0);
    worker->spawn(NULL, NULL);
    conf->service_name("a/b");
    response->printf(dr, "good");
    response->end(dr, NULL);
    response->end(dr, NULL);
}

int duda_main(void)
{
    for (int i = 0; i < 100; i++)
        msg->info("line %0200d of the start", i);
    router->get("/talk", talk);
    router->get("/err", err);
    return 0;
}
"""
)

EARLY = (
    HEAD
    + """
DUDA_REGISTER("early", "Early");

static void talk(void *data)
{
    (void)data;
    for (int i = 0; i < 30; i++)
        msg->info("line %0200d before the loop", i);
}

int duda_main(void)
{
    return worker->pre_loop(talk, NULL);
}
"""
)


@needs_duda
@pytest.mark.parametrize("path, pattern", [("talk", "service talks: .*about"), ("err", "service talks: ")])
def test_lines_of_a_service(serve_services, clock, tmp_path, path, pattern):
    """What it says while it starts is written in full."""
    files = {CONF: duda_section(tmp_path / "services", LogLimit="On")}
    server = serve_services({"talks": SERVICE}, {"Workers": 2}, files=files)
    assert server.log.count("of the start") == 100
    with limited_growth(server) as since:
        for _ in range(COUNT):
            with server.connect() as client:
                assert client.ask(f"/talks/{path}").status == 200
        assert any(re.search(pattern, line) for line in since()), server.log


@needs_duda
def test_lines_of_a_service_are_counted(serve_services, clock, tmp_path):
    files = {CONF: duda_section(tmp_path / "services", LogLimit="On")}
    server = serve_services({"talks": SERVICE}, {"Workers": 2}, files=files)
    shown = 0

    def ask():
        with server.connect() as client:
            assert client.ask("/talks/talk").status == 200

    for _ in range(COUNT):
        ask()
    shown = sum("service talks: " in line and "about" in line for line in server.lines)
    assert "more of these are only counted for 10 s" in server.log
    clock.advance(10.1)
    ask()
    (found,) = server.wait_log(r"about .*\(and (\d+) more since the last such line\)")
    assert shown + int(found[1]) == 4 * COUNT


@needs_duda
@pytest.mark.parametrize("level, limit", [("debug", "On"), ("info", "Off")])
def test_all_lines_of_a_service(serve_services, clock, tmp_path, level, limit):
    """For the author of the service; until a reload limits them again."""
    text = duda_section(tmp_path / "services", LogLimit=limit)
    services = {"talks": SERVICE, "early": EARLY}
    server = serve_services(services, {"Workers": 2, "LogLevel": level}, files={CONF: text})
    assert server.log.count("before the loop") == 2 * 30

    def ask():
        for _ in range(COUNT):
            with server.connect() as client:
                assert client.ask("/talks/talk").status == 200
        return sum("service talks: " in line and "about" in line for line in server.lines)

    assert ask() == 4 * COUNT
    if limit == "Off":
        (server.conf / CONF).write_text((server.conf / CONF).read_text().replace("LogLimit Off", "LogLimit On"))
        reload(server)
        assert ask() < 5 * COUNT
