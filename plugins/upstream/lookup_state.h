// SPDX-License-Identifier: Apache-2.0
/*
 * What the files of a lookup share: lookup_ask.c has questions and answers, lookup_io.c waits for sockets and time.
 */
#ifndef UPSTREAM_LOOKUP_STATE_H
#define UPSTREAM_LOOKUP_STATE_H

#include "dns_answer.h"
#include "conf.h"

#include <ares.h>

enum { LOOKUP_SOCKETS_MAX = ARES_GETSOCK_MAXNUM - 1 }; /* the macros shift the last one into the sign */

/* What an SRV record names; of a lookup without SRV the one name. */
struct target {
    uint16_t priority, weight, port;
    char host[DNS_NAME_BYTES_MAX + 1];
};

struct question {
    struct lookup *lookup;
    const struct target *target; /* NULL: the question for SRV records */
    uint16_t type;               /* enum dns_type */
};

/* A socket of c-ares. */
struct lookup_socket {
    struct mk_event event; /* fd < 0: free */
    struct lookup *lookup;
};

struct lookup {
    const struct lookup_query *query;
    ares_channel channel; /* NULL: not opened */
    struct target *targets;
    struct question *questions; /* for the addresses of the targets */
    struct question srv;
    unsigned n_targets, n_questions, asked, pending; /* asked: of `questions` */
    bool is_asking, has_ended;
    int answer, failure; /* of c-ares: why there are no addresses, and why an answer is missing */
    struct lookup_result result;
    /* of lookup_start() */
    struct mk_loop *loop; /* NULL: lookups_wait() */
    lookup_fn fn;
    void *ctx;
    uint64_t deadline_ms;
    struct mk_timer timer;
    struct mk_task task;
    struct lookup_socket sockets[LOOKUP_SOCKETS_MAX];
    unsigned n_polled; /* of lookups_wait(): its sockets */
};

/* Asks the first questions; from then on the lookup may have ended after each call. */
void lookup_begin(struct lookup *l);
/* Gives up the questions without an answer. */
void lookup_expire(struct lookup *l);
/* c-ares opens, changes or closes a socket (ares_sock_state_cb). */
void lookup_on_socket(void *ctx, int fd, int readable, int writable);

#endif
