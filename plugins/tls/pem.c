// SPDX-License-Identifier: Apache-2.0
/*
 * Reads PEM files (pem.h): at the start with the privileges that the process was started with, at a reload with those
 * of the user in the configuration.
 */
#include "pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void pem_add_reason(struct mk_buf *fault)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    if (text)
        mk_buf_addf(fault, ": %s", text);
    ERR_clear_error();
}

void pem_free_file(struct pem_file *file)
{
    if (file->data)
        OPENSSL_clear_free(file->data, file->len + 1);
    *file = (struct pem_file){0};
}

static bool is_private_mode(const struct stat *st, struct mk_buf *fault)
{
    if (!(st->st_mode & (S_IWGRP | S_IXGRP | S_IRWXO)))
        return true;
    mk_buf_addf(fault,
                "is open to others: its mode is %03o, but only its owner may write it, and only its group read it too "
                "(chmod 600, or 640)",
                (unsigned)st->st_mode & 0777);
    return false;
}

static bool read_bytes(struct pem_file *file, int fd, size_t size, struct mk_buf *fault)
{
    file->data = OPENSSL_malloc(size + 1);
    if (!file->data) {
        mk_buf_addf(fault, "cannot be read: %s", strerror(ENOMEM));
        return false;
    }
    while (file->len < size) {
        ssize_t n = read(fd, file->data + file->len, size - file->len);
        if (n < 0) {
            mk_buf_addf(fault, "cannot be read: %s", strerror(errno));
            return false;
        }
        if (n == 0)
            break;
        file->len += (size_t)n;
    }
    file->data[file->len] = '\0';
    return true;
}

static bool check_file(int fd, struct stat *st, bool secret, struct mk_buf *fault)
{
    if (fstat(fd, st) < 0)
        mk_buf_addf(fault, "cannot be read: %s", strerror(errno));
    else if (!S_ISREG(st->st_mode))
        mk_buf_addf(fault, "is not a regular file");
    else if (st->st_size == 0)
        mk_buf_addf(fault, "is empty");
    else if (st->st_size > PEM_BYTES_MAX)
        mk_buf_addf(fault, "has more than %d bytes", PEM_BYTES_MAX);
    else
        return !secret || is_private_mode(st, fault);
    return false;
}

bool pem_read_file(struct pem_file *file, const char *path, bool secret, struct mk_buf *fault)
{
    struct stat st;
    *file = (struct pem_file){0};
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* O_NONBLOCK: do not wait for a FIFO */
    if (fd < 0) {
        mk_buf_addf(fault, "cannot be read: %s", strerror(errno));
        return false;
    }
    bool good = check_file(fd, &st, secret, fault) && read_bytes(file, fd, (size_t)st.st_size, fault);
    close(fd);
    if (!good)
        pem_free_file(file);
    return good;
}

/* A passphrase callback that fails: a server cannot ask for one. */
static int refuse_passphrase(char *to, int size, int writes, void *ctx)
{
    bool *asked = ctx;
    (void)to, (void)size, (void)writes;
    *asked = true;
    return -1;
}

/* ── other formats, for messages ── */

#define IS_KIND(name, type, read) \
    static bool is_##name(const unsigned char *der, long len) \
    { \
        type *one = read(NULL, &der, len); \
        type##_free(one); \
        return one; \
    }

IS_KIND(certificate, X509, d2i_X509)
IS_KIND(container, PKCS12, d2i_PKCS12)
IS_KIND(message, PKCS7, d2i_PKCS7)
IS_KIND(locked_key, X509_SIG, d2i_X509_SIG)
IS_KIND(key, EVP_PKEY, d2i_AutoPrivateKey)

/* The key comes last: its parser accepts much. */
static const struct {
    bool (*is)(const unsigned char *der, long len);
    const char *phrase;
} kinds[] = {
    {is_certificate, "is a certificate in DER; openssl x509 -inform DER -in FILE writes it in PEM"},
    {is_container, "is in PKCS#12; openssl pkcs12 -in FILE -noenc writes the key and the certificates in PEM"},
    {is_message, "is in PKCS#7; openssl pkcs7 -inform DER -print_certs -in FILE writes the certificates in PEM"},
    {is_locked_key,
     "is a private key in DER with a passphrase; openssl pkey -inform DER -in FILE writes it in PEM without"},
    {is_key, "is a private key in DER; openssl pkey -inform DER -in FILE writes it in PEM"},
};

/* Adds a phrase if the file has one of these formats, and returns true. Keeps the errors that libcrypto had before. */
static bool explain_format(const struct pem_file *file, struct mk_buf *fault)
{
    const unsigned char *bytes = (const unsigned char *)file->data;
    const char *phrase = NULL;
    if (bytes[0] != 0x30) /* a SEQUENCE, as all of them */
        return false;
    ERR_set_mark();
    for (size_t i = 0; !phrase && i < MK_COUNT_OF(kinds); i++)
        if (kinds[i].is(bytes, (long)file->len))
            phrase = kinds[i].phrase;
    ERR_pop_to_mark();
    if (phrase)
        mk_buf_addf(fault, "%s", phrase);
    return phrase;
}

/* ── certificates and keys ── */

STACK_OF(X509) * pem_read_certificates(const char *path, struct mk_buf *fault)
{
    struct pem_file file;
    bool asked = false;
    X509 *one;
    if (!pem_read_file(&file, path, false, fault))
        return NULL;
    STACK_OF(X509) *all = sk_X509_new_null();
    BIO *bio = BIO_new_mem_buf(file.data, (int)file.len);
    ERR_clear_error();
    while (bio && all && (one = PEM_read_bio_X509(bio, NULL, refuse_passphrase, &asked)))
        if (!sk_X509_push(all, one))
            X509_free(one);
    bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE; /* the file ends after the last one */
    BIO_free(bio);
    if (ended)
        ERR_clear_error();
    bool good = all && ended && sk_X509_num(all);
    if (!good && !explain_format(&file, fault)) {
        mk_buf_addf(fault, ended ? "holds no certificate in PEM" : "holds a certificate that cannot be read");
        pem_add_reason(fault);
    }
    pem_free_file(&file);
    if (good)
        return all;
    sk_X509_pop_free(all, X509_free);
    return NULL;
}

EVP_PKEY *pem_read_key(const char *path, struct mk_buf *fault)
{
    struct pem_file file;
    bool asked = false;
    if (!pem_read_file(&file, path, true, fault))
        return NULL;
    BIO *bio = BIO_new_mem_buf(file.data, (int)file.len);
    ERR_clear_error();
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, &asked) : NULL;
    bool is_pem = memmem(file.data, file.len, "-----BEGIN ", 11), known = !key && explain_format(&file, fault);
    BIO_free(bio);
    pem_free_file(&file);
    if (key || known)
        return key;
    if (asked || !is_pem)
        ERR_clear_error(); /* its text would not help */
    mk_buf_addf(fault, asked ? "has a passphrase, which the server cannot ask for; openssl pkey -in FILE writes it "
                               "without"
                             : "holds no private key in PEM");
    pem_add_reason(fault);
    return NULL;
}
