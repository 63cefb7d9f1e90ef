// SPDX-License-Identifier: Apache-2.0
#include "process.h"

struct process upstream_process = {
    .names_lock = LOCK_INIT(LOCK_NAMES),
    .servers_lock = LOCK_INIT(LOCK_SERVERS),
    .pools_lock = LOCK_INIT(LOCK_POOLS),
    .admins_lock = LOCK_INIT(LOCK_ADMINS),
    .names = {&upstream_process.names, &upstream_process.names},
    .retired = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = &upstream_process.retired.first},
    .sticky = {.lock = LOCK_INIT(LOCK_STICKY)},
};

static _Thread_local uint32_t held; /* a bit for each level */

bool lock_order_enter(enum lock_level level)
{
    bool is_right = !(held >> level) && (level < LOCK_RUNNERS || !held);
    held |= (uint32_t)1 << level;
    return is_right;
}

bool lock_order_leave(enum lock_level level)
{
    bool is_held = held >> level & 1;
    held &= ~((uint32_t)1 << level);
    return is_held;
}
