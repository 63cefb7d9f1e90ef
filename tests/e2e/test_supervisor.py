# SPDX-License-Identifier: Apache-2.0
"""The process above the server: what it survives, what it passes on, and what it leaves to the server."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from harness import build
from harness.content import populate
from harness.load import Load, Pausing
from harness.protocol import Client
from harness.server import (
    UNCACHED,
    Server,
    await_true,
    free_port,
    is_alive,
    links_of_descriptors,
    run,
    section,
    write_config,
)

pytestmark = pytest.mark.concurrent
SLOW = build.MODULES / "slow.so"
HEADERS = build.PLUGINS / "headers.so"
SMALL, LARGE = b"small" * 100, b"large" * 400_000
STABLE_SECONDS = 10  # after which the death of a server counts as the first one again


def children(pid):
    return [int(n) for n in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def serving(server, count=1):
    """The number of the process that was the count-th to serve."""
    return int(server.wait_log(r"supervisor: process (\d+) serves", count)[count - 1][1])


class Supervised:
    conf_files = None

    def __init__(self, folder, settings=None, *, files=None, args=("--supervise",), **rest):
        self.folder, self.conf_files = folder, files
        self.root = populate(folder / "root", {"small": SMALL, "large": LARGE})
        self.settings = {"Workers": 2, "ShutdownTimeout": "30s", **(settings or {})}
        self.write()
        self.server = Server("-c", folder / "conf", *args, **rest)
        serving(self.server)

    def write(self, **more):
        write_config(self.folder / "conf", self.root, {**self.settings, **more}, files=self.conf_files)

    def ask(self):
        with self.server.connect() as client:
            answer = client.ask("/small")
            assert answer.status == 200 and answer.body == SMALL

    def kill_server(self, count):
        """Kills the count-th server, and waits for the next one."""
        os.kill(serving(self.server, count), signal.SIGKILL)
        return serving(self.server, count + 1)


@pytest.fixture
def supervised(tmp_path):
    made = []

    def start(*args, **rest):
        folder = tmp_path / f"s{len(made)}"
        folder.mkdir()
        made.append(Supervised(folder, *args, **rest))
        return made[-1]

    yield start
    for one in made:
        try:
            if not one.server.finished:
                one.server.stop()
        finally:
            one.server.kill()


def test_it_is_a_small_process(supervised):
    one = supervised()
    one.ask()
    assert children(one.server.pid) == [serving(one.server)]
    assert len(one.server.threads()) == 1
    if not build.SANITIZED:
        assert one.server.memory_kb("Private_Dirty") < 400


def test_by_the_configuration(supervised):
    one = supervised({"Supervisor": "On"}, args=())
    assert children(one.server.pid) == [serving(one.server)]
    one.ask()


def test_the_end(supervised):
    one = supervised()
    child = serving(one.server)
    one.server.stop()
    assert not os.path.exists(f"/proc/{child}")


def test_a_stop_lets_requests_finish(supervised):
    one = supervised()
    with one.server.connect(rcvbuf=4096) as client:
        client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        head = client.head()
        one.server.send_signal(signal.SIGTERM)
        assert client.exactly(head.length) == LARGE
    assert one.server.wait() == 0


def test_a_second_signal_stops_at_once(supervised):
    one = supervised()
    with one.server.connect(rcvbuf=4096) as client:
        client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
        client.head()
        one.server.send_signal(signal.SIGINT)
        one.server.wait_log("stopping")
        one.server.send_signal(signal.SIGINT)
        assert one.server.wait() == 0


@pytest.mark.load
def test_twenty_deaths_under_load(supervised):
    """Only requests in flight are lost: no connection is refused, and nothing is left behind."""
    for _ in range(4):  # the wait grows with each death
        one = supervised(files=UNCACHED)  # which keeps no descriptors of files
        files = len(one.server.open_files())
        child_files = len(os.listdir(f"/proc/{serving(one.server)}/fd"))
        with Load(one.server.addresses[0], SMALL, LARGE, may_lose=True) as load:
            lived = []  # at most, in seconds
            for death in range(1, 6):
                before, begin = load.answers, time.monotonic()
                await_true(lambda: load.answers > before, 60, "an answer")
                one.kill_server(death)
                lived.append(time.monotonic() - begin)
        assert not load.errors and load.refused == 0, load.errors
        assert load.lost <= 5 * len(load.threads)
        delays = [int(m[1]) for m in one.server.wait_log(r"was ended by signal 9 \(Killed\).* in (\d+) ms", 5)]
        for n, delay in enumerate(delays):
            is_first = n == 0 or delay == 100 and lived[n - 1] + lived[n] >= STABLE_SECONDS
            assert delay == (100 if is_first else 2 * delays[n - 1]), (delays, lived)
        one.ask()
        await_true(lambda: len(one.server.open_files()) <= files, 30, "the supervisor's descriptors")
        last = serving(one.server, 6)
        await_true(lambda: len(os.listdir(f"/proc/{last}/fd")) <= child_files, 30, "the server's descriptors")
        one.server.stop()


def test_connections_wait_for_the_next_server(supervised):
    one = supervised({"DeferAccept": 0})
    os.kill(serving(one.server), signal.SIGKILL)
    one.server.wait_log("another one starts")
    one.ask()


def test_unix_sockets_keep_their_place(supervised, tmp_path):
    path = tmp_path / "socket"
    one = supervised({"Listen": f"unix:{path}"})
    inode = path.stat().st_ino
    one.kill_server(1)
    one.ask()
    one.server.send_signal(signal.SIGUSR2)
    serving(one.server, 3)
    one.server.wait_log("drains its connections")
    await_true(lambda: len(children(one.server.pid)) == 1, 30, "one server")
    one.ask()
    assert path.stat().st_ino == inode
    one.server.stop()
    assert not path.exists()


def test_what_a_reload_opened_is_held_too(supervised, tmp_path):
    path = tmp_path / "socket"
    one = supervised()
    address = "{}:{}".format(*one.server.addresses[0])
    one.write(Listen=[address, f"unix:{path}"])
    one.server.send_signal(signal.SIGHUP)
    one.server.wait_log("the new configuration is in use")
    one.kill_server(1)
    for place in (one.server.addresses[0], str(path)):
        with Client(place) as client:
            assert client.ask("/small").status == 200
    one.write(Listen=address)
    one.server.send_signal(signal.SIGHUP)
    one.server.wait_log("the new configuration is in use", 2)
    await_true(lambda: not path.exists(), 30, "the end of the socket")


def test_the_log_is_opened_again(supervised, tmp_path):
    """The supervisor writes to the same file, also to the next one."""
    log = tmp_path / "log"
    one = Supervised.__new__(Supervised)
    one.folder, one.root, one.settings = tmp_path, populate(tmp_path / "root", {"small": SMALL}), {"ErrorLog": log}
    one.write()
    server = Server("-c", tmp_path / "conf", "--supervise", wait=False)
    try:
        text = await_true(lambda: log.exists() and re.search(r"process (\d+) serves", log.read_text()), 60)
        log.rename(tmp_path / "old")
        server.send_signal(signal.SIGUSR1)
        await_true(lambda: str(log) in links_of_descriptors(server.pid).values(), 60, "the supervisor's new log")
        os.kill(int(text[1]), signal.SIGKILL)
        await_true(lambda: "another one starts" in log.read_text(), 30, "its line")
        await_true(lambda: "serves" in log.read_text(), 30, "the next server")
        server.stop()
    finally:
        server.kill()


@pytest.mark.parametrize("settings, code", [({"Nonsens": 1}, 1), ({"Listen": "192.0.2.1:80"}, 3)])
@pytest.mark.parametrize("args", [(), ("-D",)])
def test_a_server_that_cannot_start(tmp_path, site_root, settings, code, args):
    conf = write_config(tmp_path / "conf", site_root, {"ErrorLog": tmp_path / "log", **settings})
    result = run("-c", conf, "--supervise", *args)
    assert result.returncode == code
    assert list(settings.values())[0].__str__() in result.stderr or "Nonsens" in result.stderr


def test_a_configuration_that_was_broken_later(supervised):
    """It tries again until the configuration was corrected."""
    one = supervised()
    conf = one.folder / "conf" / "monkey.conf"
    good = conf.read_text()
    conf.write_text("[SERVER]\n    Nonsens 1\n")
    os.kill(serving(one.server), signal.SIGKILL)
    one.server.wait_log("ended with exit code 1; another one starts")
    conf.write_text(good)
    serving(one.server, 2)
    one.ask()


def test_its_own_death_ends_the_server(supervised):
    one = supervised()
    child = serving(one.server)
    one.server.kill()
    await_true(lambda: not os.path.exists(f"/proc/{child}"), 60, "the end of the server")
    one.server.finished = True


def test_the_pid_file_names_it(supervised, tmp_path):
    path = tmp_path / "pid"
    one = supervised({"PidFile": path})
    assert path.read_text() == f"{one.server.pid}\n"
    second = run("-c", one.folder / "conf", "--supervise")
    assert second.returncode == 3 and "another server is running" in second.stderr
    one.kill_server(1)
    assert path.read_text() == f"{one.server.pid}\n"
    one.server.stop()
    assert not path.exists()


def test_in_the_background(tmp_path, site_root):
    """Relative paths are understood before the working directory changes."""
    write_config(
        tmp_path / "conf",
        site_root,
        {"PidFile": tmp_path / "pid", "ErrorLog": tmp_path / "log", "Listen": f"unix:{tmp_path}/socket"},
    )
    result = subprocess.run(
        [build.binary(), "-c", "conf", "-D", "--supervise"],
        env=build.environment(),
        cwd=tmp_path,
        timeout=120,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert result.returncode == 0, result.stdout
    pid = int((tmp_path / "pid").read_text())
    try:
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        os.kill(children(pid)[0], signal.SIGKILL)
        with Client(f"{tmp_path}/socket") as client:
            client.assert_open()
    finally:
        os.kill(pid, signal.SIGTERM)
        await_true(lambda: not (tmp_path / "pid").exists(), 60, "the end")
    assert "Sanitizer" not in (tmp_path / "log").read_text()


def test_upgrade(supervised):
    one = supervised()
    files = len(one.server.open_files())
    with Load(one.server.addresses[0], SMALL, LARGE) as load:
        for n in range(5):
            before = load.answers
            await_true(lambda: load.answers > before, 60, "an answer")
            one.server.send_signal(signal.SIGUSR2)
            serving(one.server, n + 2)
            await_true(lambda: len(children(one.server.pid)) == 1, 30, "the end of the old one")
    assert not load.errors and not load.refused and not load.lost, load.errors
    await_true(lambda: len(one.server.open_files()) <= files, 30, "the supervisor's descriptors")


def test_an_upgrade_keeps_idle_connections(supervised):
    one = supervised({"KeepAliveTimeout": "30s"})
    with Pausing(one.server.addresses[0], SMALL) as clients:
        for n in range(3):
            clients.await_answers(50)
            one.server.send_signal(signal.SIGUSR2)
            serving(one.server, n + 2)
        clients.await_answers(50)
        await_true(lambda: len(children(one.server.pid)) == 1, 30, "the end of the old ones")
    assert not clients.errors, clients.errors


def test_a_stop_while_an_old_server_still_has_clients(supervised):
    """Its exchanges finish, too, and its idle connections are closed."""
    one = supervised({"KeepAliveTimeout": "60s", "ShutdownTimeout": "30s"})
    with one.server.connect() as idle, one.server.connect(rcvbuf=4096) as busy:
        idle.ask("/small")
        busy.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        head = busy.head()
        one.server.send_signal(signal.SIGUSR2)
        one.server.wait_log("connections end with their next response")
        one.server.send_signal(signal.SIGTERM)
        idle.assert_closed()
        assert busy.exactly(head.length) == LARGE
    assert one.server.wait() == 0


def test_upgrade_that_fails(supervised):
    one = supervised()
    good = (one.folder / "conf" / "monkey.conf").read_text()
    (one.folder / "conf" / "monkey.conf").write_text("[SERVER]\n    Nonsens 1\n")
    one.server.send_signal(signal.SIGUSR2)
    one.server.wait_log("ended with exit code 1 before it served; the old process keeps serving")
    one.ask()
    assert children(one.server.pid) == [serving(one.server)]
    (one.folder / "conf" / "monkey.conf").write_text(good)
    one.server.send_signal(signal.SIGUSR2)
    serving(one.server, 2)
    one.ask()


# ── why a start failed ──


class Logged:
    """A server or supervisor in the background, whose stderr is /dev/null and whose log is a file."""

    def __init__(self, folder, *args):
        self.folder, self.log = folder, folder / "log"
        self.program = build.install(folder)
        self.root = populate(folder / "root", {"small": SMALL})
        self.address = ("127.0.0.1", free_port())
        self.listen = "{}:{}".format(*self.address)
        self.write()
        result = run("-c", folder / "conf", "-D", *args, program=self.program)
        assert result.returncode == 0, result.stderr
        self.pid = int((folder / "pid").read_text())

    def write(self, **more):
        settings = {"Listen": self.listen, "ErrorLog": self.log, "PidFile": self.folder / "pid", **more}
        write_config(self.folder / "conf", self.root, settings)

    def count(self, text):
        return self.log.read_text().count(text)

    def await_log(self, text, count=1):
        await_true(lambda: self.count(text) >= count, 60, text)

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        await_true(lambda: not is_alive(self.pid), 60, "the end")


@pytest.fixture
def logged(tmp_path):
    made = []

    def start(*args):
        made.append(Logged(tmp_path, *args))
        return made[-1]

    yield start
    for one in made:
        one.stop()


UPGRADES = [(), ("--supervise",)]


@pytest.mark.parametrize("args", UPGRADES)
@pytest.mark.parametrize("key, value", [("Nonsens", 1), ("Listen", "192.0.2.1:80"), ("User", "nobody-of-this-name")])
def test_the_log_says_why_an_upgrade_failed(logged, args, key, value):
    one = logged(*args)
    one.write(**{key: value})
    os.kill(one.pid, signal.SIGUSR2)
    one.await_log("before it served")
    assert re.search(rf"error process \d+: .*monkey\.conf:\d+:\d+: error: .*({value}|{key})", one.log.read_text())
    one.write()


@pytest.mark.parametrize("args", UPGRADES)
def test_the_log_says_why_a_program_does_not_run(logged, args):
    """Any output: the dynamic linker writes to stderr, too. Long output is cut, and never blocks."""
    one = logged(*args)
    one.program.rename(one.program.with_name("real"))
    one.program.write_text("#!/bin/sh\necho libmissing.so.1: cannot open >&2\nyes | head -c 200000 >&2\nexit 127\n")
    one.program.chmod(0o755)
    os.kill(one.pid, signal.SIGUSR2)
    one.await_log("ended with exit code 127 before it served")
    assert one.count("libmissing.so.1: cannot open") == 1 and one.log.stat().st_size < 200_000


@pytest.mark.parametrize("args", UPGRADES)
def test_the_log_says_why_a_program_cannot_be_executed(logged, args):
    one = logged(*args)
    one.program.rename(one.program.with_name("real"))
    one.program.write_bytes(b"\0garbage")
    one.program.chmod(0o755)
    os.kill(one.pid, signal.SIGUSR2)
    one.await_log("ended with exit code 3 before it served")
    assert "cannot run " in one.log.read_text() and one.count(": Exec format error") == 1


@pytest.mark.parametrize("args", UPGRADES)
def test_a_server_that_serves_has_the_stderr_of_the_first(logged, args):
    one = logged(*args)
    first = children(one.pid)[0] if args else one.pid
    os.kill(one.pid, signal.SIGUSR2)
    one.await_log("serves with", 2)
    await_true(lambda: not is_alive(first), 60, "the end of the first")
    if not args:
        one.pid = int((one.folder / "pid").read_text())

    def find_stderr():
        with contextlib.suppress(OSError, IndexError):  # the first one is gone, or about to be
            return os.readlink(f"/proc/{children(one.pid)[-1] if args else one.pid}/fd/2")

    await_true(lambda: find_stderr() == "/dev/null", 30, "the stderr of the first")


def test_the_log_says_why_a_server_does_not_come_back(logged):
    """Once for each reason, with the number of starts; a reload is the next start."""
    one = logged("--supervise")
    one.write(Nonsens=1)
    os.kill(children(one.pid)[0], signal.SIGKILL)
    one.await_log("(failed starts: 3, for the same reason)")
    assert one.count("(failed starts: 1)") == 1
    one.write(Nonsuch=1)
    one.await_log("Nonsuch")
    one.await_log("for the same reason", one.count("for the same reason") + 1)
    one.await_log("connections are closed until a server serves")
    for _ in range(3):  # they would wait for a server that does not come
        with Client(one.address) as client:
            client.assert_gone()
    reasons = re.findall(r"error: .*(Nons\w+)", one.log.read_text())
    assert reasons == ["Nonsens", "Nonsuch"]
    one.write()
    os.kill(one.pid, signal.SIGHUP)
    one.await_log("serves with", 2)
    with Client(one.address) as client:
        assert client.ask("/small").body == SMALL


def test_a_program_that_is_gone(logged):
    """A start for which there is no process counts as failed, too."""
    one = logged("--supervise")
    one.program.rename(one.program.with_name("real"))
    os.kill(children(one.pid)[0], signal.SIGKILL)
    one.await_log("cannot start a server: No such file or directory; trying again in 800 ms (failed starts: 3)")
    one.await_log("connections are closed until a server serves")
    with Client(one.address) as client:
        client.assert_gone()
    one.program.with_name("real").rename(one.program)
    os.kill(one.pid, signal.SIGHUP)
    one.await_log("serves with", 2)
    with Client(one.address) as client:
        assert client.ask("/small").body == SMALL


# A program that sends what no server sends, as one that was taken over might.
IMPOSTOR = """#!/usr/bin/python3
import array, errno, os, pathlib, signal, socket

channel = socket.socket(fileno=int(os.environ["MONKEY_SUPERVISOR"]))

def send(data, *fds):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    while True:
        try:
            return channel.sendmsg([data], rights)
        except OSError as error:  # more on the way than a user without CAP_SYS_ADMIN may have
            if error.errno != errno.ETOOMANYREFS:
                raise

read, write = os.pipe()
server = socket.create_server(("127.0.0.1", 0))
listener = server.fileno()
ATTACK
pathlib.Path("DONE").write_text("")
signal.pause()
"""
ATTACKS = {
    "other descriptors": (
        "for i in range(100): send(b'L' + bytes([0] + [1] * 64), *[read, write] * 32)",
        "sent descriptors that are no listening sockets, or more than",
    ),
    "too many listeners": (
        "for i in range(100): send(b'L' + bytes([0] + [1] * 64), *[listener] * 64)",
        "sent descriptors that are no listening sockets, or more than",
    ),
    "a message with too many": ("send(b'L' + bytes([1] + [1] * 250), *[read] * 250)", "an invalid message"),
    "descriptors without a message": ("send(b'', *[read] * 60)", "an invalid message"),
    "a message that is too long": ("send(b'P' + b'/' * 5000, read)", "an invalid message"),
    "descriptors that nobody wants": ("for i in range(100): send(b'x', *[read] * 64)", None),
    "a log that cannot be written": ("send(b'E', read)", "cannot use the error log of process"),
    "a log that is a socket": ("send(b'E', listener)", "cannot use the error log of process"),
    "several logs": ("send(b'E', write, write)", "cannot use the error log of process"),
}


@pytest.fixture
def impostor(supervised, tmp_path):
    """Starts a supervisor and, as an upgrade, a program in place of its server that does this."""

    def start(attack):
        program = build.install(tmp_path)
        one = supervised(program=program, nofile=3000)
        one.files, one.program = len(one.server.open_files()), program
        program.rename(program.with_name("real"))
        done = tmp_path / "done"
        program.write_text(IMPOSTOR.replace("ATTACK", attack).replace("DONE", str(done)))
        program.chmod(0o755)
        one.server.send_signal(signal.SIGUSR2)
        one.server.wait_log("the new program starts")
        one.done = done
        return one

    return start


@pytest.mark.parametrize("what", ATTACKS)
@pytest.mark.single_protocol  # the fake server knows HTTP/1.1 only
def test_a_server_that_sends_what_no_server_sends(impostor, what):
    """The supervisor keeps nothing of it, continues with the server that it has, and can be upgraded."""
    attack, message = ATTACKS[what]
    one = impostor(attack)
    await_true(one.done.exists, 60, "the attack")
    if message:
        one.server.wait_log(message)
    most = 1000 if what == "too many listeners" else 10
    await_true(lambda: len(one.server.open_files()) <= one.files + most, 30, "the end of the other descriptors")
    (other,) = set(children(one.server.pid)) - {serving(one.server)}
    os.kill(other, signal.SIGKILL)
    one.server.wait_log("was ended by signal 9 .* before it served")
    await_true(lambda: len(one.server.open_files()) <= one.files, 30, "the end of its descriptors")
    one.ask()
    one.program.with_name("real").rename(one.program)
    one.server.send_signal(signal.SIGUSR2)
    serving(one.server, 2)
    one.ask()


@pytest.mark.single_protocol  # the fake server knows HTTP/1.1 only
def test_a_server_that_never_stops_sending(impostor):
    """Signals are still heard."""
    begin = "pathlib.Path('DONE').write_text('')\nfor i in range(3): os.fork()\n"
    one = impostor(begin + "while True: send(b'x', *[read] * 64)")
    await_true(one.done.exists, 60, "the program")
    one.server.send_signal(signal.SIGUSR2)
    one.server.wait_log("cannot start the new program")
    one.ask()
    for child in children(one.server.pid):  # its own children end with its session
        os.killpg(child, signal.SIGKILL) if child != serving(one.server) else None
    one.server.stop()


@pytest.mark.single_protocol  # the fake server knows HTTP/1.1 only
def test_a_server_that_closes_its_listeners(impostor):
    """It is ready without any: those of before are kept for the next one."""
    one = impostor("send(b'R')")
    serving(one.server, 2)
    await_true(one.done.exists, 60, "the attack")
    one.program.unlink()
    one.program.with_name("real").rename(one.program)
    os.kill(serving(one.server, 2), signal.SIGKILL)
    serving(one.server, 3)
    one.ask()


@pytest.mark.parametrize("second", [signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM])
def test_signals_in_a_row(supervised, second):
    """They meet servers that have not begun yet."""
    one = supervised()
    for _ in range(5):
        one.server.send_signal(signal.SIGUSR2)
        one.server.send_signal(second)
        time.sleep(0.002)
        if second == signal.SIGTERM:
            assert one.server.wait() == 0
            return
    await_true(lambda: len(children(one.server.pid)) == 1, 30, "one server")
    one.ask()


@pytest.fixture
def started_slowly(supervised, tmp_path):
    """Starts a supervisor whose next server, after this signal, starts until the file `go` is there."""

    def start(number):
        one = supervised(env={"SLOW_UNTIL": str(tmp_path / "go")})
        begin_slowly(one, number)
        return one

    return start


def begin_slowly(one, number):
    load = section("PLUGINS", {"Load": ["liana", HEADERS, SLOW, "static"]})
    (one.folder / "conf" / "plugins.load").write_text(load)
    os.kill(serving(one.server) if number == signal.SIGKILL else one.server.pid, number)
    one.server.wait_log("slow: a worker starts")


@build.needs_modules
def test_an_upgrade_while_the_first_one_starts(started_slowly, tmp_path):
    """It may be the old program: another one comes after it."""
    one = started_slowly(signal.SIGKILL)
    one.server.send_signal(signal.SIGUSR2)
    (tmp_path / "go").touch()
    serving(one.server, 3)
    await_true(lambda: len(children(one.server.pid)) == 1, 30, "one server")
    one.ask()


@build.needs_modules
@pytest.mark.parametrize("number", [signal.SIGUSR2, signal.SIGKILL])
def test_a_reload_while_the_next_one_starts(started_slowly, tmp_path, number):
    """It has read the configuration already, and does so again."""
    one = started_slowly(number)
    with open(one.folder / "conf" / "sites" / "default", "a") as file:
        file.write("[HEADERS]\n    Set X-Version 2\n")
    one.server.send_signal(signal.SIGHUP)
    (tmp_path / "go").touch()
    serving(one.server, 2)
    await_true(lambda: len(children(one.server.pid)) == 1, 30, "one server")

    def version():
        with one.server.connect() as client:
            return client.ask("/small")["X-Version"]

    await_true(lambda: version() == "2", 30, "the new configuration")


@pytest.mark.parametrize("args", [(), ("--supervise",)])
def test_a_pid_file_that_another_user_planted(tmp_path, site_root, args):
    """A link leads nowhere, and what is no number is not overwritten."""
    precious, link = tmp_path / "precious", tmp_path / "pid"
    for text in ("", "mine\n"):
        precious.write_text(text)
        link.unlink(missing_ok=True)
        link.symlink_to(precious)
        for path in (link, precious) if text else (link,):
            conf = write_config(tmp_path / "conf", site_root, {"PidFile": path})
            result = run("-c", conf, *args)
            assert result.returncode == 3 and str(path) in result.stderr
            assert precious.read_text() == text
