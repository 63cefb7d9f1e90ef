// SPDX-License-Identifier: Apache-2.0
/* Cookies: the header of requests, and what may be set. */
#include "testing.h"

#include <monkey/kit/cookie.h>

#include <errno.h>

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
        size_t len = strlen(found[i].header);
        char *header = mk_test_guarded(found[i].header, len);
        struct mk_str value = mk_cookie_find(mk_str(header, len), mk_str_c(found[i].name));
        if (!value.p != !found[i].value)
            fail_msg("\"%s\" in \"%s\"", found[i].name, found[i].header);
        if (value.p)
            assert_str_equal(value, found[i].value);
        mk_test_unguard(header, len);
    }
}

TEST(absent_header)
{
    assert_null(mk_cookie_find(MK_STR_NONE, MK_STR("a")).p);
    assert_null(mk_cookie_find(MK_STR_NONE, MK_STR("")).p);
}

TEST(next)
{
    struct mk_str rest = MK_STR("a=1; b; =x; c=3;"), name, value;
    assert_true(mk_cookie_next(&rest, &name, &value));
    assert_str_equal(name, "a");
    assert_true(mk_cookie_next(&rest, &name, &value));
    assert_str_equal(name, "c");
    assert_str_equal(value, "3");
    assert_false(mk_cookie_next(&rest, &name, &value));
    assert_int_equal(rest.len, 0);
}

/* ── writing ── */

#define LONG_16 "aaaaaaaaaaaaaaaa"
#define LONG_256 \
    LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 \
        LONG_16 LONG_16
#define LONG_1024 LONG_256 LONG_256 LONG_256 LONG_256

/* As MK_STR(), in an initializer of a static object. */
#define S(literal) \
    { \
        literal, sizeof(literal) - 1 \
    }

static const struct {
    struct mk_cookie cookie;
    const char *text; /* NULL: refused */
} written[] = {
    {{.name = S("a"), .value = S("1")}, "a=1; Path=/"},
    {{.name = S("a")}, "a=; Path=/"},
    {{.name = S("a"), .value = S("\"x\"")}, "a=\"x\"; Path=/"},
    {{.name = S("a"), .value = S("\"")}, NULL},
    {{.name = S("a"), .value = S("x\"")}, NULL},
    {{.name = S("a"), .value = S("x y")}, NULL},
    {{.name = S("a"), .value = S("x;y")}, NULL},
    {{.name = S("a"), .value = S("x,y")}, NULL},
    {{.name = S("a"), .value = S("x\\")}, NULL},
    {{.name = S("a"), .value = S("x\r\nX: y")}, NULL},
    {{.name = S("a"), .value = S("\xc3\xbc")}, NULL},
    {{.name = S("a"), .value = S("x=y")}, "a=x=y; Path=/"},
    {{.value = S("x")}, NULL},
    {{.name = S("a\0b")}, NULL},
    {{.name = S("a"), .value = S("x\0")}, NULL},
    {{.name = S("a"), .path = S("/\0")}, NULL},
    {{.name = S("a"), .domain = S("a\0")}, NULL},
    {{.name = S("")}, NULL},
    {{.name = S("a b")}, NULL},
    {{.name = S("a=b")}, NULL},
    {{.name = S("a;")}, NULL},
    {{.name = S("a\n")}, NULL},
    {{.name = S("\xc3\xbc")}, NULL},
    {{.name = S("a"), .path = S("/")}, "a=; Path=/"},
    {{.name = S("a"), .path = S("x")}, NULL},
    {{.name = S("a"), .path = S("")}, NULL},
    {{.name = S("a"), .path = S("/x; Secure")}, NULL},
    {{.name = S("a"), .path = S("/\r")}, NULL},
    {{.name = S("a"), .domain = S("example.org")}, "a=; Path=/; Domain=example.org"},
    {{.name = S("a"), .domain = S("")}, NULL},
    {{.name = S("a"), .domain = S("a b")}, NULL},
    {{.name = S("a"), .domain = S("x;y")}, NULL},
    {{.name = S("a"), .max_age_s = 3600}, "a=; Max-Age=3600; Path=/"},
    {{.name = S("a"), .max_age_s = -1}, NULL},
    {{.name = S("a"), .expires_s = 784111777}, "a=; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Path=/"},
    {{.name = S("a"), .expires_s = 253402300799}, "a=; Expires=Fri, 31 Dec 9999 23:59:59 GMT; Path=/"},
    {{.name = S("a"), .expires_s = 253402300800}, NULL},
    {{.name = S("a"), .expires_s = -1}, NULL},
    {{.name = S("a"), .secure = true, .http_only = true}, "a=; Path=/; Secure; HttpOnly"},
    {{.name = S("a"), .same_site = MK_SAME_SITE_LAX}, "a=; Path=/; SameSite=Lax"},
    {{.name = S("a"), .same_site = MK_SAME_SITE_STRICT}, "a=; Path=/; SameSite=Strict"},
    {{.name = S("a"), .same_site = MK_SAME_SITE_NONE}, NULL},
    {{.name = S("a"), .same_site = MK_SAME_SITE_NONE, .secure = true}, "a=; Path=/; Secure; SameSite=None"},
    {{.name = S("a"), .same_site = (enum mk_same_site)4, .secure = true}, NULL},
    {{.name = S("a"), .partitioned = true}, NULL},
    {{.name = S("a"), .partitioned = true, .secure = true}, "a=; Path=/; Secure; Partitioned"},
    {{.name = S("__Secure-a")}, NULL},
    {{.name = S("__Secure-a"), .secure = true}, "__Secure-a=; Path=/; Secure"},
    {{.name = S("__secure-a")}, NULL},
    {{.name = S("__Host-a"), .secure = true}, "__Host-a=; Path=/; Secure"},
    {{.name = S("__Host-a"), .secure = true, .path = S("/x")}, NULL},
    {{.name = S("__HOST-a"), .secure = true, .path = S("/x")}, NULL},
    {{.name = S("__Host-a"), .path = S("/")}, NULL},
    {{.name = S("__Host-a"), .secure = true, .path = S("/"), .domain = S("a.b")}, NULL},
    {{.name = S("__Host-a"), .secure = true, .path = S("/")}, "__Host-a=; Path=/; Secure"},
    {{.name = S("a"), .value = S(LONG_1024 LONG_1024 LONG_1024 LONG_1024)}, NULL},
    {{.name = S("a"), .path = S("/" LONG_1024)}, NULL},
    {{.name = S("a"), .domain = S("a" LONG_1024)}, NULL},
};

TEST(write)
{
    for (size_t i = 0; i < COUNT(written); i++) {
        char text[MK_COOKIE_BYTES_MAX];
        struct mk_buf out;
        mk_buf_init_fixed(&out, text, sizeof(text));
        int err = mk_cookie_write(&out, &written[i].cookie);
        if (err != (written[i].text ? 0 : -EINVAL))
            fail_msg("row %zu: %d", i, err);
        assert_str_equal(mk_buf_str(&out), written[i].text ? written[i].text : "");
    }
}

/* The longest cookie that is allowed fits into MK_COOKIE_BYTES_MAX. */
TEST(longest)
{
    static char value[MK_COOKIE_PAIR_BYTES_MAX], path[MK_COOKIE_ATTRIBUTE_BYTES_MAX + 1];
    static char domain[MK_COOKIE_ATTRIBUTE_BYTES_MAX + 1], text[MK_COOKIE_BYTES_MAX];
    struct mk_buf out;
    memset(value, 'v', sizeof(value));
    memset(path, '/', sizeof(path));
    memset(domain, 'd', sizeof(domain));
    struct mk_cookie c = {.name = MK_STR("n"),
                          .value = mk_str(value, sizeof(value) - 1),
                          .path = mk_str(path, sizeof(path) - 1),
                          .domain = mk_str(domain, sizeof(domain) - 1),
                          .max_age_s = INT64_MAX,
                          .expires_s = 253402300799,
                          .same_site = MK_SAME_SITE_STRICT,
                          .secure = true,
                          .http_only = true,
                          .partitioned = true};
    mk_buf_init_fixed(&out, text, sizeof(text));
    assert_int_equal(mk_cookie_write(&out, &c), 0);
    c.value.len++;
    assert_int_equal(mk_cookie_write(&out, &c), -EINVAL);
    c.value.len--;
    c.path.len++;
    assert_int_equal(mk_cookie_write(&out, &c), -EINVAL);
    c.path.len--;
    c.domain.len++;
    assert_int_equal(mk_cookie_write(&out, &c), -EINVAL);
}

TEST(no_room)
{
    char text[16];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    assert_int_equal(mk_cookie_write(&out, &(struct mk_cookie){.name = MK_STR("a"), .secure = true}), -ENOBUFS);
}

TEST(removal)
{
    char text[MK_COOKIE_BYTES_MAX];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    struct mk_cookie c = {.name = MK_STR("__Host-a"), .value = MK_STR("not; a value"), .secure = true, .max_age_s = -5};
    assert_int_equal(mk_cookie_write_removal(&out, &c), 0);
    assert_str_equal(mk_buf_str(&out), "__Host-a=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/; Secure");
    c.secure = false;
    assert_int_equal(mk_cookie_write_removal(&out, &c), -EINVAL);
}
