// SPDX-License-Identifier: Apache-2.0
/* The directive Spawn: programs, arguments, and sockets that depend on the line alone. */
#include "testing.h"

#include "arena.h"

#include <errno.h>

#include "plugins/fastcgi/fastcgi.h"

static int parse(struct spawn_conf *conf, const char *first, const char *second)
{
    char text[128], storage[256];
    struct mk_buf joined, error;
    const struct mk_str words[] = {mk_str_c(first), second ? mk_str_c(second) : MK_STR_NONE};
    mk_buf_init_fixed(&joined, text, sizeof(text));
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    mk_buf_addf(&joined, "%s%s%s", first, second ? " " : "", second ? second : "");
    const struct mk_conf_value value = {.text = mk_buf_str(&joined), .words = words, .n = second ? 2 : 1};
    *conf = (struct spawn_conf){0};
    int err = spawn_parse(&value, conf, &arena, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    return err;
}

TEST(programs, mk_test_arena_open, mk_test_arena_close)
{
    struct spawn_conf conf;
    assert_int_equal(parse(&conf, "true", "-n"), 0);
    assert_non_null(strstr(conf.program, "/true"));
    assert_int_equal(conf.args.len, sizeof("true\0-n"));
    assert_memory_equal(conf.args.p, "true\0-n", conf.args.len);
    assert_str_equal(conf.text, "true -n");
    assert_int_equal(parse(&conf, "/bin/true", NULL), 0);
    assert_string_equal(conf.program, "/bin/true");
    assert_int_equal(parse(&conf, "nothing-like-it", NULL), -EINVAL);
    assert_int_equal(parse(&conf, "bin/true", NULL), -EINVAL); /* not absolute */
    assert_int_equal(parse(&conf, "", NULL), -EINVAL);
}

TEST(sockets, mk_test_arena_open, mk_test_arena_close)
{
    struct spawn_conf a, b, c;
    assert_int_equal(parse(&a, "true", "-n"), 0);
    assert_int_equal(parse(&b, "true", "-n"), 0);
    assert_int_equal(parse(&c, "true", "-m"), 0);
    assert_true(mk_str_eq(a.target.text, b.target.text));
    assert_false(mk_str_eq(a.target.text, c.target.text));
    assert_int_equal(a.target.dial->port, 0);
    assert_true(mk_str_starts(a.target.dial->host, mk_str_c(a.folder)));
}
