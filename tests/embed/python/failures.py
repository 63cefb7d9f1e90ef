# SPDX-License-Identifier: Apache-2.0
"""Functions that fail, in ways of Python's own. Started with "serve" or "run_once": how the server has its turns."""

import os
import signal
import sys
import time

from monkey import MonkeyError, Server

server = Server("[SERVER]\n    Listen 127.0.0.1:0\n    HandlerTimeout 1h\n[STATUS]\n    Enabled On\n")
kept = []


def wait_for_interrupt(request):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)


def keep(request):
    kept.append((request, request.headers()))
    return "kept"


def use_kept(request):
    """Returns what the kept request of the client before shows."""
    shown = []
    for old, headers in kept:
        for name, use in {
            "path": lambda: old.path, "client": lambda: old.client, "header": lambda: old.header("X-Secret"),
            "headers": lambda: list(headers), "param": lambda: old.param("a"), "local": lambda: old.local,
            "respond": lambda: old.respond(200, [], b"stolen"), "user": lambda: old.user,
        }.items():  # fmt: skip
            try:
                shown.append(f"{name}={use()}")
            except MonkeyError as error:
                shown.append(f"{name}: {error}")
    return "\n".join(shown)


def respond(headers, status=200):
    return lambda request: request.respond(status, headers, b"x")


FUNCTIONS = {
    "raises": lambda request: 1 / 0,
    "number": lambda request: 5,
    "none": lambda request: None,
    "list": lambda request: [1, 2],
    "pair": lambda request: (200, "text/plain"),
    "number-in-tuple": lambda request: (200, "text/plain", 5),
    "text-status": lambda request: ("200", "text/plain", "x"),
    "bad-status": lambda request: (99, "text/plain", "x"),
    "type": lambda request: (200, "text/\u0107", "x"),
    "header-not-latin-1": respond([("X-A", "\u0107")]),
    "name-not-latin-1": respond([("X-\u0107", "a")]),
    "header-of-two-lines": respond([("X-A", "b\r\nX-B: c")]),
    "header-number": respond([("X-A", 5)]),
    "generator-exit": lambda request: (_ for _ in ()).throw(GeneratorExit),
    "exit": lambda request: sys.exit(3),
    "interrupt": wait_for_interrupt,
    "bytearray": lambda request: bytearray(b"fine"),
    "memoryview": lambda request: memoryview(b"fine"),
    "keep": keep,
    "kept": use_kept,
    "stop": lambda request: (server.stop(), "stopped")[1],
    "close": lambda request: server.close(),
}
for name, fn in FUNCTIONS.items():
    server.handle("GET", f"/{name}")(fn)

server.start()
print(f"http://127.0.0.1:{server.port}/", flush=True)
if sys.argv[1] == "serve":
    server.serve()
else:
    while server.running:
        server.run_once(1000)
