// SPDX-License-Identifier: Apache-2.0
/*
 * A hash table of channels (sse_channels.h).
 */
#include "request/sse_channels.h"

#include "common/heap.h"

#include <assert.h>

struct sse_channel *sse_channels_find(const struct sse_channels *channels, struct mk_str name, uint64_t hash)
{
    struct mk_hash_node *n;
    MK_HASH_EACH(&channels->table, hash, n) {
        struct sse_channel *c = MK_CONTAINER_OF(n, struct sse_channel, node);
        if (mk_str_eq(mk_str(c->name, c->len), name))
            return c;
    }
    return NULL;
}

static struct sse_channel *get_channel(struct sse_channels *channels, struct mk_str name, uint64_t hash)
{
    struct sse_channel *c = sse_channels_find(channels, name, hash);
    if (c || !(c = heap_zalloc(sizeof(*c) + name.len)))
        return c;
    c->len = name.len;
    memcpy(c->name, name.p, name.len);
    mk_list_init(&c->subscriptions);
    if (mk_hash_insert(&channels->table, NULL, &c->node, hash) == 0)
        return c;
    heap_free(c, sizeof(*c) + c->len);
    return NULL;
}

static void free_if_empty(struct sse_channels *channels, struct sse_channel *c)
{
    if (c->n || c->refs)
        return;
    assert(mk_list_empty(&c->subscriptions));
    mk_hash_remove(&channels->table, &c->node);
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
    assert(!channels->table.n);
    mk_hash_release(&channels->table, NULL);
}
