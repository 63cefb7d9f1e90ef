# SPDX-License-Identifier: Apache-2.0
"""A reload that changes what a listener speaks: every connection is treated by the generation of the worker that got
it, also while only some of the workers have switched to the new one."""

import signal
import socket
import ssl
import threading

import pytest

from harness import build
from harness.content import populate
from harness.messages import request
from harness.server import Server, free_port, section, write_config

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
    build.needs_modules,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} lacks tls"),
]
DONE = "the new configuration is in use"
PROXY = b"PROXY TCP4 192.0.2.9 192.0.2.1 1000 80\r\n"


class Listener:
    """A server with one listener, which each generation writes in another way; its host answers with its name."""

    def __init__(self, folder, scheduler, certificate):
        self.folder, self.scheduler, self.certificate = folder, scheduler, certificate
        self.port, self.reloads = free_port(), 0
        self.address = f"127.0.0.1:{self.port}"
        for version in ("old", "new"):
            populate(folder / version, {"v": version.encode()})

    def write(self, version, transport="", extra=(), plugins=("liana", "tls", "static"), files=()):
        tls = {"Certificate": self.certificate.cert, "CertificateKey": self.certificate.key}
        site = section("HOST", {"ServerName": "localhost", "DocumentRoot": self.folder / version})
        stall = build.MODULES / "stall.so"
        write_config(
            self.folder / "conf",
            self.folder / version,
            {
                "Listen": [f"{self.address} {transport}".strip(), *extra],
                "Workers": 2,
                "Scheduler": self.scheduler,
                "TrustedProxies": "127.0.0.1",
            },
            files={
                "plugins.load": section("PLUGINS", {"Load": [*plugins, stall]}),
                "sites/default": site + (section("TLS", tls) if "tls" in plugins else ""),
                **dict(files),
            },
        )

    def start(self, *args, **rest):
        self.write(*args, **rest)
        self.server = Server("-c", self.folder / "conf", listeners=1 + len(rest.get("extra", ())))
        self.server.wait_log("stall: worker 1 continues")

    def reload(self):
        self.server.send_signal(signal.SIGHUP)
        self.reloads += 1
        self.server.wait_log("stall: worker 1 pauses", self.reloads + 1)

    def finish_reload(self):
        self.server.wait_log(DONE, self.reloads)

    def exchange(self, wrap=None, before=b"", port=None):
        """All that the server has to say to one request; None: the connection or its handshake failed."""
        try:
            with socket.create_connection(("127.0.0.1", port or self.port), timeout=60) as sock:
                sock.sendall(before)
                with wrap(sock) if wrap else sock as conn:
                    conn.sendall(request("/v", "Connection: close"))
                    answer = b""
                    while piece := conn.recv(65536):
                        answer += piece
                    return answer
        except (ssl.SSLError, ConnectionError):
            return None

    def exchange_many(self, n, **rest):
        """The same of so many connections at once."""
        answers, threads = [], []
        for _ in range(n):
            threads.append(threading.Thread(target=lambda: answers.append(self.exchange(**rest))))
            threads[-1].start()
        for thread in threads:
            thread.join()
        assert len(answers) == n
        return answers


@pytest.fixture(params=["reuseport", "fair"])
def listener(request, tmp_path, certificate):
    one = Listener(tmp_path, request.param, certificate)
    yield one
    try:
        one.finish_reload()
        one.server.stop()
    finally:
        one.server.kill()


def is_plain(answer, body):
    return answer is not None and answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"\r\n\r\n" + body)


def is_refused(answer):
    """Plain HTTP came to a TLS listener."""
    return answer is not None and answer.startswith(b"HTTP/1.1 400 ")


def test_tls_becomes_plain(listener):
    listener.start("old", "tls")
    listener.write("new", plugins=("liana", "static"))
    listener.reload()
    for answer in listener.exchange_many(24):
        assert is_plain(answer, b"new") or is_refused(answer), answer
    listener.finish_reload()
    assert is_plain(listener.exchange(), b"new")


def test_plain_becomes_tls(listener, ca):
    listener.start("old", plugins=("liana", "static"))
    listener.write("new", "tls")
    listener.reload()
    for answer in listener.exchange_many(24):
        assert is_plain(answer, b"old") or is_refused(answer), answer
    listener.finish_reload()
    assert is_refused(listener.exchange())
    wrap = lambda sock: ca.context().wrap_socket(sock, server_hostname="localhost")  # noqa: E731
    assert is_plain(listener.exchange(wrap), b"new")


def test_a_tls_listener_comes(listener, ca):
    """It is not accepted from before the workers know how."""
    other = free_port()
    listener.start("old", plugins=("liana", "static"))
    listener.write("new", extra=[f"127.0.0.1:{other} tls"])
    listener.reload()
    wrap = lambda sock: ca.context().wrap_socket(sock, server_hostname="localhost")  # noqa: E731
    for answer in listener.exchange_many(24, wrap=wrap, port=other):
        assert answer is None or is_plain(answer, b"new"), answer
    listener.finish_reload()
    assert is_plain(listener.exchange(wrap, port=other), b"new")


def test_a_tls_listener_goes(listener, ca):
    other = free_port()
    listener.start("old", extra=[f"127.0.0.1:{other} tls"])
    listener.write("new", plugins=("liana", "static"))
    listener.reload()
    wrap = lambda sock: ca.context().wrap_socket(sock, server_hostname="localhost")  # noqa: E731
    for answer in listener.exchange_many(24, wrap=wrap, port=other):
        assert answer is None or is_plain(answer, b"old") or is_plain(answer, b"new"), answer
    listener.finish_reload()
    assert is_plain(listener.exchange(), b"new")


@pytest.mark.parametrize("before, after", [("", "proxy"), ("proxy", "")])
def test_proxy_changes(listener, before, after):
    """A worker of the generation that awaits a PROXY header gets none of the other's answers, and the other way."""
    listener.start("old", before, plugins=("liana", "static"))
    listener.write("new", after, plugins=("liana", "static"))
    listener.reload()
    awaits, serves = (b"new", b"old") if after else (b"old", b"new")
    for answer in listener.exchange_many(24):
        assert not answer or is_plain(answer, serves), answer
    for answer in listener.exchange_many(24, before=PROXY):
        assert not answer or is_plain(answer, awaits) or is_refused(answer), answer
    listener.finish_reload()
    assert is_plain(listener.exchange(before=PROXY if after else b""), b"new")


def test_the_name_of_a_listener_is_that_of_its_generation(listener):
    """The same address, written in another way: what names it in the new way finds it."""
    listener.address = f"{listener.port}"
    listener.start("old", plugins=("liana", "health", "static"))
    listener.address = f"*:{listener.port}"
    health = section("HEALTH", {"Listener": listener.address, "ReadinessPath": "/v"})
    listener.write("new", plugins=("liana", "health", "static"), files={"plugins/health/health.conf": health})
    listener.reload()
    listener.finish_reload()
    assert is_plain(listener.exchange(), b"ready\n")
