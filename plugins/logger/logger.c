// SPDX-License-Identifier: Apache-2.0
/*
 * logger: an access log and an error log for each host. This file has the directives and hooks, and chooses the log of
 * an exchange. format.c makes the line, writer.c writes it.
 */
#include <monkey/file.h>
#include <monkey/plugin.h>

#include "format.h"
#include "gate.h"
#include "writer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_logger;

/* ── directives ── */

struct logger_server_conf {
    uint64_t buffer_bytes;
    uint32_t flush_ms;
};

enum log_kind { ACCESS, ERRORS, LOGS };

struct logger_host_conf {
    struct log_dest dests[LOGS];
    struct format formats[LOGS];
    bool request_id;
    int facility, when_full;
};

enum when_full { WHEN_FULL_DROP, WHEN_FULL_WAIT };

static const char *const when_full_names[] = {[WHEN_FULL_DROP] = "drop", [WHEN_FULL_WAIT] = "wait", NULL};

static const char *const facilities[] = {"kern",   "user",   "mail",   "daemon",   "auth",   "syslog", "lpr",
                                         "news",   "uucp",   "cron",   "authpriv", "ftp",    "ntp",    "audit",
                                         "alert",  "clock",  "local0", "local1",   "local2", "local3", "local4",
                                         "local5", "local6", "local7", NULL};

static const struct mk_conf_key server_keys[] = {
    MK_CONF_KEY_SIZE(
        struct logger_server_conf, buffer_bytes, "Buffer", "8M",
        "How much of each log may wait in each worker to be written. Memory is allocated as needed, from 256 KB "
        "on, and freed again. `WhenFull` says what happens when it is full.",
        .min = 32 * 1024, .max = 1024 * 1024 * 1024, .unit = "B"),
    MK_CONF_KEY_DURATION(struct logger_server_conf, flush_ms, "Flush", "1s",
                         "How long a line may wait, so that several are written together.", .min = 1, .max = 60 * 1000,
                         .unit = "s"),
    {0},
};

#define DEST_UNIT "path, stdout, stderr, syslog or Off"

static const struct mk_conf_key host_keys[] = {
    MK_CONF_KEY_CUSTOM(struct logger_host_conf, dests[ACCESS], "AccessLog", "Off",
                       "The log of all exchanges: a file, `stdout`, `stderr`, `syslog` (RFC 5424, to /dev/log; "
                       "`syslog:/path` is another socket), or `Off`. Several hosts may share one.",
                       .unit = DEST_UNIT, .parse = dest_parse),
    MK_CONF_KEY_CUSTOM(struct logger_host_conf, dests[ERRORS], "ErrorLog", "Off",
                       "The log of exchanges that failed: with a status of 400 and above, or ended before the response "
                       "was complete. Values as for `AccessLog`.",
                       .unit = DEST_UNIT, .parse = dest_parse),
    MK_CONF_KEY_CUSTOM(struct logger_host_conf, formats[ACCESS], "Format", "common",
                       "The format of a line: `common`, `combined`, `json`, or a text with variables, "
                       "`\"$client $status $(request_time_us)us\"`; `json $time_iso8601 $status` is an object of these "
                       "variables. The page of the plugin lists them.",
                       .unit = "format", .parse = format_parse),
    MK_CONF_KEY_CUSTOM(struct logger_host_conf, formats[ERRORS], "ErrorFormat", "error",
                       "The format of a line of the error log: as `Format`, or `error`.", .unit = "format",
                       .parse = format_parse),
    MK_CONF_KEY_ENUM(
        struct logger_host_conf, when_full, "WhenFull", "drop",
        "What happens when a log cannot be written in time and `Buffer` is full. `drop`: lines are lost, and "
        "counted. `wait`: new requests of this host wait until enough was written, so that no line is "
        "lost; one that waits longer than `HandlerTimeout` gets 503.",
        .names = when_full_names),
    MK_CONF_KEY_BOOL(
        struct logger_host_conf, request_id, "RequestId", "Off",
        "Whether responses have the request ID in X-Request-Id: the one of the request's header, else a new "
        "one."),
    MK_CONF_KEY_ENUM(struct logger_host_conf, facility, "SyslogFacility", "daemon", "The facility of lines for syslog.",
                     .names = facilities),
    {0},
};

enum { SERVER, HOST };

static const struct mk_conf_section sections[] = {
    {.name = "LOGGER",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct logger_server_conf),
     .keys = server_keys,
     .doc = MK_CONF_DOC("How the workers' lines are written. The hosts set their logs.")},
    {.name = "LOGGER",
     .scope = MK_CONF_SCOPE_HOST,
     .size = sizeof(struct logger_host_conf),
     .keys = host_keys,
     .doc = MK_CONF_DOC("The logs of this host. Requests that could not be read are in those of `sites/default`.")},
    {0},
};

/* ── states ── */

/* The logs of a generation, each once. Workers have a producer for each row, hosts have the index of a row. */
struct log_table {
    struct writer *writer;
    struct log_table_row {
        struct log_target *target;
        bool wait; /* a host has WhenFull wait for it */
    } * rows;
    unsigned n, max;
};

struct logger_host {
    const struct logger_host_conf *settings;
    int indexes[LOGS]; /* -1: off */
};

struct logger_worker {
    struct line line; /* with the time as text */
    struct mk_str sender;
    char sender_text[96]; /* for syslog: " hostname monkey PID " */
    unsigned n;
    struct log_producer *producers[];
};

static int start_generation(struct mk_generation *g, void **ret_state)
{
    struct log_table *t = mk_account_alloc(NULL, sizeof(*t));
    if (!t)
        return -ENOMEM;
    *t = (struct log_table){.writer = mk_generation_plugin_state(g, &mk_plugin_logger)};
    *ret_state = t;
    return 0;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    struct log_table *t = state;
    (void)g;
    for (unsigned i = 0; i < t->n; i++)
        writer_put_target(t->rows[i].target);
    mk_account_free(NULL, t->rows, t->max * sizeof(*t->rows));
    mk_account_free(NULL, t, sizeof(*t));
}

static int grow_table(struct log_table *t)
{
    unsigned max = t->max ? 2 * t->max : 8;
    struct log_table_row *rows = mk_account_alloc(NULL, max * sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    if (t->n)
        memcpy(rows, t->rows, t->n * sizeof(*rows));
    mk_account_free(NULL, t->rows, t->max * sizeof(*rows));
    t->rows = rows;
    t->max = max;
    return 0;
}

/* Adds a log, unless the table has it. Returns its index or -ENOMEM. */
static int add_target(struct log_table *t, const struct log_dest *dest, bool wait)
{
    struct log_target *target = t->n < t->max || grow_table(t) == 0 ? writer_get_target(t->writer, dest) : NULL;
    if (!target)
        return -ENOMEM;
    for (unsigned i = 0; i < t->n; i++)
        if (t->rows[i].target == target) {
            writer_put_target(target);
            t->rows[i].wait |= wait;
            return (int)i;
        }
    assert(t->n < t->max);
    t->rows[t->n] = (struct log_table_row){target, wait};
    return (int)t->n++;
}

/* Sets the index of a log of the host. Returns 0, -EINVAL (an error was reported) or -ENOMEM. */
static int open_log(struct mk_host *host, struct logger_host *h, enum log_kind log)
{
    static const size_t offsets[LOGS] = {offsetof(struct logger_host_conf, dests[ACCESS]),
                                         offsetof(struct logger_host_conf, dests[ERRORS])};
    const struct log_dest *dest = &h->settings->dests[log];
    h->indexes[log] = -1;
    if (dest->kind == DEST_OFF)
        return 0;
    int err = dest_check(dest);
    if (err < 0) {
        mk_host_error(host, h->settings, offsets[log], 0, "cannot write %s: %s", dest->path.p, mk_file_error(err));
        return -EINVAL;
    }
    struct log_table *t = mk_generation_state(mk_host_generation(host), &mk_plugin_logger);
    int number = add_target(t, dest, h->settings->when_full == WHEN_FULL_WAIT);
    h->indexes[log] = number;
    return number < 0 ? number : 0;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    const struct logger_host_conf *settings = mk_host_conf(host, &sections[HOST]);
    if (!settings)
        return 0;
    struct logger_host *h = mk_account_alloc(NULL, sizeof(*h));
    if (!h)
        return -ENOMEM;
    h->settings = settings;
    int err = 0;
    for (int log = 0; log < LOGS && err != -ENOMEM; log++) {
        int r = open_log(host, h, (enum log_kind)log);
        err = r < 0 ? r : err;
    }
    if (err < 0) {
        mk_account_free(NULL, h, sizeof(*h));
        return err;
    }
    *ret_state = h;
    return 0;
}

static void stop_host(struct mk_host *host, void *state)
{
    (void)host;
    mk_account_free(NULL, state, sizeof(struct logger_host));
}

/* ── workers ── */

static void close_producers(struct logger_worker *w)
{
    size_t bytes = sizeof(*w) + w->n * sizeof(struct log_producer *);
    for (unsigned i = 0; i < w->n && w->producers[i]; i++)
        writer_put_producer(w->producers[i]);
    mk_account_free(NULL, w, bytes);
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

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    const struct mk_generation *g = mk_worker_generation(worker);
    const struct log_table *t = mk_generation_state(g, &mk_plugin_logger);
    const struct logger_server_conf *settings = mk_generation_conf(g, &sections[SERVER]);
    struct logger_server_conf defaults = {8 * 1024 * 1024, 1000};
    if (!settings)
        settings = &defaults;
    int err = t->n ? writer_start(t->writer, settings->flush_ms) : 0;
    if (err < 0)
        return err;
    size_t bytes = sizeof(struct logger_worker) + t->n * sizeof(struct log_producer *);
    struct logger_worker *w = mk_account_alloc(NULL, bytes);
    if (!w)
        return -ENOMEM;
    memset(w, 0, bytes);
    w->n = t->n;
    set_syslog_sender(w);
    for (unsigned i = 0; i < t->n && err == 0; i++) {
        w->producers[i] =
            writer_get_producer(t->rows[i].target, mk_worker_loop(worker), settings->buffer_bytes, t->rows[i].wait);
        err = w->producers[i] ? 0 : -ENOMEM;
    }
    if (err < 0)
        close_producers(w);
    else
        *ret_state = w;
    return err;
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

static void set_time(struct line *l)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    line_set_time(l, now.tv_sec, (uint32_t)(now.tv_nsec / 1000000));
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
static bool begin_line(struct logger_worker *w, const struct logger_host_conf *settings, enum log_kind log,
                       struct log_producer *producer, int status)
{
    char *room = writer_reserve(producer);
    if (!room)
        return false;
    line_begin(&w->line, room, settings->formats[log].fixed + SYSLOG_FIXED + FORMAT_LOST_FIXED);
    if (settings->dests[log].kind == DEST_SYSLOG)
        put_syslog_head(w, settings, log, status);
    return true;
}

static void end_line(struct logger_worker *w, struct log_producer *producer)
{
    line_put_char(&w->line, '\n');
    writer_send(producer, line_length(&w->line));
}

/* Writes the line of an exchange; before it one that says how many were lost, if some were. */
static void write_line(struct logger_worker *w, const struct logger_host *h, enum log_kind log,
                       const struct log_entry *e)
{
    assert((unsigned)h->indexes[log] < w->n);
    struct log_producer *producer = w->producers[h->indexes[log]];
    const struct format *f = &h->settings->formats[log];
    int status = mk_response_get_status(e->req);
    if (!begin_line(w, h->settings, log, producer, status))
        return;
    if (MK_UNLIKELY(producer->lost)) {
        format_put_lost(f, &w->line, producer->lost);
        end_line(w, producer);
        producer->lost = 0;
        if (!begin_line(w, h->settings, log, producer, status))
            return;
    }
    format_put(f, &w->line, e);
    end_line(w, producer);
}

static void log_request(struct mk_request *req)
{
    const struct logger_host *h = get_host_state(req);
    if (!h)
        return;
    struct logger_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_logger);
    struct log_entry e = {req, mk_worker_index(mk_request_worker(req))};
    set_time(&w->line);
    if (h->indexes[ACCESS] >= 0)
        write_line(w, h, ACCESS, &e);
    if (h->indexes[ERRORS] >= 0 && (mk_response_get_status(req) >= 400 || mk_request_aborted(req)))
        write_line(w, h, ERRORS, &e);
}

/* Lets a request wait for room, before other plugins are called. Waits for the first log that is full. */
static int wait_for_room(struct mk_request *req)
{
    const struct logger_host *h = get_host_state(req);
    if (!h || h->settings->when_full != WHEN_FULL_WAIT)
        return MK_DECLINED;
    const struct logger_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_logger);
    int r = MK_DECLINED;
    for (int log = 0; log < LOGS && r == MK_DECLINED; log++)
        if (h->indexes[log] >= 0)
            r = gate_pass(w->producers[h->indexes[log]]->gate, req);
    return r;
}

static void add_request_id(struct mk_request *req)
{
    const struct logger_host *h = get_host_state(req);
    struct mk_str name = MK_STR("X-Request-Id");
    if (!h)
        return;
    mk_request_peer(req); /* now: after a reset of the connection the system does not know it any more */
    if (!h->settings->request_id || mk_response_get_header(req, name).p)
        return;
    struct mk_str id = mk_request_id(req);
    if (id.p)
        mk_response_header_ref(req, name, id);
}

static int start_writer(void **ret_state)
{
    *ret_state = writer_new();
    return *ret_state ? 0 : -ENOMEM;
}

static void stop_writer(void *state)
{
    writer_free(state);
}

static void reopen_logs(void *state)
{
    writer_reopen(state);
}

MK_PLUGIN(logger) = {
    MK_PLUGIN_HEAD("logger", "2.0.0", "access and error logs of hosts, and request IDs"),
    .flags = MK_PLUGIN_TIMES | MK_PLUGIN_CHECKS_ALL,
    .sections = sections,
    .start = start_writer,
    .stop = stop_writer,
    .reopen = reopen_logs,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .host_start = start_host,
    .host_stop = stop_host,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_head = wait_for_room,
    .on_response = add_request_id,
    .on_done = log_request,
};
