# SPDX-License-Identifier: Apache-2.0
"""wr-load on WebSockets, against servers that echo, broadcast, lie and close."""

import pytest

from test_load import LOAD, errors, load, usage
from websocket_server import WebSocketServer

pytestmark = pytest.mark.skipif(not LOAD.exists(), reason=f"{LOAD} is not built")


@pytest.fixture
def server():
    server = WebSocketServer()
    yield server
    server.stop()


@pytest.mark.parametrize("options", [
    ["-c", 1], ["-c", 7], ["-c", 8, "-t", 3], ["-c", 4, "-p", 16], ["-c", 4, "-r", 5000],
], ids=lambda options: " ".join(map(str, options)))  # fmt: skip
@pytest.mark.parametrize("path", ["/echo", "/two"])
def test_echoes_are_exact(server, options, path):
    result, said = load("-n", 500, *options, server.url(path))
    assert said == "" and errors(result) == {} and result["unanswered"] == 0
    assert result["answers"] == result["statuses"]["101"] == 500
    assert result["connections_opened"] == server.connections == options[1]
    assert server.count == 500 and [len(message) for message in server.messages] == [125]


@pytest.mark.parametrize("size, head", [(1, 2), (125, 2), (126, 4), (65535, 4)])
def test_messages_have_the_length_that_was_asked_for(server, size, head):
    result, _ = load("-n", 20, "-c", 2, "--message", size, server.url("/echo"))
    assert result["answers"] == 20 and [len(message) for message in server.messages] == [size]
    assert result["bytes"] == 20 * (size + head) and result["head_bytes"] == 20 * head


@pytest.mark.parametrize("pipeline", [1, 5])
def test_a_broadcast_counts_each_receipt(server, pipeline):
    result, _ = load("-c", 20, "-d", 1, "-p", pipeline, "--broadcast", server.url("/all"))
    assert errors(result) == {} and result["connections_opened"] == 20
    assert server.count - pipeline - 1 <= result["answers"] / 20 <= server.count  # the last ones may be under way
    assert server.count > pipeline and len(server.messages) == 1


@pytest.mark.parametrize("path, error, status", [
    ("/wrong", "hash", 1), ("/cut", "length", 1), ("/close", "read", 1), ("/end", "read", 1), ("/200", "malformed", 1),
])  # fmt: skip
def test_wrong_answers(server, path, error, status):
    result, said = load("-n", 4, "-c", 2, server.url(path), status=status)
    assert errors(result) == {error: 4}, said
    assert result["answers"] == (4 if error in ("hash", "length") else 0)


def test_no_answer(server):
    result, said = load("-n", 1, "--timeout", 0.3, server.url("/never"), status=1)
    assert errors(result) == {"timeout": 1} and "in time" in said


def test_a_lost_receiver_ends_a_broadcast(server):
    result, _ = load("-c", 3, "-d", 600, "--broadcast", server.url("/end"), status=1, timeout=120)
    assert result["answers"] == 0 and result["errors"]["read"] >= 1


@pytest.mark.parametrize("args, words", [
    (["--message", "5", "http://a"], "--message and --broadcast are for ws://"),
    (["--broadcast", "http://a"], "--message and --broadcast are for ws://"),
    (["--message", "0", "ws://a"], '--message "0" is not a number of bytes'),
    (["--close", "ws://a"], "a ws:// URL is given alone"),
    (["ws://a", "ws://a/b"], "a ws:// URL is given alone"),
    (["--broadcast", "-t", "2", "-c", "2", "ws://a"], "--broadcast is given without"),
])  # fmt: skip
def test_wrong_usage(args, words):
    assert words in usage(*args)
