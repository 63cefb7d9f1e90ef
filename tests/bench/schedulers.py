#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the two schedulers beside each other: two workers, interleaved rounds, the load generator on the same
processors. Processor time per request, the slowest percent, and how connections and work are spread over the
workers."""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

from bench import CLOSE, Workload
from peers import FILES, ROOT, Server, free_port, make_files

CONF = """[SERVER]
    Listen 127.0.0.1:{port}
    Workers 2
    Scheduler {name}
    MaxKeepAliveRequest 0
    KeepAliveTimeout 65
    Backlog 8192
    LogLevel error
"""


class Anywhere(Server):
    """Not bound to one processor, as there are two workers."""

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3)

    def spread(self):
        """Connections in each worker's epoll queue."""
        counts, folder = [], f"/proc/{self.process.pid}"
        for entry in sorted(os.listdir(f"{folder}/fd"), key=int):
            try:
                if os.readlink(f"{folder}/fd/{entry}") == "anon_inode:[eventpoll]":
                    with open(f"{folder}/fdinfo/{entry}") as file:
                        counts.append(len(re.findall("^tfd:", file.read(), re.M)))
            except FileNotFoundError:
                pass
        own = 1 if self.name == "fair" else 2  # the loop's own events; the process context's queue is not a worker's
        workers = sorted(counts)[-2:]
        return [n - own for n in workers]

    def shares(self):
        """Processor time that each worker has used, in ns."""
        times, folder = {}, f"/proc/{self.process.pid}/task"
        for task in os.listdir(folder):
            with open(f"{folder}/{task}/comm") as comm, open(f"{folder}/{task}/schedstat") as stat:
                if (name := comm.read()).startswith("monkey: w"):
                    times[name] = int(stat.read().split()[0])
        return [times[name] for name in sorted(times)]


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(\w+)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60000}[unit]


LONG = Workload("long", "", "200k.bin", 60, prefix=())
LOADS = [
    (Workload("W2", "13 bytes, a new connection each, 64 clients", "13.txt", 64, CLOSE, prefix=()), None),
    (Workload("W1b", "13 bytes, 5,000 kept connections", "13.txt", 5000, prefix=()), None),
    (
        Workload("mixed", "13 bytes on new connections, beside 60 clients of 200 KB", "13.txt", 32, CLOSE, prefix=()),
        LONG,
    ),
]


def measure(load, beside, server, seconds, folder):
    others = []
    thread = threading.Thread(target=lambda: others.append(beside.run(server.port, seconds, folder)))
    seen = []
    watcher = threading.Timer(seconds * 0.6, lambda: seen.append(server.spread()))
    before, shares = server.cpu_seconds(), server.shares()
    if beside:
        thread.start()
    watcher.start()
    count, p99, _ = load.run(server.port, seconds, folder)
    if beside:
        thread.join()
    watcher.join()
    requests = count + sum(one[0] for one in others)
    used = [after - before for before, after in zip(shares, server.shares())]
    shares = [round(100 * one / sum(used)) for one in used]
    return (server.cpu_seconds() - before) / requests * 1e6, milliseconds(p99), seen[0], shares


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-s", "--seconds", type=int, default=4, help="of each round")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="monkey-bench-")
    root = os.path.join(folder, "www")
    os.makedirs(root)
    make_files(root)
    assert "200k.bin" in FILES
    servers = []
    try:
        for name in ("reuseport", "fair"):
            port, conf = free_port(), os.path.join(folder, name)
            os.makedirs(os.path.join(conf, "sites"))
            with open(os.path.join(conf, "monkey.conf"), "w") as file:
                file.write(CONF.format(port=port, name=name))
            with open(os.path.join(conf, "sites", "default"), "w") as file:
                file.write(f"[HOST]\n    ServerName localhost\n    DocumentRoot {root}\n")
            servers.append(Anywhere(name, [os.path.join(ROOT, "build/release/bin/monkey"), "-c", conf], port))
            servers[-1].start()
        for load, beside in LOADS:
            print(f"\n{load.name}: {load.text}")
            results = {server.name: [] for server in servers}
            for _ in range(args.rounds):
                for server in servers:
                    results[server.name].append(measure(load, beside, server, args.seconds, folder))
            for name, rows in results.items():
                cpu = ", ".join(f"{row[0]:.1f}" for row in rows)
                p99 = ", ".join(f"{row[1]:.1f}" for row in rows)
                spreads = "; ".join(" + ".join(map(str, row[2])) for row in rows)
                median = statistics.median(row[0] for row in rows)
                work = "; ".join(" + ".join(map(str, row[3])) for row in rows)
                print(
                    f"  {name:<10} CPU µs {median:.1f} ({cpu})  p99 ms {p99}  spread {spreads}  work % {work}",
                    flush=True,
                )
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
