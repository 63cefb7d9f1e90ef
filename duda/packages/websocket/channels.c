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

enum { BUCKETS_MIN = 16 };

struct channel {
    struct channel *next; /* in its bucket */
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
    assert(!channels->n);
    pthread_mutex_destroy(&channels->lock);
    mem->free(channels->buckets);
}

/* Returns where the pointer to a channel is, or the end of its bucket. */
static struct channel **find_place(struct channel **buckets, unsigned n, int number)
{
    uint32_t hash = (uint32_t)number * 2654435761u; /* Knuth: the golden ratio of 2^32 */
    struct channel **place = &buckets[(hash >> 7) & (n - 1)];
    while (*place && (*place)->number != number)
        place = &(*place)->next;
    return place;
}

/* Keeps as many buckets as channels. Returns false if there is none. */
static bool grow_table(struct channels *channels)
{
    unsigned n = channels->n_buckets ? channels->n_buckets * 2 : BUCKETS_MIN;
    if (channels->n < channels->n_buckets)
        return true;
    struct channel **buckets = mem->alloc_z(n * sizeof(struct channel *));
    if (!buckets)
        return channels->buckets; /* longer lists will do */
    for (unsigned i = 0; i < channels->n_buckets; i++) {
        for (struct channel *c = channels->buckets[i], *next; c; c = next) {
            next = c->next;
            c->next = NULL;
            *find_place(buckets, n, c->number) = c;
        }
    }
    mem->free(channels->buckets);
    channels->buckets = buckets;
    channels->n_buckets = n;
    return true;
}

static struct channel *get_channel(struct channels *channels, int number)
{
    if (!grow_table(channels))
        return NULL;
    struct channel **place = find_place(channels->buckets, channels->n_buckets, number);
    if (!*place && (*place = mem->alloc_z(sizeof(struct channel)))) {
        (*place)->number = number;
        channels->n++;
        duda_package_loader->count(NULL, channels->counter, 1);
    }
    return *place;
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
    struct channel **place = find_place(channels->buckets, channels->n_buckets, number), *c = *place;
    assert(c && c->count);
    if (--c->count == 0) {
        *place = c->next;
        channels->n--;
        duda_package_loader->count(NULL, channels->counter, -1);
        mem->free(c);
    }
    pthread_mutex_unlock(&channels->lock);
}

size_t channels_count(struct channels *channels, int number)
{
    pthread_mutex_lock(&channels->lock);
    struct channel *c = channels->buckets ? *find_place(channels->buckets, channels->n_buckets, number) : NULL;
    size_t count = c ? c->count : 0;
    pthread_mutex_unlock(&channels->lock);
    return count;
}
