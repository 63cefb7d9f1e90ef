// SPDX-License-Identifier: Apache-2.0
/* What claims must be, at which times, and what rules demand of them. */
#include "plugins/auth/claims.h"
#include "plugins/auth/strict_json.h"

#include "testing.h"

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
