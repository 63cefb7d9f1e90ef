// SPDX-License-Identifier: Apache-2.0
/* The length of a request's body, and its trailers. */
#include "http/h2_fixture.h"

#include "http/request_extra.h"

#include <errno.h>

static char seen[256];

static void note_trailers(struct mk_request *req)
{
    struct mk_str name, value;
    size_t n = 0;
    seen[0] = '\0';
    for (unsigned i = 0; mk_request_trailer_at(req, i, &name, &value); i++)
        if (n < sizeof(seen))
            n += (size_t)snprintf(seen + n, sizeof(seen) - n, "%.*s=%.*s;", MK_STR_ARG(name), MK_STR_ARG(value));
}

static void take_body(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct mk_str name, value;
    (void)piece;
    (void)ctx;
    if (!end) {
        assert_false(mk_request_trailer_at(req, 0, &name, &value));
        return;
    }
    note_trailers(req);
    mk_response_write_ref(req, MK_STR("hello"));
    mk_response_end(req);
}

static void keep(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    assert_int_equal(mk_request_keep_trailers(req), 0);
    assert_int_equal(mk_request_keep_trailers(req), 0);
    mk_request_read(req, take_body, NULL);
}

static void drop(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    mk_request_read(req, take_body, NULL);
}

TEST(of_a_body_in_chunks)
{
    open_fixture(keep);
    struct mk_test_client *c =
        mk_test_connect(&w, MK_STR(CHUNKED "5\r\n12345\r\n0\r\nX-A: 1\r\nX-B:two words \r\nContent-Length: 7\r\n"
                                           "X-C:\r\n\r\n" CHUNKED "0\r\n\r\n"));
    expect_received(c, HELLO HELLO);
    assert_string_equal(seen, "");
    mk_test_send(c, MK_STR(CHUNKED "0\r\nX-A: 1\r\nX-B:two words \r\nContent-Length: 7\r\nX-C:\r\n\r\n"));
    expect_received(c, HELLO);
    assert_string_equal(seen, "X-A=1;X-B=two words;X-C=;");
    mk_test_send(c, MK_STR(CHUNKED "1\r\nx\r\n0\r\nX-A: 1\r\nX-"));
    expect_received(c, "");
    mk_test_send(c, MK_STR("B: 2\r\n\r\n"));
    expect_received(c, HELLO);
    assert_string_equal(seen, "X-A=1;X-B=2;");
    w.handler = drop;
    mk_test_send(c, MK_STR(CHUNKED "0\r\nX-A: 1\r\n\r\n"));
    expect_received(c, HELLO);
    assert_string_equal(seen, "");
    mk_test_send(c, MK_STR(POST(3) "123"));
    expect_received(c, HELLO);
    close_fixture();
}

static void send_many(struct mk_test_client *c, size_t lines, size_t value_bytes)
{
    static char text[10000];
    size_t at = 0;
    mk_test_send(c, MK_STR(CHUNKED "0\r\n"));
    for (size_t i = 0; i < lines; i++) {
        memcpy(text + at, "a:", 2);
        memset(text + at + 2, 'v', value_bytes);
        memcpy(text + at + 2 + value_bytes, "\r\n", 2);
        at += value_bytes + 4;
    }
    mk_test_send(c, mk_str(text, at));
    mk_test_send(c, MK_STR("\r\n"));
}

/* Those that are kept are the same as those that are dropped. */
TEST(in_chunks_above_the_limits)
{
    static const struct {
        size_t lines, value_bytes;
        bool is_refused;
    } cases[] = {
        {64, 1, false},
        {65, 1, true},
        {64, (8192 - 2) / 64 - 4, false}, /* each line is longer with its blank */
        {1, 8192 - 2 - 4, false},
        {1, 8192 - 2 - 3, true},
    };
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        open_fixture(i % 2 ? keep : drop);
        struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
        send_many(c, cases[i / 2].lines, cases[i / 2].value_bytes);
        mk_test_settle(&w);
        const char *status = cases[i / 2].is_refused ? "HTTP/1.1 413 " : "HTTP/1.1 200 ";
        assert_true(mk_str_starts(mk_test_received(c), mk_str_c(status)));
        close_fixture();
    }
}

TEST(in_chunks_asked_for_too_late)
{
    open_fixture(drop);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(CHUNKED "0\r\nX-A: 1\r\n"));
    mk_test_settle(&w);
    assert_int_equal(mk_request_keep_trailers(held_req), 0); /* from here on */
    mk_test_send(c, MK_STR("X-B: 2\r\n\r\n"));
    expect_received(c, HELLO);
    assert_string_equal(seen, "X-B=2;");
    close_fixture();
}

TEST(in_chunks_without_memory)
{
    open_fixture(keep);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(CHUNKED "0\r\n"));
    mk_test_settle(&w);
    struct mk_buf *trailers = held_req->chunked.trailers;
    assert_non_null(trailers);
    trailers->err = -ENOMEM;
    mk_test_send(c, MK_STR("X-A: 1\r\n\r\n"));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 503 ")));
    close_fixture();
}

#define LAST END_HEADERS | END_STREAM

static void send_with_trailers(struct mk_test_h2 *t, int32_t id, const char *trailers)
{
    h2_head(t, id, END_HEADERS, HEAD("POST", "/"));
    h2_data(t, id, 0, MK_STR("12345"));
    h2_head(t, id, LAST, trailers);
}

TEST(of_a_stream)
{
    struct mk_test_h2 t = h2_open(keep);
    send_with_trailers(&t, 1, "x-a 1|x-b two words|server other|date now|x-a 2");
    h2_expect(&t, HELLO_OF(1));
    assert_string_equal(seen, "x-a=1;x-b=two words;x-a=2;");
    h2_post(&t, 3); /* without a body before them */
    h2_head(&t, 3, LAST, "x-c 3");
    h2_expect(&t, HELLO_OF(3));
    assert_string_equal(seen, "x-c=3;");
    h2_post(&t, 5);
    h2_data(&t, 5, END_STREAM, MK_STR("none"));
    h2_expect(&t, HELLO_OF(5));
    assert_string_equal(seen, "");
    h2_get_path(&t, 7, "/");
    h2_expect(&t, HELLO_OF(7));
    assert_string_equal(seen, "");
    h2_close(&t);
}

TEST(that_no_handler_wants)
{
    struct mk_test_h2 t = h2_open(drop);
    send_with_trailers(&t, 1, "x-a 1");
    h2_expect(&t, HELLO_OF(1));
    assert_string_equal(seen, "");
    w.handler = remember; /* asks for them when they have been dropped */
    send_with_trailers(&t, 3, "x-a 1");
    h2_expect(&t, "");
    assert_int_equal(mk_request_keep_trailers(held_req), -EALREADY);
    mk_request_read(held_req, take_body, NULL);
    h2_expect(&t, HELLO_OF(3));
    assert_string_equal(seen, "");
    h2_close(&t);
}

/* As a body that is too long. */
TEST(above_the_limits)
{
    static char fields[9000];
    struct mk_test_h2 t = h2_open(keep);
    for (size_t i = 0; i <= MK_REQUEST_TRAILERS_MAX; i++)
        memcpy(fields + 6 * i, "x-a 1|", 6);
    fields[6 * MK_REQUEST_TRAILERS_MAX + 5] = '\0';
    send_with_trailers(&t, 1, fields);
    h2_expect(&t, PAGE(413));
    fields[6 * MK_REQUEST_TRAILERS_MAX - 1] = '\0'; /* one less */
    send_with_trailers(&t, 3, fields);
    h2_expect(&t, HELLO_OF(3));
    memset(fields, 'x', sizeof(fields));
    memcpy(fields, "x-a ", 4);
    fields[4 + MK_REQUEST_TRAILER_BYTES_MAX - 6] = '\0';
    send_with_trailers(&t, 5, fields);
    h2_expect(&t, "5:413*");
    fields[4 + MK_REQUEST_TRAILER_BYTES_MAX - 7] = '\0';
    send_with_trailers(&t, 7, fields);
    h2_expect(&t, HELLO_OF(7));
    h2_close(&t);
}

TEST(without_memory)
{
    struct mk_test_h2 t = h2_open(keep);
    h2_post(&t, 1);
    h2_expect(&t, "");
    mk_test_fill_arena(held_req);
    mk__alloc_countdown = 0;
    mk__trailers_add(held_req, MK_STR("x-a"), MK_STR("1"));
    mk__alloc_countdown = -1;
    h2_expect(&t, "1:503*");
    h2_close(&t);
}

/* ── the length ── */

static void tell_length(struct mk_request *req, struct mk_test_fixture *fixture)
{
    uint64_t bytes;
    char text[32];
    (void)fixture;
    bool is_known = mk_request_body_length(req, &bytes);
    snprintf(text, sizeof(text), is_known ? "%d" : "?", (int)bytes);
    mk_response_write(req, mk_str_c(text));
    mk_response_end(req);
}

#define SAYS(text) \
    OK "Content-Length: " \
       "1\r\n\r\n" text

TEST(length)
{
    open_fixture(tell_length);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET POST(3) "123" CHUNKED "0\r\n\r\n" POST(0)));
    expect_received(c, SAYS("0") SAYS("3") SAYS("?") SAYS("0"));
    close_fixture();

    struct mk_test_h2 t = h2_open(tell_length);
    h2_get_path(&t, 1, "/");
    h2_expect(&t, "1:200,content-length=1 1:\"0\"!");
    h2_post(&t, 3);
    h2_expect(&t, "3:200,content-length=1 3:\"[?]\"!");
    h2_head(&t, 5, END_HEADERS, LENGTH(7));
    h2_expect(&t, "5:200,content-length=1 5:\"7\"!");
    h2_close(&t);
}
