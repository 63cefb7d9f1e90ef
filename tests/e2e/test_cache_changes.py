# SPDX-License-Identifier: Apache-2.0
"""`Files Notify`, counted: so many changes of each kind, of files that are kept and watched, each followed by a request
that must see it, on four workers and three protocols, while others ask for the same files. The interval is an hour, so
that nothing makes up for a report that was missed.

MONKEY_CHANGES=30000 in the slow run takes a quarter of an hour."""

import contextlib
import itertools
import mmap
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

import pytest

from harness import build
from harness.cache_consistency import NOBODY, make_disk, open_windows
from harness.caching import await_settled, needs_cache, read_figure
from harness.certificates import Authority, TlsClient
from harness.client import Client
from harness.h2 import H2Client
from harness.messages import request
from harness.metrics import status_section
from harness.server import Server, await_true, section, write_config

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
    needs_cache,
    pytest.mark.skipif(
        not (build.speaks("tls") and build.speaks("h2")), reason=f"the preset {build.PRESET} lacks tls or HTTP/2"
    ),
]

FEW, MANY = 40, 1000  # files of each kind
QUEUED_MAX = int(pathlib.Path("/proc/sys/fs/inotify/max_queued_events").read_text())
INTERVAL_SECONDS = 1.0  # of what is not reported
# Mounts where the server has its own: "SOURCE FOLDER" mounts one over the other, "- FOLDER" takes that away.
MOUNTER = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
BIND, DETACH = 4096, 2
for line in sys.stdin:
    source, folder = map(str.encode, line.split())
    done = libc.umount2(folder, DETACH) if source == b"-" else libc.mount(source, folder, None, BIND, None)
    print(ctypes.get_errno() if done < 0 else 0, flush=True)
"""


def body_of(n):
    return b"%08d" % n


class Kind:
    """Files that change in one way. `change(path, n)` returns what a request for it gets from then on."""

    def __init__(self, root, files):
        self.name = type(self).__name__.lower()
        self.folder = root / self.name
        self.paths = [self.folder / self.place(n) for n in range(files)]
        for path in self.paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body_of(0))
        self.now = {path: (200, body_of(0)) for path in self.paths}
        self.changes = 0

    def place(self, n):
        return f"{n // 100}/{n}.txt"

    def url(self, path):
        return f"/{self.name}/{path.relative_to(self.folder)}"


class Written(Kind):
    def change(self, path, n):
        with open(path, "r+b") as file:
            file.write(body_of(n))
        return 200, body_of(n)


class Resized(Kind):
    def change(self, path, n):
        path.write_bytes(body_of(n) * (1 + n % 3))
        return 200, body_of(n) * (1 + n % 3)


class Replaced(Kind):
    def change(self, path, n):
        new = self.folder / "new"
        new.write_bytes(body_of(n))
        new.rename(path)
        return 200, body_of(n)


class Removed(Kind):
    """And made again."""

    def change(self, path, n):
        if self.now[path][0] == 200:
            path.unlink()
            return 404, None
        path.write_bytes(body_of(n))
        return 200, body_of(n)


class Closed(Kind):
    """And opened again."""

    def change(self, path, n):
        closes = self.now[path][0] == 200
        path.chmod(0 if closes else 0o644)
        return (403, None) if closes else (200, body_of(0))


class Moved(Kind):
    """The folder of the file, away and back."""

    def place(self, n):
        return f"{n // 100}/{n}/file.txt"

    def change(self, path, n):
        away = path.parent.with_name(f"{path.parent.name}.away")
        if self.now[path][0] == 200:
            path.parent.rename(away)
            return 404, None
        away.rename(path.parent)
        return 200, body_of(0)


class Unreported(Kind):
    """What the kernel does not report is seen after the interval."""

    def change_all(self, clients, numbers):
        for path in self.paths:
            self.now[path] = self.change(path, next(numbers))
            self.changes += 1
        time.sleep(INTERVAL_SECONDS)
        for path in self.paths:
            check(next(clients), self, path)


class Mapped(Unreported):

    def change(self, path, n):
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), len(body_of(n))) as pages:
            pages[:] = body_of(n)
            pages.flush()
        return 200, body_of(n)


class Mounted(Unreported):
    """Another folder over that of the file, and away again."""

    def __init__(self, root, files):
        super().__init__(root, files)
        self.other, self.mounter = root.parent / "other", None
        self.other.mkdir()
        (self.other / "file.txt").write_bytes(body_of(99))

    def place(self, n):
        return f"{n // 100}/{n}/file.txt"

    @contextlib.contextmanager
    def open_mounter(self, pid):
        command = ["nsenter", "-m", "-t", str(pid), sys.executable, "-c", MOUNTER]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as self.mounter:
            yield
            self.mounter.stdin.close()

    def change(self, path, n):
        is_below = self.now[path][1] == body_of(0)
        print(self.other if is_below else "-", path.parent, file=self.mounter.stdin, flush=True)
        assert self.mounter.stdout.readline() == "0\n"
        return 200, body_of(99 if is_below else 0)


REPORTED = [Written, Resized, Replaced, Removed, Closed, Moved]


class Site:
    """The files, the server with two hosts, and its clients."""

    def __init__(self, disk, files):
        self.disk, self.root = disk, disk.area / "root"
        self.kinds = [kind(self.root, files) for kind in REPORTED]
        can_mount = build.can_mount()
        self.unreported = [Mapped(self.root, files), *([Mounted(self.root, files)] if can_mount else [])]
        for n in range(2):
            release = disk.area / "releases" / str(n)
            release.mkdir(parents=True)
            (release / "n.txt").write_bytes(body_of(n))
        (disk.area / "current").symlink_to("releases/0")
        self.ca = Authority(disk.folder / "ca")
        pair = self.ca.make("localhost", "localhost", "roots")
        if os.geteuid() == 0:
            os.chown(pair.key, NOBODY, NOBODY)
        tls = section("TLS", pair.keys())
        within = {"Match": "~^/(mapped|mounted)(/|$)", "Files": f"Notify {INTERVAL_SECONDS:.0f}s"}
        rules = section("CACHE", within) + section("CACHE", {"Files": "Notify 1h"})
        swapped = section("HOST", {"ServerName": "roots", "DocumentRoot": disk.area / "current"}) + tls
        settings = {
            "Listen": ["127.0.0.1:0", "127.0.0.1:0 tls"],
            "Workers": 4,
            "Scheduler": "fair",
            "MaxKeepAliveRequest": 10_000_000,
            "KeepAliveTimeout": "600s",
        }
        write_config(
            disk.folder / "conf",
            self.root,
            settings,
            text=tls + rules,
            files={
                "plugins.load": section("PLUGINS", {"Load": ["liana", "tls", "status", "cache", "static"]}),
                "plugins/status/status.conf": status_section(),
                "plugins/cache/cache.conf": section("CACHE", {"Memory": "64M"}),
                "sites/roots": swapped + section("CACHE", {"Files": "Notify 1h"}),
            },
        )
        alone = ["unshare", "-m", "--propagation", "private"] if can_mount else []
        self.server = Server(
            "-c", disk.folder / "conf", listeners=2, wrapper=[*alone, *disk.wrapper], program=build.for_others()
        )

    def connect(self):
        """Four clients of each protocol, one after the other for each request."""
        plain, secure = self.server.addresses
        clients = []
        for _ in range(4):
            clients.append(Client(plain, timeout=60))
            clients.append(open_windows(H2Client(plain, timeout=60, window=1 << 30)))
            clients.append(TlsClient(secure, self.ca.context(alpn=["http/1.1"]), timeout=60))
        return itertools.cycle(clients)


    def open_mounter(self):
        mounted = [kind for kind in self.unreported if isinstance(kind, Mounted)]
        return mounted[0].open_mounter(self.server.pid) if mounted else contextlib.nullcontext()


@pytest.fixture
def site():
    with make_disk("disk") as disk:
        made = []

        def start(files):
            made.append(Site(disk, files))
            return made[-1]

        yield start
        for one in made:
            one.server.kill()


def check(client, kind, path):
    status, body = kind.now[path]
    url = kind.url(path)
    answer = client.ask(url) if isinstance(client, Client) else client.ask(url, authority="localhost")
    assert answer.status == status and body in (None, answer.body), (url, answer.status, answer.body, kind.now[path])


def keep_all(site, clients, kinds):
    """Names are kept when they are asked for the second time, unless a disk has to be waited for; then watched."""
    files = sum(status == 200 for kind in kinds for status, _ in kind.now.values())

    def ask_all():
        for kind in kinds:
            for path in kind.paths:
                check(next(clients), kind, path)
        return read_figure(site.server, "monkey_cache_entries", kind="body") >= files

    ask_all()
    await_true(ask_all, 600, "kept files")
    ask_all()


def change_all(clients, kinds, numbers):
    """Kinds by turns, so that changes of folders come between those of files."""
    for paths in zip(*(kind.paths for kind in kinds)):
        for kind, path in zip(kinds, paths):
            kind.now[path] = kind.change(path, next(numbers))
            kind.changes += 1
            check(next(clients), kind, path)


def swap_roots(site, clients, count):
    for n in range(1, count + 1):
        (site.disk.area / "new").symlink_to(f"releases/{n % 2}")
        (site.disk.area / "new").rename(site.disk.area / "current")
        client = next(clients)
        asked = {"host": "roots"} if isinstance(client, Client) else {"authority": "roots"}
        assert client.ask("/n.txt", **asked).body == body_of(n % 2)


def overflow(site):
    """No request is there to read the events. The names are not those of any file."""
    for n in range(QUEUED_MAX + 10):
        (site.root / f"noise{n % 2}").touch()


def ask_others(site, ending):
    """What is asked for meanwhile: entries are revalidated and loaded by several workers at the same time."""
    source = random.Random(1)
    urls = [kind.url(path) for kind in site.kinds for path in kind.paths]
    client = Client(site.server.addresses[0], timeout=60)
    while not ending.wait(0.001):
        client.send(b"".join(request(source.choice(urls)) for _ in range(8)))
        for _ in range(8):
            client.response()


def run(site, files, changes):
    made = site(files)
    kinds = [*made.kinds, *made.unreported]
    numbers, clients, ending = itertools.count(1), made.connect(), threading.Event()
    others = [threading.Thread(target=ask_others, args=(made, ending)) for _ in range(2)]
    for other in others:
        other.start()
    try:
        with made.open_mounter():
            for _ in range(-(-changes // files)):
                await_settled(made.root)
                keep_all(made, clients, kinds)
                change_all(clients, made.kinds, numbers)
                swap_roots(made, clients, files)
                for kind in made.unreported:
                    kind.change_all(clients, numbers)
    finally:
        ending.set()
        for other in others:
            other.join(60)
    await_settled(made.root)
    keep_all(made, clients, made.kinds)
    overflow(made)
    change_all(clients, made.kinds, numbers)
    await_true(lambda: read_figure(made.server, "monkey_cache_overflows_total") > 0, 30, "an overflow")
    print({kind.name: kind.changes for kind in kinds})
    made.server.assert_healthy()
    assert "may be raised" not in made.server.log


@pytest.mark.load
def test_changes_of_each_kind(site):
    run(site, FEW, FEW)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_changes_of_each_kind(site):
    run(site, MANY, int(os.environ.get("MONKEY_CHANGES") or 2 * MANY))
