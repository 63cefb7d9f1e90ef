// SPDX-License-Identifier: Apache-2.0
/* HTTP/2 heads converted to HTTP/1.1: the bytes, the result of the parser, and all buffer sizes that are too small. */
#include "testing.h"

#include "http/h2/request_head.h"
#include "http/message/request_head.h"

#include <stdlib.h>

#define PSEUDO(method, path) \
    {":method", method}, {":scheme", "http"}, {":path", path}, \
    { \
        ":authority", "h" \
    }

static const struct mk__parse_limits limits = {.line_bytes_max = 4096, .head_bytes_max = 8192, .fields_max = 16};

struct head_case {
    struct {
        const char *name, *value;
    } fields[8];
    bool body;
    const char *head; /* without the last CRLF */
    int status;       /* of the parser */
};

static const struct head_case cases[] = {
    {{PSEUDO("GET", "/a?b")}, false, "GET /a?b HTTP/1.1\r\nhost: h\r\n", 0},
    {{{":path", "/"}, {":authority", "h:1"}, {":scheme", "http"}, {":method", "HEAD"}},
     false,
     "HEAD / HTTP/1.1\r\nhost: h:1\r\n",
     0},
    {{PSEUDO("OPTIONS", "*")}, false, "OPTIONS * HTTP/1.1\r\nhost: h\r\n", 0},
    {{PSEUDO("GET", "/"), {"accept", "x"}, {"te", "trailers"}},
     false,
     "GET / HTTP/1.1\r\nhost: h\r\naccept: x\r\nte: trailers\r\n",
     0},
    {{PSEUDO("GET", "/"), {"x-empty", ""}}, false, "GET / HTTP/1.1\r\nhost: h\r\nx-empty: \r\n", 0},
    {{PSEUDO("GET", "/"), {"cookie", "a=1"}, {"cookie", "b=2"}},
     false,
     "GET / HTTP/1.1\r\nhost: h\r\ncookie: a=1\r\ncookie: b=2\r\n",
     0},
    /* hosts */
    {{PSEUDO("GET", "/"), {"host", "h"}}, false, "GET / HTTP/1.1\r\nhost: h\r\n", 0},
    {{PSEUDO("GET", "/"), {"host", "H"}}, false, "GET / HTTP/1.1\r\nhost: h\r\n", 0},
    {{PSEUDO("GET", "/"), {"host", "other"}}, false, "GET / HTTP/1.1\r\nhost: h\r\nhost: other\r\n", -400},
    {{{":method", "GET"}, {":path", "/"}, {"host", "h"}}, false, "GET / HTTP/1.1\r\nhost: h\r\n", 0},
    {{{":method", "GET"}, {":path", "/"}}, false, "GET / HTTP/1.1\r\n", -400},
    {{{":method", "GET"}, {":path", "/"}, {":authority", ""}, {"host", "h"}},
     false,
     "GET / HTTP/1.1\r\nhost: h\r\n",
     0},
    /* bodies */
    {{PSEUDO("POST", "/")}, true, "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n", 0},
    {{PSEUDO("POST", "/"), {"content-length", "5"}}, true, "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n", 0},
    {{PSEUDO("POST", "/"), {"content-length", "0"}}, false, "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n", 0},
    {{PSEUDO("POST", "/"), {"content-length", "x"}}, true, "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: x\r\n", -400},
    {{PSEUDO("POST", "/"), {"expect", "x"}}, false, "POST / HTTP/1.1\r\nhost: h\r\nexpect: x\r\n", -417},
    /* tunnels: whatever follows is no body */
    {{{":method", "CONNECT"}, {":authority", "h:1"}}, false, "CONNECT h:1 HTTP/1.1\r\nhost: h:1\r\n", 0},
    {{{":method", "CONNECT"}, {":authority", "h:1"}}, true, "CONNECT h:1 HTTP/1.1\r\nhost: h:1\r\n", 0},
    {{PSEUDO("CONNECT", "/chat"), {":protocol", "websocket"}, {"origin", "o"}},
     true,
     "GET /chat HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: websocket\r\norigin: o\r\n",
     0},
    {{PSEUDO("CONNECT", "/chat"), {":protocol", "websocket"}},
     false,
     "GET /chat HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: websocket\r\n",
     0},
    /* what nghttp2 keeps from us would be refused here as well */
    {{PSEUDO("G T", "/")}, false, "G T / HTTP/1.1\r\nhost: h\r\n", -400},
    {{PSEUDO("GET", "/ x")}, false, "GET / x HTTP/1.1\r\nhost: h\r\n", -400},
    {{PSEUDO("GET", "/"), {"x", "a\nb"}}, false, "GET / HTTP/1.1\r\nhost: h\r\nx: a\nb\r\n", -400},
    {{{":path", "/"}, {":authority", "h"}}, false, " / HTTP/1.1\r\nhost: h\r\n", -400},
};

static struct mk_str build(struct mk__h2_request_head *h, const struct head_case *c, char *to, size_t size)
{
    mk__h2_request_head_init(h, to, (uint32_t)size);
    for (size_t i = 0; i < COUNT(c->fields) && c->fields[i].name; i++)
        mk__h2_request_head_add(h, mk_str_c(c->fields[i].name), mk_str_c(c->fields[i].value));
    struct mk_str head;
    int status = mk__h2_request_head_end(h, c->body, &head);
    assert_int_equal(status != 0, h->too_large);
    assert_true(status == 0 || status == 431 || status == 414);
    assert_true(head.len <= size);
    return status ? MK_STR_NONE : head;
}

static int parse(struct mk_str head)
{
    struct mk_field fields[16];
    struct mk_head_parser p = {0};
    struct mk__request_head facts;
    int r = mk__parse_head(&p, fields, &limits, head);
    return r ? r : mk__request_head_read(&p, fields, head.p, NULL, &facts);
}

TEST(heads)
{
    char room[1024];
    struct mk__h2_request_head h;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_str head = build(&h, &cases[i], room, sizeof(room));
        assert_true(head.len > 2 && memcmp(head.p + head.len - 2, "\r\n", 2) == 0);
        assert_str_equal(mk_str(head.p, head.len - 2), cases[i].head);
        if (parse(head) != cases[i].status)
            fail_msg("%s: %d, not %d", cases[i].head, parse(head), cases[i].status);
    }
}

/* Every head in buffers of every size: whole or not at all, and no byte is written behind the end. */
TEST(too_large)
{
    char room[1024];
    struct mk__h2_request_head h;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_str whole = build(&h, &cases[i], room, sizeof(room));
        bool fitted = false;
        for (size_t size = 0; size <= whole.len + 64; size++) {
            char *p = mk_test_guarded(room, size);
            struct mk_str head = build(&h, &cases[i], p, size);
            assert_int_equal(h.too_large, !head.p);
            assert_true(!fitted || head.p); /* it also fits a larger buffer */
            fitted = head.p;
            if (head.p)
                assert_true(mk_str_eq(head, whole));
            mk_test_unguard(p, size);
        }
        assert_true(fitted);
    }
}

/* It counts the bytes of the head, even if they do not fit. */
TEST(counts)
{
    char room[64];
    struct mk__h2_request_head h;
    mk__h2_request_head_init(&h, room, sizeof(room));
    mk__h2_request_head_add(&h, MK_STR(":method"), MK_STR("GET"));
    for (int i = 0; i < 100; i++)
        mk__h2_request_head_add(&h, MK_STR("name"), MK_STR("value"));
    assert_true(h.too_large);
    assert_int_equal(h.bytes_in, 10 + 100 * 9);
    struct mk_str head;
    assert_int_equal(mk__h2_request_head_end(&h, false, &head), 431);
}

TEST(what_is_too_large)
{
    static const struct {
        size_t path, value;
        int status;
    } sizes[] = {{30, 10, 0}, {30, 100, 431}, {70, 10, 414}, {200, 10, 414}, {70, 100, 414}};
    char room[100], much[200];
    struct mk__h2_request_head h;
    struct mk_str head;
    memset(much, '/', sizeof(much));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        mk__h2_request_head_init(&h, room, sizeof(room));
        mk__h2_request_head_add(&h, MK_STR(":method"), MK_STR("GET"));
        mk__h2_request_head_add(&h, MK_STR(":path"), mk_str(much, sizes[i].path));
        mk__h2_request_head_add(&h, MK_STR("x"), mk_str(much, sizes[i].value));
        assert_int_equal(mk__h2_request_head_end(&h, false, &head), sizes[i].status);
    }
}
