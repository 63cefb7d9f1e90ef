# SPDX-License-Identifier: Apache-2.0
"""Kernels before 5.12 and some sandboxes refuse openat2(2): the server then opens one component of a path at a
time, and the tests of roots, links and aliases have the same results."""

import errno
import os
import re
import signal
import subprocess

import pytest

from harness import build
from harness.content import populate
from harness.seccomp import OPENAT2, refuse
from harness.server import write_config
import test_roots
import test_static
import test_updates

pytestmark = pytest.mark.single_protocol

# Tests and fixtures of other files, with the `serve` of this one.
OTHERS = {
    test_roots: ("place",),
    test_updates: ("releases",),
    test_static: ("linked", "test_links_off", "test_links_inside", "test_links_on"),
}
for module, names in OTHERS.items():
    tests = [name for name in vars(module) if name.startswith("test_")] if len(names) == 1 else []
    globals().update({name: getattr(module, name) for name in (*names, *tests)})


@pytest.fixture
def serve(serve):
    """Starts servers that may not call openat2(2)."""

    def start(*args, **rest):
        server = serve(*args, wrapper=refuse(OPENAT2, errno.EPERM), **rest)
        server.wait_log(r"openat2\(2\) is refused \(Operation not permitted\)")
        return server

    return start


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS, errno.EINVAL])
def test_check(tmp_path, error):
    """A check says so, once for all hosts."""
    write_config(tmp_path / "conf", populate(tmp_path / "root", {"a.txt": b"a\n"}))
    command = [*refuse(OPENAT2, error), build.binary(), "-c", tmp_path / "conf", "-t"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=build.environment())
    said = re.findall(r"warning: openat2\(2\) is refused \((.*)\): files are opened one component", result.stderr)
    assert said == [os.strerror(error)]


def test_the_log_says_so_once(serve):
    server = serve(files={"a.txt": b"a\n"})
    assert server.connect().ask("/a.txt").body == b"a\n"
    server.baseline += 2  # of the thread that ends a generation
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    assert server.connect().ask("/a.txt").body == b"a\n"
    assert sum("openat2" in line for line in server.logged) == 1
