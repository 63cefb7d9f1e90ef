# SPDX-License-Identifier: Apache-2.0
"""Reloads that change limits, workers, schedulers, listeners, transports, plugins and hosts at random, while
clients ask over HTTP/1.1 and HTTP/2, in the clear and over TLS. Every request is answered, by one generation; only the
listener that changes what it speaks may refuse."""

import contextlib
import random
import re
import signal
import socket
import ssl

import pytest

from harness import build
from harness.backend import Backend
from harness.certificates import TlsClient
from harness.client import ProtocolError
from harness.content import populate
from harness.h2 import GoneAway, H2Client
from harness.load import Load
from harness.messages import request
from harness.proxies import TEXT, proxy_section
from harness.server import Server, await_true, free_port, section, write_config

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
    pytest.mark.skipif(
        not (build.speaks("tls") and build.speaks("h2") and (build.PLUGINS / "proxy.so").exists()),
        reason=f"the preset {build.PRESET} lacks tls, HTTP/2 or the proxy"
    ),
]
DONE, REFUSED = "the new configuration is in use", "the new configuration cannot be used"
SMALL, LARGE = 1000, 2_000_000

# Each reload takes some of these; None: the default. None of them refuses what the clients ask for.
LIMITS = {
    "MaxHeaders": [None, 6, 40, 300],
    "MaxHeadSize": [None, "9K", "60K"],
    "MaxRequestLine": [None, 200, "4K"],
    "MaxRequestSize": [None, "30K", "10M"],
    "MaxBodySize": [None, "40K", "1G"],
    "MaxDiscardSize": [None, "30K", "1M"],
    "MaxKeepAliveRequest": [None, 2, 7],
    "MaxHandshakes": [None, 8, 512],
    "KeepAlive": [None, "Off", "On"],
    "KeepAliveTimeout": ["50s", "60s"],
    "Timeout": ["60s", "100s"],
    "BodyTimeout": [None, "40s"],
    "SendTimeout": [None, "40s"],
    "MemoryLimit": [None, "8M", "256M"],
    "NotSentLowat": [None, "16K", "1M"],
    "SendBuffer": [None, "32K"],
    "Backlog": [None, 64, 4096],
}
H2_LIMITS = {
    "MaxConcurrentStreams": [None, 8, 250],
    "MaxContinuations": [None, 1, 30],
    "MaxSettings": [None, 20],
    "MaxPings": [None, 20],
    "MaxEmptyFrames": [None, 20],
    "MaxWindowUpdates": [None, 500],
}
OPTIONAL = ["health", "maintenance", "redirect", "cors", "compress", "proxy", "logger"]
WAYS = ["", "tls", "proxy", None]  # of the listener that changes; None: it is away


def answer_version(peer):
    """The target is that of the section: a version."""
    while True:
        peer.respond(peer.request().target[1:].encode() * SMALL, TEXT)


class Storm:
    """A server, and the configurations that it goes through."""

    def __init__(self, folder, certificate, seed, scheduler):
        self.folder, self.certificate, self.random, self.reloads = folder, certificate, random.Random(seed), 0
        self.plain, self.tls, self.changing = free_port(), free_port(), free_port()
        for version in "ab":
            populate(folder / version, {"v": version.encode() * SMALL, "big": version.encode() * LARGE})
        self.backend = Backend(answer_version)
        self.write("a", {"Scheduler": scheduler, "Workers": 2}, {}, OPTIONAL, "", True)
        self.server = Server("-c", folder / "conf", listeners=3)

    def choose(self, table):
        rows = self.random.sample(sorted(table), self.random.randint(0, len(table)))
        values = {name: self.random.choice(table[name]) for name in rows}
        return {name: value for name, value in values.items() if value is not None}

    def site(self, name, version):
        text = section("HOST", {"ServerName": name, "DocumentRoot": self.folder / version})
        text += section("TLS", self.certificate.keys()) + section("HEADERS", {"Set": f"X-Version {version}"})
        if "proxy" in self.loaded:
            to = {"To": f"{self.backend.url}/{version}", "KeepAlive": self.random.choice([0, 2, 32])}
            text += proxy_section(None, {"Match": "/p", "KeepAliveTimeout": "1s", **to})
        if "logger" in self.loaded:
            text += section("LOGGER", {"AccessLog": self.folder / "access.log"})
        return text

    def write(self, version, settings, h2, plugins, way, other):
        self.loaded = [name for name in OPTIONAL if name in plugins]
        listen = [f"127.0.0.1:{self.plain}", f"127.0.0.1:{self.tls} tls"]
        listen += [] if way is None else [f"127.0.0.1:{self.changing} {way}".strip()]
        first = [name for name in self.loaded if name != "logger"]
        order = ["liana", "tls", *first, "headers", "static", *(["logger"] if "logger" in self.loaded else [])]
        files = {
            "plugins.load": section("PLUGINS", {"Load": order}),
            "sites/default": self.site("localhost", version),
        }
        (self.folder / "conf" / "sites" / "other").unlink(missing_ok=True)
        if other:
            files["sites/other"] = self.site("other.example", version)
        common = {"Listen": listen, "TrustedProxies": "127.0.0.1", "FastOpen": 0, "MinBodyRate": 0}
        common.update({name: "60s" for name in ("Timeout", "KeepAliveTimeout", "ShutdownTimeout")})
        write_config(self.folder / "conf", self.folder / version, {**common, **settings}, files=files)
        with open(self.folder / "conf" / "monkey.conf", "a") as file:
            file.write(section("HTTP2", h2) if h2 else "")

    def change(self):
        settings = {
            "Workers": self.random.randint(1, 4),
            "Scheduler": self.random.choice(["reuseport", "fair"]),
            **self.choose(LIMITS),
        }
        plugins = self.random.sample(OPTIONAL, self.random.randint(0, len(OPTIONAL)))
        self.write(
            "ab"[self.reloads % 2], settings, self.choose(H2_LIMITS), plugins, self.random.choice(WAYS),
            self.random.random() < 0.5,
        )  # fmt: skip
        self.server.send_signal(signal.SIGHUP)
        self.reloads += 1
        self.server.wait_log(f"{DONE}|{REFUSED}", self.reloads)
        assert REFUSED not in self.server.log, self.server.log


    def finish(self):
        """All that the last configuration does not hold is gone, and everything is as in the beginning."""
        self.write("a", {"Workers": 2}, {}, OPTIONAL, "", True)
        self.server.send_signal(signal.SIGHUP)
        self.reloads += 1
        self.server.wait_log(f"{DONE}|{REFUSED}", self.reloads)
        assert REFUSED not in self.server.lines[-1], self.server.log
        self.server.wait_log("the configuration before the last reload is not in use any more", 2)


class StormLoad(Load):
    small, large = "/v", "/big"

    def __init__(self, storm, ca):
        self.storm, self.versions = storm, set()
        self.contexts = [ca.context(), ca.context(alpn=["http/1.1"])]
        super().__init__(("127.0.0.1", storm.plain))

    def kinds(self):
        return [
            self.keep, self.renew, self.upload, self.slow, self.other, self.keep_tls, self.renew_tls,
            self.streams, self.streams_tls, self.half_a_head, self.at_the_changing_listener, self.from_the_backend,
        ]  # fmt: skip

    def seen(self, path, answer):
        version = answer["X-Version"] or answer["x-version"]
        assert answer.status == 200, answer
        assert answer.body == version.encode() * (SMALL if path == self.small else LARGE), "bytes of two generations"
        self.versions.add(version)
        self.answers += 1

    def connect_tls(self):
        return TlsClient(("127.0.0.1", self.storm.tls), self.contexts[1], timeout=30)

    def other(self):
        """Of a host that comes and goes; while it is away the default one answers."""
        with self.connect() as client:
            client.send(request(self.small, "Connection: close", host="other.example"))
            self.seen(self.small, client.response())

    def from_the_backend(self):
        """Which comes and goes, too."""
        with self.connect() as client:
            for _ in range(20):
                answer = client.ask("/p")
                assert answer.status == 404 or answer.body == answer["X-Version"].encode() * SMALL, answer
                if answer["Connection"] == "close":
                    return

    def half_a_head(self):
        """Whose second half comes under other limits than the first, perhaps: 200, or a refusal for them."""
        with self.connect() as client:
            client.send(f"GET {self.small} HTTP/1.1\r\nHost: localhost\r\n" + "A: 1\r\n" * 3)
            with self.connect() as another:
                self.seen(self.small, another.ask(self.small, "Connection: close"))
            client.send("B: 2\r\n" * 60 + "Connection: close\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                answer = client.response()
                assert answer.status in (200, 431), answer

    def keep_tls(self):
        with self.connect_tls() as client:
            for _ in range(20):
                answer = client.ask(self.small)
                self.seen(self.small, answer)
                if answer["Connection"] == "close":
                    return

    def renew_tls(self):
        with self.connect_tls() as client:
            self.seen(self.large, client.ask(self.large, "Connection: close"))

    def run_streams(self, client):
        """What a GOAWAY leaves out is asked again."""
        with client:
            for n in range(20):
                path = self.large if n % 7 == 6 else self.small
                number = client.begin(path)
                try:
                    self.seen(path, client.response(number))
                except (GoneAway, ConnectionError):
                    if client.goaway is None or client.goaway[1] or client.goaway[0] >= number:
                        raise
                    return
                if client.goaway:
                    return

    def streams(self):
        self.run_streams(H2Client(("127.0.0.1", self.storm.plain), timeout=30))

    def streams_tls(self):
        self.run_streams(H2Client(("127.0.0.1", self.storm.tls), timeout=30, context=self.contexts[0]))

    def at_the_changing_listener(self):
        """Whatever it speaks now: an answer of its, an alert, or an end."""
        with contextlib.suppress(OSError, ProtocolError, ssl.SSLError):
            with socket.create_connection(("127.0.0.1", self.storm.changing), timeout=30) as sock:
                sock.sendall(request(self.small, "Connection: close"))
                answer = b""
                while piece := sock.recv(65536):
                    answer += piece
                assert not answer or re.match(rb"HTTP/1\.1 (200|400) ", answer), answer
        with contextlib.suppress(OSError, ProtocolError, ssl.SSLError):
            with TlsClient(("127.0.0.1", self.storm.changing), self.contexts[1], timeout=30) as client:
                client.ask(self.small, "Connection: close")


def run_storm(storm, ca, reloads):
    with StormLoad(storm, ca) as load:
        for _ in range(reloads):
            before = load.answers
            storm.change()
            await_true(lambda: load.answers > before + 5 or load.errors, 60, "answers")
            assert not load.errors, load.errors
    assert not load.errors and not load.refused, load.errors
    assert load.versions == {"a", "b"}
    storm.finish()
    return load.answers


@pytest.fixture
def storm(tmp_path, certificate):
    made = []

    def start(seed, scheduler):
        made.append(Storm(tmp_path, certificate, seed, scheduler))
        return made[-1]

    yield start
    for one in made:
        try:
            one.server.stop()
        finally:
            one.server.kill()
            one.backend.kill()


@pytest.mark.parametrize(
    "seed, scheduler", [(1, "reuseport"), pytest.param(2, "fair", marks=pytest.mark.load)]
)
def test_a_storm_of_reloads(storm, ca, seed, scheduler):
    run_storm(storm(seed, scheduler), ca, 25)


class FullLoad(StormLoad):
    """More clients than connections are allowed: a refused or closed client tries again."""

    def kinds(self):
        return [self.keep, self.renew, self.idle, self.keep_tls, self.streams, self.streams_tls] * 3

    def forgives(self, error):
        return isinstance(error, (ProtocolError, OSError, AssertionError))

    def idle(self):
        with self.connect() as one, self.connect() as another:
            one.ask(self.small)
            another.ask(self.small)
            self.ending.wait(0.2)


def run_full(storm, ca, reloads):
    with FullLoad(storm, ca) as load:
        for n in range(reloads):
            storm.write(
                "ab"[n % 2],
                {
                    "Workers": storm.random.randint(1, 4),
                    "Scheduler": storm.random.choice(["reuseport", "fair", "fair"]),
                    "MaxConnections": storm.random.choice([4, 8, 16]),
                    "OverCapacity": storm.random.choice(["Resist", "Resist", "Drop", "TooBusy"]),
                    **storm.choose({"MemoryLimit": [None, "1M", "4M"], "FDLimit": [None, 120, 300]}),
                },
                {}, OPTIONAL, storm.random.choice(WAYS), n % 3 == 0,
            )  # fmt: skip
            storm.server.send_signal(signal.SIGHUP)
            storm.reloads += 1
            storm.server.wait_log(f"{DONE}|{REFUSED}", storm.reloads)
    assert not load.errors
    storm.finish()


@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.load), pytest.param(2, marks=pytest.mark.slow)])
def test_a_storm_of_reloads_of_a_full_server(storm, ca, seed):
    """Room is made while workers, schedulers and listeners change."""
    run_full(storm(seed, "fair"), ca, 25)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3, 7))
def test_a_long_storm_of_reloads(storm, ca, seed):
    answers = run_storm(storm(seed, "fair" if seed % 2 else "reuseport"), ca, 300)
    print(f"{answers} answers, 300 reloads")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [3, 4])
def test_a_long_storm_of_reloads_of_a_full_server(storm, ca, seed):
    run_full(storm(seed, "fair"), ca, 300)
