// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the self-signed certificate (selfsigned.h). A reload keeps it, so that an exception in a browser stays valid.
 * The main thread makes it, the first worker logs it before it serves.
 */
#include "selfsigned.h"

#include <monkey/base/buf.h>
#include <monkey/log.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <stdio.h>
#include <unistd.h>

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
