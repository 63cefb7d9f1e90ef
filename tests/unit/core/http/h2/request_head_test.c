// SPDX-License-Identifier: Apache-2.0
/* HTTP/2 heads converted to HTTP/1.1: the bytes, the result of the parser, and all buffer sizes that are too small. */
#include "testing.h"

#include "http/h2/request_head.h"
#include "http/message/request_head.h"

#include <stdio.h>

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
     "GET / HTTP/1.1\r\nhost: h\r\ncookie: a=1; b=2\r\n",
     0},
    {{{":method", "GET"},
      {":scheme", "http"},
      {":path", "/"},
      {"cookie", "a=1"},
      {"host", "h"},
      {"cookie", "b=2"},
      {"x", "y"},
      {"cookie", "c"}},
     false,
     "GET / HTTP/1.1\r\ncookie: a=1; b=2; c\r\nhost: h\r\nx: y\r\n",
     0},
    /* hosts */
    {{PSEUDO("GET", "/"), {"host", "h"}}, false, "GET / HTTP/1.1\r\nhost: h\r\n", 0},
    {{PSEUDO("GET", "/"), {"host", "H"}}, false, "GET / HTTP/1.1\r\nhost: h\r\n", 0},
    {{PSEUDO("GET", "/"), {"host", "other"}}, false, "GET / HTTP/1.1\r\nhost: h\r\nhost: other\r\n", -400},
    {{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"host", "h"}},
     false,
     "GET / HTTP/1.1\r\nhost: h\r\n",
     0},
    {{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", ""}, {"host", "h"}},
     false,
     "GET / HTTP/1.1\r\nhost: h\r\n",
     0},
    /* bodies */
    {{PSEUDO("POST", "/")}, true, "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n", 0},
    {{PSEUDO("POST", "/"), {"content-length", "5"}}, true, "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n", 0},
    {{PSEUDO("POST", "/"), {"content-length", "0"}}, false, "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n", 0},
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
};

static struct mk_field fields[16];

static void init(struct mk__h2_request_head *h, char *data, size_t size)
{
    mk__h2_request_head_init(h, data, (uint32_t)size, fields, &limits);
}

static void add_noted(struct mk__h2_request_head *h, const char *name, struct mk_str value, uint8_t *note)
{
    struct mk__hpack_field field = {.row = {.name = mk_str_c(name), .value = value, .note = note}};
    mk__h2_request_head_add(h, &field);
}

static void add(struct mk__h2_request_head *h, const char *name, struct mk_str value)
{
    add_noted(h, name, value, NULL);
}

static struct mk_str build(struct mk__h2_request_head *h, const struct head_case *c, char *to, size_t size)
{
    init(h, to, size);
    for (size_t i = 0; i < COUNT(c->fields) && c->fields[i].name; i++)
        add(h, c->fields[i].name, mk_str_c(c->fields[i].value));
    assert_true(mk__h2_request_head_is_well_formed(h));
    int status = mk__h2_request_head_end(h, c->body);
    assert_int_equal(status != 0, h->too_large);
    assert_true(status == 0 || status == -431 || status == -414);
    assert_true(h->len <= size);
    assert_int_equal(h->parse.phase == MK__PARSE_DONE, status == 0);
    return status ? MK_STR_NONE : mk_str(h->data, h->len);
}

/* The parser finds the same parts in these bytes as were stored. */
static void compare_with_parser(const struct mk__h2_request_head *h)
{
    struct mk_field parsed[16];
    struct mk_head_parser p = {0};
    assert_int_equal(mk__parse_head(&p, parsed, &limits, mk_str(h->data, h->len)), 0);
    assert_int_equal(p.head_len, h->parse.head_len);
    assert_int_equal(p.method, h->parse.method);
    assert_int_equal(p.minor, h->parse.minor);
    assert_int_equal(p.seen, h->parse.seen);
    assert_memory_equal(&p.method_name, &h->parse.method_name, sizeof(p.method_name));
    assert_memory_equal(&p.target, &h->parse.target, sizeof(p.target));
    assert_int_equal(p.n_fields, h->parse.n_fields);
    for (size_t i = 0; i < p.n_fields; i++)
        assert_memory_equal(&parsed[i], &h->fields[i], sizeof(parsed[i]));
}

TEST(heads)
{
    char room[1024];
    struct mk__h2_request_head h;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk__request_head facts;
        struct mk_str head = build(&h, &cases[i], room, sizeof(room));
        assert_true(head.len > 2 && memcmp(head.p + head.len - 2, "\r\n", 2) == 0);
        assert_str_equal(mk_str(head.p, head.len - 2), cases[i].head);
        compare_with_parser(&h);
        int status = mk__request_head_read(&h.parse, h.fields, head.p, NULL, &facts);
        if (status != cases[i].status)
            fail_msg("%s: %d, not %d", cases[i].head, status, cases[i].status);
    }
}

/* What is noted in the table of the decoder changes nothing, whether it was noted just now or before. */
TEST(noted_fields)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint8_t notes[COUNT(cases[i].fields)] = {0};
        char room[1024], whole[1024];
        struct mk__h2_request_head h;
        struct mk_str head = build(&h, &cases[i], whole, sizeof(whole));
        for (int n = 0; n < 3; n++) {
            init(&h, room, sizeof(room));
            for (size_t k = 0; k < COUNT(cases[i].fields) && cases[i].fields[k].name; k++) {
                add_noted(&h, cases[i].fields[k].name, mk_str_c(cases[i].fields[k].value), &notes[k]);
                assert_int_not_equal(notes[k], 0);
            }
            assert_true(mk__h2_request_head_is_well_formed(&h));
            assert_int_equal(mk__h2_request_head_end(&h, cases[i].body), 0);
            assert_true(mk_str_eq(mk_str(h.data, h.len), head));
            compare_with_parser(&h);
        }
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

/* Each limit to the byte, as the parser has it. */
TEST(limits_of_the_parser)
{
    static char room[20000], much[10000];
    memset(much, 'x', sizeof(much));
    much[0] = '/';
    for (size_t path = 4000; path < 4200; path++)
        for (size_t value = 1; value < 5000; value += path < 4090 ? 1 : 5000) {
            struct mk__h2_request_head h;
            struct mk_field parsed[16];
            struct mk_head_parser p = {0};
            if (path < 4090 && (path != 4050 || value < 4000)) /* one path with each value, each path with one */
                continue;
            init(&h, room, sizeof(room));
            add(&h, ":method", MK_STR("GET"));
            add(&h, ":scheme", MK_STR("http"));
            add(&h, ":path", mk_str(much, path));
            add(&h, ":authority", MK_STR("h"));
            add(&h, "x", mk_str(much, value));
            int status = mk__h2_request_head_end(&h, false);
            char text[20000];
            int len = snprintf(text, sizeof(text), "GET %.*s HTTP/1.1\r\nhost: h\r\nx: %.*s\r\n\r\n", (int)path, much,
                               (int)value, much);
            assert_int_equal(mk__parse_head(&p, parsed, &limits, mk_str(text, (size_t)len)), status);
        }
}

/* The largest limits that can be configured: the target is in the buffer twice, but counts once. */
TEST(the_largest_limits)
{
    static const struct mk__parse_limits largest = {.line_bytes_max = 32768,
                                                    .head_bytes_max = UINT16_MAX,
                                                    .fields_max = 16};
    static char room[32768 + UINT16_MAX], much[32768];
    memset(much, 'x', sizeof(much));
    much[0] = '/';
    for (size_t value = 32700; value < 32750; value++) {
        struct mk__h2_request_head h;
        struct mk_field parsed[16];
        struct mk_head_parser p = {0};
        mk__h2_request_head_init(&h, room, sizeof(room), fields, &largest);
        add(&h, ":method", MK_STR("GET"));
        add(&h, ":scheme", MK_STR("http"));
        add(&h, ":path", mk_str(much, 32750));
        add(&h, ":authority", MK_STR("h"));
        add(&h, "x", mk_str(much, value));
        int status = mk__h2_request_head_end(&h, false);
        char text[70000];
        int len = snprintf(text, sizeof(text), "GET %.*s HTTP/1.1\r\nhost: h\r\nx: %.*s\r\n\r\n", 32750, much,
                           (int)value, much);
        assert_int_equal(mk__parse_head(&p, parsed, &largest, mk_str(text, (size_t)len)), status);
        if (status == 0)
            assert_true(mk_str_eq(mk_str(h.data, h.len), mk_str(text, (size_t)len)));
    }
}

TEST(too_many)
{
    static const char *const names[] = {"x", "cookie"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char room[1024];
        struct mk__h2_request_head h;
        init(&h, room, sizeof(room));
        add(&h, ":method", MK_STR("GET"));
        add(&h, ":scheme", MK_STR("http"));
        add(&h, ":path", MK_STR("/"));
        add(&h, ":authority", MK_STR("h"));
        for (unsigned n = 0; n < limits.fields_max; n++)
            add(&h, names[i], MK_STR("y"));
        assert_int_equal(mk__h2_request_head_end(&h, false), -431);
        assert_int_equal(h.parse.phase, MK__PARSE_DONE); /* what there is may be logged */
        assert_int_equal(h.parse.n_fields + h.joined, limits.fields_max);
    }
}

TEST(what_is_too_large)
{
    static const struct {
        size_t path, value;
        int status;
    } sizes[] = {{30, 10, 0}, {30, 100, 431}, {70, 10, 414}, {200, 10, 414}, {70, 100, 414}};
    char room[100], much[200];
    struct mk__h2_request_head h;
    memset(much, '/', sizeof(much));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        init(&h, room, sizeof(room));
        add(&h, ":method", MK_STR("GET"));
        add(&h, ":scheme", MK_STR("http"));
        add(&h, ":path", mk_str(much, sizes[i].path));
        add(&h, "x", mk_str(much, sizes[i].value));
        assert_int_equal(mk__h2_request_head_end(&h, false), -sizes[i].status);
    }
}

/* A string that the decoder had to cut is too large, wherever it is. */
TEST(what_was_cut)
{
    char room[100];
    struct mk__h2_request_head h;
    struct mk__hpack_field field = {.row = {.name = MK_STR("x"), .value = MK_STR("y")}, .cut = true};
    init(&h, room, sizeof(room));
    add(&h, ":method", MK_STR("GET"));
    mk__h2_request_head_add(&h, &field);
    add(&h, "Upper", MK_STR("is not looked at any more"));
    assert_true(mk__h2_request_head_is_well_formed(&h));
    assert_int_equal(mk__h2_request_head_end(&h, false), -431);
}

/* ── what is malformed: RFC 9113 sections 8.1.1, 8.2 and 8.3 ── */

#define GET PSEUDO("GET", "/")
#define PSEUDO_BUT(method, scheme, path, authority) \
    { \
        {":method", method}, {":scheme", scheme}, {":path", path}, \
        { \
            ":authority", authority \
        } \
    }

TEST(malformed)
{
    static const struct {
        struct {
            const char *name, *value;
        } fields[8];
    } bad[] = {
        {{GET, {"Upper", "x"}}},
        {{GET, {"", "x"}}},
        {{GET, {"x y", "z"}}},
        {{GET, {"x:y", "z"}}},
        {{GET, {"x\r\ny", "z"}}},
        {{GET, {"\x80", "z"}}},
        {{GET, {"x", "a\nb"}}},
        {{GET, {"x", "a\r\nb: c"}}},
        {{GET, {"x", "\x7f"}}},
        {{GET, {"x", " y"}}},
        {{GET, {"x", "y\t"}}},
        {{GET, {"connection", "close"}}},
        {{GET, {"keep-alive", "x"}}},
        {{GET, {"proxy-connection", "x"}}},
        {{GET, {"transfer-encoding", "chunked"}}},
        {{GET, {"upgrade", "x"}}},
        {{GET, {"te", "gzip"}}},
        {{GET, {"te", "trailers, gzip"}}},
        {{GET, {"content-length", "x"}}},
        {{GET, {"content-length", "-1"}}},
        {{GET, {"content-length", ""}}},
        {{GET, {"content-length", "99999999999999999999"}}},
        {{GET, {"content-length", "1"}, {"content-length", "1"}}},
        {{GET, {":status", "200"}}},
        {{GET, {":unknown", "x"}}},
        {{GET, {":path", "/"}}},
        {{GET, {":method", "GET"}}},
        {{{":method", "GET"}, {":scheme", "http"}, {":authority", "h"}, {"x", "y"}, {":path", "/"}}},
        {PSEUDO_BUT("", "http", "/", "h")},
        {PSEUDO_BUT("G T", "http", "/", "h")},
        {PSEUDO_BUT("GET / HTTP/1.1\r\nx:", "http", "/", "h")},
        {PSEUDO_BUT("GET", "", "/", "h")},
        {PSEUDO_BUT("GET", "http", "", "h")},
        {PSEUDO_BUT("GET", "http", "/\r\nx: y", "h")},
        {PSEUDO_BUT("GET", "http", "x", "h")},
        {PSEUDO_BUT("GET", "http", "*", "h")},
        {PSEUDO_BUT("GET", "https", "http://h/", "h")},
        {PSEUDO_BUT("GET", "http", "/", "h\r\nx: y")},
        {PSEUDO_BUT("GET", "http", "/", "")},
        {PSEUDO_BUT("GET", "http", "/", NULL)},
        {PSEUDO_BUT("CONNECT", "http", "/", "h")},
        {{{":scheme", "http"}, {":path", "/"}, {":authority", "h"}}},
        {{{":method", "GET"}, {":path", "/"}, {":authority", "h"}}},
        {{{":method", "GET"}, {":scheme", "http"}, {":authority", "h"}}},
        {{{":method", "CONNECT"}}},
        {{GET, {":protocol", "websocket"}}},
        {{{":method", "CONNECT"}, {":protocol", "x"}, {":authority", "h"}}},
        {{{":method", "CONNECT"}, {":protocol", "x"}, {":scheme", "http"}, {":path", "/"}}},
    };
    char room[1024];
    struct mk__h2_request_head h;
    uint8_t notes[COUNT(bad[0].fields)] = {0};
    for (size_t i = 0; i < 2 * COUNT(bad); i++) { /* each twice: what was noted stays malformed */
        if (i % 2 == 0)
            memset(notes, 0, sizeof(notes));
        init(&h, room, sizeof(room));
        for (size_t n = 0; n < 8 && bad[i / 2].fields[n].name; n++)
            if (bad[i / 2].fields[n].value)
                add_noted(&h, bad[i / 2].fields[n].name, mk_str_c(bad[i / 2].fields[n].value), &notes[n]);
        if (mk__h2_request_head_is_well_formed(&h))
            fail_msg("case %zu: %.*s", i / 2, (int)h.len, room);
    }
}

TEST(lengths)
{
    static const struct {
        const char *method;
        int64_t length;
        const char *protocol;
    } rows[] = {{"POST", 12, NULL}, {"CONNECT", -1, NULL}, {"CONNECT", -1, "websocket"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char room[256];
        struct mk__h2_request_head h;
        init(&h, room, sizeof(room));
        add(&h, ":method", mk_str_c(rows[i].method));
        if (rows[i].protocol)
            add(&h, ":protocol", mk_str_c(rows[i].protocol));
        add(&h, "x", MK_STR("1"));
        assert_int_equal(h.length, -1);
        add(&h, "content-length", MK_STR("12"));
        assert_int_equal(h.length, rows[i].length);
    }
}

/* Bytes that no target has, as HTTP/1 answers them. */
TEST(bad_targets)
{
    static const char *const bad[][2] = {
        {"/a\\b", "h"}, {"/ HTTP/1.1", "h"}, {"/\xe4", "h"}, {"/", "h\\"}, {"/", "a b"}};
    for (size_t i = 0; i < 2 * COUNT(bad); i++) { /* each twice: what was noted is a bad target, too */
        static uint8_t notes[COUNT(bad)][2];
        char room[256];
        struct mk__h2_request_head h;
        init(&h, room, sizeof(room));
        add_noted(&h, ":path", mk_str_c(bad[i / 2][0]), &notes[i / 2][0]);
        add_noted(&h, ":authority", mk_str_c(bad[i / 2][1]), &notes[i / 2][1]);
        add(&h, ":scheme", MK_STR("http"));
        add(&h, ":method", MK_STR("HEAD"));
        add(&h, "x", MK_STR("y"));
        assert_true(mk__h2_request_head_is_well_formed(&h));
        assert_int_equal(mk__h2_request_head_end(&h, false), -400);
        assert_int_equal(h.parse.method, MK_HEAD); /* the response has no body */
        assert_int_equal(h.parse.phase, MK__PARSE_START);
    }
}
