// SPDX-License-Identifier: Apache-2.0
/* Keys and values of sessions: reading, changing, and bytes that are no values. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>

#include "duda/core/common/heap.h"
#include "duda/core/session/session_values.h"

#include <duda/session.h>

enum { PLENTY = 4096 };

static void free_values(struct mk_str values)
{
    heap_free((char *)(uintptr_t)values.p, values.len);
}

static struct mk_str apply(struct mk_str values, const struct session_change *changes)
{
    struct mk_str result;
    assert_int_equal(session_values_apply(values, changes, PLENTY, &result), 0);
    free_values(values);
    return result;
}

static struct mk_str set(struct mk_str values, const char *key, const char *value)
{
    struct session_change c = {.key = mk_str_c(key), .value = mk_str_c(value)};
    return apply(values, &c);
}

static struct mk_str drop(struct mk_str values, const char *key)
{
    struct session_change c = {.key = mk_str_c(key), .removes = true};
    return apply(values, &c);
}

static void assert_value(struct mk_str values, const char *key, const char *value)
{
    struct mk_str found;
    assert_int_equal(session_values_find(values, mk_str_c(key), &found), value != NULL);
    if (value)
        assert_str_equal(found, value);
    if (value)
        assert_int_equal(found.p[found.len], 0);
}

TEST(changes)
{
    struct mk_str v = MK_STR_NONE;
    v = set(v, "a", "1");
    v = set(v, "user", "ada");
    v = set(v, "empty", "");
    assert_value(v, "a", "1");
    v = set(v, "a", "more than before");
    assert_value(v, "a", "more than before");
    assert_value(v, "user", "ada");
    assert_value(v, "empty", "");
    assert_value(v, "use", NULL);
    assert_true(session_values_check(v));
    v = drop(v, "user");
    v = drop(v, "none");
    assert_value(v, "user", NULL);
    assert_value(v, "empty", "");
    v = drop(v, "a");
    v = drop(v, "empty");
    assert_int_equal(v.len, 0);
    assert_null(v.p);
    assert_true(session_values_check(v));
}

TEST(limits)
{
    struct mk_str v, none;
    static char text[PLENTY];
    struct session_change c = {.key = MK_STR("k"), .value = mk_str(text, PLENTY - 1 - SESSION_PAIR_BYTES)};
    memset(text, 'x', sizeof(text));
    assert_int_equal(session_values_apply(MK_STR_NONE, &c, PLENTY, &v), 0);
    assert_int_equal(v.len, PLENTY);
    c.key = MK_STR("l");
    c.value.len = 0;
    assert_int_equal(session_values_apply(v, &c, PLENTY, &none), -ENOSPC);
    assert_null(none.p);
    assert_int_equal(session_values_apply(v, &c, PLENTY + 6, &none), 0);
    free_values(none);
    free_values(v);
}

TEST(the_longest_pair)
{
    static char key[DUDA_SESSION_KEY_BYTES], text[DUDA_SESSION_BYTES_MAX];
    size_t len = DUDA_SESSION_BYTES_MAX - DUDA_SESSION_KEY_BYTES - SESSION_PAIR_BYTES;
    struct session_change c = {.key = mk_str(key, sizeof(key)), .value = mk_str(text, len)};
    struct mk_str v, found;
    memset(key, 'k', sizeof(key));
    memset(text, 'x', sizeof(text));
    assert_int_equal(session_values_apply(MK_STR_NONE, &c, DUDA_SESSION_BYTES_MAX, &v), 0);
    assert_true(session_values_find(v, c.key, &found));
    assert_int_equal(found.len, len);
    assert_true(session_values_check(v));
    free_values(v);
}

TEST(too_many_keys)
{
    struct session_change all[DUDA_SESSION_KEYS_MAX + 1];
    char keys[DUDA_SESSION_KEYS_MAX + 1][8];
    struct mk_str v;
    for (size_t i = 0; i < COUNT(all); i++) {
        snprintf(keys[i], sizeof(keys[i]), "%zu", i);
        all[i] = (struct session_change){.next = i ? &all[i - 1] : NULL, .key = mk_str_c(keys[i])};
    }
    assert_int_equal(session_values_apply(MK_STR_NONE, &all[COUNT(all) - 1], PLENTY, &v), -ENOSPC);
    assert_int_equal(session_values_apply(MK_STR_NONE, &all[COUNT(all) - 2], PLENTY, &v), 0);
    free_values(v);
}

/* Every cut of valid values, and every byte of them changed, is read without an access outside. */
TEST(damaged)
{
    struct mk_str v = set(set(MK_STR_NONE, "key", "value"), "other", "text"), key, value;
    for (size_t len = 1; len < v.len; len++) {
        char *p = mk_test_guarded(v.p, len);
        assert_int_equal(session_values_check(mk_str(p, len)), len == SESSION_PAIR_BYTES + strlen("keyvalue"));
        mk_test_unguard(p, len);
    }
    for (size_t at = 0; at < v.len; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            char *p = mk_test_guarded(v.p, v.len);
            p[at] = (char)byte;
            struct mk_str rest = mk_str(p, v.len);
            while (session_values_next(&rest, &key, &value))
                assert_true(key.len && value.p + value.len < p + v.len);
            mk_test_unguard(p, v.len);
        }
    }
    assert_false(session_values_check(MK_STR("\0\0\0\0\0"))); /* a key without a byte */
    free_values(v);
}
