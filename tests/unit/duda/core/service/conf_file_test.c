// SPDX-License-Identifier: Apache-2.0
/* Configuration files of services: what is read, what is refused with which line, and values. */
#include "testing.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "duda/core/service/conf_file.h"

enum { ARENA_BYTES = 16 << 20 };

struct file {
    struct mk_arena arena;
    struct duda_config_section *first;
    char text[256];
    int err;
};

/* Parses bytes that are flush against a page that cannot be read. */
static struct file parse(const char *bytes, size_t len)
{
    struct file f;
    struct mk_buf error;
    char *guarded = mk_test_guarded(bytes, len);
    mk_arena_init(&f.arena, NULL, ARENA_BYTES, NULL, 0);
    mk_buf_init_fixed(&error, f.text, sizeof(f.text));
    f.err = conf_file_parse(mk_str(guarded, len), &f.arena, &f.first, &error);
    mk_buf_cstr(&error);
    mk_test_unguard(guarded, len);
    return f;
}

static const char *get(struct file *f, const char *section, const char *key)
{
    struct duda_config_section *s = conf_file_find(f->first, mk_str_c(section));
    const struct conf_key *found = s ? conf_file_find_key(s, mk_str_c(key)) : NULL;
    return found ? found->value.p : NULL;
}

TEST(sections_have_keys)
{
    static const char text[] =
        "# comment\n[One]\n    Key  a value \n\tOther\t1\n\n    # comment\n[ two words ]\r\n  key #2\r\n"
        "[ONE]\n    key second";
    struct file f = parse(text, sizeof(text) - 1);
    assert_int_equal(f.err, 0);
    assert_string_equal(get(&f, "one", "KEY"), "a value");
    assert_string_equal(get(&f, "ONE", "other"), "1");
    assert_string_equal(get(&f, "Two Words", "key"), "#2");
    assert_null(get(&f, "two", "key"));
    assert_null(get(&f, "one", "missing"));
    assert_string_equal(f.first->next->next->first->value.p, "second");
    mk_arena_release(&f.arena);
}

TEST(an_empty_file_has_no_sections)
{
    static const char *const texts[] = {"", "\n", "   \n\t\n", "# only a comment", "\r\n"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct file f = parse(texts[i], strlen(texts[i]));
        assert_int_equal(f.err, 0);
        assert_null(f.first);
        mk_arena_release(&f.arena);
    }
}

TEST(mistakes_are_reported_with_their_line)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"[A", "1: \"]\" is missing behind the name of the section"},
        {"[", "1: \"]\" is missing behind the name of the section"},
        {"[]", "1: a section's name has 1 to 255 bytes and no brackets"},
        {"[ ]", "1: a section's name has 1 to 255 bytes and no brackets"},
        {"[A[B]", "1: a section's name has 1 to 255 bytes and no brackets"},
        {"[A] # b]", "1: a section's name has 1 to 255 bytes and no brackets"},
        {"\n  [A]", "2: a section begins at the start of its line"},
        {"[A]\nKey 1", "2: a key must be indented"},
        {"  Key 1", "1: a key needs a section before it"},
        {"[A]\n\n  Key", "3: the key has no value"},
        {"[A]\n  Key\t ", "2: the key has no value"},
        {"[A]\n  Key \x01", "2: the line has a control character"},
        {"[A]\n  K\rey 1", "2: the line has a control character"},
        {"[A]\n  Key \x7f", "2: the line has a control character"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct file f = parse(rows[i].text, strlen(rows[i].text));
        assert_int_equal(f.err, -EINVAL);
        assert_string_equal(f.text, rows[i].error);
        mk_arena_release(&f.arena);
    }
    struct file f = parse("[A]\n  K \0", 9);
    assert_string_equal(f.text, "2: the line has a control character");
    mk_arena_release(&f.arena);
}

/* Returns a file of `n` times the same byte between two texts. */
static struct file parse_long(const char *before, size_t n, const char *after)
{
    size_t len = strlen(before) + n + strlen(after);
    char *text = malloc(len + 1);
    assert_non_null(text);
    snprintf(text, len + 1, "%s", before);
    memset(text + strlen(before), 'x', n);
    memcpy(text + strlen(before) + n, after, strlen(after) + 1);
    struct file f = parse(text, len);
    free(text);
    return f;
}

TEST(names_lines_and_files_have_limits)
{
    static const struct {
        const char *before;
        size_t n;
        const char *after, *error;
    } rows[] = {
        {"[", 255, "]", NULL},
        {"[", 256, "]", "1: a section's name has 1 to 255 bytes and no brackets"},
        {"[A]\n ", 255, " 1", NULL},
        {"[A]\n ", 256, " 1", "2: the key has more than 255 bytes"},
        {"[A]\n k ", 4093, "\n", NULL},
        {"[A]\n k ", 4094, "\n", "2: the line has more than 4,096 bytes"},
        {"", 1 << 20, "\n", "1: the file has more than 1 MB"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct file f = parse_long(rows[i].before, rows[i].n, rows[i].after);
        assert_int_equal(f.err, rows[i].error ? -EINVAL : 0);
        if (rows[i].error)
            assert_string_equal(f.text, rows[i].error);
        mk_arena_release(&f.arena);
    }
}

TEST(numbers_are_decimal)
{
    static const struct {
        const char *text;
        long number;
    } rows[] = {{"0", 0}, {"-1", -1}, {"+7", 7}, {"9223372036854775807", LONG_MAX}, {"-9223372036854775808", LONG_MIN}};
    static const char *const wrong[] = {
        "", "-", "+-1", "1x", "0x10", "1 2", "1.5", "9223372036854775808", "-9223372036854775809"};
    long number = 99;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(conf_file_get_number(mk_str_c(rows[i].text), &number));
        assert_int_equal(number, rows[i].number);
    }
    number = 99;
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(conf_file_get_number(mk_str_c(wrong[i]), &number));
    assert_int_equal(number, 99);
}

TEST(switches_have_words)
{
    bool value = false;
    assert_true(conf_file_get_bool(MK_STR("On"), &value) && value);
    assert_true(conf_file_get_bool(MK_STR("FALSE"), &value) && !value);
    assert_true(conf_file_get_bool(MK_STR("yes"), &value) && value);
    assert_true(conf_file_get_bool(MK_STR("no"), &value) && !value);
    assert_false(conf_file_get_bool(MK_STR("1"), &value));
    assert_false(conf_file_get_bool(MK_STR("on on"), &value));
}

static int parse_with_failures(void *ctx)
{
    struct file f = parse(ctx, strlen(ctx));
    mk_arena_release(&f.arena);
    return f.err;
}

TEST(missing_memory_is_an_error)
{
    char text[] = "[A]\n    key value\n[B]\n    key value\n";
    assert_true(mk_test_failing_allocs(parse_with_failures, text) > 0);
}
