# SPDX-License-Identifier: Apache-2.0
"""USR2 without a supervisor: the server itself brings the new program in, which serves before the old one drains."""

import os
import pathlib
import re
import shutil
import signal

import pytest

from harness import build
from harness.chain import LARGE, SMALL
from harness.h2 import H2Client
from harness.load import Load, Pausing
from harness.protocol import Client
from harness.server import await_true, is_alive, section, write_config

pytestmark = [pytest.mark.concurrent, pytest.mark.single_protocol]  # the copied program has no modules next to it
SLOW = build.MODULES / "slow.so"
HEADERS = build.PLUGINS / "headers.so"


def test_five_upgrades_under_load(chain):
    one = chain()
    with Load(one.server.addresses[0], SMALL, LARGE) as load:
        for _ in range(5):
            before = load.answers
            await_true(lambda: load.answers > before, 60, "an answer")
            one.upgrade()
        await_true(lambda: load.answers > before + 10, 60, "an answer of the last")
    assert not load.errors and not load.refused and not load.lost, load.errors
    one.await_old()
    one.ask()


@pytest.mark.parametrize("scheduler", ["fair", "reuseport"])
def test_connections_end_with_their_next_response(chain, scheduler):
    """Clients that pause between requests get an answer to each, and `Connection: close` with the next one."""
    one = chain({"KeepAliveTimeout": "30s", "Scheduler": scheduler})
    with Pausing(one.server.addresses[0], SMALL) as clients:
        for _ in range(3):
            clients.await_answers(50)
            one.upgrade()
        clients.await_answers(50)
        one.await_old()
    assert not clients.errors, clients.errors


def test_an_idle_connection_is_kept(chain):
    """It gets its next answer from the process that it belongs to."""
    one = chain({"KeepAliveTimeout": "60s"})
    with Client(one.server.addresses[0]) as client:
        assert client.ask("/small")["Connection"] != "close"
        one.upgrade()
        one.ask()

        def is_last():  # the worker learns of the upgrade soon after the log does
            answer = client.ask("/small")
            assert answer.body == SMALL
            return answer["Connection"] == "close"

        await_true(is_last, 30, "the last answer")
        client.assert_closed()
    one.await_old()


@pytest.mark.parametrize("setting", ["KeepAliveTimeout", "ShutdownTimeout"])
def test_an_idle_connection_is_not_kept_for_ever(chain, setting):
    one = chain({"KeepAliveTimeout": "60s", setting: "300ms"})
    with Client(one.server.addresses[0]) as client:
        client.ask("/small")
        one.upgrade()
        client.assert_closed()
        one.await_old()


def test_a_signal_closes_idle_connections(chain):
    """The first lets exchanges finish, as a stop does, and the second one does not."""
    one = chain({"KeepAliveTimeout": "60s"})
    with Client(one.server.addresses[0]) as idle, Client(one.server.addresses[0], rcvbuf=4096) as busy:
        idle.ask("/small")
        busy.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        head = busy.head()
        one.upgrade()
        one.server.wait_log("connections end with their next response")
        os.kill(one.pids[0], signal.SIGTERM)
        idle.assert_closed()
        assert busy.exactly(head.length) == LARGE
    one.await_old()


@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
def test_http_2_connections_are_notified(chain):
    """By GOAWAY; a request that the client has sent before it knew is answered."""
    one = chain({"KeepAliveTimeout": "60s"})
    with H2Client(one.server.addresses[0]) as client:
        assert client.ask("/small").body == SMALL
        one.upgrade()
        one.server.wait_log("connections end with their next response")
        assert client.ask("/small").body == SMALL
        assert client.await_goaway() == 0
    one.await_old()


def test_the_new_program_is_what_lies_there_now(chain):
    one = chain()
    other = one.program.with_name("other")
    shutil.copy(one.program, other)
    other.rename(one.program)
    one.upgrade()
    assert os.readlink(f"/proc/{one.pids[1]}/exe") == str(one.program)
    one.await_old()


def test_a_program_that_cannot_start(chain):
    one = chain()
    one.program.rename(one.program.with_name("old"))
    one.server.send_signal(signal.SIGUSR2)
    one.server.wait_log("upgrade: cannot start the new program: No such file")
    one.ask()
    one.program.write_text("#!/bin/sh\nexit 7\n")
    one.program.chmod(0o755)
    one.server.send_signal(signal.SIGUSR2)
    one.server.wait_log("ended with exit code 7 before it served; the old process keeps serving")
    one.ask()
    one.program.with_name("old").rename(one.program)
    one.upgrade()
    one.ask()


def test_a_configuration_that_cannot_be_used(chain):
    one = chain()
    conf = one.folder / "conf" / "monkey.conf"
    good = conf.read_text()
    conf.write_text("[SERVER]\n    Nonsens 1\n")
    one.server.send_signal(signal.SIGUSR2)
    one.server.wait_log("ended with exit code 1 before it served; the old process keeps serving")
    one.ask()
    conf.write_text(good)
    one.upgrade()


def test_the_pid_file_goes_along(chain, tmp_path):
    path = tmp_path / "pid"
    one = chain({"PidFile": path})
    assert path.read_text() == f"{one.pids[0]}\n"
    one.upgrade()
    one.await_old()
    assert path.read_text() == f"{one.pids[1]}\n"
    one.upgrade()
    one.await_old()
    one.stop()
    assert not path.exists()


def test_the_pid_file_of_an_upgrade_that_failed(chain, tmp_path):
    path = tmp_path / "pid"
    one = chain({"PidFile": path})
    write_config(one.folder / "conf", one.root, {**one.settings, "PidFile": path, "Listen": "192.0.2.1:80"})
    one.server.send_signal(signal.SIGUSR2)
    one.server.wait_log("ended with exit code 3 before it served")
    assert path.read_text() == f"{one.pids[0]}\n"


def test_unix_sockets_keep_their_place(chain, tmp_path):
    path = tmp_path / "socket"
    one = chain({"Listen": f"unix:{path}"})
    inode = path.stat().st_ino
    one.upgrade()
    one.await_old()
    one.ask()
    assert path.stat().st_ino == inode
    one.stop()
    assert not path.exists()


@pytest.mark.parametrize("end", ["stop", "reload", "upgrade without", "upgrade"])
def test_the_path_of_a_unix_socket_is_of_another_server(chain, serve, tmp_path, end):
    """It has been removed, and another server has taken its place: that one keeps it."""
    path = tmp_path / "socket"
    one = chain({"Listen": ["127.0.0.1:0", f"unix:{path}"]}, listeners=2)
    path.unlink()
    serve({"Listen": ["127.0.0.1:0", f"unix:{path}"]}, listeners=2)
    if end in ("reload", "upgrade without"):
        write_config(one.folder / "conf", one.root, {**one.settings, "Listen": "127.0.0.1:0"})
    if end == "reload":
        one.server.send_signal(signal.SIGHUP)
        one.server.wait_log("the configuration before the last reload is not in use any more")
    if end.startswith("upgrade"):
        one.upgrade()
        one.await_old()
    assert path.exists()
    one.stop()
    with Client(str(path)) as client:
        client.assert_open()


def test_workers_and_listeners_may_change(chain, tmp_path):
    one = chain()
    address = "{}:{}".format(*one.server.addresses[0])
    for workers, listen in ((4, [address, f"unix:{tmp_path}/socket"]), (1, address)):
        write_config(one.folder / "conf", one.root, {**one.settings, "Workers": workers, "Listen": listen})
        one.upgrade()
        one.await_old()
        for _ in range(20):
            one.ask()
    assert not (tmp_path / "socket").exists()


def test_no_delay(chain):
    """ShutdownDelay is not used if another process serves afterwards."""
    one = chain({"ShutdownDelay": "60s"})
    one.upgrade()
    one.await_old()
    write_config(one.folder / "conf", one.root, one.settings | {"ShutdownDelay": "0"})
    os.kill(one.pids[-1], signal.SIGHUP)
    one.server.wait_log("the new configuration is in use")


def make_slow(folder):
    """Workers start when the file `go` is there; the configuration has been read by then."""
    (folder / "conf" / "plugins.load").write_text(section("PLUGINS", {"Load": ["liana", HEADERS, SLOW, "static"]}))


def set_version(folder, version):
    with open(folder / "conf" / "sites" / "default", "a") as file:
        file.write(f"[HEADERS]\n    Set X-Version {version}\n")


@build.needs_modules
def test_a_reload_while_the_next_one_starts(chain, tmp_path):
    one = chain(env={"SLOW_UNTIL": str(tmp_path / "go")})
    make_slow(one.folder)
    os.kill(one.pids[0], signal.SIGUSR2)
    one.server.wait_log("slow: a worker starts")
    set_version(one.folder, 2)
    os.kill(one.pids[0], signal.SIGHUP)
    (tmp_path / "go").touch()
    one.pids.append(int(one.server.wait_log(r"upgrade: process (\d+) serves")[0][1]))
    one.server.wait_log("the new configuration is in use")
    with Client(one.server.addresses[0]) as client:
        assert client.ask("/small")["X-Version"] == "2"


@build.needs_modules
def test_a_stop_while_the_next_one_starts(chain, tmp_path):
    one = chain(env={"SLOW_UNTIL": str(tmp_path / "never")})
    make_slow(one.folder)
    os.kill(one.pids[0], signal.SIGUSR2)
    one.server.wait_log("slow: a worker starts")
    started = int(one.server.wait_log(r"upgrade: process (\d+) starts")[0][1])
    os.kill(one.pids[0], signal.SIGTERM)
    one.server.wait_log(f"upgrade: process {started} was killed before it served: this server is asked to stop")
    assert one.server.process.wait(60) == 0
    assert not is_alive(started)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_while_the_next_one_hangs(chain, number):
    one = chain()
    one.program.rename(one.program.with_name("old"))
    one.program.write_text("#!/bin/sh\nexec sleep 100\n")
    one.program.chmod(0o755)
    one.server.send_signal(signal.SIGUSR2)
    started = int(one.server.wait_log(r"upgrade: process (\d+) starts")[0][1])
    one.server.send_signal(number)
    assert one.server.process.wait(60) == 0
    assert not is_alive(started)


def test_what_has_begun_ends_in_the_old_one(chain):
    one = chain()
    with Client(one.server.addresses[0], rcvbuf=4096) as client:
        client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        head = client.head()
        one.upgrade()
        one.ask()
        assert is_alive(one.pids[0])
        assert client.exactly(head.length) == LARGE
    one.await_old()


def test_nothing_is_left_in_the_environment(chain):
    one = chain()
    one.upgrade()
    one.upgrade()
    one.await_old()
    names = re.findall(r"(?:^|\0)(LISTEN_FDS|MONKEY_\w+)=", pathlib.Path(f"/proc/{one.pids[-1]}/environ").read_text())
    assert sorted(names) == ["LISTEN_FDS", "MONKEY_COUNTERS", "MONKEY_PREDECESSOR"], "what the first gave, once"


@pytest.mark.parametrize("value", ["0", "1", "2", "999", "99999999999", "-1", "nonsense", ""])
def test_a_wrong_descriptor_of_counters(serve, value):
    """What an operator has in the environment costs the server none of its descriptors."""
    server = serve(files={"a.txt": b"a file"}, env={"MONKEY_COUNTERS": value})
    assert ("counters begin at 0: those of the process before cannot be used" in server.log) == (len(value) in (1, 3))
    assert {"0", "1", "2"} <= set(os.listdir(f"/proc/{server.pid}/fd"))
    with server.connect() as client:
        assert client.ask("/a.txt").body == b"a file"
