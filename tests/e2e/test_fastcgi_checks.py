# SPDX-License-Identifier: Apache-2.0
"""Checks of groups by FastCGI: the ping and status paths of php-fpm, one that is full or dead, and other servers."""

import re

import pytest

from harness import build
from harness.fastcgi import CANT_MPX_CONN, OVERLOADED, STDERR, UNKNOWN_ROLE, Application, fastcgi_section, record
from harness.groups import GROUPS, group
from harness.php import PhpFpm, needs_php
from harness.server import await_true, free_port
from harness.services import reload

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugins"),
]

FILES = {
    "hello.php": b"<?php echo 'hello';",
    "gate.php": b"<?php touch(__DIR__ . '/begun'); while (!file_exists(__DIR__ . '/gate')) usleep(10000); echo 'open';",
}
PATHS = {"ping.path": "/ping", "pm.status_path": "/status"}
PING = {"Check": "FastCGI /ping", "CheckText": "pong", "CheckInterval": "100ms", "CheckTimeout": "30s"}


@pytest.fixture
def fpm(tmp_path):
    """Starts pools, which are ended with the test."""
    made = []

    def start(children=2, **pool):
        made.append(PhpFpm(tmp_path / f"fpm{len(made)}", children, **{**PATHS, **pool}))
        return made[-1]

    yield start
    for each in made:
        each.kill()


@pytest.fixture
def serve_checked(serve):
    def start(servers, **keys):
        config = {GROUPS: group([each.to for each in servers], **{"Balance": "First", **PING, **keys})}
        server = serve({"Workers": 1}, text=fastcgi_section("app", ResponseTimeout="120s"), files=FILES, config=config)
        server.groups = server.conf / GROUPS
        return server

    return start


def ask(server, path="/hello.php"):
    with server.connect(timeout=120) as client:
        got = client.ask(path)
        return got.status, got.body


def wait_down(server, to, reason):
    server.wait_log(re.escape(f"upstream app: {to} is down, and gets no requests: {reason}"))


def wait_up(server, to, count=1):
    server.wait_log(re.escape(f"upstream app: {to} is up, and gets requests again"), count)


# ── php-fpm ──


@needs_php
@pytest.mark.parametrize("address", ["unix", "tcp"])
def test_dead_and_back(fpm, serve_checked, address):
    """The pool is asked for its ping; requests go to the other one while it is dead."""
    pool = fpm(port=free_port() if address == "tcp" else None)
    with Application(answer_checks(b"other")) as other:
        server = serve_checked([pool, other])
        other.wait_requests(1)
        assert ask(server) == (200, b"hello")
        pool.kill()
        wait_down(server, pool.to, "Connection refused")
        assert ask(server) == (200, b"other")
        pool.socket.unlink(missing_ok=True)
        pool.start()
        wait_up(server, pool.to)
        assert ask(server) == (200, b"hello")


STATES = {
    "another text": ({"CheckText": "pang"}, "GET /ping: the text was not found"),
    "no such path": ({"Check": "FastCGI /nothing"}, "GET /nothing: 404"),
    "no such text": ({"Check": "FastCGI /status?xml"}, "GET /status?xml: the text was not found"),
}


@needs_php
@pytest.mark.parametrize("name", STATES)
def test_failing_checks_and_a_reload(fpm, serve_checked, name):
    """The next configuration asks as it should."""
    pool = fpm()
    keys, reason = STATES[name]
    server = serve_checked([pool], **keys)
    wait_down(server, pool.to, reason)
    assert ask(server)[0] == 503
    right = {**PING, "Check": "FastCGI /status?xml", "CheckText": "<pool>www</pool>"}
    server.groups.write_text(group([pool.to], **right))
    reload(server)
    wait_up(server, pool.to)
    assert ask(server) == (200, b"hello")


@needs_php
def test_full_pool(fpm, serve_checked):
    """A process responds to pings, as to all requests: a pool that is full is down, until a process is free."""
    pool = fpm(1)
    server = serve_checked([pool], CheckTimeout="5s")
    with server.connect(timeout=120) as client:
        client.send(b"GET /gate.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_down(server, pool.to, "no response in 5s")
        assert ask(server)[0] == 503
        (server.root / "gate").write_text("")
        got = client.response()
        assert (got.status, got.body) == (200, b"open")
    wait_up(server, pool.to)
    await_true(lambda: ask(server) == (200, b"hello"), 60, "a response")


@needs_php
def test_full_pool_with_a_port_for_its_status(fpm, serve_checked):
    """pm.status_listen has a separate process, which responds while all others are busy."""
    status = free_port()
    pool = fpm(1, port=free_port(), **{"pm.status_listen": f"127.0.0.1:{status}"})
    keys = {**PING, "Check": "FastCGI /status?xml", "CheckText": "</status>", "CheckPort": status}
    server = serve_checked([pool], **keys)
    with server.connect(timeout=120) as client:
        client.send(b"GET /gate.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await_true((server.root / "begun").exists, 60, "a request that keeps the process")
        server.groups.write_text(group([pool.to], **{**keys, "CheckText": "<idle-processes>1</idle-processes>"}))
        reload(server)
        wait_down(server, pool.to, "GET /status?xml: the text was not found")
        (server.root / "gate").write_text("")
        assert client.response().body == b"open"
    wait_up(server, pool.to)
    assert ask(server) == (200, b"hello")


def count_down(server):
    return server.log.count("is down, and gets no requests")


# ── other servers ──


def answer_checks(body):
    """Responds to checks with "pong", and to other requests with `body`."""

    def script(peer):
        got = peer.request()
        peer.respond(b"pong" if got.params["SCRIPT_NAME"] == "/ping" else body)

    return script


def test_the_request(serve_checked):
    with Application(answer_checks(b"app")) as application:
        keys = {"Check": "FastCGI /ping?a=b", "CheckHost": "app.test:1", "CheckHeader": ["X-Token: a b"]}
        server = serve_checked([application], **keys)
        application.wait_requests(3)
        got = application.requests[0]
        assert (got.body, got.flags) == (b"", 0)
        wanted = {
            "REQUEST_METHOD": "GET",
            "REQUEST_URI": "/ping?a=b",
            "QUERY_STRING": "a=b",
            "SCRIPT_NAME": "/ping",
            "SCRIPT_FILENAME": "/ping",
            "SERVER_NAME": "app.test",
            "HTTP_HOST": "app.test:1",
            "HTTP_X_TOKEN": "a b",
        }
        assert wanted.items() <= got.params.items()
        assert ask(server) == (200, b"app") and count_down(server) == 0


def flood(peer):
    while True:
        peer.send(record(STDERR, b"x" * 65528))


FAILURES = {
    "overloaded": (lambda peer: peer.end(OVERLOADED), "the server is overloaded"),
    "one request": (lambda peer: peer.end(CANT_MPX_CONN), "the server is overloaded"),
    "role": (lambda peer: peer.end(UNKNOWN_ROLE), "the server does not take such requests"),
    "http": (lambda peer: peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "the response is malformed"),
    "closes": (lambda peer: None, "the connection was closed before the response was complete"),
    "cut": (lambda peer: peer.send(record(6, b"A: b\n\npong")), "the connection was closed before the response"),
    "silent": (lambda peer: peer.wait_end(), "no response in 2s"),
    "status": (lambda peer: peer.respond(b"", b"Status: 500\r\n\r\n"), "GET /ping: 500"),
    "flood": (flood, "the server sends more than the response"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_check_that_fails(serve_checked, name):
    healthy = answer_checks(b"app")
    scripts = [lambda peer: (peer.request(), FAILURES[name][0](peer))]
    with Application(lambda peer: scripts[0](peer)) as application:
        server = serve_checked([application], CheckTimeout="2s")
        wait_down(server, application.to, FAILURES[name][1])
        scripts[0] = healthy
        wait_up(server, application.to)
        await_true(lambda: ask(server) == (200, b"app"), 60, "a response")
