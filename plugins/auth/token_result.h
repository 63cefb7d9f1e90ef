// SPDX-License-Identifier: Apache-2.0
/*
 * The results of checking a bearer token, and what each means for the response (RFC 6750 section 3.1) and for the log.
 */
#ifndef AUTH_TOKEN_RESULT_H
#define AUTH_TOKEN_RESULT_H

#include <stdbool.h>
#include <stdint.h>

enum token_result {
    TOKEN_OK,
    TOKEN_ABSENT,     /* no credentials, or of another scheme */
    TOKEN_SYNTAX,     /* the scheme is Bearer, but what follows is not one token */
    TOKEN_TOO_LONG,   /* above JWS_BYTES_MAX */
    TOKEN_MALFORMED,  /* not three parts in base64url */
    TOKEN_HEADER,     /* the header is not JSON, or a member of it has a wrong type */
    TOKEN_CRITICAL,   /* the header demands an extension */
    TOKEN_ALGORITHM,  /* "none", or another algorithm that is not supported */
    TOKEN_KEY,        /* no key has the algorithm and the kid of the header */
    TOKEN_SIGNATURE,  /* wrong for all of these keys */
    TOKEN_PAYLOAD,    /* the payload is not a JSON object */
    TOKEN_CLAIM_TYPE, /* a registered claim has a wrong type, or a time is out of range */
    TOKEN_NO_EXPIRY,  /* exp is missing, but required */
    TOKEN_EXPIRED,    /* exp */
    TOKEN_NOT_YET,    /* nbf */
    TOKEN_ISSUER,     /* iss is missing or another one */
    TOKEN_AUDIENCE,   /* aud is missing or names others only */
    TOKEN_SCOPE,      /* a required scope is missing */
    TOKEN_CLAIM,      /* a required claim is missing or has another value */
    TOKEN_MEMORY,     /* -ENOMEM */
    TOKEN_RESULTS,
};

/* What a result means; the strings are static ASCII text without quotes. */
struct token_meaning {
    uint16_t status;    /* of the response; 0: the request continues */
    const char *error;  /* the parameter "error" of WWW-Authenticate, or NULL */
    const char *reason; /* "the token has expired" */
    bool is_failure;    /* counted and delayed as a wrong password: not what a client with a right token may send */
};

/* Returns the row of a result. Any thread. */
const struct token_meaning *token_result_meaning(enum token_result result);

#endif
