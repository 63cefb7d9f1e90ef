// SPDX-License-Identifier: Apache-2.0
#include "token.h"

#include <monkey/base/base64.h>

#include <assert.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rsa.h>

/* ── signatures ── */

struct algorithm {
    struct mk_str name;
    const char *type, *group; /* of its keys, in libcrypto; `group`: of EC keys */
    const EVP_MD *(*digest)(void);
    bool (*verify)(const struct jws *jws, const struct algorithm *alg, EVP_MD_CTX *ctx, EVP_PKEY *pkey);
    size_t bytes; /* HMAC: the least for a secret (RFC 7518 section 3.2). ECDSA: of each number in a signature */
};

static bool verify_hmac(const struct jws *jws, const struct algorithm *alg, EVP_MD_CTX *ctx, EVP_PKEY *pkey)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    size_t len = sizeof(mac);
    return EVP_DigestSignInit(ctx, NULL, alg->digest(), NULL, pkey) == 1 &&
           EVP_DigestSign(ctx, mac, &len, (const unsigned char *)jws->signed_text.p, jws->signed_text.len) == 1 &&
           jws->signature.len == len && CRYPTO_memcmp(mac, jws->signature.p, len) == 0;
}

/* Verifies a signature after EVP_DigestVerifyInit(). */
static bool verify_text(EVP_MD_CTX *ctx, struct mk_str text, struct mk_str signature)
{
    return EVP_DigestVerify(ctx, (const unsigned char *)signature.p, signature.len, (const unsigned char *)text.p,
                            text.len) == 1;
}

static bool verify_pkcs1(const struct jws *jws, const struct algorithm *alg, EVP_MD_CTX *ctx, EVP_PKEY *pkey)
{
    return jws->signature.len && EVP_DigestVerifyInit(ctx, NULL, alg->digest(), NULL, pkey) == 1 &&
           verify_text(ctx, jws->signed_text, jws->signature);
}

/* The salt is as long as the digest, which MGF1 uses, too (RFC 7518 section 3.5). */
static bool verify_pss(const struct jws *jws, const struct algorithm *alg, EVP_MD_CTX *ctx, EVP_PKEY *pkey)
{
    EVP_PKEY_CTX *params = NULL;
    return jws->signature.len && EVP_DigestVerifyInit(ctx, &params, alg->digest(), NULL, pkey) == 1 &&
           EVP_PKEY_CTX_set_rsa_padding(params, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(params, RSA_PSS_SALTLEN_DIGEST) == 1 &&
           verify_text(ctx, jws->signed_text, jws->signature);
}

static bool verify_ed25519(const struct jws *jws, const struct algorithm *alg, EVP_MD_CTX *ctx, EVP_PKEY *pkey)
{
    (void)alg;
    return jws->signature.len == 64 && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
           verify_text(ctx, jws->signed_text, jws->signature);
}

enum { ECDSA_DER_MAX = 160 }; /* P-521: 3 + 2 * (2 + 67) bytes */

/* Writes the two numbers of a signature, of `half` bytes each, in DER. Returns the length, or 0. */
static size_t write_der(struct mk_str raw, size_t half, unsigned char *der)
{
    const unsigned char *p = (const unsigned char *)raw.p;
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(p, (int)half, NULL), *s = BN_bin2bn(p + half, (int)half, NULL);
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

static bool verify_ecdsa(const struct jws *jws, const struct algorithm *alg, EVP_MD_CTX *ctx, EVP_PKEY *pkey)
{
    unsigned char der[ECDSA_DER_MAX];
    size_t len = jws->signature.len == 2 * alg->bytes ? write_der(jws->signature, alg->bytes, der) : 0;
    return len && EVP_DigestVerifyInit(ctx, NULL, alg->digest(), NULL, pkey) == 1 &&
           verify_text(ctx, jws->signed_text, mk_str((const char *)der, len));
}

/* ── algorithms ── */

#define HMAC(bits) [JWS_HS##bits] = {MK_STR_INIT("HS" #bits), "HMAC", NULL, EVP_sha##bits, verify_hmac, (bits) / 8}
#define RSA_PKCS1(bits) [JWS_RS##bits] = {MK_STR_INIT("RS" #bits), "RSA", NULL, EVP_sha##bits, verify_pkcs1, 0}
#define RSA_PSS(bits) [JWS_PS##bits] = {MK_STR_INIT("PS" #bits), "RSA", NULL, EVP_sha##bits, verify_pss, 0}
#define ECDSA(bits, group, bytes) \
    [JWS_ES##bits] = {MK_STR_INIT("ES" #bits), "EC", group, EVP_sha##bits, verify_ecdsa, bytes}

static const struct algorithm algorithms[] = {
    HMAC(256),
    HMAC(384),
    HMAC(512),
    RSA_PKCS1(256),
    RSA_PKCS1(384),
    RSA_PKCS1(512),
    RSA_PSS(256),
    RSA_PSS(384),
    RSA_PSS(512),
    ECDSA(256, SN_X9_62_prime256v1, 32),
    ECDSA(384, SN_secp384r1, 48),
    ECDSA(512, SN_secp521r1, 66),
    [JWS_EDDSA] = {MK_STR_INIT("EdDSA"), "ED25519", NULL, NULL, verify_ed25519, 0},
};
static_assert(MK_COUNT_OF(algorithms) == JWS_ALGS, "a row for each");

bool jws_find_alg(struct mk_str name, enum jws_alg *ret)
{
    if (mk_str_eq(name, MK_STR("Ed25519"))) /* RFC 9864 */
        name = algorithms[JWS_EDDSA].name;
    for (unsigned i = 0; i < JWS_ALGS; i++)
        if (mk_str_eq(name, algorithms[i].name)) {
            *ret = i;
            return true;
        }
    return false;
}

const char *jws_alg_name(enum jws_alg alg)
{
    return algorithms[alg].name.p;
}

bool jws_fits(enum jws_alg alg, const EVP_PKEY *pkey)
{
    const struct algorithm *a = &algorithms[alg];
    char group[64];
    if (!EVP_PKEY_is_a(pkey, a->type))
        return false;
    return !a->group ||
           (EVP_PKEY_get_group_name(pkey, group, sizeof(group), NULL) == 1 && strcmp(group, a->group) == 0);
}

size_t jws_secret_bytes_min(enum jws_alg alg)
{
    bool named = alg < JWS_ALGS && algorithms[alg].verify == verify_hmac;
    return algorithms[named ? alg : JWS_HS256].bytes;
}

bool jws_verify(const struct jws *jws, const struct jws_key *key)
{
    const struct algorithm *alg = &algorithms[key->alg];
    /* type and curve are compared once more, so that a key whose algorithm was set wrongly verifies nothing */
    if (key->alg != jws->alg || !jws_fits(key->alg, key->pkey))
        return false;
    ERR_set_mark(); /* a wrong signature is no error of a TLS connection in the same thread */
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool right = ctx && alg->verify(jws, alg, ctx, key->pkey);
    EVP_MD_CTX_free(ctx);
    ERR_pop_to_mark();
    return right;
}

/* ── tokens ── */

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
