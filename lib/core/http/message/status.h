// SPDX-License-Identifier: Apache-2.0
/*
 * The registered status codes: their reason phrases, and an HTML page.
 */
#ifndef MK_HTTP_MESSAGE_STATUS_H
#define MK_HTTP_MESSAGE_STATUS_H

#include <monkey/base/buf.h>
#include <monkey/base/str.h>

/*
 * Returns the reason phrase, for example `Not Found`. A constant; empty (`p` NULL) for a code that is not registered.
 */
struct mk_str mk__status_reason(int status);

/* Tells whether a response with this status may have content, apart from HEAD (RFC 9110 section 6.4.1). */
static inline bool mk__status_has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

enum { MK__STATUS_PAGE_BYTES = 576 };

/*
 * Appends a small HTML page in UTF-8, for light and dark screens, with which browsers ask for nothing else. It fits in
 * MK__STATUS_PAGE_BYTES. Errors are in the sticky error of the buffer.
 */
void mk__status_write_page(struct mk_buf *out, int status);

#endif
