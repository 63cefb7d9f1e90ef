#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the calls of requests on a kept connection, from epoll_wait() to the last byte of the response.

Builds the server without optimization and with -finstrument-functions, starts it and the servers behind it, and counts
the calls that happen in each request for a file, for a file that is cached, for one of a proxy, a script of FastCGI and
a web service: the calls, the functions, the files that have them, and what remains without lib/core/base, lib/core/loop
and the accessors of requests, which a reader need not follow.

    tests/hops/count.py [-v] [--tree TREE] [REQUEST...]

-v prints the calls of one request, too, and --tree counts another checkout. The requests are static, cached, proxied,
fastcgi and service.
"""

import argparse
import collections
import contextlib
import mmap
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
REQUESTS = 100
WORDS = 1 << 20
DEPTH_BIT = 48
BODY = b"Hello, World\n"
SETTLED_S = 4  # the cache keeps no file that has changed in the last three seconds
MODULES = "cache;proxy;fastcgi;duda;upstream"
SERVICE = "docs/examples/services/01-hello/hello.c"
# addr2line finds the wrong file for functions of headers in version 5 of DWARF
TRACED = ["-O0", "-gdwarf-4", "-DNDEBUG", "-finstrument-functions"]
HTTP_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\n" + BODY
HTTP_END = b"\r\n\r\n"
CGI_RESPONSE = b"Content-Type: text/plain\r\n\r\n" + BODY
FASTCGI_RESPONSE = struct.pack(">BBHHBx", 1, 6, 1, len(CGI_RESPONSE), 0) + CGI_RESPONSE + struct.pack(
    ">BBHHBx8x", 1, 3, 1, 8, 0)  # STDOUT and END_REQUEST
FASTCGI_END = struct.pack(">BBHHBx", 1, 5, 1, 0, 0)  # an empty STDIN

CACHE = "[CACHE]\n    Files Immutable\n"
PROXY = "[PROXY]\n    Match /\n    To http://127.0.0.1:{http}\n"
FASTCGI = "[FASTCGI]\n    Match *.php\n    To 127.0.0.1:{fastcgi}\n    KeepAlive 1\n"
DUDA = "[WEB_SERVICE]\n    Name hello\n"
ROWS = {  # path, what the default host has
    "static": ("/13.txt", ""),
    "cached": ("/13.txt", CACHE),
    "proxied": ("/13.txt", PROXY),
    "fastcgi": ("/13.php", FASTCGI),
    "service": ("/hello/", DUDA),
}


def build(tree):
    """Returns the program, with modules and the web service beside it."""
    folder = tree / "build" / "hops"
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / "trace.o"
    subprocess.run(["cc", "-O2", "-c", "-fPIC", TOP / "tests" / "hops" / "trace.c", "-o", trace], check=True)
    flags = f"{trace} -Wl,--export-dynamic-symbol=__cyg_profile_func_*"
    subprocess.run(
        ["cmake", "-S", tree, "-B", folder, "-G", "Ninja", "--log-level=WARNING", "-DCMAKE_BUILD_TYPE=Debug",
         "-DMK_SHARED=OFF", "-DMK_EXPORT=ON", f"-DMK_MODULES={MODULES}", "-DMK_PACKAGES=", "-DMK_TESTS=OFF",
         "-DMK_WR=OFF", f"-DCMAKE_C_FLAGS_DEBUG={' '.join(TRACED)}", f"-DCMAKE_EXE_LINKER_FLAGS={flags}"],
        check=True, stdout=subprocess.DEVNULL)
    targets = ["bin/monkey", *(f"lib/monkey/{name}.so" for name in MODULES.split(";"))]
    subprocess.run(["ninja", "-C", folder, *targets], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cc", *TRACED, "-shared", "-fPIC", f"-I{tree}/include", tree / SERVICE, "-o",
                    folder / "hello.duda"], check=True)
    return folder / "bin" / "monkey"


class Backend:
    """Answers each request, which ends with `end`, with the same bytes."""

    def __init__(self, end, response):
        self.end, self.response = end, response
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):  # closed at the end
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, sock):
        data = b""
        with sock, contextlib.suppress(ConnectionError):
            while piece := sock.recv(65536):
                data += piece
                if data.endswith(self.end):
                    sock.sendall(self.response)
                    data = b""


def write_files(folder, program, port, sections):
    (folder / "www").mkdir()
    for name in ("13.txt", "13.php"):
        (folder / "www" / name).write_bytes(BODY)
        os.utime(folder / "www" / name, (time.time() - 3600,) * 2)
    (folder / "sites").mkdir()
    (folder / "plugins" / "duda").mkdir(parents=True)
    (folder / "monkey.conf").write_text(f"[SERVER]\n    Listen 127.0.0.1:{port}\n    Workers 1\n")
    if sections == DUDA:
        (folder / "plugins" / "duda" / "duda.conf").write_text(
            f"[DUDA]\n    ServicesRoot {program.parents[1]}\n")
    (folder / "sites" / "default").write_text(f"[HOST]\n    DocumentRoot {folder}/www\n{sections}")


def connect(server, port, log):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=30)
        except ConnectionRefusedError:
            if server.poll() is not None:
                break
            time.sleep(0.05)
    sys.exit(f"the server does not answer:\n{log.read_text()}")


def ask(sock, path):
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    data = b""
    while HTTP_END not in data or not data.lower().endswith(b"world\n"):
        piece = sock.recv(65536)
        assert piece, data
        data += piece
    assert b" 200 " in data, data


def read_mappings(pid, service):
    """[(first address, behind the last one, file, offset of the file's first byte)]"""
    rows = []
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        if len(words) == 6 and words[5].startswith("/"):
            begin, end = (int(word, 16) for word in words[0].split("-"))
            file = service if words[5].startswith("/memfd:") else words[5]  # services are opened from memory
            rows.append((begin, end, file, int(words[2], 16)))
    return rows


def trace_requests(program, folder, path, sections):
    """Returns the calls (depth and function, caller) of REQUESTS requests, those of another, and the mappings."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    write_files(folder, program, port, sections)
    with open(folder / "trace", "w+b") as file:
        file.truncate(16 + 8 * WORDS)
        words = mmap.mmap(file.fileno(), 0)
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(["setarch", "-R", program, "-c", folder], stdout=log, stderr=log,
                                  env={**os.environ, "MONKEY_HOPS": str(folder / "trace")})

    def ask_traced(requests):
        begin = struct.unpack_from("Q", words, 8)[0]
        words[:8] = struct.pack("Q", 1)
        for _ in range(requests):
            ask(sock, path)
        time.sleep(0.2)  # until the turn has ended
        words[:8] = bytes(8)
        end = struct.unpack_from("Q", words, 8)[0]
        found = struct.unpack_from(f"{end - begin}Q", words, 16 + 8 * begin)
        return list(zip(found[::2], found[1::2]))

    try:
        with connect(server, port, folder / "log") as sock:
            if sections == CACHE:
                time.sleep(SETTLED_S)
            for _ in range(3):  # what only the first requests do: connect, fill caches
                ask(sock, path)
            time.sleep(0.2)
            return ask_traced(REQUESTS), ask_traced(1), read_mappings(server.pid, program.parents[1] / "hello.duda")
    finally:
        server.terminate()
        server.wait()


def name_places(addresses, mappings, tree):
    """{address: (file, function)}"""
    offsets = collections.defaultdict(dict)
    for begin, end, file, offset in mappings:
        for address in addresses:
            if begin <= address < end:
                offsets[file][address] = address - begin + offset
    places = {}
    for file, found in offsets.items():
        command = ["addr2line", "-f", "-e", file, *map(hex, found.values())]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        paths = [os.path.relpath(tree / line.split(":")[0], tree) for line in lines[1::2]]  # relative ones by ccache
        places.update(zip(found, zip(paths, lines[::2])))
    return places


def get_function(word):
    return word & ((1 << DEPTH_BIT) - 1)


BASE = ("include/monkey/base/", "lib/core/base/", "lib/core/loop/")


def is_followed(place):
    return not place[0].startswith(BASE) and not place[1].startswith("mk_request_")


def print_calls(calls, places):
    least = min(word >> DEPTH_BIT for word, _ in calls)
    for word, _ in calls:
        file, function = places[get_function(word)]
        print(f"    {'  ' * ((word >> DEPTH_BIT) - least)}{function}  {file}")


def count_calls(program, tree, request, is_verbose):
    """[calls, functions, files, and the same of those that are followed]"""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.ExitStack() as stack:
            http, fastcgi = Backend(HTTP_END, HTTP_RESPONSE), Backend(FASTCGI_END, FASTCGI_RESPONSE)
            for backend in (http, fastcgi):
                stack.enter_context(backend.listener)
            path, sections = ROWS[request]
            sections = sections.format(http=http.port, fastcgi=fastcgi.port)
            calls, last, mappings = trace_requests(program, pathlib.Path(folder), path, sections)
    pairs = collections.Counter((get_function(word), caller) for word, caller in calls)
    each = collections.Counter()
    for (function, _), n in pairs.items():
        each[function] += n / REQUESTS if n >= REQUESTS * 0.9 else 0
    places = name_places({get_function(word) for word, _ in [*calls, *last]}, mappings, tree)
    named = collections.Counter()
    for function, n in each.items():
        named[places[function]] += n
    if is_verbose:
        print(f"{request}:")
        print_calls(last, places)
    figures = []
    for rows in (+named, {place: n for place, n in (+named).items() if is_followed(place)}):
        figures += [round(sum(rows.values())), len(rows), len({file for file, _ in rows if file.endswith(".c")})]
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--tree", type=pathlib.Path, default=TOP)
    parser.add_argument("requests", nargs="*", metavar="REQUEST", default=list(ROWS))
    args = parser.parse_args()
    if unknown := set(args.requests) - set(ROWS):
        parser.error(f"no request {', '.join(unknown)}")
    tree = args.tree.resolve()
    program = build(tree)
    rows = [(request, count_calls(program, tree, request, args.verbose)) for request in args.requests]
    print("| request | calls | functions | files | calls that are followed | functions | files |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for request, figures in rows:
        print(f"| {request} | {' | '.join(map(str, figures))} |")


if __name__ == "__main__":
    main()
