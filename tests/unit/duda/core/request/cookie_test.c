// SPDX-License-Identifier: Apache-2.0
/* Cookies of services: their defaults, and those of the original API. */
#include "testing.h"

#include <errno.h>

#include "duda/core/request/cookie.h"

static const struct {
    struct duda_cookie cookie;
    const char *text; /* NULL: refused */
} written[] = {
    {{.name = "a", .value = "1"}, "a=1; Path=/svc"},
    {{.name = "a"}, "a=; Path=/svc"},
    {{.name = NULL}, NULL},
    {{.name = "a", .path = "/"}, "a=; Path=/"},
    {{.name = "a", .path = ""}, NULL},
    {{.name = "a", .domain = "example.org"}, "a=; Path=/svc; Domain=example.org"},
    {{.name = "a", .domain = ""}, NULL},
    {{.name = "a", .max_age = 3600}, "a=; Max-Age=3600; Path=/svc"},
    {{.name = "a", .expires = 784111777}, "a=; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Path=/svc"},
    {{.name = "a", .secure = true, .http_only = true}, "a=; Path=/svc; Secure; HttpOnly"},
    {{.name = "a", .same_site = DUDA_SAME_SITE_LAX}, "a=; Path=/svc; SameSite=Lax"},
    {{.name = "a", .same_site = DUDA_SAME_SITE_STRICT}, "a=; Path=/svc; SameSite=Strict"},
    {{.name = "a", .same_site = DUDA_SAME_SITE_NONE, .secure = true}, "a=; Path=/svc; Secure; SameSite=None"},
    {{.name = "__Host-a", .secure = true}, NULL},
    {{.name = "__Host-a", .secure = true, .path = "/"}, "__Host-a=; Path=/; Secure"},
};

TEST(from)
{
    for (size_t i = 0; i < COUNT(written); i++) {
        char text[MK_COOKIE_BYTES_MAX];
        struct mk_buf out;
        mk_buf_init_fixed(&out, text, sizeof(text));
        struct mk_cookie c = cookie_from(&written[i].cookie, "/svc");
        int err = mk_cookie_write(&out, &c);
        if (err != (written[i].text ? 0 : -EINVAL))
            fail_msg("row %zu: %d", i, err);
        assert_str_equal(mk_buf_str(&out), written[i].text ? written[i].text : "");
    }
}

static const struct {
    const char *name, *value;
    int64_t expires;
    const char *text;
} old[] = {
    {"a", "1", 0, "a=1; path=/svc"},
    {"a", "1", 337606980, "a=1; path=/svc; expires=Fri, 12 Sep 1980 11:43:00 GMT"},
    {"a", "1", -5, "a=1; path=/svc"},
    {"a", "x y, \"z\"", 0, "a=x y, \"z\"; path=/svc"},
    {"a", "x; y", 0, NULL},
    {"a", "x\r\ny", 0, NULL},
    {"", "x", 0, NULL},
    {"a=b", "x", 0, NULL},
};

TEST(old)
{
    for (size_t i = 0; i < COUNT(old); i++) {
        char text[256];
        struct mk_buf out;
        mk_buf_init_fixed(&out, text, sizeof(text));
        int err = cookie_write_old(&out, mk_str_c(old[i].name), mk_str_c(old[i].value), "/svc", old[i].expires);
        assert_int_equal(err, old[i].text ? 0 : -EINVAL);
        assert_str_equal(mk_buf_str(&out), old[i].text ? old[i].text : "");
    }
}
