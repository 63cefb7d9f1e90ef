#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the calls of a request for a small file, from epoll_wait() to the file and back.

Builds the server without optimization and with -finstrument-functions, serves kept requests, and counts those calls
that happen in each request: all of them, those from one source file to another, and of these the ones that remain
without lib/core/base, lib/core/loop and the accessors of requests, which a reader need not follow. Functions in headers
count as calls, but not as calls to another file.

    tests/hops/count.py [-v] [TREE]     -v: print the calls from file to file; TREE: another checkout
"""

import argparse
import collections
import mmap
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
REQUESTS = 100
WORDS = 1 << 20
BASE = 0x555555554000  # where a program starts without randomization
BODY = b"Hello, World\n"


def build(tree):
    """Returns the program. Plugins are built in, since addresses of modules differ."""
    folder = tree / "build" / "hops"
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / "trace.o"
    subprocess.run(["cc", "-O2", "-c", "-fPIC", TOP / "tests" / "hops" / "trace.c", "-o", trace], check=True)
    subprocess.run(
        ["cmake", "-S", tree, "-B", folder, "-G", "Ninja", "--log-level=WARNING", "-DCMAKE_BUILD_TYPE=Debug",
         "-DMK_SHARED=OFF", "-DMK_EXPORT=OFF", "-DMK_MODULES=", "-DMK_TESTS=OFF", "-DMK_WR=OFF",
         "-DCMAKE_C_FLAGS_DEBUG=-O0 -g -DNDEBUG -finstrument-functions", f"-DCMAKE_EXE_LINKER_FLAGS={trace}"],
        check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, "bin/monkey"], check=True, stdout=subprocess.DEVNULL)
    return folder / "bin" / "monkey"


def write_files(folder, port):
    (folder / "www").mkdir()
    (folder / "www" / "13.txt").write_bytes(BODY)
    os.utime(folder / "www" / "13.txt", (time.time() - 3600,) * 2)
    (folder / "sites").mkdir()
    (folder / "monkey.conf").write_text(f"[SERVER]\n    Listen 127.0.0.1:{port}\n    Workers 1\n")
    (folder / "sites" / "default").write_text(f"[HOST]\n    DocumentRoot {folder}/www\n")


def connect(port):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit("the server does not answer")


def ask(sock):
    sock.sendall(b"GET /13.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
    data = b""
    while not data.endswith(BODY):
        data += sock.recv(65536)
    assert b" 200 " in data, data


def trace_requests(program, folder):
    """{(function, caller): how often}"""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    write_files(folder, port)
    with open(folder / "trace", "w+b") as file:
        file.truncate(16 + 8 * WORDS)
        words = mmap.mmap(file.fileno(), 0)
    server = subprocess.Popen(["setarch", "-R", program, "-c", folder], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={**os.environ, "MONKEY_HOPS": str(folder / "trace")})
    try:
        with connect(port) as sock:
            ask(sock)
            time.sleep(0.2)  # until the turn has ended
            words[:8] = struct.pack("Q", 1)
            for _ in range(REQUESTS):
                ask(sock)
            time.sleep(0.2)
            words[:8] = bytes(8)
    finally:
        server.terminate()
        server.wait()
    n = struct.unpack_from("Q", words, 8)[0]
    found = struct.unpack_from(f"{n}Q", words, 16)
    return collections.Counter(zip(found[::2], (caller - 1 for caller in found[1::2])))


def name_places(program, tree, addresses):
    """{address: (file, function)}"""
    offsets = [hex(address - BASE) for address in addresses]
    done = subprocess.run(["addr2line", "-f", "-e", program, *offsets], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    files = [os.path.relpath(tree / line.split(":")[0], tree) for line in lines[1::2]]  # relative ones by ccache, too
    return dict(zip(addresses, zip(files, lines[::2])))


def is_followed(place):
    return not place[0].startswith(("lib/core/base/", "lib/core/loop/")) and not place[1].startswith("mk_request_")


def describe(edges):
    files = {place[0] for edge in edges for place in edge}
    return f"{round(sum(edges.values()))} calls in {len(files)} files"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("tree", nargs="?", type=pathlib.Path, default=TOP)
    args = parser.parse_args()
    tree = args.tree.resolve()
    program = build(tree)
    with tempfile.TemporaryDirectory() as folder:
        counts = trace_requests(program, pathlib.Path(folder))
    each = {pair: n / REQUESTS for pair, n in counts.items() if n >= REQUESTS * 0.9}
    places = name_places(program, tree, sorted({address for pair in each for address in pair}))
    edges = collections.Counter()
    for (function, caller), n in each.items():
        to, at = places[function], places[caller]
        if to[0] != at[0] and not to[0].endswith(".h") and not at[0].endswith(".h"):
            edges[at, to] += n
    print(f"all calls: {round(sum(each.values()))}")
    print(f"from file to file: {describe(edges)}")
    print("of these without base, loop and accessors:",
          describe({edge: n for edge, n in edges.items() if all(map(is_followed, edge))}))
    for (at, to), n in sorted(edges.items()) if args.verbose else ():
        print(f"    {at[0]} {at[1]} -> {to[0]} {to[1]} {n:g}")


if __name__ == "__main__":
    main()
