// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the settings of connections to backends (clients.h).
 */
#include "clients.h"

#include <monkey/http_client.h>

#include <errno.h>

enum { ERROR_BYTES = 1024, KEY_BYTES_MAX = 65536 };

#define KEY_HASH_SEED UINT64_C(0xcbf29ce484222325)

static const struct client plain_client = {.transport = &mk_transport_plain};

/* ── settings ── */

/* Returns the offset of the key that a field of the transport's settings comes from. */
static size_t find_key(const struct proxy_conf *conf, size_t field)
{
    static const struct {
        size_t field, key;
    } rows[] = {
        {offsetof(struct mk_transport_client_conf, ca_file), offsetof(struct proxy_conf, tls.ca)},
        {offsetof(struct mk_transport_client_conf, certificate), offsetof(struct proxy_conf, tls.certificate)},
        {offsetof(struct mk_transport_client_conf, key), offsetof(struct proxy_conf, tls.key)},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].field == field)
            return rows[i].key;
    return conf->tls.name.p == conf->to.dial->host.p ? offsetof(struct proxy_conf, to)
                                                     : offsetof(struct proxy_conf, tls.name);
}

static int open_settings(struct client *client, struct mk_host *host, const struct proxy_conf *conf)
{
    static const struct mk_str protocol = MK_STR("http/1.1");
    const struct mk_transport_client_conf settings = {.server_name = conf->tls.name,
                                                      .ca_file = conf->tls.ca,
                                                      .certificate = conf->tls.certificate,
                                                      .key = conf->tls.key,
                                                      .protocols = &protocol,
                                                      .n_protocols = 1,
                                                      .skip_verify = !conf->tls.verify};
    char text[ERROR_BYTES];
    struct mk_buf error;
    size_t field = 0;
    mk_buf_init_fixed(&error, text, sizeof(text));
    client->tls = &conf->tls;
    client->transport = mk_generation_transport(mk_host_generation(host), "tls", &error);
    int err =
        client->transport ? client->transport->client_open(&settings, &client->settings, &field, &error) : -EINVAL;
    if (err == -EINVAL)
        mk_host_error(host, conf, client->transport ? find_key(conf, field) : offsetof(struct proxy_conf, to), 0, "%s",
                      mk_buf_cstr(&error));
    return err;
}

static bool is_equal(const struct proxy_tls *a, const struct proxy_tls *b)
{
    return a->verify == b->verify && mk_str_eq(a->name, b->name) && mk_str_eq(a->ca, b->ca) &&
           mk_str_eq(a->certificate, b->certificate) && mk_str_eq(a->key, b->key);
}

/* Finds a client with the settings of a section, or makes it. */
static int open_client(struct clients *all, struct mk_host *host, const struct proxy_conf *conf,
                       const struct client **ret)
{
    for (struct client *c = all->first; c; c = c->next)
        if (is_equal(c->tls, &conf->tls)) {
            *ret = c;
            return 0;
        }
    struct client *client = mk_account_alloc(NULL, sizeof(*client));
    if (!client)
        return -ENOMEM;
    *client = (struct client){.next = all->first};
    int err = open_settings(client, host, conf);
    if (err < 0) {
        mk_account_free(NULL, client, sizeof(*client));
        return err;
    }
    *ret = all->first = client;
    return 0;
}

/* ── routes ── */

/* What distinguishes connections. */
static void write_key(struct mk_buf *key, const struct proxy_conf *conf)
{
    const struct mk_str texts[] = {conf->to.dial->text, conf->tls.name, conf->tls.ca, conf->tls.certificate,
                                   conf->tls.key};
    struct mk_str source = conf->source ? conf->source->text : MK_STR("");
    mk_buf_addf(key, "%u %u %d %d %d %.*s", (unsigned)conf->keep_alive, conf->keep_alive_timeout_ms, conf->to.is_tls,
                conf->tls.verify, conf->send_proxy, MK_STR_ARG(source));
    for (size_t i = 0; i < (conf->to.is_tls ? MK_COUNT_OF(texts) : 1); i++) {
        mk_buf_addf(key, " %zu:", texts[i].len);
        mk_buf_adds(key, texts[i]);
    }
}

uint64_t key_hash(uint64_t hash, struct mk_str key)
{
    for (size_t i = 0; i < key.len; i++)
        hash = (hash ^ (unsigned char)key.p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static int write_route(struct route *route, struct mk_buf *key)
{
    write_key(key, route->conf);
    if (key->err)
        return key->err;
    char *copy = mk_account_alloc(NULL, key->len);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, key->data, key->len);
    route->key = mk_str(copy, key->len);
    route->hash = key_hash(KEY_HASH_SEED, route->key);
    return 0;
}

/* Returns what names the backend, without what its paths become. */
static struct mk_str get_backend(const struct proxy_target *to)
{
    return mk_str(to->text.p, to->path.p ? (size_t)(to->path.p - to->text.p) : to->text.len);
}

/* A name without dot and port that is a group's is the group. */
static void find_group(struct route *route, struct mk_host *host)
{
    struct mk_str name = route->conf->to.authority;
    const struct mk_generation *g = mk_host_generation(host);
    bool is_unix = route->conf->to.dial && !route->conf->to.dial->port;
    if (is_unix || memchr(name.p, '.', name.len) || memchr(name.p, ':', name.len))
        return;
    route->upstreams = mk_generation_upstreams(g);
    route->group = route->upstreams ? route->upstreams->find(g, name) : NULL;
    if (route->upstreams && !route->group && !mk_str_ieq(name, MK_STR("localhost")))
        mk_host_warn(host, route->conf, offsetof(struct proxy_conf, to), 0,
                     "no [UPSTREAM] has the name \"%.*s\", which is looked up as that of a server", MK_STR_ARG(name));
}

/* Gets the tallies of the servers of a group. Returns 0 or -ENOMEM. */
static int get_server_tallies(struct route *route)
{
    unsigned n = 0;
    while (route->upstreams->server_name(route->group, n).len)
        n++;
    route->server_tallies = mk_account_alloc(NULL, n * sizeof(*route->server_tallies));
    for (; route->server_tallies && route->n_servers < n; route->n_servers++) {
        struct mk_str name = route->upstreams->server_name(route->group, route->n_servers);
        route->server_tallies[route->n_servers] = tally_get(get_backend(&route->conf->to), name);
        if (!route->server_tallies[route->n_servers])
            return -ENOMEM;
    }
    return route->server_tallies ? 0 : -ENOMEM;
}

static void put_tallies(struct route *route)
{
    if (route->tally)
        tally_put(route->tally);
    unsigned n = 0;
    while (route->group && route->upstreams->server_name(route->group, n).len)
        n++;
    for (unsigned i = 0; i < route->n_servers; i++)
        tally_put(route->server_tallies[i]);
    if (route->server_tallies)
        mk_account_free(NULL, route->server_tallies, n * sizeof(*route->server_tallies));
}

const struct tally *route_find_tally(const struct route *route, struct mk_str server)
{
    for (unsigned i = 0; i < route->n_servers; i++)
        if (mk_str_eq(route->server_tallies[i]->server, server))
            return route->server_tallies[i];
    return route->tally;
}

static int add_route(struct clients *all, struct mk_host *host, const struct proxy_conf *conf, struct route **list)
{
    struct route *route = mk_account_alloc(NULL, sizeof(*route));
    struct mk_buf key;
    if (!route)
        return -ENOMEM;
    *route = (struct route){.next = *list, .conf = conf, .client = &plain_client};
    *list = route;
    find_group(route, host);
    route->tally = tally_get(get_backend(&conf->to), MK_STR(""));
    if (!route->tally || (route->group && get_server_tallies(route) < 0))
        return -ENOMEM;
    mk_buf_init(&key, KEY_BYTES_MAX);
    int err = write_route(route, &key);
    mk_buf_release(&key);
    return err == 0 && conf->to.is_tls ? open_client(all, host, conf, &route->client) : err;
}

int routes_open(struct clients *all, struct mk_host *host, struct route **ret)
{
    int err = 0;
    *ret = NULL;
    for (const struct proxy_conf *conf = mk_host_conf(host, proxy_sections); conf && err != -ENOMEM;
         conf = mk_host_conf_next(host, proxy_sections, conf)) {
        int r = add_route(all, host, conf, ret);
        err = r < 0 ? r : err;
    }
    if (err < 0) {
        routes_free(*ret);
        *ret = NULL;
    }
    return err;
}

void routes_free(struct route *routes)
{
    while (routes) {
        struct route *route = routes;
        routes = route->next;
        put_tallies(route);
        mk_account_free(NULL, (char *)(uintptr_t)route->key.p, route->key.len);
        mk_account_free(NULL, route, sizeof(*route));
    }
}

const struct route *routes_find(const struct route *routes, const struct proxy_conf *conf)
{
    while (routes->conf != conf)
        routes = routes->next;
    return routes;
}

/* ── generations ── */

void clients_close(struct clients *all)
{
    while (all->first) {
        struct client *client = all->first;
        all->first = client->next;
        client->transport->client_close(client->settings);
        mk_account_free(NULL, client, sizeof(*client));
    }
}
