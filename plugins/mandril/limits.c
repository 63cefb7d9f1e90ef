// SPDX-License-Identifier: Apache-2.0
/*
 * Applies [CLIENT_LIMITS]: counts requests in the record of the client, and tells clients with the fields RateLimit and
 * RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10) how many are left.
 */
#include "mandril.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

enum { US_PER_S = 1000000, FIELD_BYTES = 256 };

/* Finds the first section that holds. Returns 1, 0, or -errno: a pattern takes too much time. */
static int find_limit(const struct host_state *host, struct files_refs *files, const struct conditions_subject *subject,
                      const struct limit **ret)
{
    for (uint32_t i = 0; i < host->n_limits; i++) {
        const struct limit *limit = *ret = &host->limits[i];
        if (!filter_contains(&limit->base.clients, files, &subject->client))
            continue;
        int found = conditions_match(&limit->conf->when, subject);
        if (found)
            return found;
    }
    return 0;
}

static uint64_t round_up_to_seconds(uint64_t us)
{
    return (us + US_PER_S - 1) / US_PER_S;
}

/* Returns the time from which on the record of a client is as a new one. */
static uint64_t find_idle_time(const struct limit *limit, const struct zone_client *client)
{
    if (client->requests || client->connections)
        return MK_CLIENT_IN_USE;
    uint64_t rate = bucket_full_at(&client->rate, &limit->rate),
             sent = bucket_full_at(&client->sent, &limit->send_rate);
    return rate > sent ? rate : sent;
}

/* Counts a request. Returns whether it is within the limits. */
static bool count_request(const struct limit *limit, struct zone_client *client, struct exchange *x, uint64_t now_us)
{
    const struct limit_conf *conf = limit->conf;
    if (conf->requests_max && client->requests >= conf->requests_max) {
        x->retry_after_s = 1;
        return false;
    }
    if (conf->rate.n) {
        bool taken = bucket_take(&client->rate, &limit->rate, 1, now_us);
        x->has_rate = true;
        x->remaining = bucket_count(&client->rate, &limit->rate, now_us);
        uint64_t full = bucket_full_at(&client->rate, &limit->rate);
        uint64_t wait = x->remaining ? full - now_us : bucket_wait_us(&client->rate, &limit->rate, 1);
        x->reset_s = full > now_us ? round_up_to_seconds(wait) : 0;
        if (!taken) {
            x->retry_after_s = (uint32_t)x->reset_s;
            return false;
        }
    }
    client->requests += conf->requests_max > 0;
    return true;
}

static void log_refusal(const struct limit *limit, const struct conditions_subject *subject, uint64_t now_ms)
{
    struct zone_decision line = {
        .place = limit->base.place,
        .name = limit->base.name,
        .what = MK_STR("deny 429"),
        .client = subject->client,
        .req = subject->req,
        .level = MK_LOG_INFO,
        .dry_run = limit->conf->dry_run,
    };
    zone_log(limit->base.zone, &line, now_ms);
}

/* Returns whether the request may go on. */
static bool count_client(struct exchange *x, const struct conditions_subject *subject)
{
    const struct limit *limit = x->limit;
    struct mk_client_table *table = limit->base.zone->table;
    struct mk_loop *loop = mk_request_loop(x->req);
    uint64_t now_us = mk_loop_now_us(loop), now_ms = mk_loop_now_ms(loop);
    struct zone_client *client = mk_client_table_lock(table, &subject->client, now_us);
    bool fine = count_request(limit, client, x, now_us);
    if (fine && limit->conf->requests_max)
        x->request = mk_client_table_ref(table, client);
    mk_client_table_unlock(table, client, find_idle_time(limit, client));
    zone_check_evictions(limit->base.zone, limit->base.place, now_ms);
    if (!fine)
        log_refusal(limit, subject, now_ms);
    return fine;
}

static int refuse_costly(const struct limit *limit, const struct conditions_subject *subject)
{
    struct zone_decision line = {
        .place = limit->base.place,
        .name = limit->base.name,
        .what = MK_STR("deny 403, because a pattern takes too much time for the path,"),
        .client = subject->client,
        .req = subject->req,
        .level = MK_LOG_INFO,
    };
    zone_log(limit->base.zone, &line, mk_loop_now_ms(mk_request_loop(subject->req)));
    mk_response_error(subject->req, 403);
    return 0;
}

int limits_apply(const struct host_state *host, struct files_refs *files, const struct conditions_subject *subject)
{
    const struct limit *limit;
    int found = find_limit(host, files, subject, &limit);
    if (found < 0)
        return refuse_costly(limit, subject);
    if (!found || (!limit->base.zone->table && !limit->conf->send_rate))
        return MK_DECLINED;
    struct exchange *x = mandril_get_exchange(subject->req);
    if (!x)
        return -ENOMEM;
    x->limit = limit;
    if (!limit->base.zone->table || count_client(x, subject))
        return MK_DECLINED;
    if (limit->conf->dry_run) {
        x->retry_after_s = 0;
        return MK_DECLINED;
    }
    mk_response_error(subject->req, 429);
    return 0;
}

void limits_end(struct exchange *x)
{
    struct mk_client_table *table = x->limit ? x->limit->base.zone->table : NULL;
    struct zone_client *client = x->request.entry ? mk_client_table_lock_ref(table, x->request) : NULL;
    x->request.entry = 0;
    if (!client)
        return; /* not counted, or the client was evicted */
    assert(client->requests > 0);
    client->requests--;
    mk_client_table_unlock(table, client, find_idle_time(x->limit, client));
}

/* ── fields ── */

void limits_add_headers(struct exchange *x)
{
    char text[FIELD_BYTES];
    if (x->retry_after_s) {
        snprintf(text, sizeof(text), "%u", x->retry_after_s);
        mk_response_header(x->req, MK_STR("Retry-After"), mk_str_c(text));
    }
    if (!x->has_rate || x->limit->conf->dry_run)
        return;
    snprintf(text, sizeof(text), "\"%.*s\";r=%llu;t=%llu", MK_STR_ARG(x->limit->base.name),
             (unsigned long long)x->remaining, (unsigned long long)x->reset_s);
    mk_response_header_ref(x->req, MK_STR("RateLimit-Policy"), x->limit->policy);
    mk_response_header(x->req, MK_STR("RateLimit"), mk_str_c(text));
}
