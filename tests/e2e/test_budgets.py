# SPDX-License-Identifier: Apache-2.0
"""What a request and a connection may cost. Judged on the optimised builds: MONKEY_PRESET=release;
`small` must be built too."""

import collections
import contextlib
import mmap
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import time

import pytest

from harness import build, frames, limits
from harness.caching import is_traced
from harness.certificates import Authority, TlsClient
from harness.content import HELLO, populate
from harness.messages import request
from harness.protocol import Client
from harness.server import UNCACHED, UNLOADED, Server, await_true, run, section, write_config
from harness.services import HEAD, needs_duda

pytestmark = pytest.mark.budget

PER_REQUEST = {
    "epoll_wait": 1,
    "epoll_pwait": 1,
    "recvfrom": 1,
    "recvmsg": 1,
    "read": 2,
    "openat2": 1,
    "newfstatat": 1,
    "fstat": 1,
    "statx": 1,
    "pread64": 1,
    "preadv2": 1,
    "sendmsg": 1,
    "writev": 1,
    "sendto": 1,
    "close": 1,
}
ROLES = {  # where machines and libraries differ in the name
    "epoll_pwait": "epoll_wait",
    "recvmsg": "recvfrom",
    "fstat": "newfstatat",
    "statx": "newfstatat",
    "pread64": "preadv2",
    "writev": "sendmsg",
    "sendto": "sendmsg",
}
EACH = ("epoll_wait", "recvfrom", "openat2", "newfstatat", "preadv2", "close", "sendmsg")
CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")


# ── the ways of a request ──


def connect_plain(server, _):
    return server.connect()


def connect_h2c(server, _):
    return server.connect_h2()


def connect_tls(server, ca):
    server.clients.append(TlsClient(server.addresses[0], ca.context()))
    return server.clients[-1]


def connect_h2(server, ca):
    return server.connect_h2(context=ca.context(alpn=["h2"]))


class Way:
    """How requests come: what they need of the build, how a client connects, and what it may cost while idle."""

    def __init__(self, needs, connect, idle_bytes):
        self.needs, self.connect, self.idle_bytes = needs, connect, idle_bytes
        self.secure = "tls" in needs

    def serve(self, serve, folder, settings, **rest):
        for protocol in self.needs:
            if not build.speaks(protocol):
                pytest.skip(f"the preset {build.PRESET} has no {protocol}")
        if not self.secure:
            return serve(settings, config=UNCACHED, **rest), None
        ca = Authority(folder / "ca")
        root = populate(folder / "secure", {"hello.txt": HELLO})
        host = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
        host += section("TLS", ca.make("localhost", "localhost").keys())
        return serve({"Listen": "127.0.0.1:0 tls", **settings}, config={**UNCACHED, "sites/default": host}, **rest), ca


WAYS = {
    "http/1": Way((), connect_plain, limits.CONNECTION_BYTES),
    "http/1 by tls": Way(("tls",), connect_tls, limits.TLS_KB * 1024),
    "h2c": Way(("h2",), connect_h2c, limits.H2_KB * 1024),
    "h2 by tls": Way(("h2", "tls"), connect_h2, limits.H2_TLS_KB * 1024),
}


@pytest.fixture(params=WAYS, ids=lambda name: name.replace(" ", "-"))
def way(request):
    return WAYS[request.param]


# ── system calls ──


class Trace:
    """strace on every thread of the server; of the calls, those of workers count. Others do what no client asks for:
    a look at watched files because another test has changed the mode of a folder above them, for instance."""

    def __init__(self, server, path):
        self.path, self.server = path, server
        self.process = subprocess.Popen(
            ["strace", "-f", "-qq", "-s", "16", "-o", str(path), "-p", str(server.pid)],
            stderr=subprocess.PIPE,
            text=True,
        )
        await_true(lambda: self.process.poll() is not None or is_traced(server), 30, "strace")
        assert self.process.poll() is None, self.process.stderr.read()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        self.process.stderr.close()
        workers = self.server.worker_threads()  # now: a thread has the name of the one that made it, until it runs
        assert workers
        rows = [CALL.match(row) for row in self.path.read_text().splitlines()]
        return [(row[2], row[3]) for row in rows if row and int(row[1]) in workers]


def count_calls_of_turns(calls, rounds):
    """The calls of most turns, where each of `rounds` requests is to have one: without those of the beginning and the
    end, and without what is done once in a second, which a busy machine brings into more of them."""
    turns = []
    for name in (ROLES.get(name, name) for name, _ in calls):
        if name == "epoll_wait" or not turns:
            turns.append(collections.Counter())
        turns[-1][name] += 1
    (most, often), = collections.Counter(tuple(sorted(turn.items())) for turn in turns).most_common(1)
    assert rounds * 0.5 <= often and len(turns) <= rounds * 1.5, (often, len(turns), calls[100:140])
    return dict(most)


@pytest.fixture
def count_calls(serve, tmp_path):
    """Counts the system calls that the workers make from a warm connection while `work(client)` runs."""
    if not shutil.which("strace"):
        pytest.fail("strace is not installed")

    def count(work, warm, host=None, way=WAYS["http/1"]):
        server, ca = way.serve(
            serve, tmp_path, {"KeepAliveTimeout": "60s", "MaxKeepAliveRequest": 100_000}, host=host
        )
        client = way.connect(server, ca)
        for _ in range(3):
            warm(client)
        trace = Trace(server, tmp_path / f"trace{time.monotonic_ns()}")
        work(client)
        calls = trace.end()
        return collections.Counter(name for name, _ in calls), calls

    return count


def ask_small(client):
    client.send(request())
    assert client.response().body == HELLO


def test_calls_of_a_keep_alive_request(count_calls):
    rounds = 100
    counts, calls = count_calls(lambda client: [ask_small(client) for _ in range(rounds)], ask_small)
    turn = count_calls_of_turns(calls, rounds)
    assert sum(turn.values()) <= limits.REQUEST_CALLS, turn
    assert "epoll_ctl" not in counts, counts
    assert "setsockopt" not in counts, counts
    for name, number in turn.items():
        assert number <= PER_REQUEST.get(name, 0), turn


def test_variants_cost_nothing_where_they_are_not_wanted(count_calls):
    """With precompressed style sheets only, no other variants are opened; UserDir costs nothing for other paths."""

    def ask(client):
        answer = client.ask("/hello.txt", "Accept-Encoding: br, gzip")
        assert (answer.body, answer["Vary"]) == (HELLO, None)

    rounds = 50
    host = {"Precompressed": "br gzip", "PrecompressedMatch": "*.css /assets", "UserDir": "public_html"}
    if build.PRESET == "small":
        pytest.skip("lean builds have no variants")
    _, calls = count_calls(lambda client: [ask(client) for _ in range(rounds)], ask, host)
    turn = count_calls_of_turns(calls, rounds)
    assert sum(turn.values()) <= limits.REQUEST_CALLS and turn["openat2"] == 1, turn


def test_calls_of_a_keep_alive_request_each_way(count_calls, way):
    """The same seven, once each, whatever carries the request."""
    rounds = 100
    _, calls = count_calls(
        lambda client: [client.assert_open() for _ in range(rounds)], lambda client: client.assert_open(), way=way
    )
    assert count_calls_of_turns(calls, rounds) == dict.fromkeys(EACH, 1), calls[100:140]


def ask_sixteen(client):
    client.send(request() * 16)
    for _ in range(16):
        assert client.response().body == HELLO


def test_sixteen_pipelined_requests_cost_one_read_and_one_write(count_calls):
    rounds = 50
    counts, calls = count_calls(lambda client: [ask_sixteen(client) for _ in range(rounds)], ask_sixteen)
    turn = count_calls_of_turns(calls, rounds)
    assert turn["epoll_wait"] == turn["recvfrom"] == turn["sendmsg"] == 1 and "write" not in turn, turn
    assert turn["openat2"] == 2, turn  # from the second on they share what it has read
    assert "epoll_ctl" not in counts, counts


def test_calls_of_a_304(count_calls):
    def ask(client):
        assert client.ask("/hello.txt", "If-None-Match: *").status == 304

    rounds = 50
    counts, calls = count_calls(lambda client: [ask(client) for _ in range(rounds)], ask)
    assert sum(count_calls_of_turns(calls, rounds).values()) <= 6, counts
    assert counts["pread64"] + counts["preadv2"] + counts["sendfile"] == 0, counts


def test_large_file_goes_by_sendfile(count_calls):
    def ask(client):
        assert len(client.ask("/large.bin").body) == 3_000_000

    rounds, took = 5, []

    def work(client):
        begin = time.monotonic()
        for _ in range(rounds):
            ask(client)
        took.append(time.monotonic() - begin)

    counts, _ = count_calls(work, ask)
    assert counts["sendfile"] >= rounds * 6, counts
    assert counts["preadv2"] <= (2 + int(took[0])) * 24, counts  # a byte in each 128 KB, once in a second


def test_calls_of_a_large_file_by_h2(count_calls):
    """The payloads of the frames of one write are read in one call."""

    def ask(client):
        client.grant(10_000_000, client.begin("/large.bin"))
        client.grant(10_000_000)
        assert len(client.response().body) == 3_000_000

    rounds = 5
    counts, _ = count_calls(lambda client: [ask(client) for _ in range(rounds)], ask, way=WAYS["h2c"])
    assert counts["preadv2"] <= rounds * 40, counts  # 183 frames each


def test_calls_of_a_file_by_sendfile(count_calls):
    """One call sends the head, one the body; the page cache is asked once in a second."""

    def ask(client):
        assert len(client.ask("/medium.bin").body) == 20_000

    rounds = 50
    counts, _ = count_calls(lambda client: [ask(client) for _ in range(rounds)], ask)
    assert sum(counts.values()) / rounds <= 7.6, counts
    assert counts["preadv2"] <= rounds / 2, counts
    assert counts["sendfile"] == rounds, counts


SERVICE = (
    HEAD
    + """
static void say_hello(duda_request_t *dr)
{
    response->printf(dr, "hello %s\\n", request->method(dr));
    response->print(dr, "bye\\n", 4);
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", say_hello) ? 0 : -1;
}
"""
)


def ask_service(client):
    assert client.ask("/hello/").body == b"hello GET\nbye\n"


# ── time ──


def test_no_stall_in_a_pipeline(serve):
    """Corks and delayed acknowledgements cost 40 ms where they meet (a famous server's tcp_nopush does)."""
    server = serve({"MaxKeepAliveRequest": 100_000})
    client = server.connect()
    ask_sixteen(client)
    kinds = {
        "pipeline": lambda: ask_sixteen(client),
        "medium": lambda: client.ask("/medium.bin"),
        "large": lambda: client.ask("/large.bin"),
    }
    for kind, exchange in kinds.items():
        times = []
        for _ in range(40):
            begin = time.monotonic()
            exchange()
            times.append(time.monotonic() - begin)
        assert sorted(times)[10] < 0.035, (kind, times)  # a quarter of them is without a stall on a loaded machine, too


# ── memory ──


def measure_idle(serve):
    server = serve({"Workers": 1}, config=UNLOADED)
    with server.connect() as client:
        client.assert_open()
    server.settle()
    return server.memory_kb("Private_Dirty")


def test_private_memory_of_an_idle_server(serve):
    """A binary that was just linked is dirty in the page cache, and so are its mappings: it is synced first. Where the
    kernel puts a stack may cost a page more."""
    with open(build.binary(), "rb") as file:
        os.fsync(file.fileno())
    assert min(measure_idle(serve) for _ in range(3)) <= limits.IDLE_KB


def test_memory_of_an_idle_connection(serve, tmp_path, way):
    """Each has had its answer and waits for its next request."""
    number = 500 if way.idle_bytes > 4096 else 2000
    server, ca = way.serve(serve, tmp_path, {"KeepAliveTimeout": "120s"})

    def connect(count):
        for _ in range(count):
            way.connect(server, ca).assert_open()

    connect(50)
    before = server.memory_kb("Private_Dirty")
    connect(number)
    each = (server.memory_kb("Private_Dirty") - before) * 1024 / number
    print(f"{each:.0f} bytes of an idle connection")
    assert each <= way.idle_bytes, f"{each:.0f} bytes"


SHIM = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
static unsigned long before_start, *counter = &before_start;
__attribute__((constructor)) static void open_counter(void)
{
    int fd = open(getenv("COUNTER_FILE"), O_RDWR | O_CLOEXEC);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        counter = page;
}
static void count(void) { __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED); }
void *malloc(size_t n) { count(); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { count(); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { count(); return __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { count(); return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { count(); *p = __libc_memalign(a, n); return *p ? 0 : 12; }
"""


@contextlib.contextmanager
def allocation_counter(folder):
    """(environment, count()) for a server whose allocations are counted."""
    compiler = shutil.which("cc") or pytest.fail("no C compiler")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", folder / "shim.so", folder / "shim.c"], check=True)
    (folder / "counter").write_bytes(bytes(4096))
    with open(folder / "counter", "rb") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) as page:
        yield (
            {"LD_PRELOAD": str(folder / "shim.so"), "COUNTER_FILE": str(folder / "counter")},
            lambda: struct.unpack_from("@L", page)[0],
        )


FREE_OF_ALLOCATION = {
    "small file": ask_small,
    "pipeline": ask_sixteen,
    "not modified": lambda client: client.ask("/hello.txt", "If-None-Match: *"),
    "range": lambda client: client.ask("/hello.txt", "Range: bytes=0-4"),
    "head": lambda client: client.ask("/hello.txt", method="HEAD"),
    "index": lambda client: client.ask("/"),
    "large file": lambda client: client.ask("/large.bin"),
    "missing file": lambda client: client.ask("/nowhere"),
    "folder": lambda client: client.ask("/dir"),
    "post": lambda client: client.ask("/hello.txt", method="POST", body=b"x"),
}


def assert_free_of_allocation(client, ways, count):
    """What is kept for later grows with the most that were served at once: the least of a few rounds counts."""

    def count_round(ask):
        before = count()
        for _ in range(20):
            ask(client)
        return (count() - before) / 20

    assert count() > 0
    spent = {name: min(count_round(ask) for _ in range(4)) for name, ask in ways.items()}
    assert not {name: number for name, number in spent.items() if number}


def test_no_allocation_per_request(serve, tmp_path):
    with allocation_counter(tmp_path) as (env, count):
        server = serve({"MaxKeepAliveRequest": 1_000_000}, env=env)
        assert_free_of_allocation(server.connect(), FREE_OF_ALLOCATION, count)


def ask_fifty_streams(client):
    numbers = [client.begin("/hello.txt") for _ in range(50)]
    assert {client.response(number).status for number in numbers} == {200}


@pytest.mark.skipif(not build.speaks("h2"), reason="this build has no HTTP/2")
def test_no_allocation_per_stream(serve, tmp_path):
    ways = {**FREE_OF_ALLOCATION, "small file": lambda client: client.ask(), "pipeline": ask_fifty_streams}
    with allocation_counter(tmp_path) as (env, count):
        server = serve({"MaxKeepAliveRequest": 1_000_000}, env=env)
        assert_free_of_allocation(server.connect_h2(), ways, count)


@needs_duda
def test_no_allocation_per_request_of_a_service(serve_services, tmp_path):
    with allocation_counter(tmp_path) as (env, count):
        server = serve_services({"hello": SERVICE}, {"MaxKeepAliveRequest": 1_000_000}, env=env)
        client = server.connect()
        for _ in range(3):
            ask_service(client)
        before = count()
        for _ in range(100):
            ask_service(client)
        assert count() == before


# ── a web service ──

HELLO_SERVICE = (build.TOP / "docs/examples/services/01-hello/hello.c").read_text()


def ask_hello(client):
    assert client.ask("/hello/").body == b"Hello, world\n"


def sync_binaries():
    """What was just linked is dirty in the page cache, and so are its mappings."""
    for path in (build.binary(), build.PLUGINS / "duda.so"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())


@needs_duda
@pytest.mark.parametrize("name", ["http/1", "h2c"])
def test_calls_of_a_request_to_a_service(serve_services, tmp_path, name):
    for protocol in WAYS[name].needs:
        if not build.speaks(protocol):
            pytest.skip(f"the preset {build.PRESET} has no {protocol}")
    server = serve_services({"hello": HELLO_SERVICE}, {"KeepAliveTimeout": "60s", "MaxKeepAliveRequest": 100_000})
    client = WAYS[name].connect(server, None)
    for _ in range(3):
        ask_hello(client)
    trace, rounds = Trace(server, tmp_path / "trace"), 100
    for _ in range(rounds):
        ask_hello(client)
    calls = trace.end()
    assert count_calls_of_turns(calls, rounds) == {"epoll_wait": 1, "recvfrom": 1, "sendmsg": 1}, calls[100:140]


@needs_duda
def test_memory_of_a_service(serve, serve_services):
    """The server and the first example; without it, the same server does not load the plugin either."""
    sync_binaries()

    def measure():
        plain, server = serve({"Workers": 1}), serve_services({"hello": HELLO_SERVICE}, {"Workers": 1})
        for each in (plain, server):
            with each.connect() as client:
                client.assert_open()
        with server.connect() as client:
            for _ in range(100):
                ask_hello(client)
        for each in (plain, server):
            each.settle()
        return count_dirty_kb(server) - count_dirty_kb(plain)

    added = min(measure() for _ in range(3))  # the kernel may place a page more
    assert added <= 76, f"{added} KB"  # 8 of them are the relocated table of features


def count_dirty_kb(server):
    """Private memory without the main thread's stack, whose last page depends on where the kernel puts its top."""
    kb, counts = 0, True
    for line in pathlib.Path(f"/proc/{server.pid}/smaps").read_text().splitlines():
        if re.match("[0-9a-f]+-", line):
            counts = not line.endswith("[stack]")
        elif line.startswith("Private_Dirty:") and counts:
            kb += int(line.split()[1])
    return kb


def count_own_kb(server):
    """PSS without the C library and the loader, which all programs share: their part depends on how many run."""
    kb, counts = 0, True
    for line in pathlib.Path(f"/proc/{server.pid}/smaps").read_text().splitlines():
        if re.match("[0-9a-f]+-", line):
            counts = not re.search(r"/(libc|ld-linux)[^/]*$", line)
        elif line.startswith("Pss:") and counts:
            kb += int(line.split()[1])
    return kb


@needs_duda
def test_memory_of_a_server_with_a_service(serve_services):
    """As it is installed: 100 KB are code of the file cache. Another server that runs beside it shares its pages."""
    sync_binaries()
    server = serve_services({"hello": HELLO_SERVICE}, {"Workers": 1})
    with server.connect() as client:
        for _ in range(100):
            ask_hello(client)
    server.settle()
    assert count_own_kb(server) <= 1280


# ── sizes ──


@pytest.mark.parametrize("preset, limit_kb", limits.BINARY_KB.items())
def test_size_of_the_binary(tmp_path, preset, limit_kb):
    binary = build.binary(preset)
    assert binary.exists(), f"./dev build {preset}"
    shutil.copy(binary, tmp_path / "stripped")
    subprocess.run(["strip", tmp_path / "stripped"], check=True)
    assert os.path.getsize(tmp_path / "stripped") <= limit_kb * 1024


# ── what the smaller build has not ──


def test_http2_section_without_http2(tmp_path):
    """It says that it has no effect, with its line; nothing is said of a default."""
    conf = write_config(tmp_path / "conf", tmp_path)
    for text, said in ("", False), ("[HTTP2]\n    MaxPings 10\n", True), ("[HTTP2]\n    Enabled Off\n", False):
        (conf / "extra.conf").write_text(text)
        main = conf / "monkey.conf"
        main.write_text(main.read_text().partition("@INCLUDE extra.conf")[0] + "@INCLUDE extra.conf\n")
        checked = run("-c", conf, "-t", program=build.binary("small"))
        assert checked.returncode == 0, checked.stderr
        found = re.search(r"extra\.conf:1:1: warning: \[HTTP2\] has no effect", checked.stderr)
        assert bool(found) == said, checked.stderr


@pytest.mark.parametrize("opening, status", [
    (frames.PREFACE + frames.settings(), 505),
    (request("/hello.txt", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"), 200),
])
def test_clients_of_http2_without_http2(tmp_path, site_root, opening, status):
    server = Server("-c", write_config(tmp_path / "conf", site_root), program=build.binary("small"))
    with Client(server.addresses[0]) as client:
        client.send(opening)
        assert client.response("GET").status == status
    server.stop()
