# SPDX-License-Identifier: Apache-2.0
"""Addresses that are in use: `monkey -t` beside the server that has them, and what another process has."""

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess

import pytest

from harness import build
from harness.client import Client
from harness.content import HELLO, populate
from harness.server import Server, free_port, run, write_config
from test_privileges import NO_LEAKS, USER, open_path  # noqa: F401

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="small builds do not look for other processes"),
]
IS_ROOT = os.geteuid() == 0
root_only = pytest.mark.skipif(not IS_ROOT, reason="NOT TESTED: only root can become another user")
DONE = "the new configuration is in use"


class Site:
    """A server of a configuration that the test writes, and checks."""

    def __init__(self, folder, **settings):
        self.folder, self.settings, self.reloads = folder, settings, 0
        self.root = populate(folder / "root", {"hello.txt": HELLO})
        self.conf = folder / "conf"

    def write(self, *listen, **more):
        write_config(self.conf, self.root, {**self.settings, "Listen": list(listen), **more})

    def start(self, *args, conf=None, **rest):
        self.server = Server("-c", conf or self.conf, *args, env=NO_LEAKS, **rest)

    def reload(self, outcome=DONE):
        self.reloads += 1
        before = self.server.log.count(outcome)
        self.server.send_signal(signal.SIGHUP)
        self.server.wait_log(outcome, before + 1)

    def check(self, conf=None, **rest):
        """What -t says of errors, without the lines of the file."""
        done = run("-t", "-c", conf or self.conf, env=NO_LEAKS, **rest)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        assert bool(errors) == (done.returncode == 1), done.stderr
        return errors


@pytest.fixture
def site(open_path):  # noqa: F811
    sites = []

    def make(name="site", **settings):
        sites.append(Site(open_path / name, **settings))
        return sites[-1]

    yield make
    for one in sites:
        if hasattr(one, "server") and not one.server.finished:
            one.server.stop()


def ask(address):
    with Client(address) as client:
        return client.ask().status


# ── beside the own server ──


@pytest.mark.parametrize("args", [(), ("--supervise",)], ids=["alone", "supervised"])
@pytest.mark.parametrize("user", [None, pytest.param(USER, marks=root_only)])
def test_after_a_reload_with_more_listeners(site, user, args):
    """Some of the sockets were opened by root, others by its user."""
    one, ports = site(**({"User": user} if user else {})), [free_port() for _ in range(3)]
    path = one.folder / "run"
    path.mkdir(parents=True)
    path.chmod(0o1777)
    addresses = [f"127.0.0.1:{ports[0]}", f"*:{ports[1]}", f"unix:{path}/socket", f"[::1]:{ports[2]}"]
    for n in range(1, len(addresses) + 1):
        one.write(*addresses[:n])
        if n == 1:
            one.start(*args)
        else:
            one.reload()
        assert one.check() == []
    one.write(*addresses[::-1][1:])
    assert one.check() == []
    one.reload()
    assert one.check() == []


def test_by_other_names_of_the_folder(site, open_path):  # noqa: F811
    """The server was started with a relative path or a link, or as a daemon, which has left its folder."""
    one, port = site(PidFile=open_path / "pid"), free_port()
    one.write(f"127.0.0.1:{port}")
    (open_path / "link").symlink_to("site/conf")
    one.start(conf="conf", cwd=one.folder)
    for conf in (one.conf, open_path / "link", f"{one.folder}/./conf/"):
        assert one.check(conf) == []
    assert one.check("conf", cwd=one.folder) == [] and one.check("link", cwd=open_path) == []
    one.server.stop()
    subprocess.run([build.binary(), "-D", "-c", "conf"], cwd=one.folder, env={**build.environment(), **NO_LEAKS},
                   check=True, timeout=60)  # fmt: skip
    try:
        assert one.check("conf", cwd=one.folder) == []
    finally:
        os.kill(int((open_path / "pid").read_text()), signal.SIGTERM)


# ── what another process has ──


def hold(address, *options):
    """A socket that listens, in this process."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    sock = socket.socket(family)
    for option in options:
        sock.setsockopt(*option, 1)
    sock.bind(address)
    sock.listen()
    return contextlib.closing(sock)


REUSE = ((socket.SOL_SOCKET, socket.SO_REUSEADDR), (socket.SOL_SOCKET, socket.SO_REUSEPORT))
V6ONLY = ((socket.IPPROTO_IPV6, socket.IPV6_V6ONLY),)
# what the process has, and what is configured
HELD = {
    "the same address": (("127.0.0.1", 0), (), "127.0.0.1:{p}"),
    "a shared port": (("127.0.0.1", 0), REUSE, "127.0.0.1:{p}"),
    "all addresses": (("0.0.0.0", 0), REUSE, "127.0.0.1:{p}"),
    "one of all": (("127.0.0.1", 0), REUSE, "{p}"),
    "one of IPv4": (("127.0.0.2", 0), (), "0.0.0.0:{p}"),
    "IPv6": (("::1", 0), (), "[::1]:{p}"),
    "one of IPv6": (("::1", 0), V6ONLY, "*:{p}"),
    "IPv4 by IPv6": (("::", 0), (), "127.0.0.1:{p}"),
}


@pytest.mark.parametrize("case", HELD)
def test_a_port_of_another_process(site, case):
    """It is an error of -t, of the start and of a reload, which name the process."""
    address, options, configured = HELD[case]
    one = site()
    with hold(address, *options) as sock:
        listen = configured.format(p=sock.getsockname()[1])
        said = f"cannot listen on {listen}: Address already in use: the process {os.getpid()} ("
        one.write(listen)
        assert said in one.check()[0]
        refused = run("-c", one.conf, env=NO_LEAKS)
        assert refused.returncode == 3 and said in refused.stderr
        one.write("127.0.0.1:0")
        one.start()
        one.write("127.0.0.1:0", listen)
        assert said in one.check()[0]
        one.reload("the old one stays")
        assert said in one.server.log
    assert one.check() == []


def test_a_unix_socket_of_another_process(site):
    one = site()
    path = f"{one.folder}/socket"
    one.write(f"unix:{path}")
    with hold(path):
        said = f"Address already in use: the process {os.getpid()} ("
        assert said in one.check()[0]
        assert said in run("-c", one.conf, env=NO_LEAKS).stderr
    assert one.check() == []  # a path that was left behind is replaced


@pytest.mark.parametrize("user", [None, pytest.param(USER, marks=root_only)])
def test_a_port_of_another_server(site, user):
    """One that runs this program, too, with another configuration."""
    one, other, port = site(), site("other", **({"User": user} if user else {})), free_port()
    for each in (one, other):
        each.write(f"127.0.0.1:{port}")
    other.start()
    assert f"in use: the process {other.server.pid} (" in one.check()[0]
    assert other.check() == []


@root_only
@pytest.mark.parametrize("args", [(), ("--supervise",)], ids=["alone", "supervised"])
def test_by_another_user(site, args):
    """It may not read the descriptors of the server, but tells its sockets from those of another process."""
    one = site(User=USER, Workers=2)
    port, free = free_port(), [f"127.0.0.1:{free_port()}" for _ in range(3)]
    foreign, own = f"127.0.0.1:{port}", free[:1]
    one.write(*own)
    one.start(*args)
    for n in (2, 3):
        with hold(("127.0.0.1", port)):
            for user in ({"user": USER}, {}):
                one.write(*own)
                assert one.check(**user) == []
                one.write(*own, foreign)
                assert f"cannot listen on {foreign}: Address already in use" in one.check(**user)[0]
            own = free[:n]
            one.write(*own)
            one.reload()
    if args:
        one.server.send_signal(signal.SIGUSR2)
        one.server.wait_log("drains its connections")
        assert one.check(user=USER) == []


# ── one address becomes a part of another ──

CHANGES = ["127.0.0.1:{p}", "0.0.0.0:{p}", "127.0.0.1:{p}", "{p}", "0.0.0.0:{p}", "{p}", "127.0.0.1:{p}"]


@pytest.mark.parametrize("scheduler", ["reuseport", "fair"])
@pytest.mark.parametrize("args", [(), ("--supervise",)], ids=["alone", "supervised"])
def test_addresses_that_cover_each_other(site, scheduler, args):
    one, port = site(Scheduler=scheduler, Workers=2), free_port()
    one.write(CHANGES[0].format(p=port))
    one.start(*args)
    for listen in CHANGES[1:]:
        one.write(listen.format(p=port))
        assert one.check() == []
        one.reload()
        assert ask(("127.0.0.1", port)) == 200
        assert one.check() == []


@root_only
def test_an_address_that_root_has_opened(site):
    """The user cannot join it: the sentence says so, and a restart helps."""
    one, port = site(User=USER), free_port()
    one.write(f"127.0.0.1:{port}")
    one.start()
    one.write(f"0.0.0.0:{port}")
    one.reload("the old one stays")
    assert "in use: this server has the port itself; root rights were given up (User): restart" in one.server.log
    assert ask(("127.0.0.1", port)) == 200
    one.server.stop()
    one.start()
    one.write(f"127.0.0.1:{port}")
    one.reload("the old one stays")


@pytest.mark.parametrize("narrow, wide", [("127.0.0.1:{p}", "0.0.0.0:{p}"), ("[::1]:{p}", "[::]:{p}")])
def test_addresses_of_one_configuration(site, narrow, wide):
    one, port = site(), free_port()
    for listen in ((narrow, wide), (wide, narrow)):
        one.write(*(each.format(p=port) for each in listen))
        assert f"Listen {narrow} is covered by Listen {wide}".format(p=port) in one.check()[0]
    one.write(f"0.0.0.0:{port}", f"[::]:{port}")
    assert one.check() == []


# ── a year ──


@pytest.mark.slow
@pytest.mark.parametrize("user", [None, pytest.param(USER, marks=root_only)])
def test_a_year_of_checks_and_reloads(site, user):
    """300 reloads with listeners that come and go, each after a check: none is refused."""
    chance, port = random.Random(25), free_port()
    pool = [f"127.0.0.{n}:{port}" for n in range(2, 8)] + [f"[::1]:{port}"]
    one = site(**({"User": user} if user else {}), Workers=2)
    pool.append(f"unix:{one.folder}/socket")
    one.folder.chmod(0o1777)
    listen = [f"127.0.0.1:{port}"]
    one.write(*listen)
    one.start()
    for number in range(1, 301):
        listen = [f"127.0.0.1:{port}", *chance.sample(pool, chance.randrange(len(pool)))]
        one.write(*listen, Workers=chance.randrange(1, 4))
        assert one.check() == [], (number, listen)
        one.reload()
        assert ask(("127.0.0.1", port)) == 200


@root_only
@pytest.mark.skipif(not (build.PLUGINS / "cheetah.so").exists(), reason="this preset has no plugins")
def test_shell_after_user(site):
    """[CHEETAH] that comes after the rights were given up has no default path: a reload does not move it to a folder
    that any user can write. With a path of the user it comes."""
    one, port = site(User=USER), free_port()
    one.write(f"127.0.0.1:{port}")
    one.start()
    conf = one.conf / "plugins/cheetah/cheetah.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("[CHEETAH]\n")
    if os.path.exists("/run/monkey-shell.sock"):
        pytest.skip("another server has the default path")
    one.reload("the new configuration cannot be used, the old one stays")
    assert "only root can open the socket /run/monkey-shell.sock, and a reload does not open it" in one.server.log
    assert not os.path.exists(f"/tmp/monkey-shell-{pwd.getpwnam(USER).pw_uid}.sock")
    assert not one.check()  # a start can open it
    path = one.folder / "run"
    path.mkdir()
    shutil.chown(path, USER)
    conf.write_text(f"[CHEETAH]\n    Listen {path}/shell\n")
    one.reload()
    assert (path / "shell").is_socket()
