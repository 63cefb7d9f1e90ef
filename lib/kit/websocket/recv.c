// SPDX-License-Identifier: Apache-2.0
/*
 * Input. Bytes are read into a buffer of the worker, and unmasked there. A message that is complete in it is passed on
 * in place; of others the pieces are collected, compressed ones by the inflater.
 *
 *     stream ─► worker's input ─► frame head ─► payload ─┬─► on_message             complete, not compressed
 *                                                        ├─► message ─► on_message  in pieces
 *                                                        └─► control frame
 */
#include "ws.h"

#include <errno.h>

enum { READS_MAX = 4, MESSAGE_BYTES_FIRST = 256 };

/* ── the buffer of a message ── */

static size_t message_bytes(size_t size)
{
    return sizeof(struct mk__ws_message) + size;
}

static void free_message(struct mk_ws *ws)
{
    if (ws->message)
        mk_account_free(ws->worker->account, ws->message, message_bytes(ws->message->size));
    ws->message = NULL;
}

/* Makes room for `n` more bytes and a NUL. Returns 0 or -ENOMEM. */
static int reserve_bytes(struct mk_ws *ws, size_t n)
{
    struct mk__ws_message *old = ws->message;
    size_t len = old ? old->len : 0, need = len + n + 1, size = old ? old->size : MESSAGE_BYTES_FIRST;
    if (old && need <= size)
        return 0;
    while (size < need)
        size *= 2;
    struct mk__ws_message *message = mk_account_alloc(ws->worker->account, message_bytes(size));
    if (!message)
        return -ENOMEM;
    *message = (struct mk__ws_message){.size = size};
    if (old) {
        message->len = len;
        message->utf8 = old->utf8;
        memcpy(message->bytes, old->bytes, len);
        free_message(ws);
    }
    ws->message = message;
    return 0;
}

static void free_saved(struct mk_ws *ws)
{
    if (ws->saved)
        mk_account_free(ws->worker->account, ws->saved, sizeof(*ws->saved) + ws->saved->len);
    ws->saved = NULL;
}

/* Keeps input: the beginning of a frame until more of it arrives, or what a WebSocket that was paused does not take. */
static void save_input(struct mk_ws *ws, const char *p, size_t n)
{
    assert(!ws->saved && n <= MK__WS_INPUT_BYTES);
    ws->saved = mk_account_alloc(ws->worker->account, sizeof(*ws->saved) + n);
    if (!ws->saved) {
        mk__ws_fail(ws, MK_WS_INTERNAL_ERROR, "no memory");
        return;
    }
    ws->saved->len = (uint32_t)n;
    ws->saved->was_paused = ws->is_paused;
    memcpy(ws->saved->bytes, p, n);
}

void mk__ws_free_input(struct mk_ws *ws)
{
    free_message(ws);
    free_saved(ws);
}

/* ── messages ── */

static bool is_text(const struct mk_ws *ws)
{
    return ws->sequence.opcode == MK__WS_OP_TEXT;
}

/* Calls on_message with bytes after which one byte is ours. */
static void deliver_data(struct mk_ws *ws, char *data, size_t len)
{
    const struct mk_ws_handlers *handlers = &ws->settings->handlers;
    enum mk_ws_opcode opcode = is_text(ws) ? MK_WS_TEXT : MK_WS_BINARY;
    if (ws->state != MK__WS_OPEN || !handlers->on_message)
        return;
    char next = data[len];
    data[len] = '\0';
    handlers->on_message(ws, opcode, data, len, ws->ctx);
    data[len] = next;
}

static void deliver_in_place(struct mk_ws *ws, char *data, size_t len)
{
    if (is_text(ws) && !mk__utf8_is_valid(data, len))
        mk__ws_fail(ws, MK_WS_INVALID_DATA, "the text is not UTF-8");
    else
        deliver_data(ws, data, len);
}

static void deliver_collected(struct mk_ws *ws)
{
    struct mk__ws_message *message = ws->message;
    if (is_text(ws) && !mk__utf8_complete(&message->utf8)) {
        mk__ws_fail(ws, MK_WS_INVALID_DATA, "the text is not UTF-8");
        return;
    }
    ws->message = NULL; /* the handler may end the WebSocket */
    deliver_data(ws, message->bytes, message->len);
    mk_account_free(ws->worker->account, message, message_bytes(message->size));
}

/* Returns false if the WebSocket was failed. */
static bool check_text(struct mk_ws *ws, size_t from)
{
    struct mk__ws_message *message = ws->message;
    if (!is_text(ws) || mk__utf8_feed(&message->utf8, message->bytes + from, message->len - from))
        return true;
    mk__ws_fail(ws, MK_WS_INVALID_DATA, "the text is not UTF-8");
    return false;
}

static bool collect_plain(struct mk_ws *ws, const char *p, size_t n)
{
    if (reserve_bytes(ws, n) < 0) {
        mk__ws_fail(ws, MK_WS_INTERNAL_ERROR, "no memory");
        return false;
    }
    size_t from = ws->message->len;
    memcpy(ws->message->bytes + from, p, n);
    ws->message->len += n;
    return check_text(ws, from);
}

/* Makes room for what the inflater makes next. Returns 0 or -ENOMEM. */
static int reserve_output(struct mk_ws *ws)
{
    struct mk__ws_message *message = ws->message;
    bool has_room = message && message->size - 1 > message->len;
    return has_room ? 0 : reserve_bytes(ws, message ? message->size : 1);
}

/* Appends what the inflater makes of a piece; `last`: of the message. */
static bool collect_deflated(struct mk_ws *ws, const char *p, size_t n, bool last)
{
    struct mk__ws_inflate_data data = {.in = (const uint8_t *)p, .in_len = n};
    int r;
    do {
        if (reserve_output(ws) < 0) {
            mk__ws_fail(ws, MK_WS_INTERNAL_ERROR, "no memory");
            return false;
        }
        struct mk__ws_message *message = ws->message;
        const char *reason = NULL;
        size_t from = message->len;
        data.out = (uint8_t *)message->bytes + from;
        data.out_len = message->size - 1 - from;
        r = mk__ws_inflate(ws, &data, last, &reason);
        message->len = message->size - 1 - data.out_len;
        if (r < 0) {
            mk__ws_fail(ws, (unsigned)-r, reason);
            return false;
        }
        if (!check_text(ws, from))
            return false;
    } while (r == MK_AGAIN);
    return true;
}

/* Takes a piece of a data frame; `end`: of the message. */
static void take_data(struct mk_ws *ws, char *p, size_t n, bool begins, bool end)
{
    if (ws->state != MK__WS_OPEN)
        return; /* what follows our close frame is of no use */
    if (ws->sequence.compressed) {
        if (!collect_deflated(ws, p, n, end))
            return;
    } else if (begins && end) {
        deliver_in_place(ws, p, n);
        return;
    } else if (!collect_plain(ws, p, n)) {
        return;
    }
    if (end)
        deliver_collected(ws);
}

/* ── control frames ── */

static void take_ping(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len)
{
    const struct mk_ws_handlers *handlers = &ws->settings->handlers;
    if (ws->state != MK__WS_OPEN)
        return;
    if (opcode == MK_WS_PING) /* a peer that does not take its pongs finds the queue full, and gets none */
        mk__ws_send_frame(ws, MK__WS_OP_PONG, false, data, len);
    if (handlers->on_ping)
        handlers->on_ping(ws, opcode, data, len, ws->ctx);
}

static void take_control(struct mk_ws *ws, char *data, size_t len)
{
    const char *reason = NULL;
    struct mk_str text;
    uint16_t code;
    if (ws->head.opcode != MK__WS_OP_CLOSE) {
        char next = data[len];
        data[len] = '\0';
        take_ping(ws, (enum mk_ws_opcode)ws->head.opcode, data, len);
        data[len] = next;
        return;
    }
    int err = mk__ws_close_parse(data, len, &code, &text, &reason);
    if (err < 0)
        mk__ws_fail(ws, (unsigned)-err, reason);
    else
        mk__ws_take_close(ws, code, text);
}

/* ── frames ── */

static bool is_reading(const struct mk_ws *ws)
{
    return ws->state <= MK__WS_CLOSING && !ws->is_failed;
}

static struct mk__ws_rules make_rules(const struct mk_ws *ws)
{
    size_t max = ws->settings->frame_bytes_max;
    return (struct mk__ws_rules){.masked = !ws->is_client,
                                 .rsv1 = ws->deflate,
                                 .frame_max = max ? max : mk__ws_get_message_max(ws)};
}

/* Checks the length of a message, as far as it is known by its frames. */
static bool is_too_long(const struct mk_ws *ws)
{
    size_t len = ws->message ? ws->message->len : 0;
    return !mk__ws_opcode_is_control(ws->head.opcode) && !ws->sequence.compressed &&
           ws->head.len > mk__ws_get_message_max(ws) - len;
}

/* Parses the head of a frame. Returns its size, or 0: it is incomplete, and was saved; or the WebSocket has failed. */
static size_t begin_frame(struct mk_ws *ws, const char *p, size_t n)
{
    struct mk__ws_rules rules = make_rules(ws);
    const char *reason = NULL;
    int size = mk__ws_head_parse(p, n, &rules, &ws->head, &reason);
    bool waits = size == 0 || (size > 0 && mk__ws_opcode_is_control(ws->head.opcode) &&
                               n - (size_t)size < ws->head.len); /* control frames are taken as a whole */
    if (waits) {
        save_input(ws, p, n);
        return 0;
    }
    int err = size < 0 ? size : mk__ws_sequence_step(&ws->sequence, &ws->head, &reason);
    if (err == 0 && is_too_long(ws)) {
        err = -MK_WS_TOO_BIG;
        reason = "the message is too long";
    }
    if (err < 0) {
        mk__ws_fail(ws, (unsigned)-err, reason);
        return 0;
    }
    ws->in_frame = true;
    ws->left = ws->head.len;
    return (size_t)size;
}

/* Takes what there is of the payload of the frame. Returns how many bytes these are. */
static size_t take_payload(struct mk_ws *ws, char *p, size_t n)
{
    const struct mk__ws_head *head = &ws->head;
    size_t piece = ws->left < n ? (size_t)ws->left : n;
    if (head->masked)
        mk__ws_mask(p, p, piece, head->key, (size_t)((head->len - ws->left) & 3));
    bool begins = ws->left == head->len && head->opcode != MK__WS_OP_CONTINUATION;
    ws->left -= piece;
    ws->in_frame = ws->left != 0;
    if (mk__ws_opcode_is_control(head->opcode))
        take_control(ws, p, piece);
    else
        take_data(ws, p, piece, begins, !ws->in_frame && head->fin);
    return piece;
}

/* Takes what was read; the byte after it is ours. */
static void take_input(struct mk_ws *ws, char *p, size_t n)
{
    while (n && is_reading(ws)) {
        if (!ws->in_frame) {
            size_t size = begin_frame(ws, p, n);
            if (!size)
                return;
            p += size;
            n -= size;
        }
        if (!n && ws->left)
            return;
        size_t piece = take_payload(ws, p, n);
        p += piece;
        n -= piece;
        if (ws->is_paused && n) {
            save_input(ws, p, n);
            return;
        }
    }
}

/* Puts what was saved before what is read next. Returns its length. */
static size_t restore_input(struct mk_ws *ws, char *to)
{
    size_t n = ws->saved ? ws->saved->len : 0;
    if (n)
        memcpy(to, ws->saved->bytes, n);
    free_saved(ws);
    return n;
}

/* Reads after `saved` bytes of the buffer, and takes all. */
static void read_more(struct mk_ws *ws, size_t saved)
{
    struct mk_ws_worker *w = ws->worker;
    ssize_t n = ws->ops->read(ws->stream, w->input + saved, MK__WS_INPUT_BYTES - saved);
    if (n > 0) {
        ws->received_ms = mk_loop_now_ms(w->loop);
        ws->has_pinged = false;
        take_input(ws, w->input, saved + (size_t)n);
        return;
    }
    ws->is_readable = false;
    if (n != -EAGAIN)
        mk__ws_take_end(ws); /* a peer that has gone is found by a write, if there is one */
    else if (saved)
        save_input(ws, w->input, saved);
}

void mk__ws_read(struct mk_ws *ws)
{
    for (unsigned i = 0; i < READS_MAX && is_reading(ws) && ws->is_readable && !ws->is_paused; i++) {
        bool was_paused = ws->saved && ws->saved->was_paused;
        size_t saved = restore_input(ws, ws->worker->input);
        if (was_paused)
            take_input(ws, ws->worker->input, saved);
        else
            read_more(ws, saved);
    }
}
