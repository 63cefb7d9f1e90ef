# SPDX-License-Identifier: Apache-2.0
"""A careless operator and an unfriendly environment: closed descriptors, logs that nobody reads, ignored signals,
files that are something else, addresses given twice."""

import fcntl
import itertools
import os
import resource
import signal
import subprocess
import time

import pytest

from harness import build
from harness.protocol import Client
from harness.server import await_true, free_port, run, write_config

F_SETPIPE_SZ = 1031


def small_pipe():
    reading, writing = os.pipe()
    fcntl.fcntl(writing, F_SETPIPE_SZ, 4096)
    return reading, writing


STREAMS = [s for n in (1, 2, 3) for s in itertools.combinations((0, 1, 2), n)]


def answers(port):
    try:
        with Client(("127.0.0.1", port), timeout=2) as client:
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
        await_true(lambda: answers(port), 10, "an answer")
        assert pid_file.read_text() == f"{process.pid}\n"
    finally:
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.parametrize("close", STREAMS, ids=str)
def test_daemon_without_standard_descriptors(conf, close):
    folder, port, pid_file = conf
    process = spawn(folder, "-D", close=close)
    assert process.wait(20) == 0
    pid = int(pid_file.read_text())
    try:
        assert answers(port)
    finally:
        os.kill(pid, signal.SIGTERM)
    await_true(lambda: not pid_file.exists(), 20, "the end of the daemon")


def test_log_that_nobody_reads(conf, tmp_path):
    """The pipe behind stderr is full: lines are lost, and nothing else."""
    folder, port, _ = conf
    with open(folder / "monkey.conf", "a") as file:
        file.write("    LogLevel debug\n")
    reading, writing = small_pipe()
    process = spawn(folder, stderr=writing)
    os.close(writing)
    try:
        await_true(lambda: answers(port), 10, "an answer")
        for _ in range(100):  # several lines each
            assert answers(port)
        process.terminate()
        assert process.wait(20) == 0
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
        await_true(lambda: answers(port), 10, "an answer")
        for _ in range(400):
            answers(port)
        log = os.read(reading, 1 << 20)
        answers(port)
        assert b"lines were lost" in os.read(reading, 1 << 20)
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
    result = run("-c", folder, timeout=10)
    assert result.returncode == 3 and "error log" in result.stderr


def test_log_through_a_link(conf, tmp_path):
    """As in containers: /dev/stderr is a link."""
    folder, port, _ = conf
    with open(folder / "monkey.conf", "a") as file:
        file.write("    ErrorLog /dev/stderr\n")
    with open(tmp_path / "out", "wb") as out:
        process = spawn(folder, stderr=out)
        await_true(lambda: answers(port), 10, "an answer")
        process.terminate()
        assert process.wait(20) == 0
    assert b"listening on" in (tmp_path / "out").read_bytes()


def test_ignored_signals_stay_ignored(conf):
    """nohup, and a shell's background jobs."""
    folder, port, _ = conf
    process = subprocess.Popen(
        [build.binary(), "-c", folder],
        env=build.environment(),
        preexec_fn=lambda: [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGHUP)],
    )
    try:
        await_true(lambda: answers(port), 10, "an answer")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        assert answers(port)
    finally:
        process.terminate()
        assert process.wait(20) == 0


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


def test_two_servers_started_together(tmp_path, site_root):
    """One of them gets the port, whatever the moment."""
    port = free_port()
    folder = write_config(tmp_path / "conf", site_root, {"Listen": f"127.0.0.1:{port}"})
    for _ in range(10):
        pair = [spawn(folder, stderr=subprocess.DEVNULL) for _ in range(2)]
        await_true(lambda: any(p.poll() is not None for p in pair), 10, "the end of one")
        codes = []
        for process in pair:
            process.terminate()
            codes.append(process.wait(20))
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


def test_tls_on_a_plain_port(site):
    """A handshake is no head: refused at its first byte, not at the end of a timeout."""
    start = time.monotonic()
    client = site.connect()
    client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    assert client.response().status == 400
    assert time.monotonic() - start < 5
