// SPDX-License-Identifier: Apache-2.0
/*
 * Counts and notes what happens to a request (report.h).
 */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { NUMBER_BYTES = 24, LIST_BYTES = 1024 };

static void count_event(const struct mk__gw_report *r, enum mk_backend_counter counter, int64_t n)
{
    mk_backend_stats_add(r->stats, counter, mk_request_worker(r->req), n);
}

static void count_sum(const struct mk__gw_report *r, enum mk_gateway_count count)
{
    mk__gateway_count(r->gateway, mk_request_worker(r->req), count);
}

static void note_number(const struct mk__gw_report *r, struct mk_str name, uint64_t number)
{
    char text[NUMBER_BYTES];
    int len = snprintf(text, sizeof(text), "%" PRIu64, number);
    mk_request_note(r->req, name, mk_str(text, (size_t)len)); /* without memory the log does without it */
}

static const struct mk_str separator = MK_STR_INIT(", "), left_out = MK_STR_INIT(", ...");

static size_t find_last_separator(struct mk_str list)
{
    const char *comma = list.len ? memrchr(list.p, separator.p[0], list.len) : NULL;
    return comma ? (size_t)(comma - list.p) : 0;
}

static bool ends_with_mark(struct mk_str list)
{
    return list.len >= left_out.len && mk_str_eq(mk_str(list.p + list.len - left_out.len, left_out.len), left_out);
}

/* Cuts elements off the end of a list until it has `room` bytes at most, and the mark, if it ends with that. */
static struct mk_str truncate_list(struct mk_str list, size_t room)
{
    while (list.len > room || ends_with_mark(list))
        list.len = find_last_separator(list);
    return list;
}

/* Adds to a note that is a list. A long one has its first elements and the last one. */
static void note_element(const struct mk__gw_report *r, struct mk_str name, struct mk_str element)
{
    struct mk_str former = mk_request_get_note(r->req, name);
    size_t taken = separator.len + element.len, room = taken < LIST_BYTES ? LIST_BYTES - taken : 0;
    bool is_long = former.len > room;
    if (is_long)
        former = truncate_list(former, room > left_out.len ? room - left_out.len : 0);
    MK_BUF_ON_STACK(list, LIST_BYTES);
    mk_buf_adds(&list, former);
    mk_buf_adds(&list, is_long ? left_out : MK_STR_NONE);
    mk_buf_adds(&list, former.len ? separator : MK_STR_NONE);
    mk_buf_adds(&list, element);
    mk_request_note(r->req, name, mk_buf_str(&list));
}

static uint64_t get_now_us(const struct mk__gw_report *r)
{
    return mk_loop_now_us(mk_request_loop(r->req));
}

/* Notes the time since the exchange began. Returns the time since the request went to its server. */
static uint64_t note_time(const struct mk__gw_report *r, struct mk_str name)
{
    uint64_t now = get_now_us(r);
    note_number(r, name, now - r->began_us);
    return now - r->server_us;
}

void mk__gw_report_begin(struct mk__gw_report *r, struct mk_request *req, const struct mk_gateway_route *route)
{
    *r = (struct mk__gw_report){.req = req, .gateway = route->gateway, .stats = route->stats.backend};
    count_sum(r, MK_GATEWAY_COUNT_REQUESTS);
    if (!route->group)
        count_event(r, MK_BACKEND_REQUESTS, 1);
    if (!mk_request_began_us(req))
        return;
    r->began_us = r->server_us = get_now_us(r);
    mk_request_note(req, MK_STR("upstream"), r->stats->backend);
    note_number(r, MK_STR("retries"), 0);
}

static void count_retry(struct mk__gw_report *r, enum mk_upstream_failure reason)
{
    r->retries++;
    count_sum(r, MK_GATEWAY_COUNT_RETRIES);
    count_event(r, MK_BACKEND_RETRIES + reason, 1);
    if (r->began_us)
        note_number(r, MK_STR("retries"), r->retries);
}

void mk__gw_report_server(struct mk__gw_report *r, const struct mk_backend_stats *stats, struct mk_str address,
                          enum mk_upstream_failure failure)
{
    bool is_first = r->servers++ == 0;
    if (!is_first)
        count_retry(r, failure);
    r->stats = stats;
    r->server_us = r->began_us ? get_now_us(r) : 0;
    count_event(r, MK_BACKEND_REQUESTS, 1);
    if (r->began_us && is_first)
        mk_request_note(r->req, MK_STR("upstream"), address); /* instead of the group */
    else if (r->began_us)
        note_element(r, MK_STR("upstream"), address);
}

void mk__gw_report_opened(const struct mk__gw_report *r)
{
    count_sum(r, MK_GATEWAY_COUNT_CONNECTIONS);
}

void mk__gw_report_ready(const struct mk__gw_report *r, uint64_t connect_us)
{
    mk_backend_stats_observe(r->stats, MK_BACKEND_CONNECT_DURATION, mk_request_worker(r->req), connect_us);
}

void mk__gw_report_connected(const struct mk__gw_report *r)
{
    if (r->began_us)
        note_time(r, MK_STR("upstream_connect_us"));
}

/* The same server has the request again. */
static void note_same_server(const struct mk__gw_report *r)
{
    struct mk_str name = MK_STR("upstream"), list = mk_request_get_note(r->req, name);
    size_t at = find_last_separator(list), skip = at ? at + separator.len : 0;
    note_element(r, name, mk_str_after(list, skip));
}

void mk__gw_report_retry(struct mk__gw_report *r, enum mk_upstream_failure reason)
{
    count_retry(r, reason);
    if (r->began_us)
        note_same_server(r);
}

void mk__gw_report_head(const struct mk__gw_report *r, unsigned status)
{
    mk_backend_stats_add_status(r->stats, mk_request_worker(r->req), status);
    if (!r->began_us)
        return;
    char digits[] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10), (char)('0' + status % 10)};
    note_element(r, MK_STR("upstream_status"), mk_str(digits, sizeof(digits)));
    mk_backend_stats_observe(r->stats, MK_BACKEND_HEAD_DURATION, mk_request_worker(r->req),
                             note_time(r, MK_STR("upstream_head_us")));
}

void mk__gw_report_error(const struct mk__gw_report *r, const char *type)
{
    if (r->began_us)
        note_element(r, MK_STR("upstream_status"), mk_str_c(type));
}

void mk__gw_report_end(const struct mk__gw_report *r)
{
    if (r->began_us)
        mk_backend_stats_observe(r->stats, MK_BACKEND_DURATION, mk_request_worker(r->req),
                                 note_time(r, MK_STR("upstream_us")));
}

void mk__gw_report_failure(const struct mk__gw_report *r, int err)
{
    count_sum(r, err == -ETIMEDOUT ? MK_GATEWAY_COUNT_TIMEOUTS : MK_GATEWAY_COUNT_FAILURES);
    count_event(r, err == -ETIMEDOUT ? MK_BACKEND_TIMEOUTS : MK_BACKEND_FAILURES, 1);
    if (r->began_us)
        note_time(r, MK_STR("upstream_us"));
}
