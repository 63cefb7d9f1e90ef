// SPDX-License-Identifier: Apache-2.0
/*
 * Log files of services (log.h). The kit's writer writes them.
 *
 *     any thread ─► a line (lock) ─► producer, 256 KB ─► the thread "duda: logs"
 */
#include "log/log.h"

#include "log/message.h"
#include "service/folder.h"
#include "service/service.h"

#include <monkey/base/file.h>
#include <monkey/base/time.h>
#include <monkey/base/utf8.h>
#include <monkey/kit/log_writer.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

enum { LOGS_MAX = 64, TEXT_BYTES_MAX = 4000, LOST_BYTES_MAX = 64, WAITING_BYTES_MAX = 256 * 1024, MS_NS = 1000 * 1000 };

struct duda_log {
    struct duda_log *next;   /* in the service */
    struct service *service; /* NULL: log_end() was called, and a function that runs at the unloading writes */
    const char *path;
    struct mk_log_target *target;
    struct mk_log_producer *producer;
};

/* Of the process: threads of services may outlast the plugin's stop. */
static struct mk_log_writer *writer;

/* ── lines ── */

static size_t put_time(char *out, size_t size)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t n = mk_time_iso(now.tv_sec, out);
    return n + (size_t)snprintf(out + n, size - n, ".%03uZ ", (unsigned)(now.tv_nsec / MS_NS) % 1000);
}

/* Appends the character that the text begins with. Returns its length. */
static size_t add_character(struct mk_buf *out, struct mk_str text)
{
    bool valid;
    struct mk_str c = mk_str(text.p, mk_utf8_measure(text, &valid));
    if (valid && (c.p[0] == '\t' || !mk_utf8_is_control(c)))
        mk_buf_adds(out, c);
    else
        for (size_t i = 0; i < c.len; i++)
            mk_buf_addf(out, "\\x%02x", (unsigned char)c.p[i]);
    return c.len;
}

/* Appends the text: nothing in it can break a line or reach a terminal as an escape sequence. */
static void add_text(struct mk_buf *out, struct mk_str text)
{
    while (text.len) {
        size_t n = 0;
        while (n < text.len && text.p[n] >= ' ' && text.p[n] < 0x7f)
            n++;
        mk_buf_add(out, text.p, n);
        text = mk_str_after(text, n);
        if (text.len)
            text = mk_str_after(text, add_character(out, text));
    }
}

/* What a producer has in addition to its lines. It may outlive the log, until the lines are written. */
struct log_lines {
    pthread_mutex_t lock;
    uint64_t lost; /* lines since the last one that had room */
};

static void init_lines(struct mk_log_producer *producer, void *log)
{
    struct log_lines *lines = mk_log_producer_data(producer);
    (void)log;
    pthread_mutex_init(&lines->lock, NULL);
}

static void release_lines(struct mk_log_producer *producer)
{
    struct log_lines *lines = mk_log_producer_data(producer);
    pthread_mutex_destroy(&lines->lock);
}

/* Adds a line, after the number of those that were lost before. Returns whether there was room. With the lock. */
static bool put_line(struct mk_log_producer *producer, struct log_lines *lines, struct mk_str line)
{
    char text[LOST_BYTES_MAX];
    size_t n = lines->lost ? put_time(text, sizeof(text)) : 0;
    if (lines->lost)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%llu lines were lost\n", (unsigned long long)lines->lost);
    char *room = mk_log_producer_reserve(producer, n + line.len, false);
    lines->lost = room ? 0 : lines->lost + 1;
    if (!room)
        return false;
    memcpy(room, text, n);
    memcpy(room + n, line.p, line.len);
    mk_log_producer_send(producer, n + line.len);
    return true;
}

static bool add_line(struct mk_log_producer *producer, struct mk_str line)
{
    struct log_lines *lines = mk_log_producer_data(producer);
    pthread_mutex_lock(&lines->lock);
    bool fits = put_line(producer, lines, line);
    pthread_mutex_unlock(&lines->lock);
    return fits;
}

/* Lines were written: says at once how many were lost, if no further line does. */
static bool add_lost(struct mk_log_producer *producer)
{
    struct log_lines *lines = mk_log_producer_data(producer);
    pthread_mutex_lock(&lines->lock);
    bool adds = lines->lost && !mk_log_producer_waiting(producer) && put_line(producer, lines, MK_STR(""));
    pthread_mutex_unlock(&lines->lock);
    return adds;
}

static const struct mk_log_writer_type writer_type = {
    .name = "duda",
    .thread_name = "duda: logs",
    .data_bytes = sizeof(struct log_lines),
    .init = init_lines,
    .release = release_lines,
    .on_written = add_lost,
};

int log_vadd(struct duda_log *log, const char *format, va_list args)
{
    char text[TEXT_BYTES_MAX + 1], storage[64 + TEXT_BYTES_MAX * 4] MK_UNINITIALIZED;
    struct mk_buf line;
    int n = log->service ? vsnprintf(text, sizeof(text), format, args) : -1;
    if (n < 0)
        return -1;
    size_t len = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    while (len && text[len - 1] == '\n')
        len--;
    mk_buf_init_fixed(&line, storage, sizeof(storage));
    line.len = put_time(storage, sizeof(storage));
    add_text(&line, mk_str(text, len));
    mk_buf_addc(&line, '\n');
    return add_line(log->producer, mk_buf_str(&line)) ? 0 : -1;
}

int log_add(struct duda_log *log, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int result = log_vadd(log, format, args);
    va_end(args);
    return result;
}

/* ── the writer ── */

int log_open_writer(void)
{
    if (!writer)
        writer = mk_log_writer_new(&writer_type);
    return writer ? 0 : -ENOMEM;
}

void log_stop_writer(void)
{
    mk_log_writer_stop(writer);
}

void log_reopen_all(void *state)
{
    (void)state;
    mk_log_writer_reopen(writer);
}

/* ── the logs of a service ── */

static const char *find_fault(const struct service *s, const char *name)
{
    if (!s->self.logdir.len)
        return "LogDir of [WEB_SERVICE] is not set";
    if (!name || !*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return "the name of a file in LogDir is needed, without a slash";
    return logs_of(s)->n == LOGS_MAX ? "the service has 64 logs already" : NULL;
}

/* Returns the log of that path, if the service has it. */
static struct duda_log *find_log(const struct service *s, const char *path)
{
    struct duda_log *log = logs_of(s)->first;
    while (log && strcmp(log->path, path) != 0)
        log = log->next;
    return log;
}

static struct duda_log *make_log(struct service *s, const char *path)
{
    struct duda_log *log = mk_arena_zalloc(&s->arena, sizeof(*log));
    if (!log)
        return NULL;
    *log = (struct duda_log){.next = logs_of(s)->first, .service = s, .path = path};
    log->target = mk_log_target_get(writer, &(struct mk_log_dest){MK_LOG_DEST_FILE, mk_str_c(path)});
    log->producer = log->target ? mk_log_producer_get(log->target, log, WAITING_BYTES_MAX) : NULL;
    if (log->producer) {
        logs_of(s)->first = log;
        logs_of(s)->n++;
        return log;
    }
    if (log->target)
        mk_log_target_put(log->target);
    return NULL;
}

struct duda_log *log_new(struct service *s, const char *name, const char *call)
{
    const char *fault = find_fault(s, name);
    if (fault) {
        message_log_of(s, MK_LOG_ERROR, "%s: %s: %s", call, name ? name : "NULL", fault);
        return NULL;
    }
    char *path = folder_join(&s->arena, &s->self.logdir, name, call);
    if (!path)
        return NULL;
    struct duda_log *log = find_log(s, path);
    int err = mk_file_check_output(path);
    if (!log && err == 0 && !(log = make_log(s, path)))
        err = -ENOMEM;
    if (err < 0)
        message_log_of(s, MK_LOG_ERROR, "%s: %s: %s", call, path, mk_file_error(err));
    return err < 0 ? NULL : log;
}

int log_start(struct service_worker *w)
{
    struct service *s = w->service;
    int err = logs_of(s)->first ? mk_log_writer_start(writer) : 0;
    if (err < 0)
        message_log_of(s, MK_LOG_ERROR, "the thread that writes the logs cannot start: %s", strerror(-err));
    return 0;
}

void log_end(struct service *s)
{
    for (struct duda_log *log = logs_of(s)->first; log; log = log->next) {
        assert(log->service);
        log->service = NULL;
        mk_log_producer_put(log->producer);
        mk_log_target_put(log->target);
    }
    *logs_of(s) = (struct logs){0};
}
