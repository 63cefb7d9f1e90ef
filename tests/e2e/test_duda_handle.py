# SPDX-License-Identifier: Apache-2.0
"""Requests that dthreads handle: routes whose handlers run in dthreads, and dthreads that do not respond."""

import pytest

from harness.messages import request
from harness.services import NUMBERS_HEAD, function_of, needs_duda
from harness.ways import WAYS

pytestmark = needs_duda

# ── dthreads that return without a response ──

FORGETS = NUMBERS_HEAD + """
void forget(duda_request_t *dr, void *data);
void forget(duda_request_t *dr, void *data)
{
    response->printf(dr, "this is never sent");
    dthread->sleep((uint32_t)(intptr_t)data);
}

static void handle_forgets(duda_request_t *dr)
{
    dthread->handle(dr, forget, (void *)(intptr_t)1);
}

static void finish(duda_request_t *dr, void *data)
{
    if (dr)
        answer(dr, (long)(intptr_t)data);
}

static void finish_alone(void *dr)
{
    answer(dr, 1);
}

static void finish_task(duda_request_t *dr, int result, void *data)
{
    (void)data;
    answer(dr, result + 2);
}

static void finish_read(duda_request_t *dr, const char *data, size_t len, bool end, void *sum)
{
    (void)data, (void)sum;
    if (end)
        answer(dr, (long)len);
}

static void finish_session(duda_request_t *dr, int result, void *data)
{
    (void)data;
    answer(dr, result == 0 ? 6 : -1);
}

static void nothing(void *data) { (void)data; }

static void pass_to_timer(duda_request_t *dr, void *data)
{
    (void)data;
    response->wait(dr);
    event->timer(20, finish_alone, dr);
}

static void pass_to_ticket(duda_request_t *dr, void *data)
{
    struct duda_ticket ticket;
    (void)data;
    response->ticket(dr, &ticket);
    response->deliver(&ticket, finish, (void *)(intptr_t)3);
}

static void pass_to_task(duda_request_t *dr, void *data)
{
    struct duda_task_kind kind = {.fn = nothing, .done = finish_task};
    task->start(dr, &kind, data);
}

static void answer_late(duda_request_t *dr, void *data)
{
    dthread->sleep(20);
    finish(dr, data);
}

static void pass_to_dthread(duda_request_t *dr, void *data)
{
    (void)data;
    dthread->handle(dr, answer_late, (void *)(intptr_t)4);
}

static void pass_to_reader(duda_request_t *dr, void *data)
{
    request->read(dr, 0, finish_read, data);
}

static void finish_stream(void *dr)
{
    response->sse_send(dr, NULL, NULL, "5");
    response->end(dr, NULL);
}

static void pass_to_stream(duda_request_t *dr, void *data)
{
    (void)data;
    response->sse_begin(dr, 0);
    event->timer(20, finish_stream, dr);
}

static void pass_to_session(duda_request_t *dr, void *data)
{
    session->open(dr, finish_session, data);
}

static void ignore_piece(duda_request_t *dr, const char *data, size_t len, bool end, void *reader)
{
    (void)dr, (void)data, (void)len;
    if (end)
        dthread->wake(*(const duda_dthread_t *)reader);
}

static void read_and_forget(duda_request_t *dr, void *data)
{
    duda_dthread_t own = dthread->running();
    (void)data;
    if (request->read(dr, 0, ignore_piece, &own) == 0)
        dthread->wait(10000);
}

static void proceed(duda_request_t *dr, void *data)
{
    if (dthread->sleep(5) == 0 && !data)
        router->next(dr);
}

static int check_late(duda_request_t *dr) { return dthread->handle(dr, proceed, NULL) ? 1 : 0; }
static int check_never(duda_request_t *dr) { return dthread->handle(dr, proceed, (void *)1) ? 1 : 0; }

#define HANDLER(fn) static void handle_##fn(duda_request_t *dr) { dthread->handle(dr, fn, NULL); }
HANDLER(pass_to_timer)
HANDLER(pass_to_ticket)
HANDLER(pass_to_task)
HANDLER(pass_to_dthread)
HANDLER(pass_to_reader)
HANDLER(pass_to_stream)
HANDLER(pass_to_session)
HANDLER(read_and_forget)

static void answer_by_timer(duda_request_t *dr) { event->timer(20, finish_alone, dr); }

static void failed(duda_request_t *dr, int status)
{
    response->printf(dr, "sorry: %d", status);
    response->end(dr, NULL);
}

DUDA_REGISTER("tests", "forgets");
int duda_main(void)
{
    static const struct duda_session_conf files = {.folder = "sessions"};
    router->get("/forgets", handle_forgets);
    router->get("/timer", handle_pass_to_timer);
    router->get("/ticket", handle_pass_to_ticket);
    router->get("/task", handle_pass_to_task);
    router->get("/dthread", handle_pass_to_dthread);
    router->stream_body(router->post("/reader", handle_pass_to_reader));
    router->stream_body(router->post("/read-and-forget", handle_read_and_forget));
    router->get("/stream", handle_pass_to_stream);
    router->get("/session", handle_pass_to_session);
    router->before(router->get("/checked", answer_by_timer), check_late);
    router->before(router->get("/checked-forgets", handle_forgets), check_late);
    router->before(router->get("/unchecked", answer_by_timer), check_never);
    router->error(failed);
    return session->init(&files);
}
"""


@pytest.fixture
def forgets(serve_services, tmp_path):
    settings = {"HandlerTimeout": "1h"}
    return serve_services({"t": FORGETS}, {"Workers": 1}, host=settings, keys={"t": {"DataDir": tmp_path}})


def ask_any(server, path, *fields, **rest):
    with server.connect() as client:
        got = client.ask(f"/t/{path}", *fields, **rest)
        return got.status, got.body


@pytest.mark.parametrize("path", ["forgets", "checked-forgets"])
def test_a_dthread_without_a_response(forgets, path):
    """Its client gets the error of the service at once, and the log names the function."""
    assert ask_any(forgets, path) == (500, b"sorry: 500")
    reason = "it has returned without a response, and nothing else sends one: 500 was sent, in "
    forgets.wait_log(r"service t: dthread->handle\(\): " + reason + function_of("t", "forget"))


def test_other_dthreads_without_a_response(forgets):
    """After a body that was read to its end, and in the place of router->next()."""
    assert ask_any(forgets, "unchecked") == (500, b"sorry: 500")
    assert ask_any(forgets, "read-and-forget", method="POST", body=b"x") == (500, b"sorry: 500")


def test_requests_that_dthreads_pass_on(forgets):
    """Something else sends the response, after the dthread has returned."""
    cookie = f"Cookie: t-session={'0' * 32}"
    paths = ("timer", "task", "ticket", "dthread", "session", "checked")
    results = {path: ask_any(forgets, path, cookie) for path in paths}
    assert results == {
        "timer": (200, b"1"), "task": (200, b"2"), "ticket": (200, b"3"), "dthread": (200, b"4"),
        "session": (200, b"6"), "checked": (200, b"1"),
    }  # fmt: skip
    assert ask_any(forgets, "stream") == (200, b"data: 5\n\n")
    with forgets.connect() as client:
        client.send(request("/t/reader", "Content-Length: 1", method="POST"))
        assert ask_any(forgets, "dthread") == (200, b"4")  # meanwhile the dthread of the first has returned
        client.send(b"x")
        assert client.response().body == b"1"
    assert "without a response" not in forgets.log


# ── routes whose handlers run in dthreads ──

ROUTES = NUMBERS_HEAD + """
static int check(duda_request_t *dr)
{
    if (param->count(dr) == 0 || param->get(dr, "id")[0] != '0')
        return 0;
    response->error(dr, 403);
    return 1;
}

static void show(duda_request_t *dr)
{
    long id;
    int slept = dthread->sleep(5);
    if (param->get_number(dr, "id", &id) < 0)
        response->error(dr, 404);
    else
        answer(dr, slept == 0 ? id : slept);
}

static void take(duda_request_t *dr)
{
    size_t len;
    dthread->yield();
    request->body(dr, &len);
    answer(dr, (long)len);
}

static void count_piece(duda_request_t *dr, const char *data, size_t len, bool end, void *sum)
{
    (void)dr, (void)data;
    *(size_t *)sum += len;
    if (end)
        dthread->wake((duda_dthread_t)((size_t *)sum)[1]);
}

static void read_pieces(duda_request_t *dr)
{
    size_t sum[] = {0, (size_t)dthread->running()};
    if (request->read(dr, 0, count_piece, sum) < 0 || dthread->wait(10000) < 0)
        return;
    answer(dr, (long)sum[0]);
}

static void sleep_long(duda_request_t *dr)
{
    if (dthread->sleep(3600000) == 0)
        answer(dr, 0);
}

void forget(duda_request_t *dr);
void forget(duda_request_t *dr)
{
    int err = router->in_dthread(NULL);
    if (err != -EPERM)
        answer(dr, err);
}

int duda_main(void)
{
    struct duda_route *r = router->get("/users/:id", show), *taking = router->post("/take", take);
    struct duda_route *reading = router->post("/pieces", read_pieces), *late = router->get("/late", sleep_long);
    router->in_dthread(r);
    router->before(r, check);
    router->in_dthread(taking);
    router->limit(taking, 10);
    router->in_dthread(reading);
    router->stream_body(reading);
    router->in_dthread(late);
    router->timeout(late, 50);
    if (router->in_dthread(NULL) != -EINVAL)
        return -1;
    return router->in_dthread(router->get("/forgets", forget));
}
"""


@pytest.mark.parametrize("way", WAYS)
def test_handlers_in_dthreads(serve_services, tmp_path, way):
    """With parameters, a callback before it, limits and timeouts as other routes."""
    server = WAYS[way].start(serve_services, tmp_path, {"t": ROUTES}, {"Workers": 1})
    with server.open() as client:
        assert client.ask("/t/users/7").body == b"7"
        head = client.ask("/t/users/7", method="HEAD")
        assert (head.status, head["content-length"], head.body) == (200, "1", b"")
        assert client.ask("/t/users/x").status == 404
        assert client.ask("/t/users/0").status == 403
        assert client.ask("/t/take", method="POST", body=b"123456789").body == b"9"
        assert client.ask("/t/pieces", method="POST", body=b"x" * 100000).body == b"100000"
        assert client.ask("/t/late").status == 503
        assert client.ask("/t/forgets").status == 500
    with server.open() as client:
        assert client.ask("/t/take", method="POST", body=b"12345678901").status == 413


def test_a_handler_without_a_response(serve_services):
    server = serve_services({"t": ROUTES.replace("int err = router->in_dthread(NULL);", "int err = -EPERM;")})
    assert ask_any(server, "forgets")[0] == 500
    server.wait_log(r"service t: router->in_dthread\(\): it has returned without .*" + function_of("t", "forget"))


CALLBACKS = NUMBERS_HEAD + """
static int in_before, in_error = 1;

static void check_later(duda_request_t *dr, void *data)
{
    (void)data;
    if (dthread->sleep(1) == 0)
        router->next(dr);
}

static int check(duda_request_t *dr)
{
    in_before = dthread->running() || dthread->sleep(1) != -EPERM;
    return dthread->handle(dr, check_later, NULL) ? 1 : -1;
}

static void say_error(duda_request_t *dr, int status)
{
    in_error = dthread->sleep(1) != -EPERM;
    response->printf(dr, "error %d", status);
    response->end(dr, NULL);
}

static void say(duda_request_t *dr)
{
    int err = dthread->sleep(1);
    response->printf(dr, "%d %d %d", err, in_before, in_error);
    response->end(dr, NULL);
}

static void fail(duda_request_t *dr)
{
    if (dthread->sleep(1) == 0)
        response->error(dr, 410);
}

int duda_main(void)
{
    struct duda_route *route = router->get("/say", say);
    router->in_dthread(router->get("/fail", fail));
    router->error(say_error);
    router->before(route, check);
    return router->in_dthread(route);
}
"""


def test_callbacks_around_a_handler_in_a_dthread_cannot_wait(serve_services):
    """One before it passes the request on from its own dthread."""
    server = serve_services({"t": CALLBACKS}, {"Workers": 1})
    with server.connect() as client:
        assert client.ask("/t/fail").body == b"error 410"
        assert client.ask("/t/say").body == b"0 0 0"
    server.wait_log(r"service t: dthread->sleep\(\): ")
