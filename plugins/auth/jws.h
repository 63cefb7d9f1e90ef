// SPDX-License-Identifier: Apache-2.0
/*
 * Tokens in the compact serialization of JWS (RFC 7515): header.payload.signature, each in base64url. The header names
 * an algorithm and perhaps a key; what else it says of keys (jwk, jku, x5u, x5c) is never used.
 *
 * A key has one algorithm, which follows from its type: a token whose header names another one is refused before
 * anything is computed (RFC 8725 section 3.1). So a public key is never a secret of HMAC, and "none" is no algorithm.
 *
 * Signatures are computed by libcrypto. Pure, any thread; the error queue of libcrypto is left as it was.
 */
#ifndef AUTH_JWS_H
#define AUTH_JWS_H

#include <monkey/arena.h>
#include <monkey/str.h>

#include <openssl/evp.h>

#include "token_result.h"

enum { JWS_BYTES_MAX = 8192, JWS_KID_BYTES_MAX = 256 };

enum jws_alg {
    JWS_HS256, /* RFC 7518: HMAC with SHA-256 */
    JWS_RS256, /* RSASSA-PKCS1-v1_5 with SHA-256 */
    JWS_ES256, /* ECDSA with P-256 and SHA-256 */
    JWS_EDDSA, /* RFC 8037: Ed25519 */
    JWS_ALGS,
};

/* A key that verifies. `pkey` is a public key of the algorithm's type, or HMAC with the secret. */
struct jws_key {
    enum jws_alg alg;
    struct mk_str kid; /* `.p` is NULL: the key fits any token of its algorithm */
    EVP_PKEY *pkey;
};

/* A token that was read; nothing in it is to be trusted before jws_verify() has returned true. */
struct jws {
    enum jws_alg alg;
    struct mk_str kid;         /* `.p` is NULL: none */
    struct mk_str signed_text; /* "header.payload", in the token */
    struct mk_str payload;     /* in base64url, in the token */
    struct mk_str signature;   /* bytes */
};

/*
 * Reads a token; `ret` points into `token` and into `arena`.
 * Returns TOKEN_OK, TOKEN_TOO_LONG, TOKEN_MALFORMED, TOKEN_HEADER, TOKEN_CRITICAL, TOKEN_ALGORITHM or TOKEN_MEMORY.
 */
enum token_result jws_read(struct jws *ret, struct mk_str token, struct mk_arena *arena);

/*
 * Returns true if the key has the algorithm of the token, and the signature is right. Takes about 3 us for HS256 and 30
 * to 150 us for the others.
 */
bool jws_verify(const struct jws *jws, const struct jws_key *key);

/* Decodes the payload. Returns TOKEN_OK, TOKEN_MALFORMED or TOKEN_MEMORY. */
enum token_result jws_payload(const struct jws *jws, struct mk_arena *arena, struct mk_str *ret);

/* Finds the algorithm of a name, such as "RS256", in exactly this spelling. Returns false if it is not supported. */
bool jws_find_alg(struct mk_str name, enum jws_alg *ret);
/* Returns the name of an algorithm. */
const char *jws_alg_name(enum jws_alg alg);

#endif
