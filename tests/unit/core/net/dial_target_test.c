// SPDX-License-Identifier: Apache-2.0
/* Where to dial, as people write it. */
#include "arena.h"

#include <errno.h>

#include <monkey/base/dial.h>

#include "net/addr.h"

#define LABEL "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"

static int parse(const char *text, int default_port, const struct mk_dial_target **ret)
{
    const char *error = NULL;
    char *bytes = mk_test_guarded(text, strlen(text));
    int err = mk_dial_target_parse(&arena, mk_str(bytes, strlen(text)), default_port, ret, &error);
    mk_test_unguard(bytes, strlen(text));
    assert_int_equal(err < 0, error != NULL);
    return err;
}

TEST(valid_targets, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text;
        int default_port;
        const char *host;
        unsigned port;
        int family; /* 0: a name */
    } rows[] = {
        {"127.0.0.1:80", MK_DIAL_PORT_REQUIRED, "127.0.0.1", 80, AF_INET},
        {"127.0.0.1", 9000, "127.0.0.1", 9000, AF_INET},
        {"127.0.0.1:80", 9000, "127.0.0.1", 80, AF_INET},
        {"127.0.0.1", 0, "127.0.0.1", 0, AF_INET},
        {"[::1]:65535", MK_DIAL_PORT_REQUIRED, "::1", 65535, AF_INET6},
        {"[2001:db8::1]", 80, "2001:db8::1", 80, AF_INET6},
        {"example.org:1", MK_DIAL_PORT_REQUIRED, "example.org", 1, 0},
        {"example.org.:80", MK_DIAL_PORT_REQUIRED, "example.org.", 80, 0},
        {"my_app-1", 80, "my_app-1", 80, 0},
        {"1.2.3.4a:80", MK_DIAL_PORT_REQUIRED, "1.2.3.4a", 80, 0},
        {LABEL ".org:80", MK_DIAL_PORT_REQUIRED, LABEL ".org", 80, 0},
        {LABEL "." LABEL "." LABEL "." LABEL, 80, LABEL "." LABEL "." LABEL "." LABEL, 80, -1},
        {"unix:/run/x.sock", MK_DIAL_PORT_REQUIRED, "/run/x.sock", 0, AF_UNIX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct mk_dial_target *t = NULL;
        if (rows[i].family < 0) { /* 255 bytes are two too many */
            assert_int_equal(parse(rows[i].text, rows[i].default_port, &t), -EINVAL);
            assert_int_equal(parse(rows[i].text + 2, rows[i].default_port, &t), 0);
            continue;
        }
        assert_int_equal(parse(rows[i].text, rows[i].default_port, &t), 0);
        assert_str_equal(t->text, rows[i].text);
        assert_str_equal(t->host, rows[i].host);
        assert_int_equal(t->port, rows[i].port);
        assert_int_equal(t->addr ? ((const struct mk__addr *)t->addr)->sa.sa_family : 0, rows[i].family);
        if (t->addr)
            assert_int_equal(mk__addr_port(t->addr), rows[i].port);
    }
}

TEST(bad_ones, mk_test_arena_open, mk_test_arena_close)
{
    static const char *const rows[] = {
        "",
        ":",
        ":80",
        "example.org:",
        "example.org:0",
        "example.org:65536",
        "example.org:8o",
        "example.org:-1",
        "::1",
        "::1:80",
        "[::1",
        "[::1]x:80",
        "[::1]80",
        "[]:80",
        "[127.0.0.1]:80",
        "[example.org]:80",
        "*:80",
        "127.1:80",
        "256.0.0.1:80",
        "80:80",
        ".:80",
        ".org:80",
        "a..b:80",
        "-a:80",
        "a.-b:80",
        "a b:80",
        "a/b:80",
        "b\xc3\xbc.org:80",
        "a\tb:80",
        LABEL "x:80",
        "unix:",
        "unix:run",
        "a:80:80",
    };
    const struct mk_dial_target *t = NULL;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (parse(rows[i], 80, &t) != -EINVAL)
            fail_msg("\"%s\" is accepted", rows[i]);
    assert_int_equal(parse("example.org", MK_DIAL_PORT_REQUIRED, &t), -EINVAL);
    assert_int_equal(parse("[::1]", MK_DIAL_PORT_REQUIRED, &t), -EINVAL);
    assert_null(t);
}

static int parse_one(void *ctx)
{
    const struct mk_dial_target *t;
    const char *error = NULL;
    (void)ctx;
    mk_arena_init(&arena, NULL, 65536, NULL, 0);
    char text[] = "unix:/run/x";
    int err = mk_dial_target_parse(&arena, mk_str_c(text), 80, &t, &error);
    assert_int_equal(err < 0, error != NULL);
    mk_arena_release(&arena);
    return err;
}

TEST(failing_allocations)
{
    assert_true(mk_test_failing_allocs(parse_one, NULL) >= 1);
}
