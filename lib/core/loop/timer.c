// SPDX-License-Identifier: Apache-2.0
/*
 * The timing wheel of loop/timer.h. It has no clock: its owner passes the time.
 */
#include "loop/timer.h"

#include <assert.h>

enum { SLOT_BITS = 6, SLOT_MASK = MK__WHEEL_SLOTS - 1 };

/* The longest delay that a slot can hold; a later deadline is inserted again when that slot is reached. */
static const uint64_t REACH_MS = (1ULL << (SLOT_BITS * MK__WHEEL_LEVELS)) - 1;

void mk__wheel_init(struct mk__wheel *wheel, uint64_t now_ms)
{
    wheel->now_ms = now_ms;
    wheel->next_ms = UINT64_MAX;
    for (int level = 0; level < MK__WHEEL_LEVELS; level++) {
        wheel->used[level] = 0;
        for (int slot = 0; slot < MK__WHEEL_SLOTS; slot++)
            mk_list_init(&wheel->slots[level][slot]);
    }
}

static int find_level(uint64_t delay_ms)
{
    int level = 0;
    while (delay_ms >= MK__WHEEL_SLOTS) {
        delay_ms >>= SLOT_BITS;
        level++;
    }
    return level;
}

static void insert_timer(struct mk__wheel *wheel, struct mk_timer *timer)
{
    assert(timer->fn && mk_list_empty(&timer->node));
    uint64_t at = timer->deadline_ms;
    if (at <= wheel->now_ms)
        at = wheel->now_ms + 1;
    if (at - wheel->now_ms > REACH_MS)
        at = wheel->now_ms + REACH_MS;
    int level = find_level(at - wheel->now_ms);
    assert(level < MK__WHEEL_LEVELS);
    uint64_t nth = at >> (SLOT_BITS * level), begins_ms = nth << (SLOT_BITS * level);
    timer->slot_ms = at;
    mk_list_add(&wheel->slots[level][nth & SLOT_MASK], &timer->node);
    wheel->used[level] |= 1ULL << (nth & SLOT_MASK);
    if (wheel->next_ms > begins_ms)
        wheel->next_ms = begins_ms;
}

void mk__wheel_arm(struct mk__wheel *wheel, struct mk_timer *timer, uint64_t deadline_ms)
{
    timer->deadline_ms = deadline_ms;
    if (!mk_list_empty(&timer->node)) {
        if (timer->slot_ms <= deadline_ms)
            return; /* inserted again when its slot is reached */
        mk_list_del(&timer->node);
    }
    insert_timer(wheel, timer);
}

/* Returns the time of the first slot that may hold timers. */
static uint64_t find_next_ms(const struct mk__wheel *wheel)
{
    uint64_t next = UINT64_MAX;
    for (int level = 0; level < MK__WHEEL_LEVELS; level++) {
        uint64_t used = wheel->used[level];
        if (!used)
            continue;
        int shift = SLOT_BITS * level;
        unsigned from = (unsigned)((wheel->now_ms >> shift) + 1) & SLOT_MASK;
        uint64_t turned = from ? used >> from | used << (MK__WHEEL_SLOTS - from) : used;
        uint64_t at = ((wheel->now_ms >> shift) + 1 + (unsigned)__builtin_ctzll(turned)) << shift;
        if (at < next)
            next = at;
    }
    return next;
}

/* Empties a slot: each timer fires if it is due, or is inserted again. */
static void expire_slot(struct mk__wheel *wheel, int level, unsigned slot)
{
    struct mk_list due;
    mk_list_init(&due);
    mk_list_join(&due, &wheel->slots[level][slot]);
    wheel->used[level] &= ~(1ULL << slot);
    while (!mk_list_empty(&due)) {
        struct mk_timer *timer = MK_LIST_FIRST(&due, struct mk_timer, node);
        mk_list_del(&timer->node);
        if (timer->deadline_ms <= wheel->now_ms)
            timer->fn(timer);
        else
            insert_timer(wheel, timer);
    }
}

__attribute__((noinline)) void mk__wheel_expire(struct mk__wheel *wheel, uint64_t now_ms)
{
    while (wheel->next_ms <= now_ms) {
        uint64_t next = wheel->next_ms;
        assert(next > wheel->now_ms && next == find_next_ms(wheel));
        wheel->now_ms = next;
        for (int level = MK__WHEEL_LEVELS - 1; level >= 0; level--) {
            int shift = SLOT_BITS * level;
            if ((next & ((1ULL << shift) - 1)) == 0)
                expire_slot(wheel, level, (unsigned)(next >> shift) & SLOT_MASK);
        }
        wheel->next_ms = find_next_ms(wheel);
    }
}
