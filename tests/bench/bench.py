#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the release build beside other servers, by the processor time that a request costs the server.

The machine drifts, so requests per second say little: each workload runs in interleaved rounds (A B C A B C ...),
and what counts is user and system time of the server's threads, divided by the answers that the load generator
counted. Servers run on CPU 0 with one worker, the generator on CPU 1; all of it on loopback, ended by pid."""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from counts import report_counts
from peers import MANY, make_files, make_server

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
PLAIN = ("monkey", "nginx", "lighttpd")
SECURE = tuple(name + "+tls" for name in PLAIN)
H2C = ("monkey", "nginx+h2", "lighttpd")


class Workload:
    """Of HTTP/1, by wrk."""

    def __init__(self, name, text, path, clients, script="", servers=PLAIN, prefix=("taskset", "-c", "1")):
        self.name, self.text, self.path, self.clients = name, text, path, clients
        self.script, self.servers, self.prefix = script, servers, prefix

    def url(self, port):
        scheme = "https" if self.servers == SECURE else "http"
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
        if not count or int(count.group(1)) == 0:
            sys.exit("wrk counted nothing:\n" + text)
        return int(count.group(1)), p99.group(1) if p99 else "?", errors.group(1) if errors else ""


class Streams(Workload):
    """Of HTTP/2, by h2load: `clients` connections with a hundred streams each."""

    def load(self, port, *options):
        command = [*self.prefix, "h2load", "-t1", f"-c{self.clients}", *options, self.url(port)]
        text = subprocess.run(command, capture_output=True, text=True).stdout
        count = re.search(r"requests: .* (\d+) succeeded, (\d+) failed", text)
        if not count or int(count.group(1)) == 0:
            sys.exit("h2load counted nothing:\n" + text)
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

    def run(self, port, seconds, folder):
        end, counts = time.monotonic() + seconds, []
        while time.monotonic() < end:
            counts.append(self.load(port, "--h1", f"-n{self.clients}"))
        return sum(count for count, _, _ in counts), *counts[-1][1:]


WORKLOADS = [
    Workload("W1", "13 bytes, keep-alive, 64 clients", "13.txt", 64),
    Workload(
        "W1L",
        "W1 with an access log, beside monkey without one",
        "13.txt",
        64,
        servers=("monkey", "monkey+log", "nginx+log", "lighttpd+log"),
    ),
    Workload("W2", "13 bytes, a new connection each", "13.txt", 64, CLOSE),
    Workload("W3", "26,510 bytes, 500 clients", "26k.bin", 500),
    Workload(
        "W3z",
        "the same, Accept-Encoding and precompressed variants",
        "26k.bin",
        500,
        GZIP,
        servers=("monkey+gz", "nginx+gz"),
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


def measure(workload, servers, rounds, seconds, folder):
    results = {server.name: [] for server in servers}
    tails = {}
    for server in servers:
        workload.run(server.port, 1, folder)
    for _ in range(rounds):
        for server in servers:
            before = server.cpu_seconds()
            count, p99, errors = workload.run(server.port, seconds, folder)
            results[server.name].append((server.cpu_seconds() - before) / count * 1e6)
            tails[server.name] = (p99, errors)
    return results, tails


def report(workload, results, tails):
    first = next(iter(results))
    print(f"\n{workload.name}  {workload.text}")
    print(f"  {'server':<12} {'CPU µs per request':>20} {'min':>8} {'max':>8} {'monkey is':>12} {'p99':>9}")
    for name, values in results.items():
        ratio = statistics.median(a / b for a, b in zip(results[first], values))
        p99, errors = tails[name]
        print(
            f"  {name:<12} {statistics.median(values):>20.2f} {min(values):>8.2f} {max(values):>8.2f} "
            f"{ratio:>10.2f} x {p99:>9} {errors}"
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
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="monkey-bench-")
    root = os.path.join(folder, "www")
    os.makedirs(root)
    os.chmod(folder, 0o755)
    make_files(root)
    chosen = [w for w in WORKLOADS if not args.workloads or w.name in args.workloads]
    names = list(dict.fromkeys([*PLAIN, *(name for w in chosen for name in w.servers)]))
    servers = {name: server for name in names if (server := make_server(name, folder, root))}
    try:
        for server in servers.values():
            server.start()
        if args.counts or not args.workloads:
            report_counts([servers[name] for name in PLAIN if name in servers])
        for workload in chosen:
            present = [servers[name] for name in workload.servers if name in servers]
            report(workload, *measure(workload, present, args.rounds, args.seconds, folder))
    finally:
        for server in servers.values():
            if hasattr(server, "process"):
                server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
