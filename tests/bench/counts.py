# SPDX-License-Identifier: Apache-2.0
"""What is counted rather than timed: memory, sizes, system calls."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from peers import GENERATOR_CPU

IDLE = 2_000  # connections
CROWD = 1_000  # clients
ONE_BY_ONE = 200  # requests whose system calls are counted


def ask(sock, path):
    """One request on a kept connection."""
    sock.sendall(f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    left = int(re.search(rb"(?i)content-length: (\d+)", head)[1]) - len(body)
    while left > 0:
        left -= len(sock.recv(min(left, 1 << 20)))


def count_calls(server):
    """System calls for a small file on a kept connection, one request at a time."""
    strace = shutil.which("strace")
    if not strace:
        return "?"
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        ask(sock, "13.txt")
        pids = [word for pid in server.pids() for word in ("-p", str(pid))]
        with tempfile.NamedTemporaryFile("r") as file:
            tracer = subprocess.Popen([strace, "-f", "-qq", "-o", file.name, *pids], stderr=subprocess.DEVNULL)
            time.sleep(0.5)
            for _ in range(ONE_BY_ONE):
                ask(sock, "13.txt")
            tracer.terminate()
            tracer.wait(10)
            calls = sum(1 for row in file if re.search(r"\w+\(", row) and "resumed" not in row)
    return f"{calls / ONE_BY_ONE:.1f}"


def bytes_per_connection(server):
    """Private dirty memory of a connection that has had one answer and is kept."""
    before, socks = server.memory()[1], []
    try:
        for _ in range(IDLE):
            socks.append(socket.create_connection(("127.0.0.1", server.port)))
            ask(socks[-1], "13.txt")
        return (server.memory()[1] - before) * 1024 // IDLE
    finally:
        for sock in socks:
            sock.close()


def crowd_memory(server):
    """The most private dirty memory, KB, while many clients fetch 200 KB each, again and again."""
    url = f"http://127.0.0.1:{server.port}/200k.bin"
    load = subprocess.Popen(
        ["taskset", "-c", str(GENERATOR_CPU), "wrk", "-t1", f"-c{CROWD}", "-d3s", url],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    most = 0
    while load.poll() is None:
        most = max(most, server.memory()[1])
        time.sleep(0.1)
    return most


COLUMNS = [
    ("PSS", "KB before any load"),
    ("dirty", "private dirty KB before any load"),
    ("binary", "KB"),
    ("calls", "system calls per request"),
    ("bytes", "of memory per idle connection"),
    ("crowd", f"private dirty KB under {CROWD:,} clients on 200 KB"),
]


def report_counts(servers):
    """{server: {column: value}}"""
    found = {}
    print("\n" + "  ".join(f"{name}: {text}" for name, text in COLUMNS))
    print(f"  {'server':<12}" + "".join(f" {name:>8}" for name, _ in COLUMNS))
    for server in servers:
        pss, dirty = server.memory()
        size = os.path.getsize(os.path.realpath(server.command[0])) // 1024
        values = [pss, dirty, size, count_calls(server), bytes_per_connection(server), crowd_memory(server)]
        found[server.name] = values
        print(f"  {server.name:<12}" + "".join(f" {value:>8}" for value in values))
        sys.stdout.flush()
    return {name: {column: value for (column, _), value in zip(COLUMNS, row)} for name, row in found.items()}
