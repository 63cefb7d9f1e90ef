// SPDX-License-Identifier: Apache-2.0
/*
 * Loads the credentials of a host: its profile, policy for client certificates, and files. A reload takes those of the
 * generation before, if neither the configuration nor the files have changed.
 */
#include "tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum { AUTHORITIES_BYTES_MAX = 4 * 1024 * 1024, NAME_BYTES = 320, FILES_MAX = 4 * CREDENTIALS_CERTS_MAX + 1 };

static_assert(SSL_MAX_SID_CTX_LENGTH == CREDENTIALS_DIGEST_BYTES, "a digest is a session ID context");

/* ── client certificates ── */

static bool asks_client(const struct tls_host_conf *conf)
{
    return conf->client != TLS_CLIENT_OFF && conf->client_ca.len;
}

static int hash_buffer(const struct mk_buf *bytes, unsigned char *to)
{
    unsigned n;
    return EVP_Digest(bytes->data, bytes->len, to, &n, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
}

static int set_policy(const struct tls_load *load)
{
    const struct tls_host_conf *conf = load->tls_host->conf;
    struct tls_credentials *own = load->credentials;
    struct mk_buf bytes;
    int err = 0;
    mk_buf_init(&bytes, AUTHORITIES_BYTES_MAX);
    mk_buf_addf(&bytes, "%d %d ", conf->client, conf->client == TLS_CLIENT_OFF ? 0 : (int)conf->depth);
    if (asks_client(conf)) {
        own->verify_mode = SSL_VERIFY_PEER;
        own->verify_mode |= conf->client == TLS_CLIENT_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
        own->verify_depth = (int)conf->depth;
        err = certificates_read_authorities(load, &bytes);
    }
    err = err == 0 ? bytes.err : err;
    if (err == 0)
        err = hash_buffer(&bytes, own->policy);
    mk_buf_release(&bytes);
    return err;
}

/* Adds the names of the host, each with an end. */
static void add_names(const struct mk_host *host, struct mk_buf *to, char end)
{
    for (unsigned i = 0; mk_host_name(host, i).p; i++) {
        mk_buf_adds(to, mk_host_name(host, i));
        mk_buf_addc(to, end);
    }
}

/*
 * Sets the session ID context, so that a session is resumed only for the same names and policy. Another certificate
 * does not matter: the client has verified the one of the session.
 */
static int set_session_context(const struct tls_load *load)
{
    struct mk_buf bytes;
    mk_buf_init(&bytes, AUTHORITIES_BYTES_MAX);
    mk_buf_add(&bytes, load->credentials->policy, sizeof(load->credentials->policy));
    add_names(load->tls_host->host, &bytes, ' ');
    int err = bytes.err ? bytes.err : hash_buffer(&bytes, load->credentials->session_context);
    mk_buf_release(&bytes);
    return err;
}

/* ── files ── */

/* Collects the files of a host: 4 for each certificate, and one. Returns their number. */
static unsigned list_files(const struct tls_host_conf *conf, struct mk_str *to)
{
    const struct tls_paths *all[] = {&conf->certificates, &conf->keys, &conf->chains, &conf->ocsp_files};
    unsigned n = 0;
    for (size_t k = 0; k < MK_COUNT_OF(all); k++)
        for (uint32_t i = 0; i < all[k]->n && i < CREDENTIALS_CERTS_MAX; i++)
            to[n++] = all[k]->items[i];
    if (asks_client(conf))
        to[n++] = conf->client_ca;
    return n;
}

/* Identifies the files, and all of the configuration that makes a difference for what is loaded. */
static bool identify_files(const struct tls_host *tls_host, struct credentials_stamp *ret)
{
    const struct tls_host_conf *conf = tls_host->conf;
    struct mk_str files[FILES_MAX];
    struct mk_buf settings;
    mk_buf_init(&settings, AUTHORITIES_BYTES_MAX);
    mk_buf_addf(&settings, "%d %d %d %u %u %u %u ", settings_profile(tls_host->generation->conf, conf), conf->client,
                (int)conf->depth, conf->certificates.n, conf->keys.n, conf->chains.n, conf->ocsp_files.n);
    add_names(tls_host->host, &settings, '\0');
    bool known = !settings.err && credentials_identify(files, list_files(conf, files), mk_buf_str(&settings), ret);
    mk_buf_release(&settings);
    return known;
}

/* ── hosts ── */

/* Makes the credentials of a load, without a certificate. */
static int begin_load(struct tls_load *load, unsigned certs_max)
{
    const struct tls_host *tls_host = load->tls_host;
    load->credentials = credentials_new(certs_max);
    load->trial = load->credentials ? SSL_new(tls_host->generation->ctx) : NULL;
    if (!load->trial)
        return -ENOMEM;
    if (settings_profile(tls_host->generation->conf, tls_host->conf) == TLS_MODERN)
        load->credentials->min_version = TLS1_3_VERSION;
    int err = set_policy(load);
    return err == 0 ? set_session_context(load) : err;
}

/* Ends a load that has returned `err`: the credentials can be used, or are freed. Returns `err`, or -ENOMEM. */
static int end_load(struct tls_load *load, int err)
{
    if (err == 0)
        err = credentials_apply(load->credentials, load->trial);
    if (err == 0)
        err = credentials_show(load->credentials, load->trial);
    ERR_clear_error();
    SSL_free(load->trial);
    if (err == 0)
        return 0;
    credentials_put(load->credentials);
    load->credentials = NULL;
    return err;
}

/* Reads all files, even if some have errors. */
static int read_files(struct tls_load *load)
{
    const struct tls_host_conf *conf = load->tls_host->conf;
    int err =
        begin_load(load, conf->certificates.n < CREDENTIALS_CERTS_MAX ? conf->certificates.n : CREDENTIALS_CERTS_MAX);
    if (err != -ENOMEM) {
        int read = certificates_read(load);
        err = err < 0 && read != -ENOMEM ? err : read;
    }
    return end_load(load, err);
}

/*
 * Loads the files of a host, for struct mk_watched_type. `message` is NULL at the start, when what was loaded before is
 * good enough; later the files have changed, even if they look the same.
 */
static int load_host(void *ctx, void **ret_value, struct mk_buf *message)
{
    struct tls_load load = {.tls_host = ctx, .message = message};
    struct credentials_stamp before, after;
    int64_t now = (int64_t)time(NULL);
    bool known = identify_files(load.tls_host, &before);
    if (known && !message && (*ret_value = credentials_find(&before, now)))
        return 0;
    int err = read_files(&load);
    if (err < 0)
        return err;
    if (known && identify_files(load.tls_host, &after))
        credentials_keep(load.credentials, &before, &after, now);
    if (message)
        expiry_update(load.tls_host, load.credentials);
    *ret_value = load.credentials;
    return 0;
}

static void free_host(void *value)
{
    credentials_put(value);
}

int load_open_host(struct tls_host *tls_host)
{
    static const struct mk_watched_type type = {.load = load_host, .free = free_host};
    struct mk_str files[FILES_MAX], host_name = mk_host_name(tls_host->host, 0);
    char name[NAME_BYTES];
    if (!tls_host->conf->certificates.n)
        return 0;
    snprintf(name, sizeof(name), "tls: the certificates of the host %.*s",
             MK_STR_ARG(host_name.len ? host_name : MK_STR("without a name")));
    tls_host->index = tls_host->generation->n_hosts++;
    struct mk_watched_source source = {&type, tls_host, mk_str_c(name), files, list_files(tls_host->conf, files)};
    return mk_watched_open(&source, NULL, &tls_host->watched);
}

int load_self_signed(struct tls_host *tls_host, X509 *leaf, EVP_PKEY *key)
{
    struct tls_load load = {.tls_host = tls_host};
    int err = begin_load(&load, 1);
    if (err == 0 && X509_up_ref(leaf) == 1 && EVP_PKEY_up_ref(key) == 1)
        load.credentials->certs[load.credentials->n_certs++] = (struct tls_cert){.leaf = leaf, .key = key};
    err = end_load(&load, err);
    tls_host->itself = load.credentials;
    return err;
}
