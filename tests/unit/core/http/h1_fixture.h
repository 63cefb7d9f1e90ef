// SPDX-License-Identifier: Apache-2.0
/*
 * For tests of HTTP/1 connections: one fixture, and requests and responses as text.
 */
#ifndef MK_UNIT_HTTP_H1_FIXTURE_H
#define MK_UNIT_HTTP_H1_FIXTURE_H

#include "testing.h"

#include "harness.h"

typedef void handler_fn(struct mk_request *req, struct mk_test_fixture *fixture);

static struct mk_test_fixture w;

static inline void open_fixture(handler_fn *handler)
{
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    w.handler = handler;
    assert_int_equal(mk_test_http_open(&w), 0);
}

/* Checks that every request has ended once. */
static inline void close_fixture(void)
{
    mk_test_fixture_close(&w);
    assert_true(w.requests <= w.done);
}

/* The last request of the handler below. */
__attribute__((unused)) static struct mk_request *held_req;

/* A handler that does not answer yet. */
static inline void remember(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    held_req = req;
}

#define GET "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
#define CLOSE "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
#define POST(length) "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " #length "\r\n\r\n"
#define CHUNKED "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
#define EXPECT(length) "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: " #length "\r\n\r\n"

#define STAMP "Server: x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define OK "HTTP/1.1 200 OK\r\n" STAMP
#define HELLO OK "Content-Length: 5\r\n\r\nhello"
#define HELLO_CLOSE OK "Content-Length: 5\r\nConnection: close\r\n\r\nhello"
#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

/* Runs turns until nothing is left to do, and compares the output since the last call. */
static inline void expect_received(struct mk_test_client *c, const char *text)
{
    mk_test_settle(&w);
    assert_string_equal(mk_test_received(c).p, text);
}

/* A generator of one byte: a response of unknown length. */
static inline ssize_t one_x(struct mk_request *req, char *to, size_t size, void *ctx)
{
    bool *said = ctx;
    (void)req;
    (void)size;
    if (*said)
        return 0;
    *said = true;
    *to = 'x';
    return 1;
}

static inline void generate_x(struct mk_request *req, struct mk_test_fixture *fixture)
{
    bool *said = mk_arena_zalloc(mk_request_arena(req), sizeof(*said));
    (void)fixture;
    if (!said || mk_response_generate(req, one_x, said) < 0)
        mk_response_abort(req);
    else
        mk_response_end(req);
}

/* A handler that collects the body in pieces and then sends hello. */
static struct {
    char bytes[8192];
    size_t len;
    unsigned ends;
} body;

static inline void gather(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    (void)ctx;
    if (piece.len && body.len + piece.len <= sizeof(body.bytes))
        memcpy(body.bytes + body.len, piece.p, piece.len);
    body.len += piece.len;
    body.ends += end;
    if (end) {
        mk_response_write_ref(req, MK_STR("hello"));
        mk_response_end(req);
    }
}

static inline void read_all(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    body.len = body.ends = 0;
    mk_request_read(req, gather, NULL);
}

#endif
