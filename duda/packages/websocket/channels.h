// SPDX-License-Identifier: Apache-2.0
/*
 * How many WebSockets each channel of a service has, in all workers: a hash table under a lock. Messages do not pass
 * it.
 *
 * Channels that have names. Each name has a number below WS_CHANNEL_ALL while a WebSocket is in its channel: the
 * library knows channels by numbers.
 */
#ifndef DUDA_PACKAGES_WEBSOCKET_CHANNELS_H
#define DUDA_PACKAGES_WEBSOCKET_CHANNELS_H

#include <monkey/kit/hash_table.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* ── names ── */

struct ws_name {
    struct mk_hash_node node; /* in ws_names.table */
    int number;
    unsigned refs; /* WebSockets */
    char text[];
};

struct ws_names {
    pthread_mutex_t lock;
    uint64_t key[2]; /* of the hash: clients may choose names */
    struct mk_hash_table table;
    int last; /* number that was used */
};

/* Returns 0 or -errno. */
int ws_names_init(struct ws_names *names);
void ws_names_release(struct ws_names *names);
/* Returns a name with a reference; NULL without memory. `channels`: those whose numbers are used. Any thread. */
struct ws_name *ws_names_get(struct ws_names *names, struct channels *channels, const char *text);
/* Drops a reference; NULL: nothing. */
void ws_names_put(struct ws_names *names, struct ws_name *name);
/* Returns the number of a name, or WS_CHANNEL_ALL: no WebSocket is in its channel. Any thread. */
int ws_names_find(struct ws_names *names, const char *text);

#endif
