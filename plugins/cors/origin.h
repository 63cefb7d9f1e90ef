// SPDX-License-Identifier: Apache-2.0
/*
 * Origins as browsers write them in the header Origin (RFC 6454 section 6.2, WHATWG URL). Pure.
 *
 *     https://example.org:8443
 *     └scheme   └host     └port, unless it is the scheme's own
 */
#ifndef MK_CORS_ORIGIN_H
#define MK_CORS_ORIGIN_H

#include <monkey/base/buf.h>
#include <monkey/base/str.h>

/*
 * Appends what browsers send for an origin of the configuration; it may be written in capitals, with its scheme's port
 * or with a path there. Returns NULL, or why there is no such origin: a phrase that says what to write.
 */
const char *origin_print(struct mk_str text, struct mk_buf *out);

#endif
