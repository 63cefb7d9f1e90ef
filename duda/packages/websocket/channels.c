// SPDX-License-Identifier: Apache-2.0
/*
 * How many WebSockets each channel has (channels.h).
 */
#include "channels.h"

#include <duda/mem.h>
#include <duda/package.h>
#include <duda/packages/websocket/websocket.h>

#include <assert.h>
#include <stdint.h>

struct channel {
    struct mk_hash_node node; /* in channels.table */
    int number;
    size_t count;
};

void channels_init(struct channels *channels, const struct mk_counter *counter)
{
    *channels = (struct channels){.counter = counter};
    pthread_mutex_init(&channels->lock, NULL);
}

void channels_release(struct channels *channels)
{
    assert(!channels->table.n);
    pthread_mutex_destroy(&channels->lock);
    mk_hash_release(&channels->table, NULL);
}

static struct channel *find_channel(const struct channels *channels, int number)
{
    struct mk_hash_node *n;
    MK_HASH_EACH(&channels->table, mk_hash_number((uint32_t)number), n) {
        struct channel *c = MK_CONTAINER_OF(n, struct channel, node);
        if (c->number == number)
            return c;
    }
    return NULL;
}

static struct channel *get_channel(struct channels *channels, int number)
{
    struct channel *c = find_channel(channels, number);
    if (c || !(c = mem->alloc_z(sizeof(*c))))
        return c;
    c->number = number;
    if (mk_hash_insert(&channels->table, NULL, &c->node, mk_hash_number((uint32_t)number)) < 0) {
        mem->free(c);
        return NULL;
    }
    duda_package_loader->count(NULL, channels->counter, 1);
    return c;
}

bool channels_join(struct channels *channels, int number)
{
    if (number == WS_CHANNEL_ALL)
        return true;
    pthread_mutex_lock(&channels->lock);
    struct channel *c = get_channel(channels, number);
    if (c)
        c->count++;
    pthread_mutex_unlock(&channels->lock);
    return c;
}

void channels_leave(struct channels *channels, int number)
{
    if (number == WS_CHANNEL_ALL)
        return;
    pthread_mutex_lock(&channels->lock);
    struct channel *c = find_channel(channels, number);
    assert(c && c->count);
    if (--c->count == 0) {
        mk_hash_remove(&channels->table, &c->node);
        duda_package_loader->count(NULL, channels->counter, -1);
        mem->free(c);
    }
    pthread_mutex_unlock(&channels->lock);
}

size_t channels_count(struct channels *channels, int number)
{
    pthread_mutex_lock(&channels->lock);
    const struct channel *c = find_channel(channels, number);
    size_t count = c ? c->count : 0;
    pthread_mutex_unlock(&channels->lock);
    return count;
}
