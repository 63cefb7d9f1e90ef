# SPDX-License-Identifier: Apache-2.0
"""Starts programs that end with `wr`: each in its own session, so that Ctrl-C reaches only `wr`, and with a
signal for the death of its parent: the thread that starts a program must live as long. They are ended by their PID."""

import ctypes
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
from typing import Optional, Sequence

from . import WrError
from .proc import list_numbers, read_stat

END_SECONDS = 2
PR_SET_CHILD_SUBREAPER = 36

libc = ctypes.CDLL(None, use_errno=True)


def with_death_signal(command: Sequence[str]) -> list[str]:
    """setpriv becomes the program, so the PID stays; no code of ours runs between fork and exec."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else list(command)


def list_children() -> set[int]:
    """Returns the processes of this one that have their own session."""
    pids = {pid for pid in list_numbers("/proc") if (stat := read_stat(pid)) and stat.parent == os.getpid()}
    return {pid for pid in pids if session_of(pid) not in (None, os.getsid(0))}


def session_of(pid: int) -> Optional[int]:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


class Orphans:
    """Ends, at the end of the block, what servers started in sessions of their own and left behind: `wr` becomes its
    parent. A server that goes into the background is such a process."""

    def __enter__(self) -> "Orphans":
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.before = list_children()
        return self

    def __exit__(self, *_) -> None:
        while left := list_children() - self.before:
            for pid in left:
                self.end(pid)

    @staticmethod
    def end(pid: int) -> None:
        """Its own children become ours when it has ended."""
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


class Program:
    """One run of a program. Its output goes into files, which do not make it wait."""

    def __init__(self, command: Sequence[str], folder: str, env: Optional[dict] = None):
        if not shutil.which(command[0]):
            raise WrError(f"there is no program {command[0]}")
        self.command = list(command)
        self.outputs = [self.open_output(folder, name) for name in ("stdout", "stderr")]
        self.status: Optional[int] = None
        self.cpu_us: dict = {}
        self.process = subprocess.Popen(
            with_death_signal(command), cwd=folder, env=env, stdin=subprocess.DEVNULL,
            stdout=self.outputs[0], stderr=self.outputs[1], start_new_session=True)
        self.pid = self.process.pid
        self.pidfd = os.pidfd_open(self.pid)

    @staticmethod
    def open_output(folder: str, name: str):
        return tempfile.NamedTemporaryFile(dir=folder, prefix=name + ".")

    def wait(self, seconds: float) -> bool:
        """Waits until it ends, at most for this time; returns whether it has ended."""
        if self.status is None and select.select([self.pidfd], [], [], seconds)[0]:
            self.reap()
        return self.status is not None

    def reap(self) -> None:
        _, status, usage = os.wait4(self.pid, 0)
        self.status = self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_us = {"user": round(usage.ru_utime * 1e6), "system": round(usage.ru_stime * 1e6)}

    def text(self, index: int) -> str:
        return pathlib.Path(self.outputs[index].name).read_text(encoding="utf-8", errors="replace")

    @property
    def stdout(self) -> str:
        return self.text(0)

    @property
    def stderr(self) -> str:
        return self.text(1)

    def signal_group(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)  # its own session and group
        except (ProcessLookupError, PermissionError):
            pass

    def end(self) -> None:
        """Asks it to end, and kills it and what it started when it does not."""
        if self.status is None:
            self.signal_group(signal.SIGTERM)
            self.wait(END_SECONDS)
        if self.status is None:
            self.signal_group(signal.SIGKILL)
            self.reap()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_) -> None:
        self.end()
        os.close(self.pidfd)
        for output in self.outputs:
            output.close()
