# SPDX-License-Identifier: Apache-2.0
"""Builds a folder and serves it. With --watch again after each change:

changed ──► build ──► reload: the server starts the new service next to the old one and ends the old one later
               │          │
               ▼          ▼ it does not start
            error page, until a build succeeds and the service starts; the old service continues behind it
"""

import contextlib
import dataclasses
import errno
import ipaddress
import os
import pathlib
import queue
import re
import shutil
import socket
import time

from . import DudacError
from .compiler import CompileError, build_services, find_compiler
from .config import Config, Options
from .data import copy_data
from .events import Events
from .folder import read_folder
from .installation import Installation
from .sanitize import KEEP_MAPPED, Reports, prepare_server
from .reason import describe_build, describe_crash, describe_start
from .screen import Screen, is_noise
from .server import PROBLEM, Server, ServerEnded, ServerSilent, find_problems, find_warnings

QUIET_SECONDS = 0.05  # after a change, before a build; an editor makes several changes at once
CHECK_SECONDS = 1  # without a change, whether the folder is there
QUIET_SECONDS_MAX = 1  # if there is always another one
OWN_URL = re.compile(r"\bservice (\S+): its URLs begin with (/\S*)$")
STAYS_MAPPED = "its code stays in memory: "  # as KEEP_MAPPED has it
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # by address, since not every machine knows the name localhost


def check_port(options: Options) -> None:
    """Another program may listen there with SO_REUSEPORT, and the kernel would let both have it."""
    try:
        ipaddress.ip_address(options.address)
    except ValueError:
        raise DudacError(f"{options.address!r} is no address; 127.0.0.1, 0.0.0.0 or ::1 are") from None
    family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
    with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((options.address, options.port))
            one.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise DudacError(f"port {options.port} is in use by another program; -p chooses another one") from None
            raise DudacError(f"cannot listen on {options.address}, port {options.port}: {error.strerror}") from None


def strip_time(line: str) -> str:
    """A line of the log without what differs when it comes again."""
    return line.partition(" ")[2]


def name_crash(server: Server, services: list) -> str:
    """What has gone wrong in a server that has ended, and where, in one line; nothing if that is unknown."""
    if server.reports.lines:
        return server.reports.describe_first()
    return describe_crash(list(server.lines), services)


class Session:
    """One folder and its server; close() ends and removes everything."""

    def __init__(self, folder: pathlib.Path, build, installation: Installation, options: Options, screen: Screen):
        self.folder, self.build_folder, self.installation = folder, build, installation
        self.options, self.screen = options, screen
        self.services, self.events = [], Events()
        self.server = self.config = self.failure = None
        self.program = None  # the path of the server, and changes of its environment
        self.has_said_console = False
        self.changed = set()  # paths since the last build
        self.own_urls = {}  # name of a service to what note_urls() has found for a version of its file
        self.served = None  # see describe_served()
        self.shown = set()  # lines, without their times, that are not shown again

    # ── build ──

    def build(self):
        self.services = read_folder(self.folder, self.build_folder, self.options.sanitize)
        if self.options.finds_leaks:
            for service in self.services:
                service.ldflags.append(KEEP_MAPPED)
        return build_services(self.services, self.installation, self.screen)

    # ── the data of a test ──

    def use_own_data(self) -> None:
        """Gives each service with data a folder of this run."""
        for service in self.services:
            if "DataDir" in service.folders:
                service.folders["DataDir"] = copy_data(service, self.open_config().top / "data" / service.name)

    def keep_data(self) -> None:
        """Moves them into the build folder, in the place of those that an earlier run has left."""
        if (made := self.open_config().top / "data").exists():
            kept = self.services[0].build / "test-data"
            shutil.rmtree(kept, ignore_errors=True)
            made.rename(kept)
            self.screen.notice(f"the data of the test is in {os.path.relpath(kept)}")

    # ── serve ──

    def start(self) -> list:
        """Starts the server with what was built; a service that does not start is a DudacError. Returns the log."""
        check_port(self.options)
        self.open_server()
        lines = self.server.wait_ready(self.note_change)
        if problems := find_problems(lines):
            raise DudacError("\n".join(problems))
        self.note_urls(lines)
        return lines

    def note_urls(self, lines: list) -> None:
        """Those that services have given themselves, from the log of a start. The server keeps what has not changed."""
        own = [match.groups() for match in map(OWN_URL.search, lines) if match]
        for service in self.services:
            version = service.file.exists() and service.file.stat().st_mtime_ns
            former, service.url, service.logged_name = self.own_urls.get(service.name, (None, None, service.name))
            if version != former:
                service.url, service.logged_name = None, service.name
            for name, url in own:
                if name == service.logged_name:
                    service.url, service.logged_name = url, url.strip("/") or name
            self.own_urls[service.name] = version, service.url, service.logged_name

    def open_config(self) -> Config:
        if self.config is None:
            self.config = Config(self.services[0].build, self.options)
        return self.config

    def open_server(self, services: list | None = None) -> None:
        self.open_config().write(self.services if services is None else services)
        if self.program is None:
            compiler = find_compiler(self.services[0]) if self.options.sanitize else []
            self.program = prepare_server(self.options.sanitize, self.options.finds_leaks, self.installation,
                                          compiler, self.screen)
        program, environment = self.program
        reports = Reports([str(service.folder) for service in self.services])
        self.server = Server(program, self.config, self.events, self.show_line, environment, reports)
        self.server.start()

    def show_line(self, line: str, is_report: bool) -> None:
        """A test shows reports at its end, and dudac reports problems itself."""
        if is_report and self.options.holds_reports or self.options.finds_leaks and STAYS_MAPPED in line:
            return
        if self.screen.verbose or not PROBLEM.search(line) and strip_time(line) not in self.shown:
            self.screen.log(line)

    def keep_port(self) -> None:
        """A server that is started again listens where the first one did."""
        self.options = self.config.options = dataclasses.replace(self.options, port=self.server.port)

    def urls(self) -> list:
        return [self.make_url(service) for service in self.services]

    def make_url(self, service) -> str:
        host = LOOPBACK.get(self.options.address, self.options.address)
        host = f"[{host}]" if ":" in host else host
        return f"{self.options.scheme}://{host}:{self.server.port}{service.path}"

    def say_urls(self) -> None:
        """Those of the consoles only once."""
        self.screen.say("serving  " + " ".join(self.urls()), fg="green")
        path = self.options.console
        consoles = [self.make_url(service).rstrip("/") + path for service in self.services
                    if self.config.has_console(service) and path.lower() != "off"]
        if consoles and not self.has_said_console:
            self.screen.say("console  " + " ".join(consoles), fg="green")
            self.has_said_console = True

    def wait_end(self) -> None:
        """Returns never: raises ServerEnded, or what a signal raises."""
        while True:
            kind, value = self.events.get()
            if kind == "ended":
                raise self.server.describe_end(value)

    def end(self) -> None:
        """Ends the server. Raises a DudacError if it has crashed meanwhile, or does now, as by duda_exit(), or if a
        sanitizer has found something."""
        server, self.server = self.server, None
        status = server.stop()
        if server.reports.lines:
            raise DudacError(server.reports.describe())
        if server.reports.cannot_find_leaks:
            self.screen.notice("leaks are not reported: LeakSanitizer needs ptrace(), which is not allowed here")
        if status and not server.reports.explains(status):
            raise server.describe_end(status)

    def note_change(self, kind: str, path) -> None:
        if kind == "changed":
            self.changed.add(path)

    # ── watch ──

    def start_watched(self) -> None:
        """The same as start(), but what does not compile or start is shown, and the server waits for a change."""
        check_port(self.options)
        try:
            self.build()
        except CompileError as error:
            self.note_build_failure(error)
        self.try_serve()

    def note_failure(self, sentence: str, title: str, text: str) -> None:
        self.screen.error(sentence)
        self.failure = (title, text)

    def note_build_failure(self, error: CompileError) -> None:
        self.note_failure(str(error), describe_build(error.output, self.services) or str(error), error.output)

    def serve_change(self) -> None:
        """Starts or reloads the server after a build; shows or clears the error page."""
        if self.failure:
            self.open_config().set_failure(*self.failure)
        lines = self.apply()
        problems = find_problems(lines)
        if problems and not self.failure:
            warnings = find_warnings(lines)
            self.note_failure("\n".join(problems), describe_start(problems[0], warnings),
                              "\n".join([*problems, "", *warnings]).strip())
            self.config.set_failure(*self.failure)
            self.reload_page(lines)
        self.config.show_failure(bool(self.failure))
        if not self.failure:
            self.say_urls()

    def reload_page(self, lines: list) -> None:
        """Has the server read the page of a failure. The service fails once more, and says again what is in `lines`."""
        self.shown = set(map(strip_time, lines))
        self.server.reload(self.note_change)
        self.shown = set()

    def try_serve(self) -> None:
        try:
            self.serve_change()
        except (ServerEnded, ServerSilent) as error:
            self.drop_server(error)

    def drop_server(self, error: DudacError) -> None:
        """After its crash, or because it blocks: the next one shows why, and has no services until the next change."""
        self.screen.error(str(error))
        self.screen.notice("it starts again after the next change")
        server, log = self.server, [line for line in self.server.lines if not is_noise(line)]
        if server.port:
            self.keep_port()
        server.stop()
        self.server = None
        with contextlib.suppress(queue.Empty):  # what it has said until then is not said by the next one
            while True:
                self.note_change(*self.events.get(0))
        text = server.reports.describe() if server.reports.lines else "\n".join(log)
        self.failure = (name_crash(server, self.services) or str(error), text or str(error))
        self.serve_page()

    def serve_page(self) -> None:
        self.open_config().set_failure(*self.failure)
        self.config.show_failure(True)
        try:
            self.open_server([])
            self.server.wait_ready(self.note_change)
            self.keep_port()
        except (ServerEnded, ServerSilent):  # then there is no page
            self.server.stop()
            self.server = None

    def describe_served(self) -> tuple:
        """Differs if there is something new to serve, also if another dudac has built it."""
        files = [service.file.stat() for service in self.services if service.file.exists()]
        return self.open_config().host_text(self.services), [(file.st_ino, file.st_mtime_ns) for file in files]

    def apply(self) -> list:
        """Returns what the server has logged about it."""
        self.served = self.describe_served()
        if self.server is None:
            self.open_server()
            lines = self.server.wait_ready(self.note_change)
            self.keep_port()
        else:
            self.config.write(self.services)
            lines = self.server.reload(self.note_change)
        self.note_urls(lines)
        return lines

    def await_change(self, watcher) -> None:
        """Waits for changes until there are none for a moment."""
        deadline = time.monotonic() + QUIET_SECONDS_MAX if self.changed else None
        while deadline is None or time.monotonic() < deadline:
            watcher.check()
            try:
                kind, value = self.events.get(QUIET_SECONDS if deadline else CHECK_SECONDS)
            except queue.Empty:
                if deadline:
                    return
                continue
            if kind == "ended" and self.server:
                self.drop_server(self.server.describe_end(value))
            self.note_change(kind, value)
            if self.changed and deadline is None:
                deadline = time.monotonic() + QUIET_SECONDS_MAX

    def rebuild(self) -> bool:
        """Returns whether there is something new to serve."""
        changed, self.changed, failed_before = self.changed, set(), self.failure
        self.failure = None
        try:
            result = self.build()
            restarts = any(self.is_configuration(path) for path in changed)
            if restarts and not result.linked:
                self.renew_files()
            is_new = self.served != self.describe_served()
        except CompileError as error:
            self.note_build_failure(error)
        except (DudacError, OSError) as error:  # a file may vanish meanwhile
            self.note_failure(str(error), str(error), str(error))
        if self.failure:
            return True
        return bool(failed_before) or is_new or self.server is None

    def is_configuration(self, path: str) -> bool:
        folders = [str(service.folders.get("ConfDir", "")) for service in self.services]
        return any(folder and path.startswith(folder + "/") for folder in folders)

    def renew_files(self) -> None:
        """Adds bytes behind the shared objects, so that a reload starts the services again: files of the same content
        are the same service to the server."""
        for service in self.services:
            copy = service.file.with_suffix(".copy")
            try:
                copy.write_bytes(service.file.read_bytes() + time.time_ns().to_bytes(8, "big"))
                copy.rename(service.file)
            finally:
                copy.unlink(missing_ok=True)

    def watch(self, watcher) -> None:
        """Returns never."""
        while True:
            self.await_change(watcher)
            try:
                watcher.renew()
                if self.rebuild():
                    self.try_serve()
            except (DudacError, OSError):  # of files that were in the folder
                watcher.check()
                raise

    def stop_server(self) -> None:
        if self.server is None:
            return
        was_alive = self.server.process is not None and self.server.process.poll() is None
        if (status := self.server.stop()) and was_alive:
            self.screen.error(str(self.server.describe_end(status)))

    def close(self) -> None:
        """Ends everything."""
        try:
            self.stop_server()
        finally:
            if self.config:
                self.config.close()
