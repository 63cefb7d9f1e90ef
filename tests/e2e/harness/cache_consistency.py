# SPDX-License-Identifier: Apache-2.0
"""Consistency of answers: writers change files, readers ask for them over every protocol, a third thread reloads, and
each answer is compared with what the files were. See cache_history.py for what is allowed."""

import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import tempfile
import threading
import time
import traceback

from . import build, cache_writers
from .certificates import Authority, TlsClient
from .client import Client, ProtocolError, parse_date
from .h2 import GoneAway, H2Client, StreamReset
from .messages import request
from .server import Server, section, write_config
from .cache_history import Window, check

NOBODY = 65534
ROOT_SECONDS = 1.0  # the path of a root is looked at once in this time, unless its name is watched
SLACK_SECONDS = 0.25  # in addition to what the scheduler was seen to take
FEW, MANY = 6_000, 100_000

AGED_SECONDS = {"EachCycle": 4, "Notify 3s": 14, "Revalidate 1s": 14, "Immutable": 6}  # several ages, and reloads
MODES = {  # how old an answer may be, in seconds; None: as old as the last reload
    "none": 0.0,
    "EachCycle": 0.0,
    "Notify 3s": 0.0,
    "Revalidate 1s": 1.0,
    "Immutable": None,
}
UNREPORTED_AGE = {"Notify 3s": 3.0}  # of what the kernel does not report
HOSTS = ("off", "inside", "on", "variants", "try", "roots")

# The folder of the server's user, on the file system that is mounted for it and its children alone.
MOUNT = 'mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" "$4" && shift 4 && exec "$@"'


class Disk:
    """Where the files are: `area` is their folder for the server, `here` is the same for this process."""

    def __init__(self, kind, folder):
        self.kind, self.folder, self.area, self.lower = kind, folder, folder / "area", folder / "area"
        self.wrapper = []
        self.area.mkdir()
        if kind == "overlay":
            layers = [folder / name for name in ("lower", "upper", "work")]
            for layer in layers:
                layer.mkdir()
            self.lower = layers[0]
            self.wrapper = ["unshare", "-m", "--propagation", "private", "sh", "-c", MOUNT, "sh", *layers, self.area]
        if os.geteuid() == 0:  # which may read everything
            self.wrapper += ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]

    def here(self, server):
        return pathlib.Path(f"/proc/{server.pid}/root{self.area}") if self.kind == "overlay" else self.area


@contextlib.contextmanager
def make_disk(kind):
    """A disk of this kind: "disk" is where temporary files are, "tmpfs" and "overlay" are what they say."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="monkey-consistency-", dir="/dev/shm" if kind == "tmpfs" else None))
    folder.chmod(0o755)
    try:
        yield Disk(kind, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Lateness:
    """How late threads wake on this machine, which is what no server can be blamed for."""

    def __init__(self):
        self.worst, self.ending = 0.0, threading.Event()
        self.thread = threading.Thread(target=self.measure)

    def measure(self):
        while not self.ending.is_set():
            begin = time.monotonic()
            time.sleep(0.01)
            self.worst = max(self.worst, time.monotonic() - begin - 0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()


class Environment:
    """A server and its configuration; `mode` is a value of Files, or "none" for a server without the plugin."""

    def __init__(self, disk, mode, seed):
        self.disk, self.mode, self.seed, self.folder = disk, mode, seed, disk.folder
        self.random, self.reloads, self.valid_since = random.Random(seed), 0, 0.0
        self.workspace = cache_writers.Workspace(None)
        self.writers = cache_writers.make_writers(self.workspace, seed)
        self.ca = Authority(self.folder / "ca")
        self.pair = self.ca.make("localhost", "localhost", *HOSTS)
        if os.geteuid() == 0:
            os.chown(self.pair.key, NOBODY, NOBODY)
        for writer in self.writers:
            writer.lower(disk.lower / "root")
        self.write_config(2)
        arguments = ["-c", self.folder / "conf"]
        self.server = Server(*arguments, listeners=2, wrapper=disk.wrapper, program=build.for_others())
        self.workspace.root = disk.here(self.server) / "root"
        for writer in self.writers:
            writer.start()
        self.valid_since = time.monotonic()

    def find_writer(self, kind):
        return next(writer.name for writer in self.writers if isinstance(writer, kind))

    def host(self, name):
        root = self.disk.area / "root"
        keys = {"ServerName": name, "DocumentRoot": root, "SymLink": "On", "Indexfile": "index.html"}
        if name in ("off", "inside", "on"):
            keys["SymLink"] = name.capitalize()
        elif name == "variants":
            keys |= {"Precompressed": "br gzip", "PrecompressedMatch": "*.js"}
        elif name == "try":
            keys["TryFiles"] = f"$path $path.html /{self.find_writer(cache_writers.Fallbacks)}/last.html"
        else:
            keys["DocumentRoot"] = root / self.find_writer(cache_writers.Roots) / "current"
        text = section("HOST", keys) + section("TLS", self.pair.keys())
        return text if self.mode == "none" else text + section("CACHE", {"Files": self.mode})

    def write_config(self, workers):
        plain, secure = self.server.names if self.reloads else ["127.0.0.1:0"] * 2
        settings = {
            "Listen": [plain, f"{secure} tls"],
            "Workers": workers,
            "MaxKeepAliveRequest": 1_000_000,
            "KeepAliveTimeout": "60s",
            "ETag": "Portable",
        }
        loaded = ["liana", "tls"] + ["cache"] * (self.mode != "none") + ["static"]
        files = {"plugins.load": section("PLUGINS", {"Load": loaded})}
        files |= {f"sites/{name}": self.host(name) for name in HOSTS if name != "on"}
        files["sites/default"] = self.host("on")
        write_config(self.folder / "conf", self.disk.area / "root", settings, files=files)

    def reload(self):
        """Everything that was looked up before the signal is out of date when the new configuration is in use."""
        begin = time.monotonic()
        self.reloads += 1
        self.write_config(self.random.choice([1, 2, 2, 4]))
        self.server.send_signal(signal.SIGHUP)
        self.server.wait_log("the new configuration (is in use|cannot be used)", self.reloads)
        assert "cannot be used" not in self.server.log, self.server.log
        self.server.wait_log("the configuration before the last reload is not in use any more", self.reloads)
        self.valid_since = begin

    def window(self, ask, asked, valid_since, slack):
        reported = ask.reported and self.disk.kind != "overlay"
        age = MODES[self.mode] if reported else UNREPORTED_AGE.get(self.mode, MODES[self.mode])
        until = time.monotonic()
        since = valid_since if age is None else asked - (age + slack if age else 0)
        torn = valid_since if age is None else asked
        root_age = 0 if self.mode.startswith("Notify") and self.disk.kind != "overlay" else ROOT_SECONDS + slack
        return Window(asked, since, asked - root_age - (age or 0), torn, until)


# ── readers ──


def connect_plain(environment):
    return Client(environment.server.addresses[0], timeout=60)


def connect_slow(environment):
    """Whose answers are sent in several pieces."""
    return Client(environment.server.addresses[0], timeout=60, rcvbuf=4096)


def connect_tls(environment):
    return TlsClient(environment.server.addresses[1], environment.ca.context(alpn=["http/1.1"]), timeout=60)


def connect_h2(environment):
    return open_windows(H2Client(environment.server.addresses[0], timeout=60, window=1 << 30))


def connect_h2_tls(environment):
    context = environment.ca.context(alpn=["h2"])
    return open_windows(H2Client(environment.server.addresses[1], timeout=60, window=1 << 30, context=context))


def open_windows(client):
    """Nothing but requests is sent from here on: a server that begins a turn for something else may have looked at the
    file before the request was sent."""
    client.grant(1 << 30)
    client.ping()
    return client


class Reader:
    """Asks over one protocol, several requests at once, and checks each answer."""

    def __init__(self, run, number, connect, batch):
        self.run, self.environment, self.connect, self.batch = run, run.environment, connect, batch
        self.random = random.Random(f"{self.environment.seed}-reader-{number}")
        self.known = {}

    def work(self):
        while not self.run.over():
            self.choose_focus()
            with self.connect(self.environment) as client:
                ask_all = self.ask_streams if isinstance(client, H2Client) else self.ask_pipeline
                if not isinstance(client, H2Client):
                    client.ask("/", host="on")  # the first turn may have begun with the connection
                for _ in range(self.random.randint(1, 60)):
                    if self.run.over() or not self.ask_batch(client, ask_all):
                        break

    def ask_batch(self, client, ask_all):
        """Returns false at the end of the connection."""
        asks = [self.choose_ask() for _ in range(self.random.randint(1, self.batch))]
        self.valid_since, self.asked = self.environment.valid_since, time.monotonic()
        return ask_all(client, asks)

    def choose_focus(self):
        """The writers that a connection asks for, and how often it asks for the same again: a cache lives on that."""
        writers = self.environment.writers
        self.writers = writers if self.random.random() < 0.5 else [self.random.choice(writers)]
        self.again = self.random.choice([0.1, 0.5, 0.95])
        self.last = None

    def choose_ask(self):
        if self.last is None or self.random.random() > self.again:
            self.last = self.random.choice(self.writers).make_ask(self.random, self.known)
        return self.last

    def ask_pipeline(self, client, asks):
        data = b"".join(request(a.path, *a.fields(), method=a.method, host=a.host) for a in asks)
        for number, ask in enumerate(asks):
            try:
                if number == 0:
                    client.send(data)
                answer = client.response(ask.method)
            except (ProtocolError, ConnectionError) as error:
                return self.end(client, ask, error, number)
            self.take(ask, answer)
            if answer.closes:
                return False
        return True

    def end(self, client, ask, error, number):
        """An end in place of an answer is that of an idle connection; amid one, the server gives a file up."""
        if isinstance(error, ProtocolError) and not str(error).startswith("closed"):
            raise error
        if client.buffer or "before the end of" in str(error) or number and isinstance(error, ConnectionError):
            self.take(ask, None)
        else:
            self.run.lost += 1
        return False

    def ask_streams(self, client, asks):
        numbers = [client.begin(a.path, *a.fields(), method=a.method, authority=a.host) for a in asks]
        for number, ask in zip(numbers, asks):
            try:
                answer = client.response(number)
            except StreamReset as reset:
                if reset.code == 7:  # REFUSED_STREAM: nothing was done
                    self.run.lost += 1
                else:
                    self.take(ask, None)
                continue
            except (GoneAway, ConnectionError):
                if client.goaway is None or client.goaway[1]:
                    raise
                self.run.lost += 1
                return False
            self.take(ask, answer)
        return client.goaway is None

    def take(self, ask, answer):
        slack = SLACK_SECONDS + 2 * self.run.lateness.worst
        window = self.environment.window(ask, self.asked, self.valid_since, slack)
        self.run.count(answer, check(ask, answer, window))
        if answer is not None and answer["ETag"] and answer["Last-Modified"]:
            self.known[ask.key] = answer["ETag"], parse_date(answer["Last-Modified"])


READERS = [  # (how to connect, requests at once)
    (connect_plain, 16),
    (connect_plain, 1),
    (connect_slow, 4),
    (connect_h2, 8),
    (connect_tls, 8),
    (connect_h2_tls, 8),
]


class Run:
    """All threads of an environment, until so many answers have been checked or one was wrong."""

    def __init__(self, environment, answers):
        self.environment, self.wanted = environment, answers
        self.lateness, self.errors, self.ending = Lateness(), [], threading.Event()
        self.statuses, self.mixed, self.lost, self.changes = collections.Counter(), 0, 0, 0
        self.earliest = time.monotonic() + AGED_SECONDS.get(environment.mode, 0)

    def over(self):
        return self.ending.is_set() or (self.answers() >= self.wanted and time.monotonic() >= self.earliest)

    def answers(self):
        return self.statuses.total()

    def count(self, answer, mixed):
        self.statuses[answer.status if answer is not None else "end"] += 1
        self.mixed += mixed

    def write(self, writers):
        """One thread runs these writers, each at its pace."""
        due = {writer: time.monotonic() + writer.next_pause() for writer in writers}
        while not self.over():
            writer = min(due, key=due.get)
            if self.ending.wait(max(0, min(0.2, due[writer] - time.monotonic()))):
                return
            if due[writer] <= time.monotonic():
                writer.change()
                self.changes += 1
                due[writer] = time.monotonic() + writer.next_pause()

    def reload(self):
        while not self.over():
            if self.ending.wait(self.environment.random.uniform(1.0, 3.0)) or self.over():
                return
            self.environment.reload()

    def guard(self, work, *args):
        try:
            work(*args)
        except BaseException as error:  # reported by the test
            text = f"{error}, {traceback.extract_tb(error.__traceback__)[-3:]}"
            rest = text[1000:]
            self.errors.append(f"{work.__qualname__}: {text[:1000]}" + f" ... {rest[-5000:]}" * bool(rest))
            self.ending.set()

    def execute(self):
        writers = self.environment.writers
        works = [(self.write, writers[n::3]) for n in range(3)] + [(self.reload,)]
        works += [(Reader(self, n, *row).work,) for n, row in enumerate(READERS)]
        threads = [threading.Thread(target=self.guard, args=work) for work in works]
        with self.lateness:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not self.errors, f"MONKEY_SEED={self.environment.seed}\n" + "\n\n".join(self.errors)
        return self
