// SPDX-License-Identifier: Apache-2.0
/*
 * The interface to nghttp2 (http/h2/h2.h): turns its frames into calls of recv.c and stream.c, and their calls into
 * frames. Makes no decisions.
 */
#include "http/h2/h2.h"

#include "http/h2/response.h"
#include "http/h2/alloc.h"

#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <nghttp2/nghttp2.h>

enum {
    STREAM_WINDOW_BYTES = 64 * 1024,
    CONNECTION_WINDOW_BYTES = 256 * 1024,
};

static nghttp2_session *get_session(const struct mk__h2 *h2)
{
    return h2->session;
}

/* ── heads ── */

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *ctx)
{
    (void)session;
    mk__h2_recv_frame(ctx, hd->type, hd->length, hd->stream_id, hd->flags & NGHTTP2_FLAG_END_STREAM);
    return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct mk__h2 *h2 = ctx;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    mk__h2_alloc_put_head_buf(h2);
    if (mk__h2_is_terminated(h2))
        return 0;
    if (h2->shutdown == MK__H2_SHUTDOWN_GOAWAY) { /* the client may repeat it elsewhere: RFC 9113 section 8.7 */
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    struct mk__h2_stream *s = mk__h2_recv_begin_head(h2, frame->hd.stream_id);
    if (!s)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(session, s->id, s);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
    (void)session, (void)flags;
    mk__h2_recv_header(ctx, frame->hd.stream_id, mk_str((const char *)name, name_len),
                       mk_str((const char *)value, value_len));
    return 0;
}

/* ── frames from the client ── */

struct mk__h2_stream *mk__h2_find_stream(const struct mk__h2 *h2, int32_t id)
{
    return id ? nghttp2_session_get_stream_user_data(get_session(h2), id) : NULL;
}

static void on_headers(struct mk__h2 *h2, const nghttp2_frame *frame, struct mk__h2_stream *s)
{
    bool end_stream = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (h2->head_stream && h2->head_stream == s)
        mk__h2_recv_end_head(h2, end_stream);
    else if (s && end_stream)
        mk__h2_stream_data_end(s);
}

static void on_data(struct mk__h2 *h2, const nghttp2_frame *frame, struct mk__h2_stream *s)
{
    bool end_stream = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (frame->hd.length == frame->data.padlen && !end_stream)
        mk__h2_flood_count(h2, MK__H2_FLOOD_EMPTY);
    if (s && end_stream)
        mk__h2_stream_data_end(s);
}

/* nghttp2 parses PRIORITY_UPDATE (RFC 9218 section 7.1) only if NO_RFC7540_PRIORITIES was announced. */
static int on_priority_update_chunk(nghttp2_session *session, const nghttp2_frame_hd *hd, const uint8_t *data,
                                    size_t len, void *ctx)
{
    (void)session, (void)hd;
    mk__h2_recv_priority_update(ctx, mk_str((const char *)data, len));
    return 0;
}

static int unpack_priority_update(nghttp2_session *session, void **payload, const nghttp2_frame_hd *hd, void *ctx)
{
    struct mk__h2 *h2 = ctx;
    (void)session, (void)hd;
    *payload = &h2->priority_update;
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct mk__h2 *h2 = ctx;
    const nghttp2_frame_hd *hd = &frame->hd;
    (void)session;
    if (hd->type == NGHTTP2_HEADERS)
        on_headers(h2, frame, mk__h2_find_stream(h2, hd->stream_id));
    else if (hd->type == NGHTTP2_DATA)
        on_data(h2, frame, mk__h2_find_stream(h2, hd->stream_id));
    else
        mk__h2_recv_control(h2, hd->type, hd->stream_id, hd->flags & NGHTTP2_FLAG_ACK,
                            hd->type == NGHTTP2_WINDOW_UPDATE ? frame->window_update.window_size_increment : 0);
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                         void *ctx)
{
    struct mk__h2 *h2 = ctx;
    struct mk__h2_stream *s = mk__h2_find_stream(h2, id);
    (void)flags;
    if (s)
        mk__h2_stream_data(s, mk_str((const char *)data, len));
    else
        nghttp2_session_consume(session, id, len);
    return 0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *ctx)
{
    struct mk__h2 *h2 = ctx;
    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST && !mk__h2_is_terminated(h2) &&
        (error == NGHTTP2_ERR_REFUSED_STREAM || error == NGHTTP2_ERR_PROTO))
        mk__h2_recv_excess_stream(h2, error == NGHTTP2_ERR_PROTO);
    if (h2->head_stream && frame->hd.stream_id == h2->head_stream->id)
        mk__h2_alloc_put_head_buf(h2);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *ctx)
{
    struct mk__h2 *h2 = ctx;
    struct mk__h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    (void)code;
    if (!s)
        return 0;
    if (h2->head_stream == s)
        mk__h2_alloc_put_head_buf(h2);
    if (h2->current == s)
        h2->current = NULL;
    mk__h2_stream_free(s);
    return 0;
}

/* ── frames to the client ── */

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct mk__h2 *h2 = ctx;
    struct mk__h2_stream *s = mk__h2_find_stream(h2, frame->hd.stream_id);
    bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS && s && s->req)
        mk__h2_stream_head_sent(s, frame->hd.length);
    if (frame->hd.type == NGHTTP2_GOAWAY && h2->shutdown == MK__H2_SHUTDOWN_NOTICE)
        nghttp2_submit_ping(session, NGHTTP2_FLAG_NONE, NULL); /* its ACK arrives after all requests in flight */
    if (s && carries && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        mk__h2_stream_complete(s);
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR &&
        frame->rst_stream.error_code != NGHTTP2_INTERNAL_ERROR) /* which the client has not caused */
        mk__h2_flood_count(h2, MK__H2_FLOOD_STREAM_ERROR);
    return 0;
}

/* Resets a stream whose head or trailers exceed what nghttp2 can send (64 KB); nothing could follow. */
static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *ctx)
{
    struct mk__h2_stream *s = mk__h2_find_stream(ctx, frame->hd.stream_id);
    (void)session;
    if (s && error == NGHTTP2_ERR_FRAME_SIZE_ERROR)
        mk__h2_reset_stream(s, true);
    return 0;
}

static unsigned fill_nv(const struct mk__h2_headers *fields, nghttp2_nv nv[MK__H2_HEADERS_MAX])
{
    for (unsigned i = 0; i < fields->n; i++)
        nv[i] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)fields->items[i].name.p,
                             .namelen = fields->items[i].name.len,
                             .value = (uint8_t *)(uintptr_t)fields->items[i].value.p,
                             .valuelen = fields->items[i].value.len};
    return fields->n;
}

/* Ends the body; the trailers, if any, end the stream. Returns an error of nghttp2 or 0. */
static int end_body(nghttp2_session *session, const struct mk__h2_stream *s, uint32_t *flags)
{
    MK_UNINITIALIZED struct mk__h2_headers fields;
    MK_UNINITIALIZED nghttp2_nv nv[MK__H2_HEADERS_MAX];
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!mk__h2_response_trailers(s, &fields))
        return 0;
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return nghttp2_submit_trailer(session, s->id, nv, fill_nv(&fields, nv));
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                         nghttp2_data_source *source, void *ctx)
{
    size_t n = 0;
    (void)id, (void)buf;
    switch (mk__h2_send_read_body(ctx, source->ptr, length, &n)) {
    case MK__H2_READ_DEFERRED:
        return NGHTTP2_ERR_DEFERRED;
    case MK__H2_READ_FULL:
        return NGHTTP2_ERR_PAUSE;
    case MK__H2_READ_FAILED:
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    case MK__H2_READ_LAST:
        if (end_body(session, source->ptr, flags) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        break;
    case MK__H2_READ_MORE:
        break;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    return (ssize_t)n;
}

static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t length,
                     nghttp2_data_source *source, void *ctx)
{
    (void)session, (void)frame, (void)source;
    mk__h2_send_put_frame_head(ctx, head, length);
    return 0;
}

/* ── calls of send.c and flood.c ── */

void mk__h2_receive(struct mk__h2 *h2, struct mk_str in)
{
    assert(!h2->receiving);
    h2->receiving = true;
    ssize_t n = nghttp2_session_mem_recv(get_session(h2), (const uint8_t *)in.p, in.len);
    h2->receiving = false;
    if (mk__h2_is_terminated(h2))
        nghttp2_session_terminate_session(get_session(h2), h2->error_code);
    if (n >= 0 || mk__h2_is_terminated(h2))
        return;
    mk_io_log(&h2->conn->sock.io, &h2->conn->handle.peer.address, MK_LOG_DEBUG, "closing connection %d: HTTP/2: %s",
              h2->conn->event.fd, nghttp2_strerror((int)n));
    if (n == NGHTTP2_ERR_FLOODED)
        mk__h2_flood_terminate(h2, MK__H2_FLOOD_QUEUED_ACKS, h2->acks_max);
    mk__h2_terminate(h2, MK__H2_ERR_PROTOCOL);
}

int mk__h2_next_frame(struct mk__h2 *h2, struct mk_str *ret_frame)
{
    const uint8_t *frame;
    ssize_t n = nghttp2_session_mem_send(get_session(h2), &frame);
    *ret_frame = mk_str((const char *)frame, n > 0 ? (size_t)n : 0);
    return n < 0 ? -EIO : 0;
}

bool mk__h2_wants_io(const struct mk__h2 *h2)
{
    return nghttp2_session_want_read(get_session(h2)) || nghttp2_session_want_write(get_session(h2));
}

int32_t mk__h2_remote_window(const struct mk__h2 *h2, int32_t id)
{
    return id ? nghttp2_session_get_stream_remote_window_size(get_session(h2), id)
              : nghttp2_session_get_remote_window_size(get_session(h2));
}

void mk__h2_resume_data(struct mk__h2_stream *s)
{
    nghttp2_session_resume_data(get_session(s->h2), s->id);
}

void mk__h2_terminate(struct mk__h2 *h2, enum mk__h2_error error)
{
    if (mk__h2_is_terminated(h2))
        return;
    h2->shutdown = MK__H2_SHUTDOWN_TERMINATED;
    h2->error_code = error;
    if (!h2->receiving) /* nghttp2 1.52 fails an assertion if this is called while it processes input */
        nghttp2_session_terminate_session(get_session(h2), h2->error_code);
}

void mk__h2_submit_shutdown_notice(struct mk__h2 *h2)
{
    if (h2->shutdown != MK__H2_SHUTDOWN_NONE)
        return;
    h2->shutdown = MK__H2_SHUTDOWN_NOTICE;
    nghttp2_submit_shutdown_notice(get_session(h2));
}

void mk__h2_submit_goaway(struct mk__h2 *h2)
{
    if (h2->shutdown >= MK__H2_SHUTDOWN_GOAWAY)
        return;
    h2->shutdown = MK__H2_SHUTDOWN_GOAWAY;
    nghttp2_submit_goaway(get_session(h2), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(get_session(h2)),
                          NGHTTP2_NO_ERROR, NULL, 0);
}

/* ── calls of stream.c and response.c ── */

void mk__h2_consume(struct mk__h2_stream *s, size_t bytes)
{
    assert(s->h2->session);
    if (bytes)
        nghttp2_session_consume(get_session(s->h2), s->id, bytes);
}

void mk__h2_reset_stream(struct mk__h2_stream *s, bool failed)
{
    s->reset = true;
    nghttp2_submit_rst_stream(get_session(s->h2), NGHTTP2_FLAG_NONE, s->id,
                              failed ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_NO_ERROR);
}

int mk__h2_submit_head(struct mk__h2_stream *s, const struct mk__interim *interim)
{
    MK_UNINITIALIZED struct mk__h2_headers fields;
    MK_UNINITIALIZED nghttp2_nv nv[MK__H2_HEADERS_MAX];
    if (interim)
        mk__h2_response_interim(interim, &fields);
    else
        mk__h2_response_headers(s, &fields);
    unsigned n = fill_nv(&fields, nv);
    if (interim)
        return nghttp2_submit_headers(get_session(s->h2), NGHTTP2_FLAG_NONE, s->id, NULL, nv, n, NULL) ? -ENOMEM : 0;
    nghttp2_data_provider body = {.source.ptr = s, .read_callback = read_body};
    return nghttp2_submit_response(get_session(s->h2), s->id, nv, n, s->has_body ? &body : NULL) ? -ENOMEM : 0;
}

/* ── opening and closing ── */

static int submit_settings(struct mk__h2 *h2)
{
    const struct mk__http_settings *settings = mk__h2_http(h2)->settings;
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)settings->h2->streams_max},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, settings->head.head_bytes_max},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
    };
    int err = nghttp2_submit_settings(get_session(h2), NGHTTP2_FLAG_NONE, entries, MK_COUNT_OF(entries));
    if (err == 0)
        err = nghttp2_session_set_local_window_size(get_session(h2), NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW_BYTES);
    return err ? -ENOMEM : 0;
}

static nghttp2_session_callbacks *make_callbacks(void)
{
    nghttp2_session_callbacks *cb;
    if (nghttp2_session_callbacks_new(&cb) != 0)
        return NULL;
    nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_frame_not_sent);
    nghttp2_session_callbacks_set_send_data_callback(cb, send_data);
    nghttp2_session_callbacks_set_on_extension_chunk_recv_callback(cb, on_priority_update_chunk);
    nghttp2_session_callbacks_set_unpack_extension_callback(cb, unpack_priority_update);
    return cb;
}

static nghttp2_option *make_options(void)
{
    nghttp2_option *o;
    if (nghttp2_option_new(&o) != 0)
        return NULL;
    nghttp2_option_set_no_auto_window_update(o, 1);
    /* flood.c counts these, with the current settings and a log line. */
    nghttp2_option_set_max_settings(o, SIZE_MAX);
    nghttp2_option_set_max_continuations(o, SIZE_MAX);
    nghttp2_option_set_stream_reset_rate_limit(o, UINT64_MAX, UINT64_MAX);
    nghttp2_option_set_user_recv_extension_type(o, MK__H2_FRAME_PRIORITY_UPDATE);
    return o;
}

static int open_shared(struct mk__context *http)
{
    if (*mk__h2_shared_slot(http))
        return 0;
    struct mk__h2_shared *shared = mk__h2_alloc_shared(http);
    if (!shared)
        return -ENOMEM;
    shared->callbacks = make_callbacks();
    shared->options = make_options();
    if (shared->callbacks && shared->options)
        return 0;
    mk__h2_release_shared(http);
    return -ENOMEM;
}

void mk__h2_release_shared(struct mk__context *http)
{
    struct mk__h2_shared *shared = *mk__h2_shared_slot(http);
    if (!shared)
        return;
    mk__h2_flood_log_totals(http);
    nghttp2_session_callbacks_del(shared->callbacks);
    nghttp2_option_del(shared->options);
    mk__h2_alloc_free_shared(http);
}

int mk__h2_open(struct mk__conn *c)
{
    struct mk__context *http = c->http;
    struct mk__h2 *h2 = open_shared(http) == 0 ? mk_account_alloc(http->account, sizeof(*h2)) : NULL;
    if (!h2)
        return -ENOMEM;
    struct mk__h2_shared *shared = *mk__h2_shared_slot(http);
    nghttp2_mem heap = {http->account, mk__h2_alloc, mk__h2_alloc_free, mk__h2_alloc_zeroed, mk__h2_alloc_resize};
    nghttp2_session *session;
    *h2 = (struct mk__h2){.conn = c,
                          .shared = shared,
                          .settings_version = http->settings_version,
                          .initial_settings = *http->settings->h2,
                          .batch = MK__H2_FRAME_BYTES};
    mk_list_init(&h2->streams);
    mk_list_init(&h2->woken);
    mk_list_init(&h2->changed);
    mk_timer_init(&h2->grace_timer, mk__h2_send_on_grace_timer);
    mk__h2_scheduler_init(&h2->scheduler);
    h2->acks_max = mk__h2_flood_acks_max(h2);
    nghttp2_option_set_max_outbound_ack(shared->options, h2->acks_max);
    if (nghttp2_session_server_new3(&session, shared->callbacks, h2, shared->options, &heap) != 0) {
        mk_account_free(http->account, h2, sizeof(*h2));
        return -ENOMEM;
    }
    h2->session = session;
    c->proto_data = h2;
    return submit_settings(h2);
}

void mk__h2_close(struct mk__conn *c)
{
    struct mk__h2 *h2 = c->proto_data;
    if (!h2) /* it has ended before its connection */
        return;
    mk__h2_alloc_put_head_buf(h2);
    mk_timer_cancel(&h2->grace_timer);
    while (!mk_list_empty(&h2->streams)) {
        struct mk__h2_stream *s = MK_LIST_FIRST(&h2->streams, struct mk__h2_stream, link);
        nghttp2_session_set_stream_user_data(get_session(h2), s->id, NULL);
        mk__h2_stream_free(s);
    }
    nghttp2_session_del(get_session(h2));
    mk_account_free(c->http->account, h2, sizeof(*h2));
    c->proto_data = NULL;
}

const char *mk__h2_library_version(void)
{
    return nghttp2_version(0)->version_str;
}
