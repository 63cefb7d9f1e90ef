# SPDX-License-Identifier: Apache-2.0
"""The objects `request` and `response` of web services, over HTTP/1.1, HTTP/2 and TLS."""

import base64
import gzip
import hmac
import os
import pathlib
import re
import shutil
import signal
import threading

import pytest

from harness import build
from harness.h2 import StreamReset
from harness.server import await_true, read_threads, section
from harness.services import CPP, HEAD, build_cpp, needs_duda, service_config
from harness.ways import WAYS

pytestmark = needs_duda

EXTRA = "#include <errno.h>\n#include <pthread.h>\n#include <stdatomic.h>\n#include <stdio.h>\n"


def service(handlers, before=""):
    """The source of a service: handlers, name to the statements of their function; /NAME is their route. Handlers
    whose name begins with r read the body themselves."""
    functions = "".join(f"static void h_{n}(duda_request_t *dr)\n{{\n{text}\n}}\n" for n, text in handlers.items())
    add = {name: f'router->any("/{name}", h_{name})' for name in handlers}
    calls = [f"router->stream_body({call})" if name[0] == "r" else call for name, call in add.items()]
    routes = "".join(f"    {call};\n" for call in calls)
    return f"{EXTRA}{HEAD}{before}{functions}int duda_main(void)\n{{\n{routes}    return 0;\n}}\n"


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture
def start(serve_services, tmp_path, way):
    """start(handlers, ...): a server with the service `web`; server.open() connects, the routes are /web/NAME."""

    def begin(handlers, settings=None, before="", **rest):
        return way.start(serve_services, tmp_path, {"web": service(handlers, before)}, settings, **rest)

    return begin


@pytest.fixture
def plain(serve_services, tmp_path):
    """The same over HTTP/1.1 only."""

    def begin(handlers, settings=None, before="", **rest):
        return WAYS["h1"].start(serve_services, tmp_path, {"web": service(handlers, before)}, settings, **rest)

    return begin


def fields_of(answer):
    """The headers of a response without those that only the server sets."""
    own = ("date", "server", "connection", "content-length", "transfer-encoding")
    return [(name.lower(), value) for name, value in answer.fields if name.lower() not in own]


# ── pages ──


def test_text_of_clients_in_pages(start):
    """Of any length, also where a character has two bytes; what follows is not escaped."""
    html = 'int r = response->print_html(dr, request->body(dr, NULL)); response->printf(dr, "<p>%d", r);'
    server = start({"html": html + "response->end(dr, NULL);"})
    text, escaped = "a<b>&\"'\n\tö\x01", "a&lt;b&gt;&amp;&quot;&#39;\n\tö&#xfffd;"
    with server.open() as client:
        for n in (1, 10, 1000):
            answer = client.ask("/web/html", method="POST", body=text.encode() * n)
            assert answer.body.decode() == escaped * n + "<p>0"
        assert client.ask("/web/html").body == b"<p>-22"
    server.wait_log(r"service web: response->print_html\(\): the text is NULL, or its length is negative, in web.duda")


# ── C++ ──

@pytest.mark.parametrize("compiler", [name for name in CPP if shutil.which(name)])
def test_a_service_in_cpp(serve, site_root, tmp_path, compiler):
    source = """
#include <duda/duda.h>
DUDA_REGISTER("tests", "C++");
static void say_hello(duda_request_t *dr)
{
    response->http_content_type(dr, "txt");
    response->printf(dr, "hello %s\\n", param->get(dr, "name"));
    response->end(dr, nullptr);
}
int duda_main(void)
{
    return router->get("/:name", say_hello) && router->delete_("/:name", say_hello) ? 0 : -1;
}
"""
    build_cpp(tmp_path, "hello", source, compiler)
    server = serve(config=service_config(tmp_path, ["hello"], site_root))
    with server.connect() as client:
        assert client.ask("/hello/ada", host="localhost").body == b"hello ada\n"


# ── the request ──

SHOW = """
    const char *q = request->query(dr), *u = request->user(dr);
    response->printf(dr, "%s|%s|%s|%s|%s|%s|%s|%s|%zu", request->method(dr), request->path(dr), request->target(dr),
                     q ? q : "-", request->host(dr), request->scheme(dr), request->client(dr), u ? u : "-",
                     strlen(request->id(dr)));
    response->end(dr, NULL);
"""


def test_the_request_line_and_the_client(start, way):
    client = start({"show": SHOW}).open()
    scheme = "https" if way.tls else "http"
    row = f"GET|/web/show|/web/show?a=%20b|a=%20b|localhost|{scheme}|127.0.0.1|-|32"
    assert client.ask("/web/show?a=%20b").body.decode() == row
    row = f"GET|/web/show|/web/sh%6fw|-|localhost|{scheme}|127.0.0.1|-|32"
    assert client.ask("/web/sh%6fw").body.decode() == row


@pytest.mark.skipif(not (build.PLUGINS / "auth.so").exists(), reason="the preset has no plugin auth")
def test_the_user_and_the_claims(start, tmp_path):
    """By name and password, by a token, and without a login."""

    def encode(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    secret, claims = "a secret of thirty-two bytes and more", '{"sub":"eve","exp":4000000000}'
    for name, text in (("users", "ada:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\n"), ("secret", secret)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    text = section("AUTH", {"Match": "/web/u", "Users": tmp_path / "users"})
    text += section("AUTH", {"Match": "/web/t", "Type": "Bearer", "Secret": tmp_path / "secret"})
    show = """
    const char *u = request->user(dr), *c = request->claims(dr);
    response->printf(dr, "%s %s", u ? u : "-", c ? c : "-");
    response->end(dr, NULL);"""
    client = start({name: show for name in "uto"}, text=text).open()
    assert client.ask("/web/u").status == client.ask("/web/t").status == 401
    basic = base64.b64encode(b"ada:passw0rd").decode()
    assert client.ask("/web/u", f"Authorization: Basic {basic}").body == b"ada -"
    token = encode(b'{"alg":"HS256"}') + "." + encode(claims.encode())
    token += "." + encode(hmac.digest(secret.encode(), token.encode(), "sha256"))
    assert client.ask("/web/t", f"Authorization: Bearer {token}").body.decode() == f"eve {claims}"
    assert client.ask("/web/o", f"Authorization: Bearer {token}").body == b"- -"


def test_the_version_of_http(start, way):
    client = start({"v": 'response->printf(dr, "%d", request->http_major(dr)); response->end(dr, NULL);'}).open()
    assert client.ask("/web/v").body == (b"2" if way.h2 else b"1")


def test_methods(start):
    tests = ("get", "head", "post", "put", "delete", "patch", "options")
    text = """
    response->printf(dr, "get=%d head=%d post=%d ", request->is_get(dr), request->is_head(dr), request->is_post(dr));
    response->printf(dr, "put=%d delete=%d ", request->is_put(dr), request->is_delete(dr));
    response->printf(dr, "patch=%d options=%d ", request->is_patch(dr), request->is_options(dr));
    response->end(dr, NULL);"""
    client = start({"m": text}).open()
    for method in tests:
        body = "".join(f"{name}={int(name == method)} " for name in tests)
        assert client.ask("/web/m", method=method.upper()).body.decode() == ("" if method == "head" else body)


HEADERS = """
    const char *name = "", *value = "", *x = request->header_get(dr, "X-one");
    unsigned n = 0;
    while (request->header_at(dr, n, &name, &value) == 0)
        n++;
    response->printf(dr, "%s|%s|", x ? x : "NULL", request->header_get(dr, "X-None") ? "?" : "NULL");
    response->printf(dr, "%d %d %d|", request->header_cmp(dr, "x-ONE", "a Value"),
                     request->header_cmp(dr, "X-One", "a"), request->header_cmp(dr, "X-None", ""));
    response->printf(dr, "%d %d %d|", request->header_contains(dr, "X-One", "VAL"),
                     request->header_contains(dr, "X-One", "no"), request->header_contains(dr, "X-None", "no"));
    response->printf(dr, "%s|%d|%s=%s", request->header_get(dr, "X-Two"), n > 3, name, value);
    response->end(dr, NULL);
"""


def test_headers_of_the_request(start):
    client = start({"h": HEADERS}).open()
    answer = client.ask("/web/h", "X-One:   a Value  ", "x-two: 1", "x-two: 2", "x-last: z")
    assert answer.body.decode() == "a Value|NULL|0 -1 -1|2 -1 -1|1, 2|1|x-last=z"


TYPE = """
    response->printf(dr, "%d %d", request->is_content_type(dr, "text/plain"), request->is_content_type(dr, "text"));
    response->end(dr, NULL);
"""


@pytest.mark.parametrize(
    "field, expected",
    [
        (("Content-Type: text/plain",), "1 0"),
        (("Content-Type: Text/Plain ; charset=utf-8",), "1 0"),
        (("Content-Type: text/plainer",), "0 0"),
        (("Content-Type: ;text/plain",), "0 0"),
        ((), "0 0"),
    ],
)
def test_content_type_without_parameters(plain, field, expected):
    assert plain({"t": TYPE}).open().ask("/web/t", *field).body.decode() == expected


# ── bodies ──

BODY = """
    size_t len = 1, copy_len = 1;
    const char *body = request->body(dr, &len);
    char *copy = request->get_data(dr, &copy_len);
    response->printf(dr, "%d %d %d|", request->is_data(dr), (int)request->content_length(dr), (int)len);
    response->printf(dr, "%s|", body ? body : "NULL");
    if (copy) {
        copy[0] = 'C';
        response->printf(dr, "%s %d %d", copy, copy_len == strlen(body), body[0]);
    }
    response->end(dr, show_body);
"""
SHOW_BODY = """
static void show_body(duda_request_t *dr)
{
    size_t len;
    const char *body = request->body(dr, &len);
    fprintf(stderr, "body %zu %s\\n", len, body ? body : "NULL");
}
"""


@pytest.mark.parametrize("method, is_data", [("POST", 1), ("PUT", 1), ("PATCH", 1), ("DELETE", 0), ("GET", 0)])
def test_a_body_that_was_collected(start, method, is_data):
    server = start({"b": BODY}, before=SHOW_BODY)
    client = server.open()
    text = client.ask("/web/b", method=method, body=b"abc").body.decode()
    assert text == f"{is_data} 3 3|abc|Cbc 1 97"
    server.wait_log("body 3 abc")  # it is still there when the request ends
    assert client.ask("/web/b", "Content-Length: 0", method=method).body.decode() == "0 0 0|NULL|"


def test_a_body_that_was_collected_from_chunks(plain):
    client = plain({"b": BODY}, before=SHOW_BODY).open()
    client.send("PUT /web/b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert client.response().body == b"1 3 3|abc|Cbc 1 97"
    assert client.ask("/web/b", method="POST").body in (b"0 -1 0|NULL|", b"0 0 0|NULL|")


def test_a_handler_does_not_see_a_body_that_is_too_large(start):
    text = 'fprintf(stderr, "called %d\\n", (int)request->content_length(dr)); response->end(dr, NULL);'
    server = start({"b": text}, {"MaxRequestSize": "1K"})
    assert server.open().ask("/web/b", method="POST", body=b"x" * 100_000).status == 413
    assert server.open().ask("/web/b", method="POST", body=b"y").status == 200
    server.wait_log("called 1")
    assert server.log.count("called") == 1


def test_a_collected_body_can_be_read_as_a_piece(start):
    server = start({"b": READ}, before=COUNT)
    assert server.open().ask("/web/b", method="POST", body=b"abc").body == checksum(b"abc")


# ── bodies in pieces ──

COUNT = """
struct count { size_t bytes, pieces; unsigned sum; };

static void on_piece(duda_request_t *dr, const char *piece, size_t len, bool end, void *data)
{
    struct count *c = data;
    for (size_t i = 0; i < len; i++)
        c->sum = c->sum * 31 + (unsigned char)piece[i];
    c->bytes += len;
    c->pieces++;
    if (!end)
        return;
    response->printf(dr, "%zu %u", c->bytes, c->sum);
    response->end(dr, NULL);
    request->on_leave(dr, NULL, NULL);
    free(c);
}

static void on_leave(duda_request_t *dr, void *data)
{
    fprintf(stderr, "left %s\\n", request->path(dr));
    free(data);
}
"""
READ = """
    struct count *c = calloc(1, sizeof(*c));
    request->on_leave(dr, on_leave, c);
    if (request->read(dr, 1000000, on_piece, c) == 0 && request->read(dr, 0, on_piece, c) != -EALREADY)
        abort();
"""
PAUSE = """
static _Thread_local bool is_paused;

static void later(duda_request_t *dr, void *data)
{
    (void)data;
    is_paused = false;
    if (dr)
        request->resume(dr);
}

static void on_slow(duda_request_t *dr, const char *piece, size_t len, bool end, void *data)
{
    struct duda_ticket ticket;
    if (is_paused)
        fprintf(stderr, "a piece has come in a pause\\n");
    if (!end) {
        is_paused = true;
        request->pause(dr);
        response->ticket(dr, &ticket);
        response->deliver(&ticket, later, NULL);
    }
    on_piece(dr, piece, len, end, data);
}
"""


def checksum(body):
    total = 0
    for byte in body:
        total = (total * 31 + byte) % 2**32
    return f"{len(body)} {total}".encode()


@pytest.mark.parametrize("size", [0, 1, 100, 70_000, 1_000_000])
def test_a_body_in_pieces(start, size):
    body = bytes(i * 7 % 251 for i in range(size))
    client = start({"r": READ}, before=COUNT).open()
    assert client.ask("/web/r", method="POST", body=body).body == checksum(body)
    assert client.ask("/web/r", method="POST", body=b"again").body == checksum(b"again")


def test_a_chunked_body_in_pieces(plain):
    client = plain({"r": READ}, before=COUNT).open()
    client.send("POST /web/r HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
    client.send("2\r\nde\r\n0\r\n\r\n")
    assert client.response().body == checksum(b"abcde")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_above_the_limit_gets_413(plain, chunked):
    server = plain({"r": READ}, before=COUNT)
    client = server.open()
    if chunked:
        head = "POST /web/r HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.send_in_background(head.encode() + b"f4241\r\n" + b"x" * 1000001 + b"\r\n0\r\n\r\n")
    else:
        client.send("POST /web/r HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000001\r\n\r\n")
    assert client.response().status == 413
    server.wait_log("left /web/r")


def test_a_client_that_leaves_in_its_body(plain):
    server = plain({"r": READ}, before=COUNT)
    with server.open() as client:
        client.send("POST /web/r HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
    server.wait_log("left /web/r")


@pytest.mark.parametrize("stop, go", [("request->pause", "request->resume"), ("response->wait", "response->cont")])
def test_a_body_that_is_paused(start, stop, go):
    handlers = {"r": READ.replace("on_piece", "on_slow")}
    before = COUNT + PAUSE.replace("request->pause", stop).replace("request->resume", go)
    body = bytes(i * 7 % 251 for i in range(300_000))
    server = start(handlers, before=before)
    assert server.open().ask("/web/r", method="POST", body=body).body == checksum(body)
    assert "a piece has come" not in server.log


# ── status and headers ──


def test_a_status(start):
    statuses = {200: 0, 418: 0, 599: 0, 204: 0, 100: 1, 199: 1, 600: 1, 0: 1, -1: 1}
    handlers = {
        f"s{i}": f"""
    if (response->http_status(dr, {status}) != ({wrong} ? -EINVAL : 0))
        response->http_status(dr, 500);
    response->end(dr, NULL);"""
        for i, (status, wrong) in enumerate(statuses.items())
    }
    server = start(handlers)
    client = server.open()
    for i, (status, wrong) in enumerate(statuses.items()):
        assert client.ask(f"/web/s{i}").status == (200 if wrong else status)
    server.wait_log(r"service web: response->http_status\(\): the status must be 200 to 599")


ROWS = """
    char row[] = "X-One:  first  ";
    int a = response->http_header(dr, row), b = response->http_header_n(dr, "X-Two: second!!", 13);
    memset(row, '?', sizeof(row) - 1); /* it was copied */
    int c = response->header(dr, "X-Three", "%d-%s", 3, "third"), d = response->header(dr, "X-Four", "gone");
    int e = response->header_remove(dr, "x-FOUR"), f = response->http_content_type(dr, "html");
    response->printf(dr, "%d%d%d%d%d%d", a, b, c, d, e, f);
    response->end(dr, NULL);
"""
WRONG_ROWS = """
    static const char *const rows[] = {"no colon", ": no name", "a b: c", "X: a\\r\\nY: b",
                                       "Transfer-Encoding: chunked", "Content-Length: x", "Connection: x", "Date: x",
                                       ""};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        response->printf(dr, "%d ", response->http_header(dr, rows[i]) == -EINVAL);
    response->printf(dr, "%d", response->http_content_type(dr, "unheard-of") == -ENOENT);
    response->end(dr, NULL);
"""


def test_functions_before_the_head_may_add_headers(serve_services, tmp_path, way):
    before = """
static void add(duda_request_t *dr)
{
    response->header(dr, "X-After", "%d", 1);
    response->http_status(dr, 201);
}
"""
    source = service({"h": 'response->print(dr, "x", 1); response->end(dr, NULL);'}, before)
    source = source.replace("    return 0;\n}\n", "    return router->after_all(add);\n}\n")
    answer = way.start(serve_services, tmp_path, {"web": source}).open().ask("/web/h")
    assert (answer.status, answer["X-After"], answer.body) == (201, "1", b"x")


def test_headers_of_the_response(start):
    answer = start({"h": ROWS}).open().ask("/web/h")
    assert answer.body == b"000000"
    assert fields_of(answer) == [
        ("x-one", "first"),
        ("x-two", "second"),
        ("x-three", "3-third"),
        ("content-type", "text/html; charset=utf-8"),
    ]


def test_headers_that_are_refused(start):
    server = start({"h": WRONG_ROWS})
    answer = server.open().ask("/web/h")
    assert (answer.body, fields_of(answer)) == (b"1 1 1 1 1 1 1 1 1 1", [])
    server.wait_log(r"service web: response->http_header\(\): its name or value is wrong")


def test_a_header_that_closes_the_connection(plain):
    client = plain({"h": 'response->http_header(dr, "Connection: close"); response->end(dr, NULL);'}).open()
    assert client.ask("/web/h").closes
    client.assert_closed()


def test_no_content_type_unless_asked(start):
    answer = start({"h": 'response->printf(dr, "x"); response->end(dr, NULL);'}).open().ask("/web/h")
    assert fields_of(answer) == [] and answer.length == 1


LENGTHS = {
    "sum": ('response->print(dr, "abc", 3); response->printf(dr, "%d", 45);', 5, b"abc45"),
    "wrong": ('response->http_content_length(dr, 3); response->print(dr, "abcdef", 6);', 6, b"abcdef"),
    "omitted": ('response->http_content_length(dr, -1); response->print(dr, "abc", 3);', None, b"abc"),
    "announced": (
        'response->http_content_length(dr, 4); response->send_headers(dr); response->print(dr, "abcd", 4);',
        4,
        b"abcd",
    ),
    "flushed": ('response->print(dr, "ab", 2); response->flush(dr); response->print(dr, "c", 1);', None, b"abc"),
    "line": ('response->http_header(dr, "Content-Length: 2"); response->print(dr, "ab", 2);', 2, b"ab"),
}


def test_content_length(start):
    handlers = {name: text + "response->end(dr, NULL);" for name, (text, _, _) in LENGTHS.items()}
    server = start(handlers)
    client = server.open()
    for name, (_, length, body) in LENGTHS.items():
        answer = client.ask(f"/web/{name}")
        assert (answer.length, answer.body) == (length, body), name
    server.wait_log(r"service web: response->http_content_length\(\): the body has another length")


def test_head_has_the_length_but_no_body(start):
    before = """
static ssize_t never(duda_request_t *dr, char *to, size_t size, void *data)
{
    (void)dr, (void)to, (void)size, (void)data;
    abort();
}
"""
    handlers = {
        "sum": 'response->print(dr, "abc", 3); response->end(dr, NULL);',
        "large": LARGE_PARTS,
        "fixed": "response->http_content_length(dr, 12345); response->end(dr, NULL);",
        "made": "response->generate(dr, never, NULL); response->end(dr, NULL);",
        "flushed": 'response->flush(dr); response->print(dr, "abc", 3); response->end(dr, NULL);',
    }
    client = start(handlers, before=before).open()
    answers = {name: client.ask(f"/web/{name}", method="HEAD") for name in handlers}
    assert {name: (answer.length, answer.body) for name, answer in answers.items()} == {
        "sum": (3, b""),
        "large": (4096 * 5000, b""),
        "fixed": (12345, b""),
        "made": (None, b""),
        "flushed": (None, b""),
    }


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_without_a_body(start, status):
    text = f'response->http_status(dr, {status}); response->print(dr, "abc", 3); response->end(dr, NULL);'
    client = start({"s": text, "n": 'response->print(dr, "next", 4); response->end(dr, NULL);'}).open()
    answer = client.ask("/web/s")
    assert (answer.status, answer.body) == (status, b"")
    assert client.ask("/web/n").body == b"next"


def test_what_is_printed_is_copied(start):
    text = """
    char text[10] = "local";
    int wrong = response->print(dr, text, 5) != 0 || response->print_ref(dr, "kept", 4) != 0;
    wrong += response->print_ref(dr, NULL, 1) != -EINVAL || response->print_ref(dr, text, (size_t)-1) != -EINVAL;
    memcpy(text, "gone!", 5);
    response->printf(dr, "%d", wrong);
    response->end(dr, NULL);"""
    assert start({"a": text}).open().ask("/web/a").body == b"localkept0"


def test_send_headers_twice_and_after_the_body(start):
    text = """
    int a = response->send_headers(dr), b = response->send_headers(dr), c = response->http_status(dr, 404);
    response->printf(dr, "%d %d %d", a, b == -EALREADY, c == -EALREADY);
    response->end(dr, NULL);"""
    late = 'response->print(dr, "x", 1); response->printf(dr, "%d", response->send_headers(dr) == -EALREADY);'
    client = start({"a": text, "b": late + "response->end(dr, NULL);"}).open()
    assert (client.ask("/web/a").body, client.ask("/web/b").body) == (b"0 1 1", b"x1")


RAW = {
    "whole": r'response->printf(dr, "HTTP/1.1 203 Fine\r\nX-A: 1\r\nContent-Length: 4\r\n\r\nbody");',
    "bytes": r"""
    const char *text = "HTTP/1.0 404 No\nX-A: 1\n\nbody";
    for (const char *p = text; *p; p++)
        response->print(dr, p, 1);""",
    "none": r'response->printf(dr, "body");',
    "cut": r'response->printf(dr, "HTTP/1.1 200 OK\r\nX-A: 1\r\n");',
    "file": r'response->sendfile(dr, "/etc/hostname");',
}


def test_a_service_prints_the_head_itself(start):
    server = start({n: f"response->headers_off(dr);\n{text}\nresponse->end(dr, NULL);" for n, text in RAW.items()})
    client = server.open()
    for name, status in {"whole": 203, "bytes": 404}.items():
        answer = client.ask(f"/web/{name}")
        assert (answer.status, answer.body, fields_of(answer)) == (status, b"body", [("x-a", "1")])
    assert [client.ask(f"/web/{name}").status for name in ("none", "cut", "file")] == [500, 500, 500]
    server.wait_log(r"after headers_off\(\) the service must print a status line")


# ── bodies ──

LONG = """
    char *big = malloc(100001);
    memset(big, 'x', 100000);
    big[100000] = 0;
    response->printf(dr, "%s|%s", big, big);
    free(big);
    response->end(dr, NULL);
"""
MANY = """
    for (int i = 0; i < 20000; i++) {
        response->print(dr, "0123456789", 10);
        response->printf(dr, "%06d", i);
    }
    response->end(dr, NULL);
"""
LARGE_PARTS = """
    static char text[4096];
    memset(text, 'y', sizeof(text));
    for (int i = 0; i < 5000; i++)
        if (response->print(dr, text, sizeof(text)) != 0)
            response->http_status(dr, 500);
    response->end(dr, NULL);
"""
COPY = 'char a[] = "abc"; response->write(dr, a, 3); memset(a, 0, 3); response->end(dr, NULL);'


def test_bodies_of_any_length(start):
    client = start({"long": LONG, "many": MANY, "copy": COPY, "large": LARGE_PARTS}).open()
    assert client.ask("/web/long").body == b"x" * 100000 + b"|" + b"x" * 100000
    answer = client.ask("/web/many")
    assert answer.body == b"".join(b"0123456789%06d" % i for i in range(20000)) and answer.length == 320000
    assert client.ask("/web/copy").body == b"abc"
    answer = client.ask("/web/large")
    assert answer.status == 200 and answer.body == b"y" * 4096 * 5000 and answer.length == 4096 * 5000


NO_MEMORY = """
    while (request->header_get(dr, "X-Long")) /* each call takes memory of the request */
        ;
    response->printf(dr, "%d", 1);
    response->end(dr, NULL);
"""


def test_a_response_that_misses_a_part_is_not_sent(start):
    """Even if the service does not look at the results of its calls."""
    server = start({"m": NO_MEMORY})
    assert server.open().ask("/web/m", "X-Long: " + "x" * 100).status == 500
    server.wait_log(r"service web: response->end\(\): a part could not be added, because there was no memory")
    assert server.open().ask("/web/m", "X-Short: x").body == b"1"


FILES = {
    "whole": 'response->sendfile(dr, "a.txt")',
    "part": 'response->sendfile_range(dr, "a.txt", 2, 3)',
    "tail": 'response->sendfile_range(dr, "sub/../a.txt", 7, 0)',
    "end": 'response->sendfile_range(dr, "a.txt", 10, 0)',
    "beyond": 'response->sendfile_range(dr, "a.txt", 11, 0)',
    "longer": 'response->sendfile_range(dr, "a.txt", 8, 3)',
    "negative": 'response->sendfile_range(dr, "a.txt", -1, 1)',
    "missing": 'response->sendfile(dr, "none.txt")',
    "folder": 'response->sendfile(dr, "sub")',
    "above": 'response->sendfile(dr, "../secret.txt")',
    "link": 'response->sendfile(dr, "link.txt")',
    "fifo": 'response->sendfile(dr, "fifo")',
    "absolute": 'response->sendfile(dr, absolute)',
}


def test_files(start, tmp_path):
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    (data / "a.txt").write_text("0123456789")
    (tmp_path / "secret.txt").write_text("secret")
    (data / "link.txt").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(data / "fifo")
    before = f'static const char absolute[] __attribute__((unused)) = "{tmp_path}/secret.txt";\n'
    handlers = {
        n: f'int r = {call}; response->printf(dr, "|%d", r); response->end(dr, NULL);' for n, call in FILES.items()
    }
    client = start(handlers, before=before, keys={"web": {"DataDir": data}}).open()
    found = {name: client.ask(f"/web/{name}").body.decode() for name in FILES}
    assert found == {
        "whole": "0123456789|0",
        "part": "234|0",
        "tail": "789|0",
        "end": "|0",
        "beyond": "|-34",
        "longer": "|-34",
        "negative": "|-34",
        "missing": "|-2",
        "folder": "|-22",
        "above": "|-18",
        "link": "|-18",
        "fifo": "|-22",
        "absolute": "secret|0",
    }


def test_a_large_file_between_texts(start, tmp_path):
    (tmp_path / "data").mkdir()
    content = bytes(range(256)) * 20000
    (tmp_path / "data" / "big").write_bytes(content)
    text = 'response->print(dr, "<", 1); response->sendfile(dr, "big"); response->print(dr, ">", 1);'
    client = start({"f": text + "response->end(dr, NULL);"}, keys={"web": {"DataDir": tmp_path / "data"}}).open()
    answer = client.ask("/web/f")
    assert answer.body == b"<" + content + b">" and answer.length == len(content) + 2


def test_redirects_and_error_pages(start):
    client = start(
        {
            "to": 'response->print(dr, "x", 1); response->redirect(dr, 303, "/elsewhere?a=%20");',
            "wrong": 'if (response->redirect(dr, 200, "/") == -EINVAL) response->error(dr, 403);',
            "e": "response->error(dr, 404);",
            "w": "if (response->error(dr, 99) == -EINVAL) response->error(dr, 503);",
        }
    ).open()
    answer = client.ask("/web/to")
    assert (answer.status, answer["Location"]) == (303, "/elsewhere?a=%20")
    assert [client.ask(f"/web/{name}").status for name in ("wrong", "e", "w")] == [403, 404, 503]
    assert b"404" in client.ask("/web/e").body


WITH_HEADERS = """
    cookie->set(dr, &(struct duda_cookie){.name = "login", .value = "1"});
    response->header(dr, "WWW-Authenticate", "%s", "Bearer");
    response->header(dr, "ETag", "%s", "\\"1\\"");
    response->header(dr, "Location", "%s", "/nowhere");
    response->http_content_type(dr, "json");
    response->http_content_length(dr, 100);
    response->print(dr, "{}", 2);
"""


def test_headers_of_redirects_and_error_pages(start):
    """Those of the body that is not sent are dropped, others stay."""
    ends = {"to": 'response->redirect(dr, 303, "/web/in");', "no": "response->error(dr, 401);"}
    client = start({name: WITH_HEADERS + end for name, end in ends.items()}).open()
    for name, status, location in (("to", 303, "/web/in"), ("no", 401, None)):
        answer = client.ask(f"/web/{name}")
        assert (answer.status, answer["Location"], answer["ETag"]) == (status, location, None)
        assert (answer["Set-Cookie"], answer["WWW-Authenticate"]) == ("login=1; Path=/web", "Bearer")
        assert answer["Content-Type"] == "text/html; charset=utf-8" and b"<html" in answer.body
        assert len([1 for field, _ in answer.fields if field.lower() == "content-type"]) == 1


# ── later answers ──

GENERATE = """
static ssize_t fill(duda_request_t *dr, char *to, size_t size, void *data)
{
    int *left = data;
    (void)dr;
    if (*left == 0) {
        free(left);
        return 0;
    }
    size_t n = (size_t)*left < size ? (size_t)*left : size;
    memset(to, 'g', n);
    *left -= (int)n;
    return (ssize_t)n;
}
"""


def test_a_generator(start):
    text = """
    int *left = malloc(sizeof(*left));
    *left = 3000000;
    response->print(dr, "<", 1);
    response->generate(dr, fill, left);
    response->print(dr, ">", 1);
    response->end(dr, NULL);"""
    assert start({"g": text}, before=GENERATE).open().ask("/web/g").body == b"<" + b"g" * 3000000 + b">"


WAITING_GENERATOR = """
static void wake(duda_request_t *dr, void *data)
{
    (void)data;
    if (dr)
        response->wake(dr);
}

static ssize_t slow(duda_request_t *dr, char *to, size_t size, void *data)
{
    static _Thread_local int n;
    struct duda_ticket ticket;
    (void)size, (void)data;
    n++;
    if (n == 9) {
        n = 0;
        return 0;
    }
    if (n % 2) {
        response->ticket(dr, &ticket);
        response->deliver(&ticket, wake, NULL);
        return -EAGAIN;
    }
    *to = 's';
    return 1;
}
"""


def test_a_generator_that_waits(start):
    text = "response->generate(dr, slow, NULL); response->end(dr, NULL);"
    client = start({"g": text}, before=WAITING_GENERATOR).open()
    assert client.ask("/web/g").body.startswith(b"ssss")


STREAM = """
struct stream { int left; int again; };

static void more(duda_request_t *dr, void *data)
{
    struct stream *s = data;
    char text[8000];
    memset(text, 's', sizeof(text));
    while (s->left > 0) {
        s->left--;
        int r = response->write(dr, text, sizeof(text));
        if (r < 0)
            return;
        if (r == DUDA_AGAIN) {
            s->again++;
            return;
        }
    }
    response->end(dr, NULL);
}

static void free_stream(duda_request_t *dr, void *data)
{
    struct stream *s = data;
    (void)dr;
    fprintf(stderr, "stream left, again %d\\n", s->again);
}

static struct stream the_stream;
"""
BEGIN_STREAM = """
    the_stream = (struct stream){500, 0};
    response->on_writable(dr, more, &the_stream);
    request->on_leave(dr, free_stream, &the_stream);
    response->flush(dr);
    more(dr, &the_stream);
"""


def test_a_stream_waits_for_the_client(start):
    count = 'response->printf(dr, "%d", the_stream.again); response->end(dr, NULL);'
    server = start({"s": BEGIN_STREAM, "n": count}, before=STREAM)
    client = server.open()
    answer = client.ask("/web/s")
    assert answer.body == b"s" * 4000000 and answer.length is None
    assert int(client.ask("/web/n").body) > 40  # 64 KB of 4 MB each time


def test_a_stream_without_an_end(start):
    """Of one worker, which serves others meanwhile; also where the server drops what is written."""
    endless = """
static void write_endlessly(duda_request_t *dr, void *data)
{
    static char text[1000];
    (void)data;
    while (response->write(dr, text, sizeof(text)) == 0)
        ;
}
"""
    text = """
    response->on_writable(dr, write_endlessly, NULL);
    response->flush(dr);
    write_endlessly(dr, NULL);"""
    no_content = 'response->http_status(dr, 204);' + text
    small = 'response->print(dr, "x", 1); response->end(dr, NULL);'
    server = start({"e": text, "n": no_content, "s": small}, before=endless)
    for method, name, status in (("GET", "e", 200), ("HEAD", "e", 200), ("GET", "n", 204)):
        client = server.open()
        if hasattr(client, "begin"):
            assert client.head(client.begin(f"/web/{name}", method=method)).status == status
        else:
            client.send(f"{method} /web/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.head(method).status == status
        assert server.open().ask("/web/s").body == b"x"
        client.reset()


SMALL_PARTS = {
    "p": """
    response->flush(dr);
    for (int i = 0; i < 60000; i++)
        if (response->print(dr, "xyz", 3) < 0)
            return;
    response->end(dr, NULL);""",
    "e": """
    response->sse_begin(dr, 0);
    for (int i = 0; i < 20000; i++)
        if (response->sse_send(dr, NULL, NULL, "%d", i) < 0)
            return;
    response->end(dr, NULL);""",
}


def test_a_stream_of_small_parts(start):
    """They are gathered: each of them alone would take memory of the request."""
    client = start(SMALL_PARTS).open()
    assert client.ask("/web/p").body == b"xyz" * 60000
    assert client.ask("/web/e").body == b"".join(b"data: %d\n\n" % i for i in range(20000))


ECHO = """
static void read_on(duda_request_t *dr, void *data)
{
    (void)data;
    request->resume(dr);
}

static void send_back(duda_request_t *dr, const char *piece, size_t len, bool end, void *data)
{
    (void)data;
    int r = response->write(dr, piece, len);
    if (end)
        response->end(dr, NULL);
    else if (r == DUDA_AGAIN)
        request->pause(dr);
}
"""


def test_a_body_is_sent_back_as_it_arrives(start, way):
    """The client sends no more than it reads: the body stops while 64 KB wait for it."""
    text = "response->on_writable(dr, read_on, NULL); response->flush(dr); request->read(dr, 0, send_back, NULL);"
    client = start({"r": text}, before=ECHO).open()
    body = bytes(i * 7 % 251 for i in range(3_000_000))
    if way.h2:
        answer = client.ask("/web/r", method="POST", body=body)
    else:
        head = b"POST /web/r HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        client.send_in_background(head + body)
        answer = client.response("POST")
    assert answer.body == body


MORE = """
    static char text[8000];
    int first = -1, wrong = 0;
    response->flush(dr);
    for (int i = 0; i < 100; i++) {
        int r = i % 2 ? response->write(dr, text, sizeof(text)) : response->print_ref(dr, text, sizeof(text));
        if (r == DUDA_AGAIN && first < 0)
            first = i;
        wrong += r != (first < 0 ? 0 : DUDA_AGAIN);
    }
    wrong += response->printf(dr, "x") != DUDA_AGAIN || response->sendfile(dr, "/etc/passwd") != DUDA_AGAIN;
    response->printf(dr, "|%d %d", first > 6 && first < 10, wrong);
    response->end(dr, NULL);
"""


def test_more_can_be_added_than_the_client_takes(start):
    """From 64 KB on each function says so, and nothing is lost."""
    answer = start({"m": MORE}).open().ask("/web/m")
    assert answer.body == bytes(800_000) + b"x" + pathlib.Path("/etc/passwd").read_bytes() + b"|1 0"


def test_the_client_leaves_a_stream(plain):
    server = plain({"s": BEGIN_STREAM.replace("500", "50000000")}, before=STREAM)
    with server.open(rcvbuf=4096) as client:
        client.send("GET /web/s HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.head()
    server.wait_log("stream left, again [1-9]")


JOB = """
struct job { struct duda_ticket ticket; int n; };

static void answer(duda_request_t *dr, void *data)
{
    struct job *job = data;
    if (dr) {
        response->printf(dr, "from a thread %d", job->n);
        response->end(dr, NULL);
    } else {
        fprintf(stderr, "no request for %d\\n", job->n);
    }
    free(job);
}
"""
TICKET = JOB + """
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static struct job *waiting[64];
static int n_waiting, serial;

static void *work(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (n_waiting == 0)
            pthread_cond_wait(&posted, &lock);
        struct job *job = waiting[--n_waiting];
        if (!job)
            break;
        pthread_mutex_unlock(&lock);
        if (response->deliver(&job->ticket, answer, job) < 0)
            free(job);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void post(struct job *job)
{
    pthread_mutex_lock(&lock);
    waiting[n_waiting++] = job;
    pthread_cond_signal(&posted);
    pthread_mutex_unlock(&lock);
}

static pthread_t thread;

__attribute__((visibility("default"))) void duda_exit(void)
{
    post(NULL);
    pthread_join(thread, NULL);
}

__attribute__((unused)) static struct job *held;
"""
ASK_THREAD = """
    struct job *job = calloc(1, sizeof(*job));
    job->n = ++serial;
    response->ticket(dr, &job->ticket);
    post(job);
"""
HOLD = """
    serial++;
    held = calloc(1, sizeof(*held));
    held->n = 77;
    response->ticket(dr, &held->ticket);
    fprintf(stderr, "held\\n");
"""
RELEASE = """
    post(held);
    response->end(dr, NULL);
"""


def with_thread(source, function="work"):
    main = "int duda_main(void)\n{"
    return source.replace(main, f"{main}\n    pthread_create(&thread, NULL, {function}, NULL);")


def test_a_thread_answers(serve_services, tmp_path, way):
    source = with_thread(service({"t": ASK_THREAD}, TICKET))
    server = way.start(serve_services, tmp_path, {"web": source})
    client = server.open()
    for n in range(1, 20):
        assert client.ask("/web/t").body == b"from a thread %d" % n


ASK_WORKER = """
    struct job *job = calloc(1, sizeof(*job));
    job->n = worker->index();
    response->ticket(dr, &job->ticket);
    event->post(worker->index() == 0, hand_back, job);
"""
HAND_BACK = """
static void hand_back(void *data)
{
    struct job *job = data;
    job->n = 10 * job->n + worker->index();
    if (response->deliver(&job->ticket, answer, job) < 0)
        free(job);
}
"""


def test_another_worker_answers(start):
    """The ticket goes from worker 0 to worker 1, or the reverse, and the answer is sent where the request is."""
    server = start({"w": ASK_WORKER}, {"Workers": 2}, before=JOB + HAND_BACK)
    bodies = {server.open().ask("/web/w").body for _ in range(20)}
    assert bodies <= {b"from a thread 1", b"from a thread 10"} and bodies


def test_a_thread_answers_a_request_that_has_ended(serve_services, tmp_path):
    source = with_thread(service({"hold": HOLD, "free": RELEASE}, TICKET))
    server = WAYS["h2"].start(serve_services, tmp_path, {"web": source})
    client = server.open()
    number = client.begin("/web/hold")
    server.wait_log("^held$")
    client.cancel(number)
    client.ask("/web/free")
    server.wait_log("no request for 77")


def test_threads_of_a_service_get_no_signals(serve_services, tmp_path):
    """SIGTERM is the program's: it would end the process if a thread that has not blocked it gets it."""
    source = with_thread(service({"t": ASK_THREAD}, TICKET))
    server = WAYS["h1"].start(serve_services, tmp_path, {"web": source})
    masks = {}
    for thread, status in read_threads(server.pid, "status").items():
        if thread != server.pid:  # sigwait() of the main thread shows them as not blocked
            masks[thread] = re.search(r"^SigBlk:\s+(\w+)", status, re.M)[1]
    assert {t: mask for t, mask in masks.items() if not int(mask, 16) & 1 << (signal.SIGTERM - 1)} == {}


def test_calls_under_way_when_the_service_ends(serve_services, tmp_path):
    """A flood of calls does not outlive the service: the process ends in order, and reports nothing."""
    text = """
static void count(duda_request_t *dr, void *data)
{
    (void)dr, (void)data;
}
static struct duda_ticket ticket;
static _Atomic int begun, over;
static void *flood(void *arg)
{
    (void)arg;
    while (!begun)
        sched_yield();
    while (!over)
        if (response->deliver(&ticket, count, NULL) < 0)
            break;
    return NULL;
}
static pthread_t thread;
__attribute__((visibility("default"))) void duda_exit(void)
{
    begun = over = 1;
    pthread_join(thread, NULL);
    fprintf(stderr, "too late: %d\\n", response->deliver(&ticket, count, NULL) == -ESRCH);
}
"""
    source = service({"b": "response->ticket(dr, &ticket); begun = 1; response->end(dr, NULL);"}, text)
    source = "#include <sched.h>\n" + with_thread(source, "flood")
    server = WAYS["h1"].start(serve_services, tmp_path, {"web": source})
    assert server.open().ask("/web/b").status == 200
    server.stop()
    assert "too late: 1" in server.log


# ── the end of requests ──

ENDS = """
#define UNUSED __attribute__((unused))
UNUSED static void on_leave(duda_request_t *dr, void *data)
{
    fprintf(stderr, "leave %s %s\\n", (const char *)data, request->path(dr));
}

UNUSED static void on_done(duda_request_t *dr)
{
    int r = response->print(dr, "x", 1);
    fprintf(stderr, "done %s %d\\n", request->path(dr), r == -EALREADY);
}

UNUSED static duda_request_t *kept;
"""


def test_done_callbacks_and_leaving(start):
    server = start(
        {
            "end": 'request->on_leave(dr, on_leave, "never"); response->end(dr, on_done);',
            "set": "response->on_done(dr, on_done); response->finalize(dr, NULL);",
            "error": """
    request->on_leave(dr, on_leave, "never");
    response->on_done(dr, on_done);
    response->error(dr, 404);""",
        },
        before=ENDS,
    )
    client = server.open()
    for name in ("end", "set", "error"):
        client.ask(f"/web/{name}")
        server.wait_log(f"done /web/{name} 1")
    assert "leave" not in server.log


STATES = {
    "wait": "response->wait(dr);",
    "body": "request->read(dr, 0, on_piece, NULL);",
    "paused": "request->read(dr, 0, on_piece, NULL); request->pause(dr);",
    "events": "response->sse_begin(dr, 0);",
    "stream": "response->on_writable(dr, write_much, NULL); response->flush(dr); write_much(dr, NULL);",
    "generator": "response->generate(dr, generate_much, NULL); response->end(dr, NULL);",
    "asleep": "response->flush(dr); response->generate(dr, generate_nothing, NULL); response->end(dr, NULL);",
}
IN_STATE = """
static void on_piece(duda_request_t *dr, const char *piece, size_t len, bool end, void *data)
{
    (void)dr, (void)piece, (void)len, (void)end, (void)data;
}

static void write_much(duda_request_t *dr, void *data)
{
    static char text[8000];
    (void)data;
    while (response->write(dr, text, sizeof(text)) == 0)
        ;
}

static ssize_t generate_much(duda_request_t *dr, char *to, size_t size, void *data)
{
    (void)dr, (void)data;
    memset(to, 'g', size);
    return (ssize_t)size;
}

static ssize_t generate_nothing(duda_request_t *dr, char *to, size_t size, void *data)
{
    (void)dr, (void)to, (void)size, (void)data;
    return -EAGAIN;
}
"""


@pytest.mark.parametrize("ends", ["client", "server"])
def test_a_connection_that_ends_in_any_state(start, way, ends):
    """The client resets it, or the server stops: each request is notified, once."""
    tell = """
    request->on_leave(dr, on_leave, "in");
    response->on_done(dr, on_done);
    fprintf(stderr, "%s\\n", request->path(dr));
    """
    handlers = {f"r{name}": tell + text for name, text in STATES.items()}
    server = start(handlers, {"ShutdownTimeout": "100ms", "Workers": 1}, before=ENDS + IN_STATE)
    for name in STATES:
        client = server.open(rcvbuf=4096)
        if way.h2:
            client.more(client.begin(f"/web/r{name}", method="POST", end=False), b"abc")
        else:
            client.send(f"POST /web/r{name} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
        server.wait_log(f"^/web/r{name}")
        if ends == "client":
            client.reset()
            server.wait_log(f"leave in /web/r{name}")
    if ends == "server":
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
    server.stop()
    for name in STATES:
        assert len(re.findall(f"leave in /web/r{name}$", server.log, re.M)) == 1, name
        assert len(re.findall(f"done /web/r{name} ", server.log, re.M)) == 1, name


@pytest.mark.parametrize("name", ["collected", "rpieces"])
def test_a_body_that_stalls_gets_408(start, way, name):
    handlers = {"collected": "(void)dr; abort();", "rpieces": READ}
    server = start(handlers, {"BodyTimeout": "200ms"}, before=COUNT)
    client = server.open()
    if way.h2:
        number = client.begin(f"/web/{name}", method="POST", end=False)
        client.more(number, b"abc")
        assert client.response(number).status == 408
    else:
        client.send(f"POST /web/{name} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
        assert client.response().status == 408
    if name == "rpieces":
        server.wait_log("left /web/rpieces")


ENDED_EARLY = """
    static char text[1000000];
    request->on_leave(dr, on_leave, "early");
    for (int i = 0; i < 50; i++)
        response->print_ref(dr, text, sizeof(text));
    response->end(dr, on_done);
"""


def test_the_client_leaves_after_the_end(start, way):
    """The service has ended the response, but most of it was not sent: both functions are called, in this order."""
    server = start({"b": ENDED_EARLY}, before=ENDS)
    client = server.open(rcvbuf=4096)
    if way.h2:
        number = client.begin("/web/b")
        client.head(number)
        client.cancel(number)
    else:
        client.send("GET /web/b HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.head()
        client.close()
    server.wait_log("done /web/b 1")
    assert server.log.index("leave early /web/b") < server.log.index("done /web/b 1")


def test_handler_timeout_answers_instead(start):
    server = start(
        {
            "wait": """
    kept = dr;
    response->wait(dr);
    request->on_leave(dr, on_leave, "late");
    response->on_done(dr, on_done);""",
            "valid": 'response->printf(dr, "%d", request->validate_request(kept)); response->end(dr, NULL);',
        },
        {"HandlerTimeout": "200ms"},
        before=ENDS,
    )
    assert server.open().ask("/web/wait").status == 503
    server.wait_log("leave late /web/wait")
    server.wait_log("done /web/wait 1")
    assert server.open().ask("/web/valid").body == b"0"


def test_calls_after_the_end(start):
    server = start(
        {
            "two": """
    int a = response->end(dr, NULL), b = response->end(dr, NULL), c = response->printf(dr, "late");
    int d = response->http_status(dr, 404), e = response->error(dr, 500), f = response->flush(dr);
    fprintf(stderr, "results %d %d %d %d %d %d\\n", a, b, c, d, e, f);""",
        },
        before="",
    )
    client = server.open()
    for _ in range(2):
        answer = client.ask("/web/two")
        assert (answer.status, answer.body) == (200, b"")
    server.wait_log(r"results 0 -114 -114 -114 -114 -114", 2)
    calls = re.findall(r"warn  service web: response->(\w+)\(\): the (?:response|head) ", server.log)
    assert calls == ["end", "printf", "http_status", "error", "flush"], server.log  # each once, of two requests


def test_validate(plain):
    server = plain(
        {
            "v": """
    int x = 0;
    response->printf(dr, "%d%d%d%d", request->validate_request(dr), request->validate_request((duda_request_t *)&x),
                     request->validate_request(NULL), request->validate_socket(-1));
    int found = 0;
    for (int fd = 0; fd < 100; fd++)
        found += request->validate_socket(fd);
    response->printf(dr, "%d", found);
    response->end(dr, NULL);"""
        }
    )
    assert server.open().ask("/web/v").body == b"10001"


@pytest.mark.skipif(not build.SANITIZED or build.PRESET != "asan", reason="AddressSanitizer finds it")
def test_a_use_after_the_end_is_found(serve_services, tmp_path):
    handlers = {"keep": "kept = dr; response->end(dr, NULL);", "use": "response->print(kept, \"x\", 1); (void)dr;"}
    server = WAYS["h1"].start(serve_services, tmp_path, {"web": service(handlers, ENDS)})
    client = server.open()
    client.ask("/web/keep")
    client.send("GET /web/use HTTP/1.1\r\nHost: localhost\r\n\r\n")
    server.wait_log("use-after-poison")
    server.process.wait(60)
    server.finished = True


@pytest.mark.budget  # of the builds that ./dev test makes, the one for budgets does not stop at it
def test_a_use_after_the_end_is_an_error(plain):
    handlers = {
        "keep": "kept = dr; response->end(dr, NULL);",
        "use": """
    response->printf(dr, "%d", response->print(kept, "x", 1) == -ESTALE);
    response->end(dr, NULL);""",
    }
    server = plain(handlers, before=ENDS)
    client = server.open()
    client.ask("/web/keep")
    assert client.ask("/web/use").body == b"1"
    server.wait_log(r"service web: response->print\(\): the request has ended")


# ── server-sent events ──

EVENTS = """
    const char *last = request->last_event_id(dr);
    response->sse_begin(dr, 0);
    response->sse_retry(dr, 3000);
    response->sse_send(dr, "tick", "7", "after %s\\nsecond", last ? last : "none");
    response->sse_send(dr, NULL, NULL, "plain");
    int a = response->sse_send(dr, "a\\nb", NULL, "x"), b = response->sse_send(dr, NULL, "a\\rb", "x");
    response->sse_send(dr, NULL, NULL, "%d", a == -EINVAL && b == -EINVAL);
    response->end(dr, NULL);
"""


def test_server_sent_events(start):
    answer = start({"e": EVENTS}).open().ask("/web/e", "Last-Event-ID: 6")
    assert fields_of(answer) == [("content-type", "text/event-stream"), ("cache-control", "no-store")]
    assert answer.body.decode() == (
        "retry: 3000\n\nevent: tick\nid: 7\ndata: after 6\ndata: second\n\ndata: plain\n\ndata: 1\n\n"
    )


def test_events_without_a_beginning(plain):
    text = 'response->printf(dr, "%d", response->sse_send(dr, NULL, NULL, "x") == -EINVAL); response->end(dr, NULL);'
    assert plain({"e": text}).open().ask("/web/e").body == b"1"


def test_heartbeats_find_a_client_that_has_left(plain):
    server = plain({"e": 'response->sse_begin(dr, 1); request->on_leave(dr, on_leave, "events");'}, before=ENDS)
    with server.open() as client:
        client.send("GET /web/e HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.head()
        assert client.exactly(8) == b"3\r\n:\n\n\r\n"
    server.wait_log("leave events /web/e")


def test_a_stream_that_is_reset(serve_services, tmp_path):
    handlers = {"e": 'response->sse_begin(dr, 0); request->on_leave(dr, on_leave, "reset");'}
    server = WAYS["h2"].start(serve_services, tmp_path, {"web": service(handlers, ENDS)})
    client = server.open()
    number = client.begin("/web/e")
    client.head(number)
    client.cancel(number)
    server.wait_log("leave reset /web/e")


def test_a_response_that_is_cut(start, way):
    text = 'response->print(dr, "ab", 2); response->flush(dr); response->abort(dr); request->on_leave(dr, NULL, NULL);'
    client = start({"a": text}).open()
    with pytest.raises(StreamReset if way.h2 else (AssertionError, OSError)):
        client.ask("/web/a")


ROWS_OF_TEXT = """
    response->http_content_type(dr, "html");
    FLUSH
    for (int i = 0; i < 20000; i++)
        if (response->printf(dr, "row %d\\n", i) < 0)
            return;
    response->end(dr, NULL);
"""


@pytest.mark.skipif(not (build.PLUGINS / "compress.so").exists(), reason=f"{build.PRESET} has no plugin compress")
def test_responses_pass_through_other_plugins(start, tmp_path):
    """They are compressed, whole or in a stream, and logged."""
    log = tmp_path / "access.log"
    calls = {"whole": "", "stream": "response->flush(dr);"}
    handlers = {name: ROWS_OF_TEXT.replace("FLUSH", call) for name, call in calls.items()}
    text = section("COMPRESS", {}) + section("LOGGER", {"AccessLog": log})
    server = start(handlers, text=text)
    client, body = server.open(), b"".join(b"row %d\n" % i for i in range(20000))
    for name in handlers:
        assert client.ask(f"/web/{name}").body == body
        packed = client.ask(f"/web/{name}", "Accept-Encoding: gzip")
        assert packed["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == body
    server.stop()
    assert len(re.findall('"GET /web/(?:whole|stream) [^"]*" 200 ', log.read_text())) == 4


def test_many_clients_at_once(start):
    """Handlers of several workers, and their requests, do not disturb each other."""
    server = start({"show": SHOW, "many": MANY}, {"Workers": 3})
    failures = []

    def ask():
        try:
            client = server.open()
            for i in range(20):
                assert f"/web/show?{i}|{i}|".encode() in client.ask(f"/web/show?{i}").body
                assert len(client.ask("/web/many").body) == 320000 if i % 10 == 0 else True
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    await_true(lambda: server.alive)
