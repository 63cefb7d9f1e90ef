# SPDX-License-Identifier: Apache-2.0
"""Limits of clients over several workers: exact, and with a reload in the middle."""

import itertools
import signal
import threading

import pytest

from harness.client import ProtocolError
from harness.messages import request
from harness.server import await_true, section
from test_concurrent import in_parallel

pytestmark = pytest.mark.concurrent

FILES = {"a.txt": b"a\n", "big.bin": b"x" * 60_000}
CLIENTS, EACH, BURST = 8, 60, 200
HEADER = b"PROXY TCP4 192.0.2.1 10.0.0.9 4711 80\r\n"
SETTINGS = {"Workers": 4, "TrustedProxies": "127.0.0.1", "MaxKeepAliveRequest": 1_000_000, "KeepAliveTimeout": "60s"}


def start(serve, tmp_path, *sections, shared="", proxy=False):
    root = tmp_path / "server0" / "root"
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
    text += "".join(section(name, keys) for name, keys in sections)
    config = {"sites/default": text}
    if shared:
        config["monkey.conf"] = section("SERVER", {"Listen": "127.0.0.1:0" + " proxy" * proxy, **SETTINGS}) + shared
    return serve(SETTINGS, files=FILES, config=config)


def collect(count, work):
    """The results of work(i) in `count` threads."""
    results = [None] * count

    def keep(i):
        results[i] = work(i)

    in_parallel(count, keep)
    return results


def count_served(server, target="/a.txt", address="192.0.2.1"):
    with server.connect() as client:
        client.send(request(target, f"X-Forwarded-For: {address}") * EACH)
        return sum(client.response().status == 200 for _ in range(EACH))


def test_a_rate_is_exact(serve, tmp_path):
    server = start(serve, tmp_path, ("CLIENT_LIMITS", {"Rate": "1/d", "Burst": BURST, "Name": "all"}))
    assert sum(collect(CLIENTS, lambda n: count_served(server))) == BURST


def test_a_rate_is_exact_over_reloads(serve, tmp_path):
    server = start(serve, tmp_path, ("CLIENT_LIMITS", {"Rate": "1/d", "Burst": BURST, "Name": "all"}))
    server.baseline += 2  # descriptors of the process context, which the first reload makes

    def act(n):
        if n:
            return count_served(server)
        for count in range(1, 6):
            server.send_signal(signal.SIGHUP)
            server.wait_log("the new configuration is in use", count)
        return 0

    assert sum(collect(CLIENTS + 1, act)) == BURST


def test_requests_and_networks_and_log(serve, tmp_path):
    """All parts at once, for the race detector: a file that changes, evictions, SendRate of clients."""
    path = tmp_path / "nets.txt"
    path.write_text("198.51.100.0/24\n")
    server = start(
        serve,
        tmp_path,
        ("RULES", {"File": path, "Action": "deny"}),
        ("CLIENT_LIMITS", {"Match": "/a.txt", "MaxRequests": 3, "Rate": "1000/s", "MaxClients": 16}),
        ("CLIENT_LIMITS", {"Match": "/big.bin", "SendRate": "400K", "SendRateFor": "client"}),
        shared=section("CONNECTIONS", {"MaxConnections": 1000}),
    )

    def act(n):
        if n == 0:
            for count in range(1, 4):
                path.write_text(f"198.51.{100 + count}.0/24\n")
                server.wait_log("nets.txt", count)
        elif n == 1:
            with server.connect() as client:
                return client.ask("/big.bin", "X-Forwarded-For: 192.0.2.9").status
        for i in range(20):
            with server.connect() as client:
                for k in range(10):
                    client.ask("/a.txt", f"X-Forwarded-For: 10.{n}.{i}.{k}")
        return 200

    assert set(collect(6, act)) == {200}
    with server.connect() as client:
        await_true(lambda: client.ask("/a.txt", "X-Forwarded-For: 198.51.103.1").status == 403, 30, "the last file")


def ask_behind_header(client):
    """Is the connection of a client that a PROXY header names let in?"""
    try:
        client.send(HEADER + request("/a.txt"))
        return client.response().status == 200
    except (ProtocolError, OSError, EOFError) as error:
        assert "timed out" not in str(error)
        return False


@pytest.mark.single_protocol
def test_connections_are_exact_over_reloads(serve, tmp_path):
    """Connections of one client come and go in all workers, while reloads change what is asked before them. There are
    never more than MaxConnections, and at the end none is counted."""
    most, rounds = 5, itertools.count()
    shared = section("CONNECTIONS", {"Name": "few", "MaxConnections": most})
    server = start(serve, tmp_path, shared=shared, proxy=True)
    server.baseline += 2  # descriptors of the process context, which the first reload makes
    main = server.conf / "monkey.conf"
    text = main.read_text()
    lock, now, peak, over = threading.Lock(), 0, 0, threading.Event()

    def reload_all():
        for count in range(1, 6):
            first = section("CONNECTIONS", {"Name": f"n{count}", "Network": "198.51.100.0/24", "Action": "drop"})
            main.write_text(text.replace("[CONNECTIONS]", first + "[CONNECTIONS]", 1))
            server.send_signal(signal.SIGHUP)
            server.wait_log("the new configuration is in use", count)
        over.set()

    def act(n):
        nonlocal now, peak
        if n == 0:
            return reload_all()
        while not over.is_set() or next(rounds) < 200:
            with server.connect() as client:
                if not ask_behind_header(client):
                    continue
                with lock:
                    now += 1
                    peak = max(peak, now)
                assert client.ask("/a.txt").status == 200
                with lock:
                    now -= 1
        return None

    collect(2 * most, act)
    assert 2 <= peak <= most

    def has_room():
        clients = [server.connect() for _ in range(most)]
        served = [ask_behind_header(client) for client in clients]
        if not all(served):
            for client in clients:
                client.close()
        return all(served)

    await_true(has_room, 20, "the end of what was counted")
    assert not ask_behind_header(server.connect())
