// SPDX-License-Identifier: Apache-2.0
/* Cookies: the header of requests, and what may be set. */
#include "testing.h"

#include <errno.h>

#include "duda/core/cookie.h"

/* ── reading ── */

static const struct {
    const char *header, *name, *value; /* value NULL: none */
} found[] = {
    {"a=1", "a", "1"},           {"a=1; b=2", "b", "2"},     {"a=1;b=2", "b", "2"},   {"a=1;   b = 2 ;c=3", "b", "2"},
    {"a=1; a=2", "a", "1"},      {"xk1=7; k1=8", "k1", "8"}, /* not a part of a name */
    {"a=k1=5; k1=8", "k1", "8"}, {"a=b=c", "a", "b=c"},      {"a=", "a", ""},         {"a=\"q r\"", "a", "\"q r\""},
    {"A=1", "a", NULL},          {"a", "a", NULL},           {"=1", "", NULL},        {"", "a", NULL},
    {";;; ; a=1", "a", "1"},     {"a; b=1", "b", "1"},       {"a=\xff", "a", "\xff"},
};

TEST(find)
{
    for (size_t i = 0; i < COUNT(found); i++) {
        struct mk_str value;
        size_t len = strlen(found[i].header);
        char *header = mk_test_guarded(found[i].header, len);
        bool is_there = cookie_find(mk_str(header, len), mk_str_c(found[i].name), &value);
        if (is_there != (found[i].value != NULL))
            fail_msg("\"%s\" in \"%s\"", found[i].name, found[i].header);
        if (is_there)
            assert_str_equal(value, found[i].value);
        mk_test_unguard(header, len);
    }
}

TEST(cut)
{
    struct mk_str rest = MK_STR("a=1; b; =x; c=3;"), name, value;
    assert_true(cookie_cut(&rest, &name, &value));
    assert_str_equal(name, "a");
    assert_true(cookie_cut(&rest, &name, &value));
    assert_str_equal(name, "c");
    assert_str_equal(value, "3");
    assert_false(cookie_cut(&rest, &name, &value));
    assert_int_equal(rest.len, 0);
}

/* ── writing ── */

#define LONG_16 "aaaaaaaaaaaaaaaa"
#define LONG_256 \
    LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 \
        LONG_16 LONG_16
#define LONG_1024 LONG_256 LONG_256 LONG_256 LONG_256

static const struct {
    struct duda_cookie cookie;
    const char *text; /* NULL: refused */
} written[] = {
    {{.name = "a", .value = "1"}, "a=1; Path=/svc"},
    {{.name = "a"}, "a=; Path=/svc"},
    {{.name = "a", .value = "\"x\""}, "a=\"x\"; Path=/svc"},
    {{.name = "a", .value = "\""}, NULL},
    {{.name = "a", .value = "x\""}, NULL},
    {{.name = "a", .value = "x y"}, NULL},
    {{.name = "a", .value = "x;y"}, NULL},
    {{.name = "a", .value = "x,y"}, NULL},
    {{.name = "a", .value = "x\\"}, NULL},
    {{.name = "a", .value = "x\r\nX: y"}, NULL},
    {{.name = "a", .value = "\xc3\xbc"}, NULL},
    {{.name = "a", .value = "x=y"}, "a=x=y; Path=/svc"},
    {{.name = NULL}, NULL},
    {{.name = ""}, NULL},
    {{.name = "a b"}, NULL},
    {{.name = "a=b"}, NULL},
    {{.name = "a;"}, NULL},
    {{.name = "a\n"}, NULL},
    {{.name = "\xc3\xbc"}, NULL},
    {{.name = "a", .path = "/"}, "a=; Path=/"},
    {{.name = "a", .path = "x"}, NULL},
    {{.name = "a", .path = ""}, NULL},
    {{.name = "a", .path = "/x; Secure"}, NULL},
    {{.name = "a", .path = "/\r"}, NULL},
    {{.name = "a", .domain = "example.org"}, "a=; Path=/svc; Domain=example.org"},
    {{.name = "a", .domain = ""}, NULL},
    {{.name = "a", .domain = "a b"}, NULL},
    {{.name = "a", .domain = "x;y"}, NULL},
    {{.name = "a", .max_age = 3600}, "a=; Max-Age=3600; Path=/svc"},
    {{.name = "a", .max_age = -1}, NULL},
    {{.name = "a", .expires = 784111777}, "a=; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Path=/svc"},
    {{.name = "a", .expires = 253402300799}, "a=; Expires=Fri, 31 Dec 9999 23:59:59 GMT; Path=/svc"},
    {{.name = "a", .expires = 253402300800}, NULL},
    {{.name = "a", .expires = -1}, NULL},
    {{.name = "a", .secure = true, .http_only = true}, "a=; Path=/svc; Secure; HttpOnly"},
    {{.name = "a", .same_site = DUDA_SAME_SITE_LAX}, "a=; Path=/svc; SameSite=Lax"},
    {{.name = "a", .same_site = DUDA_SAME_SITE_STRICT}, "a=; Path=/svc; SameSite=Strict"},
    {{.name = "a", .same_site = DUDA_SAME_SITE_NONE}, NULL},
    {{.name = "a", .same_site = DUDA_SAME_SITE_NONE, .secure = true}, "a=; Path=/svc; Secure; SameSite=None"},
    {{.name = "__Secure-a"}, NULL},
    {{.name = "__Secure-a", .secure = true}, "__Secure-a=; Path=/svc; Secure"},
    {{.name = "__secure-a"}, NULL},
    {{.name = "__Host-a", .secure = true}, NULL},
    {{.name = "__Host-a", .path = "/"}, NULL},
    {{.name = "__Host-a", .secure = true, .path = "/", .domain = "a.b"}, NULL},
    {{.name = "__Host-a", .secure = true, .path = "/"}, "__Host-a=; Path=/; Secure"},
    {{.name = "a", .value = LONG_1024 LONG_1024 LONG_1024 LONG_1024}, NULL},
    {{.name = "a", .path = "/" LONG_1024}, NULL},
    {{.name = "a", .domain = "a" LONG_1024}, NULL},
};

TEST(write)
{
    for (size_t i = 0; i < COUNT(written); i++) {
        char text[COOKIE_BYTES_MAX];
        struct mk_buf out;
        mk_buf_init_fixed(&out, text, sizeof(text));
        int err = cookie_write(&out, &written[i].cookie, "/svc");
        if (err != (written[i].text ? 0 : -EINVAL))
            fail_msg("row %zu: %d", i, err);
        assert_str_equal(mk_buf_str(&out), written[i].text ? written[i].text : "");
    }
}

/* The longest cookie that is allowed fits into COOKIE_BYTES_MAX. */
TEST(longest)
{
    char value[COOKIE_PAIR_BYTES_MAX], path[COOKIE_ATTRIBUTE_BYTES_MAX + 1], domain[COOKIE_ATTRIBUTE_BYTES_MAX + 1];
    char text[COOKIE_BYTES_MAX];
    struct mk_buf out;
    memset(value, 'v', sizeof(value));
    memset(path, '/', sizeof(path));
    memset(domain, 'd', sizeof(domain));
    value[sizeof(value) - 1] = path[sizeof(path) - 1] = domain[sizeof(domain) - 1] = '\0';
    struct duda_cookie c = {.name = "n",
                            .value = value,
                            .path = path,
                            .domain = domain,
                            .max_age = INT64_MAX,
                            .expires = 253402300799,
                            .secure = true,
                            .http_only = true,
                            .same_site = DUDA_SAME_SITE_STRICT};
    mk_buf_init_fixed(&out, text, sizeof(text));
    assert_int_equal(cookie_write(&out, &c, "/"), 0);
}

TEST(removal)
{
    char text[COOKIE_BYTES_MAX];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    struct duda_cookie c = {.name = "__Host-a", .value = "ignored", .path = "/", .secure = true, .max_age = 5};
    assert_int_equal(cookie_write_removal(&out, &c, "/svc"), 0);
    assert_str_equal(mk_buf_str(&out), "__Host-a=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/; Secure");
    c.secure = false;
    assert_int_equal(cookie_write_removal(&out, &c, "/svc"), -EINVAL);
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
