# SPDX-License-Identifier: Apache-2.0
"""[LIMITS] for the path of an index, or of what TryFiles leads to, hold for the path that has led there."""

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.fastcgi import Application
from harness.fastcgi import answer as answer_fastcgi
from harness.messages import chunked, lines, request
from harness.metrics import needs_status, scrape, status_section, total
from harness.server import await_true, section

pytestmark = [
    needs_status,
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in ("proxy", "fastcgi")),
        reason="this preset has no plugins proxy and fastcgi",
    ),
]
STATUS = {"plugins/status/status.conf": status_section()}
FILES = {"dir/index.php": b"<?php\n", "dir/index.html": b"dir\n"}


def limits(match, **keys):
    return section("LIMITS", {"Match": match, **keys})


def read(server, name, state):
    """The value of a counter by state."""
    with server.connect() as client:
        return total(scrape(client), f"monkey_{name}", state=state)


def assert_no_timeout(server):
    """The worker has run the timers of a turn before it takes the second request."""
    for _ in range(2):
        assert [read(server, "timeouts_total", state) for state in ("read_body", "write")] == [0, 0]


SECTIONS = {
    "proxy": ("PROXY", {"Match": "*.php"}, {"Indexfile": "index.php"}, "/dir/"),
    "fastcgi": ("FASTCGI", {"Match": "/dir"}, {}, "/dir/"),
    "fastcgi tries": ("FASTCGI", {"Match": "/", "TryFiles": "$path /dir/index.php"}, {}, "/none"),
    "fastcgi and PATH_INFO": ("FASTCGI", {"Match": "/dir"}, {}, "/dir/index.php/info"),
}
PATHS = dict.fromkeys(path for *_, path in SECTIONS.values())
SHORT = {"MaxBodySize": "10B", "BodyTimeout": "10s"}
LONG = {"MaxBodySize": "1K", "BodyTimeout": "30s"}
ROWS = {  # sections, the status of POST with a body of 100 bytes, and of one whose body does not come for 11 seconds
    "nothing": ("", 200, 200),
    "the index": (limits("=/dir/index.php", **SHORT), 413, 408),
    "the path": ("".join(limits(f"={path}", **SHORT) for path in PATHS), 413, 408),
    "of a pattern": (limits("*.php", **SHORT), 413, 408),
    "another": (limits("=/dir/x.php", **SHORT), 200, 200),
    "more for the index": (limits("=/dir/index.php", **LONG) + limits("/", **SHORT), 413, 200),
    "less for the index": (limits("=/dir/index.php", **SHORT) + limits("/", **LONG), 413, 408),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("how", SECTIONS)
def test_bodies(serve, clock, how, name):
    kind, keys, host, target = SECTIONS[how]
    text, status, late_status = ROWS[name]
    with Backend(answer(b"ran", "Content-Type: text/plain")) as app, Application(answer_fastcgi(b"ran")) as php:
        to = app.url if kind == "PROXY" else php.to
        server = serve({"BodyTimeout": "60s", "MinBodyRate": 0}, files=FILES, host=host,
                       text=section(kind, {**keys, "To": to}) + text, config=STATUS)
        with server.connect() as client:
            assert client.ask(target, method="POST", body=b"b" * 100).status == status
        with server.connect() as client:  # without a length that is known before
            client.send_all_you_can(
                lines(f"POST {target} HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked") + chunked(b"b" * 100)
            )
            assert client.response("POST").status == status
        with server.connect() as client:
            client.send(lines(f"POST {target} HTTP/1.1", "Host: localhost", "Content-Length: 5"))
            await_true(lambda: read(server, "connections", "read_body") == 1, 60, "the wait for the body")
            clock.advance(11)
            if late_status == 200:
                assert_no_timeout(server)
                client.send(b"bbbbb")
            assert client.response("POST").status == late_status


LARGE = b"l" * (16 << 20)
SEND_ROWS = {  # sections, and whether the response ends when the client does not read for 11 seconds
    "nothing": ("", False),
    "the index": (limits("/dir/index.php", SendTimeout="10s"), True),
    "the path": (limits("=/dir/", SendTimeout="10s"), True),
    "more for the index": (limits("/dir/index.php", SendTimeout="30s") + limits("/", SendTimeout="10s"), False),
    "less for the index": (limits("/dir/index.php", SendTimeout="10s") + limits("/", SendTimeout="30s"), True),
}


@pytest.mark.parametrize("name", SEND_ROWS)
@pytest.mark.parametrize("kind", ["static", "proxy"])
def test_responses_that_are_not_read(serve, clock, kind, name):
    text, ends = SEND_ROWS[name]
    with Backend(answer(LARGE, "Content-Type: text/plain")) as app:
        server = serve({"SendTimeout": "60s"}, files={"dir/index.php": LARGE}, host={"Indexfile": "index.php"},
                       text=text + (section("PROXY", {"Match": "*.php", "To": app.url}) if kind == "proxy" else ""),
                       config=STATUS)

        with server.connect(rcvbuf=4096) as client:
            client.send(request("/dir/"))
            head = client.head()
            assert head.status == 200
            await_true(lambda: read(server, "connections", "write") == 1, 60, "that the client has to read")
            clock.advance(11)
            if not ends:
                assert_no_timeout(server)
                assert client.exactly(head.length) == LARGE
                return
            await_true(lambda: read(server, "timeouts_total", "write") == 1, 60, "the end of the response")


@build.needs_probe
def test_the_log_has_the_path_of_the_client(probe):
    text = section("REWRITE", {"Match": "=/old", "To": "/probe/never"}) + limits("/probe", HandlerTimeout="100ms")
    server = probe(text=text)
    for path, shown in (("/old", "/old, by /probe/never"), ("/probe/never", "/probe/never")):
        with server.connect() as client:
            assert client.ask(path).status == 503
        server.wait_log(rf"no answer within HandlerTimeout \(localhost{shown}\)")
