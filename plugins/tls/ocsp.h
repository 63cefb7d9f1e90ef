// SPDX-License-Identifier: Apache-2.0
/*
 * Parses an OCSP response (RFC 6960) about a certificate, and checks whether clients would accept it. Keeps no state.
 */
#ifndef TLS_OCSP_H
#define TLS_OCSP_H

#include <monkey/base/str.h>

#include <openssl/x509.h>

#include <stdint.h>

enum ocsp_warning {
    OCSP_WARN_REVOKED,
    OCSP_WARN_UNKNOWN,
    OCSP_WARN_UNSIGNED,
    OCSP_WARN_NOT_YET_VALID,
    OCSP_WARN_EXPIRED,
    OCSP_WARNINGS
};

struct ocsp_response {
    int64_t this_update; /* in seconds since 1970 */
    int64_t next_update; /* it is valid until then; INT64_MAX: it does not say */
    unsigned warnings;   /* 1 << enum ocsp_warning of each */
};

/* Texts that follow "the OCSP response FILE". */
extern const char *const ocsp_warnings[OCSP_WARNINGS];

/*
 * Parses a response in DER about `leaf`. Looks for its issuer in `chain` (which may be NULL) and in the response.
 * Without the issuer, only its name and the serial number are compared, and the signature is not checked. Returns NULL,
 * or a phrase that follows "the file FILE" if the response cannot be used for this certificate.
 */
const char *ocsp_parse(struct ocsp_response *ret, struct mk_str der, X509 *leaf, STACK_OF(X509) * chain);

/* Returns true if clients may get it, from this_update to next_update. */
bool ocsp_is_usable(const struct ocsp_response *ocsp);

#endif
