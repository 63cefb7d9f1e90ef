// SPDX-License-Identifier: Apache-2.0
#include "token.h"

#include <monkey/base64.h>

#include <openssl/ec.h>
#include <openssl/err.h>

/* ── the header ── */

static const struct {
    struct mk_str name;
    enum jws_alg alg;
} names[] = {
    /* first one for each algorithm, in its order */
    {MK_STR_INIT("HS256"), JWS_HS256}, {MK_STR_INIT("RS256"), JWS_RS256},   {MK_STR_INIT("ES256"), JWS_ES256},
    {MK_STR_INIT("EdDSA"), JWS_EDDSA}, {MK_STR_INIT("Ed25519"), JWS_EDDSA}, /* RFC 9864 */
};

bool jws_find_alg(struct mk_str name, enum jws_alg *ret)
{
    for (size_t i = 0; i < MK_COUNT_OF(names); i++)
        if (mk_str_eq(name, names[i].name)) {
            *ret = names[i].alg;
            return true;
        }
    return false;
}

const char *jws_alg_name(enum jws_alg alg)
{
    return names[alg].name.p;
}

static enum token_result decode_segment(struct mk_str text, struct mk_arena *arena, struct mk_str *ret)
{
    struct mk_buf bytes;
    char *storage = mk_arena_alloc(arena, text.len + 1);
    if (!storage)
        return TOKEN_MEMORY;
    mk_buf_init_fixed(&bytes, storage, text.len + 1);
    if (mk_base64_decode(&bytes, text, MK_BASE64_URL) < 0)
        return TOKEN_MALFORMED;
    *ret = mk_buf_str(&bytes);
    return TOKEN_OK;
}

static enum token_result read_kid(struct jws *jws, const json_t *header, struct mk_arena *arena)
{
    const json_t *kid = json_object_get(header, "kid");
    if (!kid)
        return TOKEN_OK;
    if (!json_is_string(kid) || json_string_length(kid) > JWS_KID_BYTES_MAX)
        return TOKEN_HEADER;
    jws->kid = mk_arena_dup(arena, strict_json_text(kid));
    return jws->kid.p ? TOKEN_OK : TOKEN_MEMORY;
}

static enum token_result read_members(struct jws *jws, const json_t *header, struct mk_arena *arena)
{
    struct mk_str alg = strict_json_string(header, "alg");
    if (json_object_get(header, "crit"))
        return TOKEN_CRITICAL;
    if (!alg.p)
        return TOKEN_HEADER;
    if (!jws_find_alg(alg, &jws->alg))
        return TOKEN_ALGORITHM;
    return read_kid(jws, header, arena);
}

static enum token_result read_header(struct jws *jws, struct mk_str text, struct mk_arena *arena)
{
    struct mk_str bytes;
    enum token_result result = decode_segment(text, arena, &bytes);
    if (result != TOKEN_OK)
        return result;
    json_t *header = strict_json_read_object(bytes, NULL);
    if (!header)
        return TOKEN_HEADER;
    result = read_members(jws, header, arena);
    json_decref(header);
    return result;
}

/* Cuts the part before the next dot off `rest`. Returns false without a dot. */
static bool split_part(struct mk_str *rest, struct mk_str *ret)
{
    const char *dot = rest->len ? memchr(rest->p, '.', rest->len) : NULL;
    if (!dot)
        return false;
    *ret = mk_str(rest->p, (size_t)(dot - rest->p));
    *rest = mk_str(dot + 1, rest->len - ret->len - 1);
    return true;
}

enum token_result jws_read(struct jws *ret, struct mk_str token, struct mk_arena *arena)
{
    struct mk_str header, rest = token;
    *ret = (struct jws){0};
    if (token.len > JWS_BYTES_MAX)
        return TOKEN_TOO_LONG;
    if (!split_part(&rest, &header) || !split_part(&rest, &ret->payload) || !header.len)
        return TOKEN_MALFORMED;
    ret->signed_text = mk_str(token.p, header.len + 1 + ret->payload.len);
    enum token_result result = decode_segment(rest, arena, &ret->signature); /* a further dot is no digit */
    return result == TOKEN_OK ? read_header(ret, header, arena) : result;
}

enum token_result jws_payload(const struct jws *jws, struct mk_arena *arena, struct mk_str *ret)
{
    return decode_segment(jws->payload, arena, ret);
}

/* ── signatures ── */

static bool verify_hmac(const struct jws *jws, EVP_MD_CTX *ctx, EVP_PKEY *pkey)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    size_t len = sizeof(mac);
    return EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, pkey) == 1 &&
           EVP_DigestSign(ctx, mac, &len, (const unsigned char *)jws->signed_text.p, jws->signed_text.len) == 1 &&
           jws->signature.len == len && CRYPTO_memcmp(mac, jws->signature.p, len) == 0;
}

static bool verify_signature(const struct jws *jws, EVP_MD_CTX *ctx, EVP_PKEY *pkey, const EVP_MD *digest,
                             struct mk_str signature)
{
    return EVP_DigestVerifyInit(ctx, NULL, digest, NULL, pkey) == 1 &&
           EVP_DigestVerify(ctx, (const unsigned char *)signature.p, signature.len,
                            (const unsigned char *)jws->signed_text.p, jws->signed_text.len) == 1;
}

static bool verify_rsa(const struct jws *jws, EVP_MD_CTX *ctx, EVP_PKEY *pkey)
{
    return jws->signature.len && verify_signature(jws, ctx, pkey, EVP_sha256(), jws->signature);
}

static bool verify_ed25519(const struct jws *jws, EVP_MD_CTX *ctx, EVP_PKEY *pkey)
{
    return jws->signature.len == 64 && verify_signature(jws, ctx, pkey, NULL, jws->signature);
}

enum { ES256_HALF = 32, ES256_DER_MAX = 80 };

/* Writes the two numbers of a signature, of 32 bytes each, in DER. Returns the length, or 0. */
static size_t write_der(struct mk_str raw, unsigned char *der)
{
    const unsigned char *p = (const unsigned char *)raw.p;
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(p, ES256_HALF, NULL), *s = BN_bin2bn(p + ES256_HALF, ES256_HALF, NULL);
    int len = 0;
    if (sig && r && s && ECDSA_SIG_set0(sig, r, s)) {
        r = s = NULL; /* they belong to `sig` */
        len = i2d_ECDSA_SIG(sig, &der);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return len > 0 ? (size_t)len : 0;
}

static bool verify_ecdsa(const struct jws *jws, EVP_MD_CTX *ctx, EVP_PKEY *pkey)
{
    unsigned char der[ES256_DER_MAX]; /* 2 + 2 * (2 + 33) bytes at most */
    size_t len = jws->signature.len == 2 * ES256_HALF ? write_der(jws->signature, der) : 0;
    return len && verify_signature(jws, ctx, pkey, EVP_sha256(), mk_str((const char *)der, len));
}

/* The type is compared once more, so that a key whose algorithm was set wrongly verifies nothing. */
static const struct {
    const char *type; /* in libcrypto */
    bool (*verify)(const struct jws *jws, EVP_MD_CTX *ctx, EVP_PKEY *pkey);
} algorithms[] = {
    [JWS_HS256] = {"HMAC", verify_hmac},
    [JWS_RS256] = {"RSA", verify_rsa},
    [JWS_ES256] = {"EC", verify_ecdsa},
    [JWS_EDDSA] = {"ED25519", verify_ed25519},
};

bool jws_verify(const struct jws *jws, const struct jws_key *key)
{
    if (key->alg != jws->alg || !EVP_PKEY_is_a(key->pkey, algorithms[key->alg].type))
        return false;
    ERR_set_mark(); /* a wrong signature is no error of a TLS connection in the same thread */
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool right = ctx && algorithms[key->alg].verify(jws, ctx, key->pkey);
    EVP_MD_CTX_free(ctx);
    ERR_pop_to_mark();
    return right;
}
