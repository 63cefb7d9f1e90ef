// SPDX-License-Identifier: Apache-2.0
/*
 * The channels of a service in one worker, by their names (<duda/sse.h>): a hash table of lists of requests. A channel
 * exists while it has a subscriber, or a delivery refers to it.
 */
#ifndef DUDA_CORE_REQUEST_SSE_CHANNELS_H
#define DUDA_CORE_REQUEST_SSE_CHANNELS_H

#include "service/service.h"

#include <monkey/base/list.h>
#include <monkey/base/str.h>
#include <monkey/kit/hash_table.h>

#include <stdatomic.h>

struct duda_request;

struct sse_channel {
    struct mk_hash_node node; /* in sse_channels */
    struct mk_list subscriptions;
    unsigned n, refs;
    size_t len;
    char name[];
};

struct sse_subscription {
    struct mk_list node;           /* in channel->subscriptions, or in the list of a delivery */
    struct sse_subscription *next; /* of the request */
    struct sse_channel *channel;
    struct duda_request *dr;
};

struct sse_channels {
    struct mk_hash_table table;
};

/* Of a service. */
struct sse_service {
    uint64_t key[2];             /* of the hash: clients may choose names */
    atomic_size_t pending_bytes; /* of events that wait for workers */
};

FEATURE_SLOT(sse_channels_of, struct sse_channels, service_worker, FEATURE_SSE)
FEATURE_SLOT(sse_of, struct sse_service, service, FEATURE_SSE)

/* Returns the channel of a name and its hash, or NULL. */
struct sse_channel *sse_channels_find(const struct sse_channels *channels, struct mk_str name, uint64_t hash);
/* Adds a subscription of `dr`. Returns it, or NULL without memory. */
struct sse_subscription *sse_channels_join(struct sse_channels *channels, struct mk_str name, uint64_t hash,
                                           struct duda_request *dr);
/* Frees a subscription, and its channel if that is empty. */
void sse_channels_leave(struct sse_channels *channels, struct sse_subscription *sub);
/* Drops a reference; frees the channel if it is empty. */
void sse_channels_put(struct sse_channels *channels, struct sse_channel *channel);
/* Frees the table, which is empty. */
void sse_channels_release(struct sse_channels *channels);

#endif
