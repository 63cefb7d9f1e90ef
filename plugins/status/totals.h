// SPDX-License-Identifier: Apache-2.0
/*
 * Sums of the server's counters, for the whole server and for each host. Knows their names.
 */
#ifndef STATUS_TOTALS_H
#define STATUS_TOTALS_H

#include <monkey/counters.h>

enum { TOTALS_HOSTS_MAX = 1024 };
enum totals_class { TOTALS_NONE, TOTALS_1XX, TOTALS_2XX, TOTALS_3XX, TOTALS_4XX, TOTALS_5XX, TOTALS_CLASSES };

extern const char *const totals_class_names[TOTALS_CLASSES];

struct totals_host {
    char name[MK_COUNTER_LABEL_VALUE_BYTES];
    uint16_t name_len;
    uint64_t requests, classes[TOTALS_CLASSES];
    uint64_t received_body_bytes, sent_body_bytes, responses_aborted;
    uint64_t sum_us, buckets[MK_COUNTER_BUCKETS];
};

struct totals {
    struct totals_host all; /* without a name */
    uint64_t accepted_connections, refused_connections, rejected_requests, timeouts, floods;
    int64_t connections;
    struct totals_host *hosts; /* by requests, the most first */
    unsigned n_hosts, room;
    bool omits_hosts; /* there are more of them, or no memory */
};

/* Adds one counter of the server to totals that were zeroed before the first one. totals_release() frees the hosts. */
void totals_add(struct totals *t, const struct mk_counter_value *v);
/* Sorts the hosts, when all counters were added. */
void totals_sort(struct totals *t);
void totals_release(struct totals *t);

#endif
