# SPDX-License-Identifier: Apache-2.0
"""Servers that cache files, what they count, and requests by the thousand."""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import time

from . import build
from .clock import RealClock
from .content import populate
from .messages import CLOSE, request
from .metrics import scrape, status_section, total
from .server import await_true, read_threads, section, thread_states


def start_cached(serve, mode="Revalidate 1s", settings=None, *, keys=None, rules=(), config=None, text="", **rest):
    """A server with metrics. `mode` is the rule of the default host for all paths that `rules` do not match:
    [{"Match": "/a", "Files": "Off"}]; `keys` are those of [CACHE] for the server. server.count(name) is a counter's
    value, server.level(name, **labels) that of another figure."""
    made = {"plugins/status/status.conf": status_section(), "plugins/cache/cache.conf": section("CACHE", keys or {})}
    text += "".join(section("CACHE", rule) for rule in [*rules, {"Files": mode}])
    settings = {"MaxKeepAliveRequest": 1_000_000, "KeepAliveTimeout": "60s", **(settings or {})}
    server = serve(settings, config={**made, **(config or {})}, text=text, **rest)
    server.count = lambda name, **labels: read_figure(server, f"monkey_cache_{name}_total", **labels)
    server.level = lambda name, **labels: read_figure(server, f"monkey_cache_{name}", **labels)
    return server


def read_figure(server, name, **labels):
    with server.connect() as client:
        return total(scrape(client), name, **labels)


SETTLED_SECONDS = 3.05  # after its last change, a file may be kept


def await_settled(root, clock=RealClock):
    """Waits until all that is there may be kept; or advances the clock of the servers that the test starts."""
    newest = max(os.lstat(path).st_ctime for path in [root, *root.rglob("*")])
    clock.advance(max(0, newest + SETTLED_SECONDS - time.time()))


def is_hit(server, client, path, *fields, **rest):
    """Asks; was the answer found in the cache?"""
    before = server.count("hits")
    client.ask(path, *fields, **rest)
    return server.count("hits") > before


def await_kept(server, client, path, *fields, **rest):
    """Asks until the answer comes from the cache: a file that has just been changed is not kept yet."""

    def ask():
        return is_hit(server, client, path, *fields, **rest)

    if server.driven_clock and not any(ask() for _ in range(3)):  # the second request keeps it, the third one hits
        server.driven_clock.advance(SETTLED_SECONDS)
    await_true(ask, 30, f"a hit of {path}", pause=0.1)


def make_aged_roots(folder, files, count=40):
    """Yields roots with these files, of which all but those after `count` may soon be kept."""
    roots = [populate(folder / f"root{n}", files) for n in range(count)]
    await_settled(folder)
    yield from roots
    for n in itertools.count(count):
        yield populate(folder / f"root{n}", files)


def await_confirmed(client, *paths, clock=RealClock):
    """A file that is kept is revalidated once more after a second, even where files are immutable."""
    clock.advance(1.1)
    for path in paths:
        client.ask(path)


def ask_many(server, paths, status, batch=100, body=None):
    """Asks for all paths in pipelines; returns the number of answers with this status, and fails for others."""
    paths, mark = list(paths), b"HTTP/1.1 "
    wanted = mark + b"%d " % status
    for at in range(0, len(paths), batch):
        with server.connect() as client:
            some = paths[at : at + batch]
            client.send_in_background(b"".join(map(request, some[:-1])) + request(some[-1], CLOSE))
            data = client.rest()
            found, answered = data.count(wanted), data.count(mark)
            assert found == answered == len(some), f"{found} of {len(some)} were {status}, {answered} were answered"
            assert body is None or data.count(body) == len(some)
    return len(paths)


@contextlib.contextmanager
def delay_calls(server, call, seconds):
    """Holds each of these system calls up before the kernel sees it."""
    inject = f"inject={call}:delay_enter={int(seconds * 1e6)}"
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject, "-p", str(server.pid)]
    strace = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        await_true(lambda: strace.poll() is not None or is_traced(server), 30, "strace")
        assert strace.poll() is None, strace.stderr.read()
        yield
    finally:
        strace.send_signal(signal.SIGINT)
        strace.wait(60)
        strace.stderr.close()


def is_traced(server):
    """Does strace see all threads?"""
    texts = read_threads(server.pid, "status").values()
    return all(int(re.search(r"^TracerPid:\s+(\d+)", text, re.M)[1]) for text in texts)


def is_held_up(server):
    """Is a thread stopped by strace, each time that one looks?"""

    def stopped():
        return {thread for thread, state in thread_states(server.pid).items() if state == "t"}

    held = stopped()
    for _ in range(10):
        time.sleep(0.005)
        held &= stopped()
    return bool(held)


needs_cache = build.needs_cache
