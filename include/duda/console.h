// SPDX-License-Identifier: Apache-2.0
/*
 * The object `console`: messages for the author of the service, while it is written.
 *
 *     console->debug(dr, "%d rows", n);        service shop: [GET /shop/list] [main.c:42] 17 rows
 */
#ifndef DUDA_CONSOLE_H
#define DUDA_CONSOLE_H

#include "types.h"

struct duda_api_console {
    /*
     * Writes a line with the request and the place in the source: to the file of conf->bind_messages(), or else to the
     * server's log at the level info, with the limit of <duda/msg.h>. `dr` may be NULL. Call it by the macro below,
     * without `file` and `line`.
     */
    void (*debug)(duda_request_t *dr, const char *file, int line, const char *format, ...) DUDA_PRINTF(4, 5);
};

DUDA_OBJECT(struct duda_api_console, console)

#ifndef DUDA_FRAMEWORK
#define debug(dr, ...) debug(dr, __FILE__, __LINE__, __VA_ARGS__)
#endif

#endif
