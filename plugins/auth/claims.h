// SPDX-License-Identifier: Apache-2.0
/*
 * Checks the claims of a token whose signature is right (RFC 7519 section 4.1), and further ones that a section
 * demands. Pure, any thread: the time is an argument.
 */
#ifndef AUTH_CLAIMS_H
#define AUTH_CLAIMS_H

#include <monkey/str.h>

#include <jansson.h>

#include "token_result.h"

/* A claim that a token must have. */
struct claims_need {
    struct mk_str name;  /* "groups"; "realm_access.roles" is also "roles" in the object "realm_access" */
    struct mk_str value; /* of a string, a number without fraction, "true" or "false", or an item of an array;
                            `.p` is NULL: any value but null */
};

struct claims_list {
    const struct mk_str *items;
    unsigned n;
};

/* Constant while they are in use; zeroed, they demand an exp, and no aud. */
struct claims_rules {
    struct claims_list issuers;   /* iss must be one of them; empty: any, or none */
    struct claims_list audiences; /* aud must hold one of them; empty: there must be no aud */
    struct claims_list scopes;    /* scope (or scp) must hold all of them */
    const struct claims_need *needs;
    unsigned needs_n;
    uint32_t leeway_s; /* how much clocks may differ, for exp and nbf */
    bool expiry_optional;
};

/*
 * Checks the claims at a time in milliseconds since 1970. Those that the rules do not mention must still have the right
 * types: exp, nbf and iat are numbers, perhaps with a fraction, up to the year 9999; iss and sub are strings,
 * and sub, which becomes the name of the user in logs, has no control characters.
 * Returns TOKEN_OK or the first of TOKEN_CLAIM_TYPE, TOKEN_NO_EXPIRY, TOKEN_EXPIRED, TOKEN_NOT_YET, TOKEN_ISSUER,
 * TOKEN_AUDIENCE, TOKEN_SCOPE and TOKEN_CLAIM.
 */
enum token_result claims_check(const json_t *claims, const struct claims_rules *rules, int64_t now_ms);

/* Returns when checked claims expire, with the leeway, in milliseconds since 1970; INT64_MAX: never. */
int64_t claims_end_ms(const json_t *claims, const struct claims_rules *rules);

#endif
