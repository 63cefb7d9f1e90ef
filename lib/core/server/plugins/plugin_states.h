// SPDX-License-Identifier: Apache-2.0
/*
 * What plugins keep for connections: mk_connection_set_state(). A list, because few connections have any, and of few
 * plugins.
 */
#ifndef MK_SERVER_PLUGIN_STATES_H
#define MK_SERVER_PLUGIN_STATES_H

#include <monkey/plugin.h>

struct mk__plugin_state {
    struct mk__plugin_state *next;
    const struct mk_plugin *plugin;
    void *state;
    mk_connection_release_fn release; /* may be NULL */
};

/* Releases the states of a connection. In the worker's thread. */
void mk__plugin_states_release(struct mk_connection *conn);
/* Releases the states of a plugin of all connections of a struct mk__context. In the worker's thread. */
void mk__plugin_states_release_of(struct mk_list *conns, const struct mk_plugin *plugin);
/* As mk_connection_set_state(), without a check of the plugin. Returns 0 or -ENOMEM. */
int mk__plugin_states_set(struct mk_connection *conn, const struct mk_plugin *plugin, void *state,
                          mk_connection_release_fn release);

#endif
