// SPDX-License-Identifier: Apache-2.0
/* A set-associative cache of decisions (token_cache.h). */
#include "token_cache.h"

#include <openssl/rand.h>

enum { DIGEST_BYTES = 32, TEXTS = 4 };

struct entry {
    unsigned char digest[DIGEST_BYTES];
    int64_t end_ms;
    uint64_t used; /* the number of the decision that used it last; 0: the entry is free */
    char *texts;   /* subject, issuer, scope and claims, one behind the other */
    size_t lens[TEXTS], len;
    bool absent[TEXTS];
};

struct token_cache {
    struct mk_account *account;
    unsigned char key[DIGEST_BYTES];
    uint64_t decisions, hits;
    struct entry entries[TOKEN_CACHE_SETS][TOKEN_CACHE_WAYS];
};

struct token_cache *token_cache_new(struct mk_account *account)
{
    struct token_cache *cache = mk_account_alloc(account, sizeof(*cache));
    if (!cache)
        return NULL;
    memset(cache, 0, sizeof(*cache));
    cache->account = account;
    if (RAND_bytes(cache->key, sizeof(cache->key)) == 1)
        return cache;
    mk_account_free(account, cache, sizeof(*cache));
    return NULL;
}

static void clear_entry(struct token_cache *cache, struct entry *entry)
{
    if (entry->texts) {
        explicit_bzero(entry->texts, entry->len);
        mk_account_free(cache->account, entry->texts, entry->len);
    }
    *entry = (struct entry){0};
}

void token_cache_free(struct token_cache *cache)
{
    if (!cache)
        return;
    for (unsigned i = 0; i < TOKEN_CACHE_SETS * TOKEN_CACHE_WAYS; i++)
        clear_entry(cache, &cache->entries[i / TOKEN_CACHE_WAYS][i % TOKEN_CACHE_WAYS]);
    explicit_bzero(cache->key, sizeof(cache->key));
    mk_account_free(cache->account, cache, sizeof(*cache));
}

uint64_t token_cache_hits(const struct token_cache *cache)
{
    return cache->hits;
}

/* ── entries ── */

/* Hashes what a decision depends on; only the token has no fixed length. Returns false without memory. */
static bool hash_token(const struct token_cache *cache, struct mk_str token, const struct key_set *keys,
                       const struct claims_rules *rules, unsigned char *digest)
{
    struct mk_str id = key_set_id(keys);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool done = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) &&
                EVP_DigestUpdate(ctx, cache->key, sizeof(cache->key)) && EVP_DigestUpdate(ctx, &rules, sizeof(rules)) &&
                EVP_DigestUpdate(ctx, id.p, id.len) && EVP_DigestUpdate(ctx, token.p, token.len) &&
                EVP_DigestFinal_ex(ctx, digest, NULL);
    EVP_MD_CTX_free(ctx);
    return done;
}

static struct entry *set_of(struct token_cache *cache, const unsigned char *digest)
{
    return cache->entries[digest[0] % TOKEN_CACHE_SETS];
}

static struct entry *find_entry(struct token_cache *cache, const unsigned char *digest)
{
    struct entry *set = set_of(cache, digest);
    for (unsigned i = 0; i < TOKEN_CACHE_WAYS; i++)
        if (set[i].used && CRYPTO_memcmp(set[i].digest, digest, DIGEST_BYTES) == 0)
            return &set[i];
    return NULL;
}

static struct entry *find_oldest(struct token_cache *cache, const unsigned char *digest)
{
    struct entry *set = set_of(cache, digest), *oldest = set;
    for (unsigned i = 1; i < TOKEN_CACHE_WAYS; i++)
        if (set[i].used < oldest->used)
            oldest = &set[i];
    return oldest;
}

/* The texts of a decision, in the order in which an entry has them. */
static struct mk_str *text_of(struct bearer_decision *decision, unsigned nth)
{
    struct mk_str *texts[TEXTS] = {&decision->subject, &decision->issuer, &decision->scope, &decision->claims};
    return texts[nth];
}

/* Copies the decision of an entry. Returns false without memory. */
static bool copy_decision(struct bearer_decision *ret, const struct entry *entry, struct mk_arena *arena)
{
    struct mk_str texts = mk_arena_dup(arena, mk_str(entry->texts, entry->len));
    if (!texts.p)
        return false;
    *ret = (struct bearer_decision){.result = TOKEN_OK, .end_ms = entry->end_ms};
    for (unsigned i = 0; i < TEXTS; i++) {
        *text_of(ret, i) = entry->absent[i] ? MK_STR_NONE : mk_str(texts.p, entry->lens[i]);
        texts.p += entry->lens[i];
    }
    return true;
}

/* Keeps a decision, unless there is no memory. */
static void store_decision(struct token_cache *cache, const unsigned char *digest, struct bearer_decision *decision)
{
    struct entry *entry = find_oldest(cache, digest);
    size_t len = 0;
    clear_entry(cache, entry);
    for (unsigned i = 0; i < TEXTS; i++)
        len += text_of(decision, i)->len;
    entry->texts = mk_account_alloc(cache->account, len);
    if (!entry->texts)
        return;
    memcpy(entry->digest, digest, DIGEST_BYTES);
    entry->end_ms = decision->end_ms;
    entry->used = cache->decisions;
    for (unsigned i = 0; i < TEXTS; i++) {
        const struct mk_str *text = text_of(decision, i);
        if (text->len)
            memcpy(entry->texts + entry->len, text->p, text->len);
        entry->len += text->len;
        entry->lens[i] = text->len;
        entry->absent[i] = !text->p;
    }
}

/* ── decisions ── */

/* Returns true if `ret` is the decision of an entry that has not expired. */
static bool use_entry(struct token_cache *cache, const unsigned char *digest, struct bearer_decision *ret,
                      int64_t now_ms, struct mk_arena *arena)
{
    struct entry *entry = find_entry(cache, digest);
    if (entry && now_ms >= entry->end_ms) {
        clear_entry(cache, entry);
        entry = NULL;
    }
    if (!entry || !copy_decision(ret, entry, arena))
        return false;
    entry->used = cache->decisions;
    cache->hits++;
    return true;
}

void token_cache_decide(struct token_cache *cache, struct bearer_decision *ret, struct mk_str token,
                        const struct key_set *keys, const struct claims_rules *rules, int64_t now_ms,
                        struct mk_arena *arena)
{
    unsigned char digest[DIGEST_BYTES];
    bool hashed = cache && token.len <= JWS_BYTES_MAX && hash_token(cache, token, keys, rules, digest);
    if (hashed) {
        cache->decisions++;
        if (use_entry(cache, digest, ret, now_ms, arena))
            return;
    }
    bearer_decide(ret, token, keys, rules, now_ms, arena);
    if (hashed && ret->result == TOKEN_OK)
        store_decision(cache, digest, ret);
}
