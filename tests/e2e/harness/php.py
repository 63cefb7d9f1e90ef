# SPDX-License-Identifier: Apache-2.0
"""php-fpm of a test, in its own folder."""

import contextlib
import glob
import os
import pathlib
import shutil
import signal
import socket
import subprocess

import pytest

from .server import await_true, is_alive, send_signal

PROGRAM = next(iter(sorted(glob.glob("/usr/sbin/php-fpm*"), reverse=True)), None)
needs_php = pytest.mark.skipif(not PROGRAM, reason="php-fpm is not installed")
needs_php_cgi = pytest.mark.skipif(not shutil.which("php-cgi"), reason="php-cgi is not installed")
START_SECONDS = 60


class PhpFpm:
    """A pool with `children` processes, on a Unix socket or a `port`."""

    def __init__(self, folder, children=2, port=None, **pool):
        self.folder, self.port, self.process = folder, port, None
        folder.mkdir(parents=True, exist_ok=True)
        self.socket = folder / "fpm.sock"
        self.to = f"127.0.0.1:{port}" if port else f"unix:{self.socket}"
        rows = {"listen": self.to.removeprefix("unix:"), "listen.backlog": 1024}
        rows |= {"pm": "static", "pm.max_children": children}
        rows |= {"php_admin_flag[display_errors]": "off", **pool}
        if os.geteuid() == 0:
            rows |= {"user": "root", "group": "root"}
        text = f"[global]\nerror_log = {folder}/log\ndaemonize = no\n[www]\n"
        (folder / "fpm.conf").write_text(text + "".join(f"{key} = {value}\n" for key, value in rows.items()))
        self.start()

    options = ["-n", "-d", "log_errors=1"]

    def start(self):
        command = [PROGRAM, "-F", "-R", "-y", self.folder / "fpm.conf", *self.options]
        with open(self.folder / "output", "ab") as output:
            self.process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output)
        await_true(self.is_up, START_SECONDS, "the start of php-fpm")

    def is_up(self):
        assert self.process.poll() is None, (self.folder / "output").read_text()
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET if self.port else socket.AF_UNIX) as client:
            client.connect(("127.0.0.1", self.port) if self.port else str(self.socket))
            return True
        return False

    def children(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in text.split()]

    def reload(self):
        self.process.send_signal(signal.SIGUSR2)

    def kill(self):
        """Ends it and its children at once; stopped first, it starts none that would be missed."""
        children = []
        if self.process.poll() is None:
            send_signal(self.process, signal.SIGSTOP)
            children = self.children()
            self.process.kill()
        self.process.wait()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await_true(lambda: not any(map(is_alive, children)), START_SECONDS, "the end of php-fpm")


class PhpWithExtensions(PhpFpm):
    """With those that the system has, for databases, pictures and XML."""

    options = []
