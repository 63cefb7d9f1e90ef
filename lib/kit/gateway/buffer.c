// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps what a client does not take (buffer.h).
 */
#include "buffer.h"

enum {
    LAG_MS = 20,     /* how long bytes of the backend may wait for the client until it is looked at */
    BLOCKED_MS = 2,  /* a client that has not asked for so long then does not take what comes */
    RETRY_MS = 1000, /* when the budget was used up */
};

static void close_spool(struct mk__gw_buffer *b)
{
    mk__gw_spooled_close(b->spooled);
    b->spooled = NULL;
}

static void arm_timer(struct mk__gw_buffer *b, uint32_t ms)
{
    b->is_armed = true;
    mk_timer_arm(mk_request_loop(b->req), &b->timer, ms);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk__gw_buffer *b = MK_CONTAINER_OF(timer, struct mk__gw_buffer, timer);
    b->is_armed = false;
    if (mk_loop_now_ms(mk_request_loop(b->req)) - b->asked_ms < BLOCKED_MS)
        arm_timer(b, LAG_MS);
    else
        b->fill(b);
}

static void on_ready(void *user, unsigned what)
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
    mk_timer_init(&b->timer, on_timer);
}

/* Tells whether a media type, which parameters may follow, is `wanted`. */
static bool is_type(struct mk_str type, struct mk_str wanted)
{
    if (type.len < wanted.len || !mk_str_ieq(mk_str(type.p, wanted.len), wanted))
        return false;
    return type.len == wanted.len || strchr("; \t", type.p[wanted.len]);
}

bool mk__gw_buffer_is_live_type(struct mk_str type)
{
    return is_type(type, MK_STR("text/event-stream")) || is_type(type, MK_STR("multipart/x-mixed-replace"));
}

/* Also those of which the backend says so, as it does to nginx. */
static bool is_live(const struct mk_request *req)
{
    return mk__gw_buffer_is_live_type(mk_response_get_header(req, MK_STR("Content-Type"))) ||
           mk_str_ieq(mk_response_get_header(req, MK_STR("X-Accel-Buffering")), MK_STR("no"));
}

void mk__gw_buffer_begin(struct mk__gw_buffer *b, const struct mk_gateway_buffer *limits)
{
    b->is_live = is_live(b->req);
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
        arm_timer(b, LAG_MS);
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
    const struct mk__gw_spooled_limits limits = {.memory_max = get_memory_max(b->limits),
                                                 .file_max = b->limits->file_bytes};
    int err = mk__gw_spooled_open(mk_request_worker(b->req), &limits, on_ready, b, &b->spooled);
    if (err == 0)
        return 0;
    arm_timer(b, RETRY_MS);
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
