// SPDX-License-Identifier: Apache-2.0
/* What names another server: URLs, addresses, names of groups, and paths for it. */
#include "testing.h"

#include "arena.h"

#include <monkey/kit/target.h>

#include <errno.h>

TEST(urls, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text, *authority, *path;
        int port;
        bool is_tls;
    } rows[] = {
        {"http://app.example", "app.example", NULL, 80, false},
        {"HTTP://127.0.0.1:8080/v/", "127.0.0.1:8080", "/v/", 8080, false},
        {"https://[::1]/", "[::1]", "/", 443, true},
        {"http://app?x", "app", "?x", 80, false},
        {"unix:/run/app.sock", "localhost", NULL, 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[256];
        struct mk_buf error;
        struct mk_target t = {.path = MK_STR_NONE};
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        assert_int_equal(mk_target_parse_url(&t, mk_str_c(rows[i].text), "backend", &arena, &error), 0);
        assert_str_equal(t.authority, rows[i].authority);
        assert_int_equal(t.path.p != NULL, rows[i].path != NULL);
        if (rows[i].path)
            assert_str_equal(t.path, rows[i].path);
        assert_int_equal(t.dial->port, rows[i].port);
        assert_int_equal(t.is_tls, rows[i].is_tls);
    }
}

TEST(addresses, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text;
        int err;
    } rows[] = {
        {"127.0.0.1:9000", 0},    {"app.example:9000", 0}, {"[::1]:9000", 0},  {"unix:/run/php.sock", 0}, {"php", 0},
        {"app.example", -EINVAL}, {"127.0.0.1", -EINVAL},  {"unix:", -EINVAL}, {"http://a:1", -EINVAL},   {"", -EINVAL},
        {"php:0x", -EINVAL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[256];
        struct mk_buf error;
        struct mk_target t = {.path = MK_STR_NONE};
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        assert_int_equal(mk_target_parse_address(&t, mk_str_c(rows[i].text), "backend", &arena, &error), rows[i].err);
        assert_int_equal(error.len > 0, rows[i].err < 0);
    }
}

TEST(mistakes_in_urls, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text;
        int result;
    } rows[] = {
        {"http://", -EINVAL}, {"http://user@app", -EINVAL}, {"https:///x", -EINVAL}, {"http://app:0x", -EINVAL},
        {"app", MK_DECLINED}, {"ftp://app", MK_DECLINED},   {"", MK_DECLINED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[256];
        struct mk_buf error;
        struct mk_target t = {.path = MK_STR_NONE};
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        assert_int_equal(mk_target_parse_url(&t, mk_str_c(rows[i].text), "backend", &arena, &error), rows[i].result);
    }
}
