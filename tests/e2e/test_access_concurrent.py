# SPDX-License-Identifier: Apache-2.0
"""Limits of clients over several workers: exact, and with a reload in the middle."""

import signal

import pytest

from harness.messages import request
from harness.server import await_true, section
from test_concurrent import in_parallel

pytestmark = pytest.mark.concurrent

FILES = {"a.txt": b"a\n", "big.bin": b"x" * 60_000}
CLIENTS, EACH, BURST = 8, 60, 200
SETTINGS = {"Workers": 4, "TrustedProxies": "127.0.0.1", "MaxKeepAliveRequest": 1_000_000}


def start(serve, tmp_path, *sections, shared=""):
    root = tmp_path / "server0" / "root"
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
    text += "".join(section(name, keys) for name, keys in sections)
    config = {"sites/default": text}
    if shared:
        config["monkey.conf"] = section("SERVER", {"Listen": "127.0.0.1:0", **SETTINGS}) + shared
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
        await_true(lambda: client.ask("/a.txt", "X-Forwarded-For: 198.51.103.1").status == 403, 10, "the last file")
