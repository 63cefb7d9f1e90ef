// SPDX-License-Identifier: Apache-2.0
/*
 * One snapshot of the server: asks all workers for their figures, then renders a text from them and from the counters.
 *
 *     snapshot_start ─► a call to each thread ─► replies, or SNAPSHOT_WAIT_MS ─► job: render ─► done
 *
 * A worker that does not answer in time is marked. One that has SNAPSHOT_WAITING_MAX questions already is not asked
 * again.
 */
#ifndef STATUS_SNAPSHOT_H
#define STATUS_SNAPSHOT_H

#include "threads.h"

enum { SNAPSHOT_WAIT_MS = 1000, SNAPSHOT_WAITING_MAX = 4, SNAPSHOT_TEXT_BYTES_MAX = 64 * 1024 * 1024 };

/* What a worker answers. */
struct snapshot_worker {
    unsigned index;
    bool up; /* false: it has not answered, and the other fields are 0 */
    uint64_t memory_bytes, memory_bytes_max, loop_turns, requests;
    uint32_t connections;
    struct sketch *sketch; /* a copy; NULL: none */
};

struct snapshot;
/* Renders into `out`, in a disk thread. `workers` are in no particular order. */
typedef void (*snapshot_render_fn)(const struct snapshot_worker *workers, unsigned n, struct mk_buf *out, void *ctx);
/* Is called in the worker's thread. `text` is empty after an error, which `err` tells; the callee takes the buffer. */
typedef void (*snapshot_done_fn)(struct mk_buf text, void *ctx);

struct snapshot_callbacks {
    snapshot_render_fn render;
    snapshot_done_fn done;
    void (*release)(void *ctx); /* the snapshot is over, also if it was cancelled: `ctx` is not used any more */
};

/*
 * Begins a snapshot for `worker`, whose thread calls this and is `thread`. `paths`: with copies of the sketches.
 * Returns the snapshot, which is valid until `done` is called or snapshot_cancel(); NULL without memory: nothing is
 * called.
 */
struct snapshot *snapshot_start(struct mk_thread *thread, struct mk_worker *worker, bool paths,
                                const struct snapshot_callbacks *callbacks, void *ctx);

/* Ends the snapshot; `done` is not called any more. In its thread. `release` is called now, or when the job has ended.
 */
void snapshot_cancel(struct snapshot *snapshot);

#endif
