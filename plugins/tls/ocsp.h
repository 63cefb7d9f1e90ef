// SPDX-License-Identifier: Apache-2.0
/*
 * What a response of OCSP (RFC 6960) says of a certificate, and whether clients could believe it. Pure: nothing is
 * kept.
 */
#ifndef TLS_OCSP_H
#define TLS_OCSP_H

#include <monkey/str.h>

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
    int64_t next_update; /* then it says nothing any more; INT64_MAX: it does not tell */
    unsigned warnings;   /* 1 << enum ocsp_warning of each */
};

/* Behind "the OCSP response FILE". */
extern const char *const ocsp_warnings[OCSP_WARNINGS];

/*
 * Reads a response in DER about `leaf`. Its issuer is looked for among `chain` (which may be NULL) and among what the
 * response brings along; without it, the name and the number have to do, and no signature is checked. NULL, or a phrase
 * behind "the file FILE": it is of no use for this certificate.
 */
const char *ocsp_parse(struct ocsp_response *ret, struct mk_str der, X509 *leaf, STACK_OF(X509) * chain);

/* Whether clients get it at all, between its beginning and its end. */
bool ocsp_is_usable(const struct ocsp_response *ocsp);

#endif
