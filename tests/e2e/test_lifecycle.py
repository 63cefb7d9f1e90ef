# SPDX-License-Identifier: Apache-2.0
"""From the start to the end of the process: listeners, workers, graceful stop, daemon, and running out of
descriptors."""

import os
import re
import signal
import socket
import subprocess
import time

import pytest

from harness import build
from harness.content import HELLO, LARGE
from harness.messages import lines, request
from harness.protocol import Client
from harness.server import Server, await_true, free_port, is_alive, is_refused, run, write_config

TERM, INT = signal.SIGTERM, signal.SIGINT


# ── listeners ──


def test_several_listeners(serve, tmp_path):
    server = serve({"Listen": ["127.0.0.1:0", "[::1]:0", f"unix:{tmp_path}/socket"], "Workers": 2}, listeners=3)
    assert (
        len(server.names) == 3
        and server.names[1].startswith("[::1]:")
        and server.names[2] == f"unix:{tmp_path}/socket"
    )
    for listener in range(3):
        for _ in range(10):
            with server.connect(listener) as client:
                client.assert_open()


def test_bare_port_listens_on_every_address(serve):
    server = serve({"Listen": "0"})
    for address in (("127.0.0.1", server.port), ("::1", server.port)):
        with Client(address) as client:
            client.assert_open()


def test_host_is_no_matter_of_the_listener(serve, tmp_path):
    server = serve({"Listen": f"unix:{tmp_path}/socket"})
    answers = server.talk(request(host=None, version="HTTP/1.0"))
    assert answers[0].body == HELLO


def test_unix_socket_left_behind_by_a_crash(serve, tmp_path):
    """A dead server's socket is replaced, a living one's is not, and a file that is no socket is never touched."""
    path = tmp_path / "socket"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    server = serve({"Listen": f"unix:{path}"})
    server.connect().assert_open()
    second = run("-o", ".", "-l", f"unix:{path}")
    assert second.returncode == 3 and str(path) in second.stderr
    server.connect().assert_open()
    precious = tmp_path / "precious"
    precious.write_text("mine")
    assert run("-o", ".", "-l", f"unix:{precious}").returncode == 3
    assert precious.read_text() == "mine"


def test_unix_socket_is_removed(serve, tmp_path):
    server = serve({"Listen": f"unix:{tmp_path}/socket"})
    server.stop()
    assert not (tmp_path / "socket").exists()


def test_port_is_free_after_the_end(serve):
    """A restart on the same port needs no waiting, although connections were open."""
    port = free_port()
    first = serve({"Listen": f"127.0.0.1:{port}"})
    client = first.connect()
    assert client.ask().status == 200
    first.send_signal(TERM)
    client.assert_gone()
    assert first.wait() == 0
    second = serve({"Listen": f"127.0.0.1:{port}"})
    second.connect().assert_open()


def test_fast_open_warns_when_it_is_useless(serve):
    """The bit of value 2 in net.ipv4.tcp_fastopen is the server's."""
    server = serve({"FastOpen": 64})
    with open("/proc/sys/net/ipv4/tcp_fastopen") as file:
        useless = not int(file.read()) & 2
    assert bool(re.search(r"warn .*(tcp_fastopen|FastOpen)", server.log)) == useless
    server.connect().assert_open()


def test_fast_open_by_default_does_not_warn(serve):
    server = serve()
    server.wait_log("serves with")
    assert "FastOpen" not in server.log


def test_defer_accept(serve):
    for value in ("5s", "0"):
        server = serve({"DeferAccept": value})
        client = server.connect()
        time.sleep(0.02)
        client.assert_open()


# ── workers ──


def test_workers_all_serve(serve):
    server = serve({"Workers": 4})
    clients = [server.connect() for _ in range(64)]
    for client in clients:
        client.assert_open()


def test_workers_follow_the_cpus(tmp_path, site_root):
    """Workers 0: one for each CPU that this process may use."""
    conf = write_config(tmp_path / "conf", site_root, {"Workers": 0})
    for cpus in ({0}, os.sched_getaffinity(0)):
        server = Server("-c", conf, wrapper=("taskset", "-c", ",".join(map(str, cpus))))
        server.wait_log(f"serves with {len(cpus)} workers")
        await_true(lambda count=len(cpus): server.count_workers() == count, what="the names of the workers")
        server.stop()


# ── graceful stop ──


@pytest.mark.parametrize("number", [TERM, INT])
def test_stop(serve, number):
    server = serve()
    server.connect().assert_open()
    server.stop(number)


def test_stop_closes_idle_connections(serve):
    server = serve({"Workers": 2, "ShutdownTimeout": "1h", "KeepAliveTimeout": "1h"})
    clients = [server.connect() for _ in range(20)]
    for client in clients:
        client.assert_open()
    server.send_signal(TERM)
    for client in clients:
        client.assert_closed()
    assert server.wait(60) == 0


def test_stop_with_untouched_connections(serve):
    server = serve({"ShutdownTimeout": "1h", "Timeout": "1h", "DeferAccept": 0})
    client = server.connect()
    with server.connect() as other:
        other.assert_open()
    server.send_signal(TERM)
    client.assert_closed()
    assert server.wait(60) == 0


def test_stop_finishes_what_has_begun(serve):
    """A download in progress is completed; no new connection is accepted."""
    server = serve({"ShutdownTimeout": "30s"})
    client = server.connect(rcvbuf=16_384)
    client.send(request("/large.bin"))
    head = client.head()
    address = server.addresses[0]
    server.send_signal(TERM)
    await_true(lambda: is_refused(address), 30, "the end of accepting")
    assert client.exactly(head.length) == LARGE
    client.assert_closed()
    assert server.wait() == 0


def test_stop_answers_a_pipeline_before_it_ends(serve):
    server = serve({"ShutdownTimeout": "30s"})
    client = server.connect(rcvbuf=16_384)
    client.send(request("/large.bin") + request("/hello.txt"))
    head = client.head()
    server.send_signal(TERM)
    assert client.exactly(head.length) == LARGE
    assert [a.body for a in client.responses()] in ([], [HELLO])
    assert server.wait() == 0


def test_stop_does_not_wait_for_ever(serve):
    """ShutdownTimeout: a reader that has stopped is left behind."""
    server = serve({"ShutdownTimeout": "400ms", "SendTimeout": "60s"})
    client = server.connect(rcvbuf=4096)
    client.send(request("/large.bin") * 10)
    client.head()
    start = time.monotonic()
    server.send_signal(TERM)
    assert server.wait(50) == 0
    assert time.monotonic() - start >= 0.3
    client.assert_gone()


def test_stop_with_an_incomplete_head(serve):
    server = serve({"ShutdownTimeout": "400ms", "Timeout": "60s"})
    client = server.connect()
    client.send("GET / HTTP/1.1\r\nHo")
    with server.connect() as other:
        other.assert_open()
    server.send_signal(TERM)
    assert server.wait() == 0
    client.assert_gone()


def test_second_signal_stops_at_once(serve):
    server = serve({"ShutdownTimeout": "1h", "SendTimeout": "1h"})
    client = server.connect(rcvbuf=4096)
    client.send(request("/large.bin") * 10)
    client.head()
    server.send_signal(TERM)
    server.wait_log("stopping")
    server.send_signal(TERM)
    server.wait(60)


@pytest.mark.concurrent
@pytest.mark.parametrize("pause", [0, 0.001, 0.003, 0.01])
def test_second_signal_at_any_moment(serve, pause):
    """It may meet a server whose workers have just ended."""
    for _ in range(10):
        server = serve({"ShutdownTimeout": "10s"})
        with server.connect(rcvbuf=4096) as client:
            client.send(request("/large.bin") * 3)
            client.head()
            server.send_signal(TERM)
            server.wait_log("stopping")
        time.sleep(pause)
        if server.alive:
            server.send_signal(TERM)
        assert server.wait() == 0, server.log[-3000:]


@pytest.mark.parametrize("name", ["SIGPIPE", "SIGWINCH", "SIGCHLD", "SIGURG"])
def test_other_signals_do_no_harm(serve, name):
    server = serve()
    client = server.connect()
    client.assert_open()
    server.send_signal(getattr(signal, name))
    client.assert_open()


# ── descriptors ──


def spin(server, seconds=0.5):
    before, began = server.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    return (server.cpu_seconds() - before) / (time.monotonic() - began)


def test_out_of_descriptors(serve):
    """More clients than descriptors: the server neither spins nor dies, and continues when some leave."""
    server = serve({"KeepAliveTimeout": "60s", "Timeout": "60s"}, nofile=48)
    clients = [server.connect() for _ in range(100)]
    for client in clients:
        client.send("GET /hello.txt HTTP/1.1\r\n")
    server.wait_log("over capacity: ")  # the oldest are closed, sixteen at a time
    await_true(lambda: spin(server) < 0.2, 60, "a server that sleeps")
    assert len(server.lines) < 40, "the log is flooded"
    for client in clients[:90]:
        client.close()
    with server.connect() as client:  # accepted after all that waited, the dead ones among them
        await_true(lambda: client.ask().status == 200, 30, "the end of the exhaustion")
    for client in clients[90:]:
        client.send("Host: localhost\r\n\r\n")
        assert client.response().body == HELLO
        client.close()
    with server.connect() as client:
        client.assert_open()


def test_descriptors_are_left_for_files(serve):
    """More clients than descriptors: those that got in get their files, since connections never take them all."""
    server = serve({"KeepAliveTimeout": "60s", "Timeout": "60s"}, nofile=48)
    clients = [server.connect() for _ in range(60)]
    for client in clients:
        client.send_all_you_can("GET /medium.bin HTTP/1.1\r\n")
    clients[-1].send("Host: localhost\r\n\r\n")
    assert clients[-1].response().status == 200
    assert server.descriptors() <= 42, "an eighth is kept for files"
    for client in clients:
        client.close()
    await_true(lambda: server.descriptors() <= server.baseline + 2, 30)
    with server.connect() as client:
        assert client.ask("/medium.bin").status == 200


def test_descriptors_are_not_inherited(site):
    """Everything the server opens is close-on-exec."""
    with site.connect() as client:
        client.send(request("/large.bin"))
        client.head()
        flags = {
            entry: flags_of(f"/proc/{site.pid}/fdinfo/{entry}")
            for entry in os.listdir(f"/proc/{site.pid}/fdinfo")
            if int(entry) > 2
        }
        assert not [entry for entry, value in flags.items() if not value & os.O_CLOEXEC], site.open_files()


def flags_of(path):
    try:
        with open(path) as file:
            return int(re.search(r"^flags:\s+(\d+)", file.read(), re.M)[1], 8)
    except FileNotFoundError:
        return os.O_CLOEXEC  # closed in the meantime


def test_idle_server_sleeps(serve):
    server = serve({"Workers": 2})
    with server.connect() as client:
        client.assert_open()
        assert spin(server) <= 0.04


# ── daemon and pid file ──


def test_pid_file(serve, tmp_path):
    path = tmp_path / "monkey.pid"
    server = serve({"PidFile": path})
    assert path.read_text().strip() == str(server.pid)
    server.stop()
    assert not path.exists()


def test_pid_file_that_cannot_be_written(serve, tmp_path, site_root):
    conf = write_config(tmp_path / "conf", site_root, {"PidFile": "/nonexistent/dir/pid"})
    result = run("-c", conf)
    assert result.returncode in (1, 3) and "/nonexistent/dir/pid" in result.stderr


def test_daemon(tmp_path, site_root):
    """The parent returns when the server serves; the child has no terminal and ends like any other."""
    pid_file, log = tmp_path / "pid", tmp_path / "log"
    conf = write_config(
        tmp_path / "conf", site_root, {"PidFile": pid_file, "ErrorLog": log, "Listen": f"unix:{tmp_path}/socket"}
    )
    process = subprocess.run(
        [build.binary(), "-c", conf, "-D"],
        env=build.environment(),
        timeout=120,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.returncode == 0, process.stdout
    pid = int(pid_file.read_text())
    try:
        with Client(f"{tmp_path}/socket") as client:
            client.assert_open()
        fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        assert fields[4] == "0", "a controlling terminal is left"
        assert os.getpgid(pid) != os.getpgid(0)
    finally:
        os.kill(pid, TERM)
        await_true(lambda: not is_alive(pid), 60, "the daemon's end")
    assert not pid_file.exists()
    assert "Sanitizer" not in log.read_text()


def test_daemon_that_cannot_start(tmp_path, site_root):
    """Failures before the fork is complete are the parent's exit code and sentence."""
    conf = write_config(tmp_path / "conf", site_root, {"Listen": "192.0.2.1:80", "ErrorLog": tmp_path / "log"})
    result = run("-c", conf, "-D")
    assert result.returncode == 3
    assert "192.0.2.1" in result.stderr + (tmp_path / "log").read_text()


def test_wrong_configuration_of_a_daemon(tmp_path, site_root):
    conf = write_config(tmp_path / "conf", site_root, {"Nonsens": 1})
    assert run("-c", conf, "-D").returncode == 1


def test_head_in_two_halves_over_every_listener(serve, tmp_path):
    server = serve({"Listen": ["127.0.0.1:0", f"unix:{tmp_path}/socket"]}, listeners=2)
    for listener in (0, 1):
        with server.connect(listener) as client:
            client.send("GET /hello.txt HTTP/1.1\r\n")
            time.sleep(0.01)
            client.send(lines("Host: localhost"))
            assert client.response().body == HELLO
