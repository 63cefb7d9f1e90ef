// SPDX-License-Identifier: Apache-2.0
/*
 * Callbacks of libssl. The host is chosen before the rest of the ClientHello is processed, so that a session is resumed
 * only under the policy of its host (CVE-2025-23419).
 */
#include "tls.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

/* ── ticket keys ── */

static_assert(sizeof(struct ticket_key) == 80, "as it lies in a file");

int ticket_keys_rotate(struct ticket_keys *keys, uint64_t now_ms, uint64_t lifetime_ms)
{
    assert(lifetime_ms > 0);
    uint64_t age = now_ms - keys->created_ms;
    struct ticket_key fresh;
    if (keys->n && age < lifetime_ms)
        return 0;
    if (RAND_bytes((unsigned char *)&fresh, sizeof(fresh)) != 1)
        return -EIO;
    bool keeps = keys->n && age < 2 * lifetime_ms; /* else all tickets of the old key have expired */
    if (keeps)
        keys->items[1] = keys->items[0];
    else
        OPENSSL_cleanse(keys, sizeof(*keys));
    keys->items[0] = fresh;
    keys->n = keeps ? 2 : 1;
    keys->created_ms = now_ms;
    OPENSSL_cleanse(&fresh, sizeof(fresh));
    return 0;
}

bool ticket_keys_parse(struct ticket_keys *keys, struct mk_str bytes, struct mk_buf *fault)
{
    size_t n = bytes.len / sizeof(struct ticket_key);
    if (!bytes.len || bytes.len % sizeof(struct ticket_key) || n > TICKET_KEYS_MAX) {
        mk_buf_addf(fault, "has %zu bytes, but each key has 80 (openssl rand 80), and there are 1 to %d of them",
                    bytes.len, TICKET_KEYS_MAX);
        return false;
    }
    memcpy(keys->items, bytes.p, bytes.len);
    keys->n = (unsigned)n;
    for (unsigned i = 0; i < n; i++)
        if (ticket_keys_find(keys, keys->items[i].name) != &keys->items[i]) {
            mk_buf_addf(fault, "has two keys of the same name (their first 16 bytes)");
            return false;
        }
    return true;
}

const struct ticket_key *ticket_keys_find(const struct ticket_keys *keys, const unsigned char *name)
{
    assert(keys->n <= TICKET_KEYS_MAX);
    for (unsigned i = 0; i < keys->n; i++)
        if (CRYPTO_memcmp(keys->items[i].name, name, TICKET_NAME_BYTES) == 0)
            return &keys->items[i];
    return NULL;
}

void ticket_keys_wipe(struct ticket_keys *keys)
{
    OPENSSL_cleanse(keys, sizeof(*keys));
}

/* ── the process ── */

enum { NAME_BYTES_MAX = 255 };

/* For the whole process, so that tickets are valid in every worker and after a reload. */
static struct {
    pthread_mutex_t lock;
    struct ticket_keys keys;
    EVP_CIPHER *cipher; /* looked up once, not in each handshake */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

int handshake_init(void)
{
    process.cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    return process.cipher ? 0 : -ENOMEM;
}

void handshake_cleanup(void)
{
    EVP_CIPHER_free(process.cipher);
    process.cipher = NULL;
    ticket_keys_wipe(&process.keys);
}

/* ── the host ── */

/* Parses the host_name of RFC 6066 section 3. Returns 0, or the alert to send (RFC 8446 section 6.2). */
static int parse_server_name(const unsigned char *data, size_t len, struct mk_str *ret_name)
{
    if (len <= 5 || (size_t)(data[0] << 8 | data[1]) != len - 2 || data[2] != TLSEXT_NAMETYPE_host_name ||
        (size_t)(data[3] << 8 | data[4]) != len - 5)
        return SSL_AD_DECODE_ERROR;
    *ret_name = mk_str((const char *)data + 5, len - 5);
    bool is_name = ret_name->len <= NAME_BYTES_MAX && !memchr(ret_name->p, '\0', ret_name->len);
    return is_name ? 0 : SSL_AD_UNRECOGNIZED_NAME;
}

static int select_host(SSL *ssl, int *alert, void *ctx)
{
    const struct tls_generation *t = ctx;
    struct tls_conn *conn = SSL_get_app_data(ssl);
    assert(conn->generation == t);
    const unsigned char *data;
    size_t len;
    struct mk_str name = MK_STR("");
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &data, &len) == 1) {
        *alert = parse_server_name(data, len, &name);
        conn->name_refused = *alert == SSL_AD_UNRECOGNIZED_NAME;
        if (*alert)
            return SSL_CLIENT_HELLO_ERROR;
    }
    tls_conn_set_name(conn, name);
    struct tls_host *tls_host = tls_host_by_name(t, conn->listener, name);
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    conn->name_refused = !tls_host;
    if (!tls_host)
        return SSL_CLIENT_HELLO_ERROR;
    *alert = SSL_AD_INTERNAL_ERROR;
    int err = tls_conn_set_credentials(conn, tls_worker_credentials(conn->worker, tls_host));
    return err == 0 ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR;
}

/* A resumed session needs none. Returns 1, or 0: the handshake fails. */
static int provide_certificates(SSL *ssl, void *ctx)
{
    const struct tls_conn *conn = SSL_get_app_data(ssl);
    (void)ctx;
    return credentials_show(conn->credentials, ssl) == 0;
}

/* Tells the client that its name was used. select_host() has chosen the host already. */
static int confirm_server_name(SSL *ssl, int *alert, void *ctx)
{
    (void)ssl, (void)alert, (void)ctx;
    return SSL_TLSEXT_ERR_OK;
}

/* ── the protocol (RFC 7301): in the server's order; a client that offers others only gets an alert ── */

static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                       unsigned in_len, void *ctx)
{
    static const struct mk_str ours[] = {MK_STR("h2"), MK_STR("http/1.1"), MK_STR("http/1.0")};
    const struct tls_generation *t = ctx;
    (void)ssl;
    for (unsigned i = t->h2 ? 0 : 1; i < MK_COUNT_OF(ours); i++)
        for (unsigned at = 0; at < in_len && in[at] < in_len - at; at += in[at] + 1u)
            if (mk_str_eq(mk_str((const char *)in + at + 1, in[at]), ours[i])) {
                *out = in + at + 1;
                *out_len = in[at];
                return SSL_TLSEXT_ERR_OK;
            }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* ── the ticket key ── */

static uint64_t get_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/*
 * Gets the key to encrypt a new ticket (`makes`), or the one of `name`. `*ret_first`: it is the key for new tickets.
 * Returns 0, -ENOENT (no key has that name) or another -errno.
 */
static int get_ticket_key(const struct tls_generation *t, const unsigned char *name, bool makes, struct ticket_key *ret,
                          bool *ret_first)
{
    struct ticket_keys *keys = t->keys ? t->keys : &process.keys;
    int err = 0;
    pthread_mutex_lock(&process.lock);
    if (!t->keys)
        err = ticket_keys_rotate(keys, get_now_ms(), t->conf->ticket_lifetime_ms);
    assert(err < 0 || keys->n > 0);
    const struct ticket_key *key = err < 0 ? NULL : makes ? &keys->items[0] : ticket_keys_find(keys, name);
    if (key) {
        *ret = *key;
        *ret_first = key == &keys->items[0];
    }
    pthread_mutex_unlock(&process.lock);
    return key ? 0 : -ENOENT;
}

static bool set_mac(EVP_MAC_CTX *mac, struct ticket_key *key)
{
    char sha256[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac, sizeof(key->mac)),
                           OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha256, 0),
                           OSSL_PARAM_construct_end()};
    return EVP_MAC_CTX_set_params(mac, params) == 1;
}

/*
 * The callback of SSL_CTX_set_tlsext_ticket_key_evp_cb().
 * Returns -1 (failed), 0 (no such key), 1 (use the ticket) or 2 (use it and send a new one).
 */
static int provide_ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                              EVP_MAC_CTX *mac, int makes)
{
    assert(process.cipher);
    const struct tls_conn *conn = SSL_get_app_data(ssl);
    struct ticket_key key;
    bool first = false;
    if (get_ticket_key(conn->generation, name, makes, &key, &first) < 0)
        return makes ? -1 : 0;
    int result = first ? 1 : 2;
    if (makes) {
        memcpy(name, key.name, sizeof(key.name));
        if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(process.cipher)) != 1)
            result = -1;
    }
    if (EVP_CipherInit_ex(cipher, process.cipher, NULL, key.cipher, iv, makes) != 1 || !set_mac(mac, &key))
        result = -1;
    OPENSSL_cleanse(&key, sizeof(key));
    return result;
}

/*
 * A resumed session does not verify the client certificate again. If that is not valid now (any more, or by a clock
 * that was changed), ignores the ticket, so that a full handshake checks it; else renewed tickets would keep it valid
 * forever.
 */
static SSL_TICKET_RETURN check_ticket(SSL *ssl, SSL_SESSION *known, const unsigned char *name, size_t name_len,
                                      SSL_TICKET_STATUS status, void *ctx)
{
    const X509 *client = known ? SSL_SESSION_get0_peer(known) : NULL;
    (void)name, (void)name_len, (void)ctx;
    if (!known || (client && X509_cmp_timeframe(NULL, X509_get0_notBefore(client), X509_get0_notAfter(client)) != 0))
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    bool once = SSL_version(ssl) >= TLS1_3_VERSION; /* clients should use a ticket once: RFC 8446 appendix C.4 */
    return once || status == SSL_TICKET_SUCCESS_RENEW ? SSL_TICKET_RETURN_USE_RENEW : SSL_TICKET_RETURN_USE;
}

/* ── the OCSP response of the certificate ── */

static int provide_ocsp_response(SSL *ssl, void *ctx)
{
    const struct tls_conn *conn = SSL_get_app_data(ssl);
    const struct tls_credentials *own = conn->credentials;
    const X509 *leaf = SSL_get_certificate(ssl);
    int64_t now = (int64_t)time(NULL);
    (void)ctx;
    for (unsigned i = 0; own && i < own->n_certs; i++) {
        const struct tls_cert *cert = &own->certs[i];
        if (cert->leaf != leaf || !cert->ocsp || now < cert->ocsp_this_update || now > cert->ocsp_next_update)
            continue;
        unsigned char *copy = OPENSSL_memdup(cert->ocsp, cert->ocsp_len);
        if (!copy)
            return SSL_TLSEXT_ERR_NOACK;
        SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)cert->ocsp_len);
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_NOACK;
}

int handshake_set_callbacks(SSL_CTX *ctx, const struct tls_generation *t)
{
    void *arg = (void *)(uintptr_t)t; /* the callbacks do not change it */
    SSL_CTX_set_client_hello_cb(ctx, select_host, arg);
    SSL_CTX_set_tlsext_servername_callback(ctx, confirm_server_name);
    SSL_CTX_set_cert_cb(ctx, provide_certificates, NULL);
    SSL_CTX_set_alpn_select_cb(ctx, select_alpn, arg);
    SSL_CTX_set_tlsext_status_cb(ctx, provide_ocsp_response);
    if (SSL_CTX_set_session_ticket_cb(ctx, NULL, check_ticket, NULL) != 1)
        return -ENOMEM;
    return SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, provide_ticket_key) == 1 ? 0 : -ENOMEM;
}
