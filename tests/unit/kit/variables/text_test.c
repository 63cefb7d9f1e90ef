// SPDX-License-Identifier: Apache-2.0
/* Texts that are split at variables; what requests put into them is tested with the proxy and with scripts. */
#include "testing.h"

#include "arena.h"

#include <monkey/base/buf.h>
#include <monkey/kit/variables.h>

#include <errno.h>
#include <stdio.h>

static char error_text[256];

static int parse(const char *text, const struct mk_text_piece **ret)
{
    struct mk_buf error;
    mk_buf_init_fixed(&error, error_text, sizeof(error_text));
    int err = mk_text_parse(mk_str_c(text), ret, &arena, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    (void)mk_buf_cstr(&error);
    return err;
}

TEST(pieces, mk_test_arena_open, mk_test_arena_close)
{
    const struct mk_text_piece *text;
    assert_int_equal(parse("a${user}b$header_x_own", &text), 0);
    assert_str_equal(text->literal, "a");
    assert_string_equal(text->variable->name, "user");
    assert_str_equal(text->next->literal, "b");
    assert_str_equal(text->next->arg, "x-own");
    assert_null(text->next->next);
    assert_int_equal(parse("", &text), 0);
    assert_null(text);
    assert_int_equal(parse("tab\there", &text), 0);
}

TEST(mistakes, mk_test_arena_open, mk_test_arena_close)
{
    const struct mk_text_piece *text;
    assert_int_equal(parse("a $", &text), -EINVAL);
    assert_int_equal(parse("$usr", &text), -EINVAL);
    assert_non_null(strstr(error_text, "did you mean \"user\""));
    assert_int_equal(parse("a\nb", &text), -EINVAL);
    assert_int_equal(parse("\x7f", &text), -EINVAL);
}

static int parse_one(void *ctx)
{
    const struct mk_text_piece *text;
    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    int err = parse("a${user}b$header_x", &text);
    mk_arena_release(&arena);
    return err;
}

TEST(failing_memory)
{
    assert_true(mk_test_failing_allocs(parse_one, NULL) > 0);
}

TEST(literals, mk_test_arena_open, mk_test_arena_close)
{
    char storage[64];
    struct mk_buf out;
    const struct mk_text_piece *text;
    assert_int_equal(parse("a$$b", &text), 0);
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    assert_int_equal(mk_text_write(text, NULL, &out), 0);
    assert_str_equal(mk_buf_str(&out), "a$b");
}
