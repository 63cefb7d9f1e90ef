// SPDX-License-Identifier: Apache-2.0
/*
 * Compresses a body piece by piece (filter.h). It holds one piece of input, and what the encoder holds. When there is
 * no input for now, it flushes the encoder, so that slow responses arrive as they are written. The encoder is closed
 * after its last byte, or with the exchange.
 */
#include "filter.h"

#include "coding_counters.h"

#include <assert.h>
#include <errno.h>

enum { INPUT_BYTES_MIN = 1024, INPUT_BYTES_MAX = 16 * 1024 }; /* mk_filter_fn: `size` is 1,024 at least */

struct compress_filter {
    struct mk_request *req;
    const struct mk_worker *worker; /* that counts; NULL: none */
    struct mk_account *account;
    const struct budget_limits *limits;
    struct encoder *encoder; /* NULL: it was closed */
    struct mk_timer timer;
    enum mk_coding coding;
    enum encoder_op op; /* the current one, repeated until it is done */
    bool unflushed;     /* input was read since the last flush */
    size_t bytes;       /* as reserved from the budget */
    size_t input_pos, input_len, input_size;
    char input[];
};

static void close_encoder(struct compress_filter *f)
{
    if (!f->encoder)
        return;
    encoder_close(f->encoder);
    f->encoder = NULL;
    budget_release(f->bytes);
}

static void free_filter(void *ctx)
{
    struct compress_filter *f = ctx;
    mk_timer_cancel(&f->timer);
    close_encoder(f);
    mk_account_free(f->account, f, sizeof(*f) + f->input_size);
}

static void resume_response(struct mk_timer *timer)
{
    mk_response_wake(MK_CONTAINER_OF(timer, struct compress_filter, timer)->req);
}

/* ── reading and encoding ── */

/* Reads the next piece, or sets the operation if there is none. Returns 0, or the result of the filter. */
static ssize_t read_input(struct compress_filter *f, struct mk_filter *filter)
{
    assert(f->op == ENCODER_PROCESS && f->input_pos == f->input_len);
    ssize_t n = mk_filter_read(filter, f->input, f->input_size);
    if (n > 0) {
        f->input_pos = 0;
        f->input_len = (size_t)n;
        coding_counters_add(CODING_BYTES_IN, f->coding, f->worker, f->input_len);
        f->unflushed = true;
    } else if (n == 0) {
        f->op = ENCODER_FINISH;
    } else if (n == -EAGAIN && f->unflushed) {
        f->op = ENCODER_FLUSH;
        f->unflushed = false;
    } else {
        return n;
    }
    return 0;
}

/* Runs the encoder once. Returns 1 if the operation is done, 0 or -errno. */
static ssize_t run_encoder(struct compress_filter *f, char **to, char *end)
{
    assert(f->encoder && f->input_pos <= f->input_len && *to < end);
    struct encoder_data data = {f->input + f->input_pos, f->input_len - f->input_pos, *to, (size_t)(end - *to)};
    uint64_t since = budget_clock(f->limits);
    int r = encoder_run(f->encoder, f->op, &data);
    budget_spend(f->limits, since);
    f->input_pos = f->input_len - data.in_len;
    *to = data.out;
    return r < 0 ? r : r == 0;
}

/* Returns whether there is no processor time left for now; the timer resumes the response then. */
static bool wait_for_time(struct compress_filter *f)
{
    struct mk_loop *loop = mk_request_loop(f->req);
    uint64_t now = mk_loop_now_ms(loop);
    if (budget_has_time(f->limits, now))
        return false;
    mk_timer_arm(loop, &f->timer, budget_wait_ms(now));
    return true;
}

/* Reads or encodes once. Returns 0 (call it again), or the result of the filter. */
static ssize_t encode_step(struct compress_filter *f, struct mk_filter *filter, char **to, char *end)
{
    if (f->op == ENCODER_PROCESS && f->input_pos == f->input_len) {
        ssize_t r = read_input(f, filter);
        if (r < 0)
            return r;
    }
    if (wait_for_time(f))
        return -EAGAIN;
    ssize_t done = run_encoder(f, to, end);
    if (done < 0)
        return done;
    if (done && f->op == ENCODER_FINISH)
        close_encoder(f);
    else if (done)
        f->op = ENCODER_PROCESS;
    return 0;
}

/* The filter. Returns at the first bytes; 0 after the last ones, when the encoder was closed. */
static ssize_t read_compressed(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    struct compress_filter *f = ctx;
    char *at = to, *end = to + size;
    while (f->encoder && at == to) {
        ssize_t r = encode_step(f, filter, &at, end);
        if (r < 0)
            return r;
    }
    coding_counters_add(CODING_BYTES_OUT, f->coding, f->worker, (size_t)(at - to));
    return at - to;
}

/* ── start ── */

/* Reserves budget and opens the encoder. With 0 the exchange frees `f`, else the caller does. Returns 0 or -errno. */
static int open_encoder(struct compress_filter *f, enum mk_coding coding, int level, uint64_t size)
{
    if (!budget_has_time(f->limits, mk_loop_now_ms(mk_request_loop(f->req))) ||
        !budget_reserve(f->limits, f->account, f->bytes))
        return -EBUSY;
    f->encoder = encoder_open(f->account, coding, level, size);
    if (!f->encoder) {
        budget_release(f->bytes);
        return -ENOMEM;
    }
    int err = mk_arena_defer(mk_request_arena(f->req), free_filter, f);
    if (err < 0)
        close_encoder(f);
    return err;
}

/* A body that is shorter than the largest piece needs no more than its size. */
static size_t choose_input_size(uint64_t body_size)
{
    if (body_size > INPUT_BYTES_MAX)
        return INPUT_BYTES_MAX;
    return body_size > INPUT_BYTES_MIN ? (size_t)body_size : INPUT_BYTES_MIN;
}

int filter_start(struct mk_request *req, enum mk_coding coding, int level, uint64_t size,
                 const struct budget_limits *limits, const struct mk_worker *worker)
{
    struct mk_account *account = mk_request_account(req);
    size_t input = choose_input_size(size);
    struct compress_filter *f = mk_account_alloc(account, sizeof(*f) + input);
    if (!f)
        return -ENOMEM;
    *f = (struct compress_filter){
        .req = req, .worker = worker, .account = account, .limits = limits, .coding = coding, .input_size = input};
    f->bytes = sizeof(*f) + input + encoder_bytes_max(coding, level, size);
    mk_timer_init(&f->timer, resume_response);
    int err = open_encoder(f, coding, level, size);
    coding_counters_add(err < 0 ? CODING_SKIPPED : CODING_RESPONSES, coding, worker, 1);
    if (err < 0) {
        mk_account_free(account, f, sizeof(*f) + input);
        return err;
    }
    err = mk_response_filter(req, read_compressed, f);
    if (err < 0)
        close_encoder(f); /* returns its budget now; the exchange frees `f` */
    return err;
}
