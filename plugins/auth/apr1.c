// SPDX-License-Identifier: Apache-2.0
/*
 * The `$apr1$` hash (apr1.h). Its construction is that of FreeBSD's MD5 crypt with another prefix.
 */
#include "apr1.h"

#include <openssl/evp.h>

#include <errno.h>

enum { MD5_BYTES = 16, ROUNDS = 1000 };

struct apr1_digest {
    EVP_MD_CTX *ctx;
    bool failed;
    unsigned char bytes[MD5_BYTES];
};

static void begin_digest(struct apr1_digest *d)
{
    if (!d->failed && EVP_DigestInit_ex(d->ctx, EVP_md5(), NULL) != 1)
        d->failed = true;
}

static void add_bytes(struct apr1_digest *d, const void *data, size_t len)
{
    if (!d->failed && EVP_DigestUpdate(d->ctx, data, len) != 1)
        d->failed = true;
}

static void add_str(struct apr1_digest *d, struct mk_str s)
{
    add_bytes(d, s.p, s.len);
}

static void end_digest(struct apr1_digest *d)
{
    if (!d->failed && EVP_DigestFinal_ex(d->ctx, d->bytes, NULL) != 1)
        d->failed = true;
}

/* The first digest: of the password, the prefix, the salt, and a digest of both that is as long as the password. */
static void make_first(struct apr1_digest *d, struct mk_str password, struct mk_str salt)
{
    unsigned char inner[MD5_BYTES];
    begin_digest(d);
    add_str(d, password);
    add_str(d, salt);
    add_str(d, password);
    end_digest(d);
    memcpy(inner, d->bytes, sizeof(inner));
    begin_digest(d);
    add_str(d, password);
    add_str(d, MK_STR("$apr1$"));
    add_str(d, salt);
    for (size_t left = password.len; left; left -= left < MD5_BYTES ? left : MD5_BYTES)
        add_bytes(d, inner, left < MD5_BYTES ? left : MD5_BYTES);
    for (size_t bits = password.len; bits; bits >>= 1)
        add_bytes(d, bits & 1 ? "" : password.p, 1); /* a zero, or the first byte of the password */
    end_digest(d);
    explicit_bzero(inner, sizeof(inner));
}

static void make_round(struct apr1_digest *d, unsigned n, struct mk_str password, struct mk_str salt)
{
    struct mk_str last = mk_str((const char *)d->bytes, MD5_BYTES);
    begin_digest(d);
    add_str(d, n & 1 ? password : last);
    if (n % 3)
        add_str(d, salt);
    if (n % 7)
        add_str(d, password);
    add_str(d, n & 1 ? last : password);
    end_digest(d);
}

static char *put_digits(char *to, unsigned long value, unsigned n)
{
    static const char digits[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (; n; n--, value >>= 6)
        *to++ = digits[value & 63];
    return to;
}

static void encode_digest(const unsigned char *bytes, char to[APR1_DIGITS])
{
    static const uint8_t order[5][3] = {{0, 6, 12}, {1, 7, 13}, {2, 8, 14}, {3, 9, 15}, {4, 10, 5}};
    for (unsigned i = 0; i < 5; i++)
        to = put_digits(to,
                        (unsigned long)bytes[order[i][0]] << 16 | (unsigned long)bytes[order[i][1]] << 8 |
                            bytes[order[i][2]],
                        4);
    put_digits(to, bytes[11], 2);
}

int apr1_compute(struct mk_str password, struct mk_str salt, char to[APR1_DIGITS])
{
    struct apr1_digest d = {.ctx = EVP_MD_CTX_new()};
    d.failed = !d.ctx;
    make_first(&d, password, salt);
    for (unsigned n = 0; n < ROUNDS; n++)
        make_round(&d, n, password, salt);
    encode_digest(d.bytes, to);
    EVP_MD_CTX_free(d.ctx); /* wipes its state */
    explicit_bzero(d.bytes, sizeof(d.bytes));
    return d.failed ? -ENOTSUP : 0;
}
