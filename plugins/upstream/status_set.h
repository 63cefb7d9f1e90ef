// SPDX-License-Identifier: Apache-2.0
/*
 * Sets of statuses, as `502 503` and `200-399` of a directive write them. Pure.
 */
#ifndef UPSTREAM_STATUS_SET_H
#define UPSTREAM_STATUS_SET_H

#include <monkey/str.h>

#include <stdbool.h>
#include <stdint.h>

enum { STATUS_SET_FIRST = 100, STATUS_SET_LAST = 599 };

struct status_set {
    uint64_t bits[(STATUS_SET_LAST - STATUS_SET_FIRST) / 64 + 1];
};

/* Adds a status or a range of them. Returns 0 or -EINVAL, and nothing is added. */
int status_set_add(struct status_set *set, struct mk_str word);

static inline bool status_set_has(const struct status_set *set, unsigned status)
{
    unsigned bit = status - STATUS_SET_FIRST;
    return status >= STATUS_SET_FIRST && status <= STATUS_SET_LAST && (set->bits[bit / 64] >> (bit % 64) & 1);
}

#endif
