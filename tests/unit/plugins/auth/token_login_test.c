// SPDX-License-Identifier: Apache-2.0
#include "plugins/auth/token.h"
#include "tokens.h"

static const struct claims_rules rules;

static struct bearer_decision decide(struct tokens *t, struct text_cache *cache, struct mk_str token,
                                     const struct claims_rules *which, int64_t now_ms)
{
    struct bearer_decision d;
    token_cache_decide(cache, &d, token, t->keys, which, now_ms, &t->arena);
    return d;
}

static struct mk_str sign(struct tokens *t, EVP_PKEY *key, unsigned nth)
{
    char payload[128];
    snprintf(payload, sizeof(payload), "{\"sub\":\"user%u\",\"scope\":\"\",\"exp\":100}", nth);
    return tokens_sign(t, key, "{\"alg\":\"HS256\"}", payload);
}

TEST(hits, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    struct text_cache *cache = text_cache_new(NULL, TOKEN_CACHE_SETS, TOKEN_CACHE_BYTES_MAX);
    tokens_add_key(t, key, NULL);
    struct mk_str token = sign(t, key, 1);
    for (unsigned i = 0; i < 3; i++) {
        struct bearer_decision d = decide(t, cache, token, &rules, 50000);
        assert_int_equal(d.result, TOKEN_OK);
        assert_str_equal(d.subject, "user1");
        assert_str_equal(d.claims, "{\"sub\":\"user1\",\"scope\":\"\",\"exp\":100}");
        assert_non_null(d.scope.p);
        assert_int_equal(d.scope.len, 0);
        assert_null(d.issuer.p);
        assert_true(d.end_ms == 100000);
        assert_true(text_cache_hits(cache) == i);
    }
    text_cache_free(cache);
    assert_int_equal(decide(t, NULL, token, &rules, 50000).result, TOKEN_OK); /* without a cache */
    EVP_PKEY_free(key);
}

TEST(expiry, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    struct text_cache *cache = text_cache_new(NULL, TOKEN_CACHE_SETS, TOKEN_CACHE_BYTES_MAX);
    tokens_add_key(t, key, NULL);
    struct mk_str token = sign(t, key, 1);
    assert_int_equal(decide(t, cache, token, &rules, 0).result, TOKEN_OK);
    assert_int_equal(decide(t, cache, token, &rules, 99999).result, TOKEN_OK);
    assert_int_equal(decide(t, cache, token, &rules, 100000).result, TOKEN_EXPIRED);
    assert_true(text_cache_hits(cache) == 1);
    text_cache_free(cache);
    EVP_PKEY_free(key);
}

/* Other rules, other keys and other tokens do not find the entry. */
TEST(misses, tokens_setup, tokens_teardown)
{
    static const struct mk_str issuer[] = {{"x", 1}};
    static const struct claims_rules others = {.issuers = {issuer, 1}};
    struct tokens *t = *state;
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    struct text_cache *cache = text_cache_new(NULL, TOKEN_CACHE_SETS, TOKEN_CACHE_BYTES_MAX);
    char copy[256];
    assert_int_equal(keys_read(t->keys, KEYS_SECRET, "x", MK_STR(SECRET), &t->message), 0);
    struct mk_str token = sign(t, key, 1);
    assert_int_equal(decide(t, cache, token, &rules, 0).result, TOKEN_OK);
    assert_int_equal(decide(t, cache, token, &others, 0).result, TOKEN_ISSUER);
    for (size_t at = 0; at < token.len; at++) {
        memcpy(copy, token.p, token.len);
        copy[at] = (char)(copy[at] ^ 1);
        assert_int_not_equal(decide(t, cache, mk_str(copy, token.len), &rules, 0).result, TOKEN_OK);
    }
    assert_int_not_equal(decide(t, cache, mk_str(token.p, token.len - 1), &rules, 0).result, TOKEN_OK);
    key_set_free(t->keys); /* the secret was changed, as a watched file does */
    t->keys = key_set_new();
    assert_int_equal(keys_read(t->keys, KEYS_SECRET, "x", MK_STR(SECRET "2"), &t->message), 0);
    assert_int_equal(decide(t, cache, token, &rules, 0).result, TOKEN_SIGNATURE);
    assert_true(text_cache_hits(cache) == 0);
    text_cache_free(cache);
    EVP_PKEY_free(key);
}

/* Many tokens replace one another; bad ones replace nothing. */
TEST(replacement, tokens_setup, tokens_teardown)
{
    enum { TOKENS = 4 * TOKEN_CACHE_SETS * TEXT_CACHE_WAYS };
    struct tokens *t = *state;
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    struct mk_account account = {0};
    struct text_cache *cache = text_cache_new(&account, TOKEN_CACHE_SETS, TOKEN_CACHE_BYTES_MAX);
    tokens_add_key(t, key, NULL);
    size_t empty = account.bytes;
    for (unsigned i = 0; i < TOKENS; i++)
        assert_int_equal(decide(t, cache, sign(t, key, i), &rules, 0).result, TOKEN_OK);
    assert_true(text_cache_hits(cache) == 0);
    size_t full = account.bytes;
    assert_true(full > empty && full < empty + TOKEN_CACHE_SETS * TEXT_CACHE_WAYS * 64);
    assert_int_equal(decide(t, cache, sign(t, key, TOKENS - 1), &rules, 0).result, TOKEN_OK);
    assert_true(text_cache_hits(cache) == 1);
    for (unsigned i = 0; i < TOKENS; i++)
        decide(t, cache, MK_STR("eyJhbGciOiJIUzI1NiJ9.e30.AAAA"), &rules, 0);
    assert_int_equal(decide(t, cache, sign(t, key, TOKENS - 1), &rules, 0).result, TOKEN_OK);
    assert_true(text_cache_hits(cache) == 2);
    assert_true(account.bytes == full);
    text_cache_free(cache);
    assert_true(account.bytes == 0);
    EVP_PKEY_free(key);
}

/* Without memory for an entry the decision is still right. */
TEST(little_memory, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    struct mk_account account = {0};
    struct text_cache *cache = text_cache_new(&account, TOKEN_CACHE_SETS, TOKEN_CACHE_BYTES_MAX);
    tokens_add_key(t, key, NULL);
    account.bytes_max = account.bytes;
    struct mk_str token = sign(t, key, 1);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(decide(t, cache, token, &rules, 0).result, TOKEN_OK);
    assert_true(text_cache_hits(cache) == 0);
    text_cache_free(cache);
    assert_null(text_cache_new(&(struct mk_account){.bytes_max = 1}, TOKEN_CACHE_SETS, TOKEN_CACHE_BYTES_MAX));
    EVP_PKEY_free(key);
}

static const struct claims_rules other_rules[3];

/* Decides as token_login_holds() does. Returns how many of the decisions took a verification. */
static unsigned count_verifications(struct tokens *t, struct token_refusal **first, struct mk_str token, unsigned times)
{
    unsigned verified = 0;
    for (unsigned i = 0; i < times; i++) {
        struct bearer_decision d;
        const struct claims_rules *which = &other_rules[i % COUNT(other_rules)];
        if (token_refusals_has(*first, which, t->keys))
            continue;
        verified++;
        bearer_decide(&d, token, t->keys, which, 0, &t->arena);
        assert_int_equal(d.result, TOKEN_SIGNATURE);
        *first = token_refusals_add(*first, which, t->keys, &t->arena);
        assert_non_null(*first);
    }
    return verified;
}

static void change_keys(struct tokens *t, struct mk_str secret)
{
    key_set_free(t->keys);
    t->keys = key_set_new();
    assert_int_equal(keys_read(t->keys, KEYS_SECRET, "x", secret, &t->message), 0);
}

TEST(a_forged_token, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    struct token_refusal *first = NULL;
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    struct mk_str token = tokens_sign(t, key, "{\"alg\":\"HS256\"}", "{\"sub\":\"ada\",\"exp\":100}");
    change_keys(t, MK_STR(SECRET "1"));
    assert_int_equal(count_verifications(t, &first, token, 1), 1);
    assert_int_equal(count_verifications(t, &first, token, 100000), COUNT(other_rules) - 1);
    change_keys(t, MK_STR(SECRET "2"));
    assert_int_equal(count_verifications(t, &first, token, 100000), COUNT(other_rules));
    change_keys(t, MK_STR(SECRET "1")); /* the keys of before */
    assert_int_equal(count_verifications(t, &first, token, 100000), 0);
    EVP_PKEY_free(key);
}

/* Without memory the list is as before. */
TEST(no_memory, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    struct mk_arena arena;
    change_keys(t, MK_STR(SECRET));
    struct token_refusal *first = token_refusals_add(NULL, &other_rules[0], t->keys, &t->arena);
    mk_arena_init(&arena, NULL, 1, NULL, 0);
    assert_null(token_refusals_add(first, &other_rules[1], t->keys, &arena));
    mk_arena_release(&arena);
    assert_true(token_refusals_has(first, &other_rules[0], t->keys));
    assert_false(token_refusals_has(first, &other_rules[1], t->keys));
}
