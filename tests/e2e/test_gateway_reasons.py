# SPDX-License-Identifier: Apache-2.0
"""What the log says of each response with which a server instead of its backend answers: the reason, and where a
directive sets a limit, its name and value."""

import pytest

from harness import build
from harness.backend import Backend, replay, stay_silent
from harness.fastcgi import STDOUT, Application, fastcgi_section, record
from harness.groups import backends, hold, serve_group  # noqa: F401
from harness.messages import lines, request, sized
from harness.proxies import TEXT, proxy_section

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in ("proxy", "fastcgi", "upstream")),
        reason="the preset has no plugins proxy, fastcgi and upstream",
    ),
]
OK = lines("HTTP/1.1 200 OK", TEXT, sized(b"hello")) + b"hello"
CHUNKED = lines("HTTP/1.1 200 OK", TEXT, "Transfer-Encoding: chunked")


def fields(count):
    return b"".join(b"X-%d: v\r\n" % i for i in range(count))


# what the backend sends (None: nothing, or not more), the keys of the section, the status (None: the response is
# broken off), and the line
PROXY = {
    "no response": (None, {"ResponseTimeout": "20ms"}, 504, r"it takes too long \(ResponseTimeout is 20 ms\)"),
    "no end of a head": (b"HTTP/1.1 200 OK\r\n", {"ResponseTimeout": "1s"}, 504, r"\(ResponseTimeout is 1 s\)"),
    "no response in all": (None, {"Deadline": "1500ms"}, 504, r"it takes too long \(Deadline is 1500 ms\)"),
    "no rest of a body": (OK[:-1], {"ReadTimeout": "20ms"}, None, r"it takes too long \(ReadTimeout is 20 ms\)"),
    "a long head": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2000, {"MaxResponseHead": "1K"}, 502,
                    r"the head of its response is too long \(MaxResponseHead is 1K\)"),
    "a long status line": (b"HTTP/1.1 200 " + b"x" * 2000, {"MaxResponseHead": 1025}, 502,
                           r"the head of its response is too long \(MaxResponseHead is 1025\)"),
    "many headers": (b"HTTP/1.1 200 OK\r\n" + fields(200), {}, 502, r"too many headers \(at most \d+\)"),
    "many interim responses": (lines("HTTP/1.1 103 Early Hints") * 17, {}, 502, r"too many interim .* \(at most 16\)"),
    "no status line": (b"hello\r\n", {}, 502, r'malformed: line 1 of its head, "hello": it is no status line'),
    "a bad length": (lines("HTTP/1.1 200 OK", "A: b", "Content-Length: x"), {}, 502,
                     r'malformed: line 3 of its head, "Content-Length: x": '),
    "a bad chunk": (CHUNKED + b"5x\r\n", {}, 502, "its response is malformed: the size of a chunk"),
    "many trailers": (CHUNKED + b"0\r\n" + fields(2000), {}, 502, "the lines before its chunks, or its trailers"),
    "an upgrade": (lines("HTTP/1.1 101 X", "Upgrade: x", "Connection: upgrade"), {}, 502, "it does not do the upgrade"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROXY)
def test_proxy(serve, name):
    sent, keys, status, line = PROXY[name]
    with Backend(replay(sent, end="wait") if sent else stay_silent) as backend:
        server = serve({"Workers": 1}, text=proxy_section(backend, keys))
        with server.connect() as client:
            client.send(request("/"))
            if status:
                assert client.response().status == status
            else:
                client.until(b"hell")
                client.assert_gone()
        server.wait_log(rf"proxy: http://127\.0\.0\.1:\d+: .*{line}")
        backend.errors = []  # it was reset


FASTCGI = {
    "no response": ("FASTCGI", b"", {"ResponseTimeout": "20ms"}, 504, r"\(ResponseTimeout is 20 ms\)"),
    "no response of SCGI": ("SCGI", b"", {"ResponseTimeout": "20ms"}, 504, r"\(ResponseTimeout is 20 ms\)"),
    "a long head": ("FASTCGI", record(STDOUT, b"X: " + b"x" * 2000), {"MaxResponseHead": "1K"}, 502,
                    r"\(MaxResponseHead is 1K\)"),
    "a long head of SCGI": ("SCGI", b"X: " + b"x" * 2000, {"MaxResponseHead": "1K"}, 502,
                            r"\(MaxResponseHead is 1K\)"),
    "a bad head of SCGI": ("SCGI", b"Content-Type: a/b\nx\n\n", {}, 502, 'malformed: line 2 of its head, "x": '),
}  # fmt: skip


@pytest.mark.parametrize("name", FASTCGI)
def test_fastcgi(serve, name):
    protocol, sent, keys, status, line = FASTCGI[name]

    def respond(peer):
        peer.request() if protocol == "FASTCGI" else peer.request_scgi()
        peer.send(sent)
        peer.exactly(1)

    with Application(respond) as application:
        server = serve(text=fastcgi_section(application.to, protocol, Match="/app", Split="Off", **keys))
        with server.connect() as client:
            assert client.ask("/app/x").status == status
        server.wait_log(rf"{protocol.lower()}: .*{line}")


# the keys of the group, what is asked while a server has a request, and the line
GROUPS_FULL = {
    "a full queue": ({"MaxConnections": 1, "Queue": 0},
                     r"have MaxConnections, and Queue is full \(they are 1 and 0\)"),
    "a wait": ({"MaxConnections": 1, "Queue": 5, "QueueTimeout": "20ms"}, r"within QueueTimeout \(it is 20 ms\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS_FULL)
def test_full_groups(serve_group, backends, name):  # noqa: F811
    keys, line = GROUPS_FULL[name]
    (one,) = backends(1, hold)
    server = serve_group([one], keys)
    with server.connect() as first, server.connect() as second:
        first.send(request("/"))
        one.wait_requests(1)
        assert second.ask("/").status == 503
        one.tell("go")
        assert first.response().status == 200
    server.wait_log(f"proxy: http://app: .*{line}")


# the lines of the group, and what the line says; Hold is over before one could be reached
GROUPS_WITHOUT_A_SERVER = {
    "states": (["127.0.0.1:1 down", "127.0.0.2:1 down", "127.0.0.3:1 drain"], "of 3, 2 set down, 1 set to drain"),
    "no weight": (["127.0.0.1:1 down", "127.0.0.2:1 weight=0"], "of 2, 1 set down, 1 with weight 0"),
    "one": (["127.0.0.1:1"], "its server could not be reached"),
    "three": (["127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1"], "none of its 3 servers could be reached"),
}


@pytest.mark.parametrize("name", GROUPS_WITHOUT_A_SERVER)
def test_groups_without_a_server(serve_group, name):  # noqa: F811
    servers, line = GROUPS_WITHOUT_A_SERVER[name]
    server = serve_group(servers, {"Hold": "20ms", "EjectAfter": 0})
    with server.connect() as client:
        assert client.ask("/").status == 503
    server.wait_log(f"proxy: http://app: no server of the group can be used: {line}")
