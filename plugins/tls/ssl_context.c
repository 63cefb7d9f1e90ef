// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the SSL_CTX of a host (ssl_context.h) with its profile, policy for client certificates, and certificates.
 */
#include "ssl_context.h"

#include "certificates.h"
#include "handshake.h"
#include "ktls.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <assert.h>
#include <errno.h>

enum { AUTHORITIES_BYTES_MAX = 4 * 1024 * 1024 };

/*
 * Mozilla's guideline 5.7, without the DHE suites of `intermediate`: every client of the last ten years supports ECDHE,
 * and DHE lets a client cause much work at little cost (CVE-2002-20001).
 */
static const char suites[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
static const char ciphers[] = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
                              "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
                              "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
static const char groups[] = "X25519:P-256:P-384";
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

/* Sets versions, ciphers, groups and signature algorithms. */
static bool set_profile(SSL_CTX *ctx)
{
    return SSL_CTX_set_max_proto_version(ctx, 0) == 1 && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(ctx, ciphers) == 1 && SSL_CTX_set_ciphersuites(ctx, suites) == 1 &&
           set_list(ctx, SSL_CTRL_SET_GROUPS_LIST, groups) && set_list(ctx, SSL_CTRL_SET_SIGALGS_LIST, signatures) &&
           set_list(ctx, SSL_CTRL_SET_CLIENT_SIGALGS_LIST, signatures);
}

SSL_CTX *ssl_context_new(struct tls_generation *t)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx)
        return NULL;
    reset_system_defaults(ctx);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                 SSL_OP_ENABLE_MIDDLEBOX_COMPAT | ktls_option(t->conf->ktls));
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_timeout(ctx, (long)(t->conf->ticket_lifetime_ms / 1000));
    SSL_CTX_set_read_ahead(ctx, 1);
    if (!set_profile(ctx) || SSL_CTX_set_num_tickets(ctx, 1) != 1 || handshake_set_callbacks(ctx, t) < 0) {
        SSL_CTX_free(ctx);
        ERR_clear_error();
        return NULL;
    }
    return ctx;
}

/* ── client certificates ── */

static int hash_buffer(const struct mk_buf *bytes, unsigned char *to)
{
    unsigned n;
    return EVP_Digest(bytes->data, bytes->len, to, &n, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
}

static int set_policy(struct tls_host *tls_host, struct mk_host *host)
{
    const struct tls_host_conf *conf = tls_host->conf;
    struct mk_buf bytes;
    int err = 0;
    mk_buf_init(&bytes, AUTHORITIES_BYTES_MAX);
    mk_buf_addf(&bytes, "%d %d ", conf->client, conf->client == TLS_CLIENT_OFF ? 0 : (int)conf->depth);
    if (conf->client != TLS_CLIENT_OFF && conf->client_ca.len) {
        int mode = SSL_VERIFY_PEER | (conf->client == TLS_CLIENT_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
        SSL_CTX_set_verify(tls_host->ctx, mode, NULL);
        SSL_CTX_set_verify_depth(tls_host->ctx, (int)conf->depth);
        err = certificates_read_authorities(tls_host, host, &bytes);
    }
    err = err == 0 ? bytes.err : err;
    if (err == 0)
        err = hash_buffer(&bytes, tls_host->policy);
    mk_buf_release(&bytes);
    return err;
}

/* Sets the session ID context, so that a session is resumed only for the same names and policy. */
static int set_session_context(struct tls_host *tls_host, const struct mk_host *host)
{
    unsigned char id[EVP_MAX_MD_SIZE];
    struct mk_buf bytes;
    mk_buf_init(&bytes, AUTHORITIES_BYTES_MAX);
    mk_buf_add(&bytes, tls_host->policy, sizeof(tls_host->policy));
    for (unsigned i = 0; mk_host_name(host, i).p; i++) {
        mk_buf_adds(&bytes, mk_host_name(host, i));
        mk_buf_addc(&bytes, ' ');
    }
    int err = bytes.err ? bytes.err : hash_buffer(&bytes, id);
    mk_buf_release(&bytes);
    if (err == 0 && SSL_CTX_set_session_id_context(tls_host->ctx, id, SSL_MAX_SID_CTX_LENGTH) != 1)
        err = -ENOMEM;
    return err;
}

/* ── hosts ── */

static int make_context(struct tls_host *tls_host, struct mk_host *host, struct tls_generation *t)
{
    assert(!tls_host->ctx);
    tls_host->ctx = ssl_context_new(t);
    if (!tls_host->ctx)
        return -ENOMEM;
    if (tls_host->conf->profile == TLS_MODERN && SSL_CTX_set_min_proto_version(tls_host->ctx, TLS1_3_VERSION) != 1)
        return -ENOMEM;
    int err = set_policy(tls_host, host);
    return err == 0 ? set_session_context(tls_host, host) : err;
}

int ssl_context_make_host(struct tls_host *tls_host, struct mk_host *host, struct tls_generation *t)
{
    if (!tls_host->conf->certificates.n)
        return 0;
    int err = make_context(tls_host, host, t);
    t->n_hosts++;
    if (!tls_host->ctx || err == -ENOMEM)
        return err;
    int read = certificates_read(tls_host, host); /* even if the client authorities have errors */
    return err < 0 && read != -ENOMEM ? err : read;
}

int ssl_context_make_self_signed(struct tls_host *tls_host, struct mk_host *host, struct tls_generation *t, X509 *leaf,
                                 EVP_PKEY *key)
{
    int err = make_context(tls_host, host, t);
    if (err == 0 && SSL_CTX_use_cert_and_key(tls_host->ctx, leaf, key, NULL, 1) != 1)
        err = -ENOMEM;
    return err;
}
