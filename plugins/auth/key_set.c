// SPDX-License-Identifier: Apache-2.0
/*
 * Which keys are accepted, and which may have signed a token (key_set.h). The formats are read by pem_keys.c and
 * jwks.c.
 */
#include "key_set.h"

#include <openssl/core_names.h>
#include <openssl/err.h>

#include <errno.h>

struct key_set {
    struct jws_key all[KEY_SET_MAX];
    unsigned n;
    char id[KEY_SET_ID_BYTES];
    struct mk_arena arena; /* of the kids */
};

struct key_set *key_set_new(void)
{
    struct key_set *keys = mk_account_zalloc(NULL, sizeof(*keys));
    if (!keys)
        return NULL;
    mk_arena_init(&keys->arena, NULL, (size_t)2 * KEY_SET_MAX * JWS_KID_BYTES_MAX, NULL, 0);
    return keys;
}

void key_set_free(struct key_set *keys)
{
    if (!keys)
        return;
    for (unsigned i = 0; i < keys->n; i++)
        EVP_PKEY_free(keys->all[i].pkey);
    mk_arena_release(&keys->arena);
    mk_account_free(NULL, keys, sizeof(*keys));
}

unsigned key_set_count(const struct key_set *keys)
{
    return keys->n;
}

unsigned key_set_count_secrets(const struct key_set *keys)
{
    unsigned n = 0;
    for (unsigned i = 0; i < keys->n; i++)
        n += keys->all[i].alg == JWS_HS256;
    return n;
}

struct mk_str key_set_id(const struct key_set *keys)
{
    return mk_str(keys->id, sizeof(keys->id));
}

struct mk_buf *key_set_report(struct mk_buf *message, const char *name)
{
    mk_buf_addf(message, "%s%s ", message->len ? "; " : "", name);
    return message;
}

/* ── which keys are accepted ── */

static int check_rsa(const EVP_PKEY *pkey, struct mk_buf *message)
{
    int bits = EVP_PKEY_get_bits(pkey);
    if (bits >= KEY_SET_RSA_BITS_MIN && bits <= KEY_SET_RSA_BITS_MAX)
        return 0;
    mk_buf_addf(message, "is an RSA key of %d bits; %d to %d are accepted", bits, KEY_SET_RSA_BITS_MIN,
                KEY_SET_RSA_BITS_MAX);
    return -EINVAL;
}

static int check_ec(const EVP_PKEY *pkey, struct mk_buf *message)
{
    char group[64] = "";
    size_t len;
    if (EVP_PKEY_get_group_name(pkey, group, sizeof(group), &len) && strcmp(group, SN_X9_62_prime256v1) == 0)
        return 0;
    mk_buf_addf(message, "is an EC key of the curve %s; only P-256 is accepted", *group ? group : "without a name");
    return -EINVAL;
}

static const struct {
    const char *type; /* in libcrypto */
    enum jws_alg alg;
    int (*check)(const EVP_PKEY *pkey, struct mk_buf *message); /* or NULL */
} types[] = {
    {"RSA", JWS_RS256, check_rsa},
    {"EC", JWS_ES256, check_ec},
    {"ED25519", JWS_EDDSA, NULL},
    {"HMAC", JWS_HS256, NULL},
};

static int check_type(const EVP_PKEY *pkey, enum jws_alg *ret, struct mk_buf *message)
{
    for (size_t i = 0; i < MK_COUNT_OF(types); i++)
        if (EVP_PKEY_is_a(pkey, types[i].type)) {
            *ret = types[i].alg;
            return types[i].check ? types[i].check(pkey, message) : 0;
        }
    mk_buf_addf(message, "is neither an RSA, nor a P-256, nor an Ed25519 key");
    return -EINVAL;
}

/* Checks the numbers of a public key: that a point is on its curve, for example. */
static int check_numbers(EVP_PKEY *pkey, struct mk_buf *message)
{
    ERR_set_mark();
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(pkey, NULL);
    bool right = ctx && EVP_PKEY_public_check(ctx) == 1;
    EVP_PKEY_CTX_free(ctx);
    ERR_pop_to_mark();
    if (right)
        return 0;
    mk_buf_addf(message, "is not a valid public key");
    return -EINVAL;
}

static int store_key(struct key_set *keys, EVP_PKEY *pkey, enum jws_alg alg, struct mk_str kid, struct mk_buf *message)
{
    struct jws_key *key = &keys->all[keys->n];
    if (keys->n == KEY_SET_MAX) {
        mk_buf_addf(message, "is above the limit of %d keys", KEY_SET_MAX);
        return -ENOBUFS;
    }
    struct mk_str copy = kid.p ? mk_arena_dup(&keys->arena, kid) : MK_STR_NONE;
    if (kid.p && !copy.p) {
        mk_buf_addf(message, "cannot be stored: %s", strerror(ENOMEM));
        return -ENOMEM;
    }
    *key = (struct jws_key){.alg = alg, .kid = copy, .pkey = pkey};
    keys->n++;
    return 0;
}

int key_set_add(struct key_set *keys, EVP_PKEY *pkey, struct mk_str kid, struct mk_buf *message)
{
    enum jws_alg alg;
    int err = check_type(pkey, &alg, message);
    if (err == 0 && alg != JWS_HS256)
        err = check_numbers(pkey, message);
    if (err == 0)
        err = store_key(keys, pkey, alg, kid, message);
    if (err < 0)
        EVP_PKEY_free(pkey);
    return err;
}

int key_set_add_secret(struct key_set *keys, struct mk_str secret, struct mk_str kid, struct mk_buf *message)
{
    if (secret.len < KEY_SET_SECRET_BYTES_MIN || secret.len > KEY_SET_SECRET_BYTES_MAX) {
        mk_buf_addf(message, "is a secret of %zu bytes; %d to %d are accepted", secret.len, KEY_SET_SECRET_BYTES_MIN,
                    KEY_SET_SECRET_BYTES_MAX);
        return -EINVAL;
    }
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, (const unsigned char *)secret.p, secret.len);
    if (pkey)
        return key_set_add(keys, pkey, kid, message);
    mk_buf_addf(message, "cannot be stored: %s", strerror(ENOMEM));
    return -ENOMEM;
}

/* The length comes first, so that bytes cannot move from one file to the next. */
int key_set_extend_id(struct key_set *keys, unsigned kind, struct mk_str bytes)
{
    uint64_t head[2] = {kind, bytes.len};
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool done = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) &&
                EVP_DigestUpdate(ctx, keys->id, sizeof(keys->id)) && EVP_DigestUpdate(ctx, head, sizeof(head)) &&
                EVP_DigestUpdate(ctx, bytes.p, bytes.len) && EVP_DigestFinal_ex(ctx, (unsigned char *)keys->id, NULL);
    EVP_MD_CTX_free(ctx);
    return done ? 0 : -ENOMEM;
}

/* ── which keys may have signed a token ── */

static bool has_kid(const struct key_set *keys, const struct jws *jws)
{
    for (unsigned i = 0; i < keys->n && jws->kid.p; i++)
        if (keys->all[i].alg == jws->alg && keys->all[i].kid.p && mk_str_eq(keys->all[i].kid, jws->kid))
            return true;
    return false;
}

static bool may_sign(const struct jws_key *key, const struct jws *jws, bool exact)
{
    if (key->alg != jws->alg)
        return false;
    if (exact)
        return key->kid.p && mk_str_eq(key->kid, jws->kid);
    return !jws->kid.p || !key->kid.p;
}

const struct jws_key *key_set_next(const struct key_set *keys, const struct jws *jws, const struct jws_key *after)
{
    bool exact = has_kid(keys, jws);
    for (const struct jws_key *key = after ? after + 1 : keys->all; key < keys->all + keys->n; key++)
        if (may_sign(key, jws, exact))
            return key;
    return NULL;
}
