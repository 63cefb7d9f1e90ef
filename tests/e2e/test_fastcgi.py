# SPDX-License-Identifier: Apache-2.0
"""The plugin fastcgi: requests to applications of FastCGI and SCGI, their responses, and which paths are scripts."""

import contextlib
import os
import re
import socket
import threading

import pytest

from harness import build
from harness.fastcgi import (
    CANT_MPX_CONN,
    END,
    HEAD,
    OVERLOADED,
    STDERR,
    STDIN,
    STDOUT,
    UNKNOWN_ROLE,
    Application,
    answer,
    fastcgi_section,
    record,
)
from harness.failing_memory import fail_each, only_sanitized
from harness.few_descriptors import fail_each_descriptor_of_new
from harness.groups import GROUPS, group
from harness.messages import chunked
from harness.scripts import HELLO, write_scripts
from harness.server import await_true, run, section, write_config
from harness.services import CONTROL_THREAD, reload

pytestmark = pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugins")

FILES = {
    "index.php": b"<?php source",
    "a.php": b"<?php source",
    "file.txt": b"a file",
    "foo.jpg": b"\xff\xd8",
    "dir/index.php": b"<?php source",
    "dir/b.txt": b"b",
    "plain/c.txt": b"c",
}
WORDPRESS = {"TryFiles": "$path $path/index.php /index.php"}


def echo(peer):
    """Answers with what the script is."""
    while True:
        got = peer.request()
        names = ("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "CONTENT_LENGTH")
        peer.respond("\n".join(got.params.get(name, "-") for name in names).encode())


def echo_scgi(peer):
    got = peer.request_scgi()
    peer.send(HEAD + f"{got.params['SCRIPT_NAME']}\n{got.params['CONTENT_LENGTH']}".encode())


@pytest.fixture
def php(serve):
    """A server that passes scripts to an application."""

    def start(application, keys=None, settings=None, files=None, name="FASTCGI", **rest):
        text = fastcgi_section(application, name, **(keys or {}))
        return serve({"Workers": 1, **(settings or {})}, text=text, files=files or FILES, **rest)

    return start


def ask(php, script, target="/a.php", *fields, keys=None, **rest):
    """What the client gets of one script."""
    with Application(script) as application:
        with php(application, keys).connect() as client:
            return client.ask(target, *fields, **rest)


# ── there and back ──


def test_request_and_response(php):
    head = b"Status: 201 Made\r\nX-Own: 1\r\nContent-Type: text/html\r\n\r\n"
    with Application(answer(b"hello", head)) as application:
        server = php(application, {"Params": "APP_ENV test-$host"})
        with server.connect() as client:
            got = client.ask("/a.php/info/x%20y?q=1%202", "X-Mine: 2", "Proxy: http://evil/", "X_Bad: 1")
        assert (got.status, got.body, got["X-Own"]) == (201, b"hello", "1")
        params = application.requests[0].params
    wanted = {
        "SCRIPT_NAME": "/a.php",
        "PATH_INFO": "/info/x y",
        "SCRIPT_FILENAME": str(server.root / "a.php"),
        "DOCUMENT_ROOT": str(server.root),
        "REQUEST_URI": "/a.php/info/x%20y?q=1%202",
        "QUERY_STRING": "q=1%202",
        "REQUEST_METHOD": "GET",
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_PROTOCOL": "HTTP/2.0" if build.PROTOCOL == "h2c" else "HTTP/1.1",
        "REDIRECT_STATUS": "200",
        "HTTP_X_MINE": "2",
        "APP_ENV": "test-localhost",
    }
    assert {name: params.get(name) for name in wanted} == wanted
    assert not {"HTTP_PROXY", "HTTP_X_BAD", "CONTENT_LENGTH", "HTTP_AUTHORIZATION"} & params.keys()


@pytest.mark.parametrize("size", [0, 1, 1000, 65527, 65528, 65529, 300000])
def test_body(php, size):
    def script(peer):
        got = peer.request()
        peer.send(record(STDOUT, HEAD))
        for at in range(0, len(got.body), 60000):
            peer.send(record(STDOUT, got.body[at : at + 60000], padding=at % 256))
        peer.end()

    body = os.urandom(size)
    for keys in ({}, {"SpoolRequest": "Off"}):
        with Application(script) as application:
            with php(application, keys).connect() as client:
                got = client.ask("/a.php", method="POST", body=body)
                assert (got.status, got.body) == (200, body)
            assert application.requests[0].params.get("CONTENT_LENGTH") == (str(size) if size else None)


@pytest.mark.parametrize("name", ["FASTCGI", "SCGI"])
def test_slow_upload_holds_no_process(php, name):
    """SpoolRequest is On: the application is asked once the body is there."""
    script = echo if name == "FASTCGI" else echo_scgi
    with Application(script) as application:
        server = php(application, name=name)
        with server.connect() as client, server.connect() as other:
            client.send(b"POST /a.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n" + b"x" * 1000)
            assert other.ask("/a.php").status == 200  # so those bytes were looked at
            assert [got.body for got in application.requests] == [b""] and application.accepted == 1
            client.send(b"y" * 1000)
            assert client.response("POST").status == 200
        assert application.requests[1].body == b"x" * 1000 + b"y" * 1000


def test_upload_that_is_streamed(php):
    def script(peer):
        peer.record(), peer.record(), peer.record()  # BEGIN_REQUEST, and the variables
        kind, first = peer.record()
        peer.application.first = kind, first
        peer.application.event("begun").set()
        while peer.record()[1]:
            pass
        peer.respond(b"done")

    with Application(script) as application:
        with php(application, {"SpoolRequest": "Off"}).connect() as client:
            client.send(b"POST /a.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n" + b"x" * 1000)
            assert application.event("begun").wait(60)
            assert application.first == (STDIN, b"x" * 1000)
            client.send(b"y" * 1000)
            assert client.response("POST").body == b"done"


@pytest.mark.parametrize("name", ["FASTCGI", "SCGI"])
@pytest.mark.parametrize("spool", ["On", "Off"])
def test_chunked_body_gets_its_length(php, spool, name):
    script = echo if name == "FASTCGI" else echo_scgi
    with Application(script) as application:
        with php(application, {"SpoolRequest": spool}, name=name).connect() as client:
            client.send(b"POST /a.php HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            client.send(chunked(b"x" * 1000, b"y" * 234))
            assert client.response("POST").body.endswith(b"1234")
        assert application.requests[0].body == b"x" * 1000 + b"y" * 234


def test_head_and_statuses_without_body(php):
    with Application(answer(b"", b"Status: 204\r\nX: 1\r\n\r\n")) as application:
        with php(application).connect() as client:
            assert client.ask("/a.php").status == 204
            assert client.ask("/a.php", method="HEAD").status == 204
            assert client.ask("/a.php").status == 204


def test_head_of_an_unknown_length(php):
    with Application(answer(b"", HEAD)) as application:
        with php(application).connect() as client:
            for _ in range(2):
                got = client.ask("/a.php", method="HEAD")
                assert (got.status, got.length) == (200, None)


def test_redirect_of_application(php):
    got = ask(php, answer(b"", b"Location: /elsewhere\n\n"))
    assert (got.status, got["Location"]) == (302, "/elsewhere")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 100])
def test_records_in_pieces(php, size):
    def script(peer):
        peer.request()
        data = record(STDERR, b"oh", padding=3) + record(STDOUT, HEAD[:5], padding=255)
        data += record(STDOUT, HEAD[5:] + b"ab")
        data += record(STDOUT, b"c" * 300, padding=1) + record(STDERR, b"no\n") + record(STDOUT)
        peer.send(data + record(END, bytes(8), padding=5), size)

    got = ask(php, script)
    assert (got.status, got.body) == (200, b"ab" + b"c" * 300)


NO_HEAD = "its output does not begin with header fields and an empty line"
ENDED = "its response has ended before its head was complete"
FOLDED = "it is folded, or begins with a blank"
CODING = "Transfer-Encoding is the server's"

# What an application sends, and what the client and the log are told.
GARBAGE = {
    "no record": (b"HTTP/1.1 200 OK\r\n\r\n" + bytes(100), "it sends a record of another version than 1"),
    "version": (record(STDOUT, HEAD, version=2), "it sends a record of another version than 1"),
    "request": (record(STDOUT, HEAD, request=2), "it sends a record of another request"),
    "type": (record(STDIN, HEAD), "it sends a record of a type that no application sends"),
    "early end": (record(STDOUT, HEAD[:7]) + record(END, bytes(8)), ENDED),
    "nothing": (record(END, bytes(8)), ENDED),
    "short end": (record(STDOUT, HEAD) + record(END, bytes(7)), "its FCGI_END_REQUEST is too short"),
    "status": (record(END, bytes(4) + b"\x09\0\0\0"), "its FCGI_END_REQUEST has an unknown status"),
    "no head": (record(STDOUT, b"hello\n\n") + record(END, bytes(8)), NO_HEAD),
    "coding": (record(STDOUT, b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n") + record(END, bytes(8)), CODING),
    "folded": (record(STDOUT, b"X: 1\r\n 2\r\n\r\n") + record(END, bytes(8)), FOLDED),
    "length": (record(STDOUT, b"Content-Length: x\r\n\r\n") + record(END, bytes(8)), "its Content-Length is no number"),
    "long head": (record(STDOUT, b"X: " + b"x" * 40000), "the head of its response is too long"),
    "end of the connection": (b"", "it has closed the connection before FCGI_END_REQUEST"),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage(php, what):
    """The client and the log are told what is wrong."""
    sent, sentence = GARBAGE[what]

    def script(peer):
        peer.request()
        peer.send(sent)

    with Application(script) as application:
        server = php(application)
        with server.connect() as client:
            got = client.ask("/a.php")
            assert got.status == 502 and "error=http_" in got["Proxy-Status"], got
            assert what == "long head" or f'details="{sentence}' in got["Proxy-Status"]
        server.wait_log(rf"fastcgi: 127\.0\.0\.1:\d+: (its response is malformed: line . of its head, .*: )?{sentence}")


def test_body_that_is_cut(php):
    def script(peer):
        peer.request()
        peer.send(record(STDOUT, b"Content-Length: 100\r\n\r\nhello"))

    with Application(script) as application:
        server = php(application)
        with server.connect() as client:
            client.send(b"GET /a.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"hello" in client.rest()
        server.wait_log("closed the connection before FCGI_END_REQUEST")


@pytest.mark.parametrize("status, wanted", [(OVERLOADED, 503), (CANT_MPX_CONN, 503), (UNKNOWN_ROLE, 502)])
def test_refused(php, status, wanted):
    def script(peer):
        peer.request()
        peer.end(status)

    assert ask(php, script).status == wanted


def test_overloaded_server_of_a_group(serve):
    def refuse(peer):
        peer.request()
        peer.end(OVERLOADED)

    with Application(refuse) as first, Application(answer(b"second")) as second:
        config = {GROUPS: group([first.address, second.address], Balance="First")}
        server = serve({"Workers": 1}, text=fastcgi_section("app"), files=FILES, config=config)
        with server.connect() as client:
            for _ in range(4):  # POST as well: nothing was done of it
                assert client.ask("/a.php", method="POST", body=b"x").body == b"second"
        assert first.requests and len(second.requests) == 4


def test_trace(php):
    """The application would send cookies and logins back."""
    with Application(answer()) as application:
        with php(application).connect() as client:
            got = client.ask("/a.php", "Cookie: secret", method="TRACE")
            assert got.status == 405 and "TRACE" not in got["Allow"]
            assert client.ask("/a.php", method="OPTIONS").status == 200
        assert len(application.requests) == 1


def test_error_output(php):
    def script(peer):
        peer.request()
        peer.send(record(STDERR, b"PHP Notice: \x1b[31m\r\nsecond ") + record(STDERR, b"line"))
        peer.respond(b"ok")

    with Application(script) as application:
        server = php(application)
        with server.connect() as client:
            assert client.ask("/a.php").body == b"ok"
        server.wait_log(r"fastcgi: \S+/a\.php: PHP Notice: \\x1b\[31m.*host: localhost")
        server.wait_log(r"fastcgi: \S+/a\.php: second line")


def test_error_output_of_a_connection_that_ends(php):
    """The request goes to a new connection; the last line on the one before has no end."""

    def script(peer):
        peer.request()
        peer.respond(b"ok")
        if peer is peer.application.peers[0]:
            peer.request()
            peer.send(record(STDERR, b"one\nthe reason"))
        else:
            peer.wait_end()

    with Application(script) as application:
        server = php(application, {"KeepAlive": 4, "KeepAliveTimeout": "60s"})
        with server.connect() as client:
            for _ in range(2):
                assert client.ask("/a.php").body == b"ok"
        assert (application.accepted, len(application.requests)) == (2, 3)
        server.wait_log(r"fastcgi: \S+/a\.php: one")
        server.wait_log(r"fastcgi: \S+/a\.php: the reason")


def test_many_lines_of_error_output(php):
    def script(peer):
        peer.request()
        peer.send(b"".join(record(STDERR, b"line %d\n" % n) for n in range(1000)))
        peer.respond(b"ok")

    with Application(script) as application:
        server = php(application)
        with server.connect() as client:
            assert client.ask("/a.php").body == b"ok"
        server.wait_log(r"a\.php: line \d+ \(more of these are only counted for 10 s\)")
        assert 20 < len(re.findall(r"a\.php: line \d+", server.log)) < 200  # 10 KB


# ── connections ──


def test_connections_are_not_kept(php):
    with Application(answer()) as application:
        with php(application).connect() as client:
            for _ in range(3):
                assert client.ask("/a.php").body == b"hello"
        assert application.accepted == 3 and not any(got.flags for got in application.requests)


def test_kept_connection(php):
    with Application(answer()) as application:
        with php(application, {"KeepAlive": 4, "KeepAliveTimeout": "60s"}).connect() as client:
            for _ in range(5):
                assert client.ask("/a.php").body == b"hello"
        assert application.accepted == 1 and all(got.flags == 1 for got in application.requests)


@pytest.mark.parametrize("begun", [b"", HEAD[:-1]])
def test_retry_of_a_kept_connection(php, begun):
    """The application ends it with the second request, before the end of the head of its response."""

    def script(peer):
        peer.request()
        peer.respond(b"hello")
        if peer is peer.application.peers[0]:
            peer.request()
            peer.send(record(STDOUT, begun) if begun else b"")
        else:
            peer.wait_end()

    with Application(script) as application:
        with php(application, {"KeepAlive": 4, "KeepAliveTimeout": "60s"}).connect() as client:
            for _ in range(2):
                assert client.ask("/a.php").body == b"hello"
        assert (application.accepted, len(application.requests)) == (2, 3)


def test_connection_with_excess_is_not_kept(php):
    def script(peer):
        while True:
            peer.request()
            peer.send(record(STDOUT, HEAD + b"hello") + record(END, bytes(8)) + record(STDOUT, b"forged"))

    with Application(script) as application:
        with php(application, {"KeepAlive": 4}).connect() as client:
            for _ in range(3):
                assert client.ask("/a.php").body == b"hello"
        assert application.accepted == 3


@pytest.mark.parametrize("begun", [False, True])
def test_client_leaves(php, begun):
    def script(peer):
        peer.request()
        if begun:
            peer.send(record(STDOUT, HEAD + b"hello"))
        peer.wait_end()

    with Application(script) as application:
        server = php(application)
        client = server.connect()
        client.send(b"GET /a.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
        application.wait_requests(1)
        if begun:
            client.until(b"hello")
        client.close()
        await_true(lambda: application.peers[0].has_aborted, 30, "the abort record")


def test_job_without_client(php):
    def script(peer):
        peer.request()
        application.event("go").wait(60)
        peer.respond(b"x" * 50000)
        application.event("done").set()

    with Application(script) as application:
        server = php(application, {"OnClientLeave": "Finish"})
        client = server.connect()
        client.send(b"GET /a.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
        application.wait_requests(1)
        client.close()
        application.event("go").set()
        assert application.event("done").wait(60)
        assert not application.peers[0].has_aborted


def test_timeout(php):
    def script(peer):
        peer.request()
        peer.wait_end()

    with Application(script) as application:
        server = php(application, {"ResponseTimeout": "100ms"})
        with server.connect() as client:
            assert client.ask("/a.php").status == 504
        server.wait_log(r"it takes too long \(ResponseTimeout is .*\): see what it waits for .*, or raise Resp")
        await_true(lambda: application.peers[0].has_aborted, 30, "the abort record")


def write_errors(peer, pause):
    """Sends the head and a first byte, and then error output until the server under test closes the connection."""
    peer.request()
    peer.send(record(STDOUT, HEAD + b"a"))
    while True:
        peer.send(record(STDERR, b"x" * 60000))
        peer.application.event("never").wait(pause)


@pytest.mark.parametrize("pause", [0, 0.02], ids=["flood", "trickle"])
def test_error_output_is_no_body(php, pause):
    """A server that sends no byte of the body has ReadTimeout, whatever else it sends; and others have their turn."""
    with Application(lambda peer: write_errors(peer, pause)) as application:
        server = php(application, {"ReadTimeout": "300ms"})
        with server.connect() as client:
            client.send(b"GET /a.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.until(b"1\r\na\r\n")
            with server.connect() as other:
                assert other.ask("/file.txt").body == b"a file"
            client.rest()
        server.wait_log("it takes too long")


def test_cgi_comes_first(serve, tmp_path):
    """A front controller for all paths leaves those of [CGI] to it."""
    root = write_scripts(tmp_path / "root", {"cgi-bin/run": HELLO, "index.php": "<?php\n"})
    with Application(answer(b"php")) as application:
        text = fastcgi_section(application, TryFiles="$path /index.php") + section("CGI", {"Match": "/cgi-bin"})
        server = serve({"Workers": 1}, root=root, text=text)
        server.baseline += 2  # sockets of the starter
        with server.connect() as client:
            assert client.ask("/cgi-bin/run").body == b"hello\n"
            assert client.ask("/else").body == b"php"


# ── which paths are scripts ──

PATHS = [
    ("/a.php", 200, "/a.php"),
    ("/a.php/x", 200, "/a.php"),
    ("/missing.php", 404, None),
    ("/missing.php/a.php", 404, None),
    ("/foo.jpg/x.php", 404, None),
    ("/foo.jpg/a.php", 404, None),
    ("/a.php%00", 400, None),
    ("/a.php%00.txt", 400, None),
    ("/a.PHP", 404, None),
    ("/a.php.", 404, None),
    ("/a.php%20", 404, None),
    ("/a.php::$DATA", 404, None),
    ("/a.%70hp", 200, "/a.php"),
    ("/a.p%C4%B1hp", 404, None),
    ("/a.%EF%BD%90hp", 404, None),
    ("/dir/..;/a.php", 404, None),
    ("/dir/%2e%2e/a.php", 200, "/a.php"),
    ("/%2e%2e/%2e%2e/etc/x.php", 404, None),
    ("/a.php%0Ax.php", 404, None),
    ("/a.php/%0Ax", 200, "/a.php"),
    ("/.php", 404, None),
    ("/", 200, "/index.php"),
    ("/dir/", 200, "/dir/index.php"),
    ("/dir", 301, None),
    ("/file.txt", 200, None),
]


@pytest.mark.parametrize("target, status, script", PATHS)
def test_paths(php, target, status, script):
    with Application(echo) as application:
        with php(application).connect() as client:
            got = client.ask(target)
        assert got.status == status
        assert [each.params["SCRIPT_NAME"] for each in application.requests] == ([script] if script else [])
        assert b"<?php" not in got.body


FRONT = [
    ("/", "/index.php"),
    ("/a.php", "/a.php"),
    ("/a.php/info", "/a.php"),
    ("/2026/11/a-post/", "/index.php"),
    ("/missing.php", "/index.php"),
    ("/foo.jpg/x.php", "/index.php"),
    ("/dir/", "/dir/index.php"),
    ("/plain/", "/index.php"),
    ("/a.PHP", "/index.php"),
    ("/file.txt", None),
    ("/foo.jpg", None),
]


@pytest.mark.parametrize("target, script", FRONT)
def test_front_controller(php, target, script):
    with Application(echo) as application:
        with php(application, WORDPRESS).connect() as client:
            got = client.ask(target + "?q=1")
            assert got.status == 200
            assert not script or client.ask(target, method="POST", body=b"x").status == 200
        assert {each.params["SCRIPT_NAME"] for each in application.requests} == ({script} if script else set())
        if script:
            assert application.requests[0].params["REQUEST_URI"] == target + "?q=1"


def test_folder_of_front_controller_is_redirected(php):
    with Application(echo) as application:
        with php(application, WORDPRESS).connect() as client:
            got = client.ask("/dir?x=1")
            assert (got.status, got["Location"]) == (301, "/dir/?x=1")
            assert client.ask("/dir", method="POST", body=b"x").status == 308
        assert not application.requests


def test_status_of_tries(php):
    with Application(echo) as application:
        with php(application, {"TryFiles": "$path =410"}).connect() as client:
            assert client.ask("/nowhere").status == 410
            assert client.ask("/nowhere.php").status == 410
            assert client.ask("/a.php").status == 200
            assert client.ask("/file.txt").body == b"a file"


def test_links(php, tmp_path):
    outside = tmp_path / "outside.php"
    outside.write_bytes(b"<?php secret")
    with Application(echo) as application:
        server = php(application)
        (server.root / "out.php").symlink_to(outside)
        (server.root / "text").symlink_to("a.php")
        with server.connect() as client:
            assert client.ask("/out.php").status in (403, 404)
            assert client.ask("/text").status == 404
        assert not application.requests


def test_release_by_link(serve, tmp_path):
    for release in "12":
        (tmp_path / release).mkdir()
        (tmp_path / release / "a.php").write_text("x")
    current = tmp_path / "current"
    current.symlink_to("1")

    def ask_for_script():
        with server.connect() as other:
            assert other.ask("/a.php").status == 200
        return application.requests[-1].params["SCRIPT_FILENAME"]

    with Application(answer()) as application:
        server = serve({"Workers": 1}, text=fastcgi_section(application), root=current)
        with server.connect() as client:
            assert client.ask("/a.php").status == 200
        (tmp_path / "new").symlink_to("2")
        (tmp_path / "new").rename(current)
        await_true(lambda: ask_for_script() == str(tmp_path / "2" / "a.php"), 30, "the new release", 0.1)


def test_remote_root(php):
    with Application(echo) as application:
        with php(application, {"RemoteRoot": "/srv/app/"}).connect() as client:
            assert client.ask("/x/missing.php/info").status == 200
            assert client.ask("/file.txt").body == b"a file"
        params = application.requests[0].params
        assert params["SCRIPT_FILENAME"] == "/srv/app/x/missing.php"
        assert (params["DOCUMENT_ROOT"], params["PATH_INFO"]) == ("/srv/app", "/info")


@pytest.mark.parametrize("keys, wanted", [({}, None), ({"PassAuthorization": "On"}, "Bearer x")])
def test_authorization(php, keys, wanted):
    with Application(answer()) as application:
        with php(application, keys).connect() as client:
            client.ask("/a.php", "Authorization: Bearer x")
        assert application.requests[0].params.get("HTTP_AUTHORIZATION") == wanted


# ── responses that the server replaces ──


def test_send_file(php, tmp_path):
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "x.bin").write_bytes(b"private")
    head = f"X-Sendfile: {folder}/x.bin\r\nContent-Type: a/b\r\n\r\n".encode()
    got = ask(php, answer(b"no", head), keys={"SendFile": folder})
    assert (got.status, got.body, got["Content-Type"], got["X-Sendfile"]) == (200, b"private", "a/b", None)
    got = ask(php, answer(b"no", head))
    assert (got.body, got["X-Sendfile"]) == (b"no", None)


def test_intercepted_error(php):
    got = ask(php, answer(b"trace", b"Status: 500\r\n\r\n"), keys={"InterceptErrors": "500"})
    assert got.status == 500 and b"trace" not in got.body


def test_long_response_of_slow_client(php):
    def script(peer):
        peer.request()
        peer.send(record(STDOUT, HEAD))
        for _ in range(200):
            peer.send(record(STDOUT, b"x" * 60000))
        peer.end()
        application.event("done").set()

    with Application(script) as application:
        with php(application).connect() as client:
            client.send(b"GET /a.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert application.event("done").wait(60)  # the client has read nothing yet
            assert len(client.response().body) == 200 * 60000


# ── SCGI ──


def scgi_echo(peer):
    got = peer.request_scgi()
    names = ("SCRIPT_NAME", "PATH_INFO", "REQUEST_METHOD")
    peer.send(HEAD + "\n".join(got.params.get(name, "-") for name in names).encode() + b"\n" + got.body)


def test_scgi(php):
    with Application(scgi_echo) as application:
        server = php(application, {"Match": "/app"}, name="SCGI")
        with server.connect() as client:
            assert client.ask("/app/x?y").body == b"/app\n/x\nGET\n"
            assert client.ask("/app", method="POST", body=b"z" * 100000).body == b"/app\n-\nPOST\n" + b"z" * 100000
            assert client.ask("/file.txt").body == b"a file"
        assert application.requests[0].params["CONTENT_LENGTH"] == "0"


def test_sources_of_an_application(php):
    """The paths of Match, their copies, and links to them; but not the files of a host that an application has."""
    names = ("app.py", "app.py.bak", "app.py.gz", "app.py~", "sub/b.py.old", ".app.py.swp")
    files = {name: b"import secret" for name in names} | {"file.txt": b"a file"}
    with Application(scgi_echo) as application:
        server = php(application, {"Match": "*.py"}, name="SCGI", files=files, host={"SymLink": "Inside"})
        (server.root / "link.txt").symlink_to("app.py")
        (server.root / "good.txt").symlink_to("file.txt")
        with server.connect() as client:
            assert client.ask("/app.py").body == b"\n/app.py\nGET\n"
            for target in (*(f"/{name}" for name in names[1:]), "/link.txt"):
                got = client.ask(target)
                assert got.status in (403, 404) and b"secret" not in got.body, target
            assert client.ask("/file.txt").body == client.ask("/good.txt").body == b"a file"


def test_file_of_an_application_for_all_paths(php):
    """It may have this server send files of the document root."""

    def script(peer):
        peer.request_scgi()
        peer.send(b"Content-Type: a/b\r\nX-Sendfile: %s\r\n\r\n" % bytes(server.root / "file.txt"))

    with Application(script) as application:
        server = php(application, {"SendFile": "/"}, name="SCGI", files={"file.txt": b"a file"})
        with server.connect() as client:
            assert client.ask("/file.txt").body == b"a file"


def test_scgi_with_length(php):
    def script(peer):
        peer.request_scgi()
        peer.send(b"Content-Type: a/b\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300000)

    with Application(script) as application:
        with php(application, name="SCGI").connect() as client:
            assert client.ask("/").body == b"x" * 300000


def test_scgi_that_ends_early(php):
    def script(peer):
        peer.request_scgi()
        peer.send(b"Content-Ty")

    with Application(script) as application:
        with php(application, name="SCGI").connect() as client:
            assert client.ask("/").status == 502


# ── failures ──


def test_missing_socket(php, tmp_path):
    path = tmp_path / "no.sock"
    server = php(f"unix:{path}")
    server.wait_log(f"the socket {path} does not exist now: requests get 502")
    with server.connect() as client:
        got = client.ask("/a.php")
        assert got.status == 502 and "error=connection_refused" in got["Proxy-Status"]
        server.wait_log(rf"fastcgi: unix:{path}: .*: start the server that makes this socket, or correct To")
        with Application(answer(), path):
            assert client.ask("/a.php").status == 200


def test_full_backlog(php, tmp_path):
    """The kernel refuses a Unix socket whose queue is full: it is tried again until ConnectTimeout."""
    path = tmp_path / "full.sock"
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as stack:
        listener.bind(str(path))
        listener.listen(0)
        with pytest.raises(BlockingIOError):
            while True:
                client = stack.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(str(path))
        server = php(f"unix:{path}", {"ConnectTimeout": "200ms"})
        with server.connect() as client:
            got = client.ask("/a.php")
        assert got.status == 504 and "error=connection_timeout" in got["Proxy-Status"]
        server.wait_log(rf"fastcgi: unix:{path}: .*: all of its processes may be busy .*pm.max_children")


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_socket_of_another_user(php, tmp_path):
    """A warning, since it may be changed later; and a sentence for each request."""
    path = tmp_path / "other.sock"
    with Application(answer(), path):
        path.chmod(0o600)
        for folder in (tmp_path, *tmp_path.parents):
            folder.chmod(folder.stat().st_mode | 0o11)
        server = php(f"unix:{path}", settings={"User": "nobody"})
        server.wait_log(rf"sites/default:\d+:\d+: warning: .*{path}")
        with server.connect() as client:
            got = client.ask("/a.php")
            assert got.status == 502 and "Proxy-Status" in dict(got.fields)
        server.wait_log(rf"fastcgi: unix:{path}: .*: let the user of this server write to the socket")


def test_socket_that_is_no_socket(tmp_path, site_root):
    (tmp_path / "file").touch()
    conf = write_config(tmp_path / "conf", site_root, text=fastcgi_section(f"unix:{tmp_path}/file"))
    checked = run("-t", "-c", conf)
    assert checked.returncode == 0 and f"the socket {tmp_path}/file is no socket" in checked.stdout + checked.stderr


MISTAKES = {
    "split": ("extensions with their dots", {"Split": "php"}),
    "to": ("needs a port", {"To": "nobody"}),
    "address": ("is no address of a server", {"To": "127.0.0.1:x"}),
    "index": ("without a folder", {"Index": "a/b.php"}),
    "tries": ("Split has no such extension", {"TryFiles": "$path /index.html"}),
    "status": ("the last entry", {"TryFiles": "=404 /index.php"}),
    "entry": ("each entry is", {"TryFiles": "$uri /index.php"}),
    "other index": ("Split has no such extension", {"Index": "index.html"}),
    "dots": ("no entry has a segment", {"TryFiles": "$path/../index.php"}),
    "more dots": ("no entry has a segment", {"TryFiles": "/a/./index.php"}),
    "url": ("no URL; HTTP is for [PROXY]", {"To": "http://127.0.0.1:9000"}),
    "off": ("no file can be tried", {"Split": "Off", "TryFiles": "$path"}),
    "off with a script": ("no file can be tried", {"Split": "Off", "TryFiles": "$path /index.php"}),
    "path": ("a socket's path begins with unix", {"To": "/run/php.sock"}),
    "nginx": ('unknown key "fastcgi_pass" in [FASTCGI]; did you mean "To"?', {"fastcgi_pass": "unix:/run/php.sock"}),
    "root": ("an absolute path", {"RemoteRoot": "srv"}),
    "params": ("a name", {"Params": "1X y"}),
    "missing": ("To is missing", {"To": None}),
    "children": ("Children is missing", {"To": None, "Spawn": "/bin/true"}),
    "spawn": ("there is no Spawn", {"Children": 2}),
    "both": ("one of both is enough", {"Spawn": "/bin/true", "Children": 2}),
    "program": ('there is no program "nothing-like-it"', {"To": None, "Spawn": "nothing-like-it", "Children": 2}),
    "missing program": ('no program "/usr/bin/none"', {"To": None, "Spawn": "/usr/bin/none -x", "Children": 2}),
    "program that is none": ('"/etc/passwd" that can be executed', {"To": None, "Spawn": "/etc/passwd", "Children": 2}),
    "program that is a folder": ('"/usr/bin" that can be executed', {"To": None, "Spawn": "/usr/bin", "Children": 2}),
    "relative program": ('no program "bin/true"', {"To": None, "Spawn": "bin/true", "Children": 2}),
    "no program": ('there is no program ""', {"To": None, "Spawn": '""', "Children": 2}),
    "too many children": ('wants a number from 1 to 256, not "257"', {"To": None, "Spawn": "true", "Children": 257}),
    "less than none": ('wants a number from 1 to 256, not "-1"', {"To": None, "Spawn": "true", "Children": -1}),
    "words": ('wants a number from 1 to 256, not "two"', {"To": None, "Spawn": "true", "Children": "two"}),
    "both, and no program": ('there is no program "none"', {"Spawn": "none", "Children": 2}),
    "both, and no children": ("one of both is enough", {"Spawn": "/bin/true"}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake(tmp_path, site_root, mistake):
    sentence, keys = MISTAKES[mistake]
    keys = {key: value for key, value in {"To": "127.0.0.1:1", **keys}.items() if value is not None}
    checked = run("-t", "-c", write_config(tmp_path / "conf", site_root, text=section("FASTCGI", keys)))
    assert checked.returncode != 0
    assert re.search(rf"sites/default:\d+.*{re.escape(sentence)}", checked.stdout + checked.stderr), checked


def check_config(tmp_path, site_root, text):
    checked = run("-t", "-c", write_config(tmp_path / "conf", site_root, text=text))
    return checked.returncode, checked.stdout + checked.stderr


def test_no_children(tmp_path, site_root):
    """One sentence, which is about the number."""
    code, text = check_config(tmp_path, site_root, section("FASTCGI", {"Spawn": "/bin/true", "Children": 0}))
    assert code != 0 and re.search(r"sites/default:\d+:\d+: error: \"Children\" wants a number", text), text
    assert "is missing" not in text


def test_spawn_with_two_numbers(tmp_path, site_root):
    one = {"Match": "/a", "Spawn": "/bin/true -x", "Children": 2}
    same = section("FASTCGI", one) + section("FASTCGI", {**one, "Match": "/b"})
    assert check_config(tmp_path, site_root, same)[0] == 0
    code, text = check_config(tmp_path, site_root, same + section("FASTCGI", {**one, "Match": "/c", "Children": 3}))
    assert code != 0 and "the same Spawn with Children 2: they share its processes" in text, text
    assert len(re.findall("share its processes", text)) == 1


@pytest.mark.concurrent
def test_reloads_under_load(php):
    def work():
        with server.connect() as client:
            while not done.is_set():
                assert client.ask("/a.php", method="POST", body=b"x" * 10000).status == 200

    done = threading.Event()
    with Application(echo) as application:
        server = php(application, {"KeepAlive": 2}, settings={"Workers": 2})
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                reload(server)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        assert not application.errors


@only_sanitized
@pytest.mark.parametrize("what", ["records", "spool", "scgi", "kept"])
def test_failing_memory(php, what):
    def script(peer):
        while True:
            peer.request_scgi() if what == "scgi" else peer.request()
            if what == "scgi":
                peer.send(HEAD + b"hello")
                return
            peer.respond(b"hello")

    with Application(script) as application:
        keys = {"KeepAlive": 2} if what == "kept" else {}
        server = php(application, keys, name="SCGI" if what == "scgi" else "FASTCGI")

        def exchange():
            with server.connect() as client:
                if what == "spool":
                    return client.ask("/a.php", method="POST", body=b"x" * 100000).status
                return client.ask("/a.php/info?query").status

        assert fail_each(server, exchange) > 3


@pytest.mark.parametrize("name", ["FASTCGI", "SCGI"])
def test_each_descriptor_fails_once(php, name):
    """The script, which is looked up, and the connection."""

    def ask_script(client):
        got = client.ask("/a.php")
        assert b"source" not in got.body
        return got.status

    with Application(echo if name == "FASTCGI" else echo_scgi) as application:
        assert fail_each_descriptor_of_new(lambda: php(application, name=name), ask_script, 4) >= 1
