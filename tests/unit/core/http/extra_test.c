// SPDX-License-Identifier: Apache-2.0
/* What only some exchanges need: the date of an origin, a separate timeout, notes. */
#include "http/h2_fixture.h"

#include <errno.h>

static void send_hello(struct mk_request *req)
{
    mk_response_write_ref(req, MK_STR("hello"));
    mk_response_end(req);
}

/* ── the date of an origin ── */

#define ORIGIN "Tue, 15 Nov 1994 08:12:31 GMT"
#define ORIGIN_LINES "Server: x\r\nDate: " ORIGIN "\r\n"

static int date_status;

static void give_date(struct mk_request *req, struct mk_test_fixture *fixture)
{
    char date[] = ORIGIN;
    (void)fixture;
    assert_int_equal(mk_response_set_date(req, MK_STR("yesterday")), -EINVAL);
    assert_int_equal(mk_response_set_date(req, MK_STR(ORIGIN "\r\nX: y")), -EINVAL);
    assert_int_equal(mk_response_set_date(req, MK_STR("")), -EINVAL);
    assert_int_equal(mk_response_set_date(req, MK_STR("Sunday, 06-Nov-94 08:49:37 GMT")), 0);
    assert_int_equal(mk_response_set_date(req, mk_str_c(date)), 0);
    memset(date, '!', sizeof(date) - 1);
    mk_response_set_status(req, date_status);
    send_hello(req);
}

TEST(date)
{
    open_fixture(give_date);
    date_status = 200;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    expect_received(c, "HTTP/1.1 200 OK\r\n" ORIGIN_LINES "Content-Length: 5\r\n\r\nhello");
    date_status = 404;
    mk_test_send(c, MK_STR(GET));
    expect_received(c, "HTTP/1.1 404 Not Found\r\n" ORIGIN_LINES "Content-Length: 5\r\n\r\nhello");
    w.handler = NULL; /* the next exchange of the connection has that of the server again */
    mk_test_send(c, MK_STR(GET));
    expect_received(c, HELLO);
    close_fixture();
}

static const char *find_header(struct mk_test_h2 *t, const char *name, char *to, size_t size)
{
    struct mk_str all = mk_test_received(t->end);
    int inflated = 0;
    to[0] = '\0';
    for (size_t at = 0; all.len - at >= 9; at += 9 + h2_get(all.p + at, 3)) {
        const uint8_t *p = (const uint8_t *)all.p + at + 9;
        size_t len = all.p[at + 3] == NGHTTP2_HEADERS ? h2_get(all.p + at, 3) : 0;
        while (len && !(inflated & NGHTTP2_HD_INFLATE_FINAL)) {
            nghttp2_nv nv;
            ssize_t n = nghttp2_hd_inflate_hd2(t->inflater, &nv, &inflated, p, len, 1);
            assert_true(n >= 0);
            p += n;
            len -= (size_t)n;
            if (inflated & NGHTTP2_HD_INFLATE_EMIT && strcmp((char *)nv.name, name) == 0)
                snprintf(to, size, "%s%s%.*s", to[0] ? to : "", to[0] ? "|" : "", (int)nv.valuelen, (char *)nv.value);
        }
    }
    return to;
}

TEST(date_on_a_stream)
{
    char date[128];
    struct mk_test_h2 t = h2_open(give_date);
    date_status = 200;
    h2_get_path(&t, 1, "/");
    mk_test_settle(&w);
    assert_string_equal(find_header(&t, "date", date, sizeof(date)), ORIGIN);
    h2_close(&t);
}

static void give_date_and_fail(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_set_date(req, MK_STR(ORIGIN)), 0);
    mk_response_error(req, 502);
}

static void give_date_late(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    mk_response_write_ref(req, MK_STR("hello"));
}

TEST(date_of_an_error_of_the_server)
{
    open_fixture(give_date_and_fail);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 502 Bad Gateway\r\n" STAMP)));
    w.handler = give_date_late;
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w);
    assert_int_equal(mk_response_set_date(held_req, MK_STR(ORIGIN)), -EALREADY);
    mk_response_end(held_req);
    mk_test_settle(&w);
    close_fixture();
}

/* ── a wait of its own ── */

static uint32_t wait_ms;

static void wait_first(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    assert_int_equal(mk_request_wait(req, 0), -EINVAL);
    assert_int_equal(mk_request_wait(req, MK_REQUEST_WAIT_MAX_MS + 1), -EINVAL);
    assert_int_equal(mk_request_wait(req, wait_ms), 0);
}

/* Expects an answer when `ms` have passed, and not before. */
static void expect_timeout(struct mk_test_client *c, uint32_t ms)
{
    mk_test_pass(&w, ms - 1);
    assert_string_equal(mk_test_received(c).p, "");
    assert_int_equal(w.done, 0);
    mk_test_pass(&w, 1);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 503 ")));
}

TEST(wait_for_a_response)
{
    static const uint32_t waits[] = {10, 1000, 59000, 61000, 3600000};
    for (size_t i = 0; i < COUNT(waits); i++) {
        open_fixture(wait_first);
        wait_ms = waits[i];
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
        mk_test_settle(&w);
        expect_timeout(c, waits[i]);
        close_fixture();
    }
}

/* Each call begins anew, also with the same time. */
TEST(wait_again)
{
    static const uint32_t waits[] = {1000, 1000, 500, 90000};
    open_fixture(wait_first);
    wait_ms = 2000;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    for (size_t i = 0; i < COUNT(waits); i++) {
        mk_test_pass(&w, 400);
        assert_int_equal(mk_request_wait(held_req, waits[i]), 0);
        mk_test_settle(&w);
    }
    expect_timeout(c, 90000);
    close_fixture();
}

/* The limits of others do not change. */
TEST(wait_of_one_exchange)
{
    open_fixture(wait_first);
    wait_ms = 1000;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    send_hello(held_req);
    expect_received(c, HELLO);
    w.handler = remember;
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w);
    mk_test_pass(&w, 59999);
    assert_string_equal(mk_test_received(c).p, "");
    mk_test_pass(&w, 1);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 503 ")));
    close_fixture();
}

TEST(wait_of_a_response_that_has_begun)
{
    open_fixture(wait_first);
    wait_ms = 100000;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    mk_response_write_ref(held_req, MK_STR("part"));
    mk_test_settle(&w);
    mk_test_received(c);
    mk_test_pass(&w, 99000);
    mk_response_write_ref(held_req, MK_STR("more"));
    mk_test_settle(&w);
    mk_test_pass(&w, 99999);
    assert_int_equal(w.aborted, 0);
    mk_test_pass(&w, 1);
    assert_int_equal(w.aborted, 1);
    close_fixture();
}

TEST(wait_of_a_stream)
{
    struct mk_test_h2 t = h2_open(wait_first);
    wait_ms = 5000;
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "");
    mk_test_pass(&w, 4000);
    assert_int_equal(mk_request_wait(held_req, 100000), 0);
    h2_expect(&t, "");
    mk_test_pass(&w, 99999);
    h2_expect(&t, "");
    mk_test_pass(&w, 1);
    h2_expect(&t, "1:503*");
    h2_close(&t);
}

/* ── notes ── */

static void take_notes(struct mk_request *req, struct mk_test_fixture *fixture)
{
    static char names[MK_NOTES_MAX][8], longest[MK_NOTE_BYTES_MAX + 1];
    (void)fixture;
    memset(longest, 'x', sizeof(longest));
    assert_null(mk_request_get_note(req, MK_STR("n0")).p);
    assert_int_equal(mk_request_note(req, MK_STR(""), MK_STR("v")), -EINVAL);
    assert_int_equal(mk_request_note(req, MK_STR("n0"), mk_str(longest, sizeof(longest))), -EMSGSIZE);
    for (int i = 0; i < MK_NOTES_MAX; i++) {
        char value[] = "value 0";
        value[6] = (char)('a' + i);
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        assert_int_equal(mk_request_note(req, mk_str_c(names[i]), mk_str_c(value)), 0);
        memset(value, '!', 7);
    }
    assert_int_equal(mk_request_note(req, MK_STR("more"), MK_STR("v")), -ENOBUFS);
    assert_str_equal(mk_request_get_note(req, MK_STR("n0")), "value a");
    assert_str_equal(mk_request_get_note(req, MK_STR("n15")), "value p");
    assert_null(mk_request_get_note(req, MK_STR("more")).p);
    assert_int_equal(mk_request_note(req, MK_STR("n3"), mk_str(longest, MK_NOTE_BYTES_MAX)), 0);
    assert_int_equal(mk_request_get_note(req, MK_STR("n3")).len, MK_NOTE_BYTES_MAX);
    assert_int_equal(mk_request_note(req, MK_STR("n3"), MK_STR("")), 0);
    assert_true(mk_request_get_note(req, MK_STR("n3")).p && !mk_request_get_note(req, MK_STR("n3")).len);
    for (int i = 0; i < 10000; i++) /* takes no more memory */
        assert_int_equal(mk_request_note(req, MK_STR("n3"), mk_str(longest, (size_t)i % MK_NOTE_BYTES_MAX)), 0);
    send_hello(req);
}

TEST(notes)
{
    open_fixture(take_notes);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    expect_received(c, HELLO);
    close_fixture();
}

static void fail_alloc(struct mk_request *req)
{
    mk_test_fill_arena(req);
    mk__alloc_countdown = 0;
}

static void use_without_memory(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    fail_alloc(req);
    assert_int_equal(mk_response_set_date(req, MK_STR(ORIGIN)), -ENOMEM);
    fail_alloc(req);
    assert_int_equal(mk_request_wait(req, 1000), -ENOMEM);
    fail_alloc(req);
    assert_int_equal(mk_request_note(req, MK_STR("n"), MK_STR("v")), -ENOMEM);
    fail_alloc(req);
    assert_int_equal(mk_request_keep_trailers(req), -ENOMEM);
    mk__alloc_countdown = -1;
    assert_null(mk_request_get_note(req, MK_STR("n")).p);
    send_hello(req);
}

TEST(without_memory)
{
    open_fixture(use_without_memory);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    expect_received(c, HELLO);
    close_fixture();
}
