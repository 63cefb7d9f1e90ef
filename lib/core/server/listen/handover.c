// SPDX-License-Identifier: Apache-2.0
/*
 * Listening sockets that the server inherits from another process, and their handover to the next one, up to
 * the drain after it (<monkey/monkey.h>).
 */
#include "server/plugins/plugin_sockets.h"
#include "server/server.h"

#include <unistd.h>

int mk_server_inherit(struct mk_server *s, int fd, bool own)
{
    if (!own || !mk__plugin_sockets_have(fd))
        return mk__inherited_add(&s->listeners, fd, own);
    close(fd); /* the plugin has its own descriptor */
    return 0;
}

void mk_server_each_socket(const struct mk_server *s, void (*fn)(int fd, bool own, void *ctx), void *ctx)
{
    MK_LIST_EACH_ITEM(&s->listeners.open, const struct mk__listener, node, one) {
        for (unsigned i = 0; i < one->n; i++)
            fn(one->fds[i], one->owner != MK__LISTENER_EXTERNAL, ctx);
    }
    mk__plugin_sockets_each(fn, ctx);
}

const char *mk_server_socket_transport(const struct mk_server *s, int fd)
{
    MK_LIST_EACH_ITEM(&s->listeners.open, const struct mk__listener, node, one) {
        for (unsigned i = 0; i < one->n; i++)
            if (one->fds[i] == fd)
                return one->transport->name;
    }
    return NULL;
}

void mk_server_hand_over(struct mk_server *s)
{
    if (s->state == MK__SERVER_RUNNING)
        mk__server_set_state(s, MK__SERVER_HANDED_OVER);
    mk__plugin_sockets_hand_over();
    MK_LIST_EACH_ITEM(&s->listeners.open, struct mk__listener, node, one) {
        if (one->owner == MK__LISTENER_OWNED)
            one->owner = MK__LISTENER_SHARED;
    }
}

void mk_server_drain_now(struct mk_server *s)
{
    pthread_mutex_lock(&s->lock);
    bool drains = s->state == MK__SERVER_HANDED_OVER;
    if (drains)
        s->state = MK__SERVER_DRAINING;
    for (unsigned i = 0; drains && i < s->n_workers; i++)
        mk__thread_drain_now(s->workers[i]);
    if (drains && s->control_thread)
        mk__control_thread_drain_workers_now(s->control_thread);
    pthread_mutex_unlock(&s->lock);
}
