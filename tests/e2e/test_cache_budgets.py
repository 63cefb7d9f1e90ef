# SPDX-License-Identifier: Apache-2.0
"""What a request for a kept file may cost, and what the cache may take. Judged on the release."""

import os
import statistics

import pytest

from harness import build, limits
from harness.caching import ask_many, await_kept, await_settled, needs_cache, start_cached
from harness.content import HELLO, pattern, populate
from harness.server import UNCACHED, UNLOADED, await_true, section
from test_budgets import EACH, Trace, ask_sixteen, count_calls_of_turns

pytestmark = [needs_cache, pytest.mark.budget]

THREE = {"epoll_wait": 1, "recvfrom": 1, "sendmsg": 1}
SMALL, MEDIUM = pattern(4600, 31), pattern(100_000, 32)
MODES = ["Revalidate 1h", "Immutable"]
MANY, SHARE_MAX = 10_000, 1.15
ENTRY_BYTES_MAX, WATCHES_MAX = 560, 16_367


@pytest.fixture
def count_calls(serve, tmp_path):
    """The system calls of a request for a kept file, by their number."""

    def count(mode, ask, rounds=100, warm=("/hello.txt", "/large.bin", "/nowhere"), **rest):
        server = start_cached(serve, mode, **rest)
        client = server.connect()
        for path in warm:
            await_kept(server, client, path)
        for _ in range(3):
            ask(client)
        trace = Trace(server, tmp_path / "trace")
        for _ in range(rounds):
            ask(client)
        return count_calls_of_turns(trace.end(), rounds)

    return count


REQUESTS = {
    "small": lambda client: client.assert_open(),
    "not modified": lambda client: client.ask("/hello.txt", "If-None-Match: *"),
    "large, not modified": lambda client: client.ask("/large.bin", "If-None-Match: *"),
    "head": lambda client: client.ask("/hello.txt", method="HEAD"),
    "range": lambda client: client.ask("/hello.txt", "Range: bytes=0-4"),
    "missing": lambda client: client.ask("/nowhere"),
}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("files", MODES)
def test_calls_of_a_kept_request(count_calls, files, name):
    looks = {"newfstatat": 1} if name == "large, not modified" and files != "Immutable" else {}
    assert count_calls(files, REQUESTS[name]) in (THREE, {**THREE, **looks})


@pytest.mark.parametrize("files", MODES)
def test_calls_of_a_large_file(count_calls, files):
    """One check of the descriptor for each request, and none where files are immutable."""

    def ask(client):
        assert client.ask("/100k.bin").body == MEDIUM

    root = {"hello.txt": HELLO, "100k.bin": MEDIUM}
    looks = {} if files == "Immutable" else {"newfstatat": 1}
    calls = count_calls(files, ask, files=root, warm=["/hello.txt", "/100k.bin"])
    assert calls == {**THREE, **looks, "sendfile": 1}


LASTING = {"MaxKeepAliveRequest": 1_000_000, "KeepAliveTimeout": "60s"}
FILES = {"hello.txt": HELLO, "index.html": HELLO, "100k.bin": MEDIUM, "folder/index.html": HELLO}


def cache_section(**keys):
    return {"plugins/cache/cache.conf": section("CACHE", keys)}


def count_turns(server, path, ask, rounds=50):
    for _ in range(5):
        ask()
    trace = Trace(server, path)
    for _ in range(rounds):
        ask()
    return count_calls_of_turns(trace.end(), rounds)


def test_calls_of_a_server_as_it_is_installed(serve, tmp_path):
    """Without a section [CACHE]: the fourth call asks whether the kernel has reported changes."""
    server = serve(LASTING, files={"hello.txt": HELLO})
    client = server.connect()
    await_settled(server.root)
    calls = count_turns(server, tmp_path / "trace", client.assert_open)
    assert calls == {**THREE, "ioctl": 1} and sum(calls.values()) == limits.KEPT_CALLS


# ── files that the cache does not keep: the same calls as without it ──

SEVEN = dict.fromkeys(EACH, 1)
OPENED = {**THREE, "openat2": 1, "newfstatat": 1, "close": 1}
NOT_KEPT = {  # how it is asked for, and the calls of a turn
    "small": (lambda client: client.assert_open(), SEVEN),
    "index": (lambda client: client.ask("/"), SEVEN),
    "large": (lambda client: client.ask("/100k.bin"), {**SEVEN, "sendfile": 1}),
    "not modified": (lambda client: client.ask("/hello.txt", "If-None-Match: *"), OPENED),
    "folder": (lambda client: client.ask("/folder"), OPENED),
    "pipeline": (ask_sixteen, {**SEVEN, **dict.fromkeys(("openat2", "newfstatat", "preadv2", "close"), 2)}),
}
CACHES = {"installed": {}, "revalidate": cache_section(Files="Revalidate 1s"), "off": UNCACHED}


@pytest.mark.parametrize("name", NOT_KEPT)
@pytest.mark.parametrize("config", CACHES.values(), ids=CACHES)
def test_calls_of_a_file_that_was_just_changed(serve, tmp_path, config, name):
    """The same as without the cache."""
    ask, calls = NOT_KEPT[name]
    server = serve(LASTING, config=config, files=FILES)
    client = server.connect()

    def change_and_ask():
        for path in ("hello.txt", "index.html", "100k.bin", "folder"):
            os.utime(server.root / path)
        ask(client)

    assert count_turns(server, tmp_path / "trace", change_and_ask) == calls


def test_calls_of_a_changed_file_below_a_link(serve, tmp_path):
    """One more: a link that leads to another release is seen by the next request."""
    populate(tmp_path / "release", FILES)
    (tmp_path / "current").symlink_to("release")
    server = serve(LASTING, root=tmp_path / "current")
    client = server.connect()

    def change_and_ask():
        os.utime(server.root / "hello.txt")
        client.assert_open()

    assert count_turns(server, tmp_path / "trace", change_and_ask) == {**SEVEN, "ioctl": 1}


@pytest.mark.parametrize("files", ["Notify 1s", "Revalidate 1s", "Off"])
def test_calls_of_what_there_is_no_room_for(serve, tmp_path, files):
    config = cache_section(Files=files, Descriptors=0, Missing=0)
    server = serve(LASTING, config=config, files=FILES)
    client = server.connect()
    await_settled(server.root)
    for path, calls in {"/100k.bin": {**OPENED, "sendfile": 1}, "/nowhere": {**THREE, "openat2": 1}}.items():
        assert count_turns(server, tmp_path / f"trace{path[1:]}", lambda path=path: client.ask(path)) == calls, path


def test_calls_of_many_small_files(serve, tmp_path):
    """At random, as in a comparison with 10,000 files."""
    names = {f"{n}.txt": pattern(1000 + n, n) for n in range(500)}
    server = start_cached(serve, "Revalidate 1h", files=names)
    client = server.connect()
    for name in names:
        await_true(lambda name=name: client.ask(f"/{name}").body == names[name], 30)
    await_kept(server, client, "/499.txt")
    for _ in range(2):
        ask_many(server, (f"/{name}" for name in names), 200)
    trace = Trace(server, tmp_path / "trace")
    for name in names:
        assert client.ask(f"/{name}").body == names[name]
    assert count_calls_of_turns(trace.end(), len(names)) == THREE


# ── memory ──


def private_kb(server):
    return server.memory_kb("Private_Dirty")


def idle_kb(server):
    """Before the first request of the server, and after it."""
    with server.connect() as client:
        before = private_kb(server)
        client.assert_open()
    server.settle()
    return before, private_kb(server)


def median_kb(serve, **settings):
    """Where the kernel puts a stack may cost a page more, or less."""
    rounds = [idle_kb(serve({"Workers": 1}, **settings)) for _ in range(9)]
    return [statistics.median(each) for each in zip(*rounds, strict=True)]


def test_memory_of_an_idle_cache(serve):
    for path in (build.binary(), build.PLUGINS / "cache.so"):  # what was just linked is dirty in the page cache
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    config = {"plugins/cache/cache.conf": "[CACHE]\n    Memory 64M\n"}
    plain, caching = median_kb(serve, config=UNLOADED), median_kb(serve, config=config)
    added = [more - less for less, more in zip(plain, caching, strict=True)]
    print(f"{added[0]} KB more before the first request, {added[1]} after it")
    assert all(kb <= limit for kb, limit in zip(added, limits.CACHE_KB, strict=True)), added


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_memory_of_ten_thousand_files(serve, workers):
    """Each file once, however many workers have asked for it."""
    files = {f"{n}.txt": SMALL for n in range(MANY)}
    server = start_cached(serve, "Revalidate 1h", {"Workers": workers}, keys={"Memory": "128M"}, files=files)
    await_settled(server.root)
    ask_many(server, (f"/{n}.txt" for n in range(100)), 200)
    before = private_kb(server)
    for _ in range(3 * workers):
        ask_many(server, (f"/{n}.txt" for n in range(MANY)), 200)
    await_true(lambda: server.level("entries", kind="body") >= MANY - 100, 30, "all files in the cache")
    taken = (private_kb(server) - before) * 1024
    print(f"{taken / (MANY * len(SMALL)):.3f} of the bodies")
    assert taken <= MANY * len(SMALL) * SHARE_MAX


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_memory_of_many_watched_folders(serve):
    """100,000 small files in 10,000 folders, which are watched, and more folders than can be."""
    folders, each, body = 10_000, 10, pattern(100, 33)
    files = {f"{n % 100}/{n}/{m}.txt": body for n in range(folders) for m in range(each)}
    server = start_cached(serve, "Notify 1h", {"Workers": 2}, keys={"Memory": "256M"}, files=files)
    await_settled(server.root)
    ask_many(server, (f"/{n % 100}/{n}/0.txt" for n in range(10)), 200)
    before = private_kb(server)
    names = [f"/{name}" for name in files]
    for at in range(0, len(names), 500):  # what was asked for is not remembered for ever
        ask_many(server, names[at : at + 500] * 4, 200, 500, body=body)
    await_true(lambda: server.level("entries", kind="body") >= len(files), 60, "all files in the cache")

    def all_are_watched():  # a folder without requests for a minute is not any more
        ask_many(server, (f"/{n % 100}/{n}/0.txt" for n in range(folders)), 200, 500)
        return server.level("watched_folders") >= folders + 102

    await_true(all_are_watched, 60, "all folders, and those above")
    taken = (private_kb(server) - before) * 1024
    print(f"{taken / len(files) - len(body):.0f} bytes for each entry, with its share of a watched folder")
    assert taken / len(files) - len(body) <= ENTRY_BYTES_MAX
    populate(server.root, {f"more/{n}/0.txt": body for n in range(WATCHES_MAX - folders)})
    more = [f"/more/{n}/0.txt" for n in range(WATCHES_MAX - folders)]
    await_settled(server.root / "more")
    for at in range(0, len(more), 500):
        ask_many(server, more[at : at + 500] * 4, 200, 500)
    server.wait_log("folders are watched for changes, and no more can be")
    assert server.level("watched_folders") <= WATCHES_MAX
    (server.root / "99/9999/9.txt").write_bytes(b"new")
    with server.connect() as client:
        assert client.ask("/99/9999/9.txt").body == b"new"


def test_memory_of_missing_names(serve):
    """100,000 different ones: no more than 4,096 of them are remembered."""
    server = start_cached(serve, "Revalidate 1h", {"Workers": 1}, files={"hello.txt": SMALL})
    client = server.connect()
    await_kept(server, client, "/hello.txt")
    ask_many(server, (f"/first/{n}" for n in range(20_000)), 404)
    before, resident = private_kb(server), server.memory_kb("VmRSS")
    ask_many(server, (f"/then/{n}" for n in range(100_000)), 404)
    assert private_kb(server) - before <= 64 and server.memory_kb("VmRSS") - resident <= 256
    hits = server.count("hits")
    client.ask("/hello.txt")
    assert server.count("hits") == hits + 1
