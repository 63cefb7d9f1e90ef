// SPDX-License-Identifier: Apache-2.0
/* Answers that the cache of `Type Forward` has, and those that it must not have. */
#include "plugins/auth/forward_cache.h"

#include "testing.h"

#include <stdio.h>

struct digest {
    unsigned char bytes[FORWARD_DIGEST_BYTES];
};

static struct digest hash(const struct forward_cache *cache, const void *owner, const char *subject,
                          const char *deciding)
{
    struct digest d;
    assert_true(forward_cache_hash(cache, owner, mk_str_c(subject), mk_str_c(deciding), d.bytes));
    return d;
}

TEST(answers)
{
    struct mk_account account = {.bytes = 0};
    struct forward_cache *cache = forward_cache_new(&account);
    struct forward_answer answer = {.n = 3, .values = {MK_STR("ada"), MK_STR_NONE, MK_STR("")}, .user = MK_STR("Ada")};
    struct digest d = hash(cache, &account, "subject", "Cookie: a\r\n");
    struct forward_answer found;
    assert_false(forward_cache_find(cache, d.bytes, 0, &found));
    forward_cache_add(cache, d.bytes, 1000, &answer);
    assert_true(forward_cache_find(cache, d.bytes, 999, &found));
    assert_int_equal(found.n, 3);
    assert_str_equal(found.values[0], "ada");
    assert_null(found.values[1].p);
    assert_true(found.values[2].p && !found.values[2].len);
    assert_str_equal(found.user, "Ada");
    assert_false(forward_cache_find(cache, d.bytes, 1000, &found));
    assert_false(forward_cache_find(cache, d.bytes, 0, &found)); /* it was removed */
    struct forward_answer nothing = {.n = 1};
    forward_cache_add(cache, d.bytes, 1000, &nothing);
    assert_true(forward_cache_find(cache, d.bytes, 0, &found));
    assert_true(found.n == 1 && !found.values[0].p && !found.user.p);
    forward_cache_free(cache);
    forward_cache_free(NULL);
    assert_int_equal(account.bytes, 0);
}

/* All that differs makes another digest, and so does another cache. */
TEST(digests)
{
    static const int sections[2];
    struct forward_cache *cache = forward_cache_new(NULL), *other = forward_cache_new(NULL);
    const struct digest digests[] = {
        hash(cache, &sections[0], "ab", "c"), hash(cache, &sections[1], "ab", "c"),
        hash(cache, &sections[0], "a", "bc"), hash(cache, &sections[0], "abc", ""),
        hash(cache, &sections[0], "ab", "d"), hash(other, &sections[0], "ab", "c"),
    };
    for (size_t i = 0; i < COUNT(digests); i++)
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(digests[i].bytes, digests[k].bytes, FORWARD_DIGEST_BYTES);
    const struct digest again = hash(cache, &sections[0], "ab", "c");
    assert_memory_equal(digests[0].bytes, again.bytes, FORWARD_DIGEST_BYTES);
    forward_cache_free(other);
    forward_cache_free(cache);
}

/* However many are added, those that are used stay, and the memory has a limit. */
TEST(eviction)
{
    struct mk_account account = {.bytes = 0};
    struct forward_cache *cache = forward_cache_new(&account);
    struct forward_answer answer = {.n = 1, .values = {MK_STR("0123456789")}}, found;
    size_t empty = account.bytes;
    struct digest used = hash(cache, NULL, "used", "");
    forward_cache_add(cache, used.bytes, 1, &answer);
    for (unsigned i = 0; i < 20000; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%u", i);
        struct digest d = hash(cache, NULL, text, "");
        forward_cache_add(cache, d.bytes, 1, &answer);
        assert_true(forward_cache_find(cache, d.bytes, 0, &found));
        assert_true(forward_cache_find(cache, used.bytes, 0, &found));
    }
    assert_int_equal(account.bytes - empty, FORWARD_CACHE_SETS * FORWARD_CACHE_WAYS * 10);
    forward_cache_free(cache);
    assert_int_equal(account.bytes, 0);
}

/* What is not kept does not leave the former answer either. */
TEST(what_is_not_kept)
{
    static char text[FORWARD_CACHE_TEXT_MAX + 1];
    struct forward_cache *cache = forward_cache_new(NULL);
    struct forward_answer small = {.n = 1, .values = {MK_STR("a")}}, found;
    struct forward_answer longest = {.n = 1, .values = {mk_str(text, FORWARD_CACHE_TEXT_MAX)}};
    struct forward_answer too_long = {.n = 1, .values = {mk_str(text, FORWARD_CACHE_TEXT_MAX)}, .user = MK_STR("a")};
    struct digest d = hash(cache, NULL, "a", "");
    forward_cache_add(cache, d.bytes, 1, &longest);
    assert_true(forward_cache_find(cache, d.bytes, 0, &found));
    forward_cache_add(cache, d.bytes, 1, &too_long);
    assert_false(forward_cache_find(cache, d.bytes, 0, &found));
    forward_cache_add(cache, d.bytes, 1, &small);
    mk__alloc_countdown = 0;
    forward_cache_add(cache, d.bytes, 1, &small);
    assert_false(forward_cache_find(cache, d.bytes, 0, &found));
    mk__alloc_countdown = 0;
    assert_null(forward_cache_new(NULL));
    mk__alloc_countdown = -1;
    forward_cache_free(cache);
}
