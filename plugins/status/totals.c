// SPDX-License-Identifier: Apache-2.0
/*
 * Adds up counters (totals.h).
 */
#include "totals.h"

#include <monkey/arena.h>

#include <stdlib.h>

enum { HOSTS_FIRST = 16 };

const char *const totals_class_names[TOTALS_CLASSES] = {
    [TOTALS_NONE] = "none", [TOTALS_1XX] = "1xx", [TOTALS_2XX] = "2xx",
    [TOTALS_3XX] = "3xx",   [TOTALS_4XX] = "4xx", [TOTALS_5XX] = "5xx",
};

/* ── hosts ── */

static bool grow_hosts(struct totals *t)
{
    unsigned room = t->room ? t->room * 2 : HOSTS_FIRST;
    struct totals_host *hosts = NULL;
    if (room <= TOTALS_HOSTS_MAX)
        hosts = mk_account_grow(NULL, t->hosts, t->room * sizeof(*hosts), room * sizeof(*hosts));
    if (!hosts)
        return false;
    t->hosts = hosts;
    t->room = room;
    return true;
}

/* Returns the host of that name, a new one if there is none yet; NULL: there are too many. */
static struct totals_host *find_host(struct totals *t, struct mk_str name)
{
    for (unsigned i = t->n_hosts; i--;) /* the counters of a host stand next to each other */
        if (mk_str_eq(mk_str(t->hosts[i].name, t->hosts[i].name_len), name))
            return &t->hosts[i];
    if (t->n_hosts == t->room && !grow_hosts(t)) {
        t->omits_hosts = true;
        return NULL;
    }
    struct totals_host *host = &t->hosts[t->n_hosts++];
    memset(host, 0, sizeof(*host));
    memcpy(host->name, name.p, name.len);
    host->name_len = (uint16_t)name.len;
    return host;
}

static int compare_hosts(const void *a, const void *b)
{
    const struct totals_host *x = a, *y = b;
    if (x->requests != y->requests)
        return x->requests > y->requests ? -1 : 1;
    int order = memcmp(x->name, y->name, x->name_len < y->name_len ? x->name_len : y->name_len);
    return order ? order : (int)x->name_len - (int)y->name_len;
}

/* ── counters ── */

static void add_requests(struct totals_host *host, const struct mk_counter_value *v)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    struct mk_str class = mk_counter_label_get(v->labels, MK_STR("status"), storage);
    host->requests += (uint64_t)v->value;
    for (unsigned i = 0; i < TOTALS_CLASSES; i++)
        if (mk_str_eq(class, mk_str_c(totals_class_names[i])))
            host->classes[i] += (uint64_t)v->value;
}

static void add_received(struct totals_host *host, const struct mk_counter_value *v)
{
    host->received_body_bytes += (uint64_t)v->value;
}

static void add_sent(struct totals_host *host, const struct mk_counter_value *v)
{
    host->sent_body_bytes += (uint64_t)v->value;
}

static void add_aborted(struct totals_host *host, const struct mk_counter_value *v)
{
    host->responses_aborted += (uint64_t)v->value;
}

static void add_durations(struct totals_host *host, const struct mk_counter_value *v)
{
    host->sum_us += v->sum_us;
    for (unsigned i = 0; v->buckets && i < MK_COUNTER_BUCKETS; i++)
        host->buckets[i] += v->buckets[i];
}

/* Counters of hosts. */
static const struct {
    struct mk_str name;
    void (*add)(struct totals_host *host, const struct mk_counter_value *v);
} host_rows[] = {
    {MK_STR("requests"), add_requests},          {MK_STR("received_body_bytes"), add_received},
    {MK_STR("sent_body_bytes"), add_sent},       {MK_STR("responses_aborted"), add_aborted},
    {MK_STR("request_duration"), add_durations},
};

/* Counters of the server, whose labels are added up. */
static const struct {
    struct mk_str name;
    size_t offset;
} server_rows[] = {
    {MK_STR("accepted_connections"), offsetof(struct totals, accepted_connections)},
    {MK_STR("refused_connections"), offsetof(struct totals, refused_connections)},
    {MK_STR("rejected_requests"), offsetof(struct totals, rejected_requests)},
    {MK_STR("timeouts"), offsetof(struct totals, timeouts)},
    {MK_STR("http2_floods"), offsetof(struct totals, floods)},
    {MK_STR("connections"), offsetof(struct totals, connections)},
};

void totals_add(struct totals *t, const struct mk_counter_value *v)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    for (unsigned i = 0; i < MK_COUNT_OF(server_rows); i++)
        if (mk_str_eq(v->name, server_rows[i].name))
            *(int64_t *)(void *)((char *)t + server_rows[i].offset) += v->value;
    for (unsigned i = 0; i < MK_COUNT_OF(host_rows); i++) {
        if (!mk_str_eq(v->name, host_rows[i].name))
            continue;
        struct totals_host *host = find_host(t, mk_counter_label_get(v->labels, MK_STR("host"), storage));
        host_rows[i].add(&t->all, v);
        if (host)
            host_rows[i].add(host, v);
    }
}

void totals_sort(struct totals *t)
{
    if (t->n_hosts)
        qsort(t->hosts, t->n_hosts, sizeof(*t->hosts), compare_hosts);
}

void totals_release(struct totals *t)
{
    mk_account_free(NULL, t->hosts, t->room * sizeof(*t->hosts));
    t->hosts = NULL;
}
