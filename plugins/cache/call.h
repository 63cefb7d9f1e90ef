// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of the API that look at all entries or wait for a disk: each is a job on disk threads, in slices, that outlives
 * its request if the client leaves.
 */
#ifndef CACHE_CALL_H
#define CACHE_CALL_H

#include "preload.h"
#include "scan.h"

enum {
    CALLS_MAX = 4 /* of the process at the same time */,
    CALL_WAIT_MS = 600000,
    CALL_TEXT_BYTES_MAX = 16 * 1024 * 1024
};

struct call;

/*
 * Works for a moment, and writes members of the answer. On a disk thread. Returns 1 (call it again), 0 (it is done) or
 * -errno, with a sentence in `error`.
 */
typedef int (*call_fn)(struct call *c);

struct call {
    struct mk_job job;
    struct call **owner;    /* in the request's arena: points to this struct while the call runs */
    struct mk_request *req; /* NULL: it has ended, or there was none */
    struct mk_worker *worker;
    struct cache *cache;
    const struct mk_host *host;
    const char *by; /* for the log: "the API"; a literal */
    call_fn work;
    int result;             /* of `work` */
    _Atomic bool cancelled; /* the client has left */
    uint64_t now_ms;
    int64_t wall_seconds;
    struct mk_buf out;
    const char *error;
    /* arguments, of which a call uses some */
    bool has_preload;
    struct preload preload;
    struct scan_query query;
    struct scan_target target;
    char path[PATH_BYTES], sitemap[PATH_BYTES], folder[PATH_BYTES]; /* with a NUL; empty: not given */
};

/*
 * Makes a call for a request, which owns it until call_start(). Returns NULL, and has responded: there are too many
 * calls, or there is no memory.
 */
struct call *call_new(struct mk_request *req, struct cache_worker *w);
/* The same without a request, for `host`. Returns NULL if there are too many, or without memory. */
struct call *call_new_for(struct cache_worker *w, const struct mk_host *host);
/* Frees a call that was not started. */
void call_free(struct call *c);
/* Starts the job, which responds at its end. Responds with 503 if it cannot be started. Returns 0 or -errno. */
int call_start(struct call *c, call_fn work);

/* The calls. */
int call_list_entries(struct call *c);
int call_reset(struct call *c);
int call_add(struct call *c);

#endif
