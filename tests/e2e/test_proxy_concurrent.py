# SPDX-License-Identifier: Apache-2.0
"""Several workers, clients of all kinds and backends that fail, while sections change, go and come again."""

import threading

import pytest

from harness import build
from harness.backend import Backend, echo, echo_websocket
from harness.client import ProtocolError
from harness.load import Clients
from harness.messages import chunked, lines, request
from harness.proxies import TEXT, proxy_section
from harness.services import CONTROL_THREAD, reload
from harness.ways import WAYS
from harness.websocket import WebSocket

pytestmark = [
    pytest.mark.concurrent,
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
]
BODY = b"x" * 100_000
EVENTS = "Content-Type: text/event-stream"


def fail_often(peer):
    """Of four requests one is answered, the others lose their connection: before, in and behind the head."""
    for kind in range(4):
        peer.request()
        if kind == peer.number % 4:
            head = lines("HTTP/1.1 200 OK", TEXT, "Content-Length: 9")
            peer.send(head[:20] if kind % 2 else head)
            return
        peer.respond(b"hello", TEXT)


class Site:
    """Sections for three backends; /other comes and goes, and all of them change."""

    def __init__(self, server, backends):
        self.server, self.backends, self.turn = server, backends, 0
        self.begin = (server.conf / "sites/default").read_text()
        self.write()

    def text(self):
        keys = {"KeepAlive": 1 + self.turn % 3, "KeepAliveTimeout": "1s"}
        names = ["/echo", "/ws", "/fails"] + ["/other"] * (self.turn % 2)
        backends = dict(zip(names, [*self.backends, self.backends[0]]))
        return "".join(proxy_section(backend, {"Match": name, **keys}) for name, backend in backends.items())

    def write(self):
        (self.server.conf / "sites/default").write_text(self.begin + self.text())

    def change(self):
        self.turn += 1
        self.write()
        reload(self.server)


class ProxyClients(Clients):
    def __init__(self, server):
        self.server, self.counts, self.lock = server, {}, threading.Lock()
        kinds = [self.get, self.upload, self.send_chunks, self.leave, self.fail, self.other, self.talk]
        super().__init__(kinds + ([self.get_by_streams] if build.speaks("h2") else []))

    def count(self, kind):
        with self.lock:
            self.counts[kind] = self.counts.get(kind, 0) + 1

    def get(self):
        with self.server.connect() as client:
            for _ in range(5):
                assert client.ask("/echo/a")["Echo"] == "GET /echo/a"
        self.count("get")

    def upload(self):
        with self.server.connect() as client:
            client.send(request("/echo", f"Content-Length: {len(BODY)}", method="POST") + BODY)
            assert client.response("POST").body == BODY
        self.count("upload")

    def send_chunks(self):
        with self.server.connect() as client:
            client.send(lines("POST /echo HTTP/1.1", "Host: a", "Transfer-Encoding: chunked") + chunked(BODY, BODY))
            assert client.response("POST").body == BODY + BODY
        self.count("send_chunks")

    def leave(self):
        """In the middle of a request, or of its response."""
        with self.server.connect() as client:
            client.send(request("/echo", f"Content-Length: {len(BODY)}", method="POST") + BODY[:50_000])
        with self.server.connect() as client:
            client.send(request("/echo", f"Content-Length: {len(BODY)}", method="POST") + BODY)
            client.exactly(100)
        self.count("leave")

    def fail(self):
        with self.server.connect() as client:
            try:
                assert client.ask("/fails").status in (200, 502)
            except ProtocolError:
                pass  # the response was cut
        self.count("fail")

    def other(self):
        with self.server.connect() as client:
            assert client.ask("/other").status in (200, 404)
        self.count("other")

    def talk(self):
        with self.server.connect() as client:
            ws = WebSocket(self.server, "/ws", client=client)
            for n in range(5):
                ws.assert_echo(f"message {n}")
        self.count("talk")

    def get_by_streams(self):
        with self.server.connect_h2() as client:
            numbers = [client.begin("/echo/a") for _ in range(10)]
            for number in numbers:
                assert client.response(number)["Echo"] == "GET /echo/a"
        self.count("get_by_streams")


def test_reloads(serve):
    with Backend(echo) as first, Backend(echo_websocket) as second, Backend(fail_often) as third:
        server = serve({"Workers": 3, "Timeout": "60s", "KeepAliveTimeout": "60s"})
        server.way = WAYS["h1"]
        site = Site(server, [first, second, third])
        reload(server)
        server.baseline += 1  # the folder of [SPOOL], which a first section opens
        with ProxyClients(server) as clients:
            while site.turn < 20 or len(clients.counts) < len(clients.threads):
                site.change()
                assert not clients.errors and site.turn < 2000, clients.errors
        assert not clients.errors, clients.errors
        for backend in (first, second, third):
            assert not backend.errors, backend.errors


def send_events(peer):
    """An event for each time that the test asks for one."""
    peer.request()
    peer.send(lines("HTTP/1.1 200 OK", EVENTS))
    for turn in range(1000):
        peer.wait(turn)
        peer.send(b"data: %d\n\n" % turn)


def follow_events(serve, streams, reloads):
    with Backend(send_events, seconds=300) as backend:
        server = serve({"Workers": 2, "Timeout": "60s", "KeepAliveTimeout": "60s"}, text=proxy_section(backend))
        server.baseline += CONTROL_THREAD
        clients, memory = [server.connect() for _ in range(streams)], []
        for client in clients:
            client.send(request("/events"))
        for client in clients:
            assert client.head().status == 200
        for turn in range(reloads):
            reload(server)
            backend.tell(turn)
            for client in clients:
                client.until(b"data: %d\n\n" % turn)
            memory.append(server.memory_kb())
        for client in clients:
            client.close()
        backend.kill()
    if not build.SANITIZED:
        early, late = memory[reloads // 4 : reloads // 2], memory[reloads * 3 // 4 :]
        assert min(late) - min(early) < 1024, f"{memory}"


def test_event_streams(serve):
    follow_events(serve, 20, 5)


@pytest.mark.load
def test_hundred_event_streams_over_hundred_reloads(serve):
    follow_events(serve, 100, 100)
