# SPDX-License-Identifier: Apache-2.0
"""The error log: one line an event, whatever a client sends (the log injection and terminal escape classes)."""

import re

import pytest

from harness import build
from harness.certificates import Authority
from harness.content import HELLO
from harness.full_file import make_full
from harness.messages import LAST, lines, request
from harness.protocol import Client
from harness.server import await_true, section

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (error|warn |info |debug) [\x20-\x7e]+")

NASTY = [
    b"GET /a%0a2026-11-20T05:04:03.123Z%20error%20forged HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /\x1b[31mred\x1b[0m HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: y\x1b]0;title\x07\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: \x1b[2J\r\n\r\n",
    b"\x1b[31m\n2026-11-20T05:04:03.123Z error forged\r\n\r\n",
    b"GET /%1b[31m%07%08%7f%c2%9b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /" + b"%0a" * 2000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    lines("GET / HTTP/1.1", "Host: localhost", b"User-Agent: \xff\xfe\x80\x9b31m"),
    lines("GET / HTTP/1.1", "Host: localhost", "Range: %s%n%x%p", "If-Modified-Since: %s%n"),
    lines("%s%n%s%n / HTTP/1.1", "Host: localhost"),
]


def test_nothing_breaks_a_line(serve):
    server = serve({"LogLevel": "debug"})
    for data in NASTY:
        with server.connect() as client:
            client.send(data)
            client.shut()
            client.rest()
    assert server.statuses(LAST) == [200]
    server.settle()
    server.stop()
    for row in server.lines:
        assert LINE.fullmatch(row), row
    assert not [row for row in server.lines if re.match(r"\S+ error forged", row)]


def test_a_name_on_disk_cannot_break_a_line(serve):
    """An unreadable or odd file whose name the log may mention."""
    server = serve({"LogLevel": "debug"}, files={"a\n2026-11-20T05:04:03.123Z error forged": HELLO})
    (server.root / "loop\x1b[31m\n").symlink_to("loop\x1b[31m\n")
    server.talk(request("/a%0a2026-11-20T05:04:03.123Z%20error%20forged") + request("/loop%1b[31m%0a") + LAST)
    server.settle()
    server.stop()
    for row in server.lines:
        assert LINE.fullmatch(row), row


def test_clients_cannot_fill_the_log(serve):
    """At the default level a client's mistakes are its own business."""
    server = serve()
    before = len(server.lines)
    for _ in range(50):
        server.talk(lines("GARBAGE"))
        server.talk(request("/nowhere") + lines("GARBAGE"))
    assert len(server.lines) - before <= 5


def test_log_to_a_file(serve, tmp_path):
    log = tmp_path / "error.log"
    log.write_text("an old line\n")
    server = serve({"ErrorLog": log}, wait=False)
    await_true(lambda: "listening on" in log.read_text(), 60)
    assert log.read_text().startswith("an old line\n")
    server.stop()
    rows = log.read_text().splitlines()[1:]
    assert rows and all(LINE.fullmatch(row) for row in rows), rows


def accepts(path):
    try:
        Client(str(path)).close()
        return True
    except (FileNotFoundError, ConnectionRefusedError):
        return False


@pytest.mark.single_protocol
def test_log_that_cannot_be_written(serve, tmp_path):
    """A full disk must not stop a worker."""
    log = tmp_path / "error.log"
    settings = {"LogLevel": "debug", "ErrorLog": log, "Listen": f"unix:{tmp_path}/socket"}
    server = serve(settings, wait=False, wrapper=make_full(log))
    await_true(lambda: accepts(tmp_path / "socket"), 60)
    server.names = [f"unix:{tmp_path}/socket"]
    for _ in range(20):
        assert server.statuses(lines("GARBAGE")) == [400]
    server.baseline = server.descriptors()


@pytest.mark.single_protocol
def test_closed_connections_are_named(serve):
    """Peer and listener of each, at the level debug."""
    server = serve({"LogLevel": "debug", "Timeout": "200ms"})
    with server.connect() as client:
        client.send(b"GET / HTTP/1.1\r\n")
        client.rest()
    server.wait_log(r"debug connection \d+: \S+ to closed, peer: 127\.0\.0\.1, listener: 127\.0\.0\.1:0$")


@pytest.mark.skipif(not build.speaks("tls"), reason="this build has no TLS")
def test_failed_handshakes_are_named(serve, tmp_path):
    ca = Authority(tmp_path / "ca")
    host = section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path})
    tls = section("TLS", ca.make("localhost", "localhost").keys())
    settings = {"Listen": "127.0.0.1:0 tls", "LogLevel": "debug"}
    server = serve(settings, root=tmp_path, config={"sites/default": host + tls})
    with server.connect() as client:
        client.send(b"\x16\x03\x01\x00\x05hello")
        client.rest()
    server.wait_log(r"debug closing connection \d+: TLS: .*, peer: 127\.0\.0\.1, listener: 127\.0\.0\.1:0$")
