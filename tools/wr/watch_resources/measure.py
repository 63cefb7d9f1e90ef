# SPDX-License-Identifier: Apache-2.0
"""Measures one round of a workload: chooses the generator and tells it what the workload is."""

import contextlib
import dataclasses
import os
import pathlib
import random
import re
import sys
import tempfile
import time

from .data import Problem
from .environment import content_size
from .generators import Answers, H2Load, Load, Wrk, WrLoad, drop_empty
from .proc import TcpReader
from .rounds import Limits, Measurement, RoundError, Target
from .spawn import Program
from .workloads import BESIDE

STALL_SECONDS = 5
BESIDE_CLIENTS, EXTRA_SECONDS, OPEN_SECONDS = 16, 60, 10
IDLE_RATE = 1  # requests a second, of all idle connections together
SLOW_CLIENTS = str(pathlib.Path(__file__).with_name("slow_clients.py"))
SLOW_PATH = "/1m.bin"
RANDOM_PATHS = """local paths, n = {%s}, 0
request = function()
  n = (n * 1103515245 + 12345) %% 2147483648
  return wrk.format(nil, "/" .. paths[n %% #paths + 1])
end
"""


def read_paths(path):
    return [line.split()[0] for line in pathlib.Path(path).read_text("ascii").splitlines()]


class WrkPaths(Wrk):
    """A list of paths at random needs a script; its order is always the same."""

    can = Wrk.can | {"paths"}

    def command(self, load, folder):
        paths = [path.lstrip("/") for path in read_paths(load.paths)]
        script = os.path.join(folder, "paths.lua")
        pathlib.Path(script).write_text(RANDOM_PATHS % ", ".join(f'"{path}"' for path in paths), "ascii")
        return super().command(dataclasses.replace(load, paths=None, extra=(*load.extra, "-s", script)), folder)


class H2LoadPaths(H2Load):
    """A list of paths at random is a file in an order that is always the same, also for each client."""

    can = H2Load.can | {"paths"}

    def command(self, load, folder):
        paths = read_paths(load.paths)
        drawn = random.Random(load.seed).choices(paths, k=len(paths))
        file = os.path.join(folder, "uris.txt")
        pathlib.Path(file).write_text("".join(f"{path}\n" for path in drawn), "ascii")
        return super().command(dataclasses.replace(load, paths=None, extra=(*load.extra, "-i", file, "-B")), folder)


class Strangers(H2Load):
    """Clients without a ticket: h2load again and again, with one request of each client, until the time is over."""

    loop = "end=$(($(date +%s%N) + $1)); shift; while [ $(date +%s%N) -lt $end ]; do \"$@\" || exit; done"

    def command(self, load, folder):
        once = dataclasses.replace(load, requests=load.clients, seconds=None, keep_alive=True)
        return ["sh", "-c", self.loop, "sh", str(round(load.seconds * 1e9)), *super().command(once, folder)]

    def parse(self, load, stdout, stderr, folder):
        once = dataclasses.replace(load, requests=load.clients, seconds=None)
        texts = [text for text in re.split(r"(?=^starting benchmark)", stdout, flags=re.M) if "requests: " in text]
        runs = [super(Strangers, self).parse(once, text, "", folder) for text in texts]
        count, seconds = sum(run.count for run in runs), sum(run.seconds for run in runs)
        errors, statuses = {}, {}
        for run in runs:
            for into, more in ((errors, run.errors), (statuses, run.statuses)):
                for name, value in more.items():
                    into[name] = into.get(name, 0) + value
        times = [run.latency_us for run in runs if run.latency_us]
        latency = {}
        if times:
            latency = {"max": max(each["max"] for each in times), "min": min(each["min"] for each in times)}
        return Answers(count=count, seconds=seconds, rps=count / seconds if seconds else 0.0, statuses=statuses,
                       errors=drop_empty(errors), latency_us=latency)


def list_generators(workload):
    """Those that can do it, the best first."""
    if workload.websocket or workload.body or workload.requests_per_connection or workload.is_open_loop:
        return [WrLoad]
    if workload.protocol == "2":
        return [H2LoadPaths if workload.paths > 1 else H2Load]
    if workload.connections == "strangers":
        return [WrLoad, Strangers]
    return [WrLoad, WrkPaths if workload.paths > 1 else Wrk]


def choose_generator(workload):
    kinds = [kind for kind in list_generators(workload) if workload.generator in ("", kind.name)]
    for kind in kinds:
        generator = kind()
        if generator.is_available():
            return generator
    names = " or ".join(kind.name for kind in kinds)
    raise Problem(f"{workload.name} needs {names or 'another generator than ' + workload.generator}: install it")


def write_paths(workload, root, path):
    """The list of paths for wr-load: PATH STATUS LENGTH."""
    with open(path, "w", encoding="ascii") as file:
        for name in workload.list_paths():
            file.write(f"/{name} 200 {content_size(root, name)}\n")
    return path


def make_load(workload, server, seconds, generator):
    checks, extra, paths = {}, (), None
    if isinstance(generator, H2Load):
        seconds = max(1, round(seconds))  # it takes no fractions
    if workload.websocket:
        extra = ("--message", str(workload.message), *(["--broadcast"] if workload.websocket == "broadcast" else []))
    elif generator.name == "wr-load":
        name = workload.list_paths()[0] + {"gzip": ".gz"}.get(workload.coding, "")
        checks = {"status": 200, "length": content_size(server.root, name)}
        extra = ("--full-handshakes",) if workload.connections == "strangers" else ()
        if workload.body:
            extra += ("--method", "POST", "--body", os.path.join(server.root, workload.body))
    if workload.paths > 1:
        paths = write_paths(workload, server.root, f"{server.folder}.paths")  # its folder has what it writes itself
        checks = {}
    return Load(
        url=workload.url(server.port, "" if paths else None),
        clients=workload.clients,
        requests=workload.requests or None,
        seconds=None if workload.requests else seconds,
        keep_alive=not workload.close,
        per_connection=workload.requests_per_connection or None,
        pipeline=workload.streams if workload.protocol == "2" else workload.pipeline,
        http2=workload.protocol == "2",
        rate=workload.rate or (server.rate if workload.capacity else 0) or None,
        paths=paths,
        pick=workload.pick if paths else None,
        seed=1 if paths else None,
        headers=tuple(f"{name}: {value}" for name, value in workload.all_headers().items()),
        insecure=workload.tls,
        extra=extra,
        **checks,
    )


def list_beside(workload, server, seconds, folder):
    """The commands of what else uses the server while a round runs, and the connections that they open."""
    end = seconds + EXTRA_SECONDS
    commands, clients = [], workload.idle + workload.slow
    if workload.beside:
        commands.append(Load(url=workload.url(server.port, BESIDE), clients=BESIDE_CLIENTS, seconds=end,
                             rate=workload.beside))  # fmt: skip
    if workload.idle:
        commands.append(Load(url=workload.url(server.port), clients=workload.idle, seconds=end, rate=IDLE_RATE,
                             insecure=workload.tls))  # fmt: skip
    generator = WrLoad()
    if commands and not generator.is_available():
        raise Problem(f"{workload.name} needs wr-load, which loads the server besides the round: build it")
    commands = [generator.command(load, folder) for load in commands]
    if workload.slow:
        commands.append([sys.executable, SLOW_CLIENTS, str(server.port), SLOW_PATH, str(workload.slow)])
    return commands, clients


def await_connections(server, clients):
    """Until as many are open; raises a Problem when the server does not take them."""
    reader, end = TcpReader(server.pid, server.port), time.monotonic() + OPEN_SECONDS
    while (found := reader.count_connections()) < clients:
        if time.monotonic() > end:
            raise Problem(f"{server.name} takes {found} of {clients} connections within {OPEN_SECONDS} s")
        time.sleep(OPEN_SECONDS / 200)


@contextlib.contextmanager
def load_beside(workload, server, seconds):
    """What else uses the server while the block runs; yields the ids of processes that do it."""
    with tempfile.TemporaryDirectory(prefix="wr-") as folder, contextlib.ExitStack() as stack:
        commands, clients = list_beside(workload, server, seconds, folder)
        programs = [stack.enter_context(Program(command, folder)) for command in commands]
        if clients:
            await_connections(server, clients)
        yield tuple(program.pid for program in programs)
        for program in programs:
            if program.wait(0):
                raise RoundError(f"{' '.join(program.command)} has ended: {program.stderr.strip()}")


def measure(workload, server, seconds, others_max):
    """The fields of a round's line."""
    generator = choose_generator(workload)
    load = make_load(workload, server, seconds, generator)
    limits = Limits(others_max=others_max, stall_seconds=STALL_SECONDS)
    with load_beside(workload, server, seconds) as beside:
        target = Target(server.pid, server.name, server.port, (*server.helpers, *beside))
        return dataclasses.asdict(Measurement(target, generator, load, limits).measure())


def crowd_command(workload, server, seconds, folder):
    """The command of the generator alone."""
    generator = choose_generator(workload)
    return generator.command(make_load(workload, server, seconds, generator), folder)


def list_tools():
    """{name: version} of the generators that are installed."""
    return {kind.name: kind().version() for kind in (WrLoad, Wrk, H2Load) if kind().is_available()}
