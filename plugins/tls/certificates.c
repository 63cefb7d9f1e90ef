// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the certificates of a host, and reports errors and warnings about them.
 */
#include "tls.h"

#include <monkey/log.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum { FAULT_BYTES = 400, DATE_BYTES = 32, CURVE_BYTES = 32, NAME_BYTES = 256 };

/* A load and the number of one of the host's certificates. */
struct cert_ref {
    const struct tls_load *load;
    unsigned nth;
};

static const struct tls_host_conf *get_conf(const struct cert_ref *at)
{
    return at->load->tls_host->conf;
}

static struct mk_host *get_host(const struct cert_ref *at)
{
    return at->load->tls_host->host;
}

static const char *format_host_name(const struct mk_host *host, char *to, size_t size)
{
    struct mk_str name = mk_host_name(host, 0);
    if (name.len)
        snprintf(to, size, "host %.*s", MK_STR_ARG(name));
    else
        snprintf(to, size, "host without a name");
    return to;
}

/* Reports an error: "host NAME: WHAT FILE FAULT". Returns -EINVAL. */
static int report_error(const struct cert_ref *at, size_t offset, const char *what, const struct mk_str *path,
                        struct mk_buf *fault)
{
    char name[NAME_BYTES];
    struct mk_buf *message = at->load->message;
    if (message)
        mk_buf_addf(message, "%s%s %.*s %s", message->len ? "; " : "", what, MK_STR_ARG(*path), mk_buf_cstr(fault));
    else
        mk_host_error(get_host(at), get_conf(at), offset, at->nth, "%s: %s %.*s %s",
                      format_host_name(get_host(at), name, sizeof(name)), what, MK_STR_ARG(*path), mk_buf_cstr(fault));
    return -EINVAL;
}

/* Reports a warning: "host NAME: WHAT FILE" and the formatted rest. */
static void MK_PRINTF(5, 6) report_warning(const struct cert_ref *at, size_t offset, const char *what,
                                           const struct mk_str *path, const char *format, ...)
{
    char name[NAME_BYTES];
    MK_BUF_ON_STACK(rest, FAULT_BYTES);
    va_list args;
    va_start(args, format);
    mk_buf_vaddf(&rest, format, args);
    va_end(args);
    format_host_name(get_host(at), name, sizeof(name));
    at->load->credentials->warned = true;
    if (at->load->message)
        mk_log_warn("tls: %s: %s %.*s%s", name, what, MK_STR_ARG(*path), mk_buf_cstr(&rest));
    else
        mk_host_warn(get_host(at), get_conf(at), offset, at->nth, "%s: %s %.*s%s", name, what, MK_STR_ARG(*path),
                     mk_buf_cstr(&rest));
}

#define WARN_CERT(at, path, ...) \
    report_warning(at, offsetof(struct tls_host_conf, certificates), "the certificate", path, __VA_ARGS__)

/* ── checks that warn ── */

static void print_date(const ASN1_TIME *time, char *to, size_t size)
{
    struct tm tm;
    if (ASN1_TIME_to_tm(time, &tm) != 1 || strftime(to, size, "%Y-%m-%d %H:%M UTC", &tm) == 0)
        snprintf(to, size, "an unknown time");
}

static void check_dates(const struct cert_ref *at, const struct mk_str *path, const X509 *leaf)
{
    char date[DATE_BYTES];
    if (X509_cmp_current_time(X509_get0_notAfter(leaf)) < 0) {
        print_date(X509_get0_notAfter(leaf), date, sizeof(date));
        WARN_CERT(at, path, " has expired: it was good until %s", date);
    } else if (X509_cmp_current_time(X509_get0_notBefore(leaf)) > 0) {
        print_date(X509_get0_notBefore(leaf), date, sizeof(date));
        WARN_CERT(at, path, " is not valid yet: it will be from %s", date);
    }
}

static void check_names(const struct cert_ref *at, const struct mk_str *path, X509 *leaf)
{
    for (unsigned i = 0; mk_host_name(get_host(at), i).p; i++) {
        struct mk_str name = mk_host_name(get_host(at), i);
        if (!tls_host_covers(leaf, name))
            WARN_CERT(at, path, " does not cover the ServerName %.*s", MK_STR_ARG(name));
    }
}

/* Some clients sort a chain themselves; others do not, and do not trust it. */
static void check_order(const struct cert_ref *at, const struct mk_str *path, X509 *leaf, const STACK_OF(X509) * chain)
{
    for (int i = 0; i < sk_X509_num(chain); i++) {
        X509 *one = i ? sk_X509_value(chain, i - 1) : leaf;
        if (X509_check_issued(sk_X509_value(chain, i), one) == X509_V_OK)
            continue;
        report_warning(at, offsetof(struct tls_host_conf, certificates), "of the certificates that begin with", path,
                       ", number %d was not signed by number %d: each must be signed by the next", i + 1, i + 2);
        return;
    }
}

/* The handshake of a client that does not know the curve fails without a clear reason. */
static bool is_common_key(const EVP_PKEY *key)
{
    static const char *const curves[] = {"prime256v1", "secp384r1", "secp521r1"};
    char curve[CURVE_BYTES] = "";
    int kind = EVP_PKEY_get_base_id(key);
    if (kind != EVP_PKEY_EC)
        return kind == EVP_PKEY_RSA || kind == EVP_PKEY_RSA_PSS || kind == EVP_PKEY_ED25519 || kind == EVP_PKEY_ED448;
    EVP_PKEY_get_group_name(key, curve, sizeof(curve), NULL);
    for (size_t i = 0; i < MK_COUNT_OF(curves); i++)
        if (strcmp(curve, curves[i]) == 0)
            return true;
    return false;
}

static void check_key_type(const struct cert_ref *at, const struct mk_str *path, X509 *leaf)
{
    if (!is_common_key(X509_get0_pubkey(leaf)))
        WARN_CERT(at, path,
                  " has a key of a kind that most clients do not support, and no client with TLS 1.3: use P-256, P-384 "
                  "or RSA");
}

/* Firefox refuses it, for example. */
static void check_usage(const struct cert_ref *at, const struct mk_str *path, X509 *leaf)
{
    if (X509_check_ca(leaf) == 1)
        WARN_CERT(
            at, path,
            " is the certificate of an authority (CA:TRUE), which some clients refuse: use one that an authority has "
            "signed");
}

/* A self-signed certificate may be its own authority. */
static void check_authority(const struct cert_ref *at, const struct mk_str *path, X509 *one, int nth)
{
    if (!X509_check_ca(one) && X509_self_signed(one, 0) != 1)
        report_warning(at, offsetof(struct tls_host_conf, client_ca), "of the certificates in", path,
                       ", number %d is not of an authority (CA:TRUE): no client is accepted by it", nth);
}

/* ── one certificate ── */

/* Returns the number, from 1, of the certificate that belongs to this key; 0 if there is none. */
static int find_key_owner(const STACK_OF(X509) * chain, EVP_PKEY *key)
{
    for (int i = 0; i < sk_X509_num(chain); i++)
        if (X509_check_private_key(sk_X509_value(chain, i), key) == 1)
            return i + 1;
    return 0;
}

/* Returns 0 if the key belongs to the first certificate, else -EINVAL (reported). */
static int check_key_match(const struct cert_ref *at, STACK_OF(X509) * chain, EVP_PKEY *pkey)
{
    assert(at->nth < get_conf(at)->keys.n);
    const struct tls_host_conf *conf = get_conf(at);
    struct mk_str *path = &conf->certificates.items[at->nth], *key = &conf->keys.items[at->nth];
    MK_BUF_ON_STACK(fault, FAULT_BYTES);
    int owner = find_key_owner(chain, pkey);
    if (owner == 1)
        return 0;
    ERR_clear_error();
    if (owner) {
        mk_buf_addf(&fault, "belongs to number %d of the certificates in %.*s, but the host's own comes first", owner,
                    MK_STR_ARG(*path));
    } else {
        mk_buf_addf(&fault, "does not belong to the certificate %.*s", MK_STR_ARG(*path));
        X509_check_private_key(sk_X509_value(chain, 0), pkey); /* adds the reason to the queue */
        pem_add_reason(&fault);
    }
    return report_error(at, offsetof(struct tls_host_conf, keys), "the private key", key, &fault);
}

/* Reads both files, even if one has errors. */
static int read_cert_and_key(const struct cert_ref *at, STACK_OF(X509) * *ret_chain, EVP_PKEY **ret_key)
{
    const struct tls_host_conf *conf = get_conf(at);
    struct mk_str *path = &conf->certificates.items[at->nth];
    struct mk_str *key = at->nth < conf->keys.n ? &conf->keys.items[at->nth] : NULL;
    char text[FAULT_BYTES];
    struct mk_buf fault;
    int err = key ? 0 : -EINVAL; /* it is missing, which was reported */
    mk_buf_init_fixed(&fault, text, sizeof(text));
    *ret_chain = pem_read_certificates(path->p, &fault);
    if (!*ret_chain)
        err = report_error(at, offsetof(struct tls_host_conf, certificates), "the certificate", path, &fault);
    mk_buf_init_fixed(&fault, text, sizeof(text));
    *ret_key = key ? pem_read_key(key->p, &fault) : NULL;
    if (key && !*ret_key)
        err = report_error(at, offsetof(struct tls_host_conf, keys), "the private key", key, &fault);
    return err == 0 ? check_key_match(at, *ret_chain, *ret_key) : err;
}

/* Adds the certificates of CertificateChain after those of the certificate's file. */
static int add_chain(const struct cert_ref *at, STACK_OF(X509) * chain)
{
    const struct tls_host_conf *conf = get_conf(at);
    if (at->nth >= conf->chains.n)
        return 0;
    MK_BUF_ON_STACK(fault, FAULT_BYTES);
    struct mk_str *path = &conf->chains.items[at->nth];
    STACK_OF(X509) *more = pem_read_certificates(path->p, &fault);
    if (!more)
        return report_error(at, offsetof(struct tls_host_conf, chains), "the chain", path, &fault);
    int err = 0;
    for (X509 *one; err == 0 && (one = sk_X509_shift(more));)
        if (!sk_X509_push(chain, one)) {
            X509_free(one);
            err = -ENOMEM;
        }
    sk_X509_pop_free(more, X509_free);
    return err;
}

static int64_t get_time(const ASN1_TIME *time)
{
    struct tm tm;
    return ASN1_TIME_to_tm(time, &tm) == 1 ? timegm(&tm) : 0;
}

/* Returns the first end of validity of a certificate and its chain. */
static int64_t find_expiry(const X509 *leaf, const STACK_OF(X509) * chain)
{
    int64_t first = get_time(X509_get0_notAfter(leaf));
    for (int i = 0; i < sk_X509_num(chain); i++) {
        int64_t next = get_time(X509_get0_notAfter(sk_X509_value(chain, i)));
        first = next < first ? next : first;
    }
    return first;
}

/* Notes when something begins and ends to be valid: a later load could give a warning. */
static void limit_quiet(struct tls_credentials *own, int64_t from, int64_t until)
{
    own->quiet_from = from > own->quiet_from ? from : own->quiet_from;
    own->quiet_until = until < own->quiet_until ? until : own->quiet_until;
}

/* Adds certificate, key and chain to the credentials, of which it becomes a part in any case. */
static struct tls_cert *add_certificate(const struct cert_ref *at, STACK_OF(X509) * chain, EVP_PKEY *key)
{
    struct tls_credentials *own = at->load->credentials;
    assert(sk_X509_num(chain) > 0 && own->n_certs < own->certs_max);
    struct tls_cert *cert = &own->certs[own->n_certs++];
    X509 *leaf = sk_X509_shift(chain);
    *cert = (struct tls_cert){.leaf = leaf, .key = key, .chain = chain, .expiry = find_expiry(leaf, chain)};
    limit_quiet(own, get_time(X509_get0_notBefore(leaf)), get_time(X509_get0_notAfter(leaf)));
    return cert;
}

/* Returns 0 if a connection can have the certificate and those before it, else -EINVAL (reported). */
static int try_certificate(const struct cert_ref *at, const struct tls_cert *cert)
{
    char text[FAULT_BYTES];
    struct mk_buf fault;
    struct mk_str *path = &get_conf(at)->certificates.items[at->nth];
    int kind = EVP_PKEY_get_base_id(cert->key);
    mk_buf_init_fixed(&fault, text, sizeof(text));
    for (const struct tls_cert *one = at->load->credentials->certs; one < cert; one++)
        if (EVP_PKEY_get_base_id(one->key) == kind) {
            mk_buf_addf(&fault, "is the second with a key of this kind (%s): a host has one of each", OBJ_nid2sn(kind));
            return report_error(at, offsetof(struct tls_host_conf, certificates), "the certificate", path, &fault);
        }
    if (SSL_use_cert_and_key(at->load->trial, cert->leaf, cert->key, cert->chain, 1) == 1)
        return 0;
    mk_buf_addf(&fault, "cannot be used");
    pem_add_reason(&fault);
    return report_error(at, offsetof(struct tls_host_conf, certificates), "the certificate", path, &fault);
}

/* ── OCSP ── */

static void check_ocsp_response(const struct cert_ref *at, const struct mk_str *path, const struct ocsp_response *ocsp)
{
    for (unsigned i = 0; i < OCSP_WARNINGS; i++)
        if (ocsp->warnings & 1u << i)
            report_warning(at, offsetof(struct tls_host_conf, ocsp_files), "the OCSP response", path, " %s",
                           ocsp_warnings[i]);
}

/* Reads the OCSP response of a certificate, if it has one, and keeps it if clients would accept it. */
static int read_ocsp_response(const struct cert_ref *at, struct tls_cert *cert)
{
    const struct tls_host_conf *conf = get_conf(at);
    struct ocsp_response ocsp;
    struct pem_file file;
    if (at->nth >= conf->ocsp_files.n)
        return 0;
    MK_BUF_ON_STACK(fault, FAULT_BYTES);
    struct mk_str *path = &conf->ocsp_files.items[at->nth];
    if (!pem_read_file(&file, path->p, false, &fault))
        return report_error(at, offsetof(struct tls_host_conf, ocsp_files), "the OCSP response", path, &fault);
    const char *wrong = ocsp_parse(&ocsp, mk_str(file.bytes.data, file.bytes.len), cert->leaf, cert->chain);
    if (wrong) {
        mk_buf_addf(&fault, "%s", wrong);
        pem_add_reason(&fault);
        pem_free_file(&file);
        return report_error(at, offsetof(struct tls_host_conf, ocsp_files), "the file", path, &fault);
    }
    check_ocsp_response(at, path, &ocsp);
    limit_quiet(at->load->credentials, ocsp.this_update, ocsp.next_update);
    bool usable = ocsp_is_usable(&ocsp);
    cert->ocsp = usable ? OPENSSL_memdup(file.bytes.data, file.bytes.len) : NULL;
    cert->ocsp_len = file.bytes.len;
    cert->ocsp_this_update = ocsp.this_update;
    cert->ocsp_next_update = ocsp.next_update;
    pem_free_file(&file);
    return cert->ocsp || !usable ? 0 : -ENOMEM;
}

/* ── all of a host ── */

/* Reports all that is doubtful about a certificate. */
static void check_certificate(const struct cert_ref *at, const struct tls_cert *cert)
{
    const struct mk_str *path = &get_conf(at)->certificates.items[at->nth];
    check_order(at, path, cert->leaf, cert->chain);
    check_key_type(at, path, cert->leaf);
    check_usage(at, path, cert->leaf);
    check_dates(at, path, cert->leaf);
    check_names(at, path, cert->leaf);
}

/* Reads the files of one certificate; the chain even if the others have errors, so that all are reported. */
static int read_certificate(const struct cert_ref *at)
{
    STACK_OF(X509) *chain = NULL, *rest = NULL;
    EVP_PKEY *key = NULL;
    int err = read_cert_and_key(at, &chain, &key);
    if (err != -ENOMEM) {
        STACK_OF(X509) *to = chain ? chain : (rest = sk_X509_new_null());
        int more = to ? add_chain(at, to) : -ENOMEM;
        err = err < 0 && more != -ENOMEM ? err : more;
    }
    sk_X509_pop_free(rest, X509_free);
    if (err < 0) {
        sk_X509_pop_free(chain, X509_free);
        EVP_PKEY_free(key);
        return err;
    }
    struct tls_cert *cert = add_certificate(at, chain, key);
    err = try_certificate(at, cert);
    err = err == 0 ? read_ocsp_response(at, cert) : err;
    if (err == 0)
        check_certificate(at, cert);
    return err;
}

int certificates_read(const struct tls_load *load)
{
    const struct tls_host_conf *conf = load->tls_host->conf;
    assert(load->trial && load->credentials->n_certs == 0);
    int err = 0;
    struct cert_ref at = {.load = load};
    if (conf->certificates.n > CREDENTIALS_CERTS_MAX) {
        mk_host_error(load->tls_host->host, conf, offsetof(struct tls_host_conf, certificates), CREDENTIALS_CERTS_MAX,
                      "a host has %d certificates at most", CREDENTIALS_CERTS_MAX);
        return -EINVAL;
    }
    for (; at.nth < conf->certificates.n && err != -ENOMEM; at.nth++) {
        int r = read_certificate(&at);
        err = r < 0 ? r : err;
    }
    return err;
}

int certificates_read_authorities(const struct tls_load *load, struct mk_buf *ret_bytes)
{
    struct tls_credentials *own = load->credentials;
    struct cert_ref at = {.load = load};
    struct mk_str path = get_conf(&at)->client_ca;
    int err = 0;
    MK_BUF_ON_STACK(fault, FAULT_BYTES);
    STACK_OF(X509) *all = pem_read_certificates(path.p, &fault);
    if (!all)
        return report_error(&at, offsetof(struct tls_host_conf, client_ca), "the file", &path, &fault);
    own->authorities = X509_STORE_new();
    own->authority_names = sk_X509_NAME_new_null();
    err = own->authorities && own->authority_names ? 0 : -ENOMEM;
    for (int i = 0; i < sk_X509_num(all) && err == 0; i++) {
        X509 *one = sk_X509_value(all, i);
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned n = 0;
        X509_NAME *name = X509_NAME_dup(X509_get_subject_name(one));
        if (!name || !sk_X509_NAME_push(own->authority_names, name)) {
            X509_NAME_free(name);
            err = -ENOMEM;
        }
        if (X509_STORE_add_cert(own->authorities, one) != 1 || X509_digest(one, EVP_sha256(), digest, &n) != 1)
            err = -ENOMEM;
        mk_buf_add(ret_bytes, digest, n);
        check_authority(&at, &path, one, i + 1);
    }
    sk_X509_pop_free(all, X509_free);
    return err < 0 ? err : ret_bytes->err;
}
