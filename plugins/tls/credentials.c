// SPDX-License-Identifier: Apache-2.0
/*
 * The credentials of hosts: their lifetime, their use in a handshake, and the table in which a reload finds those whose
 * files have not changed. load.c makes them.
 */
#include "tls.h"

#include <openssl/evp.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* Later, so that a file system with coarse times tells two changes apart; as for files in the cache. */
    SETTLED_SECONDS = 3
};

/* Of the process, so that a reload finds what the generation before it holds. */
static struct {
    pthread_mutex_t lock;
    struct mk_hash_table table;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ── references ── */

struct tls_credentials *credentials_new(unsigned certs_max)
{
    struct tls_credentials *own = mk_account_zalloc(NULL, sizeof(*own) + certs_max * sizeof(own->certs[0]));
    if (!own)
        return NULL;
    atomic_init(&own->refs, 1);
    own->verify_mode = SSL_VERIFY_NONE;
    own->verify_depth = -1; /* libssl's default */
    own->min_version = TLS1_2_VERSION;
    own->quiet_until = INT64_MAX;
    own->certs_max = certs_max;
    return own;
}

struct tls_credentials *credentials_get(struct tls_credentials *own)
{
    unsigned before = atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return own;
}

/* Takes a reference, unless the last one was released. */
static bool try_get(struct tls_credentials *own)
{
    unsigned refs = atomic_load_explicit(&own->refs, memory_order_relaxed);
    while (refs)
        if (atomic_compare_exchange_weak_explicit(&own->refs, &refs, refs + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* Under the lock. */
static void remove_known(struct tls_credentials *own)
{
    if (own->kept)
        mk_hash_remove(&known.table, &own->node);
    own->kept = false;
}

void credentials_put(struct tls_credentials *own)
{
    if (!own || atomic_fetch_sub_explicit(&own->refs, 1, memory_order_acq_rel) > 1)
        return;
    pthread_mutex_lock(&known.lock);
    remove_known(own); /* another thread may just have seen it there, but try_get() has failed */
    pthread_mutex_unlock(&known.lock);
    for (unsigned i = 0; i < own->n_certs; i++) {
        X509_free(own->certs[i].leaf);
        EVP_PKEY_free(own->certs[i].key);
        sk_X509_pop_free(own->certs[i].chain, X509_free);
        OPENSSL_free(own->certs[i].ocsp);
    }
    X509_STORE_free(own->authorities);
    sk_X509_NAME_pop_free(own->authority_names, X509_NAME_free);
    mk_account_free(NULL, own, sizeof(*own) + own->certs_max * sizeof(own->certs[0]));
}

/* ── a handshake ── */

/* The parameters for verification are those of the SSL_CTX. */
int credentials_apply(const struct tls_credentials *own, SSL *ssl)
{
    assert(own->verify_mode == SSL_VERIFY_NONE || own->authorities);
    STACK_OF(X509_NAME) *names = own->authority_names ? SSL_dup_CA_list(own->authority_names) : NULL;
    bool good = names || !own->authority_names;
    SSL_set_client_CA_list(ssl, names);
    SSL_set_verify(ssl, own->verify_mode, NULL);
    SSL_set_verify_depth(ssl, own->verify_depth);
    good = good && SSL_set1_verify_cert_store(ssl, own->authorities) == 1 &&
           SSL_set_session_id_context(ssl, own->session_context, sizeof(own->session_context)) == 1 &&
           SSL_set_min_proto_version(ssl, own->min_version) == 1;
    return good ? 0 : -ENOMEM;
}

int credentials_show(const struct tls_credentials *own, SSL *ssl)
{
    bool good = true;
    SSL_certs_clear(ssl);
    for (unsigned i = 0; good && i < own->n_certs; i++)
        good = SSL_use_cert_and_key(ssl, own->certs[i].leaf, own->certs[i].key, own->certs[i].chain, 1) == 1;
    return good ? 0 : -ENOMEM;
}

/* ── files ── */

/*
 * Adds what a file is. Of a remote one, the attributes that its server has now: a file may be changed on one machine,
 * and the server reloaded on another.
 */
static bool add_file(EVP_MD_CTX *digest, const struct mk_str *path, int64_t *changed)
{
    struct statx st;
    if (statx(AT_FDCWD, path->p, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st) < 0 ||
        (st.stx_mask & STATX_BASIC_STATS) != STATX_BASIC_STATS ||
        faccessat(AT_FDCWD, path->p, R_OK, AT_EACCESS) < 0) /* the process may have had more rights before */
        return false;
    const int64_t parts[] = {
        st.stx_dev_major,     st.stx_dev_minor,    (int64_t)st.stx_ino,  (int64_t)st.stx_size,
        st.stx_mode,          st.stx_uid,          st.stx_gid,           st.stx_mtime.tv_sec,
        st.stx_mtime.tv_nsec, st.stx_ctime.tv_sec, st.stx_ctime.tv_nsec,
    };
    int64_t last = st.stx_mtime.tv_sec > st.stx_ctime.tv_sec ? st.stx_mtime.tv_sec : st.stx_ctime.tv_sec;
    *changed = last > *changed ? last : *changed;
    return EVP_DigestUpdate(digest, path->p, path->len + 1) == 1 && EVP_DigestUpdate(digest, parts, sizeof(parts)) == 1;
}

bool credentials_identify(const struct mk_str *files, unsigned n, struct mk_str settings, struct credentials_stamp *ret)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool good = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 &&
                EVP_DigestUpdate(digest, settings.p, settings.len) == 1;
    *ret = (struct credentials_stamp){.changed = INT64_MIN};
    for (unsigned i = 0; good && i < n; i++)
        good = add_file(digest, &files[i], &ret->changed);
    good = good && EVP_DigestFinal_ex(digest, ret->digest, NULL) == 1;
    EVP_MD_CTX_free(digest);
    return good;
}

/* ── the table ── */

static uint64_t get_hash(const unsigned char *key)
{
    uint64_t hash;
    memcpy(&hash, key, sizeof(hash));
    return hash;
}

/* Under the lock. */
static struct tls_credentials *find_known(const unsigned char *key)
{
    struct mk_hash_node *n;
    MK_HASH_EACH(&known.table, get_hash(key), n) {
        struct tls_credentials *own = MK_CONTAINER_OF(n, struct tls_credentials, node);
        if (memcmp(own->key, key, sizeof(own->key)) == 0)
            return own;
    }
    return NULL;
}

struct tls_credentials *credentials_find(const struct credentials_stamp *stamp, int64_t now)
{
    pthread_mutex_lock(&known.lock);
    struct tls_credentials *own = find_known(stamp->digest);
    if (own && (now < own->quiet_from || now >= own->quiet_until || !try_get(own)))
        own = NULL;
    pthread_mutex_unlock(&known.lock);
    return own;
}

void credentials_keep(struct tls_credentials *own, const struct credentials_stamp *before,
                      const struct credentials_stamp *after, int64_t now)
{
    assert(!own->kept);
    if (own->warned || now - before->changed < SETTLED_SECONDS ||
        memcmp(before->digest, after->digest, sizeof(before->digest)) != 0)
        return;
    memcpy(own->key, before->digest, sizeof(own->key));
    pthread_mutex_lock(&known.lock);
    struct tls_credentials *former = find_known(own->key);
    if (former)
        remove_known(former);
    own->kept = mk_hash_insert(&known.table, NULL, &own->node, get_hash(own->key)) == 0;
    pthread_mutex_unlock(&known.lock);
}

void credentials_stop(void)
{
    pthread_mutex_lock(&known.lock);
    if (!known.table.n) /* connections may outlive the plugin's stop */
        mk_hash_release(&known.table, NULL);
    pthread_mutex_unlock(&known.lock);
}
