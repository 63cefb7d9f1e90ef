// SPDX-License-Identifier: Apache-2.0
/* Listen lines of other servers: what is recognized, and what is not. */
#include "testing.h"

#include "server/listen/foreign_listen.h"

TEST(addresses)
{
    static const struct {
        const char *address, *sentence; /* NULL: no known mistake */
    } rows[] = {
        {"http://localhost:8080", "write \"Listen localhost:8080\""},
        {"HTTP://localhost/a:b", "write \"Listen localhost:80\""},
        {"https://[::1]/", "write \"Listen [::1]:443 tls\""},
        {"https://[::1]:8443", "write \"Listen [::1]:8443 tls\""},
        {"http://", NULL},
        {":80", "write \"Listen 80\""},
        {"::1", NULL},
        {":", NULL},
        {"80,", "without a comma"},
        {"80", NULL},
        {"127.0.0.1:80", NULL},
        {"unix:/run/s", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[200];
        struct mk_buf error;
        mk_buf_init_fixed(&error, text, sizeof(text));
        assert_int_equal(mk__foreign_listen_find(mk_str_c(rows[i].address), &error), rows[i].sentence != NULL);
        if (rows[i].sentence && !strstr(mk_buf_cstr(&error), rows[i].sentence))
            fail_msg("%s: %s", rows[i].address, mk_buf_cstr(&error));
    }
}

TEST(options)
{
    static const char *const known[] = {"default_server", "http2", "HTTP2;", "reuseport", "//"};
    static const char *const others[] = {"tls", "ssl", "proxy", "default_", "", "/"};
    char text[200];
    struct mk_buf error;
    mk_buf_init_fixed(&error, text, sizeof(text));
    for (size_t i = 0; i < COUNT(known); i++)
        assert_true(mk__foreign_listen_find_option(mk_str_c(known[i]), &error));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(mk__foreign_listen_find_option(mk_str_c(others[i]), &error));
}
