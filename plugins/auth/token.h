// SPDX-License-Identifier: Apache-2.0
#ifndef AUTH_TOKEN_H
#define AUTH_TOKEN_H

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>
#include <monkey/base/str.h>

#include <jansson.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The results of checking a bearer token, and what each means for the response (RFC 6750 section 3.1) and for the log.
 */
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

/*
 * Reads JSON by Jansson, and refuses what parsers understand differently: duplicate names, invalid UTF-8, \u0000, text
 * after the value, numbers beyond the range. Pure, any thread.
 */
enum { STRICT_JSON_DEPTH_MAX = 16 };

/*
 * Reads a text that is one object, nested up to STRICT_JSON_DEPTH_MAX. On an error `message` (or NULL) gets a phrase
 * with its place, "line 3, column 7: ..."; it does not quote the text, which may hold secrets.
 * Returns the object, which json_decref() frees, or NULL.
 */
json_t *strict_json_read_object(struct mk_str text, struct mk_buf *message);

/* Returns a string of an object, valid as long as the object; `.p` is NULL if it has none of that name. */
struct mk_str strict_json_string(const json_t *object, const char *name);

/* Returns the bytes of a string value. */
struct mk_str strict_json_text(const json_t *string);

/*
 * Tokens in the compact serialization of JWS (RFC 7515): header.payload.signature, each in base64url. The header names
 * an algorithm and perhaps a key; what else it says of keys (jwk, jku, x5u, x5c) is never used.
 *
 * A key has one algorithm, which follows from its type, or which a JWK names: a token whose header names another one is
 * refused before anything is computed (RFC 8725 section 3.1). So a public key is never a secret of HMAC, and "none" is
 * no algorithm.
 *
 * Signatures are computed by libcrypto. Pure, any thread; the error queue of libcrypto is left as it was.
 */
enum { JWS_BYTES_MAX = 8192, JWS_KID_BYTES_MAX = 256 };

/* RFC 7518, RFC 8037. The first one of a type is the one of keys that name none. */
enum jws_alg {
    JWS_HS256, /* HMAC */
    JWS_HS384,
    JWS_HS512,
    JWS_RS256, /* RSASSA-PKCS1-v1_5 */
    JWS_RS384,
    JWS_RS512,
    JWS_PS256, /* RSASSA-PSS */
    JWS_PS384,
    JWS_PS512,
    JWS_ES256, /* ECDSA with P-256 */
    JWS_ES384, /* with P-384 */
    JWS_ES512, /* with P-521 */
    JWS_EDDSA, /* Ed25519 */
    JWS_ALGS,
    JWS_BY_TYPE = JWS_ALGS, /* of a key: none is named */
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
 * Returns true if the key has the algorithm of the token, and the signature is right. Takes about 3 us for HS256, 30 to
 * 150 us for the others, and 1 ms for ES384 and ES512.
 */
bool jws_verify(const struct jws *jws, const struct jws_key *key);

/* Decodes the payload. Returns TOKEN_OK, TOKEN_MALFORMED or TOKEN_MEMORY. */
enum token_result jws_payload(const struct jws *jws, struct mk_arena *arena, struct mk_str *ret);

/* Finds the algorithm of a name, such as "RS256", in exactly this spelling. Returns false if it is not supported. */
bool jws_find_alg(struct mk_str name, enum jws_alg *ret);
/* Returns the name of an algorithm. */
const char *jws_alg_name(enum jws_alg alg);
/* Returns true if a key has the type, and the curve, of an algorithm's keys. */
bool jws_fits(enum jws_alg alg, const EVP_PKEY *pkey);
/* Returns how long a secret must be for an algorithm (RFC 7518 section 3.2); for HS256 if that is none with secrets. */
size_t jws_secret_bytes_min(enum jws_alg alg);

/*
 * Sets of keys that verify tokens:
 *
 *     type of the key                   algorithm
 *     RSA, 2048 to 8192 bits            RS256; a JWK may name RS384, RS512, PS256, PS384 or PS512
 *     EC, P-256, P-384 or P-521         ES256, ES384 or ES512
 *     OKP, Ed25519                      EdDSA
 *     oct, 32 bytes or more             HS256; a JWK may name HS384 (48 bytes) or HS512 (64 bytes)
 *
 * A set does not change once it is loaded: it is read by any thread, and freed when nothing refers to it.
 */
enum {
    KEY_SET_MAX = 128, /* of a set */
    KEY_SET_RSA_BITS_MIN = 2048,
    KEY_SET_RSA_BITS_MAX = 8192,
    KEY_SET_SECRET_BYTES_MAX = 4096,
    KEY_SET_TRIED_MAX = 4, /* for one token */
    KEY_SET_ID_BYTES = 32,
};

struct key_set;

/* Returns an empty set, or NULL without memory. */
struct key_set *key_set_new(void);
/* Frees a set and wipes its secrets; `keys` may be NULL. */
void key_set_free(struct key_set *keys);

/*
 * Returns the keys that may have signed a token, one after the other; `after` is NULL for the first one. These have the
 * algorithm of the token. If it names a kid and keys of that algorithm have it, only those are returned, else those
 * without a kid. If it names none, all of that algorithm are returned. NULL: no further one.
 */
const struct jws_key *key_set_next(const struct key_set *keys, const struct jws *jws, const struct jws_key *after);

/* Return the number of keys, and of secrets among them. */
unsigned key_set_count(const struct key_set *keys);
/* Returns KEY_SET_ID_BYTES bytes, which sets of other files or contents do not have; valid as long as the set. */
struct mk_str key_set_id(const struct key_set *keys);

/* ── what readers of files use ── */

/*
 * Adds a key with an algorithm, or with that of its type (JWS_BY_TYPE), and takes it over in any case. `kid`, which is
 * copied, has no `.p` if the key has none.
 * Returns 0, or -errno with a phrase in `message`: "is an RSA key of 1024 bits, ...".
 */
int key_set_add(struct key_set *keys, EVP_PKEY *pkey, enum jws_alg alg, struct mk_str kid, struct mk_buf *message);
/* Adds a secret, as key_set_add(). */
int key_set_add_secret(struct key_set *keys, struct mk_str secret, enum jws_alg alg, struct mk_str kid,
                       struct mk_buf *message);

/* Begins a sentence about a file, after those that `message` has already. Returns `message`. */
struct mk_buf *key_set_report(struct mk_buf *message, const char *name);

/*
 * Reads sets of keys from files:
 *
 *     Keys FILE      public keys and certificates in PEM, or a JWK set in JSON (RFC 7517)
 *     Secret FILE    a text that is the secret of HS256
 *
 * A file of one kind is never read as the other: a public key, even a damaged one, does not become a secret.
 */
enum { KEYS_FILE_BYTES_MAX = 1 << 20 };

enum keys_kind {
    KEYS_PUBLIC, /* PEM or a JWK set */
    KEYS_SECRET,
};

struct keys_file {
    struct mk_str path; /* with a NUL after it */
    enum keys_kind kind;
};

/*
 * Reads files into a new set. May block. Each key that cannot be used is reported in `message` (a JWK is then skipped,
 * anything else is an error), as sentences with "; " between them and without a full stop. They quote no secret.
 * Returns 0 (`message` has warnings, if anything), -EINVAL or another -errno of reading, or -ENOMEM.
 */
int keys_load(const struct keys_file *files, unsigned n, struct key_set **ret, struct mk_buf *message);
/* Reads the bytes of a file into a set, as keys_load() does. `name` is for messages. */
int keys_read(struct key_set *keys, enum keys_kind kind, const char *name, struct mk_str bytes, struct mk_buf *message);

/*
 * Reads JWK sets (RFC 7517): oct, RSA and EC (RFC 7518), and OKP Ed25519 (RFC 8037). A text that is one key,
 * without "keys", is a set of it.
 *
 * Adds the keys of a text that may verify (use, key_ops, alg) to a set. Others are skipped, with a warning in
 * `message`, as is a key that is wrong; private members are not read, with a warning.
 * Returns 0, -EINVAL (not JSON, no "keys", or no key that can be used), -ENOBUFS or -ENOMEM, with a sentence.
 */
int jwks_read(struct key_set *keys, const char *name, struct mk_str text, struct mk_buf *message);

/*
 * Checks the claims of a token whose signature is right (RFC 7519 section 4.1), and further ones that a section
 * demands. Pure, any thread: the time is an argument.
 */
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

/*
 * Bearer tokens (RFC 6750) that are JWTs (RFC 7519, RFC 8725): from the value of Authorization to a decision. Pure, any
 * thread: the time is an argument.
 *
 * A decision takes about 10 us with HS256 and 30 to 130 us with the other algorithms (docs/internals/tokens.md), in a
 * worker's loop; a cache keeps decisions.
 */
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

/*
 * Keeps texts until they expire: what valid tokens say, and answers of `Type Forward` that let requests pass. A cache
 * belongs to a worker under one generation, so a reload begins with an empty one. It does not keep what the texts
 * are found by, only a keyed hash:
 *
 *     SHA-256(random key of the cache, parts)
 *         │ first byte
 *         ▼
 *     sets of 4 entries: within a set the entry that was used longest ago is replaced
 *
 * One thread.
 */
enum { TEXT_CACHE_WAYS = 4, TEXT_CACHE_TEXTS_MAX = 17, TEXT_CACHE_DIGEST_BYTES = 32 };

struct text_cache;

/*
 * Returns an empty cache with a new key, whose memory is taken from `account`; NULL without memory or random bytes.
 * `sets`: 256 at most, as one byte of the digest chooses it. `bytes_max`: of the texts of an entry, below 65535.
 */
struct text_cache *text_cache_new(struct mk_account *account, unsigned sets, size_t bytes_max);
/* Wipes and frees it; NULL is allowed. */
void text_cache_free(struct text_cache *cache);

/* Makes the digest of an entry. Returns false if libcrypto fails: then nothing is kept. */
bool text_cache_hash(const struct text_cache *cache, const struct mk_str *parts, unsigned n,
                     unsigned char digest[TEXT_CACHE_DIGEST_BYTES]);

/*
 * Returns whether there is an entry that has not expired. `ret_texts`: its `n` texts, as many as were added, valid
 * until the next call of an add. `ret_end_ms` may be NULL.
 */
bool text_cache_find(struct text_cache *cache, const unsigned char digest[TEXT_CACHE_DIGEST_BYTES], int64_t now_ms,
                     struct mk_str *ret_texts, unsigned n, int64_t *ret_end_ms);
/* Keeps texts, of which `.p` may be NULL, until `end_ms`, unless they are too long or there is no memory. */
void text_cache_add(struct text_cache *cache, const unsigned char digest[TEXT_CACHE_DIGEST_BYTES], int64_t end_ms,
                    const struct mk_str *texts, unsigned n);

/* Returns how many entries were found. */
uint64_t text_cache_hits(const struct text_cache *cache);

/*
 * Decisions about tokens with a cache: a hit saves the signature and the parsing of the claims.
 *
 * What was refused is not kept, so that a flood of bad tokens replaces nothing. An entry takes part in no decision with
 * other rules or other keys: one that is revoked by a change of the key files is not used any more.
 */
enum { TOKEN_CACHE_SETS = 64, TOKEN_CACHE_BYTES_MAX = 4 * JWS_BYTES_MAX };

/*
 * Does bearer_decide() with a cache of tokens that were valid. `rules` must be at another address than other rules, as
 * long as the cache lives. `cache` may be NULL.
 */
void token_cache_decide(struct text_cache *cache, struct bearer_decision *ret, struct mk_str token,
                        const struct key_set *keys, const struct claims_rules *rules, int64_t now_ms,
                        struct mk_arena *arena);

/*
 * The rules and keys by which the token of one request was refused: it is verified once for each of them, however many
 * paths a listing or an archive asks about. The worker's cache has tokens that were valid only.
 */
struct token_refusal {
    struct token_refusal *next;
    const struct claims_rules *rules;
    char keys[KEY_SET_ID_BYTES]; /* the keys may be loaded again before the request ends */
};

/* Returns true if a list has these rules and keys; `first` NULL: it is empty. */
bool token_refusals_has(const struct token_refusal *first, const struct claims_rules *rules,
                        const struct key_set *keys);

/* Adds rules and keys to a list in `arena`. Returns the new first entry, or NULL without memory: the list is as before.
 */
struct token_refusal *token_refusals_add(struct token_refusal *first, const struct claims_rules *rules,
                                         const struct key_set *keys, struct mk_arena *arena);

#endif
