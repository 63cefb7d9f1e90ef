// SPDX-License-Identifier: Apache-2.0
/* Interprets heads: framing, host, expectation, persistence. A case is a head, and the expected result as text. */
#include "testing.h"

#include <stdio.h>

#include "http/message/request_head.h"

static const struct mk__parse_limits limits = {.line_bytes_max = 4096, .head_bytes_max = 8192, .fields_max = 16};

static const char *const bodies[] = {"none", "length", "chunked"};

/* "body bytes path ?query @host keep continue *", as far as they apply; or the status. */
static void describe(const struct mk__request_head *h, const char *base, char *to, size_t size)
{
    int n = snprintf(to, size, "%s", bodies[h->body]);
    if (h->body == MK__BODY_LENGTH)
        n += snprintf(to + n, size - (size_t)n, " %llu", (unsigned long long)h->body_bytes);
    if (h->path.len)
        n += snprintf(to + n, size - (size_t)n, " %.*s", MK_STR_ARG(mk_span_str(base, h->path)));
    if (h->has_query)
        n += snprintf(to + n, size - (size_t)n, " ?%.*s", MK_STR_ARG(mk_span_str(base, h->query)));
    if (h->host.len)
        n += snprintf(to + n, size - (size_t)n, " @%.*s", MK_STR_ARG(mk_span_str(base, h->host)));
    snprintf(to + n, size - (size_t)n, "%s%s%s", h->keep_alive ? " keep" : "", h->expects_continue ? " continue" : "",
             h->asterisk ? " *" : "");
}

struct head_case {
    const char *line, *fields; /* without the last CRLF of the head */
    const char *expected;      /* or NULL, and: */
    int status;
};

static void check_with(const struct head_case *c, struct mk__host_memo *memo)
{
    struct mk_field fields[16];
    struct mk_head_parser parse = {0};
    struct mk__request_head head;
    char text[1024], output[512];
    int len = snprintf(text, sizeof(text), "%s\r\n%s\r\n", c->line, c->fields);
    char *base = mk_test_guarded(text, (size_t)len);
    if (mk__parse_head(&parse, fields, &limits, mk_str(base, (size_t)len)) != 0)
        fail_msg("%s is no head", text);
    int r = mk__request_head_read(&parse, fields, base, memo, &head);
    if (r != -c->status)
        fail_msg("%s: %d, not %d", text, r, -c->status);
    if (r == 0) {
        describe(&head, base, output, sizeof(output));
        if (strcmp(output, c->expected) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", text, output, c->expected);
    }
    mk_test_unguard(base, (size_t)len);
}

/* What was read before makes no difference: neither the same host nor that of another case. */
static void check(const struct head_case *c)
{
    static struct mk__host_memo of_all;
    struct mk__host_memo own = {0};
    check_with(c, NULL);
    check_with(c, &own);
    check_with(c, &own);
    check_with(c, &of_all);
}

static void check_all(const struct head_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check(&cases[i]);
}

#define POST "POST / HTTP/1.1"
#define POST10 "POST / HTTP/1.0"
#define H "Host: h\r\n"
#define CL "Content-Length: "
#define TE "Transfer-Encoding: "

static const struct head_case framing[] = {
    {POST, H, "none / @h keep", 0},
    {POST, H CL "5\r\n", "length 5 / @h keep", 0},
    {POST, H CL "0\r\n", "none / @h keep", 0},
    {POST, H CL "000\r\n", "none / @h keep", 0},
    {POST, H CL "00012\r\n", "length 12 / @h keep", 0},
    {POST, H CL "9223372036854775807\r\n", "length 9223372036854775807 / @h keep", 0},
    {POST10, CL "5\r\n", "length 5 /", 0},
    {"GET / HTTP/1.1", H CL "5\r\n", "length 5 / @h keep", 0},
    {POST, H CL "9223372036854775808\r\n", NULL, 400},
    {POST, H CL "18446744073709551616\r\n", NULL, 400},
    {POST, H CL "99999999999999999999999999\r\n", NULL, 400},
    {POST, H CL "\r\n", NULL, 400},
    {POST, H CL "-1\r\n", NULL, 400},
    {POST, H CL "+1\r\n", NULL, 400},
    {POST, H CL "1 2\r\n", NULL, 400},
    {POST, H CL "0x5\r\n", NULL, 400},
    {POST, H CL "5a\r\n", NULL, 400},
    {POST, H CL "5.0\r\n", NULL, 400},
    {POST, H CL "5,5\r\n", NULL, 400},
    {POST, H CL "5, 5\r\n", NULL, 400},
    {POST, H CL "5\r\n" CL "5\r\n", NULL, 400},
    {POST, H CL "5\r\n" CL "6\r\n", NULL, 400},
    {POST, H TE "chunked\r\n", "chunked / @h keep", 0},
    {POST, H TE "Chunked\r\n", "chunked / @h keep", 0},
    {POST, H TE "\tchunked \r\n", "chunked / @h keep", 0},
    {POST, H TE ", chunked ,\r\n", NULL, 400}, /* some servers see no body there */
    {POST, H TE ",chunked\r\n", NULL, 400},
    {POST, H TE "chunked,\r\n", NULL, 400},
    {POST, H TE "chunked, \t,\r\n", NULL, 400},
    {POST, H TE "gzip,, chunked\r\n", NULL, 400},
    {POST, H TE "\r\n" TE "chunked\r\n", NULL, 400},
    {POST, H TE "chunked\r\n" TE "\r\n", NULL, 400},
    {POST, H TE "chunked\r\n" CL "5\r\n", NULL, 400},
    {POST, H CL "0\r\n" TE "chunked\r\n", NULL, 400},
    {POST, H CL "x\r\n" TE "chunked\r\n", NULL, 400},
    {POST, H TE "\r\n", NULL, 400},
    {POST, H TE ",\r\n", NULL, 400},
    {POST, H TE "chunked, chunked\r\n", NULL, 400},
    {POST, H TE "chunked\r\n" TE "chunked\r\n", NULL, 400},
    {POST, H TE "chunked, gzip\r\n", NULL, 400},
    {POST, H TE "chunked\r\n" TE "gzip\r\n", NULL, 400},
    {POST, H TE "chunked\r\n" TE "identity\r\n", NULL, 400},
    {POST, H TE "gzip, chunked\r\n", NULL, 501},
    {POST, H TE "gzip\r\n" TE "chunked\r\n", NULL, 501},
    {POST, H TE "gzip\r\n", NULL, 501},
    {POST, H TE "identity\r\n", NULL, 501},
    {POST, H TE "xchunked\r\n", NULL, 501},
    {POST, H TE "chunkedx\r\n", NULL, 501},
    {POST, H TE "\"chunked\"\r\n", NULL, 501},
    {POST, H TE "chunked;q=1\r\n", NULL, 501},
    {POST10, TE "chunked\r\n", NULL, 400},
    {POST10, TE "gzip\r\n", NULL, 400},
};

static const struct head_case hosts[] = {
    {"GET /a/b?c=d HTTP/1.1", "Host: example.org\r\n", "none /a/b ?c=d @example.org keep", 0},
    {"GET /? HTTP/1.1", "Host: example.org:80\r\n", "none / ? @example.org keep", 0},
    {"GET / HTTP/1.1", "Host: [::1]:8080\r\n", "none / @[::1] keep", 0},
    {"GET / HTTP/1.1", "Host: 127.0.0.1\r\n", "none / @127.0.0.1 keep", 0},
    {"GET / HTTP/1.1", "Host:\r\n", "none / keep", 0},
    {"GET / HTTP/1.0", "", "none /", 0},
    {"GET / HTTP/1.0", "Host: h\r\n", "none / @h", 0},
    {"GET http://a:81/b?c HTTP/1.1", "Host: other\r\n", "none /b ?c @a keep", 0}, /* the target wins */
    {"GET http://a HTTP/1.1", "Host: a\r\n", "none @a keep", 0},
    {"GET http://a?q HTTP/1.1", "Host: a\r\n", "none ?q @a keep", 0},
    {"GET https://[::1]/ HTTP/1.1", "Host: a\r\n", "none / @[::1] keep", 0},
    {"OPTIONS * HTTP/1.1", H, "none @h keep *", 0},
    {"OPTIONS http://a HTTP/1.1", H, "none @a keep *", 0},
    {"OPTIONS /x HTTP/1.1", H, "none /x @h keep", 0},
    {"CONNECT a:443 HTTP/1.1", H, "none @a keep", 0},
    {"GET / HTTP/1.1", "", NULL, 400},
    {"GET / HTTP/1.1", "Host: a\r\nHost: a\r\n", NULL, 400},
    {"GET / HTTP/1.0", "Host: a\r\nHost: b\r\n", NULL, 400},
    {"GET / HTTP/1.1", "Host: a12345678901234567890123456789012345678901234567890123456:1\r\n",
     "none / @a12345678901234567890123456789012345678901234567890123456 keep", 0}, /* longer than a memo */
    {"GET / HTTP/1.1", "Host: a b\r\n", NULL, 400},
    {"GET / HTTP/1.1", "Host: a, b\r\n", NULL, 400},
    {"GET / HTTP/1.1", "Host: a/b\r\n", NULL, 400},
    {"GET / HTTP/1.1", "Host: u@a\r\n", NULL, 400},
    {"GET / HTTP/1.1", "Host: a:b\r\n", NULL, 400},
    {"GET / HTTP/1.1", "Host: a:65536\r\n", NULL, 400},
    {"GET / HTTP/1.1", "Host: [::1\r\n", NULL, 400},
    {"GET / HTTP/1.1", "Host: ::1\r\n", NULL, 400},
    {"GET http://a/ HTTP/1.1", "", NULL, 400},
    {"GET http://a/ HTTP/1.1", "Host: a b\r\n", NULL, 400}, /* even though it is not used */
    {"GET http:/// HTTP/1.1", H, NULL, 400},
    {"GET http://u:p@a/ HTTP/1.1", H, NULL, 400},
    {"GET ftp://a/ HTTP/1.1", H, NULL, 400},
    {"GET * HTTP/1.1", H, NULL, 400},
    {"GET a:443 HTTP/1.1", H, NULL, 400},
    {"GET x HTTP/1.1", H, NULL, 400},
    {"GET /a#b HTTP/1.1", H, NULL, 400},
    {"CONNECT /x HTTP/1.1", H, NULL, 400},
    {"CONNECT a HTTP/1.1", H, NULL, 400},
};

#define LEN CL "5\r\n"

static const struct head_case expectations[] = {
    {POST, H LEN "Expect: 100-continue\r\n", "length 5 / @h keep continue", 0},
    {POST, H LEN "Expect: 100-Continue\r\n", "length 5 / @h keep continue", 0},
    {POST, H TE "chunked\r\nExpect: 100-continue\r\n", "chunked / @h keep continue", 0},
    {POST, H "Expect: 100-continue\r\n", "none / @h keep", 0}, /* nothing to wait for */
    {POST10, LEN "Expect: 100-continue\r\n", "length 5 /", 0},
    {POST, H LEN "Expect: x\r\n", NULL, 417},
    {POST, H LEN "Expect:\r\n", NULL, 417},
    {POST, H LEN "Expect: 100-continue, x\r\n", NULL, 417},
    {POST, H LEN "Expect: 100-continue\r\nExpect: 100-continue\r\n", NULL, 417},
};

#define GET "GET / HTTP/1.1"
#define GET10 "GET / HTTP/1.0"

static const struct head_case persistence[] = {
    {GET, H, "none / @h keep", 0},
    {GET, H "Connection: keep-alive\r\n", "none / @h keep", 0},
    {GET, H "Connection: close\r\n", "none / @h", 0},
    {GET, H "Connection: CLOSE\r\n", "none / @h", 0},
    {GET, H "Connection: x, close ,y\r\n", "none / @h", 0},
    {GET, H "Connection: keep-alive, close\r\n", "none / @h", 0},
    {GET, H "Connection: upgrade\r\nConnection: close\r\n", "none / @h", 0},
    {GET, H "Connection: closed\r\n", "none / @h keep", 0},
    {GET, H "Connection: \"close\"\r\n", "none / @h keep", 0},
    {GET, H "Connection:\r\n", "none / @h keep", 0},
    {GET10, "", "none /", 0},
    {GET10, "Connection: keep-alive\r\n", "none / keep", 0},
    {GET10, "Connection: te, Keep-Alive\r\n", "none / keep", 0},
    {GET10, "Connection: keep-alive, close\r\n", "none /", 0},
    {GET10, "Keep-Alive: 300\r\n", "none /", 0},
};

TEST(framing)
{
    check_all(framing, COUNT(framing));
}

TEST(hosts)
{
    check_all(hosts, COUNT(hosts));
}

TEST(expectations)
{
    check_all(expectations, COUNT(expectations));
}

TEST(persistence)
{
    check_all(persistence, COUNT(persistence));
}
