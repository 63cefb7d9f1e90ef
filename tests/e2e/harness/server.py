# SPDX-License-Identifier: Apache-2.0
"""The server as a process: its configuration, its addresses, what it writes, and whether it leaks."""

import collections
import contextlib
import os
import pathlib
import random
import re
import resource
import select
import signal
import socket
import stat
import subprocess
import threading
import time

from . import build
from .h2 import H2Client
from .protocol import Client

LISTENING = re.compile(r"listening on (\S+)")
REPORT = re.compile(
    r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|SUMMARY: \w+Sanitizer|runtime error:|Assertion .* failed"
)
START_SECONDS = 60  # of a busy machine with sanitizers
STOP_SECONDS = 60
INOTIFY = "anon_inode:inotify"
SETTLE_SECONDS = 30  # a busy machine closes the last descriptors late


def await_true(condition, seconds=30.0, what="the condition", pause=0.005):
    """Polls for what has no event to wait for, the more seldom the longer; returns the condition's last value.

    A file that it reads may be missing before that."""

    def ask():
        with contextlib.suppress(FileNotFoundError):
            return condition()

    begin = time.monotonic()
    while not (value := ask()):
        waited = time.monotonic() - begin
        if waited > seconds:
            raise AssertionError(f"{what} did not come true within {seconds} s")
        time.sleep(max(pause, min(waited / 16, 0.05)))
    return value


def send_signal(process, number):
    """Waits until SIGSTOP has stopped all threads: until then they may still answer."""
    process.send_signal(number)
    if number == signal.SIGSTOP:
        await_true(lambda: set(thread_states(process.pid).values()) == {"T"}, 30, "the stop")


def read_threads(pid, file):
    """A file in /proc of each thread, by its id; one may end while they are read."""
    texts = {}
    for thread in sorted(map(int, os.listdir(f"/proc/{pid}/task"))):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            texts[thread] = pathlib.Path(f"/proc/{pid}/task/{thread}/{file}").read_text()
    return texts


def thread_states(pid):
    return {thread: text.rpartition(")")[2].split()[0] for thread, text in read_threads(pid, "stat").items()}


def links_of_descriptors(pid):
    """What each open descriptor is, by its number; one may be closed while they are read."""
    links = {}
    for entry in sorted(os.listdir(f"/proc/{pid}/fd"), key=int):
        with contextlib.suppress(FileNotFoundError):
            links[entry] = os.readlink(f"/proc/{pid}/fd/{entry}")
    return links


def names_of_listeners(pid):
    """What is open so that checks by other users know the server's sockets (lib/core/net/announce.h)."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/net/unix") as file:
        return {f"socket:[{line.split()[6]}]" for line in file if f" @monkey/{pid}/" in line}
    return set()


def await_end(pid, seconds):
    """Waits for the end of a child that has not been waited for yet, or for so long."""
    fd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(fd)


def is_refused(address):
    """Are connections refused there?"""
    try:
        Client(address, timeout=1).close()
        return False
    except ConnectionRefusedError:
        return True
    except (ConnectionResetError, TimeoutError):  # it was in the queue of a listener that has just been closed
        return False


def is_alive(pid):
    """For processes that are not children of this one."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the latter, if it ends amid the reading
        return " Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    return False


def find_processes(text):
    """The ids of those whose command line has it."""
    found = set()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if text.encode() in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
    return found


def section(name, keys):
    """A section of a configuration file; a list repeats its key."""
    rows = [f"[{name}]"]
    for key, value in keys.items():
        rows += [f"    {key} {each}" for each in (value if isinstance(value, (list, tuple)) else [value])]
    return "\n".join(rows) + "\n"


# files of a server without the cache, and of one that opens a file for each request
UNLOADED = {"plugins.load": section("PLUGINS", {"Load": "liana static"})}
UNCACHED = {"plugins/cache/cache.conf": section("CACHE", {"Files": "Off"})}
# a file of a server that speaks no HTTP/2
HTTP1_ONLY = {"plugins/static/static.conf": section("HTTP2", {"Enabled": "Off"})}


def write_config(folder, root, server=None, *, host=None, text="", mime=None, files=None):
    """A configuration folder: monkey.conf, sites/default (with `text` at its end), and `files` (name to text) that add
    or replace."""
    folder = pathlib.Path(folder)
    # tests look into the process, as another program of its user
    readable = {} if os.geteuid() == 0 or build.PRESET == "small" else {"CoreDumps": "On"}
    settings = {"Listen": "127.0.0.1:0", "Workers": 1, **readable, **(server or {})}
    texts = {
        "monkey.conf": section("SERVER", {k: v for k, v in settings.items() if v is not None}),
        "sites/default": section("HOST", {"ServerName": "localhost", "DocumentRoot": root, **(host or {})}) + text,
    }
    if mime:
        texts["monkey.mime"] = section("MIMETYPES", mime)
    for name, text in with_cache({**texts, **(files or {})}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_name(f".{path.name}.new")
        written.write_text(text)
        written.replace(path)  # a server that starts or reloads at this moment reads a whole file
    return folder


def with_cache(texts):
    """The files with the cache of MONKEY_CACHE, unless they say themselves what is cached, or load no static files."""
    load = texts.get("plugins.load")
    if not build.CACHE or any("[CACHE]" in text for text in texts.values()) or (load and "Load static" not in load):
        return texts
    if load:
        texts["plugins.load"] = load.replace("Load static", "Load cache\n    Load static")
    return {**texts, "plugins/cache/cache.conf": section("CACHE", {"Files": build.CACHE})}


def conf_of(args):
    """The configuration folder of a command line; None: it has none."""
    return next((after for before, after in zip(args, args[1:]) if before == "-c"), None)


def changes_user(args):
    """Whether the server is started by root and becomes another user, by its configuration."""
    conf = conf_of(args)
    path = pathlib.Path(conf) / "monkey.conf" if conf and os.geteuid() == 0 else None
    return bool(path and path.is_file() and re.search(r"^ *User +\S", path.read_text(errors="replace"), re.M))


def run(*args, timeout=120, program=None, **rest):
    """Runs the binary, or another one, to its end."""
    rest.setdefault("env", build.environment())
    program = program or (build.for_others() if "user" in rest or changes_user(args) else build.binary())
    return subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=timeout, **rest)


class Server:
    """A running server. Its stderr is read by a thread, so that tests wait for a line instead of a time."""

    driven_clock = None  # that of the fixture `clock`

    def __init__(
        self,
        *args,
        listeners=1,
        env=None,
        nofile=None,
        user=None,
        wrapper=(),
        wait=True,
        cwd=None,
        program=None,
        pass_fds=(),
        start_seconds=START_SECONDS,
    ):
        self.logged, self.partial, self.news, self.clients = [], b"", threading.Condition(), []
        self.conf = conf_of(args)
        self.ended = self.finished = self.stopping = self.has_cached = False
        program = program or (build.for_others() if user or changes_user(args) else build.binary())
        self.process = subprocess.Popen(
            [*wrapper, program, *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**build.environment(), **self.merge(env or {})},
            cwd=cwd,
            start_new_session=True,
            pass_fds=pass_fds,
            preexec_fn=(lambda: self.confine(nofile, user)) if nofile or user else None,
        )
        os.set_blocking(self.process.stderr.fileno(), False)
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        self.names = []
        if wait:
            try:
                self.await_listeners(listeners, start_seconds)
            except BaseException:
                self.kill()
                raise
        names = []
        with contextlib.suppress(FileNotFoundError):  # it has ended
            names = self.files_but_logs()
        self.baseline, self.inotify_at_start = len(names), names.count(INOTIFY)
        self.caches()  # while its configuration is there

    def merge(self, env):
        """With what a driven clock needs; its library comes after those of the test."""
        own = self.driven_clock.env if self.driven_clock else {}
        libraries = [each["LD_PRELOAD"] for each in (env, own) if "LD_PRELOAD" in each]
        return {**own, **env, **({"LD_PRELOAD": " ".join(libraries)} if libraries else {})}

    @staticmethod
    def confine(nofile, user):
        if nofile:
            resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))
        if user:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

    # ── the log ──

    def drain(self):
        """Reads what the server has written by now."""
        with self.news:
            while not self.ended:
                try:
                    data = os.read(self.process.stderr.fileno(), 65536)
                except BlockingIOError:
                    return
                self.ended = not data
                *lines, self.partial = (self.partial + (data or b"\n" * bool(self.partial))).split(b"\n")
                self.logged += [line.decode("utf-8", "backslashreplace") for line in lines]
                self.news.notify_all()

    def read_log(self):
        poll = select.poll()
        poll.register(self.process.stderr, select.POLLIN)
        while not self.ended:
            poll.poll()
            self.drain()

    @property
    def lines(self):
        """Those of the log, with all that was written before the call."""
        with self.news:
            self.drain()
            return list(self.logged)

    @property
    def log(self):
        return "\n".join(self.lines)

    def wait_log(self, pattern, count=1, seconds=START_SECONDS):
        """Waits until `count` lines match; returns the matches."""

        search, found, seen = re.compile(pattern).search, [], 0

        def has_enough():
            nonlocal seen
            found.extend(filter(None, map(search, self.logged[seen:])))
            seen = len(self.logged)
            return len(found) >= count

        with self.news:
            self.news.wait_for(lambda: has_enough() or self.ended, seconds)
        assert len(found) >= count, f"{count} x {pattern!r} not in the log:\n{self.log}"
        return found

    def await_listeners(self, count, seconds=START_SECONDS):
        self.names = [m[1] for m in self.wait_log(LISTENING.pattern, count, seconds)]

    # ── addresses ──

    @property
    def addresses(self):
        return [address_of(name) for name in self.names]

    @property
    def port(self):
        return next(a[1] for a in self.addresses if isinstance(a, tuple))

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def connect(self, listener=0, kind=Client, **rest):
        client = kind(self.addresses[listener], **rest)
        self.clients.append(client)
        return client

    def connect_h2(self, listener=0, **rest):
        return self.connect(listener, H2Client, **rest)

    def talk(self, data, methods=(), **rest):
        """One connection: sends everything, returns all responses up to the server's close."""
        with self.connect(**rest) as client:
            client.send_all_you_can(data)
            return client.responses(methods)

    def statuses(self, data, methods=(), **rest):
        return [answer.status for answer in self.talk(data, methods, **rest)]

    # ── the process ──

    @property
    def pid(self):
        return self.process.pid

    @property
    def alive(self):
        return self.process.poll() is None

    def descriptors(self):
        """Without those of the file cache."""
        try:
            return len(self.without_cache(self.files_but_logs()))
        except FileNotFoundError:
            return 0

    def caches(self):
        """May it keep files open? It serves files, or did, and no `plugins.load` leaves the cache out."""
        folder = pathlib.Path(self.conf or "/none")
        files = [folder] if folder.is_file() else folder.rglob("*")
        texts = [path.read_text(errors="replace") for path in files if path.is_file()]
        word = "[CACHE]" if (folder / "plugins.load").exists() else "DocumentRoot"
        serves = self.conf is None or any(word in text or "[CACHE]" in text for text in texts)
        self.has_cached |= serves and (build.PLUGINS / "cache.so").exists()
        return self.has_cached

    def without_cache(self, names):
        """The names of open files without those that the cache keeps, and what reports their changes."""
        if not self.caches():
            return names
        kept = collections.Counter(self.cached_files())
        kept[INOTIFY] = min(1, names.count(INOTIFY) - self.inotify_at_start)  # which it opens for the first file
        return list((collections.Counter(names) - kept).elements())

    def cached_files(self):
        """The names of regular files that are open for reading."""
        found = []
        for entry, name, flags in self.read_descriptors():
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.stat(entry).st_mode) and flags & os.O_ACCMODE == os.O_RDONLY:
                    found.append(name)
        return found

    def threads(self):
        return sorted(map(int, os.listdir(f"/proc/{self.pid}/task")))

    def thread_names(self):
        return {thread: name.strip() for thread, name in read_threads(self.pid, "comm").items()}

    def find_threads(self, pattern):
        """The ids of the threads whose names begin with a match."""
        return {thread for thread, name in self.thread_names().items() if re.match(pattern, name)}

    def threads_named(self, name):
        """The number of threads whose names begin so."""
        return len(self.find_threads(re.escape(name)))

    def worker_threads(self):
        """The ids of the workers' threads; `monkey: watch` is none."""
        return self.find_threads(r"monkey: w\d")

    def count_workers(self):
        return len(self.worker_threads())

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def await_idle(self):
        """Waits for half a second without work: a server that makes no progress but runs never has one."""

        def is_idle():
            before = self.cpu_seconds()
            time.sleep(0.5)
            return self.cpu_seconds() - before <= 0.04

        await_true(is_idle, 60, "an idle server")

    def memory_kb(self, key="VmRSS"):
        """A row of /proc/PID/status, or of smaps_rollup (Private_Dirty, Pss)."""
        file = "status" if key.startswith("Vm") else "smaps_rollup"
        return int(re.search(rf"^{key}:\s+(\d+) kB", pathlib.Path(f"/proc/{self.pid}/{file}").read_text(), re.M)[1])

    def send_signal(self, number):
        self.stopping |= number in (signal.SIGTERM, signal.SIGINT)
        self.process.send_signal(number)

    def drop_clients(self):
        for client in self.clients:
            client.close()
        self.clients.clear()

    def settle(self):
        """After a test: all connections are closed, nothing has leaked, nothing has crashed."""
        self.drop_clients()
        self.assert_healthy()
        left = []

        def is_clean():
            left[:] = self.files_but_logs()  # the same look decides: a reload may still open something for a moment
            if len(left) > allowed:
                left[:] = self.without_cache(left)
            return len(left) <= allowed

        allowed = self.baseline
        for _ in range(3 if self.driven_clock else 0):  # what is closed at intervals of a second
            if not is_clean():
                self.driven_clock.advance(1.05)
                time.sleep(0.02)
        with contextlib.suppress(AssertionError):
            await_true(is_clean, SETTLE_SECONDS)
        leaked = len(left) - allowed
        assert leaked <= 0, f"{leaked} descriptors leaked, now open: {left}\n{self.log[-2000:]}"

    def read_descriptors(self):
        """The entry, the name and, of what has a path, the flags of each, without modules, which are kept open where a
        sanitizer is (lib/core/base/library.c), and without names of listening sockets: there is one for eight."""
        folder, found = f"/proc/{self.pid}", []
        names = names_of_listeners(self.pid)
        for entry in os.listdir(f"{folder}/fd"):
            with contextlib.suppress(OSError):
                name, flags = os.readlink(f"{folder}/fd/{entry}"), 0
                if name in names:
                    continue
                if build.SANITIZED and name.removesuffix(" (deleted)").endswith(".so"):
                    continue
                if name.startswith("/"):
                    info = pathlib.Path(f"{folder}/fdinfo/{entry}").read_text()
                    flags = int(re.search(r"flags:\s+(\d+)", info)[1], 8)
                found.append((f"{folder}/fd/{entry}", name, flags))
        return found

    def open_files(self):
        return sorted(name for _, name, _ in self.read_descriptors())

    def files_but_logs(self):
        """Without one descriptor of each log, which a thread opens sooner or later."""
        names, logs = [], set()
        for _, name, flags in self.read_descriptors():
            if flags & os.O_APPEND and name not in logs and not name.endswith(" (deleted)"):
                logs.add(name)
            else:
                names.append(name)
        return sorted(names)

    def assert_healthy(self):
        assert self.alive, f"the server ended with {self.process.returncode}:\n{self.log[-6000:]}"
        assert not REPORT.search(self.log), self.log[-6000:]

    def wait(self, seconds=STOP_SECONDS):
        """Waits for the end of the process; returns its exit code."""
        if self.alive:
            await_end(self.pid, seconds)  # wait() with a time limit polls, and sleeps for up to 50 ms
        code = self.process.wait(0.1)
        self.reader.join(60)
        self.finished = True
        return code

    def kill(self):
        if self.alive:
            self.process.kill()
            self.process.wait()

    def stop(self, number=signal.SIGTERM):
        """The graceful stop, which must succeed and leave no report of a sanitizer."""
        self.drop_clients()
        if self.alive:
            self.send_signal(number)
        try:
            code = self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server did not stop within {STOP_SECONDS} s:\n{self.log[-4000:]}") from None
        assert code == 0, f"exit code {code}:\n{self.log[-6000:]}"
        assert not REPORT.search(self.log), self.log[-6000:]


def free_port():
    """Below the ports that the kernel gives to clients, which would take a free one of theirs at any time."""
    first_of_clients = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(min(10000, first_of_clients - 1000), first_of_clients)
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            return port


def address_of(name):
    """From the form of the log to the form of the socket module."""
    if name.startswith("unix:"):
        return name.removeprefix("unix:")
    host, _, port = name.rpartition(":")
    return host.strip("[]"), int(port)
