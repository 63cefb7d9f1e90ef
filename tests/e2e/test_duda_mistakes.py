# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of web services: what the framework refuses, and the sentence in the log."""

import pytest

from harness import build
from harness.handler_service import ask, handler, service
from harness.messages import request
from harness.services import needs_duda

pytestmark = needs_duda

# ── arguments ──

NO_ARGUMENTS = handler(
    """
    struct duda_ticket none = {0};
    duda_timer_t timer;
    size_t at = 0, len = 1;
    const char *volatile text = NULL; /* so that the compiler does not see it */
    const char *name;
    long number = 7;
    int n = 0;
    CHECK(response->print(dr, text, 4) == -EINVAL && response->print(dr, "x", -1) == -EINVAL);
    CHECK(response->print(dr, "x", INT_MIN) == -EINVAL && response->print(dr, text, 0) >= 0);
    CHECK(response->printf(dr, text) == -EINVAL);
    CHECK(response->write(dr, text, 4) == -EINVAL && response->write(dr, "x", (size_t)-1) == -EINVAL);
    CHECK(response->http_header(dr, text) == -EINVAL && response->http_header_n(dr, "A: b", -4) == -EINVAL);
    CHECK(response->http_header_n(dr, text, 4) == -EINVAL);
    CHECK(response->header(dr, text, "x") == -EINVAL && response->header(dr, "X-Y", text) == -EINVAL);
    CHECK(response->header_remove(dr, text) == 0 && response->http_content_type(dr, text) == -ENOENT);
    CHECK(response->http_status(dr, -200) == -EINVAL && response->http_content_length(dr, -9) == -EINVAL);
    CHECK(response->sendfile(dr, text) == -EINVAL && response->sendfile_range(dr, text, -1, 1) == -EINVAL);
    CHECK(response->generate(dr, NULL, NULL) == -EINVAL && response->on_writable(dr, NULL, NULL) == 0);
    CHECK(response->redirect(dr, 301, text) == -EINVAL && response->redirect(dr, -1, "/") == -EINVAL);
    CHECK(response->redirect(dr, 303, "/a\\r\\nX: y") == -EINVAL && response->redirect(dr, 303, "\\177") == -EINVAL);
    CHECK(response->error(dr, -404) == -EINVAL && response->on_done(dr, NULL) == 0);
    CHECK(response->ticket(dr, NULL) == -EINVAL && response->deliver(NULL, NULL, NULL) == -EINVAL);
    CHECK(response->deliver(&none, NULL, NULL) == -EINVAL);
    CHECK(request->read(dr, 0, NULL, NULL) == -EINVAL && !request->header_get(dr, text));
    CHECK(request->header_cmp(dr, text, text) == -1 && request->header_cmp(dr, "Host", text) == -1);
    CHECK(request->header_contains(dr, text, text) == -1 && !request->is_content_type(dr, text));
    CHECK(request->header_at(dr, 0, NULL, NULL) == -EINVAL && request->header_at(dr, 999, &name, &name) < 0);
    request->on_leave(dr, NULL, NULL);
    CHECK(!request->body(dr, NULL) && !request->body(dr, &len) && len == 0 && !request->get_data(dr, NULL));
    CHECK(!param->get(dr, text) && param->get_number(dr, "a", NULL) < 0 && param->len(dr, text) < 0);
    CHECK(!param->get_id(dr, -1) && !param->name(dr, INT_MAX) && param->get_number(dr, text, &number) < 0);
    CHECK(!qs->get(dr, text) && qs->cmp(dr, "a", text) == -1 && !qs->next(dr, "a", NULL) && !qs->next(dr, text, &n));
    CHECK(qs->get_number(dr, "a", NULL) < 0 && !qs->get_id(dr, -1) && !qs->name(dr, 9));
    CHECK(!form->get(dr, text) && form->get_number(dr, text, NULL) < 0);
    CHECK(!cookie->get(dr, text) && cookie->cmp(dr, text, text) == -1 && cookie->set(dr, NULL) == -EINVAL);
    CHECK(cookie->remove(dr, NULL) == -EINVAL && cookie->set(dr, &(struct duda_cookie){0}) == -EINVAL);
    CHECK(!cookie->next(dr, NULL, NULL) && !cookie->next(dr, &at, NULL));
    CHECK(gc->add(dr, NULL) == 0 && gc->add_destroy(dr, &n, NULL) == -1);
    CHECK(!data->locate(dr, text) && !fconf->read_file(text) && !fconf->read_conf(text));
    CHECK(!fconf->section_get(NULL, text) && fconf->get_number(NULL, text, 7) == 7);
    fconf->free_conf(NULL);
    CHECK(event->post(0, NULL, NULL) == -1 && event->post(INT_MIN, NULL, NULL) == -1);
    timer = event->timer(1, NULL, NULL);
    CHECK(!timer && !event->interval(0, NULL, NULL) && event->cancel(0) == -1 && event->cancel(UINT64_MAX) == -1);
    CHECK(event->add(-1, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL) == -1 && !event->lookup(-1));
    CHECK(event->add(0, 99, 99, NULL, NULL, NULL, NULL, NULL, NULL) == -1 && !event->lookup(INT_MAX));
    CHECK(event->add(INT_MAX, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL) == -1);
    CHECK(event->delete(-1) == -1 && event->mode(-1, 1, 1) == -1 && event->timeout(-1, 1) == -1);
    CHECK(!event->loop_create(-1) && !event->loop_create(0) && !event->loop_create(INT_MAX));
    CHECK(event->loop_add(NULL, 0, 1, NULL) == -1 && event->loop_delete(NULL, 0) == -1);
    CHECK(event->loop_timeout_create(NULL, 1) == -1 && event->loop_channel_create(NULL, NULL, NULL) == -1);
    CHECK(event->loop_wait(NULL) == -1);
    struct duda_event_loop *loop = event->loop_create(1);
    CHECK(event->loop_add(loop, INT_MAX, DUDA_EVENT_READ, NULL) == -1 && errno == EBADF);
    event->loop_free(loop);
    event->loop_free(NULL);
    CHECK(!xtime->http_date(0, NULL, 99) && !xtime->iso_date(0, NULL, 99));
    CHECK(!global->get((duda_global_t){99}) && global->set((duda_global_t){0}, NULL) == -1);
    CHECK(logger->print(NULL, "x") == -1 && logger->print(&log_file, "x") == -1);
    msg->info(text);
    msg->err(text);
    console_debug_of(dr, text);
    CHECK(!request->validate_request(NULL) && !request->validate_socket(-1));
    answer(dr);"""
)
WITHOUT = """
static duda_logger_t log_file;
static void console_debug_of(duda_request_t *dr, const char *format)
{
    console->debug(dr, format, 1);
}
"""
MAIN_WITHOUT = """
    const char *volatile text = NULL;
    struct duda_route *r = router->get("/limits", answer);
    CHECK(!router->get(text, answer) && !router->get("/a", NULL) && !router->get("a", answer));
    CHECK(!router->add(text, "/a", answer) && !router->add("GUT", "/a", answer) && !router->any("/:", answer));
    CHECK(router->before_all(NULL) == -EINVAL && router->after_all(NULL) == -EINVAL);
    CHECK(router->before(NULL, NULL) == -EINVAL && router->before(r, NULL) == -EINVAL);
    CHECK(router->after(r, NULL) == -EINVAL && router->limit(NULL, 1) == -EINVAL && router->timeout(NULL, 1) < 0);
    CHECK(router->stream_body(NULL) == -EINVAL && router->not_found(NULL) == 0 && router->error(NULL) == 0);
    CHECK(global->init(NULL, NULL, NULL) == -1 && global->init_destroy(NULL, NULL, NULL, NULL) == -1);
    CHECK(worker->spawn(NULL, NULL) == -1 && worker->pre_loop(NULL, NULL) == -1);
    CHECK(logger->create(NULL, "x") == -1 && logger->create(&log_file, text) == -1);
    CHECK(data->set_path(text) == -1 && fconf->set_path(text) == -1 && conf->service_name(text) == -1);
    CHECK(event->set_signal_callback(NULL) == 0);
"""


def test_arguments_that_are_missing(serve_services):
    """Each is an error of the call; what a mistake of the author causes is logged."""
    server = serve_services({"x": service(WITHOUT + NO_ARGUMENTS, MAIN_WITHOUT)})
    assert ask(server, "/x/handle?a=1") == (200, "fine"), server.log
    server.wait_log(r"service x: response->print\(\): the text is NULL, or its length is negative")
    server.wait_log(r"service x: event->loop_wait\(\): there is no loop")


EVERY_CALL = """
static void call_all(duda_request_t *dr, int error)
{
    struct duda_ticket ticket;
    const char *name;
    size_t at = 0;
    long number;
    int n = 0;
    int results[] = {
        response->http_status(dr, 200), response->print(dr, "x", 1), response->printf(dr, "x"),
        response->end(dr, NULL), response->http_header(dr, "A: b"), response->http_header_n(dr, "A: b", 4),
        response->header(dr, "A", "b"), response->header_remove(dr, "A"), response->http_content_type(dr, "html"),
        response->http_content_length(dr, 1), response->headers_off(dr), response->send_headers(dr),
        response->write(dr, "x", 1), response->sendfile(dr, "/etc/passwd"),
        response->sendfile_range(dr, "/etc/passwd", 0, 1), response->generate(dr, generate, NULL),
        response->wake(dr), response->flush(dr), response->on_writable(dr, on_event, NULL),
        response->finalize(dr, NULL), response->wait(dr), response->cont(dr), response->on_done(dr, NULL),
        response->redirect(dr, 301, "/"), response->error(dr, 404), response->abort(dr),
        response->sse_begin(dr, 1), response->sse_send(dr, NULL, NULL, "x"), response->sse_retry(dr, 1),
        response->ticket(dr, &ticket), request->read(dr, 0, read_piece, NULL), router->next(dr),
    };
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i] != error)
            fprintf(stderr, "call %zu returns %d\\n", i, results[i]), CHECK(0);
    CHECK(!request->method(dr) && !request->path(dr) && !request->target(dr) && !request->query(dr));
    CHECK(!request->host(dr) && !request->scheme(dr) && !request->client(dr) && !request->id(dr));
    CHECK(!request->user(dr) && !request->claims(dr) && !request->http_major(dr));
    CHECK(!request->is_get(dr) && !request->is_head(dr) && !request->is_post(dr));
    CHECK(!request->is_put(dr) && !request->is_delete(dr) && !request->is_patch(dr) && !request->is_options(dr));
    CHECK(!request->is_data(dr) && !request->is_content_type(dr, "a/b") && request->content_length(dr) == -1);
    CHECK(!request->body(dr, &at) && !request->get_data(dr, &at) && !request->header_get(dr, "Host"));
    CHECK(request->header_cmp(dr, "Host", "x") == -1 && request->header_contains(dr, "Host", "l") == -1);
    CHECK(request->header_at(dr, 0, &name, &name) == -EINVAL && !request->last_event_id(dr));
    CHECK(!request->validate_request(dr));
    request->pause(dr);
    request->resume(dr);
    request->on_leave(dr, on_event, NULL);
    CHECK(!param->get(dr, "a") && param->get_number(dr, "a", &number) < 0 && param->count(dr) == 0);
    CHECK(param->len(dr, "a") < 0 && !param->get_id(dr, 0) && !param->name(dr, 0) && !router->pattern(dr));
    CHECK(!qs->get(dr, "a") && qs->count(dr) < 0 && !qs->get_id(dr, 0) && !qs->name(dr, 0));
    CHECK(qs->cmp(dr, "a", "1") == -1 && !qs->next(dr, "a", &n) && qs->get_number(dr, "a", &number) < 0);
    CHECK(!form->get(dr, "a") && form->count(dr) < 0 && !cookie->get(dr, "a") && cookie->cmp(dr, "a", "b") == -1);
    CHECK(cookie->set(dr, &(struct duda_cookie){.name = "a"}) < 0 && !cookie->next(dr, &at, &name));
    CHECK(cookie->remove(dr, &(struct duda_cookie){.name = "a"}) < 0 && !data->locate(dr, "x"));
    CHECK(gc->add(dr, &n) == -1 && gc->add_destroy(dr, &n, free) == -1);
    console->debug(dr, "no request, but a line");
}
"""
CALLBACKS = """
static ssize_t generate(duda_request_t *dr, char *to, size_t size, void *arg)
{
    (void)dr, (void)to, (void)size, (void)arg;
    return 0;
}

static void on_event(duda_request_t *dr, void *arg)
{
    (void)dr, (void)arg;
}

static void read_piece(duda_request_t *dr, const char *piece, size_t len, bool end, void *arg)
{
    (void)dr, (void)piece, (void)len, (void)end, (void)arg;
}
"""


def test_no_request(serve_services):
    """All functions with a `dr` of NULL: in a handler, in duda_main() and in duda_exit()."""
    code = CALLBACKS + EVERY_CALL + handler("    call_all(NULL, -EINVAL);\n    answer(dr);")
    server = serve_services({"x": service(code, "call_all(NULL, -EINVAL);", "call_all(NULL, -EINVAL);")})
    assert ask(server, "/x/handle?a=1") == (200, "fine"), server.log
    server.wait_log(r"warn  service x: response->http_status\(\): there is no request: its pointer is NULL")
    server.stop()


OTHER_THREAD = """
static void *use_request(void *dr)
{
    call_all(dr, -EPERM);
    return NULL;
}
static void handle(duda_request_t *dr)
{
    pthread_t thread;
    pthread_create(&thread, NULL, use_request, dr);
    pthread_join(thread, NULL);
    answer(dr);
}
"""


def test_a_request_in_another_thread(serve_services):
    """Of pthread_create(), which the framework does not know: the stack tells which service it is."""
    server = serve_services({"x": service(CALLBACKS + EVERY_CALL + OTHER_THREAD)})
    assert ask(server, "/x/handle?a=1") == (200, "fine"), server.log
    server.wait_log(r"warn  service x: response->http_status\(\): "
                    r"only callbacks of the request's worker can call it: use response->deliver\(\)")


GONE = """
static duda_request_t *before;

static void use_gone(duda_request_t *dr)
{
    call_all(before, -ESTALE);
    answer(dr);
}

static void handle(duda_request_t *dr)
{
    before = dr;
    answer(dr);
}
"""


@pytest.mark.skipif(build.PRESET == "asan", reason="AddressSanitizer reports the access itself")
def test_a_request_that_has_ended(serve_services):
    server = serve_services({"x": service(CALLBACKS + EVERY_CALL + GONE, 'router->get("/gone", use_gone);')})
    assert ask(server, "/x/handle?a=1") == (200, "fine"), server.log
    assert ask(server, "/x/gone?a=1") == (200, "fine"), server.log
    server.wait_log(r"warn  service x: response->http_status\(\): "
                    r"the request has ended: the client has left, or its response was sent")


# ── calls at the wrong time ──

# What works only in callbacks of workers, and only in duda_main().
OUTSIDE = """
static int on_fd(int fd, void *arg)
{
    (void)fd, (void)arg;
    return 0;
}

static void on_call(void *arg)
{
    (void)arg;
}

static void call_worker_functions(void)
{
    CHECK(event->add(0, DUDA_EVENT_READ, DUDA_EVENT_LEVEL_TRIGGERED, on_fd, NULL, NULL, NULL, NULL, NULL) == -1);
    CHECK(!event->lookup(0) && event->mode(0, DUDA_EVENT_READ, 1) == -1 && event->delete(0) == -1);
    CHECK(event->timeout(0, 1) == -1 && !event->timer(1, on_call, NULL) && !event->interval(1, on_call, NULL));
    CHECK(event->cancel(1) == -1 && event->post(0, on_call, NULL) == -1 && event->signal(1) == -1);
    CHECK(worker->index() == -1 && !request->validate_request((duda_request_t *)16) && !request->validate_socket(0));
}

static void call_main_functions(void)
{
    static duda_global_t key;
    static duda_logger_t log_file;
    CHECK(!router->get("/late", answer) && !router->add("GET", "/late", answer));
    CHECK(router->before_all((duda_before_fn)1) == -EPERM && router->after_all(answer) == -EPERM);
    CHECK(router->before(NULL, NULL) == -EPERM && router->after(NULL, NULL) == -EPERM);
    CHECK(router->limit(NULL, 1) == -EPERM && router->timeout(NULL, 1) == -EPERM);
    CHECK(router->stream_body(NULL) == -EPERM);
    CHECK(router->not_found(answer) == -EPERM && router->error(NULL) == -EPERM);
    CHECK(global->init(&key, NULL, NULL) == -1 && global->init_destroy(&key, NULL, NULL, NULL) == -1);
    CHECK(worker->spawn(run_thread, NULL) == -1 && worker->pre_loop(on_call, NULL) == -1);
    CHECK(event->set_signal_callback(NULL) == -1 && conf->service_name("late") == -1 && conf->service_root() == -1);
    CHECK(conf->force_redirect() == -1 && conf->bind_messages() == -1 && logger->create(&log_file, "late") == -1);
    CHECK(data->set_path("/tmp") == -1 && fconf->set_path("/tmp") == -1 && logger->print(&log_file, "x") == -1);
}

static void *run_thread(void *arg)
{
    if (!arg) { /* of pthread_create(): no service is known there */
        CHECK(!global->get((duda_global_t){1}) && event->create_signal_fd() == -1 && worker->count() == 0);
        CHECK(!data->get_path() && !fconf->get_path() && !fconf->read_file("/etc/passwd") && !fconf->read_conf("x"));
        CHECK(!worker->stopping());
        call_worker_functions();
    } else {
        CHECK(event->post(0, on_call, NULL) == 0 && worker->count() == 1 && worker->index() == -1);
        CHECK(!event->timer(1, on_call, NULL) && !event->lookup(0));
    }
    call_main_functions();
    msg->info("a thread has made all calls");
    return NULL;
}

static void handle(duda_request_t *dr)
{
    pthread_t thread;
    pthread_create(&thread, NULL, run_thread, NULL);
    pthread_join(thread, NULL);
    call_main_functions();
    answer(dr);
}

static duda_logger_t kept;

static void __attribute__((destructor)) end(void)
{
    call_worker_functions();
    call_main_functions();
    CHECK(logger->print(&kept, "after the end") == -1);
    msg->info("unloaded, line %d", wrong);
}
"""


def test_calls_at_the_wrong_time(serve_services, tmp_path):
    """Each does nothing, and the first is logged: in a handler, in threads, in duda_exit(), and after the end."""
    (tmp_path / "logs").mkdir()
    code = "static void *run_thread(void *arg);" + OUTSIDE
    main = "call_worker_functions(); logger->create(&kept, \"kept\"); worker->spawn(run_thread, &kept);"
    end = "call_worker_functions(); call_main_functions(); logger->print(&kept, \"the end\");"
    server = serve_services({"x": service(code, main, end)}, keys={"x": {"LogDir": tmp_path / "logs"}})
    assert ask(server, "/x/handle") == (200, "fine"), server.log
    server.wait_log("a thread has made all calls", 2)
    server.stop()
    for call in ("event->add", "event->timer", "event->post", "router->get"):  # in duda_main(), and in the handler
        assert f"warn  service x: {call}(): it works only in " in server.log
    assert "info  service x: unloaded, line 0" in server.log
    assert (tmp_path / "logs" / "kept").read_text().endswith("the end\n")


# ── results of callbacks ──

LIES = """
static ssize_t generate(duda_request_t *dr, char *to, size_t size, void *arg)
{
    (void)dr, (void)to, (void)arg;
    return (ssize_t)size * 4;
}
""" + handler("response->generate(dr, generate, NULL); response->end(dr, NULL);")


def test_a_generator_that_returns_too_much(serve_services):
    """The client gets none of the memory behind the buffer."""
    server = serve_services({"x": service(LIES)})
    with server.connect() as client:
        client.send(request("/x/handle"))
        assert len(client.rest()) < 1000
    server.wait_log(r"service x: response->generate\(\): "
                    r"the function has returned more bytes than it had room for; the response is cut")
    assert ask(server, "/x/") == (200, "fine")


LARGE = handler("static char data[1 << 20]; while (response->write(dr, data, sizeof(data)) >= 0) continue; answer(dr);")


def test_a_response_that_no_memory_is_left_for(serve_services):
    server = serve_services({"x": service(LARGE)})
    with server.connect() as client:
        client.send(request("/x/handle"))
        client.rest()
    server.wait_log(r"service x: response->end\(\): a part could not be added, because there was no memory")
    assert ask(server, "/x/") == (200, "fine")
