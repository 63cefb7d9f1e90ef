// SPDX-License-Identifier: Apache-2.0
/*
 * What can go wrong with a backend, as it is said to the client (Proxy-Status, RFC 9209) and to the log.
 */
#ifndef MK_GATEWAY_FAILURE_H
#define MK_GATEWAY_FAILURE_H

#include "download.h"

#include <monkey/kit/gateway.h>

struct mk__gw_failure {
    int err; /* 0: any other */
    bool is_dial;
    bool is_own; /* of this process or its machine: the backend did not cause it */
    uint16_t status;
    const char *type; /* RFC 9209 section 2.3 */
    const char *text; /* NULL: of mk_dial_error() or strerror() */
};

/* Finds the failure for -errno of a dial, or of what follows it. */
const struct mk__gw_failure *mk__gw_failure_find(bool is_dial, int err);
/*
 * Adds to `out` what a response's -errno means, in the words of its protocol if that has any. `head` has the bytes of a
 * malformed head. Returns what the client may know of it, a literal; empty: no more than its type.
 */
struct mk_str mk__gw_failure_describe(const struct mk__gw_failure *f, const struct mk__gw_download *down, int err,
                                      const char *head, struct mk_buf *out);
/* Writes the value of Proxy-Status; `details` may be empty. */
void mk__gw_failure_write(struct mk_buf *out, const char *type, struct mk_str details);
/* Responds with an error of this server, and with Proxy-Status. */
void mk__gw_failure_respond(struct mk_request *req, int status, const char *type, struct mk_str details);

#endif
