# SPDX-License-Identifier: Apache-2.0
"""Applications of FastCGI in a group of servers: the queue, waits for a server, cookies, retries and orders."""

import collections
import contextlib
import itertools
import pathlib
import random
import re
import socket
import struct
import threading
import time

import pytest

from harness import build
from harness.client import ProtocolError
from harness.fastcgi import END, HEAD, STDERR, STDOUT, Application, answer, fastcgi_section, record
from harness.groups import GROUPS, await_queued, get_cookie, group
from harness.load import Asking, Counted
from harness.messages import request
from harness.metrics import needs_status, scrape, status_section, total
from harness.server import await_true, section
from harness.services import reload
from test_budgets import Trace
from test_shell import path, shell  # noqa: F401 (fixtures)

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugins"),
]
needs_shell = pytest.mark.skipif(not (build.PLUGINS / "cheetah.so").exists(), reason="the preset has no plugin cheetah")

FILES = {"a.php": b"<?php source"}
STATUS = {"plugins/status/status.conf": status_section()}
BUSY = b"Status: 503 Busy\r\nContent-Type: text/plain\r\n\r\n"


class Place:
    """The path of a socket, at which an application can be killed and started again. It answers with its number."""

    def __init__(self, path, script):
        self.path, self.script, self.application = path, script, None
        self.to = f"unix:{path}"
        self.start()

    def start(self, script=None):
        pathlib.Path(self.path).unlink(missing_ok=True)
        self.application = Application(script or self.script, self.path)

    def kill(self):
        self.application.kill()

    @property
    def requests(self):
        return self.application.requests


@pytest.fixture
def places(tmp_path):
    """Starts applications that answer with their number."""
    made = []

    def start(count, script=None):
        for _ in range(count):
            number = len(made)
            made.append(Place(tmp_path / f"app{number}.sock", script or answer(b"%d" % number)))
        return made[-count:]

    yield start
    for each in made:
        each.kill()
        assert not each.application.errors, each.application.errors


@pytest.fixture
def serve_places(serve):
    """A server that passes all scripts to a group."""

    def start(servers, keys=None, fastcgi=None, settings=None, config=None):
        config = {GROUPS: write_group(servers, keys), **(config or {})}
        text = fastcgi_section("app", ResponseTimeout="60s", **(fastcgi or {}))
        settings = {"Workers": 1, "MaxKeepAliveRequest": 0, **(settings or {})}
        server = serve(settings, text=text, files=FILES, config=config)
        server.groups = server.conf / GROUPS
        return server

    return start


def write_group(servers, keys=None):
    return group([getattr(each, "to", each) for each in servers], **(keys or {}))


def ask_bodies(server, count):
    """The bodies that came."""
    with server.connect() as client:
        answers = [client.ask("/a.php") for _ in range(count)]
    assert {each.status for each in answers} == {200}
    return {int(each.body) for each in answers}


# ── MaxConnections, Queue and Hold ──


@needs_status
def test_a_queue_in_order(serve_places, places):
    """The application has one request at a time; the others come in the order in which they have come."""
    release, count = threading.Semaphore(0), 5
    (one,) = places(1, lambda peer: (peer.request(), release.acquire(), peer.respond(b"0")))
    keys = {"MaxConnections": 1, "Queue": count - 1, "QueueTimeout": "60s"}
    server = serve_places([one], keys, config=STATUS)
    clients = [server.connect() for _ in range(count)]
    with server.connect() as watcher:
        for number, client in enumerate(clients):
            client.send(request(f"/a.php?{number}"))
            one.application.wait_requests(1)
            await_queued(watcher, number)
        got = watcher.ask("/a.php")
        assert got.status == 503 and "connection_limit_reached" in got["Proxy-Status"]
        server.wait_log("all servers of the group have MaxConnections, and Queue is full")
        for number, client in enumerate(clients):
            one.application.wait_requests(number + 1)
            assert [each.params["QUERY_STRING"] for each in one.requests] == [str(each) for each in range(number + 1)]
            release.release()
            assert client.response().body == b"0"
        assert total(scrape(watcher), "monkey_upstream_server_waited_requests_total") == count - 1
    for client in clients:
        client.close()


def ask_at_once(server, count, messages):
    """Sends requests by as many clients, all before the first response."""
    clients = [server.connect() for _ in range(count)]
    for client, message in zip(clients, itertools.cycle(messages)):
        client.send(message)
    for client in clients:
        assert client.response().body == b"0"
        client.close()


GET, POST = request("/a.php"), request("/a.php", method="POST", body=b"x")


@needs_status
@pytest.mark.parametrize("keep", [None, "Queue", 0], ids=["default", "queue", "never"])
def test_a_request_takes_over_a_connection(serve_places, places, keep):
    """A request that has waited uses the connection of the one that has ended; without one that waits it is closed."""
    count, go, closed = 5, threading.Event(), []

    def script(peer):
        with contextlib.ExitStack() as stack:
            stack.callback(closed.append, peer)
            while True:
                peer.request()
                go.wait(60)
                peer.respond(b"0")

    (one,) = places(1, script)
    keys = {"MaxConnections": 1, "Queue": count, "QueueTimeout": "60s"}
    server = serve_places([one], keys, {} if keep is None else {"KeepAlive": keep}, config=STATUS)
    with server.connect() as watcher:
        clients = [server.connect() for _ in range(count)]
        for client in clients:
            client.send(GET)
        await_queued(watcher, count - 1)
        go.set()
        for client in clients:
            assert client.response().body == b"0"
            client.close()
        assert one.application.accepted == (count if keep == 0 else 1)
        assert {each.flags for each in one.requests} == {0 if keep == 0 else 1}
        await_true(lambda: len(closed) == one.application.accepted, what="the end of the connection")


@pytest.mark.parametrize("keys", [{"KeepAlive": "Queue"}, {"KeepAlive": 0}, None], ids=["queue", "never", "no section"])
def test_idle_connections_over_reloads(serve_places, places, keys):
    """They are used again, and end when a reload changes KeepAlive: each holds a process of the application."""
    ended = threading.Event()
    (one,) = places(1, lambda peer: (peer.request(), peer.respond(b"0"), peer.wait_end(), ended.set()))
    kept = {"KeepAlive": 2, "KeepAliveTimeout": "60s"}
    server = serve_places([one], {}, kept)
    server.baseline += 2  # of the thread that ends a generation
    with server.connect() as client:
        assert client.ask("/a.php").body == b"0"
    reload(server)
    assert one.application.accepted == 1 and not ended.is_set()
    site = server.conf / "sites" / "default"
    before = fastcgi_section("app", ResponseTimeout="60s", **kept)
    assert before in site.read_text()
    after = "" if keys is None else fastcgi_section("app", ResponseTimeout="60s", KeepAliveTimeout="60s", **keys)
    site.write_text(site.read_text().replace(before, after))
    reload(server)
    assert ended.wait(30)


@needs_status
def test_a_request_of_a_section_with_other_connections(serve, places, tmp_path):
    """It closes the connection that was kept for it before it makes its own, so that MaxConnections holds."""
    release = threading.Semaphore(0)
    (one,) = places(1, lambda peer: (peer.request(), release.acquire(), peer.respond(b"0"), peer.wait_end()))
    config = {GROUPS: write_group([one], {"MaxConnections": 1, "Queue": 5, "QueueTimeout": "60s"}), **STATUS}
    text = fastcgi_section("app", Match="/a.php")
    text += fastcgi_section("app", Match="/b.php", KeepAliveTimeout="30s")
    server = serve({"Workers": 1}, text=text, files={**FILES, "b.php": b"<?php source"}, config=config)
    with server.connect() as watcher, server.connect() as first, server.connect() as second:
        trace = Trace(server, tmp_path / "trace")
        first.send(GET)
        one.application.wait_requests(1)
        second.send(request("/b.php"))
        await_queued(watcher, 1)
        for client in (first, second):
            release.release()
            assert client.response().body == b"0"
        calls = trace.end()
    assert one.application.accepted == 2
    kept = next(rest.split(",")[0] for name, rest in calls if name == "connect")
    ends = [name for name, rest in calls if name == "connect" or (name == "close" and re.match(rf"{kept}\b", rest))]
    assert ends[:3] == ["connect", "close", "connect"]


def test_a_request_that_cannot_be_repeated_takes_none_over(serve_places, places):
    """POST has a new connection: the application may have closed the other one just now."""
    (one,) = places(1)
    server = serve_places([one], {"MaxConnections": 1, "Queue": 50, "QueueTimeout": "60s"})
    ask_at_once(server, 20, [POST])
    assert one.application.accepted == 20
    ask_at_once(server, 40, [GET, POST, POST, GET])
    assert 40 <= one.application.accepted <= 60 and len(one.requests) == 60


def test_connections_that_end_when_they_are_taken_over(serve_places, places):
    """As php-fpm with pm.max_requests: the request goes to a new connection, and no request fails or comes twice."""

    def script(peer):
        for _ in range(2):
            peer.request()
            peer.respond(b"0")

    (one,) = places(1, script)
    server = serve_places([one], {"MaxConnections": 2, "Queue": 100, "QueueTimeout": "60s"}, settings={"Workers": 2})
    for messages in ([GET], [POST], [GET, POST]):
        ask_at_once(server, 60, messages)
    assert len(one.requests) == 180


def answer_somehow(peer):
    """Each response has the query of its request, and ends in one of the ways in which applications do."""
    turn = random.Random(id(peer))
    while True:
        query = peer.request().params["QUERY_STRING"].encode()
        body = record(STDOUT, HEAD + query * turn.choice([1, 100, 900])) + record(STDOUT)
        end = record(END, bytes(8), padding=turn.choice([0, 7]))
        way = turn.choice(["whole", "whole", "pieces", "pause", "errors", "close", "excess", "early end", "reset"])
        if way == "pieces":
            peer.send(body + end, size=turn.randint(1, 200))
        elif way == "pause":
            peer.send(body + end[:-5])
            time.sleep(turn.random() / 200)
            peer.send(end[-5:])
        elif way == "errors":
            peer.send(record(STDERR, b"a line\n") + body + record(STDERR, b"another\n") + end)
        elif way == "excess":
            peer.send(body + end + record(STDOUT, HEAD + b"forged"))
        elif way == "reset":
            peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            peer.send(body if way == "early end" else body + end)
        if way in ("close", "early end", "reset"):
            peer.sock.close()
            return


@pytest.mark.concurrent
def test_responses_are_those_of_their_requests(serve_places, places):
    """Connections are taken over, or end then, and reloads change which requests do that; no POST comes twice."""
    (one,) = places(1, answer_somehow)
    keys = {"MaxConnections": 3, "Queue": 500, "QueueTimeout": "60s", "EjectAfter": 0}
    server = serve_places([one], keys, {"MaxResponseHead": "32K"}, {"Workers": 2, "KeepAliveTimeout": "60s"})
    numbers, posted = itertools.count(), []

    def ask_one():
        number = next(numbers)
        query, method = f"<{number}>", "POST" if number % 3 == 0 else "GET"
        if method == "POST":
            posted.append(query)
        with server.connect(timeout=60) as client, contextlib.suppress(ProtocolError, ConnectionError):  # cut
            got = client.ask(f"/a.php?{query}", method=method, body=b"x" if method == "POST" else b"")
            assert got.status in (200, 502)
            assert got.status == 502 or not got.body.replace(query.encode(), b""), (query, got.body[:100])
        clients.count()

    site = server.conf / "sites/default"
    before = site.read_text()
    clients = Counted([ask_one] * 24)
    with clients:
        for keep in ("KeepAlive 4", "KeepAlive 0", "KeepAlive Queue") * 2:
            clients.await_answers(200)
            site.write_text(before.replace("To app", f"To app\n    {keep}"))
            reload(server)
    assert not clients.errors, clients.errors
    counts = collections.Counter(each.params["QUERY_STRING"] for each in one.requests)
    assert len(posted) > 100 and max(counts[query] for query in posted) == 1


def test_queue_timeout(serve_places, places):
    (one,) = places(1, lambda peer: (peer.request(), peer.application.event("go").wait(60), peer.respond(b"0")))
    server = serve_places([one], {"MaxConnections": 1, "Queue": 5, "QueueTimeout": "200ms"})
    with server.connect() as first, server.connect() as second:
        first.send(request("/a.php"))
        one.application.wait_requests(1)
        got = second.ask("/a.php", method="POST", body=b"x" * 1000)
        assert got.status == 503 and "connection_limit_reached" in got["Proxy-Status"]
        one.application.event("go").set()
        assert first.response().status == 200
    server.wait_log("no server of the group had room within QueueTimeout")
    assert len(one.requests) == 1


@needs_status
def test_requests_are_held(serve_places, places):
    """All applications are away; each request gets the first one that comes back, with its body."""
    servers = places(2, lambda peer: peer.respond(peer.request().body))
    keys = {"Hold": "60s", "EjectAfter": 1, "EjectTime": "5m"}
    server = serve_places(servers, keys, settings={"Workers": 2}, config=STATUS)
    for each in servers:
        each.kill()
    clients = [server.connect() for _ in range(20)]
    for number, client in enumerate(clients):
        client.send(request("/a.php", method="POST", body=b"body %d" % number))
    with server.connect() as watcher:
        held = lambda: total(scrape(watcher), "monkey_upstream_held_requests")
        await_true(lambda: held() == len(clients), what="requests that wait for a server")
    servers[1].start()
    for number, client in enumerate(clients):
        got = client.response("POST")
        assert (got.status, got.body) == (200, b"body %d" % number)
        client.close()


# ── Sticky ──


def test_sticky(serve_places, places):
    """The cookie is added to those of the application, comes once, and brings the client to the same server."""
    head = b"Set-Cookie: own=1\r\nContent-Type: text/plain\r\n\r\n"
    servers = [place for number in range(4) for place in places(1, answer(b"%d" % number, head))]
    server = serve_places(servers, {"Balance": "Sticky"})
    with server.connect() as client:
        first = client.ask("/a.php")
        cookies = [value for name, value in first.fields if name == "Set-Cookie"]
        (own,) = [each for each in cookies if each.startswith("server=")]
        assert len(cookies) == 2 and "own=1" in cookies
        cookie = own.split(";")[0]
        for _ in range(20):
            got = client.ask("/a.php", f"Cookie: a=b; {cookie}")
            assert (got.body, got["Set-Cookie"]) == (first.body, "own=1")
        number = len(servers[int(first.body)].requests)
        assert number == 21 and all(not each.requests for each in servers if each is not servers[int(first.body)])


def test_a_sticky_server_that_is_away(serve_places, places):
    """The client gets another one, and its cookie."""
    servers = places(2)
    server = serve_places(servers, {"Balance": "Sticky"})
    with server.connect() as client:
        first = client.ask("/a.php")
        servers[int(first.body)].kill()
        got = client.ask("/a.php", f"Cookie: {get_cookie(first)}", method="POST", body=b"x")
        assert got.status == 200 and got.body != first.body
        assert get_cookie(got) != get_cookie(first)


# ── retries ──


@pytest.mark.parametrize("method, body, repeats", [("GET", None, True), ("PUT", b"x", True), ("POST", b"x", False)])
def test_statuses_are_repeated(serve_places, places, method, body, repeats):
    (sick,), (well,) = places(1, answer(b"busy", BUSY)), places(1)
    server = serve_places([sick, well], {"Balance": "First", "Retry": "Idempotent 503", "EjectAfter": 0})
    with server.connect() as client:
        for _ in range(3):
            got = client.ask("/a.php", method=method, **({"body": body} if body else {}))
            assert (got.status, got.body) == ((200, b"1") if repeats else (503, b"busy"))
    assert len(sick.requests) == 3
    assert [each.body for each in well.requests] == ([body or b""] * 3 if repeats else [])


def test_a_status_of_all_servers(serve_places, places):
    """The last response is the client's."""
    servers = places(2, answer(b"busy", BUSY))
    server = serve_places(servers, {"Retry": "Idempotent 503", "EjectAfter": 0})
    with server.connect() as client:
        got = client.ask("/a.php")
        assert (got.status, got.body) == (503, b"busy")
    assert [len(each.requests) for each in servers] == [1, 1]


@pytest.mark.concurrent
@pytest.mark.parametrize("keep", [
    *(pytest.param(count, marks=pytest.mark.load) for count in (0, 4)), "Queue",
])
def test_killed_under_load_amid_reloads(serve_places, places, keep):
    """No request that may be repeated fails, while one application after the other ends and comes back."""
    servers = places(3)
    keys = {"Retry": "Idempotent", "RetryBudget": 100, "EjectTime": "1s"}
    keys |= {"MaxConnections": 1, "Queue": 100, "QueueTimeout": "60s"} if keep == "Queue" else {}
    fastcgi = {"KeepAlive": keep, **({"KeepAliveTimeout": "60s"} if keep else {})}
    server = serve_places(servers, keys, fastcgi, {"Workers": 2})

    def change(turn):
        rows = [f"{each.to} weight={1 + (turn + number) % 3}" for number, each in enumerate(servers)]
        server.groups.write_text(write_group(rows, keys))
        reload(server)

    def get(client):
        got = client.ask("/a.php")
        assert got.status == 200 and got.body in (b"0", b"1", b"2")

    turns = itertools.count()
    with Asking(server, get) as clients:
        for each in servers:
            clients.await_answers(50)
            each.kill()
            change(next(turns))
            clients.await_answers(50)
            each.start()
            change(next(turns))
            await_true(lambda each=each: each.requests or clients.errors, what="requests of the one that is back")
    assert not clients.errors, clients.errors


# ── orders of the shell ──


@needs_shell
@pytest.mark.parametrize("state", ["drain", "down"])
def test_an_application_without_new_requests(serve_places, places, path, shell, state):  # noqa: F811
    """A request under way continues; the next ones go to the other one, until it is up again."""
    (one,) = places(1, lambda peer: (peer.request(), peer.application.event("go").wait(60), peer.respond(b"0")))
    (two,) = places(1)
    config = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": path})}
    server = serve_places([one, two], {"Balance": "First"}, config=config)

    def order(what):
        (row,) = [each for each in asking.ask(f"upstream app {one.to} {what}") if "server" in each]
        assert row["server"] == one.to
        return row

    with server.connect() as held:
        asking = shell()
        held.send(request("/a.php"))
        one.application.wait_requests(1)
        row = order(state)
        assert (row["state"], row["active"]) == (state, 1)
        assert ask_bodies(server, 10) == {1}
        server.groups.write_text(write_group([f"{one.to} weight=2", two], {"Balance": "First"}))
        reload(server)
        assert ask_bodies(server, 10) == {1}
        one.application.event("go").set()
        assert held.response().body == b"0"
    assert order("up")["state"] == "up"
    assert ask_bodies(server, 3) == {0}
    server.wait_log(rf"has set {re.escape(one.to)} to {state}")
