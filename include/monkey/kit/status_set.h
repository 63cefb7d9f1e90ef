// SPDX-License-Identifier: Apache-2.0
/*
 * Sets of statuses, as `502 503` and `200-399` of a directive write them. Pure. In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_STATUS_SET_H
#define MONKEY_STATUS_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/str.h"

MK_C_BEGIN

enum { MK_STATUS_SET_FIRST = 100, MK_STATUS_SET_LAST = 599 };

/* All zeros: it is empty. */
struct mk_status_set {
    uint64_t bits[(MK_STATUS_SET_LAST - MK_STATUS_SET_FIRST) / 64 + 1];
};

/* Adds a status or a range of them. Returns 0 or -EINVAL, and nothing is added. */
MK_API int mk_status_set_add(struct mk_status_set *set, struct mk_str word);

/* Returns true if the set has the status; never for one outside of its bounds. */
static inline bool mk_status_set_has(const struct mk_status_set *set, unsigned status)
{
    unsigned bit = status - MK_STATUS_SET_FIRST;
    return status >= MK_STATUS_SET_FIRST && status <= MK_STATUS_SET_LAST && (set->bits[bit / 64] >> (bit % 64) & 1);
}

MK_C_END

#endif
