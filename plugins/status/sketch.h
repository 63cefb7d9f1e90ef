// SPDX-License-Identifier: Apache-2.0
/*
 * The busiest and the slowest paths of the last minutes, in memory of a fixed size: SpaceSaving (Metwally, Agrawal, El
 * Abbadi: "Efficient computation of frequent and top-k elements in data streams", 2005), once for each minute.
 *
 *     minute 27: busiest [path ...] slowest [path ...]    minute 28: ...    minute 29 (now): ...
 *
 * A path that is among more than 1/SKETCH_BUSIEST of a minute's requests is certainly found. The number of its requests
 * is never too small, and at most `excess` too large. A sketch belongs to one thread at a time; a copy of its bytes is
 * a sketch, too.
 */
#ifndef STATUS_SKETCH_H
#define STATUS_SKETCH_H

#include <monkey/str.h>

enum {
    SKETCH_MINUTES = 5,
    SKETCH_BUSIEST = 64,
    SKETCH_SLOWEST = 16,
    SKETCH_PATH_BYTES = 200, /* longer paths are cut */
    SKETCH_TOP = 20,         /* rows of a list */
};

struct sketch_path {
    uint64_t requests, excess; /* since the path was taken into the list; those of the path that it has replaced */
    uint64_t total_us, max_us;
    uint32_t hash;
    uint16_t len;
    char path[SKETCH_PATH_BYTES];
};

struct sketch_minute {
    uint64_t minute; /* its number */
    uint32_t n_busiest, n_slowest;
    struct sketch_path busiest[SKETCH_BUSIEST], slowest[SKETCH_SLOWEST];
};

/* Initialized with zeros. */
struct sketch {
    struct sketch_minute minutes[SKETCH_MINUTES];
};

/* Adds a request. `minute` counts up; `path` without query. */
void sketch_add(struct sketch *sketch, uint64_t minute, struct mk_str path, uint64_t us);

struct sketch_lists {
    unsigned n_busiest, n_slowest;
    struct sketch_path busiest[SKETCH_TOP]; /* by requests, the most first */
    struct sketch_path slowest[SKETCH_TOP]; /* by max_us, the slowest first */
};

/*
 * Makes the lists of the SKETCH_MINUTES up to `minute` from the sketches of `n` threads (NULL: none).
 * Returns 0 or -ENOMEM.
 */
int sketch_merge(struct sketch *const *sketches, unsigned n, uint64_t minute, struct sketch_lists *ret);

#endif
