// SPDX-License-Identifier: Apache-2.0
/* What becomes of each header, in any case of letters, and with `_` for `-`. */
#include "testing.h"

#include "plugins/proxy/proxy.h"

static const struct row {
    const char *name;
    enum header_rule request, response;
} rows[] = {
    {"Connection", HEADER_DROP, HEADER_DROP},
    {"Content-Encoding", HEADER_PASS, HEADER_PASS},
    {"Content-Length", HEADER_DROP, HEADER_LENGTH},
    {"Content-Location", HEADER_PASS, HEADER_LOCATION},
    {"Content-Range", HEADER_PASS, HEADER_PASS},
    {"Cookie", HEADER_PASS, HEADER_PASS},
    {"Date", HEADER_PASS, HEADER_DATE},
    {"Destination", HEADER_DESTINATION, HEADER_PASS},
    {"Expect", HEADER_DROP, HEADER_DROP},
    {"Forwarded", HEADER_SET, HEADER_PASS},
    {"HTTP2-Settings", HEADER_DROP, HEADER_DROP},
    {"Host", HEADER_SET, HEADER_PASS},
    {"If", HEADER_IF, HEADER_PASS},
    {"Keep-Alive", HEADER_DROP, HEADER_DROP},
    {"Link", HEADER_PASS, HEADER_LINK},
    {"Location", HEADER_PASS, HEADER_LOCATION},
    {"Max-Forwards", HEADER_MAX_FORWARDS, HEADER_PASS},
    {"Proxy", HEADER_DROP, HEADER_PASS},
    {"Proxy-Authenticate", HEADER_PASS, HEADER_DROP},
    {"Proxy-Authorization", HEADER_DROP, HEADER_PASS},
    {"Proxy-Connection", HEADER_DROP, HEADER_DROP},
    {"Refresh", HEADER_PASS, HEADER_REFRESH},
    {"Server", HEADER_PASS, HEADER_DROP},
    {"Set-Cookie", HEADER_PASS, HEADER_COOKIE},
    {"TE", HEADER_DROP, HEADER_DROP},
    {"Trailer", HEADER_DROP, HEADER_PASS},
    {"Transfer-Encoding", HEADER_DROP, HEADER_DROP},
    {"Upgrade", HEADER_DROP, HEADER_DROP},
    {"Via", HEADER_SET, HEADER_PASS},
    {"X-Accel-Redirect", HEADER_PASS, HEADER_DROP},
    {"X-Forwarded-For", HEADER_SET, HEADER_PASS},
    {"X-Forwarded-Host", HEADER_SET, HEADER_PASS},
    {"X-Forwarded-Port", HEADER_SET, HEADER_PASS},
    {"X-Forwarded-Proto", HEADER_SET, HEADER_PASS},
    {"X-Real-IP", HEADER_SET, HEADER_PASS},
    {"X-Request-Id", HEADER_SET, HEADER_PASS},
    {"X-Sendfile", HEADER_PASS, HEADER_DROP},
};

enum { NAME_MAX_BYTES = 32 };

static struct mk_str change(const char *name, char to[NAME_MAX_BYTES], int (*fn)(int))
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        to[i] = (char)fn(name[i]);
    return mk_str(to, n);
}

static int to_lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static int to_upper(int c)
{
    return c >= 'a' && c <= 'z' ? c & ~0x20 : c;
}

static int to_underscore(int c)
{
    return c == '-' ? '_' : c;
}

TEST(names)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[NAME_MAX_BYTES];
        int (*const cases[])(int) = {to_lower, to_upper};
        for (size_t k = 0; k < COUNT(cases); k++) {
            struct mk_str name = change(rows[i].name, storage, cases[k]);
            assert_int_equal(header_of_request(name), rows[i].request);
            assert_int_equal(header_of_response(name), rows[i].response);
            assert_false(header_may_be_trailer(name));
        }
    }
}

TEST(underscores)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[NAME_MAX_BYTES];
        struct mk_str name = change(rows[i].name, storage, to_underscore);
        if (!memchr(name.p, '_', name.len))
            continue;
        assert_int_equal(header_of_request(name), rows[i].request == HEADER_PASS ? HEADER_PASS : HEADER_AMBIGUOUS);
        assert_int_equal(header_of_response(name), HEADER_PASS);
        assert_false(header_may_be_trailer(name));
    }
}

TEST(others)
{
    static const char *const names[] = {
        "",      "A",        "Accept",       "X-Forwarded-Fox", "X_Y", "Grpc-Status", "Strict-Transport-Security",
        "Hosts", "If-Match", "Server-Timing"};
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(header_of_request(mk_str_c(names[i])), HEADER_PASS);
        assert_int_equal(header_of_response(mk_str_c(names[i])), HEADER_PASS);
        assert_true(header_may_be_trailer(mk_str_c(names[i])));
    }
}
