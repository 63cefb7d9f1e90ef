// SPDX-License-Identifier: Apache-2.0
/*
 * Channels that have names. Each name has a number below WS_CHANNEL_ALL while a WebSocket is in its channel: the
 * library knows channels by numbers.
 */
#ifndef DUDA_PACKAGES_WEBSOCKET_NAMES_H
#define DUDA_PACKAGES_WEBSOCKET_NAMES_H

#include <monkey/kit/hash_table.h>

#include <pthread.h>
#include <stdint.h>

struct channels;

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
