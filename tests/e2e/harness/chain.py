# SPDX-License-Identifier: Apache-2.0
"""A server that is changed for others while it runs (USR2)."""

import contextlib
import os
import signal

from . import build
from .content import populate
from .protocol import Client
from .server import Server, await_true, is_alive, write_config

SMALL, LARGE = b"small" * 100, b"large" * 400_000


class Chain:
    """A server and those that took its place; all of them write to the same log. It has these modules next to it."""

    def __init__(self, folder, settings=None, modules=(), files=None, **rest):
        self.folder, self.root = folder, populate(folder / "root", {"small": SMALL, "large": LARGE})
        self.settings = {"Workers": 2, "ShutdownTimeout": "30s", **(settings or {})}
        write_config(folder / "conf", self.root, self.settings, files=files)
        self.program = build.install(folder, *modules)
        self.server = Server("-c", folder / "conf", program=self.program, **rest)
        self.pids = [self.server.pid]

    def upgrade(self):
        os.kill(self.pids[-1], signal.SIGUSR2)
        found = self.server.wait_log(r"upgrade: process (\d+) serves", len(self.pids))
        self.pids.append(int(found[-1][1]))

    def await_old(self):
        for pid in self.pids[:-1]:
            await_true(lambda pid=pid: self.server.process.poll() is not None and not is_alive(pid), 30, "its end")

    def ask(self):
        with Client(self.server.addresses[0]) as client:
            assert client.ask("/small").body == SMALL

    def stop(self):
        last = self.pids[-1]
        if is_alive(last):
            os.kill(last, signal.SIGTERM)
        await_true(lambda: self.server.process.poll() is not None and not is_alive(last), 30, "the end")
        assert self.server.process.wait() == 0
        assert "Sanitizer" not in self.server.log, self.server.log[-5000:]

    def kill(self):
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
