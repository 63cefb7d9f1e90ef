// SPDX-License-Identifier: Apache-2.0
/* The table of results (token_result.h). */
#include "token_result.h"

#include <monkey/status.h>

#include <assert.h>
#include <stddef.h>

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
