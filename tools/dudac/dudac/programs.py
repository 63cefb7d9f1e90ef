# SPDX-License-Identifier: Apache-2.0
"""Runs compilers and other programs to their end, several at once. Each has limits of time and output, and a process
group of its own, which is ended at the limit and when dudac is interrupted."""

import contextlib
import os
import pathlib
import select
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import Callable, Optional

from . import DudacError
from .interrupts import await_files

OUTPUT_BYTES_MAX = 1 << 20
CHUNK_BYTES = 1 << 16
CHUNKS_MAX = 32  # of one program before the next one; more than a pipe holds
END_SECONDS = 2  # from SIGTERM to SIGKILL; compilers remove their temporary files meanwhile


@dataclass(eq=False)
class Program:
    command: list
    folder: pathlib.Path  # in which it runs
    seconds: float
    errors: Optional[int] = subprocess.STDOUT  # where its standard error goes; None is that of dudac
    status: Optional[int] = None  # its exit status or negative signal; None if it was ended at its limit of time
    output: bytearray = field(default_factory=bytearray)
    left_out: int = 0  # bytes
    began_ns: int = 0  # by the clock of the files

    def text(self, errors: str = "replace") -> str:
        """What it has printed."""
        note = f"\n({self.left_out} more bytes of output are left out)\n" if self.left_out else ""
        return self.output.decode("utf-8", errors) + note


class Child:
    """The process of a program."""

    def __init__(self, program: Program):
        self.program, program.began_ns = program, time.time_ns()
        self.process = subprocess.Popen(program.command, cwd=program.folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=program.errors, process_group=0)
        self.pidfd = os.pidfd_open(self.process.pid)
        self.files = [self.process.stdout.fileno(), self.pidfd]  # that await_children() looks at
        self.deadline = time.monotonic() + program.seconds
        os.set_blocking(self.process.stdout.fileno(), False)

    def read_output(self) -> bool:
        """Returns whether more may follow."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(CHUNKS_MAX):
                chunk = os.read(self.process.stdout.fileno(), CHUNK_BYTES)
                if not chunk:
                    return False
                taken = chunk[:OUTPUT_BYTES_MAX - len(self.program.output)]
                self.program.output += taken
                self.program.left_out += len(chunk) - len(taken)
        return True

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def close(self) -> int:
        """Returns the status of a process that has ended."""
        status = self.process.wait()
        self.process.stdout.close()
        os.close(self.pidfd)
        return status


def end_children(children: list) -> None:
    """Ends them and what they have started. A process that was not waited for keeps the number of its group."""
    for child in children:
        child.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    for child in children:
        select.select([child.pidfd], [], [], max(0, deadline - time.monotonic()))
        child.send_signal(signal.SIGKILL)
        child.close()


def start_child(program: Program) -> Child:
    try:
        return Child(program)
    except (OSError, ValueError) as error:  # ValueError: a null byte
        if not program.folder.is_dir():
            raise DudacError(f"the folder {program.folder} does not exist any more") from None
        reason = error.strerror if isinstance(error, OSError) else error
        raise DudacError(f"{program.command[0]} cannot be run: {reason}") from None


def run_programs(programs: list, at_once: int = 1, on_end: Callable = lambda program: None) -> None:
    """Returns when all have ended. Their results are in them, and `on_end` is called with each as soon as it ends."""
    waiting, children = programs[::-1], []
    try:
        while waiting or children:
            while waiting and len(children) < at_once:
                children.append(start_child(waiting.pop()))
            for program in await_children(children):
                on_end(program)
    finally:
        end_children(children)


def await_children(children: list) -> list:
    """Handles what happens next to them. Returns the programs that have ended, whose children leave the list."""
    ended = []
    limit = min(child.deadline for child in children)
    owners = {file: child for child in children for file in child.files}
    for file in await_files(owners, limit - time.monotonic()):
        child = owners[file]
        if child not in children:
            continue
        is_open, is_end = child.read_output(), file == child.pidfd
        if not is_open and not is_end:
            child.files.remove(file)
        if is_end:
            children.remove(child)
            child.program.status = child.close()
            ended.append(child.program)
    for child in [each for each in children if time.monotonic() > each.deadline]:
        children.remove(child)
        end_children([child])
        ended.append(child.program)
    return ended


def run_program(program: Program) -> Program:
    run_programs([program])
    return program
