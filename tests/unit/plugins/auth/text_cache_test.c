// SPDX-License-Identifier: Apache-2.0
/* Texts that the cache has, and those that it must not have. */
#include "plugins/auth/token.h"

#include "testing.h"

#include <stdio.h>

enum { SETS = 256, BYTES_MAX = 4096 };

struct digest {
    unsigned char bytes[TEXT_CACHE_DIGEST_BYTES];
};

static struct digest hash(const struct text_cache *cache, const char *first, const char *second)
{
    const struct mk_str parts[] = {mk_str_c(first), mk_str_c(second)};
    struct digest d;
    assert_true(text_cache_hash(cache, parts, COUNT(parts), d.bytes));
    return d;
}

/* Looks for an entry of one text. */
static bool has_text(struct text_cache *cache, const struct digest *d)
{
    struct mk_str found;
    return text_cache_find(cache, d->bytes, 0, &found, 1, NULL);
}

TEST(texts)
{
    struct mk_account account = {.bytes = 0};
    struct text_cache *cache = text_cache_new(&account, SETS, BYTES_MAX);
    const struct mk_str texts[] = {MK_STR("Ada"), MK_STR("ada"), MK_STR_NONE, MK_STR("")};
    struct digest d = hash(cache, "subject", "Cookie: a\r\n");
    struct mk_str found[COUNT(texts)];
    int64_t end_ms = 0;
    assert_false(text_cache_find(cache, d.bytes, 0, found, COUNT(found), &end_ms));
    text_cache_add(cache, d.bytes, 1000, texts, COUNT(texts));
    assert_true(text_cache_find(cache, d.bytes, 999, found, COUNT(found), &end_ms));
    assert_int_equal(end_ms, 1000);
    assert_str_equal(found[0], "Ada");
    assert_str_equal(found[1], "ada");
    assert_null(found[2].p);
    assert_true(found[3].p && !found[3].len);
    assert_true(text_cache_hits(cache) == 1);
    assert_false(text_cache_find(cache, d.bytes, 1000, found, COUNT(found), NULL));
    assert_false(text_cache_find(cache, d.bytes, 0, found, COUNT(found), NULL)); /* it was removed */
    const struct mk_str nothing[2] = {MK_STR_NONE, MK_STR_NONE};
    text_cache_add(cache, d.bytes, 1000, nothing, COUNT(nothing));
    assert_true(text_cache_find(cache, d.bytes, 0, found, COUNT(nothing), NULL));
    assert_true(!found[0].p && !found[1].p);
    text_cache_free(cache);
    text_cache_free(NULL);
    assert_int_equal(account.bytes, 0);
}

/* All that differs makes another digest, and so does another cache. */
TEST(digests)
{
    struct text_cache *cache = text_cache_new(NULL, SETS, BYTES_MAX), *other = text_cache_new(NULL, SETS, BYTES_MAX);
    const struct digest digests[] = {
        hash(cache, "ab", "c"), hash(cache, "a", "bc"), hash(cache, "abc", ""),
        hash(cache, "", "abc"), hash(cache, "ab", "d"), hash(other, "ab", "c"),
    };
    for (size_t i = 0; i < COUNT(digests); i++)
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(digests[i].bytes, digests[k].bytes, TEXT_CACHE_DIGEST_BYTES);
    const struct digest again = hash(cache, "ab", "c");
    assert_memory_equal(digests[0].bytes, again.bytes, TEXT_CACHE_DIGEST_BYTES);
    text_cache_free(other);
    text_cache_free(cache);
}

/* However many are added, those that are used stay, and the memory has a limit. */
TEST(eviction)
{
    struct mk_account account = {.bytes = 0};
    struct text_cache *cache = text_cache_new(&account, SETS, BYTES_MAX);
    const struct mk_str text = MK_STR("0123456789");
    size_t empty = account.bytes;
    struct digest used = hash(cache, "used", "");
    text_cache_add(cache, used.bytes, 1, &text, 1);
    for (unsigned i = 0; i < 20000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%u", i);
        struct digest d = hash(cache, name, "");
        text_cache_add(cache, d.bytes, 1, &text, 1);
        assert_true(has_text(cache, &d) && has_text(cache, &used));
    }
    assert_int_equal(account.bytes - empty, SETS * TEXT_CACHE_WAYS * 10);
    text_cache_free(cache);
    assert_int_equal(account.bytes, 0);
}

/* What is not kept does not leave the former texts either. */
TEST(what_is_not_kept)
{
    static char bytes[BYTES_MAX + 1];
    struct text_cache *cache = text_cache_new(NULL, SETS, BYTES_MAX);
    const struct mk_str small = MK_STR("a"), longest = mk_str(bytes, BYTES_MAX),
                        too_long = mk_str(bytes, BYTES_MAX + 1);
    struct digest d = hash(cache, "a", "");
    text_cache_add(cache, d.bytes, 1, &longest, 1);
    assert_true(has_text(cache, &d));
    text_cache_add(cache, d.bytes, 1, &too_long, 1);
    assert_false(has_text(cache, &d));
    text_cache_add(cache, d.bytes, 1, &small, 1);
    mk__alloc_countdown = 0;
    text_cache_add(cache, d.bytes, 1, &small, 1);
    assert_false(has_text(cache, &d));
    mk__alloc_countdown = 0;
    assert_null(text_cache_new(NULL, SETS, BYTES_MAX));
    mk__alloc_countdown = -1;
    text_cache_free(cache);
}
