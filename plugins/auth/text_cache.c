// SPDX-License-Identifier: Apache-2.0
#include "token.h"

#include <monkey/base/random.h>

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#define ABSENT UINT16_MAX /* a length */

struct entry {
    unsigned char digest[TEXT_CACHE_DIGEST_BYTES];
    int64_t end_ms;
    uint64_t used; /* the number of the call that used it last; 0: the entry is free */
    char *text;    /* the texts, one after the other; NULL: all are empty */
    uint32_t n, len;
    uint16_t lens[TEXT_CACHE_TEXTS_MAX];
};

struct text_cache {
    struct mk_account *account;
    unsigned char key[TEXT_CACHE_DIGEST_BYTES];
    uint64_t calls, hits;
    size_t bytes_max;
    unsigned sets;
    struct entry entries[][TEXT_CACHE_WAYS];
};

static size_t get_cache_bytes(unsigned sets)
{
    return sizeof(struct text_cache) + sets * sizeof(struct entry[TEXT_CACHE_WAYS]);
}

struct text_cache *text_cache_new(struct mk_account *account, unsigned sets, size_t bytes_max)
{
    assert(sets && sets <= 256 && bytes_max < ABSENT);
    struct text_cache *cache = mk_account_zalloc(account, get_cache_bytes(sets));
    if (!cache)
        return NULL;
    cache->account = account;
    cache->sets = sets;
    cache->bytes_max = bytes_max;
    if (mk_random(cache->key, sizeof(cache->key)) == 0)
        return cache;
    mk_account_free(account, cache, get_cache_bytes(sets));
    return NULL;
}

static void clear_entry(struct text_cache *cache, struct entry *entry)
{
    if (entry->text) {
        explicit_bzero(entry->text, entry->len);
        mk_account_free(cache->account, entry->text, entry->len);
    }
    *entry = (struct entry){0};
}

void text_cache_free(struct text_cache *cache)
{
    if (!cache)
        return;
    for (unsigned i = 0; i < cache->sets * TEXT_CACHE_WAYS; i++)
        clear_entry(cache, &cache->entries[i / TEXT_CACHE_WAYS][i % TEXT_CACHE_WAYS]);
    explicit_bzero(cache->key, sizeof(cache->key));
    mk_account_free(cache->account, cache, get_cache_bytes(cache->sets));
}

uint64_t text_cache_hits(const struct text_cache *cache)
{
    return cache->hits;
}

/* Each part has its length before it, so that no two lists of parts are the same bytes. */
bool text_cache_hash(const struct text_cache *cache, const struct mk_str *parts, unsigned n,
                     unsigned char digest[TEXT_CACHE_DIGEST_BYTES])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool done =
        ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) && EVP_DigestUpdate(ctx, cache->key, sizeof(cache->key));
    for (unsigned i = 0; i < n && done; i++)
        done = EVP_DigestUpdate(ctx, &parts[i].len, sizeof(parts[i].len)) &&
               EVP_DigestUpdate(ctx, parts[i].p, parts[i].len);
    done = done && EVP_DigestFinal_ex(ctx, digest, NULL);
    EVP_MD_CTX_free(ctx);
    return done;
}

static struct entry *find_entry(struct text_cache *cache, const unsigned char *digest)
{
    struct entry *set = cache->entries[digest[0] % cache->sets];
    for (unsigned i = 0; i < TEXT_CACHE_WAYS; i++)
        if (set[i].used && CRYPTO_memcmp(set[i].digest, digest, TEXT_CACHE_DIGEST_BYTES) == 0)
            return &set[i];
    return NULL;
}

static struct entry *find_oldest(struct text_cache *cache, const unsigned char *digest)
{
    struct entry *set = cache->entries[digest[0] % cache->sets], *oldest = set;
    for (unsigned i = 1; i < TEXT_CACHE_WAYS; i++)
        if (set[i].used < oldest->used)
            oldest = &set[i];
    return oldest;
}

bool text_cache_find(struct text_cache *cache, const unsigned char digest[TEXT_CACHE_DIGEST_BYTES], int64_t now_ms,
                     struct mk_str *ret_texts, unsigned n, int64_t *ret_end_ms)
{
    struct entry *entry = find_entry(cache, digest);
    if (entry && now_ms >= entry->end_ms) {
        clear_entry(cache, entry);
        entry = NULL;
    }
    if (!entry)
        return false;
    assert(entry->n == n);
    const char *at = entry->text ? entry->text : "";
    for (unsigned i = 0; i < n; i++) {
        bool is_absent = entry->lens[i] == ABSENT;
        ret_texts[i] = is_absent ? MK_STR_NONE : mk_str(at, entry->lens[i]);
        at += ret_texts[i].len;
    }
    if (ret_end_ms)
        *ret_end_ms = entry->end_ms;
    entry->used = ++cache->calls;
    cache->hits++;
    return true;
}

void text_cache_add(struct text_cache *cache, const unsigned char digest[TEXT_CACHE_DIGEST_BYTES], int64_t end_ms,
                    const struct mk_str *texts, unsigned n)
{
    size_t bytes = 0, at = 0;
    struct entry *entry = find_entry(cache, digest);
    assert(n <= TEXT_CACHE_TEXTS_MAX);
    for (unsigned i = 0; i < n; i++)
        bytes += texts[i].len;
    entry = entry ? entry : find_oldest(cache, digest);
    clear_entry(cache, entry);
    char *text = bytes && bytes <= cache->bytes_max ? mk_account_alloc(cache->account, bytes) : NULL;
    if (bytes && !text)
        return;
    *entry = (struct entry){.end_ms = end_ms, .used = ++cache->calls, .text = text, .n = n, .len = (uint32_t)bytes};
    memcpy(entry->digest, digest, TEXT_CACHE_DIGEST_BYTES);
    for (unsigned i = 0; i < n; i++) {
        if (texts[i].len)
            memcpy(text + at, texts[i].p, texts[i].len);
        at += texts[i].len;
        entry->lens[i] = texts[i].p ? (uint16_t)texts[i].len : ABSENT;
    }
}
