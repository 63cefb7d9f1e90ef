// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the counters of backends, and hides those of backends that are gone (tally.h).
 */
#include "tally.h"

#include <monkey/arena.h>

/* The counters, with a further label. */
static const struct {
    enum mk_gateway_count info;
    const char *name, *value;
} rows[MK__GW_TALLY_COUNTERS] = {
    [MK__GW_TALLY_REQUESTS] = {MK_GATEWAY_COUNT_BACKEND_REQUESTS, NULL, NULL},
    [MK__GW_TALLY_RESPONSES] = {MK_GATEWAY_COUNT_BACKEND_RESPONSES, "status", "1xx"},
    [MK__GW_TALLY_RESPONSES + 1] = {MK_GATEWAY_COUNT_BACKEND_RESPONSES, "status", "2xx"},
    [MK__GW_TALLY_RESPONSES + 2] = {MK_GATEWAY_COUNT_BACKEND_RESPONSES, "status", "3xx"},
    [MK__GW_TALLY_RESPONSES + 3] = {MK_GATEWAY_COUNT_BACKEND_RESPONSES, "status", "4xx"},
    [MK__GW_TALLY_RESPONSES + 4] = {MK_GATEWAY_COUNT_BACKEND_RESPONSES, "status", "5xx"},
    [MK__GW_TALLY_RETRIES + MK_UPSTREAM_NOT_REACHED] = {MK_GATEWAY_COUNT_BACKEND_RETRIES, "reason", "not_reached"},
    [MK__GW_TALLY_RETRIES + MK_UPSTREAM_KEPT_ENDED] = {MK_GATEWAY_COUNT_BACKEND_RETRIES, "reason", "kept_connection"},
    [MK__GW_TALLY_RETRIES + MK_UPSTREAM_SENT] = {MK_GATEWAY_COUNT_BACKEND_RETRIES, "reason", "no_response"},
    [MK__GW_TALLY_RETRIES + MK_UPSTREAM_STATUS] = {MK_GATEWAY_COUNT_BACKEND_RETRIES, "reason", "status"},
    [MK__GW_TALLY_FAILURES] = {MK_GATEWAY_COUNT_BACKEND_FAILURES, NULL, NULL},
    [MK__GW_TALLY_TIMEOUTS] = {MK_GATEWAY_COUNT_BACKEND_TIMEOUTS, NULL, NULL},
    [MK__GW_TALLY_OPENED] = {MK_GATEWAY_COUNT_BACKEND_OPENED, NULL, NULL},
    [MK__GW_TALLY_BUSY] = {MK_GATEWAY_COUNT_BACKEND_CONNECTIONS, "state", "busy"},
    [MK__GW_TALLY_IDLE] = {MK_GATEWAY_COUNT_BACKEND_CONNECTIONS, "state", "idle"},
    [MK__GW_TALLY_SENT_BYTES] = {MK_GATEWAY_COUNT_BACKEND_SENT, NULL, NULL},
    [MK__GW_TALLY_RECEIVED_BYTES] = {MK_GATEWAY_COUNT_BACKEND_RECEIVED, NULL, NULL},
    [MK__GW_TALLY_CONNECT_DURATION] = {MK_GATEWAY_COUNT_BACKEND_CONNECT_DURATION, NULL, NULL},
    [MK__GW_TALLY_HEAD_DURATION] = {MK_GATEWAY_COUNT_BACKEND_HEAD_DURATION, NULL, NULL},
    [MK__GW_TALLY_DURATION] = {MK_GATEWAY_COUNT_BACKEND_DURATION, NULL, NULL},
};

static struct mk__gw_tally *find_tally(struct mk_gateway *gateway, struct mk_str backend, struct mk_str server)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&gateway->tallies, n, save) {
        struct mk__gw_tally *tally = MK_CONTAINER_OF(n, struct mk__gw_tally, node);
        if (mk_str_eq(tally->backend, backend) && mk_str_eq(tally->server, server))
            return tally;
    }
    return NULL;
}

static struct mk__gw_tally *make_tally(struct mk_gateway *gateway, struct mk_str backend, struct mk_str server)
{
    struct mk__gw_tally *tally = mk_account_alloc(NULL, sizeof(*tally) + backend.len + server.len);
    if (!tally)
        return NULL;
    char *text = (char *)(tally + 1);
    *tally = (struct mk__gw_tally){.backend = {text, backend.len}, .server = {text + backend.len, server.len}};
    char *end = mempcpy(text, backend.p, backend.len);
    if (server.len)
        memcpy(end, server.p, server.len);
    mk_list_add(&gateway->tallies, &tally->node);
    return tally;
}

static void open_counters(const struct mk_gateway_type *type, struct mk__gw_tally *tally)
{
    for (unsigned i = 0; i < MK__GW_TALLY_COUNTERS; i++) {
        struct mk_counter_label labels[3] = {{"backend", tally->backend}};
        unsigned n = 1;
        if (tally->server.len)
            labels[n++] = (struct mk_counter_label){"server", tally->server};
        if (rows[i].name)
            labels[n++] = (struct mk_counter_label){rows[i].name, mk_str_c(rows[i].value)};
        const struct mk_counter *counter = mk_counter_open(&type->counters[rows[i].info], labels, n);
        if (tally->counters[i] != counter) /* threads may be counting */
            tally->counters[i] = counter;
    }
}

struct mk__gw_tally *mk__gw_tally_get(struct mk_gateway *gateway, struct mk_str backend, struct mk_str server)
{
    pthread_mutex_lock(&gateway->lock);
    struct mk__gw_tally *tally = find_tally(gateway, backend, server);
    if (!tally)
        tally = make_tally(gateway, backend, server);
    if (tally && tally->refs++ == 0)
        open_counters(gateway->type, tally);
    pthread_mutex_unlock(&gateway->lock);
    return tally;
}

void mk__gw_tally_put(struct mk_gateway *gateway, struct mk__gw_tally *tally)
{
    pthread_mutex_lock(&gateway->lock);
    tally->refs--;
    pthread_mutex_unlock(&gateway->lock);
}

static bool is_used(struct mk_str labels, void *ctx)
{
    const struct mk_gateway *gateway = ctx;
    char storage[2][MK_COUNTER_LABEL_VALUE_BYTES];
    struct mk_str backend = mk_counter_label_get(labels, MK_STR("backend"), storage[0]);
    struct mk_str server = mk_counter_label_get(labels, MK_STR("server"), storage[1]);
    struct mk_list *n, *save;
    MK_LIST_EACH(&gateway->tallies, n, save) {
        const struct mk__gw_tally *tally = MK_CONTAINER_OF(n, struct mk__gw_tally, node);
        if (tally->refs && mk_str_eq(mk_counter_label_cut(tally->backend), backend) &&
            mk_str_eq(mk_counter_label_cut(tally->server), server))
            return true;
    }
    return false;
}

void mk__gw_tally_hide_unused(struct mk_gateway *gateway)
{
    pthread_mutex_lock(&gateway->lock);
    mk_counters_hide(gateway->type->plugin->name, "backend", is_used, gateway);
    pthread_mutex_unlock(&gateway->lock);
}

void mk__gw_tally_free_all(struct mk_gateway *gateway)
{
    while (!mk_list_empty(&gateway->tallies)) {
        struct mk__gw_tally *tally = MK_LIST_FIRST(&gateway->tallies, struct mk__gw_tally, node);
        mk_list_del(&tally->node);
        mk_account_free(NULL, tally, sizeof(*tally) + tally->backend.len + tally->server.len);
    }
}
