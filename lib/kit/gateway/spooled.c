// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

#include <errno.h>

/* ── spools of exchanges ── */

struct spooled_limits {
    size_t memory_max;
    uint64_t file_max;
    bool is_kept;
};

static void call_ready(struct mk_spool *spool, unsigned what, void *ctx)
{
    struct mk__gw_spooled *s = ctx;
    (void)spool;
    s->ready(s->user, what);
}

static void free_spooled(void *ctx)
{
    struct mk__gw_spooled *s = ctx;
    struct mk_worker *worker = s->worker;
    mk_account_free(s->account, s, sizeof(*s));
    mk_worker_put(worker);
}

/* Opens a spool of the budget of the worker's generation. Returns 0, -EDQUOT or -ENOMEM. */
static int open_spooled(struct mk_worker *worker, const struct spooled_limits *limits, mk__gw_spooled_fn ready,
                        void *user, struct mk__gw_spooled **ret)
{
    struct mk_account *account = mk_worker_account(worker);
    struct mk__gw_spooled *s = mk_account_alloc(account, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct mk__gw_spooled){.worker = worker, .account = account, .ready = ready, .user = user};
    const struct mk_spool_options options = {.budget = mk_generation_spools(mk_worker_generation(worker)),
                                             .loop = mk_worker_loop(worker),
                                             .account = account,
                                             .memory_max = limits->memory_max,
                                             .file_max = limits->file_max,
                                             .is_kept = limits->is_kept,
                                             .disk_is_optional = !limits->is_kept,
                                             .ready = call_ready,
                                             .freed = free_spooled,
                                             .ctx = s};
    int err = mk_spool_open(&options, &s->spool);
    if (err < 0) {
        mk_account_free(account, s, sizeof(*s));
        return err;
    }
    mk_worker_get(worker);
    *ret = s;
    return 0;
}

/* Drops what it holds. NULL is allowed. */
static void close_spooled(struct mk__gw_spooled *s)
{
    if (s)
        mk_spool_close(s->spool);
}

/* ── bodies that are received first ── */

enum { SMALL_BYTES = 64 * 1024 }; /* a body of a known length up to this reserves no more than it needs */

static void fail_receive(struct mk__gw_received *r, int err)
{
    r->has_failed = true;
    mk__gw_received_release(r);
    r->ready(r, err);
}

/* The body is there once it can be read: a part may still be on its way to the file. */
static void complete_receive(struct mk__gw_received *r)
{
    struct mk_str piece;
    ssize_t n = mk_spool_peek(r->spooled->spool, &piece);
    if (n == -EAGAIN)
        return;
    r->is_complete = n >= 0;
    if (n < 0)
        fail_receive(r, (int)n);
    else
        r->ready(r, 0);
}

static void take_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct mk__gw_received *r = ctx;
    if (r->has_failed)
        return;
    int err = mk_spool_add(r->spooled->spool, piece, r->bytes_max);
    if (err >= 0 && end)
        err = mk_spool_end(r->spooled->spool);
    if (err < 0)
        fail_receive(r, err);
    else if (end)
        complete_receive(r);
    else if (err == MK_AGAIN)
        mk_request_pause(req);
}

static void on_receive_ready(void *user, unsigned what)
{
    struct mk__gw_received *r = user;
    if (r->is_complete) {
        r->ready(r, 0);
        return;
    }
    if (what & MK_SPOOL_READABLE) {
        complete_receive(r);
        return;
    }
    int err = mk_spool_room(r->spooled->spool);
    if (err < 0)
        fail_receive(r, err);
    else
        mk_request_resume(r->req);
}

/* Bodies that are small, as most are, need neither a file nor the memory for one. */
static struct spooled_limits choose_limits(bool has_length, uint64_t length, uint64_t bytes_max)
{
    if (has_length && length <= SMALL_BYTES)
        return (struct spooled_limits){.memory_max = (size_t)(length + length / 32 + 1024), .is_kept = true};
    return (struct spooled_limits){.memory_max = MK_SPOOL_MEMORY_MIN, .file_max = bytes_max, .is_kept = true};
}

int mk__gw_received_begin(struct mk__gw_received *r, struct mk_request *req, uint64_t bytes_max,
                          mk__gw_received_fn ready)
{
    uint64_t length = 0;
    bool has_length = mk_request_body_length(req, &length);
    if (length > bytes_max)
        return -EFBIG;
    *r = (struct mk__gw_received){.req = req, .bytes_max = bytes_max, .ready = ready};
    const struct spooled_limits limits = choose_limits(has_length, length, bytes_max);
    int err = open_spooled(mk_request_worker(req), &limits, on_receive_ready, r, &r->spooled);
    if (err == 0)
        mk_request_read(req, take_piece, r);
    return err;
}

void mk__gw_received_release(struct mk__gw_received *r)
{
    close_spooled(r->spooled);
    r->spooled = NULL;
}

/* ── sending them ── */

uint64_t mk__gw_received_length(const struct mk__gw_received *r)
{
    return mk_spool_length(r->spooled->spool);
}

int mk__gw_received_send(struct mk__gw_received *r, struct mk__gw_upload *u, struct mk_io *io)
{
    while (r->spooled && !mk__gw_upload_is_blocked(u) && !mk__gw_upload_is_taken(u)) {
        struct mk_str piece;
        ssize_t n = mk_spool_peek(r->spooled->spool, &piece);
        if (n == -EAGAIN)
            return mk__gw_upload_flush(u, io);
        if (n < 0)
            return -EDQUOT;
        int err = mk__gw_upload_piece(u, io, piece, mk_spool_left(r->spooled->spool) == (uint64_t)n);
        if (err < 0)
            return err;
        mk_spool_skip(r->spooled->spool, (size_t)n);
    }
    return 0;
}

int mk__gw_received_rewind(struct mk__gw_received *r)
{
    return mk_spool_rewind(r->spooled->spool);
}

void mk__gw_received_move(struct mk__gw_received *to, struct mk__gw_received *from, mk__gw_received_fn ready)
{
    *to = *from;
    to->ready = ready;
    if (to->spooled)
        to->spooled->user = to;
    *from = (struct mk__gw_received){0};
}

/* ── what a client does not take of a response ── */

enum {
    LAG_MS = 20,     /* how long bytes of the backend may wait for the client until it is looked at */
    BLOCKED_MS = 2,  /* a client that has not asked for so long then does not take what comes */
    RETRY_MS = 1000, /* when the budget was used up */
};

static void close_spool(struct mk__gw_buffer *b)
{
    close_spooled(b->spooled);
    b->spooled = NULL;
}

static void arm_buffer_timer(struct mk__gw_buffer *b, uint32_t ms)
{
    b->is_armed = true;
    mk_timer_arm(mk_request_loop(b->req), &b->timer, ms);
}

static void on_buffer_timer(struct mk_timer *timer)
{
    struct mk__gw_buffer *b = MK_CONTAINER_OF(timer, struct mk__gw_buffer, timer);
    b->is_armed = false;
    if (mk_loop_now_ms(mk_request_loop(b->req)) - b->asked_ms < BLOCKED_MS)
        arm_buffer_timer(b, LAG_MS);
    else
        b->fill(b);
}

static void on_buffer_ready(void *user, unsigned what)
{
    struct mk__gw_buffer *b = user;
    if (what & MK_SPOOL_READABLE)
        mk_response_wake(b->req);
    if (what & MK_SPOOL_WRITABLE)
        b->fill(b);
}

void mk__gw_buffer_init(struct mk__gw_buffer *b, struct mk_request *req, mk__gw_buffer_fn fill)
{
    *b = (struct mk__gw_buffer){.req = req, .fill = fill};
    mk_timer_init(&b->timer, on_buffer_timer);
}

/* Tells whether a media type, which parameters may follow, is `wanted`. */
static bool is_type(struct mk_str type, struct mk_str wanted)
{
    return mk_str_istarts(type, wanted) && (type.len == wanted.len || strchr("; \t", type.p[wanted.len]));
}

bool mk__gw_buffer_is_live_type(struct mk_str type)
{
    return is_type(type, MK_STR("text/event-stream")) || is_type(type, MK_STR("multipart/x-mixed-replace"));
}

void mk__gw_buffer_begin(struct mk__gw_buffer *b, const struct mk_gateway_buffer *limits)
{
    /* also those of which the backend says so, as it does to nginx */
    b->is_live = mk__gw_buffer_is_live_type(mk_response_get_header(b->req, MK_STR("Content-Type"))) ||
                 mk_str_ieq(mk_response_get_header(b->req, MK_STR("X-Accel-Buffering")), MK_STR("no"));
    b->limits = limits->memory_bytes && !b->is_live ? limits : NULL;
}

void mk__gw_buffer_release(struct mk__gw_buffer *b)
{
    mk_timer_cancel(&b->timer);
    close_spool(b);
}

void mk__gw_buffer_note_asked(struct mk__gw_buffer *b)
{
    b->asked_ms = mk_loop_now_ms(mk_request_loop(b->req));
}

void mk__gw_buffer_offer(struct mk__gw_buffer *b)
{
    if (!b->limits)
        return;
    if (b->spooled)
        b->fill(b);
    else if (!b->is_armed)
        arm_buffer_timer(b, LAG_MS);
}

/* An eighth of the memory is left for what else the transfer takes: its connections, and gaps of the allocator. */
static size_t get_memory_max(const struct mk_gateway_buffer *limits)
{
    uint64_t bytes = limits->memory_bytes - limits->memory_bytes / 8;
    return bytes < MK_SPOOL_MEMORY_MIN ? MK_SPOOL_MEMORY_MIN : (size_t)bytes;
}

int mk__gw_buffer_room(struct mk__gw_buffer *b)
{
    if (b->spooled)
        return mk_spool_room(b->spooled->spool);
    const struct spooled_limits limits = {.memory_max = get_memory_max(b->limits), .file_max = b->limits->file_bytes};
    int err = open_spooled(mk_request_worker(b->req), &limits, on_buffer_ready, b, &b->spooled);
    if (err == 0)
        return 0;
    arm_buffer_timer(b, RETRY_MS);
    return MK_AGAIN;
}

int mk__gw_buffer_add(struct mk__gw_buffer *b, struct mk_str bytes, bool end)
{
    int err = bytes.len ? mk_spool_write(b->spooled->spool, bytes) : 0;
    if (err >= 0 && end)
        err = mk_spool_end(b->spooled->spool);
    if (err >= 0 && !mk_spool_left(b->spooled->spool))
        close_spool(b);
    return err < 0 ? err : 0;
}

ssize_t mk__gw_buffer_read(struct mk__gw_buffer *b, char *to, size_t size)
{
    ssize_t n = mk_spool_read(b->spooled->spool, to, size);
    if (n >= 0 && !mk_spool_left(b->spooled->spool))
        close_spool(b);
    return n;
}
