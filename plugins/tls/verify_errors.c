// SPDX-License-Identifier: Apache-2.0
/*
 * The results of verifications in the words of the configuration (verify_errors.h).
 */
#include "verify_errors.h"

#include <openssl/x509_vfy.h>

static const struct {
    long result;
    const char *phrase;
} rows[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "has expired"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "is not valid yet"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, "is self-signed, and is not in the file of authorities"},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, "is of an authority that is not trusted"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, "is of an authority that is not trusted"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "is of an authority that is not trusted"},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, "is of an authority that is not trusted"},
    {X509_V_ERR_CERT_CHAIN_TOO_LONG, "has too many authorities above it"},
};

void verify_errors_describe(long result, const char *subject, const char *owners, struct mk_buf *out)
{
    if (result == X509_V_ERR_INVALID_PURPOSE) {
        mk_buf_addf(out, "%s is not for %s", subject, owners);
        return;
    }
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].result == result) {
            mk_buf_addf(out, "%s %s", subject, rows[i].phrase);
            return;
        }
    mk_buf_addf(out, "%s is refused: %s", subject, X509_verify_cert_error_string(result));
}
