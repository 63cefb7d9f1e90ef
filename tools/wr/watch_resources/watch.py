# SPDX-License-Identifier: Apache-2.0
"""The live view of a process without load: what it used in each interval, with the last minute as a sparkline."""

import collections
import contextlib
import dataclasses
import os
import select
import sys
import termios
import time
import tty
from typing import Callable, Iterator, Optional

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from . import WrError, clean
from .proc import ProcessTree, Sample, TcpCounts, TcpReader, cpu_between, listening_port

BARS = "▁▂▃▄▅▆▇█"
HISTORY = 60


@dataclasses.dataclass(frozen=True)
class Frame:
    """One interval; rates are per second. None where a value may not be read or there is no port."""

    seconds: float
    user_share: float
    system_share: float
    pss_kb: Optional[int]
    dirty_kb: Optional[int]
    processes: int
    threads: int
    voluntary: float
    involuntary: float
    minor_faults: float
    major_faults: float
    descriptors: Optional[int]
    queue: Optional[int]
    drops: int
    retransmits: int


# field: heading, format
COLUMNS: dict[str, tuple[str, str]] = {
    "user_share": ("user %", "{:.1%}"),
    "system_share": ("system %", "{:.1%}"),
    "pss_kb": ("PSS KB", "{:,}"),
    "dirty_kb": ("dirty KB", "{:,}"),
    "processes": ("processes", "{}"),
    "threads": ("threads", "{}"),
    "voluntary": ("voluntary/s", "{:.0f}"),
    "involuntary": ("involuntary/s", "{:.0f}"),
    "minor_faults": ("minor faults/s", "{:.0f}"),
    "major_faults": ("major faults/s", "{:.0f}"),
    "descriptors": ("descriptors", "{}"),
    "queue": ("accept queue", "{}"),
    "drops": ("drops", "{}"),
    "retransmits": ("retransmits", "{}"),
}


def make_frame(first: Sample, last: Sample, queue: Optional[int], before: TcpCounts, after: TcpCounts) -> Frame:
    ns = max(1, last.at_ns - first.at_ns)
    seconds = ns / 1e9
    cpu = cpu_between(first, last)
    used = last.counters.minus(first.counters)
    return Frame(
        seconds=seconds, user_share=cpu.user_ns / ns, system_share=cpu.system_ns / ns,
        pss_kb=last.memory.pss_kb if last.memory else None, dirty_kb=last.memory.dirty_kb if last.memory else None,
        processes=last.processes, threads=last.threads, voluntary=used.voluntary / seconds,
        involuntary=used.involuntary / seconds, minor_faults=used.minor_faults / seconds,
        major_faults=used.major_faults / seconds, descriptors=last.descriptors, queue=queue,
        drops=after.drops - before.drops, retransmits=after.retransmits - before.retransmits)


class Watcher:
    """Makes a frame of each interval. next() sleeps."""

    def __init__(self, pid: int, port: Optional[int] = None, interval: float = 1.0,
                 wait: Callable[[float], bool] = lambda seconds: bool(time.sleep(seconds))):
        self.tree, self.interval, self.wait = ProcessTree(pid), interval, wait
        if not self.tree.is_alive():
            raise WrError(f"there is no process with PID {pid}")
        self.tree.read(True)
        self.port = port if port is not None else listening_port(self.tree.pids_seen, pid)
        self.tcp = TcpReader(pid, self.port)

    def frames(self) -> Iterator[Frame]:
        """Until the process ends, or `wait` returns true."""
        first, before = self.tree.read(True), self.tcp.counts()
        while not self.wait(self.interval) and self.tree.is_alive():
            last, after = self.tree.read(True), self.tcp.counts()
            yield make_frame(first, last, self.tcp.queue() if self.port else None, before, after)
            first, before = last, after


def sparkline(values: list[float]) -> str:
    top = max(values, default=0)
    return "".join(BARS[min(len(BARS) - 1, int(value / top * len(BARS)))] if top else BARS[0] for value in values)


def format_value(frame: Frame, name: str) -> str:
    value = getattr(frame, name)
    return "-" if value is None else COLUMNS[name][1].format(value)


def render(title: str, frames: list[Frame]) -> Table:
    table = Table(title=Text(title), title_justify="left")
    table.add_column("")
    table.add_column("now", justify="right")
    table.add_column(f"the last {len(frames)}")
    for name, (heading, _) in COLUMNS.items():
        history = [getattr(frame, name) or 0 for frame in frames]
        table.add_row(heading, format_value(frames[-1], name), sparkline(history))
    return table


def header() -> str:
    return "  ".join(heading for heading, _ in COLUMNS.values())


def plain_row(frame: Frame) -> str:
    return "  ".join(format_value(frame, name).rjust(len(heading)) for name, (heading, _) in COLUMNS.items())


@contextlib.contextmanager
def single_keys() -> Iterator[Callable[[float], bool]]:
    """Yields a function that waits and returns whether q was pressed; keys are not echoed meanwhile."""
    fd = sys.stdin.fileno()
    saved = termios.tcgetattr(fd)

    def wait(seconds: float) -> bool:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([fd], [], [], left)[0]:
                keys = os.read(fd, 64)
                if not keys or b"q" in keys.lower():
                    return True
        return False

    try:
        tty.setcbreak(fd)
        yield wait
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, saved)


def watch_plain(watcher: Watcher, count: Optional[int]) -> None:
    print(header(), flush=True)
    for number, frame in enumerate(watcher.frames(), 1):
        print(plain_row(frame), flush=True)
        if number == count:
            return


def watch_live(watcher: Watcher, console: Console, count: Optional[int]) -> None:
    history: collections.deque = collections.deque(maxlen=HISTORY)
    title = f"PID {watcher.tree.pid} {clean(watcher.tree.name)}" + (f", port {watcher.port}" if watcher.port else "")
    with single_keys() as wait, Live(console=console, auto_refresh=False) as live:
        watcher.wait = wait
        live.update(Text(f"{title}: measuring; q ends"), refresh=True)
        for number, frame in enumerate(watcher.frames(), 1):
            history.append(frame)
            live.update(render(title + "; q ends", list(history)), refresh=True)
            if number == count:
                return


def watch(watcher: Watcher, count: Optional[int] = None) -> None:
    """Returns at q, after `count` frames, or when the process has ended, which it says."""
    console = Console()
    if console.is_terminal and sys.stdin.isatty():
        watch_live(watcher, console, count)
    else:
        watch_plain(watcher, count)
    if not watcher.tree.is_alive():
        print(f"PID {watcher.tree.pid} ({clean(watcher.tree.name)}) has ended")
