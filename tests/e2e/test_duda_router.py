# SPDX-License-Identifier: Apache-2.0
"""Routes of web services: which function gets a request, and what it can read of its path, query, form and cookies."""

import re

import pytest

from harness.content import populate
from harness.services import HEAD, needs_duda
from harness.ways import WAYS

pytestmark = needs_duda

every_way = pytest.mark.parametrize("way", WAYS, indirect=True)

# handlers that say which one was called, and with what
TELL = (
    HEAD
    + """
#define TELL(fn) \\
    static void fn(duda_request_t *dr) \\
    { \\
        response->printf(dr, #fn); \\
        for (int i = 0; i < param->count(dr); i++) \\
            response->printf(dr, " %s=%s", param->name(dr, i), param->get_id(dr, i)); \\
        response->end(dr, NULL); \\
    }

"""
)

ROUTES = (
    TELL
    + """
TELL(front) TELL(list) TELL(make) TELL(me) TELL(user) TELL(drop) TELL(files) TELL(whole) TELL(folder) TELL(put_folder)
TELL(any) TELL(any_get) TELL(several) TELL(change)

static void pattern(duda_request_t *dr)
{
    response->printf(dr, "%s", router->pattern(dr));
    response->end(dr, NULL);
}

int duda_main(void)
{
    router->get("/files/" "*path", files);
    router->get("/users/:id", user);
    router->delete("/users/:id", drop);
    router->get("/users/me", me);
    router->get("/users", list);
    router->post("/users", make);
    router->patch("/users/:id", change);
    router->get("/", front);
    router->get("/folder/", folder);
    router->put("/folder/", put_folder);
    router->any("/any", any);
    router->get("/any", any_get);
    router->add("PATCH, PUT", "/several", several);
    router->get("/pattern/:a/:b", pattern);
    router->get("/whole", whole);
    return 0;
}
"""
)


@pytest.fixture
def way(request):
    """HTTP/1.1, unless the test is marked by every_way."""
    return WAYS[getattr(request, "param", "h1")]


@pytest.fixture
def ask(serve_services, tmp_path, way):
    """Starts the service `svc` from a source, and asks it."""

    def start(source, **rest):
        server = way.start(serve_services, tmp_path, {"svc": source}, **rest)
        client = server.open()

        def one(target, *fields, **more):
            return client.ask("/svc" + target, *fields, **more)

        one.server = server
        return one

    return start


def tell(response):
    return response.status, response.body.decode()


# method, target, what the handler says
FOUND = [
    ("GET", "/", "front"),
    ("GET", "/?x=1", "front"),
    ("GET", "/users", "list"),
    ("POST", "/users", "make"),
    ("GET", "/users/me", "me"),
    ("DELETE", "/users/me", "drop id=me"),
    ("GET", "/users/7", "user id=7"),
    ("GET", "/users/a%20b+c", "user id=a b+c"),
    ("PATCH", "/users/7", "change id=7"),
    ("GET", "/files/", "files path="),
    ("GET", "/files/a/b%20c/", "files path=a/b c/"),
    ("GET", "/any", "any_get"),
    ("LOCK", "/any", "any"),
    ("PATCH", "/any", "any"),
    ("PUT", "/several", "several"),
    ("PATCH", "/several", "several"),
    ("GET", "/pattern/1/2", "/pattern/:a/:b"),
]


@pytest.fixture
def routes(ask):
    return ask(ROUTES)


@every_way
def test_a_route_gets_its_requests(routes):
    for method, target, body in FOUND:
        assert tell(routes(target, method=method)) == (200, body), (method, target)


@every_way
def test_paths_and_methods_without_a_route(routes):
    for target in ["/nothing", "/users/7/more", "/users/", "/users/%2e", "/pattern/1", "/users/me/"]:
        assert routes(target).status == 404, target
    for method, target, allow in [
        ("PUT", "/users", "GET, HEAD, POST, OPTIONS"),
        ("POST", "/users/me", "GET, HEAD, DELETE, PATCH, OPTIONS"),
        ("GET", "/several", "PUT, PATCH, OPTIONS"),
    ]:
        answer = routes(target, method=method)
        assert (answer.status, answer["Allow"]) == (405, allow)
        answer = routes(target, method="OPTIONS")
        assert (answer.status, answer["Allow"], answer.body) == (204, allow, b"")
    assert routes("/users", method="LOCK").status == 501


@every_way
def test_head_is_answered_by_the_route_for_get(routes):
    answer = routes("/users/7", method="HEAD")
    assert (answer.status, answer["Content-Length"], answer.body) == (200, "9", b"")


@every_way
def test_a_folder_without_its_slash_is_redirected(routes):
    answer = routes("/folder?a=%20b")
    assert (answer.status, answer["Location"]) == (301, "/svc/folder/?a=%20b")
    answer = routes("/folder", method="PUT")
    assert (answer.status, answer["Location"]) == (308, "/svc/folder/")
    answer = routes("")
    assert (answer.status, answer["Location"]) == (301, "/svc/")
    assert routes("/files")["Location"] == "/svc/files/"
    assert routes("/whole/").status == 404


def test_a_pattern_that_is_wrong_or_there_is_logged_and_adds_nothing(ask):
    routes = ask(
        TELL
        + """
TELL(first) TELL(second)
int duda_main(void)
{
    if (!router->get("/a/:b", first) || router->get("/a/:c", second) || router->get("x", second))
        return 1;
    return router->before(router->get("//", second), NULL) || router->limit(NULL, 1) ? 0 : 1;
}
"""
    )
    assert tell(routes("/a/1")) == (200, "first b=1")
    for sentence in [
        'router->get("/a/:c") adds no route: there is a route for its method and pattern already',
        'router->get("x") adds no route: it does not begin with "/"',
        'router->get("//") adds no route: it has an empty segment',
    ]:
        routes.server.wait_log(re.escape("error service svc: " + sentence))


def test_a_service_that_does_not_start_says_which_route_was_refused(ask):
    source = HEAD + 'int duda_main(void) { return router->add("GET, FETCH", "/", NULL) ? 0 : 1; }'
    svc = ask(source)
    assert svc("/").status == 503
    svc.server.wait_log(r'service svc: router->add\("GET, FETCH"\) adds no route: it knows GET, HEAD, POST')
    svc.server.wait_log(r"duda_main\(\) has returned 1")


def test_routes_are_for_duda_main(ask):
    routes = ask(
        TELL
        + """
static void late(duda_request_t *dr)
{
    struct duda_route *r = router->get("/more", late);
    response->printf(dr, "%s %d", r ? "added" : "refused", router->before_all(NULL));
    response->end(dr, NULL);
}
int duda_main(void)
{
    return router->get("/late", late) ? 0 : 1;
}
"""
    )
    assert tell(routes("/late")) == (200, "refused -1")
    routes.server.wait_log(r"service svc: router->get\(\): it works only in duda_main\(\); the call did nothing")


# ── callbacks ──

CALLBACKS = (
    HEAD
    + """
static void say(duda_request_t *dr, const char *text)
{
    response->printf(dr, "%s", text);
    response->end(dr, NULL);
}
static int add_a(duda_request_t *dr) { return response->printf(dr, "a"); }
static int add_b(duda_request_t *dr) { return response->printf(dr, "b"); }
static int add_c(duda_request_t *dr) { return response->printf(dr, "c"); }
static int refuse(duda_request_t *dr)
{
    if (strcmp(param->get(dr, "key"), "secret") == 0)
        return 0;
    response->http_status(dr, 403);
    say(dr, "no");
    return 1;
}
static int refuse_carelessly(duda_request_t *dr)
{
    response->http_status(dr, 403);
    say(dr, "no");
    return 0;
}
static void must_not_run(duda_request_t *dr) { (void)dr; abort(); }
static int proceed(duda_request_t *dr)
{
    int first = router->next(dr), again = router->next(dr);
    response->printf(dr, "%d%d", first, again);
    return 1;
}
static void end(duda_request_t *dr) { say(dr, "."); }
static void teapot(duda_request_t *dr)
{
    response->http_status(dr, 418);
    response->header(dr, "X-After", "%s", "yes");
}
static void accepted(duda_request_t *dr)
{
    response->http_status(dr, 202);
    response->header(dr, "X-First", "%s", "all");
}
/* What the callbacks before it have left. */
static void report_order(duda_request_t *dr)
{
    response->header(dr, "X-Order", "%s", "last");
    response->header_remove(dr, "X-First");
}
static void missing(duda_request_t *dr) { say(dr, "not here"); }
static void failed(duda_request_t *dr, int status)
{
    response->printf(dr, "error %d", status);
    response->end(dr, NULL);
}

int duda_main(void)
{
    struct duda_route *r = router->get("/order", end);
    router->before(r, add_c);
    router->before_all(add_a);
    router->before_all(add_b);
    r = router->get("/guarded/:key", end);
    router->before(r, refuse);
    router->before(r, add_c);
    router->before(router->get("/next", end), proceed);
    router->before(router->get("/careless", must_not_run), refuse_carelessly);
    r = router->get("/after", end);
    router->after(r, teapot);
    router->after(r, report_order);
    router->limit(router->post("/small", end), 10);
    if (getenv("DUDA_TEST_PAGES")) {
        router->after_all(accepted);
        router->not_found(missing);
        router->error(failed);
    }
    return 0;
}
"""
)


@every_way
def test_callbacks_before_the_handler_run_in_order_and_may_respond(ask):
    svc = ask(CALLBACKS)
    assert tell(svc("/order")) == (200, "abc.")
    assert tell(svc("/guarded/secret")) == (200, "abc.")
    assert tell(svc("/guarded/x")) == (403, "abno")
    assert tell(svc("/careless")) == (403, "abno")
    assert tell(svc("/next")) == (200, "ab0-22.")


ASYNC = (
    HEAD
    + """
#include <errno.h>
static void finish(void *data)
{
    duda_request_t *dr = data;
    if (!request->validate_request(dr))
        return;
    if (qs->get(dr, "refuse")) {
        response->http_status(dr, 403);
        response->end(dr, NULL);
    } else {
        router->next(dr);
    }
}
static int ask_someone(duda_request_t *dr)
{
    event->timer(20, finish, dr);
    return 1;
}
static int add_b(duda_request_t *dr) { return response->printf(dr, "b"); }
static void on_piece(duda_request_t *dr, const char *piece, size_t len, bool end, void *data)
{
    (void)dr, (void)piece, (void)len, (void)end, (void)data;
    abort();
}
static int look_early(duda_request_t *dr)
{
    return form->count(dr) || request->read(dr, 0, on_piece, NULL) != -EINVAL; /* the body has not been read */
}
static void end(duda_request_t *dr)
{
    response->printf(dr, "%s", form->get(dr, "a") ? form->get(dr, "a") : "-");
    response->printf(dr, " %d", router->next(dr));
    response->end(dr, NULL);
}
int duda_main(void)
{
    router->before_all(look_early);
    router->before_all(ask_someone);
    struct duda_route *r = router->any("/", end);
    router->before(r, ask_someone);
    return router->before(r, add_b);
}
"""
)


def test_a_callback_lets_the_request_continue_later(ask):
    svc = ask(ASYNC)
    assert tell(svc("/")) == (200, "b- -22")
    assert tell(svc("/", FORM, method="POST", body=b"a=1")) == (200, "b1 -22")
    assert svc("/?refuse=1").status == 403
    with svc.server.connect() as client:  # leaves while the timer runs
        client.send(b"GET /svc/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert tell(svc("/")) == (200, "b- -22")


@every_way
def test_callbacks_after_the_handler_may_change_the_head(ask):
    svc = ask(CALLBACKS)
    answer = svc("/after")
    assert (answer.status, answer["X-After"], answer["X-Order"]) == (418, "yes", "last")
    assert svc("/order").status == 200


@every_way
def test_pages_of_the_service(ask):
    svc = ask(CALLBACKS, env={"DUDA_TEST_PAGES": "1"})
    assert tell(svc("/order")) == (202, "abc.")
    answer = svc("/after")  # after_all() comes first: what the route sets stays
    assert (answer.status, answer["X-First"], answer["X-After"]) == (418, None, "yes")
    assert svc("/order")["X-First"] == "all"
    assert tell(svc("/nothing")) == (202, "not here")
    answer = svc("/order", method="POST")
    assert (*tell(answer), answer["Allow"]) == (202, "error 405", "GET, HEAD, OPTIONS")
    assert tell(svc("/order", method="LOCK")) == (202, "error 501")
    assert tell(svc("/small", method="POST", body=b"x" * 11)) == (202, "aberror 413")


@every_way
def test_pages_of_the_host(ask):
    svc = ask(CALLBACKS)
    assert svc("/nothing").status == 404
    assert b"<html" in svc("/nothing").body.lower()
    assert svc("/order", method="POST").status == 405


# ── files ──

FILES = (
    TELL
    + """
TELL(page) TELL(upload) TELL(api)
static void missing(duda_request_t *dr)
{
    response->printf(dr, "missing");
    response->end(dr, NULL);
}
int duda_main(void)
{
    router->get("/page", page);
    router->post("/", upload);
    router->any("/api/:x", api);
    if (getenv("DUDA_TEST_PAGES"))
        router->not_found(missing);
    return 0;
}
"""
)


@every_way
def test_the_files_of_a_service_come_behind_its_routes(ask, tmp_path):
    files = populate(tmp_path / "html", {"index.html": b"front", "page": b"file", "api/a": b"file", "a.txt": b"text"})
    svc = ask(FILES, keys={"svc": {"DocumentRoot": files}})
    assert tell(svc("/")) == (200, "front")
    assert tell(svc("/", method="POST")) == (200, "upload")
    assert tell(svc("/page")) == (200, "page")
    assert tell(svc("/api/a")) == (200, "api x=a")
    assert tell(svc("/a.txt")) == (200, "text")
    assert svc("/none").status == 404
    assert svc("/page", method="PUT").status == 405


def test_the_files_of_the_host_come_behind_a_root_service(ask):
    svc = ask(FILES, keys={"svc": {"Root": "On"}})
    client = svc.server.connect()
    assert tell(client.ask("/page")) == (200, "page")
    assert client.ask("/hello.txt").body == b"Hello, world\n"
    assert client.ask("/api", method="PUT").status != 200
    assert client.ask("/none").status == 404
    svc = ask(FILES, keys={"svc": {"Root": "On"}}, env={"DUDA_TEST_PAGES": "1"})
    assert tell(svc.server.connect().ask("/hello.txt")) == (404, "missing")


# ── bodies ──

BODIES = (
    HEAD
    + """
#include <stdio.h>
static void show(duda_request_t *dr)
{
    response->printf(dr, "%d pairs: %s %s", form->count(dr), form->get(dr, "a") ? form->get(dr, "a") : "-",
                     form->get(dr, "b") ? form->get(dr, "b") : "-");
    response->end(dr, NULL);
}
static void now(duda_request_t *dr)
{
    response->printf(dr, "now %d", form->count(dr));
    response->end(dr, NULL);
}
static void measure(duda_request_t *dr)
{
    const char *a = form->get(dr, "a");
    response->printf(dr, "%d pairs: %zu", form->count(dr), a ? strlen(a) : 0);
    response->header(dr, "X-Pairs", "%d", form->count(dr));
    response->end(dr, NULL);
}
static void left(duda_request_t *dr, void *data) { (void)data; fprintf(stderr, "left %s\\n", request->path(dr)); }
static void never(duda_request_t *dr) { request->on_leave(dr, left, NULL); }
static void body(duda_request_t *dr)
{
    unsigned long len = 0;
    const char *data = request->get_data(dr, &len);
    response->printf(dr, "%lu %s", len, data ? data : "none");
    response->end(dr, NULL);
}
static int stop(duda_request_t *dr)
{
    response->end(dr, NULL);
    return 1;
}
int duda_main(void)
{
    router->post("/show", show);
    router->limit(router->post("/small", show), 10);
    router->limit(router->post("/large", measure), 2000000);
    router->limit(router->post("/wide", show), 2000000);
    router->any("/body", body);
    struct duda_route *pieces = router->post("/pieces", now);
    router->stream_body(pieces);
    router->limit(pieces, 10);
    router->before(router->post("/stop", show), stop);
    router->timeout(router->any("/never", never), 20);
    router->timeout(router->any("/quick", show), 60000);
    return 0;
}
"""
)
FORM = "Content-Type: application/x-www-form-urlencoded"


@every_way
def test_a_form_is_read_before_the_handler_runs(ask):
    svc = ask(BODIES)
    assert tell(svc("/show", FORM, method="POST", body=b"a=1+2&b=%C3%BC")) == (200, "2 pairs: 1 2 ü")
    assert tell(svc("/show", FORM + "; charset=utf-8", method="POST", body=b"a=1")) == (200, "1 pairs: 1 -")
    assert tell(svc("/show", FORM.upper(), method="POST", body=b"a=1")) == (200, "1 pairs: 1 -")
    assert tell(svc("/show", "Content-Type: text/plain", method="POST", body=b"a=1")) == (200, "0 pairs: - -")
    assert tell(svc("/show", method="POST", body=b"a=1")) == (200, "0 pairs: - -")
    assert tell(svc("/show", FORM, "Content-Length: 0", method="POST")) == (200, "0 pairs: - -")
    assert tell(svc("/show", FORM, method="POST", body=b"a=%00")) == (200, "-22 pairs: - -")
    assert tell(svc("/show", FORM, method="POST", body=b"a&" * 1001)) == (200, "-7 pairs: - -")


@pytest.mark.parametrize("size", [1, 4090, 100_000, 200_000, 250_000, 262_000, 1_000_000])
def test_a_large_form(ask, size):
    answer = ask(BODIES)("/large", FORM, method="POST", body=b"b=1&a=" + b"x" * size)
    assert (*tell(answer), answer["X-Pairs"]) == (200, f"2 pairs: {size}", "2")


@every_way
def test_a_form_that_is_larger_than_the_memory_of_a_request(ask):
    svc = ask(BODIES)
    body = b"b=end&x=" + b"%20" * 400_000 + b"&a=begin"
    assert tell(svc("/wide", FORM, method="POST", body=body)) == (200, "3 pairs: begin end")


@every_way
def test_the_body_is_handed_over(ask):
    svc = ask(BODIES)
    assert tell(svc("/body", method="PUT", body=b"abc")) == (200, "3 abc")
    assert tell(svc("/body")) == (200, "0 none")


def test_a_body_in_small_pieces(ask):
    svc = ask(BODIES)
    with svc.server.connect() as client:
        client.send(b"POST /svc/show HTTP/1.1\r\nHost: localhost\r\n" + FORM.encode() + b"\r\n")
        client.send(b"Transfer-Encoding: chunked\r\n\r\n")
        for piece in (b"a=1", b"&b", b"=2"):
            client.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        client.send(b"0\r\n\r\n")
        assert tell(client.response("POST")) == (200, "2 pairs: 1 2")


def test_the_limit_of_a_route(ask):
    svc = ask(BODIES)
    assert tell(svc("/small", FORM, method="POST", body=b"a=12345678")) == (200, "1 pairs: 12345678 -")
    connect = svc.server.connect
    assert connect().ask("/svc/small", FORM, method="POST", body=b"a=123456789").status == 413
    with connect() as client:
        client.send(b"POST /svc/small HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.send(b"b\r\na=123456789\r\n0\r\n\r\n")
        assert client.response("POST").status == 413


def test_a_route_in_pieces_does_not_wait_for_the_body(ask):
    svc = ask(BODIES)
    with svc.server.connect() as client:
        client.send(b"POST /svc/pieces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n")
        assert tell(client.response("POST")) == (200, "now 0")
    assert svc("/pieces", method="POST", body=b"x" * 11).status == 413


def test_a_callback_responds_before_the_body_has_come(ask):
    svc = ask(BODIES)
    with svc.server.connect() as client:
        client.send(b"POST /svc/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n")
        assert client.response("POST").status == 200


def test_a_client_that_waits_for_100_continue(ask):
    """100 is sent for a handler that gets the body, not if a callback before it has responded."""
    svc = ask(BODIES)
    head = b"POST /svc/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nExpect: 100-continue\r\n%s\r\n\r\n"
    with svc.server.connect() as client:
        client.send(head % (b"show", FORM.encode()))
        assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        client.send(b"a=1")
        assert tell(client.response("POST")) == (200, "1 pairs: 1 -")
    with svc.server.connect() as client:
        client.send(head % (b"stop", FORM.encode()))
        assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_a_handler_without_a_response_in_time_gets_503(ask):
    svc = ask(BODIES)
    assert svc("/never").status == 503
    svc.server.wait_log("left /svc/never")
    assert svc("/quick").status == 200
    with svc.server.connect() as client:  # leaves while the timer runs
        client.send(b"GET /svc/never HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert svc("/never").status == 503


# ── queries and cookies ──

QUERY = """
static void query(duda_request_t *dr)
{
    const char *tag;
    long n = -1;
    int at = 0, err = qs->get_number(dr, "n", &n);
    const char *name = qs->name(dr, 0), *value = qs->get_id(dr, 0);
    response->printf(dr, "%d n=%ld %d cmp=%d,%d first=%s=%s tags", qs->count(dr), n, err, qs->cmp(dr, "n", "5"),
                     qs->cmp(dr, "x", "5"), name ? name : "", value ? value : "");
    while ((tag = qs->next(dr, "tag", &at)))
        response->printf(dr, " [%s]", tag);
    response->end(dr, NULL);
}
"""
PAIRS = (
    HEAD
    + QUERY
    + QUERY.replace("qs->", "form->").replace("void query", "void fields")
    + """
static void number(duda_request_t *dr)
{
    long n = 0;
    int err = param->get_number(dr, "n", &n);
    response->printf(dr, "%d %ld %d %d %d", err, n, param->len(dr, "n"), param->len(dr, "x"),
                     param->get_number(dr, "x", &n));
    response->end(dr, NULL);
}
static void cookies(duda_request_t *dr)
{
    size_t at = 0;
    const char *name, *value, *a = cookie->get(dr, "a");
    response->printf(dr, "a=%s cmp=%d all", a ? a : "-", cookie->cmp(dr, "a", "1"));
    while ((name = cookie->next(dr, &at, &value)))
        response->printf(dr, " %s=%s", name, value);
    response->end(dr, NULL);
}
static void set(duda_request_t *dr)
{
    struct duda_cookie good = {.name = "id", .value = "7", .max_age = 60, .http_only = true};
    struct duda_cookie bad = {.name = "id", .value = "7\\r\\nX: y"};
    struct duda_cookie gone = {.name = "old", .path = "/"};
    response->printf(dr, "%d ", cookie->set(dr, &good));
    response->printf(dr, "%d ", cookie->set(dr, &bad));
    response->printf(dr, "%d", cookie->remove(dr, &gone));
    response->end(dr, NULL);
}
int duda_main(void)
{
    router->get("/query", query);
    router->post("/fields", fields);
    router->get("/number/:n", number);
    router->get("/cookies", cookies);
    router->get("/set", set);
    return 0;
}
"""
)


@every_way
def test_the_query_is_decoded(ask):
    svc = ask(PAIRS)
    assert tell(svc("/query?n=5&tag=a+b&tag=%C3%A4&x")) == (200, "4 n=5 0 cmp=0,-1 first=n=5 tags [a b] [ä]")
    assert tell(svc("/query")) == (200, "0 n=-1 -2 cmp=-1,-1 first== tags")
    assert tell(svc("/query?")) == (200, "0 n=-1 -2 cmp=-1,-1 first== tags")
    assert tell(svc("/query?n=5&x=%00")) == (200, "-22 n=-1 -2 cmp=-1,-1 first== tags")
    assert tell(svc("/query?n=5x")) == (200, "1 n=-1 -22 cmp=-1,-1 first=n=5x tags")


@every_way
def test_the_fields_of_a_form_are_decoded(ask):
    svc = ask(PAIRS)

    def post(body):
        return tell(svc("/fields?n=9", FORM, method="POST", body=body))

    assert post(b"n=5&tag=a+b&tag=%C3%A4&x") == (200, "4 n=5 0 cmp=0,-1 first=n=5 tags [a b] [\u00e4]")
    assert post(b"n=5x") == (200, "1 n=-1 -22 cmp=-1,-1 first=n=5x tags")
    assert post(b"") == (200, "0 n=-1 -2 cmp=-1,-1 first== tags")


@every_way
def test_parameters_are_numbers_if_they_say_so(ask):
    svc = ask(PAIRS)
    assert tell(svc("/number/-12")) == (200, "0 -12 3 -2 -2")
    assert tell(svc("/number/12x")) == (200, "-22 0 3 -2 -2")
    assert tell(svc("/number/99999999999999999999")) == (200, "-34 0 20 -2 -2")


@every_way
def test_cookies_of_a_request(ask):
    svc = ask(PAIRS)
    assert tell(svc("/cookies", "Cookie: xa=0; a=1; b=2")) == (200, "a=1 cmp=0 all xa=0 a=1 b=2")
    assert tell(svc("/cookies", "Cookie: xa=0", "Cookie: a=1")) == (200, "a=1 cmp=0 all xa=0 a=1")
    assert tell(svc("/cookies")) == (200, "a=- cmp=-1 all")


def set_cookies(response):
    return [value for name, value in response.fields if name.lower() == "set-cookie"]


@every_way
def test_cookies_that_are_set(ask, serve_services):
    svc = ask(PAIRS)
    answer = svc("/set")
    assert tell(answer) == (200, "0 -22 0")
    assert set_cookies(answer) == [
        "id=7; Max-Age=60; Path=/svc; HttpOnly",
        "old=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/",
    ]


# ── the objects of the old API ──

OLD = (
    HEAD
    + """
#include <duda/map.h>
DUDA_OBJECT(struct duda_api_map, map)
DUDA_OBJECT_AS(struct duda_api_param_1, param1, "param.1")
DUDA_OBJECT_AS(struct duda_api_qs_1, qs1, "qs.1")
DUDA_OBJECT_AS(struct duda_api_cookie_1, cookie1, "cookie.1")

#define SAY(fn) __attribute__((visibility("default"))) void fn(duda_request_t *dr); \\
    void fn(duda_request_t *dr) { response->printf(dr, #fn); response->end(dr, NULL); }
SAY(cb_root) SAY(cb_apples) SAY(cb_slash)

void cb_values(duda_request_t *dr);
void cb_values(duda_request_t *dr)
{
    long n = -1;
    short count = param1->count(dr);
    response->printf(dr, "%d", count);
    for (short i = 0; i < count; i++) {
        char *value = param1->get(dr, i);
        response->printf(dr, " %s/%d", value, param1->len(dr, i));
        free(value);
    }
    int err = param1->get_number(dr, 0, &n);
    response->printf(dr, " %d %ld %d %d", err, n, param1->get(dr, 9) == NULL, param1->len(dr, -1));
    response->end(dr, NULL);
}
static void show_query(duda_request_t *dr)
{
    const char *a = qs1->get(dr, "a"), *second = qs1->get_id(dr, 1);
    response->printf(dr, "%d a=%s 1=%s %d %d", qs1->count(dr), a ? a : "-", second ? second : "-",
                     qs1->cmp(dr, "a", "b=c"), qs1->get_id(dr, -1) == NULL);
    response->end(dr, NULL);
}
static void show_cookie(duda_request_t *dr)
{
    char *value = NULL;
    int len = 0, err = cookie1->get(dr, "k1", &value, &len);
    response->printf(dr, "%d %s %d %d", err, value ? value : "-", len, cookie1->cmp(dr, "k1", "v1"));
    cookie1->set(dr, "a", 1, "x y", 3, 0);
    cookie1->set(dr, "b", 1, "1", 1, 784111777);
    cookie1->destroy(dr, "c", 1);
    response->end(dr, NULL);
}

int duda_main(void)
{
    duda_interface_t *i = map->interface_new("math");
    duda_method_t *m = map->method_new("two", "cb_values", 2);
    map->method_add_param(map->param_new("x", 0), m);
    map->method_add_param(map->param_new("y", 4), m);
    map->interface_add_method(m, i);
    map->interface_add_method(map->method_builtin_new("none", show_query, 0), i);
    map->add_interface(i);
    map->static_root("cb_root");
    map->static_add_ref("/query", show_query);
    map->static_add_ref("/cookie", show_cookie);
    map->static_add("/apples", "cb_apples");
    return map->static_add("/", "cb_slash");
}
"""
)


@every_way
def test_maps_of_the_old_api(ask):
    svc = ask(OLD)
    assert tell(svc("")) == tell(svc("/")) == (200, "cb_root")
    assert tell(svc("/apples")) == tell(svc("/apples/x")) == tell(svc("/applesauce")) == (200, "cb_apples")
    assert tell(svc("/pears", method="PATCH")) == (200, "cb_slash")
    assert tell(svc("/math/two/1/b%20c")) == (200, "2 1/1 b c/3 0 1 1 -1")
    assert tell(svc("/math/two/1/b/")) == (200, "2 1/1 b/1 0 1 1 -1")
    assert tell(svc("/math/two/x/y")) == (200, "2 x/1 y/1 -1 -1 1 -1")
    assert tell(svc("/math/none?a=1")) == (200, "1 a=1 1=- -1 1")
    for other in ["/math/two", "/math/two/1", "/math/two/1/2/3", "/math/two/1/longer", "/math", "/math/three"]:
        assert tell(svc(other)) == (200, "cb_slash"), other


@every_way
def test_queries_of_the_old_api_are_not_decoded(ask):
    svc = ask(OLD)
    assert tell(svc("/query?a=b=c&x&d=%20+")) == (200, "2 a=b=c 1=%20+ 0 1")
    assert tell(svc("/query")) == (200, "0 a=- 1=- -1 1")


@every_way
def test_cookies_of_the_old_api(ask):
    svc = ask(OLD)
    answer = svc("/cookie", "Cookie: xk1=no; k1=v1")
    assert tell(answer) == (200, "0 v1 2 0")
    assert set_cookies(answer) == [
        "a=x y; path=/svc",
        "b=1; path=/svc; expires=Sun, 06 Nov 1994 08:49:37 GMT",
        "c=deleted; path=/svc; expires=Fri, 12 Sep 1980 11:43:00 GMT",
    ]
    assert tell(svc("/cookie")) == (200, "-1 - 0 -1")


def test_a_function_that_does_not_exist_is_an_error_of_the_start(ask):
    svc = ask(OLD.replace('"cb_apples");', '"cb_apple");'))
    assert svc("/").status == 503
    svc.server.wait_log('svc.*: its map names the function "cb_apple", which it does not have')


def test_conf_force_redirect(ask):
    svc = ask(OLD.replace("int duda_main(void)\n{", "int duda_main(void)\n{\n    conf->force_redirect();"))
    assert svc("/apples")["Location"] == "http://localhost/svc/apples/"
    assert tell(svc("/apples?x")) == tell(svc("/apples/")) == (200, "cb_apples")


@every_way
def test_rules_of_level_2(ask, way):
    svc = ask(
        HEAD
        + """
#include <duda/map.h>
DUDA_OBJECT_AS(struct duda_api_router_2, rules, "router.2")
DUDA_OBJECT_AS(struct duda_api_param_2, values, "param.2")

static void root(duda_request_t *dr) { response->printf(dr, "root"); response->end(dr, NULL); }
static void foo(duda_request_t *dr) { response->printf(dr, "foo"); response->end(dr, NULL); }
static void user(duda_request_t *dr)
{
    long n = -1;
    const char *name = values->get(dr, "name"), *none = values->get(dr, "none");
    int err = values->get_number(dr, "id", &n);
    response->printf(dr, "%s %s %d %ld", name, none ? none : "-", err, n);
    response->end(dr, NULL);
}
int duda_main(void)
{
    return rules->root(root) || rules->map("/foo/", foo) || rules->map("/user/:name/:id", user);
}
"""
    )
    scheme = "https" if way.tls else "http"
    assert tell(svc("/")) == (200, "root")
    for path in ["", "/foo"]:
        answer = svc(path)
        assert (answer.status, answer["Location"], answer.body) == (301, f"{scheme}://localhost/svc{path}/", b"")
    assert tell(svc("/foo/")) == tell(svc("/foo/bar")) == (200, "foo")
    assert svc("/foobar").status == 404
    assert tell(svc("/user/me/7")) == tell(svc("/user/me/7/more")) == (200, "me - 0 7")
    assert tell(svc("/user/a%20b/x")) == (200, "a b - -1 -1")
    assert svc("/user/me").status == 404
