// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps and releases what plugins keep for connections (server/plugins/plugin_states.h).
 */
#include "server/plugins/plugin_states.h"

#include "http/conn.h"

#include <errno.h>

static struct mk_account *get_account(const struct mk_connection *conn)
{
    return mk__conn_of(conn)->http->account;
}

/* Returns the place of the plugin's state in the list, or its end. */
static struct mk__plugin_state **find_state(struct mk_connection *conn, const struct mk_plugin *plugin)
{
    struct mk__plugin_state **at = &conn->states;
    while (*at && (*at)->plugin != plugin)
        at = &(*at)->next;
    return at;
}

/* Takes the state out of the list before it is released. */
static void release_state(struct mk_connection *conn, struct mk__plugin_state **at)
{
    struct mk__plugin_state *s = *at;
    *at = s->next;
    if (s->release && s->state)
        s->release(s->state);
    mk_account_free(get_account(conn), s, sizeof(*s));
}

void mk__plugin_states_release(struct mk_connection *conn)
{
    while (conn->states)
        release_state(conn, &conn->states);
}

void mk__plugin_states_release_of(struct mk_list *conns, const struct mk_plugin *plugin)
{
    MK_LIST_EACH_ITEM(conns, struct mk__conn, link, c) {
        struct mk_connection *conn = &c->handle;
        struct mk__plugin_state **at = find_state(conn, plugin);
        if (*at)
            release_state(conn, at);
    }
}

int mk__plugin_states_set(struct mk_connection *conn, const struct mk_plugin *plugin, void *state,
                          mk_connection_release_fn release)
{
    struct mk__plugin_state **at = find_state(conn, plugin);
    struct mk__plugin_state *s = *at ? *at : mk_account_alloc(get_account(conn), sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct mk__plugin_state){*at ? s->next : NULL, plugin, state, release};
    *at = s;
    return 0;
}

void *mk_connection_state(const struct mk_connection *conn, const struct mk_plugin *plugin)
{
    const struct mk__plugin_state *s = conn->states;
    while (s && s->plugin != plugin)
        s = s->next;
    return s ? s->state : NULL;
}
