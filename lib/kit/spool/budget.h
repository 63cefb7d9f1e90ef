// SPDX-License-Identifier: Apache-2.0
/*
 * What the spools of a process may use together. Any thread.
 */
#ifndef MK_SPOOL_BUDGET_H
#define MK_SPOOL_BUDGET_H

#include <monkey/spool.h>

#include <stdatomic.h>

/* One kind of what is limited. */
struct mk__spool_use {
    _Atomic uint64_t used, max;
};

struct mk_spool_budget {
    int folder; /* -1: none */
    struct mk__spool_use memory, disk, files;
};

/* Reserves `n` more. Returns whether the limit allows it. */
bool mk__spool_budget_reserve(struct mk__spool_use *use, uint64_t n);
void mk__spool_budget_release(struct mk__spool_use *use, uint64_t n);

#endif
