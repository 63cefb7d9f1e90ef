// SPDX-License-Identifier: Apache-2.0
/*
 * The query of a request for a listing: ?sort=name|size|date &order=asc|desc &archive=tar|tar.gz|tar.zst. Other names
 * and values are ignored; of several of one name the first counts.
 */
#ifndef DIRLISTING_QUERY_H
#define DIRLISTING_QUERY_H

#include "rules.h"

struct query {
    int sort, order;       /* -1: not given */
    struct mk_str archive; /* as it was sent; `.p` NULL: not given */
};

/* Reads a query (`.p` NULL: none). Any bytes. */
struct query query_parse(struct mk_str text);

#endif
