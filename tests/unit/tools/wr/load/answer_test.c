// SPDX-License-Identifier: Apache-2.0
/*
 * The parser of answers: each case whole, byte by byte, and flush against a page that cannot be read.
 */
#include "testing.h"

#include "tools/wr/load/answer.h"

#include <errno.h>
#include <stdio.h>

struct outcome {
    int status;
    bool done, bad, close;
    size_t used;
    char body[256];
    size_t body_len;
    uint64_t body_bytes;
    uint32_t head_bytes;
};

static struct outcome parse(const char *in, size_t len, size_t piece, bool to_head)
{
    struct outcome o = {0};
    struct answer a;
    answer_init(&a, to_head);
    while (o.used < len && !answer_is_done(&a)) {
        struct mk_str body;
        size_t left = len - o.used;
        ssize_t n = answer_parse(&a, in + o.used, left < piece ? left : piece, &body);
        if (n < 0) {
            o.bad = true;
            break;
        }
        assert_true(n > 0);
        assert_true(o.body_len + body.len <= sizeof(o.body));
        if (body.len)
            memcpy(o.body + o.body_len, body.p, body.len);
        o.body_len += body.len;
        o.used += (size_t)n;
        assert_int_equal(a.total_bytes, o.used);
    }
    o.status = a.parser.status;
    o.done = answer_is_done(&a);
    o.close = answer_closes(&a);
    o.body_bytes = a.body_bytes;
    o.head_bytes = a.head_bytes;
    answer_release(&a);
    return o;
}

static const struct row {
    const char *in;
    int status; /* 0: malformed */
    const char *body;
    bool close, open_end; /* `open_end`: lasts until the connection ends */
    size_t rest;          /* bytes of `in` that belong to the next answer */
} rows[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", .close = false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP", 200, "hello", .rest = 4},
    {"HTTP/1.1 200\r\ncontent-length:5\r\n\r\nhello", 200, "hello", .close = false},
    {"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 200, "", .close = false},
    {"HTTP/1.1 204 No Content\r\n\r\nX", 204, "", .rest = 1},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, "", .close = false},
    {"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno", 404, "no", .close = true},
    {"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", 200, "", .close = true},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", 200, "a", .close = true},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\na", 200, "a", .close = false},
    {"HTTP/1.1 200 OK\r\n\r\nall of it", 200, "all of it", .close = true, .open_end = true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\nHT", 200, "hello!",
     .rest = 2},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\nA: b\r\n\r\n", 200, "", .close = false},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", 200, "a", .close = false},
    {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 204 N\r\n\r\n", 204, "",
     .close = false},
    /* malformed; more of these: response_parser_test.c */
    {"hello\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 101 Switching Protocols\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 0, NULL, .close = false},
};

static void check_outcome(const struct row *row, struct outcome o)
{
    if (!row->status) {
        assert_true(o.bad);
        return;
    }
    assert_false(o.bad);
    assert_int_equal(o.status, row->status);
    assert_int_equal(o.done, !row->open_end);
    assert_int_equal(o.close, row->close);
    assert_int_equal(o.used, strlen(row->in) - row->rest);
    assert_int_equal(o.body_bytes, o.body_len);
    assert_str_equal(mk_str(o.body, o.body_len), row->body);
}

TEST(rows)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = strlen(rows[i].in);
        char *guarded = mk_test_guarded(rows[i].in, len);
        for (size_t piece = 1; piece <= len; piece++)
            check_outcome(&rows[i], parse(guarded, len, piece, false));
        mk_test_unguard(guarded, len);
    }
}

TEST(head_has_no_body)
{
    struct outcome o = parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHT", 40, 7, true);
    assert_true(o.done);
    assert_int_equal(o.used, 38);
    assert_int_equal(o.head_bytes, 38);
}

TEST(end)
{
    struct answer a;
    struct mk_str body;
    answer_init(&a, false);
    assert_int_equal(answer_end(&a), -EPIPE);
    answer_parse(&a, "HTTP/1.1 200 OK\r\n\r\n", 19, &body);
    assert_int_equal(answer_skippable(&a), 0);
    assert_int_equal(answer_end(&a), 0);
    assert_true(answer_is_done(&a));
    answer_begin(&a);
    assert_false(answer_is_done(&a));
    answer_parse(&a, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 38, &body);
    assert_int_equal(answer_end(&a), -EPIPE);
    assert_int_equal(answer_skippable(&a), 5);
    answer_skip(&a, 2);
    assert_int_equal(answer_skippable(&a), 3);
    answer_skip(&a, 3);
    assert_true(answer_is_done(&a));
    assert_int_equal(a.total_bytes, 43);
    answer_release(&a);
}

/* A head may have 64 KB - 1, however it comes. */
TEST(limits)
{
    static char in[70000];
    static const struct {
        size_t bytes;
        bool bad;
    } cases[] = {{1000, false}, {65535, false}, {65536, true}, {69000, true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t n = (size_t)snprintf(in, sizeof(in), "HTTP/1.1 204 N\r\nX: "), len = cases[i].bytes;
        memset(in + n, 'x', len - n);
        memcpy(in + len - 4, "\r\n\r\n", 4);
        for (size_t piece = 100; piece < 70000; piece = piece * 5 + 1) {
            struct outcome o = parse(in, len, piece, false);
            assert_int_equal(o.bad, cases[i].bad);
            assert_int_equal(o.done, !cases[i].bad);
        }
    }
}
