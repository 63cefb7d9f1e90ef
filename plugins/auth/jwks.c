// SPDX-License-Identifier: Apache-2.0
#include "token.h"

#include <monkey/base/base64.h>

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

/* Storage has more room than a value of the right length needs: mk_base64_decode() asks for some, too. */
enum { MEMBER_BYTES_MAX = 4096, EC_BYTES_MAX = 66, ED25519_BYTES = 32, ROOM = 32 };

/* A JWK that is being read. */
struct jwk {
    const json_t *json;
    enum jws_alg alg; /* JWS_BY_TYPE: it names none */
    struct mk_str kid;
    struct mk_buf *phrase; /* what is wrong with it */
};

/* ── members ── */

/* Says what is wrong, and returns -EINVAL. */
static int reject_key(const struct jwk *jwk, const char *phrase)
{
    mk_buf_addf(jwk->phrase, "%s", phrase);
    return -EINVAL;
}

/* Decodes a member in base64url into `bytes`, whose storage is the caller's. Returns false without it. */
static bool read_bytes(const struct jwk *jwk, const char *member, struct mk_buf *bytes)
{
    struct mk_str text = strict_json_string(jwk->json, member);
    if (text.len && mk_base64_decode(bytes, text, MK_BASE64_URL) == 0)
        return true;
    mk_buf_addf(jwk->phrase, text.len ? "has a member \"%s\" that is not base64url" : "has no string \"%s\"", member);
    return false;
}

static BIGNUM *read_number(const struct jwk *jwk, const char *member)
{
    MK_BUF_ON_STACK(bytes, MEMBER_BYTES_MAX);
    if (!read_bytes(jwk, member, &bytes))
        return NULL;
    return BN_bin2bn((const unsigned char *)bytes.data, (int)bytes.len, NULL);
}

static EVP_PKEY *make_key(const char *type, OSSL_PARAM *params)
{
    EVP_PKEY *pkey = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (!params || !ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) != 1)
        pkey = NULL;
    EVP_PKEY_CTX_free(ctx);
    return pkey;
}

static int add_key(struct key_set *keys, const struct jwk *jwk, EVP_PKEY *pkey)
{
    return pkey ? key_set_add(keys, pkey, jwk->alg, jwk->kid, jwk->phrase)
                : reject_key(jwk, "is not a valid public key");
}

/* ── types of keys ── */

static int read_oct(struct key_set *keys, const struct jwk *jwk)
{
    MK_BUF_ON_STACK(bytes, MEMBER_BYTES_MAX + 1);
    int err = -EINVAL;
    if (read_bytes(jwk, "k", &bytes))
        err = key_set_add_secret(keys, mk_buf_str(&bytes), jwk->alg, jwk->kid, jwk->phrase);
    explicit_bzero(bytes.data, bytes.size);
    return err;
}

static EVP_PKEY *make_rsa(const BIGNUM *n, const BIGNUM *e)
{
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    OSSL_PARAM *params = NULL;
    if (builder && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e))
        params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY *pkey = make_key("RSA", params);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    return pkey;
}

static int read_rsa(struct key_set *keys, const struct jwk *jwk)
{
    BIGNUM *n = read_number(jwk, "n"), *e = n ? read_number(jwk, "e") : NULL;
    int err = n && e ? add_key(keys, jwk, make_rsa(n, e)) : -EINVAL;
    BN_free(n);
    BN_free(e);
    return err;
}

static const struct curve {
    const char *name, *group; /* in JWKs, and in libcrypto */
    unsigned bytes;           /* of each coordinate */
} curves[] = {
    {"P-256", SN_X9_62_prime256v1, 32},
    {"P-384", SN_secp384r1, 48},
    {"P-521", SN_secp521r1, EC_BYTES_MAX},
};

static const struct curve *find_curve(const struct jwk *jwk)
{
    struct mk_str name = strict_json_string(jwk->json, "crv");
    for (size_t i = 0; i < MK_COUNT_OF(curves); i++)
        if (mk_str_eq(name, mk_str_c(curves[i].name)))
            return &curves[i];
    return NULL;
}

/* Decodes a coordinate behind what `point` has. */
static bool read_coordinate(const struct jwk *jwk, const char *member, unsigned bytes, struct mk_buf *point)
{
    size_t before = point->len;
    if (!read_bytes(jwk, member, point))
        return false;
    if (point->len == before + bytes)
        return true;
    mk_buf_addf(jwk->phrase, "has %s \"%s\" that is not of %u bytes", *member == 'x' ? "an" : "a", member, bytes);
    return false;
}

static int read_ec(struct key_set *keys, const struct jwk *jwk)
{
    const struct curve *curve = find_curve(jwk);
    char point[1 + 2 * EC_BYTES_MAX + ROOM] = {4 /* not compressed */}, group[16];
    struct mk_buf bytes;
    if (!curve)
        return reject_key(jwk, "has another curve than P-256, P-384 and P-521");
    mk_buf_init_fixed(&bytes, point, sizeof(point));
    bytes.len = 1;
    if (!read_coordinate(jwk, "x", curve->bytes, &bytes) || !read_coordinate(jwk, "y", curve->bytes, &bytes))
        return -EINVAL;
    snprintf(group, sizeof(group), "%s", curve->group);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, bytes.len),
        OSSL_PARAM_construct_end(),
    };
    return add_key(keys, jwk, make_key("EC", params));
}

static int read_okp(struct key_set *keys, const struct jwk *jwk)
{
    if (!mk_str_eq(strict_json_string(jwk->json, "crv"), MK_STR("Ed25519")))
        return reject_key(jwk, "has another curve than Ed25519");
    MK_BUF_ON_STACK(bytes, ED25519_BYTES + ROOM);
    if (!read_bytes(jwk, "x", &bytes))
        return -EINVAL;
    if (bytes.len != ED25519_BYTES)
        return reject_key(jwk, "has an \"x\" that is not of 32 bytes");
    return add_key(keys, jwk,
                   EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, (const unsigned char *)bytes.data, bytes.len));
}

static const struct key_type {
    const char *name;
    int (*read)(struct key_set *keys, const struct jwk *jwk);
} types[] = {
    {"oct", read_oct},
    {"RSA", read_rsa},
    {"EC", read_ec},
    {"OKP", read_okp},
};

static const struct key_type *find_type(const struct jwk *jwk)
{
    struct mk_str name = strict_json_string(jwk->json, "kty");
    for (size_t i = 0; i < MK_COUNT_OF(types); i++)
        if (mk_str_eq(name, mk_str_c(types[i].name)))
            return &types[i];
    return NULL;
}

/* ── what a key may be used for ── */

static bool has_item(const json_t *array, struct mk_str text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        if (json_is_string(item) && mk_str_eq(strict_json_text(item), text))
            return true;
    }
    return false;
}

static int read_use(struct jwk *jwk)
{
    const json_t *use = json_object_get(jwk->json, "use"), *ops = json_object_get(jwk->json, "key_ops"),
                 *alg = json_object_get(jwk->json, "alg");
    if (use && !mk_str_eq(strict_json_string(jwk->json, "use"), MK_STR("sig")))
        return reject_key(jwk, "is not for signatures (use)");
    if (ops && !has_item(ops, MK_STR("verify")))
        return reject_key(jwk, "is not for verifying (key_ops)");
    if (alg && !jws_find_alg(strict_json_string(jwk->json, "alg"), &jwk->alg))
        return reject_key(jwk, "has an unknown algorithm (alg)");
    return 0;
}

static int read_kid(struct jwk *jwk)
{
    const json_t *kid = json_object_get(jwk->json, "kid");
    if (!kid)
        return 0;
    if (!json_is_string(kid) || json_string_length(kid) > JWS_KID_BYTES_MAX)
        return reject_key(jwk, "has a \"kid\" that is not a string of at most 256 bytes");
    jwk->kid = strict_json_text(kid);
    return 0;
}

static int read_jwk(struct key_set *keys, struct jwk *jwk)
{
    if (!json_is_object(jwk->json))
        return reject_key(jwk, "is not an object");
    const struct key_type *type = find_type(jwk);
    if (!type)
        return reject_key(jwk, "has an unknown type (kty)");
    int err = read_use(jwk);
    if (err == 0)
        err = read_kid(jwk);
    return err == 0 ? type->read(keys, jwk) : err;
}

static bool has_private_members(const json_t *jwk)
{
    static const char *const members[] = {"d", "p", "q", "dp", "dq", "qi", "oth"};
    for (size_t i = 0; i < MK_COUNT_OF(members); i++)
        if (json_object_get(jwk, members[i]))
            return true;
    return false;
}

/* ── sets ── */

/* Reads the key at a position, from 1. Returns 0 if it was added or skipped. */
static int read_item(struct key_set *keys, const char *name, const json_t *item, size_t nth, struct mk_buf *message)
{
    MK_BUF_ON_STACK(phrase, 128);
    struct jwk jwk = {.json = item, .alg = JWS_BY_TYPE, .phrase = &phrase};
    int err = read_jwk(keys, &jwk);
    if (err == 0 && has_private_members(item))
        mk_buf_addf(&phrase, "has private members, which do not belong here");
    if (phrase.len)
        mk_buf_addf(key_set_report(message, name), "(key %zu) %s%s", nth, mk_buf_cstr(&phrase),
                    err == -EINVAL ? ", and is skipped" : "");
    return err == -EINVAL ? 0 : err;
}

/* Reads the keys of an array, or a single one. */
static int read_items(struct key_set *keys, const char *name, const json_t *value, struct mk_buf *message)
{
    unsigned before = key_set_count(keys);
    int err = json_is_array(value) ? 0 : read_item(keys, name, value, 1, message);
    for (size_t i = 0; i < json_array_size(value) && err == 0; i++)
        err = read_item(keys, name, json_array_get(value, i), i + 1, message);
    if (err == 0 && key_set_count(keys) == before) {
        mk_buf_addf(key_set_report(message, name), "holds no key that can be used");
        err = -EINVAL;
    }
    return err;
}

static int read_set(struct key_set *keys, const char *name, const json_t *root, struct mk_buf *message)
{
    const json_t *array = json_object_get(root, "keys");
    if (json_is_array(array) || (!array && json_object_get(root, "kty")))
        return read_items(keys, name, array ? array : root, message);
    mk_buf_addf(key_set_report(message, name), "has no array \"keys\"");
    return -EINVAL;
}

int jwks_read(struct key_set *keys, const char *name, struct mk_str text, struct mk_buf *message)
{
    MK_BUF_ON_STACK(phrase, 128);
    json_t *root = strict_json_read_object(text, &phrase);
    if (!root) {
        mk_buf_addf(key_set_report(message, name), "is wrong in %s", mk_buf_cstr(&phrase));
        return -EINVAL;
    }
    ERR_set_mark();
    int err = read_set(keys, name, root, message);
    ERR_pop_to_mark();
    json_decref(root);
    return err;
}
