// SPDX-License-Identifier: Apache-2.0
/*
 * Tokens for the tests of auth: those that RFC 7515 and RFC 8037 print, and ones that libcrypto signs with new keys.
 */
#ifndef MK_UNIT_AUTH_TOKENS_H
#define MK_UNIT_AUTH_TOKENS_H

#include <monkey/base/base64.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "plugins/auth/token.h"

#include "testing.h"

#define JOE "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
#define RFC7515_A1 "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." JOE ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
#define RFC7515_A2 \
    "eyJhbGciOiJSUzI1NiJ9." JOE \
    ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt" \
    "_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_" \
    "nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZR" \
    "mB_eSN9383LcOLn6_dO--xi12jzDwusC-" \
    "eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWyw" \
    "lVmtVrBp0igcN_IoypGlUPQGe77Rw"
#define RFC7515_A3 \
    "eyJhbGciOiJFUzI1NiJ9." JOE \
    ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
#define RFC8037_A4 \
    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-" \
    "09PGcvMg3AIbQR6dWbhijcNR4ki4" \
    "iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"

#define OCT_A1 \
    "{\"kty\":\"oct\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-" \
    "1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow\"}"
#define RSA_A2_N \
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-" \
    "pCgN" \
    "MsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-" \
    "UTo7WTBEMa2R2CapHg665xsm" \
    "tdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_" \
    "h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
#define RSA_A2 "{\"kty\":\"RSA\",\"n\":\"" RSA_A2_N "\",\"e\":\"AQAB\"}"
#define EC_A3_X "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
#define EC_A3_Y "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
#define EC_A3 "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_A3_X "\",\"y\":\"" EC_A3_Y "\"}"
#define OKP_X "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
#define OKP "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" OKP_X "\"}"
#define RFC_KEYS "{\"keys\":[" OCT_A1 "," RSA_A2 "," EC_A3 "," OKP "]}"

#define SECRET "0123456789abcdef0123456789abcdef"

/* What a test reads and writes; released by its teardown. */
struct tokens {
    struct key_set *keys;
    struct mk_buf message, token;
    struct mk_arena arena;
};

static int tokens_setup(void **state)
{
    static struct tokens tokens;
    tokens.keys = key_set_new();
    mk_buf_init(&tokens.message, 65536);
    mk_buf_init(&tokens.token, 65536);
    mk_arena_init(&tokens.arena, NULL, 1 << 20, NULL, 0);
    *state = &tokens;
    return tokens.keys ? 0 : -1;
}

static int tokens_teardown(void **state)
{
    struct tokens *t = *state;
    assert_int_equal(ERR_peek_error(), 0); /* nothing is left for a TLS connection of the thread */
    key_set_free(t->keys);
    mk_buf_release(&t->message);
    mk_buf_release(&t->token);
    mk_arena_release(&t->arena);
    return 0;
}

static inline const char *tokens_message(struct tokens *t)
{
    const char *text = mk_buf_cstr(&t->message);
    t->message.len = 0;
    return text;
}

static inline void tokens_read_keys(struct tokens *t, const char *text)
{
    if (keys_read(t->keys, KEYS_PUBLIC, "keys", mk_str_c(text), &t->message) != 0)
        fail_msg("%s", tokens_message(t));
}

/* ── keys that sign ── */

/* Returns one of two keys, in turn: to make one takes long. */
static inline EVP_PKEY *tokens_get_rsa_key(void)
{
    static EVP_PKEY *keys[2];
    static unsigned turn;
    EVP_PKEY **key = &keys[turn++ % 2];
    if (!*key)
        *key = EVP_RSA_gen(2048U);
    EVP_PKEY_up_ref(*key);
    return *key;
}

static inline EVP_PKEY *tokens_make_key(enum jws_alg alg)
{
    const unsigned char *secret = (const unsigned char *)SECRET SECRET;
    if (alg <= JWS_HS512)
        return EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, secret, jws_secret_bytes_min(alg));
    if (alg <= JWS_PS512)
        return tokens_get_rsa_key();
    if (alg <= JWS_ES512)
        return EVP_EC_gen(alg == JWS_ES256 ? "P-256" : alg == JWS_ES384 ? "P-384" : "P-521");
    return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
}

/* Adds the public part of a key, with an algorithm, to the set of the test. */
static inline void tokens_add_key_for(struct tokens *t, EVP_PKEY *pkey, enum jws_alg alg, const char *kid)
{
    assert_int_equal(EVP_PKEY_up_ref(pkey), 1);
    assert_int_equal(key_set_add(t->keys, pkey, alg, mk_str_c(kid), &t->message), 0);
}

static inline void tokens_add_key(struct tokens *t, EVP_PKEY *pkey, const char *kid)
{
    tokens_add_key_for(t, pkey, JWS_BY_TYPE, kid);
}

/* Writes a signature of ECDSA as JWS has it. */
static inline size_t tokens_raw_signature(unsigned char *sig, size_t len, int half)
{
    const unsigned char *der = sig;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)len);
    assert_non_null(pair);
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), sig, half);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), sig + half, half);
    ECDSA_SIG_free(pair);
    return 2 * (size_t)half;
}

static inline const EVP_MD *tokens_digest(enum jws_alg alg)
{
    if (alg == JWS_EDDSA)
        return NULL;
    const char *bits = jws_alg_name(alg) + 2;
    return EVP_get_digestbyname(*bits == '2' ? "SHA256" : *bits == '3' ? "SHA384" : "SHA512");
}

static inline size_t tokens_sign_text(EVP_PKEY *pkey, enum jws_alg alg, struct mk_str text, unsigned char *sig,
                                      size_t size)
{
    EVP_PKEY_CTX *params;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(ctx, &params, tokens_digest(alg), NULL, pkey), 1);
    if (alg >= JWS_PS256 && alg <= JWS_PS512) {
        assert_int_equal(EVP_PKEY_CTX_set_rsa_padding(params, RSA_PKCS1_PSS_PADDING), 1);
        assert_int_equal(EVP_PKEY_CTX_set_rsa_pss_saltlen(params, RSA_PSS_SALTLEN_DIGEST), 1);
    }
    assert_int_equal(EVP_DigestSign(ctx, sig, &size, (const unsigned char *)text.p, text.len), 1);
    EVP_MD_CTX_free(ctx);
    return EVP_PKEY_is_a(pkey, "EC") ? tokens_raw_signature(sig, size, (EVP_PKEY_get_bits(pkey) + 7) / 8) : size;
}

/* Signs a header and a payload, both JSON or not, by an algorithm of the key; valid until the next one. */
static inline struct mk_str tokens_sign_by(struct tokens *t, EVP_PKEY *pkey, enum jws_alg alg, const char *header,
                                           const char *payload)
{
    unsigned char sig[1024];
    t->token.len = 0;
    mk_base64_encode(&t->token, header, strlen(header), MK_BASE64_URL);
    mk_buf_addc(&t->token, '.');
    mk_base64_encode(&t->token, payload, strlen(payload), MK_BASE64_URL);
    size_t len = tokens_sign_text(pkey, alg, mk_buf_str(&t->token), sig, sizeof(sig));
    mk_buf_addc(&t->token, '.');
    mk_base64_encode(&t->token, sig, len, MK_BASE64_URL);
    assert_int_equal(t->token.err, 0);
    return mk_buf_str(&t->token);
}

/* The same by the algorithm of the key's type. */
static inline struct mk_str tokens_sign(struct tokens *t, EVP_PKEY *pkey, const char *header, const char *payload)
{
    unsigned alg = 0;
    while (!jws_fits(alg, pkey))
        alg++;
    return tokens_sign_by(t, pkey, alg, header, payload);
}

/* Decides about a token in memory that ends at a page that cannot be read. */
static inline struct bearer_decision tokens_decide(struct tokens *t, struct mk_str token,
                                                   const struct claims_rules *rules, int64_t now_ms)
{
    struct bearer_decision decision;
    char *guarded = mk_test_guarded(token.p, token.len);
    bearer_decide(&decision, mk_str(guarded, token.len), t->keys, rules, now_ms, &t->arena);
    mk_test_unguard(guarded, token.len);
    return decision;
}

#endif
