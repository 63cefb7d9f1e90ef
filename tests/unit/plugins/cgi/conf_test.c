// SPDX-License-Identifier: Apache-2.0
/* Interpreters of scripts; the sentences of mistakes are tested end to end. */
#include "arena.h"

#include "plugins/cgi/cgi.h"

#include <errno.h>

static const struct mk_conf_key *find_key(const char *name)
{
    const struct mk_conf_key *key = cgi_sections[0].keys;
    while (strcmp(key->name, name) != 0)
        key++;
    return key;
}

static int parse(struct cgi_conf *conf, struct mk_str *words, uint32_t n)
{
    char storage[256];
    struct mk_buf error;
    const struct mk_conf_value value = {.words = words, .n = n};
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    int err = find_key("Interpreter")->parse(&value, &conf->interpreters, &arena, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    return err;
}

TEST(interpreters, mk_test_arena_open, mk_test_arena_close)
{
    struct cgi_conf conf = {0};
    struct mk_str python[] = {MK_STR(".py"), MK_STR("/bin/python"), MK_STR("-I"), MK_STR("-X")};
    struct mk_str shell[] = {MK_STR(".sh"), MK_STR("/bin/sh")};
    assert_int_equal(parse(&conf, python, 4), 0);
    assert_int_equal(parse(&conf, shell, 2), 0);
    assert_int_equal(parse(&conf, shell, 2), -EINVAL);
    const struct cgi_interpreter *found = cgi_conf_find_interpreter(&conf, MK_STR("/srv/a.py"));
    assert_non_null(found);
    assert_true(mk_str_eq(found->args, MK_STR("/bin/python\0-I\0-X\0")));
    assert_string_equal(cgi_conf_find_interpreter(&conf, MK_STR("/srv/a.b.sh"))->path.p, "/bin/sh");
    assert_null(cgi_conf_find_interpreter(&conf, MK_STR("/srv/a.PY")));
    assert_null(cgi_conf_find_interpreter(&conf, MK_STR("/srv/a.py.bak")));
    assert_null(cgi_conf_find_interpreter(&conf, MK_STR(".py")));
}

static int parse_one(void *ctx)
{
    struct cgi_conf conf = {0};
    struct mk_str words[] = {MK_STR(".py"), MK_STR("/bin/python"), MK_STR("-I")};
    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    int err = parse(&conf, words, 3);
    mk_arena_release(&arena);
    return err;
}

TEST(failing_memory)
{
    assert_true(mk_test_failing_allocs(parse_one, NULL) > 0);
}
