// SPDX-License-Identifier: Apache-2.0
/* From a field to a decision, and what is answered. */
#include "plugins/auth/token_cache.h"

#include "tokens.h"

#include <pthread.h>

TEST(fields, tokens_setup, tokens_teardown)
{
    static const struct {
        const char *value;
        enum token_result result;
        const char *token;
    } cases[] = {
        {"Bearer abc.def.ghi", TOKEN_OK, "abc.def.ghi"},
        {"bearer  A-._~+/09==\t", TOKEN_OK, "A-._~+/09=="},
        {" BEARER\tx", TOKEN_OK, "x"},
        {NULL, TOKEN_ABSENT, NULL},
        {"", TOKEN_ABSENT, NULL},
        {"Bear", TOKEN_ABSENT, NULL},
        {"Basic YTpi", TOKEN_ABSENT, NULL},
        {"Bearerx abc", TOKEN_ABSENT, NULL},
        {"Bearer,abc", TOKEN_ABSENT, NULL},
        {"Bearer", TOKEN_SYNTAX, NULL},
        {"Bearer ", TOKEN_SYNTAX, NULL},
        {"Bearer a b", TOKEN_SYNTAX, NULL},
        {"Bearer a, Bearer b", TOKEN_SYNTAX, NULL},
        {"Bearer \"a\"", TOKEN_SYNTAX, NULL},
        {"Bearer token=a\x80", TOKEN_SYNTAX, NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_str token = MK_STR_NONE;
        if (bearer_find(mk_str_c(cases[i].value), &token) != cases[i].result)
            fail_msg("%s", cases[i].value);
        if (cases[i].token)
            assert_str_equal(token, cases[i].token);
    }
}

TEST(challenges, tokens_setup, tokens_teardown)
{
    static const struct mk_str scopes[] = {{"read", 4}, {"a\"b\\", 4}};
    static const struct claims_rules rules = {.scopes = {scopes, 2}};
    static const struct {
        enum token_result result;
        const char *value;
    } cases[] = {
        {TOKEN_ABSENT, "Bearer realm=\"a\\\"pi\\\\\xc3\xa9\""},
        {TOKEN_SYNTAX, "Bearer realm=\"a\\\"pi\\\\\xc3\xa9\", error=\"invalid_request\", "
                       "error_description=\"Authorization does not hold "
                       "one bearer token\""},
        {TOKEN_EXPIRED,
         "Bearer realm=\"a\\\"pi\\\\\xc3\xa9\", error=\"invalid_token\", error_description=\"the token has expired\""},
        {TOKEN_SCOPE, "Bearer realm=\"a\\\"pi\\\\\xc3\xa9\", error=\"insufficient_scope\", error_description=\"the "
                      "token lacks a required "
                      "scope\", scope=\"read a\\\"b\\\\\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_buf out;
        mk_buf_init(&out, 1024);
        bearer_challenge(&out, MK_STR("a\"p\r\ni\\\x7f\xc3\xa9"), cases[i].result, &rules);
        assert_str_equal(mk_buf_str(&out), cases[i].value);
        mk_buf_release(&out);
    }
}

/* No reason ends the quoted string that it is in. */
TEST(meanings, tokens_setup, tokens_teardown)
{
    for (enum token_result result = 0; result < TOKEN_RESULTS; result++) {
        const struct token_meaning *meaning = token_result_meaning(result);
        assert_int_equal(meaning->status == 0, result == TOKEN_OK);
        assert_null(strpbrk(meaning->reason, "\"\\\r\n"));
        assert_int_equal(!!meaning->error, meaning->status == 403 || meaning->status == 400 ||
                                               (meaning->status == 401 && result != TOKEN_ABSENT));
    }
}

TEST(claims_of_a_decision, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    EVP_PKEY *key = tokens_make_key(JWS_EDDSA);
    const char *payload = "{\"sub\":\"ada\",\"scope\":\"read write\",\"exp\":2000}";
    tokens_add_key(t, key, "1");
    struct bearer_decision d = tokens_decide(t, tokens_sign(t, key, "{\"alg\":\"EdDSA\",\"kid\":\"1\"}", payload),
                                             &(struct claims_rules){.leeway_s = 5}, 1999999);
    assert_int_equal(d.result, TOKEN_OK);
    assert_str_equal(d.subject, "ada");
    assert_str_equal(d.scope, "read write");
    assert_str_equal(d.claims, payload);
    assert_null(d.issuer.p);
    assert_true(d.end_ms == 2005000);
    d = tokens_decide(t, mk_buf_str(&t->token), &(struct claims_rules){0}, 2000000);
    assert_int_equal(d.result, TOKEN_EXPIRED);
    assert_null(d.claims.p); /* what was refused is not handed out */
    assert_null(d.subject.p);
    EVP_PKEY_free(key);
}

TEST(results, tokens_setup, tokens_teardown)
{
    static const struct {
        const char *header, *payload;
        enum token_result result;
    } cases[] = {
        {"{\"alg\":\"HS256\"}", "{}", TOKEN_OK},
        {"{\"alg\":\"HS256\",\"kid\":\"dev/null\"}", "{}", TOKEN_OK}, /* a name, and no path */
        {"{\"alg\":\"ES256\"}", "{}", TOKEN_KEY},
        {"{\"alg\":\"none\"}", "{}", TOKEN_ALGORITHM},
        {"{\"alg\":\"HS256\"}", "", TOKEN_PAYLOAD},
        {"{\"alg\":\"HS256\"}", "[]", TOKEN_PAYLOAD},
        {"{\"alg\":\"HS256\"}", "eyJhbGciOiJub25lIn0.e30.", TOKEN_PAYLOAD},
        {"{\"alg\":\"HS256\"}", "{\"exp\":1,\"exp\":9999999999}", TOKEN_PAYLOAD},
        {"{\"alg\":\"HS256\"}", "{\"exp\":99999999999999999999999999999999}", TOKEN_PAYLOAD},
        {"{\"alg\":\"HS256\"}", "{\"exp\":1}", TOKEN_EXPIRED},
        {"{\"alg\":\"HS256\"}", "{\"sub\":1}", TOKEN_CLAIM_TYPE},
        {"{\"alg\":\"HS256\"}", "{\"aud\":\"x\"}", TOKEN_AUDIENCE},
    };
    struct tokens *t = *state;
    struct claims_rules rules = {.expiry_optional = true};
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    tokens_add_key(t, key, NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_str token = tokens_sign(t, key, cases[i].header, cases[i].payload);
        enum token_result result = tokens_decide(t, token, &rules, 5000).result;
        if (result != cases[i].result)
            fail_msg("%s %s: %s", cases[i].header, cases[i].payload, token_result_meaning(result)->reason);
    }
    EVP_PKEY_free(key);
}

/* A token without a kid may cost a few signatures only. */
TEST(tried_keys, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    struct claims_rules rules = {.expiry_optional = true};
    EVP_PKEY *keys[KEY_SET_TRIED_MAX + 1];
    char kid[] = "a";
    for (unsigned i = 0; i < COUNT(keys); i++, kid[0]++) {
        keys[i] = tokens_make_key(JWS_EDDSA);
        tokens_add_key(t, keys[i], kid);
    }
    for (unsigned i = 0; i < COUNT(keys); i++) {
        struct mk_str token = tokens_sign(t, keys[i], "{\"alg\":\"EdDSA\"}", "{}");
        assert_int_equal(tokens_decide(t, token, &rules, 0).result, i < KEY_SET_TRIED_MAX ? TOKEN_OK : TOKEN_SIGNATURE);
    }
    struct mk_str token = tokens_sign(t, keys[KEY_SET_TRIED_MAX], "{\"alg\":\"EdDSA\",\"kid\":\"e\"}", "{}");
    assert_int_equal(tokens_decide(t, token, &rules, 0).result, TOKEN_OK);
    for (unsigned i = 0; i < COUNT(keys); i++)
        EVP_PKEY_free(keys[i]);
}

/* ── threads ── */

enum { THREADS = 4, ROUNDS = 50 };

struct thread {
    pthread_t id;
    const struct key_set *keys;
    struct mk_str tokens[JWS_ALGS];
    unsigned right;
};

static void *decide_often(void *ctx)
{
    struct thread *thread = ctx;
    struct claims_rules rules = {.expiry_optional = true};
    struct text_cache *cache = text_cache_new(NULL, TOKEN_CACHE_SETS, TOKEN_CACHE_BYTES_MAX); /* as a worker has one */
    for (unsigned i = 0; i < ROUNDS * JWS_ALGS; i++) {
        struct bearer_decision d, same;
        struct mk_arena arena;
        mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
        bearer_decide(&d, thread->tokens[i % JWS_ALGS], thread->keys, &rules, 0, &arena);
        token_cache_decide(cache, &same, thread->tokens[i % JWS_ALGS], thread->keys, &rules, 0, &arena);
        thread->right += d.result == TOKEN_OK && same.result == TOKEN_OK;
        mk_arena_release(&arena);
    }
    text_cache_free(cache);
    return NULL;
}

/* Workers read one set of keys without a lock. */
TEST(threads, tokens_setup, tokens_teardown)
{
    static const char *const headers[] = {"{\"alg\":\"HS256\"}", "{\"alg\":\"RS256\"}", "{\"alg\":\"ES256\"}",
                                          "{\"alg\":\"EdDSA\"}"};
    struct tokens *t = *state;
    struct thread threads[THREADS] = {0};
    for (unsigned alg = 0; alg < JWS_ALGS; alg++) {
        EVP_PKEY *key = tokens_make_key(alg);
        tokens_add_key(t, key, NULL);
        struct mk_str token = mk_arena_dup(&t->arena, tokens_sign(t, key, headers[alg], "{\"sub\":\"ada\"}"));
        for (unsigned i = 0; i < THREADS; i++)
            threads[i].tokens[alg] = token;
        EVP_PKEY_free(key);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i].keys = t->keys;
        assert_int_equal(pthread_create(&threads[i].id, NULL, decide_often, &threads[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i].id, NULL);
        assert_int_equal(threads[i].right, ROUNDS * JWS_ALGS);
    }
}

/* ── memory ── */

static int decide_with_little_memory(void *ctx)
{
    struct tokens *t = ctx;
    struct mk_arena arena;
    struct bearer_decision d;
    struct claims_rules rules = {.expiry_optional = true};
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    bearer_decide(&d, mk_buf_str(&t->token), t->keys, &rules, 0, &arena);
    assert_true(d.result == TOKEN_OK ? d.subject.len == 3 : d.result == TOKEN_MEMORY);
    mk_arena_release(&arena);
    return d.result == TOKEN_OK ? 0 : -1;
}

TEST(little_memory, tokens_setup, tokens_teardown)
{
    struct tokens *t = *state;
    EVP_PKEY *key = tokens_make_key(JWS_HS256);
    char payload[3000];
    tokens_add_key(t, key, NULL);
    snprintf(payload, sizeof(payload), "{\"sub\":\"ada\",\"x\":\"%02000d\"}", 0);
    tokens_sign(t, key, "{\"alg\":\"HS256\",\"kid\":\"1\"}", payload);
    assert_true(mk_test_failing_allocs(decide_with_little_memory, t) >= 2);
    EVP_PKEY_free(key);
}
