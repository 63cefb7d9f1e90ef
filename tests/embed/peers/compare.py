#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of this folder side by side: lines, private memory, instructions and CPU time of a request.

usage: compare.py PREFIX    where the server is installed (cmake --install build/release --prefix PREFIX)

Prints a table in Markdown. Needs wrk, valgrind, libmicrohttpd-dev, libcivetweb-dev and libcpp-httplib-dev.
"""

import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS, SECONDS, FEW, MANY = 7, 2, 200, 1200
PEERS = {
    "monkey": ("libmonkey", "monkey.c", []),
    "microhttpd": ("libmicrohttpd", "microhttpd.c", ["-lmicrohttpd"]),
    "civetweb": ("civetweb", "civetweb.c", ["-lcivetweb"]),
    "httplib": ("cpp-httplib", "httplib.cpp", ["-lcpp-httplib"]),
}


def compile_all(prefix, folder):
    library = next(prefix.rglob("libmonkey.so")).parent
    for name, (_, source, libraries) in PEERS.items():
        words = ["c++" if source.endswith(".cpp") else "cc", "-O2", HERE / source, "-o", folder / name, *libraries]
        if name == "monkey":
            words += [f"-I{prefix}/include", f"-L{library}", f"-Wl,-rpath,{library}", "-lmonkey"]
        subprocess.run([*map(str, words), "-pthread"], check=True)
    empty = '#include <stdio.h>\nint main(void) { puts("x://1:1/"); fflush(stdout); getchar(); }\n'
    (folder / "empty.c").write_text(empty)
    subprocess.run(["cc", "-O2", folder / "empty.c", "-o", folder / "empty", "-pthread"], check=True)


class Run:
    def __init__(self, *command):
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.url = self.process.stdout.readline().decode().strip()
        self.port = int(re.search(r":(\d+)/", self.url)[1])

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.communicate(b"\n", timeout=60)

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def private_kb(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(re.search(r"^Private_Dirty:\s+(\d+)", text, re.M)[1])

    def ask(self, number):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            for _ in range(number):
                client.sendall(b"GET /hello/you HTTP/1.1\r\nHost: h\r\n\r\n")
                data = b""
                while b"Hello, you!\n" not in data:
                    data += client.recv(4096)


def count_lines(source):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", (HERE / source).read_text(), flags=re.S)
    return sum(bool(line.strip()) for line in text.splitlines())


def count_instructions(folder, name):
    counts = []
    for number in (FEW, MANY):
        out = folder / f"{name}.{number}"
        with Run("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", folder / name) as run:
            run.ask(number)
        counts.append(int(re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.M)[1]))
    return (counts[1] - counts[0]) / (MANY - FEW)


def measure_load(folder, name):
    """CPU time of the server for a request in microseconds, and requests per second, of one round."""
    with Run(folder / name) as run:
        run.ask(1)
        before = run.cpu_seconds()
        words = ["wrk", "-t1", "-c1", f"-d{SECONDS}s", run.url]
        done = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        requests = int(re.search(r"(\d+) requests in", done)[1])
        return (run.cpu_seconds() - before) / requests * 1e6, requests / SECONDS


def measure_memory(folder, name):
    with Run(folder / name) as run:
        if name != "empty":
            run.ask(1)
        return run.private_kb()


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        compile_all(pathlib.Path(sys.argv[1]).resolve(), folder)
        loads = {name: [] for name in PEERS}
        for _ in range(ROUNDS):  # in turn, so that others on the machine disturb all of them
            for name in PEERS:
                loads[name].append(measure_load(folder, name))
        empty = measure_memory(folder, "empty")
        print("| library | lines | private memory | instructions of a request | CPU time of a request |")
        print("|---|---|---|---|---|")
        for name, (title, source, _) in PEERS.items():
            memory, cpu = measure_memory(folder, name) - empty, statistics.median(each[0] for each in loads[name])
            instructions = count_instructions(folder, name)
            print(f"| {title} | {count_lines(source)} | {memory} KB | {instructions:,.0f} | {cpu:.1f} µs |")


if __name__ == "__main__":
    main()
