// SPDX-License-Identifier: Apache-2.0
/* From the value of Authorization to a decision about a token, and the challenge (bearer.h). */
#include "bearer.h"

#include "strict_json.h"

/* ── fields ── */

/* token68 of RFC 9110: without its padding, which JWS does not have either, but which jws_read() refuses. */
static bool is_token_char(char c)
{
    return mk_is_name_byte(c, "-._~+/=");
}

enum token_result bearer_find(struct mk_str authorization, struct mk_str *ret)
{
    struct mk_str scheme = MK_STR("Bearer"), rest = mk_str_trim(authorization);
    if (rest.len < scheme.len || !mk_str_ieq(mk_str(rest.p, scheme.len), scheme))
        return TOKEN_ABSENT;
    rest = mk_str(rest.p + scheme.len, rest.len - scheme.len);
    if (rest.len && *rest.p != ' ' && *rest.p != '\t')
        return TOKEN_ABSENT; /* another scheme, whose name is longer */
    rest = mk_str_trim(rest);
    for (size_t i = 0; i < rest.len; i++)
        if (!is_token_char(rest.p[i]))
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
