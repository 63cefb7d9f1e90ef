# SPDX-License-Identifier: Apache-2.0
"""The server as a process. A thread reads its log and its notifications and puts events into a queue:

("line", text)      a line of the log
("ready", None)     it serves, or a reload has ended; all lines about that are in the queue before it
("flushed", None)   the lines until a flush() are in the queue before it
("ended", status)   it has ended
"""

import collections
import contextlib
import ctypes
import fcntl
import os
import pathlib
import queue
import re
import selectors
import signal
import socket
import struct
import subprocess
import threading
import time

from . import DudacError
from .config import SHUTDOWN_SECONDS, Config
from .events import Events
from .reason import CRASH
from .sanitize import Reports

START_SECONDS = 60
STOP_SECONDS = SHUTDOWN_SECONDS + 8
LEAK_SECONDS = 20  # to look for leaks and to name their frames
LAST_LINES = 200  # a stack trace has 64 addresses, and more lines than these because of functions that were inlined
LINE_BYTES_MAX = 1 << 16
READS_MAX = 64  # before notifications are looked at again; more than the log's pipe holds
LOG_PIPE_BYTES = 1 << 20  # what the kernel lets a user have
PR_SET_PDEATHSIG = 1
CREDENTIALS = struct.Struct("3i")  # process, user, group: struct ucred
# What the server says about its configuration, of which only the services can be wrong, and about duda_main().
PROBLEM = re.compile(r"/conf/(?:monkey\.conf|sites/default):\d+:\d+: (?:error|warning): (.*)$|"
                     r"^\S+Z error +(service \S+: duda_main\(\) .*)$|(the new configuration cannot be used .*)$")
WARNING = re.compile(r"^\S+Z (?:warn|error) ")
LISTENING = re.compile(r"listening on \S*:(\d+)$")


class ServerEnded(DudacError):
    """The server has ended without a request for it."""


class ServerSilent(DudacError):
    """It does not get ready."""


def describe_status(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        return f"{signal.Signals(-status).name} ({signal.strsignal(-status)})"
    return f"signal {-status}"


def prepare_child(libc) -> None:
    """Runs in the child: the server ends if dudac is killed."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class NotifySocket:
    """Receives READY=1 of the protocol of sd_notify; the name is in the abstract namespace, where every local user can
    send, so the sender is looked at."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind("")  # a name that the kernel chooses
        self.name = "@" + os.fsdecode(self.socket.getsockname()[1:])

    def is_ready(self, pid: int) -> bool:
        """Receives a message. Returns whether it says so, and comes from that process."""
        text, rest, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(CREDENTIALS.size))
        senders = [CREDENTIALS.unpack(data)[0] for level, kind, data in rest
                   if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)]
        return senders == [pid] and b"READY=1" in text.split(b"\n")


class Server:
    """One process; `events` may get events of others, too."""

    def __init__(self, program: pathlib.Path, config: Config, events: Events, on_line,
                 environment: dict, reports: Reports):
        self.program, self.config, self.events, self.on_line = program, config, events, on_line
        self.environment, self.reports = environment, reports
        self.lines = collections.deque(maxlen=LAST_LINES)
        self.was_ready = self.was_killed = self.has_crashed = False
        self.process = self.reader = self.port = self.pidfd = None

    def start(self) -> None:
        self.notify = NotifySocket()
        libc = ctypes.CDLL(None)
        environment = {**os.environ, **self.environment, "NOTIFY_SOCKET": self.notify.name}
        try:
            self.process = subprocess.Popen(
                [self.program, "-c", self.config.folder],
                stdin=subprocess.DEVNULL,
                stdout=None if self.config.options.prints else subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,  # Ctrl-C is for dudac, which ends the server
                preexec_fn=lambda: prepare_child(libc),
            )
        except OSError as error:
            raise DudacError(f"{self.program} cannot be run: {error.strerror}") from None
        self.pidfd = os.pidfd_open(self.process.pid)
        self.flushes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        os.set_blocking(self.process.stderr.fileno(), False)
        with contextlib.suppress(OSError):  # the server loses what does not fit: it does not wait for its log
            fcntl.fcntl(self.process.stderr, fcntl.F_SETPIPE_SZ, LOG_PIPE_BYTES)
        self.reader = threading.Thread(target=self.read_events, daemon=True)
        self.reader.start()

    # ── the reader's thread ──

    def read_events(self) -> None:
        """Until the process ends. The end of its log does not tell: what a service has started may have it open."""
        log, rest, ended = self.process.stderr, b"", False
        with selectors.DefaultSelector() as selector:
            for file in (log, self.notify.socket, self.pidfd, self.flushes):
                selector.register(file, selectors.EVENT_READ)
            while not ended:
                files = [key.fileobj for key, _ in selector.select()]
                ended = self.pidfd in files
                ready = self.notify.socket in files and self.notify.is_ready(self.process.pid)
                rest, is_open = self.read_lines(log, rest)
                if not is_open and log in files:
                    selector.unregister(log)
                if ready:
                    self.was_ready = True
                    self.events.put(("ready", None))
                if self.flushes in files:
                    os.eventfd_read(self.flushes)
                    self.events.put(("flushed", None))
        if rest:
            self.take_line(rest.decode("utf-8", "replace"))
        with contextlib.suppress(ProcessLookupError):  # what a service has started
            os.killpg(self.process.pid, signal.SIGKILL)
        self.events.put(("ended", self.process.wait()))

    def read_lines(self, log, rest: bytes):
        """Reads what there is. Returns the beginning of a line, and whether the log is still open."""
        for _ in range(READS_MAX):
            chunk = log.read(LINE_BYTES_MAX)
            if not chunk:
                return rest, chunk is None  # nothing more now, or for ever
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self.take_line(line.decode("utf-8", "replace"))
        return rest, True

    def take_line(self, line: str) -> None:
        if match := LISTENING.search(line):
            self.port = int(match[1])
        is_report = self.reports.take(line)
        if not is_report:
            self.keep_line(line)
        self.on_line(line, is_report)
        self.events.put(("line", line))

    def keep_line(self, line: str) -> None:
        """What was logged before a crash has no part in it."""
        if not self.has_crashed and CRASH.search(line):
            self.has_crashed = True
            self.lines.clear()
        self.lines.append(line)

    # ── what is done with it ──

    def flush(self) -> None:
        """Has the reader put all lines of the log that are there into the queue, and ("flushed", None) behind them."""
        os.eventfd_write(self.flushes, 1)

    def wait_ready(self, on_other=None) -> list:
        """Waits until it serves, or until a reload has ended. Returns the lines of that; events of others are for
        `on_other`."""
        lines, deadline = [], time.monotonic() + START_SECONDS
        while True:
            try:
                kind, value = self.events.get(deadline - time.monotonic())
            except queue.Empty:
                sentence = f"the server has said nothing for {START_SECONDS} s; does duda_main() block?"
                raise ServerSilent(sentence) from None
            if kind == "ready":
                return lines
            if kind == "ended":
                raise self.describe_end(value)
            if kind == "line":
                lines.append(value)
                deadline = time.monotonic() + START_SECONDS
            elif on_other:
                on_other(kind, value)

    def reload(self, on_other=None) -> list:
        self.process.send_signal(signal.SIGHUP)
        return self.wait_ready(on_other)

    def describe_end(self, status: int) -> ServerEnded:
        if self.reports.lines:
            return ServerEnded(f"the server has ended: {self.reports.summarize()}")
        how = "did not end after SIGTERM, and was killed" if self.was_killed else \
            f"has ended: {describe_status(status)}"
        problems = [] if self.was_ready else find_problems(self.lines)
        return ServerEnded("\n".join([f"the server {how}", *problems]))

    def stop(self) -> int:
        """Ends it; connections in use may finish for a moment, of which a server that was never ready has none. Returns
        its exit status, or the negative signal."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.terminate()
        seconds = STOP_SECONDS if self.was_ready else SHUTDOWN_SECONDS
        try:
            self.process.wait(seconds + LEAK_SECONDS * self.config.options.finds_leaks)
        except subprocess.TimeoutExpired:
            self.was_killed = True
            self.process.kill()
            self.process.wait()
        if self.reader:
            self.reader.join(5)
        self.notify.socket.close()
        self.process.stderr.close()
        os.close(self.pidfd)
        os.close(self.flushes)
        return self.process.returncode


def find_problems(lines: list) -> list:
    """What the lines say of services that were not loaded or have not started."""
    found = [match[1] or match[2] or match[3] for match in map(PROBLEM.search, lines) if match]
    return list(dict.fromkeys(found))


def find_warnings(lines: list) -> list:
    """The warnings and errors that the log has besides: why duda_main() has returned an error."""
    return [line for line in lines if WARNING.search(line) and not PROBLEM.search(line)]
