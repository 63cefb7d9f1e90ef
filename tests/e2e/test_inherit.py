# SPDX-License-Identifier: Apache-2.0
"""Listening sockets that are handed over (LISTEN_FDS), as a service manager does it."""

import contextlib
import os
import signal
import socket

import pytest

from harness.protocol import Client
from harness.server import Server, await_true, write_config

# takes the place of the shell: the process number stays
SCRIPT = 'n={n}; {moves} export LISTEN_PID=${{PID:-$$}} LISTEN_FDS=$n LISTEN_FDNAMES={names}; exec "$@"'


@pytest.fixture
def inherit(tmp_path, site_root):
    servers = []

    def start(sockets, settings, *, pid="", names=None, **rest):
        conf = write_config(tmp_path / "conf", site_root, settings)
        high = [os.dup2(one.fileno(), 200 + i) for i, one in enumerate(sockets)]
        moves = " ".join(f"exec {3 + i}<&{fd} {fd}<&-;" for i, fd in enumerate(high))
        script = SCRIPT.format(n=len(high), moves=moves, names=":".join(names or ["x.socket"] * len(high)))
        try:
            servers.append(
                Server("-c", conf, wrapper=("bash", "-c", script, "sh"), pass_fds=high, env={"PID": pid}, **rest)
            )
        finally:
            for fd in high:
                os.close(fd)
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def listen(address=("127.0.0.1", 0), family=socket.AF_INET, **options):
    one = socket.socket(family)
    if options.get("reuse"):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind(address)
    one.listen(64)
    return one


def has_v6():
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


def sockets(server):
    return sum("socket" in name for name in server.open_files())


def ask(address):
    with Client(address) as client:
        return client.ask("/hello.txt").status


def test_a_socket_serves_its_directive(inherit):
    with listen() as one:
        port = one.getsockname()[1]
        server = inherit([one], {"Listen": f"127.0.0.1:{port}", "Workers": 3})
        assert server.names == [f"127.0.0.1:{port}"]
        for _ in range(20):
            assert ask(("127.0.0.1", port)) == 200
        await_true(lambda: sockets(server) == 1, 30, "one socket, for all workers")
        server.stop()
        with Client(("127.0.0.1", port)) as client:  # it listens on, for the next server
            assert client.sock.fileno() >= 0


def test_sockets_of_a_name(inherit):
    """`localhost` claims the sockets of its addresses."""
    with listen() as one:
        port = one.getsockname()[1]
        with listen(("::1", port), socket.AF_INET6) if has_v6() else contextlib.nullcontext() as other:
            both = [one, other] if other else [one]
            server = inherit(both, {"Listen": f"localhost:{port}"}, listeners=len(both))
            assert "no Listen names it" not in server.log
            await_true(lambda: sockets(server) == len(both), 30, "the sockets that it was given")
            for address in server.addresses:
                assert ask(address) == 200


def test_a_unix_socket_stays_in_its_place(inherit, tmp_path):
    path = str(tmp_path / "socket")
    with listen(path, socket.AF_UNIX) as one:
        server = inherit([one], {"Listen": f"unix:{path}"})
        assert ask(path) == 200
        server.stop()
        assert os.path.exists(path)
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
            client.connect(path)


def test_several_sockets_of_one_address(inherit):
    """Both are taken: what waits in either is answered."""
    with listen(reuse=True) as one:
        with listen(one.getsockname(), reuse=True) as two:
            server = inherit([one, two], {"Listen": "{}:{}".format(*one.getsockname()), "Workers": 1})
            for _ in range(30):
                assert ask(one.getsockname()) == 200
            assert "is closed" not in server.log


def test_all_addresses(inherit):
    with listen(("::", 0), socket.AF_INET6) as one:
        port = one.getsockname()[1]
        server = inherit([one], {"Listen": str(port), "Workers": 2})
        assert server.names == [f"*:{port}"]
        assert ask(("127.0.0.1", port)) == ask(("::1", port)) == 200


def test_port_0_takes_an_unnamed_socket(inherit):
    with listen() as one, listen() as two:
        named, other = one.getsockname()[1], two.getsockname()[1]
        server = inherit([one, two], {"Listen": ["127.0.0.1:0", f"127.0.0.1:{named}"]}, listeners=2)
        assert server.names == [f"127.0.0.1:{other}", f"127.0.0.1:{named}"]


def test_unwanted_sockets_are_closed(inherit, tmp_path):
    with listen() as one, socket.socket() as idle, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        server = inherit([one, idle, udp], {"Listen": f"unix:{tmp_path}/socket"})
        server.wait_log(f"closing the inherited socket 127.0.0.1:{one.getsockname()[1]}: no Listen names it")
        server.wait_log(r"no listening stream socket \(.*\): it is closed", 2)
        one.close()
        assert ask(server.addresses[0]) == 200
        await_true(lambda: sockets(server) == 1, 30, "one socket")


def test_they_are_for_another_process(inherit):
    with listen() as one:
        server = inherit([one], {}, pid="1")
        assert server.names != ["{}:{}".format(*one.getsockname())]
        assert "handed over" not in server.log


def test_they_outlive_a_reload(inherit, tmp_path, site_root):
    with listen() as one, listen() as two:
        ports = [each.getsockname()[1] for each in (one, two)]
        server = inherit([one, two], {"Listen": [f"127.0.0.1:{port}" for port in ports]}, listeners=2)
        write_config(tmp_path / "conf", site_root, {"Listen": f"127.0.0.1:{ports[0]}", "Workers": 4})
        server.send_signal(signal.SIGHUP)
        server.wait_log("the new configuration is in use")
        for _ in range(10):
            assert ask(("127.0.0.1", ports[0])) == 200
        with Client(("127.0.0.1", ports[1])):
            pass  # its owner still listens
