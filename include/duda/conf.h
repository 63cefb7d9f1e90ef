// SPDX-License-Identifier: Apache-2.0
/*
 * The object `conf`: how the service is reached. All functions only in duda_main(); elsewhere they fail and are logged.
 */
#ifndef DUDA_CONF_H
#define DUDA_CONF_H

#include "types.h"

struct duda_api_conf {
    /* URLs of map routes without the slash at their end, and without a query, are redirected to it (301). */
    int (*force_redirect)(void);
    /*
     * Writes the lines of `msg` to the file NAME.messages in LogDir, too, and those of `console` only there. The output
     * of printf() stays where the server's goes. Returns 0, or -1, which is logged: LogDir is not set, or the file
     * cannot be opened.
     */
    int (*bind_messages)(void);
    /*
     * Changes the name that the URLs begin with: one path segment of letters, digits, "-", "_", "." and "~".
     * Returns 0 or -1, which is logged.
     */
    int (*service_name)(const char *name);
    /* The service gets all paths of its host that no other service has. Returns 0 or -1. */
    int (*service_root)(void);
};

DUDA_OBJECT(struct duda_api_conf, conf)

#endif
