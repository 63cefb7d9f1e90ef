# SPDX-License-Identifier: Apache-2.0
"""Logs of a server that gives up root: standard streams by their paths, and files that only root can open."""

import os
import pwd
import signal
import socket
import stat

import pytest

from harness import build
from harness.content import HELLO, populate
from harness.server import Server, await_true, run, section, write_config
from test_privileges import NO_LEAKS, USER, open_path  # noqa: F401

pytestmark = [
    pytest.mark.single_protocol,
    build.needs_modules,
    pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can become another user"),
]
UID = pwd.getpwnam(USER).pw_uid
DONE = "the new configuration is in use"


class Site:
    def __init__(self, folder):
        self.folder, self.servers = folder, []
        self.root = populate(folder / "root", {"hello.txt": HELLO})

    def write(self, access=None, user=USER, **settings):
        text = section("LOGGER", {"AccessLog": access, "Format": '"$path"'}) if access else ""
        self.conf = write_config(self.folder / "conf", self.root, {"User": user, **settings}, text=text)

    def start(self, stdout=None, **rest):
        """With a descriptor as its standard output."""
        if stdout is not None:
            rest |= {"wrapper": ("bash", "-c", f'exec "$0" "$@" >&{stdout}'), "pass_fds": (stdout,)}
        self.server = Server("-c", self.conf, env=NO_LEAKS, **rest)
        self.servers.append(self.server)

    def ask(self):
        with self.server.connect() as client:
            assert client.ask("/hello.txt").status == 200

    def reload(self, number=1, outcome=DONE):
        self.server.send_signal(signal.SIGHUP)
        self.server.wait_log(outcome, number)

    def check(self):
        return run("-t", "-c", self.conf, env=NO_LEAKS)


@pytest.fixture
def site(open_path):  # noqa: F811
    one = Site(open_path)
    yield one
    for server in one.servers:
        if not server.finished:
            server.stop()


def make_pair(kind, folder):
    """What is written to, and what is read from."""
    if kind == "socket":
        return tuple(each.detach() for each in socket.socketpair())
    if kind == "pipe":
        return os.pipe()[::-1]
    (folder / "stdout").touch(0o600)
    return os.open(folder / "stdout", os.O_WRONLY | os.O_APPEND), os.open(folder / "stdout", os.O_RDONLY)


# ── standard streams ──


@pytest.mark.parametrize("user", [USER, None])
@pytest.mark.parametrize("path, kind", [
    ("stdout", "pipe"), ("/dev/stdout", "file"), ("/dev/stdout", "pipe"), ("/dev/stdout", "socket"),
    ("/dev/fd/1", "socket"), ("/proc/self/fd/1", "pipe"),
])  # fmt: skip
def test_standard_output(site, path, kind, user):
    """Also after a reload; the user may open none of them."""
    writer, reader = make_pair(kind, site.folder)
    os.set_blocking(reader, False)
    site.write(path, user)
    done = site.check()
    assert done.returncode == 0 and "cannot write" not in done.stderr
    site.start(writer)
    found = b""

    def has_lines(n):
        nonlocal found
        try:
            found += os.read(reader, 4096)
        except BlockingIOError:
            pass
        return found.count(b"/hello.txt\n") == n

    for n in (1, 2, 3):
        site.ask()
        await_true(lambda: has_lines(n), 30, f"{n} lines")
        if n < 3:
            site.reload(n)
    assert "logger: cannot write" not in site.server.log
    os.close(writer)
    os.close(reader)


@pytest.mark.parametrize("user", [USER, None])
def test_standard_error(site, user):
    site.write("/dev/stderr", user, ErrorLog="/dev/stderr")
    site.start()
    for n in (1, 2):
        site.ask()
        site.server.wait_log("^/hello.txt$", n)
        site.reload(n)
    assert "error" not in site.server.log


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_the_error_log_on_standard_output(site, kind):
    writer, reader = make_pair(kind, site.folder)
    os.set_blocking(reader, False)
    site.write(ErrorLog="/dev/stdout")
    site.start(writer, wait=False)
    found = b""

    def has(text):
        nonlocal found
        try:
            found += os.read(reader, 4096)
        except BlockingIOError:
            pass
        return text in found

    await_true(lambda: has(b"serves with"), 60, "the start")
    site.server.send_signal(signal.SIGHUP)
    await_true(lambda: has(DONE.encode()), 60, "the reload")
    site.server.stop()
    os.close(writer)
    os.close(reader)
    assert b"error" not in found


# ── a folder of root ──


@pytest.fixture
def closed(site):
    """A folder in which only root can create files."""
    folder = site.folder / "logs"
    folder.mkdir(mode=0o755)
    return folder


@pytest.mark.parametrize("args", [(), ("--supervise",)], ids=["alone", "supervised"])
def test_a_log_in_a_folder_of_root(site, closed, args):
    path = closed / "access.log"
    site.write(path)
    done = site.check()
    assert done.returncode == 0 and "cannot write" not in done.stderr and not path.exists()
    site.servers.append(server := Server("-c", site.conf, *args, env=NO_LEAKS))
    site.server = server
    assert "cannot write" not in server.log
    status = path.stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (UID, 0o640)
    for n in (1, 2, 3):
        site.ask()
        await_true(lambda: path.read_text().count("/hello.txt\n") == n, 30, f"{n} lines")
        site.reload(n)
    assert "cannot write" not in server.log and "error" not in server.log


def test_a_log_that_exists(site, closed):
    """A file of root stays root's, and is written all the same."""
    path = closed / "access.log"
    path.write_text("")
    path.chmod(0o600)
    site.write(path)
    site.start()
    site.ask()
    await_true(lambda: path.read_text() == "/hello.txt\n", 30, "the line")
    site.reload()
    assert path.stat().st_uid == 0 and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_rotation_in_a_folder_of_root(site, closed):
    """The file that was renamed is used on, and the log says why; one that the rotation creates for the user is new."""
    path, old = closed / "access.log", closed / "access.log.1"
    site.write(path)
    site.start()
    path.rename(old)
    site.server.send_signal(signal.SIGUSR1)
    site.server.wait_log("logger: cannot write .*access.log: Permission denied")
    site.ask()
    await_true(lambda: old.read_text() == "/hello.txt\n", 30, "the line")
    path.touch()
    os.chown(path, UID, -1)
    site.server.send_signal(signal.SIGUSR1)
    await_true(lambda: site.ask() or path.read_text(), 30, "a line in the new file")
    site.server.wait_log("can be written again")


def test_a_reload_with_another_log(site, closed):
    """It cannot be opened any more: the reload is refused, and the old log is kept."""
    path = closed / "access.log"
    site.write(path)
    site.start()
    site.write(closed / "another.log")
    site.reload(1, "the old one stays")
    assert "another.log: Permission denied" in site.server.log
    site.ask()
    await_true(lambda: path.read_text() == "/hello.txt\n", 30, "the line")


def test_a_log_that_not_even_root_can_open(site):
    site.write(site.folder / "missing" / "access.log")
    assert site.check().returncode == 1
    done = run("-c", site.conf, env=NO_LEAKS)
    assert done.returncode == 1 and "access.log: No such file" in done.stderr


def test_a_server_that_is_no_root(site, closed):
    """It has nothing to give up: what it cannot write is an error of the check and of the start."""
    site.write(closed / "access.log", CoreDumps="On")
    for args in ((), ("-t",)):
        done = run("-c", site.conf, *args, user=UID)
        assert done.returncode == 1 and "access.log: Permission denied" in done.stderr
