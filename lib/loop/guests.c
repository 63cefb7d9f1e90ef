// SPDX-License-Identifier: Apache-2.0
/*
 * The table of loop/guests.h. It grows by doubling: descriptors are the lowest numbers that are free, so it is never
 * much longer than the process has descriptors.
 */
#include "loop/guests.h"

#include <errno.h>
#include <string.h>

enum { FIRST_PLACES = 256 };

void mk__guests_init(struct mk__guests *g, struct mk_account *account, mk__guests_fn arrived)
{
    *g = (struct mk__guests){.account = account, .arrived = arrived};
}

static size_t table_bytes(uint32_t n)
{
    return n * sizeof(struct mk__guest);
}

void mk__guests_release(struct mk__guests *g)
{
    if (g->n)
        mk_account_free(g->account, g->table, table_bytes(g->n));
    g->table = NULL;
    g->n = 0;
}

static int grow(struct mk__guests *g, uint32_t fd)
{
    uint32_t n = g->n ? g->n : FIRST_PLACES;
    while (n <= fd)
        n *= 2;
    struct mk__guest *table = mk_account_alloc(g->account, table_bytes(n));
    if (!table)
        return -ENOMEM;
    if (g->n)
        memcpy(table, g->table, table_bytes(g->n));
    memset(table + g->n, 0, table_bytes(n - g->n));
    mk__guests_release(g);
    g->table = table;
    g->n = n;
    return 0;
}

int mk__guests_admit(struct mk__guests *g, int fd, uint32_t sequence, uint32_t events)
{
    if ((uint32_t)fd >= g->n && grow(g, (uint32_t)fd) < 0)
        return -ENOMEM;
    g->table[fd] = (struct mk__guest){.sequence = sequence};
    g->fd = fd;
    g->events = events;
    return 0;
}

uint32_t mk__guests_take(struct mk__guests *g, struct mk_event *event)
{
    uint32_t events = g->events;
    if (!events || event->fd != g->fd)
        return 0;
    g->events = 0;
    g->table[event->fd].event = event;
    return events;
}

bool mk__guests_forget(struct mk__guests *g, const struct mk_event *event)
{
    struct mk__guest *guest = (uint32_t)event->fd < g->n ? &g->table[event->fd] : NULL;
    if (!guest || guest->event != event)
        return false;
    guest->event = NULL;
    return true;
}

void mk__guests_ready(struct mk__guests *g, uint64_t tag, uint32_t events)
{
    uint32_t fd = (uint32_t)tag >> 1, sequence = (uint32_t)(tag >> 32);
    struct mk__guest *guest = fd < g->n ? &g->table[fd] : NULL;
    if (!guest || guest->sequence != sequence)
        g->arrived(g, (int)fd, sequence, events);
    else if (guest->event)
        guest->event->ready(guest->event, events);
}
