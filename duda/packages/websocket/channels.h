// SPDX-License-Identifier: Apache-2.0
/*
 * How many WebSockets each channel of a service has, in all workers: a hash table under a lock. Messages do not pass
 * it.
 */
#ifndef DUDA_PACKAGES_WEBSOCKET_CHANNELS_H
#define DUDA_PACKAGES_WEBSOCKET_CHANNELS_H

#include <monkey/kit/hash_table.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct mk_counter;

struct channels {
    const struct mk_counter *counter; /* of those that have a WebSocket */
    pthread_mutex_t lock;
    struct mk_hash_table table;
};

void channels_init(struct channels *channels, const struct mk_counter *counter);
void channels_release(struct channels *channels);
/* Count one more, or one less, which was counted before; WS_CHANNEL_ALL is not counted. Any thread. */
bool channels_join(struct channels *channels, int number); /* false without memory */
void channels_leave(struct channels *channels, int number);
/* Returns how many a channel has. Any thread. */
size_t channels_count(struct channels *channels, int number);

#endif
