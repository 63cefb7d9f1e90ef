// SPDX-License-Identifier: Apache-2.0
/*
 * The filter of stream.h. It holds one piece of what is below, and what the coder holds. When below has nothing for
 * now, what was held back is sent, so that slow answers arrive as they are written. The coder is given back with
 * its last byte, or with the exchange.
 */
#include "stream.h"

#include <errno.h>

enum { PIECE_BYTES = 16 * 1024, PIECE_BYTES_MIN = 1024 /* as filters are promised */ };

struct stream {
    struct mk_request *req;
    struct mk_account *account;
    const struct share_limits *limits;
    struct coder *coder; /* NULL: it has ended */
    struct mk_timer timer;
    enum coder_op op; /* what goes on */
    bool unsent;      /* something was read since the last flush */
    size_t bytes;     /* as taken of the worker's share */
    size_t piece_at, piece_len, piece_size;
    char piece[];
};

static void close_coder(struct stream *s)
{
    if (!s->coder)
        return;
    coder_close(s->coder);
    s->coder = NULL;
    share_give_back(s->bytes);
}

static void free_stream(void *ctx)
{
    struct stream *s = ctx;
    mk_timer_cancel(&s->timer);
    close_coder(s);
    mk_account_free(s->account, s, sizeof(*s) + s->piece_size);
}

static void go_on(struct mk_timer *timer)
{
    mk_response_wake(MK_OWNER(timer, struct stream, timer)->req);
}

/* ── pieces ── */

/* Reads the next piece, or learns what to do without one. 0, or what the filter says to the one above. */
static ssize_t read_piece(struct stream *s, struct mk_filter *filter)
{
    ssize_t n = mk_filter_read(filter, s->piece, s->piece_size);
    if (n > 0) {
        s->piece_at = 0;
        s->piece_len = (size_t)n;
        s->unsent = true;
    } else if (n == 0) {
        s->op = CODER_END;
    } else if (n == -EAGAIN && s->unsent) {
        s->op = CODER_FLUSH;
        s->unsent = false;
    } else {
        return n;
    }
    return 0;
}

/* Lets the coder work once; 1 when it is done with what it was asked for. */
static ssize_t run_coder(struct stream *s, char **to, char *end)
{
    struct coder_data data = {s->piece + s->piece_at, s->piece_len - s->piece_at, *to, (size_t)(end - *to)};
    uint64_t since = share_clock(s->limits);
    int r = coder_run(s->coder, s->op, &data);
    share_spend(s->limits, since);
    s->piece_at = s->piece_len - data.in_len;
    *to = data.out;
    return r < 0 ? r : r == 0;
}

static bool wait_for_time(struct stream *s)
{
    struct mk_loop *loop = mk_request_loop(s->req);
    uint64_t now = mk_loop_now_ms(loop);
    if (share_has_time(s->limits, now))
        return false;
    mk_timer_arm(loop, &s->timer, share_wait_ms(now));
    return true;
}

/* One step of the coder, or of what is below it. 0: more can be done. */
static ssize_t step(struct stream *s, struct mk_filter *filter, char **to, char *end)
{
    if (s->op == CODER_GO_ON && s->piece_at == s->piece_len) {
        ssize_t r = read_piece(s, filter);
        if (r < 0)
            return r;
    }
    if (wait_for_time(s))
        return -EAGAIN;
    ssize_t done = run_coder(s, to, end);
    if (done < 0)
        return done;
    if (done && s->op == CODER_END)
        close_coder(s);
    else if (done)
        s->op = CODER_GO_ON;
    return 0;
}

static ssize_t compress(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    struct stream *s = ctx;
    char *at = to, *end = to + size;
    while (s->coder && at == to) {
        ssize_t r = step(s, filter, &at, end);
        if (r < 0)
            return r;
    }
    return at - to;
}

/* ── the beginning ── */

/* 0; on failure nothing is left. */
static int open_stream(struct stream *s, enum mk_coding coding, int level, uint64_t size)
{
    if (!share_has_time(s->limits, mk_loop_now_ms(mk_request_loop(s->req))) ||
        !share_take(s->limits, s->account, s->bytes))
        return -EBUSY;
    s->coder = coder_open(s->account, coding, level, size);
    if (s->coder && mk_arena_defer(mk_request_arena(s->req), free_stream, s) == 0)
        return 0;
    if (s->coder)
        close_coder(s);
    else
        share_give_back(s->bytes);
    return -ENOMEM;
}

int stream_start(struct mk_request *req, enum mk_coding coding, int level, uint64_t size,
                 const struct share_limits *limits)
{
    struct mk_account *account = mk_request_account(req);
    size_t piece = size > PIECE_BYTES ? PIECE_BYTES : size > PIECE_BYTES_MIN ? (size_t)size : PIECE_BYTES_MIN;
    struct stream *s = mk_account_alloc(account, sizeof(*s) + piece);
    if (!s)
        return -ENOMEM;
    *s = (struct stream){.req = req, .account = account, .limits = limits, .piece_size = piece};
    s->bytes = sizeof(*s) + piece + coder_bytes_max(coding, level, size);
    mk_timer_init(&s->timer, go_on);
    int err = open_stream(s, coding, level, size);
    if (err < 0) {
        mk_account_free(account, s, sizeof(*s) + piece);
        return err;
    }
    err = mk_response_filter(req, compress, s);
    if (err < 0)
        close_coder(s); /* the rest goes with the exchange */
    return err;
}
