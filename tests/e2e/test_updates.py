# SPDX-License-Identifier: Apache-2.0
"""Files that are replaced while they are downloaded, the way rsync does it: a new file is written next to the old one,
gets its time, and is renamed over it. Each answer is of one version from its head to its last byte.

Every block of 16 bytes, and the time of the file, show its version: version N is N seconds older than none. What
is rewritten in place (rsync --inplace) can't be kept apart by anybody; there the server only has to survive."""

import concurrent.futures
import contextlib
import os
import re
import threading

import pytest

from harness.client import ProtocolError, Response, parse_date
from harness.content import OLD
from harness.messages import request
from harness.multipart import Multipart, take_apart

pytestmark = pytest.mark.concurrent
BLOCK = 16
BLOCKS = {
    "copied.bin": 300,
    "edge.bin": 1021,  # the versions are smaller and larger than 16 KB
    "sent.bin": 12_000,
    "slices.bin": 70_000,  # more than a megabyte
    "many slices.bin": 320_000,  # 5 MB
}
FAST = ["copied.bin", "edge.bin", "sent.bin", "slices.bin"]
SETTINGS = {"Workers": 2, "MaxKeepAliveRequest": 1_000_000}
CLIENTS = 4


def blocks_of(name, version):
    return BLOCKS.get(name.partition(".gz")[0], 500) + version % 7


def content(name, version):
    kind = b"g" if name.endswith(".gz") else b"f"
    return (kind + b"%014d\n" % version) * blocks_of(name, version)


def check_piece(name, version, first, data):
    """The bytes from `first` on are those of this version."""
    if data != content(name, version)[first : first + len(data)]:
        raise AssertionError(f"{name}: {len(data)} bytes from {first} on should all be of version {version}")


class Releases:
    """The files below a root, and the tags under which clients have seen their versions."""

    def __init__(self, root):
        self.root, self.versions, self.tags = root, {}, {}
        self.lock = threading.Lock()
        root.mkdir(parents=True, exist_ok=True)

    def publish(self, *names):
        """Puts the next version of these files in the place of the last one, one after the other."""
        for name in names:
            version = self.versions.get(name, 0) + 1
            path, temporary = self.root / name, self.root / f".{name}.{version:06}"
            temporary.write_bytes(content(name, version))
            os.utime(temporary, (OLD + version, OLD + version))
            self.versions[name] = version
            os.rename(temporary, path)

    @contextlib.contextmanager
    def publishing(self, *steps):
        """Meanwhile the files of each step are published in their turn, again and again."""
        stop = threading.Event()

        def publish_all():
            while not stop.wait(0.001):
                for step in steps:
                    self.publish(*step)

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            writer = pool.submit(publish_all)
            try:
                yield writer
            finally:
                stop.set()
            writer.result()

    def version(self, name, answer):
        """The version that the head of an answer tells; its tag belongs to this version alone, which may have another
        tag once its name leads to the next version."""
        version = parse_date(answer["Last-Modified"]) - OLD
        assert 1 <= version <= self.versions[name], answer
        with self.lock:
            tag = answer["ETag"]
            assert not tag.startswith("W/")
            assert self.tags.setdefault((name, tag), version) == version, "two versions have the same tag"
        return version

    def check(self, name, answer):
        """All of an answer's body is of the version of its head; returns the version."""
        version = self.version(name, answer)
        size = BLOCK * blocks_of(name, version)
        if isinstance(answer, Multipart):
            for _, first, last, whole, piece in take_apart(answer):
                assert whole == size and len(piece) == last - first + 1, answer
                check_piece(name, version, first, piece)
        elif answer.status == 206:
            first, last, whole = map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer["Content-Range"]).groups())
            assert whole == size and len(answer.body) == last - first + 1, answer
            check_piece(name, version, first, answer.body)
        else:
            assert (answer.status, len(answer.body)) == (200, size), answer
            check_piece(name, version, 0, answer.body)
        return version


@pytest.fixture
def releases(tmp_path):
    releases = Releases(tmp_path / "site")
    releases.publish(*BLOCKS)
    return releases


def path_of(name):
    return "/" + name.replace(" ", "%20")


def ask(client, name, *fields):
    """An answer in whatever form it comes: whole, a part, several parts."""
    client.send(request(path_of(name), *fields))
    head = client.until(b"\r\n\r\n")
    answer = (Multipart if b"multipart/byteranges" in head else Response)(head, "GET")
    answer.body = client.exactly(answer.length)
    return answer


def crowd(releases, server, names, visit, *steps, rounds=12, versions=60):
    """Clients call visit(client, name) for each name until they have done their rounds and enough versions passed."""
    with releases.publishing(*(steps or [[name] for name in names])) as writer:

        def work(_):
            done = 0
            with server.connect() as client:
                while not writer.done() and (done < rounds or min(map(releases.versions.get, names)) < versions):
                    for name in names:
                        visit(client, name)
                    done += 1

        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(work, range(CLIENTS)))


def test_whole_files(releases, serve):
    """On one connection a client never gets an older version than before."""
    server, seen = serve(SETTINGS, root=releases.root), {}

    def visit(client, name):
        version = releases.check(name, ask(client, name))
        assert version >= seen.get((client, name), 0)
        seen[client, name] = version

    crowd(releases, server, FAST, visit)


@pytest.mark.single_protocol  # the order of answers
def test_pipelined(releases, serve):
    """Ten requests at once: each answer is of one version, and none is older than that before it."""
    server = serve(SETTINGS, root=releases.root)

    def visit(client, name):
        client.send(request(path_of(name)) * 10)
        versions = [releases.check(name, client.response()) for _ in range(10)]
        assert versions == sorted(versions)

    crowd(releases, server, ["copied.bin", "sent.bin"], visit, rounds=10)


@pytest.mark.parametrize("name", BLOCKS)
def test_slow_readers(releases, serve, name):
    """The file is replaced again and again between the head of an answer and its end."""
    server = serve(SETTINGS, root=releases.root)
    clients = [server.connect(rcvbuf=4096) for _ in range(3)]
    for number, client in enumerate(clients, 1):
        client.send(request(path_of(name)))
        answer = client.head()
        assert releases.version(name, answer) == number
        answer.body = client.exactly(100)
        client.answer = answer
        releases.publish(name)
    for number, client in enumerate(clients, 1):
        size = BLOCK * blocks_of(name, number)
        assert client.answer.length == size
        while (left := size - len(client.answer.body)) > 0:
            client.answer.body += client.exactly(min(left, size // 4))
            releases.publish(name)
        assert releases.check(name, client.answer) == number
    assert releases.check(name, ask(clients[0], name)) == releases.versions[name], "the next one is up to date"


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("validator", ["ETag", "Last-Modified"])
def test_if_range(releases, serve, name, validator):
    client = serve(SETTINGS, root=releases.root).connect()
    first = ask(client, name, "Range: bytes=0-1000")
    resume = ["Range: bytes=1001-", f"If-Range: {first[validator]}"]
    second = ask(client, name, *resume)
    assert (first.status, second.status, second["ETag"]) == (206, 206, first["ETag"])
    assert first.body + second.body == content(name, 1)
    several = ask(client, name, "Range: bytes=0-9,-10", resume[1])
    assert isinstance(several, Multipart) and releases.check(name, several) == 1
    releases.publish(name)
    for spans in ("1001-", "0-9,-10"):
        stale = ask(client, name, f"Range: bytes={spans}", resume[1])
        assert (stale.status, releases.check(name, stale)) == (200, 2)
    bare = ask(client, name, resume[0])
    assert (bare.status, releases.check(name, bare)) == (206, 2), "without If-Range: a part of what is there now"


def test_resumed_downloads(releases, serve):
    """A download in pieces with If-Range: what is put together is one version, however often it has to start again."""
    server, outcomes = serve(SETTINGS, root=releases.root), set()

    def visit(client, name):
        step = BLOCK * BLOCKS[name] // 3 + 5
        answer = ask(client, name, f"Range: bytes=0-{step - 1}")
        got, size = answer.body, int(answer["Content-Range"].rpartition("/")[2])
        version = releases.check(name, answer)
        while len(got) < size:
            tag, span = answer["ETag"], f"bytes={len(got)}-{len(got) + step - 1}"
            answer = ask(client, name, f"Range: {span}", f"If-Range: {tag}")
            same = answer["ETag"] == tag
            assert answer.status == (206 if same else 200)
            outcomes.add(answer.status)
            assert releases.check(name, answer) == version or not same
            version, got = releases.version(name, answer), got + answer.body if same else answer.body
            size = BLOCK * blocks_of(name, version)
        check_piece(name, version, 0, got)

    crowd(releases, server, FAST, visit)
    assert outcomes == {200, 206}


def test_several_ranges(releases, serve):
    """All parts of an answer are of one version, with and without a validator of an older one."""
    server, known, kinds = serve(SETTINGS, root=releases.root), {}, set()

    def visit(client, name):
        middle = BLOCK * BLOCKS[name] // 2
        spans = f"Range: bytes=0-99,{middle}-{middle + middle // 3},-100"
        for fields in [], [f"If-Range: {known.get(name, '*')}"]:
            answer = ask(client, name, spans, *fields)
            assert isinstance(answer, Multipart) or fields
            kinds.add((type(answer), releases.check(name, answer) and bool(fields)))
            known[name] = answer["ETag"]

    crowd(releases, server, FAST, visit)
    assert kinds == {(Multipart, False), (Multipart, True), (Response, True)}


def test_variants(releases, serve):
    """A file and its compressed variant are replaced one after the other: never an older variant than the file."""
    server = serve(SETTINGS, root=releases.root, host={"Precompressed": "gzip"})
    releases.publish("sent.bin.gz", "copied.bin.gz")
    seen, kinds = {}, set()

    def visit(client, name):
        answer = ask(client, name, "Accept-Encoding: gzip")
        packed = answer["Content-Encoding"] == "gzip"
        version = releases.check(name + ".gz" * packed, answer)
        assert version >= seen.get((client, name), 0), "an outdated variant"
        seen[client, name] = releases.check(name, ask(client, name))
        assert seen[client, name] >= version
        kinds.add(packed)

    names = ["copied.bin", "sent.bin"]
    crowd(releases, server, names, visit, *([name, name + ".gz"] for name in names), versions=80)
    assert kinds == {True, False}, "between the two there is only the file"


def make_release(site, version):
    """A folder as a whole, in which each file tells its version."""
    folder = site / "releases" / f"{version:06}"
    (folder / "deep").mkdir(parents=True)
    for name, size in {"index.html": 40, "deep/index.html": 2000, "data.bin": 40_000}.items():
        (folder / name).write_bytes(b"%015d\n" % version * size)


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("symlinks", ["Inside", "On"])
def test_folders_behind_a_link(tmp_path, serve, symlinks, absolute):
    """`app/current -> ../releases/N` below the root is pointed elsewhere: no request falls between two releases."""
    site = tmp_path / "site"
    (site / "app").mkdir(parents=True)
    for version in range(1, 6):
        make_release(site, version)

    def point(version):
        target = f"releases/{version:06}"
        (site / "app" / "new").symlink_to(site / target if absolute else f"../{target}")
        os.rename(site / "app" / "new", site / "app" / "current")

    point(1)
    server, seen = serve(SETTINGS | {"SymLink": symlinks}, root=site), set()
    stop = threading.Event()

    def swap():
        turn = 1
        while not stop.wait(0.0005):
            turn += 1
            point(turn % 5 + 1)
        return turn

    def work(_):
        with server.connect() as client:
            for _ in range(60):
                for path, size in {"": 40, "deep/": 2000, "data.bin": 40_000}.items():
                    answer = client.ask(f"/app/current/{path}")
                    assert answer.status == 200, answer
                    mark = answer.body[:BLOCK]
                    assert answer.body == mark * size
                    seen.add(mark)

    with concurrent.futures.ThreadPoolExecutor(CLIENTS + 1) as pool:
        writer = pool.submit(swap)
        try:
            list(pool.map(work, range(CLIENTS)))
        finally:
            stop.set()
        assert writer.result() > 20
    assert len(seen) == 5


def test_rewritten_in_place(releases, serve):
    """What can't be promised is not promised: a file that shrinks under an answer ends the connection short."""
    server, name = serve(SETTINGS, root=releases.root), "many slices.bin"
    before, path = server.threads(), releases.root / name
    clients = [server.connect(rcvbuf=4096) for _ in range(4)]
    for client in clients:
        client.send(request(path_of(name)))
        client.exactly(100)
    with open(path, "r+b") as file:
        file.truncate(100_000)
    for client in clients:
        with pytest.raises((ProtocolError, ConnectionResetError)):
            client.exactly(BLOCK * blocks_of(name, 1) - 1000)
    with open(path, "r+b") as file:
        file.write(content(name, 2))
    os.utime(path, (OLD + 2, OLD + 2))
    releases.versions[name] = 2
    assert releases.check(name, ask(server.connect(), name)) == 2
    assert set(before) <= set(server.threads()), "no worker died of it"
