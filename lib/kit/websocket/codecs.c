// SPDX-License-Identifier: Apache-2.0
/*
 * permessage-deflate for the WebSockets of a worker. Without context takeover the compressors belong to the worker, and
 * a decompressor is lent to a WebSocket while a message arrives. With it a WebSocket has its own, and gives up most of
 * their memory when it was not used for a while.
 */
#include "ws.h"

#include <errno.h>

enum { WINDOW_BITS = 12, LEVEL = 3, DEFLATE_BYTES_MIN = 64, OUTPUT_KEPT_MAX = 64 * 1024 };

/* Returns the memory level of zlib that suits a window. */
static uint8_t get_memory_level(unsigned bits)
{
    return (uint8_t)(bits - 7);
}

/* ── compressing ── */

static unsigned get_bits(const struct mk_ws *ws)
{
    unsigned bits = ws->settings->window_bits ? ws->settings->window_bits : WINDOW_BITS;
    return bits < ws->send_bits ? bits : ws->send_bits;
}

static uint8_t get_level(const struct mk_ws *ws)
{
    return ws->settings->level ? ws->settings->level : LEVEL;
}

static void init_deflater(struct mk__ws_deflater *d, const struct mk_ws *ws, bool no_context)
{
    unsigned bits = get_bits(ws);
    mk__ws_deflater_init(d, ws->worker->account, bits, no_context);
    d->level = get_level(ws);
    d->memory_level = get_memory_level(bits);
}

/* Returns the worker's compressor for this WebSocket, or NULL without memory. */
static struct mk__ws_deflater *find_shared(struct mk_ws *ws)
{
    struct mk__ws_codecs *codecs = &ws->worker->codecs;
    for (struct mk__ws_shared_deflater *s = codecs->deflaters; s; s = s->next)
        if (s->deflater.bits == get_bits(ws) && s->deflater.level == get_level(ws))
            return &s->deflater;
    struct mk__ws_shared_deflater *s = mk_account_alloc(ws->worker->account, sizeof(*s));
    if (!s)
        return NULL;
    init_deflater(&s->deflater, ws, true);
    s->next = codecs->deflaters;
    codecs->deflaters = s;
    return &s->deflater;
}

static struct mk__ws_deflater *find_own(struct mk_ws *ws)
{
    if (!ws->deflater) {
        ws->deflater = mk_account_alloc(ws->worker->account, sizeof(*ws->deflater));
        if (ws->deflater)
            init_deflater(ws->deflater, ws, false);
    }
    return ws->deflater;
}

/* Compresses into the worker's buffer. Returns 0 or -errno. */
static int compress_message(struct mk_ws *ws, const void *data, size_t len)
{
    struct mk_buf *out = &ws->worker->codecs.output;
    struct mk__ws_deflater *d = ws->send_context ? find_own(ws) : find_shared(ws);
    if (!out->max)
        mk_buf_init(out, SIZE_MAX / 2);
    out->len = 0;
    ws->used_codecs = true;
    return d ? mk__ws_deflater_compress(d, data, len, out) : -ENOMEM;
}

int mk__ws_send_deflated(struct mk_ws *ws, uint8_t opcode, const void *data, size_t len)
{
    struct mk_buf *out = &ws->worker->codecs.output;
    size_t min = ws->settings->deflate_bytes_min;
    if (len < (min ? min : DEFLATE_BYTES_MIN) || compress_message(ws, data, len) < 0 ||
        (!ws->send_context && out->len >= len))
        return mk__ws_send_frame(ws, opcode, false, data, len);
    int err = mk__ws_send_frame(ws, opcode, true, out->data, out->len);
    if (err < 0)
        mk__ws_reset_deflater(ws); /* the peer does not get what the next message would refer to */
    if (out->size > OUTPUT_KEPT_MAX || out->err)
        mk_buf_release(out);
    return err;
}

void mk__ws_reset_deflater(struct mk_ws *ws)
{
    if (ws->deflater)
        mk__ws_deflater_release(ws->deflater);
}

/* ── messages for many ── */

static struct mk__ws_block *make_block(struct mk__ws_deflater *d, uint8_t opcode, const void *data, size_t len)
{
    struct mk__ws_block *block = NULL;
    struct mk_buf out;
    mk_buf_init(&out, SIZE_MAX / 2);
    if (mk__ws_deflater_compress(d, data, len, &out) == 0 && out.len < len)
        block = mk__ws_block_new(NULL, opcode, true, false, out.data, out.len);
    mk_buf_release(&out);
    return block;
}

static void init_group_deflater(struct mk__ws_deflater *d)
{
    mk__ws_deflater_init(d, NULL, MK__WS_SHARED_BITS, true);
    d->level = LEVEL;
    d->memory_level = get_memory_level(MK__WS_SHARED_BITS);
}

struct mk__ws_block *mk__ws_deflate_shared(struct mk_ws_group *group, uint8_t opcode, const void *data, size_t len)
{
    struct mk__ws_deflater own;
    if (len < DEFLATE_BYTES_MIN)
        return NULL;
    if (atomic_flag_test_and_set_explicit(&group->deflater_used, memory_order_acquire)) {
        init_group_deflater(&own); /* another thread has the group's */
        struct mk__ws_block *block = make_block(&own, opcode, data, len);
        mk__ws_deflater_release(&own);
        return block;
    }
    if (!group->deflater.bits)
        init_group_deflater(&group->deflater);
    struct mk__ws_block *block = make_block(&group->deflater, opcode, data, len);
    atomic_flag_clear_explicit(&group->deflater_used, memory_order_release);
    return block;
}

/* ── decompressing ── */

static void free_inflater(struct mk__ws_inflater *i, struct mk_account *account)
{
    mk__ws_inflater_release(i);
    mk_account_free(account, i, sizeof(*i));
}

static struct mk__ws_inflater *get_inflater(struct mk_ws *ws)
{
    struct mk__ws_codecs *codecs = &ws->worker->codecs;
    struct mk__ws_inflater *i = ws->receive_context ? NULL : codecs->spare;
    if (i && i->bits == ws->receive_bits) {
        codecs->spare = NULL;
        i->message_max = mk__ws_get_message_max(ws);
        return i;
    }
    i = mk_account_alloc(ws->worker->account, sizeof(*i));
    if (i)
        mk__ws_inflater_init(i, ws->worker->account, ws->receive_bits, !ws->receive_context,
                             mk__ws_get_message_max(ws));
    return i;
}

/* Gives a lent inflater back, after a message. */
static void return_inflater(struct mk_ws *ws)
{
    struct mk__ws_codecs *codecs = &ws->worker->codecs;
    if (ws->receive_context)
        return;
    if (codecs->spare)
        free_inflater(codecs->spare, ws->worker->account);
    codecs->spare = ws->inflater;
    ws->inflater = NULL;
}

int mk__ws_inflate(struct mk_ws *ws, struct mk__ws_inflate_data *data, bool last, const char **ret_reason)
{
    if (!ws->inflater)
        ws->inflater = get_inflater(ws);
    *ret_reason = "no memory";
    if (!ws->inflater)
        return -MK_WS_INTERNAL_ERROR;
    ws->used_codecs = true;
    int r = mk__ws_inflater_feed(ws->inflater, data, last, ret_reason);
    if (r == 0 && last)
        return_inflater(ws);
    return r;
}

/* ── memory ── */

void mk__ws_shrink_codecs(struct mk_ws *ws)
{
    if (!ws->used_codecs) {
        mk__ws_reset_deflater(ws);
        if (ws->inflater)
            mk__ws_inflater_shrink(ws->inflater);
    }
    ws->used_codecs = false;
}

void mk__ws_free_codecs(struct mk_ws *ws)
{
    struct mk_account *account = ws->worker->account;
    if (ws->deflater) {
        mk__ws_deflater_release(ws->deflater);
        mk_account_free(account, ws->deflater, sizeof(*ws->deflater));
    }
    if (ws->inflater)
        free_inflater(ws->inflater, account);
    ws->deflater = NULL;
    ws->inflater = NULL;
}

void mk__ws_codecs_release(struct mk__ws_codecs *codecs, struct mk_account *account)
{
    for (struct mk__ws_shared_deflater *s = codecs->deflaters, *next; s; s = next) {
        next = s->next;
        mk__ws_deflater_release(&s->deflater);
        mk_account_free(account, s, sizeof(*s));
    }
    if (codecs->spare)
        free_inflater(codecs->spare, account);
    mk_buf_release(&codecs->output);
    *codecs = (struct mk__ws_codecs){0};
}

void mk__ws_codecs_forget_account(struct mk__ws_codecs *codecs)
{
    for (struct mk__ws_shared_deflater *s = codecs->deflaters; s; s = s->next)
        mk__ws_deflater_forget_account(&s->deflater);
    if (codecs->spare)
        mk__ws_inflater_forget_account(codecs->spare);
}
