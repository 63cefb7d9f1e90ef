// SPDX-License-Identifier: Apache-2.0
/*
 * Compresses a body piece by piece. It holds one piece of input, and what the encoder holds. When there is
 * no input for now, it flushes the encoder, so that slow responses arrive as they are written. The encoder is closed
 * after its last byte, or with the exchange.
 */
#include "compress.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

/*
 * Counts against the limits. Time above the limit of a window is taken from the following ones: at a high
 * level one piece may take longer than a window.
 */
enum { WINDOW_MS = 100, PERCENT_NS = WINDOW_MS * 10000, WINDOWS_MAX = 1000 };

static _Thread_local struct {
    unsigned streams;
    size_t bytes;
    uint64_t window; /* the number of the window that was seen last */
    int64_t left_ns; /* of this window; below 0: taken from the next ones */
} worker_budget;

bool budget_reserve(const struct budget_limits *limits, const struct mk_account *account, size_t bytes)
{
    size_t max = account && account->bytes_max ? account->bytes_max / 2 : SIZE_MAX;
    if (worker_budget.streams >= limits->streams || bytes > max || worker_budget.bytes > max - bytes)
        return false;
    worker_budget.streams++;
    worker_budget.bytes += bytes;
    return true;
}

void budget_release(size_t bytes)
{
    assert(worker_budget.streams > 0 && bytes <= worker_budget.bytes);
    worker_budget.streams--;
    worker_budget.bytes -= bytes;
}

static bool is_limited(const struct budget_limits *limits)
{
    return limits->cpu_percent > 0 && limits->cpu_percent < 100;
}

bool budget_has_time(const struct budget_limits *limits, uint64_t now_ms)
{
    uint64_t window = now_ms / WINDOW_MS, passed = window - worker_budget.window;
    int64_t whole = limits->cpu_percent * PERCENT_NS;
    if (!is_limited(limits))
        return true;
    if (passed)
        worker_budget.left_ns += whole * (int64_t)(passed < WINDOWS_MAX ? passed : WINDOWS_MAX);
    if (worker_budget.left_ns > whole)
        worker_budget.left_ns = whole; /* unused time is not kept */
    worker_budget.window = window;
    return worker_budget.left_ns > 0;
}

uint32_t budget_wait_ms(uint64_t now_ms)
{
    return (uint32_t)(WINDOW_MS - now_ms % WINDOW_MS);
}

uint64_t budget_clock(const struct budget_limits *limits)
{
    struct timespec now;
    if (!is_limited(limits) || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) < 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void budget_spend(const struct budget_limits *limits, uint64_t since)
{
    assert(!is_limited(limits) || since <= budget_clock(limits));
    worker_budget.left_ns -= (int64_t)(budget_clock(limits) - since);
}

static const struct mk_counter_info responses = {"compress", "responses", "compressed responses, by coding",
                                                 MK_COUNTER_SUM};
static const struct mk_counter_info bytes_in = {"compress", "input_bytes",
                                                "bytes of bodies before they were compressed, by coding",
                                                MK_COUNTER_SUM};
static const struct mk_counter_info bytes_out = {"compress", "output_bytes", "bytes of compressed bodies, by coding",
                                                 MK_COUNTER_SUM};
static const struct mk_counter_info skipped = {
    "compress", "skipped_responses",
    "responses that were not compressed because of Streams, CpuLimit or the memory, by coding", MK_COUNTER_SUM};

enum { CODINGS = MK_CODING_COUNT - 1 }; /* without MK_CODING_IDENTITY */
#define PLACE(count, coding) ((count)*CODINGS + (coding)-1)
#define ROWS(count, info) \
    [PLACE(count, MK_CODING_GZIP)] = {&(info), {"coding", "gzip"}}, \
                  [PLACE(count, MK_CODING_BR)] = {&(info), {"coding", "br"}}, \
                  [PLACE(count, MK_CODING_ZSTD)] = {&(info), {"coding", "zstd"}}

static const struct mk_counter_row rows[CODING_COUNTS * CODINGS] = {
    ROWS(CODING_RESPONSES, responses),
    ROWS(CODING_BYTES_IN, bytes_in),
    ROWS(CODING_BYTES_OUT, bytes_out),
    ROWS(CODING_SKIPPED, skipped),
};

static const struct mk_counter *counters[CODING_COUNTS * CODINGS];

void coding_counters_open(void)
{
    mk_counters_open(rows, CODING_COUNTS * CODINGS, counters);
}

/* Adds to a counter. In the thread of the worker; NULL: none. */
static void add_to_counter(enum coding_count count, enum mk_coding coding, const struct mk_worker *worker, size_t n)
{
    assert(count < CODING_COUNTS && coding > MK_CODING_IDENTITY && coding < MK_CODING_COUNT);
    mk_counter_add(counters[PLACE(count, coding)], worker, (int64_t)n);
}

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
        add_to_counter(CODING_BYTES_IN, f->coding, f->worker, f->input_len);
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
    add_to_counter(CODING_BYTES_OUT, f->coding, f->worker, (size_t)(at - to));
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
    add_to_counter(err < 0 ? CODING_SKIPPED : CODING_RESPONSES, coding, worker, 1);
    if (err < 0) {
        mk_account_free(account, f, sizeof(*f) + input);
        return err;
    }
    err = mk_response_filter(req, read_compressed, f);
    if (err < 0)
        close_encoder(f); /* returns its budget now; the exchange frees `f` */
    return err;
}
