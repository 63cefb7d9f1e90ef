# SPDX-License-Identifier: Apache-2.0
"""System calls that a sandbox or a security module refuses each time: the server neither spins nor is silent, and ends
when it is told to."""

import base64
import contextlib
import errno
import hashlib
import pathlib
import re
import signal
import socket
import time

import pytest

from harness import build
from harness.client import ProtocolError
from harness.messages import request
from harness.preload import preload
from harness.scripts import HELLO, cgi_section, children, write_scripts
from harness.server import await_true, is_alive, run, section, write_config
from harness.services import needs_duda
from test_lifecycle import spin

pytestmark = pytest.mark.single_protocol

# Each function fails with the errno in the variable of its name, once the file GO exists; a file "GO.function.thread"
# is the proof that it was called.
FAILING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

static int fails(const char *name)
{
    const char *number = getenv(name), *go = getenv("GO");
    char thread[16], path[4096];
    if (!number || access(go, F_OK) < 0)
        return 0;
    prctl(PR_GET_NAME, thread);
    snprintf(path, sizeof(path), "%s.%s.%s", go, name, thread);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    errno = atoi(number);
    return 1;
}

#define NEXT_AS(called, name, ...) \
    ({ \
        static __typeof__(&name) next; \
        if (!next) \
            next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
        fails(called) ? -1 : next(__VA_ARGS__); \
    })
#define NEXT(name, ...) NEXT_AS(#name, name, __VA_ARGS__)

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    return NEXT(poll, fds, n, timeout);
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    return NEXT(epoll_wait, fd, events, n, timeout);
}

int eventfd(unsigned count, int flags)
{
    return NEXT(eventfd, count, flags);
}

int accept4(int fd, struct sockaddr *restrict addr, socklen_t *restrict len, int flags)
{
    return NEXT(accept4, fd, addr, len, flags);
}

int eventfd_read(int fd, eventfd_t *value)
{
    return NEXT(eventfd_read, fd, value);
}

int epoll_ctl(int poll, int op, int fd, struct epoll_event *event)
{
    int type = 0;
    socklen_t len = sizeof(type);
    int is_connection = op == EPOLL_CTL_ADD && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
    if (is_connection)
        return NEXT(epoll_ctl, poll, op, fd, event);
    static __typeof__(&epoll_ctl) always;
    if (!always)
        always = (__typeof__(&epoll_ctl))dlsym(RTLD_NEXT, "epoll_ctl");
    return always(poll, op, fd, event);
}

ssize_t recv(int fd, void *to, size_t size, int flags)
{
    return NEXT(recv, fd, to, size, flags);
}

ssize_t send(int fd, const void *from, size_t size, int flags)
{
    return NEXT(send, fd, from, size, flags);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t size)
{
    return NEXT_AS("sendfile", sendfile64, to, from, at, size);
}
"""

# What fails, how, and what the log says; without a sentence only the connection that has the error ends, if any does.
OF_CONNECTIONS = ("EPERM", "EPROTO", "ECONNABORTED", "ENETDOWN", "EHOSTUNREACH")
OF_THE_SOCKET = ("EACCES", "ENOSYS", "EOPNOTSUPP", "ENOBUFS", "EMFILE")
SHA1_OF_X = base64.b64encode(hashlib.sha1(b"x").digest()).decode()
BOB = "Authorization: Basic " + base64.b64encode(b"bob:x").decode()
CASES = [("accept4", error, "accept: .*; trying again every 100 ms") for error in OF_CONNECTIONS + OF_THE_SOCKET]
CASES += [("epoll_ctl", error, None) for error in ("EPERM", "ENOSPC")]
CASES += [(call, error, None) for call in ("recv", "send", "sendfile") for error in ("EPERM", "ENOSYS")]


@pytest.mark.parametrize("call, error, sentence", CASES, ids=str)
def test_a_call_that_always_fails(serve, tmp_path, call, error, sentence):
    go = tmp_path / "go"
    env = {**preload(tmp_path, FAILING), "GO": str(go), call: str(getattr(errno, error))}
    server = serve({"Workers": 1, "LogLevel": "debug"}, files={"large.bin": b"x" * 300_000}, env=env)
    go.touch()
    with server.connect() as client:
        client.send(request("/large.bin"))
        if sentence:
            server.wait_log(sentence)
        else:
            with contextlib.suppress(ProtocolError, ConnectionError, AssertionError):  # some have another way
                client.response()
        await_true(lambda: spin(server) < 0.2, 60, "a server that sleeps")
    assert server.alive and was_called(go, call)
    if call == "epoll_ctl":
        assert server.log.count("a descriptor cannot be watched") == 1
    if sentence:
        assert len(re.findall("accept: ", server.log)) <= 2
    server.stop()


@pytest.mark.skipif(not (build.PLUGINS / "cheetah.so").exists(), reason="this preset has no plugins")
@pytest.mark.parametrize("error", OF_CONNECTIONS + OF_THE_SOCKET)
def test_accept4_of_shells(serve, tmp_path, error):
    """The listener of shells pauses, and serves the shells that wait once it may."""
    go, path = tmp_path / "go", tmp_path / "s"
    env = {**preload(tmp_path, FAILING), "GO": str(go), "accept4": str(getattr(errno, error))}
    config = {"plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": path})}
    server = serve({"Workers": 1}, config=config, env=env)
    go.touch()
    with socket.socket(socket.AF_UNIX) as shell:
        shell.connect(str(path))
        server.wait_log("shell: cannot accept shells at .*; trying again every 100 ms")
        await_true(lambda: spin(server) < 0.2, 60, "a server that sleeps")
        assert server.log.count("shell: cannot accept") <= 2 and was_called(go, "accept4")
        go.unlink()
        shell.sendall(b"plugins\n")
        shell.settimeout(30)
        assert shell.recv(1)
        go.touch()
        server.wait_log("shell: ")
    server.stop()


def was_called(go, call, thread="*"):
    return any(go.parent.glob(f"{go.name}.{call}.{thread}"))


def await_call(go, call, thread):
    await_true(lambda: was_called(go, call, thread), what=f"a call of {call} by {thread}")


def tree(server):
    return [server.pid, *children(server.pid)]


def await_sleep(pids):
    """Waits until each process sleeps."""

    def used():
        ticks = 0
        for pid in pids:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a script
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks

    def sleeps():
        before = used()
        time.sleep(0.5)
        return used() - before < 15 * len(pids)  # of 50 each

    await_true(sleeps, 60, "processes that sleep")


@pytest.mark.skipif(not (build.PLUGINS / "auth.so").exists(), reason="this preset has no plugins")
@pytest.mark.parametrize("error", ["EPERM", "ENOSYS", "ENOMEM"])
def test_poll_of_all_threads(serve, tmp_path, error):
    """Each thread and process that waits by poll(2) does its work all the same: supervisor, starter, logs and files."""
    go, users, log = tmp_path / "go", tmp_path / "users", tmp_path / "access.log"
    env = {**preload(tmp_path, FAILING), "GO": str(go), "poll": str(getattr(errno, error))}
    users.write_text(f"ada:{{SHA}}{SHA1_OF_X}\n")
    folder = write_scripts(tmp_path / "scripts", {"hello": HELLO})
    text = cgi_section(folder) + section("AUTH", {"Match": "/private", "Realm": "x", "Users": users})
    text += section("LOGGER", {"AccessLog": log})
    server = serve({"Workers": 1}, text=text, env=env, args=["--supervise"])
    server.wait_log("supervisor: process .* serves")
    server.baseline += 3  # sockets to the starter

    def ask(target="/cgi/hello", *fields):
        with server.connect() as client:
            return client.ask(target, *fields).status

    assert ask() == 200
    pids = tree(server)
    go.touch()
    users.write_text(f"bob:{{SHA}}{SHA1_OF_X}\n")
    await_true(lambda: ask() == 200 and was_called(go, "poll", "monkey: starter"), what="a script")
    await_call(go, "poll", "monkey: logger")
    await_call(go, "poll", "monkey: watch")
    await_true(lambda: ask("/private/x", BOB) == 404, what="the new users")
    written = log.read_text().count("/cgi/hello")
    ask()
    await_true(lambda: log.read_text().count("/cgi/hello") > written, what="a line of the log")
    server.send_signal(signal.SIGUSR1)
    server.wait_log("poll: .*: this process tries every 50 ms instead of waiting", 2)  # server and supervisor
    await_sleep(pids)
    assert server.log.count("poll: ") == 2
    server.stop()
    await_true(lambda: not any(map(is_alive, pids)), what="the ends")


def test_waits_of_the_loop(serve, tmp_path):
    """No event comes any more; the server says so, sleeps, and stops when it is told to."""
    go = tmp_path / "go"
    server = serve({"Workers": 1}, env={**preload(tmp_path, FAILING), "GO": str(go), "epoll_wait": str(errno.EPERM)})
    go.touch()
    client = server.connect()  # wakes the worker
    server.wait_log("epoll_wait: .*: this process tries every 50 ms instead of waiting")
    await_sleep([server.pid])
    assert was_called(go, "epoll_wait") and server.log.count("epoll_wait: ") == 1
    server.stop()
    client.close()


def test_wake_ups_that_cannot_be_read(serve, tmp_path):
    """The descriptor of a loop stays readable: messages come all the same, and the loop sleeps between them."""
    go = tmp_path / "go"
    server = serve({"Workers": 1}, env={**preload(tmp_path, FAILING), "GO": str(go), "eventfd_read": str(errno.EPERM)})
    go.touch()
    for times in (1, 2):
        server.send_signal(signal.SIGHUP)
        server.wait_log("the new configuration is in use", times)
        with server.connect() as client:
            assert client.ask().status == 200
        await_sleep([server.pid])
    assert was_called(go, "eventfd_read")
    server.stop()


POSTING_SERVICE = """#include <duda/duda.h>
DUDA_REGISTER("posts", "calls its workers");
static _Atomic unsigned calls;
static void count(void *data)
{
    (void)data;
    calls++;
}
static void post(duda_request_t *dr)
{
    event->post(DUDA_EVENT_ALL_WORKERS, count, NULL);
    response->printf(dr, "%u", calls);
    response->end(dr, NULL);
}
int duda_main(void)
{
    return router->get("/", post) ? 0 : -1;
}
"""


@needs_duda
def test_calls_of_services_that_cannot_be_read(serve_services, tmp_path):
    """As of a loop: the calls come, and the worker sleeps between them."""
    go = tmp_path / "go"
    env = {**preload(tmp_path, FAILING), "GO": str(go), "eventfd_read": str(errno.EPERM)}
    server = serve_services({"posts": POSTING_SERVICE}, {"Workers": 1}, env=env)
    go.touch()
    with server.connect() as client:
        for before in range(3):
            await_true(lambda: int(client.ask("/posts/").body) > before, what="the call")  # noqa: B023
    await_sleep([server.pid])
    assert was_called(go, "eventfd_read")
    server.stop()


def test_eventfd_at_a_reload(serve, tmp_path):
    """New workers cannot be made: the old configuration stays."""
    go = tmp_path / "go"
    server = serve({"Workers": 1}, env={**preload(tmp_path, FAILING), "GO": str(go), "eventfd": str(errno.EPERM)})
    go.touch()
    conf = server.conf / "monkey.conf"
    conf.write_text(conf.read_text().replace("Workers 1", "Workers 2"))
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration cannot be used .*, the old one stays")
    assert was_called(go, "eventfd")
    with server.connect() as client:
        assert client.ask().status == 200
    server.stop()


def test_eventfd_at_the_start(tmp_path, site_root):
    go = tmp_path / "go"
    go.touch()
    write_config(tmp_path / "conf", site_root)
    env = {**build.environment(), **preload(tmp_path, FAILING), "GO": str(go), "eventfd": str(errno.EPERM)}
    result = run("-c", tmp_path / "conf", env=env)
    assert result.returncode != 0 and "Operation not permitted" in result.stderr and was_called(go, "eventfd")
