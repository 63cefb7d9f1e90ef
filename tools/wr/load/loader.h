// SPDX-License-Identifier: Apache-2.0
/*
 * What the connections of a thread share: its part of the requests and of the rate, and its counters, which are added
 * up when it has ended. The plan is shared by all threads and only read.
 *
 *     closed loop   a connection takes its next request when it has an answer
 *     open loop     requests have intended starts, at constant intervals; a connection without work waits in a ring,
 * and a start without a connection waits for one: then its number tells when it should have begun
 */
#ifndef WR_LOAD_LOADER_H
#define WR_LOAD_LOADER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#include "histogram.h"
#include "loop/loop.h"
#include "options.h"

enum load_error {
    ERROR_CONNECT,
    ERROR_READ,
    ERROR_TIMEOUT,
    ERROR_STATUS,
    ERROR_LENGTH,
    ERROR_HASH,
    ERROR_MALFORMED,
    ERRORS
};

enum {
    LOAD_BUFFER_BYTES = 64 * 1024,
    LOAD_STATUSES = 1000,
    LOAD_TEXT_MAX = 256,
};

struct conn;

/* A request in flight. */
struct flight {
    uint64_t start_ns; /* the intended start in the open loop, otherwise that of sending */
    uint32_t path;
    uint32_t receipts; /* of a broadcast */
    bool counted;
};

struct counts {
    uint64_t answers;           /* whole answers, right or wrong */
    uint64_t bytes, head_bytes; /* of them */
    uint64_t hashed;            /* answers whose hash was compared */
    uint64_t opened, resumed;   /* connections; TLS sessions that were resumed */
    uint64_t late_starts;       /* of the open loop: no connection was free at the intended time */
    uint64_t unanswered;        /* requests in flight, and intended starts that still waited, at the end */
    uint64_t errors[ERRORS];
    uint64_t statuses[LOAD_STATUSES];
};

struct loader {
    struct mk_loop loop;
    const struct plan *plan;
    unsigned index;
    bool stopped, gave_up;
    int event_fd; /* written when the thread ends */
    pthread_t thread;
    char *buffer;

    struct conn *conns, **idle; /* `idle`: the ring of the open loop */
    struct conn **ready;        /* to be filled at the end of the turn */
    unsigned ready_n;
    unsigned conns_n, opened_n; /* `opened_n`: have been opened once */
    unsigned idle_first, idle_n;
    unsigned address;     /* of the target: the one that answers */
    struct conn *current; /* its event is being handled */
    struct ssl_session_st *session;

    struct picker picker;
    bool has_quota;
    uint64_t wanted, quota, finished; /* of -n: requests in all, those left to start, and those that have ended */
    uint64_t start_ns, end_ns;
    uint64_t count_from_ns;      /* UINT64_MAX: in the warm-up */
    uint64_t starts, late_until; /* of the open loop: the next one, and those before this one are late */
    uint64_t due_ns;             /* intended start of the next one */
    double interval_ns;
    unsigned until_sample;
    uint64_t broadcasts; /* that all have received */

    struct mk_timer ramp, tick, phase;
    struct mk_message stop;
    struct rusage usage_from, usage_to;
    _Atomic uint64_t seen_answers, seen_errors; /* for --progress */
    char first_error[LOAD_TEXT_MAX];
    struct counts counts;
    struct histogram latencies;
};

static inline uint64_t loader_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Returns when the request number `n` of this thread is intended to start. */
uint64_t loader_find_start_ns(const struct loader *l, uint64_t n);
/* Returns how many starts of this thread are intended before `at_ns`. */
uint64_t loader_count_starts(const struct loader *l, uint64_t at_ns);
/* Gives the next request to a connection if one is due. Returns false otherwise. */
bool loader_take(struct loader *l, uint64_t now_ns, struct flight *ret);
/* Begins the warm-up, or the time that counts: of a broadcast when all connections are open. */
void loader_begin(struct loader *l, uint64_t now_ns);
/* The callback of loader.phase: the warm-up has ended, or the time that counts. */
void loader_end_phase(struct mk_timer *timer);
/* Tells whether a connection may send: of a broadcast the first one, when all are open. */
bool loader_may_send(const struct loader *l, const struct conn *c);
/* Counts an answered or failed request. */
void loader_finish(struct loader *l, const struct flight *flight);
/* Counts an error, and keeps the text of the first one. */
void loader_note_error(struct loader *l, enum load_error error, bool counted, const char *format, ...) MK_PRINTF(4, 5);

#endif
