// SPDX-License-Identifier: Apache-2.0
/* RequestSet and RequestRemove: the names and values that they take, and what they write. */
#include "testing.h"

#include "arena.h"

#include <errno.h>
#include <stdio.h>

#include "plugins/proxy/proxy.h"

static char error_text[256];

/* Parses a line's value, of which the first word is `name`, into the list. Returns as fields_parse_set(). */
static int parse(mk_conf_parse_fn fn, struct field_list *list, const char *name, const char *value)
{
    char text[256];
    struct mk_buf error;
    snprintf(text, sizeof(text), "%s%s%s", name, value ? " " : "", value ? value : "");
    struct mk_str words[] = {mk_str(text, strlen(name)), value ? mk_str_c(value) : MK_STR_NONE};
    struct mk_conf_value line = {.text = mk_str_c(text), .words = words, .n = value ? 2 : 1};
    mk_buf_init_fixed(&error, error_text, sizeof(error_text));
    int err = fn(&line, list, &arena, &error);
    assert_int_equal(error.len > 0, err == -EINVAL);
    (void)mk_buf_cstr(&error);
    return err;
}

TEST(names, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *name;
        bool is_good;
    } rows[] = {
        {"X-User", true},
        {"x_user", true},
        {"Authorization", true},
        {"Cookie", true},
        {"Accept-Encoding", true},
        {"X-Forward", true},
        {"", false},
        {"X User", false},
        {"X-User:", false},
        {"X-\303\244", false},
        {"Host", false},
        {"host", false},
        {"Content-Length", false},
        {"Transfer-Encoding", false},
        {"transfer_encoding", false},
        {"Connection", false},
        {"Upgrade", false},
        {"TE", false},
        {"X-Forwarded-For", false},
        {"x_forwarded_proto", false},
        {"X-Real-IP", false},
        {"Forwarded", false},
        {"Via", false},
        {"Sec-WebSocket-Key", false},
        {"sec-websocket-protocol", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct field_list set = {0}, removed = {0};
        int wanted = rows[i].is_good ? 0 : -EINVAL;
        if (parse(fields_parse_set, &set, rows[i].name, "1") != wanted ||
            parse(fields_parse_remove, &removed, rows[i].name, NULL) != wanted)
            fail_msg("%s: %s", rows[i].name, error_text);
    }
}

TEST(values, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *value;
        bool is_good;
    } rows[] = {
        {"1", true},  {"a b", true},       {"a\tb", true},           {"$client", true}, {"${client}:$method", true},
        {"$$", true}, {"a\nb", false},     {"a\rb", false},          {"a\177", false},  {"$clinet", false},
        {"$", false}, {"${client", false}, {"$header_Accept", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct field_list list = {0};
        if (parse(fields_parse_set, &list, "X-A", rows[i].value) != (rows[i].is_good ? 0 : -EINVAL))
            fail_msg("%s: %s", rows[i].value, error_text);
    }
    struct field_list list = {0};
    assert_int_equal(parse(fields_parse_set, &list, "X-A", "$clinet"), -EINVAL);
    assert_non_null(strstr(error_text, "did you mean \"client\""));
    assert_int_equal(parse(fields_parse_set, &list, "X-B", NULL), -EINVAL);
    assert_int_equal(parse(fields_parse_remove, &list, "X-C", "1"), -EINVAL);
}

TEST(lists, mk_test_arena_open, mk_test_arena_close)
{
    char storage[256];
    struct mk_buf out;
    struct field_changes changes = {0};
    assert_int_equal(parse(fields_parse_set, &changes.set, "X-A", "one  $$2"), 0);
    assert_int_equal(parse(fields_parse_set, &changes.set, "X-B", "three"), 0);
    assert_int_equal(parse(fields_parse_set, &changes.set, "x_a", "again"), -EINVAL);
    assert_int_equal(parse(fields_parse_remove, &changes.remove, "Authorization", NULL), 0);
    assert_int_equal(parse(fields_parse_remove, &changes.remove, "AUTHORIZATION", NULL), -EINVAL);

    assert_true(fields_replace(&changes, MK_STR("x-a")));
    assert_true(fields_replace(&changes, MK_STR("X_B")));
    assert_true(fields_replace(&changes, MK_STR("authorization")));
    assert_false(fields_replace(&changes, MK_STR("X-AB")));
    assert_false(fields_replace(&changes, MK_STR("X-")));

    mk_buf_init_fixed(&out, storage, sizeof(storage));
    assert_int_equal(fields_write(&changes, NULL, &out), 0);
    assert_str_equal(mk_buf_str(&out), "X-A: one  $2\r\nX-B: three\r\n");
}
