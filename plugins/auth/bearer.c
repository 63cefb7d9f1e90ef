// SPDX-License-Identifier: Apache-2.0
/* From the value of Authorization to a decision about a token, and the challenge. */
#include "token.h"

#include <monkey/base/utf8.h>
#include <monkey/status.h>

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

static const struct token_meaning meanings[] = {
    [TOKEN_OK] = {0, NULL, "the token is valid", false},
    [TOKEN_ABSENT] = {401, NULL, "there is no bearer token", false},
    [TOKEN_SYNTAX] = {400, "invalid_request", "Authorization does not hold one bearer token", false},
    [TOKEN_TOO_LONG] = {401, "invalid_token", "the token is too long", true},
    [TOKEN_MALFORMED] = {401, "invalid_token", "the token is not a JWS in compact form", true},
    [TOKEN_HEADER] = {401, "invalid_token", "the header of the token is wrong", true},
    [TOKEN_CRITICAL] = {401, "invalid_token", "the header of the token demands an extension (crit)", true},
    [TOKEN_ALGORITHM] = {401, "invalid_token", "the algorithm of the token is not supported", true},
    [TOKEN_KEY] = {401, "invalid_token", "no key has the kid and the algorithm of the token", true},
    [TOKEN_SIGNATURE] = {401, "invalid_token", "the signature of the token is wrong", true},
    [TOKEN_PAYLOAD] = {401, "invalid_token", "the claims of the token are not a JSON object", true},
    [TOKEN_CLAIM_TYPE] = {401, "invalid_token", "a claim of the token has a wrong type", true},
    [TOKEN_NO_EXPIRY] = {401, "invalid_token", "the token has no exp", true},
    [TOKEN_EXPIRED] = {401, "invalid_token", "the token has expired", false},
    [TOKEN_NOT_YET] = {401, "invalid_token", "the token is not valid yet", false},
    [TOKEN_ISSUER] = {401, "invalid_token", "the token is from another issuer", true},
    [TOKEN_AUDIENCE] = {401, "invalid_token", "the token is for another audience", true},
    [TOKEN_SCOPE] = {403, "insufficient_scope", "the token lacks a required scope", false},
    [TOKEN_CLAIM] = {403, "insufficient_scope", "the token lacks a required claim", false},
    [TOKEN_MEMORY] = {503, NULL, "there is not enough memory", false},
};

_Static_assert(MK_COUNT_OF(meanings) == TOKEN_RESULTS, "one row for each result");

const struct token_meaning *token_result_meaning(enum token_result result)
{
    assert(result < TOKEN_RESULTS);
    return &meanings[result];
}

static const double seconds_max = 253402300799; /* 9999-12-31T23:59:59Z */

/* ── registered claims ── */

/* Reads a time in seconds; `ret` is unchanged if there is none. Returns false if it is not a time. */
static bool read_time(const json_t *claims, const char *name, double *ret)
{
    const json_t *value = json_object_get(claims, name);
    if (!value)
        return true;
    if (!json_is_number(value) || fabs(json_number_value(value)) > seconds_max)
        return false;
    *ret = json_number_value(value);
    return true;
}

static bool is_string_or_absent(const json_t *claims, const char *name)
{
    const json_t *value = json_object_get(claims, name);
    return !value || json_is_string(value);
}

static bool is_printable(struct mk_str text)
{
    while (text.len)
        if (mk_utf8_is_control(mk_utf8_next(&text)))
            return false;
    return true;
}

static enum token_result check_times(const json_t *claims, const struct claims_rules *rules, int64_t now_ms)
{
    double end = INFINITY, begin = -INFINITY, issued = 0, now = (double)now_ms / 1000;
    if (!read_time(claims, "exp", &end) || !read_time(claims, "nbf", &begin) || !read_time(claims, "iat", &issued))
        return TOKEN_CLAIM_TYPE;
    if (isinf(end) && !rules->expiry_optional)
        return TOKEN_NO_EXPIRY;
    if (now >= end + rules->leeway_s)
        return TOKEN_EXPIRED;
    return now < begin - rules->leeway_s ? TOKEN_NOT_YET : TOKEN_OK;
}

static bool is_in_list(struct mk_str text, const struct claims_list *list)
{
    for (unsigned i = 0; i < list->n; i++)
        if (mk_str_eq(text, list->items[i]))
            return true;
    return false;
}

static enum token_result check_issuer(const json_t *claims, const struct claims_list *issuers)
{
    if (!is_string_or_absent(claims, "iss") || !is_string_or_absent(claims, "sub") ||
        !is_printable(strict_json_string(claims, "sub")))
        return TOKEN_CLAIM_TYPE;
    struct mk_str issuer = strict_json_string(claims, "iss");
    return !issuers->n || (issuer.p && is_in_list(issuer, issuers)) ? TOKEN_OK : TOKEN_ISSUER;
}

static enum token_result check_audience_array(const json_t *array, const struct claims_list *audiences)
{
    enum token_result result = TOKEN_AUDIENCE;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        if (!json_is_string(item))
            return TOKEN_CLAIM_TYPE;
        if (is_in_list(strict_json_text(item), audiences))
            result = TOKEN_OK;
    }
    return result;
}

/* A server that is not told what it is must refuse any token with an audience: RFC 7519 section 4.1.3. */
static enum token_result check_audience(const json_t *claims, const struct claims_list *audiences)
{
    const json_t *value = json_object_get(claims, "aud");
    if (!value)
        return audiences->n ? TOKEN_AUDIENCE : TOKEN_OK;
    if (json_is_array(value))
        return check_audience_array(value, audiences);
    if (!json_is_string(value))
        return TOKEN_CLAIM_TYPE;
    return is_in_list(strict_json_text(value), audiences) ? TOKEN_OK : TOKEN_AUDIENCE;
}

/* ── demanded values ── */

static bool has_word(struct mk_str words, struct mk_str word)
{
    while (words.len)
        if (mk_str_eq(mk_str_split(&words, ' '), word))
            return true;
    return false;
}

/* `scope` is a string of words (RFC 8693 section 4.2); some issuers write `scp`, or an array of strings. */
static bool has_scope(const json_t *claims, struct mk_str scope)
{
    const json_t *value = json_object_get(claims, "scope");
    if (!value)
        value = json_object_get(claims, "scp");
    if (json_is_string(value))
        return has_word(strict_json_text(value), scope);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        if (json_is_string(item) && mk_str_eq(strict_json_text(item), scope))
            return true;
    }
    return false;
}

static bool is_single_value(const json_t *value, struct mk_str text)
{
    char digits[24];
    if (json_is_string(value))
        return mk_str_eq(strict_json_text(value), text);
    if (json_is_boolean(value))
        return mk_str_eq(json_is_true(value) ? MK_STR("true") : MK_STR("false"), text);
    if (!json_is_integer(value))
        return false;
    int len = snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return mk_str_eq(mk_str(digits, (size_t)len), text);
}

static bool is_value(const json_t *value, struct mk_str text)
{
    if (!text.p)
        return value && !json_is_null(value);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (is_single_value(json_array_get(value, i), text))
            return true;
    return is_single_value(value, text);
}

static const json_t *find_member(const json_t *object, struct mk_str name)
{
    return json_object_getn(object, name.p, name.len);
}

/* Returns the value of a name, or of a path of names with dots between them; NULL: there is none. */
static const json_t *find_claim(const json_t *object, struct mk_str name)
{
    const json_t *value = find_member(object, name);
    for (size_t i = 0; i < name.len && !value; i++) {
        const json_t *inner = name.p[i] == '.' ? find_member(object, mk_str(name.p, i)) : NULL;
        if (inner)
            return find_claim(inner, mk_str(name.p + i + 1, name.len - i - 1));
    }
    return value;
}

static enum token_result check_needs(const json_t *claims, const struct claims_rules *rules)
{
    for (unsigned i = 0; i < rules->scopes.n; i++)
        if (!has_scope(claims, rules->scopes.items[i]))
            return TOKEN_SCOPE;
    for (unsigned i = 0; i < rules->needs_n; i++)
        if (!is_value(find_claim(claims, rules->needs[i].name), rules->needs[i].value))
            return TOKEN_CLAIM;
    return TOKEN_OK;
}

enum token_result claims_check(const json_t *claims, const struct claims_rules *rules, int64_t now_ms)
{
    enum token_result result = check_issuer(claims, &rules->issuers);
    if (result == TOKEN_OK)
        result = check_audience(claims, &rules->audiences);
    if (result == TOKEN_OK) /* last of what is 401: TOKEN_EXPIRED says that the token was right before */
        result = check_times(claims, rules, now_ms);
    return result == TOKEN_OK ? check_needs(claims, rules) : result;
}

int64_t claims_end_ms(const json_t *claims, const struct claims_rules *rules)
{
    double end = INFINITY;
    read_time(claims, "exp", &end);
    return isinf(end) ? INT64_MAX : (int64_t)((end + rules->leeway_s) * 1000);
}

/* ── fields ── */

enum token_result bearer_find(struct mk_str authorization, struct mk_str *ret)
{
    struct mk_str scheme = MK_STR("Bearer"), rest = mk_str_trim(authorization);
    if (!mk_str_istarts(rest, scheme))
        return TOKEN_ABSENT;
    rest = mk_str_after(rest, scheme.len);
    if (rest.len && *rest.p != ' ' && *rest.p != '\t')
        return TOKEN_ABSENT; /* another scheme, whose name is longer */
    rest = mk_str_trim(rest);
    /* token68 of RFC 9110: without its padding, which JWS does not have either, but which jws_read() refuses */
    for (size_t i = 0; i < rest.len; i++)
        if (!mk_is_name_byte(rest.p[i], "-._~+/="))
            return TOKEN_SYNTAX;
    *ret = rest;
    return rest.len ? TOKEN_OK : TOKEN_SYNTAX;
}

/* Appends the text of a quoted string (RFC 9110 section 5.6.4), without control characters. */
static void add_quotable(struct mk_buf *out, struct mk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            continue;
        if (text.p[i] == '"' || text.p[i] == '\\')
            mk_buf_addc(out, '\\');
        mk_buf_addc(out, text.p[i]);
    }
}

static void add_scopes(struct mk_buf *out, const struct claims_list *scopes)
{
    mk_buf_adds(out, MK_STR(", scope=\""));
    for (unsigned i = 0; i < scopes->n; i++) {
        if (i)
            mk_buf_addc(out, ' ');
        add_quotable(out, scopes->items[i]);
    }
    mk_buf_addc(out, '"');
}

void bearer_challenge(struct mk_buf *out, struct mk_str realm, enum token_result result,
                      const struct claims_rules *rules)
{
    const struct token_meaning *meaning = token_result_meaning(result);
    mk_buf_adds(out, MK_STR("Bearer realm=\""));
    add_quotable(out, realm);
    mk_buf_addc(out, '"');
    if (meaning->error)
        mk_buf_addf(out, ", error=\"%s\", error_description=\"%s\"", meaning->error, meaning->reason);
    if (result == TOKEN_SCOPE)
        add_scopes(out, &rules->scopes);
}

/* ── decisions ── */

static enum token_result verify_signature(const struct jws *jws, const struct key_set *keys)
{
    const struct jws_key *key = key_set_next(keys, jws, NULL);
    if (!key)
        return TOKEN_KEY;
    for (unsigned tried = 0; key && tried < KEY_SET_TRIED_MAX; tried++) {
        if (jws_verify(jws, key))
            return TOKEN_OK;
        key = key_set_next(keys, jws, key);
    }
    return TOKEN_SIGNATURE;
}

/* Copies a claim that is a string. Returns false without memory. */
static bool copy_claim(struct mk_str *ret, const json_t *claims, const char *name, struct mk_arena *arena)
{
    struct mk_str value = strict_json_string(claims, name);
    *ret = value.p ? mk_arena_dup(arena, value) : MK_STR_NONE;
    return !value.p || ret->p;
}

static enum token_result read_claims(struct bearer_decision *ret, const struct claims_rules *rules, int64_t now_ms,
                                     struct mk_arena *arena)
{
    json_t *claims = strict_json_read_object(ret->claims, NULL);
    if (!claims)
        return TOKEN_PAYLOAD;
    enum token_result result = claims_check(claims, rules, now_ms);
    if (result == TOKEN_OK &&
        !(copy_claim(&ret->subject, claims, "sub", arena) && copy_claim(&ret->issuer, claims, "iss", arena) &&
          copy_claim(&ret->scope, claims, "scope", arena)))
        result = TOKEN_MEMORY;
    ret->end_ms = claims_end_ms(claims, rules);
    json_decref(claims);
    return result;
}

void bearer_decide(struct bearer_decision *ret, struct mk_str token, const struct key_set *keys,
                   const struct claims_rules *rules, int64_t now_ms, struct mk_arena *arena)
{
    struct jws jws;
    *ret = (struct bearer_decision){0};
    ret->result = jws_read(&jws, token, arena);
    if (ret->result == TOKEN_OK)
        ret->result = verify_signature(&jws, keys);
    if (ret->result == TOKEN_OK)
        ret->result = jws_payload(&jws, arena, &ret->claims);
    if (ret->result == TOKEN_OK)
        ret->result = read_claims(ret, rules, now_ms, arena);
    if (ret->result != TOKEN_OK)
        *ret = (struct bearer_decision){.result = ret->result};
}
