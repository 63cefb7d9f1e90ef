// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

#include <monkey/base/hash.h>
#include <monkey/kit/http_client.h>

#include <assert.h>
#include <errno.h>

enum { KEY_BYTES_MAX = 65536 };

static const struct mk__gw_client plain_client = {.transport = &mk_transport_plain};

/* ── clients ── */

static int open_settings(struct mk__gw_client *client, struct mk_host *host, const struct mk_gateway_conf *conf)
{
    bool is_named = conf->tls.name.p != conf->to.dial->host.p;
    const struct mk_target_tls_keys keys = {
        .name = offsetof(struct mk_gateway_conf, to),
        .server_name = is_named ? offsetof(struct mk_gateway_conf, tls.name) : offsetof(struct mk_gateway_conf, to),
        .ca = offsetof(struct mk_gateway_conf, tls.ca),
        .certificate = offsetof(struct mk_gateway_conf, tls.certificate),
        .key = offsetof(struct mk_gateway_conf, tls.key),
    };
    const struct mk_transport_client_conf settings = {.server_name = conf->tls.name,
                                                      .ca_file = conf->tls.ca,
                                                      .certificate = conf->tls.certificate,
                                                      .key = conf->tls.key,
                                                      .skip_verify = !conf->tls.verify};
    client->tls = &conf->tls;
    return mk_target_open_tls(host, conf, &keys, &settings, &client->transport, &client->settings);
}

static bool is_equal(const struct mk_gateway_tls *a, const struct mk_gateway_tls *b)
{
    return a->verify == b->verify && mk_str_eq(a->name, b->name) && mk_str_eq(a->ca, b->ca) &&
           mk_str_eq(a->certificate, b->certificate) && mk_str_eq(a->key, b->key);
}

/* Finds a client with the settings of a section, or makes it. */
static int open_client(struct mk_gateway_generation *g, struct mk_host *host, const struct mk_gateway_conf *conf,
                       const struct mk__gw_client **ret)
{
    for (struct mk__gw_client *c = g->clients; c; c = c->next)
        if (is_equal(c->tls, &conf->tls)) {
            *ret = c;
            return 0;
        }
    struct mk__gw_client *client = mk_account_alloc(NULL, sizeof(*client));
    if (!client)
        return -ENOMEM;
    *client = (struct mk__gw_client){.next = g->clients};
    int err = open_settings(client, host, conf);
    if (err < 0) {
        mk_account_free(NULL, client, sizeof(*client));
        return err;
    }
    *ret = g->clients = client;
    return 0;
}

/* Closes the clients of a generation. Connections continue. */
static void close_clients(struct mk_gateway_generation *g)
{
    while (g->clients) {
        struct mk__gw_client *client = g->clients;
        g->clients = client->next;
        client->transport->client_close(client->settings);
        mk_account_free(NULL, client, sizeof(*client));
    }
}

/* ── what distinguishes connections ── */

static void write_key(struct mk_buf *key, const struct mk_gateway_route *route)
{
    const struct mk_gateway_conf *conf = route->conf;
    const struct mk_str texts[] = {conf->to.dial->text, conf->tls.name, conf->tls.ca, conf->tls.certificate,
                                   conf->tls.key};
    struct mk_str source = conf->source ? conf->source->text : MK_STR("");
    mk_buf_addf(key, "%s %u %u %d %d %.*s", route->protocol->name, (unsigned)conf->keep_alive,
                conf->keep_alive_timeout_ms, conf->to.is_tls, conf->tls.verify, MK_STR_ARG(source));
    for (size_t i = 0; i < (conf->to.is_tls ? MK_COUNT_OF(texts) : 1); i++) {
        mk_buf_addf(key, " %zu:", texts[i].len);
        mk_buf_adds(key, texts[i]);
    }
}

static int set_key(struct mk_gateway_route *route)
{
    struct mk_buf key;
    mk_buf_init(&key, KEY_BYTES_MAX);
    write_key(&key, route);
    char *copy = key.err ? NULL : mk_account_alloc(NULL, key.len);
    if (copy) {
        memcpy(copy, key.data, key.len);
        route->key = mk_str(copy, key.len);
        route->hash = mk_hash_add(MK_HASH_EMPTY, route->key.p, route->key.len);
    }
    mk_buf_release(&key);
    return copy ? 0 : -ENOMEM;
}

/* ── bodies that wait ── */

/* Makes sure of the budget for bodies that wait, if the section has a use for it. Returns 0, -EINVAL or -ENOMEM. */
static int hold_spools(struct mk_gateway_route *route, struct mk_host *host)
{
    const struct mk_gateway_conf *conf = route->conf;
    int file_err;
    if (!conf->buffer.memory_bytes && !conf->spool_request_bytes && !route->protocol->needs_length)
        return 0;
    int err = mk_host_hold_spools(host, &route->spool_folder, &file_err);
    if (err < 0 || file_err == 0 || !conf->spool_request_bytes)
        return err;
    mk_host_error(host, conf, offsetof(struct mk_gateway_conf, spool_request_bytes), 0,
                  "SpoolRequest needs a folder that can be written, and \"%s\" cannot (%s): name one in Folder of "
                  "[SPOOL]",
                  route->spool_folder, strerror(-file_err));
    return -EINVAL;
}

/* ── routes ── */

/* Opens what a route needs. All mistakes are reported. Returns 0, -EINVAL or -ENOMEM. */
static int open_route(struct mk_gateway_route *route, struct mk_gateway_generation *g, struct mk_host *host)
{
    const struct mk_gateway_conf *conf = route->conf;
    int err = mk_target_stats_open(&route->stats, &route->gateway->registry, &route->conf->to, route->upstreams,
                                   route->group);
    if (err == 0)
        err = set_key(route);
    if (err < 0)
        return err;
    if (!route->group && !conf->is_spawned)
        mk_target_check(host, conf, offsetof(struct mk_gateway_conf, to), 0, conf->to.dial);
    int opened = conf->to.is_tls ? open_client(g, host, conf, &route->client) : 0;
    err = hold_spools(route, host);
    if (!route->group && mk_generation_is_check(mk_host_generation(host)))
        mk__gw_names_check(host, conf, &g->names_ms);
    return opened < 0 ? opened : err;
}

static uint64_t hash_section(const void *section)
{
    return mk_hash_number((uint32_t)((uintptr_t)section / sizeof(void *)));
}

int mk_gateway_open_routes(const struct mk_plugin *plugin, struct mk_host *host, const struct mk_conf_section *section,
                           const struct mk_gateway_protocol *protocol, struct mk_gateway_routes *routes)
{
    struct mk_gateway_generation *g = mk_generation_state(mk_host_generation(host), plugin);
    int err = 0;
    for (const struct mk_gateway_conf *conf = mk_host_conf(host, section); conf && err != -ENOMEM;
         conf = mk_host_conf_next(host, section, conf)) {
        struct mk_gateway_route *route = mk_account_alloc(NULL, sizeof(*route));
        if (!route)
            return -ENOMEM;
        *route = (struct mk_gateway_route){.next = routes->first,
                                           .next_in_generation = g->routes,
                                           .gateway = g->gateway,
                                           .protocol = protocol,
                                           .conf = conf,
                                           .client = &plain_client};
        routes->first = g->routes = route;
        mk_target_find_group(&conf->to, host, conf, offsetof(struct mk_gateway_conf, to), &route->upstreams,
                             &route->group);
        int r = mk_hash_insert(&routes->by_section, NULL, &route->node, hash_section(conf));
        r = r < 0 ? r : open_route(route, g, host);
        err = r < 0 ? r : err;
    }
    return err;
}

void mk_gateway_free_routes(struct mk_gateway_routes *routes)
{
    mk_hash_release(&routes->by_section, NULL);
    while (routes->first) {
        struct mk_gateway_route *route = routes->first;
        routes->first = route->next;
        mk_target_stats_close(&route->stats, &route->gateway->registry);
        if (route->key.p)
            mk_account_free(NULL, (char *)(uintptr_t)route->key.p, route->key.len);
        mk_account_free(NULL, route, sizeof(*route));
    }
}

const struct mk_gateway_route *mk_gateway_find_route(const struct mk_gateway_routes *routes, const void *section)
{
    struct mk_hash_node *node;
    MK_HASH_EACH(&routes->by_section, hash_section(section), node) {
        const struct mk_gateway_route *route = MK_CONTAINER_OF(node, struct mk_gateway_route, node);
        if ((const void *)route->conf == section)
            return route;
    }
    assert(!"a section without a route");
    return NULL;
}

/* ── hooks of a plugin that passes requests on: the process ── */

enum { NAMES_WAIT_MS = 2000 }; /* for all names of a configuration together */

int mk_gateway_new(const struct mk_gateway_type *type, void **ret_gateway)
{
    struct mk_gateway *gateway = mk_account_alloc(NULL, sizeof(*gateway));
    if (!gateway)
        return -ENOMEM;
    *gateway = (struct mk_gateway){.type = type};
    mk_stats_registry_init(&gateway->registry, type->stats_infos);
    mk_threads_init(&gateway->threads, &mk__gw_thread_type);
    for (unsigned i = 0; i < MK_GATEWAY_COUNTS; i++)
        gateway->counters[i] = mk_counter_open(&gateway->type->counters[i], NULL, 0);
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
    *own = (struct mk_gateway_generation){.gateway = mk_generation_plugin_state(g, plugin), .names_ms = NAMES_WAIT_MS};
    *ret_state = own;
    return 0;
}

void mk_gateway_stop_generation(struct mk_generation *g, void *state)
{
    struct mk_gateway_generation *own = state;
    (void)g;
    close_clients(own);
    mk_account_free(NULL, own, sizeof(*own));
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

/* Connections of former sections end. */
void mk_gateway_serve_worker(struct mk_worker *worker, void *state)
{
    struct mk_thread_worker *w = state;
    struct mk__gw_thread *thread = mk__gw_thread_of(w->thread);
    mk__gw_thread_serve(thread, get_generation(thread, worker));
}
