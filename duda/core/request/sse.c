// SPDX-License-Identifier: Apache-2.0
/*
 * Server-sent events: their format, and a response that sends them (sse.h).
 */
#include "request/sse.h"

#include "request/header.h"
#include "request/output.h"
#include "request/request.h"

#include <errno.h>
#include <stdio.h>

/* ── the format ── */

static bool has_line_end(struct mk_str s)
{
    return s.len && (memchr(s.p, '\n', s.len) || memchr(s.p, '\r', s.len));
}

/* Cuts the next line off `rest`; the last one may have no end. */
static struct mk_str split_line(struct mk_str *rest)
{
    size_t n = 0;
    while (n < rest->len && rest->p[n] != '\r' && rest->p[n] != '\n')
        n++;
    struct mk_str line = mk_str(rest->p, n);
    bool is_crlf = n + 1 < rest->len && rest->p[n] == '\r' && rest->p[n + 1] == '\n';
    size_t used = n == rest->len ? n : n + 1 + is_crlf;
    *rest = mk_str_after(*rest, used);
    return line;
}

static void add_field(struct mk_buf *out, struct mk_str name, struct mk_str value)
{
    mk_buf_adds(out, name);
    mk_buf_adds(out, MK_STR(": "));
    mk_buf_adds(out, value);
    mk_buf_addc(out, '\n');
}

int sse_format(struct mk_buf *out, struct mk_str type, struct mk_str id, struct mk_str data)
{
    if (has_line_end(type) || has_line_end(id))
        return -EINVAL;
    if (type.p)
        add_field(out, MK_STR("event"), type);
    if (id.p)
        add_field(out, MK_STR("id"), id);
    bool ends_line; /* a text that ends with a line end has an empty last line */
    do {
        struct mk_str line = split_line(&data);
        ends_line = line.p + line.len < data.p;
        add_field(out, MK_STR("data"), line);
    } while (data.len || ends_line);
    mk_buf_addc(out, '\n');
    return out->err;
}

/* ── the response ── */

enum { EVENT_BYTES_MAX = 16 << 20, HEARTBEAT_S_MAX = 86400 };

/* Sends a comment after each interval without an event. */
struct heartbeat {
    struct mk_timer timer;
    struct duda_request *dr;
    uint32_t interval_ms;
};

static void stop_heartbeat(void *ctx)
{
    struct heartbeat *h = ctx;
    mk_timer_cancel(&h->timer);
}

static void send_heartbeat(struct mk_timer *timer)
{
    struct heartbeat *h = MK_CONTAINER_OF(timer, struct heartbeat, timer);
    if (h->dr->output.state != OUTPUT_SENDING)
        return;
    mk_timer_arm(h->dr->worker->loop, timer, h->interval_ms);
    if (!h->dr->output.blocked) /* else bytes are under way */
        output_add_ref(h->dr, MK_STR(":\n\n"));
}

static int start_heartbeat(duda_request_t *dr, unsigned interval_s)
{
    assert(!dr->heartbeat && interval_s && interval_s <= HEARTBEAT_S_MAX);
    struct mk_arena *arena = mk_request_arena(dr->req);
    struct heartbeat *h = mk_arena_alloc(arena, sizeof(*h));
    if (!h || mk_arena_defer(arena, stop_heartbeat, h) < 0)
        return -ENOMEM;
    h->dr = dr;
    h->interval_ms = interval_s * 1000;
    mk_timer_init(&h->timer, send_heartbeat);
    mk_timer_arm(dr->worker->loop, &h->timer, h->interval_ms);
    dr->heartbeat = h;
    return 0;
}

int sse_begin(duda_request_t *dr, unsigned heartbeat_s)
{
    if (dr->output.state != OUTPUT_HELD || dr->output.has_parts)
        return -EALREADY;
    if (heartbeat_s > HEARTBEAT_S_MAX)
        return -EINVAL;
    int err = header_replace(dr, MK_STR("Content-Type"), MK_STR("text/event-stream"));
    if (err == 0)
        err = header_replace(dr, MK_STR("Cache-Control"), MK_STR("no-store"));
    if (err == 0 && heartbeat_s)
        err = start_heartbeat(dr, heartbeat_s);
    return err == 0 ? output_flush(dr) : err;
}

int sse_pass(duda_request_t *dr, struct mk_str text)
{
    int r = output_add_copy(dr, text);
    if (r >= 0 && dr->heartbeat && dr->output.state == OUTPUT_SENDING)
        mk_timer_arm(dr->worker->loop, &dr->heartbeat->timer, dr->heartbeat->interval_ms);
    return r;
}

int sse_send(duda_request_t *dr, const char *type, const char *id, struct mk_str data)
{
    struct mk_buf text;
    mk_buf_init(&text, EVENT_BYTES_MAX);
    int r = sse_format(&text, mk_str_c(type), mk_str_c(id), data);
    if (r == 0)
        r = sse_pass(dr, mk_buf_str(&text));
    mk_buf_release(&text);
    return r;
}

int sse_set_retry(duda_request_t *dr, unsigned delay_ms)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "retry: %u\n\n", delay_ms);
    return output_add_copy(dr, mk_str(text, (size_t)n));
}
