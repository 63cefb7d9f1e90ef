// SPDX-License-Identifier: Apache-2.0
/*
 * The cache of right credentials: sets of four entries, found by the first bytes of the key.
 */
#include "rules.h"

#include <monkey/base/arena.h>
#include <monkey/base/random.h>

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>

enum { WAYS = 4, SETS = CACHE_ENTRIES / WAYS, TEXT_BYTES = 1100 };

struct cache_entry {
    struct cache_key key;
    uint64_t until_ms; /* 0: free */
};

struct cache {
    uint8_t secret[CACHE_KEY_BYTES];
    pthread_mutex_t lock; /* held for moments; guards the entries */
    struct cache_entry entries[SETS][WAYS];
};

struct cache *cache_new(void)
{
    struct cache *c = mk_account_zalloc(NULL, sizeof(*c));
    if (!c)
        return NULL;
    if (mk_random(c->secret, sizeof(c->secret)) < 0) {
        mk_account_free(NULL, c, sizeof(*c));
        return NULL;
    }
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    pthread_mutex_destroy(&c->lock);
    explicit_bzero(c, sizeof(*c));
    mk_account_free(NULL, c, sizeof(*c));
}

/* Adds a string with its length before it, so that no two lists of strings are the same bytes. */
static size_t add_text(char *to, size_t at, struct mk_str text)
{
    uint32_t len = (uint32_t)text.len;
    assert(at + sizeof(len) + text.len <= TEXT_BYTES); /* callers have checked the lengths */
    memcpy(to + at, &len, sizeof(len));
    if (len)
        memcpy(to + at + sizeof(len), text.p, len);
    return at + sizeof(len) + len;
}

bool cache_make_key(const struct cache *c, struct mk_str stored, struct mk_str user, struct mk_str password,
                    struct cache_key *ret)
{
    MK_UNINITIALIZED char text[TEXT_BYTES];
    unsigned len = CACHE_KEY_BYTES;
    size_t n = add_text(text, add_text(text, add_text(text, 0, stored), user), password);
    bool made = HMAC(EVP_sha256(), c->secret, sizeof(c->secret), (unsigned char *)text, n, ret->bytes, &len) != NULL;
    explicit_bzero(text, n);
    return made;
}

static struct cache_entry *find_set(struct cache *c, const struct cache_key *key)
{
    uint32_t n;
    memcpy(&n, key->bytes, sizeof(n));
    return c->entries[n % SETS];
}

bool cache_is_same(const struct cache_key *a, const struct cache_key *b)
{
    return CRYPTO_memcmp(a->bytes, b->bytes, CACHE_KEY_BYTES) == 0;
}

bool cache_has(struct cache *c, const struct cache_key *key, uint64_t now_ms)
{
    struct cache_entry *set = find_set(c, key);
    bool found = false;
    pthread_mutex_lock(&c->lock);
    for (unsigned i = 0; i < WAYS; i++)
        found |= set[i].until_ms > now_ms && cache_is_same(&set[i].key, key);
    pthread_mutex_unlock(&c->lock);
    return found;
}

void cache_add(struct cache *c, const struct cache_key *key, uint64_t now_ms, uint32_t ms)
{
    struct cache_entry *set = find_set(c, key), *to = set;
    pthread_mutex_lock(&c->lock);
    for (unsigned i = 0; i < WAYS; i++) {
        if (cache_is_same(&set[i].key, key)) {
            to = &set[i];
            break;
        }
        if (set[i].until_ms < to->until_ms)
            to = &set[i];
    }
    to->key = *key;
    to->until_ms = now_ms + ms;
    pthread_mutex_unlock(&c->lock);
}

uint32_t cache_pick(const struct cache *c, struct mk_str name, uint32_t n)
{
    struct cache_key key;
    uint32_t number = 0;
    assert(n > 0);
    if (cache_make_key(c, MK_STR("pick"), name, MK_STR(""), &key))
        memcpy(&number, key.bytes, sizeof(number));
    return number % n;
}
