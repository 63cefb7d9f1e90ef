// SPDX-License-Identifier: Apache-2.0
/* The chunked coding: each case whole, byte by byte, in two pieces at every place, and against a guard page. */
#include "testing.h"

#include <errno.h>

#include <monkey/base/chunked.h>

static const struct mk_chunked_limits limits = {
    .line_bytes_max = 64,
    .ext_bytes_total_max = 100,
    .trailer_bytes_max = 80,
    .trailer_count_max = 3,
};

struct run {
    struct mk_chunked chunked;
    char data[4096];
    size_t data_len, used;
};

static void start(struct run *r)
{
    mk_chunked_init(&r->chunked, &limits);
    r->data_len = r->used = 0;
}

/* Feeds one piece as a server would: until it is used up, done or broken. */
static int feed(struct run *r, const char *in, size_t len)
{
    while (len && !r->chunked.done) {
        struct mk_str data;
        ssize_t n = mk_chunked_decode(&r->chunked, in, len, &data);
        if (n < 0) {
            assert_int_equal(data.len, 0);
            return (int)n;
        }
        assert_in_range(n, 1, len);
        if (data.len) {
            assert_true(data.p >= in && data.p + data.len == in + n);
            memcpy(r->data + r->data_len, data.p, data.len);
            r->data_len += data.len;
        }
        in += n;
        len -= (size_t)n;
        r->used += (size_t)n;
    }
    return 0;
}

struct body {
    struct mk_str coded;
    int result; /* MK_AGAIN: more is to come */
    const char *data;
    size_t rest; /* bytes of the next message */
};

static void check(const struct body *b, struct run *r, int err)
{
    int result = err ? err : r->chunked.done ? 0 : MK_AGAIN;
    if (result != b->result)
        fail_msg("%.*s: %d", MK_STR_ARG(b->coded), result);
    if (result < 0)
        return;
    assert_str_equal(mk_str(r->data, r->data_len), b->data);
    assert_int_equal(r->used, b->coded.len - b->rest);
}

static void check_every_way(const struct body *b)
{
    static struct run r;
    size_t len = b->coded.len;
    char *bytes = mk_test_guarded(b->coded.p, len);
    int err = 0;
    for (size_t cut = 0; cut <= len; cut++) {
        start(&r);
        char *head = mk_test_guarded(b->coded.p, cut);
        err = feed(&r, head, cut);
        mk_test_unguard(head, cut);
        check(b, &r, err ? err : feed(&r, bytes + cut, len - cut));
    }
    start(&r);
    err = 0;
    for (size_t i = 0; i < len && !err; i++) {
        char *one = mk_test_guarded(bytes + i, 1);
        err = feed(&r, one, 1);
        mk_test_unguard(one, 1);
    }
    check(b, &r, err);
    mk_test_unguard(bytes, len);
}

#define BODY(text, result, data, rest) \
    { \
        {text, sizeof(text) - 1}, result, data, rest \
    }
#define BAD(text) BODY(text, -EINVAL, NULL, 0)
#define BIG(text) BODY(text, -EMSGSIZE, NULL, 0)
#define TEN "0123456789"

static const struct body good[] = {
    BODY("0\r\n\r\n", 0, "", 0),
    BODY("5\r\nhello\r\n0\r\n\r\n", 0, "hello", 0),
    BODY("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nGET / HTTP/1.1\r\n", 0, "hello world", 16),
    BODY("a\r\n0123456789\r\nA\r\n9876543210\r\n0\r\n\r\n", 0, "01234567899876543210", 0),
    BODY("0000000000000005\r\nhello\r\n0000\r\n\r\n", 0, "hello", 0),
    BODY("4\r\n\r\n\r\n\r\n0\r\n\r\n", 0, "\r\n\r\n", 0),
    BODY("1;a\r\nx\r\n0;b\r\n\r\n", 0, "x", 0),
    BODY("1;a=b;c=\"d;\\\"\\\\\t\xc3\xbc\"\r\nx\r\n0\r\n\r\n", 0, "x", 0),
    BODY("1 \t; \ta \t= \tb \t;c = \"\" ;d\r\nx\r\n0\r\n\r\n", 0, "x", 0),
    BODY("0\r\nA: b\r\n\r\n", 0, "", 0),
    BODY("0\r\nA:\r\nb-C!:  \t\"x\\y\" :;=\xc3\xbc \r\nContent-Length: 5\r\n\r\nrest", 0, "", 4),
    BODY("", MK_AGAIN, "", 0),
    BODY("5", MK_AGAIN, "", 0),
    BODY("5\r\nhel", MK_AGAIN, "hel", 0),
    BODY("5\r\nhello", MK_AGAIN, "hello", 0),
    BODY("5\r\nhello\r\n0\r\n", MK_AGAIN, "hello", 0),
    BODY("0\r\nA: b\r\n", MK_AGAIN, "", 0),
    BODY("ffffffffffffffff\r\nxyz", MK_AGAIN, "xyz", 0),
    BODY("1234567890abcdef;" TEN TEN TEN TEN "12345\r\n", MK_AGAIN, "", 0), /* a line of 64 bytes */
};

static const struct body bad[] = {
    /* sizes */
    BAD("\r\n"),
    BAD(" 5\r\nhello\r\n"),
    BAD("\t5\r\n"),
    BAD("+5\r\n"),
    BAD("-5\r\n"),
    BAD("0x5\r\n"),
    BAD("5h\r\n"),
    BAD("g\r\n"),
    BAD(";a\r\n"),
    BAD("5,6\r\n"),
    BAD("00000000000000005\r\nhello\r\n"),
    BAD("10000000000000000\r\n"),
    BAD("fffffffffffffffff\r\n"),
    BAD("\0\r\n"),
    /* line ends */
    BAD("5\nhello\r\n0\r\n\r\n"),
    BAD("5\rhello\r\n"),
    BAD("5\r\rhello"),
    BAD("5 \r\nhello\r\n"),
    BAD("5\r\nhello\n0\r\n\r\n"),
    BAD("5\r\nhello\r0\r\n\r\n"),
    BAD("5\r\nhello0\r\n\r\n"),
    BAD("5\r\nhello!\r\n"),
    BAD("5\r\nhello\r\n\r\n"),
    BAD("0\r\n\n"),
    BAD("0\r\n\rx"),
    BAD("0\n\r\n"),
    /* extensions */
    BAD("1;\r\nx\r\n"),
    BAD("1; \r\nx\r\n"),
    BAD("1;;a\r\nx\r\n"),
    BAD("1;a=\r\nx\r\n"),
    BAD("1;a=;b\r\n"),
    BAD("1;=b\r\n"),
    BAD("1;a b\r\n"),
    BAD("1;a=b c\r\n"),
    BAD("1;a \r\nx\r\n"),
    BAD("1;a=b \r\nx\r\n"),
    BAD("1;a==b\r\n"),
    BAD("1;a/b\r\n"),
    BAD("1;a,b\r\n"),
    BAD("1 a\r\n"),
    BAD("1;a=\"b\"c\r\n"),
    BAD("1;a=\"b\r\nx\r\n"),
    BAD("1;a=\"b\\\r\nx\r\n"),
    BAD("1;a=\"\x01\"\r\n"),
    BAD("1;a=\"\x7f\"\r\n"),
    BAD("1;a\x01\r\n"),
    BAD("1;a\0\r\n"),
    BAD("1;a\nx\r\n"),
    BAD("1;a\rx\r\n"),
    BAD("1;\xc3\xbc\r\n"),
    /* trailers */
    BAD("0\r\n A: b\r\n\r\n"),
    BAD("0\r\nA : b\r\n\r\n"),
    BAD("0\r\nA\r\n\r\n"),
    BAD("0\r\n: b\r\n\r\n"),
    BAD("0\r\nA b: c\r\n\r\n"),
    BAD("0\r\nA: b\r\n c\r\n\r\n"),
    BAD("0\r\nA: b\r\n\tc\r\n\r\n"),
    BAD("0\r\nA: b\n\r\n"),
    BAD("0\r\nA: b\rc\r\n\r\n"),
    BAD("0\r\nA: \0\r\n\r\n"),
    BAD("0\r\nA: \x0b\r\n\r\n"),
    BAD("0\r\nA: \x7f\r\n\r\n"),
    BAD("0\r\n\xc3\xbc: a\r\n\r\n"),
    BAD("0\r\nGET / HTTP/1.1\r\n\r\n"),
};

static const struct body big[] = {
    BIG("1234567890abcdef;" TEN TEN TEN TEN "123456\r\n"), /* a line of 65 bytes */
    BIG("1;" TEN TEN TEN TEN "\r\nx\r\n1;" TEN TEN TEN TEN "\r\nx\r\n1;" TEN TEN "\r\n"),
    BIG("0\r\na:\r\nb:\r\nc:\r\nd:\r\n\r\n"),
    BIG("0\r\na:" TEN TEN TEN TEN TEN TEN TEN "1234567\r\n\r\n"),
    BIG("0\r\na:\r\nb:" TEN TEN TEN TEN TEN TEN TEN "12\r\n\r\n"),
};

TEST(decodes)
{
    for (size_t i = 0; i < COUNT(good); i++)
        check_every_way(&good[i]);
}

TEST(refuses)
{
    for (size_t i = 0; i < COUNT(bad); i++)
        check_every_way(&bad[i]);
}

TEST(limits)
{
    for (size_t i = 0; i < COUNT(big); i++)
        check_every_way(&big[i]);
    /* the same, at the limit */
    const struct body fits[] = {
        BODY("1;" TEN TEN TEN TEN "\r\nx\r\n1;" TEN TEN TEN TEN "\r\nx\r\n1;" TEN "1234567\r\nx\r\n0\r\n\r\n", 0, "xxx",
             0),
        BODY("0\r\na:\r\nb:\r\nc:\r\n\r\n", 0, "", 0),
        BODY("0\r\na:" TEN TEN TEN TEN TEN TEN TEN "1234\r\n\r\n", 0, "", 0),
    };
    for (size_t i = 0; i < COUNT(fits); i++)
        check_every_way(&fits[i]);
}

TEST(an_error_is_final)
{
    struct run r;
    start(&r);
    assert_int_equal(feed(&r, "x", 1), -EINVAL);
    assert_int_equal(feed(&r, "0\r\n\r\n", 5), -EINVAL);
    assert_false(r.chunked.done);
    start(&r);
    assert_int_equal(feed(&r, "1;" TEN TEN TEN TEN TEN TEN TEN, 72), -EMSGSIZE);
    assert_true(feed(&r, "\r\n", 2) < 0);
}

TEST(takes_nothing_when_done)
{
    struct run r;
    struct mk_str data;
    start(&r);
    assert_int_equal(feed(&r, "0\r\n\r\nmore", 9), 0);
    assert_int_equal(r.used, 5);
    assert_int_equal(mk_chunked_decode(&r.chunked, "more", 4, &data), 0);
    assert_int_equal(data.len, 0);
}
