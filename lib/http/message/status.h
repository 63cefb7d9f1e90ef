// SPDX-License-Identifier: Apache-2.0
/*
 * The registered statuses: their reasons, and a page for people.
 */
#ifndef MK_HTTP_MESSAGE_STATUS_H
#define MK_HTTP_MESSAGE_STATUS_H

#include <monkey/buf.h>
#include <monkey/str.h>

/* `Not Found`, a constant. Empty (`p` NULL) for a status that is not registered. */
struct mk_str mk__status_reason(int status);

/* Whether a response with this status may carry content, apart from HEAD (RFC 9110 section 6.4.1). */
static inline bool mk__status_has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

/*
 * Appends a small HTML page in UTF-8. `detail` is a sentence (escaped here) or empty. A failure is the
 * buffer's sticky error.
 */
void mk__status_write_page(struct mk_buf *out, int status, struct mk_str detail);

#endif
