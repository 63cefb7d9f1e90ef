# SPDX-License-Identifier: Apache-2.0
"""Mode, user and group of the Unix sockets of Listen, and the interfaces of link-local addresses."""

import grp
import os
import pwd
import signal
import socket
import stat

import pytest

from harness import build
from harness.client import Client
from harness.content import HELLO, populate
from harness.server import Server, free_port, run, write_config
from test_privileges import NO_LEAKS, USER, open_path  # noqa: F401

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="small builds have no options of Listen"),
]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can give files to others")
DONE, REFUSED = "the new configuration is in use", "the old one stays"
UID, GID, GROUP = pwd.getpwnam(USER).pw_uid, pwd.getpwnam(USER).pw_gid, "nogroup"
OWN = (os.geteuid(), os.getegid())


@pytest.fixture
def site(open_path):  # noqa: F811
    """A server with a Unix socket; site.write(options) writes its line."""

    class Site:
        path = open_path / "run" / "socket"
        server = None

        def write(self, options="", **settings):
            root = populate(open_path / "root", {"hello.txt": HELLO})
            listen = f"unix:{self.path} {options}"
            self.conf = write_config(open_path / "conf", root, {"Listen": listen, **settings})

        def start(self, *args, umask=0o022, **rest):
            before = os.umask(umask)
            try:
                self.server = Server("-c", self.conf, *args, env=NO_LEAKS, **rest)
            finally:
                os.umask(before)

        def reload(self, outcome=DONE):
            before = self.server.log.count(outcome)
            self.server.send_signal(signal.SIGHUP)
            self.server.wait_log(outcome, before + 1)

        def rights(self):
            status = self.path.stat()
            return stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid

    one = Site()
    one.path.parent.mkdir()
    one.path.parent.chmod(0o777)
    yield one
    if one.server and not one.server.finished:
        one.server.stop()


def gid_of(name):
    return grp.getgrnam(name).gr_gid


# ── what a new socket has ──

BY_UMASK = [(0o022, 0o666), (0o000, 0o666), (0o002, 0o666), (0o027, 0o660), (0o007, 0o660), (0o077, 0o600)]


@pytest.mark.parametrize("umask, mode", BY_UMASK)
def test_the_mode_by_default(site, umask, mode):
    """Who may read what the server makes may connect."""
    site.write()
    site.start(umask=umask)
    assert site.rights() == (mode, *OWN)
    with Client(str(site.path)) as client:
        assert client.ask("/hello.txt").status == 200


OPTIONS = {
    "mode=0600": (0o600, *OWN),
    "mode=660": (0o660, *OWN),
    "MODE=0777": (0o777, *OWN),
    "mode=0000": (0, *OWN),
    f"group={GROUP}": (0o666, OWN[0], gid_of(GROUP)),
    f"user={USER}": (0o666, UID, OWN[1]),
    f"user={USER} mode=0640 group={GROUP}": (0o640, UID, gid_of(GROUP)),
    "liana mode=0600": (0o600, *OWN),
}


@root_only
@pytest.mark.parametrize("options", OPTIONS)
def test_options(site, options):
    site.write(options)
    site.start(umask=0o022)
    assert site.rights() == OPTIONS[options]
    assert run("-t", "-c", site.conf, env=NO_LEAKS).returncode == 0


@root_only
@pytest.mark.parametrize("settings, group", [({}, GID), ({"Group": GROUP}, gid_of(GROUP))])
def test_root_gives_it_to_the_user(site, settings, group):
    site.write(User=USER, **settings)
    site.start()
    assert site.rights() == (0o666, UID, group)
    site.write("mode=0600", User=USER, **settings)  # which the user may change
    site.reload()
    assert site.rights() == (0o600, UID, group)


# ── reloads ──


@root_only
def test_a_reload_changes_them(site):
    site.write("mode=0600")
    site.start()
    inode = site.path.stat().st_ino
    for options in [*OPTIONS, ""]:
        site.write(options)
        site.reload()
        assert site.rights() == OPTIONS.get(options, (0o666, *OWN))
    site.path.chmod(0o640)
    site.reload()  # which has nothing new, and leaves it
    assert site.rights() == (0o640, *OWN)
    assert site.path.stat().st_ino == inode


@root_only
def test_what_the_user_may_not_change(site):
    site.write(User=USER)
    site.start()
    before = site.rights()
    site.write(f"group={GROUP}", User=USER)
    site.reload(REFUSED)
    assert "cannot change the mode, user or group of unix:" in site.server.log
    assert site.rights() == before
    with Client(str(site.path)) as client:
        assert client.ask("/hello.txt").status == 200


def test_an_upgrade_keeps_them(site):
    site.write("mode=0640")
    site.start("--supervise")
    assert site.rights() == (0o640, *OWN)
    site.write("mode=0620")
    site.server.send_signal(signal.SIGUSR2)
    site.server.wait_log("supervisor: process .* serves", 2)
    assert site.rights() == (0o620, *OWN)


# ── mistakes ──

MISTAKES = {
    "unix:/x mode=": "the mode of a socket has three digits from 0 to 7, as in mode=0660",
    "unix:/x mode=0888": "the mode of a socket has three digits",
    "unix:/x mode=rw-rw----": "the mode of a socket has three digits",
    "unix:/x mode=1777": "the mode of a socket has three digits",
    "unix:/x mode=66": "the mode of a socket has three digits",
    "unix:/x group=nowhere": 'there is no group "nowhere"',
    "unix:/x user=": 'there is no user ""',
    "127.0.0.1:0 mode=0660": "mode= is for Unix sockets: Listen unix:/path mode=0660",
    "localhost:0 group=nogroup": "group= is for Unix sockets",
    "[fe80::1%nowhere]:80": "there is no interface of that name",
    "[fe80::1]:80": "a link-local address needs its interface: [fe80::1%eth0]:80",
    "[::1%lo]:80": "only a link-local address (fe80::) has an interface behind it",
}


@pytest.mark.parametrize("listen", MISTAKES)
def test_mistakes(tmp_path, site_root, listen):
    conf = write_config(tmp_path / "conf", site_root, {"Listen": listen})
    done = run("-t", "-c", conf)
    assert done.returncode == 1 and MISTAKES[listen] in done.stderr, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: the test has no other user")
def test_the_user_that_it_may_not_be_given_to(site):
    site.write("user=root")
    done = run("-c", site.conf, user=UID, group=GID)
    assert done.returncode == 3 and "not permitted: only root can give a socket to another user" in done.stderr
    assert not site.path.exists()


# ── what others may have put there ──


@root_only
def test_a_link_in_a_folder_of_another_user(site):
    """The folder is that user's, and so may be what the path leads to."""
    os.chown(site.path.parent, UID, GID)
    site.write("mode=0600")
    site.start()
    assert site.rights()[0] == 0o600
    other = site.path.parent / "other"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(other))
        os.chmod(other, 0o600)
        site.path.unlink()
        os.link(other, site.path)
        site.write("mode=0666")
        site.reload(REFUSED)
        assert stat.S_IMODE(other.stat().st_mode) == 0o600
    site.path.unlink()
    site.path.symlink_to(other)
    site.reload(REFUSED)
    assert stat.S_IMODE(other.stat().st_mode) == 0o600
    site.path.unlink()


# ── link-local addresses ──


def find_link_local():
    """An address of this machine and its interface."""
    with open("/proc/net/if_inet6") as file:
        for line in file:
            digits, _, _, scope, _, name = line.split()
            if scope == "20":
                return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits)), name
    return None


@pytest.mark.skipif(not find_link_local(), reason="NOT TESTED: no interface has a link-local address")
@pytest.mark.parametrize("by", ["name", "index"])
def test_a_link_local_address(serve, by):
    address, interface = find_link_local()
    index, port = socket.if_nametoindex(interface), free_port()
    listen = f"[{address}%{interface if by == 'name' else index}]:{port}"
    server = serve({"Listen": ["127.0.0.1:0", listen]}, listeners=2)
    server.wait_log(rf"listening on \[{address}%{interface}\]:{port}")
    with socket.socket(socket.AF_INET6) as sock:
        sock.settimeout(60)
        sock.connect((address, port, 0, index))
        sock.sendall(b"GET /hello.txt HTTP/1.0\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert run("-t", "-c", server.conf).returncode == 0
    server.baseline += 2  # of the loop that waits for old generations
    server.send_signal(signal.SIGHUP)
    server.wait_log(DONE)
