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
    while (o.used < len && a.state != ANSWER_DONE) {
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
    o.status = a.status;
    o.done = a.state == ANSWER_DONE;
    o.close = a.close;
    o.body_bytes = a.body_bytes;
    o.head_bytes = a.head_bytes;
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
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", .close = false},
    /* malformed */
    {"HTTP/2 200 OK\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 2000\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1  200\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 099 X\r\n\r\n", 0, NULL, .close = false},
    {"hello\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 101 Switching Protocols\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5,5\r\n\r\nhello", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1111111111111111111\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\n: no name\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nName : blank\r\n\r\n", 0, NULL, .close = false},
    {"HTTP/1.1 200 OK\r\nA: b\r\n folded: c\r\n\r\n", 0, NULL, .close = false},
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
    assert_int_equal(a.state, ANSWER_UNTIL_END);
    assert_int_equal(answer_end(&a), 0);
    assert_int_equal(a.state, ANSWER_DONE);
    answer_init(&a, false);
    answer_parse(&a, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 38, &body);
    assert_int_equal(answer_end(&a), -EPIPE);
    assert_int_equal(answer_skippable(&a), 5);
    answer_skip(&a, 2);
    assert_int_equal(answer_skippable(&a), 3);
    answer_skip(&a, 3);
    assert_int_equal(a.state, ANSWER_DONE);
    assert_int_equal(a.total_bytes, 43);
}

/* A field that is not read may be long; one that is may not; all of them together have a limit. */
TEST(limits)
{
    static char in[2 * ANSWER_HEAD_MAX];
    static const struct {
        const char *name;
        size_t len;
        bool bad;
    } cases[] = {
        {"X", 10000, false},        {"X", ANSWER_HEAD_MAX, true},
        {"Connection", 100, false}, {"Connection", 1000, true},
        {"X", 251, false},          {"X", 252, false},
        {"X", 253, false},          {"Connection", 242, false},
        {"Connection", 243, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int n = snprintf(in, sizeof(in), "HTTP/1.1 204 N\r\n%s: ", cases[i].name);
        memset(in + n, 'x', cases[i].len);
        memcpy(in + n + cases[i].len, "\r\n\r\n", 4);
        size_t len = (size_t)n + cases[i].len + 4;
        for (size_t piece = 1; piece < 20000; piece = piece * 2 + 1)
            assert_int_equal(parse(in, len, piece, false).bad, cases[i].bad);
        assert_int_equal(parse(in, len, len, false).bad, cases[i].bad);
    }
}
