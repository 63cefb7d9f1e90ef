// SPDX-License-Identifier: Apache-2.0
/* Blocks of PEM, and which of them hold a public key (pem_keys.h). The dates of certificates are not looked at. */
#include "pem_keys.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <errno.h>

/* ── blocks ── */

static EVP_PKEY *read_public(const unsigned char *der, long len)
{
    return d2i_PUBKEY(NULL, &der, len);
}

static EVP_PKEY *read_rsa(const unsigned char *der, long len)
{
    return d2i_PublicKey(EVP_PKEY_RSA, NULL, &der, len);
}

static EVP_PKEY *read_certificate(const unsigned char *der, long len)
{
    X509 *certificate = d2i_X509(NULL, &der, len);
    EVP_PKEY *pkey = certificate ? X509_get_pubkey(certificate) : NULL;
    X509_free(certificate);
    return pkey;
}

static const struct block_kind {
    const char *label;
    EVP_PKEY *(*read)(const unsigned char *der, long len); /* NULL: without meaning here */
} kinds[] = {
    {PEM_STRING_PUBLIC, read_public},
    {PEM_STRING_RSA_PUBLIC, read_rsa},
    {PEM_STRING_X509, read_certificate},
    {PEM_STRING_ECPARAMETERS, NULL},
};

struct block {
    unsigned nth;
    char *label, *header;
    unsigned char *der;
    long len;
};

static const struct block_kind *find_kind(const char *label)
{
    for (size_t i = 0; i < MK_COUNT_OF(kinds); i++)
        if (strcmp(label, kinds[i].label) == 0)
            return &kinds[i];
    return NULL;
}

static int report_error(struct mk_buf *message, const char *name, const struct block *block, const char *phrase)
{
    mk_buf_addf(key_set_report(message, name), "(block %u) %s", block->nth, phrase);
    return -EINVAL;
}

/* A private key, or something that is no key at all. */
static int refuse_block(const char *name, const struct block *block, struct mk_buf *message)
{
    if (!strstr(block->label, "PRIVATE KEY"))
        return report_error(message, name, block, "is neither a public key nor a certificate");
    return report_error(
        message, name, block,
        "is a private key, which does not belong here; openssl pkey -in FILE -pubout writes the public one");
}

static int add_block(struct key_set *keys, const char *name, const struct block *block, struct mk_buf *message)
{
    const struct block_kind *kind = find_kind(block->label);
    if (!kind)
        return refuse_block(name, block, message);
    if (!kind->read)
        return 0;
    EVP_PKEY *pkey = kind->read(block->der, block->len);
    if (!pkey)
        return report_error(message, name, block, "cannot be read");
    MK_BUF_ON_STACK(phrase, 128);
    int err = key_set_add(keys, pkey, MK_STR_NONE, &phrase);
    if (err < 0)
        report_error(message, name, block, mk_buf_cstr(&phrase));
    return err;
}

/* ── texts ── */

static bool read_block(BIO *bio, struct block *block)
{
    block->nth++;
    return PEM_read_bio(bio, &block->label, &block->header, &block->der, &block->len);
}

static void free_block(struct block *block)
{
    OPENSSL_free(block->label);
    OPENSSL_free(block->header);
    OPENSSL_clear_free(block->der, (size_t)block->len);
}

/* Says what ended the reading. Returns 0 if the text ends after a key. */
static int check_end(const char *name, const struct block *block, bool found, struct mk_buf *message)
{
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return report_error(message, name, block, "is damaged");
    if (found)
        return 0;
    mk_buf_addf(key_set_report(message, name), "holds neither a key in PEM nor a JWK set");
    return -EINVAL;
}

int pem_keys_read(struct key_set *keys, const char *name, struct mk_str text, struct mk_buf *message)
{
    struct block block = {0};
    int err = 0;
    unsigned before = key_set_count(keys);
    bool more = true;
    BIO *bio = BIO_new_mem_buf(text.len ? text.p : "", (int)text.len);
    if (!bio)
        return -ENOMEM;
    ERR_set_mark();
    while (err == 0 && (more = read_block(bio, &block))) {
        err = add_block(keys, name, &block, message);
        free_block(&block);
    }
    if (!more)
        err = check_end(name, &block, key_set_count(keys) > before, message);
    ERR_pop_to_mark();
    BIO_free(bio);
    return err;
}
