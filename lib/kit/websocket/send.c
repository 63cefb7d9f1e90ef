// SPDX-License-Identifier: Apache-2.0
/*
 * Output. A frame is written at once if nothing waits before it, and the rest of it goes to the queue:
 *
 *     mk_ws_send ─► frame ─┬─► worker's output buffer ─► stream      in mk_ws_run(): many frames, one write
 *                          ├─► stream
 *                          └─► block ─► queue ─► stream, when it can be written again
 */
#include "ws.h"

#include <errno.h>

enum {
    QUEUE_BLOCKS_MIN = 4,
    COPY_BYTES_MAX = 4096,
    SMALL_BYTES_MAX = 512, /* frames that share blocks in a queue */
    SHARED_BYTES = 2000,   /* of such a block */
};

/* ── blocks ── */

static uint32_t make_key(void)
{
    uint32_t key = 0;
    mk__ws_fill_random(&key, sizeof(key));
    return key;
}

/* Writes a frame, for which there is room. Returns its size. */
static size_t write_frame(uint8_t *to, const struct mk__ws_head *head, const void *data)
{
    size_t n = mk__ws_head_write(to, head);
    if (head->masked)
        mk__ws_mask(to + n, data, head->len, head->key, 0);
    else if (head->len)
        memcpy(to + n, data, head->len);
    return n + head->len;
}

static struct mk__ws_head make_head(uint8_t opcode, bool rsv1, bool masked, size_t len)
{
    return (struct mk__ws_head){
        .fin = true, .rsv1 = rsv1, .masked = masked, .opcode = opcode, .len = len, .key = masked ? make_key() : 0};
}

static struct mk__ws_block *alloc_block(struct mk_account *account, size_t size)
{
    struct mk__ws_block *block = mk_account_alloc(account, sizeof(*block) + size);
    if (!block)
        return NULL;
    atomic_init(&block->refs, 1);
    block->account = account;
    block->size = size;
    block->len = 0;
    return block;
}

struct mk__ws_block *mk__ws_block_new(struct mk_account *account, uint8_t opcode, bool rsv1, bool masked,
                                      const void *data, size_t len)
{
    struct mk__ws_head head = make_head(opcode, rsv1, masked, len);
    struct mk__ws_block *block = alloc_block(account, MK__WS_HEAD_BYTES_MAX + len);
    if (block)
        block->len = write_frame(block->bytes, &head, data);
    return block;
}

void mk__ws_block_put(struct mk__ws_block *block)
{
    if (atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) == 1)
        mk_account_free(block->account, block, sizeof(*block) + block->size);
}

/* ── the queue ── */

static size_t queue_bytes(uint32_t size)
{
    return sizeof(struct mk__ws_queue) + size * sizeof(struct mk__ws_block *);
}

size_t mk_ws_queued_bytes(const struct mk_ws *ws)
{
    size_t gathered = ws->worker->output_owner == ws ? ws->worker->output_len : 0;
    return gathered + (ws->queue ? ws->queue->bytes : 0);
}

static size_t get_queue_max(const struct mk_ws *ws)
{
    return ws->settings->queue_bytes_max ? ws->settings->queue_bytes_max : MK__WS_QUEUE_BYTES_MAX;
}

/* Makes room for one more block. Returns 0 or -ENOMEM. */
static int grow_queue(struct mk_ws *ws)
{
    struct mk__ws_queue *old = ws->queue;
    if (old && old->n < old->size)
        return 0;
    uint32_t size = old ? old->size * 2 : QUEUE_BLOCKS_MIN;
    struct mk__ws_queue *queue = mk_account_alloc(ws->worker->account, queue_bytes(size));
    if (!queue)
        return -ENOMEM;
    *queue = (struct mk__ws_queue){.size = size};
    if (old) {
        queue->n = old->n;
        queue->sent = old->sent;
        queue->bytes = old->bytes;
        for (uint32_t i = 0; i < old->n; i++)
            queue->blocks[i] = old->blocks[(old->first + i) & (old->size - 1)];
        mk_account_free(ws->worker->account, old, queue_bytes(old->size));
    }
    ws->queue = queue;
    return 0;
}

/* Appends a block, whose reference it takes over; its first `sent` bytes are written. Returns 0 or -ENOMEM. */
static int push_block(struct mk_ws *ws, struct mk__ws_block *block, size_t sent)
{
    assert(sent < block->len && (!sent || !ws->queue));
    if (grow_queue(ws) < 0) {
        mk__ws_block_put(block);
        return -ENOMEM;
    }
    struct mk__ws_queue *queue = ws->queue;
    queue->blocks[(queue->first + queue->n++) & (queue->size - 1)] = block;
    queue->bytes += block->len - sent;
    if (sent)
        queue->sent = sent;
    return 0;
}

void mk__ws_free_queue(struct mk_ws *ws)
{
    struct mk__ws_queue *queue = ws->queue;
    if (!queue)
        return;
    for (uint32_t i = 0; i < queue->n; i++)
        mk__ws_block_put(queue->blocks[(queue->first + i) & (queue->size - 1)]);
    mk_account_free(ws->worker->account, queue, queue_bytes(queue->size));
    ws->queue = NULL;
}

/* ── writing ── */

/* Returns how many of `n` bytes were written, which may be none. */
static size_t write_bytes(struct mk_ws *ws, const void *bytes, size_t n)
{
    size_t done = 0;
    while (done < n && ws->is_writable && !ws->is_failed) {
        ssize_t r = ws->ops->write(ws->stream, (const char *)bytes + done, n - done);
        if (r > 0)
            done += (size_t)r;
        else if (r == -EAGAIN || r == 0)
            ws->is_writable = false;
        else
            mk__ws_set_failed(ws);
    }
    return done;
}

bool mk__ws_write_queue(struct mk_ws *ws)
{
    struct mk__ws_queue *queue = ws->queue;
    while (queue && queue->n) {
        struct mk__ws_block *block = queue->blocks[queue->first];
        size_t left = block->len - queue->sent, done = write_bytes(ws, block->bytes + queue->sent, left);
        queue->sent += done;
        queue->bytes -= done;
        if (done < left)
            return false;
        mk__ws_block_put(block);
        queue->first = (queue->first + 1) & (queue->size - 1);
        queue->n--;
        queue->sent = 0;
    }
    mk__ws_free_queue(ws);
    return true;
}

/* Keeps what could not be written. The messages before it are complete, so nothing may be left out: without memory the
 * WebSocket has failed. */
static void queue_rest(struct mk_ws *ws, const void *bytes, size_t n)
{
    struct mk__ws_block *block = alloc_block(ws->worker->account, n);
    if (!block) {
        mk__ws_set_failed(ws);
        return;
    }
    memcpy(block->bytes, bytes, n);
    block->len = n;
    if (push_block(ws, block, 0) < 0)
        mk__ws_set_failed(ws);
}

void mk__ws_gather_output(struct mk_ws *ws)
{
    assert(!ws->worker->output_owner && !ws->worker->output_len);
    ws->worker->output_owner = ws;
}

static void write_output(struct mk_ws_worker *w)
{
    struct mk_ws *ws = w->output_owner;
    size_t n = w->output_len, done = write_bytes(ws, w->output, n);
    w->output_len = 0;
    if (done < n && !ws->is_failed)
        queue_rest(ws, w->output + done, n - done);
}

void mk__ws_flush_output(struct mk_ws_worker *w)
{
    if (w->output_len)
        write_output(w);
    w->output_owner = NULL;
}

/* ── frames ── */

/* Returns the result for a frame that was sent or queued. */
static int report_queued(struct mk_ws *ws)
{
    if (ws->is_failed)
        return -EPIPE;
    if (mk_ws_queued_bytes(ws) <= MK__WS_QUEUED_BYTES_HIGH)
        return 0;
    ws->wants_writable = true;
    return MK_AGAIN;
}

static bool is_full(const struct mk_ws *ws, size_t n)
{
    size_t queued = ws->queue ? ws->queue->bytes : 0, max = get_queue_max(ws);
    return queued && (n > max || queued > max - n);
}

/* Tells whether a block is gathered rather than written: it is small, and what waits stays within the queue's limit. */
static bool fits_output(const struct mk_ws *ws, size_t n)
{
    size_t max = get_queue_max(ws), room = max < MK__WS_OUTPUT_BYTES ? max : MK__WS_OUTPUT_BYTES;
    return !ws->queue && n <= COPY_BYTES_MAX && ws->worker->output_len <= room && n <= room - ws->worker->output_len;
}

static int send_small(struct mk_ws *ws, const struct mk__ws_head *head, const void *data)
{
    uint8_t bytes[MK__WS_HEAD_BYTES_MAX + COPY_BYTES_MAX] MK_UNINITIALIZED;
    size_t n = write_frame(bytes, head, data), done = write_bytes(ws, bytes, n);
    if (done < n && !ws->is_failed)
        queue_rest(ws, bytes + done, n - done);
    return report_queued(ws);
}

static int send_owned(struct mk_ws *ws, struct mk__ws_block *block)
{
    if (!block)
        return -ENOMEM;
    size_t done = ws->queue ? 0 : write_bytes(ws, block->bytes, block->len);
    if (done == block->len || ws->is_failed)
        mk__ws_block_put(block);
    else if (push_block(ws, block, done) < 0) {
        if (done)
            mk__ws_set_failed(ws);
        return -ENOMEM;
    }
    return report_queued(ws);
}

/* Returns the last block that waits, if a frame of `n` bytes fits after it; or NULL. */
static struct mk__ws_block *find_room(const struct mk_ws *ws, size_t n)
{
    const struct mk__ws_queue *queue = ws->queue;
    struct mk__ws_block *last = queue->blocks[(queue->first + queue->n - 1) & (queue->size - 1)];
    return last->account && last->size - last->len >= n ? last : NULL; /* those of broadcasts have no account */
}

/* Queues a small frame after others, in one block with them: a separate block would be many times its size. */
static int queue_small(struct mk_ws *ws, const struct mk__ws_head *head, const void *data)
{
    struct mk__ws_block *block = find_room(ws, MK__WS_HEAD_BYTES_MAX + head->len);
    if (block) {
        size_t n = write_frame(block->bytes + block->len, head, data);
        block->len += n;
        ws->queue->bytes += n;
        return report_queued(ws);
    }
    block = alloc_block(ws->worker->account, SHARED_BYTES);
    if (block)
        block->len = write_frame(block->bytes, head, data);
    return send_owned(ws, block);
}

int mk__ws_send_frame(struct mk_ws *ws, uint8_t opcode, bool rsv1, const void *data, size_t len)
{
    struct mk_ws_worker *w = ws->worker;
    size_t n = MK__WS_HEAD_BYTES_MAX + len;
    if (is_full(ws, n))
        return -ENOBUFS;
    struct mk__ws_head head = make_head(opcode, rsv1, ws->is_client, len);
    bool gathers = w->output_owner == ws;
    if (gathers && n > MK__WS_OUTPUT_BYTES - w->output_len)
        write_output(w);
    if (gathers && !ws->queue && n <= MK__WS_OUTPUT_BYTES) {
        w->output_len += write_frame((uint8_t *)w->output + w->output_len, &head, data);
        return report_queued(ws);
    }
    if (!ws->queue && len <= COPY_BYTES_MAX)
        return send_small(ws, &head, data);
    if (ws->queue && len <= SMALL_BYTES_MAX)
        return queue_small(ws, &head, data);
    return send_owned(ws, mk__ws_block_new(w->account, opcode, rsv1, ws->is_client, data, len));
}

int mk__ws_send_block(struct mk_ws *ws, struct mk__ws_block *block)
{
    struct mk_ws_worker *w = ws->worker;
    bool gathers = w->output_owner == ws;
    if (gathers && w->output_len && !fits_output(ws, block->len))
        write_output(w);
    if (is_full(ws, block->len))
        return -ENOBUFS;
    if (gathers && fits_output(ws, block->len)) {
        memcpy(w->output + w->output_len, block->bytes, block->len);
        w->output_len += block->len;
        return report_queued(ws);
    }
    atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
    return send_owned(ws, block);
}

/* ── messages ── */

static bool is_control(enum mk_ws_opcode opcode)
{
    return opcode == MK_WS_PING || opcode == MK_WS_PONG;
}

int mk__ws_check_overflow(struct mk_ws *ws, int result)
{
    if (result == -ENOBUFS && ws->settings->overflow == MK_WS_OVERFLOW_CLOSE)
        mk_ws_close(ws, MK_WS_POLICY, MK_STR("reads too slowly"));
    return result;
}

int mk_ws_send(struct mk_ws *ws, enum mk_ws_opcode opcode, const void *data, size_t len)
{
    if (ws->state != MK__WS_OPEN || ws->is_failed)
        return -EPIPE;
    if (opcode != MK_WS_TEXT && opcode != MK_WS_BINARY && !is_control(opcode))
        return -EINVAL;
    if (len > (is_control(opcode) ? MK__WS_CONTROL_BYTES_MAX : MK__WS_SENT_BYTES_MAX))
        return -EMSGSIZE;
    int err = is_control(opcode) || !ws->deflate ? mk__ws_send_frame(ws, opcode, false, data, len)
                                                 : mk__ws_send_deflated(ws, opcode, data, len);
    return mk__ws_check_overflow(ws, err);
}
