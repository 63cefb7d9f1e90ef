// SPDX-License-Identifier: Apache-2.0
/* The types: text in, value and text out, or the sentence that follows the key's name. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>

#include "conf/expand.h"
#include "conf/sample.h"

static const char *const colours[] = {"Red", "Green", "Dark Blue", NULL};

static int parse_silent(const struct mk_conf_value *v, void *field, struct mk_arena *a, struct mk_buf *error)
{
    (void)v, (void)field, (void)a, (void)error;
    return -EINVAL;
}

#define ROW(kind, ctype, ...) \
    { \
        .name = "Key", .type = kind, .size = sizeof(ctype), ##__VA_ARGS__ \
    }
static const struct mk_conf_key on_off = ROW(MK_CONF_BOOL, bool);
static const struct mk_conf_key number = ROW(MK_CONF_INT, int64_t);
static const struct mk_conf_key port = ROW(MK_CONF_INT, int64_t, .min = 1, .max = 65535);
static const struct mk_conf_key positive = ROW(MK_CONF_INT, int64_t, .min = 1);
static const struct mk_conf_key size = ROW(MK_CONF_SIZE, uint64_t);
static const struct mk_conf_key kilos = ROW(MK_CONF_SIZE, uint64_t, .unit = "K", .min = 1024, .max = 1 << 30);
static const struct mk_conf_key duration = ROW(MK_CONF_DURATION, uint32_t);
static const struct mk_conf_key millis = ROW(MK_CONF_DURATION, uint32_t, .unit = "ms", .min = 500);
static const struct mk_conf_key string = ROW(MK_CONF_STRING, struct mk_str);
static const struct mk_conf_key path = ROW(MK_CONF_PATH, struct mk_str);
static const struct mk_conf_key list = ROW(MK_CONF_LIST, struct mk_conf_list);
static const struct mk_conf_key colour = ROW(MK_CONF_ENUM, int, .names = colours);
static const struct mk_conf_key custom = ROW(MK_CONF_CUSTOM, struct sample_ports, .parse = sample_parse_port);
static const struct mk_conf_key silent = ROW(MK_CONF_CUSTOM, int, .parse = parse_silent, .unit = "a colour");

struct value_case {
    const struct mk_conf_key *key;
    const char *text;
    const char *printed; /* NULL: an error */
    const char *error;
};

static const struct value_case cases[] = {
    {&on_off, "On", "On", ""},
    {&on_off, "oFF", "Off", ""},
    {&on_off, "yes", NULL, " wants On or Off, not \"yes\"; did you mean \"On\"?"},
    {&on_off, "False", NULL, " wants On or Off, not \"False\"; did you mean \"Off\"?"},
    {&on_off, "0", NULL, " wants On or Off, not \"0\"; did you mean \"Off\"?"},
    {&on_off, "Offf", NULL, " wants On or Off, not \"Offf\"; did you mean \"Off\"?"},
    {&on_off, "maybe", NULL, " wants On or Off, not \"maybe\""},
    {&on_off, "On Off", NULL, " takes one value only"},
    {&number, "0", "0", ""},
    {&number, "-9223372036854775807", "-9223372036854775807", ""},
    {&number, "9223372036854775807", "9223372036854775807", ""},
    {&number, "9223372036854775808", NULL, " wants a number, not \"9223372036854775808\""},
    {&number, "-", NULL, " wants a number, not \"-\""},
    {&number, "+1", NULL, " wants a number, not \"+1\""},
    {&number, "1K", NULL, " wants a number, not \"1K\""},
    {&number, "\"\"", NULL, " wants a number, not \"\""},
    {&port, "1", "1", ""},
    {&port, "65535", "65535", ""},
    {&port, "0", NULL, " wants a number from 1 to 65535, not \"0\""},
    {&port, "65536", NULL, " wants a number from 1 to 65535, not \"65536\""},
    {&port, "-5", NULL, " wants a number from 1 to 65535, not \"-5\""},
    {&positive, "0", NULL, " wants a number of at least 1, not \"0\""},
    {&positive, "99999999", "99999999", ""},
    {&size, "0", "0", ""},
    {&size, "0K", "0", ""},
    {&size, "100", "100", ""},
    {&size, "100B", "100", ""},
    {&size, "1024", "1K", ""},
    {&size, "64k", "64K", ""},
    {&size, "10m", "10M", ""},
    {&size, "1536M", "1536M", ""},
    {&size, "3G", "3G", ""},
    {&size, "8589934591G", "8589934591G", ""},
    {&size, "8589934592G", NULL, " wants a size, not \"8589934592G\" (units: B, K, M, G)"},
    {&size, "10s", NULL, " wants a size, not \"10s\" (units: B, K, M, G)"},
    {&size, "K", NULL, " wants a size, not \"K\" (units: B, K, M, G)"},
    {&size, "-1K", NULL, " wants a size, not \"-1K\" (units: B, K, M, G)"},
    {&size, "1.5K", NULL, " wants a size, not \"1.5K\" (units: B, K, M, G)"},
    {&kilos, "32", "32K", ""},
    {&kilos, "1025B", "1025B", ""},
    {&kilos, "1048576", "1G", ""},
    {&kilos, "1048577", NULL, " wants a size from 1K to 1G, not \"1048577\" (units: B, K, M, G)"},
    {&kilos, "1023B", NULL, " wants a size from 1K to 1G, not \"1023B\" (units: B, K, M, G)"},
    {&duration, "0", "0", ""},
    {&duration, "15", "15s", ""},
    {&duration, "1500ms", "1500ms", ""},
    {&duration, "60s", "1m", ""},
    {&duration, "90m", "90m", ""},
    {&duration, "2h", "2h", ""},
    {&duration, "1d", "1d", ""},
    {&duration, "4294967295ms", "4294967295ms", ""},
    {&duration, "4294967296ms", NULL, " wants a duration, not \"4294967296ms\" (units: ms, s, m, h, d)"},
    {&duration, "50d", NULL, " wants a duration, not \"50d\" (units: ms, s, m, h, d)"},
    {&duration, "5M", NULL, " wants a duration, not \"5M\" (units: ms, s, m, h, d)"},
    {&duration, "1 s", NULL, " takes a number with its unit, and no blank between them"},
    {&duration, "1year", NULL, " wants a duration, not \"1year\" (units: ms, s, m, h, d)"},
    {&millis, "750", "750ms", ""},
    {&millis, "499", NULL, " wants a duration of at least 500ms, not \"499\" (units: ms, s, m, h, d)"},
    {&string, "My  site", "\"My site\"", ""},
    {&string, "\"\"", "\"\"", ""},
    {&path, "/a/b", "/a/b", ""},
    {&path, "x y", "\"/etc/monkey/x y\"", ""},
    {&path, "././x", "/etc/monkey/x", ""},
    {&path, "../x", "/etc/monkey/../x", ""},
    {&path, "\"\"", "\"\"", ""},
    {&list, "a \"b c\" #", "a \"b c\"", ""},
    {&list, "a b c d e f g h i", "a b c d e f g h i", ""},
    {&colour, "red", "Red", ""},
    {&colour, "\"dark blue\"", "\"Dark Blue\"", ""},
    {&colour, "Gren", NULL, " wants one of Red, Green, Dark Blue, not \"Gren\"; did you mean \"Green\"?"},
    {&colour, "Pink", NULL, " wants one of Red, Green, Dark Blue, not \"Pink\""},
    {&custom, "x", NULL, ": \"x\" is no port"},
    {&silent, "x", NULL, " wants a colour, not \"x\""},
};

static void run_case(const struct value_case *c, struct mk_arena *arena)
{
    static struct mk__words words;
    union {
        struct mk_conf_list list;
        struct sample_ports ports;
        uint64_t u64;
    } field = {0};
    char text[256];
    struct mk_buf out;
    struct mk__expand_error error;

    assert_true(mk__expand(NULL, mk_str_c(c->text), 1, &words, &error));
    struct mk_conf_value value = {.text = mk_buf_str(&words.text),
                                  .words = words.word,
                                  .n = words.n,
                                  .dir = MK_STR("/etc/monkey/")};
    mk_buf_init_fixed(&out, text, sizeof(text));
    int r = mk__value_parse(c->key, &value, &field, arena, &out);
    if (c->printed)
        assert_int_equal(r, 0);
    else
        assert_true(r < 0);
    assert_string_equal(mk_buf_cstr(&out), c->error);
    if (!c->printed)
        return;
    out.len = 0;
    mk__value_print(c->key, &field, &out);
    assert_string_equal(mk_buf_cstr(&out), c->printed);
}

TEST(values)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_arena arena;
        mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
        run_case(&cases[i], &arena);
        mk_arena_release(&arena);
    }
}

TEST(fields)
{
    struct mk_conf_value v = {.text = MK_STR("2m"), .words = &v.text, .n = 1};
    uint32_t ms = 1;
    uint64_t bytes = 1;
    assert_int_equal(mk__value_parse(&duration, &v, &ms, NULL, NULL), 0);
    assert_int_equal(ms, 120000);
    assert_int_equal(mk__value_parse(&size, &v, &bytes, NULL, NULL), 0);
    assert_int_equal(bytes, 2 << 20);
}

TEST(path_below_the_working_directory)
{
    struct mk_conf_value v = {.dir = MK_STR("conf/")};
    char cwd[4096], want[5000];
    struct mk_arena arena;
    mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    snprintf(want, sizeof(want), "%s/conf/a/b", cwd);
    assert_str_equal(mk_conf_path(&v, MK_STR("a/b"), &arena), want);
    v.dir = MK_STR_NONE;
    snprintf(want, sizeof(want), "%s/x", cwd);
    assert_str_equal(mk_conf_path(&v, MK_STR("x"), &arena), want);
    mk_arena_release(&arena);
}

/* ── lists of patterns ── */

static int read_patterns(void *ctx)
{
    struct mk_str words[] = {MK_STR("*.css"), MK_STR("/a"), MK_STR("=/b")};
    struct mk_conf_value first = {.words = words, .n = 2}, second = {.words = words + 2, .n = 1};
    struct mk_patterns all = {NULL, 0};
    struct mk_arena arena;
    char text[200];
    struct mk_buf error;
    (void)ctx;
    mk_buf_init_fixed(&error, text, sizeof(text));
    mk_arena_init(&arena, NULL, 4096, NULL, 0);
    int err = mk_conf_patterns(&first, &all, &arena, &error);
    if (err == 0)
        err = mk_conf_patterns(&second, &all, &arena, &error);
    if (err == 0) {
        assert_int_equal(all.n, 3);
        assert_int_equal(all.items[0].kind, MK_PATTERN_NAME);
        assert_str_equal(all.items[1].text, "/a");
        assert_str_equal(all.items[2].text, "/b");
        words[0] = MK_STR("nonsense");
        assert_int_equal(mk_conf_patterns(&first, &all, &arena, &error), -EINVAL);
        assert_int_equal(all.n, 3);
        assert_true(error.len > 0);
    }
    mk_arena_release(&arena);
    return err;
}

TEST(reading_patterns)
{
    assert_true(mk_test_failing_allocs(read_patterns, NULL) > 0);
}

TEST(mistakes_in_patterns)
{
    const struct {
        struct mk_str words[2];
        uint32_t n;
        size_t fault;
    } wrong[] = {
        {{MK_STR_NONE}, 0, 0},
        {{mk_str("/a", 2), mk_str("b", 1)}, 2, 3},
        {{mk_str("/a", 2), mk_str("/b//c", 5)}, 2, 5},
    };
    for (size_t i = 0; i < MK_COUNT_OF(wrong); i++) {
        char text[40] = "", reason[200];
        struct mk_str words[2];
        size_t len = 0, fault = 0;
        for (uint32_t n = 0; n < wrong[i].n; n++) {
            words[n] = mk_str(text + len, wrong[i].words[n].len);
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s ", MK_STR_ARG(wrong[i].words[n]));
        }
        struct mk_conf_value value = {.text = mk_str(text, len), .words = words, .n = wrong[i].n, .fault = &fault};
        struct mk_patterns all = {NULL, 0};
        struct mk_arena arena;
        struct mk_buf error;
        mk_buf_init_fixed(&error, reason, sizeof(reason));
        mk_arena_init(&arena, NULL, 4096, NULL, 0);
        assert_int_equal(mk_conf_patterns(&value, &all, &arena, &error), -EINVAL);
        assert_true(error.len > 0);
        assert_int_equal(fault, wrong[i].fault);
        mk_arena_release(&arena);
    }
}

TEST(patterns_match_one_after_the_other)
{
    struct mk_pattern items[2];
    struct mk_patterns all = {items, 2}, none = {NULL, 0};
    assert_int_equal(mk_pattern_parse(&items[0], MK_STR("*.css"), NULL, NULL), 0);
    assert_int_equal(mk_pattern_parse(&items[1], MK_STR("/a"), NULL, NULL), 0);
    assert_int_equal(mk_patterns_match(&all, MK_STR("/x.css")), 1);
    assert_int_equal(mk_patterns_match(&all, MK_STR("/a/b")), 1);
    assert_int_equal(mk_patterns_match(&all, MK_STR("/b")), 0);
    assert_int_equal(mk_patterns_match(&none, MK_STR("/b")), 0);
}
