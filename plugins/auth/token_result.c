// SPDX-License-Identifier: Apache-2.0
/* The table of results (token_result.h). */
#include "token_result.h"

#include <assert.h>
#include <stddef.h>

static const struct token_meaning meanings[] = {
    [TOKEN_OK] = {0, NULL, "the token is valid"},
    [TOKEN_ABSENT] = {401, NULL, "there is no bearer token"},
    [TOKEN_SYNTAX] = {400, "invalid_request", "Authorization does not hold one bearer token"},
    [TOKEN_TOO_LONG] = {401, "invalid_token", "the token is too long"},
    [TOKEN_MALFORMED] = {401, "invalid_token", "the token is not a JWS in compact form"},
    [TOKEN_HEADER] = {401, "invalid_token", "the header of the token is wrong"},
    [TOKEN_CRITICAL] = {401, "invalid_token", "the header of the token demands an extension (crit)"},
    [TOKEN_ALGORITHM] = {401, "invalid_token", "the algorithm of the token is not supported"},
    [TOKEN_KEY] = {401, "invalid_token", "no key has the kid and the algorithm of the token"},
    [TOKEN_SIGNATURE] = {401, "invalid_token", "the signature of the token is wrong"},
    [TOKEN_PAYLOAD] = {401, "invalid_token", "the claims of the token are not a JSON object"},
    [TOKEN_CLAIM_TYPE] = {401, "invalid_token", "a claim of the token has a wrong type"},
    [TOKEN_NO_EXPIRY] = {401, "invalid_token", "the token has no exp"},
    [TOKEN_EXPIRED] = {401, "invalid_token", "the token has expired"},
    [TOKEN_NOT_YET] = {401, "invalid_token", "the token is not valid yet"},
    [TOKEN_ISSUER] = {401, "invalid_token", "the token is from another issuer"},
    [TOKEN_AUDIENCE] = {401, "invalid_token", "the token is for another audience"},
    [TOKEN_SCOPE] = {403, "insufficient_scope", "the token lacks a required scope"},
    [TOKEN_CLAIM] = {403, "insufficient_scope", "the token lacks a required claim"},
    [TOKEN_MEMORY] = {503, NULL, "there is not enough memory"},
};

_Static_assert(sizeof(meanings) / sizeof(meanings[0]) == TOKEN_RESULTS, "one row for each result");

const struct token_meaning *token_result_meaning(enum token_result result)
{
    assert(result < TOKEN_RESULTS);
    return &meanings[result];
}
