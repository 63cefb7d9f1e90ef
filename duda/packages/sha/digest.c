// SPDX-License-Identifier: Apache-2.0
/*
 * Digests by libcrypto (digest.h). The digest is looked up once, because a look-up takes a lock of all threads; a
 * context is made for each call.
 */
#include "digest.h"

#include <monkey/base/escape.h>

#include <assert.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

/* Set before the table of the package is handed out, and freed when the package is unloaded. */
static struct {
    const char *name;
    size_t bytes;
    EVP_MD *md;
    EVP_MAC *hmac;
} kind;

__attribute__((destructor)) static void close_digest(void)
{
    EVP_MD_free(kind.md);
    EVP_MAC_free(kind.hmac);
    kind.md = NULL;
    kind.hmac = NULL;
}

int digest_open(const char *name, size_t bytes)
{
    assert(name && bytes <= EVP_MAX_MD_SIZE);
    if (!kind.md)
        kind.md = EVP_MD_fetch(NULL, name, NULL);
    if (!kind.hmac)
        kind.hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    kind.name = name;
    kind.bytes = bytes;
    return kind.md && kind.hmac && (size_t)EVP_MD_get_size(kind.md) == bytes ? 0 : -ENOENT;
}

/* Zeros the digest of a call that has failed. Returns `err`. */
static int fail_digest(unsigned char *digest, int err)
{
    assert(err < 0);
    if (digest)
        memset(digest, 0, kind.bytes);
    return err;
}

/* ── digests ── */

struct duda_digest *digest_init(void)
{
    assert(kind.md);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (ctx && EVP_DigestInit_ex2(ctx, kind.md, NULL) == 1)
        return (struct duda_digest *)ctx;
    EVP_MD_CTX_free(ctx);
    return NULL;
}

void digest_abort(struct duda_digest *d)
{
    EVP_MD_CTX_free((EVP_MD_CTX *)d);
}

int digest_update(struct duda_digest *d, const void *data, size_t len)
{
    EVP_MD_CTX *ctx = (EVP_MD_CTX *)d;
    if (!d || len == 0)
        return d ? 0 : -EINVAL;
    if (data && EVP_DigestUpdate(ctx, data, len) == 1)
        return 0;
    EVP_MD_CTX_reset(ctx); /* so that digest_final() fails, too */
    return data ? -ENOMEM : -EINVAL;
}

int digest_final(struct duda_digest *d, unsigned char *digest)
{
    bool done = d && digest && EVP_DigestFinal_ex((EVP_MD_CTX *)d, digest, NULL) == 1;
    digest_abort(d);
    return done ? 0 : fail_digest(digest, d && digest ? -ENOMEM : -EINVAL);
}

int digest_encode(const void *data, size_t len, unsigned char *digest)
{
    if (!digest || (!data && len))
        return fail_digest(digest, -EINVAL);
    struct duda_digest *d = digest_init();
    int err = d ? digest_update(d, data, len) : -ENOMEM;
    if (err == 0)
        return digest_final(d, digest);
    digest_abort(d);
    return fail_digest(digest, err);
}

/* ── HMAC ── */

int digest_hmac(const void *key, size_t key_len, const void *data, size_t len, unsigned char *digest)
{
    char name[32];
    if (!digest || (!key && key_len) || (!data && len))
        return fail_digest(digest, -EINVAL);
    snprintf(name, sizeof(name), "%s", kind.name); /* the parameter is not const */
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
                           OSSL_PARAM_construct_end()};
    EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(kind.hmac);
    /* NULL would be "the key of the last time" */
    bool done = ctx && EVP_MAC_init(ctx, key_len ? key : "", key_len, params) == 1 &&
                (len == 0 || EVP_MAC_update(ctx, data, len) == 1) && EVP_MAC_final(ctx, digest, NULL, kind.bytes) == 1;
    EVP_MAC_CTX_free(ctx);
    return done ? 0 : fail_digest(digest, -ENOMEM);
}

/* ── texts ── */

char *digest_hex(const unsigned char *digest, char *text)
{
    *mk_hex_write(text, digest, kind.bytes) = '\0';
    return text;
}

bool digest_is_equal(const void *a, const void *b, size_t len)
{
    return len == 0 || (a && b && CRYPTO_memcmp(a, b, len) == 0);
}
