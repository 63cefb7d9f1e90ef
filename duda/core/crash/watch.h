// SPDX-License-Identifier: Apache-2.0
/*
 * Logs a service that blocks a worker for more than a second: once when it is noticed, and again when it ends.
 *
 *     worker      watch_begin: calls + 1, which is odd ─► code of the service ─► watch_end: calls + 1
 *     watchdog    looks at all slots four times a second; an odd count that stays the same for a second is an incident
 *
 * The watchdog is one thread of the process, which runs as long as there is a slot. It sleeps while no service was
 * called for some seconds; the next call wakes it.
 */
#ifndef DUDA_CORE_CRASH_WATCH_H
#define DUDA_CORE_CRASH_WATCH_H

#include "common/watch_slot.h"

/*
 * Watches a slot, whose `service` and `worker` or `call` are set. Returns 0 or -errno: it is not watched. Any thread,
 * as watch_remove(), which must be called in both cases.
 */
int watch_add(struct watch_slot *slot);
void watch_remove(struct watch_slot *slot);
/* Looks at a slot, as the watchdog does. Returns true if the service was called since the last look, or still is. */
bool watch_check(struct watch_slot *slot, uint64_t now_ms);

#endif
