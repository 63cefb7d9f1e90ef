// SPDX-License-Identifier: Apache-2.0
/* How texts are split at variables, and how these are found; their values are tested with the formats of the logger. */
#include "testing.h"

#include "arena.h"

#include <monkey/base/buf.h>
#include <monkey/kit/variables.h>

#include <errno.h>
#include <stdio.h>

static char storage[512], reason[256];

/* Splits a text; writes a literal as it is, a variable as <name>, and a mistake as !offset, without the literal before
 * it. */
static const char *split(const char *s)
{
    struct mk_str text = mk_str_c(s), literal, name;
    struct mk_buf out, error;
    int r;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    while ((r = mk_variable_next(&text, &literal, &name, &error)) == 1) {
        mk_buf_adds(&out, literal);
        if (name.p)
            mk_buf_addf(&out, "<%.*s>", MK_STR_ARG(name));
    }
    if (r == -EINVAL)
        mk_buf_addf(&out, "!%zu", (size_t)(text.p - s));
    assert_true((r == -EINVAL) == (error.len > 0));
    return mk_buf_cstr(&out);
}

TEST(texts)
{
    static const struct {
        const char *text, *pieces;
    } rows[] = {
        {"", ""},
        {"a", "a"},
        {"$user", "<user>"},
        {"a${user}b$(host)c", "a<user>b<host>c"},
        {"$$", "$"},
        {"$$$user", "$<user>"},
        {"$a$b", "<a><b>"},
        {"$header_X-Own", "<header_X>-Own"},
        {"a$", "!1"},
        {"a $-", "!2"},
        {"${}", "!0"},
        {"${user", "!0"},
        {"$(user}", "!0"},
        {"\"$user\"", "\"<user>\""},
        {"${header_X-Own}", "<header_X-Own>"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(split(rows[i].text), rows[i].pieces);
}

TEST(names)
{
    static const struct {
        const char *name, *found, *nearest;
    } rows[] = {
        {"user", "user", "user"},      {"users", NULL, "user"},
        {"header_a", "header_", NULL}, {"header_", NULL, NULL},
        {"clinet", NULL, "client"},    {"xyzzy", NULL, NULL},
        {"note_a", "note_", NULL},     {"tls_clients", NULL, "tls_client"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct mk_variable *v = mk_variable_find(mk_str_c(rows[i].name));
        const char *nearest = mk_variable_find_nearest(mk_str_c(rows[i].name));
        assert_true(rows[i].found ? v && strcmp(v->name, rows[i].found) == 0 : !v);
        assert_true(rows[i].nearest ? nearest && strcmp(nearest, rows[i].nearest) == 0 : !nearest);
    }
}

TEST(arguments)
{
    struct mk_str arg;
    struct mk_buf error;
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    assert_int_equal(mk_variable_parse_arg("header_", MK_VARIABLE_ARG_HEADER, MK_STR("header_user_agent"), &arena, &arg,
                                           &error),
                     0);
    assert_str_equal(arg, "user-agent");
    assert_int_equal(mk_variable_parse_arg("note_", MK_VARIABLE_ARG_NOTE, MK_STR("note_a_b"), &arena, &arg, &error), 0);
    assert_str_equal(arg, "a_b");
    assert_int_equal(mk_variable_parse_arg("user", MK_VARIABLE_ARG_NONE, MK_STR("user"), &arena, &arg, &error), 0);
    assert_int_equal(arg.len, 0);
    assert_int_equal(mk_variable_parse_arg("header_", MK_VARIABLE_ARG_HEADER, MK_STR("header_a:b"), &arena, &arg,
                                           &error),
                     -EINVAL);
    assert_non_null(strstr(mk_buf_cstr(&error), "is not the name of a header"));
}

/* All can be found by their names; an index behind the last one finds nothing. */
TEST(table)
{
    unsigned n = 0;
    for (const struct mk_variable *v; (v = mk_variable_at(n)); n++) {
        snprintf(storage, sizeof(storage), "%s%s", v->name, v->arg ? "x" : "");
        assert_ptr_equal(mk_variable_find(mk_str_c(storage)), v);
    }
    assert_true(n > 10);
    assert_null(mk_variable_at(n + 1));
}

TEST_FILE(mk_test_arena_open, mk_test_arena_close)
