#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the two schedulers of monkey beside each other: two workers, interleaved rounds, the load generator on the
same CPUs. CPU time per request, the slowest percent, and how connections and work are spread over the workers."""

import argparse
import os
import pathlib
import re
import statistics
import sys
import tempfile
import threading
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from watch_resources import WrError, environment, servers, workloads
from watch_resources.generators import Wrk
from watch_resources.measure import make_load
from watch_resources.proc import ProcessTree
from watch_resources.rounds import Measurement, Target
from watch_resources.spawn import Program

SCHEDULERS = "reuseport", "fair"


@dataclass
class Case:
    workload: workloads.Workload
    beside: workloads.Workload | None = None

    @property
    def text(self):
        return self.workload.text + (f", beside {self.beside.text}" if self.beside else "")


def make_cases():
    load = workloads.load_workload
    large = load("W4", clients=60, text="60 clients of 200 KB")
    return [
        Case(load("W2", text="13 bytes, a new connection each, 64 clients")),
        Case(load("W1b", text="13 bytes, 5,000 kept connections")),
        Case(load("W2", name="mixed", clients=32, text="13 bytes on new connections"), large),
    ]


def count_connections(server):
    """Connections in each worker's epoll instance."""
    counts, folder = [], f"/proc/{server.pid}"
    for entry in sorted(os.listdir(f"{folder}/fd"), key=int):
        try:
            if os.readlink(f"{folder}/fd/{entry}") == "anon_inode:[eventpoll]":
                text = pathlib.Path(f"{folder}/fdinfo/{entry}").read_text("ascii")
                counts.append(len(re.findall("^tfd:", text, re.M)))
        except FileNotFoundError:
            pass
    own = 1 if "fair" in server.name else 2  # the loop's own events; the smallest queue is that of the process context
    return [count - own for count in sorted(counts)[-2:]]


def read_worker_ns(server):
    """CPU time of each worker."""
    times, folder = {}, pathlib.Path(f"/proc/{server.pid}/task")
    for task in folder.iterdir():
        if (name := (task / "comm").read_text("ascii")).startswith("monkey: w"):
            times[name] = int((task / "schedstat").read_text("ascii").split()[0])
    return [times[name] for name in sorted(times)]


def run_beside(workload, server, seconds, counts):
    generator = Wrk()
    load = make_load(workload, server, seconds, generator)
    with tempfile.TemporaryDirectory(prefix="wr-") as folder:
        with Program(generator.command(load, folder), folder) as program:
            while not program.wait(1):
                pass
            counts.append(generator.read(load, program.stdout, program.stderr, folder).count)


def measure(case, server, seconds):
    """(CPU µs of a request, p99 in ms, connections of each worker, share of each worker in the CPU time)"""
    seen, counts = [], []
    watcher = threading.Timer(seconds * 0.6, lambda: seen.append(count_connections(server)))
    beside = threading.Thread(target=run_beside, args=(case.beside, server, seconds, counts))
    generator, tree, before = Wrk(), ProcessTree(server.pid), read_worker_ns(server)
    started_ns = tree.read(complete=True).counters.cpu_ns
    load = make_load(case.workload, server, seconds, generator)
    measurement = Measurement(Target(server.pid, server.name, server.port), generator, load)
    if case.beside:
        beside.start()
    watcher.start()
    found = measurement.measure()
    watcher.join()
    if case.beside:
        beside.join()
    used = [last - first for first, last in zip(before, read_worker_ns(server))]
    shares = [round(100 * ns / sum(used)) for ns in used]
    cost = (tree.read(complete=True).counters.cpu_ns - started_ns) / 1000 / (found.answers + sum(counts))
    return cost, found.latency_us["p99"] / 1000, seen[0], shares


def print_case(case, results):
    print(f"\n{case.workload.name}: {case.text}")
    for name, rows in results.items():
        costs, p99s, spreads, shares = zip(*rows)
        print(
            f"  {name:<18} CPU µs {statistics.median(costs):.1f} ({', '.join(f'{cost:.1f}' for cost in costs)})"
            f"  p99 ms {', '.join(f'{p99:.1f}' for p99 in p99s)}"
            f"  connections {'; '.join(' + '.join(map(str, each)) for each in spreads)}"
            f"  work % {'; '.join(' + '.join(map(str, each)) for each in shares)}",
            flush=True,
        )


def run(args, folder, running):
    root = os.path.join(folder, "www")
    environment.make_files(root)
    environment.raise_descriptor_limit()
    for name in SCHEDULERS:
        server = servers.Server(servers.parse_choice(f"monkey+{name}"), os.path.join(folder, name), root)
        server.start()
        running.append(server)
    for case in make_cases():
        results = {server.name: [] for server in running}
        for _ in range(args.rounds):
            for server in running:
                results[server.name].append(measure(case, server, args.seconds))
        print_case(case, results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-s", "--seconds", type=int, default=4, help="of each round")
    args, running = parser.parse_args(), []
    with tempfile.TemporaryDirectory(prefix="wr-") as folder:
        os.chmod(folder, 0o755)
        try:
            run(args, folder, running)
        except WrError as error:
            sys.exit(f"schedulers: {error}")
        finally:
            for server in running:
                server.stop()


if __name__ == "__main__":
    main()
