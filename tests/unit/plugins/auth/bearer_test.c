// SPDX-License-Identifier: Apache-2.0
/* From a field to a decision, and what is answered. */
#include "plugins/auth/token.h"
#include "testing.h"
#include "tokens.h"

#include <pthread.h>

enum { NOW_S = 1800000000 };

static enum token_result check(const char *text, const struct claims_rules *rules, int64_t now_ms)
{
    json_t *claims = strict_json_read_object(mk_str_c(text), NULL);
    if (!claims)
        fail_msg("not JSON: %s", text);
    enum token_result result = claims_check(claims, rules, now_ms);
    json_decref(claims);
    return result;
}

struct claims_case {
    const char *text;
    enum token_result result;
};

static void check_cases(const struct claims_case *cases, size_t n, const struct claims_rules *rules)
{
    for (size_t i = 0; i < n; i++) {
        enum token_result result = check(cases[i].text, rules, (int64_t)NOW_S * 1000);
        if (result != cases[i].result)
            fail_msg("%s: %s", cases[i].text, token_result_meaning(result)->reason);
    }
}

TEST(times)
{
    static const struct claims_case cases[] = {
        {"{}", TOKEN_NO_EXPIRY},
        {"{\"exp\":1800000001}", TOKEN_OK},
        {"{\"exp\":1800000000.001}", TOKEN_OK},
        {"{\"exp\":1800000000}", TOKEN_EXPIRED},
        {"{\"exp\":1799999999.999}", TOKEN_EXPIRED},
        {"{\"exp\":0}", TOKEN_EXPIRED},
        {"{\"exp\":-1}", TOKEN_EXPIRED},
        {"{\"exp\":1.8000000005e9}", TOKEN_OK},
        {"{\"exp\":253402300799}", TOKEN_OK},
        {"{\"exp\":253402300800}", TOKEN_CLAIM_TYPE},
        {"{\"exp\":1800000001000}", TOKEN_CLAIM_TYPE}, /* milliseconds */
        {"{\"exp\":9223372036854775807}", TOKEN_CLAIM_TYPE},
        {"{\"exp\":-9223372036854775808}", TOKEN_CLAIM_TYPE},
        {"{\"exp\":1e308}", TOKEN_CLAIM_TYPE},
        {"{\"exp\":-1e308}", TOKEN_CLAIM_TYPE},
        {"{\"exp\":\"1800000001\"}", TOKEN_CLAIM_TYPE},
        {"{\"exp\":null}", TOKEN_CLAIM_TYPE},
        {"{\"exp\":true}", TOKEN_CLAIM_TYPE},
        {"{\"exp\":[1800000001]}", TOKEN_CLAIM_TYPE},
        {"{\"EXP\":1800000001}", TOKEN_NO_EXPIRY},
        {"{\"exp\":1800000001,\"nbf\":1800000000}", TOKEN_OK},
        {"{\"exp\":1800000001,\"nbf\":1800000000.5}", TOKEN_NOT_YET},
        {"{\"exp\":1800000001,\"nbf\":1800000001}", TOKEN_NOT_YET},
        {"{\"exp\":1800000001,\"nbf\":\"0\"}", TOKEN_CLAIM_TYPE},
        {"{\"exp\":1800000001,\"iat\":1700000000.25}", TOKEN_OK},
        {"{\"exp\":1800000001,\"iat\":\"now\"}", TOKEN_CLAIM_TYPE},
    };
    check_cases(cases, COUNT(cases), &(struct claims_rules){0});
}

TEST(leeway)
{
    static const struct claims_case cases[] = {
        {"{\"exp\":1799999941}", TOKEN_OK},
        {"{\"exp\":1799999940}", TOKEN_EXPIRED},
        {"{\"exp\":1900000000,\"nbf\":1800000060}", TOKEN_OK},
        {"{\"exp\":1900000000,\"nbf\":1800000061}", TOKEN_NOT_YET},
        {"{}", TOKEN_OK},
    };
    check_cases(cases, COUNT(cases), &(struct claims_rules){.leeway_s = 60, .expiry_optional = true});
}

TEST(issuer)
{
    static const struct mk_str issuers[] = {{"https://a.example/", 18}, {"joe", 3}};
    static const struct claims_case cases[] = {
        {"{\"iss\":\"joe\"}", TOKEN_OK},
        {"{\"iss\":\"https://a.example/\"}", TOKEN_OK},
        {"{\"iss\":\"https://a.example\"}", TOKEN_ISSUER},
        {"{\"iss\":\"Joe\"}", TOKEN_ISSUER},
        {"{\"iss\":\"\"}", TOKEN_ISSUER},
        {"{}", TOKEN_ISSUER},
        {"{\"iss\":\"Joe\",\"exp\":1}", TOKEN_ISSUER}, /* expired, but it was never right */
        {"{\"iss\":\"joe\",\"exp\":1,\"aud\":\"x\"}", TOKEN_AUDIENCE},
        {"{\"iss\":\"joe\",\"exp\":1}", TOKEN_EXPIRED},
        {"{\"iss\":[\"joe\"]}", TOKEN_CLAIM_TYPE},
        {"{\"iss\":null}", TOKEN_CLAIM_TYPE},
        {"{\"iss\":\"joe\",\"sub\":1}", TOKEN_CLAIM_TYPE},
        {"{\"iss\":\"joe\",\"sub\":\"\xc3\xa9 \xc2\xa0~\"}", TOKEN_OK},
        {"{\"iss\":\"joe\",\"sub\":\"a\\nb\"}", TOKEN_CLAIM_TYPE},
        {"{\"iss\":\"joe\",\"sub\":\"a\x7f\"}", TOKEN_CLAIM_TYPE},
        {"{\"iss\":\"joe\",\"sub\":\"a\xc2\x9b\"}", TOKEN_CLAIM_TYPE},
    };
    check_cases(cases, COUNT(cases), &(struct claims_rules){.issuers = {issuers, 2}, .expiry_optional = true});
    assert_int_equal(check("{\"iss\":\"x\"}", &(struct claims_rules){.expiry_optional = true}, 0), TOKEN_OK);
}

TEST(audience)
{
    static const struct mk_str audiences[] = {{"api", 3}, {"https://www.example.org", 23}};
    static const struct claims_case cases[] = {
        {"{\"aud\":\"api\"}", TOKEN_OK},
        {"{\"aud\":[\"x\",\"https://www.example.org\"]}", TOKEN_OK},
        {"{\"aud\":\"ap\"}", TOKEN_AUDIENCE},
        {"{\"aud\":\"api \"}", TOKEN_AUDIENCE},
        {"{\"aud\":\"x api\"}", TOKEN_AUDIENCE},
        {"{\"aud\":[]}", TOKEN_AUDIENCE},
        {"{\"aud\":[\"x\"]}", TOKEN_AUDIENCE},
        {"{\"aud\":[\"api\",1]}", TOKEN_CLAIM_TYPE},
        {"{\"aud\":[[\"api\"]]}", TOKEN_CLAIM_TYPE},
        {"{\"aud\":{\"api\":1}}", TOKEN_CLAIM_TYPE},
        {"{\"aud\":null}", TOKEN_CLAIM_TYPE},
        {"{}", TOKEN_AUDIENCE},
    };
    check_cases(cases, COUNT(cases), &(struct claims_rules){.audiences = {audiences, 2}, .expiry_optional = true});
}

/* A token for others is refused even if the server does not know its own name. */
TEST(no_audience_configured)
{
    static const struct claims_case cases[] = {
        {"{}", TOKEN_OK},
        {"{\"aud\":\"api\"}", TOKEN_AUDIENCE},
        {"{\"aud\":[]}", TOKEN_AUDIENCE},
    };
    check_cases(cases, COUNT(cases), &(struct claims_rules){.expiry_optional = true});
}

TEST(scopes)
{
    static const struct mk_str scopes[] = {{"read", 4}, {"write", 5}};
    static const struct claims_case cases[] = {
        {"{\"scope\":\"read write\"}", TOKEN_OK},
        {"{\"scope\":\"x write  y read\"}", TOKEN_OK},
        {"{\"scope\":\"read\"}", TOKEN_SCOPE},
        {"{\"scope\":\"readwrite\"}", TOKEN_SCOPE},
        {"{\"scope\":\"read,write\"}", TOKEN_SCOPE},
        {"{\"scope\":\"READ write\"}", TOKEN_SCOPE},
        {"{\"scope\":\"\"}", TOKEN_SCOPE},
        {"{\"scope\":1}", TOKEN_SCOPE},
        {"{}", TOKEN_SCOPE},
        {"{\"scope\":[\"write\",\"read\"]}", TOKEN_OK},
        {"{\"scope\":[\"read write\"]}", TOKEN_SCOPE},
        {"{\"scp\":[\"write\",\"read\"]}", TOKEN_OK},
        {"{\"scp\":\"read write\"}", TOKEN_OK},
        {"{\"scope\":\"read\",\"scp\":\"write\"}", TOKEN_SCOPE},
    };
    check_cases(cases, COUNT(cases), &(struct claims_rules){.scopes = {scopes, 2}, .expiry_optional = true});
}

TEST(needs)
{
    static const struct {
        struct claims_need need;
        const char *text;
        bool fits;
    } cases[] = {
        {{{"role", 4}, {"admin", 5}}, "{\"role\":\"admin\"}", true},
        {{{"role", 4}, {"admin", 5}}, "{\"role\":\"administrator\"}", false},
        {{{"role", 4}, {"admin", 5}}, "{\"role\":[\"user\",\"admin\"]}", true},
        {{{"role", 4}, {"admin", 5}}, "{\"role\":[[\"admin\"]]}", false},
        {{{"role", 4}, {"admin", 5}}, "{\"role\":{\"admin\":true}}", false},
        {{{"role", 4}, {"admin", 5}}, "{}", false},
        {{{"n", 1}, {"-42", 3}}, "{\"n\":-42}", true},
        {{{"n", 1}, {"42", 2}}, "{\"n\":42.0}", false},
        {{{"n", 1}, {"9223372036854775807", 19}}, "{\"n\":9223372036854775807}", true},
        {{{"email_verified", 14}, {"true", 4}}, "{\"email_verified\":true}", true},
        {{{"email_verified", 14}, {"true", 4}}, "{\"email_verified\":false}", false},
        {{{"x", 1}, {"null", 4}}, "{\"x\":null}", false},
        {{{"x", 1}, {NULL, 0}}, "{\"x\":null}", false},
        {{{"x", 1}, {NULL, 0}}, "{\"x\":\"\"}", true},
        {{{"x", 1}, {NULL, 0}}, "{\"y\":1}", false},
        {{{"a.roles", 7}, {"dev", 3}}, "{\"a\":{\"roles\":[\"dev\"]}}", true},
        {{{"a.b.c", 5}, {"1", 1}}, "{\"a\":{\"b\":{\"c\":1}}}", true},
        {{{"a.b.c", 5}, {"1", 1}}, "{\"a.b\":{\"c\":1}}", true},
        {{{"a.b", 3}, {"1", 1}}, "{\"a.b\":1,\"a\":{\"b\":2}}", true},
        {{{"a.b", 3}, {"1", 1}}, "{\"a\":\"b\"}", false},
        {{{"a.", 2}, {NULL, 0}}, "{\"a\":{\"\":1}}", true},
        {{{".", 1}, {NULL, 0}}, "{\"a\":1}", false},
        {{{"https://example.org/roles", 25}, {"dev", 3}}, "{\"https://example.org/roles\":[\"dev\"]}", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct claims_rules rules = {.needs = &cases[i].need, .needs_n = 1, .expiry_optional = true};
        if (check(cases[i].text, &rules, 0) != (cases[i].fits ? TOKEN_OK : TOKEN_CLAIM))
            fail_msg("%.*s in %s", MK_STR_ARG(cases[i].need.name), cases[i].text);
    }
}

TEST(end)
{
    static const struct {
        const char *text;
        int64_t end_ms;
    } cases[] = {
        {"{\"exp\":1800000000}", 1800000030000},
        {"{\"exp\":1.25}", 31250},
        {"{}", INT64_MAX},
    };
    struct claims_rules rules = {.leeway_s = 30};
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *claims = strict_json_read_object(mk_str_c(cases[i].text), NULL);
        assert_true(claims_end_ms(claims, &rules) == cases[i].end_ms);
        json_decref(claims);
    }
}

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

enum { THREADS = 4, ROUNDS = 20 };

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
    struct tokens *t = *state;
    struct thread threads[THREADS] = {0};
    for (unsigned alg = 0; alg < JWS_ALGS; alg++) {
        EVP_PKEY *key = tokens_make_key(alg);
        char header[32];
        snprintf(header, sizeof(header), "{\"alg\":\"%s\"}", jws_alg_name(alg));
        tokens_add_key_for(t, key, alg, NULL);
        struct mk_str token = mk_arena_dup(&t->arena, tokens_sign_by(t, key, alg, header, "{\"sub\":\"ada\"}"));
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
