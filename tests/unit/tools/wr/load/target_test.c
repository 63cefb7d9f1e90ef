// SPDX-License-Identifier: Apache-2.0
/*
 * URLs of servers.
 */
#include "testing.h"

#include "tools/wr/load/target.h"

#include <errno.h>

TEST(urls)
{
    static const struct {
        const char *url, *host, *port, *authority, *path;
        bool tls;
    } cases[] = {
        {"http://a", "a", "80", "a", "/", false},
        {"http://a:8080/x?y", "a", "8080", "a:8080", "/x?y", false},
        {"https://a.b/", "a.b", "443", "a.b", "/", true},
        {"https://a:80", "a", "80", "a:80", "/", true},
        {"http://[::1]:81/x", "::1", "81", "[::1]:81", "/x", false},
        {"http://[::1]", "::1", "80", "[::1]", "/", false},
        {"ws://a/x", "a", "80", "a", "/x", false},
        {"wss://a:80/", "a", "80", "a:80", "/", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct target t;
        struct mk_str path;
        const char *error;
        assert_int_equal(target_parse(&t, cases[i].url, &path, &error), 0);
        assert_string_equal(t.host, cases[i].host);
        assert_string_equal(t.port, cases[i].port);
        assert_string_equal(t.authority, cases[i].authority);
        assert_str_equal(path, cases[i].path);
        assert_int_equal(t.tls, cases[i].tls);
        assert_int_equal(t.websocket, cases[i].url[0] == 'w');
        assert_true(target_equal(&t, &t));
    }
}

TEST(wrong_urls)
{
    static const char *const cases[] = {"",
                                        "a:80",
                                        "ftp://a/",
                                        "http://",
                                        "http:///x",
                                        "http://a:",
                                        "http://a:0",
                                        "http://a:65536",
                                        "http://a:b/",
                                        "http://[::1/",
                                        "http://::1/",
                                        "http://[::1]x/",
                                        "http://a/ b",
                                        "http://a/#b"};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct target t;
        struct mk_str path;
        const char *error;
        assert_int_equal(target_parse(&t, cases[i], &path, &error), -EINVAL);
        assert_non_null(error);
    }
}

TEST(resolve)
{
    struct target t;
    struct mk_str path;
    const char *error;
    assert_int_equal(target_parse(&t, "http://[::1]:81", &path, &error), 0);
    assert_int_equal(target_resolve(&t, &error), 0);
    assert_int_equal(t.addresses_n, 1);
    assert_int_equal(mk__addr_port(&t.addresses[0]), 81);
    assert_int_equal(t.addresses[0].sa.sa_family, AF_INET6);
}
