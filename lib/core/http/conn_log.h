// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of the error log about connections, requests and hosts: the peer, the listener and the host follow the message,
 * so that a text that a client sent cannot take their place.
 */
#ifndef MK_HTTP_CONN_LOG_H
#define MK_HTTP_CONN_LOG_H

#include <monkey/base/address.h>
#include <monkey/base/str.h>
#include <monkey/log.h>

#include <stdarg.h>
#include <stdbool.h>

/* Which lines are left out if there are many. */
enum mk__log_limit_kind {
    MK__LOG_LIMIT_LINES, /* some are written */
    MK__LOG_LIMIT_BYTES,
    MK__LOG_LIMIT_NONE, /* the caller has a limit */
};

/* What a line is about; a name of no bytes is left out. */
struct mk__log_subject {
    struct mk_address peer;
    struct mk_str listener, host;
    const void *owner; /* with the format: lines that are limited together */
    bool is_conn;      /* it has a peer */
    enum mk__log_limit_kind limit;
};

/*
 * Writes a line, unless there are too many like it; its message is cut so that the names always fit. The caller asks
 * mk_log_wants() first.
 */
void mk__conn_log_write(enum mk_log_level level, const struct mk__log_subject *s, const char *format, va_list args);

#endif
