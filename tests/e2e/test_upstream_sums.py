# SPDX-License-Identifier: Apache-2.0
"""What the server counts of backends, over reloads and an upgrade, is what clients and backends have counted."""

import collections
import contextlib
import os
import signal
import threading

import pytest

from harness import build
from harness.backend import Backend
from harness.client import Client
from harness.groups import GROUPS, PREFIX, await_queued, group
from harness.messages import request
from harness.metrics import needs_status, scrape, status_section, total
from harness.proxies import TEXT
from harness.server import await_true, section
from test_upstream_storm import BODY, Counting

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "upstream.so").exists(), reason="this preset has no plugins"),
]
MODULES = ("proxy.so", "upstream.so", "status.so")


def start(chain, groups, paths):
    """A server whose paths go to groups."""
    host = section("HOST", {"ServerName": "localhost", "DocumentRoot": "/"})
    sections = [section("PROXY", {"Match": path, "To": f"http://{name}"}) for path, name in paths.items()]
    files = {
        GROUPS: groups,
        "sites/default": host + "".join(sections),
        "plugins/status/status.conf": status_section(),
    }
    return chain(modules=MODULES, files=files)


def reload(one, groups, count):
    """The count-th of a process."""
    (one.folder / "conf" / GROUPS).write_text(groups)
    os.kill(one.pids[-1], signal.SIGHUP)
    one.server.wait_log("the new configuration is in use", count)


def sums_of(samples, address):
    """What the server has counted for one of its backends."""

    def of(name, **labels):
        return total(samples, f"monkey_proxy_backend_{name}_total", server=address, **labels)

    responses = {each: of("responses", status=each) for each in ("1xx", "2xx", "3xx", "4xx", "5xx")}
    counts = {name: of(name) for name in ("requests", "opened_connections", "sent_bytes", "received_bytes", "failures")}
    return {**responses, **counts, "of the group": total(samples, f"{PREFIX}requests_total", server=address)}


def sums_seen_by(backend, script):
    by = lambda status: script.statuses[status]
    responses = {"1xx": 0, "2xx": by(200), "3xx": by(304), "4xx": by(404), "5xx": by(500)}
    sent, received = (sum(each) for each in zip(*((len(peer.raw), peer.sent) for peer in backend.peers)))
    counts = {"requests": script.requests, "opened_connections": len(backend.peers), "failures": 0}
    return {**responses, **counts, "sent_bytes": sent, "received_bytes": received, "of the group": script.requests}


@needs_status
def test_sums_over_reloads_and_an_upgrade(chain):
    """What clients and backends have counted is what the server counts, whichever process has served."""
    scripts = [Counting() for _ in range(3)]
    with Backend(scripts[0]) as a, Backend(scripts[1]) as b, Backend(scripts[2]) as c:
        backends = [a, b, c]
        one = start(chain, group(backends), {"/app": "app"})
        asked = collections.Counter()

        def ask(count):
            with Client(one.server.addresses[0]) as client:
                for n in range(count):
                    status = (200, 304, 404, 500)[n % 4]
                    got = client.ask(f"/app/{status}")
                    assert got.status == status
                    assert client.ask("/app/large", method="POST", body=BODY).status == 200
                    asked.update((status, 200))

        for turn in range(3):
            ask(20)
            reload(one, group([f"{each.address} weight={turn + 1}" for each in backends]), turn + 1)
            ask(20)
        one.upgrade()
        one.await_old()
        ask(20)
        with Client(one.server.addresses[0]) as client:
            samples = scrape(client)
        for each, script in zip(backends, scripts):
            assert sums_of(samples, each.address) == sums_seen_by(each, script)
        assert sum((script.statuses for script in scripts), collections.Counter()) == asked and asked.total() == 280
        assert total(samples, f"{PREFIX}active_requests") == 0


# ── failures ──

EJECT_AFTER = 2
FAILING = {"Balance": "RoundRobin", "Retry": "Idempotent 502", "RetryMost": 3, "RetryBudget": 100, "EjectMost": 100}
FAILING |= {"EjectAfter": EJECT_AFTER, "EjectTime": "1ms"}  # further requests come at once
CALM, BUSY, LEAVE = "calm", "busy", "leave"


class Failing(Counting):
    """
    A script that sometimes answers 502, and sometimes ends the connection instead of answering; it counts what the
    server under test must make of that. Requests for `/calm` are answered.
    """

    PLAN = [CALM] * 5 + [BUSY] + [CALM] * 3 + [BUSY] * 4 + [CALM] * 4 + [LEAVE] * 3 + [CALM] * 3 + [LEAVE] + [CALM] * 2

    def __init__(self):
        super().__init__()
        self.planned, self.in_row, self.ejections, self.retries = 0, 0, 0, collections.Counter()

    def plan(self, got):
        if got.target.endswith("/calm"):
            return CALM
        self.planned += 1
        return self.PLAN[self.planned % len(self.PLAN)]

    def note(self, what, is_new):
        """The end of a connection that was used before says nothing about the server: it is no failure of it."""
        if what == LEAVE and not is_new:
            self.retries["stale_connection"] += 1
        elif what == CALM:
            self.in_row = 0
        else:
            self.retries["status" if what == BUSY else "no_response"] += 1
            self.in_row += 1
            self.ejections += self.in_row >= EJECT_AFTER

    def __call__(self, peer):
        while True:
            got = peer.request()
            with self.lock:
                what = self.plan(got)
                self.note(what, is_new=len(peer.requests) == 1)
                self.statuses[{CALM: 200, BUSY: 502, LEAVE: "none"}[what]] += 1
            if what == LEAVE:
                return
            peer.respond(what.encode(), TEXT, status=502 if what == BUSY else 200)


def failures_of(samples, address):
    """What the server has counted of the failures of one of its backends."""
    reasons = ("not_reached", "stale_connection", "no_response", "status")
    of = lambda name, **labels: total(samples, name, server=address, **labels)
    retries = {reason: of("monkey_proxy_backend_retries_total", reason=reason) for reason in reasons}
    names = ("requests", "failures", "ejections")
    counts = {name: of(f"{PREFIX}{name}_total") for name in names}
    responses = {each: of("monkey_proxy_backend_responses_total", status=each) for each in ("2xx", "5xx")}
    return {**retries, **counts, **responses, "of clients": of("monkey_proxy_backend_failures_total")}


def failures_seen_by(script):
    retries = {reason: script.retries[reason] for reason in ("stale_connection", "no_response", "status")}
    failures = retries["no_response"] + retries["status"]
    counts = {"requests": script.requests, "failures": failures, "ejections": script.ejections}
    responses = {"2xx": script.statuses[200], "5xx": script.statuses[502]}
    return {**retries, **counts, **responses, "not_reached": 0, "of clients": 0}


@needs_status
def test_failures_over_reloads_and_an_upgrade(chain):
    """Retries by their reasons, and ejections. One client asks, so that backends know in which order they fail."""
    scripts = [Failing() for _ in range(3)] + [Counting()]
    for number, script in enumerate(scripts[:3]):
        script.planned = number * 5  # not all at once
    with contextlib.ExitStack() as stack:
        backends = [stack.enter_context(Backend(script)) for script in scripts]
        one = start(chain, group(backends, **FAILING), {"/app": "app"})
        asked = 0

        def ask(count):
            with Client(one.server.addresses[0]) as client:
                for n in range(count):  # first some without failures, by which the number of retries is limited
                    assert client.ask("/app/calm" if n < 20 else "/app").status == 200
            return count

        for turn in range(3):
            asked += ask(200)
            rows = [f"{each.address} weight={1 + (turn + n) % 2}" for n, each in enumerate(backends)]
            reload(one, group(rows, **FAILING), turn + 1)
        one.upgrade()
        one.await_old()
        for script in scripts[:3]:
            script.in_row = 0  # the next process knows nothing of it
        asked += ask(200)
        with Client(one.server.addresses[0]) as client:
            samples = scrape(client)
        for each, script in zip(backends[:3], scripts):
            assert failures_of(samples, each.address) == failures_seen_by(script)
            assert min(script.retries[name] for name in ("stale_connection", "no_response", "status")) > 2
            assert script.ejections > 5
        retries = sum(sum(script.retries.values()) for script in scripts[:3])
        assert sum(script.requests for script in scripts) == asked + retries
        assert total(samples, "monkey_proxy_backend_requests_total") == asked + retries


# ── waits ──


class Holding(Counting):
    """A script that answers when the test says so."""

    def __init__(self, release):
        super().__init__()
        self.release = release

    def __call__(self, peer):
        while True:
            peer.request()
            with self.lock:
                self.statuses[200] += 1
            self.release.acquire()
            peer.respond(b"done", TEXT)


@needs_status
def test_waits_over_reloads_and_an_upgrade(chain):
    """Those that were passed to a server after a wait, and those that got none."""
    release, waiting = threading.Semaphore(0), 5
    scripts = [Holding(release) for _ in range(2)]
    keys = {"MaxConnections": 1, "Queue": waiting, "QueueTimeout": "60s"}
    with Backend(scripts[0]) as a, Backend(scripts[1]) as b:
        one = start(chain, group([a, b], **keys), {"/app": "app"})

        def fill(amid=lambda: None):
            """Two requests are with the servers, the others wait, and one more is refused."""
            clients = [Client(one.server.addresses[0]) for _ in range(2 + waiting)]
            before = sum(script.requests for script in scripts)
            come = lambda: sum(script.requests for script in scripts) - before
            with Client(one.server.addresses[0]) as watcher:
                for number, client in enumerate(clients):
                    client.send(request("/app"))
                    await_true(lambda count=min(number + 1, 2): come() == count, what="a request of a server")
                    await_queued(watcher, max(number - 1, 0))
                assert watcher.ask("/app").status == 503
            amid()
            for _ in clients:
                release.release()
            for client in clients:
                assert client.response().status == 200
                client.close()

        fill()
        fill(amid=lambda: reload(one, group([b, a], **keys, EjectAfter=7), 1))
        one.upgrade()
        one.await_old()
        fill()
        with Client(one.server.addresses[0]) as client:
            samples = scrape(client)
    for each, script in zip((a, b), scripts):
        waited = total(samples, f"{PREFIX}waited_requests_total", server=each.address)
        assert waited == script.requests - 3  # the first one of each time
    assert sum(script.requests for script in scripts) == 3 * (2 + waiting)
    assert total(samples, "monkey_upstream_refused_requests_total") == 3
    assert total(samples, "monkey_upstream_wait_duration_seconds_count") == 3 * waiting
