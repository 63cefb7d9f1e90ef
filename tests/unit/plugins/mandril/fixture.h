// SPDX-License-Identifier: Apache-2.0
/*
 * For tests of what mandril counts: connections in an environment without time, whose requests pass the plugin and then
 * content by path: "/hold" is never answered, "/big" is BIG_BYTES long, "/dir/..." is redirected internally to what
 * follows "/dir", all others are "hello". A test chooses what the address of the next connection is, and whether a
 * PROXY header follows; 127.0.0.0/8 is trusted.
 */
#ifndef MK_UNIT_PLUGINS_MANDRIL_FIXTURE_H
#define MK_UNIT_PLUGINS_MANDRIL_FIXTURE_H

#include "folder.h"
#include "http/h1_fixture.h"

#include "base/arena.h"
#include "server/generation/generation_load.h"
#include "server/worker/thread.h"

#include <monkey/program.h>

#include "plugins/mandril/mandril.h"

enum { BIG_BYTES = 20000, SECTIONS_MAX = 4, TABLE_CLIENTS = 64, CONNS_MAX = 10000 };

static char big[BIG_BYTES];

/* A worker with the states of two plugins. */
static union {
    char room[sizeof(struct mk_worker) + 2 * sizeof(void *)];
    struct mk_worker worker;
} own;

static struct {
    struct mk_generation generation;
    const struct mk_plugin *loaded[MK__PLUGINS_MAX];
    unsigned n_loaded;
    struct mk__limits limits;
    struct mk__thread thread;
    struct mk__http_app app;
    struct mk__listener listener;
    struct mk_network trusted;
    const char *peer; /* of the next connection */
    bool proxy;       /* a PROXY header is expected there */

    /* the plugin's */
    struct process_state process;
    struct generation_state g;
    struct host_state host;
    struct worker_state worker_state;
    struct rule_conf rule_confs[SECTIONS_MAX];
    struct rule rules[SECTIONS_MAX];
    struct connection_conf connection_confs[SECTIONS_MAX];
    struct connection_rule connections[SECTIONS_MAX];
    struct limit_conf limit_confs[SECTIONS_MAX];
    struct limit client_limits_in_use[SECTIONS_MAX];
} guard;

static int answer(struct mk_request *req)
{
    struct mk_str path = mk_request_path(req);
    if (mk_str_eq(path, MK_STR("/hold")))
        return 0;
    if (mk_str_starts(path, MK_STR("/dir/"))) {
        mk_request_redirect_internally(req, mk_str_after(path, strlen("/dir")));
        return 0;
    }
    struct mk_str body_text = mk_str_eq(path, MK_STR("/big")) ? mk_str(big, sizeof(big)) : MK_STR("hello");
    int err = mk_response_write_ref(req, body_text);
    if (err == 0)
        mk_response_end(req);
    return err;
}

static const struct mk_plugin content = {.name = "content", .on_content = answer};

static int set_peer(struct mk_connection *conn, void *ctx)
{
    (void)ctx;
    assert_int_equal(mk_address_parse(mk_str_c(guard.peer), &conn->peer.address), 0);
    conn->peer.expects_proxy_header = guard.proxy;
    return 0;
}

/* ── sections ── */

static struct active_section make_section(const char *name, const struct conditions *when, uint32_t clients)
{
    struct zone *zone = zones_get(guard.process.zones, mk_str_c(name), clients);
    assert_non_null(zone);
    return (struct active_section){
        .when = when, .clients.file = -1, .zone = zone, .name = mk_str_c(name), .place = MK_STR("here:1")};
}

/* Returns the conditions of a section with such a Match. */
static inline struct conditions match(const char *text)
{
    struct conditions when = {.foreign_referer = false};
    assert_int_equal(mk_pattern_parse(&when.match, mk_str_c(text), NULL, NULL), 0);
    return when;
}

static inline void add_rule(const char *name, struct rule_conf conf)
{
    uint32_t n = guard.host.n_rules++;
    assert_true(n < SECTIONS_MAX);
    guard.rule_confs[n] = conf;
    guard.rules[n] =
        (struct rule){.base = make_section(name, &guard.rule_confs[n].when, 0), .conf = &guard.rule_confs[n]};
    assert_int_equal(sections_index_host(&guard.host), 0);
}

static inline struct limit *add_limit(const char *name, struct limit_conf conf)
{
    uint32_t n = guard.host.n_limits++;
    struct limit *limit = &guard.client_limits_in_use[n];
    bool counts = conf.rate.n || conf.requests_max || conf.send_rate_for == SEND_RATE_CLIENT;
    assert_true(n < SECTIONS_MAX);
    guard.limit_confs[n] = conf;
    *limit = (struct limit){.base = make_section(name, &guard.limit_confs[n].when, counts ? TABLE_CLIENTS : 0),
                            .conf = &guard.limit_confs[n],
                            .policy = MK_STR("\"policy\"")};
    if (conf.rate.n)
        limit->rate = bucket_request_rate(conf.rate.n, conf.rate.period_s, (uint32_t)conf.burst);
    if (conf.send_rate)
        limit->send_rate = bucket_byte_rate((uint64_t)conf.send_rate);
    assert_int_equal(sections_index_host(&guard.host), 0);
    return limit;
}

static inline struct connection_rule *add_connections(const char *name, struct connection_conf conf)
{
    uint32_t n = guard.g.n_connections++;
    assert_true(n < SECTIONS_MAX);
    guard.connection_confs[n] = conf;
    guard.connections[n] =
        (struct connection_rule){.base = make_section(name, NULL, conf.connections_max ? TABLE_CLIENTS : 0),
                                 .conf = &guard.connection_confs[n]};
    return &guard.connections[n];
}

static inline void set_network(struct active_section *s, const char *text)
{
    struct mk_network network;
    assert_int_equal(mk_network_parse(mk_str_c(text), &network, NULL), 0);
    s->clients.networks = networks_new(&network, 1);
    assert_non_null(s->clients.networks);
}

static void stop_section(struct active_section *s)
{
    networks_free(s->clients.networks);
    zones_put(guard.process.zones, s->zone);
}

/* As a reload that removes all sections; what was counted continues. */
static void remove_sections(void)
{
    for (uint32_t i = 0; i < guard.host.n_limits; i++)
        stop_section(&guard.client_limits_in_use[i].base);
    for (uint32_t i = 0; i < guard.g.n_connections; i++)
        stop_section(&guard.connections[i].base);
    for (uint32_t i = 0; i < guard.host.n_rules; i++)
        stop_section(&guard.rules[i].base);
    guard.host.n_limits = guard.host.n_rules = guard.g.n_connections = 0;
    assert_int_equal(sections_index_host(&guard.host), 0);
}

/* Returns what is counted for a client now. */
static inline struct zone_client get_client(const struct zone *zone, const char *text)
{
    struct mk_address address;
    assert_int_equal(mk_address_parse(mk_str_c(text), &address), 0);
    struct zone_client *found = mk_client_table_find(zone->table, &address, mk_loop_now_us(&w.loop));
    if (!found)
        return (struct zone_client){.requests = 0};
    struct zone_client copy = *found;
    mk_client_table_unlock(zone->table, found, copy.requests || copy.connections ? MK_CLIENT_IN_USE : copy.idle_at);
    return copy;
}

/* ── the environment ── */

static void load_generation(void)
{
    char dir[512];
    struct mk__generation_source source = {.dir = dir};
    snprintf(dir, sizeof(dir), "%s", mk_test_path("conf"));
    assert_int_equal(mk__generation_load(&guard.generation, &source), 0);
    struct mk_generation *g = &guard.generation;
    memcpy(guard.loaded, g->plugins, sizeof(guard.loaded));
    guard.n_loaded = g->n_plugins;
    g->plugins[0] = &mk_plugin_mandril;
    g->plugins[1] = &content;
    g->n_plugins = 2;
    mk__generation_find_hooks(g);
    for (struct mk_host *host = g->hosts; host; host = host->next) {
        host->skipped = 0; /* of the plugins that were loaded */
        mk__generation_find_first_hook(g, host);
    }
}

static int open_guard(void **state)
{
    (void)state;
    memset(&guard, 0, sizeof(guard));
    load_generation();
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    assert_int_equal(mk_test_http_open(&w), 0);
    guard.process.zones = zones_new();
    decision_counters_open();
    guard.g = (struct generation_state){.process = &guard.process, .connections = guard.connections};
    guard.host =
        (struct host_state){.process = &guard.process, .rules = guard.rules, .limits = guard.client_limits_in_use};
    mk_arena_init(&guard.host.arena, NULL, 1 << 20, NULL, 0);
    assert_int_equal(sections_index_host(&guard.host), 0);
    guard.limits.open = CONNS_MAX;
    guard.thread = (struct mk__thread){.limits = &guard.limits, .receiver.assigned = CONNS_MAX};
    own.worker = (struct mk_worker){.generation = &guard.generation, .loop = &w.loop, .cells = &w.http.cells};
    own.worker.states[0] = &guard.worker_state;
    guard.thread.worker = &own.worker;
    guard.generation.plugin_states[0] = &guard.process;
    guard.generation.states[0] = &guard.g;
    guard.generation.default_host->states[0] = &guard.host;
    assert_int_equal(mk_network_parse(MK_STR("127.0.0.0/8"), &guard.trusted, NULL), 0);
    guard.generation.http.trusted_proxies.networks = (struct mk_networks){&guard.trusted, 1};
    guard.listener.name.text = MK_STR("here");
    guard.peer = "192.0.2.1";
    guard.app = mk__request_hooks_app;
    guard.app.on_accept = set_peer;
    w.listener = &guard.listener;
    w.http.app = &guard.app;
    w.http.app_ctx = &guard.thread;
    w.settings.notify_accept = w.settings.notify_client = true;
    return 0;
}

/* Checks that nothing is counted or held any more. */
static int close_guard(void **state)
{
    (void)state;
    mk__conn_abort_all(&w.http);
    mk_test_fixture_close(&w);
    remove_sections();
    mk_arena_release(&guard.host.arena);
    zones_free(guard.process.zones); /* asserts that there are none */
    struct mk_generation *g = &guard.generation;
    memset(g->states, 0, sizeof(g->states));
    g->default_host->states[0] = NULL;
    g->plugin_states[0] = NULL;
    memcpy(g->plugins, guard.loaded, sizeof(guard.loaded));
    g->n_plugins = guard.n_loaded;
    mk__generation_release(g);
    return 0;
}

static int make_folder(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("conf");
    mk_test_mkdir("conf/sites");
    mk_test_write("conf/monkey.conf", MK_STR("[SERVER]\n    Listen 127.0.0.1:0\n"));
    mk_test_write("conf/sites/default", MK_STR("[HOST]\n    DocumentRoot .\n"));
    return 0;
}

/* Tells whether the server has ended the connection; its client may still send. */
static inline bool is_ended(const struct mk_test_client *c)
{
    return c->shut || c->closed;
}

#define ASK(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"
#define ASK_FOR(path, client) "GET " path " HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: " client "\r\n\r\n"
#define PROXY(client) "PROXY TCP4 " client " 10.0.0.9 4711 80\r\n"

static inline struct mk_test_client *connect_from(const char *peer, const char *first)
{
    guard.peer = peer;
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(first));
    mk_test_settle(&w);
    return c;
}

/* Sends a request, and returns what came since the last call. */
static inline const char *ask(struct mk_test_client *c, const char *text)
{
    mk_test_send(c, mk_str_c(text));
    mk_test_settle(&w);
    return mk_test_received(c).p;
}

/* Returns the status of a response; 0: there is none. */
static inline int status_of(const char *text)
{
    uint64_t status = 0;
    if (strncmp(text, "HTTP/1.1 ", 9) != 0 || !mk_str_u64(mk_str(text + 9, 3), 599, &status))
        return 0;
    return (int)status;
}

#endif
