// SPDX-License-Identifier: Apache-2.0
/*
 * A set-associative cache of answers (forward_cache.h).
 */
#include "forward_cache.h"

#include <monkey/random.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <assert.h>

enum { TEXTS = FORWARD_HEADERS_MAX + 1 };

#define ABSENT UINT16_MAX /* a length */

static_assert(FORWARD_CACHE_TEXT_MAX < ABSENT, "a length fits");

struct entry {
    unsigned char digest[FORWARD_DIGEST_BYTES];
    uint64_t end_ms;
    uint64_t used; /* the number of the call that used it last; 0: the entry is free */
    char *text;    /* the values and the user, one behind the other; NULL: all are empty */
    uint32_t n, len;
    uint16_t lens[TEXTS]; /* the last one used is that of the user */
};

struct forward_cache {
    struct mk_account *account;
    unsigned char key[FORWARD_DIGEST_BYTES];
    uint64_t calls;
    struct entry entries[FORWARD_CACHE_SETS][FORWARD_CACHE_WAYS];
};

struct forward_cache *forward_cache_new(struct mk_account *account)
{
    struct forward_cache *cache = mk_account_alloc(account, sizeof(*cache));
    if (!cache)
        return NULL;
    memset(cache, 0, sizeof(*cache));
    cache->account = account;
    if (mk_random(cache->key, sizeof(cache->key)) == 0)
        return cache;
    mk_account_free(account, cache, sizeof(*cache));
    return NULL;
}

static void clear_entry(struct forward_cache *cache, struct entry *entry)
{
    if (entry->text) {
        explicit_bzero(entry->text, entry->len);
        mk_account_free(cache->account, entry->text, entry->len);
    }
    *entry = (struct entry){0};
}

void forward_cache_free(struct forward_cache *cache)
{
    if (!cache)
        return;
    for (unsigned i = 0; i < FORWARD_CACHE_SETS * FORWARD_CACHE_WAYS; i++)
        clear_entry(cache, &cache->entries[i / FORWARD_CACHE_WAYS][i % FORWARD_CACHE_WAYS]);
    explicit_bzero(cache->key, sizeof(cache->key));
    mk_account_free(cache->account, cache, sizeof(*cache));
}

bool forward_cache_hash(const struct forward_cache *cache, const void *owner, struct mk_str subject,
                        struct mk_str deciding, unsigned char digest[FORWARD_DIGEST_BYTES])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool done = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) &&
                EVP_DigestUpdate(ctx, cache->key, sizeof(cache->key)) && EVP_DigestUpdate(ctx, &owner, sizeof(owner)) &&
                EVP_DigestUpdate(ctx, &subject.len, sizeof(subject.len)) &&
                EVP_DigestUpdate(ctx, subject.p, subject.len) && EVP_DigestUpdate(ctx, deciding.p, deciding.len) &&
                EVP_DigestFinal_ex(ctx, digest, NULL);
    EVP_MD_CTX_free(ctx);
    return done;
}

static struct entry *find_entry(struct forward_cache *cache, const unsigned char *digest)
{
    struct entry *set = cache->entries[digest[0] % FORWARD_CACHE_SETS];
    for (unsigned i = 0; i < FORWARD_CACHE_WAYS; i++)
        if (set[i].used && CRYPTO_memcmp(set[i].digest, digest, FORWARD_DIGEST_BYTES) == 0)
            return &set[i];
    return NULL;
}

static struct entry *find_oldest(struct forward_cache *cache, const unsigned char *digest)
{
    struct entry *set = cache->entries[digest[0] % FORWARD_CACHE_SETS], *oldest = set;
    for (unsigned i = 1; i < FORWARD_CACHE_WAYS; i++)
        if (set[i].used < oldest->used)
            oldest = &set[i];
    return oldest;
}

bool forward_cache_find(struct forward_cache *cache, const unsigned char digest[FORWARD_DIGEST_BYTES], uint64_t now_ms,
                        struct forward_answer *ret)
{
    struct entry *entry = find_entry(cache, digest);
    if (entry && now_ms >= entry->end_ms) {
        clear_entry(cache, entry);
        entry = NULL;
    }
    if (!entry)
        return false;
    const char *at = entry->text ? entry->text : "";
    *ret = (struct forward_answer){.n = entry->n};
    for (uint32_t i = 0; i <= entry->n; i++) {
        if (entry->lens[i] == ABSENT)
            continue;
        *(i < entry->n ? &ret->values[i] : &ret->user) = mk_str(at, entry->lens[i]);
        at += entry->lens[i];
    }
    entry->used = ++cache->calls;
    return true;
}

static struct mk_str get_text(const struct forward_answer *answer, uint32_t nth)
{
    return nth < answer->n ? answer->values[nth] : answer->user;
}

static size_t count_bytes(const struct forward_answer *answer)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i <= answer->n; i++)
        bytes += get_text(answer, i).len;
    return bytes;
}

void forward_cache_add(struct forward_cache *cache, const unsigned char digest[FORWARD_DIGEST_BYTES], uint64_t end_ms,
                       const struct forward_answer *answer)
{
    size_t bytes = count_bytes(answer), at = 0;
    struct entry *entry = find_entry(cache, digest);
    entry = entry ? entry : find_oldest(cache, digest);
    char *text = bytes && bytes <= FORWARD_CACHE_TEXT_MAX ? mk_account_alloc(cache->account, bytes) : NULL;
    clear_entry(cache, entry);
    if (bytes && !text)
        return;
    *entry =
        (struct entry){.end_ms = end_ms, .used = ++cache->calls, .text = text, .n = answer->n, .len = (uint32_t)bytes};
    memcpy(entry->digest, digest, FORWARD_DIGEST_BYTES);
    for (uint32_t i = 0; i <= answer->n; i++) {
        struct mk_str value = get_text(answer, i);
        if (value.len)
            memcpy(text + at, value.p, value.len);
        at += value.len;
        entry->lens[i] = value.p ? (uint16_t)value.len : ABSENT;
    }
}
