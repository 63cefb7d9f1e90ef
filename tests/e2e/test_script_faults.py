# SPDX-License-Identifier: Apache-2.0
"""Scripts of [CGI] and processes of Spawn while forks, descriptors and memory fail: an error, and the next request is
served. Nothing is left over, as the fixtures check."""

import os
import re
import signal
import struct

import pytest

from harness import build
from harness.failing_memory import FAILURES, FailingMemory, fail_each, only_sanitized
from harness.few_descriptors import fail_each_descriptor, few_descriptors
from harness.php import needs_php_cgi
from harness.preload import preload
from harness.scripts import ENVIRONMENT, HELLO, cgi_section, children, starters, wait_no_scripts, write_scripts
from harness.server import await_true, is_alive, section

pytestmark = pytest.mark.single_protocol

needs_cgi = pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists(), reason="this preset has no plugins")
needs_fastcgi = pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugins")

SOCKETS = 2  # to the starter: one of the process, and one of the worker

WAIT = """#!/bin/sh
touch waiting
while [ ! -e go ]; do sleep 0.05; done
printf 'Content-Type: text/plain\\n\\ndone'
"""

FORKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

/* Of fork and clone: how many more calls succeed before one fails; negative: all. In a file, for all processes. */
static long *left;

__attribute__((constructor)) static void open_counts(void)
{
    int fd = open(getenv("CALLS"), O_RDWR | O_CLOEXEC);
    left = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}

static int fails(int which)
{
    errno = EAGAIN;
    return __atomic_load_n(left + which, __ATOMIC_SEQ_CST) >= 0 &&
           __atomic_fetch_sub(left + which, 1, __ATOMIC_SEQ_CST) == 0;
}

pid_t fork(void)
{
    pid_t (*next)(void) = dlsym(RTLD_NEXT, "fork");
    return fails(0) ? -1 : next();
}

int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
    int (*next)(int (*)(void *), void *, int, void *, ...) = dlsym(RTLD_NEXT, "clone");
    va_list rest;
    va_start(rest, arg);
    void *pidfd = va_arg(rest, void *);
    va_end(rest);
    return fails(1) ? -1 : next(fn, stack, flags, arg, pidfd);
}
"""
CALLS = {"fork": 0, "clone": 1}


class Calls:
    """Has the n-th fork or clone of a server, and of what it starts, fail."""

    def __init__(self, folder):
        self.path = folder / "counts"
        self.path.write_bytes(struct.pack("qq", -1, -1).ljust(4096, b"\0"))
        self.env = {**preload(folder, FORKS), "CALLS": str(self.path)}

    def fail(self, name, n):
        with open(self.path, "r+b") as file:
            file.seek(8 * CALLS[name])
            file.write(struct.pack("q", n))

    def has_failed(self, name):
        return struct.unpack_from("q", self.path.read_bytes(), 8 * CALLS[name])[0] < 0


@pytest.fixture
def calls(tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    return Calls(folder)


# ── [CGI] ──


@pytest.fixture
def cgi(serve, tmp_path):
    def start(keys=None, **rest):
        folder = write_scripts(tmp_path / "scripts", {"hello": HELLO, "echo": ENVIRONMENT, "wait": WAIT})
        server = serve({"Workers": 1}, text=cgi_section(folder, **(keys or {})), **rest)
        server.scripts = folder
        server.baseline += SOCKETS
        return server

    return start


def ask(server, target="/cgi/hello", **rest):
    with server.connect(timeout=60) as client:
        return client.ask(target, **rest).status


@needs_cgi
@pytest.mark.parametrize("name", CALLS)
def test_fork_fails(cgi, calls, name):
    """Of the starter, and of a script."""
    server = cgi(env=calls.env)
    calls.fail(name, 0)
    assert ask(server) == 503 and calls.has_failed(name)
    server.wait_log("Resource temporarily unavailable")
    assert ask(server) == 200
    calls.fail(name, 2)
    statuses = [ask(server) for _ in range(4)]
    assert statuses == ([200, 200, 503, 200] if name == "clone" else [200] * 4)  # the starter is forked once
    wait_no_scripts(server)


def await_rest(server):
    """No script, and no descriptor but those of a server at rest."""
    wait_no_scripts(server)
    await_true(lambda: server.descriptors() == server.baseline, what="the descriptors of a server at rest")


REQUESTS = {
    "get": ({}, {"target": "/cgi/hello"}),
    "body": ({"SpoolRequest": "Off"}, {"target": "/cgi/echo", "method": "POST", "body": b"x" * 300_000}),
    "received": ({"SpoolRequest": "On"}, {"target": "/cgi/echo", "method": "POST", "body": b"x" * 300_000}),
}


@needs_cgi
@pytest.mark.parametrize("what", REQUESTS)
def test_each_descriptor_fails(cgi, what):
    keys, request = REQUESTS[what]
    server = cgi(keys)
    assert ask(server, **request) == 200
    await_rest(server)
    assert fail_each_descriptor(server, server.connect, lambda client: client.ask(**request).status) >= 4
    wait_no_scripts(server)


@needs_cgi
def test_a_start_without_descriptors_ends_no_other_script(cgi):
    """The descriptor of a process is the last one that a start needs."""
    server = cgi({"MaxProcesses": 2})
    with server.connect(timeout=60) as waiting:
        waiting.send(b"GET /cgi/wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await_true((server.scripts / "waiting").exists, what="the script that runs")
        with server.connect() as client:
            assert client.ask("/cgi/hello").status == 200
            opened, statuses = server.descriptors(), []
            while 200 not in statuses:
                await_true(lambda: server.descriptors() <= opened, what="the end of the last script")
                with few_descriptors(server, len(statuses)):
                    statuses.append(client.ask("/cgi/hello").status)
            assert len(statuses) > 4 and set(statuses) <= {200, *FAILURES}
        (server.scripts / "go").touch()
        assert waiting.response().body == b"done"
    wait_no_scripts(server)


@needs_cgi
def test_each_descriptor_of_a_starter_fails(cgi):
    """The starter has ended: a request needs descriptors for another one, too."""
    server = cgi()
    assert ask(server) == 200
    for count in range(12):
        await_rest(server)
        pids = starters(server)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        await_true(lambda: not any(map(is_alive, pids)), what="the end of the starter")
        await_true(lambda: server.descriptors() == server.baseline - 2, what="the end of its channel and its pidfd")
        with server.connect(timeout=60) as client:
            await_true(lambda: server.descriptors() == server.baseline - 1, what="the connection")
            with few_descriptors(server, count):
                status = client.ask("/cgi/hello").status
        assert status in {200, *FAILURES}, f"with {count} descriptors: {status}"
        await_true(lambda: ask(server) == 200, what="a response")
        if status == 200:
            break
    assert status == 200 and count >= 4
    wait_no_scripts(server)


@needs_cgi
@only_sanitized
@pytest.mark.parametrize("what", ["get", "body", pytest.param("received", marks=pytest.mark.slow)])
def test_each_allocation_fails(cgi, what):
    keys, request = REQUESTS[what]
    server = cgi(keys)
    assert ask(server, **request) == 200
    assert fail_each(server, lambda: ask(server, **request)) > 5
    wait_no_scripts(server)


# ── Spawn ──

PHP = {"hello.php": b"<?php echo 'hello';", "pid.php": b"<?php echo getmypid();"}


@pytest.fixture
def spawn(serve):
    """A server with one process of php-cgi."""

    def start(**rest):
        text = section("FASTCGI", {"Spawn": "php-cgi -n", "Children": 1})
        server = serve({"Workers": 1}, text=text, files=PHP, **rest)
        await_true(lambda: ask(server, "/hello.php") == 200, 60, "the process")
        server.baseline = server.descriptors()
        return server

    return start


NO_DESCRIPTOR = re.compile("Spawn php-cgi -n: it .*(?:no descriptor left|Too many open files)")


def kill_process(server):
    """Returns the number of the process that was killed."""
    with server.connect(timeout=60) as client:
        pid = int(client.ask("/pid.php").body)
    os.kill(pid, signal.SIGKILL)
    return pid


def await_another(server):
    await_true(lambda: ask(server, "/hello.php") == 200, 60, "another process")


@needs_fastcgi
@needs_php_cgi
@pytest.mark.parametrize("n", range(2))
@pytest.mark.parametrize("name", CALLS)
def test_fork_for_spawn_fails(spawn, calls, name, n):
    """The process is started again after the delay."""
    calls.fail(name, n)
    server = spawn(env=calls.env)
    kill_process(server)
    await_another(server)
    if calls.has_failed(name):
        server.wait_log("fastcgi: Spawn php-cgi -n: it .*: Resource temporarily unavailable")


@needs_fastcgi
@needs_php_cgi
def test_each_descriptor_for_spawn_fails(spawn):
    """It is said, and the process is started once there are some."""
    server, failed = spawn(), 0
    while True:
        before = kill_process(server)
        server.wait_log(f"process {before} was killed by signal 9")
        with few_descriptors(server, failed):
            seen = len(NO_DESCRIPTOR.findall(server.log))
            await_true(lambda: len(NO_DESCRIPTOR.findall(server.log)) > seen or find_processes(server) - {before}, 60,
                       "a failure or a process")  # fmt: skip
            has_failed = len(NO_DESCRIPTOR.findall(server.log)) > seen
        await_another(server)
        if not has_failed:
            break
        failed += 1
        assert failed < 20
    assert failed > 1


@needs_fastcgi
@needs_php_cgi
@only_sanitized
def test_each_allocation_for_spawn_fails(spawn):
    server = spawn()
    memory, failed, n = FailingMemory(server), True, 0
    while failed and n < 50:
        before = kill_process(server)
        memory.fail(n)
        server.wait_log(f"process {before} was killed by signal 9")
        await_true(lambda: memory.has_failed() or find_processes(server) - {before}, 60, "a failure or a process")
        failed = memory.end()
        await_another(server)
        n += 1
    memory.close()
    assert not failed and n > 1


def find_processes(server):
    return set(children(server.pid)) - set(starters(server))
