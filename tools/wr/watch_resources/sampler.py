# SPDX-License-Identifier: Apache-2.0
"""A thread that takes samples ten times a second, and what they say about the time between the first and the last."""

import dataclasses
import threading
import time
from typing import Callable, Optional

from .proc import Allowance, Memory, ProcessTree, Sample, TcpReader

INTERVAL_SECONDS = 0.1
SHARE_MAX = 0.05  # of one CPU goes into sampling; hundreds of processes are read less often


@dataclasses.dataclass(frozen=True)
class Mark:
    """A sample of the tree, with the connections that wait in the accept queue."""

    sample: Sample
    queue: int


class Sampler:
    """start() and stop() take the complete samples at both ends; the thread takes those between."""

    def __init__(self, tree: ProcessTree, tcp: Optional[TcpReader] = None, interval: float = INTERVAL_SECONDS):
        self.tree, self.tcp, self.interval = tree, tcp, interval
        self.queue_allowance = Allowance()  # the kernel may walk through a table of 262,144 buckets for it
        self.marks: list[Mark] = []
        self.cpu_ns = 0
        self.failure: Optional[Exception] = None
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, name="sampler", daemon=True)

    def start(self) -> None:
        self.take(complete=True)
        self.thread.start()

    def stop(self) -> None:
        """Ends the thread and takes the last sample; a second call does nothing."""
        if self.ended.is_set():
            return
        self.ended.set()
        self.thread.join()
        self.take(complete=True)

    def take(self, complete: bool = False) -> None:
        begin = time.thread_time_ns()
        self.marks.append(Mark(self.tree.read(complete), 0 if complete else self.read_queue()))
        self.cpu_ns += time.thread_time_ns() - begin

    def read_queue(self) -> int:
        """Returns 0 between two readings: only the maximum is of interest."""
        is_due = self.tcp is not None and self.queue_allowance.is_due()
        return self.queue_allowance.run(self.tcp.queue) if is_due else 0

    def run(self) -> None:
        try:
            self.take_samples()
        except Exception as error:  # for check(), in the thread that waits
            self.failure = error

    def take_samples(self) -> None:
        next_at = time.monotonic() + self.interval
        while not self.ended.wait(max(0.0, next_at - time.monotonic())):
            before = self.cpu_ns
            self.take()
            pause = (self.cpu_ns - before) / 1e9 * (1 / SHARE_MAX - 1)
            next_at = max(next_at + self.interval, time.monotonic() + pause)

    def check(self) -> None:
        """Raises what ended the thread."""
        if self.failure:
            raise self.failure

    @property
    def samples(self) -> list[Sample]:
        return [mark.sample for mark in self.marks]

    def queue_max(self) -> int:
        return max((mark.queue for mark in self.marks), default=0)


def rows(samples: list[Sample]) -> list[list]:
    """Returns the `samples` of a round: [t_s, cpu_ns, pss_kb, dirty_kb, threads, descriptors]."""
    first = samples[0]
    return [[
        round((sample.at_ns - first.at_ns) / 1e9, 3),
        sample.counters.cpu_ns - first.counters.cpu_ns,
        sample.memory.pss_kb if sample.memory else None,
        sample.memory.dirty_kb if sample.memory else None,
        sample.threads,
        sample.descriptors,
    ] for sample in samples]


def mean_over_time(samples: list[Sample], value: Callable[[Sample], float]) -> float:
    """Weighs each value by the time until the next sample, since samples may come late."""
    spans = [(after.at_ns - before.at_ns, value(before)) for before, after in zip(samples, samples[1:])]
    total = sum(span for span, _ in spans)
    return sum(span * each for span, each in spans) / total if total else value(samples[-1])


def summarize_memory(samples: list[Sample]) -> dict:
    """Returns the `memory_kb` of a round; nothing where memory may not be read."""
    known = [sample for sample in samples if sample.memory]
    if not known:
        return {}

    def of(name: str) -> Callable[[Sample], int]:
        return lambda sample: getattr(sample.memory or Memory(), name)

    return {
        "pss_mean": round(mean_over_time(known, of("pss_kb"))),
        "pss_max": max(map(of("pss_kb"), known)),
        "dirty_mean": round(mean_over_time(known, of("dirty_kb"))),
        "dirty_max": max(map(of("dirty_kb"), known)),
    }
