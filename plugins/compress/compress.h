// SPDX-License-Identifier: Apache-2.0
#ifndef COMPRESS_COMPRESS_H
#define COMPRESS_COMPRESS_H

#include <monkey/base/arena.h>
#include <monkey/base/str.h>
#include <monkey/counters.h>
#include <monkey/plugin.h>
#include <monkey/request.h>

#include <stdbool.h>
#include <stddef.h>

/*
 * Compares media types and lists in headers. Keeps no state.
 */
/* Returns true for a type as a rule may have it: `text/html`, `text/` with a star, or a star with `+json`. */
bool match_is_type_pattern(struct mk_str s);

/*
 * Returns true if the pattern matches this Content-Type, without its parameters. A star never matches
 * text/event-stream: each such stream would hold an encoder as long as it lasts.
 */
bool match_type(struct mk_str pattern, struct mk_str type);

/*
 * Counts compressed responses and their bytes by coding, and responses that were not compressed for lack of room or
 * processor time. The counters are those of the process.
 */
enum coding_count { CODING_RESPONSES, CODING_BYTES_IN, CODING_BYTES_OUT, CODING_SKIPPED, CODING_COUNTS };

/* Opens the counters. In the start of the plugin; opening them again changes nothing. */
void coding_counters_open(void);

/*
 * A heap within one piece of memory: first fit; free neighbours are merged. For a library with few allocations that
 * must not fail.
 */
struct fixed_heap_block;

struct fixed_heap {
    struct fixed_heap_block *first;
    size_t size;
    size_t used_max; /* the end of the last block that was ever used */
};

/* Prepares a heap. `memory`: aligned to 16, remains the caller's; `size`: a multiple of 16. */
void fixed_heap_init(struct fixed_heap *heap, void *memory, size_t size);

/* Allocates, aligned to 16; NULL if no free block is large enough. */
void *fixed_heap_alloc(struct fixed_heap *heap, size_t size);
/* Frees. Returns false if `ptr` is not from this heap. */
bool fixed_heap_free(struct fixed_heap *heap, void *ptr);

/*
 * One interface for the encoders of zlib, libbrotlienc and libzstd: bytes in, bytes out, as far as there is room.
 *
 * An encoder counts its memory on an account. Opening it fails if there is not enough; later calls do not.
 * encoder_bytes_max() is the most that it may use. An encoder belongs to one thread at a time.
 */
/* The highest levels that do not need tens of megabytes, or tens of milliseconds in one call. */
enum { ENCODER_ZSTD_MAX = 12, ENCODER_BR_MAX = 6, ENCODER_GZIP_MAX = 9 };

/* A body of unknown length. */
#define ENCODER_SIZE_UNKNOWN UINT64_MAX

/* Process: take input. Flush: also write out all that is held back. Finish: write the end. */
enum encoder_op { ENCODER_PROCESS, ENCODER_FLUSH, ENCODER_FINISH };

struct encoder;

struct encoder_data {
    const char *in;
    size_t in_len;
    char *out;
    size_t out_len;
};

/* Returns the most that an encoder may use. `size`: of the whole body, or ENCODER_SIZE_UNKNOWN. */
size_t encoder_bytes_max(enum mk_coding coding, int level, uint64_t size);

/* Opens an encoder; NULL without memory. */
struct encoder *encoder_open(struct mk_account *account, enum mk_coding coding, int level, uint64_t size);
void encoder_close(struct encoder *e);

/*
 * Runs `op`, and advances `in` and `out` of `data`.
 * Returns 0 (done), MK_AGAIN (it needs more room: call it with the same `op` and no new input) or -EIO.
 */
int encoder_run(struct encoder *e, enum encoder_op op, struct encoder_data *data);

/*
 * Limits of compressing for one worker: streams at the same time, memory, processor time. Each worker counts in
 * thread-local variables, so that all generations share the limits.
 */
struct budget_limits {
    int64_t cpu_percent; /* of the worker's time; 0 and 100: no limit */
    int64_t streams;
};

/*
 * Reserves a stream of at most `bytes`. All streams together get half of the account's limit. Returns false if there is
 * no room. Release it with the same `bytes`, in the same worker.
 */
bool budget_reserve(const struct budget_limits *limits, const struct mk_account *account, size_t bytes);
void budget_release(size_t bytes);

/* Returns true if time is left in this window of 100 ms. */
bool budget_has_time(const struct budget_limits *limits, uint64_t now_ms);
/* Returns the time until the next window. */
uint32_t budget_wait_ms(uint64_t now_ms);

/* Returns the processor time of the thread in nanoseconds; 0 without a limit. */
uint64_t budget_clock(const struct budget_limits *limits);
/* Counts the processor time since then. */
void budget_spend(const struct budget_limits *limits, uint64_t since);

/*
 * The filter that passes a response's body through an encoder.
 */
struct mk_worker;

/*
 * Adds the filter to a response whose head was not sent. `size` is that of the body, or ENCODER_SIZE_UNKNOWN; `limits`
 * and `worker` (which counts; NULL: none) must live as long as `req`.
 * Returns 0, or -errno (the body is not compressed).
 */
int filter_start(struct mk_request *req, enum mk_coding coding, int level, uint64_t size,
                 const struct budget_limits *limits, const struct mk_worker *worker);

#endif
