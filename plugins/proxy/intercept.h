// SPDX-License-Identifier: Apache-2.0
/*
 * Which responses of a backend become the server's own error pages: InterceptErrors.
 */
#ifndef PROXY_INTERCEPT_H
#define PROXY_INTERCEPT_H

#include <monkey/conf.h>

enum { INTERCEPT_FIRST = 400, INTERCEPT_LAST = 599 };

struct intercept {
    bool statuses[INTERCEPT_LAST - INTERCEPT_FIRST + 1];
};

/* Parses `On`, `Off` or statuses into a struct intercept; mk_conf_parse_fn. */
int intercept_parse(const struct mk_conf_value *value, void *intercept, struct mk_arena *arena, struct mk_buf *error);

/* Tells whether a response with this status is replaced. Pure. */
static inline bool intercept_has(const struct intercept *intercept, int status)
{
    return status >= INTERCEPT_FIRST && status <= INTERCEPT_LAST && intercept->statuses[status - INTERCEPT_FIRST];
}

#endif
