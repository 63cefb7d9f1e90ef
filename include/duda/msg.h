// SPDX-License-Identifier: Apache-2.0
/*
 * The object `msg`: lines for the server's operator, in the server's log, with the service's name before them. After
 * conf->bind_messages() they are in the service's own file, too. At most 800 bytes are kept in the server's log, which
 * has 10 KB of each service in ten seconds, and the number of the lines that are left out; from duda_main(), with
 * LogLimit Off of [DUDA], and with LogLevel debug it has all. Any thread.
 */
#ifndef DUDA_MSG_H
#define DUDA_MSG_H

#include "types.h"

struct duda_api_msg {
    /* Write a line: at the level info, warn, error; and error with "bug: " before the text. */
    void (*info)(const char *format, ...) DUDA_PRINTF(1, 2);
    void (*warn)(const char *format, ...) DUDA_PRINTF(1, 2);
    void (*err)(const char *format, ...) DUDA_PRINTF(1, 2);
    void (*bug)(const char *format, ...) DUDA_PRINTF(1, 2);
};

DUDA_OBJECT(struct duda_api_msg, msg)

#endif
