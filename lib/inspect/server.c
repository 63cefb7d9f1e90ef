// SPDX-License-Identifier: Apache-2.0
/*
 * What belongs to the whole server: its generation, and commands to the program (<monkey/inspect.h>).
 */
#include "server/inspect_core.h"

#include "server/server.h"

#include <monkey/inspect.h>

#include <errno.h>

const void *mk_inspect_server(const struct mk_generation *g)
{
    return g->server;
}

const struct mk_plugin *mk_inspect_plugin(const struct mk_generation *g, unsigned n)
{
    return n < g->n_plugins ? g->plugins[n] : NULL;
}

bool mk_inspect_is_built_in(const struct mk_generation *g, unsigned n)
{
    return n < g->n_plugins && !g->modules[n];
}

bool mk_inspect_listener(const struct mk_generation *g, unsigned n, struct mk_str *ret_text,
                         struct mk_str *ret_transport)
{
    if (n >= g->settings->listen.n)
        return false;
    *ret_text = g->settings->listen.items[n].text;
    *ret_transport = mk_str_c(g->settings->listen.items[n].mode.transport->name);
    return true;
}

void mk_inspect_show(const struct mk_generation *g, const struct mk_host *host, struct mk_buf *out)
{
    mk_inspect_core.show(host ? host->set : g->set, out);
}

/* ── commands ── */

int mk_inspect_command(const struct mk_worker *worker, enum mk_server_command command)
{
    const struct mk_server *s = worker->generation->server;
    if (!s->command_fn)
        return -ENOTSUP;
    return mk__inspect_core_thread(worker)->http.shutdown == MK__SHUTDOWN_NONE ? s->command_fn(command) : -EALREADY;
}

int mk_inspect_reload(const struct mk_worker *worker, struct mk_server_reload *reload)
{
    struct mk_server *s = worker->generation->server;
    reload->loop = worker->loop;
    pthread_mutex_lock(&s->lock);
    reload->next = s->asked;
    s->asked = reload;
    pthread_mutex_unlock(&s->lock);
    int err = mk_inspect_command(worker, MK_SERVER_RELOAD);
    return err == 0 || !mk_inspect_reload_cancel(worker, reload) ? 0 : err;
}

static bool unlink_reload(struct mk_server_reload **at, struct mk_server_reload *reload)
{
    while (*at && *at != reload)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = reload->next;
    return true;
}

bool mk_inspect_reload_cancel(const struct mk_worker *worker, struct mk_server_reload *reload)
{
    struct mk_server *s = worker->generation->server;
    pthread_mutex_lock(&s->lock);
    bool found = unlink_reload(&s->asked, reload) || unlink_reload(&s->served, reload);
    pthread_mutex_unlock(&s->lock);
    return found;
}
