// SPDX-License-Identifier: Apache-2.0
/*
 * The server's counters (server/counts.h), and adding to counters for plugins.
 */
#include "server/counts.h"

#include "base/log.h"
#include "http/conn.h"
#include "http/count.h"
#include "http/h2/flood_counters.h"
#include "server/worker/worker.h"

#include <pthread.h>

static_assert((int)MK__CONN_STATES <= MK__COUNT_STATES_MAX && (int)MK__H2_FLOODS <= MK__COUNT_FLOODS_MAX,
              "a counter for each");

/* ── names ── */

#define SUM(symbol, name, help) static const struct mk_counter_info symbol = {NULL, name, help, MK_COUNTER_SUM}

SUM(accepted, "accepted_connections", "connections accepted");
SUM(refused, "refused_connections", "connections closed before a request was read, by reason");
SUM(rejected, "rejected_requests", "requests that HTTP rejects without asking a plugin, by reason");
SUM(timeouts, "timeouts", "timeouts, by what was waited for");
SUM(floods, "http2_floods", "HTTP/2 connections closed and streams ended for abuse, by kind");
SUM(starts, "starts", "starts of the server");
SUM(reloads, "reloads", "reloads of the configuration, by result");
SUM(lost_log_lines, "lost_log_lines", "lines that the error log has lost");
SUM(requests, "requests", "requests, by host, protocol and class of the status");
SUM(received, "received_body_bytes", "bytes of request bodies, by host");
SUM(sent, "sent_body_bytes", "bytes of response bodies, by host");
SUM(aborted, "responses_aborted", "responses that were begun and not sent completely, by host");
static const struct mk_counter_info connections = {NULL, "connections", "open connections, by state", MK_COUNTER_LEVEL};
static const struct mk_counter_info duration = {NULL, "request_duration",
                                                "time from the first byte of a request to "
                                                "the end of its response, by host",
                                                MK_COUNTER_HISTOGRAM};

/* A counter with one label; `value` NULL: none. */
struct row {
    const struct mk_counter_info *info;
    const char *label, *value;
};

static const struct row http_rows[MK__COUNT_STATES] = {
    [MK__COUNT_ACCEPTED] = {&accepted, NULL, NULL},
    [MK__COUNT_REFUSED_BY_PLUGIN] = {&refused, "reason", "plugin"},
    [MK__COUNT_REFUSED_PROXY_HEADER] = {&refused, "reason", "proxy_header"},
    [MK__COUNT_REFUSED_HANDSHAKES] = {&refused, "reason", "max_handshakes"},
    [MK__COUNT_REFUSED_MALFORMED] = {&rejected, "reason", "malformed"},
    [MK__COUNT_REFUSED_TARGET] = {&rejected, "reason", "target_too_long"},
    [MK__COUNT_REFUSED_HEAD] = {&rejected, "reason", "head_too_large"},
    [MK__COUNT_REFUSED_BODY] = {&rejected, "reason", "body_too_large"},
    [MK__COUNT_REFUSED_SLOW_BODY] = {&rejected, "reason", "min_body_rate"},
    [MK__COUNT_REFUSED_OTHER] = {&rejected, "reason", "other"},
};

static const struct row rows[MK__COUNTS] = {
    [MK__COUNT_STARTS] = {&starts, NULL, NULL},
    [MK__COUNT_RELOADS] = {&reloads, "result", "ok"},
    [MK__COUNT_FAILED_RELOADS] = {&reloads, "result", "failed"},
    [MK__COUNT_REFUSED_OVER_CAPACITY] = {&refused, "reason", "over_capacity"},
    [MK__COUNT_EVICTED] = {&refused, "reason", "evicted"},
    [MK__COUNT_LOST_LOG_LINES] = {&lost_log_lines, NULL, NULL},
};

static const char *const flood_names[MK__H2_FLOODS] = {
    [MK__H2_FLOOD_RESET] = "reset",
    [MK__H2_FLOOD_STREAM_ERROR] = "stream_error",
    [MK__H2_FLOOD_SETTINGS] = "settings",
    [MK__H2_FLOOD_PING] = "ping",
    [MK__H2_FLOOD_EMPTY] = "empty_frame",
    [MK__H2_FLOOD_PRIORITY] = "priority",
    [MK__H2_FLOOD_WINDOW_UPDATE] = "window_update",
    [MK__H2_FLOOD_CONTINUATION] = "continuation",
    [MK__H2_FLOOD_HPACK_BOMB] = "hpack_bomb",
    [MK__H2_FLOOD_SETTINGS_ENTRIES] = "settings_entries",
    [MK__H2_FLOOD_QUEUED_ACKS] = "queued_acks",
    [MK__H2_FLOOD_TOO_MANY_STREAMS] = "too_many_streams",
    [MK__H2_FLOOD_STALLED_STREAMS] = "stalled_streams",
    [MK__H2_FLOOD_REFUSED] = "refused_stream",
    [MK__H2_FLOOD_SEND_TIMEOUT] = "send_timeout",
};

/* ── opening ── */

/*
 * Of the process: all servers count in the same. Each start opens them, because the memory may be another one; while it
 * is in use by any server the pointers stay, so that threads of one may read them during the start of another.
 */
static const struct mk_counter *counters[MK__COUNTS], *http_counters[MK__HTTP_COUNTS];
static pthread_mutex_t start_mutex = PTHREAD_MUTEX_INITIALIZER;

static void open_counter(const struct mk_counter **ret, const struct mk_counter_info *info, const char *label,
                         const char *value)
{
    struct mk_counter_label one = {label, mk_str_c(value)};
    const struct mk_counter *counter = mk_counter_open(info, &one, label != NULL);
    if (*ret != counter)
        *ret = counter;
}

static void open_http_counters(void)
{
    const struct mk_counter **states = &http_counters[MK__COUNT_STATES];
    for (unsigned i = 0; i < MK__COUNT_STATES; i++)
        open_counter(&http_counters[i], http_rows[i].info, http_rows[i].label, http_rows[i].value);
    for (unsigned i = 0; i < MK__CONN_STATES; i++)
        if (i != MK__CONN_CLOSED)
            open_counter(&states[i], &connections, "state", mk__conn_states[i].name);
    for (unsigned i = 0; i < MK__CONN_STATES; i++)
        if (mk__conn_states[i].timeout != MK__TIMEOUTS)
            open_counter(&http_counters[MK__COUNT_TIMEOUTS + i], &timeouts, "state", mk__conn_states[i].name);
    open_counter(&http_counters[MK__COUNT_STREAM_TIMEOUTS], &timeouts, "state", "stream");
    for (unsigned i = 0; i < MK__H2_FLOODS; i++)
        open_counter(&http_counters[MK__COUNT_FLOODS + i], &floods, "kind", flood_names[i]);
}

void mk__counts_start(void)
{
    pthread_mutex_lock(&start_mutex);
    for (unsigned i = 0; i < MK__COUNTS; i++)
        open_counter(&counters[i], rows[i].info, rows[i].label, rows[i].value);
    open_http_counters();
    pthread_mutex_unlock(&start_mutex);
    mk__counts_add(MK__COUNT_STARTS, 1);
    mk__counters_before_read = mk__counts_flush;
}

/* The log may be used by any thread at any time, also while the memory is released: it counts for itself. */
void mk__counts_flush(void)
{
    unsigned n = mk__log_take_lost();
    if (n)
        mk__counts_add(MK__COUNT_LOST_LOG_LINES, n);
}

/* ── hosts ── */

enum { PROTOCOLS = 3, CLASSES = 6 };

static const char *const protocol_names[PROTOCOLS] = {"1.0", "1.1", "2"};
/* "none": no response was begun, since the client left before it. Those above 599 are of 5xx (RFC 9110 section 15). */
static const char *const class_names[CLASSES] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

struct mk__host_counts {
    const struct mk_counter *requests[PROTOCOLS][CLASSES], *duration, *received, *sent, *aborted;
};

static const struct mk_counter *open_host_counter(const struct mk_counter_info *info, struct mk_str host)
{
    return mk_counter_hold(info, &(struct mk_counter_label){"host", host}, 1);
}

static const struct mk_counter *open_requests(struct mk_str host, unsigned protocol, unsigned class)
{
    struct mk_counter_label labels[] = {{"host", host},
                                        {"protocol", mk_str_c(protocol_names[protocol])},
                                        {"status", mk_str_c(class_names[class])}};
    return mk_counter_hold(&requests, labels, MK_COUNT_OF(labels));
}

static void close_host(const struct mk_host *host)
{
    const struct mk__host_counts *c = host->counts;
    for (unsigned i = 0; i < PROTOCOLS * CLASSES; i++)
        mk__counters_put(c->requests[i / CLASSES][i % CLASSES]);
    const struct mk_counter *others[] = {c->received, c->sent, c->aborted, c->duration};
    for (unsigned i = 0; i < MK_COUNT_OF(others); i++)
        mk__counters_put(others[i]);
}

static void open_host(struct mk_host *host)
{
    struct mk__host_counts *c = host->counts; /* of the start before */
    struct mk_str name = mk_host_label(host);
    if (c)
        close_host(host);
    else
        c = mk_arena_alloc(&host->generation->arena, sizeof(*c));
    if (!c)
        return;
    for (unsigned i = 0; i < PROTOCOLS; i++)
        for (unsigned j = 0; j < CLASSES; j++)
            c->requests[i][j] = open_requests(name, i, j);
    c->received = open_host_counter(&received, name);
    c->sent = open_host_counter(&sent, name);
    c->aborted = open_host_counter(&aborted, name);
    c->duration = open_host_counter(&duration, name); /* last: without times the many cells of it take no page */
    host->counts = c;
}

void mk__counts_open_hosts(struct mk_generation *g)
{
    mk__counters_retire_unused("host");
    for (struct mk_host *host = g->hosts; host && mk_counters_fd() >= 0; host = host->next)
        open_host(host);
}

void mk__counts_close_hosts(struct mk_generation *g)
{
    for (struct mk_host *host = g->hosts; host; host = host->next)
        if (host->counts)
            close_host(host);
}

/* ── counting ── */

void mk__counts_open_thread(struct mk__context *http)
{
    http->counters = http_counters;
    http->cells = http_counters[0] ? mk__counters_memory_claim() : NULL; /* NULL: no server has been started */
}

void mk__counts_close_thread(struct mk__context *http)
{
    mk__counters_memory_give_back(http->cells);
    http->cells = NULL;
}

void mk__counts_add(enum mk__count count, int64_t n)
{
    if (counters[count])
        mk__counters_add(NULL, counters[count], n);
}

void mk__counts_add_request(const struct mk_request *req, const struct mk_host *host)
{
    const struct mk__host_counts *c = host->counts;
    mk__cell *cells = req->http->cells;
    if (!c)
        return;
    unsigned protocol = req->ops->major == 2 ? 2 : req->parse.minor ? 1 : 0, class = req->status / 100;
    if (req->output_state < MK__OUTPUT_HEAD)
        class = 0;
    else if (class >= CLASSES)
        class = CLASSES - 1;
    mk__counters_add(cells, c->requests[protocol][class], 1);
    if (req->body_bytes)
        mk__counters_add(cells, c->received, (int64_t)req->body_bytes);
    if (req->sent_bytes)
        mk__counters_add(cells, c->sent, (int64_t)req->sent_bytes);
    if (req->output_state == MK__OUTPUT_HEAD) /* and not complete */
        mk__counters_add(cells, c->aborted, 1);
    if (req->began_us)
        mk__counters_observe(cells, c->duration, mk_loop_now_us(req->http->loop) - req->began_us);
}

/* ── for plugins ── */

MK_HOT void mk_counter_add(const struct mk_counter *counter, const struct mk_worker *worker, int64_t n)
{
    mk__counters_add(worker ? *worker->cells : NULL, counter, n);
}

void mk_counter_observe(const struct mk_counter *counter, const struct mk_worker *worker, uint64_t us)
{
    mk__counters_observe(worker ? *worker->cells : NULL, counter, us);
}
