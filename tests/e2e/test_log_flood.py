# SPDX-License-Identifier: Apache-2.0
"""Lines of the error log that a request can cause: a few are written, the others are counted."""

import base64
import contextlib
import re
import socket

import pytest

from harness import build
from harness.backend import Backend
from harness.groups import GROUPS, group
from harness.log_growth import limited_growth
from harness.messages import lines
from harness.proxies import proxy_section
from harness.scripts import cgi_section, write_scripts
from harness.server import await_true, free_port, section

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
]

COUNT, LINES_MAX = 60, 4
TARGET = "/?" + "x" * 400  # of which a line may have a part
SHARED = b"HTTP/1.1 200 OK\r\nA B: c\r\n\r\n"


def proxy_to(target, **keys):
    return lambda *_: {"text": proxy_section(None, {"To": target, **keys})}


def gateway_to(kind):
    split = {"Split": "Off"} if kind == "FASTCGI" else {}
    return lambda *_: {"text": section(kind, {"Match": "/", "To": "127.0.0.1:1", **split})}


def proxy_group(**keys):
    """All servers of the group refuse, or none may get a request."""

    def make(*_):
        servers = [f"127.0.0.1:{free_port()}"]
        return {"text": proxy_section(None, {"To": "http://app"}), "config": {GROUPS: group(servers, **keys)}}

    return make


def proxy_backend(response, **keys):
    """A backend that sends this to each request, and ends; None: nothing, for as long as the proxy waits."""

    def respond(peer):
        peer.request()
        if response is None:
            peer.wait_end()
        else:
            peer.send(response)

    def make(_, stack):
        backend = stack.enter_context(Backend(respond))
        return {"text": proxy_section(backend, keys)}

    return make


def cgi_script(text, **keys):
    def make(folder, _):
        script = write_scripts(folder, {"x": text}) / "x"
        return {"text": section("CGI", {"Match": "/", "Script": script, **keys})}

    return make


# what the host has, what its lines say, and the status of its responses
FLOODS = {
    "a server that refuses": (proxy_to("http://127.0.0.1:1"), "proxy: http://127.0.0.1:1: .*refused", 502),
    "a group of them": (proxy_group(EjectAfter=0), "proxy: http://app, server .*refused", 502),
    "no server that may be used": (proxy_group(**{"Check": "Tcp"}), "no server of the group can be used", 503),
    "a malformed response": (proxy_backend(SHARED), "its response is malformed: line 2 of its head", 502),
    "a malformed body": (
        proxy_backend(lines("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + b"x\r\n"),
        "malformed: the size of a chunk",
        502,
    ),
    "the end of the connection": (proxy_backend(b""), "it has closed the connection before its response", 502),
    "a timeout": (proxy_backend(None, ResponseTimeout="20ms"), r"takes too long \(ResponseTimeout is 20 ms\)", 504),
    "a deadline": (proxy_backend(None, Deadline="20ms"), r"takes too long \(Deadline is 20 ms\)", 504),
    "a script without a head": (cgi_script("#!/bin/sh\necho hello\n"), "x: its response is malformed: line 1", 502),
    "a script that ends": (cgi_script("#!/bin/sh\nexit 3\n"), "x: its output has ended before the head", 502),
    "a script that cannot start": (cgi_script("#!/no/such/program\n"), "x: it cannot", 500),
    "a redirect of a script": (
        cgi_script("#!/bin/sh\nprintf 'Location: /a/../b\\n\\n'\n", LocalRedirect="On"),
        "x: its redirect to a path of this server is not followed",
        502,
    ),
    "a script that is killed": (cgi_script("#!/bin/sh\nkill -9 $$\n"), "x: its output has ended before the head", 502),
    "a file that may not be sent": (
        proxy_backend(lines("HTTP/1.1 200 OK", "X-Sendfile: /etc/passwd", "Content-Length: 0"), SendFile="/srv"),
        "proxy: .*cannot send what X-Sendfile names",
        403,
    ),
    "a FastCGI server that refuses": (gateway_to("FASTCGI"), "fastcgi: 127.0.0.1:1: .*refused", 502),
    "an SCGI server that refuses": (gateway_to("SCGI"), "scgi: 127.0.0.1:1: .*refused", 502),
    "a question about access": (
        lambda *_: {"text": section("AUTH", {"Match": "/", "Type": "Forward", "To": "http://127.0.0.1:1"})},
        "auth: .* decides nothing, and the request gets 503",
        503,
    ),
    "a rule": (lambda *_: {"text": section("RULES", {"Match": "/", "Action": "deny"})}, "access: .*deny 403", 403),
}


@pytest.mark.parametrize("name", FLOODS)
def test_few_lines_and_a_count(serve, clock, tmp_path, name):
    make, pattern, status = FLOODS[name]
    with contextlib.ExitStack() as stack:
        config = make(tmp_path / "scripts", stack)
        # of a rule so many lines in a second, which begins at another time for a worker that has started later
        server = serve({"Workers": 1 if name == "a rule" else 2}, **config)
        server.baseline += 3 if "script" in name else 0  # to the process that starts them
        if name.startswith("no server"):
            server.wait_log("is down, and gets no requests")

        def ask():
            with server.connect() as client:
                assert client.ask(TARGET).status == status

        with limited_growth(server):
            for _ in range(COUNT):
                ask()
        shown = [line for line in server.lines if re.search(pattern, line)]
        assert 1 <= len(shown) <= (10 if name == "a rule" else LINES_MAX), server.log
        assert name == "a rule" or "more of these are only counted for 10 s" in shown[-1]
        clock.advance(10.1)
        left_out = "lines left out" if name == "a rule" else "more since the last such line"
        find = re.compile(rf"{pattern}.*\D(\d+) {left_out}").search

        late = -1  # requests that were taken in a turn of the loop that had begun before: they are counted, too

        def ask_and_find():
            nonlocal late
            ask()
            late += 1
            return next(filter(None, map(find, server.lines)), None)

        found = await_true(ask_and_find, what="the count")
        assert len(shown) + int(found[1]) == COUNT + late


def test_a_full_queue_of_scripts(serve, clock, tmp_path):
    """Requests that find the one process busy, and no place to wait: 503 each, a few lines, and a count."""
    started = tmp_path / "started"
    script = f"#!/bin/sh\ntouch {started}\nread line\nprintf 'Content-Type: text/plain\\n\\n'\n"
    keys = {"MaxProcesses": 1, "Queue": 0, "SpoolRequest": "Off"}
    server = serve({"Workers": 2}, **cgi_script(script, **keys)(tmp_path / "scripts", None))
    server.baseline += 3  # to the process that starts them

    def ask():
        with server.connect() as client:
            assert client.ask(TARGET).status == 503

    with server.connect() as first:
        first.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n")
        await_true(started.exists, what="the script")
        with limited_growth(server):
            for _ in range(COUNT):
                ask()
        shown = [line for line in server.lines if re.search("cgi: .*MaxProcesses|cgi: .*Queue", line)]
        assert 1 <= len(shown) <= LINES_MAX, server.log
        assert "more of these are only counted for 10 s" in shown[-1]
        clock.advance(10.1)
        ask()
        found = server.wait_log(r"cgi: .*\D(\d+) more since the last such line")
        assert len(shown) + int(found[0][1]) == COUNT
        first.send("a\n")
        assert first.response("POST").status == 200


@pytest.mark.parametrize("kind", ["FASTCGI", "PROXY"])
def test_a_full_queue_of_a_group(serve, clock, kind):
    """As of scripts: the one connection of the group is busy, and no request may wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as busy, contextlib.ExitStack() as stack:
        servers = [f"127.0.0.1:{busy.getsockname()[1]}"]
        keys = {"To": "http://app"} if kind == "PROXY" else {"To": "app", "Split": "Off"}
        groups = {GROUPS: group(servers, MaxConnections=1)}
        server = serve({"Workers": 2, "Timeout": "1h"}, text=section(kind, {"Match": "/", **keys}), config=groups)
        first = stack.enter_context(server.connect())
        first.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        taken = stack.enter_context(busy.accept()[0])

        def ask():
            with server.connect() as client:
                assert client.ask(TARGET).status == 503

        with limited_growth(server):
            for _ in range(COUNT):
                ask()
        shown = [line for line in server.lines if re.search(f"{kind.lower()}: .*(MaxConnections|Queue)", line)]
        assert 1 <= len(shown) <= LINES_MAX, server.log
        assert "more of these are only counted for 10 s" in shown[-1]
        taken.close()


PROXY_HEADERS = {
    "a client that is no proxy": ("10.0.0.0/8", b"GET / HTTP/1.1\r\n\r\n", "the address is not in TrustedProxies"),
    "a client without a header": ("127.0.0.0/8", b"GET / HTTP/1.1\r\n\r\n", "without a PROXY header"),
}


@pytest.mark.parametrize("name", PROXY_HEADERS)
def test_connections_that_are_refused(serve, clock, name):
    """Each worker says so once in a while; the time of the server stands still."""
    trusted, start, pattern = PROXY_HEADERS[name]
    server = serve({"Workers": 2, "Listen": "127.0.0.1:0 proxy", "TrustedProxies": trusted})
    with limited_growth(server):
        for _ in range(COUNT):
            with server.connect() as client:
                client.send_all_you_can(start)
                client.assert_gone()
    assert 1 <= sum(bool(re.search(pattern, line)) for line in server.lines) <= LINES_MAX, server.log


def scripts_with_errors(folder):
    text = "#!/bin/sh\nprintf '%0100d\\n' 1 2 3 >&2\nprintf 'Content-Type: text/plain\\n\\n'\n"
    script = write_scripts(folder, {"x": text}) / "x"
    return {"text": section("CGI", {"Match": "/", "Script": script})}, 3


def wrong_passwords(folder):
    folder.mkdir()
    users = folder / "users"
    users.write_text("ada:{SHA}" + "A" * 27 + "=\n")
    limits = section("AUTH_LIMITS", {"FailureDelay": "0s", "MaxFailures": 1000})
    auth = section("AUTH", {"Match": "/", "Realm": "x", "Users": users})
    return {"text": auth, "config": {"plugins/auth/auth.conf": limits}}, 1


@pytest.mark.parametrize("make, pattern", [(scripts_with_errors, "x: 0+[123]"), (wrong_passwords, "auth: .*such user")])
def test_a_budget_of_bytes(serve, clock, tmp_path, make, pattern):
    """Text of which more than four lines are of use: 10 KB in ten seconds, of all threads."""
    config, each = make(tmp_path / "files")
    server = serve({"Workers": 2}, **config)
    server.baseline += 3 if make is scripts_with_errors else 0

    def ask(n):
        user = base64.b64encode(f"{n:0>50}:x".encode()).decode()
        with server.connect() as client:
            assert client.ask("/", f"Authorization: Basic {user}").status in (200, 401)

    for n in range(COUNT):
        ask(n)
    shown = [line for line in server.lines if re.search(pattern, line)]
    assert 5_000 < sum(map(len, shown)) < 12_000 and len(shown) < each * COUNT
    assert "more of these are only counted for 10 s" in shown[-1]
    clock.advance(10.1)
    ask(COUNT)
    found = server.wait_log(rf"{pattern}.*\D(\d+) more since the last such line")
    assert len(shown) + int(found[0][1]) == each * COUNT


def test_each_host_has_its_lines(serve, tmp_path):
    """The log of one host does not end with the flood of another one."""
    text = proxy_section(None, {"To": "http://127.0.0.1:1"})
    sites = {"sites/other": section("HOST", {"ServerName": "other.example"}) + text}
    server = serve({"Workers": 1}, text=text, config=sites)
    with server.connect() as client:
        for _ in range(COUNT):
            assert client.ask("/").status == 502
        assert client.ask("/", host="other.example").status == 502
    server.wait_log("proxy: .*refused.* host: other.example")
