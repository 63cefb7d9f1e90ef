# SPDX-License-Identifier: Apache-2.0
"""router->not_found() and router->error(): every error below the URL of a service has the body that it makes."""

import json

import pytest

from harness.messages import lines
from harness.content import populate
from harness.server import section
from harness.services import HEAD, needs_duda
from harness.ways import WAYS

pytestmark = [pytest.mark.single_protocol, needs_duda]

every_way = pytest.mark.parametrize("way", WAYS)

JSON = (
    HEAD
    + """
static void respond(duda_request_t *dr, const char *kind, int status)
{
    char text[100];
    snprintf(text, sizeof(text), "{\\"kind\\": \\"%s\\", \\"status\\": %d}", kind, status);
    response->http_content_type(dr, "json");
    response->http_header(dr, "X-Kind: service");
    response->print(dr, "", 0);
    response->printf(dr, "%.*s", 5, text);
    response->printf(dr, "%s", text + 5);
    response->end(dr, NULL);
}
static void missing(duda_request_t *dr) { respond(dr, "missing", 404); }
static void failed(duda_request_t *dr, int status) { respond(dr, "failed", status); }
static void ok(duda_request_t *dr)
{
    response->printf(dr, "ok");
    response->end(dr, NULL);
}
static void forget(duda_request_t *dr) { (void)dr; }
static void wait(duda_request_t *dr)
{
    response->printf(dr, "this is never sent");
    response->wait(dr);
}
static void give_up(duda_request_t *dr) { response->error(dr, 410); }
int duda_main(void)
{
    router->get("/ok", ok);
    router->get("/forgotten", forget);
    router->get("/waits", wait);
    router->get("/gone", give_up);
    router->any("/dir/", ok);
    router->timeout(router->get("/slow", wait), 50);
    router->limit(router->post("/small", ok), 10);
    router->not_found(missing);
    router->error(failed);
    return 0;
}
"""
).replace("#include <stdlib.h>", "#include <stdio.h>\n#include <stdlib.h>")


def expect(answer, kind, status):
    assert answer.status == status, answer
    assert answer["content-type"] == "application/json" and answer["x-kind"] == "service"
    assert json.loads(answer.body) == {"kind": kind, "status": status}


@pytest.fixture
def start(serve_services, tmp_path):
    def make(source=JSON, settings=None, way=WAYS["h1"], keys=None, has_files=True, **rest):
        html = populate(tmp_path / "html", {"file.txt": b"the file"})
        keys = {"svc": {**({"DocumentRoot": html} if has_files else {}), **(keys or {})}}
        return way.start(serve_services, tmp_path, {"svc": source}, {"HandlerTimeout": "300ms", **(settings or {})},
                         keys=keys, **rest)

    return make


def ask(server, target, *fields, **rest):
    with server.open() as client:
        return client.ask(target, *fields, **rest)


@every_way
def test_each_error(start, way):
    """With files behind the routes, too."""
    server = start(way=WAYS[way])
    assert ask(server, "/svc/ok").body == b"ok"
    assert ask(server, "/svc/file.txt").body == b"the file"
    expect(ask(server, "/svc/nothing.txt"), "missing", 404)
    expect(ask(server, "/svc/file.txt", "Range: bytes=100-"), "failed", 416)
    expect(ask(server, "/svc/ok", method="DELETE"), "failed", 405)
    expect(ask(server, "/svc/small", method="POST", body=b"x" * 11), "failed", 413)
    expect(ask(server, "/svc/slow"), "failed", 503)
    expect(ask(server, "/svc/waits"), "failed", 503)
    expect(ask(server, "/svc/forgotten"), "failed", 503)
    expect(ask(server, "/svc/gone"), "failed", 410)
    assert ask(server, "/svc/ok").body == b"ok"
    outside = ask(server, "/nothing")
    assert outside.status == 404 and outside["x-kind"] is None and b"<html" in outside.body


def test_head(start):
    client = start().open()
    length = client.ask("/svc/nothing.txt")["content-length"]
    answer = client.ask("/svc/nothing.txt", method="HEAD")
    assert (answer.status, answer["content-length"], answer["content-type"]) == (404, length, "application/json")


def post_chunked(server):
    with server.open() as client:
        client.send(lines("POST /svc/small HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked"))
        client.send(b"b\r\nhello world\r\n0\r\n\r\n")
        return client.response()


def test_a_chunked_body_above_the_limit(start):
    """The head does not tell how long it will be."""
    expect(post_chunked(start()), "failed", 413)


@every_way
@pytest.mark.parametrize("has_files", [False, True])
def test_errors_count_on_the_console(start, way, has_files):
    """Each once, in the row of its route; files, and what has no route, are in the row of what was not found."""
    server, is_chunked = start(way=WAYS[way], keys={"Console": "/console/"}, has_files=has_files), way.startswith("h1")
    for path in ("ok", "forgotten", "waits", "gone", "slow", "nothing", "none"):
        ask(server, f"/svc/{path}")
    ask(server, "/svc/ok", method="DELETE")
    ask(server, "/svc/small", method="POST", body=b"x" * 11)
    if is_chunked:
        assert post_chunked(server).status == 413
    if has_files:
        assert ask(server, "/svc/file.txt", "Range: bytes=100-").status == 416
        assert ask(server, "/svc/file.txt").status == 200
    figures = json.loads(ask(server, "/svc/console/", "Accept: application/json").body)
    names = ("1xx", "2xx", "3xx", "4xx", "5xx", "timeout", "aborted", "client_closed")
    assert {row["route"]: counts for row in figures["routes"] if (counts := {n: row[n] for n in names if row[n]})} == {
        "/ok": {"2xx": 1},
        "/forgotten": {"5xx": 1, "timeout": 1},
        "/waits": {"5xx": 1, "timeout": 1},
        "/slow": {"5xx": 1, "timeout": 1},
        "/gone": {"4xx": 1},
        "/small": {"4xx": 1 + is_chunked},
        "none": {"4xx": 3 + has_files},
    }
    assert figures["responses"] == 9 + is_chunked + has_files and figures["active"] == 0


def test_errors_of_other_plugins(start):
    """A refusal keeps its status; pages of the host are for what the service leaves."""
    text = section("RULES", {"Match": "/svc/private", "Action": "deny 403"})
    text += section("ERROR_PAGES", {"404": '"chosen"'})
    server = start(text=text)
    expect(ask(server, "/svc/private"), "failed", 403)
    expect(ask(server, "/svc/chosen"), "missing", 404)
    assert ask(server, "/chosen").body == b"chosen"


HOST = "Host: localhost"
# What comes before the path is accepted: the head, and the status of the server's own page.
EARLY = {
    "escape": (["GET /svc/%zz HTTP/1.1", HOST], 400),
    "nul": (["GET /svc/%00 HTTP/1.1", HOST], 400),
    "slash": (["GET /svc/a%2F.. HTTP/1.1", HOST], 404),
    "blank": (["GET /svc/a b HTTP/1.1", HOST], 400),
    "header": (["GET /svc/ok HTTP/1.1", HOST, "A B: c"], 400),
    "no_host": (["GET /svc/ok HTTP/1.1"], 400),
    "two_lengths": (["POST /svc/small HTTP/1.1", HOST, "Content-Length: 1", "Content-Length: 2"], 400),
    "coding": (["POST /svc/small HTTP/1.1", HOST, "Transfer-Encoding: gzip"], 501),
    "long_target": ([f"GET /svc/{'a' * 70000} HTTP/1.1", HOST], 414),
    "long_header": (["GET /svc/ok HTTP/1.1", HOST, f"A: {'b' * 70000}"], 431),
    "expectation": (["POST /svc/small HTTP/1.1", HOST, "Expect: x", "Content-Length: 1"], 417),
    "version": (["GET /svc/ok HTTP/3.0", HOST], 505),
    "connect": (["CONNECT localhost:80 HTTP/1.1", HOST], 405),
    "redirect": (["GET /svc/dir HTTP/1.1", HOST], 301),
    "redirect_of_post": (["POST /svc/dir HTTP/1.1", HOST, "Content-Length: 0"], 308),
}


def expect_own_page(server, data, status, name):
    with server.open() as client:
        client.send_all_you_can(data)
        answer = client.response()
        assert (answer.status, answer["content-type"]) == (status, "text/html; charset=utf-8"), name
        assert answer["x-kind"] is None and b"<html" in answer.body, name


def test_errors_before_the_path_is_accepted(start):
    """The server's own page, as docs/reference/duda/router.md says."""
    server = start()
    for name, (head, status) in EARLY.items():
        expect_own_page(server, lines(*head), status, name)
    with server.open() as client:
        client.send(lines("POST /svc/small HTTP/1.1", HOST, "Transfer-Encoding: chunked") + b"zz\r\n")
        expect(client.response(), "failed", 400)


def test_a_late_head(start):
    expect_own_page(start(settings={"Timeout": "3s"}), lines("GET /svc/ok HTTP/1.1", HOST)[:-2], 408, "a late head")


WRONG = (
    HEAD
    + """
#include <errno.h>
static struct duda_ticket ticket;
static void run(duda_request_t *dr, void *data) { (void)dr, (void)data, abort(); }
static void on_leave(duda_request_t *dr, void *data) { (void)dr, (void)data, msg->info("the page was left"); }
static void on_piece(duda_request_t *dr, const char *piece, size_t len, bool end, void *data)
{
    (void)dr, (void)piece, (void)len, (void)end, (void)data, abort();
}
static void failed(duda_request_t *dr, int status)
{
    const char *how = qs->get(dr, "how");
    static char large[20000];
    memset(large, 'x', sizeof(large));
    if (how && strcmp(how, "large") == 0)
        response->print(dr, large, sizeof(large));
    if (how && strcmp(how, "file") == 0)
        response->sendfile(dr, request->path(dr));
    if (how && strcmp(how, "again") == 0)
        response->error(dr, 500);
    if (how && strcmp(how, "other") == 0)
        response->http_status(dr, 418);
    if (how && strcmp(how, "later") == 0 &&
        (response->wait(dr) != -EPERM || response->ticket(dr, &ticket) != -EPERM ||
         response->sse_begin(dr, 1) != -EPERM || response->redirect(dr, 302, "/") != -EPERM ||
         dthread->handle(dr, run, NULL) ||
         request->read(dr, 0, on_piece, NULL) != -EPERM))
        response->printf(dr, "a call was not refused");
    request->on_leave(dr, on_leave, NULL);
    if (how && strcmp(how, "changed") == 0) {
        response->http_status(dr, 200);
        response->http_header(dr, "Content-Encoding: gzip");
        response->print(dr, large, sizeof(large));
    }
    if (how && strcmp(how, "zipped") == 0) {
        response->http_header(dr, "Content-Encoding: gzip");
        response->printf(dr, "zipped");
    }
    if (how && strcmp(how, "wait") == 0)
        response->wait(dr);
    else if (!how || strcmp(how, "forget") != 0)
        response->end(dr, NULL);
    (void)status;
}
int duda_main(void)
{
    router->error(failed);
    return 0;
}
"""
)


def test_functions_that_make_no_page(start):
    """The server's page is sent instead."""
    server = start(WRONG)
    client = server.open()
    for how in ("large", "wait", "forget", "changed", "again"):
        answer = client.ask(f"/svc/x?how={how}")
        assert answer.status == 404 and b"<html" in answer.body, how
        assert answer["content-type"] == "text/html; charset=utf-8" and answer["content-encoding"] is None
    answer = client.ask("/svc/x?how=zipped")
    assert (answer.status, answer.body, answer["content-encoding"]) == (404, b"zipped", "gzip")
    assert client.ask("/svc/x?how=later").body == b""
    assert client.ask("/svc/x?how=other").status == 418
    answer = client.ask("/svc/x")
    assert (answer.status, answer.body) == (404, b"")
    server.wait_log("service svc: router->error\\(\\): a page has 8 KB at most, and no generator")
    server.wait_log("the page was left", 2)
    assert server.log.count("the page was left") == 2  # wait and forget did not end it
