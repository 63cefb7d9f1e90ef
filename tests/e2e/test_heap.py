# SPDX-License-Identifier: Apache-2.0
"""Memory that many responses needed goes back to the system when their connections have closed."""

import os

import pytest

from harness import build
from harness.content import populate
from harness.messages import request
from harness.server import await_true, section

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET != "release", reason="NOT TESTED: sanitizers have their own allocators"),
]
SIZE, BUSY_KB, SLACK_KB = 1 << 20, 32 * 1024, 16 * 1024


def hold_streams(server):
    """Streams whose windows are closed."""
    clients = [server.connect_h2(window=0, credit=False) for _ in range(20)]
    for client in clients:
        for _ in range(100):
            client.begin("/big.bin")
        client.flush()
    return clients


def hold_connections(server):
    """Clients that do not read."""
    clients = [server.connect(rcvbuf=4096) for _ in range(300)]
    for client in clients:
        client.send(request("/big.bin"))
    return clients


@pytest.mark.parametrize("hold", [hold_streams, hold_connections])
def test_memory_goes_back(serve, tmp_path, hold):
    root = populate(tmp_path / "files", {"big.bin": os.urandom(SIZE)})
    backend = serve(root=root)
    proxy = section("PROXY", {"Match": "/", "To": f"http://127.0.0.1:{backend.port}"})
    server = serve({"LogLevel": "debug"}, text=proxy)
    with server.connect() as client:
        assert client.ask("/big.bin").status == 200
    before = server.memory_kb()
    clients = hold(server)
    await_true(lambda: server.memory_kb() > before + BUSY_KB, 60, "the memory of the responses")
    lines = len([line for line in server.lines if "are given back to the system" in line])
    for client in clients:
        client.close()
    server.wait_log("memory: of .* are given back to the system", lines + 1)
    await_true(lambda: server.memory_kb() < before + SLACK_KB, 60, "the end of all responses")
