// SPDX-License-Identifier: Apache-2.0
/*
 * Bearer tokens (RFC 6750) that are JWTs (RFC 7519, RFC 8725): from the value of Authorization to a decision. Pure, any
 * thread: the time is an argument.
 *
 * A decision takes about 10 us with HS256 and 30 to 130 us with the other algorithms (docs/internals/tokens.md), in a
 * worker's loop; token_cache.h keeps decisions.
 */
#ifndef AUTH_BEARER_H
#define AUTH_BEARER_H

#include <monkey/arena.h>
#include <monkey/buf.h>

#include "claims.h"
#include "key_set.h"

struct bearer_decision {
    enum token_result result;
    /* Only with TOKEN_OK; they live as long as the arena. `.p` is NULL for a claim that the token does not have. */
    struct mk_str subject, issuer, scope; /* of sub, iss and scope, which are strings */
    struct mk_str claims;                 /* the payload: a JSON object */
    int64_t end_ms;                       /* when it expires, as claims_end_ms() */
};

/*
 * Finds the token in the value of the field Authorization, whose `.p` is NULL if there is none. `*ret` points into it.
 * Returns TOKEN_OK, TOKEN_ABSENT (no credentials, or of another scheme) or TOKEN_SYNTAX.
 */
enum token_result bearer_find(struct mk_str authorization, struct mk_str *ret);

/* Decides about a token, and sets `ret->result`. `arena` gets up to about 3 times the length of the token. */
void bearer_decide(struct bearer_decision *ret, struct mk_str token, const struct key_set *keys,
                   const struct claims_rules *rules, int64_t now_ms, struct mk_arena *arena);

/*
 * Appends the value of WWW-Authenticate for a result that is not TOKEN_OK: `Bearer realm="...", error="invalid_token",
 * error_description="the token has expired"`. Control characters of the realm are left out.
 */
void bearer_challenge(struct mk_buf *out, struct mk_str realm, enum token_result result,
                      const struct claims_rules *rules);

#endif
