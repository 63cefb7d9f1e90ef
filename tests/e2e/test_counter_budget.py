# SPDX-License-Identifier: Apache-2.0
"""What counting costs: user instructions of a request, counted by callgrind with and without the memory of counters."""

import re
import shutil
import subprocess

import pytest

from harness import build
from harness.client import request

pytestmark = pytest.mark.budget

INSTRUCTIONS_MAX = 400
FEW, MANY = 200, 1200

# Debian's valgrind does not know openat2(2); openat(2) opens the same file here. The server works without counters if
# their memory cannot be made.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

long syscall(long number, ...)
{
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2) {
        const struct open_how *how = (const struct open_how *)a[2];
        return openat((int)a[0], (const char *)a[1], (int)how->flags, (mode_t)how->mode);
    }
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int memfd_create(const char *name, unsigned flags)
{
    int (*next)(const char *, unsigned) = (int (*)(const char *, unsigned))dlsym(RTLD_NEXT, "memfd_create");
    if (!getenv("NO_MEMORY"))
        return next(name, flags);
    errno = ENOSYS;
    return -1;
}
"""


def ask_one_by_one(server, requests, fields=(), status=200):
    client = server.connect()
    for _ in range(requests):
        client.send(request("/hello.txt", *fields))
        assert client.response().status == status
    client.close()


def count_instructions(serve, folder, requests, env, prepare=lambda server: None, ask=ask_one_by_one, **rest):
    """Returns the user instructions of a server that answers so many requests on one connection."""
    asked = {key: rest.pop(key) for key in ("fields", "status") if key in rest}
    out = folder / f"callgrind.{len(list(folder.glob('callgrind.*')))}"
    server = serve(
        {"KeepAliveTimeout": "60s", "MaxKeepAliveRequest": 100_000, "Workers": 1},
        wrapper=("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"),
        env=env,
        **rest,
    )
    prepare(server)
    ask(server, requests, **asked)
    server.stop()
    return int(re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.M)[1])


def count_per_request(serve, folder, env, **rest):
    few, many = (count_instructions(serve, folder, n, env, **rest) for n in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def make_shim(folder):
    """The environment in which valgrind knows what the server calls."""
    source, library = folder / "shim.c", folder / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}


def test_instructions_of_counters(serve, tmp_path, record_property):
    if build.PRESET != "release":
        pytest.skip("of the release only: other builds check more")
    assert shutil.which("valgrind"), "valgrind is not installed"
    shim = make_shim(tmp_path)
    with_counters = count_per_request(serve, tmp_path, shim)
    without = count_per_request(serve, tmp_path, {"NO_MEMORY": "1", **shim})
    print(f"user instructions of a request: {with_counters:.0f} with counters, {without:.0f} without")
    record_property("instructions", with_counters)
    assert without > 1000  # it was counted at all
    assert 0 < with_counters - without <= INSTRUCTIONS_MAX
