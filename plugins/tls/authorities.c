// SPDX-License-Identifier: Apache-2.0
/*
 * Reads files of authorities, and keeps the one that was read last (authorities.h).
 */
#include "authorities.h"

#include "pem.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

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

static void set_last(X509_STORE *store, const struct stat *st)
{
    X509_STORE_free(last.store);
    last.store = store;
    last.device = st->st_dev;
    last.inode = st->st_ino;
    last.size = st->st_size;
    last.changed = st->st_ctim;
}

X509_STORE *authorities_read(const char *path, struct mk_buf *fault)
{
    struct stat st = {0};
    pthread_mutex_lock(&last.lock);
    bool known = stat(path, &st) == 0; /* before the file is read: a change afterwards is seen by the next call */
    X509_STORE *store = known && is_last(&st) && access(path, R_OK) == 0 ? last.store : NULL;
    if (!store) {
        store = make_store(path, fault);
        set_last(store, &st);
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
