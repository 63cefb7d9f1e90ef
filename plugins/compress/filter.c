// SPDX-License-Identifier: Apache-2.0
/*
 * The filter of filter.h. It holds one piece of what is below, and what the encoder holds. When below has nothing for
 * now, what was held back is sent, so that slow answers arrive as they are written. The encoder is given back with
 * its last byte, or with the exchange.
 */
#include "filter.h"

#include <errno.h>

enum { INPUT_BYTES = 16 * 1024, INPUT_BYTES_MIN = 1024 /* as filters are promised */ };

struct compress_filter {
    struct mk_request *req;
    struct mk_account *account;
    const struct budget_limits *limits;
    struct encoder *encoder; /* NULL: it has ended */
    struct mk_timer timer;
    enum encoder_op op; /* what goes on */
    bool unflushed;     /* something was read since the last flush */
    size_t bytes;       /* as taken of the worker's share */
    size_t input_pos, input_len, input_size;
    char input[];
};

static void close_encoder(struct compress_filter *s)
{
    if (!s->encoder)
        return;
    encoder_close(s->encoder);
    s->encoder = NULL;
    budget_release(s->bytes);
}

static void free_filter(void *ctx)
{
    struct compress_filter *s = ctx;
    mk_timer_cancel(&s->timer);
    close_encoder(s);
    mk_account_free(s->account, s, sizeof(*s) + s->input_size);
}

static void resume_response(struct mk_timer *timer)
{
    mk_response_wake(MK_CONTAINER_OF(timer, struct compress_filter, timer)->req);
}

/* ── pieces ── */

/* Reads the next piece, or learns what to do without one. 0, or what the filter says to the one above. */
static ssize_t read_input(struct compress_filter *s, struct mk_filter *filter)
{
    ssize_t n = mk_filter_read(filter, s->input, s->input_size);
    if (n > 0) {
        s->input_pos = 0;
        s->input_len = (size_t)n;
        s->unflushed = true;
    } else if (n == 0) {
        s->op = ENCODER_FINISH;
    } else if (n == -EAGAIN && s->unflushed) {
        s->op = ENCODER_FLUSH;
        s->unflushed = false;
    } else {
        return n;
    }
    return 0;
}

/* Lets the encoder work once; 1 when it is done with what it was asked for. */
static ssize_t run_encoder(struct compress_filter *s, char **to, char *end)
{
    struct encoder_data data = {s->input + s->input_pos, s->input_len - s->input_pos, *to, (size_t)(end - *to)};
    uint64_t since = budget_clock(s->limits);
    int r = encoder_run(s->encoder, s->op, &data);
    budget_spend(s->limits, since);
    s->input_pos = s->input_len - data.in_len;
    *to = data.out;
    return r < 0 ? r : r == 0;
}

static bool wait_for_time(struct compress_filter *s)
{
    struct mk_loop *loop = mk_request_loop(s->req);
    uint64_t now = mk_loop_now_ms(loop);
    if (budget_has_time(s->limits, now))
        return false;
    mk_timer_arm(loop, &s->timer, budget_wait_ms(now));
    return true;
}

/* One step of the encoder, or of what is below it. 0: more can be done. */
static ssize_t encode_step(struct compress_filter *s, struct mk_filter *filter, char **to, char *end)
{
    if (s->op == ENCODER_PROCESS && s->input_pos == s->input_len) {
        ssize_t r = read_input(s, filter);
        if (r < 0)
            return r;
    }
    if (wait_for_time(s))
        return -EAGAIN;
    ssize_t done = run_encoder(s, to, end);
    if (done < 0)
        return done;
    if (done && s->op == ENCODER_FINISH)
        close_encoder(s);
    else if (done)
        s->op = ENCODER_PROCESS;
    return 0;
}

static ssize_t read_compressed(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    struct compress_filter *s = ctx;
    char *at = to, *end = to + size;
    while (s->encoder && at == to) {
        ssize_t r = encode_step(s, filter, &at, end);
        if (r < 0)
            return r;
    }
    return at - to;
}

/* ── the beginning ── */

/* 0; on failure nothing is left. */
static int open_encoder(struct compress_filter *s, enum mk_coding coding, int level, uint64_t size)
{
    if (!budget_has_time(s->limits, mk_loop_now_ms(mk_request_loop(s->req))) ||
        !budget_reserve(s->limits, s->account, s->bytes))
        return -EBUSY;
    s->encoder = encoder_open(s->account, coding, level, size);
    if (s->encoder && mk_arena_defer(mk_request_arena(s->req), free_filter, s) == 0)
        return 0;
    if (s->encoder)
        close_encoder(s);
    else
        budget_release(s->bytes);
    return -ENOMEM;
}

int filter_start(struct mk_request *req, enum mk_coding coding, int level, uint64_t size,
                 const struct budget_limits *limits)
{
    struct mk_account *account = mk_request_account(req);
    size_t input = size > INPUT_BYTES ? INPUT_BYTES : size > INPUT_BYTES_MIN ? (size_t)size : INPUT_BYTES_MIN;
    struct compress_filter *s = mk_account_alloc(account, sizeof(*s) + input);
    if (!s)
        return -ENOMEM;
    *s = (struct compress_filter){.req = req, .account = account, .limits = limits, .input_size = input};
    s->bytes = sizeof(*s) + input + encoder_bytes_max(coding, level, size);
    mk_timer_init(&s->timer, resume_response);
    int err = open_encoder(s, coding, level, size);
    if (err < 0) {
        mk_account_free(account, s, sizeof(*s) + input);
        return err;
    }
    err = mk_response_filter(req, read_compressed, s);
    if (err < 0)
        close_encoder(s); /* the rest goes with the exchange */
    return err;
}
