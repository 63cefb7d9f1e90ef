// SPDX-License-Identifier: Apache-2.0
/*
 * A hash table of channels (sse_channels.h).
 */
#include "request/sse_channels.h"

#include "common/heap.h"

#include <assert.h>

enum { BUCKETS_MIN = 16 };

/* Returns where the pointer to a channel is, or the end of its bucket. */
static struct sse_channel **find_place(struct sse_channel **buckets, unsigned n, struct mk_str name, uint64_t hash)
{
    assert(n && (n & (n - 1)) == 0);
    struct sse_channel **place = &buckets[hash & (n - 1)];
    while (*place && ((*place)->hash != hash || !mk_str_eq(mk_str((*place)->name, (*place)->len), name)))
        place = &(*place)->next;
    return place;
}

struct sse_channel *sse_channels_find(const struct sse_channels *channels, struct mk_str name, uint64_t hash)
{
    return channels->buckets ? *find_place(channels->buckets, channels->n_buckets, name, hash) : NULL;
}

/* Keeps as many buckets as channels. Returns false if there is none. */
static bool grow_table(struct sse_channels *channels)
{
    unsigned n = channels->n_buckets ? channels->n_buckets * 2 : BUCKETS_MIN;
    if (channels->n < channels->n_buckets)
        return true;
    struct sse_channel **buckets = heap_zalloc(n * sizeof(struct sse_channel *));
    if (!buckets)
        return channels->buckets; /* longer lists will do */
    for (unsigned i = 0; i < channels->n_buckets; i++) {
        for (struct sse_channel *c = channels->buckets[i], *next; c; c = next) {
            next = c->next;
            c->next = buckets[c->hash & (n - 1)];
            buckets[c->hash & (n - 1)] = c;
        }
    }
    heap_free(channels->buckets, channels->n_buckets * sizeof(struct sse_channel *));
    channels->buckets = buckets;
    channels->n_buckets = n;
    return true;
}

static struct sse_channel *get_channel(struct sse_channels *channels, struct mk_str name, uint64_t hash)
{
    if (!grow_table(channels))
        return NULL;
    struct sse_channel **place = find_place(channels->buckets, channels->n_buckets, name, hash), *c = *place;
    if (c || !(c = heap_zalloc(sizeof(*c) + name.len)))
        return c;
    c->hash = hash;
    c->len = name.len;
    memcpy(c->name, name.p, name.len);
    mk_list_init(&c->subscriptions);
    channels->n++;
    return *place = c;
}

static void free_if_empty(struct sse_channels *channels, struct sse_channel *c)
{
    if (c->n || c->refs)
        return;
    assert(mk_list_empty(&c->subscriptions) && channels->n > 0);
    *find_place(channels->buckets, channels->n_buckets, mk_str(c->name, c->len), c->hash) = c->next;
    channels->n--;
    heap_free(c, sizeof(*c) + c->len);
}

struct sse_subscription *sse_channels_join(struct sse_channels *channels, struct mk_str name, uint64_t hash,
                                           struct duda_request *dr)
{
    struct sse_subscription *sub = heap_zalloc(sizeof(*sub));
    struct sse_channel *c = sub ? get_channel(channels, name, hash) : NULL;
    if (!c) {
        heap_free(sub, sizeof(*sub));
        return NULL;
    }
    sub->dr = dr;
    sub->channel = c;
    mk_list_add(&c->subscriptions, &sub->node);
    c->n++;
    return sub;
}

void sse_channels_leave(struct sse_channels *channels, struct sse_subscription *sub)
{
    struct sse_channel *c = sub->channel;
    assert(c->n > 0);
    mk_list_del(&sub->node);
    c->n--;
    heap_free(sub, sizeof(*sub));
    free_if_empty(channels, c);
}

void sse_channels_put(struct sse_channels *channels, struct sse_channel *channel)
{
    assert(channel->refs > 0);
    channel->refs--;
    free_if_empty(channels, channel);
}

void sse_channels_release(struct sse_channels *channels)
{
    assert(!channels->n);
    heap_free(channels->buckets, channels->n_buckets * sizeof(struct sse_channel *));
    *channels = (struct sse_channels){0};
}
