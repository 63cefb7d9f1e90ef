// SPDX-License-Identifier: Apache-2.0
/* Status, headers and complete responses; how they are sent is tested in h1/send_test.c. */
#include "folder.h"
#include "harness.h"

#include <errno.h>

static struct mk_test_fixture w;

static void open_fixture(void (*handler)(struct mk_request *req, struct mk_test_fixture *fixture))
{
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    w.handler = handler;
    assert_int_equal(mk_test_http_open(&w), 0);
}

static struct mk_str ask(const char *method)
{
    char text[128];
    snprintf(text, sizeof(text), "%s / HTTP/1.1\r\nHost: h\r\n\r\n", method);
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(text));
    mk_test_settle(&w);
    return mk_test_received(c);
}

static void use_statuses(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_get_status(req), 200);
    assert_int_equal(mk_response_set_status(req, 199), -EINVAL);
    assert_int_equal(mk_response_set_status(req, 1000), -EINVAL);
    assert_int_equal(mk_response_set_status(req, 999), 0);
    assert_int_equal(mk_response_set_status(req, -200), -EINVAL);
    assert_int_equal(mk_response_set_status(req, 202), 0);
    assert_int_equal(mk_response_get_status(req), 202);
    mk_response_end(req);
}

TEST(statuses)
{
    open_fixture(use_statuses);
    assert_true(mk_str_starts(ask("GET"), MK_STR("HTTP/1.1 202 Accepted\r\n")));
    mk_test_fixture_close(&w);
}

static void use_fields(struct mk_request *req, struct mk_test_fixture *fixture)
{
    static const char *const bad_names[] = {"", "X Y", "X:", "X\r\n", "\xc3\xbc", "X\t"};
    static const char *const bad_values[] = {"a\r\nSet-Cookie: x", "a\nb", "a\rb", "\x01", "\x7f", "\x1b[31m"};
    (void)fixture;
    for (size_t i = 0; i < COUNT(bad_names); i++)
        assert_int_equal(mk_response_header(req, mk_str_c(bad_names[i]), MK_STR("v")), -EINVAL);
    for (size_t i = 0; i < COUNT(bad_values); i++)
        assert_int_equal(mk_response_header(req, MK_STR("X"), mk_str_c(bad_values[i])), -EINVAL);
    assert_int_equal(mk_response_header_ref(req, MK_STR("X"), MK_STR("nul\0")), -EINVAL);
    char value[] = "copied";
    assert_int_equal(mk_response_header(req, MK_STR("X-A"), mk_str_c(value)), 0);
    memset(value, '!', 6);
    assert_int_equal(mk_response_header_ref(req, MK_STR("X-B"), MK_STR("\ttab \xc3\xbc")), 0);
    assert_int_equal(mk_response_header(req, MK_STR("x-a"), MK_STR("again")), 0);
    assert_int_equal(mk_response_header(req, MK_STR("X-C"), MK_STR("c")), 0);
    assert_str_equal(mk_response_get_header(req, MK_STR("X-a")), "copied");
    assert_null(mk_response_get_header(req, MK_STR("X-D")).p);
    struct mk_str name, found;
    unsigned n = 0;
    while (mk_response_header_at(req, n, &name, &found))
        n++;
    assert_true(n >= 4);
    assert_str_equal(name, "X-C");
    assert_str_equal(found, "c");
    mk_response_header_remove(req, MK_STR("X-A"));
    assert_null(mk_response_get_header(req, MK_STR("X-A")).p);
    assert_str_equal(mk_response_get_header(req, MK_STR("X-C")), "c");
    mk_response_end(req);
}

TEST(fields)
{
    open_fixture(use_fields);
    struct mk_str answer = ask("GET");
    assert_non_null(strstr(answer.p, "\r\nX-B: \ttab \xc3\xbc\r\nX-C: c\r\nContent-Length: 0\r\n\r\n"));
    assert_null(strstr(answer.p, "copied"));
    assert_null(strstr(answer.p, "again"));
    assert_null(strstr(answer.p, "Set-Cookie"));
    mk_test_fixture_close(&w);
}

static void use_many_fields(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    for (int i = 0; i < MK__HEADERS_MAX; i++)
        assert_int_equal(mk_response_header(req, MK_STR("X"), MK_STR("y")), 0);
    assert_int_equal(mk_response_header(req, MK_STR("X"), MK_STR("y")), -ENOMEM);
    mk_response_end(req);
}

TEST(many_fields)
{
    unsigned n = 0;
    open_fixture(use_many_fields);
    struct mk_str answer = ask("GET");
    for (const char *at = answer.p; (at = strstr(at, "\r\nX: y")); at++)
        n++;
    assert_int_equal(n, MK__HEADERS_MAX);
    mk_test_fixture_close(&w);
}

static void keep(struct mk_request *req, struct mk_test_fixture *fixture)
{
    fixture->ctx = req;
}

TEST(too_late)
{
    open_fixture(keep);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_int_equal(mk_response_write(w.ctx, MK_STR("x")), 0);
    mk_test_settle(&w);
    assert_int_equal(mk_response_set_status(w.ctx, 404), -EALREADY);
    assert_int_equal(mk_response_header(w.ctx, MK_STR("X"), MK_STR("y")), -EALREADY);
    assert_int_equal(mk_response_set_length(w.ctx, 5), -EALREADY);
    assert_int_equal(mk_response_get_status(w.ctx), 200);
    mk_response_end(w.ctx);
    unsigned before = mk_test_descriptors();
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(mk_response_write_file(w.ctx, fd, 0, 1), -EALREADY); /* and it is closed */
    assert_int_equal(mk_test_descriptors(), before);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    mk_test_fixture_close(&w);
}

/* ── many small parts: they do not take the memory of the exchange ── */

enum { PIECES = 30000 };

static void write_pieces(struct mk_request *req, struct mk_test_fixture *fixture)
{
    char piece[2] = "a";
    (void)fixture;
    for (int i = 0; i < PIECES; i++) {
        piece[0] = (char)('a' + i % 26);
        int r = i % 3 ? mk_response_write(req, mk_str(piece, 1)) : mk_response_write_ref(req, MK_STR("-"));
        assert_int_equal(r, 0);
    }
    assert_true(mk_request_arena(req)->bytes < 16 * 1024);
    mk_response_end(req);
}

TEST(many_small_parts)
{
    open_fixture(write_pieces);
    struct mk_str answer = ask("GET");
    const char *body = strstr(answer.p, "\r\n\r\n") + 4;
    assert_non_null(strstr(answer.p, "Content-Length: 30000\r\n"));
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(body[i], i % 3 ? 'a' + i % 26 : '-');
    mk_test_fixture_close(&w);
}

/* ── trailers ── */

/* Each byte at each place: values are looked at in pieces. */
static void use_all_bytes(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    for (unsigned at = 0; at < 20; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            char value[20];
            memset(value, 'v', sizeof(value));
            value[at] = (char)byte;
            bool good = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
            assert_int_equal(mk_response_header_ref(req, MK_STR("X"), mk_str(value, sizeof(value))),
                             good ? 0 : -EINVAL);
            mk_response_header_remove(req, MK_STR("X"));
        }
    mk_response_end(req);
}

TEST(all_bytes)
{
    open_fixture(use_all_bytes);
    assert_true(mk_str_starts(ask("GET"), MK_STR("HTTP/1.1 200 OK\r\n")));
    mk_test_fixture_close(&w);
}

static void use_trailers(struct mk_request *req, struct mk_test_fixture *fixture)
{
    char value[] = "copied";
    (void)fixture;
    assert_int_equal(mk_response_trailer(req, MK_STR("X Y"), MK_STR("v")), -EINVAL);
    assert_int_equal(mk_response_trailer(req, MK_STR("X"), MK_STR("a\r\nb")), -EINVAL);
    assert_int_equal(mk_response_trailer(req, MK_STR("Content-Length"), MK_STR("1")), -EINVAL);
    assert_int_equal(mk_response_trailer(req, MK_STR("Transfer-Encoding"), MK_STR("chunked")), -EINVAL);
    assert_int_equal(mk_response_write_ref(req, MK_STR("body")), 0);
    assert_int_equal(mk_response_trailer(req, MK_STR("X-A"), mk_str_c(value)), 0);
    memset(value, '!', 6);
    mk_response_end(req);
    assert_int_equal(mk_response_trailer(req, MK_STR("X-B"), MK_STR("behind the end, but not behind the body")), 0);
}

TEST(trailers)
{
    open_fixture(use_trailers);
    struct mk_str answer = ask("GET");
    assert_non_null(strstr(answer.p, "\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-A: copied\r\n"
                                     "X-B: behind the end, but not behind the body\r\n\r\n"));
    answer = ask("HEAD");
    assert_string_equal(strstr(answer.p, "\r\n\r\n"), "\r\n\r\n");
    mk_test_fixture_close(&w);
}

static void use_many_trailers(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    for (unsigned i = 0; i < MK__TRAILERS_MAX; i++)
        assert_int_equal(mk_response_trailer(req, MK_STR("X"), MK_STR("y")), 0);
    assert_int_equal(mk_response_trailer(req, MK_STR("X"), MK_STR("y")), -ENOMEM);
    mk_response_write_ref(req, MK_STR("body"));
    if (fixture->ctx)
        assert_int_equal(mk_response_replace(req, MK_STR("text/x"), MK_STR("another")), 0);
    mk_response_end(req);
}

TEST(many_trailers)
{
    unsigned n = 0;
    open_fixture(use_many_trailers);
    for (const char *at = ask("GET").p; (at = strstr(at, "\r\nX: y")); at++)
        n++;
    assert_int_equal(n, MK__TRAILERS_MAX);
    w.ctx = &w; /* they were those of the body */
    assert_non_null(strstr(ask("GET").p, "\r\nContent-Length: 7\r\n\r\nanother"));
    mk_test_fixture_close(&w);
}

/* ── complete responses ── */

static bool is_tight;

static void prepare_much(struct mk_request *req)
{
    if (is_tight)
        mk_test_fill_arena(req);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    mk_response_header(req, MK_STR("X-Old"), MK_STR("old"));
    mk_response_trailer(req, MK_STR("X-Trailer"), MK_STR("old"));
    mk_response_set_length(req, 77);
    mk_response_write(req, MK_STR("prepared"));
    mk_response_write_ref(req, MK_STR("prepared"));
    mk_response_write_file(req, fd, 0, 10);
}

static void answer_error(struct mk_request *req, struct mk_test_fixture *fixture)
{
    prepare_much(req);
    mk_response_error(req, *(int *)fixture->ctx);
}

TEST(errors_start_over)
{
    static int statuses[] = {400, 404, 500, 599, 204};
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(statuses); i++) {
        char line[32];
        open_fixture(answer_error);
        w.ctx = &statuses[i];
        snprintf(line, sizeof(line), "HTTP/1.1 %d ", statuses[i]);
        struct mk_str answer = ask("GET");
        assert_true(mk_str_starts(answer, mk_str_c(line)));
        assert_null(strstr(answer.p, "old"));
        assert_null(strstr(answer.p, "prepared"));
        bool page = strstr(answer.p, "\r\nContent-Type: text/html; charset=utf-8\r\n");
        assert_int_equal(page, statuses[i] != 204);
        mk_test_fixture_close(&w);
        open_fixture(answer_error);
        w.ctx = &statuses[i];
        answer = ask("HEAD");
        assert_non_null(strstr(answer.p, "\r\n\r\n"));
        assert_string_equal(strstr(answer.p, "\r\n\r\n"), "\r\n\r\n");
        mk_test_fixture_close(&w);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

static void answer_redirect(struct mk_request *req, struct mk_test_fixture *fixture)
{
    prepare_much(req);
    mk_response_redirect(req, 301, mk_str_c(fixture->ctx));
}

TEST(redirects)
{
    open_fixture(answer_redirect);
    w.ctx = (void *)(uintptr_t) "/a/?b";
    struct mk_str answer = ask("GET");
    assert_true(mk_str_starts(answer, MK_STR("HTTP/1.1 301 Moved Permanently\r\n")));
    assert_non_null(strstr(answer.p, "\r\nLocation: /a/?b\r\n"));
    w.ctx = (void *)(uintptr_t) "/a\r\nSet-Cookie: x";
    answer = ask("GET");
    assert_true(mk_str_starts(answer, MK_STR("HTTP/1.1 500 ")));
    assert_null(strstr(answer.p, "Set-Cookie"));
    mk_test_fixture_close(&w);
}

static void answer_allow(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    prepare_much(req);
    mk_response_method_not_allowed(req, MK_STR("GET, HEAD"));
}

TEST(allow)
{
    open_fixture(answer_allow);
    struct mk_str answer = ask("OPTIONS");
    assert_true(mk_str_starts(answer, MK_STR("HTTP/1.1 204 No Content\r\n")));
    assert_non_null(strstr(answer.p, "\r\nAllow: GET, HEAD\r\n\r\n"));
    answer = ask("DELETE");
    assert_true(mk_str_starts(answer, MK_STR("HTTP/1.1 405 Method Not Allowed\r\n")));
    assert_non_null(strstr(answer.p, "\r\nAllow: GET, HEAD\r\n"));
    mk_test_fixture_close(&w);
}

TEST(every_allocation_may_fail)
{
    void (*const handlers[])(struct mk_request *, struct mk_test_fixture *) = {answer_error, answer_redirect,
                                                                               answer_allow};
    static int status = 404;
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(handlers); i++) {
        bool all_fine = false;
        is_tight = true;
        for (long n = 0; !all_fine && n < 50; n++) {
            open_fixture(handlers[i]);
            w.ctx = i ? (void *)(uintptr_t) "/to" : (void *)&status;
            mk__alloc_countdown = n;
            mk_test_connect(&w, MK_STR("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
            mk_test_settle(&w);
            all_fine = mk__alloc_countdown >= 0;
            mk__alloc_countdown = -1;
            mk_test_fixture_close(&w);
        }
        assert_true(all_fine);
    }
    is_tight = false;
    assert_int_equal(mk_test_descriptors(), before);
}
