# SPDX-License-Identifier: Apache-2.0
"""The cache of files: what is kept, for how long, and that clients see no other difference than time."""

import gzip
import itertools
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from harness import build
from harness.caching import (
    ask_many,
    await_confirmed,
    await_kept,
    await_settled,
    delay_calls,
    is_held_up,
    is_hit,
    make_aged_roots,
    needs_cache,
    read_figure,
    start_cached,
)
from harness.certificates import Authority
from harness.content import OLD, pattern, populate
from harness.load import Load
from harness.messages import request
from harness.preload import preload
from harness.server import UNCACHED, await_true, links_of_descriptors, run, section, send_signal, write_config
from harness.ways import WAYS
from test_config import problems

pytestmark = [needs_cache, pytest.mark.single_protocol, pytest.mark.usefixtures("clock")]

SMALL, LARGE = pattern(4000, 21), pattern(100_000, 22)
FILES = {
    "small.txt": SMALL,
    "large.bin": LARGE,
    "empty.txt": b"",
    "index.html": b"<p>index",
    "dir/index.html": b"<p>in dir",
    "app.js": b"script\n" * 100,
    "app.js.gz": gzip.compress(b"script\n" * 100, mtime=0),
    "page.html": b"<p>page",
    "border.bin": pattern(8192, 23),
    "above.bin": pattern(8193, 24),
}
needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
MODES = ["EachCycle", "Notify 1s", "Revalidate 1s", "Immutable"]
DONE = "the new configuration is in use"


def replace(path, data, mtime=None):
    """In one step."""
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(data)
    if mtime is not None:
        os.utime(new, (mtime, mtime))
    os.rename(new, path)


def reload(server, number=1):
    server.baseline += 2 * (number == 1)  # descriptors of the thread that ends a generation
    server.send_signal(signal.SIGHUP)
    server.wait_log(DONE, number)
    server.wait_log("the configuration before the last reload is not in use any more", number)


@pytest.fixture(scope="module")
def aged_roots(tmp_path_factory):
    return make_aged_roots(tmp_path_factory.mktemp("aged"), FILES)


@pytest.fixture
def cached(serve, aged_roots):
    """Starts a server with FILES, which may be kept at once, unless the test has files or a root itself."""

    def start(*args, **rest):
        if "root" not in rest and "files" not in rest:
            rest["root"] = next(aged_roots)
        return start_cached(serve, *args, **rest)

    return start


# ── hits ──


@pytest.mark.parametrize("files", MODES)
def test_hits_are_counted(cached, files):
    server = cached(files)
    client = server.connect()
    for path in ("/small.txt", "/large.bin", "/empty.txt", "/", "/nowhere"):
        await_kept(server, client, path)
        hits, misses = server.count("hits"), server.count("misses")
        for _ in range(10):
            client.ask(path)
        assert server.count("hits") - hits >= 10, path
        assert server.count("misses") == misses, path


def test_longest_names(cached, clock):
    """Below the root: longer ones are opened for each request."""
    folders = "/".join("abcd"[n] * 250 for n in range(4))
    longest, longer = (f"{folders}/{'e' * n}" for n in (1024 - len(folders) - 1, 1024 - len(folders)))
    server = cached("Revalidate 1s", files={longest: b"longest", longer: b"longer"})
    await_settled(server.root, clock)
    with server.connect() as client:
        await_kept(server, client, f"/{longest}")
        misses = server.count("misses")
        for _ in range(10):
            assert client.ask(f"/{longer}").body == b"longer"
        assert server.count("misses") == misses + 10


def test_off(cached):
    server = cached("Off")
    client = server.connect()
    for _ in range(5):
        assert client.ask("/small.txt").body == SMALL
        replace(server.root / "small.txt", SMALL[::-1])
        assert client.ask("/small.txt").body == SMALL[::-1]
        replace(server.root / "small.txt", SMALL)
    assert server.count("hits") == 0


def test_a_file_that_was_just_changed_is_sent_as_without_the_cache(serve, tmp_path):
    """The same head, but for the date, and the same body."""
    root = populate(tmp_path / "root", FILES)
    clients = [serve(root=root, config=config).connect() for config in ({}, UNCACHED)]
    fields = [(), ("If-None-Match: *",), ("Range: bytes=1-5",), ("Accept-Encoding: gzip",)]
    for path, more in itertools.product(("/small.txt", "/large.bin", "/empty.txt", "/", "/dir", "/app.js"), fields):
        os.utime(root / path[1:])
        answers = [client.ask(path, *more) for client in clients for _ in range(3)]
        seen = {(a.status, a.body, *(f for f in a.fields if f[0].lower() not in ("date", "location"))) for a in answers}
        assert len(seen) == 1, seen


@pytest.mark.parametrize("files", MODES)
def test_requests_of_one_turn_share_a_file_that_was_just_changed(cached, files):
    """The second one reads it for all others."""
    server = cached(files, {"Workers": 1}, files=FILES)
    clients = [server.connect() for _ in range(30)]
    for n, path in enumerate(("small.txt", "dir/index.html")):
        replace(server.root / path, b"%d" % n)
        for client in clients:
            assert client.ask("/").status == 200
        misses = server.count("misses")
        send_signal(server.process, signal.SIGSTOP)
        for client in clients:
            client.send(request(f"/{path}"))
        send_signal(server.process, signal.SIGCONT)
        assert [client.response().body for client in clients] == [b"%d" % n] * len(clients)
        assert server.count("misses") == misses + 2


def test_a_file_that_was_just_changed_is_not_kept(cached):
    """Its next change may leave no trace in its time stamp."""
    server = cached("Immutable")
    client = server.connect()
    name = "small.txt"
    for n in range(50):
        began = time.monotonic()
        replace(server.root / name, b"%d" % n)
        assert client.ask(f"/{name}").body == b"%d" % n
        if time.monotonic() - began > 2:  # a loaded machine has made it old enough
            name = f"{n}.txt"


# ── the same answers as without a cache ──

REQUESTS = [
    ("/small.txt", (), {}),
    ("/large.bin", (), {}),
    ("/empty.txt", (), {}),
    ("/border.bin", (), {}),
    ("/above.bin", (), {}),
    ("/", (), {}),
    ("/dir", (), {}),
    ("/dir/", (), {}),
    ("/nowhere", (), {}),
    ("/small.txt/x", (), {}),
    ("/page", (), {}),
    ("/app.js", ("Accept-Encoding: gzip",), {}),
    ("/app.js", ("Accept-Encoding: br",), {}),
    ("/app.js.gz", (), {}),
    ("/small.txt", (), {"method": "HEAD"}),
    ("/large.bin", (), {"method": "HEAD"}),
    ("/small.txt", ("Range: bytes=10-19",), {}),
    ("/large.bin", ("Range: bytes=50000-",), {}),
    ("/small.txt", ("Range: bytes=99999-",), {}),
    ("/empty.txt", ("Range: bytes=0-",), {}),
    ("/small.txt", ("If-None-Match: *",), {}),
    ("/large.bin", ("If-None-Match: *",), {}),
    ("/small.txt", ('If-Match: "other"',), {}),
    ("/small.txt", ("If-Modified-Since: Sun, 13 Sep 2020 12:26:40 GMT",), {}),
    ("/small.txt", ("If-Modified-Since: Sun, 13 Sep 2020 12:26:39 GMT",), {}),
    ("/small.txt", ("If-Unmodified-Since: Sun, 13 Sep 2020 12:26:39 GMT",), {}),
    ("/app.js", ("Accept-Encoding: gzip", "Range: bytes=0-9"), {}),
    ("/small.txt", (), {"method": "POST", "body": b"x"}),
    ("/small.txt", (), {"method": "OPTIONS"}),
]
OTHERS = {  # sections that change the response of a file
    "none": "",
    "headers": section("HEADERS", {"Set": ["X-New yes", "Content-Type text/x-own"], "Remove": "Last-Modified"}),
    "compress": section("COMPRESS", {"MinSize": "100"}),
    "cors": section("CORS", {"Origins": "https://a.example"}),
}


def shown(answer):
    return answer.status, sorted(row for row in answer.fields if row[0].lower() != "date"), answer.body


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("other", OTHERS)
def test_the_same_answers(serve, tmp_path, name, other, clock):
    """Field by field, those of a server without the cache."""
    way = WAYS[name]
    for protocol in ("h2",) * way.h2 + ("tls",) * way.tls:
        if not build.speaks(protocol):
            pytest.skip(f"the preset {build.PRESET} has no {protocol}")
    root, text = populate(tmp_path / "root", FILES), OTHERS[other]
    listen = {"Listen": ["127.0.0.1:0 tls"] if way.tls else ["127.0.0.1:0"]}
    host = section("HOST", {"ServerName": "localhost", "DocumentRoot": root, "Precompressed": "gzip",
                            "TryFiles": "$path $path.html $path/"})  # fmt: skip
    if way.tls:
        way.ca = Authority(tmp_path / "ca")
        text += section("TLS", way.ca.make("localhost", "localhost").keys())
    without = serve(listen, root=root, config={"sites/default": host + text})
    caching = text + section("CACHE", {"Files": "Revalidate 1s"})
    server = serve(listen, root=root, config={"sites/default": host + caching})
    with way.connect(without) as one, way.connect(server) as two:
        await_settled(root, clock)
        for path, fields, rest in REQUESTS * 4:
            extra = ("Origin: https://a.example",) if other == "cors" else ()
            wanted, got = (shown(client.ask(path, *fields, *extra, **rest)) for client in (one, two))
            assert got == wanted, (path, fields, rest)


# ── rules ──


def test_the_first_rule_that_matches(cached, clock):
    rules = [
        {"Match": "/off", "Files": "Off"},
        {"Match": "*.js", "Files": "Immutable"},
        {"Match": "/immutable/never", "Files": "Off"},
        {"Match": "/immutable", "Files": "Immutable"},
    ]
    names = {"off/a.js": False, "b.js": True, "immutable/c.txt": True, "immutable/never/d.txt": False, "e.txt": False}
    server = cached("EachCycle", files=dict.fromkeys(names, b"old"), rules=rules)
    client = server.connect()
    for name in names:
        if name not in ("off/a.js", "immutable/never/d.txt"):
            await_kept(server, client, f"/{name}")
    await_confirmed(client, "/b.js", "/immutable/c.txt", clock=clock)
    for name in names:
        replace(server.root / name, b"new")
    for name, is_kept in names.items():
        assert client.ask(f"/{name}").body == (b"old" if is_kept else b"new"), name
    reload(server)
    assert {client.ask(f"/{name}").body for name in names} == {b"new"}


def test_the_default_of_all_hosts(serve, clock):
    """Is written with the keys of the server; the section of a host replaces it."""
    files = {"plugins/cache/cache.conf": section("CACHE", {"Memory": "8M", "Files": "Immutable"})}
    rule = section("CACHE", {"Files": "EachCycle"})
    server, other = (serve(files=FILES, config=files, text=text) for text in ("", rule))
    for one in (server, other):
        await_settled(one.root, clock)
        with one.connect() as client:
            for _ in range(3):
                assert client.ask("/small.txt").body == SMALL
            await_confirmed(client, "/small.txt", clock=clock)
            replace(one.root / "small.txt", b"new")
            assert client.ask("/small.txt").body == (SMALL if one is server else b"new")


def test_immutable_until_a_reload(cached, clock):
    server = cached("Immutable")
    client = server.connect()
    for path in ("/small.txt", "/large.bin", "/nowhere.txt"):
        await_kept(server, client, path)
    await_confirmed(client, "/small.txt", "/large.bin", "/nowhere.txt", clock=clock)
    replace(server.root / "small.txt", b"new small")
    replace(server.root / "large.bin", LARGE[::-1])
    (server.root / "nowhere.txt").write_bytes(b"somewhere")
    clock.advance(1.5)
    assert client.ask("/small.txt").body == SMALL
    assert client.ask("/large.bin").body in (LARGE, LARGE[::-1])  # no descriptor is kept of a file without a name
    assert client.ask("/nowhere.txt").status == 404
    reload(server)
    assert client.ask("/small.txt").body == b"new small"
    assert client.ask("/large.bin").body == LARGE[::-1]
    assert client.ask("/nowhere.txt").body == b"somewhere"


@pytest.mark.parametrize("reloads", [False, True], ids=["idle", "after a reload"])
def test_descriptors_of_files_without_a_name_are_closed(cached, reloads):
    """By the sweep, without another request."""
    server = cached("Revalidate 1h")
    with server.connect() as client:
        await_kept(server, client, "/large.bin")
    replace(server.root / "large.bin", LARGE[::-1])
    if reloads:
        reload(server)

    def is_open():
        return any(name.startswith(f"{server.root}/large.bin") for name in links_of_descriptors(server.pid).values())

    await_true(lambda: not is_open(), 20, "a descriptor that is closed")


@pytest.mark.slow
def test_descriptors_that_are_not_used_are_closed(cached):
    server = cached("Revalidate 1h")
    with server.connect() as client:
        await_kept(server, client, "/large.bin")
        await_true(lambda: server.level("entries", kind="descriptor") == 1, 20, "the figures")
    await_true(lambda: server.level("entries", kind="descriptor") == 0, 60, "a descriptor that is closed")


def test_a_root_that_has_the_number_of_another_one(serve, tmp_path, clock):
    """File systems use the inodes of deleted folders again: a new release may get that of an old one."""
    for name in ("one", "two"):
        populate(tmp_path / name, {"f.txt": name.encode()})
    current = tmp_path / "current"
    current.symlink_to("one")
    server = start_cached(serve, "Immutable", root=current)
    await_settled(tmp_path, clock)
    client = server.connect()
    await_kept(server, client, "/f.txt")
    assert client.ask("/f.txt").body == b"one"
    assert client.ask("/new.txt").status == client.ask("/new.txt").status == 404

    def point_to(name):
        (tmp_path / "next").symlink_to(name)
        (tmp_path / "next").rename(current)
        await_true(lambda: client.ask("/f.txt").body == name.encode(), 20, f"the root {name}")

    point_to("two")
    inode = (tmp_path / "one").stat().st_ino
    shutil.rmtree(tmp_path / "one")
    made = [tmp_path / f"made{n}" for n in range(3000)]
    for path in made:
        path.mkdir()
    same = [path for path in made if path.stat().st_ino == inode]
    if not same:
        pytest.skip("the file system has not used the inode again")
    populate(same[0], {"f.txt": same[0].name.encode(), "new.txt": b"new"})
    point_to(same[0].name)
    assert client.ask("/new.txt").body == b"new"


def test_requests_that_wait_for_one_name(cached):
    """A link that only a disk thread follows is never kept: each request that has waited has its own lookup."""
    server = cached("Revalidate 1s", {"SymLink": "Inside"})
    (server.root / "absolute.txt").symlink_to(server.root / "small.txt")
    clients = [server.connect() for _ in range(20)]
    for _ in range(3):
        for client in clients:
            client.send(request("/absolute.txt"))
        for client in clients:
            assert client.response().body == SMALL
    assert 0 < read_figure(server, "monkey_static_disk_lookups_total") <= 60


def has_response(client):
    return bool(select.select([client.sock], [], [], 0)[0])


# A disk that is slow: while the file HOLD exists, no file is in memory, and what reads one from the disk waits.
SLOW_DISK = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_held(void)
{
    return access(getenv("HOLD"), F_OK) == 0;
}

ssize_t preadv2(int fd, const struct iovec *to, int pieces, off_t at, int flags)
{
    if (!(flags & RWF_NOWAIT) || !is_held())
        return preadv(fd, to, pieces, at);
    errno = EAGAIN;
    return -1;
}

ssize_t pread(int fd, void *to, size_t size, off_t at)
{
    struct iovec piece = {.iov_base = to, .iov_len = size};
    while (is_held())
        usleep(1000);
    return preadv(fd, &piece, 1, at);
}

ssize_t preadv64v2(int, const struct iovec *, int, off_t, int) __attribute__((alias("preadv2")));
ssize_t pread64(int, void *, size_t, off_t) __attribute__((alias("pread")));
"""


@pytest.mark.single_protocol
def test_a_body_on_a_disk_is_loaded_once(cached, tmp_path, clock):
    """However many requests wait for it: one lookup by a disk thread, one entry, from which they are answered."""
    hold = tmp_path / "hold"
    env = {**preload(tmp_path, SLOW_DISK), "HOLD": str(hold)}
    server = cached("Revalidate 1s", {"KeepAliveTimeout": "60s"}, env=env)
    await_settled(server.root, clock)
    clients = [server.connect() for _ in range(20)]
    assert clients[0].ask("/small.txt").body == SMALL  # a first request keeps nothing, and reads as without the cache
    hold.touch()
    try:
        for client in clients:
            client.send(request("/small.txt"))
        await_true(lambda: server.count("waits") == 20, 30, "20 requests that wait")
    finally:
        hold.unlink()
    for client in clients:
        assert client.response().body == SMALL
    assert read_figure(server, "monkey_static_disk_lookups_total") == 1
    assert server.count("waits") == 20
    assert server.count("hits") >= 18


CHANGES = {  # what is done to a file, and its response then
    "replaced": (lambda path: replace(path, b"new"), (200, b"new")),
    "same size and time": (lambda path: replace(path, SMALL[::-1], OLD), (200, SMALL[::-1])),
    "removed": (lambda path: path.unlink(), (404, None)),
    "in place": (lambda path: path.write_bytes(b"new"), (200, b"new")),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), (301, None)),
    "a link out": (lambda path: (path.unlink(), path.symlink_to("/etc/hostname")), (404, None)),
}


@pytest.mark.parametrize("files", ["EachCycle", "Revalidate 1s", "Notify 1h"])
def test_changes_are_seen(cached, files, clock):
    """By the next request; or, if nothing reports changes, after an interval without requests."""
    server = cached(files, files={f"{change}/small.txt": SMALL for change in CHANGES})
    client = server.connect()
    await_settled(server.root, clock)
    paths = {change: "/" + change.replace(" ", "%20") + "/small.txt" for change in CHANGES}
    for path in paths.values():
        await_kept(server, client, path)
    for change, (apply, _) in CHANGES.items():
        apply(server.root / change / "small.txt")
    if files == "Revalidate 1s":
        clock.advance(1.05)
    for change, (_, (status, body)) in CHANGES.items():
        answer = client.ask(paths[change])
        assert answer.status == status and (body is None or answer.body == body), (change, answer, answer.body[:80])


@pytest.mark.parametrize("files", ["EachCycle", "Revalidate 1s", "Notify 1h"])
def test_a_large_file_that_is_edited_is_seen_at_once(cached, files):
    """Its descriptor is checked for each request, or its folder is watched."""
    server = cached(files)
    client = server.connect()
    await_kept(server, client, "/large.bin")
    for n in range(1, 6):
        data = pattern(100_000 + n, n)
        (server.root / "large.bin").write_bytes(data)
        assert client.ask("/large.bin").body == data


@pytest.mark.parametrize("files", ["EachCycle", "Notify 1h"])
def test_a_name_that_was_missing(cached, files):
    server = cached(files)
    client = server.connect()
    await_kept(server, client, "/new.txt")
    for _ in range(5):
        (server.root / "new.txt").write_bytes(b"made")
        assert client.ask("/new.txt").body == b"made"
        (server.root / "new.txt").unlink()
        assert client.ask("/new.txt").status == 404


# ── policies ──


LINKS = {  # policy to the statuses of links within the root and out of it
    "Off": (404, 404),
    "Inside": (200, 404),
    "On": (200, 200),
}


@pytest.mark.parametrize("files", ["EachCycle", "Revalidate 1s"])
def test_links(serve, tmp_path, files, clock):
    """A link that is made, pointed out of the root, and made of a folder above the file; a host for each policy."""
    populate(tmp_path / "outside", {"secret.txt": b"secret", "dir/x.txt": b"secret"})
    hosts, roots, paths = {}, {}, ("/a.txt", "/dir/x.txt")
    for policy in LINKS:
        roots[policy] = populate(tmp_path / policy, {"a.txt": b"a", "dir/x.txt": b"x", "real/x.txt": b"x"})
        keys = {"ServerName": policy, "DocumentRoot": roots[policy], "SymLink": policy}
        hosts[f"sites/{policy}"] = section("HOST", keys) + section("CACHE", {"Files": files})
    server = start_cached(serve, files, config=hosts)
    client = server.connect()
    await_settled(tmp_path, clock)
    for policy, path in itertools.product(LINKS, paths):
        await_kept(server, client, path, host=policy)
    for root in roots.values():
        (root / "a.txt").rename(root / "b.txt")
        (root / "a.txt").symlink_to("b.txt")
        (root / "dir").rename(root / "old")
        (root / "dir").symlink_to("real")
    await_links_checked(files, clock)
    for policy, (within, _) in LINKS.items():
        assert [client.ask(path, host=policy).status for path in paths] == [within] * 2, policy
    await_settled(tmp_path, clock)
    for policy, path in itertools.product(("Inside", "On"), paths):  # what a policy refuses is not kept
        await_kept(server, client, path, host=policy)
    for root, (name, target) in itertools.product(roots.values(), (("a.txt", "secret.txt"), ("dir", "dir"))):
        (root / "new").symlink_to(tmp_path / "outside" / target)
        os.rename(root / "new", root / name)
    await_links_checked(files, clock)
    for policy, (_, outside) in LINKS.items():
        answers = [client.ask(path, host=policy) for path in paths]
        assert [answer.status for answer in answers] == [outside] * 2, policy
        assert (policy == "On") == all(answer.body == b"secret" for answer in answers)


def await_links_checked(files, clock):
    """One interval, and another one in which a disk thread may be looking."""
    if files != "EachCycle":
        clock.advance(2.05)


def test_one_root_and_two_policies(serve, tmp_path, clock):
    """Hosts with the same root do not share what they may not both serve."""
    root = populate(tmp_path / "root", {"a.txt": b"a", ".dot": b"dot", "d/index.html": b"i", "d/other.html": b"o"})
    (root / "link.txt").symlink_to("a.txt")
    one = {"SymLink": "On", "Resume": "On", "DotFiles": "On", "Indexfile": "other.html"}
    two = {"SymLink": "Off", "Resume": "Off", "DotFiles": "Off", "Indexfile": "index.html"}
    rule = section("CACHE", {"Files": "Immutable"})
    hosts = {f"sites/{name}": section("HOST", {"ServerName": name, "DocumentRoot": root, **keys}) + rule
             for name, keys in (("one", one), ("two", two))}  # fmt: skip
    server = start_cached(serve, "Immutable", root=root, config=hosts)
    client = server.connect()

    def ask(path, host):
        client.send(request(path, "Range: bytes=0-0", host=host))
        answer = client.response()
        return answer.status, answer.body, answer["Accept-Ranges"]

    await_settled(root, clock)
    for _ in range(4):
        assert ask("/link.txt", "one") == (206, b"a", "bytes")
        assert ask("/link.txt", "two")[0] == 404
        assert ask("/a.txt", "one") == (206, b"a", "bytes")
        assert ask("/a.txt", "two") == (200, b"a", None)
        assert ask("/.dot", "one")[0] == 206
        assert ask("/.dot", "two")[0] == 404
        assert ask("/d/", "one")[1] == b"o"
        assert ask("/d/", "two")[1] == b"i"
    assert server.count("hits") > 10


MOUNTS = pytest.mark.skipif(not build.can_mount(), reason="MOUNTS ARE NOT TESTED: it needs root and mounts")
TWO_MOUNTS = """
mount --bind "$0/real" "$0/one/root" && mount --bind "$0/real" "$0/two/root" &&
    mount -t tmpfs none "$0/one/root/sub" && printf above >"$0/one/root/sub/s.txt" && exec "$@"
"""

TWO_LAYERS = """
mount --bind "$0/real" "$0/root" && mount -t tmpfs none "$0/root/sub" && printf above >"$0/root/sub/s.txt"
"""


@MOUNTS
def test_two_mounts_of_one_folder(serve, tmp_path):
    """The same device and inode: what is mounted below one of them, and what is above it, belongs to that one."""
    populate(tmp_path, {"real/sub/s.txt": b"below", "one/root/x": b"", "two/root/x": b"",
                        "one/which.txt": b"one", "two/which.txt": b"two"})  # fmt: skip
    (tmp_path / "real" / "up.txt").symlink_to("../which.txt")
    rule = section("CACHE", {"Files": "Revalidate 1h"})
    keys = {name: {"ServerName": name, "DocumentRoot": tmp_path / name / "root", "SymLink": "On"}
            for name in ("one", "two")}  # fmt: skip
    hosts = {f"sites/{name}": section("HOST", keys[name]) + rule for name in keys}
    wrapper = ["unshare", "-m", "sh", "-c", TWO_MOUNTS, tmp_path]
    server = start_cached(serve, root=tmp_path / "real", config=hosts, wrapper=wrapper)
    with server.connect() as client:
        for host, path in itertools.product(keys, ("/sub/s.txt", "/up.txt")):
            await_kept(server, client, path, host=host)
        for _ in range(3):
            assert client.ask("/sub/s.txt", host="one").body == b"above"
            assert client.ask("/sub/s.txt", host="two").body == b"below"
            assert client.ask("/up.txt", host="one").body == b"one"
            assert client.ask("/up.txt", host="two").body == b"two"


@MOUNTS
def test_a_root_that_is_mounted_again(serve, tmp_path):
    """The same folder, but through another mount, which is noticed like another folder."""
    populate(tmp_path, {"real/sub/s.txt": b"below", "root/x": b""})
    wrapper = ["unshare", "-m", "sh", "-c", 'mount --bind "$0/real" "$0/root" && exec "$@"', tmp_path]
    server = start_cached(serve, "Immutable", root=tmp_path / "root", wrapper=wrapper)
    inside = ["nsenter", "-m", "-t", str(server.pid), "sh", "-c", TWO_LAYERS, tmp_path]
    with server.connect() as client:
        await_kept(server, client, "/sub/s.txt")
        assert client.ask("/sub/s.txt").body == b"below"
        subprocess.run(inside, check=True)
        await_true(lambda: client.ask("/sub/s.txt").body == b"above", 30, "what is mounted below the root")


def test_aliases_and_variants(cached, tmp_path):
    populate(tmp_path / "manual", {"m.html": b"<p>m", "m.html.gz": b"gzip of m"})
    server = cached("EachCycle", host={"Precompressed": "gzip"})
    with open(server.conf / "sites" / "default", "a") as file:
        file.write(section("ALIAS", {"Match": "/manual", "To": tmp_path / "manual"}))
    reload(server)
    server.baseline += 1  # the folder of the alias
    client = server.connect()
    accept = "Accept-Encoding: gzip"
    for path, folder, name in (("/manual/m.html", tmp_path / "manual", "m.html"), ("/app.js", server.root, "app.js")):
        await_kept(server, client, path, accept)
        assert client.ask(path, accept)["Content-Encoding"] == "gzip"
        os.utime(folder / f"{name}.gz", (OLD - 1, OLD - 1))
        answer = client.ask(path, accept)
        assert (answer["Content-Encoding"], answer.body) == (None, (folder / name).read_bytes())
        replace(folder / f"{name}.gz", b"another variant")
        answer = client.ask(path, accept)
        assert (answer["Content-Encoding"], answer.body) == ("gzip", b"another variant")
        (folder / f"{name}.gz").unlink()
        assert client.ask(path, accept)["Content-Encoding"] is None
        assert client.ask(path, accept)["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("size", [len(SMALL), len(LARGE)])
@pytest.mark.parametrize("files", MODES)
def test_a_slow_client_gets_what_was_promised(cached, files, size):
    """The entry is replaced, and its file removed, while a stream without a window waits for it."""
    if not build.speaks("h2"):
        pytest.skip(f"the preset {build.PRESET} has no HTTP/2")
    server = cached(files)
    name = "small.txt" if size == len(SMALL) else "large.bin"
    plain = server.connect()
    await_kept(server, plain, f"/{name}")
    client = server.connect_h2(window=1000, credit=False)
    number = client.begin(f"/{name}")
    assert client.exactly(1000, number) == FILES[name][:1000]
    replace(server.root / name, b"new")
    if files == "EachCycle":
        assert plain.ask(f"/{name}").body == b"new"
    (server.root / name).unlink()
    client.grant(200_000)
    client.grant(200_000, number)
    assert client.response(number).body == FILES[name]


def test_a_kept_file_that_shrinks_while_it_is_sent(cached):
    """A visible end, and no signal: nothing is mapped."""
    size = 24 << 20
    server = cached("Immutable", {"LingerTimeout": "300ms"}, files={"f.bin": pattern(1 << 20, 9) * 24, "a.txt": b"a"})
    with server.connect() as other:
        await_kept(server, other, "/f.bin", method="HEAD")
        client = server.connect(rcvbuf=65_536)
        client.send(request("/f.bin"))
        assert client.head().length == size
        os.truncate(server.root / "f.bin", 1 << 20)
        assert len(client.rest()) < size
        assert other.ask("/a.txt").body == b"a"


# ── races, which are held open ──


@needs_strace
def test_a_file_that_is_written_while_it_is_loaded(cached, clock):
    """Between the check of its version and the read. What is kept has the tag of its bytes."""
    old, new = b"a" * 4000, b"b" * 4000
    server = cached("Immutable", files={"f.txt": old})
    await_settled(server.root, clock)
    client, path = server.connect(), server.root / "f.txt"
    assert client.ask("/f.txt").body == old
    with delay_calls(server, "preadv2", 60):  # as long as strace runs
        client.send(request("/f.txt"))
        await_true(lambda: is_held_up(server), 30, "the read")
        with open(path, "r+b") as file:
            file.write(new)
    answers = [client.response()]
    answers += [client.ask("/f.txt") for _ in range(3)]
    tags = {(answer.body, answer["ETag"].removeprefix("W/")) for answer in answers}
    assert len(tags) == len({body for body, _ in tags}) == len({tag for _, tag in tags}), answers
    assert answers[-1].body == new


@needs_strace
def test_a_root_that_is_swapped_while_a_name_is_opened(serve, tmp_path, clock):
    """The folder that was opened is not the one for which it would be kept."""
    for letter in "ab":
        populate(tmp_path / letter, {"f.txt": letter.encode(), "g.txt": letter.encode()})

    def point(letter):
        (tmp_path / "new").symlink_to(letter)
        os.rename(tmp_path / "new", tmp_path / "current")

    point("a")
    settings = {"Workers": 2, "Scheduler": "fair"}
    server = start_cached(serve, "Immutable", settings, root=tmp_path / "current")
    await_settled(tmp_path, clock)
    one, two = server.connect(), server.connect()
    assert one.ask("/f.txt").body == b"a" == two.ask("/g.txt").body
    clock.advance(1.05)  # the root is checked once a second
    with delay_calls(server, "openat2", 2.0):
        point("b")
        two.send(request("/g.txt"))  # checks the root
        await_true(lambda: is_held_up(server) or has_response(two), 30, "the check of the root")
        time.sleep(0.3)
        one.send(request("/f.txt"))  # opens below the root that is there now
        assert one.response().body in (b"a", b"b")
        two.response()
    await_true(lambda: one.ask("/f.txt").body == b"b", 30, "the new root")
    point("a")
    await_true(lambda: one.ask("/g.txt").body == b"a", 30, "the old root")
    for _ in range(3):
        assert one.ask("/f.txt").body == b"a"


# ── reloads ──


def test_entries_are_kept_over_reloads(cached):
    server = cached("Revalidate 1h")
    client = server.connect()
    paths = ["/small.txt", "/large.bin", "/dir/"]
    for path in paths:
        await_kept(server, client, path)
    for number, workers in enumerate([4, 2, 1], 1):
        text = (server.conf / "monkey.conf").read_text()
        (server.conf / "monkey.conf").write_text(text.replace("Workers", f"Workers {workers} #"))
        reload(server, number)
        misses, hits = server.count("misses"), server.count("hits")
        for _ in range(8):
            with server.connect() as other:
                for path in paths:
                    assert other.ask(path).status == 200
        assert server.count("misses") == misses
        assert server.count("hits") >= hits + 24
    server.baseline += 3  # listeners of the workers that have ended


def test_the_limits_of_the_last_reload_count(cached):
    """A thread that ends serves what has begun, with the configuration of before."""
    settings = {"Workers": 2, "Scheduler": "fair", "Timeout": "60s"}
    server = cached("Revalidate 1h", settings, keys={"Missing": 1000})
    clients = [server.connect() for _ in range(6)]
    for client in clients:
        assert client.ask("/metrics").status == 200  # is not of the cache
        client.send(request("/nowhere")[:20])
    (server.conf / "plugins/cache/cache.conf").write_text(section("CACHE", {"Missing": 10}))
    text = (server.conf / "monkey.conf").read_text()
    (server.conf / "monkey.conf").write_text(text.replace("Workers 2", "Workers 1"))
    server.send_signal(signal.SIGHUP)
    server.wait_log(DONE)
    with server.connect() as other:
        assert other.ask("/nowhere").status == 404
    for client in clients:
        client.send(request("/nowhere")[20:])
        assert client.response().status == 404
    for _ in range(2):
        ask_many(server, (f"/missing/{n}" for n in range(100)), 404)
    await_true(lambda: 0 < server.level("entries", kind="missing") <= 10, 20, "few names")
    server.baseline += 3  # of the thread that ends a generation, and the listener of the worker that has ended


@pytest.mark.concurrent
@pytest.mark.parametrize("files", ["EachCycle", "Notify 1s", "Revalidate 1s", "Immutable"])
def test_forty_reloads_under_load(cached, files):
    """No answer is wrong. The kernel resets a connection that is made in the moment in which a worker's socket ends:
    with or without a cache, a few of thousands are lost."""
    server = cached(files, {"Workers": 2}, files={"small": SMALL, "large": LARGE})
    plain = (server.conf / "monkey.conf").read_text()
    address, settings = server.addresses[0], plain.replace("127.0.0.1:0", server.names[0])
    server.baseline += 2 + 3 * 4  # of the thread that ends a generation, and of more workers
    with Load(address, SMALL, LARGE, may_lose=True) as load:
        for n in range(40):
            (server.conf / "monkey.conf").write_text(settings.replace("Workers 2", f"Workers {1 + n % 4}"))
            server.send_signal(signal.SIGHUP)
            server.wait_log(DONE, n + 1)
            assert not load.errors, load.errors
        await_true(lambda: load.answers > 100 or load.errors, 60, "answers")
    assert not load.errors and not load.refused and load.lost <= 10, (load.errors, load.lost)
    server.wait_log("is not in use any more", 40)


# ── what runs short ──


def test_missing_names_displace_nothing(cached):
    server = cached("Revalidate 1h", {"MaxKeepAliveRequest": 1_000_000}, keys={"Missing": 1000})
    client = server.connect()
    await_kept(server, client, "/small.txt")
    ask_many(server, (f"/missing/{n}" for n in range(5_000)), 404)
    for _ in range(3):
        assert is_hit(server, client, "/small.txt")


def test_more_files_than_memory(cached):
    """What is evicted is loaded again; what is often asked for stays."""
    names = {f"{n}.txt": pattern(4600, n) for n in range(500)}
    server = cached("Revalidate 1h", {"MaxKeepAliveRequest": 1_000_000}, keys={"Memory": "1M"}, files=names)
    client = server.connect()
    await_kept(server, client, "/0.txt")

    def evicts():  # once the files are old enough to be kept
        for name, data in names.items():
            assert client.ask(f"/{name}").body == data
        assert client.ask("/0.txt").body == names["0.txt"]
        return server.count("evicted") > 0

    await_true(evicts, what="evicted files")
    evicts()


@pytest.fixture
def many_links(tmp_path):
    """A root with 5,000 names that are too large to be kept in memory."""
    root = tmp_path / "links"
    populate(root, {"first.bin": pattern(18_000, 5)})
    for n in range(5_000):
        os.link(root / "first.bin", root / f"{n}.bin")
    return root


def test_more_files_than_descriptors(cached, many_links):
    keys, limits = {"Descriptors": 100_000}, {"FDLimit": 1024, "MaxKeepAliveRequest": 1_000_000}
    server = cached("Revalidate 1h", limits, keys=keys, root=many_links)
    for _ in range(2):
        ask_many(server, (f"/{n}.bin" for n in range(5_000)), 200)
    assert server.descriptors() <= 1024
    assert "Too many open files" not in server.log and "no descriptors" not in server.log, server.log[-2000:]


def test_clients_come_before_kept_descriptors(cached, tmp_path):
    """All descriptors are in the cache; then as many clients come as there may be."""
    files = {f"{n}.bin": pattern(18_000, n) for n in range(300)}
    server = cached("Revalidate 1h", {"FDLimit": 200, "OverCapacity": "Drop"}, keys={"Descriptors": 1024}, files=files)
    with server.connect() as client:
        await_kept(server, client, "/0.bin")
        for n in range(300):
            for _ in range(2):
                assert client.ask(f"/{n}.bin").body == files[f"{n}.bin"]
    clients = []
    for n in range(120):
        clients.append(server.connect())
        assert clients[-1].ask(f"/{n}.bin").body == files[f"{n}.bin"]
    for client in clients:
        assert client.ask("/1.bin").body == files["1.bin"]


# ── the configuration ──

MISTAKES = {
    # the file, the row, its column, words of the message
    "memory too small": ("cache", "Memory 511K", 12, ["Memory", "BodyMax", "1024K"]),
    "memory too small for one body": ("cache", "Memory 512K", 12, ["Memory", "BodyMax", "1024K"]),
    "no number": ("cache", "Descriptors many", 17, ["many"]),
    "unknown key": ("cache", "Memorie 1M", 5, ["Memorie", "Memory"]),
    "interval of nothing": ("default", "Files Revalidate 0", 11, ["Revalidate"]),
    "interval of a word": ("default", "Files Revalidate often", 11, ["Revalidate"]),
    "interval that is too long": ("default", "Files Revalidate 2d", 11, ["Revalidate"]),
    "two intervals": ("default", "Files Revalidate 1s 2s", 11, ["Revalidate takes one time"]),
    "interval of nothing, notified": ("default", "Files Notify 0", 11, ["Notify needs a time", "EachCycle"]),
    "interval with Immutable": ("default", "Files Immutable 1s", 11, ["Immutable"]),
    "interval with EachCycle": ("default", "Files EachCycle 1s", 11, ["EachCycle"]),
    "unknown mode": ("default", "Files Sometimes", 11, ["Revalidate"]),
    "no pattern": ("default", "Match assets", 11, ["Match", "path"]),
    "key of the server": ("default", "Memory 1M", 5, ["Memory"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(tmp_path, site_root, name):
    file, row, column, words = MISTAKES[name]
    text = f"[CACHE]\n    {row}\n"
    files = {"plugins/cache/cache.conf": text} if file == "cache" else {}
    folder = write_config(tmp_path / "conf", site_root, text=text if not files else "", files=files)
    result = run("-c", folder, "-t")
    assert result.returncode != 0, result.stderr
    found = problems(result)[0]
    assert found[:3] == (("cache.conf", 2) if files else ("default", 5)) + (column,), result.stderr
    assert all(word in found[3] for word in words), found


def test_smallest_budgets(serve, tmp_path):
    """None of a kind is kept; everything is served."""
    server = start_cached(serve, "Immutable", keys={"Descriptors": 0, "Missing": 0}, files=FILES)
    client = server.connect()
    for _ in range(5):
        assert client.ask("/large.bin").body == LARGE
        assert client.ask("/nowhere").status == 404
    assert not server.cached_files()


# ── other file systems ──


@pytest.mark.parametrize("files", ["EachCycle", "Revalidate 1s", "Notify 1h"])
def test_root_in_memory(cached, files, clock):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        root = populate(pathlib.Path(folder), FILES)
        server = cached(files, root=root)
        client = server.connect()
        for path in ("/small.txt", "/large.bin", "/nowhere"):
            await_kept(server, client, path)
        replace(root / "small.txt", b"new")
        (root / "nowhere").write_bytes(b"here")
        if files == "Revalidate 1s":
            clock.advance(1.05)
        assert client.ask("/small.txt").body == b"new"
        assert client.ask("/nowhere").body == b"here"


def test_entries_have_kinds(cached):
    server = cached("Revalidate 1h")
    client = server.connect()
    assert server.level("entries") == 0
    kinds = [("/small.txt", "body", 1), ("/large.bin", "descriptor", 1), ("/nowhere", "missing", 1)]
    for path, kind, count in [*kinds, ("/dir/", "body", 2)]:
        assert server.level("entries", kind=kind) < count
        await_kept(server, client, path)
        await_true(lambda: server.level("entries", kind=kind) >= count, 30, kind, pause=0.1)
        await_true(lambda: server.level("bytes", kind=kind) > 0, 30, kind, pause=0.1)
