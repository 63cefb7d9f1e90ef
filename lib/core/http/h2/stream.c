// SPDX-License-Identifier: Apache-2.0
/*
 * An exchange on an HTTP/2 stream (http/h2/h2.h): its head, its request body, its response. It does not use frames;
 * timeout.c finds its state.
 */
#include "http/h2/h2.h"

#include "base/arena.h"
#include "http/h2/request_head.h"
#include "http/h2/response.h"
#include "http/request_extra.h"
#include "http/h2/tunnel.h"
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>

/* ── body chunks that the handler has not taken; the windows limit their number ── */

struct mk__h2_body_chunk {
    struct mk__h2_body_chunk *next;
    uint32_t size, len, at;
    char bytes[];
};

/* So that small frames share a chunk. */
enum { CHUNK_BYTES_MIN = MK__ARENA_PIECE_BYTES - sizeof(struct mk__h2_body_chunk) };

static void free_chunk(struct mk__h2_stream *s, struct mk__h2_body_chunk *p)
{
    mk__arena_free_piece(mk__h2_http(s->h2)->account, p, sizeof(*p) + p->size);
}

static void drop_chunk(struct mk__h2_stream *s)
{
    struct mk__h2_body_chunk *p = s->body_first;
    assert(p && p->at <= p->len && p->len <= p->size);
    s->body_first = p->next;
    if (!s->body_first)
        s->body_last = NULL;
    mk__h2_control_consume(s->h2, s, p->len - p->at);
    free_chunk(s, p);
}

static int add_chunk(struct mk__h2_stream *s, struct mk_str bytes)
{
    struct mk__h2_body_chunk *p = s->body_last;
    if (!p || bytes.len > p->size - p->len) {
        uint32_t size = bytes.len < CHUNK_BYTES_MIN ? CHUNK_BYTES_MIN : (uint32_t)bytes.len;
        p = mk__arena_alloc_piece(mk__h2_http(s->h2)->account, sizeof(*p) + size);
        if (!p)
            return -ENOMEM;
        *p = (struct mk__h2_body_chunk){.size = size};
        *(s->body_last ? &s->body_last->next : &s->body_first) = p;
        s->body_last = p;
    }
    assert(bytes.len <= p->size - p->len);
    memcpy(p->bytes + p->len, bytes.p, bytes.len);
    p->len += (uint32_t)bytes.len;
    return 0;
}

size_t mk__h2_stream_read(struct mk__h2_stream *s, void *to, size_t size)
{
    struct mk__h2_body_chunk *p = s->body_first;
    if (!p)
        return 0;
    size_t n = p->len - p->at < size ? p->len - p->at : size;
    memcpy(to, p->bytes + p->at, n);
    p->at += (uint32_t)n;
    mk__h2_control_consume(s->h2, s, n);
    if (p->at == p->len)
        drop_chunk(s);
    return n;
}

/* ── the exchange ── */

static void wake_stream(struct mk_request *req)
{
    struct mk__h2_stream *s = req->connection;
    mk__h2_timeout_note(s);
    if (mk_list_empty(&s->woken))
        mk_list_add(&s->h2->woken, &s->woken);
    if (!s->h2->conn->running)
        mk_task_schedule(req->http->loop, &s->h2->conn->task);
}

static void restart_timer(struct mk_request *req)
{
    struct mk__h2_stream *s = req->connection;
    s->armed_bytes = UINT64_MAX;
    wake_stream(req);
}

static const struct mk_io *get_io(const struct mk_request *req)
{
    const struct mk__h2_stream *s = req->connection;
    return &s->h2->conn->sock.io;
}

static struct mk_connection *get_handle(const struct mk_request *req)
{
    const struct mk__h2_stream *s = req->connection;
    return &s->h2->conn->handle;
}

static void schedule_again(struct mk_request *req)
{
    struct mk__h2_stream *s = req->connection;
    wake_stream(req);
    mk_task_schedule(req->http->loop, &s->h2->conn->task);
}

static const struct mk__request_ops request_ops = {
    .major = 2,
    .wake = wake_stream,
    .io = get_io,
    .read = mk__h2_tunnel_read,
    .write = mk__h2_tunnel_write,
    .shutdown = mk__h2_tunnel_shutdown,
    .wake_tunnel = schedule_again,
    .restart_timer = restart_timer,
    .conn = get_handle,
};

struct mk__h2_stream *mk__h2_stream_new(struct mk__h2 *h2, int32_t id)
{
    struct mk__h2_stream *s = mk__pool_get(&h2->shared->streams);
    if (!s)
        return NULL;
    *s = (struct mk__h2_stream){.h2 = h2,
                                .window = h2->stream_window,
                                .length_left = -1,
                                .in = {.size = MK__H2_STREAM_WINDOW_BYTES}};
    mk_list_init(&s->woken);
    mk_list_init(&s->changed);
    mk_list_init(&s->heads);
    mk_list_init(&s->ended);
    mk__h2_streams_add(&h2->table, &s->node, id);
    mk_list_add(&h2->streams, &s->link);
    mk__h2_priority_init(&s->priority, id);
    mk__h2_timeout_init(s);
    return s;
}

/* Leaves the lists last: a handler or hook may wake the request until it is freed. */
static void finish_exchange(struct mk__h2_stream *s)
{
    assert(s->req && s->req->connection == s);
    mk_timer_cancel(&s->timer);
    s->armed = false;
    mk__request_finish(s->req);
    s->req = NULL;
    mk__h2_scheduler_remove(&s->priority);
    mk_list_del(&s->heads);
    mk_list_del(&s->woken);
    mk__h2_tunnel_free(s);
}

void mk__h2_stream_free(struct mk__h2_stream *s)
{
    assert(s != s->h2->head_stream);
    s->recv_ended = true; /* its window is not needed any more */
    if (s->req)
        finish_exchange(s);
    mk_list_del(&s->changed);
    mk_list_del(&s->ended);
    mk_timer_cancel(&s->timer);
    while (s->body_first)
        drop_chunk(s);
    mk__h2_timeout_enter(s, MK__H2_STREAM_CLOSED);
    mk_list_del(&s->link);
    mk__h2_streams_remove(&s->h2->table, &s->node);
    mk__pool_put(&s->h2->shared->streams, s);
}

void mk__h2_stream_end(struct mk__h2_stream *s)
{
    if (mk_list_empty(&s->ended))
        mk_list_add(&s->h2->ended, &s->ended);
}

void mk__h2_stream_free_ended(struct mk__h2 *h2)
{
    while (!mk_list_empty(&h2->ended))
        mk__h2_stream_free(MK_LIST_FIRST(&h2->ended, struct mk__h2_stream, ended));
}

void mk__h2_stream_complete(struct mk__h2_stream *s)
{
    struct mk_request *req = s->req;
    assert(req);
    s->sent_end = true;
    if (req->tunnel && req->response_state == MK__RESPONSE_OPEN && !s->recv_ended && s->fin < MK__H2_FIN_SENT) {
        s->fin = MK__H2_FIN_SENT;
        s->has_body = false;
        return;
    }
    req->output_state = MK__OUTPUT_COMPLETE;
    s->discard_left = req->limits->discard_bytes_max; /* of the host, whose limits end with the exchange */
    finish_exchange(s);
    while (s->body_first)
        drop_chunk(s);
    if (s->recv_ended)
        mk__h2_stream_end(s);
    else
        mk__h2_timeout_enter(s, MK__H2_STREAM_LINGER);
}

/* Discards body bytes after the response; resets the stream after too many. RFC 9113 section 8.1. */
static void discard_body(struct mk__h2_stream *s, size_t bytes)
{
    if (bytes > s->discard_left && !s->reset)
        mk__h2_control_reset_stream(s, MK__H2_ERR_NO_ERROR);
    s->discard_left -= bytes < s->discard_left ? bytes : s->discard_left;
}

/* ── the head ── */

/* Clears the head when there is no memory for a copy: no span may point to freed bytes. */
static int clear_head(struct mk_request *req)
{
    req->parse = (struct mk_head_parser){0};
    req->base = "";
    req->fields = NULL;
    return -503;
}

/* Copies the head, and finds out what it means. Returns 0 or a negative status. */
static int read_head(struct mk_request *req, const struct mk__h2_request_head *head)
{
    req->parse = head->parse;
    req->base = head->data;
    req->fields = head->fields;
    if (mk__request_copy_head(req) < 0)
        return clear_head(req);
    return mk__request_head_read(&req->parse, req->fields, req->base, &req->http->host_memo, &req->head);
}

/* The valid part of a head that is above a limit stays readable, for hooks and logs. */
static void begin_exchange(struct mk__h2_stream *s, struct mk_request *req, const struct mk__h2_request_head *head,
                           int status)
{
    int err = 0;
    req->base = "";
    if (head->parse.phase == MK__PARSE_DONE)
        err = -read_head(req, head);
    else
        req->parse.method = head->parse.method; /* a response to HEAD has no body */
    if (!status)
        status = err;
    if (!status && head->has_priority && !s->priority.updated)
        mk__h2_priority_parse(&s->h2->scheduler, &s->priority, mk_request_header_by_name(req, MK_STR("priority")));
    mk__request_begin(req, status, s->recv_ended);
}

void mk__h2_stream_begin(struct mk__h2_stream *s, const struct mk__h2_request_head *head, int status)
{
    struct mk__context *http = mk__h2_http(s->h2);
    struct mk_request *req = mk__request_new(http, &request_ops, s);
    if (!req) {
        mk__h2_control_reset_stream(s, MK__H2_ERR_INTERNAL);
        return;
    }
    assert(!s->req && s->state == MK__H2_STREAM_READ_HEAD);
    s->h2->conn->requests++;
    s->req = req;
    req->began_us = http->settings->times ? mk_loop_now_us(http->loop) : 0;
    begin_exchange(s, req, head, status);
    wake_stream(req);
}

/* ── the body ── */

static void pass_body(struct mk__h2_stream *s, struct mk_str chunk)
{
    mk__request_deliver_body(s->req, chunk, s->recv_ended && !s->body_first);
}

/* Returns whether the stream is a tunnel or may become one. */
static bool can_tunnel(const struct mk__h2_stream *s)
{
    const struct mk_request *req = s->req;
    return req->tunnel ||
           (req->output_state < MK__OUTPUT_HEAD && (s->extended_connect || req->parse.method == MK_CONNECT));
}

/* Passes received chunks to the handler, as long as it takes them. */
static void deliver_body(struct mk__h2_stream *s)
{
    while (s->body_first && mk__request_wants_body(s->req)) {
        struct mk__h2_body_chunk *p = s->body_first;
        struct mk_str chunk = mk_str(p->bytes + p->at, p->len - p->at);
        s->body_first = p->next;
        if (!s->body_first)
            s->body_last = NULL;
        pass_body(s, chunk);
        mk__h2_control_consume(s->h2, s, chunk.len);
        free_chunk(s, p);
    }
    if (s->recv_ended && !s->body_first && mk__request_wants_body(s->req))
        mk__request_deliver_body(s->req, MK_STR(""), true);
    while (s->body_first && s->req->body_state >= MK__BODY_STATE_DONE && !can_tunnel(s))
        drop_chunk(s);
}

void mk__h2_stream_data(struct mk__h2_stream *s, struct mk_str chunk)
{
    struct mk_request *req = s->req;
    assert(!s->recv_ended);
    bool direct = req && !s->body_first && mk__request_wants_body(req);
    if (!req)
        discard_body(s, chunk.len);
    if (!req || req->body_state == MK__BODY_STATE_FAILED ||
        (req->body_state == MK__BODY_STATE_DONE && !can_tunnel(s))) {
        mk__h2_control_consume(s->h2, s, chunk.len);
    } else if (direct) {
        pass_body(s, chunk);
        mk__h2_control_consume(s->h2, s, chunk.len);
    } else if (add_chunk(s, chunk) < 0) {
        mk__h2_control_reset_stream(s, MK__H2_ERR_INTERNAL);
        mk__h2_control_consume(s->h2, NULL, chunk.len);
        return;
    }
    if (req)
        wake_stream(req);
}

void mk__h2_stream_trailer(struct mk__h2_stream *s, struct mk_str name, struct mk_str value)
{
    if (s->req)
        mk__trailers_add(s->req, name, value);
}

void mk__h2_stream_data_end(struct mk__h2_stream *s)
{
    if (s->length_left > 0)
        mk__h2_control_reset_stream(s, MK__H2_ERR_PROTOCOL);
    if (s->reset)
        return;
    assert(!s->recv_ended);
    s->recv_ended = true;
    if (s->req)
        wake_stream(s->req);
    if (s->req && s->fin == MK__H2_FIN_SENT) { /* both sides have ended it: the tunnel reads what has arrived */
        mk__h2_tunnel_step(s);
        if (s->req && s->req->response_state != MK__RESPONSE_FAILED)
            mk__h2_stream_complete(s);
    }
    if (s->sent_end)
        mk__h2_stream_end(s);
}

/* ── steps ── */

static void step_interims(struct mk__h2_stream *s)
{
    if (mk__request_needs_continue(s->req))
        mk__interim_add(s->req, 100, NULL, 0);
    if (mk__interim_first(s->req))
        mk__h2_output_add_head(s);
}

static void step_response(struct mk__h2_stream *s)
{
    struct mk_request *req = s->req;
    if (req->response_state == MK__RESPONSE_FAILED) {
        mk__h2_control_reset_stream(s, MK__H2_ERR_INTERNAL);
        return;
    }
    if (req->output_state < MK__OUTPUT_HEAD && (req->response_state == MK__RESPONSE_ENDED || req->first || req->tunnel))
        mk__h2_response_begin(s);
    if (req->output_state >= MK__OUTPUT_HEAD && s->has_body)
        mk__h2_scheduler_add(&s->h2->scheduler, &s->priority);
}

void mk__h2_stream_step(struct mk__h2_stream *s)
{
    mk_list_del(&s->woken);
    if (!s->req || s->reset)
        return;
    if (!s->req->tunnel)
        deliver_body(s);
    if (mk__h2_stream_states[s->state].limits_rate && s->armed)
        mk__request_check_rate(s->req);
    step_interims(s);
    step_response(s);
    if (s->req->tunnel && s->req->output_state >= MK__OUTPUT_HEAD && !s->reset)
        mk__h2_tunnel_step(s);
}
