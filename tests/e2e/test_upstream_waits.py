# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a server of a group: MaxConnections with its queue, and Hold; and which are repeated."""

import collections
import re
import subprocess
import threading
import time

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.client import Client
from harness.failing_memory import fail_each, only_sanitized
from harness.few_descriptors import descriptors_below, find_limit
from harness.groups import GROUPS, ask_many, await_queued, get_cookie, group, hold
from harness.load import Asking
from harness.messages import CLOSE, chunked, request
from harness.metrics import needs_status, scrape, status_section, total
from harness.origins import Origin
from harness.proxies import TEXT
from harness.server import await_true, run, write_config
from harness.services import reload

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "upstream.so").exists(), reason="this preset has no plugins"),
]


class Counting:
    """
    A script that notes how many requests are with the backend at a time, and in which order they come. Each waits for
    `release`, or until there are `together`.
    """

    def __init__(self, release=None, together=1):
        self.changed, self.now, self.most, self.order = threading.Condition(), 0, 0, []
        self.release, self.together = release, together

    def __call__(self, peer):
        while True:
            got = peer.request()
            with self.changed:
                self.now += 1
                self.most = max(self.most, self.now)
                self.order.append(got.target)
                self.changed.notify_all()
                self.changed.wait_for(lambda: self.now >= self.together, timeout=0.05)
            if self.release:
                self.release.acquire()
            with self.changed:
                self.now -= 1
            peer.respond(b"done", TEXT)


def await_log(server, text, count=1):
    await_true(lambda: server.log.count(text) >= count, what=text)


# ── MaxConnections and Queue ──


@needs_status
def test_a_queue_in_order(serve_group, backends):
    release = threading.Semaphore(0)
    script = Counting(release)
    (one,) = backends(1, script)
    server = serve_group([one], {"MaxConnections": 1, "Queue": 5, "QueueTimeout": "60s"}, config=STATUS)
    clients = [server.connect() for _ in range(7)]
    with server.connect() as watcher:
        for number, client in enumerate(clients[:6]):
            client.send(request(f"/{number}"))
            one.wait_requests(1)
            await_queued(watcher, number)
    assert clients[6].ask("/6").status == 503
    for _ in range(6):
        release.release()
    assert [client.response().status for client in clients[:6]] == [200] * 6
    assert script.order == [f"/{number}" for number in range(6)] and script.most == 1
    with server.connect() as watcher:
        waited = {dict(labels)["server"]: value for (name, labels), value in scrape(watcher).items()
                  if name == "monkey_upstream_server_waited_requests_total"}
    assert waited == {one.address: 5}
    await_log(server, "all servers of the group have MaxConnections, and Queue is full")
    for client in clients:
        client.close()


STATUS = {"plugins/status/status.conf": status_section()}


def test_a_full_group_without_a_queue(serve_group, backends):
    one, two = backends(2, hold)
    server = serve_group([one, two], {"MaxConnections": 1})
    clients = [server.connect() for _ in range(2)]
    for client in clients:
        client.send(request("/"))
    one.wait_requests(1)
    two.wait_requests(1)
    with server.connect() as client:
        got = client.ask("/")
        assert got.status == 503 and "connection_limit_reached" in got["Proxy-Status"]
        for each in (one, two):
            each.tell("go")
        assert [each.response().status for each in clients] == [200, 200]
        for each in (one, two):
            each.scripts[:] = [answer(b"0", TEXT)]
        await_true(lambda: client.ask("/").status in (200, 503), what="a response")
    for client in clients:
        client.close()


def test_a_client_that_reads_slowly_holds_no_place(serve_group, backends):
    """The server has sent all of its response: it may have another request."""
    large = b"x" * 2_000_000
    (one,) = backends(1, lambda peer: [peer.respond(large if peer.request().target == "/large" else b"0", TEXT)
                                       for _ in range(2)])  # fmt: skip
    server = serve_group([one], {"MaxConnections": 1, "Queue": 1, "QueueTimeout": "60s"})
    with Client(server.addresses[0], rcvbuf=4096) as slow, server.connect() as client:
        slow.send(request("/large"))
        one.wait_requests(1)
        assert client.ask("/").status == 200
        assert slow.response().body == large


def test_queue_timeout(serve_group, backends):
    (one,) = backends(1, hold)
    server = serve_group([one], {"MaxConnections": 1, "Queue": 5, "QueueTimeout": "200ms"})
    with server.connect() as first, server.connect() as second:
        first.send(request("/"))
        one.wait_requests(1)
        got = second.ask("/")
        assert got.status == 503 and "connection_limit_reached" in got["Proxy-Status"]
        one.tell("go")
        assert first.response().status == 200
    await_log(server, "no server of the group had room within QueueTimeout")


@needs_status
def test_deadline_in_the_queue(serve_group, backends):
    (one,) = backends(1, hold)
    keys = {"MaxConnections": 1, "Queue": 1, "QueueTimeout": "60s"}
    server = serve_group([one], keys, {"Deadline": "200ms", "ResponseTimeout": "60s"})
    with server.connect() as first, server.connect() as second:
        first.send(request("/"))
        one.wait_requests(1)
        got = second.ask("/")
        assert got.status == 504, got
        assert first.response().status == 504


@pytest.mark.parametrize("keys", [{"Hold": "60s"}, {"Retry": "Idempotent"}])
def test_deadline_ends_the_tries(serve_group, backends, keys):
    """Of a request that is held, and of one whose first server does not respond."""
    one, two = servers = backends(2, hold)
    if "Hold" in keys:
        for each in servers:
            each.refuse()
    server = serve_group(servers, {"Balance": "First", **keys}, {"Deadline": "200ms", "ResponseTimeout": "60s"})
    with server.connect() as client:
        assert client.ask("/").status == 504
    assert len(one.requests) == ("Hold" not in keys) and not two.requests


def test_a_client_that_leaves_frees_its_place(serve_group, backends):
    """One that waits, and one that is with the server."""
    release = threading.Semaphore(0)
    script = Counting(release)
    (one,) = backends(1, script)
    server = serve_group([one], {"MaxConnections": 1, "Queue": 2, "QueueTimeout": "60s"}, config=STATUS)
    first, second, third, watcher = (server.connect() for _ in range(4))
    for number, client in enumerate((first, second, third)):
        client.send(request(f"/{number}"))
        one.wait_requests(1)
        await_queued(watcher, number)
    second.close()
    await_queued(watcher, 1)
    watcher.close()
    first.close()
    await_true(lambda: "/2" in script.order, what="the third request")
    release.release()
    release.release()
    assert third.response().status == 200
    assert script.order == ["/0", "/2"]
    third.close()


@pytest.mark.concurrent
@pytest.mark.parametrize("workers", [1, 8])
def test_the_limit_is_exact(serve_group, workers):
    """Over all workers: the backends count."""
    scripts = [Counting(together=3), Counting(together=3)]
    with Backend(scripts[0]) as one, Backend(scripts[1]) as two:
        keys = {"MaxConnections": 3, "Queue": 1000, "QueueTimeout": "60s"}
        server = serve_group([one, two], keys, settings={"Workers": workers})
        count = 1500
        command = ["h2load", "--h1", "-n", str(count), "-c", "40", "-t", "1", f"{server.url}/"]
        got = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
        assert f"{count} done" in got.stdout and f"status codes: {count} 2xx" in got.stdout, got.stdout
    assert len(scripts[0].order) + len(scripts[1].order) == count
    assert max(script.most for script in scripts) == 3 and min(len(script.order) for script in scripts) > 100


@pytest.mark.concurrent
def test_reloads_amid_a_queue(serve_group):
    """The limit and the order hold over generations, whose groups share what waits."""
    script = Counting(together=2)
    with Backend(script) as one:
        keys = {"MaxConnections": 2, "Queue": 1000, "QueueTimeout": "60s"}
        server = serve_group([one], keys, settings={"Workers": 2})
        count = 1000 if build.SANITIZED else 4000
        command = ["h2load", "--h1", "-n", str(count), "-c", "30", "-t", "1", f"{server.url}/"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
            for round_ in range(20):
                server.groups.write_text(group([one], **{**keys, "Queue": 1000 + round_}))
                reload(server)
            output = load.communicate(timeout=240)[0]
    statuses = re.search(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", output)
    assert statuses and int(statuses[1]) == count, output
    assert script.most == 2


@needs_status
def test_a_reload_serves_the_queue(serve_group, backends):
    """Requests that wait since the former configuration get the limit, and the servers, of the next one."""
    one, two = backends(2, hold)
    keys = {"MaxConnections": 1, "Queue": 4, "QueueTimeout": "60s"}
    server = serve_group([one], keys, config=STATUS)
    clients = [server.connect() for _ in range(5)]
    for client in clients:
        client.send(request("/"))
    one.wait_requests(1)
    with server.connect() as watcher:
        await_queued(watcher, 4)
    server.groups.write_text(group([one, two], **{**keys, "MaxConnections": 2}))
    reload(server)
    one.wait_requests(2)
    two.wait_requests(2)
    for each in (one, two):
        each.tell("go")
    assert [client.response().status for client in clients] == [200] * 5
    for client in clients:
        client.close()


def hold_slow(peer):
    while True:
        if peer.request().target == "/slow":
            peer.wait("go")
        peer.respond(b"done", TEXT)


@needs_status
def test_a_queue_for_one_server(serve_group, backends):
    """Those whose cookies name a full server do not keep others from the rest."""
    servers = backends(2, hold_slow)
    keys = {**STICKY, "MaxConnections": 1, "Queue": 2, "QueueTimeout": "60s"}
    server = serve_group(servers, keys, config=STATUS)
    with server.connect() as client:
        cookie = "Cookie: " + get_cookie(client.ask("/"))
        bound = [server.connect() for _ in range(3)]
        for each in bound:
            each.send(request("/slow", cookie))
        await_queued(client, 2)
        with server.connect() as other:
            assert other.ask("/slow", cookie).status == 503
        assert [client.ask("/").status for _ in range(4)] == [200] * 4
    for each in servers:
        each.tell("go")
    assert [each.response().status for each in bound] == [200] * 3
    for each in bound:
        each.close()


def test_retries_of_requests_that_waited(serve_group, backends):
    """The first servers refuse each of them."""
    dead, dead_too, one = backends(3)
    dead.refuse()
    dead_too.refuse()
    keys = {"MaxConnections": 1, "Queue": 100, "QueueTimeout": "60s", "EjectAfter": 0}
    server = serve_group([dead, dead_too, one], keys)
    clients = [server.connect() for _ in range(30)]
    for client in clients:
        client.send(request("/"))
    assert [client.response().status for client in clients] == [200] * 30
    for client in clients:
        client.close()


@only_sanitized
def test_each_allocation_fails_once_in_the_queue(serve_group, backends):
    (one,) = backends(1)
    server = serve_group([one], {"MaxConnections": 1, "Queue": 1}, {"KeepAlive": 0})

    def ask():
        with server.connect() as client:
            return client.ask("/").status

    assert fail_each(server, ask) > 3
    assert ask_many(server, 3) == {0: 3}


@only_sanitized
def test_each_allocation_fails_once_while_it_is_held(serve_group, backends):
    (one,) = backends(1)
    one.refuse()
    server = serve_group([one], {"Hold": "20ms", "EjectAfter": 0})

    def ask():
        """Returns 200 for the response of a request that was held."""
        with server.connect() as client:
            got = client.ask("/")
            return 200 if "destination_unavailable" in got["Proxy-Status"] else got.status

    assert fail_each(server, ask) > 3


def test_no_descriptor_is_left_for_a_request_that_waited(serve_group, backends):
    """Its place is free again."""
    (one,) = backends(1, hold)
    server = serve_group([one], {"MaxConnections": 1, "Queue": 1, "QueueTimeout": "60s"}, {"KeepAlive": 0})
    limit = find_limit(server.pid, 0)
    with server.connect() as first, server.connect() as second, server.connect() as third:
        first.send(request("/"))
        one.wait_requests(1)
        second.send(request("/"))
        assert third.ask("/", CLOSE).status == 503  # the queue is full
        with descriptors_below(server, limit):
            one.tell("go")
            assert first.response().status == 200
            assert second.response().status == 503
        with server.connect() as client:
            for _ in range(3):
                client.send(request("/"))
                one.tell("go")
                assert client.response().status == 200
    assert "gets no requests" not in server.log


# ── Hold ──


def test_requests_are_held(serve_group, backends):
    """All servers are away; the requests get the first one that comes back."""
    servers = backends(2)
    server = serve_group(servers, {"Hold": "60s", "EjectAfter": 1, "EjectTime": "5m"}, settings={"Workers": 2})
    ports = [each.listener.getsockname()[1] for each in servers]
    for each in servers:
        each.refuse()
    clients = [server.connect() for _ in range(20)]
    for client in clients:
        client.send(request("/", method="POST", body=b"x" * 100))
    await_log(server, "gets no requests for", 2)
    with Backend(answer(b"7", TEXT), port=ports[1]):
        for client in clients:
            assert client.response().body == b"7"
    for client in clients:
        client.close()


@pytest.mark.load
@needs_status
@pytest.mark.concurrent
@pytest.mark.parametrize("count", [1, 4])
def test_all_are_killed_and_come_back_under_load(serve, serve_group, count):
    """With SIGKILL: no request fails that may be repeated, also if each server has had it when it was killed."""
    origins = [Origin(serve) for _ in range(count)]
    keys = {"Hold": "60s", "Retry": "Idempotent", "RetryMost": 4}
    config = {"plugins/status/status.conf": status_section()}
    server = serve_group([each.address for each in origins], keys, settings={"Workers": 2}, config=config)

    def get(client):
        assert client.ask("/b").body == Origin.BODY

    with Asking(server, get) as clients, server.connect() as client:
        for _ in range(3):
            clients.await_answers(200)
            for each in origins:
                each.kill()
            held = lambda: total(scrape(client), "monkey_upstream_held_requests")
            await_true(lambda: held() == 4 or clients.errors, what="requests that wait for a server")
            for each in origins:
                each.start()
            clients.await_answers(100)
    assert not clients.errors, clients.errors


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_body_that_comes_while_a_request_is_held(serve_group, backends, framing):
    """The server has got the head only, and resets: the next one gets the whole body."""
    (one,) = backends(1)
    body, port = b"0123456789" * 10_000, one.listener.getsockname()[1]

    def leave(peer):
        peer.head()
        one.refuse()
        peer.reset()

    one.scripts[:] = [leave]
    server = serve_group([one], {"Hold": "60s", "Retry": "Idempotent", "EjectAfter": 1})
    with server.connect() as client:
        field = f"Content-Length: {len(body)}" if framing == "length" else "Transfer-Encoding: chunked"
        client.send(request("/", field, method="PUT"))
        server.wait_log("gets no requests for")
        client.send(body if framing == "length" else chunked(body))
        with Backend(answer(b"7", TEXT), port=port) as back:
            assert client.response("PUT").body == b"7"
            assert [each.body for each in back.requests] == [body]


def test_requests_are_held_without_descriptors(serve_group, backends):
    """They are served when there are some again."""
    (one,) = backends(1)
    server = serve_group([one], {"Hold": "60s"}, {"KeepAlive": 0})
    limit = find_limit(server.pid, 0)
    with server.connect() as idle, server.connect() as client:
        assert idle.ask("/").status == 200
        with descriptors_below(server, limit):
            client.send(request("/"))
            idle.assert_closed()  # for its descriptor, which is none that may be used
        assert client.response().status == 200
    assert one.wait_requests(2) and "gets no requests" not in server.log


@needs_status
def test_hold_tries_now_and_then(serve_group, backends):
    """Also if what happens is no failure by EjectOn."""
    (one,) = backends(1)
    one.refuse()
    keys = {"Hold": "1s", "EjectOn": "Timeout"}
    server = serve_group([one], keys, config=STATUS)
    with server.connect() as client:
        assert client.ask("/").status == 503
        assert 1 <= total(scrape(client), "monkey_proxy_backend_retries_total") < 20


def test_hold_is_over(serve_group, backends):
    (one,) = backends(1)
    one.refuse()
    server = serve_group([one], {"Hold": "300ms", "EjectAfter": 0})
    with server.connect() as client:
        got = client.ask("/")
        assert got.status == 503 and "destination_unavailable" in got["Proxy-Status"]


def test_a_group_without_servers_in_use_is_held(serve_group, backends):
    """Until a reload brings one."""
    one, two = backends(2)
    server = serve_group([f"{one.address} down"], {"Hold": "400ms"})
    with server.connect() as client:
        assert client.ask("/").status == 503
    server.groups.write_text(group([f"{one.address} down"], Hold="60s"))
    reload(server)
    with server.connect() as client:
        client.send(request("/"))
        server.groups.write_text(group([two], Hold="60s"))
        reload(server)
        assert client.response().body == b"1"


# ── retries ──


@pytest.mark.parametrize("method, body, repeats", [("GET", None, True), ("POST", b"x", False), ("PUT", b"x", True)])
def test_statuses_are_repeated(serve_group, backends, method, body, repeats):
    sick, well = backends(2)
    sick.scripts[:] = [answer(b"busy", TEXT, status=429, reason="Too Many Requests")]
    server = serve_group([sick, well], {"Balance": "First", "Retry": "Connect 429 503"}, {"SpoolRequest": "On"})
    with server.connect() as client:
        for _ in range(3):
            got = client.ask("/", method=method, **({"body": body} if body else {}))
            assert (got.status, got.body) == ((200, b"1") if repeats else (429, b"busy"))
    assert len(well.requests) == (3 if repeats else 0)
    assert all(each.body == (body or b"") for each in well.requests)


def test_a_status_of_all_servers(serve_group, backends):
    """The last response is the client's."""
    servers = backends(2, answer(b"busy", TEXT, status=503, reason="Unavailable"))
    server = serve_group(servers, {"Retry": "Idempotent 503", "EjectAfter": 0})
    with server.connect() as client:
        got = client.ask("/")
        assert (got.status, got.body) == (503, b"busy")
    assert sum(len(each.requests) for each in servers) == 2


def test_the_budget_of_retries(serve_group, backends):
    """Retries do not double the load of servers that cannot do more."""
    servers = backends(2, answer(b"busy", TEXT, status=503, reason="Unavailable"))
    server = serve_group(servers, {"Retry": "Idempotent 503", "EjectAfter": 0, "RetryBudget": 10})
    with server.connect() as client:
        for _ in range(100):
            assert client.ask("/").status == 503
    assert 103 <= sum(len(each.requests) for each in servers) <= 113


def test_retry_time(serve_group, backends):
    silent, one = backends(2)
    silent.scripts[:] = [lambda peer: (peer.request(), peer.wait_end())]
    keys = {"Balance": "First", "Retry": "Idempotent", "RetryTime": "100ms", "EjectAfter": 0}
    server = serve_group([silent, one], keys, {"ResponseTimeout": "300ms"})
    with server.connect() as client:
        assert client.ask("/").status == 504
    assert not one.requests


# ── EjectOn, SlowStart ──


def test_eject_on(serve_group, backends):
    sick, well = backends(2)
    sick.scripts[:] = [answer(b"no", TEXT, status=500, reason="Error")]
    keys = {"Balance": "First", "EjectAfter": 2, "EjectOn": "500", "EjectTime": "5m"}
    server = serve_group([sick, well], keys)
    with server.connect() as client:
        assert [client.ask("/").status for _ in range(4)] == [500, 500, 200, 200]


def test_eject_slower(serve_group, backends):
    slow, well = backends(2)
    slow.scripts[:] = [lambda peer: (peer.request(), time.sleep(0.15), peer.respond(b"0", TEXT))]
    keys = {"Balance": "First", "EjectAfter": 1, "EjectSlower": "100ms", "EjectTime": "5m"}
    server = serve_group([slow, well], keys)
    with server.connect() as client:
        assert client.ask("/").body == b"0"
        server.wait_log("gets no requests for")
        assert client.ask("/").body == b"1"


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_slow_upload_is_not_a_slow_server(serve_group, backends, clock, framing):
    """What it takes is counted from the last bytes of the request that were sent."""
    (one,) = backends(1)
    server = serve_group([one], {"EjectAfter": 1, "EjectMost": 100, "EjectSlower": "5s"})
    body = b"x" * 1000
    with server.connect() as client:
        field = f"Content-Length: {len(body)}" if framing == "length" else "Transfer-Encoding: chunked"
        client.send(request("/", field, method="POST"))
        one.wait_accepted(1)
        clock.advance(6)  # the client takes its time
        client.send(body if framing == "length" else chunked(body))
        assert client.response("POST").body == b"0"
    assert ask_many(server, 3) == {0: 3}
    assert "gets no requests" not in server.log


# ── Sticky ──

STICKY = {"Balance": "Sticky"}


def test_sticky(serve_group, backends):
    """A browser keeps its server; the cookie comes once, and others than its value are as none."""
    servers = backends(4)
    server = serve_group(servers, STICKY)
    with server.connect() as client:
        first = client.ask("/")
        cookie = get_cookie(first)
        assert "HttpOnly" in first["Set-Cookie"] and "SameSite=Lax" in first["Set-Cookie"]
        assert not any(each.address.split(":")[1] in cookie for each in servers)
        for _ in range(20):
            got = client.ask("/", f"Cookie: a=b; {cookie}; c=d")
            assert got.body == first.body and got["Set-Cookie"] is None
        forged = cookie[:-1] + ("0" if cookie[-1] != "0" else "1")
        seen = collections.Counter(client.ask("/", f"Cookie: {forged}").body for _ in range(60))
        assert len(seen) == 4
        assert get_cookie(client.ask("/", f"Cookie: {forged}"))
    server.wait_log(r"upstream app: \S+/upstream\.conf:\d+: there is no StickySecret: a secret was made")


def test_a_sticky_server_that_is_away(serve_group, backends):
    """The client gets another one, and its cookie."""
    one, two = backends(2)
    server = serve_group([one, two], {**STICKY, "EjectAfter": 1})
    with server.connect() as client:
        got = client.ask("/")
        cookie, gone, other = get_cookie(got), *((one, two) if got.body == b"0" else (two, one))
        gone.refuse()
        for peer in list(gone.peers):
            peer.reset()
        again = client.ask("/", f"Cookie: {cookie}")
        assert again.status == 200 and again.body != got.body
        assert get_cookie(again) != cookie
    assert len(other.requests) == 1


def test_the_cookie_is_secure_over_https(serve_group, backends):
    """By the client's scheme, as a trusted proxy tells it."""
    server = serve_group(backends(1), STICKY, settings={"TrustedProxies": "127.0.0.1"})
    with server.connect() as client:
        for scheme in ("https", "http"):
            attributes = client.ask("/", f"X-Forwarded-Proto: {scheme}")["Set-Cookie"].split("; ")[1:]
            assert ("Secure" in attributes) == (scheme == "https") and "HttpOnly" in attributes


def test_a_secret(serve_group, backends, tmp_path):
    """The same on two servers; a reload keeps one that was made."""
    servers = backends(3)
    secret = tmp_path / "secret"
    secret.write_bytes(b"0123456789abcdef")
    keys = {**STICKY, "StickySecret": secret, "StickyCookie": "node Path=/app Max-Age=60 Secure SameSite=Strict"}
    first, second = serve_group(servers, keys), serve_group(servers, keys)
    made = serve_group(servers, STICKY)
    with first.connect() as client:
        got = client.ask("/")
        found = re.fullmatch(r"(node=[0-9a-f]{32}); Max-Age=60; Path=/app; (.*)", got["Set-Cookie"])
        assert found and "Secure" in found[2] and "SameSite=Strict" in found[2], got["Set-Cookie"]
    for other in (first, second):
        with other.connect() as client:
            for _ in range(5):
                assert client.ask("/", f"Cookie: {found[1]}").body == got.body
    with made.connect() as client:
        got = client.ask("/")
        cookie = get_cookie(got)
        made.groups.write_text(group(reversed(servers), **STICKY, EjectAfter=3))
        reload(made)
        for _ in range(5):
            assert client.ask("/", f"Cookie: {cookie}").body == got.body
    assert made.log.count("there is no StickySecret") == 1


def test_cookies_of_one_name(tmp_path, site_root):
    """Two groups of a site would take each other's cookie away."""
    texts = [group(["127.0.0.1:1"], name=name, **STICKY) for name in ("one", "two")]
    other = group(["127.0.0.1:1"], name="three", **STICKY, StickyCookie="third")
    write_config(tmp_path / "conf", site_root, files={GROUPS: "".join([*texts, other])})
    got = run("-c", tmp_path / "conf", "--test")
    assert got.returncode == 0 and got.stderr.count("a cookie of the same name") == 1, got.stderr


def test_a_secret_that_cannot_be_used(serve_group, backends, tmp_path):
    (one,) = backends(1)
    server = serve_group([one], STICKY)
    secret = tmp_path / "secret"
    for content, problem in ((None, "cannot be read"), (b"short", "must have from 16 bytes to 4 KB")):
        if content:
            secret.write_bytes(content)
        server.groups.write_text(group([one], **STICKY, StickySecret=secret))
        assert any(problem in line for line in reload(server, accepted=False))
    assert ask_many(server, 2) == {0: 2}
