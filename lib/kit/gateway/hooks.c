// SPDX-License-Identifier: Apache-2.0
/*
 * What the hooks of a plugin do that passes requests on (<monkey/kit/gateway.h>).
 */
#include "gateway.h"

#include "backend.h"
#include "names.h"
#include "orphan.h"
#include "route.h"

#include <errno.h>

/* ── the process ── */

static void open_counters(struct mk_gateway *gateway)
{
    for (unsigned i = 0; i < MK_GATEWAY_COUNTS; i++)
        gateway->counters[i] = mk_counter_open(&gateway->type->counters[i], NULL, 0);
}

int mk_gateway_new(const struct mk_gateway_type *type, void **ret_gateway)
{
    struct mk_gateway *gateway = mk_account_alloc(NULL, sizeof(*gateway));
    if (!gateway)
        return -ENOMEM;
    *gateway = (struct mk_gateway){.type = type};
    mk_stats_registry_init(&gateway->registry, type->stats_infos);
    mk_threads_init(&gateway->threads, &mk__gw_thread_type);
    open_counters(gateway);
    *ret_gateway = gateway;
    return 0;
}

void mk_gateway_free(void *state)
{
    struct mk_gateway *gateway = state;
    mk_threads_release(&gateway->threads);
    mk_stats_registry_release(&gateway->registry);
    mk_account_free(NULL, gateway, sizeof(*gateway));
}

void mk_gateway_set_user(void *state, void *user)
{
    struct mk_gateway *gateway = state;
    gateway->user = user;
}

void *mk_gateway_get_user(const void *state)
{
    const struct mk_gateway *gateway = state;
    return gateway->user;
}

void mk_gateway_shed(void *state)
{
    struct mk_gateway *gateway = state;
    mk__gw_threads_shed(&gateway->threads);
}

void mk_gateway_shed_worker(struct mk_worker *worker, void *state)
{
    const struct mk_gateway *gateway = state;
    struct mk_thread_worker *w = mk_worker_state(worker, gateway->type->plugin);
    if (w)
        mk__gw_thread_shed(mk__gw_thread_of(w->thread));
}

/* ── generations ── */

int mk_gateway_start_generation(const struct mk_plugin *plugin, struct mk_generation *g, void **ret_state)
{
    struct mk_gateway_generation *own = mk_account_alloc(NULL, sizeof(*own));
    if (!own)
        return -ENOMEM;
    *own = (struct mk_gateway_generation){.gateway = mk_generation_plugin_state(g, plugin),
                                          .names_ms = MK__GW_NAMES_WAIT_MS};
    mk_stats_registry_start_generation(&own->gateway->registry);
    *ret_state = own;
    return 0;
}

void mk_gateway_stop_generation(struct mk_generation *g, void *state)
{
    struct mk_gateway_generation *own = state;
    struct mk_gateway *gateway = own->gateway;
    (void)g;
    mk__gw_route_close_clients(own);
    mk_account_free(NULL, own, sizeof(*own));
    mk_stats_registry_stop_generation(&gateway->registry);
}

/* ── workers ── */

int mk_gateway_start_worker(const struct mk_plugin *plugin, struct mk_worker *worker, void **ret_state)
{
    struct mk_gateway *gateway = mk_generation_plugin_state(mk_worker_generation(worker), plugin);
    struct mk_thread_worker *w = mk_account_alloc(NULL, sizeof(*w));
    if (!w)
        return -ENOMEM;
    int err = mk_threads_add_worker(&gateway->threads, w, worker);
    if (err < 0)
        mk_account_free(NULL, w, sizeof(*w));
    else
        *ret_state = w;
    return err;
}

static const struct mk_gateway_generation *get_generation(const struct mk__gw_thread *t, const struct mk_worker *worker)
{
    return mk_generation_state(mk_worker_generation(worker), t->gateway->type->plugin);
}

void mk_gateway_stop_worker(struct mk_worker *worker, void *state)
{
    struct mk_thread_worker *w = state;
    struct mk__gw_thread *thread = mk__gw_thread_of(w->thread);
    mk__gw_orphans_stop(thread, worker);
    if (thread->serving == get_generation(thread, worker))
        thread->serving = NULL;
    thread->last_worker = worker;
    mk_threads_remove_worker(w);
    mk_account_free(NULL, w, sizeof(*w));
}

/* Counters that a former process has left are hidden, and connections of former sections end. */
void mk_gateway_serve_worker(struct mk_worker *worker, void *state)
{
    struct mk_thread_worker *w = state;
    struct mk__gw_thread *thread = mk__gw_thread_of(w->thread);
    if (mk_worker_index(worker) == 0)
        mk_stats_registry_hide_unused(&thread->gateway->registry);
    mk__gw_thread_serve(thread, get_generation(thread, worker));
}
