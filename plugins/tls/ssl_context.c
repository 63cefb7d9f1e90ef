// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the SSL_CTXs of generations and of connections to servers, and the self-signed certificate. A reload keeps
 * that, so that an exception in a browser stays valid: the main thread makes it, the first worker logs it before it
 * serves.
 */
#include "tls.h"

#include <monkey/log.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* ── the self-signed certificate ── */

enum { DAYS = 90, HOUR = 3600, HOST_BYTES = 65, NAMES_BYTES = 160 };

static struct {
    X509 *leaf;
    EVP_PKEY *key;
    bool announced;
    char names[NAMES_BYTES]; /* as X509V3_EXT_conf_nid() reads them */
} self_cert;

/* Sets the names: localhost, and the machine's name if a certificate can have it. */
static void set_host_names(void)
{
    char host[HOST_BYTES] = "";
    bool usable = gethostname(host, sizeof(host) - 1) == 0 && mk_str_is_name(mk_str_c(host), "-.") &&
                  strcmp(host, "localhost") != 0;
    snprintf(self_cert.names, sizeof(self_cert.names), "DNS:localhost,%s%s%sIP:127.0.0.1,IP:::1", usable ? "DNS:" : "",
             usable ? host : "", usable ? "," : "");
}

static bool add_extension(X509 *leaf, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    bool good = extension && X509_add_ext(leaf, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return good;
}

static bool set_name(X509 *leaf)
{
    X509_NAME *name = X509_get_subject_name(leaf);
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0) == 1 &&
           X509_set_issuer_name(leaf, name) == 1;
}

static bool set_serial(X509 *leaf)
{
    uint64_t number;
    return RAND_bytes((unsigned char *)&number, sizeof(number)) == 1 &&
           ASN1_INTEGER_set_uint64(X509_get_serialNumber(leaf), number >> 1 | 1) == 1;
}

static bool fill_certificate(X509 *leaf, EVP_PKEY *key)
{
    return X509_set_version(leaf, X509_VERSION_3) == 1 && set_serial(leaf) && set_name(leaf) &&
           X509_gmtime_adj(X509_getm_notBefore(leaf), -HOUR) &&
           X509_gmtime_adj(X509_getm_notAfter(leaf), DAYS * 24L * HOUR) && X509_set_pubkey(leaf, key) == 1 &&
           add_extension(leaf, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(leaf, NID_key_usage, "critical,digitalSignature") &&
           add_extension(leaf, NID_ext_key_usage, "serverAuth") &&
           add_extension(leaf, NID_subject_alt_name, self_cert.names) && X509_sign(leaf, key, EVP_sha256()) > 0;
}

int selfsigned_get(X509 **ret_leaf, EVP_PKEY **ret_key)
{
    if (!self_cert.leaf) {
        set_host_names();
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *leaf = X509_new();
        if (!key || !leaf || !fill_certificate(leaf, key)) {
            X509_free(leaf);
            EVP_PKEY_free(key);
            ERR_clear_error();
            return -EIO;
        }
        self_cert.leaf = leaf;
        self_cert.key = key;
    }
    *ret_leaf = self_cert.leaf;
    *ret_key = self_cert.key;
    return 0;
}

void selfsigned_stop(void)
{
    X509_free(self_cert.leaf);
    EVP_PKEY_free(self_cert.key);
    self_cert.leaf = NULL;
    self_cert.key = NULL;
}

void selfsigned_announce(void)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (!self_cert.leaf || self_cert.announced || X509_digest(self_cert.leaf, EVP_sha256(), digest, &n) != 1)
        return;
    self_cert.announced = true;
    MK_BUF_ON_STACK(hex, EVP_MAX_MD_SIZE * 3);
    for (unsigned i = 0; i < n; i++)
        mk_buf_addf(&hex, "%s%02X", i ? ":" : "", digest[i]);
    mk_log_info("tls: made a self-signed certificate, which no client trusts, for %s, SHA-256 fingerprint %s",
                self_cert.names, mk_buf_cstr(&hex));
}

/* ── the SSL_CTX ── */

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

/* Sets versions, ciphers, groups and signature algorithms. */
static bool set_profile(SSL_CTX *ctx)
{
    bool grouped = false;
    for (size_t i = 0; i < MK_COUNT_OF(groups) && !grouped; i++)
        grouped = set_list(ctx, SSL_CTRL_SET_GROUPS_LIST, groups[i]);
    return SSL_CTX_set_max_proto_version(ctx, 0) == 1 && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(ctx, ciphers) == 1 && SSL_CTX_set_ciphersuites(ctx, suites) == 1 && grouped &&
           set_list(ctx, SSL_CTRL_SET_SIGALGS_LIST, signatures) &&
           set_list(ctx, SSL_CTRL_SET_CLIENT_SIGALGS_LIST, signatures);
}

/* Makes an SSL_CTX with what servers and clients share. */
static SSL_CTX *new_context(const SSL_METHOD *method)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    if (!ctx)
        return NULL;
    /* SSL_CTX_new() applies the system's openssl.cnf (`system_default`); a profile must mean the same everywhere */
    SSL_CTX_clear_options(ctx, SSL_CTX_get_options(ctx));
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_block_padding(ctx, 0);
    SSL_CTX_set_security_level(ctx, 2); /* RSA of 2048 bits at least */
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
    /* an authority in ClientCA is trusted as it is, also without its root */
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
