// SPDX-License-Identifier: Apache-2.0
/*
 * The table of loop/handoff.h. It grows by doubling: new descriptors get the lowest free number, so the table is never
 * much longer than the number of descriptors that the process has open.
 */
#include "loop/handoff.h"

#include <errno.h>
#include <string.h>

enum { FIRST_ENTRIES = 256 };

void mk__handoff_init(struct mk__handoff *g, struct mk_account *account, mk__handoff_fn on_new_fd)
{
    *g = (struct mk__handoff){.account = account, .on_new_fd = on_new_fd};
}

static size_t table_bytes(uint32_t n)
{
    return n * sizeof(struct mk__handoff_fd);
}

void mk__handoff_release(struct mk__handoff *g)
{
    if (g->n)
        mk_account_free(g->account, g->table, table_bytes(g->n));
    g->table = NULL;
    g->n = 0;
}

static int grow_table(struct mk__handoff *g, uint32_t fd)
{
    uint32_t n = g->n ? g->n : FIRST_ENTRIES;
    while (n <= fd)
        n *= 2;
    struct mk__handoff_fd *table = mk_account_alloc(g->account, table_bytes(n));
    if (!table)
        return -ENOMEM;
    if (g->n)
        memcpy(table, g->table, table_bytes(g->n));
    memset(table + g->n, 0, table_bytes(n - g->n));
    mk__handoff_release(g);
    g->table = table;
    g->n = n;
    return 0;
}

int mk__handoff_admit(struct mk__handoff *g, int fd, uint32_t sequence, uint32_t events)
{
    if ((uint32_t)fd >= g->n && grow_table(g, (uint32_t)fd) < 0)
        return -ENOMEM;
    g->table[fd] = (struct mk__handoff_fd){.sequence = sequence};
    g->fd = fd;
    g->events = events;
    return 0;
}

uint32_t mk__handoff_take(struct mk__handoff *g, struct mk_event *event)
{
    uint32_t events = g->events;
    if (!events || event->fd != g->fd)
        return 0;
    g->events = 0;
    g->table[event->fd].event = event;
    return events;
}

bool mk__handoff_forget(struct mk__handoff *g, const struct mk_event *event)
{
    struct mk__handoff_fd *entry = (uint32_t)event->fd < g->n ? &g->table[event->fd] : NULL;
    if (!entry || entry->event != event)
        return false;
    entry->event = NULL;
    return true;
}

void mk__handoff_dispatch(struct mk__handoff *g, uint64_t tag, uint32_t events)
{
    uint32_t fd = (uint32_t)tag >> 1, sequence = (uint32_t)(tag >> 32);
    struct mk__handoff_fd *entry = fd < g->n ? &g->table[fd] : NULL;
    if (!entry || entry->sequence != sequence)
        g->on_new_fd(g, (int)fd, sequence, events);
    else if (entry->event)
        entry->event->ready(entry->event, events);
}
