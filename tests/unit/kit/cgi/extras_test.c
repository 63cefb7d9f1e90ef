// SPDX-License-Identifier: Apache-2.0
/* The variables that the configuration sets. */
#include "testing.h"

#include "arena.h"

#include <monkey/kit/cgi.h>

#include <errno.h>
#include <stdio.h>

static char error_text[256];

static int parse(struct mk_cgi_extras *all, const char *line)
{
    struct mk_buf error;
    size_t n = strcspn(line, " ");
    struct mk_str words[] = {mk_str(line, n), mk_str_c(line + n)};
    struct mk_conf_value value = {.text = mk_str_c(line), .words = words, .n = n ? 1 + (line[n] != '\0') : 0};
    mk_buf_init_fixed(&error, error_text, sizeof(error_text));
    int err = mk_cgi_parse_extra(&value, all, &arena, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    (void)mk_buf_cstr(&error);
    return err;
}

TEST(names, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *line;
        bool is_good;
    } rows[] = {
        {"A b", true},       {"A", true},      {"APP_ENV production mode", true},
        {"_a1 $user", true}, {"", false},      {"1A b", false},
        {"A-B c", false},    {"A=b c", false}, {"A $nono", false},
        {"A $", false},      {"A a\tb", true}, {"A a\nb", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_cgi_extras all = {0};
        if (parse(&all, rows[i].line) != (rows[i].is_good ? 0 : -EINVAL))
            fail_msg("%s: %s", rows[i].line, error_text);
    }
}

TEST(order, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_cgi_extras all = {0};
    assert_int_equal(parse(&all, "B one"), 0);
    assert_int_equal(parse(&all, "A two"), 0);
    assert_int_equal(parse(&all, "b three"), 0);
    assert_int_equal(parse(&all, "A four"), -EINVAL);
    assert_str_equal(all.first->name, "B");
    assert_str_equal(all.first->value->literal, "one");
    assert_str_equal(all.first->next->name, "A");
    assert_str_equal(all.first->next->next->name, "b");
    assert_null(all.first->next->next->next);
}

static int parse_one(void *ctx)
{
    struct mk_cgi_extras all = {0};
    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    int err = parse(&all, "A ${user}b$method");
    mk_arena_release(&arena);
    return err;
}

TEST(failing_memory)
{
    assert_true(mk_test_failing_allocs(parse_one, NULL) > 0);
}
