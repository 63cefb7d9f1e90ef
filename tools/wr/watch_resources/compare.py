# SPDX-License-Identifier: Apache-2.0
"""Measures servers side by side: interleaved rounds in random order, in pairs of the first server with each other
one. A pair counts because its two rounds are neighbours in time, whatever the machine does in the long run."""

import contextlib
import dataclasses
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field

from . import WrError, builds, servers, workloads
from .analysis import is_disturbed
from .checks import Disqualified, check_answers
from .data import Problem
from .environment import COLD, MANY, Environment, evict_cold_files
from .fields import check_fields
from .qualify import WrittenFiles, is_qualified, qualify, shows_log
from .results import REPEATED
from .rounds import NoAnswers
from .spawn import Orphans

WARM_UP_SECONDS_MAX = 1
EXCLUSION_KEYS = "server", "workload", "kind", "reason"


@dataclass
class Plan:
    """The arguments of `wr run`, kept in the file of results so that --resume continues with the same."""

    workloads: list[str] = field(default_factory=list)
    servers: list[str] = field(default_factory=list)
    rounds: int = 5
    seconds: float = 2.0
    seed: int = 1
    others_max: float = 0.05  # CPUs that others may use in a round
    repeats: int = 2  # of a pair that was disturbed
    share_cpu: bool = False
    chosen: bool = False  # the servers were named, so that a missing one is a mistake
    contest: str = ""  # its name, and its text
    text: str = ""
    counts: bool = False  # memory, sizes and system calls are counted first
    witnesses: dict[str, str] = field(default_factory=dict)  # workloads, and the generators that measure them again
    absent: dict[str, str] = field(default_factory=dict)  # servers that cannot be had, and why

    @staticmethod
    def make(names, chosen, **rest):
        """With the defaults of data/defaults.toml."""
        defaults = workloads.choose_defaults(make_absolute(names))
        return Plan(defaults["workloads"], make_absolute(chosen) or defaults["servers"], chosen=bool(chosen), **rest)

    def choose(self):
        """([Workload], [Choice]); servers that nothing names are left out where they are not installed."""
        found = [workloads.load_workload(name) for name in self.workloads]
        for at, workload in reversed([*enumerate(found, 1)]):
            if generator := self.witnesses.get(self.workloads[at - 1]):
                found.insert(at, workload.make_witness(generator))
        choices = [servers.parse_choice(text) for text in self.servers]
        labels = [choice.label for choice in choices]
        if twice := next((label for label in labels if labels.count(label) > 1), None):
            raise Problem(f"-s {twice} is there twice: give one of them another name, as in -s base=/path/to/program")
        return found, [choice for choice in choices if choice.program or self.chosen]

    def find_seconds(self, workload):
        """Of a round."""
        return workload.seconds or self.seconds

    def find_warm_up(self, workload):
        """Its seconds: as long as a round, a second at most; in a contest a second, in which a log shows."""
        return WARM_UP_SECONDS_MAX if self.contest else min(WARM_UP_SECONDS_MAX, self.find_seconds(workload))

    def count_rounds(self, workload, choices, known):
        """That are left of a workload."""
        return sum(self.count_step(step, choices, known) for step in workload.list_steps())

    def count_step(self, workload, choices, known):
        if len(choices) == 1:
            return max(0, self.rounds - len(known.rounds_of(workload.name, choices[0].label, workload.clients)))
        left = [max(0, self.rounds - known.count_pairs(workload, choices[0], other)) for other in choices[1:]]
        return 2 * sum(left)


def is_first_ahead(seed, n):
    """Which of two servers is ahead in their pair `n`: random, and of each two pairs once each, so that what the
    place in a pair does to a round falls out of the ratio."""
    return (random.Random(f"{seed} {n // 2}").random() < 0.5) == (n % 2 == 0)


def make_absolute(texts):
    """Names of the command line as they are in every folder: those of files and programs have their whole path."""
    found = []
    for text in texts:
        name, equals, program = text.partition("=")
        name = os.path.abspath(name) if name.endswith(".toml") else name
        found.append(name + equals + (os.path.abspath(program) if program else ""))
    return found


class EmptyRound(Problem):
    """No answers from a server that lives: on a busy machine it may have had no turn."""


class Progress:
    """One line that is written anew, on a terminal only."""

    def __init__(self, total, stream=sys.stderr):
        self.total, self.done, self.stream = total, 0, stream
        self.started, self.is_terminal = time.monotonic(), stream.isatty()

    def show(self, text):
        if self.is_terminal:
            self.stream.write(f"\r\x1b[K{self.done}/{self.total} rounds{self.describe_left()}  {text}")
            self.stream.flush()

    def describe_left(self):
        """How long the rest will take, as the rounds so far took; or nothing before them."""
        left = (time.monotonic() - self.started) / self.done * (self.total - self.done) if self.done else 0
        return f", {int(left // 60)}:{int(left % 60):02} left" if self.done else ""

    def advance(self):
        self.done += 1

    def clear(self):
        if self.is_terminal:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def say(self, text):
        self.clear()
        print(text, file=self.stream, flush=True)


class Comparison:
    """measure(workload, server, seconds, others_max) returns the fields of a round's line that it knows; write(line)
    appends to the file of results; `known` is what that file holds already, and does not change here."""

    def __init__(self, plan, environment, measure, write, known, session="", problems=None):
        self.plan, self.environment, self.folder = plan, environment, environment.folder
        self.measure, self.write, self.known, self.session = measure, write, known, session
        self.number = known.next_round()
        self.problems, self.described = problems if problems is not None else [], set(known.servers)
        self.workloads, self.choices = plan.choose()
        self.progress = Progress(sum(self.count_rounds(workload) for workload in self.workloads))
        self.excluded = {tuple(each.get(key, "") for key in EXCLUSION_KEYS) for each in known.exclusions}

    def run(self):
        """Returns the problems, as sentences; what was measured is in the file, also after an exception."""
        for number, workload in enumerate(self.workloads, 1):
            if self.plan.contest and not self.progress.is_terminal:
                left = self.progress.describe_left()
                self.progress.say(f"{workload.name} ({number} of {len(self.workloads)}){left}: {workload.text}")
            self.run_workload(workload)
        self.progress.clear()
        return self.problems

    def exclude(self, server, kind, reason, workload=""):
        """Writes, once, why a server is not measured."""
        row = {"server": server, "workload": workload, "kind": kind, "reason": reason}
        if (key := tuple(row[name] for name in EXCLUSION_KEYS)) not in self.excluded:
            self.excluded.add(key)
            self.write({"type": "exclusion", **row})

    def report(self, problem, workload=None, server=""):
        text = str(problem)
        if workload and server:
            kind = "disqualified" if isinstance(problem, Disqualified) else "failed"
            self.exclude(server, kind, text, workload.name)
        text = f"{workload.name}: {text}" if workload and self.plan.contest else text
        self.problems.append(text)
        if self.progress.is_terminal:  # they are all reported at the end, too
            self.progress.say(text)

    def choices_for(self, workload):
        """Of servers that can do it; the others are named where the user chose them."""
        for choice in self.choices:
            reason = choice.kind.lacks(workload)
            if self.may_measure(choice, workload):
                yield choice.for_workload(workload)
            elif reason and self.plan.contest:
                self.exclude(choice.label, "unable", reason, workload.name)
            elif reason and self.plan.chosen:
                self.progress.say(f"{workload.name} without {choice.label}: {reason}")

    def may_measure(self, choice, workload):
        """Whether it can do the workload, and was not excluded from it before."""
        if choice.kind.lacks(workload):
            return False
        label = choice.for_workload(workload).label
        return not any((label, workload.name) == (each["server"], each["workload"]) for each in self.known.exclusions)

    def count_rounds(self, workload):
        able = [choice for choice in self.choices if self.may_measure(choice, workload)]
        return self.plan.count_rounds(workload, able, self.known) if able else 0

    def run_workload(self, workload):
        choices = list(self.choices_for(workload))
        if not choices or not self.count_rounds(workload):
            return
        if workload.name not in self.known.workloads:
            self.write(workload.line())
        try:
            with self.use_congestion_control(workload):
                self.measure_workload(workload, choices)
        except Problem as problem:  # of the whole workload
            self.report(problem)

    def use_congestion_control(self, workload):
        if not workload.congestion:
            return contextlib.nullcontext()
        return self.environment.use_congestion_control(workload.congestion)

    def measure_workload(self, workload, choices):
        running = {}
        try:
            for n, choice in enumerate(choices):
                self.progress.show(f"{workload.name}: starting {choice.label}")
                server = self.start_server(workload, choice, os.path.join(self.folder, workload.name, str(n)))
                if server:
                    running[choice.label] = server
                elif n == 0 and not self.plan.contest:
                    return  # there is nothing that the others could be compared with
            for step in workload.list_steps():
                self.run_rounds(step, running)
        finally:
            for server in running.values():
                server.stop()
            shutil.rmtree(os.path.join(self.folder, workload.name), ignore_errors=True)

    def start_server(self, workload, choice, folder):
        """Started, checked and warm; or None."""
        server = None
        try:
            os.makedirs(folder)
            server = servers.Server(choice, folder, self.environment.root, self.environment.server_cpu,
                                    self.environment.built)  # fmt: skip
            server.start()
            check_answers(workload, server)
            if self.is_checked(workload, server):
                self.qualify(workload, server)
            self.warm(workload, server)
        except WrError as problem:
            self.report(problem, workload, choice.label)
            if server:
                server.stop()
            return None
        except BaseException:
            if server:
                server.stop()
            raise
        if server.name not in self.described:
            self.described.add(server.name)
            self.write(server.line())
        return server

    def is_checked(self, workload, server):
        """Whether it has to be like the others of a contest; a limit server does no more than a workload needs."""
        return self.plan.contest and is_qualified(workload) and not server.kind.limit

    def qualify(self, workload, server):
        """Raises Disqualified."""
        server.congestion_control = self.environment.congestion_control
        features = qualify(workload, server)
        if (server.name, workload.name) not in self.known.features:
            line = {"server": server.name, "workload": workload.name, "features": features}
            self.write({"type": "qualification", **line})

    def warm(self, workload, server):
        """Load that is not kept; of an open loop it says what the server can do."""
        if workload.is_fresh:
            return
        watch = WrittenFiles(server) if self.is_checked(workload, server) and shows_log(workload) else None
        seconds = self.plan.find_warm_up(workload)
        row = self.try_again(lambda: self.measure_one(workload.make_warm_up(), server, seconds))
        server.rate = max(1, round(row["rps"] * workload.capacity))
        if watch and (wrong := watch.find_log(row["answers"])):
            raise Disqualified(f"{server.name} {wrong}")

    def try_again(self, measure):
        """After an empty round, as often as after a disturbed one."""
        for _ in range(self.plan.repeats):
            with contextlib.suppress(EmptyRound):
                return measure()
        return measure()

    def run_rounds(self, workload, running):
        if not running:
            return
        first, *others = running.values()
        done = {other.name: self.known.count_pairs(workload, first.choice, other.choice) for other in others}
        for n in range(self.plan.rounds):
            rng = random.Random(f"{self.plan.seed} {workload.name} {n}")
            for other in rng.sample(others, len(others)):
                ahead = is_first_ahead(f"{self.plan.seed} {workload.name} {other.name}", n)
                if n < done[other.name] or other.name not in running:
                    continue
                failed = self.run_pair(workload, first, other, ahead)
                if failed is first:
                    return  # there is nothing that the others could be compared with
                if failed:
                    running.pop(failed.name).stop()
                    others.remove(failed)
            known = self.known.rounds_of(workload.name, first.name, workload.clients)
            if len(running) == 1 and not done and n >= len(known):
                if not self.run_alone(workload, first):
                    return

    def run_alone(self, workload, server):
        self.progress.show(f"{workload.name}: {server.name}")
        try:
            self.try_again(lambda: self.run_round(workload, server, []))
        except WrError as problem:
            self.report(problem, workload, server.name)
            return False
        self.progress.advance()
        return True

    def run_pair(self, workload, first, other, ahead):
        """Returns the server that cannot be measured, or None."""
        order = (first, other) if ahead else (other, first)
        for repeat in range(self.plan.repeats + 1):
            is_last = repeat == self.plan.repeats
            found, server = {}, None
            try:
                for server in order:
                    self.progress.show(f"{workload.name}: {server.name}")
                    found[server.name] = self.run_round(workload, server, [REPEATED] if repeat else [])
            except WrError as problem:
                if isinstance(problem, EmptyRound) and not is_last:
                    continue
                self.report(problem, workload, server.name)
                return server
            rounds = found[first.name], found[other.name]
            if not is_last and any(map(is_disturbed, rounds)):
                continue
            self.progress.advance()
            self.progress.advance()
            self.write_pair(workload, first, other, rounds)
            return None

    def measure_one(self, workload, server, seconds):
        """Raises a Problem when the server died, hangs or has no answers."""
        server.check_alive()
        try:
            row = self.measure(workload, server, seconds, self.plan.others_max)
        except WrError as error:
            server.check_health()
            kind = EmptyRound if isinstance(error, NoAnswers) else Problem
            raise kind(server.tell(f"cannot be measured with {workload.name}: {error}")) from None
        server.check_alive()
        if not row["answers"]:
            server.check_health()
            raise EmptyRound(server.tell(f"gave no answers to {workload.name} in a round"))
        return row

    def run_round(self, workload, server, marks):
        """Measures and writes a round."""
        if workload.cold:
            evict_cold_files(self.environment.root)
        if workload.is_fresh:
            server.restart()
        row = self.measure_one(workload, server, self.plan.find_seconds(workload))
        row = {**row, "type": "round", "session": self.session, "n": self.number, "workload": workload.name}
        row.update(server=server.name, clients=workload.clients, marks=[*row.get("marks", []), *marks])
        self.number += 1
        self.write(row)
        return row

    def write_pair(self, workload, first, other, rounds):
        costs = [row["cost_us"]["total"] for row in rounds]
        self.write(
            {
                "type": "pair",
                "workload": workload.name,
                "first": first.name,
                "second": other.name,
                "rounds": [row["n"] for row in rounds],
                "ratio": costs[0] / costs[1] if costs[1] else None,
            }
        )


def resume_plan(known, path, names=(), chosen=()):
    """The plan of a file of results; what the command line names must be the same."""
    stored = next((plan for session in known.sessions if (plan := session.get("settings", {}).get("plan"))), None)
    if not stored:
        raise Problem(f"{path} does not say what was to be measured, so --resume cannot continue with it")
    try:
        check_fields(Plan, stored)
        plan_of_file = Plan(**stored)
    except (TypeError, ValueError) as error:
        raise Problem(f"{path}: the plan of its session cannot be read: {error}") from None
    for name, given in (("workloads", make_absolute(names)), ("servers", make_absolute(chosen))):
        if given and given != getattr(plan_of_file, name):
            raise Problem(
                f"{path} was begun with the {name} {' '.join(getattr(plan_of_file, name))}:"
                " leave them out with --resume, or write another file"
            )
    return plan_of_file


def list_choices(plan):
    """Of all workloads, with the variants that each one needs, and the backends."""
    found, choices = plan.choose()
    able = [(workload, choice) for workload in found for choice in choices if not choice.kind.lacks(workload)]
    backends = dict.fromkeys(name for workload, _ in able for name in workload.list_backends())
    return [*(choice.for_workload(workload) for workload, choice in able), *map(servers.parse_choice, backends)]


def make_environment(folder, files, share_cpu, choices, say):
    try:
        built = builds.build_all(choices, os.path.join(folder, "built"), say)
        return Environment(folder, files.get(MANY, 0), share_cpu, built, files.get(COLD, 0))
    except OSError as error:
        place = error.filename or folder
        raise Problem(f"{place}: {error.strerror}: TMPDIR names another folder for files") from None


@contextlib.contextmanager
def open_environment(files, share_cpu=False, choices=(), say=None):
    """Files ({folder: number}), CPUs and network for servers, and what the choices are built into, until its end."""
    folder, environment = tempfile.mkdtemp(prefix="wr-"), None
    try:
        with Orphans():
            environment = make_environment(folder, files, share_cpu, choices, say)
            yield environment
    finally:
        if environment:
            environment.locked.release()
        shutil.rmtree(folder, ignore_errors=True)


def count_files(plan):
    """How many files the workloads want in each folder of files: {folder: number}."""
    most = {}
    for workload in map(workloads.load_workload, plan.workloads):
        if workload.paths > 1:
            folder = workload.path.partition("/")[0]
            most[folder] = max(most.get(folder, 0), workload.paths)
    return most


def make_session(plan, environment, fields, known):
    """The session's line; `fields` are those that the caller knows."""
    settings = {"plan": dataclasses.asdict(plan), **environment.describe()}
    resumes = known.sessions[0]["id"] if known.sessions else None
    line = {"type": "session", "id": f"{int(time.time()):x}{os.getpid():x}", "resumes": resumes, **fields}
    return {**line, "cpus": settings.pop("cpus"), "settings": settings}
