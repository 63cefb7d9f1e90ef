// SPDX-License-Identifier: Apache-2.0
/* The directives of checks: what they take, and what they say of what they do not take. */
#include "plugins/upstream/values_fixture.h"

#include "arena.h"

#include "plugins/upstream/conf.h"

#include <stdio.h>

/* Parses the value of a key into its field of `conf`. */
static int parse(const char *name, struct check_conf *conf, const char *value)
{
    const struct mk_conf_key *key = check_keys;
    while (strcmp(key->name, name) != 0)
        key++;
    return parse_words(key->parse, value, (char *)conf + key->offset, &arena);
}

static void expect_mistake(const char *name, const char *value, const char *sentence)
{
    struct check_conf conf = {0};
    if (parse(name, &conf, value) != -EINVAL || !strstr(parse_error, sentence))
        fail_msg("%s %s: %s", name, value, parse_error);
}

TEST(kinds, mk_test_arena_open, mk_test_arena_close)
{
    struct check_conf conf = {0};
    assert_int_equal(parse("Check", &conf, "tcp"), 0);
    assert_int_equal(conf.what.kind, CHECK_TCP);
    assert_int_equal(parse("Check", &conf, "Off"), 0);
    assert_int_equal(conf.what.kind, CHECK_OFF);
    assert_int_equal(parse("Check", &conf, "/health?a=b"), 0);
    assert_int_equal(conf.what.kind, CHECK_HTTP);
    assert_str_equal(conf.what.path, "/health?a=b");
    assert_int_equal(parse("Check", &conf, "fastcgi /ping?a"), 0);
    assert_int_equal(conf.what.kind, CHECK_FASTCGI);
    assert_str_equal(conf.what.path, "/ping?a");
    static const char *const mistakes[] = {"health",       "On",      "http://a/health", "/a\x01",
                                           "/\xc3\xa4",    "/a#b",    "Tcp /health",     "FastCGI",
                                           "FastCGI ping", "HTTP /a", "FastCGI /a /b",   "FastCGI /a#b"};
    for (size_t i = 0; i < COUNT(mistakes); i++)
        expect_mistake("Check", mistakes[i], "is no check: it is Tcp, Off, the path of a request, as /health, or");
    char path[2050];
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[2049] = '\0';
    expect_mistake("Check", path, "at most 2048 bytes");
    char both[sizeof(path) + 8];
    snprintf(both, sizeof(both), "FastCGI %s", path);
    expect_mistake("Check", both, "at most 2048 bytes");
}

TEST(statuses, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *value;
        unsigned has[4], lacks[4];
    } rows[] = {
        {"200-399", {200, 201, 399, 300}, {199, 400, 100, 599}},
        {"204", {204, 204, 204, 204}, {203, 205, 0, 600}},
        {"100 599 163-164", {100, 599, 163, 164}, {101, 598, 162, 165}},
        {"200 200-200", {200, 200, 200, 200}, {99, 700, 201, UINT32_MAX}},
        {"100-599", {100, 599, 228, 292}, {99, 600, 0, 65635}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct check_conf conf = {0};
        assert_int_equal(parse("CheckStatus", &conf, rows[i].value), 0);
        for (unsigned k = 0; k < 4; k++) {
            assert_true(mk_status_set_has(&conf.statuses, rows[i].has[k]));
            assert_false(mk_status_set_has(&conf.statuses, rows[i].lacks[k]));
        }
    }
    static const char *const mistakes[] = {"700",     "99",  "600",     "200-", "-200",    "399-200",
                                           "200,204", "2xx", "200-700", "+200", "200--300"};
    for (size_t i = 0; i < COUNT(mistakes); i++)
        expect_mistake("CheckStatus", mistakes[i], "it takes statuses from 100 to 599 and ranges, as 200-399");
}

TEST(headers, mk_test_arena_open, mk_test_arena_close)
{
    struct check_conf conf = {0};
    assert_int_equal(parse("CheckHeader", &conf, "X-A: b c"), 0);
    assert_int_equal(parse("CheckHeader", &conf, "Accept:"), 0);
    assert_str_equal(conf.headers.lines[0], "X-A: b c\r\n");
    assert_str_equal(conf.headers.lines[1], "Accept: \r\n");
    assert_int_equal(conf.headers.n, 2);
    expect_mistake("CheckHeader", "X-A", "NAME: VALUE");
    expect_mistake("CheckHeader", ": b", "NAME: VALUE");
    expect_mistake("CheckHeader", "X A: b", "NAME: VALUE");
    expect_mistake("CheckHeader", "X-A: b\rc", "control characters");
    expect_mistake("CheckHeader", "host: a", "CheckHost sets this header");
    expect_mistake("CheckHeader", "Connection: keep-alive", "Connection: close");
    expect_mistake("CheckHeader", "Content-Length: 1", "no body");
    for (int i = 2; i < CHECK_HEADERS_MAX; i++)
        assert_int_equal(parse("CheckHeader", &conf, "A: b"), 0);
    assert_int_equal(parse("CheckHeader", &conf, "A: b"), -EINVAL);
    assert_non_null(strstr(parse_error, "at most 16 headers"));
}

TEST(methods_and_hosts, mk_test_arena_open, mk_test_arena_close)
{
    struct check_conf conf = {0};
    assert_int_equal(parse("CheckMethod", &conf, "OPTIONS"), 0);
    assert_str_equal(conf.method, "OPTIONS");
    assert_int_equal(parse("CheckHost", &conf, "[::1]:80"), 0);
    assert_str_equal(conf.host, "[::1]:80");
    static const char *const methods[] = {"get", "GET HEAD", "CONNECT", "G(T"};
    for (size_t i = 0; i < COUNT(methods); i++)
        expect_mistake("CheckMethod", methods[i], "a method is a word such as GET");
    static const char *const hosts[] = {"http://a", "a b", "a/b", "u@a"};
    for (size_t i = 0; i < COUNT(hosts); i++)
        expect_mistake("CheckHost", hosts[i], "it is a name or an address");
}

static int parse_all(void *ctx)
{
    struct check_conf conf = {0};
    (void)ctx;
    mk_test_arena_open(NULL);
    int err = parse("Check", &conf, "/health");
    err = err < 0 ? err : parse("CheckHeader", &conf, "A: b");
    mk_test_arena_close(NULL);
    return err;
}

TEST(each_allocation_fails)
{
    assert_true(mk_test_failing_allocs(parse_all, NULL) > 0);
}
