// SPDX-License-Identifier: Apache-2.0
/* Pairs of queries and forms, decoded and not; each text flush against a guard page. */
#include "testing.h"

#include <errno.h>

#include "duda/core/request/urlencoded.h"

struct pairs_case {
    const char *text;
    int result;
    const char *pairs[6]; /* name, value ... */
};

static const struct pairs_case decoded[] = {
    {"", 0, {NULL}},
    {"a=b", 1, {"a", "b"}},
    {"a=b&c=d", 2, {"a", "b", "c", "d"}},
    {"a=b=c", 1, {"a", "b=c"}},
    {"a=&=b", 2, {"a", "", "", "b"}},
    {"a&b", 2, {"a", "", "b", ""}},
    {"&&a=b&&", 1, {"a", "b"}},
    {"a%20b=c+d", 1, {"a b", "c d"}},
    {"%61%3D=%26%2b", 1, {"a=", "&+"}},
    {"a=%C3%BC%ff", 1, {"a", "\xc3\xbc\xff"}},
    {"a=100%", 1, {"a", "100%"}},
    {"a=%4&b=%", 2, {"a", "%4", "b", "%"}},
    {"a=%zz%4g", 1, {"a", "%zz%4g"}},
    {"a=%25%32%30", 1, {"a", "%20"}}, /* decoded once */
    {"x=1&x=2&x=3", 3, {"x", "1", "x", "2", "x", "3"}},
    {"a=1&b=2&c=3&d=4", -E2BIG, {NULL}},
    {"a=1&b=2&c=3&", 3, {"a", "1", "b", "2", "c", "3"}},
    {"a=%00", -EINVAL, {NULL}},
    {"a%00b=1", -EINVAL, {NULL}},
};

static const struct pairs_case raw[] = {
    {"", 0, {NULL}},
    {"a=b&c=d", 2, {"a", "b", "c", "d"}},
    {"a=b=c", 1, {"a", "b=c"}},
    {"a&b=&c", 1, {"b", ""}},
    {"a%20b=c+d%20", 1, {"a%20b", "c+d%20"}},
    {"a=1&b=2&c=3&d=4", 3, {"a", "1", "b", "2", "c", "3"}},
    {"a=%00", 1, {"a", "%00"}},
};

typedef int (*read_fn)(char *text, size_t len, struct urlencoded_pair *pairs, size_t max);

static void check_case(const struct pairs_case *c, read_fn read)
{
    struct urlencoded_pair pairs[3];
    size_t len = strlen(c->text);
    char *text = mk_test_guarded(c->text, len + 1);
    int n = read(text, len, pairs, COUNT(pairs));
    if (n != c->result)
        fail_msg("\"%s\" has %d pairs, not %d", c->text, n, c->result);
    for (int i = 0; i < n; i++) {
        assert_string_equal(pairs[i].name, c->pairs[2 * i]);
        assert_string_equal(pairs[i].value, c->pairs[2 * i + 1]);
    }
    mk_test_unguard(text, len + 1);
}

TEST(decoded)
{
    for (size_t i = 0; i < COUNT(decoded); i++)
        check_case(&decoded[i], urlencoded_decode);
}

TEST(raw)
{
    for (size_t i = 0; i < COUNT(raw); i++)
        check_case(&raw[i], urlencoded_split);
}

/* A NUL in a body, which is not encoded. */
TEST(nul_byte)
{
    char text[] = "a=b\0c";
    struct urlencoded_pair pair;
    assert_int_equal(urlencoded_decode(text, sizeof(text) - 1, &pair, 1), -EINVAL);
}

static const struct {
    const char *text;
    int result;
    long value;
} numbers[] = {
    {"0", 0, 0},
    {"42", 0, 42},
    {"-7", 0, -7},
    {"+7", 0, 7},
    {"007", 0, 7},
    {"9223372036854775807", 0, INT64_MAX},
    {"-9223372036854775808", 0, INT64_MIN},
    {"9223372036854775808", -ERANGE, 0},
    {"", -EINVAL, 0},
    {"-", -EINVAL, 0},
    {"+-1", -EINVAL, 0},
    {" 1", -EINVAL, 0},
    {"1 ", -EINVAL, 0},
    {"1x", -EINVAL, 0},
    {"0x10", -EINVAL, 0},
    {"1.5", -EINVAL, 0},
};

TEST(numbers)
{
    for (size_t i = 0; i < COUNT(numbers); i++) {
        long value = 12345;
        assert_int_equal(urlencoded_number(numbers[i].text, &value), numbers[i].result);
        assert_int_equal(value, numbers[i].result ? 12345 : numbers[i].value);
    }
}

/* ── pairs ── */

TEST(lookup)
{
    struct pairs p = {0};
    struct mk_arena arena;
    long number = 5;
    int at = 0;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    pairs_read(&p, &arena, MK_STR("tag=a&n=12&tag=b&ab=x&tag="), true);
    assert_true(p.is_read);
    assert_int_equal(p.n, 5);
    assert_string_equal(pairs_get(&p, "tag"), "a");
    assert_null(pairs_get(&p, "a"));
    assert_null(pairs_get(&p, "abc"));
    assert_string_equal(pairs_get_id(&p, 4), "");
    assert_string_equal(pairs_name(&p, 3), "ab");
    assert_null(pairs_get_id(&p, 5));
    assert_null(pairs_get_id(&p, -1));
    assert_null(pairs_name(&p, -1));
    assert_string_equal(pairs_next(&p, "tag", &at), "a");
    assert_string_equal(pairs_next(&p, "tag", &at), "b");
    assert_string_equal(pairs_next(&p, "tag", &at), "");
    assert_null(pairs_next(&p, "tag", &at));
    assert_null(pairs_next(&p, "tag", &at));
    assert_int_equal(pairs_cmp(&p, "ab", "x"), 0);
    assert_int_equal(pairs_cmp(&p, "ab", "xy"), -1);
    assert_int_equal(pairs_cmp(&p, "none", "x"), -1);
    assert_int_equal(pairs_get_number(&p, "n", &number), 0);
    assert_int_equal(number, 12);
    assert_int_equal(pairs_get_number(&p, "ab", &number), -EINVAL);
    assert_int_equal(pairs_get_number(&p, "none", &number), -ENOENT);
    assert_int_equal(number, 12);
    mk_arena_release(&arena);
}

TEST(limit)
{
    char text[2 * (URLENCODED_PAIRS_MAX + 1)];
    struct mk_arena arena;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = "a&"[i % 2];
    for (size_t n = URLENCODED_PAIRS_MAX; n <= URLENCODED_PAIRS_MAX + 1; n++) {
        struct pairs p = {0};
        mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
        pairs_read(&p, &arena, mk_str(text, 2 * n - 1), true);
        assert_int_equal(p.n, n > URLENCODED_PAIRS_MAX ? -E2BIG : (int)n);
        assert_true((pairs_get(&p, "a") != NULL) == (p.n > 0));
        mk_arena_release(&arena);
    }
}

/* Fields that come one by one. */
static int add_some(void *ctx)
{
    static const char *const values[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    struct pairs p = {.is_read = true};
    struct mk_arena arena;
    int err = 0;
    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    for (int i = 0; i < 9 && err == 0; i++)
        err = pairs_add(&p, &arena, i % 2 ? "odd" : "even", values[i]);
    if (err == 0) {
        assert_int_equal(p.n, 9);
        assert_string_equal(pairs_get(&p, "even"), "a");
        assert_string_equal(pairs_get(&p, "odd"), "b");
        assert_string_equal(pairs_get_id(&p, 8), "i");
    }
    mk_arena_release(&arena);
    return err;
}

TEST(pairs_without_memory)
{
    assert_true(mk_test_failing_allocs(add_some, NULL) >= 1);
}

TEST(nothing)
{
    struct pairs p = {0};
    pairs_read(&p, NULL, MK_STR_NONE, true);
    assert_true(p.is_read);
    assert_int_equal(p.n, 0);
    assert_null(pairs_get(&p, ""));
}

/* A body may be larger than the arena of its request. */
TEST(a_text_larger_than_the_arena)
{
    enum { BYTES = 100000 };
    struct pairs p = {0};
    struct mk_arena arena;
    struct mk_account account = {.bytes_max = 1 << 20};
    static char text[BYTES];
    memset(text, 'x', BYTES);
    memcpy(text, "a=1&b=", 6);
    mk_arena_init(&arena, &account, 8192, NULL, 0);
    pairs_read(&p, &arena, mk_str(text, BYTES), true);
    assert_int_equal(p.n, 2);
    assert_int_equal(strlen(pairs_get(&p, "b")), BYTES - 6);
    assert_true(account.bytes > BYTES);
    mk_arena_release(&arena);
    mk_account_trim(&account);
    assert_int_equal(account.bytes, 0);
}

static int read_without_memory(void *ctx)
{
    const struct mk_str *text = ctx;
    struct pairs p = {0};
    struct mk_arena arena;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    pairs_read(&p, &arena, *text, true);
    int result = p.n < 0 ? p.n : 0;
    assert_true((pairs_get(&p, "a") != NULL) == (result == 0));
    mk_arena_release(&arena);
    return result;
}

TEST(memory)
{
    static char large[5000] = "a=1&b=";
    struct mk_str texts[] = {MK_STR("a=1&b=2"), {large, sizeof(large)}};
    memset(large + 6, 'x', sizeof(large) - 6);
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_true(mk_test_failing_allocs(read_without_memory, &texts[i]) > 0);
}
