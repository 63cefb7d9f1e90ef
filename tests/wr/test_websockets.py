# SPDX-License-Identifier: Apache-2.0
"""WebSockets as a workload: the client that checks servers and counts, and what it finds wrong."""

import pytest
from watch_resources import counts, servers, workloads
from watch_resources.checks import check_answers
from watch_resources.data import Problem
from watch_resources.measure import make_load
from watch_resources.generators import WrLoad
from watch_resources.websocket import WebSocket
from websocket_server import WebSocketServer


class Choice:
    variants = ("ws",)
    kind = None


class Server:
    """As much of a servers.Server as checks and counts need."""

    name, choice, root = "own", Choice(), "/nonexistent"

    def __init__(self, port):
        self.port = port

    def check_health(self):
        pass

    def tell(self, text):
        return f"own {text}"


@pytest.fixture
def server():
    server = WebSocketServer()
    yield server
    server.stop()


@pytest.mark.parametrize("size", [1, 125, 126, 65535])
def test_messages_come_back(server, size):
    with WebSocket(server.port, "echo") as socket:
        for text in ("a" * size, "b" * size):
            socket.send(text)
            assert socket.receive() == text
    assert server.connections == 1


def test_a_refused_handshake(server):
    with pytest.raises(ValueError, match="the handshake is answered with 'HTTP/1.1 200 OK'"):
        WebSocket(server.port, "200")


@pytest.mark.parametrize("path, words", [
    ("wrong", "own answers S2 /wrong with another message"),
    ("cut", "own answers S2 /cut with another message"),
    ("close", "own has no WebSocket for S2 /close: a frame begins with 0x88"),
    ("end", "own has no WebSocket for S2 /end: the server has closed the connection"),
    ("200", "own has no WebSocket for S2 /200: the handshake is answered with"),
])  # fmt: skip
def test_wrong_servers_are_reported(server, path, words):
    with pytest.raises(Problem, match=words):
        check_answers(workloads.load_workload("S2", path=path), Server(server.port))


@pytest.mark.parametrize("name, options", [
    ("S2", ["--message", "125"]), ("S2b", ["--message", "125", "--broadcast"]),
])  # fmt: skip
def test_load_of_a_workload(name, options):
    workload = workloads.load_workload(name)
    command = WrLoad().command(make_load(workload, Server(7), 1, WrLoad()), "")
    assert command[-1 - len(options) :] == [*options, f"ws://127.0.0.1:7/{workload.path}"]
    assert "--status" not in command and "--length" not in command


def test_counts_open_websockets(server, monkeypatch):
    memory = iter([(0, 100), (0, 350)])
    monkeypatch.setattr(counts, "read_memory", lambda _: next(memory))
    monkeypatch.setattr(counts, "find_small_path", lambda _: "")
    monkeypatch.setattr(counts, "WEBSOCKETS", 25)
    assert counts.count_connection_bytes(Server(server.port)) == 250 * 1024 // 25
    assert server.connections == 26 and server.count == 26


def test_servers_need_the_variant():
    workload = workloads.load_workload("S2")
    lacks = {name: servers.load_kind(name).lacks(workload) for name in ("monkey", "nginx", "node-ws")}
    assert lacks == {"monkey": "", "nginx": "it has no variant +ws", "node-ws": ""}
