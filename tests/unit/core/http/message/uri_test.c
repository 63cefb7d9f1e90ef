// SPDX-License-Identifier: Apache-2.0
/* Targets, authorities and paths; each case flush against a guard page. */
#include "testing.h"

#include <errno.h>

#include "http/message/uri.h"

struct target_case {
    const char *method, *target;
    int result, form;
    const char *scheme, *authority, *path, *query; /* query NULL: none */
};

enum { ORIGIN = MK__URI_ORIGIN, ABSOLUTE, AUTHORITY, ASTERISK };

static const struct target_case target_cases[] = {
    {"GET", "/", 0, ORIGIN, "", "", "/", NULL},
    {"GET", "/a/b.txt?x=1&y=?/2", 0, ORIGIN, "", "", "/a/b.txt", "x=1&y=?/2"},
    {"GET", "/a?", 0, ORIGIN, "", "", "/a", ""},
    {"GET", "//host/a", 0, ORIGIN, "", "", "//host/a", NULL},
    {"GET", "/a:b@c%zz|^{}\"", 0, ORIGIN, "", "", "/a:b@c%zz|^{}\"", NULL},
    {"GET", "/a\\b", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"OPTIONS", "/", 0, ORIGIN, "", "", "/", NULL},
    {"GET", "http://Example.org/a?b", 0, ABSOLUTE, "http", "Example.org", "/a", "b"},
    {"GET", "HTTPS://[::1]:8443/", 0, ABSOLUTE, "HTTPS", "[::1]:8443", "/", NULL},
    {"GET", "http://h", 0, ABSOLUTE, "http", "h", "/", NULL},
    {"GET", "http://h:?q", 0, ABSOLUTE, "http", "h:", "/", "q"},
    {"GET", "http://h?a/b", 0, ABSOLUTE, "http", "h", "/", "a/b"},
    {"OPTIONS", "http://h:80", 0, ASTERISK, "http", "h:80", "", NULL},
    {"OPTIONS", "http://h?", 0, ABSOLUTE, "http", "h", "/", ""},
    {"OPTIONS", "http://h/", 0, ABSOLUTE, "http", "h", "/", NULL},
    {"OPTIONS", "*", 0, ASTERISK, "", "", "", NULL},
    {"CONNECT", "h:443", 0, AUTHORITY, "", "h:443", "", NULL},
    {"CONNECT", "[::1]:443", 0, AUTHORITY, "", "[::1]:443", "", NULL},
    {"GET", "", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "*", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"options", "*", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"OPTIONS", "**", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "a/b", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "h:443", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "/a#b", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "/a b", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "/a\tb", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "/a\x7f", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "/\xc3\xbc", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "http:///a", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "http://", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "http:/h/a", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "http", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "http://user@h/", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "http://user:pw@h/", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "http://h:99999/", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "http://[::1/", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "ftp://h/", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"GET", "file:///etc/passwd", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"CONNECT", "h", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"CONNECT", "h:", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"CONNECT", ":443", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"CONNECT", "", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"CONNECT", "/a", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"CONNECT", "http://h:80/", -EINVAL, 0, NULL, NULL, NULL, NULL},
    {"CONNECT", "h:443/a", -EINVAL, 0, NULL, NULL, NULL, NULL},
};

static void check_target(const struct target_case *c)
{
    size_t len = strlen(c->target);
    char *bytes = mk_test_guarded(c->target, len);
    struct mk__uri_parts t;
    int result = mk__uri_split_target(mk_str_c(c->method), mk_str(bytes, len), &t);
    if (result != c->result)
        fail_msg("%s %s: %d", c->method, c->target, result);
    if (!result) {
        assert_int_equal(t.form, c->form);
        assert_str_equal(t.scheme, c->scheme);
        assert_str_equal(t.authority, c->authority);
        assert_str_equal(t.path, c->path);
        assert_int_equal(t.has_query, c->query != NULL);
        assert_str_equal(t.query, c->query ? c->query : "");
    }
    mk_test_unguard(bytes, len);
}

TEST(splits_targets)
{
    for (size_t i = 0; i < COUNT(target_cases); i++)
        check_target(&target_cases[i]);
}

TEST(every_byte_in_a_target)
{
    for (int c = 0; c < 256; c++) {
        char target[3] = {'/', (char)c, 'x'};
        struct mk__uri_parts t;
        bool legal = c > ' ' && c < 0x7f && c != '#' && c != '\\';
        assert_int_equal(mk__uri_split_target(MK_STR("GET"), mk_str(target, 3), &t), legal ? 0 : -EINVAL);
    }
}

/* Of each length up to three times what is read at once, flush against a guard page. */
TEST(every_byte_at_every_place_of_a_target)
{
    for (size_t len = 2; len <= 24; len++) {
        char *target = mk_test_guarded("/abcdefghijklmnopqrstuvwxyz", len);
        for (size_t at = 1; at < len; at++) {
            char before = target[at];
            for (int c = 0; c < 256; c++) {
                struct mk__uri_parts t = {0};
                bool legal = c > ' ' && c < 0x7f && c != '#' && c != '\\';
                target[at] = (char)c;
                assert_int_equal(mk__uri_split_target(MK_STR("GET"), mk_str(target, len), &t), legal ? 0 : -EINVAL);
                assert_int_equal(t.has_query, legal && c == '?');
                assert_int_equal(t.path.len, !legal ? 0 : c == '?' ? at : len);
            }
            target[at] = before;
        }
        mk_test_unguard(target, len);
    }
}

enum { EMPTY = MK__HOST_EMPTY, NAME, V4, V6 };

static const struct {
    const char *host;
    int kind; /* -EINVAL: not valid */
    const char *name;
    int port; /* -1: none */
} authority_cases[] = {
    {"", EMPTY, "", -1},
    {"localhost", NAME, "localhost", -1},
    {"Two.Example:8080", NAME, "Two.Example", 8080},
    {"h:", NAME, "h", -1},
    {"h:0", NAME, "h", 0},
    {"h:00080", NAME, "h", 80},
    {"h:65535", NAME, "h", 65535},
    {"a_b-c.~!$&'()*+,;=", NAME, "a_b-c.~!$&'()*+,;=", -1},
    {"%c3%BC.example", NAME, "%c3%BC.example", -1},
    {"127.0.0.1", V4, "127.0.0.1", -1},
    {"127.0.0.1:80", V4, "127.0.0.1", 80},
    {"256.0.0.1", NAME, "256.0.0.1", -1},
    {"1.2.3", NAME, "1.2.3", -1},
    {"[::1]", V6, "[::1]", -1},
    {"[::]:2001", V6, "[::]", 2001},
    {"[2001:DB8::1:0]:", V6, "[2001:DB8::1:0]", -1},
    {"[::ffff:192.0.2.1]", V6, "[::ffff:192.0.2.1]", -1},
    {"[1111:2222:3333:4444:5555:6666:255.255.255.255]", V6, "[1111:2222:3333:4444:5555:6666:255.255.255.255]", -1},
    {":80", -EINVAL, NULL, 0},
    {"h:65536", -EINVAL, NULL, 0},
    {"h:18446744073709551696", -EINVAL, NULL, 0},
    {"h:-1", -EINVAL, NULL, 0},
    {"h:80x", -EINVAL, NULL, 0},
    {"h:80:80", -EINVAL, NULL, 0},
    {"::1", -EINVAL, NULL, 0},
    {"[::1", -EINVAL, NULL, 0},
    {"[", -EINVAL, NULL, 0},
    {"[]", -EINVAL, NULL, 0},
    {"[::1]80", -EINVAL, NULL, 0},
    {"[::1]x:80", -EINVAL, NULL, 0},
    {"[:::1]", -EINVAL, NULL, 0},
    {"[1:2:3:4:5:6:7:8:9]", -EINVAL, NULL, 0},
    {"[12345::]", -EINVAL, NULL, 0},
    {"[127.0.0.1]", -EINVAL, NULL, 0},
    {"[fe80::1%25eth0]", -EINVAL, NULL, 0},
    {"[v1.fe80::a]", -EINVAL, NULL, 0},
    {"[::1 ]", -EINVAL, NULL, 0},
    {"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]", -EINVAL, NULL, 0},
    {"user@h", -EINVAL, NULL, 0},
    {"h/a", -EINVAL, NULL, 0},
    {"h?a", -EINVAL, NULL, 0},
    {"h a", -EINVAL, NULL, 0},
    {"h\\a", -EINVAL, NULL, 0},
    {"h,i:80, j", -EINVAL, NULL, 0},
    {"h%", -EINVAL, NULL, 0},
    {"h%4", -EINVAL, NULL, 0},
    {"h%4g", -EINVAL, NULL, 0},
    {"h%%41", -EINVAL, NULL, 0},
    {"\xc3\xbc.example", -EINVAL, NULL, 0},
};

TEST(splits_authorities)
{
    for (size_t i = 0; i < COUNT(authority_cases); i++) {
        size_t len = strlen(authority_cases[i].host);
        char *bytes = mk_test_guarded(authority_cases[i].host, len);
        struct mk__uri_host_port a;
        int port = authority_cases[i].port, kind = authority_cases[i].kind;
        int result = mk__uri_split_authority(mk_str(bytes, len), &a);
        if (result != (kind < 0 ? kind : 0))
            fail_msg("%s: %d", authority_cases[i].host, result);
        if (!result) {
            assert_int_equal(a.kind, kind);
            assert_str_equal(a.name, authority_cases[i].name);
            assert_int_equal(a.has_port, port >= 0);
            assert_int_equal(a.port, port < 0 ? 0 : port);
        }
        mk_test_unguard(bytes, len);
    }
}

TEST(nul_in_an_authority)
{
    struct mk__uri_host_port a;
    assert_int_equal(mk__uri_split_authority(mk_str("h\0", 2), &a), -EINVAL);
    assert_int_equal(mk__uri_split_authority(mk_str("[::1\0]", 6), &a), -EINVAL);
    assert_int_equal(mk__uri_split_authority(mk_str("127.0.0.1\0", 10), &a), -EINVAL);
}

struct path_case {
    const char *raw, *path; /* path NULL: the result is an error */
    ssize_t result;
};

static const struct path_case path_cases[] = {
    {"/", "/", 0},
    {"/a/b.txt", "/a/b.txt", 0},
    {"/a/", "/a/", 0},
    {"//", "/", 0},
    {"///a//b///", "/a/b/", 0},
    {"/.", "/", 0},
    {"/./", "/", 0},
    {"/..", "/", 0},
    {"/../", "/", 0},
    {"/../../etc/passwd", "/etc/passwd", 0},
    {"/a/..", "/", 0},
    {"/a/../b", "/b", 0},
    {"/a/b/..", "/a/", 0},
    {"/a/b/../..", "/", 0},
    {"/a/b/../../../c", "/c", 0},
    {"/a//../b", "/b", 0},
    {"/a/./b/.", "/a/b/", 0},
    {"/%2e%2e/%2E./.%2e/etc", "/etc", 0},
    {"/a/%2e", "/a/", 0},
    {"/a/%2E%2e", "/", 0},
    {"/a..b.txt", "/a..b.txt", 0},
    {"/...", "/...", 0},
    {"/..a/.b/..", "/..a/", 0},
    {"/a./b../", "/a./b../", 0},
    {"/%61%62%7e", "/ab~", 0},
    {"/a%20b", "/a b", 0},
    {"/a b", "/a b", 0},
    {"/a+b", "/a+b", 0},
    {"/%C3%bc\xc3\xbc", "/\xc3\xbc\xc3\xbc", 0},
    {"/%01%7f%ff", "/\x01\x7f\xff", 0},
    {"/%252e%252e/%2561", "/%2e%2e/%61", 0},
    {"/a\\..\\b%5c", "/a\\..\\b\\", 0},
    {"/a?b#c", "/a?b#c", 0},
    {"/%3f%23%25", "/?#%", 0},
    {"", NULL, -EINVAL},
    {"a", NULL, -EINVAL},
    {"*", NULL, -EINVAL},
    {"%2fa", NULL, -EINVAL},
    {"/%", NULL, -EINVAL},
    {"/%4", NULL, -EINVAL},
    {"/%4g", NULL, -EINVAL},
    {"/%g4", NULL, -EINVAL},
    {"/%%41", NULL, -EINVAL},
    {"/% 1", NULL, -EINVAL},
    {"/%u0041", NULL, -EINVAL},
    {"/a%00.txt", NULL, -EINVAL},
    {"/a%2fb", NULL, -ENOENT},
    {"/%2F", NULL, -ENOENT},
    {"/..%2f..%2fetc", NULL, -ENOENT},
};

static void check_path(const struct path_case *c)
{
    size_t len = strlen(c->raw), want = c->path ? strlen(c->path) : 0;
    char *bytes = mk_test_guarded(c->raw, len), *out = mk_test_guarded(NULL, 0) - 64;
    ssize_t result = mk__uri_decode_path(mk_str(bytes, len), out, 64);
    if (result != (c->path ? (ssize_t)want : c->result) || (c->path && strcmp(out, c->path) != 0))
        fail_msg("%s: %zd %s", c->raw, result, result < 0 ? "" : out);
    mk_test_unguard(out + 64, 0);
    mk_test_unguard(bytes, len);
}

TEST(normalizes_paths)
{
    for (size_t i = 0; i < COUNT(path_cases); i++)
        check_path(&path_cases[i]);
    char out[8];
    assert_int_equal(mk__uri_decode_path(mk_str("/a\0b", 4), out, sizeof(out)), -EINVAL);
}

/* Decodes "/a..." and "/%61...": the second one is never taken for a path in its normal form. */
static void check_with_escape(struct mk_str path)
{
    char escaped[64] = "/%61", out[64] = "", expected[64] = "";
    char *bytes = mk_test_guarded(path.p, path.len);
    memcpy(escaped + 4, path.p + 2, path.len - 2);
    ssize_t r = mk__uri_decode_path(mk_str(bytes, path.len), out, sizeof(out));
    assert_int_equal(r, mk__uri_decode_path(mk_str(escaped, path.len + 2), expected, sizeof(expected)));
    if (r >= 0)
        assert_memory_equal(out, expected, (size_t)r + 1);
    mk_test_unguard(bytes, path.len);
}

TEST(every_byte_at_every_place_of_a_path)
{
    static const char *const pieces[] = {"/", "//", "/.", "/./", "/..", "/../", "/...", ".", "..", "%41", "%", "%2f"};
    char path[32];
    for (size_t len = 3; len <= 20; len++) {
        for (size_t at = 2; at < len; at++) {
            for (int c = 0; c < 256; c++) {
                memcpy(path, "/abcdefghijklmnopqrstuvwxyz", len);
                path[at] = (char)c;
                check_with_escape(mk_str(path, len));
            }
            for (size_t i = 0; i < COUNT(pieces); i++) {
                memcpy(path, "/abcdefghijklmnopqrstuvwxyz", len);
                memcpy(path + at, pieces[i], strlen(pieces[i]));
                check_with_escape(mk_str(path, at + strlen(pieces[i]) > len ? at + strlen(pieces[i]) : len));
            }
        }
    }
}

/* A result of n bytes needs n + 1, neither less nor more. */
TEST(path_sizes)
{
    for (size_t size = 0; size < 8; size++) {
        char *out = mk_test_guarded("xxxxxxxx", size);
        assert_int_equal(mk__uri_decode_path(MK_STR("/a%41//b/"), out, size), size < 7 ? -ENAMETOOLONG : 6);
        if (size >= 7)
            assert_string_equal(out, "/aA/b/");
        assert_int_equal(mk__uri_decode_path(MK_STR("/.."), out, size), size < 4 ? -ENAMETOOLONG : 1);
        assert_int_equal(mk__uri_decode_path(MK_STR("/"), out, size), size < 2 ? -ENAMETOOLONG : 1);
        assert_int_equal(mk__uri_decode_path(MK_STR("/abcd"), out, size), size < 6 ? -ENAMETOOLONG : 5);
        mk_test_unguard(out, size);
    }
}

/* A normalized path does not change when it is normalized again. */
TEST(paths_are_stable)
{
    for (size_t i = 0; i < COUNT(path_cases); i++) {
        const char *path = path_cases[i].path;
        char out[64];
        if (path && !strchr(path, '%')) {
            assert_int_equal(mk__uri_decode_path(mk_str_c(path), out, sizeof(out)), strlen(path));
            assert_string_equal(out, path);
        }
    }
}
