# SPDX-License-Identifier: Apache-2.0
"""The responses of backend_responses.py through the server: what the client gets, and what the next client does not."""

import http.client

import pytest

from backend_responses import CUT, REFUSED, RESPONSES, head
from harness import build
from harness.backend import Backend, answer
from harness.fastcgi import Application, fastcgi_section
from harness.groups import serve_group  # noqa: F401
from harness.metrics import needs_status, scrape, status_section, total
from harness.proxies import TEXT, proxy_section
from harness.server import await_true, section

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
]

needs_fastcgi = pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="the preset has no fastcgi")
ROWS = [(title, name) for title, table in RESPONSES.items() for name in table]
# two faults from which all readers of responses recover
RECOVERED = {
    "LF alone": head(b"Content-Type: text/plain", b"Content-Length: 5", end=b"\n"),
    "a blank before a colon": head(b"Content-Type : text/plain", b"Content-Length : 5"),
}


def respond_rows(peer):
    """The path of a request is the number of a row. What is late comes before the next response."""
    late = b""
    while True:
        number = peer.request().target.strip("/")
        if not number:
            peer.send(late)
            peer.respond(b"mine", TEXT)
            continue
        title, name = ROWS[int(number)]
        row = RESPONSES[title][name]
        peer.send(row.sent)
        late = row.late
        if row.ends:
            return


def get_result(server, path, row=None):
    """REFUSED, CUT or the status and the body."""
    conn = http.client.HTTPConnection(*server.addresses[0], timeout=60)
    try:
        conn.request(row.method if row else "GET", path)
        got = conn.getresponse()
        body = got.read()
    except http.client.IncompleteRead:
        return CUT
    finally:
        conn.close()
    return REFUSED if got.getheader("Proxy-Status") else (got.status, body)


@pytest.mark.parametrize("title", RESPONSES)
def test_responses(serve, title):
    with Backend(respond_rows) as backend:
        server = serve({"Workers": 1}, text=proxy_section(backend))
        wrong = {}
        for number, (of, name) in enumerate(ROWS):
            if of != title:
                continue
            row = RESPONSES[of][name]
            wanted = row.wanted if row.wanted in (REFUSED, CUT) else (row.status, row.wanted)
            got, after = get_result(server, f"/{number}", row), get_result(server, "/")
            if got != wanted or after != (200, b"mine"):
                wrong[name] = got, wanted, after
        assert not wrong
        backend.errors = []  # connections that the server has reset


@needs_status
@pytest.mark.parametrize("status", [600, 999])
def test_statuses_above_599_are_counted_as_5xx(serve, status):
    with Backend(answer(b"hello", TEXT, status=status)) as backend:
        config = {"plugins/status/status.conf": status_section()}
        server = serve({"Workers": 1}, text=proxy_section(backend, {"Match": "/x"}), config=config)
        assert get_result(server, "/x") == (status, b"hello")
        with server.connect() as client:
            await_true(lambda: total(scrape(client), "monkey_requests_total", status="5xx") == 1, what="one of 5xx")
            samples = scrape(client)
        assert total(samples, "monkey_proxy_backend_responses_total", status="5xx") == 1
        assert total(samples, "monkey_requests_total", status="none") == 0


# ── what else reads responses ──


@pytest.mark.parametrize("name", RECOVERED)
def test_checks(serve_group, name):  # noqa: F811
    def respond(peer):
        peer.request()
        peer.send(RECOVERED[name])

    with Backend(respond) as backend:
        server = serve_group([backend.address], {"Check": "/health", "CheckInterval": "100ms"})
        backend.wait_requests(3)
        with server.connect() as client:
            assert client.ask("/").body == b"hello"
        assert "down" not in server.log


@pytest.mark.parametrize("name", RECOVERED)
def test_forward_auth(serve, name):
    def respond(peer):
        peer.request()
        peer.send(RECOVERED[name])

    with Backend(respond) as backend:
        keys = {"Match": "/", "Type": "Forward", "To": f"{backend.url}/verify"}
        with serve(text=section("AUTH", keys)).connect() as client:
            assert client.ask("/hello.txt").status == 200


SCRIPT_HEADS = {
    "a blank before a colon": b"X-Name : v\r\nContent-Type: a/b\r\nContent-Length\t : 5\r\n\r\n",
    "LF alone": b"X-Name: v\nContent-Type: a/b\nContent-Length: 5\n\n",
    "both": b"X-Name : v\nContent-Type: a/b\nStatus : 404 Not Found\r\n\n",
}


def get_script_result(server, path):
    with server.connect() as client:
        got = client.ask(path)
    return got.status, got["X-Name"], got.body


@needs_fastcgi
@pytest.mark.parametrize("name", SCRIPT_HEADS)
@pytest.mark.parametrize("protocol", ["FASTCGI", "SCGI"])
def test_fastcgi(serve, protocol, name):
    def respond(peer):
        if protocol == "FASTCGI":
            peer.request()
            peer.respond(b"hello", SCRIPT_HEADS[name])
        else:
            peer.request_scgi()
            peer.send(SCRIPT_HEADS[name] + b"hello")

    with Application(respond) as application:
        server = serve(text=fastcgi_section(application.to, protocol, Match="/app", Split="Off"))
        assert get_script_result(server, "/app/x") == (404 if name == "both" else 200, "v", b"hello")
