// SPDX-License-Identifier: Apache-2.0
/* The directives of `Type Forward`: targets and names of headers that can be used, and those that cannot. */
#include "plugins/auth/forward_conf.h"

#include "arena.h"

#include <errno.h>

/* Parses the words of `text`, which blanks separate. A value that is refused has a sentence. */
static int parse(mk_conf_parse_fn fn, const char *text, void *field)
{
    char storage[512];
    struct mk_buf error;
    struct mk_str words[32], rest = mk_str_c(text);
    struct mk_conf_value value = {.text = rest, .words = words};
    while (rest.len) {
        const char *end = memchr(rest.p, ' ', rest.len);
        size_t n = end ? (size_t)(end - rest.p) : rest.len;
        words[value.n++] = mk_str(rest.p, n);
        rest = mk_str(rest.p + n + (end != NULL), rest.len - n - (end != NULL));
    }
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    int err = fn(&value, field, &arena, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    return err;
}

TEST(targets, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text, *authority, *path;
        bool is_tls;
        uint16_t port;
    } rows[] = {
        {"http://127.0.0.1:9000/verify", "127.0.0.1:9000", "/verify", false, 9000},
        {"HTTP://auth", "auth", "/", false, 80},
        {"https://auth.example.org/a?b=c/d", "auth.example.org", "/a?b=c/d", true, 443},
        {"https://[::1]:8443/", "[::1]:8443", "/", true, 8443},
        {"unix:/run/auth.sock", "localhost", "/", false, 0},
        {"unix:/run/auth.sock /verify?x", "localhost", "/verify?x", false, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_target t = {.path = MK_STR_NONE};
        assert_int_equal(parse(forward_parse_to, rows[i].text, &t), 0);
        assert_str_equal(t.authority, rows[i].authority);
        assert_str_equal(t.path, rows[i].path);
        assert_int_equal(t.is_tls, rows[i].is_tls);
        assert_int_equal(t.dial->port, rows[i].port);
        assert_str_equal(t.text, rows[i].text);
    }
}

TEST(wrong_targets, mk_test_arena_open, mk_test_arena_close)
{
    static const char *const texts[] = {
        "",       "127.0.0.1:80",  "ftp://a/",   "http://",     "http:///a",      "http://a@b/", "http://a:b/",
        "https:", "http://a/ /b",  "http://a?b", "http://a#b",  "http://a/b#c",   "http://a/\"", "http://a/\x7f",
        "unix:",  "unix:/a /b /c", "unix:/a b",  "http://a b/", "https://a:0x/c",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct mk_target t = {.path = MK_STR_NONE};
        if (parse(forward_parse_to, texts[i], &t) != -EINVAL)
            fail_msg("\"%s\" is accepted", texts[i]);
    }
}

TEST(header_names, mk_test_arena_open, mk_test_arena_close)
{
    struct forward_names names = {.n = 0};
    assert_int_equal(parse(forward_parse_names, "Remote-User x_groups", &names), 0);
    assert_int_equal(parse(forward_parse_names, "Authorization", &names), 0); /* a further line */
    assert_int_equal(names.n, 3);
    assert_true(forward_names_have(&names, MK_STR("remote_user")));
    assert_true(forward_names_have(&names, MK_STR("X-GROUPS")));
    assert_false(forward_names_have(&names, MK_STR("x-group")));
    static const char *const wrong[] = {
        "", "a:b", "Host", "content_length", "a TE", "X-Groups", "a A", "Connection", "a b c d e f g h i j k l m n",
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct forward_names copy = names;
        if (parse(forward_parse_names, wrong[i], &copy) != -EINVAL)
            fail_msg("\"%s\" is accepted", wrong[i]);
    }
}

TEST(header_name, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_str name = MK_STR_NONE;
    assert_int_equal(parse(forward_parse_name, "Remote-User", &name), 0);
    assert_str_equal(name, "Remote-User");
    assert_int_equal(parse(forward_parse_name, "", &name), -EINVAL);
    assert_int_equal(parse(forward_parse_name, "a b", &name), -EINVAL);
    assert_int_equal(parse(forward_parse_name, "Host", &name), -EINVAL);
}

TEST(without_memory, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_target t = {.path = MK_STR_NONE};
    struct forward_names names = {.n = 0};
    struct mk_str name;
    arena.bytes_max = 0;
    assert_int_equal(parse(forward_parse_to, "http://a", &t), -ENOMEM);
    assert_int_equal(parse(forward_parse_names, "a", &names), -ENOMEM);
    assert_int_equal(parse(forward_parse_name, "a", &name), -ENOMEM);
}
