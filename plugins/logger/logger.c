// SPDX-License-Identifier: Apache-2.0
/*
 * logger: access and error logs of hosts. This file has the hooks of workers and requests. hosts.c chooses the logs of
 * an exchange, filter.c tells whether it gets a line, format.c makes the line, the kit (log_writer) writes it.
 */
#include "logger.h"

#include <monkey/hooks.h>
#include <monkey/inspect.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_logger;

/* ── producers ── */

/* What a worker keeps for each log; generations of the worker share it. */
struct log_producer {
    struct mk_log_producer *base;
    uint64_t lost; /* lines since the last one that had room */
    bool waits;    /* a generation has had WhenFull wait: requests wait at the gate, and lines may exceed Buffer */
    struct gate gate;
};

static void init_producer(struct mk_log_producer *base, void *loop)
{
    struct log_producer *producer = mk_log_producer_data(base);
    producer->base = base;
    gate_init(&producer->gate, loop, base);
}

static bool check_gate(struct mk_log_producer *base)
{
    struct log_producer *producer = mk_log_producer_data(base);
    gate_check(&producer->gate);
    return false;
}

static const struct mk_counter_info lost_lines = {"logger", "lost_lines", "lines that could not be written, by log",
                                                  MK_COUNTER_SUM};

static const struct mk_log_writer_type writer_type = {
    .name = "logger",
    .thread_name = "monkey: logger",
    .lost = &lost_lines,
    .data_bytes = sizeof(struct log_producer),
    .init = init_producer,
    .on_written = check_gate,
};

/* Returns the producer of the worker's loop for a log, with a reference; NULL without memory. */
static struct log_producer *get_producer(const struct log_table_row *row, struct mk_worker *worker, size_t bytes_max)
{
    struct mk_log_producer *base = mk_log_producer_get(row->target, mk_worker_loop(worker), bytes_max);
    if (!base)
        return NULL;
    struct log_producer *producer = mk_log_producer_data(base);
    producer->waits |= row->wait;
    return producer;
}

/* ── workers ── */

struct logger_worker {
    struct line line; /* with the time as text */
    struct mk_str sender;
    char sender_text[96]; /* for syslog: " hostname monkey PID " */
    uint32_t *credits;    /* of samples, one for each section */
    unsigned n, n_credits;
    struct log_producer *producers[];
};

static void close_producers(struct logger_worker *w)
{
    size_t bytes = sizeof(*w) + w->n * sizeof(struct log_producer *);
    for (unsigned i = 0; i < w->n && w->producers[i]; i++)
        mk_log_producer_put(w->producers[i]->base);
    mk_account_free(NULL, w->credits, w->n_credits * sizeof(*w->credits));
    mk_account_free(NULL, w, bytes);
}

static int make_credits(struct logger_worker *w, unsigned n)
{
    if (n == 0)
        return 0;
    w->credits = mk_account_zalloc(NULL, n * sizeof(*w->credits));
    if (!w->credits)
        return -ENOMEM;
    w->n_credits = n;
    return 0;
}

static void set_syslog_sender(struct logger_worker *w)
{
    char host[64];
    if (gethostname(host, sizeof(host)) < 0)
        host[0] = '\0';
    host[sizeof(host) - 1] = '\0';
    snprintf(w->sender_text, sizeof(w->sender_text), " %s monkey %d ", host[0] ? host : "-", (int)getpid());
    w->sender = mk_str_c(w->sender_text);
}

static const struct logger_server_conf *get_settings(const struct mk_generation *g)
{
    static const struct logger_server_conf defaults = {8 * 1024 * 1024, 1000};
    const struct logger_server_conf *settings = mk_generation_conf(g, &logger_sections[SETTINGS_SERVER]);
    return settings ? settings : &defaults;
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    const struct mk_generation *g = mk_worker_generation(worker);
    const struct log_table *t = mk_generation_state(g, &mk_plugin_logger);
    const struct logger_server_conf *settings = get_settings(g);
    int err = t->n ? mk_log_writer_start(t->writer) : 0;
    if (err < 0)
        return err;
    size_t bytes = sizeof(struct logger_worker) + t->n * sizeof(struct log_producer *);
    struct logger_worker *w = mk_account_zalloc(NULL, bytes);
    if (!w)
        return -ENOMEM;
    w->n = t->n;
    set_syslog_sender(w);
    err = make_credits(w, t->sections);
    for (unsigned i = 0; i < t->n && err == 0; i++) {
        w->producers[i] = get_producer(&t->rows[i], worker, settings->buffer_bytes);
        err = w->producers[i] ? 0 : -ENOMEM;
    }
    if (err < 0)
        close_producers(w);
    else
        *ret_state = w;
    return err;
}

static void serve_worker(struct mk_worker *worker, void *state)
{
    const struct mk_generation *g = mk_worker_generation(worker);
    const struct log_table *t = mk_generation_state(g, &mk_plugin_logger);
    (void)state;
    if (t->n)
        mk_log_writer_set_flush(t->writer, get_settings(g)->flush_ms);
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    (void)worker;
    close_producers(state);
}

/* ── lines ── */

/* Returns the state of the request's host; for requests that could not be read, of the default host. */
static const struct logger_host *get_host_state(const struct mk_request *req)
{
    return mk_host_state(mk_request_host_conf(req), &mk_plugin_logger);
}

/* The bytes of a line before its format, for syslog (RFC 5424 section 6). */
enum { SYSLOG_FIXED = 160 };

static void put_syslog_head(struct logger_worker *w, const struct logger_host_conf *settings, enum log_kind log,
                            int status)
{
    unsigned severity = status >= 500 ? 3 : status >= 400 ? 4 : 6;
    line_put_char(&w->line, '<');
    line_put_number(&w->line, (unsigned)settings->facility * 8 + severity);
    line_put(&w->line, MK_STR(">1 "));
    line_put_iso(&w->line);
    line_put(&w->line, w->sender);
    line_put(&w->line, log == ACCESS ? MK_STR("access - ") : MK_STR("error - "));
}

/* Reserves room and adds what is before the format. Returns false, and counts the line as lost, if there is no room. */
static bool begin_line(struct logger_worker *w, const struct logger_logs *logs, enum log_kind log,
                       struct log_producer *producer, int status)
{
    char *room = mk_log_producer_reserve(producer->base, LINE_BYTES_MAX, producer->waits);
    if (MK_UNLIKELY(!room)) {
        producer->lost++;
        return false;
    }
    line_begin(&w->line, room, logs->formats[log]->fixed + SYSLOG_FIXED + FORMAT_LOST_FIXED);
    if (logs->settings->dests[log].kind == MK_LOG_DEST_SYSLOG)
        put_syslog_head(w, logs->settings, log, status);
    return true;
}

static void end_line(struct logger_worker *w, struct log_producer *producer)
{
    line_put_char(&w->line, '\n');
    mk_log_producer_send(producer->base, line_length(&w->line));
}

/* Writes the line of an exchange; before it one that says how many were lost, if some were. */
static void write_line(struct logger_worker *w, const struct logger_logs *logs, enum log_kind log,
                       const struct log_entry *e)
{
    assert((unsigned)logs->indexes[log] < w->n);
    struct log_producer *producer = w->producers[logs->indexes[log]];
    const struct format *f = logs->formats[log];
    int status = mk_response_get_status(e->req);
    if (!begin_line(w, logs, log, producer, status))
        return;
    if (MK_UNLIKELY(producer->lost)) {
        format_put_lost(f, &w->line, producer->lost);
        end_line(w, producer);
        producer->lost = 0;
        if (!begin_line(w, logs, log, producer, status))
            return;
    }
    format_put(f, &w->line, e);
    end_line(w, producer);
}

static struct filter_exchange describe_exchange(struct mk_request *req)
{
    uint64_t began = mk_request_began_us(req);
    return (struct filter_exchange){
        .path = mk_request_original_path(req),
        .status = mk_response_get_status(req),
        .aborted = mk_request_aborted(req),
        .time_us = began ? mk_loop_now_us(mk_request_loop(req)) - began : 0,
    };
}

/* Writes the lines of an exchange in the logs of one section. */
static void write_lines(struct logger_worker *w, const struct logger_logs *logs, const struct log_entry *e,
                        const struct filter_exchange *x)
{
    assert(logs->number < w->n_credits);
    if (logs->indexes[ACCESS] >= 0 && filter_passes(&logs->settings->filter, x, &w->credits[logs->number]))
        write_line(w, logs, ACCESS, e);
    if (logs->indexes[ERRORS] >= 0 && (x->status >= 400 || x->aborted))
        write_line(w, logs, ERRORS, e);
}

static void log_request(struct mk_request *req)
{
    const struct logger_host *h = get_host_state(req);
    const struct logger_logs *logs;
    unsigned at = 0;
    bool own = false;
    if (!h)
        return;
    struct logger_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_logger);
    struct log_entry e = {req, mk_worker_index(mk_request_worker(req))};
    struct filter_exchange x = describe_exchange(req);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    line_set_time(&w->line, now.tv_sec, (uint32_t)(now.tv_nsec / 1000000));
    while ((logs = hosts_find_logs(h, x.path, &at, &own)))
        write_lines(w, logs, &e, &x);
}

/* Passes the gates of a section. Returns as gate_pass(). */
static int pass_gates(const struct logger_worker *w, const struct logger_logs *logs, struct mk_request *req)
{
    int r = MK_DECLINED;
    for (int log = 0; log < LOGS && r == MK_DECLINED && logs->settings->when_full == WHEN_FULL_WAIT; log++)
        if (logs->indexes[log] >= 0)
            r = gate_pass(&w->producers[logs->indexes[log]]->gate, req);
    return r;
}

/* Lets a request wait for room, before other plugins are called. Waits for the first log that is full. */
static int wait_for_room(struct mk_request *req)
{
    const struct logger_host *h = get_host_state(req);
    const struct logger_logs *logs;
    unsigned at = 0;
    bool own = false;
    int r = MK_DECLINED;
    if (!h)
        return MK_DECLINED;
    const struct logger_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_logger);
    while (r == MK_DECLINED && (logs = hosts_find_logs(h, mk_request_original_path(req), &at, &own)))
        r = pass_gates(w, logs, req);
    return r;
}

static bool wants_request_id(const struct logger_host *h, struct mk_request *req)
{
    const struct logger_logs *logs;
    unsigned at = 0;
    bool own = false, wants = false;
    while (!wants && (logs = hosts_find_logs(h, mk_request_original_path(req), &at, &own)))
        wants = logs->settings->request_id;
    return wants;
}

static void add_request_id(struct mk_request *req)
{
    const struct logger_host *h = get_host_state(req);
    struct mk_str name = MK_STR("X-Request-Id");
    if (!h)
        return;
    mk_request_peer(req); /* now: after a reset of the connection the system does not know it any more */
    if (!wants_request_id(h, req) || mk_response_get_header(req, name).p)
        return;
    struct mk_str id = mk_request_id(req);
    if (id.p)
        mk_response_header_ref(req, name, id);
}

static int start_writer(void **ret_state)
{
    *ret_state = mk_log_writer_new(&writer_type);
    return *ret_state ? 0 : -ENOMEM;
}

static void stop_writer(void *state)
{
    mk_log_writer_free(state);
}

static void reopen_logs(void *state)
{
    mk_log_writer_reopen(state);
}

static void explain_dest(const struct mk_host *host, struct mk_explain *e, const struct logger_logs *logs,
                         enum log_kind kind)
{
    static const char *const dests[] = {[MK_LOG_DEST_FILE] = "",
                                        [MK_LOG_DEST_STDOUT] = "stdout",
                                        [MK_LOG_DEST_STDERR] = "stderr",
                                        [MK_LOG_DEST_SYSLOG] = "syslog"};
    const struct mk_log_dest *dest = &logs->settings->dests[kind];
    if (dest->kind != MK_LOG_DEST_OFF)
        mk_explain_add(e, host, logs->settings, kind == ACCESS ? MK_EXPLAIN_NOTE : MK_EXPLAIN_MAYBE,
                       "[LOGGER] writes a line to the %s %s%s", kind == ACCESS ? "access log" : "error log",
                       dest->path.len ? dest->path.p : dests[dest->kind],
                       kind == ACCESS ? ", unless its conditions leave the request out" : ", if the request fails");
}

static void explain_logs(const struct mk_host *host, struct mk_explain *e)
{
    const struct logger_host *h = mk_host_state(host, &mk_plugin_logger);
    const struct logger_logs *logs;
    unsigned at = 0;
    bool own = false;
    while (h && e->phase == MK_EXPLAIN_RESPONSE && (logs = hosts_find_logs(h, e->original_path, &at, &own))) {
        explain_dest(host, e, logs, ACCESS);
        explain_dest(host, e, logs, ERRORS);
    }
}

static const struct mk_process_hooks process_hooks = {.reopen = reopen_logs};

static const struct mk_inspect_hooks inspect_hooks = {.explain = explain_logs};

MK_PLUGIN(logger) = {
    MK_PLUGIN_HEAD("logger", "2.0.0", "access and error logs of hosts, and request IDs"),
    .flags = MK_PLUGIN_TIMES | MK_PLUGIN_CHECKS_ALL,
    .sections = logger_sections,
    .start = start_writer,
    .stop = stop_writer,
    .generation_start = hosts_start_generation,
    .generation_stop = hosts_stop_generation,
    .host_start = hosts_start,
    .host_stop = hosts_stop,
    .worker_start = start_worker,
    .worker_serve = serve_worker,
    .worker_stop = stop_worker,
    .on_head = wait_for_room,
    .on_response = add_request_id,
    .on_done = log_request,
    .process = &process_hooks,
    .inspection = &inspect_hooks,
};
