// SPDX-License-Identifier: Apache-2.0
/* Types, times, names and demanded values of claims (claims.h). */
#include "claims.h"

#include <monkey/utf8.h>

#include <math.h>
#include <stdio.h>

#include "strict_json.h"

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
