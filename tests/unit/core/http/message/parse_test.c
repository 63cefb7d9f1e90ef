// SPDX-License-Identifier: Apache-2.0
/* Heads of requests: each case whole, byte by byte, in two pieces at every place, and against a guard page. */
#include "testing.h"

#include <stdio.h>

#include "http/message/request_head.h"

enum { FIELDS_MAX = 4 };

static const struct mk__parse_limits limits = {.line_bytes_max = 40, .head_bytes_max = 120, .fields_max = FIELDS_MAX};

struct run {
    struct mk_head_parser parse;
    struct mk_field fields[FIELDS_MAX];
};

static int feed(struct run *r, const char *bytes, size_t len)
{
    char *copy = mk_test_guarded(bytes, len); /* another place at each call */
    int result = mk__parse_head(&r->parse, r->fields, &limits, mk_str(copy, len));
    mk_test_unguard(copy, len);
    return result;
}

struct head_case {
    struct mk_str bytes;
    int result;
    const char *expected; /* "method|target|minor|name=value|..." */
    size_t rest;          /* bytes behind the head */
};

static void describe(const struct run *r, const char *base, char *to, size_t size)
{
    const struct mk_head_parser *p = &r->parse;
    int n = snprintf(to, size, "%.*s|%.*s|%u", MK_STR_ARG(mk_span_str(base, p->method_name)),
                     MK_STR_ARG(mk_span_str(base, p->target)), p->minor);
    for (unsigned i = 0; i < p->n_fields; i++)
        n += snprintf(to + n, size - (size_t)n, "|%.*s=%.*s", MK_STR_ARG(mk_span_str(base, r->fields[i].name)),
                      MK_STR_ARG(mk_span_str(base, r->fields[i].value)));
}

static void check(const struct head_case *c, const struct run *r, int result, const char *how)
{
    char output[512];
    if (result != c->result)
        fail_msg("%s, \"%.*s\": %d, not %d", how, MK_STR_ARG(c->bytes), result, c->result);
    if (result != 0)
        return;
    describe(r, c->bytes.p, output, sizeof(output));
    assert_string_equal(output, c->expected);
    assert_int_equal(r->parse.head_len, c->bytes.len - c->rest);
    assert_int_equal(r->parse.phase, MK__PARSE_DONE);
}

static void check_every_way(const struct head_case *c)
{
    struct run whole = {0};
    check(c, &whole, feed(&whole, c->bytes.p, c->bytes.len), "whole");
    for (size_t cut = 0; cut < c->bytes.len; cut++) {
        struct run r = {0};
        int result = feed(&r, c->bytes.p, cut);
        check(c, &r, result == MK_AGAIN ? feed(&r, c->bytes.p, c->bytes.len) : result, "in two");
    }
    struct run r = {0};
    int result = MK_AGAIN;
    for (size_t len = 0; len <= c->bytes.len && result == MK_AGAIN; len++)
        result = feed(&r, c->bytes.p, len);
    check(c, &r, result, "byte by byte");
}

#define CASE(text, ...) \
    { \
        {text, sizeof(text) - 1}, __VA_ARGS__ \
    }
#define MORE(text) CASE(text, MK_AGAIN, NULL, 0)
#define BAD(text) CASE(text, -400, NULL, 0)
#define LINE "GET / HTTP/1.1\r\n"
#define TEN "0123456789"

static const struct head_case good[] = {
    CASE("GET / HTTP/1.1\r\n\r\n", 0, "GET|/|1", 0),
    CASE("GET / HTTP/1.0\r\n\r\n", 0, "GET|/|0", 0),
    CASE("GET / HTTP/1.9\r\n\r\n", 0, "GET|/|9", 0),
    CASE("get / HTTP/1.1\r\n\r\n", 0, "get|/|1", 0),
    CASE("M!#$%&'*+-.^_`|~9 / HTTP/1.1\r\n\r\n", 0, "M!#$%&'*+-.^_`|~9|/|1", 0),
    CASE("GET /a?b=c&d#e HTTP/1.1\r\n\r\n", 0, "GET|/a?b=c&d#e|1", 0), /* message/request_head.c rejects the fragment */
    CASE("GET http://h/p HTTP/1.1\r\n\r\n", 0, "GET|http://h/p|1", 0),
    CASE("CONNECT h:443 HTTP/1.1\r\n\r\n", 0, "CONNECT|h:443|1", 0),
    CASE("OPTIONS * HTTP/1.1\r\n\r\n", 0, "OPTIONS|*|1", 0),
    CASE("GET \"<>^`{|} HTTP/1.1\r\n\r\n", 0, "GET|\"<>^`{|}|1", 0),
    CASE(LINE "Host: h\r\n\r\n", 0, "GET|/|1|Host=h", 0),
    CASE(LINE "Host:h\r\nA:\r\nb: \t \r\nC: \t d e\t \r\n\r\n", 0, "GET|/|1|Host=h|A=|b=|C=d e", 0),
    CASE(LINE "A: \xc3\xbc\xff\x80!\"(),/:;<=>?@[\\]{}\r\n\r\n", 0, "GET|/|1|A=\xc3\xbc\xff\x80!\"(),/:;<=>?@[\\]{}",
         0),
    CASE(LINE "A: b\r\n\r\nbody", 0, "GET|/|1|A=b", 4),
    CASE(LINE "\r\n" LINE "\r\n", 0, "GET|/|1", 18),
    CASE("\r\n\r\n" LINE "A: b\r\n\r\n", 0, "GET|/|1|A=b", 0),
    CASE("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n" LINE "\r\n", 0, "GET|/|1", 0), /* eight */
};

static const struct head_case unfinished[] = {
    MORE(""),
    MORE("\r"),
    MORE("\r\n\r\n"),
    MORE("G"),
    MORE("GET / HTTP/1.1"),
    MORE("GET / HTTP/1.1\r"),
    MORE(LINE),
    MORE(LINE "A: b\r\n"),
    MORE(LINE "A: b\r\n\r"),
    MORE("GET /" TEN TEN TEN "12345\r"), /* a line at its limit, which may still end in time */
};

static const struct head_case bad[] = {
    /* the request line */
    BAD("GET /\r\n\r\n"), /* HTTP/0.9 */
    BAD("GET\r\n"),
    BAD("GET \r\n"),
    BAD("GET  HTTP/1.1\r\n"),
    BAD(" GET / HTTP/1.1\r\n"),
    BAD("GET  / HTTP/1.1\r\n"),
    BAD("GET /  HTTP/1.1\r\n"),
    BAD("GET / HTTP/1.1 \r\n"),
    BAD("GET\t/ HTTP/1.1\r\n"),
    BAD("GET /\tHTTP/1.1\r\n"),
    BAD("GET / x HTTP/1.1\r\n"),
    BAD("G@T / HTTP/1.1\r\n"),
    BAD("G\xc3T / HTTP/1.1\r\n"),
    BAD("(GET) / HTTP/1.1\r\n"),
    BAD("GET /\xc3\xbc HTTP/1.1\r\n"),
    BAD("GET /\x7f HTTP/1.1\r\n"),
    BAD("GET /\x01 HTTP/1.1\r\n"),
    BAD("GET /\0 HTTP/1.1\r\n"),
    BAD("\0GET / HTTP/1.1\r\n"),
    BAD("\x16\x03\x01\x02\0\x01\n"), /* TLS on a plain port */
    /* versions */
    BAD("GET / HTTP/1.\r\n"),
    BAD("GET / HTTP/1\r\n"),
    BAD("GET / HTTP/11\r\n"),
    BAD("GET / HTTP/1.10\r\n"),
    BAD("GET / HTTP/1,1\r\n"),
    BAD("GET / HTTP/a.1\r\n"),
    BAD("GET / HTTP/1.a\r\n"),
    BAD("GET / http/1.1\r\n"),
    BAD("GET / HTTPS/1.1\r\n"),
    BAD("GET / XTTP/1.1\r\n"),
    BAD("GET / HTTP 1.1\r\n"),
    BAD("GET / /1.1\r\n"),
    CASE("GET / HTTP/2.0\r\n", -505, NULL, 0),
    CASE("GET / HTTP/0.9\r\n", -505, NULL, 0),
    CASE("GET / HTTP/9.9\r\nx", -505, NULL, 0),
    CASE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", -505, NULL, 0),
    /* line ends */
    BAD("\n"),
    BAD("GET / HTTP/1.1\n"),
    BAD("GET / HTTP/1.1\n\r\n"),
    BAD("GET / HTTP/1.1\r\r\n"),
    BAD("GET / HTTP/1.1\rA: b\r\n"),
    BAD("GET /\r HTTP/1.1\r\n"),
    BAD(LINE "\n"),
    BAD(LINE "A: b\n"),
    BAD(LINE "A: b\nC: d\r\n\r\n"),
    BAD(LINE "A: b\rC: d\r\n\r\n"),
    BAD(LINE "A: b\r\r\n"),
    BAD(LINE "\r\r\n"),
    BAD("\r\r\n"),
    BAD("\r\n\n"),
    BAD("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"), /* nine */
    /* fields */
    BAD(LINE " A: b\r\n\r\n"),
    BAD(LINE "\tA: b\r\n\r\n"),
    BAD(LINE "A: b\r\n c\r\n\r\n"),
    BAD(LINE "A: b\r\n\tc\r\n\r\n"),
    BAD(LINE "A: b\r\n \r\n\r\n"),
    BAD(LINE "A : b\r\n\r\n"),
    BAD(LINE "A\t: b\r\n\r\n"),
    BAD(LINE "A b: c\r\n\r\n"),
    BAD(LINE ": b\r\n\r\n"),
    BAD(LINE "A\r\n\r\n"),
    BAD(LINE "A=b\r\n\r\n"),
    BAD(LINE "A(: b\r\n\r\n"),
    BAD(LINE "A\0: b\r\n\r\n"),
    BAD(LINE "\xc3\xbc: b\r\n\r\n"),
    BAD(LINE "A: \0\r\n\r\n"),
    BAD(LINE "A: b\0c\r\n\r\n"),
    BAD(LINE "A: \x01\r\n\r\n"),
    BAD(LINE "A: \x0b\r\n\r\n"),
    BAD(LINE "A: \x0c\r\n\r\n"),
    BAD(LINE "A: \x1b[31m\r\n\r\n"),
    BAD(LINE "A: \x7f\r\n\r\n"),
    BAD("GET /a\\b HTTP/1.1\r\n\r\n"),
    BAD("GET \\ HTTP/1.1\r\n\r\n"),
};

#define LONG(text) CASE(text, -414, NULL, 0)
#define BIG(text) CASE(text, -431, NULL, 0)

static const struct head_case over[] = {
    LONG("GET /" TEN TEN "0123456 HTTP/1.1\r\n"), /* 41 bytes */
    LONG("GET /" TEN TEN TEN "123456\r"),
    LONG("GET /" TEN TEN TEN TEN),
    LONG("\r\n\r\nGET /" TEN TEN "0123456 HTTP/1.1\r\n"),
    /* no method that is implemented is so long: RFC 9112 section 3 */
    CASE(TEN TEN TEN TEN TEN "\n", -501, NULL, 0),
    CASE(TEN TEN TEN TEN "01", -501, NULL, 0),
    CASE(TEN TEN TEN TEN "0 / HTTP/1.1\r\n", -501, NULL, 0),
    CASE(TEN TEN TEN TEN " / HTTP/1.1\r\n", -501, NULL, 0),
    LONG(TEN TEN TEN "012345678 / HTTP/1.1\r\n"),
    BAD(TEN "\x01" TEN TEN TEN TEN),
    BAD(TEN "(" TEN TEN TEN TEN "\n"),
    BIG(LINE "a:\r\nb:\r\nc:\r\nd:\r\ne:\r\n\r\n"),
    BIG(LINE "a: " TEN TEN TEN TEN TEN TEN TEN TEN TEN "01234567\r\n\r\n"), /* 121 bytes */
    BIG(LINE "a: " TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "1\r"),
    BIG(LINE "a: " TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "12345"),
    BIG(LINE "a: " TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "\n"),
};

static const struct head_case fits[] = {
    CASE("GET /" TEN TEN "012345 HTTP/1.1\r\n\r\n", 0, "GET|/" TEN TEN "012345|1", 0), /* 40 bytes */
    CASE("\r\n\r\nGET /" TEN TEN "012345 HTTP/1.1\r\n\r\n", 0, "GET|/" TEN TEN "012345|1", 0),
    CASE(LINE "a:\r\nb:\r\nc:\r\nd:\r\n\r\n", 0, "GET|/|1|a=|b=|c=|d=", 0),
    CASE(LINE "a: " TEN TEN TEN TEN TEN TEN TEN TEN TEN "0123456\r\n\r\n", 0,
         "GET|/|1|a=" TEN TEN TEN TEN TEN TEN TEN TEN TEN "0123456", 0), /* 120 bytes */
};

static void check_all(const struct head_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_every_way(&cases[i]);
}

TEST(reads)
{
    check_all(good, COUNT(good));
    check_all(unfinished, COUNT(unfinished));
}

TEST(refuses)
{
    check_all(bad, COUNT(bad));
}

TEST(limits)
{
    check_all(over, COUNT(over));
    check_all(fits, COUNT(fits));
}

/* The response to a request whose target is too long depends on its method. */
TEST(the_method_of_a_long_line)
{
    static const struct {
        const char *line;
        enum mk_method method;
    } cases[] = {
        {"HEAD /" TEN TEN TEN TEN, MK_HEAD},
        {"\r\nHEAD /" TEN TEN "0123456 HTTP/1.1\r\n", MK_HEAD},
        {"GET /" TEN TEN TEN TEN, MK_GET},
        {"LOCK /" TEN TEN TEN TEN, MK_METHOD_OTHER},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run r = {.parse = {.method = MK_CONNECT}};
        assert_int_equal(feed(&r, cases[i].line, strlen(cases[i].line)), -414);
        assert_int_equal(r.parse.method, cases[i].method);
    }
}

/* Every byte, at places where it is allowed or not. */
static int parse_with(const char *format, int byte)
{
    char text[64];
    struct run r = {0};
    int n = snprintf(text, sizeof(text), format, 'x');
    char *x = memrchr(text, 'x', (size_t)n);
    *x = (char)byte;
    return feed(&r, text, (size_t)n);
}

TEST(every_byte)
{
    for (int b = 0; b < 256; b++) {
        char c = (char)b;
        bool token = mk__parse_is_token(mk_str(&c, 1));
        bool visible = b > 0x20 && b < 0x7f, target = visible && b != '\\';
        bool expected = visible && !strchr("\"(),/:;<=>?@[\\]{}", b);
        assert_int_equal(token, expected);
        if (b == '\n')
            continue;
        assert_int_equal(parse_with("G%cT / HTTP/1.1\r\n\r\n", b) == 0, token);
        assert_int_equal(parse_with("GET /%c HTTP/1.1\r\n\r\n", b) == 0, target);
        assert_int_equal(parse_with(LINE "A%cB: b\r\n\r\n", b) == 0, token || b == ':');
        assert_int_equal(parse_with(LINE "A: b%cb\r\n\r\n", b) == 0, visible || b >= 0x80 || b == ' ' || b == '\t');
    }
    assert_false(mk__parse_is_token(MK_STR("")));
    assert_true(mk__parse_is_token(MK_STR("Content-Type")));
    assert_false(mk__parse_is_token(MK_STR("Content Type")));
}

/* Parses `prefix`, `len` bytes of which the one at `at` is `byte`, and `suffix`. */
static int parse_filled(const char *prefix, size_t len, size_t at, int byte, const char *suffix)
{
    char text[128];
    struct run r = {0};
    size_t before = strlen(prefix), n = before + len + strlen(suffix);
    memcpy(text, prefix, before);
    memset(text + before, 'x', len);
    text[before + at] = (char)byte;
    memcpy(text + before + len, suffix, strlen(suffix));
    return feed(&r, text, n);
}

/* Around the lengths that are read at once. */
static const size_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17};

static void check_byte_at(size_t len, size_t at, int b)
{
    bool visible = b > 0x20 && b < 0x7f, token = visible && !strchr("\"(),/:;<=>?@[\\]{}", b);
    bool name = token || (b == ':' && at > 0), value = visible || b >= 0x80 || b == ' ' || b == '\t';
    assert_int_equal(parse_filled("", len, at, b, " / HTTP/1.1\r\n\r\n") == 0, token);
    assert_int_equal(parse_filled("GET ", len, at, b, " HTTP/1.1\r\n\r\n") == 0, visible && b != '\\');
    assert_int_equal(parse_filled(LINE, len, at, b, ":\r\n\r\n") == 0, name);
    assert_int_equal(parse_filled(LINE "a:", len, at, b, "\r\n\r\n") == 0, value);
}

TEST(every_byte_at_every_place)
{
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t at = 0; at < lengths[i]; at++)
            for (int b = 0; b < 256; b++)
                if (b != '\r' && b != '\n')
                    check_byte_at(lengths[i], at, b);
}

static const struct {
    const char *name;
    enum mk_header_id id;
} known[] = {
    {"Accept", MK_HEADER_ACCEPT},
    {"Accept-Encoding", MK_HEADER_ACCEPT_ENCODING},
    {"Authorization", MK_HEADER_AUTHORIZATION},
    {"Connection", MK_HEADER_CONNECTION},
    {"Content-Length", MK_HEADER_CONTENT_LENGTH},
    {"Content-Type", MK_HEADER_CONTENT_TYPE},
    {"Cookie", MK_HEADER_COOKIE},
    {"Expect", MK_HEADER_EXPECT},
    {"Host", MK_HEADER_HOST},
    {"If-Match", MK_HEADER_IF_MATCH},
    {"If-Modified-Since", MK_HEADER_IF_MODIFIED_SINCE},
    {"If-None-Match", MK_HEADER_IF_NONE_MATCH},
    {"If-Range", MK_HEADER_IF_RANGE},
    {"If-Unmodified-Since", MK_HEADER_IF_UNMODIFIED_SINCE},
    {"Origin", MK_HEADER_ORIGIN},
    {"Range", MK_HEADER_RANGE},
    {"Referer", MK_HEADER_REFERER},
    {"TE", MK_HEADER_TE},
    {"Transfer-Encoding", MK_HEADER_TRANSFER_ENCODING},
    {"Upgrade", MK_HEADER_UPGRADE},
    {"User-Agent", MK_HEADER_USER_AGENT},
};

static uint16_t id_of(const char *name, uint32_t *ret_seen)
{
    char text[128];
    struct run r = {0};
    int n = snprintf(text, sizeof(text), LINE "%s: x\r\n\r\n", name);
    assert_int_equal(feed(&r, text, (size_t)n), 0);
    *ret_seen = r.parse.seen;
    return r.fields[0].id;
}

TEST(known_fields)
{
    static const char *const others[] = {
        "X",         "A-Name-That-Is-Longer", "Content-Lengt", "Content-Length1", "Host-",
        "Connectio", "Transfer_Encoding",     "Tee",           "Accept-Range"};
    uint32_t seen;
    assert_int_equal(COUNT(known), MK_HEADER_COUNT - 1); /* all of them */
    for (size_t i = 0; i < COUNT(known); i++) {
        char name[32];
        assert_int_equal(id_of(known[i].name, &seen), known[i].id);
        assert_int_equal(seen, 1u << known[i].id);
        for (size_t n = 0; n <= strlen(known[i].name); n++)
            name[n] = (char)(known[i].name[n] ^ (known[i].name[n] >= 'A' ? 0x20 : 0));
        assert_int_equal(id_of(name, &seen), known[i].id);
    }
    for (size_t i = 0; i < COUNT(others); i++)
        assert_int_equal(id_of(others[i], &seen), MK_HEADER_OTHER);
}

/* A name with another byte is that field only if the case of a letter differs. */
static void check_other_bytes(const char *name, enum mk_header_id id)
{
    static const struct mk__parse_limits wide = {.line_bytes_max = 40, .head_bytes_max = 120, .fields_max = 1};
    for (size_t at = 0, len = strlen(name); at < len; at++) {
        for (int b = 0; b < 256; b++) {
            char text[64];
            struct run r = {0};
            size_t n = (size_t)snprintf(text, sizeof(text), LINE "%s: x\r\n\r\n", name);
            text[sizeof(LINE) - 1 + at] = (char)b;
            bool same = (b | 0x20) == (name[at] | 0x20) && (b == name[at] || name[at] != '-');
            if (mk__parse_head(&r.parse, r.fields, &wide, mk_str(text, n)) == 0 && same != (r.fields[0].id == id))
                fail_msg("%s with the byte %d at %zu", name, b, at);
        }
    }
}

TEST(almost_known_fields)
{
    for (size_t i = 0; i < COUNT(known); i++)
        check_other_bytes(known[i].name, known[i].id);
}

static const struct {
    const char *name;
    enum mk_method method;
} methods[] = {
    {"GET", MK_GET},
    {"HEAD", MK_HEAD},
    {"POST", MK_POST},
    {"PUT", MK_PUT},
    {"DELETE", MK_DELETE},
    {"OPTIONS", MK_OPTIONS},
    {"CONNECT", MK_CONNECT},
    {"TRACE", MK_TRACE},
    {"PATCH", MK_PATCH},
    {"get", MK_METHOD_OTHER},
    {"GETS", MK_METHOD_OTHER},
    {"G", MK_METHOD_OTHER},
    {"PROPFIND", MK_METHOD_OTHER},
};

TEST(methods)
{
    for (size_t i = 0; i < COUNT(methods); i++) {
        char text[64];
        struct run r = {0};
        int n = snprintf(text, sizeof(text), "%s / HTTP/1.1\r\n\r\n", methods[i].name);
        assert_int_equal(feed(&r, text, (size_t)n), 0);
        assert_int_equal(r.parse.method, methods[i].method);
    }
}

/* A head of the longest length that spans can describe, and one byte more. */
TEST(the_largest_head)
{
    static char text[70000];
    const struct mk__parse_limits wide = {.line_bytes_max = 70000, .head_bytes_max = 70000, .fields_max = 1};
    for (size_t size = UINT16_MAX; size <= UINT16_MAX + 1; size++) {
        struct run r = {0};
        memset(text, 'x', sizeof(text));
        memcpy(text, LINE "A: ", sizeof(LINE "A: ") - 1);
        memcpy(text + size - 4, "\r\n\r\n", 4);
        int result = mk__parse_head(&r.parse, r.fields, &wide, mk_str(text, sizeof(text)));
        assert_int_equal(result, size == UINT16_MAX ? 0 : -431);
        if (result == 0)
            assert_int_equal(r.parse.head_len, UINT16_MAX);
    }
}
