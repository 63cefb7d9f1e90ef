// SPDX-License-Identifier: Apache-2.0
/* HashBy: its values, and parameters of queries. */
#include "testing.h"

#include "plugins/upstream/conf.h"

#include <errno.h>

static int parse(struct hash_by *by, const char *first, const char *second)
{
    static struct mk_arena arena;
    char storage[256];
    struct mk_buf error;
    struct mk_str words[] = {mk_str_c(first), second ? mk_str_c(second) : MK_STR_NONE};
    struct mk_conf_value value = {.text = words[0], .words = words, .n = second ? 2 : 1};
    mk_arena_init(&arena, NULL, 4096, NULL, 0);
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    int err = hash_by_parse(&value, by, &arena, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    if (err == 0 && second)
        assert_str_equal(by->name, second);
    mk_arena_release(&arena);
    return err;
}

TEST(values)
{
    struct hash_by by = {0};
    assert_int_equal(parse(&by, "Path", NULL), 0);
    assert_int_equal(by.kind, HASH_BY_PATH);
    assert_int_equal(parse(&by, "header", "X-Key"), 0);
    assert_int_equal(by.kind, HASH_BY_HEADER);
    assert_int_equal(parse(&by, "Cookie", NULL), -EINVAL);
    assert_int_equal(parse(&by, "Url", "x"), -EINVAL);
    assert_int_equal(parse(&by, "Weather", NULL), -EINVAL);
}

TEST(parameters)
{
    static const struct {
        const char *query, *name, *value; /* NULL: none */
    } rows[] = {
        {"a=1", "a", "1"},     {"a=1&b=2", "b", "2"}, {"ab=1&b=2", "b", "2"},  {"a=&b=2", "a", ""},
        {"a", "a", NULL},      {"", "a", NULL},       {"b=a=3", "a", NULL},    {"&&a=1", "a", "1"},
        {"a=1&a=2", "a", "1"}, {"A=1", "a", NULL},    {"a=%26b=1", "b", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_str found = hash_by_find_parameter(mk_str_c(rows[i].query), mk_str_c(rows[i].name));
        if (rows[i].value)
            assert_str_equal(found, rows[i].value);
        else
            assert_null(found.p);
    }
}
