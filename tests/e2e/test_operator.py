# SPDX-License-Identifier: Apache-2.0
"""A careless operator and an unfriendly environment: closed descriptors, logs that are not read, ignored signals,
files that are something else, addresses given twice."""

import fcntl
import itertools
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess

import pytest

from harness import build
from harness.client import ProtocolError
from harness.protocol import Client
from harness.server import Server, await_true, free_port, is_alive, run, write_config

F_SETPIPE_SZ = 1031


def small_pipe():
    reading, writing = os.pipe()
    fcntl.fcntl(writing, F_SETPIPE_SZ, 4096)
    return reading, writing


STREAMS = [s for n in (1, 2, 3) for s in itertools.combinations((0, 1, 2), n)]


def answers(port):
    try:
        with Client(("127.0.0.1", port), timeout=30) as client:
            return client.ask("/hello.txt").status == 200
    except OSError:
        return False


def spawn(conf, *args, close=(), **rest):
    return subprocess.Popen(
        [build.binary(), "-c", conf, *args],
        env=build.environment(),
        preexec_fn=lambda: [os.close(fd) for fd in close],
        start_new_session=True,
        **rest,
    )


@pytest.fixture
def conf(tmp_path, site_root):
    port = free_port()
    settings = {"Listen": f"127.0.0.1:{port}", "Workers": 1, "PidFile": tmp_path / "p.pid"}
    return write_config(tmp_path / "conf", site_root, settings), port, tmp_path / "p.pid"


@pytest.mark.parametrize("close", STREAMS, ids=str)
def test_standard_descriptors_are_closed(conf, close):
    folder, port, pid_file = conf
    process = spawn(folder, close=close)
    try:
        await_true(lambda: answers(port), 60, "an answer")
        assert pid_file.read_text() == f"{process.pid}\n"
    finally:
        process.terminate()
        assert process.wait(60) == 0


@pytest.mark.parametrize("close", STREAMS, ids=str)
def test_daemon_without_standard_descriptors(conf, close):
    folder, port, pid_file = conf
    process = spawn(folder, "-D", close=close)
    assert process.wait(60) == 0
    pid = int(pid_file.read_text())
    try:
        assert answers(port)
    finally:
        os.kill(pid, signal.SIGTERM)
    await_true(lambda: not pid_file.exists(), 60, "the end of the daemon")


def test_log_without_a_reader(conf, tmp_path):
    """The pipe behind stderr is full: lines are lost, and nothing else."""
    folder, port, _ = conf
    with open(folder / "monkey.conf", "a") as file:
        file.write("    LogLevel debug\n")
    reading, writing = small_pipe()
    process = spawn(folder, stderr=writing)
    os.close(writing)
    try:
        await_true(lambda: answers(port), 60, "an answer")
        for _ in range(100):  # several lines each
            assert answers(port)
        process.terminate()
        assert process.wait(60) == 0
        log = os.read(reading, 1 << 20)
        assert log.endswith(b"\n")
    finally:
        os.close(reading)
        process.kill()


def test_lost_lines_are_counted(conf):
    folder, port, _ = conf
    with open(folder / "monkey.conf", "a") as file:
        file.write("    LogLevel debug\n")
    reading, writing = small_pipe()
    process = spawn(folder, stderr=writing)
    os.close(writing)
    try:
        await_true(lambda: answers(port), 60, "an answer")
        for _ in range(400):
            answers(port)
        log = os.read(reading, 1 << 20)
        for _ in range(20):  # each request writes lines, and one of the first says how many were lost
            if b"lines were lost" not in log:
                answers(port)
                log += os.read(reading, 1 << 20)
        assert b"lines were lost" in log
    finally:
        process.kill()
        process.wait()
        os.close(reading)
    assert log


def test_log_is_a_fifo_without_reader(conf, tmp_path):
    folder, *_ = conf
    os.mkfifo(tmp_path / "log")
    with open(folder / "monkey.conf", "a") as file:
        file.write(f"    ErrorLog {tmp_path}/log\n")
    result = run("-c", folder)
    assert result.returncode == 3 and "error log" in result.stderr


def test_log_through_a_link(conf, tmp_path):
    """As in containers: /dev/stderr is a link."""
    folder, port, _ = conf
    with open(folder / "monkey.conf", "a") as file:
        file.write("    ErrorLog /dev/stderr\n")
    with open(tmp_path / "out", "wb") as out:
        process = spawn(folder, stderr=out)
        await_true(lambda: answers(port), 60, "an answer")
        process.terminate()
        assert process.wait(60) == 0
    assert b"listening on" in (tmp_path / "out").read_bytes()


# starts a program with all signals ignored and blocked that can be
DEAF = (
    "/usr/bin/python3",
    "-c",
    """import os, signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])""",
)
OURS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGCHLD")


def ignored_signals(pid, row="SigIgn"):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    mask = int(re.search(rf"^{row}:\s+(\w+)", text, re.M)[1], 16)
    return {signal.Signals(n).name for n in range(1, 32) if mask >> (n - 1) & 1}


def end(pid):
    """Interrupts a process that is no child of this one."""
    os.kill(pid, signal.SIGINT)
    try:
        await_true(lambda: not is_alive(pid), 60, "the end of the server")
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        raise


class Deaf:
    """A server that was started so, and writes its log to a file."""

    def __init__(self, folder, root, *args):
        self.log = folder / "log"
        write_config(folder / "conf", root, {"ErrorLog": self.log, "PidFile": folder / "pid"})
        self.server = Server("-c", folder / "conf", *args, wrapper=DEAF, wait=False)

    def await_log(self, text, count=1):
        await_true(lambda: self.log.exists() and self.log.read_text().count(text) >= count, 60, text)

    def end(self, number):
        self.server.send_signal(number)
        assert self.server.wait() == 0


@pytest.fixture
def deaf(tmp_path, site_root):
    made = []

    def start(*args):
        made.append(Deaf(tmp_path, site_root, *args))
        return made[-1]

    yield start
    for one in made:
        one.server.kill()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("args", [(), ("--supervise",)])
def test_signals_that_were_ignored_and_blocked(deaf, args, end):
    """By nohup, a shell for its background jobs, some runners of CI."""
    one = deaf(*args)
    one.await_log("serves with 1 workers")
    one.server.send_signal(signal.SIGHUP)
    one.await_log("the new configuration is in use")
    one.log.rename(one.log.with_name("old"))
    one.server.send_signal(signal.SIGUSR1)
    await_true(one.log.exists, 60, "the new log")
    assert not ignored_signals(one.server.pid) & set(OURS)
    one.end(end)


def test_an_upgrade_where_signals_were_ignored_and_blocked(deaf, tmp_path):
    one = deaf()
    one.await_log("serves with 1 workers")
    one.server.send_signal(signal.SIGUSR2)
    one.await_log("serves with 1 workers", 2)
    assert one.server.process.wait(60) == 0  # its output lasts as long as the next server
    pid = int((tmp_path / "pid").read_text())
    try:
        assert pid != one.server.pid and not ignored_signals(pid) & set(OURS)
    finally:
        end(pid)


def test_a_supervisor_where_signals_were_ignored_and_blocked(deaf):
    """It learns of a server that dies, and its servers hear it."""
    one = deaf("--supervise")
    for count in (1, 2):
        one.await_log(" serves\n", count)  # the supervisor's line
        pid = int(re.findall(r"supervisor: process (\d+) serves", one.log.read_text())[-1])
        assert not ignored_signals(pid) & set(OURS)
        if count == 1:
            os.kill(pid, signal.SIGKILL)
    one.server.send_signal(signal.SIGUSR2)
    one.await_log(" serves\n", 3)
    one.end(signal.SIGINT)


@pytest.mark.parametrize("args", [("-t",), ("-D",)])
def test_a_program_with_signals_that_were_ignored(tmp_path, site_root, args):
    """The test of the configuration waits for a child; the background is a child that reports."""
    conf = write_config(tmp_path / "conf", site_root, {"PidFile": tmp_path / "pid"})
    result = subprocess.run([*DEAF, build.binary(), "-c", conf, *args], env=build.environment(), timeout=120)
    assert result.returncode == 0
    if "-D" in args:
        end(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    "first, second", [("{p}", "{p}"), ("{p}", "127.0.0.1:{p}"), ("127.0.0.1:{p}", "*:{p}"), ("[::1]:{p}", "{p}")]
)
def test_listeners_that_clash(tmp_path, site_root, first, second):
    port = free_port()
    folder = write_config(tmp_path / "conf", site_root, {"Listen": [first.format(p=port), second.format(p=port)]})
    result = run("-c", folder, "-t")
    assert result.returncode == 1 and "covered by" in result.stderr


@pytest.mark.parametrize("key", ["PidFile", "ErrorLog"])
@pytest.mark.parametrize("place", ["missing/file", "."])
def test_files_that_cannot_be_written(tmp_path, site_root, key, place):
    folder = write_config(tmp_path / "conf", site_root, {"Listen": "127.0.0.1:0", key: tmp_path / place})
    result = run("-c", folder, "-t")
    assert result.returncode == 1 and f"{key}" in result.stderr


def test_pid_file_that_is_something_else(tmp_path, site_root):
    precious = tmp_path / "precious"
    precious.write_text("a letter\n")
    folder = write_config(tmp_path / "conf", site_root, {"Listen": "127.0.0.1:0", "PidFile": precious})
    assert run("-c", folder).returncode == 3
    assert precious.read_text() == "a letter\n"


def is_decided(port, pair):
    """One of them serves, or both have ended. A server of another test may have taken the port, and what comes from it
    is no response: then both of them must end."""

    def have_ended():
        return all(process.poll() is not None for process in pair)

    try:
        return have_ended() or answers(port)
    except ProtocolError:
        await_true(have_ended, 60, "the end of both, whose port another server has")
        return True


def test_two_servers_started_together(tmp_path, site_root):
    """Exactly one of them gets the port."""
    port = free_port()
    folder = write_config(tmp_path / "conf", site_root, {"Listen": f"127.0.0.1:{port}"})
    for _ in range(10):
        pair = [spawn(folder, stderr=subprocess.DEVNULL) for _ in range(2)]
        await_true(lambda: any(p.poll() is not None for p in pair), 60, "the end of one")
        await_true(lambda: is_decided(port, pair), 60, "the start of the other")
        codes = []
        for process in pair:
            process.terminate()
            codes.append(process.wait(60))
        assert sorted(codes) == [0, 3] or codes == [3, 3]


@pytest.mark.parametrize(
    "args", [("-c", ""), ("-o", ""), ("-o", ".", "-l", "unix:/x", "-p", "80"), ("-l", "80", "-p", "81")]
)
def test_options_that_say_nothing_or_two_things(args):
    result = run(*args)
    assert result.returncode == 2 and result.stderr.count("\n") == 1


def test_partial_heads_do_not_starve_others(serve):
    """When descriptors run out, connections that have brought nothing whole give theirs."""
    server = serve({"Timeout": "60s"}, nofile=64)
    crowd = [server.connect() for _ in range(100)]
    for client in crowd:
        client.send_all_you_can(b"GET ")
    with server.connect() as client:
        assert client.ask("/hello.txt").status == 200


def test_descriptor_limit_is_raised(serve):
    """A soft limit is not meant for servers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = serve()
    with open(f"/proc/{server.pid}/limits") as file:
        row = next(line for line in file if line.startswith("Max open files"))
    assert int(row.split()[3]) == hard


def test_tls_on_a_plain_port(serve):
    """A handshake is no head: refused at its first byte, not at the end of a timeout."""
    client = serve({"Timeout": "1h"}).connect()
    client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    assert client.response().status == 400


# ── the last lines of a start ──


def read_terminal(conf, *args, until):
    """What a server prints on a terminal, up to a line with `until`."""
    ours, theirs = pty.openpty()
    process = spawn(conf, *args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while until not in text or not text.endswith(b"\n"):
            text += os.read(ours, 4096)
        return text.decode().splitlines()
    finally:
        process.terminate()
        process.wait(60)
        os.close(ours)


def test_urls_are_the_last_lines_on_a_terminal(conf):
    folder, port, _ = conf
    url = f"    http://127.0.0.1:{port}/"
    lines = read_terminal(folder, until=url.encode())
    assert lines[-2:] == ["monkey serves at", url] and "serves with 1 workers" in "".join(lines[:-2])


def test_urls_below_a_supervisor(conf):
    """Its own line, "process N serves", comes before or after them."""
    folder, port, _ = conf
    assert f"    http://127.0.0.1:{port}/" in read_terminal(folder, "--supervise", until=f":{port}/".encode())


@pytest.mark.skipif(not build.speaks("tls"), reason="NOT TESTED: this build has no TLS")
def test_schemes_of_the_urls(tmp_path, site_root):
    plain, tls = free_port(), free_port()
    text = f"[SERVER]\n    Listen 127.0.0.1:{plain}\n    Listen 127.0.0.1:{tls} tls\n[TLS]\n    SelfSigned On\n"
    folder = write_config(tmp_path / "conf", site_root, files={"monkey.conf": text})
    lines = read_terminal(folder, until=f":{tls}/".encode())
    assert lines[-2:] == [f"    http://127.0.0.1:{plain}/", f"    https://127.0.0.1:{tls}/"]


def test_no_urls_in_a_log(conf):
    server = Server("-c", conf[0])
    server.wait_log("serves with")
    server.stop()
    assert "http://" not in server.log
