# SPDX-License-Identifier: Apache-2.0
"""Runs one round: a generator against a server while a sampler reads /proc, and marks it if it may not be trusted.

    machine, tree ── first sample          last sample ── machine, tree
                          │ generator runs      │
                          └─ a sample each 0.1 s┘
"""

import dataclasses
import datetime
import os
import tempfile
import time
from typing import Callable, Iterator, Optional
from urllib.parse import urlsplit

from . import WrError
from .generators import Answers, Generator, Load
from .machine import Machine, MachineSample, pressure_between
from .proc import ProcessTree, Sample, TcpReader, cpu_between, list_family, read_io, read_stat
from .results import DISTURBED, ERRORS, GENERATOR_LIMITED, REPEATED, Round
from .sampler import Sampler, rows, summarize_memory
from .spawn import Program

POLL_SECONDS = 0.1
LOOK_SECONDS_MAX = 2 * POLL_SECONDS  # what one look at an idle server counts
SETTLE_SECONDS = 0.02  # for the server to close its last connections
EXTRA_SECONDS = 30  # how much longer than its duration a generator may take
DEFAULT_PORTS = {"http": 80, "https": 443}


class RoundError(WrError):
    """A round that has no result: the server ended or hangs, or the generator failed."""


class NoAnswers(RoundError):
    """The generator has had no answer, while the server was there."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """When a round is marked or given up. A share of 1 is one CPU."""

    others_max: float = 0.05
    generator_share: float = 0.9
    stall_seconds: float = 10.0
    round_seconds: float = 600.0


@dataclasses.dataclass(frozen=True)
class Target:
    """The server under load, as a process that runs already."""

    pid: int
    name: str
    port: Optional[int] = None
    helpers: tuple = ()  # the ids of processes that work for it: neither its own nor others

    def describe(self) -> str:
        return f"the server (PID {self.pid}, {self.name})"


@dataclasses.dataclass(frozen=True)
class Progress:
    """What is known while a round runs; `done` is a share, None where the generator does not tell."""

    clients: int
    seconds: float
    done: Optional[float]
    cpus_used: float
    sample: Sample


OnProgress = Callable[[Progress], None]


def make_target(pid: int, url: str) -> Target:
    """Raises WrError when there is no such process."""
    stat = read_stat(pid)
    if stat is None or stat.state in "ZXx":
        raise WrError(f"there is no process with PID {pid}")
    return Target(pid, stat.name, port_of(url))


def port_of(url: str) -> Optional[int]:
    parts = urlsplit(url)
    return parts.port or DEFAULT_PORTS.get(parts.scheme)


def now_text() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


class StallWatch:
    """Tells when the server's CPU time has not grown for a while. A pause between two looks, when the whole machine was
    stopped or too busy for this process, counts as one look: the server could not run either."""

    def __init__(self, limit_seconds: float, clock: Callable[[], float] = time.monotonic):
        self.limit, self.clock = limit_seconds, clock
        self.cpu_ns, self.idle, self.looked_at = -1, 0.0, clock()

    def is_stalled(self, cpu_ns: int) -> bool:
        now = self.clock()
        step, self.looked_at = min(now - self.looked_at, LOOK_SECONDS_MAX), now
        self.idle = 0.0 if cpu_ns != self.cpu_ns else self.idle + step
        self.cpu_ns = cpu_ns
        return 0 < self.limit <= self.idle


class Measurement:
    """One run of a generator against a server. `measure` may be called once."""

    def __init__(self, target: Target, generator: Generator, load: Load, limits: Limits = Limits(),
                 machine: Optional[Machine] = None, on_progress: Optional[OnProgress] = None):
        self.target, self.generator, self.load, self.limits = target, generator, load, limits
        self.machine = machine or Machine()
        self.on_progress = on_progress
        self.tree = ProcessTree(target.pid)
        self.tcp = TcpReader(target.pid, target.port)
        self.sampler = Sampler(self.tree, self.tcp)
        self.io: dict = {}  # of the server, before the round; then that of the round

    def measure(self) -> Round:
        """Raises RoundError; the generator has ended in any case."""
        if not self.tree.is_alive():
            raise RoundError(f"{self.target.describe()} has ended")
        self.generator.refuse(self.load)
        with tempfile.TemporaryDirectory(prefix="wr-") as folder:
            return self.measure_in(folder)

    def measure_in(self, folder: str) -> Round:
        command = self.generator.command(self.load, folder)
        started, own_before, counts = now_text(), time.process_time_ns(), self.tcp.counts()
        before, self.io = self.machine.read(), read_io(list_family(self.target.pid))
        self.sampler.start()
        try:
            with Program(command, folder) as program:
                self.wait(program)
                time.sleep(SETTLE_SECONDS)
                self.sampler.stop()
                self.sampler.check()
                after, io = self.machine.read(), read_io(list_family(self.target.pid))
                self.io = {name: max(0, value - self.io.get(name, 0)) for name, value in io.items()}
                answers = self.read_answers(program, folder)
        finally:
            self.sampler.stop()
        own_ns = time.process_time_ns() - own_before
        return self.make_round(started, program, answers, (before, after), own_ns, counts)

    def wait(self, program: Program) -> None:
        """Until the generator ends; raises RoundError when the server or the generator will not come to an end."""
        begin = time.monotonic()
        stall = StallWatch(self.limits.stall_seconds)
        planned = self.load.seconds
        deadline = begin + (self.limits.round_seconds if planned is None else planned + EXTRA_SECONDS)
        while not program.wait(POLL_SECONDS):
            self.sampler.check()
            sample = self.sampler.marks[-1].sample
            self.check_server(stall, sample)
            if time.monotonic() > deadline:
                raise RoundError(f"the round with {self.load.clients} clients did not end within "
                                 f"{deadline - begin:g} s; {self.generator.name} was ended")
            self.report(program, time.monotonic() - begin, sample)
        if not self.tree.is_alive():
            raise self.server_ended()

    def check_server(self, stall: StallWatch, sample: Sample) -> None:
        if not self.tree.is_alive():
            raise self.server_ended()
        if stall.is_stalled(sample.counters.cpu_ns):
            raise RoundError(f"{self.target.describe()} hangs: in the round with {self.load.clients} clients it used "
                             f"no CPU time for {self.limits.stall_seconds:g} s")

    def server_ended(self) -> RoundError:
        return RoundError(f"{self.target.describe()} ended during the round with {self.load.clients} clients")

    def report(self, program: Program, seconds: float, sample: Sample) -> None:
        if not self.on_progress:
            return
        planned = self.load.seconds
        done = (min(1.0, seconds / planned) if planned
                else self.generator.progress(self.load, program.stdout, program.stderr))
        samples = self.sampler.samples[-10:]
        span = samples[-1].at_ns - samples[0].at_ns
        used = samples[-1].counters.cpu_ns - samples[0].counters.cpu_ns
        self.on_progress(Progress(self.load.clients, seconds, done, used / span if span else 0.0, sample))

    def read_answers(self, program: Program, folder: str) -> Answers:
        try:
            answers = self.generator.read(self.load, program.stdout, program.stderr, folder)
        except WrError as error:
            raise RoundError(f"{error}; its exit status was {program.status}") from error
        if answers.count <= 0:
            errors = ", ".join(f"{name} {count}" for name, count in answers.errors.items())
            raise NoAnswers(f"{self.generator.name} got no answer from {self.load.url} with {self.load.clients} "
                             f"clients" + (f"; errors: {errors}" if errors else ""))
        return answers

    def make_round(self, started: str, program: Program, answers: Answers,
                   machine: tuple[MachineSample, MachineSample], own_ns: int, counts) -> Round:
        samples = self.sampler.samples
        first, last = samples[0], samples[-1]
        cpu = cpu_between(first, last)
        if not cpu.total_ns:
            raise RoundError(f"{self.target.describe()} used no CPU time while {answers.count:,} answers came: another "
                             f"process answers {self.load.url}")
        used = last.counters.minus(first.counters)
        cpu_us = {"user": cpu.user_ns // 1000, "system": cpu.system_ns // 1000, "total": cpu.total_ns // 1000}
        generator = self.describe_generator(program, answers)
        generator_ns = sum(program.cpu_us.values()) * 1000
        ours = {os.getpid(), program.pid, *self.tree.pids_seen, *self.target.helpers}
        known_ns = cpu.total_ns + generator_ns + own_ns + self.helpers_ns(*machine)
        others_ns = self.machine.others_ns(*machine, known_ns, ours)
        share = others_ns / max(1, machine[1].at_ns - machine[0].at_ns)
        tcp = self.tcp.counts()
        return Round(
            session="", n=0, workload="", server=self.target.name, clients=self.load.clients, started=started,
            seconds=round(answers.seconds, 6), generator=generator, answers=answers.count, errors=answers.errors,
            statuses=answers.statuses, rps=round(answers.rps, 2), latency_us=answers.latency_us, hdr=answers.hdr,
            cpu_us=cpu_us, cost_us={name: round(us / answers.count, 4) for name, us in cpu_us.items()},
            memory_kb=summarize_memory(samples), threads=max(sample.threads for sample in samples),
            switches={"voluntary": used.voluntary, "involuntary": used.involuntary},
            faults={"minor": used.minor_faults, "major": used.major_faults},
            descriptors_max=max((each.descriptors for each in samples if each.descriptors is not None), default=None),
            tcp={"queue_max": self.sampler.queue_max(), "drops": tcp.drops - counts.drops,
                 "retransmits": tcp.retransmits - counts.retransmits},
            others_share=round(share, 4), pressure=pressure_between(*machine), page_cache_kb=machine[1].page_cache_kb,
            marks=self.find_marks(share, generator["cpu_share"], answers), samples=rows(samples),
            sampler_us=self.sampler.cpu_ns // 1000, io=self.io)

    def helpers_ns(self, first: MachineSample, last: MachineSample) -> int:
        """The CPU time of the helpers, which is neither the server's nor that of others."""
        return sum(ns - first.process_ns.get(key, ns) for key, ns in last.process_ns.items()
                   if key[0] in self.target.helpers)

    def describe_generator(self, program: Program, answers: Answers) -> dict:
        """Its own report is of the time that it counted; otherwise what the kernel charged it with."""
        cpu_us = answers.cpu_us or program.cpu_us
        share = answers.cpu_share
        if share is None:
            share = sum(program.cpu_us.values()) / max(1.0, answers.seconds * 1e6 * self.load.used_threads)
        return {"name": self.generator.name, "version": self.generator.version(), "command": program.command,
                "cpu_us": cpu_us, "cpu_share": round(share, 4)}

    def find_marks(self, others_share: float, generator_share: float, answers: Answers) -> list[str]:
        threads = self.load.used_threads
        usable = min(threads, self.generator.cpus) / threads  # the share that threads get which have no CPU each
        marks = {
            DISTURBED: others_share > self.limits.others_max,
            GENERATOR_LIMITED: generator_share >= self.limits.generator_share * usable,
            ERRORS: answers.failed > 0,
        }
        return [name for name, applies in marks.items() if applies]


def repeat_disturbed(measure: Callable[[], Round], repeats: int, done: int = 0) -> Iterator[Round]:
    """Yields the round, and while it is disturbed, up to `repeats` more; `done` of them were measured before."""
    for attempt in range(done, max(repeats, 0) + 1):
        result = measure()
        if attempt:
            result = dataclasses.replace(result, marks=[*result.marks, REPEATED])
        yield result
        if DISTURBED not in result.marks:
            return
