# SPDX-License-Identifier: Apache-2.0
"""Which worker serves a connection: distribution, processors, and connections above a limit."""

import contextlib
import itertools
import os
import pathlib
import random
import re
import resource
import select

import pytest

from harness.content import HELLO
from harness.messages import request
from harness.server import await_true, links_of_descriptors, read_threads, run, section

pytestmark = pytest.mark.concurrent
SCHEDULERS = ["reuseport", "fair"]


def spread(server):
    """How many connections each worker has, as its epoll queue tells: they alone are edge-triggered."""
    counts = []
    for entry, name in links_of_descriptors(server.pid).items():
        if name != "anon_inode:[eventpoll]":
            continue
        with contextlib.suppress(FileNotFoundError):
            text = pathlib.Path(f"/proc/{server.pid}/fdinfo/{entry}").read_text()
            watched = re.findall(r"^tfd:\s+\d+ events:\s+([0-9a-f]+)", text, re.M)
            counts.append([bool(int(events, 16) & select.EPOLLET) for events in watched].count(True))
    return [n for n in counts if n]


def keep(server, n):
    """So many connections that are served and stay."""
    clients = [server.connect() for _ in range(n)]
    for client in clients:
        client.send(request())
    for client in clients:
        assert client.response().body == HELLO
    return clients


def await_connections(server, n):
    """A connection is in the queue when it waits for the first time, which may be after its answer has arrived."""
    await_true(lambda: sum(spread(server)) == n, 30, f"{n} connections")


def test_kept_connections_are_spread_evenly(serve):
    server = serve({"Scheduler": "fair", "Workers": 4, "KeepAliveTimeout": "60s"})
    keep(server, 200)
    await_connections(server, 200)
    assert sorted(spread(server)) == [50, 50, 50, 50]


def test_new_ones_go_where_there_are_fewer(serve):
    """Some leave, at random; those that come level the workers out again."""
    server = serve({"Scheduler": "fair", "Workers": 4, "KeepAliveTimeout": "60s"})
    clients = keep(server, 200)
    for client in random.Random(7).sample(clients, 120):
        client.close()
    await_connections(server, 80)
    keep(server, 100)
    await_connections(server, 180)
    counts = spread(server)
    assert max(counts) - min(counts) <= 1, counts


def test_short_ones_between_long_ones(serve):
    """Short connections do not disturb the balance of the kept ones."""
    server = serve({"Scheduler": "fair", "Workers": 3, "KeepAliveTimeout": "60s", "SendTimeout": "60s"})
    slow = [server.connect(rcvbuf=4096) for _ in range(30)]
    for client in slow:
        client.send(request("/large.bin"))
        client.head()
        for _ in range(3):
            assert server.statuses(request("/hello.txt", "Connection: close")) == [200]
    await_connections(server, 30)
    counts = spread(server)
    assert max(counts) - min(counts) <= 2, counts


@pytest.mark.parametrize("data", [b"", b"GET / HT"])
def test_silent_clients_have_a_limit(serve, data):
    """The worker learns of a connection though its client says nothing, and counts its time."""
    server = serve({"Scheduler": "fair", "Workers": 2, "Timeout": "200ms", "DeferAccept": "0"})
    with server.connect() as client:
        client.send(data)
        assert client.rest() == b"" or b" 408 "
    await_true(lambda: not spread(server), 30, "nobody")


def test_a_client_that_has_left_already(serve):
    """Request and FIN are there before the worker looks."""
    server = serve({"Scheduler": "fair", "Workers": 2, "KeepAliveTimeout": "60s"})
    for _ in range(50):
        client = server.connect()
        client.send(request())
        client.shut()
        assert client.response().body == HELLO
        client.assert_closed()
    await_true(lambda: not spread(server), 30, "nobody")


# ── processors ──


def workers_cpus(server):
    """The processors of each worker, in the order of the workers."""
    found = {}
    for task, name in server.thread_names().items():
        if name.startswith("monkey: w"):
            found[int(name.removeprefix("monkey: w"))] = os.sched_getaffinity(task)
    return [found[i] for i in sorted(found)]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_affinity(serve, scheduler):
    cpus = sorted(os.sched_getaffinity(0))
    server = serve({"Scheduler": scheduler, "Workers": 3, "Affinity": "On"})
    in_turn = [{cpu} for cpu, _ in zip(itertools.cycle(cpus), range(3))]
    await_true(lambda: workers_cpus(server) == in_turn, 30, "three workers, each at its processor")
    others = [os.sched_getaffinity(task) for task in server.threads()]
    assert set(cpus) in others, "the others may run anywhere"
    for affinity, expected in (("Off", [set(cpus)] * 3), ("On", in_turn)):
        reload(server, {"Scheduler": scheduler, "Workers": 3, "Affinity": affinity})
        await_true(lambda: workers_cpus(server) == expected, 30, "the other affinity")


def reload(server, settings):
    listen = f"127.0.0.1:{server.port}"
    (server.conf / "monkey.conf").write_text(section("SERVER", {"Listen": listen, **settings}))
    before = server.log.count("the new configuration is in use")
    server.send_signal(1)
    server.wait_log("the new configuration is in use", before + 1)
    server.baseline = max(server.baseline, server.descriptors())


# ── descriptors ──


def limit_of(server):
    return resource.prlimit(server.pid, resource.RLIMIT_NOFILE)


def test_the_limit_of_descriptors(serve):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = serve({"FDLimit": 100})
    assert limit_of(server) == (100, hard)
    for limit, expected in ((0, hard), (200, 200)):
        reload(server, {"FDLimit": limit})
        assert limit_of(server) == (expected, hard)


def test_more_descriptors_than_allowed(serve, tmp_path, host_conf):
    server = serve({"FDLimit": 5000}, nofile=400)
    assert limit_of(server) == (400, 400)
    server.wait_log(r"FDLimit 5000 is more than the hard limit \(ulimit -Hn\), which is used instead: 400")
    result = run("-c", server.conf, "-t", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400)))
    assert result.returncode == 0 and "warning: FDLimit is more than the hard limit" in result.stderr
    assert "would be used instead: 400" in result.stderr


# ── over capacity ──

WAYS = {
    "connections": {"MaxConnections": 20},
    "descriptors": {"FDLimit": 80},
    "memory": {"MemoryLimit": "1M", "FDLimit": 4000},
}


def fill(server, way):
    """Opens as many connections as are served; all are busy, so that none can be closed for another."""
    clients = []
    for _ in range(400):
        client = server.connect()
        clients.append(client)
        pad = 14_000 if way == "memory" else 10
        client.send_all_you_can(f"POST / HTTP/1.1\r\nHost: h\r\nX: {'y' * pad}\r\nContent-Length: 5\r\n\r\nab")
        if "over capacity" in server.log or way == "connections" and len(clients) == 25:
            break
    server.wait_log("over capacity")
    return clients


def outcome(client, data=None):
    """What a client gets: a status, or the end."""
    try:
        client.send(data or request("/hello.txt"))
        return client.response().status
    except (ConnectionError, AssertionError):
        return "closed"


@pytest.fixture(params=itertools.product(SCHEDULERS, WAYS), ids="-".join)
def full(serve, request):
    """A server that takes no more, by its scheduler and by what it has run out of."""
    scheduler, way = request.param

    def start(plan):
        settings = {"Timeout": "60s", "BodyTimeout": "60s", "KeepAliveTimeout": "60s", "MinBodyRate": 0}
        server = serve({"Scheduler": scheduler, "OverCapacity": plan, "Workers": 1, **settings, **WAYS[way]})
        return server, way

    return start


@pytest.mark.parametrize("plan", ["Drop", "TooBusy"])
def test_no_room(full, plan):
    """New connections are refused at once; existing ones are served; later new ones are served again."""
    server, way = full(plan)
    clients = fill(server, way)
    late = [server.connect() for _ in range(10)]
    got = [outcome(client) for client in late]
    assert set(got) == {"closed" if plan == "Drop" else 503}, got
    assert server.log.count("over capacity") == 1, "the log is flooded"
    clients[0].send("cde")  # an accepted connection is served to the end
    assert clients[0].response().status in (200, 404, 405)
    for client in clients:
        client.close()
    await_true(lambda: server.descriptors() <= server.baseline, 30, "everybody is gone")
    for client in keep(server, 15):
        client.assert_open()


def test_resisting_is_logged(full):
    """The log says that connections were closed to make room, and how many, but not for each."""
    server, way = full("Resist")
    pad = 14_000 if way == "memory" else 10
    for _ in range(400):  # heads without an end: they may be closed
        server.connect().send_all_you_can(f"GET / HTTP/1.1\r\nHost: h\r\nX: {'y' * pad}")
        if "over capacity" in server.log:
            break
    server.wait_log(r"over capacity: [1-9]\d* connections were closed so far to make room .*\(OverCapacity Resist\)")
    for _ in range(30):
        with server.connect() as client:
            assert outcome(client) == 200
    assert server.log.count("over capacity") == 1, "the log is flooded"


@pytest.mark.single_protocol
def test_too_busy_is_polite(serve):
    server = serve({"OverCapacity": "TooBusy", "MaxConnections": 1})
    keep(server, 1)
    for method, body in (("GET", b""), ("HEAD", b""), ("POST", b"x" * 1000)):
        with server.connect() as client:
            answer = client.ask(method=method, body=body)
            assert (answer.status, answer["Retry-After"], answer["Connection"]) == (503, "5", "close")
            client.assert_closed()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("limit", [{"MaxConnections": 20}, {"FDLimit": 80}])
def test_resists_by_closing_idle_ones(serve, scheduler, limit):
    """Many more idle connections than the limit: the oldest are closed, none is refused."""
    server = serve({"Scheduler": scheduler, "Workers": 3, "KeepAliveTimeout": "60s", **limit})
    for _ in range(150):
        client = server.connect()
        assert client.ask().body == HELLO
    server.drop_clients()
    await_true(lambda: server.descriptors() <= server.baseline, 30, "everybody is gone")
    keep(server, 10)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_as_many_as_allowed(serve, scheduler):
    """Neither idle connections nor one without a request is closed while no other waits."""
    settings = {"Scheduler": scheduler, "Workers": 1, "KeepAliveTimeout": "60s", "Timeout": "60s", "DeferAccept": 0}
    server = serve({**settings, "MaxConnections": 3})
    clients = keep(server, 2)
    clients.append(server.connect())
    await_true(lambda: server.descriptors() >= server.baseline + len(clients), 30, "the last connection")
    for client in clients:
        assert client.ask().body == HELLO
    assert "MaxConnections" not in server.log


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("limit", [{"MaxConnections": 20}, {"FDLimit": 80}])
def test_resists_by_letting_them_wait(serve, scheduler, limit):
    """All are busy: a new connection waits in the kernel's queue, and is served when another has ended."""
    server = serve({"Scheduler": scheduler, "Workers": 1, "BodyTimeout": "60s", "MinBodyRate": 0, **limit})
    busy = []
    while "trying again every 100 ms" not in server.log:
        assert len(busy) < 100, f"there was room for all of them: {server.log}"
        busy.append(server.connect())
        busy[-1].send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab")
        if len(busy) >= 20:
            busy[-1].sock.settimeout(0.02)
            with contextlib.suppress(TimeoutError):
                busy[-1].fill()  # answered, or the server has gone
    late = [server.connect() for _ in range(5)]
    for client in late:
        client.send(request("/hello.txt", "Connection: close"))
    before = switches(server)
    late[0].assert_quiet()
    assert switches(server) - before < 100, "it looks again and again"
    for client in busy:
        client.close()
    for client in late:
        assert client.response().body == HELLO
    assert server.log.count("trying again") == 1


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_resists_once_some_are_idle(serve, scheduler):
    """First none can be closed for a new connection; then those that are idle are."""
    settings = {"BodyTimeout": "60s", "KeepAliveTimeout": "60s", "MinBodyRate": 0, "MaxConnections": 20}
    server = serve({"Scheduler": scheduler, "Workers": 1, **settings})
    busy = [server.connect() for _ in range(20)]
    for client in busy:
        client.send("POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab")
        assert client.response().status == 405  # the rest of the body is read
    late = server.connect()
    late.send(request("/hello.txt"))
    server.wait_log("trying again every 100 ms")
    late.assert_quiet()  # the worker was asked, too
    for client in busy:
        client.send("cde")
    assert late.response().body == HELLO


def switches(server):
    """How often any thread of the server has run."""
    return sum(int(text.split()[2]) for text in read_threads(server.pid, "schedstat").values())
