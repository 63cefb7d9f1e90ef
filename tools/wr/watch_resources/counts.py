# SPDX-License-Identifier: Apache-2.0
"""What is counted rather than timed: memory, sizes, system calls."""

import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

from . import WrError
from .data import Problem
from .proc import ProcessTree
from .servers import Server
from .websocket import WebSocket

IDLE, WEBSOCKETS = 2_000, 10_000  # connections
CROWD = 1_000  # clients
CROWD_SECONDS = 3
ONE_BY_ONE = 200  # requests whose system calls are counted
ATTACH_SECONDS, SETTLE_SECONDS = 10, 0.5
STARTS, START_POLL_SECONDS = 5, 0.0005
IDLE_SECONDS = 2
SMALL, LARGE, HELLO, ECHO = "13.txt", "200k.bin", "hello/", "echo"
SAMPLE_SECONDS = 0.1
COLUMNS = {
    "start_ms": "start, ms",
    "idle_cpu_us": "CPU when idle, us a second",
    "idle_wakeups": "wake-ups when idle, a second",
    "pss_kb": "PSS, idle, KB",
    "dirty_kb": "private dirty, idle, KB",
    "binary_kb": "binary, KB",
    "calls": "system calls per request or message",
    "connection_bytes": "bytes per idle connection or WebSocket",
    "crowd_dirty_kb": f"private dirty, {CROWD:,} clients on 200 KB, KB",
}


def receive(sock, size):
    data = sock.recv(size)
    if not data:
        raise Problem("the server closed a connection that was to be kept")
    return data


def ask(sock, path):
    """One request on a kept connection, or one message on a WebSocket."""
    if isinstance(sock, WebSocket):
        sock.send("x" * 125)
        sock.receive()
        return
    sock.sendall(f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    data = b""
    while b"\r\n\r\n" not in data:
        data += receive(sock, 65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    if not length:
        raise Problem(f"the answer to /{path} has no Content-Length: {head.decode('latin1')!r}")
    left = int(length[1]) - len(body)
    while left > 0:
        left -= len(receive(sock, min(left, 1 << 20)))


def find_small_path(choice):
    """Of what is asked for while system calls are counted."""
    return HELLO if "hello" in choice.variants or HELLO in choice.kind.files else SMALL


def is_websocket(server):
    return "ws" in server.choice.variants


def connect(server):
    if is_websocket(server):
        return WebSocket(server.port, ECHO, "tls" in server.choice.variants)
    return socket.create_connection(("127.0.0.1", server.port), 10)


def read_memory(server):
    """(PSS, private dirty memory) of all its processes, in KB."""
    memory = ProcessTree(server.pid).read(complete=True).memory
    if not memory:
        raise Problem(f"the memory of {server.name} may not be read")
    return memory.pss_kb, memory.dirty_kb


def is_traced(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return False
    return not re.search(r"^TracerPid:\s+0$", text, re.M)


def wait_for_tracer(tracer, pids):
    """Returns whether it watches all of them; it cannot where ptrace is not permitted."""
    end = time.monotonic() + ATTACH_SECONDS
    while tracer.poll() is None and time.monotonic() < end:
        if all(map(is_traced, pids)):
            time.sleep(SETTLE_SECONDS)  # for their other threads
            return True
        time.sleep(0.02)
    return False


def count_calls(server):
    """System calls for a small file on a kept connection, one request at a time; None where they cannot be counted."""
    strace = shutil.which("strace")
    if not strace:
        return None
    path = find_small_path(server.choice)
    with connect(server) as sock, tempfile.NamedTemporaryFile("r") as file:
        ask(sock, path)  # all workers run then
        tree = ProcessTree(server.pid)
        tree.read(complete=True)
        pids = sorted(tree.processes)
        words = [word for pid in pids for word in ("-p", str(pid))]
        tracer = subprocess.Popen([strace, "-f", "-qq", "-o", file.name, *words], stderr=subprocess.DEVNULL)
        try:
            if not wait_for_tracer(tracer, pids):
                return None
            for _ in range(ONE_BY_ONE):
                ask(sock, path)
        finally:
            tracer.terminate()
            tracer.wait(10)
        calls = sum(1 for row in file if re.search(r"\w+\(", row) and "resumed" not in row)
    return round(calls / ONE_BY_ONE, 1)


def count_connection_bytes(server):
    """Private dirty memory of a connection that has had one answer, or one message, and is kept."""
    socks, number = [], WEBSOCKETS if is_websocket(server) else IDLE
    with connect(server) as first:  # what all have in common
        ask(first, find_small_path(server.choice))
    before = read_memory(server)[1]
    try:
        for _ in range(number):
            socks.append(connect(server))
            ask(socks[-1], find_small_path(server.choice))
        return (read_memory(server)[1] - before) * 1024 // number
    finally:
        for sock in socks:
            sock.close()


def find_crowd_memory(server, command):
    """The most private dirty memory, KB, while many clients fetch 200 KB each; `command` is a generator's."""
    most = 0
    load = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while load.poll() is None:
            most = max(most, read_memory(server)[1])
            time.sleep(SAMPLE_SECONDS)
    finally:
        if load.poll() is None:
            load.kill()
        load.wait()
    return most


def measure_start(server):
    """Milliseconds from starting the program to its first answer: the median of some starts."""
    times = []
    for _ in range(STARTS):
        server.stop_program()
        begin = time.perf_counter()
        server.start_program(START_POLL_SECONDS)
        with connect(server) as sock:
            ask(sock, find_small_path(server.choice))
        times.append(1000 * (time.perf_counter() - begin))
    return round(statistics.median(times), 1)


def measure_idle(server):
    """(CPU time in us, wake-ups) of a second without any request."""
    tree = ProcessTree(server.pid)
    before = tree.read(complete=True)
    time.sleep(IDLE_SECONDS)
    after = tree.read(complete=True)
    used, seconds = after.counters.minus(before.counters), (after.at_ns - before.at_ns) / 1e9
    return round(used.cpu_ns / 1000 / seconds, 1), round(used.voluntary / seconds, 1)


def count(server, crowd_command):
    """The line of a server; `crowd_command` is None for servers that have no such file."""
    pss, dirty = read_memory(server)
    idle_cpu, wakeups = measure_idle(server)
    is_kept = server.kind.keep_alive
    calls = count_calls(server) if is_kept else None
    return {
        "type": "counts",
        "server": server.name,
        "pss_kb": pss,
        "dirty_kb": dirty,
        "binary_kb": os.path.getsize(os.path.realpath(server.command[0])) // 1024,
        "calls": calls,
        "connection_bytes": count_connection_bytes(server) if is_kept else None,
        "crowd_dirty_kb": find_crowd_memory(server, crowd_command) if crowd_command else None,
        "idle_cpu_us": idle_cpu,
        "idle_wakeups": wakeups,
        "start_ms": measure_start(server),
    }


def count_servers(choices, environment, make_crowd_command, write, report):
    """Counts each server alone and writes its line; `report` takes a Problem with one of them."""
    for choice in choices:
        folder = os.path.join(environment.folder, "counts", choice.label)
        os.makedirs(folder)
        server = None
        try:
            server = Server(choice, folder, environment.root, environment.server_cpu, environment.built)
            server.start()
            time.sleep(SETTLE_SECONDS)  # it may listen before its workers run
            has_large = not choice.kind.files or LARGE in choice.kind.files
            write(count(server, make_crowd_command(server, folder) if has_large else None))
        except (WrError, OSError) as problem:
            report(Problem(f"{choice.label} cannot be counted: {problem}"))
        finally:
            if server:
                server.stop()


def format_counts(counts):
    """The lines of a table."""
    yield f"  {'server':<16}" + "".join(f"  {name:>{max(8, len(name))}}" for name in COLUMNS)
    for row in counts:
        cells = ["" if row[name] is None else f"{row[name]:,}" for name in COLUMNS]
        yield f"  {row['server']:<16}" + "".join(f"  {c:>{max(8, len(n))}}" for n, c in zip(COLUMNS, cells))
    yield from (f"  {name}: {text}" for name, text in COLUMNS.items())
