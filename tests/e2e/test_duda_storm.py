# SPDX-License-Identifier: Apache-2.0
"""Random requests to a web service: the same request gets the same response over HTTP/1.1 and HTTP/2, and clients that
reset, stall or do not read leave nothing behind, also while the service is reloaded and while the server stops."""

import contextlib
import functools
import os
import random
import re
import select
import signal
import ssl
import threading
import time

import pytest

from harness import build
from harness.certificates import TlsClient
from harness.client import Client, ProtocolError, Response, insist
from harness.h2 import GoneAway, H2Client, H2Response, StreamReset
from harness.load import Clients
from harness.messages import octets
from harness.server import await_true, section
from harness.services import build_service, needs_duda, reload
from harness.ways import WAYS

SOURCE = (build.TOP / "tests" / "duda" / "storm.c").read_text()
LIMITS = {"MaxRequestSize": 100_000, "MaxBodySize": 150_000, "MaxDiscardSize": "64K"}
PATIENT = {"KeepAliveTimeout": "60s", "SendTimeout": "60s", "BodyTimeout": "60s", "MinBodyRate": 0}
SETTINGS = {**LIMITS, **PATIENT, "Workers": 2}
H2_SETTINGS = {"plugins/static/static.conf": section("HTTP2", {"MaxResets": 1_000_000, "MaxStreamErrors": 1_000_000})}
FILE = bytes(i * 7 % 251 for i in range(300_000))
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "date"}

pytestmark = [
    needs_duda,
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
    pytest.mark.skipif(
        not (build.speaks("tls") and build.speaks("h2")), reason=f"the preset {build.PRESET} lacks tls or HTTP/2"
    ),
]

# ── random requests ──

METHODS = ["GET"] * 6 + ["POST"] * 4 + ["HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "LOCK", "X-ANY"]
PATHS = """
    /echo /echo/{word}/{word}/{word} /echo/{word}/{number}/ /folder /folder/ /limit /pieces /paused /unread /thread
    /dthread /hook /hook/thread /later /never /stream/{few} /made/{number} /waiting/{few} /file/{number}/{number}
    /file/0/0 /events/{few} /cut /raw/{number} /raw/{status} /status/{status} /error/{status} /redirect/{status}
    /redirect/303 /headers/{number} /length/{number} /cookie/{word} /html /html/ /html/a.txt /{word} /
""".split() + [""]  # fmt: skip
PARALLEL = ["/thread", "/later", "/echo", "/made/100", "/held", "/race", "/dthread", "/race/dthread"]
STATUSES = [200, 204, 205, 206, 301, 302, 303, 304, 307, 308, 400, 401, 404, 416, 418, 500, 503, 599, 600, 99, 0]
SMALL = [0, 1, 2, 3, 7, 8, 10, 11, 63, 64, 65, 100]
NUMBERS = [-(2**63), -1, *SMALL, 4095, 16384, 65536, 65537, 299_999, 300_000, 300_001, 2**31, 2**63 - 1, 2**63, 2**64]
BORDERS = [1000, 16384, 65536, 100_000, 150_000]  # of routes, frames, windows, MaxRequestSize and MaxBodySize
SIZES = [0, 1, 2, 100, 170_000, *(border + i for border in BORDERS for i in (-1, 0, 1))]
WORDS = """
    a me .. . ... %2e%2e %2E %00 %0a %0D%0A %2f %5c %c3%bc %ff % %4 %zz a+b a;b=c a:b * ~ ' %20
""".split() + ["", "x" * 300, "y" * 3000, "%41" * 900]  # fmt: skip
VALUES = ["", "1", "-5", "9" * 20, "abc", "a b", "a\tb", "\xfc", "x" * 2000, 'quo"ted', "a,b", "a;b", "=", "AB" * 9]
COOKIES = ["a=1", "a=1; b=2", "a", "=", ";;;", "a=;b", " = x; y = ", "a=\xff", "c=" + "d" * 3000, "x=;" * 300]
FORM = "application/x-www-form-urlencoded"
TYPES = [FORM, FORM, FORM + "; charset=x", "text/plain", "", "a/b;" * 50]


class Asked:
    """A request, whatever carries it."""

    def __init__(self, dice):
        self.dice = dice
        self.method = dice.choice(METHODS)
        self.target = "/storm" + self.path() + self.query()
        self.fields = self.choose_fields()
        self.body = self.choose_body()
        self.framed = dice.choice(["length", "pieces"]) if self.body is not None else None

    def path(self):
        text = self.dice.choice(PATHS).format(
            word=self.dice.choice(WORDS), number=self.dice.choice(NUMBERS), few=self.dice.randint(0, 40),
            status=self.dice.choice(STATUSES),
        )  # fmt: skip
        if self.dice.random() < 0.1:
            at = self.dice.randint(0, len(text))
            text = text[:at] + self.dice.choice(["/", "/./", "/../", "//", "/" * 300, "%2e"]) + text[at:]
        return text

    def pairs(self, most):
        names = ["n", "n", "a", "flush", "value", "path", "", *WORDS]
        rows = [self.dice.choice(names) + self.dice.choice(["=", "=", "", "=="]) + self.dice.choice(WORDS[:-3] + ["17"])
                for _ in range(self.dice.randint(0, most))]  # fmt: skip
        return self.dice.choice(["&", "&", "&&", ";"]).join(rows)

    def query(self):
        chosen = self.dice.random()
        if chosen < 0.5:
            return ""
        return "?" + (self.pairs(6) if chosen < 0.95 else "a&" * self.dice.choice([500, 999, 1000, 1001, 1002]))

    def choose_fields(self):
        rows = [("x-storm", self.dice.choice(VALUES)) for _ in range(self.dice.choice([0, 0, 1, 2, 40]))]
        rows += [("cookie", self.dice.choice(COOKIES)) for _ in range(self.dice.choice([0, 0, 1, 2]))]
        rows += [("content-type", self.dice.choice(TYPES))] * self.dice.choice([0, 1])
        return [(name, value.strip(" \t")) for name, value in rows]

    def choose_body(self):
        if self.dice.random() < 0.5:
            return None
        size = self.dice.choice(SIZES)
        text = self.pairs(20).encode() if self.dice.random() < 0.5 else self.dice.randbytes(min(size, 1000))
        return (text * (size // len(text) + 1))[:size] if text else b""

    def pieces(self):
        """Yields the body in pieces of random sizes."""
        at, most = 0, self.dice.choice([1000, 5000, 70000])
        while at < len(self.body):
            size = self.dice.randint(1, most)
            yield self.body[at : at + size]
            at += size

    def bytes(self):
        """The request in HTTP/1.1."""
        rows = [f"{self.method} {self.target} HTTP/1.1", "Host: localhost"]
        rows += [f"{name}: {value}" for name, value in self.fields]
        body = self.body or b""
        if self.framed == "length":
            rows.append(f"Content-Length: {len(body)}")
        elif self.framed:
            rows.append("Transfer-Encoding: chunked")
            body = b"".join(self.chunk(piece) for piece in self.pieces()) + b"000\r\n"
            body += self.dice.choice([b"", b"X-Trailer: 1\r\n", b"X: \xff\r\nY:\r\n"]) + b"\r\n"
        return octets("\r\n".join(rows)) + b"\r\n\r\n" + body

    def chunk(self, piece):
        extension = self.dice.choice([b"", b"", b";a", b';a="b"', b" ;x=y"])
        return b"%x%s\r\n%s\r\n" % (len(piece), extension, piece)

    def begin(self, client):
        """Begins the request over HTTP/2; returns its stream."""
        fields = list(self.fields)
        if self.framed == "length":
            fields.append(("content-length", str(len(self.body))))
        number = client.begin(self.target, *fields, method=self.method, end=self.framed is None)
        if self.framed:
            trailers = self.dice.choice([(), (), ("x-trailer: 1",)])
            for piece in self.pieces():
                if client.streams[number].code is not None or client.streams[number].ended:
                    return number
                client.more(number, piece)
            client.more(number, end=True, trailers=trailers)
        return number


# ── what comes back ──


def summarize(answer):
    fields = sorted((name.lower(), value) for name, value in answer.fields if name.lower() not in HOP_BY_HOP)
    return answer.status, fields, answer.body


CUT = "cut"


WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Pump:
    """A client that continues sending while it reads, because the server may answer before it has read all. One thread
    does both: an SSLSocket is not made for two."""

    pending, most = b"", 1 << 30

    def begin(self, data, most):
        """Sends `data`, at most `most` bytes at a time."""
        self.sock.setblocking(False)
        self.pending, self.most = self.pending + data, most

    def push(self):
        """Returns whether a piece was sent."""
        try:
            self.pending = self.pending[self.sock.send(self.pending[: self.most]) :]
            return True
        except WOULD_BLOCK:
            return False
        except OSError:
            self.pending = b""  # the server has closed; what it has said before can still be read
            return False

    def fill(self, most=262144):
        while True:
            with contextlib.suppress(*WOULD_BLOCK):
                data = self.sock.recv(most)
                self.buffer += data
                return bool(data)
            if self.pending and self.push():
                continue
            ready = select.select([self.sock], [self.sock] if self.pending else [], [], 30)
            if not any(ready):
                raise TimeoutError("neither room nor bytes")

    def exactly(self, count):
        while len(self.buffer) < count:
            insist(self.fill(), f"closed {count - len(self.buffer)} bytes before the end of {count}")
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data


class PlainPump(Pump, Client):
    pass


class TlsPump(Pump, TlsClient):
    pass


class First:
    """Asks over HTTP/1.1, several requests in one go, cut into random pieces."""

    def __init__(self, dice, connect):
        self.dice, self.connect, self.client = dice, connect, None

    def ask(self, batch):
        found, left = [], list(batch)
        while left:
            if not self.client:
                self.client, self.answers = self.connect(), 0
            data = b"".join(asked.bytes() for asked in left)
            self.client.begin(data, self.dice.choice([1 << 30, 1 << 30, 1000, 30000]))
            if self.read(left, found):
                self.client.close()
                self.client = None
        return found

    def read(self, left, found):
        """Reads responses; returns whether the connection has ended. A request that no byte answers is sent again,
        unless it was the first of its connection."""
        while left:
            try:
                answer = self.client.response(left[0].method)
            except (ProtocolError, OSError) as error:
                if isinstance(error, TimeoutError) or (isinstance(error, ProtocolError) and "closed" not in str(error)):
                    raise
                if self.answers and not self.client.buffer:
                    return True
                left.pop(0)
                found.append(CUT)
                return True
            self.answers += 1
            left.pop(0)
            found.append(summarize(answer))
            if answer.closes:
                return True
        return False


class Second:
    """Asks over HTTP/2, all requests of a batch at a time."""

    def __init__(self, connect):
        self.connect, self.client = connect, None

    def ask(self, batch):
        if not self.client or self.client.goaway:
            self.client = self.connect()
        numbers = [asked.begin(self.client) for asked in batch]
        return [self.read(number) for number in numbers]

    def read(self, number):
        try:
            return summarize(self.client.response(number))
        except StreamReset:
            return CUT


# ── the same over all protocols ──


@pytest.fixture
def start(serve_services, tmp_path, monkeypatch):
    """Starts the service; server.ways has a function to connect for each way."""
    for kind in (Response, H2Response):  # the service responds with any status
        monkeypatch.setattr(kind, "OWED", {})

    def begin(settings=None):
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "file").write_bytes(FILE)
        (tmp_path / "html" / "html").mkdir(parents=True)
        (tmp_path / "html" / "html" / "a.txt").write_bytes(b"text\n")
        os.utime(tmp_path / "html" / "html" / "a.txt", (10**9, 10**9))  # its ETag is strong
        keys = {"storm": {"DataDir": tmp_path / "data", "DocumentRoot": tmp_path / "html"}}
        settings = {"Listen": ["127.0.0.1:0", "127.0.0.1:0 tls"], **SETTINGS, **(settings or {})}
        server = WAYS["h2-tls"].start(
            serve_services, tmp_path, {"storm": SOURCE}, settings, keys=keys, files=H2_SETTINGS, listeners=2
        )
        plain, secure = server.addresses
        ca = WAYS["h2-tls"].ca
        contexts = ca.context(), ca.context(alpn=["h2"])

        def connect(kind, *args, **more):
            server.clients.append(kind(*args, **more))
            return server.clients[-1]

        server.versions = []
        server.ways = {
            "h1": functools.partial(connect, PlainPump, plain),
            "h2": functools.partial(connect, H2Client, plain),
            "h1-tls": functools.partial(connect, TlsPump, secure, contexts[0]),
            "h2-tls": functools.partial(connect, H2Client, secure, context=contexts[1]),
        }
        return server

    return begin


def compare(server, seed, rounds):
    dice = random.Random(seed)
    speakers = {way: (Second if "h2" in way else lambda connect: First(dice, connect))(connect)
                for way, connect in server.ways.items()}  # fmt: skip
    for n in range(rounds):
        batch = [Asked(dice) for _ in range(dice.choice([1, 1, 2, 5, 12]))]
        found = {way: speaker.ask(batch) for way, speaker in speakers.items()}
        for i, asked in enumerate(batch):
            rows = {way: answers[i] for way, answers in found.items()}
            what = f"seed {seed}, round {n}: {asked.method} {asked.target} {asked.fields} {asked.framed}"
            assert all(row == rows["h1"] for row in rows.values()), f"{what}\n" + "\n".join(
                f"{way}: {str(row)[:600]}" for way, row in rows.items()
            )


def check_counts(server):
    """Each request of a service that has begun has ended, and was counted once."""
    counts = re.findall(r"storm \d: (\d+) begun, (\d+) done", server.log)
    assert counts and all(begun == done for begun, done in counts), counts


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_same_request_gets_the_same_response(start, seed):
    server = start()
    compare(server, seed, 40)
    finish(server, 0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3, 9))
def test_the_same_request_gets_the_same_response_at_length(start, seed):
    server = start()
    compare(server, seed, 600)
    finish(server, 0)


# ── clients that do not behave ──

ENDLESS = """
    /stream/1000000 /made/3000000 /waiting/3000000 /file/0/0 /events/1000000 /held /race /never /thread /hook/thread
    /later /dthread /race/dthread
""".split()  # fmt: skip
METHODS_OF_ENDLESS = ["GET", "GET", "GET", "HEAD", "POST"]


class Hostile(Clients):
    """Each kind ends in a way that no client should; the only demand is that a client that behaves is served."""

    def __init__(self, server, seed):
        self.server, self.seeds, self.answers = server, random.Random(seed), 0
        self.dices = threading.local()
        self.lock = threading.Lock()
        kinds = [self.bytes, self.bytes, self.mutate, self.frames, self.frames, self.stall, self.stall_streams]
        super().__init__([self.behave, self.behave, *kinds, self.many_streams])

    @property
    def dice(self):
        if not hasattr(self.dices, "own"):
            with self.lock:
                self.dices.own = random.Random(self.seeds.random())
        return self.dices.own

    def forgives(self, error):
        return isinstance(error, Misbehaved) or self.server.stopping

    @contextlib.contextmanager
    def client(self, *ways, **more):
        """A client that ends by a reset, in order, or half."""
        with misbehaving():
            client = self.server.ways[self.dice.choice(ways)](**more)
        try:
            with misbehaving():
                yield client
                if self.dice.random() < 0.2 and hasattr(client, "shut"):
                    client.shut()
                    client.sock.recv(1000)
                if self.dice.random() < 0.5:
                    client.reset()
        finally:
            self.server.clients.remove(client)
            client.close()

    def behave(self):
        """A client that is served, whatever the others do."""
        way = self.dice.choice(sorted(self.server.ways))
        client = self.server.ways[way](timeout=30)
        try:
            for _ in range(20):
                answer = client.ask("/storm/echo?n=17")
                assert (answer.status, b"n 17" in answer.body) == (200, True), answer
                self.answers += 1
                if answer.closes:
                    return
        except GoneAway as error:
            assert error.code == 0, error
        finally:
            self.server.clients.remove(client)
            client.close()

    def send_some(self, client, data):
        """Sends the beginning of some bytes, and reads some."""
        client.sock.settimeout(0.02)
        data = data[: self.dice.choice([self.dice.randint(0, len(data)), len(data)])]
        with misbehaving():
            while data:
                size = self.dice.choice([1, 10, 1000, 100_000])
                client.sock.sendall(data[:size])
                data = data[size:]
                if self.dice.random() < 0.1:
                    client.sock.recv(self.dice.choice([1, 1000, 100_000]))
        with misbehaving():
            for _ in range(self.dice.randint(0, 3)):
                client.sock.recv(self.dice.choice([1, 1000, 100_000]))

    def bytes(self):
        """Whole and cut requests, many in a row, and the end at any place."""
        with self.client("h1", "h1-tls") as client:
            self.send_some(client, b"".join(Asked(self.dice).bytes() for _ in range(self.dice.randint(1, 10))))

    def mutate(self):
        """Requests in which bytes are wrong, missing or repeated."""
        noise = [b"\r\n", b"\0", b" ", b"\xff", b"", b"\r\n\r\n", b"Transfer-Encoding: chunked\r\n", b"7fffffff", b":"]
        data = bytearray(b"".join(Asked(self.dice).bytes() for _ in range(self.dice.randint(1, 3))))
        for _ in range(self.dice.randint(1, 5)):
            at = self.dice.randrange(len(data) + 1)
            data[at : at + self.dice.choice([0, 1, 1, 50])] = self.dice.choice(noise)
        with self.client("h1", "h1-tls") as client:
            self.send_some(client, bytes(data))

    def frames(self):
        """Streams whose bodies stop, that are cancelled, and the end of the connection at any place."""
        with self.client("h2", "h2-tls", timeout=1) as client:
            for _ in range(self.dice.randint(1, 30)):
                self.open_stream(client, Asked(self.dice))
                if self.dice.random() < 0.3:
                    client.cancel(self.dice.choice(list(client.streams)))
                if self.dice.random() < 0.2:
                    client.ping()

    def open_stream(self, client, asked):
        if self.dice.random() < 0.6:
            asked.begin(client)
            return
        number = client.begin(asked.target, *asked.fields, method=asked.method, end=False)
        for piece in list(asked.pieces() if asked.body else [])[: self.dice.randint(0, 3)]:
            client.more(number, piece)

    def ask_for_much(self):
        return self.dice.choice(METHODS_OF_ENDLESS), "/storm" + self.dice.choice(ENDLESS)

    def stall(self):
        """Asks for much, and reads little of it."""
        with self.client("h1", "h1-tls", rcvbuf=4096) as client:
            for _ in range(self.dice.randint(1, 3)):
                client.send("{} {} HTTP/1.1\r\nHost: localhost\r\n\r\n".format(*self.ask_for_much()))
            client.sock.settimeout(self.dice.choice([0.001, 0.01, 0.1]))
            with contextlib.suppress(TimeoutError):
                client.sock.recv(self.dice.choice([1, 1000, 10_000_000]))
            self.ending.wait(self.dice.choice([0, 0.01, 0.1]))

    def stall_streams(self):
        """Asks for much on streams whose windows are small or never open."""
        window = self.dice.choice([0, 1, 1000, 1 << 20])
        with self.client("h2", "h2-tls", window=window, credit=False, timeout=1) as client:
            for _ in range(self.dice.randint(1, 20)):
                method, target = self.ask_for_much()
                client.begin(target, method=method)
            client.ping()
            for number in list(client.streams):
                if self.dice.random() < 0.5:
                    client.grant(self.dice.choice([1, 1000, 100_000]), number)
                if self.dice.random() < 0.3:
                    client.cancel(number)
            client.ping()

    def many_streams(self):
        """A thousand streams, as many at once as the server allows."""
        with self.client("h2", "h2-tls", timeout=5) as client:
            for n in range(1000):
                if self.ending.is_set():
                    break
                client.begin("/storm" + self.dice.choice(PARALLEL))
                if n % 3 == 0:
                    client.cancel(client.last)


class Misbehaved(Exception):
    """What a client of the storm may get for what it does."""


@contextlib.contextmanager
def misbehaving():
    try:
        yield
    except (OSError, GoneAway, StreamReset) as error:
        raise Misbehaved from error


def storm(server, seed, seconds, reloads):
    """Lets the clients loose, for a while and with reloads that swap two versions of the service."""
    until = time.monotonic() + seconds
    with Hostile(server, seed) as clients:
        for n in range(reloads):
            before = clients.answers
            build_version(server, n)
            reload(server)
            await_true(lambda: clients.answers > before + 20 or clients.errors, 60, "answers")
        await_true(lambda: time.monotonic() > until or clients.errors, seconds + 1, "the end")
        if seed % 2:
            server.send_signal(signal.SIGTERM)  # in the midst of all
            assert server.wait() == 0, server.log
    assert not clients.errors, clients.errors
    assert clients.answers > 20


def build_version(server, n):
    if n < 2:
        server.versions.append(build_service(server.services, "storm", SOURCE, flags=[f"-DVERSION={n}"]).read_bytes())
        return
    new = server.services / "storm.new"
    new.write_bytes(server.versions[n % 2])
    new.rename(server.services / "storm.duda")


def finish(server, reloads):
    """Nothing is left of the storm, if the server was not stopped in it."""
    if not server.finished:
        server.drop_clients()
        server.wait_log("the configuration before the last reload is not in use any more", reloads)
        await_true(lambda: server.descriptors() <= server.baseline, 60, "the end of all connections")
        server.settle()
    server.stop()
    check_counts(server)


@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.load), pytest.param(2, marks=pytest.mark.slow)])
def test_a_storm_of_hostile_clients(start, seed):
    server = start({"HandlerTimeout": "1s", "SendTimeout": "3s", "ShutdownTimeout": "2s"})
    storm(server, seed, 3, 3)
    finish(server, 3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_long_storm_of_hostile_clients(start):
    server = start({"HandlerTimeout": "2s", "SendTimeout": "3s", "ShutdownTimeout": "3s"})
    storm(server, 4, 600, 60)
    finish(server, 60)
