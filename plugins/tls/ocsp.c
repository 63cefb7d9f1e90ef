// SPDX-License-Identifier: Apache-2.0
/*
 * Checks OCSP responses. Fetches nothing. A response must be signed for the certificate's issuer; whether the
 * issuer is trusted is for the client to decide.
 */
#include "tls.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>

#include <time.h>

const char *const ocsp_warnings[] = {
    [OCSP_WARN_REVOKED] =
        "says that the certificate is revoked: clients that get it refuse the host, which needs another certificate",
    [OCSP_WARN_UNKNOWN] = "says that the issuer does not know the certificate: no client gets it",
    [OCSP_WARN_UNSIGNED] = "has no valid signature of the certificate's issuer: no client gets it",
    [OCSP_WARN_NOT_YET_VALID] = "is not valid yet by the clock of this machine: no client gets it until then",
    [OCSP_WARN_EXPIRED] = "is out of date: no client gets it",
};

static bool has_signed(X509 *one, X509 *leaf)
{
    return X509_check_issued(one, leaf) == X509_V_OK && X509_verify(leaf, X509_get0_pubkey(one)) == 1;
}

static X509 *find_issuer(const STACK_OF(X509) * certificates, X509 *leaf)
{
    for (int i = 0; i < sk_X509_num(certificates); i++)
        if (has_signed(sk_X509_value(certificates, i), leaf))
            return sk_X509_value(certificates, i);
    return NULL;
}

/* A response has digests of the issuer's name and key, of a kind that it chooses. Without the issuer, compares the
 * name. */
static bool is_for_certificate(OCSP_CERTID *id, X509 *leaf, X509 *issuer)
{
    unsigned char name[EVP_MAX_MD_SIZE];
    unsigned len;
    ASN1_OCTET_STRING *named = NULL;
    ASN1_INTEGER *serial = NULL;
    ASN1_OBJECT *kind = NULL;
    OCSP_id_get0_info(&named, &kind, NULL, &serial, id);
    const EVP_MD *digest = EVP_get_digestbyobj(kind);
    if (!digest || ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(leaf)) != 0)
        return false;
    if (!issuer)
        return X509_NAME_digest(X509_get_issuer_name(leaf), digest, name, &len) == 1 &&
               (int)len == ASN1_STRING_length(named) && memcmp(name, ASN1_STRING_get0_data(named), len) == 0;
    OCSP_CERTID *own = OCSP_cert_to_id(digest, leaf, issuer);
    bool same = own && OCSP_id_cmp(own, id) == 0;
    OCSP_CERTID_free(own);
    return same;
}

static OCSP_SINGLERESP *find_single_response(OCSP_BASICRESP *basic, X509 *leaf, X509 *issuer)
{
    for (int i = 0; i < OCSP_resp_count(basic); i++) {
        OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
        if (is_for_certificate((OCSP_CERTID *)(uintptr_t)OCSP_SINGLERESP_get0_id(single), leaf, issuer))
            return single;
    }
    return NULL;
}

/* Checks the signature of the issuer, or of a responder that it has authorized; not its dates: the response has its
 * own. */
static bool is_signed(OCSP_BASICRESP *basic, X509 *issuer)
{
    X509_STORE *store = X509_STORE_new();
    STACK_OF(X509) *known = sk_X509_new_null();
    bool good = store && known && sk_X509_push(known, issuer) && X509_STORE_add_cert(store, issuer) == 1 &&
                X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_NO_CHECK_TIME) == 1 &&
                OCSP_basic_verify(basic, known, store, 0) == 1;
    sk_X509_free(known);
    X509_STORE_free(store);
    return good;
}

static int64_t convert_to_unix_time(const ASN1_TIME *time)
{
    struct tm tm;
    return ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static const char *verify_response(struct ocsp_response *ret, OCSP_BASICRESP *basic, X509 *leaf, STACK_OF(X509) * chain)
{
    ASN1_GENERALIZEDTIME *this = NULL, *next = NULL;
    int64_t now = (int64_t)time(NULL);
    X509 *issuer = find_issuer(chain, leaf);
    if (!issuer)
        issuer = find_issuer(OCSP_resp_get0_certs(basic), leaf);
    OCSP_SINGLERESP *single = find_single_response(basic, leaf, issuer);
    if (!single)
        return "is an OCSP response about another certificate";
    int status = OCSP_single_get0_status(single, NULL, NULL, &this, &next);
    ret->this_update = this ? convert_to_unix_time(this) : 0;
    ret->next_update = next ? convert_to_unix_time(next) : INT64_MAX;
    ret->warnings = (unsigned)(status == V_OCSP_CERTSTATUS_REVOKED) << OCSP_WARN_REVOKED |
                    (unsigned)(status == V_OCSP_CERTSTATUS_UNKNOWN) << OCSP_WARN_UNKNOWN |
                    (unsigned)(issuer && !is_signed(basic, issuer)) << OCSP_WARN_UNSIGNED |
                    (unsigned)(ret->this_update > now) << OCSP_WARN_NOT_YET_VALID |
                    (unsigned)(ret->next_update < now) << OCSP_WARN_EXPIRED;
    return NULL;
}

const char *ocsp_parse(struct ocsp_response *ret, struct mk_str der, X509 *leaf, STACK_OF(X509) * chain)
{
    const unsigned char *at = (const unsigned char *)der.p;
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &at, (long)der.len);
    OCSP_BASICRESP *basic = NULL;
    const char *fault = "is not an OCSP response in DER";
    *ret = (struct ocsp_response){.next_update = INT64_MAX};
    if (response && OCSP_response_status(response) != OCSP_RESPONSE_STATUS_SUCCESSFUL)
        fault = "is an OCSP response that only reports a failure of the responder";
    else if (response && (basic = OCSP_response_get1_basic(response)))
        fault = verify_response(ret, basic, leaf, chain);
    if (basic)
        ERR_clear_error(); /* of issuers and signatures that did not match */
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    return fault;
}

/* A response about a revoked certificate is usable: clients must know, because the key may be stolen. */
bool ocsp_is_usable(const struct ocsp_response *ocsp)
{
    return !(ocsp->warnings & (1u << OCSP_WARN_UNKNOWN | 1u << OCSP_WARN_UNSIGNED));
}
