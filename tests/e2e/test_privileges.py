# SPDX-License-Identifier: Apache-2.0
"""User and Group: the credentials of the process once it serves, as the kernel shows them."""

import grp
import os
import pathlib
import pwd
import re
import signal

import pytest

from harness.content import HELLO, populate
from harness.protocol import Client
from harness.server import Server, await_true, read_threads, run, section, write_config

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can become another user")
USER = "www-data"
# a process that gave rights up cannot be looked into, not even by its own leak checker
NO_LEAKS = {"ASAN_OPTIONS": "exitcode=97:detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}


@pytest.fixture
def open_path(tmp_path):
    """Below it the user may read."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o755)
    return tmp_path


@pytest.fixture
def start(open_path):
    servers = []

    def run_server(settings, *args, **rest):
        root = populate(open_path / "root", {"hello.txt": HELLO})
        conf = write_config(open_path / "conf", root, settings)
        servers.append(Server("-c", conf, *args, env=NO_LEAKS, **rest))
        return servers[-1]

    yield run_server
    for server in servers:
        if not server.finished:
            server.stop()


def parse_status(text):
    return dict(re.findall(r"^(\w+):\t(.*)$", text, re.M))


def status_of(process):
    return parse_status(pathlib.Path(f"{process}/status").read_text())


def check(pid, uid, gid, groups):
    """Every thread of it."""
    for text in read_threads(pid, "status").values():
        status = parse_status(text)
        assert status["Uid"].split() == [str(uid)] * 4
        assert status["Gid"].split() == [str(gid)] * 4
        assert set(status["Groups"].split()) == set(map(str, groups))
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(status[name], 16) == 0, name
        assert status["NoNewPrivs"] == "1"


def groups_of(user, gid):
    return {gid, *(g.gr_gid for g in grp.getgrall() if user in g.gr_mem)}


@root_only
@pytest.mark.parametrize("group", [None, "nogroup"])
def test_user_and_groups(start, group):
    user = pwd.getpwnam(USER)
    gid = grp.getgrnam(group).gr_gid if group else user.pw_gid
    server = start({"User": USER, "Group": group, "Workers": 3})
    check(server.pid, user.pw_uid, gid, groups_of(USER, gid))
    server.connect().assert_open()


@root_only
@pytest.mark.parametrize("user", [None, "root", USER])
def test_root_without_user_is_warned_of(start, user):
    server = start({"User": user})
    server.wait_log("serves with")
    assert ("warn  the server runs as root: set User" in server.log) == (user is None)


def test_another_user_is_not_warned(open_path):
    root = populate(open_path / "root", {"hello.txt": HELLO})
    user = pwd.getpwnam(USER).pw_uid if os.geteuid() == 0 else None
    server = Server("-o", root, "-l", "127.0.0.1:0", user=user)
    server.wait_log("serves with")
    assert "runs as root" not in server.log
    server.stop()


@root_only
def test_the_supervisor_keeps_its_user(start):
    user = pwd.getpwnam(USER)
    server = start({"User": USER}, "--supervise")
    found = server.wait_log(r"supervisor: process (\d+) serves")
    check(int(found[0][1]), user.pw_uid, user.pw_gid, groups_of(USER, user.pw_gid))
    assert status_of(f"/proc/{server.pid}")["Uid"].split() == ["0"] * 4
    os.kill(int(found[0][1]), signal.SIGKILL)
    found = server.wait_log(r"supervisor: process (\d+) serves", 2)
    check(int(found[1][1]), user.pw_uid, user.pw_gid, groups_of(USER, user.pw_gid))
    server.connect().assert_open()


@root_only
def test_it_ends_with_its_supervisor(start):
    """The kernel drops PDEATHSIG at the change of the user; it is set again."""
    server = start({"User": USER}, "--supervise")
    child = int(server.wait_log(r"supervisor: process (\d+) serves")[0][1])
    server.kill()
    await_true(lambda: not os.path.exists(f"/proc/{child}"), 60, "its end")
    server.finished = True


@root_only
def test_low_ports_are_opened_before(start):
    low = int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    if low < 800:
        pytest.skip("NOT TESTED: this system has no privileged ports")
    server = start({"User": USER, "Listen": "127.0.0.1:795"})
    server.connect().assert_open()
    conf = pathlib.Path(f"/proc/{server.pid}/cmdline").read_text().split("\0")[2]
    file = pathlib.Path(conf) / "monkey.conf"
    good = file.read_text()
    file.write_text(good + "    Listen 127.0.0.1:796\n")
    server.send_signal(signal.SIGHUP)
    server.wait_log("cannot listen on 127.0.0.1:796: .*root rights were given up")
    server.wait_log("the old one stays")
    file.write_text(good.replace("Workers 1", "Workers 4"))  # more sockets at a low port are not to be had
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    for _ in range(20):
        with server.connect() as client:
            client.assert_open()


@root_only
def test_log_and_pid_file(start, open_path):
    """Both are opened as root; the log can be opened again, and the number does not outlive the process."""
    logs = open_path / "logs"
    logs.mkdir()
    server = start({"User": USER, "ErrorLog": logs / "log", "PidFile": logs / "pid"}, wait=False)
    await_true(lambda: (logs / "log").exists() and "serves" in (logs / "log").read_text(), 60, "the server")
    assert (logs / "log").stat().st_uid == pwd.getpwnam(USER).pw_uid
    server.send_signal(signal.SIGHUP)
    await_true(lambda: "the new configuration is in use" in (logs / "log").read_text(), 60, "the reload")
    assert "cannot open the error log" not in (logs / "log").read_text()
    server.stop()
    assert not (logs / "pid").exists() or (logs / "pid").read_text() == ""


@root_only
def test_a_log_that_another_user_planted(start, open_path):
    """Root does not give away what a link leads to."""
    precious = open_path / "precious"
    precious.write_text("mine\n")
    (open_path / "log").symlink_to(precious)
    server = start({"User": USER, "ErrorLog": open_path / "log"}, wait=False)
    await_true(lambda: "serves" in precious.read_text(), 60, "the server")
    assert precious.stat().st_uid == 0
    server.stop()


# ── files in folders of other users ──

OTHER = 65534  # a user that wants root to write elsewhere


@pytest.fixture
def place(open_path):
    """A folder of another user, one for all users with the sticky bit, and a file and a folder of root."""
    (open_path / "theirs").mkdir()
    os.chown(open_path / "theirs", OTHER, OTHER)
    (open_path / "everybody").mkdir()
    (open_path / "everybody").chmod(0o1777)
    (open_path / "mine").mkdir()
    (open_path / "precious").write_text("")
    return open_path


def link_to(target):
    return lambda path: (path.symlink_to(target(path)), os.chown(path, OTHER, OTHER, follow_symlinks=False))


PLANTED = {  # the path that is configured below the place, what the other user puts there, and what it would reach
    "a link to a file": ("theirs/x", "theirs/x", link_to(lambda path: path.parents[1] / "precious")),
    "a link to nothing": ("theirs/x", "theirs/x", link_to(lambda path: path.parents[1] / "mine" / "new")),
    "a link to a folder": ("theirs/dir/new", "theirs/dir", link_to(lambda path: path.parents[1] / "mine")),
    "a link among all users' files": ("everybody/x", "everybody/x", link_to(lambda path: path.parents[1] / "precious")),
    "another name": ("theirs/x", "theirs/x", lambda path: os.link(path.parents[1] / "precious", path)),
    "another name among all users' files": (
        "everybody/x", "everybody/x", lambda path: os.link(path.parents[1] / "precious", path)),
}  # fmt: skip
LOGGER = section("PLUGINS", {"Load": ["liana", "logger", "static"]})
USERS = {  # what opens the file
    "ErrorLog": lambda path: {"server": {"ErrorLog": path}},
    "PidFile": lambda path: {"server": {"PidFile": path}},
    "AccessLog": lambda path: {"logger": f"[LOGGER]\n    AccessLog {path}\n"},
}


def configure(place, key, path):
    made = USERS[key](path)
    root = populate(place / "root", {"hello.txt": HELLO})
    conf = write_config(place / "conf", root, made.get("server"), files={"plugins.load": LOGGER})
    with open(conf / "sites" / "default", "a") as file:
        file.write(made.get("logger", ""))
    return conf


@root_only
@pytest.mark.parametrize("key", USERS)
@pytest.mark.parametrize("what", PLANTED)
def test_a_file_that_another_user_planted(place, what, key):
    """Neither the start nor the check of the configuration takes it, and the start writes nothing there."""
    path, planted, plant = PLANTED[what]
    plant(place / planted)
    conf = configure(place, key, place / path)
    for args in (("-t",), ()):
        result = run("-c", conf, *args)
        assert result.returncode in (1, 3) and str(place / path) in result.stderr
        assert re.search("symbolic link that another user could have made|several names", result.stderr)
    assert (place / "precious").read_text() == "" and not os.listdir(place / "mine")


@root_only
def test_a_socket_that_another_user_redirected(place):
    link_to(lambda path: place / "mine")(place / "theirs" / "dir")
    root = populate(place / "root", {"hello.txt": HELLO})
    conf = write_config(place / "conf", root, {"Listen": f"unix:{place}/theirs/dir/socket"})
    result = run("-c", conf)
    assert result.returncode == 3 and "symbolic link that another user could have made" in result.stderr
    assert not os.listdir(place / "mine")


GOOD = ["theirs/new", "theirs/there", "everybody/new", "mine/link", "mine/dir/new", "mine/two"]


@root_only
@pytest.mark.parametrize("key", USERS)
@pytest.mark.parametrize("path", GOOD)
def test_a_file_that_may_be_written(place, key, path):
    """A new file or one that is there, in any folder; links and other names of root in a folder of root."""
    (place / "theirs" / "there").write_text("")
    os.chown(place / "theirs" / "there", OTHER, OTHER)
    (place / "mine" / "link").symlink_to(place / "precious")
    (place / "mine" / "dir").symlink_to("../theirs")
    os.link(place / "precious", place / "mine" / "two")
    if key == "PidFile" and path == "mine/link":
        pytest.skip("a pid file is never a link")
    server = Server("-c", configure(place, key, place / path), wait=False)
    try:
        if key == "AccessLog":
            server.wait_log("serves with")
            server.await_listeners(1)
            with Client(server.addresses[0]) as client:
                client.ask("/hello.txt")
        await_true(lambda: (place / path).exists() and (place / path).read_text(), 60, "the file")
        server.stop()
    finally:
        server.kill()


@root_only
def test_a_link_of_the_user_itself(place):
    """The user that starts the server may use symbolic links in a folder of his own."""
    link_to(lambda path: path.with_name("file"))(place / "theirs" / "x")
    conf = configure(place, "ErrorLog", place / "theirs" / "x")
    server = Server("-c", conf, user=OTHER, wait=False)
    try:
        await_true(lambda: (place / "theirs" / "file").exists(), 60, "the log")
        await_true(lambda: "serves" in (place / "theirs" / "file").read_text(), 60, "the start")
        server.stop()
    finally:
        server.kill()


@root_only
def test_a_root_that_the_user_cannot_read(open_path):
    root = populate(open_path / "root", {"hello.txt": HELLO})
    conf = write_config(open_path / "conf", root, {"User": USER})
    assert run("-c", conf, "-t").stderr == "monkey: the configuration is fine\n"
    root.chmod(0o700)
    result = run("-c", conf, "-t", env={**os.environ, **NO_LEAKS})
    assert result.returncode == 0 and str(root) in result.stderr and f"user {USER}" in result.stderr


@pytest.mark.parametrize("settings", [{"User": "nobody-of-this-name"}, {"Group": "no-such-group", "User": USER}])
def test_unknown_names(tmp_path, site_root, settings):
    conf = write_config(tmp_path / "conf", site_root, settings)
    for args in ((), ("-t",)):
        result = run("-c", conf, *args)
        assert result.returncode == 1
        assert re.search(r"monkey\.conf:\d+:\d+: error: .*there is no (user|group)", result.stderr), result.stderr


def test_a_group_without_a_user(tmp_path, site_root):
    result = run("-c", write_config(tmp_path / "conf", site_root, {"Group": "nogroup"}), "-t")
    assert result.returncode == 1 and "Group needs User" in result.stderr


@root_only
def test_started_as_another_user(open_path):
    root = populate(open_path / "root", {"hello.txt": HELLO})
    conf = write_config(open_path / "conf", root, {"User": USER})
    result = run("-c", conf, user=65534, group=65534, extra_groups=[])
    assert result.returncode == 1 and f"only root can become {USER}" in result.stderr
    write_config(open_path / "conf", root, {"User": "nobody"})
    server = Server("-c", conf, user=65534)
    with Client(server.addresses[0]) as client:
        assert client.ask("/hello.txt").status == 200
    server.stop()


def test_no_new_rights(site):
    assert status_of(f"/proc/{site.pid}")["NoNewPrivs"] == "1"
