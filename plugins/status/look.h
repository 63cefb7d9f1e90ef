// SPDX-License-Identifier: Apache-2.0
/*
 * One look at the server: asks all workers for their figures, then renders a text from them and from the counters.
 *
 *     look_start ─► a call to each thread ─► replies, or LOOK_WAIT_MS ─► job: render ─► done
 *
 * A worker that does not answer in time is marked. One that has LOOK_WAITING_MAX questions already is not asked again.
 */
#ifndef STATUS_LOOK_H
#define STATUS_LOOK_H

#include "threads.h"

enum { LOOK_WAIT_MS = 1000, LOOK_WAITING_MAX = 4, LOOK_TEXT_BYTES_MAX = 64 * 1024 * 1024 };

/* What a worker answers. */
struct look_worker {
    unsigned index;
    bool up; /* false: it has not answered, and the other fields are 0 */
    uint64_t memory_bytes, memory_bytes_max, loop_turns, requests;
    uint32_t connections;
    struct sketch *sketch; /* a copy; NULL: none */
};

struct look;
/* Renders into `out`, in a disk thread. `workers` are in no particular order. */
typedef void (*look_render_fn)(const struct look_worker *workers, unsigned n, struct mk_buf *out, void *ctx);
/* Is called in the worker's thread. `text` is empty after an error, which `err` tells; the callee takes the buffer. */
typedef void (*look_done_fn)(struct mk_buf text, void *ctx);

struct look_callbacks {
    look_render_fn render;
    look_done_fn done;
    void (*release)(void *ctx); /* the look is over, also if it was cancelled: `ctx` is not used any more */
};

/*
 * Begins a look for `worker`, whose thread calls this and is `thread`. `paths`: with copies of the sketches.
 * Returns the look, which is valid until `done` is called or look_cancel(); NULL without memory: nothing is called.
 */
struct look *look_start(struct mk_thread *thread, struct mk_worker *worker, bool paths,
                        const struct look_callbacks *callbacks, void *ctx);

/* Ends the look; `done` is not called any more. In its thread. `release` is called now, or when the job has ended. */
void look_cancel(struct look *look);

#endif
