# SPDX-License-Identifier: Apache-2.0
"""The threads and inotify instances of a server are those that the guide lists."""

import collections
import contextlib
import pathlib
import re
import signal

import pytest

from harness import build
from harness.certificates import Authority
from harness.content import populate
from harness.server import await_true, links_of_descriptors, section
from test_auth import BOB, users

pytestmark = pytest.mark.skipif(
    not all((build.PLUGINS / f"{name}.so").exists() for name in ("auth", "dirlisting", "logger", "mandril", "tls")),
    reason="the preset does not have all plugins",
)
__all__ = ["users"]  # fixtures

WATCHING = 3  # auth, mandril and tls
OF_THE_CACHE = 1  # which is read by workers


def listed_names():
    """Patterns for the names of the guide."""
    text = (build.TOP / "docs/guide/operate.md").read_text().partition("## Threads and watched files")[2]
    names = [re.match(r"\| `([^`]+)`", row) for row in text.splitlines()]
    return [re.escape(name[1]).replace("w0", r"w\d+").replace("NAME", ".+") for name in names if name]


def await_equal(read, expected):
    """A thread has the name of the one that made it, until it runs."""
    with contextlib.suppress(AssertionError):
        await_true(lambda: read() == expected, 20)
    assert read() == expected


def inotify_files(server):
    return [fd for fd, name in links_of_descriptors(server.pid).items() if name == "anon_inode:inotify"]


@pytest.mark.parametrize("scheduler", ["reuseport", "fair"])
def test_threads(serve, tmp_path, users, scheduler):
    root = populate(tmp_path / "root", {"a.txt": b"a\n", "folder/b.txt": b"b\n"})
    ca = Authority(tmp_path / "ca")
    networks = tmp_path / "networks"
    networks.write_text("192.0.2.0/24\n")
    host = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
    host += section("TLS", ca.make("localhost", "localhost").keys())
    host += section("AUTH", {"Match": "=/a.txt", "Users": users})
    host += section("DIRLISTING", {}) + section("LOGGER", {"AccessLog": tmp_path / "access.log"})
    host += section("RULES", {"File": networks, "Action": "deny"})
    config = {"sites/default": host}
    server = serve({"Workers": 2, "Scheduler": scheduler, "DiskThreads": 1}, config=config)
    with server.connect() as client:
        assert client.ask("/a.txt", BOB).status == 200
        assert client.ask("/folder/").status == 200
    expected = {
        "monkey": 1, "monkey: w0": 1, "monkey: w1": 1, "monkey: logger": 1, "monkey: disk": 1, "auth-hash": 1,
        "monkey: watch": WATCHING, **({"monkey: control": 1} if scheduler == "fair" else {}),
    }  # fmt: skip
    await_equal(lambda: collections.Counter(server.thread_names().values()), expected)
    await_equal(lambda: len(inotify_files(server)), WATCHING + OF_THE_CACHE)
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    if scheduler != "fair":
        server.baseline += 2  # of the control thread
    await_equal(lambda: set(server.thread_names().values()), {*expected, "monkey: control"})
    await_equal(lambda: len(inotify_files(server)), WATCHING + OF_THE_CACHE)
    for name in server.thread_names().values():
        assert any(re.fullmatch(pattern, name) for pattern in listed_names()), name


def test_watches(serve, tmp_path, users):
    """As the guide counts them: each folder on the way, and the file."""
    root = populate(tmp_path / "root", {"a.txt": b"a\n"})
    host = section("HOST", {"DocumentRoot": root}) + section("AUTH", {"Users": users})
    server = serve(config={"sites/default": host})
    (fd,) = inotify_files(server)
    info = pathlib.Path(f"/proc/{server.pid}/fdinfo/{fd}")
    await_true(lambda: info.read_text().count("\ninotify ") == len(users.parts), what="the watches")
