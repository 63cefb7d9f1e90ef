// SPDX-License-Identifier: Apache-2.0
/*
 * The figures of a server at one moment, and how they have changed between two.
 */
#ifndef SHELL_SAMPLE_H
#define SHELL_SAMPLE_H

#include "link.h"

#include <monkey/counters.h>

enum {
    SAMPLE_HOSTS_MAX = 256,
    SAMPLE_HOST_BYTES = 256,
    SAMPLE_CLASSES = 6, /* of statuses: none, 1xx to 5xx */
    SAMPLE_STATES_MAX = 24,
    SAMPLE_TEXT_BYTES = 64,
};

/* What is counted by host. */
struct sample_counts {
    uint64_t classes[SAMPLE_CLASSES]; /* requests */
    uint64_t sent, received;          /* bytes of bodies */
    uint64_t durations;
    uint64_t buckets[MK_COUNTER_BUCKETS];
};

struct sample_host {
    char name[SAMPLE_HOST_BYTES];
    struct sample_counts counts;
};

struct sample_state {
    char name[SAMPLE_TEXT_BYTES];
    long long connections;
};

struct sample {
    double at; /* of CLOCK_MONOTONIC, in seconds */
    char version[SAMPLE_TEXT_BYTES], state[SAMPLE_TEXT_BYTES];
    char warning[4 * SAMPLE_TEXT_BYTES]; /* of the server: a worker does not answer; empty: none */
    long long process, uptime_s, workers, connections, under_way, memory_bytes;
    struct sample_counts total;
    uint64_t accepted, refused, timeouts;
    struct sample_state states[SAMPLE_STATES_MAX];
    struct sample_host hosts[SAMPLE_HOSTS_MAX]; /* further ones are in `total` only */
    unsigned n_states, n_hosts;
};

/* Asks the server. Returns 1, 0 (the server has no counters, or a command has failed) or -errno, as link_ask(). */
int sample_take(struct link *l, struct sample *ret);

/* What happened in a second. */
struct sample_rates {
    double requests, classes[SAMPLE_CLASSES], sent, received;
    bool timed;              /* there are durations: */
    uint64_t p50_us, p99_us; /* of the requests that have ended meanwhile */
};

/* `before` NULL: there was nothing before. A counter that is less than before, of another process, counts from 0. */
void sample_compare(const struct sample_counts *before, const struct sample_counts *now, double seconds,
                    struct sample_rates *ret);
/* Returns the counts of a host, or NULL. */
const struct sample_counts *sample_find(const struct sample *s, const char *host);

#endif
