// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of the error log about connections and requests (conn_log.h).
 */
#include "http/conn_log.h"

#include <stdio.h>

#include "base/log_limit.h"
#include "http/client_addr.h"
#include "http/request.h"
#include "net/listen.h"

enum { LINE_BYTES = 1000, MESSAGE_BYTES = 560, PEER_BYTES = 64, LISTENER_BYTES = 128, HOST_BYTES = 128 };

/* What a line has more than its message, but for the time. */
static size_t get_subject_bytes(const struct mk__log_subject *s)
{
    size_t listener = mk_str_truncate(s->listener, LISTENER_BYTES).len, host = mk_str_truncate(s->host, HOST_BYTES).len;
    return listener + host + (s->is_conn ? PEER_BYTES / 2 : 0);
}

static void add_subject(struct mk_buf *line, const struct mk__log_subject *s)
{
    struct mk_str listener = mk_str_truncate(s->listener, LISTENER_BYTES), host = mk_str_truncate(s->host, HOST_BYTES);
    if (s->is_conn) {
        mk_buf_addf(line, ", peer: ");
        mk_address_print(&s->peer, line);
    }
    if (listener.len)
        mk_buf_addf(line, ", listener: %.*s", MK_STR_ARG(listener));
    if (host.len)
        mk_buf_addf(line, ", host: %.*s", MK_STR_ARG(host));
}

void mk__conn_log_write(enum mk_log_level level, const struct mk__log_subject *s, const char *format, va_list args)
{
    MK_UNINITIALIZED char storage[LINE_BYTES];
    struct mk__log_limit_note note = {0};
    struct mk_buf line;
    static_assert(MESSAGE_BYTES + MK__LOG_LIMIT_NOTE_BYTES + PEER_BYTES + LISTENER_BYTES + HOST_BYTES + 40 < LINE_BYTES,
                  "the subject always fits");
    if (s->limit == MK__LOG_LIMIT_LINES && !mk__log_limit_admits(level, s->owner, format, &note))
        return;
    int n = vsnprintf(storage, MESSAGE_BYTES, format, args);
    mk_buf_init_fixed(&line, storage, sizeof(storage));
    line.len = n < 0 ? 0 : n < MESSAGE_BYTES ? (size_t)n : MESSAGE_BYTES - 1;
    if (s->limit == MK__LOG_LIMIT_BYTES &&
        !mk__log_limit_affords(s->owner, format, mk_buf_str(&line), get_subject_bytes(s), &note))
        return;
    mk__log_limit_add_note(&line, &note);
    add_subject(&line, s);
    mk_log(level, "%s", mk_buf_cstr(&line));
}

static struct mk_str get_listener(const struct mk_io *io)
{
    const struct mk__listener_name *listener = io->listener;
    return listener ? listener->text : MK_STR_NONE;
}

void mk_io_log(const struct mk_io *io, const struct mk_address *peer, enum mk_log_level level, const char *format, ...)
{
    va_list args;
    if (!mk_log_wants(level))
        return;
    struct mk__log_subject s = {.peer = peer ? *peer : mk__client_addr_ask(io),
                                .listener = get_listener(io),
                                .is_conn = true,
                                .limit = MK__LOG_LIMIT_NONE};
    va_start(args, format);
    mk__conn_log_write(level, &s, format, args);
    va_end(args);
}

static void write_line(struct mk_request *req, enum mk__log_limit_kind limit, enum mk_log_level level,
                       const char *format, va_list args)
{
    if (!mk_log_wants(level))
        return;
    struct mk__log_subject s = {.peer = mk_request_peer(req),
                                .listener = get_listener(req->ops->io(req)),
                                .host = mk_request_host(req),
                                .owner = req->app_data,
                                .is_conn = true,
                                .limit = limit};
    mk__conn_log_write(level, &s, format, args);
}

void mk_request_log(struct mk_request *req, enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(req, MK__LOG_LIMIT_LINES, level, format, args);
    va_end(args);
}

void mk_request_log_text(struct mk_request *req, enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(req, MK__LOG_LIMIT_BYTES, level, format, args);
    va_end(args);
}

void mk_request_log_all(struct mk_request *req, enum mk_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(req, MK__LOG_LIMIT_NONE, level, format, args);
    va_end(args);
}
