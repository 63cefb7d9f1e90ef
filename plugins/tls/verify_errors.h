// SPDX-License-Identifier: Apache-2.0
/*
 * Describes why a certificate was refused.
 */
#ifndef TLS_VERIFY_ERRORS_H
#define TLS_VERIFY_ERRORS_H

#include <monkey/base/buf.h>

/*
 * Appends "SUBJECT ..." for a result of SSL_get_verify_result(). `subject` is "the certificate of the server", `owners`
 * whose certificate it has to be: "servers".
 */
void verify_errors_describe(long result, const char *subject, const char *owners, struct mk_buf *out);

#endif
