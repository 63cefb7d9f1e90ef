// SPDX-License-Identifier: Apache-2.0
/*
 * Which of several servers gets a request. Pure.
 */
#ifndef UPSTREAM_BALANCE_H
#define UPSTREAM_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

/* A server that may get the request. */
struct candidate {
    uint32_t weight; /* 0: it gets none */
    uint32_t load;   /* requests under way */
    uint64_t hash;   /* of its name */
};

/* What RoundRobin knows of a server. */
struct turn {
    int64_t credit;
};

/*
 * Return the index of a candidate, -1 if none has a weight. `random` are 64 random bits. LeastLoaded: of two, drawn by
 * weight, the one with the smaller load for its weight.
 */
int balance_least_loaded(const struct candidate *c, unsigned n, uint64_t random);
int balance_first(const struct candidate *c, unsigned n);
/*
 * The same by the hash of a key: that of the request and of a server decide together, so that only the keys of a server
 * that goes move (rendezvous hashing), each server by its weight. One with a quarter more to do than its share is
 * passed over (bounded load).
 */
int balance_hash(const struct candidate *c, unsigned n, uint64_t key);
/*
 * The same, in turns by weight, such that the turns of a server lie as far apart as can be. `turns`, which this call
 * changes, begin with zeros.
 */
int balance_round_robin(const struct candidate *c, struct turn *const *turns, unsigned n);

#endif
