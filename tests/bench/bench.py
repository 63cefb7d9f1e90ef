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
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILES = {"13.txt": 13, "26k.bin": 26510, "200k.bin": 200 * 1024, "1m.bin": 1 << 20}

NGINX = """daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.err crit;
events {{ worker_connections 16384; }}
http {{ access_log off; sendfile on; tcp_nopush {nopush}; keepalive_requests 1000000000; keepalive_timeout 65;
client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
scgi_temp_path {dir}/s; server {{ listen 127.0.0.1:{port} deferred backlog=1024; root {root}; }} }}
"""
LIGHTTPD = """server.document-root = "{root}"
server.port = {port}
server.bind = "127.0.0.1"
server.max-keep-alive-requests = 1000000000
server.max-fds = 16384
server.max-connections = 8192
server.errorlog = "{dir}/lighttpd.err"
mimetype.assign = ( ".txt" => "text/plain", "" => "application/octet-stream" )
"""
MONKEY = """[SERVER]
    Listen 127.0.0.1:{port}
    Workers 1
    MaxKeepAliveRequest 0
    KeepAliveTimeout 65
    LogLevel error
"""

PIPELINE = """init = function(args)
  local r = {}
  for i = 1, %d do r[i] = wrk.format(nil, "/%s") end
  req = table.concat(r)
end
request = function() return req end
"""
LOGGING = "monkey+log"  # the same with an access log
CLOSE = 'wrk.headers["Connection"] = "close"\n'


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


LOGGED = """[LOGGER]
    AccessLog {dir}/access.log
    Format combined
"""
PLUGINS = """[PLUGINS]
    Load liana
    Load logger
    Load static
"""


class Server:
    def __init__(self, name, command, port):
        self.name, self.command, self.port = name, command, port

    def start(self):
        self.process = subprocess.Popen(
            ["taskset", "-c", "0"] + self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.02)
        sys.exit(f"{self.name} does not answer; its command was {' '.join(self.command)}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def pids(self):
        found, queue = [], [self.process.pid]
        while queue:
            pid = queue.pop()
            found.append(pid)
            try:
                with open(f"/proc/{pid}/task/{pid}/children") as f:
                    queue += [int(p) for p in f.read().split()]
            except OSError:
                pass
        return found

    def cpu_seconds(self):
        total = 0
        for pid in self.pids():
            for tid in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
                    total += int(f.read().split()[0])
        return total / 1e9

    def memory(self):
        """PSS and private dirty memory in KB."""
        pss = dirty = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/smaps_rollup") as f:
                text = f.read()
            pss += int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1))
            dirty += int(re.search(r"^Private_Dirty:\s+(\d+)", text, re.M).group(1))
        return pss, dirty


class Workload:
    def __init__(self, name, text, path, clients, pipeline=1, close=False, servers=("monkey", "nginx", "lighttpd")):
        self.name, self.text, self.path, self.clients = name, text, path, clients
        self.pipeline, self.close, self.servers = pipeline, close, servers

    def run(self, port, seconds, folder):
        command = ["taskset", "-c", "1", "wrk", "-t1", f"-c{self.clients}", f"-d{seconds}s", "--latency"]
        script = (PIPELINE % (self.pipeline, self.path) if self.pipeline > 1 else "") + (CLOSE if self.close else "")
        if script:
            lua = os.path.join(folder, self.name + ".lua")
            with open(lua, "w") as f:
                f.write(script)
            command += ["-s", lua]
        text = subprocess.run(
            command + [f"http://127.0.0.1:{port}/{self.path}"], capture_output=True, text=True
        ).stdout
        count = re.search(r"(\d+) requests in", text)
        p99 = re.search(r"99%\s+(\S+)", text)
        errors = re.search(r"Socket errors: (.*)", text)
        if not count or int(count.group(1)) == 0:
            sys.exit("wrk counted nothing:\n" + text)
        return int(count.group(1)), p99.group(1) if p99 else "?", errors.group(1) if errors else ""


WORKLOADS = [
    Workload("W1", "13 bytes, keep-alive, 64 clients", "13.txt", 64),
    Workload(
        "W1L", "W1, beside monkey with the logger", "13.txt", 64, servers=("monkey", LOGGING, "nginx", "lighttpd")
    ),
    Workload("W2", "13 bytes, a new connection each", "13.txt", 64, close=True),
    Workload("W3", "26,510 bytes, 500 clients", "26k.bin", 500),
    Workload("W4", "200 KB, 100 clients", "200k.bin", 100),
    Workload("W5", "1 MB, 16 clients", "1m.bin", 16),
    Workload("W6", "13 bytes, 16 requests pipelined", "13.txt", 64, pipeline=16),
]


def make_files(root):
    for name, size in FILES.items():
        with open(os.path.join(root, name), "wb") as f:
            f.write((b"Hello, World\n" * (size // 13 + 1))[:size])
        os.utime(os.path.join(root, name), (time.time() - 3600,) * 2)


def make_monkey(name, folder, root, logger=""):
    port = free_port()
    conf = os.path.join(folder, name)
    files = {
        "monkey.conf": MONKEY.format(port=port),
        "sites/default": f"[HOST]\n    ServerName localhost\n    DocumentRoot {root}\n{logger}",
    }
    if logger:
        files["plugins.load"] = PLUGINS
    os.makedirs(os.path.join(conf, "sites"))
    for file, text in files.items():
        with open(os.path.join(conf, file), "w") as f:
            f.write(text)
    return Server(name, [os.path.join(ROOT, "build/release/bin/monkey"), "-c", conf], port)


def make_servers(folder, root):
    servers = [make_monkey("monkey", folder, root), make_monkey(LOGGING, folder, root, LOGGED.format(dir=folder))]
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if nginx:
        port = free_port()
        path = os.path.join(folder, "nginx.conf")
        with open(path, "w") as f:
            f.write(NGINX.format(dir=folder, port=port, root=root, nopush="off"))
        servers.append(Server("nginx", [nginx, "-p", folder, "-c", path], port))
    lighttpd = shutil.which("lighttpd", path="/usr/sbin:/usr/bin")
    if lighttpd:
        port = free_port()
        path = os.path.join(folder, "lighttpd.conf")
        with open(path, "w") as f:
            f.write(LIGHTTPD.format(dir=folder, port=port, root=root))
        servers.append(Server("lighttpd", [lighttpd, "-D", "-f", path], port))
    return servers


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
    print(f"  {'server':<10} {'CPU µs per request':>20} {'min':>8} {'max':>8} {'monkey is':>12} {'p99':>9}")
    for name, values in results.items():
        ratio = statistics.median(a / b for a, b in zip(results[first], values))
        p99, errors = tails[name]
        print(
            f"  {name:<10} {statistics.median(values):>20.2f} {min(values):>8.2f} {max(values):>8.2f} "
            f"{ratio:>10.2f} x {p99:>9} {errors}"
        )
    sys.stdout.flush()


def report_sizes(servers):
    print("\nmemory before any load, KB (PSS, private dirty); size of the binary, KB")
    for server in servers:
        pss, dirty = server.memory()
        size = os.path.getsize(os.path.realpath(server.command[0])) // 1024
        print(f"  {server.name:<10} {pss:>8} {dirty:>8} {size:>8}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="which of " + " ".join(w.name for w in WORKLOADS))
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-s", "--seconds", type=int, default=2, help="of each round")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="monkey-bench-")
    root = os.path.join(folder, "www")
    os.makedirs(root)
    os.chmod(folder, 0o755)
    make_files(root)
    servers = make_servers(folder, root)
    try:
        for server in servers:
            server.start()
        report_sizes(servers)
        for workload in WORKLOADS:
            if not args.workloads or workload.name in args.workloads:
                chosen = [server for server in servers if server.name in workload.servers]
                report(workload, *measure(workload, chosen, args.rounds, args.seconds, folder))
    finally:
        for server in servers:
            if hasattr(server, "process"):
                server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
