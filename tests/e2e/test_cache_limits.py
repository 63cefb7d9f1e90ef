# SPDX-License-Identifier: Apache-2.0
"""Limits of the file cache: what is kept within them, and what a reload changes."""

import contextlib
import os
import re
import resource
import signal

import pytest

from harness.caching import await_kept, await_settled, is_hit, needs_cache, start_cached
from harness.content import pattern, populate
from harness.messages import request
from harness.server import await_true, section
from test_cache import reload

pytestmark = [needs_cache, pytest.mark.single_protocol, pytest.mark.usefixtures("clock")]

LARGE = 20_000  # above the default of BodyMax


def write_keys(server, keys):
    (server.conf / "plugins" / "cache" / "cache.conf").write_text(section("CACHE", keys))


def await_levels(server, **levels):
    """The figures of kinds are brought up to date once a second."""
    for kind, wanted in levels.items():
        await_true(lambda: server.level("entries", kind=kind) == wanted, 30, f"{wanted} of {kind}")


def ask_often(client, names):
    """The first request for a name that does not exist waits for the disk, the next two have it kept."""
    for name in names * 3:
        client.ask(f"/{name}")


@pytest.mark.parametrize("text, most", [("0", 0), ("8K", 8192), ("1M", 1 << 20)])
def test_body_max(serve, text, most):
    files = {"most.bin": pattern(most, 1), "more.bin": pattern(most + 1, 2)}
    server = start_cached(serve, "Revalidate 1h", keys={"BodyMax": text, "Memory": "128M"}, files=files)
    client = server.connect()
    for name, data in files.items():
        await_kept(server, client, f"/{name}")
        for _ in range(2):
            assert client.ask(f"/{name}").body == data
    await_levels(server, body=1, descriptor=1)
    assert [name.endswith("/more.bin") for name in server.cached_files()] == [True]


def test_body_max_changed(serve):
    """Counts for what is loaded from then on."""
    files = {f"{n}.txt": pattern(4000, n) for n in range(3)}
    server = start_cached(serve, "Revalidate 1h", keys={"BodyMax": "8K"}, files=files)
    for number, (text, kinds) in enumerate([("0", (1, 1)), ("4K", (2, 1))]):
        with server.connect() as client:
            await_kept(server, client, f"/{number}.txt")
            assert is_hit(server, client, "/0.txt")
        write_keys(server, {"BodyMax": text})
        reload(server, number + 1)
        with server.connect() as client:
            await_kept(server, client, f"/{number + 1}.txt")
            assert is_hit(server, client, "/0.txt")
            assert client.ask(f"/{number + 1}.txt").body == files[f"{number + 1}.txt"]
        await_levels(server, body=kinds[0], descriptor=kinds[1])


def count_open(server, client, names):
    """Files that stay open, although they are asked for all the time."""
    ask_often(client, names)
    return len(server.cached_files())


def test_descriptors_changed(serve, clock):
    """0 closes all; then they are kept again."""
    names = [f"{n}.bin" for n in range(20)]
    server = start_cached(serve, "Revalidate 1h", files={name: pattern(LARGE, 1) for name in names})
    await_settled(server.root, clock)
    for number, wanted in enumerate([20, 5, 0, 20]):
        allowed = range(1, 6) if wanted == 5 else [wanted]
        if number:
            write_keys(server, {"Descriptors": wanted})
            reload(server, number)
        with server.connect() as client:
            ask_often(client, names)
            if wanted != 5:  # those that were evicted last are closed later
                await_true(lambda: count_open(server, client, names) == wanted, 30, f"{wanted} descriptors")


            def are_counted():  # those that are not asked for are closed after a while
                ask_often(client, names)
                return server.level("entries", kind="descriptor") in allowed

            await_true(are_counted, 30, "the figures")


def test_missing_changed(serve, clock):
    names = [f"none{n}" for n in range(20)]
    server = start_cached(serve, "Revalidate 1h", files={"a.txt": b"a"})
    await_settled(server.root, clock)
    for number, wanted in enumerate([20, 5, 0, 20]):
        if number:
            write_keys(server, {"Missing": wanted})
            reload(server, number)
        with server.connect() as client:
            ask_often(client, names)
            assert client.ask("/none0").status == 404
        if wanted == 5:
            await_true(lambda: 0 < server.level("entries", kind="missing") <= 5, 30, "fewer names")
        else:
            await_levels(server, missing=wanted)


def test_memory_changed(serve, clock):
    """Entries above the new budget are evicted, and what is asked for is still right."""
    files = {f"{n}.txt": pattern(8000, n) for n in range(300)}
    server = start_cached(serve, "Revalidate 1h", keys={"Memory": "8M"}, files=files)
    await_settled(server.root, clock)
    with server.connect() as client:
        ask_often(client, list(files))
    await_levels(server, body=300)
    assert server.count("evicted") == 0
    write_keys(server, {"Memory": "1M"})
    reload(server)
    with server.connect() as client:
        assert client.ask("/0.txt").body == files["0.txt"]
        await_true(lambda: server.level("bytes") <= 1 << 20, 30, "less memory")
        assert server.level("entries", kind="body") + server.count("evicted", kind="body") >= 300
        for name, data in files.items():
            assert client.ask(f"/{name}").body == data
    assert server.level("bytes") <= 1 << 20


def test_a_rejected_reload_changes_nothing(serve, clock):
    large, names = [f"{n}.bin" for n in range(10)], [f"none{n}" for n in range(10)]
    server = start_cached(serve, "Revalidate 1h", files={name: pattern(LARGE, 1) for name in large})
    await_settled(server.root, clock)
    with server.connect() as client:
        ask_often(client, large[:5] + names[:5])
    await_levels(server, descriptor=5, missing=5)
    write_keys(server, {"Descriptors": 0, "Missing": 0, "Memory": "512K", "BodyMax": "1M"})
    server.baseline += 2  # descriptors of the thread that ends a generation
    server.send_signal(signal.SIGHUP)
    server.wait_log("Memory.* is too small")
    server.wait_log("the new configuration cannot be used")
    with server.connect() as client:
        ask_often(client, large[5:] + names[5:])
        assert all(is_hit(server, client, f"/{name}") for name in large + names)
    await_levels(server, descriptor=10, missing=10)


def test_two_sites(serve, clock):
    """Each has its own rules; what both may serve is kept once."""
    root = {"a.txt": b"a", "b.txt": b"b"}
    off = section("CACHE", {"Match": "/a.txt", "Files": "Off"}) + section("CACHE", {"Files": "Revalidate 1h"})
    on = section("CACHE", {"Match": "*.txt", "Files": "Revalidate 1h"}) + section("CACHE", {"Files": "Off"})
    server = start_cached(serve, files=root)
    for name, rules in (("one", off), ("two", on)):
        host = section("HOST", {"ServerName": name, "DocumentRoot": server.root})
        (server.conf / "sites" / name).write_text(host + rules)
    reload(server)
    server.baseline += 2  # roots
    await_settled(server.root, clock)
    with server.connect() as client:
        for host in ("one", "two"):
            for path in ("/a.txt", "/b.txt", "/b.txt"):
                assert client.ask(path, host=host).body == root[path[1:]]
        assert not is_hit(server, client, "/a.txt", host="one")
        await_kept(server, client, "/a.txt", host="two")
        assert not is_hit(server, client, "/a.txt", host="one")
        assert is_hit(server, client, "/b.txt", host="one")
        assert is_hit(server, client, "/b.txt", host="two")
    await_levels(server, body=2)


# ── descriptors that run out ──

FEW, MANY = 200, 600  # limits of descriptors, of which the cache may have a quarter
REFUSALS = re.compile("Too many open files|over capacity|connections were")


@pytest.fixture(scope="module")
def full_root(tmp_path_factory):
    """Files to be read, which may be kept."""
    files = {f"{n}.bin": pattern(LARGE, 1) for n in range(MANY // 4)} | {"a.txt": b"a", "other.bin": pattern(LARGE, 7)}
    root = populate(tmp_path_factory.mktemp("full"), files)
    await_settled(root)
    return root


@pytest.fixture
def full(serve, full_root):
    """A server whose cache keeps as many files open as it may."""

    def start(policy, limit):
        settings = {"OverCapacity": policy, "FDLimit": limit}
        server = start_cached(serve, "Revalidate 1h", settings, root=full_root)
        with server.connect() as client:
            ask_often(client, [f"{n}.bin" for n in range(limit // 4)])
        assert len(server.cached_files()) > limit // 5
        return server

    return start


POLICIES = ["Drop", "TooBusy", "Resist"]


@pytest.mark.parametrize("policy", POLICIES)
def test_many_clients_at_once(full, policy):
    """As many as there may be, if the cache keeps no file open."""
    server = full(policy, FEW)
    used = len(server.open_files()) - len(server.cached_files())
    os.kill(server.pid, signal.SIGSTOP)
    clients = [server.connect() for _ in range(FEW * 7 // 8 - used - 5)]
    for client in clients:
        client.send(request("/a.txt"))
    os.kill(server.pid, signal.SIGCONT)
    for client in clients:
        assert client.response().body == b"a"
    assert not REFUSALS.search(server.log), server.log[-2000:]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_lower_limit_from_outside(full, policy):
    """Connections and files get the descriptors of the cache: no request is refused."""
    server = full(policy, MANY)
    with server.connect() as client:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (MANY // 6, MANY))
        assert client.ask("/other.bin").body == pattern(LARGE, 7)
        assert client.ask("/a.txt").body == b"a"
    for _ in range(3):
        with server.connect() as client:
            assert client.ask("/a.txt").body == b"a"
    assert len(server.cached_files()) <= MANY // 6 // 4
    assert not REFUSALS.search(server.log), server.log[-2000:]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_connection_below_a_lower_limit(full, policy):
    """No number below the limit is free but those of the cache."""
    server = full(policy, MANY)
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            assert stack.enter_context(server.connect()).ask("/a.txt").body == b"a"
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (MANY // 6, MANY))
        for _ in range(3):
            client = stack.enter_context(server.connect())
            assert client.ask("/other.bin").body == pattern(LARGE, 7)
    assert not REFUSALS.search(server.log), server.log[-2000:]
