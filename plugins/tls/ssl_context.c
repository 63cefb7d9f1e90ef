// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the SSL_CTX of a host (ssl_context.h) with its profile, policy for client certificates, and certificates.
 */
#include "ssl_context.h"

#include "certificates.h"
#include "expiry.h"
#include "handshake.h"
#include "ktls.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <errno.h>
#include <stdio.h>

enum { AUTHORITIES_BYTES_MAX = 4 * 1024 * 1024, NAME_BYTES = 320 };

/*
 * Mozilla's guideline 5.7, without the DHE suites of `intermediate`: every client of the last ten years supports ECDHE,
 * and DHE lets a client cause much work at little cost (CVE-2002-20001).
 */
static const char suites[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
static const char ciphers[] = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
                              "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
                              "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
/*
 * The first list that libssl accepts is used. Of OpenSSL 3.5 and later: X25519MLKEM768, which also withstands a quantum
 * computer, comes first. A slash separates groups by preference: a client that supports one before it, but has sent a
 * key share of one behind it, is asked again. A client sends key shares of the groups with a star, so that servers
 * without X25519MLKEM768 need no second ClientHello. Groups with a question mark may be unknown (FIPS).
 */
static const char *const groups[] = {"?*X25519MLKEM768/?*X25519:?P-256/?P-384", "X25519:P-256:P-384"};
static const char signatures[] =
    "ecdsa_secp256r1_sha256:ecdsa_secp384r1_sha384:ecdsa_secp521r1_sha512:ed25519:ed448:"
    "rsa_pss_pss_sha256:rsa_pss_pss_sha384:rsa_pss_pss_sha512:rsa_pss_rsae_sha256:rsa_pss_rsae_sha384:"
    "rsa_pss_rsae_sha512:rsa_pkcs1_sha256:rsa_pkcs1_sha384:rsa_pkcs1_sha512";

/* As libssl's macros, which cast const away so that the compiler warns. */
static bool set_list(SSL_CTX *ctx, int command, const char *list)
{
    return SSL_CTX_ctrl(ctx, command, 0, (void *)(uintptr_t)list) == 1;
}

/*
 * SSL_CTX_new() applies the system's openssl.cnf (`system_default`). Undo that: a profile must mean the same on all
 * machines.
 */
static void reset_system_defaults(SSL_CTX *ctx)
{
    SSL_CTX_clear_options(ctx, SSL_CTX_get_options(ctx));
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_block_padding(ctx, 0);
    SSL_CTX_set_security_level(ctx, 2); /* RSA of 2048 bits at least */
}

static bool set_groups(SSL_CTX *ctx)
{
    for (size_t i = 0; i < MK_COUNT_OF(groups); i++)
        if (set_list(ctx, SSL_CTRL_SET_GROUPS_LIST, groups[i]))
            return true;
    return false;
}

/* Sets versions, ciphers, groups and signature algorithms. */
static bool set_profile(SSL_CTX *ctx)
{
    return SSL_CTX_set_max_proto_version(ctx, 0) == 1 && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(ctx, ciphers) == 1 && SSL_CTX_set_ciphersuites(ctx, suites) == 1 &&
           set_groups(ctx) && set_list(ctx, SSL_CTRL_SET_SIGALGS_LIST, signatures) &&
           set_list(ctx, SSL_CTRL_SET_CLIENT_SIGALGS_LIST, signatures);
}

/* Makes an SSL_CTX with what servers and clients share. */
static SSL_CTX *new_context(const SSL_METHOD *method)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    if (!ctx)
        return NULL;
    reset_system_defaults(ctx);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(ctx, 1);
    bool set = set_profile(ctx);
    ERR_clear_error();
    if (set)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

SSL_CTX *ssl_context_new(const struct tls_generation *t)
{
    SSL_CTX *ctx = new_context(TLS_server_method());
    if (!ctx)
        return NULL;
    SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | ktls_option(t->conf->ktls));
    /* an authority in ClientCA is trusted as it is, also without its root; SSL_set_SSL_CTX() would not change this */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_timeout(ctx, (long)(t->conf->ticket_lifetime_ms / 1000));
    if (SSL_CTX_set_num_tickets(ctx, 1) != 1 || handshake_set_callbacks(ctx, t) < 0) {
        SSL_CTX_free(ctx);
        ERR_clear_error();
        return NULL;
    }
    return ctx;
}

SSL_CTX *ssl_context_new_client(void)
{
    return new_context(TLS_client_method());
}

/* ── client certificates ── */

static int hash_buffer(const struct mk_buf *bytes, unsigned char *to)
{
    unsigned n;
    return EVP_Digest(bytes->data, bytes->len, to, &n, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
}

static int set_policy(const struct tls_load *load)
{
    const struct tls_host_conf *conf = load->tls_host->conf;
    struct mk_buf bytes;
    int err = 0;
    mk_buf_init(&bytes, AUTHORITIES_BYTES_MAX);
    mk_buf_addf(&bytes, "%d %d ", conf->client, conf->client == TLS_CLIENT_OFF ? 0 : (int)conf->depth);
    if (conf->client != TLS_CLIENT_OFF && conf->client_ca.len) {
        int mode = SSL_VERIFY_PEER | (conf->client == TLS_CLIENT_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
        SSL_CTX_set_verify(load->ctx, mode, NULL);
        SSL_CTX_set_verify_depth(load->ctx, (int)conf->depth);
        err = certificates_read_authorities(load, &bytes);
    }
    err = err == 0 ? bytes.err : err;
    if (err == 0)
        err = hash_buffer(&bytes, load->credentials->policy);
    mk_buf_release(&bytes);
    return err;
}

/*
 * Sets the session ID context, so that a session is resumed only for the same names and policy. Another certificate
 * does not matter: the client has verified the one of the session.
 */
static int set_session_context(const struct tls_load *load)
{
    const struct mk_host *host = load->tls_host->host;
    unsigned char id[EVP_MAX_MD_SIZE];
    struct mk_buf bytes;
    mk_buf_init(&bytes, AUTHORITIES_BYTES_MAX);
    mk_buf_add(&bytes, load->credentials->policy, sizeof(load->credentials->policy));
    for (unsigned i = 0; mk_host_name(host, i).p; i++) {
        mk_buf_adds(&bytes, mk_host_name(host, i));
        mk_buf_addc(&bytes, ' ');
    }
    int err = bytes.err ? bytes.err : hash_buffer(&bytes, id);
    mk_buf_release(&bytes);
    if (err == 0 && SSL_CTX_set_session_id_context(load->ctx, id, SSL_MAX_SID_CTX_LENGTH) != 1)
        err = -ENOMEM;
    return err;
}

/* ── hosts ── */

/* Makes the SSL_CTX of a load, without a certificate. */
static int make_context(struct tls_load *load)
{
    const struct tls_host *tls_host = load->tls_host;
    load->ctx = ssl_context_new(tls_host->generation);
    load->credentials = load->ctx ? tls_host_add_credentials(load->ctx) : NULL;
    if (!load->credentials)
        return -ENOMEM;
    bool modern = settings_profile(tls_host->generation->conf, tls_host->conf) == TLS_MODERN;
    if (modern && SSL_CTX_set_min_proto_version(load->ctx, TLS1_3_VERSION) != 1)
        return -ENOMEM;
    int err = set_policy(load);
    return err == 0 ? set_session_context(load) : err;
}

/* Loads the files of a host, for struct mk_watched_type. `message` is NULL at the start. */
static int load_host(void *ctx, void **ret_value, struct mk_buf *message)
{
    struct tls_load load = {.tls_host = ctx, .message = message};
    int err = make_context(&load);
    if (err != -ENOMEM) {
        int read = certificates_read(&load); /* even if the client authorities have errors */
        err = err < 0 && read != -ENOMEM ? err : read;
    }
    ERR_clear_error();
    if (err < 0)
        SSL_CTX_free(load.ctx);
    else
        *ret_value = load.ctx;
    if (err == 0 && message) /* the files have changed */
        expiry_update(load.tls_host, load.credentials);
    return err;
}

static void free_host(void *value)
{
    SSL_CTX_free(value);
}

/* Collects the files of a host: 4 for each certificate, and one. Returns their number. */
static unsigned list_files(const struct tls_host_conf *conf, struct mk_str *to)
{
    const struct tls_paths *all[] = {&conf->certificates, &conf->keys, &conf->chains, &conf->ocsp_files};
    unsigned n = 0;
    for (size_t k = 0; k < MK_COUNT_OF(all); k++)
        for (uint32_t i = 0; i < all[k]->n && i < TLS_HOST_CERTS_MAX; i++)
            to[n++] = all[k]->items[i];
    if (conf->client != TLS_CLIENT_OFF && conf->client_ca.len)
        to[n++] = conf->client_ca;
    return n;
}

int ssl_context_open_host(struct tls_host *tls_host)
{
    static const struct mk_watched_type type = {.load = load_host, .free = free_host};
    struct mk_str files[4 * TLS_HOST_CERTS_MAX + 1], host_name = mk_host_name(tls_host->host, 0);
    char name[NAME_BYTES];
    if (!tls_host->conf->certificates.n)
        return 0;
    snprintf(name, sizeof(name), "tls: the certificates of the host %.*s",
             MK_STR_ARG(host_name.len ? host_name : MK_STR("without a name")));
    tls_host->index = tls_host->generation->n_hosts++;
    struct mk_watched_source source = {&type, tls_host, mk_str_c(name), files, list_files(tls_host->conf, files)};
    return mk_watched_open(&source, NULL, &tls_host->watched);
}

int ssl_context_make_self_signed(struct tls_host *tls_host, X509 *leaf, EVP_PKEY *key)
{
    struct tls_load load = {.tls_host = tls_host};
    int err = make_context(&load);
    if (err == 0 && SSL_CTX_use_cert_and_key(load.ctx, leaf, key, NULL, 1) != 1)
        err = -ENOMEM;
    if (err == 0)
        tls_host->ctx = load.ctx;
    else
        SSL_CTX_free(load.ctx);
    return err;
}
