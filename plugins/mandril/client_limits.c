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

static uint64_t round_up_to_seconds(uint64_t us)
{
    return (us + US_PER_S - 1) / US_PER_S;
}

/* Returns the time from which on the record of a client is as a new one for the section. */
static uint64_t find_idle_time(const struct limit *limit, const struct zone_client *client)
{
    uint64_t rate = bucket_full_at(&client->rate, &limit->rate),
             sent = bucket_full_at(&client->sent, &limit->send_rate);
    return rate > sent ? rate : sent;
}

/* Sets the values of RateLimit. */
static void set_rate(struct limit_answer *answer, const struct limit *limit, struct zone_client *client,
                     uint64_t now_us)
{
    answer->has_rate = true;
    answer->remaining = bucket_count(&client->rate, &limit->rate, now_us);
    uint64_t full = bucket_full_at(&client->rate, &limit->rate);
    uint64_t wait = answer->remaining ? full - now_us : bucket_wait_us(&client->rate, &limit->rate, 1);
    answer->reset_s = full > now_us ? round_up_to_seconds(wait) : 0;
}

/* What sections of a zone have counted of a request in the record of its client. */
struct held {
    bool has_token, is_under_way;
};

static struct held find_held(const struct exchange *x, const struct zone *zone, const struct zone_client *client)
{
    const struct mk_client_ref ref = mk_client_table_ref(zone->table, client);
    struct held held = {.has_token = false};
    for (const struct limit_count *count = x->counts; count; count = count->next) {
        if (count->limit->base.zone != zone)
            continue;
        held.has_token |= count->has_token;
        held.is_under_way |= count->ref.entry == ref.entry && count->ref.life == ref.life; /* it was not evicted */
    }
    return held;
}

/* Takes a token for a request; if it has one, that must be within the burst of this section, too. */
static bool take_token(const struct limit *limit, struct zone_client *client, bool has_token, uint64_t now_us)
{
    if (!has_token)
        return bucket_take(&client->rate, &limit->rate, 1, now_us);
    bucket_count(&client->rate, &limit->rate, now_us);
    return bucket_wait_us(&client->rate, &limit->rate, 0) == 0;
}

/* Counts a request, but for what is held, if it is within the limits. */
static struct limit_answer count_request(const struct limit *limit, struct zone_client *client, struct held held,
                                         uint64_t now_us)
{
    const struct limit_conf *conf = limit->conf;
    uint32_t others = client->requests - held.is_under_way;
    struct limit_answer answer = {.fine = !conf->requests_max || others < conf->requests_max};
    if (conf->rate.n) {
        answer.fine = answer.fine && take_token(limit, client, held.has_token, now_us);
        set_rate(&answer, limit, client, now_us);
    }
    if (!answer.fine)
        answer.retry_after_s = answer.has_rate && !answer.remaining ? (uint32_t)answer.reset_s : 1;
    else
        client->requests += conf->requests_max > 0 && !held.is_under_way;
    return answer;
}

static void log_refusal(const struct limit *limit, const struct conditions_subject *subject, struct mk_str what)
{
    struct zone_decision line = {
        .place = limit->base.place,
        .name = limit->base.name,
        .what = what,
        .client = subject->client,
        .req = subject->req,
        .level = MK_LOG_INFO,
        .dry_run = limit->conf->dry_run,
    };
    decision_counters_add(DECISION_LIMIT_DENY, line.dry_run, mk_request_worker(subject->req));
    zone_log(limit->base.zone, &line, mk_loop_now_ms(mk_request_loop(subject->req)));
}

static bool was_counted(const struct exchange *x, const struct zone *zone)
{
    const struct limit_count *count = x->counts;
    while (count && count->limit->base.zone != zone)
        count = count->next;
    return count != NULL;
}

/* Returns what the section has counted for the path that was decided before; NULL: nothing. */
static const struct limit_count *find_count(const struct exchange *x, const struct limit *limit)
{
    const struct limit_count *count = x->counts;
    while (count && count->limit != limit)
        count = count->next;
    return count;
}

/*
 * Counts the request of a client, and logs if it is above the limits. What another section of the zone has counted
 * for the path that was decided before is not counted again. Returns 0 or -ENOMEM.
 */
static int count_client(struct exchange *x, const struct limit *limit, const struct conditions_subject *subject,
                        struct limit_answer *ret)
{
    struct mk_client_table *table = limit->base.zone->table;
    struct mk_loop *loop = mk_request_loop(x->req);
    uint64_t now_us = mk_loop_now_us(loop);
    struct limit_count *count = mk_arena_zalloc(mk_request_arena(x->req), sizeof(*count));
    if (!count)
        return -ENOMEM;
    struct zone_client *client = mk_client_table_lock(table, &subject->client, now_us);
    const struct held held = find_held(x, limit->base.zone, client);
    *ret = count_request(limit, client, held, now_us);
    *count = (struct limit_count){.next = x->counts,
                                  .limit = limit,
                                  .has_token = ret->fine && limit->conf->rate.n,
                                  .answer = *ret};
    if (ret->fine && limit->conf->requests_max && !held.is_under_way)
        count->ref = mk_client_table_ref(table, client);
    x->counts = count;
    zone_unlock_client(limit->base.zone, client, find_idle_time(limit, client));
    zone_check_evictions(limit->base.zone, mk_request_host_conf(x->req), limit->base.place, mk_loop_now_ms(loop));
    if (!ret->fine)
        log_refusal(limit, subject, MK_STR("deny 429"));
    return 0;
}

/* Counts and logs for a section in a dry run, once for sections of one name. Returns 0 or -ENOMEM. */
static int try_limit(const struct limit *limit, const struct conditions_subject *subject)
{
    struct limit_answer unused;
    if (!limit->base.zone->table)
        return 0;
    struct exchange *x = mandril_get_exchange(subject->req);
    if (!x)
        return -ENOMEM;
    return was_counted(x, limit->base.zone) ? 0 : count_client(x, limit, subject, &unused);
}

/* Returns as client_limits_apply(). */
static int use_limit(const struct limit *limit, const struct conditions_subject *subject)
{
    if (!limit->base.zone->table && !limit->conf->send_rate)
        return MK_DECLINED;
    struct exchange *x = mandril_get_exchange(subject->req);
    if (!x)
        return -ENOMEM;
    if (limit->conf->send_rate && (!x->sends || limit->conf->send_rate < x->sends->conf->send_rate))
        x->sends = limit;
    const struct limit_count *count = find_count(x, limit);
    struct limit_answer answer = count ? count->answer : (struct limit_answer){.fine = true};
    int err = limit->base.zone->table && !count ? count_client(x, limit, subject, &answer) : 0;
    /* of two sections, for the path of the request and of its file, the fields tell of the one that leaves less */
    bool leaves_less = answer.has_rate && (!x->answer.has_rate || answer.remaining < x->answer.remaining);
    if (!x->limit || !answer.fine || leaves_less) {
        x->limit = limit;
        x->answer = answer;
    }
    if (err < 0 || answer.fine)
        return err < 0 ? err : MK_DECLINED;
    mk_response_error(subject->req, 429);
    return 0;
}

/* A pattern takes too much time: it is not known whether the section holds. Returns as client_limits_apply(). */
static int refuse_costly(const struct limit *limit, const struct conditions_subject *subject)
{
    log_refusal(limit, subject, MK_STR("deny 403, because a pattern takes too much time for the path,"));
    if (limit->conf->dry_run)
        return MK_DECLINED;
    mk_response_error(subject->req, 403);
    return 0;
}

int client_limits_apply(const struct host_state *host, struct files_refs *files,
                        const struct conditions_subject *subject)
{
    int err = 0;
    uint32_t i = 0;
    for (; err == 0 && (i = mk_pattern_index_next(host->limit_index, subject->path, i)) < host->n_limits; i++) {
        const struct limit *limit = &host->limits[i];
        if (!filter_contains(&limit->base.clients, files, &subject->client))
            continue;
        int found = conditions_match(&limit->conf->when, subject);
        if (found && !limit->conf->dry_run)
            return found < 0 ? refuse_costly(limit, subject) : use_limit(limit, subject);
        if (found < 0)
            refuse_costly(limit, subject);
        else if (found)
            err = try_limit(limit, subject);
    }
    return err < 0 ? err : MK_DECLINED;
}

static void end_count(const struct limit_count *count)
{
    struct zone_client *client = mk_client_table_lock_ref(count->limit->base.zone->table, count->ref);
    if (!client)
        return; /* the client was evicted */
    assert(client->requests > 0);
    client->requests--;
    zone_unlock_client(count->limit->base.zone, client, find_idle_time(count->limit, client));
}

void client_limits_end(struct exchange *x)
{
    for (const struct limit_count *count = x->counts; count; count = count->next)
        if (count->ref.entry)
            end_count(count);
    x->counts = NULL;
}

/* ── fields ── */

void client_limits_add_headers(struct exchange *x)
{
    char text[FIELD_BYTES];
    if (x->answer.retry_after_s) {
        snprintf(text, sizeof(text), "%u", x->answer.retry_after_s);
        mk_response_header(x->req, MK_STR("Retry-After"), mk_str_c(text));
    }
    if (!x->answer.has_rate)
        return;
    snprintf(text, sizeof(text), "\"%.*s\";r=%llu;t=%llu", MK_STR_ARG(x->limit->base.name),
             (unsigned long long)x->answer.remaining, (unsigned long long)x->answer.reset_s);
    mk_response_header_ref(x->req, MK_STR("RateLimit-Policy"), x->limit->policy);
    mk_response_header(x->req, MK_STR("RateLimit"), mk_str_c(text));
}
