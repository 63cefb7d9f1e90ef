// SPDX-License-Identifier: Apache-2.0
/*
 * Which connections a command is about: arguments such as state=idle.
 */
#ifndef CHEETAH_CONNS_H
#define CHEETAH_CONNS_H

#include "walk.h"

struct conns_query {
    struct conn_filter filter;
    uint64_t limit; /* 0: none */
};

/* Reads an argument. Returns false if it is wrong; the answer was ended then. */
bool conns_read_argument(struct client *c, struct mk_str word, struct conns_query *q);

#endif
