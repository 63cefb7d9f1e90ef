// SPDX-License-Identifier: Apache-2.0
/*
 * Request bodies: in pieces, paused, rejected, after 100 (Continue), and discarded.
 */
#include "http/h1_fixture.h"

/* ── bodies ── */

static const struct {
    const char *bytes, *body;
} bodies[] = {
    {POST(10) "0123456789", "0123456789"},
    {POST(0), ""},
    {GET, ""},
    {CHUNKED "5\r\n01234\r\n5;x=y\r\n56789\r\n0\r\nTrailer: t\r\n\r\n", "0123456789"},
    {CHUNKED "0\r\n\r\n", ""},
};

TEST(bodies_in_pieces)
{
    for (size_t i = 0; i < COUNT(bodies); i++) {
        size_t len = strlen(bodies[i].bytes);
        for (size_t piece = 1; piece <= len; piece++) {
            open_fixture(read_all);
            struct mk_test_client *c = mk_test_connect(&w, MK_STR(""));
            for (size_t at = 0; at < len; at += piece) {
                mk_test_send(c, mk_str(bodies[i].bytes + at, len - at < piece ? len - at : piece));
                mk_test_settle(&w);
            }
            expect_received(c, HELLO);
            assert_int_equal(body.ends, 1);
            assert_str_equal(mk_str(body.bytes, body.len), bodies[i].body);
            mk_test_send(c, MK_STR(GET)); /* the connection is in step */
            expect_received(c, HELLO);
            close_fixture();
        }
    }
}

TEST(bodies_that_are_refused)
{
    open_fixture(read_all);
    w.settings.limits.body_bytes_max = 20;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(CHUNKED "5\r\nhello\r\nx\r\n"));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 400 ")));
    assert_string_equal(mk_test_state(c), "linger");
    assert_int_equal(body.ends, 0);
    c = mk_test_connect(&w, MK_STR(CHUNKED "14\r\n01234567890123456789\r\n1\r\nx"));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 413 ")));
    assert_int_equal(body.ends, 0);
    c = mk_test_connect(&w, MK_STR(POST(21)));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 413 ")));
    close_fixture();
}

static void pause_each(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    gather(req, piece, end, ctx);
    if (!end)
        mk_request_pause(req);
    held_req = req;
}

static void read_with_pauses(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    body.len = body.ends = 0;
    mk_request_read(req, pause_each, NULL);
}

TEST(a_paused_client_is_not_read)
{
    static char megabyte[1 << 20];
    open_fixture(read_with_pauses);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("POST / HTTP/1.1\r\nHost: h\r\n"
                                                          "Content-Length: 1048576\r\n\r\n1"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "handler");
    size_t read_before = c->read_bytes;
    mk_test_send(c, mk_str(megabyte, sizeof(megabyte) - 1));
    mk_test_pass(&w, 1000);
    assert_int_equal(c->read_bytes, read_before); /* TCP holds the client back */
    assert_int_equal(body.len, 1);
    body.len = 0;
    mk_request_resume(held_req);
    mk_test_settle(&w);
    assert_true(c->read_bytes > read_before);
    assert_in_range(body.len, 1, 32 * 1024);
    assert_string_equal(mk_test_state(c), "handler");
    for (int i = 0; i < 1000 && !body.ends; i++) {
        body.len = 0;
        mk_request_resume(held_req);
        mk_test_settle(&w);
    }
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 200 ")));
    assert_string_equal(mk_test_state(c), "idle");
    close_fixture();
}

static void answer_and_read(struct mk_request *req, struct mk_test_fixture *fixture)
{
    assert_int_equal(mk_response_write(req, MK_STR("already")), 0);
    read_all(req, fixture);
}

TEST(a_malformed_body_cuts_the_answer)
{
    open_fixture(answer_and_read);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(CHUNKED "1\r\nx\r\n"));
    expect_received(c, OK "Transfer-Encoding: chunked\r\n\r\n7\r\nalready\r\n");
    assert_string_equal(mk_test_state(c), "read_body");
    mk_test_send(c, MK_STR("x\r\n"));
    expect_received(c, ""); /* neither a last chunk nor another head */
    assert_string_not_equal(mk_test_state(c), "read_body");
    assert_string_not_equal(mk_test_state(c), "idle");
    assert_int_equal(w.aborted, 1);
    assert_int_equal(body.ends, 0);
    close_fixture();
}

/* ── bodies without a reader ── */

TEST(a_small_unread_body_is_read_away)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(POST(10) "0123456789" GET));
    expect_received(c, HELLO HELLO);
    mk_test_send(c, MK_STR(POST(10) "012"));
    expect_received(c, HELLO);
    assert_string_equal(mk_test_state(c), "read_body");
    mk_test_send(c, MK_STR("3456789" GET));
    expect_received(c, HELLO);
    assert_string_equal(mk_test_state(c), "idle");
    assert_int_equal(w.done, 4);
    assert_int_equal(w.aborted, 0);
    close_fixture();
}

static void answer_and_keep(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    held_req = req;
    mk_response_error(req, 404);
}

/* A pause after the response is complete comes too late: the rest of the body is discarded. */
TEST(a_late_pause_does_not_stop_discarding)
{
    open_fixture(answer_and_keep);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(POST(10) "012"));
    mk_test_settle(&w);
    assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 404 ")));
    assert_string_equal(mk_test_state(c), "read_body");
    mk_request_pause(held_req);
    mk_test_send(c, MK_STR("3456789"));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    assert_int_equal(w.done, 1);
    assert_int_equal(w.aborted, 0);
    close_fixture();
}

#define CHUNKED_X "HTTP/1.1 200 OK\r\n" STAMP "Transfer-Encoding: chunked\r\n\r\n0001\r\nx\r\n0\r\n\r\n"

/* The response is completed once, even if the rest of the request takes many turns. */
TEST(the_last_chunk_comes_once)
{
    open_fixture(generate_x);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(POST(10) "0123456789" GET));
    expect_received(c, CHUNKED_X CHUNKED_X);
    mk_test_send(c, MK_STR(POST(10)));
    expect_received(c, CHUNKED_X);
    for (int i = 0; i < 10; i++) {
        mk_test_send(c, MK_STR("x"));
        expect_received(c, "");
    }
    mk_test_send(c, MK_STR(GET));
    expect_received(c, CHUNKED_X);
    close_fixture();
}

TEST(a_large_unread_body_ends_the_connection)
{
    static char rest[10000];
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(POST(10000) "0123456789"));
    expect_received(c, HELLO_CLOSE);
    assert_string_equal(mk_test_state(c), "linger");
    assert_true(c->shut);
    mk_test_send(c, mk_str(rest, sizeof(rest)));
    mk_test_settle(&w);
    assert_int_equal(c->read_at, c->to_server.len); /* else a reset would destroy the response */
    assert_string_equal(mk_test_state(c), "linger");
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.aborted, 0);
    close_fixture();
}

TEST(an_endless_unread_body_ends_the_connection)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(CHUNKED));
    expect_received(c, HELLO);
    for (int i = 0; i < 2000 && strcmp(mk_test_state(c), "read_body") == 0; i++) {
        mk_test_send(c, MK_STR("8\r\n01234567\r\n"));
        mk_test_settle(&w);
    }
    assert_string_equal(mk_test_state(c), "linger"); /* so that the response is not lost */
    assert_in_range(c->read_bytes, 8192, 16384);
    assert_int_equal(w.aborted, 0);
    expect_received(c, "");
    close_fixture();
}

TEST(a_malformed_unread_body_does_not_spoil_the_answer)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(CHUNKED "x\r\n" GET));
    expect_received(c, HELLO);
    assert_string_equal(mk_test_state(c), "linger");
    assert_int_equal(w.requests, 1);
    close_fixture();
}

TEST(leaving_after_the_answer_is_no_abort)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(POST(10) "0"));
    expect_received(c, HELLO);
    mk_test_fin(c);
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "closed");
    assert_int_equal(w.done, 1);
    assert_int_equal(w.aborted, 0);
    close_fixture();
}

/* ── Expect: 100-continue ── */

TEST(the_reader_invites)
{
    open_fixture(read_all);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(EXPECT(5)));
    expect_received(c, CONTINUE);
    mk_test_send(c, MK_STR("01"));
    expect_received(c, ""); /* once */
    mk_test_send(c, MK_STR("234" GET));
    expect_received(c, HELLO HELLO);
    assert_string_equal(mk_test_state(c), "idle");
    mk_test_send(c, MK_STR(EXPECT(5) "01234")); /* it did not wait */
    expect_received(c, HELLO);
    close_fixture();
}

TEST(no_invitation)
{
    open_fixture(NULL);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(EXPECT(5)));
    expect_received(c, HELLO_CLOSE); /* whether the body comes is not known */
    assert_string_equal(mk_test_state(c), "linger");
    close_fixture();
}

TEST(a_late_invitation)
{
    open_fixture(remember);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(EXPECT(5)));
    expect_received(c, "");
    mk_test_pass(&w, 1000);
    assert_string_equal(mk_test_state(c), "handler");
    read_all(held_req, &w);
    expect_received(c, CONTINUE);
    assert_string_equal(mk_test_state(c), "read_body");
    close_fixture();
}
