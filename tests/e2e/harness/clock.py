# SPDX-License-Identifier: Apache-2.0
"""A clock that the test drives: servers see the time of the kernel, and what the test has added to it."""

import mmap
import struct
import time

from .preload import preload

# The file named by CLOCK has the nanoseconds to add. All threads see them; what waits by epoll_wait(2) with a timeout,
# as the loops of workers do, looks for them every few milliseconds. Other waits end by the time of the kernel.
SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 5, BILLION = 1000000000 };

static const long long none, *ahead = &none;

__attribute__((constructor)) static void open_clock(void)
{
    if (!getenv("CLOCK"))
        return; /* a child that has not the whole environment */
    int fd = open(getenv("CLOCK"), O_RDONLY | O_CLOEXEC);
    void *map = mmap(NULL, sizeof(*ahead), PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || map == MAP_FAILED)
        abort();
    close(fd);
    ahead = map;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    long r = syscall(SYS_clock_gettime, id, ret);
    if (r == 0 && id != CLOCK_THREAD_CPUTIME_ID && id != CLOCK_PROCESS_CPUTIME_ID) {
        long long ns = ret->tv_nsec + __atomic_load_n(ahead, __ATOMIC_ACQUIRE);
        ret->tv_sec += ns / BILLION;
        ret->tv_nsec = ns % BILLION;
    }
    return (int)r;
}

time_t time(time_t *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
    int (*next)(int, struct epoll_event *, int, int) = dlsym(RTLD_NEXT, "epoll_wait");
    if (timeout_ms <= 0)
        return next(fd, events, max, timeout_ms);
    for (long long end = now_ms() + timeout_ms;;) {
        long long left = end - now_ms();
        int n = next(fd, events, max, left <= 0 ? 0 : left < STEP_MS ? (int)left : STEP_MS);
        if (n != 0 || left <= 0)
            return n;
    }
}
"""


def build_library(folder):
    """Returns the environment of a server that has such a clock, but for CLOCK."""
    return preload(folder, SOURCE)


class RealClock:
    """Where nothing drives the clock of a server, time has to pass."""

    @staticmethod
    def advance(seconds):
        time.sleep(seconds)


class Clock:
    """Of the servers that are started with `env`; it never goes back."""

    def __init__(self, path, library):
        path.write_bytes(bytes(8))
        with open(path, "r+b") as file:
            self.ahead = mmap.mmap(file.fileno(), 8)
        self.env = {**library, "CLOCK": str(path)}

    def advance(self, seconds):
        """What the server does after this call sees the new time; timers that are due by it run within milliseconds."""
        (before,) = struct.unpack("q", self.ahead[:])
        self.ahead[:] = struct.pack("q", before + round(seconds * 1e9))
