// SPDX-License-Identifier: Apache-2.0
/*
 * Compresses a body piece by piece (filter.h). It holds one piece of input, and what the encoder holds. When there is
 * no input for now, it flushes the encoder, so that slow responses arrive as they are written. The encoder is closed
 * after its last byte, or with the exchange.
 */
#include "filter.h"

#include <errno.h>

enum { INPUT_BYTES = 16 * 1024, INPUT_BYTES_MIN = 1024 /* as filters are guaranteed */ };

struct compress_filter {
    struct mk_request *req;
    struct mk_account *account;
    const struct budget_limits *limits;
    struct encoder *encoder; /* NULL: it was closed */
    struct mk_timer timer;
    enum encoder_op op; /* the current one */
    bool unflushed;     /* input was read since the last flush */
    size_t bytes;       /* as reserved from the budget */
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

/* ── reading and encoding ── */

/* Reads the next piece, or sets the operation if there is none. Returns 0, or the result of the filter. */
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

/* Runs the encoder once. Returns 1 if the operation is done, 0 or -errno. */
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

/* Reads or encodes once. Returns 0 (call it again), or the result of the filter. */
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

/* ── start ── */

/* Reserves budget and opens the encoder. Returns 0 or -errno. */
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
        close_encoder(s); /* the exchange frees the rest */
    return err;
}
