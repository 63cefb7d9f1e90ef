// SPDX-License-Identifier: Apache-2.0
#include "tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <pthread.h>
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
    if (file->bytes.data)
        explicit_bzero(file->bytes.data, file->bytes.len);
    mk_arena_release(&file->arena);
}

bool pem_read_file(struct pem_file *file, const char *path, bool secret, struct mk_buf *fault)
{
    *file = (struct pem_file){.bytes = {.len = 0}};
    mk_arena_init(&file->arena, NULL, 2 * PEM_BYTES_MAX, NULL, 0);
    int err = mk_file_read(path, PEM_BYTES_MAX, &file->arena, &file->bytes);
    if (err == 0 && !file->bytes.len)
        err = -ENODATA;
    if (err < 0)
        mk_file_add_read_error(fault, err, PEM_BYTES_MAX);
    else if (!secret || mk_file_is_private(file->bytes.mode))
        return true;
    else
        mk_file_add_mode_error(fault, file->bytes.mode);
    pem_free_file(file);
    return false;
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
    const unsigned char *bytes = (const unsigned char *)file->bytes.data;
    const char *phrase = NULL;
    if (bytes[0] != 0x30) /* a SEQUENCE, as all of them */
        return false;
    ERR_set_mark();
    for (size_t i = 0; !phrase && i < MK_COUNT_OF(kinds); i++)
        if (kinds[i].is(bytes, (long)file->bytes.len))
            phrase = kinds[i].phrase;
    ERR_pop_to_mark();
    if (phrase)
        mk_buf_addf(fault, "%s", phrase);
    return phrase;
}

/* What a file in PEM has in place of what is read from it. */
static const struct pem_label {
    const char *label, *phrase;
} instead_of_certificate[] =
    {
        {"PRIVATE KEY-----", "holds a private key and no certificate: the names of both files may be exchanged"},
        {"CERTIFICATE REQUEST-----", "holds a request for a certificate, which an authority has to sign"},
        {NULL, NULL},
},
  instead_of_key[] = {
      {"-----BEGIN CERTIFICATE-----",
       "holds a certificate and no private key: the names of both files may be exchanged"},
      {"CERTIFICATE REQUEST-----", "holds a request for a certificate and no private key"},
      {"-----BEGIN PUBLIC KEY-----", "holds a public key and no private one"},
      {NULL, NULL},
};

/* Returns what a file holds by the first label that it has; NULL: none of them. */
static const char *find_label(const struct pem_file *file, const struct pem_label *labels)
{
    while (labels->label && !memmem(file->bytes.data, file->bytes.len, labels->label, strlen(labels->label)))
        labels++;
    return labels->phrase;
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
    BIO *bio = BIO_new_mem_buf(file.bytes.data, (int)file.bytes.len);
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
        const char *other = ended ? find_label(&file, instead_of_certificate) : NULL;
        mk_buf_addf(fault, "%s",
                    other   ? other
                    : ended ? "holds no certificate in PEM"
                            : "holds a certificate that cannot be read");
        pem_add_reason(fault);
    }
    pem_free_file(&file);
    if (good)
        return all;
    sk_X509_pop_free(all, X509_free);
    return NULL;
}

/* Says why a file has no key that can be used. `asked`: it has one with a passphrase. */
static void explain_key(const struct pem_file *file, bool asked, struct mk_buf *fault)
{
    bool is_pem = memmem(file->bytes.data, file->bytes.len, "-----BEGIN ", 11);
    const char *why = asked
                          ? "has a passphrase, which the server cannot ask for; openssl pkey -in FILE writes it without"
                          : find_label(file, instead_of_key);
    if (explain_format(file, fault))
        return;
    if (why || !is_pem)
        ERR_clear_error(); /* its text would not help */
    mk_buf_addf(fault, "%s", why ? why : "holds no private key in PEM");
    pem_add_reason(fault);
}

/* The mode is that of a key: a certificate in its place may be open to all. */
EVP_PKEY *pem_read_key(const char *path, struct mk_buf *fault)
{
    struct pem_file file;
    bool asked = false;
    if (!pem_read_file(&file, path, false, fault))
        return NULL;
    BIO *bio = BIO_new_mem_buf(file.bytes.data, (int)file.bytes.len);
    ERR_clear_error();
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, &asked) : NULL;
    if (!key) {
        explain_key(&file, asked, fault);
    } else if (!mk_file_is_private(file.bytes.mode)) {
        mk_file_add_mode_error(fault, file.bytes.mode);
        EVP_PKEY_free(key);
        key = NULL;
    }
    BIO_free(bio);
    pem_free_file(&file);
    return key;
}

/* ── authorities ── */

/* For the process, since stores do not depend on a configuration. */
static struct {
    pthread_mutex_t lock; /* held while a file is read */
    X509_STORE *store;    /* of the file of these: */
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed; /* the time of the last change, also of its mode */
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *authorities_find_system_file(void)
{
    const char *const files[] = {
        secure_getenv(X509_get_default_cert_file_env()),
        X509_get_default_cert_file(),
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
        "/etc/ssl/ca-bundle.pem",             /* SUSE */
        "/etc/ssl/cert.pem",                  /* Alpine */
    };
    for (size_t i = 0; i < MK_COUNT_OF(files); i++)
        if (files[i] && files[i][0] == '/' && access(files[i], F_OK) == 0)
            return files[i];
    return NULL;
}

static X509_STORE *make_store(const char *path, struct mk_buf *fault)
{
    STACK_OF(X509) *all = pem_read_certificates(path, fault);
    X509_STORE *store = all ? X509_STORE_new() : NULL;
    bool good = store;
    for (int i = 0; good && i < sk_X509_num(all); i++) {
        X509_check_purpose(sk_X509_value(all, i), -1, 0); /* parses the extensions here, not in a handshake */
        good = X509_STORE_add_cert(store, sk_X509_value(all, i)) == 1;
    }
    ERR_clear_error();
    if (all && !good)
        mk_buf_addf(fault, "cannot be used: %s", strerror(ENOMEM));
    sk_X509_pop_free(all, X509_free);
    if (good)
        return store;
    X509_STORE_free(store);
    return NULL;
}

static bool is_last(const struct stat *st)
{
    return last.store && st->st_dev == last.device && st->st_ino == last.inode && st->st_size == last.size &&
           st->st_ctim.tv_sec == last.changed.tv_sec && st->st_ctim.tv_nsec == last.changed.tv_nsec;
}

X509_STORE *authorities_read(const char *path, struct mk_buf *fault)
{
    struct stat st = {0};
    pthread_mutex_lock(&last.lock);
    bool known = stat(path, &st) == 0; /* before the file is read: a change afterwards is seen by the next call */
    X509_STORE *store = known && is_last(&st) && access(path, R_OK) == 0 ? last.store : NULL;
    if (!store) {
        store = make_store(path, fault);
        X509_STORE_free(last.store);
        last.store = store;
        last.device = st.st_dev;
        last.inode = st.st_ino;
        last.size = st.st_size;
        last.changed = st.st_ctim;
    }
    if (store && X509_STORE_up_ref(store) != 1)
        store = NULL;
    pthread_mutex_unlock(&last.lock);
    return store;
}

void authorities_stop(void)
{
    pthread_mutex_lock(&last.lock);
    X509_STORE_free(last.store);
    last.store = NULL;
    pthread_mutex_unlock(&last.lock);
}
