// SPDX-License-Identifier: Apache-2.0
/* Returns free memory to the system (server/worker/heap_trim.h). */
#include "server/worker/heap_trim.h"

#include "base/log.h"

#include <malloc.h>

enum { DELAY_MS = 1000, PAUSE_MS = 5000, HEAP_FREE_MIN = 8 * 1024 * 1024 };

/* Of the C library of GNU, from 2.33 on; others have none, or return memory at once. */
int malloc_trim(size_t pad) __attribute__((weak));
struct mallinfo2 mallinfo2(void) __attribute__((weak));

/* Returns whether there was enough. */
static bool trim_heap(void)
{
    struct mallinfo2 before = mallinfo2();
    if (before.fordblks < HEAP_FREE_MIN || before.fordblks < before.uordblks)
        return false;
    malloc_trim(0);
    mk_log_debug("memory: of %zu KB in use and %zu KB free the latter are given back to the system",
                 before.uordblks / 1024, before.fordblks / 1024);
    return true;
}

static void arm_timer(struct mk__heap_trim *h)
{
    uint64_t now = mk_loop_now_ms(h->loop);
    h->is_armed = true;
    mk_timer_arm(h->loop, &h->timer, h->next_ms > now + DELAY_MS ? (uint32_t)(h->next_ms - now) : DELAY_MS);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk__heap_trim *h = MK_CONTAINER_OF(timer, struct mk__heap_trim, timer);
    h->is_armed = false;
    if (trim_heap())
        h->next_ms = mk_loop_now_ms(h->loop) + PAUSE_MS;
    if (!h->is_second) { /* what the last connection held may be freed after the first look */
        h->is_second = true;
        arm_timer(h);
    }
}

void mk__heap_trim_init(struct mk__heap_trim *h, struct mk_loop *loop)
{
    *h = (struct mk__heap_trim){.loop = malloc_trim && mallinfo2 ? loop : NULL};
    /* under a sanitizer the first call initializes the C library's heap, which two threads may not do at a time */
    if (h->loop)
        (void)mallinfo2();
    mk_timer_init(&h->timer, on_timer);
}

void mk__heap_trim_note(struct mk__heap_trim *h)
{
    h->is_second = false;
    if (h->loop && !h->is_armed)
        arm_timer(h);
}
