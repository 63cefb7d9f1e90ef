#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the release build beside other servers, by the processor time that a request costs the server.

The machine drifts, so requests per second say little: each workload runs in rounds of pairs (monkey and nginx, lighttpd
and monkey ...), and what counts is user and system time of the server's threads, divided by the answers that the load
generator counted. Servers run with one worker on one CPU, the generator on another; all of it on loopback, with the
files locked in memory and the congestion control set. Every server must answer with the right bytes first."""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from checks import check
from counts import report_counts
from machine import prepare
from peers import GENERATOR_CPU, MANY, make_files, make_server
from table import print_table

PIPELINE = """init = function(args)
  local r = {}
  for i = 1, %d do r[i] = wrk.format(nil, "/%s") end
  req = table.concat(r)
end
request = function() return req end
"""
CLOSE = 'wrk.headers["Connection"] = "close"\n'
GZIP = 'wrk.headers["Accept-Encoding"] = "gzip"\n'
RANDOM = """local n = 0
request = function()
  n = (n * 1103515245 + 12345) %% 2147483648
  return wrk.format(nil, "/many/" .. n %% %d)
end
"""
PLAIN = ("monkey", "nginx", "nginx+cache", "lighttpd", "h2o")
SECURE = tuple(name + "+tls" for name in PLAIN)
H2C = ("monkey", "nginx+h2", "nginx+cache+h2", "lighttpd", "h2o")
PINNED = ("taskset", "-c", str(GENERATOR_CPU))


class Workload:
    """Of HTTP/1, by wrk."""

    def __init__(self, name, text, path, clients, script="", servers=PLAIN, prefix=PINNED):
        self.name, self.text, self.path, self.clients = name, text, path, clients
        self.script, self.servers, self.prefix = script, servers, prefix
        self.protocol, self.gzip = "1.1", script == GZIP

    def url(self, port):
        scheme = "https" if any(name.endswith("+tls") for name in self.servers) else "http"
        return f"{scheme}://127.0.0.1:{port}/{self.path}"

    def run(self, port, seconds, folder):
        command = [*self.prefix, "wrk", "-t1", f"-c{self.clients}", f"-d{seconds}s", "--latency"]
        if self.script:
            lua = os.path.join(folder, self.name + ".lua")
            with open(lua, "w") as f:
                f.write(self.script)
            command += ["-s", lua]
        text = subprocess.run(command + [self.url(port)], capture_output=True, text=True).stdout
        count = re.search(r"(\d+) requests in", text)
        p99 = re.search(r"^ +99% +(\S+)", text, re.M)
        errors = re.search(r"Socket errors: (.*)", text)
        if not count or int(count.group(1)) == 0 or "Non-2xx" in text:
            sys.exit("wrk counted nothing, or answers of other statuses:\n" + text)
        return int(count.group(1)), p99.group(1) if p99 else "?", errors.group(1) if errors else ""


class Streams(Workload):
    """Of HTTP/2, by h2load: `clients` connections with a hundred streams each."""

    def __init__(self, *args, **rest):
        super().__init__(*args, **rest)
        self.protocol = "2"

    def load(self, port, *options):
        command = [*self.prefix, "h2load", "-t1", f"-c{self.clients}", *options, self.url(port)]
        text = subprocess.run(command, capture_output=True, text=True).stdout
        count = re.search(r"requests: .* (\d+) succeeded, (\d+) failed", text)
        if not count or int(count.group(1)) == 0 or ", 0 3xx, 0 4xx, 0 5xx" not in text:
            sys.exit("h2load counted nothing, or answers of other statuses:\n" + text)
        worst = re.search(r"time for request: +\S+ +(\S+)", text)
        return (
            int(count.group(1)),
            f"max {worst.group(1)}",
            "" if count.group(2) == "0" else f"{count.group(2)} failed",
        )

    def run(self, port, seconds, folder):
        return self.load(port, "-m100", f"-D{seconds}")


class Strangers(Streams):
    """Clients without a ticket, by h2load: `clients` at once, again and again, with one request each."""

    def __init__(self, *args, **rest):
        super().__init__(*args, **rest)
        self.protocol = "1.1"

    def run(self, port, seconds, folder):
        end, counts = time.monotonic() + seconds, []
        while time.monotonic() < end:
            counts.append(self.load(port, "--h1", f"-n{self.clients}"))
        return sum(count for count, _, _ in counts), *counts[-1][1:]


WORKLOADS = [
    Workload("W1", "13 bytes, keep-alive, 64 clients", "13.txt", 64),
    Workload(
        "W1L",
        "13 bytes with an access log, 64 clients",
        "13.txt",
        64,
        servers=("monkey+log", "monkey", "nginx+log", "nginx+cache+log", "lighttpd+log"),
    ),
    Workload("W2", "13 bytes, a new connection each", "13.txt", 64, CLOSE),
    Workload("W3", "26,510 bytes, 500 clients", "26k.bin", 500),
    Workload(
        "W3z",
        "26,510 bytes, 500 clients, Accept-Encoding and precompressed variants",
        "26k.bin",
        500,
        GZIP,
        servers=("monkey+gz", "nginx+gz", "nginx+cache+gz", "h2o+gz"),
    ),
    Workload("W4", "200 KB, 100 clients", "200k.bin", 100),
    Workload("W5", "1 MB, 16 clients", "1m.bin", 16),
    Workload("W6", "13 bytes, 16 requests pipelined", "13.txt", 64, PIPELINE % (16, "13.txt")),
    Workload("W7", "10,000 files of 1 to 8 KB at random, 64 clients", "many/0", 64, RANDOM % MANY),
    Workload("W8", "TLS: 13 bytes, keep-alive, 64 clients", "13.txt", 64, servers=SECURE),
    Workload("W8n", "TLS: a new connection each, resumed", "13.txt", 16, CLOSE, servers=SECURE),
    Strangers("W8f", "TLS: a new connection each, a full handshake", "13.txt", 16, servers=SECURE),
    Workload("W8b", "TLS: 200 KB, 100 clients", "200k.bin", 100, servers=SECURE),
    Streams("W9", "HTTP/2: 13 bytes, 16 clients with 100 streams", "13.txt", 16, servers=H2C),
    Streams("W9b", "HTTP/2: 200 KB, 16 clients with 100 streams", "200k.bin", 16, servers=H2C),
    Streams("W9s", "HTTP/2 over TLS: 13 bytes, 16 clients with 100 streams", "13.txt", 16, servers=SECURE),
    Streams("W9t", "HTTP/2 over TLS: 200 KB, 16 clients with 100 streams", "200k.bin", 16, servers=SECURE),
]


class Result:
    """Of one server in one workload: µs of each round, and what share of it the first server needed in each pair."""

    def __init__(self):
        self.values, self.shares, self.tail, self.errors = [], [], "?", ""


def measure(workload, servers, rounds, seconds, folder):
    """{server: Result}. The first server is measured anew beside each other one, now before it and now behind it."""
    results = {server.name: Result() for server in servers}

    def run(server):
        before, result = server.cpu_seconds(), results[server.name]
        count, result.tail, result.errors = workload.run(server.port, seconds, folder)
        result.values.append((server.cpu_seconds() - before) / count * 1e6)
        return result.values[-1]

    first, *others = servers
    for server in servers:
        workload.run(server.port, 1, folder)
    for n in range(rounds):
        for other in others:
            pair = {server: run(server) for server in ((first, other) if n % 2 == 0 else (other, first))}
            results[other.name].shares.append(pair[first] / pair[other])
        if not others:
            run(first)
    return results


def report(workload, results):
    first = next(iter(results))
    print(f"\n{workload.name}  {workload.text}")
    print(f"  {'server':<16} {'CPU µs per request':>20} {'min':>8} {'max':>8} {first + ' is':>14} {'p99':>9}")
    for name, r in results.items():
        share = f"{statistics.median(r.shares):.2f} x" if r.shares else ""
        print(
            f"  {name:<16} {statistics.median(r.values):>20.2f} {min(r.values):>8.2f} {max(r.values):>8.2f} "
            f"{share:>14} {r.tail:>9} {r.errors}"
        )
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="which of " + " ".join(w.name for w in WORKLOADS))
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-s", "--seconds", type=int, default=2, help="of each round")
    parser.add_argument(
        "-c", "--counts", action="store_true", help="memory, calls and sizes, with chosen workloads too"
    )
    parser.add_argument("-m", "--markdown", action="store_true", help="print the table of the README at the end")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are stopped then, too
    folder = tempfile.mkdtemp(prefix="monkey-bench-")
    root = os.path.join(folder, "www")
    os.makedirs(root)
    os.chmod(folder, 0o755)
    make_files(root)
    prepare(root)
    chosen = [w for w in WORKLOADS if not args.workloads or w.name in args.workloads]
    names = list(dict.fromkeys([*PLAIN, *(name for w in chosen for name in w.servers)]))
    servers = {name: server for name in names if (server := make_server(name, folder, root))}
    try:
        for server in servers.values():
            server.start()
        counts, results = {}, []
        if args.counts or not args.workloads:
            counts = report_counts([servers[name] for name in PLAIN if name in servers])
        for workload in chosen:
            for server in (servers[name] for name in workload.servers if name in servers):
                check(workload, server, root)
        for workload in chosen:
            present = [servers[name] for name in workload.servers if name in servers]
            results.append((workload, measure(workload, present, args.rounds, args.seconds, folder)))
            report(*results[-1])
        if args.markdown:
            print_table(PLAIN, counts, results)
    finally:
        for server in servers.values():
            if hasattr(server, "process"):
                server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
