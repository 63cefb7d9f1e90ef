# SPDX-License-Identifier: Apache-2.0
"""System calls that a sandbox or a security module refuses each time: the server neither spins nor is silent, and ends
when it is told to."""

import contextlib
import errno
import re

import pytest

from harness.client import ProtocolError
from harness.messages import request
from harness.preload import preload
from harness.server import await_true
from test_lifecycle import spin

pytestmark = pytest.mark.single_protocol

# Each function fails with the errno in the variable of its name, once the file GO exists.
FAILING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

static int fails(const char *name)
{
    const char *number = getenv(name);
    if (!number || access(getenv("GO"), F_OK) < 0)
        return 0;
    errno = atoi(number);
    return 1;
}

#define NEXT(name, ...) \
    ({ \
        static __typeof__(&name) next; \
        if (!next) \
            next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
        fails(#name) ? -1 : next(__VA_ARGS__); \
    })

int accept4(int fd, struct sockaddr *restrict addr, socklen_t *restrict len, int flags)
{
    return NEXT(accept4, fd, addr, len, flags);
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

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return NEXT(sendmsg, fd, message, flags);
}

ssize_t sendfile(int to, int from, off_t *at, size_t size)
{
    return NEXT(sendfile, to, from, at, size);
}
"""

# What fails, how, and what the log says; without a sentence only the connection that has the error ends, if any does.
OF_CONNECTIONS = ("EPERM", "EPROTO", "ECONNABORTED", "ENETDOWN", "EHOSTUNREACH")
OF_THE_SOCKET = ("EACCES", "ENOSYS", "EOPNOTSUPP", "ENOBUFS", "EMFILE")
CASES = [("accept4", error, "accept: .*; trying again every 100 ms") for error in OF_CONNECTIONS + OF_THE_SOCKET]
CASES += [("epoll_ctl", error, None) for error in ("EPERM", "ENOSPC")]
CASES += [(call, error, None) for call in ("recv", "send", "sendmsg", "sendfile") for error in ("EPERM", "ENOSYS")]


@pytest.mark.parametrize("call, error, sentence", CASES, ids=str)
def test_a_call_that_always_fails(serve, tmp_path, call, error, sentence):
    go = tmp_path / "go"
    env = {**preload(tmp_path, FAILING), "GO": str(go), call: str(getattr(errno, error))}
    files = {"a.txt": b"a", "large.bin": b"x" * 300_000}
    server = serve({"Workers": 1, "LogLevel": "debug"}, files=files, env=env)
    go.touch()
    with server.connect() as client:
        client.send(request("/large.bin"))
        if sentence:
            server.wait_log(sentence)
        else:
            with contextlib.suppress(ProtocolError, ConnectionError, AssertionError):  # some have another way
                client.response()
        await_true(lambda: spin(server) < 0.2, 60, "a server that sleeps")
    assert server.alive
    if sentence:
        assert len(re.findall("accept: ", server.log)) <= 2
    server.stop()
