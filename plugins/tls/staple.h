// SPDX-License-Identifier: Apache-2.0
/*
 * What a response of OCSP (RFC 6960) says of a certificate, and whether clients could believe it. Pure: nothing is
 * kept.
 */
#ifndef TLS_STAPLE_H
#define TLS_STAPLE_H

#include <monkey/str.h>

#include <openssl/x509.h>

#include <stdint.h>

enum staple_doubt { STAPLE_REVOKED, STAPLE_UNKNOWN, STAPLE_UNSIGNED, STAPLE_NEW, STAPLE_OLD, STAPLE_DOUBTS };

struct staple {
    int64_t begins;  /* in seconds since 1970 */
    int64_t ends;    /* then it says nothing any more; INT64_MAX: it does not tell */
    unsigned doubts; /* 1 << enum staple_doubt of each */
};

/* Behind "the OCSP response FILE". */
extern const char *const staple_doubts[STAPLE_DOUBTS];

/*
 * Reads a response in DER about `leaf`. Its issuer is looked for among `chain` (which may be NULL) and among what the
 * response brings along; without it, the name and the number have to do, and no signature is checked. NULL, or a phrase
 * behind "the file FILE": it is of no use for this certificate.
 */
const char *staple_read(struct staple *ret, struct mk_str der, X509 *leaf, STACK_OF(X509) * chain);

/* Whether clients get it at all, between its beginning and its end. */
bool staple_helps(const struct staple *staple);

#endif
