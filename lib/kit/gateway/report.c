// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

#include <monkey/base/escape.h>
#include <monkey/kit/command.h>
#include <monkey/kit/counter_table.h>
#include <monkey/kit/json.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/*
 * ── failures ──
 *
 * The table of failures. The rows of a dial, and those of what follows it, each end with one for any other
 * error.
 */

enum { VALUE_BYTES = 1280 };

static const struct mk__gw_failure failures[] = {
    {-ETIMEDOUT, true, false, 504, "connection_timeout", NULL},
    {-ENXIO, true, false, 502, "dns_error", NULL},
    {-EAGAIN, true, true, 502, "dns_timeout", NULL},
    {-ECONNREFUSED, true, false, 502, "connection_refused", NULL},
    {-ENOENT, true, false, 502, "connection_refused", NULL},
    {-EHOSTUNREACH, true, false, 502, "destination_ip_unroutable", NULL},
    {-ENETUNREACH, true, false, 502, "destination_ip_unroutable", NULL},
    {-EADDRNOTAVAIL, true, true, 503, "connection_limit_reached", NULL}, /* no local port, or no such SourceAddress */
    {-EBUSY, true, true, 503, "connection_limit_reached", NULL},
    {-EMFILE, true, true, 503, "connection_limit_reached", NULL},
    {-ENFILE, true, true, 503, "connection_limit_reached", NULL},
    {-ENOBUFS, true, true, 503, "proxy_internal_error", NULL},
    {-ENOMEM, true, true, 503, "proxy_internal_error", NULL},
    {0, true, false, 502, "destination_unavailable", NULL},
    {-ETIMEDOUT, false, false, 504, "http_response_timeout", "it takes too long"},
    {-EPIPE, false, false, 502, "http_response_incomplete",
     "it has closed the connection before its response was complete"},
    {-ECONNRESET, false, false, 502, "connection_terminated", "it has reset the connection"},
    {-EINVAL, false, false, 502, "http_protocol_error", "its response is malformed"},
    {-EMSGSIZE, false, false, 502, "http_response_header_section_size", NULL}, /* describe_excess() */
    {-ENOBUFS, false, false, 502, "http_response_header_section_size", "its response has too many headers"},
    {-EPROTO, false, false, 502, "http_upgrade_failed", "it does not do the upgrade that was asked for"},
    {-EBUSY, false, false, 503, "connection_limit_reached", "it is overloaded"},
    {-ENOPROTOOPT, false, false, 502, "http_protocol_error", "it does not serve such requests"},
    {-ELOOP, false, false, 502, "http_protocol_error", "it sends too many interim responses"},
    {-EDQUOT, false, true, 503, "proxy_internal_error",
     "the body of the request cannot be read from where it was kept"},
    {-EMFILE, false, true, 503, "proxy_internal_error", "this server has no descriptor left for it"},
    {-ENFILE, false, true, 503, "proxy_internal_error", "the system has no descriptor left for it"},
    {-ENOMEM, false, true, 503, "proxy_internal_error", "there is no memory for it"},
    {0, false, false, 502, "connection_terminated", NULL},
};

const struct mk__gw_failure *mk__gw_failure_find(bool is_dial, int err)
{
    const struct mk__gw_failure *f = failures;
    while (f->is_dial != is_dial || (f->err && f->err != err))
        f++;
    return f;
}

/* Names the limit that a response is above. */
static void describe_excess(const struct mk__gw_download *down, struct mk_buf *out)
{
    const struct mk_response_parser *p = &down->parser;
    uint64_t bytes = down->limits->head_bytes_max;
    if (p->head_bytes)
        mk_buf_adds(out, MK_STR("the lines before its chunks, or its trailers, are too long"));
    else if (p->head.n_fields == down->limits->fields_max)
        mk_buf_addf(out, "its response has too many headers (at most %u)", down->limits->fields_max);
    else
        mk_buf_addf(out, "the head of its response is too long (MaxResponseHead is %" PRIu64 "%s)",
                    bytes % 1024 ? bytes : bytes / 1024, bytes % 1024 ? "" : "K");
}

static void describe_error(const struct mk__gw_failure *f, const struct mk__gw_download *down, int err,
                           struct mk_buf *out)
{
    if (err == -EMSGSIZE)
        describe_excess(down, out);
    else
        mk_buf_addf(out, "%s", f->text ? f->text : strerror(-err));
    if (err == -ELOOP)
        mk_buf_addf(out, " (at most %d)", MK__GW_INTERIM_MAX);
}

struct mk_str mk__gw_failure_describe(const struct mk__gw_failure *f, const struct mk__gw_download *down, int err,
                                      const char *head, struct mk_buf *out)
{
    const struct mk_gateway_call *call = down->call;
    const struct mk_response_fault *fault = &down->parser.fault;
    const char *own = call->protocol->describe_fault ? call->protocol->describe_fault(call, err) : NULL;
    if (own)
        mk_buf_addf(out, "%s", own);
    else
        describe_error(f, down, err, out);
    if (own || err != -EINVAL || !fault->text)
        return own ? mk_str_c(own) : MK_STR_NONE;
    mk_buf_adds(out, MK_STR(": "));
    mk_response_fault_describe(fault, head, out);
    return call->protocol->parse_head ? mk_str_c(fault->text) : MK_STR_NONE;
}

void mk__gw_failure_write(struct mk_buf *out, const char *type, struct mk_str details)
{
    mk_buf_addf(out, "monkey; error=%s", type);
    if (!details.len)
        return;
    mk_buf_adds(out, MK_STR("; details=\"")); /* a string of structured fields (RFC 8941 section 3.3.3) */
    mk_quoted_escape(out, details);
    mk_buf_addc(out, '"');
}

void mk__gw_failure_respond(struct mk_request *req, int status, const char *type, struct mk_str details)
{
    MK_BUF_ON_STACK(value, VALUE_BYTES);
    mk__gw_failure_write(&value, type, details);
    mk_response_error(req, status);
    mk_response_header(req, MK_STR("Proxy-Status"), mk_buf_str(&value));
}

/* ── counters and notes ── */

enum { NUMBER_BYTES = 24, LIST_BYTES = 1024 };

static void count_event(const struct mk__gw_report *r, enum mk_backend_counter counter, int64_t n)
{
    mk_backend_stats_add(r->stats, counter, mk_request_worker(r->req), n);
}

static void count_sum(const struct mk__gw_report *r, enum mk_gateway_count count)
{
    mk_counter_add(r->gateway->counters[count], mk_request_worker(r->req), 1);
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

/* Cuts elements off the end of a list until it has `room` bytes at most, and the mark, if it ends with that. */
static struct mk_str truncate_list(struct mk_str list, size_t room)
{
    while (list.len > room || mk_str_ends(list, left_out))
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

/*
 * ── backends in `monkey shell` ──
 *
 * Lists backends for `monkey shell` (<monkey/kit/gateway.h>): a row for each backend, and for each server of a group,
 * from the counters.
 */

static const struct mk_counter_table_number numbers[] = {
    {"backend_requests", NULL, NULL, NULL, "requests"},
    {"backend_responses", "status", "4xx", NULL, "4xx"},
    {"backend_responses", "status", "5xx", NULL, "5xx"},
    {"backend_retries", NULL, NULL, NULL, "retries"}, /* retries have reasons */
    {"backend_failures", NULL, NULL, NULL, "failures"},
    {"backend_timeouts", NULL, NULL, NULL, "timeouts"},
    {"backend_connections", "state", "busy", NULL, "busy"},
    {"backend_connections", "state", "idle", NULL, "idle"},
    {"backend_sent_bytes", NULL, NULL, NULL, "sent_bytes"},
    {"backend_received_bytes", NULL, NULL, NULL, "received_bytes"},
    {0},
};

static const struct mk_counter_table_duration durations[] = {{"backend_head_duration", NULL}, {0}};

static int add_counter(const struct mk_counter_value *v, void *ctx)
{
    mk_counter_table_add(ctx, v);
    return 0;
}

static void show_row(struct mk_command_call *call, const struct mk_counter_table_row *row)
{
    struct mk_buf *out = mk_command_begin_row(call);
    mk_json_str(out, "backend", mk_counter_table_label(row, 0));
    mk_json_str(out, "server", mk_counter_table_label(row, 1));
    for (unsigned i = 0; numbers[i].counter; i++)
        mk_json_number(out, numbers[i].key, row->numbers[i]);
    mk_json_number(out, "head_p50_us", (int64_t)mk_counter_quantile_us(row->durations[0].buckets, 0.5));
    mk_json_number(out, "head_p99_us", (int64_t)mk_counter_quantile_us(row->durations[0].buckets, 0.99));
    mk_command_end_row(call);
}

/* All rows in one call, since another one would read the counters anew: there are few. */
int mk_gateway_list_backends(struct mk_command_call *call, const struct mk_plugin *plugin)
{
    const struct mk_counter_table_type type = {.plugin = plugin->name,
                                               .labels = {"backend", "server"},
                                               .numbers = numbers,
                                               .durations = durations};
    struct mk_counter_table table = {.type = &type};
    mk_counters_each(add_counter, &table);
    for (unsigned i = 0; i < table.n; i++)
        show_row(call, &table.rows[i]);
    int err = table.omits_some && !table.n ? -ENOMEM : 0;
    if (table.omits_some)
        mk_command_warn(call, "there are more than %u backends", table.n);
    mk_counter_table_release(&table);
    return err;
}
