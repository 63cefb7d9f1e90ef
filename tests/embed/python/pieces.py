# SPDX-License-Identifier: Apache-2.0
"""A WSGI application whose responses are made in pieces. Argument: a folder in which a file "go" lets one continue."""

import json
import os
import sys
import time

from monkey.wsgi import make_server

PIECE = b"x" * 65536
TYPE = [("Content-Type", "text/plain")]
counts = {"made": 0, "closed": 0}


class Endless:
    def __iter__(self):
        return self

    def __next__(self):
        counts["made"] += 1
        return PIECE

    def close(self):
        counts["closed"] += 1


def wait_between():
    yield b""
    yield b"first,"
    while not os.path.exists(os.path.join(sys.argv[1], "go")):
        time.sleep(0.01)
    yield b"last"


def fail_after(pieces):
    yield from pieces
    raise RuntimeError("on purpose")


def start_late(start_response):
    start_response("203 Late", TYPE)
    yield b"late"


def replace_head(start_response):
    start_response("200 OK", TYPE)
    try:
        raise RuntimeError("on purpose")
    except RuntimeError:
        start_response("502 Replaced", TYPE, sys.exc_info())
    return [b"replaced"]


def write_first(start_response):
    write = start_response("200 OK", TYPE)
    write(b"written,")
    write(b"")
    return [b"yielded"]


def show_environment(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    plain = {name: value for name, value in environ.items() if isinstance(value, str)}
    return [json.dumps({**plain, "body": environ["wsgi.input"].read().decode("latin-1")}).encode()]


def plain(pieces, headers=()):
    return lambda environ, start_response: (start_response("200 OK", TYPE + list(headers)), pieces())[1]


APPLICATIONS = {
    "/environment": show_environment,
    "/counts": lambda environ, start: (start("200 OK", TYPE), [json.dumps(counts).encode()])[1],
    "/endless": plain(Endless),
    "/between": plain(wait_between),
    "/list": plain(lambda: [b"a", b"", b"bc"]),
    "/tuple": plain(lambda: (b"a",)),
    "/generator": plain(lambda: (letter for letter in (b"a", b"b", b"c"))),
    "/large": plain(lambda: [b"y" * 3_000_000, b"z"]),
    "/empty": plain(lambda: []),
    "/empty-generator": plain(lambda: (b"" for _ in range(3))),
    "/length": plain(lambda: (piece for piece in (b"a", b"b")), [("Content-Length", "2")]),
    "/late": lambda environ, start: start_late(start),
    "/replaced": lambda environ, start: replace_head(start),
    "/written": lambda environ, start: write_first(start),
    "/text": plain(lambda: ["text"]),
    "/number": plain(lambda: 5),
    "/numbers": plain(lambda: [5]),
    "/no-start": lambda environ, start: [b"a"],
    "/two-starts": lambda environ, start: (start("200 OK", []), start("200 OK", []), [])[2],
    "/bad-status": lambda environ, start: (start("fine", []), [])[1],
    "/no-more": plain(lambda: (piece for piece in (b"ab", b"")), [("Content-Length", "2")]),
    "/too-long": plain(lambda: [b"abc"], [("Content-Length", "2")]),
    "/too-short": plain(lambda: [b"a"], [("Content-Length", "2")]),
    "/bad-length": plain(lambda: [b"a"], [("Content-Length", "many")]),
    "/bad-header": plain(lambda: [b"a"], [("X-A", "\u0107")]),
    "/fails": plain(lambda: fail_after([])),
    "/fails-late": plain(lambda: fail_after([b"a" * 100, b"b"])),
    "/exit": lambda environ, start: sys.exit(3),
    "/exit-late": plain(lambda: (sys.exit(3) if n else b"a" for n in range(2))),
}


def application(environ, start_response):
    return APPLICATIONS[environ["PATH_INFO"]](environ, start_response)


listen = os.environ.get("LISTEN", "127.0.0.1:0")
server = make_server(application, f"[SERVER]\n    Listen {listen}\n    HandlerTimeout 1h\n")
server.start()
print(f"http://127.0.0.1:{server.port}/", flush=True)
server.serve()
